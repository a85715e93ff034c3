"""Labels of items of few users that are wrong more often than those of others."""

import numpy as np
import pytest
from scipy import sparse

from nbmodels import CollaborativeClassifier

K = 3


def graph(seed, by_users, n=900, n_users=400):
    """Users who mostly touch one class, items of long-tailed popularity, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, n, p=[0.6, 0.3, 0.1])
    likes, active = rng.integers(0, K, n_users), rng.pareto(1.5, n_users) + 0.3
    degree = np.maximum(1, np.rint(6 * rng.lognormal(0, 0.7, n))).astype(int)
    rows, columns = [], []
    for item, (c, d) in enumerate(zip(y, degree, strict=True)):
        p = active * np.where(likes == c, 6.0, 1.0)
        columns.append(rng.choice(n_users, min(d, n_users), p=p / p.sum(), replace=False))
        rows.append(np.full(len(columns[-1]), item))
    edges = np.concatenate(columns), np.concatenate(rows)
    visits = sparse.csr_array((np.ones(len(edges[0])), edges), shape=(n_users, n))
    rank = np.argsort(np.argsort(degree, kind="stable")) / n
    wrong = rng.random(n) < (0.5 * (1 - rank) if by_users else 0.25)
    return visits, np.where(wrong, (y + rng.integers(1, K, n)) % K, y), y, degree


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_labels_of_items_of_few_users_are_corrected(seed):
    """Under one rate weak evidence and wrong labels of unpopular items pass for overlap: .8."""
    visits, given, y, degree = graph(seed, True)
    model = CollaborativeClassifier(random_state=0).fit(visits, given)
    assert np.mean(model.predict() == y) > 0.87
    rates = model.error_rates_
    assert list(rates.columns) == ["users", "labels", "wrong"]
    assert rates.labels.sum() == len(y)
    bounds = [int(words.split(" to ")[-1]) for words in rates.users]
    group = np.searchsorted(bounds, degree)
    true = [np.mean((given != y)[group == g]) for g in range(len(rates))]
    np.testing.assert_allclose(rates.wrong, true, atol=0.12)
    words = str(model.verdict())
    assert "the fewer users their items have" in words
    assert "occur in" not in words


def test_labels_that_are_wrong_at_one_rate_have_one():
    visits, given, y, _ = graph(2, False)
    model = CollaborativeClassifier(random_state=0).fit(visits, given)
    assert model.error_rates_ is None
    assert np.mean(model.predict() == y) > 0.87
    assert "users their items have" not in str(model.verdict())
