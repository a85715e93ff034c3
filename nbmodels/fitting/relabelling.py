"""Labels corrected by the shape of the classes, where it finds errors that a fit does not.

Where classes are not of the shape that is assumed, right labels may seem wrong. The nonlinear
classifier of given labels sides with nearly all corrections, right or wrong. But classes that are
as clear as the shape has them are so among near rows of all features, too: so labels are corrected
only where the nearest rows, their own labels corrected alike, mostly have the label that is
suggested, and where their given labels do not contradict the corrections. A fit that corrects many
labels itself mostly knows better, and these must surely side against it.
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
from nbmodels.fitting.errors_by_size import ERRORS
from nbmodels.fitting.errors_near_borders import ErrorsByShape
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.nearest import nearest_labels, shares_nearby
from nbmodels.fitting.sides import HARMFUL_BY_NEIGHBOURS, sides_of

#: Part of the share of wrong labels up to which changed labels are few. Of 137 fits of development
#: that changed fewer, to tables and texts, labels by the shape were right in two points more in
#: 127, and in none in more than two points less.
_STAYING = 1 / 2

#: Part of the changed labels from which on the nearest rows have the suggested one, and belief in
#: the changes by their given labels (:class:`nbmodels.fitting.sides.Sides`) from which on these
#: do not contradict. In the floor's worlds, seeds 20 to 35, one of 13 false corrections of clean
#: tables and 49 of 53 corrections of errors by the features had such support.
_SUPPORTED, _NOT_DOUBTED = 0.8, 0.5

#: Logarithm of a Bayes factor from which on nearest rows are not asked: those of texts, and of many
#: classes, are often of another class. Of 2,401 clean tables and texts one had as much for 8 % of
#: wrong labels and more (44 beyond 3, 11 beyond 10).
_OVERWHELMING = 30.0

#: Where a fit changes more: part of the labels that differ from its own from which on the nearest
#: rows have the suggested one, and standard errors by which their given labels side with it.
_INSTEAD, _SURELY = 0.75, 4.0

#: Ratio of that share to the noise matrix's from which on the matrix is too clean.
_TIMES = 2.0

#: What is found, as sentences begin, and the name of a finding.
SEEM_NEAR_BORDERS = "errors seem to be the oftener the nearer items are to another class"
SEEM_ANYWHERE = "more labels seem to be wrong than held-out labels show"
ERRORS_ANYWHERE = "errors by the shape of the classes"

_LABELS = "by the shape of the classes along linear scores: labels are corrected by that"


def _cautions(seem: str, why: str, finding: str) -> tuple[Caution, Caution]:
    """Warnings of corrected labels: beside a noise matrix that holds the errors, or too clean."""
    said = f"{seem}, {_LABELS}"
    too_clean = (
        f"{said}. {why} the noise matrix is too clean, and its intervals hold only if the classes "
        "overlap instead; check some rows by hand (audit_plan)"
    )
    return Caution(VerdictWarning, said, finding), Caution(VerdictWarning, too_clean)


_NEAR = _cautions(
    SEEM_NEAR_BORDERS,
    "Noise that does not depend on the features cannot represent such errors:",
    "errors near borders",
)
_ANYWHERE = _cautions(
    SEEM_ANYWHERE,
    "Held-out labels cannot distinguish such errors from classes that overlap:",
    ERRORS_ANYWHERE,
)


def with_labels_by_shape(fitted: FittedModel, points: Any) -> FittedModel:
    """A cut fit whose labels would stay, corrected where the shape finds errors.

    Held-out labels hardly show errors near the borders: a plain classifier predicts labels there as
    well as any noise model. Of few rows they hardly show any. The noise matrix stays the fit's own;
    where it is too clean, a warning says so.

    Args:
        fitted: a model of given labels with what their shape says. Where some are checked, there
            are other sources, class shares are known, features are not informative, the shape was
            not that of all items, or the nearest rows do not support the corrections, nothing is
            done.
        points: ``(N, d)`` items in the space of their features, dense or sparse; where they are
            None, or too few labels have a place in it, nearest rows are not asked.
    """
    near = fitted.separable
    parts = {PRIOR, ERRORS, "labels", *fitted.scored}
    cut = fitted.data.parts.get(PRIOR) is not None
    if near is None or not cut or fitted.drawn is not None or fitted.interrupted:
        return fitted
    found = near.by_shape.likeliest
    known = fitted.settings.get("class_prior")
    if known is not None or set(fitted.fit.model) - parts or not found.found:
        return fitted
    if not supports(found, near.rows, near.votes, points, fitted):
        return fitted
    weights = np.asarray(fitted.data.weights, float)[: len(fitted.fit.resp)]
    resp = np.asarray(fitted.fit.resp, float)
    probs = resp / resp.sum(1, keepdims=True)
    probs[found.rows] = found.probs
    rates: Any = fitted.noise_matrix
    shares = np.average(found.probs, axis=0, weights=weights[found.rows])
    in_matrix = 1 - float(shares @ np.diag(rates))
    stated, too_clean = _NEAR if found is near.by_shape.near_borders else _ANYWHERE
    caution = too_clean if found.share_wrong > _TIMES * in_matrix else stated
    return replace(
        fitted,
        averaged=probs,
        noisy=float(expit(found.log_factor)),
        cautions=(*(one for one in fitted.cautions if one != PLAIN), caution),
    )


def supports(
    found: ErrorsByShape,
    rows: Int[np.ndarray, " m"],
    votes: Int[np.ndarray, " m"],
    points: Any,
    fitted: FittedModel,
) -> bool:
    """Whether the nearest rows support the corrections of a fit's labels.

    They do where the fit changes few labels, the given labels of the nearest rows do not contradict
    the corrections, and these labels, corrected alike, mostly are what is suggested, or evidence of
    errors is overwhelming; and where it changes more, if given labels surely side with the
    corrections, and corrected ones mostly do.

    Args:
        found: the corrections; of all labels, or the fit stays.
        rows: items whose nearest rows are known.
        votes: most frequent of these rows' given labels.
        points: ``(n, d)`` items in the space of their features, dense or sparse; not asked where
            they are None.
        fitted: whose labels would be corrected.
    """
    codes = given_codes(fitted)
    weights = np.asarray(fitted.data.weights, float)[: len(codes)]
    labelled = np.flatnonzero((codes >= 0) & (weights > 0))
    if not np.isin(labelled, found.rows).all():
        return False
    own, suggested = fitted.label_posterior.argmax(1), np.full(len(codes), -1)
    suggested[found.rows] = found.probs.argmax(1)
    changed = np.average(own[labelled] != codes[labelled], weights=weights[labelled])
    about = points, suggested, weights, fitted.copies
    if changed <= _STAYING * found.share_wrong:
        if found.log_factor > _OVERWHELMING:
            return True
        sides = sides_of(votes, codes[rows], suggested[rows], HARMFUL_BY_NEIGHBOURS)
        return sides.belief >= _NOT_DOUBTED and _share_nearby(codes, *about) >= _SUPPORTED
    sides = sides_of(votes, own[rows], suggested[rows])
    return sides.z <= -_SURELY and _share_nearby(own, *about) >= _INSTEAD


def _share_nearby(
    instead: Int[np.ndarray, " n"],
    points: Any,
    suggested: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    copies: Int[np.ndarray, " n"] | None,
) -> float:
    """Share of labels in the place of others that most of the nearest rows are suggested, too.

    One where there is none, or no row has a place among others.
    """
    nearest = nearest_labels(points, suggested, int(suggested.max()) + 1, copies=copies)
    if nearest is None:
        return 1.0
    differ = suggested[nearest.rows] != instead[nearest.rows]
    if not differ.any():
        return 1.0
    rows = nearest.rows[differ]
    same = shares_nearby(nearest)[differ].argmax(1) == suggested[rows]
    return float(np.average(same, weights=weights[rows]))
