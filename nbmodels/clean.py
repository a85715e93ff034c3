"""The job behind ``nbmodels clean``: from a table with doubtful labels to suggestions.

:func:`clean` takes a data frame; :func:`read_table` and :func:`write_table` move tables between it
and files without touching a cell of the input. Nothing here prints.
"""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.errors import DataError, NbmodelsWarning

#: Probability that the intervals hold.
LEVEL = 0.9
#: Up to so many classes the corrected table has a column of probabilities for each.
FEW_CLASSES = 10
#: Cells with one of these count as missing. "None" is not among them: it is a fine class name.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")

# Text ---------------------------------------------------------------------------------------------
# Measured on two collections (Reuters R8 and 20 Newsgroups) with 20 % of the labels replaced:
# TF-IDF weights as counts with a little smoothing and one error rate for all classes found more
# errors at a higher precision than raw counts, than binary words, and than a full noise matrix,
# which has to be learned from words that the model believes too much. Where errors have a
# direction, a single rate finds too few of them; `_drifted` says so.
TEXT_ALPHA = 0.1
TEXT_NOISE = "symmetric"
TABLE_ALPHA = 1.0
TABLE_NOISE = "full"
WEIGHT = 1.0


@dataclass(frozen=True)
class Choice:
    """How the columns are modelled.

    Attributes:
        estimator: name of the estimator.
        families: what each column is taken for; ``"words"`` for a column of text.
        noise: ``"full"`` or ``"symmetric"``.
        alpha: smoothing.
        weight: power of the features' evidence.
        left_out: columns that are not used, with the reason.
    """

    estimator: str
    families: dict[str, str]
    noise: str
    alpha: float
    weight: float
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Noise:
    """A noise matrix with its intervals, ``[observed, true]``, columns summing to one.

    Attributes:
        names: ``(K,)`` names of the classes.
        mean: ``(K, K)`` posterior means.
        low: ``(K, K)`` lower ends of the intervals.
        high: ``(K, K)`` upper ends of the intervals.
        symmetric: whether all classes share one error rate.
    """

    names: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    symmetric: bool = False

    @classmethod
    def of(cls, posterior: Any, *, symmetric: bool = False, level: float = LEVEL) -> Noise:
        """Means and equal-tailed intervals from posterior draws."""
        draws = posterior["posterior"]["noise_matrix"]
        flat = draws.values.reshape(-1, *draws.shape[-2:])
        low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
        names = draws["true_class"].values.astype(str)
        return cls(names, flat.mean(0), low, high, symmetric)


@dataclass(frozen=True)
class Scores:
    """How the suggestions compare with the truth, on the rows where it is known.

    Attributes:
        rows: number of rows with a given and a true label.
        before: share of given labels that are right.
        after: share of suggested labels that are right.
        auc: area under the ROC curve of ``p_label_wrong`` for finding wrong labels, or None.
        errors: number of wrong given labels.
        changed: number of rows whose suggestion differs from the given label.
        found: number of wrong labels among them.
        mended: number of them whose suggestion is the true class.
    """

    rows: int
    before: float
    after: float
    auc: float | None
    errors: int
    changed: int
    found: int
    mended: int

    @classmethod
    def of(cls, given: Any, suggested: Any, p_wrong: Any, truth: Any) -> Scores:
        """From four columns; rows without a given label must be left out before."""
        from sklearn.metrics import roc_auc_score

        given, suggested, truth = (np.asarray(a) for a in (given, suggested, truth))
        wrong, changed = given != truth, suggested != given
        both = 0 < wrong.sum() < len(wrong)
        return cls(
            len(truth),
            float(np.mean(~wrong)),
            float(np.mean(suggested == truth)),
            float(roc_auc_score(wrong, p_wrong)) if both else None,
            int(wrong.sum()),
            int(changed.sum()),
            int((changed & wrong).sum()),
            int((changed & (suggested == truth)).sum()),
        )

    @property
    def precision(self) -> float:
        """Share of the changed labels that were wrong."""
        return self.found / self.changed if self.changed else float("nan")

    @property
    def recall(self) -> float:
        """Share of the wrong labels that were changed."""
        return self.found / self.errors if self.errors else float("nan")


