"""Bayes factor of label noise in a joint model."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest

from nbmodels import NoisyGaussianNB, Solver, fit
from nbmodels.channels import PooledTransition, SymmetricTransition, Transition, TrustedLabels
from nbmodels.class_priors import Proportions
from nbmodels.core.model import Data
from nbmodels.fitting.noise_evidence import (
    occam_factor,
    probability_of_noise_jointly,
    without_noise,
)
from nbmodels.fitting.options import FitOptions

#: Classes that are known, and their given labels.
TRUTH, GIVEN = np.repeat([0, 1], [5, 4]), np.array([0, 0, 1, 0, 0, 1, 1, 1, 0])


def known(channel, rule="map"):
    """A fit in which the classes are known, so that the noise's evidence is that of an urn."""
    model = {"class_prior": Proportions.of(2), "labels": channel, "trusted": TrustedLabels.of(2)}
    labels = {"labels": channel.pack(GIVEN, 2), "trusted": TrustedLabels.pack(TRUTH, 2)}
    data = Data({"class_prior": None, **labels}, np.ones(len(TRUTH)))
    return fit(model, data, key=jax.random.key(0), rule=rule), data


def urn(pseudo, draws):
    """Log-probability of draws one after the other, each given those before it."""
    pseudo, total = np.array(pseudo, float), 0.0
    for j in draws:
        total += np.log(pseudo[j] / pseudo.sum())
        pseudo[j] += 1
    return total


@pytest.mark.parametrize("maker", [Transition, PooledTransition])
def test_the_matrix_is_integrated_out(maker):
    channel = maker.of(2, alpha=1.5, diagonal=3.0)
    found, _ = known(channel)
    rows = [urn([3.0, 1.5], GIVEN[TRUTH == 0]), urn([1.5, 3.0], GIVEN[TRUTH == 1])]
    rates = np.log(found.transitions["labels"])[TRUTH, GIVEN].sum()
    assert occam_factor(found) == pytest.approx(sum(rows) - rates)


def test_so_is_one_error_rate():
    found, _ = known(SymmetricTransition.of(2, alpha=1.5, diagonal=3.0))
    rates = np.log(found.transitions["labels"])[TRUTH, GIVEN].sum()
    # right and wrong
    assert occam_factor(found) == pytest.approx(urn([3.0, 1.5], GIVEN != TRUTH) - rates)


def test_under_vb_it_is_the_divergence_from_the_prior():
    found, _ = known(Transition.of(2), "vb")
    q, prior = found.params["labels"], found.model["labels"].prior
    kl = q.divergence(prior) + prior.log_normaliser()  # of which no iteration changes the latter
    assert occam_factor(found) == pytest.approx(-float(np.sum(kl)))


@pytest.mark.parametrize("maker", [PooledTransition, SymmetricTransition])
def test_without_noise_classes_are_the_given_labels(maker):
    model = {"class_prior": Proportions.of(2), "labels": maker.of(2)}
    parts = {"class_prior": None, "labels": PooledTransition.pack(GIVEN, 2)}
    found = fit(without_noise(model), Data(parts, np.ones(len(GIVEN))), key=jax.random.key(0))
    np.testing.assert_allclose(found.resp, np.eye(2)[GIVEN], atol=1e-4)


def test_a_checked_label_that_differs_proves_noise():
    found, data = known(PooledTransition.of(2))
    options = FitOptions(jax.random.key(0), 0)
    assert probability_of_noise_jointly(found, found.log_likelihood, data, options) > 0.999
    same = replace(data, parts={**data.parts, "labels": PooledTransition.pack(TRUTH, 2)})
    right = fit(found.model, same, key=jax.random.key(0))
    assert probability_of_noise_jointly(right, right.log_likelihood, same, options) < 0.5


def clusters(n, distance, share, seed):
    """Three normal classes, and labels of which a share names the next class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    given = np.where(rng.random(n) < share, (y + 1) % 3, y)
    return rng.normal(size=(n, 4)) + distance * np.eye(3, 4)[y], y, given


@pytest.mark.parametrize("solver", ["map", pytest.param("vb", marks=pytest.mark.slow)])
def test_few_wrong_labels_of_clear_classes_are_corrected(solver):
    """The joint model's own evidence is for noise, and labels move."""
    x, y, given = clusters(120, 2.5, 0.15, 3)
    with warnings.catch_warnings(action="ignore"):
        model = NoisyGaussianNB(solver=Solver(method=solver), random_state=0).fit(x, given)
    assert not model.fitted_.scored
    assert model.fitted_.noisy > 0.99
    right = np.mean(model.corrected_labels()["suggested"] == y)
    assert right > np.mean(given == y) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("n", [150, 600])
def test_right_labels_of_overlapping_classes_stay(n):
    changed = []
    for seed in range(4):
        x, y, given = clusters(n, 1.0, 0.0, seed)
        with warnings.catch_warnings(action="ignore"):
            model = NoisyGaussianNB(random_state=0).fit(x, given)
        changed.append(np.mean(model.corrected_labels()["suggested"] != y))
    assert np.mean(changed) < 0.02
