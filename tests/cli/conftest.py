"""A directory with one table, for the tests of the command line."""

import pytest
from cli_tables import animals


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    animals().to_csv("animals.csv", index=False)
    return tmp_path
