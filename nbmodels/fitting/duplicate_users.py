"""Exchangeable users counted as one: on most graphs half of them touch a single item.

Users with one edge, to the same item, have the same posterior, whatever the rest of the graph; so
do users without any. One of them is kept with its multiplicity, which is exact under EM and CAVI
(not for draws: every user has proportions of their own). The users kept are put into an order in
which neighbours in memory touch neighbouring items, so that gathers find them in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int
from scipy import sparse

from inference.arrays import floating, on_device
from inference.products import block_of
from nbmodels.core.families import Dirichlet
from nbmodels.emissions import Users
from nbmodels.fitting.em import Fit


@dataclass(frozen=True)
class Grouped:
    """A graph with one user for each group of exchangeable ones.

    Attributes:
        edges: ``(N, groups)`` numbers of edges of one user of each group.
        group: ``(users,)`` the group of each user.
        multiplicity: ``(groups,)`` number of users in it.
    """

    edges: sparse.csr_array
    group: Int[np.ndarray, " users"]
    multiplicity: Int[np.ndarray, " groups"]

    def users(self, alpha: float, n_classes: int) -> Users:
        """The groups' component, for one concentration of all users, which is stored once."""
        one = Users.of(1, n_classes, alpha)
        return replace(one, multiplicity=on_device(self.multiplicity, floating()))

    def expanded(self, fitted: Fit, name: str) -> Fit:
        """The same fit with all users.

        Args:
            fitted: of a model in which ``name`` is :meth:`users`.
            name: of that component.
        """

        def spread(one: Dirichlet) -> Dirichlet:
            rows = np.asarray(one.concentration)
            rows = np.broadcast_to(rows, (len(self.multiplicity), rows.shape[1]))
            return replace(one, concentration=rows[self.group])

        component: Any = fitted.model[name]
        whole = replace(component, prior=spread(component.prior), multiplicity=1.0)
        return replace(
            fitted,
            model={**fitted.model, name: whole},
            params={**fitted.params, name: spread(fitted.params[name])},
        )


def grouped(edges: sparse.csr_array) -> Grouped:
    """Find exchangeable users.

    Args:
        edges: ``(N, users)`` numbers of edges, in canonical format.
    """
    by_user = edges.tocsc()
    degree = np.diff(by_user.indptr)
    n_users = len(degree)
    first = np.full(n_users, -1, np.int64)
    first[degree > 0] = by_user.indices[by_user.indptr[:-1][degree > 0]]
    # one number for each group: the item and the count of a lone edge, or the user
    count = np.zeros(n_users, np.int64)
    lone = degree == 1
    count[lone] = np.unique(by_user.data[by_user.indptr[:-1][lone]], return_inverse=True)[1]
    alone = degree <= 1
    # -1 is the key of users without edges
    key = np.where(alone, count * (edges.shape[0] + 1) + first, -2 - np.arange(n_users))
    _, member, group, multiplicity = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first[member], block_of(degree[member])))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return Grouped(
        sparse.csr_array(by_user[:, member[order]].tocsr()), place[group], multiplicity[order]
    )
