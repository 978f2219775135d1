"""Coverage of 95% intervals of plurality@5, whose questions and answers the model did not draw.

    python -m benchmarks.coverage_votes --sets 20 --output results.jsonl
    python -m benchmarks.coverage_votes --sets 0 --output results.jsonl    # the table alone

All cells get a set before any gets a second; every set has a seed of its own, and a run that is
started again skips the sets that are there. ``--pooling none`` is the flat prior by question.
"""

import argparse
import json
from functools import cache
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

import bayesatk as bk
from bayesatk.core.question.ballot import plurality_latent

SIZES = ((30, 5), (30, 20), (150, 5), (150, 20))  # questions and trials
SHAPES = ("Beta(.5, .5)", "two clusters")
ANSWERS = ("sizes 1, 1/2, ... 1/8", "a third have a popular one", "four choices")
_K = 5
_MANY = 20_000  # questions whose mean stands for all questions like these


def success(shape: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the shares of right answers of questions."""
    if shape == "Beta(.5, .5)":
        return rng.beta(0.5, 0.5, size)
    low = rng.random(size) < 0.3
    return np.where(low, rng.beta(2.0, 20.0, size), rng.beta(12.0, 3.0, size))


def wrong_shares(kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the shares of wrong answers among the wrong trials of questions."""
    if kind == ANSWERS[0]:
        shares = np.tile(1.0 / np.arange(1, 9), (size, 1))
    elif kind == ANSWERS[1]:
        shares = np.ones((size, 12))
        shares[rng.random(size) < 1.0 / 3.0, 0] = 44.0  # four fifths of the wrong trials
    else:
        shares = rng.dirichlet(np.ones(3), size)
    return shares / shares.sum(axis=1, keepdims=True)


def questions(
    cell: tuple[str, str, int, int, str], size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of answers, the right one first, and plurality@5 of questions."""
    p = success(cell[1], size, rng)[:, None]
    probability = np.concatenate([p, (1.0 - p) * wrong_shares(cell[4], size, rng)], axis=1)
    right = np.arange(probability.shape[1]) == 0
    return probability, plurality_latent(probability, right, [_K])[:, 0]


@cache
def population(shape: str, size: tuple[int, int], kind: str) -> float:
    """Return plurality@5 of all questions like these."""
    many = questions(("", shape, *size, kind), _MANY, np.random.default_rng(1))[1]
    return float(many.mean())


def one(cell: tuple[str, str, int, int, str], truth: float, number: int) -> dict[str, float]:
    """Return whether intervals cover, their widths, and how far their middles are off."""
    pooling, shape, size, trials, kind = cell
    rng = np.random.default_rng([number, SHAPES.index(shape), size, trials, ANSWERS.index(kind)])
    probability, values = questions(cell, size, rng)
    answers = [rng.choice(len(p), trials, p=p).astype(str).tolist() for p in probability]
    data = bk.tally(None, answers=answers, reference=["0"] * size)
    start = process_time()
    rows = bk.table(bk.evaluate(data, f"plurality@{_K}", pooling=pooling, rng=number))
    found = {"cpu": process_time() - start}
    for target, true in (("questions", values.mean()), ("population", truth)):
        row = rows[rows["target"] == target].iloc[0]
        found |= {
            f"{target} covers": float(row["ci_lower"] <= true <= row["ci_upper"]),
            f"{target} width": float(row["ci_upper"] - row["ci_lower"]),
            f"{target} bias": float(row["mean"] - true),
        }
    return found


def report(lines: list[dict[str, Any]]) -> None:
    """Print coverage, bias and width by cell, and by rows of the design."""
    names = ["pooling", "shape", "questions", "trials", "answers"]
    rows = [dict(zip(names, line["cell"], strict=True)) | line["found"] for line in lines]
    table = pd.DataFrame(rows)
    for by in (names, ["pooling"], ["shape"], ["questions"], ["trials"], ["answers"]):
        groups = table.groupby(by)
        values = groups.mean(numeric_only=True)
        print(values.filter(regex=" |cpu").assign(sets=groups.size()).round(3).to_string(), "\n")


def main() -> None:
    """Simulate the sets that are not there yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=20, help="of each cell")
    parser.add_argument("--first", type=int, default=0, help="number of the first set")
    parser.add_argument("--pooling", default="partial")
    parser.add_argument("--output", type=Path, default=Path("coverage_votes.jsonl"))
    options = parser.parse_args()
    lines: list[dict[str, Any]] = []
    if options.output.exists():
        lines = [json.loads(line) for line in options.output.read_text().splitlines()]
    done = {(*line["cell"], line["number"]) for line in lines}
    for number in range(options.first, options.first + options.sets):
        for shape, size, kind in product(SHAPES, SIZES, ANSWERS):
            cell = (options.pooling, shape, *size, kind)
            if (*cell, number) not in done:
                found = one(cell, population(shape, size, kind), number)
                lines.append({"cell": cell, "number": number, "found": found})
                with options.output.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    report(lines)


if __name__ == "__main__":
    main()
