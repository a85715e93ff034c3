"""NumPyro programs with discrete classes beside the components that describe the same model."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.contrib.funsor import config_enumerate, enum, log_density
from numpyro.distributions import biject_to

from inference import Status, solve
from nbmodels.core import model as m


def enumerated_density(program, sites):
    """Log-density with the items' classes summed out; their plate has dimension -1."""
    enumerated = enum(config_enumerate(program), first_available_dim=-2)
    return jax.jit(lambda sites: log_density(enumerated, (), {}, sites)[0])(sites)


def prior_density(program, sites):
    """Log-density of the parameters alone."""

    @jax.jit
    def density(sites):
        given = handlers.trace(handlers.substitute(handlers.seed(program, 0), sites)).get_trace()
        return sum(given[name]["fn"].log_prob(value).sum() for name, value in sites.items())

    return density(sites)


def bijectors(program, names):
    """From unconstrained coordinates to each of the named sites."""
    supports = {}

    def look():
        trace = handlers.trace(handlers.seed(program, 0)).get_trace()
        supports.update({name: trace[name]["fn"].support for name in names})

    jax.eval_shape(look)  # nothing is sampled: the samplers would have to be compiled
    return {name: biject_to(support) for name, support in supports.items()}


def steepest(gradient):
    return max(float(jnp.abs(g).max()) for g in jax.tree.leaves(gradient))


def assert_stationary(program, sites, tolerance=2e-5):
    """The program's density has a zero gradient, each site taken through its bijector."""
    maps = bijectors(program, sites)
    free = {name: maps[name].inv(v) for name, v in sites.items()}

    @jax.jit
    @jax.grad
    def slope(free):
        return enumerated_density(program, {name: maps[name](v) for name, v in free.items()})

    assert steepest(slope(free)) < tolerance
    assert steepest(slope(jax.tree.map(lambda v: v + 0.1, free))) > 1e-2


@partial(jax.jit, static_argnames="tol")
def fixed_point(model, start, data, tol=1e-13):
    """MAP-EM until it stands still: the status, the conjugate posterior and the objective."""
    coordinates = m.coordinates("map")
    context = (model, data)
    fit = solve(m.step("map"), start, context, max_steps=5000, tol=tol, coordinates=coordinates)
    return fit.status, fit.params, m.objective(model, fit.params, data, "map")


class Reference(NamedTuple):
    """A paper's model, written twice.

    Attributes:
        program: a NumPyro program that holds the data and takes its hyperparameters by name.
        hyper: the program's hyperparameters.
        model, data: the same model as components.
        sites: ``sites(model, q)``, the program's sites at a fit.
        likelihood: ``likelihood(model, data, sites)``, the log-likelihood of all items by any way
            but the program.
        guess: responsibilities to start from; None for those of the labels.
        shift: what the program's log-density is larger by: constants that it leaves in or out.
    """

    program: Callable
    hyper: dict
    model: dict
    data: m.Data
    sites: Callable
    likelihood: Callable
    guess: Any = None
    shift: float = 0.0


@partial(jax.jit, static_argnames=("program", "likelihood"))
def _both(program, likelihood, hyper, free, model, data):
    """The program's log-density and slope; its prior and the components' likelihood there."""

    def density(free):
        written = partial(program, **hyper)
        maps = bijectors(written, free)
        sites = {name: maps[name](v) for name, v in free.items()}
        parts = prior_density(written, sites), likelihood(model, data, sites)
        return enumerated_density(written, sites), parts

    return jax.value_and_grad(density, has_aux=True)(free)


@jax.jit
def _start(model, data, guess):
    guess = m.initial_responsibilities(model, data) if guess is None else guess
    return m.start(model, guess, data, "map")


def assert_agreement(case, tolerance=2e-5):
    """One density at any parameters; and where MAP-EM stops, one objective, of gradient zero.

    The gradient is taken through each site's bijector, without the log-Jacobian: the mode is that
    of the density of the sites themselves.
    """
    status, q, objective = fixed_point(
        case.model, _start(case.model, case.data, case.guess), case.data
    )
    assert Status(int(status)) is Status.CONVERGED
    sites = case.sites(case.model, q)
    maps = bijectors(partial(case.program, **case.hyper), sites)
    mode = {name: maps[name].inv(v) for name, v in sites.items()}

    def at(free):
        return _both(case.program, case.likelihood, case.hyper, free, case.model, case.data)

    (density, _), gradient = at(mode)
    # constants included: the program's density at the mode is the objective of EM
    np.testing.assert_allclose(density, objective + case.shift, rtol=1e-10)
    assert steepest(gradient) < tolerance

    for seed in range(3):
        rng = np.random.default_rng(seed)
        away = jax.tree.map(lambda v, rng=rng: v + rng.normal(size=v.shape), mode)
        (density, (prior, likelihood)), gradient = at(away)
        np.testing.assert_allclose(density - prior, likelihood + case.shift, rtol=1e-10)
        assert steepest(gradient) > 1e-2
