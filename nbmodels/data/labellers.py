"""Columns that name who gave each label: they say more of its errors than of its class."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from nbmodels.data.long_format import columns_named
from nbmodels.errors import Caution, NbmodelsWarning

#: Names of such columns that features hardly have, beside ``worker``.
_NAMES = {
    "worker": [
        ("annotator", "rater", "labeler", "labeller", "coder"),
        ("annotatedby", "labeledby", "labelledby"),
    ]
}

#: Standard errors above the share of all labels from which on that of a labeller is reported, at
#: most so many of them.
_SURELY, _MOST = 4.0, 3


def labeller_columns(frame: pd.DataFrame) -> list[str]:
    """Columns of a table with a row an item that seem to name who labelled it."""
    found = columns_named(frame, "worker", _NAMES)
    return [name for name in found if 1 < frame[name].nunique() <= len(frame) / 2]


def labellers_among(names: Iterable[str]) -> tuple[Caution, ...]:
    """A warning of such columns among the features.

    Where labellers differ, a class that looks as one of them labels it has no wrong labels.

    Args:
        names: of the columns of features.
    """
    found = columns_named(pd.DataFrame(columns=list(names)), "worker", _NAMES)
    message = (
        "X: column {!r} seems to name who gave each label; as a feature it explains their errors, "
        "so that fewer labels look wrong: leave it out, or give it as groups="
    )
    return tuple(Caution(NbmodelsWarning, message.format(name)) for name in found)


def unlike_labellers(p_wrong: np.ndarray, names: np.ndarray, column: str) -> str:
    """A sentence about those of whose labels surely more are expected to be wrong; empty if none.

    Args:
        p_wrong: ``(N,)`` probability that each label is wrong, NaN where there is none.
        names: ``(N,)`` who gave it, or another group of rows; null where unknown.
        column: what the names are of.
    """
    table = pd.DataFrame({"p": p_wrong, "name": names}).dropna()
    mean = float(table["p"].mean()) if len(table) else 0.0
    of_each = table.groupby("name", sort=False)["p"].agg(["mean", "size"])
    error = np.sqrt(max(mean * (1 - mean), 1e-9) / of_each["size"])
    unlike = of_each[of_each["mean"] - mean > _SURELY * error].sort_values("mean", ascending=False)
    if unlike.empty:
        return ""
    shown = ", ".join(f"{name} {share:.0%}" for name, share in unlike["mean"].head(_MOST).items())
    more = f" and {len(unlike) - _MOST} more" if len(unlike) > _MOST else ""
    return (
        f"expected shares of wrong labels that are surely above that of all ({mean:.0%}), by "
        f"{column!r}: {shown}{more}"
    )
