"""Calibrated label propagation: neighbours' labels are corrected, and heard again.

In round 0 scores come from the neighbours' given labels. How far they count and the noise are
fitted together (:class:`nbmodels.class_priors.Calibration`); the classes found take the place of
the labels, and the scores of the next round come from them. That is relaxation labelling, or the
collapsed updates of a joint model, except that every round is calibrated anew on labels that it has
not seen: each fold of items has a sequence of rounds in which its labels are hidden throughout. A
graph whose updates run off to one class shows that in the likelihood of these labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from inference.arrays import on_device
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.data.validation import pad_rows
from nbmodels.fitting.discriminative import LOG_SLOPE_SD
from nbmodels.fitting.em import Fit
from nbmodels.fitting.identifiability import confused_classes, vanished
from nbmodels.fitting.neighbours import Evidence, Graph, scores_without_own
from nbmodels.fitting.options import FitOptions, finished
from nbmodels.fitting.progress import Task
from nbmodels.fitting.scores import Candidate, with_score_prior
from nbmodels.fitting.two_starts import fit_from_two_starts

#: Rounds tried beyond the best so far.
_PATIENCE = 2


@dataclass(frozen=True)
class Propagated:
    """Neighbours' scores after some rounds, calibrated.

    Attributes:
        kind: of the scores.
        rounds: number of rounds, 0 for scores from the given labels.
        fit: labels' model, calibrated to scores that have not seen the item's own label.
        held_out: ``(N, K)`` those scores.
        whole: ``(N, K)`` scores from the labels of all other items; in later rounds an item's own
            label has had a part in what its neighbours are now taken for.
        counts: ``(users, K)`` the users' edges to each class, as :attr:`whole` is learned from.
        identified: whether all classes kept their names and their items.
    """

    kind: Evidence
    rounds: int
    fit: Fit
    held_out: Float[np.ndarray, "n k"]
    whole: Float[np.ndarray, "n k"]
    counts: Float[np.ndarray, "users k"]
    identified: bool


@dataclass(frozen=True)
class LabelledGraph:
    """Labels of the items of a graph.

    Attributes:
        graph: the graph.
        labels: class prior and channels, with their data, padded.
        resp: ``(N, K)`` the given labels, rows of zeros where there is none.
        weights: ``(N,)`` row weights.
        shares: ``(K,)`` shares of the given labels.
    """

    graph: Graph
    labels: Candidate
    resp: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]
    shares: Float[np.ndarray, " k"]

    def scored(self, scores: Float[np.ndarray, "n k"]) -> Candidate:
        """The labels' model with scores in the place of the class shares."""
        padded = pad_rows(scores, len(self.labels.data.weights))
        return with_score_prior(self.labels, on_device(padded), log_slope_sd=LOG_SLOPE_SD)

    def calibrated(
        self, scores: Sequence[Float[np.ndarray, "n k"]], options: FitOptions
    ) -> list[Fit]:
        """Calibration and noise fitted to each table of scores, begun at the labels.

        Scores from noisy labels contain the noise, and a fit that begins at the labels may find
        none besides. Where the matrix is full, a second start takes the classes that the scores and
        the shares make likeliest for the true ones.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        candidates = [self.scored(one) for one in scores]
        own, data = [c.model for c in candidates], [c.data for c in candidates]
        if not _has_second_start(self.labels.model):
            return [finished(f) for f in options.fit_all(own, data)]
        fits = fit_from_two_starts(own, data, options, log_shares=np.log(self.shares))
        return [finished(f) for f in fits]

    def identified(self, fitted: Fit) -> bool:
        """Whether all classes of a fit kept their names and their items."""
        resp = np.asarray(fitted.resp)[: len(self.weights)]
        known = self.weights * self.resp.any(1)
        gone = vanished(self.weights @ self.resp, known @ resp)
        matrices = fitted.transitions.values()
        return not len(gone) and not any(map(confused_classes, matrices))


def propagated(
    about: LabelledGraph,
    kinds: Sequence[Evidence],
    fold: Int[np.ndarray, " n"],
    options: FitOptions,
    most_rounds: int,
    found: list[Propagated],
    bar: Task,
) -> None:
    """Scores of each kind after each number of rounds.

    Args:
        about: graph and labels.
        kinds: of scores.
        fold: ``(N,)`` fold of each item.
        options: of the fits.
        most_rounds: largest number of rounds; fewer where two add nothing.
        found: list to which what is found is added, so that Ctrl-C leaves what there is.
        bar: progress bar that counts rounds.

    Raises:
        KeyboardInterrupt: a fit was interrupted.
    """
    masks = [(fold != f)[:, None] for f in range(int(fold.max()) + 1)]
    weights = about.weights[:, None]
    given = about.resp * weights
    score = partial(scores_without_own, graph=about.graph, shares=about.shares)
    whole = score(kinds, resp=given)
    hidden = [score(kinds, resp=given * mask) for mask in masks]
    counts = [about.graph.counts(given)] * len(kinds)
    held_out = whole  # no item's own label is in its own scores
    best, at = -np.inf, 0
    for r in range(most_rounds + 1):
        fits = about.calibrated(held_out, options)
        for i, kind in enumerate(kinds):
            known = about.identified(fits[i])
            found.append(Propagated(kind, r, fits[i], held_out[i], whole[i], counts[i], known))
        bar.update()
        reached = max(_score(about, fitted) for fitted in fits)
        best, at = (reached, r) if reached > best else (best, at)
        if r == most_rounds or r - at >= _PATIENCE:
            return
        whole, hidden, counts, held_out = list(whole), [list(h) for h in hidden], [], []
        for i, kind in enumerate(kinds):
            own = own_labels(fits[i], about.labels)[: len(weights)]
            heard = normalised(calibrated_logs(fits[i], whole[i]) + own) * weights
            (whole[i],) = score([kind], resp=heard)
            counts.append(about.graph.counts(heard))
            out = np.empty_like(whole[i])
            for f, mask in enumerate(masks):
                logs = calibrated_logs(fits[i], hidden[f][i]) + own * mask
                heard = normalised(logs) * weights
                (hidden[f][i],) = score([kind], resp=heard)
                out[fold == f] = hidden[f][i][fold == f]
            held_out.append(out)


def own_labels(fitted: Fit, labels: Candidate) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` log-likelihood of the items' own labels at a fit's point, padded rows included."""
    rule: Rule = "mean" if fitted.rule == "vb" else fitted.rule
    return np.asarray(_of_labels(fitted.model, fitted.params, labels.data, rule), float)


