"""Posteriors of a few parameters by adaptive importance sampling, without derivatives.

Points from the prior are weighted by a small power of the likelihood, a mixture of Student t
kernels is fitted to them, points are drawn from that mixture and weighted by a larger power, until
the power is one (tempering: Del Moral, Doucet and Jasra 2006; mixtures: Cappe et al. 2004). Points
are a low-discrepancy (Halton) sequence instead of random numbers, which about halves the errors of
probabilities. The last weighted points are the posterior; the mean of the unnormalised weights is
the evidence. Weights are trusted if the shape of the tail of the largest, Pareto's k-hat, is below
0.7 (Vehtari et al. 2024).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import gammaincinv, gammaln, logsumexp, ndtri

from bayesatk._tools.arrays import Array, Indices
from bayesatk.core.numerics.weights import at_equal_steps, normalised, pareto_shape

POINTS_PER_ROUND = 1024  # of every tempering round
FINAL_POINTS = 4096  # of the posterior, before doubling
_MIN_EFFECTIVE_SHARE = 0.1  # effective draws over points of a round
_MAX_KERNELS = 24  # of a mixture, without the defensive one
_SINGLE_KERNEL_DIMENSION = 6  # so many parameters get a single kernel,
_SEVERAL_KERNELS_POINTS = 4096  # unless there are at least so many points
_EM_STEPS = 3  # iterations of expectation and maximisation
_DEFENSIVE_SHARE = 0.1  # of a wide kernel that bounds the weights of points in the tails
_DEFENSIVE_SCALE = 1.5  # its scale over that of all points
_SCALE_PRIOR_POINTS = 10.0  # weight of the prior scale of a kernel, in points
_DEGREES_OF_FREEDOM = 6  # degrees of freedom of kernels
_RIDGE = 1e-8  # added to the variance of standardised parameters
K_HAT_MAX = 0.7  # Pareto k-hat below which weights are trusted
_EVEN_WEIGHT_MAX = 5.0  # over the mean weight: below it no tail is heavy
_MIN_POWER_GROWTH = (1.02, 1.25)  # factor of the power in a round: of few points, of many
_LOG_DENSITY_FLOOR = -1e10  # replaces minus infinity
TAIL_SHARE = 0.1  # of a kernel where a statistic has its variance
_TAIL_SCALE = 1.3  # its scale over that of the points with these weights
_DENSITY_FLOOR = 1e-300  # of a mixture, whose logarithm is a number
_MAX_ROUNDS = 60  # of tempering

Tail = Callable[[Array, Array], Array]  # of points (points, parameters) and weights: factors


@dataclass(frozen=True)
class ImportanceSample:
    """Weighted points of a posterior.

    Parameters
    ----------
    points : ndarray, shape (points, parameters)
    weight : ndarray, shape (points,)
        Sums to one.
    log_evidence, log_evidence_error : float
        Log of the normaliser, and its standard error.
    k_hat : float
        Pareto shape of the largest weights; at most 0 where these are hardly larger than the mean.
    """

    points: Array
    weight: Array
    log_evidence: float
    log_evidence_error: float
    k_hat: float

    @property
    def effective_draws(self) -> float:
        """Effective number of independent draws."""
        return 1.0 / float(self.weight @ self.weight)

    def trusted(self, draws: float) -> bool:
        """Whether the weights can be trusted and are worth more than so many draws."""
        return self.k_hat < K_HAT_MAX and self.effective_draws > draws


def adaptive_importance_sampling(
    from_uniform: Callable[[Array], Array],
    log_base: Callable[[Array], Array],
    log_density: Callable[[Array], Array],
    size: int,
    enough: Callable[[ImportanceSample], bool],
    final_points: int = FINAL_POINTS,
    final_points_max: int = 4 * FINAL_POINTS,
    points_per_round: int = POINTS_PER_ROUND,
    tail: Tail | None = None,
) -> ImportanceSample:
    """Weighted points of the posterior of unconstrained parameters.

    Parameters
    ----------
    from_uniform : callable
        Maps uniform numbers (points, parameters) to draws from a base density, such as the prior.
    log_base, log_density : callable
        Functions of points (points, parameters): log density of the base, and finite log of prior
        times likelihood.
    size : int
        Number of parameters.
    enough : callable
        Whether an `ImportanceSample` needs no more points.
    final_points, final_points_max : int
        Number of points of the posterior, which is doubled until there are enough, and its largest
        value.
    points_per_round : int
        Points of a tempering round; many of them allow several kernels in many dimensions.
    tail : callable, optional
        Of the final rounds, as `StudentMixture.with_tail` takes it.

    Returns
    -------
    ImportanceSample
        The first that is enough, or the one with the most effective draws.

    Examples
    --------
    >>> normal = lambda x: -0.5 * (x**2).sum(axis=1) - 0.5 * np.log(2.0 * np.pi)
    >>> log_density = lambda x: normal(x) - 0.5 * (x[:, 0] - 1.0) ** 2
    >>> sample = adaptive_importance_sampling(
    ...     ndtri, normal, log_density, 1, lambda sample: sample.trusted(1000.0)
    ... )
    >>> round(float(sample.weight @ sample.points[:, 0]), 2)  # normal of mean 1/2 and variance 1/2
    0.5
    >>> round(sample.log_evidence, 2)  # -log(2)/2 - 1/4
    -0.6
    """
    points = from_uniform(halton_sequence(points_per_round, size))
    log_proposal, power = log_base(points), 0.0
    for _ in range(_MAX_ROUNDS):
        base = np.maximum(log_base(points), _LOG_DENSITY_FLOOR)
        likelihood, excess = log_density(points) - base, base - log_proposal
        power = _next_power(likelihood, excess, power)
        tempered = excess + power * likelihood
        if power == 1.0:
            break
        kernels = StudentMixture.fit(points, normalised(tempered), points_per_round)
        points = kernels.draw(points_per_round)
        log_proposal = kernels.log_density(points)
    sample = best = _weighted(points, tempered)
    number = final_points
    while not enough(sample) and number <= final_points_max:
        kernels = StudentMixture.with_tail(sample.points, sample.weight, points_per_round, tail)
        points = kernels.draw(number)
        sample = _weighted(points, log_density(points) - kernels.log_density(points))
        if enough(sample) or sample.effective_draws > best.effective_draws:
            best = sample
        number *= 2
    return best


def multiple_importance_sampling(
    base: "BlockwiseMixture",
    log_density: Callable[[Array], Array],
    enough: Callable[[ImportanceSample], bool],
    points_per_round: int,
    points_max: int,
) -> ImportanceSample:
    """Weighted points of a posterior from all rounds of adaptive multiple importance sampling.

    The proposal density is the mixture of those of all rounds (balance heuristic: Veach and Guibas
    1995; adaptive: Cornuet et al. 2012), so that a later round cannot lose what an earlier one
    covers, and no draw is thrown away.

    Parameters
    ----------
    base : BlockwiseMixture
        Proposal of the first round: near the posterior, and wider.
    log_density : callable
        Log of prior times likelihood at points (points, parameters).
    enough : callable
        Whether an `ImportanceSample` needs no more rounds.
    points_per_round : int
    points_max : int
        Largest number of points of all rounds together.

    Examples
    --------
    >>> kernel = StudentMixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> base = BlockwiseMixture([np.arange(1)], [kernel])
    >>> normal = lambda x: -0.5 * (x[:, 0] - 1.0) ** 2
    >>> sample = multiple_importance_sampling(base, normal, lambda _: False, 1024, 2048)
    >>> round(float(sample.weight @ sample.points[:, 0]), 2), round(sample.log_evidence, 2)
    (1.0, 0.92)
    """
    proposals, power = [base], 0.0
    points, target = base.draw(0), np.zeros(0)
    log_proposals: list[Array] = []
    while True:
        new = proposals[-1].draw(points_per_round, len(points))
        points = np.concatenate([points, new])
        target = np.concatenate([target, log_density(new)])
        log_proposals = [
            np.concatenate([earlier, proposal.log_density(new)])
            for earlier, proposal in zip(log_proposals, proposals, strict=False)
        ]
        log_proposals.append(proposals[-1].log_density(points))
        log_proposal = logsumexp(log_proposals, axis=0) - np.log(len(proposals))
        sample = _weighted(points, target - log_proposal)
        if enough(sample) or len(points) >= points_max:
            return sample
        likelihood, excess = target - log_proposals[0], log_proposals[0] - log_proposal
        power = _next_power(likelihood, excess, power)
        weight = normalised(excess + power * likelihood)
        proposals.append(BlockwiseMixture.fit(points, weight, points_per_round, base.blocks))


def refined_if_needed(
    sample: ImportanceSample,
    log_density: Callable[[Array], Array],
    enough: Callable[[ImportanceSample], bool],
    tail: Tail | None = None,
) -> ImportanceSample:
    """Return the sample, or where it is not enough one of more rounds that begin with it."""
    if enough(sample):
        return sample
    kernels = StudentMixture.with_tail(sample.points, sample.weight, FINAL_POINTS, tail)
    base = BlockwiseMixture([np.arange(sample.points.shape[1])], [kernels])
    return multiple_importance_sampling(base, log_density, enough, FINAL_POINTS, 8 * FINAL_POINTS)


def _weighted(points: Array, logs: Array) -> ImportanceSample:
    """Return points with normalised weights, from the logs of the unnormalised ones."""
    weight = normalised(logs)
    k_hat = pareto_shape(weight)
    if weight.max() * len(weight) < _EVEN_WEIGHT_MAX:
        # The shape is that of the excess over a threshold, whatever its scale: where 1.4 means were
        # the threshold and 3.2 the largest weight, it was .9 with 87% effective draws.
        k_hat = min(k_hat, 0.0)
    return ImportanceSample(
        points,
        weight,
        float(logsumexp(logs) - np.log(len(logs))),
        float(np.sqrt(max(float(weight @ weight) - 1.0 / len(weight), 0.0))),
        k_hat,
    )


def _next_power(likelihood: Array, excess: Array, power: float) -> float:
    """Largest power, up to one, with at least `_MIN_EFFECTIVE_SHARE` effective draws per point."""

    def effective_draws_at(exponent: float) -> float:
        weight = normalised(excess + exponent * likelihood)
        return 1.0 / float(weight @ weight)

    enough = _MIN_EFFECTIVE_SHARE * len(likelihood)
    if effective_draws_at(1.0) >= enough:
        return 1.0
    low, high = power, 1.0
    for _ in range(40):
        middle = float(np.sqrt(max(low, 1e-9) * high))
        low, high = (middle, high) if effective_draws_at(middle) >= enough else (low, middle)
    growth = _MIN_POWER_GROWTH[len(likelihood) >= _SEVERAL_KERNELS_POINTS]
    return max(low, min(1.0, growth * power + 1e-6))


@dataclass(frozen=True)
class StudentMixture:
    """Mixture of multivariate Student t kernels.

    Parameters
    ----------
    share : ndarray, shape (kernels,)
    centre : ndarray, shape (kernels, parameters)
    root : ndarray, shape (kernels, parameters, parameters)
        Lower triangular Cholesky factors of the scale matrices.
    """

    share: Array
    centre: Array
    root: Array

    @classmethod
    def fit(cls, points: Array, weight: Array, number_of_points: int) -> "StudentMixture":
        """Fit a mixture to weighted points by a few iterations of expectation and maximisation.

        It starts with equal kernels at points along the longest axis. Every scale matrix is shrunk
        towards the overall one, so that no kernel collapses, and a wide kernel is added.
        """
        size = points.shape[1]
        number = (
            _MAX_KERNELS
            if size < _SINGLE_KERNEL_DIMENSION or number_of_points >= _SEVERAL_KERNELS_POINTS
            else 1
        )
        # As many equal draws as a round has are informative enough, most of few distinct points.
        distinct, times = np.unique(at_equal_steps(weight, number_of_points), return_counts=True)
        points, share = points[distinct], times / number_of_points
        # Standardised: raw products would cancel where points are far from 0 but close together.
        centre = share @ points
        unit = np.sqrt(share @ (points - centre) ** 2 + 1e-10)
        z = (points - centre) / unit
        overall = (z.T * share) @ z + _RIDGE * np.eye(size)
        longest = np.linalg.eigh(overall * unit * unit[:, None])[1][:, -1]
        # An eigenvector has either sign, by rounding, and with it the order of the kernels.
        longest *= np.sign(longest[np.abs(longest).argmax()])
        order = np.argsort((unit * z) @ longest)
        starts = order[at_equal_steps(share[order], number)]
        width = (4.0 / ((size + 2.0) * number)) ** (1.0 / (size + 4.0))
        root = np.tile(width * np.linalg.cholesky(overall), (number, 1, 1))
        mixture = cls(np.full(number, 1.0 / number), z[starts], root)
        products = (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)
        for _ in range(_EM_STEPS):
            responsibility = mixture._densities(z)
            responsibility *= times / responsibility.sum(axis=0)
            total = responsibility.sum(axis=1)
            inverse = 1.0 / np.maximum(total, 1e-9)
            mean = inverse[:, None] * (responsibility @ z)
            covariance = (inverse[:, None] * (responsibility @ products)).reshape(-1, size, size)
            covariance -= mean[:, :, None] * mean[:, None, :]
            prior_share = _SCALE_PRIOR_POINTS / (_SCALE_PRIOR_POINTS + total)[:, None, None]
            root = np.linalg.cholesky(
                (1.0 - prior_share) * covariance + (prior_share * width**2 + 1e-4) * overall
            )
            mixture = cls((total + 1.0) / (total + 1.0).sum(), mean, root)
        defensive_root = _DEFENSIVE_SCALE * np.linalg.cholesky(overall)
        return cls(
            np.append((1.0 - _DEFENSIVE_SHARE) * mixture.share, _DEFENSIVE_SHARE),
            centre + unit * np.concatenate([mixture.centre, np.zeros((1, size))]),
            unit[:, None] * np.concatenate([mixture.root, defensive_root[None]]),
        )

    @classmethod
    def with_tail(
        cls, points: Array, weight: Array, number_of_points: int, tail: Tail | None
    ) -> "StudentMixture":
        """Fit a mixture and one wide kernel, where a statistic has its variance.

        Parameters
        ----------
        points, weight, number_of_points
            As of `fit`.
        tail : callable, optional
            Factors of the weights in the fit of the wide kernel, which has the share `TAIL_SHARE`;
            None: there is none.
        """
        kernels = cls.fit(points, weight, number_of_points)
        if tail is None:
            return kernels
        share = weight * tail(points, weight)
        share /= share.sum()
        centre = share @ points
        covariance = ((points - centre).T * share) @ (points - centre)
        root = _TAIL_SCALE * np.linalg.cholesky(covariance + _RIDGE * np.eye(len(centre)))
        return cls(
            np.append((1.0 - TAIL_SHARE) * kernels.share, TAIL_SHARE),
            np.concatenate([kernels.centre, centre[None]]),
            np.concatenate([kernels.root, root[None]]),
        )

    def draw(self, number: int, skipped: int = 0) -> Array:
        """Low-discrepancy points of the mixture, after `skipped` earlier ones."""
        u_kernel, variates = _halton_variates(number, self.centre.shape[1], skipped)
        cumulative = np.cumsum(self.share)
        kernel_of = np.minimum(
            np.searchsorted(cumulative, u_kernel * cumulative[-1]), len(cumulative) - 1
        )
        points: Array = self.centre[kernel_of]
        if len(self.root) > 2:  # few parameters: one product for all points is fast
            return np.asarray(points + np.einsum("nij,nj->ni", self.root[kernel_of], variates))
        for kernel, root in enumerate(self.root):
            members = np.flatnonzero(kernel_of == kernel)
            points[members] += variates[members] @ root.T
        return points

    def log_density(self, points: Array) -> Array:
        """Log density of the mixture."""
        density = self._densities(points).sum(axis=0)
        return np.asarray(np.log(np.maximum(density, _DENSITY_FLOOR)) + self._log_scale)

    @cached_property
    def _log_scale(self) -> float:
        """Largest of the logs of the kernels' densities at their centres, shares included."""
        return float(self._log_peaks.max())

    @cached_property
    def _log_peaks(self) -> Array:
        """Log of share times density of every kernel at its centre; shape (kernels,)."""
        size = self.centre.shape[1]
        volume = np.log(np.diagonal(self.root, axis1=1, axis2=2)).sum(axis=1)
        constant = gammaln((_DEGREES_OF_FREEDOM + size) / 2.0) - gammaln(_DEGREES_OF_FREEDOM / 2.0)
        constant -= 0.5 * size * np.log(_DEGREES_OF_FREEDOM * np.pi)
        return np.asarray(np.log(self.share) + constant - volume)

    def _densities(self, points: Array) -> Array:
        """Share times density of every kernel, over the largest at a centre; (kernels, points).

        Tails of Student kernels are powers, so that none of these numbers vanishes.
        """
        size = self.centre.shape[1]
        inverse = np.linalg.inv(self.root)
        standardised_centre = np.einsum("kij,kj->ik", inverse, self.centre)
        # Points are the last axis, as there are more of them than of kernels and parameters.
        standardised = inverse.swapaxes(0, 1).reshape(-1, size) @ points.T
        standardised -= standardised_centre.reshape(-1, 1)
        standardised *= standardised
        squares = standardised.reshape(size, -1, len(points)).sum(axis=0)
        base = 1.0 / (1.0 + squares / _DEGREES_OF_FREEDOM)
        # The power is whole or half, and products and a root are several times as fast as `**`.
        whole_power, half = divmod(_DEGREES_OF_FREEDOM + size, 2)
        density = np.exp(self._log_peaks - self._log_scale)[:, None] * base
        if half:
            density *= np.sqrt(base)
        for _ in range(whole_power - 1):
            density *= base
        return np.asarray(density)


