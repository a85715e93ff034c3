"""Maystre 2021: the algorithms against the components, the simulation, the collapsed updates."""

import jax
import jax.numpy as jnp
import numpy as np
from baselines import weighted_vote
from scipy import sparse

from inference import Status
from nbmodels import (
    CollaborativeClassifier,
    NotConvergedWarning,
    Solver,
)
from nbmodels.core import model as m
from nbmodels.core.dirichlet_multinomial import shared_concentration
from nbmodels.fitting.collapsed_updates import Edges, fit_collapsed, log_likelihood_without_self
from nbmodels.papers import maystre2021 as page

K = 4


def test_one_step_of_cavi_is_algorithm_1(platform):
    alpha = np.random.default_rng(3).uniform(0.2, 2, (40, K))
    beta = page.beta(platform.v_hat, K, 0.1)
    components, data = page.to_model(platform.edges, platform.v_hat, K, alpha=alpha)

    @jax.jit
    def begin(resp, data):
        read = m.likelihood_params(components, {n: c.prior for n, c in components.items()}, "vb")
        return m.update(components, m.stats(components, read, resp, data), "vb")

    @jax.jit
    def posterior(q, data):
        return m.posterior(components, m.likelihood_params(components, q, "vb"), data)

    q, step = begin(jnp.asarray(beta), data), jax.jit(m.step("vb"))
    for iterations in (1, 2, 5):
        alpha_bar, beta_bar = page.algorithm_1(
            platform.edges.toarray(), beta, alpha, iterations=iterations
        )
        resp = posterior(q, data).resp
        np.testing.assert_allclose(q["users"].concentration, alpha_bar, 1e-10)
        np.testing.assert_allclose(resp, beta_bar, 1e-9, 1e-12)
        for _ in range({1: 1, 2: 3, 5: 0}[iterations]):
            q, _ = step(q, (components, data))


def test_weighted_vote_is_algorithm_2(platform):
    edges = platform.edges.toarray()
    edges[3, edges[3] > 0] = 2  # an edge counted twice
    loops = page.algorithm_2(edges, platform.v_hat, K)
    np.testing.assert_allclose(weighted_vote(edges, platform.v_hat, K), loops)


def test_simulation_follows_the_paper():
    drawn = page.simulate(np.random.default_rng(0), M=4000, N=500, K=5, S=5, alpha=0.5, delta=0.2)
    assert (drawn.edges.sum(0) == 5).all()
    assert abs((drawn.v != drawn.v_hat).mean() - 0.2) < 0.06
    # Lemma 1: two items of a user share their class (1 + 1/alpha) times as often as another one's
    together = np.asarray((drawn.edges @ drawn.edges.T).todense()) * (1 - np.eye(500))
    same = drawn.v[:, None] == drawn.v
    ratio = together[same].sum() / (together[~same].sum() / 4)
    assert abs(ratio - 3) < 0.25


def test_without_self_is_a_loop(platform):
    rng = np.random.default_rng(4)
    resp = rng.dirichlet(np.ones(K), 30)
    edges = platform.edges.toarray() * rng.integers(1, 3, (30, 40))
    alpha = rng.uniform(0.1, 1, (40, K))
    weight = 0.7
    counts = alpha + weight * edges.T @ resp
    expected = np.zeros((30, K))
    for j in range(30):
        for i in np.flatnonzero(edges[j]):
            rest = counts[i] - weight * edges[j, i] * resp[j]
            expected[j] += edges[j, i] * np.log(rest)
    packed = Edges.of(sparse.csr_array(edges))
    found = log_likelihood_without_self(jnp.asarray(counts), jnp.asarray(resp), packed, weight, 30)
    np.testing.assert_allclose(found, expected, 1e-9)


def test_ctrl_c_keeps_what_the_updates_have_reached(platform):
    edges = {"users": Edges.of(platform.edges)}
    model, packed = page.to_model(platform.edges, platform.v_hat, K, alpha=0.3)

    def interrupt(n_iter, change):
        assert 0 < change < 1
        raise KeyboardInterrupt

    stopped = fit_collapsed(model, packed, edges=edges, tol=0.0, report=interrupt)
    assert stopped.status is Status.INTERRUPTED
    assert stopped.n_iter == 10
    limited = fit_collapsed(model, packed, edges=edges, tol=0.0, max_iter=10)
    assert [c.category for c in limited.cautions()] == [NotConvergedWarning]
    np.testing.assert_array_equal(stopped.resp, limited.resp)


def test_published_is_algorithm_1_to_convergence(platform):
    e = CollaborativeClassifier.published(
        K, 0.1, 0.5, solver=Solver(method="vb", max_iter=2000, tol=1e-12)
    )
    e.fit(platform.edges.T, platform.v_hat)
    beta = page.beta(platform.v_hat, K, 0.1)
    alpha = np.full((40, K), 0.5)
    loops = page.algorithm_1(platform.edges.toarray(), beta, alpha, iterations=150)
    np.testing.assert_allclose(e.label_posterior_, loops.beta, atol=1e-4)
    mean = loops.alpha / loops.alpha.sum(1, keepdims=True)
    np.testing.assert_allclose(e.user_proportions_, mean, atol=1e-4)


def test_shared_concentration_recovers_what_was_drawn():
    rng = np.random.default_rng(0)
    alpha = np.array([4.0, 1.0, 0.3])
    counts = np.array([rng.multinomial(20, p) for p in rng.dirichlet(alpha, 4000)], float)
    found = shared_concentration(jnp.asarray(counts), jnp.ones(3))
    np.testing.assert_allclose(found, alpha, rtol=0.1)
