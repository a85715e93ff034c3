"""The verdict on a fit: it fires where it should, and as seldom as it should."""

import contextlib
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from marks import slow

from nbmodels import (
    CrossFit,
    DawidSkene,
    IdentifiabilityWarning,
    Joint,
    JointNB,
    NbmodelsWarning,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyLogisticRegression,
    NoisyNeighbours,
    VerdictWarning,
)
from nbmodels.channels import NeighbourVotes, Transition, TrustedLabels
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.diagnostics.check import _taken, check_model
from nbmodels.diagnostics.checks import (
    LABEL_CHECKS,
    OUTCOME_CHECKS,
    LabelEvidence,
    Outcome,
    remedies,
)
from nbmodels.diagnostics.checks.base import Check, Measurement, always, run
from nbmodels.diagnostics.findings import AGREEMENT, Finding, Verdict
from nbmodels.diagnostics.score_tests import LEVEL, largest, summed
from nbmodels.diagnostics.share_wrong import LOWER_BOUND, UPPER_BOUND, ShareLimits, bounds
from nbmodels.errors import Caution

K, N = 3, 1000
NAMES = np.array(["apple", "berry", "cherry"], object)


# Fits -------------------------------------------------------------------------------------------


@cache
def data(kind="right", n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    correlation = 0.6 if kind == "correlated" else 0.0
    root = np.linalg.cholesky((1 - correlation) * np.eye(6) + correlation)
    x = rng.normal(0, 1.2, (K, 6))[y]
    if kind == "heavy":
        x = x + rng.standard_t(3, x.shape)
    elif kind == "skewed":
        x = np.exp(x + rng.normal(size=x.shape))
    else:
        x = x + rng.normal(size=x.shape) @ root.T
    x = pd.DataFrame(x, columns=list("abcdef"))
    return x, NAMES[y], NAMES[corrupt(y, uniform_noise(K, 0.2), rng)]


def fitted(kind="right", seed=0, **options):
    x, _, given = data(kind, seed=seed)
    with contextlib.nullcontext() if kind == "right" else pytest.warns(VerdictWarning):
        return NoisyGaussianNB.published(random_state=0, **options).fit(x, given)


@pytest.mark.parametrize("seed", [slow(0), 1, 2])
def test_nothing_speaks_against_a_right_model(seed):
    found = fitted(seed=seed).verdict()
    assert found.ok
    assert found.sentence.startswith("All checks of this fit passed")
    asked = ["agreement", "overconfidence", "calibration", "correlation", "tails", "skew"]
    assert [f.name for f in found.findings][:6] == asked


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kind", "name", "remedy"),
    [
        ("heavy", "tails", remedies.STUDENT),
        ("correlated", "correlation", remedies.FULL_COVARIANCE),
        ("skewed", "skew", "logarithms"),
    ],
)
def test_a_broken_assumption_is_named_with_its_remedy(kind, name, remedy, seed):
    found = fitted(kind, seed=seed).verdict()
    (one,) = [f for f in found.findings if f.name == name]
    assert one.bad
    assert not found.ok
    assert any(remedy in r for r in one.remedies)
    assert any(f"column {c}" in one.sentence or f"columns {c}" in one.sentence for c in "abcdef")
    assert one.p_value < LEVEL
    assert abs(one.effect) >= one.threshold


def test_a_fit_that_leaves_its_labels_is_reported():
    e = fitted("correlated")
    (one,) = [f for f in e.verdict().findings if f.name == "agreement"]
    assert one.bad
    assert one.effect > one.threshold
    assert "follows clusters of the features instead of the labels" in e.verdict().sentence
    _, y, given = data("correlated")
    assert np.mean(e.classes_[e.label_posterior_.argmax(1)] == y) < np.mean(given == y)


