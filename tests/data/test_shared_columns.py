"""Columns that two sources of a joint model share."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nbmodels.data.shared_columns import shared_columns

RNG = np.random.default_rng(0)
WORDS = RNG.poisson(0.5, (60, 8))
OTHERS = RNG.poisson(0.5, (60, 8))


@pytest.mark.parametrize(
    "copy",
    [
        WORDS,
        WORDS.astype(float)[:, ::-1],
        sparse.csr_array(WORDS),
        pd.DataFrame(WORDS).assign(more=OTHERS[:, 0]),
        pd.DataFrame(WORDS).astype("Int64"),
        pd.DataFrame(WORDS).astype(str).astype("category"),
        np.hstack([WORDS[:, :5], OTHERS]),
    ],
)
def test_copies_are_found_in_any_container(copy):
    (caution,) = shared_columns({"text": sparse.csr_matrix(WORDS), "again": copy})
    assert "sources 'text' and 'again' share" in caution.message


@pytest.mark.parametrize(
    "other",
    [
        OTHERS,
        np.zeros((60, 8)),  # columns that do not vary
        np.eye(60, 8),  # and those that vary in a row
        np.hstack([WORDS[:, :2], OTHERS]),
        WORDS[:50],
        [(WORDS, OTHERS)],
    ],
)
def test_other_tables_are_no_copies(other):
    assert shared_columns({"text": np.hstack([WORDS, np.eye(60, 8)]), "other": other}) == ()


def test_symbols_are_compared_by_their_texts():
    colours = pd.DataFrame({"colour": RNG.choice(["red", "blue", None], 60)})
    (caution,) = shared_columns({"one": colours, "other": colours.astype("category")})
    assert "share 1 of the 1 column of the smaller one" in caution.message
