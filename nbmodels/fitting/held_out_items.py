"""Features beside labels and votes: how far they count, selected by held-out labels and votes.

Columns that depend on each other, are skewed or have heavy tails count a misfit of their model as
evidence of the class: in one model with labels and votes they outweigh these, and the classes drift
to whatever the columns show. A likelihood to a power below 1 counts less (a power posterior; Miller
and Dunson 2019, JASA 114), and cross-fitted features, which learn from what is known of other
items, lead no class away. The way is that under which labels and votes of items that the fit has
not seen are likelier.

Few items, rare classes, or columns that say nothing of the class yield distributions that fit the
classes found by chance. So features have no power at all where such labels are not likelier given
them than given the class shares, unless the classes that features and labels point to agree beyond
chance: votes that are wrong together are unlikely under any good features, and features beside
better ones add little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Float, Int
from scipy.special import logsumexp

from inference.arrays import on_device
from nbmodels.core.component import LogLikelihood
from nbmodels.core.model import Data, Model
from nbmodels.fitting.agreement import beyond_chance
from nbmodels.fitting.fit import Fit, log_likelihoods_of
from nbmodels.fitting.holdout import compare_scores
from nbmodels.fitting.options import HELD_OUT_SEED, FitOptions
from nbmodels.fitting.progress import Task

#: Items from which on a tenth is held out once; fewer are cross-validated.
_FEW, _SHARE, _FOLDS = 3_000, 0.1, 5

#: Standard errors by which labels must be likelier given the features, and nats an item: where a
#: class is rare, distributions that have lost it predict labels better by next to nothing, surely.
_SURELY, _LEAST = 1.0, 0.01

#: Standard errors of agreement without any, from which on it is none by chance.
_AGREEMENT = 3.0

#: Powers that are tried, until one is worse than the one before it.
POWERS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015)


class HeldOut(NamedTuple):
    """Items held out of the fit of a model.

    Attributes:
        scores: ``(h,)`` log-probability of their labels and votes given everything else.
        features: ``(h,)`` likeliest classes by some features alone.
        labels: ``(h,)`` likeliest classes by labels and votes alone.
    """

    scores: Float[np.ndarray, " h"]
    features: Int[np.ndarray, " h"]
    labels: Int[np.ndarray, " h"]


@dataclass(frozen=True)
class ComparedOnHeldOutItems:
    """Compares models of the same items by the labels and votes of items held out of the fit.

    Attributes:
        weights: ``(N,)`` row weights.
        labels: names of the channels of labels and votes.
        options: of the fits.
        bar: moves with every fit.
    """

    weights: Float[np.ndarray, " n"]
    labels: Sequence[str]
    options: FitOptions
    bar: Task

    def under(self, model: Model, data: Data, features: Sequence[str] = ()) -> HeldOut:
        """The held-out items under a model.

        Args:
            model: components by name.
            data: encoded data.
            features: names of the components that stand for features.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        held = self._held
        parts = [replace(data, weights=_without(self.weights, one)) for one in held]
        fits = self.options.compared([model] * len(held), parts, self.bar)
        found = [
            HeldOut(
                _of_labels(tables, self.labels)[one],
                _classes(tables, features)[one],
                _classes(tables, self.labels)[one],
            )
            for tables, one in zip((_tables(fit, data) for fit in fits), held, strict=True)
        ]
        return HeldOut(*map(np.concatenate, zip(*found, strict=True)))

    def likelier(self, first: HeldOut, second: HeldOut) -> bool:
        """Whether labels and votes are likelier under the second."""
        held = self._held_weights
        return bool(held @ second.scores > held @ first.scores)

    def informative(self, without: HeldOut, found: HeldOut) -> bool | None:
        """Whether features predict labels and votes; None where no held-out item has any.

        Args:
            without: under the model without these features.
            found: under that with them.
        """
        # items without labels and votes are not compared
        about = self._held_weights * ((without.scores != 0) | (found.scores != 0))
        if not about.any():
            return None
        compared = compare_scores([without.scores, found.scores], [True, True], about, _SURELY)
        if compared.best == 1 and compared.gain[1] > _LEAST:
            return True
        return bool(beyond_chance(found.features, found.labels, about).z > _AGREEMENT)

    @cached_property
    def _held(self) -> list[Int[np.ndarray, " h"]]:
        return folds(self.weights)

    @cached_property
    def _held_weights(self) -> Float[np.ndarray, " h"]:
        return self.weights[np.concatenate(self._held)]


def folds(weights: Float[np.ndarray, " n"]) -> list[Int[np.ndarray, " h"]]:
    """Rows that are held out together."""
    order = np.random.default_rng(HELD_OUT_SEED).permutation(np.flatnonzero(weights > 0))
    if len(order) < _FEW:
        return [order[k::_FOLDS] for k in range(min(_FOLDS, len(order)))]
    return [order[: int(_SHARE * len(order))]]


def _without(weights: Float[np.ndarray, " n"], rows: np.ndarray) -> Array:
    kept = weights.copy()
    kept[rows] = 0
    return on_device(kept)


#: Log-likelihoods by component.
_Tables = Mapping[str, LogLikelihood]


def _tables(fit: Fit, data: Data) -> _Tables:
    doubles: Any = jax.tree.map(partial(np.asarray, dtype=float), log_likelihoods_of(fit, data))
    return doubles


def _of_labels(tables: _Tables, labels: Sequence[str]) -> Float[np.ndarray, " n"]:
    """``(N,)`` log-probability of the items' labels and votes given everything else."""
    rest = {name: one for name, one in tables.items() if name not in labels}
    return _evidence(tables) - _evidence(rest)


def _classes(tables: _Tables, names: Sequence[str]) -> Int[np.ndarray, " n"]:
    """``(N,)`` likeliest classes by some components alone, whatever the class shares."""
    some = [tables[name].table for name in names if name in tables]
    if not some:
        return np.zeros(len(next(iter(tables.values())).offset), int)
    return np.sum(some, 0).argmax(1)


def _evidence(tables: _Tables) -> Float[np.ndarray, " n"]:
    """``(N,)`` log-density under several components."""
    table = np.sum([one.table for one in tables.values()], 0)
    return logsumexp(table, 1) + np.sum([one.offset for one in tables.values()], 0)
