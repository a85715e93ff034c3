"""Labels of short texts that are wrong more often than those of long ones."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from nbmodels import NoisyLabelClassifier, NoisyLogisticRegression, NoisyMultinomialNB
from nbmodels.estimators.errors_of_sizes import sizes_of_counts, sizes_of_rows, words_of

K = 4


def texts(seed, by_length, n=1500, words=400):
    """Counts of words on four topics, given labels and true classes."""
    rng = np.random.default_rng(seed)
    shared = rng.dirichlet(np.full(words, 0.3))
    topics = 0.6 * shared + 0.4 * rng.dirichlet(np.full(words, 0.05), K)
    y = rng.integers(0, K, n)
    length = np.maximum(1, np.rint(8 * rng.lognormal(0, 0.8, n))).astype(int)
    counts = rng.multinomial(length, topics[y])
    rank = np.argsort(np.argsort(length, kind="stable")) / n
    wrong = rng.random(n) < (0.5 * (1 - rank) if by_length else 0.25)
    return counts, np.where(wrong, (y + rng.integers(1, K, n)) % K, y), y


def written(counts):
    names = np.array([f"w{j:03d}" for j in range(counts.shape[1])])
    return [" ".join(np.repeat(names, row)) for row in counts]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["naive Bayes", "regression", "any classifier"])
def test_labels_of_short_texts_are_corrected(kind):
    """Under one rate they pass for classes that overlap: some 0.80 of them are right then."""
    counts, given, y = texts(1, True)
    if kind == "naive Bayes":
        model = NoisyMultinomialNB(random_state=0).fit(counts, given)
    elif kind == "regression":
        model = NoisyLogisticRegression(random_state=0).fit(sparse.csr_array(counts), given)
    else:
        pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
        model = NoisyLabelClassifier(pipeline, random_state=0).fit(written(counts), given)
    assert np.mean(model.classes_[model.label_posterior_.argmax(1)] == y) > 0.86
    rates = model.error_rates_
    assert rates.labels.sum() == len(y)
    assert rates.wrong.iloc[0] > 0.3 > 0.15 > rates.wrong.iloc[-1]
    assert "the fewer" in str(model.verdict())


def test_texts_whose_labels_are_wrong_at_one_rate_have_one():
    counts, given, _ = texts(2, False)
    assert NoisyMultinomialNB(random_state=0).fit(counts, given).error_rates_ is None


def test_texts_and_sparse_counts_have_sizes():
    counts = np.array([[1, 2, 0], [0, 0, 3]])
    np.testing.assert_array_equal(sizes_of_rows(sparse.csr_array(counts)), [3, 3])
    np.testing.assert_array_equal(
        sizes_of_counts(np.array([[np.nan, 2], [1e30, 1], [1, 1]])) < 3, [1, 0, 1]
    )
    assert sizes_of_rows(counts) is None
    assert sizes_of_rows(sparse.csr_array(counts / 2)) is None
    assert sizes_of_rows(sparse.csr_array((2, 3))) is None
    np.testing.assert_array_equal(words_of(["a b", "", "c"]), [2, 0, 1])
    assert words_of(np.eye(2)) is None
    assert words_of([1.0, 2.0]) is None
