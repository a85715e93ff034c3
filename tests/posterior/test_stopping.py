"""Chains that stop by themselves: when they do, that they repeat, and that intervals agree."""

import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference import gibbs as sampler
from inference.convergence import convergence
from nbmodels import NoisyGaussianNB
from nbmodels.errors import DataError, PosteriorWarning
from nbmodels.posterior.options import check_sizes


def walk(persistence):
    """A sweep that is an autoregression with unit variance."""

    def of(state, data, key):
        noise = jnp.sqrt(1 - persistence**2) * jax.random.normal(key, state.shape)
        return persistence * state + noise, {"x": state}, state

    return of


QUICK, MIDDLING, SLOW = walk(0.0), walk(0.5), walk(0.97)
STARTS = [jnp.full(3, at, float) for at in (-2.0, -0.5, 0.5, 2.0)]


def everything(stored):
    return [sampler.Watch(stored["x"])]


def run(sweep, seed=0, starts=STARTS, **options):
    return sampler.sample_until(
        sweep, starts, None, jax.random.key(seed), **{"watched": everything, **options}
    )


def test_chains_stop_where_all_is_known():
    swept = []
    out = run(QUICK, report=swept.append)
    rule = sampler.Stopping()
    assert out.warmup == 100
    assert rule.least <= out.stored["x"].shape[1] < rule.most
    found = convergence(out.stored["x"])
    assert found.rhat <= rule.rhat
    assert min(found.bulk, found.tail) >= rule.ess
    assert sum(swept) == 4 * (out.warmup + out.stored["x"].shape[1] * out.stride)
    np.testing.assert_allclose(np.mean(out.mean), 0, atol=4 / np.sqrt(3 * found.bulk))


def test_slow_chains_run_longer_and_store_few():
    rule = sampler.Stopping()
    out = run(SLOW)
    taken = out.stored["x"].shape[1] * out.stride
    assert out.warmup > 100
    assert rule.least < taken <= rule.most
    assert out.stride > 1
    assert rule.stored / 2 <= out.stored["x"].shape[1] <= rule.stored


def test_a_smaller_share_of_effective_draws_is_enough():
    """The chains stop once the slow quantity has the share that it needs."""
    taken, slow = {}, walk(0.8)
    for share in (1.0, 0.25):
        out = run(slow, watched=lambda stored, share=share: [sampler.Watch(stored["x"], share)])
        taken[share] = out.stored["x"].shape[1] * out.stride
        found = convergence(out.stored["x"])
        assert found.rhat - 1 < 0.012 / share
        assert min(found.bulk, found.tail) > 300 * share
    assert taken[0.25] < 0.6 * taken[1.0]


def test_chains_do_not_depend_on_the_number_of_threads(monkeypatch):
    one, _ = run(MIDDLING), monkeypatch.setattr("inference.threads._n_cores", lambda: 1)
    np.testing.assert_array_equal(one.stored["x"], run(MIDDLING).stored["x"])


def test_most_draws_are_the_end():
    """Chains that stay where they begin never mix."""
    stuck = run(walk(1.0), stopping=sampler.Stopping(warmup=100, most=400))
    assert stuck.warmup == 100
    assert stuck.stored["x"].shape[1] == 400


def test_same_key_same_draws():
    one, again, other = run(QUICK), run(QUICK), run(QUICK, seed=1)
    np.testing.assert_array_equal(one.stored["x"], again.stored["x"])
    assert not np.array_equal(one.stored["x"][:, :100], other.stored["x"][:, :100])


def test_one_program_for_all_blocks():
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    )

    def blocks(sweep):
        run(sweep)
        run(sweep, seed=3)
        sampler.sample(sweep, STARTS, None, jax.random.key(0), draws=50)

    blocks(walk(0.5))  # and what is the same for all sweeps
    compiled.clear()
    blocks(walk(0.5))
    assert len(compiled) == 1


def test_ctrl_c_keeps_what_all_chains_have(monkeypatch):
    monkeypatch.setattr(sampler, "_TURN", 1)
    calls = []

    def report(n):
        calls.append(n)
        if len(calls) == 30:
            raise KeyboardInterrupt

    out = run(SLOW, warmup=20, report=report)
    assert out.interrupted
    assert out.stored["x"].shape == (4, 120, 3)


