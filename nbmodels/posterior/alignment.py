"""Label switching: chains are relabelled as a whole, and modes that remain are reported.

Exchanging two classes everywhere leaves the features' likelihood as it is; only the labels, through
the prior on the noise matrix, identify the classes (see :mod:`nbmodels.fitting.identifiability`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from nbmodels.core.model import Model
from nbmodels.errors import Caution, PosteriorWarning
from nbmodels.fitting.identifiability import diagnose
from nbmodels.posterior.draws import PosteriorDraws

#: Shares of the draws between which two orders of the classes are both part of the posterior.
_BOTH = (0.02, 0.98)


def can_be_renamed(model: Model) -> bool:
    """Whether every parameter has a class axis, so that no class is identified from outside."""
    dims = [component.dims() for component in model.values()]
    return all(here and all("true_class" in d for d in here.values()) for here in dims)


def aligned(
    model: Model, drawn: PosteriorDraws, names: Any = None, *, named: bool = False
) -> PosteriorDraws:
    """Chains relabelled to agree with the observed labels, with cautions about remaining modes.

    A chain is renamed as a whole, where under the mean of its noise matrix a renaming makes the
    labels right most often. Draws are not renamed one by one: where one chain visits two orders,
    the posterior has two modes, and that is reported.

    Args:
        model: components by name.
        drawn: draws of all chains.
        names: ``(K,)`` names of the classes, for the messages.
        named: whether classes have their names even if the noise matrix's diagonal does not
            dominate, as by checked rows: chains stay as they are.
    """
    squares = {n: t for n, t in drawn.transitions.items() if t.shape[-1] == t.shape[-2]}
    if named or not squares:
        return drawn
    name, transition = next(iter(squares.items()))
    identity = np.arange(transition.shape[-1])
    orders = [diagnose(chain.mean(0)).order for chain in transition]
    renamed = [c for c, order in enumerate(orders) if (order != identity).any()]
    messages = []
    if renamed and can_be_renamed(model):
        drawn = _renamed(model, drawn, orders)
        messages.append(
            f"chains {', '.join(map(str, renamed))} of {len(orders)} ran with exchanged classes "
            "and were renamed; unless the prior on the noise matrix has no diagonal, their mode is "
            "a lesser one"
        )
        transition = drawn.transitions[name]
    messages += _several_modes(transition, identity if names is None else names)
    cautions = tuple(Caution(PosteriorWarning, message) for message in messages)
    return replace(drawn, cautions=(*drawn.cautions, *cautions))


def _several_modes(transition: np.ndarray, names: Any) -> list[str]:
    """A message where a substantial share of the draws has another order of the classes."""
    identity = tuple(range(transition.shape[-1]))
    flat = transition.reshape(-1, *transition.shape[-2:])
    orders = Counter(tuple(int(k) for k in diagnose(one).order) for one in flat)
    least, most = (share * len(flat) for share in _BOTH)
    others = [(o, n) for o, n in orders.most_common() if o != identity and n > least]
    if not others or others[0][1] > most:
        return []
    order, count = others[0]
    moved = ", ".join(f"{names[k]} as {names[i]}" for i, k in enumerate(order) if i != k)
    return [
        f"the posterior has more than one mode in the classes' names: in {count / len(flat):.0%} "
        f"of the draws classes have traded names ({moved}); means over the draws mix the two. Add "
        "trusted labels, or a stronger prior on the diagonal of the noise matrix"
    ]


def _renamed(model: Model, drawn: PosteriorDraws, orders: list[np.ndarray]) -> PosteriorDraws:
    def permuted(draws: np.ndarray, axis: int) -> np.ndarray:
        pairs = zip(draws, orders, strict=True)
        return np.stack([np.take(chain, order, axis - 1) for chain, order in pairs])

    values = {
        name: {
            part: permuted(draws, 2 + model[name].dims()[part].index("true_class"))
            for part, draws in here.items()
        }
        for name, here in drawn.values.items()
    }
    transitions = {name: permuted(draws, 2) for name, draws in drawn.transitions.items()}
    return replace(
        drawn,
        values=values,
        transitions=transitions,
        label_posterior=permuted(drawn.label_posterior, 2),
        class_shares=None if drawn.class_shares is None else permuted(drawn.class_shares, 2),
    )
