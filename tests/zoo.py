"""Every component of the library, and models made of any of them with data drawn from the prior."""

from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nbmodels.channels import (
    Annotators,
    CandidateSets,
    ExternalEvidence,
    FixedTransition,
    LabellingFunctions,
    LabellingRates,
    NeighbourVotes,
    OneCoinAnnotators,
    OrderedAnnotators,
    SymmetricTransition,
    Transition,
    TrustedLabels,
)
from nbmodels.channels.alike_annotators import SharedAccuracy
from nbmodels.class_priors import (
    Calibration,
    FixedProportions,
    Logistic,
    Proportions,
    ScaledLogistic,
)
from nbmodels.core import model as m
from nbmodels.emissions import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    DiagonalStudent,
    FullGaussian,
    FullStudent,
    Multinomial,
    Users,
)

K = 3

EMISSIONS = {
    "bernoulli": lambda: Bernoulli.of(4, K),
    "multinomial": lambda: Multinomial.of(5, K),
    "categorical": lambda: Categorical.of((2, 3, 4), K),
    "gaussian": lambda: DiagonalGaussian.of(3, K, kappa=0.5, shape=2.0, rate=1.0),
    "full": lambda: FullGaussian.of(3, K, kappa=0.5, scale=1.0),
    "tied": lambda: FullGaussian.of(3, K, tied=True, kappa=0.5, scale=1.0),
    "student": lambda: DiagonalStudent.of(3, K, kappa=0.5, shape=2.0, rate=1.0),
    "student_full": lambda: FullStudent.of(3, K, kappa=0.5, scale=1.0),
    "student_tied": lambda: FullStudent.of(3, K, tied=True, kappa=0.5, scale=1.0),
    "users": lambda: Users.of(6, K, alpha=1.5),
}
CHANNELS = {
    "transition": lambda: Transition.of(K),
    "symmetric": lambda: SymmetricTransition.of(K),
    "fixed": lambda: FixedTransition(
        prior=jnp.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.25, 0.15, 0.6]])
    ),
    "trusted": lambda: TrustedLabels.of(K),
    "annotators": lambda: Annotators.of(4, K),
    "neighbours": lambda: NeighbourVotes.of(K),
    "one_coin": lambda: OneCoinAnnotators.of(4, K),
    "ordered": lambda: OrderedAnnotators.of(4, K),
    "alike": lambda: SharedAccuracy.of(4, K),
    "functions": lambda: LabellingFunctions.of(4, K),
    "beliefs": lambda: ExternalEvidence.of(K),
    "candidates": lambda: CandidateSets.of(K),
    "rates": lambda: LabellingRates.even(K),
}
PRIORS = {
    "proportions": lambda: Proportions.of(K),
    "held": lambda: Proportions.of(K).with_items(np.array([4.0, 2.0, 1.0]), np.zeros(K)),
    "known": lambda: FixedProportions(prior=jnp.array([0.5, 0.3, 0.2])),
    "calibration": lambda: Calibration.of(K, log_slope_sd=0.5, bias_sd=1.0),
    "logistic": lambda: Logistic.of(4, K, intercept_sd=1.0),
    "scaled": lambda: ScaledLogistic.of(4, K, df=4.0, intercept_sd=1.0),
}
COMPONENTS = EMISSIONS | CHANNELS | PRIORS

#: Nothing to learn.
GIVEN = {"beliefs", "fixed", "trusted", "candidates", "known"}
#: Their classes are named from outside, so that renaming a class means nothing to them.
NAMED = GIVEN | {"symmetric", "alike", "ordered", "calibration"}


class Case(NamedTuple):
    """A model with data: ``raw`` is what ``pack`` took, ``hidden`` what it was to lose."""

    model: dict
    data: m.Data
    y: Any
    raw: dict
    hidden: dict


def _codes(component, raw, hidden):
    return component.pack(np.where(hidden, -1, raw), K)


def _cells(component, raw, hidden):
    return component.pack(raw, hidden if hidden.any() else None)


def _counts(component, raw, hidden):
    return component.pack(np.where(hidden, 0, raw))


