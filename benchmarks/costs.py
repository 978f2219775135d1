"""How often intervals of costs contain the truth, of costs that no model here has.

    python -m benchmarks.costs [--replications 500]

Costs of trials are log-normal around means that differ between questions, are higher where a
question is harder, and lower where the trial succeeds.
"""

import argparse

import numpy as np
import pandas as pd
from scipy.special import expit

import bayesatk as bk

SIZES = [(questions, trials) for questions in (10, 30, 100) for trials in (1, 2, 4, 8)]
WITHIN, SUCCEEDED = 0.8, -0.4  # sd of the log cost of a trial; added to it by success
LABELS = ["cost", "cost/success"]


def questions_like_these(number: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw success probabilities, and expected log costs of trials that fail."""
    ease, length = rng.normal(size=(2, number))
    return expit(0.3 + 1.5 * ease), 0.6 * length - 0.4 * ease


def truth(p: np.ndarray, log_cost: np.ndarray) -> list[float]:
    """Return the mean cost of a trial, and the cost of a success."""
    mean = np.exp(log_cost + 0.5 * WITHIN**2) * (1.0 + p * np.expm1(SUCCEEDED))
    return [mean.mean(), mean.mean() / p.mean()]


def covered(questions: int, trials: int, replications: int, of_all: list[float]) -> pd.DataFrame:
    """Return whether intervals contain the truth, by metric and target.

    Replications are systems of one evaluation, which have nothing in common.
    """
    rng = np.random.default_rng([questions, trials])
    p, log_cost = questions_like_these(replications * questions, rng)
    p, log_cost = (values.reshape(replications, questions) for values in (p, log_cost))
    marks = rng.random((replications, questions, trials)) < p[..., None]
    noise = WITHIN * rng.normal(size=marks.shape)
    data = bk.tally(marks.astype(int), cost=np.exp(log_cost[..., None] + noise + SUCCEEDED * marks))
    fit = bk.evaluate(data, ["bayes", *LABELS], pooling="complete", rng=1)
    rows = bk.table(fit).query("metric in @LABELS")
    of_these = np.array([truth(*own) for own in zip(p, log_cost, strict=True)])
    truths = np.stack([of_these, np.broadcast_to(of_all, of_these.shape)], axis=-1).ravel()
    return rows.assign(covered=rows["ci_lower"].le(truths) & rows["ci_upper"].ge(truths))


def main() -> None:
    """Print the table of docs/answers_and_grades.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=1000)
    replications = parser.parse_args().replications
    of_all = truth(*questions_like_these(4_000_000, np.random.default_rng(0)))
    parts = [
        covered(questions, trials, replications, of_all).assign(questions=questions, trials=trials)
        for questions, trials in SIZES
    ]
    table = pd.concat(parts).pivot_table(
        "covered", ["questions", "trials"], ["metric", "target"], sort=False
    )
    print(table.round(2).to_string())


if __name__ == "__main__":
    main()
