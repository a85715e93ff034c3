"""Brute force: sums over all labellings of joint densities that SciPy evaluates.

First at given parameters: the log-likelihood and the responsibilities are those of the enumerated
joint. Then with the parameters integrated out as well: where every class is known the variational
bound is the marginal likelihood, and otherwise it lies below the sum over all labellings.
"""

from itertools import product

import jax
import numpy as np
import pytest
from marks import slow_among
from scipy import special, stats
from zoo import K, anchored, build, close, random_likelihood_params, total_log_likelihood

from inference import Status, solve
from nbmodels.channels import TrustedLabels
from nbmodels.core import model as m

N = 5
LABELLINGS = np.array(list(product(range(K), repeat=N)))

MODELS = [
    ("bernoulli", "transition"),
    ("multinomial", "symmetric"),
    ("categorical", "fixed"),
    ("gaussian", "trusted"),
    ("full", "transition", "symmetric"),
    ("tied", "bernoulli", "fixed"),
    ("transition", "trusted"),
    ("bernoulli", "transition", "candidates"),
    ("student", "transition"),
    ("student_full", "student_tied", "fixed"),
    ("categorical", "multinomial", "gaussian"),
]


def log_probability(name, case, values, i, k):
    """log p(what component ``name`` saw of item ``i`` | its class is ``k``), by SciPy."""
    v = {site: np.asarray(x) for site, x in values[name].items()}
    x, seen = case.raw[name][i], ~case.hidden[name][i]
    if name == "candidates":
        return 0.0 if x[k] or not seen[k] else -np.inf
    if name in ("transition", "symmetric", "fixed", "trusted"):
        if not seen or x < 0:
            return 0.0
        if name == "trusted":
            return 0.0 if x == k else -np.inf
        if name == "symmetric":
            wrong = float(v["epsilon"])
            return np.log(1 - wrong if x == k else wrong / (K - 1))
        return np.log((v["transition"] if name == "transition" else case.model[name].prior)[k, x])
    if name == "categorical":
        return sum(np.log(v[f"probs_{j}"][k, x[j]]) for j in np.flatnonzero(seen))
    if name == "bernoulli":
        return stats.bernoulli.logpmf(x[seen], v["probs"][k][seen]).sum()
    if name == "multinomial":
        known = v["probs"][k][seen]
        return (
            stats.multinomial.logpmf(x[seen], x[seen].sum(), known / known.sum())
            if len(known)
            else 0
        )
    if name == "gaussian":
        return stats.norm.logpdf(x[seen], v["mu"][k][seen], v["variance"][k][seen] ** 0.5).sum()
    if not seen.any():
        return 0.0
    which = 0 if name in ("tied", "student_tied") else k
    covariance = np.diag(v["variance"][k]) if name == "student" else v["covariance"][which]
    covariance = covariance[np.ix_(seen, seen)]
    if name.startswith("student"):
        dof = case.model[name].dof
        return stats.multivariate_t.logpdf(x[seen], v["mu"][k][seen], covariance, dof)
    return stats.multivariate_normal.logpdf(x[seen], v["mu"][k][seen], covariance)


def joint(case, values):
    """``(K^N,)`` log-density of the data with each labelling."""
    names = [name for name in case.model if name != m.PRIOR]
    prior = np.log(values[m.PRIOR]["probs"])
    table = [
        [prior[k] + sum(log_probability(n, case, values, i, k) for n in names) for k in range(K)]
        for i in range(N)
    ]
    return np.array([sum(table[i][k] for i, k in enumerate(y)) for y in LABELLINGS])


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize("names", MODELS, ids="+".join)
def test_the_likelihood_is_a_sum_over_labellings(names, missing, key):
    case = build(*names, n_items=N, missing=missing)
    read = random_likelihood_params(case.model, key)
    logs = joint(case, m.values(case.model, read))
    share = np.exp(logs - special.logsumexp(logs))

    @jax.jit
    def ours():
        resp = m.posterior(case.model, read, case.data).resp
        counts = m.stats(case.model, read, resp, case.data)
        return total_log_likelihood(case.model, read, case.data), resp, counts

    @jax.jit
    @jax.vmap
    def counted(y):
        return m.stats(case.model, read, jax.nn.one_hot(y, K), case.data)

    likelihood, resp, counts = ours()
    close(likelihood, special.logsumexp(logs))
    close(resp, np.stack([share @ (k == LABELLINGS) for k in range(K)], 1))
    # additive statistics: their expectation under the joint is that under the responsibilities
    close(counts, jax.tree.map(lambda s: np.tensordot(share, s, 1), counted(LABELLINGS)))


# With the parameters integrated out


