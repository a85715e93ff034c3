"""The shape of the classes, a second estimate where errors may follow the features."""

import warnings

import numpy as np
import pytest
from marks import slow
from scipy import sparse, stats

from nbmodels import CrossFit, NbmodelsWarning, NoisyGaussianNB, NoisyLogisticRegression
from nbmodels.datasets import corrupt, flip_noise, uniform_noise
from nbmodels.diagnostics.checks.checked import CheckedEnds
from nbmodels.diagnostics.checks.ends import CHECKS, Ends
from nbmodels.diagnostics.findings import SHAPE
from nbmodels.fitting.class_shapes import fit_classes
from nbmodels.fitting.noise_by_shape import noise_by_shape
from nbmodels.fitting.noise_on_linear_classes import LINEAR

K = 3


def groups(rng, apart, n=600, d=6):
    """Normal classes, and how much nearer an item is to its own than to the next one."""
    true = rng.integers(K, size=n)
    means = apart * rng.normal(size=(K, d))
    x = means[true] + rng.normal(size=(n, d))
    gaps = np.square(x[:, None] - means).sum(2)
    own = gaps[np.arange(n), true]
    gaps[np.arange(n), true] = np.inf
    return x, true, gaps.argmin(1), gaps.min(1) - own


def near_borders(rng, true, other, margin, share=0.2):
    """Wrong labels, the oftener the nearer an item is to another class."""
    rank = margin.argsort().argsort() / len(true)
    return np.where(rng.random(len(true)) < 2 * share * (1 - rank), other, true)


def by_shape(x, given):
    return noise_by_shape(x, given, K, np.ones(len(given))).share_wrong


@pytest.mark.parametrize("seed", [0, 1])
def test_errors_near_borders_leave_the_gaps_between_classes(seed):
    rng = np.random.default_rng(seed)
    x, *about = groups(rng, 1.5)
    true = about[0]
    assert by_shape(x, true) < 0.02
    for given in (near_borders(rng, *about), corrupt(true, uniform_noise(K, 0.2), rng)):
        assert abs(by_shape(x, given) - np.mean(given != true)) < 0.08


@pytest.mark.parametrize("seed", [0, 1])
def test_overlap_fills_them(seed):
    x, true, *_ = groups(np.random.default_rng(seed), 0.6)
    assert not by_shape(x, true) > 0.08  # or it cannot tell


def test_it_says_nothing_of_few_labels_many_classes_or_other_classes():
    x, true, *_ = groups(np.random.default_rng(0), 1.0)
    for untold in (
        noise_by_shape(x[:20], true[:20], K, np.ones(20)),
        noise_by_shape(x, true, 30, np.ones(600)),
        noise_by_shape(x[:, :0], true, K, np.ones(600)),
    ):
        assert np.isnan(untold.share_wrong)
        assert untold.log_factor == 0
    assert by_shape(sparse.csr_array(x), true) < 0.05  # cells below zero are no words
    assert np.isfinite(by_shape(x, np.where(np.arange(600) % 5 == 0, -1, true)))


def exam(rng, n=600, questions=16):
    """Right and wrong answers of three levels of ability."""
    true = rng.integers(K, size=n)
    ability = np.array([-1.2, 0, 1.2])[true] + rng.normal(0, 0.4, n)
    slope, hard = rng.uniform(0.6, 2, questions), rng.normal(size=questions)
    chance = 1 / (1 + np.exp(-slope * (ability[:, None] - hard)))
    return (rng.random((n, questions)) < chance).astype(float), true


@pytest.mark.parametrize("seed", range(4))
def test_classes_that_are_not_normal_are_no_noise(seed):
    """Of right labels normal classes take a tenth for wrong; two parts a class need no noise."""
    found = noise_by_shape(*exam(np.random.default_rng(seed)), K, np.ones(600))
    assert found.log_factor < -3
    assert not found.share_wrong > 0  # or it cannot tell


