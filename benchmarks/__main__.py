"""Ratios in one run: against the published package, and against floors.

    python -m benchmarks [--write docs/tables/speed.csv]

Prints one table, or writes it with the date, the machine and the versions. Times are medians; a
ratio under 1.3 either way is a tie on a shared machine.
"""

import argparse
import csv
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import arviz as az
import numpy as np
import scorio.eval as published
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import bayesatk as bk
from bayesatk.core.question.beta_binomial import beta_binomial_moments
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from bayesatk.priors import HyperPrior
from benchmarks import categories, guessing, scaling, systems

Row = tuple[str, str, str, str]
POINTS = ("pass_at_k", "pass_hat_k", "maj_at_k", "mg_pass_at_k", "auc_at_k")


def median_ms(run: Callable[[], object], repeats: int = 9) -> float:
    """Median wall time of a call, after one to warm up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def _matrix(questions: int, trials: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.random((questions, trials)) < rng.random((questions, 1))).astype(np.int8)


def point_metrics() -> list[Row]:
    """Worst of five point metrics over three k, against adding up the rows."""
    rows = []
    for shape, goal in (((10_000, 64), 1.3), ((1000, 1000), 0.5), ((100_000, 256), 0.5)):
        matrix = _matrix(*shape)
        floor = median_ms(lambda matrix=matrix: matrix.sum(axis=1))
        ks = (8, shape[1] // 2, shape[1])
        worst = max(
            median_ms(lambda m=matrix, name=name, k=k: getattr(bk.published, name)(m, k))
            for name in POINTS
            for k in ks
        )
        label = f"point metrics, {shape[0]} x {shape[1]}"
        rows.append(
            (label, f"{worst:.2f} ms", f"{worst / floor:.2f} x R.sum(axis=1)", f"<= {goal}")
        )
    return rows


def moments() -> list[Row]:
    """All posterior moments of one metric, every count, and the published intervals."""
    rows = []
    for trials, k, goal in ((64, 32, 1.0), (256, 128, 5.0)):
        counts = np.arange(trials + 1)
        credit = [parse(f"maj@{k}")[0].credit]
        ms = median_ms(
            lambda c=counts, n=trials, x=credit: beta_binomial_moments(x, c + 1, n - c + 1)
        )
        rows.append(
            (f"moments, all counts, n={trials}, k={k}", f"{ms:.2f} ms", "", f"<= {goal} ms")
        )
    matrix = _matrix(500, 64)
    for name, tau in (("maj_at_k_ci", ()), ("g_pass_at_k_tau_ci", (0.5,)), ("auc_at_k_ci", ())):
        for k in (8, 32):
            ours = median_ms(lambda n=name, a=(k, *tau): getattr(bk.published, n)(matrix, *a))
            theirs = median_ms(lambda n=name, a=(k, *tau): getattr(published, n)(matrix, *a), 3)
            ratio = f"{theirs / ours:.0f} x faster than published"
            rows.append((f"{name}, 500 x 64, k={k}", f"{ours:.2f} ms", ratio, ">= 50"))
    return rows


def pooling() -> list[Row]:
    """Partial pooling: hyperparameters alone, and whole evaluations."""
    rng = np.random.default_rng(1)
    rows = []
    for questions, goal in ((500, 30.0), (1_000_000, 50.0)):
        successes = rng.binomial(64, rng.beta(0.3, 0.3, questions))
        counts = np.stack([64 - successes, successes], axis=1)
        model = CountModel.of(HyperPrior(families="beta"), counts)
        ms = median_ms(lambda model=model: model.refitted("beta"))
        rows.append((f"hyperparameters, M={questions}, n=64", f"{ms:.1f} ms", "", f"<= {goal} ms"))
    successes = rng.binomial(64, rng.beta(0.3, 0.3, 1_000_000))
    data = bk.tally(successes, trials=64)
    metrics = "pass@8 pass^8 maj@8 auc@8 bayes"
    ms = median_ms(lambda: bk.evaluate(data, metrics, rng=1), 1)
    rows.append(
        ("evaluate, M=10^6, n=64, 5 metrics, 4000 draws", f"{ms / 1e3:.1f} s", "", "<= 30 s")
    )
    return rows


def sampling() -> list[Row]:
    """NUTS with a program that was kept, against the quadrature."""
    rng = np.random.default_rng(2)
    data = bk.tally((rng.binomial(16, rng.beta(0.8, 1.2, 500)), 16))
    exact = median_ms(lambda: bk.evaluate(data, "pass@4", rng=1))
    took = []
    for _ in range(2):  # the first time it is compiled
        start = time.perf_counter()
        sampled = bk.sample(data, "pass@4", difficulty="beta", progress=False, rng=1)
        took.append(time.perf_counter() - start)
    first, seconds = took
    sizes = az.ess(sampled["posterior"].to_dataset()[["mean_p", "icc", "pass_at_k"]])
    rate = min(float(sizes[name].min()) for name in sizes) / seconds
    label = f"NUTS, M=500, n=16: {rate:.0f} ESS/s, compiling {first - seconds:.1f} s"
    return [
        (label, f"{seconds:.2f} s", f"{1e3 * seconds / exact:.1f} x evaluate", ""),
        ("evaluate, the same data and metric, 4000 draws", f"{exact:.0f} ms", "", ""),
    ]


def main() -> None:
    """Print the table, and write it if a file is named."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", type=Path, help="CSV file for the table.")
    target = options.parse_args().write
    found = [
        *point_metrics(),
        *moments(),
        *pooling(),
        *sampling(),
        *categories.rows(median_ms),
        *guessing.rows(median_ms),
        *systems.rows(median_ms),
        *scaling.rows(median_ms),
    ]
    table = Table(title="bayesatk benchmarks", title_justify="left", box=None)
    for heading in HEADINGS:
        table.add_column(heading)
    for row in found:
        table.add_row(*(escape(cell) for cell in row))
    console = Console(width=140)
    console.print(table)
    console.print(_machine())
    if target is not None:
        _write(target, found)


HEADINGS = ("what", "time", "ratio", "goal")


def _machine() -> str:
    names = ("bayesatk", "numpy", "scipy", "pymc", "nutpie", "scorio", "fast-poibin")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    machine = platform.processor() or platform.machine()
    python = f"Python {platform.python_version()}"
    return f"{machine}, {os.cpu_count()} cores, one thread; {python}, {versions}"


def _write(target: Path, rows: list[Row]) -> None:
    """Write the table, with what it was measured on in a first line that begins with #."""
    with target.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {datetime.now(UTC):%Y-%m-%d}; {_machine()}\n")
        csv.writer(file, lineterminator="\n").writerows([HEADINGS, *rows])


if __name__ == "__main__":
    sys.exit(main())
