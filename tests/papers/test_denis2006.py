"""Denis 2006: closed forms on exact distributions, EM by its equations, the page, estimators."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpyro import handlers
from numpyro.contrib.funsor import config_enumerate, enum
from numpyro.contrib.funsor import log_density as enumerated_log_density
from numpyro.distributions import biject_to
from scipy.optimize import linear_sum_assignment

from inference import Status, solve
from nbmodels import (
    ClassConditionalNB,
    ClippedWarning,
    DataError,
    IdentifiabilityWarning,
    NoisyBernoulliNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
    NoisyMultinomialNB,
    PositiveUnlabelledNB,
    UnlabelledNB,
)
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.emissions import Bernoulli, Categorical
from nbmodels.fitting import init_pairwise as pairwise
from nbmodels.fitting import init_spectral as spectral
from nbmodels.papers import denis2006

SIZES = (2, 3, 4)


# Exact distributions ------------------------------------------------------------------------------


def product_distributions(sizes, n_classes, rng, least=0.05):
    """``(S, K)`` probabilities of the attributes' values, none below ``least``."""
    room = [1 - least * size for size in sizes]
    parts = [
        least + r * rng.dirichlet(np.ones(s), n_classes).T for s, r in zip(sizes, room, strict=True)
    ]
    return np.concatenate(parts)


def all_items(sizes):
    """Every value of ``x``, and its indicators side by side."""
    x = np.array(list(itertools.product(*map(range, sizes))))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    onehot = np.zeros((len(x), sum(sizes)))
    np.put_along_axis(onehot, x + starts, 1, 1)
    return x, onehot


def joint(onehot, shares, probs):
    """``(items, K)`` P(x, y)."""
    return np.exp(onehot @ np.log(probs)) * shares


ETAS = [(0.2, 0.5), (0.0, 0.0), (0.7, 0.1), (0.1, 0.8), (0.3, 0.3), (0.0, 0.6)]


CLOSED_FORMS = [pairwise.class_conditional, pairwise.class_conditional_by_roots]


@pytest.mark.parametrize("estimate", CLOSED_FORMS)
@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("p", [0.15, 0.6])
@pytest.mark.parametrize("sizes", [(2, 2), SIZES], ids=str)
def test_noisy_labels_determine_both_classes(sizes, p, eta, estimate):
    """Eqs. (8)-(15), (18), (19): exact tables give the parameters to rounding error."""
    probs = product_distributions(sizes, 2, np.random.default_rng(3))
    _, onehot = all_items(sizes)
    flips = np.array([[1 - eta[0], eta[0]], [eta[1], 1 - eta[1]]])
    tables = pairwise.tables(onehot, joint(onehot, [1 - p, p], probs) @ flips, sizes)
    found = estimate(tables)
    assert not np.any(found.outside)
    np.testing.assert_allclose(found.probs, probs, atol=1e-10)
    np.testing.assert_allclose(found.share, p, atol=1e-10)
    np.testing.assert_allclose(found.flip_rates(tables.share), eta, atol=1e-10)
    alpha = p * (1 - eta[1]) / (p * (1 - eta[1]) + (1 - p) * eta[0])
    beta = p * eta[1] / (p * eta[1] + (1 - p) * (1 - eta[0]))
    np.testing.assert_allclose(found.mix, [beta, alpha], atol=1e-10)  # eq. (6)


def test_the_complementary_reading_is_not_chosen():
    """Section 3: exchanged classes with rates 1 - eta give the same data; the sum decides."""
    probs = product_distributions(SIZES, 2, np.random.default_rng(0))
    _, onehot = all_items(SIZES)
    one = joint(onehot, [0.4, 0.6], probs) @ [[0.8, 0.2], [0.5, 0.5]]
    other = joint(onehot, [0.6, 0.4], probs[:, ::-1]) @ [[0.5, 0.5], [0.8, 0.2]]
    np.testing.assert_allclose(one, other)
    found = pairwise.class_conditional(pairwise.tables(onehot, other, SIZES))
    np.testing.assert_allclose(found.flip_rates(other.sum(0)), [0.2, 0.5])


