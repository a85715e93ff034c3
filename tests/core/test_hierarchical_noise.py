"""The hierarchical noise matrix: its draws against NumPyro's program and simulated truths."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln, logit
from numpyro import handlers
from scipy import stats

from nbmodels import NoisyBernoulliNB
from nbmodels.channels import HierarchicalTransition, OneCoinAnnotators, PooledTransition
from nbmodels.channels.one_coin_matrices import (
    likeliest_accuracy,
    likeliest_strength,
    one_coin,
)
from nbmodels.channels.one_coin_votes import OneCoinVotes, _log_beta
from nbmodels.channels.pooled_annotators import PooledVotes
from nbmodels.core.families import Dirichlet
from nbmodels.posterior.sampling import about_mode

K = 3

#: Means and sizes of a distribution of accuracies.
WHERE = ((0.7, 3.0), (0.5, 1.0), (0.9, 20.0), (0.3, 8.0), (0.6, 0.5))


def hierarchical(counts=None):
    """The channel, and its posterior given counts of labels whose true classes are known."""
    pooled = PooledTransition.of(K)
    counts = jnp.zeros((K, K)) if counts is None else jnp.asarray(counts, float)
    q = Dirichlet(pooled.prior.concentration + counts)
    return pooled.for_draws(q)


def test_concentrations_have_numpyros_density():
    """Rows integrated out, the density of the concentrations is that of the program's sites."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 40, (K, K))
    channel, q = hierarchical(counts)
    given = dict(zip(("right", "others"), rng.gamma(2, 20, (2, 5)), strict=True))

    def program(right, others):
        rows = jnp.full((K, K), 1 / K)
        sites = {"n_right": right, "n_others": others, "n_transition": rows}
        trace = handlers.trace(handlers.substitute(handlers.seed(channel.sites, 0), sites))
        found = trace.get_trace("n")
        prior = sum(
            found[f"n_{s}"]["fn"].log_prob(v) for s, v in (("right", right), ("others", others))
        )
        at = found["n_transition"]["fn"].base_dist.concentration
        whole = at.sum(1)
        marginal = jnp.sum(gammaln(counts + at) - gammaln(at)) - jnp.sum(
            gammaln(counts.sum(1) + whole) - gammaln(whole)
        )
        return prior + marginal + jnp.log(right) + jnp.log(others)

    theirs = [program(r, o) for r, o in zip(given["right"], given["others"], strict=True)]
    ours = [
        q._log_density(jnp.log(jnp.stack([r, o / (K - 1)])))
        for r, o in zip(given["right"], given["others"], strict=True)
    ]
    np.testing.assert_allclose(
        np.subtract(ours, ours[0]), np.subtract(theirs, theirs[0]), rtol=1e-5
    )


def chain(q, key, n):
    """``n`` sweeps of the concentrations and rows given the counts."""

    def sweep(log_pseudo, key):
        drawn = q.posterior((q.counts, log_pseudo), "draw").likelihood_params("draw", key)
        return drawn["log_pseudo"], (drawn["log_pseudo"], jnp.exp(drawn["rows"]))

    return jax.lax.scan(sweep, q.log_pseudo, jax.random.split(key, n))[1]


