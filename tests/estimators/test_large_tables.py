"""Large tables: what is open is selected on a sample of the rows, then fitted to all of them."""

from types import SimpleNamespace

import numpy as np
import pytest
from marks import slow_among

from inference import Status
from inference.blocks import MANY_CLASSES
from nbmodels import NoisyBernoulliNB, Solver
from nbmodels.core.model import Data
from nbmodels.data.validation import padded_length
from nbmodels.estimators import joint_or_cross_fitted, large_tables, table_training
from nbmodels.fitting import options, reference_floor, training_rounds
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.candidate_fits import CandidateFits
from nbmodels.fitting.candidate_trials import CandidateTrials
from nbmodels.fitting.scores import Candidate

pytestmark = pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")

N, D, K, SMALL = 3_000, 6, 3, 600


def drawn(copies=1, informative=True):
    """Binary features, each ``copies`` times, and labels of which a fifth is wrong."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, K, N)
    x = rng.random((N, D)) < rng.uniform(0.1, 0.9, (K, D))[true if informative else 0]
    y = np.where(rng.random(N) < 0.2, rng.integers(0, K, N), true)
    return np.repeat(x.astype(int), copies, 1), y


def accuracy(e):
    """Share of right labels among the likeliest ones, by the true classes of ``drawn``."""
    true = np.random.default_rng(0).integers(0, K, N)
    return np.mean(e.label_posterior_.argmax(1) == true)


@pytest.fixture
def sampled(monkeypatch):
    """Tables of more than 1,200 rows are large; the number of rows of each fit as it comes."""
    for module in (large_tables, table_training):
        monkeypatch.setattr(module, "SAMPLE", SMALL)
    monkeypatch.setattr(reference_floor, "MANY_ROWS", 2 * SMALL)
    rows, fit_many = [], options.fit_many

    def counted(models, data, **more):
        rows.extend(np.count_nonzero(one.weights) for one in data)
        return fit_many(models, data, **more)

    monkeypatch.setattr(options, "fit_many", counted)
    return rows


def without_sample(x, y):
    return NoisyBernoulliNB(random_state=0).fit(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("copies", slow_among([1, 4], {1}))
def test_the_fit_is_as_good_as_one_selected_on_all_rows(copies, monkeypatch, sampled):
    """Jointly where features are independent, cross-fitted where they are copies."""
    x, y = drawn(copies)
    e = NoisyBernoulliNB(random_state=0).fit(x, y)
    most = sum(n > SMALL for n in sampled)
    assert len(sampled) > 10
    assert most < 10, "fits of all rows, one for each learned prior"
    assert e.label_posterior_.shape == (N, K)
    assert e.choice_.attrs["rows"] == pytest.approx(SMALL, abs=1)
    monkeypatch.setattr(table_training, "SAMPLE", N)
    whole = without_sample(x, y)
    assert (e.chosen_.get("training") == "joint") == (whole.chosen_.get("training") == "joint")
    assert accuracy(e) > accuracy(whole) - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("copies", slow_among([1, 4], {1}))
def test_a_changed_choice_costs_no_more_than_the_tolerance(copies, monkeypatch, sampled):
    """What the sample selects is within its standard error of the best, by all held-out labels."""
    x, y = drawn(copies)
    chosen = NoisyBernoulliNB(random_state=0, training="cross_fit").fit(x, y).chosen_
    monkeypatch.setattr(table_training, "SAMPLE", N)
    table = NoisyBernoulliNB(random_state=0, training="cross_fit").fit(x, y).choice_
    settings = [name for name in chosen if name != "rounds" and name in table]
    same = np.all([table[name] == chosen[name] for name in settings], axis=0)
    best = table["log_likelihood"].max()
    if same.any():
        spread = 1 / np.sqrt(SMALL)
        assert best - table["log_likelihood"][same].max() <= spread


@pytest.mark.slow
@pytest.mark.parametrize("behind", [False, True])
def test_the_sample_s_joint_model_is_not_fitted_where_one_fold_settles_it(
    behind, monkeypatch, sampled
):
    """Which is asked with many classes; where it settles nothing, all is as without it."""
    x, y = drawn()
    usual = NoisyBernoulliNB(random_state=0).fit(x, y)
    assert usual.chosen_.get("training") == "joint"
    compared = joint_or_cross_fitted._behind
    monkeypatch.setattr(table_training, "MANY_CLASSES", K)
    if behind:
        monkeypatch.setattr(joint_or_cross_fitted, "_behind", lambda found: compared(found) + 100)
    asked = NoisyBernoulliNB(random_state=0).fit(x, y)
    (joint,) = asked.choice_.index[asked.choice_["training"] == "joint"]
    assert asked.choice_["chosen"][joint] != behind
    assert (asked.chosen_ == usual.chosen_) != behind


@pytest.mark.slow
def test_labels_stay_where_features_say_nothing(sampled):
    x, y = drawn(informative=False)
    e = NoisyBernoulliNB(random_state=0).fit(x, y)
    np.testing.assert_array_equal(e.corrected_labels()["suggested"], y)
    assert len(e.label_posterior_) == N


@pytest.mark.slow
def test_the_same_seed_draws_the_same_sample(sampled):
    x, y = drawn()
    one, other = (NoisyBernoulliNB(random_state=3).fit(x, y) for _ in range(2))
    np.testing.assert_array_equal(one.label_posterior_, other.label_posterior_)


@pytest.mark.slow
def test_columns_are_coded_as_all_rows_are(sampled):
    """A sample without some symbols and rows without labels or weight are no obstacle."""
    x, y = drawn()
    weights = np.ones(N)
    weights[::5] = 0
    y = y.astype(float)
    y[::7] = np.nan
    e = NoisyBernoulliNB(missing_label=np.nan, solver=Solver(method="vb")).fit(x, y, weights)
    assert np.isfinite(e.label_posterior_).all()


def test_samples_fill_the_rows_that_they_are_padded_to():
    for k, rows in {4: 16_384, 120: 16_384, 150: 8_192, 300: 4_096, 1_000: 4_096}.items():
        assert large_tables._sampled(k) == rows == padded_length(rows)


def test_exactly_as_many_rows_are_drawn_as_are_asked_for():
    weights = np.ones(N)
    weights[::3] = 0
    table = SimpleNamespace(weights=weights, labels={})
    for most in (599, 600, 1_024, N):
        rows = ModelBuilder.drawn_rows(table, most, np.random.default_rng(0))
        assert len(rows) == len(set(rows)) == min(most, np.count_nonzero(weights))
        assert weights[rows].all()


@pytest.mark.parametrize(("change", "done"), [(1e-5, True), (1e-3, False)])
def test_a_first_round_that_changes_nothing_is_the_last(change, done):
    """With many rows; with few another one may change more."""
    rng = np.random.default_rng(0)
    first = SimpleNamespace(scores=rng.normal(-1, 0.5, 400), rounds=0)
    last = SimpleNamespace(scores=first.scores + change, rounds=1)
    about = {
        "weights": np.ones(400),
        "made": [first, last],
        "better": lambda *_: False,
        "share": 1.0,
    }
    for warm in (True, False):
        run = SimpleNamespace(warm=warm, **about)
        assert training_rounds._enough(run, first, last) == (warm and done)


@pytest.mark.parametrize(("warm", "choosing"), [(True, False), (True, True), (False, False)])
def test_only_fits_of_all_rows_are_gone_on_from_with_a_looser_tolerance(warm, choosing):
    """Which begin at the sample's solution, and whose labels are compared with nothing."""
    asked = options.FitOptions(key=None, seed=0, tol=1e-5)
    run = SimpleNamespace(warm=warm, choosing=choosing, fits=CandidateFits(asked, None))
    loose = CandidateTrials.tentative.fget(run)
    assert loose.tol == pytest.approx(1e-4 if warm and not choosing else 1e-5)


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("n_classes", [MANY_CLASSES - 1, MANY_CLASSES])
def test_fits_of_many_classes_to_a_part_of_the_labels_are_looser(warm, n_classes):
    """Where they begin at the solution of all labels; those of all have the whole tolerance."""
    asked, used = options.FitOptions(key=None, seed=0, tol=1e-5), []
    fits = CandidateFits(asked, None, warm=warm, n_classes=n_classes, start={})

    def each(model, data, start=None, options=None):
        if data:
            used.append(options.tol)
        return [SimpleNamespace(status=Status.CONVERGED, params={})] * len(data)

    fits.each = each
    data = Data({}, np.ones(4))
    fits.of(Candidate({}, data), [])
    fits.of(Candidate({}, data), [np.arange(4) > 0])
    loose = warm and n_classes >= MANY_CLASSES
    assert used == pytest.approx([1e-5, 1e-5, 1e-2] if loose else [1e-5, 1e-5])
