"""Text as sparse features: the one place where a vocabulary is built.

Texts become TF-IDF weights of their words, which the multinomial emission takes for counts. Against
raw counts that matters: rows are scaled to length one, so a long text, whose words depend on each
other, does not outweigh its label, and words that are common in all classes have little weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.errors import DataError

#: A word must occur in so many texts ...
MIN_TEXTS = 3
#: ... unless the table has fewer rows than this: then one text is enough.
FEW_TEXTS = 100
#: Words in more than this share of the texts are left out.
MAX_SHARE = 0.5
#: Largest vocabulary; the most frequent words stay.
MAX_WORDS = 50_000


@dataclass(frozen=True)
class TextFeatures:
    """Texts as a sparse matrix.

    Attributes:
        x: ``(N, d)`` CSR matrix of TF-IDF weights, rows of length one (zero for empty texts).
        vectoriser: fitted scikit-learn vectoriser, for new texts.
    """

    x: Any
    vectoriser: Any

    @property
    def words(self) -> np.ndarray:
        """``(d,)`` the vocabulary."""
        return self.vectoriser.get_feature_names_out()


def text_features(texts: Any) -> TextFeatures:
    """Vocabulary and TF-IDF weights of a column of texts; null texts are empty ones.

    No list of stop words and no stemming, so that any language with words between spaces will do.

    Raises:
        DataError: not texts, or no word occurs often enough.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    column = pd.Series(texts)
    known = column[column.notna()]
    for row, value in known.items():
        if not isinstance(value, str):
            raise DataError(f"text: row {row} is {value!s}, no text")
    few = len(column) < FEW_TEXTS
    vectoriser = TfidfVectorizer(
        sublinear_tf=True,
        min_df=1 if few else MIN_TEXTS,
        # in a handful of texts one half is a handful too
        max_df=1.0 if few else MAX_SHARE,
        max_features=MAX_WORDS,
        dtype=np.float64,
    )
    try:
        x = vectoriser.fit_transform(column.fillna("").astype(object))
    except ValueError as error:
        raise DataError(f"text: no words to learn from ({error})") from error
    return TextFeatures(x, vectoriser)
