"""Results that read as a sentence where they are printed, and with a table in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class Readable:
    """Base of results with a ``sentence`` and a ``table()``."""

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        raise NotImplementedError  # every result has its own

    def table(self) -> pd.DataFrame:
        """The result as a table."""
        raise NotImplementedError  # every result has its own

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>\n{self.table().to_html()}"
