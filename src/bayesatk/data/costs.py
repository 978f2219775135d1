"""What trials cost: read beside their outcomes, and kept as sums by system, question and outcome.

The number of trials with a known cost, the sum of their costs and the sum of the logs are all that
the model of costs needs (`bayesatk.core.costs.model`), so memory does not grow with the trials.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.arrays import arranged
from bayesatk.data.long_form import Counts, LongForm
from bayesatk.data.validation import OutcomeError, is_missing, shown

MissingCost = Literal["error", "ignore"]
SUMS = ("number", "total", "log_total")
COST = "cost"  # role of the column
# Names under which readers of logs know costs, with their units.
_LEAST, _MOST = 1e-90, 1e90  # of a cost: sums and ratios of costs stay numbers
UNITS = {"cost": "USD", "tokens": "tokens", "input_tokens": "tokens", "output_tokens": "tokens",
         "seconds": "s"}  # fmt: skip


@dataclass(frozen=True)
class CostRequest:
    """What was asked for of costs.

    Parameters
    ----------
    column : str or None
        Name of a column, or of what logs say.
    given : array_like, mapping or None
        Costs arranged like the outcomes.
    unit : str
    missing : {"error", "ignore"}
    """

    column: str | None
    given: object
    unit: str
    missing: MissingCost

    @classmethod
    def of(cls, cost: object, unit: object, missing: object) -> "CostRequest":
        """Read the arguments of `bayesatk.tally`."""
        if not isinstance(unit, str | None):
            raise OutcomeError(Argument("cost_unit"), f" must be text; got {shown(unit)}.")
        if not isinstance(missing, str) or missing not in get_args(MissingCost):
            rule = f" must be 'error' or 'ignore'; got {shown(missing)}."
            raise OutcomeError(Argument("missing_cost"), rule)
        column = cost if isinstance(cost, str) else None
        return cls(column, None if column is not None else cost, unit or "", missing)  # type: ignore[arg-type]

    def of_logs(self) -> "CostRequest":
        """Return it with the unit of what logs say under the name, where none was given."""
        return replace(self, unit=self.unit or UNITS.get(self.column or "", ""))

    @property
    def roles(self) -> dict[str, str]:
        """Role of the column, if one was named."""
        return {} if self.column is None else {COST: self.column}

    def refuse_given(self) -> None:
        """Refuse costs that are no name of a column, where files are read."""
        if self.given is not None:
            rule = f" must be the name of a column of the files; got {shown(self.given)}."
            raise OutcomeError(Argument("cost"), rule)

    def add_to(self, long: LongForm) -> LongForm:
        """Keep the costs that were given beside the outcomes."""
        if self.column is not None and long.cost is None:
            raise OutcomeError(
                Argument("cost"), " must have the cost of every trial, arranged like data, where "
                f"data are no table; got {shown(self.column)}.",
            )  # fmt: skip
        if self.given is None:
            return long
        if not long.trials:
            raise OutcomeError(
                Argument("cost"), " must be left out for counts, which do not say which trials "
                "they count. Give the outcome of every trial.",
            )  # fmt: skip
        return replace(long, cost=self._arranged(long))

    def _arranged(self, long: LongForm) -> NDArray[np.float64]:
        """Return given costs in the order of the trials."""
        values = self.given
        if isinstance(values, xr.DataArray):
            values = self._oriented(values, long)
        blocks = arranged(values, COST)
        sizes = np.concatenate([block.sizes for block in blocks])
        own = np.bincount(long.rows()[0], minlength=len(long.systems) * len(long.questions))
        named = not isinstance(values, Mapping) or list(values) == list(long.systems)
        if not named or not np.array_equal(sizes.ravel(), own):
            raise OutcomeError(
                Argument("cost"), " must be arranged like data, a cost for each trial; got "
                f"{shown(sizes.tolist())} costs by question, and data have "
                f"{shown(own.reshape(len(long.systems), -1).tolist())} outcomes.",
            )  # fmt: skip
        cells = list(chain.from_iterable(block.cells() for block in blocks))
        return read_costs(cells, _place_of(long), "cost")

    def _oriented(self, values: xr.DataArray, long: LongForm) -> NDArray[Any]:
        labels = {"system": long.systems, "question": long.questions}
        for name, own in labels.items():
            if name in values.indexes and values.indexes[name].tolist() != list(own):
                raise OutcomeError(
                    Argument("cost"), f" must have the {name}s of data, in their order; got "
                    f"{shown(values.indexes[name].tolist())}. Use cost.reindex_like(data).",
                )  # fmt: skip
        dims = [name for name in ("system", "question", "trial") if name in values.dims]
        return np.asarray(values.transpose(*dims).values)

    def check(self, counts: Counts) -> Counts:
        """Refuse missing costs, or note how many there are."""
        if counts.costs is None:
            return counts
        lacking = counts.count - counts.costs[..., 1:, 0]
        number, trials = int(lacking.sum()), int(counts.count.sum())
        unit = f" in {self.unit}" * bool(self.unit)
        counts = replace(counts, cost_unit=self.unit, notes=(*counts.notes, f"costs{unit}"))
        if not number:
            return counts
        told = f"{number} of {trials} trials ({number / max(trials, 1):.1%}) have no cost"
        if self.missing == "error":
            s, q, _ = np.argwhere(lacking)[0].tolist()
            raise OutcomeError(
                f"cost: {told}; the first is of system {shown(counts.systems[s])}, question "
                f"{shown(counts.questions[q])}. Give them, or use ",
                Argument("missing_cost", "ignore", "tally"),
                ", which takes them to be like those of the same outcome that are known.",
            )  # fmt: skip
        return replace(counts, notes=(*counts.notes, f"missing_cost='ignore': {told}"))


def _place_of(long: LongForm) -> Callable[[int], str]:
    """Return where a trial is, for a message."""

    def place(row: int) -> str:
        system, question = divmod(int(long.rows()[0][row]), len(long.questions))
        return f"system {shown(long.systems[system])}, question {shown(long.questions[question])}"

    return place


def read_costs(
    values: Sequence[Any] | NDArray[Any], place: Callable[[int], str], name: str
) -> NDArray[np.float64]:
    """Return costs as numbers, NaN where there is none, or refuse the first that is no cost.

    Examples
    --------
    >>> read_costs([1, "2.5", None, ""], str, "usd").tolist()
    [1.0, 2.5, nan, nan]
    """
    found = np.array([_number(value) for value in values], float)
    wrong = np.flatnonzero(~np.isnan(found) & ~((found >= _LEAST) & (found <= _MOST)))
    if len(wrong):
        row = int(wrong[0])
        value = found[row]
        what = "is 0 or less" if value <= 0.0 else "is no such number"
        raise OutcomeError(
            f"every cost must be a number from {_LEAST:g} to {_MOST:g}; {shown(values[row])} in "
            f"{shown(name)} at {place(row)} {what}. Write an unknown cost as None and use ",
            Argument("missing_cost", "ignore", "tally"), "; a trial that cost nothing has no "
            "ratio to the others, so leave costs out or add what else it cost.",
        )  # fmt: skip
    return found


def _number(value: object) -> float:
    """Return a cost, NaN for one that is missing, infinity for what is no number."""
    if isinstance(value, str):
        text = value.strip()
        if not text or text.lower() in ("nan", "none", "null"):
            return math.nan
        try:
            return float(text) if "_" not in text else math.inf
        except ValueError:
            return math.inf
    if is_missing(value):
        return math.nan
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        try:  # Decimal
            return float(value) if type(value).__name__ == "Decimal" else math.inf  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return math.inf
    try:
        return float(value)
    except (OverflowError, TypeError):
        return math.inf


def described(dataset: xr.Dataset) -> str:
    """Return a line on the costs of a counts Dataset."""
    sums = dataset["cost_sums"].sum(["system", "question", "category"]).values
    unit = dataset.attrs.get("cost_unit", "")
    if not sums[0]:
        return "costs: none is known"
    mean = f"{sums[1] / sums[0]:.4g}{f' {unit}' * bool(unit)}"
    return f"costs: of {int(sums[0]):,} trials, mean {mean}"
