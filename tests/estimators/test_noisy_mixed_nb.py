"""NoisyMixedNB: columns of several families in one table."""

import numpy as np
import pandas as pd
import pytest
from planted import NAMES, features, fitted, given_labels, lose, make, same_fit, truth


@pytest.mark.slow
def test_missing_cells_in_mixed_columns():
    x, y = features("mixed"), given_labels()
    families = {
        "bernoulli": ["flag", "binary"],
        "gaussian": ["size", "weight"],
        "multinomial": ["red", "green"],
    }
    a = make("mixed", families=families, missing_values=np.nan).fit(lose(x, None), y)
    b = make("mixed", families=families, missing_values="?").fit(lose(x, "?"), y)
    same_fit(a, b)
    nullable = lose(x, None).assign(
        flag=pd.array(list(lose(x, None)["flag"]), dtype="boolean"),
        red=pd.array(list(lose(x, None)["red"]), dtype="Int64"),
        shape=pd.array(list(lose(x, None)["shape"]), dtype="string"),
    )
    c = make("mixed", families=families, missing_values=pd.NA).fit(nullable, y)
    same_fit(a, c)
    assert (c.predict(nullable) == NAMES[truth()[0]]).mean() > 0.8


@pytest.mark.slow
def test_mixed_columns_find_their_family():
    e = fitted("mixed")
    families = ["bernoulli", "gaussian", "categorical", "multinomial"]
    expected = [families[i] for i in (0, 1, 2, 3, 0, 3, 2, 1)]
    assert list(e.families_) == list(features("mixed").columns)
    assert list(e.families_.values()) == expected
    by_position = {"multinomial": [3, 5], "gaussian": ["size", 7], "categorical": [2, "grade"]}
    same_fit(make("mixed", families=by_position).fit(features("mixed"), given_labels()), e)


@pytest.mark.slow
def test_mixed_rows_without_a_frame():
    """Lists and object arrays keep the types of their cells."""
    x = features("mixed").astype(object)
    families = {"multinomial": [3, 5]}
    for table in (x.to_numpy(object), x.to_numpy(object).tolist()):
        e = make("mixed", families=families).fit(table, given_labels())
        assert list(e.families_.values()) == list(fitted("mixed").families_.values())
        same_fit(e, fitted("mixed"))
        np.testing.assert_allclose(
            e.predict_proba(table), fitted("mixed").predict_proba(features("mixed")), 1e-9
        )
