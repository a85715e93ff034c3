"""What a notebook lists of a fitted estimator, as methods of the base of all estimators.

scikit-learn 1.9 reads every attribute where names are completed, and for its table in HTML: a cell
that ends in ``model.fit(X, y)`` would take posterior draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from nbmodels.estimators.base import LatentClassModel

#: Attributes that take posterior draws, which no one asks for who looks at an estimator.
_DRAWN = frozenset({"noise_range_"})

#: Set while scikit-learn's table is made.
_TABLED = "_in_table"


def listed(self: LatentClassModel) -> list[str]:
    """Names of the attributes; those that take draws unread, of fitted estimators only."""
    ready = "fitted_" in vars(self) and _TABLED not in vars(self)
    every = object.__dir__(self)
    return [n for n in every if (ready if n in _DRAWN else hasattr(self, n))]


def shown(self: LatentClassModel, doc_link: str = "") -> Any:
    """Attributes for scikit-learn's table, without those that take draws."""
    setattr(self, _TABLED, True)
    try:
        return BaseEstimator._get_fitted_attr_html(self, doc_link)
    finally:
        delattr(self, _TABLED)
