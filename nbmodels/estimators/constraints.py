"""Declared constraints on parameters: one entry a parameter, one error message a kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
import pandas as pd

from nbmodels.errors import DataError
from nbmodels.estimators.options import JointGraph
from nbmodels.fitting.em import MOST_RESTARTS, MOST_STEPS


class Constraint(Protocol):
    """What a parameter may be."""

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: the value is something else."""


@dataclass(frozen=True)
class Number:
    """A finite real number in a range, or one of some other values.

    Attributes:
        least: smallest value.
        positive: whether the smallest value itself is excluded.
        most: largest value.
        whole: whether it must be a whole number.
        words: other values that are allowed.
    """

    least: float = 0.0
    positive: bool = False
    most: float = np.inf
    whole: bool = False
    words: tuple[Any, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: not such a number."""
        if any(value is word or (isinstance(value, str) and value == word) for word in self.words):
            return
        kind = int | np.integer if self.whole else Real
        fits = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
        if fits:
            number = float(value)
            above = number > self.least if self.positive else number >= self.least
            fits = above and number <= self.most and number < np.inf
        if not fits:
            raise DataError(f"{name}: expected {self.expected}; got {value!r}")

    @property
    def expected(self) -> str:
        """The constraint, for messages."""
        what = "a whole number" if self.whole else "a finite number"
        low = f"above {self.least:g}" if self.positive else f"{self.least:g} or more"
        limits = f"{self.least:g} to {self.most:g}" if self.most < np.inf else low
        return ", or ".join([f"{what}, {limits}", *map(repr, self.words)])


@dataclass(frozen=True)
class OneOf:
    """One of a few values.

    Attributes:
        values: those.
    """

    values: tuple[Any, ...]

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: none of them."""
        if not any(
            value is v or (isinstance(v, str) and isinstance(value, str) and value == v)
            for v in self.values
        ):
            raise DataError(f"{name}: expected one of {self.values}, got {value!r}")


@dataclass(frozen=True)
class Marker:
    """One scalar that marks what is missing, or None."""

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: not one value."""
        if not pd.api.types.is_scalar(value):
            raise DataError(f"{name}: expected one value that marks what is missing, got {value!r}")


@dataclass(frozen=True)
class Weights:
    """A power of a likelihood, or powers by block of columns."""

    number: Number = Number(words=("auto",))

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: neither."""
        if isinstance(value, Mapping):
            for block, power in value.items():
                Number().check(f"{name}: {block}", power)
        else:
            self.number.check(name, value)


@dataclass(frozen=True)
class Noise:
    """A form of the noise matrix, or a matrix, which is checked where K is known.

    Attributes:
        forms: names of forms.
    """

    forms: tuple[str, ...] = ("auto", "full", "symmetric", "pooled")

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: a string that is no form."""
        if isinstance(value, str) and value not in self.forms:
            listed = ", ".join(map(repr, self.forms))
            raise DataError(f"{name}: expected {listed} or a matrix, got {value!r}")


@dataclass(frozen=True)
class Concentration:
    """Numbers, which are checked where the users are known, or ``"auto"`` or ``"bound"``."""

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: another string."""
        if isinstance(value, str) and value not in ("auto", "bound"):
            raise DataError(f"{name}: expected numbers or 'auto' or 'bound', got {value!r}")


@dataclass(frozen=True)
class GraphTraining:
    """How a graph is trained."""

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: no such training."""
        if not (
            isinstance(value, JointGraph)
            or (isinstance(value, str) and value in ("auto", "joint", "cross_fit"))
        ):
            raise DataError(
                f"{name}: expected 'auto', 'joint', 'cross_fit' or a JointGraph, got {value!r}"
            )


@dataclass(frozen=True)
class NoFoldsOrMore:
    """0, or 2 or more folds."""

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: another number."""
        if not (isinstance(value, int | np.integer) and (value == 0 or value > 1)):
            raise DataError(f"{name}: expected 0, or 2 or more folds; got {value!r}")


@dataclass(frozen=True)
class Jobs:
    """A number of processes as in joblib: None, or a whole number other than 0."""

    def check(self, name: str, value: Any) -> None:
        """Raises: DataError: something else."""
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and not (whole and value != 0):
            raise DataError(f"{name}: expected None or a whole number but 0; got {value!r}")


_FLAG = OneOf((True, False))

#: Constraints by parameter; an estimator may narrow some in its own ``constraints``.
CONSTRAINTS: dict[str, Constraint] = {
    # solver
    "method": OneOf(("ml", "map", "vb")),
    "max_iter": Number(1, whole=True, most=MOST_STEPS),
    "tol": Number(),
    "n_restarts": Number(whole=True, most=MOST_RESTARTS),
    "accelerate": _FLAG,
    "precision": OneOf(("auto", "single", "double")),
    "progress": OneOf((None, True, False)),
    "on_interrupt": OneOf(("raise", "keep")),
    "n_jobs": Jobs(),
    # priors
    "class_alpha": Number(),
    "noise_alpha": Number(),
    "noise_diagonal": Number(words=("auto",)),
    # training
    "weight": Weights(),
    "size_power": Number(words=("auto",)),
    "init": OneOf(("labels", "moments")),
    "rounds": Number(whole=True, words=("auto",)),
    "collapsed": _FLAG,
    # labels and features
    "noise": Noise(),
    "missing_label": Marker(),
    "missing_values": Marker(),
    "alpha": Number(words=("auto",)),
    "binarize": Number(-np.inf, words=(None,)),
    "covariance": OneOf(("diag", "full", "tied", "auto")),
    "C": Number(positive=True),
    "pooling": OneOf(("auto", "own", "shared", "none", True, False)),
    "subtypes": Number(1, most=20, whole=True),
    "abstain": Marker(),
    "ordered": _FLAG,
    "dependence": Number(most=1.0, words=("auto", "shown")),
    "duplicates": OneOf(("auto", "count", "once", "refuse")),
}


def check_parameters(
    parameters: Mapping[str, Any], own: Mapping[str, Constraint] | None = None
) -> None:
    """Check parameters against their constraints.

    Args:
        parameters: values by name; those without a constraint are passed over.
        own: constraints that take the place of the common ones.

    Raises:
        DataError: naming the first parameter that breaks one.
    """
    known = {**CONSTRAINTS, **(own or {})}
    for name, value in parameters.items():
        if name in known:
            known[name].check(name, value)
