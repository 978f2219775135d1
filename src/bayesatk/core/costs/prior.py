"""Costs of trials as the model of them takes them, and its prior."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import ArgumentError, real_number
from bayesatk.priors.checks import positive_numbers
from bayesatk.priors.fields import Field, Fields, HalfNormal, Normal

FINEST = 1e-4  # least square of a coefficient of variation
NAMES = (  # of the parameters in results
    "cost_level", "cost_slope", "cost_outcome", "cost_spread", "cost_shape_wrong",
    "cost_shape_right",
)  # fmt: skip
# Names of the quantities that depend on the number of tries, and on what may be spent.
BY_K = ("pass_at_k", "cost_to_success")
BY_BUDGET = ("tries_at_budget", "pass_at_budget", "coverage_at_budget")


@dataclass(frozen=True)
class Costs:
    """Sums over the trials of each question whose cost is known; wrong trials, then right ones.

    Parameters
    ----------
    trials, total : ndarray, shape (questions, 2)
        Number of trials, and sum of their costs in units of the prior's scale.
    log_total : ndarray, shape (2,)
        Sum of the logs of all costs.
    worth : (float, float)
        That all sums are multiplied by: `trial_worth`.
    """

    trials: Array
    total: Array
    log_total: Array
    worth: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of_sums(
        cls, trials: Array, total: Array, log_total: Array, square_total: Array, scale: float
    ) -> "Costs":
        """Take sums (questions, 2); trials that vary more than a Gamma count for fewer.

        Parameters
        ----------
        trials, total, log_total, square_total : ndarray, shape (questions, 2)
            Number of trials, and sums of their costs, of logs and of squares.
        scale : float
            Unit of costs in the model.
        """
        sums = trials, total, log_total, square_total
        wrong, right = (trial_worth(*(column[:, i] for column in sums)) for i in range(2))
        worth = np.array([wrong, right])
        logs = log_total.sum(axis=0) - trials.sum(axis=0) * np.log(scale)
        return cls(trials * worth, total / scale * worth, logs * worth, (wrong, right))


def trial_worth(trials: Array, total: Array, log_total: Array, square_total: Array) -> float:
    """Return how many trials with Gamma costs one trial is worth, at most 1.

    The likelihood of Gamma costs finds their shape by logs, and heavy tails vary more than that
    shape says. So the log likelihood is multiplied by the variation within questions that the shape
    would lead to, over what it is (a quasi-likelihood; McCullagh and Nelder 1989, section 9.2).
    Shares ``w`` of n Gamma costs in their sum are Dirichlet: ``sum (n w - 1)^2`` is expected to be
    ``n (n - 1) / (n shape + 1)``.

    Parameters
    ----------
    trials, total, log_total, square_total : ndarray, shape (questions,)
        As of `Costs.of_sums`, of one outcome.

    Examples
    --------
    Costs 1, 1, 1, 9 of each of 20 questions: their squares vary twice as much as logs say.

    >>> twenty = np.ones(20)
    >>> round(trial_worth(4 * twenty, 12 * twenty, np.log(9) * twenty, 84 * twenty), 2)
    0.52
    """
    several = trials > 1.0
    n, total, log_total, squares = (
        sums[several] for sums in (trials, total, log_total, square_total)
    )
    gap = float((n * np.log(total / n) - log_total).sum())

    def excess(log_shape: float) -> float:
        shape = np.exp(log_shape)
        of_mean = digamma(n * shape) - np.log(n * shape)
        return float((n * (of_mean - digamma(shape) + log_shape)).sum()) - gap

    least, most = -np.log(1.0 / FINEST), -np.log(FINEST)
    if not len(n) or excess(most) >= 0.0:
        return 1.0
    shape = np.exp(least if excess(least) <= 0.0 else brentq(excess, least, most))
    varied = float((n * (n * squares / total**2 - 1.0)).sum())
    expected = float((n * (n - 1.0) / (n * shape + 1.0)).sum())
    return min(1.0, expected / varied) if np.isfinite(varied) and varied > 0.0 else 1.0


@dataclass(frozen=True)
class CostPrior:
    """Prior of the cost of trials.

    A trial of question q has a cost ``x ~ Gamma`` with mean ``m_q`` if it fails and mean
    ``m_q exp(outcome)`` if it succeeds, with one shape for failures and one for successes. Means
    differ between questions: ``log m_q ~ Normal(log scale + level + slope (1/2 - p_q), spread)``,
    where ``p_q`` is the question's success probability. So ``exp(slope)`` is the ratio of the mean
    cost of a question that is never solved to that of one that is always solved.

    Parameters
    ----------
    scale : float, optional
        Unit of cost, at which ``level`` is 0. Default: the mean cost of all trials of the data.
    level, slope, outcome : float
        Sds of their normal priors, centred at 0, on the log scale.
    spread : float
        Scale of the half-normal prior of the spread, on the log scale. It must be below 0.7, so
        that mean costs of questions have a mean and a variance for any data.
    shape : (float, float)
        Median of the log-normal priors of both Gamma shapes, and sd of their logs. The cost of
        trials of the same question and outcome has a coefficient of variation of
        ``1 / sqrt(shape)``, which is at least 0.01.

    See Also
    --------
    bayesatk.models.build_cost_model : the model.

    Examples
    --------
    >>> CostPrior(scale=0.25).scale
    0.25
    """

    scale: float | None = None
    level: float = 2.0
    slope: float = 1.0
    outcome: float = 1.0
    spread: float = 0.6
    shape: tuple[float, float] = (4.0, 1.0)

    def __post_init__(self) -> None:
        scale = ["scale"] * (self.scale is not None)
        positive_numbers(self, "level", "slope", "outcome", "spread", *scale, of="cost_prior")
        if not self.spread < 0.7:
            rule = f" must have a spread below 0.7; got {self.spread:g}. 0.6 is usual."
            raise ArgumentError("cost_prior", rule)
        shape: object = self.shape
        numbers = shape if isinstance(shape, tuple | list) else ()
        median_and_sd = tuple(real_number("cost_prior: shape", number) for number in numbers)
        if len(median_and_sd) != 2 or not all(0.0 < number < np.inf for number in median_and_sd):
            rule = f" must have a shape of median and sd, as (4.0, 1.0); got {shape!r:.80}."
            raise ArgumentError("cost_prior", rule)
        object.__setattr__(self, "shape", median_and_sd)

    @cached_property
    def _fields(self) -> tuple[Fields, Array]:
        """Priors of level, slope, outcome, spread and the logs of the shapes, and their centres."""
        median, sd = self.shape
        fields = Fields((
            *(Field(name, Normal(getattr(self, name))) for name in ("level", "slope", "outcome")),
            Field("spread", HalfNormal(self.spread)), Field("shape", Normal(sd), 2, "outcome"),
        ))  # fmt: skip
        return fields, np.array([0.0] * 4 + [np.log(median)] * 2)

    def from_uniform(self, u: Array) -> Array:
        """Return parameters from uniform numbers: level, slope, outcome, log spread, log shapes."""
        fields, centre = self._fields
        return fields.from_uniform(u) + centre

    def log_density(self, theta: Array) -> Array:
        """Return the log prior density of parameters, on the scale of `from_uniform`."""
        fields, centre = self._fields
        return fields.log_density(theta - centre)


def named(theta: Array) -> dict[str, Array]:
    """Parameters by name, spread and shapes themselves; `theta` as of `CostPrior.from_uniform`."""
    values = [*theta[:, :3].T, np.exp(theta[:, 3]), *shapes(theta[:, 4:]).T]
    return dict(zip(NAMES, values, strict=True))


def shapes(logs: Array) -> Array:
    """Gamma shapes of what is log-normal a priori: at most ten thousand.

    So the costs of trials alike have a coefficient of variation of a hundredth at least, though all
    that were seen are the same.
    """
    return np.asarray(1.0 / (np.exp(-logs) + FINEST))
