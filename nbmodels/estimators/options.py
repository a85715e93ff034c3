"""Small configuration objects of the estimators, for settings that are rarely changed.

They are parameters like any other of scikit-learn: ``get_params``, ``set_params``, ``clone`` and
grid search see into them (``solver__max_iter``). Where one of their settings is all that matters,
its name alone will do: ``solver="vb"``, ``training="joint"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from nbmodels.errors import DataError
from nbmodels.fitting.options import is_auto

# scikit-learn has no types, and dataclasses of a base without types take any argument
if TYPE_CHECKING:

    class _Parameters:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
else:
    _Parameters = BaseEstimator


@dataclass(kw_only=True, repr=False)
class Solver(_Parameters):
    """How the iteration runs and when it ends.

    Attributes:
        method: ``"map"`` (EM with priors), ``"ml"`` (EM without), ``"vb"`` (variational Bayes).
        max_iter: largest number of accepted steps of each start.
        tol: gain in nats per row below which the fit has converged.
        n_restarts: random starts beside the label-anchored one; the best objective wins.
        accelerate: extrapolate with monotone SQUAREM.
        precision: ``"single"``, ``"double"``, or ``"auto"``: double unless the data are large.
            Double precision is computed on the CPU unless ``jax.default_device`` is set.
        progress: show a bar; None to show one once a fit takes over three seconds.
        on_interrupt: after Ctrl-C, ``"raise"`` :class:`nbmodels.errors.Interrupted` once the
            estimator holds the best fit so far, or ``"keep"`` that fit and go on.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB, Solver
        >>> X = np.random.default_rng(0).normal(np.repeat([[0.0], [2.0]], 50, axis=0))
        >>> y = np.where(np.arange(100) % 10, np.repeat(["ant", "bee"], 50), "bee")
        >>> model = NoisyGaussianNB(training="joint", solver=Solver(max_iter=2))
        >>> with warnings.catch_warnings(action="always", record=True) as caught:
        ...     model = model.fit(X, y)
        >>> print(caught[0].message)
        The iteration limit was reached before the objective settled.
        >>> model.set_params(solver__max_iter=100).fit(X, y).converged_
        True
    """

    method: Literal["map", "ml", "vb"] = "map"
    max_iter: int = 500
    tol: float = 1e-6
    n_restarts: int = 0
    accelerate: bool = True
    precision: Literal["auto", "single", "double"] = "auto"
    progress: bool | None = None
    on_interrupt: Literal["raise", "keep"] = "raise"


@dataclass(kw_only=True, repr=False)
class Priors(_Parameters):
    """Pseudo-counts of the class shares and of the noise matrix.

    Attributes:
        class_alpha: pseudo-items of each class, where the shares are learned.
        noise_alpha: pseudo-labels that are wrong, for each true class, shared out evenly.
        noise_diagonal: pseudo-labels that are right, for each true class; ``"auto"``, where
            held-out labels can select how strongly the noise is drawn to the diagonal.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB, Priors
        >>> X = np.concatenate([np.linspace(0, 1, 20), np.linspace(8, 9, 20)])[:, None]
        >>> y = ["bee", "ant", "ant", "ant"] * 5 + ["bee"] * 20  # of the ants a quarter
        >>> model = NoisyGaussianNB(noise="full", training="joint")
        >>> model.fit(X, y).noise_matrix_.round(2)  # [given, true]
        array([[0.74, 0.04],
               [0.26, 0.96]])
        >>> trusting = Priors(noise_diagonal=100)  # as if 100 right labels of each class were known
        >>> model.set_params(priors=trusting).fit(X, y).noise_matrix_.round(2)
        array([[0.95, 0.01],
               [0.05, 0.99]])
    """

    class_alpha: float = 1.0
    noise_alpha: float = 1.0
    noise_diagonal: float | Literal["auto"] = 2.0


@dataclass(kw_only=True, repr=False)
class Joint(_Parameters):
    """Joint fitting: features and labels in one model, as in the papers.

    Attributes:
        weight: power of the features' likelihood, below 1 where features depend on each other; a
            mapping from blocks of columns to powers, as a mixed model has them by family; or
            ``"auto"``.
        size_power: 0 to take an item's features as they are; above, evidence is divided by this
            power of the item's size (words of a document, against the mean), since long items
            repeat themselves; or ``"auto"``. Only counts and binary features have a size.
        init: where the fit begins: at the ``"labels"``, or at third-order ``"moments"`` of discrete
            features and the labels, which need no class to be labelled right most often.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels import Joint, NoisyBernoulliNB, VerdictWarning
        >>> rng = np.random.default_rng(0)
        >>> truth = rng.integers(0, 2, 200)
        >>> X = rng.random((200, 4)) < np.where(truth, 0.8, 0.2)[:, None]
        >>> X = np.repeat(X, 5, axis=1)  # copies: a weight of 1 counts the evidence five times
        >>> y = np.array(["ant", "bee"])[np.where(rng.random(200) < 0.2, 1 - truth, truth)]
        >>> for weight in (1.0, 0.2):
        ...     model = NoisyBernoulliNB(alpha=1.0, training=Joint(weight=weight, size_power=0))
        ...     with warnings.catch_warnings(action="ignore", category=VerdictWarning):
        ...         sure = model.fit(X, y).predict_proba(X).max(axis=1) > 0.99
        ...     print(weight, sure.sum())  # of 200 rows
        1.0 188
        0.2 83
    """

    weight: Any = 1.0
    size_power: float | Literal["auto"] = "auto"
    init: Literal["labels", "moments"] = "labels"


@dataclass(kw_only=True, repr=False)
class CrossFit(_Parameters):
    """Cross-fitting: features learn from the given labels of other items only.

    How far their evidence counts is learned together with the noise. This holds where the model of
    the features does not.

    Attributes:
        rounds: self-training rounds, in which features learn anew from corrected labels; or
            ``"auto"`` for as many as held-out labels reward.
        weight: as in :class:`Joint`; only the ratios of several blocks matter.
        size_power: as in :class:`Joint`.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import CrossFit, NoisyGaussianNB
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = rng.normal(3 * truth[:, None], size=(200, 4))
        >>> y = names[corrupt(truth, uniform_noise(2, 0.2), rng)]
        >>> model = NoisyGaussianNB(training=CrossFit(rounds=2), random_state=0).fit(X, y)
        >>> model.chosen_
        {'rounds': 2}
        >>> print((y == names[truth]).sum(), (model.predict(X) == names[truth]).sum())  # of 200
        154 199
    """

    rounds: int | Literal["auto"] = "auto"
    weight: Any = 1.0
    size_power: float | Literal["auto"] = "auto"

    @property
    def n_rounds(self) -> int | None:
        """Number of rounds; None where it is to be selected."""
        return None if is_auto(self.rounds) else int(self.rounds)


@dataclass(kw_only=True, repr=False)
class JointGraph(_Parameters):
    """Joint fitting of a user-item graph and noisy labels.

    Attributes:
        collapsed: leave an item's own vote out of its users' counts.
        noise_folds: number of folds by which the noise is learned from what the graph says of items
            whose label it has not seen; 0 to learn it within the fit, where labels confirm
            themselves.

    Examples:
        >>> import numpy as np
        >>> from scipy import sparse
        >>> from nbmodels import CollaborativeClassifier, JointGraph
        >>> rng = np.random.default_rng(0)
        >>> truth, likes = rng.integers(0, 2, 150), rng.integers(0, 2, 30)  # of items, of users
        >>> visits = sparse.csr_array(rng.poisson(np.where(likes[:, None] == truth, 0.6, 0.1)))
        >>> names = np.array(["ant", "bee"])
        >>> y = names[np.where(rng.random(150) < 0.2, 1 - truth, truth)]  # a fifth is wrong
        >>> graph = JointGraph(noise_folds=0)
        >>> model = CollaborativeClassifier(alpha=1.0, weight=1.0, training=graph).fit(visits, y)
        >>> print((y == names[truth]).sum(), (model.predict() == names[truth]).sum())  # of 150
        122 150
        >>> print((model.user_proportions_.argmax(axis=1) == likes).sum())  # of 30
        30
    """

    collapsed: bool = True
    noise_folds: int = 5


#: Values that are compared of each setting that says "auto", the cautious one first, in the order
#: in which settings are selected.
GRIDS: Mapping[str, Sequence[Any]] = {
    "alpha": (1.0, 0.1, 0.01),
    "dof": (4.0, 100.0, 1.0),
    "covariance": ("diag", "tied", "full"),
    "weight": (1.0, 0.3, 0.1, 0.03),
    "size_power": (0.0, 0.5, 1.0),
    "noise_diagonal": (2.0, 20.0, 200.0),
}

#: Values of settings that say "auto" in the models as published, but for an estimator's own.
PUBLISHED: Mapping[str, Any] = {
    **{name: values[0] for name, values in GRIDS.items()},
    "noise": "full",
}

#: Values of parameters, for signatures.
NoiseForm = Literal["auto", "full", "symmetric", "pooled"]
SolverName = Literal["map", "ml", "vb"]
Training = Literal["auto", "joint", "cross_fit"] | Joint | CrossFit
RandomState = int | np.random.RandomState | None


def resolved_solver(value: Any) -> Solver:
    """The solver that a parameter stands for.

    Raises:
        DataError: it stands for none.
    """
    if isinstance(value, Solver):
        return value
    if isinstance(value, str) and value in ("map", "ml", "vb"):
        return Solver(method=value)  # type: ignore[arg-type]
    raise DataError(f"solver: expected 'map', 'ml', 'vb' or a Solver, got {value!r}")


def resolved_priors(value: Any) -> Priors:
    """The priors that a parameter stands for.

    Raises:
        DataError: it stands for none.
    """
    if value is None:
        return Priors()
    if isinstance(value, Priors):
        return value
    raise DataError(f"priors: expected None or Priors, got {value!r}")


def resolved_training(value: Any) -> Joint | CrossFit | None:
    """The training that a parameter stands for; None for ``"auto"``.

    Raises:
        DataError: it stands for none.
    """
    if isinstance(value, Joint | CrossFit):
        return value
    if isinstance(value, str) and value in ("auto", "joint", "cross_fit"):
        return {"auto": None, "joint": Joint(), "cross_fit": CrossFit(rounds=0)}[value]
    raise DataError(
        f"training: expected 'auto', 'joint', 'cross_fit', a Joint or a CrossFit, got {value!r}"
    )


#: What a configuration object is made from where its parameter holds a name or None.
CONFIGURED = {"solver": resolved_solver, "priors": resolved_priors}


def prepare_nested(
    estimator: Any, names: Iterable[str], configured: Callable[[str, Any], Any]
) -> None:
    """Give an estimator configuration objects of its own, whose parameters are about to be set.

    Args:
        estimator: whose attributes they are.
        names: of parameters, such as ``solver__max_iter``; those without ``__`` are passed over.
        configured: from a parameter's name and value to the object that it stands for.

    Raises:
        DataError: a parameter holds a name that stands for no object.
    """
    for name in dict.fromkeys(n.partition("__")[0] for n in names if "__" in n):
        value = configured(name, getattr(estimator, name, None))
        if isinstance(value, str):
            raise DataError(f"{name}: {value!r} has no parameters of its own")
        if isinstance(value, Solver | Priors | Joint | CrossFit | JointGraph):
            # a copy: the object may be that of another estimator, too
            setattr(estimator, name, clone(value))
