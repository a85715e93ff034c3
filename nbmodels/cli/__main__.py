"""``python -m nbmodels.cli``."""

from nbmodels.cli.app import app

app(prog_name="nbmodels")
