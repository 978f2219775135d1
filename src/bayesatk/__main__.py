"""``python -m bayesatk``: the command ``bayesatk``."""

from bayesatk.cli.app import app

app(prog_name="bayesatk")
