"""Distributions of p between questions: mixtures of Betas and of atoms at 0 and 1.

Every difficulty family is such a mixture given its hyperparameters: at a point or draw of their
posterior.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.question.dirichlet_multinomial import log_rising_factorial

_FACTORS_PER_PRODUCT = 16  # bases are at most 1e15, so that no product overflows
_BASES_PER_BLOCK = 1 << 14  # so few that their products stay in the cache
_PARAMETER_FLOOR = 1e-300  # of Beta parameters and of an icc: their inverses are numbers
_PARAMETER_SUM_FLOOR = 1e-150  # of both Beta parameters: they still determine the mean
_POINT_LAW_SUM = 1e8  # of both Beta parameters, from which a cdf is a step at the mean


@dataclass(frozen=True)
class Nodes:
    """Mixtures of Betas and of atoms at 0 and 1 as distributions of p, with their probabilities.

    Parameters
    ----------
    alpha, beta, share : ndarray, shape (nodes, components)
        Parameters of the Betas of each node, and their shares in the mixture.
    atoms : ndarray, shape (nodes, 2)
        Shares of p = 0 and p = 1; with the shares of the Betas they sum to one.
    weight : ndarray, shape (nodes,)
        Probabilities of the nodes.
    rates : ndarray, shape (nodes, 2), optional
        Sensitivity and false positive rate of a judge who errs.
    """

    alpha: Array
    beta: Array
    share: Array
    atoms: Array
    weight: Array
    rates: Array | None = None

    @classmethod
    def of(cls, x: Array, y: Array, weight: Array) -> "Nodes":
        """Return single Betas by logits of their means and intraclass correlations.

        The sums of their parameters are kept within [1e-250, 1e15]: beyond either end no
        probability of any number of trials changes in double precision.
        """
        total = np.exp(-np.clip(y, -34.5, 575.0))
        alpha, beta = (
            np.maximum(expit(sign * x) * total, _PARAMETER_FLOOR) for sign in (1.0, -1.0)
        )
        return cls.betas(alpha, beta, weight)

    @classmethod
    def betas(cls, alpha: Array, beta: Array, weight: Array) -> "Nodes":
        """Return nodes of one Beta each, without atoms."""
        shares, atoms = np.ones((len(weight), 1)), np.zeros((len(weight), 2))
        return cls(alpha[:, None], beta[:, None], shares, atoms, weight)

    @classmethod
    def mixed(cls, parts: Sequence["Nodes"], share: Array, atoms: Array) -> "Nodes":
        """Return mixtures of the Betas of several nodes, with shares (nodes, parts) and atoms."""
        alpha = np.concatenate([nodes.alpha for nodes in parts], axis=1)
        beta = np.concatenate([nodes.beta for nodes in parts], axis=1)
        return cls(alpha, beta, share, atoms, parts[0].weight)

    @classmethod
    def of_moments(
        cls, mean: Array, icc: Array, share: Array | None = None, atoms: Array | None = None
    ) -> "Nodes":
        """Return equally probable nodes by means and intraclass correlations of their Betas.

        Parameters
        ----------
        mean, icc : ndarray, shape (nodes, components)
            ``icc = 1 / (alpha + beta + 1)``.
        share : ndarray, shape (nodes, components), optional
            Default: 1, for single Betas.
        atoms : ndarray, shape (nodes, 2), optional
            Default: none.

        Examples
        --------
        >>> nodes = Nodes.of_moments(np.array([[0.5]]), np.array([[0.25]]))
        >>> nodes.alpha.tolist(), nodes.icc.tolist()
        ([[1.5]], [[0.25]])
        """
        total = np.maximum((1.0 - icc) / np.maximum(icc, _PARAMETER_FLOOR), _PARAMETER_SUM_FLOOR)
        alpha = np.maximum(mean * total, _PARAMETER_FLOOR)
        beta = np.maximum((1.0 - mean) * total, _PARAMETER_FLOOR)
        share = np.ones(mean.shape) if share is None else share
        atoms = np.zeros((len(mean), 2)) if atoms is None else atoms
        return cls(alpha, beta, share, atoms, np.full(len(mean), 1.0 / max(1, len(mean))))

    @classmethod
    def single(cls, alpha: float, beta: float) -> "Nodes":
        """Return one fixed prior: no pooling."""
        return cls.betas(np.array([alpha]), np.array([beta]), np.ones(1))

    @classmethod
    def joined(cls, parts: Sequence["Nodes"], probability: Sequence[float]) -> "Nodes":
        """Return the nodes of several posteriors, each with its probability."""
        components = max(nodes.alpha.shape[1] for nodes in parts)

        def wide(values: Array, share: bool = False) -> Array:
            # Padding has no share; a copy of the first component needs no other quadrature rule.
            padding = np.repeat(values[:, :1] * (not share), components - values.shape[1], axis=1)
            return np.concatenate([values, padding], axis=1)

        return cls(
            np.concatenate([wide(nodes.alpha) for nodes in parts]),
            np.concatenate([wide(nodes.beta) for nodes in parts]),
            np.concatenate([wide(nodes.share, share=True) for nodes in parts]),
            np.concatenate([nodes.atoms for nodes in parts]),
            np.concatenate([p * nodes.weight for p, nodes in zip(probability, parts, strict=True)]),
        )

    @property
    def components(self) -> Iterator[tuple[Array, Array, Array]]:
        """Iterate over components: share, alpha and beta, each of shape (nodes,)."""
        return zip(self.share.T, self.alpha.T, self.beta.T, strict=True)

    @property
    def mean(self) -> Array:
        """Means of the Betas; (nodes, components)."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def icc(self) -> Array:
        """Intraclass correlations of the Betas; (nodes, components)."""
        return 1.0 / (1.0 + self.alpha + self.beta)

    def moved(self, offset: Array) -> "Nodes":
        """Return nodes whose Betas have logit means raised by an offset (nodes,).

        Atoms and sums of Beta parameters are unchanged.

        Examples
        --------
        >>> moved = Nodes.single(1.0, 1.0).moved(np.log([3.0]))
        >>> moved.alpha.round(12).tolist(), moved.beta.round(12).tolist()
        ([[1.5]], [[0.5]])
        """
        logit = np.log(self.alpha) - np.log(self.beta) + offset[:, None]
        total = self.alpha + self.beta
        alpha, beta = (
            np.maximum(expit(sign * logit) * total, _PARAMETER_FLOOR) for sign in (1.0, -1.0)
        )
        return replace(self, alpha=alpha, beta=beta)

    def cdf(self, p: Array) -> Array:
        """Cumulative distribution function at p (nodes or 1, points); (nodes, points).

        Examples
        --------
        >>> Nodes.single(1.0, 3.0).cdf(np.array([[0.5]])).tolist()  # 1 - 1/8
        [[0.875]]
        """
        total = self.atoms[:, :1] * (p >= 0.0) + self.atoms[:, 1:] * (p >= 1.0)
        for share, alpha, beta in self.components:
            a, b = alpha[:, None], beta[:, None]
            narrow = a + b > _POINT_LAW_SUM
            inside = betainc(np.where(narrow, 1.0, a), np.where(narrow, 1.0, b), p)
            total = total + share[:, None] * np.where(narrow, a <= p * (a + b), inside)
        return np.asarray(total)

    def overall(self) -> Array:
        r"""Mean m of p, 1 - m, intraclass correlation and its complement; (4, nodes).

        .. math:: \mathrm{icc} = \frac{\operatorname{Var}(p)}{m (1 - m)}.
        """
        total = self.alpha + self.beta
        mean, complement = self.alpha / total, self.beta / total
        share_at_0, share_at_1 = self.atoms.T
        mean_p = share_at_1 + (self.share * mean).sum(axis=1)
        complement_p = share_at_0 + (self.share * complement).sum(axis=1)
        within = (self.share * mean * complement * total / (1.0 + total)).sum(axis=1)
        difference = np.where(
            (mean_p < 0.5)[:, None], mean - mean_p[:, None], complement_p[:, None] - complement
        )
        between = self.share * (difference**2 + mean * complement / (1.0 + total))
        variance = between.sum(axis=1) + share_at_0 * mean_p**2 + share_at_1 * complement_p**2
        scale = np.maximum(mean_p * complement_p, _PARAMETER_FLOOR)
        return np.asarray(
            np.minimum(np.stack([mean_p, complement_p, variance / scale, within / scale]), 1.0)
        )

    def among(self, keep: slice | Indices) -> "Nodes":
        """Return some of the nodes, with their weights as they are."""
        rates = None if self.rates is None else self.rates[keep]
        parameters = self.alpha[keep], self.beta[keep], self.share[keep], self.atoms[keep]
        return Nodes(*parameters, self.weight[keep], rates)

    def log_parts(self, successes: NDArray[Any], failures: NDArray[Any]) -> Array:
        """Log joint probability of a component or atom and of a state's trials in their order.

        Returns
        -------
        ndarray, shape (components + 2, nodes, states)
            Summed over the first axis, its exponential is the likelihood of each node.

        Examples
        --------
        >>> logs = Nodes.single(1.0, 1.0).log_parts(np.array([1]), np.array([1]))
        >>> np.exp(logs).ravel().round(12).tolist()  # B(2, 2) / B(1, 1), and no atoms
        [0.166666666667, 0.0, 0.0]
        """
        with np.errstate(divide="ignore"):
            log_betas = [
                np.log(share)[:, None] + log_ordered(alpha, beta, successes, failures)
                for share, alpha, beta in self.components
            ]
            log_atoms = [
                np.where(contrary == 0, np.log(share)[:, None], -np.inf)
                for share, contrary in zip(self.atoms.T, (successes, failures), strict=True)
            ]
        return np.stack([*log_betas, *log_atoms])

    def log_likelihood(self, successes: NDArray[Any], failures: NDArray[Any]) -> Array:
        """Log probability of a state's trials in order, given each node; (nodes, states).

        Examples
        --------
        >>> Nodes.single(1.0, 1.0).log_likelihood(np.array([1]), np.array([1])).round(9).tolist()
        [[-1.791759469]]
        """
        betas = [
            log_ordered(alpha, beta, successes, failures) for _, alpha, beta in self.components
        ]
        if len(betas) == 1 and not self.atoms.any():
            return betas[0]
        with np.errstate(divide="ignore"):
            shares, atoms = np.log(self.share), np.log(self.atoms)
        total = betas[0] + shares[:, :1]
        for column, logs in enumerate(betas[1:], 1):
            logs += shares[:, column, None]
            total = _log_sum(total, logs)
        for column, contrary in enumerate((successes, failures)):
            uniform_states = np.flatnonzero(contrary == 0)
            if np.isfinite(atoms[:, column]).any():
                total[:, uniform_states] = _log_sum(
                    total[:, uniform_states], atoms[:, column, None]
                )
        return np.asarray(total)

    def __len__(self) -> int:
        return len(self.weight)


