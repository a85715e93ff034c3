"""Settings chosen without a clean label: by the noisy labels that were held out of the fit.

A setting is good if the labels that it has not seen are likely under it: P(label | everything else)
is the item's class posterior passed through the fitted noise. That needs no truth, and punishes
overconfidence: a model that follows its features away from the labels predicts them badly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from nbmodels.channels import ExternalEvidence
from nbmodels.class_priors import FixedProportions
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model, with_role
from nbmodels.core.roles import LabelChannel
from nbmodels.errors import NbmodelsWarning
from nbmodels.fitting.em import Fit, fit
from nbmodels.fitting.identifiability import confused_classes, vanished

#: Fits each of several models to its data.
Runner = Callable[[Sequence[Model], Sequence[Data]], Iterable[Fit]]

#: An improvement over the first candidate counts from so many standard errors on.
_SURE = 2.0


@dataclass(frozen=True)
class Comparison:
    """How well each candidate predicts labels that it has not seen.

    Attributes:
        log_likelihood: mean log-probability of a held-out label, by candidate.
        gain: its mean gain over the first candidate.
        standard_error: of the gain.
        identified: whether the fitted noise matrix is diagonally dominant, and no class dissolved.
        best: index of the chosen candidate.
    """

    log_likelihood: np.ndarray
    gain: np.ndarray
    standard_error: np.ndarray
    identified: np.ndarray
    best: int


def hold_out(codes: np.ndarray, weights: np.ndarray, n_classes: int, rng: Any, share: float) -> Any:
    """``(n,)`` rows whose labels are held out, drawn among the labelled ones.

    Args:
        codes: ``(N,)`` label codes, ``n_classes`` where missing.
        weights: ``(N,)`` row weights.
        n_classes: K.
        rng: NumPy generator.
        share: of the labelled rows; at least one.
    """
    labelled = np.flatnonzero((codes < n_classes) & (weights > 0))
    return rng.permutation(labelled)[: max(1, int(share * len(labelled)))]


def compare(
    candidates: Sequence[Model],
    data: Sequence[Data],
    run: Runner,
    rng: Any,
    *,
    channel: str = "labels",
    share: float = 0.1,
) -> Comparison:
    """Fit every candidate without some labels, and see how likely these are under it.

    The first candidate is the cautious one: another one is chosen only if it is better by two
    standard errors and its classes kept their names.

    Args:
        candidates: models of the same components, the cautious one first.
        data: encoded data of each, of the same items and labels.
        run: fits each of several models to its data.
        rng: NumPy generator that draws the held-out labels.
        channel: name of the channel with the noisy labels.
        share: of the labels that is held out.
    """
    codes, n_classes = _codes(candidates[0], data[0], channel)
    held = hold_out(codes, np.asarray(data[0].weights), n_classes, rng, share)
    rest = [_without(one, channel, held, n_classes) for one in data]
    seen = np.asarray(rest[0].parts[channel])
    given = np.bincount(seen[seen < n_classes], minlength=n_classes)
    scores, identified = [], []
    # a candidate may be as bad as it likes: that is what is being found out
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        fits = list(run(candidates, rest))
    for model, fitted in zip(candidates, fits, strict=True):
        values = models.values(model, fitted.point)
        transition = np.asarray(models.transitions(model, values)[channel])
        p = np.asarray(fitted.resp)[held] @ (transition / transition.sum(1, keepdims=True))
        score = np.log(np.maximum(p[np.arange(len(held)), codes[held]], np.finfo(float).tiny))
        scores.append(score)
        kept = np.asarray(fitted.resp)[seen < n_classes].sum(0)
        identified.append(not confused_classes(transition) and not len(vanished(given, kept)))
    return judge(scores, identified, np.ones(len(held)))


def judge(
    scores: Sequence[np.ndarray],
    identified: Sequence[bool],
    weights: np.ndarray,
    sure: float = _SURE,
) -> Comparison:
    """Compare candidates by what each says of the same labels.

    Args:
        scores: ``(n,)`` log-probabilities of the labels, by candidate, the cautious one first.
        identified: whether each candidate's classes kept their names and their items.
        weights: ``(n,)`` row weights, 0 where there is no label.
        sure: standard errors by which a candidate must be better than the first.
    """
    table = np.asarray(scores)
    mean = table @ weights / weights.sum()
    gains = table - table[0]
    gain = mean - mean[0]
    count = weights.sum() ** 2 / np.square(weights).sum()
    variance = np.square(gains - gain[:, None]) @ weights / weights.sum()
    # a single label tells nothing of the spread
    error = np.sqrt(variance / (count - 1)) if count > 1 else np.full(len(table), np.inf)
    better = np.asarray(identified) & (gain > sure * error)
    best = int(np.argmax(np.where(better, mean, -np.inf))) if better.any() else 0
    return Comparison(mean, gain, error, np.asarray(identified), best)


def predicted_unseen(
    model: Model,
    data: Data,
    run: Runner,
    rng: Any,
    *,
    channel: str = "labels",
    folds: int = 5,
) -> np.ndarray:
    """``(N, K)`` P(true class | everything but the item's own label), by cross-fitting.

    Arguments as for :func:`compare`; every fit sees all labels but those of one of ``folds``.
    """
    codes, n_classes = _codes(model, data, channel)
    fold = rng.permutation(len(codes)) % folds
    out = np.empty((len(codes), n_classes))
    held = [np.flatnonzero(fold == k) for k in range(folds)]
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        fits = run([model] * folds, [_without(data, channel, rows, n_classes) for rows in held])
        for rows, fitted in zip(held, fits, strict=True):
            out[rows] = np.asarray(fitted.resp)[rows]
    return out


def noise_unseen(
    model: Model, data: Data, resp: np.ndarray, key: Any, *, rule: Rule, channel: str = "labels"
) -> tuple[Fit, Data]:
    """The noise channel alone, fitted to what the rest of the model says of each item.

    In a joint fit a label speaks for itself: what it did to the other parameters comes back as
    evidence that it is right, and the noise is found too small. Predictions made without the label
    cannot echo it.

    Args:
        model: components by name.
        data: encoded data.
        resp: from :func:`predicted_unseen`.
        key: JAX random key.
        rule: as for :func:`nbmodels.fitting.em.fit`.
        channel: name of the channel.

    Returns:
        the fit, and the data that it is of.
    """
    n_classes = resp.shape[1]
    logs = np.log(np.maximum(resp, np.finfo(float).tiny))
    parts = {PRIOR: None, channel: data.parts[channel], "beliefs": ExternalEvidence.pack(logs)}
    uniform = jnp.full(n_classes, 1 / n_classes)
    alone = {
        PRIOR: FixedProportions(prior=uniform),  # the beliefs hold the shares of the classes
        channel: model[channel],
        "beliefs": ExternalEvidence.of(n_classes),
    }
    told = Data(parts, data.weights)
    return fit(alone, told, rule=rule, key=key), told


def _codes(model: Model, data: Data, channel: str) -> tuple[np.ndarray, int]:
    part = data.parts[channel]
    guess = with_role(model, LabelChannel)[channel].initial_responsibilities(part)
    assert guess is not None  # a channel of labels has one
    return np.asarray(part), guess.shape[1]


def _without(data: Data, channel: str, rows: np.ndarray, n_classes: int) -> Data:
    codes = np.array(data.parts[channel])
    codes[rows] = n_classes
    return replace(data, parts={**data.parts, channel: jnp.asarray(codes)})
