"""Joint draws of all systems of a result, with difficulties that they share."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.comparison.pairs.system_posteriors import Subset, data_keys
from bayesatk.core.one_factor.chances import Marking
from bayesatk.core.one_factor.model import Counts
from bayesatk.core.one_factor.posterior import Draws, Fit
from bayesatk.core.one_factor.questions import QuestionMeans, population_means
from bayesatk.core.question.laws import finite
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
    observed : ndarray, shape (systems, metrics)
        Unbiased estimates from the trials that were run, as they are marked; NaN where k exceeds
        those of a question.
    draws : Draws
        Of the parameters.
    order : ndarray of int
        Place of every system among those of `draws`.
    """

    values: Array
    observed: Array
    draws: Draws
    order: NDArray[np.intp]


@dataclass(frozen=True)
class BoardInput:
    """What a board is worked out from, equal to another of the same content."""

    content: bytes
    labels: tuple[str, ...]
    prior: LeaderboardPrior
    seed: int
    judges: Judges | None
    right: Ints = field(compare=False)
    trials: Ints = field(compare=False)
    metrics: tuple[Metric, ...] = field(compare=False)


def board_of(fit: Result, prior: LeaderboardPrior, seed: int) -> Board:
    """Draw the parameters of all systems, and their metrics.

    Names and the order of systems have no part in anything.
    """
    right, trials = _counts(fit)
    keys = data_keys(fit, Subset.whole(fit))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    right, trials = right[order], trials[order]
    content = np.ascontiguousarray(np.stack([right, trials])).tobytes()
    labels = tuple(metric.label for metric in fit.metrics)
    judges = None if fit.judges is None else fit.judges.among(order)
    board_input = BoardInput(content, labels, prior, seed, judges, right, trials, fit.metrics)
    board, back = drawn_board(board_input), np.argsort(order)
    return Board(board.values[:, :, back], board.observed[back], board.draws, back)


@lru_cache(maxsize=8)
def drawn_board(board_input: BoardInput) -> Board:
    """Draw a board; the last few are kept."""
    rng = np.random.default_rng(board_input.seed)
    metrics, right, trials = board_input.metrics, board_input.right, board_input.trials
    draws = Fit.of(
        Counts.of(right, trials, marking_of(board_input.judges)), board_input.prior
    ).draw(rng)
    # 400 draws at least, whatever they take: a probability of 1/2 is then known to .025.
    draws = draws.among(max(400, int(_CELLS / right.size)))
    credits = [metric.credit for metric in metrics]
    means = QuestionMeans(draws.likelihood, right, trials, credits)
    questions = means.draw(draws.theta, [metric.latent for metric in metrics], rng)
    values = np.stack([questions, population_means(credits, draws.of_systems)])
    observed = np.full((len(trials), len(metrics)), np.nan)
    for i, (c, n) in enumerate(zip(right, trials, strict=True)):
        for j, credit in enumerate(credits):
            if n.any():
                observed[i, j] = finite(credit, c[n > 0], n[n > 0]).mean()
    return Board(values, observed, draws, np.arange(len(trials)))


def marking_of(judges: Judges | None) -> Marking | None:
    """Return who marked the trials of every system, where judges err."""
    if judges is None:
        return None
    judge_numbers = np.empty(len(judges.by_system), np.intp)
    for number, systems in enumerate(judges.groups().values()):
        judge_numbers[systems] = number
    return Marking(judge_numbers, np.array([judge.shapes for judge in judges.groups()]))


def _counts(fit: Result) -> tuple[Ints, Ints]:
    """Return counts, or say why there can be no leaderboard."""
    right, trials = fit.right_of_all("leaderboard")
    if len(trials) < 2:
        raise ArgumentError(
            Argument("fit"), " must have at least two systems to rank; got one. Name them: ",
            Argument("source", {"a": "first.csv", "b": "second.csv"}, "load"), ".",
        )  # fmt: skip
    return right, trials
