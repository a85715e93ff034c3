"""NUTS on sparse Dirichlet distributions, against their marginals, which are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from inference.nuts import nuts
from inference.sparse_dirichlet import coordinate, stretched

SPARSE = jnp.asarray([[0.02, 0.5, 2.0], [0.2, 0.02, 0.3]])


def program():
    import numpyro
    from numpyro import distributions as dist

    numpyro.sample("p", dist.Dirichlet(SPARSE).to_event(1))
    numpyro.sample("q", dist.Dirichlet(jnp.ones(2)))


@pytest.mark.parametrize("concentration", [0.01, 0.3, 1.0, 7.0])
def test_stretched(concentration):
    with jax.enable_x64(True):
        z = jnp.linspace(-40.0, 6.0, 47)
        logs, slopes = stretched(z, concentration)
        np.testing.assert_allclose(coordinate(logs, concentration), z, atol=1e-9)
        each = jax.vmap(jax.grad(lambda at: stretched(at, concentration)[0]))(z)
        np.testing.assert_allclose(slopes, each)
        assert np.all(np.diff(slopes) <= 0)
        assert float(stretched(-1e6, concentration)[1]) == pytest.approx(1 / min(concentration, 1))


@pytest.mark.slow
def test_marginals(key):
    """Beta distribution functions of the draws are uniform, far into the tails."""
    import arviz_base
    import arviz_stats

    with jax.enable_x64(True):
        start = {"p": jnp.full((2, 3), 1 / 3), "q": jnp.full(2, 0.5)}
        samples, statistics = nuts(program, key, draws=600, warmup=300, chains=2, start=start)
    assert not statistics["diverging"].any()
    # in NumPyro's own coordinates 77
    assert statistics["n_steps"].mean() < 25
    assert set(samples) == {"p", "q"}
    np.testing.assert_allclose(samples["p"].sum(-1), 1)
    of_p = np.asarray(SPARSE, float)
    rest = of_p.sum(1, keepdims=True) - of_p
    uniform = {"p": stats.beta.cdf(samples["p"], of_p, rest), "q": samples["q"]}
    tree = arviz_base.from_dict({"posterior": uniform})
    for name, u in uniform.items():
        assert float(arviz_stats.rhat(tree)[name].max()) < 1.05
        size = float(arviz_stats.ess(tree)[name].min())
        assert size > 150
        for level in (0.1, 0.5, 0.9):
            error = np.sqrt(level * (1 - level) / size)
            assert np.abs((u < level).mean((0, 1)) - level).max() < 4 * error, (name, level)
