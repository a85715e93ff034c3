"""Classifiers of the features, cross-fitted, with the noise on top."""

import numpy as np
import pandas as pd
import pytest
from marks import slow
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from worlds import centres, quality

from nbmodels import (
    AutoNoisyClassifier,
    NoisyLabelClassifier,
    VerdictWarning,
)
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import DataError

N, K, D = 600, 3, 8


@pytest.fixture(scope="module")
def items():
    return centres()


#: These fits may say that they take errors for overlap of the classes; what they find counts here.
doubtful = pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")


def fitted(x, y, base=None, **more):
    how = {name: more.pop(name) for name in ("trusted", "votes", "sample_weight") if name in more}
    return NoisyLabelClassifier(base, random_state=0, **more).fit(x, y, **how)


@pytest.fixture(scope="module")
def plain(items):
    x, _, noisy = items
    return fitted(x, noisy)


@doubtful
@pytest.mark.slow
def test_labels_are_corrected_and_the_noise_is_found(items):
    x, y, noisy = items
    right, auc, gap = quality(fitted(x, noisy), y, noisy)
    assert right > np.mean(noisy == y) + 0.12
    assert auc > 0.9
    assert gap < 0.12


@pytest.mark.slow
def test_where_probabilities_hold_the_noise_the_shape_of_the_classes_shows_it(items):
    """A small tree says 70 and 30 %: held-out labels are as likely without any noise."""
    x, y, noisy = items
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    right, auc, gap = quality(fitted(x, noisy, tree, rounds=2), y, noisy)
    assert right > 0.97
    assert auc > 0.97
    assert gap < 0.12


@pytest.mark.slow
def test_a_matrix_that_lacks_the_errors_is_warned_of():
    """Rounds that were asked for stay, and so does the noise matrix that is learned with them."""
    x, y, noisy = centres(1)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    with pytest.warns(VerdictWarning) as caught:
        e = fitted(x, noisy, tree, rounds=0)
    assert any("the noise matrix is too clean" in str(w.message) for w in caught)
    right, _, gap = quality(e, y, noisy)
    assert right > 0.95
    assert gap > 0.2


@pytest.mark.slow
def test_a_plain_classifier_that_is_likelier_predicts_instead():
    """Of eight binary columns the shape does not tell, and labels stay, which the fit says."""
    x, y, noisy = centres(1)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    with pytest.warns(VerdictWarning, match="Do not rely on this fit's share"):
        e = fitted((x > 0).astype(float), noisy, tree, rounds=0)
    assert "no given label is changed" in e.verdict().sentence
    right, auc, gap = quality(e, y, noisy)
    assert right == np.mean(noisy == y)
    assert auc > 0.9  # which to check first
    assert gap < 0.12
    assert e.fitted_.noisy < 0.3


@doubtful
@pytest.mark.filterwarnings("ignore::nbmodels.IdentifiabilityWarning")
@pytest.mark.slow
def test_a_classifier_that_learns_by_heart_does_not():
    """A full tree repeats the labels of its training rows; out of fold it cannot."""
    found = []
    for seed in range(3):
        x, y, noisy = centres(seed, rate=0.2)
        tree = DecisionTreeClassifier(random_state=0)
        inside = tree.fit(x, noisy).predict_proba(x)[np.arange(N), noisy]
        assert roc_auc_score(noisy != y, 1 - inside) == 0.5
        found.append(quality(fitted(x, noisy, tree), y, noisy)[1])
    assert np.mean(found) > 0.75


@doubtful
@pytest.mark.slow
def test_new_items_are_predicted_better_than_from_the_labels_as_they_are():
    x, y, noisy = centres(0, 1200)
    train, new = np.arange(600), np.arange(600, 1200)
    e = fitted(x[train], noisy[train])
    as_they_are = LogisticRegression(max_iter=1000).fit(x[train], noisy[train])
    assert e.score(x[new], y[new]) > as_they_are.score(x[new], y[new]) + 0.02
    np.testing.assert_allclose(e.predict_proba(x[new]).sum(1), 1)
    # with a number of rounds, calibrated; no class is less likely to it than one item in all
    given = fitted(x[train], noisy[train], rounds=0)
    probs = np.maximum(given.estimator_.predict_proba(x[new]), 1 / len(train))
    log_slope, *bias = given.fitted_.calibration
    raw = np.exp(np.log(probs) * np.exp(log_slope) + bias)
    np.testing.assert_allclose(
        given.predict_proba(x[new]), raw / raw.sum(1, keepdims=True), rtol=1e-5, atol=1e-12
    )


