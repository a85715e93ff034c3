"""Exceptions and warnings of the library, and the one way in which warnings are issued."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

#: Packages whose code is never the user's own line: this library, and scikit-learn's wrappers.
_LIBRARIES = ("nbmodels", "inference", "sklearn", "joblib")


class DataError(ValueError):
    """Input that cannot be used; the message names the argument, the row and what was expected."""


class CellTypeError(DataError, TypeError):
    """A cell holds what no column can: a list, a mapping."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a fit; the best result so far is kept.

    Args:
        result: what was reached: a fit, or the estimator that holds one.
    """

    def __init__(self, result: object) -> None:
        super().__init__("interrupted; the best result so far is in this exception's result")
        self.result = result


class NbmodelsWarning(UserWarning):
    """Base of the library's warnings."""


class IdentifiabilityWarning(NbmodelsWarning):
    """The noise matrix is not diagonally dominant: classes may have traded names."""


class NotConvergedWarning(NbmodelsWarning):
    """The iteration did not converge; the message states how it ended."""


class ClippedWarning(NbmodelsWarning):
    """A closed-form estimate was inadmissible and was moved to the nearest admissible value."""


class PosteriorWarning(NbmodelsWarning):
    """Posterior draws fail a convergence or accuracy check; the message states which."""


class VerdictWarning(NbmodelsWarning):
    """A model check failed; the message states which, and what may help."""


@dataclass(frozen=True)
class Caution:
    """A warning as data: it travels with results and is issued once, at the user's line.

    Attributes:
        category: class of the warning.
        message: its text.
    """

    category: type[NbmodelsWarning]
    message: str


def issue(cautions: Iterable[Caution]) -> None:
    """Issue warnings at the first line outside of the library, equal ones once.

    Args:
        cautions: in the order in which they are to appear.
    """
    level, frame, folders = 2, sys._getframe(1), _folders()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folders):
        level, frame = level + 1, frame.f_back
    for caution in dict.fromkeys(cautions):
        warnings.warn(caution.message, caution.category, stacklevel=level)


@cache
def _folders() -> tuple[str, ...]:
    """Folders of the libraries; a folder of the user's may have the same name."""
    specs = map(importlib.util.find_spec, _LIBRARIES)
    return tuple(os.path.dirname(s.origin) + os.sep for s in specs if s and s.origin)
