"""Standard errors of annotators' accuracies beside the curvature of the likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from nbmodels import DawidSkene
from nbmodels.diagnostics import accuracy_errors
from nbmodels.diagnostics.accuracy_errors import unknown_classes
from nbmodels.fitting.vote_dependence import AnnotatorModel, VoteTable

N, W, K = 60, 4, 3


def model_and_votes(seed=0):
    """Any rates and shares, with their own responsibilities."""
    rng = np.random.default_rng(seed)
    rates, shares = rng.uniform(0.4, 0.9, (W, K)), np.array([0.5, 0.3, 0.2])
    y, row = rng.choice(K, N, p=shares), np.repeat(np.arange(N), 3)
    worker = np.concatenate([rng.choice(W, 3, replace=False) for _ in range(N)])
    right = rng.random(3 * N) < rates[worker, y[row]]
    label = np.where(right, y[row], (y[row] + rng.integers(1, K, 3 * N)) % K)
    weights = rng.choice([1.0, 0.5], 3 * N)
    votes = VoteTable(row, worker, label, N, weights)
    matrices = np.where(np.eye(K, dtype=bool), rates[:, None], (1 - rates[:, None]) / (K - 1))
    model = AnnotatorModel(matrices * 100, np.log(shares), np.zeros((N, K)))
    logs, before = model.evidence(votes)
    joint = before + votes.summed(logs)
    resp = np.exp(joint - joint.max(1, keepdims=True))
    return AnnotatorModel(matrices * 100, np.log(shares), resp / resp.sum(1, keepdims=True)), votes


def curvature(model, votes):
    """Of the likelihood of the votes in the rise of each annotator's rates and in log-shares."""
    rates = jnp.asarray(np.einsum("wkk->wk", model.matrices))

    def log_likelihood(at):
        a, shares = rates + at[:W, None], jax.nn.log_softmax(model.log_prior + at[W:])
        of_votes = jnp.where(
            votes.label[:, None] == np.arange(K), a[votes.worker], (1 - a[votes.worker]) / (K - 1)
        )
        logs = jnp.log(of_votes) * votes.weight[:, None]
        items = jax.ops.segment_sum(logs, votes.row, N)
        return jax.nn.logsumexp(items + shares, 1).sum()

    return -np.asarray(jax.hessian(log_likelihood)(jnp.zeros(W + K)))


def test_they_are_those_of_the_curvature_of_the_likelihood(monkeypatch):
    monkeypatch.setattr(accuracy_errors, "_LEAST", 1e-6)
    model, votes = model_and_votes()
    prior = accuracy_errors._PSEUDO_VOTES / (model.accuracy * (1 - model.accuracy))
    both = curvature(model, votes) + np.diag([*prior, 0, 0, 0])
    both[W:, W:] += 1  # a constant added to all log-shares changes nothing
    whole = np.diag(np.linalg.inv(both))[:W]
    rates = np.einsum("wkk->wk", model.matrices)[votes.worker]
    hit = votes.label[:, None] == np.arange(K)
    second = np.where(hit, 1 / rates**2, 1 / (1 - rates) ** 2) * votes.weight[:, None]
    known = np.bincount(votes.worker, (model.resp[votes.row] * second).sum(1), W) + prior
    found = unknown_classes(model, votes, np.arange(K))
    np.testing.assert_allclose(found, whole - 1 / known, rtol=1e-6)


def test_of_many_annotators_each_is_taken_by_itself(monkeypatch):
    model, votes = model_and_votes()
    together = unknown_classes(model, votes, np.arange(K))
    monkeypatch.setattr(accuracy_errors, "_MOST", 1)
    alone = unknown_classes(model, votes, np.arange(K))
    assert alone.min() > 0
    assert (alone < together).all()


@pytest.mark.slow
def test_intervals_of_the_report_hold():
    """Of 384; 81 % where classes are taken to be independent given the matrices."""
    inside = []
    for seed in range(700, 716):
        rng = np.random.default_rng([seed, 300])
        y, rates = rng.integers(0, K, 300), rng.beta(6, 3, 24)
        task = np.repeat(np.arange(300), 3)
        worker = np.concatenate([rng.choice(24, 3, replace=False) for _ in range(300)])
        right = rng.random(900) < rates[worker]
        label = np.where(right, y[task], (y[task] + rng.integers(1, K, 900)) % K)
        votes = pd.DataFrame({"task": task, "worker": worker, "label": label})
        report = DawidSkene(random_state=0).fit(votes).worker_report()
        true = rates[report["worker"]]
        inside.append((report["low"] <= true) & (true <= report["high"]))
    assert 0.86 <= np.mean(inside) <= 0.95
