"""Sets of labels that a file has turned into text."""

import numpy as np
import pytest

from nbmodels.data.label_sets import sets_as_text


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["ant|bee", "ant|cat", "bee|ant"], "such as 'ant|bee' and 'bee|ant'"),
        (["['ant', 'bee']", "['cat']"], r"such as \"\['ant', 'bee'\]\" and \"\['cat'\]\""),
        (["ant, bee", "bee,ant"], "such as 'ant, bee' and 'bee,ant'"),
    ],
)
def test_names_that_are_sets_are_warned_of(names, words):
    (found,) = sets_as_text(np.array(names, object))
    assert found.message.startswith("y: names of classes such as ")
    assert words.replace("\\", "") in found.message


@pytest.mark.parametrize(
    "names",
    [["rock/pop", "rock/jazz", "pop"], [0, 1, 2], ["a", "(other)", "[UNK]"], ["1/2", "2/1"]],
)
def test_other_names_are_not(names):
    assert sets_as_text(np.array(names, object)) == ()
