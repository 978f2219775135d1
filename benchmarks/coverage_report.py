"""Turn the coverage studies into the documentation's page and figures.

python -m benchmarks.coverage_report benchmarks/results/coverage.jsonl --families FILE

The files are those that `benchmarks.coverage` and `benchmarks.coverage_families` wrote, complete or
not.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.coverage import METHODS, METRICS, PRIOR, SHAPES
from benchmarks.coverage_families_report import MEANS, TARGETS, Study, folded
from benchmarks.coverage_families_report import figure as families_figure
from benchmarks.coverage_families_report import section as families_section

DOCS = Path(__file__).parents[1] / "docs"
Cells = dict[tuple[str, int, int], tuple[int, np.ndarray, np.ndarray]]


def read(paths: list[Path]) -> Cells:
    """Add up the batches of every cell: replications, times covered, total width."""
    total: dict[tuple[str, int, int], list] = defaultdict(lambda: [0, 0.0, 0.0])
    for path in paths:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            cell = total[row["shape"], row["questions"], row["trials"]]
            cell[0] += row["stop"] - row["start"]
            cell[1] = cell[1] + np.array(row["covered"])
            cell[2] = cell[2] + np.array(row["width"])
    return {key: (n, covered / n, width / n) for key, (n, covered, width) in total.items()}


def markdown(cells: Cells, single: bool) -> str:
    """Mean (and lowest) coverage by shape, with 30 questions or more.

    Single trials stand apart: they do not identify the spread of difficulties.
    """
    lines = []
    for target, name in enumerate(TARGETS):
        lines += [f"**{name.capitalize()}**", "", f"| difficulties | {' | '.join(METHODS)} |"]
        lines += ["|---" * (len(METHODS) + 1) + "|"]
        for shape in (*SHAPES, PRIOR):
            chosen = [
                coverage[:, target]
                for (own, questions, trials), (_, coverage, _) in cells.items()
                if own == shape and questions >= 30 and (trials == 1) == single
            ]
            if chosen:
                table = np.stack(chosen)  # (cells, methods, metrics)
                parts = [
                    f"{table[:, m].mean():.2f} ({table[:, m].min():.2f})"
                    for m in range(len(METHODS))
                ]
                lines.append(f"| {shape} | {' | '.join(parts)} |")
        lines.append("")
    few = [c for (s, q, _), (_, c, _) in cells.items() if s == PRIOR and q == 5]
    if few and not single:
        mean = np.stack(few).mean(axis=(0, 3))[-1]
        lines.append(
            f"With five questions and difficulties drawn from the prior, partial pooling covers "
            f"{mean[0]:.3f} (these questions) and {mean[1]:.3f} (questions like these)."
        )
    return "\n".join(lines)


def outside_band(cells: Cells) -> str:
    """Return how many Beta cells lie outside 0.93 to 0.97, and how many surely do."""
    beta, outside, surely = 0, 0, []
    for (shape, questions, trials), (n, coverage, _) in cells.items():
        if not shape.startswith("Beta") or questions < 30 or trials == 1:
            continue
        for target, metric in np.ndindex(coverage.shape[1:]):
            found = coverage[-1, target, metric]
            error = 2.5 * np.sqrt(found * (1.0 - found) / n)
            beta, outside = beta + 1, outside + (abs(found - 0.95) > 0.02)
            if abs(found - 0.95) > 0.02 + error:
                label = METRICS[metric].label
                surely.append(
                    f"{label} of {shape}, {questions} x {trials}, {TARGETS[target]}: {found:.3f}"
                )
    by_chance = f"{outside} of {beta} estimates lie outside 0.93 to 0.97, "
    listed = "; ".join(surely) or "none"
    return by_chance + f"and by more than 2.5 standard errors: {listed}."


def figure(cells: Cells, path: Path) -> None:
    """One dot per cell and metric: coverage by method, for both targets."""
    rng = np.random.default_rng(0)
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    markers, greys = ("v", "s", "^", "o"), ("0.6", "0.45", "0.3", "#0072b2")
    for target, axis in enumerate(axes):
        axis.axhspan(0.93, 0.97, color="#e6e6e6", zorder=0)
        axis.axhline(0.95, color="0.4", lw=0.8, zorder=1)
        for method in range(len(METHODS)):
            y = np.concatenate(
                [c[method, target] for (_, q, _), (_, c, _) in cells.items() if q >= 30]
            )
            x = method + rng.uniform(-0.28, 0.28, len(y))
            axis.scatter(x, y, s=9, marker=markers[method], color=greys[method], alpha=0.7, lw=0)
        axis.set_xticks(range(len(METHODS)), [name.replace(" ", "\n", 1) for name in METHODS])
        axis.set_title(TARGETS[target], fontsize=10)
    axes[0].set_ylabel("coverage of 95% intervals")
    axes[0].set_ylim(-0.03, 1.03)
    fig.savefig(path, dpi=150)
    plt.close(fig)


def in_short(study: Study) -> str:
    """Return the findings of both studies as a table."""
    found = study.coverage(0, 1).mean()
    rows = {
        "k up to the number of trials, 4 or 16 trials": "the default of `evaluate` (families "
        f"averaged) covers {found:.3f} on average over ten shapes of difficulties",
        "k beyond the number of trials": "it depends on the shape of difficulties; report the "
        "family-free range too",
        "one trial per question": "metrics with k > 1 depend on the prior of the icc",
        "a flat prior, or the normal interval": "far too low for most difficulties, and lower with "
        "more questions",
    }
    lines = [f"| {case} | {said} |" for case, said in rows.items()]
    return "\n".join(["| your evaluation | coverage |", "|---|---|", *lines])


def page(cells: Cells, study: Study) -> str:
    """Return docs/coverage.md."""
    replications = min(n for n, _, _ in cells.values())
    several, single = (MEANS + markdown(cells, single=one) for one in (False, True))
    return f"""# How often do 95% intervals contain the truth?

