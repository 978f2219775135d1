"""The two scales of trials: right and wrong, and categories with scores.

Both have the same methods. `bayesatk.data.study.Study` chooses the scale of the data and metrics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.category_credit import ScoredCredit, reaching
from bayesatk.metrics.grid import Metric
from bayesatk.priors import CategoryPrior, DirichletHyperPrior, HyperPrior, Pooling, Prior
from bayesatk.priors.choice import resolve_category_prior, resolve_prior


class MetricFunction(Protocol):
    """A metric as a function of the probabilities of one question."""

    @property
    def k(self) -> int:
        """Number of trials that the metric judges."""

    def latent(self, p: Array) -> Array:
        """Return the value of the metric at known probabilities."""


@dataclass(frozen=True)
class RightWrongScale:
    """Scale of right and wrong; a question has a success probability p.

    Attributes
    ----------
    variable : str
        Name of the counts in a result.
    axes : tuple of str
        Dimensions of the probabilities of a question: none, or the categories.
    scores : tuple of float
        Scores of the categories.
    direction : int
        1 where higher values of all metrics are better, -1 where lower ones are.
    """

    variable: ClassVar[str] = "successes"
    axes: ClassVar[tuple[str, ...]] = ()
    scores: ClassVar[tuple[float, ...]] = (0.0, 1.0)
    direction: ClassVar[int] = 1

    @classmethod
    def of(cls, outcomes: Outcomes) -> "RightWrongScale":
        """Return the scale of right and wrong, which is the same for all data."""
        return RIGHT_WRONG

    def resolve_prior(self, pooling: Pooling, prior: object) -> Prior:
        """Return the prior given, checked, or the default."""
        return resolve_prior(pooling, prior)

    def judged(self, metric: Metric) -> MetricFunction:
        """Return the metric as a function of the success probability."""
        return metric

    def reaching(self) -> Sequence[MetricFunction]:
        """Return no metrics; the probability of a success is pass@1."""
        return ()

    def counts(self, outcomes: Outcomes) -> Ints:
        """Return the numbers of wrong and right trials."""
        return self.by_category(outcomes.successes.values, outcomes.trials.values)

    def observed(self, outcomes: Outcomes) -> xr.DataArray:
        """Return the successes, which are the observed variable of a model."""
        return outcomes.successes

    def constants(self, outcomes: Outcomes) -> dict[str, xr.DataArray]:
        """Return no constant data."""
        return {}

    def vectors(self, p: Array) -> Array:
        """Return the probabilities of wrong and right."""
        return np.stack([1.0 - p, p], axis=-1)

    def draw_counts(self, trials: Ints | int, p: Array, rng: Rng) -> Ints:
        """Draw numbers of successes."""
        return rng.binomial(trials, p)

    def by_category(self, drawn: Ints, trials: Ints | int) -> Ints:
        """Return the numbers of wrong and right trials, from the successes."""
        return np.stack([trials - drawn, drawn], axis=-1)


@dataclass(frozen=True)
class Scored:
    """Scale of scored categories; a question has a probability of each category.

    Parameters
    ----------
    scores : tuple of float
    direction : int
        1 where higher scores are better, -1 where lower ones are.
    """

    scores: tuple[float, ...]
    direction: int = 1
    variable: ClassVar[str] = "count"
    axes: ClassVar[tuple[str, ...]] = ("category",)

    @classmethod
    def of(cls, outcomes: Outcomes) -> "Scored":
        """Return the scale of scored categories."""
        return cls(tuple(outcomes.dataset["score"].values.tolist()), outcomes.direction)

    def resolve_prior(self, pooling: Pooling, prior: object) -> CategoryPrior | HyperPrior:
        """Return the prior given, checked, or the default.

        Ordered categories need different scores; for equal scores the default has no order.
        """
        if pooling == "partial" and len(set(self.scores)) == 1:
            if isinstance(prior, HyperPrior):
                raise ValueError(
                    "prior must be a DirichletHyperPrior where all scores are the same, which have "
                    f"no order; got {prior!r:.80}. Leave it out."
                )
            prior = DirichletHyperPrior() if prior is None else prior
        return resolve_category_prior(pooling, prior)

    def judged(self, metric: Metric) -> ScoredCredit:
        """Return the metric as a function of the category probabilities."""
        return ScoredCredit(metric.category_credit, np.array(self.scores))

    def reaching(self) -> list[ScoredCredit]:
        """Return the probabilities of at least each score but the worst, as metrics."""
        return reaching(self.direction * np.array(self.scores))

    def counts(self, outcomes: Outcomes) -> Ints:
        """Return the numbers of trials by category."""
        return outcomes.dataset["count"].values

    def observed(self, outcomes: Outcomes) -> xr.DataArray:
        """Return the counts, which are the observed variable of a model."""
        return outcomes.dataset["count"].drop_vars("score")

    def constants(self, outcomes: Outcomes) -> dict[str, xr.DataArray]:
        """Return the scores as constant data."""
        return {"category_score": outcomes.dataset["score"].drop_vars("score")}

    def vectors(self, p: Array) -> Array:
        """Return the category probabilities unchanged."""
        return p

    def draw_counts(self, trials: Ints | int, p: Array, rng: Rng) -> Ints:
        """Draw counts by category."""
        return rng.multinomial(trials, p)

    def by_category(self, drawn: Ints, trials: Ints | int) -> Ints:
        """Return the counts unchanged."""
        return drawn


RIGHT_WRONG = RightWrongScale()
Scale = RightWrongScale | Scored
