"""The family of a column: one answer for all that reads tables."""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nbmodels import AutoNoisyClassifier, DataError, NoisyCategoricalNB, NoisyMixedNB
from nbmodels.cli.clean import clean
from nbmodels.data.column_types import column_kind, identifiers
from nbmodels.data.user_table import read_features
from nbmodels.errors import NbmodelsWarning
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
        (sparse.csr_array([[0.5, -1], [1, 1]]), ["logistic"]),
    ],
)
def test_models_that_a_table_can_be_taken_for(values, names):
    """Whole numbers of a dense table may be measurements; words of a sparse one get no trees."""
    x = values if sparse.issparse(values) else np.array(values)
    assert suitable(x) == names


def test_symbols_of_any_type(frame):
    model = NoisyCategoricalNB.published(random_state=0).fit(frame[["flag", "kind"]], Y)
    assert [list(c) for c in model.categories_] == [[False, True], list("uvw")]


@pytest.mark.slow
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


def left_out(cells, **more):
    frame = pd.DataFrame({"x": cells, "size": np.arange(len(cells)) % 7, "y": 0})
    return read_features(frame, "y", more.get("features"), None)[0].left_out


TENTHS = [f"{v:.1f}" for v in np.random.default_rng(0).normal(size=300)]
DECIMALS = [f"{v:.3f}" for v in np.random.default_rng(0).normal(size=300)]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (
            [f"P{i // 4}" for i in range(1000)],
            "250 values in 1000 rows, like an id's; .* --groups x",
        ),
        ([f"P{i % 60}" for i in range(500)], "60 values in 500 rows"),
        ([f"P{i % 60}" for i in range(600)], None),  # ten rows a value: products, zip codes
        ([f"P{i % 40}" for i in range(120)], None),
        ([*DECIMALS[:4], "?", *DECIMALS[5:]], None),  # a marker of missing cells
        ([f"2021-03-0{i % 9 + 1}" for i in range(300)], "^dates and times have no emission$"),
        ([f"{i % 28 + 1}.{i % 12 + 1}.21 10:15" for i in range(300)], "^dates and times"),
        ([*DECIMALS[:-2], "n", "m"], "^298 of 300 .*; 'n' in row 299 is not, and 1 more$"),
        (
            [f"{i + 1},{i % 9}37" for i in range(300)],
            "its numbers are written like '1,037' in row 1",
        ),
        ([*(f"{v} %" for v in DECIMALS[1:]), "n"], f"written like '{DECIMALS[1]} %' in row 1"),
        (
            [*DECIMALS[:200], *["none", "not done"] * 35],
            "^200 of 270 cells are numbers; 'none' in row 201 is not, and 69 more$",
        ),
        (DECIMALS, "its numbers are stored as text"),
        ([*DECIMALS[:150], *(f"a{v}" for v in DECIMALS[150:])], "nearly all values differ|all val"),
    ],
)
def test_columns_that_seem_to_identify(cells, reason):
    found = left_out(cells)
    assert set(found) == ({"x"} if reason else set())
    if reason:
        assert re.search(reason, found["x"]), found["x"]
        assert left_out(cells, features=["x", "size"]) == {}


