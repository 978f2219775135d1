"""Simulation-based calibration: whether a posterior is right on data from its own prior.

Talts et al. 2018, arXiv:1804.06788. Hyperparameters, success probabilities and outcomes are drawn
from the model; where the true value falls among independent posterior draws must be uniform.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtr, ndtri
from scipy.stats import kstest

from bayesatk._tools.batches import all_batches
from bayesatk._tools.messages import whole_number
from bayesatk._tools.threads import one_thread
from bayesatk.metrics.grid import MetricSpec, parse
from bayesatk.priors import CategoryPrior, Families, Pooling, Prior
from bayesatk.results.citations import TALTS
from bayesatk.results.schema import chain_dataset
from bayesatk.verification.replications import (
    BATCH,
    Engine,
    Replications,
    batch_fault,
    checked,
    score_values,
)


@dataclass(frozen=True)
class Calibration:
    """Result of simulation-based calibration, made by `calibrate`.

    Parameters
    ----------
    tree : xarray.DataTree
        Group ``prior_sbc``: for every quantity, the share of posterior draws below the true value,
        dims ``(chain=1, draw=replication)``, for `arviz.plot_ecdf_pit`.
    alpha : float
        Upper bound on the probability, over replications, that the table reports an error in any
        quantity of a correct posterior.

    See Also
    --------
    bayesatk.plots.plot_calibration : shows the ranks.
    """

    tree: xr.DataTree
    alpha: float = 0.01

    @property
    def table(self) -> pd.DataFrame:
        """One row per quantity: tests of location, spread and shape, and their power.

        ``bias`` and ``spread`` are the mean and the sd of the normal scores of the ranks (0 and 1
        for a correct posterior); ``p_value`` is the smallest of three tests (location, spread,
        Kolmogorov-Smirnov), Bonferroni corrected over all quantities and tests. A bias of
        ``detectable_bias`` (in posterior sds) or a spread of ``detectable_spread`` would be
        reported as an error with probability 0.9.
        """
        group = self.tree["prior_sbc"].to_dataset()
        tests = 3 * len(group.data_vars)
        needed = float(ndtri(1.0 - self.alpha / (2.0 * tests)) + ndtri(0.9))
        rows = []
        for name, variable in group.data_vars.items():
            pit = variable.values.ravel()
            z = ndtri(pit)
            size = len(z)
            location = 2.0 * ndtr(-abs(z.mean()) * np.sqrt(size))
            spread = 2.0 * ndtr(-abs((z**2).mean() - 1.0) * np.sqrt(size / 2.0))
            shape = float(kstest(pit, "uniform").pvalue)
            p_value = min(1.0, tests * min(location, spread, shape))
            rows.append(
                {
                    "quantity": str(name),
                    "bias": float(z.mean()),
                    "spread": float(z.std()),
                    "p_value": p_value,
                    "detectable_bias": needed / np.sqrt(size),
                    "detectable_spread": needed / np.sqrt(2.0 * size),
                    "verdict": "wrong" if p_value < self.alpha else "calibrated",
                }
            )
        return pd.DataFrame(rows).set_index("quantity")

    @property
    def verdict(self) -> Literal["calibrated", "wrong"]:
        """``"wrong"`` if any quantity is, else ``"calibrated"``."""
        return "wrong" if (self.table["verdict"] == "wrong").any() else "calibrated"


def calibrate(
    questions: int,
    trials: int,
    metrics: MetricSpec = "pass@1",
    *,
    pooling: Pooling = "partial",
    prior: Prior | CategoryPrior | None = None,
    difficulty: Families = None,
    engine: Engine = "closed_form",
    scores: Sequence[float] | None = None,
    replications: int = 1000,
    rng: int = 0,
    path: str | Path | None = None,
    client: Any = None,
    progress: bool | None = None,
    alpha: float = 0.01,
) -> Calibration:
    """Check posteriors by simulation-based calibration: ranks of true values in the posterior.

    Data sets are simulated from the prior and evaluated. For a correct posterior the share of
    posterior draws below the true value is uniform over replications (Talts et al. 2018).

    Parameters
    ----------
    questions, trials : int
        Number of questions of every simulated data set, and of trials of each question.
    metrics : str, Metric, or iterable of them
        As in `bayesatk.evaluate`.
    pooling, prior
        The model from which data are simulated and which is fitted. The prior must be proper.
    difficulty : str, sequence of str, or mapping {family: prior probability}, optional
        As in `bayesatk.evaluate`. With several families, one is drawn for every data set.
    engine : {"closed_form", "pymc"}
        Whose posterior is tested: the draws of the closed form, or NUTS on a model compiled once.
    scores : sequence of float, optional
        Scores of categories, from the lowest to the highest: trials are then scored categories,
        and the metrics are those of scores.
    replications : int
        Number of simulated data sets.
    rng : int
        Seed. Replication i depends on (rng, i) only, so the result depends neither on the number of
        workers nor on interruptions.
    path : path, optional
        JSON Lines file to which every finished batch is appended; batches that it already has are
        not computed again. Only one process may write it at a time.
    client : dask.distributed.Client, optional
        Cluster that computes the batches.
    progress : bool, optional
        Show a progress bar. Default: after two seconds, if the output is a terminal.
    alpha : float
        As in `Calibration`.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If the prior is improper, or if the file at `path` is of another study, has a line that is
        not a batch of this study, or is being written by another process.

    See Also
    --------
    bayesatk.plots.plot_calibration : shows the ranks.
    bayesatk.verify : compares exact and sampled posteriors of one data set.

    Notes
    -----
    Quantities: ``p_first`` (the success probability of the first question); ``mean_p`` and
    ``icc``, and ``never_solved`` and ``always_solved``, if the model has them; every metric for
    these questions and, under partial and complete pooling, for questions like these. (Without
    pooling, questions like these are evaluated by the Bayesian bootstrap, which is not the
    posterior of a model that could be simulated.)

    References
    ----------
    Talts, Betancourt, Simpson, Vehtari and Gelman 2018, arXiv:1804.06788.

    Examples
    --------
    >>> options = {"difficulty": "beta", "replications": 60, "rng": 1}
    >>> found = calibrate(3, 2, progress=False, **options)
    >>> found.verdict, sorted(found.table.index)[:2]
    ('calibrated', ['icc', 'mean_p'])
    """
    for name, number in (
        ("questions", questions), ("trials", trials), ("replications", replications)
    ):  # fmt: skip
        whole_number(name, number)
    asked = Replications(
        questions, trials, " ".join(metric.label for metric in parse(metrics)), pooling, prior,
        engine, whole_number("rng", rng, 0), score_values(scores),
    )  # fmt: skip
    study = checked(asked, difficulty)
    return calibrated(study, replications, path, client, progress, alpha)


@one_thread()
def calibrated(
    study: Replications, replications: int, path: str | Path | None = None, client: Any = None,
    progress: bool | None = None, alpha: float = 0.01,
) -> Calibration:  # fmt: skip
    """Return the ranks of so many replications of a study, the same whoever works them out."""
    done = all_batches(
        study.run_batch, range(0, replications, BATCH), study.identity,
        fault=partial(batch_fault, study.quantities()), path=path, client=client,
        description="calibration", progress=progress,
    )  # fmt: skip
    return Calibration(_tree(study, list(done.values()), replications), alpha)


def _tree(
    study: Replications, batches: list[dict[str, list[float]]], replications: int
) -> xr.DataTree:
    group = chain_dataset({
        name: np.concatenate([batch[name] for batch in batches])[None, :replications]
        for name in batches[0]
    })  # fmt: skip
    tree = xr.DataTree.from_dict({"/prior_sbc": group})
    tree.attrs.update(
        {
            "method": "simulation-based calibration",
            "engine": study.engine,
            "study": json.dumps(study.identity),
            "citations": json.dumps([TALTS]),
        }
    )
    return tree
