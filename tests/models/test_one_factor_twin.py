"""The leaderboard's model sampled by PyMC, difficulties and all, against quadrature and weights."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.comparison.joint.shared import board_of
from bayesatk.core.one_factor.chances import log_shares
from bayesatk.results.result import Result
from tests.core.test_one_factor import simulate


def _error(trace, name: str, effective_draws: float) -> float:
    """Standard error of a difference of means, in posterior sds, and about that of log sds."""
    drawn = trace["posterior"][name]
    sizes = [float(az.ess(drawn, method=method).min()) for method in ("mean", "sd")]
    assert min(sizes) > 100.0  # or everything would agree
    return float(np.sqrt(1.0 / effective_draws + 1.0 / min(sizes)))


@pytest.mark.long
def test_nuts_finds_the_same_parameters() -> None:
    rng = np.random.default_rng(11)
    c, n, _ = simulate(rng, 4, 40, 3)
    c[:, 30:37] = 0  # questions that no system solves
    n[1, :10] = c[1, :10] = 0
    data = bk.tally((c, n), missing="ignore")
    fit = bk.evaluate(data, "pass@1", difficulty="beta", rng=1, draws=50)
    board = board_of(Result.of(fit), bk.priors.LeaderboardPrior(), [0, 1, 2, 3], 5)
    with bk.models.build_one_factor(data):
        trace = pm.sample(
            1500, tune=1000, chains=2, cores=1, random_seed=3, nuts_sampler="nutpie",
            progressbar=False, target_accept=0.95,
        )  # fmt: skip
    for place, name in enumerate(("mu", "log_a", "logit_rho")):
        drawn = trace["posterior"][name].transpose("chain", "draw", "system").values
        flat = drawn.reshape(-1, 4)
        own = board.draws.of_systems[:, place]
        error = _error(trace, name, board.draws.effective_draws)
        assert (abs(flat.mean(axis=0) - own.mean(axis=0)) < 4.5 * error * flat.std(axis=0)).all()
        assert (abs(np.log(flat.std(axis=0) / own.std(axis=0))) < 4.5 * error).all()
    drawn = trace["posterior"]["atoms"].values.reshape(-1, 3)
    shares = np.exp(log_shares(board.draws.theta, bk.priors.LeaderboardPrior().atoms))
    error = _error(trace, "atoms", board.draws.effective_draws)
    assert (abs(drawn.mean(axis=0) - shares.mean(axis=0)) < 4.5 * error * drawn.std(axis=0)).all()


@pytest.mark.long
def test_nuts_finds_the_same_parameters_of_marks_of_two_judges() -> None:
    """What might have been right added up, by other formulas, and the rates sampled."""
    rng = np.random.default_rng(4)
    right, n, _ = simulate(rng, 3, 20, 3, icc=0.2)
    n[0, :4] = right[0, :4] = 0
    right[1, 5], n[1, 5] = min(right[1, 5], 1), 1
    s, f = np.array([[0.9, 0.8, 0.9], [0.1, 0.2, 0.1]])[:, :, None]
    marks = rng.binomial(right, s) + rng.binomial(n - right, f)
    data = bk.tally((marks, n), missing="ignore")
    one, other = bk.JudgeError(45, 50, 5, 50), bk.JudgeError(50, 60, 10, 60)
    judge = {0: one, 1: other, 2: one}
    fit = bk.evaluate(data, "pass@1", judge=judge, difficulty="beta", rng=1, draws=50)
    board = board_of(Result.of(fit), bk.priors.LeaderboardPrior(), [0, 1, 2], 5)
    with bk.models.build_one_factor(data, judge=judge):
        trace = pm.sample(
            800, tune=800, chains=2, cores=1, random_seed=3, nuts_sampler="nutpie",
            progressbar=False, target_accept=0.9,
        )  # fmt: skip
    draws = board.draws
    observed = draws.likelihood.counts.observed
    rates = expit(np.stack([observed.at(draws.theta, system)[:, -2:] for system in range(3)], 1))
    known = {name: draws.of_systems[:, i] for i, name in enumerate(("mu", "log_a", "logit_rho"))}
    known |= {"sensitivity": rates[..., 0], "false_positive_rate": rates[..., 1]}
    for name, ours in known.items():
        drawn = trace["posterior"][name].transpose("chain", "draw", "system").values
        flat, own = drawn.reshape(-1, 3), ours
        error = _error(trace, name, draws.effective_draws)
        gap = abs(flat.mean(axis=0) - own.mean(axis=0)) / flat.std(axis=0)
        assert (gap < 4.5 * error).all(), name
        inner = [np.diff(np.quantile(each, [1 / 6, 5 / 6], axis=0), axis=0) for each in (flat, own)]
        assert (abs(np.log(inner[0] / inner[1])) < 4.5 * error).all(), name
