"""What all scikit-learn estimators share: labels, weights, fitting, prediction, read-outs."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d
from tqdm.auto import tqdm

from nbmodels import model as models
from nbmodels.channels import FixedTransition, SymmetricTransition, Transition, TrustedLabels
from nbmodels.channels.transition import pack_labels
from nbmodels.component import Component
from nbmodels.data import (
    Classes,
    as_array,
    as_column,
    as_floats,
    check_length,
    check_marker,
    check_nonnegative,
    check_weights,
    is_missing,
    pad_rows,
    padded_length,
    plain,
    trusted_codes,
)
from nbmodels.encoders import Block, Encoder, check_columns, check_missing
from nbmodels.errors import DataError
from nbmodels.families import RULES, Rule
from nbmodels.fit import fit
from nbmodels.model import PRIOR, Data
from nbmodels.priors import FixedProportions, Proportions

#: Up to so many cells (rows x columns x classes) ``precision="auto"`` computes in float64.
_DOUBLE_UP_TO = 20_000_000

#: Seconds after which a progress bar appears.
_PATIENCE = 3.0


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


def _targets(labels: np.ndarray) -> np.ndarray:
    """Known labels in their own type; numbers stay objects where a missing label was None."""
    if labels.dtype.kind == "O":
        labels = pd.Series(labels).infer_objects().to_numpy()
    kinds = sorted({"str" if isinstance(v, str) else type(v).__name__ for v in labels})
    if labels.dtype.kind == "O" and len(kinds) > 1:
        raise DataError(f"y: labels of mixed types {kinds} cannot be sorted; make them all strings")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
            check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        raise DataError(f"y: {error}") from error
    return labels


@partial(jax.jit, static_argnames="rule")
def _class_posterior(model: Any, params: Any, data: Data, rule: Rule) -> Any:
    return models.posterior(model, models.natural(model, params, rule), data)


class NoisyClassifier(ClassifierMixin, BaseEstimator):
    """Base of the estimators; see a subclass. Subclasses say how X becomes blocks of columns."""

    def __init__(
        self,
        *,
        noise: Any = "full",
        noise_alpha: float = 1.0,
        noise_diagonal: float = 2.0,
        class_prior: Any = None,
        class_alpha: float = 1.0,
        weight: float = 1.0,
        method: Literal["ml", "map", "vb"] = "map",
        classes: Any = None,
        missing_label: Any = None,
        missing_values: Any = None,
        n_restarts: int = 0,
        max_iter: int = 500,
        tol: float = 1e-6,
        accelerate: bool = True,
        precision: Literal["auto", "single", "double"] = "auto",
        progress: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.noise = noise
        self.noise_alpha = noise_alpha
        self.noise_diagonal = noise_diagonal
        self.class_prior = class_prior
        self.class_alpha = class_alpha
        self.weight = weight
        self.method = method
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.precision = precision
        self.progress = progress
        self.random_state = random_state

    # What subclasses say ------------------------------------------------------------------------

    def _block(self, X: Any, *, reset: bool) -> Block:
        """All columns of X, checked as far as their kind allows."""
        raise NotImplementedError  # one of the readers in nbmodels.estimators.reading

    def _columns(self, block: Block, weights: np.ndarray) -> list[Columns]:
        """Fitted encoders of the blocks of columns."""
        raise NotImplementedError  # the subclass knows its emission

    def _read_out(self) -> None:
        """Set the familiar attributes of scikit-learn's naive Bayes; nothing by default."""

    # Fitting ------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None) -> Self:
        """Fit the model to features and noisy labels.

        Args:
            X: ``(N, d)`` features.
            y: ``(N,)`` given labels, of any type; ``missing_label`` where there is none.
            sample_weight: ``(N,)`` row weights, 0 or more.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping row -> label.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant.
            NotConvergedWarning: the iteration did not converge.
        """
        self._check_parameters()
        block = self._block(X, reset=True)
        n_rows = block.x.shape[0]
        given = self._given(y, n_rows)
        missing = self._missing_labels(given)
        classes = Classes.infer(_targets(given[~missing]), self.classes)
        codes = classes.encode("y", given, missing)
        weights = check_weights(sample_weight, n_rows)
        check_missing(block, self.missing_values is not None)
        check_columns(block)
        double = self._double(block.x.shape[0] * block.x.shape[1] * len(classes))
        with jax.enable_x64(double):
            columns = self._columns(block, weights)
            model = self._model(columns, classes, trusted is not None)
            parts = {"labels": codes}
            if trusted is not None:
                parts["trusted"] = trusted_codes(trusted, classes, n_rows, self.missing_label)
            data = self._encode(model, columns, block, weights, len(classes), parts)
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            with self._report() as report:
                fitted = fit(
                    model,
                    data,
                    rule=self.method,
                    key=jax.random.key(seed),
                    n_restarts=self.n_restarts,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    accelerate=self.accelerate,
                    names=classes.names,
                    report=report,
                )
        jacobian = sum(c.encoder.log_jacobian(block.columns(c.where)) for c in columns)
        shift = float(np.sum(weights * self.weight * jacobian))
        self.fit_ = replace(
            fitted,
            resp=fitted.resp[:n_rows],
            log_likelihood=fitted.log_likelihood[:n_rows] + self.weight * jacobian,
            objective=fitted.objective + shift,
            trace=fitted.trace + shift,
            restarts=tuple(r + shift for r in fitted.restarts),
        )
        self._double_ = double
        self._columns_ = columns
        self._data = jax.tree.map(np.asarray, data)
        self._codes = codes
        self._feature_names = block.names
        self._given_labels = given
        self._rows = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(n_rows)
        self.classes_ = classes.names
        with jax.enable_x64(double):
            self._read_out()
        return self

    def _check_parameters(self) -> None:
        if self.method not in RULES:
            raise DataError(f"method: expected one of {RULES}, got {self.method!r}")
        if self.precision not in ("auto", "single", "double"):
            raise DataError(
                f"precision: expected 'auto', 'single' or 'double', got {self.precision!r}"
            )
        for name in ("noise_alpha", "noise_diagonal", "class_alpha", "weight", "tol"):
            value = getattr(self, name)
            check_nonnegative(name, value)
        for name, least in (("max_iter", 1), ("n_restarts", 0)):
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value >= least):
                raise DataError(f"{name}: expected a whole number, {least} or more; got {value!r}")
        for name in ("missing_label", "missing_values"):
            check_marker(name, getattr(self, name))

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

    def _missing_labels(self, given: np.ndarray) -> np.ndarray:
        missing = np.zeros(len(given), bool)
        if self.missing_label is not None:
            missing = is_missing(given, self.missing_label)
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

    def _double(self, cells: int) -> bool:
        if self.precision == "auto":
            return jnp.zeros(()).dtype == jnp.float64 or cells <= _DOUBLE_UP_TO
        return self.precision == "double"

    def _model(
        self, columns: list[Columns], classes: Classes, trusted: bool
    ) -> dict[str, Component]:
        k = len(classes)
        model: dict[str, Component] = {PRIOR: self._prior(k), "labels": self._channel(k)}
        if trusted:
            model["trusted"] = TrustedLabels.of(k)
        for c in columns:
            model[c.name] = replace(c.encoder.component(k), weight=self.weight)
        return model

    def _prior(self, k: int) -> Component:
        if self.class_prior is None:
            return Proportions.of(k, self.class_alpha)
        probs = as_floats("class_prior", self.class_prior)
        if probs.shape != (k,) or not (probs > 0).all() or not abs(probs.sum() - 1) <= 1e-6:
            raise DataError(
                f"class_prior: expected {k} positive probabilities that sum to one, got {probs}"
            )
        return FixedProportions(prior=jnp.asarray(probs))

    def _channel(self, k: int) -> Component:
        if isinstance(self.noise, str):
            if self.noise == "full":
                return Transition.of(k, alpha=self.noise_alpha, diagonal=self.noise_diagonal)
            if self.noise == "symmetric":
                return SymmetricTransition.of(
                    k, alpha=self.noise_alpha, diagonal=self.noise_diagonal
                )
            raise DataError(f"noise: expected 'full', 'symmetric' or a matrix, got {self.noise!r}")
        rho = as_floats("noise", self.noise)
        if rho.shape != (k, k) or not (rho >= 0).all() or not np.abs(rho.sum(0) - 1).max() <= 1e-6:
            raise DataError(
                f"noise: expected a {k} x {k} matrix [observed, true] of probabilities whose "
                "columns sum to one"
            )
        return FixedTransition(prior=jnp.asarray(rho.T))

    def _encode(
        self,
        model: Any,
        columns: list[Columns],
        block: Block,
        weights: np.ndarray,
        n_classes: int,
        labels: dict[str, np.ndarray],
    ) -> Data:
        n_rows = len(weights)
        length = n_rows if block.is_sparse else padded_length(n_rows)
        parts: dict[str, Any] = {PRIOR: None}
        for name, codes in labels.items():
            parts[name] = pack_labels(pad_rows(codes, length, -1), n_classes)
        for c in columns:
            parts[c.name] = c.encoder.pack(model[c.name], block.columns(c.where), length)
        return Data(parts, jnp.asarray(pad_rows(weights, length)))

    @contextlib.contextmanager
    def _report(self) -> Iterator[Any]:
        if self.progress is False:
            yield None
            return
        delay = 0.0 if self.progress else _PATIENCE
        with tqdm(desc="fitting", unit="step", delay=delay, leave=False) as bar:

            def report(n_iter: int, objective: float) -> None:
                bar.n = n_iter
                bar.set_postfix_str(f"objective {objective:.6g}", refresh=False)
                bar.update(0)

            yield report

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` P(true class | features)."""
        check_is_fitted(self)
        block = self._block(X, reset=False)
        check_missing(block, self.missing_values is not None)
        n_rows = block.x.shape[0]
        with jax.enable_x64(self._double_):
            model = jax.tree.map(jnp.asarray, self.fit_.model)
            ones, k = np.ones(n_rows), len(self.classes_)
            data = self._encode(model, self._columns_, block, ones, k, {})
            out = _class_posterior(model, self.fit_.params, data, self.fit_.rule)
            resp = np.asarray(out.resp, float)[:n_rows]
        return resp / resp.sum(1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` log P(true class | features)."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict(self, X: Any) -> np.ndarray:
        """``(N,)`` likeliest true class given the features."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    # Read-outs ----------------------------------------------------------------------------------

    @property
    def label_posterior_(self) -> np.ndarray:
        """``(N, K)`` P(true class | features and given label) of the training rows."""
        check_is_fitted(self)
        resp = np.asarray(self.fit_.resp, float)
        return resp / resp.sum(1, keepdims=True)

    @property
    def class_prior_(self) -> np.ndarray:
        """``(K,)`` shares of the true classes."""
        check_is_fitted(self)
        with jax.enable_x64(self._double_):
            probs = np.exp(np.asarray(self.fit_.point[PRIOR], float))
        return probs / probs.sum()

    @property
    def class_log_prior_(self) -> np.ndarray:
        """``(K,)`` logarithm of :attr:`class_prior_`."""
        return np.log(self.class_prior_)

    @property
    def noise_matrix_(self) -> np.ndarray:
        """``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one."""
        check_is_fitted(self)
        with jax.enable_x64(self._double_):
            values = models.values(self.fit_.model, self.fit_.point)
            transition = np.asarray(models.transitions(self.fit_.model, values)["labels"], float)
        return (transition / transition.sum(1, keepdims=True)).T

    @property
    def inverse_noise_matrix_(self) -> np.ndarray:
        """``(K, K)`` ``[true, observed]``, P(true | observed); columns sum to one."""
        joint = self.class_prior_[:, None] * self.noise_matrix_.T
        return joint / joint.sum(0)

    @property
    def objective_(self) -> float:
        """Log-likelihood, log-posterior density or evidence bound, all constants kept."""
        check_is_fitted(self)
        return self.fit_.objective

    @property
    def objective_trace_(self) -> np.ndarray:
        """Objective at each accepted point."""
        check_is_fitted(self)
        return self.fit_.trace

    @property
    def n_iter_(self) -> int:
        """Number of accepted points."""
        check_is_fitted(self)
        return self.fit_.n_iter

    @property
    def converged_(self) -> bool:
        """Whether the iteration converged; ``fit_.status.sentence`` says how it ended."""
        check_is_fitted(self)
        return self.fit_.status.ok

    def corrected_labels(self) -> pd.DataFrame:
        """The training rows' labels, given and suggested, the most doubtful ranked first.

        Returns:
            A frame in the rows' own order with columns ``row`` (the index of X where it was a data
            frame), ``given``, ``suggested``, ``p_wrong`` (probability that the given label is
            wrong; NaN where none was given) and ``rank`` (1 for the likeliest wrong label).
        """
        resp = self.label_posterior_
        known = self._codes >= 0
        right = resp[np.arange(len(resp)), np.maximum(self._codes, 0)]
        p_wrong = np.where(known, 1 - right, np.nan)
        rank = pd.Series(p_wrong).rank(ascending=False, method="first").astype("Int64")
        return pd.DataFrame(
            {
                "row": np.asarray(self._rows),
                "given": self._given_labels,
                "suggested": self.classes_[np.argmax(resp, axis=1)],
                "p_wrong": p_wrong,
                "rank": rank,
            }
        )

    def posterior(
        self,
        method: Literal["gibbs", "nuts"] = "gibbs",
        *,
        draws: int = 500,
        warmup: int | None = None,
        chains: int = 4,
        thin: int = 1,
        keep: Literal["small", "all"] = "small",
        progress: bool | None = None,
        random_state: Any = None,
    ) -> Any:
        """Posterior draws of the noise matrix, the class shares and the features' parameters.

        Args:
            method: ``"gibbs"`` on the fast core, or ``"nuts"`` on the NumPyro program (small data).
            draws: kept draws of each chain.
            warmup: sweeps or adaptation steps thrown away; 200 for Gibbs, 500 for NUTS.
            chains: number of chains.
            thin: Gibbs sweeps to each kept draw.
            keep: ``"small"`` leaves out parameters of more than 5,000 numbers a draw.
            progress: show a bar; None to show one after a few seconds.
            random_state: seed of the draws; the estimator's own by default.

        Returns:
            ArviZ ``DataTree``; see :func:`nbmodels.posterior.sample`.

        Warns:
            PosteriorWarning: something speaks against trusting the draws.
        """
        from nbmodels.posterior import sample

        check_is_fitted(self)
        state = self.random_state if random_state is None else random_state
        seed = check_random_state(state).randint(np.iinfo(np.int32).max)
        with jax.enable_x64(self._double_):
            return sample(
                self.fit_,
                jax.tree.map(jnp.asarray, self._data),
                jax.random.key(seed),
                method=method,
                draws=draws,
                warmup=warmup,
                chains=chains,
                thin=thin,
                keep=keep,
                names=self.classes_,
                features={
                    c.name: [self._feature_names[j] for j in c.where] for c in self._columns_
                },
                units={c.name: c.encoder.units for c in self._columns_},
                progress=progress,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing_values is not None and bool(
            pd.isna(self.missing_values)
        )
        return tags
