"""Metrics of success probabilities drawn from a prior without pooling."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.study import Study
from bayesatk.metrics.grid import MetricGrid
from bayesatk.results.schema import GROUPED_TARGETS, metric_dataset

Array = NDArray[np.float64]


def metrics_of_p(study: Study, p: Array, rng: np.random.Generator) -> xr.Dataset:
    """Return the metrics that judge trials, of the same targets as in the posterior.

    Means over questions have the weights of these and of their groups. Questions like these are
    those that were tried, weighted by the Bayesian bootstrap within groups, and new groups are
    these groups, weighted in the same way.

    Parameters
    ----------
    study : Study
        Without pooling.
    p : ndarray, shape (draws, system, question, ...)
    rng : numpy.random.Generator
    """
    grid, outcomes, grouping = MetricGrid.of(study.judged), study.outcomes, study.grouping
    size, systems, questions = p.shape[:3]
    weight = np.ones(questions) if outcomes.weight is None else outcomes.weight
    code = np.zeros(questions, np.intp) if grouping is None else grouping.code
    share = np.ones(1) if grouping is None else grouping.shares(outcomes.weight)
    member = (code[:, None] == np.arange(len(share))).astype(float)
    tried = outcomes.trials.transpose("system", "question").values > 0
    targets = GROUPED_TARGETS[: 2 if grouping is None else 3]
    values = np.empty((size, systems, len(grid), len(targets)))
    for system in range(systems):
        bootstrap = rng.standard_exponential((size, questions)) * weight * tried[system]
        new = rng.standard_exponential((size, len(share))) * share
        new /= new.sum(axis=1, keepdims=True)
        for number, metric in enumerate(grid):
            value = study.scale.judged(metric).latent(p[:, system])
            of_groups = (value * weight) @ member / np.maximum(weight @ member, 1e-300)
            like_these = (value * bootstrap) @ member / np.maximum(bootstrap @ member, 1e-300)
            columns = [of_groups @ share, like_these @ share, (like_these * new).sum(axis=1)]
            values[:, system, number] = np.stack(columns[: len(targets)], axis=1)
    coords = {
        "chain": [0], "draw": np.arange(size), "system": outcomes.dataset["system"].values,
        "target": list(targets),
    }  # fmt: skip
    return metric_dataset(grid, values[None], ("chain", "draw", "system"), ("target",), coords)
