"""How often draws of p of one's own are called unrelated to the counts, of right models and wrong.

    python -m benchmarks.own_draws --replications 25

Right posteriors are of a hierarchical Beta model, of one p for all questions, and of uniform and
Jeffreys priors without pooling; wrong ones of the hierarchical model without the counts, and with
the questions in a random order. Truths are eight distributions of p.
"""

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import betaln, logsumexp

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.models.own_checks import unrelated

DRAWS = 300
TRUTHS: dict[str, Callable[[Rng, int], Array]] = {
    "uniform": lambda rng, size: rng.beta(1, 1, size),
    "Beta(6, 6)": lambda rng, size: rng.beta(6, 6, size),
    "Beta(.3, .3)": lambda rng, size: rng.beta(0.3, 0.3, size),
    "Beta(.1, .9)": lambda rng, size: rng.beta(0.1, 0.9, size),
    "logits N(.3, 1.3)": lambda rng, size: 1 / (1 + np.exp(-rng.normal(0.3, 1.3, size))),
    "0 or 1": lambda rng, size: (rng.random(size) < 0.4).astype(float),
    "always .5": lambda rng, size: np.full(size, 0.5),
    "always .9": lambda rng, size: np.full(size, 0.9),
}
_GRID = (np.arange(40) + 0.5) / 40
_MEAN, _ICC = (values.ravel() for values in np.meshgrid(_GRID, _GRID))
_A, _B = _MEAN * (1 / _ICC - 1), (1 - _MEAN) * (1 / _ICC - 1)


def hierarchical(rng: Rng, right: Ints, trials: Ints, forgotten: bool = False) -> Array:
    """Draw p of questions, mean and intraclass correlation being uniform; or of new questions."""
    given = betaln(_A[:, None] + right, _B[:, None] + trials - right) - betaln(_A, _B)[:, None]
    logs = given.sum(axis=1)
    point = rng.choice(len(logs), DRAWS, p=np.exp(logs - logsumexp(logs)))
    a, b = _A[point, None], _B[point, None]
    counted = 0 if forgotten else 1
    return rng.beta(a + counted * right, b + counted * (trials - right))


def noted(rng: Rng, truth: str, questions: int, size: int) -> dict[str, bool]:
    """Return whether p of each posterior of one data set is called unrelated to its counts."""
    trials = np.full(questions, size)
    right = rng.binomial(trials, TRUTHS[truth](rng, questions))
    pooled = rng.beta(1 + right.sum(), 1 + (trials - right).sum(), (DRAWS, 1))
    by_model = {
        "hierarchical": hierarchical(rng, right, trials),
        "one p": np.repeat(pooled, questions, axis=1),
        "uniform": rng.beta(1 + right, 1 + trials - right, (DRAWS, questions)),
        "Jeffreys": rng.beta(0.5 + right, 0.5 + trials - right, (DRAWS, questions)),
        "without counts": hierarchical(rng, right, trials, forgotten=True),
    }
    by_model["another order"] = by_model["hierarchical"][:, rng.permutation(questions)]
    return {name: unrelated(p, right, trials) for name, p in by_model.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=25)
    replications = parser.parse_args().replications
    rng, rows = np.random.default_rng(1), []
    for truth, questions, trials in product(TRUTHS, (6, 10, 15, 40, 120), (1, 2, 4, 16)):
        label = {"truth": truth, "questions": questions, "trials": trials}
        rows += [label | noted(rng, truth, questions, trials) for _ in range(replications)]
    table = pd.DataFrame(rows)
    models = list(table.columns[3:])
    print(table[models].agg(["mean", "sum", "count"]).to_string())
    of_forty = table.query("questions == 40 and trials == 4")
    print(of_forty.groupby("truth", sort=False)[models].mean().round(2).to_string())


if __name__ == "__main__":
    main()
