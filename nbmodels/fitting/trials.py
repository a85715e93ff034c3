"""Candidates of a selection: their held-out scores, which is preferred, and what was selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jax import Array
from jaxtyping import Float, Int

from nbmodels.core.model import Data
from nbmodels.errors import Caution
from nbmodels.fitting.em import Fit
from nbmodels.fitting.holdout import Comparison, compare_scores
from nbmodels.fitting.scores import Settings

#: Standard errors by which held-out labels must be likelier under another candidate.
SIGNIFICANT = 1.0

#: Standard errors of labels less likely than under the best, from which on nothing makes up for it.
HOPELESS = 4.0


class Trial(NamedTuple):
    """A candidate with its held-out score.

    Attributes:
        settings: value by setting.
        rounds: self-training rounds before it.
        scores: ``(N,)`` log-probability of each item's labels, by a fit that did not see them; NaN
            where there was none.
        identified: whether every class kept its name and its items.
        fit: of all labels.
        data: what that fit is of.
    """

    settings: Settings
    rounds: int
    scores: np.ndarray
    identified: bool
    fit: Fit
    data: Data


@dataclass(frozen=True)
class Selection:
    """Result of :func:`nbmodels.fitting.selection.select`.

    Attributes:
        fit: fit of the selected candidate.
        data: what it is of: labels with the scores as the class prior's data.
        settings: those selected.
        rounds: self-training rounds.
        responsibilities: ``(N, K)`` what the scores were learned from.
        table: data frame of the candidates; None where there was nothing to select.
        scores: ``(N,)`` log-probability of each item's labels by a fit that did not see them; NaN
            where there was none.
        plain: ``(1 + K,)`` calibration by which new items are predicted, that of the plain
            classifier; None where it is the fit's own.
        plain_scores: ``(N,)`` log-probability of each item's label under the plain classifier, by a
            fit that did not see it, or None.
        noisy: posterior probability that labels are noisy, see
            :func:`nbmodels.fitting.plain.pseudo_bma`; 1 where nothing was compared.
        drawn: fit and data that posterior draws are of, where it is not this one.
        ranked: ``(N, K)`` P(true class) by the plain classifier, where the fit does not use the
            features, or None.
        interrupted: whether Ctrl-C ended the selection.
        cautions: warnings.
        other_forms: fits to the same data, by form of the noise matrix, where it was selected.
    """

    fit: Fit
    data: Data
    settings: Settings
    rounds: int
    responsibilities: Array
    table: pd.DataFrame | None
    scores: Float[np.ndarray, " n"]
    plain: Float[np.ndarray, " k1"] | None
    plain_scores: Float[np.ndarray, " n"] | None
    noisy: float
    drawn: tuple[Fit, Data] | None
    ranked: Float[np.ndarray, "n k"] | None
    interrupted: bool
    cautions: tuple[Caution, ...]
    other_forms: Mapping[str, Fit] = field(default_factory=dict)


@dataclass
class Found:
    """What is selected until now, which is what Ctrl-C leaves.

    Attributes:
        best: the trial preferred.
        responsibilities, plain, plain_scores, noisy, drawn, ranked, cautions: of
            :class:`Selection`; scores are of the judged rows.
    """

    best: Trial
    responsibilities: Array
    plain: Float[np.ndarray, " k1"] | None = None
    plain_scores: Float[np.ndarray, " n"] | None = None
    noisy: float = 1.0
    drawn: tuple[Fit, Data] | None = None
    ranked: Float[np.ndarray, "n k"] | None = None
    cautions: tuple[Caution, ...] = ()


def anything_open(grid: Mapping[str, Sequence[Any]], rounds: int | None) -> bool:
    """Whether there is anything to select; held-out labels may still be scored for the floor."""
    return rounds is None or any(len(values) > 1 for values in grid.values())


def compared(
    trials: Sequence[Trial],
    weights: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"] | None = None,
) -> Comparison:
    """Trials beside the first one."""
    scores, identified = [t.scores for t in trials], [t.identified for t in trials]
    return compare_scores(scores, identified, weights, SIGNIFICANT, groups)


def preferred(
    trials: Sequence[Trial],
    weights: Float[np.ndarray, " n"],
    groups: Int[np.ndarray, " n"] | None = None,
) -> Trial:
    """The first trial, unless its classes are not identified or another is clearly better."""
    named = [t for t in trials if t.identified]
    if named and not trials[0].identified:
        return max(named, key=lambda t: t.scores @ weights)
    return trials[compared(trials, weights, groups).best]


def choice_table(settings: Sequence[Settings], found: Comparison, chosen: Settings) -> pd.DataFrame:
    """What was compared as a data frame, a row a candidate.

    Args:
        settings: of the candidates.
        found: the comparison.
        chosen: settings that were selected.

    Returns:
        Frame with a column for each setting, ``log_likelihood`` (mean log-probability of a held-out
        label), ``gain`` over the first candidate with its ``standard_error``, ``identified``
        (whether all classes kept their names and items), and ``chosen``.
    """
    return pd.DataFrame([dict(one) for one in settings]).assign(
        log_likelihood=found.log_likelihood,
        gain=found.gain,
        standard_error=found.standard_error,
        identified=found.identified,
        chosen=[one == chosen for one in settings],
    )
