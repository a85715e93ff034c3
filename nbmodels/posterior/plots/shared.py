"""Summaries of draws, and the axes and bars that the plots share."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbmodels.errors import DataError

if TYPE_CHECKING:
    from xarray import DataArray, DataTree

#: Colours of the prior, of the posterior, and of the given labels.
PRIOR, POSTERIOR, LABELS = "0.6", "C0", "C1"

#: Class names of more characters are shortened in figures.
LONGEST = 26

#: What noise matrices of votes are called, after the name of the votes.
OF_VOTES = "_noise_matrix"

#: Width of a character of a class name in inches, and the characters that a figure has room for.
_CHARACTER, _ROOM = 0.085, 12


class PlotFigure(Figure):
    """A figure that a notebook shows, although pyplot does not know it."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png")
        return out.getvalue()


def variables(tree: DataTree, group: str = "posterior") -> list[str]:
    """Names of the variables in a group; none where there is no such group.

    Raises:
        DataError: no tree of draws.
    """
    if not hasattr(tree, "children"):
        raise DataError(
            f"tree: expected the DataTree that posterior() of a fitted model returns, got "
            f"{type(tree).__name__}"
        )
    return [str(name) for name in tree[group].data_vars] if group in tree.children else []


def stacked_draws(tree: DataTree, name: str, group: str = "posterior") -> DataArray:
    """Draws of all chains along one dimension ``sample``.

    Raises:
        DataError: the tree has no such variable in the group.
    """
    there = variables(tree, group)
    if name not in there:
        named = f"; it has {', '.join(map(repr, there))}" if there else ""
        raise DataError(f"tree: there is no {name!r} in a group {group!r}{named}")
    return tree[group][name].stack(sample=("chain", "draw"))


def noise_matrix_name(tree: DataTree, name: str | None = None) -> str:
    """Name of the noise matrix to show: as given, that of the labels, or the only other one.

    Raises:
        DataError: no name is given, and there is no noise matrix, or several others.
    """
    there = variables(tree)
    if name is not None or "noise_matrix" in there:
        return name or "noise_matrix"
    found = [n for n in there if n.endswith(OF_VOTES)]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"name: expected one of {', '.join(map(repr, found))}")
    named = f"; it has {', '.join(map(repr, there))}" if there else ""
    raise DataError(f"tree: there is no noise matrix in its group 'posterior'{named}")


def check_square(n_true: int, n_observed: int) -> None:
    """Raises: DataError: a noise matrix has columns of sub-types, which have no label of theirs."""
    if n_true != n_observed:
        raise DataError(
            f"tree: the noise matrix has {n_true} columns and {n_observed} rows, of sub-types and "
            "of classes; flip_rates and agreement show such a matrix"
        )


def interval_summary(draws: DataArray, level: float) -> pd.DataFrame:
    """Mean, ends of the central half and of the interval of ``level``, a row a cell.

    Raises:
        DataError: ``level`` is no probability, such as a percentage.
    """
    if not 0 < level < 1:
        raise DataError(f"level: expected a probability between 0 and 1, got {level}")
    tail = (1 - level) / 2
    ends = draws.quantile([tail, 0.25, 0.75, 1 - tail], "sample").to_numpy()
    named = ["low", "lower_quartile", "upper_quartile", "high"]
    columns = {"mean": draws.mean("sample").to_numpy(), **dict(zip(named, ends, strict=True))}
    return pd.DataFrame({name: np.ravel(x) for name, x in columns.items()})


def matrix_cells(tree: DataTree, name: str | None, level: float) -> pd.DataFrame:
    """Summary of a noise matrix, with the names of the classes."""
    draws = stacked_draws(tree, noise_matrix_name(tree, name)).transpose(
        "observed_class", "true_class", "sample"
    )
    observed, true = (draws[d].to_numpy().astype(str) for d in ("observed_class", "true_class"))
    index = pd.MultiIndex.from_product([observed, true], names=["observed", "true"])
    frame = index.to_frame(index=False)[["true", "observed"]]
    return pd.concat([frame, interval_summary(draws, level)], axis=1)


def short_names(names: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Names that fit into a figure: cut at the end, or else in the middle.

    Names that differ stay different: where neither cut keeps them so, all are cut less. A dollar
    sign is escaped, between two of which Matplotlib would set a formula.

    Examples:
        >>> from nbmodels.posterior.plots.shared import short_names
        >>> short_names(["a rather long name", "bee"], 10)
        ['a rather …', 'bee']
        >>> short_names(["Home > Kitchen > Pans", "Home > Kitchen > Pots"], 10)
        ['Home …Pans', 'Home …Pots']
    """
    most = max(map(len, names), default=0)
    for length in range(longest, most):
        for tail in (0, (length - 1) // 2):
            cut = [_cut(name, length, tail) for name in names]
            if len(set(cut)) == len(set(names)):
                return list(map(_literal, cut))
    return list(map(_literal, names))


def _literal(name: str) -> str:
    """A name as Matplotlib shows it as it stands."""
    return name.replace("$", r"\$")


def _cut(name: str, length: int, tail: int) -> str:
    """A name of some characters at the most, the last ones kept."""
    if len(name) <= length:
        return name
    return name[: length - 1 - tail] + "…" + name[len(name) - tail :]


def names_margin(names: Sequence[str]) -> float:
    """Inches that the longest of some names takes."""
    return _CHARACTER * max(map(len, names), default=0)


def single_axes(rows: float, names: Sequence[str] = (), width: float = 6.4) -> tuple[Figure, Any]:
    """A figure with one panel that is high enough for some rows, and wide enough for their names.

    Args:
        rows: number of rows.
        names: of the rows, written to the left of the panel.
        width: in inches, with short names; longer ones take no room of the panel.
    """
    width += max(names_margin(names) - _CHARACTER * _ROOM, 0)
    figure = PlotFigure(figsize=(width, 1.1 + 0.27 * max(rows, 4)), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def interval_bars(
    axes: Any, y: Any, frame: pd.DataFrame, color: str, label: str | None = None
) -> None:
    """Thin lines for the intervals, thick ones for central halves if any, dots for the means."""
    axes.hlines(y, frame["low"], frame["high"], color=color, linewidth=1.2)
    if "lower_quartile" in frame:
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


def which_intervals(frame: pd.DataFrame, level: float) -> str:
    """What :func:`interval_bars` draws, for the label of an axis."""
    half = "50% and " if "lower_quartile" in frame else ""
    return f"with {half}{level:.0%} intervals"
