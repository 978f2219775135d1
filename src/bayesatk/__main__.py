"""``python -m bayesatk``: the command ``bayesatk``."""

import sys

from bayesatk.cli.app import app

sys.argv[0] = "bayesatk"  # as results say by which command they were made
app(prog_name="bayesatk")
