"""The page of Zeng et al. 2022 against brute force, the components, and the paper's simulation."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from numpyro import handlers
from paper_data import KINDS, N_CLASSES, features
from reference import enumerated_density, prior_density
from scipy import stats

from inference import Status, solve
from nbmodels.core import model as models
from nbmodels.papers import zeng2022

K = N_CLASSES


def page(kind, x, labels, **hyper):
    return partial(getattr(zeng2022, kind), *x.values(), labels, K, **hyper)


def draw(kind, x, labels, hyper, seed):
    """Sites of the page drawn from its prior, and the page's own letters at that draw."""
    seeded = handlers.seed(page(kind, x, labels, **hyper), seed)
    trace = handlers.trace(seeded).get_trace()
    sites = {
        name: site["value"]
        for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"] and name != "y_star"
    }
    letters = {**sites, "rho": trace["rho"]["value"]}
    if "sigma" in trace:
        letters["sigma"] = trace["sigma"]["value"]
    return sites, letters


def by_hand(letters, x, label, y):
    """Log-joint of one item and its true class ``y``, after eq. (2) and appendix .1."""
    out = np.log(letters["pi"][y])
    if label >= 0:
        out += np.log(letters["rho"][label, y])
    if "X" in x:
        out += stats.bernoulli.logpmf(x["X"], letters["p"][:, y]).sum()
    if "Z" in x:
        out += stats.norm.logpdf(x["Z"], letters["mu"][:, y], letters["sigma"][:, y]).sum()
    return out


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_reference_model_sums_over_all_labellings(kind):
    x, labels = features(kind, np.random.default_rng(0), n=5)
    sites, letters = draw(kind, x, labels, {}, 1)
    letters = {name: np.asarray(v) for name, v in letters.items()}
    rows = [{name: v[i] for name, v in x.items()} for i in range(5)]
    joints = [
        sum(by_hand(letters, row, label, k) for row, label, k in zip(rows, labels, ys, strict=True))
        for ys in itertools.product(range(K), repeat=5)
    ]
    assert -1 in labels
    program = page(kind, x, labels)
    expected = np.logaddexp.reduce(joints) + prior_density(program, sites)
    np.testing.assert_allclose(enumerated_density(program, sites), expected, rtol=1e-10)


def test_columns_of_rho_are_the_true_classes():
    x, labels = features("binary", np.random.default_rng(0))
    concentration = 60.0
    program = page("binary", x, labels, alpha_rho=concentration, diagonal_rho=3 * concentration)
    trace = handlers.trace(handlers.seed(program, 0)).get_trace()
    rho = trace["rho"]["value"]
    np.testing.assert_allclose(rho.sum(0), 1)
    assert not np.allclose(rho.sum(1), 1)
    y, observed = 2, 0
    np.testing.assert_allclose(trace["rho_columns"]["value"][y, observed], rho[observed, y])


# Section 3.4


def observed_given_feature(pi, rho, p_j):
    """P(Y = k | X_j = 1) by going through all pairs of labels."""
    n_classes = len(pi)
    joint = np.zeros(n_classes)
    for observed, true in itertools.product(range(n_classes), repeat=2):
        joint[observed] += pi[true] * rho[observed, true] * p_j[true]
    return joint / joint.sum()


def test_label_given_feature_by_enumeration():
    rng = np.random.default_rng(3)
    pi, p_j, rho = rng.dirichlet(np.ones(4)), rng.random(4), rng.dirichlet(np.ones(4), 4).T
    expected = observed_given_feature(pi, rho, p_j)
    np.testing.assert_allclose(zeng2022.label_given_feature(pi, rho, p_j), expected)


@pytest.mark.parametrize("right", [0.6, 0.95])
def test_impact_formulas_by_enumeration(right):
    rng = np.random.default_rng(4)
    p_j = rng.random(2)
    rho = np.array([[right, 1 - right], [1 - right, right]])
    two = observed_given_feature(np.full(2, 0.5), rho, p_j)
    np.testing.assert_allclose(zeng2022.impact_two_classes(*p_j, right), two[0] - two[1])

    n_classes = 5
    p_j = rng.random(n_classes)
    wrong = (1 - right) / (n_classes - 1)
    rho = np.full((n_classes, n_classes), wrong) + (right - wrong) * np.eye(n_classes)
    many = observed_given_feature(np.full(n_classes, 1 / n_classes), rho, p_j)
    np.testing.assert_allclose(
        zeng2022.impact_constant(jnp.asarray(p_j), 1, 3, right), many[1] - many[3]
    )


