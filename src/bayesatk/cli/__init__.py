"""The ``bayesatk`` command."""
