"""Whether a model and its data belong to each other: names, rows, parts and numbers of classes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from nbmodels.core.component import Component, LogLikelihood
from nbmodels.core.model import PRIOR, Data, Model, with_role
from nbmodels.core.roles import ClassPrior
from nbmodels.errors import DataError


def check_rule(rule: str) -> None:
    """Raises: DataError: no rule of that name."""
    if rule not in ("ml", "map", "vb"):  # others read a fit, and make none
        raise DataError(f"rule: expected 'ml', 'map' or 'vb'; got {rule!r}")


def check_numbers(data: Data) -> None:
    """Refuse weights that are no weights, and numbers that are none; looks at all cells.

    Raises:
        DataError: a weight that is negative or not finite, or NaN in a part, with its row.
    """
    weights = np.asarray(data.weights)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(
            f"weights: row {bad[0]} is {weights[bad[0]]:g}; weights must be finite, 0 or more"
        )
    for name, part in data.parts.items():
        for leaf in jax.tree.leaves(part):
            table = np.asarray(leaf)
            if table.dtype.kind == "f" and np.isnan(table).any():
                row = np.argwhere(np.isnan(table))[0][0] if table.ndim else 0
                raise DataError(
                    f"data: the part {name!r} has NaN in row {row}; give what its pack returns "
                    "for missing cells, where it takes them"
                )


def check_data(model: Model, data: Data) -> None:
    """Refuse data that do not belong to the model; looks at names and shapes only.

    Callable under ``jit``.

    Args:
        model: components by name.
        data: encoded data.

    Raises:
        DataError: no class prior; a component without its part (None where it needs no data), a
            part or powers that no component has, another number of rows than there are weights.
    """
    if PRIOR not in with_role(model, ClassPrior):
        raise DataError(
            f"model: there is no class prior {PRIOR!r}, such as "
            "nbmodels.class_priors.Proportions.of(n_classes)"
        )
    for name in model:
        if name not in data.parts:
            raise DataError(
                f"data: no part for the component {name!r}; give its packed data, or None for a "
                "class prior without covariates"
            )
    for name in (*data.parts, *data.powers):
        if name not in model:
            known = ", ".join(map(repr, model))
            raise DataError(f"data: there is no component {name!r}; the model has {known}")
    if np.ndim(data.weights) != 1:
        raise DataError(f"weights: expected one an item, (N,); got {np.shape(data.weights)}")
    n_rows = len(data.weights)
    for name, part in (*data.parts.items(), *data.powers.items()):
        sizes = _leading(part)
        if sizes and n_rows not in sizes:
            raise DataError(
                f"data: the part {name!r} has {sizes[0]} rows, but there are {n_rows} weights"
            )


def check_components(model: Model, data: Data) -> None:
    """As :func:`check_data`, and that each component takes its part, and all have the same classes.

    Each likelihood is traced and not computed, which takes milliseconds.

    Args:
        model: components by name.
        data: encoded data.

    Raises:
        DataError: as :func:`check_data`; a part that its component does not take, such as one of
            another number of columns; a component of another number of classes than the class
            prior, by name.
    """
    check_data(model, data)
    sizes = {}
    for name, component in model.items():
        kind = type(component).__name__
        try:
            found: Any = jax.eval_shape(_log_likelihood, component, data.parts[name])
        except (TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"data: the part {name!r} is not one of this {kind}; give what {kind}.pack "
                f"returns, of as many columns and classes as the component: {error}"
            ) from error
        if not isinstance(found, LogLikelihood):
            raise DataError(
                f"model: {kind}.log_likelihood of {name!r} does not return a LogLikelihood, as "
                "centred(table) makes it of an (N, K) table"
            )
        sizes[name] = found.table.shape[-1]
    for name, size in sizes.items():
        if size != sizes[PRIOR]:
            raise DataError(
                f"model: the component {name!r} is of {size} classes, and {PRIOR!r} of "
                f"{sizes[PRIOR]}"
            )


def _log_likelihood(component: Component, part: Any) -> LogLikelihood:
    return component.log_likelihood(component.likelihood_params(component.prior, "vb"), part)


def _leading(part: Any) -> list[int]:
    """First axis of each array or matrix of packed data; one of them has a row an item."""
    leaves = jax.tree.leaves(part, is_leaf=lambda leaf: hasattr(leaf, "to_dense"))
    return [leaf.shape[0] for leaf in leaves if getattr(leaf, "shape", ())]
