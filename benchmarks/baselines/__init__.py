"""Baselines of the papers that no maintained library has."""

from .factorisation import ranked_features, ranked_labels
from .neighbours import relaxation_labels, weighted_vote
from .neural import NAL, NLNN

__all__ = ["NAL", "NLNN", "ranked_features", "ranked_labels", "relaxation_labels", "weighted_vote"]
