"""Differences between systems on the questions that they share, in numbers and in sentences."""
