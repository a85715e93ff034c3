"""Checks of the arguments of posterior sampling, before anything is computed or allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np

from nbmodels.core import model as models
from nbmodels.core.model import Data, Model
from nbmodels.errors import DataError
from nbmodels.posterior.draws import Keep, parameter_shapes, stored_quantities

Method = Literal["gibbs", "vb", "svi", "nuts"]
Feedback = Literal["cut", "joint", "mixed"]

#: Numbers that all draws together may store: 8 GB in double precision.
_MOST_NUMBERS = 1_000_000_000


class Size(NamedTuple):
    """Range of a whole number.

    Attributes:
        least: smallest value.
        most: largest value; beyond it, host memory or a lifetime would be exceeded.
    """

    least: int
    most: int


_SIZES = {
    "draws": Size(1, 10_000_000),
    "chains": Size(1, 10_000),
    "thin": Size(1, 100_000),
    "warmup": Size(0, 10_000_000),
}


#: Options of every method.
_OF_ALL = (*_SIZES, "keep", "sandwich", "progress")


def check_sizes(**sizes: Any) -> None:
    """Check ``draws`` (which may be "auto"), ``chains``, ``thin`` and ``warmup`` (None).

    Raises:
        DataError: one is no whole number, or out of range; the message names it.
    """
    for name, value in sizes.items():
        if isinstance(value, str) and name == "draws":
            _one_of(name, value, ("auto",))
        elif not (name == "warmup" and value is None):
            _whole(name, value, _SIZES[name])


def check_choices(*, method: Any, keep: Any, sandwich: Any, progress: Any) -> None:
    """Check the arguments that are one of a few values.

    Raises:
        DataError: one is not; the message names it.
    """
    _one_of("method", method, get_args(Method))
    _one_of("keep", keep, get_args(Keep))
    _one_of("sandwich", sandwich, (True, False))
    _one_of("progress", progress, (True, False, None))


def check_feedback(feedback: Any) -> None:
    """Check which posterior of a table's model is asked for.

    Raises:
        DataError: it is none of them, nor None.
    """
    _one_of("feedback", feedback, (*get_args(Feedback), None))


def check_known(method: Any, options: Iterable[str]) -> None:
    """Check the names of the options of one method, those of every method among them.

    Raises:
        DataError: an unknown method or option; the message names it.
    """
    _one_of("method", method, get_args(Method))
    names = [*_OF_ALL, *_OPTIONS[method]]
    for name in options:
        if name not in names:
            close = get_close_matches(name, names, 1)
            meant = f"did you mean {close[0]}? Its" if close else "its"
            raise DataError(
                f"{name}: unknown option of method={method!r}; {meant} options: {', '.join(names)}"
            )


def check_options(method: Method, options: Mapping[str, Any]) -> None:
    """Check the options of one method.

    Raises:
        DataError: an unknown option, or a value that the method cannot use; the message names it.
    """
    check_known(method, options)
    for name, value in options.items():
        _OPTIONS[method][name](name, value)


def check_memory(
    model: Model, data: Data, *, method: Method, draws: int, chains: int, keep: Keep
) -> None:
    """Refuse draws that would not fit into host memory.

    Args:
        model: components by name.
        data: encoded data.
        method: of sampling; NUTS and SVI store everything.
        draws: of each chain.
        chains: number of chains.
        keep: what is stored.

    Raises:
        DataError: more than a billion numbers; the message names ``draws``.
    """
    kept: Keep = "all" if method in ("svi", "nuts") else keep
    stored = stored_quantities(model, data, draws * chains, kept)
    shapes = parameter_shapes(model)
    each = sum(shapes[name][part].size for name, part in stored.parameters)
    each += len(data.weights) if stored.items else 0
    # the noise matrices of all channels, and the sampler's statistics
    each += sum(s.size for s in jax.tree.leaves(_transitions(model, shapes))) + 1
    if draws * chains * each > _MOST_NUMBERS:
        raise DataError(
            f"draws: {draws} of {chains} chains with {each} numbers in each draw exceed the limit "
            f"of {_MOST_NUMBERS} numbers; take fewer draws, or keep='small'"
        )


def _transitions(model: Model, shapes: Any) -> Any:
    return jax.eval_shape(lambda v: models.transitions(model, v), shapes)


def _whole(name: str, value: Any, size: Size) -> None:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    if not (is_whole and size.least <= value <= size.most):
        raise DataError(
            f"{name}: expected a whole number from {size.least} to {size.most}; got {value!r}"
        )


def _one_of(name: str, value: Any, expected: tuple[Any, ...]) -> None:
    plain = isinstance(value, str | bool | np.bool_) or value is None
    if not (plain and value in expected):
        raise DataError(f"{name}: expected one of {', '.join(map(repr, expected))}; got {value!r}")


def _positive(name: str, value: Any) -> None:
    _whole(name, value, Size(1, 10_000_000))


def _positive_or_none(name: str, value: Any) -> None:
    if value is not None:
        _positive(name, value)


def _choice(*expected: Any) -> Callable[[str, Any], None]:
    return lambda name, value: _one_of(name, value, expected)


def _probability(name: str, value: Any) -> None:
    if not (isinstance(value, float | np.floating) and 0 < value < 1):
        raise DataError(f"{name}: expected a number between 0 and 1; got {value!r}")


def _anything(name: str, value: Any) -> None:
    """No check: an object of another library."""


#: Options of each method, with their checks.
_OPTIONS: Mapping[str, Mapping[str, Callable[[str, Any], None]]] = {
    "gibbs": {},
    "vb": {"correct": _choice(True, False, None)},
    "svi": {
        "batch": _positive_or_none,
        "steps": _positive,
        "guide": _choice("mean field", "low rank"),
        "rank": _positive_or_none,
        "particles": _positive,
        "optimiser": _anything,
    },
    "nuts": {"target_accept": _probability},
}
