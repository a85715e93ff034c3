"""Audits of a fitted model's labels, as methods of the base of all estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from nbmodels.fitting.checked_rows import checked_rows

if TYPE_CHECKING:
    from nbmodels.audit import AuditPlan, AuditResult
    from nbmodels.estimators.base import LatentClassModel


def audit_plan(
    self: LatentClassModel,
    n_rows: int | None = None,
    *,
    margin: float | None = None,
    share: float | None = None,
    random_state: Any = None,
) -> AuditPlan:
    """Rows to check by hand, drawn by P(wrong), and how narrow the answer will be.

    Rows whose label is likely to be wrong are drawn more often, never so much that a useless
    P(wrong) would make the answer more than 5 % wider than that of a plain random sample. Rows that
    were checked (``trusted=``) or have ``sample_weight`` 0 are not drawn, and the answer is about
    the others, of which each counts once, whatever its weight.

    Args:
        n_rows: rows to check.
        margin: in the place of ``n_rows``, the wanted half width of the 90 % interval of the
            share of wrong labels: 0.02 asks for as many rows as plus or minus 2 points need.
        share: share of wrong labels that margins suppose; by default what the model expects,
            or what is expected if classes do not overlap, whichever is more. A half where the
            features say nothing of the labels.
        random_state: seed of the draw; the estimator's own by default.

    Returns:
        An :class:`nbmodels.AuditPlan` with ``.rows``, ``.sentence``, ``.margin`` and
        ``.to_json()``.

    Raises:
        DataError: an argument out of its range, or no label to check.
    """
    from nbmodels.audit.plan import draw_plan

    n = len(self.label_posterior_)
    data = self.fitted_.data
    return draw_plan(
        self.corrected_labels(),
        self.classes_,
        n_rows,
        margin=margin,
        share=share,
        left_out=checked_rows(self.fitted_.fit.model, data, n)
        | (np.asarray(data.weights)[:n] == 0),
        seed=self._seed(random_state),
        **expectations(self),
    )


def expectations(model: LatentClassModel) -> dict[str, Any]:
    """What a fitted model lets expect of the share of wrong labels, for ``draw_plan``."""
    other = model.fitted_.separable
    return {
        "separable": None if other is None else other.end.share_wrong,
        "informative": not model.fitted_.as_given,
    }


def audit(
    self: LatentClassModel,
    plan: AuditPlan,
    checked: Any,
    *,
    level: float = 0.9,
    partial: bool = False,
) -> AuditResult:
    """Share of wrong labels, flip rates and accuracy of the suggestions, from checked rows.

    Intervals hold whether or not the model is right. The result's ``trusted`` is the ``trusted=``
    of a further :meth:`fit`; what was checked before (``trusted=`` of this fit) is in it, too.

    Args:
        plan: from :meth:`audit_plan`.
        checked: true labels: ``(n,)`` in the order of ``plan.rows``, or a mapping or series
            from the ids in ``plan.rows["row"]``, if each is the id of one row only.
        level: probability of the intervals.
        partial: take a plan whose last rows are not checked yet.

    Returns:
        An :class:`nbmodels.AuditResult` with ``.sentence``, ``.share_wrong``, ``.noise``,
        ``.suggestions`` and ``.table()``.

    Raises:
        DataError: a row that is not in the plan, that is not checked, whose id other rows have,
            too, or whose label is no class; a plan of other rows than those of the fit.
    """
    from nbmodels.audit.plan import check_drawn_from
    from nbmodels.audit.result import audit

    check_is_fitted(self)
    found = audit(plan, checked, level=level, partial=partial)
    check_drawn_from(plan, self.corrected_labels())
    n, trusted = len(self.label_posterior_), found.trusted.copy()
    before = checked_rows(self.fitted_.fit.model, self.fitted_.data, n) & pd.isna(trusted)
    trusted[before] = self.classes_[self.label_posterior_[before].argmax(1)]
    return replace(found, trusted=trusted)
