"""Who answers: our estimators on their defaults, and the plain answers, by kind of data."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from baselines import weighted_vote
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from floor_worlds.base import Setting, Task
from nbmodels import (
    AutoNoisyClassifier,
    CollaborativeClassifier,
    DawidSkene,
    NbmodelsWarning,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    NoisyMultinomialNB,
    Solver,
)

_QUIET = Solver(progress=False)
#: Name of the answer that changes nothing.
AS_GIVEN = "labels as given"
#: Words of a warning by which it is named.
_WORDS = 8


@dataclass(frozen=True)
class Answer:
    """What a method says.

    Attributes:
        labels: ``(N,)`` codes of the training items' classes.
        new: of the new items, or None.
        suspicion: ``(N,)`` how likely each given label is to be wrong, or None.
        diagonal: ``(K,)`` of the noise matrix, or None.
        interval: ``(K, 2)`` 90 % intervals of the diagonal, or None.
        warned: the library's warnings of the fit: category and first words.
        failed_checks: names of the checks that failed.
        stated: names of what the verdict states without a warning.
        chosen: what was selected, in words.
    """

    labels: np.ndarray
    new: np.ndarray | None = None
    suspicion: np.ndarray | None = None
    diagonal: np.ndarray | None = None
    interval: np.ndarray | None = None
    warned: tuple[str, ...] = ()
    failed_checks: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    chosen: str = ""


Method = Callable[[Task, int], Answer]


@dataclass(frozen=True)
class Ours:
    """An estimator of ours.

    Attributes:
        run: fits and answers.
        family: plain answers to the estimator's own question; all of the kind where empty.
        where: whether a cell is worth its time.
        slow: left out of the quick grid.
    """

    run: Method
    family: tuple[str, ...] = ()
    where: Callable[[Setting], bool] = field(default=lambda setting: True)
    slow: bool = False


# Plain answers -----------------------------------------------------------------------------------


def _columns(probs: np.ndarray, names: np.ndarray, k: int) -> np.ndarray:
    """``(N, K)`` probabilities, 0 of classes that were not seen."""
    out = np.zeros((len(probs), k))
    out[:, names] = probs
    return out


def classifier(make: Callable[[], Any], task: Task, seed: int) -> Answer:
    """A classifier of given labels: cross-validated on the items, trained by all for new ones."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    with warnings.catch_warnings(action="ignore"):
        probs = cross_val_predict(make(), task.x, task.given, cv=folds, method="predict_proba")
        new = make().fit(task.x, task.given).predict(task.x_new)
    labels = np.unique(task.given)[probs.argmax(1)]
    probs = _columns(probs, np.unique(task.given), task.k)
    return Answer(labels, new, 1 - probs[np.arange(len(labels)), task.given])


def as_given(task: Task, seed: int) -> Answer:
    """The labels as they are; nothing is said of new items."""
    return Answer(task.given)


def _by_votes(votes: np.ndarray, task: Task) -> Answer:
    """The class of most votes; without any, the given label or the most frequent class."""
    shown = task.given >= 0
    most = np.bincount(task.given[shown]).argmax()
    instead = np.where(shown, task.given, most)
    labels = np.where(votes.any(1), votes.argmax(1), instead)
    total = votes.sum(1)
    own = votes[np.arange(len(votes)), np.maximum(task.given, 0)]
    suspicion = np.where(total > 0, 1 - own / np.maximum(total, 1e-12), 0.5)
    return Answer(labels, labels[~shown], suspicion)


def neighbours(task: Task, seed: int) -> Answer:
    """wvRN: the majority of an item's neighbours, as often as users are shared."""
    return _by_votes(weighted_vote(task.x, task.given, task.k), task)


def users(task: Task, seed: int) -> Answer:
    """Mean over an item's users of the classes' shares among their other items."""
    edges = sparse.coo_array(task.x)
    cast = np.eye(task.k)[np.maximum(task.given, 0)] * (task.given >= 0)[:, None]
    counts = np.asarray(task.x.T @ cast)[edges.col] - cast[edges.row]
    # a user without other labels says nothing
    shares = counts / (counts.sum(1, keepdims=True) + 1)
    votes = np.zeros((task.x.shape[0], task.k))
    np.add.at(votes, edges.row, shares)
    return _by_votes(votes, task)


def _relaxed(edges: Any, given: np.ndarray, k: int, rounds: int) -> np.ndarray:
    """``(N, K)`` votes of the neighbours, those without a label by their neighbours' votes."""
    own = np.asarray(edges.multiply(edges).sum(1)).reshape(-1, 1)
    shown = (given >= 0)[:, None]
    cast = np.eye(k)[np.maximum(given, 0)]
    resp = np.where(shown, cast, np.bincount(given[given >= 0], minlength=k) / shown.sum())
    votes = np.zeros_like(resp)
    for step in range(rounds):
        votes = np.asarray(edges @ (edges.T @ resp)) - own * resp
        total = votes.sum(1, keepdims=True)
        said = np.where(total > 0, votes / np.maximum(total, 1e-12), resp)
        pace = 0.99**step
        resp = np.where(shown, cast, pace * said + (1 - pace) * resp)
    return votes


