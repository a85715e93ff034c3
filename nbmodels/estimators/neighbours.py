"""Neighbours' labels as votes on an item: noise without a model of the features."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import _num_samples, check_is_fitted

from inference.arrays import on_device
from nbmodels.channels import NeighbourVotes
from nbmodels.core.jax_settings import computing, kept_programs
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.features import check_columns, check_missing, check_names, numbers, table
from nbmodels.data.labels import Classes
from nbmodels.data.noisy_labels import read_given
from nbmodels.data.validation import (
    as_array,
    check_orders,
    check_weights,
    pad_rows,
    padded_length,
    row_index,
)
from nbmodels.errors import Caution, DataError, VerdictWarning
from nbmodels.estimators.constraints import Constraint, Number, OneOf
from nbmodels.estimators.labelled_by_class import allowing_for_missing
from nbmodels.estimators.options import Priors, RandomState, Solver, SolverName
from nbmodels.estimators.sources import Items, LearnedSource, Part
from nbmodels.estimators.table import TableClassifier
from nbmodels.fitting.copied_rows import row_groups
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import (
    LabelSource,
    class_prior,
    label_sources,
    learned_priors,
    padded_powers,
)
from nbmodels.fitting.nearest import labels_near, nearest_labels
from nbmodels.fitting.one_thread import one_thread_if_small
from nbmodels.fitting.options import is_auto
from nbmodels.fitting.overlap import overlap_caution
from nbmodels.fitting.points import Coding, Distances, point_coding
from nbmodels.fitting.points import points as coded
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.separable import NEAR, select_n_neighbours

#: Fewest groups: the nearest row of each other group counts, and three votes identify the noise.
_LEAST_GROUPS = 3


@dataclass(frozen=True)
class _Neighbourhood:
    """Labelled items in the space of their features.

    Attributes:
        coding: from rows to points, or to distances.
        points: ``(n, d)`` of the labelled items; None where distances are given.
        known: ``(n,)`` the labelled items among those of the fit.
        codes: ``(n,)`` their labels.
        n_classes: K.
        size: number of neighbours.
    """

    coding: Coding
    points: Any
    known: Int[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    n_classes: int
    size: int

    def counts(self, rows: Any) -> Float[np.ndarray, "m k"]:
        """Labels of the neighbours of new rows."""
        return self.near(self.coding(rows))

    def near(self, points: Any) -> Float[np.ndarray, "m k"]:
        """:meth:`counts` of rows that are coded already."""
        asked = points[:, self.known] if self.points is None else points
        return labels_near(asked, self.points, self.codes, self.n_classes, self.size)


class NoisyNeighbours(TableClassifier):
    """True classes of items whose near items are of the same class (clusterability).

    The label of an item and those of its nearest neighbours are votes on its class. Three votes or
    more identify the noise matrix without any model of the features (HOC; Zhu, Song and Liu 2021):
    errors may depend on the features as far as near items do not share them. The price: where
    classes overlap, overlap counts as noise. Neighbours have a matrix of their own, since a
    neighbour of another class is no wrong label.

    Beside the other estimators this is the other end of what labels and features allow
    (``noise_range_``). As a source of :class:`nbmodels.JointNB` its data are the features and the
    labels, ``{"near": (X, y)}``.

    Parameters:
        n_neighbors: number of neighbours; ``"auto"`` selects one around ``2 K - 1`` by held-out
            labels.
        metric: ``"features"``, the Euclidean distance of standardised numbers and symbols (columns
            of two values are symbols) and the cosine of texts and other sparse rows;
            ``"precomputed"``, X is a sparse ``(N, N)`` matrix of distances whose stored cells are
            the neighbours, such as :func:`sklearn.neighbors.kneighbors_graph` gives with
            ``mode="distance"``, and new items come with their distances to the N.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration.
        random_state: seed of restarts and posterior draws; None takes others each time.

    Attributes:
        n_neighbors_: number of neighbours.
        classes_: ``(K,)`` names of the classes.
        class_prior_: ``(K,)`` shares of the true classes.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training items.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyNeighbours
        >>> from nbmodels.datasets import corrupt, flip_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, angle = rng.integers(0, 2, 200), rng.uniform(0, 2 * np.pi, 200)
        >>> X = np.where(truth, 3, 1)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        >>> y = np.array(["ant", "bee"])[corrupt(truth, flip_noise(2, {(0, 1): 0.3}), rng)]
        >>> model = NoisyNeighbours(n_neighbors=5).fit(X, y)
        >>> model.noise_matrix_.round(1)  # [given, true]
        array([[0.7, 0. ],
               [0.3, 1. ]])
        >>> model.predict([[1.0, 0.0], [0.0, 3.0]]).tolist()
        ['ant', 'bee']
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "n_neighbors": Number(least=1, whole=True, words=("auto",)),
        "metric": OneOf(("features", "precomputed")),
        "noise_diagonal": Number(),
    }

    def __init__(
        self,
        *,
        n_neighbors: int | str = "auto",
        metric: Literal["features", "precomputed"] = "features",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
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
        """Fit the noise to labels and to neighbours' labels.

        Args:
            X: ``(N, d)`` numbers or symbols, a data frame, a sparse matrix, or ``(N,)`` texts;
                embeddings are numbers. NaN is missing. With ``metric="precomputed"`` distances.
            y: ``(N,)`` given labels, of any type; ``missing_label`` where there is none.
            sample_weight: ``(N,)`` row weights, 0 or more: a row of weight 2 is two rows.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping or series of
                some rows, by the index of X, or of y where X has none.
            votes: labels of several annotators beside y, each with a noise matrix of their own: a
                table with columns ``task`` (the row, or its name in such an index),
                ``worker`` and ``label``.
            groups: ``(N,)`` names of what rows belong to, such as a patient's visits, whose labels
                may share an error: they are no neighbours of each other. Null for a row of its own.
                By default near copies of rows are groups. Intervals are as wide as errors that
                groups share make them.

        Raises:
            DataError: bad input, naming the argument and the row; less than 30 labelled rows, or
                less than three groups.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
            VerdictWarning: a model check failed, see :meth:`verdict`; or far fewer labels are wrong
                if classes overlap.
        """
        parameters = self._validate()
        self._check_rows(X, reset=True)
        n = _num_samples(X)
        check_orders(X, sample_weight=sample_weight, groups=groups)
        index = row_index(X, y)
        labels = self._labels(y, n, trusted, votes, index)
        weights, k = check_weights(sample_weight, n), len(labels.classes)
        if self.metric == "precomputed":
            if groups is not None:
                raise DataError("groups: leave distances within a group out of the matrix instead")
            copies = None
        else:
            copies = row_groups(X, groups=groups, least=_LEAST_GROUPS)
        counts = self._learn(X, labels.codes, weights, k, labels.trusted, copies)
        with computing(self._double(n * k * k)):
            parameters = self._by_class(parameters, labels.classes)
            parameters["shares_held"] = labels.shares_held
            full, length = {**parameters, "noise": "full"}, padded_length(n, k)
            near = NeighbourVotes.pack(pad_rows(counts, length))
            known = label_sources(labels, weights)

            def trained(more: Mapping[str, LabelSource]) -> FittedModel:
                sources = {**known, **more}
                model: dict[str, Any] = {PRIOR: class_prior(k, parameters)}
                parts: dict[str, Any] = {PRIOR: None, NEAR: near}
                for name, source in sources.items():
                    model[name], parts[name] = source.channel(k, full), source.padded(length)
                model[NEAR] = self._channel(k)
                powers = padded_powers(sources, length)
                data = Data(parts, on_device(pad_rows(weights, length)), powers)
                candidate = Candidate(model, data, learned_priors(model))
                return joint(candidate, labels.classes.names, n, self._options())

            # distances are no columns
            where = None if self.metric == "precomputed" else coded(X)
            about = counts if where is None else where
            fitted = allowing_for_missing(trained, labels.known, about)
        self._keep(index, labels)
        chosen = {"n_neighbors": self.n_neighbors_}
        fitted = replace(fitted, settings={**parameters, **chosen}, copies=copies)
        with one_thread_if_small(X):
            beside = overlap_caution(fitted, where, self._options())
        fitted = replace(fitted, cautions=(*fitted.cautions, *beside))
        return self._finish(fitted, labels.cautions)

    def _check_rows(self, X: Any, *, reset: bool) -> None:
        """Refuse other columns than at fit, and cells that are no features; NaN is missing.

        Raises:
            DataError: with the row and the column.
        """
        # distances are checked where they are read, and a text is in no column
        shaped = X if hasattr(X, "ndim") else as_array("X", X)
        if self.metric == "precomputed" or shaped.ndim == 1:
            check_names(self, X, reset=reset)
            return
        dtypes = X.dtypes if isinstance(X, pd.DataFrame) else [shaped.dtype]
        if all(dtype.kind in "biuf" for dtype in dtypes):
            block = numbers(self, X, reset=reset, accept_sparse=True)
        else:
            block = table(self, X, reset=reset)[0]
        check_missing(block, declared=True)
        if reset:
            check_columns(block)

    def _channel(self, n_classes: int) -> NeighbourVotes:
        priors = self._parameters()
        pseudo = {"alpha": priors["noise_alpha"], "diagonal": priors["noise_diagonal"]}
        return NeighbourVotes.of(n_classes, **pseudo, uses=float(self.n_neighbors_))

    def _learn(
        self,
        X: Any,
        codes: Int[np.ndarray, " n"],
        weights: Float[np.ndarray, " n"],
        n_classes: int,
        trusted: Int[np.ndarray, " n"] | None,
        copies: Int[np.ndarray, " n"] | None = None,
    ) -> Float[np.ndarray, "n k"]:
        """Learn the coding and the number of neighbours; ``(N, K)`` labels of each row's."""
        given = self.metric == "precomputed"
        coding = Distances.of(X) if given else point_coding(X)
        if coding is None:
            raise DataError("X: expected a table, a sparse matrix or a list of texts")
        points = coding(X)
        used = np.where(weights > 0, codes, -1)
        known = np.flatnonzero(used >= 0)
        if not len(known):
            raise DataError("y: expected 30 labelled rows or more, got none; votes come beside y")
        if is_auto(self.n_neighbors):
            some = nearest_labels(points, used, n_classes, given=given, copies=copies)
            about = n_classes, weights, trusted
            with kept_programs():
                self.n_neighbors_ = 1 if some is None else select_n_neighbours(some, *about)
        else:
            self.n_neighbors_ = int(self.n_neighbors)
        if self.n_neighbors_ >= len(known):
            raise DataError(
                f"n_neighbors: expected less than the {len(known)} labelled rows, got "
                f"{self.n_neighbors_}"
            )
        sizes = (self.n_neighbors_,)
        most = len(codes)
        found = nearest_labels(points, used, n_classes, sizes, most, given=given, copies=copies)
        if found is None:
            raise DataError(f"y: expected 30 labelled rows or more, got {len(known)}")
        among = None if given else points[known]
        self._near = _Neighbourhood(coding, among, known, used[known], n_classes, self.n_neighbors_)
        counts = np.zeros((len(codes), n_classes))
        counts[found.rows] = found.counts[self.n_neighbors_]
        others = np.setdiff1d(np.arange(len(codes)), found.rows)
        if len(others):
            counts[others] = self._near.near(points[others])
        return counts

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` P(true class | labels of the nearest training items)."""
        check_is_fitted(self)
        self._check_rows(X, reset=False)
        counts = self._near.counts(X)
        n, length = len(counts), padded_length(*counts.shape)
        with computing(self.fitted_.double):
            parts = {PRIOR: None, NEAR: NeighbourVotes.pack(pad_rows(counts, length))}
            weights = on_device(pad_rows(np.ones(n), length))
            return self.fitted_.predict(Data(parts, weights))[:n]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.allow_nan = not tags.input_tags.pairwise
        return tags

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> int | None:
        """Number of rows; new ones come without labels."""
        return _num_samples(values[0] if isinstance(values, tuple) else values)

    def _source_classes(self, values: Any) -> np.ndarray | None:
        """Classes that were named."""
        y = _pair(values)[1]
        return y[~pd.isna(y)]

    def _source_learn(self, values: Any, items: Items) -> LearnedSource:
        """Votes of neighbours, without each item's own label; see :class:`Source`."""
        self._validate()
        X, y = _pair(values)
        self._check_rows(X, reset=True)
        k = len(items.classes)
        codes = items.classes.encode("y", y, np.asarray(pd.isna(y)))
        counts = self._learn(X, codes, items.weights, k, None)
        part = Part(self._channel(k), NeighbourVotes.pack(counts))
        return LearnedSource({"": part}, _Votes(self), cautions=self._overlap(X, y, items))

    def _overlap(self, X: Any, y: np.ndarray, items: Items) -> tuple[Caution, ...]:
        """A warning of classes that overlap by the same neighbours alone, see :meth:`fit`."""
        alone = clone(self).set_params(classes=items.classes.names, missing_label=np.nan)
        with warnings.catch_warnings(action="ignore"):
            cautions = alone.fit(X, y, sample_weight=items.weights).fitted_.cautions
        return tuple(one for one in cautions if issubclass(one.category, VerdictWarning))


@dataclass(frozen=True)
class _Votes:
    """Packs the labels of new rows' neighbours."""

    estimator: NoisyNeighbours

    def __call__(self, values: Any, items: np.ndarray, classes: Classes) -> dict[str, Any]:
        rows = values[0] if isinstance(values, tuple) else values
        self.estimator._check_rows(rows, reset=False)
        return {"": NeighbourVotes.pack(self.estimator._near.counts(rows))}


def _pair(values: Any) -> tuple[Any, np.ndarray]:
    """Features and labels of a source.

    Raises:
        DataError: no pair.
    """
    if not isinstance(values, tuple) or len(values) != 2:
        raise DataError(
            "expected a pair (X, y), the features and the labels of all items, from those of near "
            "ones of which it learns: fit({'near': (X, y)}) of {'near': NoisyNeighbours()}"
        )
    X, y = values
    return X, read_given(y, _num_samples(X), "NoisyNeighbours")
