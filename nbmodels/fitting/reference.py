"""Reference predictions: plain classifiers in closed form, cross-validated, to compare a fit with.

They run in every fit or check, so each is fitted once for all folds, from sums less those of the
fold: least squares with a ridge (a linear discriminant), on many columns of which none is negative
multinomial naive Bayes, and kernel ridge regression on the columns' normal scores, which shares no
assumption with the models here: ranks know no outliers, and its surfaces bend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.special import log_softmax

from nbmodels.fitting.copied_rows import among
from nbmodels.fitting.matrix_scaling import learnable, matrix_scaling, scaled_out_of_fold
from nbmodels.fitting.nonlinear_classifier import (
    NonlinearClassifier,
    Ranks,
    normal_scores,
    some_of,
    standardised,
)
from nbmodels.fitting.nonlinear_sample import COLUMNS, FOLDS, ROWS, Learn, Sample, too_few
from nbmodels.fitting.nonlinear_ways import best_way, least_squares
from nbmodels.fitting.plain import plain_classifier
from nbmodels.fitting.points import Coding
from nbmodels.fitting.scores import stratified_folds
from nbmodels.fitting.word_evidence import log_words, per_word

#: Folds of the linear classifiers, and pseudo-counts of a word.
_FOLDS, _PSEUDO = 3, 1.0


def out_of_fold_predictions(
    blocks: Sequence[Any], codes: Int[np.ndarray, " n"], n_classes: int
) -> Int[np.ndarray, " n"] | None:
    """The class that each item's features point to, learned from other items' labels.

    Least squares on up to some hundred columns of any kind, naive Bayes on more columns of which
    none is negative.

    Args:
        blocks: features, ``(n, d)`` each, dense or sparse.
        codes: ``(n,)`` given labels, negative where missing.
        n_classes: K.

    Returns:
        ``(n,)`` classes, -1 where there is no label; None where there are too few labels, or no
        features.
    """
    rows = np.flatnonzero(codes >= 0)
    y = codes[rows]
    if not blocks or too_few(y):
        return None
    rng = np.random.default_rng(len(rows))
    fold = stratified_folds(y, _FOLDS, rng)
    target = np.eye(n_classes)[y]
    wide = [b for b in blocks if b.shape[1] > COLUMNS and b.min() >= 0]
    if wide:
        x = sparse.hstack([sparse.csr_array(b) for b in wide]).tocsr()[rows]
        evidence, prior, _ = _naive_bayes(x, target, fold)
        scores = evidence + prior
    else:
        scores = least_squares(_dense(blocks, rows, rng), target, fold)
    out = np.full(len(codes), -1)
    out[rows] = _likeliest(scores, target, fold)
    return out


class Reference(NamedTuple):
    """Predictions of labels from other items' labels.

    Attributes:
        classes: ``(n,)`` predicted class, -1 where no label is given.
        logs: ``(n, K)`` log-probabilities of the classes; zero in rows that were not looked at,
            of which there are none once it is :func:`completed`.
        held_out: ``(n,)`` log-probability of each given label, by a calibration that did not see
            it, or its mean over P(class); NaN where there is none.
        fold: ``(n,)`` fold of each row whose label was learned from, -1 elsewhere.
        complete: whether all rows were looked at.
        learn: learns from all labels what the scores are linear in, and the coefficients.
        slope: factor of the scores by which their logs are those of probabilities.
    """

    classes: Int[np.ndarray, " n"]
    logs: Float[np.ndarray, "n k"]
    held_out: Float[np.ndarray, " n"]
    fold: Int[np.ndarray, " n"]
    complete: bool
    learn: Learn
    slope: float

    def recalibrated(self, codes: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Log-probability of each given label by their matrix scaling, cross-validated.

        Where one temperature fits badly, a noise matrix would fit better though no label is wrong.

        Args:
            codes: given labels, negative where there is none.

        Returns:
            ``(n,)``; NaN where there is no label, or no prediction of it, and by the temperature
            where there are too many classes.
        """
        k = self.logs.shape[1]
        if not learnable(k):
            return self.held_out
        out, known = np.full(len(codes), np.nan), self.fold >= 0
        given = np.eye(k)[codes[known]]
        scaled = scaled_out_of_fold(self.logs[known], given, self.fold[known], levels=True)
        out[known] = np.sum(given * log_softmax(scaled, axis=1), 1)
        return out


