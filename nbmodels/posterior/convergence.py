"""Convergence checks of posterior draws: R-hat, effective sample size, divergences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from inference.convergence import convergence
from nbmodels.errors import Caution, PosteriorWarning
from nbmodels.fitting.identifiability import confused_classes
from nbmodels.posterior.gibbs import CELL_SHARE

if TYPE_CHECKING:
    from xarray import DataTree

#: Largest R-hat, and smallest effective number of draws a chain, without a caution (Vehtari et al.
#: 2021, section 4).
_RHAT = 1.05
_ESS = 100

#: A parameter whose draws spread less does not vary.
_CONSTANT = 1e-12


def convergence_checks(tree: DataTree) -> list[Caution]:
    """Cautions about the draws of class shares and the noise matrix; empty if all checks pass.

    Args:
        tree: posterior draws.

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
    messages = [*_mixing(tree), *_divergences(tree), *_confused(tree)]
    return [Caution(PosteriorWarning, message) for message in messages]


def _mixing(tree: DataTree) -> Sequence[str]:
    draws = tree["posterior"]
    # a quantity that is fixed has nothing to mix
    small = [
        name
        for name in ("class_prior", "noise_matrix")
        if name in draws and float(draws[name].std(("chain", "draw")).max()) > _CONSTANT
    ]
    chains = draws.sizes["chain"]
    if chains == 1 or draws.sizes["draw"] <= 3 or not small:
        return ()
    arrays = [draws[name].to_numpy() for name in small]
    found = [convergence(array) for array in arrays]
    worst = max(one.rhat for one in found)
    # of many cells beside the right labels' rates, the worst is allowed fewer
    rates = [np.diagonal(a, axis1=-2, axis2=-1) if a.ndim > 3 else a for a in arrays]
    first = min(convergence(rate).bulk for rate in rates)
    cells = min(one.bulk for one in found)
    least = min(first, cells / CELL_SHARE)
    if worst > _RHAT:
        return (
            f"the chains have not mixed: R-hat of {' and '.join(small)} reaches {worst:.2f} "
            f"(at most {_RHAT} is usual); take more draws and warm-up",
        )
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
    return (f"{count} draws diverged; their region of the posterior is not explored",)


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
