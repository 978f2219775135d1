"""Coverage of 95% intervals of bon@k, the best of k trials by a verifier's score.

    python -m benchmarks.coverage_best_of --replications 40

The data are not drawn from the model: difficulties come from two clusters, Beta(2, 8) and
Beta(8, 2); scores of wrong trials are normal, those of right trials are higher by one sd on average
and by another amount for every question (sd 0.5); in some cells all scores of a question are
shifted (sd 1.5), and in some the noise is Student's t with 3 degrees of freedom. True values are
integrals over the scores. k is 1, half of the trials, the trials, and four times as many. The last
lines printed are the table of docs/how_we_know.md.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.progress import track
from scipy import stats

import bayesatk as bk

TARGETS = ("questions", "population")
GAP, GAP_SD = 1.0, 0.5
_MANY = 20_000  # questions that stand for the population

Array = NDArray[np.float64]


class Cell(NamedTuple):
    """Questions, trials of each, sd of shifts of all scores of a question, and the noise."""

    questions: int
    trials: int
    shift: float = 0.0
    noise: str = "normal"

    @property
    def ks(self) -> list[int]:
        """The k of the metrics."""
        n = self.trials
        return [1, max(n // 2, 2), n, 4 * n]


CELLS = [
    Cell(40, 4), Cell(40, 16), Cell(150, 4), Cell(150, 16), Cell(40, 8, 1.5), Cell(150, 8, 1.5),
    Cell(60, 8, 0.0, "t"),
]  # fmt: skip


def law(noise: str) -> Any:
    """Return the distribution of the noise of a score."""
    return stats.norm() if noise == "normal" else stats.t(3)


def draw_questions(number: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw success probabilities, and how much higher right trials score."""
    hard = rng.random(number) < 0.5
    p = np.where(hard, rng.beta(2, 8, number), rng.beta(8, 2, number))
    return p, GAP + GAP_SD * rng.standard_normal(number)


def truth(p: Array, gap: Array, cell: Cell) -> Array:
    """Return the true values of questions, by k."""
    x = np.linspace(-30.0, 34.0, 6001) if cell.noise == "t" else np.linspace(-8.0, 12.0, 2001)
    noise, totals = law(cell.noise), np.zeros(len(cell.ks))
    for p_of, gap_of in zip(p, gap, strict=True):
        right = p_of * noise.pdf(x - gap_of)
        below = p_of * noise.cdf(x - gap_of) + (1.0 - p_of) * noise.cdf(x)
        totals += [k * (below ** (k - 1) * right).sum() * (x[1] - x[0]) for k in cell.ks]
    return totals / len(p)


def covered(cell: Cell, of_population: Array, seed: list[int]) -> NDArray[np.float64]:
    """Return coverage, error and width of one data set; (3, targets, ks)."""
    rng = np.random.default_rng(seed)
    p, gap = draw_questions(cell.questions, rng)
    shape = cell.questions, cell.trials
    marks = (rng.random(shape) < p[:, None]).astype(int)
    scores = law(cell.noise).rvs(shape, random_state=rng) + marks * gap[:, None]
    scores += cell.shift * rng.standard_normal(cell.questions)[:, None]
    data = bk.tally(marks, verifier=scores)
    fit = bk.evaluate(data, f"bon@{','.join(map(str, cell.ks))}", draws=250, rng=seed[-1])
    values = fit["closed_form"]["bon_at_k"].isel(system=0).sel(target=list(TARGETS))
    low, high, mean = (
        values.sel(statistic=name).transpose("target", "k").values
        for name in ("ci_lower", "ci_upper", "mean")
    )
    true = np.stack([truth(p, gap, cell), of_population])
    return np.stack([(low <= true) & (true <= high), mean - true, high - low])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--cells", type=int, nargs="*", default=list(range(len(CELLS))))
    asked = parser.parse_args()
    rows = []
    for number in asked.cells:
        cell = CELLS[number]
        many = draw_questions(_MANY // 10, np.random.default_rng(0))
        of_population = truth(*many, cell)
        each = [
            covered(cell, of_population, [number, seed])
            for seed in track(range(asked.replications), description=str(cell))
        ]
        cover, error, width = np.mean(each, axis=0)
        for place, k in enumerate(cell.ks):
            for target, name in enumerate(TARGETS):
                rows.append({
                    "questions": cell.questions, "trials": cell.trials, "shift": cell.shift,
                    "noise": cell.noise, "k": k, "target": name,
                    "coverage": cover[target, place], "bias": error[target, place],
                    "width": width[target, place],
                })  # fmt: skip
        print(pd.DataFrame(rows[-2 * len(cell.ks) :]).round(3).to_string(index=False), flush=True)
    table = pd.DataFrame(rows).pivot_table(
        "coverage", ["questions", "trials", "shift", "noise"], ["target", "k"], sort=False
    )
    print(table.round(2).to_string())


if __name__ == "__main__":
    main()
