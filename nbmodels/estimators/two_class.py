"""Naive Bayes on symbolic attributes by closed forms, and by EM from there (Denis 2006)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from nbmodels.channels import Transition
from nbmodels.core import model as models
from nbmodels.core.families import Dirichlet, Rule
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.labels import Classes
from nbmodels.data.validation import plain
from nbmodels.emissions import CategoricalColumns
from nbmodels.errors import Caution, ClippedWarning, DataError, IdentifiabilityWarning
from nbmodels.estimators.constraints import Constraint, Noise, Number, OneOf, Weights
from nbmodels.estimators.naive_bayes import categories, category_log_probs
from nbmodels.estimators.options import NoiseForm, Priors, RandomState, Solver, SolverName
from nbmodels.estimators.table import TableClassifier
from nbmodels.fitting import init_pairwise as pairwise
from nbmodels.fitting import init_spectral
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.em import evaluate
from nbmodels.fitting.fitted_model import FittedModel, fitted_model
from nbmodels.fitting.joint import joint
from nbmodels.fitting.label_sources import LabelSource, coded, label_sources, trusted_channel
from nbmodels.fitting.options import FitOptions

#: EM never leaves a probability of zero, so it does not begin at one.
_LEAST = 1e-3

_CONSTRAINTS: Mapping[str, Constraint] = {
    "estimator": OneOf(("em", "moments")),
    "alpha": Number(),
    "weight": Weights(Number()),
    "noise": Noise(("full", "symmetric", "pooled")),
    "noise_diagonal": Number(),
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

    Parameters:
        estimator: ``"moments"``, the closed form alone, or ``"em"``, EM begun from it.
        alpha: pseudo-items of each category in each class.
        noise: form of the noise matrix: ``"full"``, ``"symmetric"`` (one error rate), ``"pooled"``
            (full, shrunk to one error rate as far as the classes are alike), or a known ``(K, K)``
            matrix ``[observed, true]`` whose columns sum to one.
        class_prior: ``(K,)`` known shares of the true classes; None to learn them.
        weight: power of the features' likelihood, below 1 where features depend on each other.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may be.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver` with
            the limits of the iteration.
        random_state: seed of folds and restarts.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        categories_: values of each column, in the order of their parameters.
        feature_log_prob_: by column, ``(K, categories)`` log-probabilities.
        flip_rates_: ``(eta0, eta1)``, P(label is ``classes_[1]`` | true class is ``classes_[0]``) and
            the reverse.
    """

    columns = CategoricalColumns
    constraints: ClassVar[Mapping[str, Constraint]] = _CONSTRAINTS

    def __init__(
        self,
        *,
        estimator: Literal["em", "moments"] = "em",
        alpha: float = 1.0,
        noise: NoiseForm | ArrayLike = "full",
        class_prior: ArrayLike | None = None,
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
            sample_weight: ``(N,)`` row weights, 0 or more.
            trusted: ``(N,)`` checked labels, null where unchecked; or a mapping row -> label.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            ClippedWarning: an estimate of the closed form had to be moved into its range.
            IdentifiabilityWarning: EM ended with ``eta0 + eta1 >= 1``.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        if self.estimator == "moments":
            _refuse_known(self.noise, self.class_prior)
        block = self._read(X, reset=True)
        labels = self._labels(y, block.x.shape[0], trusted)
        classes = _two(labels.classes)
        fitted = self._fitted(parameters, block, classes, label_sources(labels), sample_weight)
        self._keep(X, labels)
        return self._finish(fitted, _crossed(fitted))

    @property
    def _rule(self) -> Rule:
        return _rule_of(self.estimator, super()._rule)

    def _trained(self, build: ModelBuilder, names: np.ndarray, options: FitOptions) -> FittedModel:
        x, sizes = _attributes(build, 2)
        data = build({}).data
        codes = data.parts["labels"]
        groups = jax.nn.one_hot(codes, 2, dtype=data.weights.dtype) * data.weights[:, None]
        if not bool((groups.sum(0) > 0).all()):
            raise DataError("y: both classes need labels, on rows whose weight is not zero")
        found = pairwise.class_conditional(pairwise.tables(x, groups, sizes))
        # rows without a label have the share of all others
        positive = jnp.append(found.mix, found.share)[codes]
        return _from_closed_form(
            build, names, options, found, positive, "flip rates", self.estimator
        )

    @property
    def flip_rates_(self) -> np.ndarray:
        """``(eta0, eta1)``: P(label 1 | class 0) and P(label 0 | class 1)."""
        rho = self.noise_matrix_
        return np.array([rho[1, 0], rho[0, 1]])

    @property
    def categories_(self) -> list[np.ndarray]:
        """Values of each column, in the order of their parameters."""
        return categories(self)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """By column, ``(K, categories)`` log-probabilities."""
        return category_log_probs(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class PositiveUnlabelledNB(TableClassifier):
    """Two classes from labels of one: positive items, and unlabelled ones (Denis 2006, 4.2).

    ``estimator="moments"`` is eqs. (16) and (17), read as in :mod:`nbmodels.papers.denis2006`;
    ``estimator="em"`` begins there. Whether positive items are a sample of their own, as in the
    paper, or were labelled among all, the likelihood is that of noisy labels of which no negative
    item gets a positive one. Predictions are for items like the unlabelled ones.

    Parameters:
        positive: the label of positive items. The other label in y, if there is one, means
            "unlabelled", as does ``missing_label``; it names the other class.
        estimator: ``"moments"``, the closed form alone, or ``"em"``, EM begun from it.
        alpha: pseudo-items of each category in each class.
        weight: power of the features' likelihood, below 1 where features depend on each other.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_label: value of y that means "no label"; None where every row has one.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may be.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver` with
            the limits of the iteration.
        random_state: seed of folds and restarts.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        noise_matrix_: ``(K, K)`` ``[observed, true]``, P(observed | true); columns sum to one.
        class_prior_: ``(K,)`` shares of the true classes among the unlabelled items.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        categories_: values of each column, in the order of their parameters.
        feature_log_prob_: by column, ``(K, categories)`` log-probabilities.
    """

    columns = CategoricalColumns
    constraints: ClassVar[Mapping[str, Constraint]] = _CONSTRAINTS

    def __init__(
        self,
        *,
        positive: Any = None,
        estimator: Literal["em", "moments"] = "em",
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
            y: ``(N,)`` ``positive``, or something else where an item is unlabelled.
            sample_weight: ``(N,)`` row weights, 0 or more.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            ClippedWarning: an estimate of the closed form had to be moved into its range.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        if self.positive is None:
            raise DataError("positive: say which label of y marks positive items")
        block = self._read(X, reset=True)
        labels = self._labels(y, block.x.shape[0])
        one, codes = self._marked(labels.classes, labels.codes)
        sources = {
            "labels": coded(partial(_positive_channel, one), codes, 2),
            "trusted": coded(trusted_channel, np.where(codes == one, one, -1), 2),
        }
        fitted = self._fitted(parameters, block, labels.classes, sources, sample_weight)
        self._keep(X, replace(labels, codes=codes))
        return self._finish(fitted)

    def _marked(self, classes: Classes, codes: np.ndarray) -> tuple[int, np.ndarray]:
        """Code of the positive class, and codes in which all else is the other one."""
        _two(classes)
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
        return _rule_of(self.estimator, super()._rule)

    def _trained(self, build: ModelBuilder, names: np.ndarray, options: FitOptions) -> FittedModel:
        x, sizes = _attributes(build, 2)
        _, data, _ = build({})
        codes, one = data.parts["labels"], _positive_code(names, self.positive)
        both = jax.nn.one_hot(codes, 2, dtype=data.weights.dtype) * data.weights[:, None]
        groups = both[:, jnp.array([1 - one, one])]
        if not bool((groups.sum(0) > 0).all()):
            raise DataError(
                "y: positive and unlabelled rows are both needed, of weights that are not zero"
            )
        found = pairwise.positive_unlabelled(pairwise.tables(x, groups, sizes))
        # the closed form's class 1 is the positive one
        share = jnp.where(codes == one, found.mix[1], found.mix[0])
        if one == 0:
            found, share = found._replace(probs=found.probs[:, ::-1]), 1 - share
        return _from_closed_form(
            build, names, options, found, share, "share of positive items", self.estimator
        )

    def _known(self, n_rows: int) -> dict[str, LabelSource]:
        one = _positive_code(self.classes_, self.positive)
        codes = np.full(n_rows, 1 - one)
        return {"labels": coded(partial(_positive_channel, one), codes, 2)}

    @property
    def class_prior_(self) -> np.ndarray:
        """``(2,)`` shares of the true classes among the unlabelled items."""
        one = _positive_code(self.classes_, self.positive) if hasattr(self, "classes_") else 0
        return self.inverse_noise_matrix_[:, 1 - one]

    @property
    def inverse_noise_matrix_(self) -> np.ndarray:
        """``(2, 2)`` ``[true, observed]``, P(true | observed); columns sum to one."""
        check_is_fitted(self)
        joint_ = self.fitted_.class_shares[:, None] * self.noise_matrix_.T
        return joint_ / joint_.sum(0)

    @property
    def categories_(self) -> list[np.ndarray]:
        """Values of each column, in the order of their parameters."""
        return categories(self)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """By column, ``(K, categories)`` log-probabilities."""
        return category_log_probs(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class UnlabelledNB(TableClassifier):
    """Classes from attributes alone: NB-UNL (Denis 2006, section 4.5, after Geiger et al. 2001).

    ``estimator="moments"`` is algorithm 3 for two classes, and the decomposition of third-order
    moments in :mod:`nbmodels.fitting.init_spectral` with one step of EM for more;
    ``estimator="em"`` begins there. Without labels nothing says which class is which: they are
    named in the order of their shares, the most common first.

    Parameters:
        estimator: ``"moments"``, the closed form alone, or ``"em"``, EM begun from it.
        alpha: pseudo-items of each category in each class.
        class_prior: ``(K,)`` known shares of the true classes; None to learn them.
        weight: power of the features' likelihood, below 1 where features depend on each other.
        priors: pseudo-counts of the class shares and the noise, a
            :class:`~nbmodels.estimators.options.Priors`.
        classes: names of all classes, where some may not occur among the labels.
        missing_values: value of X that means "missing" (``np.nan``, -1, ...); None where none may be.
        solver: ``"map"``, ``"ml"``, ``"vb"``, or a :class:`~nbmodels.estimators.options.Solver` with
            the limits of the iteration.
        random_state: seed of folds and restarts.

    Attributes:
        classes_: ``(K,)`` names of the classes.
        class_prior_: ``(K,)`` shares of the true classes.
        label_posterior_: ``(N, K)`` P(true class | everything known) of the training rows.
        fitted_: the :class:`~nbmodels.fitting.fitted_model.FittedModel` behind all answers.
        categories_: values of each column, in the order of their parameters.
        feature_log_prob_: by column, ``(K, categories)`` log-probabilities.
    """

    columns = CategoricalColumns
    constraints: ClassVar[Mapping[str, Constraint]] = _CONSTRAINTS

    def __init__(
        self,
        *,
        estimator: Literal["em", "moments"] = "em",
        alpha: float = 1.0,
        class_prior: ArrayLike | None = None,
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
            X: ``(N, d)`` symbolic attributes, three or more.
            y: not read; scikit-learn's pipelines pass it.
            sample_weight: ``(N,)`` row weights, 0 or more.

        Raises:
            DataError: bad input, naming the argument and the row.

        Warns:
            ClippedWarning: an estimate of the closed form had to be moved into its range.
            NotConvergedWarning: the iteration did not converge.
        """
        parameters = self._validate()
        block = self._read(X, reset=True)
        names = np.arange(2) if self.classes is None else self.classes
        classes = Classes.infer(np.zeros(0), names)
        fitted = self._fitted(parameters, block, classes, {}, sample_weight)
        self._keep(X, None)
        return self._finish(_by_share(fitted))

    @property
    def _rule(self) -> Rule:
        return _rule_of(self.estimator, super()._rule)

    def _trained(self, build: ModelBuilder, names: np.ndarray, options: FitOptions) -> FittedModel:
        x, sizes = _attributes(build, 3)
        model, data, _ = build({})
        if build.n_classes == 2:
            found = pairwise.unlabelled(x, data.weights, sizes)
            return _from_closed_form(
                build, names, options, found, found.mix[:1], "class shares", self.estimator
            )
        key = jax.random.key(options.seed)
        start = init_spectral.start(model, data, key, options.rule, build.n_classes)
        return _from_start(build, names, options, start, self.estimator, ())

    @property
    def categories_(self) -> list[np.ndarray]:
        """Values of each column, in the order of their parameters."""
        return categories(self)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """By column, ``(K, categories)`` log-probabilities."""
        return category_log_probs(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


# Closed forms -------------------------------------------------------------------------------------


def _rule_of(estimator: str, rule: Rule) -> Rule:
    """A closed form has no prior."""
    return "ml" if estimator == "moments" else rule


def _two(classes: Classes) -> Classes:
    if len(classes) > 2:
        raise DataError(
            "y: Only binary classification is supported. The type of the target is multiclass. "
            f"Got {len(classes)} classes; NoisyCategoricalNB(training=Joint(init='moments')) takes "
            "any number"
        )
    return classes


def _refuse_known(noise: Any, class_prior: Any) -> None:
    """Refuse what the closed form estimates itself."""
    for name, value, default in (("noise", noise, "full"), ("class_prior", class_prior, None)):
        if not (value is None or isinstance(value, str)) or value != default:
            raise DataError(
                f"{name}: estimator='moments' estimates it; give it to estimator='em' only"
            )


def _positive_code(names: np.ndarray, positive: Any) -> int:
    return int(np.flatnonzero([bool(name == positive) for name in names])[0])


def _positive_channel(one: int, n_classes: int, settings: Mapping[str, Any]) -> Transition:
    """No negative item gets a positive label; half of the positive ones do, to begin with."""
    concentration = np.ones((2, 2))
    concentration[one] += [settings["noise_alpha"], settings["noise_alpha"]]
    concentration[1 - one, 1 - one] += settings["noise_diagonal"]
    return Transition(prior=Dirichlet(jnp.asarray(concentration)))


def _attributes(build: ModelBuilder, least: int) -> tuple[Array, tuple[int, ...]]:
    """``(N, S)`` indicators of the values and the number of each attribute's values."""
    (coded_,) = build.columns({})
    sizes = tuple(len(c) for c in coded_.encoder.categories)
    if len(sizes) < least:
        raise DataError(
            f"X: {least} attributes or more are needed to tell the classes apart, "
            f"got n_features = {len(sizes)}"
        )
    return build({}).data.parts["features"].onehot.to_dense(), sizes


def _from_closed_form(
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    found: pairwise.Mixture,
    positive: Any,
    shares_name: str,
    estimator: str,
) -> FittedModel:
    """The closed form as a fit, or EM begun from it; a caution where it left its range.

    Args:
        build: of the model.
        names: ``(2,)`` names of the classes.
        options: of the fit.
        found: the closed form's mixture.
        positive: ``(N,)`` or ``(1,)`` P(y = 1 | label) of each item.
        shares_name: the shares that ``found.mix`` holds, in words.
        estimator: ``"em"`` or ``"moments"``.
    """
    model, data, _ = build({})
    shares, probs = np.asarray(found.outside)
    outside = [shares_name] * bool(shares)
    outside += ["probabilities of the attributes' values"] * bool(probs)
    cautions: tuple[Caution, ...] = ()
    if outside:
        goes_on = "" if estimator == "moments" else "; EM goes on from there"
        words = (
            f"the closed form gave inadmissible {' and '.join(outside)}, which were moved to the "
            f"nearest admissible ones{goes_on}"
        )
        cautions = (Caution(ClippedWarning, words),)
    # an exact zero is admissible for the closed form, but no place for EM to begin
    least = 0.0 if estimator == "moments" else _LEAST
    start = _closed_form_params(
        model, data, found.probs, jnp.asarray(positive), least, options.rule
    )
    return _from_start(build, names, options, start, estimator, cautions)


def _from_start(
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    start: Any,
    estimator: str,
    cautions: tuple[Caution, ...],
) -> FittedModel:
    candidate, n_rows = build({}), build.n_rows
    jacobian = build.log_jacobian({})
    if estimator == "moments":
        fit = evaluate(candidate.model, start, candidate.data, rule=options.rule)
        fitted = fitted_model(fit, candidate.data, names, n_rows, log_jacobian=jacobian)
    else:
        fitted = joint(candidate, names, n_rows, options, start=start, log_jacobian=jacobian)
    # for two classes it is enough that eta0 + eta1 < 1 (section 3)
    own = tuple(c for c in fitted.cautions if c.category is not IdentifiabilityWarning)
    return replace(fitted, cautions=(*cautions, *own))


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


def _by_share(fitted: FittedModel) -> FittedModel:
    """The classes renamed in the order of their shares, the most common first."""
    fit = fitted.fit
    with jax.enable_x64(fitted.double):
        order = np.argsort(-np.asarray(fit.point[PRIOR]), kind="stable")
        params = models.relabel(fit.model, fit.params, jnp.asarray(order))
    to_host = jax.tree.map(np.asarray, params)
    return replace(fitted, fit=replace(fit, params=to_host, resp=fit.resp[:, order]))


@partial(jax.jit, static_argnames="rule")
def _closed_form_params(
    model: Any, data: Data, probs: Array, positive: Array, least: float, rule: Rule
) -> Any:
    """Parameters of all components that reproduce a closed form.

    Args:
        model: components by name.
        data: encoded data.
        probs: ``(S, 2)`` P(value | class).
        positive: ``(N,)`` or ``(1,)`` P(y = 1 | label) of each item.
        least: what shares, and probabilities of zero, are raised to.
        rule: of the fit.
    """
    positive = jnp.broadcast_to(jnp.clip(positive, least, 1 - least), data.weights.shape)
    resp = data.weights[:, None] * jnp.stack([1 - positive, positive], 1)
    prior = model["features"].prior
    raised = jnp.where(probs > 0, probs, _LEAST)
    counts = Dirichlet(raised, axis=0, sizes=prior.sizes).mean * jnp.sum(resp, 0)
    out = {}
    for name, component in model.items():
        stats = counts
        if name != "features":
            read = component.likelihood_params(component.prior, "vb")
            stats = component.stats(read, resp, data.parts[name])
        out[name] = component.update(stats, rule)
    return out
