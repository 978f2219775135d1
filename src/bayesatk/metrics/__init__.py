"""Metrics: what ``k`` trials are worth, by name."""
