"""The library's sentences on the command line: no parameter that no option sets."""

import ast
import re

import numpy as np
import pytest
from paths import ROOT

from nbmodels.cli.wording import numbered, worded
from nbmodels.diagnostics.checks import remedies
from nbmodels.fitting.cautions import PLAIN, UNINFORMATIVE, USELESS
from nbmodels.fitting.copied_rows import copies_caution
from nbmodels.fitting.reference_scores import (
    THEIRS_TOO,
    _of_given_labels,
    by_the_reference,
    poor_predictions,
)

#: What no command has: parameters, methods, and predictions of new items.
LACKING = re.compile(r"\w=|sample_weight|new items|worker_report|audit_plan")


def literals(path):
    """Sentences of a module, with dots in the place of what is filled in; no docstrings."""
    tree = ast.parse(path.read_text())
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    left_out = {id(part) for one in joined for part in one.values}
    left_out |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):  # an error names the argument
            left_out |= set(map(id, ast.walk(node)))
    for one in joined:
        if id(one) not in left_out:
            yield "".join(p.value if isinstance(p, ast.Constant) else "..." for p in one.values)
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and id(node) not in left_out:
            yield text


def test_sentences_of_fits_ask_for_nothing_that_no_option_sets():
    paths = (
        p for one in ("fitting", "diagnostics") for p in (ROOT / "nbmodels" / one).rglob("*.py")
    )
    found = {s for path in paths for s in literals(path) if len(s.split()) >= 4}
    assert len(found) > 100
    assert any("sample_weight" in one for one in found)
    # parts of sentences that are shown whole below
    parts = {"new items are still predicted by this model", THEIRS_TOO.message}
    assert [one for one in found - parts if LACKING.search(worded(one))] == []


@pytest.mark.parametrize(
    "message",
    [
        UNINFORMATIVE.message,
        USELESS.message,
        PLAIN.message,
        f"Poor. Taken into account: {THEIRS_TOO.message}. All other checks passed.",
        by_the_reference(0.5, 0.7).message,
        _of_given_labels(0.5, 0.7).message,
        poor_predictions(0.5, 0.7).message,
    ],
)
def test_new_items_are_not_spoken_of(message):
    shown = worded(message)
    assert not LACKING.search(shown)
    assert ".." not in shown
    assert "  " not in shown


def test_every_remedy_is_an_option_or_in_python():
    named = {r for n, r in vars(remedies).items() if n.isupper() and isinstance(r, str)}
    named.remove(remedies.OPEN_GRAPH)  # of graphs, which no command reads
    asks = re.compile(r"[=(]|Noisy|Robust|solver|emission|presence")
    for one in named:
        shown = worded(one)
        assert not asks.search(shown) or "in Python" in shown or "--" in shown


def test_copies_have_the_numbers_of_rows_of_the_table():
    """The fit leaves out rows without features, and counts from 0."""
    copies = np.arange(100)
    copies[80:] = 3
    (caution,) = copies_caution(copies, np.ones(100))
    rows = np.delete(np.arange(102), [0, 90]) + 1
    assert "(row 5 has 20: 82, 83, 84 ...)" in numbered(caution.message, rows)
    assert numbered("row 5 has no label", rows) == "row 5 has no label"
