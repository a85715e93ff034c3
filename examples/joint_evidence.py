"""Four unreliable sources in one model: words, a user graph and two annotators.

Newsgroup-like items are simulated: each has words, users who touched it, and a label by one or both
of two annotators, one better than the other. A few classes are known, so that every source can be
fitted alone. The joint model adds the log-likelihoods of the sources. It is compared with each of
them on items whose truth it has not seen: those of the fit, and new ones without annotations.

Run it with ``python examples/joint_evidence.py``; it takes about a minute.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from nbmodels import CollaborativeClassifier, DawidSkene, JointNB, NoisyMultinomialNB
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.papers import maystre2021

NAMES = np.array(["autos", "hockey", "space", "politics"])
RATES = {"ann": 0.25, "bob": 0.45}


def simulate(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, object]]:
    """True classes of ``n`` items, and what is seen of them."""
    k = len(NAMES)
    drawn = maystre2021.simulate(rng, M=n, N=n, K=k, S=4, alpha=0.5)
    topics = rng.dirichlet(np.full(200, 0.3), k)
    # a quarter of a text is about its class, the rest is what all texts share
    mixed = 0.25 * topics + 0.75 * rng.dirichlet(np.full(200, 0.3))
    words = np.stack([rng.multinomial(25, mixed[c]) for c in drawn.v])
    votes = []
    for name, rate in RATES.items():
        rows = np.sort(rng.choice(n, n // 2, replace=False))
        label = NAMES[corrupt(drawn.v[rows], uniform_noise(k, rate), rng)]
        votes.append(pd.DataFrame({"task": rows, "worker": name, "label": label}))
    item, user = drawn.edges.nonzero()
    pairs = pd.DataFrame({"user": user, "item": item})
    return NAMES[drawn.v], {"words": words, "users": pairs, "crowd": pd.concat(votes)}


def of_items(seen: dict[str, object], name: str, items: np.ndarray) -> object:
    """One source, of some items."""
    table = seen[name]
    if isinstance(table, pd.DataFrame):
        column = "task" if name == "crowd" else "item"
        return table[table[column].isin(items)]
    return np.asarray(table)[items]


def main(seed: int, n: int) -> None:
    console = Console()
    rng = np.random.default_rng(seed)
    truth, seen = simulate(rng, 2 * n)
    train, new = np.arange(n), np.arange(n, 2 * n)
    known = {int(i): truth[i] for i in rng.choice(n, n // 20, replace=False)}
    unknown = np.setdiff1d(train, list(known))
    sources = {
        "words": NoisyMultinomialNB(alpha=0.5),
        "users": CollaborativeClassifier(alpha=0.5, weight=1.0),
        "crowd": DawidSkene(),
    }

    table = Table("evidence", "right, items of the fit", "right, new items")
    for names in (*([name] for name in sources), list(sources)):
        model = JointNB({name: sources[name] for name in names}, classes=NAMES)
        evidence = {name: of_items(seen, name, train) for name in names}
        model.fit(evidence, trusted=known, items=train)
        suggested = model.classes_[model.label_posterior_.argmax(1)]
        inside = np.mean(suggested[unknown] == truth[unknown])
        # nobody labels new items: their words and users must do
        fresh = {name: of_items(seen, name, new) for name in names if name != "crowd"}
        outside = "-"
        if fresh:
            outside = f"{np.mean(model.predict(fresh, items=new) == truth[new]):.3f}"
        table.add_row(" + ".join(names), f"{inside:.3f}", outside)
    console.print(f"{n} items, {len(known)} of them checked; annotators are wrong in {RATES}")
    console.print(table)

    crowd = model.fit_.model["crowd"].values(model.fit_.point["crowd"])["transitions"]
    for name, matrix in zip(sorted(RATES), np.asarray(crowd), strict=True):
        right = float(np.diag(matrix).mean())
        console.print(
            f"{name} is right in {right:.2f} of the cases (planted {1 - RATES[name]:.2f})"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n", type=int, default=600)
    args = parser.parse_args()
    main(args.seed, args.n)
