"""The page of Bootkrajang and Kaban 2011 against loops and components; RobustNDA; heavy tails."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow
from scipy import stats
from sklearn.metrics import roc_auc_score

from nbmodels import DataError, NoisyGaussianNB, RobustNDA, Solver
from nbmodels.papers import bootkrajang2011 as page

# these tests are of the fit, on data that do not always suit; the verdict has tests of its own
pytestmark = pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")

K, D = 3, 2
DOF = 3.5


def simulate(n=60, seed=0, c=1.0, **how):
    sim = page.simulate(jax.random.key(seed), n, D, K, c, **how)
    return jax.tree.map(np.asarray, sim)


def letters(rng):
    """Random parameters in the paper's letters."""
    A = rng.normal(size=(K, D, 2 * D))
    return {
        "mu": rng.normal(size=(K, D)),
        "Sigma": A @ A.transpose(0, 2, 1),
        "gamma": rng.dirichlet(np.ones(K), K),
        "p_hat": rng.dirichlet(np.ones(K)),
    }


# Section 2


@pytest.mark.slow
def test_eqs_2_and_4_sum_over_the_true_labels():
    sim, at = simulate(20), letters(np.random.default_rng(0))
    total = 0.0
    for n in range(20):
        j = sim.y_hat[n]
        joint = np.array(
            [
                stats.multivariate_normal.pdf(sim.x[n], at["mu"][k], at["Sigma"][k])
                * at["gamma"][j, k]
                for k in range(K)
            ]
        )
        total += np.log(joint.sum() * at["p_hat"][j])
        given = {name: at[name] for name in ("mu", "Sigma", "gamma")}
        post = page.posterior(sim.x[n : n + 1], sim.y_hat[n : n + 1], **given)
        np.testing.assert_allclose(post[0], joint / joint.sum(), rtol=1e-10)
    np.testing.assert_allclose(page.log_likelihood(sim.x, sim.y_hat, **at), total)


def test_eq_8_marginalises_the_observed_label():
    at = letters(np.random.default_rng(1))
    x = np.random.default_rng(2).normal(size=(4, D))
    ours = page.predict(x, **at)
    for n in range(4):
        logs = [
            np.log(at["gamma"][j, k] * at["p_hat"][j])
            + stats.multivariate_normal.logpdf(x[n], at["mu"][k], at["Sigma"][k])
            for j, k in itertools.product(range(K), repeat=2)
        ]
        share = np.exp(logs - np.logaddexp.reduce(logs)).reshape(K, K).sum(0)
        np.testing.assert_allclose(ours[n], share)


def paper_em(sim, n_steps=3000):
    """Eqs. (4)-(7) and nothing else, from the observed labels with a little doubt."""
    begin = 0.8 * jax.nn.one_hot(sim.y_hat, K) + 0.2 / K

    @jax.jit
    def run():
        def step(_, p):
            return page.posterior(sim.x, sim.y_hat, *page.m_step(sim.x, sim.y_hat, p))

        return page.m_step(sim.x, sim.y_hat, jax.lax.fori_loop(0, n_steps, step, begin))

    return run()


@pytest.mark.slow
def test_the_estimator_fits_what_the_papers_em_does():
    """gamma against the transition: with maximum likelihood the table of pairs is the same."""
    sim = simulate(300, c=1.5)
    mu, Sigma, gamma = paper_em(sim)
    m = RobustNDA.published(solver=Solver(method="ml", max_iter=5000, tol=1e-12)).fit(
        sim.x, sim.y_hat
    )
    np.testing.assert_allclose(m.gamma_, gamma, atol=1e-4)
    np.testing.assert_allclose(m.means_, mu, atol=1e-3)
    np.testing.assert_allclose(m.covariances_, Sigma, atol=1e-3)
    np.testing.assert_array_equal(m.inverse_noise_matrix_, m.gamma_.T)
    p_hat = np.bincount(sim.y_hat, minlength=K) / 300
    pairs = np.asarray(gamma) * p_hat[:, None]
    np.testing.assert_allclose(m.noise_matrix_ * m.class_prior_, pairs, atol=1e-4)
    likelihood = page.log_likelihood(sim.x, sim.y_hat, mu, Sigma, gamma, p_hat)
    np.testing.assert_allclose(m.objective_, likelihood, atol=1e-5)
    ours = page.predict(sim.x, mu, Sigma, gamma, jnp.asarray(p_hat))
    np.testing.assert_allclose(m.predict_proba(sim.x), ours, atol=1e-3)
    np.testing.assert_allclose(m.gamma_, np.asarray(page.flips(K, 0.3)), atol=0.12)


