"""The noise matrix where classes are functions of the features: neighbours' labels as votes.

Labels and features cannot distinguish errors that depend on the features from classes that overlap:
a noise matrix R with class probabilities p(x) and no noise with probabilities R p(x) have one
likelihood. Most models here take errors to be independent of the features given the class, so that
what features explain is overlap. This one is the other end: near items are of one class, and what
an item's label and its neighbours' disagree on is noise (clusterability; Zhu, Song and Liu 2021).
Neighbours have a matrix of their own, which holds their noise and the neighbours of other classes
alike; the rates of an item's own label are then those of its noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from inference.arrays import on_device
from inference.compilation import host_jit
from nbmodels.channels import NeighbourVotes, Transition, TrustedLabels
from nbmodels.channels.transition import pack_labels
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.core.component import Component, Given
from nbmodels.core.families import Dirichlet
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows, padded_length
from nbmodels.fitting.em import em
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.nearest import (
    MOST_SIZES,
    NearestLabels,
    nearest_labels,
    shares_nearby,
)
from nbmodels.fitting.noise_by_shape import NOT_IDENTIFIED, NoiseByShape

#: Names of the channels: of an item's own label, of its neighbours' labels, and of checks.
LABELS, NEAR, TRUSTED = "labels", "near", "trusted"

#: Numbers of neighbours' worth of the class shares by which shares of labels are smoothed.
_PSEUDO = (0.3, 1.0, 3.0, 10.0)

#: Pseudo-labels of a class that are wrong, and right, in the noise matrix.
_ALPHA, _DIAGONAL = 1.0, 2.0

#: Gain in nats a row below which a fit has converged.
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Separable:
    """A model whose classes are functions of the features.

    Attributes:
        rows: ``(n,)`` the items whose neighbours were found.
        codes: ``(n,)`` their given labels.
        weights: ``(n,)`` their row weights.
        resp: ``(n, K)`` their responsibilities.
        transition: ``(K, observed)`` P(observed | true).
        counts: ``(K, observed)`` labels of each true class, pseudo-labels among them.
        n_neighbours: number of neighbours, selected.
        without_own: ``(n,)`` log-probability of each item's label given everything else.
        by_shares: ``(n,)`` the same by the smoothed shares of its neighbours' labels, which assume
            neither that classes overlap nor that they do not.
        unchecked: ``(n, K)`` responsibilities without the checks of these items.
        nearby: ``(n, K)`` shares of the labels of each item's neighbours, of the largest number of
            them, more of which are less noisy; of equal ones that of the nearest is the larger.
        by_shape: what the shape of the classes says of noise.
        widest: the same model with the number of neighbours by which most labels are wrong; None
            where that is the selected one. Held-out labels select few neighbours also where alike
            rows share an error, which more neighbours contradict.
    """

    rows: Int[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    resp: Float[np.ndarray, "n k"]
    transition: Float[np.ndarray, "k observed"]
    counts: Float[np.ndarray, "k observed"]
    n_neighbours: int
    without_own: Float[np.ndarray, " n"]
    by_shares: Float[np.ndarray, " n"]
    unchecked: Float[np.ndarray, "n k"]
    nearby: Float[np.ndarray, "n k"]
    by_shape: NoiseByShape = NOT_IDENTIFIED
    widest: Separable | None = None

    @property
    def end(self) -> Separable:
        """The model of the end of the noise range: how far classes reach is not known."""
        return self.widest or self

    def draws(
        self, n_draws: int, seed: int
    ) -> tuple[Float[np.ndarray, "s k observed"], Float[np.ndarray, " s"]]:
        """Draws of the noise matrix and of the share of wrong labels.

        Conjugate draws given the responsibilities: so many votes leave few classes in doubt.

        Args:
            n_draws: S.
            seed: of NumPy's generator.
        """
        rng = np.random.default_rng(seed)
        rates = np.stack([rng.dirichlet(row, n_draws) for row in self.counts], 1)
        shares = rng.dirichlet(1 + self.weights @ self.resp, n_draws)
        return rates, 1 - np.einsum("skk,sk->s", rates, shares)

    @property
    def votes(self) -> Int[np.ndarray, " n"]:
        """``(n,)`` the most frequent label of each item's neighbours."""
        return np.argmax(self.nearby, axis=1)

    @property
    def share_wrong(self) -> float:
        """Share of the given labels that are wrong."""
        right = self.resp[np.arange(len(self.codes)), self.codes]
        return float(1 - np.average(right, weights=self.weights))


