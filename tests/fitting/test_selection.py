"""Settings chosen by held-out labels: what suits the world is chosen, and reported."""

import warnings

import numpy as np
import pandas as pd
import pytest
from marks import slow
from scipy import sparse
from sklearn.metrics import roc_auc_score
from worlds import clusters

from nbmodels import (
    AutoNoisyClassifier,
    CollaborativeClassifier,
    CrossFit,
    Joint,
    NoisyBernoulliNB,
    NoisyGaussianNB,
    NoisyMixedNB,
    NoisyMultinomialNB,
    Priors,
    Solver,
)
from nbmodels.datasets import corrupt, flip_noise, uniform_noise
from nbmodels.errors import (
    DataError,
    IdentifiabilityWarning,
    Interrupted,
    NotConvergedWarning,
    VerdictWarning,
)
from nbmodels.estimators.auto import suitable
from nbmodels.fitting import options, training_rounds
from nbmodels.fitting.trials import Trial, preferred
from nbmodels.papers import maystre2021
from nbmodels.posterior.plots import held_out_scores

N, K, D = 900, 4, 60
QUIET = {"random_state": 0}


def documents(noise, seed=0):
    """Words that come in bursts, the more the longer a document; classes; noisy labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % K
    topics = rng.dirichlet(np.full(D, 0.3), K)
    length = rng.geometric(1 / 60, N) + 5
    own = rng.dirichlet(np.ones(D) * 0.05, N)
    mixed = 0.5 * topics[y] + 0.5 * own
    x = np.stack([rng.multinomial(n, p) for n, p in zip(length, mixed, strict=True)])
    return sparse.csr_array(x), y, corrupt(y, noise, rng)


def auc(e, y, noisy):
    resp = e.label_posterior_
    return roc_auc_score(noisy != y, 1 - resp[np.arange(len(y)), noisy])


@pytest.fixture(scope="module")
def chosen():
    x, y, noisy = documents(uniform_noise(K, 0.3))
    return NoisyMultinomialNB(**QUIET).fit(x, noisy), x, y, noisy


@pytest.mark.slow
def test_bursts_are_believed_less_in_long_documents(chosen):
    e, x, y, noisy = chosen
    assert e.chosen_["size_power"] > 0
    plain = NoisyMultinomialNB.published(**QUIET, training="cross_fit").fit(x, noisy)
    assert auc(e, y, noisy) > auc(plain, y, noisy) + 0.01


def test_the_table_holds_what_was_compared(chosen):
    e, *_ = chosen
    table = e.choice_
    assert table["chosen"].sum() == 1
    best = table[table["chosen"]].iloc[0]
    assert {n: best[n] for n in e.chosen_} == e.chosen_
    assert best["log_likelihood"] >= table["log_likelihood"].iloc[0]
    assert set(table["alpha"]) == {1.0, 0.1, 0.01}
    assert "noise" not in table  # one hierarchical prior, and nothing to select
    figure, frame = held_out_scores(table)
    assert len(frame) == len(table)
    assert len(figure.axes[0].get_yticklabels()) == len(table)
    training = ["cross_fit", "cross_fit", "joint"]
    mixed = table.iloc[:3].assign(rounds=[0.0, 1.0, np.nan], training=training)
    figure, _ = held_out_scores(mixed[["rounds", "training", *list(table)[-5:]]])
    told = [one.get_text() for one in figure.axes[0].get_yticklabels()]
    assert told[1:] == ["rounds 1, training cross_fit", "training joint"]


@pytest.mark.slow
def test_errors_with_a_direction_ask_for_a_full_matrix():
    pairs = flip_noise(K, {(k, (k + 1) % K): 0.3 for k in range(K)})
    x, y, noisy = documents(pairs, seed=1)
    e = NoisyMultinomialNB(**QUIET).fit(x, noisy)
    concentration = e.fit_.model["labels"].prior.concentration
    assert concentration.sum(1).max() < 30  # hardly drawn to one error rate
    assert auc(e, y, noisy) > 0.9


def test_what_is_given_is_not_chosen(chosen):
    _, x, _, noisy = chosen
    e = NoisyMultinomialNB(
        alpha=0.5, noise="symmetric", **QUIET, training=CrossFit(rounds=1, size_power=0.0)
    )
    e.fit(x, noisy)
    assert e.choice_ is None
    assert e.chosen_ == {"rounds": 1}
    assert e.get_params()["alpha"] == 0.5


def test_published_settings_are_those_of_the_papers():
    e = NoisyBernoulliNB.published(alpha=0.1)
    settings = e.get_params()
    assert (settings["alpha"], settings["noise"]) == (0.1, "full")
    assert isinstance(settings["training"], Joint)
    assert (settings["training__size_power"], settings["training__weight"]) == (0.0, 1.0)


@pytest.mark.slow
def test_blocks_of_columns_have_powers_of_their_own():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    frame = pd.DataFrame(
        {"size": rng.normal(0, 1, 400) + y, "kind": np.where(rng.random(400) < 0.7, y, 1 - y)}
    )
    noisy = np.where(rng.random(400) < 0.2, 1 - y, y)
    both = NoisyMixedNB.published(
        **QUIET, training=Joint(weight={"gaussian": 0.0}, size_power=0.0)
    ).fit(frame, noisy)
    alone = NoisyBernoulliNB.published(**QUIET).fit(frame[["kind"]], noisy)
    np.testing.assert_allclose(both.label_posterior_, alone.label_posterior_, atol=1e-6)
    with pytest.raises(DataError, match="no block 'words'"):
        NoisyMixedNB(training=CrossFit(weight={"words": 0.5})).fit(frame, noisy)


@pytest.mark.slow
def test_a_joint_fit_can_choose_too():
    x, _, noisy = clusters(0)
    e = NoisyBernoulliNB.published(**QUIET, training=Joint(weight="auto", size_power=0.0))
    with pytest.warns(VerdictWarning):  # no weight makes these features independent
        e.fit(x, noisy)
    table = e.choice_
    assert list(table["weight"]) == [1.0, 0.3, 0.1, 0.03]
    surely = table["gain"] > 2 * table["standard_error"]
    best = table["log_likelihood"].where(surely).idxmax() if surely.any() else 0
    assert table["chosen"][best]
    assert e.chosen_ == {"weight": table["weight"][best]}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
def test_the_pull_to_the_diagonal_is_chosen():
    rng = np.random.default_rng(0)
    k = 10
    y = np.arange(200) % k
    x = (rng.random((200, 40)) < rng.uniform(0.1, 0.9, (k, 40))[y]).astype(int)
    noisy = corrupt(y, uniform_noise(k, 0.1), rng)
    e = NoisyBernoulliNB.published(
        **QUIET, priors=Priors(noise_diagonal="auto"), training="cross_fit"
    ).fit(x, noisy)
    # twenty labels of each class say little of ninety rates
    assert e.chosen_["noise_diagonal"] > 2
    assert list(e.choice_["noise_diagonal"]) == [2.0, 20.0, 200.0]


@pytest.mark.slow
def test_the_covariance_is_chosen():
    rng = np.random.default_rng(0)
    y = np.arange(900) % 3
    mix = rng.normal(0, 1, (4, 4))
    x = (rng.normal(0, 1, (900, 4)) + 1.5 * rng.normal(0, 1, (3, 4))[y]) @ mix
    noisy = corrupt(y, uniform_noise(3, 0.25), rng)
    e = NoisyGaussianNB(covariance="auto", **QUIET).fit(x, noisy)
    assert e.chosen_["covariance"] == "tied"
    assert e.covariance_.shape == (4, 4)
    assert e.predict_proba(x[:5]).shape == (5, 3)


@pytest.mark.slow
def test_rounds_end_where_labels_are_less_likely_or_nothing_changes(monkeypatch):
    x, _, noisy = documents(flip_noise(K, {(k, (k + 1) % K): 0.3 for k in range(K)}), seed=2)
    settings = {**QUIET, "training": CrossFit(size_power=0.0, weight=1.0)}
    with warnings.catch_warnings(action="ignore", category=VerdictWarning):
        few = NoisyMultinomialNB(**settings).fit(x, noisy)
        monkeypatch.setattr(training_rounds, "HOPELESS", 1e9)
        monkeypatch.setattr(training_rounds, "_WORTH", 0.0)
        all_ = NoisyMultinomialNB(**settings).fit(x, noisy)
    rounds = [int(e.choice_["rounds"].max()) for e in (few, all_)]
    assert 1 <= rounds[0] < rounds[1]
    likely = [e.choice_.loc[e.choice_["chosen"], "log_likelihood"].item() for e in (few, all_)]
    # a thousandth of a nat for each round that was not tried
    assert likely[0] > likely[1] - 1e-3 * (rounds[1] - rounds[0])


def trial(scores, identified=True):
    return Trial({}, 0, np.asarray(scores, float), identified, None, None)


def test_the_first_is_kept_unless_another_is_surely_better_or_it_lost_its_classes():
    rng = np.random.default_rng(0)
    weights = np.ones(400)
    first = trial(rng.normal(-1, 0.5, 400))
    like = trial(first.scores + rng.normal(0.001, 0.5, 400) - 0.02)
    better = trial(first.scores + rng.normal(0.2, 0.5, 400))
    assert preferred([first, like], weights) is first
    assert preferred([first, like, better], weights) is better
    assert preferred([first, better._replace(identified=False)], weights) is first
    assert preferred([first._replace(identified=False), like], weights) is like


def test_an_interrupt_keeps_the_best_until_then(chosen, monkeypatch):
    _, x, _, noisy = chosen
    calls, plain = [], options.fit_many

    def interrupted(models, *args, **options):
        calls.extend([1] * (len(models) > 1))  # single fits learn the prior of the noise
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(models, *args, **options)

    monkeypatch.setattr(options, "fit_many", interrupted)
    half = NoisyMultinomialNB(**QUIET)
    with pytest.raises(Interrupted) as raised:
        half.fit(x, noisy)
    assert raised.value.result is half
    calls.clear()
    kept = NoisyMultinomialNB(**QUIET, solver=Solver(on_interrupt="keep"))
    with pytest.warns(NotConvergedWarning, match="interrupted while settings"):
        kept.fit(x, noisy)
    np.testing.assert_array_equal(kept.label_posterior_, half.label_posterior_)
    assert len(half.choice_) == 2
    assert not half.converged_
    np.testing.assert_allclose(half.label_posterior_.sum(1), 1)


def test_no_label_at_all():
    x = np.eye(4, dtype=int)[np.arange(12) % 4]
    nothing = np.full(12, -1)
    with pytest.raises(DataError, match="no label"):
        NoisyBernoulliNB(classes=[0, 1], missing_label=-1, training="cross_fit").fit(x, nothing)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("size_power", {"training": Joint(size_power="much")}),
        ("weight", {"training": Joint(weight="much")}),
        ("alpha", {"alpha": "much"}),
    ],
)
def test_other_values_are_refused(name, wrong):
    with pytest.raises(DataError, match=f"^{name}: expected"):
        NoisyBernoulliNB(**wrong).fit(np.eye(4, dtype=int), [0, 1, 0, 1])


@pytest.mark.slow
def test_the_emission_is_chosen(chosen):
    e, x, y, noisy = chosen
    binary = NoisyBernoulliNB(binarize=0.0, **QUIET).fit(x, noisy)
    auto = AutoNoisyClassifier(emission=["bernoulli", "multinomial"], **QUIET).fit(x, noisy)
    assert list(auto.choice_["emission"]) == ["bernoulli", "multinomial"]
    best = auto.choice_["log_likelihood"].idxmax()
    assert auto.emission_ == auto.choice_["emission"][best]
    assert auc(auto, y, noisy) > max(auc(e, y, noisy), auc(binary, y, noisy)) - 0.02
    np.testing.assert_allclose(auto.noise_matrix_.sum(0), 1)
    assert auto.corrected_labels().shape[0] == N
    assert np.mean(auto.predict(x) == y) > np.mean(noisy == y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")  # a forest would be better yet
def test_dependent_features_ask_for_a_regression():
    rng = np.random.default_rng(0)
    y = np.arange(800) % 2
    # the class is in a difference of binary columns, which each alone says little of
    shared = rng.random((800, 1)) < 0.5
    flipped = shared ^ (rng.random((800, 12)) < np.where(y, 0.1, 0.4)[:, None])
    x = np.hstack([shared, flipped]).astype(int)
    noisy = np.where(rng.random(800) < 0.2, 1 - y, y)
    x = np.hstack([x, x[:, :1] * x[:, 1:]])
    auto = AutoNoisyClassifier(**QUIET).fit(x, noisy)
    assert list(auto.choice_["emission"]) == ["bernoulli", "logistic", "forest"]
    assert auto.emission_ in ("logistic", "forest")  # which assume nothing of the columns
    assert np.mean(auto.label_posterior_.argmax(1) == y) > np.mean(noisy == y)
    with pytest.raises(DataError, match="emission"):
        AutoNoisyClassifier(emission="poisson").fit(x, noisy)


def test_counts_with_missing_cells_have_no_weights_of_words():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = rng.poisson(np.where(y, 6, 2)[:, None], (120, 4)).astype(float)
    x[rng.random(x.shape) < 0.1] = np.nan
    names = ["multinomial", "bernoulli", "gaussian", "logistic", "forest"]
    assert suitable(x) == names
    assert suitable(np.nan_to_num(x)) == [*names[:2], "tfidf", *names[2:]]


@pytest.fixture(scope="module")
def two_kinds():
    """A column of numbers and one of symbols, the classes, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    frame = pd.DataFrame({"size": 2 * y + rng.normal(size=150), "colour": np.take(["a", "b"], y)})
    return frame.set_axis(np.arange(150) + 500), y, corrupt(y, uniform_noise(2, 0.1), rng)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")  # the forest finds few errors
