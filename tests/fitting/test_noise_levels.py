"""Labels averaged over the level of the noise, which few labels hardly tell."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from nbmodels import NoisyGaussianNB, NoisyLogisticRegression, RobustNDA
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import NbmodelsWarning, VerdictWarning
from nbmodels.fitting.noise_levels import LEVELS, matrices_at, noise_levels

K = 3


def useless_columns(seed, n=150, d=60):
    """Two columns tell the classes, the others nothing."""
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=n)
    x = rng.normal(size=(n, d))
    x[:, 0] += 2 * true
    x[:, 1] -= 1.5 * true
    return x, true, corrupt(true, uniform_noise(K, 0.2), rng)


def normal(seed, n=150, d=5):
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=n)
    x = 2.0 * rng.normal(size=(K, d))[true] + rng.normal(size=(n, d))
    return x, true, corrupt(true, uniform_noise(K, 0.2), rng)


def fitted(estimator, x, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        return estimator(random_state=0, **settings).fit(x, y).fitted_


def gains(model, true, given):
    """Changes of the share of right labels, as averaged and by the fit alone."""
    alone = replace(model, averaged=None, noisy=1.0)
    right = [np.mean(one.label_posterior.argmax(1) == true) for one in (model, alone)]
    return np.array(right) - np.mean(given == true)


def test_matrices_keep_their_form_and_their_diagonal_dominates():
    matrix = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.1, 0.9]])
    shares, found = matrices_at(matrix, LEVELS)
    np.testing.assert_allclose(found.sum(2), 1)
    np.testing.assert_allclose(1 - np.einsum("lkk->lk", found).mean(1), shares)
    assert np.all(np.einsum("lkk->lk", found)[:, :, None] >= found)
    np.testing.assert_allclose(found[:, 0, 1] / found[:, 1, 0], 2)
    right, uniform = matrices_at(np.eye(K), LEVELS)
    np.testing.assert_allclose(uniform[:, 0, 1], right / 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "own"),  # scores of its own: the reference's are not misled by useless columns
    [(NoisyGaussianNB, {"training": "cross_fit"}), (NoisyLogisticRegression, {"rounds": 0})],
)
def test_useless_columns_of_a_small_table_cost_few_right_labels(estimator, own):
    found = []
    for seed in range(4):
        x, true, given = useless_columns(seed)
        found.append(gains(fitted(estimator, x, given, **own), true, given))
    found = np.array(found)
    assert found[:, 1].mean() < -0.05  # what the fits would do by themselves
    assert found[:, 0].mean() > -0.01
    assert found[:, 0].min() > -0.08


def test_scores_that_agree_with_neighbours_correct_as_the_fit_does():
    x, true, given = normal(2)
    model = fitted(NoisyGaussianNB, x, given, training="cross_fit")
    averaged, alone = gains(model, true, given)
    assert averaged > alone - 0.03 > 0.05
    found = noise_levels(model)
    assert found.weight @ found.share == pytest.approx(0.2, abs=0.07)
    np.testing.assert_allclose(found.probs.sum(2), 1)


def test_chance_for_structure_says_little_of_the_level():
    """The fit finds twice as many wrong labels as there are, and its neighbours do not agree."""
    x, true, given = useless_columns(3)
    model = fitted(NoisyGaussianNB, x, given, training="cross_fit")
    level = 1 - np.diag(model.noise_matrix).mean()
    found = noise_levels(model)
    assert level > 0.35
    spread = np.sqrt(found.weight @ (found.share - found.weight @ found.share) ** 2)
    assert spread > 0.1
    assert gains(model, true, given)[0] > -0.03


def test_checked_rows_count_in_full_and_keep_their_class():
    x, true, given = useless_columns(0)
    checked = np.where(np.arange(len(true)) < 60, true, -1)
    model = fitted(NoisyGaussianNB, x, given, training="cross_fit")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        known = NoisyGaussianNB(random_state=0, training="cross_fit").fit(
            x, given, trusted=np.where(checked >= 0, checked.astype(float), np.nan)
        )
    levels = [noise_levels(one) for one in (model, known.fitted_)]
    spread = [np.sqrt(o.weight @ (o.share - o.weight @ o.share) ** 2) for o in levels]
    assert spread[1] < 0.7 * spread[0]
    rows = checked >= 0
    assert np.array_equal(known.fitted_.label_posterior.argmax(1)[rows], true[rows])


def test_many_rows_are_left_to_the_fit():
    x, _, given = normal(0, n=2500)
    assert fitted(NoisyGaussianNB, x, given, training="cross_fit").averaged is None


@pytest.mark.parametrize("seed", [2, 12])
def test_a_joint_fit_to_few_rows_is_doubted_by_neighbours(seed):
    """Five classes on one line, a hundred rows: 24 right labels were lost in silence."""
    rng = np.random.default_rng(seed)
    true = rng.integers(5, size=100)
    x = np.c_[true + rng.normal(size=100), rng.normal(size=(100, 3))]
    given = corrupt(true, uniform_noise(5, 0.2), rng)
    with warnings.catch_warnings(record=True, action="always", category=VerdictWarning) as seen:
        RobustNDA.published(random_state=0).fit(x, given)
    assert any("the labels of the nearest rows support" in str(one.message) for one in seen)


@pytest.mark.slow
def test_scores_that_say_nothing_predict_no_class_for_all():
    """Rings are no function of a line: a matrix that scales such scores found nothing."""
    rng = np.random.default_rng([0, 600, 5])
    true = rng.integers(K, size=600)
    angle, radius = rng.uniform(0, 2 * np.pi, 600), 1 + true + 0.2 * rng.normal(size=600)
    x = np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.normal(size=(600, 2))]
    given = true.copy()
    wrong = rng.random(600) < 0.2
    given[wrong] = (true[wrong] + rng.integers(1, K, wrong.sum())) % K
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        predicted = NoisyLogisticRegression(random_state=0).fit(x, given).predict(x)
    assert np.bincount(predicted, minlength=K).max() < 0.9 * len(x)
