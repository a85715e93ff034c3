"""Votes beside a graph in one model, beside each alone: ``python
benchmarks/votes_beside_graphs.py --seeds 70 71``.

Right labels of :class:`nbmodels.JointNB` of votes and a graph of users, with and without labels,
and of the best answer by fewer sources: majority votes, ``DawidSkene``, the labels, the graph with
either, and ``JointNB`` without the graph. Votes are those of ``several_sources.py``.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from several_sources import MUCH, votes

from nbmodels import CollaborativeClassifier, DawidSkene, JointNB, NbmodelsWarning
from nbmodels.datasets import corrupt, uniform_noise

SHARES, USERS = (0.5, 0.3, 0.2), 60
CLASSES = range(len(SHARES))
VOTES, SIZES, WRONG = ("good", "spam", "copied"), (150, 300, 600), 0.3

#: Shares of the items of one class and of the others that a user has.
GRAPHS = {"informative": (0.2, 0.04), "weak": (0.11, 0.08), "useless": (0.09, 0.09)}


def world(
    crowd: str, graph: str, labelled: bool, n: int, seed: int
) -> tuple[np.ndarray, pd.DataFrame, pd.DataFrame, np.ndarray | None]:
    """Classes, votes, interactions and labels."""
    rng = np.random.default_rng([seed, n, labelled, *map(ord, crowd + graph)])
    y = rng.choice(len(SHARES), n, p=SHARES)
    cast = votes(crowd, y, rng)
    likes = rng.integers(len(SHARES), size=USERS)
    own, other = GRAPHS[graph]
    item, user = np.nonzero(rng.random((n, USERS)) < np.where(likes == y[:, None], own, other))
    given = corrupt(y, uniform_noise(len(SHARES), WRONG), rng) if labelled else None
    return y, cast, pd.DataFrame({"user": user, "item": item}), given


def majority(cast: pd.DataFrame, n: int, seed: int) -> np.ndarray:
    """Most frequent votes, ties at random."""
    counts = np.zeros((n, len(SHARES)))
    np.add.at(counts, (cast["task"].to_numpy(), cast["label"].to_numpy()), 1)
    return (counts + 0.5 * np.random.default_rng(seed).random(counts.shape)).argmax(1)


def answered(crowd: str, graph: str, labelled: bool, n: int, seed: int) -> dict[str, Any]:
    """Shares of right labels of all answers, and of the joint model its log-loss and verdict."""
    y, cast, edges, given = world(crowd, graph, labelled, n, seed)
    how: dict[str, Any] = {"random_state": 0, "classes": CLASSES}
    most = majority(cast, n, seed)

    def share(model: Any) -> float:
        return float((model.label_posterior_.argmax(1) == y).mean())

    def of_graph(labels: np.ndarray) -> float:
        return share(CollaborativeClassifier(**how).fit(edges, labels, items=np.arange(n)))

    def joint(names: tuple[str, ...]) -> JointNB:
        sources = {"votes": DawidSkene(), "users": CollaborativeClassifier()}
        data = {"votes": cast, "users": edges}
        some = JointNB({name: sources[name] for name in names}, **how)
        return some.fit({name: data[name] for name in names}, given, items=np.arange(n))

    began = time.process_time()
    found = joint(("votes", "users"))
    seconds = time.process_time() - began
    fewer = {
        "majority": float((most == y).mean()),
        "DawidSkene": share(DawidSkene(**how).fit(cast)),
        "graph of the majority": of_graph(most),
        "without the graph": share(joint(("votes",))),
    }
    if given is not None:
        fewer |= {"labels": float((given == y).mean()), "graph of the labels": of_graph(given)}
    resp = found.label_posterior_
    loss = -np.log(np.maximum(resp[np.arange(n), y], 1e-12)).mean()
    return {
        **fewer,
        "best": max(fewer.values()),
        "joint": share(found),
        "loss": float(loss),
        "confidence": float(resp.max(1).mean()),
        "passes": found.verdict().ok,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--votes", nargs="*", choices=VOTES, default=list(VOTES))
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--items", nargs="*", type=int, default=SIZES)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--out", help="file of all answers, as CSV")
    args = parser.parse_args()
    rows = []
    grid = itertools.product(args.seeds, args.items, args.votes, args.graphs, (False, True))
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        for seed, n, crowd, graph, labelled in grid:
            about = {"votes": crowd, "graph": graph, "labelled": labelled, "items": n, "seed": seed}
            rows.append(about | answered(crowd, graph, labelled, n, seed))
            if args.out:
                pd.DataFrame(rows).to_csv(args.out, index=False)
    report(pd.DataFrame(rows))


def report(found: pd.DataFrame) -> None:
    """Tables by kind, beside the best answer by fewer sources and ``JointNB`` without the graph."""
    console = Console()
    shown = Table("graph, votes", "fewer", "without graph", "joint", "log-loss")
    for (graph, crowd), part in found.groupby(["graph", "votes"], sort=False):
        shares = part[["best", "without the graph", "joint"]].mean()
        loss = f"{part['loss'].mean():.2f}"
        shown.add_row(f"{graph}, {crowd}", *(f"{100 * s:.1f}" for s in shares), loss)
    console.print(shown)
    for other in ("best", "without the graph", "majority", "DawidSkene"):
        gain = found["joint"] - found[other]
        console.print(
            f"beside {other}: {100 * gain.mean():+.1f} points, at worst {100 * gain.min():+.1f}; "
            f"{(gain < -MUCH).sum()} of {len(gain)} lose {100 * MUCH:.0f} or more"
        )
    lost = found["joint"] - found["best"] < -MUCH
    off = (found["confidence"] - found["joint"]).abs().mean()
    console.print(
        f"log-loss {found['loss'].mean():.2f}, confidence off by {off:.3f}; the verdict passes "
        f"{(lost & found['passes']).sum()} of the {lost.sum()} that lose; "
        f"{found['seconds'].mean():.2f} s of processor time a fit"
    )


if __name__ == "__main__":
    main()
