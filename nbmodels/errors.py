"""Exceptions and warnings of the library, the one way to issue them, and numbers in messages."""

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


def counted(number: int, one: str, several: str = "") -> str:
    """A number of things, for messages.

    Args:
        number: of things.
        one: their name where there is one.
        several: where there is another number; by default with an s.

    Examples:
        >>> from nbmodels.errors import counted
        >>> counted(1, "row"), counted(2, "row"), counted(0, "class", "classes")
        ('1 row', '2 rows', '0 classes')
    """
    return f"{number} {one if number == 1 else several or one + 's'}"


class DataError(ValueError):
    """Input that cannot be used; the message names the argument, the row and what was expected.

    Examples:
        >>> from nbmodels import DataError, NoisyBernoulliNB
        >>> try:
        ...     model = NoisyBernoulliNB().fit([[0, 1], [1, 0], [1, 1]], ["ant", "bee"])
        ... except DataError as error:
        ...     print(error)
        y: has 2 rows where X has 3
    """


class CellTypeError(DataError, TypeError):
    """A cell holds what no column can: a list, a mapping."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a fit; the best result so far is kept.

    Args:
        result: what was reached: a fit, or the estimator that holds one.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Interrupted, fit
        >>> from nbmodels.papers import zeng2022
        >>> rng = np.random.default_rng(0)
        >>> model = zeng2022.to_model(K=3, d=5)
        >>> data = zeng2022.to_data(model, rng.integers(0, 3, 60), rng.integers(0, 2, (60, 5)))
        >>> def press_ctrl_c(steps, objective):
        ...     raise KeyboardInterrupt
        >>> try:
        ...     fitted = fit(model, data, key=jax.random.key(0), tol=0.0, report=press_ctrl_c)
        ... except Interrupted as stopped:
        ...     print(stopped.result.status.name, stopped.result.resp.shape)
        INTERRUPTED (60, 3)
    """

    def __init__(self, result: object) -> None:
        super().__init__("interrupted; the best result so far is in this exception's result")
        self.result = result


class NbmodelsWarning(UserWarning):
    """Base of the library's warnings.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels import NbmodelsWarning, NoisyBernoulliNB, Solver
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 3)) < np.where(y == "ant", 0.2, 0.8)[:, None]
        >>> with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        ...     model = NoisyBernoulliNB.published(solver=Solver(max_iter=2)).fit(x, y)  # too few
        >>> model.converged_
        False
    """


class IdentifiabilityWarning(NbmodelsWarning):
    """The noise matrix is not diagonally dominant: classes may have traded names.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels import IdentifiabilityWarning, NoisyBernoulliNB
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 3)) < np.where(y == "ant", 0.2, 0.8)[:, None]
        >>> crossed = [[0.1, 0.8], [0.9, 0.2]]  # most ants would be labelled as bees
        >>> with warnings.catch_warnings(record=True, action="always") as caught:
        ...     model = NoisyBernoulliNB.published(noise=crossed).fit(x, y)
        >>> print(next(w.message for w in caught if w.category is IdentifiabilityWarning))
        the noise matrix is not diagonally dominant and no renaming of the classes makes it so;
        these classes are labelled as another at least as often as themselves: ant as bee, bee
        as ant. Do not read class names literally there: add trusted labels, a stronger prior on
        the diagonal, or merge the classes
    """


class NotConvergedWarning(NbmodelsWarning):
    """The iteration did not converge; the message states how it ended.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB, NotConvergedWarning, Solver
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 3)) < np.where(y == "ant", 0.2, 0.8)[:, None]
        >>> with warnings.catch_warnings(record=True, action="always") as caught:
        ...     model = NoisyBernoulliNB.published(solver=Solver(max_iter=2)).fit(x, y)
        >>> print(next(w.message for w in caught if w.category is NotConvergedWarning))
        The iteration limit was reached before the objective settled.
    """


class ClippedWarning(NbmodelsWarning):
    """A closed-form estimate was inadmissible and was moved to the nearest admissible value.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels import ClassConditionalNB, ClippedWarning
        >>> rng = np.random.default_rng(2)
        >>> x, y = rng.integers(0, 2, (120, 3)), np.tile(["ant", "bee"], 60)  # of chance
        >>> with warnings.catch_warnings(record=True, action="always") as caught:
        ...     model = ClassConditionalNB(estimator="moments").fit(x, y)
        >>> print(next(w.message for w in caught if w.category is ClippedWarning))
        the closed form gave inadmissible flip rates and probabilities of the attributes'
        values, which were moved to the nearest admissible ones
    """


class PosteriorWarning(NbmodelsWarning):
    """Posterior draws fail a convergence or accuracy check; the message states which.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB, PosteriorWarning
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 3)) < np.where(y == "ant", 0.2, 0.8)[:, None]
        >>> model = NoisyBernoulliNB.published().fit(x, y)
        >>> with warnings.catch_warnings(record=True, action="always") as caught:
        ...     tree = model.posterior(draws=4, chains=4, warmup=2)
        >>> "R-hat" in "".join(str(w.message) for w in caught)
        True
    """


class VerdictWarning(NbmodelsWarning):
    """A model check failed; the message states which, and what may help.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB, VerdictWarning
        >>> y = np.repeat(["ant", "bee"], 60)
        >>> x = np.random.default_rng(0).random((120, 2)) < np.where(y == "ant", 0.2, 0.8)[:, None]
        >>> copies = np.repeat(x, 4, axis=1)  # each column four times, as if they were independent
        >>> with warnings.catch_warnings(record=True, action="always") as caught:
        ...     model = NoisyBernoulliNB.published().fit(copies, y)
        >>> message = next(str(w.message) for w in caught if "Try" in str(w.message))
        >>> print(message[: message.index(". Try")])
        Do not use this fit as it is: columns ... are correlated within ... beyond the model
        (correlation +1.00)
    """


@dataclass(frozen=True)
class Caution:
    """A warning as data: it travels with results and is issued once, at the user's line.

    Attributes:
        category: class of the warning.
        message: its text.
        finding: name under which a verdict states it among what the fit takes into account; it is
            then no warning: what the fit reports holds, intervals included. Empty for a warning.
    """

    category: type[NbmodelsWarning]
    message: str
    finding: str = ""


def issue(cautions: Iterable[Caution]) -> None:
    """Issue warnings at the first line outside of the library, equal ones once.

    Args:
        cautions: in the order in which they are to appear; those that a verdict states are none.
    """
    level, frame, folders = 2, sys._getframe(1), _folders()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folders):
        level, frame = level + 1, frame.f_back
    for caution in dict.fromkeys(one for one in cautions if not one.finding):
        warnings.warn(caution.message, caution.category, stacklevel=level)


@cache
def _folders() -> tuple[str, ...]:
    """Folders of the libraries; a folder of the user's may have the same name."""
    specs = map(importlib.util.find_spec, _LIBRARIES)
    return tuple(os.path.dirname(s.origin) + os.sep for s in specs if s and s.origin)
