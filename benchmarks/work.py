"""What one evaluation costs, in units: CPU time of ten million additions in the same process.

    python -m benchmarks.work [--only WORDS]

Every row runs in a process of its own, after a small evaluation that imports everything, and prints
its units and the largest resident memory. Data are simulated with a fixed seed; only the numbers of
trials of the unbalanced row, 83 tasks by 10 systems, vary as those of agents' runs do.
"""

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

import bayesatk as bk

MANY = "pass@1,2,4 pass^2,4 maj@3 avg@4 mg-pass@4"
ELEVEN = "pass@1,2,4,8 pass^2,4,8 maj@3,5 mg-pass@4,8"
Work = Callable[[], Any]


def unit() -> float:
    """CPU seconds of ten million additions."""
    start, total = time.process_time(), 0
    for i in range(10_000_000):
        total += i
    return time.process_time() - start


def marks(systems: int, questions: int, trials: int, rng: np.random.Generator) -> dict[str, Any]:
    """Right and wrong of systems on the same questions, harder and easier ones."""
    hard = rng.normal(0.0, 1.2, questions)
    skill = rng.normal(0.3, 0.5, systems)
    p = 1.0 / (1.0 + np.exp(-skill[:, None] - hard - rng.normal(0.0, 0.5, (systems, questions))))
    right = rng.random((systems, questions, trials)) < p[..., None]
    return {f"s{j}": each.astype(int).tolist() for j, each in enumerate(right)}


def ragged(data: dict[str, Any], least: int, rng: np.random.Generator) -> dict[str, Any]:
    """Keep some of the trials of each question, at least so many."""
    return {
        name: [row[: rng.integers(least, len(row) + 1)] for row in rows]
        for name, rows in data.items()
    }


def counted(questions: int, trials: np.ndarray | int, rng: np.random.Generator) -> Any:
    """Successes and trials of one system whose questions differ."""
    every = np.broadcast_to(trials, questions)
    return rng.binomial(every, rng.beta(0.7, 0.5, questions)), every


def in_groups(size: int, rng: np.random.Generator) -> Work:
    """Evaluate one system on five groups of so many questions, 8 trials each."""
    effect = np.repeat(rng.normal(0.3, 0.8, 5), size)
    mean = 1.0 / (1.0 + np.exp(-effect))
    successes = rng.binomial(8, rng.beta(3.0 * mean, 3.0 * (1.0 - mean)))
    names = [f"d{i}" for i in np.repeat(np.arange(5), size)]
    data = successes, np.full(5 * size, 8)
    return lambda: bk.evaluate(data, "pass@1,4", group=names, rng=1)


def judged(questions: int, trials: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return marks of a judge that errs, and the truth of a fifth of the trials."""
    right = rng.random((questions, trials)) < rng.beta(1.2, 0.8, questions)[:, None]
    given = (rng.random(right.shape) < np.where(right, 0.9, 0.2)).astype(int)
    return given, np.where(rng.random(right.shape) < 0.2, right, np.nan)


def with_truth(questions: int, trials: int, rng: np.random.Generator) -> Work:
    """Evaluate marks of a judge, the truth of a fifth of which is known."""
    given, truth = judged(questions, trials, rng)
    return lambda: bk.evaluate(bk.tally(given, truth=truth), "pass@1,2", rng=1)


def everything(questions: int, trials: int, rng: np.random.Generator) -> Work:
    """Evaluate with groups, two covariates, a judge and weights together."""
    given, truth = judged(questions, trials, rng)
    data = bk.tally(
        given,
        truth=truth,
        weight=rng.lognormal(0.0, 0.5, questions),
        group=[f"d{i}" for i in rng.integers(5, size=questions)],
        covariates={"a": rng.normal(size=questions), "b": rng.normal(size=questions)},
    )
    return lambda: bk.evaluate(data, "pass@1,2", group="group", covariates=["a", "b"], rng=1)


def unbalanced(rng: np.random.Generator) -> Work:
    """Evaluate ten systems on 83 tasks, some tried a few times and some often."""
    trials = rng.choice([8, 10, 40], (10, 83), p=[0.4, 0.4, 0.2])
    every = marks(10, 83, 40, rng)
    data = {
        name: [row[:size] for row, size in zip(rows, sizes, strict=True)]
        for (name, rows), sizes in zip(every.items(), trials, strict=True)
    }
    return plain(data, "pass@1,4")


def rows() -> dict[str, Callable[[np.random.Generator], Work]]:
    """Every row by its name."""
    return {
        "4 x 120 x 3..6 in 5 groups, 5 metrics": grouped,
        "5 groups of 24 x 8": lambda rng: in_groups(24, rng),
        "5 groups of 400 x 8": lambda rng: in_groups(400, rng),
        "5 groups of 2000 x 8": lambda rng: in_groups(2000, rng),
        "10 x 1000 x 8, 8 metrics": lambda rng: plain(marks(10, 1000, 8, rng), MANY),
        "10 unbalanced x 83": unbalanced,
        "45 x 400 x 10": lambda rng: plain(marks(45, 400, 10, rng), "pass@1,4"),
        "2 x 30 ragged, 11 metrics": lambda rng: plain(
            ragged(marks(2, 30, 12, rng), 3, rng), ELEVEN
        ),
        "100,000 x 4": lambda rng: plain(counted(100_000, 4, rng), "pass@1,4"),
        "5000 ragged 1..400": lambda rng: plain(
            counted(5000, rng.integers(1, 401, 5000), rng), "pass@1,4"
        ),
        "100 x 10,000": lambda rng: plain(counted(100, 10_000, rng), "pass@1,4"),
        "50 x 20, pass@400": lambda rng: plain(counted(50, 20, rng), "pass@400"),
        "judge with 20% truth, 250 x 4": lambda rng: with_truth(250, 4, rng),
        "judge with 20% truth, 150 x 80": lambda rng: with_truth(150, 80, rng),
        "everything, 100 x 4": lambda rng: everything(100, 4, rng),
        "everything, 1000 x 8": lambda rng: everything(1000, 8, rng),
    }


def plain(data: Any, metrics: str) -> Work:
    """Evaluate as it comes."""
    return lambda: bk.evaluate(data, metrics, rng=1)


def grouped(rng: np.random.Generator) -> Work:
    """Evaluate four systems on 120 questions in five groups, 3 to 6 trials each."""
    data = bk.tally(
        ragged(marks(4, 120, 6, rng), 3, rng), group=[f"d{i}" for i in rng.integers(5, size=120)]
    )
    return lambda: bk.evaluate(data, "pass@1,2,4 pass^2,4", group="group", rng=1)


def measured(name: str) -> str:
    """Line of a row: units, and megabytes."""
    work = rows()[name](np.random.default_rng(51))
    bk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)
    one = min(unit() for _ in range(2))
    start = time.process_time()
    work()
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return f"{name:42s} {spent / one:6.1f} units {peak:6.0f} MB"


def main() -> None:
    """Print every row that has the words."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="", help="Words that are part of a row's name.")
    wanted = options.parse_args().only
    spawn = multiprocessing.get_context("spawn")
    for name in (name for name in rows() if wanted in name):
        with spawn.Pool(1) as pool:
            print(pool.apply(measured, (name,)), flush=True)


if __name__ == "__main__":
    main()