def dirichlet_counts(counts, alpha):
    """Marginal log-probability of a sequence of draws with these counts."""
    both = special.gammaln(counts.sum() + alpha.sum()), special.gammaln(alpha.sum())
    return (special.gammaln(counts + alpha) - special.gammaln(alpha)).sum() - both[0] + both[1]


def gaussian_sequence(prior, x, y):
    """Marginal log-density of rows, one after the other, by multivariate t predictions."""
    mean, kappa, dof, scale = (np.array(leaf) for leaf in jax.tree.leaves(prior))
    d, out = x.shape[1], 0.0
    for row, k in zip(x, y, strict=True):
        s = 0 if len(dof) == 1 else k
        df = dof[s] - d + 1
        shape = scale[s] * (kappa[k] + 1) / (kappa[k] * df)
        out += stats.multivariate_t.logpdf(row, mean[k], shape, df)
        gap = row - mean[k]
        scale[s] += np.outer(gap, gap) * kappa[k] / (kappa[k] + 1)
        mean[k] += gap / (kappa[k] + 1)
        kappa[k], dof[s] = kappa[k] + 1, dof[s] + 1
    return out


def marginal(name, component, x, y):
    """log p(data | classes) with the parameters integrated out."""
    prior = component.prior
    of = [y == k for k in range(K)]
    if name == m.PRIOR:
        return dirichlet_counts(np.bincount(y, minlength=K), np.asarray(prior.concentration))
    if name in ("full", "tied"):
        return gaussian_sequence(prior, x, y)
    if name == "gaussian":
        mean, kappa, shape, rate = (np.asarray(leaf) for leaf in jax.tree.leaves(prior))
        return sum(
            stats.multivariate_t.logpdf(
                x[of[k], j],
                np.full(of[k].sum(), mean[k, j]),
                rate[k, j] / shape[k, j] * (np.eye(of[k].sum()) + 1 / kappa[k, j]),
                2 * shape[k, j],
            )
            for k in range(K)
            for j in range(x.shape[1])
            if of[k].any()
        )
    alpha = np.asarray(prior.concentration)
    if name == "bernoulli":
        return sum(
            dirichlet_counts(np.bincount(x[of[k], j], minlength=2), alpha[:, j, k])
            for k in range(K)
            for j in range(x.shape[1])
        )
    if name == "multinomial":
        coefficient = special.gammaln(x.sum(1) + 1).sum() - special.gammaln(x + 1).sum()
        return coefficient + sum(dirichlet_counts(x[of[k]].sum(0), alpha[:, k]) for k in range(K))
    if name == "categorical":
        parts = np.split(alpha, np.cumsum(component.sizes)[:-1])
        return sum(
            dirichlet_counts(np.bincount(x[of[k], j], minlength=len(part)), part[:, k])
            for k in range(K)
            for j, part in enumerate(parts)
        )
    if name == "transition":
        return sum(dirichlet_counts(np.bincount(x[of[k]], minlength=K), alpha[k]) for k in range(K))
    assert name == "symmetric"
    right = np.sum(x == y)
    counts = np.array([right, len(x) - right])
    return dirichlet_counts(counts, alpha) - counts[1] * np.log(K - 1)


def exact(case, y):
    raw = {m.PRIOR: None, **case.raw}
    return sum(marginal(name, c, raw[name], y) for name, c in case.model.items())


COLLAPSIBLE = [
    "bernoulli",
    "multinomial",
    "categorical",
    "gaussian",
    "full",
    "tied",
    "transition",
    "symmetric",
]


def bounds(case, *labels):
    """The variational bound with each of the trusted ``labels``, one compilation for all."""
    model = {**case.model, "trusted": TrustedLabels.of(K)}
    start = {**anchored(case, "vb"), "trusted": model["trusted"].prior}

    @jax.jit
    def bound(trusted):
        data = m.Data({**case.data.parts, "trusted": trusted}, case.data.weights)
        coordinates = m.coordinates("vb")
        fit = solve(m.step("vb"), start, (model, data), tol=1e-12, coordinates=coordinates)
        return fit.status, m.objective(model, fit.params, data, "vb")

    for trusted in labels:
        status, objective = bound(model["trusted"].pack(trusted, K))
        assert status == Status.CONVERGED
        yield objective


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_among(COLLAPSIBLE, ("bernoulli", "full", "tied")))
def test_the_bound_is_the_marginal_likelihood_or_below(name):
    case = build(name, n_items=N)
    known, unknown = bounds(case, case.y, np.full(N, -1))
    close(known, exact(case, case.y))
    gap = special.logsumexp([exact(case, y) for y in LABELLINGS]) - unknown
    # an optimum that is no worse than certainty of the best labelling loses log K an item at most
    assert 1e-6 < gap < N * np.log(K)
