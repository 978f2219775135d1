"""Difficulty families: the posterior of each, as nodes and draws, and its evidence.

Given its hyperparameters a family is Betas and atoms with shares
(`bayesatk.core.pooling.difficulty_shapes`), which is all that the rest needs of it. The Beta is
integrated on a grid; the others, of four and five hyperparameters, by importance sampling.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayesatk.core.numerics.importance import Importance, importance_posterior
from bayesatk.core.numerics.weights import reweighted
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.pooling.difficulty_shapes import SHAPES, Shape
from bayesatk.core.pooling.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.pooling.hyper_functions import draw_hyperparameters
from bayesatk.core.pooling.marks import MarkedCounts, Rates
from bayesatk.core.pooling.nodes import Nodes, heaviest
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Array
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior

_KEPT = 300  # posteriors: three families of a hundred systems, about half a megabyte each
_BLOCK = 4_000_000  # floats in one array: 32 MB
_LEFT_OUT = 1e-6  # probability of pairs of nodes and rates that nothing is drawn from
_LEAST = 64  # nodes that stand for a family, however improbable
_MINOR_SHARE = 0.05  # of the most probable family's probability, below which few points will do


@dataclass(frozen=True)
class FamilyPosterior:
    """Posterior of the hyperparameters of one family.

    Parameters
    ----------
    name : str
    nodes : Nodes
        Weights sum to one.
    log_evidence, log_evidence_error : float
        Of the trials in their order; NaN under an improper prior.
    error : float
        Of means and sds, in sds: from refining the grid, or a standard error.
    draw : callable
        ``draw(size, rng)`` returns independent draws as equally probable nodes.
    prior_ratio : callable
        ``prior_ratio(prior)`` is the log density of another prior over that of this one, at the
        nodes.
    grid, importance : HyperPosterior, Importance
        Where they come from, one of the two.
    marked : MarkedCounts, optional
        The data, where a judge that errs marked them; its rates are integrated in all of this.
    """

    name: str
    nodes: Nodes
    log_evidence: float
    log_evidence_error: float
    error: float
    draw: Callable[[int, np.random.Generator], Nodes]
    prior_ratio: Callable[[HyperPrior], Array]
    grid: HyperPosterior | None = None
    importance: Importance | None = None
    marked: MarkedCounts | None = None

    @property
    def log_likelihood_of_rates(self) -> Array:
        """Log probability of the trials in their order, given the judge's rates; (points,)."""
        assert self.marked is not None
        return self.log_evidence + self.marked.log_likelihood_of_rates(self.nodes)

    def under(self, prior: HyperPrior) -> tuple[Array, float]:
        """Weights of the nodes under another prior, and the log evidence that it adds."""
        logs = self.prior_ratio(prior)
        if self.grid is None:
            return reweighted(self.nodes.weight, logs)
        top = logs.max()
        found = self.nodes.weight * np.exp(logs - top)
        return found / found.sum(), float(np.log(found.sum()) + top)

    def thinned(self, size: float) -> NDArray[np.intp]:
        """Which nodes stand for all, about so many and then equally probable; a grid as it is.

        Points are taken at equal steps of probability, in order of the mean of p and, among those
        of about equal mean, of its correlation.
        """
        if self.grid is not None:
            return np.arange(len(self.nodes))
        mean, _, icc, _ = self.nodes.overall()
        return _evenly(mean, icc, self.nodes.weight, size)

    def with_rates(self, size: float) -> tuple[Nodes, NDArray[np.intp]]:
        """Return nodes with rates of the judge, and which nodes they are: about so many in all.

        Where the rates are known these are the nodes, else pairs at equal steps of probability, in
        order of the mean over the questions.
        """
        assert self.marked is not None
        if len(self.marked.rates) == 1:
            which = self.thinned(size)
            nodes = self.nodes.among(which)
            if self.grid is None:
                nodes = replace(nodes, weight=np.full(len(which), 1.0 / len(which)))
            return self.marked.at_rates(nodes, np.zeros(len(which), np.intp)), which
        heavy = heaviest(self.nodes.weight, _LEFT_OUT)
        some = self.nodes.among(heavy)
        joint = some.weight[:, None] * np.exp(self.marked.log_given(some))
        node, point = np.nonzero(joint > _LEFT_OUT / joint.size)
        mean = self.marked.question_means(some)[node, point]
        chosen = _evenly(mean, point.astype(float), joint[node, point], size)
        which, point = heavy[node[chosen]], point[chosen]
        nodes = replace(self.nodes.among(which), weight=np.full(len(which), 1.0 / len(which)))
        return self.marked.at_rates(replace(nodes, grid=None), point), which


def _evenly(mean: Array, second: Array, weight: Array, size: float) -> NDArray[np.intp]:
    """Return about so many indices at equal steps of probability, in order of two numbers."""
    number = int(np.ceil(max(size, _LEAST)))
    order = np.argsort(mean)
    stratum = np.empty(len(mean), int)
    stratum[order] = (np.cumsum(weight[order]) / weight.sum() * np.sqrt(number)).astype(int)
    turn = np.where(stratum % 2 == 0, second, -second)  # back and forth: neighbours stay close
    order = np.lexsort((turn, stratum))
    upto = np.cumsum(weight[order])
    place = (np.arange(number) + 0.5) / number * upto[-1]
    return np.asarray(order[np.searchsorted(upto, place)])


