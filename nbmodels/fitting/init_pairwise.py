"""Closed forms from frequencies of values, of pairs and of triples of attributes (Denis 2006).

Under conditional independence, how two attributes depend on each other within the items that bear
one label shows how far that label mixes the true classes. Everything is a jitted function of tables
over all attributes and values at once. Class 1 is the paper's positive class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float

from inference.pytree import register_dataclass
from nbmodels.core.families import Dirichlet, static

#: The two mixing coefficients are kept at least this far apart: eq. (9) divides by the gap.
LEAST_GAP = 0.05


@register_dataclass
@dataclass(frozen=True)
class Tables:
    """Frequencies within ``G`` groups of items; the ``S`` values of all attributes side by side.

    Attributes:
        share: ``(G,)`` share of the items in each group.
        single: ``(S, G)`` P(x^i = a | group).
        pair: ``(G, S, S)`` P(x^i = a, x^j = b | group), zeros where i = j.
        sizes: number of values of each attribute.
    """

    share: Float[Array, " g"]
    single: Float[Array, "s g"]
    pair: Float[Array, "g s s"]
    sizes: tuple[int, ...] = static()

    @property
    def dependence(self) -> Float[Array, "g s s"]:
        """``(G, S, S)`` P(a, b | group) - P(a | group) P(b | group), zeros where i = j."""
        single = self.single.T
        return self.pair - single[:, :, None] * single[:, None, :] * _apart(self.sizes)


class Mixture(NamedTuple):
    """Two product distributions and their shares in two groups of items.

    Attributes:
        mix: ``(2,)`` P(y = 1 | group): the paper's ``beta`` and ``alpha``.
        share: P(y = 1) among all items.
        probs: ``(S, 2)`` P(x^i = a | y), columns ``y = 0, 1``.
        outside: ``(2,)`` booleans, whether the shares and whether the probabilities had to be
            clipped to be admissible.
    """

    mix: Float[Array, " 2"]
    share: Float[Array, ""]
    probs: Float[Array, "s 2"]
    outside: Bool[Array, " 2"]

    def flip_rates(self, group_share: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """Flip rates ``(eta0, eta1)``, eq. (7), where the groups are the observed labels.

        With eq. (8) it is Bayes' formula, P(label 1 | y = 0) and P(label 0 | y = 1).

        Args:
            group_share: ``(2,)`` share of each label.
        """
        eta0 = (1 - self.mix[1]) * group_share[1] / (1 - self.share)
        eta1 = self.mix[0] * group_share[0] / self.share
        return jnp.stack([eta0, eta1])


def _attributes(sizes: tuple[int, ...]) -> np.ndarray:
    """``(attributes, S)`` which values belong to an attribute."""
    return np.repeat(np.eye(len(sizes)), sizes, axis=1)


def _apart(sizes: tuple[int, ...]) -> np.ndarray:
    """``(S, S)`` ones where two values belong to different attributes."""
    member = _attributes(sizes)
    return 1 - member.T @ member


def _normalised(counts: Array, sizes: tuple[int, ...]) -> Array:
    """``(S, ...)`` probabilities of each attribute's values; uniform where there are none."""
    return Dirichlet(counts + jnp.finfo(counts.dtype).tiny, axis=0, sizes=sizes).mean


def _admissible(raw: Array, sizes: tuple[int, ...]) -> tuple[Array, Array]:
    """Estimated probabilities moved into [0, 1], and whether any was outside."""
    rounding = jnp.sqrt(jnp.finfo(raw.dtype).eps)
    outside = jnp.any((raw < -rounding) | (raw > 1 + rounding))
    return _normalised(jnp.maximum(raw, 0), sizes), outside


