"""Reference predictions: as good as a forest, blind to outliers, and a floor under cut models."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from nbmodels import (
    NbmodelsWarning,
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    RobustNDA,
    VerdictWarning,
)
from nbmodels.datasets import corrupt, flip_noise, uniform_noise
from nbmodels.diagnostics.findings import Verdict, taken_into_account
from nbmodels.errors import issue
from nbmodels.fitting.reference import nonlinear_predictions
from nbmodels.fitting.reference_floor import with_reference
from nbmodels.fitting.reference_scores import _surely_poorer, _undecided
from nbmodels.fitting.sides import Sides

K = 3


def classes(rng, n=400, d=5):
    """Normal classes that a linear rule tells apart in nine of ten cases."""
    true = rng.integers(K, size=n)
    return rng.normal(size=(n, d)) + rng.normal(size=(K, d))[true] * 1.5, true


def with_outliers(rng, **size):
    x, true = classes(rng, **size)
    far = rng.random(x.shape) < 0.02
    return np.where(far, 100 * rng.normal(size=x.shape), x), true


def rings(rng, n=400):
    true = rng.integers(2, size=n)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + true + 0.2 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), true


@pytest.mark.parametrize(("world", "right"), [(classes, 0.85), (with_outliers, 0.8), (rings, 0.95)])
def test_held_out_labels_are_predicted(world, right):
    x, true = world(np.random.default_rng(0))
    k = true.max() + 1
    given = corrupt(true, uniform_noise(k, 0.1), np.random.default_rng(1))
    assert np.mean(nonlinear_predictions(x, given, k).classes == true) > right


@pytest.mark.parametrize("world", [classes, rings])
def test_the_order_of_the_columns_says_nothing(world):
    """Random frequencies went by a column's position: another order could change the labels."""
    x, true = world(np.random.default_rng(0))
    k = true.max() + 1
    given = corrupt(true, uniform_noise(k, 0.1), np.random.default_rng(1))
    found, other = (nonlinear_predictions(a, given, k) for a in (x, x[:, ::-1]))
    np.testing.assert_allclose(other.logs, found.logs, atol=1e-8)
    np.testing.assert_allclose(other.held_out, found.held_out, atol=1e-8)


def test_random_labels_are_predicted_by_chance():
    rng = np.random.default_rng(2)
    x, _ = classes(rng, n=2000)
    labels = rng.integers(K, size=2000)
    found = nonlinear_predictions(x, labels, K)
    assert np.mean(found.classes == labels) == pytest.approx(1 / K, abs=0.05)
    # and known to be so
    assert found.held_out.mean() == pytest.approx(np.log(1 / K), abs=0.02)


def test_rows_without_a_label_are_not_predicted():
    x, true = classes(np.random.default_rng(3))
    codes = np.where(np.arange(len(true)) < 100, -1, true)
    found = nonlinear_predictions(x, codes, K)
    assert np.all(found.classes[:100] == -1)
    assert np.all(found.classes[100:] >= 0)
    assert np.array_equal(np.isnan(found.held_out), codes < 0)
    assert nonlinear_predictions(x[:20], true[:20], K) is None
    assert nonlinear_predictions(x, np.zeros(len(x), int), K) is None
    assert nonlinear_predictions(x[:, :0], true, K) is None


def unchecked(n, weights=None, copies=None):
    """What a fit without checked rows has of its rows."""
    weights = np.ones(n) if weights is None else np.asarray(weights, float)
    data = SimpleNamespace(weights=weights, parts={})
    fit = SimpleNamespace(model={})
    return SimpleNamespace(data=data, fit=fit, copies=copies)


