"""The questions of a leaderboard: which to ask again, and which do not fit the others."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import ArgumentError, whole_number
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.comparison.boards.leaderboard import rank
from bayesatk.comparison.joint.posterior import joint_attrs
from bayesatk.core.one_factor.posterior import Draws
from bayesatk.core.one_factor.questions import (
    Cells,
    mark_rates,
    misfit,
    population_means,
    simulate_counts,
)
from bayesatk.metrics.credit import pass_at
from bayesatk.results.result import Fit, Result


def next_questions(
    fit: Fit,
    count: int | None = 10,
    *,
    systems: Sequence[object] | None = None,
    target: Literal["questions", "population"] = "questions",
    rng: RandomSource = None,
) -> pd.DataFrame:
    """Rank questions by how much one more trial of each would reduce the variance of mean scores.

    It shows which questions are the most informative to try again.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.leaderboard`, or a result that it takes.
    count : int, optional
        Number of questions to return, the most informative first; None: all.
    systems : sequence, optional
        Systems that would try them, once each; default: all.
    target : {"questions", "population"}
        ``"questions"``: the means over these questions; ``"population"``: over questions like
        these.
    rng : int, numpy.random.Generator or None
        Seed of the draws; None: those of the leaderboard.

    Returns
    -------
    pandas.DataFrame
        ``question``; ``reduction``: expected reduction of the posterior variance of the mean scores
        by one more trial of each system, as a share of that variance (summed over these systems);
        ``difficulty`` and ``difficulty_sd`` of the question (standard normal over questions, larger
        is harder); ``trials`` run so far.

    See Also
    --------
    bayesatk.plan : how many questions and trials, before any are chosen.

    Notes
    -----
    One more trial y is right or wrong, so the expected reduction of the variance of any quantity T
    is exactly ``cov(T, y)^2 / (E y (1 - E y))``; with judges that err y is the trial's mark. T is
    the mean score of the system that would run the trial; the information about other systems is
    not counted. For questions like these, more trials of the same questions reduce the variance
    little, and the differences between questions are estimated from draws.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1], [1, 0], [1, 1]], "b": [[1, 1], [0, 1], [1]]}
    >>> board = bayesatk.leaderboard(bayesatk.evaluate(runs, "pass@1", rng=1), rng=1)
    >>> next_questions(board, 1)["question"].tolist()  # both had one of two right
    [1]
    """
    ranking = rank(fit, rng=rng)
    ranking.result.require("board_questions")
    names = ranking.result.systems
    system_indices = _indices_of(names, systems)
    trials = ranking.result.trials
    if count is not None:
        count = whole_number("count", count)
    if target not in ("questions", "population"):
        raise ArgumentError("target", f" must be 'questions' or 'population'; got {target!r}.")
    mark, covariance, variance, difficulty, difficulty_sd = _moments(
        ranking.board.draws, ranking.result.weight, target
    )
    rows = [ranking.joint.systems.index(system) for system in system_indices]
    reduced = (covariance**2 / np.maximum(mark * (1.0 - mark), 1e-12))[rows]
    share = reduced.sum(axis=0) / max(float(variance[rows].sum()), 1e-12)
    frame = pd.DataFrame({
        "question": ranking.result.data.dataset["question"].values,
        "reduction": np.minimum(share, 1.0),
        "difficulty": difficulty, "difficulty_sd": difficulty_sd,
        "trials": trials.sum(axis=0),
    })  # fmt: skip
    frame = frame.sort_values("reduction", ascending=False, kind="stable", ignore_index=True)
    return frame if count is None else frame.head(count)


def _indices_of(names: list[object], systems: Sequence[object] | None) -> list[int]:
    if systems is None:
        return list(range(len(names)))
    unknown = [system for system in systems if system not in names]
    if unknown or not systems or len(set(systems)) < len(systems):
        raise ArgumentError(
            "systems", f" must be different ones of {names}; got {list(systems)!r:.80}."
        )
    return [names.index(system) for system in systems]


def _moments(
    drawn: Draws, weight: Array | None, target: Literal["questions", "population"]
) -> tuple[Array, Array, Array, Array, Array]:
    """Return what is known of success probabilities p and of systems' weighted means T of them.

    Given parameters questions are independent; draws of parameters connect them.

    Returns
    -------
    mark, covariance : ndarray, shape (systems, questions)
        Mean of the mark of one more trial, and its covariance with the mean score of the same
        system.
    variance : ndarray, shape (systems,)
        Of the mean.
    difficulty, difficulty_sd : ndarray, shape (questions,)
    """
    counts = drawn.likelihood.counts
    number = 300 if counts.observed is None else 100  # which take longer
    draw_indices = np.linspace(0, len(drawn.theta) - 1, number).astype(int)
    draws = replace(drawn, theta=drawn.theta[draw_indices])
    cells = [Cells.given(draws.likelihood, parameters) for parameters in draws.theta]
    rates = [mark_rates(counts, parameters) for parameters in draws.theta]
    low, width = np.stack(rates, axis=1)[..., None]
    p = np.stack([cell.mean for cell in cells])
    spread = np.stack([cell.variance for cell in cells])
    share = np.ones(p.shape[2]) if weight is None else weight
    share = share / share.sum()
    mark, mean_variance = low + width * p, spread.mean(axis=0) @ share**2
    within, value = (width * spread).mean(axis=0) * share, p @ share
    if target == "population":
        value = population_means([pass_at(1)], draws.likelihood, draws.theta)[:, :, 0]
        within, mean_variance = 0.0 * within, 0.0 * mean_variance
    gap = value - value.mean(axis=0)
    across = np.einsum("ds,dsq->sq", gap, mark - mark.mean(axis=0)) / len(value)
    difficulty = np.stack([cell.difficulty for cell in cells])
    difficulty_variance = np.mean([cell.difficulty_variance for cell in cells], axis=0)
    return (
        mark.mean(axis=0), within + across, gap.var(axis=0) + mean_variance,
        difficulty.mean(axis=0), np.sqrt(difficulty_variance + difficulty.var(axis=0)),
    )  # fmt: skip


def suspicious_questions(
    fit: Fit,
    *,
    alpha: float = 0.1,
    rng: RandomSource = None,
) -> pd.DataFrame:
    """Find questions that strong systems fail and weak ones solve, as with a wrong reference.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.leaderboard`, or a result that it takes.
    alpha : float
        Upper bound on the expected share of questions without defect among those marked (false
        discovery rate, Benjamini and Hochberg 1995).
    rng : int, numpy.random.Generator or None
        Seed of the simulated questions.

    Returns
    -------
    pandas.DataFrame
        All questions, the most suspicious first: ``question``, ``misfit`` (standardised; negative
        if better systems do worse than predicted from the question's difficulty), ``p_value``
        (share of simulated questions with a misfit as low), ``suspicious``.

    See Also
    --------
    bayesatk.checks.question_table : suspicious questions of one system.

    Notes
    -----
    Questions are simulated with the trials of the real ones from the model at the mean of its
    parameters, so the p-values allow for the fact that difficulties are estimated. They have little
    power with few systems, or with systems of about the same skill.

    Examples
    --------
    >>> import bayesatk
    >>> good, bad = [[1, 1, 1, 1]] * 14 + [[0, 0, 0, 0]], [[0, 0, 1, 0]] * 14 + [[1, 1, 1, 1]]
    >>> board = bayesatk.leaderboard(
    ...     bayesatk.evaluate({"a": good, "b": good, "c": bad, "d": bad}, "pass@1", rng=1), rng=1)
    >>> suspicious_questions(board, rng=1)["question"].iloc[0].item()
    14
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie strictly between 0 and 1; got {alpha}. Try 0.1.")
    generator, _ = resolve_rng(rng)
    made = joint_attrs(Result.of(fit))
    ranking = rank(fit, rng=None if made else generator)  # a leaderboard keeps its draws
    ranking.result.require("board_questions")
    draws = ranking.board.draws
    theta, likelihood = draws.theta.mean(axis=0), draws.likelihood
    counts = likelihood.counts
    mu = theta[0, : counts.systems]
    direction = mu - mu.mean()
    misfits = misfit(likelihood, theta, direction)
    number = len(counts.which)
    size = max(4000, 50 * number)  # of the sample that misfits are compared with
    questions = generator.permutation(np.arange(size) % number)
    simulated_counts = simulate_counts(likelihood, theta, questions, generator)
    simulated = np.sort(misfit(replace(likelihood, counts=simulated_counts), theta, direction))
    p = (np.searchsorted(simulated, misfits, side="right") + 1.0) / (size + 1.0)
    order = np.argsort(p, kind="stable")
    passed = p[order] <= alpha * np.arange(1, len(p) + 1) / len(p)
    last = int(np.flatnonzero(passed)[-1]) + 1 if passed.any() else 0
    names = ranking.result.data.dataset["question"].values
    return pd.DataFrame({
        "question": names[order], "misfit": misfits[order], "p_value": p[order],
        "suspicious": np.arange(len(p)) < last,
    })  # fmt: skip