@pytest.mark.parametrize(
    ("cells", "family", "remark"),
    [
        (
            [*DECIMALS[:4], "?", *DECIMALS[5:]],
            "gaussian",
            "'x': '?' in 1 cell is taken for missing",
        ),
        ([*DECIMALS[:200], *["Unknown", "unknown "] * 40], "gaussian", "'Unknown' in 80 cells is"),
        ([v.replace(".", ",") for v in TENTHS], "gaussian", "'x': '0,1' in row 1 is read as 0.1"),
        ([v.replace(".", ",") for v in DECIMALS], "gaussian", "'0,126' in row 1 is read as 0.126"),
        # of thousands, or not
        ([f"{i % 12 + 1},37{i % 9}" for i in range(300)], "categorical", ""),
        ([*["$1,244", "$961", "$2,081"] * 80, *(f"${i}" for i in range(9))], "categorical", ""),
        (["1.243,56", "960,92", *(f"{i},5" for i in range(12))] * 20, "categorical", ""),
        ([f"{v} %" if i % 2 else v for i, v in enumerate(TENTHS)], None, ""),
        ([f"{v} %" for v in DECIMALS], "gaussian", f"'{DECIMALS[0]} %' in row 1 is read as"),
        ([f"€1,2{v[-2:]}.{v[-3:]}" for v in DECIMALS], "gaussian", "'€1,2"),
        (["1,2", "1", "2,3"] * 90, "categorical", ""),  # codes
        ([*DECIMALS[:200], *["<0.1"] * 9], "gaussian", "'<0.1' in 9 .*; where it is a limit of"),
        ([*DECIMALS[:200], *["low", "high"] * 40], None, ""),  # nearly all values differ
        ([*map(str, range(11))] * 20 + ["a", "b"], "categorical", "2 of 222 .* ('a' in row 221)"),
        (["1", "2", "3", "?"] * 30, "categorical", ""),  # codes
        ([*DECIMALS[:100], *["none"] * 150], None, ""),  # most cells are no numbers
    ],
)
def test_numbers_with_another_cell_among_them(cells, family, remark):
    frame = pd.DataFrame({"x": cells, "size": np.arange(len(cells)) / 7, "y": "b"})
    choice, x = read_features(frame, "y", None, None)
    assert choice.families.get("x") == family
    assert len(choice.remarks) == bool(remark)
    for found in choice.remarks:
        assert all(part in found for part in remark.split(".*")), found
    if family == "gaussian":
        hidden = ~pd.Series(cells).str.startswith(("0", "1", "2", "3", "-", "€"))
        np.testing.assert_array_equal(x["x"].isna(), hidden)


def test_estimators_warn_of_ids_that_nobody_chose():
    frame = pd.DataFrame({"size": np.arange(400) / 7, "who": [f"P{i // 4}" for i in range(400)]})
    assert "'who' of X has 100 values in 400 rows, like an id's" in identifiers(frame)[0].message
    assert identifiers(frame, {"gaussian": ["size"]})
    for chosen in (["who"], [1]):
        assert not identifiers(frame, {"categorical": chosen})
    assert not identifiers(frame.assign(who=[[1]] * 400))


def test_numbers_as_objects_are_warned_of():
    """As databases give them, with None in the place of a number."""
    ages = pd.Series([float(20 + i % 50) for i in range(400)], dtype=object)
    ages[3] = None
    (found,) = identifiers(pd.DataFrame({"age": ages}))
    assert "'age' of X has numbers as objects, whose 50 values are taken for" in found.message
    assert not identifiers(pd.DataFrame({"age": pd.to_numeric(ages)}))
    assert not identifiers(pd.DataFrame({"age": ages}), {"categorical": ["age"]})
    few = pd.Series([1, 2, 3, None] * 100, dtype=object)
    assert not identifiers(pd.DataFrame({"code": few}))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [NoisyMixedNB, AutoNoisyClassifier])
def test_the_warning_of_ids_is_given_once(estimator):
    who = [f"P{i // 2}" for i in range(120)]
    table = pd.DataFrame({"size": np.arange(120) % 2 + RNG.normal(size=120), "who": who})
    model = estimator(noise="symmetric", random_state=0)
    if estimator is AutoNoisyClassifier:
        model.set_params(emission="mixed")
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(table, np.arange(120) % 2)
    found = [w for w in caught if "like an id's" in str(w.message)]
    assert len(found) == 1
    assert issubclass(found[0].category, NbmodelsWarning)


def test_categories_that_training_never_saw_are_told_if_there_is_no_other():
    sizes = np.arange(60) % 3
    model = NoisyCategoricalNB.published(random_state=0).fit(sizes.astype(str)[:, None], sizes > 1)
    with pytest.warns(
        NbmodelsWarning, match=r"column '0', .* row 0 is 0, and training saw '0', '1'"
    ):
        model.predict(sizes[:, None])  # numbers, where training had text
    assert model.predict([["2"], ["9"]]).tolist()[0]  # no warning
