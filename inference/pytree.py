"""Dataclasses as pytree nodes whose structures are of one class each.

``jax.tree_util.register_dataclass`` makes structures that compare equal where two classes have the
same fields (jax 0.10 to 0.12; their hashes differ). The caches of ``jax.jit`` compare structures
when a few bits of two hashes are alike, so that a function of one class now and then ran the
program that was compiled for the other: without an error, in some processes and not in others.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

import jax
from jax.tree_util import GetAttrKey

T = TypeVar("T")


def register_dataclass(cls: type[T]) -> type[T]:
    """Register a dataclass as a pytree node, as ``jax.tree_util.register_dataclass`` does.

    Args:
        cls: a dataclass all of whose fields are arguments of its constructor. Fields whose metadata
            have ``static=True`` are part of the structure, the others are children.

    Returns:
        ``cls``, so that this may be used as a decorator.

    Raises:
        TypeError: ``cls`` is no dataclass, or a field is no argument of its constructor.
    """
    about = fields(cls)  # type: ignore[arg-type]  # raises TypeError where it is none
    if others := [field.name for field in about if not field.init]:
        raise TypeError(f"{cls.__qualname__}: {others} are no arguments of its constructor")
    static = [field.name for field in about if field.metadata.get("static", False)]
    free = [field.name for field in about if field.name not in static]
    children, structure = _reader(free), _reader(static)
    keys = [GetAttrKey(name) for name in free]

    def flatten(one: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return children(one), structure(one)

    def flatten_with_keys(one: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(zip(keys, children(one), strict=True)), structure(one)

    def unflatten(structure: tuple[Any, ...], children: Any) -> Any:
        return cls(
            **dict(zip(static, structure, strict=True)), **dict(zip(free, children, strict=True))
        )

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


def _reader(names: list[str]) -> Any:
    """Reads attributes by name into a tuple, of any length."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)
