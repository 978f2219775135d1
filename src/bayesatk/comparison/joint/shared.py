"""Joint draws of all systems of a result, with difficulties that they share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.one_factor.chances import Marking
from bayesatk.core.one_factor.model import Counts
from bayesatk.core.one_factor.posterior import Draws, Fit
from bayesatk.core.one_factor.questions import QuestionMeans, population_means
from bayesatk.judge_error import Judges
from bayesatk.metrics.grid import Metric
from bayesatk.priors import LeaderboardPrior
from bayesatk.results.result import Result

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
_CELLS = 6e7  # systems x questions x draws, at about 10^7 a second


@dataclass(frozen=True)
class Board:
    """Draws of the metrics of all systems.

    Parameters
    ----------
    values : ndarray, shape (targets, draws, systems, metrics)
    draws : Draws
        Of the parameters.
    """

    values: Array
    draws: Draws


def board_of(fit: Result, prior: LeaderboardPrior, systems: list[int], seed: int) -> Board:
    """Draw the parameters of systems in an order, and their metrics."""
    right, trials = fit.right_of_all("shared_difficulty")
    judges = None if fit.judges is None else fit.judges.among(systems)
    counts = right[systems], trials[systems]
    return drawn_board(*counts, [*fit.grid], prior, judges, seed, fit.weight)


def drawn_board(
    right: Ints,
    trials: Ints,
    metrics: Sequence[Metric],
    prior: LeaderboardPrior,
    judges: Judges | None,
    seed: int,
    weight: Array | None = None,
) -> Board:
    """Draw a board of counts (systems, questions), without a result around them.

    Questions have weights in the means over them, and none in what questions like these are.
    """
    marking = None if judges is None else _marking(judges)
    rng = np.random.default_rng(seed)
    draws = Fit.of(Counts.of(right, trials, marking), prior).draw(rng)
    # 400 draws at least, whatever they take: a probability of 1/2 is then known to .025.
    draws = draws.among(max(400, int(_CELLS / right.size)))
    credits = [metric.credit for metric in metrics]
    means = QuestionMeans(draws.likelihood, right, trials, credits, weight)
    questions = means.draw(draws.theta, rng)
    values = np.stack([questions, population_means(credits, draws.likelihood, draws.theta)])
    return Board(values, draws)


def _marking(judges: Judges) -> Marking:
    """Return who marked the trials of every system."""
    judge_numbers = np.empty(len(judges.by_system), np.intp)
    for number, systems in enumerate(judges.groups().values()):
        judge_numbers[systems] = number
    return Marking(judge_numbers, np.array([judge.shapes for judge in judges.calibrated()]))
