"""Cross-fitted evidence is that of parameters from the other folds, and of nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from zoo import EMISSIONS, K, build

from nbmodels.core import model as m
from nbmodels.fitting.scores import out_of_fold_log_likelihood, params_of_all
from nbmodels.fitting.scores import stratified_folds as folds_of

N, FOLDS = 24, 4


def labels(case):
    return 0.9 * jax.nn.one_hot(case.y, K) + 0.1 / K


@pytest.mark.slow
@pytest.mark.parametrize("name", EMISSIONS)
def test_it_is_that_of_a_fit_to_the_other_folds(name):
    case = build(name, n_items=N, row_weights=True)
    emissions = {name: case.model[name]}
    fold = jnp.asarray(folds_of(np.asarray(case.y), FOLDS, np.random.default_rng(0)))
    found = out_of_fold_log_likelihood(emissions, case.data, labels(case), fold, n_folds=FOLDS)
    k = 2
    q = m.start(emissions, labels(case) * (fold != k)[:, None], case.data, "map")
    wanted = m.log_likelihood(emissions, m.likelihood_params(emissions, q, "map"), case.data).table
    np.testing.assert_allclose(found[fold == k], wanted[fold == k], rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_an_item_s_own_label_does_not_reach_it():
    case = build("bernoulli", "multinomial", n_items=N)
    emissions = {name: case.model[name] for name in ("bernoulli", "multinomial")}
    fold = jnp.asarray(folds_of(np.asarray(case.y), FOLDS, np.random.default_rng(0)))
    how = {"n_folds": FOLDS}
    before = out_of_fold_log_likelihood(emissions, case.data, labels(case), fold, **how)
    turned = labels(case).at[5].set(jnp.roll(labels(case)[5], 1))
    after = out_of_fold_log_likelihood(emissions, case.data, turned, fold, **how)
    mine = np.asarray(fold == fold[5])
    np.testing.assert_array_equal(before[mine], after[mine])
    assert np.abs(before - after)[~mine].max() > 1e-3


def test_parameters_of_all_items_take_no_pass_of_log_likelihoods(monkeypatch):
    """By the same program, in which a fold without items has none to compute."""
    case, passes = build("bernoulli", n_items=N - 1), []
    emissions, whole = {"bernoulli": case.model["bernoulli"]}, m.log_likelihood

    def counted(*args):
        jax.debug.callback(lambda: passes.append(1))
        return whole(*args)

    monkeypatch.setattr(m, "log_likelihood", counted)
    found = params_of_all(emissions, case.data, labels(case))
    jax.effects_barrier()
    assert not passes
    wanted = m.start(emissions, labels(case), case.data, "map")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8), found, wanted)
    fold = np.arange(N - 1, dtype=np.int32) % FOLDS
    out_of_fold_log_likelihood(emissions, case.data, labels(case), fold, n_folds=FOLDS)
    jax.effects_barrier()
    assert len(passes) == FOLDS


def test_folds_hold_every_class_evenly():
    codes = np.repeat([0, 1, 2, -1], [50, 33, 7, 10])
    fold = folds_of(codes, 5, np.random.default_rng(0))
    table = np.array([np.bincount(fold[codes == c], minlength=5) for c in (0, 1, 2, -1)])
    assert (np.ptp(table, 1) <= 1).all()
    other = folds_of(codes, 5, np.random.default_rng(1))
    assert (fold != other).any()
