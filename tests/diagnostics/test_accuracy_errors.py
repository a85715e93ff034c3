"""Standard errors of annotators' accuracies beside the curvature of the likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from nbmodels import DawidSkene
from nbmodels.diagnostics import accuracy_errors
from nbmodels.diagnostics.accuracy_errors import accuracy_variance
from nbmodels.fitting.vote_dependence import AnnotatorModel, VoteTable

N, W, K = 600, 4, 3


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


def curvature(model, votes, group):
    """Of the likelihood of the votes in the logits of annotators' rates and in the log-shares."""
    rates, each = np.einsum("wkk->wk", model.matrices), group.max() + 1

    def log_likelihood(at):
        moved = at[: W * each].reshape(W, each)[:, group]
        a = jax.nn.sigmoid(jax.scipy.special.logit(rates) + moved)
        of_votes = jnp.where(
            votes.label[:, None] == np.arange(K), a[votes.worker], (1 - a[votes.worker]) / (K - 1)
        )
        logs = jnp.log(of_votes) * votes.weight[:, None]
        shares = jax.nn.log_softmax(model.log_prior + at[W * each :])
        return jax.nn.logsumexp(jax.ops.segment_sum(logs, votes.row, N) + shares, 1).sum()

    found = -np.asarray(jax.jit(jax.hessian(log_likelihood))(jnp.zeros(W * each + K)))
    prior = np.zeros_like(found)
    for w, a in enumerate(model.accuracy):
        rows = np.s_[w * each : (w + 1) * each]
        covariance = np.eye(each) / 1.5 + 1 / 3 if each > 1 else np.ones((1, 1)) / 3
        prior[rows, rows] = a * (1 - a) * np.linalg.inv(covariance)
    return found + prior


@pytest.mark.parametrize("group", [np.arange(K), np.zeros(K, int)])
def test_information_is_the_curvature_of_the_likelihood(group):
    model, votes = model_and_votes()
    found = accuracy_errors._information(model, votes, np.arange(K), group)
    np.testing.assert_allclose(found, curvature(model, votes, group), rtol=1e-6, atol=1e-6)


def test_variance_is_that_of_the_mean_rate():
    """At any parameters, where directions that are hardly known have a standard error of 3."""
    model, votes = model_and_votes()
    values, vectors = np.linalg.eigh(curvature(model, votes, np.arange(K)))
    covariance = vectors / np.maximum(values, 0.1) @ vectors.T
    rates = np.einsum("wkk->wk", model.matrices)
    slopes = np.exp(model.log_prior) * rates * (1 - rates)
    for w, found in enumerate(accuracy_variance(model, votes, np.arange(K))):
        rows = np.s_[w * K : (w + 1) * K]
        assert found == pytest.approx(slopes[w] @ covariance[rows, rows] @ slopes[w], rel=1e-6)


def test_with_many_annotators_less_is_open(monkeypatch):
    model, votes = model_and_votes()
    whole = accuracy_variance(model, votes, np.arange(K))
    monkeypatch.setattr(accuracy_errors, "_MOST", W)
    together = accuracy_variance(model, votes, np.arange(K))
    monkeypatch.setattr(accuracy_errors, "_MOST", 1)
    alone = accuracy_variance(model, votes, np.arange(K))
    assert 0 < alone.mean() < together.mean() < whole.mean()


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
    assert 0.86 <= np.mean(inside) <= 0.96