def normalised(logs: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Probabilities from their logarithms up to a constant a row."""
    probs = np.exp(logs - logs.max(1, keepdims=True))
    return probs / probs.sum(1, keepdims=True)


def calibrated_logs(fitted: Fit, scores: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` log P(true class | scores) under a fit's calibration."""
    at = np.asarray(fitted.point_of(PRIOR), float)
    table = np.exp(at[0]) * (scores - scores.mean(1, keepdims=True)) + at[1:]
    table = table - table.max(1, keepdims=True)
    return table - np.log(np.exp(table).sum(1, keepdims=True))


@partial(jax.jit, static_argnames="rule")
def _of_labels(model: Model, params: Any, data: Data, rule: Rule) -> Any:
    """``(N, K)`` log-likelihood of the items' own labels; finite, as it may be multiplied by 0."""
    others = {name: c for name, c in model.items() if name != PRIOR}
    parts = {name: part for name, part in data.parts.items() if name != PRIOR}
    read = models.likelihood_params(others, {name: params[name] for name in others}, rule)
    table = models.log_likelihood(others, read, Data(parts, data.weights)).table
    return jnp.maximum(table, -1e6)


def _has_second_start(model: Model) -> bool:
    """Whether the noise has more than one rate to learn."""
    channel: Any = model.get("labels")
    return channel is not None and np.ndim(getattr(channel.prior, "concentration", 0)) == 2


def _score(about: LabelledGraph, fitted: Fit) -> float:
    return float(about.weights @ np.asarray(fitted.log_likelihood)[: len(about.weights)])
