"""Checks of several annotators' votes: are they independent given the class, and tied to it?"""

from __future__ import annotations

import numpy as np

from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always, percent
from nbmodels.fitting.annotator_fits import ALIKE
from nbmodels.fitting.vote_dependence import VoteDependence
from nbmodels.fitting.vote_shares import LEAST_SHOWN


def _independence(at: VoteDependence, threshold: float) -> Measurement | None:
    """Correlation that held-out votes show, beyond the one that is reckoned with."""
    if np.isnan(at.visible):
        return None
    bad = at.visible - at.correlation > threshold
    notable = bool(bad or at.visible > threshold)
    return Measurement(at.visible, bool(bad), notable, accounted=notable and not bad)


def _independence_sentence(at: VoteDependence, found: Measurement) -> str:
    shown = (
        f"votes on a task are not independent given its class: held-out votes show a correlation "
        f"of {at.visible:.2f}"
    )
    if found.bad:
        return f"{shown}, and probabilities are far too sure"
    return (
        f"{shown}, and {at.correlation:.2f} is reckoned with: {at.votes:.1f} votes count as "
        f"{at.effective:.1f}"
    )


def _unsupported(at: VoteDependence, threshold: float) -> Measurement | None:
    if np.isnan(at.unsupported):
        return None
    bad = at.unsupported > threshold
    return Measurement(at.unsupported, bad, at.unsupported > 0)


def _has(at: VoteDependence, remedy: str) -> bool:
    """Whether a remedy is taken already, or none where votes do not show accuracies."""
    by_pooling = {remedies.OWN_POOLING: ("own", ALIKE), remedies.AUTO_POOLING: (ALIKE,)}
    return at.pooling in by_pooling.get(remedy, ())


def _copying(at: VoteDependence, threshold: float) -> Measurement | None:
    bad, some = at.copying >= threshold, at.copying > 0
    return Measurement(at.copying, bad, some, accounted=some and not bad)


def _accuracies(at: VoteDependence, threshold: float) -> Measurement | None:
    """Share of the votes by annotators who hardly vote beside others."""
    hidden = 1 - at.shown
    return Measurement(hidden, hidden > threshold, hidden > threshold)


def _accuracies_sentence(at: VoteDependence, found: Measurement) -> str:
    shown = (
        f"{percent(found.effect)} of the votes are by annotators who hardly vote beside others: "
        "votes do not show how often each of them is right"
    )
    return f"{shown}, and all are taken to be alike" if at.pooling == ALIKE else shown


CHECKS: tuple[Check[VoteDependence], ...] = (
    Check(
        "independent votes",
        "Are votes on a task independent given its class?",
        _independence,
        0.1,
        _independence_sentence,
        always(remedies.DEPENDENCE),
        "held-out votes do not show that votes on a task depend on each other given its class",
    ),
    Check(
        "own votes",
        "Do the annotators vote for themselves?",
        _copying,
        0.5,
        lambda _, found: (
            f"{percent(found.effect)} of the annotators copy from each other, and their votes "
            "count for less; worker_report() names them"
        ),
        always(remedies.TRUSTED),
        "no annotators were found who copy from each other",
    ),
    Check(
        "supported classes",
        "Does somebody vote for the class that a task is given?",
        _unsupported,
        0.05,
        lambda _, found: (
            f"{percent(found.effect)} of the tasks are given a class for which nobody voted: a "
            "class may have become the one of disputed tasks"
        ),
        lambda at: tuple(
            one for one in (remedies.OWN_POOLING, remedies.TRUSTED) if not _has(at, one)
        ),
        "every task is given a class for which somebody voted",
    ),
    Check(
        "accuracies",
        "Do votes show how often each annotator is right?",
        _accuracies,
        1 - LEAST_SHOWN,
        _accuracies_sentence,
        lambda at: tuple(
            one
            for one in (remedies.MORE_VOTES, remedies.TRUSTED, remedies.AUTO_POOLING)
            if not _has(at, one)
        ),
        "annotators vote beside others often enough for their accuracies to be seen",
    ),
)