#: How data with holes are packed, where it is not as cells of a matrix.
PACK = {
    Transition: _codes,
    SymmetricTransition: _codes,
    FixedTransition: _codes,
    LabellingRates: _codes,
    TrustedLabels: _codes,
    Annotators: _counts,
    NeighbourVotes: _counts,
    OneCoinAnnotators: _counts,
    OrderedAnnotators: _counts,
    SharedAccuracy: _counts,
    LabellingFunctions: _counts,
    ExternalEvidence: _counts,
    Calibration: _counts,
    Logistic: _counts,
    ScaledLogistic: _counts,
    Users: _counts,
    CandidateSets: lambda component, raw, hidden: component.pack(np.where(hidden, True, raw), K),
    Categorical: lambda component, raw, hidden: component.pack(np.where(hidden, -1, raw)),
}


def pack(component, raw, hidden):
    """Packed data of any component; ``hidden`` cells (or labels) are missing."""
    if raw is None:
        return None
    return PACK.get(type(component), _cells)(component, raw, hidden)


def _hide(raw, rng, missing):
    hidden = rng.random(raw.shape) < (0.25 if missing else 0)
    hidden[0] |= missing  # nothing at all is known of the first item
    return hidden


def build(
    *names,
    prior="proportions",
    n_items=12,
    seed=0,
    missing=False,
    row_weights=False,
    powers=False,
    item_powers=False,
):
    """A model of the named emissions and channels, and items simulated from its prior.

    Args:
        missing: hide a quarter of the cells and labels.
        row_weights: random weights of items, all one otherwise.
        powers: random weights of components, all one otherwise.
        item_powers: random powers of each item's evidence, all one otherwise.
    """
    # defaults written out: the same model asked for in another way is not simulated again
    return _built(names, prior, n_items, seed, missing, row_weights, powers, item_powers)


@cache
def _built(names, prior, n_items, seed, missing, row_weights, powers, item_powers):
    rng = np.random.default_rng(seed)
    model = {m.PRIOR: PRIORS[prior](), **{name: COMPONENTS[name]() for name in names}}
    if powers:
        model = {n: replace(c, weight=float(rng.uniform(0.3, 1.5))) for n, c in model.items()}
    # not jitted as a whole: gamma samplers are slow to compile, and models share them
    parts, y, _ = m.simulate(model, jax.random.key(seed), n_items)
    raw = {name: np.asarray(part) for name, part in parts.items()}
    hidden = {name: _hide(part, rng, missing) for name, part in raw.items()}
    packed = {name: pack(model[name], raw[name], hidden[name]) for name in raw}
    weights = rng.uniform(0.2, 2, n_items) if row_weights else np.ones(n_items)
    own = {n: jnp.asarray(rng.uniform(0.3, 1.5, n_items)) for n in packed} if item_powers else {}
    data = m.Data({m.PRIOR: None, **packed}, jnp.asarray(weights), own)
    return Case(model, data, np.asarray(y), raw, hidden)


# Methods of components, compiled once for each structure and shape


@partial(jax.jit, static_argnames="rule")
def likelihood_params(component, q, rule, key=None):
    return component.likelihood_params(q, rule, key)


@partial(jax.jit, static_argnames="rule")
def update(component, stats, rule):
    return component.update(stats, rule)


@jax.jit
def stats(component, likelihood_params, resp, data, key=None):
    return component.stats(likelihood_params, resp, data, key)


@jax.jit
def log_likelihood(component, likelihood_params, data):
    """The ``(N or 1, K)`` table with its offset put back."""
    found = component.log_likelihood(likelihood_params, data)
    return found.table + found.offset[:, None]


def anchored(case, rule):
    """Where EM begins: at the labels, or at the true classes where there are none."""
    return _anchored(case.model, case.data, case.y, rule)


@partial(jax.jit, static_argnames="rule")
def _anchored(model, data, y, rule):
    guess = m.initial_responsibilities(model, data)
    if guess is None:
        guess = 0.8 * jax.nn.one_hot(y, K) + 0.2 / K
    return m.start(model, guess, data, rule)


@jax.jit
def total_log_likelihood(model, likelihood_params, data):
    """Sum of the weighted items' log-densities, base measures included."""
    items = m.posterior(model, likelihood_params, data).log_likelihood + m.base_measure(model, data)
    return jnp.sum(data.weights * items)


def random_likelihood_params(model, key):
    """Parameters drawn from the prior, as the likelihoods read them."""
    return m.likelihood_params(model, {name: c.prior for name, c in model.items()}, "draw", key)


def close(a, b, rtol=1e-9, atol=1e-9):
    """Assert that two pytrees agree to rounding error."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol, atol), a, b)
