"""Metrics from draws of success probabilities, whoever made the draws.

Only definitions are used: the latent value ``g(p)`` of each metric on draws of p, averaged over
the questions; for the population, under the sampled difficulty distribution or, without one, on
the questions weighted by the Bayesian bootstrap.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.columns import WEIGHT
from bayesatk.data.question_columns import unequal, weights
from bayesatk.data.scales import MetricFunction
from bayesatk.metrics.grid import Metric, MetricGrid, MetricSpec
from bayesatk.models.traces import traced_difficulty
from bayesatk.results.difficulty import difficulty_draws, flat_draws
from bayesatk.results.schema import TARGETS, metric_dataset

Array = NDArray[np.float64]
QuestionDraws = Callable[[slice], Array]
PopulationMean = Callable[[Any], Array]

_CHUNK = 4_000_000


def metrics_from_draws(
    tree: xr.DataTree, metrics: MetricSpec, *, rng: np.random.Generator | int | None = None
) -> xr.DataTree:
    """Add metric variables to the posterior of any model that has draws of ``p``.

    Parameters
    ----------
    tree : xarray.DataTree
        Group ``posterior`` with ``p(chain, draw, [system,] question)``. Where present, the group
        ``difficulty`` of a result, or the hyperparameters of a model of this library (``mean_p``
        and ``icc``, those of another family, or ``mu`` and ``sigma``), define the distribution of
        questions like these; otherwise the Bayesian bootstrap over the questions does. A coordinate
        ``weight`` of the questions, in ``p`` or in the group ``constant_data``, gives their
        weights.
    metrics : str, Metric, or iterable of them
        As in `bayesatk.evaluate`.
    rng : Generator, int or None
        For the Bayesian bootstrap only.

    Returns
    -------
    xarray.DataTree
        A copy with the metric variables, dims ``(chain, draw, system, [k], [tau], target)``, in
        ``posterior``.

    See Also
    --------
    bayesatk.sample : samples the library's own models.
    bayesatk.verify : compares with a closed form.

    Examples
    --------
    >>> p = xr.DataArray(np.full((2, 3, 1), 0.5), dims=("chain", "draw", "question"))
    >>> tree = xr.DataTree.from_dict({"/posterior": xr.Dataset({"p": p})})
    >>> found = metrics_from_draws(tree, "pass@2", rng=0)["posterior"]["pass_at_k"]
    >>> round(float(found.mean()), 12)
    0.75
    """
    posterior = tree["posterior"].to_dataset()
    if "group_mean" in posterior:
        raise ValueError(
            "tree must be of questions without groups; it has draws of 'group_mean'. "
            "bayesatk.sample(data, metrics, group=...) works out the metrics of groups."
        )
    stored = "difficulty" in tree.children
    p = _success_probabilities(posterior)
    sizes = (p.sizes["chain"] * p.sizes["draw"], p.sizes["system"], p.sizes["question"])
    flat = p.values.reshape(sizes)
    grid, weight = MetricGrid.of(metrics), _weights(tree, p)
    generator = np.random.default_rng(rng)
    by_system = []
    for system in range(sizes[1]):
        own = flat[:, system]
        difficulty = (
            difficulty_draws(tree, system) if stored else traced_difficulty(posterior, system)
        )
        population = None if weight is not None else population_mean(posterior, system, difficulty)
        by_system.append(
            draw_metrics(grid, partial(_columns, own), sizes[2], population, generator, weight)
        )
    values = np.stack(by_system, axis=1)
    shape = (p.sizes["chain"], p.sizes["draw"], *values.shape[1:])
    coords = {
        **{name: p[name] for name in ("chain", "draw", "system") if name in p.coords},
        "target": list(TARGETS),
    }
    found = metric_dataset(
        grid, values.reshape(shape), ("chain", "draw", "system"), ("target",), coords
    )
    result = tree.copy()
    result["posterior"] = xr.DataTree(posterior.assign(found.variables).assign_coords(found.coords))
    return result


def _success_probabilities(posterior: xr.Dataset) -> xr.DataArray:
    """Return the draws of p (chain, draw, system, question)."""
    if "p" not in posterior:
        raise ValueError(
            f"tree must have draws of 'p' in its posterior; got {list(posterior.data_vars)}. "
            "Name the success probability of your model 'p'."
        )
    p = posterior["p"]
    if "system" not in p.dims:
        p = p.expand_dims(system=["system"])
    return p.transpose("chain", "draw", "system", "question")


def _weights(tree: xr.DataTree, p: xr.DataArray) -> Array | None:
    """Return the weights of the questions, where there are any."""
    held = [p, *(tree[name] for name in ("constant_data",) if name in tree.children)]
    found = [one.coords[WEIGHT].values for one in held if WEIGHT in one.coords]
    known = weights(found[0].tolist(), range(p.sizes["question"])) if found else None
    return None if known is None else unequal(known)


def _columns(values: Array, part: slice) -> Array:
    return values[:, part]


def draw_metrics(
    grid: Iterable[MetricFunction],
    question_draws: QuestionDraws,
    questions: int,
    population: PopulationMean | None,
    rng: np.random.Generator,
    weight: Array | None = None,
    tried: ArrayLike = True,
) -> Array:
    """Metrics of one system; shape (draws, metrics, target).

    Parameters
    ----------
    grid : iterable of MetricFunction
    question_draws : callable
        ``question_draws(part)`` gives draws of p for a slice of the questions.
    questions : int
    population : callable, optional
        ``population(metric)`` is the expected metric of a new question in each draw.
    rng : numpy.random.Generator
        For the Bayesian bootstrap, used without one.
    weight : ndarray, shape (questions,), optional
        Of the questions.
    tried : array_like of bool, shape (questions,)
        Questions with trials, which alone the bootstrap draws from.
    """
    metrics, each = list(grid), np.ones(questions) if weight is None else weight / weight.max()
    observed = each * (np.asarray(tried) | ~np.any(tried))
    total: Array | None = None
    weighted, weight_sum = np.zeros(0), np.zeros(0)
    for part, p in _chunks(question_draws, questions):
        values = np.stack([metric.latent(p) for metric in metrics])
        if total is None:
            total = np.zeros((len(p), len(metrics)))
            weighted, weight_sum = np.zeros_like(total), np.zeros(len(p))
        total += (values @ each[part]).T
        if population is None:
            drawn = observed[part] * rng.standard_exponential((len(p), part.stop - part.start))
            weighted += np.einsum("mdq,dq->dm", values, drawn)
            weight_sum += drawn.sum(axis=1)
    if total is None:
        raise ValueError("the draws must cover at least one question; got none.")
    if population is None:
        new = weighted / weight_sum[:, None]
    else:
        new = np.stack([population(metric) for metric in metrics], axis=1)
    return np.stack([total / each.sum(), new], axis=-1)


def _chunks(question_draws: QuestionDraws, questions: int) -> Iterator[tuple[slice, Array]]:
    first = question_draws(slice(0, 1))
    width = max(1, _CHUNK // len(first))
    for start in range(0, questions, width):
        part = slice(start, min(start + width, questions))
        yield part, question_draws(part)


def population_mean(
    posterior: xr.Dataset, system: int, difficulty: Difficulty | None
) -> PopulationMean | None:
    """Return the expected metric of a new question in each draw, where the model defines it.

    Parameters
    ----------
    posterior : xarray.Dataset
        Draws of the hyperparameters of other models.
    system : int
    difficulty : Difficulty, optional
        Of all draws, where that is how difficult questions are.
    """

    def draws(name: str) -> Array:
        return flat_draws(posterior[name], system)

    if difficulty is not None:
        return partial(expected_metric, difficulty)
    if {"mu", "sigma"} <= set(posterior):
        z = np.linspace(-8.5, 8.5, 171)
        weight = np.exp(-0.5 * z**2)
        points = expit(draws("mu")[:, None] + draws("sigma")[:, None] * z)
        return lambda metric: np.asarray(metric.latent(points) @ (weight / weight.sum()))
    if "mean_p" not in posterior:
        return None
    mean = draws("mean_p")
    if "icc" not in posterior:
        return lambda metric: np.asarray(metric.latent(mean))
    icc = draws("icc")
    alpha = mean * ((1.0 - icc) / icc)[:, None]
    return lambda metric: np.asarray(metric.predictive(alpha))


def expected_metric(difficulty: Difficulty, metric: Metric) -> Array:
    """Return the expected metric of a new question in each draw: of the Betas and of the atoms."""
    alpha, beta = difficulty.alpha, difficulty.beta
    ends = metric.latent(np.array([0.0, 1.0]))
    total = difficulty.never * ends[0] + difficulty.always * ends[1]
    for j in range(alpha.shape[1]):
        own = difficulty.share[:, j] > 0.0
        value = metric.predictive(alpha[own, j], beta[own, j])
        total[own] += difficulty.share[own, j] * value
    return np.asarray(total)
