"""Result of an audit: share of wrong labels, flip rates and accuracy of suggestions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.audit.allocation import joined
from nbmodels.audit.intervals import Estimate, Sample, domain_rate, stratified_share
from nbmodels.audit.plan import AuditPlan, written
from nbmodels.data.labels import Classes
from nbmodels.data.readable import Readable
from nbmodels.data.validation import as_column, check_length, check_level, plain
from nbmodels.errors import Caution, DataError, VerdictWarning, counted, issue

#: Up to so many classes every flip rate is listed; beyond, those that were seen.
_FEW_CLASSES = 50

#: Checked rows from which on they should agree with given or suggested labels beyond chance, and
#: the kappa below which they do not.
_ENOUGH, _CHANCE = 20, 0.15

_IN_DISORDER = Caution(
    VerdictWarning,
    "checked: agrees with neither given nor suggested labels more often than by chance; are these "
    "labels in the order of plan.rows, and of these rows?",
)


@dataclass(frozen=True)
class AuditResult(Readable):
    """What the checked rows say about all rows of the plan, whatever model is right.

    Attributes:
        share_wrong: share of wrong labels.
        suggestions: share of rows whose suggested label is the true class.
        noise: frame of the flip rates: ``true``, ``given``, P(given | true) as ``rate`` with
            ``low`` and ``high``, and the numbers of checked rows of this true class (``checked``)
            and of this kind among them (``seen``). All pairs of up to 50 classes; of more, those
            that were seen, and labels that are right.
        checked: the checked rows of the plan, with ``true``.
        trusted: ``(N,)`` true labels of the checked rows, with those of earlier rounds, None
            elsewhere: the ``trusted=`` of ``fit``.
        level: probability of the intervals.
        model_share: share of wrong labels that the model expects; None where the features say
            nothing of the labels.
        population: rows that the answer is about.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyGaussianNB
        >>> rng = np.random.default_rng(0)
        >>> truth, names = rng.integers(0, 2, 200), np.array(["ant", "bee"])
        >>> X = rng.normal(8 * truth[:, None], size=(200, 2))
        >>> y = names[np.where(rng.random(200) < 0.2, 1 - truth, truth)]  # a fifth is wrong
        >>> model = NoisyGaussianNB(training="joint", random_state=0).fit(X, y)
        >>> plan = model.audit_plan(40)
        >>> result = model.audit(plan, names[truth[plan.rows["row"]]])  # checked by hand
        >>> print(result.share_wrong)
        21.0% (17.5% to 24.0%)
        >>> print((y != names[truth]).mean())
        0.21
        >>> sum(label is not None for label in result.trusted)  # for a further fit
        40
    """

    share_wrong: Estimate
    suggestions: Estimate
    noise: pd.DataFrame
    checked: pd.DataFrame
    trusted: np.ndarray
    level: float
    model_share: float | None
    population: int

    @property
    def labels(self) -> Estimate:
        """Share of rows whose given label is the true class."""
        return self.share_wrong.complement

    @property
    def noise_matrix(self) -> pd.DataFrame:
        """``(K, K)`` frame ``[given, true]`` of P(given | true); NaN where nothing was seen."""
        return self.noise.pivot(index="given", columns="true", values="rate")

    @property
    def sentence(self) -> str:
        """The answer, as a sentence."""
        expected = ""
        if self.model_share is not None:
            inside = self.share_wrong.low <= self.model_share <= self.share_wrong.high
            expected = (
                f"; the model's {self.model_share:.1%} is {'inside' if inside else 'outside'} this "
                f"{self.level:.0%} interval"
            )
        return (
            f"{counted(len(self.checked), 'checked row')}: {self.share_wrong} of {self.population} "
            f"labels are wrong{expected}. Suggested labels are right on {self.suggestions}, given "
            f"ones on {self.labels}."
        )

    def table(self) -> pd.DataFrame:
        """The shares, one a row, with columns ``share``, ``low`` and ``high``."""
        parts = {
            "wrong labels": self.share_wrong,
            "given labels that are right": self.labels,
            "suggested labels that are right": self.suggestions,
        }
        return pd.DataFrame(
            {name: (e.value, e.low, e.high) for name, e in parts.items()},
            index=["share", "low", "high"],
        ).T


def audit(
    plan: AuditPlan, checked: Any, *, level: float = 0.9, partial: bool = False
) -> AuditResult:
    """Estimate shares and rates from the checked rows of a plan.

    Intervals hold whether or not the model is right, provided that the rows of the plan were drawn
    by it and that checked labels are the truth; see :mod:`nbmodels.audit.intervals`.

    Args:
        plan: from ``model.audit_plan``.
        checked: true labels: ``(n,)`` in the plan's order, null where unchecked, or a mapping or
            series from the ids of rows (``plan.rows["row"]``) to labels.
        level: probability of the intervals.
        partial: take a plan whose last rows are not checked yet. Those before them must be: rows
            that were skipped may be the hard ones.

    Returns:
        :class:`AuditResult`.

    Raises:
        DataError: ``plan`` is none; a row that is not in the plan, that is not checked, whose id
            other rows have, too, or whose label is no class.

    Warns:
        VerdictWarning: checked labels agree with neither given nor suggested ones.
    """
    check_level(level)
    if not isinstance(plan, AuditPlan):
        raise DataError(
            f"plan: expected an AuditPlan, from audit_plan() or AuditPlan.from_json(); got {plan!r}"
        )
    classes = Classes(plan.classes)
    rows, labels = _checked_rows(plan, checked, partial)
    names = rows["row"].to_numpy()
    no = np.zeros(len(rows), bool)
    true = classes.encode("checked", labels, no, names)
    given = classes.encode("given", rows["given"].to_numpy(), no, names)
    suggested = classes.encode("suggested", rows["suggested"].to_numpy(), no, names)
    sample, means = _sample(plan, rows)
    rng = np.random.default_rng([plan.seed, 1])
    weights = plan.strata["rows"].to_numpy(float)
    wrong = stratified_share(
        sample, given != true, rows["p_wrong"].to_numpy(float), means["p_wrong"], rng, level
    )
    right = stratified_share(
        sample,
        suggested == true,
        rows["p_suggested"].to_numpy(float),
        means["p_suggested"],
        rng,
        level,
        suspected=means["p_wrong"],
    )
    if len(rows) >= _ENOUGH and max(_beyond_chance(true, x) for x in (given, suggested)) < _CHANCE:
        issue([_IN_DISORDER])
    trusted = np.full(plan.n_items, None, object)
    trusted[rows["position"].to_numpy(int)] = plan.classes[true]
    return AuditResult(
        wrong,
        right,
        _flip_rates(sample, given, true, plan.classes, level),
        rows.assign(true=plan.classes[true]),
        trusted,
        level,
        float(np.average(plan.strata["p_wrong"], weights=weights)) if plan.informative else None,
        plan.population,
    )


def _beyond_chance(one: np.ndarray, other: np.ndarray) -> float:
    """Cohen's kappa of two columns of codes; 1 where either is of one class."""
    if min(len(np.unique(one)), len(np.unique(other))) < 2:
        return 1.0
    k = max(one.max(), other.max()) + 1
    shares = (np.bincount(codes, minlength=k) / len(codes) for codes in (one, other))
    by_chance = float(np.prod(list(shares), axis=0).sum())
    return float((np.mean(one == other) - by_chance) / (1 - by_chance))


