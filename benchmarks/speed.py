"""Speed beside named peers, measured in one run: ``python benchmarks/speed.py``.

Every row prints the median time of ours and of its peer, taken in turns, and their ratio: times
differ by half between runs on a shared machine, ratios less. First the machine's own limits are
printed. Peers are asked for the same work: ``numba`` is Algorithm 1 of Maystre et al. 2021 as a
plain sequential loop, ``scipy`` EM in NumPy and SciPy's sparse products in single precision.
Rows whose peer is not installed are left out and named; ``pip install -e '.[benchmarks]'`` brings
all. An iteration of ours on the graph includes a look at the evidence bound every fifth time, which
Algorithm 1 does not have; Dawid-Skene's time includes reading the table, for both. "Of memory" is
the traffic that the two products cannot do without, by the bandwidth measured in the same run.
"""

import argparse
import importlib.util
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy import sparse

from inference import run
from nbmodels import CrossFit, DawidSkene, Joint, NoisyBernoulliNB, NoisyMultinomialNB, Solver
from nbmodels.channels import FixedTransition, Transition
from nbmodels.class_priors import FixedProportions, Proportions
from nbmodels.core import model as models
from nbmodels.core.model import Data
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.emissions import Bernoulli, Users
from nbmodels.fitting.duplicate_users import grouped
from nbmodels.fitting.em import fit
from nbmodels.fitting.iterations import Point, iteration

#: Users, items and edges of the graphs, and their classes; the second is of the paper's own scale.
GRAPHS = (((1_960_000, 208_000, 7_000_000), 10), ((4_400_000, 11_500, 12_000_000), 43))
NEWS = Path(__file__).parents[2] / "shared" / "data" / "text" / "newsgroups20.parquet"


class Limits(NamedTuple):
    """Bytes a second, seconds a row, floating operations a second."""

    bandwidth: float
    gather: float
    product: float


class Row(NamedTuple):
    """Seconds of ours and of the peer's; bytes that one of ours reads and writes at the least."""

    work: str
    peer: str
    ours: float
    theirs: float
    traffic: float | None = None


def traffic(nonzeros, k):
    """Bytes of the two products: for every nonzero an index and a row of ``k`` numbers, twice."""
    return 2 * nonzeros * (4 + 4 * k)


def timed(*works, repeats):
    """Median seconds of each of ``works``, run in turns after one run that is not counted."""
    for work in works:
        work()
    times = [[] for _ in works]
    for _ in range(repeats):
        for work, found in zip(works, times, strict=True):
            began = time.perf_counter()
            work()
            found.append(time.perf_counter() - began)
    return [statistics.median(found) for found in times]


# The machine --------------------------------------------------------------------------------------


def limits(repeats):
    """What the machine can do at all, through the same compiler."""
    big = jnp.ones(50_000_000, jnp.float32)
    table = jnp.ones((1_000_000, 10), jnp.float32)
    index = jnp.asarray(np.random.default_rng(0).integers(0, 1_000_000, (16, 200_000)), jnp.int32)
    square = jnp.ones((2048, 2048), jnp.float32)

    @jax.jit
    def gather(table, index):
        return sum(table[index[j]] for j in range(16))

    copy, product = jax.jit(lambda x: x + 1), jax.jit(lambda a: a @ a)
    seconds = timed(
        lambda: copy(big).block_until_ready(),
        lambda: gather(table, index).block_until_ready(),
        lambda: product(square).block_until_ready(),
        repeats=repeats,
    )
    return Limits(2 * big.nbytes / seconds[0], seconds[1] / index.size, 2 * 2048**3 / seconds[2])


# CAVI on a graph ----------------------------------------------------------------------------------


