"""Labels that were checked by hand: what they prove of the others."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from nbmodels import DawidSkene, NoisyGaussianNB, NoisyLabelClassifier, NoisyLogisticRegression
from nbmodels.errors import DataError, IdentifiabilityWarning


def three_classes(seed=6, n=300, apart=2.0):
    rng = np.random.default_rng(seed)
    true = rng.integers(3, size=n)
    x = apart * np.eye(3)[true] + 0.7 * rng.normal(size=(n, 3))
    given = np.where(rng.random(n) < 0.25, (true + 1 + rng.integers(2, size=n)) % 3, true)
    return x, true, given


def first_rows(true, n):
    return {i: int(true[i]) for i in range(n)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(NoisyLogisticRegression(random_state=0), marks=pytest.mark.slow),
        NoisyGaussianNB(training="cross_fit", random_state=0),
        pytest.param(NoisyLabelClassifier(random_state=0), marks=pytest.mark.slow),
    ],
)
def test_errors_that_are_proved_do_not_make_other_labels_right(model):
    x, true, given = three_classes()
    model.fit(x, given, trusted=first_rows(true, 40))
    assert model.fitted_.noisy == 1
    others = model.corrected_labels()[40:]
    assert np.mean(others["suggested"] == true[40:]) > 0.92  # of the given ones 0.79


def test_checked_rows_are_not_to_be_checked_again():
    x, true, given = three_classes()
    model = NoisyGaussianNB(training="cross_fit", random_state=0)
    rank = model.fit(x, given, trusted=first_rows(true, 40)).corrected_labels()["rank"]
    assert rank[40:].max() == 260  # some of the checked ones were wrong


@pytest.mark.slow
def test_nor_are_checked_items_of_votes():
    _, true, _ = three_classes(n=100)
    item, worker = np.divmod(np.arange(300), 3)
    label = np.where(np.random.default_rng(0).random(300) < 0.8, true[item], 0)
    votes = pd.DataFrame({"task": item, "worker": worker, "label": label})
    for subtypes in (1, 2):
        model = DawidSkene(subtypes=subtypes, random_state=0)
        model.fit(votes, trusted=first_rows(true, 30))
        assert model.corrected_labels()["rank"][30:].max() == 70
        assert model.audit_plan(20).rows["row"].min() >= 30


def test_checks_of_all_rows():
    x, true, given = three_classes()
    model = NoisyGaussianNB(random_state=0).fit(x, given, trusted=first_rows(true, len(true)))
    np.testing.assert_array_equal(model.corrected_labels()["suggested"], true)


@pytest.mark.slow
def test_checks_show_the_noise_where_features_say_nothing():
    _, true, given = three_classes(n=600)
    given = np.where(true == 0, 0, given)
    x = np.random.default_rng(1).normal(size=(600, 3))
    model = NoisyLogisticRegression(random_state=0)
    with pytest.warns(IdentifiabilityWarning, match="rows that were checked"):
        model.fit(x, given, trusted=first_rows(true, 300))
    counts = np.zeros((3, 3))
    np.add.at(counts, (given[:300], true[:300]), 1)
    shares = counts / counts.sum(0)
    np.testing.assert_allclose(model.noise_matrix_, shares, atol=0.03)
    draws = model.posterior(draws=200, progress=False)["posterior"]["noise_matrix"]
    np.testing.assert_allclose(draws.mean(("chain", "draw")).values, shares, atol=0.04)
    assert (model.corrected_labels()["suggested"][300:] == given[300:]).all()


def test_checked_rows_are_named_by_the_index_of_a_data_frame():
    """As ``corrected_labels()``, audits and votes name them."""
    x, true, given = three_classes()
    frame = pd.DataFrame(x, index=np.arange(len(x))[::-1])
    other = (int(true[7]) + 1) % 3
    model = NoisyGaussianNB(random_state=0).fit(frame, given, trusted={frame.index[7]: other})
    assert model.corrected_labels().set_index("row").loc[frame.index[7], "suggested"] == other
    assert model.label_posterior_[7, other] == 1
    with pytest.raises(DataError, match="trusted: row 300 does not exist"):
        NoisyGaussianNB().fit(frame, given, trusted={300: 0})
    doubled = frame.set_axis(np.arange(len(x)) // 2)
    with pytest.raises(DataError, match="trusted: row 4 is 2 rows"):
        NoisyGaussianNB().fit(doubled, given, trusted={4: 0})


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [NoisyLogisticRegression(random_state=0), NoisyGaussianNB(random_state=0)]
)
def test_labels_of_rows_without_weight_do_not_count(model):
    """Neither for the folds."""
    x, _, given = three_classes(apart=1.0)
    weights = np.where(np.arange(len(x)) < 60, 0.0, 1.0)
    other = np.where(weights > 0, given, (given + 1) % 3)
    first, second = (clone(model).fit(x, y, sample_weight=weights) for y in (given, other))
    np.testing.assert_array_equal(first.noise_matrix_, second.noise_matrix_)
    np.testing.assert_array_equal(first.predict_proba(x), second.predict_proba(x))
