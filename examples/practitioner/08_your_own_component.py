# %% [markdown]
# # 8. Your own component in one file
#
# **You will be able to** add a distribution of features that the library does not have, prove that
# it is right, and use it with everything else.
#
# **Question:** pupils try a puzzle until they succeed. What do the numbers of failed attempts say
# about a pupil's level, if the levels were noted wrongly in places?
#
# You should have met maximum likelihood and the EM algorithm. Numbers of failures before the first
# success are **geometric**: with a probability p of success, $P(x) = (1 - p)^x\, p$.

# %%
import os
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import nbmodels as nb
from inference.pytree import register_dataclass
from nbmodels.channels import Transition
from nbmodels.class_priors import Proportions
from nbmodels.core import model as models
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import Dirichlet, beta
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.numpyro_program import log_density
from nbmodels.core.roles import Emission
from nbmodels.posterior import sample

jax.config.update("jax_enable_x64", True)  # the proofs below compare to many digits

# %% [markdown]
# ## The component
#
# An emission describes P(features | true class) twice. The first half is for EM, CAVI and Gibbs:
# the log-likelihood is linear in the sufficient statistics, so both are one matrix product. The
# second half is for NumPyro, in NumPyro's own words. Neither half uses the other.
#
# `likelihood_params` are the logs of P(failure) and P(success), in the order of the prior's two
# parts: at the mode in EM, expected in CAVI, drawn in Gibbs sampling. The second value of
# `LogLikelihood` is a term per item that is the same for all classes (none here).
#
# `register_dataclass` makes the class a pytree, a nested structure of arrays that JAX's functions
# (`jit`, `grad`, `tree.map`) take and return. JAX has a function of this name, too; structures of
# two classes with the same fields are equal by it, and one may then run the other's program.


# %%
@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Geometric(Emission):
    """Failures ``x`` of each pupil at each of ``d`` puzzles; ``prior`` has shape ``(2, d, K)``."""

    prior: Dirichlet  # beta(pseudo-failures, pseudo-successes)

    @staticmethod
    def pack(x):
        return jnp.asarray(x, float)

    # for EM: log P(x | class) = x log(1 - p) + log p, and the counts that update p
    def log_likelihood(self, likelihood_params, data):
        log_failure, log_success = likelihood_params
        table = data @ log_failure + log_success.sum(0)
        return LogLikelihood(table, jnp.zeros((1,)))

    def stats(self, likelihood_params, resp, data, key=None):
        successes = jnp.ones_like(data).T @ resp  # one success for each pupil and puzzle
        return jnp.stack([data.T @ resp, successes])

    def relabel(self, q, order):
        return replace(q, concentration=q.concentration[:, :, order])

    # for NumPyro: parameters, their prior, the likelihood, and how to simulate
    def values(self, likelihood_params):
        return {"success": jnp.exp(likelihood_params[1]).T}

    def sites(self, name):
        failures, successes = jnp.swapaxes(self.prior.concentration, 1, 2)
        prior = dist.Beta(successes, failures).to_event(2)
        return {"success": numpyro.sample(f"{name}_success", prior)}

    def likelihood(self, name, values, y, data):
        site = dist.GeometricProbs(values["success"][y]).to_event(1)
        numpyro.sample(name, site, obs=data)

    def simulate(self, key, values, y):
        return jax.random.geometric(key, values["success"][y]) - 1

    def dims(self):
        return {"success": ["true_class", "feature"]}


# %% [markdown]
# ## The data
#
# Three levels, four puzzles, 300 pupils. One level in five was noted wrongly.

# %%
levels = ["beginner", "advanced", "expert"]
success = np.array([[0.20, 0.15, 0.30, 0.10], [0.45, 0.25, 0.60, 0.20], [0.80, 0.60, 0.70, 0.55]])
fast = bool(os.environ.get("NBMODELS_FAST"))  # fewer pupils and draws for a quick test
n = 150 if fast else 300
rng = np.random.default_rng(0)
true = rng.integers(3, size=n)
failures = rng.geometric(success[true]) - 1
noted = np.where(rng.random(n) < 0.2, (true + rng.integers(1, 3, n)) % 3, true)

# %% [markdown]
# ## A model is a dictionary of components
#
# `Data` holds what each component has packed, by its name, and row weights: `jnp.ones(n)`, so that
# every pupil counts once.

# %%
ones = jnp.full((4, 3), 2.0)  # a weak prior
puzzles = Geometric(prior=beta(ones, ones))
model = {
    "class_prior": Proportions.of(3),
    "labels": Transition.of(3),  # the noise matrix
    "puzzles": puzzles,
}
data = nb.Data(
    {
        "class_prior": None,
        "labels": Transition.pack(noted, 3),
        "puzzles": puzzles.pack(failures),
    },
    jnp.ones(n),
)
fit = nb.fit(model, data, rule="map", key=jax.random.key(0), tol=1e-12)
print(f"levels right as noted: {np.mean(noted == true):.1%}")
print(f"levels right after EM: {np.mean(fit.resp.argmax(1) == true):.1%}")

# %% [markdown]
# ## The proof
#
# Nothing has told us yet that the component is right: a wrong sign would have given some fit, too.
# Two checks settle it.
#
# 1. At the same parameters, the NumPyro program has the density that EM reports.
# 2. Where EM stops, that density has its top: its gradient in the probabilities of success is zero.
#
# Both halves would have to be wrong in the same way to pass.

