"""The objective and the predictions of every estimator, from their definitions with SciPy."""

import jax
import numpy as np
import pytest
from planted import (
    K,
    N,
    every_kind,
    features,
    fitted,
    frozen,
    given_labels,
    log_likelihood,
    lose,
    make,
    one_hot,
    truth,
)
from scipy import stats
from scipy.special import gammaln, logsumexp

from nbmodels import NbmodelsWarning


def log_dirichlet(p, concentration):
    return stats.dirichlet.logpdf(p / p.sum(), concentration)


def log_prior_of_labels(e):
    """Log-prior density of the class shares and of the noise matrix, of one pseudo-label each."""
    wrong = 1 + 1.0 / (K - 1)
    out = log_dirichlet(e.class_prior_, [2.0] * K)
    for true in range(K):
        concentration = np.where(np.arange(K) == true, 3.0, wrong)
        out += log_dirichlet(e.noise_matrix_[:, true], concentration)
    return out


def beta_terms(x, p):
    """Log-likelihood table of zeros and ones, and the prior; ``p`` is ``(K, d)``."""
    table = x @ np.log(p).T + (1 - x) @ np.log1p(-p).T
    return table, stats.beta.logpdf(p, 2, 2).sum()


def word_terms(x, theta):
    coefficient = gammaln(x.sum(1) + 1) - gammaln(x + 1).sum(1)
    prior = sum(log_dirichlet(t, [2.0] * len(t)) for t in theta)
    return x @ np.log(theta).T + coefficient[:, None], prior


def symbol_terms(x, thetas, categories):
    table, prior = 0, 0
    for column, theta, known in zip(x.T, thetas, categories, strict=True):
        codes = np.searchsorted(known.astype(str), column.astype(str))
        table = table + np.log(theta).T[codes]
        prior += sum(log_dirichlet(t, [2.0] * len(t)) for t in theta)
    return table, prior


def real_terms(x, mean, variance):
    """The likelihood in the data's units; the prior is on standardised parameters."""
    table = stats.norm.logpdf(x[:, None], mean, np.sqrt(variance)).sum(2)
    location, scale = x.mean(0), x.std(0)
    m, v = (mean - location) / scale, variance / scale**2
    prior = stats.invgamma.logpdf(v, 1.0, scale=0.1).sum()
    return table, prior + stats.norm.logpdf(m, 0, np.sqrt(v / 0.01)).sum()


def matrix_terms(x, mean, covariances):
    d = x.shape[1]
    location, scale = x.mean(0), x.std(0)
    table = np.stack(
        [
            stats.multivariate_normal.logpdf(x, m, c, allow_singular=False)
            for m, c in zip(mean, np.broadcast_to(covariances, (K, d, d)), strict=True)
        ],
        1,
    )
    standard = covariances / np.outer(scale, scale)
    prior = sum(
        stats.invwishart.logpdf(c, d + 3, 0.1 * np.eye(d)) for c in standard.reshape(-1, d, d)
    )
    for m, c in zip((mean - location) / scale, np.broadcast_to(standard, (K, d, d)), strict=True):
        prior += stats.multivariate_normal.logpdf(m, np.zeros(d), c / 0.01)
    return table, prior


def feature_terms(kind, e):
    x = features(kind)
    if kind == "bernoulli":
        return beta_terms(x, np.exp(e.feature_log_prob_))
    if kind == "multinomial":
        return word_terms(x, np.exp(e.feature_log_prob_))
    if kind == "categorical":
        thetas = [np.exp(t) for t in e.feature_log_prob_]
        return symbol_terms(x, thetas, e.categories_)
    if kind == "diag":
        return real_terms(x, e.theta_, e.var_)
    if kind == "mixed":
        point = {n: c.values(e.fit_.point[n]) for n, c in e.fit_.model.items()}
        point = jax.tree.map(np.asarray, point)
        coder = {c.name: c.encoder for c in e.fitted_.coded}
        real = coder["gaussian"].units(point["gaussian"])
        words = [point["categorical"][f"probs_{j}"] for j in range(2)]
        parts = [
            beta_terms(x[["flag", "binary"]].to_numpy(float), point["bernoulli"]["probs"]),
            word_terms(x[["red", "green"]].to_numpy(float), point["multinomial"]["probs"]),
            symbol_terms(
                x[["shape", "grade"]].to_numpy(object), words, coder["categorical"].categories
            ),
            real_terms(x[["size", "weight"]].to_numpy(), real["mu"], real["variance"]),
        ]
        return sum(p[0] for p in parts), sum(p[1] for p in parts)
    return matrix_terms(x, e.theta_, e.covariance_)


