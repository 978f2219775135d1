"""Draws shrunk towards each other, against sums over the spread and the common mean."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayesatk.comparison.pairs import shrinkage
from bayesatk.comparison.pairs.shrinkage import shrunk

SIZE = 20_000


def _by_sums(mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and covariance: theta ~ N(beta, t^2), a flat prior of beta, t on a grid."""
    size = len(mean)
    spreads = np.geomspace(1e-3, 20.0, 400)
    logs, means, seconds = [], [], []
    for t in spreads:
        total = covariance + t**2 * np.eye(size)
        inverse, ones = np.linalg.inv(total), np.ones(size)
        precision = ones @ inverse @ ones
        beta = ones @ inverse @ mean / precision
        # Flat beta integrated out: density at its estimate times sqrt(2 pi / precision).
        logs.append(multivariate_normal.logpdf(mean, beta * ones, total) - 0.5 * np.log(precision))
        gain = t**2 * inverse
        pull = ones - gain @ ones
        centre = gain @ mean + beta * pull
        within = t**2 * np.eye(size) - t**4 * inverse + np.outer(pull, pull) / precision
        means.append(centre)
        seconds.append(within + np.outer(centre, centre))
    shape = shrinkage.SPREAD_PRIOR_SHAPE
    scale = shrinkage.SPREAD_PRIOR_MEAN / shape
    prior = (shape - 1.0) * np.log(spreads) - spreads / scale
    weight = np.exp(np.array(logs) - max(logs) + prior) * spreads
    weight /= weight.sum()
    centre = np.einsum("t,ts->s", weight, np.array(means))
    return centre, np.einsum("t,tab->ab", weight, np.array(seconds)) - np.outer(centre, centre)


@pytest.mark.parametrize("seed", range(3))
def test_moments_are_those_of_sums_over_the_spread(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean = rng.normal(0.0, (0.1, 0.5, 1.0)[seed], 5)
    root = 0.3 * (np.eye(5) + 0.4 * rng.standard_normal((5, 5)))
    draws = mean + rng.standard_normal((SIZE, 5)) @ root.T
    draws = mean + (draws - draws.mean(axis=0))
    centre, covariance = _by_sums(mean, np.cov(draws.T))
    moved = shrunk(draws, unit=1.0)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(moved.mean(axis=0), centre, atol=0.02 * sd.max())
    np.testing.assert_allclose(np.cov(moved.T), covariance, atol=0.05 * sd.max() ** 2)


def test_probabilities_are_shrunk_as_angles_and_scores_in_their_units() -> None:
    rng = np.random.default_rng(3)
    angles = rng.normal(np.linspace(2.0, 4.0, 4), 0.4, (SIZE, 4))
    plain = shrunk(angles, unit=1.0)
    p, expected = (np.sin(values / 4.0) ** 2 for values in (angles, plain))  # half a radian a logit
    np.testing.assert_allclose(shrunk(p), expected, atol=1e-9)
    np.testing.assert_allclose(shrunk(7.0 * angles, unit=7.0), 7.0 * plain, rtol=1e-9)
    assert np.ptp(plain.mean(axis=0)) < np.ptp(angles.mean(axis=0))


def test_a_system_that_is_always_right_is_not_drawn_to_the_middle() -> None:
    """36 of 36, 18 of 36 and 9 of 36: the orders are known."""
    draws = np.random.default_rng(5).beta([37.0, 19.0, 10.0], [1.0, 19.0, 28.0], (SIZE, 3))
    moved = shrunk(draws)
    np.testing.assert_allclose(moved.mean(axis=0), draws.mean(axis=0), atol=0.03)
    assert (moved[:, 0] > moved[:, 1]).mean() > 0.999


def test_two_systems_and_constants_stay_as_they_are() -> None:
    draws = np.random.default_rng(4).random((100, 2))
    assert shrunk(draws) is draws
    ones = np.ones((100, 5))
    assert shrunk(ones) is ones
