"""One replication of simulation-based calibration: truth, data, posterior draws, places."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesatk.closed_form.posteriors import system_posterior
from bayesatk.core.mixture import States
from bayesatk.core.priors import HyperPrior, Pooling, Prior, prior_from
from bayesatk.metrics import Metric, parse
from bayesatk.results import metric_values

Array = NDArray[np.float64]
Engine = Literal["closed_form", "pymc"]
Metrics = Sequence[Metric]
BATCH = 50
_DRAWS = 199


@dataclass(frozen=True)
class Study:
    """Everything that a replication depends on, bar its number."""

    questions: int
    trials: int
    metrics: str
    pooling: Pooling
    prior: dict[str, Any]
    engine: Engine
    seed: int

    def rng(self, replication: int) -> np.random.Generator:
        """Return the randomness of one replication, whatever the others do."""
        return np.random.default_rng([self.seed, replication])


@cache
def _compiled(pooling: Pooling, prior: Prior, questions: int) -> Any:
    """Return the PyMC model, compiled once in each process; it takes any counts."""
    from bayesatk.models.compiled import compile_beta_binomial

    counts = np.zeros(questions, int), np.ones(questions, int)
    return compile_beta_binomial(counts, pooling, prior=prior)


def run_batch(study: Study, start: int) -> dict[str, list[float]]:
    """Places of the truth for one batch of replications."""
    rows = [_replicate(study, start + i) for i in range(BATCH)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _replicate(study: Study, replication: int) -> dict[str, float]:
    rng = study.rng(replication)
    prior, metrics = prior_from(study.prior), parse(study.metrics)
    truth, p = _simulate(study, prior, metrics, rng)
    successes = rng.binomial(study.trials, p)
    draws = _draws_of(study, prior, metrics, successes, rng)
    return {name: _place(value, draws[name], rng) for name, value in truth.items()}


def _place(value: float, draws: Array, rng: np.random.Generator) -> float:
    """Rank of the truth among the draws, ties and the gap it falls in broken at random."""
    below, same = int((draws < value).sum()), int((draws == value).sum())
    rank = below + rng.integers(0, same + 1)
    return float((rank + rng.random()) / (len(draws) + 1))


def _simulate(
    study: Study,
    prior: Prior,
    metrics: Metrics,
    rng: np.random.Generator,
) -> tuple[dict[str, float], Array]:
    """Draw the truth from the prior: all quantities, and p of every question."""
    truth: dict[str, float] = {}
    if isinstance(prior, HyperPrior):
        mean, icc = rng.beta(*prior.mean), rng.beta(*prior.icc)
        total = (1.0 - icc) / icc
        p = rng.beta(mean * total, (1.0 - mean) * total, study.questions)
        truth |= {"mean_p": mean, "icc": icc}
        alpha, beta = np.array([mean * total]), np.array([(1.0 - mean) * total])
        population = [float(metric.predictive(alpha, beta)[0]) for metric in metrics]
    elif study.pooling == "complete":
        shared = rng.beta(prior.alpha, prior.beta)
        p = np.full(study.questions, shared)
        truth["mean_p"] = shared
        population = [float(metric.latent(np.array([shared]))[0]) for metric in metrics]
    else:
        p = rng.beta(prior.alpha, prior.beta, study.questions)
        population = []
    truth["p_first"] = float(p[0])
    for i, metric in enumerate(metrics):
        truth[f"{metric.label} questions"] = float(metric.latent(p).mean())
        if population:
            truth[f"{metric.label} population"] = population[i]
    return truth, p


def _draws_of(
    study: Study,
    prior: Prior,
    metrics: Metrics,
    successes: NDArray[np.int64],
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Independent posterior draws of every quantity."""
    trials = np.full(study.questions, study.trials)
    if study.engine == "pymc":
        return _sampled(study, prior, metrics, (successes, trials), rng)
    drawn = system_posterior(
        study.pooling, States.of(successes, trials), list(metrics), prior
    ).draw(_DRAWS, rng, True)
    found = dict(drawn.hyper)
    if drawn.p is not None:
        found["p_first"] = drawn.p[:, 0]
    for i, metric in enumerate(metrics):
        found[f"{metric.label} questions"] = drawn.metrics[:, i, 0]
        found[f"{metric.label} population"] = drawn.metrics[:, i, 1]
    return found


def _sampled(
    study: Study,
    prior: Prior,
    metrics: Metrics,
    counts: tuple[NDArray[np.int64], NDArray[np.int64]],
    rng: np.random.Generator,
) -> dict[str, Array]:
    """NUTS draws, thinned until they are all but independent."""
    posterior = _compiled(study.pooling, prior, study.questions).sample(
        counts, list(metrics), rng=rng, keep=["p"], draws=5 * (_DRAWS + 1) // 2, chains=2,
        sample_kwargs={"cores": 1},
    )["posterior"].to_dataset().isel(system=0)  # fmt: skip
    flat = posterior.stack(sample=("chain", "draw")).isel(sample=slice(None, None, 5))
    flat = flat.isel(sample=slice(0, _DRAWS))
    found = {name: flat[name].values for name in ("mean_p", "icc") if name in flat}
    found["p_first"] = flat["p"].isel(question=0).values
    for metric in metrics:
        chosen = metric_values(flat, metric)
        for target in ("questions", "population"):
            found[f"{metric.label} {target}"] = chosen.sel(target=target).values
    return found
