"""Features beside labels and votes: are they heard at all?

In one model features are as good as their classes are known. Few items, rare classes, or columns
that say nothing of the class yield distributions that fit the classes found by chance, and items
are then surely taken for the wrong ones. Features are heard where labels and votes of items that
the fit has not seen are likelier given them than given the class shares, or where the classes that
features and labels point to agree beyond chance: votes that are wrong together are unlikely under
any good features, and features beside better ones add little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def heard(
    model: Model,
    data: Data,
    sources: Mapping[str, Sequence[str]],
    labels: Sequence[str],
    options: FitOptions,
) -> dict[str, bool]:
    """Whether each source of features is heard, one tried after the other.

    Args:
        model: components by name.
        data: encoded data.
        sources: names of the emissions of each source of features.
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
    total = (1 + len(sources)) * len(held)
    found: dict[str, bool] = dict.fromkeys(sources, False)
    with options.progress.bar("testing the features", total) as bar:

        def scores(
            on: Mapping[str, bool], parts_of: Sequence[str] = ()
        ) -> tuple[Float[np.ndarray, " h"], Int[np.ndarray, "2 h"]]:
            silent = {part for name, parts in sources.items() if not on[name] for part in parts}
            kept = {name: c for name, c in model.items() if name not in silent}
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
            tried = {**found, name: True}
            other, classes = scores(tried, sources[name])
            # items without labels and votes are not compared
            about = weights[np.concatenate(held)] * ((best != 0) | (other != 0))
            if not about.any():
                return dict.fromkeys(sources, True)
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
