"""Matrix scaling of a classifier's scores, where one temperature calibrates them badly.

A regression with a strong penalty, which wrong labels and useless columns ask for, shrinks what
distinguishes one class more than what distinguishes another: no temperature is right for all
classes then. A noise matrix describes the rest nearly as well, and takes right labels for wrong.
A multinomial regression on the scores (matrix scaling; Guo et al. 2017, Kull et al. 2019) is right
wherever classes are normal with one covariance matrix, whatever the penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.special import log_softmax

from nbmodels.fitting.plain import plain_classifier

#: Names of the two, the cautious one first.
SCALINGS = TEMPERATURE, MATRIX = "temperature", "matrix"

#: Prior standard deviations of a matrix's cells, in units of the temperature's slope about which
#: they lie, and of a bias. A class may count for nothing, or for thrice as much as another.
_CELL_SD, _BIAS_SD = 2.0, 3.0

#: Rows times squared classes up to which a matrix is learned in a moment: as many rows leave few
#: errors to a weak penalty, and as many classes leave too few labels a cell.
_MOST_WORK = 5_000_000

#: Steps of the optimiser.
_STEPS = 100


class MatrixScaling(NamedTuple):
    """A linear function of scores.

    Attributes:
        matrix: ``(K, K)`` from scores to scores.
        bias: ``(K,)`` added to them.
    """

    matrix: Float[np.ndarray, "k k"]
    bias: Float[np.ndarray, " k"]

    def scaled(self, scores: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` scores, up to a constant in each row as those given."""
        return centred(scores) @ self.matrix + self.bias


def scalings(n_classes: int, n_rows: int) -> Sequence[str]:
    """What is to be compared; with two classes a matrix is a temperature and a bias."""
    small = n_rows * n_classes**2 <= _MOST_WORK
    return SCALINGS if n_classes > 2 and small else SCALINGS[:1]


def centred(scores: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Rows with a mean of zero, in double precision."""
    table = np.asarray(scores, float)
    return table - table.mean(1, keepdims=True)


def matrix_scaling(
    scores: Float[np.ndarray, "n k"], given: Float[np.ndarray, "n k"]
) -> MatrixScaling:
    """Matrix scaling of scores to labels, near the best temperature scaling.

    Args:
        scores: of each item, by a fit that did not see its label.
        given: weighted responsibilities; rows of zeros where there is no label.
    """
    k = scores.shape[1]
    one_fold = np.ones(len(scores)), np.zeros(len(scores), int)
    slope = float(np.exp(plain_classifier(centred(scores), given, *one_fold, False).calibration[0]))
    table, mass = slope * centred(scores), given.sum(1, keepdims=True)

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        gap, bias = at[:-k].reshape(k, k), at[-k:]
        logs = log_softmax(table + table @ gap + bias, axis=1)
        rest = mass * np.exp(logs) - given
        penalty = np.sum(gap**2) / _CELL_SD**2 + np.sum(bias**2) / _BIAS_SD**2
        slopes = np.ravel(table.T @ rest + gap / _CELL_SD**2)
        gradient = np.concatenate([slopes, rest.sum(0) + bias / _BIAS_SD**2])
        return float(penalty / 2 - np.sum(given * logs)), gradient

    start = np.zeros(k * k + k)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    return MatrixScaling(slope * (np.eye(k) + found[:-k].reshape(k, k)), found[-k:])


def scaled_out_of_fold(
    scores: Float[np.ndarray, "n k"],
    given: Float[np.ndarray, "n k"],
    fold: Int[np.ndarray, " n"],
) -> Float[np.ndarray, "n k"]:
    """Scores of each fold by the matrix scaling of the other folds' items.

    Args:
        scores, given: as of :func:`matrix_scaling`.
        fold: fold of each item.
    """
    out = centred(scores)
    for f in np.unique(fold):
        here = fold == f
        if given[~here].any():
            out[here] = matrix_scaling(scores[~here], given[~here]).scaled(scores[here])
    return out
