"""No step hands LAPACK several matrices at once: see :mod:`inference.triangular`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zoo
from jax.extend.core import ClosedJaxpr, Jaxpr
from marks import slow

from nbmodels.core import model as m
from nbmodels.posterior.gibbs import follow

#: Operations whose CPU kernels share several matrices out among threads.
LAPACK = {"cholesky", "eigh", "lu", "geqrf", "qr", "householder_product", "svd", "schur"}
LAPACK |= {"triangular_solve", "tridiagonal_solve"}


def _several(jaxpr):
    """Names of LAPACK's operations on more than one matrix, in a program and those in it."""
    inner = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    for eqn in inner.eqns:
        shapes = [v.aval.shape for v in eqn.invars if hasattr(v.aval, "shape")]
        if eqn.primitive.name in LAPACK and any(np.prod(s[:-2]) > 1 for s in shapes):
            yield eqn.primitive.name
        for leaf in jax.tree.leaves(
            eqn.params, is_leaf=lambda p: isinstance(p, Jaxpr | ClosedJaxpr)
        ):
            if isinstance(leaf, Jaxpr | ClosedJaxpr):
                yield from _several(leaf)


def test_several_matrices_are_found():
    given = jnp.broadcast_to(jnp.eye(3), (2, 3, 3))
    program = jax.make_jaxpr(jax.jit(lambda a: jnp.linalg.cholesky(a)))
    assert [*_several(program(given))] == ["cholesky"]
    assert not [*_several(program(given[0]))]


RULES = ("ml", "map", "vb")
CASES = {name: (name,) for name in zoo.EMISSIONS | zoo.CHANNELS}
CASES |= {f"class prior: {name}": ("transition",) for name in zoo.PRIORS}


@pytest.mark.parametrize("missing", [slow(False), True])
@pytest.mark.parametrize("name", sorted(CASES))
def test_one_matrix_at_a_time(name, missing):
    prior = name.removeprefix("class prior: ") if name not in zoo.COMPONENTS else "proportions"
    case = zoo.build(*CASES[name], prior=prior, missing=missing)
    model, data = case.model, case.data
    q = {name: c.prior for name, c in model.items()}
    resp = jnp.full((len(data.weights), zoo.K), 1 / zoo.K)

    def sweep(key):
        return follow(model, zoo.random_likelihood_params(model, key), data, resp, key)

    def simulated(key):
        values = m.values(model, zoo.random_likelihood_params(model, key))
        y = jnp.zeros(len(data.weights), int)
        features = {n: c for n, c in model.items() if n in zoo.EMISSIONS}
        return {n: c.simulate(key, values[n], y) for n, c in features.items()}

    programs = [jax.make_jaxpr(one)(jax.random.key(0)) for one in (sweep, simulated)]
    programs += [jax.make_jaxpr(lambda q, r=r: m.step(r)(q, (model, data)))(q) for r in RULES]
    assert not [name for one in programs for name in _several(one)]
