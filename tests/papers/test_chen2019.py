"""The page of Chen et al. 2019 against loops, simulation and components; the estimator."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from paper_data import LENGTH, N_TOPICS, N_WORDS, partly_labelled_documents
from reference import enumerated_density
from scipy import sparse, stats

from nbmodels import DataError, IdentifiabilityWarning, PartialLabelNB
from nbmodels.papers import chen2019

K, V, M = N_TOPICS, N_WORDS, LENGTH
NAMES = np.array(["grain", "money", "ship", "trade"])


def as_lists(y, z):
    """The same evidence in the estimator's words."""
    positive = [NAMES[row > 0][0] if row.any() else None for row in y]
    return positive, [list(NAMES[row > 0]) for row in z]


def by_loops(x, y, z, estimator, t):
    """``(K, V)`` after (4.2), (4.4) and (4.5), one sum after the other."""
    out = np.zeros((K, V))
    for i in range(K):
        for j in range(V):
            for d in range(len(x)):
                labelled = y[d].any()
                if estimator == "L1" and labelled:
                    weight = y[d, i]
                elif estimator == "L1":
                    weight = (1 - z[d, i]) / (K - sum(z[d, m] for m in range(K) if m != i))
                elif estimator == "star" and labelled:
                    weight = 2 * y[d, i] + t - 1
                else:
                    weight = y[d, i] + t - z[d, i]
                out[i, j] += weight * x[d, j]
    return out / out.sum(1, keepdims=True)


# Closed forms


@pytest.mark.parametrize("estimator", ["L1", "L2", "star"])
def test_closed_forms_are_the_sums_of_the_paper(estimator):
    x, y, z, _ = partly_labelled_documents()
    t = 2.5
    expected = by_loops(x, y, z, estimator, t)
    positive, negative = as_lists(y, z)
    m = PartialLabelNB(estimator=estimator, t=t, alpha=0.0).fit(x, positive, excluded=negative)
    np.testing.assert_allclose(np.exp(m.feature_log_prob_), expected, rtol=1e-12)
    starred = np.where((estimator == "star") & y.any(1, keepdims=True), 1 - y, z)
    first = estimator == "L1"
    weights = chen2019.weights_1(y, z) if first else chen2019.weights_2(y, starred, t)
    np.testing.assert_allclose(chen2019.centroids(weights, x), expected, rtol=1e-12)
    np.testing.assert_array_equal(m.classes_, NAMES)


@pytest.mark.parametrize("estimator", ["L1", "L2"])
def test_closed_forms_maximise_their_likelihood(estimator):
    x, y, z, _ = partly_labelled_documents()
    weights = chen2019.weights_1(y, z) if estimator == "L1" else chen2019.weights_2(y, z, 2.0)
    theta = chen2019.centroids(weights, x)

    def likelihood(logits):
        return chen2019.log_likelihood(weights, x, jnp.full(K, 1 / K), jax.nn.softmax(logits, 1))

    gradient = jax.grad(likelihood)(jnp.log(theta))
    np.testing.assert_allclose(gradient, 0, atol=1e-9)
    assert likelihood(jnp.log(theta) + 0.1 * jnp.eye(K, V)) < likelihood(jnp.log(theta))


def test_star_is_l2_with_the_other_classes_excluded():
    x, _, _, true = partly_labelled_documents()
    y = np.eye(K)[true]
    star = PartialLabelNB(estimator="star", t=1.7).fit(x, NAMES[true])
    l2 = chen2019.centroids(chen2019.weights_2(y, 1 - y, 1.7), x)
    direct = (2 * y + 1.7 - 1).T @ x
    np.testing.assert_allclose(l2, direct / direct.sum(1, keepdims=True))
    unsmoothed = PartialLabelNB(estimator="star", t=1.7, alpha=0).fit(x, NAMES[true])
    np.testing.assert_allclose(np.exp(unsmoothed.feature_log_prob_), l2)
    assert np.abs(np.exp(star.feature_log_prob_) - l2).max() > 1e-3  # alpha smooths
    # section 4.3: L1 with all others excluded is plain naive Bayes, and so is L* at t = 1
    plain = np.stack([x[true == i].sum(0) / x[true == i].sum() for i in range(K)])
    l1 = chen2019.centroids(chen2019.weights_1(y, 1 - y), x)
    np.testing.assert_allclose(l1, plain)
    one = PartialLabelNB(estimator="star", t=1, alpha=0).fit(x, NAMES[true])
    np.testing.assert_allclose(np.exp(one.feature_log_prob_), plain, atol=1e-300)


# The theorems

THETA = np.random.default_rng(5).dirichlet(np.full(V, 0.7), K)
N_C, N_D = (3, 5, 4, 2), (6, 4, 9, 5)
N_DRAWS = 4000


