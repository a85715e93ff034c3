"""Calibrated label propagation: neighbours' labels are corrected, and counted again.

In round 0 scores come from the neighbours' given labels. How far they count, and the noise, are
fitted together (:class:`nbmodels.class_priors.Calibration`); the classes found take the place of
the labels, and the scores of the next round come from them. That is relaxation labelling, or the
collapsed updates of a joint model, except that every round is calibrated anew on labels that it has
not seen: each fold of items has a sequence of rounds in which its labels are hidden throughout. A
graph whose updates run off to one class shows that in the likelihood of these labels.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from inference.arrays import floating, on_device
from inference.compilation import host_jit
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import PRIOR, Data, Model
from nbmodels.data.validation import pad_rows
from nbmodels.fitting.discriminative import LOG_SLOPE_SD
from nbmodels.fitting.em import Fit, started
from nbmodels.fitting.errors_by_size import ErrorsBySize
from nbmodels.fitting.fit import with_arrays
from nbmodels.fitting.identifiability import confused_classes, vanished
from nbmodels.fitting.neighbours import Evidence, Graph, row_sums, scores_without_own
from nbmodels.fitting.options import MANY_ROWS, FitOptions, finished
from nbmodels.fitting.progress import Task
from nbmodels.fitting.scores import Candidate, with_score_prior
from nbmodels.fitting.stacking_weights import stacking_weights
from nbmodels.fitting.two_starts import fit_from_two_starts

#: Rounds tried beyond the best so far.
_PATIENCE = 2

#: Nats a label below which a round over many items has gained nothing: probabilities differ by a
#: hundredth of a per cent, which may be sure, and changes next to no label.
_GAIN = 1e-4

#: Share of the tolerance for fits that begin at a neighbour's solution: where the noise is hardly
#: identified they would stop there, and fall behind round by round.
_CLOSER = 0.01

#: What the first round takes items for: given labels as corrected by a fit, or neighbours' votes.
GIVEN, VOTES = "labels", "votes"


@dataclass(frozen=True)
class Propagated:
    """Neighbours' scores after some rounds, calibrated.

    Attributes:
        kind: of the scores.
        start: what the first round took items for, :data:`GIVEN` or :data:`VOTES`.
        rounds: number of rounds, 0 for scores from the given labels.
        fit: labels' model, calibrated to scores that have not seen the item's own label.
        held_out: ``(N, K)`` those scores.
        whole: ``(N, K)`` scores from the labels of all other items; in later rounds an item's own
            label has had a part in what its neighbours are now taken for.
        counts: ``(users, K)`` the users' edges to each class, as :attr:`whole` is learned from.
        identified: whether all classes kept their names and their items.
        reading: what repeated edges count; None where there is no choice.
    """

    kind: Evidence
    start: str
    rounds: int
    fit: Fit
    held_out: Float[np.ndarray, "n k"]
    whole: Float[np.ndarray, "n k"]
    counts: Float[np.ndarray, "users k"]
    identified: bool
    reading: str | None = None

    def describe(self) -> dict[str, Any]:
        """Settings, for a table."""
        own = {**self.kind.describe(), "start": self.start, "rounds": self.rounds}
        return own if self.reading is None else {**own, "repeats": self.reading}


@dataclass(frozen=True)
class LabelledGraph:
    """Labels of the items of a graph.

    Attributes:
        graph: the graph.
        labels: class prior and channels, with their data, padded.
        resp: ``(N, K)`` the given labels, rows of zeros where there is none.
        weights: ``(N,)`` row weights.
        shares: ``(K,)`` shares of the given labels.
        predicted: whether scores are log-probabilities, which hold the shares, and not neighbours'
            scores, which are relative to them.
        errors: how often labels are wrong by their items' number of users; None where that is taken
            to be the same.
    """

    graph: Graph
    labels: Candidate
    resp: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, " n"]
    shares: Float[np.ndarray, " k"]
    predicted: bool = False
    errors: ErrorsBySize | None = None

    def scored(self, scores: Float[np.ndarray, "n k"]) -> Candidate:
        """The labels' model with scores in the place of the class shares."""
        padded = on_device(pad_rows(scores, len(self.labels.data.weights)))
        even = np.full(len(self.shares), 1 / len(self.shares))
        # scores of weak edges say little of the bias, which would move the classes' shares as the
        # chance of a few labels has it, and rounds of propagation would then hear them
        shares = even if self.predicted else self.shares
        return with_score_prior(self.labels, padded, log_slope_sd=LOG_SLOPE_SD, shares=shares)

    def predictions(self) -> LabelledGraph:
        """The same, for scores that are log-probabilities."""
        return replace(self, predicted=True)

    def calibrated(
        self,
        scores: Sequence[Float[np.ndarray, "n k"]],
        options: FitOptions,
        seen: Sequence[Bool[np.ndarray, " n"]] | None = None,
        begun: Sequence[Fit] | None = None,
        second_start: bool = True,
    ) -> list[Fit]:
        """Calibration and noise fitted to each table of scores, begun at the labels.

        Scores from noisy labels contain the noise, and a fit that begins at the labels may find
        none besides. Where the matrix is full, a second start takes the classes that the scores and
        the shares make likeliest for the true ones.

        Args:
            scores: one table a fit.
            options: of the fits.
            seen: ``(N,)`` for each fit, the items that it is of; None for all.
            begun: fits to scores much like these, where fits of many items begin instead.
            second_start: whether these have a second start, too.

        Raises:
            KeyboardInterrupt: a fit was interrupted.
        """
        candidates = [self.scored(one) for one in scores]
        own, data = [c.model for c in candidates], [c.data for c in candidates]
        if seen is not None:
            rows = [on_device(pad_rows(self.weights * one, len(data[0].weights))) for one in seen]
            data = [replace(one, weights=w) for one, w in zip(data, rows, strict=True)]
        warm = begun is not None and len(self.weights) >= MANY_ROWS
        if warm:
            starts = [jax.tree.map(on_device, f.params) for f in begun or ()]
        else:  # by the program of the second start
            resp = pad_rows(self.resp, len(data[0].weights)).astype(floating())
            about = zip(map(with_arrays, map(models.at_fixed_priors, own)), data, strict=True)
            starts = [started(m, on_device(resp), d, options.rule) for m, d in about]
        options = replace(options, tol=_CLOSER * options.tol) if warm else options
        if not self.has_many_rates() or (warm and not second_start):
            return [finished(f) for f in options.fit_all(own, data, starts=starts)]
        shares = np.log(self.shares)
        fits = fit_from_two_starts(own, data, options, log_shares=shares, starts=starts)
        return [finished(f) for f in fits]

    def has_many_rates(self) -> bool:
        """Whether the noise has more than one rate to learn."""
        channel: Any = self.labels.model.get("labels")
        return channel is not None and np.ndim(getattr(channel.prior, "concentration", 0)) == 2

    def identified(self, fitted: Fit) -> bool:
        """Whether all classes of a fit kept their names and their items."""
        resp = np.asarray(fitted.resp)[: len(self.weights)]
        gone = vanished(self.resp, resp, self.weights)
        matrices = fitted.transitions.values()
        return not len(gone) and not any(map(confused_classes, matrices))


