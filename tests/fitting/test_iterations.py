"""Carrying responsibilities visits the points, and the objectives, of carrying posteriors."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from inference import Status
from inference.products import layout
from nbmodels import Interrupted
from nbmodels.channels import Transition
from nbmodels.core import model as models
from nbmodels.core.model import Data
from nbmodels.emissions import Users
from nbmodels.fitting import em
from nbmodels.fitting.duplicate_users import grouped
from nbmodels.fitting.iterations import Posteriors, Responsibilities, iteration
from nbmodels.papers import maystre2021

KEY, K = jax.random.key(0), 4
PLAIN = {"rule": "vb", "key": KEY, "accelerate": False}


def unlabelled(v_hat):
    return np.where(np.arange(len(v_hat)) < 5, -1, v_hat)


def published(drawn, v_hat=None, alpha=0.3):
    v_hat = drawn.v_hat if v_hat is None else v_hat
    return maystre2021.to_model(drawn.edges, v_hat, K, alpha=alpha, delta=0.2)


def learned(drawn, v_hat=None):
    """Noise to learn, items and edges with weights, users with priors of their own."""
    rng = np.random.default_rng(1)
    v_hat = drawn.v_hat if v_hat is None else v_hat
    model, data = published(drawn, v_hat, rng.uniform(0.2, 2, (drawn.edges.shape[1], K)))
    model = {**model, "labels": Transition.of(K), "users": replace(model["users"], weight=0.7)}
    parts = {**data.parts, "labels": Transition.pack(v_hat, K)}
    n = len(v_hat)
    powers = {"users": jnp.asarray(rng.uniform(0.5, 1, n))}
    return model, Data(parts, jnp.asarray(rng.uniform(0, 2, n)), powers)


def alike(drawn, v_hat=None):
    """Users counted once for all that are exchangeable."""
    lone = sparse.csr_array(np.eye(len(drawn.v_hat))[:, [3, 3, 3, 4]])
    found = grouped(sparse.csr_array(sparse.hstack([drawn.edges, lone])))
    model, data = published(drawn, v_hat)
    model = {**model, "users": found.users(0.3, K)}
    return model, Data({**data.parts, "users": Users.pack(found.edges)}, data.weights)


MAKERS = {"published": published, "learned": learned, "alike": alike}


def ways(monkeypatch, model, data, ahead=0, **options):
    """The fit that carries responsibilities, and the one that carries posteriors.

    The latter goes on for ``ahead`` more points.
    """
    options = {**PLAIN, "tol": 1e-14, **options}
    light = em.fit_many([model], [data], **options, max_iter=12)[0]
    monkeypatch.setattr(em, "iteration", lambda models_, data, rule, plain: Posteriors(rule))
    return light, em.fit_many([model], [data], **options, max_iter=12 + ahead)[0]


def check_same(light, heavy, skipped=0):
    n = min(len(light.trace), len(heavy.trace) - skipped)
    assert n > 4
    np.testing.assert_allclose(light.trace[:n], heavy.trace[skipped:][:n], rtol=1e-12)
    np.testing.assert_allclose(light.resp, heavy.resp, rtol=0, atol=1e-9)
    close = {"rtol": 1e-7, "atol": 1e-9}
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **close), light.params, heavy.params)
    assert light.objective == pytest.approx(heavy.objective, rel=1e-12)


@pytest.mark.parametrize("maker", MAKERS)
def test_the_same_points_and_bounds(maker, platform, monkeypatch):
    model, data = MAKERS[maker](platform)
    assert iteration([model], [data], "vb", True) == Responsibilities("vb", ("users",))
    light, heavy = ways(monkeypatch, model, data)
    check_same(light, heavy)
    assert light.n_iter == heavy.n_iter


def test_items_without_a_label_take_a_step_first(platform, monkeypatch):
    model, data = learned(platform, unlabelled(platform.v_hat))
    light, heavy = ways(monkeypatch, model, data, ahead=1)
    check_same(light, heavy, skipped=1)


def test_restarts_and_many_fits(platform, monkeypatch):
    model, data = learned(platform)
    light, heavy = ways(monkeypatch, model, data, n_restarts=2)
    np.testing.assert_allclose(light.restarts, heavy.restarts, rtol=1e-12)
    assert len(set(np.round(light.restarts, 6))) > 1


def test_going_on_from_posteriors(platform):
    model, data = learned(platform)
    whole = em.fit_many([model], [data], **PLAIN, max_iter=9, tol=0.0)[0]
    few = em.fit_many([model], [data], **PLAIN, max_iter=4, tol=0.0)[0]
    rest = em.fit_many([model], [data], **PLAIN, max_iter=5, tol=0.0, starts=[few.params])[0]
    np.testing.assert_allclose(rest.trace, whole.trace[4:], rtol=1e-12)


@pytest.mark.slow
def test_the_objective_is_the_bound_at_the_written_posteriors(platform):
    for maker in MAKERS.values():
        model, data = maker(platform)
        found = em.fit_many([model], [data], **PLAIN, max_iter=3)[0]
        bound = models.objective(em.with_arrays(model), found.params, data, "vb")
        assert found.objective == pytest.approx(float(bound), rel=1e-12)


def test_classes_that_fill_cache_lines(monkeypatch, platform):
    """Padding to whole lines adds classes that nobody is of."""
    monkeypatch.setattr(layout, "_LINE", 40)  # five numbers, in which four may stand
    monkeypatch.setattr("nbmodels.emissions.users.whole_lines", lambda k, dtype: 5)
    check_same(*ways(monkeypatch, *alike(platform)))


def test_extrapolations_and_em_carry_posteriors(platform):
    pair = published(platform)
    assert iteration([pair[0]], [pair[1]], "vb", False) == Posteriors("vb")
    assert iteration([pair[0]], [pair[1]], "map", True) == Posteriors("map")
    without = {name: c for name, c in pair[0].items() if name != "users"}
    rest = Data({n: p for n, p in pair[1].parts.items() if n != "users"}, pair[1].weights)
    assert iteration([without], [rest], "vb", True) == Posteriors("vb")
    both = [pair[0], without], [pair[1], rest]
    assert iteration(*both, "vb", True) == Posteriors("vb")


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_point_and_its_posteriors(platform):
    def stop(n_iter, objective):
        raise KeyboardInterrupt

    model, data = learned(platform)
    with pytest.raises(Interrupted) as caught:
        em.fit(model, data, rule="vb", key=KEY, accelerate=False, tol=0, report=stop)
    kept = caught.value.result
    assert kept.status == Status.INTERRUPTED
    bound = models.objective(em.with_arrays(model), kept.params, data, "vb")
    assert kept.objective == pytest.approx(float(bound), rel=1e-12)
    assert np.all(np.diff(kept.trace) > 0)
