"""Closed-form posterior of one system whose trials a judge marked that errs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayesatk.core.pooling import leave_one_out
from bayesatk.core.pooling.difficulty_families import family_posteriors
from bayesatk.core.pooling.hierarchy import hyper_posterior
from bayesatk.core.pooling.judge_rates import JudgeRates, calibrated_rates, integrated_rates
from bayesatk.core.pooling.leave_one_out import Predictive
from bayesatk.core.pooling.marks import MarkedCounts, Rates, log_marked
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.data.capabilities import require
from bayesatk.data.scales import MetricFunction
from bayesatk.judge_error import JudgeError, Judges
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.judged_simple import OneForAll, unpooled
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.partial_pooling import partial_pooling
from bayesatk.posterior.pooled import Pooled
from bayesatk.posterior.posterior import SystemPosterior
from bayesatk.posterior.right_wrong import one_of_each
from bayesatk.priors import BetaPrior, HyperPrior, Pooling, Prior


@dataclass(frozen=True)
class JudgedModel(CountModel):
    """Marks of a judge that errs; its rates are integrated with everything else.

    Parameters
    ----------
    judge : JudgeRates
        From `rates_of_judges`, for this system's marks among those of all.
    """

    judge: JudgeRates

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior of metrics; those that coincide are done once."""
        fit: dict[Pooling, Callable[[Sequence[Metric]], SystemPosterior]] = {
            "partial": lambda own: partial_pooling(self.states, own, self.prior, self.judge),
            "complete": lambda own: self.one_for_all.fit(own, len(self.states.which)),
            "none": lambda own: unpooled(self.states, self.prior, self.judge, own),
        }
        return one_of_each(metrics, fit[self.pooling])

    @property
    def judge_rates(self) -> JudgeRates:
        """Rates of the judge."""
        return self.judge

    @cached_property
    def nodes(self) -> Nodes:
        """What p of every question is drawn from, with rates and probabilities."""
        if self.pooling == "partial":
            return Pooled.of(self.states, (), self.prior, self.judge).mixture.nodes
        if self.pooling == "complete":
            return self.one_for_all.nodes
        logs = MarkedCounts(self.states, self.judge.rates).log_by_rates(_fixed(self.prior))[0]
        logs = logs + self.judge.rates.log_weight
        alpha, beta = (np.full(len(logs), x) for x in (self.prior.alpha, self.prior.beta))
        nodes = Nodes.betas(alpha, beta, np.exp(logs - logsumexp(logs)))
        return replace(nodes, rates=self.judge.rates.values)

    def log_states(self, nodes: Nodes) -> Array:
        """Log probability of a question's marks in their order; (nodes, states)."""
        if self.pooling != "complete":
            return np.asarray(log_marked(nodes, self.states) - self.states.log_ways)
        assert nodes.rates is not None
        s, f = nodes.rates.T
        p = nodes.overall()[0]
        mark = np.clip(f + (s - f) * p, 1e-300, 1.0 - 1e-16)
        right, wrong = self.states.successes, self.states.trials - self.states.successes
        return np.outer(np.log(mark), right) + np.outer(np.log1p(-mark), wrong)

    @property
    def one_for_all(self) -> OneForAll:
        """One success probability for all questions."""
        states = self.states.merged() if self.states.prior.any() else self.states
        return OneForAll.of(states, self.prior, self.judge)

    def partial_predictive(self) -> Predictive:
        """Predict marks of questions that are left out, difficulty families averaged."""
        return leave_one_out.partial(self.states, self.prior, self.judge.rates)

    def partial_evidence(self) -> float:
        """Log evidence of the marks, difficulty families averaged."""
        return leave_one_out.partial_evidence(self.states, self.prior, self.judge.rates)

    def prior_sensitivity(
        self, metrics: Sequence[MetricFunction], posterior: SystemPosterior, sd: Array
    ) -> Array:
        """As of `CountModel`; NaN where marks tell nothing of the rates."""
        if self.judge.cut:
            return np.full(sd.shape, np.nan)
        return super().prior_sensitivity(metrics, posterior, sd)

    def predictive(self) -> Predictive:
        """Log predictive probabilities of marks that are left out, and log evidence.

        The evidence is not a number where the judge marked several systems, whose evidences do not
        add up: what is known of its rates is theirs together.
        """
        if self.judge.cut:
            require("exact_loo", {"cut judge": "updated=False"})
        if self.pooling == "partial":
            found = self.partial_predictive()
        elif self.pooling == "complete":
            found = self.one_for_all.predictive(self.states)
            if self.states.prior.any():
                counts = np.zeros_like(self.states.counts)
                earlier = replace(self, states=replace(self.states, counts=counts)).one_for_all
                total = found.log_evidence - earlier.log_evidence
                found = found._replace(log_evidence=total)
        else:
            nodes = _fixed(self.prior)
            marked = MarkedCounts(self.states, self.judge.rates)
            logs = marked.log_by_rates(nodes)[0] + self.judge.rates.log_weight
            ((_, chances),) = marked.by_state(nodes)
            found = leave_one_out.of_points(logs, np.log(chances[0]))
        return found if self.judge.systems == 1 else found._replace(log_evidence=np.nan)

    def log_evidence(self) -> float:
        """Log evidence of the marks; not a number where the judge marked several systems."""
        if self.judge.systems > 1 or self.judge.cut:
            return np.nan
        return self.partial_evidence() if self.pooling == "partial" else super().log_evidence()


