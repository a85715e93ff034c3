"""Tables of votes on the command line: ``clean`` and ``audit plan`` with ``--task --worker``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbmodels.cli.console import InputError, stages, writing
from nbmodels.errors import counted

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from nbmodels.cli.files import Table
    from nbmodels.cli.votes import CleanedVotes

#: Posterior draws of each chain for a report.
_DRAWS = 200


def check_roles(task: str | None, worker: str | None, unused: Mapping[str, Any]) -> None:
    """Raises: InputError: one of the two columns alone, or options that votes have no use for."""
    if task is None or worker is None:
        there, other = ("--task", "--worker") if worker is None else ("--worker", "--task")
        raise InputError(f"{other}: {there} names one column of a table of votes; give both")
    for name, value in unused.items():
        if value is not None:
            raise InputError(f"{name}: not for a table of votes (--task, --worker)")


@dataclass(frozen=True)
class VotesTable:
    """A table of votes, and what its columns are.

    Attributes:
        table: a row a vote, items and annotators as they are spelt.
        label: column of the votes.
        task: column of the items.
        worker: column of the annotators.
        truth: column of the items' true labels, or None.
        encoding: of other files about them that are not UTF-8, or None.
    """

    table: Table
    label: str
    task: str
    worker: str
    truth: str | None
    encoding: str | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        label: str,
        task: str,
        worker: str,
        truth: str | None,
        encoding: str | None = None,
    ) -> VotesTable:
        """From a table whose labels are as they are spelt."""
        return cls(table.with_labels(task, worker)[0], label, task, worker, truth, encoding)

    def cleaned(self, console: Console, **options: Any) -> CleanedVotes:
        """:func:`nbmodels.cli.votes.clean_votes` of the table, with its stages on the screen."""
        from nbmodels.cli.votes import clean_votes

        columns = self.label, self.task, self.worker
        with stages(console) as stage:
            return clean_votes(self.table.frame, *columns, truth=self.truth, stage=stage, **options)

    def checked(self, paths: Sequence[Path]) -> dict[str, str]:
        """True classes of checked items, both as text.

        Raises:
            InputError: no table as ``audit plan`` writes it, of these items; or two that name other
                classes of an item.
        """
        from nbmodels.cli.checked import together

        return together(map(self._checked, paths), "item")

    def _checked(self, path: Path) -> dict[str, str]:
        """Those of one file."""
        from nbmodels.cli.checked import filled_in
        from nbmodels.cli.files import read_table
        from nbmodels.data.labels import as_text

        table, _ = read_table(path, self.encoding).with_labels(self.task)
        true = filled_in(table, self.table.classes(self.label), "--checked")
        if self.task not in table.frame.columns:
            raise InputError(f"--checked: {path} has no column {self.task!r}, of the items")
        items = as_text(table.frame[self.task])
        return {
            item: name for item, name in zip(items, true.values(), strict=True) if name is not None
        }

    def of_items(self, cleaned: CleanedVotes) -> pd.DataFrame:
        """Items with their votes' majority, and columns that say the same in all their votes."""
        import pandas as pd

        items = cleaned.items.iloc[:, :3]  # the item, its number of votes, their majority
        cells = self.table.cells
        roles = {self.label, self.task, self.worker, self.truth, *items}
        others = [name for name in cells.columns if name not in roles]
        by_item = cells.groupby(self.table.frame[self.task], sort=False)
        alike = [name for name in others if by_item[name].nunique(dropna=False).max() == 1]
        if not alike:
            return items
        found = by_item[alike].first().loc[items[self.task]]
        return pd.concat([items, found.reset_index(drop=True)], axis=1)


def clean_items(
    console: Console,
    votes: VotesTable,
    target: Path,
    report: Path | None,
    *,
    checked: Sequence[Path] | None,
    grades: Sequence[str] | None,
    probabilities: bool | None,
    seed: int,
    draws: int = _DRAWS,
) -> None:
    """The items of a table of votes, corrected, written and shown.

    Args:
        console: where to.
        votes: the table.
        target: where the items are written.
        report: folder of the report, or None.
        checked: files of items checked by hand, or None.
        grades: see :func:`nbmodels.cli.votes.clean_votes`.
        probabilities: whether to add a column for each class.
        seed: of all randomness.
        draws: posterior draws of each chain for a report.
    """
    from nbmodels.cli import files
    from nbmodels.cli import report as reports
    from nbmodels.cli.wording import bold, screen

    cleaned = votes.cleaned(
        screen(stderr=True),
        checked=votes.checked(checked or ()),
        grades=grades,
        probabilities=probabilities,
        draws=0 if report is None else draws,
        random_state=seed,
    )
    items = cleaned.items
    with writing(target):
        table = files.Table(votes.table.path, items, items, votes.table.dialect)
        files.write_table(table, items.iloc[:, :0], target)
    if report is not None:
        with writing(report):
            dialect = table.dialect_of(report / files.REPORT_OF_VOTES[0])
            files.write_report_of_votes(report, cleaned.workers, cleaned.posterior, dialect)
    console.print()
    reports.show_votes(console, cleaned)
    console.print(f"Wrote {bold(target)}: {counted(len(items), 'item')}", highlight=False)
    if report is not None:
        written = ", ".join(files.REPORT_OF_VOTES)
        console.print(f"Wrote {bold(report)}: {written}", highlight=False)
