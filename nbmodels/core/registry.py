"""Registry of feature families: names under which estimators find how to read and model columns."""

from __future__ import annotations

from nbmodels.core.roles import FeatureColumns
from nbmodels.errors import DataError

#: Columns class by family, in the order of registration.
FAMILIES: dict[str, type[FeatureColumns]] = {}


def register_family(name: str, columns_class: type[FeatureColumns]) -> None:
    """Make a family of features known to the estimators, such as ``NoisyMixedNB(families=...)``.

    Args:
        name: of the family, and of its block of columns in a fitted model.
        columns_class: a :class:`nbmodels.core.roles.FeatureColumns`.

    Raises:
        ValueError: the name is another class's. A class that is defined again, as in a notebook,
            takes its own place.
    """
    there = FAMILIES.get(name, columns_class)
    if _full_name(there) != _full_name(columns_class):
        raise ValueError(
            f"name: the family {name!r} is registered already, as {_full_name(there)}; "
            "take another name"
        )
    FAMILIES[name] = columns_class


def _full_name(columns_class: type) -> str:
    return f"{columns_class.__module__}.{columns_class.__qualname__}"


def family(name: str) -> type[FeatureColumns]:
    """The columns class of a family.

    Raises:
        DataError: no such family.
    """
    if name not in FAMILIES:
        raise DataError(f"family: expected one of {family_names()}, got {name!r}")
    return FAMILIES[name]


def family_names() -> tuple[str, ...]:
    """Names of all families, the built-in ones first, in the order of registration.

    The built-in ones are there once :mod:`nbmodels.emissions` is imported.
    """
    return tuple(FAMILIES)
