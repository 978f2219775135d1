"""The data: outcomes of repeated trials, reduced to counts per (system, question, category).

`tally` accepts what people have (arrays, ragged lists, success counts, long tables, xarray
objects) and refuses what it cannot read, naming the cell, the rule and the remedy. Reading files
is `bayesatk.io.load`, which ends here too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk import encoding, tables
from bayesatk.encoding import OutcomeError, Scores

MissingPolicy = Literal["error", "ignore", "wrong"]

BINARY: Scores = {0: 0.0, 1: 1.0}
_DIMS = ("system", "question", "trial")


@dataclass(frozen=True)
class Outcomes:
    """Counts of outcomes, aligned on systems and questions.

    Parameters
    ----------
    dataset : xarray.Dataset
        ``count(system, question, category)`` and ``missing(system, question)``, int64, with the
        coordinate ``score(category)``.
    notes : tuple of str
        What was assumed on the way in; shown on the data card and kept in results.
    """

    dataset: xr.Dataset
    notes: tuple[str, ...] = ()

    @property
    def trials(self) -> xr.DataArray:
        """Observed trials per system and question."""
        return self.dataset["count"].sum("category").rename("trials")

    @property
    def successes(self) -> xr.DataArray:
        """Successful trials per system and question; the data must be binary."""
        scores = self.dataset["score"].values
        if sorted(scores.tolist()) != [0.0, 1.0]:
            raise OutcomeError(
                "data must have two categories, scored 0 and 1, for a metric of successes; got "
                f"scores {scores.tolist()}. Map the categories to 0 and 1 with scores={{...}}."
            )
        correct = self.dataset["count"].isel(category=int(np.argmax(scores)), drop=True)
        return correct.rename("successes")

    @property
    def systems(self) -> list[Any]:
        """System labels."""
        return list(self.dataset["system"].values.tolist())

    def card(self) -> str:
        """Return the data card: what is there, what is missing, what was assumed."""
        return _card(self)

    def __str__(self) -> str:
        return self.card()

    __repr__ = __str__


def tally(
    data: object,
    *,
    trials: object = None,
    systems: Sequence[object] | None = None,
    questions: Sequence[object] | None = None,
    scores: Mapping[Any, float] | None = None,
    missing: MissingPolicy = "error",
    columns: Mapping[str, str] | None = None,
) -> Outcomes:
    """Reduce outcomes of repeated trials to counts.

    Parameters
    ----------
    data : array_like, mapping, table, xarray object or Outcomes
        One of: an array (question, trial) or (system, question, trial); a list of rows of unequal
        length; a mapping {system: array or rows}; a vector of success counts with `trials`, or
        the tuple ``(successes, trials)``; a long table (pandas, polars, pyarrow) with a row per
        trial; a DataArray with dimensions from (system, question, trial); a counts Dataset.
    trials : int or array_like of int, optional
        Trials per question; then `data` holds success counts.
    systems, questions : sequence, optional
        Labels; default ``"system"`` (or 0, 1, ...) and 0, 1, ....
    scores : mapping, optional
        Score of every outcome that may occur, as in ``{"I": 0, "C": 1}``. Default ``{0: 0, 1: 1}``
        (False and True count as 0 and 1).
    missing : {"error", "ignore", "wrong"}
        What a NaN or None outcome, or a question that a system never ran, means: refuse; leave
        out; or count as the lowest score.
    columns : mapping, optional
        Names of the table's columns by role: ``{"system": ..., "question": ..., "trial": ...,
        "outcome": ...}``. Default: the usual names are looked for.

    Returns
    -------
    Outcomes
        Print it to see the data card.

    Raises
    ------
    OutcomeError
        An outcome without a score, a fractional or impossible count, a missing outcome under
        ``missing="error"``, a repeated (system, question, trial), nothing at all, or dimensions
        that do not fit; the message names the first offending cell. It is a ValueError.

    Examples
    --------
    >>> data = tally([[0, 1, 1, 0, 1], [1, 1, 0, 1]])
    >>> data.successes.values.tolist(), data.trials.values.tolist()
    ([[3, 3]], [[5, 4]])
    """
    if missing not in ("error", "ignore", "wrong"):
        raise OutcomeError(f"missing must be 'error', 'ignore' or 'wrong'; got {missing!r}.")
    if isinstance(data, Outcomes):
        return data
    scale = encoding.check_scores(BINARY if scores is None else scores)
    if trials is None and isinstance(data, tuple) and len(data) == 2:
        data, trials = data
    if trials is not None:
        return _from_successes(data, trials, systems, questions)
    if isinstance(data, xr.Dataset):
        return _from_counts(data)
    if tables.is_table(data):
        table = tables.read_table(data, columns or {}, scale)
    elif isinstance(data, xr.DataArray):
        table = _from_data_array(data, scale)
    else:
        table = encoding.read_nested(data, scale)
    return _finish(table.labelled(systems, questions), scale, missing)


def _from_successes(
    data: object, trials: object, systems: Sequence[object] | None, questions: Any
) -> Outcomes:
    hits = encoding.check_counts(data, "successes")
    runs = encoding.check_counts(trials, "trials")
    if hits.ndim not in (1, 2) or hits.size == 0:
        raise OutcomeError(
            "successes must be a non-empty vector (question,) or matrix (system, question); got "
            f"shape {hits.shape}."
        )
    try:
        runs = np.broadcast_to(runs, hits.shape)
    except ValueError:
        raise OutcomeError(
            f"trials must be one number or match successes; got shape {runs.shape} for "
            f"{hits.shape} successes."
        ) from None
    if (hits > runs).any():
        where = tuple(int(i) for i in np.argwhere(hits > runs)[0])
        raise OutcomeError(
            f"successes must not exceed trials; got {hits[where]} successes in {runs[where]} "
            f"trials at position {where}. Is the order (successes, trials)?"
        )
    hits, runs = np.atleast_2d(hits), np.atleast_2d(runs)
    count = np.stack([runs - hits, hits], axis=-1)
    table = encoding.Table.from_counts(count, np.zeros(hits.shape, int))
    return _finish(table.labelled(systems, questions), BINARY, "error")


def _from_counts(data: xr.Dataset) -> Outcomes:
    if "count" not in data or "score" not in data.variables:
        raise OutcomeError(
            "a counts Dataset must hold count(system, question, category) and score(category); "
            f"got variables {list(data.variables)}."
        )
    count = data["count"]
    if "system" not in count.dims:
        count = count.expand_dims(system=["system"])
    if set(count.dims) != {"system", "question", "category"}:
        raise OutcomeError(
            f"count must have the dims system, question, category; got {count.dims}."
        )
    count = count.transpose("system", "question", "category")
    checked = count.copy(data=encoding.check_counts(count.values, "count"))
    missing = data["missing"] if "missing" in data else checked.sum("category") * 0
    dataset = xr.Dataset({"count": checked, "missing": missing}).assign_coords(score=data["score"])
    dataset.attrs = {"missing_policy": data.attrs.get("missing_policy", "error")}
    return Outcomes(dataset)


def _from_data_array(data: xr.DataArray, scale: Scores) -> encoding.Table:
    extra = set(data.dims) - set(_DIMS)
    if extra or not {"question", "trial"} <= set(data.dims):
        raise OutcomeError(
            "a DataArray of outcomes must have the dims (question, trial) or (system, question, "
            f"trial); got {data.dims}. Rename them with .rename(...)."
        )
    ordered = data.transpose(..., *(dim for dim in _DIMS if dim in data.dims))
    labels = {
        dim: data.indexes[dim].tolist() for dim in ("system", "question") if dim in data.indexes
    }
    table = encoding.read_nested(ordered.values, scale)
    return table.labelled(labels.get("system"), labels.get("question"))


def _finish(table: encoding.Table, scale: Scores, policy: MissingPolicy) -> Outcomes:
    """Apply the missing policy and build the canonical Dataset."""
    count, missing = table.count.copy(), table.missing
    absent = (count.sum(axis=-1) == 0) & (missing == 0)
    gaps = missing + absent
    notes = list(table.notes)
    if gaps.any():
        first = tuple(int(i) for i in np.argwhere(gaps)[0])
        where = f"system {table.systems[first[0]]!r}, question {table.questions[first[1]]!r}"
        if policy == "error":
            what = "has no trials" if absent[first] else f"has {missing[first]} missing outcomes"
            raise OutcomeError(
                f"missing: {where} {what} ({int(missing.sum())} missing outcomes and "
                f"{int(absent.sum())} questions never run in all). Say what they mean: "
                "missing='ignore' leaves them out, missing='wrong' counts them as the lowest score."
            )
        if policy == "wrong":
            count[..., int(np.argmin(list(scale.values())))] += missing
        notes.append(
            f"missing={policy!r}: {int(missing.sum())} outcomes missing, "
            f"{int(absent.sum())} (system, question) cells never run"
        )
    dataset = xr.Dataset(
        {
            "count": (("system", "question", "category"), count),
            "missing": (("system", "question"), missing),
        },
        coords={
            "system": encoding.as_coordinate(table.systems, "systems"),
            "question": encoding.as_coordinate(table.questions, "questions"),
            "category": [str(label) for label in scale],
            "score": ("category", list(scale.values())),
        },
        attrs={"missing_policy": policy},
    )
    return Outcomes(dataset, tuple(notes))


def _card(data: Outcomes) -> str:
    trials, missing = data.trials.values, data.dataset["missing"].values
    scores = data.dataset["score"].values
    scale = ", ".join(
        f"{label} = {score:g}"
        for label, score in zip(data.dataset["category"].values, scores, strict=True)
    )
    systems, questions = trials.shape
    lines = [
        f"Outcomes: {systems} system{'s' * (systems > 1)} x {questions} questions, "
        f"{int(trials.sum()):,} trials (scores: {scale})"
    ]
    width = max([6, *(len(str(system)) for system in data.systems)])
    lines.append(f"  {'system':<{width}}  trials min/median/max  missing  mean score")
    total = (data.dataset["count"].values * scores).sum(axis=-1)
    for row, system in enumerate(data.systems):
        spread = f"{trials[row].min()}/{np.median(trials[row]):g}/{trials[row].max()}"
        mean = total[row].sum() / max(1, trials[row].sum())
        lines.append(f"  {system!s:<{width}}  {spread:>21}  {missing[row].sum():>7}  {mean:>10.4f}")
        if missing[row].any() and data.dataset.attrs["missing_policy"] == "ignore":
            lines.append(
                f"  {'':<{width}}  {_bounds(total[row], trials[row], missing[row], scores)}"
            )
    return "\n".join(lines + [f"  assumed: {note}" for note in data.notes])


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
