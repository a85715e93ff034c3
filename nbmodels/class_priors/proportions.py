"""Class proportions ``pi``: a categorical class prior, learned or known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from inference.arrays import on_device
from inference.pytree import register_dataclass
from nbmodels.core.component import Given, LogLikelihood
from nbmodels.core.families import Dirichlet, DrawKey
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import ClassPrior

#: Least pseudo-items of a class.
_LEAST = 1e-9


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Proportions(ClassPrior):
    """Learned proportions, ``pi ~ Dirichlet``; its data is None.

    Attributes:
        prior: Dirichlet of shape ``(K,)``.

    Examples:
        Shares of the true classes, from 66 labels "ant" and 34 "bee" of a known noise:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import FixedTransition
        >>> from nbmodels.class_priors import Proportions
        >>> noise = np.array([[0.9, 0.1], [0.3, 0.7]])  # 3 bees in 10 are labelled "ant"
        >>> model = {"class_prior": Proportions.of(2), "labels": FixedTransition(prior=noise)}
        >>> labels = FixedTransition.pack(np.repeat([0, 1], [66, 34]), 2)
        >>> data = Data({"class_prior": None, "labels": labels}, np.ones(100))
        >>> found = fit(model, data, rule="ml", key=jax.random.key(0))
        >>> print(np.asarray(found.params["class_prior"].mode).round(2))
        [0.6 0.4]
    """

    prior: Dirichlet

    @classmethod
    def of(cls, n_classes: int, alpha: float = 1.0) -> Proportions:
        """Symmetric prior: ``alpha`` pseudo-items a class (a concentration of ``1 + alpha``)."""
        return cls(prior=Dirichlet(on_device(np.full(n_classes, 1.0 + alpha))))

    @property
    def log_sd(self) -> Any:
        """``(K,)`` standard deviation of the logarithms of the shares in fits; inf for unknown."""
        return np.inf

    def with_items(
        self, fits: Float[np.ndarray, " k"], draws: Float[np.ndarray, " k"]
    ) -> HeldProportions:
        """With more pseudo-items of each class, ``(K,)`` in fits and ``(K,)`` in draws."""
        own = np.asarray(self.prior.concentration)  # on the host, where sums are no programs
        many, few = (
            replace(self.prior, concentration=on_device(own + items.astype(own.dtype)))
            for items in (fits, draws)
        )
        return HeldProportions(prior=many, drawn=few, weight=self.weight)

    def log_likelihood(self, likelihood_params: Float[Array, " k"], data: Any) -> LogLikelihood:
        return LogLikelihood(likelihood_params[None, :], jnp.zeros((1,), likelihood_params.dtype))

    def stats(
        self, likelihood_params: Any, resp: Float[Array, "n k"], data: Any, key: DrawKey = None
    ) -> Float[Array, " k"]:
        return jnp.sum(resp, 0)

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return replace(q, concentration=q.concentration[order])

    def values(self, likelihood_params: Float[Array, " k"]) -> dict[str, Array]:
        return {"probs": jnp.exp(likelihood_params)}

    def sites(self, name: str) -> dict[str, Any]:
        return {"probs": numpyro.sample(f"{name}_probs", dist.Dirichlet(self.prior.concentration))}

    def dims(self) -> dict[str, list[str]]:
        return {"probs": ["true_class"]}


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class HeldProportions(Proportions):
    """Learned proportions whose fits have another prior than their draws; its data is None.

    Empirical Bayes: a prior of the fit that was counted from the data themselves would count them
    twice in posterior draws.

    Attributes:
        prior: Dirichlet of shape ``(K,)``, of fits.
        drawn: that of draws.

    Examples:
        Thirty and ten pseudo-items in fits, none in draws:

        >>> import numpy as np
        >>> from nbmodels.class_priors import Proportions
        >>> held = Proportions.of(2).with_items(np.array([30, 10]), np.zeros(2))
        >>> print(held.prior.concentration, held.for_draws().prior.concentration)
        [32. 12.] [2. 2.]
    """

    drawn: Dirichlet

    @property
    def log_sd(self) -> Any:
        items = np.asarray(self.prior.concentration) - 1
        return np.maximum(items, _LEAST) ** -0.5

    def for_draws(self) -> Proportions:
        return Proportions(prior=self.drawn, weight=self.weight)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class FixedProportions(Given, ClassPrior):
    """Known proportions.

    Attributes:
        prior: ``(K,)`` probabilities, positive, summing to one.

    Examples:
        Nine items in ten are ants. A fifth of the labels are wrong, so that most items labelled
        "bee" are ants all the same:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import FixedTransition
        >>> from nbmodels.class_priors import FixedProportions
        >>> shares, noise = np.array([0.9, 0.1]), np.array([[0.8, 0.2], [0.2, 0.8]])
        >>> model = {
        ...     "class_prior": FixedProportions(prior=shares),
        ...     "labels": FixedTransition(prior=noise),
        ... }
        >>> labels = FixedTransition.pack(np.array([0, 1, -1]), 2)  # ant, bee, none
        >>> data = Data({"class_prior": None, "labels": labels}, np.ones(3))
        >>> print(fit(model, data, key=jax.random.key(0)).resp.round(2))
        [[0.97 0.03]
         [0.69 0.31]
         [0.9  0.1 ]]
    """

    def log_likelihood(self, likelihood_params: Float[Array, " k"], data: Any) -> LogLikelihood:
        return LogLikelihood(likelihood_params[None, :], jnp.zeros((1,), likelihood_params.dtype))

    def probs(self, values: dict[str, Any], data: Any) -> Float[Array, "*n k"]:
        return self.prior
