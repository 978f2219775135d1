"""Closed-form posterior of one system's right and wrong whose questions have covariates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from bayesatk.core.engine.distribution import Empirical
from bayesatk.core.numerics.points import Points
from bayesatk.core.numerics.weights import reweighted, total_moments
from bayesatk.core.pooling import leave_one_out
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.states import States
from bayesatk.core.structure.regression import Regression, alike
from bayesatk.core.structure.regression_means import Questions
from bayesatk.data.design import Basis
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.draws import correlated_normals
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import Draws, Summary, SystemPosterior, by_target, least
from bayesatk.priors import HyperPrior

_DRAWS = (2000, 20_000)  # of means over questions, for their intervals, at least and at most
_DRAWN = 4e6  # success probabilities that intervals may take
_MOST = 2e7  # success probabilities that draws may take; of more, the mean over questions is normal
_SOME = 500  # draws of every question from which the correlation between metrics is worked out
_SEED = 20_261_122  # of the draws for intervals: intervals are a function of the data


@dataclass(frozen=True)
class RegressionModel(CountModel):
    """Successes out of trials, with a mean that depends on covariates.

    Parameters
    ----------
    basis : Basis
        Of the questions, in the order of their counts.
    rows : ndarray, shape (states, directions)
        The same for each state.
    """

    basis: Basis
    rows: Array

    @classmethod
    def of(
        cls,
        prior: HyperPrior,
        counts: NDArray[np.int64],
        basis: Basis,
        weight: Array | None = None,
    ) -> "RegressionModel":
        """Group the questions that are alike.

        Parameters
        ----------
        prior : HyperPrior
        counts : ndarray of int, shape (questions, 2)
            Wrong and right.
        basis : Basis
        weight : ndarray, shape (questions,), optional
            In means over them.
        """
        states, rows = alike(basis.rows, counts[:, 1], counts.sum(axis=1), weight)
        return cls("partial", states, prior, basis, rows)

    @cached_property
    def regression(self) -> Regression:
        """Prior and likelihood."""
        return Regression(self.states, self.rows, self.prior)

    @cached_property
    def points(self) -> Points:
        """Posterior of the parameters."""
        return self.regression.posterior()

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior of metrics."""
        return _Fitted(self, tuple(metrics)).posterior()

    def partial_evidence(self) -> float:
        """Log evidence, parameters integrated."""
        return self.points.log_evidence

    def partial_predictive(self) -> Predictive:
        """Predict questions that are left out."""
        states = self.states

        def alone(state: int) -> Regression:
            one = _some(states, np.array([state]))
            return replace(self.regression, states=one, basis=self.rows[[state]])

        def again(state: int) -> float:
            rest = states.count - (np.arange(len(states)) == state)
            keep = np.flatnonzero(rest > 0.0)
            others = replace(_some(states, keep), count=rest[keep])
            without = Regression(others, self.rows[keep], self.prior).posterior()
            return float(logsumexp(alone(state).by_state(without.theta)[:, 0], b=without.weight))

        return leave_one_out.of_weighted(
            self.points, states, lambda state: alone(state).by_state(self.points.theta)[:, 0], again
        )


def _some(states: States, chosen: NDArray[np.intp]) -> States:
    """Return some of the states, without saying which questions are in them."""
    return replace(
        states, counts=states.counts[chosen], prior=states.prior[chosen],
        count=states.count[chosen], which=np.zeros(0, np.intp), weight=None,
    )  # fmt: skip


