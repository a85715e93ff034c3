"""Pictures of a posterior, each with the numbers in it as a data frame.

All take the tree that :func:`nbmodels.posterior.sampling.sample` returns. Figures are built without pyplot,
but for the traces and ranks, which arviz-plots draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbmodels.errors import DataError
from nbmodels.posterior import heat_map as plots

if TYPE_CHECKING:
    from xarray import DataArray, DataTree

#: Rows of a forest that are shown unless asked for more.
_ROWS = 25

#: Classes whose densities are shown side by side.
_PANELS = 12

_BEFORE, _AFTER = "0.6", "C0"


def _draws(tree: DataTree, name: str, group: str = "posterior") -> DataArray:
    if group not in tree.children or name not in tree[group].data_vars:
        raise DataError(f"tree: there is no {name!r} in a group {group!r}")
    return tree[group][name].stack(sample=("chain", "draw"))


def _summary(draws: DataArray, level: float) -> pd.DataFrame:
    """Mean, ends of the central half and of the interval of ``level``, a row a cell."""
    tail = (1 - level) / 2
    ends = draws.quantile([tail, 0.25, 0.75, 1 - tail], "sample").to_numpy()
    named = ["low", "lower_quartile", "upper_quartile", "high"]
    columns = {"mean": draws.mean("sample").to_numpy(), **dict(zip(named, ends, strict=True))}
    return pd.DataFrame({name: np.ravel(x) for name, x in columns.items()})


def _cells(tree: DataTree, name: str, level: float) -> pd.DataFrame:
    """Summary of a noise matrix, with the names of the classes."""
    draws = _draws(tree, name).transpose("observed_class", "true_class", "sample")
    observed, true = (draws[d].to_numpy().astype(str) for d in ("observed_class", "true_class"))
    index = pd.MultiIndex.from_product([observed, true], names=["observed", "true"])
    frame = index.to_frame(index=False)[["true", "observed"]]
    return pd.concat([frame, _summary(draws, level)], axis=1)


def _panel(rows: float, width: float = 6.4) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, 1.1 + 0.27 * max(rows, 4)), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _bars(axes: Any, y: Any, frame: pd.DataFrame, color: str, label: str | None = None) -> None:
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


def noise_matrix(
    tree: DataTree, *, name: str = "noise_matrix", level: float = 0.9
) -> tuple[Figure, pd.DataFrame]:
    """Heat map of a noise matrix, an interval in every cell; see :func:`nbmodels.posterior.heat_map`."""
    cells = _cells(tree, name, level)
    k = round(len(cells) ** 0.5)
    mean, low, high = (cells[c].to_numpy().reshape(k, k) for c in ("mean", "low", "high"))
    return plots.noise_matrix(mean, low, high, cells["true"].iloc[:k], level=level)


def flip_rates(
    tree: DataTree, *, name: str = "noise_matrix", level: float = 0.9, most: int = _ROWS
) -> tuple[Figure, pd.DataFrame]:
    """Forest of the flip rates, the largest first: P(observed | true) off the diagonal.

    Args:
        tree: posterior draws.
        name: of the noise matrix.
        level: probability of the thin lines; the thick ones are the central half.
        most: rates shown; the table has all.
    """
    cells = _cells(tree, name, level)
    frame = cells[cells["true"] != cells["observed"]]
    frame = frame.sort_values("mean", ascending=False, ignore_index=True)
    shown = frame.head(most)
    figure, axes = _panel(len(shown))
    y = np.arange(len(shown))
    _bars(axes, y, shown, _AFTER)
    axes.set_yticks(y, shown["true"] + " → " + shown["observed"])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"P(given label | true class), with 50% and {level:.0%} intervals")
    more = f" (the {most} largest of {len(frame)})" if len(frame) > most else ""
    axes.set_title(f"Flip rates, true class → given label{more}", fontsize=11, loc="left")
    return figure, frame


def prior_and_posterior(
    tree: DataTree, *, name: str = "noise_matrix", bins: int = 50
) -> tuple[Figure, pd.DataFrame]:
    """Share of right labels of each class, before and after the data, as histograms.

    Returns:
        The figure, and a frame with columns ``true``, ``left`` (of the bin), ``prior`` and
        ``posterior`` (densities). At most 12 classes are shown; the frame has all.
    """
    edges = np.linspace(0, 1, bins + 1)
    both = {g: _draws(tree, name, g) for g in ("prior", "posterior")}
    classes = both["posterior"]["true_class"].to_numpy()
    parts = []
    for k, true in enumerate(classes):
        heights = {
            group: np.histogram(
                draws.isel(true_class=k, observed_class=k).to_numpy(), edges, density=True
            )[0]
            for group, draws in both.items()
        }
        parts.append(pd.DataFrame({"true": str(true), "left": edges[:-1], **heights}))
    frame = pd.concat(parts, ignore_index=True)
    shown = parts[:_PANELS]
    columns = min(len(shown), 4)
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(2.3 * columns + 0.8, 1.7 * rows + 1.1), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    for axes, part in zip(grid, shown, strict=False):
        axes.stairs(part["prior"], edges, color=_BEFORE, fill=True, alpha=0.6, label="prior")
        axes.stairs(part["posterior"], edges, color=_AFTER, linewidth=1.6, label="posterior")
        axes.set_title(part["true"].iloc[0], fontsize=10)
        axes.set_yticks([])
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_xlim(0, 1)
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
    figure.supxlabel("share of the class that is labelled right", fontsize=10)
    return figure, frame


def class_shares(
    tree: DataTree, *, labels: str = "labels", level: float = 0.9
) -> tuple[Figure, pd.DataFrame]:
    """Class shares as the labels give them, beside what the model infers of the true ones.

    Args:
        tree: posterior draws with observed labels.
        labels: name of the channel.
        level: probability of the thin lines.
    """
    draws = _draws(tree, "class_prior").transpose("true_class", "sample")
    classes = draws["true_class"].to_numpy().astype(str)
    if "observed_data" not in tree.children or labels not in tree["observed_data"].data_vars:
        raise DataError(f"tree: there are no observed {labels!r}")
    codes = tree["observed_data"][labels].to_numpy()
    known = codes[codes >= 0].astype(int)
    given = np.bincount(known, minlength=len(classes))[: len(classes)] / max(len(known), 1)
    frame = _summary(draws, level)
    frame.insert(0, "class", classes)
    frame.insert(1, "given", given)
    figure, axes = _panel(len(frame))
    y = np.arange(len(frame))
    axes.plot(given, y, "D", color="C1", markersize=5, label="labels as given")
    _bars(axes, y, frame, _AFTER, "true classes, inferred")
    axes.set_yticks(y, classes)
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"share of the items, with {level:.0%} intervals")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure, frame


def item(tree: DataTree, index: int, *, labels: str = "labels") -> tuple[Figure, pd.DataFrame]:
    """Class probabilities of one item, its given label marked.

    Args:
        tree: posterior draws.
        index: of the item, among those of positive weight.
        labels: name of the channel.

    Raises:
        DataError: there is no such item.
    """
    p = tree["label_posterior"]["p"]
    if not -p.sizes["item"] <= index < p.sizes["item"]:
        raise DataError(f"index: {index} is none of {p.sizes['item']} items")
    one = p.isel(item=index)
    classes = one["true_class"].to_numpy().astype(str)
    code = -1
    if "observed_data" in tree.children and labels in tree["observed_data"].data_vars:
        code = int(tree["observed_data"][labels].to_numpy()[index])
    frame = pd.DataFrame(
        {"class": classes, "probability": one.to_numpy(), "given": np.arange(len(classes)) == code}
    )
    figure, axes = _panel(len(frame), 5.2)
    y = np.arange(len(frame))
    axes.barh(y, frame["probability"], color=np.where(frame["given"], "C1", "C0"), height=0.7)
    for at, value in zip(y, frame["probability"], strict=True):
        axes.text(value + 0.015, at, f"{value:.3f}", va="center", fontsize=8)
    marks = [f"{c} (given)" if g else c for c, g in zip(classes, frame["given"], strict=True)]
    axes.set_yticks(y, marks)
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.set_xlim(0, 1.15)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_xlabel("P(true class | everything known)")
    axes.set_title(f"item {index}", fontsize=11, loc="left")
    return figure, frame


def chains(
    tree: DataTree, kind: Literal["trace", "rank"] = "trace", *, name: str = "class_prior"
) -> tuple[Figure, pd.DataFrame]:
    """Traces, or ranks, of each chain, by arviz-plots.

    Args:
        tree: posterior draws.
        kind: ``"trace"`` or ``"rank"``.
        name: of a variable of the posterior; of a noise matrix, its diagonal is shown.

    Returns:
        The figure, and the draws: a row a draw, columns ``chain``, ``draw`` and one a number shown.
    """
    import arviz_plots
    import matplotlib.pyplot as plt
    import xarray

    _draws(tree, name)
    draws: Any = tree["posterior"][name]
    if {"observed_class", "true_class"} <= set(draws.dims):
        at = xarray.DataArray(np.arange(draws.sizes["true_class"]), dims="class")
        names = draws["true_class"].to_numpy()
        draws = draws.isel(true_class=at, observed_class=at)
        draws = draws.drop_vars(["true_class", "observed_class"]).assign_coords({"class": names})
    shown = xarray.DataTree.from_dict({"posterior": draws.to_dataset(name=name)})
    draw: dict[str, Any] = {"trace": arviz_plots.plot_trace, "rank": arviz_plots.plot_rank}
    if kind not in draw:
        raise DataError(f"kind: expected 'trace' or 'rank', got {kind!r}")
    collection = draw[kind](shown, backend="matplotlib")
    figure = collection.viz["figure"].item()
    figure.set_layout_engine("constrained")
    plt.close(figure)  # out of pyplot's list, not out of the world
    frame = draws.stack(sample=("chain", "draw")).transpose("sample", ...)
    numbers = frame.to_numpy().reshape(frame.sizes["sample"], -1)
    table = pd.DataFrame(numbers, columns=[f"{name}[{j}]" for j in range(numbers.shape[1])])
    for at_, axis in enumerate(("chain", "draw")):
        table.insert(at_, axis, frame[axis].to_numpy())
    return figure, table


def agreement(
    ways: Mapping[str, Any], *, name: str = "noise_matrix", level: float = 0.9, most: int = 12
) -> tuple[Figure, pd.DataFrame]:
    """The same cells of a noise matrix by several methods: means and intervals side by side.

    Args:
        ways: by name, trees of draws, or ``(K, K)`` ``[observed, true]`` points such as EM's.
        name: of the noise matrix in the trees.
        level: probability of the intervals.
        most: cells shown, the largest by the first tree's means; the table has all.

    Raises:
        DataError: no tree among them.
    """
    trees = {way: _cells(t, name, level) for way, t in ways.items() if hasattr(t, "children")}
    if not trees:
        raise DataError("ways: at least one must be a tree of draws")
    first = next(iter(trees.values()))
    parts = []
    for way, value in ways.items():
        part = trees.get(way)
        if part is None:
            point = np.ravel(np.asarray(value, float))
            part = first[["true", "observed"]].assign(**dict.fromkeys(first.columns[2:], point))
        parts.append(part.assign(way=way))
    frame = pd.concat(parts, ignore_index=True)
    order = first["mean"].sort_values(ascending=False).index[:most]
    height = 1.0 / (len(parts) + 1.2)
    figure, axes = _panel(len(order) * len(parts) * 0.62, 6.8)
    for i, part in enumerate(parts):
        y = np.arange(len(order)) + (i - (len(parts) - 1) / 2) * height
        _bars(axes, y, part.loc[order], f"C{i}", part["way"].iloc[0])
    labels = [f"{t} → {o}" for t, o in first.loc[order, ["true", "observed"]].to_numpy()]
    axes.set_yticks(np.arange(len(order)), labels)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    for at in np.arange(len(order) - 1) + 0.5:
        axes.axhline(at, color="0.92", linewidth=0.8)
    axes.set_xlabel(f"P(given label | true class), with {level:.0%} intervals")
    figure.legend(loc="outside upper center", ncols=len(parts), frameon=False, fontsize=9)
    return figure, frame
