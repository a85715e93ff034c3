"""Data sets for demonstrations, and ways to plant label noise in clean ones."""

from nbmodels.datasets.digits import NoisyDigits, noisy_digits
from nbmodels.datasets.noise import corrupt, flip_noise, uniform_noise

__all__ = [
    "NoisyDigits",
    "corrupt",
    "flip_noise",
    "noisy_digits",
    "uniform_noise",
]
