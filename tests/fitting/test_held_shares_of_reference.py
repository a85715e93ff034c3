"""Class shares that votes hold stay held on the scores of a nonlinear classifier."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from test_reference_beside import rings, votes_on

from nbmodels import NoisyLogisticRegression
from nbmodels.class_priors import HeldCalibration
from nbmodels.core.jax_settings import computing
from nbmodels.core.model import PRIOR
from nbmodels.fitting.discriminative import predict_scored
from nbmodels.fitting.propagation import calibrated, calibration, own_labels
from nbmodels.fitting.reference_beside import KnownClasses
from nbmodels.fitting.scores import Candidate

pytestmark = pytest.mark.filterwarnings("ignore::nbmodels.NbmodelsWarning")


@pytest.fixture(scope="module")
def world():
    """Votes, and rings of two classes: the outer one is rarer, and to the right."""
    rng = np.random.default_rng(5)
    x, true = rings(rng, 250)
    x[:, 0] += 1.5 * true
    kept = (true == 0) | (rng.random(len(true)) < 0.5)
    return x[kept], votes_on(true[kept], rng)


@pytest.fixture(scope="module")
def own(world):
    """On the regression's own scores: a number of rounds was asked for."""
    x, votes = world
    fitted = NoisyLogisticRegression(rounds=0, random_state=0).fit(x, votes=votes).fitted_
    prior = fitted.fit.model[PRIOR]
    assert isinstance(prior, HeldCalibration)
    assert np.abs(prior.centre).max() > 0.05
    return fitted


@pytest.mark.slow
def test_votes_hold_the_class_shares_on_its_scores(world, own):
    x, votes = world
    model = NoisyLogisticRegression(random_state=0).fit(x, votes=votes)
    assert model.chosen_["scores"] == "nonlinear classifier"
    before, here = own.fit.model[PRIOR], model.fitted_.fit.model[PRIOR]
    assert isinstance(here, HeldCalibration)
    for one in ("prior", "drawn"):
        there, instead = (np.asarray(getattr(p, one).precision) for p in (before, here))
        np.testing.assert_allclose(instead, there, rtol=1e-6)
    # the prior means the same shares, of other scores
    table = (np.asarray(one.data.parts[PRIOR]) for one in (own, model.fitted_))
    shares = [
        np.exp(np.asarray(p.log_probs(p.prior.mean, s)))[: len(x)].mean(0)
        for p, s in zip((before, here), table, strict=True)
    ]
    np.testing.assert_allclose(shares[1], shares[0], atol=0.02)


def test_scores_as_they_come_are_calibrated_as_the_fit_has_them(own):
    scores = np.asarray(own.data.parts[PRIOR], float)
    with computing(own.double):
        expected = own.fit.model[PRIOR].log_probs(own.fit.params[PRIOR].mean, scores)
    found = calibrated(scores, calibration(own.fit))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_is_known_beside_the_features_holds_nothing_of_their_scores(own):
    known = KnownClasses.of(own)
    n = len(known.codes)
    with computing(own.double):
        logs = own_labels(own.fit, Candidate({}, own.data))[:n]
    expected = softmax(logs + np.log(np.average(own.fit.resp, 0, known.weights)), axis=1)
    np.testing.assert_allclose(known.probs, expected, atol=1e-4)


def test_other_scores_are_predicted_from_as_they_come(own):
    scores = np.random.default_rng(0).normal(size=(5, 2))
    at = np.array([0.3, 0.4, -0.4])
    found = predict_scored(replace(own, plain=at, scaling=None), scores)
    np.testing.assert_allclose(found, np.exp(calibrated(scores, at)), atol=1e-5)
    np.testing.assert_array_equal(replace(own, plain=at).calibration, at)
