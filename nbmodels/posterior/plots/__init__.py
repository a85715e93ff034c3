"""Plots of a posterior, each with its numbers as a data frame.

All but three take the tree that :func:`nbmodels.posterior.sample` returns; :func:`noise_heat_map`
takes arrays, :func:`annotators_reported` a report of annotators, :func:`held_out_scores` the
candidates of a selection. Figures are built without
pyplot, so that no global state and no display is touched; traces and ranks are drawn by
arviz-plots.
"""

from nbmodels.posterior.plots.accuracies import annotators, annotators_reported
from nbmodels.posterior.plots.distributions import chains, item, prior_and_posterior
from nbmodels.posterior.plots.heat_map import noise_heat_map
from nbmodels.posterior.plots.intervals import agreement, class_shares, flip_rates, noise_matrix
from nbmodels.posterior.plots.selection import held_out_scores

__all__ = [
    "agreement",
    "annotators",
    "annotators_reported",
    "chains",
    "class_shares",
    "flip_rates",
    "held_out_scores",
    "item",
    "noise_heat_map",
    "noise_matrix",
    "prior_and_posterior",
]
