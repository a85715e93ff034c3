"""Settings that are chosen: parameters that say "auto", and what each value makes of a table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from nbmodels.core.component import Component
from nbmodels.core.model import PRIOR, Data
from nbmodels.data.features import Block
from nbmodels.data.labels import Classes
from nbmodels.fitting.cross_fitted import Candidate
from nbmodels.fitting.holdout import Comparison
from nbmodels.fitting.selection import Chosen, Settings

if TYPE_CHECKING:
    from nbmodels.estimators.base import Columns, TableClassifier
    from nbmodels.estimators.labels import LabelSource

#: Settings that change how columns are coded, which costs more than a look at them.
_CODING = ("covariance",)

#: Settings of the labels' channel alone.
_OF_LABELS = ("noise", "noise_diagonal")

#: An item's size counts as at least this share of the mean size.
_LEAST_SIZE = 0.1


def is_auto(value: Any) -> bool:
    """Whether a parameter is to be chosen."""
    return isinstance(value, str) and value == "auto"


def fixed(estimator: Any, settings: Settings) -> Any:
    """A shallow copy of the estimator with these settings, and the first of a grid elsewhere."""
    out = copy.copy(estimator)
    cautious = {n: values[0] for n, values in grids(estimator).items()}
    for name, value in {**cautious, **settings}.items():
        setattr(out, name, value)
    return out


def grids(estimator: Any) -> dict[str, Sequence[Any]]:
    """Values of each parameter that says "auto", the cautious one first."""
    known: dict[str, Sequence[Any]] = {}
    for c in type(estimator).__mro__:
        for name, values in vars(c).get("grids", {}).items():
            known.setdefault(name, values)
    return {n: values for n, values in known.items() if is_auto(getattr(estimator, n, None))}


def by_size(sizes: Any, mean: float, power: float) -> Array:
    """``(N,)`` powers of items' evidence, one for an item of mean size."""
    return jnp.maximum(sizes / mean, _LEAST_SIZE) ** -power


class Variants:
    """What an estimator with given settings makes of a table; what settings share is made once.

    Args:
        estimator: its parameters.
        block: all columns.
        weights: ``(N,)`` row weights.
        classes: names of the classes.
        labels: what the labels say.
    """

    def __init__(
        self,
        estimator: TableClassifier,
        block: Block,
        weights: np.ndarray,
        classes: Classes,
        labels: Mapping[str, LabelSource],
    ) -> None:
        self._estimator = estimator
        self._block, self.weights = block, weights
        self._k, self._labels = len(classes), labels
        self._made: dict[Any, Any] = {}
        self.grid = grids(estimator)
        columns = self.columns({})
        # without sizes there are no powers, and programs that know nothing of them
        self.mean_sizes: dict[str, float] = {}
        if getattr(estimator, "size_power", 0):
            packed = self._packed({}, columns)
            self.mean_sizes = mean_sizes(self._emissions({}, columns), packed, weights)
        if not self.mean_sizes:
            self.grid.pop("size_power", None)

    def columns(self, settings: Settings) -> list[Columns]:
        """Fitted encoders of the blocks of columns."""
        own = {n: v for n, v in settings.items() if n not in (*_OF_LABELS, "size_power", "weight")}
        one = fixed(self._estimator, own)
        return self._once(("columns", own), lambda: one._columns(self._block, self.weights))

    def __call__(self, settings: Settings) -> Candidate:
        one = fixed(self._estimator, settings)
        columns = self.columns(settings)
        emissions = self._emissions(settings, columns)
        packed = self._packed(settings, columns)
        noise = [settings.get(name) for name in _OF_LABELS]
        labels = self._once(("labels", noise), lambda: one._label_components(self._labels, self._k))
        prior = self._once("prior", lambda: one._prior(self._k))
        power = settings.get("size_power")

        def powered() -> Data:
            powers = one._powers(emissions, packed, self.mean_sizes)
            return replace(packed, powers=powers)

        data = self._once(("data", id(packed), power), powered)
        return Candidate({PRIOR: prior, **labels, **emissions}, data)

    def _emissions(self, settings: Settings, columns: list[Columns]) -> dict[str, Component]:
        one = fixed(self._estimator, settings)
        key = ("emissions", id(columns), settings.get("weight"))
        return self._once(key, lambda: one._emission_components(columns, self._k))

    def _packed(self, settings: Settings, columns: list[Columns]) -> Data:
        coding = [settings.get(name) for name in _CODING]
        emissions = self._emissions(settings, columns)
        return self._once(
            ("packed", coding),
            lambda: self._estimator._encode(
                emissions, columns, self._block, self.weights, self._labels
            ),
        )

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        key = repr(key)
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def mean_sizes(
    emissions: Mapping[str, Component], data: Data, weights: np.ndarray
) -> dict[str, float]:
    """Mean size of an item, by component whose items differ in size."""
    out = {}
    for name, component in emissions.items():
        sizes = component.size(data.parts[name])
        if sizes is not None and weights.any():
            out[name] = float(np.average(np.asarray(sizes)[: len(weights)], weights=weights)) or 1.0
    return out


def table(settings: Sequence[Settings], found: Comparison, chosen: Settings) -> pd.DataFrame:
    """What was compared as a data frame, a row a candidate.

    Args:
        settings: of the candidates.
        found: the comparison.
        chosen: settings that were chosen.

    Returns:
        Frame with a column for each setting, ``log_likelihood`` (mean log-probability of a held-out
        label), ``gain`` over the first candidate with its ``standard_error``, ``identified``
        (whether all classes kept their names and items), and ``chosen``.
    """
    return pd.DataFrame([dict(one) for one in settings]).assign(
        log_likelihood=found.log_likelihood,
        gain=found.gain,
        standard_error=found.standard_error,
        identified=found.identified,
        chosen=[one == chosen for one in settings],
    )


def choice_table(found: Chosen) -> pd.DataFrame | None:
    """:func:`table` of what was chosen with the rounds; None where there was nothing to choose."""
    if found.compared is None:
        return None
    return table(found.tried, found.compared, {**found.settings, "rounds": found.rounds})
