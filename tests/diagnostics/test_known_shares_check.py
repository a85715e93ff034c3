"""Class shares that were given are tested against what labels and features suit."""

import numpy as np
import pytest

from nbmodels.diagnostics.check import SHARE_CHECKS
from nbmodels.diagnostics.checks import remedies
from nbmodels.diagnostics.checks.base import run
from nbmodels.diagnostics.checks.shares import KnownShares, noise_scores
from nbmodels.diagnostics.score_tests import LEVEL, jointly

SHARES = np.array([0.5, 0.3, 0.2])
NAMES = np.array(["ant", "bee", "cat"], object)


def finding(resp, given, estimated=None, precision=None, of_scores=False, weights=None):
    n = len(resp)
    weights = np.ones(n) if weights is None else weights
    none = np.empty((n, 0)), np.empty(0)
    estimated, precision = none if estimated is None else (estimated, precision)
    prior = np.broadcast_to(given, resp.shape)
    about = KnownShares(resp, prior, weights, estimated, precision, given, of_scores, NAMES)
    found = tuple(run(SHARE_CHECKS, about))
    return found[0] if found else None


def test_of_known_classes_the_test_is_pearsons():
    """Where every class is known, sums of scores are counts less what is expected of them."""
    rng = np.random.default_rng(0)
    p = np.array(
        [finding(np.eye(3)[rng.choice(3, 400, p=SHARES)], SHARES).p_value for _ in range(400)]
    )
    assert 0.02 < np.mean(p < 0.05) < 0.08
    assert np.mean(p < LEVEL) <= 0.01


def test_a_class_that_happens_to_have_no_item_is_no_contradiction():
    """Its scores do not vary; of 100 items of which 4 are expected, none is no surprise."""
    shares = np.array([0.56, 0.4, 0.04])
    resp = np.eye(3)[np.repeat([0, 1], [58, 42])]
    assert finding(resp, shares).p_value > 0.05
    # of 400 it is one
    found = finding(np.repeat(resp, 4, axis=0), shares)
    assert found.bad
    assert "fewer items are 'cat' than 4 %" in found.sentence


def test_the_class_that_is_farthest_off_is_named():
    resp = np.eye(3)[np.repeat([0, 1, 2], [290, 60, 150])]
    found = finding(resp, SHARES)
    assert found.bad
    assert "class_prior" in found.sentence
    assert "fewer items are 'bee' than 30 %" in found.sentence
    assert found.remedies == (remedies.LEARNED_SHARES,)
    assert finding(resp[:20], SHARES) is None


def test_what_the_noise_matrix_takes_up_makes_a_deviation_surer():
    """Scores that estimated parameters explain vary less than they seem to; priors hinder it."""
    rng = np.random.default_rng(1)
    y = rng.choice(3, 500, p=SHARES)
    transition = 0.7 * np.eye(3) + 0.1
    codes = np.where(
        rng.random(500) < 0.1, -1, (rng.random((500, 1)) > transition[y].cumsum(1)).sum(1)
    )
    resp = np.where(codes[:, None] >= 0, transition.T[codes] * SHARES, SHARES)
    resp /= resp.sum(1, keepdims=True)
    item = (resp - SHARES)[:, :-1]
    scores, precision = noise_scores(resp, codes, transition, one_rate=False)
    assert scores.shape == (500, 6)
    assert not scores[codes < 0].any()
    variance = [
        np.diag(jointly(item, scores, precision * held, np.ones(500))[1]) for held in (1, 100, 1e9)
    ]
    assert (variance[0] < variance[1]).all()
    assert (variance[1] < variance[2]).all()
    np.testing.assert_allclose(variance[2], np.square(item).sum(0), rtol=1e-3)
    assert noise_scores(resp, codes, transition, one_rate=True)[0].shape == (500, 1)
    many = np.full((12, 12), 0.02) + 0.76 * np.eye(12)
    every = noise_scores(np.full((9, 12), 1 / 12), np.arange(9), many, one_rate=False)
    assert every[0].shape == (9, 12)


def test_rates_of_zero_and_one_say_nothing():
    """As maximum likelihood has them: no label is off its class, and no prior opposes."""
    codes = np.repeat([0, 1, 2], [150, 90, 60])
    resp = np.eye(3)[codes]
    found = finding(resp, SHARES, *noise_scores(resp, codes, np.eye(3), one_rate=False))
    assert found.p_value > 0.9


@pytest.mark.parametrize("scale", [0.05, 20.0])
def test_the_scale_of_weights_does_not_matter(scale):
    resp = np.eye(3)[np.repeat([0, 1, 2], [290, 60, 150])]
    one, other = finding(resp, SHARES), finding(resp, SHARES, weights=np.full(500, scale))
    assert other.bad
    assert other.effect == pytest.approx(one.effect)
    assert other.p_value == pytest.approx(one.p_value)


@pytest.mark.parametrize("of_scores", [False, True])
def test_of_other_classifiers_scores_more_is_asked(of_scores):
    resp = np.eye(3)[np.repeat([0, 1, 2], [173, 110, 117])]
    assert LEVEL / 100 < finding(resp, SHARES).p_value < LEVEL
    assert finding(resp, SHARES, of_scores=of_scores).bad is not of_scores