def test_the_verdict_as_data():
    e = fitted("heavy")
    table = e.verdict().table()
    assert list(table["name"]) == [f.name for f in e.verdict().findings]
    assert {"statistic", "p_value", "effect", "bad", "sentence", "remedies"} <= set(table)
    assert e.verdict() is e.verdict()
    again = pickle.loads(pickle.dumps(e))
    assert again.verdict().sentence == e.verdict().sentence
    again._verdict = None  # looked at anew, the same rows and columns
    pd.testing.assert_frame_equal(again.verdict().table(), table)


def test_corrected_labels_name_failed_checks():
    frame = fitted("heavy").corrected_labels()
    assert frame.attrs["verdict"].startswith("Do not use this fit")
    assert "tails" in frame["failed_checks"].iloc[0]
    right = fitted().corrected_labels()
    assert "failed_checks" not in right
    assert right.attrs["verdict"].startswith("All checks of this fit passed")


def test_what_cross_fitting_handles_is_no_reason_to_warn():
    x, y, given = data("correlated")
    e = NoisyGaussianNB.published(random_state=0, training="cross_fit").fit(
        x, given
    )  # a warning is an error here
    assert e.verdict().ok
    assert np.mean(e.label_posterior_.argmax(1) == np.searchsorted(NAMES, y)) > 0.8
    assert not any(remedies.CROSS_FIT in f.remedies for f in e.verdict().findings)


def test_discounted_features_are_for_information():
    x, _, given = data("heavy")
    e = NoisyGaussianNB.published(random_state=0, training=Joint(weight=0.2, size_power=0.0))
    with pytest.warns(VerdictWarning, match="predict the labels better than the fit assumes"):
        e.fit(x, given)
    found = {f.name: f for f in e.verdict().findings}
    assert not found["tails"].bad
    assert not found["correlation"].bad


def test_half_a_million_rows_do_not_make_a_trifle_bad():
    found = fitted().verdict()
    trifle = replace(found.findings[3], p_value=1e-300, statistic=40.0, effect=0.05)
    assert not largest(summed(np.full(500_000, 0.05), np.ones(500_000))).beyond(0.2)
    assert Verdict((trifle,)).ok


def test_a_shift_of_the_noise_with_a_column_is_found():
    x, y, _ = data()
    rng = np.random.default_rng(1)
    codes = np.searchsorted(NAMES, y)
    wrong = corrupt(codes, uniform_noise(K, 0.6), rng)
    given = NAMES[np.where(x["a"] > x["a"].median(), wrong, codes)]
    with pytest.warns(VerdictWarning, match="column a is correlated with a right label"):
        NoisyGaussianNB.published(random_state=0).fit(x, given)


@pytest.mark.parametrize("n", [2, 5, 12, 40])
def test_few_rows_are_no_reason_to_fail(n):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(n, 2)), np.arange(n) % 2
    e = NoisyGaussianNB.published(random_state=0).fit(x, y)
    assert e.verdict().ok
    assert all(np.isfinite(f.effect) for f in e.verdict().findings)


def test_missing_cells_labels_and_weights():
    x, _, given = data()
    rng = np.random.default_rng(0)
    holes = x.mask(rng.random(x.shape) < 0.1)
    some = np.where(rng.random(N) < 0.2, None, given)
    weights = rng.integers(0, 3, N)
    e = NoisyGaussianNB.published(missing_values=np.nan, missing_label=None, random_state=0)
    e.set_params(missing_label="none").fit(
        holes, np.where(pd.isna(some), "none", some), sample_weight=weights
    )
    assert e.verdict().ok


def test_classes_that_dissolve():
    e = fitted()
    resp = e.fit_.resp.copy()
    resp[:, 1], resp[:, 0] = 0, resp[:, 0] + resp[:, 1]
    found = check_model(replace(e.fit_, resp=resp), e.fitted_.data, e.classes_, e.fitted_.columns)
    (one,) = [f for f in found.findings if f.name == "drift"]
    assert one.bad
    assert "berry" in one.sentence


