"""How trials are judged: as right and wrong, or as categories with scores.

What both ways share and where they differ is said here once. A scale is chosen when data and
metrics are read, and what comes after calls it.
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
        """Trials judged."""

    def latent(self, p: Array) -> Array:
        """Value at known probabilities."""


@dataclass(frozen=True)
class RightWrong:
    """Successes out of trials; a question has a success probability.

    Attributes
    ----------
    variable : str
        Name of the counts in a result.
    axes : tuple of str
        Dimensions of a question's probabilities: none for p, the categories for a vector.
    rated : str
        What `rate` returns.
    scores : tuple of float
        Of the categories.
    direction : int
        1 where higher values of all metrics are better, -1 where lower ones are.
    """

    variable: ClassVar[str] = "successes"
    axes: ClassVar[tuple[str, ...]] = ()
    rated: ClassVar[str] = "p"
    scores: ClassVar[tuple[float, ...]] = (0.0, 1.0)
    direction: ClassVar[int] = 1

    @classmethod
    def of(cls, outcomes: Outcomes) -> "RightWrong":
        """Return the scale of marks, which is always the same."""
        return RIGHT_WRONG

    def resolve_prior(self, pooling: Pooling, prior: object) -> Prior:
        """Return the prior given, checked, or the default."""
        return resolve_prior(pooling, prior)

    def judged(self, metric: Metric) -> MetricFunction:
        """Return the metric."""
        return metric

    def reaching(self) -> Sequence[MetricFunction]:
        """Nothing: to succeed is a metric."""
        return ()

    def rate(self, p: Array) -> Array:
        """Success probabilities."""
        return p

    def counts(self, outcomes: Outcomes) -> Ints:
        """Wrong and right trials."""
        return self.by_category(outcomes.successes.values, outcomes.trials.values)

    def observed(self, outcomes: Outcomes) -> xr.DataArray:
        """Return the successes."""
        return outcomes.successes

    def constants(self, outcomes: Outcomes) -> dict[str, xr.DataArray]:
        """Nothing."""
        return {}

    def vectors(self, p: Array) -> Array:
        """Probabilities of wrong and right."""
        return np.stack([1.0 - p, p], axis=-1)

    def draw_counts(self, trials: Ints | int, p: Array, rng: Rng) -> Ints:
        """Draw successes."""
        return rng.binomial(trials, p)

    def by_category(self, drawn: Ints, trials: Ints | int) -> Ints:
        """Wrong and right trials."""
        return np.stack([trials - drawn, drawn], axis=-1)

    def replicates(self, mean: Array, icc: Array | None, trials: Ints, rng: Rng) -> Ints:
        """Draw successes of questions that are all alike; others have a law of their own.

        Parameters
        ----------
        mean : ndarray, shape (..., *axes)
        icc : ndarray, shape (...), optional
            No icc is the same probabilities for all questions.
        trials : ndarray of int, shape (system, question)
            The last of the other dimensions of `mean` is that of systems.
        rng : numpy.random.Generator
        """
        return rng.binomial(trials, mean[..., None])


@dataclass(frozen=True)
class Scored:
    """Categories with scores; a question has a probability for each.

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
    rated: ClassVar[str] = "score"

    @classmethod
    def of(cls, outcomes: Outcomes) -> "Scored":
        """Return the scale of scored categories."""
        return cls(tuple(outcomes.dataset["score"].values.tolist()), outcomes.direction)

    def resolve_prior(self, pooling: Pooling, prior: object) -> CategoryPrior | HyperPrior:
        """Return the prior given, checked, or the default.

        Where all scores are the same, they have no order.
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
        """Return the metric of these scores."""
        return ScoredCredit(metric.category_credit, np.array(self.scores))

    def reaching(self) -> list[ScoredCredit]:
        """Probabilities to reach each score but the worst, or a better one."""
        return reaching(self.direction * np.array(self.scores))

    def rate(self, p: Array) -> Array:
        """Mean scores."""
        return np.asarray(p @ np.array(self.scores))

    def counts(self, outcomes: Outcomes) -> Ints:
        """Trials by category."""
        return outcomes.dataset["count"].values

    def observed(self, outcomes: Outcomes) -> xr.DataArray:
        """Return the counts."""
        return outcomes.dataset["count"].drop_vars("score")

    def constants(self, outcomes: Outcomes) -> dict[str, xr.DataArray]:
        """Return the scores."""
        return {"category_score": outcomes.dataset["score"].drop_vars("score")}

    def vectors(self, p: Array) -> Array:
        """Probabilities as they are."""
        return p

    def draw_counts(self, trials: Ints | int, p: Array, rng: Rng) -> Ints:
        """Draw counts by category."""
        return rng.multinomial(trials, p)

    def by_category(self, drawn: Ints, trials: Ints | int) -> Ints:
        """Return the counts as they are."""
        return drawn

    def replicates(self, mean: Array, icc: Array | None, trials: Ints, rng: Rng) -> Ints:
        """Draw counts by category of new questions."""
        mean = mean[..., None, :]
        shape = (*np.broadcast_shapes(mean.shape[:-1], trials.shape), mean.shape[-1])
        p = np.broadcast_to(mean, shape)
        if icc is not None:
            total = (1.0 - icc) / np.maximum(icc, 1e-300)  # whose inverse is a number
            with np.errstate(under="ignore"):
                alpha = np.maximum(mean * total[..., None, None], np.nextafter(0.0, 1.0))
            p = _drawn_or_certain(np.broadcast_to(alpha, shape), p, rng)
        return rng.multinomial(np.broadcast_to(trials, shape[:-1]), p)


RIGHT_WRONG = RightWrong()
Scale = RightWrong | Scored


def _drawn_or_certain(alpha: Array, mean: Array, rng: Rng) -> Array:
    """Draw Dirichlet probabilities; one category by its mean, where all variates underflow."""
    gamma = rng.standard_gamma(alpha)
    total = gamma.sum(axis=-1, keepdims=True)
    level = np.cumsum(mean, axis=-1)
    category = (level < rng.random((*mean.shape[:-1], 1)) * level[..., -1:]).sum(axis=-1)
    certain = np.eye(mean.shape[-1])[category]
    with np.errstate(under="ignore"):
        return np.where(total > 0.0, gamma / np.where(total > 0.0, total, 1.0), certain)
