"""Credit vectors: the value of ``k`` trials of which ``j`` succeed.

Every at-k metric of right and wrong is the expectation of one vector ``x_0 .. x_k`` over the number
of successes ``j``, which is hypergeometric, binomial or Beta-binomial
(`bayesatk.core.question.expected_credit`). This module defines ``x``.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, gammaln

from bayesatk._tools.arrays import Array

Shape = Literal["threshold", "excess", "area", "general"]


@dataclass(frozen=True)
class Credit:
    """The value of ``k`` trials as a function of how many of them succeed.

    Built by `pass_at` and its siblings, or by `Credit.of` from any vector.

    Parameters
    ----------
    k : int
        Trials judged.
    shape : {"threshold", "excess", "area", "general"}
        The structure of the vector: a single step, a linear ramp after a threshold, the area
        under pass@1..pass@k, or any.
    threshold : int
        Successes needed for any credit (``threshold``), or successes that earn none (``excess``).
    custom : tuple of float
        The ``k + 1`` credits of a ``general`` vector.

    See Also
    --------
    CategoryCredit : for scored categories.
    Family : a metric made of it.

    Examples
    --------
    >>> pass_two = Credit.of([0, 1, 1])  # at least one of two trials succeeds
    >>> pass_two.k, pass_two.vector.tolist()
    (2, [0.0, 1.0, 1.0])
    """

    k: int
    shape: Shape
    threshold: int = 0
    custom: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Iterable[float]) -> "Credit":
        """Return the credit with these values for j = 0..k successes.

        Examples
        --------
        >>> Credit.of([0, 0.25, 1]).k
        2
        """
        custom = tuple(float(value) for value in values)
        if len(custom) < 2:
            raise ValueError(
                "values must have k + 1 >= 2 credits, for j = 0..k successes; "
                f"got {len(custom)}. A metric judges at least one trial."
            )
        if not all(0.0 <= value <= 1.0 for value in custom):
            raise ValueError(
                f"values must lie in [0, 1]; got {custom}. Rescale the credit to that range."
            )
        return cls(len(custom) - 1, "general", custom=custom)

    @property
    def values(self) -> tuple[float, ...]:
        """The credits for j = 0..k successes."""
        return tuple(self.vector.tolist())

    @property
    def vector(self) -> Array:
        """The credits as a fresh float array of length ``k + 1``."""
        k, j = self.k, np.arange(self.k + 1, dtype=float)
        if self.shape == "threshold":
            return np.asarray(j >= self.threshold, float)
        if self.shape == "excess":
            return np.asarray(np.maximum(0.0, j - self.threshold) * (2.0 / k))
        if self.shape == "area":
            missed = (k - j) * (1.0 / (j + 1.0) - 0.5 / k) / (k - 1)
            return np.where(j > 0, 1.0 - missed, 0.0)
        return np.array(self.custom)


def log_choose(n: ArrayLike, k: ArrayLike) -> Array:
    """Return log binomial coefficients, elementwise.

    Examples
    --------
    >>> np.exp(log_choose(4, [2, 4])).round(12).tolist()
    [6.0, 1.0]
    """
    n, k = np.asarray(n, float), np.asarray(k, float)
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def log_multinomial(counts: ArrayLike) -> Array:
    """Return log multinomial coefficients ``n! / prod_c n_c!``, shape (...).

    Parameters
    ----------
    counts : array_like, shape (..., categories)

    Examples
    --------
    >>> np.exp(log_multinomial([[2, 1], [0, 3]])).round(12).tolist()
    [3.0, 1.0]
    """
    counts = np.asarray(counts, float)
    return np.asarray(gammaln(counts.sum(axis=-1) + 1.0) - gammaln(counts + 1.0).sum(axis=-1))


@lru_cache(maxsize=512)
def log_binomials(n: int) -> Array:
    """Return ``log C(n, j)`` for j = 0..n, each the logarithm of an exact integer.

    Examples
    --------
    >>> np.exp(log_binomials(4)).round(12).tolist()
    [1.0, 4.0, 6.0, 4.0, 1.0]
    """
    if n > 2000:  # exact integers would be slow; gammaln has a relative error of 1e-11 here
        logs = log_choose(n, np.arange(n + 1))
    else:
        half = [math.log(math.comb(n, j)) for j in range(n // 2 + 1)]
        logs = np.array(half + half[::-1][1 - n % 2 :])
    logs.setflags(write=False)
    return logs


def binomial_expectation(credits: Array, log_p: ArrayLike, log_q: ArrayLike) -> tuple[Array, Array]:
    """Binomial expectation of credits with the same ``k``, and its complement.

    Parameters
    ----------
    credits : ndarray, shape (k + 1, m)
        Credit vectors as columns.
    log_p, log_q : array_like, shape (q,)
        ``log p`` and ``log (1 - p)``: two arguments, so that neither end loses digits.

    Returns
    -------
    value, complement : ndarray, shape (q, m)
        ``g(p) = sum_j x_j C(k, j) p^j (1-p)^(k-j)`` and ``1 - g(p)``, each a sum of non-negative
        terms with full relative accuracy.

    Examples
    --------
    >>> value, complement = binomial_expectation(
    ...     np.array([[0.0], [1.0], [1.0]]), np.log([0.5]), np.log([0.5]))
    >>> value.round(12).item(), complement.round(12).item()
    (0.75, 0.25)
    """
    k = len(credits) - 1
    j = np.arange(k + 1)
    log_p, log_q = np.asarray(log_p)[:, None], np.asarray(log_q)[:, None]
    pmf = np.exp(log_binomials(k) + j * log_p + (k - j) * log_q)
    return pmf @ credits, pmf @ (1.0 - credits)


def latent(credit: Credit, log_p: Array, log_q: Array) -> tuple[Array, Array]:
    """Latent value ``g(p)`` of a credit, and its complement; both have full relative accuracy.

    Parameters
    ----------
    credit : Credit
    log_p, log_q : ndarray, shape (points,)
        ``log p`` and ``log (1 - p)``, finite.
    """
    k, threshold = credit.k, credit.threshold
    if credit.shape != "threshold":
        value, complement = np.empty((2, len(log_p)))
        rows = max(1, 1_000_000 // (k + 1))  # temporaries of 8 MB
        for start in range(0, len(log_p), rows):
            block = slice(start, start + rows)
            pair = binomial_expectation(credit.vector[:, None], log_p[block], log_q[block])
            value[block], complement[block] = (column[:, 0] for column in pair)
        return value, complement
    if threshold == 1:
        return -np.expm1(k * log_q), np.exp(k * log_q)
    if threshold == k:
        return np.exp(k * log_p), -np.expm1(k * log_p)
    fewer = k - threshold + 1
    return betainc(threshold, fewer, np.exp(log_p)), betainc(fewer, threshold, np.exp(log_q))


def check_k(k: int) -> int:
    """Return ``k`` as an int, or say why it cannot be a number of trials.

    Examples
    --------
    >>> check_k(4)
    4
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise TypeError(f"k must be an integer >= 1; got {k!r} of type {type(k).__name__}.")
    if k < 1:
        raise ValueError(f"k must be an integer >= 1; got {k}. One trial is the fewest to judge.")
    return int(k)