@jax.jit
@partial(jax.vmap, in_axes=(0, None))
def estimates(key, t):
    sim = chen2019.simulate(key, THETA, N_C, N_D, M)
    return (
        chen2019.centroids(sim.y, sim.x),
        chen2019.centroids(chen2019.weights_1(sim.y, sim.z), sim.x),
        chen2019.centroids(chen2019.weights_2(sim.y, sim.z, t), sim.x),
    )


@pytest.fixture(scope="module")
def draws():
    return [np.asarray(a) for a in estimates(jax.random.split(jax.random.key(3), N_DRAWS), 2.0)]


def agrees_on_average(sample, mean):
    error = sample.std(0) / np.sqrt(N_DRAWS)
    assert (np.abs(sample.mean(0) - mean) <= 5 * error).all()


def test_theorem_1(draws):
    agrees_on_average(draws[0], THETA)
    expected = chen2019.variance_nb(THETA, np.array(N_C)[:, None], M)
    np.testing.assert_allclose(draws[0].var(0), expected, rtol=0.15)


def test_theorem_2(draws):
    # with one class of four excluded, each of the other three has weight 1/3
    bias = np.zeros((K, V))
    for i in range(K):
        may = [d for d in range(K) if d != i]
        n_R = sum(N_D[d] for d in may)
        # a document not of d is of i with probability 1/3, and of each other one too
        shares = [np.mean([THETA[b] for b in range(K) if b != d], 0) for d in may]
        l_i = np.average(shares, axis=0, weights=[N_D[d] for d in may])
        bias[i] = chen2019.bias_1(THETA[i], l_i, N_C[i], n_R, 1 / 3)
    agrees_on_average(draws[1], THETA + bias)
    assert np.abs(bias).max() > 0.05
    # the point of section 4.1: biased, but of smaller variance
    assert draws[1].var(0).mean() < draws[0].var(0).mean()


def test_theorem_3(draws):
    agrees_on_average(draws[2], chen2019.mean_2(THETA, N_C, N_D, 2.0))
    expected = np.asarray(chen2019.variance_2(THETA, N_C, N_D, M, 2.0))
    np.testing.assert_allclose(draws[2].var(0), expected, rtol=0.15)
    assert draws[2].var(0).mean() < draws[0].var(0).mean()


def test_theorem_3_the_bias_grows_with_t_towards_the_words_of_all_documents():
    truth = jnp.asarray(THETA)
    means = [chen2019.mean_2(truth, N_C, N_D, t) for t in (1.0, 2.0, 8.0, 1e9)]
    bias = [float(jnp.abs(mean - truth).sum()) for mean in means]
    assert sorted(bias) == bias
    spread = [float(jnp.ptp(mean, 0).max()) for mean in means]
    assert sorted(spread, reverse=True) == spread
    assert spread[-1] < 1e-8
    assert bias[-1] < 2 * K  # bounded: not of the order of t


def test_theorem_3_the_variance_does_not_vanish_with_long_documents():
    short, long = (chen2019.variance_2(THETA, N_C, N_D, m, 2.0) for m in (10, 10**9))
    assert float(long.max()) > 0.1 * float(short.max())
    many = chen2019.variance_2(THETA, N_C, np.multiply(N_D, 99), 10**9, 2.0)
    assert float(many.max()) < float(long.max()) / 20


# EM, and the page against the components


@pytest.mark.parametrize("estimator", ["em", pytest.param("auto", marks=pytest.mark.slow)])
def test_em_excludes_what_is_excluded(estimator):
    x, y, z, true = partly_labelled_documents(60)
    positive, negative = as_lists(y, z)
    m = PartialLabelNB(estimator=estimator).fit(x, positive, excluded=negative)
    assert (m.label_posterior_[z > 0] == 0).all()
    np.testing.assert_allclose(m.label_posterior_[y > 0], 1)
    assert m.converged_
    assert (np.argmax(m.label_posterior_, 1) == true).mean() > 0.8
    # the closed forms are read in the same model, so that its posterior excludes it, too
    l1 = PartialLabelNB(estimator="L1").fit(x, positive, excluded=negative)
    assert (l1.label_posterior_[z > 0] == 0).all()
    assert l1.objective_ < m.objective_


