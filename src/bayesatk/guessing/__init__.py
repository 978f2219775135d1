"""The random baseline: the best of several random guessers."""
