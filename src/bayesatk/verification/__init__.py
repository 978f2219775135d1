"""Closed forms compared with samplers: `bayesatk.verify`."""
