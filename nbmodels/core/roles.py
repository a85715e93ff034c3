"""Roles of components: emissions, label channels and class priors; and how columns become data.

A model has one class prior, named ``"class_prior"``, and any number of emissions and label
channels. What every component owes is in :class:`nbmodels.core.component.Component`; a role adds
what only its users need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Key

from inference.pytree import register_dataclass
from nbmodels.core.component import Component
from nbmodels.core.families import Dirichlet
from nbmodels.core.residuals import Residuals


class MomentView(NamedTuple):
    """Linear view of discrete features: ``E[scale * matrix | class]`` is linear in the parameters.

    For starts from third-order moments (:mod:`nbmodels.fitting.init_spectral`).

    Attributes:
        matrix: ``(N, d)``, one of the products' matrices.
        scale: ``(N,)`` factors of its rows.
        unit: ``(d,)`` number of the unit, such as an attribute, that each column belongs to.
        sums_to_one: whether the columns of a unit sum to one, so that the last follows from the
            others.
        likelihood_params: from ``(d, K)`` means given the class, which sampling may have made
            inadmissible, ``(d, 1)`` means of all items, and ``(N,)`` row weights, to what the
            emission's likelihood reads.
    """

    matrix: Any
    scale: Float[Array, " n"]
    unit: np.ndarray
    sums_to_one: bool
    likelihood_params: Callable[[Array, Array, Array], Any]


#: No class has less than this share of a value's pooled probability: estimates may be negative.
LEAST_SHARE = 0.02


def admissible_log_probs(
    prior: Dirichlet, means: Float[Array, "d k"], pooled: Float[Array, "d 1"]
) -> Float[Array, "d k"]:
    """Log-probabilities from estimated means, moved to where all are positive and sum to one.

    Args:
        prior: for its simplices, along axis 0.
        means: given the class.
        pooled: of all items.
    """
    clipped = jnp.maximum(means, LEAST_SHARE * pooled) + jnp.finfo(means.dtype).tiny
    return jnp.log(Dirichlet(clipped, axis=0, sizes=prior.sizes).mean)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Emission(Component):
    """Likelihood of features given the true class, ``p(x | y)``.

    A complete emission, ``Coin``: binomial counts whose probability depends on the class::

        @register_dataclass
        @dataclass(frozen=True, kw_only=True)
        class Coin(Emission):
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
                zeros, ones = self.prior.concentration
                return {"bias": numpyro.sample(f"{name}_bias", dist.Beta(ones, zeros).to_event(1))}

            def likelihood(self, name, values, y, data):
                coin = dist.Binomial(data.sum(1).astype(int), values["bias"][y])
                numpyro.sample(name, coin, obs=data[:, 1])

            def simulate(self, key, values, y):    # number of heads in ten tosses
                return jax.random.binomial(key, 10, values["bias"][y])

            def dims(self):
                return {"bias": ["true_class"]}

            def base_measure(self, data):          # log of the binomial coefficient
                return gammaln(data.sum(1) + 1) - gammaln(data + 1).sum(1)

    For the estimators, such as ``NoisyMixedNB(families={"coin": columns})``, an emission has a
    :class:`FeatureColumns` beside it, registered with
    :func:`nbmodels.core.registry.register_family`.

    Attributes:
        prior: prior, in the family and the full shape of ``q``.
        weight: power of the likelihood, below 1 where features depend on each other.
    """

    def size(self, data: Any) -> Float[Array, " n"] | None:
        """``(N,)`` how many observations each item's likelihood sums, such as words of a document.

        None where that is the same for all items.
        """
        return None

    def residuals(
        self, likelihood_params: Any, data: Any, rows: np.ndarray, most: int
    ) -> Residuals | None:
        """Standardised residuals of some items given each class, for model checks.

        On the host, with arrays of NumPy. None where the emission has none.

        Args:
            likelihood_params: as in :meth:`log_likelihood`.
            data: as in :meth:`log_likelihood`.
            rows: indices of the items.
            most: largest number of columns.
        """
        return None

    def moment_view(self, data: Any) -> MomentView | None:
        """Discrete features as moments see them; None where the features are not discrete."""
        return None


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class LabelChannel(Component):
    """Likelihood of observed labels given the true class (noise model, annotators, candidates).

    Attributes:
        prior: prior, in the family and the full shape of ``q``.
        weight: power of the likelihood.
        overlap_is_noise: whether labels of classes that overlap count as wrong ones.
        learns_prior: whether the prior is learned, see
            :meth:`~nbmodels.core.component.Component.pooled`.
    """

    overlap_is_noise: ClassVar[bool] = False
    learns_prior: ClassVar[bool] = False

    def initial_responsibilities(self, data: Any) -> Float[Array, "n k"] | None:
        """``(N, K)`` responsibilities from these labels alone, rows of zeros without one."""
        return None

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"] | None:
        """``(K, observed)`` noise matrix P(observed | true); None where the channel has none."""
        return None

    def without_errors(self, pseudo: float) -> LabelChannel:
        """The channel with a prior that takes labels for right.

        Args:
            pseudo: right pseudo-labels of each class, on top of those of the prior.

        Raises:
            TypeError: the channel has no noise matrix that is learned.
        """
        raise TypeError(f"{type(self).__name__} has no noise matrix that is learned")

    def for_draws(self, q: Any) -> tuple[LabelChannel, Any]:
        """The channel that draws about a fitted mode are of, and where they begin.

        A mode under a Dirichlet prior reads concentrations less one: pseudo-labels as they are
        take one more in every cell. For a mean that would be one more pseudo-label of every class,
        a tenth of all labels where 10 classes have 100 each. Less one, draws are centred where the
        mode is (the choice of basis, MacKay 1998, Machine Learning 33). A prior that was learned
        is a parameter of its own in draws.

        Args:
            q: the fitted mode.
        """
        return self, q


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class ClassPrior(Component):
    """Distribution of the true class, ``P(y)`` or ``P(y | covariates)``.

    Attributes:
        prior: prior, in the family and the full shape of ``q``.
        weight: power of the class prior in each item's likelihood.
    """

    #: Quantities that the class prior conditions on; posterior draws do not vary them.
    conditioned_on: ClassVar[str] = ""

    def probs(self, values: dict[str, Any], data: Any) -> Float[Array, "*n k"]:
        """``(K,)`` or ``(N, K)`` probabilities of the true classes, for NumPyro."""
        return values["probs"]

    def log_class_probs(self, values: dict[str, Any], data: Any) -> Float[Array, "*n k"]:
        """Logarithm of :meth:`probs`; override it where a probability may underflow to zero."""
        return jnp.log(self.probs(values, data))

    def slope_terms(self, likelihood_params: Any, data: Any) -> Any:
        """``(N, K)`` what an estimated slope adds to the logits, on the host; None without one."""
        return None

    def for_draws(self) -> ClassPrior:
        """The class prior that posterior draws are of, where fits have another one."""
        return self

    def covariates(self, key: Key[Array, ""], n_items: int) -> Any:
        """Covariates to simulate classes from, as ``pack`` takes them; None where none."""
        return None

    def accept(
        self,
        old: Any,
        new: Any,
        proposal: Any,
        resp: Float[Array, "n k"],
        data: Any,
        key: Key[Array, ""],
    ) -> Any:
        """The next state of a Gibbs sweep: ``new``, where it is a draw of the exact conditional.

        A class prior without a conjugate family takes a Metropolis-Hastings step.

        Args:
            old: what the likelihood reads, before the sweep.
            new: the same, proposed: drawn from ``proposal``.
            proposal: ``update`` of ``stats`` at ``old``.
            resp: ``(N, K)`` drawn classes times row weights.
            data: from ``pack``.
            key: JAX random key.
        """
        return new

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Any) -> None:
        """No site: the class itself is this component's, sampled by the program from ``probs``."""

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Any:
        """Not defined: classes are simulated from :meth:`probs`, covariates by themselves."""
        raise TypeError("a class prior has no data to simulate given the class")


