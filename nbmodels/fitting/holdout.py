"""Hold-out validation without clean labels: likelihood of noisy labels that the fit has not seen.

A setting is good if labels held out of the fit are likely under it: P(label | everything else) is
the item's class posterior passed through the fitted noise. That needs no true label, and penalises
overconfidence: a model that follows its features away from the labels predicts them badly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from inference import Status
from inference.arrays import on_device
from nbmodels.channels import ExternalEvidence
from nbmodels.class_priors import FixedProportions
from nbmodels.core.model import PRIOR, Data, Model, with_role
from nbmodels.core.roles import LabelChannel
from nbmodels.fitting.checked_rows import named_by_checks
from nbmodels.fitting.design_effect import of_groups
from nbmodels.fitting.em import Fit, emissions_started
from nbmodels.fitting.identifiability import confused_classes, vanished
from nbmodels.fitting.options import HELD_OUT_SEED, FitOptions, finished
from nbmodels.fitting.progress import Task

#: An improvement over the first candidate counts from so many standard errors on.
_SIGNIFICANT = 2.0

#: Share of the labels that is held out, and folds where they are cross-validated.
_SHARE, _FOLDS = 0.1, 5

#: Name of the channel of one noisy label an item.
_LABELS = "labels"


@dataclass(frozen=True)
class Comparison:
    """Held-out log-likelihood of the noisy labels under each candidate.

    Attributes:
        log_likelihood: ``(C,)`` mean log-probability of a held-out label, in nats.
        gain: ``(C,)`` its mean gain over the first candidate.
        standard_error: ``(C,)`` of the gain.
        identified: ``(C,)`` whether the noise matrix is diagonally dominant and no class vanished.
        best: index of the chosen candidate.
    """

    log_likelihood: Float[np.ndarray, " c"]
    gain: Float[np.ndarray, " c"]
    standard_error: Float[np.ndarray, " c"]
    identified: Bool[np.ndarray, " c"]
    best: int


def compare_scores(
    scores: Sequence[Float[np.ndarray, " n"]],
    identified: Sequence[bool] | Bool[np.ndarray, " c"],
    weights: Float[np.ndarray, " n"],
    significant: float = _SIGNIFICANT,
    groups: Int[np.ndarray, " n"] | None = None,
) -> Comparison:
    """Compare candidates by the log-probabilities that each gives to the same labels.

    Args:
        scores: log-probabilities of the labels, by candidate, the cautious candidate first.
        identified: whether each candidate's classes kept their names and their items.
        weights: row weights, 0 where there is no label.
        significant: standard errors by which a candidate must be better than the first.
        groups: code of each row's group, whose gains may be alike (cluster-robust standard
            errors; Liang and Zeger 1986); None where rows are independent.
    """
    table = np.asarray(scores)
    mean = table @ weights / weights.sum()
    gains = table - table[0]
    gain = mean - mean[0]
    gaps = gains - gain[:, None]
    if groups is None:
        count = weights.sum() ** 2 / np.square(weights).sum()
        variance = np.square(gaps) @ weights / weights.sum()
    else:
        whole = of_groups(weights, groups)
        count = weights.sum() ** 2 / np.square(whole).sum()
        variance = count * np.square(of_groups(weights * gaps, groups)).sum(1) / weights.sum() ** 2
    # a single label has no spread to estimate
    error = np.sqrt(variance / (count - 1)) if count > 1 else np.full(len(table), np.inf)
    better = np.asarray(identified) & (gain > significant * error)
    best = int(np.argmax(np.where(better, mean, -np.inf))) if better.any() else 0
    return Comparison(mean, gain, error, np.asarray(identified), best)


def compare_on_holdout(
    candidates: Sequence[Model],
    data: Sequence[Data],
    options: FitOptions,
    label: str = "choosing settings",
    *,
    few: int = 0,
) -> Comparison:
    """Fit every candidate without some of the labels, and score these.

    The first candidate is the cautious one: another is chosen only if it is better by two standard
    errors and its classes kept their names.

    Args:
        candidates: models of the same components, the cautious one first.
        data: encoded data of each, of the same items and labels.
        options: of the fits.
        label: of the progress bar.
        few: labels of which fewer are cross-validated in five folds: a tenth of them, held out
            once, would compare by chance.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    codes, n_classes = _codes(candidates[0], data[0])
    labelled = np.flatnonzero((codes < n_classes) & (np.asarray(data[0].weights) > 0))
    order = np.random.default_rng(HELD_OUT_SEED).permutation(labelled)
    if len(order) < few:
        parts = [order[k::_FOLDS] for k in range(min(_FOLDS, len(order)))]
    else:
        parts = [order[: max(1, int(_SHARE * len(order)))]]
    identified = np.ones(len(candidates), bool)
    scores: list[list[Any]] = [[] for _ in candidates]
    with options.progress.bar(label, len(parts) * len(candidates)) as bar:
        for held in parts:
            rest = [_without_labels(one, held, n_classes) for one in data]
            seen = np.asarray(rest[0].parts[_LABELS])
            known = seen < n_classes
            given = np.eye(n_classes)[seen[known]]
            for c, fitted in enumerate(options.compared(candidates, rest, bar)):
                score, named = _scored(fitted, data[c], codes, held)
                scores[c].append(score)
                kept = np.asarray(fitted.resp)[known]
                identified[c] &= named and not len(vanished(given, kept))
    whole = [np.concatenate(one) for one in scores]
    return compare_scores(whole, identified, np.ones(len(whole[0])))


