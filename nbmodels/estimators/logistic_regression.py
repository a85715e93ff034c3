"""Logistic regression with noisy labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from nbmodels.class_priors import Logistic
from nbmodels.class_priors.logistic import Design
from nbmodels.core import model as models
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.features import Block, check_missing, numbers
from nbmodels.data.validation import check_nonnegative, pad_rows, padded_length
from nbmodels.errors import DataError
from nbmodels.estimators.latent import with_inherited_parameters
from nbmodels.estimators.scored import ScoredClassifier
from nbmodels.fitting.cross_fitting import out_of_fold_log_likelihood

#: The classifier's name in a model of its own.
_FEATURES = "features"

_start = jax.jit(models.start, static_argnames="rule")


@partial(jax.jit, static_argnames="rule")
def _scored(component: Logistic, q: Any, data: Design, rule: Any) -> Any:
    return component.log_probs(component.likelihood_params(q, rule), data)


@dataclass(frozen=True)
class _Features:
    """Checked features, packed when the precision of the fit is known."""

    block: Block

    @cached_property
    def design(self) -> Design:
        x = self.block.x
        # few shapes are compiled for; sparse rows are laid out by their number of entries
        padded = x if self.block.is_sparse else pad_rows(x, padded_length(x.shape[0]))
        return Logistic.pack(padded)


@with_inherited_parameters
class NoisyLogisticRegression(ScoredClassifier):
    """Multinomial logistic regression with noisy labels; dense or sparse X.

    Features may depend on each other: nothing is assumed of them. The regression is that of
    :class:`nbmodels.class_priors.Logistic`, its evidence comes from folds that exclude the item, and is
    calibrated together with the noise; see ``rounds``. Bring columns to similar scales, as for any
    penalised regression.

    Parameters:
        C: inverse strength of the penalty on squared coefficients, as in scikit-learn.
    """

    attributes_doc = """
    coef_: ``(K, d)`` coefficients, calibrated; ``(1, d)`` of the second class where there are two.
    intercept_: ``(K,)`` or ``(1,)``.
    """

    #: No cell of X may be missing.
    missing_values: Any = None

    def __init__(self, *, C: float = 1.0, **shared: Any) -> None:
        super().__init__(**shared)
        self.C = C

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_nonnegative("C", self.C)
        if not self.C > 0:
            raise DataError(f"C: expected a positive number, got {self.C!r}")

    def _items(self, X: Any, *, reset: bool) -> tuple[_Features, int]:
        block = numbers(self, X, reset=reset, accept_sparse=True)
        check_missing(block, declared=False)
        return _Features(block), int(block.x.shape[0])

    def _cells(self, items: _Features, n_classes: int) -> int:
        return int(np.prod(items.block.x.shape)) * n_classes

    def _model(self, n_features: int, n_classes: int) -> dict[str, Logistic]:
        # two classes have two mirrored vectors here, and a single one in scikit-learn
        variance = self.C / 2 if n_classes == 2 else self.C
        return {_FEATURES: Logistic.of(n_features, n_classes, float(np.sqrt(variance)))}

    def _told(
        self, items: _Features, resp: np.ndarray, weights: np.ndarray
    ) -> tuple[Any, Data, Any]:
        design = items.design
        length, n_features = design.x.shape
        padded = jnp.asarray(pad_rows(weights, length))
        data = Data({_FEATURES: design}, padded)
        guess = jnp.asarray(pad_rows(resp, length), padded.dtype)
        return self._model(n_features, resp.shape[1]), data, guess

    def _unseen(
        self, items: _Features, resp: np.ndarray, weights: np.ndarray, fold: np.ndarray
    ) -> np.ndarray:
        model, data, guess = self._told(items, resp, weights)
        folds = jnp.asarray(pad_rows(fold, len(guess)))
        n_folds = int(fold.max()) + 1
        scores = out_of_fold_log_likelihood(model, data, guess, folds, n_folds=n_folds, rule="map")
        return np.asarray(scores)[: len(resp)]

    def _learn(self, items: _Features, resp: np.ndarray, weights: np.ndarray) -> None:
        model, data, guess = self._told(items, resp, weights)
        learned = _start(model, guess, data, "map")[_FEATURES]
        self._regression = jax.tree.map(np.asarray, (model[_FEATURES], learned))

    def _scores(self, items: _Features) -> np.ndarray:
        component, q = jax.tree.map(jnp.asarray, self._regression)
        return np.asarray(_scored(component, q, items.design, "map"))[: items.block.x.shape[0]]

    def _calibrated(self) -> np.ndarray:
        """``(1 + d, K)`` intercepts and coefficients, calibrated; one column for two classes."""
        check_is_fitted(self)
        log_slope, *bias = np.asarray(self.fit_.point[PRIOR], float)
        table = np.exp(log_slope) * np.asarray(self._regression[1].mean, float)
        table[0] += bias
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