def test_starts_that_do_not_agree():
    e = fitted()
    first = e.fit_.restarts[0]
    for gain, bad in ((0.5, False), (50.0, True)):
        fit = replace(e.fit_, restarts=(first, first + gain))
        found = check_model(fit, e.fitted_.data, e.classes_, e.fitted_.columns)
        (one,) = [f for f in found.findings if f.name == "restarts"]
        assert one.bad == bad


def test_a_verdict_warns_by_its_cautions():
    bad = fitted("heavy").verdict()
    (caution,) = bad.cautions()
    assert caution == Caution(VerdictWarning, bad.sentence)
    assert fitted().verdict().cautions() == ()
    assert Verdict(()).sentence == "No check could be made of this fit."


@pytest.mark.slow
def test_errors_with_a_direction_are_no_single_rate():
    x, y, _ = data()
    mistaken = (y == NAMES[0]) & (np.random.default_rng(0).random(N) < 0.45)
    model = NoisyGaussianNB.published(
        noise="symmetric", random_state=0, training=Joint(weight=0.1, size_power=0.0)
    )
    with pytest.warns(VerdictWarning):  # on the weight
        model.fit(x, np.where(mistaken, NAMES[1], y))
    (one,) = model.verdict().advice
    assert one.name == "one error rate"
    assert not one.bad  # advice, and no reason to warn
    assert one.remedies == (remedies.FULL_NOISE,)
    assert "errors may have a direction" in one.sentence
    # errors without one
    right = fitted(noise="symmetric").verdict()
    assert "one error rate" in {f.name for f in right.findings}
    assert right.advice == ()
    # a rate for every pair, and a given matrix, raise no such question
    assert "one error rate" not in {f.name for f in fitted().verdict().findings}
    fixed = fitted(noise=0.7 * np.eye(K) + 0.1).verdict()
    assert "one error rate" not in {f.name for f in fixed.findings}


def test_a_new_check_is_one_entry():
    halves = Check(
        "halves",
        "Are there as many of the first class as of all others?",
        lambda at, most: Measurement(gap := abs(at.resp[:, 0].mean() - 0.5), gap > most),
        0.1,
        lambda at, found: f"class {at.names[0]} is {found.effect:.2f} off a half",
        always("another class"),
        passed="half of the items are of the first class",
    )
    resp = np.repeat([[0.9, 0.1]], 4, 0)
    one, other = np.ones(4), np.zeros(4, int)
    (found,) = run([halves], Outcome(resp, one, other, "ab", False, (0.0,), 4.0))
    assert np.isnan([found.statistic, found.p_value]).all()
    assert replace(found, statistic=0.0, p_value=0.0) == Finding(
        *(halves.name, halves.question, 0.0, 0.0),
        *(pytest.approx(0.4), 0.1, True, "class a is 0.40 off a half", ("another class",)),
    )
    (advice,) = run([replace(halves, advisory=True)], Outcome(resp, one, other, "ab", 0, (), 4.0))
    assert not advice.bad
    (listed,) = Verdict((advice,)).advice
    assert listed is advice


def test_an_estimator_must_be_fitted_first():
    with pytest.raises(Exception, match="not fitted"):
        NoisyBernoulliNB.published().verdict()


def test_no_audit_is_advised_after_one():
    e = fitted()
    codes = np.asarray(e.fitted_.data.parts["labels"])
    resp = np.roll(e.fit_.resp, 1, axis=1)  # a fit that fails
    about = (replace(e.fit_, resp=resp), e.fitted_.data, e.classes_, e.fitted_.columns)
    none = ("NoisyGaussianNB", ())
    assert remedies.AUDIT in {r for f in check_model(*about, advised=none).bad for r in f.remedies}
    parts = {**e.fitted_.data.parts, "trusted": np.where(np.arange(len(codes)) < 20, 0, K)}
    data_ = replace(e.fitted_.data, parts=parts)
    channel = TrustedLabels.of(K)
    fit = replace(
        about[0],
        model={**e.fit_.model, "trusted": channel},
        params={**e.fit_.params, "trusted": channel.prior},
    )
    after = check_model(fit, data_, *about[2:], advised=none)
    assert not any(remedies.AUDIT in f.remedies for f in after.findings)