@pytest.mark.parametrize("estimate", CLOSED_FORMS)
def test_labels_that_are_pure_noise_are_said_to_be(estimate):
    probs = product_distributions(SIZES, 2, np.random.default_rng(0))
    _, onehot = all_items(SIZES)
    groups = joint(onehot, [0.4, 0.6], probs) @ [[0.7, 0.3], [0.7, 0.3]]
    found = estimate(pairwise.tables(onehot, groups, SIZES))
    assert found.outside[0]
    assert all(np.isfinite(leaf).all() for leaf in found)
    assert found.flip_rates(groups.sum(0)).sum() < 1


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("sizes", [(2, 2), SIZES], ids=str)
def test_positive_items_determine_the_share(sizes, p):
    """Eqs. (16), (17), and where their print goes wrong."""
    probs = product_distributions(sizes, 2, np.random.default_rng(5))
    _, onehot = all_items(sizes)
    both = joint(onehot, [1 - p, p], probs)
    groups = np.stack([both.sum(1), 0.3 * both[:, 1]], 1)
    tables = pairwise.tables(onehot, groups, sizes)
    found = pairwise.positive_unlabelled(tables)
    assert not np.any(found.outside)
    np.testing.assert_allclose(found.mix, [p, 1], atol=1e-10)
    np.testing.assert_allclose(found.probs, probs, atol=1e-10)

    a, b = 0, sizes[0]  # a value of the first attribute, and one of the second
    (P_a, A), (P_b, B) = tables.single[a], tables.single[b]
    P_ab = tables.pair[0, a, b]
    np.testing.assert_allclose((P_ab - P_a * P_b) / (P_ab + A * B - P_a * B - A * P_b), p)
    printed = (P_ab - A * B) / (P_ab + P_a * P_b - P_a * B - A * P_b)
    assert abs(printed - p) > 0.01
    block = np.s_[: sizes[0], sizes[0] : sizes[0] + sizes[1]]
    np.testing.assert_allclose(tables.dependence[0][block].sum(), 0, atol=1e-15)


