"""How many independent labels the labels of grouped rows are worth."""

import numpy as np
import pytest

from nbmodels.fitting.agreement import beyond_chance
from nbmodels.fitting.design_effect import design_effects
from nbmodels.fitting.holdout import compare_scores
from nbmodels.fitting.plain import pseudo_bma


def labels(correlation, groups=400, size=5, seed=0):
    """Groups of one class, whose errors are the group's with this probability."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), size)
    true = rng.integers(0, 2, groups)[group]
    own, shared = rng.random(len(group)), rng.random(groups)[group]
    wrong = np.where(rng.random(len(group)) < np.sqrt(correlation), shared, own) < 0.3
    return group, np.where(wrong, 1 - true, true), np.eye(2)[true]


@pytest.mark.parametrize("correlation", [0.0, 0.25, 1.0])
def test_errors_are_as_alike_as_drawn(correlation):
    group, given, resp = labels(correlation)
    found = design_effects(group, given, resp, np.ones(len(given)))
    assert found.noise == pytest.approx(1 + 4 * correlation, abs=0.2)
    assert found.shares == pytest.approx(5)  # groups are of one class each


def test_rows_that_do_not_count_change_nothing():
    group, given, resp = labels(0.5)
    wanted = design_effects(group, given, resp, np.ones(len(given)))
    n = len(given)
    more = (np.append(group, [0, 0, 0]), np.append(given, [0, 2, -1]))
    resp, weights = np.vstack([resp, resp[:3]]), np.append(np.ones(n), [0.0, 1.0, 1.0])
    assert design_effects(*more, resp, weights) == wanted


def test_rows_of_their_own_are_independent():
    group, given, resp = labels(0.5)
    assert design_effects(np.arange(len(group)), given, resp, np.ones(len(given))) == (1.0, 1.0)
    assert design_effects(group, given, resp, np.zeros(len(given))) == (1.0, 1.0)


def test_copies_of_rows_are_no_evidence():
    """Ten copies of each row leave standard errors, and what follows from them, as they were."""
    rng = np.random.default_rng(0)
    scores, rest = rng.normal(0.1, 1, 60), np.zeros(60)
    codes, other = rng.integers(0, 3, (2, 60))
    ones, group = np.ones(60), np.repeat(np.arange(60), 10)

    def copied(values):
        return np.repeat(values, 10)

    once = compare_scores([rest, scores], [True, True], ones)
    again = compare_scores([copied(rest), copied(scores)], [True, True], copied(ones), groups=group)
    naive = compare_scores([copied(rest), copied(scores)], [True, True], copied(ones))
    assert again.standard_error[1] == pytest.approx(once.standard_error[1])
    assert naive.standard_error[1] < again.standard_error[1] / 3
    agreement = beyond_chance(copied(codes), copied(other), copied(ones), group).z
    assert agreement == pytest.approx(beyond_chance(codes, other, ones).z, abs=0.1)
    with_copies = pseudo_bma(copied(scores), copied(rest), copied(ones), group)
    assert with_copies < pseudo_bma(copied(scores), copied(rest), copied(ones))


def test_groups_of_one_row_change_no_standard_error():
    rng = np.random.default_rng(0)
    scores, ones, alone = rng.normal(size=(2, 80)), np.ones(80), np.arange(80)
    plain = compare_scores(scores, [True, True], ones)
    grouped = compare_scores(scores, [True, True], ones, groups=alone)
    assert grouped.standard_error[1] == pytest.approx(plain.standard_error[1])
    assert pseudo_bma(*scores, ones, alone) == pytest.approx(pseudo_bma(*scores, ones))