def test_remedies_are_those_that_an_estimator_can_take():
    every = (remedies.CROSS_FIT, remedies.SMALLER_WEIGHT, remedies.SYMMETRIC_NOISE, remedies.AUTO)
    assert remedies.open_to(every, "NoisyNeighbours", ("solver",)) == (remedies.AUTO,)
    auto = remedies.open_to(every, "AutoNoisyClassifier", ("noise", "solver"))
    assert auto == (remedies.SYMMETRIC_NOISE,)
    naive = NoisyGaussianNB()
    assert remedies.open_to(every, "NoisyGaussianNB", naive._settable()) == every
    joint = JointNB({"a": NoisyGaussianNB()})
    assert remedies.open_to(every, "JointNB", joint._settable()) == every[1:]


def test_every_remedy_that_sets_a_parameter_is_known():
    named = {r for n, r in vars(remedies).items() if n.isupper() and isinstance(r, str)}
    asks = {r for r in named if "=" in r and "trusted=" not in r}
    # another estimator, which has the parameter
    assert asks - {remedies.STUDENT} <= set(remedies._SETS)


def test_neighbours_take_overlap_for_noise():
    assert bounds({"labels": Transition.of(2)}) == LOWER_BOUND
    assert bounds({"labels": Transition.of(2), "near": NeighbourVotes.of(2)}) == UPPER_BOUND
    emission = fitted().fit_.model["features"]
    both = bounds({"features": emission, "near": NeighbourVotes.of(3)})
    assert both == f"{LOWER_BOUND}, and {UPPER_BOUND}"


@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_the_share_by_neighbours_is_an_upper_bound():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 120)
    x = rng.normal(size=(120, 2)) + 1.2 * y[:, None]  # every label is right
    verdict = NoisyNeighbours(n_neighbors=3, random_state=0).fit(x, y).verdict()
    assert "wrong: an upper bound if classes overlap" in verdict.sentence
    assert "lower bound" not in verdict.sentence
    told = " ".join(r for f in verdict.findings for r in f.remedies)
    assert "training" not in told
    assert "noise=" not in told


def test_no_share_is_given_where_features_say_nothing():
    resp, codes = np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([0, 1])
    limits = ShareLimits("since nothing is known", estimated=False)
    about = Outcome(resp, np.ones(2), codes, ["ant", "bee"], False, (), 2.0, limits=limits)
    (share,) = [f for f in run(OUTCOME_CHECKS, about) if f.name == "share of wrong labels"]
    assert share.sentence == "The share of wrong labels is not estimated, since nothing is known"
    assert np.isnan(share.effect)


def test_labels_that_stay_against_the_fit_are_told_of():
    resp, codes = np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([0, 1])
    told = []
    for kept in (0.0, 0.25):
        about = Outcome(resp, np.ones(2), codes, ["ant", "bee"], False, (), 2.0, kept=kept)
        told.append(
            next(f.sentence for f in run(OUTCOME_CHECKS, about) if "estimated" in f.sentence)
        )
    assert "stay" not in told[0]
    assert told[1].startswith(told[0] + "; 25.0 % of the labels would be changed by the fit alone")


def evidence(seen, commonest, n=1000):
    """Of eight classes, one of them the commonest; a reference predicts a share of the labels."""
    codes = np.arange(n) % 8
    codes[: int(commonest * n)] = 0
    reference = np.where(np.arange(n) % 100 < 100 * seen, codes, (codes + 1) % 8)
    transition = 0.8 * np.eye(8) + 0.2 / 8
    resp = np.where(np.eye(8, dtype=bool)[reference], 0.14, 0.86 / 7)
    return LabelEvidence(np.log(resp), resp, np.ones(n), codes, transition, reference, False)