def _log_sum(first: Array, second: Array) -> Array:
    """Log of the sum of exponentials of two arrays, of which at least one is finite."""
    larger = np.maximum(first, second)
    return np.asarray(larger + np.log1p(np.exp(np.minimum(first, second) - larger)))


def log_ordered(
    alpha: Array, beta: Array, successes: NDArray[Any], failures: NDArray[Any]
) -> Array:
    r"""Log probability of trials in their order under Betas; shape (Betas, states).

    .. math:: \log \frac{(\alpha)_c (\beta)_f}{(\alpha + \beta)_{c + f}},

    with rising factorials of c successes and f failures.
    """
    logs = log_rising_factorial_table(alpha, successes)
    logs += log_rising_factorial_table(beta, failures)
    return np.asarray(logs - log_rising_factorial_table(alpha + beta, successes + failures))


def log_rising_factorial_table(base: Array, counts: NDArray[Any]) -> Array:
    """Log rising factorials of every base at every count; shape (*base.shape, counts).

    Each distinct count is computed once. Small whole counts take logarithms of products, at a
    tenth of the cost of log-gamma functions.

    Examples
    --------
    >>> logs = log_rising_factorial_table(np.array([0.5]), np.array([2, 0, 1]))
    >>> np.exp(logs).round(12).tolist()  # 0.5 * 1.5, 1, 0.5
    [[0.75, 1.0, 0.5]]
    """
    distinct, index = np.unique(counts, return_inverse=True)
    if distinct.max(initial=0) > _FACTORS_PER_PRODUCT * len(distinct) or (distinct % 1 != 0).any():
        return log_rising_factorial(base[..., None], distinct)[..., index]
    logs = np.empty((len(distinct), base.size))
    for start in range(0, base.size, _BASES_PER_BLOCK):
        chunk = slice(start, start + _BASES_PER_BLOCK)
        _log_products(base.ravel()[chunk], distinct, logs[:, chunk])
    return np.moveaxis(logs.reshape(-1, *base.shape)[index], 0, -1)


def _log_products(base: Array, counts: NDArray[Any], logs: Array) -> None:
    """Write log rising factorials at increasing counts into an array (counts, bases)."""
    product, log_earlier = np.ones(len(base)), np.zeros(len(base))
    row = 0
    for factors in range(int(counts[-1]) + 1):
        if factors:
            product *= base + (factors - 1)
        if factors == counts[row]:
            np.add(np.log(product), log_earlier, out=logs[row])
            row += 1
        if factors % _FACTORS_PER_PRODUCT == _FACTORS_PER_PRODUCT - 1:
            log_earlier += np.log(product)
            product[:] = 1.0
