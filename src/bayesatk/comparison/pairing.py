"""Questions drawn anew for all systems at once: what is hard for one is hard for another.

Every system's own posterior for questions like these is that of its model; without pooling, the
Bayesian bootstrap of its questions. Its draws are put in an order that makes them move together
between systems as much as the questions do. Posterior draws of p would understate that: given their
own counts systems are independent, so what trial noise hides of a common difficulty is lost. The
covariance of observed success rates has no such bias, for trials of different systems are
independent given the question.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bayesatk.comparison.contrasts import Drawn
from bayesatk.comparison.question_values import Values
from bayesatk.metrics import Metric

Array = NDArray[np.float64]
_COVARIANCE = 100  # draws of every question that the covariance between metrics is taken from


def difficulty_correlation(rates: Array, spread: Array, weight: Array) -> Array:
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
    size, questions = rates.shape
    centred = rates - rates.mean(axis=1, keepdims=True)
    products = (centred[:, None] * centred[None]).reshape(size * size, questions)
    second = (weight @ products.T).reshape(-1, size, size)
    mean = weight @ centred.T
    covariance = second - mean[:, :, None] * mean[:, None, :]
    covariance *= (questions + 1.0) / max(questions - 1.0, 1.0)
    scale = spread[:, :, None] * spread[:, None, :]
    found = np.clip(np.divide(covariance, scale, np.zeros_like(scale), where=scale > 0), -1.0, 1.0)
    found[:, range(size), range(size)] = 1.0
    return _possible(found)


def _possible(matrices: Array) -> Array:
    """Return correlation matrices near symmetric ones: no negative eigenvalues, a diagonal of 1."""
    value, vector = np.linalg.eigh(matrices)
    raised = (vector * np.maximum(value, 0.0)[:, None, :]) @ np.swapaxes(vector, 1, 2)
    scale = np.sqrt(np.diagonal(raised, axis1=1, axis2=2))
    return np.asarray(raised / (scale[:, :, None] * scale[:, None, :]))


def question_noise(
    correlation: Array, covariance: Array, questions: int, rng: np.random.Generator
) -> Array:
    """Draw what other questions add to every metric of every system, jointly normal.

    Parameters
    ----------
    correlation : ndarray, shape (draws, systems, systems)
    covariance : ndarray, shape (systems, cells, cells)
        Of the metrics over the questions of each system.
    questions : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (draws, cells, systems)
    """
    draws, systems, cells = len(correlation), *covariance.shape[:2]
    value, vector = np.linalg.eigh(correlation)
    root = vector * np.sqrt(np.maximum(value, 0.0))[:, None, :]
    together = np.einsum("dij,djc->dic", root, rng.standard_normal((draws, systems, cells)))
    value, vector = np.linalg.eigh(covariance)
    root = (vector * np.sqrt(np.maximum(value, 0.0))[:, None, :]) @ np.swapaxes(vector, 1, 2)
    return np.asarray(np.einsum("scx,dsx->dcs", root, together) / np.sqrt(questions + 1.0))


def reordered(values: Array, like: Array) -> Array:
    """Return draws with the ranks of other draws, column by column (Iman and Conover 1982).

    Examples
    --------
    >>> reordered(np.array([[10.0], [30.0], [20.0]]), np.array([[0.3], [0.1], [0.2]])).ravel()
    array([30., 10., 20.])
    """
    rank = np.argsort(np.argsort(like, axis=0), axis=0)
    return np.take_along_axis(np.sort(values, axis=0), rank, axis=0)


def drawn_together(
    systems: Iterable[Values],
    rates: Array,
    metrics: Sequence[Metric],
    size: int,
    effective: float,
    rng: np.random.Generator,
) -> tuple[Drawn, Drawn]:
    """Draw means over the questions, and over questions drawn anew for all systems at once.

    Parameters
    ----------
    systems : iterable of Values
        Draws of every metric on every question, independent between systems.
    rates : ndarray, shape (systems, questions)
        Observed.
    metrics : sequence of Metric
    size, effective
        Draws, and how many independent ones they are worth.
    rng : numpy.random.Generator
    """
    count, questions = rates.shape
    weight = rng.standard_exponential((size, questions))
    weight /= weight.sum(axis=1, keepdims=True)
    plain = np.empty((size, len(metrics), count))
    alone, spread = np.empty_like(plain), np.empty((size, count))
    covariance = np.empty((count, len(metrics), len(metrics)))
    for system, one in enumerate(systems):
        own = weight[rng.permutation(size)]  # of questions redrawn for this system alone
        few = np.zeros((len(metrics), min(size, _COVARIANCE), questions))
        for cell, metric in enumerate(metrics):
            found = _means(one, metric, own)
            plain[:, cell, system], alone[:, cell, system], values = found
            if values is not None:
                few[cell] = values[: few.shape[1]]
        # Without draws of p the noise of trials stays in: less is then shared, never more.
        spread[:, system] = rates[system].std() if one.rate is None else one.rate.std(axis=1)
        few -= few.mean(axis=2, keepdims=True)
        spread_of = np.einsum("adq,bdq->ab", few, few) / few[0].size
        covariance[system] = _with_added(plain, alone, spread_of, questions, system)
    correlation = difficulty_correlation(rates, spread, weight)
    moved = plain + question_noise(correlation, covariance, questions, rng)
    paired = reordered(alone, moved) - _shared_shift(plain, alone, correlation)
    return Drawn.of(plain, plain, effective), Drawn.of(paired, paired, effective)


def _means(one: Values, metric: Metric, weight: Array) -> tuple[Array, Array, Array | None]:
    """Draws of a mean over these questions, over questions like these, and values where known."""
    values = one.of(metric)
    if values is None:
        assert one.mean is not None
        assert one.population is not None
        return one.mean(metric), one.population(metric), None
    if one.population is None or metric.family.on_answers:
        return values.mean(axis=1), np.einsum("dq,dq->d", weight, values), values
    return values.mean(axis=1), one.population(metric), values


def _shared_shift(plain: Array, alone: Array, correlation: Array) -> Array:
    """Return what of the systems' shifts from these questions to others they cannot differ in.

    A model moves every system's mean a little, by its prior and its shape. As far as the questions
    are hard for the systems alike, other questions move them alike.
    """
    shift = alone.mean(axis=0) - plain.mean(axis=0)  # (cells, systems)
    size = shift.shape[1]
    alike = (correlation.mean(axis=0).sum(axis=1) - 1.0) / max(size - 1, 1)
    return np.asarray(np.clip(alike, 0.0, 1.0) * (shift - shift.mean(axis=1, keepdims=True)))


def _with_added(
    plain: Array, alone: Array, covariance: Array, questions: int, system: int
) -> Array:
    """Return the covariance that adds as much as one system's own draws have.

    Where questions are few, drawing others adds more than their own spread over M + 1: the
    distribution of difficulties is hardly known. Metrics without values by question have no
    covariance to begin with, and get a variance.
    """
    more = alone[:, :, system].var(axis=0) - plain[:, :, system].var(axis=0)
    own = np.diagonal(covariance) / (questions + 1.0)
    ratio = np.sqrt(np.maximum(more / np.where(own > 0.0, own, np.inf), 1.0))
    bare = np.where(own > 0.0, 0.0, np.maximum(more, 0.0)) * (questions + 1.0)
    return np.asarray(covariance * np.outer(ratio, ratio) + np.diag(bare))
