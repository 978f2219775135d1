"""Distributions of means over questions, their intervals, and differences between them."""
