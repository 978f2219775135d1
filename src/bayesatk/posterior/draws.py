"""Independent draws of metrics from closed-form posteriors."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.mixture import StateMixture
from bayesatk.core.moments import latent_on_nodes
from bayesatk.core.nodes import Nodes
from bayesatk.core.states import States
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric

FEW = 1e6  # evaluations of g(p) that draws of a mean over questions are always worth
MANY = 1e7  # and that they are worth where the mean is skewed
SKEWED = 0.3  # skewness of a mean given the hyperparameters from which it is not drawn as normal
_CHUNK = 2_000_000  # probabilities drawn at once: 16 MB
_SMALLEST = 5e-324


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


def drawn_one_by_one(mixture: StateMixture, evaluations: float) -> bool:
    """Whether means over questions are drawn question by question, or as normal sums.

    Sums of many questions are normal given the hyperparameters, unless nearly all of them are
    right, or wrong.
    """
    if evaluations <= FEW or evaluations > MANY:
        return evaluations <= FEW
    mode = np.array([int(np.argmax(mixture.nodes.weight))])
    given = mixture.among(mode).shape
    skew = np.abs(given.third) / np.maximum(given.variance, 1e-120) ** 1.5
    return bool(skew.max(initial=0.0) > SKEWED)


def correlated_normals(covariance: Array, size: int, rng: np.random.Generator) -> Array:
    """Return normal draws with this covariance, which may be singular; shape (size, metrics)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    return rng.standard_normal((size, len(covariance))) @ root.T


def sum_covariance(mixture: StateMixture, node: int) -> NDArray[np.float64]:
    """Covariance of the means over questions of all metrics, given one node."""
    single = Nodes.single(mixture.nodes.alpha[node], mixture.nodes.beta[node])
    one = StateMixture(single, mixture.states, mixture.credits)
    total = np.diag(one.moments.variance[0]) * mixture.states.questions**2
    if len(one.bands[-1]) or one.large.any():
        return np.asarray(total / mixture.states.questions**2)
    total = np.zeros_like(total)
    for band in one.on_rules():
        value, _ = latent_on_nodes(mixture.credits, band.rule)
        weights, count = band.weights(slice(None)), mixture.states.count[band.states]
        means = weights @ value
        total += value.T @ ((count @ weights)[:, None] * value)
        total -= means.T @ (count[:, None] * means)
    return np.asarray(total / mixture.states.questions**2)
