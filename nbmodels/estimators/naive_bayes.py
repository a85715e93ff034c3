"""Noise-aware naive Bayes on discrete features, one estimator an emission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nbmodels.data.features import Block
from nbmodels.emissions import BernoulliColumns, CategoricalColumns, MultinomialColumns
from nbmodels.estimators.errors_of_sizes import sizes_of_counts
from nbmodels.estimators.options import NoiseForm, Priors, RandomState, Solver, SolverName, Training
from nbmodels.estimators.table import TableClassifier


def feature_parameters(estimator: TableClassifier) -> dict[str, np.ndarray]:
    """Parameters of a fitted block of features by name, in the units of X."""
    fit = estimator.fit_
    raw = fit.model["features"].values(fit.point["features"])
    return estimator.fitted_.coded[0].encoder.units(jax.tree.map(np.asarray, raw))


def _categories(estimator: TableClassifier) -> list[np.ndarray]:
    """Values of each column, in the order of their parameters."""
    check_is_fitted(estimator)
    return list(estimator.fitted_.coded[0].encoder.categories)


def _category_log_probs(estimator: TableClassifier) -> list[Float[np.ndarray, "k categories"]]:
    """By column, ``(K, categories)`` log-probabilities."""
    values = feature_parameters(estimator)
    return [np.log(np.asarray(values[f"probs_{j}"], float)) for j in range(len(values))]


#: Attributes of the estimators of symbolic attributes.
categories, category_log_probs = property(_categories), property(_category_log_probs)


class NoisyBernoulliNB(TableClassifier):
    """Naive Bayes on binary features with noisy labels (Zeng et al. 2022); dense or sparse X.

    Parameters:
        alpha: pseudo-items of each value of each feature in each class (Laplace smoothing), or
            ``"auto"``.
        binarize: values above it become one; None where X must hold zeros and ones already.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, drawn to one error rate as far as the classes are alike: a hierarchical prior),
            ``"auto"`` (pooled; full where maximum likelihood has no prior), or a known ``(K, K)``
            matrix ``[observed, true]`` whose columns sum to one.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        training: ``"auto"`` (joint where that model passes its own checks and predicts held-out
            labels better, or of more than 500 rows no worse; else cross-fitted with self-training
            rounds), ``"joint"`` (the papers' joint model), ``"cross_fit"`` (features learn from the
            given labels alone), or a :class:`~nbmodels.estimators.options.Joint` or
            :class:`~nbmodels.estimators.options.CrossFit`.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may
            be.
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
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        feature_log_prob_: ``(K, d)`` log-probabilities of a one.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = rng.random((200, 12)) < np.where(truth, 0.9, 0.1)[:, None]
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyBernoulliNB(random_state=0).fit(X, y)
        >>> model.noise_matrix_.round(1)  # [given, true]
        array([[0.8, 0.2],
               [0.2, 0.8]])
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        165 199
    """

    columns = BernoulliColumns

    def __init__(
        self,
        *,
        alpha: float | Literal["auto"] = "auto",
        binarize: float | None = None,
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        training: Training = "auto",
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.binarize = binarize
        self.noise = noise
        self.class_prior = class_prior
        self.training = training
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    @property
    def feature_log_prob_(self) -> Float[np.ndarray, "k d"]:
        """``(K, d)`` log-probability of a one."""
        return np.asarray(self.fit_.point["features"][1], float).T


class NoisyMultinomialNB(TableClassifier):
    """Naive Bayes on counts, or weights such as TF-IDF, with noisy labels; dense or sparse X.

    Parameters:
        alpha: pseudo-counts of each feature in each class, or ``"auto"``.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, drawn to one error rate as far as the classes are alike: a hierarchical prior),
            ``"auto"`` (pooled; full where maximum likelihood has no prior), or a known ``(K, K)``
            matrix ``[observed, true]`` whose columns sum to one.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        training: ``"auto"`` (joint where that model passes its own checks and predicts held-out
            labels better, or of more than 500 rows no worse; else cross-fitted with self-training
            rounds), ``"joint"`` (the papers' joint model), ``"cross_fit"`` (features learn from the
            given labels alone), or a :class:`~nbmodels.estimators.options.Joint` or
            :class:`~nbmodels.estimators.options.CrossFit`.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may
            be.
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
        error_rates_: data frame of how often labels are wrong by the sums of their rows; None where
            that is taken to be the same.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        feature_log_prob_: ``(K, d)`` log-probabilities of the features.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyMultinomialNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = rng.multinomial(20, np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])[truth])
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyMultinomialNB(alpha=1.0, training="joint").fit(X, y)
        >>> np.exp(model.feature_log_prob_).round(1)
        array([[0.6, 0.3, 0.1],
               [0.1, 0.3, 0.6]])
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        159 200
    """

    columns = MultinomialColumns

    def __init__(
        self,
        *,
        alpha: float | Literal["auto"] = "auto",
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        training: Training = "auto",
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.noise = noise
        self.class_prior = class_prior
        self.training = training
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    @property
    def feature_log_prob_(self) -> Float[np.ndarray, "k d"]:
        """``(K, d)`` log-probabilities of the features."""
        return np.asarray(self.fit_.point["features"], float).T

    def _sizes(self, block: Block) -> Int[np.ndarray, " n"]:
        return sizes_of_counts(block.x)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        # as scikit-learn's own: shifted real numbers are not counts
        tags.classifier_tags.poor_score = True
        return tags


class NoisyCategoricalNB(TableClassifier):
    """Naive Bayes on symbolic attributes of any kind and size, with noisy labels; dense X.

    Every distinct value of a column is a category. At prediction, a category that training never
    saw is left out of the likelihood, like a missing cell.

    Parameters:
        alpha: pseudo-items of each category in each class, or ``"auto"``.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, drawn to one error rate as far as the classes are alike: a hierarchical prior),
            ``"auto"`` (pooled; full where maximum likelihood has no prior), or a known ``(K, K)``
            matrix ``[observed, true]`` whose columns sum to one.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        training: ``"auto"`` (joint where that model passes its own checks and predicts held-out
            labels better, or of more than 500 rows no worse; else cross-fitted with self-training
            rounds), ``"joint"`` (the papers' joint model), ``"cross_fit"`` (features learn from the
            given labels alone), or a :class:`~nbmodels.estimators.options.Joint` or
            :class:`~nbmodels.estimators.options.CrossFit`.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may
            be.
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
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        categories_: values of each column, in the order of their parameters.
        feature_log_prob_: by column, ``(K, categories)`` log-probabilities.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyCategoricalNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = np.where(rng.random((200, 6)) < np.where(truth, 0.9, 0.1)[:, None], "gold", "black")
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyCategoricalNB(alpha=1.0, training="joint").fit(X, y)
        >>> model.predict([["black"] * 6, ["gold", "green"] * 3]).tolist()  # green is new
        ['ant', 'bee']
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        158 198
    """

    columns = CategoricalColumns
    categories_ = categories
    feature_log_prob_ = category_log_probs

    def __init__(
        self,
        *,
        alpha: float | Literal["auto"] = "auto",
        noise: NoiseForm | ArrayLike = "auto",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        training: Training = "auto",
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.noise = noise
        self.class_prior = class_prior
        self.training = training
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state
