"""Votes on an ordered scale: the order of its classes, settings that go with it, and its draws."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.channels.ordered_annotators import POINTS
from nbmodels.data.annotations import Votes
from nbmodels.errors import Caution, DataError, NbmodelsWarning
from nbmodels.fitting.ordered_evidence import OrderedGain

#: Fewest classes whose order matters.
_LEAST_GRADES = 3

#: Settings that have one value only beside ordered classes.
_FIXED: Mapping[str, Any] = {"pooling": "auto", "subtypes": 1, "abstain": None}


def ordered_parameters(parameters: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """Settings of a fit to ordered votes.

    Raises:
        DataError: a setting that is none of such a fit.
    """
    for name, value in _FIXED.items():
        if parameters[name] is not value and parameters[name] != value:
            raise DataError(
                f"{name}: ordered classes have a form of their own; leave it {value!r}, or take "
                "ordered=False"
            )
    if rule != "map":
        raise DataError(f"ordered: is fitted by solver='map' alone; got {rule!r}")
    return {**parameters, "pooling": "ordered", "subtypes": POINTS}


def in_order(votes: Votes, declared: Any) -> Any:
    """Names of the classes in the order of their scale.

    Args:
        votes: table.
        declared: names of all classes in their order, which is taken as it is; or None.

    Raises:
        DataError: labels whose order is not known: no numbers, and no ordered Categorical.
    """
    if declared is not None:
        return declared
    names = votes.label.names
    if votes.label.order is not None:
        return votes.label.order[np.isin(votes.label.order, names)]
    numbers = pd.to_numeric(pd.Series(names, dtype=object), errors="coerce").to_numpy(float)
    if np.isnan(numbers).any():
        raise DataError(
            "ordered: the labels are no numbers, whose order is known; name all classes in their "
            "order with classes=, or give the labels as an ordered Categorical of pandas"
        )
    return names[np.argsort(numbers, kind="stable")]


def used_grades(
    declared: Any, votes: Votes, checked: np.ndarray | None
) -> tuple[Any, tuple[Caution, ...]]:
    """The grades from the lowest to the highest one that is used, and a warning of the others.

    Where all thresholds move by a grade together, votes are as likely: grades at an end of the
    scale that nobody uses would take the items of those beside them.

    Args:
        declared: names of all grades in their order.
        votes: table.
        checked: ``(N,)`` checked grades of tasks, None where unchecked, or None.
    """
    names = pd.Index(declared)
    used = names.isin(votes.label.names)
    if checked is not None:
        used = used | names.isin(pd.unique(checked))
    at = np.flatnonzero(used)
    if not len(at) or at[-1] - at[0] + 1 == len(names):
        return declared, ()
    kept = slice(int(at[0]), int(at[-1]) + 1)
    left_out = ", ".join(map(str, names.delete(np.arange(len(names))[kept])))
    message = (
        f"classes: nobody uses the grades at an end of the scale, {left_out}; votes do not show "
        "where they begin, and no task is given one: check tasks of these grades (trusted=), or "
        "give class_prior"
    )
    return np.asarray(declared)[kept], (Caution(NbmodelsWarning, message),)


def rank_of(votes: Votes, names: np.ndarray) -> np.ndarray | None:
    """``(K,)`` place of each class on a scale, of which labels say that they are of one.

    Args:
        votes: table.
        names: ``(K,)`` of the classes.

    Returns:
        None of two classes, and of labels that are no numbers and no ordered Categorical.
    """
    if len(names) < _LEAST_GRADES:
        return None
    if votes.label.order is not None:
        found = pd.Index(votes.label.order).get_indexer(pd.Index(names))
        return None if (found < 0).any() else found.argsort().argsort()
    if not all(isinstance(one, Real) and not isinstance(one, bool | np.bool_) for one in names):
        return None
    return np.argsort(np.argsort(names.astype(float)))


def graders_caution(gain: OrderedGain | None) -> tuple[Caution, ...]:
    """A warning where held-out votes are surely likelier under graders on an ordered scale."""
    if gain is None or not gain.sure:
        return ()
    message = (
        "votes: labels seem to be grades of an ordered scale; held-out votes have the mean "
        f"log-probability {gain.ordered:.3f} under workers who grade on one, {gain.free:.3f} under "
        "free matrices. Take ordered=True, which orders classes by their values"
    )
    return (Caution(NbmodelsWarning, message),)


def draws_by_class(tree: Any, names: np.ndarray) -> Any:
    """Draws of the classes from those of the scores within each class.

    Shares and probabilities are summed, and rates are averaged by the shares of the scores.

    Args:
        tree: from :func:`nbmodels.posterior.sample`, whose true classes are scores.
        names: ``(K,)`` names of the classes.
    """
    for group in ("posterior", "prior", "label_posterior"):
        if group in tree.children:
            tree[group] = type(tree)(_by_class(tree[group].to_dataset(), names))
    return tree


def _by_class(draws: Any, names: np.ndarray) -> Any:
    shares = draws.get("class_prior")
    out = draws.drop_dims("true_class")
    if "observed_class" in draws.dims:
        out = out.assign_coords(observed_class=names)
        draws = draws.assign_coords(observed_class=names)
    for name, one in draws.items():
        if "true_class" not in one.dims:
            continue
        rates = "observed_class" in one.dims
        found = _summed(one * shares, names) / _summed(shares, names) if rates else None
        out[name] = (_summed(one, names) if found is None else found).transpose(*one.dims)
    return out.assign_attrs(draws.attrs)


def _summed(one: Any, names: np.ndarray) -> Any:
    each = one.sizes["true_class"] // len(names)
    parts = [
        one.isel(true_class=slice(q, None, each)).assign_coords(true_class=names)
        for q in range(each)
    ]
    return sum(parts[1:], parts[0])
