"""Tables for the terminal, by rich: class names, intervals and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nbmodels.audit import AuditResult
from nbmodels.cli.clean import Cleaned, Scores
from nbmodels.cli.draws import LEVEL, Noise
from nbmodels.cli.votes import CleanedVotes
from nbmodels.cli.wording import bold
from nbmodels.data.user_table import Choice
from nbmodels.diagnostics.findings import INDEPENDENT
from nbmodels.diagnostics.share_wrong import NOT_ESTIMATED
from nbmodels.errors import counted

#: Up to so many classes the noise matrix is shown as a matrix; beyond, class by class.
_MATRIX = 4
#: Wrong labels with a smaller share of a class are not named in the list of classes.
_NAMED = 0.02
#: Longer names lose their middle: those of one beginning often differ at the end.
_LONGEST, _END = 24, 9
#: Probability from which on labels are surely noisy, and a matrix needs no word about it.
_SURELY = 0.9
#: Under a table of annotators who are taken to be alike.
_ALIKE = (
    "All annotators are taken to be alike, since the votes do not show how often each of them is "
    'right: "right" is about the same for all, and says nothing of one beside another.'
)


def noise_table(noise: Noise) -> RenderableType:
    """The noise matrix: a matrix for few classes, a list for many, a line for a single rate."""
    if noise.symmetric:
        return _one_rate(noise)
    return _matrix(noise) if len(noise.names) <= _MATRIX else _by_class(noise)


def _titled(title: str, **options: Any) -> Table:
    return Table(title=title, title_style="bold", title_justify="left", **options)


def _matrix(noise: Noise) -> Table:
    table = _titled(f"P(given label | true class), {LEVEL:.0%} intervals")
    table.add_column("given ↓  true →", style="bold", no_wrap=True)
    for name in noise.names:
        table.add_column(_short(name), justify="center")
    for i, name in enumerate(noise.names):
        cells = [
            f"{bold(_number(noise.mean[i, j])) if i == j else _number(noise.mean[i, j])}\n"
            f"[dim]{_interval(noise.low[i, j], noise.high[i, j])}[/]"
            for j in range(len(noise.names))
        ]
        table.add_row(_short(name), *cells)
    return table


def _by_class(noise: Noise) -> Table:
    table = _titled(f"How each true class is labelled, {LEVEL:.0%} intervals")
    table.add_column("true class", style="bold", no_wrap=True)
    table.add_column("right", justify="right")
    table.add_column("interval", style="dim", no_wrap=True)
    table.add_column("mostly mislabelled as (share, interval)")
    for k, name in enumerate(noise.names):
        others = [int(j) for j in np.argsort(-noise.mean[:, k]) if j != k]
        named = [j for j in others if noise.mean[j, k] >= _NAMED][:3]
        listed = ", ".join(
            f"{_short(noise.names[j])} {_number(noise.mean[j, k])} "
            f"[dim]{_interval(noise.low[j, k], noise.high[j, k])}[/]"
            for j in named
        )
        table.add_row(
            _short(name),
            _number(noise.mean[k, k]),
            _interval(noise.low[k, k], noise.high[k, k]),
            listed or f"[dim]nothing above {_NAMED}[/]",
        )
    return table


def _one_rate(noise: Noise) -> RenderableType:
    wrong, low, high = 1 - noise.mean[0, 0], 1 - noise.high[0, 0], 1 - noise.low[0, 0]
    others = len(noise.names) - 1
    table = _titled(f"Noise matrix: one error rate for all {others + 1} classes")
    table.add_column("a label is", style="bold")
    table.add_column("probability", justify="right")
    table.add_column(f"{LEVEL:.0%} interval", style="dim")
    table.add_row("right", f"{1 - wrong:.4f}", f"{1 - high:.4f} to {1 - low:.4f}")
    table.add_row("wrong", f"{wrong:.4f}", f"{low:.4f} to {high:.4f}")
    if others > 1:
        table.add_row(
            "wrong, as each other class",
            f"{wrong / others:.4f}",
            f"{low / others:.4f} to {high / others:.4f}",
        )
    return table


def recovered_table(planted: Any, noise: Noise) -> Group:
    """Planted against recovered noise: the diagonal, all larger flips, a count of the rest."""
    planted = np.asarray(planted, float)
    k = len(planted)
    floor = 2 * np.median(planted)
    table = _titled(f"Planted against recovered noise, {LEVEL:.0%} intervals")
    for name in ("true", "given"):
        table.add_column(name, style="bold", justify="center")
    for name in ("planted", "recovered"):
        table.add_column(name, justify="right")
    table.add_column("interval", style="dim")
    table.add_column("inside", justify="center")
    inside = (noise.low <= planted) & (planted <= noise.high)
    shown = hits = 0
    for j in range(k):
        rows = [
            j,
            *(int(i) for i in np.argsort(-planted[:, j]) if i != j and planted[i, j] > floor),
        ]
        shown += len(rows)
        hits += int(inside[rows, j].sum())
        for i in rows:
            table.add_row(
                _short(noise.names[j]),
                _short(noise.names[i]) if i != j else f"[green]{_short(noise.names[i])}[/]",
                _number(planted[i, j]),
                _number(noise.mean[i, j]),
                _interval(noise.low[i, j], noise.high[i, j]),
                "[green]yes[/]" if inside[i, j] else "[yellow]no[/]",
                end_section=i == rows[-1],
            )
    gap = np.abs(noise.mean - planted)
    line = (
        f"{hits} of these {shown} planted rates lie inside their {LEVEL:.0%} intervals; over all "
        f"{k * k} entries the mean difference is {gap.mean():.3f}, the largest {gap.max():.3f}"
    )
    return Group(table, Text(line))


def choice_table(choice: Choice) -> Group:
    """The model: families of the columns, and settings."""
    kinds: dict[str, list[str]] = {}
    for column, family in choice.families.items():
        kinds.setdefault(family, []).append(column)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    selected = choice.settings.get("emission")
    of = "" if selected is None else f": {selected}, by the likelihood of held-out labels"
    table.add_row("model", choice.estimator + of)
    kind = {
        "bernoulli": "yes or no",
        "categorical": "categories",
        "gaussian": "numbers",
        "words": "text (TF-IDF weights of words)",
    }
    for family, columns in kinds.items():
        table.add_row(kind.get(family, family), _listed(columns))
    form = {
        "full": "full (a rate for every pair of classes)",
        "symmetric": "symmetric (one rate)",
        "pooled": "pooled (a rate for every pair of classes, shrunk towards a common one)",
    }
    settings = choice.settings
    table.add_row("noise", form[settings["noise"]])
    if "rounds" in settings:
        size: dict[Any, str] = {
            0.5: "; divided by the root of an item's size",
            1: "; divided by an item's size",
        }
        rounds = settings["rounds"]
        learned = (
            "feature weight learned from held-out labels; "
            f"{rounds} self-training round{'' if rounds == 1 else 's'}"
        )
        table.add_row("features", learned + size.get(settings.get("size_power"), ""))
    else:
        table.add_row("features", f"in a joint model, weight {settings['weight']:g}")
    if "scores" in settings:
        table.add_row("scores", f"of a {settings['scores']}, by which labels are corrected")
    if "alpha" in settings:
        table.add_row("smoothing", f"alpha {settings['alpha']:g}")
    reasons: dict[str, list[str]] = {}
    for column, reason in choice.left_out.items():
        reasons.setdefault(reason, []).append(column)
    for reason, columns in reasons.items():
        table.add_row("left out", f"{_listed(columns)} [dim]({escape(reason)})[/]")
    return Group(Text("Model and settings", style="bold"), Padding(table, (0, 0, 0, 2)))


def doubtful_table(
    rows: Any,
    given: Any,
    suggested: Any,
    p_wrong: Any,
    rank: Any,
    *,
    count: int = 8,
    truth: Any = None,
    of: str = "row",
    voted: str = "given",
) -> Table:
    """The labels to check first.

    Args:
        rows: names of the rows.
        given: given labels.
        suggested: suggested labels.
        p_wrong: probability that the given label is wrong; NaN where there is none.
        rank: 1 for the label to check first; NaN where there is none.
        count: how many to show.
        truth: true labels, where known.
        of: what ``rows`` are.
        voted: what ``given`` are.
    """
    order = np.argsort(np.asarray(rank, float), kind="stable")[:count]
    table = _titled("Labels to check first (by check_rank)")
    table.add_column(of, justify="right")
    for name in (voted, "suggested", *(() if truth is None else ("true",))):
        table.add_column(name)
    table.add_column(f"P({voted} is wrong)", justify="right")
    for i in order:
        extra = [] if truth is None else [_short(truth[i])]
        table.add_row(
            _short(rows[i]), _short(given[i]), _short(suggested[i]), *extra, f"{p_wrong[i]:.4f}"
        )
    return table


def changes_table(given: Any, suggested: Any, *, count: int = 8) -> Table | Text:
    """Which labels are changed into which, the most frequent first."""
    frame = pd.DataFrame({"given": given, "suggested": suggested})
    frame = frame[frame["given"].notna() & (frame["given"] != frame["suggested"])]
    if not len(frame):
        return Text("No label is changed.")
    counts = frame.value_counts()
    table = _titled(f"Changed labels: {len(frame)} of {len(given)}, most frequent first")
    table.add_column("given")
    table.add_column("suggested")
    table.add_column("rows", justify="right")
    pairs = [(str(a), str(b), int(n)) for a, b, n in counts.head(count).reset_index().to_numpy()]
    for a, b, n in pairs:
        table.add_row(_short(a), _short(b), str(n))
    rest = len(frame) - sum(n for _, _, n in pairs)
    if rest:
        table.add_row(f"[dim]{len(counts) - len(pairs)} other pairs[/]", "", f"[dim]{rest}[/]")
    return table


def scores_table(scores: Scores, title: str = "Against the truth") -> Table:
    """Accuracy before and after, and how well errors are found."""
    if scores.checked:
        title = f"{title}, {scores.checked} checked by hand left out"
    table = _titled(title, show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("labels right before", f"{scores.before:.4f}")
    table.add_row("labels right after", f"[bold]{scores.after:.4f}[/]")
    table.add_row("wrong labels", f"{scores.errors} of {scores.rows}")
    table.add_row("of these found", f"{scores.found} ({_percent(scores.recall)})")
    table.add_row("labels changed", f"{scores.changed}")
    table.add_row("of these wrong (precision)", _percent(scores.precision))
    table.add_row("of these changed to the true class", f"{scores.mended}")
    auc = "-" if scores.auc is None else f"{scores.auc:.4f}"
    table.add_row("AUC of wrong labels, by rank", auc)
    return table


def audit_table(result: AuditResult) -> Table:
    """Shares that an audit estimates, with intervals."""
    table = _titled(f"{len(result.checked)} checked rows, {result.level:.0%} intervals")
    table.add_column("share of the labels", style="bold")
    table.add_column("estimate", justify="right")
    table.add_column("interval", style="dim")
    for name, (value, low, high) in zip(
        result.table().index, result.table().to_numpy(), strict=True
    ):
        table.add_row(str(name), _number(value), _interval(low, high))
    return table


def audited_classes(result: AuditResult) -> Table:
    """How each true class is labelled, by the checked rows; classes without any are left out."""
    table = _titled(f"How each true class is labelled, {result.level:.0%} intervals")
    table.add_column("true class", style="bold", no_wrap=True)
    table.add_column("checked", justify="right")
    table.add_column("right", justify="right")
    table.add_column("interval", style="dim", no_wrap=True)
    table.add_column("mislabelled as (share, interval)")
    for name, cells in result.noise[result.noise["checked"] > 0].groupby("true", sort=False):
        rates = {c["given"]: c for c in cells.to_dict("records")}
        own = rates.pop(name)
        listed = ", ".join(
            f"{_short(c['given'])} {_number(c['rate'])} [dim]{_interval(c['low'], c['high'])}[/]"
            for c in sorted(rates.values(), key=lambda c: -c["rate"])
            if c["seen"]
        )
        right = _number(own["rate"]), _interval(own["low"], own["high"])
        table.add_row(_short(name), str(own["checked"]), *right, listed or "[dim]none seen[/]")
    return table


def show(console: Console, cleaned: Cleaned, first_row: int = 0) -> None:
    """All of a cleaned table.

    Args:
        console: where to.
        cleaned: from :func:`nbmodels.cli.clean.clean`.
        first_row: number that is shown for the first row.
    """
    limits = cleaned.limits
    if cleaned.ends is not None:
        console.print(Text(f"{cleaned.ends.sentence}.", style="bold"))
        console.print()
    console.print(choice_table(cleaned.choice))
    for note in cleaned.notes:
        console.print(f"  [dim]{escape(note)}[/]", highlight=False)
    console.print()
    if cleaned.noise is not None:
        console.print(noise_table(cleaned.noise))
        if limits.estimated and cleaned.noisy < _SURELY:
            console.print(
                "This matrix is of labels that are noisy. Held-out labels give that a probability "
                f"of {cleaned.noisy:.0%}; by the rest, all given labels are right.",
                highlight=False,
            )
        console.print()
    console.print(changes_table(cleaned.given, cleaned.suggested))
    console.print()
    rows = np.arange(first_row, first_row + len(cleaned.given))
    console.print(
        doubtful_table(rows, cleaned.given, cleaned.suggested, cleaned.p_wrong, cleaned.rank)
    )
    console.print()
    if cleaned.scores is not None:
        console.print(scores_table(cleaned.scores))
        console.print()
    if cleaned.held is not None:
        console.print(_held(cleaned.scores, *cleaned.held), highlight=False)
    value = f"{cleaned.expected_wrong:.1%}" if limits.estimated else NOT_ESTIMATED
    other = np.nan if cleaned.ends is None else cleaned.ends.separable.share
    words = limits.beside(cleaned.expected_wrong, other)
    sign = "" if words == INDEPENDENT else ","
    console.print(f"Expected share of wrong labels: {bold(value)}{sign} {words}", highlight=False)
    # where the features say nothing, so would both opinions
    if cleaned.second is not None and limits.estimated:
        console.print(Text.assemble(("Second opinion: ", "bold"), cleaned.second.sentence))
    for caution in cleaned.warnings:
        warn(console, caution)


def _held(scores: Scores | None, share: bool, classes: Any) -> str:
    """Whether both ends hold the true shares, and how many wrong labels were found."""
    known = np.isfinite(classes)
    true, found = "", ""
    if scores is not None:
        true = f" ({1 - scores.before:.1%})"
        found = f"; of {counted(scores.errors, 'wrong label')} {scores.found} were found"
    return (
        f"The true share of wrong labels{true} lies {'within' if share else 'outside'} the range "
        f"of both ends with their intervals; of {known.sum()} classes' shares of right labels "
        f"{int(classes[known].sum())} lie within theirs{found}"
    )


def workers_table(workers: pd.DataFrame, count: int = 20) -> Table:
    """How far each annotator can be trusted, those with the most votes first."""
    more = f", {count} of {len(workers)}" if len(workers) > count else ""
    scale = "spammer score: 0 for votes that always name the class, 1 for unrelated ones"
    options = {"caption": scale, "caption_justify": "left"}
    table = _titled(f"Annotators{more}, {LEVEL:.0%} intervals", **options)
    table.add_column("annotator", style="bold", no_wrap=True)
    for name in ("votes", "right", "interval", "spammer score"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("agrees too often with")
    for one in workers.head(count).to_dict("records"):
        table.add_row(
            _short(one["worker"]),
            str(one["votes"]),
            _number(one["accuracy"]),
            _interval(one["low"], one["high"]),
            f"{one['spammer_score']:.2f}",
            _alike(one),
        )
    return table


def _alike(worker: Mapping[Any, Any]) -> str:
    """With whom an annotator agrees too often, first of all whom they copy from."""
    source = worker["copies_from"]
    others = [_short(name) for name in worker["copies"] if source is None or name != source]
    if source is not None:
        others.insert(0, f"{_short(source)} (copied in {worker['copied_share']:.0%} of the votes)")
    return ", ".join(others)


def show_votes(console: Console, cleaned: CleanedVotes) -> None:
    """The annotators of a cleaned table of votes, and the items to check first."""
    items = cleaned.items
    console.print(
        f"{counted(cleaned.n_votes, 'vote')} of {counted(len(cleaned.workers), 'annotator')} on "
        f"{counted(len(items), 'item')}",
        highlight=False,
    )
    for note in cleaned.notes:
        console.print(f"  [dim]{escape(note)}[/]", highlight=False)
    for part in (
        workers_table(cleaned.workers),
        *([Text(_ALIKE)] if cleaned.alike else []),
        changes_table(cleaned.majority, cleaned.suggested),
        doubtful_table(
            items.iloc[:, 0].to_numpy(),
            cleaned.majority,
            cleaned.suggested,
            cleaned.p_wrong,
            cleaned.rank,
            of="item",
            voted="majority",
        ),
    ):
        console.print()
        console.print(part)
    console.print()
    if cleaned.scores is not None:
        console.print(scores_table(cleaned.scores, "Majorities against the truth"))
        console.print()
    share = f"{cleaned.p_wrong.mean():.1%}"
    console.print(f"Expected share of wrong majorities: {bold(share)}", highlight=False)
    show_verdict(console, cleaned)


def show_verdict(console: Console, cleaned: CleanedVotes) -> None:
    """Whether a fit to votes passed its checks, once, and why its results may be unreliable."""
    if cleaned.passed:
        console.print(Text(cleaned.verdict))
    for caution in (*(() if cleaned.passed else (cleaned.verdict,)), *cleaned.warnings):
        warn(console, caution)


def warn(console: Console, sentence: str) -> None:
    """Why results may be unreliable."""
    console.print(Text.assemble(("Warning: ", "bold yellow"), sentence))


def _number(value: float) -> str:
    return f"{value:.3f}"


def _interval(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.1%}"


def _short(name: Any) -> str:
    text = "-" if name is None else str(name)
    begin = text[: _LONGEST - _END - 1].rstrip()
    return escape(text if len(text) <= _LONGEST else f"{begin}…{text[-_END:].lstrip()}")


def _listed(columns: Sequence[str], most: int = 12) -> str:
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return escape(", ".join(columns[:most])) + more
