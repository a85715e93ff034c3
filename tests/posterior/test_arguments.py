"""Arguments of posterior sampling are checked before anything is drawn, and errors name them."""

import warnings
from functools import cache

import jax
import numpy as np
import pytest
import xarray
from zoo import build

from inference import gibbs as sampler
from nbmodels import NoisyGaussianNB
from nbmodels.errors import DataError, PosteriorWarning
from nbmodels.fitting.em import fit
from nbmodels.posterior.gibbs import collected
from nbmodels.posterior.sampling import sample


@cache
def case():
    made = build("bernoulli", "transition", n_items=30, seed=1)
    return fit(made.model, made.data, key=jax.random.key(0)), made.data


WRONG = [
    ("draws", 0, {}),
    ("draws", 1.5, {}),
    ("draws", True, {}),
    ("draws", "many", {}),
    ("draws", 10**9, {}),
    ("draws", 10**7, {}),
    ("chains", 0, {}),
    ("chains", 10**9, {}),
    ("thin", 0, {}),
    ("thin", 10**9, {}),
    ("warmup", -3, {}),
    ("warmup", 10**12, {}),
    ("keep", "x", {}),
    ("sandwich", "x", {}),
    ("progress", "x", {}),
    ("method", "x", {}),
    ("stepz", 3, {}),
    ("steps", 3, {}),
    ("correct", "x", {"method": "vb"}),
    ("steps", 0, {"method": "svi"}),
    ("batch", 0, {"method": "svi"}),
    ("batch", 31, {"method": "svi"}),
    ("rank", 1.5, {"method": "svi"}),
    ("guide", "x", {"method": "svi"}),
    ("target_accept", 2, {"method": "nuts"}),
]


@pytest.mark.parametrize(("name", "value", "others"), WRONG)
def test_a_wrong_argument_is_named(name, value, others):
    fitted, data = case()
    with pytest.raises(DataError, match=f"^{name}: "):
        sample(fitted, data, jax.random.key(0), **{name: value}, **others)


@cache
def estimator():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    x = 3 * y[:, None] + rng.normal(size=(60, 2))
    return NoisyGaussianNB.published(random_state=0).fit(x, y)


@pytest.mark.parametrize("state", ["x", -1, 1.5])
def test_a_wrong_random_state_is_named(state):
    with pytest.raises(DataError, match=r"^random_state: "):
        estimator().posterior(random_state=state)


@pytest.mark.slow
def test_warnings_are_issued_at_the_user_s_line_and_stored_in_the_tree(tmp_path):
    with warnings.catch_warnings(record=True, action="always") as caught:
        tree = estimator().posterior(draws=8, chains=4, warmup=0, progress=False)
    ours = [w for w in caught if issubclass(w.category, PosteriorWarning)]
    assert ours
    assert {w.filename for w in ours} == {__file__}
    assert tree.attrs["warnings"].split("\n") == [str(w.message) for w in ours]
    tree.to_netcdf(tmp_path / "draws.nc", engine="h5netcdf")
    back = xarray.open_datatree(tmp_path / "draws.nc", engine="h5netcdf")
    assert back.attrs["warnings"] == tree.attrs["warnings"]
    back.close()


def test_variational_draws_do_not_draw_a_prior():
    rng = np.random.default_rng(0)
    y = np.repeat(["ant", "bee"], 30)
    x = rng.normal(np.where(y == "ant", 0, 6)[:, None], size=(60, 2))
    fitted = NoisyGaussianNB(training="joint").fit(x, y)
    with pytest.raises(DataError, match=r"method: 'vb' cannot draw 'labels'.*solver='vb'"):
        fitted.posterior("vb", draws=5)


def test_an_interruption_is_a_caution():
    fitted, data = case()
    stored = {"values": {}, "transitions": {}, "lp": np.zeros((1, 20))}
    out = sampler.Draws(stored, np.zeros((1, 30, 3)), interrupted=True)
    (caution,) = collected(out, fitted.model, data).cautions
    assert caution.category is PosteriorWarning
    assert "interrupted" in caution.message


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "vb"])
def test_one_draw_is_enough(method):
    """VB also differentiates log-likelihoods in a compiled program: maxima must not give NaN."""
    fitted, data = case()
    with warnings.catch_warnings(record=True, action="always") as caught:
        tree = sample(
            fitted, data, jax.random.key(0), method=method, draws=1, chains=1, warmup=0,
            sandwich=True, progress=False,
        )  # fmt: skip
    assert tree["posterior"].sizes["draw"] == 1
    assert np.isfinite(tree["posterior"]["class_prior"]).all()
    unknown = ["Pareto k needs 25 draws" in str(w.message) for w in caught]
    assert any(unknown) == (method == "vb")
