"""What a world is, and the register of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from floor_worlds.label_errors import BY_NAME

#: The grid of the simulated worlds. Of fewer than 200 items a class of 2 % has two or three, from
#: which nothing is learned; there all classes are alike.
SIZES, CLASSES, RARE_FROM = (60, 100, 200, 600, 3000), (2, 3, 10), 200
SHARES = (0.1, 0.2, 0.4)
#: Given labels of each class at least; labels are drawn anew where one has fewer.
LEAST = 2
#: Share of the rare class, and new items of a simulated world.
RARE, N_NEW = 0.02, 1000


class AbsentError(Exception):
    """The data of a world are not at hand."""


@dataclass(frozen=True)
class Setting:
    """A cell of the grid.

    Attributes:
        n: training items.
        k: classes.
        rare: whether the last class has 2 % of the items.
        errors: kind of label errors, a name of :data:`label_errors.BY_NAME`, or ``"own"`` where
            the world brings its labels.
        share: of wrong labels.
    """

    n: int
    k: int
    rare: bool = False
    errors: str = "uniform"
    share: float = 0.2

    def __str__(self) -> str:
        rare = ", rare" if self.rare else ""
        what = self.errors if self.errors == "own" else f"{self.share:.0%} {self.errors}"
        return f"n={self.n} K={self.k}{rare}, {what}"


@dataclass(frozen=True)
class Items:
    """What a world's function draws.

    Attributes:
        x: training items, as estimators take them: rows of features; a graph ``(items, users)``;
            a table of votes.
        true: ``(N,)`` codes of the true classes.
        x_new: new items, or None.
        y_new: their true classes.
        evidence: ``(N, K)`` log-probabilities of the classes, by which errors follow the features.
        given: labels that the world brings; None where errors are planted.
        hidden: ``(N,)`` training items that are given no label, the new items of a graph.
    """

    x: Any
    true: np.ndarray
    x_new: Any = None
    y_new: np.ndarray | None = None
    evidence: np.ndarray | None = None
    given: np.ndarray | None = None
    hidden: np.ndarray | None = None


@dataclass(frozen=True)
class Task:
    """A fit to be made: what is known, and the truth.

    Attributes:
        kind: of data; it decides who answers.
        k: number of classes.
        x: training items.
        given: ``(N,)`` codes of the given labels, -1 where hidden; of votes their majority.
        true: ``(N,)`` codes of the true classes, -1 where unknown.
        x_new: new items, or None.
        y_new: their true classes; of a graph those of the hidden items.
    """

    kind: str
    k: int
    x: Any
    given: np.ndarray
    true: np.ndarray
    x_new: Any = None
    y_new: np.ndarray | None = None


Draw = Callable[[Setting, np.random.Generator], Items]


@dataclass(frozen=True)
class World:
    """A world by its name.

    Attributes:
        name: of the world.
        kind: of its data.
        draw: items of a setting.
        settings: the cells of the grid that it has.
        quick: some of them.
    """

    name: str
    kind: str
    draw: Draw
    settings: tuple[Setting, ...]
    quick: tuple[Setting, ...] = ()


WORLDS: dict[str, World] = {}


def grid(
    sizes: Iterable[int] = SIZES,
    classes: Iterable[int] = CLASSES,
    errors: Iterable[str] = tuple(BY_NAME),
    shares: Iterable[float] = SHARES,
    rare: Iterable[bool] = (False, True),
) -> tuple[Setting, ...]:
    """Cells of the crossed factors, by size, so that compiled programs are used again.

    Left out are rare classes of too few items, and errors to the next of two classes, which are
    uniform ones. Without errors there is one cell, whatever their kind.
    """
    found = []
    for n, k, one in product(sizes, classes, rare):
        if one and n < RARE_FROM:
            continue
        found.append(Setting(n, k, one, "uniform", 0.0))
        for kind, share in product(errors, shares):
            if not (kind == "pair" and k == 2):
                found.append(Setting(n, k, one, kind, share))
    return tuple(found)


def world(
    name: str,
    kind: str,
    settings: Iterable[Setting] | None = None,
    quick: Iterable[Setting] = (),
) -> Callable[[Draw], Draw]:
    """Register a world's function.

    Args:
        name: of the world.
        kind: of its data: ``"reals"``, ``"binary"``, ``"counts"``, ``"graph"`` or ``"votes"``.
        settings: the cells that it has; the whole grid by default.
        quick: the cells of ``--quick``.
    """
    cells = grid() if settings is None else tuple(settings)

    def register(draw: Draw) -> Draw:
        WORLDS[name] = World(name, kind, draw, cells, tuple(quick))
        return draw

    return register


def classes(n: int, setting: Setting, rng: np.random.Generator) -> np.ndarray:
    """``(n,)`` true classes in equal parts, or the last one in 2 % of the items."""
    k = setting.k
    if not setting.rare:
        return rng.permutation(np.arange(n) % k)
    few = round(RARE * n)
    return rng.permutation(np.concatenate([np.full(few, k - 1), np.arange(n - few) % (k - 1)]))


def draw(one: World, setting: Setting, seed: int) -> Task:
    """The task of a world, a setting and a seed: the same each time.

    Raises:
        AbsentError: the world's data are not at hand.
    """
    rng = np.random.default_rng([zlib.crc32(one.name.encode()), setting.n, setting.k, seed])
    items = one.draw(setting, rng)
    given = _labels(items, setting, rng) if items.given is None else items.given
    y_new = items.y_new
    if items.hidden is not None:
        y_new = items.true[items.hidden]
        given = np.where(items.hidden, -1, given)
    return Task(one.kind, setting.k, items.x, given, items.true, items.x_new, y_new)


def _labels(items: Items, setting: Setting, rng: np.random.Generator) -> np.ndarray:
    """Labels with planted errors, of each class some."""
    errors = BY_NAME[setting.errors]
    shown = slice(None) if items.hidden is None else ~items.hidden
    for _ in range(100):
        given = errors(items.true, setting.k, items.evidence, setting.share, rng)
        if np.bincount(given[shown], minlength=setting.k).min() >= LEAST:
            return given
    raise ValueError(f"{setting}: a class is left without labels")
