"""Estimators of a table of features with labels: X becomes blocks of columns with encoders."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.features import Block, check_columns, check_missing
from nbmodels.data.labels import Classes
from nbmodels.data.validation import (
    check_marker,
    check_nonnegative,
    check_weights,
    pad_rows,
    padded_length,
)
from nbmodels.emissions.encoders import Encoder
from nbmodels.errors import DataError, issue
from nbmodels.estimators.labels import LabelledClassifier, LabelSource
from nbmodels.estimators.latent import LatentClassifier
from nbmodels.estimators.predicted import PredictedClasses
from nbmodels.estimators.settings import (
    Variants,
    by_size,
    choice_table,
    fixed,
    grids,
    is_auto,
    table,
)
from nbmodels.estimators.sources import Part
from nbmodels.fitting import init_spectral as spectral
from nbmodels.fitting.cross_fitted import fit_cut, posterior_of_new, without
from nbmodels.fitting.em import Fit
from nbmodels.fitting.holdout import compare
from nbmodels.fitting.selection import Settings

if TYPE_CHECKING:
    from nbmodels.diagnostics.confident_learning import SecondOpinion


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
    return models.posterior(model, models.likelihood_params(model, params, rule), data)


class TableClassifier(PredictedClasses, LatentClassifier):
    """Base of the estimators of a table; subclasses say how X becomes blocks of columns."""

    parameters_doc = """
    weight: power of the features' likelihood, below 1 where features depend on each other; or a
        mapping from blocks of columns, as a mixed model has them by family, to powers.
    missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may be.
    """

    def __init__(self, *, weight: Any = 1.0, missing_values: Any = None, **shared: Any) -> None:
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
        raise NotImplementedError  # one of the readers in nbmodels.data.features

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
            variants = Variants(self, block, weights, classes, labels)
            self._check_blocks([c.name for c in variants.columns({})])
            settings = self._settings = self._choose(variants, classes)
            self._mean_sizes = variants.mean_sizes
            columns = self._columns_ = variants.columns(settings)
            model, data = variants(settings)
            one = self._chosen
            jacobian = sum(
                one._weight(c.name) * c.encoder.log_jacobian(block.columns(c.where))
                for c in columns
            )
            self._solve(
                model,
                data,
                classes,
                n_rows,
                start=self._start(model, data),
                # what is said of the labels given the features does not depend on the coding
                log_jacobian=0.0 if self._is_cut else jacobian,
            )
            self._feature_names = block.names
            self._rows = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(n_rows)
            self._read_out()
        return self

    def _check_blocks(self, names: list[str]) -> None:
        for name in self.weight if isinstance(self.weight, Mapping) else ():
            if name not in names:
                raise DataError(f"weight: there is no block {name!r}; the blocks are {names}")

    def _choose(self, variants: Variants, classes: Classes) -> Settings:
        """Settings of the parameters that say "auto"; none does here."""
        return {}

    @property
    def _chosen(self) -> Self:
        """The estimator with the settings that were chosen."""
        return fixed(self, self._settings)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.weight, Mapping):
            for name, value in self.weight.items():
                check_nonnegative(f"weight: {name}", value)
        elif not is_auto(self.weight):
            check_nonnegative("weight", self.weight)
        check_marker("missing_values", self.missing_values)

    def _label_components(self, labels: Mapping[str, LabelSource], k: int) -> dict[str, Component]:
        return {name: source.component() for name, source in labels.items()}

    def _emission_components(self, columns: list[Columns], k: int) -> dict[str, Component]:
        return {
            c.name: replace(c.encoder.component(k), weight=self._weight(c.name)) for c in columns
        }

    def _weight(self, name: str) -> float:
        """Power of a block's likelihood; one that a mapping does not name has 1."""
        return self.weight.get(name, 1.0) if isinstance(self.weight, Mapping) else self.weight

    def _powers(
        self, emissions: Mapping[str, Component], data: Data, means: Mapping[str, float]
    ) -> dict[str, Any]:
        """Powers of items' evidence by emission, where they differ; nothing by default."""
        return {}

    def _encode(
        self,
        model: Any,
        columns: list[Columns],
        block: Block,
        weights: np.ndarray,
        labels: Mapping[str, LabelSource],
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

    def _check_source(self) -> None:
        """Refuse settings that mean nothing beside other sources."""

    def _source_learn(
        self, values: Any, items: np.ndarray, classes: Classes, weights: np.ndarray
    ) -> dict[str, Part]:
        """Emissions with their data, by block of columns; see :class:`Source`."""
        TableClassifier._check_parameters(self)
        self._check_source()
        one = fixed(self, {})
        block = self._block(values, reset=True)
        check_missing(block, self.missing_values is not None)
        check_columns(block)
        self._columns_ = one._columns(block, weights)
        components = one._emission_components(self._columns_, len(classes))
        self._feature_names = block.names
        out = {}
        for c in self._columns_:
            component = components[c.name]
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
            emissions = {name: model[name] for name in self._emissions}
            powers = self._chosen._powers(emissions, data, self._mean_sizes)
            data = replace(data, powers=powers)
            params, rule = self.fit_.params, self.fit_.rule
            if self._is_cut:
                out = posterior_of_new(model, params, data, self._emissions, rule)
            else:
                out = class_posterior(model, params, data, rule).resp
            resp = np.asarray(out, float)[:n_rows]
        return resp / resp.sum(1, keepdims=True)

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
        far they are to be believed together with the noise; a number of rounds in which a cut lets
        the features be refitted; or ``"auto"`` for as many as held-out labels reward. A cut holds
        where the model of the features does not.
    size_power: 0 to believe an item's features as they are; above, evidence is divided by this
        power of the item's size (words of a document, against the mean), since long items repeat
        themselves; or ``"auto"``. Only counts and binary features have a size.
    weight: power of the features' likelihood, below 1 where features depend on each other; a
        mapping from blocks of columns, as a mixed model has them by family, to powers; or
        ``"auto"``. A cut learns how far to believe the features; of weights it keeps the ratios.
    """

    attributes_doc = """
    chosen_: values of what was "auto", with the number of rounds.
    choice_: data frame of all that was compared, by the log-likelihood of held-out labels; None
        where there was nothing to choose.
    """

    grids: ClassVar[Mapping[str, Sequence[Any]]] = {
        "weight": (1.0, 0.3, 0.1, 0.03),
        "size_power": (0.0, 0.5, 1.0),
    }

    def __init__(
        self,
        *,
        init: Literal["labels", "moments"] = "labels",
        feedback: Literal["auto", "full", "cut"] | int = "auto",
        noise: Any = "auto",
        size_power: Any = "auto",
        **shared: Any,
    ) -> None:
        super().__init__(noise=noise, **shared)
        self.init = init
        self.feedback = feedback
        self.size_power = size_power

    @classmethod
    def published(cls, **parameters: Any) -> Self:
        """The joint model as the papers have it: nothing is chosen, nothing is cut.

        Args:
            parameters: of the estimator; those not given stand as in the papers.
        """
        one = cls(**{"feedback": "full"} | parameters)
        open_ = {name: values[0] for name, values in grids(one).items() if name not in parameters}
        return one.set_params(**open_)

    # What is chosen -----------------------------------------------------------------------------

    @property
    def _is_cut(self) -> bool:
        return self._rounds is not None

    def _choose(self, variants: Variants, classes: Classes) -> Settings:
        """Settings of the parameters that say "auto", by labels held out."""
        grid = variants.grid
        begin = {name: values[0] for name, values in grid.items()}
        self._rounds: int | None = None
        self._found: Fit | None = None
        self.choice_: pd.DataFrame | None = None
        if self.feedback == "full" or (self.feedback == "auto" and not self._can_cut(variants)):
            settings = self._chosen_joint(variants, grid)
        else:
            grid.pop("weight", None)
            words: dict[Any, Any] = {"auto": None, "cut": 0}
            self._rounds = 0
            names = tuple(c.name for c in variants.columns(begin))
            total = 1 + sum(len(values) - 1 for values in grid.values())
            with self._report() as report, self._bar("choosing settings", total) as bar:
                how = self._how({}, classes.names)
                del how["run"]
                cut = fit_cut(
                    variants,
                    names,
                    begin=begin,
                    grid=grid,
                    rounds=words.get(self.feedback, self.feedback),
                    pooled=lambda s: ("labels",) if fixed(self, s)._pools_noise else (),
                    tried=bar.update,
                    report=report,
                    **how,
                )
            settings, self._rounds, self._found = {**begin, **cut.settings}, cut.rounds, cut.fit
            self._unseen_scores = cut.scores[: len(variants.weights)]
            self.choice_ = choice_table(cut)
        self.chosen_ = dict(settings) | ({} if self._rounds is None else {"rounds": self._rounds})
        return settings

    def _can_cut(self, variants: Variants) -> bool:
        if self.init == "moments":
            return False
        model, data = variants({})
        guess = models.initial_responsibilities(model, data)
        return guess is not None and bool(np.asarray(guess).any())

    def _chosen_joint(self, variants: Variants, grid: Mapping[str, Sequence[Any]]) -> Settings:
        """Settings of a joint fit, chosen one after the other."""
        settings = {name: values[0] for name, values in grid.items()}
        tables = []
        for name, values in grid.items():
            tried = [{**settings, name: value} for value in values]
            models_, data = zip(*map(variants, tried), strict=True)
            if len(values) < 2 or "labels" not in models_[0]:
                continue
            rng = np.random.default_rng(self._seed())
            with self._bar(f"choosing {name}", len(tried)) as bar:
                found = compare(models_, data, partial(self._runs, bar=bar), rng)
            settings = tried[found.best]
            tables.append(table(tried, found, settings))
        self.choice_ = pd.concat(tables, ignore_index=True) if tables else None
        return settings

    def _powers(
        self, emissions: Mapping[str, Component], data: Data, means: Mapping[str, float]
    ) -> dict[str, Any]:
        """Powers of items' evidence by their sizes; none where the sizes have no say."""
        return {
            name: by_size(emissions[name].size(data.parts[name]), mean, self.size_power)
            for name, mean in means.items()
        }

    def _how(self, model: Any, names: Any = None) -> dict[str, Any]:
        how = super()._how(model, names)
        if self._is_cut:
            how["run"] = lambda *_, **__: self._found
        return how

    def _pooled(self) -> tuple[str, ...]:
        # in a cut the features are scored once, and priors are learned under the scores
        return () if self._is_cut else super()._pooled()

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
        if not is_auto(self.size_power):
            check_nonnegative("size_power", self.size_power)
        feedback: Any = self.feedback
        words = isinstance(feedback, str) and feedback in ("auto", "full", "cut")
        whole = isinstance(feedback, int | np.integer) and not isinstance(feedback, bool)
        if not (words or (whole and feedback >= 0)):
            raise DataError(
                "feedback: expected 'auto', 'full', 'cut' or a number of rounds, 0 or more; got "
                f"{self.feedback!r}"
            )
        if self.feedback not in ("auto", "full") and self.init == "moments":
            raise DataError("init: 'moments' begins a joint fit; feedback must be 'full'")

    def _check_source(self) -> None:
        if self.feedback not in ("auto", "full"):
            raise DataError("feedback: a source beside others cannot be cut; expected 'full'")

    def _start(self, model: Any, data: Data) -> Any:
        if self.init == "labels":
            return None
        votes = models.initial_responsibilities(model, data)
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
        issue(self.verdict().cautions())
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
            see :class:`nbmodels.diagnostics.confident_learning.SecondOpinion`.

        Raises:
            DataError: other labels than those of the fit, or a wrong number of folds.
        """
        from nbmodels.diagnostics.comparison import predicted_labels
        from nbmodels.diagnostics.confident_learning import second_opinion
        from nbmodels.diagnostics.reference_classifier import reference_classifier

        check_is_fitted(self)
        given = self._given(y, len(self._codes))
        codes = Classes(self.classes_).encode(
            "y", given, self._missing_labels(given, self.missing_label)
        )
        if not np.array_equal(codes, self._codes):
            row = int(np.flatnonzero(codes != self._codes)[0])
            raise DataError(f"y: row {row} is not the label that the model was fitted to")
        one = reference_classifier(X) if classifier is None else classifier
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
