"""Two annotators of whom one copies in part: the likelihood of their votes, and the test of it."""

import numpy as np
import pytest
from scipy import stats

from nbmodels.fitting import copied_pairs
from nbmodels.fitting.copied_votes import find_copies
from nbmodels.fitting.one_accuracy import drawn_to_accuracy
from nbmodels.fitting.vote_dependence import VoteTable


def crowd(seed, part, n=150, w=12, k=3, share=0.5):
    """Votes of which annotators cast a share; number 3 copies a part of what number 2 thinks."""
    rng = np.random.default_rng(seed)
    y, right = rng.integers(0, k, n), rng.uniform(0.55, 0.9, w)
    wrong = (y[:, None] + rng.integers(1, k, (n, w))) % k
    votes = np.where(rng.random((n, w)) < right, y[:, None], wrong)
    copied = rng.random(n) < part
    votes[copied, 3] = votes[copied, 2]
    row, worker = np.nonzero(rng.random((n, w)) < share)
    return VoteTable(row, worker, votes[row, worker], n)


def test_two_who_vote_on_few_items_together_are_found():
    """By agreement alone one of these was: each has some 37 items in common with each other."""
    found = [find_copies(crowd(seed, 0.8), 12, 3, abstains=False) for seed in range(300, 306)]
    assert sum(one.partners(2).tolist() == [3] for one in found) >= 4
    assert all(not len(one.partners(w)) for one in found for w in (0, 1, *range(4, 12)))


def test_independent_annotators_are_not_accused():
    for seed in range(300, 306):
        assert not find_copies(crowd(seed, 0.0), 12, 3, abstains=False).found


@pytest.mark.parametrize("part", [0.0, 0.6])
def test_the_likelihood_is_that_of_copies(part):
    rng = np.random.default_rng(1)
    n, k = 4000, 3
    y = rng.integers(0, k, n)
    votes = [np.where(rng.random(n) < 0.7, y, (y + rng.integers(1, k, n)) % k) for _ in range(2)]
    same = rng.random(n) < part
    votes[1] = np.where(same, votes[0], votes[1])
    known = np.where(np.eye(k)[y] > 0, 1 - 2e-9, 1e-9)
    found = copied_pairs._profile(known, *votes, k)
    tried = copied_pairs._TRIED
    assert abs(tried[found.argmax()] - part) <= 0.1
    # independent: the product of both matrices' likelihoods
    logs = 0.0
    for one in votes:
        matrix = drawn_to_accuracy(np.eye(k)[one].T @ known)
        logs += np.log(matrix[one, y]).sum()
    np.testing.assert_allclose(found[0], logs, atol=1e-3)


def test_agreement_on_wrong_labels_says_more():
    """As many agreements, on the likeliest wrong label or on right ones."""
    k, y = 3, np.repeat([0, 1, 2], 40)
    known = np.where(np.eye(k)[y] > 0, 0.98, 0.01)
    wrong = (y + 1) % k
    first = np.where(np.arange(120) % 4 == 0, wrong, y)
    apart = np.where(np.arange(120) % 4 == 1, wrong, y)
    together = first.copy()
    gain = [
        np.ptp(copied_pairs._profile(known, first, other, k)[[0, 6]]) for other in (apart, together)
    ]
    assert gain[1] > gain[0]
    ratio = copied_pairs._profile(known, first, together, k)
    assert np.sqrt(2 * (ratio.max() - ratio[0])) > stats.norm.isf(0.01 / 66)


def test_large_crowds_are_passed_over(monkeypatch):
    table = crowd(301, 0.8)
    monkeypatch.setattr(copied_pairs, "_likelihoods", lambda *_: pytest.fail("was tested"))
    monkeypatch.setattr(copied_pairs, "_MOST", 10)
    find_copies(table, 12, 3, abstains=False)
