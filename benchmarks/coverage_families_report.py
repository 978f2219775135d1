"""Tables and figure of the study of difficulty families: families averaged beside the Beta alone.

`benchmarks.coverage_report` puts them into docs/coverage.md.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from benchmarks.coverage_families import CELLS, METHODS, METRICS
from benchmarks.shapes import BETAS, SHAPES

TARGETS = ("these questions", "questions like these")
REACHES = ("k <= n", "n < k <= 4n", "k = 16n")
_LEAST = (0.88, 0.75, 0.75)  # coverage below which a cell is listed, by reach
_LISTED = 12  # cells, at most, of each reach
MEANS = "Mean coverage, and the lowest of any cell and metric in brackets.\n\n"
_WHY = """\
* **Two clusters, 4 trials.** Half of the questions have p near 0.1 (Beta(2, 20)), and two thirds of
  those are not solved in four trials. Four trials do not tell whether they are hard or impossible,
  so distributions with very different pass@16 and pass@64 have nearly equal evidence. With 16
  trials the mixture of two Betas is recognised and its intervals hold.
* **log p ~ N(-4, 2).** Half of the questions have p below 1/55. Near p = 0 every family of the
  average is a power of p, or an atom: those that fit the counts put more questions at tiny p than
  the lognormal does, and pass@64 comes out too low, with 16 trials too. The sampling is not the
  cause: on data sets checked with 200,000 points, the intervals were those of the default.

Four trials do not tell impossible questions from hard ones either. There the average covers better
because its families disagree and its interval is wide."""

_WIDER = """\
Where nearly every question is solved, pass@4 and pass@16 are close to 1. A single Beta then leaves
little room below; the average also allows a small share of questions that are never solved, and
that share is most of its width."""


def folded(title: str, text: str) -> str:
    """Return a part of the page that is shown when its title is clicked."""
    return f"<details>\n<summary>{title}</summary>\n\n{text.strip()}\n\n</details>"


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


def table(study: Study, target: int) -> str:
    """Mean (and lowest) coverage by shape, for one target."""
    heads = [f"{reach}: {method}" for reach in REACHES for method in METHODS]
    heads[4:4], heads[7:] = [f"{REACHES[1]}: any shape"], [f"{REACHES[2]}: any shape"]
    lines = [f"| difficulties | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for shape in SHAPES:
        cells = [cell for cell in study.cells if cell.shape == shape]
        parts = []
        for reach in range(len(REACHES)):
            for method in range(len(METHODS)):
                parts.append(_both([c.covered[method, target, c.metrics(reach)] for c in cells]))
            if reach:
                parts.append(_both([c.held[target, c.metrics(reach)] for c in cells]))
        lines.append(f"| {shape} | {' | '.join(parts)} |")
    return "\n".join(lines)


def _both(values: list[np.ndarray]) -> str:
    every = np.concatenate([*values, []])
    return f"{every.mean():.2f} ({every.min():.2f})" if len(every) else ""


def summary(study: Study) -> str:
    """One row per reach: mean, lowest, and how many values lie below 0.88 and 0.75."""
    lines = [
        "| k | method | mean | lowest | below 0.88 | below 0.75 |",
        "|---|---|---|---|---|---|",
    ]
    for reach, name in enumerate(REACHES):
        rows = [(method, study.coverage(reach, i)) for i, method in enumerate(METHODS)]
        if reach:
            rows.append(("any shape", np.array([c.held[t, m] for c, t, m in study.values(reach)])))
        for method, found in rows:
            counts = [f"{int((found < bound).sum())} of {len(found)}" for bound in (0.88, 0.75)]
            lines.append(
                f"| {name} | {method} | {found.mean():.3f} | {found.min():.2f} "
                f"| {' | '.join(counts)} |"
            )
    return "\n".join(lines)


def worst(study: Study, reach: int) -> str:
    """Cells in which the average covers least, one row each."""
    order = sorted(study.values(reach), key=lambda one: one[0].covered[1, one[1], one[2]])
    bound = _LEAST[reach]
    chosen = [(c, t, m) for c, t, m in order if c.covered[1, t, m] < bound][:_LISTED] or order[:3]
    head = "| difficulties | M x n | metric | target | Beta alone | averaged |"
    lines = [head + (" any shape |" if reach else ""), "|---" * (7 if reach else 6) + "|"]
    for cell, target, metric in chosen:
        covered = cell.covered[:, target, metric]
        row = [
            cell.shape, f"{cell.questions} x {cell.trials}", METRICS[metric].label,
            TARGETS[target], *(f"{one:.2f}" for one in covered),
        ]  # fmt: skip
        if reach:
            row.append(f"{cell.held[target, metric]:.2f}")
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def lowest(study: Study) -> str:
    """Tables of the lowest coverage of the average by reach of k, and why it is low."""
    parts = [
        f"{name}, below {bound} (or the three lowest):\n\n{worst(study, reach)}"
        for reach, (name, bound) in enumerate(zip(REACHES, _LEAST, strict=True))
    ]
    return "\n\n".join([*parts, _WHY])


def widths(study: Study) -> str:
    """Width of averaged intervals over the Beta's, where difficulties are Beta and k <= n."""
    lines = ["Mean width of averaged intervals, divided by that of the Beta alone, for k <= n:", ""]
    lines += ["| difficulties | these questions | questions like these |", "|---|---|---|"]
    found: list[tuple[float, str]] = []
    for shape in BETAS:
        own: list[list[float]] = [[], []]
        for cell, target, metric in study.values(0):
            if cell.shape == shape:
                ratio = float(cell.width[1, target, metric] / cell.width[0, target, metric])
                own[target].append(ratio)
                place = f"{METRICS[metric].label} of {cell.questions} x {cell.trials}"
                found.append((ratio, f"{ratio:.2f} for {place} under {shape}, {TARGETS[target]}"))
        if own[0]:
            parts = [f"{np.mean(one):.3f} (at most {max(one):.3f})" for one in own]
            lines.append(f"| {shape} | {' | '.join(parts)} |")
    ratios = np.array([ratio for ratio, _ in found])
    widest = "; ".join(text for _, text in sorted(found, reverse=True)[:5])
    return "\n".join(
        [
            *lines, "",
            f"Over all of these the mean is {ratios.mean():.3f} and the median "
            f"{np.median(ratios):.3f}. The largest: {widest}.", "", _WIDER,
        ]
    )  # fmt: skip


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
                x + 0.28 * (method - 1) + rng.uniform(-0.1, 0.1, len(x)), y, label=name,
                s=9, marker=markers[method], color=greys[method], alpha=0.7, lw=0,
            )  # fmt: skip
        axis.set_xticks(range(len(REACHES)), REACHES)
        axis.set_title(TARGETS[target], fontsize=10)
    axes[0].set_ylabel("coverage of 95% intervals")
    axes[0].set_ylim(-0.03, 1.03)
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(
        handles, labels, loc="outside lower center", ncols=3, fontsize=8, markerscale=1.6,
        frameon=False,
    )  # fmt: skip
    fig.savefig(path, dpi=150)
    plt.close(fig)


