"""One system's questions under a pooling and a prior: what all closed forms ask, once chosen.

A model is chosen by the scale that the data are judged on (`bayesatk.data.scales`), or is one of
votes between answers (`bayesatk.posterior.answers`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bayesatk.core.pooling import leave_one_out
from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.states import States
from bayesatk.core.question.laws import finite
from bayesatk.data.scales import MetricFunction
from bayesatk.metrics.credit import Array
from bayesatk.posterior.posterior import SystemPosterior
from bayesatk.priors import Pooling
from bayesatk.priors.choice import power_scaled

_POWER = 0.5  # of the weaker prior that sensitivity is about


class Model(Protocol):
    """What is known of one system's questions: of counts, or of votes."""

    def estimate(self, metrics: Sequence[Any]) -> Array:
        """Unbiased finite-law values; NaN where k exceeds the trials of some question."""

    def fit(self, metrics: Sequence[Any]) -> SystemPosterior:
        """Return the posterior of metrics."""


@dataclass(frozen=True)
class CountModel(ABC):
    """Counts of trials, whatever the number of categories.

    Parameters
    ----------
    pooling : Pooling
    states : States
    prior : Prior or CategoryPrior
        Of the model's scale.
    """

    pooling: Pooling
    states: States
    prior: Any

    def estimate(self, metrics: Sequence[Any]) -> Array:
        """Unbiased finite-law values; NaN where k exceeds the trials of some question."""
        return np.array([self.states.share @ self.finite(one) for one in metrics])

    def finite(self, metric: Any) -> Array:
        """Unbiased finite-law value of every state: here of right and wrong."""
        found: Array = finite(metric.credit, self.states.successes, self.states.trials)
        return found

    @abstractmethod
    def fit(self, metrics: Sequence[Any]) -> SystemPosterior:
        """Return the posterior of metrics."""

    @abstractmethod
    def partial_predictive(self) -> Predictive:
        """Predict questions that are left out, hyperparameters integrated."""

    @abstractmethod
    def partial_evidence(self) -> float:
        """Log evidence, hyperparameters integrated."""

    @property
    def judge_rates(self) -> JudgeRates | None:
        """Rates of the judge that marked the trials, where one errs."""
        return None

    @property
    def alpha(self) -> Array:
        """Dirichlet parameters of a fixed prior, or of the mean's prior."""
        vector: Array = self.prior.vector(self.states.counts.shape[1])
        return vector

    def predictive(self) -> Predictive:
        """Log predictive probabilities of questions that are left out, and log evidence.

        Prior trials are given, also those of the question itself.
        """
        if self.pooling == "partial":
            return self.partial_predictive()
        predict = (
            leave_one_out.complete if self.pooling == "complete" else leave_one_out.independent
        )
        return predict(self.states, self.alpha)

    def log_evidence(self) -> float:
        """Log evidence alone, which may cost less than predictions."""
        if self.pooling == "partial":
            return self.partial_evidence()
        return self.predictive().log_evidence

    def prior_sensitivity(
        self, metrics: Sequence[MetricFunction], posterior: SystemPosterior, sd: Array
    ) -> Array:
        """Posterior sd under a weaker prior, relative to the sd; (metrics, target).

        Given where k exceeds the trials of some question, NaN elsewhere.

        Parameters
        ----------
        metrics : sequence of MetricFunction
        posterior : SystemPosterior
            Of these metrics, and of others after them.
        sd : ndarray, shape (metrics, target)
        """
        ratio = np.full(sd.shape, np.nan)
        fewest = self.states.trials.min()
        beyond = [i for i, one in enumerate(metrics) if one.k > fewest]
        if not beyond:
            return ratio
        weaker = power_scaled(self.prior, _POWER)
        if posterior.sd_under is not None:
            other = posterior.sd_under(weaker)[beyond]
        else:
            other = replace(self, prior=weaker).fit([metrics[i] for i in beyond]).sd
        own = sd[beyond]
        ratio[beyond] = np.divide(other, own, out=np.ones_like(own), where=own > 0)
        return ratio
