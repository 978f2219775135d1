"""Coverage of 95% intervals of wvote@k, votes between answers weighted by a verifier's scores.

    python -m benchmarks.coverage_weighted_votes --replications 40

The data are not drawn from the model: difficulties come from two clusters, Beta(2, 8) and
Beta(8, 2); each question has six wrong answers, with shares from a Dirichlet(1/2, ..., 1/2); the
score of a trial is logistic in a normal variable, higher by one sd on average where the trial is
right, and by another amount for every question (sd 0.5). Graded scores are rounded to tenths. True
values are means of simulated elections. k is 1, half of the trials, the trials, and twice as many.
"""

import argparse
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.progress import track

import bayesatk as bk

TARGETS = ("questions", "population")
GAP, GAP_SD, WRONG = 1.0, 0.5, 6
_MANY, _ELECTIONS = 3000, 400  # questions that stand for the population; for a true value

Array = NDArray[np.float64]


class Cell(NamedTuple):
    """Questions, trials of each, and whether scores are rounded to tenths."""

    questions: int
    trials: int
    graded: bool = False

    @property
    def ks(self) -> list[int]:
        """The k of the metrics."""
        n = self.trials
        return [1, max(n // 2, 2), n, 2 * n]


CELLS = [Cell(40, 8), Cell(40, 16, True), Cell(150, 8), Cell(150, 4, True)]


class Questions(NamedTuple):
    """Success probabilities, shares of wrong answers, and how much higher right trials score."""

    p: Array
    shares: Array
    gap: Array

    @classmethod
    def draw(cls, number: int, rng: np.random.Generator) -> "Questions":
        """Draw so many."""
        hard = rng.random(number) < 0.5
        p = np.where(hard, rng.beta(2, 8, number), rng.beta(8, 2, number))
        shares = rng.dirichlet(np.full(WRONG, 0.5), number)
        return cls(p, shares, GAP + GAP_SD * rng.standard_normal(number))

    def trials(
        self, number: int, graded: bool, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Array]:
        """Draw answers, of which 0 is right, and scores."""
        shape = len(self.p), number
        right = rng.random(shape) < self.p[:, None]
        above = rng.random(shape)[..., None] > self.shares.cumsum(axis=1)[:, None]
        answer = np.where(right, 0, 1 + np.minimum(above.sum(axis=-1), WRONG - 1))
        score = 1.0 / (1.0 + np.exp(-rng.standard_normal(shape) - right * self.gap[:, None]))
        return answer, np.round(score, 1) if graded else score

    def value(self, k: int, graded: bool, elections: int, rng: np.random.Generator) -> float:
        """Return the mean over questions of the probability that the vote of k is right."""
        won = 0.0
        for _ in range(elections):
            answer, score = self.trials(k, graded, rng)
            sums = np.full((len(self.p), WRONG + 1), -1.0)
            for place, points in zip(answer.T, score.T, strict=True):
                row = np.arange(len(self.p))
                sums[row, place] = np.maximum(sums[row, place], 0.0) + points
            sums = np.round(sums, 9)
            best = sums == sums.max(axis=1, keepdims=True)
            won += float((best[:, 0] / best.sum(axis=1)).mean())
        return won / elections


def covered(cell: Cell, of_population: Array, seed: list[int]) -> Array:
    """Return coverage, error and width of one data set; (3, targets, ks)."""
    rng = np.random.default_rng(seed)
    questions = Questions.draw(cell.questions, rng)
    answer, score = questions.trials(cell.trials, cell.graded, rng)
    data = bk.tally(
        None, answers=answer.astype(str), reference=["0"] * cell.questions, verifier=score
    )
    fit = bk.evaluate(data, f"wvote@{','.join(map(str, cell.ks))}", draws=250, rng=seed[-1])
    values = fit["closed_form"]["wvote_at_k"].isel(system=0).sel(target=list(TARGETS))
    low, high, mean = (
        values.sel(statistic=name).transpose("target", "k").values
        for name in ("ci_lower", "ci_upper", "mean")
    )
    these = [questions.value(k, cell.graded, _ELECTIONS, rng) for k in cell.ks]
    true = np.stack([these, of_population])
    return np.stack([(low <= true) & (true <= high), mean - true, high - low])


def main() -> None:
    """Print a table for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--cells", type=int, nargs="*", default=list(range(len(CELLS))))
    asked = parser.parse_args()
    for number in asked.cells:
        cell, rng = CELLS[number], np.random.default_rng(0)
        many = Questions.draw(_MANY, rng)
        of_population = np.array([many.value(k, cell.graded, 40, rng) for k in cell.ks])
        by_data_set = [
            covered(cell, of_population, [number, seed])
            for seed in track(range(asked.replications), description=str(cell))
        ]
        names = pd.MultiIndex.from_product([TARGETS, cell.ks], names=["target", "k"])
        columns = [column.ravel() for column in np.mean(by_data_set, axis=0)]
        table = pd.DataFrame(np.column_stack(columns), names, ["coverage", "bias", "width"])
        print(cell, table.round(3).to_string(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
