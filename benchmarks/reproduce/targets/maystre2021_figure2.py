"""Figure 2 of Maystre et al. 2021: perfect recovery, and errors of popular items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.figures import lines
from benchmarks.reproduce.maystre_methods import cavi, flipped, wvrn
from benchmarks.reproduce.results import Result, Table, Target, claim
from nbmodels.papers import maystre2021

K, ALPHA = 5, 0.5
#: Of the published code; the paper names neither these nor the numbers of users.
DELTAS = (0.03, 0.1, 0.2)
USERS = (100, 2311, 4522, 6733, 8944, 11155, 15577, 20000)
POPULAR = (2500, 5000, 10_000)
DEGREES = tuple(range(1, 11))
#: Noise that the items' priors assume, left and right; of the published code.
ASSUMED_LEFT, ASSUMED_RIGHT = 0.799, 0.75
METHODS = ("CAVI", "wvRN")


@dataclass(frozen=True)
class Scale:
    """Graphs of each size, each with two noisy labellings; graphs of the right panel; sizes."""

    graphs: int
    popular: int
    users: tuple[int, ...] = USERS


def guesses(edges: Any, given: np.ndarray, assumed: float) -> dict[str, np.ndarray]:
    return {"CAVI": cavi(edges, given, K, assumed, ALPHA), "wvRN": wvrn(edges, given, K)}


def recovered(users: int, seed: int) -> dict[tuple[str, float], list[bool]]:
    """Whether all classes are found, by method and noise, in two labellings of one graph."""
    rng = np.random.default_rng((users, seed))
    drawn = maystre2021.simulate(rng, M=users, K=K, alpha=ALPHA)
    out: dict[tuple[str, float], list[bool]] = {}
    for delta in DELTAS:
        for _ in range(2):
            given = flipped(rng, drawn.v, K, delta)
            for name, found in guesses(drawn.edges, given, ASSUMED_LEFT).items():
                out.setdefault((name, delta), []).append(bool((found == drawn.v).all()))
    return out


def errors(users: int, seed: int) -> dict[str, np.ndarray]:
    """Error by least degree of one graph with popular items."""
    rng = np.random.default_rng((users, seed, 1))
    drawn = maystre2021.simulate(rng, M=users, K=K, alpha=ALPHA, delta=0.1, popularity=2.0)
    degree = np.diff(drawn.edges.indptr)
    return {
        name: np.array([(found != drawn.v)[degree >= d].mean() for d in DEGREES])
        for name, found in guesses(drawn.edges, drawn.v_hat, ASSUMED_RIGHT).items()
    }


def run(scale: Scale) -> Result:
    left: dict[tuple[str, float], list[float]] = {}
    for users in scale.users:
        each = [recovered(users, seed) for seed in range(scale.graphs)]
        for key in each[0]:
            left.setdefault(key, []).append(float(np.mean([e[key] for e in each])))
    right = {
        users: {
            name: np.mean([e[name] for e in each], 0)
            for name in METHODS
            for each in [[errors(users, seed) for seed in range(scale.popular)]]
        }
        for users in POPULAR
    }
    titles = ("method", "delta", *(f"M = {users}" for users in scale.users))
    rows = tuple((name, delta, *shares) for (name, delta), shares in left.items())
    return Result(
        claims=claims(left, right, scale.users),
        tables=(Table("Left panel, share of realisations recovered perfectly", titles, rows),),
        figure=figure(left, right, scale.users),
    )


def threshold(users: Any, shares: list[float]) -> float:
    """Number of users where half of the realisations are recovered, by straight lines."""
    above = np.flatnonzero(np.asarray(shares) >= 0.5)
    if not len(above):
        return np.inf
    i = above[0]
    if i == 0:
        return users[0]
    return float(np.interp(0.5, shares[i - 1 : i + 1], users[i - 1 : i + 1]))


def claims(left: Any, right: Any, users: Any) -> tuple[Any, ...]:
    at = {key: threshold(users, shares) for key, shares in left.items()}
    sharp = [shares[0] == 0 and shares[-1] >= 0.95 for shares in left.values()]
    grows = [at[m, a] <= at[m, b] for m in METHODS for a, b in ((0.03, 0.1), (0.1, 0.2))]
    mended = [right[u][m][-1] < 0.05 for u in right for m in METHODS]
    ahead = [bool(ok) for u in right for ok in right[u]["CAVI"] < right[u]["wvRN"]]
    return (
        claim('left: from "never recover" to "always recover" as M grows', sharp),
        claim("left: the threshold for M grows with delta", grows),
        claim("right: at least half of the errors of items of degree 10 or more corrected", mended),
        claim("right: clear advantage of CAVI over wvRN", ahead),
    )


def figure(left: Any, right: Any, users: Any) -> Any:
    panels: dict[str, Any] = {
        f"{name}, P(perfect recovery)": {
            f"delta = {delta}": (users, left[name, delta], None) for delta in DELTAS
        }
        for name in METHODS
    }
    panels["popular items, error"] = {
        f"{name}, M = {u}": (DEGREES, right[u][name], None) for name in METHODS for u in right
    }
    title, labels = "Maystre et al. 2021, Figure 2", {"popular items, error": "least degree"}
    return lines(panels, "users M", "", title, share_y=False, x_labels=labels)


TARGET = Target(
    name="maystre2021-figure2",
    paper="Maystre et al. 2021",
    title="Figure 2: perfect recovery and popular items",
    about=f"""N = 1,000, S = 5, K = 5, alpha = 0.5. CAVI is Algorithm 1 as printed, begun from the
items' priors, ten passes; wvRN is Algorithm 2. The paper prints curves and names neither the
deltas nor the numbers of users. They are taken from the code it names,
https://github.com/spotify-research/collabclass (`notebooks/synthetic-phasetrans.ipynb` and
`synthetic-popularity.ipynb`): delta = 0.03, 0.1, 0.2; M = 2,500, 5,000, 10,000 for popular items.
The items' priors there assume a noise of {ASSUMED_LEFT} (left) and {ASSUMED_RIGHT} (right), not
the true one, which [decides the figure](#why-figure-2-which-reading-gives-it).""",
    run=run,
    scales={
        "toy": Scale(1, 1, (100, 2311)),
        "quick": Scale(2, 2, (100, 4522, 8944, 20000)),
        "full": Scale(20, 20),
    },
    why="""*"Always"*: with delta = 0.2 one realisation in ten keeps one or two of the 1,000 items
in a wrong class at M = 20,000, and thirty passes in place of ten leave the same ones there.""",
)