@dataclass(frozen=True)
class _Fits:
    """Fits of the model, one for each number of neighbours.

    Attributes:
        near: labels of items and of their neighbours.
        weights: ``(n,)`` row weights of the items.
        resp: ``(m, n, K)`` responsibilities, up to rounding of their sums.
        unchecked: ``(m, n, K)`` the same without the checks of these items.
        rates: ``(m, K, observed)`` P(observed | true), up to rounding of its sums.
        counts: ``(m, K, observed)`` labels of each true class, pseudo-labels among them.
        without_own: ``(m, n)`` log-probability of each item's label given everything else.
    """

    near: NearestLabels
    weights: Float[np.ndarray, " n"]
    resp: Float[np.ndarray, "m n k"]
    unchecked: Float[np.ndarray, "m n k"]
    rates: Float[np.ndarray, "m k observed"]
    counts: Float[np.ndarray, "m k observed"]
    without_own: Float[np.ndarray, "m n"]

    @classmethod
    def of(
        cls,
        near: NearestLabels,
        n_classes: int,
        weights: Float[np.ndarray, " n"],
        trusted: Int[np.ndarray, " n"] | None,
    ) -> _Fits:
        """By one compiled program; see :func:`fit_separable`."""
        n, here, m = len(near.rows), weights[near.rows], len(near.counts)
        checked = None if trusted is None else trusted[near.rows]
        about = near.codes, here, checked, n_classes
        candidates = [_candidate(counts, size, *about) for size, counts in near.counts.items()]
        # a number of candidates that is always the same is one compiled program
        several = [*candidates, *[candidates[-1]] * (MOST_SIZES - m)]
        *found, own = _solved(*jax.tree.map(lambda *leaves: np.stack(leaves), *several))
        found.append(own.centred.concentration)
        resp, rest, unchecked, logs, counts = (np.asarray(part, float)[:m] for part in found)
        rates = np.exp(logs)
        seen = np.einsum("snk,skn->sn", rest[:, :n], rates[:, :, near.codes])
        without_own = np.log(np.maximum(seen, np.finfo(float).tiny))
        return cls(near, here, resp[:, :n], unchecked[:, :n], rates, counts, without_own)

    @property
    def selected(self) -> int:
        """Index of the number of neighbours under which the items' own labels are likeliest."""
        return int(np.argmax(self.without_own @ self.weights))

    def fitted(self, index: int, by_shares: np.ndarray, nearby: np.ndarray) -> Separable:
        """One of the fits, with what does not depend on the number of neighbours."""
        return Separable(
            self.near.rows,
            self.near.codes,
            self.weights,
            _normalised(self.resp[index]),
            _normalised(self.rates[index]),
            self.counts[index],
            [*self.near.counts][index],
            self.without_own[index],
            by_shares,
            _normalised(self.unchecked[index]),
            nearby,
        )