@pytest.mark.slow
@pytest.mark.parametrize("empty", [None, "S1", "S2"])
def test_em_beats_the_closed_forms_on_simulated_documents(empty):
    theta = np.random.default_rng(0).dirichlet(np.full(40, 3.0), K)
    n_C, n_D = (0 if empty == "S1" else 5,) * K, (0 if empty == "S2" else 100,) * K
    sim = chen2019.simulate(jax.random.key(1), theta, n_C, n_D, 40)
    test = chen2019.simulate(jax.random.key(2), theta, (500,) * K, (0,) * K, 40)
    possible = np.asarray(chen2019.possible(sim.y, sim.z))
    if empty == "S2":  # the rest is unlabelled, which only EM can use
        more = chen2019.simulate(jax.random.key(3), theta, (100,) * K, (0,) * K, 40)
        sim = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), sim, more)
        possible = np.concatenate([possible, np.ones((400, K), bool)])
    score = {}
    for estimator in ("L1", "L2", "em"):
        m = PartialLabelNB(estimator=estimator, alpha=0.1, classes=NAMES)
        m.fit(np.asarray(sim.x), possible)
        score[estimator] = (m.predict(np.asarray(test.x)) == NAMES[test.true]).mean()
    assert score["em"] > max(score["L1"], score["L2"]) + 0.01
    assert score["em"] > 0.8


HYPER = {"alpha_P": 0.7, "alpha_theta": 1.4}


def test_reference_model_sums_over_the_possible_classes():
    x, y, z, _ = partly_labelled_documents(8)
    rng = np.random.default_rng(1)
    P, theta = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(V), K)
    total = stats.dirichlet.logpdf(P, np.full(K, 1.7))
    total += sum(stats.dirichlet.logpdf(row, np.full(V, 2.4)) for row in theta)
    for d in range(8):
        terms = [
            np.log(P[i]) + stats.multinomial.logpmf(x[d], M, theta[i])
            for i in range(K)
            if (y[d, i] or not y[d].any()) and not z[d, i]
        ]
        total += np.logaddexp.reduce(terms)
    sites = {"P": jnp.asarray(P), "theta": jnp.asarray(theta)}
    program = partial(chen2019.em, jnp.asarray(x), y, z, **HYPER)
    np.testing.assert_allclose(enumerated_density(program, sites), total, rtol=1e-10)


# The estimator's evidence


