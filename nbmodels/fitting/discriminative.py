"""Training of discriminative classifiers with noisy labels: cross-fitted scores, calibrated.

A classifier with enough features overfits to wrong labels, and then predicts each of them. So its
scores of an item come from a fit to the other folds' items; how far they count
(:class:`nbmodels.class_priors.Calibration`) and the noise are fitted together; and for some
self-training rounds the classifier learns anew, from the probabilities of the classes found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import pad_rows, padded_length
from nbmodels.errors import DataError
from nbmodels.fitting.builder import is_pooled
from nbmodels.fitting.cross_fitted import selected
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.label_sources import LabelSource, class_prior
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.scores import Candidate, Settings, draw_folds, label_responsibilities
from nbmodels.fitting.selection import select

#: Prior standard deviation of the logarithm of the slope. A classifier's probabilities are those of
#: the noisy labels: where 70 % are right, they become certainties at slopes of 6 to 18.
LOG_SLOPE_SD = 2.0


class Learner(Protocol):
    """A classifier of the features."""

    def out_of_fold(
        self,
        resp: Float[np.ndarray, "n k"],
        weights: Float[np.ndarray, " n"],
        fold: Int[np.ndarray, " n"],
    ) -> Float[np.ndarray, "n k"]:
        """Scores of each item by a classifier of the other folds' items.

        Args:
            resp: responsibilities to learn from, rows of zeros where nothing is known.
            weights: row weights.
            fold: fold of each item.
        """


@dataclass
class _ClassifierScores:
    """Labels with the scores of a classifier, kept while the responsibilities are the same."""

    learner: Learner
    settings: Settings
    sources: Mapping[str, LabelSource]
    data: Data
    n_classes: int
    weights: np.ndarray
    fold: np.ndarray
    _of: Array | None = None
    _scores: Any = None
    without_shares: ClassVar[bool] = False

    def labels(self, settings: Settings) -> Candidate:
        own = {**self.settings, **settings}
        k = self.n_classes
        channels = {name: source.channel(k, own) for name, source in self.sources.items()}
        learned = ("labels",) if is_pooled(own) and "labels" in channels else ()
        return Candidate({PRIOR: class_prior(k, own), **channels}, self.data, learned)

    def scores(self, settings: Settings, resp: Array) -> Array:
        if resp is not self._of:
            known = np.asarray(resp)[: len(self.weights)]
            found = self.learner.out_of_fold(known, self.weights, self.fold)
            self._of, self._scores = resp, pad_rows(found, len(self.data.weights))
        return self._scores


def train_scored(
    learner: Learner,
    settings: Settings,
    grid: Mapping[str, Any],
    sources: Mapping[str, LabelSource],
    names: np.ndarray,
    weights: np.ndarray,
    options: FitOptions,
    *,
    rounds: int | None,
    cv: Any,
) -> FittedModel:
    """Fit the noise given a classifier's out-of-fold scores, with open settings selected.

    Args:
        learner: the classifier of the features.
        settings: value of every setting that is not open.
        grid: values of each open setting, the cautious one first.
        sources: label sources, by channel.
        names: ``(K,)`` names of the classes.
        weights: ``(N,)`` row weights.
        options: of the fits.
        rounds: self-training rounds; None for as many as held-out labels reward.
        cv: number of folds, splitter, or list of (train, test) rows.

    Raises:
        DataError: no labels, or folds that do not hold each row once.
    """
    n_rows, k = len(weights), len(names)
    length = padded_length(n_rows)
    parts = {name: source.padded(length) for name, source in sources.items()}
    data = Data(parts, jnp.asarray(pad_rows(weights, length)))
    first = {**settings, **{name: values[0] for name, values in grid.items()}}
    channels = {name: source.channel(k, first) for name, source in sources.items()}
    resp = label_responsibilities(channels, data)
    fold = _folds(cv, resp[:n_rows], options.key)
    source = _ClassifierScores(learner, first, sources, data, k, weights, fold)
    found = select(
        source,
        resp,
        pad_rows(fold, length),
        options=options,
        grid=grid,
        rounds=rounds,
        second_start=True,
        log_slope_sd=LOG_SLOPE_SD,
    )
    fitted = selected(found, names, n_rows)
    return replace(fitted, settings={**first, **found.settings})


def predict_scored(
    fitted: FittedModel, scores: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "n k"]:
    """P(true class | features) of new items, from a classifier's scores."""
    return fitted.predict(Data({PRIOR: jnp.asarray(scores)}, jnp.ones(len(scores))))


def _folds(cv: Any, resp: Array, key: Any) -> Int[np.ndarray, " n"]:
    """Fold of each row."""
    if isinstance(cv, int | np.integer):
        return draw_folds(resp, int(cv), key)
    from sklearn.model_selection import check_cv  # a tenth of the library's start

    n_rows = len(resp)
    fold, times = np.full(n_rows, -1), np.zeros(n_rows, int)
    try:
        splitter = check_cv(cv)
    except ValueError as error:
        raise DataError(f"cv: expected a number of folds or a splitter, got {cv!r}") from error
    for k, (_, test) in enumerate(splitter.split(np.zeros(n_rows), np.asarray(resp).argmax(1))):
        fold[test] = k
        times[test] += 1
    bad = np.flatnonzero(times != 1)
    if len(bad):
        raise DataError(
            f"cv: row {bad[0]} is in {times[bad[0]]} test folds; every row must be in one"
        )
    return fold
