"""Errors near the borders of classes, told from overlap by the shape of the classes."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest
from marks import slow

from nbmodels import NoisyLogisticRegression, Solver
from nbmodels.fitting.class_shapes import fit_classes
from nbmodels.fitting.errors_near_borders import ErrorsByShape, normal_sums
from nbmodels.fitting.noise_by_shape import noise_by_shape
from nbmodels.fitting.relabelling import with_labels_by_shape


def table(seed, n=600, distance=4.0, share=0.0):
    """Two normal classes; errors are the oftener the nearer the border, up to twice the share."""
    rng = np.random.default_rng(seed)
    true = rng.permutation(np.arange(n) % 2)
    # spread over columns: the shape of a single one is lost where columns are ranked
    x = rng.normal(size=(n, 4)) + distance / 2 * true[:, None]
    near = np.abs(x.mean(1) - distance / 4).argsort().argsort() / n
    wrong = rng.random(n) < 2 * share * (1 - near)
    return x, true, np.where(wrong, 1 - true, true)


def near_borders(x, codes):
    return noise_by_shape(x, codes, 2, np.ones(len(codes))).near_borders


def test_labels_of_a_power_of_one_are_right():
    x, true, _ = table(0)
    labels = np.eye(2)[true]
    for freedom in (np.inf, 3.0):
        right = fit_classes(x, true, np.ones(len(x)), labels, lambda c: np.eye(2), 2, freedom)
        one = fit_classes(x, true, np.ones(len(x)), labels, lambda c: np.eye(2), 2, freedom, 1.0)
        np.testing.assert_allclose(one.log_likelihood, right.log_likelihood, rtol=1e-3)
        np.testing.assert_allclose(one.resp, labels, atol=1e-12)


def test_classes_given_a_label_are_probabilities():
    x, _, given = table(1, share=0.2)
    start = np.eye(2)[given]
    found = fit_classes(x, given, np.ones(len(x)), start, lambda c: np.eye(2), 2, power=0.4)
    np.testing.assert_allclose(found.resp.sum(1), 1, atol=1e-9)
    assert found.resp.min() >= 0
    # of two classes, a label is changed only where the other one is likelier
    changed = found.resp.argmax(1) != given
    assert 0.05 < changed.mean() < 0.3


@pytest.mark.parametrize("seed", range(3))
def test_errors_near_borders_are_told_from_overlap(seed):
    x, true, given = table(seed, share=0.2)
    found = near_borders(x, given)
    assert found.found
    assert 0.1 < found.share_wrong < 0.25
    assert np.mean(found.probs.argmax(1) == true) > np.mean(given == true) + 0.1
    # as many labels contradict the features where the classes overlap, and none is wrong
    x, true, _ = table(seed, distance=1.7)
    assert not near_borders(x, true).found


def test_coarse_columns_have_no_normal_sums():
    rng = np.random.default_rng(0)
    bits, reals = rng.integers(2, size=(200, 10)), rng.normal(size=(200, 3))
    one = np.zeros(200, int)
    assert not normal_sums(bits, one, 1)
    assert normal_sums(rng.integers(2, size=(200, 20)), one, 1)
    assert normal_sums(np.hstack([reals, bits[:, :2]]), one, 1)
    # clusters of values of columns look like classes, and contradict right labels
    true = (rng.random(200) < np.where(bits[:, 0], 0.8, 0.2)).astype(int)
    assert not near_borders(bits.astype(float), true).log_factor


def test_copies_of_coarse_columns_are_no_further_columns():
    """Of clean tables of 15 binary columns twice, a fifth seemed to have errors near borders."""
    rng = np.random.default_rng(0)
    bits, one = rng.integers(2, size=(300, 12)), np.zeros(300, int)
    copies = [bits ^ (rng.random(bits.shape) < 0.05) for _ in range(2)]
    assert not normal_sums(np.hstack([bits, *copies]), one, 1)
    assert not normal_sums(np.hstack([bits, 1 - bits, np.ones((300, 9))]), one, 1)
    # columns that the classes alone have in common are not copies
    codes = rng.integers(2, size=300)
    apart = (rng.random((300, 24)) < np.where(codes, 0.9, 0.1)[:, None]).astype(int)
    assert normal_sums(apart, codes, 2)
    assert not normal_sums(apart, one, 1)


@pytest.mark.parametrize("seed", [4, slow(5)])
def test_labels_that_would_stay_are_corrected_with_a_warning(seed):
    x, true, given = table(seed, share=0.2)
    model = NoisyLogisticRegression(rounds=0, random_state=0, solver=Solver(progress=False))
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(x, given)
    labels = model.label_posterior_.argmax(1)
    assert np.mean(labels == true) > np.mean(given == true) + 0.08
    assert any("nearer items are to another class" in str(w.message) for w in caught)
    # overlap is left alone
    x, true, _ = table(seed, distance=1.7)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(x, true)
    assert np.mean(model.label_posterior_.argmax(1) == true) > 0.97
    assert not any("nearer items are to another class" in str(w.message) for w in caught)


def test_a_matrix_that_holds_the_errors_is_not_warned_of():
    rng = np.random.default_rng(6)
    x, true, _ = table(6)
    given = np.where(rng.random(600) < 0.2, 1 - true, true)  # whatever the features
    model = NoisyLogisticRegression(random_state=0, solver=Solver(progress=False)).fit(x, given)
    fitted, rows = model.fitted_, np.arange(600)
    found = ErrorsByShape(10.0, 0.2, rows, np.eye(2)[true])
    shape = fitted.separable.by_shape._replace(near_borders=found)
    changed = replace(fitted, separable=replace(fitted.separable, by_shape=shape))
    # a fit that corrects as many labels is left alone
    assert with_labels_by_shape(changed, x) is changed
    staying = replace(changed, averaged=np.eye(2)[given], noisy=1.0)
    mended = with_labels_by_shape(staying, x)
    np.testing.assert_array_equal(mended.label_posterior.argmax(1), true)
    assert mended.cautions[-1].finding == "errors near borders"
    # neighbours by columns of chance do not have the suggested labels
    assert with_labels_by_shape(staying, rng.normal(size=x.shape)) is staying
    assert with_labels_by_shape(staying, None) is not staying
    # nor do neighbours support corrections whose given labels are those of the item
    own = np.eye(2)[given[staying.separable.rows]]
    alike = replace(staying, separable=replace(staying.separable, nearby=own))
    assert with_labels_by_shape(alike, x) is alike
    clean = replace(staying, fit=replace(fitted.fit, params=sure(fitted.fit.params)))
    assert not with_labels_by_shape(clean, x).cautions[-1].finding


def test_rows_count_by_their_weight():
    rng = np.random.default_rng(7)
    x, true, _ = table(7)
    given = np.where(rng.random(600) < 0.2, 1 - true, true)
    model = NoisyLogisticRegression(random_state=0, solver=Solver(progress=False)).fit(x, given)
    fitted, found = model.fitted_, ErrorsByShape(10.0, 0.2, np.arange(600), np.eye(2)[true])
    shape = fitted.separable.by_shape._replace(near_borders=found)
    separable = replace(fitted.separable, by_shape=shape)
    # a matrix by which labels of the second class are wrong, a third of them
    params = sure(fitted.fit.params, [[1e4, 1.0], [5e3, 1e4]])
    fit = replace(fitted.fit, params=params)
    staying = replace(fitted, fit=fit, separable=separable, averaged=np.eye(2)[given], noisy=1.0)

    def of_weights(one, weights):
        data = one.data
        weights = np.r_[weights, np.zeros(len(data.weights) - 600)].astype(np.float32)
        return with_labels_by_shape(replace(one, data=replace(data, weights=weights)), x)

    mostly = np.where(true == 1, 0.1, 1.9)
    assert of_weights(staying, mostly).cautions[-1].finding == ""
    assert of_weights(staying, 2 - mostly).cautions[-1].finding == "errors near borders"
    # changes of rows that hardly count are few
    changing = replace(staying, averaged=np.eye(2)[true])
    assert with_labels_by_shape(changing, x) is changing
    light = of_weights(changing, np.where(given != true, 1e-3, 1.0))
    assert light.cautions != fitted.cautions


def sure(params, counts=((1e4, 1.0), (1.0, 1e4))):
    """Parameters of a noise matrix that these counts show, by default without errors."""
    labels = params["labels"]
    rates = np.asarray(counts, np.float32)
    return {**params, "labels": jax.tree.map(lambda leaf: rates, labels)}


@pytest.mark.parametrize("rare", [0.03, 0.1])
def test_a_class_that_is_left_empty_ends_the_fit_without_a_warning(rare):
    """Responsibilities here are no probabilities: their sum over a rare class may be negative."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        given = (rng.random(400) < rare).astype(int)
        x = rng.normal(size=(400, 1)) + 0.5 * given[:, None]
        for power in (0.1, 0.2):
            start = np.eye(2)[given]
            found = fit_classes(x, given, np.ones(400), start, lambda c: c, 2, power=power)
            assert np.isfinite(found.resp).all()
