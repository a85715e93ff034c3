"""Accuracy, confusion matrix, F1 and AUC of any classifier, from noisy test labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from nbmodels.audit.intervals import Estimate
from nbmodels.data.labels import Classes, trusted_codes
from nbmodels.data.noisy_labels import by_position
from nbmodels.data.readable import Readable
from nbmodels.data.validation import (
    as_column,
    as_floats,
    check_length,
    check_level,
    check_order,
    of_some_rows,
    plain,
    seed_of,
)
from nbmodels.errors import Caution, DataError, VerdictWarning, issue
from nbmodels.metrics.contradiction import contradiction
from nbmodels.metrics.correction import (
    MEANS,
    TestRows,
    drawn_figures,
    figures,
    grouped,
    linear_inverses,
)
from nbmodels.metrics.independence import Independence, check_independence
from nbmodels.metrics.noise_draws import left_open, read_noise

#: Scores of the whole test set, under the names that the table gives them.
_OVERALL = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "macro_auc": "AUC",
}
_BY_CLASS = ("precision", "recall", "f1", "auc")

#: Estimated rows of a class from which on there is one, and from which on they say something of it.
_ONE, _FEW = 0.5, 5


@dataclass(frozen=True)
class NoisyTestScores(Readable):
    """Scores against the true classes, estimated from noisy labels.

    Attributes:
        accuracy: share of right predictions.
        balanced_accuracy: mean recall of the classes, of which each may be estimated above 1, and
            is cut off in ``by_class`` only.
        macro_f1: mean F1 of the classes, likewise.
        auc: area under the ROC curve, for more than two classes the mean of each class against
            the rest; None without scores.
        by_class: frame with a row a class: ``precision``, ``recall``, ``f1`` and ``auc``, each with
            ``_low`` and ``_high``.
        confusion: frame with a row a cell: ``true``, ``predicted``, ``share`` of all rows, with
            ``low`` and ``high``. Shares are 0 or more and sum to one; rows agree with ``recall``.
        given: the same scores where the given labels are taken for true, by name.
        independence: test of the assumptions on the checked rows; None without any.
            Where it rejects them, all scores are those of the checked rows alone.
        contradiction: how labels, predictions and noise matrix contradict each other, as a
            sentence; empty where they do not. Scores then mean nothing, and all intervals are 0
            to 1.
        level: probability of the intervals.
        n_rows: rows of the test set.

    Examples:
        >>> import numpy as np
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> from nbmodels.metrics import noisy_test_scores
        >>> rng = np.random.default_rng(0)
        >>> names, noise = np.array(["ant", "bee"]), uniform_noise(2, 0.2)
        >>> truth = rng.integers(0, 2, 200)
        >>> given = corrupt(truth, noise, rng)
        >>> predicted = corrupt(truth, uniform_noise(2, 0.05), rng)
        >>> found = noisy_test_scores(names[given], names[predicted], noise)
        >>> round(found.accuracy.value, 2), round(found.given["accuracy"], 2)
        (0.95, 0.77)
        >>> print(found.confusion_matrix.round(2))
        predicted   ant   bee
        true
        ant        0.43  0.02
        bee        0.03  0.52
    """

    accuracy: Estimate
    balanced_accuracy: Estimate
    macro_f1: Estimate
    auc: Estimate | None
    by_class: pd.DataFrame
    confusion: pd.DataFrame
    given: dict[str, float]
    independence: Independence | None
    contradiction: str
    level: float
    n_rows: int

    @property
    def confusion_matrix(self) -> pd.DataFrame:
        """``(K, K)`` frame ``[true, predicted]`` of shares of all rows."""
        names = list(self.by_class.index)
        table = self.confusion.pivot(index="true", columns="predicted", values="share")
        return table.loc[names, names]

    @property
    def sentence(self) -> str:
        """Accuracy with its interval, what was assumed, and whether that was tested."""
        tested = (
            "No row was checked, so that it is not known whether test labels and predictions err "
            "independently."
            if self.independence is None
            else self.independence.sentence
        )
        first = f"{self.contradiction} " if self.contradiction else ""
        return (
            f"{first}Accuracy {self.accuracy} against the true classes, where it is "
            f"{self.given['accuracy']:.1%} against the given labels of {self.n_rows} rows. {tested}"
        )

    def table(self) -> pd.DataFrame:
        """The scores of the whole test set, one a row: ``score``, ``low``, ``high``, ``given``.

        ``given`` is the score where the given labels are taken for true.
        """
        parts = {
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            **({} if self.auc is None else {"macro_auc": self.auc}),
        }
        return pd.DataFrame(
            [(e.value, e.low, e.high, self.given[name]) for name, e in parts.items()],
            index=[_OVERALL[name] for name in parts],
            columns=["score", "low", "high", "given"],
        )


def noisy_test_scores(
    y_given: Any,
    y_pred: Any,
    noise: Any,
    *,
    scores: Any = None,
    trusted: Any = None,
    classes: Any = None,
    level: float = 0.9,
    draws: int = 1000,
    random_state: Any = 0,
) -> NoisyTestScores:
    """Scores of a classifier on test data whose labels are noisy, with intervals.

    **Assumes** that the given label of a test row is independent of the prediction given the true
    class: labels and classifier do not err on the same rows for the same reasons. It holds where
    test labels are wrong at random within a class. It fails where annotators and classifier find
    the same rows hard, or where the classifier has learned the annotators' mistakes; scores are
    then overrated. Checked rows (``trusted``) test it, and where they reject it scores are of these
    rows alone; see :class:`nbmodels.metrics.independence.Independence`. Test labels must also be as
    noisy as the noise matrix says, which is tested with them.

    Means over the classes are over those of which there seems to be a row.

    Intervals vary the noise matrix by its draws and the test rows by the Bayesian bootstrap; see
    :mod:`nbmodels.metrics.correction` for the method and its sources.

    Args:
        y_given: ``(n,)`` given labels of the test rows.
        y_pred: ``(n,)`` predicted classes, by any classifier.
        noise: noise matrix ``[observed, true]``: ``(K, K)`` if known (a data frame by the names of
            the classes), ``(S, K, K)`` draws, or the
            ``DataTree`` that ``model.posterior()`` returns. Of a fit to votes alone,
            ``tree["posterior"]["votes_noise_matrix"]`` is that of one annotator taken at random:
            for test labels that are one vote each, and not the majority of several.
        scores: ``(n, K)`` scores or probabilities of the classes, for the AUC; with two classes
            ``(n,)`` scores of the second will do.
        trusted: ``(n,)`` true classes of checked rows, null elsewhere; or a mapping or series of
            some rows, by the index of ``y_given`` where it is a series. They count as they are, so
            that they must be chosen at random, not by how they look.
        classes: ``(K,)`` class names in the order of the noise matrix; by default those of its
            draws, or the sorted names that occur.
        level: probability of the intervals.
        draws: number of draws.
        random_state: seed, or what else scikit-learn takes for one.

    Raises:
        DataError: bad input, naming the argument and the row.

    Warns:
        VerdictWarning: predictions and labels agree on more or fewer rows than the noise matrix
            allows any classifier; or checked rows reject the assumptions; or a class has hardly a
            row; or the fit behind the noise matrix cannot tell how many labels are wrong.

    Examples:
        >>> import numpy as np
        >>> from nbmodels.datasets import corrupt, uniform_noise
        >>> from nbmodels.metrics import noisy_test_scores
        >>> rng = np.random.default_rng(0)
        >>> names, noise = np.array(["ant", "bee"]), uniform_noise(2, 0.2)
        >>> truth = rng.integers(0, 2, 200)
        >>> given = corrupt(truth, noise, rng)  # 20 % of the test labels are wrong
        >>> predicted = corrupt(truth, uniform_noise(2, 0.05), rng)  # 5 % of these are wrong
        >>> found = noisy_test_scores(names[given], names[predicted], noise)
        >>> print(found.table().loc[["accuracy"], ["given", "score"]].round(2))
                  given  score
        accuracy   0.77   0.95
    """
    check_level(level)
    if draws < 2:
        raise DataError(f"draws: expected 2 or more, got {draws}")
    matrices, names = read_noise(noise)
    rows, known = _read_rows(y_given, y_pred, scores, trusted, classes, names, matrices.shape[-1])
    if isinstance(noise, pd.DataFrame):
        matrices = np.asarray(Classes(known).in_order("noise", noise), float)[None]
    whole = isinstance(random_state, int | np.integer) and random_state >= 0
    seed = int(random_state) if whole else seed_of(random_state)
    rng = np.random.default_rng([seed, 0])
    unchecked = replace(rows, true=np.full_like(rows.true, -1))
    naive = _at(grouped(unchecked), np.eye(len(known)))
    checked = rows.true >= 0
    tested, against = None, contradiction(rows, matrices)
    if checked.any():
        parts = (rows.given[checked], rows.predicted[checked], rows.true[checked])
        tested = check_independence(*parts, matrices, np.random.default_rng([seed, 1]))
    cautions = [against] if against else []
    n_rows = len(rows.given)
    if tested is not None and not tested.ok:
        # these need no assumption
        rows, against, cautions = _of(rows, checked), "", [tested.sentence]
    groups = grouped(rows)
    point = _at(groups, matrices.mean(0))
    true, predicted = (len(rows.given) * point["joint"][0].sum(axis) for axis in (1, 0))
    sizes = {"recall": true, "precision": predicted, "f1": (true + predicted) / 2}
    among = _classes_with_rows(sizes)
    point = _at(groups, matrices.mean(0), among)
    drawn = drawn_figures(groups, matrices, draws, rng, among)
    interval = partial(_interval, level=level) if not against else _anything
    ends = {name: _holding(interval(x), point[name][0]) for name, x in drawn.items()}
    for name, size in {"accuracy": len(rows.given), **sizes}.items():
        ends[name] = _leaving_open(ends[name], size, level)
    least = len(rows.given) * _interval(drawn["joint"].sum(2), level)[0]
    for mean, name in MEANS.items():
        if name in ends:
            ends[mean] = _of_few_rows(ends[mean], point[name][0], ends[name], least < _FEW)
    rare = true < _FEW
    if rare.any() and not rare.all():
        few = ", ".join(repr(plain(known[k])) for k in np.flatnonzero(rare))
        cautions.append(
            f"y_given: fewer than {_FEW} test rows seem to be of {few}: scores of this class, and "
            "means over the classes, are hardly known"
        )
    open_ = left_open(noise)
    if open_ and (tested is None or not tested.ok):
        cautions.append(
            f"noise: {open_} Scores hold for the first of these shares; checked rows (trusted=) "
            "show whether it is right"
        )

    def overall(name: str) -> Estimate:
        low, high = ends[name]
        return Estimate(float(np.clip(point[name][0], 0, 1)), float(low), float(high))

    issue([Caution(VerdictWarning, one) for one in cautions])
    return NoisyTestScores(
        overall("accuracy"),
        overall("balanced_accuracy"),
        overall("macro_f1"),
        overall("macro_auc") if "auc" in point else None,
        _by_class(point, ends, known),
        _cells(point, ends, known),
        {name: float(naive[name][0]) for name in _OVERALL if name in naive},
        tested,
        against,
        level,
        n_rows,
    )


def _interval(draws: np.ndarray, level: float) -> np.ndarray:
    """``(2, ...)`` ends of equal-tailed intervals in [0, 1]; draws without a value are left out."""
    quantile = np.nanquantile if np.isnan(draws).any() else np.quantile
    with warnings.catch_warnings():
        # a class that is never predicted has no precision in any draw
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        return np.clip(quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0), 0, 1)


def _leaving_open(ends: np.ndarray, size: Any, level: float) -> np.ndarray:
    """Intervals that leave open what as many rows do that are all right, or all wrong.

    Estimates above one are cut off, and rows that agree vary little (Jeffreys' prior).
    """
    edge = beta.ppf((1 - level) / 2, np.maximum(size, 0) + 0.5, 0.5)
    return np.stack([np.minimum(ends[0], edge), np.maximum(ends[1], 1 - edge)])


def _holding(ends: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Intervals that hold their estimates, which pseudo-rows are no part of."""
    at = np.clip(point, 0, 1)
    return np.stack([np.minimum(ends[0], at), np.maximum(ends[1], at)])


def _anything(draws: np.ndarray) -> np.ndarray:
    """``(2, ...)`` ends 0 and 1: all that is known."""
    return np.stack([np.zeros(draws.shape[1:]), np.ones(draws.shape[1:])])


def _of(rows: TestRows, which: np.ndarray) -> TestRows:
    """Some of the rows."""
    return TestRows(
        rows.given[which],
        rows.predicted[which],
        rows.true[which],
        rows.counts[which],
        None if rows.scores is None else rows.scores[which],
    )


def _classes_with_rows(sizes: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Classes that means are over, by name of the mean: those of which there seems to be a row.

    Args:
        sizes: ``(K,)`` estimated numbers of rows that a score by class is of.
    """
    out = {}
    for mean, name in MEANS.items():
        there = sizes.get(name, sizes["recall"]) >= _ONE
        out[mean] = there if there.any() else np.ones_like(there)
    return out


def _of_few_rows(
    ends: np.ndarray, point: np.ndarray, by_class: np.ndarray, few: np.ndarray
) -> np.ndarray:
    """Interval of a mean over classes, wider by what classes of few rows leave open.

    Args:
        ends: ``(2,)`` of the mean.
        point: ``(K,)`` estimates of the classes.
        by_class: ``(2, K)`` their intervals.
        few: ``(K,)`` whether they may have few rows.
    """
    at = np.where(np.isfinite(point), np.clip(point, 0, 1), 0.5)
    wider = np.where(few, np.nan_to_num(by_class) - at, 0).sum(1) / len(few)
    others = at[~few].mean() if few.any() and not few.all() else None
    ends = np.clip(ends + wider, 0, 1)
    return ends if others is None else _holding(ends, np.asarray(others))


def _at(
    rows: TestRows, noise: np.ndarray, among: Mapping[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Scores of all rows alike, under one noise matrix."""
    weights = rows.counts[None] / rows.counts.sum()
    return figures(rows, weights, linear_inverses(noise[None]), among=among)


def _read_rows(
    y_given: Any, y_pred: Any, scores: Any, trusted: Any, classes: Any, names: Any, k: int
) -> tuple[TestRows, np.ndarray]:
    """Coded rows and names of the classes.

    Raises:
        DataError: another length, or a label in no class, with its row.
    """
    index = y_given.index if isinstance(y_given, pd.Series | pd.DataFrame) else None
    for name, values in {"y_pred": y_pred, "trusted": trusted, "scores": scores}.items():
        check_order(name, values, index, "y_given")
    given, predicted = as_column("y_given", y_given), as_column("y_pred", y_pred)
    trusted = of_some_rows("trusted", trusted, len(given))
    if isinstance(trusted, Mapping) and index is not None:
        trusted = by_position(
            "trusted", trusted, index, those="rows are named by the index of y_given"
        )
    check = {"y_given": given, "y_pred": predicted}
    if len(given) != len(predicted):
        raise DataError(f"y_pred: has {len(predicted)} rows where y_given has {len(given)}")
    if not len(given):
        raise DataError("y_given: there is no row")
    for name, column in check.items():
        nulls = np.flatnonzero(pd.isna(column))
        if len(nulls):
            raise DataError(f"{name}: row {nulls[0]} has no label")
    if classes is None and names is not None:
        # names of draws are text
        classes = names
        if names.dtype.kind in "US":
            given, predicted = given.astype(str), predicted.astype(str)
            trusted = _as_text(trusted)
    known = Classes.infer(np.concatenate([given, predicted]), classes, "y_given, y_pred")
    if len(known) != k:
        if predicted.dtype.kind == "f" and (predicted % 1 != 0).any():
            row = int((predicted % 1 != 0).argmax())
            raise DataError(
                f"y_pred: row {row} is {predicted[row]:g}; expected predicted classes "
                "(probabilities are given as scores=)"
            )
        raise DataError(
            f"noise: is of {k} classes where the labels name {len(known)}; give classes"
        )
    scores = known.in_order("scores", scores, axes=(1,))
    nowhere = np.zeros(len(given), bool)
    true = np.full(len(given), -1)
    if trusted is not None:
        true = trusted_codes(trusted, known, len(given), None)
    table = None if scores is None else _read_scores(scores, len(given), k)
    codes = known.encode("y_given", given, nowhere), known.encode("y_pred", predicted, nowhere)
    return TestRows(*codes, true, np.ones(len(given), int), table), known.names


def _as_text(trusted: Any) -> Any:
    if trusted is None:
        return None
    if isinstance(trusted, dict):
        return {row: str(label) for row, label in trusted.items()}
    column = as_column("trusted", trusted).astype(object)
    return np.asarray([None, *(None if pd.isna(v) else str(v) for v in column)], object)[1:]


def _read_scores(scores: Any, n: int, k: int) -> np.ndarray:
    table = as_floats("scores", scores)
    if table.ndim == 1 and k == 2:
        table = np.column_stack([-table, table])
    check_length("scores", table, n, "y_given")
    if table.shape != (n, k):
        raise DataError(f"scores: expected shape {(n, k)}, got {table.shape}")
    bad = np.flatnonzero(np.isnan(table).any(1))
    if len(bad):
        raise DataError(f"scores: row {bad[0]} is not a number")
    return table


def _by_class(point: dict, ends: dict, names: np.ndarray) -> pd.DataFrame:
    out = {}
    for name in _BY_CLASS:
        if name in point:
            out[name] = point[name][0]
            out[f"{name}_low"], out[f"{name}_high"] = ends[name]
    return pd.DataFrame(out, index=pd.Index(names, name="class"))


def _cells(point: dict, ends: dict, names: np.ndarray) -> pd.DataFrame:
    k = len(names)
    low, high = ends["joint"]
    return pd.DataFrame(
        {
            "true": np.repeat(names, k),
            "predicted": np.tile(names, k),
            "share": _shares(point["joint"][0]).ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
        }
    )


def _shares(joint: np.ndarray) -> np.ndarray:
    """``(K, K)`` shares ``[true, predicted]``: 0 or more, of sum one, with the recalls as reported.

    The unbiased estimate has negative cells beside others that are too large. Each class's errors
    are shared out among its positive cells, so that class shares, recalls and accuracy stay.
    """
    classes = joint.sum(1).clip(0)
    right = np.diag(joint).clip(0, classes)
    errors = joint.clip(0) * (1 - np.eye(len(joint)))
    found = errors.sum(1)
    out = errors * ((classes - right) / np.where(found > 0, found, 1))[:, None]
    np.fill_diagonal(out, right)
    return out / out.sum()
