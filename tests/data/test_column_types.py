"""The family of a column: one answer for all that reads tables."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nbmodels import AutoNoisyClassifier, DataError, NoisyCategoricalNB, NoisyMixedNB
from nbmodels.cli.clean import clean
from nbmodels.data.column_types import column_kind
from nbmodels.estimators.auto import suitable

# few rows, of which types matter and not the fit
pytestmark = pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")

N = 90
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
DATES = {
    "naive": pd.date_range("2024-02-29", periods=N),
    "zone": pd.date_range("2024-02-29", periods=N, tz="UTC"),
    "length": pd.to_timedelta(np.arange(N), "D"),
    "period": pd.period_range("2024-02-29", periods=N),
}


@pytest.fixture
def frame():
    kind = pd.Categorical(np.array(list("uvw"))[(Y + RNG.integers(0, 2, N)) % 3])
    flag = RNG.random(N) < 0.2 + 0.6 * Y
    return pd.DataFrame({"size": RNG.normal(Y, 1), "flag": flag, "kind": kind})


@pytest.mark.parametrize(
    ("values", "family"),
    [
        ([0.5, 2.0, np.nan], "gaussian"),
        ([0, 1, 1], "bernoulli"),
        ([0.0, 1.0, np.nan], "bernoulli"),
        ([1, 1, 1], "gaussian"),
        ([True, False, True], "bernoulli"),
        ([True, None, False], "bernoulli"),
        (pd.array([True, None, False], "boolean"), "bernoulli"),
        (pd.array([0, 1, None], "Int64"), "bernoulli"),
        (pd.array([0, 7, None], "Int64"), "gaussian"),
        (pd.Categorical([0, 1, 0]), "categorical"),
        (pd.Categorical([True, False, True]), "bernoulli"),
        (["a", None, "b"], "categorical"),
        ([[1], None, {}], "categorical"),
        ([None, None, None], "categorical"),
        ([1j, 0, 1], None),
        (DATES["naive"][:3], None),
        (DATES["zone"][:3], None),
        (DATES["length"][:3], None),
        (DATES["period"][:3], None),
    ],
)
def test_the_family_of_a_column(values, family):
    kind = column_kind(pd.Series(values))
    assert kind.family == family
    assert bool(kind.reason) == (family is None)


@pytest.mark.slow
def test_numbers_flags_and_categories_together(frame):
    families = {"size": "gaussian", "flag": "bernoulli", "kind": "categorical"}
    model = NoisyMixedNB.published(random_state=0).fit(frame, Y)
    assert model.families_ == families
    assert model.score(frame, Y) > 0.6
    # as with columns that NumPy has types for
    plain = frame.assign(flag=frame["flag"].astype(int), kind=frame["kind"].astype(object))
    other = NoisyMixedNB.published(random_state=0).fit(plain, Y)
    np.testing.assert_allclose(model.predict_proba(frame), other.predict_proba(plain))
    assert NoisyMixedNB.published().fit(frame[["flag", "kind"]], Y).families_["flag"] == "bernoulli"
    holes = frame.mask(RNG.random(frame.shape) < 0.1)
    found = NoisyMixedNB.published(missing_values=np.nan, random_state=0).fit(holes, Y)
    assert found.families_ == families
    assert suitable(frame) == ["mixed", "logistic", "forest"]
    assert (
        clean(frame.assign(y=Y), "y", draws=0, noise="full", weight=1, alpha=1).choice.families
        == families
    )


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (
            [[0, 3], [5, 16]],
            ["multinomial", "bernoulli", "tfidf", "gaussian", "logistic", "forest"],
        ),
        ([[0, 1], [1, 1]], ["bernoulli", "logistic", "forest"]),
        ([[0.5, -1], [1, 1]], ["gaussian", "student", "logistic", "forest"]),
        (sparse.csr_array([[0, 3], [5, 16]]), ["multinomial", "bernoulli", "tfidf", "logistic"]),
    ],
)
def test_models_that_a_table_can_be_taken_for(values, names):
    """Whole numbers of a dense table may be measurements; words of a sparse one get no trees."""
    x = values if sparse.issparse(values) else np.array(values)
    assert suitable(x) == names


def test_symbols_of_any_type(frame):
    model = NoisyCategoricalNB.published(random_state=0).fit(frame[["flag", "kind"]], Y)
    assert [list(c) for c in model.categories_] == [[False, True], list("uvw")]


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_refused_by_name(frame, kind):
    for columns in (["when"], ["size", "when"], ["size", "flag", "when", "kind"]):
        table = frame.assign(when=DATES[kind])[columns]
        with pytest.raises(
            DataError, match=r"^X: column 'when' .*dates and times have no emission"
        ):
            NoisyMixedNB.published().fit(table, Y)
    with pytest.raises(DataError, match=r"^X: column 'when' .*dates and times have no emission"):
        AutoNoisyClassifier().fit(table, Y)
    found = clean(table.assign(y=Y), "y", draws=0, noise="full", weight=1, alpha=1).choice
    assert found.left_out == {"when": "dates and times have no emission"}


def test_dates_can_be_categories_by_name(frame):
    days = [pd.Timestamp(datetime.date(2024, 2, 27 + i % 3)) for i in range(N)]
    table = frame.assign(when=days)
    found = NoisyMixedNB.published(families={"categorical": ["when"]}, random_state=0)
    assert found.fit(table, Y).families_["when"] == "categorical"
    with pytest.raises(DataError, match=r"'when'.*the gaussian family needs numbers"):
        NoisyMixedNB.published(families={"gaussian": ["when"]}).fit(table, Y)