@pytest.mark.parametrize("p", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("sizes", [(2, 2, 2), SIZES, (2,) * 5], ids=str)
def test_unlabelled_items_determine_both_classes(sizes, p):
    """Geiger et al.: of the two models, the one whose class 0 is the larger."""
    probs = product_distributions(sizes, 2, np.random.default_rng(7))
    _, onehot = all_items(sizes)
    found = pairwise.unlabelled(onehot, joint(onehot, [1 - p, p], probs).sum(1), sizes)
    assert not np.any(found.outside)
    np.testing.assert_allclose(found.share, min(p, 1 - p), atol=1e-9)
    order = [0, 1] if p < 0.5 else [1, 0]
    if p == 0.5 and abs(found.probs[0, 0] - probs[0, 0]) < 1e-6:
        order = [0, 1]
    np.testing.assert_allclose(found.probs, probs[:, order], atol=1e-8)


def test_central_moments_are_those_of_section_2_2():
    rng = np.random.default_rng(1)
    alpha, p, q = 0.3, rng.random(3), rng.random(3)
    x = np.array(list(itertools.product((0, 1), repeat=3)))
    weights = sum(
        share * np.prod(np.where(x, r, 1 - r), 1) for share, r in ((alpha, p), (1 - alpha, q))
    )
    centred = x - weights @ x
    z_ij = (weights[:, None] * centred).T @ centred
    z_123 = weights @ centred.prod(1)
    s, u = 2 * alpha - 1, (p - q) / 2
    np.testing.assert_allclose(z_ij[0, 1], (1 - s**2) * u[0] * u[1])
    np.testing.assert_allclose(z_123, -2 * s * (1 - s**2) * u.prod())
    root = np.sqrt(z_ij[0, 1] * z_ij[0, 2] * z_ij[1, 2] + z_123**2 / 4) / z_ij[1, 2]
    np.testing.assert_allclose(abs(root), abs(u[0]))


def test_tables_leave_missing_cells_out():
    rng = np.random.default_rng(2)
    codes = np.stack([rng.integers(s, size=40) for s in SIZES], 1)
    codes[rng.random(codes.shape) < 0.2] = -1
    component = Categorical.of(SIZES, 2)
    weights = rng.uniform(0.5, 2, (40, 1))
    tables = pairwise.tables(component.pack(codes).onehot.to_dense(), weights, SIZES)
    both = (codes[:, 0] >= 0) & (codes[:, 2] >= 0)
    right = both & (codes[:, 0] == 1) & (codes[:, 2] == 3)
    expected = weights[right].sum() / weights[both].sum()
    np.testing.assert_allclose(tables.pair[0, 1, 5 + 3], expected)
    seen = codes[:, 1] >= 0
    expected = weights[seen & (codes[:, 1] == 2)].sum() / weights[seen].sum()
    np.testing.assert_allclose(tables.single[2 + 2, 0], expected)


# EM, equations (20)-(23) --------------------------------------------------------------------------


def small_data(n=60, seed=0, sizes=SIZES):
    rng = np.random.default_rng(seed)
    probs = product_distributions(sizes, 2, rng)
    y_true = rng.integers(2, size=n)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    x = np.stack(
        [
            [
                rng.choice(size, p=probs[a : a + size, k] / probs[a : a + size, k].sum())
                for k in y_true
            ]
            for a, size in zip(starts, sizes, strict=False)
        ],
        1,
    )
    y = np.where(rng.random(n) < np.where(y_true, 0.4, 0.1), 1 - y_true, y_true)
    return x, y, y_true


@pytest.mark.slow
def test_a_plain_step_is_that_of_the_paper():
    x, y, _ = small_data()
    n, rng = len(y), np.random.default_rng(1)
    model = denis2006.to_model(SIZES)
    data = denis2006.to_data(model, x, y)
    guess = 0.2 + 0.6 * jax.nn.one_hot(y, 2) * rng.random((n, 1))
    q = models.start(model, guess / guess.sum(1, keepdims=True), data, "ml")
    old = {name: np.asarray(v) for name, v in denis2006.parameters(model, q).items()}
    new = denis2006.parameters(model, models.step("ml")(q, (model, data))[0])

    eta = {0: old["eta0"], 1: old["eta1"]}
    P = {0: "P_minus", 1: "P_plus"}

    def given_x(z, i):
        """Proportional to P(z | x_i, theta_k)."""
        share = old["p"] if z else 1 - old["p"]
        return share * np.prod([old[f"{P[z]}_{j}"][x[i, j]] for j in range(len(SIZES))])

    corrupted = np.zeros(n)  # (20)
    for i in range(n):
        flipped = given_x(1 - y[i], i) * eta[1 - y[i]]
        corrupted[i] = flipped / (flipped + given_x(y[i], i) * (1 - eta[y[i]]))
    for k in (0, 1):
        was = np.where(y == k, 1 - corrupted, corrupted)  # the label was k before the noise
        size = was.sum()
        np.testing.assert_allclose(new["p"] if k else 1 - new["p"], size / n)  # (21)
        for j, values in enumerate(SIZES):
            counts = [was[x[:, j] == a].sum() / size for a in range(values)]
            np.testing.assert_allclose(new[f"{P[k]}_{j}"], counts)  # (22)
        np.testing.assert_allclose(new[f"eta{k}"], was[y == 1 - k].sum() / size)  # (23)


# The page -----------------------------------------------------------------------------------------


def page_density(program, sites):
    """Log-density with ``y_true`` summed out; the items' plate has dimension -1."""
    enumerated = enum(config_enumerate(program), first_available_dim=-2)
    return jax.jit(lambda at: enumerated_log_density(enumerated, (), {}, at)[0])(sites)


def draw_sites(program, seed):
    trace = handlers.trace(handlers.seed(program, seed)).get_trace()
    hidden = {n: s for n, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
    return {name: s["value"] for name, s in hidden.items() if name != "y_true"}


def prior_density(program, sites):
    trace = handlers.trace(handlers.substitute(handlers.seed(program, 0), sites)).get_trace()
    return sum(trace[name]["fn"].log_prob(value).sum() for name, value in sites.items())


def component_natural(model, sites):
    """What the components' likelihoods read, written from the paper's letters."""
    rows = [jnp.stack([sites[f"P_minus_{i}"], sites[f"P_plus_{i}"]], 1) for i in range(len(SIZES))]
    out = {
        "class_prior": jnp.log(jnp.stack([1 - sites["p"], sites["p"]])),
        "x": jnp.log(jnp.concatenate(rows)),
    }
    if "labels" in model:
        eta0, eta1 = sites["eta0"], sites["eta1"]
        out["labels"] = jnp.log(jnp.array([[1 - eta0, eta0], [eta1, 1 - eta1]]))
    return out


HYPER = {"alpha_p": 0.7, "alpha_P": 1.3, "wrong": 0.9, "right": 3.1}


def described_twice(kind, n=24):
    """The page as a program, and the components with their data."""
    x, y, _ = small_data(n, seed=4)
    y[3::7] = -1
    if kind == "unlabelled":
        hyper = {name: HYPER[name] for name in ("alpha_p", "alpha_P")}
        model = denis2006.to_model(SIZES, labels=False, **hyper)
        program = partial(denis2006.unlabelled, jnp.asarray(x), SIZES, **hyper)
        return program, model, denis2006.to_data(model, x)
    model = denis2006.to_model(SIZES, **HYPER)
    program = partial(denis2006.class_conditional, jnp.asarray(x), y, SIZES, **HYPER)
    return program, model, denis2006.to_data(model, x, y)


def stationary(program, sites, tolerance=2e-5):
    """The page's density has a zero gradient, each site taken through its bijector."""
    trace = handlers.trace(handlers.seed(program, 0)).get_trace()
    maps = {name: biject_to(trace[name]["fn"].support) for name in sites}
    free = {name: maps[name].inv(v) for name, v in sites.items()}
    slope = jax.jit(
        jax.grad(lambda at: page_density(program, {n: maps[n](v) for n, v in at.items()}))
    )

    def size(at):
        return max(float(jnp.abs(g).max()) for g in jax.tree.leaves(slope(at)))

    assert size(free) < tolerance
    assert size(jax.tree.map(lambda v: v + 0.1, free)) > 1e-2


def fixed_point(model, q, data):
    fit = solve(
        models.step("map"),
        q,
        (model, data),
        max_steps=5000,
        tol=1e-13,
        coordinates=models.coordinates("map"),
    )
    assert Status(int(fit.status)) is Status.CONVERGED
    return fit.params


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["class_conditional", "unlabelled"])
def test_page_equals_components(kind):
    program, model, data = described_twice(kind)
    for seed in range(2):
        sites = draw_sites(program, seed)
        fast = models.posterior(model, component_natural(model, sites), data).log_likelihood.sum()
        slow = page_density(program, sites) - prior_density(program, sites)
        np.testing.assert_allclose(fast, slow, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["class_conditional", "unlabelled"])
def test_page_is_stationary_where_em_stops(kind):
    program, model, data = described_twice(kind)
    guess = models.initial_responsibilities(model, data)
    if guess is None:
        guess = jax.random.dirichlet(jax.random.key(0), jnp.ones(2), (len(data.weights),))
    q = fixed_point(model, models.start(model, guess, data, "map"), data)
    sites = denis2006.parameters(model, q)
    ours = models.objective(model, q, data, "map")
    np.testing.assert_allclose(page_density(program, sites), ours, rtol=1e-10)
    stationary(program, sites)


@pytest.mark.slow
def test_positive_and_unlabelled_samples_are_labels_never_given_to_negative_items():
    x, _, y_true = small_data(80, seed=6)
    marked = (y_true == 1) & (np.arange(80) % 3 == 0)
    model = denis2006.positive_unlabelled_model(SIZES)
    data = denis2006.to_data(model, x, marked.astype(int))
    program = partial(
        denis2006.positive_unlabelled, jnp.asarray(x[~marked]), jnp.asarray(x[marked]), SIZES
    )
    program = partial(program, alpha_p=0.0)

    # the share of labelled items is free, and at its best for every p
    def ours(sites):
        n, size = len(x), marked.sum()
        positive = (size + sites["p"] * (n - size)) / n
        rate = size / n / positive
        read = component_natural(model, sites | {"p": positive, "eta0": 0.0, "eta1": 1 - rate})
        return models.posterior(model, read, data).log_likelihood.sum()

    size = marked.sum()
    of_sizes = size * np.log(size / 80) + (80 - size) * np.log(1 - size / 80)
    for seed in range(2):
        sites = draw_sites(program, seed)
        slow = page_density(program, sites) - prior_density(program, sites)
        np.testing.assert_allclose(ours(sites), slow + of_sizes, rtol=1e-10)

    resp = jnp.where(marked[:, None], jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5]))
    stats = {
        "class_prior": resp.sum(0),
        "labels": Transition.of(2).stats(None, resp, marked.astype(int)),
    }
    rows = jax.random.dirichlet(jax.random.key(1), jnp.ones(2), (80,))
    stats["x"] = model["x"].stats(None, rows, data.parts["x"])
    q = fixed_point(model, models.update(model, stats, "map"), data)
    found = denis2006.parameters(model, q)
    assert found["eta0"] < 1e-12
    sites = {name: v for name, v in found.items() if name.startswith("P")}
    share = found["p"] * found["eta1"]
    stationary(program, sites | {"p": share / (share + 1 - found["p"])}, 1e-4)


