"""Coverage of 95% intervals where difficulties need not be Beta: families averaged, and the Beta.

    python -m benchmarks.coverage_families --replications 200 --output coverage_families.jsonl

Data sets come in batches of five of one cell (difficulty shape, questions, trials), a round of all
cells after the other. Every data set has a seed of its own. A batch is added to the file when it is
done and a run that is started again does what is missing, so the file can be read at any time, by
`benchmarks.coverage_report`.
"""

import argparse
import json
import time
import zlib
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bayesatk.core.engine.distribution import Empirical
from bayesatk.core.pooling.moment_range import metric_ranges
from bayesatk.core.pooling.states import States
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior
from benchmarks.shapes import POPULATION, SHAPES

METRICS = parse("pass@1 pass@4 pass^4 pass@16 pass@64")
QUESTIONS, TRIALS = (50, 200), (4, 16)
CELLS = list(product(SHAPES, QUESTIONS, TRIALS))
METHODS = ("Beta alone", "averaged")
BATCH = 5
_DRAWS = 2000  # of means whose series does not settle: 1/40 of the width of an interval
_STUDY = {
    "shapes": list(SHAPES), "questions": QUESTIONS, "trials": TRIALS,
    "families": DIFFICULTY_FAMILIES,
    "metrics": [metric.label for metric in METRICS], "batch": BATCH,
}  # fmt: skip


@cache
def population(shape: str) -> np.ndarray:
    """Return the value of every metric on the population."""
    p = SHAPES[shape](np.random.default_rng(0), POPULATION)
    return np.array([metric.latent(p).mean() for metric in METRICS])


def replicate(shape: str, questions: int, trials: int, number: int) -> dict[str, Any]:
    """Simulate one data set and judge its intervals.

    Returns
    -------
    dict
        ``covered`` and ``width`` (method, target, metric); ``held`` and ``range_width`` (target,
        metric) of the family-free range, 0 where k is within the trials; ``family``, posterior
        probabilities; ``effective_draws``, effective sizes of the two families of weighted points;
        ``seconds`` of one core.
    """
    seed = zlib.crc32(f"{shape} {questions} {trials}".encode())
    rng = np.random.default_rng([seed, number])
    p = SHAPES[shape](rng, questions)
    truth = np.stack([[metric.latent(p).mean() for metric in METRICS], population(shape)])
    states = States.of(rng.binomial(trials, p), np.full(questions, trials))
    start = time.process_time()
    counts = states.counts[states.which]
    beta, averaged = (
        CountModel.of(HyperPrior(families=families), counts) for families in ("beta", "averaged")
    )
    ends = np.stack([_intervals(beta), _intervals(averaged)])
    low, high = ends[..., 0], ends[..., 1]
    held, width = _ranges(states, truth, trials)
    weighted = [fit.points for fit in averaged.families if fit.name != "beta"]
    return {
        "covered": (low <= truth) & (truth <= high),
        "width": high - low,
        "held": held,
        "range_width": width,
        "family": averaged.family_share[0],
        "effective_draws": np.array([points.effective_draws for points in weighted]),
        "seconds": time.process_time() - start,
    }


def _intervals(model: CountModel) -> np.ndarray:
    """95% intervals; (target, metric, end)."""
    return np.stack([_ends(of_target) for of_target in model.fit(METRICS).distributions()])


def _ends(distributions: Sequence[Empirical]) -> np.ndarray:
    return np.stack([one.quantile([0.025, 0.975]) for one in distributions])


def _ranges(states: States, truth: np.ndarray, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether family-free ranges hold the truth, and their width; (target, metric)."""
    beyond = [i for i, metric in enumerate(METRICS) if metric.k > trials]
    held, width = np.zeros_like(truth), np.zeros_like(truth)
    curves = [METRICS[i].latent for i in beyond]
    found = metric_ranges(states.successes, states.trials, states.count, curves, 0.95)
    low, high = found.lower.T, found.upper.T
    held[:, beyond] = (low - 1e-9 <= truth[:, beyond]) & (truth[:, beyond] <= high + 1e-9)
    width[:, beyond] = high - low
    return held, width


def run_batch(start: int) -> dict[str, Any]:
    """Return sums over a batch of one cell, and its data sets that raised an error."""
    numbers, cell = start // len(CELLS), CELLS[start % len(CELLS)]
    total: dict[str, Any] = {}
    least, failed = np.inf, []
    for number in range(numbers * BATCH, (numbers + 1) * BATCH):
        try:
            one = replicate(*cell, number)
        except (ValueError, ArithmeticError, AssertionError, np.linalg.LinAlgError) as error:
            failed.append([number, repr(error)])
            continue
        least = min(least, float(one["effective_draws"].min()))
        total = {name: total.get(name, 0.0) + value for name, value in one.items()}
    sums = {name: np.asarray(value, float).round(9).tolist() for name, value in total.items()}
    return {"size": BATCH - len(failed), "failed": failed, "least_effective_draws": least, **sums}


def main() -> None:
    """Run what the output file lacks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--replications", type=int, default=200, help="data sets a cell")
    parser.add_argument("--output", type=Path, default=Path("coverage_families.jsonl"))
    options = parser.parse_args()
    done = set()
    if options.output.exists():
        done = {json.loads(row)["start"] for row in options.output.read_text().splitlines()}
    with options.output.open("a") as file:
        for start in range(-(-options.replications // BATCH) * len(CELLS)):
            if start not in done:
                row = {"study": _STUDY, "start": start, "values": run_batch(start)}
                print(json.dumps(row), file=file, flush=True)


if __name__ == "__main__":
    main()
