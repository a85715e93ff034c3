"""Whether features say anything of the labels, and whether a fit to them may be believed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from nbmodels.core.model import PRIOR, Model
from nbmodels.errors import Caution
from nbmodels.fitting.agreement import Agreement, kappa_of_shares
from nbmodels.fitting.cautions import UNINFORMATIVE, USELESS

#: Standard errors by which labels must be likelier than without the features.
INFORMATIVE = 1.0

#: Standard errors by which predictions must agree with held-out labels beyond chance where these
#: are not likelier with the features: one time in a hundred by chance. Few labels say little of how
#: noisy they are, which costs likelihood, and may show nonetheless that features predict them.
AGREEMENT = 2.33

#: Agreement (Cohen's kappa) that useful features have at least, of two classes five labels in a
#: hundred beyond chance, and standard errors by which it must be lower for a warning. Few labels
#: never show that; of these the verdict states what follows, and it holds.
_USELESS, _SURELY = 0.1, 1.645

#: Least share of given labels that are right for a fit to be believed which has features alone
#: beside them. Of more than two classes the right one may be the most frequent with less than half;
#: features that say nothing lead to 0.37 and less.
_RIGHT_OF_TWO, _RIGHT_OF_MORE = 0.5, 0.45

#: Least part of the votes' agreement with the classes found without the features that is left with
#: those of a cross-fitted model. Useful features raise it, as of two votes the right one is then
#: known; classes that are those of the features, with votes at random, leave 0.4 to 0.87.
AGREEMENT_LEFT = 0.9

#: Likewise of features that are fitted jointly in full or to the power of one half. Votes that are
#: right half of the time agree too well with classes that were found by them alone, and good
#: features leave 0.7 of that; one class for nearly all items leaves 0.15 to 0.47.
AGREEMENT_LEFT_JOINTLY = 0.5

#: Likewise to a lower power, by which columns are far from their model: of 24 such fits to spam and
#: poor votes that left less none had more right classes than votes alone. Beside good votes,
#: columns to a low power that helped left 0.96 and more.
AGREEMENT_LEFT_TO_LOW_POWER = 0.95


def credible(
    model: Model,
    resp: Float[np.ndarray, "n k"],
    given: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
) -> bool:
    """Whether enough labels are right, where nothing but the features contradicts them.

    Args:
        model: of the labels.
        resp: ``(n, K)`` responsibilities of a fit.
        given: ``(n, K)`` those that the labels give.
        weights: ``(n,)`` row weights.
    """
    if set(model) - {PRIOR, "labels"}:
        return True
    least = _RIGHT_OF_TWO if given.shape[1] == 2 else _RIGHT_OF_MORE
    return bool(weights @ np.sum(resp * given, 1) >= least * weights.sum())


def votes_agree(
    resp: Float[np.ndarray, "n k"],
    without: Float[np.ndarray, "n k"],
    given: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
    least: float = AGREEMENT_LEFT,
) -> bool:
    """Whether votes agree beyond chance (Cohen's kappa) with some classes about as with others.

    Args:
        resp: ``(n, K)`` responsibilities of a fit.
        without: those of a fit that trusts the features less.
        given: ``(n, K)`` shares of the votes on each item.
        weights: of the items, 0 where there is no vote.
        least: part of the agreement that is left at least.
    """
    mine, other = (kappa_of_shares(one, given, weights) for one in (resp, without))
    return mine >= least * other


def uninformative(found: Agreement) -> Caution:
    """The warning of features without use, by the agreement of predictions and labels."""
    useless = max(found.kappa, 0) + _SURELY * found.error < _USELESS
    return USELESS if useless else UNINFORMATIVE
