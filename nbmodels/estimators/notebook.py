"""What a notebook lists of a fitted estimator, computed without sampling."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Attributes that take posterior draws, which no one asks for who looks at an estimator.
_DRAWN = frozenset({"noise_range_"})


class QuickLists:
    """Lists attributes that take posterior draws unread, and shows them in no table.

    scikit-learn 1.9 reads every attribute where names are completed, and for its representation in
    HTML: a cell that ends in ``model.fit(X, y)`` would sample.
    """

    def __dir__(self) -> Iterable[str]:
        listed = "fitted_" in vars(self) and not vars(self).get("_shown", False)
        every = object.__dir__(self)
        return [n for n in every if (listed if n in _DRAWN else hasattr(self, n))]

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        self._shown = True
        try:
            return super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        finally:
            del self._shown
