"""The grid of worlds of ``floor.py``; a new world is one function with :func:`world`."""

from floor_worlds import bundled, crowds, graphs, other_shapes, shared, tables
from floor_worlds.base import WORLDS, AbsentError, Items, Setting, Task, World, draw, grid, world

__all__ = [
    "WORLDS",
    "AbsentError",
    "Items",
    "Setting",
    "Task",
    "World",
    "bundled",
    "crowds",
    "draw",
    "graphs",
    "grid",
    "other_shapes",
    "shared",
    "tables",
    "world",
]