@doubtful
@pytest.mark.parametrize(
    ("base", "by"),
    [
        (DecisionTreeClassifier(max_depth=4, random_state=0), "linear discriminant"),
        slow(LogisticRegression(), "linear discriminant"),
    ],
)
def test_new_items_are_predicted_by_a_classifier_of_the_corrected_labels(base, by):
    """Clusters correct the labels; a tree of given labels had 0.80 of new items right, not 0.94."""
    rng = np.random.default_rng(2)
    y = rng.integers(3, size=700)
    x = 2.5 * rng.normal(size=(3, 4))[y] + rng.normal(size=(700, 4))
    noisy = corrupt(y[:200], uniform_noise(3, 0.3), rng)
    e, given = (fitted(x[:200], noisy, base, rounds=rounds) for rounds in ("auto", 0))
    assert e.chosen_["scores"] == by
    assert e.n_fits_ == 3 * 5 + 1, "learning again from them costs no training"
    assert e.score(x[200:], y[200:]) > given.score(x[200:], y[200:]) + 0.1
    assert np.mean(e.estimator_.predict(x[:200]) == e.label_posterior_.argmax(1)) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [0, slow(2)])
def test_an_item_s_own_label_does_not_reach_its_evidence(items, rounds):
    """Nor by way of others' responsibilities, which later rounds learn from."""
    x, _, noisy = items
    turned = noisy.copy()
    turned[5] = (turned[5] + 1) % K
    folds = list(KFold(4, shuffle=True, random_state=0).split(x))
    one, two = (fitted(x, labels, cv=folds, rounds=rounds) for labels in (noisy, turned))
    (mine,) = (test for _, test in folds if 5 in test)
    others = np.setdiff1d(np.arange(N), mine)
    scores = [np.asarray(e.fitted_.data.parts["class_prior"]) for e in (one, two)]
    np.testing.assert_array_equal(scores[0][mine], scores[1][mine])
    assert np.abs(scores[0] - scores[1])[others].max() > 1e-3


@pytest.mark.slow
def test_rows_without_a_label_are_predicted_and_teach_nothing(items):
    x, y, noisy = items
    some = np.where(np.arange(N) % 4 == 0, -1, noisy)
    e = fitted(x, some, missing_label=-1, rounds=0)
    hidden = some == -1
    assert np.mean(e.label_posterior_[hidden].argmax(1) == y[hidden]) > 0.85
    assert e.corrected_labels()["p_wrong"].isna().to_numpy().tolist() == hidden.tolist()
    other = x.copy()
    other[hidden] += 100.0  # what they are changes nothing for the classifier
    moved = fitted(other, some, missing_label=-1, rounds=0)
    np.testing.assert_array_equal(e.estimator_.coef_, moved.estimator_.coef_)


@pytest.mark.slow
def test_trusted_labels_and_votes(items):
    x, y, noisy = items
    e = fitted(x, noisy, trusted=dict(enumerate(y[:60].tolist())), rounds=1)
    np.testing.assert_array_equal(e.label_posterior_[:60].argmax(1), y[:60])
    rng = np.random.default_rng(0)
    task = np.arange(N).repeat(2)
    named = np.where(rng.random(2 * N) < 0.3, rng.integers(0, K, 2 * N), y[task])
    votes = pd.DataFrame({"task": task, "worker": np.tile([0, 1], N), "label": named})
    crowd = fitted(x, None, votes=votes, rounds=1)
    assert np.mean(crowd.label_posterior_.argmax(1) == y) > 0.9


