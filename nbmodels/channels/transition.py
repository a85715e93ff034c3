"""Class-conditional label noise: a full noise matrix P(observed | true)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.arrays import on_device, one_hot
from inference.blocks import MANY_CLASSES
from inference.pytree import register_dataclass
from nbmodels.core.codes import checked_codes
from nbmodels.core.component import LogLikelihood
from nbmodels.core.families import Dirichlet, Rule
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import LabelChannel
from nbmodels.errors import DataError

#: Weight of a given label in the start; the rest goes evenly to all classes.
START_TRUST = 0.8


def pack_labels(labels: Any, n_observed: int) -> Int[Array, " n"]:
    """Data of every label channel: ``(N,)`` int32 codes, ``n_observed`` where a label is missing.

    Runs on the host; under ``jit`` give such codes to the model as they are.

    Args:
        labels: ``(N,)`` integers in ``0..n_observed-1``, negative where the label is missing.
        n_observed: number of classes that labels may name.

    Raises:
        DataError: not one label an item, NaN, not whole, or a code of ``n_observed`` or more.
    """
    codes = checked_codes("labels", labels, n_observed)
    if codes.ndim != 1:
        raise DataError(f"labels: expected one code an item, (N,); got shape {codes.shape}")
    return on_device(np.where(codes < 0, n_observed, codes), jnp.int32)


def read_labels(transition: Array, labels: Array) -> LogLikelihood:
    """Column ``labels`` of a ``(K, observed)`` log-transition, rows of zeros for missing labels."""
    padded = jnp.concatenate([transition.T, jnp.zeros((1, transition.shape[0]), transition.dtype)])
    return LogLikelihood(padded[labels], jnp.zeros((1,), transition.dtype))


def count_labels(resp: Float[Array, "n k"], labels: Array, n_observed: int) -> Array:
    """Expected ``(K, observed)`` counts of (true, observed) pairs."""
    if n_observed >= MANY_CLASSES:  # a product with indicators would be of zeros for the most part
        return jax.ops.segment_sum(resp, labels, n_observed + 1)[:n_observed].T
    return resp.T @ jax.nn.one_hot(labels, n_observed, dtype=resp.dtype)


def discount(resp: Float[Array, "n k"]) -> Array:
    """Label smoothing of the start: EM could never leave a probability of exactly one."""
    share = jnp.sum(resp, 1, keepdims=True) / resp.shape[1]
    return START_TRUST * resp + (1 - START_TRUST) * share


def observe(name: str, transition: Any, y: Any, labels: Any) -> None:
    """NumPyro site of a noisy label: ``label ~ Categorical(transition[y])``."""

    seen = labels < transition.shape[-1]
    site = dist.Categorical(probs=transition[y]).mask(seen)
    numpyro.sample(name, site, obs=jnp.where(seen, labels, 0))


def draw_labels(key: Key[Array, ""], transition: Array, y: Int[Array, " n"]) -> Array:
    """``(N,)`` observed labels of items of classes ``y``."""
    return jax.random.categorical(key, jnp.log(transition)[y])


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Transition(LabelChannel):
    """``P(observed | true)`` with a Dirichlet prior on each true class's row (Zeng 2022, eq. (1)).

    Stored ``[true, observed]``, rows summing to one; the transposed of the papers' ``rho``.

    Attributes:
        prior: Dirichlet of shape ``(K, observed)``.

    Examples:
        Labels of 20 verified ants and 20 verified bees, and what labels of other items say by that:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels.channels import Transition
        >>> channel = Transition.of(2)
        >>> verified = jax.nn.one_hot(np.repeat([0, 1], 20), 2)
        >>> labels = Transition.pack(np.repeat([0, 1, 0, 1], [18, 2, 8, 12]), 2)
        >>> found = channel.update(channel.stats(None, verified, labels), "map")
        >>> print(np.asarray(found.mode).round(1))  # [true, observed]
        [[0.9 0.1]
         [0.4 0.6]]
        >>> new = Transition.pack([0, 1, -1], 2)  # ant, bee, no label
        >>> read = channel.likelihood_params(found, "map")
        >>> print(np.exp(channel.log_likelihood(read, new).table).round(1))
        [[0.9 0.4]
         [0.1 0.6]
         [1.  1. ]]
    """

    prior: Dirichlet

    @classmethod
    def of(
        cls,
        n_classes: int,
        n_observed: int | None = None,
        alpha: float = 1.0,
        diagonal: float = 2.0,
    ) -> Transition:
        """Prior by pseudo-labels of each class: ``alpha`` wrong, shared out, ``diagonal`` right."""
        n_observed = n_classes if n_observed is None else n_observed
        concentration = np.full((n_classes, n_observed), 1.0 + alpha / max(n_observed - 1, 1))
        np.fill_diagonal(concentration, 1.0 + diagonal)
        return cls(prior=Dirichlet(on_device(concentration)))

    pack = staticmethod(pack_labels)

    def log_likelihood(self, likelihood_params: Array, data: Array) -> LogLikelihood:
        return read_labels(likelihood_params, data)

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Array,
        key: Key[Array, ""] | None = None,
    ) -> Array:
        return count_labels(resp, data, self.prior.concentration.shape[1])

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"] | None:
        return values["transition"]

    def initial_responsibilities(self, data: Array) -> Float[Array, "n k"]:
        n_classes, n_observed = self.prior.concentration.shape
        return one_hot(data, n_observed)[:, :n_classes]

    def start(self, resp: Float[Array, "n k"], data: Array, rule: Rule) -> Dirichlet:
        return super().start(discount(resp), data, rule)

    def without_errors(self, pseudo: float) -> Transition:
        before = np.asarray(self.prior.concentration)
        sure = before + (pseudo * np.eye(*before.shape)).astype(before.dtype)
        return replace(self, prior=replace(self.prior, concentration=on_device(sure)))

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        return replace(self, prior=self.prior.centred), q

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return replace(q, concentration=q.concentration[order])

    def values(self, likelihood_params: Array) -> dict[str, Array]:
        return {"transition": jnp.exp(likelihood_params)}

    def sites(self, name: str) -> dict[str, Any]:

        rows = dist.Dirichlet(self.prior.concentration).to_event(1)
        return {"transition": numpyro.sample(f"{name}_transition", rows)}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:
        observe(name, values["transition"], y, data)

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        return draw_labels(key, values["transition"], y)

    def dims(self) -> dict[str, list[str]]:
        return {"transition": ["true_class", "observed_class"]}
