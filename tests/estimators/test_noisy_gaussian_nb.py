"""NoisyGaussianNB: read-outs in the units of the data, whatever the layout of X."""

import numpy as np
import pandas as pd
import pytest
from planted import MEANS, K, N, features, fitted, given_labels, make, same_fit


@pytest.mark.parametrize(
    "kind", ["diag", *(pytest.param(k, marks=pytest.mark.slow) for k in ("full", "tied"))]
)
def test_read_outs_of_real_columns_are_in_their_units(kind):
    e = fitted(kind)
    spread = np.array([1.0, 65.0, 0.008])
    centres = MEANS * [1, 50, 0.01] + [0, 1000, 3]
    assert (np.abs(e.theta_ - centres) / spread < 0.3).all()
    shape = {"diag": (K, 3), "full": (K, 3, 3), "tied": (3, 3)}[kind]
    covariance = e.var_ if kind == "diag" else e.covariance_
    assert covariance.shape == shape
    diagonal = e.var_ if kind == "diag" else np.diagonal(covariance, axis1=-2, axis2=-1)
    assert (np.abs(np.sqrt(diagonal) / spread - 1) < 0.25).all()


def test_units_do_not_matter():
    e = fitted("diag")
    x = features("diag") * [1e3, 1e-3, 2] + [0, 7, -1e3]
    other = make("diag").fit(x, given_labels())
    np.testing.assert_allclose(other.label_posterior_, e.label_posterior_, 1e-5, 1e-8)
    np.testing.assert_allclose(other.objective_, e.objective_ - N * np.log(2), 1e-9)
    np.testing.assert_allclose(other.theta_, e.theta_ * [1e3, 1e-3, 2] + [0, 7, -1e3], 1e-6)
    np.testing.assert_allclose(other.var_, e.var_ * [1e6, 1e-6, 4], 1e-5)


@pytest.mark.slow
def test_layouts_of_dense_x():
    x = features("diag")
    strided = np.repeat(x, 2, axis=0)[::2]
    assert not strided.flags.c_contiguous
    for other in (
        strided,
        np.asfortranarray(x),
        x.tolist(),
        pd.DataFrame(x),
        pd.DataFrame(x, None, list("abc")),
    ):
        same_fit(make("diag").fit(other, given_labels()), fitted("diag"))
    single = make("diag").fit(x.astype(np.float32), given_labels())
    np.testing.assert_allclose(single.objective_, fitted("diag").objective_, 1e-4)
