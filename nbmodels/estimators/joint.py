"""Every kind of evidence about an item in one model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from nbmodels.channels import CandidateSets
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.label_sets import read_sets, read_table
from nbmodels.data.labels import Classes
from nbmodels.data.validation import as_column, check_length, check_weights
from nbmodels.errors import DataError
from nbmodels.estimators.base import class_posterior
from nbmodels.estimators.labels import LabelledClassifier, LabelSource
from nbmodels.estimators.latent import with_inherited_parameters
from nbmodels.estimators.sources import Part
from nbmodels.fitting.graph import given_shares
from nbmodels.fitting.holdout import compare

#: Names of the components that are not sources.
_TAKEN = (PRIOR, "labels", "trusted", "possible")


@with_inherited_parameters
class JointNB(LabelledClassifier):
    """One model of features of several kinds, a user graph, annotators and labels of every kind.

    Each source is told by an estimator of this library, which says how its data are read and what
    they are modelled by: ``NoisyMultinomialNB`` for words, ``NoisyGaussianNB`` for numbers,
    ``DawidSkene`` for votes, ``CollaborativeClassifier`` for interactions. Given the true class the
    sources are independent, so that their evidence adds up::

        model = JointNB({
            "text": NoisyMultinomialNB(alpha=0.1, weight=0.3),
            "size": NoisyGaussianNB(),
            "users": CollaborativeClassifier(),
            "crowd": DawidSkene(),
        })
        model.fit({"text": X, "size": Z, "users": pairs, "crowd": votes}, y)
        model.predict({"text": X_new})  # any of the sources will do

    Parameters:
        sources: estimators by the sources' names. Their own settings of the fit (``method``,
            ``noise`` and the like) are not used. A graph's ``alpha`` and ``weight`` are chosen by
            labels held out of ``y``; where there is no ``y``, give them as numbers.
            A graph's factors reward one class for all: beside one, the shares of the classes are
            held at those of the given labels unless ``class_prior`` says otherwise, and
            ``noise="symmetric"`` has found better classes than a full matrix.
    """

    attributes_doc = """
    sources_: the sources' estimators, with the codings they learned.
    items_: ``(N,)`` ids of the items.
    """

    def __init__(
        self, sources: Any, *, method: Literal["ml", "map", "vb"] = "vb", **shared: Any
    ) -> None:
        super().__init__(method=method, **shared)
        self.sources = sources

    # Fitting ------------------------------------------------------------------------------------

    def fit(
        self,
        evidence: Mapping[str, Any],
        y: Any = None,
        sample_weight: Any = None,
        trusted: Any = None,
        possible: Any = None,
        *,
        items: Any = None,
    ) -> Self:
        """Fit to everything that is known of the items.

        Args:
            evidence: data by source, as the source's estimator takes them; tables have a row an
                item, in the items' order, votes name the item as ``task``, interactions as
                ``item``.
            y: ``(N,)`` one noisy label an item; None where there is none of this kind.
            sample_weight: ``(N,)`` row weights.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping position -> label.
            possible: what is possible: ``(N, K)`` booleans, or a set of classes an item, null where
                nothing is excluded.
            items: ``(N,)`` ids of the items, by which votes and interactions name them; by default
                0 to N - 1.

        Raises:
            DataError: bad input, naming source and row.

        Warns:
            IdentifiabilityWarning: a noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
        """
        self._check_parameters()
        self._check_names(evidence)
        sources = {name: clone(self.sources[name]) for name in evidence}
        ids = _items(sources, evidence, y, items)
        n = len(ids)
        classes, labels = self._all_labels(sources, evidence, y, trusted, possible, n)
        weights = check_weights(sample_weight, n)
        cells = sum(np.size(v) if not hasattr(v, "nnz") else v.nnz for v in evidence.values())
        with jax.enable_x64(self._double(cells * len(classes))):
            model: dict[str, Component] = {PRIOR: self._prior(len(classes))}
            parts: dict[str, Any] = {PRIOR: None}
            for name, source in labels.items():
                model[name], parts[name] = source.component(), source.padded(n)
            learned = _learned(sources, evidence, ids, classes, weights)
            for name, part in learned.items():
                model[name], parts[name] = part.component, part.data
            data = Data(parts, jnp.asarray(weights))
            self._graphs = {name: p.edges for name, p in learned.items() if p.edges is not None}
            if self._graphs and self.class_prior is None:
                model[PRIOR] = given_shares(model, data, self.class_alpha)
            self._learned_priors = tuple(name for name, p in learned.items() if p.pooled)
            self._check_settings(learned, model)
            model |= self._chosen(learned, model, data)
            jacobian = np.zeros(n)
            for name, part in learned.items():
                jacobian = jacobian + float(model[name].weight) * part.log_jacobian
            self._solve(model, data, classes, n, log_jacobian=jacobian)
        self.sources_, self.items_ = sources, ids
        self._rows = pd.Index(ids)
        return self

    def _check_names(self, evidence: Any) -> None:
        if not isinstance(self.sources, Mapping) or not self.sources:
            raise DataError("sources: expected a mapping from names to estimators")
        if not isinstance(evidence, Mapping) or not evidence:
            raise DataError("evidence: expected a mapping from sources to their data")
        for name in self.sources:
            if name in _TAKEN:
                raise DataError(f"sources: {name!r} is a name of the model's own; take another")
            if not hasattr(self.sources[name], "_source_learn"):
                raise DataError(
                    f"sources: {name}: {type(self.sources[name]).__name__} cannot be a source"
                )
        for name in evidence:
            if name not in self.sources:
                known = ", ".join(map(str, self.sources))
                raise DataError(f"evidence: there is no source {name!r}; the sources are {known}")

    def _check_settings(self, learned: Mapping[str, Part], model: Mapping[str, Component]) -> None:
        for name, part in learned.items():
            if part.alternatives and "labels" not in model:
                raise DataError(
                    f"{name}: settings are chosen by labels held out of y, which is not given; "
                    "give alpha and weight as numbers"
                )
            if part.pooled and self.method == "ml":
                raise DataError(f"{name}: method='ml' has no prior to learn; take 'map' or 'vb'")

    def _pooled(self) -> tuple[str, ...]:
        return (*super()._pooled(), *self._learned_priors)

    def _chosen(
        self, learned: Mapping[str, Part], model: Mapping[str, Component], data: Data
    ) -> dict[str, Component]:
        """Components with alternatives, one after the other, as suits labels held out of y."""
        chosen: dict[str, Component] = {}
        for name, part in learned.items():
            if part.alternatives:
                candidates = [{**model, **chosen, name: one} for one in part.alternatives]
                rng = np.random.default_rng(self._seed())
                with self._bar(f"{name}: choosing settings", len(candidates)) as bar:
                    found = compare(
                        candidates, [data] * len(candidates), partial(self._runs, bar=bar), rng
                    )
                chosen[name] = part.alternatives[found.best]
        return chosen

    def _all_labels(
        self,
        sources: dict[str, Any],
        evidence: Mapping[str, Any],
        y: Any,
        trusted: Any,
        possible: Any,
        n: int,
    ) -> tuple[Classes, dict[str, LabelSource]]:
        named = [sources[name]._source_classes(values) for name, values in evidence.items()]
        classes, labels = self._labels(y, n, trusted, others=[v for v in named if v is not None])
        if possible is not None:
            labels["possible"] = _possible(possible, n, classes)
        if not labels and all(v is None for v in named):
            raise DataError(
                "y: nothing says which class any item is of; give y, votes, trusted or possible"
            )
        return classes, labels

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, evidence: Mapping[str, Any], items: Any = None) -> np.ndarray:
        """``(n, K)`` P(true class | what is known) of new items.

        Args:
            evidence: data of any of the sources.
            items: ids of the new items, by which votes and interactions name them.
        """
        check_is_fitted(self)
        self._check_names(evidence)
        for name in evidence:
            if name not in self.sources_:
                raise DataError(f"evidence: source {name!r} had no data in the fit")
        ids = _items(self.sources_, evidence, None, items)
        classes = Classes(self.classes_)
        with jax.enable_x64(self._double_):
            parts: dict[str, Any] = {PRIOR: None}
            for name, values in evidence.items():
                apply = self.sources_[name]._source_apply
                parts |= dict(_naming(name, apply, values, ids, classes))
            model = jax.tree.map(jnp.asarray, self.fit_.model)
            data = Data(parts, jnp.ones(len(ids)))
            found = class_posterior(model, self.fit_.params, data, self.fit_.rule)
            resp = np.asarray(found.resp, float)
        return resp / resp.sum(1, keepdims=True)

    def predict(self, evidence: Mapping[str, Any], items: Any = None) -> np.ndarray:
        """``(n,)`` likeliest true class of new items; arguments as :meth:`predict_proba`."""
        return self.classes_[self.predict_proba(evidence, items).argmax(1)]

    def _blocks(self) -> Any:
        """Pairs of a component's name and its source's block of columns, of tables only."""
        for name, source in self.sources_.items():
            columns = getattr(source, "_columns_", ())
            for c in columns:
                yield (name if len(columns) == 1 else f"{name}_{c.name}"), source, c

    def _features(self) -> dict[str, list[str]]:
        return {
            part: [source._feature_names[j] for j in c.where] for part, source, c in self._blocks()
        }

    def _units(self) -> dict[str, Any]:
        return {part: c.encoder.units for part, _, c in self._blocks()}

    def noise_matrices(self) -> dict[str, np.ndarray]:
        """``(K, K)`` ``[observed, true]`` of every source of labels, by its name.

        For several annotators, that of one taken at random.
        """
        check_is_fitted(self)
        with jax.enable_x64(self._double_):
            values = models.values(self.fit_.model, self.fit_.point)
            found = models.transitions(self.fit_.model, values)
        tables = {name: np.asarray(t, float) for name, t in found.items()}
        return {name: (t / t.sum(1, keepdims=True)).T for name, t in tables.items()}


def _items(sources: Any, evidence: Mapping[str, Any], y: Any, items: Any) -> np.ndarray:
    """Ids of the items; their number from whatever has a row an item."""
    sizes = {name: sources[name]._source_items(values) for name, values in evidence.items()}
    known = {name: size for name, size in sizes.items() if size is not None}
    if y is not None:
        known["y"] = len(y)
    if items is not None:
        ids = as_column("items", items)
        if len(pd.unique(ids)) != len(ids):
            raise DataError("items: an id occurs twice")
        known = {"items": len(ids), **known}
    if not known:
        raise DataError("items: needed where nothing has a row an item")
    first, n = next(iter(known.items()))
    for name, size in known.items():
        if size != n:
            raise DataError(f"{name}: has {size} rows where {first} has {n}")
    return np.arange(n) if items is None else ids


def _naming(name: str, method: Any, *args: Any) -> Any:
    """Pairs of a component's name and what ``method`` says of it, errors told by source."""
    try:
        found = method(*args)
    except DataError as error:
        raise type(error)(f"{name}: {error}") from error
    one = len(found) == 1
    return [(name if one else f"{name}_{part}", value) for part, value in found.items()]


def _learned(
    sources: dict[str, Any],
    evidence: Mapping[str, Any],
    ids: np.ndarray,
    classes: Classes,
    weights: np.ndarray,
) -> dict[str, Part]:
    out: dict[str, Part] = {}
    for name, values in evidence.items():
        out |= dict(_naming(name, sources[name]._source_learn, values, ids, classes, weights))
    return out


def _possible(possible: Any, n: int, classes: Classes) -> LabelSource:
    """Candidate sets as a channel; an item of which nothing is said may be of any class."""
    table = read_table("possible", possible, n)
    if table is not None:
        allowed = table[0]
        if allowed.shape[1] != len(classes):
            raise DataError(f"possible: has {allowed.shape[1]} columns for {len(classes)} classes")
    else:
        sets = read_sets("possible", possible, n)
        allowed = sets.table("possible", classes)
        allowed[~sets.given] = True
    check_length("possible", allowed, n)
    k = len(classes)
    pack = partial(_pack_possible, n_classes=k)
    return LabelSource(partial(CandidateSets.of, k), allowed, True, pack)


def _pack_possible(rows: np.ndarray, n_classes: int) -> Any:
    return CandidateSets.pack(rows, n_classes)
