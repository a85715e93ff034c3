"""Votes of several annotators: the work behind ``--task --worker`` of the command line.

A row of the table is a vote, and what is corrected is an item: by :class:`nbmodels.DawidSkene`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.cli.clean import FEW_CLASSES, Scores, added_columns
from nbmodels.cli.draws import collected
from nbmodels.cli.roles import compared_rows
from nbmodels.cli.wording import worded
from nbmodels.data.labels import LabelColumn, as_text, spelt_as
from nbmodels.errors import DataError, counted
from nbmodels.fitting.annotator_fits import ALIKE

#: Name in the place of grades that are numbers, whose order is known.
NUMBERS = "numbers"


@dataclass(frozen=True)
class CleanedVotes:
    """Result of :func:`clean_votes`.

    Attributes:
        items: the corrected table, one row an item, in the order of their first votes.
        workers: the annotators' report, see :meth:`nbmodels.DawidSkene.worker_report`.
        n_votes: number of votes.
        majority: ``(N,)`` majority of each item's votes, as text.
        suggested: ``(N,)`` suggested labels, as text.
        p_wrong: ``(N,)`` probability that the majority is wrong.
        rank: ``(N,)`` 1 for the item to check first.
        scores: comparison with the truth, where there is a column of it.
        verdict: whether the fit passed its checks, as a sentence; no warning repeats it.
        passed: whether it did, and warned of nothing else.
        alike: whether one accuracy stands for all annotators, as votes do not show their own.
        notes: what else to know, as sentences.
        warnings: why results may be unreliable, as sentences.
        posterior: ArviZ ``DataTree`` of the draws, or None.
        model: the fitted estimator.
        corrected: its corrected labels, in the order of ``items``.
    """

    items: pd.DataFrame
    workers: pd.DataFrame
    n_votes: int
    majority: np.ndarray
    suggested: np.ndarray
    p_wrong: np.ndarray
    rank: np.ndarray
    scores: Scores | None
    verdict: str
    passed: bool
    alike: bool
    notes: list[str]
    warnings: list[str]
    posterior: Any
    model: Any
    corrected: pd.DataFrame


def clean_votes(
    frame: pd.DataFrame,
    label: str,
    task: str,
    worker: str,
    *,
    truth: str | None = None,
    checked: Mapping[str, str] | None = None,
    grades: Sequence[str] | None = None,
    probabilities: bool | None = None,
    draws: int = 0,
    random_state: int = 0,
    stage: Callable[[str], None] | None = None,
) -> CleanedVotes:
    """Suggest a label for every item of a table of votes.

    Args:
        frame: the table, a row a vote; rows without a label are no votes.
        label: column of the votes.
        task: column that names the items.
        worker: column that names the annotators.
        truth: column of the items' true labels, only compared with.
        checked: true classes by item, both as text; these items are known in the fit, and left out
            where suggestions are compared with the truth.
        grades: the classes from the lowest to the highest, where they are grades of an ordered
            scale, or :data:`NUMBERS` alone; None where they are none.
        probabilities: add a column for each class; by default with up to 10 classes.
        draws: posterior draws of each chain; 0 for none.
        random_state: seed.
        stage: called with the name of every stage at its start.

    Raises:
        DataError: the message names the argument.
    """
    from nbmodels import DawidSkene, Solver

    begin = stage or (lambda name: None)
    frame = frame.reset_index(drop=True)
    _check_columns(frame, {"label": label, "task": task, "worker": worker, "truth": truth})
    labels = _of_grades(LabelColumn.of(frame[label], label), grades)
    cast = labels.codes >= 0
    notes = []
    if not cast.all():
        note = counted((~cast).sum(), "row has no label; it is", "rows have no label; they are")
        notes.append(f"{note} no {'vote' if (~cast).sum() == 1 else 'votes'}")
    notes.extend(labels.odd_names())
    table = {"task": frame[task], "worker": frame[worker], "label": labels.text}
    votes = pd.DataFrame(table)[cast]
    true_names = None
    if truth is not None:
        true_names = pd.Series(spelt_as(as_text(frame[truth]), labels.names))
        _check_truth(true_names, frame[task])
    if labels.are_numbers:  # in an order, so that a fit can say whether they seem to be grades
        votes["label"] = pd.Categorical(votes["label"], labels.names, ordered=True)
    trusted = _trusted(checked or {}, votes["task"], labels)
    cautions = labels.seen_once(trusted.values())
    model = DawidSkene(
        classes=labels.names,
        ordered=grades is not None,
        random_state=random_state,
        solver=Solver(progress=False),
    )
    posterior = None
    with collected(cautions):
        begin("fitting the model")
        model.fit(votes, trusted=trusted or None)
        if draws:
            begin("drawing from the posterior")
            posterior = model.posterior(draws=draws, progress=False, random_state=random_state)
    labels = labels.in_order(model.classes_.tolist())  # unused ends of a scale are none of them
    order = pd.Index(model.tasks_).get_indexer(pd.unique(votes["task"]))
    found = model.corrected_labels().iloc[order].reset_index(drop=True)
    resp = model.label_posterior_[order]
    majority = found["given"].to_numpy(object)
    codes = pd.Index(labels.names).get_indexer(pd.Index(majority))
    p_wrong, rank = found["p_wrong"].to_numpy(float), found["rank"].to_numpy(float)
    suggested = labels.names[resp.argmax(1)]
    of_items = LabelColumn(majority, codes, labels.names, labels.values)
    scores = None
    if truth is not None and true_names is not None:
        known = true_names[cast]
        true = known.groupby(votes["task"], sort=False).first().loc[found["row"]].to_numpy(object)
        known_classes = np.array([trusted.get(one) for one in found["row"]], object)
        rows, doubts = compared_rows(of_items, true, known_classes, label, truth)
        cautions.extend(doubts)
        left_out = int((pd.notna(true) & ~rows).sum())
        scores = Scores.of(majority[rows], suggested[rows], rank[rows], true[rows], left_out)
    items = pd.DataFrame(
        {
            task: found["row"],
            "votes": found["votes"],
            "majority_label": labels.values.iloc[codes].reset_index(drop=True),
        }
    )
    if probabilities is None:
        probabilities = len(labels.names) <= FEW_CLASSES
    added, _ = added_columns(items, of_items, resp, p_wrong, rank, probabilities, notes)
    verdict = model.verdict()
    cautions = [one for one in cautions if not verdict.states(one)]
    cautions.extend(f"{a.sentence}; compare {', or '.join(a.remedies)}" for a in verdict.advice)
    return CleanedVotes(
        pd.concat([items, added], axis=1),
        model.worker_report(),
        len(votes),
        majority,
        suggested,
        p_wrong,
        rank,
        scores,
        worded(verdict.sentence),
        verdict.ok and not verdict.warned,
        _alike(model),
        notes,
        [worded(caution) for caution in cautions],
        posterior,
        model,
        found,
    )


def _alike(model: Any) -> bool:
    """Whether a fit to votes took all annotators to be alike."""
    at = model.fitted_.vote_dependence
    return at is not None and at.pooling == ALIKE


def _of_grades(labels: LabelColumn, grades: Sequence[str] | None) -> LabelColumn:
    """Labels whose classes are in the order of the grades, those that no vote is among them.

    Raises:
        DataError: a class that is no grade, a grade that is named twice, or labels that are no
            numbers.
    """
    if grades is None or (list(grades) == [NUMBERS] and labels.are_numbers):
        return labels
    shown = ", ".join(labels.names)
    if list(grades) == [NUMBERS]:
        raise DataError(f"--grades: the labels are no numbers; name them in their order: {shown}")
    if len(set(grades)) != len(grades) or not set(grades).issuperset(labels.names):
        raise DataError(f"--grades: expected each of {shown} once, got {', '.join(grades)}")
    return labels.in_order(grades)


def _trusted(checked: Mapping[str, str], tasks: pd.Series, labels: LabelColumn) -> dict[Any, str]:
    """True classes of checked items, by their ids.

    Raises:
        DataError: an item without votes, or a class that no vote is.
    """
    ids = dict(zip(as_text(tasks), tasks, strict=True))
    for item, name in checked.items():
        if item not in ids:
            raise DataError(f"checked: item {item!r} has no vote in the table")
        if name not in labels.names:
            raise DataError(f"checked: item {item!r} is {name!r}, which no vote is")
    return {ids[item]: name for item, name in checked.items()}


def _check_truth(true: pd.Series, tasks: pd.Series) -> None:
    """Raises: DataError: an item with two true labels."""
    known = true[true.notna().to_numpy()]
    first = known.groupby(tasks[known.index].to_numpy()).transform("first")
    odd = known.index[(known != first).to_numpy()]
    if len(odd):
        item, row = tasks[odd[0]], known.index[(tasks[known.index] == tasks[odd[0]]).to_numpy()][0]
        raise DataError(
            f"truth: item {str(item)!r} is {str(known[row])!r} in row {row + 1} and "
            f"{str(known[odd[0]])!r} in row {odd[0] + 1}"
        )


def _check_columns(frame: pd.DataFrame, roles: dict[str, str | None]) -> None:
    """Raises: DataError: a column that is not there, has two roles, or does not name each row."""
    taken: dict[str, str] = {}
    for role, column in roles.items():
        if column is None:
            continue
        if column not in frame.columns:
            raise DataError(f"{role}: there is no column {column!r}")
        if column in taken:
            raise DataError(f"{role}: {column!r} is the column of the {taken[column]}")
        taken[column] = role
        null = frame[column].isna().to_numpy()
        if role in ("task", "worker") and null.any():
            raise DataError(f"{role}: column {column!r} is empty in row {np.argmax(null) + 1}")
