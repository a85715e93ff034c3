"""The nonlinear classifier of features beside votes, checks, or other sources of a joint model.

One noisy label an item is what a classifier can learn from and be compared by. Votes, checked
labels, and what other sources say are evidence of the class instead: together with the labels they
give each item P(class) without its features (soft labels). The reference
(:mod:`nbmodels.fitting.reference`) learns that of other items, and labels and votes that were held
out tell whether its scores are the better covariate than those of the features' own model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.special import softmax

from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR
from nbmodels.fitting.agreement import beyond_chance
from nbmodels.fitting.beliefs import BELIEFS
from nbmodels.fitting.cautions import UNINFORMATIVE_OF_SETS
from nbmodels.fitting.checked_rows import contradicted
from nbmodels.fitting.fitted_model import FittedModel, Predictor
from nbmodels.fitting.informative import votes_agree
from nbmodels.fitting.label_sources import VOTES
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.points import Coding
from nbmodels.fitting.propagation import calibrated, calibrated_logs
from nbmodels.fitting.reference import (
    Reference,
    completed,
    learned_from_all,
    nonlinear_predictions,
)
from nbmodels.fitting.reference_scores import (
    REFERENCE,
    SURELY,
    THEIRS_TOO,
    by_the_reference,
    calibration_of_reference,
    lead_of,
    noise_on,
    poor_predictions,
    replaceable,
    surely_poorer,
    with_noise_of,
)
from nbmodels.fitting.scores import given_responsibilities
from nbmodels.fitting.trials import SIGNIFICANT

#: Channels that show the class of an item beside one noisy label, and those that may be with them.
_SHOWING = {VOTES, BELIEFS, "trusted"}
_KNOWN = {PRIOR, "labels"} | _SHOWING

#: Standard errors of agreement without any, from which on it is none by chance.
_AGREEMENT = 3.0

#: Log-likelihoods of the classes that differ by less say nothing.
_NOTHING = 1e-9

_TINY = np.finfo(float).tiny


class KnownClasses(NamedTuple):
    """What is known of the items' classes without their features.

    Attributes:
        probs: ``(N, K)`` P(class).
        codes: ``(N,)`` the likeliest class, -1 where nothing is known.
        weights: ``(N,)`` row weights.
        given: ``(N, K)`` shares of the labels and votes on each item, zeros without any.
    """

    probs: Float[np.ndarray, "n k"]
    codes: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    given: Float[np.ndarray, "n k"]

    @classmethod
    def of(cls, fitted: FittedModel) -> KnownClasses:
        """By the channels of a cross-fitted model: its responsibilities without its scores."""
        n = len(fitted.fit.resp)
        channels = {name: c for name, c in fitted.fit.model.items() if name not in fitted.scored}
        found = given_responsibilities(channels, fitted.data)
        given = np.zeros(fitted.fit.resp.shape) if found is None else np.asarray(found, float)[:n]
        logs = np.log(np.maximum(np.asarray(fitted.fit.resp, float), _TINY))
        logs -= calibrated_logs(fitted.fit, np.asarray(fitted.data.parts[PRIOR], float)[:n])
        weights = np.asarray(fitted.data.weights, float)[:n]
        shares = np.log(np.maximum(np.average(fitted.fit.resp, 0, weights), _TINY))
        probs = softmax(logs + shares, axis=1)
        known = given.any(1) & (np.ptp(logs, axis=1) > _NOTHING) & (weights > 0)
        return cls(probs, np.where(known, probs.argmax(1), -1), weights, given)

    def mean_of(self, logs: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
        """``(N,)`` mean over the classes of their log-probabilities."""
        return np.sum(self.probs * logs, 1)


def with_reference_beside(
    fitted: FittedModel,
    points: Any,
    options: Callable[[], FitOptions],
    coding: Coding | None = None,
) -> FittedModel:
    """A cross-fitted model held to a nonlinear classifier of what is known beside its features.

    Classes are by that classifier's scores in the place of the model's where labels and votes that
    were held out are surely likelier so, or where it agrees with the known classes and the model's
    features do not; votes must agree with the classes found as before. New items are predicted by
    it then, and where it gives the known classes a surely larger mean probability.

    Args:
        fitted: a cross-fitted model of votes, checked labels or what other sources know, with or
            without labels; any other is as it was, and one on such a classifier's scores already.
        points, options, coding: see :func:`nbmodels.fitting.reference_floor.with_reference`.
    """
    if points is None or sparse.issparse(points) or not _is_beside(fitted):
        return fitted
    k, known = len(fitted.names), KnownClasses.of(fitted)
    labels = known.codes, fitted.copies, known.weights, known.probs
    reference = nonlinear_predictions(points, labels[0], k, *labels[1:])
    if reference is None:
        return fitted
    rows = (known.codes >= 0) & np.isfinite(reference.held_out)
    groups = None if fitted.copies is None else fitted.copies[rows]
    about = known.weights[rows], groups
    scores = np.asarray(fitted.data.parts[PRIOR], float)[: len(rows)]
    own, theirs = calibrated_logs(fitted.fit, scores), reference.held_out[rows]
    if lead_of(known.mean_of(own)[rows], theirs, *about) <= SIGNIFICANT:
        return fitted
    reference = completed(reference, points, *labels)
    mine, instead = (known.mean_of(np.exp(logs))[rows] for logs in (own, reference.logs))
    means = surely_poorer(mine, instead, *about)
    found = _with_scores_of(reference, fitted, known, rows, options)
    taken = "scores" in found.chosen
    if found.interrupted or (means is None and not taken):
        return found
    if coding is None:
        return _warned_of(found, own, reference, rows) if taken else found
    classifier, logs = learned_from_all(reference, coding, points, *labels)
    at = calibration_of_reference(found)
    stated = THEIRS_TOO if taken or means is None else by_the_reference(*means)
    others = (one for one in found.cautions if one.finding != stated.finding)
    return replace(
        found,
        plain=None if taken else found.plain,
        predictor=Predictor(classifier, calibrated(logs, at), at),
        chosen={**found.chosen, "predictions": REFERENCE},
        cautions=(*others, stated),
    )


def _warned_of(
    found: FittedModel, own: Float[np.ndarray, "n k"], reference: Reference, rows: np.ndarray
) -> FittedModel:
    """A fit by a reference's scores that predicts new items itself, where it is the poorer way.

    Classes that votes leave open are not known beforehand: the probabilities are of those found.
    """
    theirs = calibrated_logs(found.fit, reference.logs)
    mine, instead = (np.sum(found.fit.resp * np.exp(x), 1)[rows] for x in (own, theirs))
    weights = np.asarray(found.data.weights, float)[: len(rows)][rows]
    groups = None if found.copies is None else found.copies[rows]
    means = surely_poorer(mine, instead, weights, groups)
    if means is None:
        return found
    poor = poor_predictions(*means, of="classes that are found", without="")
    return replace(found, cautions=(*found.cautions, poor))


def _is_beside(fitted: FittedModel) -> bool:
    """Whether classes of the items are known beside their features, by more than one label."""
    parts, cut = set(fitted.data.parts), fitted.data.parts.get(PRIOR) is not None
    beside = cut and bool(parts & _SHOWING) and parts <= _KNOWN
    compared = fitted.held_out_scores is not None and not fitted.interrupted
    compared = compared and fitted.chosen.get("scores") != REFERENCE
    return beside and compared and replaceable(fitted)


def _unused(fitted: FittedModel) -> bool:
    """Whether the model's own features are not informative, so that none count until now."""
    return not fitted.informative or UNINFORMATIVE_OF_SETS in fitted.cautions


