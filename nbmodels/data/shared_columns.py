"""Columns that several sources share: their evidence counts once for each.

Sources are independent given the class by assumption. A column in two of them is not, and makes
probabilities far too sure, though classes may be as right as with one: of two copies of 80 words,
300 items, log-losses of 0.11 to 0.18 became 0.33 to 0.64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from nbmodels.errors import Caution, VerdictWarning, counted

#: Fewest cells that differ from the most frequent one: fewer are alike by chance.
_LEAST_CELLS = 5

#: Least share of the columns of the smaller source, also in the other, that is warned of.
_SHARED = 0.5


def shared_columns(sources: Mapping[str, Any]) -> tuple[Caution, ...]:
    """Warnings of sources that have the same columns.

    Args:
        sources: tables of one row an item, by source; others are left out.
    """
    tables = {name: x for name, x in sources.items() if getattr(x, "ndim", None) == 2}
    if len(tables) < 2:
        return ()
    found = {name: set(_digests(x)) for name, x in tables.items()}
    out = []
    for one, other in combinations(found, 2):
        if tables[one].shape[0] != tables[other].shape[0]:
            continue
        both, least = len(found[one] & found[other]), min(len(found[one]), len(found[other]))
        if both and both >= _SHARED * least:
            sentence = (
                f"sources {one!r} and {other!r} share {both} of the {counted(least, 'column')} of "
                "the smaller one that vary: their evidence counts twice, and probabilities are too "
                "sure; leave them out of one"
            )
            out.append(Caution(VerdictWarning, sentence))
    return tuple(out)


def _digests(x: Any) -> Iterator[bytes]:
    """A digest of each column that varies, the same for equal values in other containers."""
    if sparse.issparse(x):
        columns = sparse.csc_array(x, dtype=float, copy=True)
        columns.sum_duplicates()
        columns.eliminate_zeros()
        for start, end in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
            yield from _digest(columns.indices[start:end], columns.data[start:end], x.shape[0])
        return
    frame = x if isinstance(x, pd.DataFrame) else pd.DataFrame(np.asarray(x))
    for j in range(frame.shape[1]):
        values = _numbers(frame.iloc[:, j])
        at = np.flatnonzero(values)
        yield from _digest(at, values[at], len(values))


def _numbers(column: pd.Series) -> np.ndarray:
    """A column as numbers where it can be read so, symbols by their texts."""
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    if numbers.isna().equals(column.isna()) and not np.iscomplexobj(numbers):
        return numbers.to_numpy(dtype=float, na_value=np.nan)
    texts = column.astype(str).to_numpy(object)
    return pd.util.hash_array(texts, categorize=True).astype(float)


def _digest(at: np.ndarray, values: np.ndarray, n_rows: int) -> Iterator[bytes]:
    counts = [n_rows - len(at), *np.unique(values, return_counts=True)[1]]
    if n_rows - max(counts) >= _LEAST_CELLS:
        yield blake2b(at.astype(np.int64).tobytes() + values.tobytes(), digest_size=16).digest()
