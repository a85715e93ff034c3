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
from sklearn.utils import check_random_state

from nbmodels.errors import DataError

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
        progress: show a bar; None to show one once a fit takes over three seconds.
        on_interrupt: after Ctrl-C, ``"raise"`` :class:`nbmodels.errors.Interrupted` once the
            estimator holds the best fit so far, or ``"keep"`` that fit and go on.
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
    """

    collapsed: bool = True
    noise_folds: int = 5


#: Values that are compared of each setting that says "auto", the cautious one first, in the order
#: in which settings are selected.
GRIDS: Mapping[str, Sequence[Any]] = {
    "alpha": (1.0, 0.1, 0.01),
    "covariance": ("diag", "tied", "full"),
    "weight": (1.0, 0.3, 0.1, 0.03),
    "size_power": (0.0, 0.5, 1.0),
    "noise_diagonal": (2.0, 20.0, 200.0),
}

#: Values of settings that say "auto" in the models as published.
PUBLISHED: Mapping[str, Any] = {
    **{name: values[0] for name, values in GRIDS.items()},
    "noise": "full",
}

#: Values of parameters, for signatures.
NoiseForm = Literal["auto", "full", "symmetric", "pooled"]
SolverName = Literal["map", "ml", "vb"]
Training = Literal["auto", "joint", "cross_fit"] | Joint | CrossFit
RandomState = int | np.random.RandomState | None


def is_auto(value: Any) -> bool:
    """Whether a parameter is to be selected."""
    return isinstance(value, str) and value == "auto"


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


def seed_of(state: Any) -> int:
    """A whole number drawn from a ``random_state``.

    Raises:
        DataError: it is none.
    """
    try:
        return check_random_state(state).randint(np.iinfo(np.int32).max)
    except ValueError as error:
        raise DataError(
            "random_state: expected None, a whole number, 0 or more, or a RandomState; "
            f"got {state!r}"
        ) from error
