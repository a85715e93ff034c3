"""Any classifier of scikit-learn's kind, made aware of wrong labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Int
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, validate_data

from nbmodels.core.jax_settings import computing
from nbmodels.data.label_copies import copies_in_frame
from nbmodels.data.labellers import labellers_among
from nbmodels.data.noisy_labels import without_weight
from nbmodels.data.validation import check_orders, check_weights, row_index
from nbmodels.errors import DataError, issue
from nbmodels.estimators.constraints import Constraint
from nbmodels.estimators.cross_validated import (
    CrossValidated,
    coefficients,
    log_probs,
    weight_name,
)
from nbmodels.estimators.discriminative import (
    SCORED,
    JointDraws,
    fit_scored,
    known_labels,
    with_rounds_where_noisy,
)
from nbmodels.estimators.errors_of_sizes import allowing_for_sizes, words_of
from nbmodels.estimators.labelled_by_class import allowing_for_missing, as_new_items
from nbmodels.estimators.options import NoiseForm, Priors, RandomState, Solver, SolverName
from nbmodels.estimators.sources import Items, LearnedSource
from nbmodels.estimators.table import TableClassifier
from nbmodels.estimators.table_source import CrossFitted
from nbmodels.fitting.beliefs import Known
from nbmodels.fitting.comparisons import with_comparisons
from nbmodels.fitting.copied_rows import row_groups
from nbmodels.fitting.discriminative import (
    calibrated_to,
    corrected_classes,
    predict_scored,
)
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.joint_regression import affordable, score_columns
from nbmodels.fitting.label_sources import LabelSource
from nbmodels.fitting.little_known import little_known
from nbmodels.fitting.one_thread import one_thread_if_small
from nbmodels.fitting.options import is_auto
from nbmodels.fitting.points import points


def _is_table(items: Any) -> bool:
    """Whether items are rows of cells, and not texts or a sparse matrix."""
    return isinstance(items, pd.DataFrame | np.ndarray) and items.ndim == 2


class NoisyLabelClassifier(TableClassifier):
    """Any classifier with ``predict_proba``, with noisy labels.

    Its cross-validated probabilities are calibrated together with the noise; then it learns again,
    from each row once a class that it may belong to, weighted by how likely that is, where its
    ``fit`` takes ``sample_weight``, and from the corrected labels otherwise. Where ``rounds`` is
    ``"auto"`` and labels are likelier noisy than not, so does the classifier that new items meet,
    whatever the labels were corrected by, and it is calibrated to them. X may be whatever the
    classifier takes: arrays, sparse matrices, data frames, lists of texts for a pipeline.

    The labels alone do not distinguish noise that features predict from classes that overlap. A
    flexible classifier whose probabilities are exact about the noisy labels may leave little noise
    to be found; wrong labels are ranked well even then.

    Parameters:
        base_estimator: classifier of scikit-learn's kind; None for logistic regression.
        rounds: how often the classifier is learned anew from the corrected labels (self-training);
            at 0 it learns from the given ones alone: ``cv + 1`` trainings. ``"auto"`` for a round
            where it makes held-out labels likelier, which is tested where there are four folds or
            more: ``2 cv + 1`` trainings at most where there is none, and ``3 cv + 1`` where there
            is one (15 with four folds), ``cv`` of them on half of the rows. A linear classifier
            (one with ``coef_``, a pipeline's last step included) takes four where there are more
            than 200 rows and rows x coefficients are up to 300,000, ``4 cv ** 2`` trainings in all,
            and 23 with five folds where the test finds that none pays: each takes back a part of
            the noise that its probabilities hold. What scores a fold never saw its labels, in no
            round. Where it is ``"auto"``, there are more than two classes and labels are few (rows
            x squared classes up to five million), held-out labels select, too, whether the
            probabilities' calibration is one temperature or a matrix. A
            number of rounds learns from more rows each time: the first of them costs
            ``cv (cv + 1) / 2`` trainings besides, further ones ``cv ** 2``.
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
        n_jobs: trainings of the classifier at a time, each in a process of its own; None for one,
            unless in a ``joblib.parallel_backend`` context, -1 for as many as there are processors.
        random_state: seed of restarts and posterior draws; None takes others each time.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        chosen_: settings that were selected, with the number of self-training rounds.
        choice_: data frame of all that was compared, or None.
        error_rates_: data frame of how often labels are wrong by how long their texts are; None
            where that is taken to be the same, or rows are no texts.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        estimator_: the classifier that new items meet, uncalibrated: of ``label_posterior_``, or,
            with a number of rounds, after several and where labels are likelier right than noisy,
            of the labels of the last round. Its classes are numbers, places in ``classes_``. Where
            it would learn from rows of one class, it prefers none.
        n_fits_: number of trainings of the classifier.

    Examples:
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from nbmodels import NoisyLabelClassifier
        >>> X = ["ants dig", "an ant eats leaves", "bees make honey", "a bee visits flowers"] * 15
        >>> y = ["ant", "ant", "bee", "bee"] * 15
        >>> y[0], y[7], y[20], y[31] = "bee", "ant", "bee", "ant"  # four mistakes
        >>> pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
        >>> labels = NoisyLabelClassifier(pipeline, rounds=0).fit(X, y).corrected_labels()
        >>> labels.loc[labels["suggested"] != labels["given"], ["row", "given", "suggested"]]
            row given suggested
        0     0   bee       ant
        7     7   ant       bee
        20   20   bee       ant
        31   31   ant       bee
    """

    auto_noise: ClassVar[str] = "auto"
    constraints: ClassVar[Mapping[str, Constraint]] = SCORED

    _joint_draws: JointDraws
    _of_new: FittedModel  # with the calibration of new items' scores

    def __init__(
        self,
        base_estimator: Any = None,
        *,
        rounds: int | Literal["auto"] = "auto",
        cv: Any = 5,
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        solver: SolverName | Solver = "map",
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.base_estimator = base_estimator
        self.rounds = rounds
        self.cv = cv
        self.noise = noise
        self.class_prior = class_prior
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.solver = solver
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _base(self) -> Any:
        if self.base_estimator is not None:
            return self.base_estimator
        from sklearn.linear_model import LogisticRegression  # a tenth of the library's start

        return LogisticRegression(max_iter=1000)

    def _validate(self) -> dict[str, Any]:
        if not hasattr(self._base(), "predict_proba"):
            raise DataError(
                "base_estimator: expected a classifier with predict_proba, got "
                f"{self.base_estimator!r}; scikit-learn's CalibratedClassifierCV has it"
            )
        return super()._validate()

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
        # of new items the classifier itself checks the columns
        validate_data(self, X, reset=True, skip_check_array=True)
        (items,) = indexable(X)
        n_rows = _num_samples(items)
        check_orders(X, sample_weight=sample_weight, groups=groups)
        index = row_index(X, y)
        labels = self._labels(y, n_rows, trusted, votes, index)
        weights = check_weights(sample_weight, n_rows)
        issue(without_weight(labels, weights))
        self._check_weights(weights)
        with one_thread_if_small(items):
            copies = row_groups(items, groups=groups)
            with computing(self._double(n_rows * len(labels.classes))):
                known = known_labels(self, parameters, labels, weights)
                learner = self._learner(items, known)

                def trained(more: Mapping[str, LabelSource]) -> FittedModel:
                    here = known.with_sources(more)
                    return self._learned(parameters, learner, here, copies, groups is None)

                words = words_of(items)
                by_size = partial(allowing_for_sizes, trained, size=words, units="words")
                compared = allowing_for_missing(by_size, labels.known, items)
                self._take(learner, known, compared)
        self._keep(index, labels)
        self._joint_draws = JointDraws(self._few_columns(items, compared))
        cautions = labels.cautions
        if _is_table(items):
            shown = pd.DataFrame(items)
            little = little_known(compared, shown, labels.codes, weights)
            columns = *copies_in_frame(shown, labels.codes), *labellers_among(shown.columns)
            cautions = *little, *cautions, *columns
        return self._finish(compared, cautions)

    def _check_weights(self, weights: np.ndarray) -> None:
        if weight_name(self._base()) is None and not np.isin(weights, (0, 1)).all():
            raise DataError(
                f"sample_weight: {type(self._base()).__name__}.fit takes no sample_weight; weights "
                "must be 0 or 1"
            )

    def _learner(self, items: Any, known: Known) -> CrossValidated:
        self._floor = 1 / max(float(known.weights.sum()), 2.0)
        return CrossValidated(self._base(), items, self._floor, self.n_jobs)

    def _learned(
        self,
        parameters: Mapping[str, Any],
        learner: CrossValidated,
        known: Known,
        copies: Int[np.ndarray, " n"] | None,
        warn_of_copies: bool,
    ) -> FittedModel:
        """The classifier calibrated to what is known of the rows, beside what it is held to."""

        def fit(self_training: bool) -> FittedModel:
            own = fit_scored(learner, parameters, known, None, copies, self_training)
            about = own, learner.items, lambda: known.options
            return with_comparisons(*about, warn_of_copies=warn_of_copies, predictions=False)

        return with_rounds_where_noisy(fit, parameters)

    def _take(self, learner: CrossValidated, known: Known, compared: FittedModel) -> None:
        """Keep a classifier for new rows."""
        corrected = corrected_classes(compared) if is_auto(self.rounds) else None
        resp = compared.learned_from if corrected is None else corrected
        assert resp is not None  # cross-fitted
        self.estimator_ = learner.learned(resp, known.weights)
        self.n_fits_ = learner.n_fits
        self._of_new = compared
        if corrected is not None:
            scores = log_probs(self.estimator_, learner.items, len(known.names), self._floor)
            self._of_new = calibrated_to(compared, scores, as_new_items(compared, corrected))

    # As one source among others -----------------------------------------------------------------

    def _source_learn(self, values: Any, items: Items) -> LearnedSource:
        """Evidence that learns from what is known of other items; see :class:`Source`."""
        parameters = self._validate()
        self._check_weights(items.weights)
        validate_data(self, values, reset=True, skip_check_array=True)
        (rows,) = indexable(values)
        return CrossFitted(self, rows, parameters).without_weight(items)

    def _beside(self, parameters: Mapping[str, Any], rows: Any, known: Known) -> FittedModel:
        with one_thread_if_small(rows):
            learner = self._learner(rows, known)
            fitted = self._learned(parameters, learner, known, row_groups(rows), False)
            self._take(learner, known, fitted)
        return fitted

    def _few_columns(self, items: Any, fitted: FittedModel) -> np.ndarray | None:
        """Columns of a joint model where that is affordable: those that a linear classifier meets,
        the scores of any other."""
        learned, (n, k) = self.estimator_, fitted.fit.resp.shape
        vectors = coefficients(learned)
        if not np.size(vectors):
            return score_columns(fitted) if affordable(n, k, k) else None
        if not affordable(n, np.shape(vectors)[-1], k):
            return None
        seen = learned[:-1].transform(items) if hasattr(learned, "steps") else items
        if sparse.issparse(seen) or np.ndim(seen) != 2:
            return None
        return points(np.asarray(seen, float))

    def _drawn_model(self, method: str) -> FittedModel:
        return self._joint_draws.of(self.fitted_, method, self._options)

    def _by_features(self, fitted: FittedModel, X: Any) -> np.ndarray:
        (items,) = indexable(X)
        scores = log_probs(self.estimator_, items, len(fitted.names), self._floor)
        return predict_scored(self._of_new, scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._base()).input_tags
        return tags
