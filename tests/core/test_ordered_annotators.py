"""Graders on an ordered scale: rates, modes that are climbed to, EM, densities and draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from scipy import stats

from nbmodels.channels import OrderedAnnotators
from nbmodels.channels import graded_response as graded
from nbmodels.channels.ordered_annotators import POINTS
from nbmodels.class_priors import Proportions
from nbmodels.core import model as m

W, L = 4, 5
C = POINTS * L


def parameters(rng, n=W):
    return jnp.asarray(rng.normal([0, -0.7, 0, -3], [0.7, 0.5, 0.5, 1], (n, 4)))


def scale(rng):
    return graded.Scale.of(jnp.asarray(rng.normal(0, 0.3, L)), POINTS)


def counts_of(rng, theta, its, each=40.0):
    """Votes on items of known scores."""
    rows = np.asarray(graded.rates(theta, its), float)
    out = np.zeros_like(rows)
    for w, c in np.ndindex(len(rows), rows.shape[2]):
        out[w, :, c] = rng.multinomial(rng.poisson(each), rows[w, :, c] / rows[w, :, c].sum())
    return jnp.asarray(out)


def test_rates_are_distributions_and_their_slopes_are_derivatives():
    rng = np.random.default_rng(0)
    theta, its = parameters(rng), scale(rng)
    found = graded.rates(theta, its)
    assert found.shape == (W, L, C)
    np.testing.assert_allclose(found.sum(1), 1)
    own = jax.vmap(jax.jacfwd(lambda row: graded.rates(row[None], its)[0]))(theta)
    np.testing.assert_allclose(graded._slopes(theta, its), own, atol=1e-12)
    # a stricter annotator names lower grades
    strict = theta.at[:, graded.SEVERITY].add(1.0)
    mean = jnp.arange(L) @ (found - graded.rates(strict, its))
    assert (mean > 0).all()


def test_scores_lie_within_their_classes():
    its = scale(np.random.default_rng(1))
    between = np.searchsorted(its.thresholds, its.scores)
    np.testing.assert_array_equal(between, np.repeat(np.arange(L), POINTS))


@pytest.mark.parametrize("seed", range(4))
def test_steps_never_fall_and_end_where_the_slope_is_zero(seed):
    """From anywhere, also for annotators who use the ends alone."""
    rng = np.random.default_rng(seed)
    its, prior = scale(rng), jnp.asarray([0.0, -0.7, 0.0, -3.0])
    counts = counts_of(rng, parameters(rng), its)
    ends = jnp.zeros_like(counts[:1]).at[0, 0, : C // 2].set(9.0).at[0, -1, C // 2 :].set(9.0)
    counts = jnp.concatenate([counts, ends, jnp.zeros_like(ends)])
    n = len(counts)
    mean, precision = jnp.tile(prior, (n, 1)), jnp.tile(jnp.eye(4), (n, 1, 1))

    @jax.jit
    def density(theta):
        return graded.log_likelihood(theta, counts, its) - 0.5 * jnp.sum((theta - mean) ** 2, 1)

    at = mean + 2 * jnp.asarray(rng.normal(size=(n, 4)))
    for _ in range(60):
        before, at = density(at), graded.likeliest(at, counts, mean, precision, its).mean
        assert (density(at) >= before - 1e-9).all()
    slope = jax.jit(jax.grad(lambda theta: density(theta).sum()))(at)
    np.testing.assert_allclose(slope, 0, atol=1e-4)
    np.testing.assert_allclose(at[-1], prior)  # without votes the prior's


def crowd(rng, n=120, ends=0, per=3):
    """Votes as counts: ``(N, W, L)``, by graders of whom the first few use the ends alone."""
    z, w = rng.normal(size=n), 6
    thresholds = np.array([-1.3, -0.4, 0.4, 1.3])
    severity, size = rng.normal(0, 0.5, w), rng.uniform(0.3, 0.8, w)
    votes = np.zeros((n, w, L))
    for i in range(n):
        for j in rng.choice(w, per, replace=False):
            seen = z[i] - severity[j] + size[j] * rng.normal()
            label = (L - 1) * (seen > 0) if j < ends else np.digitize(seen, thresholds)
            votes[i, j, int(label)] = 1
    return votes, np.digitize(z, thresholds)


@pytest.mark.parametrize("ends", [0, 2])
def test_em_is_monotone(ends):
    votes, _ = crowd(np.random.default_rng(ends), ends=ends)
    model = {m.PRIOR: Proportions.of(C), "votes": OrderedAnnotators.of(6, C, L)}
    data = m.Data({m.PRIOR: None, "votes": OrderedAnnotators.pack(votes)}, jnp.ones(len(votes)))
    q = m.start(model, m.initial_responsibilities(model, data), data, "map")
    step, reached = jax.jit(m.step("map")), []
    for _ in range(80):
        q, value = step(q, (model, data))
        reached.append(float(value.value))
    assert (np.diff(reached) > -1e-8).all()
    assert reached[-1] - reached[0] > 2


def test_an_unknown_annotator_is_the_mean_of_the_prior():
    channel = OrderedAnnotators.of(3, C, L)
    theta = channel.likelihood_params(OrderedAnnotators.of(4000, C, L).prior, "draw", KEY)
    np.testing.assert_allclose(
        channel.of_unknown("map"), graded.rates(theta, channel.scale).mean(0), atol=0.02
    )


KEY = jax.random.key(0)


@pytest.mark.slow
def test_learned_priors_are_those_that_annotators_were_drawn_from():
    rng = np.random.default_rng(0)
    n, its = 300, graded.Scale.of(jnp.asarray([0.3, -0.3, 0.0, 0.2, -0.2]), POINTS)
    theta = jnp.asarray(rng.normal([0, -0.4, 0, -2.5], [0.8, 0.3, 0.4, 0.5], (n, 4)))
    counts = counts_of(rng, theta, its, 8.0)
    channel = OrderedAnnotators.of(n, C, L)

    @jax.jit
    def again(channel):
        stats = counts, counts.sum((1, 2))[:, None] * channel.prior.mean
        return channel.pooled(channel.update(stats, "map"), "map")

    for _ in range(10):
        channel = again(channel)
    spread = np.diag(channel.prior.precision[0]) ** -0.5
    np.testing.assert_allclose(spread[:3], [0.8, 0.3, 0.4], rtol=0.2)
    np.testing.assert_allclose(channel.prior.mean[0, 1], -0.4, atol=0.1)
    np.testing.assert_allclose(channel.log_widths, [0.3, -0.3, 0.0, 0.2, -0.2], atol=0.1)


def test_a_deleted_vote_has_the_probability_of_a_fit_without_it():
    rng = np.random.default_rng(2)
    channel = OrderedAnnotators.of(W, C, L)
    counts = counts_of(rng, parameters(rng), channel.scale, 3.0)
    prior = channel.prior

    @jax.jit
    def fitted(cast):
        own = cast, prior.mean, prior.precision, channel.scale
        at = jax.lax.fori_loop(0, 30, lambda _, at: graded.likeliest(at, *own).mean, prior.mean)
        return channel.update((cast, cast.sum((1, 2))[:, None] * at), "map")

    whole = fitted(counts)
    logs = np.asarray(graded.log_rates(whole.mean, channel.scale))
    exact, quick, plain = [], [], []
    for w, label, c in zip(*np.nonzero(np.asarray(counts)), strict=True):
        if len(exact) == 40:
            break
        resp = np.eye(C)[[c]]
        quick.append(channel.deleted(whole, np.array([w]), np.array([label]), resp)[0, c])
        left = fitted(counts.at[w, label, c].add(-1.0))
        exact.append(float(graded.log_rates(left.mean, channel.scale)[w, label, c]))
        plain.append(logs[w, label, c])
    exact, quick, plain = map(np.array, (exact, quick, plain))
    assert (plain - exact).mean() > 0.01  # a vote makes itself likelier
    assert np.abs(quick - exact).mean() < 0.4 * np.abs(plain - exact).mean()


# Draws --------------------------------------------------------------------------------------------


def drawn_channel(counts, rng):
    channel = OrderedAnnotators.of(W, C, L)
    return channel.for_draws(channel.update((counts, 0 * channel.prior.mean), "map"))


def test_the_density_of_draws_is_numpyros():
    """Of parameters given votes on items of known scores, by NumPyro's ordered distribution."""
    rng = np.random.default_rng(0)
    theta = parameters(rng)
    counts = counts_of(rng, theta, graded.Scale.of(jnp.zeros(L), POINTS), 2.0)
    channel, q = drawn_channel(counts, rng)

    def program(theta):
        natural = channel.values(theta)
        sites = {f"n_{one}": natural[one] for one in ("severity", "scale", "range", "lapse")}
        seeded = handlers.substitute(handlers.seed(channel.sites, 0), sites)
        trace = handlers.trace(seeded).get_trace("n")
        prior = sum(trace[site]["fn"].log_prob(value) for site, value in sites.items())
        rows = jnp.swapaxes(channel._transitions(natural), 1, 2)
        jacobian = jnp.sum(theta[:, 1] + theta[:, 2])
        lapse = natural["lapse"]
        jacobian += jnp.sum(jnp.log(lapse) + jnp.log1p(-lapse))
        return prior + jnp.sum(counts * jnp.log(rows)) + jacobian

    given = [parameters(rng) for _ in range(5)]
    theirs, ours = (
        [float(jax.jit(of)(one)) for one in given]
        for of in (program, lambda one: q._log_density(one).sum())
    )
    np.testing.assert_allclose(np.subtract(ours, ours[0]), np.subtract(theirs, theirs[0]), 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("wrong_prior", [False, True])
def test_ranks_of_severities_are_uniform(wrong_prior):
    """Simulation-based calibration with known scores; a prior that is too wide fails."""
    sets, kept, thin = 200, 19, 10
    rng = np.random.default_rng(3)
    channel = OrderedAnnotators.of(W, C, L)
    mean = np.asarray(channel.prior.mean[0])
    spread = np.diag(np.asarray(channel.prior.precision[0])) ** -0.5 * (2.0 if wrong_prior else 1.0)
    theta = rng.normal(mean, spread, (sets, W, 4))
    counts = np.stack([counts_of(rng, jnp.asarray(one), channel.scale, 0.5) for one in theta])

    @jax.jit
    @jax.vmap
    def drawn(counts, key):
        _, q = channel.for_draws(channel.update((counts, 0 * channel.prior.mean), "map"))

        def sweep(theta, key):
            here = q.posterior((counts, theta), "draw").likelihood_params("draw", key)
            return here, here[0]

        keys = jax.random.split(key, thin * (kept + 10))
        return jax.lax.scan(sweep, q.theta, keys)[1]

    found = np.asarray(drawn(jnp.asarray(counts), jax.random.split(KEY, sets)))
    found = found[:, ::thin][:, -kept:]
    where = (found < theta[:, None, 0]).sum(1)
    p = [stats.chisquare(np.bincount(w // 2, minlength=10)).pvalue for w in where.T]
    assert (min(p) < 1e-4) if wrong_prior else (min(p) > 0.005)
