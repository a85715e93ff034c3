"""Both ends of the noise that labels allow, as a method of the base of all estimators."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nbmodels.diagnostics.findings import TWO_ENDS
from nbmodels.errors import PosteriorWarning
from nbmodels.estimators.draws import of_single_rows

if TYPE_CHECKING:
    from nbmodels.diagnostics.noise_range import NoiseRange
    from nbmodels.estimators.base import LatentClassModel

#: Adaptation steps of NUTS, which takes up to ten times as long as Gibbs sampling.
_ADAPTATION = 200


def noise_range(self: LatentClassModel, draws: Any = None) -> NoiseRange:
    """``noise_range_`` from posterior draws that there are already.

    Args:
        draws: of this fit, from :meth:`posterior`; None to draw them: by Gibbs sampling, or by NUTS
            where row weights are other than 0 and 1, which takes minutes from ten thousand rows on.

    Raises:
        AttributeError: there is no noisy label an item, too few of them, no features, features
            that do not surely predict held-out labels, or the noise is known; or the estimator does
            not offer it.
    """
    from nbmodels.diagnostics.check_input import checked_labels, outcome_of
    from nbmodels.diagnostics.noise_range import noise_range as both_ends

    check_is_fitted(self)
    fitted = self.fitted_
    other = fitted.separable
    if self._one_end:
        raise AttributeError(f"noise_range_: {type(self).__name__} has none: {self._one_end}")
    if other is None and fitted.drawn is not None:
        raise AttributeError(
            "noise_range_: the features do not surely predict held-out labels, so that nothing is "
            "known of the noise but its prior, and what rows that were checked show"
        )
    if other is None:
        raise AttributeError(
            "noise_range_: expected a fit to one noisy label an item, with features and noise "
            "that is to be learned, and 30 labels or more"
        )
    if draws is None:
        with warnings.catch_warnings(action="ignore", category=PosteriorWarning):
            draws = _drawn(self)
    found = draws["posterior"].dataset
    rates = found["noise_matrix"].to_numpy().swapaxes(-1, -2)
    shares = found["class_prior"].to_numpy() if "class_prior" in found else self.class_prior_
    k = len(fitted.names)
    rates = rates.reshape(-1, k, k)
    # of all items, of which the neighbours of a sample were found
    reported = replace(fitted.fit, resp=self.label_posterior_)
    outcome = outcome_of(reported, fitted.data, fitted.names)
    share = replace(outcome, share=fitted.share_wrong).expected
    z = [f.statistic for f in self.verdict().findings if f.name == TWO_ENDS]
    checked = checked_labels(fitted.fit, fitted.data, other)
    return both_ends(
        fitted.names,
        self.noise_matrix_.T,
        share,
        rates,
        np.broadcast_to(np.reshape(shares, (-1, k)), (len(rates), k)),
        other,
        z[0] if z else np.nan,
        self._seed(),
        fitted.noisy,
        None if checked is None else checked.ends,
    )


def _drawn(self: LatentClassModel) -> Any:
    """Draws of the noise by the method that takes the row weights."""
    shared: dict[str, Any] = {"draws": 200, "chains": 2, "keep": "parameters"}
    if of_single_rows(self.fitted_):
        return self.posterior(**shared)
    return self.posterior("nuts", warmup=_ADAPTATION, **shared)
