"""What is known of single questions: their p as mixtures of Betas and atoms, one for each state."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import elementwise
from scipy.special import betainc, logsumexp

from bayesatk.core.numerics.quadrature import beta_rule, resolving_degree
from bayesatk.core.pooling.marks import mark_chances
from bayesatk.core.pooling.nodes import Nodes, heaviest
from bayesatk.core.pooling.states import States
from bayesatk.core.question.beta_binomial import beta_binomial_pmf
from bayesatk.core.question.laws import log_binomials
from bayesatk.metrics.credit import Array

_CELLS = 4_000_000  # of nodes and states held at once, in floats: 32 MB an array
_NEGLIGIBLE = 1e-12  # probability of points that are left out
_QUANTILES = 60_000  # of nodes and states, for quantiles
_FEW = (100, 400)  # nodes that quantiles need, at least and at most
_STRATA = 20  # of nodes of about equal mean
_MERGED = 200  # Betas of a mixture of many
_LEAST = 1e-300
_NARROW = 1e-12  # Beta parameter, at least
_FEWEST = 50  # nodes that stand for all where states are many


@dataclass(frozen=True)
class QuestionLaws:
    """Posterior of p of a question in each state, given each node and averaged over them.

    Parameters
    ----------
    weight : ndarray, shape (nodes,)
        Posterior probabilities of the nodes.
    share : ndarray, shape (components + 2, nodes, states)
        Probability of each Beta, and of the atoms at 0 and 1, given node and state.
    alpha, beta : ndarray, shape (components, nodes, states)
        The Betas.
    """

    weight: Array
    share: Array
    alpha: Array
    beta: Array

    @classmethod
    def of(cls, nodes: Nodes, states: States) -> "QuestionLaws":
        """Update the nodes by each state.

        Examples
        --------
        >>> laws = QuestionLaws.of(Nodes.single(1.0, 1.0), States.of([1], [2]))
        >>> laws.mean.tolist(), laws.cdf(np.array([0.5])).round(12).tolist()  # Beta(2, 2)
        ([0.5], [0.5])
        """
        nodes = ordered(nodes)
        betas = nodes.alpha.shape[1]
        marked = nodes.rates is not None
        parts = betas * (int(states.trials.max(initial=0)) + 1 if marked else 1) + 2
        nodes = fewer(nodes, max(_FEWEST, _CELLS // (len(states) * parts)))
        right = _right_by_marks(nodes, states) if marked else [(states.successes, np.zeros(1))]
        logs, alpha, beta = [], [], []
        atoms = np.full((2, len(nodes), len(states)), -np.inf)
        for c, log_chance in right:
            possible = np.minimum(c, states.trials)
            f = states.trials - possible
            own = nodes.log_parts(possible, f) + log_chance
            logs.append(own[:-2])
            atoms = np.logaddexp(atoms, own[-2:])
            alpha.append(nodes.alpha.T[..., None] + possible)
            beta.append(nodes.beta.T[..., None] + f)
        every = np.concatenate([*logs, atoms])
        share = np.exp(every - logsumexp(every, axis=0))
        weight = nodes.weight / nodes.weight.sum()
        return cls(weight, share, np.concatenate(alpha), np.concatenate(beta))

    @classmethod
    def merged(cls, share: Array, alpha: Array, beta: Array, atoms: Array) -> "QuestionLaws":
        """Return mixtures of many Betas as mixtures of fewer, with the same mean and variance.

        Neighbours in the order of their means, and among those of about equal mean of their
        concentration, are one Beta with the mean and the variance of all of them.

        Parameters
        ----------
        share, alpha, beta : ndarray, shape (components, states)
            Probabilities of Betas.
        atoms : ndarray, shape (2, states)
            Probabilities of p = 0 and p = 1.

        Examples
        --------
        >>> share, ones = np.full((2, 1), 0.5), np.ones((2, 1))
        >>> QuestionLaws.merged(share, ones, 2.0 * ones, np.zeros((2, 1))).mean.round(12).tolist()
        [0.333333333333]
        """
        total, states = alpha + beta, share.shape[1]
        mean = alpha / total
        order = np.argsort(mean, axis=0)
        upto = np.cumsum(np.take_along_axis(share, order, 0), axis=0)
        stratum = np.empty(share.shape, np.intp)
        steps = np.minimum(upto / np.maximum(upto[-1], _LEAST) * _STRATA, _STRATA - 1)
        np.put_along_axis(stratum, order, steps.astype(np.intp), 0)
        turn = np.where(stratum % 2 == 0, total, -total)
        order = np.lexsort((turn, stratum), axis=0)
        share, mean, total = (np.take_along_axis(x, order, 0) for x in (share, mean, total))
        upto = np.cumsum(share, axis=0) - 0.5 * share
        place = upto / np.maximum(share.sum(axis=0), _LEAST) * _MERGED
        bins = np.minimum(place.astype(np.intp), _MERGED - 1) * states + np.arange(states)

        def summed(values: Array) -> Array:
            sums = np.bincount(bins.ravel(), values.ravel(), _MERGED * states)
            return sums.reshape(_MERGED, states)

        weight = summed(share)
        known = np.maximum(weight, _LEAST)
        centre = np.where(weight > 0.0, summed(share * mean) / known, 0.5)
        within = mean * (1.0 - mean) / (total + 1.0)
        gap = mean - np.take_along_axis(centre, bins // states, 0)
        most = centre * (1.0 - centre)
        spread = np.where(weight > 0.0, summed(share * (within + gap**2)) / known, most / 3.0)
        concentration = np.maximum(most / np.maximum(spread, _LEAST) - 1.0, _NARROW)
        a, b = centre * concentration, (1.0 - centre) * concentration
        every = np.concatenate([weight, atoms])
        parts = (np.maximum(x, _NARROW)[:, None] for x in (a, b))
        return cls(np.ones(1), (every / every.sum(axis=0))[:, None], *parts)

    @cached_property
    def mean(self) -> Array:
        """Posterior mean of p, by state."""
        return self._average(self.alpha / (self.alpha + self.beta), 1.0)

    @cached_property
    def spread(self) -> Array:
        """Posterior mean of p (1 - p), by state."""
        total = self.alpha + self.beta
        return self._average(self.alpha * (self.beta / total) / (total + 1.0), 0.0)

    def _average(self, of_betas: Array, at_one: float) -> Array:
        own = (self.share[:-2] * of_betas).sum(axis=0) + at_one * self.share[-1]
        return np.asarray(self.weight @ own)

    def cdf(self, x: Array, state: NDArray[np.intp] | None = None) -> Array:
        """Probability that p is at most x, for one x a state."""
        chosen = np.arange(self.share.shape[2]) if state is None else state
        parts = betainc(self.alpha[..., chosen], self.beta[..., chosen], np.clip(x, 0.0, 1.0))
        own = (self.share[:-2, :, chosen] * parts).sum(axis=0) + self.share[-2][:, chosen]
        own = own + self.share[-1][:, chosen] * (x >= 1.0)
        return np.where(x < 0.0, 0.0, np.minimum(self.weight @ own, 1.0))

    def among(self, most: int, states: NDArray[np.intp] | slice = slice(None)) -> "QuestionLaws":
        """Return the laws of some states, on at most so many nodes that stand for all."""
        share, alpha, beta = (own[..., states] for own in (self.share, self.alpha, self.beta))
        if len(self.weight) <= most:
            return QuestionLaws(self.weight, share, alpha, beta)
        nodes = _even(self.weight, most)
        weight = np.full(most, 1.0 / most)
        return QuestionLaws(weight, share[:, nodes], alpha[:, nodes], beta[:, nodes])

    def quantile(self, level: float) -> Array:
        """Value of p with so much probability below it, by state, to about a thousandth."""
        size = self.share.shape[2]
        most = int(np.clip(_QUANTILES // size, *_FEW))
        if len(self.weight) > most:
            return self.among(most).quantile(level)
        every, never = np.arange(size), self.weight @ self.share[-2]
        found = np.where(never >= level, 0.0, 1.0)
        inside = every[(never < level) & (1.0 - self.weight @ self.share[-1] > level)]
        if len(inside):

            def gap(x: Array, state: Array) -> Array:
                flat = self.cdf(x.ravel(), state.astype(np.intp).ravel()) - level
                return np.asarray(flat.reshape(x.shape))

            ends = np.zeros(len(inside)), np.nextafter(np.ones(len(inside)), 0.0)
            root = elementwise.find_root(
                gap, ends, args=(inside.astype(float),), tolerances={"xatol": 1e-7, "xrtol": 1e-5}
            )
            found[inside] = root.x
        return found

    def chances(self, trials: int, states: NDArray[np.intp]) -> Array:
        """Probability of at most 0, 1, ... successes in new trials, of some states.

        Returns
        -------
        ndarray, shape (states, trials + 1)
        """
        cells = len(states) * (trials + 1) * len(self.alpha)
        own = self.among(max(_FEWEST, _CELLS // cells), states)
        pmf = np.tensordot(own.weight, own.counts(trials), axes=1)
        return np.asarray(np.minimum(np.cumsum(pmf, axis=1), 1.0))

    def counts(self, trials: int) -> Array:
        """Probability of 0, 1, ... successes in new trials of a question, by node and state.

        Returns
        -------
        ndarray, shape (nodes, states, trials + 1)
        """
        shape = *self.share.shape[1:], trials + 1
        found = np.zeros(shape)
        for share, alpha, beta in zip(self.share, self.alpha, self.beta, strict=False):
            pmf = beta_binomial_pmf(trials, alpha.ravel(), beta.ravel())
            found += share[..., None] * pmf.reshape(shape)
        found[..., 0] += self.share[-2]
        found[..., -1] += self.share[-1]
        return found


def _right_by_marks(nodes: Nodes, states: States) -> Iterator[tuple[Array, Array]]:
    """Yield numbers of right trials, and log chances of each state's marks given these.

    With the number of orders of these trials; numbers beyond the trials have no chance.
    """
    assert nodes.rates is not None
    for number in range(int(states.trials.max(initial=0)) + 1):
        logs = np.full((len(nodes), len(states)), -np.inf)
        for trials in np.unique(states.trials[states.trials >= number]):
            some = np.flatnonzero(states.trials == trials)
            chances = mark_chances(nodes.rates, int(trials), states.successes[some])[number]
            ways = log_binomials(int(trials))[number]
            with np.errstate(divide="ignore"):
                logs[:, some] = np.log(chances) + ways
        yield np.full(len(states), number), logs


def fewer(nodes: Nodes, most: int) -> Nodes:
    """Return at most so many nodes that stand for all: at equal steps of probability."""
    if len(nodes) <= most:
        return nodes
    nodes = ordered(nodes)
    chosen = _even(nodes.weight, most)
    return replace(nodes.among(chosen), weight=np.full(most, 1.0 / most))


def ordered(nodes: Nodes) -> Nodes:
    """Return the nodes in order of their mean, and among those of about equal mean of their icc."""
    mean, _, icc, _ = nodes.overall()
    order = np.argsort(mean, kind="stable")
    stratum = np.empty(len(nodes), int)
    stratum[order] = np.cumsum(nodes.weight[order]) / nodes.weight.sum() * _STRATA
    turn = np.where(stratum % 2 == 0, icc, -icc)  # back and forth: neighbours stay close
    return nodes.among(np.lexsort((turn, stratum)))


def _even(weight: Array, size: int) -> NDArray[np.intp]:
    """Return so many indices at equal steps of probability."""
    upto = np.cumsum(weight)
    place = (np.arange(size) + 0.5) / size * upto[-1]
    return np.asarray(np.searchsorted(upto, place), np.intp)


def one_for_all(alpha: float, beta: float) -> Nodes:
    """Return nodes at each of which all questions have one p, which is Beta(alpha, beta).

    Examples
    --------
    >>> nodes = one_for_all(3.0, 5.0)
    >>> float((nodes.weight @ nodes.overall()[0]).round(12))
    0.375
    """
    rule = beta_rule(alpha, beta, float(resolving_degree(alpha, beta)))
    logs = rule.log_weight + alpha * rule.log_p + beta * rule.log_q
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    keep = heaviest(weight, _NEGLIGIBLE)
    point = np.full(len(keep), -np.inf)  # logit of an icc of 0
    return Nodes.of((rule.log_p - rule.log_q)[keep], point, weight[keep] / weight[keep].sum())
