"""Classes of a shape that were found with the noise of their labels, as scores of their items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from nbmodels.fitting.class_shapes import ShapedClasses, fit_classes
from nbmodels.fitting.scores import stratified_folds
from nbmodels.fitting.shape_evidence import any_matrix

#: Folds of their scores.
_FOLDS = 5


class FoundClasses(NamedTuple):
    """Classes, found with the noise of their labels.

    Attributes:
        rows: ``(n,)`` items that were looked at.
        codes: ``(n,)`` their given labels.
        x: ``(n, r)`` where they lie.
        weights: ``(n,)`` row weights of mean one.
        found: the classes.
        power: of the class probabilities, see :func:`nbmodels.fitting.class_shapes.fit_classes`;
            None where labels have a noise matrix.
    """

    rows: Int[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    x: Float[np.ndarray, "n r"]
    weights: Float[np.ndarray, " n"]
    found: ShapedClasses
    power: float | None = None

    def out_of_fold(
        self, logs: Float[np.ndarray, "n k"]
    ) -> tuple[Float[np.ndarray, "n k"], Int[np.ndarray, " n"]]:
        """Log-probabilities of the classes of each item without its own label, and its fold.

        Args:
            logs: ``(N, K)`` those of items that were not looked at.
        """
        out, fold = logs.copy(), np.full(len(logs), -1)
        fold[self.rows] = stratified_folds(
            self.codes, _FOLDS, np.random.default_rng(len(self.rows))
        )
        out[self.rows] = self.without_own_labels(fold[self.rows])
        return out, fold

    def without_own_labels(self, fold: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
        """``(n, K)`` log P(class | x) of each row, by classes that did not see its label.

        Args:
            fold: ``(n,)`` of the rows.
        """
        out = np.zeros(self.found.resp.shape)
        for f in np.unique(fold):
            own = fold == f
            out[own] = self._hiding(own).parts.log_probabilities(self.x[own])
        return out

    def _hiding(self, own: np.ndarray) -> ShapedClasses:
        """The classes again, without some rows' labels."""
        k, freedom = self.found.resp.shape[1], self.found.parts.freedom
        if self.power is None:
            start = np.exp(self.found.parts.log_probabilities(self.x))
            begun = np.where(own[:, None], start, self.found.resp)
            hidden = np.where(own, -1, self.codes)
            return fit_classes(self.x, hidden, self.weights, begun, any_matrix, k, freedom)
        # labels of a power are all known: rows without one take no part
        left = np.where(own, 0, self.weights)
        labels = np.eye(k)[self.codes]
        about = self.codes, left / left.mean(), labels, any_matrix, k, freedom, self.power
        return fit_classes(self.x, *about)