def test_all_forms_of_the_same_evidence_agree():
    x, y, z, _ = partly_labelled_documents()
    positive, negative = as_lists(y, z)
    possible = np.asarray(chen2019.possible(y, z))
    forms = [
        (positive, negative, {}),
        (positive, {i: names for i, names in enumerate(negative) if names}, {}),
        (positive, pd.DataFrame(z > 0, columns=NAMES), {}),
        (possible, None, {"classes": NAMES}),
        (possible.tolist(), None, {"classes": NAMES}),
        (pd.DataFrame(possible, columns=NAMES), None, {}),
        ([set(NAMES[row]) for row in possible], None, {}),
        (None, ~possible, {"classes": NAMES}),
    ]
    em = partial(PartialLabelNB, estimator="em")
    fits = [em(**how).fit(x, y, excluded=not_y) for y, not_y, how in forms]
    for m in fits:
        np.testing.assert_array_equal(m.classes_, NAMES)
        np.testing.assert_allclose(m.label_posterior_, fits[0].label_posterior_, atol=1e-12)
    on_csr = em().fit(sparse.csr_array(x), positive, excluded=negative)
    np.testing.assert_allclose(on_csr.label_posterior_, fits[0].label_posterior_, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("features", ["bernoulli", "categorical", "gaussian"])
@pytest.mark.parametrize("estimator", ["em", "L1"])
def test_other_features(features, estimator):
    rng = np.random.default_rng(2)
    true = np.arange(200) % K
    x = rng.normal(size=(200, 5)) + 2 * rng.normal(size=(K, 5))[true]
    x = x if features == "gaussian" else (x > 0).astype(int)
    excluded = NAMES[(true + rng.integers(1, K, 200)) % K]
    m = PartialLabelNB(estimator=estimator, features=features).fit(x, excluded=excluded)
    assert (m.predict(x) == NAMES[true]).mean() > 0.7
    shapes = {np.shape(v)[0] for v in m.feature_parameters_.values()}
    assert shapes == {K}


def test_row_weights_repeat_items():
    x, y, z, _ = partly_labelled_documents()
    positive, negative = as_lists(y, z)
    times = np.arange(len(x)) % 3
    often = np.repeat(np.arange(len(x)), times)
    for estimator in ("em", "L2"):
        one = PartialLabelNB(estimator=estimator, classes=NAMES)
        two = PartialLabelNB(estimator=estimator, classes=NAMES)
        one.fit(x, positive, times, excluded=negative)
        two.fit(x[often], [positive[i] for i in often], excluded=[negative[i] for i in often])
        np.testing.assert_allclose(one.feature_log_prob_, two.feature_log_prob_, atol=1e-5)


@pytest.mark.parametrize("estimator", ["em", pytest.param("auto", marks=pytest.mark.slow)])
def test_classes_that_are_never_apart_are_named(estimator):
    rng = np.random.default_rng(0)
    true = np.arange(90) % 3
    x = rng.multinomial(20, np.array([[8, 1, 1], [1, 8, 1], [1, 1, 8]])[true] / 10)
    y = [{"a", "b"} if code < 2 else {"c"} for code in true]
    words = "^a and b occur only together in the label sets; nothing distinguishes them$"
    with pytest.warns(IdentifiabilityWarning, match=words):
        m = PartialLabelNB(estimator=estimator).fit(x, y)
    assert not m.verdict().ok
    assert "a and b occur only together" in m.verdict().sentence
    assert "classes identified" in set(m.verdict().table().index) | set(
        m.verdict().table().iloc[:, 0]
    )
    # one item that names one of them will do, if it counts
    y[0] = {"a"}
    em = PartialLabelNB(estimator="em")
    names = {f.name for f in em.fit(x, y).verdict().findings}
    assert "classes identified" not in names
    with pytest.warns(IdentifiabilityWarning, match=words):
        em.fit(x, y, sample_weight=np.arange(90) > 0)


@pytest.mark.parametrize("null", [pd.NA, None])
def test_whole_numbers_stay_whole_where_labels_are_missing(null):
    x, y = np.eye(4, dtype=int), pd.Series([1, 2, null, 1], dtype="Int64")
    names = PartialLabelNB().fit(x, y).classes_
    assert names.tolist() == [1, 2]
    assert names.dtype.kind == "i"


N = 4


@pytest.mark.parametrize(
    ("evidence", "how", "message"),
    [
        ({"y": ["a", [], "b", None]}, {}, r"y: row 1 has every class excluded"),
        ({"y": list("aabb"), "excluded": {1: "a"}}, {}, r"row 1 has every class excluded"),
        ({"excluded": [["a", "b"], None, None, None]}, {}, r"row 0 has every class excluded"),
        ({"excluded": {9: "a"}}, {}, r"excluded: row 9 does not exist; X has 4 rows"),
        ({"y": list("aab")}, {}, r"y: has 3 rows where X has 4"),
        ({"y": [["a"], ["b"]]}, {}, r"y: has 2 rows where X has 4"),
        ({"y": [["a", None], "b", "a", "b"]}, {}, r"y: row 0 has a null among its labels"),
        (
            {"y": ["a", ["b", "z"], "a", "b"]},
            {"classes": ["a", "b"]},
            r"y: row 1 has the label 'z'",
        ),
        ({"y": np.full((4, 2), 3)}, {}, r"y: row 0, column 0 is 3; .* booleans"),
        ({"y": np.ones((3, 2), bool)}, {}, r"y: has 3 rows where X has 4"),
        ({"y": np.eye(4, 3) > 0}, {"classes": ["a", "b"]}, r"y: has 3 columns for 2 classes"),
        ({"y": np.eye(4, 3) > 0}, {}, r"y: row 3 has every class excluded"),
        ({"y": np.ones((4, 3), bool)}, {}, r"y: no label of any item is known"),
        ({"y": [None] * 4, "excluded": None}, {"classes": ["a", "b"]}, r"y: no label of any item"),
        ({}, {}, r"y: PartialLabelNB requires y to be passed, .* and so is excluded"),
        ({"y": 3}, {}, r"y: expected what is known of each item, got 3"),
        ({"y": "abab"}, {}, r"y: expected what is known of each item"),
        ({"y": ["a", 1, "a", 1]}, {}, r"y: labels of mixed types"),
        ({"y": list("aaaa")}, {}, r"y: at least two classes are needed"),
        ({"y": list("abab")}, {"t": 0.5}, r"t: expected a finite number, 1 or more; got 0.5"),
        ({"y": list("abab")}, {"t": "2"}, r"t: expected a finite number"),
        ({"y": list("abab")}, {"estimator": "L3"}, r"estimator: expected one of"),
        ({"y": list("abab")}, {"features": "text"}, r"features: expected one of"),
        ({"y": list("abab")}, {"alpha": -1}, r"alpha: expected a finite number, 0 or more"),
        ({"y": list("abab")}, {"missing_label": [1]}, r"missing_label: expected one value"),
    ],
)
def test_bad_evidence_is_refused(evidence, how, message):
    with pytest.raises(DataError, match=message):
        PartialLabelNB(**how).fit(np.ones((N, 3)), **evidence)


def test_an_impossible_item_cannot_be_packed():
    possible = np.array([[True, True], [False, False]])
    with pytest.raises(DataError, match="row 1 excludes every class"):
        chen2019.CandidateSets.pack(possible, 2)
    with pytest.raises(DataError, match="a column a class, 3"):
        chen2019.CandidateSets.pack(possible, 3)
