"""Annotators whose noise matrices follow from further parameters, as draws take them."""

from __future__ import annotations

from typing import Any

from jax import Array
from jaxtyping import Float, Int, Key

from inference.products import Matrix
from nbmodels.channels.annotators import Annotators
from nbmodels.core.roles import LabelChannel


class DrawnAnnotators(LabelChannel):
    """Base of such channels: votes given the matrices are those of :class:`Annotators`.

    Subclasses have the parameters, their sites and statistics, and what else they report of a draw.
    """

    pack = staticmethod(Annotators.pack)

    @property
    def _annotators(self) -> Annotators:
        """The channel of the matrices alone."""
        raise NotImplementedError  # every subclass has its own

    def transition(self, values: dict[str, Any]) -> Float[Array, "k observed"]:
        return self._annotators.transition(values)

    def initial_responsibilities(self, data: Any) -> Float[Array, "n k"]:
        return self._annotators.initial_responsibilities(data)

    def likelihood(self, name: str, values: dict[str, Any], y: Any, data: Matrix) -> None:
        self._annotators.likelihood(name, values, y, data)

    def simulate(self, key: Key[Array, ""], values: dict[str, Array], y: Int[Array, " n"]) -> Array:
        return self._annotators.simulate(key, values, y)
