"""Label correction for a table: the work behind ``nbmodels clean``.

:func:`clean` takes a data frame and prints nothing. What it reports of the labels is what the
estimator reports: :meth:`corrected_labels`, :meth:`verdict` and :meth:`second_opinion`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from nbmodels import Joint
from nbmodels.cli.draws import Noise, collected, noise_draws
from nbmodels.cli.options import EstimatorName
from nbmodels.cli.roles import checked_classes, compared_rows, names_of_groups, repeated_items
from nbmodels.cli.wording import numbered, worded
from nbmodels.data.annotations import vote_columns
from nbmodels.data.labellers import labeller_columns, unlike_labellers
from nbmodels.data.labels import LabelColumn, as_text, spelt_as
from nbmodels.data.user_table import (
    RESULTS,
    Choice,
    check_columns,
    like_votes,
    read_features,
    read_text,
    results_of_clean,
    texts_left_out,
)
from nbmodels.diagnostics.confident_learning import SecondOpinion
from nbmodels.diagnostics.noise_range import NoiseRange
from nbmodels.diagnostics.share_wrong import ShareLimits, share_limits
from nbmodels.errors import DataError, counted

#: Labels from which on there is a second opinion.
_LEAST_ROWS = 50
#: Why columns that name who gave each label are not learned from.
_OF_LABELLERS = (
    "it seems to name who gave each label, and would explain their errors; use --groups if they "
    "share errors, or --features if it describes the items"
)
#: Up to so many classes the corrected table has a column of probabilities for each.
FEW_CLASSES = 10


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
        checked: number of rows that are left out, since they were checked by hand.
    """

    rows: int
    before: float
    after: float
    auc: float | None
    errors: int
    changed: int
    found: int
    mended: int
    checked: int = 0

    @classmethod
    def of(cls, given: Any, suggested: Any, rank: Any, truth: Any, checked: int = 0) -> Scores:
        """From four columns; rows without a given label, and checked ones, are left out before."""
        from sklearn.metrics import roc_auc_score

        given, suggested, truth = (np.asarray(a) for a in (given, suggested, truth))
        wrong, changed = given != truth, suggested != given
        both = 0 < wrong.sum() < len(wrong)
        return cls(
            len(truth),
            float(np.mean(~wrong)),
            float(np.mean(suggested == truth)),
            float(roc_auc_score(wrong, -np.asarray(rank, float))) if both else None,
            int(wrong.sum()),
            int(changed.sum()),
            int((changed & wrong).sum()),
            int((changed & (suggested == truth)).sum()),
            checked,
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
    """Result of :func:`clean`.

    Attributes:
        added: the new columns, one row for each row of the input.
        columns: name in ``added`` of ``suggested_label``, ``p_label_wrong``, ``p_suggested`` and
            ``check_rank``.
        given: ``(N,)`` given labels as text, None where missing.
        suggested: ``(N,)`` suggested labels as text.
        p_wrong: ``(N,)`` probability that the given label is wrong, NaN where missing.
        rank: ``(N,)`` 1 for the label to check first, NaN where missing.
        expected_wrong: expected share of wrong labels among the given ones of rows with features.
        noise: the noise matrix with intervals; None without draws.
        ends: both ends of the noise that the labels allow; None without draws, or with few rows.
        held: where the truth is known, whether the ends hold its share of wrong labels and each
            class's share of right ones.
        posterior: ArviZ ``DataTree`` of the draws, or None.
        choice: how the columns were modelled.
        scores: comparison with the truth, where there is a column of it.
        second: the noise matrix by confident learning beside ours; None with too few rows.
        notes: what else to know, as sentences.
        warnings: why results may be unreliable, as sentences.
        model: the fitted estimator.
    """

    added: pd.DataFrame
    columns: dict[str, str]
    given: np.ndarray
    suggested: np.ndarray
    p_wrong: np.ndarray
    rank: np.ndarray
    expected_wrong: float
    noise: Noise | None
    ends: NoiseRange | None
    held: tuple[bool, np.ndarray] | None
    posterior: Any
    choice: Choice
    scores: Scores | None
    second: SecondOpinion | None
    notes: list[str]
    warnings: list[str]
    model: Any

    @property
    def noisy(self) -> float:
        """Probability that labels are noisy at all."""
        return float(self.model.fitted_.noisy)

    @property
    def limits(self) -> ShareLimits:
        """What limits the share of wrong labels, and whether there is an estimate of it at all."""
        return share_limits(self.model.fitted_)


def clean(
    frame: pd.DataFrame,
    label: str,
    *,
    text: str | None = None,
    features: Sequence[str] | None = None,
    groups: str | None = None,
    truth: str | None = None,
    checked: Mapping[int, str] | None = None,
    estimator: str = EstimatorName.naive_bayes,
    noise: str | None = None,
    training: str | None = None,
    weight: float | None = None,
    alpha: float | None = None,
    probabilities: bool | None = None,
    draws: int = 200,
    keep: Literal["parameters", "small"] = "parameters",
    chains: int = 2,
    random_state: int = 0,
    stage: Callable[[str], None] | None = None,
) -> Cleaned:
    """Suggest a label for every row of a table.

    Args:
        frame: the table; null cells are missing, and rows without a label get a suggestion too.
        label: column of the given labels.
        text: column of texts to learn from, instead of a table's columns.
        features: columns to learn from; all but ``label``, ``truth`` and ``groups`` by default.
        groups: column that names what rows belong to, whose labels may share an error.
        truth: column of true labels, only compared with.
        checked: true classes, as text, by row from 0; these rows are known in the fit, and left out
            where suggestions are compared with the truth.
        estimator: ``"naive_bayes"`` for naive Bayes of the columns' kinds, or ``"auto"`` for
            :class:`~nbmodels.AutoNoisyClassifier`, which takes no ``training``, ``weight`` or
            ``alpha``.
        noise: ``"full"``, ``"symmetric"`` or ``"pooled"``, the default.
        training: ``"joint"`` for the papers' joint model, ``"cross_fit"`` for features that are
            fitted to the given labels alone; by default the joint model where it passes its checks,
            else cross-fitting with as many self-training rounds as held-out labels reward.
        weight: power of the features' likelihood in a joint model.
        alpha: smoothing of words, categories and binary columns; chosen by default.
        probabilities: add a column for each class; by default with up to 10 classes.
        draws: posterior draws of each chain for the intervals; 0 for none.
        keep: what is kept of them, see :func:`nbmodels.posterior.sample`.
        chains: number of chains.
        random_state: seed.
        stage: called with the name of every stage at its start.

    Raises:
        DataError: the message names the argument.
    """
    begin = stage or (lambda name: None)
    frame = frame.reset_index(drop=True)
    check_columns(frame, label, text, features, truth)
    if features is None and groups is None:
        _refuse_votes(frame.drop(columns=[label]), text)
    group_names = None
    if groups is not None:
        group_names = names_of_groups(frame, groups, (label, text, truth, *(features or ())))
        frame = frame.drop(columns=[groups])
    labellers = labeller_columns(frame.drop(columns=[label]))
    _check_settings(noise, training, weight, alpha)
    _check_estimator(estimator, training=training, weight=weight, alpha=alpha)
    labels = LabelColumn.of(frame[label], label)
    notes: list[str] = []
    trusted = checked_classes(checked or {}, labels)
    true = None if truth is None else spelt_as(as_text(frame[truth]), labels.names)
    compared, cautions = compared_rows(labels, true, trusted, label, truth)
    cautions.extend(labels.seen_once((checked or {}).values()))
    item = repeated_items(frame, label, (text, truth))
    if item is not None:
        cautions.append(
            f"all rows of a value of {item!r} have the same label: if rows are what users did with "
            "items, no label would be found wrong here; clean takes a row an item, and users' "
            "interactions are for CollaborativeClassifier, in Python"
        )
    begin("reading the columns")
    reasons = dict.fromkeys(results_of_clean(frame, labels.names), "a result of clean")
    reasons |= dict.fromkeys(labellers, _OF_LABELLERS)
    if text is not None:
        choice, x = read_text(frame, text, label, truth)
    else:
        choice, x = read_features(frame, label, features, truth, reasons)
    notes.extend(choice.remarks)
    notes.extend(filter(None, [like_votes(frame, choice.families, labels.names)]))
    if estimator == EstimatorName.auto:
        choice = replace(choice, estimator="AutoNoisyClassifier")
    given: dict[str, Any] = {"noise": noise, "training": training, "alpha": alpha}
    if weight is not None:
        given["training"] = Joint(weight=weight)
    known = labels.codes >= 0
    if not known.all():
        unused = counted(
            (~known).sum(), "row has no label; it gets", "rows have no label; they get"
        )
        notes.append(f"{unused} a suggestion too")
    notes.extend(labels.odd_names())
    # a row of nothing but missing cells takes no part in the fit
    use = np.ones(len(frame), bool)
    if isinstance(x, pd.DataFrame):
        use = x.notna().any(axis=1).to_numpy()
        if not use.all():
            unused = counted(
                (~use).sum(), "row has no features; only its", "rows have no features; only their"
            )
            notes.append(f"{unused} label is used")
            x = x[use]

    posterior = None
    of_fit: list[str] = []
    with collected(of_fit):
        model = _estimator(choice, given, labels.names, random_state)
        begin("fitting the model")
        here = trusted[use]
        model.fit(
            x,
            labels.text[use],
            trusted=here if pd.notna(here).any() else None,
            groups=None if group_names is None else group_names[use],
        )
        choice = replace(choice, settings=_settings(model))
        if draws:
            begin("drawing from the posterior")
            options: dict[str, Any] = {
                "draws": draws,
                "warmup": draws // 2,
                "chains": chains,
                "progress": False,
            }
            options["keep"] = keep
            options["random_state"] = random_state
            posterior, note = noise_draws(model, x, options, of_fit)
            notes.extend(note)
    places = (np.flatnonzero(use) + 1).tolist()
    cautions.extend(numbered(caution, places) for caution in of_fit)
    cautions.extend(
        f"{a.sentence}; compare {', or '.join(a.remedies)}" for a in model.verdict().advice
    )
    if text is None:
        informative = share_limits(model.fitted_).estimated
        cautions.extend(texts_left_out(frame, choice, informative=informative))
    resp, suggested, p_wrong, rank = _suggestions(model, labels, use, trusted)
    begin("checking the result")
    second = _second_opinion(model, x, labels.text[use])

    scores = held = ends = None
    if posterior is not None and model.fitted_.separable is not None:
        ends = model.noise_range(posterior)
    if true is not None:
        labels_there, true_there = labels.text[compared], true[compared]
        both = (labels.codes >= 0) & pd.notna(true)
        about = labels_there, suggested[compared], rank[compared], true_there
        scores = Scores.of(*about, int((both & ~compared).sum()))
        held = None if ends is None else ends.holds(labels_there, true_there)
    if probabilities is None:
        probabilities = len(labels.names) <= FEW_CLASSES
    for column, names in [(groups, group_names), *((one, frame[one]) for one in labellers)]:
        if names is not None:
            notes.extend(filter(None, [unlike_labellers(p_wrong, np.asarray(names), str(column))]))
    added, columns = added_columns(frame, labels, resp, p_wrong, rank, probabilities, notes)
    noise_matrix = None
    if posterior is not None:
        noise_matrix = Noise.of(posterior, symmetric=choice.settings["noise"] == "symmetric")
    return Cleaned(
        added,
        columns,
        labels.text,
        suggested,
        p_wrong,
        rank,
        float(p_wrong[known & use].mean()),
        noise_matrix,
        ends,
        held,
        posterior,
        choice,
        scores,
        second,
        notes,
        [worded(caution) for caution in cautions],
        model,
    )


def _refuse_votes(frame: pd.DataFrame, text: str | None) -> None:
    """Raises: DataError: each row seems to be the vote of one annotator on an item."""
    found = vote_columns(frame, text)
    if found:
        tasks, workers = (
            " or ".join(dict.fromkeys(map(repr, one))) for one in zip(*found, strict=True)
        )
        asked = " or ".join(f"--task {shlex.quote(t)} --worker {shlex.quote(w)}" for t, w in found)
        others = "--features A,B,..." if text is None else f"--groups {shlex.quote(found[0][0])}"
        raise DataError(
            f"label: each row seems to be a vote, on an item of {tasks} by an annotator of "
            f"{workers}; {asked} learns how far to trust each of them, and "
            f"{others} takes each row for an item of its own"
        )


def _check_settings(noise: Any, training: Any, weight: Any, alpha: Any) -> None:
    """Raises: DataError: a setting that is unknown or out of range."""
    if noise not in (None, "full", "symmetric", "pooled"):
        raise DataError(f"noise: expected 'full', 'symmetric' or 'pooled', got {noise!r}")
    if training not in (None, "joint", "cross_fit"):
        raise DataError(f"training: expected 'joint' or 'cross_fit', got {training!r}")
    if weight is not None and training == "cross_fit":
        raise DataError("weight: training 'cross_fit' learns the features' weight; give only one")
    for name, value in (("weight", weight), ("alpha", alpha)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise DataError(f"{name}: expected a positive number, got {value}")


def _check_estimator(estimator: str, **of_naive_bayes: Any) -> None:
    """Raises: DataError: an unknown estimator, or settings that it has not."""
    if estimator not in tuple(EstimatorName):
        raise DataError(f"estimator: expected 'naive_bayes' or 'auto', got {estimator!r}")
    for name, value in of_naive_bayes.items():
        if estimator == EstimatorName.auto and value is not None:
            raise DataError(f"{name}: estimator 'auto' chooses it; give only one of the two")


def _suggestions(
    model: Any, labels: LabelColumn, use: np.ndarray, trusted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Class probabilities, suggested labels, P(given label is wrong) and rank of every row.

    Args:
        model: fitted to the rows that ``use`` marks; of the others only the label is used.
        labels: of all rows.
        use: ``(N,)`` rows of the fit.
        trusted: ``(N,)`` true classes of checked rows, None elsewhere.
    """
    corrected = model.corrected_labels()
    resp = np.empty((len(use), len(labels.names)))
    suggested, p_wrong = np.empty(len(use), object), np.empty(len(use))
    rank = np.full(len(use), np.nan)
    resp[use] = model.label_posterior_
    suggested[use], p_wrong[use] = corrected["suggested"], corrected["p_wrong"]
    rank[use] = corrected["rank"].to_numpy(float, na_value=np.nan)
    if not use.all():
        codes = labels.codes[~use]
        resp[~use] = np.vstack([model.inverse_noise_matrix_.T, model.class_prior_])[codes]
        for row in np.flatnonzero(~use & pd.notna(trusted)):
            resp[row] = labels.names == trusted[row]
        suggested[~use] = labels.names[resp[~use].argmax(1)]
        right = resp[~use][np.arange(len(codes)), np.maximum(codes, 0)]
        p_wrong[~use] = np.where(codes >= 0, 1 - right, np.nan)
        others = pd.Series(p_wrong[~use]).rank(ascending=False, method="first")
        rank[~use] = np.isfinite(rank).sum() + others
    return resp / resp.sum(1, keepdims=True), suggested.astype(labels.names.dtype), p_wrong, rank


def _settings(model: Any) -> dict[str, Any]:
    """Every setting with the value that it had in the fit."""
    names = ("noise", "alpha", "size_power", "weight")
    settings = model.fitted_.settings
    chosen = {"emission": model.emission_} if hasattr(model, "emission_") else {}
    return {n: settings[n] for n in names if n in settings} | dict(model.chosen_) | chosen


def _estimator(choice: Choice, given: dict[str, Any], names: np.ndarray, random_state: int) -> Any:
    import nbmodels
    from nbmodels import Solver

    options: dict[str, Any] = {
        **{name: value for name, value in given.items() if value is not None},
        "classes": names,
        "missing_label": np.nan,
        "random_state": random_state,
        "solver": Solver(progress=False),
    }
    if choice.estimator == "NoisyMultinomialNB":
        return nbmodels.NoisyMultinomialNB(**options)
    options["missing_values"] = np.nan
    if choice.estimator == "AutoNoisyClassifier":
        return nbmodels.AutoNoisyClassifier(**options)
    if choice.estimator == "NoisyBernoulliNB":
        return nbmodels.NoisyBernoulliNB(**options)
    families = {
        kind: [c for c, k in choice.families.items() if k == kind]
        for kind in dict.fromkeys(choice.families.values())
    }
    return nbmodels.NoisyMixedNB(families=families, **options)


def _second_opinion(model: Any, x: Any, given: np.ndarray) -> SecondOpinion | None:
    """By naive Bayes for words, where it is quick, and by the reference classifier for columns."""
    from sklearn.naive_bayes import ComplementNB

    if np.sum(pd.notna(given)) < _LEAST_ROWS:
        return None
    plain = None if isinstance(x, pd.DataFrame) else ComplementNB()
    return model.second_opinion(x, given, plain)


def added_columns(
    frame: pd.DataFrame,
    labels: LabelColumn,
    resp: np.ndarray,
    p_wrong: np.ndarray,
    rank: np.ndarray,
    probabilities: bool,
    notes: list[str],
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The new columns, and their names: others than usual where a table has them already."""
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
    columns = {n: free(n) for n in RESULTS}
    out = {
        columns["suggested_label"]: labels.values.iloc[best].reset_index(drop=True),
        columns["p_label_wrong"]: pd.Series(p_wrong).round(6),
        columns["p_suggested"]: pd.Series(resp.max(1)).round(6),
        columns["check_rank"]: pd.Series(rank).astype("Int64"),
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
