"""Plant label noise: matrices ``[observed, true]``, columns summing to one, and labels drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from nbmodels.errors import DataError


def uniform_noise(n_classes: int, rate: float) -> Float[np.ndarray, "k k"]:
    """Wrong with probability ``rate``, and then any other class alike.

    Args:
        n_classes: number of classes, 2 or more.
        rate: share of wrong labels, from 0 to 1.

    Returns:
        ``(K, K)`` matrix ``[observed, true]``.

    Raises:
        DataError: no probability, or less than two classes.

    Examples:
        >>> from nbmodels.datasets import uniform_noise
        >>> uniform_noise(3, 0.2)
        array([[0.8, 0.1, 0.1],
               [0.1, 0.8, 0.1],
               [0.1, 0.1, 0.8]])
    """
    _check_rate("rate", rate)
    if n_classes < 2:
        raise DataError(f"n_classes: expected 2 or more, got {n_classes}")
    matrix = np.full((n_classes, n_classes), rate / (n_classes - 1))
    np.fill_diagonal(matrix, 1 - rate)
    return matrix


def flip_noise(
    n_classes: int, flips: Mapping[tuple[int, int], float], rate: float = 0.0
) -> Float[np.ndarray, "k k"]:
    """Asymmetric noise: named flips, with some uniform noise underneath.

    Args:
        n_classes: number of classes, 2 or more.
        flips: probability by ``(true, observed)``; ``{(3, 8): 0.2}`` mislabels a fifth of the
            threes as eights. Pair noise is ``{(k, (k + 1) % K): rate for k in range(K)}``.
        rate: uniform noise among the labels that no flip touched.

    Returns:
        ``(K, K)`` matrix ``[observed, true]``.

    Raises:
        DataError: no pair of different classes, no probability, or a sum above one.

    Examples:
        >>> from nbmodels.datasets import flip_noise
        >>> flip_noise(3, {(0, 1): 0.3})  # 30 % of class 0 are observed as class 1
        array([[0.7, 0. , 0. ],
               [0.3, 1. , 0. ],
               [0. , 0. , 1. ]])
        >>> flip_noise(3, {(0, 1): 0.3}, rate=0.1).round(3)
        array([[0.63 , 0.05 , 0.05 ],
               [0.335, 0.9  , 0.05 ],
               [0.035, 0.05 , 0.9  ]])
    """
    flipped = np.zeros((n_classes, n_classes))
    for (true, observed), share in flips.items():
        if true == observed or not (0 <= true < n_classes and 0 <= observed < n_classes):
            raise DataError(f"flips: {(true, observed)} is not a pair of different classes")
        _check_rate(f"flips[{true}, {observed}]", share)
        flipped[observed, true] = share
    left = 1 - flipped.sum(0)
    if (left < 0).any():
        true = int(np.argmin(left))
        raise DataError(f"flips: those of class {true} add up to {1 - left[true]:.3g}, more than 1")
    return flipped + left * uniform_noise(n_classes, rate)


def corrupt(y: Any, matrix: Any, rng: Any) -> Int[np.ndarray, " n"]:
    """Labels drawn from a noise matrix, given the true ones.

    Args:
        y: ``(N,)`` true classes, whole numbers from 0 to K - 1.
        matrix: ``(K, K)`` ``[observed, true]``; columns sum to one.
        rng: a seed, a generator of NumPy's, or None for other labels each time.

    Returns:
        ``(N,)`` observed classes.

    Raises:
        DataError: not such a matrix, classes outside it, or no seed.

    Examples:
        >>> import numpy as np
        >>> from nbmodels.datasets import corrupt, flip_noise
        >>> names = np.array(["ant", "bee", "cow"])
        >>> truth = np.repeat([0, 1, 2], 100)
        >>> noise = flip_noise(3, {(0, 1): 0.3})  # 30 % of the ants are labelled as bees
        >>> given = corrupt(truth, noise, np.random.default_rng(0))
        >>> np.unique(names[given], return_counts=True)
        (array(['ant', 'bee', 'cow'], dtype='<U3'), array([ 63, 137, 100]))
    """
    true, noise = np.asarray(y), np.asarray(matrix, float)
    if noise.ndim != 2 or noise.shape[0] != noise.shape[1]:
        raise DataError(f"matrix: expected a square matrix, got an array of shape {noise.shape}")
    if (noise < 0).any() or not np.allclose(noise.sum(0), 1):
        raise DataError("matrix: expected probabilities whose columns sum to one")
    if true.ndim != 1 or true.dtype.kind not in "iu":
        raise DataError("y: expected a 1d array of whole numbers, the codes of the classes")
    bad = np.flatnonzero((true < 0) | (true >= len(noise)))
    if len(bad):
        raise DataError(f"y: row {bad[0]} is {true[bad[0]]}; expected 0 to {len(noise) - 1}")
    try:
        source = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise DataError(f"rng: expected a seed or a generator, got {rng!r}") from error
    # the last step up is dropped, so that rounding cannot leave a draw above it
    steps = np.cumsum(noise, axis=0)[:-1, true]
    return (source.random(len(true)) > steps).sum(0)


def _check_rate(name: str, rate: float) -> None:
    if not 0 <= rate <= 1:
        raise DataError(f"{name}: expected a probability, got {rate!r}")
