"""Interval plots of noise matrices and class shares, each with its numbers as a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbmodels.errors import DataError
from nbmodels.posterior.plots.heat_map import noise_heat_map
from nbmodels.posterior.plots.shared import (
    LABELS,
    OF_VOTES,
    POSTERIOR,
    check_square,
    interval_bars,
    interval_summary,
    matrix_cells,
    noise_matrix_name,
    short_names,
    single_axes,
    stacked_draws,
    variables,
    which_intervals,
)

if TYPE_CHECKING:
    from xarray import DataTree

#: Rows of a forest plot that are shown by default.
_ROWS = 25


def noise_matrix(
    tree: DataTree, *, name: str | None = None, level: float = 0.9
) -> tuple[Figure, pd.DataFrame]:
    """Heat map of a noise matrix with intervals, by :func:`noise_heat_map`.

    Args:
        tree: posterior draws.
        name: of the noise matrix; by default that of the labels or, without labels, of the votes.
        level: probability of the intervals.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import plots
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> figure, cells = plots.noise_matrix(tree)
        >>> print(cells.pivot(index="observed", columns="true", values="mean").round(1).to_numpy())
        [[0.8 0. ]
         [0.2 1. ]]
    """
    cells = matrix_cells(tree, name, level)
    k = cells["true"].nunique()
    check_square(k, len(cells) // k)
    mean, low, high = (cells[c].to_numpy().reshape(k, k) for c in ("mean", "low", "high"))
    title = None
    source = noise_matrix_name(tree, name).removesuffix(OF_VOTES)
    if f"{source}_annotator" in tree["posterior"].dims:
        title = f"P(vote | true class) of an annotator taken at random,\nwith {level:.0%} intervals"
    return noise_heat_map(mean, low, high, cells["true"].iloc[:k], level=level, title=title)


def flip_rates(
    tree: DataTree, *, name: str | None = None, level: float = 0.9, most: int = _ROWS
) -> tuple[Figure, pd.DataFrame]:
    """Forest of the flip rates, the largest first: P(observed | true) off the diagonal.

    Args:
        tree: posterior draws.
        name: of the noise matrix; by default that of the labels or, without labels, of the votes.
        level: probability of the thin lines; the thick ones are the central half.
        most: rates shown; the table has all.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import plots
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> figure, rates = plots.flip_rates(tree)
        >>> print(rates[["true", "observed", "mean"]].round(1).to_string(index=False))
        true observed  mean
         ant      bee   0.2
         bee      ant   0.0
    """
    cells = matrix_cells(tree, name, level)
    frame = cells[cells["true"] != cells["observed"]]
    frame = frame.sort_values("mean", ascending=False)
    shown = frame.head(most)
    flips = _flips(cells, shown.index)
    figure, axes = single_axes(len(shown), flips)
    y = np.arange(len(shown))
    interval_bars(axes, y, shown, POSTERIOR)
    axes.set_yticks(y, flips)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"P(given label | true class), {which_intervals(frame, level)}")
    more = f" (the {most} largest of {len(frame)})" if len(frame) > most else ""
    axes.set_title(f"Flip rates, true class → given label{more}", fontsize=11, loc="left")
    return figure, frame.reset_index(drop=True)


def _flips(cells: pd.DataFrame, rows: Any) -> list[str]:
    """Names of some cells of a noise matrix, "true → observed", each class's shortened."""
    names = pd.unique(cells[["true", "observed"]].to_numpy().ravel())
    short = dict(zip(names, short_names(list(names)), strict=True))
    return [f"{short[t]} → {short[o]}" for t, o in cells.loc[rows, ["true", "observed"]].to_numpy()]