def test_one_confusing_class_turns_the_prediction():
    n_classes, right, p_j1, p_j2 = 40, 0.9, 0.01, 0.5
    rho = np.asarray(zeng2022.confusing_class(n_classes, right))
    printed = [[0.9, 0.1, 0.1], [0.1, 0.9, 0], [0, 0, 0.9]]
    np.testing.assert_allclose(rho[:3, :3], printed)
    np.testing.assert_allclose(rho.sum(0), 1)
    p_j = np.full(n_classes, p_j2)
    p_j[0] = p_j1
    pi = np.full(n_classes, 1 / n_classes)
    seen = observed_given_feature(pi, rho, p_j)
    impact = zeng2022.impact_confusing_class(p_j1, p_j2, n_classes, right)
    np.testing.assert_allclose(impact, seen[0] - seen[2])
    truth = observed_given_feature(pi, np.eye(n_classes), p_j)
    assert truth[0] < truth[2]
    assert impact > 0


# Section 4.1

unbalanced = jax.jit(partial(zeng2022.simulate, n=4000, proportions=(3, 1, 1, 1, 1)))


def test_simulation_is_as_described():
    sim = unbalanced(jax.random.key(0), truth_key=jax.random.key(9))
    assert sim.X.shape == (4000, 500)
    assert sim.train == slice(0, 3200)
    assert sim.test == slice(3200, 4000)
    np.testing.assert_allclose(sim.pi, np.array([3, 1, 1, 1, 1]) / 7)
    # mean 0.65 + 0.05, variance 0.06^2 + 0.1^2 / 12
    assert abs(sim.p.mean() - 0.70) < 0.005
    assert abs(sim.p.std() - 0.0666) < 0.003
    np.testing.assert_allclose(sim.rho.sum(0), 1)
    diagonal = np.diagonal(sim.rho)
    assert np.all((diagonal >= 0.55) & (diagonal < 0.65))
    off = np.asarray(sim.rho)[~np.eye(5, dtype=bool)]
    assert np.all(off > 0)
    assert off.std() > 0.01
    counts = np.zeros((5, 5))
    np.add.at(counts, (np.asarray(sim.y_observed), np.asarray(sim.y_true)), 1)
    np.testing.assert_allclose(counts / counts.sum(0), sim.rho, atol=0.08)
    rates = np.stack([np.asarray(sim.X)[np.asarray(sim.y_true) == k].mean(0) for k in range(5)], 1)
    assert np.abs(rates - sim.p).max() < 0.12


def test_data_sets_may_share_their_truth():
    one, two = (unbalanced(jax.random.key(seed), truth_key=jax.random.key(9)) for seed in (0, 1))
    np.testing.assert_array_equal(one.p, two.p)
    np.testing.assert_array_equal(one.rho, two.rho)
    assert not np.array_equal(one.X, two.X)


def predict(pi, p, x):
    return jnp.argmax(jnp.log(pi) + x @ jnp.log(p) + (1 - x) @ jnp.log1p(-p), 1)


@partial(jax.jit, static_argnames=("n",))
def replicate(key, diagonal, n=5000):
    """One data set of section 4.1: test accuracies in percent, errors of ``p`` and ``rho``."""
    sim = zeng2022.simulate(key, n, diagonal=diagonal)
    x, y = sim.X[sim.train], sim.y_observed[sim.train]
    model = zeng2022.to_model(5, 500)
    data = models.Data(
        {"class_prior": None, "labels": y, "x": model["x"].pack(x)}, jnp.ones(len(y))
    )
    labels = jax.nn.one_hot(y, 5)
    plain = {name: model[name] for name in ("class_prior", "x")}
    nb = models.values(
        plain, models.likelihood_params(plain, models.start(plain, labels, data, "map"), "map")
    )
    fit = solve(
        models.step("map"),
        models.start(model, models.initial_responsibilities(model, data), data, "map"),
        (model, data),
        tol=1e-6 * n,
        coordinates=models.coordinates("map"),
    )
    inb = zeng2022.parameters(model, fit.params)

    def accuracy(pi, p):
        return 100 * jnp.mean(predict(pi, p, sim.X[sim.test]) == sim.y_true[sim.test])

    return {
        "nb": accuracy(nb["class_prior"]["probs"], nb["x"]["probs"].T),
        "inb": accuracy(inb["pi"], inb["p"]),
        "nb_t": accuracy(sim.pi, sim.p),
        "mse": jnp.mean(jnp.square(inb["p"] - sim.p)),
        "rho": jnp.max(jnp.abs(inb["rho"] - sim.rho)),
        "status": fit.status,
        "n_iter": fit.n_iter,
    }


def replicates(diagonal, n_draws=20):
    keys = jax.random.split(jax.random.key(2022), n_draws)
    out = lax.map(lambda key: replicate(key, diagonal), keys)
    assert np.all(out["status"] == Status.CONVERGED)
    return {name: float(v.mean()) for name, v in out.items()}


@pytest.mark.slow
def test_simulation_targets_with_many_mistakes():
    mean = replicates((0.55, 0.65))
    assert mean["inb"] - mean["nb"] >= 2.5
    assert abs(mean["nb_t"] - mean["inb"]) <= 1.0
    assert mean["mse"] <= 0.35e-3
    assert mean["rho"] <= 0.05


@pytest.mark.slow
def test_simulation_target_without_mistakes():
    mean = replicates((1.0, 1.0))
    assert mean["nb"] - mean["inb"] <= 0.3
