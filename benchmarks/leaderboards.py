"""Leaderboards with known truth: is P(best) calibrated, are tiers right, are equals kept together.

    python -m benchmarks.leaderboards [--replications 300] [--spread 0.3]

Systems answer the same questions, with logit-normal difficulties correlated at 0.8, four trials
each; the closed form fits Beta difficulties, as it would fit yours.
"""

import argparse
import time
from collections.abc import Callable
from itertools import product

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit

import bayesatk as bk
from bayesatk.comparison.pairs.contrasts import tiers
from bayesatk.comparison.pairs.draws import Subset
from bayesatk.comparison.pairs.pairwise import paired_draws
from bayesatk.results.result import Result

SYSTEMS, QUESTIONS, TRIALS, CORRELATION, SIGMA = 6, 80, 4, 0.8, 1.5
EDGES = np.array([0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0])
ALPHA = 0.1
QUADRATURE = np.polynomial.hermite_e.hermegauss(61)


def leaderboard(rng: np.random.Generator, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw counts (system, question), and return the true score of every system on both targets."""
    mu = 0.3 + spread * rng.standard_normal(SYSTEMS)
    common = rng.standard_normal(QUESTIONS)
    own = rng.standard_normal((SYSTEMS, QUESTIONS))
    z = np.sqrt(CORRELATION) * common + np.sqrt(1.0 - CORRELATION) * own
    p = expit(mu[:, None] + SIGMA * z)
    points, weight = QUADRATURE
    population = expit(mu[:, None] + SIGMA * points) @ weight / weight.sum()
    return rng.binomial(TRIALS, p), np.stack([p.mean(axis=1), population])


def posterior(template, counts: np.ndarray, seed: int) -> list[np.ndarray]:
    """Joint draws (draws, systems) for both targets."""
    fit = template.copy()
    observed = fit["observed_data"].to_dataset()
    fit["observed_data"] = type(fit)(observed.assign(successes=(("system", "question"), counts)))
    own = Result.of(fit)
    drawn = paired_draws(own, Subset.whole(own), np.random.default_rng(seed))
    return [each.values[:, 0] for each in drawn]


def study(replications: int, spread: float) -> dict[str, np.ndarray]:
    """Return what was claimed and what was true, by target."""
    template = bk.evaluate(
        (np.full((SYSTEMS, QUESTIONS), 2), np.full((SYSTEMS, QUESTIONS), TRIALS)), "bayes",
        draws=50, rng=1,
    )  # fmt: skip
    claimed, happened, separated, inverted = [], [], [], []
    for seed in track(range(replications), description=f"spread {spread:g}"):
        rng = np.random.default_rng([2026, seed])
        counts, truth = leaderboard(rng, spread)
        draws = posterior(template, counts, seed)
        best = [np.eye(SYSTEMS)[own.argmax(axis=1)].mean(axis=0) for own in draws]
        claimed.append(best)
        happened.append([np.eye(SYSTEMS)[own.argmax()] for own in truth])
        tier = [tiers(own, ALPHA) for own in draws]
        separated.append([own.max() > 1 for own in tier])
        wrong = [_inverted(own, true) for own, true in zip(tier, truth, strict=True)]
        inverted.append(wrong)
    return {
        "claimed": np.array(claimed), "happened": np.array(happened),
        "separated": np.array(separated), "inverted": np.array(inverted),
    }  # fmt: skip


def _inverted(tier: np.ndarray, truth: np.ndarray) -> bool:
    """Whether some system is in a better tier than one that is truly better."""
    above = tier[:, None] < tier[None, :]
    return bool((above & (truth[:, None] < truth[None, :])).any())


def calibration(found: dict[str, np.ndarray], target: int) -> list[tuple[str, int, float, float]]:
    """Return, by bin of P(best): how many, mean claim, share that was best."""
    claim = found["claimed"][:, target].ravel()
    was = found["happened"][:, target].ravel()
    which = np.clip(np.searchsorted(EDGES, claim, side="right") - 1, 0, len(EDGES) - 2)
    rows = []
    for index in range(len(EDGES) - 1):
        own = which == index
        if own.any():
            label = f"{EDGES[index]:g} to {EDGES[index + 1]:g}"
            rows.append((label, int(own.sum()), float(claim[own].mean()), float(was[own].mean())))
    return rows


def rows(_median_ms: object) -> list[tuple[str, str, str, str]]:
    """CPU time of evaluating and comparing leaderboards, in units of a loop in plain Python."""
    rng = np.random.default_rng(3)

    def counts(systems: int, questions: int, trials: np.ndarray | int) -> bk.Outcomes:
        mu, common = rng.normal(0.3, 1.0, (systems, 1)), rng.normal(0.0, SIGMA, questions)
        full = np.broadcast_to(trials, (systems, questions))
        p = np.where(full > 0, expit(mu + common), 0.0)
        return bk.tally((rng.binomial(full, p), full), missing="ignore")

    ragged = rng.choice([1, 4, 8, 36, 96], (10, 83), p=[0.02, 0.03, 0.85, 0.07, 0.03])
    ragged.flat[rng.choice(np.arange(83 * 3, 830), 75, replace=False)] = 0
    cases = [
        (
            "10 systems x 1000 x 8, 8 metrics", counts(10, 1000, 8),
            "pass@1,2,4,8 pass^2,4,8 bayes", 8,
        ),
        ("10 systems x 83 x 1 to 96, 75 empty cells", counts(10, 83, ragged), "pass@1", 5),
        ("45 systems x 400 x 10", counts(45, 400, 10), "pass@1", 15),
        (
            "2 systems x 30 x 1 to 8, 11 metrics", counts(2, 30, rng.integers(1, 9, (2, 30))),
            "pass@1,2,4,8 pass^2,4,8 maj@3,5 auc@4 bayes", 1.5,
        ),
    ]  # fmt: skip
    found = []
    bk.evaluate([[1, 0], [1, 1]], "pass@1", rng=1)  # imports
    for (label, data, metrics, goal), family in product(cases, ("beta", "averaged")):
        unit = _cpu(_loop)
        fits: list = []
        evaluated = _cpu(
            lambda d=data, m=metrics, f=fits, name=family: f.append(
                bk.evaluate(d, m, difficulty=name, rng=1)
            )
        )
        compared = _cpu(lambda f=fits: bk.compare(f[0], rng=1))
        both = (evaluated + compared) / unit
        ratio = f"{both:.1f} units, {compared / unit:.1f} of them compare"
        name = f"evaluate and compare, {label}, {family}"
        # The goals were set before families of difficulties were averaged.
        bound = f"<= {goal} units" if family == "beta" else ""
        found.append((name, f"{evaluated + compared:.1f} s CPU", ratio, bound))
    return found


def _loop() -> int:
    """Add up ten million numbers: the unit of CPU time."""
    total = 0
    for number in range(10_000_000):
        total += number
    return total


def _cpu(run: Callable[[], object]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--spread", type=float, default=0.3, help="of the systems, in logits")
    options = parser.parse_args()
    size, console = options.replications, Console()
    found, equal = study(size, options.spread), study(size, 0.0)
    for target, name in enumerate(("these questions", "questions like these")):
        table = Table("P(best)", "systems", "claimed", "were best", title=name)
        for label, count, claim, was in calibration(found, target):
            table.add_row(label, str(count), f"{claim:.3f}", f"{was:.3f}")
        console.print(table)
        console.print(f"tiers that invert the truth: {found['inverted'][:, target].mean():.3f}")
    apart = equal["separated"][:, 1].mean()
    console.print(f"six equal systems put into tiers (population): {apart:.3f}; alpha {ALPHA}")


if __name__ == "__main__":
    main()
