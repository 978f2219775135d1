"""Closed-form posterior of one system under partial pooling, and independent draws from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.engine.mean_distributions import mean_distributions
from bayesatk.core.engine.mixture import expected_credits
from bayesatk.core.pooling.difficulty_families import difficulty_of
from bayesatk.core.pooling.hyper_functions import at_draws, draw_hyperparameters
from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.core.pooling.marks import MarkedCounts
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.draws import (
    correlated_normals,
    draw_p,
    draw_question_means,
    drawn_one_by_one,
    scaled,
    sum_covariance,
)
from bayesatk.posterior.judge_draws import draw_given_rates
from bayesatk.posterior.pooled import Pooled
from bayesatk.posterior.posterior import Draws, SystemPosterior, by_target
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior
from bayesatk.results.schema import RATES

_FALLBACK = 8e5  # draws of p that intervals may take where no series settles
_DRAWS = (500, 20_000)  # of a mean, at least and at most
_SEED = 20_260_517  # of these draws: intervals are a function of the data


def partial_pooling(
    states: States,
    metrics: Sequence[Metric],
    prior: HyperPrior,
    judge: JudgeRates | None = None,
) -> SystemPosterior:
    """Hyperparameters integrated, families averaged; questions independent given them."""
    pooled = Pooled.of(states, tuple(metrics), prior, judge)
    draws = PooledDraws(pooled)
    questions, population = pooled.mixture.moments, pooled.population
    question = np.minimum(pooled.question_variance, population.total_variance)
    hyper = pooled.summaries
    return SystemPosterior(
        by_target(questions.overall[0], population.overall[0]),
        by_target(questions.total_variance, population.total_variance - question),
        by_target(np.zeros_like(question), question),
        lambda: (
            mean_distributions(pooled.mixture, draws.fallback, pooled.finer),
            pooled.of_new_questions(),
        ),
        draws.draw,
        pooled.mixture.question_p,
        hyper,
        {"quadrature_error": pooled.error, "log_evidence": pooled.log_evidence},
        pooled.described,
        pooled.sd_under,
        pooled.method,
        effective_draws=pooled.effective_draws,
        hyper_draws=dict.fromkeys(hyper, pooled.effective_draws),
        judge_share=None if judge is None else pooled.judge_share,
    )


@dataclass(frozen=True)
class PooledDraws:
    """Draws of hyperparameters, means and success probabilities, families at their probabilities.

    Parameters
    ----------
    pooled : Pooled
    """

    pooled: Pooled

    @property
    def fallback(self) -> Callable[[], Array] | None:
        """Draws of the means, made when they are called for; None where they cost too much."""
        metrics, states = self.pooled.metrics, self.pooled.states
        size = int(min(_FALLBACK / states.questions, _DRAWS[1]))
        if size < _DRAWS[0]:
            return None

        def draw() -> Array:
            rng = np.random.default_rng(_SEED)
            nodes, _ = self._joint(size, rng)
            return draw_question_means(metrics, states, nodes, rng)[0]

        return draw

    def draw(self, size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        """Independent draws of everything."""
        metrics, states, mixture = self.pooled.metrics, self.pooled.states, self.pooled.mixture
        weighted = states.weight is not None
        if keep_p or drawn_one_by_one(mixture, size * states.questions * len(metrics)):
            nodes, family = self._joint(size, rng)
            p = draw_p(states, nodes, slice(None), rng) if keep_p else None
            questions, population = draw_question_means(metrics, states, nodes, rng, weighted, p)
        elif self.pooled.judge is not None:
            p, (nodes, family) = None, self._joint(size, rng)
            given = replace(mixture, nodes=nodes, known=None, source=None).moments
            questions = self._normal_means(given.mean, given.variance, rng)
        else:
            p = None
            nodes, family, questions = self._normal(size, rng)
            if weighted:
                population = questions + self._other_questions(size, rng)
        if not weighted:
            population, _ = expected_credits(nodes, mixture.credits)
        mean, _, icc, _ = nodes.overall()
        hyper = {"mean_p": mean, "icc": icc}
        if "never_solved" in self.pooled.summaries:
            hyper |= {"never_solved": nodes.atoms[:, 0], "always_solved": nodes.atoms[:, 1]}
        if nodes.rates is not None:
            hyper |= dict(zip(RATES, nodes.rates.T, strict=True))
        values = np.stack([questions, population], axis=-1)
        if [one.name for one in self.pooled.every] == ["beta"]:
            return Draws(values, hyper, p)
        return Draws(values, hyper, p, difficulty_of(nodes), family)

    def _shared_out(self, size: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Families that draws fall to, by position, and how many draws."""
        if len(self.pooled.families) == 1:
            return [(0, size)]
        number = rng.multinomial(size, self.pooled.probability)
        return [(i, int(n)) for i, n in enumerate(number) if n]

    def _in_random_order(
        self, shares: list[tuple[int, int]], drawn: list[Nodes], rng: np.random.Generator
    ) -> tuple[Nodes, NDArray[np.int64], NDArray[np.intp]]:
        """Draws of all families as one, the family of each, and the order."""
        size = sum(n for _, n in shares)
        nodes = Nodes.joined(drawn, [n / size for _, n in shares])
        index = [DIFFICULTY_FAMILIES.index(self.pooled.families[i].name) for i, _ in shares]
        family = np.repeat(index, [n for _, n in shares])
        order = rng.permutation(size) if len(shares) > 1 else np.arange(size)
        return nodes.among(order), family[order], order

    def nodes(self, size: int, rng: np.random.Generator) -> tuple[Nodes, NDArray[np.int64]]:
        """Draws of the hyperparameters, and the family of each."""
        shares = self._shared_out(size, rng)
        drawn = [self.pooled.families[i].draw(n, rng) for i, n in shares]
        return self._in_random_order(shares, drawn, rng)[:2]

    def _joint(self, size: int, rng: np.random.Generator) -> tuple[Nodes, NDArray[np.int64]]:
        """Draws of the hyperparameters with the judge's rates, the rates in the judge's order."""
        nodes, family = self.nodes(size, rng)
        judge = self.pooled.judge
        if judge is None:
            return nodes, family
        marked, point = MarkedCounts(self.pooled.states, judge.rates), judge.draw(size)
        chosen = draw_given_rates(np.exp(marked.log_given(nodes)), point, rng)
        return marked.at_rates(nodes.among(chosen), point), family[chosen]

    def _normal(
        self, size: int, rng: np.random.Generator
    ) -> tuple[Nodes, NDArray[np.int64], Array]:
        """Draws of hyperparameters, and of means over many questions: normal given these."""
        given = self.pooled.mixture.moments
        known = np.log(np.maximum(given.variance, 1e-300))
        known = np.concatenate([given.offset, known], axis=1)
        shares, start = self._shared_out(size, rng), np.cumsum([0, *map(len, self.pooled.parts)])
        drawn, moments = [], []
        for i, n in shares:
            own, part = known[start[i] : start[i + 1]], self.pooled.parts[i]
            grid = self.pooled.families[i].grid
            if grid is None:
                chosen = rng.choice(len(part), size=n, p=part.weight)
                drawn.append(replace(part.among(chosen), weight=np.full(n, 1.0 / n)))
                moments.append(own[chosen])
            else:
                place = draw_hyperparameters(grid, n, rng)
                drawn.append(Nodes.of(*grid.place(*place), np.full(n, 1.0 / n)))
                moments.append(at_draws(grid, part, own, *place))
        nodes, family, order = self._in_random_order(shares, drawn, rng)
        offset, logs = np.split(np.concatenate(moments)[order], 2, axis=1)
        return nodes, family, self._normal_means(given.overall[0] + offset, np.exp(logs), rng)

    @cached_property
    def _covariance(self) -> Array:
        """Covariance between metrics of means over questions, at the heaviest node."""
        mixture = self.pooled.mixture
        return sum_covariance(mixture, int(np.argmax(mixture.nodes.weight)))

    def _normal_means(self, mean: Array, variance: Array, rng: np.random.Generator) -> Array:
        """Draws of means over many questions, normal given the hyperparameters of each draw."""
        noise = self._covariance
        scale = np.sqrt(np.maximum(np.diag(noise), 1e-300))
        normal = correlated_normals(noise, len(mean), rng) / scale
        credits = self.pooled.mixture.credits
        ends = np.array([(one.vector.min(), one.vector.max()) for one in credits])
        return np.clip(mean + np.sqrt(variance) * normal, ends[:, 0], ends[:, 1])

    def _other_questions(self, size: int, rng: np.random.Generator) -> Array:
        """Draw what weighted questions drawn anew from these add to means over many of them."""
        between = scaled(self._covariance, self.pooled.question_variance)
        shift = self.pooled.population.overall[0] - self.pooled.mixture.moments.overall[0]
        return shift + correlated_normals(between, size, rng)