def family_posterior(
    name: str,
    states: States,
    prior: HyperPrior,
    negligible: float = -np.inf,
    rates: Rates | None = None,
) -> FamilyPosterior:
    """Integrate the hyperparameters of one family.

    Comparing systems asks again for what evaluating them has integrated: the last few are kept.

    Parameters
    ----------
    name : str
    states : States
    prior : HyperPrior
    negligible : float
        Log evidence below which the family hardly counts and a rough answer will do.
    rates : Rates, optional
        Of the judge that marked the trials; default: the marks are right.

    Raises
    ------
    ValueError
        If the posterior is improper.
    """
    own: tuple[Array | NDArray[np.int64], ...] = states.successes, states.trials, states.count
    own += () if rates is None else (rates.values, rates.log_weight)
    content = b"".join(np.ascontiguousarray(one).tobytes() for one in own)
    # What is kept must not hold an array as long as the questions.
    states = replace(states, which=np.zeros(0, np.intp), weight=None)
    return _integrated(_Asked(name, prior.of_family(name), negligible, content, states, rates))


@dataclass(frozen=True)
class _Asked:
    """What is integrated, equal to another of the same content."""

    name: str
    prior: HyperPrior
    negligible: float
    content: bytes
    states: States = field(compare=False)
    rates: Rates | None = field(compare=False)


@lru_cache(maxsize=_KEPT)
def _integrated(asked: _Asked) -> FamilyPosterior:
    name, states, prior = asked.name, asked.states, asked.prior
    marked = None if asked.rates is None else MarkedCounts(states, asked.rates)
    if name == DIFFICULTY_FAMILIES[0]:
        return _of_beta(states, prior, marked)
    shape = SHAPES[name](prior)
    likelihood = partial(_log_likelihood, shape, states, marked)
    found = importance_posterior(
        shape.from_uniform, shape.log_prior, likelihood, shape.size, asked.negligible
    )
    nodes = replace(shape.nodes(found.points), weight=found.weight)
    error = 1.0 / np.sqrt(found.effective_draws)

    def draw(size: int, rng: np.random.Generator) -> Nodes:
        some = nodes.among(rng.choice(len(nodes), size=size, p=nodes.weight))
        return replace(some, weight=np.full(size, 1.0 / size))

    def ratio(other: HyperPrior) -> Array:
        possible = found.weight > 0.0
        both = [one.log_prior(found.points[possible]) for one in (SHAPES[name](other), shape)]
        ratio = np.full(len(possible), -np.inf)  # of points that have no weight
        ratio[possible] = both[0] - both[1]
        return ratio

    evidence = found.log_evidence, found.log_evidence_error
    return FamilyPosterior(name, nodes, *evidence, error, draw, ratio, None, found, marked)


def _of_beta(
    states: States, prior: HyperPrior, marked: MarkedCounts | None = None
) -> FamilyPosterior:
    hyper = hyper_posterior(
        marked or CountHistograms.of(states.successes, states.trials, states.count), prior
    )

    def draw(size: int, rng: np.random.Generator) -> Nodes:
        x, y = hyper.place(*draw_hyperparameters(hyper, size, rng))
        return Nodes.of(x, y, np.full(size, 1.0 / size))

    nodes = hyper.nodes()

    def ratio(other: HyperPrior) -> Array:
        place = np.stack([hyper.x[nodes.grid], hyper.y[nodes.grid]], axis=1)
        density = prior.fields("beta").log_density(place)
        return np.asarray(other.fields("beta").log_density(place) - density)

    evidence = hyper.log_evidence, hyper.error
    error = hyper.error
    return FamilyPosterior(
        DIFFICULTY_FAMILIES[0], nodes, *evidence, error, draw, ratio, grid=hyper, marked=marked
    )


def _log_likelihood(
    shape: Shape, states: States, marked: MarkedCounts | None, theta: Array
) -> Array:
    """Log probability of all trials, in their order, given hyperparameters."""
    if marked is not None:
        return marked.log_of_nodes(shape.nodes(theta))
    found = np.empty(len(theta))
    failures = states.trials - states.successes
    step = max(1, _BLOCK // (4 * len(states)))
    for start in range(0, len(theta), step):
        part = slice(start, start + step)
        logs = shape.nodes(theta[part]).log_likelihood(states.successes, failures)
        found[part] = logs @ states.count
    return found


def family_posteriors(
    states: States, prior: HyperPrior, rates: Rates | None = None
) -> list[FamilyPosterior]:
    """Integrate the hyperparameters of every family, roughly of those that hardly count."""
    every: list[FamilyPosterior] = []
    best = -np.inf
    for name, probability in prior.family_prior.items():
        rough = best - np.log(probability) + np.log(_MINOR_SHARE)
        every.append(family_posterior(name, states, prior, rough, rates))
        best = max(best, every[-1].log_evidence + np.log(probability))
    return every


def weigh_families(
    posteriors: list[FamilyPosterior], prior: HyperPrior
) -> tuple[Array, Array, float]:
    """Posterior probabilities of families, their standard errors, and the averaged log evidence.

    Examples
    --------
    >>> known = [family_posterior("beta", States.of([1, 0], [1, 1]), HyperPrior())]
    >>> weigh_families(known, HyperPrior(families="beta"))[0].tolist()
    [1.0]
    """
    if len(posteriors) == 1:
        return np.ones(1), np.zeros(1), posteriors[0].log_evidence
    logs = np.array([one.log_evidence + np.log(prior.family_prior[one.name]) for one in posteriors])
    share = np.exp(logs - logsumexp(logs))
    own = np.array([one.log_evidence_error for one in posteriors])
    variance = (1.0 - 2.0 * share) * own**2 + (share**2) @ own**2
    return share, share * np.sqrt(variance), float(logsumexp(logs))


def difficulty_of(nodes: Nodes) -> Difficulty:
    """Return the difficulty distributions of nodes."""
    total = nodes.alpha + nodes.beta
    mean, icc = nodes.alpha / total, 1.0 / (1.0 + total)
    return Difficulty(nodes.share, mean, icc, nodes.atoms[:, 0], nodes.atoms[:, 1])
