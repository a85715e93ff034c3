"""Classes that no linear or normal model tells apart, beside votes, labels and a graph: ``python
benchmarks/nonlinear_sources.py``.

Predictions of new rows and corrected labels of :class:`nbmodels.JointNB` and of tables with votes,
beside a random forest that learns the majority of the labels and votes, and beside what is known
of the items without their features.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from nbmodels import (
    CollaborativeClassifier,
    DawidSkene,
    JointNB,
    NbmodelsWarning,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
)
from nbmodels.datasets import corrupt, uniform_noise

WORKERS, VOTES, RIGHT, WRONG, NEW = 6, 2, 0.72, 0.25, 1000


# Columns, given the true classes --------------------------------------------------------------


def rings(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(2, size=n)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + 1.5 * y + 0.3 * rng.normal(size=n)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1), y


def exclusive_or(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, 4))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    x[:, :2] += 0.4 * np.sign(x[:, :2])
    return x, y


def tails(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(3, size=n)
    return 2.5 * np.eye(3, 5)[y] + rng.standard_t(1.3, (n, 5)), y


def clusters(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters a class."""
    y, own = rng.integers(3, size=n), rng.integers(3, size=n)
    centres = np.random.default_rng(int(rng.integers(1 << 30))).normal(0, 3, (3, 3, 3))
    return centres[y, own] + 0.7 * rng.normal(size=(n, 3)), y