@dataclass(frozen=True)
class _Fitted:
    """Metrics under a model."""

    model: RegressionModel
    metrics: tuple[Metric, ...]

    @cached_property
    def questions(self) -> Questions:
        """Questions at points of the posterior."""
        model = self.model
        credits = [metric.credit for metric in self.metrics]
        return Questions(model.states, model.rows, model.points, tuple(credits))

    def posterior(self) -> SystemPosterior:
        """Put the parts together."""
        weight, points = self.questions.weight, self.model.points
        effective = points.effective_draws
        these, like = self.questions.these, self.questions.like_these
        mean, variance = total_moments(weight, these, self.questions.variance_of_these)
        other, population = total_moments(weight, like)
        question = np.minimum(weight @ self.questions.variance_of_like_these, population)
        warning = None
        if points.sampled:
            warning = (
                "importance weights of the coefficients cannot be trusted (Pareto k "
                f"{points.k_hat:.2f}); Markov chains worth {effective:.0f} independent draws "
                "took their place, and the evidence is not known"
            )
        return SystemPosterior(
            by_target(mean, other),
            by_target(variance, population - question),
            by_target(np.zeros_like(question), question),
            lambda: (self._intervals(), [Empirical(own, weight) for own in like.T]),
            self.draw,
            self.questions.question_p,
            self._summaries,
            {"log_evidence": points.log_evidence, "pareto_k": points.k_hat},
            sd_under=self.sd_under,
            expected=self.questions.expected_by_question,
            method=points.method,
            warning=warning,
            effective_draws={
                **points.draws_behind(like),
                "interval_draws": min(effective, float(self._drawn)),
            },
            hyper_draws=self._hyper_draws,
        )

    def _intervals(self) -> list[Empirical]:
        """Distributions of means over these questions: drawn, as the points are."""
        rng = np.random.default_rng(_SEED)
        points, _ = self._draw_points(self._drawn, rng)
        return [Empirical(own) for own in self._these(points, rng).T]

    @property
    def _drawn(self) -> int:
        return int(np.clip(_DRAWN / self.model.states.questions, *_DRAWS))

    def _draw_points(self, size: int, rng: np.random.Generator) -> tuple[Points, NDArray[np.intp]]:
        """Draw points of the posterior; return them and their places."""
        points = self.model.points
        chosen = rng.choice(len(points.weight), size=size, p=points.weight)
        weight = np.full(size, 1.0 / size)
        return replace(points, theta=points.theta[chosen], weight=weight), chosen

    def _these(self, points: Points, rng: np.random.Generator, p: Array | None = None) -> Array:
        """Means over these questions, once at each point."""
        at = replace(self.questions, points=points)
        if p is not None or len(points.weight) * self.model.states.questions <= _MOST:
            return at.draw_means([metric.latent for metric in self.metrics], rng, p)
        mean, variance = at.these, at.variance_of_these
        one = replace(points, theta=np.repeat(points.theta[:1], _SOME, axis=0))
        one = replace(one, weight=np.full(_SOME, 1.0 / _SOME))
        some = replace(self.questions, points=one)
        alone = some.draw_means([metric.latent for metric in self.metrics], rng)
        centred = (alone - alone.mean(axis=0)) / np.maximum(alone.std(axis=0), 1e-300)
        noise = correlated_normals(centred.T @ centred / _SOME, len(mean), rng)
        ends = np.array([(one.vector.min(), one.vector.max()) for one in self.questions.credits])
        return np.clip(mean + np.sqrt(variance) * noise, ends[:, 0], ends[:, 1])

    def draw(self, size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        """Independent draws of everything."""
        points, chosen = self._draw_points(size, rng)
        at = replace(self.questions, points=points)
        p = at.draw_p(slice(None), rng) if keep_p else None
        values = np.stack([self._these(points, rng, p), self.questions.like_these[chosen]], axis=-1)
        coefficients = self.model.basis.coefficients(points.logits)
        hyper = {"coefficients": coefficients, "icc": expit(points.log_ratio)}
        return Draws(values, hyper, p)

    @property
    def _hyper_draws(self) -> dict[str, dict[str, float]]:
        points = self.model.points
        columns = self.model.basis.coefficients(points.logits), expit(points.log_ratio)[:, None]
        return {
            name: least(points.draws_behind(values))
            for name, values in zip(self._summaries, columns, strict=True)
        }

    @cached_property
    def _summaries(self) -> dict[str, Summary | list[Summary]]:
        points = self.model.points
        weight, icc = points.weight, expit(points.log_ratio)
        columns = self.model.basis.coefficients(points.logits).T
        return {
            "coefficients": [Summary.on_points(weight, own) for own in columns],
            "icc": Summary.on_points(weight, icc),
        }

    def sd_under(self, prior: HyperPrior) -> Array:
        """Posterior sds under another prior; shape (metrics, 2)."""
        theta = self.questions.points.theta
        other = replace(self.model.regression, prior=prior).log_prior(theta)
        logs = other - self.model.regression.log_prior(theta)
        weight, _ = reweighted(self.questions.weight, logs)
        asked = self.questions
        _, variance = total_moments(weight, asked.these, asked.variance_of_these)
        return np.sqrt(by_target(variance, total_moments(weight, asked.like_these)[1]))
