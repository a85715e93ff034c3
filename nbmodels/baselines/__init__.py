"""What the papers compare with, where no well-kept library has it."""

from nbmodels.baselines.factorisation import ranked_features, ranked_labels
from nbmodels.baselines.neighbours import weighted_vote
from nbmodels.baselines.neural import NAL, NLNN

__all__ = ["NAL", "NLNN", "ranked_features", "ranked_labels", "weighted_vote"]