# Estimators ---------------------------------------------------------------------------------------


def simulated(n, seed=0, eta=(0.2, 0.5), p=0.6):
    """Ten binary attributes of a target drawn once, with text labels."""
    ones = denis2006.draw_target(jax.random.key(3))[1]
    sim = denis2006.simulate(jax.random.key(seed), (jnp.asarray(p), ones), n, 500, eta)
    names = np.array(["no", "yes"])
    return sim, np.asarray(sim.x), names[np.asarray(sim.y_true)], names[np.asarray(sim.y)]


quiet = pytest.mark.filterwarnings("ignore::nbmodels.errors.ClippedWarning")


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("method", ["moments", "em"])
def test_flip_rates_are_found(method):
    sim, x, y_true, y = simulated(4000)
    e = ClassConditionalNB(method=method, progress=False).fit(x[:4000], y[:4000])
    # beta is near 1/2, where the closed form knows it least: its discriminant is near zero
    near = {"moments": 0.1, "em": 0.04}[method]
    np.testing.assert_allclose(e.flip_rates_, [0.2, 0.5], atol=near)
    np.testing.assert_allclose(e.class_prior_, [0.4, 0.6], atol=near)
    np.testing.assert_allclose(np.exp(e.feature_log_prob_[2])[:, 1], sim.ones[2], atol=near)
    assert (e.predict(x[4000:]) == y_true[4000:]).mean() > 0.9
    assert e.classes_.tolist() == ["no", "yes"]
    assert e.converged_
    np.testing.assert_allclose(e.noise_matrix_.sum(0), 1)


