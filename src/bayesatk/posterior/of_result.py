"""Of a system of a result: its closed-form posterior, and what was observed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesatk.core.categorical import category_finite
from bayesatk.core.laws import finite
from bayesatk.core.states import States
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.analysis import sampled_fallback
from bayesatk.posterior.answers import finite_estimates
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


def observed_value(
    result: Result, system: int, metric: Metric, kept: NDArray[np.bool_] | None = None
) -> float:
    """Return the unbiased finite estimate of a metric, from the trials that were run.

    Parameters
    ----------
    result : Result
        Evaluated or sampled.
    system : int
        Position of the system.
    metric : Metric
    kept : ndarray of bool, shape (questions,), optional
        The questions to use; default: all that the system tried.

    Returns
    -------
    float
        Mean over the questions; NaN where k exceeds the trials of one of them.
    """
    kept = result.trials[system] > 0 if kept is None else kept
    if metric.family.on_answers:
        answers = result.data.answers
        assert answers is not None  # a result of votes has answers
        return float(finite_estimates(answers.on_questions(kept).of(system), [metric.k])[0])
    if result.on_categories:
        counts = result.counts[system, kept]
        found = category_finite(metric.category_credit, counts, result.scores)
    else:
        successes, trials = (counts[system, kept] for counts in result.right_of_all())
        found = finite(metric.credit, successes, trials)
    return float(found.mean())
