"""Table and figure of the study of difficulty families: families averaged beside the Beta alone.

`benchmarks.coverage_report` writes them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from benchmarks.coverage_families import CELLS, METHODS, METRICS

TARGETS = ("these questions", "questions like these")
REACHES = ("k <= n", "n < k <= 4n", "k = 16n")


@dataclass(frozen=True)
class Cell:
    """What all batches of one cell say.

    Parameters
    ----------
    shape : str
    questions, trials : int
    size : int
        Data sets.
    covered, width : ndarray, shape (method, target, metric)
        Share of intervals that hold the truth, and mean width.
    held, range_width : ndarray, shape (target, metric)
        The same of the family-free range; it is asked for where k exceeds the trials.
    family : ndarray
        Mean posterior probabilities.
    """

    shape: str
    questions: int
    trials: int
    size: int
    covered: np.ndarray
    width: np.ndarray
    held: np.ndarray
    range_width: np.ndarray
    family: np.ndarray

    def metrics(self, reach: int) -> list[int]:
        """Positions of the metrics whose k is so far beyond the trials."""
        most = (self.trials, 4 * self.trials, 16 * self.trials)
        least = (0, *most)[reach]
        return [i for i, metric in enumerate(METRICS) if least < metric.k <= most[reach]]


@dataclass(frozen=True)
class Study:
    """All cells, and what went wrong.

    Parameters
    ----------
    cells : list of Cell
    failed : list
        Data sets that raised an error, with their cells.
    least_effective_draws : float
        Smallest effective size of the weighted points of any fit.
    seconds : float
        Mean time of one core for a data set, all methods together.
    """

    cells: list[Cell]
    failed: list[str]
    least_effective_draws: float
    seconds: float

    @classmethod
    def read(cls, path: Path) -> "Study":
        """Add up the batches of a file; a torn last line is left out."""
        rows: list[list[dict]] = [[] for _ in CELLS]
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            rows[row["start"] % len(CELLS)].append(row["values"])
        cells = []
        for cell, own in zip(CELLS, rows, strict=True):
            size = sum(one["size"] for one in own)
            if size:
                names = ("covered", "width", "held", "range_width", "family")
                means = [sum(np.array(one[name]) for one in own) / size for name in names]
                cells.append(Cell(*cell, size, *means))
        failed = [
            f"{cell}, number {number}: {error}"
            for cell, own in zip(CELLS, rows, strict=True)
            for one in own
            for number, error in one["failed"]
        ]
        everything = [one for own in rows for one in own]
        seconds = sum(one["seconds"] for one in everything) / sum(one.size for one in cells)
        return cls(cells, failed, min(one["least_effective_draws"] for one in everything), seconds)

    def values(self, reach: int) -> Iterator[tuple[Cell, int, int]]:
        """Yield every cell, target and metric of one reach."""
        for cell in self.cells:
            for target in range(len(TARGETS)):
                for metric in cell.metrics(reach):
                    yield cell, target, metric

    def coverage(self, reach: int, method: int) -> np.ndarray:
        """Coverage of one method in all cells, targets and metrics of one reach."""
        return np.array([cell.covered[method, t, m] for cell, t, m in self.values(reach)])

    @property
    def sizes(self) -> str:
        """Data sets a cell."""
        found = sorted({cell.size for cell in self.cells})
        return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def rows(study: Study) -> pd.DataFrame:
    """Return coverage and mean width of every method, by cell, target, metric and reach of k."""
    found = []
    for reach, name in enumerate(REACHES):
        for cell, target, metric in study.values(reach):
            covered, width = cell.covered[:, target, metric], cell.width[:, target, metric]
            numbers = [*covered, *width]
            free = [cell.held[target, metric], cell.range_width[target, metric]]
            free = free if reach else [np.nan, np.nan]  # the family-free range is for k > n
            place = (cell.shape, cell.questions, cell.trials, cell.size, name)
            place += (METRICS[metric].label, TARGETS[target])
            found.append((*place, *np.round([*numbers, *free], 4)))
    columns = ["difficulties", "questions", "trials", "data_sets", "k", "metric", "target"]
    columns += ["beta", "averaged", "width_beta", "width_averaged", "any_shape", "width_any_shape"]
    return pd.DataFrame(found, columns=columns)


def figure(study: Study, path: Path) -> None:
    """One dot per cell and metric: coverage by reach of k and method, for both targets."""
    rng = np.random.default_rng(0)
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    names, greys, markers = (*METHODS, "any shape"), ("0.6", "#0072b2", "0.3"), ("s", "o", "^")
    for target, axis in enumerate(axes):
        axis.axhspan(0.93, 0.97, color="#e6e6e6", zorder=0)
        axis.axhline(0.95, color="0.4", lw=0.8, zorder=1)
        for method, name in enumerate(names):
            points = [
                (reach, c.held[t, m] if method == 2 else c.covered[method, t, m])
                for reach in range(int(method == 2), len(REACHES))
                for c, t, m in study.values(reach)
                if t == target
            ]
            x, y = np.array(points).T
            axis.scatter(
                x + 0.28 * (method - 1) + rng.uniform(-0.1, 0.1, len(x)),
                y,
                label=name,
                s=9,
                marker=markers[method],
                color=greys[method],
                alpha=0.7,
                lw=0,
            )
        axis.set_xticks(range(len(REACHES)), REACHES)
        axis.set_title(TARGETS[target], fontsize=10)
    axes[0].set_ylabel("coverage of 95% intervals")
    axes[0].set_ylim(-0.03, 1.03)
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        markerscale=1.6,
        frameon=False,
    )
    fig.savefig(path, dpi=150)
    plt.close(fig)
