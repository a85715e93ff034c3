"""Joint fitting: features and labels in one model, whose responsibilities update both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fitted_model import FittedModel, fitted_model
from nbmodels.fitting.holdout import compare_on_holdout
from nbmodels.fitting.options import FitOptions
from nbmodels.fitting.scores import Candidate, Settings, cautious
from nbmodels.fitting.trials import choice_table


def joint(
    candidate: Candidate,
    names: np.ndarray,
    n_rows: int,
    options: FitOptions,
    *,
    start: Any = None,
    **more: Any,
) -> FittedModel:
    """Fit a model by EM or CAVI, or by collapsed updates where graphs have a weight.

    Args:
        candidate: model and encoded data, with the names of the priors to be learned.
        names: ``(K,)`` names of the classes.
        n_rows: number of rows before padding.
        options: of the fit.
        start: parameters to begin from instead of the labels.
        more: ``log_jacobian`` and other attributes of the result; see
            :func:`nbmodels.fitting.fitted_model.fitted_model`.
    """
    model, data, learned = candidate
    quantity = "change" if options.graphs else "objective"
    with options.progress.iterations(quantity) as report:
        fit = fit_with_learned_priors(model, data, learned, options, start=start, report=report)
    return fitted_model(fit, data, names, n_rows, collapsed=bool(options.graphs), **more)


def select_joint(
    build: Callable[[Settings], Candidate],
    grid: Mapping[str, Sequence[Any]],
    options: FitOptions,
) -> tuple[Settings, pd.DataFrame | None, bool]:
    """Settings of a joint fit, selected one after the other on held-out labels.

    After Ctrl-C they are those selected until then, and the cautious ones of the rest.

    Args:
        build: model and data under given settings.
        grid: values of each open setting, the cautious one first.
        options: of the fits.

    Returns:
        the settings; the table of what was compared, None where nothing was; and whether Ctrl-C
        ended the selection.
    """
    settings: Settings = cautious(grid)
    tables, interrupted = [], False
    try:
        for name, values in grid.items():
            tried = [{**settings, name: value} for value in values]
            models, data, _ = zip(*map(build, tried), strict=True)
            if len(values) < 2 or "labels" not in models[0]:
                continue
            found = compare_on_holdout(models, data, options, f"choosing {name}")
            settings = tried[found.best]
            tables.append(choice_table(tried, found, settings))
    except KeyboardInterrupt:
        interrupted = True
    return settings, pd.concat(tables, ignore_index=True) if tables else None, interrupted
