"""Summaries of draws, and the axes and bars that the plots share."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbmodels.errors import DataError

if TYPE_CHECKING:
    from xarray import DataArray, DataTree

#: Colours of the prior, of the posterior, and of the given labels.
PRIOR, POSTERIOR, LABELS = "0.6", "C0", "C1"


class PlotFigure(Figure):
    """A figure that a notebook shows, although pyplot does not know it."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png")
        return out.getvalue()


def stacked_draws(tree: DataTree, name: str, group: str = "posterior") -> DataArray:
    """Draws of all chains along one dimension ``sample``.

    Raises:
        DataError: the tree has no such variable in the group.
    """
    if group not in tree.children or name not in tree[group].data_vars:
        raise DataError(f"tree: there is no {name!r} in a group {group!r}")
    return tree[group][name].stack(sample=("chain", "draw"))


def interval_summary(draws: DataArray, level: float) -> pd.DataFrame:
    """Mean, ends of the central half and of the interval of ``level``, a row a cell."""
    tail = (1 - level) / 2
    ends = draws.quantile([tail, 0.25, 0.75, 1 - tail], "sample").to_numpy()
    named = ["low", "lower_quartile", "upper_quartile", "high"]
    columns = {"mean": draws.mean("sample").to_numpy(), **dict(zip(named, ends, strict=True))}
    return pd.DataFrame({name: np.ravel(x) for name, x in columns.items()})


def matrix_cells(tree: DataTree, name: str, level: float) -> pd.DataFrame:
    """Summary of a noise matrix, with the names of the classes."""
    draws = stacked_draws(tree, name).transpose("observed_class", "true_class", "sample")
    observed, true = (draws[d].to_numpy().astype(str) for d in ("observed_class", "true_class"))
    index = pd.MultiIndex.from_product([observed, true], names=["observed", "true"])
    frame = index.to_frame(index=False)[["true", "observed"]]
    return pd.concat([frame, interval_summary(draws, level)], axis=1)


def single_axes(rows: float, width: float = 6.4) -> tuple[Figure, Any]:
    """A figure with one panel that is high enough for some rows."""
    figure = PlotFigure(figsize=(width, 1.1 + 0.27 * max(rows, 4)), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def interval_bars(
    axes: Any, y: Any, frame: pd.DataFrame, color: str, label: str | None = None
) -> None:
    """Thin lines for the intervals, thick ones for the central halves, dots for the means."""
    axes.hlines(y, frame["low"], frame["high"], color=color, linewidth=1.2)
    axes.hlines(y, frame["lower_quartile"], frame["upper_quartile"], color=color, linewidth=3.5)
    axes.plot(
        frame["mean"],
        y,
        "o",
        color=color,
        markersize=5,
        markeredgecolor="w",
        label=label,
        clip_on=False,
    )
