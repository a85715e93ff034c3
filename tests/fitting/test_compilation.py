"""What is compiled once is not compiled again."""

import os
import subprocess
import sys
import textwrap
import traceback

import jax
import numpy as np
import pandas as pd
import pytest
from children import counting
from marks import slow_among
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from nbmodels import (
    ClassConditionalNB,
    CollaborativeClassifier,
    DawidSkene,
    JointNB,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    NoisyMixedNB,
    NoisyMultinomialNB,
    NoisyNeighbours,
    PartialLabelNB,
    PositiveUnlabelledNB,
    RobustNDA,
    Solver,
)

N, D, K = 250, 6, 3


@pytest.fixture(scope="module")
def compiled():
    """A function that says how many programs have been compiled."""
    return counter()


def counter():
    seen = []

    def listen(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return lambda: len(seen)


def labelled(seed, k=K):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, N)
    noisy = np.where(rng.random(N) < 0.2, rng.integers(0, k, N), y)
    return rng.normal(np.eye(D)[y] * 2), noisy


def words(seed):
    x, y = labelled(seed)
    return sparse.csr_array(np.maximum(x, 0).round()), y


def binary(seed):
    x, y = labelled(seed)
    return (x > 1).astype(int), y


def two_classes(seed):
    x, y = labelled(seed, 2)
    return (x > 1).astype(int), y


def votes(seed, n=N):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    task = np.arange(n).repeat(3)
    worker = np.tile(np.arange(3), n)
    label = np.where(rng.random(3 * n) < 0.3, rng.integers(0, K, 3 * n), y[task])
    return (pd.DataFrame({"task": task, "worker": worker, "label": label}),)


#: Numbers of annotators by number of items.
CROWDS = {250: 5, 300: 6, 700: 13, 1_900: 32}


def crowds(seed, n=N):
    """Three votes an item by other numbers of annotators."""
    rng = np.random.default_rng(seed)
    y, task = rng.integers(0, K, n), np.arange(n).repeat(3)
    worker = rng.random((n, CROWDS[n])).argsort(1)[:, :3].ravel()
    label = np.where(rng.random(3 * n) < 0.3, rng.integers(0, K, 3 * n), y[task])
    return (pd.DataFrame({"task": task, "worker": worker, "label": label}),)


def outputs(seed, n=N):
    """Outputs of three labelling functions, which abstain from some items."""
    given = votes(seed, n)[0]["label"].to_numpy().reshape(n, 3)
    return (np.where(np.random.default_rng(seed).random((n, 3)) < 0.4, -1, given),)


def graph(seed):
    rng = np.random.default_rng(seed)
    y = labelled(seed)[1]
    users = sparse.coo_array((np.ones(3 * N), (rng.integers(0, 80, 3 * N), np.arange(N).repeat(3))))
    return users.tocsr(), y


