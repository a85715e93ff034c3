"""Model checking after every fit: which assumptions do the fit's own data contradict?

Naive Bayes trusts its features too much where its assumptions fail: EM leaves the given labels and
clusters the features, and posteriors lie near zero and one. Here a fit is compared with its own
data, on the host and without another fit:

- do features and labels agree, out of fold, as often as the fit expects?
- are the posteriors calibrated? The score test of a power of the likelihood, at the power 1;
- are columns independent given the class, their tails normal, words not repeated?
- do labels depend on the features beyond the true class?
- are several annotators' votes independent given the class?
- do labels and features suit class shares that were given?
- did classes dissolve, did random starts reach another solution?

A finding is bad if it is significant and large enough to matter: with half a million rows every
deviation is significant. A finding about an assumption is for information only where the fit
discounts the features' log-likelihood anyway (``weight`` other than 1, or cross-fitting).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from nbmodels.core.model import PRIOR, Data, with_role
from nbmodels.core.roles import Emission
from nbmodels.diagnostics.check_input import (
    CheckInput,
    check_input,
    checked_labels,
    confirmed,
    outcome_of,
    two_ends,
)
from nbmodels.diagnostics.checks import (
    CHECKED_CHECKS,
    CONFIRMED_CHECKS,
    END_CHECKS,
    FEATURE_CHECKS,
    LABEL_CHECKS,
    OUTCOME_CHECKS,
    SHARE_CHECKS,
    VOTE_CHECKS,
    Outcome,
)
from nbmodels.diagnostics.checks.base import run
from nbmodels.diagnostics.checks.checked import LEAST
from nbmodels.diagnostics.checks.remedies import (
    AUDIT,
    AUTO,
    CROSS_FIT,
    NEIGHBOURS,
    OPEN_GRAPH,
    OTHER_EMISSION,
    SMALLER_WEIGHT,
    SYMMETRIC_NOISE,
    TRUSTED,
    open_to,
)
from nbmodels.diagnostics.findings import Finding, Verdict, about_edges, taken_into_account
from nbmodels.diagnostics.score_tests import Scores, omnibus
from nbmodels.diagnostics.share_wrong import BOUNDED_BELOW, ShareLimits
from nbmodels.errors import Caution
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.separable import Separable
from nbmodels.fitting.vote_dependence import VoteDependence


def check_model(
    fit: Fit,
    data: Data,
    names: Any,
    columns: Mapping[str, Sequence[str]],
    *,
    collapsed: bool = False,
    crossed: tuple[FittedModel, FittedModel] | None = None,
    label_posterior: Float[np.ndarray, "n k"] | None = None,
    share_wrong: float | None = None,
    separable: Separable | None = None,
    vote_dependence: VoteDependence | None = None,
    reference: Int[np.ndarray, " n"] | None = None,
    corrected: Int[np.ndarray, " n"] | None = None,
    limits: ShareLimits = BOUNDED_BELOW,
    cautions: Sequence[Caution] = (),
    of_graph: bool = False,
    advised: tuple[str, Collection[str]] | None = None,
    shares: Float[np.ndarray, " k"] | None = None,
) -> Verdict:
    """All checks of a fit.

    Args:
        fit: the fit, without padded rows.
        data: what it was fitted to, on the host; it may have padded rows of weight 0.
        names: ``(K,)`` names of the classes.
        columns: names of the columns of each emission.
        collapsed: whether responsibilities are from collapsed updates on a graph, and not of one
            joint model; then only the outcome can be checked.
        crossed: a joint fit to a graph and a cross-fitted one, with scores of held-out labels; None
            where there are not both.
        label_posterior: P(true class) as it is reported, where that is not the fit's own.
        share_wrong: expected share of wrong labels, where that is not the posterior's.
        separable: the model of the same labels whose classes are functions of the features.
        vote_dependence: how far several annotators' votes depend on each other, where known.
        reference: ``(N,)`` class that the features point to, learned from other items' labels, -1
            where it was not; None where there is none yet.
        corrected: ``(N,)`` true class by that classifier, corrected for errors with a direction
            (:func:`nbmodels.fitting.changed_labels.true_classes`), or None.
        limits: what limits the share of wrong labels.
        cautions: of the fit; those that are findings of what it takes into account are stated.
        of_graph: whether items are known by their edges alone, and have no features.
        advised: name of the estimator that remedies are for, and of what can be set there
            (:func:`nbmodels.diagnostics.checks.remedies.open_to`); None to give all of them.
        shares: ``(K,)`` class shares that were given, or None.
    """
    reported = fit if label_posterior is None else replace(fit, resp=label_posterior)
    checked = checked_labels(fit, data, separable)
    outcome = outcome_of(reported, data, names)
    kept = _kept(outcome_of(fit, data, names), outcome)
    outcome = replace(outcome, kept=kept, limits=limits, share=share_wrong)
    ends = (
        None
        if separable is None
        else two_ends(fit, data, reported.resp, separable, share_wrong, reference, outcome.expected)
    )
    if ends is not None and checked is not None:
        ends = replace(ends, checked=checked.ends)
    outcome = replace(outcome, ends=ends)
    findings = list(run(OUTCOME_CHECKS, outcome))
    if ends is not None:
        findings = [*run(END_CHECKS, ends), *findings]
    if not collapsed:
        known = None if of_graph else shares
        found = check_input(fit, data, names, columns, reference, corrected, known is not None)
        if len(found.weights):
            # a fit that does not use the features predicts no label by them
            of_labels = _of_labels(found) if limits.estimated else ()
            beside = None if known is None else found.shares(known)
            of_shares = () if beside is None else run(SHARE_CHECKS, beside)
            findings = [*of_shares, *of_labels, *_of_features(found), *findings]
    if crossed is not None:
        findings = [*run(CONFIRMED_CHECKS, confirmed(*crossed)), *findings]
    if checked is not None:
        findings = [*run(CHECKED_CHECKS, checked), *findings]
    if vote_dependence is not None:
        findings = [*run(VOTE_CHECKS, vote_dependence), *findings]
    findings += [taken_into_account(one) for one in cautions if one.finding]
    taken = _taken(fit, data)
    # one error rate does not keep a graph's factors from rewarding one class for all
    taken.add(SYMMETRIC_NOISE if collapsed else OPEN_GRAPH)
    if of_graph:
        # estimators of tables take no graph
        taken |= {NEIGHBOURS, AUTO, OTHER_EMISSION}
        findings = [about_edges(one) for one in findings]
    return Verdict(tuple(_advising(f, taken, advised) for f in findings))


def check_outcome(fit: Fit, data: Data, names: Any) -> Verdict:
    """The checks of the outcome alone; arguments as in :func:`check_model`."""
    return Verdict(tuple(run(OUTCOME_CHECKS, outcome_of(fit, data, names))))


def check_features(
    fit: Fit, data: Data, names: Any, columns: Mapping[str, Sequence[str]]
) -> Verdict:
    """The checks of the features' model alone; arguments as in :func:`check_model`."""
    return Verdict(tuple(_of_features(check_input(fit, data, names, columns))))


