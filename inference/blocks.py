"""Blocks of rows for computations on tables of items and classes that no cache holds as a whole."""

from __future__ import annotations

#: Classes from which rows are taken block by block, cells of a block, and its fewest rows.
MANY_CLASSES, _CELLS, _LEAST = 64, 50_000, 32


def rows_of_block(n_rows: int, n_classes: int) -> int:
    """Rows of a block that stays in a core's cache: a power of two that divides ``n_rows``.

    Args:
        n_rows: N.
        n_classes: K; with few classes, or where blocks would be short, all rows are one block.
    """
    rows = min(n_rows & -n_rows, 1 << (_CELLS // n_classes).bit_length())
    return n_rows if n_classes < MANY_CLASSES or rows < _LEAST else rows
