"""How often the verdicts of `bayesatk.claim` are right, on simulated systems whose truth is known.

    python -m benchmarks.claims [--replications 300] [--boards 75] [--questions 200] [--trials 8]

Difficulties are logit-normal. Pairs have difficulties correlated at 0.8 and a normal difference of
skill; identical systems have the same success probability on every question. Boards are of eight
identical systems.
"""

import argparse
from collections import Counter

import numpy as np
import pandas as pd
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
    return bk.comparison_table(bk.compare(fit, rope=ROPE, rng=1)).to_dict("records")


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
                "ahead": gap > 0.0, "ahead by more than the ROPE": gap > ROPE,
                "practically equivalent": abs(gap) <= ROPE, "not separated": True,
            }[row["verdict"]]  # fmt: skip
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


def solved_for(p: np.ndarray, cost: np.ndarray, spend: float) -> float:
    """Return the share of questions solved if each is tried until it is, for a mean spend."""
    failed = (1.0 - p) ** np.arange(200)[:, None]
    paid = (cost * (1.0 - failed) / p).mean(axis=1)
    return float(np.interp(spend, paid, 1.0 - failed.mean(axis=1)))


def of_costs(
    replications: int, questions: int = 60, trials: int = 4
) -> list[tuple[str, float, bool]]:
    """Return the kind and stated probability of claims about cost, and whether each is true.

    Both systems answer the same questions; harder ones cost more, and trials of a question differ
    by a lognormal factor. The truth is the mean over these questions: of one try of each, or of as
    many as a spend pays for.
    """
    said: list[tuple[str, float, bool]] = []
    for seed in track(range(replications), description="costs"):
        rng = np.random.default_rng([4, seed])
        skill, price = rng.normal(0.3, 0.4, 2), np.exp(rng.normal(0.0, 0.25, 2))
        p, truth = systems(rng, skill, CORRELATION, questions)
        level = price[:, None] * np.exp(-0.3 * (p - 0.5) + 0.4 * rng.standard_normal(p.shape))
        marks = (rng.random((*p.shape, trials)) < p[..., None]).astype(int)
        paid = level[..., None] * np.exp(rng.normal(-0.125, 0.5, marks.shape))
        names = ("a", "b")
        data = bk.tally(
            dict(zip(names, marks, strict=True)), cost=dict(zip(names, paid, strict=True))
        )
        share, spend = rng.uniform(0.4, 0.9), float(rng.uniform(0.5, 3.0))
        costs = bk.costs.evaluate_cost(data, [1], [spend], rng=1)
        pair, (solved, mean) = [(0, 1), (1, 0)], (truth[0], level.mean(axis=1))
        on = {"target": "questions", "k": 1}
        claims = [
            {"says": "not worse and cheaper than", "system": names[i], "other": names[j], **on}
            for i, j in pair
        ] + [{"says": "on the Pareto front", "system": names[i], **on} for i, _ in pair]
        claims += [
            {"says": "solves more than", "system": name, "target": "questions", "share": share,
             "spend": spend}
            for name in names
        ]  # fmt: skip
        table = bk.table(bk.decide.check_claims(claims, None, costs), "claims")
        true = [solved[i] >= solved[j] and mean[i] < mean[j] for i, j in pair]
        true += [solved[i] > solved[j] or mean[i] < mean[j] for i, j in pair]
        true += [solved_for(*row, spend) > share for row in zip(p, level, strict=True)]
        kinds = [claim["says"] for claim in claims]
        said += zip(kinds, table["probability"].tolist(), map(bool, true), strict=True)
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=300, help="pairs of either kind")
    parser.add_argument("--boards", type=int, default=75, help="of eight identical systems")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--costs", type=int, default=60, help="pairs with costs")
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
    said = pd.DataFrame(of_costs(options.costs), columns=["kind", "said", "true"])
    said["kind"] = said["kind"].where(said["kind"] == "solves more than", "cheaper, front")
    said["bin"] = np.digitize(said["said"], (0.05, 0.2, 0.5, 0.8, 0.95))
    console.print(said.groupby(["kind", "bin"]).agg(["mean", "size"]).round(3).to_string())


if __name__ == "__main__":
    main()
