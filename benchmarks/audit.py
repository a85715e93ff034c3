"""Coverage and width of audits, beside a plain random sample: ``python benchmarks/audit.py``.

Each world is a finite population with true labels and P(wrong), drawn anew for every repeat (live
streaming: fitted once, the plans drawn anew). ``good`` P(wrong) is calibrated and binormal with AUC
0.95; ``useless`` is the same P(wrong) in random order. The plain sample has as many rows and
Jeffreys' interval at its effective size, which is narrower than Wilson's. "Bound" is the width that
no design-unbiased estimate is below on average where P(wrong) is calibrated (Godambe and Joshi
1965), as a share of the plain one's.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from scipy import stats

from nbmodels.audit.intervals import jeffreys
from nbmodels.audit.plan import draw_plan
from nbmodels.audit.result import audit

LIVE_STREAMING = Path(__file__).parents[2] / "shared" / "data" / "live_streaming.csv"
LEVEL = 0.9


@dataclass(frozen=True)
class World:
    """Labelled rows: a table as ``corrected_labels()`` gives it, and the true classes."""

    corrected: pd.DataFrame
    true: np.ndarray
    classes: np.ndarray


def rows(p_wrong, wrong, rng, k=3):
    """Classes and suggestions for given errors: a suggestion finds four in five of the errors."""
    true = rng.integers(0, k, len(wrong))
    given = np.where(wrong, (true + rng.integers(1, k, len(wrong))) % k, true)
    found = (p_wrong > 0.5) & (rng.random(len(wrong)) < 0.8)
    suggested = np.where(found, true, given)
    frame = pd.DataFrame({"row": np.arange(len(true)), "given": given, "suggested": suggested})
    frame["p_wrong"], frame["p_suggested"] = p_wrong, np.maximum(p_wrong, 1 - p_wrong)
    return World(frame, true, np.arange(k))


def binormal(share, n, rng, auc=0.95):
    """Errors and the calibrated P(wrong) of a normal score."""
    shift = stats.norm.ppf(auc) * np.sqrt(2)
    wrong = rng.random(n) < share
    logit = shift * (rng.normal(shift * wrong) - shift / 2) + np.log(share / (1 - share))
    return 1 / (1 + np.exp(-logit)), wrong


def good(share, n=2000, k=3):
    return lambda rng: rows(*binormal(share, n, rng), rng, k)


def useless(share, n=2000):
    def draw(rng):
        p, wrong = binormal(share, n, rng)
        return rows(rng.permutation(p), wrong, rng)

    return draw


def certain(share, n=2000):
    """A tenth of the rows cannot be scored, all others are scored rightly: AUC 0.95, too."""

    def draw(rng):
        wrong = rng.random(n) < share
        p = np.where(rng.random(n) < 0.1, share, np.where(wrong, 0.999, 0.001))
        return rows(p, wrong, rng)

    return draw


def confidently_wrong(rng, n=2000):
    """All errors, a fifth of the rows, are where P(wrong) is lowest."""
    p, wrong = binormal(0.2, n, rng)
    wrong[:] = False
    wrong[rng.permutation(np.argsort(p)[: n // 2])[: n // 5]] = True
    return rows(p, wrong, rng)


def overconfident(rng, n=2000):
    """Good scores five times too sure, so that most are 0 or 1 in all digits."""
    p, wrong = binormal(0.2, n, rng)
    logit = np.log(p / (1 - p))
    return rows(1 / (1 + np.exp(-5 * logit)), wrong, rng)


def timid(share, n=2000):
    """Wrong labels are found better than P(wrong) says: nearly all of them are in one stratum."""

    def draw(rng):
        wrong = rng.random(n) < share
        p = np.where(wrong, rng.beta(4, 1.5, n), rng.beta(0.3, 8, n))
        return rows(p, wrong, rng)

    return draw


def two_values(rng, n=2000):
    """P(wrong) is 0 for all rows but 1 %; 5 % are wrong, of which half among those."""
    p = np.zeros(n)
    p[: n // 100] = 1
    wrong = rng.random(n) < np.where(p > 0, 0.5, 0.05)
    return rows(p, wrong, rng)


def live_streaming():
    """P(wrong) of the default fit; None where the data are absent."""
    from nbmodels import NoisyBernoulliNB, Solver

    if not LIVE_STREAMING.exists():
        return None
    frame = pd.read_csv(LIVE_STREAMING)
    x = frame.drop(columns=["label", "true_label"])
    model = NoisyBernoulliNB(random_state=0, solver=Solver(progress=False))
    corrected = model.fit(x, frame["label"].to_numpy()).corrected_labels()
    world = World(corrected, frame["true_label"].to_numpy(), model.classes_)
    return lambda rng: world


def worlds(args):
    """Name, world, rows of the plan, rows checked; those of the issue, then invented ones."""
    found = live_streaming() if "live" in args.only or not args.only else None
    if found is not None:
        yield "live streaming", found, 100, 100
    for share in (0.01, 0.05, 0.2, 0.4):
        yield f"{share:.0%} wrong, good", good(share), 100, 100
        yield f"{share:.0%} wrong, useless", useless(share), 100, 100
    yield "20% wrong, 9 of 10 scored rightly", certain(0.2), 100, 100
    yield "errors only where P(wrong) is lowest", confidently_wrong, 100, 100
    yield "2,000 classes, 20% wrong", good(0.2, 20_000, 2000), 100, 100
    yield "60 rows, 50 of them checked", good(0.2, 60), 50, 50
    yield "scores five times too sure", overconfident, 100, 100
    yield "P(wrong) 0 or 1, mostly 0", two_values, 100, 100
    yield "30 checks, 5% wrong", good(0.05), 30, 30
    yield "1,000 checks of 20,000, 5% wrong", good(0.05, 20_000), 1000, 1000
    for share in (0.05, 0.2):
        yield f"{share:.0%} wrong, better than P(wrong) says", timid(share), 100, 100
    for n, done in ((100, 10), (100, 20), (100, 50), (200, 40)):
        for share in (0.01, 0.05, 0.2, 0.4):
            for kind, world in (("good", good), ("useless", useless)):
                yield f"{share:.0%} wrong, {kind}, stopped early", world(share), n, done


def repeat(world, planned, n, seed, rng):
    """Covered and wide: share, plain sample, suggestions; and the flip rates' coverage."""
    c = world.corrected
    plan = draw_plan(c, world.classes, planned, seed=seed)
    checked = world.true[plan.rows["position"]].astype(object)
    checked[n:] = None
    result = audit(plan, checked, level=LEVEL, partial=n < planned)
    given = c["given"].to_numpy()
    wrong, right = given != world.true, c["suggested"].to_numpy() == world.true
    seen = wrong[rng.choice(len(wrong), n, replace=False)].sum()
    low, high = plain(seen, n, len(wrong))
    low_exact, high_exact = exact(seen, n)
    share, accuracy = result.share_wrong, result.suggestions
    flips = result.noise
    flips = flips[flips["checked"] > 0]
    actual = [
        np.mean(given[world.true == t] == g)
        for t, g in zip(flips["true"], flips["given"], strict=True)
    ]
    p = c["p_wrong"].to_numpy()
    neyman = np.mean(np.sqrt(p * (1 - p))) ** 2 / n - np.mean(p * (1 - p)) / len(p)
    simple = wrong.mean() * (1 - wrong.mean()) * (1 / n - 1 / len(p))
    return {
        "covered": share.low <= wrong.mean() <= share.high,
        "width": share.width,
        "plain covered": low <= wrong.mean() <= high,
        "plain width": high - low,
        "exact covered": low_exact <= wrong.mean() <= high_exact,
        "bound": np.sqrt(max(neyman, 0) / simple),
        "suggestions covered": accuracy.low <= right.mean() <= accuracy.high,
        "flips covered": np.mean((flips["low"] <= actual) & (actual <= flips["high"])),
        "bias": share.value - wrong.mean(),
    }


