"""Systems compared by joint draws, on data with known truth.

    python -m benchmarks.systems_together pairs boards nested untried [--sets 50]

Pairs: coverage and width of the difference beside those of the paired t interval, for pass@1,
pass@n and pass@4n. Boards: means, P(best) as stated and as it was, declared orders, the mean of the
leader. Nested: the probability that a system is better that is another one with a few more right
marks. Untried: coverage of the difference on these questions where two systems share a few of 60.
None of the data follow a law that the models have.
"""

import argparse
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, ndtr
from scipy.stats import binomtest
from scipy.stats import t as student

import bayesatk as bk
from bayesatk.core.question.expected_credit import finite
from bayesatk.metrics.credit import pass_at

Array = NDArray[np.float64]
Difficulties = tuple[Array, Array]  # p (systems, questions), and means over the population of each
LARGE = 200_000  # questions that stand for the population
TARGETS = "questions", "population"
PAIRS = {  # questions, trials, correlation of difficulties, share that neither solves
    "5 x 4": (5, 4, 0.5, 0.0), "10 x 4": (10, 4, 0.5, 0.0), "40 x 4": (40, 4, 0.5, 0.0),
    "40 x 4, correlation .95": (40, 4, 0.95, 0.0), "40 x 4, correlation -.5": (40, 4, -0.5, 0.0),
    "40 x 16, 30% impossible": (40, 16, 0.7, 0.3),
}  # fmt: skip
BOARDS = {  # systems, questions, trials, sd of systems in logits, kind of difficulty
    "8 systems, 20 x 4": (8, 20, 4, 0.5, "normal"),
    "8 systems, 60 x 4": (8, 60, 4, 0.5, "normal"),
    "8 systems, 20 x 4, impossible and easy": (8, 20, 4, 0.5, "both"),
    "10 systems, 30 x 2, Beta": (10, 30, 2, 0.3, "beta"),
    "10 systems, 30 x 4, impossible": (10, 30, 4, 0.3, "impossible"),
    "10 systems, 80 x 3, own impossible": (10, 80, 3, 0.3, "own"),
    "10 systems, 40 x 4, tied": (10, 40, 4, 0.0, "normal"),
    "10 systems, 40 x 4, far apart": (10, 40, 4, 1.0, "normal"),
    "19 systems, 15 x 5, easy": (19, 15, 5, 0.3, "easy"),
}
ENDS = {"impossible": (0.25, 0.0), "easy": (0.2, 0.0), "own": (0.1, 0.0), "both": (0.2, 0.12)}
NESTED = (
    (20, 4, 1), (20, 1, 1), (20, 1, 2), (50, 1, 2), (50, 5, 1), (164, 1, 3), (100, 1, 4),
)  # fmt: skip

UNTRIED = {  # trials, sd of a question's logits between systems, gap of systems in logits
    "near": (4, 0.3, 0.4), "equal": (16, 0.0, 0.0),
}  # fmt: skip


def pair(rng: np.random.Generator, questions: int, correlation: float, share: float) -> Array:
    """Draw success probabilities of two systems."""
    size = abs(correlation)
    common, own = rng.standard_normal(questions), rng.standard_normal((2, questions))
    sign = np.array([[1.0], [np.sign(correlation)]])
    p = expit(
        np.array([[0.5], [0.0]]) + 1.4 * (size**0.5 * sign * common + (1 - size) ** 0.5 * own)
    )
    return np.where(rng.random(questions) < share, 0.0, p)


def board(
    rng: np.random.Generator, systems: int, questions: int, spread: float, kind: str
) -> Difficulties:
    """Draw success probabilities of systems, correlated at 0.8, and their population means."""
    mu = 0.3 + spread * rng.standard_normal((systems, 1))
    common, own = rng.standard_normal(questions), rng.standard_normal((systems, questions))
    z = 0.8**0.5 * common + 0.2**0.5 * own
    if kind == "beta":
        mean = expit(mu)
        p = betaincinv(0.6 * mean, 0.6 * (1.0 - mean), ndtr(z))
    else:
        points, weight = np.polynomial.hermite_e.hermegauss(61)
        p, mean = expit(mu + 1.5 * z), expit(mu + 1.5 * points) @ weight[:, None] / weight.sum()
    never, always = ENDS.get(kind, (0.0, 0.0))
    if kind == "easy":
        never, always = 0.0, never
    place = rng.random(p.shape if kind == "own" else questions)
    p = np.where(place < never, 0.0, np.where(place > 1.0 - always, 1.0, p))
    return p, always + (1.0 - never - always) * mean[:, 0]


def compared(y: NDArray[np.int64], trials: int, ks: list[int]) -> Any:
    """Evaluate and compare, and return the result."""
    data = bk.tally((y, np.full(y.shape, trials)))
    return bk.compare(bk.evaluate(data, [f"pass@{k}" for k in ks], rng=1, progress=False))


