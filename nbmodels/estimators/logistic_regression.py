"""Logistic regression with noisy labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nbmodels.core.jax_settings import computing
from nbmodels.data.features import Block, check_missing, numbers
from nbmodels.data.label_copies import label_copies
from nbmodels.data.labellers import labellers_among
from nbmodels.data.missing_markers import missing_markers
from nbmodels.data.noisy_labels import without_weight
from nbmodels.data.validation import check_orders, check_weights, row_index
from nbmodels.errors import issue
from nbmodels.estimators.constraints import Constraint, Number
from nbmodels.estimators.discriminative import (
    SCORED,
    JointDraws,
    fit_scored,
    known_labels,
    with_rounds_where_noisy,
)
from nbmodels.estimators.errors_of_sizes import allowing_for_sizes, sizes_of_rows
from nbmodels.estimators.labelled_by_class import allowing_for_missing
from nbmodels.estimators.options import (
    NoiseForm,
    Priors,
    RandomState,
    Solver,
    SolverName,
)
from nbmodels.estimators.sources import Items, LearnedSource
from nbmodels.estimators.table import TableClassifier
from nbmodels.estimators.table_source import CrossFitted
from nbmodels.fitting.beliefs import Known
from nbmodels.fitting.comparisons import with_comparisons
from nbmodels.fitting.copied_rows import row_groups
from nbmodels.fitting.discriminative import (
    FEW_FOR_ROUNDS,
    LINEAR_ROUNDS,
    predict_scored,
    predicted_instead,
)
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint_regression import affordable
from nbmodels.fitting.label_sources import LabelSource
from nbmodels.fitting.little_known import little_known
from nbmodels.fitting.options import is_auto
from nbmodels.fitting.regression import GRID, KEPT, SPARSE_GRID, Regression, scales_of

#: Cells (rows x columns x classes) up to which several self-training rounds are taken.
_LARGE = 20_000_000


class NoisyLogisticRegression(TableClassifier):
    """Multinomial logistic regression with noisy labels; dense or sparse X.

    Features may depend on each other: nothing is assumed of them. The regression is that of
    :class:`nbmodels.class_priors.Logistic`, its scores come from folds that exclude the item, and
    are calibrated together with the noise; see ``rounds``.

    Parameters:
        C: inverse strength of the penalty on squared coefficients. A number is scikit-learn's, and
            columns are taken as they are: bring them to similar scales. ``"auto"``: dense columns
            are standardised, and held-out labels select among 0.1, 1 and 0.01, the first unless
            another is clearly better, since a weak penalty learns wrong labels by heart. Where
            values lie beyond Tukey's outer fences (three interquartile ranges from a quartile),
            held-out labels select first whether they are cut off there. Sparse columns stay as
            they are, with 1, 0.1 and 10.
        rounds: how often the classifier is learned anew from the corrected labels (self-training);
            at 0 it learns from the given ones alone; ``"auto"`` for four rounds (one with up to 200
            rows, or beyond 20 million cells: rows x columns x classes) where the first makes
            held-out labels likelier, which is tested where there are four folds or more. What
            scores a fold never saw its labels, in no round. Where it is ``"auto"``, there are more
            than two classes and labels are few (rows x squared classes up to five million),
            held-out labels select, too, whether the scores' calibration is one temperature or a
            matrix, by which classes may count differently.
        cv: number of folds, which are the same whatever ``random_state`` is; or a splitter of
            scikit-learn's, or a list of (train, test) rows, of which the tests hold each row once.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, drawn to one error rate as far as the classes are alike: a hierarchical prior),
            or a known ``(K, K)`` matrix ``[observed, true]`` whose columns sum to one. ``"auto"``:
            full, or pooled where held-out labels are surely likelier so; the other way round of
            five classes and more with less than 30 labels for each cell of the matrix; posterior
            draws are of both, at even odds.
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
        classes_: ``(K,)`` names of the classes.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        chosen_: settings that were selected, with the number of self-training rounds.
        choice_: data frame of all that was compared, or None.
        error_rates_: data frame of how often labels are wrong by how long their texts are; None
            where that is taken to be the same, or rows are no sparse counts.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        coef_: ``(K, d)`` coefficients, calibrated; ``(1, d)`` of the second class where there are
            two. They are of columns cut off at ``fences_``. New rows are predicted by them unless
            ``chosen_`` names another classifier for its ``predictions``.
        intercept_: ``(K,)`` or ``(1,)``.
        fences_: ``(2, d)`` least and largest value of each column, between which training and new
            rows are cut off; None where nothing is.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyLogisticRegression
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> X, names = rng.normal(size=(200, 2)), np.array(["ant", "bee"])
        >>> truth = (X @ [2.0, -2.0] > 0).astype(int)
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyLogisticRegression(C=1.0, rounds=1).fit(X, y)
        >>> np.sign(model.coef_)
        array([[ 1., -1.]])
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        172 196
    """

    auto_noise: ClassVar[str] = "auto"
    constraints: ClassVar[Mapping[str, Constraint]] = {
        **SCORED,
        "C": Number(positive=True, words=("auto",)),
    }

    _joint_draws: JointDraws

    def __init__(
        self,
        *,
        C: float | Literal["auto"] = "auto",
        rounds: int | Literal["auto"] = "auto",
        cv: Any = 5,
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.C = C
        self.rounds = rounds
        self.cv = cv
        self.noise = noise
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
        """Fit the classifier, the calibration of its scores, and the noise.

        Args:
            X: ``N`` items.
            y: ``(N,)`` given labels, of any type; ``missing_label`` where there is none; None where
                all labels are votes.
            sample_weight: ``(N,)`` row weights, 0 or more: a row of weight 2 is two rows.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping or series of
                some rows, by the index of X, or of y where X has none.
            votes: labels of several annotators: a table with columns ``task`` (the row, or its name
                in such an index), ``worker`` and ``label``.
            groups: ``(N,)`` names of what rows belong to, such as a patient's visits, whose labels
                may share an error: they stay in one fold and are no neighbours of each other. Null
                for a row of its own. By default near copies of rows are groups. Intervals
                are as wide as errors that groups share make them.

        Raises:
            DataError: bad input, naming the argument and the row.
            Interrupted: Ctrl-C, unless ``solver.on_interrupt`` is ``"keep"``.

        Warns:
            IdentifiabilityWarning: the noise matrix is not diagonally dominant, or the scores
                predict held-out labels no better than the shares of the classes do.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        block = self._read(X, reset=True)
        n_rows = int(block.x.shape[0])
        check_orders(X, sample_weight=sample_weight, groups=groups)
        index = row_index(X, y)
        labels = self._labels(y, n_rows, trusted, votes, index)
        weights = check_weights(sample_weight, n_rows)
        issue(without_weight(labels, weights))
        copies = row_groups(block.x, groups=groups)
        with computing(self._double(int(np.prod(block.x.shape)) * len(labels.classes))):
            known = known_labels(self, parameters, labels, weights)
            items = self._items(block, known)

            def trained(more: Mapping[str, LabelSource]) -> FittedModel:
                here = known.with_sources(more)
                return self._learned(parameters, items, here, copies, groups is None)

            by_size = partial(allowing_for_sizes, trained, size=sizes_of_rows(block.x))
            compared = allowing_for_missing(by_size, labels.known, X)
            self._take(items, known, compared)
        self._joint_draws = JointDraws(self._few_columns(block, len(labels.classes)))
        self._keep(index, labels)
        little = little_known(compared, block, labels.codes, weights)
        columns = *label_copies(block, labels.codes), *labellers_among(block.names)
        cautions = *little, *columns, *missing_markers(block, weights)
        return self._finish(compared, (*labels.cautions, *cautions))

    def _items(self, block: Block, known: Known) -> Regression:
        """The columns, scaled, as a classifier that learns from any labels."""
        scales = scales_of(block, known.weights) if is_auto(self.C) else {}
        cells = int(np.prod(block.x.shape)) * len(known.names)
        several = len(known.weights) > FEW_FOR_ROUNDS and cells <= _LARGE
        return Regression(block, scales, LINEAR_ROUNDS if several else 1)

    def _learned(
        self,
        parameters: Mapping[str, Any],
        items: Regression,
        known: Known,
        copies: Int[np.ndarray, " n"] | None,
        warn_of_copies: bool,
    ) -> FittedModel:
        """The regression calibrated to what is known of the rows, beside what it is held to."""
        grid = SPARSE_GRID if items.block.is_sparse else GRID
        own: dict[str, Sequence[Any]] = {"C": grid} if is_auto(self.C) else {}
        if len(items.scales) > 1:  # first: no penalty is right for columns that few cells stretch
            own = {"outliers": tuple(items.scales), **own}

        def fit(self_training: bool) -> FittedModel:
            fitted = fit_scored(items, parameters, known, own, copies, self_training)
            about = fitted, items.block.x, lambda: known.options
            return with_comparisons(*about, warn_of_copies=warn_of_copies)

        return with_rounds_where_noisy(fit, parameters)

    def _take(self, items: Regression, known: Known, fitted: FittedModel) -> None:
        """Keep the regression for new rows."""
        assert fitted.learned_from is not None  # cross-fitted
        self._regression = items.learned(fitted.learned_from, known.weights, fitted.settings)
        self._scale = items.scales.get(fitted.settings.get("outliers", KEPT))

    # As one source among others -----------------------------------------------------------------

    def _source_learn(self, values: Any, items: Items) -> LearnedSource:
        """Evidence that learns from what is known of other items; see :class:`Source`."""
        parameters = self._validate()
        return CrossFitted(self, self._read(values, reset=True), parameters).without_weight(items)

    def _beside(self, parameters: Mapping[str, Any], rows: Any, known: Known) -> FittedModel:
        items = self._items(rows, known)
        fitted = self._learned(parameters, items, known, row_groups(rows.x), warn_of_copies=False)
        self._take(items, known, fitted)
        return fitted

    def _few_columns(self, block: Block, n_classes: int) -> np.ndarray | None:
        """Standardised columns, where the joint model of them and the labels is affordable."""
        few = affordable(int(block.x.shape[0]), int(block.x.shape[1]), n_classes)
        if block.is_sparse or self._scale is None or not few:
            return None
        return self._scale.applied(block.x)

    def _drawn_model(self, method: str) -> FittedModel:
        return self._joint_draws.of(self.fitted_, method, self._options)

    def _read(self, X: Any, *, reset: bool) -> Block:
        block = numbers(self, X, reset=reset, accept_sparse=True)
        check_missing(block, declared=False, taken=False)
        return block

    def _by_features(self, fitted: FittedModel, X: Any) -> np.ndarray:
        scales = {} if self._scale is None else {KEPT: self._scale}
        block = self._read(X, reset=False)
        if fitted.predictor is not None:
            return predicted_instead(fitted, block.x)
        items = Regression(block, scales)
        return predict_scored(fitted, items.scores(self._regression))

    def _calibrated(self) -> np.ndarray:
        """``(1 + d, K)`` intercepts and coefficients, calibrated; one column for two classes."""
        check_is_fitted(self)
        log_slope, *bias = self.fitted_.calibration
        table = np.asarray(self._regression[1].mean, float)
        scaling = self.fitted_.scaling
        if scaling is not None:
            table = scaling.scaled(table)
            table[1:] -= scaling.bias
        table = np.exp(log_slope) * table
        table[0] += bias
        if self._scale is not None:
            table[1:] /= self._scale.scale[:, None]
            table[0] -= self._scale.location @ table[1:]
        return table[:, 1:] - table[:, :1] if len(bias) == 2 else table

    @property
    def coef_(self) -> np.ndarray:
        """``(K, d)`` coefficients of ``predict_proba``; ``(1, d)`` where there are two classes.

        Where ``chosen_`` has another classifier for its ``predictions``, those of the regression,
        which is then surely worse.
        """
        return self._calibrated()[1:].T

    @property
    def fences_(self) -> np.ndarray | None:
        """``(2, d)`` values between which columns are cut off; None where nothing is."""
        check_is_fitted(self)
        fences = None if self._scale is None else self._scale.fences
        return None if fences is None else np.stack([fences.low_, fences.high_])

    @property
    def intercept_(self) -> np.ndarray:
        """``(K,)`` intercepts of ``predict_proba``; ``(1,)`` where there are two classes."""
        return self._calibrated()[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
