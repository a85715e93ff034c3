"""Annotators who copy from a source that does not vote, among few."""

import numpy as np
import pandas as pd
import pytest

from nbmodels import DawidSkene, VerdictWarning
from nbmodels.fitting.copied_votes import find_copies
from nbmodels.fitting.hidden_source import _most_accurate, hidden_source
from nbmodels.fitting.vote_dependence import VoteTable

WORKERS, K = 8, 3


def drawn(seed, n, accuracy, copiers=0, lead=0.75, per=3):
    """Votes of three annotators an item; the first ones copy nine times in ten; and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(K, n, p=[0.5, 0.3, 0.2])
    other = (y + rng.integers(1, K, n)) % K
    source = np.where(rng.random(n) < lead, y, other)
    wrong = (y[:, None] + rng.integers(1, K, (n, WORKERS))) % K
    own = np.where(rng.random((n, WORKERS)) < accuracy, y[:, None], wrong)
    copy = (np.arange(WORKERS) < copiers) & (rng.random((n, WORKERS)) < 0.9)
    label = np.where(copy, source[:, None], own)
    cast = rng.random((n, WORKERS)).argsort(1).argsort(1) < per
    row, worker = np.nonzero(cast)
    return VoteTable(row, worker, label[cast], n), y


@pytest.mark.parametrize("copiers", [3, 4])
def test_those_who_copy_are_found_where_a_fit_takes_them_for_the_truth(copiers):
    votes, _ = drawn(0, 900, 0.65, copiers)
    found = hidden_source(votes, WORKERS, K)
    np.testing.assert_array_equal(found.members, np.arange(WORKERS) < copiers)
    assert found.right == pytest.approx(0.75, abs=0.08)
    assert (found.copied[:copiers] > 0.8).all()
    assert not found.copied[copiers:].any()
    # the copiers, and not those who agree although the source is wrong
    cluster = find_copies(votes, WORKERS, K, False).cluster
    assert len(set(cluster[:copiers])) == 1
    assert len(set(cluster[copiers:])) == WORKERS - copiers


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [0.65, [0.93] * 4 + [0.58] * 4], ids=["alike", "two kinds"])
def test_independent_votes_have_no_such_group(accuracy):
    found = [hidden_source(drawn(seed, 400, accuracy)[0], WORKERS, K) for seed in range(20)]
    assert sum(one is not None for one in found) <= 1


@pytest.mark.parametrize(("workers", "n_classes"), [(13, K), (WORKERS, 11), (4, K)])
def test_of_many_annotators_or_classes_and_of_very_few_nobody_is_accused(workers, n_classes):
    votes, _ = drawn(0, 900, 0.65, 4)
    extra = np.arange(workers)  # all of them vote
    row, worker = np.r_[votes.row, extra], np.r_[votes.worker % workers, extra]
    label = np.r_[votes.label, np.zeros(workers, int)]
    assert hidden_source(VoteTable(row, worker, label, 900), workers, n_classes) is None


def test_two_groups_are_told_apart_by_their_accuracies():
    accuracy = np.array([0.6, 0.92, 0.55, 0.95, 0.9, 0.99])
    number = np.array([50, 50, 50, 50, 50, 0])
    upper = _most_accurate(accuracy, number)
    np.testing.assert_array_equal(upper, [False, True, False, True, True, False])


@pytest.mark.slow
def test_copies_of_half_of_the_annotators_are_not_taken_for_the_truth():
    """Without the search the log-loss is 0.9; of smoothed shares it is 0.6."""
    votes, y = drawn(3, 600, 0.65, 4)
    columns = {"task": votes.row, "worker": votes.worker, "label": votes.label}
    with pytest.warns(VerdictWarning, match="50 % of the annotators copy from each other"):
        model = DawidSkene(random_state=0).fit(pd.DataFrame(columns))
    assert -np.log(model.label_posterior_[np.arange(600), y]).mean() < 0.65
    report = model.worker_report().set_index("worker")["copies"]
    assert [len(report[w]) for w in range(WORKERS)] == [3] * 4 + [0] * 4


def test_two_who_are_right_beside_guessers_do_not_copy():
    """Their votes are as likely under copies, and nobody else shows what is right."""
    rng = np.random.default_rng(9001)
    y = rng.integers(K, size=3000)
    wrong = (y[:, None] + rng.integers(1, K, (3000, 5))) % K
    label = np.where(rng.random((3000, 5)) < [0.95, 0.9, 1 / 3, 1 / 3, 1 / 3], y[:, None], wrong)
    rows, workers = np.arange(3000).repeat(5), np.tile(np.arange(5), 3000)
    votes = VoteTable(rows, workers, label.ravel(), 3000)
    assert not find_copies(votes, 5, K, False).found
