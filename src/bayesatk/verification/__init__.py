"""Holding closed forms against samplers: `bayesatk.verify`."""
