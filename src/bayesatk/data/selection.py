"""Some systems, questions or groups of questions, by their labels."""

from collections.abc import Collection
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import GROUP
from bayesatk.data.validation import OutcomeError, shown

Kept = NDArray[np.bool_]


def selected(
    dataset: xr.Dataset, system: object, question: object, group: object
) -> tuple[Kept, Kept, str]:
    """Return which systems and which questions are meant, and a note that says so.

    Parameters
    ----------
    dataset : xarray.Dataset
        Counts with their labels.
    system, question, group : label, collection of labels, or None for all
    """
    if group is not None and GROUP not in dataset.coords:
        raise OutcomeError(
            Argument(GROUP), f" must be left out for data without groups; got {shown(group)}. Say "
            "what the groups are: ", Argument(GROUP, ..., "tally"), ".",
        )  # fmt: skip
    systems, told = _kept(dataset["system"].values.tolist(), "system", system)
    questions, asked = _kept(dataset["question"].values.tolist(), "question", question)
    notes = told + asked
    if group is not None:
        members, of_group = _kept(dataset[GROUP].values.tolist(), GROUP, group)
        questions, notes = questions & members, notes + of_group
    if not questions.any():
        raise OutcomeError(
            Argument("question"), " and ", Argument(GROUP), " must have a question in common; "
            f"none of {shown(question)} is in {shown(group)}. Leave one of them out.",
        )  # fmt: skip
    return systems, questions, "; ".join(notes)


def _kept(labels: list[Any], name: str, wanted: object) -> tuple[Kept, list[str]]:
    """Return which labels are among those wanted, and in words."""
    if wanted is None:
        return np.ones(len(labels), bool), []
    if isinstance(wanted, np.ndarray | xr.DataArray):
        wanted = wanted.tolist()
    several = isinstance(wanted, Collection) and not isinstance(wanted, str | bytes)
    chosen: list[Any] = list(wanted) if several else [wanted]  # type: ignore[call-overload]
    known = dict.fromkeys(labels)
    try:
        absent = [one for one in chosen if one not in known]
    except TypeError:  # a label that has no hash
        absent = chosen
    if absent or not chosen:
        raise OutcomeError(
            Argument(name), f" must be among the labels of the data, {shown(list(known), 200)}; "
            f"got {shown(absent[0] if absent else wanted)}.",
        )  # fmt: skip
    among = set(chosen)
    kept = np.fromiter((label in among for label in labels), bool, len(labels))
    number = len(among)
    return kept, [f"{name} {shown(chosen[0])}" if number == 1 else f"{number} {name}s"]