@pytest.mark.slow
@every_kind
def test_the_objective_is_the_log_posterior_density_in_the_units_of_the_data(kind):
    e = fitted(kind)
    table, prior = feature_terms(kind, e)
    each = log_likelihood(e, table)
    np.testing.assert_allclose(e.fit_.log_likelihood, each, 1e-9)
    expected = each.sum() + prior + log_prior_of_labels(e)
    np.testing.assert_allclose(e.objective_, expected, 1e-9)


@pytest.mark.slow
@every_kind
def test_predictions_follow_from_the_reported_parameters(kind):
    e = fitted(kind)
    joint = feature_terms(kind, e)[0] + np.log(e.class_prior_)
    expected = np.exp(joint - logsumexp(joint, 1)[:, None])
    np.testing.assert_allclose(e.predict_proba(features(kind)), expected, 1e-7, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ml", "map", "vb"])
def test_methods_are_what_they_are_called(method):
    """Counts alone, the mode of counts plus prior, or their mean."""
    e = fitted("bernoulli", method=method)
    assert e.converged_
    assert (np.diff(e.objective_trace_) >= -1e-12 * np.abs(e.objective_)).all()
    resp = e.label_posterior_
    pseudo = {"ml": 0, "map": 1, "vb": 2}[method]
    wrong, right = {"ml": (0, 0), "map": (0.5, 2), "vb": (1.5, 3)}[method]
    shares = resp.sum(0) + pseudo
    np.testing.assert_allclose(e.class_prior_, shares / shares.sum(), 1e-5)
    counts = one_hot(truth()[1]).T @ resp + np.where(np.eye(K), right, wrong)
    np.testing.assert_allclose(e.noise_matrix_, counts / counts.sum(0), 1e-4, 1e-6)
    ones = resp.T @ features("bernoulli") + pseudo
    total = resp.sum(0)[:, None] + 2 * pseudo
    np.testing.assert_allclose(np.exp(e.feature_log_prob_), ones / total, 1e-4, 1e-6)
    if method == "ml":
        each = log_likelihood(e, beta_terms(features("bernoulli"), np.exp(e.feature_log_prob_))[0])
        np.testing.assert_allclose(e.objective_, each.sum(), 1e-9)


@pytest.mark.slow
def test_maximum_likelihood_is_the_likeliest_and_the_bound_is_below():
    def likelihood(method):
        return fitted("bernoulli", method=method).fit_.log_likelihood.sum()

    assert likelihood("ml") > likelihood("map")
    assert likelihood("ml") > fitted("bernoulli", method="vb").objective_


def test_missing_cells_are_left_out_of_the_likelihood():
    x, y = lose(features("diag"), np.nan), given_labels()
    e = make("diag", missing_values=np.nan).fit(x, y)
    seen = np.where(np.isnan(x), 0, x)[:, None]
    terms = stats.norm.logpdf(seen, e.theta_, np.sqrt(e.var_)) * ~np.isnan(x)[:, None]
    each = log_likelihood(e, terms.sum(2))
    np.testing.assert_allclose(e.fit_.log_likelihood, each, 1e-9)


@pytest.mark.slow
def test_an_unseen_category_is_left_out():
    e = fitted("categorical")
    x = frozen(features("categorical"))
    x[:, 2] = "never"
    kept = [0, 1, 3]
    tables = [np.exp(e.feature_log_prob_[j]) for j in kept]
    joint = symbol_terms(x[:, kept], tables, [e.categories_[j] for j in kept])[0]
    joint = joint + np.log(e.class_prior_)
    with pytest.warns(NbmodelsWarning, match="of the categories in column '2', which .* row 0 is"):
        found = e.predict_proba(x)
    np.testing.assert_allclose(found, np.exp(joint - logsumexp(joint, 1)[:, None]), 1e-7)
    x[:] = "never"
    with pytest.warns(NbmodelsWarning, match="likewise in 3 other columns"):
        found = e.predict_proba(x)
    np.testing.assert_allclose(found, np.tile(e.class_prior_, (N, 1)), 1e-9)
