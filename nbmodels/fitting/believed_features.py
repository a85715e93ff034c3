"""Whether a selection believes the features, and the fit without them where it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nbmodels.core.model import PRIOR, Model
from nbmodels.fitting.candidate_trials import CandidateTrials, class_shares
from nbmodels.fitting.cautions import (
    DISAGREEING_WITH_VOTES,
    UNINFORMATIVE_BESIDE_VOTES,
    UNINFORMATIVE_OF_SETS,
)
from nbmodels.fitting.informative import (
    AGREEMENT,
    INFORMATIVE,
    credible,
    uninformative,
    votes_agree,
)
from nbmodels.fitting.label_sources import VOTES
from nbmodels.fitting.labels_as_given import EVEN, as_given, of_votes
from nbmodels.fitting.scores import Settings
from nbmodels.fitting.trials import HOPELESS, Found, Trial


class Uninformative(Exception):
    """The features do not predict the labels of the rows that are judged."""


def is_believed(trials: CandidateTrials, grid: Mapping[str, Sequence[Any]], found: Found) -> bool:
    """Whether self-training may follow; where features are not believed, the fit is without them.

    Raises:
        Uninformative: they are not, and some rows are judged.
    """
    best = found.best
    informative = _informative(trials, best)
    if informative and _credible(trials, best):
        return True
    if trials.rows is not None:
        raise Uninformative
    if {"labels", VOTES}.isdisjoint(best.fit.model):
        # of sets: no label could stay as it is, and calibrated scores do no harm
        found.cautions = (UNINFORMATIVE_OF_SETS,)
        return True
    model, null = trials.without_scores(best.settings)
    null = null._replace(settings=_before_scaling(grid, best.settings))
    found.best = best._replace(settings=null.settings)
    floor = trials.plain_of(null.settings)
    found.plain = floor.calibration
    if VOTES in null.fit.model:  # which show the noise without any features
        labels = trials.source.labels(null.settings)
        fit = of_votes(null.fit, *labels, trials.options, trials.report)
        found.best = null._replace(fit=fit)
        found.cautions = (DISAGREEING_WITH_VOTES if informative else UNINFORMATIVE_BESIDE_VOTES,)
    else:
        found.plain_scores = floor.held_out
        _as_given(trials, model, null, found)
        found.noisy = EVEN
        found.cautions = (uninformative(trials.agreement(null.settings)),)
    return False


def _informative(trials: CandidateTrials, best: Trial) -> bool:
    """Whether labels are likelier with the features, or these predict them beyond chance.

    Where they are far likelier than by their shares, no fit without the features is needed.
    """
    if not set(best.fit.model) - {PRIOR, "labels"}:
        shares = np.log(class_shares(trials.weights @ trials.given))[trials.given.argmax(1)]
        if trials.better(shares, best.scores, HOPELESS):
            return True
    _, null = trials.without_scores(best.settings)
    likelier = trials.better(null.scores, best.scores, INFORMATIVE)
    return likelier or trials.agreement(best.settings).z > AGREEMENT


def _credible(trials: CandidateTrials, trial: Trial) -> bool:
    """Whether labels, or votes, agree enough with the classes found."""
    fit = trial.fit
    enough = credible(fit.model, np.asarray(fit.resp), trials.given, trials.weights)
    return enough and votes_as_without(trials, trial)


def votes_as_without(trials: CandidateTrials, trial: Trial) -> bool:
    """Whether votes, if there are any, agree with the classes about as without the features."""
    if VOTES not in trial.fit.model:
        return True
    _, null = trials.without_scores(trial.settings)
    return votes_agree(trial.fit.resp, null.fit.resp, trials.given, trials.weights)


def _as_given(trials: CandidateTrials, model: Model, null: Trial, found: Found) -> None:
    """Labels as given, how doubtful they are, and what draws of the noise's prior are of."""
    assert found.plain is not None
    model = {**model, **trials.source.labels(null.settings).model, PRIOR: model[PRIOR]}
    data = trials.candidate(null.settings).data
    shares = None
    if not trials.source.without_shares:
        shares = class_shares(trials.weights @ trials.given)
    about = model, data, null.data, found.plain, shares
    fit, ranked, drawn = as_given(*about, trials.options, report=trials.report)
    found.best, found.ranked, found.drawn = null._replace(fit=fit), ranked, drawn


def _before_scaling(grid: Mapping[str, Sequence[Any]], settings: Settings) -> Settings:
    """Settings as they were before scores were scaled, of scores that say nothing of the labels.

    The plain classifier predicts by its scores as they are: whatever a matrix makes of them is
    chance, and often one class for all.

    Args:
        grid: values of each setting that was selected, in the order of the selection.
        settings: those selected.
    """
    names = list(grid)
    if "scaling" not in names or settings["scaling"] == grid["scaling"][0]:
        return settings
    later = names[names.index("scaling") :]
    return {**settings, **{name: grid[name][0] for name in later}}