def features_p_value(
    fit: Fit, data: Data, names: Any, columns: Mapping[str, Sequence[str]]
) -> float:
    """p-value of the features' model: of its columns' independence and shape, classes together.

    Two omnibus tests, Bonferroni's correction: of all pairs of columns, and of all tails and signs.
    Of few rows they refute a model in which no single column or pair is surely off. Arguments as in
    :func:`check_model`.
    """
    pairs, shapes = [], []
    for _, one in check_input(fit, data, names, columns).emissions():
        found = one.scores
        pairs += [_together(s) for s in (found.products, found.repeated) if s is not None]
        shapes += [_together(s) for s in (found.size, found.sign) if s is not None]
    return min(1.0, 2 * min(omnibus(pairs), omnibus(shapes)))


def _together(scores: Scores) -> Scores:
    """Tests of all classes together, the last on the first axis."""
    parts = scores.total, scores.square, scores.unit
    return Scores(*(part[-1] if np.ndim(part) else part for part in parts))


def check_labels(fit: Fit, data: Data, names: Any, columns: Mapping[str, Sequence[str]]) -> Verdict:
    """The checks of the labels given the features alone; arguments as in :func:`check_model`."""
    return Verdict(tuple(_of_labels(check_input(fit, data, names, columns))))


def _of_labels(found: CheckInput) -> Iterator[Finding]:
    labels = found.labels()
    return iter(()) if labels is None else run(LABEL_CHECKS, labels)


def _of_features(found: CheckInput) -> Iterator[Finding]:
    for name, emission in found.emissions():
        for finding in run(FEATURE_CHECKS, emission):
            # a discounted emission is used for less than its model of the features would allow
            informative = finding.bad and name in found.discounted
            yield replace(finding, bad=False, remedies=()) if informative else finding


def _taken(fit: Fit, data: Data) -> set[str]:
    """Remedies that are taken already, or that are none for a model without features' densities."""
    taken = {CROSS_FIT} if data.parts.get(PRIOR) is not None else set()
    emissions = with_role(fit.model, Emission)
    if not emissions:
        taken.add(OTHER_EMISSION)
    if data.parts.get(PRIOR) is not None and not emissions.keys() & data.parts.keys():
        taken.add(SMALLER_WEIGHT)  # scores in the place of the features, with a weight of their own
    if checked_rows(fit.model, data, len(fit.resp)).sum() >= LEAST:
        taken |= {AUDIT, TRUSTED}
    return taken


def _advising(
    finding: Finding, taken: set[str], advised: tuple[str, Collection[str]] | None
) -> Finding:
    """With the remedies that are left; an audit where a failed check has no other."""
    left = tuple(one for one in finding.remedies if one not in taken)
    if advised is not None:
        left = open_to(left, *advised)
    if finding.bad and finding.remedies and not left and AUDIT not in taken:
        left = (AUDIT,)
    return replace(finding, remedies=left)


def _kept(alone: Outcome, reported: Outcome) -> float:
    """Share of the given labels that a fit alone would change, and that stay as they are."""
    if not len(alone.codes):
        return 0.0
    first, second = (at.resp.argmax(1) != at.codes for at in (alone, reported))
    return float(np.average(first & ~second, weights=alone.weights))
