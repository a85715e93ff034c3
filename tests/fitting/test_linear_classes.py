"""Labels and noise by normal classes along linear scores."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from nbmodels import NoisyLogisticRegression, NoisyMultinomialNB, Solver
from nbmodels.errors import NbmodelsWarning
from nbmodels.fitting.noise_by_shape import noise_by_shape
from nbmodels.fitting.noise_on_linear_classes import ANYWHERE, LINEAR
from nbmodels.fitting.reference import linear_scores

WORDS = 400


def texts(seed, n=200, k=2, length=150, share=0.4):
    """Word counts, true classes and labels with errors, the oftener the nearer a border."""
    rng = np.random.default_rng(seed)
    true = rng.permutation(np.arange(n) % k)
    words = 1 / np.arange(1, WORDS + 1) * np.exp(rng.normal(0, 0.5, (k, WORDS)))
    words /= words.sum(1, keepdims=True)
    x = rng.multinomial(1 + rng.poisson(rng.gamma(4, length / 4, n)), words[true])
    evidence = x @ np.log(words).T
    others = evidence.copy()
    others[np.arange(n), true] = -np.inf
    margin = evidence[np.arange(n), true] - others.max(1)
    rank = np.argsort(np.argsort(margin)) / n
    wrong = rng.random(n) < 2 * share * (1 - rank)
    return sparse.csr_matrix(x), true, np.where(wrong, others.argmax(1), true)


def fitted(estimator, x, given):
    model = estimator(random_state=0, solver=Solver(progress=False))
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(x, given)
    return model, [str(w.message) for w in caught if issubclass(w.category, NbmodelsWarning)]


def right(model, true):
    return np.mean(model.label_posterior_.argmax(1) == true)


@pytest.mark.parametrize("estimator", [NoisyMultinomialNB, NoisyLogisticRegression])
def test_few_texts_with_many_errors_are_corrected(estimator):
    """Held-out labels showed none of these errors, and the labels stayed."""
    x, true, given = texts(6)
    assert np.mean(given == true) < 0.7
    model, said = fitted(estimator, x, given)
    assert model.chosen_["scores"] == LINEAR
    assert right(model, true) > 0.95
    rates = np.array([np.mean(given[true == k] == k) for k in range(2)])
    np.testing.assert_allclose(np.diag(model.noise_matrix_), rates, atol=0.12)
    assert ANYWHERE.finding in {one.finding for one in model.fitted_.cautions}
    # right labels are left as they are
    model, said = fitted(estimator, x, true)
    assert right(model, true) == 1
    assert not said


def test_scores_of_texts_do_not_depend_on_their_length():
    x, _, given = texts(0)
    rows, scores, _ = linear_scores(x, given, 2)
    np.testing.assert_array_equal(rows, np.arange(200))
    longer = sparse.csr_matrix(sparse.diags_array(np.where(np.arange(200) < 1, 7.0, 1)) @ x)
    # that of a row that others do not learn from alone
    np.testing.assert_allclose(linear_scores(longer, given, 2)[1][0], scores[0], atol=1e-8)
    empty = sparse.csr_matrix(sparse.diags_array(np.where(np.arange(200) < 1, 0.0, 1)) @ x)
    np.testing.assert_array_equal(linear_scores(empty, given, 2)[1][0], 0)


def test_values_of_few_columns_are_no_classes():
    """A third of the labels seemed wrong by the clusters of six binary columns' sums."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 300)
    given = np.where(rng.random(300) < 0.2, rng.integers(0, 3, 300), true)
    x = (rng.normal(np.eye(6)[true] * 2) > 1).astype(float)
    found = noise_by_shape(x, given, 3, np.ones(300))
    assert found.log_factor > 100
    assert not found.likeliest.found


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_errors_are_found_where_there_are_any(share):
    x, true, given = texts(1, n=300, k=3, share=share)
    found = noise_by_shape(x, given, 3, np.ones(300))
    assert found.likeliest.found == (share > 0)
    if share:
        assert np.mean(found.likeliest.probs.argmax(1) == true) > 0.95
        assert abs(found.likeliest.share_wrong - np.mean(given != true)) < 0.03
