"""Independent draws of metrics from closed-form posteriors."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.credit import Array
from bayesatk.core.mixture import StateMixture
from bayesatk.core.nodes import Nodes
from bayesatk.core.states import States
from bayesatk.metrics import Metric

EVALUATIONS = 1e7  # of g(p): beyond these, sums over questions are drawn as sums
_CHUNK = 2_000_000  # probabilities drawn at once: 16 MB
_SMALLEST = np.nextafter(0.0, 1.0)


def draw_p(
    states: States, alpha: Array, beta: Array, part: slice, rng: np.random.Generator
) -> Array:
    """Draws of p for a part of the questions, one per prior draw; shape (draws, questions)."""
    state = states.which[part]
    c, n = states.successes[state], states.trials[state]
    return rng.beta(
        np.maximum(alpha[:, None] + c, _SMALLEST), np.maximum(beta[:, None] + (n - c), _SMALLEST)
    )


def draw_question_means(
    metrics: Sequence[Metric],
    states: States,
    alpha: Array,
    beta: Array,
    rng: np.random.Generator,
    weighted: bool = False,
    p: Array | None = None,
) -> tuple[Array, Array]:
    """Draws of the mean over these questions, and of its Bayesian bootstrap.

    Parameters
    ----------
    metrics : sequence of Metric
    states : States
    alpha, beta : ndarray, shape (draws,)
        Prior of p in each draw.
    rng : numpy.random.Generator
    weighted : bool
        Also weight the questions by Dirichlet(1, ..., 1), drawn as ratios of exponentials.
    p : ndarray, shape (draws, questions), optional
        Draws of p to use; default: made here, in chunks, and forgotten.

    Returns
    -------
    mean, bootstrap : ndarray, shape (draws, metrics)
        ``bootstrap`` is all zero unless `weighted`.
    """
    draws, questions = len(alpha), len(states.which)
    mean = np.zeros((draws, len(metrics)))
    bootstrap, weight_sum = np.zeros_like(mean), np.zeros(draws)
    width = max(1, _CHUNK // draws)
    for start in range(0, questions, width):
        part = slice(start, start + width)
        some = draw_p(states, alpha, beta, part, rng) if p is None else p[:, part]
        weight = rng.standard_exponential(some.shape) if weighted else None
        for column, metric in enumerate(metrics):
            value = metric.latent(some)
            mean[:, column] += value.sum(axis=1)
            if weight is not None:
                bootstrap[:, column] += np.einsum("dq,dq->d", value, weight)
        if weight is not None:
            weight_sum += weight.sum(axis=1)
    if weighted:
        bootstrap /= weight_sum[:, None]
    return mean / questions, bootstrap


def correlated_normals(covariance: Array, size: int, rng: np.random.Generator) -> Array:
    """Return normal draws with this covariance, which may be singular; shape (size, metrics)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    return rng.standard_normal((size, len(covariance))) @ root.T


def sum_covariance(mixture: StateMixture, node: int) -> Array:
    """Covariance of the means over questions of all metrics, given one node."""
    single = Nodes.single(mixture.nodes.alpha[node], mixture.nodes.beta[node])
    narrow = StateMixture(single, mixture.states, mixture.credits)
    if len(narrow.concentrated):
        return np.diag(narrow.moments.node_variance[0])
    total = np.zeros((len(mixture.credits),) * 2)
    for block in narrow.blocks():
        weights, count = block.weights[0], mixture.states.count
        state_means = weights @ block.value
        total += block.value.T @ ((count @ weights)[:, None] * block.value)
        total -= state_means.T @ (count[:, None] * state_means)
    return np.asarray(total / mixture.states.questions**2)


def node_interpolator(
    nodes_x: Array, nodes_y: Array, values: Array, weight: Array
) -> "_Polynomial":
    """Weighted cubic polynomial in standardised (logit m, logit r) through node values."""
    centre = np.array([weight @ nodes_x, weight @ nodes_y])
    spread = np.sqrt([weight @ (nodes_x - centre[0]) ** 2, weight @ (nodes_y - centre[1]) ** 2])
    fit = _Polynomial(centre, np.maximum(spread, 1e-12))
    root = np.sqrt(weight)[:, None]
    fit.coefficients = np.linalg.lstsq(
        root * fit.basis(nodes_x, nodes_y), root * values, rcond=None
    )[0]
    return fit


class _Polynomial:
    """All monomials up to degree three in two standardised coordinates."""

    coefficients: Array

    def __init__(self, centre: Array, spread: Array) -> None:
        self._centre, self._spread = centre, spread

    def basis(self, x: Array, y: Array) -> NDArray[np.float64]:
        u = (x - self._centre[0]) / self._spread[0]
        v = (y - self._centre[1]) / self._spread[1]
        return np.stack([u**i * v**j for i in range(4) for j in range(4 - i)], axis=1)

    def __call__(self, x: Array, y: Array) -> Array:
        return np.asarray(self.basis(x, y) @ self.coefficients)
