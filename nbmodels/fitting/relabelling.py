"""Labels corrected by the shape of the classes, where errors near their borders are found.

Where classes are not of the shape that is assumed, right labels may seem wrong. The nonlinear
classifier of given labels sides with nearly all corrections, right or wrong. But classes that are
as clear as the shape has them are so among near rows of all features, too: so labels are corrected
only where the nearest rows, their own labels corrected alike, mostly have the label that is
suggested, and where their given labels do not contradict the corrections.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit

from nbmodels.core.model import PRIOR
from nbmodels.errors import Caution, VerdictWarning
from nbmodels.fitting.cautions import PLAIN
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.nearest import nearest_labels, shares_nearby
from nbmodels.fitting.separable import Separable
from nbmodels.fitting.sides import HARMFUL_BY_NEIGHBOURS, sides_of

#: Part of the share of wrong labels up to which changed labels are few. Where the fit changed no
#: more, labels under such errors were right in 12 points more of 52 fits of development, and in no
#: fewer of any.
_STAYING = 1 / 3

#: Part of the changed labels from which on the nearest rows have the suggested one, and belief in
#: the changes by their given labels (:class:`nbmodels.fitting.sides.Sides`) from which on these
#: do not contradict. In the floor's worlds, seeds 20 to 35, one of 13 false corrections of clean
#: tables and 49 of 53 corrections of errors by the features had such support.
_SUPPORTED, _NOT_DOUBTED = 5 / 6, 0.5

#: Ratio of that share to the noise matrix's from which on the matrix is too clean.
_TIMES = 2.0

_SEEM = (
    "errors seem to be the oftener the nearer items are to another class, by the shape of the "
    "classes along linear scores: labels are corrected by that"
)
_STATED = Caution(VerdictWarning, _SEEM, "errors near borders")
_TOO_CLEAN = Caution(
    VerdictWarning,
    f"{_SEEM}. Noise that does not depend on the features cannot represent such errors: the noise "
    "matrix is too clean, and its intervals hold only if the classes overlap instead; check some "
    "rows by hand (audit_plan)",
)


def with_labels_by_shape(fitted: FittedModel, points: Any) -> FittedModel:
    """A cut fit whose labels would stay, corrected where errors near the borders are found.

    Held-out labels hardly show such errors: a plain classifier predicts labels near the borders as
    well as any noise model. The noise matrix stays the fit's own; where it is too clean, a warning
    says so.

    Args:
        fitted: a model of given labels with what their shape says. Where some are checked, there
            are other sources, features are not informative, the fit changes as many labels, the
            shape was not that of all items, or the nearest rows do not support the corrections,
            nothing is done.
        points: ``(N, d)`` items in the space of their features, dense or sparse; where they are
            None, or too few labels have a place in it, nearest rows are not asked.
    """
    near = fitted.separable
    about = {PRIOR, "labels", *fitted.scored}
    cut = fitted.data.parts.get(PRIOR) is not None
    if near is None or not cut or fitted.drawn is not None or fitted.interrupted:
        return fitted
    found = near.by_shape.near_borders
    if set(fitted.fit.model) - about or not found.found:
        return fitted
    codes = given_codes(fitted)
    labelled = np.flatnonzero(codes >= 0)
    weights = np.asarray(fitted.data.weights, float)[: len(codes)]
    differ = fitted.label_posterior.argmax(1)[labelled] != codes[labelled]
    changed = np.average(differ, weights=weights[labelled])
    if changed > _STAYING * found.share_wrong or not np.isin(labelled, found.rows).all():
        return fitted
    if not _supported(near, points, codes, weights, fitted.copies):
        return fitted
    resp = np.asarray(fitted.fit.resp, float)
    probs = resp / resp.sum(1, keepdims=True)
    probs[found.rows] = found.probs
    rates: Any = fitted.noise_matrix
    shares = np.average(found.probs, axis=0, weights=weights[found.rows])
    in_matrix = 1 - float(shares @ np.diag(rates))
    caution = _TOO_CLEAN if found.share_wrong > _TIMES * in_matrix else _STATED
    return replace(
        fitted,
        averaged=probs,
        noisy=float(expit(found.log_factor)),
        cautions=(*(one for one in fitted.cautions if one != PLAIN), caution),
    )


def _supported(
    near: Separable,
    points: Any,
    codes: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None,
) -> bool:
    """Whether the nearest rows support the corrections, by given and by corrected labels.

    Args:
        near: labels of the nearest rows, and the corrections.
        points: ``(n, d)`` items in the space of their features, dense or sparse, or None.
        codes: ``(n,)`` given labels.
        weights: ``(n,)`` row weights.
        copies: rows that are no neighbours, see :func:`nbmodels.fitting.nearest.nearest_labels`.
    """
    found, votes = near.by_shape.near_borders, near.nearby.argmax(1)
    suggested = np.full(len(codes), -1)
    suggested[found.rows] = found.probs.argmax(1)
    about = votes, codes[near.rows], suggested[near.rows]
    if sides_of(*about, HARMFUL_BY_NEIGHBOURS).belief < _NOT_DOUBTED:
        return False
    corrected = nearest_labels(points, suggested, found.probs.shape[1], copies=copies)
    if corrected is None:
        return True
    changed = suggested[corrected.rows] != codes[corrected.rows]
    if not changed.any():
        return True
    rows = corrected.rows[changed]
    same = shares_nearby(corrected)[changed].argmax(1) == suggested[rows]
    return bool(np.average(same, weights=weights[rows]) >= _SUPPORTED)
