"""Questions drawn anew for all systems at once: what is hard for one is hard for another.

Every system's own posterior for questions like these is that of its model; without pooling, the
Bayesian bootstrap of its questions. Its draws are put in an order that makes them move together
between systems as much as the questions do. Posterior draws of p would understate that: given their
own counts systems are independent, so what trial noise hides of a common difficulty is lost. The
covariance of observed success rates has no such bias, for trials of different systems are
independent given the question.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesatk.comparison.pairs.contrasts import Drawn
from bayesatk.comparison.pairs.draws import QuestionSpread

Array = NDArray[np.float64]
# Bootstrap samples of the correlation between systems, fewer for many: eigenvalues are a cube.
_FEWEST_MATRICES, _MOST_MATRICES, _EIGENVALUES = 200, 1000, 2e7


def difficulty_correlation(
    rates: Array, spread: Array, weight: Array, questions: float | None = None
) -> Array:
    """Correlation between systems of their questions' success probabilities, corrected for noise.

    The covariance of observed rates over the spread of the probabilities themselves: Spearman's
    correction for attenuation (1904), one value for each set of bootstrap weights.

    Parameters
    ----------
    rates : ndarray, shape (systems, questions)
        Observed success rates (or mean scores).
    spread : ndarray, shape (draws, systems)
        Standard deviation of the probabilities over questions, in posterior draws.
    weight : ndarray, shape (draws, questions)
        Bootstrap weights.
    questions : float, optional
        Of how many equally weighted questions a mean would vary as much; default: all.

    Returns
    -------
    ndarray, shape (draws, systems, systems)
        Correlation matrices, the nearest that are possible.

    Examples
    --------
    >>> rates = np.array([[0.0, 1.0, 0.5], [0.1, 0.9, 0.5]])
    >>> even = np.full((1, 3), 1 / 3)
    >>> difficulty_correlation(rates, np.array([[0.8, 0.8]]), even).round(3)[0, 0].tolist()
    [1.0, 0.417]
    """
    size, number = rates.shape
    questions = number if questions is None else questions
    centred = rates - rates.mean(axis=1, keepdims=True)
    second = np.stack([(centred * row) @ centred.T for row in weight])
    mean = weight @ centred.T
    covariance = second - mean[:, :, None] * mean[:, None, :]
    covariance *= (questions + 1.0) / max(questions - 1.0, 1.0)
    scale = spread[:, :, None] * spread[:, None, :]
    ratio = np.divide(covariance, scale, np.zeros_like(scale), where=scale > 0)
    correlation = np.clip(ratio, -1.0, 1.0)
    correlation[:, range(size), range(size)] = 1.0
    return _possible(correlation)


def _possible(matrices: Array) -> Array:
    """Return correlation matrices near symmetric ones: no negative eigenvalues, a diagonal of 1."""
    root = _root(matrices)
    raised = root @ root
    scale = np.sqrt(np.diagonal(raised, axis1=1, axis2=2))
    return np.asarray(raised / (scale[:, :, None] * scale[:, None, :]))


def question_noise(
    correlation: Array, covariance: Array, questions: float, size: int, rng: np.random.Generator
) -> Array:
    """Draw what other questions add to every metric of every system, jointly normal.

    Parameters
    ----------
    correlation : ndarray, shape (matrices, systems, systems)
        Taken in turn by the draws.
    covariance : ndarray, shape (systems, cells, cells)
        Of the metrics over the questions of each system.
    questions : float
        As of `difficulty_correlation`.
    size : int
        Draws.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (size, cells, systems)
    """
    matrices, (systems, cells) = len(correlation), covariance.shape[:2]
    root, times = _root(correlation), -(-size // matrices)
    z = rng.standard_normal((matrices, systems, times * cells))
    together = (root @ z).reshape(matrices, systems, times, cells)
    noise = np.einsum("scx,dstx->tdcs", _root(covariance), together)
    return np.asarray(noise.reshape(-1, cells, systems)[:size] / np.sqrt(questions + 1.0))


def _root(matrices: Array) -> Array:
    """Symmetric square roots of non-negative matrices."""
    value, vector = np.linalg.eigh(matrices)
    scaled = vector * np.sqrt(np.maximum(value, 0.0))[:, None, :]
    return np.asarray(scaled @ np.swapaxes(vector, 1, 2))


def reordered(values: Array, like: Array) -> Array:
    """Return draws with the ranks of other draws, column by column (Iman and Conover 1982).

    Examples
    --------
    >>> reordered(np.array([[10.0], [30.0], [20.0]]), np.array([[0.3], [0.1], [0.2]])).ravel()
    array([30., 10., 20.])
    """
    paired = np.empty_like(values)
    np.put_along_axis(paired, np.argsort(like, axis=0), np.sort(values, axis=0), axis=0)
    return paired


def correlated_order(values: Array, correlation: Array, rng: np.random.Generator) -> Array:
    """Return independent columns of draws in an order with these rank correlations.

    Parameters
    ----------
    values : ndarray, shape (draws, columns)
    correlation : ndarray, shape (columns, columns)
        The nearest that is possible is used.
    rng : numpy.random.Generator
    """
    root = _root(_possible(correlation[None]))[0]
    return reordered(values, rng.standard_normal(values.shape) @ root)


def drawn_together(
    questions: Array,
    population: Array,
    spreads: Sequence[QuestionSpread],
    rates: Array,
    share: Array,
    effective: float,
    rng: np.random.Generator,
) -> tuple[Drawn, Drawn]:
    """Draw means over the questions, and over questions drawn anew for all systems at once.

    Parameters
    ----------
    questions, population : ndarray, shape (draws, metrics, systems)
        Draws of means, independent between systems; over questions like these in any order.
    spreads : sequence of QuestionSpread
        Of every system.
    rates : ndarray, shape (systems, questions)
        Observed.
    share : ndarray, shape (questions,)
        Of the questions in means over them.
    effective : float
        Effective number of draws.
    rng : numpy.random.Generator
    """
    (size, cells, count), number = questions.shape, float(1.0 / (share**2).sum())
    matrices = int(np.clip(_EIGENVALUES / count**3, _FEWEST_MATRICES, _MOST_MATRICES))
    residual = rates - np.stack([spread.expected + np.zeros(len(share)) for spread in spreads])
    rate_sd, covariance = np.empty((matrices, count)), np.empty((count, cells, cells))
    for system, spread in enumerate(spreads):
        sd = spread.rate_sd
        # Without draws of p the noise of trials stays in: less is then shared, never more.
        if sd is None:
            sd = np.sqrt((residual[system] - residual[system] @ share) ** 2 @ share)
        rate_sd[:, system] = np.resize(sd, matrices)
        covariance[system] = _with_added(
            questions[:, :, system], population[:, :, system], spread.covariance, number
        )
    weight = share * rng.standard_exponential((matrices, len(share)))
    weight /= weight.sum(axis=1, keepdims=True)
    correlation = difficulty_correlation(residual, rate_sd, weight, number)
    moved = questions + question_noise(correlation, covariance, number, size, rng)
    paired = reordered(population, moved) - _shared_shift(questions, population, correlation)
    return Drawn.of(questions, questions, effective), Drawn.of(paired, population, effective)


def _shared_shift(plain: Array, alone: Array, correlation: Array) -> Array:
    """Return what of the systems' shifts from these questions to others they cannot differ in.

    A model moves every system's mean a little, by its prior and its shape. As far as the questions
    are hard for the systems alike, other questions move them alike.
    """
    shift = alone.mean(axis=0) - plain.mean(axis=0)  # (cells, systems)
    size = shift.shape[1]
    alike = (correlation.mean(axis=0).sum(axis=1) - 1.0) / max(size - 1, 1)
    return np.asarray(np.clip(alike, 0.0, 1.0) * (shift - shift.mean(axis=1, keepdims=True)))


def _with_added(plain: Array, alone: Array, covariance: Array, questions: float) -> Array:
    """Return the covariance that adds as much as one system's own draws (draws, metrics) have.

    Where questions are few, drawing others adds more than their own spread over M + 1: the
    distribution of difficulties is hardly known. Metrics without values by question have no
    covariance to begin with, and get a variance.
    """
    more = alone.var(axis=0) - plain.var(axis=0)
    between = np.diagonal(covariance) / (questions + 1.0)
    ratio = np.sqrt(np.maximum(more / np.where(between > 0.0, between, np.inf), 1.0))
    bare = np.where(between > 0.0, 0.0, np.maximum(more, 0.0)) * (questions + 1.0)
    return np.asarray(covariance * np.outer(ratio, ratio) + np.diag(bare))
