"""Coverage of 95% intervals where a judge marks all trials and the truth of some is known.

    python -m benchmarks.truth_coverage --replications 50

Difficulties are Beta(2.1, 0.9), two clusters (Beta(18, 2) and, of three tenths, Beta(3, 7)) and
Beta(0.7, 0.3) in turn, so that most data are not drawn from the model. Labels are chosen at random
among all trials. In some cells the logits of both rates differ between questions (sd 1.5), which
is not the Beta that the model has. Compared, for pass@1 on these questions: ``truth=``; ``judge=``
with the counts of the same labels; the labels alone (normal interval of a mean); and PPI++
(Angelopoulos, Duchi and Zrnic 2023, arXiv:2311.01453), the mean of the labels with marks as a
control variate. Replications are appended one by one; a run that is started again skips what is
there. The last lines printed are a table.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.progress import track
from scipy.special import expit, logit

import bayesatk as bk

NORMAL = 1.959964
METRICS = ("pass@1", "pass@4", "pass^4")

Array = NDArray[np.float64]
Ends = tuple[float, float]


class Cell(NamedTuple):
    """Rates of the judge, trials in all and of each question, labels, sd of the logits of rates."""

    sensitivity: float
    specificity: float
    trials: int
    each: int
    labels: int
    spread: float


CELLS = [
    Cell(0.95, 0.6, 1000, 4, 150, 0.0), Cell(0.95, 0.6, 400, 1, 100, 0.0),
    Cell(0.9, 0.9, 1000, 4, 150, 0.0), Cell(0.8, 0.95, 1000, 4, 100, 0.0),
    Cell(0.8, 0.95, 400, 4, 300, 0.0), Cell(0.95, 0.6, 1000, 4, 150, 1.5),
    Cell(0.9, 0.9, 1000, 4, 300, 1.5),
]  # fmt: skip


class Data(NamedTuple):
    """Success probability of every question; marks, and truth (NaN where it is not known)."""

    p: Array
    marks: NDArray[np.int64]
    truth: Array


def simulate(cell: Cell, number: int) -> Data:
    """Draw questions, trials, marks and labels."""
    rng = np.random.default_rng([number, *(int(100 * value) for value in cell)])
    size = cell.trials // cell.each
    two = np.where(rng.random(size) < 0.7, rng.beta(18, 2, size), rng.beta(3, 7, size))
    p = (rng.beta(2.1, 0.9, size), two, rng.beta(0.7, 0.3, size))[number % 3]
    right = rng.random((size, cell.each)) < p[:, None]
    noise = cell.spread * rng.standard_normal((2, size, 1))
    rates = expit(logit([[[cell.sensitivity]], [[1.0 - cell.specificity]]]) + noise)
    marks = (rng.random(right.shape) < np.where(right, *rates)).astype(np.int64)
    truth = np.full(right.shape, np.nan)
    labelled = rng.choice(right.size, cell.labels, replace=False)
    truth.flat[labelled] = right.flat[labelled]
    return Data(p, marks, truth)


def labels_alone(data: Data) -> Ends:
    """Return the normal interval of the mean of the labels."""
    truth = data.truth[~np.isnan(data.truth)]
    half = NORMAL * truth.std(ddof=1) / np.sqrt(len(truth))
    return float(truth.mean() - half), float(truth.mean() + half)


def ppi(data: Data) -> Ends:
    """Return the interval of PPI++ for a mean, power-tuned."""
    known = ~np.isnan(data.truth)
    truth, marked, others = data.truth[known], data.marks[known], data.marks[~known]
    unlabelled = others.var(ddof=1) / len(others)
    cross = np.cov(truth, marked)
    tuned = cross[0, 1] / len(truth) / (cross[1, 1] / len(truth) + unlabelled)
    tuned = float(np.clip(tuned, 0.0, 1.0)) if np.isfinite(tuned) else 0.0
    estimate = truth.mean() + tuned * (others.mean() - marked.mean())
    variance = tuned**2 * unlabelled + (truth - tuned * marked).var(ddof=1) / len(truth)
    half = NORMAL * np.sqrt(variance)
    return float(estimate - half), float(estimate + half)


def from_elsewhere(data: Data) -> bk.JudgeError:
    """Return the counts of the labels as a calibration set."""
    known = ~np.isnan(data.truth)
    right, said = data.truth[known] == 1.0, data.marks[known] == 1
    return bk.JudgeError(
        int((right & said).sum()), int(right.sum()), int((~right & said).sum()), int((~right).sum())
    )


def replication(cell: Cell, number: int) -> dict[str, object]:
    """Return truths and intervals of one data set."""
    data = simulate(cell, number)
    p = data.p
    true = dict(zip(METRICS, (p.mean(), 1.0 - ((1.0 - p) ** 4).mean(), (p**4).mean()), strict=True))
    metrics = METRICS[: 1 if cell.each == 1 else 3]
    fit = bk.evaluate(bk.tally(data.marks, truth=data.truth), metrics, rng=number)
    ends = {
        f"truth= {row.metric}": (true[row.metric], row.ci_lower, row.ci_upper)
        for row in bk.table(fit).query("target == 'questions'").itertuples()
    }
    ends["labels alone"] = (true["pass@1"], *labels_alone(data))
    ends["PPI++"] = (true["pass@1"], *ppi(data))
    try:
        other = bk.evaluate(data.marks, "pass@1", judge=from_elsewhere(data), rng=number)
    except ValueError:  # a calibration set that says too little is refused
        pass
    else:
        row = bk.table(other).iloc[0]
        ends["judge="] = (true["pass@1"], row["ci_lower"], row["ci_upper"])
    return {"cell": list(cell), "number": number, "ends": ends}


def coverage(done: list[dict[str, object]]) -> pd.DataFrame:
    """Return shares of intervals that hold the truth, with mean widths, by cell and method."""
    rows = [
        {
            **dict(zip(Cell._fields, entry["cell"], strict=True)),  # type: ignore[call-overload]
            "method": method,
            "held": low <= true <= high,
            "width": high - low,
        }
        for entry in done
        for method, (true, low, high) in entry["ends"].items()  # type: ignore[attr-defined]
    ]
    groups = pd.DataFrame(rows).groupby([*Cell._fields, "method"])
    table = groups.agg(held=("held", "mean"), width=("width", "mean"), data=("held", "size"))
    return table.round(3)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=50)
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results/truth_coverage.jsonl")
    )
    options = parser.parse_args()
    options.output.parent.mkdir(exist_ok=True)
    done = []
    if options.output.exists():
        done = [json.loads(line) for line in options.output.read_text().splitlines()]
    keys = {(tuple(entry["cell"]), entry["number"]) for entry in done}
    with options.output.open("a") as file:
        for number in track(range(options.replications), "Coverage"):
            for cell in CELLS:
                if (tuple(cell), number) not in keys:
                    done.append(replication(cell, number))
                    file.write(json.dumps(done[-1]) + "\n")
                    file.flush()
    print(coverage(done).to_string())


if __name__ == "__main__":
    main()
