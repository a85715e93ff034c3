"""``python -m nbmodels``."""

from nbmodels.cli.app import app

app(prog_name="nbmodels")
