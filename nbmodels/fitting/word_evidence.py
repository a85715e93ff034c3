"""Naive Bayes of words: their evidence for each class, and a classifier along its mean.

The evidence of a text grows with its length, and is far too sure of itself, since words depend on
each other. Its mean per word is a linear score that is nearly normal within a class; where classes
of that shape were found (:mod:`nbmodels.fitting.noise_by_shape`), new texts are classified by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import sparse

from nbmodels.fitting.class_shapes import Parts

#: Pseudo-words of each class and column.
_PSEUDO = 1.0


def log_words(counts: Float[np.ndarray, "d k"]) -> Float[np.ndarray, "d k"]:
    """Log-probabilities of the words of each class, from their smoothed numbers."""
    known = counts + _PSEUDO
    out: np.ndarray = np.log(known / known.sum(0))
    return out


def per_word(evidence: Float[np.ndarray, "n k"], x: Any) -> Float[np.ndarray, "n k"]:
    """Mean evidence of the words of each row of counts; zero of rows without any."""
    size = np.asarray(x.sum(1)).ravel()
    out: np.ndarray = evidence / np.where(size > 0, size, 1)[:, None]
    return out


@dataclass(frozen=True)
class WordClassifier:
    """P(class | words) by classes along the mean evidence per word.

    Attributes:
        words: ``(d, K)`` log-probabilities of the words of each class.
        parts: one a class, along the evidence for each class beside that for the last one.
    """

    words: Float[np.ndarray, "d k"]
    parts: Parts

    def log_probabilities(self, x: Any, missing: Any = None) -> Float[np.ndarray, "n k"]:
        """Of the classes of new rows.

        Args:
            x: ``(n, d)`` counts of words, sparse; missing ones are none.
            missing: not asked.
        """
        counts = sparse.csr_array(x).astype(float)
        counts.data = np.nan_to_num(counts.data)
        scores = per_word(counts @ self.words, counts)
        return self.parts.log_probabilities(scores[:, :-1] - scores[:, -1:])