def nonlinear_predictions(
    points: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    copies: Int[np.ndarray, " n"] | None = None,
    weights: Float[np.ndarray, " n"] | None = None,
    known: Float[np.ndarray, "n k"] | None = None,
) -> Reference | None:
    """The class that each item's features point to, learned from other items' labels.

    The best of least squares on the columns, on their normal scores, and with Gaussian kernels of
    these of three length scales, by the squared error of held-out labels; or least squares on the
    levels of informative columns (:mod:`nbmodels.fitting.screened_columns`), kernels of these
    alone, or the mean with trees (:mod:`nbmodels.fitting.trees`), where it is surely better.

    Args:
        points: ``(n, d)`` items, columns on one scale.
        codes: ``(n,)`` given labels, negative where missing.
        n_classes: K.
        copies: rows that stay in one fold, see :func:`nbmodels.fitting.scores.stratified_folds`.
        weights: ``(n,)`` row weights; None where each row counts once.
        known: ``(n, K)`` P(class) to learn in the place of the labels, which say where it is known
            and which class is likeliest; None for labels.

    Returns:
        predictions, of all rows or of ten thousand that have a label; None where there are too few
        labels, or no features.
    """
    sample = Sample.of(points, codes, n_classes, copies, weights, known)
    if sample is None:
        return None
    target, fold, labelled = sample.target, sample.fold, sample.labelled
    seen = fold >= 0
    best, learn = best_way(sample)
    about = (best, target) if seen.all() else (best[seen], target[seen])
    plain = plain_classifier(*about, sample.weights[seen], fold[seen], False)
    classes, held_out = np.full(len(codes), -1), np.full(len(codes), np.nan)
    classes[labelled] = _likeliest(*about, fold[seen])
    held_out[labelled] = plain.held_out
    logs, folds = np.zeros((len(codes), n_classes)), np.full(len(codes), -1)
    slope = float(np.exp(plain.calibration[0]))
    best *= slope  # in place: with many classes new pages take long
    best -= best.max(1, keepdims=True)
    best -= np.log(np.exp(best).sum(1, keepdims=True))
    logs[sample.rows] = best
    folds[sample.rows] = fold
    complete = len(sample.rows) == len(codes)
    return Reference(classes, logs, held_out, folds, complete, learn, slope)


def nonlinear_classifier(
    reference: Reference,
    coding: Coding,
    points: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None = None,
    weights: Float[np.ndarray, " n"] | None = None,
    known: Float[np.ndarray, "n k"] | None = None,
) -> NonlinearClassifier:
    """The classifier whose out-of-fold predictions a reference has, learned from all labels.

    Args:
        reference: predictions of these labels.
        coding: by which rows became points.
        points, codes, copies, weights, known: those of :func:`nonlinear_predictions`.
    """
    sample = Sample.of(points, codes, reference.logs.shape[1], copies, weights, known)
    assert sample is not None  # there are predictions
    basis, table = reference.learn(sample)
    ranks = Ranks.of(sample.x, sample.shares)
    return NonlinearClassifier(coding, sample.columns, ranks, basis, table, reference.slope)


def learned_from_all(
    reference: Reference,
    coding: Coding,
    points: Float[np.ndarray, "n d"],
    *labels: Any,
    classes: Float[np.ndarray, "n k"] | None = None,
) -> tuple[NonlinearClassifier, Float[np.ndarray, "n k"]]:
    """The classifier that is learned from all labels, and log-probabilities of all rows.

    Args:
        reference: predictions of these labels.
        coding: by which rows became points.
        points, labels: arguments of :func:`completed`.
        classes: ``(n, K)`` P(true class) by which the classifier is to learn in the place of the
            labels, and to which it is then calibrated; None for the labels.

    Returns:
        the classifier, and ``(n, K)`` :func:`completed` predictions, which are of the labels.
    """
    logs = completed(reference, points, *labels).logs
    if classes is None:
        return nonlinear_classifier(reference, coding, points, *labels), logs
    return _of_true_classes(reference, coding, points, classes, *labels), logs


