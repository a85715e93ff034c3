"""Figures of an answer to a task."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from floor_worlds.answers import Answer
from floor_worlds.base import Task

#: By so much a diagonal entry may be off where there is no interval, and the upper end from which
#: on an interval holds a rate of one, which no central interval does.
_OFF, _ONE = 0.1, 0.99


def realised(task: Task) -> np.ndarray:
    """``(K,)`` share of right labels among those of each true class; NaN where there is none."""
    if task.kind == "votes":
        true, given = task.true[task.x["task"]], task.x["label"].to_numpy()
    else:
        true, given = task.true, task.given
    known = (given >= 0) & (true >= 0)
    counts = np.bincount(true[known], minlength=task.k)
    right = np.bincount(true[known], given[known] == true[known], task.k)
    return np.where(counts > 0, right / np.maximum(counts, 1), np.nan)


def figures(task: Task, answer: Answer) -> dict[str, Any]:
    """Measures of an answer by name.

    ``labels`` is the accuracy of the corrected labels and ``new`` that of predictions of new items;
    ``recall`` that of the rarest class among new items, or training items where none are new;
    ``constant`` says that all predictions are one class, ``chance`` how often the most frequent one
    is right; ``gap`` is the mean error of the noise matrix's diagonal, ``far`` says that most of it
    is wrong by more than 0.1 and ``off`` that most is outside of its 90 % intervals (where there
    are none, as ``far``); ``auc`` is that of finding the wrong labels; ``kept`` is the share of
    its right labels that a class keeps, of the class that keeps the least.
    """
    shown = (task.given >= 0) & (task.true >= 0)
    labels, true = answer.labels[shown], task.true[shown]
    said, sought = (labels, true) if answer.new is None else (answer.new, task.y_new)
    rarest = np.bincount(task.true[task.true >= 0], minlength=task.k).argmin()
    of_rarest = sought == rarest
    # the labels as they are say nothing of new items, and are compared with no recall of these
    comparable = of_rarest.any() and (answer.new is not None or task.y_new is None)
    recall = np.mean(said[of_rarest] == rarest) if comparable else np.nan
    out: dict[str, Any] = {
        "labels": np.mean(labels == true),
        "new": np.nan if answer.new is None else np.mean(answer.new == task.y_new),
        "recall": recall,
        "constant": len(np.unique(said)) == 1,
        "chance": np.bincount(sought).max() / len(sought),
        "gap": np.nan,
        "far": False,
        "off": False,
        "kept": _kept(labels, true, task.given[shown]),
        "auc": np.nan,
        "warned": "; ".join(answer.warned),
        "failed_checks": "; ".join(answer.failed_checks),
        "stated": "; ".join(answer.stated),
        "chosen": answer.chosen,
    }
    wrong = task.given[shown] != true
    if answer.suspicion is not None and 0 < wrong.sum() < len(wrong):
        out["auc"] = roc_auc_score(wrong, answer.suspicion[shown])
    if answer.diagonal is not None:
        truth = realised(task)
        off = np.abs(answer.diagonal - truth)
        known = ~np.isnan(off)
        out["gap"], out["far"] = off[known].mean(), np.mean(off[known] > _OFF) > 0.5
        out["off"] = out["far"]
        if answer.interval is not None:
            out["off"] = np.mean(_outside(truth, answer.interval)[known]) > 0.5
    return out


def _kept(labels: np.ndarray, true: np.ndarray, given: np.ndarray) -> float:
    """Share of its right labels that a class keeps, of the class that keeps the least."""
    right = given == true
    return min(
        (float(np.mean(labels[right & (true == j)] == j)) for j in set(true[right])), default=1
    )


def _outside(rates: np.ndarray, interval: np.ndarray) -> np.ndarray:
    """``(K,)`` whether rates of right labels lie outside of their intervals."""
    low, high = interval.T
    return (rates < low) | (rates > np.where(high > _ONE, 1, high))
