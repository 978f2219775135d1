"""The data card: what was read, in a form that a person checks at a glance."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.answers import Answers
from bayesatk.data.columns import WEIGHT

_COLUMNS = ("trials min/median/max", "missing", "mean score")


@dataclass(frozen=True)
class _Card:
    """What a card says: a title, a row per system, and lines of text.

    Parameters
    ----------
    title : str
    rows : list of (str, str, str, str)
        Name of the system, and the cells of its columns.
    remarks : dict of int to str
        A line below a row, by its number.
    lines : list of str
    """

    title: str
    rows: list[tuple[str, str, str, str]]
    remarks: dict[int, str]
    lines: list[str]


def data_card(dataset: xr.Dataset, answers: Answers | None, notes: tuple[str, ...]) -> str:
    """Return what is there, what is missing and what was assumed, in lines of text."""
    card = _card(dataset, answers, notes)
    width = max([6, *(len(name) for name, *_ in card.rows)])
    lines = [card.title, f"  {'system':<{width}}  {'  '.join(_COLUMNS)}"]
    for row, (name, *cells) in enumerate(card.rows):
        aligned = (f"{cell:>{len(head)}}" for cell, head in zip(cells, _COLUMNS, strict=True))
        lines.append(f"  {name:<{width}}  {'  '.join(aligned)}")
        if row in card.remarks:
            lines.append(f"  {'':<{width}}  {card.remarks[row]}")
    return "\n".join(lines + [f"  {line}" for line in card.lines])


def html_card(dataset: xr.Dataset, answers: Answers | None, notes: tuple[str, ...]) -> str:
    """Return the data card as a fragment of HTML, for notebooks; all text is escaped."""
    card = _card(dataset, answers, notes)
    head = "".join(f"<th>{name}</th>" for name in ("system", *_COLUMNS))
    body = ""
    for row, cells in enumerate(card.rows):
        body += f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        if row in card.remarks:
            body += f"<tr><td></td><td colspan='3'>{escape(card.remarks[row])}</td></tr>"
    lines = "".join(f"<li>{escape(line)}</li>" for line in card.lines)
    return (
        f"<div><p>{escape(card.title)}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{f'<ul>{lines}</ul>' * bool(lines)}</div>"
    )


def _card(dataset: xr.Dataset, answers: Answers | None, notes: tuple[str, ...]) -> _Card:
    trials, missing = dataset["count"].sum("category").values, dataset["missing"].values
    scores, names = dataset["score"].values, dataset["system"].values.tolist()
    scale = ", ".join(
        f"{label} = {score:g}"
        for label, score in zip(dataset["category"].values, scores, strict=True)
    )
    systems, questions = trials.shape
    title = (
        f"Outcomes: {systems} system{'s' * (systems > 1)} x {questions} questions, "
        f"{int(trials.sum()):,} trials (scores: {scale})"
    )
    total = (dataset["count"].values * scores).sum(axis=-1)
    rows, remarks = [], {}
    for row, (name, own, gaps) in enumerate(zip(names, trials, missing, strict=True)):
        runs = own.sum()
        mean = f"{total[row].sum() / runs:.4f}" if runs else "-"
        spread = f"{own.min()}/{np.median(own):g}/{own.max()}"
        rows.append((str(name), spread, str(gaps.sum()), mean))
        if gaps.any() and dataset.attrs["missing_policy"] in ("ignore", "bounds"):
            remarks[row] = _bounds(total[row], own, gaps, scores)
    lines = [] if answers is None else [answers.card()]
    lines += [_costs(dataset)] if "cost_sums" in dataset else []
    known = [
        f"{name} ({_distinct(values.values)} values)"
        for name, values in dataset.coords.items()
        if values.dims == ("question",) and name not in ("question", WEIGHT)
    ]
    lines += [f"questions have: {', '.join(known)}"] if known else []
    lines += [_weights(dataset[WEIGHT].values)] if WEIGHT in dataset.coords else []
    return _Card(title, rows, remarks, lines + [f"assumed: {note}" for note in notes])


def _weights(weight: NDArray[np.float64]) -> str:
    """Return the range of the weights, and the effective number of questions (Kish 1965)."""
    own = weight / weight.max()
    effective = own.sum() ** 2 / (own**2).sum()
    return (
        f"questions have weights from {weight.min():.4g} to {weight.max():.4g}, an effective "
        f"number of {effective:.1f} equally weighted questions (mean scores above are not weighted)"
    )


def _costs(dataset: xr.Dataset) -> str:
    """Return how many costs are known, and their mean."""
    number, total, _ = dataset["cost_sums"].sum(["system", "question", "category"]).values
    unit = dataset.attrs.get("cost_unit", "")
    if not number:
        return "costs: none is known"
    return f"costs: of {int(number):,} trials, mean {total / number:.4g}{f' {unit}' * bool(unit)}"


def _distinct(values: NDArray[Any]) -> int:
    """Return how many different values there are; NaN and empty text are none."""
    return sum(not pd.isna(each) and each != "" for each in pd.unique(values).tolist())


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
