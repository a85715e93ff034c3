"""Select hyperparameters of a noise model by the likelihood of held-out noisy labels.

Scores state what a model of the features makes of each item without the item's own label. How far
they count and the noise are fitted together. A label is likely under the right scores, the right
form of the noise and the right smoothing: so labels held out of that fit select among settings
without a true label. They also decide for how many self-training rounds the scores are learned anew
(:mod:`nbmodels.fitting.self_training`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from inference import Status
from inference.arrays import on_device
from nbmodels.core.model import PRIOR, Model
from nbmodels.fitting.believed_features import Uninformative, is_believed
from nbmodels.fitting.candidate_fits import CandidateFits
from nbmodels.fitting.candidate_trials import CandidateTrials
from nbmodels.fitting.cautions import INTERRUPTED, INTERRUPTED_ROUNDS, PLAIN
from nbmodels.fitting.checked_rows import contradicted
from nbmodels.fitting.judged_rows import JUDGED, LEARNED, judged_rows
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.plain import pseudo_bma
from nbmodels.fitting.scores import ScoredLabels, Settings, cautious
from nbmodels.fitting.self_training import NestedRounds
from nbmodels.fitting.training_rounds import self_trained
from nbmodels.fitting.trials import SIGNIFICANT, Found, Selection, Trial, anything_open

#: Largest number of self-training rounds that are tried where their number is selected.
_MOST_ROUNDS = 10


def select(
    source: ScoredLabels,
    resp: Float[Array, "n k"],
    fold: Int[np.ndarray, " n"],
    *,
    options: FitOptions,
    grid: Mapping[str, Sequence[Any]],
    rounds: int | None = 0,
    hold_out: bool = False,
    second_start: bool = False,
    log_slope_sd: float = 1.0,
    start: Any = None,
    priors: Model | None = None,
    warm: bool = False,
    copies: Int[np.ndarray, " m"] | None = None,
    nested: NestedRounds | None = None,
) -> Selection:
    """Fit label channels and the calibration of the scores, with open settings selected.

    Settings are selected one after the other, in the grid's order, the others as they are then; the
    self-training rounds come last. After Ctrl-C the best of what was tried until then is taken.

    Args:
        source: labels and scores under given settings.
        resp: responsibilities that the scores are learned from first.
        fold: fold of each item, the same that kept an item's label from its scores.
        options: of the fits.
        grid: values of each setting that is to be selected, the cautious one first.
        rounds: how often scores are learned anew from the responsibilities found. None: as long as
            held-out labels become likelier, now or two rounds later.
        hold_out: score held-out labels also where nothing is open, so that the fit is compared
            with the plain classifier and with none.
        second_start: begin also where the scores' likeliest classes are the true ones. Scores that
            were learned from noisy labels contain the noise: begun at the labels, a fit may find
            none besides. It is taken where it is better by a nat or more.
        log_slope_sd: see :func:`nbmodels.fitting.scores.with_score_prior`.
        start: parameters from which each fit begins, such as those of a part of the items; the
            labels by default.
        priors: components that are learned from, such as those of a part of the items, in the place
            of the labels' own where a prior is learned.
        warm: begin each fit at the last one of all labels, as its neighbour.
        copies: group of each row before padding, or of more of them, for standard errors; None
            where rows are independent.
        nested: self-training rounds of these scores, some of whose first round may have been taken;
            new ones by default.
    """
    choosing = hold_out or anything_open(grid, rounds)
    total = 1 + sum(len(values) - 1 for values in grid.values())
    with (
        options.progress.iterations() as report,
        options.progress.bar("choosing settings", total) as bar,
    ):

        def new() -> CandidateTrials:
            fits = CandidateFits(
                options,
                report,
                second_start,
                warm,
                resp.shape[1],
                jax.tree.map(on_device, dict(priors or {})),
                None if start is None else jax.tree.map(on_device, start),
            )
            return CandidateTrials(source, resp, fold, fits, choosing, log_slope_sd, bar, copies)

        trials = new()
        if not (warm and (choosing or rounds)):
            return _selected(trials, grid, rounds, nested)
        labels = source.labels(cautious(grid))
        size = JUDGED if choosing else LEARNED
        trials.judge(judged_rows(labels.model, labels.data, np.asarray(resp), size))
        try:
            return _selected(trials, grid, rounds, nested)
        except Uninformative:  # labels stay as they are given, all of them
            return _selected(new(), grid, rounds, nested)


def _selected(
    trials: CandidateTrials,
    grid: Mapping[str, Sequence[Any]],
    rounds: int | None,
    nested: NestedRounds | None,
) -> Selection:
    """See :func:`select`.

    Raises:
        Uninformative: some rows are judged, and features do not predict their labels.
    """
    interrupted, most = False, _MOST_ROUNDS if rounds is None else rounds
    begun = trials.fits.start
    first = trials.begin(cautious(grid), trials.tentative if most else None)
    found = Found(first, trials.resp)
    try:
        if trials.stopped:
            raise KeyboardInterrupt
        _over_grid(trials, grid, found, begun)
        if not trials.choosing or is_believed(trials, grid, found):
            self_trained(trials, found, rounds, most, nested)
        if trials.choosing:
            _beside_plain(trials, found, grid.get("scaling", ()))
        found.best = trials.of_all(found.best)
    except KeyboardInterrupt:
        interrupted = True
        found.best = trials.of_all(found.best, fit=False)
        if trials.choosing:
            found.cautions = (*found.cautions, INTERRUPTED)
        elif found.best.fit.status != Status.INTERRUPTED:  # the fit has no warning of its own
            found.cautions = (*found.cautions, INTERRUPTED_ROUNDS)
    best, scores = found.best, found.plain_scores
    return Selection(
        best.fit,
        best.data,
        best.settings,
        best.rounds,
        found.responsibilities,
        trials.table(best),
        trials.of_all_rows(best.scores),
        found.plain,
        None if scores is None else trials.of_all_rows(scores),
        found.noisy,
        found.drawn,
        found.ranked,
        interrupted,
        found.cautions,
        trials.other_forms(best),
    )


def _over_grid(
    trials: CandidateTrials, grid: Mapping[str, Sequence[Any]], found: Found, begun: Any
) -> None:
    """Select the open settings one after the other; fits begin at ``begun``, or the labels."""
    for name, values in grid.items():
        others = [{**found.best.settings, name: value} for value in values[1:]]
        if name == "noise" and others:  # the same scores: a neighbour's solution
            trials.fits.go_on_from(found.best.fit)
        tried = [trials.tried(one, 0, trials.candidate(one)) for one in others]
        if not trials.warm:
            trials.fits.start = begun
        found.best = trials.preferred([found.best, *tried])


def _beside_plain(trials: CandidateTrials, found: Found, scalings: Sequence[Any]) -> None:
    """Compare a fit to given labels with a classifier that takes them as right."""
    best = found.best
    channels = set(best.fit.model) - {PRIOR, "trusted"}
    if found.drawn is None and channels == {"labels"}:
        floor = trials.plain_of(best.settings)
        found.plain_scores = floor.held_out
        # a checked label that differs from the given one leaves nothing to compare
        if not contradicted(best.fit.model, best.data, trials.given.shape[1]):
            found.noisy = _noisy(trials, best, scalings)
            if trials.better(best.scores, floor.held_out, SIGNIFICANT):
                found.plain, found.cautions = floor.calibration, (PLAIN,)
        found.best = trials.relearned(best)


def _noisy(trials: CandidateTrials, trial: Trial, scalings: Sequence[Any]) -> float:
    """Probability that labels are noisy, against the plain classifier.

    Args:
        trials: those of the selection.
        trial: the fit.
        scalings: ways to calibrate scores, where they were compared. Where one temperature fits
            badly, a noise matrix would fit better though no label is wrong: so the probability
            is against the likeliest of them.
    """
    ways: list[Settings] = [{**trial.settings, "scaling": one} for one in scalings]
    scores = [trials.plain_of(one).held_out for one in ways or [trial.settings]]
    plain = max(scores, key=lambda p: trials.weights @ p)
    return pseudo_bma(trial.scores, plain, trials.share * trials.weights, trials.groups)
