"""Protocol of the estimators that a joint model takes as sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int

from nbmodels.core.component import Component
from nbmodels.data.labels import Classes
from nbmodels.errors import Caution
from nbmodels.fitting.collapsed_updates import Edges
from nbmodels.fitting.joint import Alternative
from nbmodels.fitting.vote_shares import SharesHeld

if TYPE_CHECKING:  # tables are fitted without loading what graphs need
    from nbmodels.fitting.beliefs import Known
    from nbmodels.fitting.graph_evidence import GraphEvidence


class Items(NamedTuple):
    """The items that sources are about.

    Attributes:
        ids: ``(N,)`` their ids.
        classes: names of the classes.
        weights: ``(N,)`` row weights.
        given: ``(N,)`` their noisy labels as codes, -1 where there is none.
    """

    ids: np.ndarray
    classes: Classes
    weights: Float[np.ndarray, " n"]
    given: Int[np.ndarray, " n"]


@dataclass(frozen=True)
class Part:
    """One component of a source, with its data.

    Attributes:
        component: an emission or a channel.
        data: packed, one row an item.
        log_jacobian: ``(N,)`` what the data's coding adds to an item's log-density, or 0.
        alternatives: what is to be compared on held-out labels, the cautious one first; empty where
            ``component`` is settled.
        edges: a graph in which an item's own vote is left out, or None.
        pooled: whether an emission's prior is learned; a channel says so itself.
    """

    component: Component
    data: Any
    log_jacobian: Any = 0.0
    alternatives: tuple[Alternative, ...] = ()
    edges: Edges | None = None
    pooled: bool = False


@dataclass(frozen=True)
class LearnedSource:
    """What a source learned from the training data.

    Attributes:
        parts: components with their data; the keys name the parts.
        encode: from new values, ids of items and classes to packed data, by part.
        columns: names of the columns of each part, of tables only.
        units: by part, a function from its parameters to the units of the data.
        powers: from the arguments of ``encode`` to ``(N,)`` powers of each item's likelihood, by
            part; None where all are 1.
        coords: names along other dimensions of the parameters than columns, by part and dimension.
        learn_beside: of a graph whose evidence is learned from what is known of the items beside
            it, which is to be called with that; until then its part has no weight. None otherwise.
        crossed: likewise of a graph that is fitted jointly, to compare with; None otherwise.
        graph: what it then learned, or None.
        open_power: of features, whether the power of their likelihood is to be selected.
        cross_fitted: of features that may be cross-fitted, likewise with what is known of the
            items; None otherwise.
        held: by what votes hold the class shares, where nothing else shows these; or None.
        beside_others: what takes its place where other sources count, of annotators who agree by
            chance; None where it stays.
        chosen: settings that were selected, by name.
        noisy: probability that labels are noisy at all, by this source alone.
        cautions: warnings about the data, whatever the fit.
    """

    parts: Mapping[str, Part]
    encode: Callable[[Any, np.ndarray, Classes], dict[str, Any]]
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    units: Mapping[str, Any] = field(default_factory=dict)
    powers: Callable[[Any, np.ndarray, Classes], dict[str, np.ndarray]] | None = None
    coords: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    learn_beside: Callable[[Known], LearnedSource] | None = None
    crossed: Callable[[Known], LearnedSource] | None = None
    graph: GraphEvidence | None = None
    held: SharesHeld | None = None
    beside_others: LearnedSource | None = None
    open_power: bool = False
    cross_fitted: Callable[[Known], LearnedSource] | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    noisy: float = 1.0
    cautions: tuple[Caution, ...] = ()

    def to_power(self, power: float) -> LearnedSource:
        """The same, whose likelihood counts by this power of itself; not at all by 0."""
        parts = {
            name: replace(
                part, component=replace(part.component, weight=part.component.weight * power)
            )
            for name, part in self.parts.items()
        }
        chosen: dict[str, Any] = {"weight": power} if self.open_power else {}
        if self.cross_fitted is not None and power:
            chosen["training"] = "joint"
        return replace(self, parts=parts, chosen={**self.chosen, **chosen}, cross_fitted=None)


class Source(Protocol):
    """An estimator that :class:`nbmodels.JointNB` takes as one source among others."""

    def _source_items(self, values: Any) -> int | None:
        """Number of items that ``values`` are about; None where rows are events, not items."""

    def _source_classes(self, values: Any) -> np.ndarray | None:
        """Names of classes that occur in ``values``, or None."""

    def _source_learn(self, values: Any, items: Items) -> LearnedSource:
        """Components with their data, in codings learned from ``values``."""
