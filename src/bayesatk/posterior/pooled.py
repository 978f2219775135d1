"""Difficulty families averaged, and the questions of one system given them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.engine.distribution import Empirical, Quantity
from bayesatk.core.engine.mixture import Given, StateMixture, expected_credits, spread_of
from bayesatk.core.engine.population import distributions_of
from bayesatk.core.pooling.difficulty_families import (
    FamilyPosterior,
    family_posteriors,
    weigh_families,
)
from bayesatk.core.pooling.hyper_functions import question_variance
from bayesatk.core.pooling.judge_rates import JudgeRates
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.question.beta_binomial import beta_binomial_means
from bayesatk.metrics.credit import Array, Credit
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.judge_draws import due_to_rates, rate_summaries
from bayesatk.posterior.posterior import FamilyShare, Summary, by_target
from bayesatk.priors import HyperPrior

_PAIRS = (400, 1000)  # of nodes and rates of a judge that stand for all in means over questions
_CELLS = 4e6  # of these pairs, counts of marks and counts of right trials that are worked out
_NODES = 1000  # of weighted points of all families, in means over questions
_NEGLIGIBLE = 1e-4  # probability of a family from which it counts


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
        share, error, evidence = weigh_families(every, prior)
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
        nodes, rates = self.mixture.nodes, self.mixture.nodes.rates
        assert rates is not None
        questions, population = self.mixture.moments, self.mixture.population
        whole = questions.total_variance, self.population.total_variance
        return by_target(*(
            due_to_rates(nodes.weight, rates, given.offset) / np.maximum(all_, 1e-300)
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

    def sd_under(self, prior: HyperPrior) -> Array:
        """Posterior sds under another prior, of the same families; shape (metrics, 2)."""
        pairs = [one.under(prior) for one in self.families]
        every = [weight for weight, _ in pairs]
        logs = np.array([more for _, more in pairs])
        share = self.probability * np.exp(logs - logs.max())
        share /= share.sum()
        # As the sds are worked out: of these questions on some nodes, of the population on all.
        some = [
            part.weight * (own / np.maximum(one.nodes.weight, 1e-300))[chosen]
            for one, part, own, chosen in zip(
                self.families, self.parts, every, self.chosen, strict=True
            )
        ]
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
