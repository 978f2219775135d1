"""The evaluation of one system, as a task that another process can do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesatk.metrics.credit import Array
from bayesatk.posterior.analysis import Analysis
from bayesatk.posterior.assembly import quantile_table, statistics_table
from bayesatk.posterior.posterior import Draws, SystemPosterior
from bayesatk.posterior.request import Request


@dataclass(frozen=True)
class Evaluated:
    """What a result needs of one system.

    Parameters
    ----------
    posterior : SystemPosterior
        Settled: numbers and hyperparameters, without what they were worked out from.
    statistics, quantiles : ndarray, shape (metrics, target, ...)
        As `statistics_table` and `quantile_table` return them.
    drawn : Draws
    groups : pair of ndarray, shape (group, metrics, target, ...), optional
        Statistics and quantiles of each group of questions.
    question_p : pair of ndarray, optional
        Exact mean and sd of every question's success probability, where draws of it are kept.
    remarks : list of str
    """

    posterior: SystemPosterior
    statistics: NDArray[np.float64]
    quantiles: NDArray[np.float64]
    drawn: Draws
    groups: "tuple[NDArray[np.float64], NDArray[np.float64]] | None"
    question_p: tuple[Array, Array] | None
    remarks: list[str]


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def evaluate_system(
    request: Request, streams: Sequence[np.random.Generator], keep_p: bool, index: int
) -> Evaluated:
    """Evaluate the system at a position, with the random stream at the same position."""
    stream = streams[index]
    analysis = Analysis(request.outcomes, index, request, stream)
    posterior = analysis.posterior
    drawn = posterior.draw(request.draws, stream, keep_p)
    exact = posterior.distributions()
    statistics = statistics_table(
        posterior, exact, drawn, analysis.estimate, request.ci_prob, request.ci_kind
    )
    analysis.finish(statistics)
    return Evaluated(
        posterior.settled(),
        statistics,
        quantile_table(exact, drawn),
        drawn,
        analysis.of_groups(drawn),
        None if drawn.p is None else posterior.question_p(),
        analysis.remarks,
    )