def required_successes(k: int, tau: float) -> int:
    """Successes among ``k`` that G-Pass@k_tau asks for: ``max(1, ceil(tau k))``.

    The product is rounded up only when it exceeds an integer by more than rounding error, so that
    ``tau=0.07, k=100`` asks for 7 successes although ``0.07 * 100 > 7`` in floating point.

    Examples
    --------
    >>> required_successes(100, 0.07), required_successes(3, 0.5), required_successes(5, 0.0)
    (7, 2, 1)
    """
    if not 0.0 <= tau <= 1.0:
        raise ValueError(f"tau must lie in [0, 1]; got {tau}. It is the share of k that must pass.")
    product = tau * k
    nearest = round(product)
    exact = abs(product - nearest) <= 4 * np.finfo(float).eps * max(1.0, product)
    return max(1, nearest if exact else math.ceil(product))


def _step(k: int, threshold: int) -> Credit:
    return Credit(k, "threshold", threshold)


def pass_at(k: int) -> Credit:
    """Credit of pass@k: one when at least one of ``k`` trials succeeds [1]_.

    References
    ----------
    .. [1] Chen et al. 2021, arXiv:2107.03374, eq. 1.

    Examples
    --------
    >>> pass_at(2).values
    (0.0, 1.0, 1.0)
    """
    return _step(check_k(k), 1)


def pass_hat(k: int) -> Credit:
    """Credit of pass^k: one when all ``k`` trials succeed [1]_.

    References
    ----------
    .. [1] Yao et al. 2024, arXiv:2406.12045, section 4.

    Examples
    --------
    >>> pass_hat(2).values
    (0.0, 0.0, 1.0)
    """
    return _step(check_k(k), k)


def g_pass_at(k: int, tau: float) -> Credit:
    """Credit of G-Pass@k_tau: one when at least ``max(1, ceil(tau k))`` of ``k`` succeed [1]_.

    References
    ----------
    .. [1] Liu et al. 2025, Findings of ACL, paper 905.

    Examples
    --------
    >>> g_pass_at(4, 0.5).values
    (0.0, 0.0, 1.0, 1.0, 1.0)
    """
    return _step(check_k(k), required_successes(k, tau))


def maj_at(k: int) -> Credit:
    """Credit of strict-majority maj@k: one when more than half of ``k`` trials succeed.

    This is the binary proxy of a majority vote: a tie earns nothing, and wrong answers are taken
    to agree with each other.

    Examples
    --------
    >>> maj_at(3).values, maj_at(4).values
    ((0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.0, 1.0, 1.0))
    """
    return _step(check_k(k), k // 2 + 1)


def mg_pass_at(k: int) -> Credit:
    """Credit of mG-Pass@k: ``(2/k) max(0, j - ceil(k/2))``, the published discrete sum [1]_.

    For odd ``k`` the sum is not the exact integral of G-Pass over tau in [1/2, 1].

    References
    ----------
    .. [1] Liu et al. 2025, Findings of ACL, paper 905.

    Examples
    --------
    >>> mg_pass_at(4).values
    (0.0, 0.0, 0.0, 0.5, 1.0)
    """
    k = check_k(k)
    return Credit(k, "excess", (k + 1) // 2)


def auc_at(k: int) -> Credit:
    """Credit of AUC@k: trapezoid area under pass@1 .. pass@k, divided by ``k - 1`` [1]_.

    Given ``j`` successes among ``k`` trials, a random subset of ``i`` of them passes with
    probability ``1 - C(k-j, i)/C(k, i)``; the trapezoid sum of those has the closed form used
    here. AUC@1 is pass@1.

    References
    ----------
    .. [1] Hu et al. 2026, arXiv:2601.08763.

    Examples
    --------
    >>> auc_at(2).values
    (0.0, 0.75, 1.0)
    """
    k = check_k(k)
    return pass_at(1) if k == 1 else Credit(k, "area")
