"""Sentences of the library in the words of the command line, and names that are safe to print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from nbmodels.data.missing_markers import ADVICE
from nbmodels.diagnostics.checks import remedies
from nbmodels.fitting.cautions import BY_NONLINEAR, BY_PLAIN

#: The rows that a warning of near copies names.
_COPIES = re.compile(r"\(row (\d+) has (\d+): (\d+(?:, \d+)*)")
#: What the library advises, as it is asked for here; empty where nothing can be set. Longer
#: phrases before those that they hold.
_WORDS = {
    remedies.AUDIT: "an audit of some rows (nbmodels audit plan), which --checked then takes",
    remedies.TRUSTED: "some rows checked by hand (--checked)",
    remedies.SMALLER_WEIGHT: "a smaller --weight",
    remedies.CROSS_FIT: "--training cross_fit",
    remedies.SYMMETRIC_NOISE: "--noise symmetric",
    remedies.FULL_NOISE: "--noise full",
    remedies.FULL_COVARIANCE: f"{remedies.FULL_COVARIANCE} in Python",
    remedies.STUDENT: f"{remedies.STUDENT} in Python",
    remedies.NEIGHBOURS: f"{remedies.NEIGHBOURS} in Python",
    remedies.AUTO: "--estimator auto",
    **{
        one: f"{one} in Python"
        for one in (
            remedies.OTHER_EMISSION,
            remedies.PRESENCE,
            remedies.NO_RESTARTS,
            remedies.DEPENDENCE,
            remedies.OWN_POOLING,
            remedies.AUTO_POOLING,
        )
    },
    "Add trusted labels, or a stronger prior on the diagonal of the noise matrix": (
        "Check some rows by hand (--checked)"
    ),
    "add trusted labels, a stronger prior on the diagonal, or": (
        "check some rows by hand (--checked), or"
    ),
    ADVICE: "if it marks missing cells, leave them empty",
    # no command predicts new items
    " Taken into account: new items are predicted by that classifier, too.": "",
    BY_PLAIN: "",
    BY_NONLINEAR: "a nonlinear classifier of the given labels gives",
    "new items are predicted by the plain classifier, and ": "",
    ", and new items are predicted by the plain classifier of the labels and votes as they are": "",
    ". So new items are predicted by that classifier": "",
    "new items are still predicted by this model, learned from the corrected labels, whose": (
        "this model's"
    ),
    "new items are still predicted by this model, fitted jointly, under which": (
        "under this model, fitted jointly,"
    ),
    "leave copies out, or give them a sample_weight of 0": "leave copies out of the table",
    ", or features, beside which a table's estimator takes these votes (votes=)": "",
    ", or give class_prior": "",
    "(trusted=)": "(--checked)",
    "(audit_plan)": "(nbmodels audit plan)",
    "written by to_json": "written by nbmodels audit plan",
    "partial=True": "--partial",
    "ordered=True, which orders classes by their values": "--grades numbers",
    "groups=": "--groups",
    "worker_report() names them": "nbmodels clean lists them in its table of annotators",
    "take more draws and warm-up": "ask for more draws of each chain (--draws)",
    "take more draws, or thin": "ask for more draws of each chain (--draws)",
}


def worded(sentence: str) -> str:
    """A warning or an error of the library, with options in the place of parameters."""
    for ours, shown in _WORDS.items():
        sentence = sentence.replace(ours, shown)
    return sentence


def numbered(sentence: str, rows: Sequence[int]) -> str:
    """A warning of near copies, whose rows have the numbers of the table.

    Args:
        sentence: as the library says it, of rows of the fit, counted from 0.
        rows: number in the table of each row of the fit.
    """
    found = _COPIES.search(sentence)
    if not found:
        return sentence
    row, count, copies = found.groups()
    others = ", ".join(str(rows[int(one)]) for one in copies.split(", "))
    return _COPIES.sub(f"(row {rows[int(row)]} has {count}: {others}", sentence)


def screen(*, stderr: bool = False) -> Console:
    """A terminal that takes ``:smile:`` in the name of a file or a class for what it is."""
    return Console(stderr=stderr, emoji=False)


def bold(name: object) -> str:
    """A name in bold face, whatever brackets it holds."""
    return f"[bold]{escape(str(name))}[/]"