@partial(jax.jit, static_argnames="sizes")
def tables(x: Float[Array, "n s"], groups: Float[Array, "n g"], sizes: tuple[int, ...]) -> Tables:
    """Count single values and pairs; a missing cell is left out of both.

    Args:
        x: ``(N, S)`` indicators of the attributes' values, zeros where a cell is missing.
        groups: ``(N, G)`` weight of each item in each group.
        sizes: number of values of each attribute.
    """
    member = _attributes(sizes)
    counts = jnp.einsum("ng,ns,nt->gst", groups, x, x, precision=lax.Precision.HIGHEST)
    seen = member.T @ (member @ counts @ member.T) @ member
    pair = jnp.where(seen > 0, counts / jnp.where(seen > 0, seen, 1), 0) * _apart(sizes)
    single = _normalised(jnp.matmul(x.T, groups, precision=lax.Precision.HIGHEST), sizes)
    size = jnp.sum(groups, 0)
    return Tables(size / jnp.sum(size), single, pair, sizes)


def _raw(tables: Tables, mix: Array) -> Array:
    """``(S, 2)`` eq. (9): the distributions of the classes from those of the two groups."""
    weights = jnp.stack([jnp.stack([mix[1], -mix[0]]), jnp.stack([mix[1] - 1, 1 - mix[0]])], 1)
    return tables.single @ weights / (mix[1] - mix[0])


def _unmixed(tables: Tables, mix: Array, outside: Array) -> Mixture:
    """The classes from the two groups, their probabilities moved into [0, 1] where needed."""
    probs, moved = _admissible(_raw(tables, mix), tables.sizes)
    return Mixture(mix, mix @ tables.share, probs, jnp.stack([outside, moved]))


def _products(tables: Tables) -> tuple[Array, Array, Array]:
    """The paper's ``C``, ``D``, ``E``, ``(S, S)``; zeros within one attribute."""
    c = tables.single[:, 1] - tables.single[:, 0]
    E, D = tables.dependence
    return c[:, None] * c[None, :] * _apart(tables.sizes), D, E


def _kept_apart(mix: Array) -> tuple[Array, Array]:
    """``(beta, alpha)`` within [0, 1] and ``LEAST_GAP`` apart, and whether they had to be moved."""
    rounding = jnp.sqrt(jnp.finfo(mix.dtype).eps)
    outside = jnp.any((mix < -rounding) | (mix > 1 + rounding))
    mix = jnp.clip(mix, 0, 1)
    narrow = mix[1] - mix[0] < LEAST_GAP
    middle = jnp.clip(jnp.mean(mix), LEAST_GAP / 2, 1 - LEAST_GAP / 2)
    return jnp.where(narrow, middle + LEAST_GAP / 2 * jnp.array([-1, 1]), mix), outside | narrow


@jax.jit
def class_conditional(tables: Tables) -> Mixture:
    """Both classes from labels with class-conditional noise, by eqs. (10) and (11) summed first.

    The groups of ``tables`` are the items labelled 0 and those labelled 1. With ``a`` and ``b`` the
    sums of ``C D`` and of ``C E`` over that of ``C^2``, eqs. (10) and (11) are ``alpha (1 - alpha)
    = a d^2`` and ``beta (1 - beta) = b d^2``, ``d = alpha - beta``. Their difference is ``alpha +
    beta = 1 - d (a - b)``, and their sum then ``d^2 = 1 / (1 + 2 (a + b) + (a - b)^2)``. So ``d >
    0``, which is ``eta0 + eta1 < 1``, leaves one solution and no root to choose.

    It differs from the paper's estimate (:func:`class_conditional_by_roots`) in samples only: there
    the squares of noisy ``D`` and ``E`` are summed, and their bias drives ``alpha`` and ``beta``
    to 0 and 1 in small ones. Here an estimate is moved only where ``a`` or ``b`` is negative, or
    the gap below ``LEAST_GAP``.
    """
    C, D, E = _products(tables)
    size = jnp.sum(C * C)
    safe = jnp.where(size > 0, size, 1)
    a, b = jnp.sum(C * D) / safe, jnp.sum(C * E) / safe
    below = 1 + 2 * (a + b) + jnp.square(a - b)
    usable = (below > 0) & (size > 0)
    gap = 1 / jnp.sqrt(jnp.where(usable, below, 1))
    middle = (1 - gap * (a - b)) / 2
    mix, outside = _kept_apart(middle + gap / 2 * jnp.array([-1, 1]))
    # labels that cannot be unmixed are taken as they are
    return _unmixed(tables, jnp.where(usable, mix, jnp.array([0, 1])), outside | ~usable)


