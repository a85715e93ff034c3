"""Votes that are fewer than cells of the matrices: many classes, a few votes an item."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from marks import slow

from nbmodels import DawidSkene
from nbmodels.fitting.vote_dependence import AnnotatorModel, VoteTable, tempered_posterior


def crowd(seed, k, n=400, w=24, each=5, accuracy=0.55, shared=True):
    """Votes by annotators who err to a few classes, all to the same ones or each to their own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    errors = rng.dirichlet(np.full(k, 1.2 / k), (1 if shared else w, k)) + 1e-4
    errors = np.broadcast_to(errors * ~np.eye(k, dtype=bool), (w, k, k))
    right = np.clip(accuracy + 0.1 * rng.normal(size=w), 0.2, 0.9)[:, None, None]
    rows = (1 - right) * errors / errors.sum(2, keepdims=True) + right * np.eye(k)
    task = np.repeat(np.arange(n), each)
    worker = rng.random((n, w)).argsort(1)[:, :each].ravel()
    steps = rows[worker, y[task]].cumsum(1)[:, :-1]
    label = (rng.random((n * each, 1)) > steps).sum(1)
    return pd.DataFrame({"task": task, "worker": worker, "label": label}), y


def accuracy_of_majority(votes, y, k):
    counts = np.zeros((len(y), k))
    np.add.at(counts, (votes["task"], votes["label"]), 1)
    best = counts == counts.max(1, keepdims=True)
    return (best[np.arange(len(y)), y] / best.sum(1)).mean()


@pytest.mark.parametrize(("k", "shared"), [(12, True), slow(30, False)])
@pytest.mark.filterwarnings("ignore::nbmodels.VerdictWarning")
def test_many_classes_are_not_far_too_sure(k, shared):
    votes, y = crowd(3, k, shared=shared)
    names = np.array([f"class {c:02d}" for c in range(k)])  # numbers might be grades
    table = votes.assign(label=names[votes["label"]])
    p = DawidSkene(classes=names, random_state=0).fit(table).label_posterior_
    right = (p.argmax(1) == y).mean()
    assert abs(p.max(1).mean() - right) < 0.1
    # where all err alike, that is learned, and much is won
    assert right > accuracy_of_majority(votes, y, k) + (0.1 if shared else 0.0)


def test_items_are_judged_by_the_votes_on_others():
    """Matrices without an item are those of counts from which its votes are taken away."""
    rng = np.random.default_rng(0)
    n, w, k = 12, 4, 5
    task, worker = np.nonzero(rng.random((n, w)) < 0.7)
    votes = VoteTable(task, worker, rng.integers(0, k, len(task)), n)
    resp, prior = rng.dirichlet(np.ones(k), n), 1 + rng.random((w, k, k))
    pseudo = prior.copy()
    np.add.at(pseudo, (worker, votes.label), resp[task])
    shares = np.log(rng.dirichlet(np.full(k, 5.0)))
    model = AnnotatorModel(pseudo, shares, resp)
    found = tempered_posterior(model, votes, 0.0, apart=True)
    for i in range(n):
        here, others = task == i, task != i
        without = prior.copy()
        np.add.at(without, (worker[others], votes.label[others]), resp[task[others]])
        rows = (without / without.sum(1, keepdims=True))[worker[here], votes.label[here]]
        expected = np.exp(shares) * rows.prod(0)
        np.testing.assert_allclose(found[i], expected / expected.sum(), rtol=1e-10)


def test_votes_that_a_prior_outweighs_do_not_judge_themselves():
    """Annotators who are alike are learned from all: nothing is gained without an item."""
    rng = np.random.default_rng(1)
    n, w, k = 40, 20, 6
    task, worker = np.repeat(np.arange(n), 3), rng.integers(0, w, 3 * n)
    votes = VoteTable(task, worker, rng.integers(0, k, 3 * n), n)
    resp = np.eye(k)[rng.integers(0, k, n)]
    counts = np.zeros((w, k, k))
    np.add.at(counts, (worker, votes.label), resp[task])
    model = AnnotatorModel(counts + 1, np.full(k, -np.log(k)), resp)
    assert model.few(votes)
    assert not replace(model, pseudo=counts + 50).few(votes)
    assert not replace(model, abstains=True).few(votes)
    often = VoteTable(*(np.tile(x, 10) for x in (task, worker, votes.label)), n)
    assert not model.few(often)
