"""The share of wrong labels at both ends: errors that depend on features, classes that overlap."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from sklearn.neighbors import KNeighborsClassifier

from nbmodels import NoisyGaussianNB, NoisyLabelClassifier
from nbmodels.datasets import corrupt
from nbmodels.diagnostics.checks import OUTCOME_CHECKS, Outcome
from nbmodels.diagnostics.checks.base import run
from nbmodels.diagnostics.checks.checked import CheckedEnds
from nbmodels.diagnostics.checks.ends import CHECKS, Ends
from nbmodels.diagnostics.findings import INDEPENDENT, SEPARABLE, SHARE_WRONG, TWO_ENDS
from nbmodels.diagnostics.noise_range import End, NoiseRange, noise_range
from nbmodels.diagnostics.share_wrong import BOUNDED_BELOW, LOWER_BOUND, UPPER_BOUND, ShareLimits
from nbmodels.fitting.nearest import nearest_labels
from nbmodels.fitting.separable import fit_separable

PAIR = np.array([[0.7, 0.0, 0.3], [0.3, 0.7, 0.0], [0.0, 0.3, 0.7]])


def clouds(apart, n=400, seed=0, each=1):
    """Three classes of clouds on a circle; of several each, no line tells them apart."""
    rng = np.random.default_rng(seed)
    cloud = rng.integers(0, 3 * each, n)
    angle = 2 * np.pi * np.arange(3 * each) / (3 * each)
    means = apart * each / np.sqrt(3) * np.column_stack([np.cos(angle), np.sin(angle)])
    x = means[cloud] + rng.normal(size=(n, 2))
    logs = -0.5 * ((x[:, None] - means) ** 2).sum(2)
    return x, cloud % 3, logs, rng


def wrong_near_borders(logs, rng):
    """Labels drawn from flattened class probabilities: people err where classes look alike."""
    probs = np.exp(0.35 * (logs - logs.max(1, keepdims=True)))
    probs /= probs.sum(1, keepdims=True)
    return (probs.cumsum(1) < rng.random(len(probs))[:, None]).sum(1)


def finding(model):
    (found,) = [f for f in model.verdict().findings if f.name == TWO_ENDS]
    return found


@pytest.mark.parametrize(("high", "inside"), [(0.995, True), (0.98, False)])
def test_a_class_all_of_whose_labels_are_right_needs_an_upper_end_near_one(high, inside):
    ends = [
        End("", 0.1, np.array([0.0, 0.2]), np.full(2, 0.8), np.array([[0.6, 0.9], [0.6, high]]))
        for _ in range(2)
    ]
    found = NoiseRange(np.array(["ant", "bee"]), *ends, n_neighbours=5, z=0.0)
    given = ["ant", "ant", "ant", "bee", "bee", "bee"]
    share, classes = found.holds(given, ["ant", "ant", "ant", "ant", "bee", "bee"])
    assert share
    assert classes.tolist() == [True, inside]


@pytest.mark.parametrize(
    ("intervals", "words"),
    [
        (((0.1, 0.15), (0.12, 0.19)), "these intervals overlap"),
        (((0.0, 0.1), (0.09, 0.17)), "leave 0.0 to 17.0 % possible: check some rows by hand"),
        (((0.0, 0.05), (0.09, 0.17)), "cannot tell which: check some rows by hand"),
    ],
)
def test_rows_are_to_be_checked_where_the_ends_leave_much_possible(intervals, words):
    right, rates = np.full(2, 0.9), np.array([[0.8, 1.0]] * 2)
    ends = [End("", float(np.mean(one)), np.array(one), right, rates) for one in intervals]
    found = NoiseRange(np.array(["ant", "bee"]), *ends, n_neighbours=5, z=0.0)
    assert found.sentence.endswith(words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_both_ends_agree_where_classes_are_clear():
    x, y, _, rng = clouds(7.0)
    given = corrupt(y, PAIR, rng)
    model = NoisyGaussianNB(random_state=0).fit(x, given)
    found = model.noise_range_
    assert found.overlap
    assert not finding(model).bad
    inside, classes = found.holds(given, y)
    assert inside
    assert classes.all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_a_classifier_that_learned_the_errors_is_found_out():
    x, y, _, rng = clouds(4.0, seed=1, each=3)
    given = corrupt(y, PAIR, rng)
    model = NoisyLabelClassifier(KNeighborsClassifier(15), rounds=0, random_state=0).fit(x, given)
    own = 1 - model.label_posterior_[np.arange(len(y)), given].mean()
    assert own < 0.1
    assert finding(model).bad
    assert not model.verdict().ok
    assert "NoisyNeighbours" in model.verdict().sentence
    np.testing.assert_allclose(model.fitted_.separable.transition, PAIR.T, atol=0.08)


@pytest.mark.parametrize("rounds", ["auto", 0])
@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_classes_apart_along_a_line_show_the_errors_that_a_classifier_learned(rounds):
    x, y, _, rng = clouds(7.0)
    given = corrupt(y, PAIR, rng)
    model = NoisyLabelClassifier(KNeighborsClassifier(15), rounds=rounds, random_state=0)
    model.fit(x, given)
    assert np.mean(model.label_posterior_.argmax(1) == y) > 0.98
    if rounds == "auto":
        np.testing.assert_allclose(model.noise_matrix_, PAIR, atol=0.08)
        assert not finding(model).bad


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_overlap_without_noise_is_within_the_range():
    x, y, _, _ = clouds(2.2)
    model = NoisyGaussianNB(random_state=0).fit(x, y)
    low, high = model.noise_range_.share
    assert low < 0.01
    assert high > 0.1
    assert not finding(model).bad
    assert "cannot tell" in model.noise_range_.sentence
    verdict = model.verdict()
    if verdict.ok:
        assert verdict.sentence.startswith("Labels and features cannot tell how many")
        assert "All other checks of this fit passed (agreement, " in verdict.sentence


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_errors_that_depend_on_the_features_are_within_the_range():
    x, y, logs, rng = clouds(3.5, seed=1)
    given = wrong_near_borders(logs, rng)
    model = NoisyGaussianNB(random_state=0).fit(x, given)
    found = model.noise_range_
    share = np.mean(given != y)
    own = 1 - model.label_posterior_[np.arange(len(y)), given].mean()
    assert own < share - 0.05
    assert found.share[0] <= share <= found.share[1] + 0.03
    assert f"{100 * found.separable.share:.1f} %" in model.verdict().sentence


@pytest.mark.slow
def test_the_table_holds_both_ends():
    x, y, _, rng = clouds(7.0)
    found = NoisyGaussianNB(random_state=0).fit(x, corrupt(y, PAIR, rng)).noise_range_
    table = found.table()
    assert list(table.index) == ["share wrong", "0 right", "1 right", "2 right"]
    assert (table["low"] <= table[["independent", "separable"]].min(axis=1)).all()
    assert (table["high"] >= table[["independent", "separable"]].max(axis=1)).all()


def test_there_is_no_range_of_known_noise():
    x, y, _, rng = clouds(7.0)
    model = NoisyGaussianNB(noise=PAIR, random_state=0).fit(x, corrupt(y, PAIR, rng))
    with pytest.raises(AttributeError, match="noise_range_: expected"):
        _ = model.noise_range_


@pytest.mark.slow
def test_nor_where_features_say_nothing():
    rng = np.random.default_rng(0)
    model = NoisyGaussianNB(random_state=0).fit(rng.normal(size=(60, 2)), rng.integers(2, size=60))
    with pytest.raises(AttributeError, match="noise_range_: the features"):
        _ = model.noise_range_
    told = "The share of wrong labels is not estimated, since the features do not surely predict"
    assert told in model.verdict().sentence
    assert "lower bound" not in model.verdict().sentence


def test_an_end_is_preferred_only_where_it_surely_predicts_labels():
    (check,) = [one for one in CHECKS if one.name == TWO_ENDS]
    rng = np.random.default_rng(0)
    gain = rng.normal(0, 1, 400)
    gain -= gain.mean()
    for mean, bad in ((0.3, True), (0.05, False), (-0.3, False)):
        assert check.run(Ends(0.05, 0.30, gain + mean, gain + 1, np.ones(400))).bad == bad
    # a fit that predicts labels badly says nothing of overlap
    assert not check.run(Ends(0.05, 0.30, gain + 1, gain - 0.3, np.ones(400))).bad
    alike = check.run(Ends(0.29, 0.30, gain + 0.3, gain + 0.3, np.ones(400)))
    assert not alike.bad
    assert "as many labels" in alike.sentence


def ends(independent, separable, gain=0.0, checked=None):
    some = np.random.default_rng(0).normal(size=400)
    some += gain - some.mean()
    return Ends(independent, separable, some, some, np.ones(400), checked)


@pytest.mark.parametrize("gain", [0.3, 0.0])
def test_all_sentences_have_one_share_without_overlap(gain):
    """Another number of neighbours is selected than that of the end of the range."""
    at = replace(ends(0.0, 0.157, gain), matrix=0.0, shape=0.14, contradicted=0.2, widest=0.167)
    codes, one = np.zeros(4, int), np.ones(4)
    outcome = Outcome(np.eye(2)[codes], one, codes, "ab", False, (0.0,), 4.0, ends=at)
    found = [*run(CHECKS, at), *run(OUTCOME_CHECKS, outcome)]
    said = [one.sentence for one in found if SEPARABLE in one.sentence]
    assert len(said) == 3
    assert all(f"16.7 % {SEPARABLE}" in one for one in said)
    assert not any("15.7" in one for one in said)


def draws_of(k=3):
    """Posterior draws under which labels are at random."""
    rates, shares = np.full((1, 9, k, k), 1 / k), np.full((1, 9, k), 1 / k)
    found = {"noise_matrix": xr.DataArray(rates), "class_prior": xr.DataArray(shares)}
    return {"posterior": SimpleNamespace(dataset=found)}


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_a_share_is_of_all_items_also_where_neighbours_are_of_a_sample():
    x, y, _, rng = clouds(5.0, n=200)
    given = corrupt(y, PAIR, rng)
    model = NoisyGaussianNB.published(random_state=0).fit(x, given)
    sample = fit_separable(nearest_labels(x, given, 3, most=60), 3, np.ones(200))
    model.fitted_ = replace(model.fitted_, separable=sample)
    model._verdict = None
    wrong = 1 - model.label_posterior_[np.arange(200), given]
    assert abs(wrong[sample.rows].mean() - wrong.mean()) > 0.001
    share = f"{100 * wrong.mean():.1f} % of the given labels are wrong"
    assert share in model.verdict().sentence
    assert model.noise_range(draws_of()).independent.share == pytest.approx(wrong.mean())
    (about, *_) = run(CHECKS, replace(ends(0.085, 0.192), every=0.082))
    assert about.sentence.startswith("8.2 % of the given labels are wrong by this fit")


@pytest.mark.parametrize(("other", "words"), [(0.111, INDEPENDENT), (0.116, LOWER_BOUND)])
def test_a_share_above_the_other_end_is_no_lower_bound(other, words):
    codes, one = np.zeros(4, int), np.ones(4)
    outcome = Outcome(np.eye(2)[codes], one, codes, "ab", False, (0.0,), 4.0, share=0.114)
    (said,) = (
        one.sentence
        for one in run(OUTCOME_CHECKS, replace(outcome, ends=ends(0.114, other)))
        if one.name == SHARE_WRONG
    )
    assert words in said
    assert (f"11.1 % {SEPARABLE}" in said) is (words == INDEPENDENT)
    assert BOUNDED_BELOW.beside(0.114, other) == words
    assert BOUNDED_BELOW.beside(0.114, np.nan) == LOWER_BOUND
    assert ShareLimits(UPPER_BOUND).beside(0.114, other) == UPPER_BOUND


@pytest.mark.parametrize(("widest", "direction"), [(0.25, True), (0.32, False)])
def test_what_a_fit_mistakes_is_named_where_both_shares_show_it(widest, direction):
    found = next(run(CHECKS, replace(ends(0.3, 0.05, 0.3), widest=widest)))
    assert found.bad
    assert found.sentence.endswith("the fit takes overlap for errors") is direction


def checks(wrong, independent, separable, n=100):
    """Labels of which some are wrong, and of which each end expects some to be."""
    return CheckedEnds(np.arange(n) < wrong, *(np.full(n, e / n) for e in (independent, separable)))


@pytest.mark.parametrize(
    ("wrong", "support"),
    [
        (6, "support the former"),
        (24, "support the latter"),
        (15, "lie between the two"),
        (50, "agree with neither, and are nearer to the latter"),
    ],
)
def test_checked_labels_decide_between_the_ends(wrong, support):
    (check,) = [one for one in CHECKS if one.name == TWO_ENDS]
    checked = checks(wrong, 5, 27)
    assert checked.decided
    found = check.run(ends(0.03, 0.25, checked=checked))
    assert not found.undecided
    assert found.sentence.endswith(
        f"checked labels {support} (5 and 27 of 100 expected to be wrong)"
    )
    assert f"Of 100 checked labels {wrong} are wrong, where 5 and 27" in checked.sentence


def test_checked_labels_may_leave_the_ends_open():
    (check,) = [one for one in CHECKS if one.name == TWO_ENDS]
    checked = checks(2, 1, 4, n=12)
    found = check.run(ends(0.03, 0.25, checked=checked))
    assert found.undecided
    told = "checked labels do not decide between the two (1 and 4 of 12 expected to be wrong)"
    assert told in found.sentence


def test_checks_that_bear_out_a_fit_outdo_held_out_labels():
    (check,) = [one for one in CHECKS if one.name == TWO_ENDS]
    assert check.run(ends(0.03, 0.25, 0.3)).bad
    assert not check.run(ends(0.03, 0.25, 0.3, checks(6, 5, 27))).bad
    assert check.run(ends(0.03, 0.25, 0.3, checks(24, 5, 27))).bad


def test_known_noise_with_rates_of_zero_is_no_failed_check():
    x, y, _, rng = clouds(7.0)
    given = corrupt(y, PAIR, rng)
    assert NoisyGaussianNB(noise=PAIR, random_state=0).fit(x, given).verdict().ok


def test_the_interval_begins_at_no_wrong_label_where_labels_may_be_right():
    """A fit's own interval is of noisy labels, its estimate averaged over whether they are."""
    about = np.array(["ant", "bee"]), np.eye(2), 0.02
    draws = np.broadcast_to([[0.8, 0.2], [0.2, 0.8]], (50, 2, 2)), np.full((50, 2), 0.5)
    x = np.repeat(np.eye(2), 40, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(80, 2))
    near = nearest_labels(x, np.repeat([0, 1], 40), 2)
    other = fit_separable(near, 2, np.ones(80))
    one, two = (noise_range(*about, *draws, other, 0.0, 0, noisy) for noisy in (0.99, 0.5))
    np.testing.assert_allclose(one.independent.share_interval, (0.02, 0.2))
    np.testing.assert_allclose(two.independent.share_interval, (0.0, 0.2))


