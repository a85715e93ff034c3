"""Model checking after every fit: which assumptions do the fit's own data contradict?

Naive Bayes trusts its features too much where its assumptions fail: EM leaves the given labels and
clusters the features, and posteriors lie near zero and one. Here a fit is compared with its own
data, on the host and without another fit:

- do features and labels agree, out of fold, as often as the fit expects?
- are the posteriors calibrated? The score test of a power of the likelihood, at the power 1;
- are columns independent given the class, their tails normal, words not repeated?
- do labels depend on the features beyond the true class?
- are several annotators' votes independent given the class?
- did classes dissolve, did random starts reach another solution?

A finding is bad if it is significant and large enough to matter: with half a million rows every
deviation is significant. A finding about an assumption is for information only where the fit
discounts the features' log-likelihood anyway (``weight`` other than 1, or cross-fitting).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from nbmodels.core import model as models
from nbmodels.core.component import Given
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model, with_role
from nbmodels.core.residuals import Residuals
from nbmodels.core.roles import Emission
from nbmodels.diagnostics.checks import (
    CHECKED_CHECKS,
    CONFIRMED_CHECKS,
    END_CHECKS,
    FEATURE_CHECKS,
    LABEL_CHECKS,
    OUTCOME_CHECKS,
    VOTE_CHECKS,
    CheckedLabels,
    Confirmed,
    EmissionEvidence,
    Ends,
    LabelEvidence,
    Outcome,
)
from nbmodels.diagnostics.checks.base import run
from nbmodels.diagnostics.checks.checked import LEAST
from nbmodels.diagnostics.checks.labels import without_own_label
from nbmodels.diagnostics.checks.remedies import (
    AUDIT,
    AUTO,
    CROSS_FIT,
    NEIGHBOURS,
    OPEN_GRAPH,
    OTHER_EMISSION,
    SYMMETRIC_NOISE,
    TRUSTED,
    open_to,
)
from nbmodels.diagnostics.findings import Finding, Verdict, about_edges, taken_into_account
from nbmodels.diagnostics.score_tests import Scores, of_columns, omnibus
from nbmodels.diagnostics.share_wrong import BOUNDED_BELOW, ShareLimits
from nbmodels.errors import Caution
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.em import Fit
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.reference import out_of_fold_predictions
from nbmodels.fitting.separable import Separable
from nbmodels.fitting.vote_dependence import VoteDependence

#: Residuals that are held at once, and columns and rows that are looked at.
_CELLS, _COLUMNS, _MOST_ROWS, _LEAST_ROWS = 4_000_000, 32, 20_000, 2_000


@dataclass(frozen=True)
class CheckInput:
    """The rows and columns of a fit that are checked, on the host.

    Attributes:
        resp: ``(n, K)`` responsibilities.
        weights: ``(n,)`` row weights, above 0.
        codes: ``(n,)`` given labels, negative where missing; None where there is no such channel.
        transition: ``(K, K)`` P(observed | true); None likewise.
        one_rate: whether the transition was fitted with one error rate for all pairs of classes.
        names: ``(K,)`` names of the classes.
        features: what each emission leaves unexplained, by its name.
        columns: names of the columns of each emission.
        discounted: emissions whose log-likelihood does not count in full.
        reference: ``(n,)`` class that the features point to, learned out of fold, -1 where it was
            not; None where it is still to be learned.
        nonlinear: ``(n,)`` the same by a nonlinear classifier, where ``reference`` is the model's
            own, or None.
        corrected: ``(n,)`` true class by that classifier, corrected for errors with a direction, or
            None.
    """

    resp: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"] | None
    transition: Float[np.ndarray, "k k"] | None
    one_rate: bool
    names: Any
    features: Mapping[str, Residuals]
    columns: Mapping[str, Sequence[str]]
    discounted: frozenset[str]
    reference: Int[np.ndarray, " n"] | None = None
    nonlinear: Int[np.ndarray, " n"] | None = None
    corrected: Int[np.ndarray, " n"] | None = None

    def labels(self) -> LabelEvidence | None:
        """The items with a given label; None with less than two of them."""
        if self.codes is None or self.transition is None or (self.codes >= 0).sum() < 2:
            return None
        known = self.codes >= 0
        reference = self.reference
        if reference is None:
            plain = [one.plain for one in self.features.values()]
            reference = out_of_fold_predictions(plain, self.codes, len(self.transition))
        return LabelEvidence(
            without_own_label(self.resp, self.codes, self.transition)[known],
            self.resp[known],
            self.weights[known],
            self.codes[known],
            self.transition,
            None if reference is None else reference[known],
            self.one_rate,
            None if self.nonlinear is None else self.nonlinear[known],
            None if self.corrected is None else self.corrected[known],
        )

    def emissions(self) -> Iterator[tuple[str, EmissionEvidence]]:
        """What each emission leaves unexplained, by its name."""
        for name, one in self.features.items():
            scores = of_columns(one, self.resp, self.weights, self.codes, self.transition)
            columns = [str(self.columns[name][j]) for j in one.columns]
            yield name, EmissionEvidence(one, scores, columns, self.names)


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
    """
    reported = fit if label_posterior is None else replace(fit, resp=label_posterior)
    checked = checked_labels(fit, data, separable)
    ends = (
        None
        if separable is None
        else two_ends(fit, reported.resp, separable, share_wrong, reference)
    )
    if ends is not None and checked is not None:
        ends = replace(ends, checked=checked.ends)
    outcome = _outcome(reported, data, names)
    kept = _kept(_outcome(fit, data, names), outcome)
    outcome = replace(outcome, ends=ends, kept=kept, limits=limits, share=share_wrong)
    findings = list(run(OUTCOME_CHECKS, outcome))
    if ends is not None:
        findings = [*run(END_CHECKS, ends), *findings]
    if not collapsed:
        found = check_input(fit, data, names, columns, reference, corrected)
        if len(found.weights):
            findings = [*_of_labels(found), *_of_features(found), *findings]
    if crossed is not None:
        findings = [*run(CONFIRMED_CHECKS, _confirmed(*crossed)), *findings]
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
    return Verdict(tuple(run(OUTCOME_CHECKS, _outcome(fit, data, names))))


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


