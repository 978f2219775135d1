"""How often the family-free range holds the truth, and how wide it is.

    python -m benchmarks.family_free_range --write docs/tables/family_free_range.csv

Every cell (difficulty shape, questions, trials) has a seed of its own. The range promises 95% for
all metrics of a data set together; the columns count data sets in which it held all of them.
"""

import argparse
import hashlib
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from rich.progress import track

from bayesatk.core.pooling.moment_range import metric_ranges
from bayesatk.core.pooling.states import States
from bayesatk.metrics.grid import parse
from benchmarks.shapes import POPULATION, SHAPES

METRICS = parse("pass@4 pass@16 pass@64")
QUESTIONS, TRIALS = (50, 200), (4, 16)


def run_cell(shape: str, questions: int, trials: int, replications: int) -> dict[str, np.ndarray]:
    """Return coverage of both targets, mean width by metric, and share of data sets explained."""
    digest = hashlib.sha256(f"{shape} {questions} {trials}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:6], "big"))
    draw, curves = SHAPES[shape], [metric.latent for metric in METRICS]
    everyone = draw(rng, POPULATION)
    population = np.array([curve(everyone).mean() for curve in curves])
    held, width, fits = np.zeros(2), np.zeros(len(METRICS)), 0.0
    for _ in range(replications):
        p = draw(rng, questions)
        states = States.of(rng.binomial(trials, p), np.full(questions, trials))
        found = metric_ranges(states.successes, states.trials, states.count, curves, 0.95)
        truth = np.stack([[curve(p).mean() for curve in curves], population], axis=1)
        inside = (found.lower - 1e-9 <= truth) & (truth <= found.upper + 1e-9)
        held += inside.all(axis=0)
        width += (found.upper - found.lower)[:, 1]
        fits += found.fits
    return {
        "held": held / replications,
        "width": width / replications,
        "truth": population,
        "fits": np.array(fits / replications),
    }


def rows(replications: int) -> pd.DataFrame:
    """Return the study: coverage of both targets, and truth and mean width of every metric."""
    found = []
    cells = list(product(SHAPES, QUESTIONS, TRIALS))
    for shape, questions, trials in track(cells, description="family-free range"):
        cell = run_cell(shape, questions, trials, replications)
        row = {
            "difficulties": shape,
            "questions": questions,
            "trials": trials,
            "data_sets": replications,
            "covered_these": cell["held"][0],
            "covered_like_these": cell["held"][1],
        }
        for metric, truth, width in zip(METRICS, cell["truth"], cell["width"], strict=True):
            row |= {f"{metric.label}_truth": truth, f"{metric.label}_width": width}
        found.append(row | {"explained": float(cell["fits"])})
    return pd.DataFrame(found).round(3)


def main() -> None:
    """Run the study, and print it or write it."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--replications", type=int, default=200)
    options.add_argument("--write", type=Path, help="CSV file for the table.")
    asked = options.parse_args()
    table = rows(asked.replications)
    print(table.to_string())
    if asked.write is not None:
        table.to_csv(asked.write, index=False)


if __name__ == "__main__":
    main()
