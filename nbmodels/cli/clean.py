"""The job behind ``nbmodels clean``: from a table with doubtful labels to suggestions.

:func:`clean` takes a data frame and prints nothing.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.data.column_types import (
    Choice,
    Labels,
    as_text,
    check_columns,
    read_features,
    read_text,
)
from nbmodels.diagnostics.confident_learning import SecondOpinion
from nbmodels.diagnostics.doubts import disagreement, drifted
from nbmodels.errors import DataError, NbmodelsWarning

#: Probability that the intervals hold.
LEVEL = 0.9
#: Rows times classes from which on every sweep of a cut fit is kept.
_SWEEP_CELLS = 200_000
#: A second opinion is asked for from so many labels on.
_LEAST_ROWS = 50
#: Up to so many classes the corrected table has a column of probabilities for each.
FEW_CLASSES = 10


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
        second: the noise matrix by confident learning beside ours; None with too few rows.
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
    second: SecondOpinion | None
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
    feedback: str | None = None,
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
        noise: ``"full"``, ``"symmetric"`` or ``"pooled"``; chosen by held-out labels by default.
        feedback: ``"full"`` for the joint model of the papers, ``"cut"`` for features that learn
            from the given labels alone; by default they learn from what is found of the labels for
            as long as held-out labels reward it.
        weight: power of the features' evidence in a joint model.
        alpha: smoothing of words, categories and binary columns; chosen by default.
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
    check_columns(frame, label, text, features, truth)
    if noise not in (None, "full", "symmetric", "pooled"):
        raise DataError(f"noise: expected 'full', 'symmetric' or 'pooled', got {noise!r}")
    if feedback not in (None, "full", "cut"):
        raise DataError(f"feedback: expected 'full' or 'cut', got {feedback!r}")
    if weight is not None and feedback == "cut":
        raise DataError("weight: a cut learns how far to believe the features; give one of the two")
    for name, value in (("weight", weight), ("alpha", alpha)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise DataError(f"{name}: expected a positive number, got {value}")
    labels = Labels.of(frame[label], label)
    notes: list[str] = []
    tell("reading the columns")
    if text is not None:
        choice, x = read_text(frame, text, label, truth)
    else:
        choice, x = read_features(frame, label, features, truth)
    asked = {"noise": noise, "feedback": feedback, "alpha": alpha, "weight": weight}
    if weight is not None:
        asked["feedback"] = "full"
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
    with collected(doubts):
        model = _estimator(choice, asked, labels.names, random_state)
        tell("fitting the model")
        model.fit(x[use] if not use.all() else x, labels.text[use])
        choice = replace(choice, settings=_settings(model))
        if draws:
            tell("drawing from the posterior")
            options = {"draws": draws, "warmup": draws // 2, "chains": chains, "progress": False}
            if "rounds" in choice.settings:
                # a sweep costs little without the features, and the calibration mixes slowly
                thin = int(np.clip(_SWEEP_CELLS / model.label_posterior_.size, 1, 10))
                posterior = model.posterior(
                    "gibbs", thin=thin, random_state=random_state, **options
                )
                notes.append("the intervals hold the features' parameters at their fitted values")
            elif text is None:
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
    held_out = disagreement(x, labels, random_state)
    doubts += drifted(expected, held_out, labels, best, choice)
    second = _second_opinion(model, x[use] if not use.all() else x, labels.text[use])

    scores = None
    if truth is not None:
        true = as_text(frame[truth])
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
        None
        if posterior is None
        else Noise.of(posterior, symmetric=choice.settings["noise"] == "symmetric"),
        posterior,
        choice,
        scores,
        second,
        notes,
        doubts,
        model,
    )


def _settings(model: Any) -> dict[str, Any]:
    """Every setting with the value that it had in the fit."""
    names = ("noise", "alpha", "size_power", "weight")
    return {n: getattr(model, n) for n in names} | dict(model.chosen_)


def _estimator(choice: Choice, asked: dict[str, Any], names: np.ndarray, random_state: int) -> Any:
    import nbmodels

    options: dict[str, Any] = {
        **{name: value for name, value in asked.items() if value is not None},
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


def _second_opinion(model: Any, x: Any, given: np.ndarray) -> SecondOpinion | None:
    """By a classifier that is quick for words, and assumes nothing of columns."""
    from sklearn.naive_bayes import ComplementNB

    if np.sum(pd.notna(given)) < _LEAST_ROWS:
        return None
    plain = None if isinstance(x, pd.DataFrame) else ComplementNB()
    return model.second_opinion(x, given, plain)


def _draws(model: Any, random_state: int, options: dict[str, Any], doubts: list[str]) -> Any | None:
    """Draws of everything; None, with a reason for doubt, where they do not stay with the fit."""
    complaints: list[str] = []
    with collected(complaints):
        posterior = model.posterior("gibbs", random_state=random_state, **options)
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

    from nbmodels.channels import ExternalEvidence
    from nbmodels.channels.transition import pack_labels
    from nbmodels.core.model import PRIOR, Data
    from nbmodels.posterior.sampling import about_mode, sample

    told = ExternalEvidence.pack(model.predict_log_proba(x) - model.class_log_prior_)
    beliefs = ExternalEvidence.of(len(model.classes_))
    fitted = about_mode(model.fit_)
    held = replace(
        fitted,
        model={**{n: fitted.model[n] for n in (PRIOR, "labels")}, "told": beliefs},
        params={**{n: fitted.params[n] for n in (PRIOR, "labels")}, "told": beliefs.prior},
    )
    codes = pack_labels(given, len(model.classes_))
    data = Data({PRIOR: None, "labels": codes, "told": told}, jnp.ones(len(told)))
    return sample(held, data, jax.random.key(random_state), names=model.classes_, **options)


@contextlib.contextmanager
def collected(into: list[str]) -> Iterator[None]:
    """Our own warnings become sentences; others pass."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield
    for one in caught:
        if issubclass(one.category, NbmodelsWarning):
            if str(one.message) not in into:
                into.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _added(
    frame: pd.DataFrame,
    labels: Labels,
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