def _normalised(rows: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    out: np.ndarray = rows / rows.sum(1, keepdims=True)
    return out


def select_n_neighbours(
    near: NearestLabels,
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    trusted: Int[np.ndarray, " n"] | None = None,
) -> int:
    """The number of neighbours that :func:`fit_separable` selects.

    Args:
        near, n_classes, weights, trusted: as for :func:`fit_separable`.
    """
    fits = _Fits.of(near, n_classes, weights, trusted)
    return [*near.counts][fits.selected]


def fit_separable(
    near: NearestLabels,
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    trusted: Int[np.ndarray, " n"] | None = None,
) -> Separable:
    """Fit the noise matrix to labels and to votes of neighbours, and select their number.

    Args:
        near: labels of items and of their neighbours.
        n_classes: K.
        weights: ``(N,)`` row weights of all items.
        trusted: ``(N,)`` codes of checked labels, negative where unchecked; or None.
    """
    fits = _Fits.of(near, n_classes, weights, trusted)
    same = _by_shares(near, n_classes, fits.weights), shares_nearby(near)
    every = [fits.fitted(index, *same) for index in range(len(near.counts))]
    best, widest = every[fits.selected], max(every, key=lambda one: one.share_wrong)
    return best if widest is best else replace(best, widest=widest)


def _by_shares(
    near: NearestLabels, n_classes: int, weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """``(n,)`` log-probability of own labels by neighbours' shares, smoothed as fits best.

    Args:
        near: labels of items and of their neighbours.
        n_classes: K.
        weights: ``(n,)`` row weights.
    """
    overall = np.bincount(near.codes, weights, n_classes) / weights.sum()
    expected = np.maximum(overall[near.codes], 1 / max(weights.sum(), 1))
    rows = np.arange(len(near.codes))
    tried = [
        np.log((counts[rows, near.codes] + pseudo * expected) / (size + pseudo))
        for size, counts in near.counts.items()
        for pseudo in _PSEUDO
    ]
    return max(tried, key=lambda logs: float(weights @ logs))


def _candidate(
    counts: Float[np.ndarray, "n k"],
    size: int,
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    checked: Int[np.ndarray, " n"] | None,
    k: int,
) -> tuple[dict[str, Component], Data]:
    """Model and data for one number of neighbours."""
    length = padded_length(len(codes))
    model: dict[str, Component] = {
        PRIOR: Proportions.of(k),
        LABELS: Transition.of(k, None, _ALPHA, _DIAGONAL),
        NEAR: NeighbourVotes.of(k, None, _ALPHA, _DIAGONAL, uses=float(size)),
    }
    parts = {
        PRIOR: None,
        LABELS: pack_labels(pad_rows(codes, length, -1), k),
        NEAR: NeighbourVotes.pack(pad_rows(counts, length)),
    }
    if checked is not None:
        model[TRUSTED] = TrustedLabels.of(k)
        parts[TRUSTED] = pack_labels(pad_rows(checked, length, -1), k)
    return model, Data(parts, on_device(pad_rows(weights, length)))


@host_jit
def _solved(model: Any, data: Data) -> tuple[Array, Array, Array, Array, Dirichlet]:
    """Fits of several models, stacked along the first axis of every array.

    Returns:
        responsibilities, the same without the items' own labels and without checks, log-rates of
        the own labels, and the posterior of their rates by true class.
    """

    def one(model: Any, data: Data) -> tuple[Array, Array, Array, Array, Dirichlet]:
        params = em(model, data, tol=_TOLERANCE).params
        read = models.likelihood_params(model, params, "map")

        def without(channel: str) -> Array:
            parts = {name: part for name, part in data.parts.items() if name != channel}
            others = {name: c for name, c in model.items() if name != channel}
            return models.posterior(others, read, models.with_parts(data, parts)).resp

        resp, rest = models.posterior(model, read, data).resp, without(LABELS)
        unchecked = without(TRUSTED) if TRUSTED in data.parts else resp
        return resp, rest, unchecked, read[LABELS], params[LABELS]

    return lax.map(lambda pair: one(*pair), (model, data))


def with_separable(fitted: FittedModel, points: Any) -> FittedModel:
    """A fitted model with the other end of what its labels allow, where that exists.

    Args:
        fitted: a model of given labels; where their noise is known, or there is none, or the fit
            was interrupted, nothing is added.
        points: ``(N, d)`` items in the space of their features; None to compare out-of-fold scores.
    """
    parts, k = fitted.data.parts, len(fitted.names)
    channel = fitted.fit.model.get("labels")
    if fitted.interrupted or channel is None or isinstance(channel, Given) or k < 2:
        return fitted
    n = len(fitted.fit.resp)
    weights = np.asarray(fitted.data.weights, float)[:n]
    if points is None and parts.get(PRIOR) is not None:
        points = _probabilities(np.asarray(parts[PRIOR], float)[:n])
    codes = given_codes(fitted)
    near = nearest_labels(points, codes, k, copies=fitted.copies)
    if near is None:
        return fitted
    trusted = given_codes(fitted, TRUSTED) if TRUSTED in parts else None
    effects = fitted.design_effects
    if effects is not None:  # as many rows as the labels are worth
        weights = weights / effects.noise
    with computing(fitted.double):
        return replace(fitted, separable=fit_separable(near, k, weights, trusted))


def _probabilities(scores: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Roots of class probabilities, whose distances are Hellinger's."""
    parts = np.exp((scores - scores.max(1, keepdims=True)) / 2)
    return parts / np.sqrt((parts**2).sum(1, keepdims=True))