@pytest.mark.slow
def test_estimator_is_the_closed_form():
    """Rows weighted by their exact probabilities: the estimator gives the exact parameters."""
    sizes = (2, 3, 3)
    probs = product_distributions(sizes, 2, np.random.default_rng(2))
    x, onehot = all_items(sizes)
    both = joint(onehot, [0.3, 0.7], probs) @ [[0.9, 0.1], [0.6, 0.4]]
    weights = np.concatenate([both[:, 0], both[:, 1]])
    y = np.repeat(["a", "b"], len(x))
    e = ClassConditionalNB(method="moments").fit(np.tile(x, (2, 1)), y, sample_weight=weights)
    np.testing.assert_allclose(e.flip_rates_, [0.1, 0.6], atol=1e-9)
    np.testing.assert_allclose(e.class_prior_, [0.3, 0.7], atol=1e-9)
    np.testing.assert_allclose(np.exp(np.concatenate(e.feature_log_prob_, 1)).T, probs, atol=1e-9)
    expected = (weights * np.log(np.concatenate([both[:, 0], both[:, 1]]))).sum()
    np.testing.assert_allclose(e.objective_, expected)
    # where the likelihood is largest already, EM has nothing to do
    em = ClassConditionalNB(rule="ml").fit(np.tile(x, (2, 1)), y, sample_weight=weights)
    np.testing.assert_allclose(em.objective_, expected, rtol=1e-9)
    np.testing.assert_allclose(em.flip_rates_, [0.1, 0.6], atol=1e-4)


@pytest.mark.slow
@quiet
def test_errors_shrink_with_the_sample():
    """Consistency of the three closed forms, on the same data."""

    @partial(jax.jit, static_argnames="n")
    def errors(key, n):
        target = (jnp.asarray(0.6), denis2006.draw_target(jax.random.key(3))[1])
        sim = denis2006.simulate(key, target, n, 0)
        x = jax.nn.one_hot(sim.x, 2).reshape(n, 20)
        tables = pairwise.tables(x, jax.nn.one_hot(sim.y, 2), (2,) * 10)
        noisy = pairwise.class_conditional(tables)
        marked = sim.y_true * sim.y
        tables = pairwise.tables(x, jax.nn.one_hot(marked, 2), (2,) * 10)
        positive = pairwise.positive_unlabelled(tables)
        blind = pairwise.unlabelled(x, jnp.ones(n), (2,) * 10)
        among = jnp.sum(sim.y_true * (1 - marked)) / jnp.sum(1 - marked)
        rates = noisy.flip_rates(jnp.stack([1 - jnp.mean(sim.y), jnp.mean(sim.y)]))
        return jnp.stack(
            [
                jnp.abs(noisy.share - 0.6),
                jnp.max(jnp.abs(rates - jnp.array([0.2, 0.5]))),
                jnp.abs(positive.mix[0] - among),
                jnp.abs(blind.share - 0.4),
            ]
        )

    def mean_error(n):
        keys = jax.random.split(jax.random.key(0), 12)
        return jax.lax.map(partial(errors, n=n), keys).mean(0)

    few, many = mean_error(400), mean_error(12800)
    assert np.all(many < 0.5 * few)
    assert np.all(many < np.array([0.02, 0.03, 0.02, 0.06]))


@pytest.mark.slow
@quiet
def test_a_class_may_be_labelled_wrong_more_often_than_right():
    """Identifiability: eta0 + eta1 < 1 is enough, and nothing is said."""
    _, x, y_true, y = simulated(2000, eta=(0.1, 0.7))
    e = ClassConditionalNB(progress=False).fit(x, y)
    np.testing.assert_allclose(e.flip_rates_, [0.1, 0.7], atol=0.05)
    assert (e.predict(x) == y_true).mean() > 0.85


