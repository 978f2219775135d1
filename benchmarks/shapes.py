"""Difficulty distributions that simulations draw from, most of them of no family that is fitted."""

from collections.abc import Callable

import numpy as np
from scipy.special import expit

Draw = Callable[[np.random.Generator, int], np.ndarray]

POPULATION = 1_000_000  # difficulties that the population value of a metric is the mean over


def _beta(a: float, b: float) -> Draw:
    return lambda rng, size: rng.beta(a, b, size)


def _with(share: float, value: float, a: float, b: float) -> Draw:
    """Return a share of questions of one difficulty, and Beta(a, b) for the rest."""
    return lambda rng, size: np.where(rng.random(size) < share, value, rng.beta(a, b, size))


def _clusters(rng: np.random.Generator, size: int) -> np.ndarray:
    easy = rng.random(size) < 0.5
    return np.where(easy, rng.beta(20, 3, size), rng.beta(2, 20, size))


SHAPES: dict[str, Draw] = {
    "10% impossible, rest Beta(1.5, 1.5)": _with(0.1, 0.0, 1.5, 1.5),
    "30% impossible, rest Beta(1.5, 1.5)": _with(0.3, 0.0, 1.5, 1.5),
    "20% solved, rest Beta(1, 6)": _with(0.2, 1.0, 1.0, 6.0),
    "Beta(20, 3) and Beta(2, 20), half each": _clusters,
    "log p ~ N(-4, 2)": lambda rng, size: np.minimum(np.exp(rng.normal(-4, 2, size)), 1.0),
    "logit p ~ N(-1, 2)": lambda rng, size: expit(rng.normal(-1, 2, size)),
    "Beta(.3, .3)": _beta(0.3, 0.3),
    "Beta(1, 3)": _beta(1.0, 3.0),
    "Beta(.1, .9)": _beta(0.1, 0.9),
    "Beta(2, .5)": _beta(2.0, 0.5),
}
BETAS = ("Beta(.3, .3)", "Beta(1, 3)", "Beta(.1, .9)", "Beta(2, .5)")  # of the family "beta"