A 95% interval should contain the truth in 95% of evaluations. Whether it does depends on the
difficulties of the questions, the number of trials and the method. In simulation the truth is
known. In short:

{in_short(study)}

![Coverage by method](_static/coverage.png)

**How to read it.** One dot is one simulated setting and metric, with 30 questions or more. The
band is 0.93 to 0.97. The normal interval is the published one. "flat prior" is the exact
posterior of the same model, with the Bayesian bootstrap for questions like these. Empirical Bayes
plugs in the maximum-likelihood difficulty distribution. Partial pooling is `evaluate` with
`difficulty="beta"`: it has the stated coverage where difficulties have a Beta distribution and
questions have several trials; the low dots are other difficulties, or single trials.

## Methods compared

Data sets were simulated from eight difficulty distributions with 5, 30, 200 and 1000 questions and
1, 4 and 16 trials each, {replications} times a cell or more (standard error
{np.sqrt(0.95 * 0.05 / replications):.3f} of one), for {", ".join(one.label for one in METRICS)}.

The flat prior fails because it pulls every question towards one half, by as much for a thousand
questions as for one, while the interval gets narrower. Partial pooling has the stated coverage
where difficulties are Beta-distributed and questions were tried more than once: in these
settings, with 30 questions or more, {outside_band(cells)}

For the logit-normal and the mixture with impossible questions one Beta is wrong. Averaging families
corrects most of that, as [the second study](#difficulties-of-any-shape) shows.

{folded("Coverage by difficulties, 4 or 16 trials per question", several)}

**One trial per question** says nothing about the spread of difficulties, so pass@4, pass^4 and
maj@4 depend on the prior of the icc. Partial pooling then has the stated coverage on average over
that prior, and too low a coverage for difficulties that the prior holds improbable (nearly equal
questions).

{folded("Coverage by difficulties, one trial per question", single)}

{families_section(study)}

## How to repeat it

Made by `python -m benchmarks.coverage_families`, `python -m benchmarks.coverage` and
`python -m benchmarks.coverage_report`; seeded and resumable.
"""


def main() -> None:
    """Write docs/coverage.md and its two figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("methods", type=Path, nargs="+", help="files of benchmarks.coverage")
    parser.add_argument(
        "--families", type=Path, required=True, help="file of benchmarks.coverage_families"
    )
    options = parser.parse_args()
    cells, study = read(options.methods), Study.read(options.families)
    figure(cells, DOCS / "_static" / "coverage.png")
    families_figure(study, DOCS / "_static" / "coverage_families.png")
    (DOCS / "coverage.md").write_text(page(cells, study))


if __name__ == "__main__":
    main()
