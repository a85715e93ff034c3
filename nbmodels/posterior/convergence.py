"""Convergence checks of posterior draws: R-hat, effective sample size, divergences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from inference.convergence import convergence
from inference.gibbs import Stopping
from nbmodels.errors import Caution, PosteriorWarning, counted
from nbmodels.fitting.identifiability import confused_classes
from nbmodels.posterior.gibbs import CELL_SHARE, watches

if TYPE_CHECKING:
    from xarray import DataTree

#: Largest R-hat, and smallest effective number of draws a chain, without a caution (Vehtari et al.
#: 2021, section 4).
_RHAT = 1.05
_ESS = 100

#: A parameter whose draws spread less does not vary.
_CONSTANT = 1e-12


def convergence_checks(
    tree: DataTree, *, mixed: bool | None = None, named: bool = False
) -> list[Caution]:
    """Cautions about the draws of class shares and the noise matrix; empty if all checks pass.

    Args:
        tree: posterior draws.
        mixed: of chains that stop by themselves (``draws="auto"``), whether they stopped since they
            had mixed. Those that did are not checked again; those that ran into the limit are, by
            the rule that stops them (:class:`inference.gibbs.Stopping`). None where the number of
            draws was given.
        named: whether classes have their names even if the noise matrix's diagonal does not
            dominate.

    Examples:
        >>> import arviz_base
        >>> import numpy as np
        >>> from nbmodels.posterior import convergence_checks
        >>> def tree(shares):
        ...     dims = {"class_prior": ["true_class"]}
        ...     return arviz_base.from_dict({"posterior": {"class_prior": shares}}, dims=dims)
        >>> shares = np.random.default_rng(0).dirichlet([30, 20], (4, 200))  # 4 chains
        >>> convergence_checks(tree(shares))
        []
        >>> shares[3] = shares[3, :, ::-1]  # a chain that exchanged the two classes
        >>> print(convergence_checks(tree(shares))[0].message)
        the chains have not mixed: R-hat of class_prior reaches 1.49 (at most 1.05 is usual);
        take more draws and warm-up
    """
    check = _mixing if mixed is None else _stopped_short
    mixing = () if mixed else check(tree)
    confused = () if named else _confused(tree)
    messages = [*mixing, *_divergences(tree), *confused]
    return [Caution(PosteriorWarning, message) for message in messages]


def _varying(tree: DataTree, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Draws by name, of those that there are; a quantity that is fixed has nothing to mix."""
    draws = tree["posterior"]
    return {
        name: draws[name].to_numpy()
        for name in names
        if name in draws and float(draws[name].std(("chain", "draw")).max()) > _CONSTANT
    }


def _stopped_short(tree: DataTree) -> Sequence[str]:
    """The rule by which chains stop, where they reached the limit without it."""
    draws, rule = tree["posterior"], Stopping()
    matrices = sorted(str(n) for n in draws.data_vars if str(n).endswith("noise_matrix"))
    small = _varying(tree, ["class_prior", *matrices])
    if draws.sizes["draw"] <= 3 or not small:
        return ()
    of_channels = [x for name, x in small.items() if name != "class_prior"]
    watched = watches(small.get("class_prior"), of_channels)
    found = [one.shortfall(rule.rhat, rule.ess) for one in watched]
    short = [one for one in found if not one.mixed]
    if not short:
        return ()
    named = " and ".join(small)
    worst = max(one.rhat for one in short)
    if worst > _RHAT:
        return (_not_mixed(named, worst, rule.rhat),)
    least = min(short, key=lambda one: one.effective / one.needed)
    more = max(2, int(np.ceil(least.needed / least.effective)))
    return (
        f"the draws depend on each other: of {named} there are as few as {least.effective:.0f} "
        f"effective ones, with R-hat of {_beyond(worst, rule.rhat)} (draws='auto' asks for "
        f"{rule.ess:.0f} of single rates, {CELL_SHARE * rule.ess:.0f} of the worst of all cells, "
        f"and R-hat of at most {rule.rhat}); take {more} times as many sweeps for each draw (thin)",
    )


def _not_mixed(named: str, rhat: float, usual: float) -> str:
    return (
        f"the chains have not mixed: R-hat of {named} reaches {_beyond(rhat, usual)} (at most "
        f"{usual} is usual); take more draws and warm-up"
    )


def _beyond(rhat: float, usual: float) -> str:
    """An R-hat above the usual one, with as many digits as show the difference."""
    digits = 2
    while rhat > usual >= float(f"{rhat:.{digits}f}"):
        digits += 1
    return f"{rhat:.{digits}f}"


def _mixing(tree: DataTree) -> Sequence[str]:
    """Usual limits, for as many draws as were asked for."""
    draws = tree["posterior"]
    small = _varying(tree, ["class_prior", "noise_matrix"])
    chains = draws.sizes["chain"]
    if chains == 1 or draws.sizes["draw"] <= 3 or not small:
        return ()
    arrays = list(small.values())
    found = [convergence(array) for array in arrays]
    worst = max(one.rhat for one in found)
    # of many cells beside the right labels' rates, the worst is allowed fewer
    rates = [np.diagonal(a, axis1=-2, axis2=-1) if a.ndim > 3 else a for a in arrays]
    first = min(convergence(rate).bulk for rate in rates)
    cells = min(one.bulk for one in found)
    least = min(first, cells / CELL_SHARE)
    if worst > _RHAT:
        return (_not_mixed(" and ".join(small), worst, _RHAT),)
    if least < min(_ESS, draws.sizes["draw"] / 4) * chains:
        return (
            f"the draws depend on each other: of {' and '.join(small)} there are as few as "
            f"{min(first, cells):.0f} effective ones (at least {_ESS} a chain are usual for "
            f"intervals of single rates, {CELL_SHARE * _ESS:.0f} for the worst of all cells); "
            "take more draws, or thin",
        )
    return ()


def _divergences(tree: DataTree) -> Sequence[str]:
    if "sample_stats" not in tree.children or "diverging" not in tree["sample_stats"]:
        return ()
    count = int(tree["sample_stats"]["diverging"].sum())
    if not count:
        return ()
    whose = counted(count, "draw diverged; its", "draws diverged; their")
    return (f"{whose} region of the posterior is not explored",)


def _confused(tree: DataTree) -> Sequence[str]:
    if "noise_matrix" not in tree["posterior"]:
        return ()
    mean = tree["posterior"]["noise_matrix"].mean(("chain", "draw")).to_numpy()
    confused = confused_classes(mean.T) if mean.shape[0] == mean.shape[1] else ()
    if not confused:
        return ()
    names = tree["posterior"]["true_class"].to_numpy()
    pairs = ", ".join(f"{names[k]} as {names[j]}" for k, j in confused[:10])
    return (f"the posterior noise matrix is not diagonally dominant: {pairs}",)
