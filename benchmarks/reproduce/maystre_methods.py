"""Algorithms 1 and 2 of Maystre et al. 2021 and the model with an item's own vote left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines import weighted_vote
from nbmodels import CollaborativeClassifier, JointGraph, Solver
from nbmodels.papers import maystre2021


def cavi(
    edges: Any, given: np.ndarray, k: int, delta: float, alpha: float, passes: int | None = None
) -> np.ndarray:
    """Suggested classes of Algorithm 1; stopped after so many passes, where said."""
    stopped = {"solver": Solver(method="vb", accelerate=False, max_iter=passes)} if passes else {}
    e = CollaborativeClassifier.published(k, delta, alpha, classes=np.arange(k), **stopped)
    return e.fit(edges.T, given).label_posterior_.argmax(1)


def own_vote_out(edges: Any, given: np.ndarray, k: int, delta: float, alpha: float) -> np.ndarray:
    """The collapsed updates: an item's users are judged by their other items."""
    e = CollaborativeClassifier(
        alpha=alpha,
        weight=1.0,
        noise=maystre2021.noise(k, delta).T,
        classes=np.arange(k),
        training=JointGraph(noise_folds=0),
    )
    return e.fit(edges.T, given).label_posterior_.argmax(1)


def defaults(edges: Any, given: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The library's defaults, which know neither the noise nor alpha."""
    e = CollaborativeClassifier(random_state=seed, classes=np.arange(k))
    return e.fit(edges.T, given).label_posterior_.argmax(1)


def wvrn(edges: Any, given: np.ndarray, k: int) -> np.ndarray:
    """Algorithm 2; an item without neighbours gets class 0, as printed."""
    return weighted_vote(edges, given, k).argmax(1)
