"""Component of a mixture model: the likelihood of one kind of data given the true class.

A component turns its data into an ``(N, K)`` table of log-likelihoods, and responsibilities back
into additive sufficient statistics (EM, CAVI, Gibbs). It describes the same model a second time as
NumPyro sites, which the tests compare and NUTS and SVI sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Key

from inference import Total
from inference.pytree import register_dataclass
from nbmodels.core.families import DrawKey, Rule


class LogLikelihood(NamedTuple):
    """Log-likelihood ``table + offset[:, None]``; apart, because softmax only needs the table.

    The table is centred where that is cheap, so that float32 keeps its digits.

    Attributes:
        table: ``(N, K)``, or ``(1, K)`` where it is the same for every item.
        offset: ``(N,)`` or ``(1,)``.
    """

    table: Float[Array, "n k"]
    offset: Float[Array, " n"]


def _largest(table: Array, axis: int) -> Array:
    """Largest entries, constant to gradients: they cancel in a density.

    The derivative of a maximum looks for the entry equal to it. Where a compiled program computes
    the entries twice, with other rounding, there is none, and the derivative is NaN.
    """
    return lax.stop_gradient(jnp.max(table, axis))


def centred(table: Float[Array, "n k"]) -> LogLikelihood:
    """Log-likelihood from a plain table; each row's largest entry moves into the offset."""
    top = _largest(table, -1)
    return LogLikelihood(table - top[:, None], top)


