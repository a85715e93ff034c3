"""Columns that name who gave each label."""

import numpy as np
import pandas as pd
import pytest

from nbmodels import NoisyGaussianNB, Solver
from nbmodels.cli.clean import clean
from nbmodels.data.labellers import labeller_columns, labellers_among, unlike_labellers
from nbmodels.errors import NbmodelsWarning


@pytest.mark.parametrize("name", ["annotator", "Annotator ID", "worker", "rater_id", "labeled_by"])
def test_columns_that_name_who_labelled(name):
    frame = pd.DataFrame({"length": range(12), name: ["ann", "bob", "eve"] * 4})
    assert labeller_columns(frame) == [name]
    (caution,) = labellers_among(frame.columns)
    assert repr(name) in caution.message
    assert caution.category is NbmodelsWarning


def test_columns_of_other_names_or_of_ids_do_not():
    frame = pd.DataFrame({"site": ["a", "b"] * 6, "worker": range(12), "user": ["a", "b"] * 6})
    assert labeller_columns(frame) == []  # an id a row says nothing of labellers
    assert labeller_columns(frame[["site", "user"]]) == []
    assert labellers_among(["site", "user", "0"]) == ()
    one = frame.assign(worker="ann")
    assert labeller_columns(one) == []


def test_those_with_more_wrong_labels_are_named():
    names = np.repeat(["ann", "bob", "eve", "kim"], [200, 200, 200, 4])
    p = np.where(names == "eve", 0.5, 0.05)
    p[-4:] = 0.5  # too few to be sure
    sentence = unlike_labellers(p, names, "annotator")
    assert "eve 50%" in sentence
    assert not any(name in sentence for name in ("ann 5", "bob", "kim"))
    assert unlike_labellers(np.full(604, 0.2), names, "annotator") == ""
    assert unlike_labellers(np.full(604, np.nan), names, "annotator") == ""


@pytest.fixture(scope="module")
def batch():
    """Three annotators, one of whom labels at random."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 300)
    who = rng.choice(["ann", "bob", "eve"], 300)
    given = np.where(who == "eve", rng.integers(0, 2, 300), true)
    x = pd.DataFrame(rng.normal(size=(300, 3)) + 3.0 * true[:, None], columns=list("abc"))
    return x.assign(annotator=who, label=np.array(["ant", "bee"])[given]), true, given


def test_their_errors_are_found_on_the_command_line(batch):
    table, true, given = batch
    found = clean(table, "label", draws=0)
    assert "annotator" in found.choice.left_out
    assert any("'annotator': eve" in note for note in found.notes)
    wrong = given != true
    changed = found.suggested != found.given
    assert (changed & wrong).sum() > 0.9 * wrong.sum()
    # where it is asked for, it is a feature
    assert (
        "annotator" in clean(table, "label", features=["a", "annotator"], draws=0).choice.families
    )


def test_as_features_they_are_warned_of():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"length": rng.normal(size=80), "rater": rng.integers(0, 3, 80)})
    x["length"] += 4.0 * (y := rng.integers(0, 2, 80))
    model = NoisyGaussianNB.published(solver=Solver(progress=False))
    with pytest.warns(NbmodelsWarning, match="'rater' seems to name who gave each label"):
        model.fit(x, y)