def relaxation(task: Task, seed: int, rounds: int = 30) -> Answer:
    """wvRN with relaxation labelling (Macskassy and Provost 2007, section 3.3.2).

    Given labels stand; those of each of five folds are hidden in turn, so that an item's own does
    not come back to it over others without one.
    """
    votes = _relaxed(task.x, task.given, task.k, rounds)
    shown = np.flatnonzero(task.given >= 0)
    folds = KFold(5, shuffle=True, random_state=seed)
    for _, held in folds.split(shown):
        rows = shown[held]
        others = task.given.copy()
        others[rows] = -1
        votes[rows] = _relaxed(task.x, others, task.k, rounds)[rows]
    return _by_votes(votes, task)


def _vote_counts(task: Task) -> np.ndarray:
    counts = np.zeros((len(task.true), task.k))
    np.add.at(counts, (task.x["task"], task.x["label"]), 1)
    return counts


def smoothed_votes(task: Task, seed: int) -> Answer:
    """Shares of the votes, drawn to the classes' shares among all votes: these decide a tie."""
    counts = _vote_counts(task)
    shares = (counts + counts.sum(0) / counts.sum()) / (counts.sum(1, keepdims=True) + 1)
    item = np.arange(len(counts))
    return Answer(shares.argmax(1), None, 1 - shares[item, task.given])


def by_agreement(task: Task, seed: int) -> Answer:
    """Votes weighted by how often a worker agrees with the majority of the others."""
    counts = _vote_counts(task)
    table = task.x
    others = counts[table["task"]] - np.eye(task.k)[table["label"]]
    ties = others == others.max(1, keepdims=True)
    agrees = ties[np.arange(len(table)), table["label"]] / ties.sum(1)
    asked = others.any(1)
    right = np.bincount(table["worker"], agrees * asked) + 2 * agrees[asked].mean()
    rate = right / (np.bincount(table["worker"], asked) + 2)
    weight = np.log(
        np.clip(rate, 0.02, 0.98) * max(task.k - 1, 1) / (1 - np.clip(rate, 0.02, 0.98))
    )
    votes = np.zeros_like(counts)
    np.add.at(votes, (table["task"], table["label"]), weight[table["worker"]])
    return Answer(votes.argmax(1))


# Ours --------------------------------------------------------------------------------------------


def _chosen(e: Any) -> str:
    one = e if hasattr(e, "chosen_") else e.estimator_
    settings = ", ".join(f"{n}={v}" for n, v in one.chosen_.items())
    emission = getattr(e, "emission_", "")
    return "; ".join(part for part in (emission, settings) if part)


def _fitted(e: Any, *data: Any, **options: Any) -> tuple[Any, *tuple[tuple[str, ...], ...]]:
    """A fit with its warnings, failed checks, and what the verdict states beside them."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        e.fit(*data, **options)
        found = e.verdict().findings
    own = (_named(w) for w in caught if issubclass(w.category, NbmodelsWarning))
    failed = (f.name for f in found if f.bad)
    stated = (f.name for f in found if f.accounted or f.undecided)
    return e, *(tuple(dict.fromkeys(names)) for names in (own, failed, stated))


def _named(warning: warnings.WarningMessage) -> str:
    """Category and first words, without numbers: the same of every fit."""
    words = re.sub(r"[\d.%,;|]+", "", str(warning.message)).split()
    return f"{warning.category.__name__}: {' '.join(words[:_WORDS])}"


def _intervals(e: Any, k: int) -> np.ndarray:
    """``(K, 2)`` 90 % intervals of the matrix's diagonal; NaN of a class without labels."""
    with warnings.catch_warnings(action="ignore"):
        draws = e.posterior(draws=200, chains=2, keep="parameters")["posterior"].dataset
    found = draws["noise_matrix"].to_numpy()
    diagonal = np.diagonal(found, axis1=-2, axis2=-1).reshape(-1, found.shape[-1])
    out = np.full((k, 2), np.nan)
    out[e.classes_] = np.quantile(diagonal, [0.05, 0.95], axis=0).T
    return out


def table(make: Callable[..., Any], task: Task, seed: int) -> Answer:
    """An estimator of rows of features."""
    e, *said = _fitted(make(random_state=seed, solver=_QUIET), task.x, task.given)
    resp, names = e.label_posterior_, e.classes_
    own = resp[np.arange(len(resp)), np.searchsorted(names, task.given)]
    diagonal = np.full(task.k, np.nan)
    diagonal[names] = np.diag(e.noise_matrix_)
    return Answer(
        names[resp.argmax(1)],
        e.predict(task.x_new),
        1 - own,
        diagonal,
        _intervals(e, task.k),
        *said,
        _chosen(e),
    )