def draw_graph(rng, n_users, n_items, n_edges):
    """``(N, users)`` edges; every user has one, half of them no more; some items are popular."""
    taste = rng.pareto(1.1, n_users)
    caps = np.geomspace(2, n_items, 30)
    totals = [np.minimum(1 + taste, cap).astype(int).sum() for cap in caps]
    degree = np.minimum(1 + taste, np.interp(n_edges, totals, caps)).astype(int)
    popular = np.cumsum(rng.pareto(1.2, n_items) + 1)
    user = np.repeat(np.arange(n_users), degree)
    item = np.searchsorted(popular / popular[-1], rng.random(len(user)))
    edges = sparse.coo_array((np.ones(len(user)), (np.minimum(item, n_items - 1), user)))
    edges = sparse.csr_array(edges.tocsr())
    edges.data[:] = 1
    return edges


def algorithm_1():
    """The published updates as a loop, compiled by numba."""
    import numba

    @numba.njit
    def psi(x):
        shift = 0.0
        while x < 6:
            shift -= 1 / x
            x += 1
        f = 1 / (x * x)
        return shift + math.log(x) - 0.5 / x - f * (1 / 12 - f * (1 / 120 - f / 252))

    @numba.njit
    def loop(user_ptr, user_items, item_ptr, item_users, log_beta, beta, alpha, n_iter):
        n_users, (n_items, k) = len(user_ptr) - 1, beta.shape
        psis, z = np.empty((n_users, k)), np.empty(k)
        for _ in range(n_iter):
            for i in range(n_users):
                z[:] = alpha
                for e in range(user_ptr[i], user_ptr[i + 1]):
                    z += beta[user_items[e]]
                for c in range(k):
                    psis[i, c] = psi(z[c])
            for j in range(n_items):
                z[:] = log_beta[j]
                for e in range(item_ptr[j], item_ptr[j + 1]):
                    z += psis[item_users[e]]
                z -= z.max()
                total = 0.0
                for c in range(k):
                    z[c] = math.exp(z[c])
                    total += z[c]
                beta[j] = z / total
        return beta

    return loop


def symmetric(k, delta):
    noise = np.full((k, k), delta / (k - 1))
    np.fill_diagonal(noise, 1 - delta)
    return noise


def graph_model(edges, v_hat, k, alpha, delta):
    """The model of Maystre et al. 2021, exchangeable users as one."""
    found = grouped(edges)
    model = {
        "class_prior": FixedProportions(prior=jnp.full(k, 1 / k)),
        "labels": FixedTransition(prior=jnp.asarray(symmetric(k, delta))),
        "users": found.users(alpha, k),
    }
    labels = jnp.asarray(v_hat, jnp.int32)
    parts = {"class_prior": None, "labels": labels, "users": Users.pack(found.edges)}
    return model, Data(parts, jnp.ones(len(v_hat)))


def graph_updates(model, data, n_iter, stride=5):
    """Updates as a fit makes them; the function returns how many it made."""
    how = iteration([model], [data], "vb", True)
    context = how.context(model, data)
    resp = models.initial_responsibilities(model, data)
    start = how.pick(Point(resp, {name: c.prior for name, c in model.items()}))

    def work():
        plain = {"accelerate": False, "stride": stride}
        out = run(how.step, start, context, max_steps=n_iter, tol=-jnp.inf, **plain)
        jax.block_until_ready(out.params)
        # one that gains nothing is no accepted point
        return int(out.n_evaluations)

    return work


def cavi(sizes, repeats, k=10, alpha=0.5, delta=0.2, n_iter=26):
    """A row for ``sizes``, numbers of users, items and edges."""
    rng = np.random.default_rng(0)
    n_users, n_items, n_edges = sizes
    edges = draw_graph(rng, n_users, n_items, n_edges)
    v_hat = rng.integers(0, k, n_items)
    noise = symmetric(k, delta)
    model, data = graph_model(edges, v_hat, k, alpha, delta)
    packed = data.parts["users"]
    ours = graph_updates(model, data, n_iter)
    made = ours()

    by_user = edges.tocsc()
    shape = (by_user.indptr, by_user.indices, edges.indptr, edges.indices)
    loop, few = algorithm_1(), 2

    def theirs():
        return loop(*shape, np.log(noise[v_hat]), noise[v_hat], alpha, few)

    seconds = timed(ours, theirs, repeats=repeats)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(packed)) / edges.nnz
    name = (
        f"CAVI iteration\n{edges.shape[1]:,} users x {n_items:,} items, K = {k}\n"
        f"{edges.nnz:,} edges, {size:.1f} bytes an edge"
    )
    return Row(name, "numba", seconds[0] / made, seconds[1] / few, traffic(edges.nnz, k))


