"""A warning where the classes found are those of a few users who touch nearly the same items.

Accounts that all touch the same items, whatever these are, look like a class to every model of
neighbours: their items are alike, and half of these accounts agree with the other half. A full
noise matrix then explains the labels of these items as errors. What shows it is that the classes
rest on these accounts alone: other users, who are many, touch items of all classes alike.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.special import rel_entr

from nbmodels.errors import Caution, IdentifiabilityWarning

#: Half of the information on the classes is that of this share of the users or less, and two of
#: these have this share of their items in common, on average. Of 32 fits to graphs with such
#: accounts, four had shares of 0.04 and overlaps of 0.41 to 0.65, among them all three that made
#: labels worse by a point; the others had shares of 0.08 or more and overlaps of 0.15 or less.
_FEW, _COINCIDING = 0.07, 0.3

#: Users that are compared with each other at the most.
_MOST = 200


def coinciding_users(
    edges: sparse.csr_array,
    resp: Float[np.ndarray, "n k"],
    weights: Float[np.ndarray, " n"],
) -> tuple[Caution, ...]:
    """A warning where few users, of nearly the same items, hold most of the information.

    Args:
        edges: ``(N, users)`` numbers of edges.
        resp: ``(N, K)`` P(true class).
        weights: ``(N,)`` row weights.
    """
    touched = sparse.csr_array((edges != 0).astype(float))
    nats = _information(touched, resp * weights[:, None])
    order = np.argsort(-nats, kind="stable")
    upto = np.cumsum(nats[order])
    if not upto.size or upto[-1] <= 0:
        return ()
    leading = order[: int(np.searchsorted(upto, upto[-1] / 2)) + 1]
    several = np.count_nonzero(np.asarray(touched.sum(0)) > 1)
    if len(leading) < 2 or len(leading) > _FEW * several:
        return ()
    if _overlap(touched[:, leading[:_MOST]]) < _COINCIDING:
        return ()
    sentence = (
        f"the classes found rest on {len(leading)} of {several} users, who touch nearly the same "
        "items: these may be copies of one account, whose items are no class; check these users, "
        "or fit without them"
    )
    return (Caution(IdentifiabilityWarning, sentence),)


def _information(
    touched: sparse.csr_array, resp: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, " users"]:
    """Nats by which classes of each user's items differ from all items', less those of chance."""
    counts = touched.T @ resp
    total = counts.sum(1, keepdims=True)
    expected = total * resp.sum(0) / max(float(resp.sum()), np.finfo(float).tiny)
    return np.maximum(rel_entr(counts, expected).sum(1) - (resp.shape[1] - 1) / 2, 0)


def _overlap(touched: sparse.csr_array) -> float:
    """Mean share of the items of two users that both touch (Jaccard's index)."""
    both = (touched.T @ touched).toarray()
    own = np.diag(both)
    share = both / (own[:, None] + own - both)
    return float(share[~np.eye(len(own), dtype=bool)].mean())
