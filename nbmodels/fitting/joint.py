"""Joint fitting: features and labels in one model, whose responsibilities update both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from inference.blocks import MANY_CLASSES
from nbmodels.core.component import Component
from nbmodels.core.model import Data, Model
from nbmodels.fitting.empirical_bayes import fit_with_learned_priors
from nbmodels.fitting.fitted_model import FittedModel, fitted_model
from nbmodels.fitting.holdout import compare_on_holdout
from nbmodels.fitting.options import MANY_ROWS, FitOptions
from nbmodels.fitting.scores import Candidate, Settings, cautious
from nbmodels.fitting.trials import choice_table

#: Labels below which components are compared by cross-validation.
_FEW_LABELS = 3_000


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
        roughly = start is not None and n_rows >= MANY_ROWS and len(names) >= MANY_CLASSES
        how: dict[str, Any] = {"start": start, "report": report, "roughly": roughly}
        fit = fit_with_learned_priors(model, data, learned, options, **how)
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


class Alternative(NamedTuple):
    """A component under settings that are to be selected.

    Attributes:
        settings: values by name.
        component: under them.
    """

    settings: Mapping[str, Any]
    component: Component


class SelectedParts(NamedTuple):
    """A model as held-out labels selected it.

    Attributes:
        model: components by name.
        chosen: values of the settings that were open, by name.
        table: what was compared, a row a candidate; None where nothing was.
        interrupted: whether Ctrl-C ended the selection.
    """

    model: Model
    chosen: Settings
    table: pd.DataFrame | None
    interrupted: bool


def select_parts(
    forms: Sequence[tuple[Settings, Model]],
    data: Data,
    alternatives: Mapping[str, Sequence[Alternative]],
    options: FitOptions,
) -> SelectedParts:
    """Components of a joint fit, selected one after the other by labels held out of ``"labels"``.

    They are selected under each form of the model anew: a graph beside labels whose errors have
    another form counts by the less. Of few labels a tenth would compare by chance: of 300 it has
    led a graph's weight astray in half of the data sets, after which the joint fit confirmed its
    own labels. They are cross-validated. After Ctrl-C the components are those selected until then
    of the first form, and the cautious ones of the rest.

    Args:
        forms: models with the settings that they differ in, the cautious one first; the components
            that are open in some form.
        data: encoded data.
        alternatives: of each open component, the cautious one first.
        options: of the fits.
    """
    found: list[tuple[Settings, Model]] = []
    tables = []
    try:
        for settings, model in forms:
            first = {name: tried[0].component for name, tried in alternatives.items()}
            found.append((settings, {**model, **first}))
            for name, tried in alternatives.items():
                before, components = found[-1]
                candidates = [{**components, name: one.component} for one in tried]
                about = [{**before, **one.settings} for one in tried]
                best, table = _compared(candidates, about, data, options, name)
                found[-1] = about[best], candidates[best]
                tables.append(table)
        best = 0
        if len(found) > 1:
            about, candidates = map(list, zip(*found, strict=True))
            best, table = _compared(candidates, about, data, options, "noise")
            tables.append(table)
    except KeyboardInterrupt:
        return SelectedParts(found[0][1], found[0][0], None, True)
    whole = pd.concat(tables, ignore_index=True) if tables else None
    return SelectedParts(found[best][1], found[best][0], whole, False)


def _compared(
    candidates: Sequence[Model],
    settings: Sequence[Settings],
    data: Data,
    options: FitOptions,
    name: str,
) -> tuple[int, pd.DataFrame]:
    label = f"{name}: choosing settings"
    same = [data] * len(candidates)
    found = compare_on_holdout(candidates, same, options, label, few=_FEW_LABELS)
    return found.best, choice_table(settings, found, settings[found.best])
