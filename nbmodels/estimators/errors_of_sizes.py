"""Label errors that depend on how much is known of a row, such as how long a text is.

See :mod:`nbmodels.fitting.errors_by_size`: where the scores of a cross-fitted model show it, the
model is fitted once more with error rates by size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from nbmodels.core.component import Given
from nbmodels.core.model import PRIOR
from nbmodels.errors import Caution
from nbmodels.fitting.cautions import INTERRUPTED
from nbmodels.fitting.checked_rows import checked_rows
from nbmodels.fitting.errors_by_size import (
    ERRORS,
    ErrorsBySize,
    errors_by_size,
    rates_by_size,
)
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.label_sources import LabelSource

#: Components beside the features under which error rates by size are looked for.
_LOOKED_AT = {PRIOR, "labels", "trusted"}

#: Largest size.
_MOST = 2.0**53

#: Of a fit that was interrupted before error rates by size were fitted.
_STOPPED = Caution(
    INTERRUPTED.category,
    "interrupted while error rates by size were fitted; labels are taken to be wrong at one rate",
)


def allowing_for_sizes(
    trained: Callable[[Mapping[str, LabelSource]], FittedModel],
    more: Mapping[str, LabelSource],
    size: Int[np.ndarray, " n"] | None,
    units: str = "counts",
) -> FittedModel:
    """A fit, with error rates by size where labels of small rows are wrong more often, or less.

    Args:
        trained: the fit, with sources beside those of the estimator.
        more: such sources.
        size: ``(N,)`` how much is known of each row; None where rows have no size.
        units: what sizes are of, such as words.
    """
    fitted = trained(more)
    if size is None or fitted.interrupted:
        return fitted
    errors = _errors(fitted, size)
    if errors is None:
        return fitted
    try:
        again = trained({**more, ERRORS: errors.source()})
        if again.interrupted:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return replace(fitted, interrupted=True, cautions=(*fitted.cautions, _STOPPED))
    weights = np.asarray(again.data.weights, float)[: len(size)]
    wrong = _wrong(again.label_posterior, errors, weights)
    rates = rates_by_size(errors, size, weights, wrong, "rows", units)
    return replace(again, error_rates=rates, cautions=(*again.cautions, rates.finding()))


def sizes_of_counts(x: Any) -> Int[np.ndarray, " n"]:
    """``(N,)`` sums of the rows of a table of counts."""
    # cells that are no counts are refused where they are fitted
    sums = np.nan_to_num(np.asarray(x.sum(axis=1), float), nan=0.0)
    return np.rint(np.clip(sums, 0, _MOST)).astype(int).ravel()


def sizes_of_rows(x: Any) -> Int[np.ndarray, " n"] | None:
    """``(N,)`` sums of the rows of a sparse table of counts; None of any other."""
    if not sparse.issparse(x) or not x.nnz:
        return None
    values = x.tocsr().data
    counts = values.min() >= 0 and bool((values == np.floor(values)).all())
    return sizes_of_counts(x) if counts else None


def words_of(texts: Any) -> Int[np.ndarray, " n"] | None:
    """``(N,)`` number of words of each text; None where rows are no texts."""
    if np.ndim(texts) != 1 or not all(isinstance(one, str) for one in texts):
        return None
    return np.array([len(one.split()) for one in texts])


def _errors(fitted: FittedModel, size: Int[np.ndarray, " n"]) -> ErrorsBySize | None:
    """Error rates by size, by the scores of the cross-fitted model."""
    cut = fitted if PRIOR in fitted.data.parts else fitted.counterpart
    if cut is None or cut.data.parts.get(PRIOR) is None or not cut.informative:
        return None
    channel = cut.fit.model.get("labels")
    if channel is None or isinstance(channel, Given):
        return None
    if set(cut.fit.model) - _LOOKED_AT - set(cut.scored):
        return None
    n, k = len(size), len(cut.names)
    codes = np.asarray(cut.data.parts["labels"])[:n]
    weights = np.asarray(cut.data.weights, float)[:n]
    free = (codes < k) & ~checked_rows(cut.fit.model, cut.data, n)
    component: Any = cut.fit.model[PRIOR]
    scores = component.biased(np.asarray(cut.data.parts[PRIOR], float)[:n])
    matrix = cut.noise_matrices["labels"].T
    found = errors_by_size(scores, np.where(free, codes, -1), weights, matrix, size)
    if found is None:
        return None
    # evidence of large rows that counts less than it says makes their labels seem too right
    if cut.settings.get("size_power") and found.relative[0] > found.relative[-1]:
        return None
    return replace(found, codes=np.where(codes < k, codes, -1))


def _wrong(
    resp: Float[np.ndarray, "n k"], errors: ErrorsBySize, weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " g"]:
    """``(G,)`` expected share of wrong labels of each group."""
    rows = np.flatnonzero((errors.codes >= 0) & (weights > 0))
    wrong = 1 - resp[rows, errors.codes[rows]] / resp[rows].sum(1)
    group, own = errors.group[rows], weights[rows]
    return np.bincount(group, own * wrong) / np.bincount(group, own)
