"""What EM and CAVI carry from step to step: posteriors, or the responsibilities they follow from.

A step is an E step and an M step, and the driver carries what one of them leaves to the other:
usually the conjugate posteriors. Those of a graph's users are many times as large as the
responsibilities, and follow from them alone. There the responsibilities are carried, the users'
sums are used where they are made (:meth:`nbmodels.core.component.Component.round_trip`), and the
posteriors are written once, at the end. Both ways visit the same points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from inference import Coordinates, Total, add, negate, total
from inference.compilation import host_jit
from inference.driver import Step
from inference.squarem import IDENTITY
from nbmodels.core import model as models
from nbmodels.core.component import RoundTrip
from nbmodels.core.families import Rule
from nbmodels.core.model import Data, Model


class Point(NamedTuple):
    """Responsibilities, and posteriors that they lead to.

    Attributes:
        resp: ``(N, K)``.
        q: conjugate posteriors by component; those that are not carried may be left out.
    """

    resp: Float[Array, "n k"]
    q: dict[str, Any]


class Iteration(Protocol):
    """What the driver carries and how it goes on; hashable, so that it may be a static argument."""

    @property
    def rule(self) -> Rule:
        """``"ml"``, ``"map"`` or ``"vb"``."""

    @property
    def step(self) -> Step:
        """The fixed-point map ``(carried, context) -> (next, objective at carried)``."""

    @property
    def coordinates(self) -> Coordinates:
        """Where points are extrapolated."""

    def context(self, model: Model, data: Data) -> Any:
        """Second argument of the step."""

    def pick(self, point: Point) -> Any:
        """What is carried of a point; callable under ``jit``."""

    def begin(self, carried: Any, context: Any) -> Any:
        """Where to begin from what :meth:`pick` left of responsibilities from labels."""

    def resume(self, q: Any, context: Any) -> Any:
        """Where to begin from posteriors."""

    def params(self, carried: Any, context: Any) -> Any:
        """Conjugate posteriors of all components."""

    def relabel(self, carried: Any, model: Model, order: Int[Array, " k"]) -> Any:
        """With true class ``order[k]`` renamed ``k``."""


def iteration(models_: Sequence[Model], data: Sequence[Data], rule: Rule, plain: bool) -> Iteration:
    """The way in which some fits are run.

    Args:
        models_: their models.
        data: of each.
        rule: ``"ml"``, ``"map"`` or ``"vb"``.
        plain: whether no extrapolation is tried; extrapolations are of posteriors.
    """
    if not plain:
        return Posteriors(rule)
    first, *others = (tuple(_abstract(*pair, rule)) for pair in zip(models_, data, strict=True))
    return Responsibilities(rule, first) if first and {first} >= set(others) else Posteriors(rule)


@dataclass(frozen=True)
class Posteriors:
    """The conjugate posteriors of all components are carried."""

    rule: Rule

    @property
    def step(self) -> Step:
        return models.step(self.rule)

    @property
    def coordinates(self) -> Coordinates:
        return models.coordinates(self.rule)

    def context(self, model: Model, data: Data) -> tuple[Model, Data]:
        return model, data

    def pick(self, point: Point) -> Any:
        return point.q

    def begin(self, carried: Any, context: Any) -> Any:
        return carried

    def resume(self, q: Any, context: Any) -> Any:
        return q

    def params(self, carried: Any, context: Any) -> Any:
        return carried

    def relabel(self, carried: Any, model: Model, order: Int[Array, " k"]) -> Any:
        return models.relabel(model, carried, order)


@dataclass(frozen=True)
class Responsibilities:
    """Responsibilities are carried, and the posteriors of components without a round trip.

    Attributes:
        rule: ``"ml"``, ``"map"`` or ``"vb"``.
        unwritten: names of the components with a round trip.
    """

    rule: Rule
    unwritten: tuple[str, ...]

    @property
    def step(self) -> Step:
        return step(self.rule)

    @property
    def coordinates(self) -> Coordinates:
        return IDENTITY

    def context(self, model: Model, data: Data) -> Context:
        return Context(model, data, _round_trips(model, data, self.rule))

    def pick(self, point: Point) -> Point:
        return Point(point.resp, {n: q for n, q in point.q.items() if n not in self.unwritten})

    def begin(self, carried: Point, context: Context) -> Point:
        # the objective is that of rows that sum to one: items without a label take a step first
        whole = np.asarray(carried.resp).sum(1) > 1 / 2
        return carried if whole.all() else _next(carried, context, self.rule)

    def resume(self, q: Any, context: Context) -> Point:
        return self.pick(_settled(context.model, context.data, q, self.rule))

    def params(self, carried: Point, context: Context) -> dict[str, Any]:
        return _written(carried, context, self.rule)

    def relabel(self, carried: Point, model: Model, order: Int[Array, " k"]) -> Point:
        return Point(
            carried.resp[:, order], models.relabel(_only(model, carried.q), carried.q, order)
        )


class Context(NamedTuple):
    """What a step that carries responsibilities reads.

    Attributes:
        model: components by name.
        data: encoded data.
        trips: both half-steps of each component whose posterior is not carried.
    """

    model: Model
    data: Data
    trips: Mapping[str, RoundTrip]


def round_trips(model: Model, data: Data, rule: Rule) -> dict[str, RoundTrip]:
    """Both half-steps of the components that have them in one."""
    found = {}
    for name, component in model.items():
        weights = data.weights * models.power(model, name, data)
        trip = component.round_trip(data.parts[name], weights, component.read_by(rule))
        if trip is not None:
            found[name] = trip
    return found


_round_trips = host_jit(round_trips, static_argnames="rule")


def _abstract(model: Model, data: Data, rule: Rule) -> dict[str, Any]:
    """Shapes of :func:`round_trips`, without a computation."""
    found: dict[str, Any] = jax.eval_shape(partial(round_trips, rule=rule), model, data)
    return found


def _only(model: Model, names: Mapping[str, Any]) -> Model:
    return {name: c for name, c in model.items() if name in names}


def _step(point: Point, context: Context, rule: Rule) -> tuple[Point, Total]:
    model, data, trips = context
    rest = _only(model, point.q)
    read = models.likelihood_params(rest, point.q, rule)
    table, offset = models.log_likelihood(rest, read, data)
    terms = [negate(models.penalty(rest, point.q, rule))]
    for name, trip in trips.items():
        power = jnp.reshape(models.power(model, name, data), (-1, 1))
        weighted = power * data.weights[:, None] * point.resp
        own, gain = trip(weighted, data.parts[name])
        table = table + power * own
        offset = offset - jnp.sum(power * point.resp * own, 1)
        terms.append(gain)
    resp, inside = models.normalised(table)
    value = add(total(data.weights * (inside + offset)), *terms)
    return Point(resp, models.update(rest, models.stats(rest, read, resp, data), rule)), value


@cache
def step(rule: Rule) -> Step:
    """As :func:`nbmodels.core.model.step`, of ``(point, context)``: the same points and objectives.

    The objective at a point is that of the posteriors its responsibilities lead to.
    """
    return partial(_step, rule=rule)


@partial(host_jit, static_argnames="rule")
def _next(point: Point, context: Context, rule: Rule) -> Point:
    return _step(point, context, rule)[0]


@partial(host_jit, static_argnames="rule")
def _settled(model: Model, data: Data, q: Any, rule: Rule) -> Point:
    """A step from posteriors."""
    read = models.likelihood_params(model, q, rule)
    resp = models.posterior(model, read, data).resp
    return Point(resp, models.update(model, models.stats(model, read, resp, data), rule))


@partial(host_jit, static_argnames="rule")
def _written(point: Point, context: Context, rule: Rule) -> dict[str, Any]:
    """All posteriors; those that follow from the responsibilities read nothing else."""
    left = _only(context.model, context.trips)
    sums = models.stats(left, dict.fromkeys(left), point.resp, context.data)
    return {**point.q, **models.update(left, sums, rule)}
