"""Items whose votes depend on each other given the class, by the likelihood of all their votes.

On an easy item votes are independent given its class ``k``: annotator ``w`` names label ``j`` with
the probability ``R_w[j, k]``, sharpened or flattened by one exponent for all. On a hard item, a
share of all, they follow the item, too: with probabilities proportional to
``R_w[j, k]^b exp(s u_j)``, where ``u_j ~ Normal(0, 1)`` are effects of the item that its votes
share (a mixed logit, McFadden and Train 2000, on Rasch's idea that items differ in difficulty).
Where ``b`` is small the item is guessed; where ``s`` is large its votes follow one label, a wrong
one as easily as the right one.

The four parameters are the mode of their posterior under priors that are wide and keep them finite.
What they say of the classes is then expressed as the intraclass correlation under which tempered
posteriors are nearest to those of this model. Whether votes depend on each other at all is a Bayes
factor, by Laplace's approximation: votes that are few do not show it, either way.

No votes show that there is no dependence, however small, but many show that there is none of
``LEAST`` or more: the factor of such a correlation against independence is the mean likelihood over
a grid of the prior.

The effects are integrated out by quasi-Monte Carlo, the same points for all items. A vote is judged
by its annotator's matrix without the item's own votes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logsumexp
from scipy.stats import norm, qmc

from nbmodels.core.short_rows import log_sum, softmax
from nbmodels.fitting.vote_dependence import (
    LEAST,
    AnnotatorModel,
    VoteTable,
    tempered_posterior,
)

#: Points of the quasi-Monte Carlo rule; products of votes, classes and points that are computed.
_POINTS, _MOST = 32, 800_000

#: Means and standard deviations of the parameters' normal priors: logarithm of the easy items'
#: exponent, logit of the hard ones' in parts of it, logarithm of the effects' size, logit of the
#: share of hard items. Three quarters, one, and a fifth in the middle, and hardly a limit.
_MEAN, _SPREAD = np.array([0.0, 1.0, 0.0, -1.5]), np.array([0.5, 1.5, 1.0, 1.5])

#: First steps of the search and where it ends, in parameters and in nats; steps of derivatives.
_STEPS, _ENDS, _STEP = np.array([0.2, -1.5, 0.7, 1.2]), (0.05, 0.1), 0.15

#: Least curvature of the log-posterior: a mode at an edge is no sharper than by the prior's spread.
_LEAST_CURVED = 0.2

#: Grid of the prior: standard scores of the hard items' exponent and of the effects' size with
#: their weights (Gauss and Hermite), and number of shares of hard items; what is added to the easy
#: items' exponent, which is the larger the more items are hard.
_NODES, _WEIGHTS, _SHARES = np.sqrt(3) * np.array([-1, 0, 1]), np.array([1, 4, 1]) / 6, 12
_SHARPER = (0.0, 0.1, 0.25)

#: Logarithm of the Bayes factor from where evidence is called strong (Kass and Raftery 1995).
_STRONG = 3.0

_TINY = 1e-9


@dataclass(frozen=True)
class ShownDependence:
    """What all votes on the items show of their dependence given the class.

    Attributes:
        correlation: intraclass correlation under which tempered posteriors are nearest, the nearer
            to 0 the weaker the evidence for any.
        gain: nats by which the votes looked at are likelier than independent ones.
        log_factor: logarithm of the Bayes factor of a correlation of ``LEAST`` or more against
            independence.
    """

    correlation: float
    gain: float
    log_factor: float


def shown_dependence(model: AnnotatorModel, votes: VoteTable) -> ShownDependence:
    """By the votes on all items, or on so many drawn at random as take about a second.

    Args:
        model: annotators who were fitted to these votes, without abstentions.
        votes: on all items.
    """
    classes = len(model.log_prior)
    some = votes.thinned(max(_MOST // (_POINTS * classes), 1))
    items = np.unique(some.row)
    if not len(items):
        return ShownDependence(0.0, 0.0, 0.0)
    here = replace(some, row=np.searchsorted(items, some.row), n_items=len(items))
    model = replace(model, resp=model.resp[items])
    effects = _Effects.of(model, here)

    def loss(x: np.ndarray) -> float:
        return -float(log_sum(effects.by_class(x)).sum()) + _prior(x, _MEAN, _SPREAD)

    def independent(x: np.ndarray) -> float:
        whole = effects.by_class(np.array([x[0], 0, 0, -np.inf]))
        return -float(log_sum(whole).sum()) + _prior(x, _MEAN[:1], _SPREAD[:1])

    found, plain = _searched(loss, _MEAN, _STEPS), _searched(independent, _MEAN[:1], _STEPS[:1])
    log_factor = _evidence(loss, found, _SPREAD) - _evidence(independent, plain, _SPREAD[:1])
    gain = max(independent(plain) - loss(found), 0.0)
    posterior = softmax(effects.by_class(found))

    def distance(r: float) -> float:
        logs = np.log(np.maximum(tempered_posterior(model, here, r), 1e-300))
        return -float((posterior * logs).sum())

    best = minimize_scalar(distance, bounds=(0, 1), method="bounded", options={"xatol": 1e-3})
    # where all classes are certain any correlation is as near, and none is shown
    shown = float(best.x * expit(log_factor - _STRONG))
    at_least = _least_factor(effects, model, float(plain[0]), -independent(plain))
    return ShownDependence(shown, gain, at_least)


@dataclass(frozen=True)
class _Effects:
    """Votes with what they say of the classes, the item deleted from its annotators' matrices.

    Attributes:
        logs: ``(V, C, K)`` log P(label | class) of each vote's annotator, at most 0.
        cast: ``(V, C)`` of these, that of the vote.
        items: ``(N, V)`` votes of the items, by what they count for.
        counts: ``(N, K)`` votes by label.
        points: ``(S, K)`` of standard normal effects.
        log_prior: ``(C,)`` logarithms of the classes' shares.
    """

    logs: Float[np.ndarray, "v c k"]
    cast: Float[np.ndarray, "v c"]
    items: sparse.csr_array
    counts: Float[np.ndarray, "n k"]
    points: Float[np.ndarray, "s k"]
    log_prior: Float[np.ndarray, " c"]

    @classmethod
    def of(cls, model: AnnotatorModel, votes: VoteTable) -> _Effects:
        n, k = len(votes.row), model.pseudo.shape[1]
        rows = model.pseudo[votes.worker].swapaxes(1, 2).copy()
        at = np.arange(n)
        own = model.resp[votes.row] * votes.weight[:, None]
        rows[at, :, votes.label] -= own
        rows = np.maximum(rows, _TINY)
        logs = np.log(rows / rows.sum(2, keepdims=True))
        logs -= logs.max(2, keepdims=True)
        items = sparse.coo_array((votes.weight, (votes.row, at)), (votes.n_items, n)).tocsr()
        uniform = qmc.Sobol(k, rng=0).random(_POINTS)
        points = norm.ppf(np.clip(uniform, 1e-6, 1 - 1e-6))
        cast, counts = logs[at, :, votes.label], votes.by_label(k)
        return cls(logs, cast, items, counts, points, model.log_prior)

    def by_class(self, x: Float[np.ndarray, " 4"]) -> Float[np.ndarray, "n c"]:
        """Log-probability of each item's votes and each class, by the parameters (``_MEAN``)."""
        easy = self._followed(np.exp(x[0]), 0.0)
        share = expit(x[3])
        if not share:
            return easy + self.log_prior
        hard = self._followed(np.exp(x[0]) * expit(x[1]), np.exp(x[2]))
        return np.logaddexp(np.log1p(-share) + easy, np.log(share) + hard) + self.log_prior

    def _followed(self, exponent: float, size: float) -> Float[np.ndarray, "n c"]:
        """Log-likelihoods of votes that follow matrices of this exponent and effects so large."""
        effects = size * self.points if size else np.zeros((1, self.points.shape[1]))
        effects = effects - effects.max(1, keepdims=True)
        tilts, weights = np.exp(effects).T, np.exp(exponent * self.logs)
        above, shared = self.items @ (exponent * self.cast), self.counts @ effects.T
        out = np.empty_like(above)
        for c in range(out.shape[1]):
            below = self.items @ np.log(np.maximum(weights[:, c] @ tilts, 1e-300))
            out[:, c] = above[:, c] + log_sum(shared - below) - np.log(len(effects))
        return out


