"""The model of a system's counts: of data as they are read, or as a result stores them."""

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.states import States
from bayesatk.data.scales import RightWrong, Scale
from bayesatk.metrics.credit import Array
from bayesatk.posterior.categories import CategoryModel
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.right_wrong import RightWrongModel
from bayesatk.priors import CrossedPrior, Pooling
from bayesatk.results.result import Result


def count_model(
    scale: Scale,
    pooling: Pooling,
    prior: object,
    counts: NDArray[np.int64],
    before: Array | None = None,
) -> CountModel:
    """Return the model of one system: the one place where right and wrong part from categories.

    Parameters
    ----------
    scale : Scale
    pooling : Pooling
    prior : Prior or CategoryPrior
        Of the scale.
    counts : ndarray of int, shape (questions, categories)
    before : ndarray, shape (questions, categories), optional
        Prior trials, discounted.
    """
    if isinstance(scale, RightWrong):
        return RightWrongModel(pooling, States.of(counts[:, 1], counts.sum(axis=1)), prior)
    return CategoryModel(pooling, States.of_counts(counts, before), prior)


def model_of(result: Result, system: int, kept: NDArray[np.bool_] | None = None) -> CountModel:
    """Return the model of a system under the result's pooling and prior.

    Parameters
    ----------
    result : Result
        Whose prior has a closed form.
    system : int
        Position of the system.
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all.
    """
    if isinstance(result.prior, CrossedPrior):
        raise ValueError(
            "fit must have Beta or Dirichlet difficulties, whose evidence is known exactly; it was "
            "sampled with form='crossed'. Evaluate the same data."
        )
    chosen = slice(None) if kept is None else kept
    before = None if result.prior_counts is None else result.prior_counts[system, chosen]
    counts = result.counts[system, chosen]
    return count_model(result.scale, result.pooling, result.prior, counts, before)
