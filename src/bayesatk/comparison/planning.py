"""How many questions and trials an evaluation needs, before it is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bayesatk.core.planning import Design, design
from bayesatk.metrics import Metric, parse
from bayesatk.results import TARGETS, check_result

Array = NDArray[np.float64]
_TRIALS = (1, 2, 4, 8, 16, 32)
_DRAWS = 60  # of the pilot's hyperparameters
_MOST = 10**7  # questions beyond which a design is out of reach


@dataclass(frozen=True)
class _Goal:
    """What the evaluation should achieve, as a function of designs by draw and system."""

    width: float | None
    prob_correct: float | None
    target: int
    ci_prob: float
    correlation: float

    def reached(self, designs: list[list[Design]], questions: float) -> tuple[float, float]:
        """Return the expected width (of a difference), and the probability of a right call."""
        variance = np.array([[one.variance(questions) for one in pair] for pair in designs])
        total = variance[:, :, self.target].sum(axis=1)
        if variance.shape[1] > 1:
            # What the draw of questions adds is shared as far as their difficulty is.
            drawn = np.maximum(variance[:, :, self.target] - variance[:, :, 0], 0.0)
            total = total - 2.0 * self.correlation * np.sqrt(drawn.prod(axis=1))
        sd = np.sqrt(total)
        width = float(2.0 * ndtri(0.5 + 0.5 * self.ci_prob) * sd.mean())
        if len(designs[0]) < 2:
            return width, float("nan")
        gap = np.array([pair[0].value - pair[1].value for pair in designs])
        return width, float(ndtr(np.abs(gap) / np.maximum(sd, 1e-300)).mean())

    def met(self, designs: list[list[Design]], questions: float) -> bool:
        width, correct = self.reached(designs, questions)
        if self.prob_correct is not None:
            return correct >= self.prob_correct
        return self.width is not None and width <= self.width


def plan(
    source: object,
    metric: str | Metric,
    *,
    width: float | None = None,
    prob_correct: float | None = None,
    target: Literal["questions", "population"] = "population",
    trials: Sequence[int] = _TRIALS,
    ci_prob: float = 0.95,
    correlation: float = 0.0,
) -> pd.DataFrame:
    """Questions needed at each number of trials, for a width or for a right decision.

    Parameters
    ----------
    source : result, pair or mapping
        Where difficulties come from: a pilot evaluated with pooling="partial" (its posterior is
        averaged over); ``(mean, icc)`` stated; or ``{system: (mean, icc)}`` of one or two systems.
        With two systems the plan is for their difference.
    metric : str or Metric
        One metric of right and wrong, at one k.
    width : float, optional
        Width that the credible interval should have.
    prob_correct : float, optional
        Probability that the better of two systems comes out ahead, strictly between 0.5 and 1.
        Exactly one of the two goals is given.
    target : {"population", "questions"}
        Questions like these, or these questions.
    trials : sequence of int
        Trials per question to consider.
    ci_prob : float
        Probability of the interval.
    correlation : float
        Between the two systems' difficulties, in [0, 1): what the same questions for both are
        worth. `bayesatk.build_crossed` estimates it from a pilot.

    Returns
    -------
    pandas.DataFrame
        One row per number of ``trials``: ``questions`` needed (infinite beyond 10^7), ``total``
        trials of a system, the ``width`` and ``prob_correct`` then expected, and ``cheapest``, true
        for the smallest total.

    Raises
    ------
    ValueError
        If there is not exactly one goal, it cannot be, or the source has no difficulty
        distribution.

    Notes
    -----
    Preposterior analysis in closed form: expected posterior variances over the Beta-binomial counts
    to come, with the uncertainty of the difficulty distribution from its Fisher information and the
    uniform prior; the posterior is taken to be normal. With ``correlation=0`` two systems are
    planned for as if they were asked different questions, which asks for too many.

    Examples
    --------
    >>> table = plan((0.6, 0.3), "pass@1", width=0.1, trials=[1, 4])
    >>> table[["trials", "questions", "total"]].values.tolist()
    [[1.0, 367.0, 367.0], [4.0, 174.0, 696.0]]
    """
    (chosen, *others) = parse(metric)
    if others or chosen.family.on_answers:
        raise ValueError(
            f"metric must be one metric of right and wrong at one k; got {metric!r}. Plan for the "
            "one that matters most."
        )
    if target not in TARGETS:
        raise ValueError(f"target must be 'questions' or 'population'; got {target!r}.")
    difficulties = _difficulties(source)
    goal = _Goal(width, prob_correct, TARGETS.index(target), ci_prob, correlation)
    _check_goal(goal, difficulties.shape[1])
    rows = []
    for n in trials:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"trials must be integers >= 1; got {n!r}.")
        designs = [
            [design(chosen.credit, float(m), float(r), int(n)) for m, r in pair]
            for pair in difficulties
        ]
        questions = _fewest(goal, designs)
        expected, correct = goal.reached(designs, min(questions, _MOST))
        rows.append(
            {
                "trials": int(n), "questions": questions, "total": questions * n,
                "width": expected, "prob_correct": correct,
            }
        )  # fmt: skip
    table = pd.DataFrame(rows)
    smallest = table["total"].min()
    return table.assign(cheapest=(table["total"] == smallest) & np.isfinite(table["total"]))


def _check_goal(goal: _Goal, systems: int) -> None:
    if (goal.width is None) == (goal.prob_correct is None):
        raise ValueError("give exactly one goal: width= or prob_correct=.")
    if goal.width is not None and not goal.width > 0:
        raise ValueError(f"width must be > 0; got {goal.width}.")
    if goal.prob_correct is not None:
        if systems < 2:
            raise ValueError(
                "prob_correct needs two systems, {name: (mean, icc), other: (mean, icc)} or a "
                "pilot of two; got one."
            )
        if not 0.5 < goal.prob_correct < 1.0:
            raise ValueError(
                f"prob_correct must lie strictly between 0.5 and 1; got {goal.prob_correct}."
            )
    if not 0.0 <= goal.correlation < 1.0 or (goal.correlation > 0.0 and systems < 2):
        raise ValueError(
            "correlation must lie in [0, 1), and needs two systems to be between; got "
            f"{goal.correlation} for {systems}."
        )
    if not 0.0 < goal.ci_prob < 1.0:
        raise ValueError(f"ci_prob must lie strictly between 0 and 1; got {goal.ci_prob}.")


def _difficulties(source: object) -> Array:
    """Mean and correlation of difficulties; shape (draws, systems, 2)."""
    if isinstance(source, xr.DataTree):
        posterior = check_result(source)["posterior"].to_dataset()
        if "icc" not in posterior or "category" in posterior["mean_p"].dims:
            raise ValueError(
                "source must be right and wrong evaluated with pooling='partial', which says how "
                f"difficult questions are; got pooling={source.attrs['pooling']!r}, form="
                f"{source.attrs.get('model_form', 'closed')!r}. Evaluate the pilot with it."
            )
        order = ("chain", "draw", "system")
        pairs = np.stack(
            [posterior[name].transpose(*order).values for name in ("mean_p", "icc")], axis=-1
        )
        flat = pairs.reshape(-1, *pairs.shape[2:])
        chosen = flat[np.linspace(0, len(flat) - 1, min(_DRAWS, len(flat))).astype(int)]
    else:
        stated = list(source.values()) if isinstance(source, Mapping) else [source]
        try:
            chosen = np.array([stated], float)
        except (TypeError, ValueError):
            chosen = np.zeros(0)
        if chosen.ndim != 3 or chosen.shape[2] != 2 or not ((chosen > 0) & (chosen < 1)).all():
            raise ValueError(
                "source must be a result, (mean, icc) or {system: (mean, icc)}, both strictly "
                f"between 0 and 1; got {source!r:.80}."
            )
    if chosen.shape[1] > 2:
        raise ValueError(
            f"source must be of one system or two; got {chosen.shape[1]}. Select them."
        )
    return np.asarray(np.clip(chosen, 1e-6, 1.0 - 1e-6), float)


def _fewest(goal: _Goal, designs: list[list[Design]]) -> float:
    """Smallest number of questions that meets the goal; infinite when none does."""
    if not goal.met(designs, _MOST):
        return float("inf")
    low, high = 0, 1
    while not goal.met(designs, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if goal.met(designs, middle) else (middle, high)
    return float(high)