def product_log_likelihood(
    matrix: Any, table: Float[Array, "d k"], constant: Float[Array, " k"] | None = None
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


class RoundTrip(Protocol):
    """A component's M step and E step as one function of the responsibilities.

    The posterior between them is never written down. A registered pytree.
    """

    def __call__(self, resp: Float[Array, "n k"], data: Any) -> tuple[Float[Array, "n k"], Total]:
        """Log-likelihood under the posterior that responsibilities lead to.

        Args:
            resp: ``(N, K)`` responsibilities, whose rows sum to one, times the items' weights and
                the component's power.
            data: the component's packed data.

        Returns:
            ``(N, K)`` log-likelihood, up to a number in each row; and what the component adds to
            the objective beyond the items' normalisers and ``-sum(resp * table)``, in which those
            numbers cancel; less :meth:`Component.constant`.
        """


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Component:
    """Likelihood of one kind of data given the true class, with the prior of its parameters.

    A component is a frozen dataclass registered as a pytree: hyperparameters (the ``prior``, the
    ``weight``) are leaves, so a model may be mapped over them. Everything is a pure function of
    ``q`` (the conjugate posterior, an instance of a family), ``likelihood_params`` (what the
    likelihood reads of it under a rule) and ``data`` (the component's own pytree, from its
    ``pack``; arrays with one row an item).

    Subclass one of its roles: :class:`nbmodels.core.roles.Emission` (with a complete example),
    :class:`~nbmodels.core.roles.LabelChannel` or :class:`~nbmodels.core.roles.ClassPrior`.

    Attributes:
        prior: prior, in the family and the full shape of ``q``.
        weight: power of this component's likelihood; 1 where its assumptions hold.
    """

    prior: Any
    weight: Any = field(default=1.0)

    #: Whether statistics hang on the parameters, by a latent variable of each item.
    has_latent: ClassVar[bool] = False

    # The fast description -----------------------------------------------------------------------

    def read_by(self, rule: Rule) -> Rule:
        """The rule by which this component is read in a fit by ``rule``: the fit's own.

        Where it is ``"vb"`` in a fit by ``"map"``, the objective is the bound on the log-posterior
        density of all other parameters that variational EM climbs.
        """
        return rule

    def likelihood_params(self, q: Any, rule: Rule, key: DrawKey = None) -> Any:
        """What the likelihood reads of ``q``: a mode, an expectation, or a draw."""
        return q.likelihood_params(rule, key)

    def log_likelihood(self, likelihood_params: Any, data: Any) -> LogLikelihood:
        """Log-likelihood of each item under each class; zero rows where nothing is known."""
        raise NotImplementedError  # every component has its own

    def stats(
        self, likelihood_params: Any, resp: Float[Array, "n k"], data: Any, key: DrawKey = None
    ) -> Any:
        """Sufficient statistics, additive over items.

        Args:
            likelihood_params: as in :meth:`log_likelihood`; only components with a latent variable
                of their own read it.
            resp: ``(N, K)`` responsibilities times row weights.
            data: from ``pack``.
            key: where given, those latent variables are drawn instead of averaged over.
        """
        raise NotImplementedError  # every component has its own

    def update(self, stats: Any, rule: Rule) -> Any:
        """Conjugate posterior: prior plus statistics."""
        return self.prior.posterior(stats, rule)

    def penalty(self, q: Any, rule: Rule) -> Float[Array, "*shape"]:
        """Terms that the objective subtracts (KL for VB, -log prior for MAP), less ``constant``."""
        return q.penalty(self.prior, rule)

    def constant(self, rule: Rule) -> Float[Array, "*shape"]:
        """Terms of the penalty that depend on the prior alone, kept out of the iterations."""
        return self.prior.constant(rule)

    def base_measure(self, data: Any) -> Float[Array, " n"]:
        """``(N,)`` or ``(1,)`` part of the log-density that depends on the data alone."""
        return jnp.zeros((1,))

    def at_fixed_prior(self) -> Component:
        """The component that a fit is of: one whose prior is learned is, meanwhile, as any other.

        Fits with and without a learned prior then run by one compiled program.
        """
        return self

    def round_trip(self, data: Any, weights: Float[Array, " n"], rule: Rule) -> RoundTrip | None:
        """Both half-steps in one; None where the posterior is carried from step to step.

        For a posterior that is larger than the responsibilities and follows from them alone.

        Args:
            data: from ``pack``.
            weights: ``(N,)`` weights of the items times the component's power.
            rule: ``"ml"``, ``"map"`` or ``"vb"``.
        """
        return None

    # A prior that many alike parameters share ---------------------------------------------------

    @property
    def learned(self) -> Float[Array, "*shape"]:
        """Numbers above 0 of the prior that is learned; it has come to rest where they stay."""
        found: Array = self.prior.concentration
        return found

    def pooled(self, q: Any, rule: Rule) -> Component:
        """With the prior that many alike parameters share, learned from ``q`` (empirical Bayes).

        For annotators, users and full noise matrices.

        Raises:
            TypeError: the component has no parameters that are alike.
        """
        raise TypeError(f"{type(self).__name__} has no prior to learn")

    # Where to begin -----------------------------------------------------------------------------

    def start(self, resp: Float[Array, "n k"], data: Any, rule: Rule) -> Any:
        """``q`` from initial responsibilities, which a channel may smooth first."""
        # a rule of its own: expectations under the prior exist even where its mode does not
        likelihood_params = self.likelihood_params(self.prior, "vb")
        weighted = jax.tree.map(
            lambda s: s * self.weight, self.stats(likelihood_params, resp, data)
        )
        return self.update(weighted, rule)

    # Names of the classes -----------------------------------------------------------------------

    def relabel(self, q: Any, order: Int[Array, " k"]) -> Any:
        """``q`` with true class ``order[k]`` renamed ``k``."""
        raise NotImplementedError  # where the class axis stands is the component's own

    # The second description, for NumPyro ----------------------------------------------------------

    def values(self, likelihood_params: Any) -> dict[str, Array]:
        """Parameters by name, in the shapes that :meth:`sites` samples and ``likelihood`` reads."""
        raise NotImplementedError  # every component has its own

    def sites(self, name: str) -> dict[str, Any]:
        """Sample the parameters from their prior, as sites ``{name}_{parameter}``."""
        raise NotImplementedError  # every component has its own

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:
        """Observe the data given the class ``y``, inside the items' plate."""
        raise NotImplementedError  # every component has its own

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Any:
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


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Given(Component):
    """A component with nothing to learn: its ``prior`` is an array that is read as it stands."""

    def likelihood_params(self, q: Array, rule: Rule, key: DrawKey = None) -> Array:
        """Logarithms of the given probabilities."""
        return jnp.log(jnp.maximum(q, jnp.finfo(q.dtype).tiny))

    def stats(
        self, likelihood_params: Any, resp: Float[Array, "n k"], data: Any, key: DrawKey = None
    ) -> tuple[()]:
        return ()

    def update(self, stats: Any, rule: Rule) -> Array:
        return self.prior

    def penalty(self, q: Array, rule: Rule) -> Array:
        return jnp.zeros((1,), q.dtype)

    def constant(self, rule: Rule) -> Array:
        return jnp.zeros((1,), self.prior.dtype)

    def relabel(self, q: Array, order: Int[Array, " k"]) -> Array:
        return q

    def values(self, likelihood_params: Array) -> dict[str, Array]:
        return {}

    def sites(self, name: str) -> dict[str, Any]:
        return {}

    def dims(self) -> dict[str, list[str]]:
        return {}
