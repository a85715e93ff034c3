"""Estimators that read one noisy label an item: its checks, its channel, its read-outs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from nbmodels.channels import (
    Annotators,
    FixedTransition,
    SymmetricTransition,
    Transition,
    TrustedLabels,
)
from nbmodels.channels.transition import pack_labels
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.data.annotations import Votes
from nbmodels.data.labels import Classes, is_missing, trusted_codes
from nbmodels.data.validation import (
    as_array,
    as_column,
    as_floats,
    check_length,
    check_marker,
    check_nonnegative,
    pad_rows,
    plain,
)
from nbmodels.errors import DataError
from nbmodels.estimators.latent import LatentClassifier
from nbmodels.estimators.settings import is_auto


@dataclass(frozen=True)
class LabelSource:
    """One kind of label evidence as the estimators hold it before it is padded and packed.

    Attributes:
        component: makes the channel; called where the precision of the fit holds.
        values: ``(N, ...)`` one row an item.
        fill: row of an item that nothing is known of.
        pack: from rows to the channel's data.
    """

    component: Callable[[], Component]
    values: np.ndarray
    fill: Any
    pack: Callable[[np.ndarray], Any]

    def padded(self, length: int) -> Any:
        """The channel's data for ``length`` rows, of which the last say nothing."""
        return self.pack(pad_rows(self.values, length, self.fill))


def coded(component: Callable[[], Component], codes: np.ndarray, n_classes: int) -> LabelSource:
    """A channel whose data are one code an item, -1 where there is none."""
    return LabelSource(component, codes, -1, partial(pack_labels, n_observed=n_classes))


def known_labels(labels: np.ndarray) -> np.ndarray:
    """Known labels in their own type; numbers stay objects where a missing label was None."""
    if labels.dtype.kind == "O":
        labels = pd.Series(labels).infer_objects().to_numpy()
    if labels.dtype.kind == "O":
        found = set(map(type, labels))
        kinds = sorted({"str" if issubclass(t, str) else t.__name__ for t in found})
        if len(kinds) > 1:
            raise DataError(
                f"y: labels of mixed types {kinds} cannot be sorted; make them all strings"
            )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            check_classification_targets(pd.unique(labels))
    except (TypeError, ValueError) as error:
        raise DataError(f"y: {error}") from error
    return labels


def _pack_votes(counts: Any, rows: np.ndarray) -> Any:
    """Votes on the given rows; none on row -1."""
    known = counts[rows[rows >= 0]]
    nothing = sparse.csr_array((int((rows < 0).sum()), counts.shape[1]))
    return Annotators.pack(sparse.vstack([known, nothing]).tocsr())


