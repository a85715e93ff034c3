"""Normal and Student's t classes with noisy labels: naive Bayes and discriminant analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from sklearn.utils.validation import check_is_fitted

from inference import Status
from inference.arrays import on_device
from nbmodels.core.model import Data, Model
from nbmodels.emissions import RealColumns
from nbmodels.errors import DataError
from nbmodels.estimators.constraints import Constraint, Number
from nbmodels.estimators.naive_bayes import feature_parameters
from nbmodels.estimators.options import (
    PUBLISHED,
    CrossFit,
    Joint,
    NoiseForm,
    Priors,
    RandomState,
    Solver,
    SolverName,
    Training,
)
from nbmodels.estimators.table import TableClassifier
from nbmodels.fitting.em import evaluate
from nbmodels.fitting.fit import Fit
from nbmodels.fitting.fitted_model import FittedModel, fitted_model
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.scores import Candidate

#: Where the search for the degrees of freedom begins, and its range; above it tails are normal.
_DOF = 4.0
_DOF_RANGE = (0.5, 200.0)
#: Relative accuracy of the degrees of freedom.
_DOF_ACCURACY = 0.02


class NoisyGaussianNB(TableClassifier):
    """Normal features with noisy labels: naive Bayes, or discriminant analysis; dense X.

    Parameters:
        covariance: ``"diag"`` (naive Bayes), ``"full"`` (each class its own covariance matrix, as
            in Bootkrajang and Kaban 2011), ``"tied"`` (one for all classes) or ``"auto"``.
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
        theta_: ``(K, d)`` means.
        var_: ``(K, d)`` variances, where the covariance is diagonal.
        covariance_: ``(K, d, d)``, or ``(d, d)`` where tied; where it is not diagonal.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, flip_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = rng.normal(np.array([[2.0, 5.0], [12.0, 8.0]])[truth])
        >>> y = names[corrupt(truth, flip_noise(2, {(0, 1): 0.3}), rng)]  # ants called bees
        >>> model = NoisyGaussianNB(training="joint").fit(X, y)
        >>> model.noise_matrix_.round(1)  # [given, true]
        array([[0.7, 0. ],
               [0.3, 1. ]])
        >>> suggested = model.corrected_labels()["suggested"]
        >>> print((y != names[truth]).sum(), (suggested != names[truth]).sum())  # wrong labels
        27 0
    """

    columns = RealColumns

    def __init__(
        self,
        *,
        covariance: Literal["diag", "full", "tied", "auto"] = "diag",
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
        self.covariance = covariance
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
    def theta_(self) -> Float[np.ndarray, "k d"]:
        """``(K, d)`` means, in the units of X."""
        return _in_all_columns(self)["mu"]

    @property
    def var_(self) -> Float[np.ndarray, "k d"]:
        """``(K, d)`` variances, where the covariance is diagonal."""
        return _variances(self)

    @property
    def covariance_(self) -> Float[np.ndarray, "*k d d"]:
        """``(K, d, d)``, or ``(d, d)`` where tied."""
        return _covariances(self)


class RobustNDA(TableClassifier):
    """Discriminant analysis whose observed labels may be mistaken (rNDA), and heavy tails; dense X.

    The model is that of Bootkrajang and Kaban (2011), with classes that may have heavy tails. The
    paper's ``gamma[j, k] = P(true k | observed j)`` and Zeng's ``rho[j, k] = P(observed j | true
    k)`` are two readings of one table of pairs of labels. A class is predicted by eq. (8).
    ``RobustNDA.published(solver="ml")`` is the paper's fit: normal classes with a covariance matrix
    each, jointly, a full noise matrix. The priors of ``"map"`` and ``"vb"`` keep the covariance of
    a class with few rows, or fewer than columns, from becoming singular.

    Parameters:
        covariance: ``"full"`` (each class its own covariance matrix, as in the paper), ``"tied"``
            (one for all classes), ``"diag"`` or ``"auto"``.
        dof: degrees of freedom of a multivariate Student t in the place of each normal, for heavy
            tails; None for normal classes; ``"auto"``: held-out labels select among 4, 100, which
            is as good as normal, and 1; ``"learn"`` for those of highest objective, in a joint fit.
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
        means_: ``(K, d)`` the paper's mu.
        covariances_: ``(K, d, d)``, ``(d, d)`` where tied, ``(K, d)`` where diagonal; with ``dof``
            the scale matrices, which are ``(dof - 2) / dof`` of the covariances.
        gamma_: ``(K, K)`` ``[observed, true]``, P(true | observed); rows sum to one.
        dof_: degrees of freedom, None for normal classes.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import RobustNDA
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(1)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = rng.normal(size=(200, 2)) @ [[2.0, 1.8], [0.0, 0.6]] + 3 * np.outer(truth, [1, -1])
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> model = RobustNDA(covariance="tied").fit(X, y)
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        152 200
        >>> model.gamma_.round(1)  # P(true | given)
        array([[0.8, 0.2],
               [0.2, 0.8]])
    """

    columns = RealColumns
    published_settings: ClassVar[Mapping[str, Any]] = {
        **PUBLISHED,
        "covariance": "full",
        "dof": None,
    }
    constraints: ClassVar[Mapping[str, Constraint]] = {
        "dof": Number(positive=True, words=("auto", "learn", None))
    }

    def __init__(
        self,
        *,
        covariance: Literal["diag", "full", "tied", "auto"] = "auto",
        dof: float | Literal["auto", "learn"] | None = "auto",
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
        self.covariance = covariance
        self.dof = dof
        self.noise = noise
        self.class_prior = class_prior
        self.training = training
        self.priors = priors
        self.classes = classes
        self.missing_label = missing_label
        self.missing_values = missing_values
        self.solver = solver
        self.random_state = random_state

    def _validate(self) -> dict[str, Any]:
        parameters = super()._validate()
        if self.dof == "learn":
            if isinstance(self._training(), CrossFit):
                raise DataError(
                    "dof: 'learn' maximises a joint objective; training must be 'joint' or 'auto'"
                )
            parameters["dof"] = _DOF
        return parameters

    def _training(self) -> Joint | CrossFit | None:
        asked = super()._training()
        return Joint() if asked is None and self.dof == "learn" else asked

    def _joint(
        self,
        candidate: Candidate,
        names: np.ndarray,
        n_rows: int,
        options: FitOptions,
        start: Any,
        **more: Any,
    ) -> FittedModel:
        if self.dof == "learn":
            model, data, learned = candidate
            search = learn_dof(model, "features", data, options, start)
            if search.interrupted:
                fit = evaluate(search.model, search.params, data, rule=options.rule)
                fit = replace(fit, status=Status.INTERRUPTED)
                return fitted_model(fit, data, names, n_rows, **more)
            candidate, start = Candidate(search.model, data, learned), search.params
        return super()._joint(candidate, names, n_rows, options, start, **more)

    @property
    def means_(self) -> Float[np.ndarray, "k d"]:
        """``(K, d)`` the paper's mu, in the units of X."""
        return _in_all_columns(self)["mu"]

    @property
    def covariances_(self) -> Float[np.ndarray, "*k d d"] | Float[np.ndarray, "k d"]:
        """``(K, d, d)``, ``(d, d)`` where tied, ``(K, d)`` where diagonal."""
        check_is_fitted(self)
        diagonal = self.fitted_.settings["covariance"] == "diag"
        return _variances(self) if diagonal else _covariances(self)

    @property
    def dof_(self) -> float | None:
        """Degrees of freedom; None for normal classes."""
        component: Any = self.fit_.model["features"]
        dof = component.dof if self.dof == "learn" else self.fitted_.settings["dof"]
        return None if dof is None else float(dof)

    @property
    def gamma_(self) -> Float[np.ndarray, "observed k"]:
        """``(K, K)`` ``[observed, true]``, P(true | observed), eq. (7); rows sum to one."""
        return self.inverse_noise_matrix_.T


