"""How often the verdicts of `bayesatk.claim` are right, on simulated systems whose truth is known.

    python -m benchmarks.verdicts [--replications 300] [--boards 75] [--questions 200] [--trials 8]

Difficulties are logit-normal. Pairs have difficulties correlated at 0.8 and a normal difference of
skill; identical systems have the same success probability on every question. Boards are of eight
identical systems.
"""

import argparse
from collections import Counter

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit

import bayesatk as bk

CORRELATION, SIGMA, SPREAD, ROPE = 0.8, 1.5, 0.3, 0.04
QUADRATURE = np.polynomial.hermite_e.hermegauss(61)
AHEAD = ("ahead", "ahead by more than the ROPE")


def systems(
    rng: np.random.Generator, skill: np.ndarray, correlation: float, questions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw success probabilities (system, question); return them and the true means by target."""
    common = rng.standard_normal(questions)
    own = rng.standard_normal((len(skill), questions))
    z = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    p = expit(skill[:, None] + SIGMA * z)
    points, weight = QUADRATURE
    population = expit(skill[:, None] + SIGMA * points) @ weight / weight.sum()
    return p, np.stack([p.mean(axis=1), population])


def verdicts(rng: np.random.Generator, p: np.ndarray, trials: int) -> list[dict]:
    """Simulate trials, and return the rows of the comparison."""
    counts = rng.binomial(trials, p)
    data = bk.tally((counts, np.full(p.shape, trials)), systems=list(range(len(p))))
    fit = bk.evaluate(data, "pass@1", draws=50, rng=1)
    return bk.table(bk.compare(fit, rope=ROPE), "comparison").to_dict("records")


def pairs(replications: int, questions: int, trials: int) -> dict[str, Counter]:
    """Count verdicts on pairs that differ by some skill, and how many of each were true."""
    found = {target: Counter() for target in ("questions", "population")}
    for seed in track(range(replications), description="pairs"):
        rng = np.random.default_rng([1, seed])
        skill = np.array([0.3, 0.3 + SPREAD * rng.standard_normal()])
        p, truth = systems(rng, skill, CORRELATION, questions)
        for row in verdicts(rng, p, trials):
            one = truth[["questions", "population"].index(row["target"])]
            gap = one[row["system"]] - one[row["other"]]
            true = {
                "ahead": gap > 0.0,
                "ahead by more than the ROPE": gap > ROPE,
                "practically equivalent": abs(gap) <= ROPE,
                "not separated": True,
            }[row["verdict"]]
            found[row["target"]][row["verdict"], bool(true)] += 1
    return found


def identical(replications: int, count: int, questions: int, trials: int) -> dict[str, float]:
    """Share of boards of identical systems in which any pair is called ahead."""
    named = Counter()
    for seed in track(range(replications), description=f"{count} identical systems"):
        rng = np.random.default_rng([2, count, seed])
        p, _ = systems(rng, np.full(count, 0.3), 1.0, questions)
        rows = verdicts(rng, p, trials)
        for target in ("questions", "population"):
            named[target] += any(r["verdict"] in AHEAD for r in rows if r["target"] == target)
    return {target: named[target] / replications for target in named}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=300, help="pairs of either kind")
    parser.add_argument("--boards", type=int, default=75, help="of eight identical systems")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--trials", type=int, default=8)
    options = parser.parse_args()
    design, console = (options.questions, options.trials), Console(width=120)
    for target, counts in pairs(options.replications, *design).items():
        table = Table("verdict", "pairs", "true", title=target)
        for verdict in (*AHEAD, "practically equivalent", "not separated"):
            right, wrong = counts[verdict, True], counts[verdict, False]
            share = f"{right / (right + wrong):.3f}" if right + wrong else ""
            table.add_row(verdict, str(right + wrong), share)
        console.print(table)
    for count, boards in ((2, options.replications), (8, options.boards)):
        if boards:
            found = identical(boards, count, *design)
            console.print(f"{count} identical systems, some pair called ahead: {found}")


if __name__ == "__main__":
    main()
