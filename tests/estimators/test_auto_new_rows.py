"""New rows of a table, whatever estimator was kept."""

import numpy as np
import pandas as pd
import pytest

from nbmodels import AutoNoisyClassifier, DataError


@pytest.mark.slow
@pytest.mark.parametrize("emission", ["logistic", "forest"])
def test_new_rows_are_read_as_the_mixed_model_reads_them(emission):
    """Whatever is kept: errors of the classifier's own name neither row nor column."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 200)
    numbers = pd.DataFrame(rng.normal(size=(200, 2)) + 2 * true[:, None], columns=["a", "b"])
    x = numbers.assign(k=np.where(true == 1, "u", rng.choice(["u", "v"], 200)))
    y = np.where(rng.random(200) < 0.15, 1 - true, true)
    model = AutoNoisyClassifier(emission=emission, random_state=0).fit(x, y)
    assert np.mean(model.predict(x) == true) > 0.85
    with pytest.raises(DataError, match=r"^X: row 3, column 'a' is nan"):
        model.predict(x.assign(a=x["a"].mask(np.arange(200) == 3)))
    with pytest.raises(DataError, match=r"^X: row 0, column 'b' is '"):
        model.predict(x.assign(b=x["b"].astype(str)))
    # an array, and codes that training has not seen
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.predict(x.to_numpy()), model.predict(x))
    assert model.predict(x.assign(k=0)).shape == true.shape


def test_columns_may_have_names_of_several_levels():
    rng = np.random.default_rng(1)
    true = rng.integers(0, 2, 150)
    x = pd.DataFrame(rng.normal(size=(150, 2)) + 2 * true[:, None], columns=["a", "b"])
    levels = pd.concat([x], axis=1, keys=["of them"])
    model = AutoNoisyClassifier(emission="logistic", random_state=0).fit(levels, true)
    assert np.mean(model.predict(levels) == true) > 0.85