# The estimator


SHAPES = {"full": (K, D, D), "tied": (D, D), "diag": (K, D)}


@pytest.mark.slow
@pytest.mark.parametrize(("covariance", "dof"), [("full", None), ("tied", 5), ("diag", 5)])
def test_covariances_have_their_shapes(covariance, dof):
    sim = simulate()
    m = RobustNDA.published(covariance=covariance, dof=dof).fit(sim.x, sim.y_hat)
    assert m.covariances_.shape == SHAPES[covariance]
    assert m.means_.shape == (K, D)
    assert m.dof_ == dof
    np.testing.assert_allclose(m.gamma_.sum(1), 1)
    np.testing.assert_allclose(m.noise_matrix_.sum(0), 1)


@pytest.mark.slow
def test_normal_classes_are_the_noisy_gaussian():
    sim = simulate()
    one, two = RobustNDA.published(), NoisyGaussianNB.published(covariance="full")
    np.testing.assert_array_equal(
        one.fit(sim.x, sim.y_hat).label_posterior_, two.fit(sim.x, sim.y_hat).label_posterior_
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariance", "method", "dof"),
    [("full", "map", None), ("full", "vb", DOF), ("tied", "map", DOF)],
)
def test_more_columns_than_rows(covariance, method, dof):
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    x = rng.normal(size=(20, 30)) + 3 * y[:, None]
    m = RobustNDA.published(covariance=covariance, dof=dof, solver=method).fit(x, y)
    assert np.isfinite(m.objective_)
    for matrix in np.atleast_3d(m.covariances_).reshape(-1, 30, 30):
        assert np.linalg.eigvalsh(matrix).min() > 0
    assert (m.predict(x) == y).all()


@pytest.mark.slow
@pytest.mark.parametrize(("method", "dof"), [("ml", None), ("map", None), ("ml", DOF), ("vb", DOF)])
def test_singular_classes(method, dof):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 30)
    x = rng.normal(size=(60, 3)) + 4 * y[:, None]
    x[y == 1] = x[y == 1][:, :1]  # all its columns are one
    x[:, 2] = 7.0  # constant in both
    m = RobustNDA.published(dof=dof, solver=method).fit(x, y)
    assert np.isfinite(m.objective_)
    assert (np.diff(m.objective_trace_) > -1e-6 * abs(m.objective_)).all()
    assert np.isfinite(m.predict_proba(x)).all()
    assert (m.predict(x) == y).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariance", "method"), [("full", "ml"), ("full", "vb"), ("diag", "map")]
)
def test_the_objective_of_heavy_tails_never_falls(covariance, method):
    sim = simulate(200, seed=4, dof=2.0)
    x = np.where(np.random.default_rng(0).random(sim.x.shape) < 0.1, np.nan, sim.x)
    m = RobustNDA.published(covariance=covariance, dof=2.0, missing_values=np.nan, solver=method)
    m.fit(x[~np.isnan(x).all(1)], sim.y_hat[~np.isnan(x).all(1)])
    assert m.converged_
    assert (np.diff(m.objective_trace_) > -1e-9 * abs(m.objective_)).all()


