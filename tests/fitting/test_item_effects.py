"""Effects of items on votes: independent votes show none, and confidence is as high as accuracy."""

import numpy as np
import pandas as pd
import pytest
from marks import slow

from nbmodels import DawidSkene
from nbmodels.fitting.vote_dependence import HIDDEN, assumed_dependence


def crowd(seed, n=500, w=20, k=3, each=10, size=0.0, rate=(0.1, 0.35)):
    """Votes with effects of each item on each label, on the scale of logits, and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    wrong = rng.uniform(*rate, w)
    logs = np.log(np.where(np.eye(k), 1 - wrong[:, None, None], wrong[:, None, None] / (k - 1)))
    logits = logs[:, y] + size * rng.normal(size=(n, k))
    votes = (logits + rng.gumbel(size=logits.shape)).argmax(2).T
    task, worker = np.nonzero(rng.random((n, w)).argsort(1).argsort(1) < each)
    return pd.DataFrame({"task": task, "worker": worker, "label": votes[task, worker]}), y


def confidence(model, y):
    p = model.label_posterior_
    return p.max(1).mean() - (p.argmax(1) == y).mean()


@pytest.mark.parametrize(
    "world",
    [slow({}), slow({"rate": (0.3, 0.6)}), {"size": 1.2}],
    ids=["independent", "weak", "effects"],
)
def test_confidence_without_an_assumption_is_as_high_as_accuracy(world):
    table, y = crowd(1, **world)
    shown = confidence(DawidSkene(dependence="shown").fit(table), y)
    assert abs(shown) < 0.06
    if not world.get("size"):
        assert confidence(DawidSkene(dependence=0.5).fit(table), y) < -0.1


@pytest.mark.parametrize("world", [{"each": 7}, {"rate": (0.3, 0.6)}], ids=["seven", "weak"])
def test_confidence_in_independent_votes_is_near_to_accuracy(world):
    """They show no correlation of a twentieth; confidence was 10 and 31 points too low."""
    table, y = crowd(4, **world)
    found = DawidSkene().fit(table)
    assert found.fitted_.vote_dependence.correlation < 0.25
    assert abs(confidence(found, y)) < 0.08


@pytest.mark.slow
def test_many_independent_votes_are_tempered_less():
    table, _ = crowd(2, each=20)
    found = DawidSkene().fit(table).fitted_.vote_dependence
    assert found.visible < 0.1
    assert found.visible <= found.correlation < HIDDEN
    effects, _ = crowd(2, each=20, size=1.2)
    found = DawidSkene().fit(effects).fitted_.vote_dependence
    assert found.visible > 0.2
    assert found.correlation == pytest.approx(assumed_dependence(found.visible), abs=1e-6)


@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_items_with_one_vote_show_nothing():
    table, _ = crowd(3, n=100, each=1)
    found = DawidSkene().fit(table).fitted_.vote_dependence
    assert found.gain < 1
    assert 0 <= found.correlation < 1
