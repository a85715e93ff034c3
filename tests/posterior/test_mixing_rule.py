"""One rule by which chains stop and by which draws are warned of, once for all forms of a model."""

import warnings
from functools import cache

import arviz_base
import jax
import numpy as np
import pytest
from zoo import build

from inference.gibbs import Stopping, Watch
from nbmodels.core import model as m
from nbmodels.errors import PosteriorWarning
from nbmodels.fitting.em import fit
from nbmodels.fitting.fitted_model import Drawn
from nbmodels.posterior import gibbs
from nbmodels.posterior.convergence import _beyond, _not_mixed, convergence_checks
from nbmodels.posterior.sampling import sample

DIMS = {"noise_matrix": ["observed_class", "true_class"], "class_prior": ["true_class"]}


def tree(**posterior):
    return arviz_base.from_dict({"posterior": posterior}, dims=DIMS)


def shares(effective, rng, chains=4, draws=400):
    """Class shares with about so many effective draws of all chains."""
    each = chains * draws // effective
    first = np.repeat(rng.uniform(0.3, 0.5, (chains, -(-draws // each))), each, 1)[:, :draws]
    return np.stack([first, 1 - first], -1)


def messages(draws, **options):
    return [caution.message for caution in convergence_checks(draws, **options)]


def test_chains_that_have_mixed_are_not_complained_of():
    few = tree(class_prior=shares(200, np.random.default_rng(0)))
    assert messages(few, mixed=True) == []
    assert "times as many sweeps for each draw" in messages(few, mixed=False)[0]
    assert "take more draws, or thin" in messages(few)[0]


def test_the_rule_that_stops_is_the_rule_that_warns():
    """Cells need a quarter of the effective draws of rates, whichever is asked."""
    rng, rule = np.random.default_rng(0), Stopping()
    matrix = 0.2 * np.eye(3) + rng.uniform(0.2, 0.4, (4, 400, 3, 3))
    cell, rate = matrix.copy(), matrix.copy()
    slow = np.repeat(rng.uniform(0.2, 0.4, (4, 50)), 8, 1)  # 200 of 1,600
    cell[..., 0, 1], rate[..., 1, 1] = slow, slow
    for noise, mixed in ((matrix, True), (cell, True), (rate, False)):
        found = [w.shortfall(rule.rhat, rule.ess) for w in gibbs.watches(None, [noise])]
        assert all(one.mixed for one in found) == mixed
        assert (messages(tree(noise_matrix=noise), mixed=False) == []) == mixed


@pytest.mark.parametrize("mixed", [None, False])
def test_chains_that_disagree_are_complained_of(mixed):
    draws = np.random.default_rng(0).dirichlet([30, 20], (4, 200))
    draws[3] = draws[3, :, ::-1]
    (message,) = messages(tree(class_prior=draws), mixed=mixed)
    assert "have not mixed: R-hat of class_prior reaches 1.49" in message


@pytest.mark.parametrize(
    ("rhat", "usual", "shown"),
    [(1.0504, 1.05, "1.0504"), (1.053, 1.05, "1.053"), (1.07, 1.05, "1.07"), (1.01, 1.05, "1.01")],
)
def test_an_r_hat_is_printed_above_the_limit_that_it_exceeds(rhat, usual, shown):
    assert _beyond(rhat, usual) == shown
    assert f"reaches {shown} (at most {usual} is usual)" in _not_mixed("noise_matrix", rhat, usual)


def test_names_that_are_known_need_no_dominant_diagonal():
    noise = np.broadcast_to([[0.3, 0.0], [0.7, 1.0]], (2, 50, 2, 2))
    draws = tree(noise_matrix=noise)
    draws["posterior"].dataset = (
        draws["posterior"].to_dataset().assign_coords(true_class=["a", "b"])
    )
    assert "not diagonally dominant: a as" in messages(draws)[0]
    assert messages(draws, named=True) == []


def test_shortfall_without_effective_draws_is_by_one_r_hat():
    draws = np.random.default_rng(0).normal(size=(4, 100, 1))
    assert Watch(draws, 0.25).shortfall(1.1, 0).mixed
    draws[3] += 2
    assert not Watch(draws, 0.25).shortfall(1.1, 0).mixed


@cache
def case(n=60):
    made = build("bernoulli", "transition", n_items=n, seed=1)
    return fit(made.model, made.data, key=jax.random.key(0)), made.data


def test_small_models_may_take_more_draws():
    fitted, data = case()
    assert gibbs.stopping(fitted.model, data).most == 8_000
    many = m.Data({**data.parts, "more": np.zeros((10**6, 2))}, data.weights)
    assert gibbs.stopping(fitted.model, many).most == 2_000


@pytest.mark.slow
def test_forms_are_warned_of_once(monkeypatch):
    """Each form reaches the limit; what is averaged over them is checked."""
    short = Stopping(warmup=20, least=20, most=40)
    monkeypatch.setattr(gibbs, "stopping", lambda model, data: short)
    fitted, data = case()
    forms = [Drawn(fitted, data, 0.3), Drawn(fitted, data, 0.2)]
    with warnings.catch_warnings(record=True, action="always") as caught:
        out = sample(
            fitted,
            data,
            jax.random.key(0),
            alternatives=forms,
            keep="parameters",
            progress=False,
        )
    of_mixing = [str(w.message) for w in caught if issubclass(w.category, PosteriorWarning)]
    of_mixing = [one for one in of_mixing if "depend on each other" in one or "not mixed" in one]
    assert len(of_mixing) == 1
    assert of_mixing[0] in out.attrs["warnings"]
    assert "averaged over 3 forms of the model (0.5, 0.3, 0.2)" in out.attrs["kind"]
