"""Metrics: the value of ``k`` trials of a question, by name."""
