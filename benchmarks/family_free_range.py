"""How often the family-free range holds the truth, and how wide it is.

    python -m benchmarks.family_free_range --write docs/family_free_range.md

Every cell (difficulty shape, questions, trials) has a seed of its own. The range promises 95% for
all metrics of a data set together; the columns count data sets in which it held all of them.
"""

import argparse
import hashlib
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from rich.progress import track
from scipy.special import expit

from bayesatk.core.moment_range import metric_ranges
from bayesatk.core.states import States
from bayesatk.metrics.grid import parse

METRICS = parse("pass@4 pass@16 pass@64")
QUESTIONS, TRIALS = (50, 200), (4, 16)
POPULATION = 1_000_000  # difficulties that the population value is the mean over

Draw = Callable[[np.random.Generator, int], np.ndarray]


def _with(share: float, value: float, a: float, b: float) -> Draw:
    """Return a share of questions of one difficulty, and Beta(a, b) for the rest."""
    return lambda rng, size: np.where(rng.random(size) < share, value, rng.beta(a, b, size))


def _clusters(rng: np.random.Generator, size: int) -> np.ndarray:
    easy = rng.random(size) < 0.5
    return np.where(easy, rng.beta(20, 3, size), rng.beta(2, 20, size))


SHAPES: dict[str, Draw] = {
    "10% impossible, rest Beta(1.5, 1.5)": _with(0.1, 0.0, 1.5, 1.5),
    "30% impossible, rest Beta(1.5, 1.5)": _with(0.3, 0.0, 1.5, 1.5),
    "20% solved, rest Beta(1, 6)": _with(0.2, 1.0, 1.0, 6.0),
    "Beta(20, 3) and Beta(2, 20), half each": _clusters,
    "log p ~ N(-4, 2)": lambda rng, size: np.minimum(np.exp(rng.normal(-4, 2, size)), 1.0),
    "logit p ~ N(-1, 2)": lambda rng, size: expit(rng.normal(-1, 2, size)),
    "Beta(.3, .3)": lambda rng, size: rng.beta(0.3, 0.3, size),
    "Beta(1, 3)": lambda rng, size: rng.beta(1, 3, size),
    "Beta(2, .5)": lambda rng, size: rng.beta(2, 0.5, size),
}


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
        "# The family-free range in simulation", "",
        "Written by `python -m benchmarks.family_free_range --write docs/family_free_range.md`.",
        f"{replications} data sets a row; 95% ranges by `extrapolation_range`. Those of a data",
        "set hold if all three hold the truth. With equal trials both targets have the same range;",
        "`like these` is the population, and the truths shown are its.", "",
        "| difficulties | questions x trials | held, these | held, like these | "
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
