"""Groups of questions without a model of groups: no pooling, or complete pooling.

Without pooling each group is a data set of its own, and new groups are drawn from these by the
Bayesian bootstrap (Rubin 1981); under complete pooling all groups have the same probability.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.engine.bootstrap import bootstrap_moments
from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.states import Terms
from bayesatk.metrics.credit import Array
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import Distributions, Draws, GroupDraws, SystemPosterior


@dataclass(frozen=True)
class ApartModel(CountModel):
    """Groups of questions, reported one by one.

    Parameters
    ----------
    pooling, states, prior
        Of `whole`.
    whole : CountModel
        All questions, each with its share in the mean over all as its weight.
    groups : tuple of CountModel
        The questions of each group.
    share : ndarray, shape (groups,)
        Of each group in the mean over all questions.
    members : tuple of ndarray of int
        Questions of each group.
    given : bool
        Whether these shares were given; else they are those of the questions.
    """

    whole: CountModel
    groups: tuple[CountModel, ...]
    share: Array
    members: tuple[NDArray[np.intp], ...]
    given: bool = False

    @classmethod
    def of(
        cls,
        model: Callable[[NDArray[np.intp], Array | None], CountModel],
        code: NDArray[np.intp],
        weight: Array | None,
        share: Array,
    ) -> "ApartModel":
        """Return the model.

        Parameters
        ----------
        model : callable
            ``model(questions, weight)`` returns the model of some questions with their weights.
        code : ndarray of int, shape (questions,)
            Group of every question.
        weight : ndarray, shape (questions,), optional
        share : ndarray, shape (groups,)
        """
        weights = np.ones(len(code)) if weight is None else weight
        total = np.bincount(code, weights, len(share))
        each = weights * (share / np.maximum(total, 1e-300))[code]
        members = tuple(np.flatnonzero(code == group) for group in range(len(share)))
        whole = model(np.arange(len(code)), each)
        groups = tuple(
            model(some, None if weight is None else weight[some]) for some in members if len(some)
        )
        return cls(whole.pooling, whole.states, whole.prior, whole, groups, share, members)

    @property
    def _present(self) -> NDArray[np.intp]:
        """Groups that have questions."""
        return np.flatnonzero([len(some) > 0 for some in self.members])

    @property
    def judge_rates(self) -> JudgeRates | None:
        """Rates of the judge."""
        return self.whole.judge_rates

    def finite(self, metric: Any) -> Array:
        """Unbiased finite-law value of every state."""
        return self.whole.finite(metric)

    def estimate_by_group(self, metrics: Sequence[Any]) -> Array:
        """Unbiased finite-law values of each group; NaN of groups without questions."""
        values = np.full((len(self.members), len(metrics)), np.nan)
        if self.groups:  # a judge under complete pooling has none
            values[self._present] = [model.estimate(metrics) for model in self.groups]
        return values

    def estimate(self, metrics: Sequence[Any]) -> Array:
        """Unbiased finite-law values, groups with their weights."""
        if not self.groups:
            return self.whole.estimate(metrics)
        some = self.share > 0.0
        return np.asarray(self.share[some] @ self.estimate_by_group(metrics)[some])

    def partial_predictive(self) -> Predictive:
        """There is none."""
        raise AssertionError("nothing is pooled partially")

    def partial_evidence(self) -> float:
        """There is none."""
        raise AssertionError("nothing is pooled partially")

    def fit(self, metrics: Sequence[Any]) -> SystemPosterior:
        """Return the posterior of metrics: of all questions, and of each group."""
        whole = self.whole.fit(metrics)
        if self.pooling == "complete":
            return self._alike(whole, metrics)
        each = [model.fit(metrics) for model in self.groups]
        share, mean = self.share[self._present], np.stack([one.mean[:, 1] for one in each])
        variance = np.stack([one.sd[:, 1] ** 2 for one in each])
        trial = np.stack([one.variance_trial[:, 1] for one in each])
        terms = Terms(np.arange(len(each)), share * len(each), np.ones(len(each)))
        new, new_variance = bootstrap_moments(mean, variance, terms)
        population, within = share @ mean, share**2 @ trial
        drawing = np.maximum(share**2 @ variance - within, 0.0)
        means = np.stack([whole.mean[:, 0], population, new], axis=1)
        trials = np.stack([whole.variance_trial[:, 0], within, np.minimum(within, new_variance)], 1)
        zero = np.zeros_like(drawing)
        questions = np.stack([zero, drawing, new_variance - trials[:, 2]], axis=1)

        def distributions() -> Distributions:
            known, none = whole.distributions()[0], [None] * len(metrics)
            return known, none, none

        def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
            drawn = [one.draw(size, rng, keep_p) for one in each]
            groups = np.stack([one.metrics for one in drawn], axis=1)
            dirichlet = rng.standard_exponential((size, len(each))) * share
            dirichlet /= dirichlet.sum(axis=1, keepdims=True)
            columns = [
                np.einsum("dgk,g->dk", groups[..., 0], share),
                np.einsum("dgk,g->dk", groups[..., 1], share),
                np.einsum("dgk,dg->dk", groups[..., 1], dirichlet),
            ]
            return Draws(
                np.stack(columns, axis=-1), {}, self._of_questions(drawn),
                groups=self._every(groups),
            )  # fmt: skip

        return replace(
            whole, mean=means, variance_trial=trials, variance_question=questions,
            distributions=distributions, draw=draw, groups=self._posteriors(each),
        )  # fmt: skip

    def _every(self, metrics: Array) -> GroupDraws:
        """Draws of all groups, NaN of those without questions; the mean is of the first metric."""
        every = np.full((len(metrics), len(self.members), *metrics.shape[2:]), np.nan)
        every[:, self._present] = metrics
        return GroupDraws(every[:, :, 0, 1], every)

    def _posteriors(self, each: list[SystemPosterior]) -> list[SystemPosterior]:
        """Posteriors of all groups; those without questions are like the first, and NaN."""
        found = dict(zip(self._present.tolist(), each, strict=True))
        return [found.get(group, each[0]) for group in range(len(self.members))]

    def _of_questions(self, drawn: list[Draws]) -> Array | None:
        """Draws of p of all questions in their order."""
        if drawn[0].p is None:
            return None
        order = np.argsort(np.concatenate([some for some in self.members if len(some)]))
        return np.concatenate([one.p for one in drawn if one.p is not None], axis=1)[:, order]

    def _alike(self, whole: SystemPosterior, metrics: Sequence[Any]) -> SystemPosterior:
        """One probability for all: every group and new groups have the metrics of it."""

        def thrice(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return values[:, [0, 1, 1]]

        def distributions() -> Distributions:
            questions, population = whole.distributions()
            return questions, population, population

        def draw(size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
            drawn = whole.draw(size, rng, keep_p)
            groups = np.repeat(drawn.metrics[:, None], len(self.members), axis=1)
            new = drawn.metrics[:, :, [0, 1, 1]]
            return replace(drawn, metrics=new, groups=GroupDraws(groups[:, :, 0, 1], groups))

        share = None if whole.judge_share is None else thrice(whole.judge_share)
        return replace(
            whole, mean=thrice(whole.mean), variance_trial=thrice(whole.variance_trial),
            variance_question=thrice(whole.variance_question), distributions=distributions,
            draw=draw, groups=[whole] * len(self.members), judge_share=share,
        )  # fmt: skip
