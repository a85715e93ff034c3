"""Learning from partial labels: what items are, what they are not, what they may be (Chen 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np

from nbmodels.channels import CandidateSets
from nbmodels.channels.candidates import pack_candidates
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.model import Data
from nbmodels.data.features import Block, numbers, table
from nbmodels.data.label_sets import Sets, read_sets, read_table
from nbmodels.data.labels import Classes
from nbmodels.data.validation import check_marker, check_nonnegative, pad_rows
from nbmodels.emissions.encoders import BinaryEncoder, CategoryEncoder, CountEncoder, RealEncoder
from nbmodels.errors import DataError
from nbmodels.estimators.base import Columns, TableClassifier
from nbmodels.estimators.labels import LabelSource, known_labels
from nbmodels.estimators.latent import with_inherited_parameters
from nbmodels.fitting.em import evaluate

_ESTIMATORS = ("em", "L1", "L2", "star")
_FEATURES = ("multinomial", "bernoulli", "categorical", "gaussian")


_start = jax.jit(models.start, static_argnames="rule")


@with_inherited_parameters
class PartialLabelNB(TableClassifier):
    """Naive Bayes from positive labels, negative labels and sets of candidates, mixed at will.

    Of an item one may know its class (the paper's S1), classes that it is not of (S2), a set of
    classes that it may be of, or nothing. ``"em"`` sums over what is possible. The other three are
    the closed forms of Chen et al. 2019: weights of items in classes, then weighted counts.

    ==========  ==============================================================  ============
    estimator   weight of an item in class i                                    the paper
    ==========  ==============================================================  ============
    ``"L1"``    even over its possible classes, zero elsewhere                  (3.3), (4.2)
    ``"L2"``    ``y_i - z_i + t``; y marks its label, z its excluded classes    (3.4), (4.4)
    ``"star"``  as L2, with ``z = 1 - y`` for items whose label is given        (4.5)
    ``"em"``    P(class i | features, class possible), iterated                 not there
    ==========  ==============================================================  ============

    Items of which nothing is known count for ``"em"`` only. The class shares get the same weights.

    Parameters:
        estimator: ``"em"``, ``"L1"``, ``"L2"`` or ``"star"``.
        t: of L2 and star, 1 or more; every item counts that much in every class.
        features: ``"multinomial"``, ``"bernoulli"``, ``"categorical"`` or ``"gaussian"``.
        alpha: pseudo-counts of each feature in each class, for the discrete features; the paper has
            none.
        missing_label: value of y that means "no label"; None: nulls do.
    """

    def __init__(
        self,
        *,
        estimator: Literal["em", "L1", "L2", "star"] = "em",
        t: float = 2.0,
        features: Literal["multinomial", "bernoulli", "categorical", "gaussian"] = "multinomial",
        alpha: float = 1.0,
        missing_label: Any = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.estimator = estimator
        self.t = t
        self.features = features
        self.alpha = alpha
        self.missing_label = missing_label

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, excluded: Any = None) -> Self:
        """Fit to features and to what is known of the items' classes.

        Args:
            X: ``(N, d)`` features.
            y: what items may be: a label, a list or set of candidate labels, or null, an item; or
                ``(N, K)`` booleans of the classes in the order of ``classes``, true where possible.
            sample_weight: ``(N,)`` row weights, 0 or more.
            excluded: what items are not: the same forms, true where excluded; or a mapping row ->
                label or labels.

        Raises:
            DataError: bad input, naming the argument and the row; an item with no class left.

        Warns:
            NotConvergedWarning: the iteration of ``"em"`` did not converge.
        """
        return self._fit(X, sample_weight, lambda n_rows: self._labels(y, excluded, n_rows))

    # What the base asks -------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, known in (("estimator", _ESTIMATORS), ("features", _FEATURES)):
            if getattr(self, name) not in known:
                raise DataError(f"{name}: expected one of {known}, got {getattr(self, name)!r}")
        if not (isinstance(self.t, Real) and 1 <= float(self.t) < np.inf):
            raise DataError(f"t: expected a finite number, 1 or more; got {self.t!r}")
        check_nonnegative("alpha", self.alpha)
        check_marker("missing_label", self.missing_label)

    def _block(self, X: Any, *, reset: bool) -> Block:
        if self.features == "categorical":
            return table(self, X, reset=reset)[0]
        return numbers(self, X, reset=reset, accept_sparse=self.features != "gaussian")

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        fit: Any = {
            "multinomial": partial(CountEncoder.fit, alpha=self.alpha),
            "bernoulli": partial(BinaryEncoder.fit, alpha=self.alpha),
            "categorical": partial(CategoryEncoder.fit, alpha=self.alpha),
            "gaussian": RealEncoder.fit,
        }[self.features]
        return [Columns("features", np.arange(len(block.names)), fit(block, weights))]

    def _labels(self, y: Any, excluded: Any, n_rows: int) -> tuple[Classes, dict[str, LabelSource]]:
        """The classes, and what is possible as a channel."""
        if y is None and excluded is None:
            raise DataError(
                "y: PartialLabelNB requires y to be passed, but the target y is None, and so is "
                "excluded"
            )
        parts: dict[str, Any] = {"y": y, "excluded": excluded}
        tables = {name: read_table(name, v, n_rows) for name, v in parts.items() if v is not None}
        sets = {
            name: read_sets(name, parts[name], n_rows, self.missing_label)
            for name, found in tables.items()
            if found is None
        }
        classes = self._classes(tables, sets)
        k = len(classes)
        whole = np.zeros((n_rows, k), bool)
        read = {name: s.table(name, classes) for name, s in sets.items()}
        for name, found in tables.items():
            if found is not None:
                if found[0].shape[1] != k:
                    raise DataError(f"{name}: has {found[0].shape[1]} columns for {k} classes")
                read[name] = found[0]

        named, negative = read.get("y", ~whole), read.get("excluded", whole)
        if "y" in sets:
            named = named | ~sets["y"].given[:, None]
        possible = named & ~negative
        empty = np.flatnonzero(~possible.any(1))
        if len(empty):
            raise DataError(f"y: row {empty[0]} has every class excluded; leave at least one")
        if possible.all():
            raise DataError("y: no label of any item is known, nor what an item is not")
        positive = named & (named.sum(1, keepdims=True) == 1)
        single = positive.any(1, keepdims=True)
        self._item_weights = self._weights(positive, ~single & ~named | negative, possible)
        channel = partial(CandidateSets.of, k)
        return classes, {
            "candidates": LabelSource(
                channel, possible, True, lambda rows: pack_candidates(rows, k)
            )
        }

    def _classes(self, tables: Mapping[str, Any], sets: Mapping[str, Sets]) -> Classes:
        """From ``classes``, else the columns' names, else all labels that occur."""
        declared = self.classes
        for found in tables.values():
            if declared is None and found is not None:
                declared = np.arange(found[0].shape[1]) if found[1] is None else found[1]
        labels = np.concatenate([s.labels for s in sets.values()]) if sets else np.zeros(0)
        return Classes.infer(known_labels(labels), declared)

    def _weights(self, y: np.ndarray, z: np.ndarray, possible: np.ndarray) -> np.ndarray | None:
        """``(N, K)`` weights of the items in the classes, None for ``"em"``.

        Args:
            y: true for the one label of an item.
            z: true for the classes that an item is said not to be of.
            possible: true for the classes that are left.
        """
        if self.estimator == "em":
            return None
        known = ~possible.all(1, keepdims=True)
        if self.estimator == "L1":
            return known * possible / possible.sum(1, keepdims=True)
        if self.estimator == "star":
            z = np.where(y.any(1, keepdims=True), ~y, z)
        return known * (y + float(self.t) - z)

    def _solve(
        self,
        model: Mapping[str, Component],
        data: Data,
        classes: Classes,
        n_rows: int,
        start: Any = None,
        log_jacobian: Any = 0.0,
    ) -> None:
        if self._item_weights is None:
            super()._solve(model, data, classes, n_rows, start, log_jacobian)
            return
        weights = jnp.asarray(pad_rows(self._item_weights, len(data.weights)))
        params = _start(model, weights, data, rule=self._rule)
        fitted = evaluate(model, params, data, rule=self._rule)
        self._keep(fitted, data, classes, n_rows, log_jacobian)

    def _read_out(self) -> None:
        raw = self.fit_.model["features"].values(self.fit_.point["features"])
        self.feature_parameters_ = self._columns_[0].encoder.units(jax.tree.map(np.asarray, raw))
        if self.features == "multinomial":
            self.feature_log_prob_ = np.asarray(self.fit_.point["features"], float).T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.features in ("multinomial", "bernoulli")
        tags.input_tags.positive_only = self.features == "multinomial"
        tags.classifier_tags.poor_score = self.features == "multinomial"
        return tags
