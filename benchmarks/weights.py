"""Coverage of 95% intervals of weighted means, where weights go with difficulty and where not.

    python -m benchmarks.weights --replications 300 --output benchmarks/results/weights.jsonl

A cell is a relation, a pooling and a number of trials; replications have seeds of their own, are
appended one by one, and a run that is started again skips what is there. The last line printed is
the table of docs/your_questions.md.
"""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.progress import track
from scipy.special import expit

import bayesatk as bk

QUESTIONS, METRICS = 60, "pass@1,4"
SPREAD = 0.8  # standard deviation of the log weights
RELATIONS = {"unrelated": 0.0, "heavier are harder": -1.0}  # slope of logit p in log weight
TRIALS, POOLINGS = (1, 4, 16), ("none", "partial", "covariates")

Array = NDArray[np.float64]


def questions(slope: float, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw weights and success probabilities of questions."""
    log = rng.normal(0.0, SPREAD, size)
    return np.exp(log), expit(slope * log + rng.normal(0.0, 1.5, size))


def weighted(weight: Array, p: Array) -> Array:
    """Return pass@1 and pass@4."""
    return np.array([np.average(1.0 - (1.0 - p) ** k, weights=weight) for k in (1, 4)])


def truths() -> dict[str, Array]:
    """Return E[w g] / E[w], from ten million questions (standard error below 0.0003)."""
    rng = np.random.default_rng(1)
    return {name: weighted(*questions(slope, 10**7, rng)) for name, slope in RELATIONS.items()}


def replication(relation: str, pooling: str, trials: int, number: int) -> dict[str, object]:
    """Evaluate one data set, and say which intervals hold the truth."""
    rng = np.random.default_rng([number, trials])
    weight, p = questions(RELATIONS[relation], QUESTIONS, rng)
    known = {"log_weight": np.log(weight)}
    data = bk.tally(rng.binomial(trials, p), trials=trials, weight=weight, covariates=known)
    options = {
        "none": {"pooling": "none"},
        "partial": {"difficulty": "beta", "population": "bootstrap"},
        "covariates": {"covariates": ["log_weight"]},
    }
    fit = bk.evaluate(data, METRICS, rng=number, draws=500, **options[pooling])
    rows = bk.table(fit)
    return {
        "relation": relation,
        "pooling": pooling,
        "trials": trials,
        "number": number,
        "these": weighted(weight, p).tolist(),
        "ends": rows[["metric", "target", "ci_lower", "ci_upper"]].values.tolist(),
        "noted": any("larger weights" in note for note in fit.notes),
    }


def coverage(found: pd.DataFrame) -> pd.DataFrame:
    """Return shares of intervals that hold the truth, by cell."""
    known, rows = truths(), []
    for each in found.to_dict("records"):
        for metric, target, low, high in each["ends"]:
            place = ("pass@1", "pass@4").index(metric)
            truth = each["these"] if target == "questions" else known[each["relation"]]
            if metric == "pass@4" and each["trials"] < 4:
                continue
            own = {name: each[name] for name in ("relation", "pooling", "trials", "noted")}
            held = low <= truth[place] <= high
            rows.append({**own, "metric": metric, "target": target, "held": held})
    index = ["relation", "pooling", "trials"]
    table = pd.DataFrame(rows)
    held = table.pivot_table(index=index, columns=["metric", "target"], values="held")
    held.columns = [" ".join(pair) for pair in held.columns]
    return held.assign(noted=table.groupby(index)["noted"].mean()).round(3)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/weights.jsonl"))
    options = parser.parse_args()
    done = []
    if options.output.exists():
        done = [json.loads(line) for line in options.output.read_text().splitlines()]
    keys = {(one["relation"], one["pooling"], one["trials"], one["number"]) for one in done}
    cells = product(range(options.replications), RELATIONS, POOLINGS, TRIALS)
    left = [(r, p, t, n) for n, r, p, t in cells if (r, p, t, n) not in keys]
    with options.output.open("a") as file:
        for cell in track(left, "Weights"):
            done.append(replication(*cell))
            file.write(json.dumps(done[-1]) + "\n")
            file.flush()
    print(coverage(pd.DataFrame(done)).to_string())


if __name__ == "__main__":
    main()