def _with_scores_of(
    reference: Reference,
    fitted: FittedModel,
    known: KnownClasses,
    rows: np.ndarray,
    options: Callable[[], FitOptions],
) -> FittedModel:
    """Classes by the reference's scores, where labels and votes are surely likelier by these.

    Where the model's own features do not count at all, it is enough that it predicts the known
    classes beyond chance: few votes show that sooner than they make others likelier.
    """
    mine = fitted.held_out_scores
    assert mine is not None  # compared
    with computing(fitted.double):
        found = noise_on(reference.logs, reference.fold, fitted, options())
    if found is None:
        return replace(fitted, interrupted=True)
    rows = rows & np.isfinite(mine) & np.isfinite(found.held_out)
    groups = None if fitted.copies is None else fitted.copies[rows]
    about = known.weights[rows], groups
    lead = lead_of(mine[rows], found.held_out[rows], *about)
    agrees = beyond_chance(reference.classes[rows], known.codes[rows], *about).z > _AGREEMENT
    if not (lead > SURELY or (_unused(fitted) and lead > 0 and agrees)):
        return fitted
    taken = replace(with_noise_of(found, fitted), averaged=None)
    if contradicted(fitted.fit.model, fitted.data, len(fitted.names)):
        taken = replace(taken, noisy=1.0)
    if VOTES in fitted.data.parts:
        counted = known.weights * known.given.any(1)
        if not votes_agree(taken.fit.resp, known.probs, known.given, counted):
            return fitted
    return taken