@dataclass(frozen=True)
class _Scores:
    """Scores of one kind.

    Attributes:
        kind: of the scores.
        whole: as in :class:`Propagated`.
        hidden: one table a fold, as :attr:`whole`, in which the fold's own labels had no part.
        held_out: as in :class:`Propagated`.
        counts: likewise.
    """

    kind: Evidence
    whole: Float[np.ndarray, "n k"]
    hidden: Sequence[Float[np.ndarray, "n k"]]
    held_out: Float[np.ndarray, "n k"]
    counts: Float[np.ndarray, "users k"]


#: From scores, and where labels are not hidden, to ``(N, K)`` what items are taken for.
_Correction = Callable[[Float[np.ndarray, "n k"], Bool[np.ndarray, " n"]], Float[np.ndarray, "n k"]]


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

    Where the noise has more than one rate there is a second sequence of rounds, whose first one
    takes every item for what most of its neighbours are labelled as. Scores from given labels
    contain the noise, and with a bias for each class their calibration may take errors that most
    labels of a rare class have for the class itself; votes contain much less of it.

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
    first = _of_given_labels(about, kinds, fold)
    rounds = partial(_rounds, about, fold, options, most_rounds, found, bar)
    rounds(first, 0, GIVEN)
    if most_rounds and about.has_many_rates():
        rounds([_corrected(about, one, fold, partial(_voted, about)) for one in first], 1, VOTES)


