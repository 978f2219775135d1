"""Joint draws of all systems of a result, with difficulties that they share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.words import probability_words
from bayesatk.comparison.pairs.draws import Subset, data_keys
from bayesatk.core.one_factor.chances import Marking
from bayesatk.core.one_factor.model import Counts
from bayesatk.core.one_factor.posterior import Draws, Fit
from bayesatk.core.one_factor.questions import QuestionMeans, population_means
from bayesatk.core.question.laws import finite
from bayesatk.judge_error import Judges
from bayesatk.metrics.grid import Metric
from bayesatk.priors import LeaderboardPrior
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS

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


def board_of(fit: Result, prior: LeaderboardPrior, seed: int) -> Board:
    """Draw the parameters of all systems, and their metrics.

    Names and the order of systems have no part in anything.
    """
    right, trials = fit.right_of_all("leaderboard")
    if len(trials) < 2:
        raise ArgumentError(
            Argument("fit"), " must have at least two systems to rank; got one. Name them: ",
            Argument("source", {"a": "first.csv", "b": "second.csv"}, "load"), ".",
        )  # fmt: skip
    keys = data_keys(fit, Subset.whole(fit))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    judges = None if fit.judges is None else fit.judges.among(order)
    board = drawn_board(right[order], trials[order], fit.metrics, prior, judges, seed)
    back = np.argsort(order)
    return Board(board.values[:, :, back], board.observed[back], board.draws, back)


def drawn_board(
    right: Ints,
    trials: Ints,
    metrics: Sequence[Metric],
    prior: LeaderboardPrior,
    judges: Judges | None,
    seed: int,
) -> Board:
    """Draw a board of counts (systems, questions), without a result around them."""
    marking = None if judges is None else _marking(judges)
    rng = np.random.default_rng(seed)
    draws = Fit.of(Counts.of(right, trials, marking), prior).draw(rng)
    # 400 draws at least, whatever they take: a probability of 1/2 is then known to .025.
    draws = draws.among(max(400, int(_CELLS / right.size)))
    credits = [metric.credit for metric in metrics]
    means = QuestionMeans(draws.likelihood, right, trials, credits)
    questions = means.draw(draws.theta, [metric.latent for metric in metrics], rng)
    values = np.stack([questions, population_means(credits, draws.likelihood, draws.theta)])
    observed = np.full((len(trials), len(credits)), np.nan)
    for i, (c, n) in enumerate(zip(right, trials, strict=True)):
        for j, credit in enumerate(credits):
            if n.any():
                observed[i, j] = finite(credit, c[n > 0], n[n > 0]).mean()
    return Board(values, observed, draws, np.arange(len(trials)))


def _marking(judges: Judges) -> Marking:
    """Return who marked the trials of every system."""
    judge_numbers = np.empty(len(judges.by_system), np.intp)
    for number, systems in enumerate(judges.groups().values()):
        judge_numbers[systems] = number
    return Marking(judge_numbers, np.array([judge.shapes for judge in judges.groups()]))


def leaderboard_group(
    result: Result, rows: pd.DataFrame, declared: NDArray[np.int8], attrs: dict[str, Any]
) -> xr.Dataset:
    """Return the group ``leaderboard``: the table of all metrics and targets, and declared orders.

    Parameters
    ----------
    result : Result
    rows : pandas.DataFrame
        A row per metric, target and system.
    declared : ndarray, shape (metrics, target, system, other)
    attrs : dict
    """
    keys = ["system", "metric", "target"]
    names = [column for column in rows.columns if column not in keys]
    labels = [metric.label for metric in result.metrics]
    order = pd.MultiIndex.from_product([result.systems, labels, list(TARGETS)])
    values = rows.set_index(keys)[names].astype(float).loc[order].to_numpy()
    shape = len(result.systems), len(labels), len(TARGETS), len(names)
    systems = result.posterior["system"].values
    coords = {"system": systems, "metric": labels, "target": list(TARGETS), "statistic": names}
    table = {
        "value": ((*keys, "statistic"), values.reshape(shape)),
        "separated": (("metric", "target", "system", "other"), declared),
    }
    return xr.Dataset(table, {**coords, "other": systems}, attrs)


def leaderboard_rows(result: Result) -> pd.DataFrame:
    """Return the table of a result that has the group ``leaderboard``, best first."""
    value = result.group("leaderboard")["value"]
    frame = value.to_dataframe().unstack("statistic")["value"].reset_index()
    frame.columns.name = None
    frame = frame[["system", "metric", "target", *value["statistic"].values]]
    integer_columns = ["rank", "rank_lower", "rank_upper", "tier", "questions", "trials"]
    keys = {name: i for i, name in enumerate(value["metric"].values)}
    block = frame["metric"].map(keys) * 2 + (frame["target"] == TARGETS[1])
    frame = frame.assign(block=block).sort_values(["block", "rank"], kind="stable")
    frame = frame.drop(columns="block").astype(dict.fromkeys(integer_columns, int))
    return frame.reset_index(drop=True)


def as_text(rows: pd.DataFrame, effective_draws: float, result: Result) -> pd.DataFrame:
    """Return rows of a leaderboard as a person reads them."""
    percent = f"{100 * result.ci_prob:g}% interval"

    def chance(p: float) -> str:
        share = min(max(p, 0.0), 1.0)  # a weighted share may be one by a rounding more
        return probability_words(share, float(np.sqrt(share * (1.0 - share) / effective_draws)))

    return pd.DataFrame({
        "rank": rows["rank"], "system": rows["system"].astype(str),
        "observed": ["k>n" if np.isnan(x) else f"{x:.3f}" for x in rows["observed"]],
        "mean": [f"{x:.3f}" for x in rows["mean"]],
        percent: [
            f"[{a:.3f}, {b:.3f}]" for a, b in zip(rows["ci_lower"], rows["ci_upper"], strict=True)
        ],
        "P(best)": [chance(x) for x in rows["prob_best"]],
        "P(top 3)": [chance(x) for x in rows["prob_top3"]],
        "ranks": [
            f"{a}-{b}" if a < b else f"{a}"
            for a, b in zip(rows["rank_lower"], rows["rank_upper"], strict=True)
        ],
        "tier": rows["tier"],
    })  # fmt: skip