@pytest.mark.parametrize(("seen", "commonest", "bad"), [(0.22, 0.5, False), (0.22, 0.1, True)])
def test_features_predict_labels_where_they_outdo_the_commonest_class(seen, commonest, bad):
    (found,) = (f for f in run(LABEL_CHECKS, evidence(seen, commonest)) if f.name == AGREEMENT)
    assert found.bad is bad
    assert found.sentence.startswith("the features predict the labels better") is bad


@pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")
def test_no_weight_is_advised_for_a_fit_without_the_features_likelihood():
    x, _, given = data("correlated")
    joint = fitted("correlated").verdict()
    assert any(remedies.SMALLER_WEIGHT in f.remedies for f in joint.findings)
    crossed = NoisyGaussianNB(training=CrossFit(rounds=0), random_state=0).fit(x, given)
    assert _taken(crossed.fit_, crossed.fitted_.data) >= {
        remedies.SMALLER_WEIGHT,
        remedies.CROSS_FIT,
    }


def test_a_verdict_begins_with_what_a_fit_warned_of():
    own = Caution(IdentifiabilityWarning, "the features do not predict held-out labels")
    stated = replace(own, message="no label is changed", finding="no noise")
    about_input = Caution(NbmodelsWarning, "y: '?' is taken for a class")
    plain = fitted().verdict()
    assert plain.sentence.startswith("All checks of this fit passed")
    found = plain.beside([own, stated, about_input, own])
    assert found.ok
    assert found.sentence.startswith(
        "The features do not predict held-out labels. All other checks of this fit passed ("
    )
    assert "no label is changed" not in found.sentence
    assert "taken for a class" not in found.sentence
    bad = fitted("heavy").verdict()  # which warns beside what else was warned of
    assert bad.beside([own]).sentence == bad.sentence


def test_nothing_is_said_to_have_passed_where_two_workers_leave_it_to_the_priors():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    ann, bob = (corrupt(y, uniform_noise(2, 0.1), rng) for _ in range(2))
    who = np.repeat(["ann", "bob"], 200)
    votes = pd.DataFrame({"task": np.tile(range(200), 2), "worker": who, "label": [*ann, *bob]})
    with pytest.warns(IdentifiabilityWarning, match="votes of two workers"):
        model = DawidSkene(random_state=0).fit(votes)
    assert model.verdict().sentence.startswith("Votes of two workers do not show how often each")


@pytest.mark.slow
def test_a_fit_without_use_of_the_features_expects_nothing_of_them():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1500, 4)), rng.integers(2, size=1500)
    with pytest.warns(IdentifiabilityWarning, match="the features do not predict"):
        model = NoisyGaussianNB(random_state=0).fit(x, y)
    verdict = model.verdict()
    assert {AGREEMENT, "calibration"}.isdisjoint(f.name for f in verdict.findings)
    assert verdict.sentence.startswith("The features do not predict held-out labels")


@pytest.mark.slow
def test_a_fit_that_is_not_borne_out_says_so():
    """150 labels, of which a fifth are wrong: no noise and overlap is as likely as noise."""
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 2, 150)
    angle, radius = rng.uniform(0, 2 * np.pi, 150), 1 + 1.3 * truth + rng.normal(0, 0.35, 150)
    rings = radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    x = np.c_[rings, rng.normal(size=(150, 2))]
    y = corrupt(truth, uniform_noise(2, 0.2), rng)
    with pytest.warns(VerdictWarning, match="0.0 % of the given labels are changed, though"):
        e = NoisyLogisticRegression(random_state=0).fit(x, y)
    stay = np.mean((e.fit_.resp.argmax(1) != y) & (e.label_posterior_.argmax(1) == y))
    assert stay > 0.05
    assert f"{100 * stay:.1f} % of the labels would be changed" in e.verdict().sentence
