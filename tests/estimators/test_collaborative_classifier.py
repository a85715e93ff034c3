"""CollaborativeClassifier: labels corrected by users who touch items of few classes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from paths import SHARED
from scipy import sparse
from settings import configured
from sklearn.base import clone

from nbmodels import (
    CollaborativeClassifier,
    DataError,
    IdentifiabilityWarning,
)
from nbmodels.fitting.duplicate_users import grouped
from nbmodels.papers import maystre2021 as page

K = 4


def quick(**options):
    """No search, and noise that is known: thirty items could not tell."""
    given = {"alpha": 0.3, "weight": 1.0, "noise_folds": 0, "noise": page.noise(K, 0.1).T}
    return configured(CollaborativeClassifier, **given | options)


def with_lone_users():
    """Users of no item, of one (some of them the same), of several."""
    rng = np.random.default_rng(3)
    lone = sparse.csr_array(np.eye(12)[rng.integers(0, 12, 60)].T)
    many = sparse.csr_array(rng.integers(0, 3, (12, 9)) * 1.0)
    twice = sparse.csr_array(2.0 * np.eye(12)[:, [0, 0, 1]])
    nobody = sparse.csr_array((12, 4))
    edges = sparse.hstack([lone, nobody, many, twice]).tocsr()
    order = rng.permutation(edges.shape[1])
    busy = np.flatnonzero(order == 64)[0]  # the first user is one of several items
    order[[0, busy]] = order[[busy, 0]]
    return sparse.csr_array(edges[:, order])


def test_exchangeable_users_are_one():
    edges = with_lone_users()
    assert edges[:, [0]].nnz > 1
    found = grouped(edges)
    np.testing.assert_array_equal(found.edges.toarray()[:, found.group], edges.toarray())
    np.testing.assert_array_equal(np.bincount(found.group), found.multiplicity)
    columns = edges.toarray()
    lone = (columns > 0).sum(0) <= 1
    distinct = np.unique(columns[:, lone], axis=1).shape[1] + (~lone).sum()
    assert found.edges.shape[1] == distinct < edges.shape[1]


@pytest.mark.slow
@pytest.mark.parametrize("collapsed", [True, False])
@pytest.mark.parametrize("method", ["vb", "map"])
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_fit_is_that_of_all_users(method, collapsed):
    edges = with_lone_users()
    v_hat = np.random.default_rng(0).integers(0, K, 12)
    alike = quick(alpha=1.3, method=method, collapsed=collapsed, tol=1e-13)
    one_by_one = clone(alike).set_params(alpha=np.full((edges.shape[1], K), 1.3))
    alike.fit(edges.T, v_hat)
    one_by_one.fit(edges.T, v_hat)
    np.testing.assert_allclose(alike.label_posterior_, one_by_one.label_posterior_, atol=1e-9)
    np.testing.assert_allclose(alike.user_proportions_, one_by_one.user_proportions_, atol=1e-9)
    np.testing.assert_allclose(alike.objective_, one_by_one.objective_, rtol=1e-10)
    assert alike.alpha_ == 1.3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_draws_are_of_all_users():
    edges = with_lone_users()
    v_hat = np.random.default_rng(0).integers(0, K, 12)
    e = quick(alpha=1.3).fit(edges.T, v_hat)
    draws = e.posterior(draws=50, chains=2, keep="all").posterior["users_u"]
    assert draws.shape == (2, 50, edges.shape[1], K)
    # two users of the same single item have draws of their own
    group = grouped(edges).group
    same = np.flatnonzero(np.bincount(group) > 1)
    first, second = np.flatnonzero(group == same[-1])[:2]
    assert np.abs(draws.values[:, :, first] - draws.values[:, :, second]).max() > 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_user_of_one_item_is_uninformative():
    """The published updates believe such a user; with proportions integrated out, it is mute."""
    rng = np.random.default_rng(0)
    v = rng.integers(0, K, 60)
    lone = sparse.csr_array(np.eye(60))
    wrong = np.where(np.arange(60) % 6 == 0, (v + 1) % K, v)
    collapsed = quick(class_prior=np.full(K, 1 / K)).fit(lone.T, wrong)
    expected = page.beta(wrong, K, 0.1)
    np.testing.assert_allclose(collapsed.label_posterior_, expected, atol=1e-6)
    published = CollaborativeClassifier.published(K, 0.1, 0.3).fit(lone.T, wrong)
    assert (published.label_posterior_.max(1) > 0.99).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.PosteriorWarning")  # few draws
def test_labels_are_corrected_and_the_noise_is_found():
    drawn = page.simulate(np.random.default_rng(5), M=2500, N=400, K=4, alpha=0.3, delta=0.2)
    e = CollaborativeClassifier(random_state=0).fit(drawn.edges.T, drawn.v_hat)
    best = e.label_posterior_.argmax(1)
    assert (best != drawn.v).mean() < 0.02
    assert abs(1 - e.noise_matrix_[0, 0] - (drawn.v != drawn.v_hat).mean()) < 0.02
    assert e.weight_ > 0
    table = e.corrected_labels()
    columns = ["row", "given", "suggested", "p_suggested", "p_wrong", "rank"]
    assert list(table.columns) == columns
    # the noise has intervals, which hold the share of labels that are wrong
    draws = e.posterior(draws=200, warmup=50, chains=2, progress=False)
    wrong = 1 - draws["posterior"]["noise_matrix"].values[..., 0, 0].ravel()
    low, high = np.quantile(wrong, [0.01, 0.99])
    assert low < (drawn.v != drawn.v_hat).mean() < high
    assert high - low < 0.3  # draws do not suppose that all rates are equal
    # new items are classified by their users alone
    proba = e.predict_proba(drawn.edges.T)
    assert (proba.argmax(1) == drawn.v).mean() > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [3.0, 30.0])
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_weak_edges_do_no_harm(alpha):
    drawn = page.simulate(np.random.default_rng(6), M=800, N=800, K=4, alpha=alpha, delta=0.1)
    before = (drawn.v_hat != drawn.v).mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)  # nothing may be learned of noise
        e = CollaborativeClassifier(random_state=0)
        e.fit(drawn.edges.T, drawn.v_hat)
        assert (e.label_posterior_.argmax(1) != drawn.v).mean() <= before + 0.005
        published = CollaborativeClassifier.published(4, 0.1, 0.1).fit(drawn.edges.T, drawn.v_hat)
    harmed = (published.label_posterior_.argmax(1) != drawn.v).mean()
    assert harmed > before + 0.02  # so that the test can tell


@pytest.mark.slow
def test_uninformative_edges_are_reported():
    rng = np.random.default_rng(0)
    graph = sparse.csr_array((rng.random((300, 200)) < 0.02).astype(float))
    labels = rng.integers(0, 3, 300)
    e = CollaborativeClassifier(random_state=0)
    with pytest.warns(IdentifiabilityWarning, match="no label is corrected"):
        e.fit(graph.T, labels)
    assert e.weight_ == 0
    assert (e.corrected_labels()["suggested"] == labels).all()


def pairs(platform):
    item, user = platform.edges.nonzero()
    return pd.DataFrame({"user": [f"u{i}" for i in user], "item": [f"i{j:02d}" for j in item]})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:classes. no label names 4")
def test_a_class_without_labels_stays_possible(platform):
    e = quick(alpha=0.3, class_alpha=0.0, classes=range(K + 1), noise="symmetric")
    e.fit(platform.edges.T, platform.v_hat)
    assert 0 < e.class_prior_[K] < 1e-3
    assert np.isfinite(e.label_posterior_).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_pairs_of_ids_are_the_matrix(platform):
    names = np.array(["a", "b", "c", "d"])
    labels = {f"i{j:02d}": names[k] for j, k in enumerate(platform.v_hat) if j % 5}
    e = quick().fit(pairs(platform).sample(frac=1, random_state=0), labels)
    assert list(e.items_) == [f"i{j:02d}" for j in range(30)]
    codes = np.where(np.arange(30) % 5, names[platform.v_hat], "?")
    same = quick(missing_label="?").fit(platform.edges.T, codes)
    np.testing.assert_allclose(e.label_posterior_, same.label_posterior_, atol=1e-9)
    assert e.corrected_labels()["given"].isna().sum() == 6
    # a mapping may name items that nobody touched, and they keep their label
    more = quick().fit(pairs(platform), {**labels, "zz": "b"})
    assert more.items_[-1] == "zz"
    assert more.classes_[more.label_posterior_[-1].argmax()] == "b"


def test_items_without_users_and_users_without_items(platform):
    graph = sparse.csr_array(platform.edges.toarray() * (np.arange(40) > 2))
    graph = sparse.vstack([graph, sparse.csr_array((1, 40))]).tocsr()
    e = quick().fit(graph.T, np.append(platform.v_hat, 2))
    alone = page.beta(np.array([2]), K, 0.1)[0] * e.class_prior_
    np.testing.assert_allclose(e.label_posterior_[-1], alone / alone.sum(), atol=0.02)
    np.testing.assert_allclose(e.user_proportions_[:3], 1 / K)


def test_duplicate_edges(platform):
    twice = pd.concat([pairs(platform)] * 2)
    labels = {f"i{j:02d}": int(k) for j, k in enumerate(platform.v_hat)}
    counted = quick().fit(twice, labels)
    doubled = quick().fit(2 * platform.edges.T, platform.v_hat)
    np.testing.assert_allclose(counted.label_posterior_, doubled.label_posterior_, atol=1e-9)
    once = quick(duplicates="once").fit(twice, labels)
    single = quick().fit(platform.edges.T, platform.v_hat)
    np.testing.assert_allclose(once.label_posterior_, single.label_posterior_, atol=1e-9)
    with pytest.raises(DataError, match=r"user 'u\d+' and item 'i\d+' have 2 edges"):
        quick(duplicates="refuse").fit(twice, labels)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_informative_priors(platform):
    alpha = np.full((40, K), 0.3)
    alpha[:, 1] = 50.0
    e = quick(alpha=alpha).fit(platform.edges.T, platform.v_hat)
    assert (e.user_proportions_.argmax(1) == 1).all()
    prior = np.full((30, K), 1 / K)
    prior[0] = np.eye(K)[(platform.v_hat[0] + 1) % K]
    with_prior = quick().fit(platform.edges.T, platform.v_hat, item_prior=prior)
    assert with_prior.label_posterior_[0].argmax() == (platform.v_hat[0] + 1) % K


def test_alpha_is_learned_from_the_bound():
    drawn = page.simulate(np.random.default_rng(7), M=600, N=80, K=4, S=8, alpha=0.5)
    e = quick(alpha="bound", collapsed=False).fit(drawn.edges.T, drawn.v_hat)
    assert 0.3 < e.alpha_ < 0.8
    worse = quick(alpha=5.0, collapsed=False).fit(drawn.edges.T, drawn.v_hat)
    assert e.objective_ > worse.objective_


BAD = {
    "numbers": ((np.eye(3), [0, 1, 0]), {}, "SciPy sparse matrix"),
    "negative": ((sparse.csr_array([[1, -1, 1]]), [0, 1, 0]), {}, "item 1 has -1.0 edges"),
    "length": ((sparse.csr_array(np.eye(3)), [0, 1]), {}, "labels|y: has 2 rows"),
    "columns": ((pd.DataFrame({"a": [1], "b": [2], "c": [3]}), {2: 0}), {}, "columns user, item"),
    "null id": ((pd.DataFrame({"user": [1, None], "item": [1, 2]}), {1: 0}), {}, "row 1 has no us"),
    "alpha word": ((sparse.csr_array(np.eye(3)), [0, 1, 0]), {"alpha": "best"}, "alpha: expected"),
    "alpha": ((sparse.csr_array(np.eye(3)), [0, 1, 0]), {"alpha": -1.0}, "alpha: row 0 holds -1"),
    "alpha shape": (
        (sparse.csr_array(np.eye(3)), [0, 1, 0]),
        {"alpha": np.ones(5)},
        "does not broadcast to 3 users and 2 classes",
    ),
    "weight": ((sparse.csr_array(np.eye(3)), [0, 1, 0]), {"weight": -1.0}, "weight: expected"),
    "folds": (
        (sparse.csr_array(np.eye(3)), [0, 1, 0]),
        {"noise_folds": 1},
        "noise_folds: expected 0",
    ),
    "one class": ((sparse.csr_array(np.eye(3)), [1, 1, 1]), {}, "at least two classes"),
    "duplicates": (
        (sparse.csr_array(np.eye(3)), [0, 1, 0]),
        {"duplicates": "?"},
        "duplicates: exp",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    (graph, labels), options, words = BAD[case]
    with pytest.raises(DataError, match=words):
        quick(**{"noise": "symmetric"} | options).fit(graph, labels)


def test_a_prior_of_items_is_checked():
    prior = np.array([[0.5, 0.5], [0, 0], [1, 0]])
    graph = sparse.csr_array(np.eye(3))
    with pytest.raises(DataError, match="item_prior: row 1"):
        quick(noise="symmetric").fit(graph, [0, 1, 0], item_prior=prior)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
def test_author_threads_of_20_newsgroups():
    """Goal: at most 0.076 of the items wrong, 0.022 of the best-connected tenth."""
    path = SHARED / "text/newsgroups20.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    from threads import author_threads

    graph = author_threads(path)
    n, k = len(graph.classes), len(np.unique(graph.classes))
    top = graph.degree >= np.quantile(graph.degree, 0.9)
    rng = np.random.default_rng(0)
    wrong = rng.random(n) < 0.1
    given = np.where(wrong, (graph.classes + rng.integers(1, k, n)) % k, graph.classes)
    e = CollaborativeClassifier(random_state=0).fit(graph.edges.T, given)
    missed = e.label_posterior_.argmax(1) != graph.classes
    assert missed.mean() <= 0.076
    assert missed[top].mean() <= 0.022


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_weak_graphs_do_no_harm(alpha):
    """Shares that were learned beside such a graph ended in one class for all, in one case of 3."""
    drawn = page.simulate(np.random.default_rng(100), M=1500, N=1500, K=5, alpha=alpha)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        wrong = rng.random(1500) < 0.1
        given = np.where(wrong, (drawn.v + rng.integers(1, 5, 1500)) % 5, drawn.v)
        e = CollaborativeClassifier(random_state=seed, classes=range(5))
        e.fit(drawn.edges.T, given)
        np.testing.assert_allclose(e.class_prior_, np.bincount(given) / 1500, atol=0.02)
        error = np.mean(e.label_posterior_.argmax(1) != drawn.v)
        assert error <= np.mean(given != drawn.v) + 0.005
