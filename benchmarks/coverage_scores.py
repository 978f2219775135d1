"""Coverage of 95% intervals of mean scores, whose difficulties the model did not draw.

    python -m benchmarks.coverage_scores --replications 100 --output results.jsonl

Levels are equally spaced; the marks of a question with expected score p are binomial over the
levels, or numbers with the distribution Beta(6 p, 6 (1 - p)) (0 levels). Every replication has a
seed of its own; results are appended a cell at a time, and a run that is started again skips what
is there. ``--shard 0/2`` and ``--shard 1/2`` share the work.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import beta, binom
from scipy.stats import t as student

import bayesatk as bk
from bayesatk.core.engine.distribution import measured_interval
from bayesatk.metrics.category_credit import CategoryCredit, Judged
from bayesatk.posterior.model import CountModel
from bayesatk.priors import DirichletHyperPrior, HyperPrior

LEVELS, QUESTIONS, TRIALS = (3, 5, 11, 101, 0), (40, 150), (1, 4)
SHAPES = ("Beta(6, 2)", "two clusters", "20% at zero", "Beta(.5, .5)")
PRIORS = {"levels in order": HyperPrior(), "Dirichlet": DirichletHyperPrior()}
_NUMBERS = 6.0  # parameters of a question's numbers, in all
_BEST = 4  # of so many trials, whose expected best score is the second metric


def questions(shape: str, size: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return expected scores of questions, and the mean over all questions like these."""
    if shape == "Beta(6, 2)":
        return rng.beta(6.0, 2.0, size), 0.75
    if shape == "Beta(.5, .5)":
        return rng.beta(0.5, 0.5, size), 0.5
    if shape == "20% at zero":
        return rng.beta(6.0, 2.0, size) * (rng.random(size) >= 0.2), 0.6
    low = rng.random(size) < 0.3
    p = np.where(low, rng.beta(2.0, 20.0, size), rng.beta(12.0, 3.0, size))
    return p, 0.3 * 2.0 / 22.0 + 0.7 * 0.8


def one(cell: tuple[str, int, int, int, str], number: int) -> dict[str, float]:
    """Return whether intervals cover, and their widths."""
    prior, levels, size, trials, shape = cell
    rng = np.random.default_rng([number, levels, size, trials, SHAPES.index(shape)])
    p, truth = questions(shape, size, rng)
    if levels:
        marks = rng.binomial(levels - 1, p[:, None], (size, trials)) / (levels - 1)
        data = bk.tally(
            marks, scores={level / (levels - 1): level / (levels - 1) for level in range(levels)}
        )
    else:
        parameters = np.maximum(_NUMBERS * np.stack([p, 1.0 - p])[..., None], 1e-12)
        marks = np.where(p[:, None] > 0.0, rng.beta(*parameters, (size, trials)), 0.0)
        data = bk.tally(marks, scores=(0, 1))
    counts, scores = data.dataset["count"].values[0], data.dataset["score"].values
    start = process_time()
    model = CountModel.of(PRIORS[prior], counts, scores=tuple(scores.tolist()))
    metrics = [Judged(CategoryCredit(k), scores) for k in (1, _BEST)[: 1 + (trials > 1)]]
    distributions = model.fit(metrics).distributions()
    means = marks.mean(axis=1)
    half = student.ppf(0.975, size - 1) * means.std(ddof=1) / np.sqrt(size)
    values = {
        "cpu": process_time() - start,
        "t covers": float(abs(means.mean() - truth) <= half), "t width": 2.0 * float(half),
    }  # fmt: skip
    for target, true in enumerate((p.mean(), truth)):
        (low, high), _ = measured_interval(distributions[target][0], 0.95, "eti")
        name = ("these", "like these")[target]
        values |= {f"{name} covers": float(low <= true <= high), f"{name} width": high - low}
    if trials > 1:
        (low, high), _ = measured_interval(distributions[0][1], 0.95, "eti")
        best = _best(p, levels)
        values["best of 4, these, covers"] = float(low <= best <= high)
    return values


def _best(p: np.ndarray, levels: int) -> float:
    """Return the expected best of four marks of questions, a mean over them."""
    if levels:
        below = binom.cdf(np.arange(levels - 1), levels - 1, p[:, None])
        return float((1.0 - below**_BEST).mean())
    x = (np.arange(2000) + 0.5) / 2000
    below = beta.cdf(x, _NUMBERS * p[:, None], _NUMBERS * (1.0 - p[:, None]))
    return float((1.0 - np.where(p[:, None] > 0.0, below, 1.0) ** _BEST).mean())


def main() -> None:
    """Simulate what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path("coverage_scores.jsonl"))
    parser.add_argument("--levels", type=int, nargs="*", default=LEVELS)
    parser.add_argument("--questions", type=int, nargs="*", default=QUESTIONS)
    parser.add_argument("--priors", nargs="*", default=list(PRIORS))
    parser.add_argument("--shard", default="0/1")
    options = parser.parse_args()
    number, shards = (int(part) for part in options.shard.split("/"))
    done = set()
    if options.output.exists():
        rows = [json.loads(row) for row in options.output.read_text().splitlines()]
        done = {tuple(row["cell"]) for row in rows}
    cells = product(options.priors, options.levels, options.questions, TRIALS, SHAPES)
    for place, cell in enumerate(cells):
        if cell in done or place % shards != number:
            continue
        results = [one(cell, replication) for replication in range(options.replications)]
        row = {name: float(np.mean([result[name] for result in results])) for name in results[0]}
        row = {"cell": cell, "replications": options.replications} | row
        with options.output.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
