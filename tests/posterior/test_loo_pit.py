"""Trees of draws fit ArviZ's leave-one-out PIT: names and dimensions of their groups agree."""

import warnings
from functools import cache

import arviz_plots
import arviz_stats
import jax
import numpy as np
import pytest
import zoo
from scipy import stats

from nbmodels.core.model import Data
from nbmodels.diagnostics.comparison import compare_posteriors
from nbmodels.errors import DataError, NbmodelsWarning
from nbmodels.fitting.em import fit
from nbmodels.posterior import for_loo_pit, open_faced_sandwich
from nbmodels.posterior.sampling import sample

K = zoo.K


@cache
def draws(*names, missing=False):
    """Draws of a model whose channel is called ``labels``, as the estimators call it."""
    made = zoo.build(*names, prior="calibration", n_items=150, seed=2, missing=missing)
    rename = {"transition": "labels"}
    model = {rename.get(n, n): c for n, c in made.model.items()}
    parts = {rename.get(n, n): p for n, p in made.data.parts.items()}
    data = Data(parts, made.data.weights)
    with warnings.catch_warnings(action="ignore", category=NbmodelsWarning):
        fitted = fit(model, data, key=jax.random.key(0))
        return sample(fitted, data, jax.random.key(1), draws=100, chains=2, progress=False)


def plotted(tree):
    import matplotlib.pyplot as plt

    # ArviZ calls numpy and pandas in ways that they have deprecated
    with warnings.catch_warnings(action="ignore"):
        collection = arviz_plots.plot_loo_pit(tree, backend="matplotlib")
        values = arviz_stats.loo_pit(tree)
    plt.close("all")
    assert collection.viz.children
    return values


@pytest.mark.slow
def test_one_data_variable_needs_nothing():
    tree = draws("transition")
    groups = ("observed_data", "posterior_predictive", "log_likelihood")
    assert [list(tree[g].data_vars) for g in groups] == 3 * [["labels"]]
    observed, predicted, likelihood = (tree[g]["labels"] for g in groups)
    assert predicted.dims == likelihood.dims == ("chain", "draw", *observed.dims)
    values = plotted(tree)["labels"]
    assert values.dims == ("item",)
    # data drawn from the model: the values are uniform
    assert stats.kstest(values.to_numpy(), "uniform").pvalue > 0.001


@pytest.mark.slow
def test_one_of_several_data_variables_is_selected():
    tree = draws("bernoulli", "transition")
    assert list(tree["log_likelihood"].data_vars) == ["items"]
    one = for_loo_pit(tree)
    assert stats.kstest(plotted(one)["labels"].to_numpy(), "uniform").pvalue > 0.001
    with pytest.raises(DataError, match="'bernoulli' is no observed variable with one value"):
        for_loo_pit(tree, "bernoulli")
    bare = tree.copy()
    del bare["posterior_predictive"]
    with pytest.raises(DataError, match="no group 'posterior_predictive'"):
        for_loo_pit(bare)


@pytest.mark.slow
def test_items_without_a_label_are_left_out():
    tree = draws("transition", missing=True)
    given = int((tree["observed_data"]["labels"] >= 0).sum())
    assert 0 < given < 150
    assert plotted(for_loo_pit(tree))["labels"].sizes["item"] == given


@pytest.mark.slow
def test_comparison_and_sandwich_take_the_tree():
    tree = draws("transition")
    with warnings.catch_warnings(action="ignore"):
        table = compare_posteriors({"one": tree, "two": open_faced_sandwich(tree)})
    assert np.isfinite(table["elpd"]).all()
