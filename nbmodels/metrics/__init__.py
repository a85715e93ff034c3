"""Scores of any classifier on test data whose labels are noisy, with intervals."""

from nbmodels.metrics.independence import Independence
from nbmodels.metrics.scores import NoisyTestScores, noisy_test_scores

__all__ = ["Independence", "NoisyTestScores", "noisy_test_scores"]
