"""The protocol: whatever is known about an item given its true class is a component.

A component turns its data into an ``(N, K)`` table of log-evidence, and responsibilities back into
additive statistics. It also says the same thing a second time, in NumPyro's words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nbmodels.core.families import Rule
from nbmodels.core.residuals import Residuals


class LogLikelihood(NamedTuple):
    """Log-evidence ``table + offset[:, None]``, kept apart because softmax only needs the table.

    The table is centred where that is cheap, so that float32 keeps its digits.

    Attributes:
        table: ``(N, K)``, or ``(1, K)`` where it is the same for every item.
        offset: ``(N,)`` or ``(1,)``.
    """

    table: Array
    offset: Array


def _largest(table: Array, axis: int) -> Array:
    """Largest entries, constant to gradients: they cancel in a density.

    The derivative of a maximum looks for the entry equal to it. Where a compiled program computes
    the entries twice, with other rounding, there is none, and the derivative is NaN.
    """
    return lax.stop_gradient(jnp.max(table, axis))


def centred(table: Array) -> LogLikelihood:
    """Evidence from a plain table, with each row's largest entry moved into the offset."""
    top = _largest(table, -1)
    return LogLikelihood(table - top[:, None], top)


def product_log_likelihood(
    matrix: Any, table: Array, constant: Array | None = None
) -> LogLikelihood:
    """``matrix @ table + constant``, centred inside the one product by an appended column.

    The largest entry of each row of ``table`` goes to the offset: differences between classes are
    summed, and what all classes share does not cost them digits.

    Args:
        matrix: one of the products' matrices, ``(N, d)``, entries not negative.
        table: ``(d, K)`` log-probabilities.
        constant: ``(K,)`` added to every row.
    """
    top = _largest(table, 1)[:, None]
    both = matrix.times(jnp.concatenate([table - top, top], 1))
    if constant is None:
        return LogLikelihood(both[:, :-1], both[:, -1])
    shift = _largest(constant, 0)
    return LogLikelihood(both[:, :-1] + (constant - shift), both[:, -1] + shift)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Component:
    """One kind of evidence about the true class; subclass it, and the whole library works with it.

    A component is a frozen dataclass registered as a pytree: hyperparameters (the ``prior``, the
    ``weight``) are leaves, so a model may be mapped over them. Everything is a pure function of
    ``q`` (the conjugate posterior, an instance of a family), ``likelihood_params`` (what the likelihood reads
    of it under a rule) and ``data`` (the component's own pytree, from its ``pack``).

    A complete emission, ``Coin``: items toss a coin ``n`` times, the class sets its bias::

        @jax.tree_util.register_dataclass
        @dataclass(frozen=True, kw_only=True)
        class Coin(Component):
            prior: Dirichlet                       # beta(ones, zeros), shape (2, K)

            @staticmethod
            def pack(heads, tosses):
                return jnp.stack([tosses - heads, heads], 1)

            def log_likelihood(self, likelihood_params, data):
                return centred(data @ likelihood_params)

            def stats(self, likelihood_params, resp, data, key=None):
                return data.T @ resp

            def relabel(self, q, order):
                return replace(q, concentration=q.concentration[:, order])

            def values(self, likelihood_params):
                return {"bias": jnp.exp(likelihood_params[1])}

            def sites(self, name):
                import numpyro
                from numpyro import distributions as dist
                zeros, ones = self.prior.concentration
                return {"bias": numpyro.sample(f"{name}_bias", dist.Beta(ones, zeros).to_event(1))}

            def likelihood(self, name, values, y, data):
                import numpyro
                from numpyro import distributions as dist
                coin = dist.Binomial(data.sum(1).astype(int), values["bias"][y])
                numpyro.sample(name, coin, obs=data[:, 1])

            def base_measure(self, data):          # log of the binomial coefficient
                return gammaln(data.sum(1) + 1) - gammaln(data + 1).sum(1)

    Attributes:
        prior: prior, in the family and the full shape of ``q``.
        weight: power of this component's likelihood; 1 where the model is believed.
    """

    prior: Any
    weight: Any = field(default=1.0)

    #: Quantities that this component conditions on; posterior draws do not vary them.
    conditioned_on: ClassVar[str] = ""

    # The fast description -----------------------------------------------------------------------

    def likelihood_params(self, q: Any, rule: Rule, key: Array | None = None) -> Any:
        """What the likelihood reads of ``q``: a mode, an expectation, or a draw."""
        return q.likelihood_params(rule, key)

    def log_likelihood(self, likelihood_params: Any, data: Any) -> LogLikelihood:
        """Log-evidence of each item under each class; zero rows where nothing is known."""
        raise NotImplementedError  # every component has its own

    def stats(
        self, likelihood_params: Any, resp: Array, data: Any, key: Array | None = None
    ) -> Any:
        """Sufficient statistics, additive over items.

        Args:
            likelihood_params: as in :meth:`log_likelihood`; only components with a private latent look at it.
            resp: ``(N, K)`` responsibilities times row weights.
            data: from ``pack``.
            key: where given, private latents are drawn instead of averaged over.
        """
        raise NotImplementedError  # every component has its own

    def update(self, stats: Any, rule: Rule) -> Any:
        """Conjugate posterior: prior plus statistics."""
        return self.prior.posterior(stats, rule)

    def penalty(self, q: Any, rule: Rule) -> Array:
        """Terms that the objective subtracts (KL for VB, -log prior for MAP), less ``constant``."""
        return q.penalty(self.prior, rule)

    def constant(self, rule: Rule) -> Array:
        """Terms of the penalty that depend on the prior alone, kept out of the iterations."""
        return self.prior.constant(rule)

    def base_measure(self, data: Any) -> Array:
        """``(N,)`` or ``(1,)`` part of the log-density that depends on the data alone."""
        return jnp.zeros((1,))

    def size(self, data: Any) -> Array | None:
        """``(N,)`` how much each item's evidence sums, such as the words of a document.

        None where that is the same for all items.
        """
        return None

    def residuals(
        self, likelihood_params: Any, data: Any, rows: np.ndarray, most: int
    ) -> Residuals | None:
        """What an emission leaves over of some items, by which its assumptions are looked at.

        On the host, with arrays of NumPy. None where there is nothing to look at.

        Args:
            likelihood_params: as in :meth:`log_likelihood`.
            data: as in :meth:`log_likelihood`.
            rows: items to look at.
            most: largest number of columns to look at.
        """
        return None

    def accept(self, old: Any, new: Any, resp: Array, data: Any, key: Array) -> Any:
        """The next state of a Gibbs sweep: ``new``, where it is a draw of the exact conditional.

        A component without a conjugate family decides by Metropolis and Hastings.

        Args:
            old: what the likelihood reads, before the sweep.
            new: the same, proposed: drawn from ``update`` of ``stats`` at ``old``.
            resp: ``(N, K)`` drawn classes times row weights.
            data: from ``pack``.
            key: JAX random key.
        """
        return new

    # Where to begin -----------------------------------------------------------------------------

    def initial_responsibilities(self, data: Any) -> Array | None:
        """``(N, K)`` guess of the true class from labels, rows of zeros where there is none."""
        return None

    def transition(self, values: dict[str, Any]) -> Array | None:
        """``(K, observed)`` P(observed | true) of a channel of noisy labels, None for others."""
        return None

    def start(self, resp: Array, data: Any, rule: Rule) -> Any:
        """``q`` from a first guess of the responsibilities; discounts the guess where needed."""
        # a rule of its own: expectations under the prior exist even where its mode does not
        likelihood_params = self.likelihood_params(self.prior, "vb")
        weighted = jax.tree.map(
            lambda s: s * self.weight, self.stats(likelihood_params, resp, data)
        )
        return self.update(weighted, rule)

    def pooled(self, q: Any, rule: Rule) -> Component:
        """With the prior that the many alike in ``q`` (annotators, users) share, learned."""
        raise NotImplementedError  # only for components of many alike

    def for_draws(self) -> Component:
        """With the prior that draws about a fitted mode are of.

        A channel's mode reads pseudo-labels as they are, for which its Dirichlet has one more in
        every cell. For a mean that would be one more pseudo-label of every class, a tenth of all
        labels where 10 classes have 100 each. Less one, draws are centred where the mode is (the
        choice of basis, MacKay 1998, Machine Learning 33).
        """
        return self

    # Class priors only ----------------------------------------------------------------------------

    def probs(self, values: dict[str, Any], data: Any) -> Array:
        """``(K,)`` or ``(N, K)`` shares of the true classes, for NumPyro."""
        return values["probs"]

    def log_class_probs(self, values: dict[str, Any], data: Any) -> Array:
        """Logarithm of :meth:`probs`; override it where a probability may underflow to zero."""
        return jnp.log(self.probs(values, data))

    def covariates(self, key: Array, n_items: int) -> Any:
        """What the shares depend on, as ``pack`` takes it, to simulate from; None where nothing."""
        return None

    # Classes and coordinates --------------------------------------------------------------------

    def relabel(self, q: Any, order: Array) -> Any:
        """``q`` with true class ``order[k]`` renamed ``k``."""
        raise NotImplementedError  # where the class axis stands is the component's own

    def free(self, q: Any, rule: Rule) -> Any:
        """Unconstrained coordinates in which the driver may extrapolate."""
        return q.free(rule)

    def constrain(self, free: Any, q: Any, rule: Rule) -> Any:
        """Back from :meth:`free`; ``q`` is any point, for its structure."""
        return q.constrain(free, rule)

    # The second description, for NumPyro ----------------------------------------------------------

    def values(self, likelihood_params: Any) -> dict[str, Array]:
        """Parameters by name, in the shapes that :meth:`sites` samples and ``likelihood`` reads."""
        raise NotImplementedError  # every component has its own

    def sites(self, name: str) -> dict[str, Any]:
        """Sample the parameters from their prior, as sites ``{name}_{parameter}``."""
        raise NotImplementedError  # every component has its own

    def log_density(self, values: dict[str, Array]) -> Array:
        """Log-density of the prior at parameters, as :meth:`sites` writes it.

        With ``q`` in the place of the prior (``replace(component, prior=q)``) it is that of ``q``.
        """
        from numpyro import handlers

        held = {f"_{part}": value for part, value in values.items()}
        with handlers.block(), handlers.substitute(data=held), handlers.trace() as trace:
            self.sites("")
        sampled = [site for site in trace.values() if site["type"] == "sample"]
        return sum((jnp.sum(s["fn"].log_prob(s["value"])) for s in sampled), jnp.zeros(()))

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:
        """Observe the data given the class ``y``, inside the items' plate."""
        raise NotImplementedError  # every component has its own

    def simulate(self, key: Array, values: dict[str, Array], y: Array) -> Any:
        """Draw data for items of classes ``y``, as ``pack`` takes it."""
        raise NotImplementedError  # every component has its own

    def observed(self, data: Any) -> Array | None:
        """``(N, ...)`` data in the form that :meth:`simulate` returns, for predictive checks.

        None where simulated data are not comparable: the model does not describe how long a
        document is, or how many users an item has.
        """
        return jnp.asarray(data) if isinstance(data, jax.Array | np.ndarray) else None

    def dims(self) -> dict[str, list[str]]:
        """Names of the axes of each parameter in :meth:`values`."""
        raise NotImplementedError  # every component has its own


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Given(Component):
    """A component with nothing to learn: its ``prior`` is an array that is read as it stands."""

    def likelihood_params(self, q: Array, rule: Rule, key: Array | None = None) -> Array:
        """Logarithms of the given probabilities."""
        return jnp.log(jnp.maximum(q, jnp.finfo(q.dtype).tiny))

    def stats(
        self, likelihood_params: Any, resp: Array, data: Any, key: Array | None = None
    ) -> tuple[()]:
        return ()

    def update(self, stats: Any, rule: Rule) -> Array:
        return self.prior

    def penalty(self, q: Array, rule: Rule) -> Array:
        return jnp.zeros((1,), q.dtype)

    def constant(self, rule: Rule) -> Array:
        return jnp.zeros((1,), self.prior.dtype)

    def relabel(self, q: Array, order: Array) -> Array:
        return q

    def free(self, q: Array, rule: Rule) -> tuple[()]:
        return ()

    def constrain(self, free: Any, q: Array, rule: Rule) -> Array:
        return q

    def values(self, likelihood_params: Array) -> dict[str, Array]:
        return {}

    def sites(self, name: str) -> dict[str, Any]:
        return {}

    def dims(self) -> dict[str, list[str]]:
        return {}