_ROUGH = 1e-3  # error, in sds, of what only says where points are needed


def _fixed(prior: BetaPrior) -> Nodes:
    return Nodes.single(prior.alpha, prior.beta)


def _roughly(pooling: Pooling, prior: Prior, states: States, rates: Rates) -> Array:
    """Log probability of a system's marks given the rates, of single Betas."""
    if isinstance(prior, HyperPrior):
        marked = MarkedCounts(states, rates)
        hyper = hyper_posterior(marked, prior.of_family("beta"), _ROUGH)
        return marked.log_likelihood_of_rates(hyper.nodes(_ROUGH)) + hyper.log_evidence
    if pooling == "none":
        return np.asarray(MarkedCounts(states, rates).log_by_rates(_fixed(prior))[0])
    return OneForAll.log_likelihood_of_rates(states, prior, rates)


def _exactly(pooling: Pooling, prior: Prior, states: States, rates: Rates) -> Array:
    """Return the same, difficulty families averaged."""
    if not isinstance(prior, HyperPrior):
        return _roughly(pooling, prior, states, rates)
    each = family_posteriors(states, prior, rates)
    log_prior = np.log([prior.family_prior[one.name] for one in each])
    logs = np.stack([one.log_likelihood_of_rates for one in each])
    return np.asarray(logsumexp(logs + log_prior[:, None], axis=0))


@dataclass(frozen=True)
class _Asked:
    """Systems of one judge, equal to others with the same content."""

    judge: JudgeError
    pooling: Pooling
    prior: Prior
    content: tuple[bytes, ...]
    systems: list[States] = field(compare=False)


@lru_cache(maxsize=16)
def _integrated(asked: _Asked) -> list[JudgeRates]:
    known, shapes = (asked.pooling, asked.prior), asked.judge.shapes
    if not asked.judge.updated:
        return calibrated_rates(shapes, asked.systems, partial(_exactly, *known))
    rough, exact = partial(_roughly, *known), partial(_exactly, *known)
    return integrated_rates(shapes, asked.systems, rough, exact)


def rates_of_judges(
    judges: Judges,
    pooling: Pooling,
    prior: Prior,
    counts: Sequence[NDArray[np.int64]],
    seed: int = 0,
) -> list[JudgeRates]:
    """Return the rates of the judge of every system, with the marks of all systems it marked.

    Parameters
    ----------
    judges : Judges
    pooling, prior
        Of the evaluation.
    counts : sequence of ndarray of int, shape (questions, 2)
        Marks of every system: wrong, then right.
    seed : int
        Of the order in which draws come, the same for systems of one judge.
    """
    found: dict[int, JudgeRates] = {}
    for number, (judge, places) in enumerate(judges.groups().items()):
        states = [States.of(counts[i][:, 1], counts[i].sum(axis=1)) for i in places]
        content = tuple(one.counts.tobytes() + one.count.tobytes() for one in states)
        # What is kept must not hold an array as long as the questions.
        small = [replace(one, which=np.zeros(0, np.intp)) for one in states]
        rates = _integrated(_Asked(judge, pooling, prior, content, small))
        for place, own in zip(places, rates, strict=True):
            found[place] = replace(own, seed=seed + number)
    return [found[i] for i in range(len(counts))]