def graph(task: Task, seed: int) -> Answer:
    """The estimator of items known by their users."""
    maker = CollaborativeClassifier(
        missing_label=-1, classes=np.arange(task.k), random_state=seed, solver=_graph_solver()
    )
    e, *said = _fitted(maker, sparse.csr_array(task.x.T), task.given)
    resp = e.label_posterior_
    labels = resp.argmax(1)
    own = resp[np.arange(len(resp)), np.maximum(task.given, 0)]
    chosen = f"alpha={np.mean(e.alpha_):.3g}, weight={e.weight_:.3g}"
    about = labels, labels[task.given < 0], 1 - own, np.diag(e.noise_matrix_)
    return Answer(*about, _intervals(e, task.k), *said, chosen)


def _graph_solver() -> Solver:
    return Solver(method="vb", progress=False)


def votes(task: Task, seed: int) -> Answer:
    """Dawid and Skene; the diagonal is that of all votes."""
    maker = DawidSkene(classes=np.arange(task.k), random_state=seed, solver=_QUIET)
    e, *said = _fitted(maker, task.x)
    resp = e.label_posterior_
    cast = np.bincount(task.x["worker"], minlength=len(e.workers_))
    diagonal = np.diag(np.average(e.worker_noise_matrix_, 0, cast))
    own = resp[np.arange(len(resp)), task.given]
    return Answer(resp.argmax(1), None, 1 - own, diagonal, None, *said)


def _regression() -> Any:
    return make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=1000))


def _forest() -> RandomForestClassifier:
    return RandomForestClassifier(50, random_state=0)


def _few(setting: Setting) -> bool:
    """Where the forest is fitted, which takes long."""
    return (setting.n, setting.k, setting.errors, setting.share) == (200, 3, "uniform", 0.2)


_PLAIN_CLASSIFIERS: Mapping[str, Method] = {
    "LogisticRegression": partial(classifier, _regression),
    "RandomForest": partial(classifier, _forest),
}
#: Plain answers by kind of data.
PLAIN: Mapping[str, Mapping[str, Method]] = {
    "reals": {
        AS_GIVEN: as_given,
        "GaussianNB": partial(classifier, GaussianNB),
        **_PLAIN_CLASSIFIERS,
    },
    "binary": {
        AS_GIVEN: as_given,
        "BernoulliNB": partial(classifier, BernoulliNB),
        **_PLAIN_CLASSIFIERS,
    },
    "counts": {
        AS_GIVEN: as_given,
        "MultinomialNB": partial(classifier, MultinomialNB),
        **_PLAIN_CLASSIFIERS,
    },
    "pixels": {
        AS_GIVEN: as_given,
        "MultinomialNB": partial(classifier, MultinomialNB),
        "GaussianNB": partial(classifier, partial(GaussianNB, var_smoothing=1e-3)),
        **_PLAIN_CLASSIFIERS,
    },
    "graph": {
        AS_GIVEN: as_given,
        "wvRN": neighbours,
        "relaxation": relaxation,
        "users' shares": users,
    },
    "votes": {
        "majority": as_given,
        "smoothed shares": smoothed_votes,
        "by agreement": by_agreement,
    },
}

_LOGISTIC = Ours(partial(table, NoisyLogisticRegression), (AS_GIVEN, "LogisticRegression"))
_AUTO = Ours(partial(table, AutoNoisyClassifier))
_ANY = Ours(
    partial(table, partial(NoisyLabelClassifier, _forest())),
    (AS_GIVEN, "RandomForest"),
    _few,
    slow=True,
)


def _of(estimator: Any, plain: str) -> Ours:
    return Ours(partial(table, estimator), (AS_GIVEN, plain))


_SHARED = {
    "NoisyLogisticRegression": _LOGISTIC,
    "AutoNoisyClassifier": _AUTO,
    "NoisyLabelClassifier(forest)": _ANY,
}
#: Ours by kind of data.
OURS: Mapping[str, Mapping[str, Ours]] = {
    "reals": {"NoisyGaussianNB": _of(NoisyGaussianNB, "GaussianNB"), **_SHARED},
    "binary": {"NoisyBernoulliNB": _of(NoisyBernoulliNB, "BernoulliNB"), **_SHARED},
    "counts": {"NoisyMultinomialNB": _of(NoisyMultinomialNB, "MultinomialNB"), **_SHARED},
    "pixels": {
        "NoisyMultinomialNB": _of(NoisyMultinomialNB, "MultinomialNB"),
        "NoisyGaussianNB": _of(NoisyGaussianNB, "GaussianNB"),
        **_SHARED,
    },
    "graph": {"CollaborativeClassifier": Ours(graph)},
    "votes": {
        "DawidSkene": Ours(votes),
    },
}
