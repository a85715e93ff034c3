"""Warnings are issued once, at the line of whoever called the library."""

import os
import warnings

import pytest
import sklearn

from nbmodels import DataError, NoisyBernoulliNB
from nbmodels.errors import Caution, NotConvergedWarning, VerdictWarning, counted, issue


def test_equal_warnings_are_issued_once_at_the_callers_line():
    one, other = Caution(NotConvergedWarning, "a"), Caution(VerdictWarning, "a")
    with warnings.catch_warnings(record=True, action="always") as caught:
        issue([one, other, one])
    assert [w.category for w in caught] == [NotConvergedWarning, VerdictWarning]
    assert {w.filename for w in caught} == {__file__}


PIPELINE = os.path.join(os.path.dirname(sklearn.__file__), "pipeline.py")
OWN = os.path.join(os.sep, "home", "projects", "sklearn", "analysis.py")


@pytest.mark.parametrize(("called_from", "line_in"), [(PIPELINE, __file__), (OWN, OWN)])
def test_the_line_is_outside_of_the_library(called_from, line_in):
    code = compile("issue([caution])", called_from, "exec")
    with pytest.warns(VerdictWarning) as caught:
        exec(code, {"issue": issue, "caution": Caution(VerdictWarning, "a")})
    assert caught[0].filename == line_in


def test_one_thing_is_no_plural():
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert counted(1, "row has", "rows have") == "1 row has"
    with pytest.raises(DataError, match=r"^y: has 1 row where X has 3$"):
        NoisyBernoulliNB().fit([[0, 1], [1, 0], [1, 1]], ["ant"])
    with pytest.raises(DataError, match=r"row 4 does not exist; X has 1 row$"):
        NoisyBernoulliNB(classes=["ant", "bee"]).fit([[0, 1]], ["ant"], trusted={4: "ant"})