@pytest.mark.slow
def test_inadmissible_estimates_warn_and_em_goes_on():
    rng = np.random.default_rng(0)
    x, y = rng.integers(3, size=(40, 4)), rng.integers(2, size=40)
    with pytest.warns(ClippedWarning, match="flip rates"):
        e = ClassConditionalNB(method="moments").fit(x, y)
    assert e.flip_rates_.sum() < 1
    assert ((e.flip_rates_ >= 0) & (e.flip_rates_ <= 1)).all()
    with pytest.warns(ClippedWarning, match="EM goes on"):
        e = ClassConditionalNB(progress=False, max_iter=2000).fit(x, y)
    assert e.converged_
    assert np.all(np.diff(e.objective_trace_) >= 0)
    assert np.isfinite(e.predict_proba(x)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.ClippedWarning")
def test_rates_that_sum_to_more_than_one_are_reported():
    _, x, _, y = simulated(300)
    wrong = np.array([[0.1, 0.2], [0.9, 0.8]])
    with pytest.warns(IdentifiabilityWarning, match="sum to one or more"):
        ClassConditionalNB(noise=wrong, progress=False).fit(x, y)


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("method", ["moments", "em"])
@pytest.mark.parametrize("positive", ["no", "yes"])
def test_positive_and_unlabelled(method, positive):
    _, x, y_true, _ = simulated(4000)
    marked = (y_true == positive) & (np.random.default_rng(0).random(len(x)) < 0.3)
    other = "yes" if positive == "no" else "no"
    e = PositiveUnlabelledNB(positive=positive, method=method, progress=False)
    e.fit(x, np.where(marked, positive, other))
    where = list(e.classes_).index(positive)
    share = (y_true[~marked] == positive).mean()
    np.testing.assert_allclose(e.class_prior_[where], share, atol=0.05)
    hidden = x[~marked]
    assert (e.predict(hidden) == y_true[~marked]).mean() > 0.87
    # predictions are for items like the unlabelled ones
    np.testing.assert_allclose(e.predict_proba(hidden)[:, where].mean(), share, atol=0.05)
    assert e.label_posterior_[marked][:, where].min() == 1
    # the same with missing labels instead of the other class's
    nulls = np.where(marked, positive, None)
    again = PositiveUnlabelledNB(
        positive=positive,
        method=method,
        missing_label=np.nan,
        classes=["no", "yes"],
        progress=False,
    ).fit(x, nulls)
    np.testing.assert_allclose(again.class_prior_, e.class_prior_)


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("method", ["moments", "em"])
def test_unlabelled(method):
    _, x, y_true, _ = simulated(2000, p=0.3)
    e = UnlabelledNB(method=method, progress=False).fit(x)
    np.testing.assert_allclose(e.class_prior_, [0.7, 0.3], atol=0.08)
    assert (e.predict(x) == (y_true == "yes")).mean() > 0.85
    named = UnlabelledNB(method=method, classes=["often", "seldom"], progress=False).fit(x)
    assert named.predict(x).tolist() == np.where(e.predict(x), "seldom", "often").tolist()


@pytest.mark.slow
@quiet
def test_weights_are_repeated_rows_and_missing_cells_are_left_out():
    _, x, _, y = simulated(300)
    x, y = x[:300].astype(float), y[:300]
    times = np.random.default_rng(0).integers(3, size=300)
    e = ClassConditionalNB(progress=False)
    one = e.fit(x, y, sample_weight=times).flip_rates_
    np.testing.assert_allclose(e.fit(x.repeat(times, 0), y.repeat(times)).flip_rates_, one)
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    e = ClassConditionalNB(missing_values=np.nan, progress=False).fit(x, y)
    assert np.isfinite(e.objective_)
    assert len(e.categories_[0]) == 2


def bad(e, *args, match, **kwargs):
    with pytest.raises(DataError, match=match):
        e.fit(*args, **kwargs)


def test_bad_input():
    _, x, _, y = simulated(60)
    three = np.where(np.arange(len(y)) % 3 == 0, "perhaps", y)
    bad(ClassConditionalNB(), x[:, :1], y, match="n_features = 1")
    bad(UnlabelledNB(), x[:, :2], match="3 attributes or more")
    bad(ClassConditionalNB(), x, three, match="Only binary classification")
    bad(ClassConditionalNB(method="map"), x, y, match="method: expected 'moments' or 'em'")
    bad(ClassConditionalNB(rule="moments"), x, y, match="rule: expected one of")
    bad(ClassConditionalNB(method="moments", noise=np.eye(2)), x, y, match="noise: method=")
    bad(ClassConditionalNB(method="moments", class_prior=[0.5, 0.5]), x, y, match="class_prior:")
    weights = (y == "yes").astype(float)
    bad(ClassConditionalNB(), x, y, sample_weight=weights, match="both classes need labels")
    bad(PositiveUnlabelledNB(), x, y, match="positive: say which label")
    bad(PositiveUnlabelledNB(positive="maybe"), x, y, match="positive: no row of y")
    bad(PositiveUnlabelledNB(positive="yes"), x, three, match="Only binary classification")
    bad(PositiveUnlabelledNB(positive="yes", class_prior=[0.5, 0.5]), x, y, match="class_prior")
    same = np.full(len(y), "yes")
    bad(PositiveUnlabelledNB(positive="yes", classes=["no", "yes"]), x, same, match="unlabelled")
    bad(PositiveUnlabelledNB(positive="no", classes=["no", "yes"]), x, same, match="positive:")


def test_parameters_are_documented_once():
    for cls in (ClassConditionalNB, PositiveUnlabelledNB, UnlabelledNB, NoisyCategoricalNB):
        doc = cls.__doc__.split("Attributes:")[0]
        for name in cls().get_params():
            assert doc.count(f"\n    {name}: ") == 1, (cls, name)


# More than two classes ----------------------------------------------------------------------------


def exact_classes(sizes, K, seed, labelled, binary=False):
    """Every item, and every label where there are labels, weighted by its exact probability."""
    rng = np.random.default_rng(seed)
    probs = product_distributions(sizes, K, rng, least=0.06)
    shares = 0.5 / K + 0.5 * rng.dirichlet(np.ones(K))
    transition = 0.4 * np.eye(K) + 0.6 * rng.dirichlet(np.ones(K), K)
    x, onehot = all_items(sizes)
    weights = joint(onehot, shares, probs)
    model = {"class_prior": Proportions.of(K), "x": Categorical.of(sizes, K)}
    if binary:
        model["x"] = Bernoulli.of(len(sizes), K)
    parts = {"class_prior": None}
    if labelled:
        model["labels"] = Transition.of(K)
        parts["labels"] = jnp.tile(jnp.arange(K), len(x))
        x, weights = np.repeat(x, K, 0), (weights @ transition).ravel()
    else:
        weights = weights.sum(1)
    parts["x"] = model["x"].pack(x)
    return model, models.Data(parts, jnp.asarray(weights)), (shares, probs, transition)


def read_ml(model, q):
    values = models.values(model, models.likelihood_params(model, q, "ml"))
    table = jnp.exp(models.likelihood_params(model, q, "ml")["x"])
    return values, np.asarray(table[1] if table.ndim == 3 else table)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "K", "binary"),
    [((2,) * 6, 3, False), ((3, 4, 3, 2), 4, False), ((2,) * 6, 3, True), ((2, 2), 2, False)],
    ids=str,
)
def test_moments_with_labels_are_exact(sizes, K, binary):
    model, data, (shares, probs, transition) = exact_classes(sizes, K, 1, True, binary)
    q = spectral.start(model, data, jax.random.key(0), "ml", K)
    values, table = read_ml(model, q)
    np.testing.assert_allclose(values["class_prior"]["probs"], shares, atol=1e-7)
    np.testing.assert_allclose(table, probs[1::2] if binary else probs, atol=1e-7)
    np.testing.assert_allclose(values["labels"]["transition"], transition, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "K", "binary"), [((3,) * 6, 3, False), ((2,) * 9, 3, True)], ids=str
)
def test_moments_without_labels_are_exact(sizes, K, binary):
    model, data, (shares, probs, _) = exact_classes(sizes, K, 2, False, binary)
    q = spectral.start(model, data, jax.random.key(0), "ml", K)
    values, table = read_ml(model, q)
    truth = probs[1::2] if binary else probs
    gaps = np.square(table[:, :, None] - truth[:, None, :]).sum(0)
    order = linear_sum_assignment(gaps.T)[1]
    np.testing.assert_allclose(table[:, order], truth, atol=1e-6)
    np.testing.assert_allclose(values["class_prior"]["probs"][order], shares, atol=1e-6)


