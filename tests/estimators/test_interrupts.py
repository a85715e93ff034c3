"""Ctrl-C at any moment of a fit is never swallowed, and keeps the best until then."""

import contextlib
import warnings
from dataclasses import dataclass, field
from functools import partial

import jax
import numpy as np
import pandas as pd
import pytest
import zoo
from marks import slow_among
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

import nbmodels as nb
from inference import Status, driver
from nbmodels import Interrupted, NotConvergedWarning, Solver
from nbmodels.fitting import batched, label_regression
from nbmodels.fitting import collapsed_updates as graph

N, K = 60, 2
PLANTED = np.arange(N) % K
NOISY = np.where(np.arange(N) % 6 == 5, 1 - PLANTED, PLANTED)
BINARY = (
    np.random.default_rng(0).random((N, 6)) < np.where(PLANTED[:, None] == 1, 0.9, 0.1)
).astype(int)
REAL = np.random.default_rng(1).normal(2.0 * PLANTED[:, None], 1.0, (N, 2))
VOTES = pd.DataFrame(
    [(i, w, (PLANTED[i] + (i % (3 + 2 * w) == 0)) % K) for i in range(N) for w in range(4)],
    columns=["task", "worker", "label"],
)
LIKES = np.arange(20)[:, None] % K == PLANTED
EDGES = sparse.csr_array(np.random.default_rng(2).random((20, N)) < np.where(LIKES, 0.4, 0.1))

FITS = {
    "selected": lambda **p: nb.NoisyBernoulliNB(random_state=0, **p).fit(BINARY, NOISY),
    "rounds": lambda **p: nb.NoisyBernoulliNB(
        training=nb.CrossFit(rounds=2, size_power=0.0),
        alpha=1.0,
        noise="full",
        random_state=0,
        **p,
    ).fit(BINARY, NOISY),
    "pooled": lambda **p: nb.NoisyGaussianNB(noise="pooled", random_state=0, **p).fit(REAL, NOISY),
    "degrees of freedom": lambda **p: nb.RobustNDA(dof="learn", random_state=0, **p).fit(
        REAL, NOISY
    ),
    "joint": lambda **p: nb.NoisyBernoulliNB(training="joint", random_state=0, **p).fit(
        BINARY, NOISY
    ),
    "votes": lambda **p: nb.DawidSkene(pooling=True, **p).fit(VOTES),
    "any classifier": lambda **p: nb.NoisyLabelClassifier(
        GaussianNB(), rounds=1, cv=3, random_state=0, **p
    ).fit(REAL, NOISY),
    "auto": lambda **p: nb.AutoNoisyClassifier(
        emission=["bernoulli", "gaussian"], noise="full", random_state=0, **p
    ).fit(REAL, NOISY),
    "several sources": lambda **p: nb.JointNB(
        {"x": nb.NoisyGaussianNB(), "edges": nb.CollaborativeClassifier(alpha=0.5)},
        random_state=0,
        **p,
    ).fit({"x": REAL, "edges": EDGES}, NOISY),
    "graph": lambda **p: nb.CollaborativeClassifier(alpha=0.5, random_state=0, **p).fit(
        EDGES, NOISY
    ),
}

#: Fits that take long.
LONG = ("auto", "degrees of freedom", "graph", "selected", "pooled", "several sources")

#: How often Ctrl-C is pressed, where fits take long.
MOMENTS = {"auto": 4, "selected": 4}


@dataclass
class Keyboard:
    """Counts the moments at which a fit computes; at one of them Ctrl-C is pressed."""

    press_at: int = 0
    calls: int = field(default=0, init=False)

    @property
    def pressed(self):
        return 0 < self.press_at <= self.calls

    def listening(self, compute):
        def wrapped(*args, **options):
            self.calls += 1
            if self.calls == self.press_at:
                raise KeyboardInterrupt
            return compute(*args, **options)

        return wrapped


