"""Logistic regression as a learner of responsibilities: out-of-fold scores, and those of new rows.

It assumes nothing of the features, and is the plain answer where a model of them is refuted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from inference.arrays import on_device
from nbmodels.class_priors import Logistic
from nbmodels.class_priors.logistic import Design
from nbmodels.core.model import Data
from nbmodels.data.features import Block
from nbmodels.data.outliers import Winsoriser
from nbmodels.data.validation import pad_rows, padded_length
from nbmodels.fitting.points import Coding
from nbmodels.fitting.scores import out_of_fold_log_likelihood, params_of_all

#: The classifier's name in a model of its own.
_FEATURES = "features"

#: Values of ``C`` that are compared, of standardised columns and of sparse ones, whose scale is
#: theirs. Wrong labels ask for more regularisation than right ones.
GRID, SPARSE_GRID = (0.1, 1.0, 0.01), (1.0, 0.1, 10.0)

#: Values far out in their columns as they are, and cut off at Tukey's outer fences.
KEPT, CUT_OFF = "kept", "cut off"


@partial(jax.jit, static_argnames="rule")
def _log_probs(component: Logistic, q: Any, data: Design, rule: Any) -> Any:
    return component.log_probs(component.likelihood_params(q, rule), data)


class Scale(NamedTuple):
    """By what dense columns are cut off, and then standardised.

    Attributes:
        location, scale: ``(d,)`` of each column.
        fences: between which values are; None where all are kept.
    """

    location: np.ndarray
    scale: np.ndarray
    fences: Winsoriser | None = None

    @classmethod
    def of(cls, block: Block, weights: np.ndarray, fences: Winsoriser | None = None) -> Scale:
        """Of the rows that have a weight; sparse columns stay as they are."""
        if block.is_sparse:
            return cls(np.zeros(block.x.shape[1]), np.ones(block.x.shape[1]))
        x = block.x if fences is None else fences.transform(block.x)
        mass = weights / weights.sum()
        location = mass @ x
        scale = np.sqrt(mass @ np.square(x - location))
        # a column that varies by less than its values' rounding is constant
        flat = scale <= 1e-12 * np.abs(location)
        return cls(location, np.where(flat, 1.0, scale), fences)

    def applied(self, x: np.ndarray) -> np.ndarray:
        """Columns cut off and standardised."""
        inside = x if self.fences is None else self.fences.transform(x)
        return (inside - self.location) / self.scale


def scales_of(block: Block, weights: np.ndarray) -> dict[str, Scale]:
    """What columns may be standardised by, the cautious way first: a way for kept outliers, and one
    without them where there are any."""
    found = {KEPT: Scale.of(block, weights)}
    if not block.is_sparse:
        fences = Winsoriser().fit(block.x[weights > 0])
        if not np.array_equal(fences.transform(block.x), block.x):
            found[CUT_OFF] = Scale.of(block, weights, fences)
    return found


@dataclass(frozen=True)
class Regression:
    """Logistic regression of checked features, packed where the precision of the fit holds.

    Attributes:
        block: features.
        scales: by which they are standardised, a way for each value of the setting ``outliers``;
            none where they are not.
        rounds, halves: see :class:`nbmodels.fitting.classifier_scores.Learner`.
    """

    block: Block
    scales: Mapping[str, Scale]
    rounds: int = 1
    halves: ClassVar[bool] = False

    @cached_property
    def _designs(self) -> dict[str, Design]:
        return {}

    def design(self, outliers: str = KEPT) -> Design:
        """The columns as the regression takes them, packed."""
        if outliers not in self._designs:
            self._designs[outliers] = self._packed(self.scales.get(outliers))
        return self._designs[outliers]

    def _packed(self, scale: Scale | None) -> Design:
        x = self.block.x
        if self.block.is_sparse:
            return Logistic.pack(x)
        if scale is not None:
            x = scale.applied(x)
        # few shapes are compiled for; sparse rows are laid out by their number of entries
        return Logistic.pack(pad_rows(x, padded_length(*x.shape)))

    def component(self, n_classes: int, C: float) -> Logistic:
        # two classes have two mirrored vectors here, and a single one in scikit-learn
        variance = C / 2 if n_classes == 2 else C
        return Logistic.of(self.block.x.shape[1], n_classes, float(np.sqrt(variance)))

    def _given(
        self, resp: np.ndarray, weights: np.ndarray, settings: Mapping[str, Any]
    ) -> tuple[Any, Data, Any]:
        design, C = self.design(settings.get("outliers", KEPT)), float(settings["C"])
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
        model, data, guess = self._given(resp, weights, settings)
        padded = on_device(pad_rows(fold.astype(np.int32), len(guess)))
        n_folds = int(fold.max()) + 1
        found = out_of_fold_log_likelihood(model, data, guess, padded, n_folds=n_folds, rule="map")
        return np.asarray(found)[: len(resp)]

    def learned(
        self, resp: np.ndarray, weights: np.ndarray, settings: Mapping[str, Any]
    ) -> tuple[Logistic, Any]:
        """The component and its parameters, fitted to all items."""
        model, data, guess = self._given(resp, weights, settings)
        found = params_of_all(model, data, guess)[_FEATURES]
        return jax.tree.map(np.asarray, (model[_FEATURES], found))

    def classifier(
        self, coding: Coding, resp: np.ndarray, weights: np.ndarray, settings: Mapping[str, Any]
    ) -> CodedRegression:
        """The regression of new rows, fitted to all items.

        Args:
            coding: by which rows became points.
            resp: ``(N, K)`` responsibilities to learn from.
            weights: ``(N,)`` row weights.
            settings: those of the regression among them.
        """
        return CodedRegression(coding, self.learned(resp, weights, settings))

    def scores(self, learned: tuple[Logistic, Any]) -> Float[np.ndarray, "n k"]:
        """Log-probabilities of the rows by a component and its parameters, learned of others."""
        component, q = jax.tree.map(on_device, learned)
        found = np.asarray(_log_probs(component, q, self.design(), "map"))
        return found[: self.block.x.shape[0]]


@dataclass(frozen=True)
class CodedRegression:
    """A regression with the coding of its columns, by which new rows have scores.

    Attributes:
        coding: of rows as points (:mod:`nbmodels.fitting.points`).
        learned: component and parameters.
    """

    coding: Coding
    learned: tuple[Logistic, Any]

    def scores(self, block: Block) -> Float[np.ndarray, "n k"]:
        """Log-probabilities of new rows.

        Args:
            block: checked columns.
        """
        return Regression(coded_block(self.coding, block), {}).scores(self.learned)


def coded_block(coding: Coding, block: Block) -> Block:
    """Rows as points, without missing cells.

    Args:
        coding: of rows.
        block: checked columns.
    """
    x = coding(block.x, block.missing)
    return Block(x, None, tuple(map(str, range(x.shape[1]))))