@pytest.mark.slow
@pytest.mark.parametrize("wrong_shape", [False, True])
def test_ranks_of_the_truth_are_uniform(wrong_shape):
    """Simulation-based calibration, with known true classes; a wrong prior has other ranks."""
    sets, kept, thin = 300, 19, 10
    rng = np.random.default_rng(1)
    channel, _ = hierarchical()
    shapes = np.asarray(channel.prior.shapes) * (4 if wrong_shape else 1)
    right, others = rng.gamma(shapes, 50.0, (sets, 2)).T
    concentration = np.where(np.eye(K), right[:, None, None], others[:, None, None] / (K - 1))
    gammas = rng.gamma(concentration) + 1e-300
    rows = gammas / gammas.sum(2, keepdims=True)
    counts = np.stack([[rng.multinomial(30, row) for row in one] for one in rows])

    @jax.jit
    @jax.vmap
    def drawn(counts, key):
        q = channel.prior.posterior((counts, channel.prior.log_pseudo), "draw")
        log_pseudo, found = chain(q, key, thin * (kept + 5))
        out = jnp.stack([log_pseudo[:, 0], found[:, 0, 0], found[:, 1, 2], found[:, 2, 0]], 1)
        return out[::thin][-kept:]

    keys = jax.random.split(jax.random.key(0), sets)
    found = np.asarray(drawn(jnp.asarray(counts, float), keys))
    truth = np.stack([np.log(right), rows[:, 0, 0], rows[:, 1, 2], rows[:, 2, 0]], 1)
    where = (found < truth[:, None]).sum(1)
    p = [stats.chisquare(np.bincount(w // 2, minlength=10)).pvalue for w in where.T]
    assert (min(p) < 1e-4) if wrong_shape else (min(p) > 0.005)


@pytest.mark.slow
@pytest.mark.parametrize("wrong_rate", [False, True])
def test_ranks_of_annotators_are_uniform(wrong_rate):
    """The same for a prior that annotators share."""
    sets, kept, thin, n_annotators, k = 200, 19, 20, 6, 2
    rng = np.random.default_rng(2)
    pseudo = rng.gamma(0.5, 20.0 * (4 if wrong_rate else 1), (sets, k, k)) + 1e-6
    gammas = rng.gamma(np.repeat(pseudo[:, None], n_annotators, 1)) + 1e-300
    rows = gammas / gammas.sum(2, keepdims=True)  # (sets, annotators, observed, true)
    counts = np.stack(
        [[np.stack([rng.multinomial(8, a[:, c]) for c in range(k)], 1) for a in s] for s in rows]
    )

    @jax.jit
    @jax.vmap
    def drawn(counts, key):
        q = PooledVotes(counts, jnp.zeros((k, k)))

        def sweep(log_pseudo, key):
            here = q.posterior((counts, log_pseudo), "draw").likelihood_params("draw", key)
            values = jnp.stack([here["log_pseudo"][0, 0], here["log_pseudo"][1, 0]])
            return here["log_pseudo"], jnp.concatenate([values, jnp.exp(here["logs"][0, 0])])

        return jax.lax.scan(sweep, q.log_pseudo, jax.random.split(key, thin * (kept + 5)))[1]

    keys = jax.random.split(jax.random.key(0), sets)
    found = np.asarray(drawn(jnp.asarray(counts, float), keys))[:, ::thin][:, -kept:]
    truth = np.stack([np.log(pseudo[:, 0, 0]), np.log(pseudo[:, 1, 0]), *rows[:, 0, 0].T], 1)
    where = (found < truth[:, None]).sum(1)
    p = [stats.chisquare(np.bincount(w // 2, minlength=10)).pvalue for w in where.T]
    assert (min(p) < 1e-4) if wrong_rate else (min(p) > 0.005)


@pytest.mark.slow
@pytest.mark.parametrize("wrong_prior", [False, True])
def test_ranks_of_accuracies_are_uniform(wrong_prior):
    """The same for annotators around matrices of their own accuracy."""
    sets, kept, thin, n_annotators, k, strength = 200, 19, 10, 5, 3, 5.0
    pseudo = np.array([2.0, 1.0])
    rng = np.random.default_rng(3)
    mean = rng.beta(*(pseudo[::-1] if wrong_prior else pseudo), sets)
    size = rng.lognormal(np.log(pseudo.sum()), 1.0, sets)
    shapes = size * np.maximum([mean, 1 - mean], 1e-9)
    accuracy = np.clip(rng.beta(*shapes[..., None], (sets, n_annotators)), 1e-6, 1 - 1e-6)
    around = strength * np.where(
        np.eye(k), accuracy[..., None, None], (1 - accuracy[..., None, None]) / (k - 1)
    )
    gammas = rng.gamma(np.maximum(around, 1e-4)) + 1e-300
    rows = gammas / gammas.sum(2, keepdims=True)  # (sets, annotators, observed, true)
    counts = np.stack(
        [[np.stack([rng.multinomial(6, a[:, c]) for c in range(k)], 1) for a in s] for s in rows]
    )

    @jax.jit
    @jax.vmap
    def drawn(counts, key):
        begin = jnp.zeros(n_annotators), jnp.array([0.5, 1.0])
        q = OneCoinVotes(counts, *begin, jnp.asarray(strength), jnp.asarray(pseudo))

        def sweep(at, key):
            here = q.posterior((counts, *at), "draw").likelihood_params("draw", key)
            values = [jnp.exp(here["logs"][0, 0]), here["logit"][:1], here["crowd"]]
            return (here["logit"], here["crowd"]), jnp.concatenate(values)

        return jax.lax.scan(sweep, begin, jax.random.split(key, thin * (kept + 5)))[1]

    keys = jax.random.split(jax.random.key(0), sets)
    found = np.asarray(drawn(jnp.asarray(counts, float), keys))[:, ::thin][:, -kept:]
    truth = np.stack([*rows[:, 0, 0].T, logit(accuracy[:, 0]), logit(mean), np.log(size)], 1)
    where = (found < truth[:, None]).sum(1)
    p = [stats.chisquare(np.bincount(w // 2, minlength=10)).pvalue for w in where.T]
    assert (min(p) < 1e-4) if wrong_prior else (min(p) > 0.005)


def test_the_accuracies_density_is_numpyros():
    """Matrices integrated out, the density of the accuracies is that of the program's sites."""
    rng = np.random.default_rng(0)
    counts = jnp.asarray(rng.integers(0, 9, (2, K, K)), float)
    fitted = OneCoinAnnotators.of(2, K)
    channel, q = fitted.for_draws(Dirichlet(fitted.prior.concentration + counts, axis=1))

    @jax.jit
    def program(accuracy, mean, size):
        rows = jnp.full((2, K, K), 1 / K)
        numbers = {"accuracy": accuracy, "crowd_accuracy": mean, "crowd_pseudo_votes": size}
        sites = {"n_transitions": rows} | {f"n_{site}": at for site, at in numbers.items()}
        found = handlers.trace(
            handlers.substitute(handlers.seed(channel.sites, 0), sites)
        ).get_trace("n")
        at = jnp.swapaxes(found["n_transitions"]["fn"].base_dist.concentration, 1, 2)
        marginal = jnp.sum(gammaln(counts + at) - gammaln(at)) - jnp.sum(
            gammaln(counts.sum(1) + at.sum(1)) - gammaln(at.sum(1))
        )
        prior = sum(found[f"n_{site}"]["fn"].log_prob(at) for site, at in numbers.items())
        volume = jnp.log(accuracy) + jnp.log1p(-accuracy)
        return prior + marginal + volume.sum() + jnp.log(mean * (1 - mean) * size)

    @jax.jit
    def density(accuracy, mean, size):
        crowd = jnp.stack([logit(mean), jnp.log(size)])
        at = replace(q, logit=logit(accuracy))
        # the accuracies' prior is part of both
        both = jnp.sum(at._log_density(at.logit, crowd)) + at._log_density_of_crowd(crowd)
        return both - jnp.sum(_log_beta(at.logit, crowd))

    given = [(a, *rest) for a, rest in zip(rng.uniform(0.1, 0.9, (5, 2)), WHERE, strict=True)]
    theirs = [program(*one) for one in given]
    ours = [density(*one) for one in given]
    np.testing.assert_allclose(
        np.subtract(ours, ours[0]), np.subtract(theirs, theirs[0]), rtol=1e-5, atol=1e-5
    )


def test_the_likeliest_accuracies_have_no_slope():
    rng = np.random.default_rng(0)
    counts = jnp.asarray(rng.gamma(1.0, 4.0, (6, K, K)))
    pseudo = jnp.asarray([2.0, 1.0])
    found = likeliest_accuracy(counts, 5.0, pseudo)
    here = logit(found)
    crowd = jnp.log(jnp.array([2.0, 3.0]))  # the same Beta distribution
    q = OneCoinVotes(counts, here, crowd, jnp.asarray(5.0), pseudo)
    density = jax.jit(lambda at: q._log_density(at, crowd))
    slope = jax.jit(jax.grad(lambda at: jnp.sum(q._log_density(at, crowd))))
    np.testing.assert_allclose(slope(here), 0, atol=1e-4)
    for step in (-0.05, 0.05):
        assert (density(here + step) < density(here)).all()


@pytest.mark.slow
def test_draws_begin_at_the_concentrations_learned():
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=300)
    x = (rng.random((300, 12)) < rng.random((K, 12))[y]).astype(int)
    given = np.where(rng.random(300) < 0.2, rng.integers(K, size=300), y)
    fitted = NoisyBernoulliNB(random_state=0).fit(x, given)
    assert fitted.fitted_.settings["noise"] == "pooled"
    fit = about_mode(fitted.fitted_.posterior_targets[0].fit)
    channel = fit.model["labels"]
    assert isinstance(channel, HierarchicalTransition)
    learned = np.asarray(fitted.fit_.model["labels"].prior.concentration) - 1
    np.testing.assert_allclose(np.exp(fit.params["labels"].log_pseudo), learned[0, :2], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("optimised")
def test_gibbs_is_nuts():
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=300)
    x = (rng.random((300, 12)) < rng.random((K, 12))[y]).astype(int)
    given = np.where(rng.random(300) < 0.3, rng.integers(K, size=300), y)
    # one form: where it is not given, some draws by Gibbs sampling are of a full matrix
    fitted = NoisyBernoulliNB(noise="pooled", random_state=0).fit(x, given)
    more = {"nuts": {"target_accept": 0.95}}  # the concentration has a narrow neck
    methods = ("gibbs", "nuts")
    found = [fitted.posterior(m, draws=1000, chains=2, **more.get(m, {})) for m in methods]
    for name, scale in (("noise_matrix", 0.004), ("class_prior", 0.02)):
        if name in found[0]["posterior"]:
            mean, sd = (
                [f["posterior"][name].mean(("chain", "draw")) for f in found],
                [f["posterior"][name].std(("chain", "draw")) for f in found],
            )
            np.testing.assert_allclose(*mean, atol=scale)
            np.testing.assert_allclose(*sd, rtol=0.2, atol=scale)


@pytest.mark.parametrize(
    ("rows", "low", "high"),
    [
        (60.0, 30.0, 200.0),  # rows of one accuracy, nearly
        (1.0, 5.0, 5.0),  # rows that differ more than the least strength says
    ],
)
def test_annotators_are_drawn_to_one_accuracy_as_far_as_they_are_alike(rows, low, high):
    rng = np.random.default_rng(0)
    w, k, votes = 80, 3, 20
    accuracy = rng.uniform(0.6, 0.9, w)
    centre = np.where(
        np.eye(k, dtype=bool), accuracy[:, None, None], (1 - accuracy)[:, None, None] / 2
    )
    drawn = rng.gamma(rows * centre)
    counts = rng.multinomial(votes, np.moveaxis(drawn / drawn.sum(1, keepdims=True), 1, 2))
    found = likeliest_strength(
        jnp.asarray(accuracy), jnp.asarray(np.moveaxis(counts, 2, 1), float), 5.0
    )
    assert low - 1e-6 <= found <= high + 1e-6


def test_a_class_without_votes_keeps_annotators_apart():
    """What a frequent class shows of itself is not what a rare one is like."""
    counts = np.zeros((50, 2, 2))
    counts[:, 0, 0], counts[:, 1, 0], counts[:, 1, 1] = 95, 5, 1
    accuracy = jnp.full(50, 0.95)
    assert likeliest_strength(accuracy, jnp.asarray(counts), 5.0) == 5


def drawn_votes(centres, strength, votes, rng):
    """``(W, observed, K)`` votes of annotators with rows around ``centres``."""
    rows = rng.gamma(strength * np.maximum(centres, 1e-9)) + 1e-12
    rows = np.moveaxis(rows / rows.sum(1, keepdims=True), 1, 2)
    return jnp.asarray(np.moveaxis(rng.multinomial(votes, rows), 2, 1), float)


def test_classes_of_few_votes_are_judged_together():
    """Of twenty classes with a vote an annotator none shows how alike they are, and all do."""
    rng = np.random.default_rng(0)
    w, k = 40, 20
    accuracy = rng.uniform(0.4, 0.7, w)
    counts = drawn_votes(one_coin(accuracy, np.eye(k, dtype=bool)), 200.0, 2, rng)
    alone = [
        likeliest_strength(jnp.asarray(accuracy), jnp.where(np.arange(k) == c, counts, 0), 5.0)
        for c in range(3)
    ]
    together = likeliest_strength(jnp.asarray(accuracy), counts, 5.0)
    assert min(alone) == 5
    assert together > 30


@pytest.mark.parametrize("shared", [True, False])
def test_errors_are_the_crowds_where_they_predict_each_annotators(shared):
    rng = np.random.default_rng(1)
    w, k = 30, 12
    accuracy = rng.uniform(0.5, 0.7, w)
    to = np.full(w, 1) if shared else rng.integers(1, k, w)  # how far from the class they err
    errors = np.stack([np.roll(np.eye(k), t, 0) for t in to])
    counts = drawn_votes(one_coin(accuracy, np.eye(k, dtype=bool), errors), 50.0, 4, rng)
    channel = OneCoinAnnotators.of(w, k)
    found = channel.pooled(channel.update(counts, "map"), "map")
    learned = np.asarray(found.errors)
    np.testing.assert_allclose(learned.sum(0), 1, rtol=1e-5)
    assert (np.diagonal(learned) == 0).all()
    if shared:
        assert (learned.argmax(0) == (np.arange(k) + 1) % k).all()
    else:
        np.testing.assert_allclose(learned[~np.eye(k, dtype=bool)], 1 / (k - 1), rtol=1e-5)
    prior = np.asarray(found.prior.concentration) - 1
    around = one_coin(np.full(1, 0.6), np.eye(k, dtype=bool), learned)[0]
    assert np.corrcoef(prior.mean(0).ravel(), around.ravel())[0, 1] > 0.99


def test_fits_begin_the_nearer_to_one_accuracy_the_fewer_the_votes():
    channel = OneCoinAnnotators.of(10, 5)
    many, few = channel.learning_from(10_000), channel.learning_from(100)
    assert float(many.strength) == 5
    assert float(few.strength) == pytest.approx(40)
    assert float(few.least_strength) == 5
    sums = np.asarray(few.prior.concentration - 1).sum(1)
    np.testing.assert_allclose(sums, 40, rtol=1e-5)
    # 60 votes a cell are many, be they of two annotators of two classes
    assert float(OneCoinAnnotators.of(2, 2).learning_from(480).strength) == 5
    assert float(channel.learning_from(3_000).strength) == pytest.approx(10)
