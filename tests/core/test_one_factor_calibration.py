"""Simulation-based calibration of the leaderboard's posterior (Talts et al. 2018)."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kstest

from bayesatk.core.one_factor.model import Counts
from bayesatk.core.one_factor.posterior import Fit
from bayesatk.core.one_factor.questions import simulate_counts
from bayesatk.priors import LeaderboardPrior
from tests.core.test_one_factor import on, with_shares


def _from_prior(rng, prior, systems):
    """Parameters (3, systems + 1), drawn level by level, and the two shares."""
    spread = prior.spread_sd * np.sqrt(rng.chisquare(systems / (systems - 1)))
    pairs = (*prior.mean, spread), prior.discrimination, prior.interaction
    theta = np.stack([
        centre + common * rng.standard_normal() + between * rng.standard_normal(systems)
        for centre, common, between in pairs
    ])  # fmt: skip
    return with_shares(theta, *rng.dirichlet(prior.atoms)[:2])


@pytest.mark.long
def test_ranks_of_the_truth_are_uniform() -> None:
    """Of mu, log a, log r, a difference of mu, and the mean over questions like these."""
    prior, rng = LeaderboardPrior(), np.random.default_rng(31)
    z = np.linspace(-4, 4, 33)
    weight = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()

    def mean(theta):
        x = theta[..., 0, 0, None] + np.exp(theta[..., 1, 0, None]) * z
        return expit(x) @ weight

    below = []
    for _ in range(80):
        theta = _from_prior(rng, prior, 3)
        trials = rng.integers(1, 4, (3, 12))
        likelihood = on(Counts.of(0 * trials, trials), 0.1)
        draws = Fit.of(simulate_counts(likelihood, theta, np.arange(12), rng), prior).draw(rng)
        drawn = draws.theta
        gap = drawn[:, 0, 0] - drawn[:, 0, 1] < theta[0, 0] - theta[0, 1]
        own = [(drawn[:, i, 0] < theta[i, 0]).mean() for i in range(3)]
        own += [(drawn[:, i, 3] < theta[i, 3]).mean() for i in range(2)]
        below.append([*own, gap.mean(), (mean(drawn) < mean(theta)).mean()])
    p_values = [kstest(column, "uniform").pvalue for column in np.array(below).T]
    assert min(p_values) > 0.002, p_values
