"""Simulation-based calibration of closed forms and PyMC models of marks and scores, at length.

    python -m benchmarks.calibration [--workers 2] [--write docs/tables/calibration.csv]

Replications are kept in ``benchmarks/results/calibration`` as they are done, and are not done
again; with ``--workers`` batches go to a local dask cluster of so many processes, to the same
numbers. Times are of what was done in this run.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import bayesatk as bk

RESULTS = Path(__file__).parent / "results" / "calibration"
SCORES = (0.0, 0.5, 1.0)
BETA = {"difficulty": "beta"}


@dataclass(frozen=True)
class Run:
    """One study: a name for its file, a title, and the arguments of `bayesatk.checks.calibrate`."""

    name: str
    title: str
    size: tuple[int, int]
    metrics: str
    replications: int
    options: dict[str, Any] = field(default_factory=dict)


CLOSED = [
    Run("none", "pooling none", (6, 3), "pass@1,4 maj@3", 10_000, {"pooling": "none"}),
    Run("partial", "pooling partial", (6, 3), "pass@1,4 maj@3", 10_000, BETA),
    *(
        Run(name, f"partial, {name}", (8, 4), "pass@2,8", 1_000, {"difficulty": name})
        for name in ("inflated", "mixture", "averaged")
    ),
    Run("complete", "pooling complete", (6, 3), "pass@1,4 maj@3", 10_000, {"pooling": "complete"}),
    Run(
        "categories-none", "three categories, none", (6, 3), "bayes max@3", 10_000,
        {"pooling": "none", "scores": SCORES},
    ),
    Run(
        "categories-partial", "three categories, partial", (6, 3), "bayes max@3", 2_000,
        {"scores": SCORES, "prior": bk.priors.DirichletHyperPrior()},
    ),
    Run(
        "levels-partial", "three levels in order; icc ~ Beta(2, 6)", (12, 4), "bayes max@2", 300,
        {"scores": SCORES, "prior": bk.priors.HyperPrior(icc=(2.0, 6.0), families="beta")},
    ),
    Run(
        "categories-complete", "three categories, complete", (6, 3), "bayes max@3", 10_000,
        {"pooling": "complete", "scores": SCORES},
    ),
]  # fmt: skip
SAMPLED = [
    Run("pymc-none", "pooling none", (6, 3), "pass@2", 200, {"pooling": "none"}),
    Run("pymc-partial", "pooling partial", (6, 3), "pass@2", 200, BETA),
    *(
        Run(
            f"pymc-{name}", f"partial, {name}", (8, 4), "pass@2,8", 200, {"difficulty": name}
        )
        for name in ("inflated", "mixture", "averaged")
    ),
    Run("pymc-complete", "pooling complete", (6, 3), "pass@2", 200, {"pooling": "complete"}),
    Run(
        "pymc-categories", "three categories, partial", (6, 3), "bayes max@2", 200,
        {"scores": SCORES, "prior": bk.priors.DirichletHyperPrior()},
    ),
    Run(
        "pymc-categories-none", "three categories, none", (6, 3), "bayes", 200,
        {"pooling": "none", "scores": SCORES},
    ),
    Run(
        "pymc-categories-complete", "three categories, complete", (6, 3), "bayes", 200,
        {"pooling": "complete", "scores": SCORES},
    ),
]  # fmt: skip


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """Open a dask client on so many local processes, or none."""
    if not workers:
        yield None
        return
    from dask.distributed import Client

    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def row(run: Run, engine: str, client: Any) -> dict[str, Any]:
    """Run a study, or what is left of it, and return its row of the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    path, seed = RESULTS / f"{run.name}.jsonl", 2026
    found = bk.checks.calibrate(
        *run.size, run.metrics, engine=engine, replications=run.replications, rng=seed, path=path,
        client=client, **run.options,
    )  # fmt: skip
    table = found.table
    print(f"{engine} {run.title}: {found.verdict}, {time.perf_counter() - start:.0f} s", flush=True)
    return {
        "engine": engine.replace("_", " "), "model": run.title,
        "questions": run.size[0], "trials": run.size[1], "replications": run.replications,
        "quantities": len(table), "worst_p": f"{table['p_value'].min():.3g}",
        "would_catch": f"{table['detectable_bias'].max():.2f}", "verdict": found.verdict,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "PyTensor could not link to a BLAS")
    with cluster(options.workers) as client:
        rows = [row(run, "closed_form", client) for run in CLOSED]
        rows += [row(run, "pymc", client) for run in SAMPLED]
    table = pd.DataFrame(rows)
    if options.write:
        table.to_csv(options.write, index=False)
    print(table.to_string())


if __name__ == "__main__":
    main()
