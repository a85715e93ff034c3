"""A verdict on a fit: what its assumptions leave unexplained, in words and as data.

A model of features given classes is believed where it should not be: when its assumptions fail, EM
leaves the given labels behind and clusters the features, and the posteriors sit near zero and one.
Here a fit is held against its own data, on the host and without another fit:

- do features and given labels tell one story? A plain classifier that has not seen an item's label
  agrees with it as often as the fit says, or the fit has left the labels;
- are the posteriors calibrated? The score of a power of the evidence, at the power 1;
- are columns independent given the class, their tails normal, words not repeated?
- does a feature say more about the label than the true class does?
- did classes dissolve, did random starts find something else?

A finding is bad if it is significant and large enough to matter: half a million rows do not make a
trifle bad. A finding about an assumption is for information only where the fit discounts the
features' evidence anyway (``weight`` other than 1, ``feedback="cut"``).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from nbmodels.core.model import PRIOR, Data, with_role
from nbmodels.core.residuals import Residuals
from nbmodels.core.roles import Emission, LabelChannel
from nbmodels.diagnostics.reference_classifier import unseen_word
from nbmodels.diagnostics.score_tests import (
    LEVEL,
    Largest,
    OfColumns,
    Scores,
    largest,
    of_columns,
    summed,
)
from nbmodels.errors import VerdictWarning
from nbmodels.fitting.em import Fit
from nbmodels.fitting.identifiability import vanished

#: Effects below these are trifles, however sure: a correlation of two columns within a class, ...
CORRELATION = 0.2
#: ... the mean size of a residual against a normal one's, ...
TAILS = 0.05
#: ... the share above the mean, less that below, ...
SKEW = 0.15
#: ... the variance of a word's count against that of independent words, less one, ...
REPEATED = 0.2
#: ... a correlation of a label with a column, the true class given, ...
DEPENDENT = 0.15
#: ... a gap between agreements with a plain classifier, ...
AGREEMENT = 0.05
#: ... between a predicted label's probability and its frequency, ...
CALIBRATION = 0.1
#: ... the power of the evidence that would suit the labels, less one, ...
OVERCONFIDENCE = 0.3
#: ... and nats a row by which a random start is better than that from the labels.
RESTARTS = 0.01

#: Residuals that are held at once, and columns and rows that are looked at.
_CELLS, _COLUMNS, _MOST_ROWS, _LEAST_ROWS = 4_000_000, 32, 20_000, 2_000

#: Logarithm of the least probability that is told from zero.
_LEAST = -60.0

_BINS = 5

#: Digits of predicted probabilities.
_DIGITS = 4

#: Bad findings and remedies that are spelt out in one sentence.
_SAID = 3

#: What may help, in the parameters' own words.
_CUT, _LIGHTER = 'feedback="cut"', "a smaller weight"


@dataclass(frozen=True)
class Finding:
    """One answer.

    Attributes:
        name: a word for it.
        question: what was asked.
        statistic: of a test, standard normal where the model is right; NaN where there is no test.
        p_value: of the statistic, corrected for the number of tests of its kind; NaN without one.
        effect: how far the model is off, in a unit that the sentence names.
        threshold: smallest effect that matters.
        bad: whether it speaks against using the fit as it is.
        sentence: the answer in words.
        remedies: what may help; empty where nothing has to.
    """

    name: str
    question: str
    statistic: float
    p_value: float
    effect: float
    threshold: float
    bad: bool
    sentence: str
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What the findings come to.

    Attributes:
        findings: in the order of their weight for the labels.
    """

    findings: tuple[Finding, ...]

    @property
    def bad(self) -> tuple[Finding, ...]:
        """Findings that speak against the fit."""
        return tuple(f for f in self.findings if f.bad)

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the fit."""
        return not self.bad

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if not self.findings:
            return "Nothing could be looked at."
        if self.ok:
            asked = ", ".join(dict.fromkeys(f.name for f in self.findings))
            return f"Nothing speaks against this fit ({asked})."
        said = "; ".join(f.sentence for f in self.bad[:_SAID])
        more = f"; and more ({', '.join(f.name for f in self.bad[_SAID:])})"
        counts = Counter(remedy for f in self.bad for remedy in f.remedies)
        remedies = ", or ".join(remedy for remedy, _ in counts.most_common(_SAID))
        return f"Do not trust this fit as it is: {said}{more if len(self.bad) > _SAID else ''}." + (
            f" Try {remedies}." if remedies else ""
        )

    def table(self) -> pd.DataFrame:
        """A row a finding, with the attributes of :class:`Finding` for columns."""
        return pd.DataFrame(
            [vars(f) for f in self.findings], columns=list(Finding.__dataclass_fields__)
        )

    def cautions(self):
        from nbmodels.errors import Caution

        return () if self.ok else (Caution(VerdictWarning, self.sentence),)

    def warn(self, stacklevel: int = 3) -> None:
        """Issue a :class:`nbmodels.errors.VerdictWarning` if it is bad; the only place that does.

        Args:
            stacklevel: of the warning.
        """
        if not self.ok:
            warnings.warn(self.sentence, VerdictWarning, stacklevel=stacklevel)


@dataclass(frozen=True)
class Looked:
    """The part of a fit that is looked at, on the host.

    Attributes:
        resp: ``(n, K)`` responsibilities.
        weights: ``(n,)`` row weights, above 0.
        codes: ``(n,)`` given labels, negative where missing; None where there is no such channel.
        transition: ``(K, K)`` P(observed | true); None likewise.
        names: ``(K,)`` names of the classes.
        features: what each emission leaves over, by its name.
        columns: names of the columns of each emission.
        believed: emissions whose evidence counts in full.
        other_word: ``(n,)`` class that the features point to, learned out of fold; None where it
            has to be found out.
    """

    resp: np.ndarray
    weights: np.ndarray
    codes: np.ndarray | None
    transition: np.ndarray | None
    names: Any
    features: Mapping[str, Residuals]
    columns: Mapping[str, Sequence[str]]
    believed: frozenset[str]
    other_word: np.ndarray | None = None

    def unlabelled(self) -> np.ndarray:
        """``(n, K)`` log P(true class | everything but the item's own given label)."""
        logs = np.maximum(np.log(np.maximum(self.resp, np.finfo(float).tiny)), _LEAST)
        if self.codes is not None and self.transition is not None:
            rates = np.log(np.maximum(self.transition, np.finfo(float).tiny)).T
            said = np.where((self.codes >= 0)[:, None], rates[np.maximum(self.codes, 0)], 0)
            logs = logs - np.maximum(said, _LEAST)
        return logs - logsumexp(logs, 1, keepdims=True)


def judge(
    fit: Fit,
    data: Data,
    names: Any,
    columns: Mapping[str, Sequence[str]],
    *,
    echoes: bool = False,
) -> Verdict:
    """The verdict on a fit.

    Args:
        fit: the fit, without padded rows.
        data: what it was fitted to, on the host; it may have padded rows of weight 0.
        names: ``(K,)`` names of the classes.
        columns: names of the columns of each emission.
        echoes: whether responsibilities are not those of one joint model (collapsed updates on a
            graph), of which only the outcome can be judged.
    """
    found = list(_of_outcome(fit, data, names))
    if not echoes:
        looked = look(fit, data, names, columns)
        if len(looked.weights):
            found = [*_of_labels(looked), *_of_features(looked), *found]
    done = {_CUT} if data.parts.get(PRIOR) is not None else set()
    return Verdict(tuple(_without(f, done) for f in found))


def _without(finding: Finding, remedies: set[str]) -> Finding:
    """Without remedies that are taken already."""
    return replace(finding, remedies=tuple(r for r in finding.remedies if r not in remedies))


def look(fit: Fit, data: Data, names: Any, columns: Mapping[str, Sequence[str]]) -> Looked:
    """The rows and columns that are looked at; the same ones each time."""
    n, k = fit.resp.shape
    weights = np.asarray(data.weights, float)[:n]
    rows = np.flatnonzero(weights > 0)
    width = min(_COLUMNS, max(map(len, columns.values()), default=1))
    most = int(np.clip(_CELLS // (k * width), _LEAST_ROWS, _MOST_ROWS))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(len(rows)).permutation(rows)[:most])
    point = fit.point
    codes = transition = None
    if "labels" in data.parts:
        channel = with_role(fit.model, LabelChannel)["labels"]
        codes = np.asarray(data.parts["labels"])[rows]
        codes = np.where(codes < k, codes, -1)
        transition = np.asarray(channel.transition(channel.values(point["labels"])), float)
        transition = transition / transition.sum(1, keepdims=True)
    emissions = with_role(fit.model, Emission)
    parts = {name: data.parts[name] for name in columns if name in data.parts}
    features = {
        name: one
        for name, part in parts.items()
        if (one := emissions[name].residuals(point[name], part, rows, _COLUMNS)) is not None
    }
    believed = frozenset(
        name for name in features if np.all(np.asarray(fit.model[name].weight) == 1)
    )
    scores = data.parts.get(PRIOR)
    resp = np.asarray(fit.resp, float)[rows]
    return Looked(
        resp / resp.sum(1, keepdims=True),
        weights[rows],
        codes,
        transition,
        names,
        features,
        columns,
        believed,
        # a calibrated prior holds what was learned of each item without it
        None if scores is None else np.argmax(np.asarray(scores)[rows], 1),
    )


# Labels ---------------------------------------------------------------------------------------


def _of_labels(at: Looked) -> Iterator[Finding]:
    if at.codes is None or at.transition is None or (at.codes >= 0).sum() < 2:
        return
    known = at.codes >= 0
    logs, weights, codes = at.unlabelled()[known], at.weights[known], at.codes[known]
    # what was divided out again leaves a rounding error that tells the label: ties must stay ties
    rates = np.round(np.exp(logs) @ at.transition, _DIGITS)
    word = at.other_word
    if word is None:
        plain = [found.plain for found in at.features.values()]
        word = unseen_word(plain, at.codes, len(at.transition))
    if word is not None:
        yield _agreement(word[known], codes, rates, weights)
    yield _overconfidence(at, logs, at.resp[known], weights)
    yield _calibration(codes, rates, weights)


def _agreement(
    word: np.ndarray, codes: np.ndarray, rates: np.ndarray, weights: np.ndarray
) -> Finding:
    expected = rates[np.arange(len(word)), word]
    test = largest(summed((word == codes) - expected, weights))
    seen = np.average(word == codes, weights=weights)
    promised = np.average(expected, weights=weights)
    bad = test.beyond(AGREEMENT)
    words = (
        f"a plain classifier that has not seen them agrees with {seen:.0%} of the given labels, "
        f"where this fit expects {promised:.0%}"
    )
    follows = np.average(word == rates.argmax(1), weights=weights)
    if bad and test.effect > 0 and follows < seen:
        words = f"the fit has left the labels and follows clusters of the features: {words}"
    elif bad and test.effect > 0:
        words = f"the features say more about the labels than the fit believes: {words}"
    elif bad:
        words = f"the fit takes the features to say more about the labels than they do: {words}"
    return Finding(
        "agreement",
        "do labels and features tell one story?",
        test.z,
        test.p_value,
        test.effect,
        AGREEMENT,
        bad,
        words,
        (_CUT, _LIGHTER) if bad else (),
    )


def _overconfidence(at: Looked, logs: np.ndarray, resp: np.ndarray, weights: np.ndarray) -> Finding:
    """Score of a power of P(class | all but the label), in the likelihood of the label."""
    p = np.exp(logs)
    logs = np.maximum(logs, _LEAST)
    score = np.sum((resp - p) * logs, 1)

    def spread(q: np.ndarray) -> np.ndarray:
        return np.sum(q * logs**2, 1) - np.sum(q * logs, 1) ** 2

    # missing information: the curvature is the spread without the label less that with it
    curvature = float(weights @ (spread(p) - spread(resp)))
    unit = max(curvature, float(weights @ score**2), np.finfo(float).tiny)
    test = largest(Scores(weights @ score, weights**2 @ score**2, np.asarray(unit)), side=-1)
    bad = test.beyond(OVERCONFIDENCE) and test.effect < 0
    test = replace(test, effect=max(test.effect, -1.0))
    power = 1 + test.effect
    if bad:
        words = (
            "posteriors are too sure of themselves: by the given labels, the features' evidence "
            f"should count for about {power:.0%} of what it does"
        )
    else:
        words = "by the given labels, posteriors are not too sure of themselves"
    return Finding(
        "overconfidence",
        "are posteriors too sure of themselves?",
        test.z,
        test.p_value,
        test.effect,
        OVERCONFIDENCE,
        bad,
        words,
        (_CUT, _LIGHTER) if bad else (),
    )


def _calibration(codes: np.ndarray, rates: np.ndarray, weights: np.ndarray) -> Finding:
    """Frequency of the likeliest given label, in bins of its predicted probability."""
    best = rates.argmax(1)
    sure = rates.max(1)
    edges = np.unique(np.quantile(sure, np.linspace(0, 1, _BINS + 1)[1:-1]))
    inside = np.eye(len(edges) + 1)[np.searchsorted(edges, sure)]
    score = ((best == codes) - sure)[:, None] * inside
    test = largest(Scores(weights @ score, weights**2 @ score**2, weights @ inside))
    mean = np.average(sure, weights=weights * inside[:, test.at[0]])
    return Finding(
        "calibration",
        "do given labels occur as often as the fit says?",
        test.z,
        test.p_value,
        test.effect,
        CALIBRATION,
        bad := test.beyond(CALIBRATION),
        f"labels to which the fit gives {mean:.0%} occur {mean + test.effect:.0%} of the time",
        (_CUT, "another emission") if bad else (),
    )


# Features -------------------------------------------------------------------------------------


def _of_features(at: Looked) -> Iterator[Finding]:
    for name, found in at.features.items():
        scores = of_columns(found, at.resp, at.weights, at.codes, at.transition)
        columns = [str(at.columns[name][j]) for j in found.columns]
        for finding in _of_emission(at, found, scores, columns):
            if name in at.believed or not finding.bad:
                yield finding
            else:
                # the discounted evidence says less than the model of the features would
                yield replace(finding, bad=False, remedies=())


def _of_emission(
    at: Looked, found: Residuals, scores: OfColumns, columns: list[str]
) -> Iterator[Finding]:
    real = found.size is not None

    def within(k: int) -> str:
        return f"within class {at.names[k]}" if k < len(at.names) else "within classes"

    if scores.products is not None:
        test = largest(scores.products)
        k, i, j = test.at
        yield _assumption(
            "correlation",
            "are columns independent given the class, or as correlated as modelled?",
            test,
            CORRELATION,
            f"columns {columns[i]} and {columns[j]} go together {within(k)}, beyond what the model "
            f"has (correlation {test.effect:+.2f})",
            (_CUT, 'covariance="full"') if real else (_CUT, _LIGHTER),
            "no two columns go together beyond what the model has",
        )
    if scores.size is not None and scores.sign is not None:
        test = largest(scores.size)
        k, j = test.at
        tails = "heavy" if test.effect < 0 else "short"
        yield _assumption(
            "tails",
            "are tails those of the modelled distribution?",
            test,
            TAILS,
            f"column {columns[j]} has {tails} tails {within(k)} (mean distance from the mean "
            f"{abs(test.effect):.0%} {'below' if test.effect < 0 else 'above'} the modelled one)",
            ('RobustNDA(dof="learn")', _CUT),
            "tails are those of the modelled distribution",
        )
        test = largest(scores.sign)
        k, j = test.at
        yield _assumption(
            "skew",
            "are columns symmetric given the class?",
            test,
            SKEW,
            f"column {columns[j]} is skewed {within(k)} ({(1 + test.effect) / 2:.0%} of its values "
            "lie above the mean)",
            (_CUT, "logarithms or ranks of that column"),
            "columns are symmetric given the class",
        )
    if scores.repeated is not None:
        test = largest(scores.repeated, side=1)
        more = max(found.length - 1, 0) * test.effect
        test = Largest(test.z, test.p_value, more, test.at)
        yield _assumption(
            "repeated words",
            "are words drawn independently given the class?",
            test,
            REPEATED,
            f"words repeat: within a class a word's count varies {1 + more:.1f} times as much as "
            "that of independent words",
            (_CUT, "presence in the place of counts", _LIGHTER),
            "words do not repeat beyond what independent words do",
        )
    if scores.labels is not None:
        test = largest(scores.labels)
        j, c = test.at
        what = f"a wrong label {at.names[j]}" if j < len(at.names) else "a right label"
        yield _assumption(
            "noise depends on features",
            "does a feature say more about the label than the true class does?",
            test,
            DEPENDENT,
            f"column {columns[c]} goes with {what} within classes (correlation {test.effect:+.2f}):"
            " errors are not the same for all items of a class",
            (_CUT, "a class split in two"),
            "labels depend on features through the true class alone",
        )


def _assumption(
    name: str,
    question: str,
    test: Largest,
    floor: float,
    words: str,
    remedies: tuple[str, ...],
    fine: str,
) -> Finding:
    bad = test.beyond(floor)
    said = words if test.p_value < LEVEL else fine
    return Finding(
        name,
        question,
        test.z,
        test.p_value,
        test.effect,
        floor,
        bad,
        said,
        remedies if bad else (),
    )


# Outcome --------------------------------------------------------------------------------------


def _of_outcome(fit: Fit, data: Data, names: Any) -> Iterator[Finding]:
    n, k = fit.resp.shape
    weights = np.asarray(data.weights, float)[:n]
    if "labels" in data.parts:
        codes = np.asarray(data.parts["labels"])[:n]
        known = (codes < k) & (weights > 0)
        if known.any():
            checked = "trusted" in data.parts
            yield _drift(fit.resp[known], codes[known], weights[known], names, checked)
    if len(fit.restarts) > 1:
        yield _restarts(fit, float(weights.sum()))


def _drift(
    resp: np.ndarray, codes: np.ndarray, weights: np.ndarray, names: Any, checked: bool
) -> Finding:
    given = np.bincount(codes, weights, resp.shape[1])
    gone = vanished(given, weights @ resp)
    wrong = 1 - np.average(resp[np.arange(len(codes)), codes], weights=weights)
    # where labels were checked, most of the others may well be wrong
    bad = bool((wrong > 0.5 and not checked) or len(gone))
    words = f"{wrong:.0%} of the given labels would be wrong"
    if len(gone):
        words += ", and of these classes hardly an item is left: " + ", ".join(
            str(names[j]) for j in gone[:6]
        )
    return Finding(
        "drift",
        "did true classes drift away from the given ones?",
        np.nan,
        np.nan,
        float(wrong),
        0.5,
        bad,
        words,
        (_CUT, 'noise="symmetric"', _LIGHTER) if bad else (),
    )


def _restarts(fit: Fit, mass: float) -> Finding:
    first, *others = fit.restarts
    gap = (float(np.nanmax(others)) - first) / mass
    bad = bool(gap > RESTARTS)
    words = (
        f"a random start found a likelier solution than that from the labels, by {gap:.2g} nats a "
        "row: the likelihood would rather have other classes"
        if bad
        else "no random start found a much likelier solution than that from the labels"
    )
    return Finding(
        "restarts",
        "do starts agree?",
        np.nan,
        np.nan,
        gap,
        RESTARTS,
        bad,
        words,
        (_CUT, "n_restarts=0") if bad else (),
    )


def check_model(fit, data, names, columns, *, collapsed=False):
    return judge(fit, data, names, columns, echoes=collapsed)
