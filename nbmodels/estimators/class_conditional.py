"""Naive Bayes on symbolic attributes by closed forms, and by EM from there (Denis 2006)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from sklearn.utils.validation import check_is_fitted

from nbmodels.channels import Transition, TrustedLabels
from nbmodels.core import model as models
from nbmodels.core.component import Component
from nbmodels.core.families import RULES, Dirichlet, Rule
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.labels import Classes
from nbmodels.data.validation import plain
from nbmodels.errors import ClippedWarning, DataError, IdentifiabilityWarning
from nbmodels.estimators.base import LabelSource
from nbmodels.estimators.labels import LabelledClassifier, coded
from nbmodels.estimators.latent import with_inherited_parameters
from nbmodels.estimators.naive_bayes import AttributesClassifier
from nbmodels.fitting import init_pairwise as pairwise
from nbmodels.fitting import init_spectral as spectral
from nbmodels.fitting.em import Fit, evaluate

#: EM never leaves a probability of zero, so it does not begin at one.
_LEAST = 1e-3


@partial(jax.jit, static_argnames="rule")
def _parameters(
    model: Any, data: Data, probs: Array, positive: Array, least: float, rule: Rule
) -> Any:
    """Parameters of all components that say what a closed form says.

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


class ClosedForm(AttributesClassifier):
    """Base of the estimators with a closed form, which is the fit or where EM begins."""

    parameters_doc = """
    method: ``"moments"``, the closed form alone, or ``"em"``, EM begun from it.
    rule: what EM maximises: ``"map"``, ``"ml"`` (as in the paper) or ``"vb"``.
    """

    def __init__(
        self,
        *,
        method: Literal["moments", "em"] = "em",
        rule: Literal["map", "ml", "vb"] = "map",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.method: Any = method
        self.rule = rule

    @property
    def _rule(self) -> Rule:
        # the closed form knows no prior
        return "ml" if self.method == "moments" else self.rule

    def _check_parameters(self) -> None:
        if self.method not in ("moments", "em"):
            raise DataError(f"method: expected 'moments' or 'em', got {self.method!r}")
        if self.rule not in RULES:
            raise DataError(f"rule: expected one of {RULES}, got {self.rule!r}")
        super()._check_parameters()

    def _attributes(self, data: Data, least: int) -> tuple[Array, tuple[int, ...]]:
        """``(N, S)`` indicators of the values and the number of each attribute's values."""
        sizes = tuple(len(c) for c in self.categories_)
        if len(sizes) < least:
            raise DataError(
                f"X: {least} attributes or more are needed to tell the classes apart, "
                f"got n_features = {len(sizes)}"
            )
        return data.parts["features"].onehot.to_dense(), sizes

    def _begin(
        self, model: Any, data: Data, found: pairwise.Mixture, positive: Any, what: str
    ) -> Any:
        """Parameters of all components, with a warning where the closed form left its range.

        Args:
            found: the closed form's mixture.
            positive: ``(N,)`` or ``(1,)`` P(y = 1 | label) of each item.
            what: the shares that ``found.mix`` holds, in words.
        """
        shares, probs = np.asarray(found.outside)
        strange = [what] * bool(shares) + ["probabilities of the attributes' values"] * bool(probs)
        if strange:
            goes_on = "" if self.method == "moments" else "; EM goes on from there"
            warnings.warn(
                f"the closed form gave inadmissible {' and '.join(strange)}, which were moved to "
                f"the nearest admissible ones{goes_on}",
                ClippedWarning,
                stacklevel=5,
            )
        # an exact zero is the closed form's right, but no place for EM to begin
        least = 0.0 if self.method == "moments" else _LEAST
        return _parameters(model, data, found.probs, jnp.asarray(positive), least, self._rule)

    def _solve(
        self,
        model: Mapping[str, Component],
        data: Data,
        classes: Classes,
        n_rows: int,
        start: Any = None,
        log_jacobian: Any = 0.0,
    ) -> None:
        if self.method == "moments":
            fitted = evaluate(model, start, data, rule=self._rule)
            self._keep(fitted, data, classes, n_rows, log_jacobian)
            return
        with warnings.catch_warnings():
            # for two classes it is enough that eta0 + eta1 < 1 (section 3)
            warnings.filterwarnings("ignore", category=IdentifiabilityWarning)
            super()._solve(model, data, classes, n_rows, start, log_jacobian)


def _two(classes: Classes) -> Classes:
    if len(classes) > 2:
        raise DataError(
            "y: Only binary classification is supported. The type of the target is multiclass. "
            f"Got {len(classes)} classes; NoisyCategoricalNB(init='moments') takes any number"
        )
    return classes


@with_inherited_parameters
class ClassConditionalNB(ClosedForm, LabelledClassifier):
    """Two classes whose labels flip at rates of their own: NB-CCCN and NB-CCCN-EM (Denis 2006).

    ``method="moments"`` is the closed form, eqs. (7)-(11), summed as in
    :func:`nbmodels.fitting.init_pairwise.class_conditional`; rows without a label and checked labels do not
    enter it. The paper's own sums, eqs. (18) and (19), are
    :func:`nbmodels.fitting.init_pairwise.class_conditional_by_roots`, less sure in small samples.
    ``method="em"`` is algorithm 2, eqs. (20)-(23), begun from it. The paper maximises the
    likelihood, which is ``rule="ml"``. The classes keep their names as long as ``eta0 + eta1 < 1``,
    so a class may be labelled wrong more often than right.

    Parameters:
    """

    attributes_doc = """
    flip_rates_: ``(eta0, eta1)``, P(label is ``classes_[1]`` | true class is ``classes_[0]``) and
        the reverse.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, trusted: Any = None) -> Self:
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
        return self._fit(X, sample_weight, lambda n_rows: self._binary(y, n_rows, trusted))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.method == "moments":
            for name, default in (("noise", "full"), ("class_prior", None)):
                value = getattr(self, name)
                if not (value is None or isinstance(value, str)) or value != default:
                    raise DataError(
                        f"{name}: method='moments' estimates it; give it to method='em' only"
                    )

    def _binary(self, y: Any, n_rows: int, trusted: Any) -> tuple[Classes, dict[str, LabelSource]]:
        classes, sources = self._labels(y, n_rows, trusted)
        return _two(classes), sources

    def _start(self, model: Any, data: Data) -> Any:
        x, sizes = self._attributes(data, 2)
        codes = data.parts["labels"]
        groups = jax.nn.one_hot(codes, 2, dtype=data.weights.dtype) * data.weights[:, None]
        if not bool((groups.sum(0) > 0).all()):
            raise DataError("y: both classes need labels, on rows whose weight is not zero")
        tables = pairwise.tables(x, groups, sizes)
        found = pairwise.class_conditional(tables)
        # rows without a label have the share of all others
        positive = jnp.append(found.mix, found.share)[codes]
        return self._begin(model, data, found, positive, "flip rates")

    def _read_out(self) -> None:
        super()._read_out()
        if self.flip_rates_.sum() >= 1:
            eta0, eta1 = self.flip_rates_
            warnings.warn(
                f"the flip rates {eta0:.3f} and {eta1:.3f} sum to one or more: the labels do not "
                "tell which class is which. Do not read class names literally: add trusted labels "
                "or a stronger prior on right labels",
                IdentifiabilityWarning,
                stacklevel=4,
            )

    @property
    def flip_rates_(self) -> np.ndarray:
        """``(eta0, eta1)``: P(label 1 | class 0) and P(label 0 | class 1)."""
        check_is_fitted(self)
        rho = self.noise_matrix_
        return np.array([rho[1, 0], rho[0, 1]])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@with_inherited_parameters
class PositiveUnlabelledNB(ClosedForm, LabelledClassifier):
    """Two classes from labels of one: positive items, and unlabelled ones (Denis 2006, 4.2).

    ``method="moments"`` is eqs. (16) and (17), read as in :mod:`nbmodels.papers.denis2006`;
    ``method="em"`` begins there. Whether positive items are a sample of their own, as in the paper,
    or were labelled among all, the likelihood is that of noisy labels of which no negative item
    gets a positive one. Predictions are for items like the unlabelled ones.

    Parameters:
        positive: the label of positive items. The other label in y, if there is one, means
            "unlabelled", as does ``missing_label``; it names the other class.
    """

    attributes_doc = """
    class_prior_: ``(2,)`` shares of the true classes among the unlabelled items.
    """

    def __init__(self, *, positive: Any = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.positive = positive

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        return self._fit(X, sample_weight, lambda n_rows: self._marked(y, n_rows))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.positive is None:
            raise DataError("positive: say which label of y marks positive items")
        for name, default in (("noise", "full"), ("class_prior", None)):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value != default:
                raise DataError(f"{name}: PositiveUnlabelledNB estimates it; leave it {default!r}")

    def _channel(self, k: int) -> Component:
        """No negative item gets a positive label; half of the positive ones do, to begin with."""
        one = self._positive
        concentration = np.ones((2, 2))
        concentration[one] += [self.noise_alpha, self.noise_alpha]
        concentration[1 - one, 1 - one] += self.noise_diagonal
        return Transition(prior=Dirichlet(jnp.asarray(concentration)))

    def _marked(self, y: Any, n_rows: int) -> tuple[Classes, dict[str, LabelSource]]:
        """The classes, and the labels with everything but ``positive`` read as the other one."""
        self._positive = 0  # until the classes are known
        classes = _two(self._labels(y, n_rows)[0])
        where = np.flatnonzero([bool(name == self.positive) for name in classes.names])
        marked = np.isin(self._codes, where)
        if not marked.any():
            labels = ", ".join(str(plain(name)) for name in classes.names)
            raise DataError(f"positive: no row of y has the label {self.positive!r} ({labels})")
        self._positive = int(where[0])
        if marked.all():
            raise DataError(f"y: no row is unlabelled: all are {self.positive!r}")
        self._codes = np.where(marked, self._positive, 1 - self._positive)
        checked = np.where(marked, self._positive, -1)
        return classes, {
            "labels": coded(partial(self._channel, 2), self._codes, 2),
            "trusted": coded(partial(TrustedLabels.of, 2), checked, 2),
        }

    def _start(self, model: Any, data: Data) -> Any:
        x, sizes = self._attributes(data, 2)
        codes, one = data.parts["labels"], self._positive
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
        return self._begin(model, data, found, share, "share of positive items")

    def _known(self, n_rows: int) -> dict[str, LabelSource]:
        codes = np.full(n_rows, 1 - self._positive)
        return {"labels": coded(lambda: self.fit_.model["labels"], codes, 2)}

    @property
    def class_prior_(self) -> np.ndarray:
        """``(2,)`` shares of the true classes among the unlabelled items."""
        return self.inverse_noise_matrix_[:, 1 - self._positive]

    @property
    def inverse_noise_matrix_(self) -> np.ndarray:
        """``(2, 2)`` ``[true, observed]``, P(true | observed); columns sum to one."""
        check_is_fitted(self)
        with jax.enable_x64(self._double_):
            shares = np.exp(np.asarray(self.fit_.point[PRIOR], float))
        joint = shares[:, None] * self.noise_matrix_.T
        return joint / joint.sum(0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@with_inherited_parameters
class UnlabelledNB(ClosedForm):
    """Classes from attributes alone: NB-UNL (Denis 2006, section 4.5, after Geiger et al. 2001).

    ``method="moments"`` is algorithm 3 for two classes, and the decomposition of third-order
    moments in :mod:`nbmodels.fitting.init_spectral` with one step of EM for more; ``method="em"`` begins there.
    Without labels nothing says which class is which: they are named in the order of their shares,
    the most common first.

    Parameters:
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        names = np.arange(2) if self.classes is None else self.classes
        return self._fit(X, sample_weight, lambda n_rows: (Classes.infer(np.zeros(0), names), {}))

    def _start(self, model: Any, data: Data) -> Any:
        x, sizes = self._attributes(data, 3)
        n_classes = 2 if self.classes is None else len(self.classes)
        if n_classes > 2:
            key = jax.random.key(self._seed())
            return spectral.start(model, data, key, self._rule, n_classes)
        found = pairwise.unlabelled(x, data.weights, sizes)
        return self._begin(model, data, found, found.mix[:1], "class shares")

    def _keep(
        self, fitted: Fit, data: Data, classes: Classes, n_rows: int, log_jacobian: Any = 0.0
    ) -> None:
        with jax.enable_x64(jnp.zeros(()).dtype == jnp.float64):
            order = np.argsort(-np.asarray(fitted.point[PRIOR]), kind="stable")
        params = models.relabel(fitted.model, fitted.params, jnp.asarray(order))
        fitted = replace(fitted, params=params, resp=fitted.resp[:, order])
        super()._keep(fitted, data, classes, n_rows, log_jacobian)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags
