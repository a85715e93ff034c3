"""Agreement of votes beyond chance."""

import numpy as np
import pytest

from nbmodels.diagnostics.check import run
from nbmodels.diagnostics.checks.votes import CHECKS
from nbmodels.fitting.vote_agreement import beyond_chance
from nbmodels.fitting.vote_dependence import VoteDependence, VoteTable

NAME = "agreement of votes"


def votes(seed, accuracy, n=200, k=3, each=3, workers=8):
    """Votes that are right with a probability; the other ones follow annotators' own tastes."""
    rng = np.random.default_rng(seed)
    truth, taste = rng.integers(0, k, n), rng.dirichlet(np.full(k, 2.0), workers)
    row = np.repeat(np.arange(n), each)
    worker = np.concatenate([rng.choice(workers, each, replace=False) for _ in range(n)])
    guess = (taste[worker].cumsum(1) < rng.random(len(row))[:, None]).sum(1)
    label = np.where(rng.random(len(row)) < accuracy, truth[row], guess)
    return VoteTable(row, worker, label, n)


def test_votes_at_random_agree_by_chance():
    found = np.array([beyond_chance(votes(seed, 0.0), 8, 3) for seed in range(100)])
    assert abs(found.mean()) < 0.35
    assert 0.8 < found.std() < 1.2


def test_votes_of_classes_agree_beyond_it():
    assert min(beyond_chance(votes(seed, 0.5), 8, 3) for seed in range(20)) > 4


def test_where_no_item_has_two_votes_nothing_is_known():
    alone = votes(0, 0.5, each=1)
    assert np.isnan(beyond_chance(alone, 8, 3))
    assert np.isnan(beyond_chance(votes(0, 0.5, n=10), 8, 3))


@pytest.mark.parametrize(
    ("agreement", "alone", "bad"), [(1.0, True, True), (3.0, True, False), (1.0, False, None)]
)
def test_a_crowd_that_agrees_by_chance_fails_a_check(agreement, alone, bad):
    at = VoteDependence(0.0, 0.0, 0.0, 1.0, 3.0, 0.0, agreement=agreement, alone=alone)
    found = [one.bad for one in run(CHECKS, at) if one.name == NAME]
    assert found == ([] if bad is None else [bad])


def test_many_who_guess_agree_by_chance():
    """The maximum of a likelihood finds a class in any votes, the more annotators the surer."""
    found = [beyond_chance(votes(seed, 0.0, k=2, each=5, workers=50), 50, 2) for seed in range(12)]
    assert np.mean(np.array(found) >= 2) < 0.3