def _of_true_classes(
    reference: Reference,
    coding: Coding,
    points: Float[np.ndarray, "n d"],
    classes: Float[np.ndarray, "n k"],
    codes: Int[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None,
    weights: Float[np.ndarray, " n"],
) -> NonlinearClassifier:
    """The classifier of P(true class) in the rows with a label, calibrated to it in these rows."""
    k = classes.shape[1]
    likeliest = np.where(codes >= 0, classes.argmax(1), -1)
    about = points, likeliest, copies, weights, classes
    learned = nonlinear_classifier(reference, coding, *about)
    if not learnable(k):
        return learned
    rows = np.flatnonzero((codes >= 0) & (weights > 0))
    if len(rows) > ROWS:
        rows = some_of(rows, ROWS, np.random.default_rng(len(rows)))
    logs = learned.of_points(points[rows])
    scaling = matrix_scaling(logs, weights[rows, None] * classes[rows])
    return replace(learned, scaling=scaling)


def completed(
    reference: Reference,
    points: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None = None,
    weights: Float[np.ndarray, " n"] | None = None,
    known: Float[np.ndarray, "n k"] | None = None,
) -> Reference:
    """Predictions of all rows: those that were not looked at by what the others' labels taught.

    Args:
        reference: predictions of some rows.
        points, codes, copies, weights, known: those of :func:`nonlinear_predictions`.
    """
    if reference.complete:
        return reference
    about = points, codes, copies, weights, known
    learned = nonlinear_classifier(reference, lambda x, missing: x, *about)
    logs, rest = reference.logs.copy(), np.flatnonzero(reference.fold < 0)
    logs[rest] = learned.of_points(points[rest])
    return reference._replace(logs=logs, complete=True)


class LinearScores(NamedTuple):
    """Out-of-fold scores that are linear in the features.

    Attributes:
        rows: ``(m,)`` all items with a label, or ten thousand of them.
        scores: ``(m, K)`` theirs.
        words: ``(d, K)`` log-probabilities of the words of each class, means over the folds, by
            which new rows have such scores; None of rows that are no words.
    """

    rows: Int[np.ndarray, " m"]
    scores: Float[np.ndarray, "m k"]
    words: Float[np.ndarray, "d k"] | None = None


def linear_scores(
    points: Any,
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    copies: Int[np.ndarray, " n"] | None = None,
) -> LinearScores:
    """Out-of-fold scores of items with a label that are linear in their features.

    Least squares on the columns' normal scores, which know no outliers. On sparse rows naive
    Bayes, whose evidence grows with the number of words: so its mean per word, which is nearly
    normal within a class; or least squares on their columns where a cell is negative.

    Args:
        points: ``(n, d)`` items, dense or sparse.
        codes: ``(n,)`` given labels, negative where missing.
        n_classes: K.
        copies: see :func:`nonlinear_predictions`.
    """
    rows = np.flatnonzero(codes >= 0)
    rng = np.random.default_rng(len(rows))
    if len(rows) > ROWS:
        rows = some_of(rows, ROWS, rng)
    target = np.eye(n_classes)[codes[rows]]
    fold = stratified_folds(codes[rows], FOLDS, rng, among(copies, rows))
    if sparse.issparse(points):
        x = sparse.csr_array(points)
        if x.nnz and x.data.min() < 0:  # no words
            return LinearScores(rows, least_squares(_dense([x], rows, rng), target, fold))
        evidence, _, words = _naive_bayes(x[rows], target, fold)
        return LinearScores(rows, per_word(evidence, x[rows]), words)
    some = some_of(points.shape[1], COLUMNS, rng)
    x = np.hstack(
        [normal_scores(np.asarray(points, float)[np.ix_(rows, some)]), np.ones((len(rows), 1))]
    )
    return LinearScores(rows, least_squares(x, target, fold))


def _likeliest(
    scores: Float[np.ndarray, "n k"],
    target: Float[np.ndarray, "n k"],
    fold: Int[np.ndarray, " n"],
) -> Int[np.ndarray, " n"]:
    """The classes; one that training never saw is not predicted."""
    learned = np.stack([target[fold != f].any(0) for f in range(fold.max() + 1)])
    return np.argmax(np.where(learned[fold], scores, -np.inf), 1)


def _dense(blocks: Sequence[Any], rows: np.ndarray, rng: Any) -> np.ndarray:
    """Standardised columns and one of ones; a random sample of the columns of a wide block."""
    some = [b[:, some_of(b.shape[1], COLUMNS, rng)][rows] for b in blocks]
    x = np.hstack([b.toarray() if sparse.issparse(b) else np.asarray(b, float) for b in some])
    return np.hstack([standardised(x), np.ones((len(x), 1))])


def _naive_bayes(
    x: Any, target: np.ndarray, fold: np.ndarray
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k"], Float[np.ndarray, "d k"]]:
    """Out-of-fold evidence of each item's words, log-shares of the classes, and mean log-words."""
    evidence, prior = np.empty(target.shape), np.empty(target.shape)
    folds = range(fold.max() + 1)
    counts = np.stack([x[fold == f].T @ target[fold == f] for f in folds])
    items = np.stack([target[fold == f].sum(0) for f in folds])
    mean = np.zeros(counts.shape[1:])
    for f in folds:
        shares = items.sum(0) - items[f] + _PSEUDO
        words = log_words(counts.sum(0) - counts[f])
        evidence[fold == f] = x[fold == f] @ words
        prior[fold == f] = np.log(shares / shares.sum())
        mean += words / len(folds)
    return evidence, prior, mean