@dataclass(frozen=True)
class Cleaned:
    """What :func:`clean` found.

    Attributes:
        added: the new columns, one row for each row of the input.
        columns: name in ``added`` of ``suggested_label``, ``p_label_wrong`` and ``p_suggested``.
        given: ``(N,)`` given labels as text, None where missing.
        suggested: ``(N,)`` suggested labels as text.
        p_wrong: ``(N,)`` probability that the given label is wrong, NaN where missing.
        expected_wrong: expected share of wrong labels among the given ones.
        noise: the noise matrix; None where no draws were asked for.
        posterior: ArviZ ``DataTree`` of the draws, or None.
        choice: how the columns were modelled.
        scores: comparison with the truth, where there is a column of it.
        notes: things to know, in words.
        warnings: reasons for doubt, in words.
        model: the fitted estimator.
    """

    added: pd.DataFrame
    columns: dict[str, str]
    given: np.ndarray
    suggested: np.ndarray
    p_wrong: np.ndarray
    expected_wrong: float
    noise: Noise | None
    posterior: Any
    choice: Choice
    scores: Scores | None
    notes: list[str]
    warnings: list[str]
    model: Any


def clean(
    frame: pd.DataFrame,
    label: str,
    *,
    text: str | None = None,
    features: Sequence[str] | None = None,
    truth: str | None = None,
    noise: str | None = None,
    weight: float | None = None,
    alpha: float | None = None,
    probabilities: bool | None = None,
    draws: int = 200,
    chains: int = 2,
    random_state: int = 0,
    stage: Callable[[str], None] | None = None,
) -> Cleaned:
    """Suggest a label for every row of a table.

    Args:
        frame: the table; null cells are missing, and rows without a label get a suggestion too.
        label: column of the given labels.
        text: column of texts to learn from, instead of a table's columns.
        features: columns to learn from; all but ``label`` and ``truth`` by default.
        truth: column of true labels, only compared with.
        noise: ``"full"`` or ``"symmetric"``; by default symmetric for text, full for tables.
        weight: power of the features' evidence; 1 by default.
        alpha: smoothing of words, categories and binary columns; 0.1 for text, 1 for tables.
        probabilities: add a column for each class; by default with up to 10 classes.
        draws: posterior draws of each chain for the intervals; 0 for none.
        chains: number of chains.
        random_state: seed.
        stage: called with a few words at the start of every stage.

    Raises:
        DataError: the message names the argument.
    """
    tell = stage or (lambda words: None)
    frame = frame.reset_index(drop=True)
    _check_columns(frame, label, text, features, truth)
    if noise not in (None, "full", "symmetric"):
        raise DataError(f"noise: expected 'full' or 'symmetric', got {noise!r}")
    for name, value in (("weight", weight), ("alpha", alpha)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise DataError(f"{name}: expected a positive number, got {value}")
    labels = _Labels.of(frame[label], label)
    notes: list[str] = []
    tell("reading the columns")
    if text is not None:
        choice, x = _read_text(frame, text, label, truth)
    else:
        choice, x = _read_features(frame, label, features, truth)
    choice = replace(
        choice,
        noise=noise or choice.noise,
        alpha=choice.alpha if alpha is None else float(alpha),
        weight=WEIGHT if weight is None else float(weight),
    )
    missing = np.flatnonzero(labels.codes < 0)
    if len(missing):
        notes.append(f"{len(missing)} rows have no label; they get a suggestion too")
    # a row of nothing but missing cells says nothing: it is judged by its label alone
    use = np.ones(len(frame), bool)
    if isinstance(x, pd.DataFrame):
        use = x.notna().any(axis=1).to_numpy()
        if not use.all():
            notes.append(f"{(~use).sum()} rows have no features; only their label speaks for them")

    doubts: list[str] = []
    posterior = None
    with _collected(doubts):
        model = _estimator(choice, labels.names, random_state)
        tell("fitting the model")
        model.fit(x[use] if not use.all() else x, labels.text[use])
        if draws:
            tell("drawing from the posterior")
            options = {"draws": draws, "warmup": draws // 2, "chains": chains, "progress": False}
            if text is None:
                posterior = _draws(model, random_state, options, doubts)
            if posterior is None:
                used = x if use.all() else x[use]
                posterior = _noise_draws(model, used, labels.codes[use], random_state, options)
                notes.append("the intervals hold the features' parameters at their fitted values")
    resp = np.empty((len(frame), len(labels.names)))
    resp[use] = model.label_posterior_
    if not use.all():
        alone = np.vstack([model.inverse_noise_matrix_.T, model.class_prior_])
        resp[~use] = alone[labels.codes[~use]]
    resp /= resp.sum(1, keepdims=True)

    known = labels.codes >= 0
    right = resp[np.arange(len(resp)), np.maximum(labels.codes, 0)]
    p_wrong = np.where(known, 1 - right, np.nan)
    best = resp.argmax(1)
    suggested = labels.names[best]
    expected = float(p_wrong[known].mean())
    tell("checking the result")
    held_out = _disagreement(x, labels, random_state)
    doubts += _drifted(expected, held_out, labels, best, choice)

    scores = None
    if truth is not None:
        true = _as_text(frame[truth])
        both = known & pd.notna(true)
        if not both.any():
            raise DataError(f"truth: no row has a label in both {label!r} and {truth!r}")
        scores = Scores.of(labels.text[both], suggested[both], p_wrong[both], true[both])
    if probabilities is None:
        probabilities = len(labels.names) <= FEW_CLASSES
    added, columns = _added(frame, labels, resp, p_wrong, probabilities, notes)
    return Cleaned(
        added,
        columns,
        labels.text,
        suggested,
        p_wrong,
        expected,
        None if posterior is None else Noise.of(posterior, symmetric=choice.noise == "symmetric"),
        posterior,
        choice,
        scores,
        notes,
        doubts,
        model,
    )


# Columns ------------------------------------------------------------------------------------------


def _check_columns(
    frame: pd.DataFrame,
    label: str,
    text: str | None,
    features: Sequence[str] | None,
    truth: str | None,
) -> None:
    if not len(frame):
        raise DataError("frame: the table has no rows")
    asked = [("label", label), ("text", text), ("truth", truth)]
    for name, column in [*asked, *(("features", c) for c in features or ())]:
        if column is not None and column not in frame.columns:
            there = ", ".join(map(str, frame.columns[:12]))
            more = ", ..." if len(frame.columns) > 12 else ""
            raise DataError(f"{name}: there is no column {column!r}; the table has {there}{more}")
    if text is not None and features is not None:
        raise DataError("features: give either a column of text or features, not both")
    for name, used in (("text", [text] if text else []), ("features", list(features or ()))):
        for role, column in (("label", label), ("truth", truth)):
            if column in used:
                raise DataError(f"{name}: {column!r} is the column of the {role}, never a feature")
    if features is not None and not len(features):
        raise DataError("features: expected at least one column")
    if features is not None and len(set(features)) < len(features):
        raise DataError("features: a column is named twice")
    if truth == label:
        raise DataError(f"truth: {truth!r} is the column of the labels")


def _as_text(column: pd.Series) -> np.ndarray:
    """Labels as text, None where missing; whole numbers without a point."""
    values = column.astype(object).where(column.notna(), None)
    if pd.api.types.is_float_dtype(column.dtype):
        known = column.dropna()
        if (known == known.round()).all():
            values = values.map(lambda v: None if v is None else int(v))
    # a column of numbers with holes becomes floats again on the way, unless told
    values = values.astype(object)
    return np.asarray(
        [None if v is None or pd.isna(v) or v == "" else str(v) for v in values], object
    )


@dataclass(frozen=True)
class _Labels:
    """The given labels, as text and as codes.

    Attributes:
        text: ``(N,)`` as text, None where missing.
        codes: ``(N,)`` from 0, -1 where missing.
        names: ``(K,)`` names of the classes, in the order of their values.
        values: ``(K,)`` the classes as they stand in the table.
    """

    text: np.ndarray
    codes: np.ndarray
    names: np.ndarray
    values: pd.Series

    @classmethod
    def of(cls, column: pd.Series, label: str) -> _Labels:
        text = _as_text(column)
        known = np.flatnonzero(pd.notna(text))
        first = pd.Series(known, index=text[known])
        first = first[~first.index.duplicated()]
        if len(first) < 2:
            only = f": only {first.index[0]!r}" if len(first) else ""
            raise DataError(
                f"label: column {label!r} needs two classes or more, has {len(first)}{only}"
            )
        if len(first) > max(2, len(known) // 2):
            raise DataError(
                f"label: column {label!r} has {len(first)} different values in {len(known)} rows; "
                "expected the names of a few classes"
            )
        values = column.iloc[first.to_numpy()]
        # a table is sorted by value, so that 10 comes after 9
        with contextlib.suppress(TypeError):
            values = values.sort_values()
        names = text[values.index.to_numpy()].astype(str)
        codes = pd.Index(names).get_indexer(pd.Index(text))
        return cls(text, np.where(pd.isna(text), -1, codes), names, values)


def _read_text(frame: pd.DataFrame, text: str, label: str, truth: str | None) -> tuple[Choice, Any]:
    from nbmodels.text import text_features

    others = [c for c in frame.columns if c not in (text, label, truth)]
    left_out = {str(c): "only the text is used" for c in others}
    choice = Choice("NoisyMultinomialNB", {text: "words"}, TEXT_NOISE, TEXT_ALPHA, WEIGHT, left_out)
    return choice, text_features(frame[text]).x


def _read_features(
    frame: pd.DataFrame, label: str, features: Sequence[str] | None, truth: str | None
) -> tuple[Choice, pd.DataFrame]:
    asked = features is not None
    wanted = list(features) if features is not None else list(frame.columns)
    families: dict[str, str] = {}
    left_out: dict[str, str] = {}
    columns: dict[str, pd.Series] = {}
    for name in wanted:
        if name in (label, truth):
            continue
        family, reason = _family(frame[name], asked)
        if family is None:
            if asked:
                raise DataError(f"features: column {name!r} cannot be used: {reason}")
            left_out[str(name)] = reason
            continue
        families[str(name)] = family
        columns[str(name)] = _coded(frame[name], family)
        if family == "gaussian" and np.isinf(columns[str(name)]).any():
            row = int(np.flatnonzero(np.isinf(columns[str(name)]))[0])
            raise DataError(f"features: column {name!r} is infinite in row {row}")
    if not families:
        why = "; ".join(f"{n}: {r}" for n, r in list(left_out.items())[:4])
        raise DataError(f"features: no column to learn from{f' ({why})' if why else ''}")
    kinds = set(families.values())
    estimator = "NoisyBernoulliNB" if kinds == {"bernoulli"} else "NoisyMixedNB"
    choice = Choice(estimator, families, TABLE_NOISE, TABLE_ALPHA, WEIGHT, left_out)
    return choice, pd.DataFrame(columns)


def _family(column: pd.Series, asked: bool) -> tuple[str | None, str]:
    """What a column is taken for; or None, and why it cannot serve."""
    known = column.dropna()
    if not len(known):
        return None, "no value"
    try:
        distinct = known.nunique()
    except TypeError:
        return None, "its cells hold lists or the like"
    kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        return None, "dates and times have no emission"
    if distinct == 1:
        return None, "one value only"
    if pd.api.types.is_bool_dtype(kind):
        return "bernoulli", ""
    if pd.api.types.is_numeric_dtype(kind):
        if pd.api.types.is_complex_dtype(kind):
            return None, "complex numbers have no emission"
        if set(known.unique().tolist()) == {0, 1}:
            return "bernoulli", ""
        counted = pd.api.types.is_integer_dtype(kind) and len(known) > 2
        if not asked and counted and (np.abs(np.diff(known.to_numpy())) == 1).all():
            return None, "it numbers the rows"
        return "gaussian", ""
    if set(map(type, known.unique().tolist())) == {bool}:
        return "bernoulli", ""
    if not asked and distinct == len(known):
        return None, "all values differ, like an id's (for texts use --text)"
    if not asked and distinct > max(20, len(known) // 2):
        return None, "nearly all values differ (for texts use --text)"
    return "categorical", ""


def _coded(column: pd.Series, family: str) -> pd.Series:
    if family == "categorical":
        text = [None if pd.isna(v) else str(v) for v in column]
        return pd.Series(np.asarray(text, object), dtype=object)
    numbers = [np.nan if pd.isna(v) else float(v) for v in column]
    return pd.Series(np.asarray(numbers, float))


# Fitting ------------------------------------------------------------------------------------------


def _estimator(choice: Choice, names: np.ndarray, random_state: int) -> Any:
    import nbmodels

    options: dict[str, Any] = {
        "noise": choice.noise,
        "alpha": choice.alpha,
        "weight": choice.weight,
        "classes": names,
        "missing_label": np.nan,
        "random_state": random_state,
        "progress": False,
    }
    if choice.estimator == "NoisyMultinomialNB":
        return nbmodels.NoisyMultinomialNB(**options)
    options["missing_values"] = np.nan
    if choice.estimator == "NoisyBernoulliNB":
        return nbmodels.NoisyBernoulliNB(**options)
    families = {
        kind: [c for c, k in choice.families.items() if k == kind]
        for kind in dict.fromkeys(choice.families.values())
    }
    return nbmodels.NoisyMixedNB(families=families, **options)


def with_plain_prior(model: Any) -> Any:
    """The fitted estimator with the noise prior's pseudo-labels taken as they are, for its draws.

    The fit is a mode, so its Dirichlet has one more in every cell than the pseudo-labels asked for.
    For a mean that would be one pseudo-label for every other class, a tenth of all labels where 10
    classes have 100 each: intervals would miss the fit. Less one, the mean of the draws is where
    the mode was.
    """
    fitted = model.fit_
    channel = fitted.model["labels"]
    concentration = np.asarray(channel.prior.concentration)
    plain = replace(channel.prior, concentration=np.maximum(concentration - 1, 1e-3))
    out = copy.copy(model)
    out.fit_ = replace(fitted, model={**fitted.model, "labels": replace(channel, prior=plain)})
    return out


def _draws(model: Any, random_state: int, options: dict[str, Any], doubts: list[str]) -> Any | None:
    """Draws of everything; None, with a reason for doubt, where they do not stay with the fit."""
    complaints: list[str] = []
    with _collected(complaints):
        posterior = with_plain_prior(model).posterior("gibbs", random_state=random_state, **options)
    values = posterior["posterior"]
    shares, matrix = (
        values[n].mean(("chain", "draw")).values for n in ("class_prior", "noise_matrix")
    )
    drawn = 1 - float(shares @ np.diag(matrix))
    fitted = 1 - float(model.class_prior_ @ np.diag(model.noise_matrix_))
    if not complaints and abs(drawn - fitted) <= 0.05:
        return posterior
    why = f" ({complaints[0]})" if complaints else ""
    doubts.append(
        f"the fit is not the whole story: it has {fitted:.0%} of the labels wrong, draws of "
        f"all parameters have {drawn:.0%}{why}; the intervals shown stay with the fit, too narrow"
    )
    return None


def _noise_draws(
    model: Any, x: Any, given: np.ndarray, random_state: int, options: dict[str, Any]
) -> Any:
    """Draws of the noise matrix and the class shares, the evidence of the features held as fitted.

    For text, because drawing the probabilities of tens of thousands of words in every sweep takes
    too long; for tables, where the features would carry the draws away from the labels.
    """
    import jax
    import jax.numpy as jnp

    from nbmodels.channels.transition import pack_labels
    from nbmodels.component import Evidence, Given
    from nbmodels.model import PRIOR, Data
    from nbmodels.posterior import sample

    @jax.tree_util.register_dataclass
    @dataclass(frozen=True, kw_only=True)
    class Told(Given):
        """Evidence that is already known."""

        def evidence(self, natural: Any, data: Any) -> Evidence:
            return Evidence(data, jnp.zeros((1,), data.dtype))

    told = model.predict_log_proba(x) - model.class_log_prior_
    told -= told.max(1, keepdims=True)
    fitted = with_plain_prior(model).fit_
    nothing = np.ones(1)
    held = replace(
        fitted,
        model={**{n: fitted.model[n] for n in (PRIOR, "labels")}, "told": Told(prior=nothing)},
        params={**{n: fitted.params[n] for n in (PRIOR, "labels")}, "told": nothing},
    )
    codes = pack_labels(given, len(model.classes_))
    data = Data({PRIOR: None, "labels": codes, "told": jnp.asarray(told)}, jnp.ones(len(told)))
    return sample(held, data, jax.random.key(random_state), names=model.classes_, **options)


@contextlib.contextmanager
def _collected(into: list[str]) -> Iterator[None]:
    """Our own warnings become sentences; others pass."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield
    for one in caught:
        if issubclass(one.category, NbmodelsWarning):
            if str(one.message) not in into:
                into.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


# Doubts -------------------------------------------------------------------------------------------

#: Rows that the plain classifiers look at, and their folds.
_CHECKED_ROWS, _FOLDS = 4_000, 3


def _disagreement(x: Any, labels: _Labels, random_state: int) -> float | None:
    """Share of given labels that a plain classifier, not having seen them, contradicts."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.naive_bayes import ComplementNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rows = np.flatnonzero(labels.codes >= 0)
    if len(rows) < 10 * _FOLDS:
        return None
    if isinstance(x, pd.DataFrame):
        rng = np.random.default_rng(random_state)
        if len(rows) > _CHECKED_ROWS:
            rows = np.sort(rng.choice(rows, _CHECKED_ROWS, replace=False))
        numeric = [c for c in x if x[c].dtype.kind == "f"]
        symbolic = [c for c in x if c not in numeric]
        plain: Any = make_pipeline(
            make_column_transformer(
                (make_pipeline(SimpleImputer(), StandardScaler()), numeric),
                (OneHotEncoder(handle_unknown="ignore"), symbolic),
            ),
            LogisticRegression(max_iter=200),
        )
        sample = x.iloc[rows]
    else:
        plain, sample = ComplementNB(), x[rows]
    folds = KFold(_FOLDS, shuffle=True, random_state=random_state)
    y = labels.codes[rows]
    if any(len(np.unique(y[train])) < 2 for train, _ in folds.split(y)):
        return None
    # a quick look need not converge, nor have a value of every column in every fold
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        predicted = cross_val_predict(plain, sample, y, cv=folds)
    return float(np.mean(predicted != y))


def _drifted(
    expected: float, held_out: float | None, labels: _Labels, best: np.ndarray, choice: Choice
) -> list[str]:
    """Signs that the fit follows clusters of the features, or sticks to the labels."""
    out = []
    remedy = "try a smaller --weight"
    if choice.noise == "full":
        remedy += " or --noise symmetric"
    if expected > 0.5:
        out.append(
            f"{expected:.0%} of the labels would be wrong, which is hardly so: the fit has left "
            f"the labels and follows clusters of the features; {remedy}"
        )
    elif held_out is not None and expected > held_out + 0.05:
        out.append(
            f"{expected:.0%} of the labels would be wrong, but a plain classifier contradicts only "
            f"{held_out:.0%} of labels it has not seen: the fit believes its features too much; "
            f"{remedy}"
        )
    elif held_out is not None and choice.noise == "symmetric" and expected < held_out / 3 - 0.01:
        out.append(
            f"only {expected:.1%} of the labels would be wrong, while a plain classifier "
            f"contradicts {held_out:.0%} of labels it has not seen: errors may have a direction "
            "(one class mistaken for another), which one error rate cannot tell; compare "
            "--noise full, or a larger --weight"
        )
    given = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.names))
    kept = np.bincount(best, minlength=len(labels.names))
    gone = np.flatnonzero((given >= 10) & (kept < 0.2 * given))
    if len(gone):
        some = ", ".join(f"{labels.names[k]} ({given[k]} to {kept[k]})" for k in gone[:6])
        out.append(
            f"these classes have all but vanished from the suggestions: {some}; do not take their "
            "rows' suggestions as they are"
        )
    return out


# Results ------------------------------------------------------------------------------------------


def _added(
    frame: pd.DataFrame,
    labels: _Labels,
    resp: np.ndarray,
    p_wrong: np.ndarray,
    probabilities: bool,
    notes: list[str],
) -> tuple[pd.DataFrame, dict[str, str]]:
    taken = set(map(str, frame.columns))
    renamed = []

    def free(name: str) -> str:
        new, count = name, 2
        while new in taken:
            new, count = f"{name}_{count}", count + 1
        if new != name:
            renamed.append(f"{name} → {new}")
        taken.add(new)
        return new

    best = resp.argmax(1)
    columns = {n: free(n) for n in ("suggested_label", "p_label_wrong", "p_suggested")}
    out = {
        columns["suggested_label"]: labels.values.iloc[best].reset_index(drop=True),
        columns["p_label_wrong"]: pd.Series(p_wrong).round(6),
        columns["p_suggested"]: pd.Series(resp.max(1)).round(6),
    }
    if pd.api.types.is_float_dtype(labels.values.dtype) and not any("." in n for n in labels.names):
        # whole numbers, floats only because some are missing
        out[columns["suggested_label"]] = out[columns["suggested_label"]].astype("int64")
    if probabilities:
        for k, name in enumerate(labels.names):
            out[free(f"p_{name}")] = pd.Series(resp[:, k]).round(6)
    if renamed:
        notes.append(f"columns of these names were there already: {', '.join(renamed)}")
    return pd.DataFrame(out), columns


# Files --------------------------------------------------------------------------------------------

SUFFIXES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Table:
    """A table as it stands in a file.

    Attributes:
        path: where it came from.
        frame: its values, typed, null where missing.
        raw: what is written back: cells as text for CSV, an Arrow table for Parquet.
    """

    path: Path
    frame: pd.DataFrame
    raw: Any


def read_table(path: Path) -> Table:
    """Read a CSV, TSV or Parquet file.

    Raises:
        DataError: it is not there, or not such a table.
    """
    if not path.exists():
        raise DataError(f"FILE: there is no file {path}")
    if not path.is_file():
        raise DataError(f"FILE: {path} is not a file")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"FILE: {path} is neither .csv, .tsv nor .parquet")
    try:
        table = _read_parquet(path) if suffix == ".parquet" else _read_csv(path)
    except OSError as error:
        raise DataError(f"FILE: {path} cannot be read: {error.strerror or error}") from error
    if not len(table.frame):
        raise DataError(f"FILE: {path} has no rows")
    return table


def _read_csv(path: Path) -> Table:
    options: dict[str, Any] = {
        "sep": "\t" if path.suffix.lower() == ".tsv" else ",",
        "index_col": False,
        "keep_default_na": False,
    }
    try:
        # a row longer than the header would be cut; better no table than a wrong one
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            raw = pd.read_csv(path, dtype=str, **options)
            frame = pd.read_csv(path, na_values=list(MISSING), low_memory=False, **options)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
        words = " ".join(str(error).split())
        raise DataError(f"FILE: {path} is not a table: {words}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"FILE: {path} is not a table in UTF-8") from error
    return Table(path, frame, raw)


def _read_parquet(path: Path) -> Table:
    import pyarrow
    import pyarrow.parquet

    try:
        raw = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise DataError(f"FILE: {path} is not a Parquet table") from error
    if len(set(raw.column_names)) < len(raw.column_names):
        raise DataError(f"FILE: {path} has two columns of the same name")
    return Table(path, raw.to_pandas(ignore_metadata=True), raw)


def check_output(path: Path, *, overwrite: bool, name: str = "--out") -> None:
    """Refuse, before any work, an output that exists or cannot be written.

    Raises:
        DataError: the message names the argument.
    """
    if path.exists() and not overwrite:
        raise DataError(f"{name}: {path} exists; choose another, or add --overwrite")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise DataError(f"{name}: there is no directory {parent}")
    try:
        # the only sure way to know; permissions alone do not tell of full or read-only disks
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        raise DataError(f"{name}: cannot write to {parent}: {error.strerror}") from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path that takes the place of ``path`` if all goes well, and is gone if not."""
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=".", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp's files are private; give the mode that an ordinary new file would have
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_table(table: Table, added: pd.DataFrame, path: Path) -> None:
    """Write the input's rows and columns, as they were, followed by the new columns."""
    suffix = path.suffix.lower()
    with replacing(path) as temporary:
        if suffix != ".parquet":
            raw = table.raw if isinstance(table.raw, pd.DataFrame) else table.frame
            both = pd.concat([raw, added.set_axis(raw.index)], axis=1)
            both.to_csv(temporary, index=False, sep="\t" if suffix == ".tsv" else ",")
            return
        import pyarrow
        import pyarrow.parquet

        arrow = table.raw
        if isinstance(arrow, pd.DataFrame):
            arrow = pyarrow.Table.from_pandas(table.frame, preserve_index=False)
        for name in added:
            column = pyarrow.Array.from_pandas(added[name])
            arrow = arrow.append_column(str(name), column)
        pyarrow.parquet.write_table(arrow, temporary)
