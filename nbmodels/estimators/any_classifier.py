"""Any classifier of scikit-learn's kind, made aware of wrong labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _num_samples, has_fit_parameter, validate_data

from nbmodels.errors import DataError
from nbmodels.estimators.latent import with_inherited_parameters
from nbmodels.estimators.scored import ScoredClassifier

#: A class that is less likely than this is left out of an item's weighted copies.
_LEAST_SHARE = 0.01


def _weight_name(estimator: Any) -> str | None:
    """Keyword by which an estimator's ``fit`` takes row weights, through the steps of a pipeline;
    None where it takes none.
    """
    steps = getattr(estimator, "steps", None)
    if steps is None:
        return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
    name, last = steps[-1]
    inner = _weight_name(last)
    return None if inner is None else f"{name}__{inner}"


def _learned(base: Any, items: Any, resp: np.ndarray, weights: np.ndarray) -> Any:
    """A clone fitted to class codes: to each row once a class, weighted, or to its likeliest one.

    Args:
        base: estimator.
        items: rows of any kind.
        resp: ``(N, K)`` responsibilities; rows of zeros are left out.
        weights: ``(N,)`` row weights.
    """
    name = _weight_name(base)
    known = resp.any(1) & (weights > 0)
    if name is None:
        rows = np.flatnonzero(known)
        return clone(base).fit(_safe_indexing(items, rows), resp[rows].argmax(1))
    kept = np.where(known[:, None] & (resp >= _LEAST_SHARE), resp, 0)
    kept *= (weights / np.where(known, kept.sum(1), 1))[:, None]
    rows, codes = np.nonzero(kept)
    return clone(base).fit(_safe_indexing(items, rows), codes, **{name: kept[rows, codes]})


def _log_probs(estimator: Any, items: Any, n_classes: int, floor: float) -> np.ndarray:
    """``(N, K)`` log-probabilities; a class that the estimator never saw gets the floor."""
    found = np.zeros((_num_samples(items), n_classes))
    found[:, estimator.classes_] = estimator.predict_proba(items)
    return np.log(np.maximum(found, floor))


@with_inherited_parameters
class NoisyLabelClassifier(ScoredClassifier):
    """Any classifier with ``predict_proba``, with noisy labels.

    Its cross-validated probabilities are calibrated together with the noise; then it learns again,
    from each row once a class that it may belong to, weighted by how likely that is, where its
    ``fit`` takes ``sample_weight``, and from the corrected labels otherwise. X may be whatever the
    classifier takes: arrays, sparse matrices, data frames, lists of texts for a pipeline.

    The labels alone do not tell noise that features predict from classes that overlap. A flexible
    classifier whose probabilities are exact about the noisy labels may leave little noise to be
    found; wrong labels are ranked well even then.

    Parameters:
        base_estimator: classifier of scikit-learn's kind; None for logistic regression.
    """

    attributes_doc = """
    estimator_: the classifier that new items meet. Its classes are numbers, places in ``classes_``.
    """

    def __init__(self, base_estimator: Any = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.base_estimator = base_estimator

    def _base(self) -> Any:
        if self.base_estimator is not None:
            return self.base_estimator
        from sklearn.linear_model import LogisticRegression  # a tenth of the library's start

        return LogisticRegression(max_iter=1000)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not hasattr(self._base(), "predict_proba"):
            raise DataError(
                "base_estimator: expected a classifier with predict_proba, got "
                f"{self.base_estimator!r}"
            )

    def _items(self, X: Any, *, reset: bool) -> tuple[Any, int]:
        if reset:  # of new items the classifier itself checks it
            validate_data(self, X, reset=True, skip_check_array=True)
        (items,) = indexable(X)
        return items, _num_samples(items)

    def _cells(self, items: Any, n_classes: int) -> int:
        return _num_samples(items) * n_classes

    def _unseen(
        self, items: Any, resp: np.ndarray, weights: np.ndarray, fold: np.ndarray
    ) -> np.ndarray:
        if _weight_name(self._base()) is None and not np.isin(weights, (0, 1)).all():
            raise DataError(
                f"sample_weight: {type(self._base()).__name__}.fit takes no sample_weight; weights "
                "must be 0 or 1"
            )
        # what never happened in so many rows is not told from what cannot happen
        self._floor = 1 / max(float(weights.sum()), 2.0)
        out = np.zeros_like(resp, float)
        for k in np.unique(fold):
            held = fold == k
            learned = _learned(self._base(), items, resp, weights * ~held)
            rows = np.flatnonzero(held)
            out[rows] = _log_probs(learned, _safe_indexing(items, rows), resp.shape[1], self._floor)
        return out

    def _learn(self, items: Any, resp: np.ndarray, weights: np.ndarray) -> None:
        self.estimator_ = _learned(self._base(), items, resp, weights)

    def _scores(self, items: Any) -> np.ndarray:
        return _log_probs(self.estimator_, items, len(self.classes_), self._floor)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base())
        tags.input_tags = base.input_tags
        return tags
