"""Coverage of 95% intervals where questions come in groups, and of clustered standard errors.

    python -m benchmarks.groups --replications 100 --output benchmarks/results/groups.jsonl

30 groups of 5 to 20 questions, 4 trials each. The means of groups are Beta with mean 0.6 and an
intraclass correlation from 0 to 0.3 (not logit-normal as in the model), the success probabilities
within a group are Beta around its mean with one of 0.3. Truth is known: of these questions, of new
questions of these groups, and of new groups, which is 0.6. Intervals for new groups:

* two levels: `bayesatk.evaluate` with ``group=``, target ``new_groups``;
* one level: the same without groups, target ``population``;
* standard error of the mean over questions, as if they were independent (Miller 2024,
  arXiv:2411.00640, section 2.1), and clustered by group (section 2.2), with normal quantiles.

Every replication has a seed of its own, and is appended to the output as it is done; a run that is
started again skips what is there.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from bayesatk.data.grouping import Grouping
from bayesatk.metrics.grid import parse
from bayesatk.posterior.model import CountModel
from bayesatk.priors import HyperPrior

GROUPS, SIZES, TRIALS, MEAN, WITHIN = 30, (5, 20), 4, 0.6, 0.3
BETWEEN = (0.0, 0.05, 0.1, 0.2, 0.3)
DRAWS = 4000
METRIC = parse("pass@1")
Interval = tuple[float, float]


def simulated(between: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Group of every question, the means of groups, every p, and successes."""
    code = np.repeat(np.arange(GROUPS), rng.integers(SIZES[0], SIZES[1] + 1, GROUPS))
    means = np.full(GROUPS, MEAN)
    if between > 0.0:
        total = (1.0 - between) / between
        means = rng.beta(MEAN * total, (1.0 - MEAN) * total, GROUPS)
    total = (1.0 - WITHIN) / WITHIN
    of_question = np.clip(means, 1e-9, 1.0 - 1e-9)[code]
    p = rng.beta(of_question * total, (1.0 - of_question) * total)
    return code, means, p, rng.binomial(TRIALS, p)


def clustered(scores: np.ndarray, code: np.ndarray) -> tuple[float, float]:
    """Return the standard error of a mean, and the clustered one."""
    gap = scores - scores.mean()
    plain = float(np.sqrt((gap**2).sum() / (len(scores) - 1) / len(scores)))
    by_group = np.bincount(code, gap)
    return plain, float(np.sqrt((by_group**2).sum())) / len(scores)


def replicate(between: float, seed: int) -> dict[str, tuple[bool, float]]:
    """One data set: whether each interval covers, and its width."""
    rng = np.random.default_rng(seed)
    code, means, p, successes = simulated(between, rng)
    share = np.bincount(code) / len(code)
    counts = np.stack([TRIALS - successes, successes], axis=1)
    two = CountModel.of(HyperPrior(families="beta"), counts, grouping=Grouping.of(code)).fit(METRIC)
    drawn = two.draw(DRAWS, rng, False)
    one = CountModel.of(HyperPrior(families="beta"), counts).fit(METRIC)
    ends = np.quantile(drawn.metrics[:, 0], [0.025, 0.975], axis=0).T.tolist()
    alone = one.distributions()[1][0]
    scores = successes / TRIALS
    errors = clustered(scores, code)
    truth = {"these questions": p.mean(), "these groups": share @ means, "new groups": MEAN}
    intervals: list[tuple[str, str, Interval]] = [
        ("two levels", target, tuple(each)) for target, each in zip(truth, ends, strict=True)
    ]
    intervals.append(("one level", "new groups", tuple(alone.quantile([0.025, 0.975]))))
    for name, error in zip(("standard error", "clustered standard error"), errors, strict=True):
        half = 1.96 * error
        intervals.append((name, "new groups", (scores.mean() - half, scores.mean() + half)))
    assert drawn.groups is not None
    of_groups = np.quantile(drawn.groups.metrics[:, :, 0], [0.025, 0.975], axis=0)
    found = {
        f"{method}, {target}": (bool(low <= truth[target] <= high), float(high - low))
        for method, target, (low, high) in intervals
    }
    true_by_group = np.stack([np.bincount(code, p) / np.bincount(code), means], axis=1)
    inside = (of_groups[0] <= true_by_group) & (true_by_group <= of_groups[1])
    for place, target in enumerate(("its questions", "questions like them")):
        found[f"each group, {target}"] = (
            float(inside[:, place].mean()),
            float((of_groups[1] - of_groups[0])[:, place].mean()),
        )
    return found


def main() -> None:
    """Add replications, and print coverage."""
    options = argparse.ArgumentParser()
    options.add_argument("--replications", type=int, default=100)
    options.add_argument("--output", type=Path, default=Path("benchmarks/results/groups.jsonl"))
    asked = options.parse_args()
    lines = asked.output.read_text().splitlines() if asked.output.exists() else []
    known = [json.loads(line) for line in lines]
    done = {(row["between"], row["replication"]) for row in known}
    with asked.output.open("a") as file:
        for replication in range(asked.replications):
            for place, between in enumerate(BETWEEN):
                if (between, replication) in done:
                    continue
                found = replicate(between, 1000 * replication + place)
                row = {"between": between, "replication": replication, "found": found}
                known.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
    print(report(known))


def report(rows: list[dict[str, object]]) -> str:
    """Return a table: coverage and mean width of every interval by correlation of groups."""
    cells: dict[tuple[str, float], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        for name, pair in row["found"].items():  # type: ignore[attr-defined]
            cells[name, float(row["between"])].append(pair)  # type: ignore[arg-type]
    names = list(dict.fromkeys(name for name, _ in cells))
    head = "| interval | " + " | ".join(f"icc {one:g}" for one in BETWEEN) + " |"
    text = [head, "|---" * (len(BETWEEN) + 1) + "|"]
    for name in names:
        each = [np.mean(cells[name, one], axis=0) for one in BETWEEN if (name, one) in cells]
        text.append(f"| {name} | " + " | ".join(f"{c:.3f} ({w:.3f})" for c, w in each) + " |")
    text.append(f"\n{len(rows)} data sets, {len(rows) // len(BETWEEN)} for each correlation.")
    return "\n".join(text)


if __name__ == "__main__":
    main()
