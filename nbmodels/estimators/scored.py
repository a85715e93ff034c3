"""Estimators whose features speak through a classifier that has not seen the item's own label."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from nbmodels.class_priors import Calibration
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.validation import check_weights, pad_rows, padded_length
from nbmodels.errors import DataError
from nbmodels.estimators.labels import LabelledClassifier
from nbmodels.estimators.predicted import PredictedClasses
from nbmodels.estimators.settings import choice_table, fixed, grids, is_auto
from nbmodels.fitting.selection import Settings, choose, draw_folds, labels_guess, told

#: Standard deviation of the logarithm of the slope. A classifier's probabilities are those of the
#: noisy labels: where 70 % are right, they become certainties at slopes of 6 to 18.
_LOG_SLOPE_SD = 2.0


@partial(jax.jit, static_argnames="rule")
def _calibrated(prior: Any, q: Any, scores: Any, rule: Any) -> Any:
    return jax.nn.softmax(
        prior.log_probs(prior.likelihood_params(q, rule), Calibration.pack(scores))
    )


class ScoredClassifier(PredictedClasses, LabelledClassifier):
    """Base of the estimators with a discriminative classifier of the features.

    A classifier with enough features learns wrong labels by heart, and then finds nothing wrong
    with them. So what it says of an item comes from a fit to the other folds' items; how far that
    is to be believed (:class:`nbmodels.class_priors.Calibration`) and the noise are fitted together; and
    for some ``rounds`` the classifier learns anew, from the probabilities of the classes found.
    """

    parameters_doc = """
    rounds: how often the classifier is learned anew from the corrected labels; at 0 it learns from
        the given ones alone; ``"auto"`` for as often as held-out labels reward it. A round costs
        the square of ``cv`` trainings: what scores a fold never saw its labels, in no round.
    cv: number of folds; or a splitter of scikit-learn's, or a list of (train, test) rows, of which
        the tests hold each row once.
    """

    attributes_doc = """
    chosen_: values of what was "auto", with the number of rounds.
    choice_: data frame of all that was compared, by the log-likelihood of held-out labels; None
        where there was nothing to choose.
    """

    def __init__(
        self,
        *,
        rounds: int | Literal["auto"] = "auto",
        cv: Any = 5,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.rounds = rounds
        self.cv = cv

    # What subclasses say ------------------------------------------------------------------------

    def _items(self, X: Any, *, reset: bool) -> tuple[Any, int]:
        """X, checked as far as its kind allows, and the number of rows."""
        raise NotImplementedError  # the subclass knows its features

    def _cells(self, items: Any, n_classes: int) -> int:
        """Rows x columns x classes, by which precision is chosen."""
        raise NotImplementedError  # the subclass knows its features

    def _unseen(
        self, items: Any, resp: np.ndarray, weights: np.ndarray, fold: np.ndarray
    ) -> np.ndarray:
        """``(N, K)`` scores of each item by a classifier of the other folds' items.

        Args:
            items: from :meth:`_items`.
            resp: ``(N, K)`` responsibilities to learn from, rows of zeros where nothing is known.
            weights: ``(N,)`` row weights.
            fold: ``(N,)`` fold of each item.
        """
        raise NotImplementedError  # the subclass knows its classifier

    def _learn(self, items: Any, resp: np.ndarray, weights: np.ndarray) -> None:
        """Learn the classifier that new items meet; arguments as in :meth:`_unseen`."""
        raise NotImplementedError  # the subclass knows its classifier

    def _scores(self, items: Any) -> np.ndarray:
        """``(N, K)`` scores of new items."""
        raise NotImplementedError  # the subclass knows its classifier

    # Fitting ------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole = isinstance(self.rounds, int | np.integer) and self.rounds >= 0
        if not (whole or is_auto(self.rounds)):
            raise DataError(
                f"rounds: expected a whole number, 0 or more, or 'auto'; got {self.rounds!r}"
            )
        if isinstance(self.cv, int | np.integer) and self.cv < 2:
            raise DataError(f"cv: expected two folds or more, got {self.cv!r}")

    def _folds(self, items: Any, guess: Any, n_rows: int, key: Any) -> np.ndarray:
        """``(n_rows,)`` fold of each row."""
        if isinstance(self.cv, int | np.integer):
            return draw_folds(guess[:n_rows], int(self.cv), key)
        from sklearn.model_selection import check_cv  # a tenth of the library's start

        fold = np.full(n_rows, -1)
        times = np.zeros(n_rows, int)
        codes = np.asarray(guess[:n_rows]).argmax(1)
        for k, (_, test) in enumerate(check_cv(self.cv).split(np.zeros(n_rows), codes)):
            fold[test] = k
            times[test] += 1
        bad = np.flatnonzero(times != 1)
        if len(bad):
            raise DataError(
                f"cv: row {bad[0]} is in {times[bad[0]]} test folds; every row must be in one"
            )
        return fold

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        trusted: Any = None,
        votes: Any = None,
    ) -> Self:
        """Fit the classifier, how far to believe it, and the noise.

        Args:
            X: ``N`` items.
            y: ``(N,)`` given labels, of any type; ``missing_label`` where there is none; None where
                all labels are votes.
            sample_weight: ``(N,)`` row weights, 0 or more.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping row -> label.
            votes: labels of several annotators: a table with columns ``task`` (the row of X, or its
                index where X is a data frame), ``worker`` and ``label``.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
        """
        self._check_parameters()
        items, n_rows = self._items(X, reset=True)
        index = X.index if isinstance(X, pd.DataFrame | pd.Series) else None
        more = {} if votes is None else {"votes": votes, "items": index}
        classes, labels = self._labels(y, n_rows, trusted, **more)
        weights = check_weights(sample_weight, n_rows)
        with jax.enable_x64(self._double(self._cells(items, len(classes)))):
            length, k = padded_length(n_rows), len(classes)
            parts = {name: source.padded(length) for name, source in labels.items()}
            data = Data(parts, jnp.asarray(pad_rows(weights, length)))
            how = self._how({}, classes.names)
            guess = labels_guess(fixed(self, {})._label_components(labels, k), data)
            fold = self._folds(items, guess, n_rows, how["key"])
            seen: dict[str, Any] = {"resp": None}

            def tell(settings: Settings, resp: Any) -> tuple[Any, Data]:
                if seen["resp"] is not resp:
                    known = np.asarray(resp)[:n_rows]
                    scores = self._unseen(items, known, weights, fold)
                    seen.update(resp=resp, scores=pad_rows(scores, length))
                one = fixed(self, settings)
                model = {PRIOR: self._prior(k), **one._label_components(labels, k)}
                return told(model, data, seen["scores"], k, _LOG_SLOPE_SD)

            with self._report() as report, self._bar("choosing settings") as bar:
                found = choose(
                    tell,
                    guess,
                    pad_rows(fold, length),
                    grid=grids(self),
                    rounds=None if is_auto(self.rounds) else int(self.rounds),
                    pooled=lambda s: ("labels",) if fixed(self, s)._pools_noise else (),
                    second_start=True,
                    tried=bar.update,
                    report=report,
                    **how,
                )
            fitted, guess = found.fit, found.guess
            self._unseen_scores = found.scores[:n_rows]
            self.choice_ = choice_table(found)
            self._settings = found.settings
            self.chosen_ = {**found.settings, "rounds": found.rounds}
            self._keep(fitted, data, classes, n_rows)
            self._rows = pd.RangeIndex(n_rows) if index is None else index
            self._learn(items, np.asarray(guess)[:n_rows], weights)
        return self

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` P(true class | features)."""
        check_is_fitted(self)
        items, _ = self._items(X, reset=False)
        with jax.enable_x64(self._double_):
            prior, q = self.fit_.model[PRIOR], self.fit_.params[PRIOR]
            out = _calibrated(prior, q, jnp.asarray(self._scores(items)), self.fit_.rule)
            resp = np.asarray(out, float)
        return resp / resp.sum(1, keepdims=True)

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def class_prior_(self) -> np.ndarray:
        """``(K,)`` shares of the true classes among the training items."""
        resp = self.label_posterior_
        return np.average(resp, 0, self._data.weights[: len(resp)])
