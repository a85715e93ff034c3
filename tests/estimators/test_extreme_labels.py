"""Unusual but legitimate classes, labels and sizes: what is read out is finite and normalised."""

import warnings

import numpy as np
import pytest
from extremes import (
    KINDS,
    K,
    N,
    every_kind,
    features,
    labels,
    make,
    plain,
    single_families,
    sound,
    truth,
)
from marks import slow_among

from nbmodels import (
    IdentifiabilityWarning,
)

# no model is right about such data, and the verdict may say so
pytestmark = pytest.mark.filterwarnings("ignore::nbmodels.errors.VerdictWarning")
#: The others cost a compilation each and share all the code that matters.
two_kinds = pytest.mark.parametrize("kind", slow_among(KINDS, set(KINDS) - {"bernoulli", "diag"}))


@single_families
def test_a_class_with_one_row(kind):
    y = np.where(truth(N) == 2, 0, labels())
    y[y == 2] = 1
    y[5] = 2
    x = features(kind)
    with warnings.catch_warnings():
        # one label cannot show that its class is labelled as itself
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        e = sound(make(kind).fit(x, y), x)
    assert list(e.classes_) == [0, 1, 2]


@two_kinds
@pytest.mark.filterwarnings("ignore:classes. no label names 3")
def test_a_class_never_observed(kind):
    x = features(kind)
    with warnings.catch_warnings():
        # items given to a class that nobody was labelled as are labelled as another
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        e = sound(make(kind, classes=[0, 1, 2, 3]).fit(x, labels()), x)
    # it may split a class of the 24 rows, which is reported, but takes none over
    assert e.class_prior_[3] < 1 / K
    assert (e.predict(x) == truth(N)).mean() > 0.7


@pytest.mark.filterwarnings("ignore:classes. no label names 3")
@pytest.mark.parametrize("method", ["ml", pytest.param("vb", marks=pytest.mark.slow)])
def test_a_class_never_observed_by_other_methods(method):
    """Nobody was ever labelled 3: Bayes' rule has to say something of it nevertheless."""
    x = features("bernoulli")
    e = make("bernoulli", classes=[0, 1, 2, 3], method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        sound(e.fit(x, labels()), x)


# of which two rows tell so little that given labels are likelier than the fit says
@pytest.mark.slow
def test_two_hundred_classes():
    k = 200
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(k), 2)
    x = rng.normal(np.stack([y % 15, y // 15, -y / 10], 1) * 6.0)
    e = sound(make("diag").fit(x, y), x)
    assert (e.predict(x) == y).mean() > 0.9


@two_kinds
def test_nearly_all_labels_missing(kind):
    x = features(kind)
    y = np.full(N, -1)
    y[[0, 1, 2]] = truth(N)[[0, 1, 2]]
    e = sound(make(kind, missing_label=-1).fit(x, y), x)
    frame = e.corrected_labels()
    assert frame["rank"].notna().sum() == 3


def test_all_labels_missing_of_declared_classes():
    x = features("bernoulli")
    e = make("bernoulli", missing_label=-1, classes=[0, 1, 2], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        sound(e.fit(x, np.full(N, -1)), x)
    assert e.corrected_labels()["p_wrong"].isna().all()


@two_kinds
def test_labels_all_wrong_are_names(kind):
    """Nothing tells a cycle of the labels from a cycle of the names."""
    x = features(kind)
    e = sound(make(kind).fit(x, (truth(N) + 1) % K), x)
    assert (np.diag(e.noise_matrix_) > 0.5).all()
    assert (e.predict(x) == (truth(N) + 1) % K).mean() > 0.7


@two_kinds
def test_labels_all_wrong_against_trusted_ones(kind):
    x, y = features(kind), truth(N)
    trusted = {int(i): int(y[i]) for i in range(0, N, 2)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        e = sound(make(kind).fit(x, (y + 1) % K, trusted=trusted), x)
    messages = [str(w.message) for w in caught if w.category is IdentifiabilityWarning]
    assert messages
    assert "0 as 1, 1 as 2, 2 as 0" in messages[0]
    assert (e.predict(x) == y).mean() > 0.7
    assert e.label_posterior_[np.arange(0, N, 2), y[::2]].min() > 1 - 1e-9


@every_kind
def test_one_row_at_predict(kind):
    e, x = plain(kind), features(kind)
    one = x.iloc[4:5] if kind == "mixed" else x[4:5]
    np.testing.assert_allclose(e.predict_proba(one), e.predict_proba(x)[4:5], 1e-12)


@two_kinds
def test_as_few_rows_as_classes(kind):
    x = features(kind)
    few = x.iloc[:K] if kind == "mixed" else x[:K]
    sound(make(kind).fit(few, truth(K)), x)


@pytest.mark.parametrize(
    "kind",
    [
        "bernoulli",
        "diag",
        *(pytest.param(k, marks=pytest.mark.slow) for k in [*KINDS[1:3], "full"]),
    ],
)
def test_one_feature(kind):
    x = features(kind)[:, :1]
    with warnings.catch_warnings():
        # one yes-or-no cannot tell three classes apart
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        sound(make(kind).fit(x, labels()), x)


@pytest.mark.parametrize(
    "kind",
    ["diag", *(pytest.param(k, marks=pytest.mark.slow) for k in (*KINDS[:3], "full"))],
)
def test_more_features_than_rows(kind):
    x = features(kind, n=12, d=40)
    e = sound(make(kind).fit(x, labels(12)), x)
    assert (e.predict(x) == truth(12)).mean() > 0.7
