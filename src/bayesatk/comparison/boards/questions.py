"""Questions of a leaderboard that do not fit the others."""

from dataclasses import replace

import numpy as np
import pandas as pd

from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.comparison.boards.leaderboard import rank
from bayesatk.comparison.joint.posterior import joint_attrs
from bayesatk.core.one_factor.questions import (
    misfit,
    simulate_counts,
)
from bayesatk.results.result import Fit, Result


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