def _in_all_columns(estimator: TableClassifier) -> dict[str, np.ndarray]:
    """Parameters by name, with the columns that are constant, which the model leaves out."""
    found, columns = feature_parameters(estimator), estimator.fitted_.coded[0]
    if not columns.constant:
        return found
    d, where, others = estimator.n_features_in_, columns.where, list(columns.constant)
    out = {}
    for name, values in found.items():
        if name == "covariance":
            out[name] = np.zeros((*values.shape[:-2], d, d))
            out[name][..., where[:, None], where] = values
        else:
            out[name] = np.zeros((*values.shape[:-1], d))
            out[name][..., where] = values
    out["mu"][..., others] = list(columns.constant.values())
    return out


def _variances(estimator: TableClassifier) -> np.ndarray:
    found = _in_all_columns(estimator)
    if "variance" not in found:
        raise AttributeError("the covariance is not diagonal; see covariance_")
    return found["variance"]


def _covariances(estimator: TableClassifier) -> np.ndarray:
    found = _in_all_columns(estimator)
    if "covariance" not in found:
        raise AttributeError("the covariance is diagonal; see var_")
    tied = estimator.fitted_.settings["covariance"] == "tied"
    return found["covariance"][0] if tied else found["covariance"]


class DofSearch(NamedTuple):
    """Result of :func:`learn_dof`.

    Attributes:
        model: components by name, with the degrees of freedom of highest objective.
        params: conjugate posterior of each.
        interrupted: whether Ctrl-C ended the search.
    """

    model: dict[str, Any]
    params: Any
    interrupted: bool


def learn_dof(
    model: Model, name: str, data: Data, options: FitOptions, start: Any = None
) -> DofSearch:
    """The degrees of freedom of highest objective, by a bounded line search.

    The objective is maximised over everything else at each of some twelve values, each fit
    beginning where the last one ended. There is no prior on the degrees of freedom. After Ctrl-C
    the result is the best of the values until then.

    Args:
        model: components by name.
        name: of the Student component.
        data: encoded data.
        options: of the fits.
        start: parameters at which the first fit begins; the labels by default.

    Raises:
        KeyboardInterrupt: interrupted before the first fit had evaluated its first point.
    """
    component: Any = model[name]
    options = options.without_restarts()
    tried: list[Fit] = []

    def at(log_dof: float) -> Model:
        return {**model, name: replace(component, dof=float(np.exp(log_dof)))}

    def loss(log_dof: float) -> float:
        begin = jax.tree.map(on_device, tried[-1].params) if tried else start
        tried.append(options.fit(at(log_dof), data, start=begin))
        return -finished(tried[-1]).objective

    try:
        best = minimize_scalar(
            loss, bounds=np.log(_DOF_RANGE), method="bounded", options={"xatol": _DOF_ACCURACY}
        )
    except KeyboardInterrupt:
        if not tried:
            raise
        reached = max(tried, key=lambda one: one.objective)
        return DofSearch(dict(reached.model), reached.params, True)
    params = jax.tree.map(on_device, tried[-1].params)
    return DofSearch(dict(at(best.x)), params, False)
