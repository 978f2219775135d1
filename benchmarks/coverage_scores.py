"""Coverage of 95% intervals of scores, whose difficulties the model did not draw.

    python -m benchmarks.coverage_scores --sets 10 --output results.jsonl
    python -m benchmarks.coverage_scores --sets 0 --output results.jsonl    # the tables alone

Levels are equally spaced; the marks of a question with expected score p are binomial over the
levels, or numbers with the distribution Beta(6 p, 6 (1 - p)) (0 levels). Metrics are the mean
score, the best of four (max@4), the probability to reach .75 by the law of scores ("reach") and
by a rule where scores are read ("rule": pass@1 and pass@4 of success="score >= 0.75"), and the t
interval of the mean. All cells get a set before any gets a second; every set has a seed of its
own, and a run that is started again skips the sets that are there.
"""

import argparse
import json
from functools import lru_cache
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import beta, binom
from scipy.stats import t as student

import bayesatk as bk

Array = NDArray[np.float64]
SHAPES = ("Beta(6, 2)", "two clusters", "20% at zero", "Beta(.5, .5)")
THRESHOLD = 0.75
_NUMBERS = 6.0  # parameters of a question's numbers, in all
_MANY = 20_000  # questions whose mean stands for all questions like these


class Cell(NamedTuple):
    """A place in the design; 0 levels are numbers."""

    levels: int
    questions: int
    trials: int
    shape: str


CELLS = [Cell(*cell) for cell in product((3, 5, 11, 101, 0), (40, 150), (1, 4), SHAPES)]


def questions(shape: str, size: int, rng: np.random.Generator) -> Array:
    """Return expected scores of questions."""
    if shape == "Beta(6, 2)":
        return rng.beta(6.0, 2.0, size)
    if shape == "Beta(.5, .5)":
        return rng.beta(0.5, 0.5, size)
    if shape == "20% at zero":
        return rng.beta(6.0, 2.0, size) * (rng.random(size) >= 0.2)
    low = rng.random(size) < 0.3
    return np.where(low, rng.beta(2.0, 20.0, size), rng.beta(12.0, 3.0, size))


def below(p: Array, levels: int, x: Array) -> Array:
    """Return the probabilities of a mark below each x; (questions, x)."""
    if levels:
        level = np.ceil(x * (levels - 1) - 1e-9)
        return np.asarray(binom.cdf(level - 1, levels - 1, p[:, None]))
    parameters = np.maximum(_NUMBERS * np.stack([p, 1.0 - p])[..., None], 1e-12)
    return np.where(p[:, None] > 0.0, beta.cdf(x, *parameters), 1.0)


def true_values(p: Array, levels: int, reached: float) -> dict[str, Array]:
    """Return the metrics of questions."""
    steps = np.linspace(0.0, 1.0, levels)[1:] if levels else (np.arange(200) + 0.5) / 200
    wrong = below(p, levels, np.array([THRESHOLD]))
    return {
        "mean": p,
        "max@4": (1.0 - below(p, levels, steps) ** 4).mean(axis=1),
        "reach": 1.0 - below(p, levels, np.array([reached]))[:, 0],
        "rule@1": 1.0 - wrong[:, 0],
        "rule@4": 1.0 - wrong[:, 0] ** 4,
        "t": p,
    }


def marks_of(p: Array, cell: Cell, rng: np.random.Generator) -> Array:
    """Return the marks of questions."""
    size = (cell.questions, cell.trials)
    if cell.levels:
        return rng.binomial(cell.levels - 1, p[:, None], size) / (cell.levels - 1)
    parameters = np.maximum(_NUMBERS * np.stack([p, 1.0 - p])[..., None], 1e-12)
    return np.where(p[:, None] > 0.0, rng.beta(*parameters, size), 0.0)


def intervals(marks: Array, cell: Cell, number: int) -> tuple[dict[Any, Any], float]:
    """Return the intervals by metric and target, and the score that "reach" is about."""
    levels = np.arange(cell.levels) / (cell.levels - 1)
    scores: Any = {level: level for level in levels.tolist()} if cell.levels else (0, 1)
    fit = bk.evaluate(bk.tally(marks, scores=scores), "bayes max@4", rng=number)
    passed = bk.tally(marks, scores=(0, 1), success=f"score >= {THRESHOLD}")
    rule = bk.evaluate(passed, "pass@1,4", rng=number)
    names = {"bayes": "mean", "max@4": "max@4", "pass@1": "rule@1", "pass@4": "rule@4"}
    ends = {
        (names[row.metric], row.target): (row.ci_lower, row.ci_upper)
        for result in (fit, rule)
        for row in bk.table(result).itertuples()
    }
    reached = THRESHOLD
    if cell.levels:
        rows = bk.table(fit, "categories")
        reached = float(rows["score"].iloc[(rows["score"] - THRESHOLD).abs().argmin()])
        for row in rows[rows["score"] == reached].itertuples():
            ends["reach", row.target] = (row.ci_lower, row.ci_upper)
    means = marks.mean(axis=1)
    half = student.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    ends["t", "population"] = (means.mean() - half, means.mean() + half)
    return ends, reached


