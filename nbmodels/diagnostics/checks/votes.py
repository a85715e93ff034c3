"""Checks of several annotators' votes: are they independent given the class, and tied to it?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import Check, Measurement, always, percent
from nbmodels.fitting.annotator_fits import ALIKE
from nbmodels.fitting.copied_votes import MOST_UNEVEN
from nbmodels.fitting.vote_agreement import LEAST_AGREEMENT
from nbmodels.fitting.vote_dependence import VoteDependence
from nbmodels.fitting.vote_shares import LEAST_SHOWN

#: Part of the share that counts of votes suggest below which a class has lost its tasks. Of one
#: that is rarer than counts say, since some annotators always name it, half is left.
_LEAST_KEPT = 0.2


def _independence(at: VoteDependence, threshold: float) -> Measurement | None:
    """Correlation that votes show, beyond the one that is reckoned with."""
    if np.isnan(at.visible):
        return None
    bad = at.visible - at.correlation > threshold
    notable = bool(bad or at.visible > threshold)
    return Measurement(at.visible, bool(bad), notable, accounted=notable and not bad)


def _independence_sentence(at: VoteDependence, found: Measurement) -> str:
    shown = (
        f"votes on a task are not independent given its class: they show a correlation "
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


def _by_class(at: VoteDependence, threshold: float) -> Measurement | None:
    """How many times more votes tasks of one class have than those of another."""
    if np.isnan(at.by_class):
        return None
    return Measurement(at.by_class, at.by_class > threshold, at.by_class > threshold)


def _kept(at: VoteDependence, threshold: float) -> Measurement | None:
    if np.isnan(at.kept):
        return None
    return Measurement(at.kept, at.kept < threshold, at.kept < threshold)


def _left(*found: str) -> Callable[[VoteDependence], tuple[str, ...]]:
    """Remedies without those that are taken already, or are none where accuracies are not shown."""
    settled = {remedies.OWN_POOLING: ("own", ALIKE), remedies.AUTO_POOLING: (ALIKE,)}
    return lambda at: tuple(one for one in found if at.pooling not in settled.get(one, ()))


def _copying(at: VoteDependence, threshold: float) -> Measurement | None:
    bad, some = at.alone and at.copying >= threshold, at.copying > 0
    return Measurement(at.copying, bad, some, accounted=some and not bad)


def _groups(at: VoteDependence, threshold: float) -> Measurement | None:
    if np.isnan(at.uneven):
        return None
    return Measurement(at.uneven, at.uneven > threshold, at.uneven > threshold)


def _groups_sentence(at: VoteDependence, found: Measurement) -> str:
    shown = (
        f"pairs of annotators agree {found.effect:.1f} times as unevenly as independent votes "
        "would: some vote as a group, and votes do not show whose side is right"
    )
    return f"{shown}; all are taken to be alike" if at.pooling == ALIKE else shown


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


def _agreement(at: VoteDependence, threshold: float) -> Measurement | None:
    """Standard errors by which votes on a task agree more often than by chance."""
    if np.isnan(at.agreement) or not at.alone:
        return None
    bad = at.agreement < threshold
    return Measurement(at.agreement, bad, bad)


def _chance_sentence(at: VoteDependence, found: Measurement) -> str:
    sentence = (
        "votes on a task agree no more often than by chance: they do not show the classes, nor how "
        "often an annotator is right"
    )
    return f"{sentence}, and all are taken to be alike" if at.pooling == ALIKE else sentence


CHECKS: tuple[Check[VoteDependence], ...] = (
    Check(
        "agreement of votes",
        "Do votes on a task agree more often than by chance?",
        _agreement,
        LEAST_AGREEMENT,
        _chance_sentence,
        always(remedies.TRUSTED),
        "votes on a task agree more often than by chance",
    ),
    Check(
        "independent votes",
        "Are votes on a task independent given its class?",
        _independence,
        0.1,
        _independence_sentence,
        always(remedies.DEPENDENCE),
        "votes on a task do not show that they depend on each other given its class",
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
        "groups",
        "Do pairs of annotators agree as evenly as independent votes would?",
        _groups,
        MOST_UNEVEN,
        _groups_sentence,
        _left(remedies.TRUSTED, remedies.AUTO_POOLING),
        "pairs of annotators agree about as evenly as independent votes would",
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
        _left(remedies.OWN_POOLING, remedies.TRUSTED),
        "every task is given a class for which somebody voted",
    ),
    Check(
        "classes kept",
        "Does each class keep the tasks that votes suggest?",
        _kept,
        _LEAST_KEPT,
        lambda _, found: (
            f"a class has {percent(found.effect)} of the tasks that counts of votes suggest at "
            "least: another one may have taken them"
        ),
        always(remedies.TRUSTED),
        "no class lost its tasks to another",
    ),
    Check(
        "accuracies",
        "Do votes show how often each annotator is right?",
        _accuracies,
        1 - LEAST_SHOWN,
        _accuracies_sentence,
        _left(remedies.MORE_VOTES, remedies.TRUSTED, remedies.AUTO_POOLING),
        "annotators vote beside others often enough for their accuracies to be seen",
    ),
    Check(
        "votes by class",
        "Does the number of votes on a task depend on its class?",
        _by_class,
        1.5,
        lambda _, found: (
            f"tasks of one class have {found.effect:.1f} times as many votes as those of another: "
            "who votes on which task depends on its class, and the estimated shares of the "
            "classes can be far off"
        ),
        always(remedies.EVEN_VOTES, remedies.TRUSTED),
        "tasks of all classes have about as many votes",
    ),
)
