"""The data card: what was read, in a form that a person checks at a glance."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.answers import Answers


def data_card(dataset: xr.Dataset, answers: Answers | None, notes: tuple[str, ...]) -> str:
    """Return what is there, what is missing and what was assumed, in lines of text."""
    trials, missing = dataset["count"].sum("category").values, dataset["missing"].values
    scores, names = dataset["score"].values, dataset["system"].values.tolist()
    scale = ", ".join(
        f"{label} = {score:g}"
        for label, score in zip(dataset["category"].values, scores, strict=True)
    )
    systems, questions = trials.shape
    lines = [
        f"Outcomes: {systems} system{'s' * (systems > 1)} x {questions} questions, "
        f"{int(trials.sum()):,} trials (scores: {scale})"
    ]
    width = max([6, *(len(str(system)) for system in names)])
    lines.append(f"  {'system':<{width}}  trials min/median/max  missing  mean score")
    total = (dataset["count"].values * scores).sum(axis=-1)
    for row, system in enumerate(names):
        spread = f"{trials[row].min()}/{np.median(trials[row]):g}/{trials[row].max()}"
        runs = trials[row].sum()
        mean = f"{total[row].sum() / runs:.4f}" if runs else "-"
        lines.append(f"  {system!s:<{width}}  {spread:>21}  {missing[row].sum():>7}  {mean:>10}")
        if missing[row].any() and dataset.attrs["missing_policy"] == "ignore":
            lines.append(
                f"  {'':<{width}}  {_bounds(total[row], trials[row], missing[row], scores)}"
            )
    if answers is not None:
        lines.append(answers.card())
    return "\n".join(lines + [f"  assumed: {note}" for note in notes])


def _bounds(
    total: NDArray[np.float64],
    trials: NDArray[np.int64],
    missing: NDArray[np.int64],
    scores: NDArray[np.float64],
) -> str:
    """Mean score if every missing outcome had the lowest, or the highest, score."""
    runs, gaps = trials.sum() + missing.sum(), missing.sum()
    worst, best = ((total.sum() + gaps * end) / runs for end in (scores.min(), scores.max()))
    return f"mean score with missing at worst {worst:.4f}, at best {best:.4f}"
