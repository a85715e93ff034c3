"""What a person waits for, each figure in fresh processes: ``python benchmarks/first_fit.py``.

A row is a scenario that a child process runs and times from the inside; "import" and the commands
are timed from the outside. "Empty" and "filled" are the state of the folder of compiled programs,
which is a temporary one here. Rows with a peer give both times, measured one after the other in the
same process after a fit that is not counted: times on a shared machine vary by half, ratios less.
Printed are medians. ``--quick`` takes one process a row and tables a tenth as long.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
STREAMING = DATA / "live_streaming.csv"
NEWS = DATA / "text" / "newsgroups20.parquet"


# Data ---------------------------------------------------------------------------------------------


def streaming():
    """Live streaming, or drawn columns of its size where it is absent."""
    if STREAMING.exists():
        frame = pd.read_csv(STREAMING)
        return frame.iloc[:, :22].to_numpy(), frame["label"].to_numpy()
    return drawn(1416, 22, 13, binary=True)


def drawn(n, d, k, *, binary, seed=0):
    """Features independent given the class, a fifth of the labels wrong."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, k, n)
    y = np.where(rng.random(n) < 0.2, rng.integers(0, k, n), true)
    if binary:
        return (rng.random((n, d)) < rng.uniform(0.1, 0.9, (k, d))[true]).astype(np.int8), y
    return rng.normal(rng.normal(size=(k, d))[true]), y


def words():
    """20 Newsgroups: presence and counts of words in at least ten documents, noisy labels."""
    from sklearn.feature_extraction.text import CountVectorizer

    frame = pd.read_parquet(NEWS)
    counts = CountVectorizer(stop_words="english", min_df=10).fit_transform(frame["text"])
    _, y = np.unique(frame["label"], return_inverse=True)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y)) < 0.2
    return counts, np.where(wrong, rng.integers(0, 20, len(y)), y)


def visits(n, k=4, per_item=6):
    """Users of items, in proportions of their own, and a fifth of the labels drawn anew."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, k, n)
    appeal = rng.dirichlet(np.full(k, 0.3), n // 4).cumsum(0)
    item = np.repeat(np.arange(n), per_item)
    at = rng.random(len(item)) * appeal[-1, true[item]]
    user = np.empty(len(item), int)
    for c in range(k):
        here = true[item] == c
        user[here] = np.searchsorted(appeal[:, c], at[here])
    edges = sparse.csr_array((np.ones(len(item)), (user, item)), shape=(n // 4, n))
    edges.data[:] = 1  # each pair once
    return edges, np.where(rng.random(n) < 0.2, rng.integers(0, k, n), true)


# Scenarios, each in a process of its own ----------------------------------------------------------


def seconds(work):
    """Seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def first_fits(quick):
    """The first default fit, the same again, and two other sizes of the same table."""
    x, y = streaming()
    began = time.perf_counter()
    from nbmodels import NoisyBernoulliNB

    NoisyBernoulliNB().fit(x, y)
    out = {"first default fit, import included": time.perf_counter() - began}
    for name, n in (("the same again", len(x)), ("1,300 rows", 1300), ("1,250 rows", 1250)):
        out[name] = seconds(lambda n=n: NoisyBernoulliNB().fit(x[:n], y[:n]))
    return out


def folds(quick):
    """Cross-validation by scikit-learn."""
    from sklearn.model_selection import cross_val_score

    from nbmodels import NoisyBernoulliNB

    x, y = streaming()
    return {"cross_val_score, cv=5": seconds(lambda: cross_val_score(NoisyBernoulliNB(), x, y))}


def posterior(quick):
    """Draws by Gibbs sampling of a fit that is there."""
    from nbmodels import NoisyBernoulliNB

    fitted = NoisyBernoulliNB().fit(*streaming())
    return {
        "posterior(), first": seconds(lambda: fitted.posterior(progress=False)),
        "posterior(), again": seconds(lambda: fitted.posterior(progress=False)),
        "posterior(draws=500)": seconds(lambda: fitted.posterior(draws=500, progress=False)),
    }


def text(quick):
    """Default fits to 20 Newsgroups, programs at hand."""
    from nbmodels import NoisyBernoulliNB, NoisyMultinomialNB

    counts, y = words()
    out = {}
    for cls, x in ((NoisyBernoulliNB, (counts > 0).astype(float)), (NoisyMultinomialNB, counts)):
        cls().fit(x, y)
        out[f"{cls.__name__} on 20 Newsgroups, {x.shape[0]:,} x {x.shape[1]:,}, warm"] = seconds(
            lambda cls=cls, x=x: cls().fit(x, y)
        )
    return out


def beside_cleanlab(name, ours, classifier, x, y):
    """Ours and confident learning's, in turn; the first fit of ours is not counted."""
    from cleanlab.classification import CleanLearning

    ours.fit(x, y)
    theirs = CleanLearning(classifier, cv_n_folds=5)
    return {name: (seconds(lambda: ours.fit(x, y)), seconds(lambda: theirs.fit(x, y)))}


def table(n, d, k, *, binary):
    """A scenario: default naive Bayes beside cleanlab with the same emissions."""

    def run(quick):
        from sklearn.naive_bayes import BernoulliNB, GaussianNB

        from nbmodels import NoisyBernoulliNB, NoisyGaussianNB

        rows = n // 10 if quick else n
        cls, peer = (NoisyBernoulliNB, BernoulliNB) if binary else (NoisyGaussianNB, GaussianNB)
        name = f"{cls.__name__}, {rows:,} x {d}, K = {k}"
        return beside_cleanlab(name, cls(), peer(), *drawn(rows, d, k, binary=binary))

    return run


