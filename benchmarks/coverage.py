"""Frequentist coverage of 95% intervals by method, over difficulty shapes, questions and trials.

Partial pooling is that of one Beta here; `benchmarks.coverage_families` compares it with several
families averaged, under difficulties that are not Beta.

    python -m benchmarks.coverage --replications 200 --output benchmarks/results/coverage.jsonl

Every replication has a seed of its own, derived from its cell and number; results are appended to
the output file a cell at a time, and a run that is started again skips what is there. Add
``--shard 0/2`` and ``--shard 1/2`` to share the work between two processes, or ``--dask ADDRESS``
to send cells to a dask.distributed scheduler: the numbers are the same.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from scipy.optimize import minimize
from scipy.special import expit, ndtri

from bayesatk.core.pooling.states import States
from bayesatk.core.question.beta_binomial import beta_binomial_means, beta_binomial_moments
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from bayesatk.priors import BetaPrior, HyperPrior

METRICS = parse("bayes pass@4 pass^4 maj@4")
CREDITS = tuple(metric.credit for metric in METRICS)
QUESTIONS, TRIALS = (5, 30, 200, 1000), (1, 4, 16)
METHODS = ("normal (published)", "flat prior", "empirical Bayes", "partial pooling, Beta")
DRAWS = 2000
Z = float(ndtri(0.975))

Difficulty = tuple[Callable[[np.random.Generator, int], np.ndarray], np.ndarray]


def _beta(a: float, b: float) -> Difficulty:
    return lambda rng, size: rng.beta(a, b, size), beta_binomial_means(CREDITS, [a], [b])[0][0]


def _logit_normal(mu: float, sigma: float) -> Difficulty:
    z = np.linspace(-8.5, 8.5, 4001)
    weight = np.exp(-0.5 * z**2)
    p = expit(mu + sigma * z)
    truth = np.array([(metric.latent(p) @ weight) / weight.sum() for metric in METRICS])
    return lambda rng, size: expit(rng.normal(mu, sigma, size)), truth


def _with_impossible(share: float, a: float, b: float) -> Difficulty:
    truth = (1.0 - share) * beta_binomial_means(CREDITS, [a], [b])[0][0]
    return lambda rng, size: rng.beta(a, b, size) * (rng.random(size) >= share), truth


SHAPES: dict[str, Difficulty] = {
    "Beta(.2,.2)": _beta(0.2, 0.2),
    "Beta(.3,.3)": _beta(0.3, 0.3),
    "Beta(2,.5)": _beta(2.0, 0.5),
    "Beta(1,1)": _beta(1.0, 1.0),
    "Beta(20,20)": _beta(20.0, 20.0),
    "logit-normal(0,2)": _logit_normal(0.0, 2.0),
    "10% impossible": _with_impossible(0.1, 2.0, 1.0),
}
PRIOR = "drawn from the prior"


def difficulty(shape: str, rng: np.random.Generator) -> Difficulty:
    """Return a named difficulty distribution, or one drawn from the default prior."""
    if shape != PRIOR:
        return SHAPES[shape]
    mean, icc = rng.random(2)
    total = (1.0 - icc) / icc
    return _beta(mean * total, (1.0 - mean) * total)


def replicate(shape: str, questions: int, trials: int, seed: int) -> np.ndarray:
    """One data set: (covered, width) of every method, target and metric."""
    rng = np.random.default_rng(seed)
    draw, population = difficulty(shape, rng)
    p = draw(rng, questions)
    truth = np.stack([[metric.latent(p).mean() for metric in METRICS], population])
    states = States.of(rng.binomial(trials, p), np.full(questions, trials))
    intervals = np.stack([*_flat_prior(states), _empirical_bayes(states), _partial(states, rng)])
    low, high = intervals[..., 0], intervals[..., 1]
    return np.stack([(low <= truth) & (truth <= high), high - low], axis=-1).astype(float)


def _flat_prior(states: States) -> tuple[np.ndarray, np.ndarray]:
    """Return the published normal interval, and exact quantiles (population: bootstrap sd)."""
    c, n, share = states.successes, states.trials, states.count / states.questions
    means, _, variances = beta_binomial_moments(CREDITS, c + 1.0, n - c + 1.0)
    mean = share @ means
    variance = share @ variances / states.questions
    half = Z * np.sqrt(variance)
    normal = np.clip(np.stack([mean - half, mean + half], axis=-1), 0.0, 1.0)
    exact = _independent(states, BetaPrior())
    spread = share @ (means - mean) ** 2 + share @ variances - variance
    wide = Z * np.sqrt(variance + spread / (states.questions + 1.0))
    bootstrap = np.clip(np.stack([mean - wide, mean + wide], axis=-1), 0.0, 1.0)
    return np.stack([normal, normal]), np.stack([exact, bootstrap])


def _empirical_bayes(states: States) -> np.ndarray:
    """Exact quantiles at the maximum-likelihood (mean, icc), as if they were known."""
    predictor, _ = _model(states, HyperPrior(families="beta"), "partial").part("beta")

    def negative(z: np.ndarray) -> float:
        z = np.clip(z, -12.0, 12.0)  # the likelihood may have no maximum
        return -float(predictor.log_likelihood(z[None])[0])

    found = minimize(negative, np.zeros(2), method="Nelder-Mead")
    x, y = np.clip(found.x, -12.0, 12.0)
    total = np.exp(-y)
    ends = _independent(states, BetaPrior(total * expit(x), total * expit(-x)))
    return np.stack([ends, ends])


def _model(states: States, prior: Any, pooling: Any) -> CountModel:
    return CountModel.of(prior, states.counts[states.which], pooling=pooling)


def _independent(states: States, prior: BetaPrior) -> np.ndarray:
    """Return 95% intervals of means over these questions, whose priors are known."""
    return _ends(_model(states, prior, "none").fit(METRICS).distributions()[0])


def _partial(states: States, rng: np.random.Generator) -> np.ndarray:
    """One Beta: quantiles of 2000 exact draws, whose own error moves coverage by 0.1%."""
    posterior = _model(states, HyperPrior(families="beta"), "partial").fit(METRICS)
    draws = posterior.draw(DRAWS, rng, False).metrics
    return np.stack([_draw_ends(draws[:, :, target]) for target in range(2)])


def _draw_ends(draws: np.ndarray) -> np.ndarray:
    return np.quantile(draws, [0.025, 0.975], axis=0).T


def _ends(distributions: list[Any]) -> np.ndarray:
    return np.stack([one.quantile([0.025, 0.975]) for one in distributions])


def cells() -> Iterator[tuple[str, int, int]]:
    """Yield every (shape, questions, trials)."""
    yield from product((*SHAPES, PRIOR), QUESTIONS, TRIALS)


def run_cell(cell: tuple[str, int, int], start: int, stop: int) -> dict[str, Any]:
    """Replications ``start..stop`` of one cell, summed."""
    name = json.dumps(cell)
    base = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
    total = sum(replicate(*cell, seed=base + i) for i in range(start, stop))
    shape, questions, trials = cell
    return {
        "shape": shape,
        "questions": questions,
        "trials": trials,
        "start": start,
        "stop": stop,
        "covered": total[..., 0].tolist(),
        "width": total[..., 1].tolist(),
    }


def main() -> None:
    """Run what the output file lacks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/coverage.jsonl"))
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--dask", default=None, help="address of a dask.distributed scheduler")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if options.output.exists():
        for line in options.output.read_text().splitlines():
            row = json.loads(line)
            done.add((row["shape"], row["questions"], row["trials"], row["start"]))
    starts = range(0, options.replications, options.batch)
    jobs = [(cell, start) for start in starts for cell in cells() if (*cell, start) not in done]
    index, shards = (int(part) for part in options.shard.split("/"))
    jobs = jobs[index::shards]
    for result in _results(jobs, options):
        with options.output.open("a") as out:
            out.write(json.dumps(result) + "\n")


def _results(jobs: list[Any], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if options.dask is None:
        for cell, start in track(jobs, description="coverage"):
            yield run_cell(cell, start, start + options.batch)
        return
    from dask.distributed import Client, as_completed

    client = Client(options.dask)
    futures = [client.submit(run_cell, cell, at, at + options.batch) for cell, at in jobs]
    for future in as_completed(futures):
        yield future.result()


if __name__ == "__main__":
    main()
