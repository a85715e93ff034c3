"""Labels that are missing by the class of an item, by its features, or at random."""

import numpy as np
import pytest

from nbmodels import PartialLabelNB
from nbmodels.estimators.labelled_by_class import FINDING

NAMES = np.array(["a", "b", "c"], object)


def fitted(rates, seed=0, n=500):
    """A fit to overlapping classes, of which items are labelled with these probabilities."""
    rng = np.random.default_rng(seed)
    true = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=(n, 4)) + 1.2 * np.eye(3, 4)[true]
    y = np.where(rng.random(n) < rates(true, x), NAMES[true], None)
    model = PartialLabelNB(features="gaussian", random_state=0).fit(x, y)
    found = [one for one in model.verdict().findings if one.name == FINDING]
    return model, found[0].sentence if found else "", np.mean(model.predict(x) == NAMES[true])


@pytest.mark.slow
def test_a_class_that_is_labelled_more_often_does_not_draw_the_others():
    """Taken for missing at random, the class shares were .34, .18 and .48, and .60 right."""
    found = [fitted(lambda true, _: np.array([0.1, 0.1, 0.7])[true], seed) for seed in range(4)]
    shares = np.mean([model.class_prior_ for model, *_ in found], 0)
    np.testing.assert_allclose(shares, [0.5, 0.3, 0.2], atol=0.1)
    assert np.mean([right for *_, right in found]) > 0.65
    assert sum("not missing at random" in sentence for _, sentence, _ in found) >= 3
    assert "of the items of class 'c' have one" in found[0][1]


@pytest.mark.slow
def test_labels_that_are_missing_by_the_features_stay_missing_at_random():
    found = [fitted(lambda _, x: 1 / (1 + np.exp(1.5 - 2.5 * x[:, 2])), seed) for seed in range(4)]
    for model, sentence, _ in found:
        assert "labelled" not in model.fit_.model
        np.testing.assert_allclose(model.class_prior_, [0.5, 0.3, 0.2], atol=0.12)
        assert "not missing at random" not in sentence
    assert sum("depends on its features" in sentence for _, sentence, _ in found) >= 2


@pytest.mark.slow
def test_labels_that_are_missing_at_random_are_taken_for_that():
    assert not any(fitted(lambda true, _: np.full(len(true), 0.2), seed)[1] for seed in range(4))


# class shares of classes that overlap mix slowly
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbmodels.errors.PosteriorWarning")
def test_draws_have_the_rates():
    model, _, _ = fitted(lambda true, _: np.array([0.1, 0.1, 0.7])[true])
    draws = model.posterior()["posterior"]["labelled_transition"]
    assert draws.dims == ("chain", "draw", "true_class", "labelled_labelled")
    assert float(draws.isel(labelled_labelled=1).sel(true_class="c").mean()) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ml", "map", "vb"])
def test_most_labels_are_there_at_random(method):
    """Of maximum likelihood, the rates have no prior that would speak for or against them."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        true = rng.choice(3, 1500, p=[0.5, 0.3, 0.2])
        x = rng.normal(size=(1500, 4)) + 1.2 * np.eye(3, 4)[true]
        y = np.where(rng.random(1500) < 0.97, NAMES[true], None)
        model = PartialLabelNB(features="gaussian", estimator="em", solver=method).fit(x, y)
        assert "labelled" not in model.fit_.model