def run_pairs(name: str, sets: int) -> None:
    """Print coverage, width and error of the difference."""
    questions, trials, *kind = PAIRS[name]
    ks, large = [1, trials, 4 * trials], pair(np.random.default_rng(1), LARGE, *kind)
    found: dict[tuple[int, str], list[list[float]]] = defaultdict(list)
    for seed in range(sets):
        rng = np.random.default_rng([len(name), questions, seed])
        p = pair(rng, questions, *kind)
        y = rng.binomial(trials, p)
        rows = compared(y, trials, ks)["comparison"]["pass_at_k"].sel(system=0, other=1)
        for k in ks:
            gap = np.diff(finite(pass_at(min(k, trials)), y[::-1], trials), axis=0)[0]
            half = student.ppf(0.975, questions - 1) * gap.std(ddof=1) / questions**0.5
            for target, chances in zip(TARGETS, (p, large), strict=True):
                truth = -float(np.diff((1.0 - (1.0 - chances) ** k).mean(axis=1))[0])
                low, high, mean = (
                    float(rows.sel(k=k, target=target, contrast=each))
                    for each in ("ci_lower", "ci_upper", "mean")
                )
                of_t = abs(gap.mean() - truth) <= half
                found[k, target].append(
                    [low <= truth <= high, high - low, mean - truth, of_t, 2 * half]
                )
    for (k, target), rows in found.items():
        cover, width, error, cover_t, width_t = np.array(rows, float).T
        beside = (
            f"; t covers {cover_t.mean():.3f}, width over its {width.mean() / width_t.mean():.2f}"
        )
        print(
            f"{name}, pass@{k}, {target}: covers {cover.mean():.3f}, width {width.mean():.3f}, "
            f"error {np.sqrt((error**2).mean()):.4f}"
            + beside
            * (k <= trials and target == TARGETS[1])
        )


def run_board(name: str, sets: int) -> None:
    """Print coverage of means, P(best) by bins and its Brier score, wrong orders, the leader."""
    systems, questions, trials, spread, kind = BOARDS[name]
    found: dict[str, list[list[Any]]] = defaultdict(list)
    for seed in range(sets):
        rng = np.random.default_rng([systems, questions, seed])
        p, population = board(rng, systems, questions, spread, kind)
        ranked = bk.leaderboard(compared(rng.binomial(trials, p), trials, [1]))
        group = ranked["leaderboard"].to_dataset().isel(metric=0)
        for target, truth in zip(TARGETS, (p.mean(axis=1), population), strict=True):
            own = group.sel(target=target)
            low, high, best, mean = (
                own[each].values for each in ("ci_lower", "ci_upper", "prob_best", "shrunk_mean")
            )
            below = truth[:, None] <= truth + 1e-12
            found[target].append(
                [
                    (low <= truth) & (truth <= high),
                    best,
                    truth >= truth.max() - 1e-12,
                    bool((own["separated"].values.astype(bool) & below).any()),
                    mean.max() - truth[mean.argmax()],
                ]
            )
    for target, rows in found.items():
        cover, best, was, wrong, leader = (np.array(each) for each in zip(*rows, strict=True))
        brier = ((best - was) ** 2).sum(axis=1).mean()
        bins = []
        for low, high in ((0.02, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
            some = (best >= low) & (best < high)
            if some.sum() > 9 and (spread or target == TARGETS[0]):
                bins.append(f"{best[some].mean():.2f} -> {was[some].mean():.2f} ({some.sum()})")
        print(
            f"{name}, {target}: means covered {cover.mean():.3f}; P(best) {', '.join(bins)}; Brier "
            f"{brier:.3f}; boards with a wrong order {wrong.mean():.3f}; leader's mean "
            f"{leader.mean():+.4f}, error {np.sqrt((leader**2).mean()):.4f}"
        )


def run_nested() -> None:
    """Print P(better) of a system that is another one plus a few marks, with McNemar's p."""
    for questions, trials, more in NESTED:
        rng = np.random.default_rng([questions, trials, more])
        y = rng.binomial(trials, rng.beta(0.8, 0.8, questions))
        better = y.copy()
        better[np.flatnonzero(y < trials)[:more]] += 1
        rows = compared(np.stack([better, y]), trials, [1])["comparison"]["pass_at_k"]
        at = {"system": 0, "other": 1, "k": 1, "target": TARGETS[1], "contrast": "prob_greater"}
        p_value = binomtest(more, more).pvalue
        chance = float(rows.sel(at))
        print(f"{questions} x {trials}, {more} more: P(better) {chance:.3f}, p {p_value:.2f}")


def run_untried(name: str, sets: int) -> None:
    """Print coverage of the difference on 60 questions, of which each system tried a part."""
    trials, spread, gap = UNTRIED[name]
    for shared in (3, 10, 20, 40):
        covered, ahead = 0, 0
        for seed in range(sets):
            rng = np.random.default_rng([shared, trials, seed])
            own = spread * rng.standard_normal((2, 60)) + [[gap], [0.0]]
            p = expit(2.0 * rng.standard_normal(60) + own)
            order, number = rng.permutation(60), (60 + shared) // 2
            tried = np.full((2, 60), trials)
            tried[0, order[number:]], tried[1, order[: 60 - number]] = 0, 0
            data = bk.tally((rng.binomial(tried, p), tried), missing="ignore")
            fit = bk.evaluate(data, "pass@1", difficulty="beta", rng=seed, progress=False)
            row = bk.table(bk.compare(fit), "comparison").query("target == 'questions'").iloc[0]
            covered += row["ci_lower"] <= p[0].mean() - p[1].mean() <= row["ci_upper"]
            ahead += row["verdict"] in ("ahead", "behind")
        print(f"{name}, {shared} shared: covers {covered / sets:.3f}, ahead {ahead / sets:.3f}")


def main() -> None:
    """Run the parts that are named."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parts", nargs="+", choices=("pairs", "boards", "nested", "untried"))
    options.add_argument("--sets", type=int, default=50)
    given = options.parse_args()
    for part in given.parts:
        if part == "nested":
            run_nested()
        elif part == "untried":
            for name in UNTRIED:
                run_untried(name, given.sets)
        elif part == "pairs":
            for name in PAIRS:
                run_pairs(name, given.sets)
        else:
            for name in BOARDS:
                run_board(name, given.sets)


if __name__ == "__main__":
    main()