@pytest.mark.parametrize(
    ("own", "warns"),
    [(0.60, True), (0.70, False), (0.88, False)],  # 0.1 less, and by 0.05 hardly surely
)
def test_predictions_are_poor_where_surely_less_probability_is_of_the_labels(own, warns):
    """Of 200 labels, to which a nonlinear classifier gives a probability of 0.6 or 0.9."""
    codes = np.arange(200) % 2
    theirs = np.where(np.arange(200) % 4 < 2, 0.6, 0.9)
    mine = own + 0.09 * (-1.0) ** (np.arange(200) // 4)
    theirs, mine = np.log([theirs, mine])
    mine[:3] = np.nan
    reference = SimpleNamespace(held_out=theirs)
    found = _surely_poorer(unchecked(200), (mine, None), reference, codes)
    assert (found is not None) == warns
    if warns:
        assert found == pytest.approx((own, 0.75), abs=0.01)
    assert _surely_poorer(unchecked(200), (None, mine), reference, codes) is None
    # noise explains the labels as well
    assert _surely_poorer(unchecked(200), (mine, theirs), reference, codes) is None


@pytest.mark.parametrize(
    ("weights", "copies"),
    [(np.arange(200) < 100, None), (np.ones(200), np.arange(200) // 50)],
    ids=["weights", "groups"],
)
def test_predictions_are_not_poor_by_rows_that_count_little_or_are_copies(weights, copies):
    """Of the labels only the later half, or two groups of four, are likelier by the reference."""
    mine, codes = np.full(200, np.log(0.6)), np.arange(200) % 2
    reference = SimpleNamespace(held_out=mine + np.log(1.5) * (np.arange(200) >= 100))
    assert _surely_poorer(unchecked(200), (mine,), reference, codes) is not None
    held = unchecked(200, weights, copies)
    assert _surely_poorer(held, (mine,), reference, codes) is None


@pytest.mark.slow
def test_outliers_do_not_cost_right_labels():
    """One cell in fifty lies far out: normal classes are a bad model, labels are all right."""
    x, true = with_outliers(np.random.default_rng(8))
    with warnings.catch_warnings(record=True, action="always") as given:
        model = NoisyGaussianNB(random_state=0).fit(x, true)
    # of the cells alone, which are errors
    assert all("interquartile ranges away" in str(one.message) for one in given)
    said = model.verdict().sentence
    assert "likelier under noise on the scores of a nonlinear classifier" in said
    assert model.fitted_.chosen["scores"] == "nonlinear classifier"
    assert np.array_equal(model.corrected_labels()["suggested"], true)


def test_heavy_tails_do_not_cost_right_labels():
    """Student's t with two degrees of freedom: a tail is likelier under a class it is not of."""
    kept, alone = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        true = rng.integers(K, size=100)
        x = 1.5 * rng.normal(size=(K, 5))[true] + rng.standard_t(2, size=(100, 5))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NbmodelsWarning)
            fitted = NoisyGaussianNB(random_state=0).fit(x, true).fitted_
        kept.append(np.mean(fitted.label_posterior.argmax(1) == true))
        own = replace(fitted, noisy=1.0, averaged=None)
        alone.append(np.mean(own.label_posterior.argmax(1) == true))
    assert np.mean(kept) > 0.95
    assert np.mean(alone) < np.mean(kept) - 0.04  # what the fit would do by itself


def test_a_poor_model_whose_scores_show_the_noise_corrects():
    """Two clusters a class: the reference predicts more labels, and finds the noise as well."""
    rng = np.random.default_rng(3)
    true = rng.integers(K, size=600)
    centres = 2.0 * rng.normal(size=(K, 2, 5))
    x = centres[true, rng.integers(2, size=600)] + rng.normal(size=(600, 5))
    given = corrupt(true, uniform_noise(K, 0.2), rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        model = NoisyGaussianNB(random_state=0, training="cross_fit").fit(x, given)
    assert np.mean(model.corrected_labels()["suggested"] == true) > np.mean(given == true) + 0.05


def gross_errors(rng, n=600, d=6):
    """One cell in twenty is a hundred times too large."""
    true = rng.integers(K, size=n)
    x = 1.3 * rng.normal(size=(K, d))[true] + rng.normal(size=(n, d))
    return np.where(rng.random((n, d)) < 0.05, 100 * x, x), true


@pytest.mark.slow
def test_draws_are_of_both_scores_where_labels_do_not_tell_which_are_better():
    """Student's t with two degrees of freedom, and errors to the next class."""
    rng = np.random.default_rng(8005)
    true = rng.integers(K, size=300)
    x = 1.8 * rng.normal(size=(K, 5))[true] + rng.standard_t(2, size=(300, 5))
    noise = flip_noise(K, {(k, (k + 1) % K): 0.25 for k in range(K)})
    given = corrupt(true, noise, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        model = NoisyGaussianNB(random_state=0).fit(x, given)
        tree = model.posterior(draws=100, chains=2)
    own, other = model.fitted_.posterior_targets
    assert "scores" not in model.chosen_
    assert 0.1 < other.probability < 0.9
    assert own.probability + other.probability == pytest.approx(1)
    # each of them by both forms of the noise matrix
    of_other = np.mean(tree["sample_stats"]["component"] >= 2)
    assert of_other == pytest.approx(other.probability, abs=0.1)
    drawn = np.diag(tree["posterior"]["noise_matrix"].mean(["chain", "draw"]))
    # 75 % of the labels are right; the fit takes tails for wrong labels
    assert np.diag(model.noise_matrix_).mean() + 0.01 < drawn.mean() < 0.78


def test_noise_that_is_hardly_identified_is_stated_and_no_warning():
    """Draws are averaged over both forms, so that intervals hold."""
    said = _undecided(0.74, 0.85)
    with warnings.catch_warnings(action="error"):
        issue([said])
    sentence = Verdict((taken_into_account(said),)).sentence
    assert sentence.startswith("Taken into account: the noise is hardly identified")


def many_rings(rng):
    return rings(rng, n=1500)


POOR = [(NoisyLogisticRegression, gross_errors), (NoisyGaussianNB, gross_errors)]
POOR += [(NoisyLogisticRegression, many_rings)]  # whose features it cannot hear at all


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X. row .* interquartile ranges away")
@pytest.mark.parametrize(("estimator", "world"), POOR)
def test_a_poor_model_corrects_by_the_noise_on_the_references_scores(estimator, world):
    rng = np.random.default_rng(3)
    x, true = world(rng)
    k = true.max() + 1
    given = corrupt(true, uniform_noise(k, 0.2), rng)
    unlabelled = rng.random(len(true)) < 0.1
    model = estimator(random_state=0, missing_label=-1).fit(x, np.where(unlabelled, -1, given))
    assert "by that classifier" in model.verdict().sentence
    right = np.asarray(model.corrected_labels()["suggested"]) == true
    assert right[~unlabelled].mean() > np.mean(given == true) + 0.1
    assert right[unlabelled].mean() > 0.85
    assert "nonlinear classifier" not in {f.name for f in model.verdict().findings}
    np.testing.assert_allclose(np.diag(model.noise_matrix_), 0.8, atol=0.08)


@pytest.mark.slow
def test_draws_are_of_the_noise_on_the_references_scores():
    rng = np.random.default_rng(3)
    x, true = many_rings(rng)
    given = corrupt(true, uniform_noise(2, 0.2), rng)
    model = NoisyLogisticRegression(random_state=0).fit(x, given)
    assert "by that classifier" in model.verdict().sentence
    found = model.posterior(keep="parameters")["posterior"]["noise_matrix"]
    assert found.mean(("chain", "draw")).to_numpy().diagonal() == pytest.approx(0.8, abs=0.05)
    assert (found.std(("chain", "draw")).to_numpy() < 0.05).all()


@pytest.mark.slow
def test_a_fit_whose_training_or_shares_are_given_keeps_its_own_scores():
    rng = np.random.default_rng(3)
    x, true = gross_errors(rng)
    given = corrupt(true, uniform_noise(K, 0.2), rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        for own in ({"rounds": 0}, {"class_prior": [1 / 3] * 3}):
            model = NoisyLogisticRegression(random_state=0, **own).fit(x, given)
            assert not any("by that classifier" in c.message for c in model.fitted_.cautions)


@pytest.mark.slow
def test_checked_rows_keep_the_better_scores():
    rng = np.random.default_rng(3)
    x, true = gross_errors(rng)
    given = corrupt(true, uniform_noise(K, 0.2), rng)
    trusted = dict(enumerate(true[:30]))
    model = NoisyLogisticRegression(random_state=0).fit(x, given, trusted=trusted)
    assert "by that classifier" in model.verdict().sentence
    right = np.asarray(model.corrected_labels()["suggested"]) == true
    assert right[:30].all()
    assert right[30:].mean() > np.mean(given == true) + 0.1


@pytest.mark.slow
def test_overlap_under_one_temperature_is_no_noise():
    """Two classes of three overlap: one temperature fits badly, and a noise matrix fits better."""
    rng = np.random.default_rng([1, 600, 9])
    true = rng.integers(K, size=600)
    x = np.exp(1.5 * (0.8 * rng.normal(size=(K, 5))[true] + rng.normal(size=(600, 5))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        model = NoisyLogisticRegression(random_state=0).fit(x, true)
    assert np.mean(model.corrected_labels()["suggested"] == true) > 0.99


def test_a_good_model_corrects_as_before():
    x, true = classes(np.random.default_rng(5))
    given = corrupt(true, uniform_noise(K, 0.2), np.random.default_rng(6))
    model = NoisyGaussianNB(random_state=0, training="cross_fit").fit(x, given)
    assert np.mean(model.fitted_.reference == true) > 0.8
    assert model.fitted_.noisy > 0.9
    assert np.mean(model.corrected_labels()["suggested"] == true) > np.mean(given == true) + 0.08


def test_belief_in_changes_falls_before_half_of_them_are_predicted_as_given():
    """The reference errs with the fit: it predicts few right labels as given, too."""
    ways = [Sides(100, 0, 90), Sides(100, 10, 80), Sides(100, 20, 70), Sides(100, 35, 60)]
    assert [one.belief for one in ways[:2]] == [1, 1]
    assert ways[2].belief > 0.6
    assert ways[3].belief < 0.05
    assert Sides(0, 0, 0).belief == 1


def inflated(rng, n=600, d=8):
    """Most cells are zeros: rows say little or much of their class, which one slope cannot know."""
    true = rng.integers(K, size=n)
    x = np.exp(rng.normal(1, 1, (K, d))[true] + 0.5 * rng.normal(size=(n, d)))
    return np.where(rng.random(x.shape) < 0.6, 0, x), true


@pytest.mark.parametrize("seed", [6, pytest.param(14, marks=pytest.mark.slow)])
def test_changes_that_the_reference_contradicts_are_not_made(seed):
    """5 points of right labels were lost, without a word."""
    rng = np.random.default_rng(seed)
    x, true = inflated(rng)
    y = corrupt(true, uniform_noise(K, 0.2), rng)
    # a given number of rounds keeps the scores its own
    with warnings.catch_warnings(record=True, action="always", category=VerdictWarning) as given:
        model = NoisyLogisticRegression(rounds=0, random_state=0).fit(x, y)
    poor = "surely likelier under a nonlinear classifier"
    assert [poor in str(one.message) for one in given] == [True]
    assert np.mean(model.corrected_labels()["suggested"] == true) > np.mean(y == true) - 0.01
    assert "labels that this model would change" in model.verdict().sentence


def test_the_reference_corrects_labels_that_a_linear_model_cannot():
    """Whether a cell is zero tells more of the class than its size does."""
    rng = np.random.default_rng(6)
    x, true = inflated(rng)
    y = corrupt(true, uniform_noise(K, 0.2), rng)
    model = NoisyLogisticRegression(random_state=0).fit(x, y)
    assert np.mean(model.corrected_labels()["suggested"] == true) > np.mean(y == true) + 0.05
    assert model.chosen_["predictions"] == "nonlinear classifier"
    assert np.mean(model.predict(x) == true) > np.mean(y == true) + 0.02  # 0.08 below by its own


def test_a_classifier_that_was_given_predicts_and_is_warned_of():
    rng = np.random.default_rng(6)
    x, true = inflated(rng)
    y = corrupt(true, uniform_noise(K, 0.2), rng)
    with pytest.warns(VerdictWarning, match="new items are still predicted by this model"):
        model = NoisyLabelClassifier(LogisticRegression(), random_state=0).fit(x, y)
    assert model.chosen_["scores"] == "nonlinear classifier"
    assert "predictions" not in model.chosen_


@pytest.mark.parametrize("seed", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_a_joint_fit_whose_changes_few_would_make_says_so(seed):
    """Five classes, 100 rows: up to 32 points of right labels were lost in silence."""
    rng = np.random.default_rng(seed)
    true = rng.integers(5, size=100)
    x = 1.2 * rng.normal(size=(5, 4))[true] + rng.normal(size=(100, 4))
    y = corrupt(true, flip_noise(5, {((k + 1) % 5, k): 0.2 for k in range(5)}), rng)
    with pytest.warns(VerdictWarning, match="labels that this model would change"):
        RobustNDA.published(random_state=0).fit(x, y)


def test_sparse_features_have_no_reference():
    x, true = classes(np.random.default_rng(7))
    model = NoisyGaussianNB(random_state=0).fit(x, true)
    fitted = replace(model.fitted_, reference=None)
    assert with_reference(fitted, sparse.csr_array(x), model._options).reference is None
