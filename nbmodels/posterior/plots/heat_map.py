"""Heat map of a noise matrix with an interval in every cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from nbmodels.posterior.plots.shared import PlotFigure, names_margin, short_names

#: Largest number of classes at which every cell holds its number and its interval.
_EVERY_CELL = 6
#: Largest number of classes before cells and numbers shrink.
_ROOMY = 14
#: Beyond the smallest size, smaller numbers off the diagonal are not written out.
_MATTERS = 0.02


def noise_heat_map(
    mean: Any, low: Any, high: Any, names: Any, *, level: float = 0.9, title: str | None = None
) -> tuple[Figure, pd.DataFrame]:
    """Heat map of a noise matrix with its intervals, and the same as a table.

    With many classes only the diagonal is written out, and wrong labels that make up 2 % of a class
    or more. The table holds all cells.

    Args:
        mean: ``(K, K)`` ``[observed, true]`` means.
        low: lower ends of the intervals.
        high: upper ends of the intervals.
        names: ``(K,)`` names of the classes.
        level: probability of the intervals.
        title: above the figure; one that explains the axes by default.

    Returns:
        The figure, and a frame with one row a cell: ``true``, ``observed``, ``mean``, ``low``,
        ``high``.

    Examples:
        >>> import numpy as np
        >>> from nbmodels.posterior import plots
        >>> mean = np.array([[0.8, 0.1], [0.2, 0.9]])  # [observed, true]
        >>> figure, cells = plots.noise_heat_map(mean, mean - 0.05, mean + 0.05, ["ant", "bee"])
        >>> print(cells.round(2).to_string(index=False))
        true observed  mean  low  high
         ant      ant   0.8 0.75  0.85
         bee      ant   0.1 0.05  0.15
         ant      bee   0.2 0.15  0.25
         bee      bee   0.9 0.85  0.95
    """
    mean, low, high = (np.asarray(a, float) for a in (mean, low, high))
    names = [str(name) for name in names]
    k = len(names)
    for what, array in (("mean", mean), ("low", low), ("high", high)):
        if array.shape != (k, k):
            raise ValueError(f"{what}: expected shape {(k, k)}, got {array.shape}")
    cell = 0.95 if k <= _EVERY_CELL else 0.78 if k <= _ROOMY else 0.6
    short = short_names(names)
    margin = names_margin(short)
    side = max(k * cell, 2.6)
    figure = PlotFigure(figsize=(side + margin + 1.7, side + margin + 0.9), layout="constrained")
    axes = figure.subplots()
    # wrong labels are rare: a root brings small shares out
    norm = PowerNorm(0.5, vmin=0, vmax=1)
    edges = np.arange(k + 1) - 0.5
    look: dict[str, Any] = {"edgecolors": "white", "linewidth": 1.5}
    image = axes.pcolormesh(edges, edges, mean, cmap="Blues", norm=norm, **look)
    axes.set(aspect="equal", ylim=(k - 0.5, -0.5))
    slanted = max(map(len, short)) > 4
    lean: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(k), short, **(lean if slanted else {}))
    axes.set_yticks(range(k), short)
    axes.tick_params(length=0)
    axes.set_xlabel("true class")
    axes.set_ylabel("given label")
    heading = title or f"P(given label | true class), with {level:.0%} intervals"
    if k > _EVERY_CELL:
        heading += f"\noff the diagonal, shares of {_MATTERS:.0%} or more are written out"
    axes.set_title(heading, fontsize=11, pad=10)
    axes.spines[:].set_visible(False)
    for i, j in np.ndindex(k, k):
        if k > _EVERY_CELL and i != j and mean[i, j] < _MATTERS:
            continue
        dark = "white" if norm(mean[i, j]) > 0.6 else "black"
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": dark}
        interval = f"{_number(low[i, j])} to {_number(high[i, j])}"
        axes.text(j, i - 0.12, _number(mean[i, j]), fontsize=10 if k <= _ROOMY else 8, **style)
        axes.text(j, i + 0.22, interval, fontsize=7 if k <= _ROOMY else 5.5, **style)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, ticks=[0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1])
    bar.ax.set_yticklabels(["0", "0.01", "0.05", "0.1", "0.2", "0.4", "0.7", "1"], fontsize=8)
    # matplotlib's types take the outline for a method
    bar.outline.set_visible(False)  # type: ignore[operator]
    observed, true = np.divmod(np.arange(k * k), k)
    frame = pd.DataFrame(
        {
            "true": np.asarray(names, object)[true],
            "observed": np.asarray(names, object)[observed],
            "mean": mean.ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
        }
    )
    return figure, frame


def _number(value: float) -> str:
    """Two digits after the point, without the zero before it."""
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text