@pytest.mark.slow
def test_heavy_tails_are_for_student():
    sim = simulate(800, seed=1, dof=3.0)
    wrong = sim.y_hat != sim.y
    error, auc, objective = {}, {}, {}
    for dof in (None, 3.0, "learn"):
        m = RobustNDA.published(dof=dof).fit(sim.x, sim.y_hat)
        error[dof] = np.abs(m.noise_matrix_ - sim.rho).max()
        auc[dof] = roc_auc_score(wrong, m.corrected_labels().p_wrong)
        objective[dof] = m.objective_
    assert error[3.0] < 0.1 < 0.2 < error[None]
    assert auc[3.0] > auc[None] + 0.05
    assert error["learn"] < 0.1
    assert objective["learn"] >= objective[3.0] - 1e-3 > objective[None]
    assert 2 < m.dof_ < 5
    np.testing.assert_allclose(m.means_, sim.mu, atol=0.25)


@pytest.mark.slow
def test_many_degrees_of_freedom_are_normal():
    sim = simulate(200)
    normal = RobustNDA.published(solver=Solver(tol=1e-10)).fit(sim.x, sim.y_hat)
    student = RobustNDA.published(dof=1e7, solver=Solver(tol=1e-10)).fit(sim.x, sim.y_hat)
    np.testing.assert_allclose(student.objective_, normal.objective_, rtol=1e-5)
    np.testing.assert_allclose(student.covariances_, normal.covariances_, rtol=1e-3)
    learned = RobustNDA.published(dof="learn").fit(sim.x, sim.y_hat)
    assert learned.dof_ > 15


@pytest.mark.slow
def test_the_learned_degrees_of_freedom_are_a_maximum():
    sim = simulate(400, seed=5, dof=4.0)
    best = RobustNDA.published(dof="learn", covariance="diag").fit(sim.x, sim.y_hat)
    for factor in (0.8, 1.25):
        other = RobustNDA.published(dof=factor * best.dof_, covariance="diag").fit(sim.x, sim.y_hat)
        assert other.objective_ < best.objective_


@pytest.mark.slow
@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_gibbs_agrees_with_vb_on_heavy_tails(covariance):
    sim = simulate(300, seed=6, c=1.5, dof=4.0)
    m = RobustNDA.published(covariance=covariance, dof=4.0, random_state=0, solver="vb")
    m.fit(sim.x, sim.y_hat)
    draws = m.posterior(draws=800, chains=2).posterior
    mu = draws["features_mu"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(mu, m.means_, atol=0.15)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"dof": 0},
            r"dof: expected a finite number, above 0, or 'auto', or 'learn', or None; got 0",
        ),
        ({"dof": -1.0}, r"dof: expected"),
        ({"dof": np.inf}, r"dof: expected"),
        ({"dof": "many"}, r"dof: expected .* got 'many'"),
        ({"covariance": "round"}, r"covariance: expected"),
        ({"solver": "nuts"}, r"solver: expected"),
    ],
)
def test_bad_parameters_are_refused(how, message):
    with pytest.raises(DataError, match=message):
        RobustNDA(**how).fit(np.eye(4), [0, 1, 0, 1])


# Section 3.1


@pytest.mark.parametrize(("d", "n_classes", "c"), [(2, 3, 1.5), slow(10, 4, 0.5), slow(6, 5, 1.5)])
def test_simulation_has_the_separation_of_table_1(d, n_classes, c):
    sim = page.simulate(jax.random.key(0), 4000, d, n_classes, c, 0.3)
    gaps = [
        np.linalg.norm(sim.mu[i] - sim.mu[j])
        for i, j in itertools.combinations(range(n_classes), 2)
    ]
    widest = max(np.linalg.eigvalsh(S).max() for S in np.asarray(sim.Sigma))
    np.testing.assert_allclose(min(gaps) / np.sqrt(d * widest), c)
    assert abs(np.mean(sim.y != sim.y_hat) - 0.3) < 0.03
    np.testing.assert_allclose(sim.rho.sum(0), 1)
    of_first = np.asarray(sim.x)[np.asarray(sim.y) == 0]
    np.testing.assert_allclose(np.cov(of_first.T), sim.Sigma[0], atol=0.25)
