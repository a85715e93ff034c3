"""Linear discriminant analysis under label noise, where classes are clear clusters of few rows.

Scores that are learned from few labels, of which many are wrong, are poor, and few held-out labels
hardly tell whether any label is wrong. Where the items of each class form a cluster of their own,
the features show both: classes of normal or Student's t shape with one covariance and a noise
matrix are fitted to features and labels by EM (Lawrence and Schoelkopf 2001; Bouveyron and Girard
2009), and are the classes that are meant where the noisy labels are surely likelier than right
ones, classes hardly overlap, one cluster each is enough, and labels say which is which.

Labels at random within clusters have the same likelihood (the cluster assumption of
semi-supervised learning; Chapelle, Schoelkopf and Zien 2006). It is the less plausible the more
clusters match the classes one to one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from nbmodels.fitting.class_shapes import Parts, ShapedClasses, fit_classes
from nbmodels.fitting.errors_near_borders import mostly_coarse
from nbmodels.fitting.found_classes import FoundClasses
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

#: Most classes, and fewest labels of one.
_MOST_CLASSES, _FEWEST = 10, 10

#: Most columns that are no combination of others, and rows for each at least. Some principal
#: components of more columns have clusters by chance.
_COLUMNS, _ROWS = 30, 8

#: Standard deviations beyond which cells are cut off, and part of the largest singular value from
#: which on a component is one.
_FENCE, _RANK = 4.0, 1e-6

#: Share of items whose likeliest class by the features is expected to be another one, up to which
#: classes are clear. Of some 30 kinds of tables of 80 and 250 rows, seeds 11 and 12, 87 seemed to
#: have such classes with an overlap of up to a tenth: of those beyond 0.05 13 of 25 got worse
#: labels, of the others none but of right labels that differ within clusters.
_OVERLAP = 0.05

#: Standard errors by which any two classes have more labels of their own than of each other.
_SURELY = 2.0


@dataclass(frozen=True)
class Components:
    """Principal components of standardised columns, as many as these columns span.

    Attributes:
        mean, scale: ``(d,)`` of the columns.
        axes: ``(d, r)``.
    """

    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "d r"]

    @classmethod
    def of(cls, points: Float[np.ndarray, "n d"]) -> Components:
        """Of training rows."""
        x = np.asarray(points, float)
        scale = x.std(0)
        found = cls(x.mean(0), np.where(scale > 0, scale, 1), np.eye(x.shape[1]))
        inside = found(x)
        _, size, axes = np.linalg.svd(inside - inside.mean(0), full_matrices=False)
        return cls(found.mean, found.scale, axes[size > _RANK * size[0]].T)

    def __call__(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n r"]:
        x = (np.asarray(points, float) - self.mean) / self.scale
        return np.clip(x, -_FENCE, _FENCE) @ self.axes


@dataclass(frozen=True)
class NormalClassifier:
    """P(class | features) by classes of normal or Student's t shape.

    Attributes:
        coding: from rows of features, and booleans of missing cells or None, to points.
        components: of the points.
        parts: one a class.
    """

    coding: Callable[..., Any]
    components: Components
    parts: Parts

    def log_probabilities(self, x: Any, missing: Any = None) -> Float[np.ndarray, "n k"]:
        """Of the classes of new rows.

        Args:
            x: ``(n, d)`` features, coded as the training rows' were.
            missing: ``(n, d)`` booleans of cells that are missing, or None.
        """
        return self.parts.log_probabilities(self.components(self.coding(x, missing)))


class ClearClasses(NamedTuple):
    """Clear classes, found with the noise of their labels.

    Attributes:
        components: of the features, by which items have a place among the classes.
        classes: in that space.
        log_factor: logarithm of the Bayes factor of noisy labels against right ones.
    """

    components: Components
    classes: FoundClasses
    log_factor: float


def normal_classes(
    points: Float[np.ndarray, "n d"],
    codes: Int[np.ndarray, " n"],
    n_classes: int,
    weights: Float[np.ndarray, " n"],
    starts: Sequence[Int[np.ndarray, " n"]] = (),
) -> ClearClasses | None:
    """Clear classes with noisy labels; None where they are not surely there.

    Args:
        points: ``(n, d)`` items in the space of their features.
        codes: ``(n,)`` given labels, negative where there is none.
        n_classes: K.
        weights: ``(n,)`` row weights.
        starts: ``(n,)`` other classes to begin at, -1 where there is none.
    """
    rows = np.flatnonzero((codes >= 0) & (weights > 0))
    given = codes[rows]
    if not 1 < n_classes <= _MOST_CLASSES or not points.shape[1]:
        return None
    if np.bincount(given, minlength=n_classes).min() < _FEWEST or mostly_coarse(points[rows]):
        return None
    components = Components.of(points[rows])
    x, here = components(points[rows]), _of_mean_one(weights[rows])
    if not 0 < x.shape[1] <= min(_COLUMNS, len(x) // _ROWS):
        return None
    labels = np.eye(n_classes)[given]
    classes = np.eye(n_classes + 1, n_classes)  # none of -1
    begun = [mostly_as(classes[one]) for one in (given, *(one[rows] for one in starts))]

    def fitted(start: np.ndarray, channel: Any, freedom: float = np.inf) -> ShapedClasses:
        return fit_classes(x, given, here, start, channel, n_classes, freedom)

    def likeliest(freedom: float) -> ShapedClasses:
        tried = [fitted(one, any_matrix, freedom) for one in begun]
        return max(tried, key=lambda one: one.log_likelihood)

    noisy = [likeliest(freedom) for freedom in FREEDOM]
    best = max(noisy, key=lambda one: one.log_likelihood)
    freedom = best.parts.freedom
    if not _clear(best, x, given, here):
        return None
    further = cost_of_parts(x, n_classes)
    two = in_parts(best.resp, halves(x, best.resp * here[:, None]))
    if fitted(two, any_matrix, freedom).log_likelihood - further > best.log_likelihood:
        return None  # a cluster more, or another shape
    without = mean_evidence([fitted(labels, no_noise, one).log_likelihood for one in FREEDOM])
    for share in (halves(x, labels * here[:, None]), of_each(best.resp, given)[:, None]):
        right = fitted(in_parts(labels, share), no_noise, freedom).log_likelihood
        without = max(without, right - further)
    by_one = [fitted(o.resp, one_rate, o.parts.freedom) for o in noisy]
    logs = [evidence_of_any(one, labels, here) for one in noisy]
    logs += [evidence_of_one(one, labels, here) for one in by_one]
    log_factor = float(mean_evidence(logs) - without)
    if log_factor < STRONG:
        return None
    return ClearClasses(components, FoundClasses(rows, given, x, here, best), log_factor)


def _of_mean_one(weights: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return np.asarray(weights, float) / np.mean(weights)


def _clear(
    found: ShapedClasses,
    x: Float[np.ndarray, "n d"],
    given: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
) -> bool:
    """Whether classes hardly overlap, and labels say which is which."""
    sure = np.exp(found.parts.log_probabilities(x).max(1))
    overlap = 1 - float(np.average(sure, weights=weights))
    return overlap <= _OVERLAP and _named(found.resp, given, weights)


def _named(
    resp: Float[np.ndarray, "n k"], given: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> bool:
    """Whether no two classes might have each other's name."""
    counts = (weights[:, None] * resp).T @ np.eye(resp.shape[1])[given]
    own = np.diag(counts)[:, None] + np.diag(counts)
    swapped = counts + counts.T
    surely = own - swapped > _SURELY * np.sqrt(own + swapped)
    return bool(surely[~np.eye(len(counts), dtype=bool)].all())
