"""Independent draws of metrics from closed-form posteriors."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.engine.mixture import StateMixture
from bayesatk.core.pooling.marks import right_counts, right_given_marked
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.question.moments import latent_on_nodes
from bayesatk.data.scales import MetricFunction
from bayesatk.metrics.credit import Array
from bayesatk.metrics.grid import Metric

FEW = 1e6  # evaluations of g(p) up to which a mean over questions is always drawn one by one
MANY = 1e7  # the same, where the mean is skewed
SKEWED = 0.3  # skewness of a mean given the hyperparameters from which it is not drawn as normal
_CHUNK = 2_000_000  # probabilities drawn at once: 16 MB
_SMALLEST = 5e-324


def draw_p(states: States, nodes: Nodes, part: slice, rng: np.random.Generator) -> Array:
    """Draws of p for a part of the questions, one per prior draw; shape (draws, questions)."""
    state = states.which[part]
    if nodes.rates is None:
        return _draw_given(states, nodes, state, rng)
    right = right_counts(states)
    found = np.empty((len(nodes), len(state)))
    step = max(1, _CHUNK // (len(right) * len(states) + 2 * len(state)))
    for start in range(0, len(nodes), step):
        some = nodes.among(np.arange(len(nodes))[start : start + step])
        place = _draw_right(states, some, state, right, rng)
        found[start : start + step] = _draw_given(right, some, place, rng)
    return found


def _draw_right(
    states: States, nodes: Nodes, state: NDArray[np.intp], right: States, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw how many trials were right, given the marks: states of right trials, by prior draw."""
    upto = np.cumsum(right_given_marked(nodes, states, right), axis=2)
    u = rng.random((len(nodes), len(state))) * upto[:, state, -1]
    drawn = np.zeros(u.shape, np.intp)
    for one in range(len(right) - 1):
        drawn += u >= upto[:, state, one]
    return drawn


