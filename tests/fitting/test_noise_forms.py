"""Which form of the noise matrix a discriminative classifier takes, and what its draws are of."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from nbmodels import NoisyLabelClassifier, NoisyLogisticRegression
from nbmodels.channels import PooledTransition
from nbmodels.datasets import corrupt, flip_noise, uniform_noise
from nbmodels.errors import NbmodelsWarning
from nbmodels.fitting.agreement import beyond_chance, kappa_of_shares

K = 4
NOISE = {
    "pooled": uniform_noise(K, 0.3),
    "full": flip_noise(K, {(j, (j + 1) % K): 0.3 for j in range(K)}),
}


@cache
def fitted(errors, **options):
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, 600)
    x = rng.normal(0, 1.2, (K, 6))[y] + rng.normal(size=(600, 6))
    given = corrupt(y, NOISE[errors], rng)
    model = NoisyLogisticRegression(C=0.1, rounds=0, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        return model.fit(x, given), np.mean(given == y), y


def noise_draws(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)  # few draws
        tree = model.posterior(draws=200, chains=2, progress=False)
    return tree["posterior"]["noise_matrix"]


@pytest.mark.slow
@pytest.mark.parametrize("errors", list(NOISE))
def test_held_out_labels_choose_the_form(errors):
    model, share, y = fitted(errors)
    assert model.chosen_["noise"] == errors
    assert set(model.choice_["noise"]) == set(NOISE)
    right = np.mean(model.classes_[model.label_posterior_.argmax(1)] == y)
    assert right > share + 0.08
    assert abs(np.diag(model.noise_matrix_).mean() - 0.7) < 0.12


@pytest.mark.slow
def test_draws_are_of_both_forms_at_even_odds():
    model, *_ = fitted("pooled")
    (other,) = model.fitted_.alternatives
    assert other.probability == 0.5
    assert not isinstance(other.fit.model["labels"], PooledTransition)
    assert isinstance(model.fitted_.fit.model["labels"], PooledTransition)
    models = model, fitted("pooled", noise="pooled")[0], fitted("pooled", noise="full")[0]
    both, pooled, full = (float(noise_draws(m).std()) for m in models)
    assert pooled < both < 1.05 * full


def test_a_form_that_is_given_is_not_chosen():
    model, *_ = fitted("pooled", noise="full")
    assert model.fitted_.alternatives == ()
    assert "noise" not in model.chosen_


def test_maximum_likelihood_has_one_form():
    model, *_ = fitted("pooled", solver="ml")
    assert model.fitted_.alternatives == ()


def test_any_classifier_chooses_too():
    rng = np.random.default_rng(1)
    y = rng.integers(0, K, 400)
    x = rng.normal(0, 1.5, (K, 5))[y] + rng.normal(size=(400, 5))
    given = corrupt(y, NOISE["pooled"], rng)
    model = NoisyLabelClassifier(GaussianNB(), rounds=0, random_state=0).fit(x, given)
    assert model.chosen_["noise"] == "pooled"
    assert model.n_fits_ == 6, "a form of the noise needs no training"


def test_agreement_of_codes_is_that_of_sure_probabilities():
    rng = np.random.default_rng(1)
    a, b = rng.integers(3, size=(2, 50))
    weights = rng.random(50)
    one, other = np.eye(3)[a], np.eye(3)[b]
    expected = beyond_chance(a, b, weights).kappa
    assert kappa_of_shares(one, other, weights) == pytest.approx(expected)
    # probabilities that are alike for all items say nothing of any
    assert kappa_of_shares(one, np.full((50, 3), 1 / 3), weights) == pytest.approx(0)


def test_agreement_beyond_chance_is_standard_normal_without_any():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        a, b = rng.choice(3, (2, 80), p=[0.5, 0.3, 0.2])
        found.append(beyond_chance(a, b, rng.choice([0.0, 1.0, 2.0], 80)).z)
    assert abs(np.mean(found)) < 0.2
    assert 0.8 < np.std(found) < 1.2
    assert beyond_chance(a, a, np.ones(80)).z > 8
    # rows of weight 0 do not count
    weights = np.r_[np.ones(60), np.zeros(20)]
    c = np.r_[a[:60], (a[60:] + 1) % 3]
    np.testing.assert_allclose(
        beyond_chance(a[:60], b[:60], weights[:60]),
        beyond_chance(c, np.r_[b[:60], a[60:]], weights),
    )
