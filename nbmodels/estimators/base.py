"""Estimators of a table of features with labels: X becomes blocks of columns with encoders."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nbmodels import model as models
from nbmodels import spectral
from nbmodels.component import Component
from nbmodels.cut import fit_cut, posterior_of_new, without
from nbmodels.data import (
    Classes,
    check_marker,
    check_nonnegative,
    check_weights,
    pad_rows,
    padded_length,
)
from nbmodels.encoders import Block, Encoder, check_columns, check_missing
from nbmodels.errors import DataError
from nbmodels.estimators.labels import LabelledClassifier, LabelSource
from nbmodels.estimators.latent import LatentClassifier
from nbmodels.estimators.sources import Part
from nbmodels.families import Rule
from nbmodels.fit import Fit
from nbmodels.model import PRIOR, Data

if TYPE_CHECKING:
    from nbmodels.second_opinion import SecondOpinion


@dataclass(frozen=True)
class Columns:
    """A block of columns with its fitted encoder.

    Attributes:
        name: of the emission in the model.
        where: indices of the block's columns in X.
        encoder: fitted to the training data.
    """

    name: str
    where: np.ndarray
    encoder: Encoder


@partial(jax.jit, static_argnames="rule")
def class_posterior(model: Any, params: Any, data: Data, rule: Rule) -> Any:
    """Responsibilities of items under fitted parameters."""
    return models.posterior(model, models.natural(model, params, rule), data)


class TableClassifier(LatentClassifier):
    """Base of the estimators of a table; subclasses say how X becomes blocks of columns."""

    parameters_doc = """
    weight: power of the features' likelihood; below 1 where features depend on each other.
    missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may be.
    """

    def __init__(self, *, weight: float = 1.0, missing_values: Any = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.weight = weight
        self.missing_values = missing_values

    @property
    def _is_cut(self) -> bool:
        """Whether what the labels' channel believes is kept from the features."""
        return False

    @property
    def _emissions(self) -> tuple[str, ...]:
        """Names of the features' components."""
        return tuple(c.name for c in self._columns_)

    # What subclasses say ------------------------------------------------------------------------

    def _block(self, X: Any, *, reset: bool) -> Block:
        """All columns of X, checked as far as their kind allows."""
        raise NotImplementedError  # one of the readers in nbmodels.estimators.reading

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        """Fitted encoders of the blocks of columns."""
        raise NotImplementedError  # the subclass knows its emission

    def _read_out(self) -> None:
        """Set the familiar attributes of scikit-learn's naive Bayes; nothing by default."""

    def _start(self, model: Any, data: Data) -> Any:
        """Parameters to begin the fit from; None to begin from the labels."""
        return None

    def _known(self, n_rows: int) -> dict[str, LabelSource]:
        """What is known of rows to be predicted beside their features; nothing by default."""
        return {}

    # Fitting ------------------------------------------------------------------------------------

    def _fit(
        self,
        X: Any,
        sample_weight: Any,
        read: Callable[[int], tuple[Classes, dict[str, LabelSource]]],
    ) -> Self:
        """Fit the model; ``read`` takes the number of rows to the classes and the labels."""
        self._check_parameters()
        block = self._block(X, reset=True)
        n_rows = block.x.shape[0]
        # classes first: their names are what everything else is checked against
        classes, labels = read(n_rows)
        weights = check_weights(sample_weight, n_rows)
        check_missing(block, self.missing_values is not None)
        check_columns(block)
        with jax.enable_x64(self._double(block.x.shape[0] * block.x.shape[1] * len(classes))):
            columns = self._columns_ = self._columns(block, weights)
            model = self._model(columns, classes, labels)
            data = self._encode(model, columns, block, weights, labels)
            jacobian = sum(c.encoder.log_jacobian(block.columns(c.where)) for c in columns)
            self._solve(
                model,
                data,
                classes,
                n_rows,
                start=self._start(model, data),
                # what is said of the labels given the features does not depend on the coding
                log_jacobian=0.0 if self._is_cut else self.weight * jacobian,
            )
            self._feature_names = block.names
            self._rows = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(n_rows)
            self._read_out()
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_nonnegative("weight", self.weight)
        check_marker("missing_values", self.missing_values)

    def _model(
        self, columns: list[Columns], classes: Classes, labels: dict[str, LabelSource]
    ) -> dict[str, Component]:
        k = len(classes)
        model = {PRIOR: self._prior(k), **{name: s.component() for name, s in labels.items()}}
        for c in columns:
            model[c.name] = replace(c.encoder.component(k), weight=self.weight)
        return model

    def _encode(
        self,
        model: Any,
        columns: list[Columns],
        block: Block,
        weights: np.ndarray,
        labels: dict[str, LabelSource],
    ) -> Data:
        n_rows = len(weights)
        length = n_rows if block.is_sparse else padded_length(n_rows)
        parts: dict[str, Any] = {PRIOR: None}
        for name, source in labels.items():
            parts[name] = source.padded(length)
        for c in columns:
            parts[c.name] = c.encoder.pack(model[c.name], block.columns(c.where), length)
        return Data(parts, jnp.asarray(pad_rows(weights, length)))

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> int | None:
        """Number of rows of a table."""
        return int(values.shape[0]) if hasattr(values, "shape") else len(values)

    def _source_classes(self, values: Any) -> np.ndarray | None:
        """None: features name no class."""
        return None

    def _source_learn(
        self, values: Any, items: np.ndarray, classes: Classes, weights: np.ndarray
    ) -> dict[str, Part]:
        """Emissions with their data, by block of columns; see :class:`Source`."""
        TableClassifier._check_parameters(self)
        if self._is_cut:
            raise DataError("feedback: a source beside others cannot be cut; expected 'full'")
        block = self._block(values, reset=True)
        check_missing(block, self.missing_values is not None)
        check_columns(block)
        self._columns_ = self._columns(block, weights)
        self._feature_names = block.names
        out = {}
        for c in self._columns_:
            component = replace(c.encoder.component(len(classes)), weight=self.weight)
            here = block.columns(c.where)
            data = c.encoder.pack(component, here, len(items))
            out[c.name] = Part(component, data, c.encoder.log_jacobian(here))
        self._components = {name: part.component for name, part in out.items()}
        return out

    def _source_apply(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        """Packed rows in the coding learned; see :class:`Source`."""
        block = self._block(values, reset=False)
        check_missing(block, self.missing_values is not None)
        return {
            c.name: c.encoder.pack(self._components[c.name], block.columns(c.where), len(items))
            for c in self._columns_
        }

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` P(true class | features)."""
        check_is_fitted(self)
        block = self._block(X, reset=False)
        check_missing(block, self.missing_values is not None)
        n_rows = block.x.shape[0]
        with jax.enable_x64(self._double_):
            model = jax.tree.map(jnp.asarray, self.fit_.model)
            data = self._encode(model, self._columns_, block, np.ones(n_rows), self._known(n_rows))
            params, rule = self.fit_.params, self.fit_.rule
            if self._is_cut:
                out = posterior_of_new(model, params, data, self._emissions, rule)
            else:
                out = class_posterior(model, params, data, rule).resp
            resp = np.asarray(out, float)[:n_rows]
        return resp / resp.sum(1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` log P(true class | features)."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict(self, X: Any) -> np.ndarray:
        """``(N,)`` likeliest true class given the features."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    # Read-outs ----------------------------------------------------------------------------------

    def _features(self) -> dict[str, list[str]]:
        return {c.name: [self._feature_names[j] for j in c.where] for c in self._columns_}

    def _units(self) -> dict[str, Any]:
        return {c.name: c.encoder.units for c in self._columns_}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing_values is not None and bool(
            pd.isna(self.missing_values)
        )
        return tags


class NoisyClassifier(LabelledClassifier, TableClassifier):
    """Base of the estimators of a table with one noisy label an item."""

    parameters_doc = """
    init: where the fit begins: at the ``"labels"``, or at third-order ``"moments"`` of discrete
        features and the labels, which need no class to be labelled right most often.
    feedback: ``"full"`` for the joint model, in which the features learn from what is found of the
        labels; ``"cut"`` to learn the features from the given labels of other items only, and how
        far they are to be believed together with the noise; or a number of rounds in which a cut
        lets the features be refitted. A cut holds where the model of the features does not.
    """

    def __init__(
        self,
        *,
        init: Literal["labels", "moments"] = "labels",
        feedback: Literal["full", "cut"] | int = "full",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.init = init
        self.feedback = feedback

    @property
    def _is_cut(self) -> bool:
        return self.feedback != "full"

    def _how(self, model: Any, names: Any = None) -> dict[str, Any]:
        how = super()._how(model, names)
        if self._is_cut:
            rounds = 0 if self.feedback == "cut" else int(self.feedback)
            how["run"] = partial(fit_cut, features=self._emissions, rounds=rounds)
        return how

    @property
    def class_prior_(self) -> np.ndarray:
        """``(K,)`` shares of the true classes; among the training items, where feedback is cut."""
        if not self._is_cut:
            return super().class_prior_
        resp = self.label_posterior_
        return np.average(resp, 0, self._data.weights[: len(resp)])

    def _sampled(self) -> tuple[Fit, Data]:
        fitted, data = super()._sampled()
        return (without(fitted, self._emissions) if self._is_cut else fitted), data

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.init not in ("labels", "moments"):
            raise DataError(f"init: expected 'labels' or 'moments', got {self.init!r}")
        feedback: Any = self.feedback
        words = isinstance(feedback, str) and feedback in ("full", "cut")
        whole = isinstance(feedback, int | np.integer) and not isinstance(feedback, bool)
        if not (words or (whole and feedback >= 0)):
            raise DataError(
                "feedback: expected 'full', 'cut' or a number of rounds, 0 or more; got "
                f"{self.feedback!r}"
            )
        if self._is_cut and self.init == "moments":
            raise DataError("init: 'moments' begins a joint fit; feedback must be 'full'")

    def _start(self, model: Any, data: Data) -> Any:
        if self.init == "labels":
            return None
        votes = models.anchor(model, data)
        assert votes is not None
        return spectral.start(model, data, jax.random.key(self._seed()), self._rule, votes.shape[1])

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        trusted: Any = None,
        votes: Any = None,
    ) -> Self:
        """Fit the model to features and noisy labels.

        Args:
            X: ``(N, d)`` features.
            y: ``(N,)`` given labels, of any type; ``missing_label`` where there is none; None where
                all labels are votes.
            sample_weight: ``(N,)`` row weights, 0 or more.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping row -> label.
            votes: labels of several annotators, each with a noise matrix of their own: a table with
                columns ``task`` (the row of X, or its index where X is a data frame), ``worker``
                and ``label``.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
            VerdictWarning: the data speak against the model; see :meth:`verdict`.
        """
        items = X.index if isinstance(X, pd.DataFrame) else None
        more = {} if votes is None else {"votes": votes, "items": items}
        self._fit(X, sample_weight, lambda n_rows: self._labels(y, n_rows, trusted, **more))
        self.verdict().warn()
        return self

    def second_opinion(self, X: Any, y: Any, classifier: Any = None, cv: int = 5) -> SecondOpinion:
        """The noise matrix by confident learning (Northcutt et al. 2021), beside the fitted one.

        Args:
            X: ``(N, d)`` the features of the fit.
            y: ``(N,)`` the given labels of the fit.
            classifier: any classifier with ``predict_proba`` that takes X; by default a logistic
                regression, which assumes none of what naive Bayes does.
            cv: number of folds, 2 or more.

        Returns:
            see :class:`nbmodels.second_opinion.SecondOpinion`.

        Raises:
            DataError: other labels than those of the fit, or a wrong number of folds.
        """
        from nbmodels.comparison import predicted_labels
        from nbmodels.second_opinion import independent, second_opinion

        check_is_fitted(self)
        given = self._given(y, len(self._codes))
        codes = Classes(self.classes_).encode(
            "y", given, self._missing_labels(given, self.missing_label)
        )
        if not np.array_equal(codes, self._codes):
            row = int(np.flatnonzero(codes != self._codes)[0])
            raise DataError(f"y: row {row} is not the label that the model was fitted to")
        one = independent(X) if classifier is None else classifier
        # a second opinion need not converge
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            probs = predicted_labels(one, X, given, self.classes_, codes, cv, self._seed())
        known = codes >= 0
        return second_opinion(
            self.noise_matrix_,
            self.label_posterior_[known],
            probs[known],
            codes[known],
            self.classes_,
        )
