"""A classifier of scikit-learn's kind as a learner of out-of-fold scores from responsibilities.

It learns from each row once a class that the row may belong to, weighted by how likely that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, has_fit_parameter

from nbmodels.fitting.discriminative import FEW_FOR_ROUNDS, LINEAR_ROUNDS

#: A class that is less likely than this is left out of an item's weighted copies.
_LEAST_SHARE = 0.01

#: Rows x coefficients up to which a linear classifier takes several rounds: one costs some 25
#: trainings. Of a forest, which holds any labels, rounds after the first change nothing.
_LARGE = 300_000

#: Bytes of scores that are kept.
_MOST_KEPT = 100_000_000


def weight_name(estimator: Any) -> str | None:
    """Keyword by which an estimator's ``fit`` takes row weights, through the steps of a pipeline;
    None where it takes none.
    """
    steps = getattr(estimator, "steps", None)
    if steps is None:
        return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
    name, last = steps[-1]
    inner = weight_name(last)
    return None if inner is None else f"{name}__{inner}"


def _learned(base: Any, items: Any, resp: np.ndarray, weights: np.ndarray) -> Any:
    """A clone fitted to class codes: to each row once a class, weighted, or to its likeliest one.

    Of rows of one class nothing is learned, and most classifiers refuse them: no class is
    preferred.

    Args:
        base: estimator.
        items: rows of any kind.
        resp: ``(N, K)`` responsibilities; rows of zeros are left out.
        weights: ``(N,)`` row weights.
    """
    name = weight_name(base)
    known = resp.any(1) & (weights > 0)
    if name is None:
        rows = np.flatnonzero(known)
        codes, more = resp[rows].argmax(1), {}
    else:
        kept = np.where(known[:, None] & (resp >= _LEAST_SHARE), resp, 0)
        kept *= (weights / np.where(known, kept.sum(1), 1))[:, None]
        rows, codes = np.nonzero(kept)
        given = kept[rows, codes]
        # weights of one say nothing, and with any the bins of boosted trees are slow
        more = {} if (given == 1).all() else {name: given}
    if len(np.unique(codes)) == 1:
        return _indifferent(resp.shape[1])
    try:
        return clone(base).fit(_safe_indexing(items, rows), codes, **more)
    except (TypeError, ValueError) as error:
        error.add_note(
            "base_estimator was fitted to X as it is; give a pipeline where columns are to be "
            "encoded or imputed first"
        )
        raise


def _indifferent(n_classes: int) -> Any:
    """A classifier that prefers no class."""
    from sklearn.dummy import DummyClassifier  # a tenth of the library's start

    return DummyClassifier(strategy="uniform").fit(np.zeros(n_classes), np.arange(n_classes))


def log_probs(estimator: Any, items: Any, n_classes: int, floor: float) -> np.ndarray:
    """``(N, K)`` log-probabilities; a class that the estimator never saw gets the floor."""
    found = np.zeros((_num_samples(items), n_classes))
    found[:, estimator.classes_] = estimator.predict_proba(items)
    return np.log(np.maximum(found, floor))


@dataclass
class CrossValidated:
    """Cross-validated log-probabilities of a classifier.

    Attributes:
        base: the classifier.
        items: rows of any kind.
        floor: least probability: what never happened in so many rows is not distinguished from
            what cannot happen.
        n_jobs: trainings at a time, as in joblib.
        n_fits: trainings so far.
        n_coefficients: number of coefficients once learned; 0 of a classifier that is not linear.
        kept: log-probabilities of items, by what the classifier learned from.
    """

    base: Any
    items: Any
    floor: float
    n_jobs: int | None = None
    n_fits: int = 0
    n_coefficients: int = 0
    kept: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def rounds(self) -> int:
        """Rounds where one pays, see :class:`nbmodels.fitting.classifier_scores.Learner`."""
        return 1 if self.halves else LINEAR_ROUNDS

    @property
    def halves(self) -> bool:
        """Whether trainings are dear, or rows few, see the same class."""
        n_rows = _num_samples(self.items)
        return n_rows <= FEW_FOR_ROUNDS or not 0 < n_rows * self.n_coefficients <= _LARGE

    def learned(self, resp: np.ndarray, weights: np.ndarray) -> Any:
        """A clone fitted to the rows that have a weight."""
        self.n_fits += 1
        return _learned(self.base, self.items, resp, weights)

    def out_of_fold(
        self,
        resp: np.ndarray,
        weights: np.ndarray,
        fold: np.ndarray,
        settings: Mapping[str, Any],
        folds: Sequence[int] | None = None,
    ) -> np.ndarray:
        out = np.zeros_like(resp, float)
        every = np.unique(fold) if folds is None else folds
        others = {k: weights * ((fold != k) & resp.any(1)) for k in every}
        # where nothing is left to learn from, no class is preferred
        others = {k: left for k, left in others.items() if left.any()}
        found = self._of_unseen(resp, [*others.values()])
        for k, (rows, scores) in zip(others, found, strict=True):
            held = fold[rows] == k
            out[rows[held]] = scores[held]
        return out

    def _of_unseen(
        self, resp: np.ndarray, weights: Sequence[np.ndarray]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Items without a weight and their log-probabilities, for each of some weights.

        Halves of folds are shared by sequences of self-training rounds, and labels without two
        folds by those of either: what was learned from the same rows is kept.
        """
        used = [one > 0 for one in weights]
        rows = [np.flatnonzero(~one) for one in used]
        keys = [
            hash(tuple(a.tobytes() for a in (unseen, one, resp[one], left[one])))
            for unseen, one, left in zip(rows, used, weights, strict=True)
        ]
        todo = {key: i for i, key in enumerate(keys) if key not in self.kept}
        self.n_fits += len(todo)
        learned = Parallel(n_jobs=self.n_jobs)(
            delayed(_of_others)(self.base, self.items, resp, weights[i], rows[i], self.floor)
            for i in todo.values()
        )
        known = self.kept | {key: scores for key, (scores, _) in zip(todo, learned, strict=True)}
        self.n_coefficients = max([self.n_coefficients, *(size for _, size in learned)])
        found = [known[key] for key in keys]
        while sum(one.nbytes for one in known.values()) > _MOST_KEPT:
            del known[next(iter(known))]
        self.kept = known
        return [*zip(rows, found, strict=True)]


def _of_others(
    base: Any,
    items: Any,
    resp: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    floor: float,
) -> tuple[np.ndarray, int]:
    """``(n, K)`` log-probabilities of some items by a classifier of those with a weight, and its
    number of coefficients.
    """
    learned = _learned(base, items, resp, weights)
    found = log_probs(learned, _safe_indexing(items, rows), resp.shape[1], floor)
    return found, int(np.size(coefficients(learned)))


def coefficients(learned: Any) -> Any:
    """Those of a linear classifier, or of a pipeline's last step: a row for each class, or one of
    two classes; empty where it is not linear.
    """
    last = learned[-1] if hasattr(learned, "steps") else learned
    return getattr(last, "coef_", ())
