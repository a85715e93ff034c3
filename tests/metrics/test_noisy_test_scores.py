"""Scores on noisy test labels: unbiased, intervals that hold, assumptions that are tested."""

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray
import xarray as xr
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

import nbmodels
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import DataError, VerdictWarning
from nbmodels.metrics import noisy_test_scores
from nbmodels.metrics.correction import auc

NAMES = np.array(["ant", "bee", "cat"])
NOISE = np.array([[0.7, 0.1, 0.05], [0.2, 0.8, 0.05], [0.1, 0.1, 0.9]])
RIGHT = np.array([[0.85, 0.05, 0.1], [0.1, 0.9, 0.1], [0.05, 0.05, 0.8]])


def labelled(n=1000, seed=0, copied=0.0):
    """True classes, given labels and predictions that err independently, or copy errors."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 3, n)
    given, predicted = corrupt(true, NOISE, rng), corrupt(true, RIGHT, rng)
    same = (given != true) & (rng.random(n) < copied)
    return true, given, np.where(same, given, predicted)


def tree_of(name):
    """Draws, one of them, of the noise matrix under this name."""
    values = {name: (("chain", "draw", "observed_class", "true_class"), NOISE[None, None])}
    found = xarray.Dataset(values, coords={"true_class": NAMES, "observed_class": NAMES})
    return xarray.DataTree.from_dict({"posterior": found})


def test_scores_are_those_against_the_truth():
    true, given, predicted = labelled(20_000)
    found = noisy_test_scores(NAMES[given], NAMES[predicted], NOISE, draws=200)
    truth = np.mean(true == predicted)
    assert found.accuracy.value == pytest.approx(truth, abs=0.01)
    assert found.accuracy.low < truth < found.accuracy.high
    assert found.given["accuracy"] == pytest.approx(np.mean(given == predicted))
    balanced, macro = (
        balanced_accuracy_score(true, predicted),
        f1_score(true, predicted, average="macro"),
    )
    assert found.balanced_accuracy.value == pytest.approx(balanced, abs=0.01)
    assert found.macro_f1.value == pytest.approx(macro, abs=0.01)
    actual = pd.crosstab(NAMES[true], NAMES[predicted]) / len(true)
    np.testing.assert_allclose(found.confusion_matrix, actual, atol=0.01)
    assert list(found.by_class.index) == list(NAMES)
    assert list(found.table().columns) == ["score", "low", "high", "given"]
    assert "No row was checked" in found.sentence


@pytest.mark.slow
def test_intervals_hold_with_a_known_matrix():
    held = 0
    for seed in range(200):
        _, given, predicted = labelled(300, seed)
        found = noisy_test_scores(given, predicted, NOISE, draws=200, random_state=seed)
        held += found.accuracy.low <= 0.85 <= found.accuracy.high
    assert 0.84 < held / 200 < 0.96  # two standard errors of 200 repeats are 4 points


@pytest.mark.filterwarnings("ignore:Do not use the corrected scores")
def test_intervals_of_means_over_classes_hold_a_perfect_classifier():
    held = np.zeros(3)
    for seed in range(60):
        true, given, _ = labelled(300, seed)
        options = {"draws": 200, "random_state": seed, "scores": np.eye(3)[true]}
        found = noisy_test_scores(given, true, NOISE, **options)
        scores = found.balanced_accuracy, found.macro_f1, found.auc
        held += [one.high == 1 for one in scores]
    assert (held >= 51).all()  # 57 are expected: above 1 nothing can lie


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_few_rows_that_all_agree_leave_more_open(noise):
    names = np.array(["ant", "bee"] * 5)
    found = noisy_test_scores(names, names, uniform_noise(2, noise)).accuracy
    assert found.value == found.high == 1
    assert 0.75 < found.low < 0.9  # of ten right ones Jeffreys' interval begins at 0.83
    one = noisy_test_scores(names, names, uniform_noise(2, noise)).by_class.loc["ant"]
    assert one["recall_low"] < 0.9


def test_probabilities_are_no_predictions():
    given, noise = np.arange(20) % 2, uniform_noise(2, 0.1)
    with pytest.raises(DataError, match=r"^y_pred: row 1 is 0.05; expected predicted classes"):
        noisy_test_scores(given, np.arange(20) / 20, noise)
    with pytest.raises(DataError, match=r"^scores: has 19 rows where y_given has 20"):
        noisy_test_scores(given, given, noise, scores=np.ones((19, 2)))


def test_draws_of_the_matrix_widen_intervals():
    _, given, predicted = labelled(2000)
    rng = np.random.default_rng(0)
    draws = np.stack([rng.dirichlet(40 * column, 300) for column in NOISE.T], axis=2)
    known = noisy_test_scores(given, predicted, NOISE)
    unknown = noisy_test_scores(given, predicted, draws)
    assert unknown.accuracy.width > 1.5 * known.accuracy.width


def test_a_tree_of_draws_names_the_classes():
    _, given, predicted = labelled(500)
    ours = noisy_test_scores(NAMES[given], NAMES[predicted], tree_of("noise_matrix"))
    assert ours.accuracy == noisy_test_scores(given, predicted, NOISE).accuracy


def test_noise_of_votes_is_taken_where_it_is_asked_for():
    """A majority of votes is not as noisy as one."""
    _, given, predicted = labelled(500)
    tree = tree_of("votes_noise_matrix")
    about = NAMES[given], NAMES[predicted]
    with pytest.raises(DataError, match=r"tree\['posterior'\]\['votes_noise_matrix'\] if each"):
        noisy_test_scores(*about, tree)
    ours = noisy_test_scores(*about, tree["posterior"]["votes_noise_matrix"])
    assert ours.accuracy == noisy_test_scores(given, predicted, NOISE).accuracy
    with pytest.raises(DataError, match=r"no draws of a 'noise_matrix' of labels$"):
        noisy_test_scores(*about, tree_of("class_prior"))


def test_two_classes_have_the_closed_form_of_the_auc():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 3000)
    score = true + rng.normal(0, 1, 3000)
    noise = np.array([[0.8, 0.3], [0.2, 0.7]])
    given = corrupt(true, noise, rng)
    found = noisy_test_scores(given, (score > 0.5).astype(int), noise, scores=score, draws=100)
    assert found.auc.low < roc_auc_score(true, score) < found.auc.high
    # Menon et al. 2015: shares of wrong labels among the given ones, by the estimated class shares
    share = np.linalg.solve(noise, np.bincount(given) / len(given))
    joint = noise * share
    a, b = joint[0, 1] / joint[0].sum(), joint[1, 0] / joint[1].sum()
    closed = 0.5 + (roc_auc_score(given, score) - 0.5) / (1 - a - b)
    assert found.auc.value == pytest.approx(closed, abs=0.002)


def test_auc_with_unsigned_weights_is_scikit_learns():
    rng = np.random.default_rng(0)
    label, score = rng.integers(0, 2, 200), rng.integers(0, 20, 200).astype(float)
    found = auc(score, label[None].astype(float), 1 - label[None].astype(float))
    assert found[0] == pytest.approx(roc_auc_score(label, score))


def test_auc_of_several_classes():
    rng = np.random.default_rng(0)
    true, given, _ = labelled(3000)
    scores = np.eye(3)[true] + rng.normal(0, 0.7, (3000, 3))
    found = noisy_test_scores(given, scores.argmax(1), NOISE, scores=scores, draws=100)
    for k in range(3):
        row = found.by_class.loc[k]
        assert row["auc_low"] < roc_auc_score(true == k, scores[:, k]) < row["auc_high"]


def test_checked_rows_count_as_they_are():
    true, given, predicted = labelled(400)
    found = noisy_test_scores(given, predicted, NOISE, trusted=true)
    assert found.accuracy.value == pytest.approx(np.mean(true == predicted))
    some = noisy_test_scores(given, predicted, NOISE, trusted=dict(enumerate(true[:300])))
    none = noisy_test_scores(given, predicted, NOISE)
    assert found.accuracy.width < some.accuracy.width < none.accuracy.width


def rejected(repeats=40, **options):
    verdicts = []
    for seed in range(repeats):
        true, given, predicted = labelled(400, seed, **options)
        checked = {row: true[row] for row in range(150)}
        found = noisy_test_scores(given, predicted, NOISE, trusted=checked, draws=2)
        verdicts.append(not found.independence.ok)
    return np.mean(verdicts)


# so many shared errors that predictions agree with more labels than the noise allows
@pytest.mark.filterwarnings("ignore:Do not use the corrected scores", "ignore:Scores are of the")
def test_shared_errors_are_found_on_checked_rows():
    assert rejected(copied=0.0) < 0.15
    assert rejected(copied=0.6) > 0.8


def test_another_noise_matrix_is_found_on_checked_rows():
    true, given, predicted = labelled(400)
    clean = 0.97 * np.eye(3) + 0.01
    with pytest.warns(VerdictWarning, match="where the noise matrix expects"):
        found = noisy_test_scores(given, predicted, clean, trusted=true)
    assert not found.independence.ok
    assert "Scores are of the 400 checked rows alone" in found.sentence
    assert found.accuracy.value == pytest.approx(np.mean(predicted == true))


@pytest.mark.filterwarnings("ignore:Scores are of the")
def test_where_checked_rows_reject_the_assumptions_scores_are_theirs():
    """Of a classifier that repeats some wrong labels corrected scores are 14 points too high."""
    held, rejected = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        noise = uniform_noise(2, 0.2)
        true = rng.integers(0, 2, 1000)
        given = corrupt(true, noise, rng)
        own = corrupt(true, uniform_noise(2, 0.2), rng)
        predicted = np.where(rng.random(1000) < 0.3, given, own)
        checked = {row: true[row] for row in rng.choice(1000, 200, replace=False)}
        found = noisy_test_scores(given, predicted, noise, trusted=checked, draws=200)
        rejected += not found.independence.ok
        held += found.accuracy.low <= np.mean(predicted == true) <= found.accuracy.high
    assert rejected >= 30
    assert held >= rejected - 6


@pytest.mark.filterwarnings("ignore:y_given. fewer than 5 test rows")
def test_means_over_classes_leave_open_what_classes_of_few_rows_do():
    """A class without a row took its recall for 0, and the interval of the mean was narrow."""
    held = np.zeros(2)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true = rng.choice(3, 400, p=[0.5, 0.495, 0.005]) if seed % 2 else rng.integers(0, 2, 400)
        predicted = corrupt(true, uniform_noise(3, 0.1), rng)
        given = corrupt(true, uniform_noise(3, 0.2), rng)
        found = noisy_test_scores(
            given, predicted, uniform_noise(3, 0.2), classes=[0, 1, 2], draws=200
        )
        right = balanced_accuracy(true, predicted)
        held[seed % 2] += found.balanced_accuracy.low <= right <= found.balanced_accuracy.high
    assert (held >= 17).all()


def balanced_accuracy(true, predicted):
    return np.mean([np.mean(predicted[true == k] == k) for k in np.unique(true)])


def test_a_class_of_few_rows_is_warned_of():
    rng = np.random.default_rng(0)
    names = np.array(["ant", "bee", "cow"])
    true = rng.integers(0, 2, 400)
    given = names[corrupt(true, uniform_noise(3, 0.2), rng)]
    with pytest.warns(VerdictWarning, match="fewer than 5 test rows seem to be of 'cow'"):
        noisy_test_scores(given, names[true], uniform_noise(3, 0.2), classes=names)


def test_what_a_fit_leaves_open_is_warned_of():
    """The draws of a fit that cannot tell how many labels are wrong are no known noise."""
    true, given, predicted = labelled(200)
    draws = xr.DataArray(NOISE[None, None], dims=("chain", "draw", "observed_class", "true_class"))
    draws = draws.assign_coords(true_class=[0, 1, 2], observed_class=[0, 1, 2])
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"noise_matrix": draws})})
    noisy_test_scores(given, predicted, tree, draws=2)
    tree.attrs["undecided"] = "Labels and features cannot tell how many labels are wrong."
    with pytest.warns(VerdictWarning, match="cannot tell how many labels are wrong"):
        noisy_test_scores(given, predicted, tree, draws=2)
    # rows that were checked can
    noisy_test_scores(given, predicted, tree, draws=2, trusted={r: true[r] for r in range(100)})


@pytest.mark.parametrize(("share", "n"), [(0.4, 500), (0.4, 60)])
def test_a_noise_matrix_that_cannot_be_is_named(share, n):
    """More predictions agree with given labels than could if all of them were right."""
    rng = np.random.default_rng(0)
    true, noise = rng.integers(0, 3, n), uniform_noise(3, 0.1)
    given, predicted = corrupt(true, noise, rng), corrupt(true, noise, rng)
    with pytest.warns(VerdictWarning, match="data and noise matrix contradict each other"):
        found = noisy_test_scores(given, predicted, uniform_noise(3, share))
    assert "where the noise matrix allows 60.0% at most" in found.sentence
    assert (found.accuracy.low, found.accuracy.high) == (0, 1)
    assert (found.by_class["recall_high"] - found.by_class["recall_low"] > 0).all()
    assert not noisy_test_scores(given, predicted, noise).contradiction


def test_labels_that_are_never_what_was_predicted_contradict_the_noise_matrix():
    true = np.arange(300) % 3
    with pytest.warns(VerdictWarning, match=r"agree with 0.0% .* allows 5.0% at least"):
        noisy_test_scores(true, (true + 1) % 3, uniform_noise(3, 0.1))


def test_right_predictions_contradict_nothing():
    """Neither where none of a few labels is wrong, nor without noise."""
    true = np.arange(12) % 3
    assert not noisy_test_scores(true, true, uniform_noise(3, 0.1)).contradiction
    assert noisy_test_scores(true, true, np.eye(3)).accuracy.value == pytest.approx(1)
    contradicted = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        true = rng.integers(0, 3, 200)
        given = corrupt(true, NOISE, rng)
        with warnings.catch_warnings(action="ignore", category=VerdictWarning):
            found = noisy_test_scores(given, true, NOISE, draws=2)
        contradicted += bool(found.contradiction)
    assert contradicted <= 10  # 5 are expected


def test_confusion_sums_to_one_and_agrees_with_recall():
    _, given, predicted = labelled(60, seed=1)
    found = noisy_test_scores(given, predicted, NOISE)
    table = found.confusion_matrix
    assert (table.to_numpy() >= 0).all()
    assert table.to_numpy().sum() == pytest.approx(1)
    recall = np.diag(table) / table.sum(axis=1)
    np.testing.assert_allclose(recall, found.by_class["recall"])
    assert np.trace(table) == pytest.approx(found.accuracy.value)


def test_a_class_that_is_never_predicted_has_no_precision():
    _, given, predicted = labelled(300)
    found = noisy_test_scores(given, np.where(predicted == 2, 0, predicted), NOISE)
    assert found.by_class["precision"].isna().tolist() == [False, False, True]
    assert found.by_class["recall"].notna().all()


def test_reached_from_the_library():
    assert nbmodels.metrics.noisy_test_scores is noisy_test_scores


REFUSED = {
    "length": (([0, 1], [0], NOISE), {}, "y_pred: has 1 rows where y_given has 2"),
    "empty": (([], [], NOISE), {}, "y_given: there is no row"),
    "null": (([0, None], [0, 1], NOISE), {}, "y_given: row 1 has no label"),
    "rows": (([0, 1], [0, 1], NOISE.T), {}, "noise: columns must be"),
    "shape": (([0, 1], [0, 1], NOISE[:2]), {}, "noise: expected a"),
    "classes": (([0, 1], [0, 1], NOISE), {}, "noise: is of 3 classes where the labels name 2"),
    "singular": (([0, 1], [0, 1], np.full((2, 2), 0.5)), {}, "noise: the matrix is singular"),
    "stranger": (
        ([0, 5], [0, 1], NOISE),
        {"classes": [0, 1, 2]},
        "y_given: row 1 has the label 5",
    ),
    "scores": (([0, 1, 2], [0, 1, 2], NOISE), {"scores": [0, 1, 2]}, "scores: expected shape"),
    "level": (([0, 1, 2], [0, 1, 2], NOISE), {"level": 1}, "level"),
    "trusted": (([0, 1, 2], [0, 1, 2], NOISE), {"trusted": {7: 1}}, "trusted: row 7"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    args, options, words = REFUSED[case]
    with pytest.raises(DataError, match=words):
        noisy_test_scores(*args, **options)