class Clock:
    """Of a computer on which everything takes equally long: the same moments in each run."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 0.25
        return self.now


@contextlib.contextmanager
def keyboard(press_at=0):
    keys = Keyboard(press_at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "time", Clock())
        patch.setattr(driver, "_advance", keys.listening(driver._advance))
        patch.setattr(graph, "settle", keys.listening(graph.settle))
        yield keys


def fitted(fit, on_interrupt):
    """The estimator, the interruption if there was one, and the categories of warnings."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            out, raised = fit(solver=Solver(on_interrupt=on_interrupt)), None
        except KeyboardInterrupt as error:
            out, raised = getattr(error, "result", None), error
    return out, raised, {w.category for w in caught}


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_among(FITS, LONG))
def test_ctrl_c_is_never_swallowed(name):
    fit = FITS[name]
    with keyboard() as keys:
        fitted(fit, "raise")
    assert keys.calls > 3
    kept = 0
    moments = np.unique(np.linspace(2, keys.calls, MOMENTS.get(name, 5)).astype(int))
    for moment in moments:
        with keyboard(moment) as keys:
            estimator, raised, warned = fitted(fit, "raise")
        assert keys.pressed
        assert isinstance(raised, KeyboardInterrupt), moment
        with keyboard(moment):
            other, raised_too, warned_too = fitted(fit, "keep")
        if not isinstance(raised, Interrupted):  # nothing had been found yet
            assert isinstance(raised_too, KeyboardInterrupt)
            continue
        kept += 1
        assert not warned
        assert raised_too is None
        assert NotConvergedWarning in warned_too
        for one in (estimator, other):
            assert not one.converged_
            np.testing.assert_allclose(one.label_posterior_.sum(1), 1)
            assert np.isfinite(one.noise_matrix_).all()
            assert one.corrected_labels()["suggested"].isin([0, 1]).all()
        np.testing.assert_allclose(estimator.label_posterior_, other.label_posterior_)
    assert kept >= len(moments) // 2


# Fits without an estimator ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_plain_fit_raises_or_keeps():
    case = zoo.build("bernoulli", "transition", n_items=40, seed=1)
    given = {"key": jax.random.key(0), "tol": 0.0, "n_restarts": 2}
    with keyboard(5), pytest.raises(Interrupted) as raised:
        nb.fit(case.model, case.data, **given)
    best = raised.value.result
    assert isinstance(best, nb.Fit)
    assert best.status == Status.INTERRUPTED
    assert len(best.restarts) == 3
    assert np.isfinite(best.objective)
    with keyboard(5), pytest.warns(NotConvergedWarning, match="interrupted") as caught:
        kept = nb.fit(case.model, case.data, **given, on_interrupt="keep")
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(kept.resp, best.resp)
    assert kept.n_iter == best.n_iter
    with keyboard(2), pytest.raises(KeyboardInterrupt) as early:
        nb.fit(case.model, case.data, **given, on_interrupt="keep")
    assert not isinstance(early.value, Interrupted)


@pytest.mark.slow
def test_one_of_several_starts_is_enough():
    """The start that had converged is no reason to go on."""
    case = zoo.build("bernoulli", "transition", n_items=40, seed=1)
    with keyboard() as keys:
        nb.fit(case.model, case.data, key=jax.random.key(0), n_restarts=3)
    with keyboard(keys.calls), pytest.raises(Interrupted):
        nb.fit(case.model, case.data, key=jax.random.key(0), n_restarts=3)


@pytest.mark.slow
def test_later_batches_end_too(monkeypatch):
    case = zoo.build("bernoulli", "transition", n_items=40, seed=1)
    given = {"key": jax.random.key(0), "tol": 0.0, "n_restarts": 2}
    monkeypatch.setattr(batched, "_ROOM", 1)  # a batch for each start
    with keyboard() as keys:
        nb.fit(case.model, case.data, **given)
    whole = keys.calls
    with keyboard(3) as keys, pytest.raises(Interrupted) as raised:
        nb.fit(case.model, case.data, **given)
    assert keys.calls == 5 < whole  # one look at each of the other two
    assert len(raised.value.result.restarts) == 3


def test_an_interruption_is_a_keyboard_interrupt():
    """Loops that catch errors of fits, such as a search's, do not go on after it."""
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)
    with keyboard(4), pytest.raises(Interrupted) as raised:
        FITS["votes"]()
    assert isinstance(raised.value.result, nb.DawidSkene)
    assert raised.value.result.fit_.status == Status.INTERRUPTED


def test_a_regression_of_positive_labels_is_kept_when_labels_are_held_out(monkeypatch):
    monkeypatch.setattr(label_regression, "held_out_by_fold", lambda *_: None)
    made = partial(nb.PositiveUnlabelledNB, estimator="regression", positive=1, random_state=0)
    labelled = PLANTED * (np.arange(N) % 3 > 0)
    with pytest.raises(Interrupted) as raised:
        made(solver=Solver(on_interrupt="raise")).fit(BINARY, labelled)
    with pytest.warns(NotConvergedWarning, match="before labels were held out"):
        kept = made(solver=Solver(on_interrupt="keep")).fit(BINARY, labelled)
    assert not kept.converged_
    np.testing.assert_allclose(raised.value.result.label_posterior_, kept.label_posterior_)
    assert kept.predict(BINARY).shape == (N,)
