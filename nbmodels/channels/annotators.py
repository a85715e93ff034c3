"""Labels from several annotators, each with a transition of their own (Dawid and Skene 1979)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, Key
from scipy import sparse
from scipy.special import gammaln

from inference.arrays import floating, on_device
from inference.products import Matrix, matrix
from inference.pytree import register_dataclass
from nbmodels.channels.transition import discount
from nbmodels.core.codes import checked_table
from nbmodels.core.component import LogLikelihood, product_log_likelihood
from nbmodels.core.families import Dirichlet, Rule
from nbmodels.core.lazy import dist, numpyro
from nbmodels.core.roles import LabelChannel


def right_labels(n_observed: int, n_classes: int) -> np.ndarray:
    """``(observed, C)`` where a label is right; sub-types of a class stand side by side."""
    return np.arange(n_observed)[:, None] == np.arange(n_classes) // (n_classes // n_observed)


def _pseudo(q: Dirichlet, rule: Rule) -> Float[np.ndarray, "w observed k"]:
    """Concentrations as pseudo-votes: those of a mode are one more than votes."""
    concentration = np.asarray(q.concentration, float)
    return concentration if rule == "vb" else np.maximum(concentration - 1, 1e-12)


def shares_of_votes(data: Any, n_annotators: int, n_observed: int, n_classes: int) -> Any:
    """``(N, C)`` shares of the votes on each item that are for each class.

    Args:
        data: as packed, or that matrix on the host (``to_host``).
        n_annotators: number of annotators.
        n_observed: number of labels.
        n_classes: number of classes, C.
    """
    which = np.tile(right_labels(n_observed, n_classes), (n_annotators, 1)).astype(floating())
    votes: Any = data.times(which) if hasattr(data, "times") else data @ which
    return votes / votes.__array_namespace__().maximum(votes.sum(1, keepdims=True), 1)


@register_dataclass
@dataclass(frozen=True, kw_only=True)
class Annotators(LabelChannel):
    """``label ~ Categorical(transition[annotator, y])``, one transition an annotator.

    The problem of Dawid and Skene (1979, section 2): any number of votes an item, also none, also
    several by the same annotator. A vote is one entry of a sparse matrix of counts, so that
    evidence and statistics are the same two products as those of words.

    Attributes:
        prior: Dirichlet of shape ``(annotators, observed, K)``, normalised along axis 1.
        n_annotators: number of annotators, where rows that stand for nobody follow them
            (:meth:`padded`); None where all rows are annotators.

    Examples:
        Two annotators who err on one item in ten, and a third who says "ant" whatever it is:

        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import Data, fit
        >>> from nbmodels.channels import Annotators
        >>> from nbmodels.class_priors import Proportions
        >>> y, i = np.tile([0, 1], 50), np.arange(100)
        >>> first, second = (np.where(i // 2 % 10 == one, 1 - y, y) for one in (0, 5))
        >>> votes = np.eye(2)[np.stack([first, second, 0 * y], 1)]  # (items, annotators, labels)
        >>> model = {"class_prior": Proportions.of(2), "votes": Annotators.of(3, 2)}
        >>> data = Data({"class_prior": None, "votes": Annotators.pack(votes)}, np.ones(100))
        >>> found = fit(model, data, key=jax.random.key(0))
        >>> matrices = np.asarray(found.params["votes"].mode)  # (annotators, observed, true)
        >>> print(np.diagonal(matrices, axis1=1, axis2=2).round(1))  # right on ants, and on bees
        [[0.9 0.9]
         [0.9 0.9]
         [1.  0. ]]
    """

    prior: Dirichlet
    n_annotators: Any = field(default=None)

    @classmethod
    def of(
        cls,
        n_annotators: int,
        n_classes: int,
        n_observed: int | None = None,
        alpha: float = 1.0,
        diagonal: float = 2.0,
    ) -> Annotators:
        """Prior by pseudo-votes of each class: ``alpha`` wrong, shared out, ``diagonal`` right."""
        n_observed = n_classes if n_observed is None else n_observed
        wrong = alpha / max(n_observed - 1, 1)
        one = 1.0 + np.where(right_labels(n_observed, n_classes), diagonal, wrong)
        return cls.sharing(n_annotators, one)

    @classmethod
    def sharing(cls, n_annotators: int, concentration: Any) -> Self:
        """One ``(observed, K)`` prior for all annotators."""
        each = np.broadcast_to(concentration, (n_annotators, *np.shape(concentration)))
        return cls(prior=Dirichlet(on_device(each, float), axis=1))

    def padded(self, length: int) -> Self:
        """With rows that stand for nobody, so that similar numbers of annotators compile once.

        They cast no votes and their prior is flat, whatever is learned of the annotators': they
        change no estimate, and add :meth:`padding_density` to the objective.

        Args:
            length: number of rows.
        """
        rows = np.asarray(self.prior.concentration)
        flat = np.ones((length - len(rows), *rows.shape[1:]), rows.dtype)
        prior = replace(self.prior, concentration=on_device(np.concatenate([rows, flat])))
        return replace(self, prior=prior, n_annotators=on_device(np.int32(len(rows))))

    def unpadded(self) -> Self:
        """Without such rows."""
        rows = self.prior.concentration[: self.n_annotators]
        return replace(self, prior=replace(self.prior, concentration=rows), n_annotators=None)

    def padding_density(self, rule: Rule) -> float:
        """What rows that stand for nobody add to the objective: the density of a flat prior."""
        rows, n_observed, n_classes = self.prior.concentration.shape
        if self.n_annotators is None or rule != "map":
            return 0.0
        return float((rows - int(self.n_annotators)) * n_classes * gammaln(n_observed))

    def _with_prior(self, prior: Dirichlet) -> Self:
        """With another prior of the annotators, which those who are nobody do not share."""
        if self.n_annotators is not None:
            flat = jnp.where(self._somebody[:, None, None], prior.concentration, 1)
            prior = replace(prior, concentration=flat)
        return replace(self, prior=prior)

    @property
    def _somebody(self) -> Bool[Array, " w"]:
        return jnp.arange(len(self.prior.concentration)) < self.n_annotators

    @staticmethod
    def pack(votes: Any) -> Matrix:
        """Counts of votes as a sparse matrix.

        Args:
            votes: ``(N, annotators, observed)`` counts, or ``(N, annotators * observed)`` where
                sparse.

        Raises:
            DataError: a count that is negative or not finite.
        """
        checked_table("votes", votes, lambda x: ~(np.isfinite(x) & (x >= 0)), "a count, 0 or more")
        if not sparse.issparse(votes):
            votes = np.asarray(votes)
            votes = sparse.csr_array(votes.reshape(len(votes), -1))
        return matrix(votes, room=0)

    def log_likelihood(self, likelihood_params: Array, data: Matrix) -> LogLikelihood:
        return product_log_likelihood(
            data, likelihood_params.reshape(-1, likelihood_params.shape[-1])
        )

    def stats(
        self,
        likelihood_params: Any,
        resp: Float[Array, "n k"],
        data: Matrix,
        key: Key[Array, ""] | None = None,
    ) -> Array:
        return data.transpose_times(resp).reshape(self.prior.concentration.shape)

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"]:
        """``(K, observed)`` of an annotator taken at random."""
        if self.n_annotators is None:
            return jnp.mean(values["transitions"], 0)
        some = jnp.where(self._somebody[:, None, None], values["transitions"], 0)
        return jnp.sum(some, 0) / self.n_annotators

    def initial_responsibilities(self, data: Any) -> Float[Array, "n k"]:
        """Shares of the votes; those for a class are shared by its sub-types."""
        return shares_of_votes(data, *self.prior.concentration.shape)

    def start(self, resp: Float[Array, "n k"], data: Matrix, rule: Rule) -> Dirichlet:
        return super().start(discount(resp), data, rule)

    def for_draws(self, q: Dirichlet) -> tuple[LabelChannel, Any]:
        return replace(self, prior=self.prior.centred), q

    def pseudo_votes(self, q: Dirichlet, rule: Rule) -> Float[np.ndarray, "w observed k"]:
        """Votes and pseudo-votes; normalised along the labels they are the matrices."""
        return _pseudo(q, rule)

    def of_unknown(self, rule: Rule) -> Float[np.ndarray, "observed k"]:
        """P(label | class) of an annotator without votes: the mean of the annotators' priors."""
        pseudo = _pseudo(self.prior, rule)
        each: Float[np.ndarray, "observed k"] = (pseudo / pseudo.sum(1, keepdims=True)).mean(0)
        return each

    def relabel(self, q: Dirichlet, order: Int[Array, " k"]) -> Dirichlet:
        return replace(q, concentration=q.concentration[..., order])

    def values(self, likelihood_params: Array) -> dict[str, Array]:
        return {"transitions": jnp.swapaxes(jnp.exp(likelihood_params), 1, 2)}

    def sites(self, name: str) -> dict[str, Any]:

        rows = dist.Dirichlet(jnp.swapaxes(self.prior.concentration, 1, 2)).to_event(2)
        return {"transitions": numpyro.sample(f"{name}_transitions", rows)}

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Matrix) -> None:

        n_annotators, n_observed, _ = self.prior.concentration.shape
        votes = data.to_dense().reshape(-1, n_annotators, n_observed)
        of_class = jnp.swapaxes(values["transitions"], 0, 1)[y]
        # a vote that nobody cast must not meet the logarithm of zero
        logs = jnp.where(votes > 0, jnp.log(jnp.where(votes > 0, of_class, 1)), 0)
        numpyro.factor(name, (votes * logs).sum((-2, -1)))

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        """One vote of every annotator on every item, as counts."""
        transitions = values["transitions"]
        logs = jnp.log(transitions)[:, y]
        votes = jax.random.categorical(key, logs).T
        return jax.nn.one_hot(votes, transitions.shape[2])

    def dims(self) -> dict[str, list[str]]:
        return {"transitions": ["annotator", "true_class", "observed_class"]}
