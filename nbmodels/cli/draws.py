"""Posterior draws of the noise matrix for a cleaned table, and the intervals from them."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from inference.arrays import on_device, random_key
from nbmodels.errors import NbmodelsWarning

#: Probability of the intervals.
LEVEL = 0.9

#: Rows times classes from which on every sweep of a cross-fitted model is kept.
_SWEEP_CELLS = 200_000

#: Difference in the share of wrong labels from which on draws have left the point estimate.
_GAP = 0.05

#: What intervals are that do not vary the features' parameters.
_CONDITIONAL = "the intervals hold the features' parameters at their fitted values"


@dataclass(frozen=True)
class Noise:
    """A noise matrix with its intervals, ``[observed, true]``, columns summing to one.

    Attributes:
        names: ``(K,)`` names of the classes.
        mean: ``(K, K)`` posterior means.
        low: ``(K, K)`` lower ends of the intervals.
        high: ``(K, K)`` upper ends of the intervals.
        symmetric: whether all classes share one error rate.
    """

    names: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    symmetric: bool = False

    @classmethod
    def of(cls, posterior: Any, *, symmetric: bool = False, level: float = LEVEL) -> Noise:
        """Means and equal-tailed intervals from posterior draws."""
        draws = posterior["posterior"]["noise_matrix"]
        flat = draws.values.reshape(-1, *draws.shape[-2:])
        low, high = np.quantile(flat, [(1 - level) / 2, (1 + level) / 2], axis=0)
        names = draws["true_class"].values.astype(str)
        return cls(names, flat.mean(0), low, high, symmetric)


def annotators_matrices(posterior: Any, level: float = LEVEL) -> pd.DataFrame:
    """Every annotator's noise matrix: a row a cell, ``true`` and ``vote``, with its interval."""
    from nbmodels.posterior.plots.shared import interval_summary, stacked_draws

    draws = stacked_draws(posterior, "votes_transitions")
    roles = {"votes_annotator": "annotator", "true_class": "true", "observed_class": "vote"}
    draws = draws.transpose(*roles, "sample")
    names = [draws[d].to_numpy().tolist() for d in roles]
    index = pd.MultiIndex.from_product(names, names=list(roles.values()))
    summary = interval_summary(draws, level)[["mean", "low", "high"]]
    return pd.concat([index.to_frame(index=False), summary], axis=1)


def noise_draws(
    model: Any, x: Any, options: dict[str, Any], cautions: list[str]
) -> tuple[Any, list[str]]:
    """Posterior draws of a fitted classifier, by its own ``posterior`` wherever that serves.

    A joint model of texts has tens of thousands of parameters, which take too long to draw in every
    sweep; draws of a joint model of a table may leave the point estimate. Then the noise matrix and
    the class shares are drawn alone, with the features' parameters as fitted.

    Args:
        model: fitted.
        x: the features of the fit.
        options: of ``posterior``.
        cautions: list to which reasons are added why results may be unreliable.

    Returns:
        the draws, and notes on them.
    """
    if "rounds" in model.chosen_:  # cross-fitted: draws do not vary the features' parameters
        # a sweep costs little without the features, and the calibration mixes slowly
        thin = int(np.clip(_SWEEP_CELLS / model.label_posterior_.size, 1, 5))
        return model.posterior("gibbs", thin=thin, **options), [_CONDITIONAL]
    if isinstance(x, pd.DataFrame):
        messages: list[str] = []
        with collected(messages):
            posterior = model.posterior("gibbs", **options)
        reason = _why_unreliable(model, posterior, messages)
        if not reason:
            return posterior, []
        cautions.append(reason)
    return _conditional_draws(model, x, options), [_CONDITIONAL]


def _why_unreliable(model: Any, posterior: Any, messages: list[str]) -> str:
    """Why draws of all parameters are not shown; empty where they are."""
    values = posterior["posterior"]
    shares, matrix = (
        values[name].mean(("chain", "draw")).values for name in ("class_prior", "noise_matrix")
    )
    drawn = 100 * (1 - float(shares @ np.diag(matrix)))
    fitted = 100 * (1 - float(model.class_prior_ @ np.diag(model.noise_matrix_)))
    why = f" ({messages[0]})" if messages else ""
    shown = "the intervals shown hold the features' parameters fixed and are too narrow"
    if abs(drawn - fitted) > 100 * _GAP:
        return (
            f"Point estimate and posterior disagree: {fitted:.0f} % against {drawn:.0f} % of "
            f"labels wrong{why}; {shown}"
        )
    return f"Draws of all parameters are unreliable{why}; {shown}" if messages else ""


def _conditional_draws(model: Any, x: Any, options: dict[str, Any]) -> Any:
    """Draws of the noise matrix and the class shares given the features' fitted log-likelihood."""

    from nbmodels.channels import ExternalEvidence
    from nbmodels.core.model import PRIOR, Data
    from nbmodels.posterior.sampling import about_mode, sample

    sizes = {name: value for name, value in options.items() if name != "random_state"}
    scores = ExternalEvidence.pack(model.predict_log_proba(x) - model.class_log_prior_)
    channel = ExternalEvidence.of(len(model.classes_))
    fitted = about_mode(model.fit_)
    given = [name for name in ("labels", "trusted") if name in fitted.model]
    held = replace(
        fitted,
        model={**{n: fitted.model[n] for n in (PRIOR, *given)}, "scores": channel},
        params={**{n: fitted.params[n] for n in (PRIOR, *given)}, "scores": channel.prior},
    )
    # without the rows that the fit was padded with
    known = {name: model.fitted_.data.parts[name][: len(scores)] for name in given}
    data = Data({PRIOR: None, **known, "scores": scores}, on_device(np.ones(len(scores))))
    return sample(held, data, random_key(options["random_state"]), names=model.classes_, **sizes)


@contextlib.contextmanager
def collected(into: list[str]) -> Iterator[None]:
    """Collect the library's warnings as sentences; issue all others."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield
    for one in caught:
        if issubclass(one.category, NbmodelsWarning):
            if str(one.message) not in into:
                into.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