def _least_factor(effects: _Effects, model: AnnotatorModel, plain: float, log_null: float) -> float:
    """Logarithm of the Bayes factor of a correlation of ``LEAST`` or more against independence.

    Args:
        effects: the votes.
        model: of their annotators.
        plain: logarithm of the exponent that is likeliest under independence.
        log_null: log-density there.
    """
    shares = expit(_MEAN[3] + _SPREAD[3] * norm.ppf((np.arange(_SHARES) + 0.5) / _SHARES))
    found, inside = [], []
    for more in _SHARPER:
        exponent = np.exp(plain + more)
        easy = effects._followed(exponent, 0.0) + effects.log_prior
        alone = _agreement(effects, model, exponent, 0.0)
        here = log_null + _prior(np.array([plain + more]), _MEAN[:1], _SPREAD[:1])
        for i, j in np.ndindex(3, 3):
            flatter = exponent * expit(_MEAN[1] + _SPREAD[1] * _NODES[i])
            size = np.exp(_MEAN[2] + _SPREAD[2] * _NODES[j])
            hard = effects._followed(flatter, size) + effects.log_prior
            together = _agreement(effects, model, flatter, size)
            for s in shares:
                whole = np.logaddexp(np.log1p(-s) + easy, np.log(s) + hard)
                found.append(float(log_sum(whole).sum()) - here)
                agreed, apart = (
                    (1 - s) * one + s * two for one, two in zip(alone, together, strict=True)
                )
                inside.append(_intraclass(agreed, apart, model) >= LEAST)
    # the likeliest exponent: how sharp it is known differs little
    likely = np.where(inside, found, -np.inf).reshape(len(_SHARPER), -1).max(0)
    weights = np.repeat(np.outer(_WEIGHTS, _WEIGHTS), _SHARES)
    some = np.isfinite(likely)
    if not some.any():
        return 0.0
    return float(logsumexp(likely[some], b=weights[some]) - np.log(weights[some].sum()))


