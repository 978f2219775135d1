"""The data card: what was read, in a form that a person checks at a glance."""

from html import escape
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.answers import Answers
from bayesatk.data.columns import WEIGHT
from bayesatk.data.question_columns import question_coordinates

_COLUMNS = ("trials min/median/max", "missing", "mean score")
Card = tuple[str, list[tuple[str, ...]], list[str]]  # title, rows with remarks, lines below


def data_card(dataset: xr.Dataset, answers: Answers | None, notes: tuple[str, ...]) -> str:
    """Return what is there, what is missing and what was assumed, in lines of text."""
    title, rows, lines = _card(dataset, answers, notes)
    width = max([6, *(len(name) for name, *_ in rows)])
    text = [title]
    for name, *cells in (("system", *_COLUMNS), *rows):
        is_remark = len(cells) == 1
        aligned = cells if is_remark else map(str.rjust, cells, map(len, _COLUMNS))
        text.append(f"  {name:<{width}}  {'  '.join(aligned)}")
    return "\n".join(text + [f"  {line}" for line in lines])


def html_card(dataset: xr.Dataset, answers: Answers | None, notes: tuple[str, ...]) -> str:
    """Return the data card as a fragment of HTML, for notebooks; all text is escaped."""
    title, rows, lines = _card(dataset, answers, notes)
    head = "".join(f"<th>{name}</th>" for name in ("system", *_COLUMNS))
    body = ""
    for name, *cells in rows:
        span = " colspan='3'" * (len(cells) == 1)
        texts = "".join(f"<td{span}>{escape(cell)}</td>" for cell in cells)
        body += f"<tr><td>{escape(name)}</td>{texts}</tr>"
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return (
        f"<div><p>{escape(title)}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{f'<ul>{items}</ul>' * bool(items)}</div>"
    )


def _card(dataset: xr.Dataset, answers: Answers | None, notes: tuple[str, ...]) -> Card:
    """Return what a card says: a row for each system, and a row of two cells for a remark."""
    scores, trials = dataset["score"], dataset["count"].sum("category")
    scale = ", ".join(f"{label} = {score:g}" for label, score in
                      zip(dataset["category"].values, scores.values, strict=True))  # fmt: skip
    systems, questions = trials.shape
    title = (
        f"Outcomes: {systems} system{'s' * (systems > 1)} x {questions} questions, "
        f"{int(trials.sum()):,} trials (scores: {scale})"
    )
    totals = dataset["count"].dot(scores, ["question", "category"]).values
    rows: list[tuple[str, ...]] = []
    for name, own, gaps, total in zip(
        dataset["system"].values.tolist(), trials.values, dataset["missing"].values.sum(axis=1),
        totals, strict=True,
    ):  # fmt: skip
        runs = own.sum()
        spread = f"{own.min()}/{np.median(own):g}/{own.max()}"
        rows.append((str(name), spread, str(gaps), f"{total / runs:.4f}" if runs else "-"))
        if gaps and dataset.attrs["missing_policy"] in ("ignore", "bounds"):
            ends = scores.values.min(), scores.values.max()
            worst, best = ((total + gaps * end) / (runs + gaps) for end in ends)
            rows.append(("", f"mean score with missing at worst {worst:.4f}, at best {best:.4f}"))
    lines = [] if answers is None else [answers.card()]
    lines += [_costs(dataset)] if "cost_sums" in dataset else []
    known = [
        f"{name} ({_distinct(values)} values)"
        for name, values in question_coordinates(dataset).items()
        if name != WEIGHT
    ]
    lines += [f"questions have: {', '.join(known)}"] if known else []
    lines += [_weights(dataset[WEIGHT].values)] if WEIGHT in dataset.coords else []
    return title, rows, lines + [f"assumed: {note}" for note in notes]


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
