"""What the checks of a fit are given: rows and columns, checked labels, both ends, the outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from nbmodels.core import model as models
from nbmodels.core.component import Given
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model, with_role
from nbmodels.core.residuals import Residuals
from nbmodels.core.roles import Emission
from nbmodels.diagnostics.checks import (
    CheckedLabels,
    Confirmed,
    EmissionEvidence,
    Ends,
    KnownShares,
    LabelEvidence,
    Outcome,
)
from nbmodels.diagnostics.checks.labels import label_rates, without_own_label
from nbmodels.diagnostics.checks.shares import noise_scores, slope_scores
from nbmodels.diagnostics.score_tests import of_columns
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.em import Fit
from nbmodels.fitting.errors_by_size import relative_rates
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.reference import out_of_fold_predictions
from nbmodels.fitting.separable import Separable

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
        noise_known: whether it was not fitted.
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
        prior: ``(n, K)`` probabilities of the classes before the label, and what a slope adds to
            their logarithms or None; None where class shares were learned.
        relative: ``(n,)`` error rate of each label beside that of all; None where they are alike.
    """

    resp: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"] | None
    transition: Float[np.ndarray, "k k"] | None
    one_rate: bool
    noise_known: bool
    names: Any
    features: Mapping[str, Residuals]
    columns: Mapping[str, Sequence[str]]
    discounted: frozenset[str]
    reference: Int[np.ndarray, " n"] | None = None
    nonlinear: Int[np.ndarray, " n"] | None = None
    corrected: Int[np.ndarray, " n"] | None = None
    prior: tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k"] | None] | None = None
    relative: Float[np.ndarray, " n"] | None = None

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
            without_own_label(self.resp, self.codes, self.transition, self.relative)[known],
            self.resp[known],
            self.weights[known],
            self.codes[known],
            self.transition,
            None if reference is None else reference[known],
            self.one_rate,
            None if self.nonlinear is None else self.nonlinear[known],
            None if self.corrected is None else self.corrected[known],
            None if self.relative is None else self.relative[known],
        )

    def shares(self, given: Float[np.ndarray, " k"]) -> KnownShares | None:
        """The items beside class shares that were given; None where labels are not of one source.

        Args:
            given: ``(K,)`` shares.
        """
        if self.prior is None or self.codes is None or self.transition is None:
            return None
        probs, sloped = self.prior
        estimated = []
        if not self.noise_known:
            estimated.append(noise_scores(self.resp, self.codes, self.transition, self.one_rate))
        if sloped is not None:
            estimated.append(slope_scores(self.resp, probs, sloped))
        scores = np.hstack([np.empty((len(probs), 0)), *(one for one, _ in estimated)])
        precision = np.concatenate([np.empty(0), *(one for _, one in estimated)])
        of_scores = sloped is not None
        return KnownShares(
            self.resp, probs, self.weights, scores, precision, given, of_scores, self.names
        )

    def emissions(self) -> Iterator[tuple[str, EmissionEvidence]]:
        """What each emission leaves unexplained, by its name."""
        for name, one in self.features.items():
            scores = of_columns(one, self.resp, self.weights, self.codes, self.transition)
            columns = [str(self.columns[name][j]) for j in one.columns]
            yield name, EmissionEvidence(one, scores, columns, self.names)