def _draw_given(
    states: States, nodes: Nodes, state: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """Draws of p given states: one for each question, or for each prior draw and question."""
    c, n = states.successes[state], states.trials[state]
    alpha, beta = nodes.alpha[:, :1], nodes.beta[:, :1]
    if nodes.alpha.shape[1] == 1 and not nodes.atoms.any():
        return _beta(alpha + c, beta + (n - c), rng)
    distinct, place = np.unique(state, return_inverse=True)
    own = states.successes[distinct], states.trials[distinct] - states.successes[distinct]
    logs = nodes.log_parts(*own)
    upto = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
    u = rng.random((len(nodes), state.shape[-1]))
    which = np.broadcast_to(place.reshape(state.shape), u.shape)
    part_of = np.zeros(u.shape, int)
    for one in upto[:-1]:
        part_of += u >= np.take_along_axis(one / upto[-1], which, axis=1)
    size = nodes.alpha.shape[1]
    for j in range(1, size):
        alpha = np.where(part_of == j, nodes.alpha[:, j, None], alpha)
        beta = np.where(part_of == j, nodes.beta[:, j, None], beta)
    p = _beta(alpha + c, beta + (n - c), rng)
    return np.where(part_of < size, p, (part_of > size).astype(float))


def _beta(alpha: Array, beta: Array, rng: np.random.Generator) -> Array:
    return np.asarray(rng.beta(np.maximum(alpha, _SMALLEST), np.maximum(beta, _SMALLEST)))


def draw_question_means(
    metrics: Sequence[Metric],
    states: States,
    nodes: Nodes,
    rng: np.random.Generator,
    weighted: bool = False,
    p: Array | None = None,
) -> tuple[Array, Array]:
    """Draws of the mean over these questions, and of its Bayesian bootstrap.

    Parameters
    ----------
    metrics : sequence of Metric
    states : States
    nodes : Nodes
        Prior of p, one for each draw.
    rng : numpy.random.Generator
    weighted : bool
        Also weight the questions that were tried by Dirichlet(1, ..., 1), drawn as ratios of
        exponentials; where they have weights, times these.
    p : ndarray, shape (draws, questions), optional
        Draws of p to use; default: made here, in chunks, and forgotten.

    Returns
    -------
    mean, bootstrap : ndarray, shape (draws, metrics)
        ``bootstrap`` is all zero unless `weighted`.
    """

    def draw(part: slice) -> Array:
        return draw_p(states, nodes, part, rng) if p is None else p[:, part]

    return means_of_draws(metrics, states, draw, len(nodes), _CHUNK, rng, weighted)


def means_of_draws(
    metrics: Sequence[MetricFunction],
    states: States,
    draw: Callable[[slice], Array],
    draws: int,
    most: int,
    rng: np.random.Generator,
    weighted: bool,
) -> tuple[Array, Array]:
    """Return the same, where ``draw(part)`` makes `draws` draws for a part of the questions.

    Parts have at most so many questions that `most` draws of questions are held at once.
    """
    questions = len(states.which)
    mean, bootstrap = np.zeros((2, draws, len(metrics)))
    total = np.zeros(draws)
    width = max(1, most // draws)
    for start in range(0, questions, width):
        part = slice(start, start + width)
        p = draw(part)
        own = 1.0 if states.weight is None else states.weight[part]
        tried = own * states.tried[states.which[part]]
        weight = rng.standard_exponential(p.shape[:2]) * tried if weighted else None
        for column, metric in enumerate(metrics):
            value = metric.latent(p)
            mean[:, column] += (value * own).sum(axis=1)
            if weight is not None:
                bootstrap[:, column] += np.einsum("dq,dq->d", value, weight)
        if weight is not None:
            total += weight.sum(axis=1)
    if weighted:
        bootstrap /= total[:, None]
    return mean / questions, bootstrap


def drawn_one_by_one(mixture: StateMixture, evaluations: float) -> bool:
    """Whether means over questions are drawn question by question, or as normal sums.

    Sums of many questions are normal given the hyperparameters, unless nearly all of them are
    right, or wrong.
    """
    if evaluations <= FEW or evaluations > MANY:
        return evaluations <= FEW
    mode = np.array([int(np.argmax(mixture.nodes.weight))])
    given = mixture.moments.among(mode, np.ones(1))
    skew = np.abs(given.third) / np.maximum(given.variance, 1e-120) ** 1.5
    return bool(skew.max(initial=0.0) > SKEWED)


def correlated_normals(covariance: Array, size: int, rng: np.random.Generator) -> Array:
    """Return normal draws with this covariance, which may be singular; shape (size, metrics)."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    return rng.standard_normal((size, len(covariance))) @ root.T


def scaled(covariance: Array, variance: Array) -> Array:
    """Return a covariance with the variances given, and the correlations as they are."""
    scale = np.sqrt(variance / np.maximum(np.diag(covariance), 1e-300))
    return np.asarray(covariance * np.outer(scale, scale))


def sum_covariance(mixture: StateMixture, node: int) -> NDArray[np.float64]:
    """Covariance of the means over questions of all metrics, given one node."""
    single = replace(mixture.nodes.among(np.array([node])), weight=np.ones(1), grid=None)
    one = StateMixture(single, mixture.states, mixture.credits)
    total = np.diag(one.moments.variance[0]) * mixture.states.questions**2
    if len(one.bands[-1]) or one.large.any():
        return np.asarray(total / mixture.states.questions**2)
    total = np.zeros_like(total)
    for band in one.on_rules():
        value, _ = latent_on_nodes(mixture.credits, band.rule)
        weights, count = band.weights(slice(None)), mixture.states.sums[2, band.states]
        means = weights @ value
        total += value.T @ ((count @ weights)[:, None] * value)
        total -= means.T @ (count[:, None] * means)
    return np.asarray(total / mixture.states.questions**2)