@pytest.mark.parametrize("seed", range(4))
def test_classes_that_overlap_are_no_evidence_either_way(seed):
    """A rate about which the shape says nothing would count against noise."""
    rng = np.random.default_rng(seed)
    true = rng.integers(2, size=300)
    assert noise_by_shape(rng.normal(size=(300, 3)), true, 2, np.ones(300)).log_factor == 0


def heavy_tails(seed, n=300):
    """Classes of Student's t, and labels of which none and a fifth is wrong."""
    rng = np.random.default_rng(seed)
    true = rng.integers(K, size=n)
    x = 1.2 * rng.normal(size=(K, 5))[true] + rng.standard_t(2.5, (n, 5))
    return x, true, corrupt(true, uniform_noise(K, 0.2), rng)


def test_heavy_tails_are_no_noise():
    """Normal classes took items far out for wrong labels in half of the sets."""
    found = []
    for seed in range(10):
        x, *labels = heavy_tails(seed)
        found.append([noise_by_shape(x, y, K, np.ones(300)).log_factor for y in labels])
    right, noisy = np.array(found).T
    assert np.mean(right > 0) <= 0.1
    assert np.mean(noisy > 3) >= 0.7


def test_classes_of_students_t_are_fitted():
    rng = np.random.default_rng(0)
    true = rng.integers(2, size=2_000)
    x = np.array([[-3.0, 0.0], [3.0, 0.0]])[true] + rng.standard_t(3, (2_000, 1)) * [1, 0]
    x[:, 1] = rng.normal(size=2_000)
    labels = np.eye(2)[true]

    def log_likelihood(columns, freedom):
        about = columns, true, np.ones(2_000), labels, lambda counts: np.eye(2), 2
        return fit_classes(*about, freedom).log_likelihood

    heavy, normal = x[:, :1], x[:, 1:]
    assert log_likelihood(heavy, 3) > log_likelihood(heavy, np.inf) + 50
    assert log_likelihood(normal, np.inf) > log_likelihood(normal, 3) + 50
    for columns in (heavy, normal, x):  # the normal distribution is the limit
        assert log_likelihood(columns, 1e7) == pytest.approx(log_likelihood(columns, np.inf), abs=1)
    # beside the density at its own maximum likelihood
    location, scale = stats.t.fit(heavy[true == 0, 0], f0=3)[1:]
    alone = stats.t.logpdf(heavy[true == 0, 0], 3, location, scale).sum()
    one = np.eye(1)[np.zeros(np.sum(true == 0), int)]
    codes = np.zeros(len(one), int)
    about = heavy[true == 0], codes, np.ones(len(one)), one, lambda counts: np.eye(1), 1
    assert fit_classes(*about, 3).log_likelihood == pytest.approx(alone, abs=0.1)


@pytest.mark.parametrize("n", [60, slow(100), slow(300)])
def test_any_noise_is_told_from_none_at_all(n):
    """Of one rate and of errors with a direction."""
    pairs = flip_noise(K, {(0, 1): 0.4})
    factors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, true, *_ = groups(rng, 1.0, n)
        labels = true, corrupt(true, uniform_noise(K, 0.2), rng), corrupt(true, pairs, rng)
        factors.append([noise_by_shape(x, y, K, np.ones(n)).log_factor for y in labels])
    right, *noisy = np.array(factors).T
    assert np.median(right) < -3
    for one in noisy:
        assert np.mean(one > right) >= 0.8
        assert n < 300 or np.mean(one[one != 0] > 0) >= 0.9


def finding(name, ends, **more):
    """Of 400 labels: shares by fit, neighbours, noise matrix, shape and nonlinear classifier."""
    (check,) = [one for one in CHECKS if one.name == name]
    independent, separable, matrix, shape, contradicted = ends
    none = np.zeros(400)
    about = {"matrix": matrix, "shape": shape, "contradicted": contradicted, "changed": 0.01}
    return check.run(Ends(independent, separable, none, none, np.ones(400), **about, **more))


