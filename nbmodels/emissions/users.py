"""User-item graph emission: edges from users to items of each class (Maystre 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key
from scipy import sparse

from inference import Total, add, negate, total
from inference.arrays import on_device
from inference.products import Matrix, matrix, whole_lines
from inference.pytree import register_dataclass
from inference.special import digamma, gammaln
from nbmodels.core.codes import checked_table
from nbmodels.core.component import LogLikelihood
from nbmodels.core.dirichlet_multinomial import learned
from nbmodels.core.families import Dirichlet, DrawKey, Rule, static
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import Emission


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Users(Emission):
    """Each edge has a factor ``u[user, y_item]``, ``u[user] ~ Dirichlet`` (Maystre 2021, eq. (1)).

    A user's proportions are the shares of the classes among their interactions. The model is one of
    factors, not of how edges come about: an item without users has a row of zeros, a user
    without items keeps the prior.

    Attributes:
        prior: Dirichlet of shape ``(users, K)``, normalised along axis 1; ``(1, K)`` for the prior
            of all users where ``multiplicity`` says how many there are.
        multiplicity: ``(users,)`` how many exchangeable users each stands for, in EM and CAVI; see
            :mod:`nbmodels.fitting.duplicate_users`.
        integrated: whether a fit by ``"map"`` integrates over the proportions of the users, as one
            by ``"vb"`` does, and takes the modes of all other components (variational EM). Users
            have few interactions each, and their modes lie at the ends: at a concentration below 1
            a user of one interaction is sure of its class.

    Examples:
        Pages and their users. The first page is about ants and the second about bees; the classes
        of the other two are inferred from their users:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import TrustedLabels
        >>> from nbmodels.class_priors import Proportions
        >>> from nbmodels.emissions import Users
        >>> visits = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [2, 1, 0, 0], [0, 0, 1, 2]])  # of users
        >>> model = {"class_prior": Proportions.of(2), "labels": TrustedLabels.of(2)}
        >>> model["users"] = Users.of(4, 2, alpha=1.5)
        >>> labels = TrustedLabels.pack(np.array([0, 1, -1, -1]), 2)
        >>> parts = {"class_prior": None, "labels": labels, "users": Users.pack(visits)}
        >>> found = fit(model, Data(parts, np.ones(4)), key=jax.random.key(0))
        >>> print(np.array(["ant", "bee"])[found.resp.argmax(1)])
        ['ant' 'bee' 'ant' 'bee']
    """

    prior: Dirichlet
    multiplicity: Any = 1.0
    integrated: bool = static(default=False)

    def read_by(self, rule: Rule) -> Rule:
        return "vb" if self.integrated and rule == "map" else rule

    @classmethod
    def of(cls, n_users: int, n_classes: int, alpha: Any = 1.0) -> Users:
        """Prior by its concentration, as in the paper.

        Args:
            alpha: one number, or an array that broadcasts to ``(users, K)``.
        """
        shape = (n_users, n_classes)
        concentration = on_device(np.broadcast_to(alpha, shape), float)
        return cls(prior=Dirichlet(concentration, axis=1))

    @staticmethod
    def pack(edges: Any) -> Matrix:
        """Numbers of edges as a sparse matrix.

        Args:
            edges: ``(N, users)`` numbers of edges, dense or sparse.

        Raises:
            DataError: a number that is negative or not finite.
        """
        checked_table("edges", edges, lambda x: ~(np.isfinite(x) & (x >= 0)), "a number, 0 or more")
        return matrix(sparse.csr_array(edges))

    def log_likelihood(
        self, likelihood_params: Float[Array, "users k"], data: Matrix
    ) -> LogLikelihood:
        # centred by an even share
        centre = -math.log(likelihood_params.shape[1])
        many = jnp.broadcast_to(
            jnp.atleast_1d(self.multiplicity)[:, None], (likelihood_params.shape[0], 1)
        )
        table = many * (likelihood_params - centre)
        return LogLikelihood(data.times(table), centre * data.times(many)[:, 0])

    def round_trip(
        self, data: Matrix, weights: Float[Array, " n"], rule: Rule
    ) -> _UserSteps | None:
        """For CAVI, whose table of users is many times as large as that of items."""
        if rule != "vb":
            return None
        prior = self.prior.concentration
        many = jnp.broadcast_to(jnp.atleast_1d(self.multiplicity)[:, None], (data.shape[1], 1))
        whole = jnp.sum(prior, 1, keepdims=True) + data.transpose_times(weights[:, None])
        centre = digamma(whole / prior.shape[1])
        return _UserSteps(prior, many, centre, total(many * gammaln(whole)))

    def penalty(self, q: Dirichlet, rule: Rule) -> Float[Array, "users 1"]:
        return jnp.atleast_1d(self.multiplicity)[:, None] * super().penalty(q, rule)

    def constant(self, rule: Rule) -> Float[Array, "users 1"]:
        return jnp.atleast_1d(self.multiplicity)[:, None] * super().constant(rule)

    def stats(
        self, likelihood_params: Any, resp: Float[Array, "n k"], data: Matrix, key: DrawKey = None
    ) -> Float[Array, "users k"]:
        return data.transpose_times(resp)

    def pooled(self, q: Dirichlet, rule: Rule) -> Users:
        """With one number as the prior of all users and classes, learned from ``q``."""
        return replace(self, prior=learned(self.prior, q, rule, axis=0, tied=True))

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return replace(q, concentration=q.concentration[:, order])

    def values(self, likelihood_params: Float[Array, "users k"]) -> dict[str, Array]:
        return {"u": jnp.exp(likelihood_params)}

    def sites(self, name: str) -> dict[str, Any]:
        users = dist.Dirichlet(self.prior.concentration).to_event(1)
        return {"u": numpyro.sample(f"{name}_u", users)}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Matrix) -> None:
        edges = data.to_dense()
        of_class = values["u"].T[y]
        logs = jnp.where(edges > 0, jnp.log(jnp.where(edges > 0, of_class, 1)), 0)
        numpyro.factor(name, (edges * logs).sum(-1))

    def simulate(
        self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"], degree: int = 3
    ) -> Int[Array, "n users"]:
        """``degree`` users for each item, drawn by how much of them is of its class."""
        logs = jnp.log(values["u"]).T[y]
        users = jax.random.categorical(key, logs[None], shape=(degree, len(y)))
        return jax.vmap(lambda u: jnp.bincount(u, length=logs.shape[1]), 1)(users)

    def dims(self) -> dict[str, list[str]]:
        return {"u": ["user", "true_class"]}


@register_dataclass
@dataclass(frozen=True)
class _UserSteps:
    """M step and E step of CAVI on a graph, one kernel for a user's sums and their digammas.

    With ``a`` the posterior concentrations, ``a0`` the prior ones and ``t`` the table, in which a
    number of each user's own stands in the place of ``psi(sum_k a)``, the bound's terms
    ``-sum_k (a - a0) psi(a)`` are ``-sum(resp * t)``: what is left of the divergence are logarithms
    of gamma functions. The users' totals do not change while rows of ``resp`` sum to one.

    Attributes:
        prior: ``(users, K)`` or ``(1, K)`` concentrations.
        many: ``(users, 1)`` multiplicity.
        centre: ``(users, 1)`` digamma of a user's mean concentration, for single precision.
        totals: sum over users of the log-gamma function of their total concentration.
    """

    prior: Array
    many: Array
    centre: Array
    totals: Total

    def __call__(self, resp: Float[Array, "n k"], data: Matrix) -> tuple[Array, Total]:
        # classes that nobody is of, for rows of whole cache lines
        k = resp.shape[1]
        more = whole_lines(k, resp.dtype) - k
        rows, prior = (
            jnp.pad(x, ((0, 0), (0, more)), constant_values=fill)
            for x, fill in ((resp, 0), (self.prior, 1))
        )
        # a product, because a sum along a short axis is computed number by number
        real = jnp.pad(jnp.ones(k, resp.dtype), (0, more))

        def users(sums: Array, prior: Array, many: Array, centre: Array) -> tuple[Array, Array]:
            q = prior + sums
            logs = jnp.matmul(gammaln(q), real, precision=jax.lax.Precision.HIGHEST)
            return many * (digamma(q) - centre), many[:, 0] * logs

        table, found = data.round_trip(rows, users, (prior, self.many, self.centre))
        return table[:, :k], add(*map(total, found), negate(self.totals))
