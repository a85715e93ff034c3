"""Matrix scaling of a classifier's scores, where one temperature calibrates them badly.

A regression with a strong penalty, which wrong labels and useless columns ask for, shrinks what
distinguishes one class more than what distinguishes another: no temperature is right for all
classes then. A noise matrix describes the rest nearly as well, and takes right labels for wrong.
A multinomial regression on the scores (matrix scaling; Guo et al. 2017, Dirichlet calibration; Kull
et al. 2019) is right wherever classes are normal with one covariance matrix, whatever the penalty.

Its ``K^2`` cells are many beside few labels a class. So they are normal about a multiple of the
identity, and this slope, the standard deviation of the cells and that of the biases are those under
which the labels are likeliest (empirical Bayes by MacKay's updates, 1992; Laplace's approximation).
Where a temperature is all that the labels show, both come out near zero. The curvature is taken for
a Kronecker product, of the scores' weighted products and of the mean curvature between classes
(Martens and Grosse 2015), whose eigenvectors are those of two small matrices, with any number of
classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize

from nbmodels.core.short_rows import row_sums
from nbmodels.fitting.plain import plain_classifier

#: Names of the two, the cautious one first.
SCALINGS = TEMPERATURE, MATRIX = "temperature", "matrix"

#: Standard deviations of a matrix's cells, in units of the best temperature's slope, and of a bias,
#: at which learning begins, and the one that is taken for zero.
_CELL_SD, _BIAS_SD, _LEAST_SD = 0.3, 1.0, 1e-3

#: Rows times squared classes up to which a matrix is learned in a moment, from a sample of more
#: rows; and fewest rows a class of such a sample.
_MOST_WORK, _ROWS_OF_CLASS = 5_000_000, 20

#: Rounds of learning the scales, steps of the optimiser in each, and change of the logarithm of a
#: scale's square from which on another round is worth it. Twice as many rounds and steps change
#: held-out labels by a thousandth of a nat.
_ROUNDS, _STEPS, _CHANGE = 8, 5, 0.1

#: Share of the labels from which on a class is rightly predicted for everything.
_MAJORITY = 0.5

#: Curvature along the slope's logarithm of which a step is no longer than a factor of e.
_LEAST_CURVATURE = 1.0

#: Number of cells with information from labels below which it is rounding.
_ROUNDING = 1e-9


class MatrixScaling(NamedTuple):
    """A linear function of scores.

    Attributes:
        matrix: ``(K, K)`` from scores to scores.
        bias: ``(K,)`` added to them.
        level: ``(K,)`` added for each unit of a row's mean.
    """

    matrix: Float[np.ndarray, "k k"]
    bias: Float[np.ndarray, " k"]
    level: Float[np.ndarray, " k"]

    def scaled(self, scores: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` scores, up to a constant in each row as those given."""
        mean = np.mean(scores, 1, keepdims=True)
        return centred(scores) @ self.matrix + mean * self.level + self.bias


def scalings(n_classes: int, n_rows: int) -> Sequence[str]:
    """What is to be compared; with two classes a matrix is a temperature and a bias."""
    small = n_rows * n_classes**2 <= _MOST_WORK
    return SCALINGS if n_classes > 2 and small else SCALINGS[:1]


def learnable(n_classes: int) -> bool:
    """Whether a sample of rows that is quickly learned from has enough of each class."""
    return n_classes**3 * _ROWS_OF_CLASS <= _MOST_WORK


