"""Posterior of p of single questions: mixtures of few Betas and atoms."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import elementwise
from scipy.special import betainc

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.question.beta_binomial import beta_binomial_pmf

_STRATA = 20  # of the means of Betas that are merged: among them neighbours have like shapes
_MERGED = 200  # Betas that stand for all
_NARROW = 1e-12  # least parameter of a Beta
_LEAST = 1e-300  # probability, whose inverse is a number


@dataclass(frozen=True)
class QuestionLaws:
    """Posterior of p of a question in each state.

    Parameters
    ----------
    share : ndarray, shape (components + 2, states)
        Probability of each Beta, and of the atoms at 0 and 1.
    alpha, beta : ndarray, shape (components, states)
        The Betas.
    """

    share: Array
    alpha: Array
    beta: Array

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
        cumulative = np.cumsum(np.take_along_axis(share, order, 0), axis=0)
        stratum = np.empty(share.shape, np.intp)
        steps = np.minimum(cumulative / np.maximum(cumulative[-1], _LEAST) * _STRATA, _STRATA - 1)
        np.put_along_axis(stratum, order, steps.astype(np.intp), 0)
        turn = np.where(stratum % 2 == 0, total, -total)
        order = np.lexsort((turn, stratum), axis=0)
        share, mean, total = (np.take_along_axis(x, order, 0) for x in (share, mean, total))
        middle = (np.cumsum(share, axis=0) - 0.5 * share) / np.maximum(share.sum(axis=0), _LEAST)
        bins = np.minimum((middle * _MERGED).astype(np.intp), _MERGED - 1)
        bins = bins * states + np.arange(states)

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
        return cls(every / every.sum(axis=0), np.maximum(a, _NARROW), np.maximum(b, _NARROW))

    @cached_property
    def mean(self) -> Array:
        """Posterior mean of p, by state."""
        of_betas = self.alpha / (self.alpha + self.beta)
        return np.asarray((self.share[:-2] * of_betas).sum(axis=0) + self.share[-1])

    @cached_property
    def spread(self) -> Array:
        """Posterior mean of p (1 - p), by state."""
        total = self.alpha + self.beta
        of_betas = self.alpha * (self.beta / total) / (total + 1.0)
        return np.asarray((self.share[:-2] * of_betas).sum(axis=0))

    def cdf(self, x: Array, state: Indices | None = None) -> Array:
        """Probability that p is at most x, for one x a state."""
        chosen = np.arange(self.share.shape[1]) if state is None else state
        parts = betainc(self.alpha[:, chosen], self.beta[:, chosen], np.clip(x, 0.0, 1.0))
        inside = (self.share[:-2, chosen] * parts).sum(axis=0) + self.share[-2, chosen]
        inside = inside + self.share[-1, chosen] * (x >= 1.0)
        return np.where(x < 0.0, 0.0, np.minimum(inside, 1.0))

    def quantile(self, level: float) -> Array:
        """Value of p with so much probability below it, by state, to about a thousandth."""
        never, always = self.share[-2:]
        values = np.where(never >= level, 0.0, 1.0)
        inside = np.flatnonzero((never < level) & (1.0 - always > level))
        if len(inside):

            def gap(x: Array, state: Array) -> Array:
                flat = self.cdf(x.ravel(), state.astype(np.intp).ravel()) - level
                return np.asarray(flat.reshape(x.shape))

            ends = np.zeros(len(inside)), np.nextafter(np.ones(len(inside)), 0.0)
            root = elementwise.find_root(
                gap, ends, args=(inside.astype(float),), tolerances={"xatol": 1e-7, "xrtol": 1e-5}
            )
            values[inside] = root.x
        return values

    def chances(self, trials: int, states: Indices) -> Array:
        """Probability of at most 0, 1, ... successes in new trials, of some states.

        Returns
        -------
        ndarray, shape (states, trials + 1)
        """
        pmf = np.zeros((len(states), trials + 1))
        for share, alpha, beta in zip(self.share, self.alpha, self.beta, strict=False):
            pmf += share[states, None] * beta_binomial_pmf(trials, alpha[states], beta[states])
        pmf[:, 0] += self.share[-2, states]
        pmf[:, -1] += self.share[-1, states]
        return np.minimum(np.cumsum(pmf, axis=1), 1.0)