def check_input(
    fit: Fit,
    data: Data,
    names: Any,
    columns: Mapping[str, Sequence[str]],
    reference: Int[np.ndarray, " n"] | None = None,
    corrected: Int[np.ndarray, " n"] | None = None,
    shares_known: bool = False,
) -> CheckInput:
    """The rows and columns that are checked; the same ones each time.

    Args:
        fit: as :func:`nbmodels.diagnostics.check.check_model` takes it.
        data: likewise.
        names: likewise.
        columns: likewise.
        reference: likewise.
        corrected: likewise.
        shares_known: likewise.
    """
    n, k = fit.resp.shape
    weights = np.asarray(data.weights, float)[:n]
    rows = np.flatnonzero(weights > 0)
    width = min(_COLUMNS, max(map(len, columns.values()), default=1))
    most = int(np.clip(_CELLS // (k * width), _LEAST_ROWS, _MOST_ROWS))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(len(rows)).permutation(rows)[:most])
    codes = transition = relative = None
    one_rate = noise_known = False
    if "labels" in data.parts:
        channel: Any = fit.model["labels"]
        codes = np.asarray(data.parts["labels"])[rows]
        codes = np.where(codes < k, codes, -1)
        relative = relative_rates(data, codes, rows)
        transition = np.asarray(fit.transitions["labels"], float)
        noise_known = isinstance(channel, Given)
        one_rate = not noise_known and _has_one_rate(transition)
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
    # labels of neighbours and votes of several sources have parameters of their own
    others = data.parts.keys() - {PRIOR, "labels", "trusted", *columns}
    return CheckInput(
        resp / resp.sum(1, keepdims=True),
        weights[rows],
        codes,
        transition,
        one_rate,
        noise_known,
        names,
        features,
        columns,
        discounted,
        reference,
        nonlinear,
        None if nonlinear is None or corrected is None else corrected[rows],
        _prior(fit, data, rows) if shares_known and not others else None,
        relative,
    )


def _prior(
    fit: Fit, data: Data, rows: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k"] | None]:
    """Probabilities of the classes before labels, and what a slope adds to their logarithms."""
    prior: Any = fit.model[PRIOR]
    part = data.parts.get(PRIOR)
    table = np.asarray(_prior_logits(prior, fit.point[PRIOR], part), float)
    logits = np.broadcast_to(table, (len(fit.resp), table.shape[1])) if len(table) == 1 else table
    sloped = prior.slope_terms(fit.point[PRIOR], part)
    return softmax(logits[rows], axis=1), None if sloped is None else sloped[rows]


@jax.jit
def _prior_logits(prior: Any, at: Any, part: Any) -> Any:
    return prior.log_likelihood(at, part).table


def _has_one_rate(transition: np.ndarray) -> bool:
    """Whether the diagonal and the rest of a ``(K, K)`` transition hold one value each."""
    same = np.eye(len(transition), dtype=bool)
    return bool(np.ptp(transition[same]) == 0 and np.ptp(transition[~same]) == 0)


def outcome_of(fit: Fit, data: Data, names: Any) -> Outcome:
    """The labelled items as a fit has them; arguments as in :func:`check_input`."""
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
    data: Data,
    reported: Float[np.ndarray, "n k"],
    separable: Separable,
    share_wrong: float | None = None,
    reference: Int[np.ndarray, " n"] | None = None,
    share: float | None = None,
) -> Ends:
    """A fit beside the model whose classes are functions of the features.

    Args:
        fit: the fit.
        data: what it was fitted to, on the host.
        reported: ``(N, K)`` P(true class) as it is reported.
        separable: the other model of the same labels.
        share_wrong: expected share of wrong labels, where that is not of ``reported``.
        reference: see :func:`nbmodels.diagnostics.check.check_model`.
        share: expected share of wrong labels of all items, where neighbours are of a sample.
    """
    transition = np.asarray(fit.transitions["labels"], float)
    transition = transition / transition.sum(1, keepdims=True)
    rows, codes = separable.rows, separable.codes
    resp = np.asarray(fit.resp, float)[rows]
    resp = resp / resp.sum(1, keepdims=True)
    relative = relative_rates(data, codes, rows)
    logs = without_own_label(resp, codes, transition, relative)
    rates = label_rates(logs, transition, relative)
    seen = rates[np.arange(len(codes)), codes]
    weights = separable.weights
    right = reported[rows, codes] / reported[rows].sum(1)
    own = float(1 - np.average(right, weights=weights)) if share_wrong is None else share_wrong
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
        own,
        separable.share_wrong,
        separable.without_own - np.log(np.maximum(seen, np.finfo(float).tiny)),
        separable.without_own - separable.by_shares,
        weights,
        matrix=float(1 - shares @ np.diag(transition)),
        shape=near.share_wrong if near.likelier else shape.share_wrong,
        changed=float(np.average(changed, weights=weights)),
        contradicted=contradicted,
        widest=separable.end.share_wrong,
        every=own if share is None else share,
    )


def confirmed(joint: FittedModel, crossed: FittedModel) -> Confirmed:
    """A joint fit to a graph beside a cross-fitted one, by labels that neither has seen."""
    n = len(joint.fit.resp)
    codes, weights = given_codes(joint), np.asarray(joint.data.weights)[:n]
    rows = np.flatnonzero((codes >= 0) & ~checked_rows(joint.fit.model, joint.data, n))
    scores = [np.asarray(one.held_out_scores)[rows] for one in (joint, crossed)]
    wrong = [1 - one.label_posterior[rows, codes[rows]] for one in (joint, crossed)]
    shares = [float(np.average(one, weights=weights[rows])) for one in wrong]
    return Confirmed(scores[0], scores[1], weights[rows], (shares[0], shares[1]))
