"""Intervals of audits hold as often as they say, and are no wider than a plain sample's."""

import itertools

import numpy as np
import pytest
from scipy import stats

from nbmodels.audit import intervals
from nbmodels.audit.allocation import INFLATION, inclusion, intensity, joined, stratify
from nbmodels.audit.intervals import Sample, domain_rate, jeffreys, stratified_share


@pytest.fixture
def few_draws(monkeypatch):
    """An end then varies by 5 % of the spread in place of 2 %, far less than between audits."""
    monkeypatch.setattr(intervals, "_DRAWS", 1500)


def calibrated(share, n, rng):
    """P(wrong) with AUC 0.95, and the errors."""
    shift = stats.norm.ppf(0.95) * np.sqrt(2)
    wrong = rng.random(n) < share
    logit = shift * (rng.normal(shift * wrong) - shift / 2) + np.log(share / (1 - share))
    return 1 / (1 + np.exp(-logit)), wrong


def audited(p, wrong, n, rng):
    strata, checks = stratify(p, n, rng)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(strata == h), m, replace=False) for h, m in enumerate(checks)]
    )
    sizes = np.bincount(strata)
    sample = Sample(strata[rows], sizes)
    means = np.bincount(strata, p) / sizes
    return stratified_share(sample, wrong[rows], p[rows], means, rng)


def coverage_and_width(draw, repeats, n=100):
    held, width, plain = [], [], []
    for seed in range(repeats):
        rng = np.random.default_rng([7, seed])
        p, wrong = draw(rng)
        found = audited(p, wrong, n, rng)
        seen = wrong[rng.choice(len(wrong), n, replace=False)].mean()
        low, high = jeffreys(seen, n / (1 - n / len(wrong)))
        held.append(found.low <= wrong.mean() <= found.high)
        width.append(found.width)
        plain.append(high - low)
    return np.mean(held), np.mean(width) / np.mean(plain)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("share", [0.05, 0.2])
@pytest.mark.parametrize("useful", [True, False])
def test_intervals_hold_and_gain(share, useful):
    def draw(rng):
        p, wrong = calibrated(share, 2000, rng)
        return (p if useful else rng.permutation(p)), wrong

    held, ratio = coverage_and_width(draw, 200)
    assert 0.84 < held < 0.96  # 200 repeats: two standard errors are 4 points
    assert ratio < (0.72 if useful else 1.06)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_intervals_hold_where_suspects_are_too_sure():
    """P(wrong) 0.99 where a tenth of the suspects is right: 75 % coverage with one common prior."""

    def draw(rng):
        suspect = rng.random(1800) < 0.125
        p = np.where(suspect, 1 - rng.beta(0.5, 80, 1800), rng.beta(0.3, 800, 1800))
        return p, suspect & (rng.random(1800) < 0.905)

    held, ratio = coverage_and_width(draw, 200)
    assert held > 0.82
    assert ratio < 0.5


def better_than_it_says(share, n, rng):
    """P(wrong) whose upper end is wrong more often than it says: one stratum has all errors."""
    wrong = rng.random(n) < share
    return np.where(wrong, rng.beta(4, 1.5, n), rng.beta(0.3, 8, n)), wrong


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_intervals_hold_where_one_stratum_has_all_errors():
    """5 % wrong: 82 % coverage where all strata shared the pseudo-counts, the low end too high."""
    held, ratio = coverage_and_width(lambda rng: better_than_it_says(0.05, 2000, rng), 400)
    assert 0.87 < held < 0.97
    assert ratio < 0.45


def test_a_stratum_of_which_all_checked_labels_are_wrong_may_hold_right_ones():
    stratum = np.repeat(np.arange(10), 10)
    means = np.r_[np.full(9, 0.03), 0.7]
    sample = Sample(stratum, np.r_[np.full(9, 210), 110])
    about = stratum == 9, means[stratum], means
    found = stratified_share(sample, *about, np.random.default_rng(0))
    # a tenth of that stratum may be right: ten of ten are then seen to be wrong once in three times
    assert found.low < 110 / 2000 * 0.9
    assert found.value == pytest.approx(110 / 2000)
    # and the other way about
    right = stratum < 9, 1 - means[stratum], 1 - means
    other = stratified_share(sample, *right, np.random.default_rng(0), suspected=means)
    assert other.high > 1 - 110 / 2000 * 0.9


def test_unequal_weights_within_a_stratum():
    stratum, inverse = np.zeros(6, int), np.array([1.0, 1, 1, 3, 3, 3])
    sample = Sample(stratum, np.array([120]), inverse)
    y = np.array([1.0, 0, 0, 0, 0, 0])
    assert sample.means(y)[0] == pytest.approx(1 / 12)
    np.testing.assert_allclose(sample.weights, 10 * inverse)
    assert 144 / 30 / 2 <= sample.effective(y)[0] <= 12
    assert sample.effective(0 * y)[0] == pytest.approx(144 / 30)  # Kish
    equal = Sample(stratum, np.array([120]))
    assert equal.effective(y)[0] == pytest.approx(6)
    np.testing.assert_allclose(equal.mean_variance, (1 - 6 / 120) / 30)