@pytest.mark.slow
def test_items_of_any_kind():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    texts = [" ".join(rng.choice([f"{'ab'[k]}{j}" for j in range(4)] + ["c", "d"], 6)) for k in y]
    noisy = np.where(rng.random(200) < 0.2, 1 - y, y)
    names = np.array(["ham", "spam"])
    base = make_pipeline(CountVectorizer(token_pattern=r"\w+"), LogisticRegression())
    e = fitted(texts, names[noisy], base, rounds=1)
    assert e.score(texts, names[y]) > 0.97
    words = CountVectorizer(token_pattern=r"\w+").fit_transform(texts)
    matrix = fitted(words, names[noisy], LogisticRegression(), rounds=1)
    assert sparse.issparse(words)
    np.testing.assert_allclose(matrix.predict_proba(words), e.predict_proba(texts), atol=1e-6)
    frame = pd.DataFrame(words.toarray(), index=[f"item {i}" for i in range(200)])
    frame.columns = frame.columns.map(str)
    table = fitted(
        frame, names[noisy], make_pipeline(StandardScaler(), LogisticRegression()), rounds=1
    )
    assert table.corrected_labels()["row"].tolist() == frame.index.tolist()
    assert list(table.feature_names_in_) == list(frame.columns)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["auto", "full", "pooled"])
def test_each_form_of_the_noise_is_fitted_from_two_starts(items, noise):
    """Out-of-fold shares of neighbours hold the noise: begun at the labels, a fit finds none."""
    x, y, noisy = items
    e = fitted(x, noisy, KNeighborsClassifier(15), noise=noise)
    assert np.mean(e.label_posterior_.argmax(1) == y) > 0.95
    np.testing.assert_allclose(e.noise_matrix_.diagonal(), 0.7, atol=0.1)


@pytest.mark.slow
def test_a_classifier_without_weights_learns_the_likeliest_classes(items):
    x, y, noisy = items
    base = KNeighborsClassifier(15)
    e = fitted(x, noisy, base)
    assert np.mean(e.label_posterior_.argmax(1) == y) > np.mean(noisy == y) + 0.1
    weights = np.where(np.arange(N) < 100, 0, 1)
    assert (
        fitted(x, noisy, base, sample_weight=weights, rounds=1).estimator_.n_samples_fit_ == N - 100
    )
    with pytest.raises(DataError, match="sample_weight: KNeighborsClassifier"):
        fitted(x, noisy, base, sample_weight=weights + 0.5)


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
@pytest.mark.slow
def test_a_class_that_a_fold_never_saw(items):
    x, _, noisy = items
    labels = noisy.astype(object)
    labels[0] = "rare"
    e = fitted(x, labels.astype(str), DecisionTreeClassifier(max_depth=3, random_state=0))
    assert np.isfinite(e.label_posterior_).all()
    assert list(e.classes_) == ["0", "1", "2", "rare"]


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        NoisyLabelClassifier(random_state=0),
        NoisyLabelClassifier(KNeighborsClassifier(3), random_state=0),
        AutoNoisyClassifier(emission="logistic", random_state=0),
    ],
)
def test_a_class_with_one_label(estimator):
    """The fold of that label is scored by a classifier that has seen one class."""
    x, y = np.random.default_rng(0).normal(size=(40, 2)), (np.arange(40) < 1).astype(int)
    e = estimator.fit(x, y)
    assert list(e.classes_) == [0, 1]
    np.testing.assert_allclose(e.predict_proba(x).sum(1), 1)
    assert np.isfinite(e.label_posterior_).all()


def test_errors_of_the_classifier_itself_are_raised():
    x, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    with pytest.raises(ValueError, match="n_neighbors"):
        NoisyLabelClassifier(KNeighborsClassifier(100), rounds=0).fit(x, y)
    frame = pd.DataFrame({"size": x[:, 0], "colour": ["red", "blue"] * 20})
    with pytest.raises(ValueError, match="convert string to float") as found:
        NoisyLabelClassifier(rounds=0).fit(frame, y)
    assert "give a pipeline where columns are to be encoded" in found.value.__notes__[0]


@pytest.mark.slow
def test_draws_are_of_the_noise(plain):
    draws = plain.posterior(draws=150, warmup=50, chains=1, random_state=0)["posterior"]
    mean = draws["noise_matrix"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(mean, plain.noise_matrix_, atol=0.05)
    np.testing.assert_allclose(plain.class_prior_.sum(), 1)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"rounds": -1}, "rounds"),
        ({"cv": 1}, "cv"),
        ({"cv": [([0, 1], [2, 3])]}, "cv: row 0"),
        ({"base": LinearSVC()}, "base_estimator"),
        ({"noise": "some"}, "noise"),
        ({"sample_weight": [-1.0] * N}, "sample_weight: row 0"),
    ],
)
def test_bad_input_is_named(items, how, words):
    x, _, noisy = items
    with pytest.raises(DataError, match=words):
        fitted(x, noisy, **how)


