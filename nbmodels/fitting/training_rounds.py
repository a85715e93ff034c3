"""Self-training rounds of a selection: scores learned anew for as long as held-out labels gain."""

from __future__ import annotations

from functools import partial

from nbmodels.core.model import PRIOR
from nbmodels.fitting.believed_features import votes_as_without
from nbmodels.fitting.candidate_trials import CandidateTrials
from nbmodels.fitting.scores import Candidate
from nbmodels.fitting.self_training import NestedRounds
from nbmodels.fitting.trials import HOPELESS, Found, Trial

#: Rounds tried beyond the best so far: the first may gain little and a later one more.
_PATIENCE = 2

#: Nats a label that a round beyond the first must change for another to be tried, and the first of
#: many rows.
_WORTH, _STILL = 1e-3, 1e-4


def self_trained(
    trials: CandidateTrials,
    found: Found,
    rounds: int | None,
    most: int,
    nested: NestedRounds | None,
) -> None:
    """Learn the scores anew from corrected labels, for so many rounds or as long as it helps.

    Args:
        trials: those of the selection.
        found: what is selected until now.
        rounds: asked for; None where their number is selected.
        most: rounds at most.
        nested: see :func:`select`.
    """
    best = last = found.best
    if best.rounds >= most:
        return
    settings = best.settings
    model, data, learned = trials.candidate(settings)
    about = trials.source, settings, trials.resp, trials.all_folds, trials.log_slope_sd
    # rounds that are compared are those of the result
    rows = None if trials.choosing else trials.rows
    nested = nested or NestedRounds(*about, rows, trials.shares(data))
    while last.rounds < most and last.rounds - found.best.rounds < _PATIENCE:
        before = trials.responsibilities(last)
        how = trials.fits.of_parts(trials.tentative)
        here, data = nested.next(
            partial(trials.fits.each, start=trials.fits.start, options=how),
            found.best.fit.model,
            last=rounds is None or last.rounds + 1 == most,
        )
        model = {**model, PRIOR: here[PRIOR]}
        one = Candidate(model, data, learned)
        # where rows are judged, one of all rows follows
        then = None if trials.rows is None else trials.tentative
        last = trials.tried(settings, last.rounds + 1, one, then)
        if rounds is not None or (
            trials.preferred([found.best, last]) is last and votes_as_without(trials, last)
        ):
            found.best, found.responsibilities = last, before
        if rounds is None and _enough(trials, found.best, last):
            break


def _enough(trials: CandidateTrials, best: Trial, last: Trial) -> bool:
    """Whether no self-training round beyond the last is worth its fits."""
    # of all labels, standard errors are smaller
    errors = HOPELESS / trials.share**0.5
    if trials.better(last.scores, best.scores, errors):
        return True
    before = trials.made[-2]
    change = float(trials.weights @ (last.scores - before.scores) / trials.weights.sum())
    least = _WORTH if last.rounds > 1 else _STILL * trials.warm
    return abs(change) < least
