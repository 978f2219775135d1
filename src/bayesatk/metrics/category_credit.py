"""Category credit: the value of ``k`` trials as a function of their scored categories."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from bayesatk._tools.arrays import Array, Indices, Ints
from bayesatk._tools.messages import ArgumentError
from bayesatk.metrics.credit import check_k, log_multinomial

MAX_REACHED_SCORES = 20  # scores whose probability of being reached is reported

ValueFunction = Callable[[Ints, Array], Array]


@dataclass(frozen=True)
class CategoryCredit:
    """The value of ``k`` trials as a function of how many fall in each category.

    Parameters
    ----------
    k : int
        Number of trials that the metric judges.
    value : callable, optional
        ``value(counts, scores)`` returns one number for each row of ``counts``, an array of shape
        (compositions, categories) whose rows sum to ``k``. Default: the highest score among the
        ``k`` trials, which has closed forms.
    lowest : bool
        The lowest score in place of the highest; `value` is then left out.

    See Also
    --------
    Credit : for right and wrong.
    Family : a metric made of it.

    Examples
    --------
    The range of two scores; on three equally likely categories scored 0, 1, 3:

    >>> def spread(counts, scores):
    ...     seen = np.where(counts > 0, scores, np.nan)
    ...     return np.nanmax(seen, axis=1) - np.nanmin(seen, axis=1)
    >>> p = np.full((1, 3), 1 / 3)
    >>> CategoryCredit(2, spread).latent(p, [0, 1, 3]).round(12).item()  # 2(1 + 2 + 3)/9
    1.333333333333

    It is the highest less the lowest of two:

    >>> CategoryCredit(2).latent(p, [0, 1, 3]).round(12).item()  # (0 + 3 * 1 + 5 * 3)/9
    2.0
    >>> CategoryCredit(2, lowest=True).latent(p, [0, 1, 3]).round(12).item()  # (3 * 1 + 3)/9
    0.666666666667
    """

    k: int
    value: ValueFunction | None = None
    lowest: bool = False

    def __post_init__(self) -> None:
        check_k(self.k)
        if self.lowest and self.value is not None:
            raise ValueError(
                "lowest must be left out with a value function, which has values of its own; got "
                f"lowest={self.lowest!r}. Leave one of them out."
            )

    def values(self, scores: ArrayLike) -> tuple[Ints, Array]:
        """Compositions of k, and the value of each."""
        scores = np.asarray(scores, float)
        counts = compositions(self.k, len(scores))
        if self.lowest:
            return counts, np.where(counts > 0, scores, np.inf).min(axis=1)
        if self.value is None:
            return counts, np.where(counts > 0, scores, -np.inf).max(axis=1)
        values = np.asarray(self.value(counts, scores), float)
        if values.shape != counts.shape[:1] or not np.isfinite(values).all():
            raise ValueError(
                "value must return one finite number for each composition, shape "
                f"{counts.shape[:1]}; got shape {values.shape}. It is called with counts "
                "(compositions, categories) and scores (categories,)."
            )
        return counts, values

    @np.errstate(under="ignore")
    def latent(self, p: ArrayLike, scores: ArrayLike) -> Array:
        """Return the expected value of ``k`` fresh trials at known probabilities.

        Parameters
        ----------
        p : array_like, shape (..., categories)
            Category probabilities; each row sums to one.
        scores : array_like, shape (categories,)
            Score of each category.

        Returns
        -------
        ndarray, shape (...)

        Examples
        --------
        >>> CategoryCredit(2).latent([0.5, 0.25, 0.25], [0.0, 0.5, 1.0]).round(12).item()
        0.59375
        """
        p, scores = np.asarray(p, float), np.asarray(scores, float)
        if self.value is None and self.k == 1:
            lowest = scores.min()
            return np.asarray(lowest + p @ (scores - lowest))
        if self.lowest:
            return -CategoryCredit(self.k).latent(p, -scores)
        if self.value is None:
            scale, of_scores = by_score(scores, p)
            at_most = np.minimum(np.cumsum(of_scores, axis=-1)[..., :-1], 1.0)
            return _expected_highest(scale, _integer_power(at_most, self.k))
        return self._expected(scores, lambda drawn: xlogy(drawn, p[..., None, :]).sum(axis=-1))

    @np.errstate(under="ignore")
    def predictive(self, alpha: ArrayLike, scores: ArrayLike) -> Array:
        """Return the expected value of ``k`` fresh trials when ``p ~ Dirichlet(alpha)``.

        Parameters
        ----------
        alpha : array_like, shape (..., categories)
            Dirichlet parameters, > 0.
        scores : array_like, shape (categories,)
            Score of each category.

        Returns
        -------
        ndarray, shape (...)
            For the highest score, from ``E F_c^k``, where ``F_c`` is the probability of a score up
            to that of category c. The lowest is minus the highest of the scores with the other
            sign.

        Examples
        --------
        >>> CategoryCredit(1).predictive([1.0, 1.0, 2.0], [0.0, 0.5, 1.0]).round(12).item()
        0.625
        """
        alpha, scores = np.asarray(alpha, float), np.asarray(scores, float)
        if self.lowest:
            return -CategoryCredit(self.k).predictive(alpha, -scores)
        if self.value is None:
            scale, of_scores = by_score(scores, alpha)
            at_most = np.cumsum(of_scores, axis=-1)[..., :-1]
            above = np.cumsum(of_scores[..., :0:-1], axis=-1)[..., ::-1]
            log_missed = log_beta_moment(at_most, above, self.k)
            return np.asarray(scale[0] - np.expm1(log_missed) @ np.diff(scale))
        parameters, total = alpha[..., None, :], alpha.sum(axis=-1)[..., None]

        def log_sequence_probability(drawn: Ints) -> Array:
            numerator = (gammaln(parameters + drawn) - gammaln(parameters)).sum(axis=-1)
            return np.asarray(numerator - gammaln(total + self.k) + gammaln(total))

        return self._expected(scores, log_sequence_probability)

    def _expected(self, scores: Array, log_sequence_probability: Callable[[Ints], Array]) -> Array:
        """Return the expected value from log probabilities of one sequence of each composition."""
        drawn, values = self.values(scores)
        orders = log_multinomial(drawn)
        return np.asarray(
            values[0] + np.exp(orders + log_sequence_probability(drawn)) @ (values - values[0])
        )


def log_beta_moment(below: Array, above: Array, k: int) -> Array:
    """Log of the k-th moment of a Beta, ``E F^k``, ``F ~ Beta(below, above)``.

    ``E F^k = prod_i (below + i) / (below + above + i)``, i = 0..k-1; neither it nor its complement
    loses digits.

    Examples
    --------
    >>> np.exp(log_beta_moment(np.array([2.0]), np.array([1.0]), 2)).round(12).item()  # 2/3 * 3/4
    0.5
    """
    total, logs = below + above, np.zeros(below.shape)
    for i in range(k):
        share = above / (total + i)
        log_complement = np.log1p(-np.minimum(share, 0.5))
        logs += np.where(
            share < 0.5, log_complement, np.log(np.maximum(below + i, 1e-300) / (total + i))
        )
    return logs


def by_score(scores: Array, values: Array) -> tuple[Array, Array]:
    """Return the distinct scores, ascending, and what values (..., categories) add up to at each.

    Examples
    --------
    >>> scale, total = by_score(np.array([1.0, 0.0, 1.0]), np.array([0.5, 0.25, 0.25]))
    >>> scale.tolist(), total.tolist()
    ([0.0, 1.0], [0.25, 0.75])
    """
    scale, score_index = np.unique(scores, return_inverse=True)
    if np.array_equal(scale, scores):
        return scale, values
    if len(scale) == len(scores):
        return scale, values[..., np.argsort(scores)]
    return scale, values @ (score_index[:, None] == np.arange(len(scale))).astype(values.dtype)


def _expected_highest(ascending: Array, missed: Array) -> Array:
    """Return the expected highest score, from the probability that no draw exceeds each lower one.

    A sum of steps above the lowest score, so that equal scores give that score exactly.
    """
    return np.asarray(ascending[0] + (1.0 - missed) @ np.diff(ascending))


def reachable(scores: ArrayLike) -> Indices:
    """Positions of the categories whose score may be missed: those above the lowest score.

    Of more than 20, 20 at equal distances in the order of scores.

    Examples
    --------
    >>> reachable([0.5, 0.0, 1.0]).tolist()
    [0, 2]
    >>> reachable(np.arange(101.0)).tolist()[:3]
    [1, 6, 11]
    """
    scores = np.asarray(scores, float)
    above = np.flatnonzero(scores > scores.min())
    if len(above) <= MAX_REACHED_SCORES:
        return above
    order = above[np.argsort(scores[above], kind="stable")]
    return np.sort(order[np.linspace(0, len(order) - 1, MAX_REACHED_SCORES).astype(np.intp)])


@dataclass(frozen=True)
class ScoredCredit:
    """A credit on categories with the score of each."""

    credit: CategoryCredit
    scores: Array

    @property
    def k(self) -> int:
        """Number of trials that the metric judges."""
        return self.credit.k

    def latent(self, p: Array) -> Array:
        """Return the expected value at category probabilities of shape (..., categories)."""
        return self.credit.latent(p, self.scores)

    def predictive(self, alpha: Array) -> Array:
        """Return the expected value when p ~ Dirichlet(alpha), alpha of shape (..., categories)."""
        return self.credit.predictive(alpha, self.scores)


def _integer_power(x: Array, k: int) -> Array:
    """Return ``x**k`` by repeated squaring, several times as fast as NumPy's power.

    Examples
    --------
    >>> _integer_power(np.array([2.0, 3.0]), 5).tolist()
    [32.0, 243.0]
    """
    product: Array | None = None
    while True:
        if k % 2:
            product = x if product is None else product * x
        k //= 2
        if not k:
            assert product is not None  # the last k is 1
            return product
        x = x * x


def latent_values(metrics: Sequence[ScoredCredit], p: Array) -> Array:
    """Return the expected values at probabilities (..., categories); shape (..., metrics).

    Examples
    --------
    >>> scores = np.array([0.0, 1.0])
    >>> both = [ScoredCredit(CategoryCredit(k), scores) for k in (1, 2)]
    >>> latent_values(both, np.array([[0.5, 0.5]])).tolist()
    [[0.5, 0.75]]
    """
    values = np.empty((*p.shape[:-1], len(metrics)))
    credits = [metric.credit for metric in metrics]
    linear = [i for i, credit in enumerate(credits) if credit.k == 1 and credit.value is None]
    if linear:  # means of scores: one matrix product for all of them
        scores = np.stack([metrics[i].scores for i in linear], axis=1)
        lowest = scores.min(axis=0)
        values[..., linear] = lowest + p @ (scores - lowest)
    for i in sorted(set(range(len(metrics))).difference(linear)):
        values[..., i] = metrics[i].latent(p)
    return values


def reaching(scores: Array) -> list[ScoredCredit]:
    """Return credits whose values are the probabilities that a trial reaches each higher score."""
    above = scores[reachable(scores)]
    return [ScoredCredit(CategoryCredit(1), (scores >= score).astype(float)) for score in above]


@lru_cache(maxsize=64)
def compositions(k: int, categories: int) -> Ints:
    """All ways to spread k trials over the categories; shape (compositions, categories).

    Examples
    --------
    >>> compositions(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    size = comb(check_k(k) + categories - 1, categories - 1)
    compositions_max = 20_000
    if size > compositions_max:
        raise ArgumentError(
            "k",
            f" must leave at most {compositions_max} compositions over {categories} categories "
            f"for a metric with its own value function; got k={k} with {size}. Lower k, or merge "
            "categories. The highest and the lowest of k have no such limit.",
        )
    bars = np.array(list(combinations(range(k + categories - 1), categories - 1)), np.int64)
    bars = bars.reshape(size, categories - 1)
    edges = np.concatenate(
        [np.full((size, 1), -1), bars, np.full((size, 1), k + categories - 1)], axis=1
    )
    counts = np.asarray(np.diff(edges, axis=1) - 1)
    counts.setflags(write=False)
    return counts
