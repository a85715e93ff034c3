"""Beside neighbours' votes: how many labels are wrong if it is the classes that overlap.

A model whose near items are of one class takes overlap for noise. A nonlinear classifier of the
same features, with noise on its scores, takes errors that follow the features for overlap. Labels
and features cannot tell which is right (:mod:`nbmodels.fitting.separable`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from nbmodels.core.component import Given
from nbmodels.core.jax_settings import computing
from nbmodels.errors import Caution, VerdictWarning
from nbmodels.fitting.fitted_model import FittedModel, given_codes
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.reference import nonlinear_predictions
from nbmodels.fitting.reference_scores import noise_on
from nbmodels.fitting.separable import NEAR

#: Groups of rows below which a classifier says nothing of the others.
_GROUPS = 30

#: Difference of the shares of wrong labels, and their ratio, from which on a warning says so.
_APART, _TIMES = 0.1, 2.0


def overlap_caution(fitted: FittedModel, points: Any, options: FitOptions) -> tuple[Caution, ...]:
    """A warning where few labels are wrong if classes overlap, and many by the neighbours.

    Args:
        fitted: labels and neighbours' votes.
        points: ``(N, d)`` items; where they are sparse, distances or None, or of few groups,
            nothing is compared.
        options: of the fits.
    """
    k, n = len(fitted.names), len(fitted.fit.resp)
    channel = fitted.fit.model.get("labels")
    if fitted.interrupted or channel is None or isinstance(channel, Given) or k < 2:
        return ()
    few = fitted.copies is not None and len(np.unique(fitted.copies)) < _GROUPS
    if points is None or sparse.issparse(points) or few:
        return ()
    weights = np.asarray(fitted.data.weights, float)[:n]
    codes = given_codes(fitted)
    reference = nonlinear_predictions(points, codes, k, fitted.copies)
    if reference is None or not reference.complete:
        return ()
    with computing(fitted.double):
        near = replace(fitted, scored=(NEAR,))
        found = noise_on(reference.logs, reference.fold, near, options)
    if found is None:
        return ()
    rows = np.flatnonzero(codes >= 0)
    about = weights[rows], None if fitted.copies is None else fitted.copies[rows]
    here, there = (
        1 - float(np.average(np.asarray(resp)[rows, codes[rows]], weights=about[0]))
        for resp in (fitted.label_posterior, found.fits[0].resp)
    )
    there *= found.probability(reference, codes, rows, *about)
    if here - there < _APART or here < _TIMES * there:
        return ()
    return (
        Caution(
            VerdictWarning,
            f"labels and features cannot tell how many labels are wrong: {here:.0%} if near items "
            f"are of one class, as this estimator assumes, and {there:.0%} if classes overlap and "
            "errors do not depend on the features. Suggestions change right labels where classes "
            "overlap; check some rows by hand (audit_plan)",
        ),
    )
