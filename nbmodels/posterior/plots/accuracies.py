"""Interval plot of annotators' accuracies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbmodels.errors import DataError
from nbmodels.posterior.plots.shared import (
    POSTERIOR,
    check_square,
    interval_bars,
    interval_summary,
    short_names,
    single_axes,
    stacked_draws,
    variables,
    which_intervals,
)

if TYPE_CHECKING:
    from xarray import DataArray, DataTree

#: Annotators that are shown by default.
_ROWS = 25

#: How draws of annotators' noise matrices are called, after the name of their votes.
_MATRICES = "_transitions"


def annotators(
    tree: DataTree, *, name: str | None = None, level: float = 0.9, most: int = _ROWS
) -> tuple[Figure, pd.DataFrame]:
    """Share of right votes of each annotator, with intervals, the best above.

    It is the share among items of the true classes' shares; abstentions are no votes, and items on
    which all votes are guesses are left out, see :func:`annotators_reported`.

    Args:
        tree: posterior draws.
        name: of the votes; by default those that the model has, the first of several.
        level: probability of the thin lines.
        most: annotators shown, those with the smallest shares; the frame has all.

    Raises:
        DataError: the tree has no such votes, or annotators' matrices have sub-types for columns.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from nbmodels import DawidSkene
        >>> from nbmodels.posterior import plots
        >>> task, worker = np.divmod(np.arange(300), 3)
        >>> right = np.random.default_rng(0).random(300) < np.array([0.9, 0.8, 0.6])[worker]
        >>> votes = pd.DataFrame({"task": task, "worker": np.array(["ann", "bob", "cat"])[worker]})
        >>> votes["label"] = np.where(right, task % 2, 1 - task % 2)
        >>> tree = DawidSkene(pooling=False).fit(votes).posterior("vb", draws=200, chains=2)
        >>> figure, shares = plots.annotators(tree)
        >>> shares["annotator"].tolist()
        ['ann', 'bob', 'cat']
    """
    found = [v.removesuffix(_MATRICES) for v in variables(tree) if v.endswith(_MATRICES)]
    there = [v for v in found if f"{v}_annotator" in tree["posterior"].dims]
    if not there:
        raise DataError("tree: there are no votes of several annotators in its group 'posterior'")
    if name not in (None, *there):
        raise DataError(f"name: expected one of {', '.join(map(repr, there))}")
    name = name or there[0]
    frame = interval_summary(_shares_right(tree, name), level)
    frame.insert(0, "annotator", tree["posterior"][f"{name}_annotator"].to_numpy().astype(str))
    frame = frame.sort_values("mean", ascending=False, kind="stable", ignore_index=True)
    return _figure(frame, level, most), frame


def annotators_reported(
    report: pd.DataFrame, *, level: float = 0.9, most: int = _ROWS
) -> tuple[Figure, pd.DataFrame]:
    """Accuracies of the annotators, as :meth:`~nbmodels.DawidSkene.worker_report` gives them.

    They count all votes: those on items that are guessed, and those that are copies.

    Args:
        report: frame with ``worker``, ``accuracy``, ``low`` and ``high``.
        level: probability of its intervals.
        most: annotators shown, those with the smallest shares; the frame has all.

    Examples:
        >>> import pandas as pd
        >>> from nbmodels.posterior import plots
        >>> report = pd.DataFrame(
        ...     {"worker": ["ann", "bob"], "accuracy": [0.6, 0.9], "low": [0.5, 0.8]}
        ... ).assign(high=[0.7, 0.95])
        >>> figure, shares = plots.annotators_reported(report)
        >>> shares["annotator"].tolist()
        ['bob', 'ann']
    """
    named = report.rename(columns={"worker": "annotator", "accuracy": "mean"})
    frame = named[["annotator", "mean", "low", "high"]].astype({"annotator": str})
    frame = frame.sort_values("mean", ascending=False, kind="stable", ignore_index=True)
    return _figure(frame, level, most), frame


def _figure(frame: pd.DataFrame, level: float, most: int) -> Figure:
    """Of a frame with ``annotator``, ``mean`` and the ends of intervals, the best first."""
    shown = frame.tail(most)
    short = short_names(shown["annotator"].tolist())
    figure, axes = single_axes(len(shown), short)
    y = np.arange(len(shown))
    interval_bars(axes, y, shown, POSTERIOR)
    axes.set_yticks(y, short)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"share of right votes, {which_intervals(shown, level)}")
    more = f" (the {most} lowest of {len(frame)})" if len(frame) > most else ""
    axes.set_title(f"Annotators{more}", fontsize=11, loc="left")
    return figure


def _shares_right(tree: DataTree, name: str) -> DataArray:
    """Draws of each annotator's share of right votes."""
    matrices = stacked_draws(tree, name + _MATRICES)
    true, observed = (matrices[d].to_numpy() for d in ("true_class", "observed_class"))
    votes = matrices.isel(observed_class=np.isin(observed, true))
    check_square(len(true), votes.sizes["observed_class"])
    # a cross-fitted model has the shares among the items in the place of a prior
    learned = "class_prior" in variables(tree)
    shares = stacked_draws(tree, "class_prior" if learned else "class_shares")
    right = votes.where(votes["true_class"] == votes["observed_class"], 0.0)
    right, cast = ((one * shares).sum(("true_class", "observed_class")) for one in (right, votes))
    return (right / cast).transpose(f"{name}_annotator", "sample")