def _agreement(
    effects: _Effects, model: AnnotatorModel, exponent: float, size: float
) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, "c k"]]:
    """P(two votes on an item are alike | class), and of each label, of a usual annotator."""
    usual = model.pseudo.sum(0)
    logs = exponent * np.log(np.maximum(usual / usual.sum(0), _TINY)).T
    points = size * effects.points if size else np.zeros((1, len(usual)))
    rows = logs.shape[1]
    probs = softmax((logs + points[:, None]).reshape(-1, rows)).reshape(len(points), -1, rows)
    return (probs**2).sum(2).mean(0), probs.mean(0)


def _intraclass(
    agreed: Float[np.ndarray, " c"], labels: Float[np.ndarray, "c k"], model: AnnotatorModel
) -> float:
    """Agreement of two votes given the class beyond that of votes on other items, as kappa."""
    shares, chance = np.exp(model.log_prior), (labels**2).sum(1)
    return float(shares @ (agreed - chance) / max(shares @ (1 - chance), _TINY))


def _prior(x: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> float:
    return float((((x - mean) / spread) ** 2).sum() / 2)


def _searched(
    loss: Callable[[np.ndarray], float], begin: np.ndarray, steps: np.ndarray
) -> np.ndarray:
    simplex = np.vstack([begin, begin + np.diag(steps)])
    names = dict(zip(("xatol", "fatol"), _ENDS, strict=True))
    options = {**names, "maxiter": 150, "initial_simplex": simplex}
    return np.asarray(minimize(loss, begin, method="Nelder-Mead", options=options).x)


def _evidence(loss: Callable[[np.ndarray], float], mode: np.ndarray, spread: np.ndarray) -> float:
    """Logarithm of the marginal likelihood, by Laplace's approximation."""
    d, here = len(mode), loss(mode)
    steps = _STEP * np.eye(d)
    up, down = ([loss(mode + sign * s) for s in steps] for sign in (1, -1))
    curved = np.zeros((d, d))
    for i in range(d):
        curved[i, i] = (up[i] + down[i] - 2 * here) / _STEP**2
        for j in range(i):
            both = loss(mode + steps[i] + steps[j])
            curved[i, j] = curved[j, i] = (both - up[i] - up[j] + here) / _STEP**2
    # the factors 2 pi of the priors and of the approximation cancel
    values = np.maximum(np.linalg.eigvalsh(curved), _LEAST_CURVED)
    return float(-here - np.log(spread).sum() - np.log(values).sum() / 2)
