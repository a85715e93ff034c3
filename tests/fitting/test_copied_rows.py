"""Near copies among the rows: that they are found, kept together, and fool no fit."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from nbmodels import (
    NoisyGaussianNB,
    NoisyLabelClassifier,
    NoisyLogisticRegression,
    NoisyNeighbours,
)
from nbmodels.datasets import corrupt, uniform_noise
from nbmodels.errors import DataError, NbmodelsWarning
from nbmodels.fitting.copied_rows import among, copied_rows, copies_caution, row_groups
from nbmodels.fitting.nearest import nearest_labels
from nbmodels.fitting.points import points
from nbmodels.fitting.scores import draw_folds, stratified_folds


def with_copies(x, rows, times, spread, rng):
    """The table with copies of some rows below it, and the group of each row."""
    again = np.repeat(rows, times)
    more = x[again] + spread * rng.normal(size=(len(again), x.shape[1]))
    return np.vstack([x, more]), np.r_[np.arange(len(x)), again]


def gross_errors(rng):
    """Of the cells, one in twenty is a hundred times too large: such rows lie on lines."""
    x = rng.normal(size=(600, 6))
    return np.where(rng.random(x.shape) < 0.05, 100 * x, x)


@pytest.mark.parametrize("columns", [6, 30])
@pytest.mark.parametrize("spread", [0.0, 0.02])
def test_copies_are_found(columns, spread):
    rng = np.random.default_rng(columns)
    x, group = with_copies(rng.normal(size=(300, columns)), np.arange(40, 50), 8, spread, rng)
    np.testing.assert_array_equal(copied_rows(points(x)), group)


def test_a_table_in_which_every_row_is_there_five_times():
    rng = np.random.default_rng(0)
    x, group = with_copies(rng.normal(size=(60, 6)), np.arange(60), 4, 0.05, rng)
    assert np.mean(copied_rows(points(x)) == group) > 0.98


@pytest.mark.parametrize(("records", "times"), [(150, 4), (60, 40), (20, 6)])
def test_a_table_of_exact_copies(records, times):
    rng = np.random.default_rng(0)
    record = rng.permutation(np.repeat(np.arange(records), times))
    found = copied_rows(points(rng.normal(size=(records, 5))[record]))
    first = np.unique(record, return_index=True)[1]
    np.testing.assert_array_equal(found, first[record])


def one_number_beside_symbols(rng, number, n=300):
    """A column of numbers, one that hangs on it, and three of a few symbols."""
    x = number(rng, n)
    return np.column_stack([x, x > np.median(x), rng.integers(0, 3, (n, 3))]).astype(float)


def amounts(rng, n):
    """In cents, up to some hundreds."""
    return np.exp(rng.normal(3, 1, n)).round(2)


def test_equal_rows_are_copies_where_one_column_is_continuous():
    """A record that was exported twice, of a number and symbols."""
    rng = np.random.default_rng(0)
    x, group = with_copies(one_number_beside_symbols(rng, amounts), np.arange(40), 1, 0.0, rng)
    found = copied_rows(points(x))
    np.testing.assert_array_equal(found[300:], found[group[300:]])
    assert len(np.unique(found)) > 295  # few others are equal by chance


def answers(rng, n, columns, levels):
    """Of three kinds of people to questions, as numbers and as indicators."""
    likely = rng.dirichlet(np.full(levels, 0.5), (3, columns)).cumsum(2)[rng.integers(3, size=n)]
    codes = (likely < rng.random((n, columns, 1))).sum(2)
    return codes.astype(float), np.eye(levels)[codes].reshape(n, -1)


@pytest.mark.parametrize("kind", [0, 1])
def test_equal_answers_to_many_questions_are_copies(kind):
    rng = np.random.default_rng(0)
    x, group = with_copies(answers(rng, 300, 20, 5)[kind], np.arange(40), 1, 0.0, rng)
    np.testing.assert_array_equal(copied_rows(points(x)), group)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("columns", "levels"), [(3, 10), (6, 5), (12, 2), (20, 2)])
def test_equal_answers_to_few_questions_are_equal_by_chance(columns, levels, kind):
    x = answers(np.random.default_rng(columns), 300, columns, levels)[kind]
    assert len(np.unique(x, axis=0)) < 300
    assert copied_rows(points(x)) is None


def tenths(rng, n):
    return rng.normal(20, 5, n).round(1)


def prices(rng, n):
    """One of each of fifty products."""
    return amounts(rng, 50)[rng.integers(0, 50, n)]


@pytest.mark.parametrize("number", [amounts, tenths, prices])
@pytest.mark.parametrize("seed", range(5))
def test_equal_rows_of_a_number_and_symbols_are_equal_by_chance(number, seed):
    x = one_number_beside_symbols(np.random.default_rng(seed), number)
    for columns in (x, x[:, :2], x[:, [0, 2]]):
        assert copied_rows(points(columns)) is None


@pytest.mark.parametrize(
    "x",
    [
        *(load(return_X_y=True)[0] for load in (load_breast_cancer, load_iris, load_wine)),
        *(np.random.default_rng(d).normal(size=(500, d)) for d in (1, 2, 5, 20)),
        np.random.default_rng(0).standard_t(2, size=(400, 4)),
        gross_errors(np.random.default_rng(0)),
        np.cumsum(np.random.default_rng(2).normal(size=(400, 6)), 0),
        np.random.default_rng(1).integers(0, 2, (400, 12)),
        np.random.default_rng(1).integers(18, 90, 600)[:, None] ** np.arange(1, 4),
        np.random.default_rng(1).normal(15, 5, (2_000, 1)).round(1) * [1, 1.8],
        np.random.default_rng(1).normal(size=(20, 5)),
    ],
    ids=[
        *("cancer", "iris", "wine", "1", "2", "5", "20", "tails", "gross errors", "walk", "binary"),
        *("ages and their powers", "two units", "few"),
    ],
)
def test_none_are_found_where_there_are_none(x):
    assert copied_rows(points(np.asarray(x, float))) is None


def test_copies_stay_in_one_fold():
    rng = np.random.default_rng(0)
    codes, copies = rng.integers(3, size=200), np.arange(200)
    copies[150:] = np.repeat(np.arange(10), 5)
    for fold in (
        stratified_folds(codes, 5, rng, copies),
        draw_folds(np.eye(3)[codes], 5, copies),
    ):
        assert all(len(np.unique(fold[copies == one])) == 1 for one in range(10))
        assert np.bincount(fold).min() > 15


def test_copies_among_some_rows():
    copies = np.array([0, 1, 1, 3, 0, 1])
    np.testing.assert_array_equal(among(copies, np.array([2, 3, 4, 5])), [0, 1, 2, 0])


def test_copies_are_no_neighbours_and_count_once():
    rng = np.random.default_rng(3)
    x, group = with_copies(rng.normal(size=(60, 3)), np.arange(10), 6, 0.001, rng)
    codes = np.arange(60) % 2
    near = nearest_labels(x, np.r_[codes, np.ones(60, int)], 2, [3], copies=group)
    alone = nearest_labels(x[:60], codes, 2, [3])
    assert (near.counts[3].sum(1) == 3).all()
    # a row without copies, whose neighbours have none, either: as without the copies
    distance = np.linalg.norm(x[:60, None] - x[None, :60], axis=2)
    plain = [i for i in range(10, 60) if (np.argsort(distance[i])[1:4] >= 10).all()]
    assert len(plain) > 5
    for i in plain:
        own = near.counts[3][near.rows == i], alone.counts[3][alone.rows == i]
        np.testing.assert_array_equal(*own)


def test_many_copies_need_a_warning():
    copies, weights = np.arange(100), np.ones(100)
    copies[95:] = 3
    assert copies_caution(copies, weights) == ()
    copies[80:] = 3
    (caution,) = copies_caution(copies, weights)
    assert "20 rows are near copies of others (row 3 has 20: 80, 81, 82 ...)" in caution.message
    weights[80:98] = 0
    assert copies_caution(copies, weights) == ()


@cache
def shared_errors():
    """Eight rows with a wrong label, each there eleven times."""
    rng = np.random.default_rng(23)
    y = rng.integers(0, 3, 500)
    x = rng.normal(0, 1.5, (3, 6))[y] + rng.normal(size=(500, 6))
    wrong = rng.choice(500, 8, replace=False)
    given = y.copy()
    given[wrong] = (y[wrong] + 1) % 3
    x, group = with_copies(x, wrong, 10, 0.02, rng)
    return x, given[group], y[group]


@pytest.mark.slow
def test_the_noise_of_equal_rows_of_a_number_and_symbols_is_found():
    """A forest knew the labels of records that are there twice by heart: 0.86 seemed right."""
    right = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        true = rng.choice(3, 250, p=[0.45, 0.3, 0.25])
        number = np.exp(rng.normal(np.array([3, 4.2, 2.4])[true], 0.6)).round(2)
        symbols = rng.poisson(np.array([[3, 1], [7, 2], [5, 4]])[true])
        given = np.where(rng.random(250) < 0.25, (true + rng.integers(1, 3, 250)) % 3, true)
        rows = np.r_[np.arange(250), rng.choice(250, 60)]
        model = NoisyLabelClassifier(RandomForestClassifier(60, random_state=0), random_state=0)
        with warnings.catch_warnings(record=True, action="always") as caught:
            model.fit(np.column_stack([number, symbols])[rows], given[rows])
        assert any("near copies" in str(one.message) for one in caught)
        right.append(np.diag(model.noise_matrix_).mean())
    assert abs(np.mean(right) - 0.75) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        NoisyGaussianNB(random_state=0),
        NoisyLogisticRegression(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_errors_that_copies_share_are_found(model):
    x, given, true = shared_errors()
    assert np.mean(given == true) < 0.85
    with warnings.catch_warnings(record=True, action="always") as caught:
        fitted = model.fit(x, given)
    messages = [str(w.message) for w in caught if issubclass(w.category, NbmodelsWarning)]
    assert any("near copies" in message for message in messages)
    labels = fitted.corrected_labels()
    assert np.mean(labels["suggested"] == true) > 0.97
    assert roc_auc_score(given != true, -labels["rank"]) > 0.95
    low, high = fitted.noise_range_.separable.share_interval
    assert low < np.mean(given != true) < high


def test_groups_may_have_any_names():
    x = np.zeros((7, 1))
    expected = [0, 1, 0, 3, 1, 5, 6]
    for names in (
        ["ann", "bob", "ann", None, "bob", None, "eve"],
        pd.Series(["ann", "bob", "ann", pd.NA, "bob", pd.NA, "eve"], dtype="string"),
        [7.0, 2.0, 7.0, np.nan, 2.0, np.nan, 1.0],
    ):
        np.testing.assert_array_equal(row_groups(x, groups=names), expected)


def test_groups_of_another_number_of_rows_are_refused():
    x, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    for model in (NoisyGaussianNB(), NoisyLogisticRegression(), NoisyNeighbours()):
        with pytest.raises(DataError, match=r"groups: expected one name a row, \(40,\)"):
            model.fit(x, y, groups=np.arange(39))
    with pytest.raises(DataError, match=r"groups: 2 groups are too few .* expected 5 or more"):
        NoisyGaussianNB().fit(x, y, groups=y)
    with pytest.raises(DataError, match="groups: leave distances"):
        NoisyNeighbours(metric="precomputed").fit(x, y, groups=y)


@cache
def visits(seed):
    """Six visits of each of 150 patients, of whom one in seven has a wrong diagnosis."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 150)
    patients = rng.normal(0, 1.5, (3, 6))[y] + rng.normal(size=(150, 6))
    given = np.where(rng.random(150) < 0.15, (y + 1) % 3, y)
    patient = np.repeat(np.arange(150), 6)
    return patients[patient] + 0.35 * rng.normal(size=(900, 6)), given[patient], y[patient], patient


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        NoisyLogisticRegression(random_state=0),
        NoisyNeighbours(random_state=0),
        NoisyLabelClassifier(KNeighborsClassifier(15), random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_errors_that_a_group_shares_are_found(model):
    x, given, true, patient = visits(63)
    right = {}
    for groups in (None, patient):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NbmodelsWarning)
            labels = model.fit(x, given, groups=groups).corrected_labels()
        right[groups is None] = np.mean(labels["suggested"] == true)
    assert right[False] > 0.96
    assert right[False] > right[True] + 0.08
    assert model.fitted_.design_effects.noise > 4  # of six visits that share an error


