"""Figures of the reproductions: panels of lines, ours drawn, the paper's figures as crosses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from matplotlib.figure import Figure

#: Panels of one row.
WIDE = 4
#: Ours at x, and the paper's where it prints numbers, else None.
Line = tuple[Sequence[float], Sequence[float], Sequence[float] | None]


def lines(
    panels: Mapping[str, Mapping[str, Line]],
    x_label: str,
    y_label: str,
    title: str,
    *,
    x_labels: Mapping[str, str] | None = None,
    errors: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    share_y: bool = True,
    log_y: bool = False,
) -> Figure:
    """Panels beside and below each other; crosses are the paper's.

    Args:
        panels: by title, by name of the line, ``(x, ours, the paper's or None)``.
        x_label: below the panels.
        y_label: left of every row.
        title: above all.
        x_labels: by title, of panels that have another ``x_label``.
        errors: standard errors of ours, by panel and line.
        share_y: one scale for all panels.
        log_y: a logarithmic one.
    """
    n_rows = ceil(len(panels) / WIDE)
    n_columns = ceil(len(panels) / n_rows)
    figure = Figure(figsize=(1.2 + 3.1 * n_columns, 0.4 + 3 * n_rows))
    grid = figure.subplots(n_rows, n_columns, sharey=share_y, squeeze=False)
    axes = grid.ravel()[: len(panels)]
    for axis in grid.ravel()[len(panels) :]:
        axis.remove()
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    for axis, (heading, panel) in zip(axes, panels.items(), strict=True):
        for name, (x, ours, paper) in panel.items():
            colour = f"C{names.index(name)}"
            spread = errors[heading][name] if errors else None
            axis.errorbar(x, ours, spread, color=colour, marker=".", label=name, capsize=2)
            if paper is not None:
                axis.plot(x, paper, "x", color=colour)
        axis.set(title=heading, xlabel=(x_labels or {}).get(heading, x_label))
        if log_y:
            axis.set_yscale("log")
        axis.grid(alpha=0.3)
    for axis in grid[:, 0]:
        axis.set_ylabel(y_label)
    handles, labels = axes[0].get_legend_handles_labels()
    for axis in axes[1:]:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    crosses = any(line[2] is not None for panel in panels.values() for line in panel.values())
    figure.suptitle(title + ("; crosses: the paper's figures" if crosses else ""))
    figure.set_layout_engine("constrained")
    return figure


def bars(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    names: Sequence[str],
    y_label: str,
    title: str,
) -> Figure:
    """Groups of bars, ours, with the paper's figures as crosses.

    Args:
        panels: by title, by method, ``(ours, the paper's)`` of each name.
        names: below the groups.
        y_label: left of every panel.
        title: above all.
    """
    figure = Figure(figsize=(9, 2.8 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (heading, methods) in zip(axes, panels.items(), strict=True):
        width = 0.8 / len(methods)
        for i, (method, pairs) in enumerate(methods.items()):
            x = [j + (i - (len(methods) - 1) / 2) * width for j in range(len(names))]
            axis.bar(x, [ours for ours, _ in pairs], width, label=method, color=f"C{i}", alpha=0.6)
            axis.plot(x, [paper for _, paper in pairs], "kx")
        axis.set(title=heading, ylabel=y_label)
        axis.grid(alpha=0.3, axis="y")
    axes[-1].set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.suptitle(f"{title}; crosses: the paper's figures")
    return figure