@jax.jit
def class_conditional_by_roots(tables: Tables) -> Mixture:
    """NB-CCCN (algorithm 1) as printed, eqs. (15), (18) and (19).

    Arguments as in :func:`class_conditional`. Eqs. (18) and (19) give ``beta (1 - beta)`` and
    ``alpha (1 - alpha)``. Of the roots, ``alpha > beta`` leaves one pair on the same side of 1/2
    and one on opposite sides, the wider apart. The pair is taken that leaves less of the classes'
    probabilities outside [0, 1]; where neither leaves any, the one whose gap fits eq. (10), since
    the sum of the ``C^2`` over the same denominator is ``(alpha - beta)^2``.

    A negative product is moved to 0, a negative discriminant to 0. Where the denominator is not
    positive, the labels are taken as they are.
    """
    C, D, E = _products(tables)
    below = jnp.sum(jnp.square(C + D + E) - 4 * D * E)
    usable = below > 0
    sums = jnp.stack([jnp.sum(C * E), jnp.sum(C * D), jnp.sum(C * C)])
    low, high, square = sums / jnp.where(usable, below, 1)
    products = jnp.stack([low, high])
    rounding = jnp.sqrt(jnp.finfo(products.dtype).eps)
    outside = ~usable | jnp.any((products < -rounding) | (products > 0.25 + rounding))
    products = jnp.where(usable, jnp.clip(products, 0, 0.25), 0)

    t, r = (1 + jnp.sqrt(1 - 4 * products)) / 2  # the larger roots, of beta and of alpha
    same = jnp.where(r > t, jnp.stack([t, r]), jnp.stack([1 - t, 1 - r]))
    (same, moved), (apart, _) = _kept_apart(same), _kept_apart(jnp.stack([1 - t, r]))
    excess = jnp.stack([_excess(tables, same), _excess(tables, apart)])
    nearer = jnp.abs(jnp.square(r - t) - square) < jnp.abs(jnp.square(r + t - 1) - square)
    clear = jnp.all(excess < rounding)
    choose_same = usable & jnp.where(clear, nearer, excess[0] < excess[1])
    narrow = choose_same & moved
    return _unmixed(tables, jnp.where(choose_same, same, apart), outside | narrow)


def _excess(tables: Tables, mix: Array) -> Array:
    """How much of the classes' probabilities eq. (9) puts outside [0, 1]."""
    raw = _raw(tables, mix)
    return jnp.sum(jnp.maximum(-raw, 0) + jnp.maximum(raw - 1, 0))


@jax.jit
def positive_unlabelled(tables: Tables) -> Mixture:
    """Both classes from unlabelled items and positive ones, eqs. (16) and (17).

    The groups of ``tables`` are the unlabelled items (``alpha = P(y = 1)``) and the positive ones
    (``beta = 1``), so that by eq. (12) ``P(y = 1) = D / (C + D)`` for any two values. Two slips of
    the paper are mended. Eq. (16) as printed has ``P(a) P(b)`` and ``P(a|1) P(b|1)`` in each
    other's place. In eq. (17) both sums over all values of an attribute are exactly zero: here each
    term has the weight ``C``, as in eqs. (18) and (19), the best known measure of its information.
    """
    c = tables.single[:, 0] - tables.single[:, 1]
    C = c[:, None] * c[None, :] * _apart(tables.sizes)
    D = tables.dependence[0]
    above, below = jnp.sum(C * D), jnp.sum(C * (C + D))
    usable = below > 0
    share = jnp.where(usable, above / jnp.where(usable, below, 1), 0.5)
    rounding = jnp.sqrt(jnp.finfo(share.dtype).eps)
    outside = ~usable | (share < -rounding) | (share > 1 - LEAST_GAP)
    share = jnp.clip(share, 0, 1 - LEAST_GAP)
    # eq. (9) with the groups' parts exchanged: the second is the richer in positives
    return _unmixed(tables, jnp.stack([share, jnp.ones_like(share)]), outside)


