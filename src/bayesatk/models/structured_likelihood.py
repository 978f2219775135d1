"""Log-likelihood of questions with groups or covariates, in draws of a sampled model."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.study import Study
from bayesatk.models.program import Questions
from bayesatk.models.question_draws import SystemDraws

Array = NDArray[np.float64]


def structured_likelihood(
    study: Study, posterior: xr.Dataset, difficulties: Sequence[Difficulty] | None
) -> Array:
    """Return the log probability of every question's counts given the effect of its group.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        Draws of the model's variables.
    difficulties : sequence of Difficulty, optional
        Of right and wrong, one for each system, of all draws.

    Returns
    -------
    ndarray, shape (draws, systems, questions)
    """
    questions, counts = Questions.of(study, distinct=False), study.scale.counts(study.outcomes)
    columns = []
    for system, seen in enumerate(counts):
        difficulty = difficulties[system] if difficulties else None
        draws = SystemDraws.of(study, posterior, system, difficulty)
        of_system = questions.of_system(system)
        laws = map(draws.law_of, of_system.group, of_system.rows)
        logs = [law.log_counts(count) for law, count in zip(laws, seen, strict=True)]
        columns.append(np.stack(logs, axis=1))
    return np.stack(columns, axis=1)
