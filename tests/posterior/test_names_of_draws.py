"""Names of annotators, users and categories among the coordinates of draws, and in netCDF files."""

import numpy as np
import pandas as pd
import pytest
import xarray

from nbmodels import (
    CollaborativeClassifier,
    DawidSkene,
    JointNB,
    NoisyCategoricalNB,
    NoisyGaussianNB,
)

pytestmark = pytest.mark.filterwarnings("ignore::nbmodels.errors.NbmodelsWarning")

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 2, 120)


def votes(workers):
    return pd.concat(
        pd.DataFrame(
            {
                "task": np.arange(120),
                "worker": pd.Series([worker] * 120, dtype=object),
                "label": np.where(RNG.random(120) < 0.85, TRUTH, 1 - TRUTH),
            }
        )
        for worker in workers
    )


def attributes(no, yes):
    cells = np.where(RNG.random((120, 2)) < np.where(TRUTH, 0.8, 0.2)[:, None], yes, no)
    return pd.DataFrame(cells, columns=["wings", "spots"])


def drawn(model, tmp_path):
    """Parameters' coordinates, as they are and as they are read from a file."""
    tree = model.posterior(draws=20, warmup=0, chains=1, keep="parameters", progress=False)
    tree.to_netcdf(tmp_path / "draws.nc")
    read = xarray.open_datatree(tmp_path / "draws.nc")
    coords = tree["posterior"].coords
    for name, values in read["posterior"].coords.items():
        np.testing.assert_array_equal(values, coords[name])
    return {str(name): list(values.to_numpy()) for name, values in coords.items()}


def test_annotators(tmp_path):
    model = DawidSkene(pooling="none", dependence=0).fit(votes(["zoe", "bob", "ann"]))
    assert drawn(model, tmp_path)["votes_annotator"] == ["ann", "bob", "zoe"]


@pytest.mark.slow
def test_items_of_their_posterior(tmp_path):
    """By the index of X, without items that have no weight, and in a file, too."""
    names = [f"visit {i}" for i in range(120)]
    X = pd.DataFrame(RNG.normal(size=(120, 3)) + 2 * TRUTH[:, None], index=names)
    X.columns = ["a", "b", "c"]
    weights = np.arange(120) != 2
    model = NoisyGaussianNB.published().fit(X, TRUTH, sample_weight=weights)
    tree = model.posterior(draws=20, warmup=0, chains=1, progress=False)
    tree.to_netcdf(tmp_path / "draws.nc")
    read = xarray.open_datatree(tmp_path / "draws.nc")
    kept = [*names[:2], *names[3:]]
    for group in ("label_posterior", "log_likelihood", "observed_data"):
        assert list(tree[group].coords["item"].to_numpy()) == kept
        assert list(read[group].coords["item"].to_numpy()) == kept
    one = tree["label_posterior"]["p"].sel(item="visit 7")
    np.testing.assert_allclose(one, model.label_posterior_[7], atol=0.5)


@pytest.mark.slow
def test_items_without_names_are_counted():
    model = NoisyGaussianNB.published().fit(RNG.normal(size=(120, 3)) + TRUTH[:, None], TRUTH)
    tree = model.posterior(draws=20, warmup=0, chains=1, keep="parameters", progress=False)
    np.testing.assert_array_equal(tree["label_posterior"].coords["item"], np.arange(120))


def test_tasks_are_the_items_of_votes():
    table = votes(["zoe", "bob", "ann"]).assign(task=lambda t: "t" + t["task"].astype(str))
    model = DawidSkene(pooling="none", dependence=0).fit(table)
    tree = model.posterior(draws=20, warmup=0, chains=1, keep="parameters", progress=False)
    assert list(tree["label_posterior"].coords["item"].to_numpy()) == list(model.tasks_)


@pytest.mark.slow
def test_categories(tmp_path):
    X = attributes("red", "blue").assign(spots=attributes(3, 11)["spots"])
    model = NoisyCategoricalNB.published(alpha=1.0).fit(X, TRUTH)
    coords = drawn(model, tmp_path)
    assert coords["features_category_0"] == ["blue", "red"]
    assert coords["features_category_1"] == [3, 11]


def test_categories_of_several_types_are_strings():
    from nbmodels.data.features import Block
    from nbmodels.emissions import CategoricalColumns
    from nbmodels.posterior.datatree import _coordinate

    cells = np.array([[True, 1.5], [False, 2]], object)
    coding = CategoricalColumns.fit(Block(cells, None, ("a", "b")), np.ones(2))
    assert [c.tolist() for c in coding.coords().values()] == [[False, True], [1.5, 2.0]]
    assert _coordinate(np.array([1, "x"], object)).tolist() == ["1", "x"]


@pytest.mark.slow
def test_annotators_beside_features(tmp_path):
    X = RNG.normal(2.0 * TRUTH[:, None], size=(120, 2))
    votes_ = votes(["zoe", "bob"])
    beside = NoisyGaussianNB(training="joint", random_state=0).fit(X, votes=votes_)
    assert drawn(beside, tmp_path)["votes_annotator"] == ["bob", "zoe"]


@pytest.mark.slow
def test_sources_of_a_joint_model(tmp_path):
    item, user = np.nonzero(RNG.random((120, 5)) < np.where(TRUTH, 0.8, 0.2)[:, None])
    names = np.array(["eve", "dan", "ivy", "leo", "pat"])
    sources = {
        "crowd": DawidSkene(),
        "look": NoisyCategoricalNB(training="joint"),
        "users": CollaborativeClassifier(alpha=1.0, weight=1.0),
    }
    data = {
        "crowd": votes(["zoe", "bob"]),
        "look": attributes("no", "yes"),
        "users": pd.DataFrame({"user": names[user], "item": item}),
    }
    model = JointNB(sources, random_state=0).fit(data, TRUTH)
    coords = drawn(model, tmp_path)
    assert coords["crowd_annotator"] == ["bob", "zoe"]
    assert coords["look_category_1"] == ["no", "yes"]
    assert coords["users_user"] == sorted(names)