@pytest.mark.parametrize("emission", ["logistic", slow("forest")])
def test_the_marker_is_missing_in_every_candidate(two_kinds, emission):
    frame, _, noisy = two_kinds
    x = np.column_stack([frame["size"], frame["size"][::-1]])
    gaps = np.random.default_rng(0).random(x.shape) < 0.2
    gaps[:, 0] &= ~gaps[:, 1]
    probs = []
    for marker in (np.nan, -999.0):
        own = np.where(gaps, marker, x)
        e = AutoNoisyClassifier(emission=emission, missing_values=marker, **QUIET).fit(own, noisy)
        probs.append((e.predict_proba(own), e.second_opinion(own, noisy).theirs))
    np.testing.assert_array_equal(probs[0][0], probs[1][0])
    np.testing.assert_array_equal(probs[0][1], probs[1][1])


def test_the_marker_does_not_decide_what_columns_are():
    x = np.random.default_rng(0).integers(0, 2, (60, 4))
    x[::7, 1] = -1
    assert AutoNoisyClassifier(missing_values=-1)._names(x)[0] == "bernoulli"


@pytest.mark.parametrize(
    ("dtype", "emission"),
    [
        slow("string", "mixed"),
        ("string", "logistic"),
        slow("string", "forest"),
        ("category", "mixed"),
        ("category", "logistic"),
        ("category", "forest"),
    ],
)
def test_nulls_of_pandas_are_missing_symbols(two_kinds, emission, dtype):
    frame, y, noisy = two_kinds
    frame = frame.assign(colour=frame["colour"].astype("string"))
    frame.loc[500:509, "colour"] = pd.NA
    frame["colour"] = frame["colour"].astype(dtype)
    e = AutoNoisyClassifier(emission=emission, missing_values=pd.NA, **QUIET).fit(frame, noisy)
    assert np.mean(e.predict(frame) == y) > 0.9
    assert 0 <= e.second_opinion(frame, noisy).disagreement < 0.5


