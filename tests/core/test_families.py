"""Every conjugate family under every rule, against NumPyro's densities and against its own draws.

The KL divergence of an exponential family is a Bregman divergence of its log-normaliser, which is
written here once more, in natural coordinates and with automatic derivatives in place of digammas.
The log-normaliser itself is checked through the densities at the mode, which keep all constants.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln, multigammaln
from numpyro import distributions as dist
from numpyro.distributions import kl_divergence
from zoo import close

from nbmodels.core.families import (
    RULES,
    DiagonalGaussianParams,
    Dirichlet,
    NormalInverseGamma,
    NormalInverseWishart,
    beta,
)

RNG = np.random.default_rng(0)


def positive(*shape):
    return jnp.asarray(RNG.uniform(1.2, 4.0, shape))


def moments(n, d):
    """``(n, sum x, sum x x^T)`` of some points in each of a few classes."""
    x = [RNG.normal(size=(k, d)) + 1 for k in n]
    first, second = (jnp.array([f(p) for p in x]) for f in (lambda p: p.sum(0), lambda p: p.T @ p))
    return jnp.asarray(n, float), first, second


def scatter(k, d):
    a = RNG.normal(size=(k, d, d + 2))
    return jnp.asarray(a @ a.swapaxes(1, 2))


def wishart(k, share, d):
    dof = positive(share) + d + 1
    return NormalInverseWishart(
        jnp.asarray(RNG.normal(size=(k, d))), positive(k), dof, scatter(share, d)
    )


def diagonal(n, first, second):
    return jnp.broadcast_to(n[:, None], first.shape), first, jnp.einsum("kii->ki", second)


#: name -> (prior, statistics)
FAMILIES = {
    "dirichlet": (Dirichlet(positive(4, 3)), positive(4, 3) * 3),
    "dirichlet along 1 of 3": (Dirichlet(positive(2, 3, 2), axis=1), positive(2, 3, 2) * 3),
    "dirichlets of sizes": (Dirichlet(positive(6, 2), axis=0, sizes=(1, 2, 3)), positive(6, 2) * 3),
    "beta": (beta(positive(3), positive(3)), positive(2, 3) * 3),
    "normal-inverse-gamma": (
        NormalInverseGamma(jnp.asarray(RNG.normal(size=(3, 2))), *(positive(3, 2) for _ in "abc")),
        diagonal(*moments((4, 7, 5), 2)),
    ),
    "normal-inverse-wishart": (wishart(3, 3, 2), moments((4, 7, 5), 2)),
    "tied": (wishart(3, 1, 2), moments((4, 7, 5), 2)),
}
each = pytest.mark.parametrize("name", FAMILIES)
rules = pytest.mark.parametrize("rule", RULES)


def parts(f):
    """The simplices of a Dirichlet, each as rows of an array."""
    rows = jnp.moveaxis(f.concentration, f.axis, -1)
    return jnp.split(rows, np.cumsum(f.sizes)[:-1], -1) if f.sizes else [rows]


def simplices(f, probs):
    return parts(replace(f, concentration=probs))


@jax.jit
def log_density(f, values):
    """NumPyro's log-density of a family's own parameters, summed over the batch."""
    if isinstance(f, Dirichlet):
        pairs = zip(parts(f), simplices(f, values), strict=True)
        return sum(jnp.sum(dist.Dirichlet(c).log_prob(p)) for c, p in pairs if c.shape[-1] > 1)
    mean, spread = values
    if isinstance(f, NormalInverseGamma):
        normal = dist.Normal(f.mean, jnp.sqrt(spread / f.kappa)).log_prob(mean)
        return jnp.sum(dist.InverseGamma(f.shape, f.rate).log_prob(spread) + normal)
    normal = dist.MultivariateNormal(f.mean, spread / f.kappa[:, None, None]).log_prob(mean)
    whole = dist.InverseWishart(f.dof, scale_matrix=f.scale).log_prob(spread)
    return jnp.sum(whole) + jnp.sum(normal)


def coordinates(f):
    """Natural parameters, up to constant shifts: densities are exponential in their products."""
    if isinstance(f, Dirichlet):
        return f.concentration
    if isinstance(f, NormalInverseGamma):
        return f.kappa, f.kappa * f.mean, f.shape, f.rate + f.kappa * f.mean**2 / 2
    outer = f.kappa[:, None, None] * f.mean[:, :, None] * f.mean[:, None, :]
    return f.kappa, f.kappa[:, None] * f.mean, f.dof, f.scale + f._pool(outer)


def log_normaliser(f, eta):
    """Of the density whose natural parameters are ``eta``; ``f`` gives its kind."""
    if isinstance(f, Dirichlet):
        return sum(jnp.sum(jnp.sum(gammaln(c), -1) - gammaln(c.sum(-1))) for c in simplices(f, eta))
    kappa, moved, third, fourth = eta
    if isinstance(f, NormalInverseGamma):
        rate = fourth - moved**2 / kappa / 2
        return jnp.sum(gammaln(third) - third * jnp.log(rate) - jnp.log(kappa) / 2)
    d = moved.shape[-1]
    scale = fourth - f._pool(moved[:, :, None] * moved[:, None, :] / kappa[:, None, None])
    log_det = jnp.linalg.slogdet(scale)[1] - d * jnp.log(2.0)
    whole = multigammaln(third / 2, d) - third / 2 * log_det
    return jnp.sum(whole) - d / 2 * jnp.sum(jnp.log(kappa))


@jax.jit
def divergence(q, p):
    """KL(q || p) by Bregman: ``A(p) - A(q) - <dA(q), p - q>``."""
    at_q, at_p = coordinates(q), coordinates(p)
    step = jax.tree.map(jnp.subtract, at_p, at_q)
    here, slope = jax.jvp(lambda eta: log_normaliser(q, eta), (at_q,), (step,))
    return log_normaliser(q, at_p) - here - slope


@partial(jax.jit, static_argnames="rule")
def penalty(q, prior, rule):
    return jnp.sum(q.penalty(prior, rule)) + jnp.sum(prior.constant(rule))


@partial(jax.jit, static_argnames="rule")
def readings(f, rule, key=None):
    """What a likelihood makes of its parameters: log-probabilities, or logarithms of densities."""
    read = f.likelihood_params(rule, key)
    if isinstance(f, Dirichlet):
        return read
    x = jnp.linspace(-1.5, 1.5, 4)
    if isinstance(read, DiagonalGaussianParams):
        square = read.precision * (x[:, None, None] - read.mean) ** 2
        return (read.log_precision - read.spread - square) / 2
    gap = jnp.stack([x, x[::-1]], 1)[:, None, : f.mean.shape[1]] - read.mean
    square = jnp.sum(jnp.einsum("nkd,kde->nke", gap, _each(read.whiten, f)) ** 2, -1)
    return (read.log_det - read.spread - square) / 2


def _each(x, f):
    return jnp.broadcast_to(x, (len(f.mean), *x.shape[1:]))


@pytest.mark.slow
@each
def test_vb_penalty_is_the_divergence(name):
    prior, stats = FAMILIES[name]
    q = prior.posterior(stats, "vb")
    close(penalty(q, prior, "vb"), divergence(q, prior))
    assert penalty(q, prior, "vb") > 0.1
    close(penalty(prior, prior, "vb"), jnp.zeros(()))


@pytest.mark.parametrize("name", [n for n in FAMILIES if "wishart" not in n and n != "tied"])
def test_vb_penalty_is_numpyros_divergence(name):
    prior, stats = FAMILIES[name]
    q = prior.posterior(stats, "vb")
    if isinstance(prior, Dirichlet):
        pairs = [(a, b) for a, b in zip(parts(q), parts(prior), strict=True) if a.shape[-1] > 1]
        theirs = sum(jnp.sum(kl_divergence(*map(dist.Dirichlet, pair))) for pair in pairs)
    else:
        # the normal part is linear in the precision, whose expectation is shape / rate
        variance = q.rate / q.shape
        normals = (dist.Normal(f.mean, jnp.sqrt(variance / f.kappa)) for f in (q, prior))
        gammas = (dist.Gamma(f.shape, f.rate) for f in (q, prior))
        theirs = jnp.sum(kl_divergence(*normals)) + jnp.sum(kl_divergence(*gammas))
    close(penalty(q, prior, "vb"), theirs)


@pytest.mark.slow
@each
def test_map_penalty_is_numpyros_density(name):
    prior, stats = FAMILIES[name]
    q = prior.posterior(stats, "map")
    close(penalty(q, prior, "map"), -log_density(prior, q.mode))
    assert penalty(q, prior, "ml") == penalty(q, prior, "draw") == 0


@each
@rules
def test_penalties_differ_by_the_prior(name, rule):
    """Nothing is dropped: moving ``q`` moves the penalty as it moves the density or divergence."""
    prior, stats = FAMILIES[name]
    half = jax.tree.map(lambda s: s / 2, stats)
    gap = jnp.subtract(*(penalty(prior.posterior(s, "vb"), prior, rule) for s in (stats, half)))
    assert (gap == 0) == (rule == "ml")


@each
def test_the_mode_is_a_mode(name):
    prior, stats = FAMILIES[name]
    q = prior.posterior(stats, "map")
    if isinstance(q, Dirichlet):
        # along the simplex: multiply by exp(u) and divide by the sum
        def density(u):
            x = q.mode * jnp.exp(u)
            return log_density(q, x / q._spread(q._totals(x)))

        at = jnp.zeros_like(q.mode)
    else:

        def density(values):
            return log_density(q, values)

        at = q.mode
    best, slope = jax.jit(jax.value_and_grad(density))(at)
    close(slope, jax.tree.map(jnp.zeros_like, slope), atol=1e-8)
    noise = [jnp.asarray(RNG.normal(size=leaf.shape) * 1e-3) for leaf in jax.tree.leaves(at)]
    noise = [
        (z + z.swapaxes(-1, -2)) / 2 if z.ndim == 3 and name != "dirichlet along 1 of 3" else z
        for z in noise
    ]
    moved = jax.tree.unflatten(jax.tree.structure(at), noise)
    assert density(jax.tree.map(jnp.add, at, moved)) < best


@pytest.mark.slow
@each
@pytest.mark.parametrize("rule", ["ml", "map"])
def test_point_estimates_read_the_mode(name, rule):
    prior, stats = FAMILIES[name]
    q = prior.posterior(stats, rule)
    if isinstance(q, Dirichlet):
        close(jnp.exp(q.likelihood_params(rule)), q.mode)
        close(q._totals(q.mode), jnp.ones_like(q._totals(q.mode)))
        return
    x, (mean, spread) = jnp.linspace(-1.5, 1.5, 4), q.mode
    if isinstance(q, NormalInverseGamma):
        theirs = dist.Normal(mean, jnp.sqrt(spread)).log_prob(x[:, None, None])
    else:
        at = jnp.stack([x, x[::-1]], 1)[:, None, : mean.shape[1]]
        theirs = dist.MultivariateNormal(mean, spread).log_prob(at)
    d = 1 if isinstance(q, NormalInverseGamma) else mean.shape[1]
    close(readings(q, rule) - d / 2 * jnp.log(2 * jnp.pi), theirs)


@pytest.mark.slow
@each
def test_expectations_are_those_of_draws(name, key):
    prior, stats = FAMILIES[name]
    q = prior.posterior(stats, "vb")
    n = 10_000
    draws = jax.jit(jax.vmap(lambda k: readings(q, "draw", k)))(jax.random.split(key, n))
    error = jnp.std(draws, 0) / n**0.5
    assert (jnp.abs(jnp.mean(draws, 0) - readings(q, "vb")) <= 5 * error + 1e-12).all()
    assert (error < 0.1).all()
    assert (jnp.std(draws, 0) > 1e-3).mean() > 0.8  # all but simplices of one


@each
def test_maximum_likelihood_ignores_the_prior(name):
    prior, stats = FAMILIES[name]
    other = jax.tree.map(lambda x: 1.7 * x + 0.3 if x.ndim < 3 else 1.7 * x, prior)
    close(prior.posterior(stats, "ml"), other.posterior(stats, "ml"))
    mode = prior.posterior(stats, "ml").mode
    if isinstance(prior, Dirichlet):
        close(mode, stats / prior._spread(prior._totals(stats)))
        return
    n, first, second = stats
    if isinstance(prior, NormalInverseGamma):
        close(mode, (first / n, second / n - (first / n) ** 2))
        return
    mean = first / n[:, None]
    within = second - n[:, None, None] * mean[:, :, None] * mean[:, None, :]
    close(mode, (mean, prior._pool(within) / prior._pool(n)[:, None, None]))


@each
@rules
def test_no_data_at_all_is_finite(name, rule):
    prior, stats = FAMILIES[name]
    nothing = jax.tree.map(jnp.zeros_like, stats)
    some = jax.tree.map(lambda s: s.at[0].set(0), stats)
    for counts in (nothing, some):
        q = prior.posterior(counts, rule)
        for leaf in (*jax.tree.leaves(q), readings(q, rule), penalty(q, prior, rule)):
            assert jnp.isfinite(leaf).all()
    if rule != "ml":
        close(prior.posterior(nothing, rule), prior)


@each
@rules
def test_coordinates_go_round(name, rule):
    prior, stats = FAMILIES[name]
    q = prior.posterior(stats, rule)
    close(q.constrain(q.free(rule), rule), q)


@each
@rules
def test_every_coordinate_is_a_valid_point(name, rule):
    prior, stats = FAMILIES[name]
    q = prior.posterior(stats, rule)
    noise = np.random.default_rng(1)
    # under ml a count may vanish, and leave a variance to overflow, which the driver refuses
    for size in (0.1,) if rule == "ml" else (0.1, 3.0):
        moved = jax.tree.map(lambda x, s=size: x + s * noise.normal(size=x.shape), q.free(rule))
        there = q.constrain(moved, rule)
        assert jax.tree.structure(there) == jax.tree.structure(q)
        for leaf in (*jax.tree.leaves(there), readings(there, rule), penalty(there, prior, rule)):
            assert jnp.isfinite(leaf).all()


@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "normal-inverse-gamma"])
def test_posteriors_add_up(name):
    """Two updates with half the data are one with all of it (the Gaussian ones to rounding)."""
    prior, stats = FAMILIES[name]
    half = jax.tree.map(lambda s: s / 2, stats)
    close(prior.posterior(half, "vb").posterior(half, "vb"), prior.posterior(stats, "vb"))