class LabelledClassifier(LatentClassifier):
    """Base of the estimators with one noisy label an item."""

    parameters_doc = """
    noise: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"`` (full, drawn to one error rate
        as far as the classes are found to be alike), a known ``(K, K)`` matrix ``[observed, true]``
        whose columns sum to one, or ``"auto"``, where held-out labels can choose the form.
    noise_alpha: pseudo-labels that are wrong, for each true class, shared out evenly.
    noise_diagonal: pseudo-labels that are right, for each true class; ``"auto"``, where held-out
        labels can choose how strongly the noise is drawn to the diagonal.
    missing_label: value of y that means "no label"; None where every row has one.
    """

    attributes_doc = """
    noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
    inverse_noise_matrix_: ``(K, K)`` ``[true, observed]``, P(true | observed).
    """

    grids: ClassVar[Mapping[str, Sequence[Any]]] = {
        "noise": ("full", "symmetric"),
        "noise_diagonal": (2.0, 20.0, 200.0),
    }

    def __init__(
        self,
        *,
        noise: Any = "full",
        noise_alpha: float = 1.0,
        noise_diagonal: Any = 2.0,
        missing_label: Any = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.noise = noise
        self.noise_alpha = noise_alpha
        self.noise_diagonal = noise_diagonal
        self.missing_label = missing_label

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_nonnegative("noise_alpha", self.noise_alpha)
        if not is_auto(self.noise_diagonal):
            check_nonnegative("noise_diagonal", self.noise_diagonal)
        check_marker("missing_label", self.missing_label)
        if self._pools_noise and self._rule == "ml":
            raise DataError(
                "noise: method='ml' has no prior to learn; 'pooled' takes 'map' or 'vb'"
            )

    @property
    def _pools_noise(self) -> bool:
        """Whether the prior of the noise is learned."""
        return isinstance(self.noise, str) and self.noise == "pooled"

    def _pooled(self) -> tuple[str, ...]:
        return (*super()._pooled(), *(("labels",) if self._pools_noise else ()))

    def _labels(
        self,
        y: Any,
        n_rows: int,
        trusted: Any = None,
        *,
        votes: Any = None,
        items: Any = None,
        marker: Any = None,
        others: Sequence[np.ndarray] = (),
    ) -> tuple[Classes, dict[str, LabelSource]]:
        """The classes and everything that the labels say, by component.

        Args:
            y: one label an item; may be None where there are votes.
            n_rows: number of items.
            trusted: checked labels.
            votes: table of the votes of several annotators.
            items: ids of the items, for ``votes``.
            marker: what means "no label" where ``missing_label`` is None.
            others: names of classes that occur elsewhere.
        """
        marker = marker if self.missing_label is None else self.missing_label
        table = None if votes is None else Votes.read(votes)
        if y is None and (table is not None or len(others) or self.classes is not None):
            given, missing = np.full(n_rows, None, object), np.ones(n_rows, bool)
        else:
            given = self._given(y, n_rows)
            missing = self._missing_labels(given, marker)
        named = given[~missing]
        more = [*others, *([] if table is None else [table.label])]
        if more:
            named = np.concatenate([one.astype(object) for one in (named, *more)])
        classes = Classes.infer(known_labels(named), self.classes)
        codes = classes.encode("y", given, missing)
        k = len(classes)
        sources = {}
        if y is not None:
            sources["labels"] = coded(partial(self._channel, k), codes, k)
        if table is not None:
            workers = table.workers()
            counts = table.counts(np.arange(n_rows) if items is None else items, workers, classes)
            channel = partial(
                Annotators.of, len(workers), k, None, self.noise_alpha, self.noise_diagonal
            )
            pack = partial(_pack_votes, counts)
            sources["votes"] = LabelSource(channel, np.arange(n_rows), -1, pack)
        if trusted is not None:
            checked = trusted_codes(trusted, classes, n_rows, marker)
            sources["trusted"] = coded(partial(TrustedLabels.of, k), checked, k)
        self._codes = codes
        self._given_labels = given
        return classes, sources

    def _given(self, y: Any, n_rows: int) -> np.ndarray:
        if y is None:
            raise DataError(
                f"y: {type(self).__name__} requires y to be passed, but the target y is None"
            )
        given = as_array("y", y)
        if given.ndim == 2:
            try:
                given = column_or_1d(given, warn=True)
            except ValueError as error:
                raise DataError(f"y: {error}") from error
        given = as_column("y", given)
        check_length("y", given, n_rows)
        return given

    def _missing_labels(self, given: np.ndarray, marker: Any) -> np.ndarray:
        missing = np.zeros(len(given), bool)
        if marker is not None:
            missing = is_missing(given, marker)
        nulls = np.flatnonzero(pd.isna(given) & ~missing)
        if len(nulls):
            null = plain(given[nulls[0]])
            raise DataError(
                f"y: row {nulls[0]} has no label ({null!r}, NaN or null); if labels are "
                "missing on purpose, say which value marks them with missing_label"
            )
        if given.dtype.kind == "f":
            infinite = np.flatnonzero(np.isinf(given) & ~missing)
            if len(infinite):
                raise DataError(f"y: row {infinite[0]} is infinity (inf); labels must be finite")
        return missing

    def _label_components(self, labels: Mapping[str, LabelSource], k: int) -> dict[str, Component]:
        """The channels; that of the labels in the form that the estimator has now."""
        return {
            name: self._channel(k) if name == "labels" else source.component()
            for name, source in labels.items()
        }

    def _channel(self, k: int) -> Component:
        if isinstance(self.noise, str):
            if self.noise in ("full", "pooled"):
                return Transition.of(k, alpha=self.noise_alpha, diagonal=self.noise_diagonal)
            if self.noise == "symmetric":
                return SymmetricTransition.of(
                    k, alpha=self.noise_alpha, diagonal=self.noise_diagonal
                )
            raise DataError(
                f"noise: expected 'full', 'symmetric', 'pooled' or a matrix, got {self.noise!r}"
            )
        rho = as_floats("noise", self.noise)
        if rho.shape != (k, k) or not (rho >= 0).all() or not np.abs(rho.sum(0) - 1).max() <= 1e-6:
            raise DataError(
                f"noise: expected a {k} x {k} matrix [observed, true] of probabilities whose "
                "columns sum to one"
            )
        return FixedTransition(prior=jnp.asarray(rho.T))

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def noise_matrix_(self) -> np.ndarray:
        """``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one."""
        check_is_fitted(self)
        with jax.enable_x64(self._double_):
            values = models.values(self.fit_.model, self.fit_.point)
            transitions = models.transitions(self.fit_.model, values)
        # with votes alone: of an annotator taken at random
        transition = np.asarray(transitions.get("labels", transitions.get("votes")), float)
        return (transition / transition.sum(1, keepdims=True)).T

    @property
    def inverse_noise_matrix_(self) -> np.ndarray:
        """``(K, K)`` ``[true, observed]``, P(true | observed); columns sum to one."""
        joint = self.class_prior_[:, None] * self.noise_matrix_.T
        return joint / joint.sum(0)

    def corrected_labels(self) -> pd.DataFrame:
        """The training rows' labels, given and suggested, the most doubtful ranked first.

        Returns:
            A frame in the rows' own order with columns ``row`` (the index of X where it was a data
            frame), ``given``, ``suggested``, ``p_wrong`` (probability that the given label is
            wrong; NaN where none was given) and ``rank`` (1 for the likeliest wrong label). Its
            ``attrs["verdict"]`` is the sentence of :meth:`verdict`; where that is bad, a column
            ``doubt`` names its findings, so that a written file tells it too.
        """
        resp = self.label_posterior_
        known = self._codes >= 0
        right = resp[np.arange(len(resp)), np.maximum(self._codes, 0)]
        p_wrong = np.where(known, 1 - right, np.nan)
        rank = pd.Series(p_wrong).rank(ascending=False, method="first").astype("Int64")
        frame = pd.DataFrame(
            {
                "row": np.asarray(self._rows),
                "given": self._given_labels,
                "suggested": self.classes_[np.argmax(resp, axis=1)],
                "p_wrong": p_wrong,
                "rank": rank,
            }
        )
        verdict = self.verdict()
        frame.attrs["verdict"] = verdict.sentence
        if not verdict.ok:
            frame["doubt"] = ", ".join(dict.fromkeys(f.name for f in verdict.bad))
        return frame
