"""What the library raises and warns with."""

from __future__ import annotations


class DataError(ValueError):
    """Input that cannot be used; the message names the argument, the row and what was expected."""


class CellTypeError(DataError, TypeError):
    """A cell holds what no column can: a list, a mapping."""


class NbmodelsWarning(UserWarning):
    """Base of the library's warnings."""


class IdentifiabilityWarning(NbmodelsWarning):
    """The noise matrix is not diagonally dominant: classes may have traded names."""


class NotConvergedWarning(NbmodelsWarning):
    """The iteration did not converge; the message says how it ended."""


class ClippedWarning(NbmodelsWarning):
    """A closed form left the range of what it estimates, and was moved to its border."""


class PosteriorWarning(NbmodelsWarning):
    """Something speaks against trusting the posterior draws; the message says what."""


class VerdictWarning(NbmodelsWarning):
    """The data speak against the fitted model; the message says where, and what to try."""
