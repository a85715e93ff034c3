"""A directory with one table, for the tests of the command line."""

from functools import partial

import pytest
from cli_tables import animals

from nbmodels.cli import clean as job


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    animals().to_csv("animals.csv", index=False)
    return tmp_path


@pytest.fixture
def few_draws(monkeypatch):
    """A tenth of the draws, which take most of the time where a test is of files and words.

    ``test_text`` and ``test_as_a_program`` have as many as users have.
    """
    monkeypatch.setattr(job, "clean", partial(job.clean, draws=20))
