"""Handwritten digits with planted label noise, from the copy that scikit-learn carries along.

Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning
Repository, 1998, https://doi.org/10.24432/C50P49, CC BY 4.0: 1,797 images of 8 x 8 pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbmodels.datasets.noise import corrupt, flip_noise

#: What is planted by default: share of a true class that is labelled as another, look-alike one.
FLIPS = {(1, 7): 0.15, (3, 8): 0.20, (4, 9): 0.10, (5, 6): 0.10, (7, 1): 0.20, (9, 4): 0.20}


@dataclass(frozen=True)
class NoisyDigits:
    """Digits whose training labels are partly wrong.

    Attributes:
        x: ``(N, 64)`` training images, grey levels 0 to 16.
        given: ``(N,)`` labels with planted errors, 0 to 9.
        truth: ``(N,)`` true digits.
        x_test: ``(M, 64)`` test images.
        y_test: ``(M,)`` true digits of the test images.
        matrix: ``(10, 10)`` ``[observed, true]`` noise that the labels were drawn from.
        names: ``(10,)`` names of the classes.

    Examples:
        >>> from nbmodels.datasets import noisy_digits
        >>> digits = noisy_digits()
        >>> digits.x.shape, digits.x_test.shape
        ((1300, 64), (497, 64))
        >>> eights_from_threes = (digits.truth == 3) & (digits.given == 8)
        >>> int(eights_from_threes.sum()), int((digits.truth == 3).sum())
        (29, 127)
        >>> float(digits.matrix[8, 3].round(2))  # planted: observed as 8, truly 3
        0.2
    """

    x: np.ndarray
    given: np.ndarray
    truth: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    matrix: np.ndarray
    names: np.ndarray


def noisy_digits(
    random_state: int = 0, *, test_size: int = 497, uniform: float = 0.05
) -> NoisyDigits:
    """Digits with look-alikes confused and a little uniform noise; clean test rows.

    Args:
        random_state: seed of the split and of the noise.
        test_size: number of clean test images.
        uniform: share of uniform noise under :data:`FLIPS`.

    Examples:
        >>> from nbmodels.datasets import noisy_digits
        >>> digits = noisy_digits(random_state=1, uniform=0.1)
        >>> float((digits.given != digits.truth).mean().round(2))  # share of wrong labels
        0.18
        >>> # digits that are never mislabelled without uniform noise
        >>> noisy_digits(uniform=0.0).matrix.diagonal().round(2) == 1
        array([ True, False,  True, False, False, False,  True, False,  True,
               False])
    """
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(random_state)
    order = rng.permutation(len(y))
    test, train = order[:test_size], order[test_size:]
    matrix = flip_noise(10, FLIPS, uniform)
    names = np.arange(10).astype(str)
    return NoisyDigits(
        x[train], corrupt(y[train], matrix, rng), y[train], x[test], y[test], matrix, names
    )