@partial(jax.jit, static_argnames="sizes")
def unlabelled(
    x: Float[Array, "n s"], weights: Float[Array, " n"], sizes: tuple[int, ...]
) -> Mixture:
    """NB-UNL (algorithm 3, after Geiger et al. 2001): both classes from unlabelled items.

    Every value of an attribute is a binary attribute, and triples are of values of three different
    attributes. With ``z_ij`` and ``z_ijk`` the central moments, ``s = 2 P(y=1) - 1`` and ``2 u_i``
    the difference between the classes, ``z_ij = (1 - s^2) u_i u_j`` and ``z_ijk = -2 s (1 - s^2)
    u_i u_j u_k``. The sums of algorithm 3 cancel where the ``u_i`` differ in sign, so the values
    are first recoded to make all ``u_i`` positive, by their covariances with the value that
    covaries most. Of the two models, the one in which class 0 is the larger is given.

    Args:
        x: ``(N, S)`` indicators of the values of three attributes or more.
        weights: ``(N,)`` row weights.
        sizes: number of values of each attribute.

    Returns:
        a :class:`Mixture` whose ``mix`` is ``P(y = 1)`` twice.
    """
    found = tables(x, weights[:, None], sizes)
    apart, z = jnp.asarray(_apart(sizes)), found.dependence[0]
    reference = jnp.argmax(jnp.sum(jnp.abs(z), 0))
    sign = jnp.where(z[reference] < 0, -1.0, 1.0)
    # values of the reference's own attribute are not apart from it; they oppose or join it by
    # their covariances with the values that it has already signed
    sign = jnp.where(
        apart[reference] > 0, sign, jnp.where(z @ (sign * apart[reference]) < 0, -1, 1)
    )
    sign = sign * jnp.sign(sign[reference])
    seen = x @ (_attributes(sizes).T @ _attributes(sizes))
    centred = (x - seen * found.single[:, 0]) * sign
    z = z * sign[:, None] * sign[None, :]

    def of_value(k: Array) -> tuple[Array, Array, Array]:
        """Sums over the pairs (i, j) of the root, of ``z_ij`` and of ``z_kij``."""
        triples = apart * apart[k][:, None] * apart[k][None, :]
        third = (centred * (weights * centred[:, k])[:, None]).T @ centred
        count = (seen * (weights * seen[:, k])[:, None]).T @ seen
        third = jnp.where(count > 0, third / jnp.where(count > 0, count, 1), 0)
        inside = z[k][:, None] * z[k][None, :] * z + jnp.square(third) / 4
        root = jnp.sqrt(jnp.maximum(inside, 0))
        return jnp.sum(triples * root), jnp.sum(triples * z), jnp.sum(triples * third)

    roots, pairs, thirds = lax.map(of_value, jnp.arange(x.shape[1]))
    positive = pairs > 0
    u = jnp.where(positive, roots / jnp.where(positive, pairs, 1), 0)
    below = 2 * jnp.sum(u * jnp.where(positive, pairs, 0))
    s = jnp.where(below > 0, -jnp.sum(thirds) / jnp.where(below > 0, below, 1), 0)
    least = 1 - LEAST_GAP
    outside = jnp.any(~positive & (jnp.max(jnp.abs(z), 0) > 0)) | (jnp.abs(s) > least)
    s = jnp.clip(s, -least, least)
    u = jnp.where(s > 0, -u, u) * sign
    s = -jnp.abs(s)
    share = (1 + s) / 2
    raw = found.single + jnp.stack([-(1 + s) * u, (1 - s) * u], 1)  # eq. (2)
    probs, moved = _admissible(raw, sizes)
    return Mixture(jnp.stack([share, share]), share, probs, jnp.stack([outside, moved]))