def test_strata_with_few_checks_are_joined_to_the_more_alike_neighbour():
    sizes, p = np.full(5, 100), np.array([0.01, 0.02, 0.3, 0.9, 0.95])
    np.testing.assert_array_equal(joined(np.full(5, 4), sizes, p), np.arange(5))
    np.testing.assert_array_equal(joined(np.array([5, 5, 5, 2, 5]), sizes, p), [0, 1, 2, 3, 3])
    np.testing.assert_array_equal(joined(np.array([0, 5, 5, 5, 5]), sizes, p), [0, 0, 1, 2, 3])
    np.testing.assert_array_equal(joined(np.array([1, 0, 0, 0, 0]), sizes, p), np.zeros(5))


def test_everything_checked_is_a_point():
    rng = np.random.default_rng(0)
    p, wrong = calibrated(0.3, 57, rng)
    found = audited(p, wrong, 57, rng)
    assert found.low == found.high == found.value == pytest.approx(wrong.mean())


def test_no_error_seen_gives_an_upper_end_only():
    rng = np.random.default_rng(0)
    found = audited(np.full(1000, 1e-9), np.zeros(1000, bool), 100, rng)
    assert found.value == found.low == 0
    # one-sided, a hundred rows without an error leave up to some 2 to 3 %
    assert 0.01 < found.high < 0.03


def test_ends_never_contradict_what_was_seen():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 40):
        p, wrong = calibrated(0.5, 50, rng)
        found = audited(p, wrong, n, rng)
        assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("n_checks", [1, 7, 100, 1000, 1999, 2000])
@pytest.mark.parametrize("kind", ["graded", "equal", "two values"])
def test_strata_share_out_all_checks(n_checks, kind):
    rng = np.random.default_rng(0)
    p = {
        "graded": calibrated(0.1, 2000, rng)[0],
        "equal": np.full(2000, 0.2),
        "two values": np.repeat([0.0, 1.0], [1990, 10]),
    }[kind]
    strata, checks = stratify(p, n_checks, rng)
    sizes = np.bincount(strata, minlength=len(checks))
    assert checks.sum() == n_checks
    assert (checks <= sizes).all()
    assert (checks > 0).all()
    # strata are ordered by P(wrong)
    ends = [(p[strata == h].min(), p[strata == h].max()) for h in range(len(checks))]
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ends))


def test_unequal_weights_are_bounded():
    p, _ = calibrated(0.05, 5000, np.random.default_rng(0))
    r = intensity(p)
    assert r.max() > 1.5 * r.min()
    assert r.mean() * (1 / r).mean() <= INFLATION + 1e-6
    pi = inclusion(p, 4900)
    assert pi.max() <= 1
    assert pi.sum() == pytest.approx(4900)


def test_predictions_are_used_where_they_explain_errors():
    rng = np.random.default_rng(1)
    wrong = rng.random(4000) < 0.3
    p = np.clip(wrong + rng.normal(0, 0.1, 4000), 0, 1)
    rows = rng.choice(4000, 200, replace=False)
    sample = Sample(np.zeros(200, int), np.array([4000]))
    own = stratified_share(sample, wrong[rows], p[rows], np.array([p.mean()]), rng)
    none = stratified_share(sample, wrong[rows], np.zeros(200), np.array([0.0]), rng)
    assert own.width < none.width / 2
    assert own.low < wrong.mean() < own.high


def test_sure_predictions_of_right_labels_are_no_suspects():
    """Nearly all suggestions are right in all strata: no half error is added to each of these."""
    stratum = np.repeat(np.arange(8), 12)
    right = np.ones(96, bool)
    right[[0, 30, 60]] = False
    sample = Sample(stratum, np.full(8, 200))
    about = right, np.full(96, 0.97), np.full(8, 0.97)
    found = stratified_share(sample, *about, np.random.default_rng(0), suspected=np.full(8, 0.03))
    assert found.low + 0.01 < found.value < found.high - 0.01
    biased = stratified_share(sample, *about, np.random.default_rng(0))
    assert biased.high < found.high - 0.005  # so that the test can tell


def test_predictions_that_hardly_differ_are_not_blown_up():
    """Of twelve suspects at P(wrong) of nearly one, the right one has a little less by chance."""
    p = np.r_[np.zeros(1800), np.full(150, 0.9999)]
    p[1810:1815] = 0.35  # none of them is checked
    checked = np.r_[np.arange(80), np.arange(1900, 1912)]
    p[1911] = 0.9989
    wrong = p[checked] > 0.999
    sample = Sample((checked >= 1800).astype(int), np.array([1800, 150]))
    means = np.array([p[:1800].mean(), p[1800:].mean()])
    found = stratified_share(sample, wrong, p[checked], means, np.random.default_rng(0))
    assert 0 <= found.low <= found.value <= found.high <= 0.2
    assert found.value == pytest.approx(150 / 1950 * 11 / 12, abs=0.01)


def test_rate_of_a_domain():
    sample = Sample(np.repeat([0, 1], 50), np.array([500, 500]))
    domain = np.tile([True, False], 50)
    outcome = np.arange(100) % 10 == 0
    found = domain_rate(sample, domain, outcome)
    assert found.value == pytest.approx(0.2)
    low, high = jeffreys(0.2, 50)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02)
    nothing = domain_rate(sample, np.zeros(100, bool), outcome)
    assert (nothing.low, nothing.high) == (0, 1)