@pytest.mark.slow
def test_stopping_does_not_bias_intervals():
    """Nominal 90% intervals of a known distribution, over many runs that stop by themselves."""
    ends = []
    for seed in range(25):
        x = run(MIDDLING, seed).stored["x"]
        ends.append(np.quantile(x, [0.05, 0.95], (0, 1)))
    ends = np.array(ends)  # (runs, ends, 3)
    se = ends.std((0, 2)) / np.sqrt(ends.shape[0] * ends.shape[2])
    np.testing.assert_array_less(np.abs(ends.mean((0, 2)) - [-1.645, 1.645]), 4 * se)


@cache
def fitted():
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=240)
    x = 2.0 * np.eye(3)[true] + rng.normal(size=(240, 3))
    given = np.where(rng.random(240) < 0.2, rng.integers(3, size=240), true)
    return NoisyGaussianNB(random_state=0).fit(x, given)


def noise(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)
        tree = fitted().posterior(progress=False, **options)
    return tree


@pytest.mark.slow
def test_intervals_by_auto_agree_with_long_chains():
    auto, long = noise(), noise(draws=2000, warmup=500, keep="parameters", random_state=5)
    again = noise()
    assert auto.attrs["warnings"] == ""
    assert auto.attrs["warmup"] >= 100
    np.testing.assert_array_equal(
        auto["posterior"]["noise_matrix"], again["posterior"]["noise_matrix"]
    )
    x, y = (tree["posterior"]["noise_matrix"].to_numpy() for tree in (auto, long))
    assert convergence(x).bulk > 300  # some of the 400 lie between stored draws
    sd, ess = y.std((0, 1)), convergence(x).bulk
    assert (np.abs(x.mean((0, 1)) - y.mean((0, 1))) < 4 * sd / np.sqrt(ess)).all()
    ends = [np.quantile(z, [0.05, 0.95], (0, 1)) for z in (x, y)]
    # a 5 % quantile of a normal has 2.1 times the error of the mean; these are skewed
    assert (np.abs(ends[0] - ends[1]) < 4 * 3 * sd / np.sqrt(ess)).all()


@pytest.mark.slow
def test_parameters_alone():
    tree = noise(draws=40, warmup=20, chains=2, keep="parameters")
    assert set(tree.children) == {"posterior", "sample_stats", "label_posterior"}
    whole = noise(draws=40, warmup=20, chains=2)
    # two programs of the same draws, which may round differently
    np.testing.assert_allclose(
        tree["posterior"]["noise_matrix"], whole["posterior"]["noise_matrix"], rtol=1e-9
    )


def test_draws_is_a_number_or_auto():
    check_sizes(draws="auto")
    with pytest.raises(DataError, match="draws: expected one of 'auto'"):
        check_sizes(draws="many")
    with pytest.raises(DataError, match="chains: expected a whole number"):
        check_sizes(chains="auto")


@pytest.mark.parametrize("how", [{}, {"warmup": 130}, {"stopping": sampler.Stopping(most=430)}])
def test_chunks_in_turn_give_the_same_draws(monkeypatch, how):
    many = run(MIDDLING, **how)
    monkeypatch.setattr(sampler, "_TURN", 1)
    one = run(MIDDLING, **how)
    np.testing.assert_array_equal(many.stored["x"], one.stored["x"])
    np.testing.assert_allclose(many.mean, one.mean)
    assert (many.warmup, many.stride, many.mixed) == (one.warmup, one.stride, one.mixed)


def test_draws_that_were_asked_for_are_the_same_in_turn(monkeypatch):
    about = MIDDLING, STARTS, None, jax.random.key(1)
    many = sampler.sample(*about, draws=130, warmup=50)
    monkeypatch.setattr(sampler, "_TURN", 1)
    one = sampler.sample(*about, draws=130, warmup=50)
    assert many.stored["x"].shape[1] == 130
    np.testing.assert_array_equal(many.stored["x"], one.stored["x"])


def test_a_form_needs_its_share_of_the_effective_draws():
    whole = sampler.Stopping()
    assert whole.of_part(1.0) == whole
    quarter = whole.of_part(0.25)
    assert quarter.ess == whole.ess / 4
    np.testing.assert_allclose(quarter.rhat, 1.04)
    assert sampler.Stopping(rhat=1.1).of_part(0.5).rhat == 1.1  # no stricter than the whole
    taken = [run(MIDDLING, stopping=one._replace(least=20)) for one in (whole, quarter)]
    assert taken[1].stored["x"].shape[1] < taken[0].stored["x"].shape[1]
