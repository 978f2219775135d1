"""`bayesatk.leaderboard` on boards with known truth: what it states, and how often that is right.

    python -m benchmarks.boards --systems 10 --spread 0.3 --boards 100 [--trials 4]
        [--difficulty normal|beta|impossible|easy|own]

Difficulties have a correlation of 0.8 between systems. They are logit-normal, so the model's Beta
residual is not what made the data; Beta with parameters that add up to 0.6; or logit-normal, but
for a quarter of the questions that nobody can solve, a fifth that everybody solves, or a tenth of
its own that each system cannot solve. Spread is the sd of systems' means in logits: 1 spread, 0.3
close, 0 tied (the true scores of tied systems still differ on these questions, by chance).
"""

import argparse
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, ndtr

from bayesatk.comparison.joint.contrasts import rank_draws, separated
from bayesatk.comparison.joint.shared import Board, drawn_board
from bayesatk.data.scales import RIGHT_WRONG
from bayesatk.metrics.grid import parse
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import HyperPrior, LeaderboardPrior

CORRELATION, SIGMA, CI = 0.8, 1.5, (0.025, 0.975)
ATOMS = {
    "impossible": (0.25, 0.0),
    "easy": (0.2, 1.0),
    "own": (0.1, 0.0),
}  # shares of questions, and their p
ERROR = 0.025  # of the default of bayesatk.leaderboard, half to either side
Array = NDArray[np.float64]


def simulate(
    rng: np.random.Generator, systems: int, questions: int, trials: int, spread: float,
    difficulty: str,
) -> tuple[NDArray[np.int64], Array]:  # fmt: skip
    """Draw counts, and return true mean scores (target, system)."""
    mu = 0.3 + spread * rng.standard_normal(systems)
    common, own = rng.standard_normal(questions), rng.standard_normal((systems, questions))
    z = np.sqrt(CORRELATION) * common + np.sqrt(1.0 - CORRELATION) * own
    if difficulty == "beta":
        population = expit(mu)
        shapes = (0.6 * share[:, None] for share in (population, 1.0 - population))
        p = betaincinv(*shapes, ndtr(z))
    else:
        p = expit(mu[:, None] + SIGMA * z)
        points, weight = np.polynomial.hermite_e.hermegauss(61)
        population = expit(mu[:, None] + SIGMA * points) @ weight / weight.sum()
    share, end = ATOMS.get(difficulty, (0.0, 0.0))
    p = np.where(rng.random(p.shape if difficulty == "own" else questions) < share, end, p)
    truth = np.stack([p.mean(axis=1), share * end + (1.0 - share) * population])
    return rng.binomial(trials, p), truth


def board(counts: NDArray[np.int64], trials: int, seed: int) -> Board:
    """Work out a board without a result around it."""
    kinds = np.stack([trials - counts, counts], axis=2)
    declared = Declared(RIGHT_WRONG, "partial", HyperPrior(), kinds)
    return drawn_board(declared, parse("bayes"), LeaderboardPrior(), seed)


def judged(values: Array, truth: Array) -> dict[str, Any]:
    """Compare what draws (draws, systems) of a target state with the truth."""
    ranks = rank_draws(values)
    low, high = np.quantile(values, CI, axis=0)
    ends = np.quantile(ranks, CI, axis=0)
    first, last = np.floor(ends[0]), np.ceil(ends[1])
    true_rank = rank_draws(truth[None])[0]
    declared = separated(values, ERROR)
    above, below = np.nonzero(declared)
    return {
        "best": (ranks == 1.0).mean(axis=0).tolist(),
        "was": (true_rank == true_rank.min()).tolist(),
        "covered": ((low <= truth) & (truth <= high)).tolist(),
        "rank_covered": ((first <= true_rank) & (true_rank <= last)).tolist(),
        "rank_width": (last - first).tolist(),
        "declared": len(above), "wrong": int((truth[above] <= truth[below]).sum()),
        "gap": (values.mean(axis=0) - truth).tolist(),
        "winner_gap": float(values.mean(axis=0).max() - truth[values.mean(axis=0).argmax()]),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("systems", 10),
        ("boards", 100),
        ("trials", 4),
        ("questions", 100),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--spread", type=float, default=0.3)
    difficulties = ("normal", "beta", *ATOMS)
    parser.add_argument("--difficulty", choices=difficulties, default="normal")
    parser.add_argument("--output", default="")
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    for seed in range(given.boards):
        rng = np.random.default_rng([2027, seed])
        shape = given.systems, given.questions, given.trials
        counts, truth = simulate(rng, *shape, given.spread, given.difficulty)
        own = board(counts, given.trials, seed)
        for target in (0, 1):
            one = judged(own.values[target, :, :, 0], truth[target])
            found.append({"target": target, "method": own.draws.method, **one})
        if given.output:
            with open(given.output, "w") as file:
                json.dump(found, file)
    print(vars(given))
    for target, name in enumerate(("these questions", "questions like these")):
        summarise(name, [one for one in found if one["target"] == target], given.spread == 0.0)


def summarise(name: str, boards: list[dict[str, Any]], tied: bool) -> None:
    """Print coverage, calibration of P(best), and boards with a wrong order."""
    best, was = (np.concatenate([one[key] for one in boards]) for key in ("best", "was"))
    print(f"{name}: {len(boards)} boards")
    for key in ("covered", "rank_covered", "rank_width"):
        print(f"  {key}: {np.concatenate([one[key] for one in boards]).mean():.3f}")
    if not (tied and name.startswith("questions")):
        for low, high in ((0.02, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
            some = (best >= low) & (best < high)
            if some.any():
                shares = f"stated {best[some].mean():.3f}, was {was[some].mean():.3f}"
                print(f"  P(best) {low} to {min(high, 1)}: {some.sum()} systems, {shares}")
    wrong = np.mean([one["wrong"] > 0 for one in boards])
    many = np.mean([one["declared"] for one in boards])
    print(f"  boards with a declared order that is wrong: {wrong:.3f}; orders a board {many:.1f}")
    gap = np.concatenate([one["gap"] for one in boards])
    print(f"  stated means less the truth: {gap.mean():+.4f}, rms {np.sqrt((gap**2).mean()):.4f}")
    gap = np.mean([one["winner_gap"] for one in boards])
    print(f"  stated mean of the winner less the truth: {gap:+.4f}")


if __name__ == "__main__":
    main()