def test_neighbours_need_three_groups_and_no_folds():
    rng = np.random.default_rng(0)
    true = np.arange(120) % 2
    x = rng.normal(size=(120, 2)) + 5 * true[:, None]
    given = corrupt(true, uniform_noise(2, 0.2), rng)
    with pytest.raises(DataError, match=r"groups: 2 groups are too few .* expected 3 or more"):
        NoisyNeighbours().fit(x, given, groups=true)
    few = NoisyNeighbours(n_neighbors=2).fit(x, given, groups=np.arange(120) // 40)
    assert np.mean(few.label_posterior_.argmax(1) == true) > np.mean(given == true)


def test_groups_reach_the_sample_of_a_large_table(monkeypatch):
    """Settings are selected on a sample, in which a group still stays in one fold."""
    monkeypatch.setattr("nbmodels.estimators.table_training.SAMPLE", 200)
    monkeypatch.setattr("nbmodels.estimators.large_tables.SAMPLE", 200)
    seen = []

    def watched(resp, n_folds, copies=None):
        seen.append(copies)
        return draw_folds(resp, n_folds, copies)

    monkeypatch.setattr("nbmodels.fitting.cross_fitted.draw_folds", watched)
    x, given, _, patient = visits(63)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NbmodelsWarning)
        NoisyGaussianNB(random_state=0).fit(x, given, groups=patient)
    assert len(seen[0]) < len(given)
    assert all(copies is not None for copies in seen)
