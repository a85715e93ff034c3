"""Logistic regression with noisy labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import jax
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from inference.arrays import on_device
from nbmodels.class_priors import Logistic
from nbmodels.class_priors.logistic import Design
from nbmodels.core import model as models
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import Data
from nbmodels.data.features import Block, check_missing, numbers
from nbmodels.data.validation import check_weights, pad_rows, padded_length
from nbmodels.estimators.constraints import Constraint, Number
from nbmodels.estimators.discriminative import SCORED, fit_scored
from nbmodels.estimators.options import (
    NoiseForm,
    Priors,
    RandomState,
    Solver,
    SolverName,
)
from nbmodels.estimators.table import TableClassifier
from nbmodels.fitting.comparisons import with_comparisons
from nbmodels.fitting.copied_rows import row_groups
from nbmodels.fitting.discriminative import predict_scored
from nbmodels.fitting.options import is_auto
from nbmodels.fitting.scores import out_of_fold_log_likelihood

#: The classifier's name in a model of its own.
_FEATURES = "features"

#: Values of ``C`` that are compared, of standardised columns and of sparse ones, whose scale is
#: theirs. Wrong labels ask for more regularisation than right ones.
_GRID, _SPARSE_GRID = (0.1, 1.0, 0.01), (1.0, 0.1, 10.0)

#: Self-training rounds where one pays, if there are more rows than so many, whose errors would
#: otherwise be learned again and again, and no more cells (rows x columns x classes) than so many.
_ROUNDS, _FEW, _LARGE = 4, 200, 20_000_000

_start = jax.jit(models.start, static_argnames="rule")


@partial(jax.jit, static_argnames="rule")
def _scores(component: Logistic, q: Any, data: Design, rule: Any) -> Any:
    return component.log_probs(component.likelihood_params(q, rule), data)


class _Scale(NamedTuple):
    """Location and scale of each column, by which dense columns are standardised."""

    location: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, block: Block, weights: np.ndarray) -> _Scale:
        """Of the rows that have a weight; sparse columns stay as they are."""
        if block.is_sparse:
            return cls(np.zeros(block.x.shape[1]), np.ones(block.x.shape[1]))
        mass = weights / weights.sum()
        location = mass @ block.x
        scale = np.sqrt(mass @ np.square(block.x - location))
        # a column that varies by less than its values' rounding is constant
        flat = scale <= 1e-12 * np.abs(location)
        return cls(location, np.where(flat, 1.0, scale))


@dataclass(frozen=True)
class _Regression:
    """Logistic regression of checked features, packed where the precision of the fit holds.

    Attributes:
        block: features.
        scale: by which they are standardised; None where they are not.
        rounds: see :class:`nbmodels.fitting.discriminative.Learner`.
    """

    block: Block
    scale: _Scale | None
    rounds: int = 1

    @cached_property
    def design(self) -> Design:
        x = self.block.x
        if self.block.is_sparse:
            return Logistic.pack(x)
        if self.scale is not None:
            x = (x - self.scale.location) / self.scale.scale
        # few shapes are compiled for; sparse rows are laid out by their number of entries
        return Logistic.pack(pad_rows(x, padded_length(*x.shape)))

    def component(self, n_classes: int, C: float) -> Logistic:
        # two classes have two mirrored vectors here, and a single one in scikit-learn
        variance = C / 2 if n_classes == 2 else C
        return Logistic.of(self.design.x.shape[1], n_classes, float(np.sqrt(variance)))

    def _given(self, resp: np.ndarray, weights: np.ndarray, C: float) -> tuple[Any, Data, Any]:
        design = self.design
        padded = on_device(pad_rows(weights, design.x.shape[0]))
        data = Data({_FEATURES: design}, padded)
        guess = on_device(pad_rows(resp, design.x.shape[0]), padded.dtype)
        return {_FEATURES: self.component(resp.shape[1], C)}, data, guess

    def out_of_fold(
        self,
        resp: np.ndarray,
        weights: np.ndarray,
        fold: np.ndarray,
        settings: Mapping[str, Any],
        folds: Sequence[int] | None = None,
    ) -> np.ndarray:
        """Of all folds at once, by one program."""
        model, data, guess = self._given(resp, weights, float(settings["C"]))
        padded = on_device(pad_rows(fold.astype(np.int32), len(guess)))
        n_folds = int(fold.max()) + 1
        found = out_of_fold_log_likelihood(model, data, guess, padded, n_folds=n_folds, rule="map")
        return np.asarray(found)[: len(resp)]

    def learned(self, resp: np.ndarray, weights: np.ndarray, C: float) -> tuple[Logistic, Any]:
        """The component and its parameters, fitted to all items."""
        model, data, guess = self._given(resp, weights, C)
        found = _start(model, guess, data, "map")[_FEATURES]
        return jax.tree.map(np.asarray, (model[_FEATURES], found))


class NoisyLogisticRegression(TableClassifier):
    """Multinomial logistic regression with noisy labels; dense or sparse X.

    Features may depend on each other: nothing is assumed of them. The regression is that of
    :class:`nbmodels.class_priors.Logistic`, its scores come from folds that exclude the item, and
    are calibrated together with the noise; see ``rounds``.

    Parameters:
        C: inverse strength of the penalty on squared coefficients. A number is scikit-learn's, and
            columns are taken as they are: bring them to similar scales. ``"auto"``: dense columns
            are standardised, and held-out labels select among 0.1, 1 and 0.01, the first unless
            another is clearly better, since a weak penalty learns wrong labels by heart; sparse
            columns stay as they are, with 1, 0.1 and 10.
        rounds: how often the classifier is learned anew from the corrected labels (self-training);
            at 0 it learns from the given ones alone; ``"auto"`` for four rounds (one with up to 200
            rows, or beyond 20 million cells: rows x columns x classes) where the first makes
            held-out labels likelier by half a standard error, which is tested where there are four
            folds or more. What scores a fold never saw its labels, in no round.
        cv: number of folds, which are the same whatever ``random_state`` is; or a splitter of
            scikit-learn's, or a list of (train, test) rows, of which the tests hold each row once.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, drawn to one error rate as far as the classes are alike: a hierarchical prior),
            or a known ``(K, K)`` matrix ``[observed, true]`` whose columns sum to one. ``"auto"``:
            full, or pooled where held-out labels are surely likelier so; posterior draws are of
            both, at even odds.
        class_prior: ``(K,)`` known shares of the true classes; None to learn them.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration.
        random_state: seed of restarts and posterior draws; None takes others each time.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        chosen_: settings that were selected, with the number of self-training rounds.
        choice_: data frame of all that was compared, or None.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        coef_: ``(K, d)`` coefficients, calibrated; ``(1, d)`` of the second class where there are
            two.
        intercept_: ``(K,)`` or ``(1,)``.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyLogisticRegression
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> X, names = rng.normal(size=(200, 2)), np.array(["ant", "bee"])
        >>> truth = (X @ [2.0, -2.0] > 0).astype(int)
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyLogisticRegression(C=1.0, rounds=1).fit(X, y)
        >>> np.sign(model.coef_)
        array([[ 1., -1.]])
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        172 196
    """

    auto_noise: ClassVar[str] = "auto"
    constraints: ClassVar[Mapping[str, Constraint]] = {
        **SCORED,
        "C": Number(positive=True, words=("auto",)),
    }

    _is_source: ClassVar[bool] = False

    def __init__(
        self,
        *,
        C: float | Literal["auto"] = "auto",
        rounds: int | Literal["auto"] = "auto",
        cv: Any = 5,
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.rounds = rounds
        self.cv = cv
        self.noise = noise
        self.class_prior = class_prior
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.solver = solver
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        trusted: Any = None,
        votes: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the classifier, the calibration of its scores, and the noise.

        Args:
            X: ``N`` items.
            y: ``(N,)`` given labels, of any type; ``missing_label`` where there is none; None where
                all labels are votes.
            sample_weight: ``(N,)`` row weights, 0 or more.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping from rows, by
                the index of X where it is a data frame.
            votes: labels of several annotators: a table with columns ``task`` (the row of X, or its
                index where X is a data frame), ``worker`` and ``label``.
            groups: ``(N,)`` names of what rows belong to, such as a patient's visits, whose labels
                may share an error: they stay in one fold and are no neighbours of each other. Null
                for a row of its own. By default near copies of rows are groups. Intervals
                are as wide as errors that groups share make them.

        Raises:
            DataError: bad input, naming the argument and the row.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant, or the scores
                predict held-out labels no better than the shares of the classes do.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        block = self._read(X, reset=True)
        n_rows = int(block.x.shape[0])
        index = X.index if isinstance(X, pd.DataFrame) else None
        labels = self._labels(y, n_rows, trusted, votes, index)
        weights = check_weights(sample_weight, n_rows)
        self._scale = _Scale.of(block, weights) if is_auto(self.C) else None
        cells = int(np.prod(block.x.shape)) * len(labels.classes)
        rounds = _ROUNDS if n_rows > _FEW and cells <= _LARGE else 1
        items = _Regression(block, self._scale, rounds)
        grid = _SPARSE_GRID if block.is_sparse else _GRID
        own = {"C": grid} if is_auto(self.C) else {}
        copies = row_groups(block.x, groups=groups)
        with computing(self._double(cells)):
            fitted = fit_scored(self, items, parameters, labels, weights, own, copies)
            assert fitted.learned_from is not None  # cross-fitted
            C = float(fitted.settings["C"])
            self._regression = items.learned(fitted.learned_from, weights, C)
        self._keep(X, labels)
        about = fitted, block.x, self._options
        return self._finish(with_comparisons(*about, warn_of_copies=groups is None))

    def _read(self, X: Any, *, reset: bool) -> Block:
        block = numbers(self, X, reset=reset, accept_sparse=True)
        check_missing(block, declared=False)
        return block

    def predict_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` P(true class | features)."""
        check_is_fitted(self)
        items = _Regression(self._read(X, reset=False), self._scale)
        with computing(self.fitted_.double):
            component, q = jax.tree.map(on_device, self._regression)
            scores = np.asarray(_scores(component, q, items.design, "map"))
            return predict_scored(self.fitted_, scores[: items.block.x.shape[0]])

    def _calibrated(self) -> np.ndarray:
        """``(1 + d, K)`` intercepts and coefficients, calibrated; one column for two classes."""
        check_is_fitted(self)
        log_slope, *bias = self.fitted_.calibration
        table = np.exp(log_slope) * np.asarray(self._regression[1].mean, float)
        table[0] += bias
        if self._scale is not None:
            table[1:] /= self._scale.scale[:, None]
            table[0] -= self._scale.location @ table[1:]
        return table[:, 1:] - table[:, :1] if len(bias) == 2 else table

    @property
    def coef_(self) -> np.ndarray:
        """``(K, d)`` coefficients of ``predict_proba``; ``(1, d)`` where there are two classes."""
        return self._calibrated()[1:].T

    @property
    def intercept_(self) -> np.ndarray:
        """``(K,)`` intercepts of ``predict_proba``; ``(1,)`` where there are two classes."""
        return self._calibrated()[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
