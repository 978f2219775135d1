"""The leaderboard's model sampled by PyMC, difficulties and all, against quadrature and weights."""

import numpy as np
import pymc as pm
import pytest

import bayesatk as bk
from bayesatk.comparison.board import board_of
from bayesatk.results.result import Result
from tests.core.test_one_factor import simulate


@pytest.mark.slow
def test_nuts_finds_the_same_parameters() -> None:
    rng = np.random.default_rng(11)
    c, n, _ = simulate(rng, 4, 40, 3)
    n[1, :10] = c[1, :10] = 0
    data = bk.tally((c, n), missing="ignore")
    fit = bk.evaluate(data, "pass@1", difficulty="beta", rng=1, draws=50)
    board = board_of(Result.of(fit), bk.LeaderboardPrior(), 5)
    with bk.models.build_one_factor(data):
        trace = pm.sample(
            1500, tune=1000, chains=2, cores=1, random_seed=3, nuts_sampler="nutpie",
            progressbar=False, target_accept=0.95,
        )  # fmt: skip
    for place, name in enumerate(("mu", "log_a", "logit_rho")):
        drawn = trace["posterior"][name].transpose("chain", "draw", "system").values
        flat = drawn.reshape(-1, 4)
        own = board.draws.theta[:, place][:, board.order]
        error = np.sqrt(1.0 / board.draws.effective_draws + 1.0 / 600)
        assert (abs(flat.mean(axis=0) - own.mean(axis=0)) < 4.5 * error * flat.std(axis=0)).all()
        assert (abs(np.log(flat.std(axis=0) / own.std(axis=0))) < 4.5 * error).all()