def trees(quick):
    """Boosted trees in ours beside the same in cleanlab."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    from nbmodels import NoisyLabelClassifier

    boosted = HistGradientBoostingClassifier(random_state=0)
    n = 1_000 if quick else 4_000
    name = f"NoisyLabelClassifier of boosted trees, {n:,} x 10, K = 3"
    ours = NoisyLabelClassifier(boosted)
    return beside_cleanlab(name, ours, boosted, *drawn(n, 10, 3, binary=False))


def graph(quick):
    """Default fits to users and items, programs at hand."""
    from nbmodels import CollaborativeClassifier

    out = {}
    for n in (4_000,) if quick else (20_000, 100_000):
        edges, y = visits(n)
        CollaborativeClassifier().fit(edges, y)
        name = f"CollaborativeClassifier, {n:,} items, {edges.nnz:,} edges, K = 4, warm"
        out[name] = seconds(lambda edges=edges, y=y: CollaborativeClassifier().fit(edges, y))
    return out


class Row(NamedTuple):
    """A scenario: what runs, what it needs, and with which state of the folder of programs."""

    run: Callable[[bool], dict] | list[str]
    needs: tuple[Path, ...] = ()
    peer: str | None = None
    states: tuple[str, ...] = ("filled",)


BOTH = ("empty", "filled")
CLEAN = ["clean", str(STREAMING), "--label", "label", "--truth", "true_label", "--overwrite"]
ROWS = {
    "floor": Row(["-c", "import jax, sklearn.base"]),
    "import": Row(["-c", "import nbmodels; nbmodels.NoisyBernoulliNB"]),
    "fit": Row(first_fits, states=BOTH),
    "folds": Row(folds, states=BOTH),
    "posterior": Row(posterior, states=BOTH),
    "clean": Row(["-m", "nbmodels.cli", *CLEAN], (STREAMING,), states=BOTH),
    "demo": Row(["-m", "nbmodels.cli", "demo", "--overwrite"], states=BOTH),
    "text": Row(text, (NEWS,)),
    "graph": Row(graph),
    "binary": Row(table(1_000_000, 20, 4, binary=True), peer="cleanlab"),
    "real": Row(table(200_000, 50, 4, binary=False), peer="cleanlab"),
    "classes": Row(table(60_000, 20, 300, binary=False), peer="cleanlab"),
    "trees": Row(trees, peer="cleanlab"),
}


# Processes ----------------------------------------------------------------------------------------


def child(name, quick, folder, work):
    """Figures of one process, by name: seconds, or seconds of ours and of the peer."""
    row = ROWS[name]
    kept = "JAX_PLATFORMS"  # with a GPU, or without it
    env = {k: v for k, v in os.environ.items() if k == kept or not k.startswith("JAX_")}
    path = [str(ROOT), env.get("PYTHONPATH", "")]
    env |= {"NBMODELS_CACHE": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, path))}
    own = callable(row.run)
    options = [str(Path(__file__)), "--child", name, *(["--quick"] if quick else [])]
    command = [sys.executable, "-W", "ignore", *(options if own else row.run)]
    began = time.perf_counter()
    done = subprocess.run(command, env=env, cwd=work, capture_output=True, text=True, check=False)
    spent = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1]) if own else {name: spent}


def measured(name, quick, repeats, work):
    """Rows to be printed: what, state of the folder, medians of ours and of the peer."""
    row = ROWS[name]
    filled = Path(work) / name
    if "empty" not in row.states:
        child(name, quick, filled, work)
    for state in row.states:
        found = []
        for i in range(repeats):
            folder = filled if state == "filled" else Path(work) / f"{name}-{i}"
            found.append(child(name, quick, folder, work))
            filled = folder
        for what in found[0]:
            times = np.array([np.atleast_1d(one[what]) for one in found])
            yield what, state, [statistics.median(column) for column in times.T]


def missing(row):
    """Why a row cannot be measured, or None."""
    if row.peer and importlib.util.find_spec(row.peer) is None:
        return f"{row.peer} is not installed"
    absent = [path.name for path in row.needs if not path.exists()]
    return f"{absent[0]} is not at hand" if absent else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", choices=list(ROWS), help="only these rows")
    parser.add_argument("--repeats", type=int, help="processes a row [default: 3, quick: 1]")
    parser.add_argument("--child", choices=list(ROWS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        with warnings.catch_warnings(action="ignore"):
            print(json.dumps(ROWS[args.child].run(args.quick)))
        return
    repeats = args.repeats or (1 if args.quick else 3)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'what':70} {'programs':9} {'ours':>8} {'peer':>8} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as work:
        for name in args.only or ROWS:
            if why := missing(ROWS[name]):
                print(f"{name}: left out, {why}")
                continue
            for what, state, found in measured(name, args.quick, repeats, work):
                shown = f"{what:70} {state:9} {found[0]:6.2f} s"
                if len(found) > 1:
                    shown += f" {found[1]:6.2f} s {found[0] / found[1]:6.1f}"
                print(shown, flush=True)


if __name__ == "__main__":
    main()
