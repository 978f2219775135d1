"""Distribution of a mean that keeps close to an end of its scale, whatever its order of magnitude.

Very many questions, nearly all of them right: how far their mean is from the end may be 1e-3 or
1e-30, given the hyperparameters it is a sum of few large terms and many that are all but nothing,
and no window fits it. Its Laplace transform is a product of the questions' own, without
cancellation, and is inverted at each distance on its own scale.
"""

from math import comb, factorial

import numpy as np

from bayesatk.core.compared import ComparedDistribution, compared
from bayesatk.core.credit import Array
from bayesatk.core.mixture import StateMixture

_ORDER = 12  # of the inversion; two less for comparison
_NEAREST = 1e-10  # distance from the end, in lengths of the scale
_START = 25  # distances to begin with
_DENSER = 4.0  # points of a rule to one for polynomials, which exp(-s g) is not
_NOTHING = 1e-17  # of the exponent: below rounding
_ALL = 1.0 - 1e-15  # of a transform lost, for its logarithm


def near_end_distribution(
    mixture: StateMixture, column: int, hopeless: float = np.inf
) -> ComparedDistribution:
    """Distribution of a column's mean by way of its distance from the nearer end of the scale.

    Parameters
    ----------
    mixture : StateMixture
        Nodes may lie as far apart as a rule for moments of the distance needs them.
    column : int
        Of a monotone credit.
    hopeless : float
        Error of the ends of a 95% interval with which the distribution is of no use.

    Returns
    -------
    ComparedDistribution
        Quantiles are good where probabilities change slowly with the logarithm of the distance.

    Notes
    -----
    The inversion is Gaver's (1966) with Stehfest's (1970) weights: real arguments only, which
    resolves a factor of about 1.3 in distance. The lesser one has two terms fewer.
    """
    vector = mixture.credits[column].vector
    low, high = float(vector.min()), float(vector.max())
    top = bool(mixture.moments.mean[column] > 0.5 * (low + high))
    weights, lesser = stehfest(_ORDER), np.append(stehfest(_ORDER - 2), [0.0, 0.0])
    index = np.arange(1.0, _ORDER + 1.0)
    least = _NEAREST * (high - low)

    def evaluate(x: Array) -> tuple[Array, Array, Array]:
        distance = np.maximum(high - x if top else x - low, least)
        phi = _laplace(mixture, column, top, np.outer(np.log(2.0) / distance, index))
        within, less = (phi / index) @ weights, (phi / index) @ lesser
        density = phi @ weights * (np.log(2.0) / distance)
        return (1.0 - within, density, 1.0 - less) if top else (within, density, less)

    distances = np.geomspace(least, high - low, _START)
    points = high - distances if top else low + distances
    return compared(evaluate, points, (low, high), "laplace", hopeless)


def stehfest(order: int) -> Array:
    """Weights ``V_k`` of ``f(t) ~ (log 2 / t) sum_k V_k F(k log 2 / t)``, k = 1 .. order (even).

    Examples
    --------
    >>> stehfest(4).tolist()
    [-2.0, 26.0, -48.0, 24.0]
    """
    half = order // 2
    weights = []
    for k in range(1, order + 1):
        terms = (
            j ** (half + 1) * comb(half, j) * comb(2 * j, j) * comb(j, k - j)
            for j in range((k + 1) // 2, min(k, half) + 1)
        )
        weights.append((-1) ** (k + half) * sum(terms) / factorial(half))
    return np.array(weights)


def _laplace(mixture: StateMixture, column: int, top: bool, s: Array) -> Array:
    """``E exp(-s D)`` of the distance D from an end; the shape of ``s``."""
    moments, count = mixture.moments, mixture.states.count
    flat = s.ravel()
    found = np.zeros(len(flat))
    vector = mixture.credits[column].vector
    for block in mixture.blocks([column], denser=_DENSER):
        distance = from_end(vector, block.value[:, 0], block.complement[:, 0], top)
        distance = np.maximum(distance, 0.0) / mixture.states.questions
        seen = distance * flat.max() > _NOTHING
        weights = block.weights[..., seen].reshape(-1, int(seen.sum()))
        lost = weights @ -np.expm1(-np.outer(distance[seen], flat))
        logs = np.log1p(-np.minimum(lost, _ALL)).reshape(len(block.nodes), len(count), -1)
        found += moments.weight[block.nodes] @ np.exp(np.einsum("gsf,s->gf", logs, count))
    narrow = mixture.concentrated
    if len(narrow):
        both = moments.node_mean[narrow, column], moments.node_complement[narrow, column]
        mean = from_end(vector, *both, top)
        scale = moments.node_variance[narrow, column] / mean
        shape = mean / scale  # of a gamma distribution with their mean and variance
        found += moments.weight[narrow] @ np.exp(-shape[:, None] * np.log1p(np.outer(scale, flat)))
    return found.reshape(s.shape)


def from_end(vector: Array, value: Array, complement: Array, top: bool) -> Array:
    """Distance of values of a credit from an end of its scale, without cancellation at 1.

    Examples
    --------
    >>> from_end(np.array([0.0, 1.0]), np.array([1.0]), np.array([1e-20]), top=True).tolist()
    [1e-20]
    """
    return np.asarray(complement - (1.0 - vector.max()) if top else value - vector.min())