# a fifth of the labels is wrong, and some stay
@pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
@pytest.mark.parametrize("emission", [slow("multinomial"), slow("tfidf"), "logistic"])
def test_rows_and_columns_keep_their_names(emission):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    counts = rng.poisson(np.array([[1, 5, 2], [4, 1, 2]])[y])
    y = corrupt(y, uniform_noise(2, 0.2), rng)
    frame = pd.DataFrame(counts, [f"text {i}" for i in range(120)], ["ant", "bee", "the"])
    e = AutoNoisyClassifier(emission=emission, **QUIET).fit(frame, y)
    assert list(e.corrected_labels()["row"]) == list(frame.index)
    assert list(e.feature_names_in_) == ["ant", "bee", "the"]
    assert e.n_features_in_ == 3
    assert list(e.estimator_.feature_names_in_) == ["ant", "bee", "the"]
    plain = AutoNoisyClassifier(emission=emission, **QUIET).fit(counts, y)
    np.testing.assert_allclose(plain.predict_proba(counts), e.predict_proba(frame))
    with pytest.raises(DataError, match="same order"):
        e.predict(frame[["bee", "ant", "the"]])
    with pytest.raises(DataError, match=r"^X: X has 2 features"):
        plain.predict(counts[:, :2])


def test_weights_of_words_take_no_missing_cells():
    x = np.array([[1.0, 2.0], [-1.0, 3.0], [2.0, 1.0]])
    with pytest.raises(DataError, match=r"^emission: 'tfidf' takes no missing cells"):
        AutoNoisyClassifier(emission="tfidf", missing_values=-1).fit(x, [0, 1, 0])


