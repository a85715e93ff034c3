"""A joint model of tables that know some items only."""

import numpy as np
import pandas as pd
import pytest

from nbmodels import DataError, Joint, JointNB, NoisyGaussianNB, NoisyMultinomialNB, Solver
from nbmodels.datasets import corrupt, uniform_noise

N = 240
QUIET = Solver(progress=False)


def evidence(seed=0):
    """Sizes and words of two classes, whose sizes are known of three in five items."""
    rng = np.random.default_rng(seed)
    true = rng.integers(2, size=N)
    size = pd.DataFrame(rng.normal(1.5 * true[:, None], size=(N, 3)), columns=list("abc"))
    words = rng.poisson(np.array([[2, 0.8, 0.8], [0.8, 2, 0.8]])[true])
    return true, corrupt(true, uniform_noise(2, 0.25), rng), size, words, rng.random(N) < 0.6


def joint(**options):
    how = {"training": Joint(weight=1), **options}
    size, words = NoisyGaussianNB(missing_values=np.nan, **how), NoisyMultinomialNB(alpha=1, **how)
    return JointNB({"size": size, "words": words}, random_state=0, solver=QUIET)


def test_rows_of_a_frame_go_by_the_items_ids_and_the_others_add_nothing():
    true, given, size, words, known = evidence()
    empty = size[known].reindex(size.index)
    by_nan = joint().fit({"size": empty, "words": words}, given)
    first = joint().fit({"size": size[:150], "words": words}, given, items=np.arange(N))
    assert first.label_posterior_.shape == (N, 2)
    some = size[known].sample(frac=1, random_state=0)
    by_id = joint().fit({"size": some, "words": words}, given, items=np.arange(N))
    np.testing.assert_allclose(by_id.label_posterior_, by_nan.label_posterior_, atol=1e-9)
    assert np.mean(by_id.label_posterior_.argmax(1) == true) > np.mean(given == true) + 0.05
    rows = pd.DataFrame([[0.0, 0, 0], [np.nan] * 3], columns=size.columns)
    new = {"size": rows, "words": [[3, 0, 1], [0, 3, 1]]}
    found = by_id.predict_proba(new)
    np.testing.assert_allclose(found[1], by_id.predict_proba({"words": [[0, 3, 1]]})[0], atol=1e-6)
    of_some = {"size": size.iloc[[1]].set_axis(["b"]), "words": words[:2]}
    assert by_id.predict_proba(of_some, items=["a", "b"]).shape == (2, 2)


@pytest.mark.slow
def test_items_without_a_row_are_no_worse_than_by_the_other_source():
    gains = []
    for seed in range(3):
        true, given, size, words, known = evidence(seed)
        empty = size[known].reindex(size.index)
        both = joint(training="auto").fit({"size": empty, "words": words}, given)
        alone = joint(training="auto").fit({"words": words}, given)
        right = [np.mean(one.label_posterior_.argmax(1) == true) for one in (both, alone)]
        gains.append(right[0] - right[1])
    assert np.mean(gains) > 0.05


def test_an_estimator_without_missing_cells_needs_a_row_of_each_item():
    _, given, size, words, known = evidence()
    model = JointNB({"size": NoisyGaussianNB(), "words": NoisyMultinomialNB()}, solver=QUIET)
    told = rf"^size: has a row of {known.sum()} of the {N} items; .* missing_values=np.nan"
    with pytest.raises(DataError, match=told):
        model.fit({"size": size[known], "words": words}, given, items=np.arange(N))
    with pytest.raises(DataError, match=r"^size: X: row \d+, column 'a' is nan"):
        model.fit({"size": size[known].reindex(size.index), "words": words}, given)