@pytest.mark.parametrize(
    ("ends", "bad"),
    [
        ((0.01, 0.2, 0.03, 0.12, 0.25), True),
        ((0.01, 0.2, 0.03, 0.03, 0.25), False),  # no errors by the shape
        ((0.01, 0.04, 0.01, 0.12, 0.25), False),  # no error by the neighbours
        ((0.01, 0.2, 0.03, 0.12, 0.05), False),  # nor by a nonlinear classifier
        ((0.05, 0.2, 0.03, 0.12, 0.25), False),  # the fit expects nearly as many
        ((0.01, 0.2, 0.03, 0.06, 0.25), False),  # 0.06 is hardly more than chance
        ((0.01, 0.2, 0.03, 0.12, np.nan), True),  # there is no nonlinear classifier
        ((0.01, 0.2, 0.03, np.nan, 0.25), None),
    ],
)
def test_all_estimates_must_have_more_labels_wrong(ends, bad):
    found = finding(SHAPE, ends)
    assert (None if found is None else found.bad) == bad
    if bad:
        assert found.share_only
        assert "the noise matrix to be too clean" in found.sentence
        # the noise matrix has the errors: then it is the labels that stay
        in_matrix = (*ends[:2], 0.1, *ends[3:])
        assert not finding(SHAPE, in_matrix).bad
        stay = finding("labels that stay", in_matrix)
        assert stay.bad
        assert "12.0 % or more are wrong" in stay.sentence
    elif found is not None:
        assert not finding("labels that stay", ends).bad


@pytest.mark.parametrize(("name", "matrix"), [(SHAPE, 0.03), ("labels that stay", 0.2)])
def test_checked_labels_decide(name, matrix):
    checked = CheckedEnds(np.arange(100) < 1, np.full(100, 0.01), np.full(100, 0.2))
    ends = 0.01, 0.2, matrix, 0.12, 0.25
    assert finding(name, ends).bad
    assert not finding(name, ends, checked=checked).bad


def test_right_labels_of_many_small_classes_are_not_made_wrong():
    """Pseudo-labels of each other class made twice as many of them wrong."""
    true = np.arange(300) % 10
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.normal(0, 1.4, (10, 8))[true] + rng.normal(size=(300, 8))
        found.append(noise_by_shape(x, true, 10, np.ones(300)).share_wrong)
    assert np.mean(found) < 0.015
    few = slice(190)  # fewer than 20 of each class tell nothing
    assert np.isnan(noise_by_shape(x[few], true[few], 10, np.ones(190)).share_wrong)


def warned(estimator, x, given):
    with warnings.catch_warnings(record=True, action="always") as caught:
        estimator.fit(x, given)
    return [str(w.message) for w in caught if issubclass(w.category, NbmodelsWarning)]


def test_errors_that_a_fit_takes_for_overlap_are_estimated_by_the_shape():
    """The matrix held hardly an error, though a fifth of the labels is wrong."""
    rng = np.random.default_rng(5)
    x, true, *about = groups(rng, 1.5)
    given = near_borders(rng, true, *about)
    e = NoisyGaussianNB(random_state=0)
    (said,) = warned(e, x, given)
    assert said.startswith("errors seem to be the oftener the nearer items are to another class")
    assert e.chosen_["scores"] == LINEAR
    rates = [np.mean(given[true == k] == k) for k in range(K)]
    np.testing.assert_allclose(np.diag(e.noise_matrix_), rates, atol=0.12)
    assert "the oftener the nearer items are to another class" in e.verdict().sentence
    assert not warned(e, x, true)
    # settings that were asked for stay, with a warning
    e = NoisyGaussianNB(training=CrossFit(rounds=0), random_state=0)
    (said,) = warned(e, x, given)
    assert said.startswith("errors seem to be the oftener the nearer items are to another class")
    assert "the noise matrix is too clean" in said
    assert np.diag(e.noise_matrix_).min() > 0.9


def test_overlap_of_right_labels_is_no_reason_to_warn():
    x, true, *_ = groups(np.random.default_rng(5), 0.6, n=400)
    assert not warned(NoisyLogisticRegression(random_state=0), x, true)