def one(cell: Cell, number: int) -> dict[str, Any]:
    """Return the true value and the interval of every metric and target."""
    rng = np.random.default_rng([number, *cell[:3], SHAPES.index(cell.shape)])
    p = questions(cell.shape, cell.questions, rng)
    marks, start = marks_of(p, cell, rng), process_time()
    ends, reached = intervals(marks, cell, number)
    cpu = process_time() - start
    like_these = questions(cell.shape, _MANY, np.random.default_rng(1))
    true = {
        "questions": true_values(p, cell.levels, reached),
        "population": true_values(like_these, cell.levels, reached),
    }
    rows = [
        (metric, target, float(true[target][metric].mean()), float(low), float(high))
        for (metric, target), (low, high) in ends.items()
    ]
    return {"cell": cell, "number": number, "cpu": cpu, "ends": rows}


@lru_cache
def spread(levels: int, shape: str) -> dict[str, float]:
    """Return the sd of metrics between questions."""
    p = questions(shape, _MANY // 10, np.random.default_rng(1))
    return {name: float(of.std()) for name, of in true_values(p, levels, THRESHOLD).items()}


def of_many_draws(table: pd.DataFrame) -> Array:
    """Return the probability that an interval for questions like these covers, by row.

    Where it lies around the true value of its own questions is kept, and that value is taken to be
    normal around the value of all: the luck of drawing these questions is integrated.
    """
    drawn = table["of these"] - table["true"]
    sd = np.array([spread(row.levels, row.shape)[row.metric] for row in table.itertuples()])
    sd /= np.sqrt(table["questions"])
    ends = ((drawn - (table[end] - table["true"])) / sd for end in ("low", "high"))
    upper, lower = (ndtr(end) for end in ends)
    return np.asarray(np.where(table["target"] == "population", upper - lower, table["covers"]))


def report(lines: list[dict[str, Any]]) -> None:
    """Print coverage by rows of the design, and the cells that are low."""
    table = pd.DataFrame(
        [(*line["cell"], line["number"], *row) for line in lines for row in line["ends"]],
        columns=[*Cell._fields, "number", "metric", "target", "true", "low", "high"],
    )
    table["covers"] = (table["low"] <= table["true"]) & (table["true"] <= table["high"])
    table["width"] = table["high"] - table["low"]
    own = table["metric"].replace("t", "mean")
    keys = [*Cell._fields, "number"]
    known = table[table["target"] == "questions"].set_index([*keys, "metric"])["true"]
    table["of these"] = known.loc[list(zip(*(table[key] for key in keys), own, strict=True))].values
    table["covers many"] = of_many_draws(table)
    of_t = table[table["metric"] == "t"].set_index([*Cell._fields, "number"])["width"]
    for names in ([], ["levels"], ["questions"], ["trials"], ["shape"], ["levels", "trials"]):
        groups = table.groupby([*names, "metric", "target"])
        wide = groups[["covers", "covers many"]].mean().round(3).assign(sets=groups.size())
        print(wide.unstack(["metric", "target"]).T.to_string() if names else wide, "\n")
    mean = table.query("metric == 'mean' and target == 'population'")
    ratio = mean.set_index([*Cell._fields, "number"])["width"] / of_t
    print("width of the mean, like these, over t:", ratio.groupby(["levels", "trials"]).median())
    cells = table.groupby([*Cell._fields, "metric", "target"])["covers"].agg(["mean", "size"])
    print(cells[cells["mean"] < 0.9 - 1.64 * np.sqrt(0.09 / cells["size"])].to_string())


def main() -> None:
    """Simulate what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=10, help="of each cell")
    parser.add_argument("--first", type=int, default=0, help="number of the first set")
    parser.add_argument("--output", type=Path, default=Path("coverage_scores.jsonl"))
    options = parser.parse_args()
    lines: list[dict[str, Any]] = []
    if options.output.exists():
        lines = [json.loads(line) for line in options.output.read_text().splitlines()]
    done = {(Cell(*line["cell"]), line["number"]) for line in lines}
    for number, cell in product(range(options.first, options.first + options.sets), CELLS):
        if (cell, number) not in done:
            lines.append(one(cell, number))
            with options.output.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    report(lines)


if __name__ == "__main__":
    main()