def _rounds(
    about: LabelledGraph,
    fold: Int[np.ndarray, " n"],
    options: FitOptions,
    most_rounds: int,
    found: list[Propagated],
    bar: Task,
    scores: list[_Scores],
    first: int,
    start: str,
) -> None:
    """Rounds from given scores on, of which ``first`` made them."""
    many = len(about.weights) >= MANY_ROWS
    enough = _GAIN * float(about.weights.sum()) if many else 0.0
    best, at = -np.inf, first
    fits: list[Fit] | None = None
    before = np.full(len(scores), -np.inf)
    for r in range(first, most_rounds + 1):
        # scores of later rounds are much like those before, whose fits had both starts
        tables, early = [one.held_out for one in scores], r <= first + 1
        fits = about.calibrated(tables, options, begun=fits, second_start=early)
        known = [about.identified(fit) for fit in fits]
        for one, fit, named in zip(scores, fits, known, strict=True):
            kept = (one.held_out, one.whole, one.counts)
            found.append(Propagated(one.kind, start, r, fit, *kept, named, about.graph.reading))
        bar.update()
        reached = np.array([_score(about, fit) for fit in fits])
        best, at = (reached.max(), r) if reached.max() > best + enough else (best, at)
        settled = bool((np.abs(reached - before) < enough).all())
        if r == most_rounds or settled or r - at >= _PATIENCE:
            bar.update(most_rounds - r)
            return
        going = np.full(len(fits), True)
        if r > first and many:
            going = _promising(about, fits, known)
        scores = [
            _corrected(about, one, fold, _by_fit(about, fit))
            for one, fit in itertools.compress(zip(scores, fits, strict=True), going)
        ]
        fits, before = list(itertools.compress(fits, going)), reached[going]


def _promising(
    about: LabelledGraph, fits: Sequence[Fit], known: Sequence[bool]
) -> Bool[np.ndarray, " c"]:
    """Which kinds of scores go on: those with a weight in the average of this round's.

    Where classes are not identified, later rounds may mend that.
    """
    named = np.array(known)
    out = ~named
    if named.any():
        rows = about.weights * about.resp.any(1)
        tables = [np.asarray(fit.log_likelihood, float)[: len(rows)] for fit in fits]
        out[named] = stacking_weights(np.stack(tables)[named], rows) > 0
    return out


def _of_given_labels(
    about: LabelledGraph, kinds: Sequence[Evidence], fold: Int[np.ndarray, " n"]
) -> list[_Scores]:
    """Scores from the labels as they are, which hold no item's own label."""
    score = partial(scores_without_own, kinds, about.graph, shares=about.shares)
    given = about.resp * about.weights[:, None]
    counts = about.graph.counts(given)
    whole = score(resp=given)
    hidden = [score(resp=given * seen[:, None]) for seen in _seen(fold)]
    return [
        _Scores(kind, whole[i], [one[i] for one in hidden], whole[i], counts)
        for i, kind in enumerate(kinds)
    ]


def _corrected(
    about: LabelledGraph, scores: _Scores, fold: Int[np.ndarray, " n"], correct: _Correction
) -> _Scores:
    """Scores from what items are taken for."""
    weights = about.weights[:, None]
    score = partial(scores_without_own, [scores.kind], about.graph, shares=about.shares)
    corrected = correct(scores.whole, np.full(len(weights), True)) * weights
    (whole,) = score(resp=corrected)
    hidden, out = [], np.empty_like(whole)
    for before, seen in zip(scores.hidden, _seen(fold), strict=True):
        (table,) = score(resp=correct(before, seen) * weights)
        out[~seen] = table[~seen]
        hidden.append(table)
    return _Scores(scores.kind, whole, hidden, out, about.graph.counts(corrected))


