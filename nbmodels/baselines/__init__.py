"""What the papers compare with, where no well-kept library has it."""

from nbmodels.baselines.neighbours import weighted_vote

__all__ = ["weighted_vote"]
