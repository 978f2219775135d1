"""The closed-form posterior of a system of a result, worked out from its data and prior."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.states import States
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.analysis import sampled_fallback
from bayesatk.posterior.categories import category_posterior
from bayesatk.posterior.category_states import CategoryStates, Judged
from bayesatk.posterior.posterior import SystemPosterior
from bayesatk.posterior.posteriors import system_posterior
from bayesatk.results.result import Result


def posterior_of(
    result: Result,
    system: int,
    metrics: Sequence[Metric],
    kept: NDArray[np.bool_] | None = None,
) -> SystemPosterior:
    """Return the posterior of a system under the result's pooling and prior.

    Parameters
    ----------
    result : Result
        Whose prior has a closed form.
    system : int
        Position of the system.
    metrics : sequence of Metric
        Of marks, or of scores where the result is of scored categories.
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all.
    """
    chosen = slice(None) if kept is None else kept
    if not result.on_categories:
        c, n = (counts[system, chosen] for counts in result.right_of_all())
        return system_posterior(result.pooling, States.of(c, n), metrics, result.prior)
    judged = [Judged(one.category_credit, result.scores) for one in metrics]
    before = result.prior_counts
    states = CategoryStates.of(
        result.counts[system, chosen], None if before is None else before[system, chosen]
    )
    return category_posterior(result.pooling, states, judged, result.prior, sampled_fallback)[0]
