"""Evaluations of two systems that grow question by question, simulated."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk._tools.batches import all_batches, misshapen
from bayesatk._tools.messages import real_number, whole_number
from bayesatk._tools.threads import one_thread
from bayesatk.comparison.joint.posterior import drawn_seed
from bayesatk.comparison.joint.shared import drawn_board
from bayesatk.comparison.order.stopping import StoppingRule, StoppingStudy
from bayesatk.core.question.laws import finite
from bayesatk.core.runs.e_values import Capital, Splits
from bayesatk.data.scales import RIGHT_WRONG
from bayesatk.metrics.grid import Metric, one_metric
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import HyperPrior, LeaderboardPrior
from bayesatk.results.schema import TARGETS

_BATCH = 20
_NUMBERS = 9  # of a look: posterior of the difference (4), its true value, log e-values (4)


@one_thread()
def simulate_stopping(
    difficulties: Mapping[Any, tuple[float, float]],
    rule: StoppingRule,
    looks: Sequence[int],
    *,
    trials: int,
    correlation: float,
    replications: int = 400,
    rng: int = 0,
    path: str | Path | None = None,
    client: Any = None,
    progress: bool | None = None,
) -> StoppingStudy:
    """Simulate evaluations of two systems that grow question by question.

    Every simulated evaluation draws difficulties and trials, and computes the posterior of the
    difference at each look as `bayesatk.compare` does, under partial pooling.

    Parameters
    ----------
    difficulties : mapping {system: (mean, icc)}
        Two systems; Beta distributions of the questions' success probabilities.
    rule : StoppingRule
        Its metric, target and sd are simulated. The study can then be used for rules with any
        ``ci_prob`` and ``width``, and for rules of kind "anytime" with the same number of trials,
        with the metric (equal means) and without (identical systems: simulated ones are identical
        if their difficulties are equal and have correlation 1).
    looks : sequence of int
        Number of questions at every look, in rising order.
    trials : int
        Trials of every question and system.
    correlation : float
        Correlation of the normal scores of the two systems' difficulties, in [-1, 1]; 1 means the
        same order of difficulty. A crossed model of a pilot estimates it
        (``bayesatk.models.build_crossed``).
    replications : int
        Number of simulated evaluations.
    rng : int
        Seed. Replication i depends on (rng, i) only.
    path : path, optional
        JSON Lines file to which every finished batch is appended; batches that it already has are
        not computed again. Only one process may write it at a time.
    client : dask.distributed.Client, optional
        Cluster that computes the batches.
    progress : bool, optional
        Show a progress bar. Default: after two seconds, if the output is a terminal.

    Returns
    -------
    StoppingStudy

    See Also
    --------
    bayesatk.plan : numbers of questions and trials, fixed before the evaluation.

    Examples
    --------
    >>> rule = StoppingRule("pass@1", ci_prob=0.95)
    >>> far = {"a": (0.8, 0.2), "b": (0.4, 0.2)}
    >>> options = {"trials": 2, "correlation": 0.5, "replications": 2, "progress": False}
    >>> study = simulate_stopping(far, rule, [20, 40], **options)
    >>> float(study.summary(rule)["right"])
    1.0
    """
    study, metric = _checked(difficulties, rule, looks, trials, correlation, rng)
    whole_number("replications", replications)
    done = all_batches(
        partial(_batch, study, metric), range(0, replications, _BATCH), asdict(study),
        fault=lambda batch: misshapen(batch, _BATCH, len(study.looks), _NUMBERS), path=path,
        client=client, description="stopping", progress=progress,
    )  # fmt: skip
    stacked = np.concatenate(list(done.values()))[:replications]
    prob, mean, lower, upper, truth, *log_e = np.moveaxis(stacked, -1, 0)
    evidence = np.stack(log_e, axis=-1).reshape(*truth.shape, 2, 2)
    return StoppingStudy(
        study.metric, study.target, study.looks, prob, mean, lower, upper, truth, evidence,
        study.trials, study.sd,
    )  # fmt: skip


@dataclass(frozen=True)
class _Study:
    """Everything that a replication depends on, bar its number."""

    pairs: tuple[tuple[float, float], ...]
    metric: str
    target: str
    looks: tuple[int, ...]
    trials: int
    correlation: float
    seed: int
    sd: float


def _checked(
    difficulties: Mapping[Any, tuple[float, float]],
    rule: StoppingRule,
    looks: Sequence[int],
    trials: int,
    correlation: float,
    rng: int,
) -> tuple[_Study, Metric]:
    """Return what is to be simulated, or refuse."""
    if not isinstance(rule, StoppingRule) or not isinstance(difficulties, Mapping):
        raise TypeError(
            "difficulties must be {system: (mean, icc)} and rule a StoppingRule; got "
            f"{type(difficulties).__name__} and {type(rule).__name__}."
        )
    pairs = [(float(mean), float(icc)) for mean, icc in difficulties.values()]
    if len(pairs) != 2 or not all(0.0 < parameter < 1.0 for pair in pairs for parameter in pair):
        raise ValueError(
            "difficulties must be {system: (mean, icc)} of two systems, all strictly between 0 and "
            f"1; got {dict(difficulties)!r:.100}."
        )
    look_sizes = () if isinstance(looks, int | float) else tuple(map(int, looks))
    if not look_sizes or look_sizes[0] < 2 or sorted(set(look_sizes)) != list(looks):
        raise ValueError(f"looks must be rising numbers of questions from 2 on; got {looks!r}.")
    whole_number("trials", trials)
    if not -1.0 <= real_number("correlation", correlation) <= 1.0:
        raise ValueError(f"correlation must lie in [-1, 1]; got {correlation}.")
    if rule.metric is None:
        raise ValueError(
            "rule must have a metric to be simulated, by which systems are equal or one is better; "
            "got None. Pass one, as in 'pass@1': the study can then be asked about this rule too."
        )
    metric = one_metric(rule.metric)
    if metric.k > trials:
        raise ValueError(
            f"trials must be at least the k of {metric.label}, of which a question's e-value is; "
            f"got {trials}."
        )
    size = tuple(pairs), metric.label, rule.target, look_sizes
    return _Study(
        *size, int(trials), float(correlation), whole_number("rng", rng, 0), float(rule.sd)
    ), metric


def _batch(study: _Study, metric: Metric, start: int) -> list[list[list[float]]]:
    """Posterior of the difference, the truth and log e-values at every look; (batch, looks, 9)."""
    target, trials = TARGETS.index(study.target), study.trials
    parameters = [
        (mean * (1.0 - icc) / icc, (1.0 - mean) * (1.0 - icc) / icc) for mean, icc in study.pairs
    ]
    population = [float(metric.predictive(np.array([a]), np.array([b]))[0]) for a, b in parameters]
    look_numbers = np.empty((_BATCH, len(study.looks), _NUMBERS))
    for row in range(_BATCH):
        rng = np.random.default_rng([study.seed, start + row])
        z = rng.standard_normal((2, study.looks[-1]))
        z[1] = study.correlation * z[0] + np.sqrt(1.0 - study.correlation**2) * z[1]
        p = np.stack(
            [
                betaincinv(a, b, ndtr(normal_scores))
                for (a, b), normal_scores in zip(parameters, z, strict=True)
            ]
        )
        successes = rng.binomial(trials, p)
        for column, questions in enumerate(study.looks):
            gap = _difference(successes[:, :questions], trials, metric, target, rng)
            truth = population
            if target == 0:
                truth = [float(metric.latent(system_p[:questions]).mean()) for system_p in p]
            greater = (gap > 0).mean() + 0.5 * (gap == 0).mean()
            low, high = np.quantile(gap, [0.025, 0.975])
            posterior = greater, gap.mean(), low, high, truth[0] - truth[1]
            log_e = _log_e(successes[:, :questions], trials, metric, study.sd)
            look_numbers[row, column] = *posterior, *log_e
    return look_numbers.tolist()


def _difference(
    successes: Ints, trials: int, metric: Metric, target: int,
    rng: Rng,
) -> Array:  # fmt: skip
    """Draws of the difference of two systems, as `bayesatk.compare` makes them."""
    counts = np.stack([trials - successes, successes], axis=2)
    declared = Declared(RIGHT_WRONG, "partial", HyperPrior(), counts)
    board = drawn_board(declared, [metric], LeaderboardPrior(), drawn_seed(rng))
    values = board.values[target, :, :, 0]
    return values[:, 0] - values[:, 1]


def _log_e(
    successes: Ints, trials: int, metric: Metric, sd: float
) -> tuple[float, float, float, float]:
    """Log e-values against identical systems, and against equal means, as `e_value` makes them."""
    full = np.full(successes.shape, trials)
    values = finite(metric.credit, successes, full)
    split = Splits.of(successes, full).log_e(sd)
    return *split, *Capital.of(0.5 * (values[0] - values[1]) + 0.5).log_e(0.5)
