"""No labels: classes from attributes alone (Denis 2006, section 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import jax
import numpy as np
from numpy.typing import ArrayLike

from inference.arrays import on_device, random_key
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR
from nbmodels.data.column_types import measured, measurements
from nbmodels.data.features import Block
from nbmodels.data.labels import Classes
from nbmodels.data.validation import check_orders, check_weights, row_index
from nbmodels.emissions import CategoricalColumns
from nbmodels.errors import DataError
from nbmodels.estimators.constraints import Constraint
from nbmodels.estimators.naive_bayes import categories, category_log_probs
from nbmodels.estimators.options import Priors, RandomState, Solver, SolverName
from nbmodels.estimators.table import TableClassifier
from nbmodels.estimators.two_class import CONSTRAINTS, rule_of
from nbmodels.fitting import init_spectral
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.closed_form import (
    Groups,
    attribute_sizes,
    fit_from_closed_form,
    fit_from_start,
    of_unlabelled_items,
)
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.options import FitOptions


class UnlabelledNB(TableClassifier):
    """Classes from attributes alone: NB-UNL (Denis 2006, section 4.5, after Geiger et al. 2001).

    ``estimator="moments"`` is algorithm 3 for two classes, and the decomposition of third-order
    moments in :mod:`nbmodels.fitting.init_spectral` with one step of EM for more;
    ``estimator="em"`` begins there. Without labels the classes have no names of their own: they are
    named in the order of their shares, the most common first.

    Parameters:
        estimator: ``"moments"``, the closed form alone, or ``"em"``, EM begun from it.
        alpha: pseudo-items of each category in each class.
        class_prior: ``(K,)`` known shares of the true classes, or a mapping from their names; None
            to learn them.
        weight: power of the features' likelihood, below 1 where features depend on each other.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may
            be.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver`
            with the limits of the iteration.
        random_state: seed of restarts and posterior draws; None takes others each time.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        categories_: values of each column, in the order of their parameters.
        feature_log_prob_: by column, ``(K, categories)`` log-probabilities.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import UnlabelledNB
        >>> rng = np.random.default_rng(0)
        >>> bee = rng.random(200) < 0.3
        >>> X = np.where(rng.random((200, 6)) < np.where(bee, 0.9, 0.1)[:, None], "gold", "black")
        >>> model = UnlabelledNB(classes=["common", "rare"]).fit(X)
        >>> model.class_prior_.round(1)
        array([0.7, 0.3])
        >>> print(((model.predict(X) == "rare") == bee).sum())  # of 200
        200
    """

    columns = CategoricalColumns
    constraints: ClassVar[Mapping[str, Constraint]] = CONSTRAINTS
    categories_ = categories
    feature_log_prob_ = category_log_probs

    def __init__(
        self,
        *,
        estimator: Literal["em", "moments"] = "em",
        alpha: float = 1.0,
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        weight: float = 1.0,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.class_prior = class_prior
        self.weight = weight
        self.priors = priors
        self.classes = classes
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    def fit(  # type: ignore[override]  # there is no label of any kind
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit to attributes.

        Args:
            X: ``(N, d)`` symbolic attributes, three or more, whose values occur in several rows.
            y: not read; scikit-learn's pipelines pass it.
            sample_weight: ``(N,)`` row weights, 0 or more: a row of weight 2 is two rows.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            ClippedWarning: an estimate of the closed form had to be moved into its range.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        block = self._read(X, reset=True)
        check_orders(X, sample_weight=sample_weight)
        _refuse_measurements(block)
        names = np.arange(2) if self.classes is None else self.classes
        classes = Classes.infer(np.zeros(0), names)
        weights = check_weights(sample_weight, block.x.shape[0])
        fitted = self._fitted(parameters, block, classes, {}, weights)
        self._keep(row_index(X), None)
        return self._finish(_by_share(fitted), measured(block))

    @property
    def _rule(self) -> Rule:
        return rule_of(self.estimator, super()._rule)

    def _trained(self, build: ModelBuilder, names: np.ndarray, options: FitOptions) -> FittedModel:
        model, data, _ = build({})
        if build.n_classes == 2:
            weights = np.asarray(data.weights)
            groups = Groups(weights[:, None], np.full(len(weights), 2), least_attributes=3)
            about = of_unlabelled_items, groups, "class shares", self.estimator
            return fit_from_closed_form(build, names, options, *about)
        attribute_sizes(build, 3)
        key = random_key(options.seed)
        start = init_spectral.start(model, data, key, options.rule, build.n_classes)
        return fit_from_start(build, names, options, start, self.estimator, ())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


def _refuse_measurements(block: Block) -> None:
    """Refuse columns whose values hardly repeat: as many categories would say nothing of a class,
    and third moments of all pairs of them take hours.

    Raises:
        DataError: with the column.
    """
    if found := measurements(block):
        raise DataError(f"{found}, or fit a mixture (sklearn.mixture.GaussianMixture)")


def _by_share(fitted: FittedModel) -> FittedModel:
    """The classes renamed in the order of their shares, the most common first."""
    fit = fitted.fit
    with computing(fitted.double):
        order = np.argsort(-np.asarray(fit.point[PRIOR]), kind="stable")
        params = models.relabel(fit.model, fit.params, on_device(order))
    to_host = jax.tree.map(np.asarray, params)
    return replace(fitted, fit=replace(fit, params=to_host, resp=fit.resp[:, order]))