def _seen(fold: Int[np.ndarray, " n"]) -> list[np.ndarray]:
    """``(N,)`` for each fold, where labels are not hidden."""
    return [fold != f for f in range(int(fold.max()) + 1)]


def _by_fit(about: LabelledGraph, fitted: Fit) -> _Correction:
    """P(true class | scores, own label) under a fit."""
    own = own_labels(fitted, about.labels)[: len(about.weights)]
    at = calibration(fitted)
    slope, bias = np.exp(at[0]), own + at[1:]

    def correct(scores: Float[np.ndarray, "n k"], seen: Any) -> Float[np.ndarray, "n k"]:
        # a constant of a row changes no probability
        table = slope * scores
        table += bias
        table[~seen] -= own[~seen]
        return _softmax(table)

    return correct


def _voted(
    about: LabelledGraph, scores: Float[np.ndarray, "n k"], seen: Any
) -> Float[np.ndarray, "n k"]:
    """The likeliest class by the neighbours' labels; items without neighbours keep their own."""
    best = np.eye(scores.shape[1])[np.argmax(scores + np.log(about.shares), 1)]
    return np.where(np.ptp(scores, axis=1, keepdims=True) > 0, best, about.resp * seen[:, None])


def own_labels(fitted: Fit, labels: Candidate) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` log-likelihood of the items' own labels at a fit's point, padded rows included."""
    rule = models.reported(fitted.rule)
    return np.asarray(_of_labels(fitted.model, fitted.params, labels.data, rule), float)


def normalised(logs: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Probabilities from their logarithms up to a constant a row."""
    return _softmax(np.array(logs))


def _softmax(table: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """Probabilities, in the place of the logarithms."""
    table -= table.max(1, keepdims=True)
    np.exp(table, out=table)
    table /= row_sums(table)[:, None]
    return table


def calibration(fitted: Fit) -> Float[np.ndarray, " p"]:
    """``(1 + K,)`` log-slope and biases at a fit's point, of scores as they come.

    Every rule reads the point at its centre.
    """
    q: Any = fitted.params[PRIOR]
    prior: Any = fitted.model[PRIOR]
    found: Float[np.ndarray, " p"] = prior.of_scores(q.mean)
    return found


def calibrated_logs(fitted: Fit, scores: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` log P(true class | scores) under a fit's calibration."""
    return calibrated(scores, calibration(fitted))


def calibrated(
    scores: Float[np.ndarray, "n k"], at: Float[np.ndarray, " p"]
) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` log P(true class | scores) under log-slope and biases ``at``."""
    table = np.exp(at[0]) * (scores - scores.mean(1, keepdims=True)) + at[1:]
    table = table - table.max(1, keepdims=True)
    return table - np.log(np.exp(table).sum(1, keepdims=True))


def log_class_shares(
    logs: Float[np.ndarray, "n k"], weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " k"]:
    """``(K,)`` logarithms of mean class probabilities, finite.

    Args:
        logs: logarithms of each row's.
        weights: row weights.
    """
    return np.log(np.maximum(np.average(np.exp(logs), 0, weights), np.finfo(float).tiny))


@partial(host_jit, static_argnames="rule")
def _of_labels(model: Model, params: Any, data: Data, rule: Rule) -> Any:
    """``(N, K)`` log-likelihood of the items' own labels; finite, as it may be multiplied by 0."""
    others = {name: c for name, c in model.items() if name != PRIOR}
    parts = {name: part for name, part in data.parts.items() if name != PRIOR}
    read = models.likelihood_params(others, {name: params[name] for name in others}, rule)
    table = models.log_likelihood(others, read, models.with_parts(data, parts)).table
    return jnp.maximum(table, -1e6)


def _score(about: LabelledGraph, fitted: Fit) -> float:
    return float(about.weights @ np.asarray(fitted.log_likelihood)[: len(about.weights)])
