"""Estimators whose items are rows of X: reading, training, prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.utils.validation import check_is_fitted

from nbmodels.core.jax_settings import computing
from nbmodels.data.annotations import Votes, row_ids
from nbmodels.data.column_types import measured
from nbmodels.data.features import (
    Block,
    check_columns,
    check_missing,
    numbers,
    table,
)
from nbmodels.data.label_copies import label_copies
from nbmodels.data.labellers import labellers_among
from nbmodels.data.labels import Classes
from nbmodels.data.missing_markers import missing_markers
from nbmodels.data.noisy_labels import LabelData, read_labels, without_weight
from nbmodels.data.outliers import cells_far_out
from nbmodels.data.validation import check_orders, check_weights, row_index
from nbmodels.errors import issue
from nbmodels.estimators.base import LatentClassModel
from nbmodels.estimators.errors_of_sizes import allowing_for_sizes
from nbmodels.estimators.labelled_by_class import allowing_for_missing
from nbmodels.estimators.options import (
    GRIDS,
    PUBLISHED,
    CrossFit,
    Joint,
    resolved_training,
)
from nbmodels.estimators.second_opinion import second_opinion
from nbmodels.estimators.sources import Items, LearnedSource
from nbmodels.estimators.table_source import learned_table
from nbmodels.estimators.table_training import train
from nbmodels.fitting.batched import counted_fits
from nbmodels.fitting.beliefs import Known
from nbmodels.fitting.builder import ColumnPlan, ModelBuilder
from nbmodels.fitting.comparisons import with_comparisons
from nbmodels.fitting.copied_rows import row_groups
from nbmodels.fitting.feedback import Side, with_feedback
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import LabelSource, label_sources
from nbmodels.fitting.little_known import little_known
from nbmodels.fitting.options import FitOptions, is_auto
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.suspects import suspicion
from nbmodels.fitting.table_evidence import class_probabilities
from nbmodels.fitting.vote_dependence import VoteDependence, VoteTable
from nbmodels.fitting.vote_shares import least_kept

#: Parameters that are no settings of a model.
_NO_SETTINGS = ("solver", "priors", "training", "random_state", "classes", "families")


class TableClassifier(LatentClassModel):
    """Base of the estimators of a table of features; ``columns`` says how it is read and coded."""

    training: Any
    missing_values: Any = None
    missing_label: Any = None

    #: Family of all columns; estimators of several families have a plan of their own.
    columns: ClassVar[Any] = None

    #: Form of the noise matrix that "auto" stands for.
    auto_noise: ClassVar[str] = "pooled"

    #: Values of open settings in the model as published.
    published_settings: ClassVar[Mapping[str, Any]] = PUBLISHED

    _is_source: ClassVar[bool] = True

    second_opinion = second_opinion

    @classmethod
    def published(cls, **parameters: Any) -> Self:
        """The joint model as the papers have it: nothing is selected, nothing is cross-fitted.

        Args:
            parameters: of the estimator; those not given stand as in the papers.

        Raises:
            AttributeError: the estimator has one way of training only.
        """
        if "training" not in cls._get_param_names():
            if "estimator" in cls.published_settings:
                return cls(**{**cls.published_settings, **parameters})
            raise AttributeError(
                f"{cls.__name__} has no published form beside its own: its training is not selected"
            )
        training = parameters.get("training", "joint")
        if isinstance(training, str):
            training = resolved_training(training) or CrossFit()
            training.set_params(size_power=0.0)
        one = cls(**{**parameters, "training": training})
        own = one.get_params(deep=False)
        values = cls.published_settings
        open_ = [n for n in own if n in values and is_auto(own[n]) and n not in parameters]
        return one.set_params(**{name: values[name] for name in open_})

    def _settable(self) -> frozenset[str]:
        own = super()._settable()
        return own | {"training__weight"} if "training" in own else own

    def _configured(self, name: str, value: Any) -> Any:
        if name == "training":
            return resolved_training(value) or CrossFit()
        return super()._configured(name, value)

    def _validate(self) -> dict[str, Any]:
        parameters = super()._validate()
        if is_auto(parameters.get("noise")):
            # maximum likelihood has no prior to learn
            parameters["noise"] = "full" if self._rule == "ml" else self.auto_noise
        # of annotators beside features, as of the noise
        parameters["pooling"] = "none" if self._rule == "ml" else "own"
        return parameters

    # Reading ------------------------------------------------------------------------------------

    def _read(self, X: Any, *, reset: bool) -> Block:
        """All columns of X, checked as far as their family allows."""
        if self.columns.numeric:
            return numbers(self, X, reset=reset, accept_sparse=self.columns.sparse)
        return table(self, X, reset=reset)[0]

    def _plan(self, block: Block) -> list[ColumnPlan]:
        """Which columns are modelled by which family."""
        return [ColumnPlan("features", np.arange(len(block.names)), self.columns)]

    def _checked(self, X: Any, *, reset: bool, empty_rows: bool = False) -> Block:
        block = self._read(X, reset=reset)
        check_missing(block, self.missing_values is not None, empty_rows=empty_rows or not reset)
        return block

    def _labels(
        self, y: Any, n_rows: int, trusted: Any = None, votes: Any = None, items: Any = None
    ) -> LabelData:
        read = read_labels(
            y,
            n_rows,
            reader=type(self).__name__,
            declared=self.classes,
            marker=self.missing_label,
            trusted=trusted,
            votes=votes,
            items=items,
        )
        return read if votes is None else self._tempered(read, votes, items)

    def _tempered(self, read: LabelData, votes: Any, items: Any) -> LabelData:
        """Votes by what they count for beside features; as they are under maximum likelihood."""
        if self._rule == "ml":
            return read
        from nbmodels.estimators.annotators import DawidSkene  # most tables come without votes
        from nbmodels.estimators.votes_source import votes_of

        table = Votes.read(votes)
        ids = np.arange(len(read.codes)) if items is None else row_ids(table, np.asarray(items))
        rows = Items(ids, read.classes, np.ones(len(ids)), read.codes)
        found = votes_of(DawidSkene(), votes, table.workers(), rows)
        about = votes, ids, read.classes
        powers = found.item_powers(*about) if found.correlation > 0 else None
        shown = (read.codes >= 0).any() or read.trusted is not None
        return replace(
            read,
            votes=found.counted(*about),
            vote_powers=powers,
            alike=found.alike,
            shares_held=None if shown else found.held,
            vote_dependence=found.dependence,
            cautions=found.cautions,
        )

    def _builder(
        self,
        parameters: Mapping[str, Any],
        block: Block,
        weights: np.ndarray,
        labels: Mapping[str, LabelSource],
        n_classes: int,
    ) -> ModelBuilder:
        """What builds models of a table under given settings."""
        settings = {n: v for n, v in parameters.items() if n not in _NO_SETTINGS}
        grid = {n: values for n, values in GRIDS.items() if is_auto(settings.get(n))}
        plan = self._plan(block)
        return ModelBuilder(settings, grid, block, plan, weights, labels, n_classes)

    # Fitting ------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        trusted: Any = None,
        votes: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the model to features and noisy labels.

        Args:
            X: ``(N, d)`` features.
            y: ``(N,)`` given labels, of any type; ``missing_label`` where there is none; None where
                all labels are votes.
            sample_weight: ``(N,)`` row weights, 0 or more: a row of weight 2 is two rows.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping or series of
                some rows, by the index of X, or of y where X has none.
            votes: labels of several annotators, each with a noise matrix of their own: a table with
                columns ``task`` (the row, or its name in such an index), ``worker``
                and ``label``. Votes that are copies or depend on each other count for less, as
                in :class:`nbmodels.JointNB`.
            groups: ``(N,)`` names of what rows belong to, such as a patient's visits, whose labels
                may share an error: they stay in one fold and are no neighbours of each other. Null
                for a row of its own. By default near copies of rows are groups. Intervals
                are as wide as errors that groups share make them.

        Raises:
            DataError: bad input, naming the argument and the row.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant; or some annotators
                vote as a group, and votes do not show whose side is right; or no column varies, or
                labels are too few, so that nothing is known of the noise.
            NotConvergedWarning: the iteration did not converge.
            VerdictWarning: a model check failed; see :meth:`verdict`.
        """
        parameters = self._validate()
        block = self._read(X, reset=True)
        n_rows = block.x.shape[0]
        check_orders(X, sample_weight=sample_weight, groups=groups)
        items = row_index(X, y)
        # classes first: their names are what everything else is checked against
        labels = self._labels(y, n_rows, trusted, votes, items)
        parameters["shares_held"] = labels.shares_held
        weights = check_weights(sample_weight, n_rows)
        issue(without_weight(labels, weights))
        sources = label_sources(labels, weights)

        def trained(more: Mapping[str, LabelSource]) -> FittedModel:
            given = {**sources, **more}
            return self._fitted(parameters, block, labels.classes, given, weights, groups)

        if self._training() is None:
            by_size = partial(allowing_for_sizes, trained, size=self._sizes(block))
            fitted = allowing_for_missing(by_size, labels.known, X, self.missing_values)
        else:  # of a model that was asked for, as of a paper's, nothing is selected
            fitted = trained({})
        self._keep(items, labels)
        about = fitted, block.x, self._options, block.missing
        compared = with_comparisons(*about, warn_of_copies=groups is None)
        symbols = self.columns is not None and not self.columns.numeric
        about_symbols = measured(block) if symbols else missing_markers(block, weights)
        scaled = [plan.where for plan in self._plan(block) if plan.family.scaled]
        far = [one for where in scaled for one in cells_far_out(block.columns(where), weights)]
        columns = *label_copies(block, labels.codes), *labellers_among(block.names), *about_symbols
        known = little_known(compared, block, labels.codes, weights)
        return self._finish(compared, (*known, *labels.cautions, *columns, *far))

    def _fitted(
        self,
        parameters: Mapping[str, Any],
        block: Block,
        classes: Classes,
        labels: Mapping[str, LabelSource],
        weights: Float[np.ndarray, " n"],
        groups: Any = None,
    ) -> FittedModel:
        """Check the table, build and train."""
        check_missing(block, self.missing_values is not None)
        check_columns(block)
        parameters, k = self._by_class(parameters, classes), len(classes)
        with (
            computing(self._double(block.x.shape[0] * block.x.shape[1] * k)),
            counted_fits() as count,
        ):
            build = self._builder(parameters, block, weights, labels, k)
            if groups is not None:
                build.copies = row_groups(block.x, groups=groups)
            fitted = self._trained(build, classes.names, self._options())
            return replace(_described(fitted, build), n_fits=count.n)

    def _trained(self, build: ModelBuilder, names: np.ndarray, options: FitOptions) -> FittedModel:
        """Joint or cross-fitted training, as ``training`` has it."""
        return train(build, self._training(), names, options, self._joint)

    def _sizes(self, block: Block) -> Int[np.ndarray, " n"] | None:
        """``(N,)`` how much is known of each row; None where rows have no size."""
        return None

    def _training(self) -> Joint | CrossFit | None:
        """How the model is trained; None for whichever the data bear out."""
        return resolved_training(self.training)

    def _joint(
        self,
        candidate: Candidate,
        names: np.ndarray,
        n_rows: int,
        options: FitOptions,
        start: Any,
        **more: Any,
    ) -> FittedModel:
        return joint(candidate, names, n_rows, options, start=start, **more)

    def _keep(self, rows: pd.Index | None, labels: LabelData | None) -> None:
        """Hold what read-outs of the training rows need: their names and labels."""
        self._label_data = labels
        self._rows = rows

    # Prediction ---------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` P(true class | features)."""
        check_is_fitted(self)
        with computing(self.fitted_.double):
            return self._by_features(self.fitted_, X)

    def _by_features(self, fitted: FittedModel, X: Any) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` P(true class | features) of new rows by a fit to the table."""
        return class_probabilities(fitted, self._checked(X, reset=False), {})

    def predict_log_proba(self, X: Any) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` log P(true class | features)."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict(self, X: Any) -> np.ndarray:
        """``(N,)`` likeliest true class given the features."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    # Read-outs ----------------------------------------------------------------------------------

    def _item_names(self) -> Any:
        return super()._item_names() if self._rows is None else self._rows

    def _coords(self) -> dict[str, Mapping[str, Any]]:
        workers = None if self._label_data is None else self._label_data.workers
        votes = {} if workers is None else {"votes": {"annotator": workers}}
        return {**super()._coords(), **votes}

    def _vote_dependence(self) -> VoteDependence | None:
        labels = self._label_data
        if labels is None or labels.vote_dependence is None:
            return None
        cast = VoteTable.of_counts(labels.votes, len(labels.classes))
        kept = least_kept(self.label_posterior_.mean(0), cast)
        return replace(labels.vote_dependence, kept=kept)

    def _by_feedback(self, side: Side) -> FittedModel:
        if "training" not in self._get_param_names():
            return super()._by_feedback(side)
        return with_feedback(self.fitted_, side, self._options())

    def _suspicion(self, p_wrong: np.ndarray, changed: np.ndarray) -> np.ndarray:
        return suspicion(self.fitted_, p_wrong, changed)

    def corrected_labels(self) -> pd.DataFrame:
        """The training rows' labels, given and suggested, the most doubtful ranked first.

        Returns:
            A frame in the rows' own order with columns ``row`` (the index of X where it was a data
            frame), ``given``, ``suggested``, ``p_suggested``, ``p_wrong`` (probability that the
            given label is wrong; NaN where none was given) and ``rank`` (1 for the label to check
            first; rows that were checked come last). In a cross-fitted model of up to 2,000 labels
            ranks are averages of those by ``p_wrong``, by the likelihood ratio of the best other
            class, by a nonlinear classifier and by neighbours' labels, after the labels that are
            changed
            (:func:`nbmodels.fitting.suspects.suspicion`). Its ``attrs["verdict"]`` is
            the sentence of :meth:`verdict`; where a check failed, a column ``failed_checks`` names
            it, so that a written file holds it too.
        """
        n, rows = len(self.label_posterior_), self._item_names()
        labels = self._label_data
        if labels is None:
            return self._corrected(rows, np.full(n, None, object), np.full(n, -1))
        return self._corrected(rows, labels.given, labels.codes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # nulls are missing beside any marker
        tags.input_tags.allow_nan = self.missing_values is not None
        if self.columns is not None:
            tags.input_tags.sparse = self.columns.sparse
            tags.input_tags.categorical = tags.input_tags.string = not self.columns.numeric
        return tags

    # As one source among others -----------------------------------------------------------------

    def _source_items(self, values: Any) -> int | None:
        """Number of rows of a table."""
        return int(values.shape[0]) if hasattr(values, "shape") else len(values)

    def _source_classes(self, values: Any) -> np.ndarray | None:
        """None: features name no class."""
        return None

    def _source_learn(self, values: Any, items: Items) -> LearnedSource:
        """Emissions with their data, by block of columns; see :class:`Source`."""
        return learned_table(self, values, items)

    def _beside(self, parameters: Mapping[str, Any], rows: Any, known: Known) -> FittedModel:
        """The table cross-fitted to what is known of its items."""
        about = rows, known.weights, known.sources, len(known.names)
        build = self._builder({**parameters, **known.of_labels}, *about)
        how = self._training()
        how = how if isinstance(how, CrossFit) else CrossFit()
        fitted = _described(train(build, how, known.names, known.options, self._joint), build)
        compared = fitted, rows.x, lambda: known.options, rows.missing
        return with_comparisons(*compared, warn_of_copies=False)


def _described(fitted: FittedModel, build: ModelBuilder) -> FittedModel:
    """With the coding of the columns."""
    coded, names = build.columns(fitted.settings), build.block.names
    return replace(
        fitted,
        settings=build.settings(fitted.settings),
        columns={c.name: [names[j] for j in c.where] for c in coded},
        units={c.name: c.encoder.units for c in coded},
        mean_sizes=build.mean_sizes,
        coded=tuple(coded),
        copies=build.copies,
    )
