"""What a fit to given labels is compared with: the neighbours' end, and reference predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from nbmodels.fitting.copied_rows import copies_caution
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.noise_by_shape import noise_by_shape
from nbmodels.fitting.noise_levels import averaged_over_levels
from nbmodels.fitting.noise_on_linear_classes import with_linear_classes
from nbmodels.fitting.noise_on_normal_classes import with_normal_classes
from nbmodels.fitting.one_thread import one_thread_if_small
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.points import Coding, point_coding
from nbmodels.fitting.reference_beside import with_reference_beside
from nbmodels.fitting.reference_floor import with_reference
from nbmodels.fitting.relabelling import with_labels_by_shape
from nbmodels.fitting.separable import with_separable
from nbmodels.fitting.serial_rows import serial_caution


def with_comparisons(
    fitted: FittedModel,
    x: Any,
    options: Callable[[], FitOptions],
    missing: Any = None,
    *,
    warn_of_copies: bool = True,
    predictions: bool = True,
) -> FittedModel:
    """A fitted model with what labels say by near items, and by a nonlinear classifier.

    Args:
        fitted: a model of given labels.
        x: its rows of features, see :func:`nbmodels.fitting.points.point_coding`.
        options: makes those of fits, where the fit's precision holds.
        missing: booleans of cells that are missing, or None.
        warn_of_copies: whether groups of rows are copies that nobody named.
        predictions: whether new items are predicted by that classifier where it is surely better.
    """
    with one_thread_if_small(x):
        coding = point_coding(x, missing)
        where = None if coding is None else coding(x, missing)
        words = x if _counts(x) else where
        averaged = averaged_over_levels(_with_near(fitted, where, words))
        held = _with_nonlinear(averaged, where, words, options, coding if predictions else None)
        if fitted.drawn is not None and held.drawn is None:
            held = _with_near(held, where, words)  # its noise is learned now
        found = with_labels_by_shape(held, where)
    if not warn_of_copies:
        return found
    weights = np.asarray(found.data.weights)[: len(found.fit.resp)]
    copies = copies_caution(found.copies, weights)
    return replace(found, cautions=(*found.cautions, *(copies or serial_caution(where, found))))


def _with_nonlinear(
    fitted: FittedModel,
    where: Any,
    words: Any,
    options: Callable[[], FitOptions],
    coding: Coding | None,
) -> FittedModel:
    """By labels where these alone are known, and by all that is known beside the features."""
    held = with_reference(fitted, where, options, coding)
    clear = with_normal_classes(fitted, held, where, options, coding)
    if clear is held:
        learn = coding is not None
        clear = with_linear_classes(fitted, held, where, words, options, learn)
    return with_reference_beside(clear, where, options, coding)


def _counts(x: Any) -> bool:
    """Whether sparse rows are counts of words, which tell more of classes than their weights."""
    return sparse.issparse(x) and bool(np.isfinite(x.data).all() and (x.data >= 0).all())


def _with_near(fitted: FittedModel, points: Any, words: Any) -> FittedModel:
    """With the noise by near items, and by the shape of the classes.

    Args:
        fitted: a model of given labels.
        points: items in the space of their features.
        words: the same, as counts of words where there are some.
    """
    fitted = with_separable(fitted, points)
    found = fitted.separable
    if found is None or not hasattr(points, "shape"):
        return fitted
    codes = np.full(len(fitted.fit.resp), -1)
    weights = np.zeros(len(codes))
    weights[found.rows] = found.weights
    counted = found.rows[found.weights > 0]
    codes[counted] = found.codes[found.weights > 0]
    about = words, codes, len(fitted.names), weights, fitted.copies
    return replace(fitted, separable=replace(found, by_shape=noise_by_shape(*about)))