def test_a_range_says_what_checked_labels_speak_for():
    about = np.array(["ant", "bee"]), np.eye(2), 0.02
    draws = np.broadcast_to([[0.8, 0.2], [0.2, 0.8]], (50, 2, 2)), np.full((50, 2), 0.5)
    x = np.repeat(np.eye(2), 40, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(80, 2))
    other = fit_separable(nearest_labels(x, np.repeat([0, 1], 40), 2), 2, np.ones(80))
    found = noise_range(*about, *draws, other, 0.0, 0, checked=checks(24, 5, 27)).sentence
    assert found.endswith("where 5 and 27 are expected: they support the latter")
    assert "check some rows by hand" not in found


def test_the_other_end_has_probabilities_without_the_checks():
    y = np.repeat([0, 1], 40)
    x = np.eye(2)[y] + 0.01 * np.random.default_rng(0).normal(size=(80, 2))
    given = np.where(np.arange(80) % 8 == 0, 1 - y, y)
    near = nearest_labels(x, given, 2)
    trusted = np.where(np.arange(80) < 20, 1 - y, -1)  # checks that contradict everything
    found = fit_separable(near, 2, np.ones(80), trusted)
    checked = near.rows < 20
    assert (found.resp[checked].argmax(1) == 1 - y[near.rows][checked]).all()
    assert np.mean(found.unchecked[checked].argmax(1) == y[near.rows][checked]) > 0.8
    plain = fit_separable(near, 2, np.ones(80))
    np.testing.assert_array_equal(plain.unchecked, plain.resp)


def test_row_weights_may_be_fractions(monkeypatch):
    """Gibbs sampling takes weights of 0 and 1 alone."""
    x, y, _, rng = clouds(5.0, n=90)
    draws, asked = draws_of(), []

    def posterior(self, method="gibbs", **options):
        asked.append(method)
        return draws

    monkeypatch.setattr(NoisyGaussianNB, "posterior", posterior)
    for weights in (None, rng.uniform(0.5, 1.5, 90)):
        model = NoisyGaussianNB.published(random_state=0).fit(x, y, sample_weight=weights)
        assert model.noise_range_.independent.share_interval[1] == pytest.approx(2 / 3)
    assert asked == ["gibbs", "nuts"]


@pytest.mark.slow
def test_the_range_of_weighted_rows_is_that_of_about_as_many():
    x, y, _, rng = clouds(5.0)
    given = corrupt(y, PAIR, rng)
    weights = rng.uniform(0.5, 1.5, len(y))
    model = NoisyGaussianNB.published(random_state=0)
    one = model.fit(x, given).noise_range_.independent.share_interval
    other = model.fit(x, given, sample_weight=weights).noise_range_.independent.share_interval
    np.testing.assert_allclose(one, other, atol=0.03)
