"""From settings to a model and its data; what several settings share is made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Float, Int

from inference.arrays import on_device
from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Data, Model, with_role
from nbmodels.core.roles import Emission
from nbmodels.data.features import Block
from nbmodels.data.validation import pad_rows, padded_length
from nbmodels.errors import DataError
from nbmodels.fitting.copied_rows import among, row_groups
from nbmodels.fitting.label_sources import LabelSource, class_prior, learned_priors, padded_powers
from nbmodels.fitting.one_thread import one_thread_if_small
from nbmodels.fitting.points import points
from nbmodels.fitting.scores import Candidate, Settings, cautious

#: Settings of the labels' channel alone, and those that change a model and not how columns are
#: coded.
OF_LABELS = ("noise", "noise_diagonal")
_NOT_CODED = (*OF_LABELS, "size_power", "weight")

#: An item's size counts as at least this share of the mean size.
_LEAST_SIZE = 0.1


@dataclass(frozen=True)
class Columns:
    """A block of columns with its fitted encoder.

    Attributes:
        name: of the emission in the model.
        where: indices of the block's columns in X.
        encoder: fitted to the training data.
        constant: value of each column of the plan that is left out, by its index in X.
    """

    name: str
    where: np.ndarray
    encoder: Any
    constant: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ColumnPlan:
    """Which columns are modelled by which family.

    Attributes:
        name: of the emission in the model.
        where: indices of the columns in X.
        family: a class with ``settings``, ``fit``, ``component`` and ``pack``.
    """

    name: str
    where: np.ndarray
    family: Any


class ModelBuilder:
    """Builds the model of a table with labels under given settings.

    Args:
        settings: value of every setting; those in ``grid`` are overridden by what is asked for.
        grid: values of each open setting, the cautious one first.
        block: all columns.
        plan: which columns are modelled by which family.
        weights: ``(N,)`` row weights.
        labels: label sources, by channel.
        n_classes: K.
        coded: fitted encoders under given settings; by default they are fitted to the block.
    """

    def __init__(
        self,
        settings: Settings,
        grid: Mapping[str, Sequence[Any]],
        block: Block,
        plan: Sequence[ColumnPlan],
        weights: np.ndarray,
        labels: Mapping[str, LabelSource],
        n_classes: int,
        coded: Callable[[Settings], list[Columns]] | None = None,
    ) -> None:
        self._fixed = {**settings, **cautious(grid)}
        self.block, self._plan, self.weights = block, plan, weights
        self.labels, self.n_classes = labels, n_classes
        self._made: dict[str, Any] = {}
        self._encoders = coded or self._fitted
        self.grid = dict(grid)
        # without sizes there are no powers, and programs without them
        if not self.mean_sizes:
            self.grid.pop("size_power", None)
        self._check_weights()

    @property
    def n_rows(self) -> int:
        """N, before padding."""
        return len(self.weights)

    @cached_property
    def points(self) -> Any:
        """All rows as points of a metric space, or None; see :mod:`nbmodels.fitting.points`."""
        with one_thread_if_small(self.block.x):
            return points(self.block.x, self.block.missing)

    @cached_property
    def copies(self) -> Int[np.ndarray, " n"] | None:
        """Group of each row, by default of near copies, see :mod:`nbmodels.fitting.copied_rows`."""
        with one_thread_if_small(self.block.x):
            return row_groups(self.block.x, self.block.missing)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the emissions."""
        return tuple(part.name for part in self._plan)

    def settings(self, chosen: Settings) -> dict[str, Any]:
        """Every setting with the value that it has."""
        return {**self._fixed, **chosen}

    def _check_weights(self) -> None:
        """Refuse weights of blocks that do not exist.

        Raises:
            DataError: with the names that do.
        """
        weight = self._fixed.get("weight", 1.0)
        for name in weight if isinstance(weight, Mapping) else ():
            if name not in self.features:
                raise DataError(
                    f"weight: there is no block {name!r}; the blocks are {list(self.features)}"
                )

    def __call__(self, chosen: Settings) -> Candidate:
        settings = self.settings(chosen)
        emissions = self._emissions(settings)
        noise = [settings.get(name) for name in OF_LABELS]
        labels = self._once("labels", noise, lambda: self._channels(settings))
        prior = self._once("class prior", None, lambda: class_prior(self.n_classes, settings))
        key = [self._coding(settings), settings.get("size_power")]
        data = self._once("data", key, lambda: self._powered(settings))
        return Candidate({PRIOR: prior, **labels, **emissions}, data, learned_priors(labels))

    def columns(self, chosen: Settings) -> list[Columns]:
        """Fitted encoders of the blocks of columns."""
        settings = self.settings(chosen)
        return self._once("columns", self._coded(settings), lambda: self._encoders(settings))

    def of_rows(self, rows: Int[np.ndarray, " m"]) -> ModelBuilder:
        """The same for some rows, coded as all rows are."""
        labels = {name: one.of_rows(rows) for name, one in self.labels.items()}
        block, weights = self.block.rows(rows), self.weights[rows]
        about = (self._plan, weights, labels, self.n_classes, self.columns)
        one = ModelBuilder(self._fixed, self.grid, block, *about)
        one.copies = among(self.copies, rows)
        return one

    def drawn_rows(self, most: int, rng: np.random.Generator) -> Int[np.ndarray, " m"]:
        """``most`` of the rows that have a weight, each given class in its share."""
        rows = np.flatnonzero(self.weights > 0)
        order = rng.permutation(len(rows))
        if "labels" in self.labels:
            codes = self.labels["labels"].values[rows]
            order = order[np.argsort(codes[order], kind="stable")]
        drawn = min(most, len(rows))
        return np.sort(rows[order[np.arange(drawn) * len(rows) // max(drawn, 1)]])

    def weight(self, name: str, chosen: Settings) -> float:
        """Power of a block's likelihood; one that a mapping does not name has 1."""
        weight = self.settings(chosen).get("weight", 1.0)
        return weight.get(name, 1.0) if isinstance(weight, Mapping) else weight

    def log_jacobian(self, chosen: Settings) -> Any:
        """``(N,)`` or a number: what the columns' coding adds to an item's log-density."""
        return sum(
            self.weight(c.name, chosen) * c.encoder.log_jacobian(self.block.columns(c.where))
            for c in self.columns(chosen)
        )

    @cached_property
    def mean_sizes(self) -> dict[str, float]:
        """Mean size of an item, by emission whose items differ in size; empty where unused."""
        if not self._fixed.get("size_power", 0) and "size_power" not in self.grid:
            return {}
        out = {}
        for name, sizes in self._sizes(self._fixed).items():
            if self.weights.any():
                inside = sizes[: self.n_rows]
                out[name] = float(np.average(inside, weights=self.weights)) or 1.0
        return out

    # Parts --------------------------------------------------------------------------------------

    def _fitted(self, settings: Settings) -> list[Columns]:
        out = []
        for part in self._plan:
            own = {name: settings[name] for name in part.family.settings if name in settings}
            block = self.block.columns(part.where)
            kept = part.family.modelled(block, self.weights)
            encoder = part.family.fit(block.columns(np.flatnonzero(kept)), self.weights, **own)
            constant = self._constants(part.where[~kept])
            out.append(Columns(part.name, part.where[kept], encoder, constant))
        return out

    def _constants(self, where: Int[np.ndarray, " d"]) -> dict[int, float]:
        """The value of each of some columns that have one; NaN of a column without any."""
        out = {}
        for j in where:
            column = self.block.columns(np.array([j]))
            seen = self.weights > 0
            seen = seen if column.missing is None else seen & ~column.missing[:, 0]
            rows = np.flatnonzero(seen)
            out[int(j)] = float(column.x[rows[0], 0]) if len(rows) else np.nan
        return out

    def _emissions(self, settings: Settings) -> dict[str, Emission]:
        key = [self._coded(settings), settings.get("weight")]
        return self._once(
            "emissions",
            key,
            lambda: {
                c.name: replace(
                    c.encoder.component(self.n_classes), weight=self.weight(c.name, settings)
                )
                for c in self.columns(settings)
            },
        )

    def _packed(self, settings: Settings) -> Data:
        return self._once(
            "packed",
            self._coding(settings),
            lambda: encode(
                self._emissions(settings),
                self.columns(settings),
                self.block,
                self.weights,
                self.labels,
            ),
        )

    def _channels(self, settings: Settings) -> dict[str, Component]:
        return {n: source.channel(self.n_classes, settings) for n, source in self.labels.items()}

    def _sizes(self, settings: Settings) -> dict[str, Float[np.ndarray, " n"]]:
        """Size of each item, by emission whose items differ in size."""
        emissions, packed = self._emissions(settings), self._packed(settings)
        return self._once("sizes", self._coding(settings), lambda: item_sizes(emissions, packed))

    def _powered(self, settings: Settings) -> Data:
        packed = self._packed(settings)
        sizes = self._sizes(settings) if self.mean_sizes else {}
        of_sizes = powers_of(sizes, self.mean_sizes, settings.get("size_power"))
        return replace(packed, powers={**packed.powers, **of_sizes})

    def _coded(self, settings: Settings) -> Any:
        """Settings that a fitted encoder depends on."""
        return [(n, v) for n, v in settings.items() if n in self.grid and n not in _NOT_CODED]

    def _coding(self, settings: Settings) -> Any:
        """Settings that packed data depend on: smoothing is not among them."""
        return settings.get("covariance")

    def _once(self, what: str, key: Any, make: Callable[[], Any]) -> Any:
        name = f"{what}: {key!r}"
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


def encode(
    model: Model,
    columns: Sequence[Columns],
    block: Block,
    weights: Float[np.ndarray, " n"],
    labels: Mapping[str, LabelSource],
) -> Data:
    """Rows packed for a model, padded to a length that similar tables share."""
    n_rows = len(weights)
    length = n_rows if block.is_sparse else padded_length(*block.x.shape)
    parts: dict[str, Any] = {PRIOR: None}
    for name, source in labels.items():
        parts[name] = source.padded(length)
    for c in columns:
        parts[c.name] = c.encoder.pack(model[c.name], block.columns(c.where), length)
    return Data(parts, on_device(pad_rows(weights, length)), padded_powers(labels, length))


def item_sizes(model: Model, data: Data) -> dict[str, Float[np.ndarray, " n"]]:
    """Size of each item, by emission whose items differ in size."""
    found = {name: c.size(data.parts[name]) for name, c in with_role(model, Emission).items()}
    return {name: np.asarray(sizes) for name, sizes in found.items() if sizes is not None}


def powers_of(
    sizes: Mapping[str, Float[np.ndarray, " n"]], mean_sizes: Mapping[str, float], power: Any
) -> dict[str, Float[Array, " n"]]:
    """Powers of items' likelihoods by their size against the mean, one for an item of mean size.

    Args:
        sizes: from :func:`item_sizes`.
        mean_sizes: mean size by emission; those without one have no power.
        power: of the sizes.
    """
    out = {}
    for name, mean in mean_sizes.items():
        shares = np.maximum(sizes[name] / mean, _LEAST_SIZE)
        out[name] = on_device(shares**-power)
    return out