@dataclass(frozen=True)
class BlockwiseMixture:
    """Mixtures of Student t kernels of blocks of parameters, independent of each other.

    Parameters
    ----------
    blocks : sequence of ndarray of int
        Parameters of each block.
    kernels : sequence of StudentMixture
    """

    blocks: Sequence[Indices]
    kernels: Sequence[StudentMixture]

    @classmethod
    def fit(
        cls, points: Array, weight: Array, number_of_points: int, blocks: Sequence[Indices]
    ) -> "BlockwiseMixture":
        """Fit the mixture of every block to weighted points."""
        kernels = [
            StudentMixture.fit(points[:, block], weight, number_of_points) for block in blocks
        ]
        return cls(blocks, kernels)

    def draw(self, number: int, skipped: int = 0) -> Array:
        """Low-discrepancy points of every block, paired at random between blocks."""
        points = np.empty((number, sum(len(block) for block in self.blocks)))
        rng, order = np.random.default_rng(skipped), np.arange(number)
        for block, kernels in zip(self.blocks, self.kernels, strict=True):
            points[:, block] = kernels.draw(number, skipped)[order]
            order = rng.permutation(number)
        return points

    def log_density(self, points: Array) -> Array:
        """Log density of the product."""
        pairs = zip(self.blocks, self.kernels, strict=True)
        return np.asarray(sum(kernels.log_density(points[:, block]) for block, kernels in pairs))


