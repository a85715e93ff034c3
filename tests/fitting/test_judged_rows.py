"""Candidates of large tables are compared by a sample of the labels, and fitted to all."""

import numpy as np
import pytest

from inference.arrays import on_device
from nbmodels import NoisyBernoulliNB
from nbmodels.channels import Transition
from nbmodels.class_priors import Calibration
from nbmodels.core.model import PRIOR, Data
from nbmodels.estimators import joint_or_cross_fitted, table_training
from nbmodels.fitting import judged_rows as judged
from nbmodels.fitting import selection

N, D, K, FEW = 2_000, 12, 3, 600


@pytest.fixture
def few(monkeypatch):
    """Tables of more than twice 600 rows are judged by 600."""
    monkeypatch.setattr(selection, "JUDGED", FEW)
    for module in (table_training, joint_or_cross_fitted):
        monkeypatch.setattr(module, "MANY_ROWS", FEW)


def labelled(n=N):
    rng = np.random.default_rng(0)
    codes = rng.choice(K, n, p=[0.6, 0.3, 0.1])
    given = np.eye(K)[codes]
    given[::7] = 0  # no label
    parts = {
        PRIOR: Calibration.pack(rng.normal(size=(n, K))),
        "labels": Transition.pack(codes, K),
    }
    return {PRIOR: None, "labels": None}, Data(parts, on_device(np.ones(n))), given


def test_each_class_has_its_share_of_the_rows(few):
    model, data, given = labelled()
    rows = judged.judged_rows(model, data, given, FEW)
    assert len(rows) == len(set(rows)) == FEW
    assert given[rows].any(1).all()
    shares = given[given.any(1)].mean(0)
    np.testing.assert_allclose(given[rows].mean(0), shares, atol=2 / FEW)


def test_of_few_rows_or_of_votes_all_are_judged(few):
    model, data, given = labelled()
    assert judged.judged_rows(model, data, given * (np.arange(N) < FEW)[:, None], FEW) is None
    assert judged.judged_rows({**model, "votes": None}, data, given, FEW) is None


def test_rows_are_taken_of_all_that_is_known_of_them_and_put_back(few):
    _, data, _ = labelled()
    rows = np.array([3, 5, 8])
    some = judged.of_rows(data, rows)
    np.testing.assert_array_equal(some.parts[PRIOR], np.asarray(data.parts[PRIOR])[rows])
    np.testing.assert_array_equal(some.parts["labels"], np.asarray(data.parts["labels"])[rows])
    assert len(some.weights) == 3
    whole = judged.to_all(np.arange(3.0), rows, N)
    np.testing.assert_array_equal(whole[rows], np.arange(3.0))
    assert np.isnan(whole).sum() == N - 3


def drawn(informative=True):
    """Copied binary features, which no joint fit bears, and labels of which a fifth is wrong."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, K, N)
    x = rng.random((N, D)) < rng.uniform(0.1, 0.9, (K, D))[true if informative else 0]
    y = np.where(rng.random(N) < 0.2, rng.integers(0, K, N), true)
    return np.repeat(x.astype(int), 3, 1), y


def test_what_is_selected_is_fitted_to_all_rows(few, monkeypatch):
    x, y = drawn()
    some = NoisyBernoulliNB(training="cross_fit", random_state=0).fit(x, y)
    assert np.isfinite(some.fitted_.held_out_scores).sum() == FEW
    monkeypatch.setattr(selection, "JUDGED", N)
    whole = NoisyBernoulliNB(training="cross_fit", random_state=0).fit(x, y)
    assert np.isfinite(whole.fitted_.held_out_scores).all()
    assert some.label_posterior_.shape == whole.label_posterior_.shape
    alike = some.label_posterior_.argmax(1) == whole.label_posterior_.argmax(1)
    assert alike.mean() > 0.98
    np.testing.assert_allclose(some.noise_matrix_, whole.noise_matrix_, atol=0.03)


@pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")
def test_where_features_are_not_heard_all_rows_were_compared(few):
    e = NoisyBernoulliNB(training="cross_fit", random_state=0).fit(*drawn(informative=False))
    assert not e.fitted_.informative
    assert np.isfinite(e.fitted_.held_out_scores).all()