class HeldOut(NamedTuple):
    """Held-out labels under a model.

    Attributes:
        scores: ``(N,)`` log-probability of each item's label by a fit that did not see it; 0
            without a label, NaN where no fit was made without it.
        identified: whether all classes kept their names and their items.
    """

    scores: Float[np.ndarray, " n"]
    identified: bool


def held_out_scores(
    model: Model,
    data: Data,
    options: FitOptions,
    n_folds: int,
    copies: Int[np.ndarray, " n"] | None = None,
    near: Fit | None = None,
    settled: Callable[[HeldOut], bool] | None = None,
) -> HeldOut:
    """Log-probability of each given label by cross-validation of a joint fit.

    Features of held-out items are part of the fits; their labels are not.

    Args:
        model: components by name.
        data: encoded data.
        options: of the fits.
        n_folds: every fit sees all labels but those of one fold.
        copies: rows that stay in one fold, see :func:`nbmodels.fitting.scores.stratified_folds`.
        near: a fit to all labels, at which the others begin; of the held-out items, which it knows
            the labels of, nothing is in their starts. By default they begin at the labels.
        settled: whether the labels of the first fold settle what those of all are wanted for, so
            that no other fold is fitted.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    codes, n_classes = _codes(model, data)
    labelled = np.flatnonzero((codes < n_classes) & (np.asarray(data.weights) > 0))
    order = np.random.default_rng(HELD_OUT_SEED).permutation(labelled)
    held = [order[k::n_folds] for k in range(n_folds)]
    if copies is not None:
        _, first, group = np.unique(copies[order], return_index=True, return_inverse=True)
        fold = np.argsort(np.argsort(first))[group] % n_folds
        held = [order[fold == k] for k in range(n_folds)]
    scores, kept, named = np.zeros(len(codes)), np.zeros((len(codes), n_classes)), True
    scores[labelled] = np.nan

    def found() -> HeldOut:
        seen = labelled[np.isfinite(scores[labelled])]
        given = np.eye(n_classes)[codes[seen]]
        return HeldOut(scores, named and not len(vanished(given, kept[seen])))

    for some in [held] if settled is None else [held[:1], held[1:]]:
        parts = [_without_labels(data, rows, n_classes) for rows in some]
        starts = None if near is None else [_without_rows(near, model, data, r) for r in some]
        fits = options.fit_all([model] * len(some), parts, starts=starts)
        for rows, one in zip(some, fits, strict=True):
            scores[rows], own = _scored(finished(one), data, codes, rows)
            kept[rows] = np.asarray(one.resp)[rows]
            named = named and own
        if settled is not None and settled(found()):
            break
    return found()


def held_out_by_fold(
    model: Model, data: Data, fold: Int[np.ndarray, " n"], options: FitOptions, start: Any
) -> Float[np.ndarray, " n"] | None:
    """Log-probability of each row's labels by a fit to the rows of other folds.

    For covariates that saw no label of their own fold, such as scores that were cross-fitted.

    Args:
        model: components by name.
        data: encoded data.
        fold: of each row; negative of rows that are in no fit.
        options: of the fits.
        start: parameters at which every fit begins.

    Returns:
        -inf where the fold is negative; None where a fit was interrupted.
    """
    known = np.asarray(data.weights) * (fold >= 0)
    folds = range(int(fold.max()) + 1)
    parts = [replace(data, weights=on_device(known * (fold != f))) for f in folds]
    fits = options.fit_all([model] * len(parts), parts, starts=[start] * len(parts))
    if any(one.status == Status.INTERRUPTED for one in fits):
        return None
    scores = np.full(len(fold), -np.inf)
    for f, one in zip(folds, fits, strict=True):
        scores[fold == f] = np.asarray(one.log_likelihood)[fold == f]
    return scores


def cross_fitted_posterior(
    model: Model, data: Data, options: FitOptions, n_folds: int, bar: Task
) -> Float[np.ndarray, "n k"]:
    """P(true class | everything but the item's own label), by cross-fitting.

    Args:
        model: components by name.
        data: encoded data.
        options: of the fits.
        n_folds: every fit sees all labels but those of one fold.
        bar: progress bar that counts fits.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    codes, n_classes = _codes(model, data)
    n_folds = min(n_folds, len(codes))
    fold = np.random.default_rng(HELD_OUT_SEED).permutation(len(codes)) % n_folds
    out = np.empty((len(codes), n_classes))
    held = [np.flatnonzero(fold == k) for k in range(n_folds)]
    parts = [_without_labels(data, rows, n_classes) for rows in held]
    for rows, fitted in zip(held, options.compared([model] * n_folds, parts, bar), strict=True):
        out[rows] = np.asarray(fitted.resp)[rows]
    return out


def noise_given_posterior(
    model: Model, data: Data, resp: Float[np.ndarray, "n k"], options: FitOptions
) -> tuple[Fit, Data]:
    """The noise channel alone, fitted to predictions that have not seen the item's own label.

    In a joint fit a label confirms itself through the parameters that it helped to learn, and the
    noise is underestimated. Predictions made without the label cannot do that.

    Args:
        model: components by name.
        data: encoded data.
        resp: from :func:`cross_fitted_posterior`.
        options: of the fit.

    Returns:
        the fit, and the data that it is of.

    Raises:
        KeyboardInterrupt: the fit was interrupted.
    """
    n_classes = resp.shape[1]
    logs = np.log(np.maximum(resp, np.finfo(float).tiny))
    parts = {
        PRIOR: None,
        _LABELS: data.parts[_LABELS],
        "predicted": ExternalEvidence.pack(logs),
    }
    alone = {
        # the predictions hold the shares of the classes already
        PRIOR: FixedProportions(prior=on_device(np.full(n_classes, 1 / n_classes))),
        _LABELS: model[_LABELS],
        "predicted": ExternalEvidence.of(n_classes),
    }
    about = Data(parts, data.weights)
    plain = replace(options, n_restarts=0, max_iter=500, tol=1e-6, accelerate=True, graphs={})
    return finished(plain.fit(alone, about)), about


def _scored(
    fitted: Fit, data: Data, codes: Int[np.ndarray, " n"], rows: Int[np.ndarray, " h"]
) -> tuple[Float[np.ndarray, " h"], bool]:
    """Log-probabilities of some items' labels, and whether all classes have their names."""
    transition = fitted.transitions[_LABELS]
    p = np.asarray(fitted.resp)[rows] @ (transition / transition.sum(1, keepdims=True))
    score = np.log(np.maximum(p[np.arange(len(rows)), codes[rows]], np.finfo(float).tiny))
    named = named_by_checks(fitted.model, data, len(transition))
    return score, not confused_classes(transition, named)


def _without_rows(near: Fit, model: Model, data: Data, rows: np.ndarray) -> Any:
    """Parameters of a fit, those of its features without some of the rows."""
    resp = np.zeros((len(data.weights), near.resp.shape[1]), near.resp.dtype)
    resp[: len(near.resp)] = near.resp
    resp[rows] = 0
    learned = emissions_started(model, resp, data, near.rule)
    return {**jax.tree.map(on_device, near.params), **learned}


def _codes(model: Model, data: Data) -> tuple[Int[np.ndarray, " n"], int]:
    codes = data.parts[_LABELS]
    guess = jax.eval_shape(with_role(model, LabelChannel)[_LABELS].initial_responsibilities, codes)
    assert guess is not None  # a channel of labels has one
    return np.asarray(codes), guess.shape[1]


def _without_labels(data: Data, rows: np.ndarray, n_classes: int) -> Data:
    codes = np.array(data.parts[_LABELS])
    codes[rows] = n_classes
    return replace(data, parts={**data.parts, _LABELS: on_device(codes)})