@lru_cache(maxsize=16)
def _halton_variates(number: int, size: int, skipped: int = 0) -> tuple[Array, Array]:
    """Uniform numbers and Student t variates of `size` dimensions from one Halton sequence."""
    u = halton_sequence(skipped + number, size + 2)[skipped:]
    scale = np.sqrt(_DEGREES_OF_FREEDOM / (2.0 * gammaincinv(_DEGREES_OF_FREEDOM / 2.0, u[:, 1])))
    return u[:, 0], scale[:, None] * ndtri(u[:, 2:])


def halton_sequence(number: int, size: int) -> Array:
    """Randomised Halton sequence in the unit cube, with a fixed seed; shape (number, size).

    Every initial segment has low discrepancy too. Digits are permuted (Owen 2017,
    arXiv:1706.02808), and those that do not separate two points are replaced by uniform noise.

    Examples
    --------
    >>> bool(abs(halton_sequence(1000, 3).mean(axis=0) - 0.5).max() < 0.003)
    True
    """
    rng = np.random.default_rng(0)
    u = np.empty((number, size))
    for column, base in enumerate(_first_primes(size)):
        value, scale = np.zeros(1), 1.0
        while len(value) < number:  # prepend one more digit
            scale /= base
            digits = rng.permutation(base)[: -(-number // len(value))]
            value = (value + scale * digits[:, None]).ravel()
        u[:, column] = value[:number] + scale * rng.random(number)
    return np.clip(u, 1e-12, 1.0 - 1e-12)


def _first_primes(number: int) -> list[int]:
    primes: list[int] = []
    candidate = 2
    while len(primes) < number:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return primes
