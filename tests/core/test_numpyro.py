"""The two descriptions of a model agree: its evidence, and its enumerated NumPyro program.

(1) At any parameters the program's log-density, less that of its parameter sites, is the weighted
log-likelihood with all constants. (2) Where MAP-EM stands still the gradient of the program's
log-density is zero, taken through each site's bijector and without the log-Jacobian. (3) The same
program with the sum over the classes written out, which NUTS and SVI run, has the same density.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from jax import lax
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import log_density
from zoo import (
    CHANNELS,
    EMISSIONS,
    PRIORS,
    anchored,
    build,
    close,
    random_likelihood_params,
    total_log_likelihood,
)

from inference import Status, solve
from nbmodels.core import model as m
from nbmodels.core.numpyro_program import log_density as enumerated
from nbmodels.core.numpyro_program import marginal, sample_parameters

N = 12


@jax.jit
def fixed_point(model, q, data):
    """MAP-EM to where the objective no longer tells, then on, to where the point stands still."""
    context = (model, data)
    coordinates = m.coordinates("map")
    found = solve(m.step("map"), q, context, max_steps=3000, tol=1e-11, coordinates=coordinates)
    on = lax.fori_loop(0, 2000, lambda _, q: m.step("map")(q, context)[0], found.params)
    read = m.likelihood_params(model, on, "map")
    return found.status, m.objective(model, on, data, "map"), m.values(model, read)


def flat(values):
    return {f"{name}_{site}": v for name, part in values.items() for site, v in part.items()}


def bijectors(model):
    """From unconstrained coordinates, by parameter site."""
    sites = handlers.trace(handlers.seed(lambda: sample_parameters(model), 0)).get_trace()
    return {name: biject_to(site["fn"].support) for name, site in sites.items()}


def both_descriptions(case):
    """Assert (1), (2) and (3) of a model and its data."""
    maps = bijectors(case.model)

    def density(free, names):
        values = {site: maps[site](x) for site, x in free.items()}
        nested = {n: {s: values[f"{n}_{s}"] for s in sites} for n, sites in names.items()}
        prior = log_density(lambda: sample_parameters(case.model), (), {}, values)[0]
        written = log_density(marginal(case.model, case.data), (), {}, values)[0]
        return enumerated(case.model, case.data, nested), (prior, written)

    read = random_likelihood_params(case.model, jax.random.key(1))
    values = m.values(case.model, read)
    names = {n: tuple(part) for n, part in values.items()}
    slope = jax.jit(jax.value_and_grad(lambda free: density(free, names), has_aux=True))

    def at(values):
        return slope({site: maps[site].inv(v) for site, v in flat(values).items()})

    (theirs, (prior, written)), _ = at(values)
    close(written, theirs, rtol=1e-9, atol=1e-8)
    close(theirs - prior, total_log_likelihood(case.model, read, case.data), rtol=1e-9, atol=1e-8)

    status, objective, best = fixed_point(case.model, anchored(case, "map"), case.data)
    assert status == Status.CONVERGED
    (theirs, _), gradient = at(best)
    close(theirs, objective)
    for site, g in gradient.items():
        # a gradient entry sums N terms of size one, and is zero to what EM resolves of them
        np.testing.assert_allclose(g, 0, atol=1e-6 * N, err_msg=site)


@st.composite
def recipes(draw):
    """Arguments of ``zoo.build``: one or two emissions, up to two channels, every setting."""
    emissions = draw(st.lists(st.sampled_from([*EMISSIONS]), min_size=1, max_size=2, unique=True))
    channels = draw(st.lists(st.sampled_from([*CHANNELS]), max_size=2, unique=True))
    named = ("missing", "row_weights", "powers", "item_powers")
    flags = {name: draw(st.booleans()) for name in named}
    prior = draw(st.sampled_from([*PRIORS]))
    return (*emissions, *channels), {**flags, "prior": prior, "seed": draw(st.integers(0, 5))}


COVER = [
    (("bernoulli", "transition"), {}),
    (("multinomial", "symmetric"), {"missing": True}),
    (("categorical", "fixed", "trusted"), {"missing": True, "powers": True}),
    (("gaussian", "transition"), {"missing": True, "row_weights": True, "powers": True}),
    (("full", "symmetric"), {"missing": True, "powers": True, "prior": "known"}),
    (("student", "transition"), {"missing": True, "row_weights": True}),
    (("student_full", "symmetric"), {"powers": True}),
    (("student_tied", "transition"), {"missing": True}),
    (("bernoulli", "candidates"), {"missing": True, "row_weights": True}),
    (("tied", "transition", "trusted"), {"missing": True, "row_weights": True}),
    (("multinomial", "users", "transition"), {"missing": True, "item_powers": True}),
    (("student", "symmetric"), {"row_weights": True, "powers": True, "item_powers": True}),
    (("users", "annotators", "beliefs"), {"missing": True, "row_weights": True, "powers": True}),
    (("gaussian", "ordered"), {"missing": True, "row_weights": True, "powers": True}),
    (("transition",), {"missing": True, "prior": "calibration"}),
    (("transition",), {"missing": True, "row_weights": True, "powers": True, "prior": "logistic"}),
    (("symmetric", "bernoulli"), {"row_weights": True, "powers": True, "prior": "calibration"}),
    (("transition",), {"missing": True, "row_weights": True, "powers": True, "prior": "scaled"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("names", "how"), COVER, ids=["+".join(names) for names, _ in COVER])
def test_every_component_agrees_with_its_program(names, how):
    both_descriptions(build(*names, n_items=N, **how))


@pytest.mark.slow
@settings(max_examples=6)
@given(recipes())
def test_many_combinations_agree_with_their_programs(recipe):
    names, how = recipe
    note(f"build(*{names}, n_items={N}, **{how})")
    both_descriptions(build(*names, n_items=N, **how))


def test_a_class_more_or_a_row_less_would_be_noticed():
    """The agreement is sharp: one missing label changes it by far more than the tolerance."""
    case = build("bernoulli", "transition", n_items=N)
    read = random_likelihood_params(case.model, jax.random.key(1))
    labels = case.data.parts["transition"].at[0].set(3)
    other = m.Data({**case.data.parts, "transition": labels}, case.data.weights)
    one, two = (total_log_likelihood(case.model, read, data) for data in (case.data, other))
    assert abs(one - two) > 1e-3
    assert jnp.isfinite(one)
