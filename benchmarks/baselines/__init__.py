"""Baselines of the papers that no maintained library has."""

from baselines.factorisation import ranked_features, ranked_labels
from baselines.neighbours import relaxation_labels, weighted_vote
from baselines.neural import NAL, NLNN

__all__ = ["NAL", "NLNN", "ranked_features", "ranked_labels", "relaxation_labels", "weighted_vote"]