def centred(scores: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Rows with a mean of zero, in double precision."""
    table = np.asarray(scores, float)
    return table - table.mean(1, keepdims=True)


def matrix_scaling(
    scores: Float[np.ndarray, "n k"], given: Float[np.ndarray, "n k"], *, levels: bool = False
) -> MatrixScaling:
    """Matrix scaling of scores to labels, as near to one temperature as the labels bear out.

    Where it predicts one class for everything, and most labels are of others, it has found nothing
    in the scores, and is the best temperature, which keeps their order.

    Args:
        scores: of each item, by a fit that did not see its label.
        given: weighted responsibilities; rows of zeros where there is no label.
        levels: whether the mean of a row says something: of log-probabilities it falls as one of
            them rises (Dirichlet calibration). Else a constant of a row says nothing.
    """
    n, k = scores.shape
    most = max(_MOST_WORK // k**2, _ROWS_OF_CLASS * k)
    if n > most:
        some = np.random.default_rng(n).permutation(n)[:most]
        scores, given = scores[some], given[some]
    table, one_fold = centred(scores), (np.ones(len(scores)), np.zeros(len(scores), int))
    slope = float(np.exp(plain_classifier(table, given, *one_fold, False).calibration[0]))
    mean = np.mean(scores, 1, keepdims=True)
    middle, spread = float(mean.mean()), float(mean.std()) if levels else 0.0
    others = [np.ones_like(mean), *([(mean - middle) / spread] if spread > 0 else [])]
    inputs = np.hstack([slope * table, *others])
    found = _learned(inputs, given)
    if not np.ptp((inputs @ found).argmax(1)) and given.sum(0).max() < _MAJORITY * given.sum():
        found = np.eye(*found.shape)
    level = found[k + 1] / spread if spread > 0 else np.zeros(k)
    return MatrixScaling(slope * found[:k], found[k] - middle * level, level)


def scaled_out_of_fold(
    scores: Float[np.ndarray, "n k"],
    given: Float[np.ndarray, "n k"],
    fold: Int[np.ndarray, " n"],
    *,
    levels: bool = False,
) -> Float[np.ndarray, "n k"]:
    """Scores of each fold by the matrix scaling of the other folds' items.

    Args:
        scores, given, levels: as of :func:`matrix_scaling`.
        fold: fold of each item.
    """
    out = centred(scores)
    for f in np.unique(fold):
        here = fold == f
        if given[~here].any():
            learned = matrix_scaling(scores[~here], given[~here], levels=levels)
            out[here] = learned.scaled(scores[here])
    return out


def _learned(
    inputs: Float[np.ndarray, "n d"], given: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "d k"]:
    """``(d, K)`` coefficients: cells of the matrix and, below, those of the other columns.

    Args:
        inputs: scores at the best temperature; ones; and perhaps their level.
        given: weighted responsibilities.
    """
    (_, d), k = inputs.shape, given.shape[1]
    data = _Data(inputs, given, given.sum(1, keepdims=True))
    variance = np.append(np.full(k, _CELL_SD**2), np.full(d - k, _BIAS_SD**2))
    slope, gap = 1.0, np.zeros((d, k))
    for _ in range(_ROUNDS):
        white = _Whitened.about(slope, gap, data, variance)
        slope, gap = white.climbed(slope, gap, data)
        before, variance = variance, white.variances(gap)
        if np.abs(np.log(variance / before)).max() < _CHANGE:
            break
    return slope * np.eye(d, k) + gap


class _Data(NamedTuple):
    """What a matrix is learned from.

    Attributes:
        inputs: ``(n, d)`` scores, then the other columns.
        given: ``(n, K)`` weighted responsibilities.
        items: ``(n, 1)`` their sums.
    """

    inputs: Float[np.ndarray, "n d"]
    given: Float[np.ndarray, "n k"]
    items: Float[np.ndarray, "n 1"]

    def linear(self, slope: float, gap: Float[np.ndarray, "d k"]) -> Float[np.ndarray, "n k"]:
        """``(n, K)`` scaled scores."""
        return slope * self.scores + self.inputs @ gap

    @property
    def scores(self) -> Float[np.ndarray, "n k"]:
        """Those inputs that the slope is of."""
        return self.inputs[:, : self.given.shape[1]]


class _Whitened(NamedTuple):
    """Coordinates in which prior and likelihood together curve about alike everywhere.

    Attributes:
        root: ``(d, 1)`` prior standard deviation of the cells of each row.
        left: ``(d, d)`` eigenvectors of the inputs' products, in units of ``root``.
        right: ``(K, K)`` eigenvectors of the curvature between classes.
        curvature: ``(d, K)`` of each pair of them, the prior's 1 included.
        along: of the slope's logarithm.
    """

    root: Float[np.ndarray, "d 1"]
    left: Float[np.ndarray, "d d"]
    right: Float[np.ndarray, "k k"]
    curvature: Float[np.ndarray, "d k"]
    along: float

    @classmethod
    def about(
        cls,
        slope: float,
        gap: Float[np.ndarray, "d k"],
        data: _Data,
        variance: Float[np.ndarray, " d"],
    ) -> _Whitened:
        """Those of the curvature at a point; ``variance`` is the prior's, of each row's cells."""
        probs, _ = _softmax(data.linear(slope, gap))
        own = data.items * probs
        between = np.diag(own.sum(0)) - own.T @ probs
        # inputs count by how far their items' classes are open: sure items do not curve
        openness = data.items[:, 0] - np.sum(own * probs, 1)
        products = (data.inputs * openness[:, None]).T @ data.inputs
        root = np.sqrt(variance)[:, None]
        tiny = np.finfo(float).tiny
        first, left = np.linalg.eigh(root * root.T * products / max(openness.sum(), tiny))
        second, right = np.linalg.eigh(between)
        curvature = 1 + np.outer(np.maximum(first, 0), np.maximum(second, 0))
        k = len(between)
        along = slope**2 * float(np.trace(products[:k, :k])) / k
        return cls(root, left, right, curvature, max(along, _LEAST_CURVATURE))

    def climbed(
        self, slope: float, gap: Float[np.ndarray, "d k"], data: _Data
    ) -> tuple[float, Float[np.ndarray, "d k"]]:
        """Nearer to the posterior mode, by some steps from a point."""
        width, run = np.sqrt(self.curvature), np.sqrt(self.along)

        def cells(flat: np.ndarray) -> np.ndarray:
            return self.root * (self.left @ (flat.reshape(width.shape) / width) @ self.right.T)

        def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
            # above zero: scores that say nothing often point away from labels held out of them
            here, steep = cells(flat[:-1]), slope * np.exp(flat[-1] / run)
            linear = data.linear(steep, here)
            probs, totals = _softmax(linear)
            misfit = float(np.sum(data.items * totals) - np.sum(data.given * linear))
            rest, standard = data.items * probs - data.given, here / self.root
            uphill = self.root * (data.inputs.T @ rest) + standard
            of_cells = (self.left.T @ uphill @ self.right) / width
            of_slope = steep * np.sum(rest * data.scores) / run
            penalty = float(np.square(standard).sum()) / 2
            return misfit + penalty, np.append(np.ravel(of_cells), of_slope)

        start = np.append(np.ravel(width * (self.left.T @ (gap / self.root) @ self.right)), 0)
        options = {"maxiter": _STEPS}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
        return float(slope * np.exp(found[-1] / run)), cells(found[:-1])

    def variances(self, gap: Float[np.ndarray, "d k"]) -> Float[np.ndarray, " d"]:
        """``(d,)`` prior variances under which the labels are likelier: MacKay's update.

        One of all cells of the matrix, and one for each other input.
        """
        k = gap.shape[1]
        # effective number of parameters in each row
        effective = k - np.square(self.left) @ (1 / self.curvature).sum(1)
        both = np.stack([np.square(gap).sum(1), effective])
        both[:, :k] = both[:, :k].mean(1, keepdims=True)
        return np.maximum(both[0] / np.maximum(both[1], _ROUNDING), _LEAST_SD**2)


def _softmax(
    linear: Float[np.ndarray, "n k"],
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n 1"]]:
    """Probabilities, and logarithms of their denominators, of which a step needs both."""
    top = linear.max(1, keepdims=True)
    powers = np.exp(linear - top)
    total = row_sums(powers)[:, None]
    return powers / total, top + np.log(total)