@pytest.mark.slow
@doubtful
def test_trainings_at_a_time_learn_the_same(items, plain):
    x, _, noisy = items
    side_by_side = fitted(x, noisy, n_jobs=2)
    np.testing.assert_array_equal(side_by_side.label_posterior_, plain.label_posterior_)
    assert side_by_side.n_fits_ == plain.n_fits_
    with pytest.raises(DataError, match="n_jobs: expected None or a whole number but 0; got 0"):
        fitted(x, noisy, n_jobs=0)


# How often the classifier is trained ---------------------------------------------------------


class Counted(GaussianNB):
    """Counts the fits of all clones."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.fits += 1
        return super().fit(X, y, sample_weight)


def counted(x, y, **more):
    Counted.fits = 0
    e = fitted(x, y, Counted(), **more)
    assert e.n_fits_ == Counted.fits
    return e


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")  # naive Bayes is a poor model of it
@pytest.mark.parametrize("cv", [3, 5, slow(8)])
def test_few_trainings_without_self_training(cv):
    """Where a class is two clouds, corrected labels teach naive Bayes to overlook the smaller."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, N)
    centre = np.where(y == 1, np.where(rng.random(N) < 0.7, 2, -2.5), 0)
    x = rng.normal(0, 1, (N, 2)) + centre[:, None] * [1, 0]
    noisy = np.where(rng.random(N) < 0.2, 1 - y, y)
    e = counted(x, noisy, cv=cv)
    assert e.chosen_["rounds"] == 0
    assert e.n_fits_ <= 2 * cv + 1
    if cv > 3:  # the test of a round is among what was compared, and was not passed
        row = e.choice_[e.choice_["rounds"] == 1].iloc[0]
        assert not row["chosen"]
        assert row["gain"] <= 0
    assert counted(x, noisy, cv=cv, rounds=0).n_fits_ == cv + 1


@pytest.mark.slow
def test_a_round_is_taken_where_held_out_labels_reward_it(items):
    """Naive Bayes overfits to wrong labels; to corrected ones it does so less."""
    x, y, noisy = items
    e = counted(x, noisy)
    assert e.chosen_["rounds"] == 1
    row = e.choice_[e.choice_["chosen"]].iloc[0]
    assert row["rounds"] == 1
    assert row["gain"] > 0
    assert e.n_fits_ == 3 * 5 + 1
    once = counted(x, noisy, rounds=0)
    right, before = (np.mean(one.label_posterior_.argmax(1) == y) for one in (e, once))
    assert right > before


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_a_linear_classifier_takes_rounds_until_its_probabilities_hold_little_noise(seed):
    """After one round, some hundredths too many labels are taken for right."""
    x, y, noisy = centres(seed)
    e, once = (fitted(x, noisy, rounds=rounds) for rounds in ("auto", 1))
    assert e.chosen_["rounds"] == 4
    assert e.n_fits_ <= 2 * 5 + 1 + 5 * 6 // 2 + 3 * 5**2
    gap, before = (np.diag(one.noise_matrix_).mean() - np.mean(noisy == y) for one in (e, once))
    assert abs(gap) < 0.02
    assert before > gap + 0.01
    assert np.mean(e.label_posterior_.argmax(1) == y) > 0.98


def repeated(x):
    """Each column 25 times."""
    return np.tile(x, 25) / 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "n", "rounds"),
    [
        (LogisticRegression(), 200, 1),  # few rows
        (make_pipeline(StandardScaler(), LogisticRegression()), 300, 4),
        (make_pipeline(FunctionTransformer(repeated), LogisticRegression()), N, 1),
    ],
    ids=["few rows", "pipeline", "many coefficients"],
)
@doubtful
def test_rounds_of_linear_classifiers(items, base, n, rounds):
    x, _, noisy = items
    assert fitted(x[:n], noisy[:n], base).chosen_["rounds"] == rounds


@pytest.mark.slow
def test_folds_do_not_depend_on_the_seed(items):
    x, _, noisy = items
    one, two = (
        NoisyLabelClassifier(rounds=0, random_state=seed).fit(x, noisy).label_posterior_
        for seed in (0, 1)
    )
    np.testing.assert_array_equal(one, two)