# EM on text ---------------------------------------------------------------------------------------


def words(binary=True):
    """Documents by the 7,302 words of largest summed TF-IDF; classes, 20 % of them wrong."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    frame = pd.read_parquet(NEWS)
    counts = CountVectorizer(stop_words="english", binary=binary).fit_transform(frame["text"])
    best = np.asarray(TfidfTransformer().fit_transform(counts).sum(0)).ravel()
    chosen = sparse.csr_matrix(counts[:, np.sort(np.argsort(-best)[:7302])])
    y = pd.factorize(frame["label"], sort=True)[0]
    return chosen, corrupt(y, uniform_noise(20, 0.2), np.random.default_rng(0)), 20


def em(repeats, n_iter=20):
    x, y, k = words()
    x = x.astype(np.float32)
    n, d = x.shape
    model = {
        "class_prior": Proportions.of(k),
        "labels": Transition.of(k),
        "x": Bernoulli.of(d, k),
    }
    parts = {"class_prior": None, "labels": jnp.asarray(y, jnp.int32), "x": Bernoulli.pack(x)}
    data = Data(parts, jnp.ones(n))
    start = models.start(model, jax.nn.one_hot(y, k), data, "map")

    def ours():
        out = run(
            models.step("map"),
            start,
            (model, data),
            max_steps=n_iter,
            tol=-jnp.inf,
            accelerate=False,
        )
        return jax.block_until_ready(out.params)

    back, onehot = x.T.tocsr(), np.eye(k, dtype=np.float32)[y]

    def theirs():
        resp = onehot
        for _ in range(n_iter):
            ones, size = back @ resp, resp.sum(0)
            p = (ones + 1) / (size + 2)
            prior = np.log((size + 1) / np.float32(n + k))
            noise = np.log((resp.T @ onehot + 1) / (size[:, None] + k))
            zero = np.log1p(-p)
            table = x @ (np.log(p) - zero) + (zero.sum(0) + prior) + onehot @ noise.T
            resp = np.exp(table - table.max(1, keepdims=True))
            resp /= resp.sum(1, keepdims=True)
            assert resp.dtype == np.float32
        return resp

    seconds = timed(ours, theirs, repeats=repeats)
    name = f"EM iteration, 20 Newsgroups\n{n:,} x {d:,}, K = {k}\n{x.nnz:,} nonzeros"
    return Row(name, "scipy", seconds[0] / n_iter, seconds[1] / n_iter, traffic(x.nnz, k))


def whole_fit(repeats):
    """A fit by the estimator, checks and layout included, beside a classifier's without noise."""
    from sklearn.linear_model import LogisticRegression

    x, y, _ = words(binary=False)
    ours = NoisyMultinomialNB.published(solver=Solver(precision="single"))
    theirs = LogisticRegression(max_iter=200)
    seconds = timed(lambda: ours.fit(x, y), lambda: theirs.fit(x, y), repeats=max(repeats // 3, 1))
    name = "whole fit, 20 Newsgroups\nNoisyMultinomialNB"
    return Row(name, "LogisticRegression", *seconds)


def beside_cleanlab(repeats, name, training):
    """A fit of the noise model beside confident learning's cross-validated five."""
    from cleanlab.classification import CleanLearning
    from sklearn.naive_bayes import BernoulliNB

    x, y, _ = words()
    theirs = CleanLearning(BernoulliNB(), cv_n_folds=5)
    ours = NoisyBernoulliNB.published(solver=Solver(precision="single"), training=training)
    seconds = timed(lambda: ours.fit(x, y), lambda: theirs.fit(x, y), repeats=max(repeats // 3, 1))
    name = f"whole fit, 20 Newsgroups\nNoisyBernoulliNB, {name}"
    return Row(name, "cleanlab\nBernoulliNB, 5 folds", *seconds)


def annotators(scale, repeats):
    from crowdkit.aggregation import DawidSkene as Theirs

    rng = np.random.default_rng(0)
    tasks, workers, labels = (int(n * scale) for n in (100_000, 1_000, 1_000_000))
    k = 5
    truth = rng.integers(0, k, tasks)
    skill = rng.uniform(0.5, 0.9, workers)
    task, worker = rng.integers(0, tasks, labels), rng.integers(0, workers, labels)
    right = rng.random(labels) < skill[worker]
    label = np.where(right, truth[task], rng.integers(0, k, labels))
    votes = pd.DataFrame({"task": task, "worker": worker, "label": label}).drop_duplicates(
        ["task", "worker"]
    )
    ours = DawidSkene(solver=Solver(method="ml", tol=1e-5, precision="single"))
    theirs = Theirs(n_iter=100, tol=1e-5)
    seconds = timed(
        lambda: ours.fit(votes), lambda: theirs.fit(votes), repeats=max(repeats // 3, 1)
    )
    name = f"Dawid-Skene\n{len(votes):,} votes, {tasks:,} tasks\n{workers:,} workers, K = {k}"
    return Row(name, "crowd-kit", *seconds)


# Without a peer -----------------------------------------------------------------------------------


def decades(repeats, k=10, n_iter=11):
    """Edges, and seconds of a CAVI update, over three decades."""
    rng = np.random.default_rng(0)
    for n_edges in (7_000, 70_000, 700_000, 7_000_000):
        n_items = n_edges // 34
        edges = draw_graph(rng, n_edges * 196 // 700, n_items, n_edges)
        model, data = graph_model(edges, rng.integers(0, k, n_items), k, 0.5, 0.2)
        work = graph_updates(model, data, n_iter)
        yield edges.nnz, timed(work, repeats=repeats)[0] / work()


def evaluations(seed, gap, noise, n=5000, d=20, k=4):
    """Passes over the data that EM needs to the same objective, plain and with acceleration."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    p = 0.5 + gap * rng.choice([-1, 1], (k, d))
    x = (rng.random((n, d)) < p[y]).astype(float)
    noisy = np.where(rng.random(n) < noise, (y + rng.integers(1, k, n)) % k, y)
    with jax.enable_x64(True):
        model = {
            "class_prior": Proportions.of(k),
            "labels": Transition.of(k),
            "x": Bernoulli.of(d, k),
        }
        parts = {
            "class_prior": None,
            "labels": jnp.asarray(noisy, jnp.int32),
            "x": Bernoulli.pack(x),
        }
        data, key = Data(parts, jnp.ones(n)), jax.random.key(0)
        settled = {"key": key, "max_iter": 20_000, "tol": 1e-8}
        plain = fit(model, data, accelerate=False, **settled)
        fast = fit(model, data, **settled)
        goal = min(plain.objective, fast.objective) - 1e-3
        reached = [int(np.argmax(one.trace >= goal)) + 1 for one in (plain, fast)]
        again = fit(model, data, key=key, max_iter=reached[1], tol=0)
    return reached[0], again.n_evaluations


def table_1():
    """Seconds for all 15 settings of Zeng et al. 2022, Table 1, 100 data sets each."""
    script = (
        "from benchmarks.reproduce.zeng_table import Scale, chosen; "
        "list(chosen(1, Scale(10, 10), matched=False)[1])"
    )
    command = [sys.executable, "-c", script]
    began = time.perf_counter()
    root = Path(__file__).parents[1]
    subprocess.run(command, check=True, capture_output=True, cwd=root)
    return time.perf_counter() - began


def first_fit():
    """Seconds of a new process: import, compile, fit 1,000 x 20."""
    script = (
        "import numpy as np; from nbmodels import NoisyBernoulliNB; r = np.random.default_rng(0); "
        "NoisyBernoulliNB.published().fit(r.integers(0, 2, (1000, 20)), r.integers(0, 3, 1000))"
    )
    plain = {**os.environ}
    plain.pop("JAX_COMPILATION_CACHE_DIR", None)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, env=plain)
    return time.perf_counter() - began


def rows(scale, repeats):
    """Module of each peer, whether the row needs 20 Newsgroups, and how it is measured."""
    for sizes, k in GRAPHS:
        sizes = tuple(int(scale * n) for n in sizes)
        yield "numba", False, lambda sizes=sizes, k=k: cavi(sizes, repeats, k)
    yield "scipy", True, lambda: em(repeats)
    joint, once = Joint(size_power=0.0), CrossFit(rounds=0, size_power=0.0)
    yield "cleanlab", True, lambda: beside_cleanlab(repeats, "joint", joint)
    yield "cleanlab", True, lambda: beside_cleanlab(repeats, "cross-fitted", once)
    yield "sklearn", True, lambda: whole_fit(repeats)
    yield "crowdkit", False, lambda: annotators(scale, repeats)


def against_peers(console, args, bandwidth):
    table = Table("work", "peer", "ours", "peer's", "ratio", "of memory", show_lines=True)
    for peer, on_text, measure in rows(args.scale, args.repeats):
        if args.peers and peer not in args.peers:
            continue
        if importlib.util.find_spec(peer) is None:
            console.print(f"{peer} is not installed: its row is left out")
            continue
        if on_text and not NEWS.exists():
            console.print(f"20 Newsgroups are not at hand: the row against {peer} is left out")
            continue
        row = measure()
        table.add_row(
            row.work,
            row.peer,
            f"{1e3 * row.ours:.1f} ms",
            f"{1e3 * row.theirs:.1f} ms",
            f"{row.theirs / row.ours:.1f}",
            f"{row.traffic / row.ours / bandwidth:.0%}" if row.traffic else "",
        )
    console.print(table)


def alone(console, args):
    console.print("\nCAVI update by edges:")
    for edges, seconds in decades(args.repeats):
        console.print(
            f"  {edges:>9,} edges {1e3 * seconds:8.2f} ms {1e9 * seconds / edges:6.1f} ns each"
        )
    console.print("\nPasses over the data to the same objective, plain and accelerated, 5 seeds:")
    for what, gap, noise in (
        ("overlapping classes, 40 % noise", 0.15, 0.4),
        ("clear, 20 %", 0.3, 0.2),
    ):
        pairs = [evaluations(seed, gap, noise) for seed in range(5)]
        ratio = statistics.median(plain / fast for plain, fast in pairs)
        worst = max(fast / plain for plain, fast in pairs)
        listed = ", ".join(f"{plain}/{fast}" for plain, fast in pairs)
        console.print(
            f"  {what}: {listed}; {ratio:.1f} times fewer, at worst {worst:.2f} times as many"
        )
    console.print(f"\nfirst fit in a new process, 1,000 x 20: {first_fit():.1f} s")
    console.print(f"Table 1 of Zeng et al. 2022, 15 settings x 100 data sets: {table_1():.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="of the graph and of the votes")
    parser.add_argument("--peers", nargs="*", help="only these rows, and nothing without a peer")
    args = parser.parse_args()
    console = Console()
    console.print(f"Python {sys.version.split()[0]}, jax {jax.__version__}, {jax.devices()[0]}")
    limit = limits(args.repeats)
    console.print(f"memory, read and written: {limit.bandwidth / 1e9:.1f} GB/s")
    console.print(f"rows of 40 bytes gathered at random: {limit.gather * 1e9:.1f} ns a row")
    console.print(f"matrix product: {limit.product / 1e9:.0f} GFLOP/s")
    against_peers(console, args, limit.bandwidth)
    if not args.peers:
        alone(console, args)


if __name__ == "__main__":
    main()
