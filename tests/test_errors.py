"""Warnings are issued once, at the line of whoever called the library."""

import warnings

import pytest

from nbmodels.errors import Caution, NotConvergedWarning, VerdictWarning, issue


def test_equal_warnings_are_issued_once_at_the_callers_line():
    one, other = Caution(NotConvergedWarning, "a"), Caution(VerdictWarning, "a")
    with warnings.catch_warnings(record=True, action="always") as caught:
        issue([one, other, one])
    assert [w.category for w in caught] == [NotConvergedWarning, VerdictWarning]
    assert {w.filename for w in caught} == {__file__}


def test_the_line_is_outside_of_the_library():
    code = compile("issue([caution])", "/somewhere/sklearn/pipeline.py", "exec")
    with pytest.warns(VerdictWarning) as caught:
        exec(code, {"issue": issue, "caution": Caution(VerdictWarning, "a")})
    assert caught[0].filename == __file__
