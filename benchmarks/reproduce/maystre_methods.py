"""Algorithms 1 and 2 of Maystre et al. 2021 and the model with an item's own vote left out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma, softmax

from benchmarks.baselines import weighted_vote
from nbmodels import CollaborativeClassifier, JointGraph
from nbmodels.papers import maystre2021


def cavi(
    edges: Any, given: np.ndarray, k: int, delta: float, alpha: float, passes: int = 10
) -> np.ndarray:
    """``(N,)`` classes by Algorithm 1 as printed, begun from the items' priors.

    Args:
        edges: ``(N, M)`` sparse.
        given: ``(N,)`` labels.
        k: number of classes.
        delta: the noise that the items' priors assume.
        alpha: concentration of the users' proportions.
        passes: of the outer loop.
    """
    beta = maystre2021.beta(given, k, delta)
    found = beta
    for _ in range(passes):
        users = alpha + edges.T @ found
        found = softmax(np.log(beta) + edges @ digamma(users), axis=1)
    return found.argmax(1)


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


def flipped(rng: np.random.Generator, classes: np.ndarray, k: int, delta: float) -> np.ndarray:
    """Labels that are wrong with probability ``delta``, all other classes alike."""
    wrong = rng.random(len(classes)) < delta
    return np.where(wrong, (classes + rng.integers(1, k, len(classes))) % k, classes)