# %%
fitted = jax.tree.map(jnp.asarray, fit.model)
values = models.values(fitted, fit.point)


@jax.jit
def at(success):
    """Density of the NumPyro program, as a function of the probabilities of success."""
    return log_density(fitted, data, {**values, "puzzles": {"success": success}})


density, gradient = jax.value_and_grad(at)(values["puzzles"]["success"])
away = jax.grad(at)(values["puzzles"]["success"] * 0.99)
print(f"objective of EM less density of the program: {abs(fit.objective - density):.0e}")
print(f"largest gradient where EM stops:             {jnp.abs(gradient).max():.3f}")
print(f"... and one per cent away from there:        {jnp.abs(away).max():.3f}")

# %% [markdown]
# ## The picture to keep
#
# Two samplers draw from the posterior: Gibbs uses the first half of the component, NUTS the second.
# If both halves say the same, their intervals agree.

# %%
# Figure: Intervals of P(success) of four puzzles at three levels: those of Gibbs sampling and
# NUTS lie on each other, with most of the planted values inside.
names = np.array(levels)
found = {}
for method, draws in [("gibbs", 20 if fast else 1500), ("nuts", 4 if fast else 200)]:
    tree = sample(
        fit,
        data,
        jax.random.key(1),
        method=method,
        draws=draws,
        warmup=4 if fast else 150,
        chains=1 if fast else 2,
        names=names,
        features={"puzzles": ["A", "B", "C", "D"]},
        progress=False,
    )
    found[method] = tree["posterior"]["puzzles_success"]

figure, panels = plt.subplots(1, 3, figsize=(8.5, 3), sharey=True, layout="constrained")
for k, axes in enumerate(panels):
    for shift, (method, line) in zip((-0.12, 0.12), [("gibbs", "-"), ("nuts", ":")], strict=True):
        low, high = found[method].isel(true_class=k).quantile([0.05, 0.95], ("chain", "draw"))
        rows = np.arange(4) + shift
        axes.hlines(rows, low, high, color="black", linestyle=line, linewidth=2, label=method)
    axes.plot(success[k], np.arange(4), "|", color="0.6", markersize=18, label="planted")
    axes.set_title(levels[k])
    axes.set_xlim(0, 1)
    axes.set_xlabel("P(success), 90 % intervals")
    axes.spines[["top", "right"]].set_visible(False)
panels[0].legend(frameon=False, loc="lower right", fontsize=9)
panels[0].set_yticks(range(4), ["puzzle A", "puzzle B", "puzzle C", "puzzle D"])
panels[0].invert_yaxis()

# %% [markdown]
# To use the component in `NoisyMixedNB` and `JointNB`, put a `FeatureColumns` beside it, which
# checks and packs columns of a table, and call `register_family`. The contract that all components
# keep is tested in `tests/core/test_contract.py`; a line in `tests/zoo.py` puts yours through it.
#
# ## Exercises
#
# **1.** Break the component: let `log_likelihood` forget the term `log_success.sum(0)`. Does EM
# still run? What do the two checks say?
#
# <details><summary>Solution</summary>
#
# ```python
# @register_dataclass
# @dataclass(frozen=True, kw_only=True)
# class Broken(Geometric):
#     def log_likelihood(self, likelihood_params, data):
#         return LogLikelihood(data @ likelihood_params[0], jnp.zeros((1,)))
#
#
# broken = nb.fit(
#     {**model, "puzzles": Broken(prior=puzzles.prior)}, data, rule="map", key=jax.random.key(0)
# )
# own = jax.tree.map(jnp.asarray, broken.model)
# density = log_density(own, data, models.values(own, broken.point))
# print(f"EM converged: {broken.status.ok}")
# print(f"objective and density agree: {np.isclose(broken.objective, density)}")
# ```
#
# ```text
# EM converged: False
# objective and density agree: False
# ```
#
# Nothing crashes. EM warns, since steps of a correct component never lower its objective; that the
# two descriptions differ only the comparison of objective and density shows.
# </details>
#
# **2.** Draw the density of one parameter: let the probability of success of experts at puzzle A
# run from 0.5 to 0.95, with all others as fitted. Where is the top?
#
# <details><summary>Solution</summary>
#
# ```python
# grid = np.linspace(0.5, 0.95, 46)
# start = values["puzzles"]["success"]
# heights = [at(start.at[2, 0].set(p)) for p in grid]
# print(f"top of the density: {grid[int(np.argmax(heights))]:.2f}")
# print(f"EM's estimate:      {start[2, 0]:.2f}")
# ```
#
# ```text
# top of the density: 0.78
# EM's estimate:      0.78
# ```
# </details>
#
# **3.** A pupil without a noted level fails 0, 1, 0 and 2 times. What is the probability of each
# level? Compute it by hand from `values`, with Bayes' rule.
#
# <details><summary>Solution</summary>
#
# ```python
# x = np.array([0, 1, 0, 2])
# p = np.asarray(values["puzzles"]["success"])
# joint = np.asarray(values["class_prior"]["probs"]) * np.prod((1 - p) ** x * p, axis=1)
# for level, probability in zip(levels, joint / joint.sum()):
#     print(f"{level}: {probability:.2f}")
# ```
#
# ```text
# beginner: 0.02
# advanced: 0.34
# expert: 0.64
# ```
# </details>
