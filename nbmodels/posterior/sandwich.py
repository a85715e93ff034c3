"""Sandwich correction: posterior intervals with the spread of estimates under repeated sampling.

Where a component's weight is not one, or the model does not hold, the posterior's spread is not the
uncertainty of its mean: repeated data would move the mean by the sandwich ``H^-1 V H^-1``, where
the posterior has ``H^-1``. The open-faced sandwich (Shaby 2014, "The open-faced sandwich adjustment
for MCMC using estimating functions") stretches draws linearly about their mean until they have that
covariance. Its estimate here is the infinitesimal jackknife of the posterior mean (Giordano and
Broderick 2023, "The Bayesian infinitesimal jackknife for variance", eq. 6), which needs the draws
and the items' log-likelihoods only: an item moves the mean by the posterior covariance of the
parameter and the item's log-likelihood, and the squares of these moves, summed over items, are the
variance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from nbmodels.errors import DataError
from nbmodels.posterior.datatree import item_log_likelihood

if TYPE_CHECKING:
    from xarray import DataTree

#: Eigenvalues below this share of the largest are of directions that do not vary.
_FLAT = 1e-8


def stretch(
    target: Float[np.ndarray, "s s"], current: Float[np.ndarray, "s s"]
) -> Float[np.ndarray, "s s"]:
    """Optimal transport map between centred normals: symmetric ``A``, ``A current A' = target``.

    Args:
        target: ``(S, S)`` covariance; only its symmetric, positive part counts.
        current: ``(S, S)`` covariance; directions in which it has no width are dropped.
    """
    root, inverse = _roots(current)
    between, _ = _roots(root @ np.asarray(target, float) @ root)
    return inverse @ between @ inverse


def _roots(covariance: Any) -> tuple[np.ndarray, np.ndarray]:
    """Square root of a covariance matrix, and its pseudo-inverse."""
    matrix = np.asarray(covariance, float)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    wide = values > _FLAT * max(values.max(), 0)
    root = np.sqrt(np.where(wide, values, 0))
    inverse = np.where(wide, 1 / np.where(wide, root, 1), 0)
    return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T


def jackknife(
    draws: Float[np.ndarray, "draws s"], log_likelihood: Float[np.ndarray, "draws n"]
) -> Float[np.ndarray, "s s"]:
    """Infinitesimal jackknife: covariance of posterior means under repeated sampling of items.

    Args:
        draws: ``(draws, S)`` of parameters, of all chains.
        log_likelihood: ``(draws, N)`` of the items; under a weighted model, the weighted one.
    """
    gap = draws - draws.mean(0)
    influence = gap.T @ (log_likelihood - log_likelihood.mean(0)) / (len(draws) - 1)
    influence = influence - influence.mean(1, keepdims=True)
    return influence @ influence.T


def open_faced_sandwich(tree: DataTree) -> DataTree:
    """Draws of class shares and noise matrices with the spread that repeated samples would have.

    Items must be independent, and many: this is a large-sample correction. It mends the spread, not
    the mean: where features are copies of one another, the model's flip rates are off by more than
    their intervals, and stretched intervals cover little more (``benchmarks/intervals.py``: 32 %
    after 22 %, at a nominal 90 %). A lower ``weight``, or cross-fitting, is what helps there.

    Args:
        tree: draws with a group ``log_likelihood``, from
            :func:`nbmodels.posterior.sample`.

    Returns:
        A copy whose ``class_prior`` and noise matrices are stretched about their means on the scale
        of centred log-probabilities; everything else is as it was.

    Raises:
        DataError: the items' log-likelihoods were not stored, or row weights are not all one.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import open_faced_sandwich
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"  # a fifth of the ants are labelled as bees
        >>> tree = NoisyBernoulliNB.published().fit(x, y).posterior("vb", draws=200, chains=2)
        >>> mended = open_faced_sandwich(tree)
        >>> print(mended.attrs["correction"])
        open-faced sandwich of class shares and noise matrices, by the infinitesimal jackknife
        >>> right = {"true_class": "ant", "observed_class": "ant"}
        >>> old, new = (draws["posterior"]["noise_matrix"].sel(right) for draws in (tree, mended))
        >>> # this model holds: the spread stays about as it was
        >>> bool(abs(new.std() / old.std() - 1) < 0.2)
        True
    """
    if "log_likelihood" not in tree.children:
        raise DataError(
            "tree: the items' log-likelihoods were not kept (there are many); take fewer draws, or "
            "keep='all'"
        )
    if tree.attrs.get("row_weights") == "not all one":
        raise DataError("tree: rows are weighted; the correction is for rows that count once")
    out = tree.copy(deep=True)
    posterior = out["posterior"].to_dataset()
    axes = {
        name: "true_class" if name == "class_prior" else "observed_class"
        for name in posterior.data_vars
        if name == "class_prior" or str(name).endswith("noise_matrix")
    }
    axes = {n: a for n, a in axes.items() if float(posterior[n].std(("chain", "draw")).max()) > 0}
    if not axes:
        return out
    items = item_log_likelihood(tree).to_numpy()
    items = items.reshape(-1, items.shape[-1])
    logs = []
    for name, axis in axes.items():
        log: Any = np.log(np.maximum(posterior[name], np.finfo(float).tiny))
        centred: Any = log - log.mean(axis)
        logs.append(centred.to_numpy().reshape(len(items), -1))
    flat = np.concatenate(logs, 1)
    centre = flat.mean(0)
    matrix = stretch(jackknife(flat, items), np.cov(flat.T))
    moved = centre + (flat - centre) @ matrix.T
    for (name, axis), own in zip(axes.items(), logs, strict=True):
        part, moved = moved[:, : own.shape[1]], moved[:, own.shape[1] :]
        shaped = np.exp(part.reshape(posterior[name].shape))
        fresh = posterior[name].copy(data=shaped)
        posterior[name] = fresh / fresh.sum(axis)
    out["posterior"].dataset = posterior
    out.attrs["correction"] = (
        "open-faced sandwich of class shares and noise matrices, by the infinitesimal jackknife"
    )
    return out
