"""Label errors that are the oftener, the less (or the more) is known of an item.

One noise matrix for all items takes those of which little is known, items of few users or texts of
few words, for overlapping classes, where their labels are wrong more often than those of well-known
items: neither the share of wrong labels nor the calibration of the scores is then right. The
evidence of users and of words adds up, so that one calibration holds for items of any size, and
identifies how often the labels of each are wrong. Items of three groups by size have error rates of
their own here, the matrix keeping its form. They are taken where labels are surely likelier than
under one rate (a likelihood ratio test), and likelier than under a slope of the scores in each
group, which large items would have instead whose evidence repeats itself.

The rates enter a model as evidence of each item beside its mean noise matrix, as that stands: every
form of the noise is then learned, and drawn, as without them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import chi2

from nbmodels.core.model import Data
from nbmodels.errors import Caution, IdentifiabilityWarning
from nbmodels.fitting.known_noise import Calibrated, calibrated
from nbmodels.fitting.label_sources import LabelSource, evidence_source

#: Name of the channel that says how much likelier a label is wrong than another.
ERRORS = "errors_by_size"

#: Groups of items, and least labels of each: rates of fewer are large by chance, and do harm.
_GROUPS, _LEAST = 3, 100

#: Cells of a table of items and classes up to which all items are looked at; of more, so many that
#: are evenly spaced.
_MOST_CELLS = 100_000

#: Steps of EM, and the change of a rate at which they end.
_STEPS, _SETTLED = 60, 1e-3

#: Level of the test for several rates.
_LEVEL = 0.01

#: Nats by which labels must be likelier under rates of errors than under slopes of the scores.
_LIKELIER = 1.0

#: Turns of slopes and error rate.
_TURNS = 5

#: A share of wrong labels is kept within these bounds.
_LEAST_SHARE, _MOST_SHARE = 1e-3, 0.9

#: Standard deviations of the logarithm of the slope and of the biases beforehand, and of biases
#: that are known.
_SLOPE_SD, _BIAS_SD, _KNOWN_SD = 1.0, 2.0, 1e-3

_TINY = np.finfo(float).tiny


class ErrorRate(NamedTuple):
    """How often labels of a group of items are wrong.

    Attributes:
        fewest, most: sizes of its items.
        labels: number of labels.
        wrong: estimated share of them that is wrong.
    """

    fewest: int
    most: int
    labels: int
    wrong: float

    @property
    def sizes(self) -> str:
        """Sizes in words."""
        return str(self.fewest) if self.fewest == self.most else f"{self.fewest} to {self.most}"


class ErrorRates(NamedTuple):
    """How often labels are wrong by the sizes of their rows.

    Attributes:
        groups: by rising size.
        rows: name of what is labelled, such as items.
        units: name of what sizes are of, such as users.
    """

    groups: tuple[ErrorRate, ...]
    rows: str
    units: str

    def table(self) -> pd.DataFrame:
        """A row a group: sizes in words, labels, and the share of them that is wrong."""
        rows = [{self.units: g.sizes, "labels": g.labels, "wrong": g.wrong} for g in self.groups]
        return pd.DataFrame(rows)

    def finding(self) -> Caution:
        """What a verdict states of them."""
        wrong = [one.wrong for one in self.groups]
        parts = [
            f"{one.wrong:.0%} of those of {self.rows} with {one.sizes} {self.units}"
            for one in self.groups
        ]
        if wrong in (sorted(wrong), sorted(wrong, reverse=True)):
            oftener = "more" if wrong[0] < wrong[-1] else "fewer"
            how = f"labels are wrong the more often, the {oftener}"
        else:
            how = "how often labels are wrong depends on how many"
        each = f"{', '.join(parts[:-1])} and {parts[-1]}"
        sentence = (
            f"{how} {self.units} their {self.rows} have: an estimated {each}; the noise matrix is "
            "the mean over all"
        )
        return Caution(IdentifiabilityWarning, sentence, "errors by size")


@dataclass(frozen=True)
class ErrorsBySize:
    """How often labels are wrong by the sizes of their items.

    Attributes:
        group: ``(N,)`` group of each item, by rising size.
        relative: ``(G,)`` error rate of each group beside that of all labels.
        codes: ``(N,)`` given labels, negative where there is none.
        matrix: ``(K, K)`` ``[true, observed]`` mean noise matrix.
    """

    group: Int[np.ndarray, " n"]
    relative: Float[np.ndarray, " g"]
    codes: Int[np.ndarray, " n"]
    matrix: Float[np.ndarray, "k k"]

    def source(self) -> LabelSource:
        """:meth:`evidence` under the mean matrix, as a label channel."""
        return evidence_source(self.evidence(self.matrix))

    def in_data(self, data: Data, matrix: Float[np.ndarray, "k k"]) -> Data:
        """Encoded data with :meth:`evidence` under another mean matrix."""
        part = replace(self, matrix=matrix).source().padded(len(data.weights))
        return replace(data, parts={**data.parts, ERRORS: part})

    def evidence(self, matrix: Float[np.ndarray, "k k"]) -> Float[np.ndarray, "n k"]:
        """``(N, K)`` log-likelihood of the labels beside that under the mean matrix.

        Args:
            matrix: ``[true, observed]`` mean noise matrix.
        """
        return log_rates(self.codes, matrix, self.relative[self.group]) - log_rates(
            self.codes, matrix, np.ones(len(self.codes))
        )


def rates_by_size(
    errors: ErrorsBySize,
    size: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    wrong: Float[np.ndarray, " g"],
    rows: str,
    units: str,
) -> ErrorRates:
    """Estimated error rates of the groups.

    Args:
        errors: groups and labels.
        size: ``(N,)`` size of each item.
        weights: ``(N,)`` row weights.
        wrong: share of wrong labels of each group.
        rows: name of what is labelled, such as items.
        units: name of what sizes are of, such as users.
    """
    out = []
    for g, share in enumerate(wrong):
        here = (errors.group == g) & (errors.codes >= 0) & (weights > 0)
        bounds = int(size[here].min()), int(size[here].max())
        out.append(ErrorRate(*bounds, int(np.count_nonzero(here)), float(share)))
    return ErrorRates(tuple(out), rows, units)


def relative_rates(
    data: Data, codes: Int[np.ndarray, " n"], rows: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " n"] | None:
    """Error rates of labels beside that of all, read from encoded data; None where all are alike.

    Args:
        data: encoded.
        codes: given labels of the rows, negative where there is none.
        rows: sought.
    """
    part = data.parts.get(ERRORS)
    if part is None:
        return None
    table = np.asarray(part, float)[rows]
    # the evidence against all classes but the label's is the logarithm of its rate
    other = np.where(codes == 0, 1, 0)
    return np.exp(table[np.arange(len(rows)), other])


class _Labels(NamedTuple):
    """Labels beside the scores of their items.

    Attributes:
        scores: ``(n, K)`` log-probabilities of the classes.
        codes: ``(n,)`` given labels.
        weights: ``(n,)`` row weights.
        matrix: ``(K, K)`` ``[true, observed]`` noise matrix.
        group: ``(n,)`` group of each item.
    """

    scores: Float[np.ndarray, "n k"]
    codes: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    matrix: Float[np.ndarray, "k k"]
    group: Int[np.ndarray, " n"]


class _Found(NamedTuple):
    """A model of the labels.

    Attributes:
        log_likelihood: of all labels.
        multiple: ``(G,)`` of the matrix's error rates for the labels of each group.
    """

    log_likelihood: float
    multiple: Float[np.ndarray, " g"]


def errors_by_size(
    scores: Float[np.ndarray, "n k"],
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    matrix: Float[np.ndarray, "k k"],
    size: Int[np.ndarray, " n"],
) -> ErrorsBySize | None:
    """Error rates by size; None where labels do not surely have them.

    Args:
        scores: log-probabilities of the classes that have not seen an item's own label.
        codes: given labels, negative where there is none.
        weights: row weights.
        matrix: ``[true, observed]`` noise matrix of all labels.
        size: of each item, such as its number of users.
    """
    group = _groups(size, (codes >= 0) & (weights > 0))
    if group is None:
        return None
    rows = np.flatnonzero((codes >= 0) & (weights > 0))
    most = max(_MOST_CELLS // len(matrix), 1)
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(int)]
    labels = _Labels(scores[rows], codes[rows], weights[rows], matrix, group[rows])
    common = _fitted(labels, np.zeros(len(rows), int))
    rates = _fitted(labels, labels.group)
    gain = rates.log_likelihood - common.log_likelihood
    if chi2.sf(2 * gain, int(group.max())) > _LEVEL:
        return None
    slopes = _with_slopes(labels, common)
    if rates.log_likelihood - slopes <= _LIKELIER:
        return None
    mean = float(np.average(rates.multiple[labels.group], weights=labels.weights))
    k = len(matrix)
    return ErrorsBySize(
        group, rates.multiple / mean, codes, np.eye(k) + mean * (matrix - np.eye(k))
    )


def _groups(size: Int[np.ndarray, " n"], labelled: np.ndarray) -> Int[np.ndarray, " n"] | None:
    """Small, middle and large items, or small and large ones; None of few labels.

    They are as alike in number as ties allow.
    """
    if not labelled.any():
        return None
    for n_groups in (_GROUPS, 2):
        shares = np.arange(1, n_groups) / n_groups
        bounds = np.unique(np.quantile(size[labelled], shares, method="lower"))
        group = np.searchsorted(bounds, size, side="left")
        count = np.bincount(group[labelled], minlength=len(bounds) + 1)
        if count.min() >= _LEAST:
            return group
    return None


def log_rates(
    codes: Int[np.ndarray, " n"], matrix: Float[np.ndarray, "k k"], rate: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n k"]:
    """``(N, K)`` log-likelihood of labels whose error rates are multiples of those of a matrix.

    Args:
        codes: given labels, negative where there is none, and the row is of zeros.
        matrix: ``[true, observed]`` noise matrix.
        rate: multiple of its error rates for each item.
    """
    k = len(matrix)
    wrong = matrix * (1 - np.eye(k))
    own = rate[:, None] * wrong[:, np.maximum(codes, 0)].T
    all_wrong = wrong.sum(1)
    right = 1 - np.minimum(rate[:, None] * all_wrong, np.maximum(all_wrong, _MOST_SHARE))
    table = np.where(np.arange(k) == codes[:, None], right, own)
    return np.where(codes[:, None] < 0, 0.0, np.log(np.maximum(table, _TINY)))


def _fitted(labels: _Labels, rate: Int[np.ndarray, " n"]) -> _Found:
    """Error rates that are the same for items of one number in ``rate``, and one calibration."""
    scores, codes, weights, matrix, group = labels
    n_rates = int(rate.max()) + 1
    multiple, at = np.ones(n_rates), np.zeros(1 + len(matrix))
    expected = 1 - np.diag(matrix)
    for _ in range(_STEPS):
        found = _calibrated(scores, log_rates(codes, matrix, multiple[rate]), weights, at)
        at, wrong = found.at, weights * (1 - found.probs[np.arange(len(codes)), codes])
        sought = np.bincount(rate, wrong, n_rates)
        before = np.bincount(rate, weights * (found.probs @ expected), n_rates)
        update = np.maximum(sought, _LEAST_SHARE) / np.maximum(before, _LEAST_SHARE)
        settled = np.abs(update - multiple).max() < _SETTLED
        multiple = update
        if settled:
            break
    of_group = np.zeros(int(group.max()) + 1, int)
    of_group[group] = rate
    return _Found(float(weights @ found.evidence), multiple[of_group])


def _with_slopes(labels: _Labels, common: _Found) -> float:
    """Log-likelihood of the labels where all have one error rate, and each group a slope."""
    steep, best = labels.scores.copy(), common
    for _ in range(_TURNS):
        table = log_rates(labels.codes, labels.matrix, best.multiple[labels.group])
        shared = _calibrated(steep, table, labels.weights, np.zeros(1 + len(labels.matrix)))
        for g in range(int(labels.group.max()) + 1):
            rows = labels.group == g
            about = steep[rows], table[rows], labels.weights[rows], shared.at
            steep[rows] *= np.exp(_calibrated(*about, shared.at[1:]).at[0] - shared.at[0])
        found = _fitted(labels._replace(scores=steep), np.zeros(len(labels.codes), int))
        best = max(best, found, key=lambda one: one.log_likelihood)
    return best.log_likelihood


def _calibrated(
    scores: Float[np.ndarray, "n k"],
    table: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
    start: Float[np.ndarray, " p"],
    biases: Float[np.ndarray, " k"] | None = None,
) -> Calibrated:
    """Calibration of scores to labels; ``biases`` where they are known."""
    k = scores.shape[1]
    sd = np.full(k, _BIAS_SD if biases is None else _KNOWN_SD)
    mean = np.concatenate([[0.0], np.zeros(k) if biases is None else biases])
    precision = np.diag(np.concatenate([[_SLOPE_SD], sd]) ** -2.0)
    return calibrated(scores, table, weights, (mean, precision), start)
