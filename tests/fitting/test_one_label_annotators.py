"""Annotators who name one label only are no evidence that others copy."""

import numpy as np
import pandas as pd
import pytest
from marks import slow

from nbmodels import DawidSkene
from nbmodels.fitting.copied_votes import find_copies
from nbmodels.fitting.one_label_annotators import names_one_label
from nbmodels.fitting.vote_dependence import VoteTable

K = 4


def crowd(seed, accuracy, lazy, expert, n=300):
    """Six who vote by an accuracy, some who always name class 0, one who swaps classes 0 and 1, one
    who guesses, and one who names class 1 on items of that class alone.
    """
    rng = np.random.default_rng(seed)
    true = rng.choice(K, n, p=[0.4, 0.3, 0.2, 0.1])
    number = 8 + lazy
    cells = []
    for i, y in enumerate(true):
        for w in rng.choice(number, 3, replace=False):
            vote = y if rng.random() < accuracy and w != 7 else rng.integers(K)
            vote = 0 if w >= 8 else {0: 1, 1: 0}.get(vote, vote) if w == 6 else vote
            cells.append((i, w, vote))
        if expert and y == 1 and rng.random() < 0.6:
            cells.append((i, number, 1))
    return VoteTable(*np.array(cells).T, n), number + expert, true


def test_they_are_found_where_others_name_other_labels():
    votes, number, _ = crowd(0, 0.9, 2, True)
    assert np.flatnonzero(names_one_label(votes, number, K)).tolist() == [8, 9, 10]
    # where nearly all items are of one class, anybody names it
    rare = VoteTable(votes.row, votes.worker, 1 * (votes.row == 7), votes.n_items)
    assert not names_one_label(rare, number, K).any()


def test_where_all_name_one_label_nobody_copies():
    rows, workers = np.divmod(np.arange(200), 4)
    votes = VoteTable(rows, workers, np.array([0, 0, 1, 1])[workers], 50)
    assert names_one_label(votes, 4, 2).all()
    assert not find_copies(votes, 4, 2, abstains=False).found


@pytest.mark.parametrize(
    ("accuracy", "lazy", "expert"),
    [(0.9, 2, False), (0.75, 1, True), slow(0.75, 2, True), slow(0.9, 1, True)],
)
def test_who_agrees_with_them_does_not_copy(accuracy, lazy, expert):
    """All honest ones seemed to copy from the expert, or from a source that does not vote."""
    for seed in range(4):
        votes, number, _ = crowd(seed, accuracy, lazy, expert)
        assert not find_copies(votes, number, K, abstains=False).found


def test_their_crowd_is_better_than_its_majority():
    """0.80 of the classes were right where the majority has 0.83."""
    votes, _, true = crowd(0, 0.8, 1, True)
    table = pd.DataFrame({"task": votes.row, "worker": votes.worker, "label": votes.label})
    model = DawidSkene(random_state=0).fit(table)
    majority = votes.by_label(K)[model.tasks_].argmax(1)
    truth = true[model.tasks_]
    assert np.mean(model.predict() == truth) > np.mean(majority == truth) + 0.05


@pytest.mark.parametrize("lazy", [0, 2])
def test_copies_are_found_beside_them(lazy):
    rng = np.random.default_rng(1)
    true = rng.integers(3, size=300)
    cells = []
    for i, y in enumerate(true):
        named = {}
        for w in sorted(rng.choice(7 + lazy, 5, replace=False)):
            own = y if rng.random() < 0.65 else rng.integers(3)
            copied = w in (3, 4) and 0 in named and rng.random() < 0.9
            named[w] = 0 if w >= 7 else named[0] if copied else own
        cells += [(i, w, vote) for w, vote in named.items()]
    found = find_copies(VoteTable(*np.array(cells).T, 300), 7 + lazy, 3, abstains=False)
    assert len(set(found.cluster[[0, 3, 4]])) == 1
    assert len(set(found.cluster)) == 5 + lazy
