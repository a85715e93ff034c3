"""Marks of single cases of parametrised tests."""

import pytest


def slow(*values, **names):
    """A case that takes longer than five seconds, for ``pytest.mark.parametrize``."""
    return pytest.param(*values, marks=pytest.mark.slow, **names)


def slow_among(cases, chosen):
    """The cases, in their order, with those that are ``chosen`` marked as slow."""
    return [slow(case) if case in chosen else case for case in cases]
