"""Coverage of 95% intervals of a success rate from marks of a judge that errs.

    python -m benchmarks.judge_coverage --replications 100

True difficulties are Beta(1.2, 0.8), mean 0.6; the target is that mean, of questions like these.
The calibration set is a random sample of such trials, as prediction-powered inference needs.
Compared: this library with judge= (single Betas) and without; the Rogan-Gladen estimate with its
delta-method interval (Rogan and Gladen 1978, the variance of the rate from means by question); and
PPI++ (Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453, algorithm for a mean, power-tuned). A
cell is a pair of rates, a calibration set and a size of data; replications are appended one by one,
and a run that is started again skips what is there. The last lines printed are the table of
docs/judge_error.md.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.progress import track

import bayesatk as bk
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from bayesatk.priors import HyperPrior

DIFFICULTY, MEAN = (1.2, 0.8), 0.6
NORMAL = 1.959964
METHODS = ("judge=", "as marked", "Rogan-Gladen", "PPI++")

Array = NDArray[np.float64]
Ends = tuple[float, float]


class Cell(NamedTuple):
    """Rates of the judge, trials marked twice, questions, and trials of each."""

    sensitivity: float
    specificity: float
    labels: int
    questions: int
    trials: int


CELLS = [Cell(*one) for one in product((0.7, 0.95), (0.8, 0.98), (50, 500), (100, 500), (1, 4))]


class Data(NamedTuple):
    """Marks by question; truth and mark of every trial of the calibration set."""

    marks: NDArray[np.int64]
    truth: NDArray[np.bool_]
    marked: NDArray[np.bool_]


def simulate(cell: Cell, rng: np.random.Generator) -> Data:
    """Draw questions, trials and marks."""

    def mark(right: NDArray[np.bool_]) -> NDArray[np.bool_]:
        says = np.where(right, cell.sensitivity, 1.0 - cell.specificity)
        return np.asarray(rng.random(right.shape) < says)

    p = rng.beta(*DIFFICULTY, cell.questions)
    right = rng.random((cell.questions, cell.trials)) < p[:, None]
    truth = rng.random(cell.labels) < MEAN
    return Data(mark(right).sum(axis=1), truth, mark(truth))


def posterior(cell: Cell, data: Data, judge: bk.JudgeError | None) -> Ends:
    """Return the interval of this library."""
    counts = np.stack([cell.trials - data.marks, data.marks], axis=1)
    prior, (metric,) = HyperPrior(families="beta"), parse("pass@1")
    rates = None if judge is None else JudgeRates(judge)
    fitted = CountModel.of(prior, counts, judge=rates).fit([metric])
    (law,) = fitted.distributions()[1]
    low, high = law.quantile([0.025, 0.975])
    return float(low), float(high)


def rogan_gladen(cell: Cell, data: Data) -> Ends:
    """Return the estimate of Rogan and Gladen with its delta-method interval."""
    each = data.marks / cell.trials
    rate, variance = each.mean(), each.var(ddof=1) / cell.questions
    right, wrong = data.marked[data.truth], data.marked[~data.truth]
    s, f = right.mean(), wrong.mean()
    estimate = (rate - f) / (s - f)
    variance += estimate**2 * s * (1 - s) / len(right) + (1 - estimate) ** 2 * f * (1 - f) / len(
        wrong
    )
    half = NORMAL * np.sqrt(variance) / abs(s - f)
    return float(estimate - half), float(estimate + half)


def ppi(cell: Cell, data: Data) -> Ends:
    """Return the interval of PPI++: the labelled mean, with marks as a control variate."""
    each = data.marks / cell.trials
    truth, marked = data.truth.astype(float), data.marked.astype(float)
    unlabelled = each.var(ddof=1) / cell.questions
    cross = np.cov(truth, marked)
    tuned = cross[0, 1] / cell.labels / (cross[1, 1] / cell.labels + unlabelled)
    tuned = float(np.clip(tuned, 0.0, 1.0)) if np.isfinite(tuned) else 0.0
    estimate = truth.mean() + tuned * (each.mean() - marked.mean())
    variance = tuned**2 * unlabelled + (truth - tuned * marked).var(ddof=1) / cell.labels
    half = NORMAL * np.sqrt(variance)
    return float(estimate - half), float(estimate + half)


def replication(cell: Cell, number: int) -> dict[str, object]:
    """Return the intervals of one data set; none where the judge is refused."""
    rng = np.random.default_rng([number, *(int(100 * one) for one in cell)])
    data = simulate(cell, rng)
    right, wrong = data.marked[data.truth], data.marked[~data.truth]
    known = {"cell": list(cell), "number": number}
    try:
        judge = bk.JudgeError(int(right.sum()), len(right), int(wrong.sum()), len(wrong))
    except ValueError:
        return {**known, "ends": None}
    ends = (
        posterior(cell, data, judge),
        posterior(cell, data, None),
        rogan_gladen(cell, data),
        ppi(cell, data),
    )
    return {**known, "ends": ends}


def coverage(found: list[dict[str, object]]) -> pd.DataFrame:
    """Return shares of intervals that hold the truth, and mean widths, by cell and method."""
    rows = list(_held(found))
    table = pd.DataFrame(rows)
    index = [*Cell._fields, "replications"]
    held = table.pivot_table(index=index, columns="method", values="held")[list(METHODS)]
    width = table.pivot_table(index=index, columns="method", values="width")[list(METHODS)]
    width.columns = [f"width {name}" for name in width.columns]
    return pd.concat([held, width], axis=1).round(3)


def _held(found: list[dict[str, object]]) -> Iterator[dict[str, object]]:
    known = [one for one in found if one["ends"] is not None]
    number = pd.Series([tuple(one["cell"]) for one in known]).value_counts()  # type: ignore[arg-type]
    for one in known:
        cell = tuple(one["cell"])  # type: ignore[arg-type]
        for method, (low, high) in zip(METHODS, one["ends"], strict=True):  # type: ignore[call-overload]
            yield {
                **dict(zip(Cell._fields, cell, strict=True)),
                "replications": int(number[cell]),
                "method": method,
                "held": low <= MEAN <= high,
                "width": high - low,
            }


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results/judge_coverage.jsonl")
    )
    options = parser.parse_args()
    done = []
    if options.output.exists():
        done = [json.loads(line) for line in options.output.read_text().splitlines()]
    keys = {(tuple(one["cell"]), one["number"]) for one in done}
    cells = product(range(options.replications), CELLS)
    left = [(cell, n) for n, cell in cells if (tuple(cell), n) not in keys]
    with options.output.open("a") as file:
        for cell, n in track(left, "Coverage"):
            done.append(replication(cell, n))
            file.write(json.dumps(done[-1]) + "\n")
            file.flush()
    table = coverage(done)
    print(table.to_string())
    print(pd.DataFrame(list(_held(done))).groupby("method")["held"].agg(["mean", "count"]))


if __name__ == "__main__":
    main()
