"""Turn the coverage studies into tables and figures of the documentation.

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
import pandas as pd

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.coverage import METHODS, METRICS
from benchmarks.coverage_families_report import TARGETS, Study
from benchmarks.coverage_families_report import figure as families_figure
from benchmarks.coverage_families_report import rows as families_rows

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = ("normal", "flat_prior", "empirical_bayes", "partial_beta")  # METHODS in tables
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


def rows(cells: Cells) -> pd.DataFrame:
    """Return coverage and mean width of every method, by cell, target and metric."""
    found = []
    for (shape, questions, trials), (size, coverage, width) in cells.items():
        for target, metric in np.ndindex(coverage.shape[1:]):
            place = (shape, questions, trials, size, TARGETS[target], METRICS[metric].label)
            numbers = [*coverage[:, target, metric], *width[:, target, metric]]
            found.append((*place, *np.round(numbers, 4)))
    columns = ["difficulties", "questions", "trials", "data_sets", "target", "metric"]
    return pd.DataFrame(found, columns=[*columns, *COLUMNS, *(f"width_{c}" for c in COLUMNS)])


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


def main() -> None:
    """Write docs/tables/coverage*.csv and two figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("methods", type=Path, nargs="+", help="files of benchmarks.coverage")
    parser.add_argument(
        "--families", type=Path, required=True, help="file of benchmarks.coverage_families"
    )
    options = parser.parse_args()
    cells, study = read(options.methods), Study.read(options.families)
    figure(cells, DOCS / "_static" / "coverage.png")
    families_figure(study, DOCS / "_static" / "coverage_families.png")
    rows(cells).to_csv(DOCS / "tables" / "coverage.csv", index=False)
    families_rows(study).to_csv(DOCS / "tables" / "coverage_families.csv", index=False)


if __name__ == "__main__":
    main()
