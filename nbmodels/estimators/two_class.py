"""Two classes with flip rates of their own: closed form, and EM from there (Denis 2006)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from nbmodels.core.families import Rule
from nbmodels.data.column_types import measured
from nbmodels.data.labels import Classes
from nbmodels.data.validation import check_orders, check_weights, row_index
from nbmodels.emissions import CategoricalColumns
from nbmodels.errors import Caution, DataError, IdentifiabilityWarning
from nbmodels.estimators.constraints import Constraint, Noise, Number, OneOf, Weights
from nbmodels.estimators.naive_bayes import categories, category_log_probs
from nbmodels.estimators.options import NoiseForm, Priors, RandomState, Solver, SolverName
from nbmodels.estimators.table import TableClassifier
from nbmodels.estimators.two_class_training import train_two_classes
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.closed_form import Groups, fit_from_closed_form, of_noisy_labels
from nbmodels.fitting.comparisons import with_comparisons
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.label_regression import train_on_scores
from nbmodels.fitting.label_sources import label_sources
from nbmodels.fitting.options import FitOptions

CONSTRAINTS: Mapping[str, Constraint] = {
    "estimator": OneOf(("em", "moments")),
    "alpha": Number(),
    "weight": Weights(Number()),
    "noise": Noise(("full", "symmetric", "pooled")),
    "noise_diagonal": Number(),
}

#: The same of estimators that have labels, which a classifier may learn from.
LABELLED: Mapping[str, Constraint] = {
    **CONSTRAINTS,
    "estimator": OneOf(("auto", "em", "moments", "regression", "nonlinear")),
}


class ClassConditionalNB(TableClassifier):
    """Two classes whose labels flip at rates of their own: NB-CCCN and NB-CCCN-EM (Denis 2006).

    ``estimator="moments"`` is the closed form, eqs. (7)-(11), summed as in
    :func:`nbmodels.fitting.init_pairwise.class_conditional`; rows without a label and checked
    labels do not enter it. The paper's own sums, eqs. (18) and (19), are
    :func:`~nbmodels.fitting.init_pairwise.class_conditional_by_roots`, less accurate in small
    samples. ``estimator="em"`` is algorithm 2, eqs. (20)-(23), begun from it. The paper maximises
    the likelihood, which is ``solver="ml"``. The classes keep their names as long as
    ``eta0 + eta1 < 1``, so a class may be labelled wrong more often than right.

    Where columns depend on each other beyond the class, both follow the columns away from the
    labels, and may end at chance. Labels that flip leave the order of items by P(label | columns)
    as it is (Menon et al. 2015), so that a plain classifier of the given labels ranks well then:
    ``estimator="regression"`` is a cross-fitted logistic regression of them, calibrated together
    with the flip rates (as :class:`~nbmodels.NoisyLogisticRegression` without self-training), and
    ``"nonlinear"`` the same with least squares on kernels, where classes are no sums of columns.

    Parameters:
        estimator: ``"moments"``, the closed form alone; ``"em"``, EM begun from it, which
            ``ClassConditionalNB.published()`` takes; ``"regression"``; ``"nonlinear"``; or
            ``"auto"``: em where its columns pass their model checks and held-out labels are not
            surely less likely under it than under a classifier (up to 300 rows: no less likely,
            unless a class is labelled as the other more often than not, which a classifier cannot
            find), or where they are likelier by a standard error; else the regression, or the
            nonlinear classifier where they are surely likelier under it. ``chosen_`` and
            ``choice_`` hold what was selected, and the verdict states it.
        alpha: pseudo-items of each category in each class.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, shrunk to one error rate as far as the classes are alike), or a known ``(K, K)``
            matrix ``[observed, true]`` whose columns sum to one.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        weight: power of the features' likelihood, below 1 where features depend on each other.
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
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        categories_: values of each column, in the order of their parameters.
        feature_log_prob_: by column, ``(K, categories)`` log-probabilities; of a classifier those
            by its classes.
        chosen_: the estimator that was selected.
        choice_: data frame of what was compared, or None.
        flip_rates_: ``(eta0, eta1)``, P(label is ``classes_[1]`` | true class is ``classes_[0]``)
            and the reverse.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import ClassConditionalNB
        >>> from nbmodels.datasets import corrupt, flip_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = np.where(rng.random((200, 6)) < np.where(truth, 0.8, 0.2)[:, None], "gold", "black")
        >>> y = names[corrupt(truth, flip_noise(2, {(0, 1): 0.6, (1, 0): 0.1}), rng)]
        >>> model = ClassConditionalNB(solver="ml").fit(X, y)  # most ants are called bees
        >>> model.flip_rates_.round(1)
        array([0.6, 0.1])
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        138 189
    """

    columns = CategoricalColumns
    constraints: ClassVar[Mapping[str, Constraint]] = LABELLED
    published_settings: ClassVar[Mapping[str, Any]] = {"estimator": "em"}
    categories_ = categories
    feature_log_prob_ = category_log_probs

    def __init__(
        self,
        *,
        estimator: Literal["auto", "em", "moments", "regression", "nonlinear"] = "auto",
        alpha: float = 1.0,
        noise: NoiseForm | ArrayLike = "full",
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        weight: float = 1.0,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.noise = noise
        self.class_prior = class_prior
        self.weight = weight
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    def fit(  # type: ignore[override]  # closed forms know no votes
        self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None
    ) -> Self:
        """Fit to attributes and noisy labels.

        Args:
            X: ``(N, d)`` symbolic attributes, two or more.
            y: ``(N,)`` given labels of two classes; ``missing_label`` where there is none.
            sample_weight: ``(N,)`` row weights, 0 or more: a row of weight 2 is two rows.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping or series of
                some rows, by the index of X, or of y where X has none.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            NbmodelsWarning: a column whose values hardly repeat.
            ClippedWarning: an estimate of the closed form had to be moved into its range.
            IdentifiabilityWarning: EM ended with ``eta0 + eta1 >= 1``.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        if self.estimator == "moments":
            _refuse_known(self.noise, self.class_prior)
        block = self._read(X, reset=True)
        check_orders(X, sample_weight=sample_weight)
        items = row_index(X, y)
        labels = self._labels(y, block.x.shape[0], trusted, items=items)
        classes = two_classes(labels.classes)
        weights = check_weights(sample_weight, block.x.shape[0])
        fitted = self._fitted(parameters, block, classes, label_sources(labels), weights)
        self._keep(items, labels)
        if fitted.regression is not None:
            fitted = with_comparisons(fitted, block.x, self._options, block.missing)
        return self._finish(fitted, (*_crossed(fitted), *measured(block)))

    @property
    def _rule(self) -> Rule:
        return rule_of(self.estimator, super()._rule)

    def _trained(self, build: ModelBuilder, names: np.ndarray, options: FitOptions) -> FittedModel:
        how = self.estimator, self._closed_form, train_on_scores
        return train_two_classes(*how, build, names, options)

    def _closed_form(
        self, build: ModelBuilder, names: np.ndarray, options: FitOptions
    ) -> FittedModel:
        """The closed form, or EM begun from it.

        Raises:
            DataError: a class has no label, or there are too few attributes.
        """
        data = build({}).data
        codes = np.asarray(data.parts["labels"])
        table = np.eye(3, 2)[codes] * np.asarray(data.weights)[:, None]
        if not (table.sum(0) > 0).all():
            raise DataError("y: both classes need labels, on rows whose weight is not zero")
        # rows without a label, of code 2, have the share of all others
        about = of_noisy_labels, Groups(table, codes), "flip rates", self.estimator
        return fit_from_closed_form(build, names, options, *about)

    @property
    def flip_rates_(self) -> Float[np.ndarray, " 2"]:
        """``(eta0, eta1)``: P(label 1 | class 0) and P(label 0 | class 1)."""
        rho = self.noise_matrix_
        return np.array([rho[1, 0], rho[0, 1]])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def rule_of(estimator: str, rule: Rule) -> Rule:
    """A closed form has no prior."""
    return "ml" if estimator == "moments" else rule


