"""Plot of the candidates that model selection compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbmodels.posterior.plots.shared import single_axes


def held_out_scores(
    choice: pd.DataFrame, *, title: str | None = None
) -> tuple[Figure, pd.DataFrame]:
    """Candidates of a selection: gain in held-out log-likelihood over the first, two std errors.

    Args:
        choice: an estimator's ``choice_``.
        title: above the figure.

    Returns:
        The figure, and its data: the frame with ``low`` and ``high``.

    Examples:
        >>> import numpy as np
        >>> from nbmodels import NoisyBernoulliNB
        >>> from nbmodels.posterior import plots
        >>> y = np.repeat(["ant", "bee"], 50)
        >>> x = np.random.default_rng(0).random((100, 6)) < np.where(y == "ant", 0.1, 0.9)[:, None]
        >>> y[:10] = "bee"
        >>> model = NoisyBernoulliNB(training="cross_fit").fit(x, y)
        >>> figure, candidates = plots.held_out_scores(model.choice_, title="Settings")
        >>> found = candidates[candidates["alpha"] == 1]
        >>> print(found[["size_power", "gain", "chosen"]].round(1).to_string(index=False))
         size_power  gain  chosen
                0.0  0.0    True
                0.5 -0.0   False
                1.0 -0.1   False
    """
    results = ["log_likelihood", "gain", "standard_error", "identified", "chosen"]
    settings = choice.drop(columns=results)
    varied = [name for name in settings if settings[name].nunique() > 1] or list(settings)
    # columns with blanks hold whole numbers as floats
    labels = [
        ", ".join(
            f"{name} {f'{value:g}' if isinstance(value, float) else value}"
            for name, value in row.items()
            if pd.notna(value)
        )
        for row in settings[varied].to_dict("records")
    ]
    frame = choice.assign(
        low=choice["gain"] - 2 * choice["standard_error"],
        high=choice["gain"] + 2 * choice["standard_error"],
    )
    rows = np.arange(len(frame))
    figure, axes = single_axes(1.1 * len(frame), labels, 7)
    axes.axvline(0, color="0.8", linewidth=1)
    axes.hlines(rows, frame["low"], frame["high"], color="tab:blue", linewidth=1.5)
    fill = np.where(frame["chosen"], "tab:blue", "white")
    axes.scatter(frame["gain"], rows, c=fill, edgecolors="tab:blue", zorder=3)
    axes.set_yticks(rows, labels)
    axes.invert_yaxis()
    axes.set_xlabel("gain in log-likelihood of a held-out label (filled: chosen)")
    axes.set_title(title or "Candidates by the likelihood of held-out labels", loc="left")
    return figure, frame