def checked_labels(
    fit: Fit, data: Data, separable: Separable | None = None
) -> CheckedLabels | None:
    """The given labels that were checked by hand, beside what the fit makes of them otherwise.

    Args:
        fit: the fit.
        data: what it was fitted to, on the host.
        separable: the model of the same labels whose classes are functions of the features.

    Returns:
        None where no given label was checked.
    """
    if "trusted" not in data.parts or "labels" not in data.parts:
        return None
    n, k = fit.resp.shape
    given, true = (np.asarray(data.parts[name])[:n] for name in ("labels", "trusted"))
    counted = (given < k) & (np.asarray(data.weights)[:n] > 0)
    rows = np.flatnonzero(checked_rows(fit.model, data, n) & counted)
    if not len(rows):
        return None
    model = {name: c for name, c in fit.model.items() if name != "trusted"}
    parts = {name: part for name, part in data.parts.items() if name != "trusted"}
    resp = np.asarray(_posterior(model, fit.params, replace(data, parts=parts), fit.rule), float)
    right = resp[rows, given[rows]] / resp[rows].sum(1)
    other = np.full(n, np.nan)
    if separable is not None:
        own = separable.unchecked[np.arange(len(separable.codes)), separable.codes]
        other[separable.rows] = 1 - own
    mended = resp[rows].argmax(1) == true[rows]
    return CheckedLabels(given[rows] != true[rows], 1 - right, mended, other[rows])


@partial(jax.jit, static_argnames="rule")
def _posterior(model: Model, params: Any, data: Data, rule: Rule) -> Any:
    of_model = {name: params[name] for name in model}
    here = {name: c for name, c in model.items() if name in data.parts}
    return models.posterior(here, models.likelihood_params(here, of_model, rule), data).resp


def two_ends(
    fit: Fit,
    reported: Float[np.ndarray, "n k"],
    separable: Separable,
    share_wrong: float | None = None,
    reference: Int[np.ndarray, " n"] | None = None,
) -> Ends:
    """A fit beside the model whose classes are functions of the features.

    Args:
        fit: the fit.
        reported: ``(N, K)`` P(true class) as it is reported.
        separable: the other model of the same labels.
        share_wrong: expected share of wrong labels, where that is not of ``reported``.
        reference: see :func:`check_model`.
    """
    transition = np.asarray(fit.transitions["labels"], float)
    transition = transition / transition.sum(1, keepdims=True)
    rows, codes = separable.rows, separable.codes
    resp = np.asarray(fit.resp, float)[rows]
    resp = resp / resp.sum(1, keepdims=True)
    rates = np.exp(without_own_label(resp, codes, transition)) @ transition
    seen = rates[np.arange(len(codes)), codes]
    weights = separable.weights
    right = reported[rows, codes] / reported[rows].sum(1)
    shares = np.average(reported[rows] / reported[rows].sum(1, keepdims=True), 0, weights)
    predicted = np.full(len(codes), -1) if reference is None else reference[rows]
    seen_by = predicted >= 0
    contradicted = np.nan
    if weights[seen_by].sum():
        hits = predicted[seen_by] == codes[seen_by]
        contradicted = 1 - float(np.average(hits, weights=weights[seen_by]))
    changed = reported[rows].argmax(1) != codes
    shape, near = separable.by_shape, separable.by_shape.near_borders
    return Ends(
        float(1 - np.average(right, weights=weights)) if share_wrong is None else share_wrong,
        separable.share_wrong,
        separable.without_own - np.log(np.maximum(seen, np.finfo(float).tiny)),
        separable.without_own - separable.by_shares,
        weights,
        matrix=float(1 - shares @ np.diag(transition)),
        shape=near.share_wrong if near.likelier else shape.share_wrong,
        changed=float(np.average(changed, weights=weights)),
        contradicted=contradicted,
        widest=(separable.widest or separable).share_wrong,
    )


