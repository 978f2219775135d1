"""How often gates on the same system flip, and what they do at a true difference, as simulated.

    python -m benchmarks.gates [--replications 100]

The same questions in every run, as in continuous integration: their success probabilities are drawn
once, every gate is `bayesatk.decide.gate` on new trials of both systems. Stated: what the gates say
of themselves, averaged.
"""

import argparse
from collections import Counter

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table

import bayesatk as bk
from bayesatk.comparison.gates.gate import Gate, gate_of, joined_outcomes

# Questions, trials, metric, margin, target; difficulties are Beta with this mean and icc.
DESIGNS = (
    (100, 4, "pass@1", 0.06, "questions"), (100, 1, "pass@1", 0.12, "questions"),
    (300, 8, "pass^4", 0.04, "population"),
)  # fmt: skip
MEAN, ICC = 0.65, 0.4
REPEATED = (60, 4, "pass@1", 0.06, "questions")
BINS = (0.0, 0.5, 0.7, 0.9, 1.0)  # of stated replication probabilities
VERDICTS = ("pass", "fail", "inconclusive")


def gates(
    design: tuple, worse: float, replications: int, seed: int, pooling: str = "partial"
) -> list[Gate]:
    """Simulate gates; every success probability p of the new system is p to the power `worse`."""
    questions, trials, metric, margin, target = design
    rng = np.random.default_rng([seed, questions, trials])
    total = (1.0 - ICC) / ICC
    p = rng.beta(MEAN * total, (1.0 - MEAN) * total, questions)
    policy = bk.decide.GatePolicy(metric, margin=margin, target=target, pooling=pooling)
    full = np.full((questions,), trials)
    return [
        gate_of(
            joined_outcomes((rng.binomial(full, p**worse), full), (rng.binomial(full, p), full)),
            policy,
        )
        for _ in track(range(replications), description=f"{design} {worse}")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    replications, console = parser.parse_args().replications, Console(width=140)
    for design in DESIGNS:
        table = Table("design", "passes", "stated", "fails", "stated", "flips", "stated")
        found = gates(design, 1.0, replications, 1)
        share = Counter(one.verdict for one in found)
        rates = [one.design.same_system for one in found]
        flips = 1.0 - sum((share[name] / replications) ** 2 for name in VERDICTS)
        row = (
            share["pass"] / replications,
            np.mean([one.passes for one in rates]),
            share["fail"] / replications,
            np.mean([one.fails for one in rates]),
            flips,
            np.mean([one.flip for one in rates]),
        )
        table.add_row(str(design), *(f"{value:.2f}" for value in row))
        console.print(table)
    for pooling in ("none", "partial"):
        console.print(f"replication probability, pooling {pooling}")
        console.print(repeated(2 * replications, pooling).to_string())


def repeated(pairs: int, pooling: str) -> pd.DataFrame:
    """Return how often the same gate, run again, gives the verdict it gave, by what was stated.

    The systems of a pair of gates differ by a random amount, and have questions of their own.
    """
    rng, rows = np.random.default_rng(3), []
    for seed in range(pairs):
        worse = float(np.exp(0.3 * rng.standard_normal()))
        one, other = gates(REPEATED, worse, 2, 100 + seed, pooling)
        rows.append((one.verdict, one.replication, one.verdict == other.verdict))
    found = pd.DataFrame(rows, columns=["verdict", "stated", "repeated"])
    found["from"] = pd.cut(found["stated"], BINS, include_lowest=True).map(lambda own: own.left)
    own = found.groupby("from", observed=True).agg(
        gates=("stated", "size"), stated=("stated", "mean"), repeated=("repeated", "mean")
    )
    whole = found[["stated", "repeated"]].mean()
    own.loc["all"] = [len(found), *whole]
    return own.round(3)


if __name__ == "__main__":
    main()
