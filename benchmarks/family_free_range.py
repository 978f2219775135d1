"""How often the family-free range holds the truth, and how wide it is.

    python -m benchmarks.family_free_range --write docs/family_free_range.md

Every cell (difficulty shape, questions, trials) has a seed of its own. The range promises 95% for
all metrics of a data set together; the columns count data sets in which it held all of them.
"""

import argparse
import hashlib
from itertools import product
from pathlib import Path

import numpy as np
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


def page(replications: int) -> str:
    """Return the study as Markdown."""
    names = [metric.label for metric in METRICS]
    lines = [
        "# How often does the family-free range contain the truth?", "",
        "`bk.checks.extrapolation_range` gives a range for metrics beyond the observed trials that",
        "assumes nothing about difficulties ([more trials than were",
        "run](how_to/more_trials_than_run.md)). Here it is tested on simulated difficulties of",
        f"{len(SHAPES)} shapes, at 95% confidence.", "",
        f"**How to read it.** A row is {replications} simulated data sets. *Covered* is the share",
        "of them in which the ranges of all three metrics contain the truth, for these questions",
        "and for questions like these. Then come the truth of each metric for questions like these",
        "and the mean width of its range. With equal trials both targets have the same range.", "",
        "| difficulties | questions x trials | covered, these | covered, like these | "
        + " | ".join(f"{name}: truth, width" for name in names) + " |",
        "|---" * (4 + len(names)) + "|",
    ]  # fmt: skip
    cells = list(product(SHAPES, QUESTIONS, TRIALS))
    lowest, explained = 1.0, 1.0
    for shape, questions, trials in track(cells, description="family-free range"):
        found = run_cell(shape, questions, trials, replications)
        lowest = min(lowest, float(found["held"].min()))
        explained = min(explained, float(found["fits"]))
        numbers = [f"{t:.2f}, {w:.2f}" for t, w in zip(found["truth"], found["width"], strict=True)]
        held = [f"{each:.3f}" for each in found["held"]]
        row = [shape, f"{questions} x {trials}", *held, *numbers]
        lines.append(f"| {' | '.join(row)} |")
    lines += ["", f"Lowest coverage of any row: {lowest:.3f}. Share of data sets whose counts some"]
    lines += [f"difficulty distribution explains at 95%: at least {explained:.3f}.", ""]
    lines += ["Written by `python -m benchmarks.family_free_range --write"]
    lines += ["docs/family_free_range.md`.", ""]
    return "\n".join(lines)


def main() -> None:
    """Run the study, and print it or write it."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--replications", type=int, default=200)
    options.add_argument("--write", type=Path, help="Markdown file for the table.")
    asked = options.parse_args()
    text = page(asked.replications)
    if asked.write is None:
        print(text)
    else:
        asked.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