def _checked_rows(plan: AuditPlan, checked: Any, partial: bool) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows that were checked, and their true labels.

    Raises:
        DataError: a row that is not in the plan, or that is not checked.
    """
    ids = plan.rows["row"]
    if isinstance(checked, Mapping | pd.Series):
        labels = _by_id(plan, checked)
    else:
        labels = as_column("checked", checked).astype(object)
        check_length("checked", labels, len(plan), "the plan")
    missing = np.asarray(pd.isna(labels), bool)
    n = len(plan)
    if partial:
        n = int(len(missing) - np.argmax(~missing[::-1])) if not missing.all() else 0
    if not n:
        raise DataError("checked: no row is checked")
    if missing[:n].any():
        at = int(np.argmax(missing))
        skipped = plain(ids.iloc[at])
        if partial:
            reason = "rows after it are; check it, too, as skipped rows may be the hard ones"
        else:
            reason = "check it, or give partial=True if the last rows are still to be checked"
        raise DataError(f"checked: row {skipped!r} of the plan is not checked; {reason}")
    return plan.rows.iloc[:n].reset_index(drop=True), labels[:n]


def _by_id(plan: AuditPlan, checked: Mapping[Any, Any] | pd.Series) -> np.ndarray:
    """``(n,)`` labels of the plan's rows, None where unchecked.

    Raises:
        DataError: a row that is not in the plan or has several labels, or an id of several rows.
    """
    ids = list(plan.rows["row"])
    drawn = Counter(ids)
    in_fit = plan.rows["same_id"] if "same_id" in plan.rows else np.ones(len(ids), int)
    rows_of = {row: max(int(n), drawn[row]) for row, n in zip(ids, in_fit, strict=True)}
    found: dict[Any, Any] = {}
    for row, label in checked.items():
        # a plan from a file has the text of an id that is neither text nor a number
        name = row if row in rows_of else written(row)
        if name not in rows_of:
            raise DataError(f"checked: row {plain(row)!r} is not in the plan")
        if rows_of[name] > 1:
            raise DataError(
                f"checked: row {plain(row)!r} is {rows_of[name]} rows by the index of X; give an "
                "array of labels in the plan's order"
            )
        if name in found:
            raise DataError(f"checked: row {plain(row)!r} has more than one label")
        found[name] = label
    return np.asarray([None, *(found.get(row) for row in ids)], object)[1:]


def _sample(plan: AuditPlan, rows: pd.DataFrame) -> tuple[Sample, dict[str, np.ndarray]]:
    """The sample, strata joined where checking stopped early, and means of predictions."""
    strata, at = plan.strata, rows["stratum"].to_numpy(int)
    sizes = strata["rows"].to_numpy(int)
    group = np.arange(len(strata))
    if len(rows) < len(plan):
        checks = np.bincount(at, minlength=len(strata))
        group = joined(checks, sizes, strata["p_wrong"].to_numpy(float))
    total = np.bincount(group, sizes).astype(int)
    means = {
        name: np.bincount(group, sizes * strata[name].to_numpy(float)) / total
        for name in ("p_wrong", "p_suggested")
    }
    inverse = None if len(rows) == len(plan) else 1 / rows["inclusion"].to_numpy(float)
    return Sample(group[at], total, inverse), means


def _flip_rates(
    sample: Sample, given: np.ndarray, true: np.ndarray, names: np.ndarray, level: float
) -> pd.DataFrame:
    k = len(names)
    if k <= _FEW_CLASSES:
        pairs = [(t, g) for t in range(k) for g in range(k)]
    else:
        seen = set(zip(true.tolist(), given.tolist(), strict=True))
        pairs = sorted(seen | {(t, t) for t, _ in seen})
    out = []
    for t, g in pairs:
        domain = true == t
        rate = domain_rate(sample, domain, given == g, level)
        counts = int(domain.sum()), int((domain & (given == g)).sum())
        out.append((names[t], names[g], rate.value, rate.low, rate.high, *counts))
    columns = ["true", "given", "rate", "low", "high", "checked", "seen"]
    return pd.DataFrame(out, columns=columns)
