"""Report of annotators: accuracy with intervals, spammers, and who copies from whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import stats

from nbmodels.data.validation import check_level
from nbmodels.diagnostics.accuracy_errors import accuracy_variance, of_each_alone
from nbmodels.fitting.copies import Copies
from nbmodels.fitting.vote_dependence import AnnotatorModel, VoteTable, tempered_posterior


def annotator_report(
    model: AnnotatorModel,
    votes: VoteTable,
    names: np.ndarray,
    level: float,
    copies: Copies,
    evidence: Float[np.ndarray, " w"],
) -> pd.DataFrame:
    """Annotators with the quality of their votes, the most frequent first.

    Args:
        model: annotators and classes.
        votes: those that it was fitted to.
        names: ``(W,)`` of the annotators.
        level: probability inside the intervals.
        copies: clusters of annotators who copy from each other.
        evidence: ``(W,)`` votes and pseudo-votes that show an annotator's accuracy.

    Returns:
        a frame with ``worker``, ``votes``, ``accuracy`` (expected share of right votes, copies
        among them), ``low`` and ``high`` (ends of its credible interval), ``spammer_score`` (0
        where votes follow the class exactly, 1 where they do not depend on it; one less the score
        of Raykar and Yu 2012, section 2, of whose outcomes an abstention is one), ``copies`` (a
        tuple of the workers with whom a worker agrees too often,
        :mod:`nbmodels.fitting.copied_votes`), ``copies_from`` (of these, whom the worker copies
        from; None where nobody, or where votes do not show who copies from whom), and
        ``copied_share`` (the expected share of the worker's votes that are copies; NaN without a
        source).

    Raises:
        DataError: a level that is no probability.
    """
    check_level(level)
    number = np.bincount(votes.worker, minlength=len(names))
    mean, variance = _accuracy(model, votes, number)
    # an accuracy is known no better than by as many votes on known classes
    variance = np.maximum(variance, mean * (1 - mean) / (evidence + 1))
    source, part, shown = copies.followed(votes)
    # matrices are of own votes; copies are right as often as their source
    of = np.where(source >= 0, source, np.arange(len(names)))
    mean = (1 - part) * mean + part * mean[of]
    variance = (1 - part) ** 2 * variance + part**2 * variance[of]
    evidence = (1 - part) * evidence + part * evidence[of]
    low, high = _interval(mean, variance, evidence, level)
    frame = pd.DataFrame(
        {
            "worker": names,
            "votes": number,
            "accuracy": mean,
            "low": low,
            "high": high,
            "spammer_score": 1 - _ranking_score(model.matrices),
            "copies": [tuple(names[copies.partners(w)]) for w in range(len(names))],
            "copies_from": pd.Series(
                [names[s] if one else None for s, one in zip(of, shown, strict=True)], dtype=object
            ),
            "copied_share": np.where(shown, part, np.nan),
        }
    )
    return frame.sort_values("votes", ascending=False, kind="stable")


def with_drawn_intervals(
    report: pd.DataFrame, draws: Any, shares: Float[np.ndarray, " k"], level: float
) -> pd.DataFrame:
    """A report whose intervals are those of posterior draws, about the same accuracies.

    Of few annotators the posterior of an accuracy is skewed and wide, and far from the normal
    approximation about its mode.

    Args:
        report: that of :func:`annotator_report`.
        draws: posterior draws of the annotators' matrices, and of class shares that are not known;
            where they have not mixed, the approximation's intervals count, too.
        shares: ``(K,)`` of the classes, where they are known.
        level: probability inside the intervals.
    """
    posterior = draws["posterior"]
    matrices = posterior["votes_transitions"].values
    if "class_prior" in posterior:
        shares = posterior["class_prior"].values[..., None, :]
    each = (matrices.diagonal(axis1=-2, axis2=-1) * shares).sum(-1).reshape(-1, matrices.shape[2])
    ends = np.quantile(each, [(1 - level) / 2, (1 + level) / 2], axis=0)
    low, high = ends[:, report.index]
    report, mean = report.reset_index(drop=True), report["accuracy"].to_numpy()
    if draws.attrs["warnings"]:
        low, high = np.minimum(low, report["low"]), np.maximum(high, report["high"])
    low, high = _not_certain(mean, report["votes"].to_numpy(), low, high, level)
    return report.assign(low=low, high=high)


def _interval(
    mean: Float[np.ndarray, " w"],
    variance: Float[np.ndarray, " w"],
    sizes: Float[np.ndarray, " w"],
    level: float,
) -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, " w"]]:
    """Ends of the intervals: those of a Beta distribution of this mean and variance.

    At a mean of one the variance of a mode vanishes, however few votes there are.
    """
    size = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, 1e-3)
    low, high = stats.beta.interval(level, mean * size, (1 - mean) * size)
    return _not_certain(mean, sizes, low, high, level)


def _not_certain(
    mean: Float[np.ndarray, " w"],
    sizes: Float[np.ndarray, " w"],
    low: Float[np.ndarray, " w"],
    high: Float[np.ndarray, " w"],
    level: float,
) -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, " w"]]:
    """Ends that leave open what as many votes do that are all right, or all wrong."""
    # Jeffreys' prior; the other end of votes that are all wrong is its mirror image
    least = stats.beta.ppf((1 - level) / 2, sizes + 0.5, 0.5)
    return np.minimum(low, np.minimum(least, mean)), np.maximum(high, np.maximum(1 - least, mean))


def _accuracy(
    model: AnnotatorModel, votes: VoteTable, number: Int[np.ndarray, " w"]
) -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, " w"]]:
    """Mean and variance of each accuracy.

    Of functions that abstain, classes are taken to be independent given the matrices.
    """
    n_observed, n_classes = model.of_votes.pseudo.shape[1:]
    right = np.arange(n_classes) // (n_classes // n_observed)
    mean = model.accuracy
    if not model.abstains:
        return mean, accuracy_variance(model, votes, right)
    return mean, mean * (1 - mean) / (number + 1) + of_each_alone(model, votes, right)


def _ranking_score(matrices: Float[np.ndarray, "w observed c"]) -> Float[np.ndarray, " w"]:
    """Distance of the columns of each matrix, 1 for the identity and 0 where all are equal."""
    k = matrices.shape[2]
    # the sum over pairs of squared distances, from sums alone
    squares, sums = (matrices**2).sum((1, 2)), matrices.sum(2)
    return (k * squares - (sums**2).sum(1)) / (k * (k - 1))


def untempered(model: AnnotatorModel, votes: VoteTable) -> AnnotatorModel:
    """With the responsibilities of votes that are independent given the class."""
    return replace(model, resp=tempered_posterior(model, votes, 0.0))
