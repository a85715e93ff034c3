"""Result of one fit, in host memory, with the warnings about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from nbmodels.core.component import LogLikelihood
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


def log_likelihoods(model: Model, q: Any, data: Data, rule: Rule) -> dict[str, LogLikelihood]:
    """Weighted log-likelihoods of each item by component, by the rule that reports them."""
    read = models.likelihood_params(model, q, models.reported(rule))
    return {name: models.log_likelihood({name: c}, read, data) for name, c in model.items()}


_log_likelihoods = host_jit(log_likelihoods, static_argnames="rule")


class ReadOut(NamedTuple):
    """What the last program of a fit reads of its parameters and the fit keeps, sparing others.

    On the device as the program returns it, in host memory as the fit keeps it.

    Attributes:
        noise: ``(K, observed)`` P(observed | true) of each channel of noisy labels, by the rule
            that reports them.
        points: point estimates of the components with few parameters.
        tables: weighted log-likelihoods by component; empty where they were not asked for.
        params: conjugate posterior of each component, of which it was read: the fit's own
            objects. Empty as the program returns it.
    """

    noise: dict[str, Any]
    points: dict[str, Any]
    tables: dict[str, LogLikelihood]
    params: dict[str, Any]

    def is_of(self, params: Mapping[str, Any], names: Iterable[str]) -> bool:
        """Whether the posteriors of these components are the very ones that were read."""
        return all(name in self.params and self.params[name] is params[name] for name in names)


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
        read: what was read already, and of which posteriors.

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
    read: ReadOut | None = None

    @property
    def point(self) -> dict[str, Any]:
        """Point estimates, as likelihoods read them: modes, or posterior means under ``"vb"``."""
        known = self._known_points(self.model)
        left = {name: c for name, c in self.model.items() if name not in known}
        if not left:
            return known
        params = {name: self.params[name] for name in left}
        return {**known, **_point(with_arrays(left), params, self.rule)}

    def point_of(self, name: str) -> Any:
        """The point estimate of one component."""
        if known := self._known_points([name]):
            return known[name]
        one, q = {name: self.model[name]}, {name: self.params[name]}
        return _point(with_arrays(one), q, self.rule)[name]

    def _known_points(self, names: Iterable[str]) -> dict[str, Any]:
        """Those of some components that were read already."""
        if self.read is None:
            return {}
        points, of = self.read.points, self.read
        return {n: points[n] for n in names if n in points and of.is_of(self.params, [n])}

    @property
    def transitions(self) -> dict[str, Float[np.ndarray, "k observed"]]:
        """P(observed | true) of each channel of noisy labels at the point estimate, by its name."""
        channels = models.with_role(self.model, LabelChannel)
        if self.read is not None and self.read.is_of(self.params, channels):
            return dict(self.read.noise)
        own = {name: self.params[name] for name in channels}
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


def log_likelihoods_of(fit: Fit, data: Data) -> dict[str, LogLikelihood]:
    """Weighted log-likelihoods by component, of all by one program where the fit kept none.

    Args:
        fit: of any model.
        data: what was fitted, whatever the row weights were.
    """
    if fit.read is not None and fit.read.tables and fit.read.is_of(fit.params, fit.model):
        return fit.read.tables
    parts = {name: data.parts[name] for name in fit.model}
    found = _log_likelihoods(dict(fit.model), fit.params, models.with_parts(data, parts), fit.rule)
    host: dict[str, LogLikelihood] = jax.tree.map(np.asarray, found)
    return host
