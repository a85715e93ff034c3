"""Neighbours' labels as votes, as an estimator and as a source of a joint model."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import kneighbors_graph

from nbmodels import DataError, JointNB, NoisyGaussianNB, NoisyNeighbours, VerdictWarning
from nbmodels.datasets import corrupt

NAMES = np.array(["apple", "berry", "cherry"], object)
PAIR = np.array([[0.7, 0.0, 0.3], [0.3, 0.7, 0.0], [0.0, 0.3, 0.7]])
MEANS = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    x = MEANS[y] + rng.normal(size=(300, 2))
    return x, y, corrupt(y, PAIR, rng)


@pytest.fixture(scope="module")
def fitted(clouds):
    x, _, given = clouds
    return NoisyNeighbours().fit(x, NAMES[given])


def test_labels_and_noise_are_found(fitted, clouds):
    _, y, given = clouds
    assert np.mean(fitted.label_posterior_.argmax(1) == y) > np.mean(given == y) + 0.2
    np.testing.assert_allclose(fitted.noise_matrix_, PAIR, atol=0.1)
    assert fitted.n_neighbors_ >= 5
    frame = fitted.corrected_labels()
    assert set(frame["suggested"]) == set(NAMES)
    assert fitted.verdict().ok


def test_classes_that_overlap_are_told_from_wrong_labels():
    """All labels are right, and a quarter is in the middle of another class."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 400)
    x = np.column_stack([1.5 * y + rng.normal(size=400), rng.normal(size=400)])
    with pytest.warns(VerdictWarning, match="right labels where classes overlap"):
        model = NoisyNeighbours().fit(x, NAMES[y])
    assert np.mean(model.corrected_labels()["suggested"] == NAMES[y]) < 0.9
    # no classifier without a model of its own is asked where distances are given
    near = kneighbors_graph(x, 20, mode="distance")
    NoisyNeighbours(metric="precomputed", n_neighbors=9).fit(near, NAMES[y])


def test_new_items_are_of_the_class_of_the_items_they_are_near(fitted):
    assert list(fitted.predict(MEANS)) == list(NAMES)


def test_a_graph_of_neighbours_may_be_given(clouds):
    """Distances say the same as the features they are of, in cross-validation too."""
    x, y, given = clouds
    x = (x - x.mean(0)) / x.std(0)
    graph = kneighbors_graph(x, 40, mode="distance", include_self=True)
    by_graph = NoisyNeighbours(metric="precomputed").fit(graph, NAMES[given])
    by_points = NoisyNeighbours().fit(x, NAMES[given])
    assert by_graph.n_neighbors_ == by_points.n_neighbors_
    np.testing.assert_allclose(by_graph.noise_matrix_, by_points.noise_matrix_, atol=0.01)
    near = pairwise_distances(MEANS[:1] / MEANS.std(), x[:60])
    some = NoisyNeighbours(metric="precomputed", n_neighbors=5)
    some.fit(sparse.csr_array(pairwise_distances(x[:60])), NAMES[given[:60]])
    assert some.predict(sparse.csr_array(near)).shape == (1,)
    # items without neighbours keep what their own label says
    alone = sparse.lil_array(graph)
    alone[:5] = 0
    few = NoisyNeighbours(metric="precomputed", n_neighbors=5).fit(alone, NAMES[given])
    assert (few.label_posterior_[:5].argmax(1) == given[:5]).all()
    split = cross_val_score(by_graph.set_params(n_neighbors=5), graph, NAMES[y], cv=3)
    assert split.mean() > 0.9


def test_items_without_a_label_are_predicted_too(clouds):
    x, y, given = clouds
    labels = NAMES[given].copy()
    labels[:20] = "?"
    one = NoisyNeighbours(missing_label="?", n_neighbors=8).fit(x, labels)
    assert np.mean(one.label_posterior_.argmax(1)[:20] == y[:20]) > 0.9


@pytest.mark.slow
def test_neighbours_are_a_source_among_others(clouds):
    x, y, given = clouds
    model = JointNB({"near": NoisyNeighbours(n_neighbors=6), "size": NoisyGaussianNB()})
    model.fit({"near": (x[:, :1], NAMES[given]), "size": x[:, 1:]}, NAMES[given])
    assert np.mean(model.label_posterior_.argmax(1) == y) > np.mean(given == y) + 0.1
    assert list(model.predict({"near": MEANS[1:2, :1]})) == ["berry"]


def test_bad_input_is_named(clouds):
    x, _, given = clouds
    with pytest.raises(DataError, match=r"^y: expected 30 labelled rows"):
        NoisyNeighbours().fit(x[:20], given[:20])
    with pytest.raises(DataError, match=r"^n_neighbors: expected less than the 40"):
        NoisyNeighbours(n_neighbors=40).fit(x[:40], given[:40])
    with pytest.raises(DataError, match=r"^n_neighbors: "):
        NoisyNeighbours(n_neighbors=0).fit(x, given)
    with pytest.raises(DataError, match=r"^metric: expected one of"):
        NoisyNeighbours(metric="cosine").fit(x, given)
    graph = NoisyNeighbours(metric="precomputed")
    with pytest.raises(DataError, match=r"^X: expected a sparse \(N, N\) matrix of distances"):
        graph.fit(x, given)
    with pytest.raises(DataError, match=r"^X: row 1 has the distance -1"):
        graph.fit(sparse.csr_array(np.where(np.eye(len(given), k=-1), -1.0, 0.0)), given)
    with pytest.raises(DataError, match=r"pair \(X, y\)"):
        JointNB({"near": NoisyNeighbours()}).fit({"near": x}, given)
    votes = pd.DataFrame({"task": np.arange(40), "worker": "a", "label": given[:40]})
    with pytest.raises(DataError, match=r"^y: expected 30 labelled rows or more, got none"):
        NoisyNeighbours().fit(x[:40], None, votes=votes)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")  # one label counts twice
def test_columns_are_those_of_the_fit(clouds):
    x, _, given = clouds
    frame = pd.DataFrame(x, columns=["length", "width"])
    numbers = NoisyNeighbours(n_neighbors=5).fit(x, given)
    named = NoisyNeighbours(n_neighbors=5).fit(frame, given)
    np.testing.assert_array_equal(named.predict(frame), numbers.predict(x))
    with pytest.raises(DataError, match="same order"):
        named.predict(frame[["width", "length"]])
    with pytest.raises(DataError, match="should match"):
        named.predict(frame.rename(columns={"width": "height"}))
    with pytest.raises(DataError, match=r"^X: X has 1 features"):
        numbers.predict(x[:, :1])
    source = {"near": NoisyNeighbours(n_neighbors=5)}
    joint = JointNB(source).fit({"near": (frame, NAMES[given])}, NAMES[given])
    with pytest.raises(DataError, match="same order"):
        joint.predict({"near": frame[["width", "length"]]})


def test_infinite_cells_are_refused_and_missing_ones_are_not(clouds):
    x, _, given = clouds
    wrong, gap = x.copy(), x.copy()
    wrong[3, 1], gap[3, 1] = np.inf, np.nan
    one = NoisyNeighbours(n_neighbors=5).fit(gap, given)
    assert one.predict(gap).shape == given.shape
    with pytest.raises(DataError, match=r"^X: row 3, column '1' is inf; expected neither"):
        one.predict(wrong)
    with pytest.raises(DataError, match=r"^X: row 3, column 'b' is inf; expected neither"):
        NoisyNeighbours(n_neighbors=5).fit(pd.DataFrame(wrong, columns=["a", "b"]), given)
