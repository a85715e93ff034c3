"""Draw the pictures of the documentation: ``python docs/pictures.py``, from the root.

``noise_matrix.png`` is what the README's lines draw, from a fit. ``which_estimator.svg`` is drawn
from the rows below.
"""

from __future__ import annotations

import os
import re
import tempfile
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

_INK, _GREY, _BLUE, _GREEN = "#1f2933", "#9aa5b1", "#2f6f9f", "#3b8f6b"
_FONT = "DejaVu Sans, Verdana, Segoe UI, Helvetica, Arial, sans-serif"
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


def _text(x: float, y: float, text: str, size: int, weight: str = "normal") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{_INK}">'
        f"{escape(text)}</text>"
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
    noise_matrix(DOCS / "noise_matrix.png")
