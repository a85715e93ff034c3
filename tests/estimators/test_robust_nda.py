"""RobustNDA on its defaults: tails and covariance selected, labels no worse than given."""

import numpy as np
import pytest

from nbmodels import DataError, RobustNDA
from nbmodels.datasets import corrupt, uniform_noise

K, SEED = 3, {"random_state": 0}


def labelled(n, dof=np.inf, seed=0):
    """Correlated features of three classes, with the tails of a t distribution; labels; truth."""
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=n)
    noise = rng.normal(size=(n, 4)) @ (np.eye(4) + 0.4)
    if np.isfinite(dof):
        noise /= np.sqrt(rng.chisquare(dof, (n, 1)) / dof)
    x = 2.5 * rng.normal(size=(K, 4))[true] + noise
    return x, corrupt(true, uniform_noise(K, 0.2), rng), true


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
@pytest.mark.parametrize("seed", [0, 1])
def test_heavy_tails_cost_no_right_labels(seed):
    """Normal classes, fitted jointly, follow a few rows far out: 40 points of labels were lost."""
    x, given, true = labelled(300, dof=1.2, seed=seed)
    model = RobustNDA(**SEED).fit(x, given)
    found = model.corrected_labels()["suggested"]
    assert np.mean(found == true) > np.mean(given == true) + 0.02
    assert model.dof_ in {1.0, 4.0}
    as_published = RobustNDA.published(**SEED).fit(x, given)
    assert np.mean(as_published.corrected_labels()["suggested"] == true) < np.mean(given == true)


@pytest.mark.slow
def test_correlated_normal_classes_are_corrected():
    x, given, true = labelled(400)
    model = RobustNDA(**SEED).fit(x, given)
    assert model.chosen_["covariance"] != "diag"
    assert np.mean(model.corrected_labels()["suggested"] == true) > 0.9


def test_the_published_model_selects_nothing():
    x, given, _ = labelled(90)
    model = RobustNDA.published(**SEED).fit(x, given)
    assert model.dof_ is None
    assert model.covariances_.shape == (K, 4, 4)
    assert model.choice_ is None


def test_degrees_of_freedom_are_learned_in_a_joint_fit():
    x, given, _ = labelled(300, dof=3.0)
    model = RobustNDA(dof="learn", covariance="tied", **SEED).fit(x, given)
    assert model.fitted_.counterpart is None
    assert 1 < model.dof_ < 20
    with pytest.raises(DataError, match="dof: 'learn' maximises a joint objective"):
        RobustNDA(dof="learn", training="cross_fit").fit(x, given)
