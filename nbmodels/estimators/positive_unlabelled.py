"""Labels of one class alone: positive and unlabelled items (Denis 2006)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from inference.arrays import on_device
from nbmodels.channels import Transition
from nbmodels.core.families import Dirichlet, Rule
from nbmodels.core.jax_settings import computing
from nbmodels.data.column_types import measured
from nbmodels.data.labels import Classes
from nbmodels.data.noisy_labels import LabelData, missing_labels, read_given, read_labels
from nbmodels.data.validation import check_orders, check_weights, plain, row_index
from nbmodels.diagnostics.findings import Verdict, taken_into_account
from nbmodels.emissions import CategoricalColumns
from nbmodels.errors import DataError
from nbmodels.estimators.constraints import Constraint
from nbmodels.estimators.naive_bayes import categories, category_log_probs
from nbmodels.estimators.options import Priors, RandomState, Solver, SolverName
from nbmodels.estimators.table import TableClassifier
from nbmodels.estimators.two_class import LABELLED, rule_of, two_classes
from nbmodels.estimators.two_class_training import train_two_classes
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.closed_form import (
    Groups,
    fit_from_closed_form,
    of_positive_items,
)
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.label_regression import train_positive_unlabelled
from nbmodels.fitting.label_sources import coded, trusted_channel
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.table_evidence import class_probabilities

if TYPE_CHECKING:
    from xarray import DataArray, DataTree

#: What may help where columns depend on each other, or on the label beyond the class.
_REMEDIES = ("a weight below 1", "other columns")


#: Labels that a message lists at most.
_NAMED = 12


class PositiveUnlabelledNB(TableClassifier):
    """Two classes from labels of one: positive items, and unlabelled ones (Denis 2006, 4.2).

    ``estimator="moments"`` is eqs. (16) and (17), read as in :mod:`nbmodels.papers.denis2006`;
    ``estimator="em"`` begins there. Whether positive items are a sample of their own, as in the
    paper, or were labelled among all, the likelihood is that of noisy labels of which no negative
    item gets a positive one. Predictions are for items like the unlabelled ones, and class shares
    are theirs, those of :meth:`posterior` too. ``verdict()`` checks the features' model, and
    whether positive items are labelled at random, but no label: an unlabelled item is not wrong.

    Where columns depend on each other beyond the class, both follow the columns away from the
    labels, and may end at chance. P(labelled | columns) is P(positive | columns) times the share of
    positive items that is labelled, so that a classifier of labelled against unlabelled items ranks
    as one of the classes would (Elkan and Noto 2008): ``estimator="regression"`` is a cross-fitted
    logistic regression of that kind, ``"nonlinear"`` least squares on kernels. That share is
    identified by where its scores level off, and calibrated together with them; where classes
    overlap it is known badly, which :meth:`posterior` shows.

    Parameters:
        positive: the label of positive items. The other label in y, if there is one, means
            "unlabelled", as does ``missing_label``; it names the other class. Where y names no
            other label, that is called by the opposite of this one: 0, False or ``"not bee"``.
        estimator: ``"moments"``, the closed form alone; ``"em"``, EM begun from it, which
            ``PositiveUnlabelledNB.published()`` takes; ``"regression"``; ``"nonlinear"``; or
            ``"auto"``, which selects as :class:`~nbmodels.ClassConditionalNB` does.
        alpha: pseudo-items of each category in each class.
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
        class_prior_: ``(K,)`` shares of the true classes among the unlabelled items.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        categories_: values of each column, in the order of their parameters.
        feature_log_prob_: by column, ``(K, categories)`` log-probabilities; of a classifier those
            by its classes.
        chosen_: the estimator that was selected.
        choice_: data frame of what was compared, or None.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import PositiveUnlabelledNB
        >>> rng = np.random.default_rng(0)
        >>> bee = rng.random(200) < 0.5
        >>> X = np.where(rng.random((200, 6)) < np.where(bee, 0.9, 0.1)[:, None], "gold", "black")
        >>> y = np.where(bee & (rng.random(200) < 0.3), "bee", "unknown")
        >>> model = PositiveUnlabelledNB(positive="bee").fit(X, y)
        >>> print((y == "bee").sum(), (model.predict(X) == "bee").sum(), bee.sum())  # bees
        23 85 88
        >>> print(((model.predict(X) == "bee") == bee).sum())  # of 200
        197
    """

    columns = CategoricalColumns
    constraints: ClassVar[Mapping[str, Constraint]] = LABELLED
    published_settings: ClassVar[Mapping[str, Any]] = {"estimator": "em"}
    categories_ = categories
    feature_log_prob_ = category_log_probs
    # no negative item is labelled positive, however few positive ones are
    _named: ClassVar[bool] = True
    _one_end: ClassVar[str] = "no label is wrong, since an item without one may be of either class"

    def __init__(
        self,
        *,
        positive: Any = None,
        estimator: Literal["auto", "em", "moments", "regression", "nonlinear"] = "auto",
        alpha: float = 1.0,
        weight: float = 1.0,
        priors: Priors | None = None,
        classes: ArrayLike | None = None,
        missing_label: Any = None,
        missing_values: Any = None,
        solver: SolverName | Solver = "map",
        random_state: RandomState = None,
    ) -> None:
        self.positive = positive
        self.estimator = estimator
        self.alpha = alpha
        self.weight = weight
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    def fit(  # type: ignore[override]  # labels of one class have no noise to be checked
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> Self:
        """Fit to attributes of positive and of unlabelled items.

        Args:
            X: ``(N, d)`` symbolic attributes, two or more.
            y: ``(N,)`` ``positive``, or another label or ``missing_label`` where an item is
                unlabelled.
            sample_weight: ``(N,)`` row weights, 0 or more: a row of weight 2 is two rows.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            NbmodelsWarning: a column whose values hardly repeat.
            ClippedWarning: an estimate of the closed form had to be moved into its range.
            NotConvergedWarning: the iteration did not converge.
            VerdictWarning: a model check failed; see :meth:`verdict`.
        """
        parameters = self._validate()
        if self.positive is None:
            raise DataError(_which_is_positive(y))
        block = self._read(X, reset=True)
        check_orders(X, y=y, sample_weight=sample_weight)
        labels = self._labels(y, block.x.shape[0])
        one, codes = self._marked(labels.classes, labels.codes)
        sources = {
            "labels": coded(partial(_positive_channel, one), codes, 2),
            "trusted": coded(trusted_channel, np.where(codes == one, one, -1), 2),
        }
        weights = check_weights(sample_weight, block.x.shape[0])
        fitted = self._fitted(parameters, block, labels.classes, sources, weights)
        # what is not labelled is taken for the other class, and is what an audit checks
        unlabelled = labels.codes < 0
        given = np.where(unlabelled, labels.classes.names[1 - one], labels.given.astype(object))
        self._keep(row_index(X, y), replace(labels, given=given, codes=codes))
        return self._finish(fitted, measured(block))

    def _check(self) -> Verdict:
        """The checks of the features' model, and of whether positive items are labelled at random.

        Others compare the given labels with what the features predict of them without the item's
        own. Here a positive label gives the class away, and "unlabelled" is no label that is right
        or wrong.
        """
        from nbmodels.diagnostics.check import check_features

        fitted = self.fitted_
        found = check_features(fitted.fit, fitted.data, self.classes_, fitted.columns)
        own = [replace(f, remedies=_REMEDIES if f.bad else ()) for f in found.findings]
        stated = [taken_into_account(one) for one in fitted.cautions if one.finding]
        return Verdict((*own, *stated))

    def _reported(self, draws: DataTree, rng: np.random.Generator) -> DataTree:
        """Class shares among the unlabelled items, as ``class_prior_`` has them."""
        other = 1 - _positive_code(self.classes_, self.positive)
        for group in ("posterior", "prior"):
            if group in draws.children:
                values = draws[group].to_dataset()
                if "class_prior" in values:
                    unlabelled = values["noise_matrix"].isel(observed_class=other, drop=True)
                    both = values["class_prior"] * unlabelled
                elif "class_shares" in values:  # among all items: of a fit by a classifier
                    both = (values["class_shares"] - self._labelled()).clip(0)
                else:
                    continue
                values["class_prior"] = both / both.sum("true_class")
                draws[group].dataset = values
        return draws

    def _labelled(self) -> DataArray:
        """``(2,)`` share of the labelled items, which are positive, among all."""
        from xarray import DataArray

        fitted, one = self.fitted_, _positive_code(self.classes_, self.positive)
        n = len(fitted.fit.resp)
        weights = np.asarray(fitted.data.weights)[:n]
        share = weights @ (np.asarray(fitted.data.parts["labels"])[:n] == one) / weights.sum()
        return DataArray(np.eye(2)[one] * share, dims="true_class")

    def _labels(
        self, y: Any, n_rows: int, trusted: Any = None, votes: Any = None, items: Any = None
    ) -> LabelData:
        reader = type(self).__name__
        given = read_given(y, n_rows, reader)
        known = given[~missing_labels(given, self.missing_label)]
        alone = len(known) > 0 and all(bool(label == self.positive) for label in known)
        # nobody is labelled as the other class, where it is declared
        others = [] if self.classes is None else [np.asarray(self.classes, object)]
        if alone:
            others.append(np.array([_opposite(self.positive)], object))
        return read_labels(
            y,
            n_rows,
            reader=reader,
            declared=self.classes,
            marker=self.missing_label,
            others=others,
        )

    def _marked(self, classes: Classes, codes: np.ndarray) -> tuple[int, np.ndarray]:
        """Code of the positive class, and codes in which all else is the other one."""
        two_classes(classes, "give all items that are not positive one label, or missing_label")
        where = np.flatnonzero([bool(name == self.positive) for name in classes.names])
        marked = np.isin(codes, where)
        if not marked.any():
            listed = ", ".join(str(plain(name)) for name in classes.names)
            raise DataError(f"positive: no row of y has the label {self.positive!r} ({listed})")
        one = int(where[0])
        if marked.all():
            raise DataError(f"y: no row is unlabelled: all are {self.positive!r}")
        return one, np.where(marked, one, 1 - one)

    @property
    def _rule(self) -> Rule:
        return rule_of(self.estimator, super()._rule)

    def _trained(self, build: ModelBuilder, names: np.ndarray, options: FitOptions) -> FittedModel:
        how = self.estimator, self._closed_form, train_positive_unlabelled
        return train_two_classes(*how, build, names, options, one_sided=True)

    def _closed_form(
        self, build: ModelBuilder, names: np.ndarray, options: FitOptions
    ) -> FittedModel:
        """The closed form, or EM begun from it.

        Raises:
            DataError: no item is positive, or none is unlabelled, or there are too few attributes.
        """
        data = build({}).data
        codes = np.asarray(data.parts["labels"])
        one = _positive_code(names, self.positive)
        both = np.eye(3, 2)[codes] * np.asarray(data.weights)[:, None]
        table = both[:, [1 - one, one]]
        if not (table.sum(0) > 0).all():
            raise DataError(
                "y: positive and unlabelled rows are both needed, of weights that are not zero"
            )
        groups = Groups(table, (codes == one).astype(int), one)
        about = of_positive_items, groups, "share of positive items", self.estimator
        return fit_from_closed_form(build, names, options, *about)

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n 2"]:
        """``(N, 2)`` P(true class | features) of unlabelled rows."""
        check_is_fitted(self)
        block = self._checked(X, reset=False)
        one = _positive_code(self.classes_, self.positive)
        codes = np.full(block.x.shape[0], 1 - one)
        unlabelled = {"labels": coded(partial(_positive_channel, one), codes, 2)}
        with computing(self.fitted_.double):
            return class_probabilities(self.fitted_, block, unlabelled)

    @property
    def class_prior_(self) -> Float[np.ndarray, " 2"]:
        """``(2,)`` shares of the true classes among the unlabelled items."""
        one = _positive_code(self.classes_, self.positive) if hasattr(self, "classes_") else 0
        return self.inverse_noise_matrix_[:, 1 - one]

    @property
    def inverse_noise_matrix_(self) -> Float[np.ndarray, "2 2"]:
        """``(2, 2)`` ``[true, observed]``, P(true | observed); columns sum to one."""
        check_is_fitted(self)
        joint_ = self.fitted_.class_shares[:, None] * self.noise_matrix_.T
        return joint_ / joint_.sum(0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _which_is_positive(y: Any) -> str:
    """What to give for ``positive``, by the labels that there are, the rarest as an example."""
    sentence = "positive: name the label of y that marks positive items"
    cells = (plain(cell) for cell in np.asarray(y, object).ravel())
    counts = Counter(c for c in cells if isinstance(c, str | int | float) and c == c)
    if not 0 < len(counts) <= _NAMED:
        return sentence
    example = next((one for one in counts if one == 1), min(counts, key=lambda one: counts[one]))
    return f"{sentence}, of {', '.join(sorted(map(repr, counts)))}: such as positive={example!r}"


def _opposite(label: Any) -> Any:
    """A name for all that is not of this class, of the label's own type."""
    number = np.asarray(label).dtype.kind in "biuf"
    return type(label)(not label) if number else f"not {label}"


def _positive_code(names: np.ndarray, positive: Any) -> int:
    return int(np.flatnonzero([bool(name == positive) for name in names])[0])


def _positive_channel(one: int, n_classes: int, settings: Mapping[str, Any]) -> Transition:
    """No negative item gets a positive label; half of the positive ones do, to begin with."""
    concentration = np.ones((2, 2))
    concentration[one] += [settings["noise_alpha"], settings["noise_alpha"]]
    concentration[1 - one, 1 - one] += settings["noise_diagonal"]
    return Transition(prior=Dirichlet(on_device(concentration)))
