"""Outcomes, wherever they come from: of a result, of data, of successive days."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.data.capabilities import Operation, require
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import outcome_values
from bayesatk.data.tally import tally
from bayesatk.results.result import Result

Ints = NDArray[np.int64]


def outcomes_of(data: object, operation: Operation) -> Outcomes:
    """Return the outcomes of a result, or of anything that can be tallied, for an operation."""
    if isinstance(data, xr.DataTree | Result):
        fit = Result.of(data, None)
        fit.require(operation)
        return fit.data
    outcomes = tally(data)
    require(operation, outcome_values(outcomes), "data")
    return outcomes


def read_days(data: object) -> tuple[list[Any], list[Any], Ints, Ints]:
    """Return questions, days, and successes and trials (question, day).

    Parameters
    ----------
    data : mapping {day: data of one system}, or data whose systems are the days

    Examples
    --------
    >>> questions, days, successes, trials = read_days({"Mon": [[1, 0]], "Tue": [[1]]})
    >>> questions, days, successes.tolist(), trials.tolist()
    ([0], ['Mon', 'Tue'], [[1, 1]], [[2, 1]])
    """
    by_day = not isinstance(data, xr.DataTree)  # which is a mapping too
    if by_day and isinstance(data, Mapping):
        read = [(day, outcomes_of(outcomes, "change_point")) for day, outcomes in data.items()]
        many = next((day for day, outcomes in read if len(outcomes.systems) != 1), None)
        if many is not None:
            raise ValueError(
                f"outcomes_by_day must have data of one system for each day; day {many!r} has "
                "several. Pass those of one system."
            )
    else:
        whole = outcomes_of(data, "change_point")
        read = [(day, whole) for day in whole.systems]
    if len(read) < 2:
        raise ValueError(
            f"outcomes_by_day must have at least two days; got {len(read)}. Pass "
            "{day: outcomes, ...}, or data whose systems are the days."
        )
    labels: dict[Any, int] = {}
    for _, outcomes in read:
        for label in outcomes.dataset["question"].values.tolist():
            labels.setdefault(label, len(labels))
    counts = np.zeros((2, len(labels), len(read)), np.int64)
    for column, (day, outcomes) in enumerate(read):
        row = 0 if by_day and isinstance(data, Mapping) else outcomes.systems.index(day)
        places = [labels[label] for label in outcomes.dataset["question"].values.tolist()]
        counts[0, places, column] = outcomes.successes.values[row]
        counts[1, places, column] = outcomes.trials.values[row]
    return list(labels), [day for day, _ in read], counts[0], counts[1]