def section(study: Study) -> str:
    """Return the part of docs/coverage.md on difficulty families."""
    error = np.sqrt(0.95 * 0.05 / min(cell.size for cell in study.cells))
    failed = "; ".join(study.failed) or "none"
    return f"""## Difficulties of any shape

Ten difficulty distributions, most of them not Beta; 50 and 200 questions (M), 4 and 16 trials of
each (n); {study.sizes} data sets for each combination, so the standard error of a coverage of 0.95
is up to {error:.3f}. Metrics: {", ".join(metric.label for metric in METRICS)}. "Impossible"
questions have p = 0 and "solved" ones p = 1.

* **Beta alone** is `evaluate(..., difficulty="beta")`.
* **averaged** is the default, `difficulty="averaged"`: a Beta, a Beta with shares of questions that
  are never and always solved, and a mixture of two Betas, each with the weight that its evidence
  gives it.
* **any shape** is the family-free range of `extrapolation_range`, at 95% confidence, for k > n.

![Coverage of the Beta alone and of families averaged](_static/coverage_families.png)

{summary(study)}

**How to read it.** The answer depends on k. Up to k = n the trials determine the metric, and an
interval needs only a family that fits the counts. Beyond it, two families that fit the counts
equally well can give different answers; the family-free range contains the truth there too, and
is wide. So report it beside the interval whenever k exceeds the trials: `bk.table` has it in
columns of its own ([how-to](how_to/more_trials_than_run.md)).

Here "n < k <= 4n" is pass@16 after 4 trials and pass@64 after 16; "k = 16n" is pass@64 after 4
trials. The lowest of many values is low by chance too: three standard errors below 0.95 is
{0.95 - 3.0 * error:.2f}.

{folded("Coverage by difficulties, these questions", MEANS + table(study, 0))}

{folded("Coverage by difficulties, questions like these", MEANS + table(study, 1))}

{folded("Lowest coverage of the average, and why", lowest(study))}

{folded("Width where the Beta is right", widths(study))}

Data sets that raised an error: {failed}. The smallest effective size of any fit by importance
sampling was {study.least_effective_draws:.0f} points."""