def normal(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(3, size=n)
    return 1.3 * np.eye(3, 4)[y] + rng.normal(size=(n, 4)), y


def weak(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(3, size=n)
    return 0.5 * np.eye(3, 4)[y] + rng.normal(size=(n, 4)), y


COLUMNS: Mapping[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    one.__name__: one for one in (rings, exclusive_or, tails, clusters, normal, weak)
}


def votes_of(y: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Two of six workers an item, of whom most are right."""
    n, k = len(y), int(y.max()) + 1
    task = np.repeat(np.arange(n), VOTES)
    worker = np.concatenate([rng.choice(WORKERS, VOTES, replace=False) for _ in range(n)])
    label = corrupt(y[task], uniform_noise(k, 1 - RIGHT), rng)
    return pd.DataFrame({"task": task, "worker": worker, "label": label})


def interactions_of(y: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Of 60 users, who have .1 of the items of one class and .04 of the others."""
    likes = rng.integers(int(y.max()) + 1, size=60)
    item, user = np.nonzero(rng.random((len(y), 60)) < np.where(y[:, None] == likes, 0.1, 0.04))
    return pd.DataFrame({"item": item, "user": user})


# Answers --------------------------------------------------------------------------------------


class World(NamedTuple):
    x: np.ndarray
    true: np.ndarray
    given: np.ndarray
    votes: pd.DataFrame
    graph: pd.DataFrame
    new: np.ndarray
    truth: np.ndarray


def world(name: str, n: int, seed: int, wrong: float = WRONG) -> World:
    rng = np.random.default_rng([seed, n, *map(ord, name)])
    x, y = COLUMNS[name](rng, n + NEW)
    true, truth = y[:n], y[n:]
    given = corrupt(true, uniform_noise(int(y.max()) + 1, wrong), rng)
    return World(x[:n], true, given, votes_of(true, rng), interactions_of(true, rng), x[n:], truth)


TABLES: Mapping[str, Callable[[], Any]] = {
    "Gaussian": NoisyGaussianNB,
    "regression": NoisyLogisticRegression,
    "classifier": lambda: NoisyLabelClassifier(LogisticRegression()),
}


def joint(table: str, w: World, **known: Any) -> tuple[Any, Any]:
    """A joint model, and how it is asked for new rows."""
    sources: dict[str, Any] = {"x": TABLES[table]()}
    data: dict[str, Any] = {"x": w.x}
    if "votes" in known:
        sources["crowd"], data["crowd"] = DawidSkene(), w.votes
    if "graph" in known:
        sources["users"], data["users"] = CollaborativeClassifier(), w.graph
    model = JointNB(sources, classes=range(int(w.truth.max()) + 1), random_state=0)
    model.fit(data, w.given if "y" in known else None, items=np.arange(len(w.x)))
    return model, {"x": w.new}


def alone(table: str, w: World, **known: Any) -> tuple[Any, Any]:
    model = TABLES[table]().set_params(random_state=0, classes=range(int(w.truth.max()) + 1))
    own = {"votes": w.votes} if "votes" in known else {}
    return model.fit(w.x, w.given if "y" in known else None, **own), w.new


def without(w: World, **known: Any) -> np.ndarray:
    """``(N,)`` classes by what is known beside the features."""
    if set(known) == {"y"}:
        return w.given
    sources: dict[str, Any] = {}
    data: dict[str, Any] = {}
    if "votes" in known:
        sources["crowd"], data["crowd"] = DawidSkene(), w.votes
    if "graph" in known:
        sources["users"], data["users"] = CollaborativeClassifier(), w.graph
    model = JointNB(sources, classes=range(int(w.truth.max()) + 1), random_state=0)
    model.fit(data, w.given if "y" in known else None, items=np.arange(len(w.x)))
    return model.label_posterior_.argmax(1)


def majority(w: World, **known: Any) -> np.ndarray:
    """``(N,)`` the most frequent of an item's labels and votes; the first of ties by chance."""
    counts = np.zeros((len(w.x), int(w.truth.max()) + 1))
    if "votes" in known:
        np.add.at(counts, (w.votes["task"], w.votes["label"]), 1)
    if "y" in known:
        counts[np.arange(len(w.x)), w.given] += 1
    counts += 0.1 * np.random.default_rng(0).random(counts.shape)
    return counts.argmax(1)


#: How a table and other sources are fitted, and what is known beside the table.
WAYS: Mapping[str, tuple[Callable[..., Any], dict[str, bool]]] = {
    "joint, y": (joint, {"y": True}),
    "joint, votes": (joint, {"votes": True}),
    "joint, votes and y": (joint, {"votes": True, "y": True}),
    "joint, graph and y": (joint, {"graph": True, "y": True}),
    "table, y": (alone, {"y": True}),
    "table, votes": (alone, {"votes": True}),
    "table, votes and y": (alone, {"votes": True, "y": True}),
}


def answered(
    name: str, n: int, seed: int, tables: Any, ways: Any, wrong: float = WRONG
) -> list[dict[str, Any]]:
    w, out, kept = world(name, n, seed, wrong), [], {}
    for way in ways:
        fit, known = WAYS[way]
        if (key := tuple(known)) not in kept:
            learned = without(w, **known) if "graph" in known else majority(w, **known)
            forest = RandomForestClassifier(300, min_samples_leaf=3, random_state=0)
            plain = float((forest.fit(w.x, learned).predict(w.new) == w.truth).mean())
            kept[key] = plain, float((without(w, **known) == w.true).mean())
        plain, beside = kept[key]
        for table in tables:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", NbmodelsWarning)
                model, new = fit(table, w, **known)
            predicted = float((model.predict_proba(new).argmax(1) == w.truth).mean())
            labels = float((model.label_posterior_.argmax(1) == w.true).mean())
            out.append(
                {
                    "world": name,
                    "way": way,
                    "table": table,
                    "n": n,
                    "seed": seed,
                    "predicted": predicted,
                    "forest": plain,
                    "labels": labels,
                    "without": beside,
                    "given": float((w.given == w.true).mean()),
                    "warned": len([c for c in caught if issubclass(c.category, NbmodelsWarning)]),
                    "instead": int(any("nonlinear" in str(v) for v in model.chosen_.values())),
                }
            )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--columns", nargs="*", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES)[:2])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    parser.add_argument("--items", nargs="*", type=int, default=[200, 400])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--wrong", type=float, default=WRONG, help="share of wrong labels y")
    parser.add_argument("--to", help="file of comma-separated values")
    args = parser.parse_args()
    found = []
    for seed in args.seeds:
        for n in args.items:
            for name in args.columns:
                found += answered(name, n, seed, args.tables, args.ways, args.wrong)
                if args.to:
                    pd.DataFrame(found).to_csv(args.to, index=False)
    table = pd.DataFrame(found)
    table["beside forest"] = table["predicted"] - table["forest"]
    table["beside without"] = table["labels"] - table["without"]
    columns = ["predicted", "forest", "labels", "without", "warned", "instead"]
    means = table.groupby(["world", "way", "table"], sort=False)[columns].mean()
    worst = table.groupby(["world", "way", "table"], sort=False)[
        ["beside forest", "beside without"]
    ].min()
    with pd.option_context("display.width", 200, "display.max_rows", 500):
        Console().print(means.join(worst).round(2).to_string())


if __name__ == "__main__":
    main()