class FeatureColumns(Protocol):
    """Coding of a block of columns for an emission: check, learn, pack, and back to units.

    A frozen dataclass of what was learned from training data. Subclass it for the defaults.
    ``block`` is a :class:`nbmodels.data.features.Block`.
    """

    #: Names of the keyword settings that ``fit`` takes.
    settings: ClassVar[tuple[str, ...]] = ()
    #: Whether columns are read as a matrix of numbers, or as a table of symbols.
    numeric: ClassVar[bool] = True
    #: Whether the emission is a probability model of these cells: weights of words are none of
    #: counts, so that the spread of a likelihood's evidence is not theirs.
    proper: ClassVar[bool] = True
    #: Whether sparse input is accepted.
    sparse: ClassVar[bool] = False
    #: Whether columns have a scale that is learned, which a single cell may set.
    scaled: ClassVar[bool] = False

    @classmethod
    def modelled(cls, block: Any, weights: np.ndarray) -> np.ndarray:
        """``(d,)`` booleans of the columns that say something, all by default; others are left out.

        Args:
            block: training columns.
            weights: ``(N,)`` row weights.
        """
        return np.ones(block.x.shape[1], bool)

    @classmethod
    def fit(cls, block: Any, weights: np.ndarray, *args: Any, **settings: Any) -> Self:
        """Check training data and learn their coding.

        Args:
            block: training columns.
            weights: ``(N,)`` row weights.
            args: none.
            settings: those named in ``settings``, with defaults.

        Raises:
            DataError: cells that the emission cannot model, naming row and column.
        """

    def component(self, n_classes: int) -> Emission:
        """The emission, with its prior."""

    def pack(self, component: Any, block: Any, length: int) -> Any:
        """Check rows and pack them for the emission.

        Args:
            component: from :meth:`component`, perhaps with other hyperparameters.
            block: columns.
            length: number of rows to pad to; padding has row weight 0. Sparse blocks are not
                padded.

        Raises:
            DataError: cells that the emission cannot model, naming row and column.
        """

    def log_jacobian(self, block: Any) -> np.ndarray:
        """``(N,)`` or ``(1,)`` log-density that the coding adds to each item; zero by default."""
        return np.zeros(1)

    def coords(self) -> dict[str, np.ndarray]:
        """Names along dimensions of the parameters, other than columns; none by default."""
        return {}

    def units(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The emission's parameters, or draws of them, in the units of the data."""
        return values
