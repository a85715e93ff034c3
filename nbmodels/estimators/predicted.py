"""Classes and log-probabilities of new items, from their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np


class PredictedClasses:
    """Mixin of the estimators whose new items are rows of X."""

    classes_: np.ndarray

    def predict_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` P(true class | features)."""
        raise NotImplementedError  # the estimator's own

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """``(N, K)`` log P(true class | features)."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict(self, X: Any) -> np.ndarray:
        """``(N,)`` likeliest true class given the features."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]
