"""Closed-form posterior of one system under partial pooling, families of difficulty averaged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.beta_binomial import beta_binomial_means
from bayesatk.core.distribution import Empirical, Quantity
from bayesatk.core.families import (
    FamilyPosterior,
    difficulty_of,
    family_posteriors,
    family_probabilities,
)
from bayesatk.core.hyper_functions import at_draws, draw_hyperparameters, question_variance
from bayesatk.core.judge_rates import JudgeRates
from bayesatk.core.marks import MarkedCounts
from bayesatk.core.means import mean_distributions
from bayesatk.core.mixture import Given, StateMixture, expected_credits, spread_of
from bayesatk.core.nodes import Nodes
from bayesatk.core.population import distributions_of
from bayesatk.core.states import States
from bayesatk.metrics.credit import Array, Credit
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.draws import (
    correlated_normals,
    draw_p,
    draw_question_means,
    drawn_one_by_one,
    scaled,
    sum_covariance,
)
from bayesatk.posterior.judge_draws import draw_given_rates, due_to_rates, rate_summaries
from bayesatk.posterior.posterior import Draws, FamilyShare, Summary, SystemPosterior, by_target
from bayesatk.priors import FAMILIES, HyperPrior
from bayesatk.results.likelihood import RATES

_PAIRS = (400, 1000)  # of nodes and rates of a judge that stand for all in means over questions
_CELLS = 4e6  # of these pairs, counts of marks and counts of right trials that are worked out
_NODES = 1000  # of weighted points of all families, in means over questions
_NEGLIGIBLE = 1e-4  # probability of a family from which it counts
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
    questions, population = pooled.mixture.moments, pooled.population
    question = np.minimum(pooled.question_variance, population.total_variance)
    return SystemPosterior(
        by_target(questions.overall[0], population.overall[0]),
        by_target(questions.total_variance, population.total_variance - question),
        by_target(np.zeros_like(question), question),
        lambda: (
            mean_distributions(pooled.mixture, pooled.fallback, pooled.finer),
            pooled.of_new_questions(),
        ),
        pooled.draw,
        pooled.mixture.question_p,
        pooled.summaries,
        {"quadrature_error": pooled.error, "log_evidence": pooled.log_evidence},
        pooled.described,
        pooled.sd_under,
        pooled.method,
        effective_draws=pooled.effective_draws,
        judge_share=None if judge is None else pooled.judge_share,
    )


@dataclass(frozen=True)
class Pooled:
    """Families of difficulty with their probabilities, and questions given them.

    Parameters
    ----------
    states : States
    metrics : tuple of Metric
    every : list of FamilyPosterior
        All families of the prior.
    share, share_error : ndarray
        Their posterior probabilities, and standard errors.
    log_evidence : float
        Of all trials in their order, families averaged.
    judge : JudgeRates, optional
        Rates of the judge that marked the trials, where it errs.
    """

    states: States
    metrics: tuple[Metric, ...]
    every: list[FamilyPosterior]
    share: Array
    share_error: Array
    log_evidence: float
    judge: JudgeRates | None = None

    @classmethod
    def of(
        cls,
        states: States,
        metrics: tuple[Metric, ...],
        prior: HyperPrior,
        judge: JudgeRates | None = None,
    ) -> "Pooled":
        """Integrate the hyperparameters of every family."""
        every = family_posteriors(states, prior, None if judge is None else judge.rates)
        share, error, evidence = family_probabilities(every, prior)
        return cls(states, metrics, every, share, error, evidence, judge)

    @cached_property
    def families(self) -> list[FamilyPosterior]:
        """Those that count."""
        return [one for one, p in zip(self.every, self.share, strict=True) if p > _NEGLIGIBLE]

    @cached_property
    def probability(self) -> Array:
        """Of those that count."""
        some = self.share[self.share > _NEGLIGIBLE]
        return np.asarray(some / some.sum())

    @cached_property
    def _chosen_nodes(self) -> list[tuple[Nodes, NDArray[np.intp]]]:
        """Nodes of each family, and which they are: of points as many as its probability is worth.

        With rates of the judge, where there is one.
        """
        pairs = list(zip(self.families, self.probability, strict=True))
        if self.judge is not None:
            cells = len(self.states) * float(np.unique(self.states.trials + 1).sum())
            most = _NODES if len(self.judge.rates) == 1 else np.clip(_CELLS / cells, *_PAIRS)
            return [one.with_rates(most * float(p)) for one, p in pairs]
        found = []
        for one, p in pairs:
            own = one.thinned(_NODES * float(p))
            even = replace(one.nodes.among(own), weight=np.full(len(own), 1.0 / len(own)))
            found.append((even if one.grid is None else one.nodes, own))
        return found

    @cached_property
    def chosen(self) -> list[NDArray[np.intp]]:
        """Which nodes of each family stand for all."""
        return [which for _, which in self._chosen_nodes]

    @cached_property
    def parts(self) -> list[Nodes]:
        """Those nodes."""
        return [nodes for nodes, _ in self._chosen_nodes]

    def _is_grid(self, family: FamilyPosterior) -> bool:
        """Whether all nodes of a grid are mixed over, as where a judge's rates are known."""
        return family.grid is not None and (self.judge is None or len(self.judge.rates) == 1)

    @cached_property
    def mixture(self) -> StateMixture:
        """Questions on the nodes of all families."""
        return self._on(self.parts)

    @cached_property
    def every_node(self) -> Nodes:
        """All nodes, for what does not depend on the questions: the difficulty distribution."""
        return Nodes.joined([one.nodes for one in self.families], self.probability.tolist())

    @cached_property
    def population(self) -> Given:
        """Expected credits of a new question; of weighted ones, on the nodes of the mixture."""
        if self.states.weight is not None:
            return self.mixture.bootstrap
        return replace(self.mixture, nodes=self.every_node, known=None, source=None).population

    def _on(self, nodes: list[Nodes]) -> StateMixture:
        credits = tuple(metric.credit for metric in self.metrics)
        joined = Nodes.joined(nodes, self.probability.tolist())
        return StateMixture(joined, self.states, credits)

    @property
    def finer(self) -> Callable[[int], StateMixture] | None:
        """The mixture on more rows of nodes, where there is a grid."""
        if not any(self._is_grid(one) for one in self.families):
            return None

        def refined(one: FamilyPosterior, own: Nodes, times: int) -> Nodes:
            if not self._is_grid(one) or one.grid is None:
                return own
            nodes = one.grid.refined(times, 1).nodes(1e-6)
            if one.marked is None:
                return nodes
            return one.marked.at_rates(nodes, np.zeros(len(nodes), np.intp))

        pairs = list(zip(self.families, self.parts, strict=True))
        return lambda times: self._on([refined(*pair, times) for pair in pairs])

    @property
    def error(self) -> float:
        """Of means and sds, in sds: of the grid, or a standard error of weighted points."""
        rows = zip(self.families, self.probability, self.parts, strict=True)
        square = [
            float(p) ** 2 * (one.error**2 + (not self._is_grid(one)) / len(part))
            for one, p, part in rows
        ]
        return float(np.sqrt(sum(square)))

    @property
    def method(self) -> str:
        """The Beta by quadrature; the other families from weighted points."""
        exact = [self._is_grid(one) for one in self.every]
        parts = ["quadrature"] * any(exact) + ["importance sampling"] * (not all(exact))
        return ", ".join(parts)

    @property
    def effective_draws(self) -> dict[str, float]:
        """Effective number of draws of weighted points."""
        if all(self._is_grid(one) for one in self.every):
            return {}
        return dict.fromkeys(("mean_draws", "sd_draws", "interval_draws"), 1.0 / self.error**2)

    @property
    def judge_share(self) -> Array:
        """Share of the variance that is due to the judge's rates; (metrics, target)."""
        nodes = self.mixture.nodes
        questions, population = self.mixture.moments, self.mixture.population
        whole = questions.total_variance, self.population.total_variance
        return by_target(*(
            due_to_rates(nodes, given.offset) / np.maximum(all_, 1e-300)
            for given, all_ in zip((questions, population), whole, strict=True)
        ))  # fmt: skip

    @property
    def described(self) -> dict[str, FamilyShare]:
        """Probability and evidence of each family."""
        rows = zip(self.every, self.share, self.share_error, strict=True)
        return {
            one.name: FamilyShare(
                float(p),
                float(error),
                one.log_evidence,
                np.nan if one.importance is None else one.importance.k_hat,
            )
            for one, p, error in rows
        }

    def of_new_questions(self) -> Sequence[Quantity | None]:
        """Distributions of expected credits of a new question; only drawn where weights count."""
        credits = self.mixture.credits
        if self.states.weight is not None:
            return [None] * len(credits)
        return self.distributions(partial(expected_credits, credits=credits))

    def distributions(self, function: Callable[[Nodes], tuple[Array, Array]]) -> list[Quantity]:
        """Distributions of functions of the difficulty distribution."""
        error = self.share_error[self.share > _NEGLIGIBLE]
        return distributions_of(self.families, self.probability, error, function)

    @cached_property
    def summaries(self) -> dict[str, Summary | list[Summary]]:
        """Of the difficulty distribution as a whole, whatever its family."""
        nodes = self.every_node
        found: dict[str, Summary | list[Summary]] = {}
        for first, name in ((0, "mean_p"), (2, "icc")):
            work_out = partial(self._distribution, partial(_overall, first=first))
            found[name] = Summary.on_nodes(nodes.weight, nodes.overall()[first], work_out)
        if any(one.name == "inflated" for one in self.every):
            for i, name in enumerate(("never_solved", "always_solved")):
                share = nodes.atoms[:, i]
                found[name] = Summary.on_nodes(
                    nodes.weight, share, partial(Empirical, share, nodes.weight)
                )
        if self.judge is not None:
            found |= rate_summaries(self.judge)
        return found

    def _distribution(self, function: Callable[[Nodes], tuple[Array, Array]]) -> Quantity:
        return self.distributions(function)[0]

    @cached_property
    def question_variance(self) -> Array:
        """Variance of the population target that more trials per question could not remove."""
        credits, questions = self.mixture.credits, self.states.questions
        if self.states.weight is not None:
            within = self.mixture.moments.total_variance
            return np.maximum(self.population.total_variance - within, 0.0)

        def of_family(one: FamilyPosterior, nodes: Nodes) -> Array:
            if one.grid is not None:
                return _from_fisher(nodes, credits, questions)
            return np.asarray(nodes.weight @ spread_of(nodes, credits) / questions)

        each = [of_family(*pair) for pair in zip(self.families, self.parts, strict=True)]
        return np.asarray(self.probability @ np.array(each))

    @property
    def fallback(self) -> Callable[[], Array] | None:
        """Draws of the means, made when they are called for; None where they cost too much."""
        size = int(min(_FALLBACK / self.states.questions, _DRAWS[1]))
        if size < _DRAWS[0]:
            return None

        def draw() -> Array:
            rng = np.random.default_rng(_SEED)
            nodes, _ = self._draw_joint(size, rng)
            return draw_question_means(self.metrics, self.states, nodes, rng)[0]

        return draw

    def draw(self, size: int, rng: np.random.Generator, keep_p: bool) -> Draws:
        """Independent draws of everything."""
        states, mixture = self.states, self.mixture
        weighted = states.weight is not None
        if keep_p or drawn_one_by_one(mixture, size * states.questions * len(self.metrics)):
            nodes, family = self._draw_joint(size, rng)
            p = draw_p(states, nodes, slice(None), rng) if keep_p else None
            questions, population = draw_question_means(
                self.metrics, states, nodes, rng, weighted, p
            )
        elif self.judge is not None:
            p, (nodes, family) = None, self._draw_joint(size, rng)
            given = replace(mixture, nodes=nodes, known=None, source=None).moments
            questions = self._normal_means(given.mean, given.variance, rng)
        else:
            p = None
            nodes, family, questions = self._draw_normal(size, rng)
            if weighted:
                population = questions + self._other_questions(size, rng)
        if not weighted:
            population, _ = expected_credits(nodes, mixture.credits)
        mean, _, icc, _ = nodes.overall()
        hyper = {"mean_p": mean, "icc": icc}
        if "never_solved" in self.summaries:
            hyper |= {"never_solved": nodes.atoms[:, 0], "always_solved": nodes.atoms[:, 1]}
        if nodes.rates is not None:
            hyper |= dict(zip(RATES, nodes.rates.T, strict=True))
        values = np.stack([questions, population], axis=-1)
        if [one.name for one in self.every] == ["beta"]:
            return Draws(values, hyper, p)
        return Draws(values, hyper, p, difficulty_of(nodes), family)

    def _shared_out(self, size: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Families that draws fall to, by position, and how many draws."""
        if len(self.families) == 1:
            return [(0, size)]
        number = rng.multinomial(size, self.probability)
        return [(i, int(n)) for i, n in enumerate(number) if n]

    def _in_random_order(
        self, shares: list[tuple[int, int]], drawn: list[Nodes], rng: np.random.Generator
    ) -> tuple[Nodes, NDArray[np.int64], NDArray[np.intp]]:
        """Draws of all families as one, the family of each, and the order."""
        size = sum(n for _, n in shares)
        nodes = Nodes.joined(drawn, [n / size for _, n in shares])
        index = [FAMILIES.index(self.families[i].name) for i, _ in shares]
        family = np.repeat(index, [n for _, n in shares])
        order = rng.permutation(size) if len(shares) > 1 else np.arange(size)
        return nodes.among(order), family[order], order

    def _draw_nodes(self, size: int, rng: np.random.Generator) -> tuple[Nodes, NDArray[np.int64]]:
        """Draws of the hyperparameters, and the family of each."""
        shares = self._shared_out(size, rng)
        drawn = [self.families[i].draw(n, rng) for i, n in shares]
        return self._in_random_order(shares, drawn, rng)[:2]

    def _draw_joint(self, size: int, rng: np.random.Generator) -> tuple[Nodes, NDArray[np.int64]]:
        """Draws of the hyperparameters with the judge's rates, the rates in the judge's order."""
        nodes, family = self._draw_nodes(size, rng)
        if self.judge is None:
            return nodes, family
        marked, point = MarkedCounts(self.states, self.judge.rates), self.judge.draw(size)
        chosen = draw_given_rates(np.exp(marked.log_given(nodes)), point, rng)
        return marked.at_rates(nodes.among(chosen), point), family[chosen]

    def _draw_normal(
        self, size: int, rng: np.random.Generator
    ) -> tuple[Nodes, NDArray[np.int64], Array]:
        """Draws of hyperparameters, and of means over many questions: normal given these."""
        given = self.mixture.moments
        known = np.log(np.maximum(given.variance, 1e-300))
        known = np.concatenate([given.offset, known], axis=1)
        shares, start = self._shared_out(size, rng), np.cumsum([0, *map(len, self.parts)])
        drawn, moments = [], []
        for i, n in shares:
            own, part = known[start[i] : start[i + 1]], self.parts[i]
            grid = self.families[i].grid
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

    def _normal_means(self, mean: Array, variance: Array, rng: np.random.Generator) -> Array:
        """Draws of means over many questions, normal given the hyperparameters of each draw."""
        noise = sum_covariance(self.mixture, int(np.argmax(self.mixture.nodes.weight)))
        scale = np.sqrt(np.maximum(np.diag(noise), 1e-300))
        normal = correlated_normals(noise, len(mean), rng) / scale
        credits = self.mixture.credits
        ends = np.array([(one.vector.min(), one.vector.max()) for one in credits])
        return np.clip(mean + np.sqrt(variance) * normal, ends[:, 0], ends[:, 1])

    def _other_questions(self, size: int, rng: np.random.Generator) -> Array:
        """Draw what weighted questions drawn anew from these add to means over many of them."""
        given, node = self.mixture.moments, int(np.argmax(self.mixture.nodes.weight))
        like = sum_covariance(self.mixture, node)
        between = scaled(like, self.question_variance)
        shift = self.population.overall[0] - given.overall[0]
        return shift + correlated_normals(between, size, rng)

    def sd_under(self, prior: HyperPrior) -> Array:
        """Posterior sds under another prior, of the same families; shape (metrics, 2)."""
        ratios = [one.prior_ratio(prior) for one in self.families]
        tops = [float(ratio.max()) for ratio in ratios]
        factors = [np.exp(ratio - top) for ratio, top in zip(ratios, tops, strict=True)]
        rows = zip(self.families, factors, tops, strict=True)
        logs = np.array([np.log(one.nodes.weight @ own) + top for one, own, top in rows])
        share = self.probability * np.exp(logs - logs.max())
        share /= share.sum()
        # As the sds are worked out: of these questions on some nodes, of the population on all.
        some = [
            part.weight * own[chosen]
            for part, own, chosen in zip(self.parts, factors, self.chosen, strict=True)
        ]
        every = [one.nodes.weight * own for one, own in zip(self.families, factors, strict=True)]
        # Weighted questions are drawn anew on the nodes on which they are.
        of_new = every if self.states.weight is None else some
        sds = [
            np.sqrt(replace(given, weight=_weighed(share, weights)).total_variance)
            for given, weights in ((self.mixture.moments, some), (self.population, of_new))
        ]
        return by_target(*sds)


def _weighed(share: Array, weights: Sequence[Array]) -> Array:
    """Weights of the nodes of all families, each family with its share."""
    return np.concatenate([p * own / own.sum() for p, own in zip(share, weights, strict=True)])


def _overall(nodes: Nodes, first: int) -> tuple[Array, Array]:
    """Return the mean of p, or the correlation, and its complement; columns."""
    low, high = nodes.overall()[first : first + 2]
    return low[:, None], high[:, None]


def _from_fisher(nodes: Nodes, credits: Sequence[Credit], questions: float) -> Array:
    """Question variance of single Betas."""

    def gradient(alpha: Array, beta: Array) -> Array:
        step = 1e-4
        ups = [(alpha * np.exp(step), beta), (alpha, beta * np.exp(step))]
        downs = [(alpha * np.exp(-step), beta), (alpha, beta * np.exp(-step))]
        pairs = zip(ups, downs, strict=True)
        return np.stack(
            [
                (beta_binomial_means(credits, *up)[0] - beta_binomial_means(credits, *down)[0])
                / (2.0 * step)
                for up, down in pairs
            ]
        )

    return question_variance(nodes, gradient, questions)
