"""Plots of whole distributions: prior and posterior, one item's classes, traces of chains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbmodels.errors import DataError
from nbmodels.posterior.plots.shared import (
    LABELS,
    POSTERIOR,
    PRIOR,
    PlotFigure,
    check_square,
    noise_matrix_name,
    short_names,
    single_axes,
    stacked_draws,
    variables,
)

if TYPE_CHECKING:
    from xarray import DataArray, DataTree

#: Classes whose densities are shown side by side.
_PANELS = 12

#: Probability that an envelope of ranks holds all chains that mixed, and simulations that set it.
_HELD, _SIMULATIONS = 0.99, 1000


def prior_and_posterior(
    tree: DataTree, *, name: str | None = None, bins: int = 50
) -> tuple[Figure, pd.DataFrame]:
    """Histograms of the share of correct labels of each class, in the prior and the posterior.

    Args:
        tree: draws of both.
        name: of the noise matrix; by default that of the labels or, without labels, of the votes.
        bins: number of bins.

    Returns:
        The figure, and a frame with columns ``true``, ``left`` (of the bin), ``prior`` and
        ``posterior`` (densities). At most 12 classes are shown; the frame has all.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import plots
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> figure, densities = plots.prior_and_posterior(tree, bins=2)
        >>> # shares of correctly labelled ants below and above one half
        >>> ants = densities[densities["true"] == "ant"]
        >>> print(ants[["left", "prior", "posterior"]].round(1).to_string(index=False))
         left  prior  posterior
          0.0    0.5        0.0
          0.5    1.5        2.0
    """
    edges = np.linspace(0, 1, bins + 1)
    name = noise_matrix_name(tree, name)
    both = {g: stacked_draws(tree, name, g) for g in ("prior", "posterior")}
    classes = both["posterior"]["true_class"].to_numpy()
    check_square(len(classes), both["posterior"].sizes["observed_class"])
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
    titles = short_names([part["true"].iloc[0] for part in parts])
    columns = min(len(shown), 4)
    rows = -(-len(shown) // columns)
    figure = PlotFigure(figsize=(2.3 * columns + 0.8, 1.7 * rows + 1.1), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    for axes, part, title in zip(grid, shown, titles, strict=False):
        axes.stairs(part["prior"], edges, color=PRIOR, fill=True, alpha=0.6, label="prior")
        axes.stairs(part["posterior"], edges, color=POSTERIOR, linewidth=1.6, label="posterior")
        axes.set_title(title, fontsize=10)
        axes.set_yticks([])
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_xlim(0, 1)
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
    some = f" (the first {len(shown)} of {len(parts)} classes)" if len(shown) < len(parts) else ""
    figure.supxlabel(f"share of the class that is labelled correctly{some}", fontsize=10)
    return figure, frame


def item(tree: DataTree, index: Any, *, labels: str = "labels") -> tuple[Figure, pd.DataFrame]:
    """Class probabilities of one item, its given label marked.

    Args:
        tree: posterior draws.
        index: position of the item, among those of positive weight; or its id, if that is no
            whole number.
        labels: name of the channel.

    Raises:
        DataError: there is no such item.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import plots
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> figure, classes = plots.item(tree, 0)  # an ant that is labelled as a bee
        >>> print(classes.round(1).to_string(index=False))
        class  probability  given
          ant          1.0  False
          bee          0.0   True
    """
    if "p" not in variables(tree, "label_posterior"):
        raise DataError("tree: there is no 'p' in a group 'label_posterior'")
    p = tree["label_posterior"]["p"]
    if not isinstance(index, int | np.integer):
        found = np.flatnonzero(p["item"].to_numpy() == index)
        if not len(found):
            raise DataError(f"index: there is no item {index!r}")
        index = int(found[0])
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
    short = short_names(list(classes))
    marks = [f"{c} (given)" if g else c for c, g in zip(short, frame["given"], strict=True)]
    figure, axes = single_axes(len(frame), marks, 5.2)
    y = np.arange(len(frame))
    axes.barh(
        y, frame["probability"], color=np.where(frame["given"], LABELS, POSTERIOR), height=0.7
    )
    for at, value in zip(y, frame["probability"], strict=True):
        axes.text(value + 0.015, at, f"{value:.3f}", va="center", fontsize=8)
    axes.set_yticks(y, marks)
    axes.set_ylim(len(frame) - 0.4, -0.6)
    axes.set_xlim(0, 1.15)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_xlabel("P(true class | all data)")
    axes.set_title(f"item {index}", fontsize=11, loc="left")
    return figure, frame


def chains(
    tree: DataTree, kind: Literal["trace", "rank"] = "trace", *, name: str | None = None
) -> tuple[Figure, pd.DataFrame]:
    """Traces, or ranks, of each chain, by arviz-plots.

    Ranks are those of each chain's draws among the draws of all chains: the empirical distribution
    function of a chain's ranks, less that of a uniform distribution. If all chains draw
    independently from one distribution, all lines of a panel lie within the grey envelope with a
    probability of 99 %.

    Args:
        tree: posterior draws.
        kind: ``"trace"`` or ``"rank"``.
        name: of a variable of the posterior; of a noise matrix, its diagonal is shown. By default
            ``class_prior``, or ``noise_matrix`` where there is none, as in a cross-fitted model, or
            the first variable.

    Returns:
        The figure, and the draws: a row a draw, columns ``chain``, ``draw`` and one a number shown.

    Raises:
        DataError: there is no such kind, or ranks of a single chain are asked for.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import plots
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> figure, draws = plots.chains(tree, name="noise_matrix")
        >>> len(draws), draws["chain"].nunique()
        (400, 2)
        >>> # shares of right labels, by class
        >>> draws[["noise_matrix[0]", "noise_matrix[1]"]].mean().round(1).tolist()
        [0.8, 1.0]
    """
    import arviz_plots
    import matplotlib.pyplot as plt
    import xarray

    if name is None:
        there = variables(tree)
        usual = [n for n in ("class_prior", "noise_matrix") if n in there]
        name = (usual or there or ["class_prior"])[0]
    stacked_draws(tree, name)
    draws: Any = tree["posterior"][name]
    if kind not in ("trace", "rank"):
        raise DataError(f"kind: expected 'trace' or 'rank', got {kind!r}")
    if kind == "rank" and draws.sizes["chain"] == 1:
        raise DataError("kind: ranks compare chains, and there is one only; take 'trace'")
    quantity = measured = name
    if {"observed_class", "true_class"} <= set(draws.dims):
        given = "label" if name == "noise_matrix" else "vote"
        quantity, measured = f"P(right {given} | true class)", "probability"
        at = xarray.DataArray(np.arange(draws.sizes["true_class"]), dims="class")
        names = draws["true_class"].to_numpy()
        draws = draws.isel(true_class=at, observed_class=at)
        draws = draws.drop_vars(["true_class", "observed_class"]).assign_coords({"class": names})
    named = [d for d in draws.dims if d in draws.coords and draws[d].dtype.kind in "UO"]
    short = {d: short_names(draws[d].to_numpy().astype(str).tolist()) for d in named}
    one = draws.assign_coords(short).to_dataset(name=quantity)
    shown = xarray.DataTree.from_dict({"posterior": one})
    if kind == "trace":
        collection = arviz_plots.plot_trace(shown, backend="matplotlib")
    else:
        # the envelope of arviz-plots degenerates where there are few draws
        visuals: dict[Any, bool] = {"credible_interval": False, "remove_axis": False}
        collection = arviz_plots.plot_rank(shown, backend="matplotlib", visuals=visuals)
    figure = collection.viz["figure"].item()
    _label(figure, draws, "ECDF less uniform" if kind == "rank" else measured, kind == "rank")
    plt.close(figure)  # pyplot forgets the figure, which stays usable
    frame = draws.stack(sample=("chain", "draw")).transpose("sample", ...)
    numbers = frame.to_numpy().reshape(frame.sizes["sample"], -1)
    table = pd.DataFrame(numbers, columns=[f"{name}[{j}]" for j in range(numbers.shape[1])])
    for at_, axis in enumerate(("chain", "draw")):
        table.insert(at_, axis, frame[axis].to_numpy())
    return figure, table


def _label(figure: Any, draws: DataArray, measured: str, ranks: bool) -> None:
    """Name axes and chains of a figure of arviz-plots; of ranks, draw the envelopes."""
    panels = [axes for axes in figure.axes if axes.get_lines()]
    n_chains, n_draws = draws.sizes["chain"], draws.sizes["draw"]
    envelope = _envelope(n_chains, n_draws) if ranks else None
    for axes in panels:
        if envelope is not None:
            place, height = envelope
            axes.fill_between(place, -height, height, color="0.88", zorder=0)
            axes.set_xlabel("fractional rank among all chains")
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_subplotspec().is_first_col():
            axes.set_ylabel(measured)
    names = [f"chain {c}" for c in draws["chain"].to_numpy()]
    figure.set_layout_engine("constrained")
    figure.set_figheight(figure.get_figheight() + 0.5)  # for the legend
    look: dict[str, Any] = {"ncols": min(n_chains, 8), "frameon": False}
    figure.legend(panels[0].get_lines()[:n_chains], names, loc="outside lower center", **look)


def _envelope(n_chains: int, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Places, and how far a chain's ranks may be off a uniform distribution there.

    Simultaneous over places and chains: the largest standardised difference is simulated. Counts
    of a chain's draws among the smallest ones of all chains are hypergeometric.

    Returns:
        places in (0, 1), and half the height of the envelope at each.
    """
    total = n_chains * n_draws
    step = max(total // 200, 1)
    at = np.arange(step, total, step)
    spread = np.sqrt(n_draws * at / total * (1 - at / total) * (total - n_draws) / (total - 1))
    owner = np.repeat(np.arange(n_chains), n_draws)
    rng = np.random.default_rng(total)
    largest = np.zeros(_SIMULATIONS)
    for i in range(_SIMULATIONS):
        mixed = rng.permutation(owner)
        for chain in range(n_chains):
            counts = np.cumsum(mixed == chain)[at - 1]
            off = np.abs(counts - n_draws * at / total) / spread
            largest[i] = max(largest[i], off.max())
    return at / total, np.quantile(largest, _HELD) * spread / n_draws
