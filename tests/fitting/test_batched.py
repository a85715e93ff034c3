"""Many fits by one compiled program, sequential or batched: each is what it would be alone."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference import run_batched
from nbmodels.channels import SymmetricTransition, Transition
from nbmodels.class_priors import Calibration, Proportions
from nbmodels.core import model as models
from nbmodels.core.model import Data
from nbmodels.emissions import Bernoulli
from nbmodels.fitting.batched import fit_batch
from nbmodels.fitting.em import fit, fit_many
from nbmodels.fitting.iterations import Posteriors

N, D, K = 300, 8, 3
KEY = jax.random.key(0)


def candidate(power=1.0, channel=Transition):
    emission = replace(Bernoulli.of(D, K), weight=power)
    return {"class_prior": Proportions.of(K), "labels": channel.of(K), "x": emission}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    x = rng.random((N, D)) < np.where(np.arange(D) % K == y[:, None], 0.7, 0.3)
    noisy = np.where(rng.random(N) < 0.2, rng.integers(0, K, N), y)
    parts = {"class_prior": None, "labels": jnp.asarray(noisy, jnp.int32), "x": Bernoulli.pack(x)}
    return Data(parts, jnp.ones(N))


def folds(data, n):
    return [replace(data, weights=jnp.asarray(np.arange(N) % n != k, float)) for k in range(n)]


@pytest.fixture
def batched(monkeypatch):
    """A GPU, where fits of one shape run as one from two on."""
    monkeypatch.setattr("nbmodels.fitting.batched.on_cpu", lambda: False)
    monkeypatch.setattr("nbmodels.fitting.batched._MANY", 2)


@pytest.fixture(params=["sequential", "batched"])
def order(request):
    """How fits of one shape run."""
    if request.param == "batched":
        request.getfixturevalue("batched")


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["ml", "map", "vb"])
@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.usefixtures("order")
def test_folds_of_candidates_are_what_each_is_alone(data, rule, accelerate):
    candidates = [candidate(power) for power in (1.0, 0.3) for _ in range(3)]
    split = folds(data, 3) * 2
    options = {"rule": rule, "key": KEY, "accelerate": accelerate, "max_iter": 2000}
    together = fit_many(candidates, split, **options)
    for one, model, own in zip(together, candidates, split, strict=True):
        alone = fit(model, own, **options)
        assert one.status is alone.status
        np.testing.assert_allclose(one.objective, alone.objective, rtol=1e-9)
        np.testing.assert_allclose(one.resp, alone.resp, atol=1e-6)


@pytest.mark.usefixtures("order")
def test_models_of_other_structure_go_along(data):
    candidates = [candidate(), candidate(channel=SymmetricTransition), candidate(0.3)]
    together = fit_many(candidates, [data] * 3, key=KEY)
    for one, model in zip(together, candidates, strict=True):
        assert one.objective == pytest.approx(fit(model, data, key=KEY).objective, rel=1e-9)


@pytest.mark.slow
def test_restarts_are_the_starts_they_would_be_one_by_one(data):
    model = candidate()
    many = fit(model, data, key=KEY, n_restarts=4)
    assert len(many.restarts) == 5
    assert many.objective == pytest.approx(max(many.restarts))
    assert many.restarts[0] == pytest.approx(fit(model, data, key=KEY).objective, rel=1e-9)


@pytest.mark.usefixtures("batched")
def test_what_is_shared_is_not_copied(data, monkeypatch):
    seen = {}

    def watched(step, points, context, **options):
        seen.update(axes=options["in_axes"], context=context)
        return run_batched(step, points, context, **options)

    monkeypatch.setattr("nbmodels.fitting.batched.run_batched", watched)
    fit_many([candidate()] * 3, folds(data, 3), key=KEY)
    leaves = dict(jax.tree.leaves_with_path(seen["context"]))
    stacked = dict(jax.tree.leaves_with_path(seen["axes"]))  # None, of what is shared, is no leaf
    assert set(stacked.values()) == {0}
    assert [leaves[path].shape for path in stacked] == [(3, N)]  # the folds' weights


@pytest.mark.usefixtures("order")
def test_a_group_too_large_for_memory_is_cut(data, monkeypatch):
    whole = fit_many([candidate()] * 5, folds(data, 5), key=KEY)
    monkeypatch.setattr("nbmodels.fitting.batched._ROOM", 1000)  # two at a time
    for a, b in zip(whole, fit_many([candidate()] * 5, folds(data, 5), key=KEY), strict=True):
        assert a.objective == pytest.approx(b.objective, rel=1e-12)


@pytest.fixture
def compiled():
    """Events of compilation, as they come."""
    seen = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: seen.append(event) if "backend_compile" in event else None
    )
    return seen


def test_folds_are_fitted_by_the_program_of_a_single_fit(data, compiled, monkeypatch):
    """On a GPU, too, where few fits take turns."""
    monkeypatch.setattr("nbmodels.fitting.batched.on_cpu", lambda: False)
    fit(candidate(), data, key=KEY)
    parts = folds(data, 3)
    compiled.clear()
    fit_many([candidate()] * 3, parts, key=KEY)
    assert not compiled


def test_a_fitted_calibration_is_fitted_by_the_program_it_was_fitted_by(data, compiled):
    """The rounds of a cut begin with the model of the last fit."""
    labels = data.parts["labels"]
    noise = np.random.default_rng(0).normal(size=(N, K))
    scores = Calibration.pack(2 * jax.nn.one_hot(labels, K) + noise)
    scored = Data({"class_prior": scores, "labels": labels}, data.weights)
    found = fit({"class_prior": Calibration.of(K), "labels": Transition.of(K)}, scored, key=KEY)
    compiled.clear()
    fit(found.model, scored, key=KEY)
    assert not compiled


@jax.jit
def begun(model, data):
    return models.start(model, models.initial_responsibilities(model, data), data, "map")


@pytest.mark.usefixtures("order")
def test_nothing_is_compiled_for_the_second_grid(compiled):
    rng = np.random.default_rng(1)
    for attempt in range(2):
        noisy = jnp.asarray(rng.integers(0, K, N), jnp.int32)
        parts = {
            "class_prior": None,
            "labels": noisy,
            "x": Bernoulli.pack(rng.integers(0, 2, (N, D))),
        }
        data = Data(parts, jnp.ones(N))
        if attempt:
            compiled.clear()
        models_ = [candidate(power) for power in (1.0, 0.5, 0.25)]
        starts = [begun(m, data) for m in models_]
        how = {"iteration": Posteriors("map"), "max_iter": 50, "accelerate": True}
        fit_batch(starts, [(m, data) for m in models_], [1e-3] * 3, **how)
    assert not compiled
