"""Features beside labels and votes: the power of their likelihood, selected by held-out labels.

Columns that depend on each other, are skewed or have heavy tails count a misfit of their model as
evidence of the class: in one model with labels and votes they outweigh these, and the classes drift
to whatever the columns show. A likelihood to a power below 1 counts less (a power posterior; Miller
and Dunson 2019, JASA 114). The power is that under which labels and votes of items
that the fit has not seen are likelier.

Few items, rare classes, or columns that say nothing of the class yield distributions that fit the
classes found by chance. So features have no power at all where such labels are not likelier given
them than given the class shares, unless the classes that features and labels point to agree beyond
chance: votes that are wrong together are unlikely under any good features, and features beside
better ones add little.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float, Int

from inference.arrays import on_device
from inference.compilation import host_jit
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import Data, Model
from nbmodels.fitting.em import Fit
from nbmodels.fitting.holdout import beyond_chance, compare_scores
from nbmodels.fitting.options import HELD_OUT_SEED, FitOptions

#: Items from which on a tenth is held out once; fewer are cross-validated.
_FEW, _SHARE, _FOLDS = 3_000, 0.1, 5

#: Standard errors by which labels must be likelier given the features, and nats an item: where a
#: class is rare, distributions that have lost it predict labels better by next to nothing, surely.
_SURELY, _LEAST = 1.0, 0.01

#: Standard errors of agreement without any, from which on it is none by chance.
_AGREEMENT = 3.0

#: Powers that are tried, until one is worse than the one before it.
_POWERS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015)


def powers_of_features(
    model: Model,
    data: Data,
    sources: Mapping[str, Sequence[str]],
    open_: Collection[str],
    labels: Sequence[str],
    options: FitOptions,
) -> dict[str, float]:
    """Power of each source of features, one after the other; 0 where it predicts no labels.

    It is a factor of the weights that the emissions have.

    Args:
        model: components by name.
        data: encoded data.
        sources: names of the emissions of each source of features.
        open_: names of the sources whose power is selected; that of others is 1 or 0.
        labels: names of the channels of labels and votes.
        options: of the fits.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    weights = np.asarray(data.weights, float)
    rows = np.flatnonzero(weights > 0)
    order = np.random.default_rng(HELD_OUT_SEED).permutation(rows)
    if len(order) < _FEW:
        held = [order[k::_FOLDS] for k in range(min(_FOLDS, len(order)))]
    else:
        held = [order[: int(_SHARE * len(order))]]
    total = (1 + sum(len(_POWERS) if n in open_ else 1 for n in sources)) * len(held)
    found = dict.fromkeys(sources, 0.0)
    with options.progress.bar("testing the features", total) as bar:

        def scores(
            at: Mapping[str, float], parts_of: Sequence[str] = ()
        ) -> tuple[Float[np.ndarray, " h"], Int[np.ndarray, "2 h"]]:
            power = {part: at[name] for name, parts in sources.items() for part in parts}
            kept = {
                name: replace(c, weight=c.weight * power[name]) if name in power else c
                for name, c in model.items()
                if power.get(name, 1.0)
            }
            own = models.with_parts(data, {name: data.parts[name] for name in kept})
            parts = [replace(own, weights=_without(weights, one)) for one in held]
            fits = options.compared([kept] * len(held), parts, bar)
            tables, classes = [], []
            for fit, one in zip(fits, held, strict=True):
                tables.append(_of_labels(fit, own, labels)[one])
                pair = [_classes(fit, own, names)[one] for names in (parts_of, labels)]
                classes.append(np.stack(pair))
            return np.concatenate(tables), np.concatenate(classes, axis=1)

        best, _ = scores(found)
        for name in sources:
            tried = {**found, name: 1.0}
            other, classes = scores(tried, sources[name])
            # items without labels and votes are not compared
            about = weights[np.concatenate(held)] * ((best != 0) | (other != 0))
            if not about.any():
                return dict.fromkeys(sources, 1.0)
            for power in _POWERS[1:] if name in open_ else ():
                less = {**found, name: power}
                scored = scores(less, sources[name])
                if about @ scored[0] <= about @ other:
                    break  # held-out labels are likelier under the power before
                tried, (other, classes) = less, scored
            compared = compare_scores([best, other], [True, True], about, _SURELY)
            likelier = compared.best == 1 and compared.gain[1] > _LEAST
            if likelier or beyond_chance(classes[0], classes[1], about).z > _AGREEMENT:
                found, best = tried, other
    return found


def _without(weights: Float[np.ndarray, " n"], rows: np.ndarray) -> Array:
    kept = weights.copy()
    kept[rows] = 0
    return on_device(kept)


def _of_labels(fit: Fit, data: Data, labels: Sequence[str]) -> Float[np.ndarray, " n"]:
    """``(N,)`` log-probability of the items' labels and votes given everything else."""
    rule: Rule = "mean" if fit.rule == "vb" else fit.rule
    rest = {name: c for name, c in fit.model.items() if name not in labels}
    both = (
        np.asarray(_evidence(one, {n: fit.params[n] for n in one}, _parts(data, one), rule), float)
        for one in (dict(fit.model), rest)
    )
    whole, without = both
    return whole - without


def _classes(fit: Fit, data: Data, names: Sequence[str]) -> Int[np.ndarray, " n"]:
    """``(N,)`` likeliest classes by some components alone, whatever the class shares."""
    rule: Rule = "mean" if fit.rule == "vb" else fit.rule
    some = {name: fit.model[name] for name in names if name in fit.model}
    if not some:
        return np.zeros(len(data.weights), int)
    params = {name: fit.params[name] for name in some}
    return np.asarray(_logs(some, params, _parts(data, some), rule)).argmax(1)


def _parts(data: Data, model: Mapping[str, Any]) -> Data:
    return models.with_parts(data, {name: data.parts[name] for name in model})


@partial(host_jit, static_argnames="rule")
def _logs(model: Model, params: Any, data: Data, rule: Rule) -> Array:
    return models.log_likelihood(model, models.likelihood_params(model, params, rule), data).table


@partial(host_jit, static_argnames="rule")
def _evidence(model: Model, params: Any, data: Data, rule: Rule) -> Array:
    return models.posterior(
        model, models.likelihood_params(model, params, rule), data
    ).log_likelihood
