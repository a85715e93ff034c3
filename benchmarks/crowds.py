"""Votes of eleven real crowds: ours beside crowd-kit's, ``python benchmarks/crowds.py``.

Repeated votes of a worker on a task are dropped but for the last. ``shares`` are smoothed shares of
the votes, ``(count + 1/K) / (n + 1)``. Of methods that give no probabilities only the accuracy is
printed. No setting differs between the sets and no checked label is used. GLAD and MACE are passed
over on sets of more than ``--most`` votes. Seconds include compilation.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from nbmodels import DawidSkene, Solver

try:
    from real_data import DATA
except ImportError:  # run from elsewhere
    from benchmarks.real_data import DATA

SETS = (
    "weather_amt",
    "sentiment_amt",
    "entities_in",
    "entailment",
    "relevance_trec",
    "web_search",
    "sentiment_products",
    "adult",
    "faces",
    "dogs",
    "relevance_5",
)
_BINS, _LEAST = 10, 1e-12
_COLUMNS = ("method", "accuracy", "log-loss", "calibration", "confidence", "seconds")


def load(name):
    """Votes, and the true classes of some tasks."""
    votes = pd.read_csv(DATA / "crowd" / f"{name}_labels.csv")
    truth = pd.read_csv(DATA / "crowd" / f"{name}_truth.csv")
    last = votes.drop_duplicates(["task", "worker"], keep="last")
    return last, truth.set_index("task")["true_label"]


def scores(found, truth):
    """Accuracy, log-loss, calibration error and mean confidence of a frame of probabilities.

    A checked task without votes has equal probabilities.
    """
    p = found.reindex(truth.index).fillna(1 / found.shape[1]).to_numpy()
    y = found.columns.get_indexer(truth)
    right, sure = p.argmax(1) == y, p.max(1)
    inside = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(inside, right - sure, _BINS)
    loss = -np.log(np.maximum(p[np.arange(len(y)), y], _LEAST)).mean()
    return right.mean(), loss, np.abs(gaps).sum() / len(y), sure.mean()


def shares(votes, classes):
    table = pd.crosstab(votes["task"], votes["label"]).reindex(columns=classes, fill_value=0)
    return (table + 1 / len(classes)).div(table.sum(axis=1) + 1, axis=0)


def ours(**parameters):
    def run(votes, classes):
        model = DawidSkene(classes=classes, random_state=0, **parameters)
        model.set_params(solver__progress=False)
        model.fit(votes)
        return pd.DataFrame(model.label_posterior_, model.tasks_, model.classes_)

    return run


def theirs(name, **parameters):
    def run(votes, classes):
        from crowdkit import aggregation

        model = getattr(aggregation, name)(**parameters)
        if hasattr(model, "fit_predict_proba"):
            return model.fit_predict_proba(votes).reindex(columns=classes, fill_value=0)
        labels = model.fit_predict(votes)
        return pd.get_dummies(labels).reindex(columns=classes, fill_value=0).astype(float)

    return run


def wawa(votes, classes):
    """Votes weighted by the workers' agreement with the majority, as crowd-kit learns it.

    Its own prediction does not run under recent versions of scikit-learn.
    """
    from crowdkit.aggregation import Wawa

    skill = votes["worker"].map(Wawa().fit(votes).skills_)
    table = votes.assign(skill=skill).pivot_table("skill", "task", "label", "sum", fill_value=0.0)
    return table.div(table.sum(axis=1), axis=0).reindex(columns=classes, fill_value=0.0)


METHODS = {
    "shares": (shares, False),
    "nbmodels": (ours(), False),
    "nbmodels, independent votes": (ours(dependence=0.0), False),
    "nbmodels, shared prior": (ours(pooling="shared"), False),
    "nbmodels, 3 sub-types": (ours(subtypes=3), False),
    "nbmodels, maximum likelihood": (ours(solver=Solver(method="ml")), False),
    "crowd-kit MajorityVote": (theirs("MajorityVote"), False),
    "crowd-kit Wawa": (wawa, False),
    "crowd-kit DawidSkene": (theirs("DawidSkene", n_iter=100), False),
    "crowd-kit GLAD": (theirs("GLAD"), True),
    "crowd-kit MACE": (theirs("MACE"), True),
}


def measured(method, votes, truth):
    """Scores and seconds of one method on one set."""
    classes = np.unique(np.concatenate([votes["label"], truth]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        found = method(votes, classes)
        seconds = time.perf_counter() - begun
    return (*scores(found, truth), seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=25_000)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    chosen = parser.parse_args()
    console, found = Console(width=120), {}
    for name in chosen.sets:
        votes, truth = load(name)
        table = Table(*_COLUMNS, title=f"{name}, {len(votes)} votes")
        for label in chosen.methods:
            method, slow = METHODS[label]
            if slow and len(votes) > chosen.most:
                continue
            row = found[name, label] = measured(method, votes, truth)
            table.add_row(label, *(f"{x:.3f}" for x in row[:4]), f"{row[4]:.1f}")
        console.print(table)
    table = Table(*_COLUMNS, title=f"mean of {len(chosen.sets)} sets")
    for label in chosen.methods:
        rows = [found[name, label] for name in chosen.sets if (name, label) in found]
        if len(rows) == len(chosen.sets):
            means = np.mean(rows, 0)
            table.add_row(label, *(f"{x:.3f}" for x in means[:4]), f"{means[4]:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