def visits(seed, n=N):
    """Six users an item, in proportions of their own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    appeal = rng.dirichlet(np.full(K, 0.2), n // 4)
    user = np.concatenate(
        [rng.choice(n // 4, n, p=p / p.sum()) for p in appeal.T for _ in range(6)]
    )
    item = np.arange(n)[None].repeat(6 * K, 0).ravel()
    own = np.repeat(np.arange(K), 6 * n) == y[item]
    edges = sparse.csr_array((np.ones(own.sum()), (user[own], item[own])), shape=(n // 4, n))
    edges.data[:] = 1
    return edges, np.where(rng.random(n) < 0.2, rng.integers(0, K, n), y)


def partly(seed):
    x, y = words(seed)
    return x, np.arange(K) == y[:, None]


FITS = {
    "Gaussian": (NoisyGaussianNB.published(), labelled),
    "robust": (RobustNDA.published(), labelled),
    "Student": (RobustNDA.published(dof=4.0), labelled),
    "Bernoulli": (NoisyBernoulliNB.published(), binary),
    "restarts": (NoisyBernoulliNB.published(solver=Solver(n_restarts=3)), binary),
    "categorical": (NoisyCategoricalNB.published(), binary),
    "multinomial, sparse": (NoisyMultinomialNB.published(), words),
    "partial": (PartialLabelNB(), partly),
    "closed form": (ClassConditionalNB(), two_classes),
    "annotators": (DawidSkene(), votes),
    "graph": (CollaborativeClassifier.published(K, 0.2, 0.5, classes=range(K)), graph),
}


#: Fits that compile little else than the rest.
FEW = ("Gaussian", "Bernoulli", "multinomial, sparse")


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_among(FITS, set(FITS) - set(FEW)))
@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
def test_a_fit_of_the_same_shapes_compiles_nothing(name, compiled):
    """Nor do other data of the same shapes, whatever stands in which row."""
    e, draw = FITS[name]
    data = draw(0)
    e.fit(*data)
    before = compiled()
    e.fit(*data)
    order = np.random.default_rng(1).permutation(N)
    e.fit(*(_permuted(part, order) for part in data))
    assert compiled() == before


def _permuted(part, order):
    """Another order of the items: rows, columns of a graph, rows of a table of votes."""
    if part.shape[0] == N:
        return part[order]
    if part.shape[1] == N:
        return part[:, order]
    return part.iloc[np.random.default_rng(1).permutation(len(part))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
def test_other_sparse_data_of_about_the_same_size_compile_nothing(compiled):
    """Layouts depend on what is in a matrix, but are rounded up to few sizes."""
    e = NoisyMultinomialNB.published()
    for seed in range(4):
        e.fit(*words(seed))
    before = compiled()
    for seed in range(4, 12):
        e.fit(*words(seed))
    assert compiled() - before < 8 * 5 / 4  # a fit that compiles compiles five programs


def reals(seed, n=N):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    noisy = np.where(rng.random(n) < 0.2, rng.integers(0, K, n), y)
    return rng.normal(np.eye(D)[y] * 2), noisy


def whole_numbers(seed, n=N):
    x, y = reals(seed, n)
    return np.maximum(x, 0).round(), y


def indicators(seed, n=N):
    x, y = reals(seed, n)
    return (x > 1).astype(int), y


def marked(seed, n=N):
    """Indicators, with labels of two classes."""
    x, y = indicators(seed, n)
    return x, (y > 0).astype(int)


def columns_of_all_kinds(seed, n=N):
    x, y = reals(seed, n)
    frame = pd.DataFrame(x[:, :2], columns=["length", "width"])
    for column in range(2, 4):
        frame[f"binary {column}"] = x[:, column] > 1
    for column in range(4, D):
        amount = np.clip(x[:, column], 0, 2).astype(int)
        frame[f"text {column}"] = np.array(["no", "some", "much"])[amount]
    return frame, y


def two_candidates(seed, n=N):
    """Labels of which one other class may be the true one as well."""
    x, y = whole_numbers(seed, n)
    other = (y + np.random.default_rng(seed).integers(1, K, n)) % K
    return x, (np.arange(K) == y[:, None]) | (np.arange(K) == other[:, None])


def columns_and_votes(seed, n=N):
    return ({"size": reals(seed, n)[0], "crowd": votes(seed, n)[0]},)


#: Sizes, the first one first; of fewer rows the features say nothing here, and other programs are
#: wanted. Up to 500 rows a joint model is taken by another rule, and so may be another one.
SIZES = (250, 300, 700, 1_900)
SMALL, LARGE = (250, 300, 450), (600, 700, 1_900)
#: With fixed folds: others may choose another model, which is another program.
DEFAULTS = {
    "Bernoulli": (NoisyBernoulliNB(random_state=0), indicators, SMALL),
    "Bernoulli, many rows": (NoisyBernoulliNB(random_state=0), indicators, LARGE),
    "categorical": (NoisyCategoricalNB(random_state=0), indicators, SMALL),
    "mixed": (NoisyMixedNB(random_state=0), columns_of_all_kinds, SMALL),
    "multinomial": (NoisyMultinomialNB(random_state=0), whole_numbers, SMALL),
    "Gaussian": (NoisyGaussianNB(random_state=0), reals, SMALL),
    "Gaussian, many rows": (NoisyGaussianNB(random_state=0), reals, LARGE),
    "robust": (RobustNDA(random_state=0), reals, SMALL),
    "robust, many rows": (RobustNDA(random_state=0), reals, LARGE),
    "dof learned": (RobustNDA(dof="learn", random_state=0), reals, SMALL),
    "graph": (CollaborativeClassifier(random_state=0), visits, LARGE),
    "logistic": (NoisyLogisticRegression(random_state=0), reals, SIZES),
    "annotators": (DawidSkene(random_state=0), votes, SIZES),
    # as many votes of each size as those of "annotators", whose numbers differ, too
    "crowds": (DawidSkene(random_state=0), crowds, SIZES),
    "crowds, variational": (DawidSkene(solver="vb", random_state=0), crowds, SIZES),
    "crowds, shared prior": (DawidSkene(pooling="shared", random_state=0), crowds, SIZES),
    "crowds, sub-types": (DawidSkene(subtypes=2, random_state=0), crowds, SIZES),
    "labelling functions": (DawidSkene.weak_supervision(random_state=0), outputs, SIZES),
    "neighbours": (NoisyNeighbours(random_state=0), reals, SIZES),
    "two classes": (ClassConditionalNB(random_state=0), marked, SIZES),
    "positive": (PositiveUnlabelledNB(positive=1, random_state=0), marked, SIZES),
    "partial": (PartialLabelNB(random_state=0), two_candidates, (250,)),
    "joint": (
        JointNB({"size": NoisyGaussianNB(), "crowd": DawidSkene()}, random_state=0),
        columns_and_votes,
        (250,),
    ),
    # which fits are made goes by the labels, too
    "trees": (
        NoisyLabelClassifier(DecisionTreeClassifier(max_depth=3), random_state=0),
        reals,
        (250,),
    ),
}


#: Most programs of a first default fit, and less where it was measured: one more than that.
MOST = 15
FEWER = {
    NoisyBernoulliNB: 10,
    NoisyCategoricalNB: 10,
    NoisyMixedNB: 10,
    NoisyMultinomialNB: 10,
    NoisyGaussianNB: 10,
    RobustNDA: 12,
    NoisyLogisticRegression: 11,
    ClassConditionalNB: 11,
    DawidSkene: 8,
    NoisyNeighbours: 7,
    PositiveUnlabelledNB: 11,
    NoisyLabelClassifier: 11,
    PartialLabelNB: 14,
}


#: Not on Windows.
CAN_COPY = hasattr(os, "fork")


@pytest.fixture(scope="module" if CAN_COPY else "function")
def counted():
    """A function from a name to the counts of :func:`count_first_and_others`.

    A process imports the library once, and each count is made in a copy of it.
    """
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__],
        env=counting(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:

        def count(name):
            server.stdin.write(f"{name}\n")
            server.stdin.flush()
            return [int(word) for word in server.stdout.readline().split()]

        yield count


@pytest.mark.parametrize("name", slow_among(DEFAULTS, set(DEFAULTS) - {"Bernoulli"}))
def test_a_first_default_fit_compiles_few_programs_and_other_sizes_none(name, counted):
    """In a process of its own: in one that ran other tests the counts depended on them."""
    first, others = counted(name)
    e, _, sizes = DEFAULTS[name]
    assert 2 < first <= FEWER.get(type(e), MOST)
    # new items are predicted by another program where another training is selected
    assert others <= (sizes == SMALL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")  # few draws
@pytest.mark.parametrize(
    ("estimator", "draw"),
    [
        (NoisyBernoulliNB(training="joint"), indicators),
        (NoisyLogisticRegression(), reals),
        (DawidSkene(), votes),
    ],
)
def test_draws_of_another_size_compile_nothing(estimator, draw, compiled):
    """The training is given: on the defaults, one of these sizes selects the other one."""
    drawn = {"draws": 40, "chains": 2, "progress": False, "keep": "parameters"}
    clone(estimator).fit(*draw(0, 250)).posterior(**drawn)
    other = clone(estimator).fit(*draw(0, 300))
    before = compiled()
    other.posterior(**drawn)
    assert compiled() == before


def count_first_and_others(name):
    """Programs of a first default fit, and of fits to other sizes of the same table."""
    e, draw, sizes = DEFAULTS[name]
    count = counter()
    data = draw(0, sizes[0])
    e.fit(*data)
    first = count()
    e.predict(data[0])
    before = count()
    for n in sizes[1:]:
        data = draw(0, n)
        e.fit(*data).predict(data[0])
    print(first, count() - before, flush=True)


def serve():
    """Counts for each name that is read, in a process that no other one was counted in."""
    for line in sys.stdin:
        # imports alone begin nothing in JAX that a copy would lack
        copy = os.fork() if CAN_COPY else 0
        if not copy:
            try:
                count_first_and_others(line.strip())
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(copy, 0)[1]:
            print(flush=True)  # so that the test, which waits for counts, fails


def test_the_count_counts(compiled):
    before = compiled()
    jax.jit(lambda x: x * compiled())(np.ones(3))
    assert compiled() > before


def in_a_new_process(**settings):
    """Programs compiled, hits and misses of the persistent cache, of one small fit."""
    script = """
        import jax, numpy as np
        from nbmodels import NoisyBernoulliNB
        found = []
        def seen(event, *_, **__):
            found.append(event)
        jax.monitoring.register_event_listener(seen)
        jax.monitoring.register_event_duration_secs_listener(seen)
        rng = np.random.default_rng(0)
        NoisyBernoulliNB.published().fit(rng.integers(0, 2, (200, 5)), rng.integers(0, 2, 200))
        print(found.count("/jax/core/compile/backend_compile_duration"),
              found.count("/jax/compilation_cache/cache_hits"),
              found.count("/jax/compilation_cache/cache_misses"))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        env=counting(**settings),
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in done.stdout.split()]