def two_classes(
    classes: Classes,
    advice: str = "NoisyCategoricalNB(training=Joint(init='moments')) takes any number",
) -> Classes:
    """The classes, of which closed forms take two.

    Args:
        classes: names and codes.
        advice: what to do with more.

    Raises:
        DataError: there are more.
    """
    if len(classes) > 2:
        raise DataError(
            "y: Only binary classification is supported. The type of the target is multiclass. "
            f"Got {len(classes)} classes; {advice}"
        )
    return classes


def _refuse_known(noise: Any, class_prior: Any) -> None:
    """Refuse what the closed form estimates itself."""
    for name, value, default in (("noise", noise, "full"), ("class_prior", class_prior, None)):
        if not (value is None or isinstance(value, str)) or value != default:
            raise DataError(
                f"{name}: estimator='moments' estimates it; give it to estimator='em' only"
            )


def _crossed(fitted: FittedModel) -> tuple[Caution, ...]:
    """A caution where the flip rates sum to one or more."""
    rho = fitted.noise_matrices["labels"]
    eta0, eta1 = rho[1, 0], rho[0, 1]
    if eta0 + eta1 < 1:
        return ()
    return (
        Caution(
            IdentifiabilityWarning,
            f"the flip rates {eta0:.3f} and {eta1:.3f} sum to one or more: the labels do not "
            "determine which class is which. Do not read class names literally: add trusted labels "
            "or a stronger prior on right labels",
        ),
    )
