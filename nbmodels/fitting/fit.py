"""Result of one fit, in host memory, with the warnings about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from inference import Status
from inference.arrays import on_device
from inference.compilation import host_jit
from nbmodels.core import model as models
from nbmodels.core.families import Rule
from nbmodels.core.model import Data, Model
from nbmodels.core.roles import LabelChannel
from nbmodels.errors import Caution, IdentifiabilityWarning, NotConvergedWarning

#: Pairs of confused classes that a warning names.
_SHOWN = 10

# one program in the place of dozens of single operations, each compiled on its own
_point = host_jit(models.point, static_argnames="rule")


def with_arrays(tree: Any) -> Any:
    """Bare numbers as arrays: a program for the one does not serve the other."""
    return jax.tree.map(lambda leaf: leaf if hasattr(leaf, "dtype") else on_device(leaf), tree)


def noise_at_prior(channel: Any, rule: Rule) -> Float[np.ndarray, "k observed"]:
    """P(observed | true) of a channel without any label."""
    one: Any = {"labels": channel}
    found = _noise_matrices(with_arrays(one), {"labels": channel.prior}, rule)
    return np.asarray(found["labels"])


@partial(host_jit, static_argnames="rule")
def _noise_matrices(channels: Model, params: Any, rule: Rule) -> dict[str, Array]:
    """``(K, observed)`` P(observed | true) of each channel of noisy labels, by its name.

    Args:
        channels: label channels by name.
        params: conjugate posterior of each.
        rule: how they are read.
    """
    read = models.likelihood_params(channels, params, rule)
    return models.transitions(channels, models.values(channels, read))


class NoiseRead(NamedTuple):
    """Noise matrices as a fit's own program read them, which spares another one.

    Attributes:
        params: conjugate posterior of each label channel.
        tables: ``(K, observed)`` P(observed | true) of each channel of noisy labels.
    """

    params: dict[str, Any]
    tables: dict[str, Float[np.ndarray, "k observed"]]

    @classmethod
    def of(cls, model: Model, params: Any, tables: Mapping[str, Array]) -> NoiseRead:
        """Matrices of a model's channels by the rule that reports them."""
        own = {name: params[name] for name in models.with_role(model, LabelChannel)}
        return cls(own, {name: np.asarray(table) for name, table in tables.items()})

    def is_of(self, params: Mapping[str, Any]) -> bool:
        """Whether these very posteriors were read."""
        same = (params.get(name) is q for name, q in self.params.items())
        return set(params) == set(self.params) and all(same)


@dataclass(frozen=True)
class Fit:
    """A fitted model, in host memory.

    Attributes:
        model: the components.
        params: conjugate posterior of each component.
        rule: ``"ml"``, ``"map"`` or ``"vb"``.
        resp: ``(N, K)`` responsibilities.
        log_likelihood: ``(N,)`` log-density of each item, base measure included.
        objective: log-likelihood, log-posterior density or evidence bound, all constants kept.
        trace: objective at each accepted point.
        n_iter: number of accepted points.
        n_evaluations: passes over the data.
        status: how the iteration ended.
        restarts: objective that each start reached, the one from the labels first.
        renamed: ``(K,)`` order by which classes were renamed, or None.
        confused: pairs ``(k, j)`` of classes; ``k`` is labelled ``j`` at least as often as ``k``.
        data: what it was fitted to, where that is something else than what was given.
        noise: noise matrices that were read already, of the posteriors they are of.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> from nbmodels import fit
        >>> from nbmodels.papers import zeng2022
        >>> truth = np.repeat([0, 1], 20)
        >>> given = np.where(np.arange(40) < 4, 1, truth)  # a fifth of class 0 are labelled 1
        >>> model = zeng2022.to_model(K=2, d=3)
        >>> data = zeng2022.to_data(model, given, np.stack([truth, truth, truth], 1))
        >>> fitted = fit(model, data, key=jax.random.key(0))
        >>> fitted.status.name, fitted.resp.shape
        ('CONVERGED', (40, 2))
        >>> print(fitted.transitions["labels"].round(1))
        [[0.8 0.2]
         [0.  1. ]]
    """

    model: Model
    params: Any
    rule: Rule
    resp: Float[np.ndarray, "n k"]
    log_likelihood: Float[np.ndarray, " n"]
    objective: float
    trace: Float[np.ndarray, " steps"]
    n_iter: int
    n_evaluations: int
    status: Status
    restarts: tuple[float, ...]
    renamed: Int[np.ndarray, " k"] | None
    confused: tuple[tuple[int, int], ...]
    data: Data | None = None
    noise: NoiseRead | None = None

    @property
    def point(self) -> dict[str, Any]:
        """Point estimates, as likelihoods read them: modes, or posterior means under ``"vb"``."""
        return _point(with_arrays(self.model), self.params, self.rule)

    def point_of(self, name: str) -> Any:
        """The point estimate of one component."""
        one, q = {name: self.model[name]}, {name: self.params[name]}
        return _point(with_arrays(one), q, self.rule)[name]

    @property
    def transitions(self) -> dict[str, Float[np.ndarray, "k observed"]]:
        """P(observed | true) of each channel of noisy labels at the point estimate, by its name."""
        channels = models.with_role(self.model, LabelChannel)
        own = {name: self.params[name] for name in channels}
        if self.noise is not None and self.noise.is_of(own):
            return dict(self.noise.tables)
        found = _noise_matrices(with_arrays(channels), own, models.reported(self.rule))
        return {name: np.asarray(table) for name, table in found.items()}

    def cautions(self, names: Any = None) -> tuple[Caution, ...]:
        """Warnings about this fit, by the names of the classes."""
        return cautions_of(self.confused, self.status, names)


def cautions_of(
    confused: tuple[tuple[int, int], ...], status: Status, names: Any = None
) -> tuple[Caution, ...]:
    """Warnings about classes that are not identified and about an iteration that did not converge.

    Args:
        confused: pairs ``(k, j)``; class ``k`` is labelled ``j`` at least as often as ``k``.
        status: how the iteration ended.
        names: ``(K,)`` names of the classes, or None for their numbers.
    """
    out = []
    if confused:
        of = str if names is None else lambda k: str(names[k])
        pairs = ", ".join(f"{of(k)} as {of(j)}" for k, j in confused[:_SHOWN])
        out.append(
            Caution(
                IdentifiabilityWarning,
                "the noise matrix is not diagonally dominant and no renaming of the classes makes "
                "it so; these classes are labelled as another at least as often as themselves: "
                f"{pairs}{' and more' if len(confused) > _SHOWN else ''}. Do not read class names "
                "literally there: add trusted labels, a stronger prior on the diagonal, or merge "
                "the classes",
            )
        )
    if not status.ok:
        out.append(Caution(NotConvergedWarning, status.sentence))
    return tuple(out)