def test_power_method_finds_orthogonal_components():
    rng = np.random.default_rng(0)
    v = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    weights = np.array([3.0, 2.5, 2.0, 1.5, 1.1])
    tensor = jnp.einsum("k,ki,kj,kl->ijl", weights, v, v, v)
    found, vectors = spectral.orthogonal_decomposition(tensor, jax.random.key(0))
    overlap = np.asarray(vectors) @ v.T
    order = np.argmax(overlap, 1)
    assert sorted(order) == list(range(5))
    np.testing.assert_allclose(overlap.max(1), 1, atol=1e-8)
    np.testing.assert_allclose(found, weights[order], atol=1e-8)


def clusters(n, K, d, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    ones = rng.uniform(0.1, 0.9, (K, d))
    return (rng.random((n, d)) < ones[y]).astype(float), y


@pytest.mark.slow
def test_moments_are_a_better_start_than_chance():
    """Without labels, where a start is all there is: four steps from it beat 20 others."""
    K, d = 4, 18
    model = {"class_prior": Proportions.of(K), "x": Bernoulli.of(d, K)}
    x, _ = clusters(3000, K, d, 0)
    data = models.Data({"class_prior": None, "x": Bernoulli.pack(x)}, jnp.ones(len(x)))

    @jax.jit
    def reached(q):
        step, at = models.step("map"), (model, data)
        q = jax.lax.fori_loop(0, 4, lambda _, q: step(q, at)[0], q)
        return models.objective(model, q, data, "map")

    @jax.jit
    def chance(key):
        resp = jax.random.dirichlet(key, jnp.ones(K), (len(x),))
        return reached(models.start(model, resp, data, "map"))

    ours = float(reached(spectral.start(model, data, jax.random.key(0), "map", K)))
    others = np.array(jax.lax.map(chance, jax.random.split(jax.random.key(1), 20)))
    assert ours > others.max() + 20


def mislabelled(y, K, seed):
    """Most items of class 1 are labelled 2: naming by majority would fail."""
    rng = np.random.default_rng(seed)
    transition = 0.7 * np.eye(K) + 0.3 / K
    return np.array([rng.choice(K, p=transition[k]) for k in y])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")  # on a single iteration
@pytest.mark.parametrize("kind", ["bernoulli", "categorical", "multinomial"])
def test_estimators_begin_at_the_moments(kind):
    K = 3
    x, y = clusters(1500, K, 12, 3)
    labels = np.array(["a", "b", "c"])[mislabelled(y, K, 0)]
    make = {
        "bernoulli": NoisyBernoulliNB.published,
        "categorical": NoisyCategoricalNB.published,
        "multinomial": NoisyMultinomialNB.published,
    }[kind]
    if kind == "multinomial":
        rng = np.random.default_rng(1)
        words = rng.dirichlet(np.ones(12), K)
        x = np.stack([rng.multinomial(40, words[k]) for k in y])
    shared = {"progress": False, "random_state": 0}
    first = make(init="moments", max_iter=1, **shared)
    with pytest.warns(UserWarning, match="iteration limit"):
        first.fit(x, labels)
    np.testing.assert_allclose(first.noise_matrix_.diagonal(), 0.8, atol=0.08)
    with pytest.warns(UserWarning, match="iteration limit"):
        plain = make(max_iter=1, **shared).fit(x, labels)
    assert first.objective_ > plain.objective_
    ended = make(init="moments", **shared).fit(x, labels)
    np.testing.assert_allclose(
        ended.objective_, make(**shared).fit(x, labels).objective_, rtol=1e-5
    )
    assert (ended.predict(x) == np.array(["a", "b", "c"])[y]).mean() > 0.8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.IdentifiabilityWarning")
def test_a_class_without_labels_begins_at_moments_of_the_features():
    x, y = clusters(3000, 3, 15, 5)
    labels = np.where(y == 2, None, np.array(["a", "b", "c"], object)[y])
    e = NoisyBernoulliNB.published(
        init="moments",
        classes=["a", "b", "c"],
        missing_label=np.nan,
        progress=False,
        random_state=0,
    )
    e.fit(x, pd.Series(labels))
    assert (e.predict(x) == np.array(["a", "b", "c"])[y]).mean() > 0.9


@pytest.mark.slow
def test_three_unlabelled_classes():
    x, y = clusters(3000, 3, 15, 5)
    e = UnlabelledNB(classes=[0, 1, 2], progress=False, random_state=0).fit(x)
    together = pd.crosstab(e.predict(x), y).to_numpy()
    assert together[linear_sum_assignment(-together)].sum() > 0.9 * len(y)
    assert np.all(np.diff(e.class_prior_) <= 0)


def test_moments_need_enough_discrete_features():
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 4)), np.arange(60) % 3
    bad(NoisyGaussianNB.published(init="moments"), x, y, match="init: 'moments' needs 2 groups")
    bad(NoisyBernoulliNB.published(init="moments"), x > 0.5, y, match="4 discrete feature")
    bad(NoisyBernoulliNB.published(init="luck"), x > 0.5, y, match="init: expected")
    bad(UnlabelledNB(classes=range(5)), x[:, :3] > 0.5, match="3 groups")
