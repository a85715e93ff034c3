"""Training on a large table: everything is selected on a sample of its rows, then fitted to all.

Selecting takes some hundred fits, of which each would pass over all rows. Settings that the sample
cannot distinguish differ by about a standard error of its held-out labels, some 0.01 nats a label
(0.02 with hundreds of classes): all rows may prefer another one, by no more than so much. Columns
are coded as all rows are, and the fit to all begins at that of the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Float, Int

from inference.arrays import on_device
from nbmodels.fitting.builder import ModelBuilder
from nbmodels.fitting.checked_rows import contradicted
from nbmodels.fitting.cross_fitted import cross_fitted
from nbmodels.fitting.fitted_model import FittedModel
from nbmodels.fitting.judged_rows import to_all
from nbmodels.fitting.options import HELD_OUT_SEED, FitOptions
from nbmodels.fitting.plain import pseudo_bma
from nbmodels.fitting.scores import Candidate

#: Rows of the sample; tables of more than twice as many are sampled.
SAMPLE = 16_384

#: Cells (rows x classes) of the sample, where there are many classes.
_CELLS = 2_000_000

#: Fits a candidate jointly, from a start, with attributes of the result.
FitJoint = Callable[..., FittedModel]


def train_by_sample(
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    fit_joint: FitJoint,
    *,
    train: Callable[[ModelBuilder], FittedModel],
    passes: Callable[[FittedModel], bool],
) -> FittedModel:
    """Train a table's model with all that is open selected on a sample.

    Args:
        build: builder of its models.
        names: ``(K,)`` names of the classes.
        options: of the fits.
        fit_joint: the estimator's way to fit a candidate jointly.
        train: selects and fits a model of the sample.
        passes: whether a joint fit passes its checks.

    Returns:
        the fit of all rows. What was compared is of the sample's rows: held-out scores are NaN
        elsewhere.
    """
    rows = build.drawn_rows(_sampled(build.n_classes), np.random.default_rng(HELD_OUT_SEED))
    found = train(build.of_rows(rows))
    fitted = None
    if not found.scored and "rounds" not in found.chosen:
        fitted = _joint(found, build, names, options, fit_joint)
        if not fitted.interrupted and not passes(fitted):
            fitted = None
    if fitted is None:
        fitted = _cross_fitted(found, build, names, options)
    own = found.fit.cautions(names)
    # though perhaps not in the sample
    sure = contradicted(fitted.fit.model, fitted.data, len(names))
    if found.informative:  # otherwise all rows were compared, too
        fitted = replace(
            fitted,
            plain=found.plain,
            noisy=1.0 if sure else _noisy(found, build.n_rows / len(rows)),
            held_out_scores=_of_all(found.held_out_scores, rows, build.n_rows),
            plain_scores=_of_all(found.plain_scores, rows, build.n_rows),
            cautions=(*fitted.cautions, *(c for c in found.cautions if c not in own)),
        )
    if found.choice is not None:
        found.choice.attrs["rows"] = len(rows)
    return replace(
        fitted,
        chosen=found.chosen,
        choice=found.choice,
        interrupted=fitted.interrupted or found.interrupted,
    )


def _sampled(n_classes: int) -> int:
    """Rows of the sample, whose halves and quarters are padded by no row."""
    return next(
        (n for n in (SAMPLE, SAMPLE // 2) if n * n_classes <= _CELLS),
        SAMPLE // 4,
    )


def _joint(
    found: FittedModel,
    build: ModelBuilder,
    names: np.ndarray,
    options: FitOptions,
    fit_joint: FitJoint,
) -> FittedModel:
    settings = found.settings
    start = jax.tree.map(on_device, found.fit.params)
    jacobian = build.log_jacobian(settings)
    candidate = with_priors_of(found, build(settings))
    about = (candidate, names, build.n_rows, options, start)
    return fit_joint(*about, log_jacobian=jacobian, settings=settings)


def with_priors_of(near: FittedModel, candidate: Candidate) -> Candidate:
    """A candidate whose priors are learned from those of another fit on, not from their first ones.

    Begun at that fit's solution under its first priors, a fit would leave it and come back.
    """
    known = {name: near.fit.model[name] for name in candidate.learned}
    return candidate._replace(model={**candidate.model, **jax.tree.map(on_device, known)})


def _cross_fitted(
    found: FittedModel, build: ModelBuilder, names: np.ndarray, options: FitOptions
) -> FittedModel:
    near = found.informative and bool(found.scored)
    of_labels = {n: q for n, q in found.fit.params.items() if n not in build.features}
    return cross_fitted(
        build,
        build.features,
        names,
        build.n_rows,
        options,
        grid={name: (value,) for name, value in found.settings.items()},
        rounds=found.chosen.get("rounds", 0),
        copies=build.copies,
        hold_out=not found.informative,
        start=of_labels if near else None,
        priors=found.fit.model if near else None,
        warm=near,
    )


def _noisy(found: FittedModel, share: float) -> float:
    """Probability that labels are noisy, by ``share`` times the evidence of held-out labels."""
    scores, plain = found.held_out_scores, found.plain_scores
    if not found.scored or found.noisy == 1 or scores is None or plain is None:
        return found.noisy
    weights = np.asarray(found.data.weights, float)[: len(scores)]
    return pseudo_bma(scores, plain, share * weights)


def _of_all(
    values: Float[np.ndarray, " m"] | None, rows: Int[np.ndarray, " m"], n_rows: int
) -> Float[np.ndarray, " n"] | None:
    return None if values is None else to_all(values, rows, n_rows)
