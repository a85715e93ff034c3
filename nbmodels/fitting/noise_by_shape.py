"""Label noise by the shape of the classes: share of wrong labels, and Bayes factor of any.

Errors near the borders between classes and classes that overlap there give labels the same
probabilities. They differ in where items lie: errors leave the gap between two classes where it is,
overlap fills it. And few held-out labels hardly tell whether any of them is wrong, since a
classifier that is less sure predicts noisy labels nearly as well as a noise model; an item that
lies in another class than its label names tells more. Both are estimated with classes along linear
scores (:mod:`nbmodels.fitting.class_shapes`), with noise and without. Items far out in heavy tails
may be taken for noise: so classes are of Student's t, whose degrees of freedom are integrated out,
with noise as without, and noise is judged by the tails that the data have. Classes that are skewed
or of several clusters may be taken for noise, too; so the comparison is also with classes of two
normal parts without noise. It is a second opinion, and not the fit's noise.

Errors that follow the features are the oftener the nearer an item is to another class, and make
classes look as if they overlapped. Labels are then drawn from the class probabilities taken to a
power below one (:mod:`nbmodels.fitting.class_shapes`), where those of classes that overlap are
drawn from the probabilities themselves: items say where classes lie, and labels whether they are
as sure as that. Against labels without errors that has a Bayes factor of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from nbmodels.fitting.class_shapes import Channel, ShapedClasses, fit_classes
from nbmodels.fitting.errors_near_borders import (
    ErrorsByShape,
    errors_near_borders,
    normal_sums,
)
from nbmodels.fitting.found_classes import FoundClasses
from nbmodels.fitting.one_thread import one_thread_if_small
from nbmodels.fitting.options import FEW_ROWS
from nbmodels.fitting.reference import linear_scores
from nbmodels.fitting.shape_evidence import (
    FREEDOM,
    STRONG,
    any_matrix,
    cost_of_parts,
    evidence_of_any,
    evidence_of_one,
    halves,
    in_parts,
    mean_evidence,
    mostly_as,
    no_noise,
    of_each,
    one_rate,
)

#: Classes beyond which a covariance of the scores says little, and labels a class below which the
#: share is not estimated, of ten classes of 20 right labels each a tenth seemed wrong, nor the
#: factor.
_MOST_CLASSES, _FOR_SHARE, _FOR_FACTOR = 20, 20, 10

#: Overlap beyond which the shape does not tell the share: expected share of items whose likeliest
#: class by the scores is another one. Five such classes with 10 % noise seemed to have 15 to 30 %.
_OVERLAP = 0.25

#: Share up to which nothing is concluded from it.
_SMALL = 0.03

#: Items looked at, drawn from more.
_ITEMS = 4_000


class NoiseByShape(NamedTuple):
    """What the shape of the classes says of noise.

    Attributes:
        share_wrong: share of the given labels that is wrong; 0 where right labels are surely
            likelier. NaN where the shape does not tell: there are too many classes, too few labels
            of one, or no features, the classes found are not those of the labels, or they overlap
            too much.
        log_factor: logarithm of the Bayes factor of noisy labels against right ones, for which
            fewer labels a class are enough; 0 where the shape does not tell, and of many rows
            whose share is small.
        near_borders: what it says of errors that are the oftener the nearer a border.
        anywhere: what it says of errors wherever an item lies, of which there is a noise matrix.
    """

    share_wrong: float = np.nan
    log_factor: float = 0.0
    near_borders: ErrorsByShape = ErrorsByShape()
    anywhere: ErrorsByShape = ErrorsByShape()

    @property
    def likeliest(self) -> ErrorsByShape:
        """Errors near borders, where those anywhere are not surely likelier."""
        return self.near_borders if self.near_borders.likelier else self.anywhere


#: Where the shape does not identify the noise, or was not looked at.
NOT_IDENTIFIED = NoiseByShape()


def noise_by_shape(
    points: Any,
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None = None,
) -> NoiseByShape:
    """Share of wrong labels by the shape of the classes along linear scores, and evidence of any.

    The noise is of one rate or any matrix; either is integrated out given the expected labels of
    each class (Cheeseman and Stutz 1996), means and shares of further parts by the Bayesian
    information criterion.

    Args:
        points: ``(n, d)`` items in the space of their features, dense or sparse.
        codes: ``(n,)`` given labels, negative where there is none.
        n_classes: K.
        weights: ``(n,)`` row weights.
        copies: rows that stay in one fold, see :func:`nbmodels.fitting.scores.stratified_folds`.
    """
    fewest = np.bincount(codes[codes >= 0], minlength=n_classes).min()
    if not 1 < n_classes <= _MOST_CLASSES or fewest < _FOR_FACTOR or not points.shape[1]:
        return NOT_IDENTIFIED
    rows, scores, _ = linear_scores(points, codes, n_classes, copies)
    if len(rows) > _ITEMS:
        some = np.random.default_rng(len(rows)).permutation(len(rows))[:_ITEMS]
        rows, scores = rows[some], scores[some]
    x, given = scores[:, :-1] - scores[:, -1:], codes[rows]
    here = weights[rows] / weights[rows].mean()
    labels = np.eye(n_classes)[given]

    def fitted(
        start: Float[np.ndarray, "n km"], channel: Channel, freedom: float = np.inf
    ) -> ShapedClasses:
        with one_thread_if_small(x):
            return fit_classes(x, given, here, start, channel, n_classes, freedom)

    start = mostly_as(labels)
    matrix = fitted(start, any_matrix)
    # labels at random within clusters, or of classes along no line, seem to be errors near borders
    if not _identified(matrix, given, here):
        return NOT_IDENTIFIED
    right = [fitted(labels, no_noise, freedom).log_likelihood for freedom in FREEDOM]
    without, near = mean_evidence(right), ErrorsByShape()
    normal = normal_sums(points[rows], given, n_classes)
    if fewest >= _FOR_SHARE and normal:
        with one_thread_if_small(x):
            near = errors_near_borders(x, given, here, n_classes, FREEDOM, without, rows)
    share = np.nan
    if fewest >= _FOR_SHARE:
        share = float(1 - np.average(of_each(matrix.resp, given), weights=here))
    few_wrong = len(codes) > FEW_ROWS and not share > _SMALL
    if few_wrong and not near.likelier:
        return NoiseByShape(share)
    by_one, further = without, cost_of_parts(x, n_classes)
    for half in (halves(x, labels * here[:, None]), of_each(matrix.resp, given)[:, None]):
        two = fitted(in_parts(labels, half), no_noise).log_likelihood
        without = max(without, two - further)
    near = near._replace(log_factor=near.log_factor - (without - by_one))
    if few_wrong:
        return NoiseByShape(share, near_borders=near)
    forms = ((any_matrix, evidence_of_any), (one_rate, evidence_of_one))
    found = [
        (one := fitted(start, channel, freedom), evidence(one, labels, here))
        for channel, evidence in forms
        for freedom in FREEDOM
    ]
    logs = [one[1] for one in found]
    log_factor = float(mean_evidence(logs) - without)
    probs = np.tensordot(softmax(logs), np.stack([one[0].resp for one in found]), 1)
    wrong = float(1 - np.average(of_each(probs, given), weights=here))
    best = max(found, key=lambda one: one[1])[0]
    classes = FoundClasses(rows, given, x, here, best)
    # clusters of a sum of few coarse columns are their values, and no classes
    anywhere = ErrorsByShape(log_factor, wrong, rows, probs, classes) if normal else ErrorsByShape()
    if log_factor - near.log_factor > STRONG:  # wherever items lie
        near = ErrorsByShape()
    surely_right = log_factor < -STRONG and share > 0
    return NoiseByShape(0.0 if surely_right else share, log_factor, near, anywhere)


def _identified(
    found: ShapedClasses, given: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> bool:
    """Whether the classes found are those of the labels, and overlap little enough to tell."""
    by_scores = found.resp / found.transition[:, given].T
    sure = (by_scores / by_scores.sum(1, keepdims=True)).max(1)
    overlap = 1 - np.average(sure, weights=weights)
    # the factor of classes that overlap would be the cost of a rate that nothing identifies
    return bool(np.diag(found.transition).min() > 0.5 and overlap <= _OVERLAP)
