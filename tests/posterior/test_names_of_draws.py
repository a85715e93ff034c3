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
        "look": NoisyCategoricalNB(),
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