def plain(seen, n, size):
    """Jeffreys' interval of a plain random sample, with the finite population's size."""
    if n == size:
        return seen / n, seen / n
    low, high = jeffreys(seen / n, n / (1 - n / size), LEVEL)
    return max(low, seen / size), min(high, 1 - (n - seen) / size)


def exact(seen, n):
    """Clopper and Pearson's interval of a plain random sample, which never covers too seldom."""
    low = stats.beta.ppf((1 - LEVEL) / 2, seen, n - seen + 1) if seen else 0.0
    high = stats.beta.ppf((1 + LEVEL) / 2, seen + 1, n - seen) if seen < n else 1.0
    return low, high


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only", default="", help="worlds with this in their name")
    args = parser.parse_args()
    console = Console(width=200)
    table = []
    for name, draw, planned, n in worlds(args):
        if args.only not in name:
            continue
        found = []
        for i in range(args.repeats):
            rng = np.random.default_rng([args.seed, i])
            found.append(repeat(draw(rng), planned, n, args.seed + i, rng))
        mean = pd.DataFrame(found).mean()
        row = {
            "world": name,
            "checks": n if n == planned else f"{n} of {planned}",
            "coverage": f"{mean['covered']:.1%}",
            "plain": f"{mean['plain covered']:.1%}",
            "exact": f"{mean['exact covered']:.1%}",
            "width": f"{mean['width']:.4f}",
            "of plain": f"{mean['width'] / mean['plain width']:.3f}",
            "bound": f"{mean['bound']:.2f}" if name.endswith("wrong, good") else "",
            "suggestions": f"{mean['suggestions covered']:.1%}",
            "flip rates": f"{mean['flips covered']:.1%}",
            "bias": f"{mean['bias']:+.4f}",
        }
        table.append(row)
        console.print(" | ".join(map(str, row.values())), highlight=False)
    console.print(pd.DataFrame(table).to_string(index=False) if table else "no such world")


if __name__ == "__main__":
    main()