def class_shares(
    tree: DataTree, *, labels: str | None = None, level: float = 0.9
) -> tuple[Figure, pd.DataFrame]:
    """Class shares among the given labels, beside the posterior of the true shares.

    True shares are the model's ``class_prior``; where it has none, as in a cross-fitted model, they
    are ``class_shares``, those among the items. Draws of votes alone have no given label an item,
    and are shown without them.

    Args:
        tree: posterior draws.
        labels: name of the channel; by default ``"labels"``, if the model has it.
        level: probability of the thin lines.

    Raises:
        DataError: the tree does not hold the labels that were observed (``keep="parameters"``), or
            neither of the two, as with ``feedback="mixed"``, whose cut and joint posterior have one
            each.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import plots
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> figure, shares = plots.class_shares(tree)
        >>> print(shares[["class", "given", "mean"]].round(1).to_string(index=False))
        class  given  mean
          ant    0.4   0.5
          bee    0.6   0.5
    """
    name = "class_shares" if "class_shares" in variables(tree) else "class_prior"
    draws = stacked_draws(tree, name).transpose("true_class", "sample")
    classes = draws["true_class"].to_numpy().astype(str)
    of_labels = labels is not None or "noise_matrix" in variables(tree)
    given = _given_shares(tree, labels or "labels", len(classes)) if of_labels else np.nan
    frame = interval_summary(draws, level)
    frame.insert(0, "class", classes)
    frame.insert(1, "given", given)
    short = short_names(list(classes))
    figure, axes = single_axes(len(frame), short)
    y = np.arange(len(frame))
    if of_labels:
        axes.plot(given, y, "D", color=LABELS, markersize=5, label="labels as given")
    interval_bars(axes, y, frame, POSTERIOR, "true classes, inferred")
    axes.set_yticks(y, short)
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel(f"share of the items, {which_intervals(frame, level)}")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure, frame


def _given_shares(tree: DataTree, labels: str, n_classes: int) -> np.ndarray:
    """``(K,)`` shares of the classes among the observed labels.

    Raises:
        DataError: the tree does not hold them.
    """
    if labels not in variables(tree, "observed_data"):
        raise DataError(f"tree: there are no observed {labels!r}")
    codes = tree["observed_data"][labels].to_numpy()
    codes = codes[codes >= 0].astype(int)
    return np.bincount(codes, minlength=n_classes)[:n_classes] / max(len(codes), 1)


def agreement(
    methods: Mapping[str, Any], *, name: str | None = None, level: float = 0.9, most: int = 12
) -> tuple[Figure, pd.DataFrame]:
    """The same cells of a noise matrix by several methods: means and intervals side by side.

    Args:
        methods: by name, trees of draws, or ``(K, K)`` ``[observed, true]`` points such as EM's.
        name: of the noise matrix in the trees; by default each tree's, as in :func:`noise_matrix`.
        level: probability of the intervals.
        most: cells shown, the largest by the first tree's means; the table has all.

    Raises:
        DataError: no tree among them, or a tree in the place of the mapping.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import plots
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> figure, cells = plots.agreement({"planted": [[0.8, 0.0], [0.2, 1.0]], "draws": tree})
        >>> ants = cells[cells["true"] == "ant"]
        >>> print(ants[["method", "observed", "mean"]].round(1).to_string(index=False))
         method observed  mean
        planted      ant   0.8
        planted      bee   0.2
          draws      ant   0.8
          draws      bee   0.2
    """
    if hasattr(methods, "children"):
        raise DataError(
            "methods: expected a mapping from names to trees, as {'gibbs': tree}, got a tree"
        )
    trees = {m: matrix_cells(t, name, level) for m, t in methods.items() if hasattr(t, "children")}
    if not trees:
        raise DataError("methods: at least one must be a tree of draws")
    first = next(iter(trees.values()))
    parts = []
    for method, value in methods.items():
        part = trees.get(method)
        if part is None:
            point = np.ravel(np.asarray(value, float))
            part = first[["true", "observed"]].assign(**dict.fromkeys(first.columns[2:], point))
        parts.append(part.assign(method=method))
    frame = pd.concat(parts, ignore_index=True)
    order = first["mean"].sort_values(ascending=False).index[:most]
    height = 1.0 / (len(parts) + 1.2)
    labels = _flips(first, order)
    figure, axes = single_axes(len(order) * len(parts) * 0.62, labels, 6.8)
    for i, part in enumerate(parts):
        y = np.arange(len(order)) + (i - (len(parts) - 1) / 2) * height
        interval_bars(axes, y, part.loc[order], f"C{i}", part["method"].iloc[0])
    axes.set_yticks(np.arange(len(order)), labels)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    for at in np.arange(len(order) - 1) + 0.5:
        axes.axhline(at, color="0.92", linewidth=0.8)
    axes.set_xlabel(f"P(given label | true class), {which_intervals(first, level)}")
    figure.legend(loc="outside upper center", ncols=len(parts), frameon=False, fontsize=9)
    return figure, frame
