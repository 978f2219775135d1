"""What a closed-form posterior of one system is, whatever the pooling."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.engine.distribution import Empirical
from bayesatk.core.numerics.weights import total_moments
from bayesatk.core.pooling.nodes import Nodes

Distributions = Sequence[Sequence[Empirical | None]]  # by target


@dataclass(frozen=True)
class GroupDraws:
    """Draws of groups of questions.

    Parameters
    ----------
    mean : ndarray, shape (draws, groups)
        Success probability of a new question of each group.
    metrics : ndarray, shape (draws, groups, metrics, target)
        Of the questions of each group, and of questions like them in it.
    effect : ndarray, shape (draws, groups), optional
        In logits, where groups are part of the model.
    """

    mean: Array
    metrics: Array
    effect: Array | None = None


@dataclass(frozen=True)
class Draws:
    """Independent draws.

    Parameters
    ----------
    metrics : ndarray, shape (draws, metrics, target)
    hyper : dict
        Hyperparameters.
    p : ndarray, optional
        Of every question, when kept.
    difficulty : Nodes, optional
        Where it takes more than a Beta.
    family : ndarray of int, optional
        Position of the difficulty family in `bayesatk.priors.DIFFICULTY_FAMILIES`.
    groups : GroupDraws, optional
        Where questions have groups.
    log_likelihood : ndarray, shape (draws, questions), optional
        Log probability of each question's counts, p integrated, of models put together from parts.
    """

    metrics: Array
    hyper: dict[str, Array]
    p: Array | None = None
    difficulty: Nodes | None = None
    family: Ints | None = None
    groups: GroupDraws | None = None
    log_likelihood: Array | None = None

    def among(self, order: Indices) -> "Draws":
        """Return draws in another order."""
        ordered: Draws = _each([self], lambda arrays: arrays[0][order])
        return ordered

    @staticmethod
    def joined(parts: "Sequence[Draws]") -> "Draws":
        """Return draws one after the other."""
        joined: Draws = _each(parts, np.concatenate)
        return joined


def _each(parts: Sequence[Any], function: Callable[[Sequence[Array]], Array]) -> Any:
    """Return what holds arrays as the first part does, each a function of those of all parts."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, np.ndarray):
        return function(parts)
    if isinstance(first, dict):
        return {name: _each([part[name] for part in parts], function) for name in first}
    names = [field.name for field in fields(first)]
    return replace(
        first, **{name: _each([getattr(part, name) for part in parts], function) for name in names}
    )


@dataclass(frozen=True)
class Summary:
    """Exact posterior of one number: mean, sd and distribution."""

    mean: float
    sd: float
    distribution: Empirical

    @classmethod
    def on_points(cls, weight: Array, values: Array) -> "Summary":
        """Return the summary of a number that is known on weighted points."""
        mean, variance = total_moments(weight, values)
        return cls(float(mean), float(np.sqrt(variance)), Empirical(values, weight))


def least(*draws: Mapping[str, float | Array]) -> dict[str, float]:
    """Return the smallest effective number of draws of each statistic that any of these has.

    Examples
    --------
    >>> least({"mean_draws": np.array([400.0, 300.0])}, {"interval_draws": 95.0}, {})
    {'mean_draws': 300.0, 'interval_draws': 95.0}
    """
    names = dict.fromkeys(name for one in draws for name in one)
    found = {name: float(min(np.min(one.get(name, np.inf)) for one in draws)) for name in names}
    return {name: number for name, number in found.items() if np.isfinite(number)}


class FamilyShare(NamedTuple):
    """What a family of difficulty contributes to an average.

    Parameters
    ----------
    probability, error : float
        Posterior probability, and its standard error.
    log_evidence : float
    pareto_k : float
        Shape of the tail of importance weights, trustworthy below 0.7; NaN without weights.
    """

    probability: float
    error: float
    log_evidence: float
    pareto_k: float


def _left_out(*_: object) -> Any:
    raise AssertionError("a settled posterior has nothing to work this out from")


@dataclass(frozen=True)
class SystemPosterior:
    """Exact posterior of one system's metrics.

    Parameters
    ----------
    mean, variance_trial, variance_question : ndarray, shape (metrics, targets)
        For the targets "questions" and "population"; where questions have groups, "new_groups".
    distributions : callable
        Returns the exact distribution of every metric by target; None where only draws give
        quantiles. They are most of the work, and not everyone needs them.
    draw : callable
        ``draw(size, rng, keep_p)`` returns `Draws`.
    question_p : callable
        Returns the exact mean and sd of every question's success probability.
    hyper : dict of name -> Summary, or list of Summary by category
        Exact posteriors of the hyperparameters.
    diagnostics : dict
        Numerical quality, for the attributes of the result.
    families : dict of name -> FamilyShare
        Of difficulty, where questions are pooled partially.
    sd_under : callable, optional
        ``sd_under(prior)`` returns the sds under another prior, where that costs little.
    method : str
        How it was found.
    warning : str, optional
        Why the hyperparameters had to be sampled, and are not integrated.
    effective_draws : dict of statistic -> float or ndarray
        Effective number of draws of weighted points that the metrics are worked out at, of all or
        by metric; empty where hyperparameters are integrated by quadrature.
    hyper_draws : dict of name -> dict of statistic -> float
        The same, of the hyperparameters.
    groups : list of SystemPosterior
        Of each group of questions alone, where there are groups.
    judge_share : ndarray, optional
        Share of the variance that is due to the rates of a judge; (metrics, 2).
    expected : callable, optional
        Where questions have covariates: returns what is expected of new questions like each, p
        (questions,) and the metrics (questions, metrics).
    """

    mean: Array
    variance_trial: Array
    variance_question: Array
    distributions: Callable[[], Distributions]
    draw: Callable[[int, Rng, bool], Draws]
    question_p: Callable[[], tuple[Array, Array]]
    hyper: dict[str, "Summary | list[Summary]"] = field(default_factory=dict)
    diagnostics: dict[str, float] = field(default_factory=dict)
    families: dict[str, FamilyShare] = field(default_factory=dict)
    sd_under: Callable[[Any], Array] | None = None
    method: str = "conjugate"
    warning: str | None = None
    effective_draws: Mapping[str, float | Array] = field(default_factory=dict)
    hyper_draws: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    groups: "list[SystemPosterior]" = field(default_factory=list)
    judge_share: Array | None = None
    expected: Callable[[], tuple[Array, Array]] | None = None

    def settled(self) -> "SystemPosterior":
        """Return the numbers and the hyperparameters, without what the rest is worked out from."""
        return replace(
            self, distributions=_left_out, draw=_left_out, question_p=_left_out,
            sd_under=None, expected=None, groups=[one.settled() for one in self.groups],
        )  # fmt: skip

    @property
    def sd(self) -> Array:
        """Posterior standard deviation."""
        return np.sqrt(self.variance_trial + self.variance_question)


def by_target(questions: Array, population: Array) -> Array:
    """Return values for both targets as columns; shape (metrics, 2)."""
    return np.stack([questions, population], axis=1)