def _confirmed(joint: FittedModel, crossed: FittedModel) -> Confirmed:
    """A joint fit to a graph beside a cross-fitted one."""
    n = len(joint.fit.resp)
    codes, weights = given_codes(joint), np.asarray(joint.data.weights)[:n]
    rows = np.flatnonzero((codes >= 0) & ~checked_rows(joint.fit.model, joint.data, n))
    scores = [np.asarray(one.held_out_scores)[rows] for one in (joint, crossed)]
    wrong = [1 - one.label_posterior[rows, codes[rows]] for one in (joint, crossed)]
    shares = [float(np.average(one, weights=weights[rows])) for one in wrong]
    return Confirmed(scores[0], scores[1], weights[rows], (shares[0], shares[1]))


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
    if not with_role(fit.model, Emission):
        taken.add(OTHER_EMISSION)
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


def _outcome(fit: Fit, data: Data, names: Any) -> Outcome:
    n, k = fit.resp.shape
    weights = np.asarray(data.weights, float)[:n]
    codes, known = np.zeros(n, int), np.zeros(n, bool)
    if "labels" in data.parts:
        codes = np.asarray(data.parts["labels"])[:n]
        known = (codes < k) & (weights > 0)
    return Outcome(
        fit.resp[known],
        weights[known],
        codes[known],
        names,
        "trusted" in data.parts,
        tuple(fit.restarts),
        float(weights.sum()),
    )


def check_input(
    fit: Fit,
    data: Data,
    names: Any,
    columns: Mapping[str, Sequence[str]],
    reference: Int[np.ndarray, " n"] | None = None,
    corrected: Int[np.ndarray, " n"] | None = None,
) -> CheckInput:
    """The rows and columns that are checked; the same ones each time.

    Args:
        fit: as :func:`check_model` takes it.
        data: likewise.
        names: likewise.
        columns: likewise.
        reference: likewise.
        corrected: likewise.
    """
    n, k = fit.resp.shape
    weights = np.asarray(data.weights, float)[:n]
    rows = np.flatnonzero(weights > 0)
    width = min(_COLUMNS, max(map(len, columns.values()), default=1))
    most = int(np.clip(_CELLS // (k * width), _LEAST_ROWS, _MOST_ROWS))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(len(rows)).permutation(rows)[:most])
    codes = transition = None
    one_rate = False
    if "labels" in data.parts:
        channel: Any = fit.model["labels"]
        codes = np.asarray(data.parts["labels"])[rows]
        codes = np.where(codes < k, codes, -1)
        transition = np.asarray(fit.transitions["labels"], float)
        one_rate = not isinstance(channel, Given) and _has_one_rate(transition)
        transition = transition / transition.sum(1, keepdims=True)
    parts = {name: data.parts[name] for name in columns if name in data.parts}
    # compiled, and needed for features only
    point = jax.tree.map(np.asarray, fit.point) if parts else {}
    emissions = with_role(fit.model, Emission)
    features = {
        name: one
        for name, part in parts.items()
        if (one := emissions[name].residuals(point[name], part, rows, _COLUMNS)) is not None
    }
    discounted = frozenset(
        name for name in features if not np.all(np.asarray(fit.model[name].weight) == 1)
    )
    scores = data.parts.get(PRIOR)
    nonlinear = None
    reference = None if reference is None else reference[rows]
    if scores is not None:  # a calibrated class prior holds out-of-fold scores already
        nonlinear, reference = reference, np.argmax(np.asarray(scores)[rows], 1)
        # scores that are that classifier's own compare with nothing
        if nonlinear is not None and np.all((nonlinear == reference) | (nonlinear < 0)):
            nonlinear = None
    resp = np.asarray(fit.resp, float)[rows]
    return CheckInput(
        resp / resp.sum(1, keepdims=True),
        weights[rows],
        codes,
        transition,
        one_rate,
        names,
        features,
        columns,
        discounted,
        reference,
        nonlinear,
        None if nonlinear is None or corrected is None else corrected[rows],
    )


def _has_one_rate(transition: np.ndarray) -> bool:
    """Whether the diagonal and the rest of a ``(K, K)`` transition hold one value each."""
    same = np.eye(len(transition), dtype=bool)
    return bool(np.ptp(transition[same]) == 0 and np.ptp(transition[~same]) == 0)
