"""``nbmodels audit plan`` and ``nbmodels audit read``: rows to check by hand, and what they say."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nbmodels.cli import options
from nbmodels.cli.checked import ROW, TRUE, files_of_checks, filled_in, true_classes
from nbmodels.cli.console import InputError, input_errors, report_blanks, stages, writing

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from nbmodels.audit import AuditPlan
    from nbmodels.cli.clean import Cleaned
    from nbmodels.cli.dialect import Dialect

audit_app = typer.Typer(
    help="Check some rows by hand, and learn from them how many labels are wrong.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)

#: Rows to check, where neither their number nor a margin is given.
_ROWS = 100


@audit_app.command()
def plan(
    file: options.TableFile,
    label: options.Label,
    task: options.Task = None,
    worker: options.Worker = None,
    text: options.Text = None,
    features: options.Features = None,
    groups: options.Groups = None,
    estimator: options.Estimator = options.EstimatorName.naive_bayes,
    truth: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of true labels, left out of everything."),
    ] = None,
    checked: options.Checked = None,
    rows: Annotated[int | None, typer.Option(help="Rows to check.", show_default="100")] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="As many rows as this margin needs: 0.02 for plus or minus 2 points."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            help="Share of wrong labels that margins suppose.",
            show_default="what the fit expects, or the other end, if that is more",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Rows to check, .csv or .tsv.", show_default="FILE-audit.csv, here"
        ),
    ] = None,
    encoding: options.Encoding = None,
    overwrite: options.Overwrite = False,
    seed: options.Seed = 0,
) -> None:
    """Draw rows to check, those whose label is likely to be wrong more often.

    Fill in the column [bold]audit_true_label[/] of the written table, in any order and
    over days; [bold]nbmodels audit read[/] then takes it. The plan itself is written
    beside it, as .json.

    With [bold]--task[/] and [bold]--worker[/] each row is a vote of one of several annotators,
    and what is checked is the majority of an item's votes.

    For a second round, [bold]--checked[/] takes the rows of the first: they are known in
    the fit, and are not drawn again. The answer is then about all other rows.
    """
    with input_errors():
        from nbmodels.cli import files

        if task is not None or worker is not None:
            from nbmodels.cli.votes_table import check_roles

            of_tables = None if estimator == options.EstimatorName.naive_bayes else estimator
            unused = {"--text": text, "--features": features, "--groups": groups}
            check_roles(task, worker, {**unused, "--estimator": of_tables})
        target = out if out is not None else Path(f"{file.stem}-audit.csv")
        if target.suffix.lower() not in (".csv", ".tsv"):
            raise InputError(f"--out: {target} is neither .csv nor .tsv")
        if rows is not None and margin is not None:
            raise InputError("--margin: give either the number of rows or the margin")
        table = files.read_table(file, encoding)
        for name in (ROW, TRUE):
            if name in table.frame.columns:
                raise InputError(f"FILE: {file} has a column {name!r} already")
        for path in (target, target.with_suffix(".json")):
            inputs = {"the input": file, **files_of_checks(checked)}
            files.check_output(path, overwrite=overwrite, others=inputs)

        import numpy as np
        from rich.markup import escape

        from nbmodels.cli.clean import clean
        from nbmodels.cli.report import warn
        from nbmodels.cli.wording import bold, screen
        from nbmodels.data.labels import as_text

        console = screen()
        table, blanks = table.with_labels(label, truth)
        report_blanks(console, blanks)
        if task is not None and worker is not None:
            from nbmodels.cli.votes_table import VotesTable

            votes = VotesTable.of(table, label, task, worker, truth, encoding)
            known = votes.checked(checked or ())
            items = votes.cleaned(screen(stderr=True), checked=known, random_state=seed)
            model, corrected, cells = items.model, items.corrected, votes.of_items(items)
            left_out = np.isin(as_text(items.items[task]), [*known])
            findings = [items.verdict] if items.passed else []
            cautions = [*([] if items.passed else [items.verdict]), *items.warnings]
        else:
            rows_known = true_classes(checked or (), table, label, encoding)
            with stages(screen(stderr=True)) as stage:
                cleaned = clean(
                    table.frame,
                    label,
                    text=text,
                    features=options.column_names(features),
                    groups=groups,
                    truth=truth,
                    checked=rows_known,
                    estimator=estimator.value,
                    probabilities=False,
                    draws=0,
                    random_state=seed,
                    stage=stage,
                )
            model, corrected = cleaned.model, _corrected(cleaned)
            left_out = np.isin(np.arange(len(corrected)), [*rows_known])
            cells = table.cells.drop(columns=[] if truth is None else [truth])
            findings, cautions = _share_findings(cleaned), cleaned.warnings
        if rows is None and margin is None:
            rows = min(_ROWS, int((corrected["given"].notna() & ~left_out).sum()))
        drawn = _plan(model, corrected, left_out, rows, margin, share, seed)
        again = "" if encoding is None else f" --encoding {shlex.quote(encoding)}"
        with writing(target):
            _write(cells, drawn, target, table.dialect_of(target))
        for sentence in findings:
            console.print(sentence, highlight=False, markup=False)
        for caution in cautions:
            warn(console, caution)
        console.print(drawn.sentence, highlight=False)
        console.print(
            f"Wrote {bold(target)}: fill in its column {TRUE} from the top, then run "
            f"nbmodels audit read {escape(shlex.quote(str(target)) + again)}",
            highlight=False,
        )
        console.print(f"Wrote {bold(target.with_suffix('.json'))}: the plan", highlight=False)


def _share_findings(cleaned: Cleaned) -> list[str]:
    """What the fit says of the share of wrong labels, with both ends."""
    from nbmodels.diagnostics.findings import SHARE_WRONG

    findings = cleaned.model.verdict().findings if cleaned.limits.estimated else ()
    return [f"{one.sentence}." for one in findings if one.name == SHARE_WRONG]


def _corrected(cleaned: Cleaned) -> pd.DataFrame:
    """Labels of the whole table, as ``corrected_labels`` has those of the rows of a fit."""
    import pandas as pd

    p_suggested = cleaned.added[cleaned.columns["p_suggested"]].to_numpy()
    return pd.DataFrame(
        {
            "given": cleaned.given,
            "suggested": cleaned.suggested,
            "p_wrong": cleaned.p_wrong,
            "p_suggested": p_suggested,
        }
    )


def _plan(
    model: Any,
    corrected: pd.DataFrame,
    left_out: np.ndarray,
    rows: int | None,
    margin: float | None,
    share: float | None,
    seed: int,
) -> AuditPlan:
    """A plan of rows that are numbered from 1."""
    import numpy as np

    from nbmodels.audit.plan import draw_plan
    from nbmodels.estimators.audits import expectations

    numbered = corrected.assign(row=np.arange(1, len(corrected) + 1))
    expected = expectations(model)
    return draw_plan(
        numbered,
        model.classes_,
        rows,
        margin=margin,
        share=share,
        left_out=left_out,
        seed=seed,
        **expected,
    )


def _write(cells: pd.DataFrame, drawn: AuditPlan, target: Path, dialect: Dialect) -> None:
    """Rows to check, ``cells`` of which are shown, and the plan beside them."""
    from nbmodels.cli.files import replacing, write_csv

    shown = cells.iloc[drawn.rows["position"]].copy()
    shown.insert(0, ROW, drawn.rows["row"].to_numpy())
    shown[TRUE] = ""
    plan_path = target.with_suffix(".json")
    with replacing(target) as temporary, replacing(plan_path) as beside:
        write_csv(shown, temporary, dialect)
        drawn.to_json(beside)


@audit_app.command()
def read(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Table that nbmodels audit plan wrote, filled in")
    ],
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The plan.", show_default="FILE's name with .json"),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="The last rows of the plan are not checked yet.")
    ] = False,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the flip rates, as .csv.")
    ] = None,
    encoding: options.Encoding = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Share of wrong labels, flip rates and accuracy of the suggestions, from checked rows.

    The intervals hold whether or not the model is right, if all rows of the plan were checked.
    """
    with input_errors({"checked": "FILE", "plan": "--plan", "level": "--level"}):
        from nbmodels.audit import AuditPlan
        from nbmodels.audit.result import audit
        from nbmodels.cli import files

        plan_path = file.with_suffix(".json") if plan is None else plan
        if plan is None and file.exists() and not plan_path.exists():
            raise InputError(
                f"FILE: there is no plan {plan_path} of {file}; give the table that nbmodels audit "
                "plan wrote, or name its plan with --plan"
            )
        if report is not None:
            inputs = {"the input": file, "the plan": plan_path}
            files.check_output(report, overwrite=overwrite, name="--report", others=inputs)
        table = files.read_table(file, encoding)
        drawn = AuditPlan.from_json(plan_path)
        result = audit(
            drawn, filled_in(table, drawn.classes.tolist()), level=level, partial=partial
        )

        from nbmodels.cli import report as reports
        from nbmodels.cli.wording import bold, screen

        console = screen()
        console.print(reports.audit_table(result))
        console.print(reports.audited_classes(result))
        console.print(result.sentence, highlight=False)
        if report is not None:
            with writing(report), files.replacing(report) as temporary:
                dialect = table.dialect_of(report)
                files.write_csv(result.noise, temporary, dialect, float_format="%.6f")
            console.print(f"Wrote {bold(report)}", highlight=False)
