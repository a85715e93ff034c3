"""Methods beside Gibbs: what cannot be drawn is refused at once, and what is long is shown."""

import time
from types import SimpleNamespace

import jax
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from zoo import build

from inference.svi import svi
from nbmodels.core.families import Family
from nbmodels.errors import DataError
from nbmodels.fitting import progress
from nbmodels.fitting.em import fit
from nbmodels.fitting.fitted_model import Drawn
from nbmodels.posterior import sampling


class Hierarchical(Family):
    """Without a variational posterior."""


def fitted(rule="vb", **params):
    return SimpleNamespace(rule=rule, params=params)


def test_vb_advises_of_what_can_be_done():
    """A fit by VB is not to be fitted by VB, nor a form that draws its prior by any solver."""
    hopeless = "take method='gibbs', or 'nuts' where rows weigh other than 0 and 1$"
    q = object.__new__(Hierarchical)
    with pytest.raises(DataError, match="or fit with solver='vb'"):
        sampling.check_variational(fitted("map", labels=q), alone=True)
    for rule, alone in (("vb", True), ("map", False), ("vb", False)):
        with pytest.raises(DataError, match=hopeless):
            sampling.check_variational(fitted(rule, labels=q), alone=alone)


def test_vb_is_refused_before_any_form_is_drawn(monkeypatch):
    made = build("bernoulli", "transition", n_items=30, seed=1)
    own = fit(made.model, made.data, key=jax.random.key(0))
    other = Drawn(own, made.data, 0.5)
    asked = []

    def check(one, *, alone):
        asked.append(alone)
        if len(asked) == 2:
            raise DataError("method: no")

    monkeypatch.setattr(sampling, "check_variational", check)
    monkeypatch.setattr(sampling, "vb_draws", lambda *args, **options: pytest.fail("drawn"))
    with pytest.raises(DataError, match="method: no"):
        sampling.sample(own, made.data, jax.random.key(0), method="vb", alternatives=[other])
    assert asked == [False, False]


def test_svi_shows_progress_by_itself(monkeypatch, capsys):
    """As other methods do, after a few seconds, where nobody asked for it."""
    made = build("bernoulli", "transition", n_items=30, seed=1)
    own = fit(made.model, made.data, key=jax.random.key(0))
    monkeypatch.setattr(progress, "_DELAY", 0.01)

    def slow(*args, report, **options):
        report(7)
        time.sleep(0.2)
        raise DataError("enough")

    monkeypatch.setattr(sampling, "svi_draws", slow)
    for shown, expected in ((None, True), (False, False)):
        with pytest.raises(DataError, match="enough"):
            sampling.sample(
                own, made.data, jax.random.key(0), method="svi", steps=90, progress=shown
            )
        assert ("fitting the guide: 7 of 90 steps" in capsys.readouterr().err) == expected


@pytest.mark.slow
def test_svi_counts_its_steps():
    def program():
        mean = numpyro.sample("mean", dist.Normal(0, 10))
        numpyro.sample("x", dist.Normal(mean, 1), obs=np.array([1.0, 2.0, 3.0]))

    counted = []
    out = svi(
        program, jax.random.key(0), draws=50, steps=120, start={"mean": 1.5}, report=counted.append
    )
    assert sum(counted) == len(out.losses) == 120
    assert len(counted) > 1
    assert abs(out.draws["mean"].mean() - 2) < 0.5
