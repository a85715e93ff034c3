"""Noise estimated on the scores of the reference classifier, where the features' model is poor.

A noise matrix given the scores of a poor model holds what that model gets wrong. The reference
(:mod:`nbmodels.fitting.reference`) is a second classifier of the same labels: of the two, the one
under whose scores noise explains held-out labels better is the better covariate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from inference import Status
from inference.arrays import on_device
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows
from nbmodels.errors import Caution, IdentifiabilityWarning, VerdictWarning
from nbmodels.fitting.cautions import (
    BY_NONLINEAR,
    BY_PLAIN,
    DISAGREEING_WITH_VOTES,
    PLAIN,
    UNINFORMATIVE,
    UNINFORMATIVE_BESIDE_VOTES,
    UNINFORMATIVE_OF_SETS,
    USELESS,
)
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.discriminative import LOG_SLOPE_SD
from nbmodels.fitting.em import Fit
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fitted_model import Drawn, FittedModel, Predictor
from nbmodels.fitting.holdout import compare_scores, held_out_by_fold
from nbmodels.fitting.identifiability import APART, POSSIBLE
from nbmodels.fitting.label_sources import class_prior, learned_priors
from nbmodels.fitting.nonlinear_classifier import NonlinearClassifier
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.plain import pseudo_bma
from nbmodels.fitting.propagation import calibrated, calibration
from nbmodels.fitting.reference import Reference
from nbmodels.fitting.scores import Candidate, with_score_prior

#: What ``chosen`` has where the reference's scores, or predictions, are in the place of a model's.
REFERENCE = "nonlinear classifier"

#: Advice about a poor model, which is none where several are compared already.
COMPARE = "; AutoNoisyClassifier may do better"

#: Probability from which on draws are of the reference's scores, too: the ends of an interval of
#: 90 % are at 5 % of the draws, and a smaller share hardly moves them.
_LEAST = 0.05

#: Learns a classifier from all labels, or from P(true class) as ``classes``; with ``(N, K)``
#: log-probabilities of the training items, see :func:`nbmodels.fitting.reference.learned_from_all`.
Learned = Callable[..., tuple[NonlinearClassifier, Float[np.ndarray, "n k"]]]

TAKEN = Caution(
    VerdictWarning,
    "this model of the features is poor: held-out labels are surely likelier under noise on the "
    "scores of a nonlinear classifier of the same features. So labels are corrected, and the noise "
    f"matrix is estimated, by that classifier{COMPARE}",
    "scores of a nonlinear classifier",
)

#: Name of a finding.
PREDICTIONS = "predictions of a nonlinear classifier"

THEIRS_TOO = Caution(VerdictWarning, "new items are predicted by that classifier, too", PREDICTIONS)

_STILL = "new items are still predicted by this model"

#: Of the model's own features, which then no longer count.
_OF_FEATURES = (
    UNINFORMATIVE,
    USELESS,
    PLAIN,
    UNINFORMATIVE_BESIDE_VOTES,
    UNINFORMATIVE_OF_SETS,
    DISAGREEING_WITH_VOTES,
)

#: Probability of given labels that the model's own classifier must lack for a warning, and standard
#: errors by which surely.
_WORSE, SURELY = 0.05, 2.0

#: The same where the model's features do not surely predict labels, so that nothing speaks for its
#: own predictions: the better classifier needs no evidence then. Of 105 such fits to 60 rows, whose
#: errors were random or not, new items were predicted 5 points better on average, and 3 % of the
#: fits lost more than 3.
_WORSE_UNINFORMATIVE, _NO_EVIDENCE = 0.01, 0.0

#: The same of a joint model with its noise: of some 60 of normal classes, whose errors followed
#: the features, none lacked more than 0.003 surely.
_WORSE_JOINTLY = 0.01


class NoiseOnReference(NamedTuple):
    """Noise on a reference's scores.

    Attributes:
        held_out: ``(N,)`` log-probability of each label by a fit that did not see it.
        fits: to all labels, under each form of the noise, the fit's own first.
        data: labels, and the reference's scores in the place of the features'.
    """

    held_out: Float[np.ndarray, " n"]
    fits: tuple[Fit, ...]
    data: Data

    def probability(
        self,
        reference: Reference,
        codes: Int[np.ndarray, " n"],
        rows: Any,
        weights: Float[np.ndarray, " m"],
        groups: Int[np.ndarray, " m"] | None,
    ) -> float:
        """Posterior probability that labels are noisy, against the better plain calibration.

        Args:
            reference: the predictions that it is of.
            codes: ``(N,)`` given labels, negative where there is none.
            rows: those that are compared.
            weights, groups: of these rows, see :func:`nbmodels.fitting.plain.pseudo_bma`.
        """
        ways = reference.held_out[rows], reference.recalibrated(codes)[rows]
        plain = max(ways, key=lambda one: float(weights @ one))
        return pseudo_bma(self.held_out[rows], plain, weights, groups)


def noise_on(
    logs: Float[np.ndarray, "n k"],
    fold: Int[np.ndarray, " n"],
    fitted: FittedModel,
    options: FitOptions,
    *,
    log_slope_sd: float = LOG_SLOPE_SD,
    bias_sd: float | None = None,
) -> NoiseOnReference | None:
    """The labels' model with another classifier's scores in the place of the features'.

    The scores' prior is built as any classifier's is, of log-probabilities that hold the class
    shares; votes that hold these in the fit hold them here. Called where the fit's precision holds.

    Args:
        logs: log-probabilities of the classes of each item, without its own label.
        fold: of each item, -1 where its label was not learned from.
        fitted: a fit to the labels, whose settings are those of its class shares, too.
        options: of the fits.
        log_slope_sd: prior standard deviation of the logarithm of the scores' slope.
        bias_sd: that of their biases; None for a wide one.

    Returns:
        None where a fit was interrupted.
    """
    n, length = len(logs), len(fitted.data.weights)
    # where the features were not informative, the noise is open in what draws are of
    own = fitted.fit if fitted.drawn is None else fitted.drawn[0]
    kept = {name: c for name, c in own.model.items() if name not in fitted.scored}
    here = jax.tree.map(on_device, fitted.data)
    parts = {name: here.parts[name] for name in kept if name != PRIOR}
    shares = class_prior(logs.shape[1], fitted.settings)
    labels = Candidate({**kept, PRIOR: shares}, models.with_parts(here, parts))
    scores = pad_rows(logs, length)
    scored, whole, _ = with_score_prior(labels, scores, log_slope_sd=log_slope_sd, bias_sd=bias_sd)
    prior: Any = scored[PRIOR]
    forms = [own, *(one.fit for one in fitted.alternatives)]
    found = []
    for form in forms:
        channel = {name: c for name, c in form.model.items() if name == "labels"}  # or votes alone
        model = jax.tree.map(on_device, {**scored, **channel})
        noise = {name: form.params[name] for name in model if name != PRIOR}
        start = jax.tree.map(on_device, {**noise, PRIOR: prior.prior})
        about = model, whole, learned_priors(model), options.without_restarts()
        found.append(fit_with_learned_priors(*about, start=start))
    padded = pad_rows(fold, length)
    padded[n:] = -1
    model, start = (jax.tree.map(on_device, at) for at in (found[0].model, found[0].params))
    # begun at the noise of all labels: the scores hold it, too, and few labels show none besides
    held_out = held_out_by_fold(model, whole, padded, options, start)
    if held_out is None or any(one.status == Status.INTERRUPTED for one in found):
        return None
    return NoiseOnReference(held_out[:n], tuple(found), jax.tree.map(np.asarray, whole))


def lead_of(
    scores: Float[np.ndarray, " n"],
    others: Float[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"] | None,
) -> float:
    """Standard errors by which held-out labels are likelier under the others."""
    pair = np.nan_to_num(scores), others
    found = compare_scores(pair, [True, True], weights, groups=groups)
    return float(found.gain[1] / max(found.standard_error[1], np.finfo(float).tiny))


def replaceable(fitted: FittedModel) -> bool:
    """Whether another classifier's scores may take the place of a fit's own.

    Neither self-training nor the class shares were given: such a fit stays what was asked for.
    """
    given = fitted.settings.get("class_prior") is not None
    return not given and fitted.settings.get("rounds") == "auto"


def with_draws_of(found: NoiseOnReference, fitted: FittedModel, probability: float) -> FittedModel:
    """The fit, a share of whose draws is of the noise on a reference's scores.

    Where held-out labels hardly tell which scores are the better covariate, an interval given one
    of them leaves out what is open between them (Bayesian model averaging). A warning names both
    shares of right labels where these differ. Called where the fit's precision holds.

    Args:
        found: noise on the reference's scores.
        fitted: the fit that stays.
        probability: that of the reference's scores, by held-out labels.
    """
    whole, *forms = found.fits
    if probability < _LEAST or whole.confused or fitted.drawn is not None:
        return fitted
    others = fitted.alternatives
    own = 1 - sum(one.probability for one in others)
    shares = own, *(one.probability for one in others)
    drawn = (
        *(one._replace(probability=(1 - probability) * one.probability) for one in others),
        *(
            Drawn(fit, found.data, probability * share)
            for fit, share in zip((whole, *forms), shares, strict=True)
        ),
    )
    right, instead = (
        float(np.diag(np.asarray(one.transitions["labels"], float)).mean())
        for one in (fitted.fit, whole)
    )
    cautions = fitted.cautions
    if probability >= POSSIBLE and abs(right - instead) >= APART:
        cautions = (*cautions, _undecided(right, instead))
    return replace(fitted, alternatives=drawn, cautions=cautions)


def _undecided(right: float, instead: float) -> Caution:
    return Caution(
        IdentifiabilityWarning,
        "the noise is hardly identified: held-out labels do not tell surely whether "
        f"{right:.0%} of the labels are right, as this model of the features has it, or "
        f"{instead:.0%}, as under the scores of a nonlinear classifier; posterior draws are "
        "averaged over both, corrected labels and noise matrix are by this model",
        "noise hardly identified",
    )


def with_noise_of(found: NoiseOnReference, fitted: FittedModel) -> FittedModel:
    """The fit with labels and noise by a reference's scores, and predictions as before.

    Args:
        found: noise on the reference's scores.
        fitted: the fit by its own scores.
    """
    n = len(fitted.fit.resp)
    own = fitted.fit if fitted.drawn is None else fitted.drawn[0]
    host = partial(jax.tree.map, np.asarray)
    whole, *forms = found.fits
    emissions = {name: fitted.fit.params[name] for name in fitted.scored}
    first = replace(
        whole,
        model={**fitted.fit.model, **host(whole.model)},
        params={**emissions, **host(whole.params)},
        resp=np.asarray(whole.resp)[:n],
        log_likelihood=np.asarray(whole.log_likelihood)[:n],
    )
    others = tuple(
        Drawn(fit, found.data, one.probability)
        for fit, one in zip(forms, fitted.alternatives, strict=True)
    )
    before = {*fitted.fit.cautions(fitted.names), *_OF_FEATURES}
    cautions = (one for one in fitted.cautions if one not in before)
    return replace(
        fitted,
        fit=first,
        data=found.data,
        plain=calibration(own) if fitted.plain is None else fitted.plain,
        chosen={**fitted.chosen, "scores": REFERENCE},
        alternatives=others,
        drawn=None,
        ranked=None,
        cautions=(*cautions, *first.cautions(fitted.names), TAKEN),
    )


def with_predictions_of(
    reference: Reference,
    fitted: FittedModel,
    codes: Int[np.ndarray, " n"],
    learn: Learned | None,
) -> FittedModel:
    """The fit, by whose reference new items are predicted where that is surely the better way.

    Where labels are those on the reference's scores, new items are, too, and it learns again from
    the classes that were found. Elsewhere they are where it gives the held-out given labels a
    surely larger mean probability than the model's own plain classifier, and than the model with
    its noise: probabilities show more than hits do. Where the features are not informative to the
    model, it is enough that the probability is larger.

    Args:
        reference: the nonlinear classifier's predictions.
        fitted: a cut fit to the same labels; one of a joint model, which was compared with a cut
            fit, predicts itself and has a caution; any other is as it was.
        codes: ``(N,)`` given labels, negative where there is none.
        learn: learns the classifier from all labels, and predicts all rows; None where the model is
            to predict itself, which is warned of where its labels are those on the reference's
            scores.
    """
    if fitted.data.parts.get(PRIOR) is None:
        means = poorer_jointly(fitted, reference, codes)
        jointly = [] if means is None else [_jointly_poor(*means)]
        return replace(fitted, cautions=(*fitted.cautions, *jointly))
    whole = {PRIOR, "labels", "trusted", *fitted.scored}
    if not set(fitted.data.parts) <= whole or not replaceable(fitted):
        return fitted
    taken = fitted.chosen.get("scores") == REFERENCE
    own = fitted.plain_scores, None if taken else fitted.held_out_scores
    least, errors = _WORSE, SURELY
    if fitted.as_given:
        least, errors = _WORSE_UNINFORMATIVE, _NO_EVIDENCE
    means = _surely_poorer(fitted, own, reference, codes, least, errors)
    if means is None and not (taken and learn):
        return fitted
    if learn is None:
        poor = (poor_predictions(*means),) if taken and means is not None else ()
        return replace(fitted, cautions=(*fitted.cautions, *poor))
    before = fitted.cautions
    if taken or means is None:
        stated = THEIRS_TOO
    elif fitted.as_given:
        before = tuple(replace(one, message=one.message.replace(BY_PLAIN, "")) for one in before)
        stated = _of_given_labels(*means)
    else:
        stated = by_the_reference(*means)
    return replace(
        fitted,
        predictor=_predictor(fitted, learn, taken),
        chosen={**fitted.chosen, "predictions": REFERENCE},
        cautions=(*before, stated),
    )


def _predictor(fitted: FittedModel, learn: Learned, taken: bool) -> Predictor:
    """Of the classes that were found where labels are those on its scores, else of given labels."""
    classifier, logs = learn(classes=fitted.label_posterior if taken else None)
    of_items = calibrated(logs, calibration_of_reference(fitted))
    return Predictor(classifier, of_items, np.zeros(1 + len(fitted.names)))


def calibration_of_reference(fitted: FittedModel) -> Float[np.ndarray, " k1"]:
    """``(1 + K,)`` by which a reference's scores are those of true classes.

    That of the noise on them, where labels are surely those and likelier noisy than not.
    """
    noisy = fitted.chosen.get("scores") == REFERENCE and fitted.noisy >= 0.5
    return calibration(fitted.fit) if noisy else np.zeros(1 + len(fitted.names))


def poorer_jointly(
    fitted: FittedModel, reference: Reference, codes: Int[np.ndarray, " n"]
) -> tuple[float, float] | None:
    """Mean probability of the held-out given labels by a joint model and the reference.

    None where the former is not surely less, or was not found.

    Args:
        fitted: a joint fit.
        reference, codes: those of :func:`with_predictions_of`.
    """
    own = (fitted.held_out_scores,)
    return _surely_poorer(fitted, own, reference, codes, _WORSE_JOINTLY)


def _surely_poorer(
    fitted: FittedModel,
    scores: Sequence[Float[np.ndarray, " n"] | None],
    reference: Reference,
    codes: Int[np.ndarray, " n"],
    least: float = _WORSE,
    errors: float = SURELY,
) -> tuple[float, float] | None:
    """Mean probability of the held-out given labels by the model's own features and the reference.

    None where the former is not surely less.

    Args:
        fitted: the fit.
        scores: ``(N,)`` log-probability of each label by the model in several ways, of which the
            best one counts; None of a way that there is not, and of the first one if there is no
            comparison.
        reference, codes: those of :func:`with_predictions_of`.
        least: probability that it must lack, by so many standard ``errors``.
        errors: 0 where that need not be sure.
    """
    if scores[0] is None:
        return None
    ways = [one for one in scores if one is not None]
    free = ~checked_rows(fitted.fit.model, fitted.data, len(codes))
    rows = (codes >= 0) & free & np.isfinite([reference.held_out, *ways]).all(0)
    if not rows.any():
        return None
    weights = np.asarray(fitted.data.weights, float)[: len(codes)][rows]
    groups = None if fitted.copies is None else fitted.copies[rows]
    best = max((one[rows] for one in ways), key=lambda one: float(weights @ np.exp(one)))
    # a reference that has learned from checked labels has larger probabilities than noise leaves to
    # given ones, and a mean rewards it; the logarithm is a proper score (Gneiting and Raftery 2007)
    if not free.all() and weights @ (reference.held_out[rows] - best) <= 0:
        return None
    pair = np.exp(best), np.exp(reference.held_out[rows])
    return surely_poorer(*pair, weights, groups, least, errors)


def surely_poorer(
    own: Float[np.ndarray, " n"],
    theirs: Float[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"] | None,
    least: float = _WORSE,
    errors: float = SURELY,
) -> tuple[float, float] | None:
    """Two classifiers' mean probabilities of held-out labels; None where the first is not less.

    Args:
        own, theirs: probability of each label.
        weights, groups: see :func:`nbmodels.fitting.holdout.compare_scores`.
        least: difference that counts.
        errors: standard errors by which it must be larger.
    """
    found = compare_scores((own, theirs), [True, True], weights, groups=groups)
    if found.gain[1] - errors * found.standard_error[1] < least:
        return None
    before, instead = found.log_likelihood
    return float(before), float(instead)


def of_reference(cautions: Sequence[Caution]) -> tuple[Caution, ...]:
    """Those that state where a reference is in the place of a model, or is better."""
    findings = {TAKEN.finding, PREDICTIONS}
    return tuple(c for c in cautions if c.finding in findings or c.message.startswith(_STILL))


def poor_predictions(
    own: float, theirs: float, of: str = "held-out given labels", without: str = " without noise"
) -> Caution:
    """New items are predicted by the poor model: mean probabilities by it and a reference."""
    return Caution(
        VerdictWarning,
        f"{_STILL}, learned from the corrected labels, whose features give the {of} a mean "
        f"probability of {own:.2f}{without}; a nonlinear classifier of the same features, by which "
        f"labels and noise are estimated, gives them {theirs:.2f}{COMPARE}",
    )


def _jointly_poor(own: float, theirs: float) -> Caution:
    """New items are predicted by a joint model that is a poor classifier."""
    return Caution(
        VerdictWarning,
        f"{_STILL}, fitted jointly, under which held-out given labels have a mean probability of "
        f"{own:.2f}; a nonlinear classifier of the same features gives them {theirs:.2f} without "
        f"noise{COMPARE}",
    )


def _of_given_labels(own: float, theirs: float) -> Caution:
    """New items are predicted by a reference where no features surely predict labels."""
    return Caution(
        VerdictWarning,
        f"{BY_NONLINEAR} held-out ones a mean probability of {theirs:.2f}, where the plain "
        f"classifier gives them {own:.2f}",
        PREDICTIONS,
    )


def by_the_reference(own: float, theirs: float) -> Caution:
    """New items are predicted by a reference: mean probabilities by the poor model and by it."""
    return Caution(
        VerdictWarning,
        "this model of the features is poor: it gives the held-out given labels a mean probability "
        f"of {own:.2f}, and a nonlinear classifier of the same features "
        f"{theirs:.2f}. So new items are predicted by that classifier{COMPARE}",
        PREDICTIONS,
    )