@pytest.mark.slow
def test_a_first_fit_compiles_few_programs():
    """Single operations outside compiled code are programs too; there were 64 at a time."""
    compiled, *_ = in_a_new_process()
    assert 2 < compiled <= 15


@pytest.mark.slow
def test_first_draws_compile_few_programs():
    """In a process of its own; with single operations there were 22."""
    script = """
        import jax, numpy as np
        from nbmodels import NoisyBernoulliNB
        rng = np.random.default_rng(0)
        true = rng.integers(0, 3, 200)
        x = rng.random((200, 8)) < rng.uniform(0.1, 0.9, (3, 8))[true]
        e = NoisyBernoulliNB(training="cross_fit").fit(x, true)
        found = []
        def seen(event, *_, **__):
            found.append(event)
        jax.monitoring.register_event_duration_secs_listener(seen)
        e.posterior(draws=20, warmup=20, chains=2, keep="parameters", progress=False)
        print(found.count("/jax/core/compile/backend_compile_duration"))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        env=counting(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert 2 < int(done.stdout) <= 12


@pytest.mark.slow
def test_the_persistent_cache_is_used(tmp_path):
    """A second process finds what the first one compiled."""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    _, hits, misses = in_a_new_process(**settings)
    assert misses > 2
    _, hits, misses = in_a_new_process(**settings)
    assert hits > 2
    assert misses == 0


if __name__ == "__main__":
    serve()