@pytest.mark.slow
def test_gaussian_classes_ask_for_no_forest():
    """Every candidate is scored on labels that it has not seen, one without open settings, too."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    x = rng.normal(size=(3, 4))[y] * 1.5 + rng.normal(size=(150, 4))
    noisy = corrupt(y, uniform_noise(3, 0.2), rng)
    auto = AutoNoisyClassifier(emission=["gaussian", "forest"], **QUIET).fit(x, noisy)
    by_chance = np.log(np.bincount(noisy) / 150) @ np.bincount(noisy) / 150
    assert auto.choice_["log_likelihood"].between(by_chance, -0.5).all()
    assert auto.emission_ == "gaussian"


@pytest.mark.slow
def test_classes_that_only_trees_tell_apart_ask_for_a_forest():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(int)
    noisy = np.where(rng.random(400) < 0.2, 1 - y, y)
    auto = AutoNoisyClassifier(emission=["gaussian", "logistic", "forest"], **QUIET).fit(x, noisy)
    assert auto.emission_ == "forest"
    # five folds and all of them, and as often again where a self-training round is tested
    assert auto.n_fits_ <= (2 * 5 + 1) + (5 + 1)
    assert np.mean(auto.classes_[auto.label_posterior_.argmax(1)] == y) > np.mean(noisy == y) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_mute_features_correct_nothing(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, 300)
    x = (rng.random((300, 20)) < 0.3).astype(int)
    noisy = np.where(rng.random(300) < 0.2, rng.integers(0, K, 300), y)
    with warnings.catch_warnings(action="ignore", category=IdentifiabilityWarning):
        e = NoisyBernoulliNB(**dict(QUIET, random_state=seed)).fit(x, noisy)
    np.testing.assert_array_equal(e.label_posterior_.argmax(1), noisy)
    assert np.abs(e.predict_proba(x) - e.class_prior_).max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "gain"), [(0.1, 0.08), (20.0, -1e-9)])
def test_a_graph_can_be_cross_fitted(alpha, gain):
    drawn = maystre2021.simulate(
        np.random.default_rng(2), M=1500, N=1500, K=5, alpha=alpha, delta=0.15
    )
    e = CollaborativeClassifier(**QUIET, training="cross_fit")
    with warnings.catch_warnings(record=True, action="always") as caught:
        e.fit(drawn.edges.T, drawn.v_hat)
    right = np.mean(e.classes_[e.label_posterior_.argmax(1)] == drawn.v)
    assert right - np.mean(drawn.v_hat == drawn.v) >= gain
    assert bool(caught) == (alpha > 1)
    if alpha < 1:
        new = e.predict_proba(drawn.edges.T)
        assert np.mean(e.classes_[new.argmax(1)] == drawn.v) > 0.85
        assert e.posterior(draws=20, warmup=20, chains=1)["posterior"]["noise_matrix"].size
