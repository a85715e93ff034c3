"""Draw the pictures of the documentation: ``python docs/pictures.py``, from the root.

``noise_matrix.png`` is what the README's lines draw, from a fit. ``which_estimator.svg`` and
``evidence_table.svg`` are drawn from the rows below, for the width of a page.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent

#: What one may have for each item, with the estimators for it; groups by their heading.
KINDS = {
    "one noisy label, and features": [
        ("numbers", "NoisyGaussianNB, RobustNDA"),
        ("... that depend on each other", "NoisyLogisticRegression"),
        ("words", "NoisyMultinomialNB, NoisyBernoulliNB"),
        ("symbols; mixed columns", "NoisyCategoricalNB; NoisyMixedNB"),
        ("any table: choose for me", "AutoNoisyClassifier"),
        ("a classifier of my own", "NoisyLabelClassifier"),
        ("embeddings", "NoisyNeighbours"),
    ],
    "something else than one label": [
        ("votes of several annotators", "DawidSkene"),
        ("candidate or excluded labels", "PartialLabelNB"),
        ("labels of one class only", "PositiveUnlabelledNB"),
        ("no labels", "UnlabelledNB"),
    ],
    "users instead of features": [("who used which item", "CollaborativeClassifier")],
    "several of these sources": [("one model of all", "JointNB")],
}

#: Components of a model, with log-likelihoods of four items under three classes.
COMPONENTS = [
    ("class prior", "log P(class)", "one row for all items", [(-0.7, -1.2, -1.6)] * 4),
    (
        "label channel",
        "log P(given label | class)",
        "labels: A, A, none, C",
        [(-0.2, -2.3, -2.3)] * 2 + [(0.0, 0.0, 0.0), (-2.3, -2.3, -0.2)],
    ),
    (
        "emission",
        "log P(features | class)",
        "words, numbers, symbols",
        [(-2.0, -5.1, -6.3), (-7.4, -2.2, -5.0), (-4.9, -2.6, -6.0), (-6.1, -5.5, -2.4)],
    ),
]

_INK, _GREY, _BLUE, _GREEN = "#1f2933", "#9aa5b1", "#2f6f9f", "#3b8f6b"
_MUTED, _BROWN = "#52606d", "#9a5b00"
_FONT = "DejaVu Sans, Verdana, Segoe UI, Helvetica, Arial, sans-serif"
_MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"
_WIDTH, _ROW, _GAP = 568, 34, 26


def which_estimator() -> str:
    """The decision picture as SVG: groups, their kinds of data, and an arrow to the estimators."""
    shapes, top = [], 16
    for heading, rows in KINDS.items():
        shapes.append(_text(24, top + 16, heading, 15, "bold"))
        first, top = top + 28, top + 28
        for have, names in rows:
            middle = top + _ROW / 2 - 2
            shapes += [
                f'<path d="M24 {middle} H38" stroke="{_GREY}" stroke-width="1.6"/>',
                _box(38, top, 214, _BLUE, have),
                f'<path d="M254 {middle} H272" fill="none" stroke="{_INK}" stroke-width="1.6" '
                'marker-end="url(#arrow)"/>',
                _box(278, top, _WIDTH - 278 - 16, _GREEN, names),
            ]
            top += _ROW
        shapes.append(
            f'<path d="M24 {first - 4} V{top - _ROW / 2 - 2}" stroke="{_GREY}" stroke-width="1.6"/>'
        )
        top += _GAP
    height = top - _GAP + 12
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" font-family="{_FONT}" role="img" '
            'aria-labelledby="title">',
            '<title id="title">From what you have for each item to an estimator</title>',
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{_INK}"/></marker>'
            "</defs>",
            f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
            *shapes,
            "</svg>",
            "",
        ]
    )


def evidence_table() -> str:
    """Components, their tables, the sum of these, responsibilities, and the way back, as SVG."""
    width, height, wide = 752, 716, 224
    lefts = [16 + (wide + 24) * j for j in range(len(COMPONENTS))]
    shapes = [_text(16, 22, "components", 15, "bold")]
    for left, (name, formula, about, values) in zip(lefts, COMPONENTS, strict=True):
        middle = left + 129
        shapes += [
            f'<rect x="{left}" y="58" width="{wide}" height="88" rx="6" fill="#f5f7fa" '
            f'stroke="{_GREY}"/>',
            _text(left + 10, 82, name, 15, "bold"),
            _text(left + 10, 107, formula, 13, font=_MONO),
            _text(left + 10, 131, about, 13, colour=_MUTED),
            _arrow(f"M{middle} 146 V174"),
            _text(middle + 10, 166, "(N, K) table", 13, colour=_MUTED),
            *_table(left + 54, 200, values, _BLUE, "{:.1f}", lambda v: 0.56 + v / 15),
        ]
    # the tables, and those of further components, are added
    summed = [tuple(map(sum, zip(*rows, strict=True))) for rows in zip(*_values(), strict=True)]
    plus = 348
    shapes += [
        _arrow(f"M{lefts[0] + 129} 300 C{lefts[0] + 129} 336 250 {plus - 6} 351 {plus - 4}", None),
        _arrow(f"M{lefts[1] + 129} 300 C{lefts[1] + 129} 320 372 322 368 {plus - 12}", None),
        _arrow(f"M{lefts[2] + 129} 300 C{lefts[2] + 129} 336 480 {plus - 6} 379 {plus - 4}", None),
        _arrow(f"M124 430 C124 {plus + 10} 190 {plus + 4} 351 {plus + 3}", None),
        _dashed(24, 432, 200, 50),
        _text(34, 453, "and any more: annotators,", 13, colour=_MUTED),
        _text(34, 471, "user graph, trusted labels", 13, colour=_MUTED),
        _text(34, 502, "one more table each", 13, colour=_MUTED),
        f'<circle cx="365" cy="{plus}" r="12" fill="#ffffff" stroke="{_INK}" stroke-width="1.6"/>',
        _text(365, plus + 6, "+", 17, "bold", anchor="middle"),
        _arrow(f"M365 {plus + 12} V388"),
        _text(380, 378, "their sum", 15, "bold"),
        *_table(290, 414, summed, _BLUE, "{:.1f}", lambda v: 0.67 + 0.055 * v),
        _arrow("M446 462 H546"),
        _text(492, 452, "softmax", 13, anchor="middle"),
        _text(492, 482, "of each row", 13, colour=_MUTED, anchor="middle"),
        _text(653, 378, "responsibilities", 15, "bold", anchor="middle"),
        *_table(578, 414, [_softmax(row) for row in summed], _GREEN, "{:.2f}", _of_probability),
        _text(736, 534, "P(class | everything known)", 13, colour=_MUTED, anchor="end"),
        _text(728, 558, "Item 2 is labelled A,", 13, "bold", colour=_BROWN, anchor="end"),
        _text(728, 576, "its features point to B.", 13, "bold", colour=_BROWN, anchor="end"),
    ]
    # statistics, and what is read off the posterior, go back to every component
    back = 626
    shapes += [
        _arrow(f"M732 462 H744 V{back} H724", "back", _GREEN),
        _step(476, back - 24, 244, "statistics of each component", "stats(responsibilities, data)"),
        _arrow(f"M476 {back} H456", "back", _GREEN),
        _step(228, back - 24, 224, "its conjugate posterior q", "update(prior + statistics)"),
        _arrow(f"M228 {back} H6 V38 H{lefts[-1] + wide / 2:g}", None, _GREEN),
        *(_arrow(f"M{left + wide / 2:g} 38 V54", "back", _GREEN) for left in lefts),
        _arrow("M6 457 H20", "back", _GREEN),
        _text(16, back - 10, "parameters of the likelihoods:", 13, colour=_MUTED),
        _text(16, back + 22, "a mode, an expectation", 13, colour=_MUTED),
        _text(16, back + 40, "or a draw", 13, colour=_MUTED),
        _text(
            16,
            back + 76,
            "ML and MAP read modes (EM), VB reads expectations (CAVI), Gibbs reads draws: one code "
            "path.",
            13,
            colour=_MUTED,
        ),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="{_FONT}" role="img" '
            'aria-labelledby="title description">',
            '<title id="title">The evidence table</title>',
            '<desc id="description">Every component of a model turns its data into a table of '
            "log-likelihoods, a row an item and a column a class. The tables are added, the "
            "softmax of each row gives the responsibilities, and these go back to every component "
            "as weights of its sufficient statistics.</desc>",
            f"<defs>{_marker('arrow', _INK)}{_marker('back', _GREEN)}</defs>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
            *shapes,
            "</svg>",
            "",
        ]
    )


def _values() -> list[list[tuple[float, ...]]]:
    return [values for *_, values in COMPONENTS]


def _softmax(row: Sequence[float]) -> list[float]:
    exps = [math.exp(value - max(row)) for value in row]
    return [one / sum(exps) for one in exps]


def _of_probability(p: float) -> float:
    return 0.06 + p / 2


def _table(
    left: float,
    top: float,
    rows: Sequence[Sequence[float]],
    colour: str,
    form: str,
    opacity: Callable[[float], float],
) -> list[str]:
    """Cells with their values, under the classes' names and beside the items' numbers."""
    wide, high = 50, 24
    shapes = [_text(left - 8, top - 8, "item", 13, colour=_MUTED, anchor="end")]
    for j, name in enumerate(("class A", "B", "C")):
        x = left + wide * (j + 0.5)
        shapes.append(_text(x, top - 8, name, 13, colour=_MUTED, anchor="middle"))
    for i, row in enumerate(rows):
        y = top + high * i
        shapes.append(_text(left - 8, y + 17, str(i + 1), 13, colour=_MUTED, anchor="end"))
        for j, value in enumerate(row):
            x = left + wide * j
            shapes += [
                f'<rect x="{x:g}" y="{y:g}" width="{wide}" height="{high}" fill="{colour}" '
                f'fill-opacity="{opacity(value):.2f}" stroke="#ffffff"/>',
                _text(
                    x + wide / 2,
                    y + 17,
                    form.format(value).replace("-", "\u2212"),
                    14,
                    font=_MONO,
                    anchor="middle",
                ),
            ]
    shapes.append(
        f'<rect x="{left}" y="{top}" width="{wide * 3}" height="{high * len(rows)}" rx="2" '
        f'fill="none" stroke="{colour}"/>'
    )
    return shapes


def _arrow(path: str, head: str | None = "arrow", colour: str = _INK) -> str:
    end = "" if head is None else f' marker-end="url(#{head})"'
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{end}/>'


def _marker(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{colour}"/></marker>'
    )


def _dashed(x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="none" '
        f'stroke="{_GREY}" stroke-dasharray="5 4"/>'
    )


def _step(x: float, y: float, width: float, name: str, formula: str) -> str:
    middle = x + width / 2
    return "\n".join(
        [
            f'<rect x="{x}" y="{y}" width="{width}" height="48" rx="6" fill="#eef7f2" '
            f'stroke="{_GREEN}"/>',
            _text(middle, y + 20, name, 14, "bold", anchor="middle"),
            _text(middle, y + 39, formula, 13, font=_MONO, colour=_MUTED, anchor="middle"),
        ]
    )


def _text(
    x: float,
    y: float,
    text: str,
    size: int,
    weight: str = "normal",
    *,
    colour: str = _INK,
    font: str | None = None,
    anchor: str | None = None,
) -> str:
    more = "" if font is None else f' font-family="{font}"'
    more += "" if anchor is None else f' text-anchor="{anchor}"'
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{colour}"'
        f"{more}>{escape(text)}</text>"
    )


def _box(x: float, y: float, width: float, colour: str, text: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{_ROW - 5}" rx="6" fill="{colour}" '
        f'fill-opacity="0.12" stroke="{colour}"/>\n' + _text(x + 10, y + 19, text, 13)
    )


def noise_matrix(to: Path) -> None:
    """Run the README's lines, which save a figure, and keep it."""
    readme = (DOCS.parent / "README.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    back = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(compile(code, "README.md", "exec"), {})
            to.write_bytes(Path("noise_matrix.png").read_bytes())
        finally:
            os.chdir(back)


if __name__ == "__main__":
    (DOCS / "which_estimator.svg").write_text(which_estimator())
    (DOCS / "evidence_table.svg").write_text(evidence_table())
    noise_matrix(DOCS / "noise_matrix.png")
