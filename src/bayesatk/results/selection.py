"""Parts of a result that are results; outcomes of a result, of data, of successive days."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import chain
from typing import Any

import xarray as xr

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.capabilities import Operation, require
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import outcome_values, text_of_systems
from bayesatk.data.tally import tally
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import OF_ALL_SYSTEMS
from bayesatk.results.schema import outcomes_of as outcomes_of_groups
from bayesatk.results.tree import ResultTree


def one_system(fit: Fit, system: object = None) -> xr.DataTree:
    """Return a result of one system, without the dimension of systems.

    ArviZ's plots of counts (``az.plot_ppc_rootogram``, ``az.plot_ppc_pit`` and others) need
    observations along one dimension, the questions.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    system : label, optional
        The system; it may be left out if there is only one.

    Returns
    -------
    xarray.DataTree
        The same groups without the dimension ``system``.

    Raises
    ------
    ValueError
        If there are several systems and none is named, or the name is unknown.

    See Also
    --------
    bayesatk.Outcomes.sel : the same for data.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "bayes", rng=1)
    >>> one_system(fit, "b")["observed_data"]["successes"].values.tolist()
    [2]
    """
    fit = Result.of(fit)
    tree, (index, *further) = fit.tree, fit.positions(system)
    if further:
        raise ValueError(f"system must be one of {fit.systems}; got {system!r}.")
    groups = {}
    for name, node in tree.children.items():
        group = node.to_dataset()
        groups[f"/{name}"] = (
            group.isel(system=index, drop=True) if "system" in group.dims else group
        )
    selected = ResultTree.from_dict(groups)
    selected.attrs.update(tree.attrs)
    selected.attrs["study"] = text_of_systems(tree.attrs["study"], [index])
    return selected


def select_systems(fit: Fit, system: object) -> xr.DataTree:
    """Return a result of some of its systems.

    Their posteriors stay as they are. Comparisons, ranks and leaderboards depend on which systems
    there are, so they are left out: compare again.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`.
    system : label or collection of labels
        Their order in the result stays.

    Returns
    -------
    xarray.DataTree

    Raises
    ------
    ValueError
        If a label is unknown.

    See Also
    --------
    bayesatk.Outcomes.sel : the same for data.
    bayesatk.one_system : one system, without the dimension of systems.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 0]], "b": [[1, 1]], "c": [[0, 0]]}
    >>> fit = bayesatk.evaluate(runs, "bayes", pooling="none", rng=1)
    >>> select_systems(fit, ["a", "c"])["posterior"]["system"].values.tolist()
    ['a', 'c']
    """
    fit = Result.of(fit)
    positions = fit.positions(system)
    groups = {"/": fit.tree.to_dataset()}
    for name in fit.tree.children:
        group = fit.group(name)
        if name not in OF_ALL_SYSTEMS:
            groups[f"/{name}"] = group.isel(
                {dim: positions for dim in ("system", "other") if dim in group.dims}
            )
    selected = ResultTree.from_dict(groups)
    note = f"selected: systems {', '.join(str(fit.systems[index]) for index in positions)}"
    assumptions = [*fit.described("assumptions", []), note]
    selected.attrs["assumptions"] = json.dumps(assumptions)
    selected.attrs["study"] = text_of_systems(fit.tree.attrs["study"], positions)
    selected.attrs["input_sha256"] = Result.of(selected).data.sha256()
    return selected


def outcomes_of(data: object, operation: Operation, success: str | None = None) -> Outcomes:
    """Return the outcomes of a result, or of anything that can be tallied, for an operation.

    `success` says which scores succeed.
    """
    if isinstance(data, Fit):
        fit = Result.of(data, None)
        fit.require(operation)
        return fit.data if success is None else fit.data.with_success(success)
    outcomes = tally(data)
    outcomes = outcomes if success is None else outcomes.with_success(success)
    require(operation, outcome_values(outcomes), "data")
    return outcomes


def read_days(
    data: object, days: Sequence[object] | None = None
) -> tuple[list[Any], list[Any], Ints, Ints]:
    """Return questions, days, and successes and trials (question, day).

    Parameters
    ----------
    data : mapping {day: data of one system}, or data whose systems are the days
    days : sequence, optional
        In their order; see `outcomes_by_day`.

    Examples
    --------
    >>> questions, days, successes, trials = read_days({"Mon": [[1, 0]], "Tue": [[1]]})
    >>> questions, days, successes.tolist(), trials.tolist()
    ([0], ['Mon', 'Tue'], [[1, 1]], [[2, 1]])
    """
    outcomes = outcomes_by_day(data, days)
    dims = "question", "system"
    successes, trials = (
        table.transpose(*dims).values for table in (outcomes.successes, outcomes.trials)
    )
    return outcomes.dataset["question"].values.tolist(), outcomes.systems, successes, trials


def _in_order(
    read: list[tuple[Any, Outcomes]], days: Sequence[object] | None
) -> list[tuple[Any, Outcomes]]:
    """Sort days by time, or as they were named."""
    labels = [day for day, _ in read]
    if days is not None:
        unknown = next((day for day in days if day not in labels), None)
        if unknown is not None or len(set(days)) < len(days):
            fault = f"got {unknown!r}" if unknown is not None else "one comes twice"
            rule = f" must name days of the data, each once, of {labels!r:.200}; {fault}."
            raise ArgumentError("days", rule)
        return [read[labels.index(day)] for day in days]
    times = _times(labels)
    if times is None:
        return read
    return [read[place] for place in sorted(range(len(read)), key=times.__getitem__)]


def _times(labels: Sequence[Any]) -> list[Any] | None:
    """Return dates or numbers by which days are sorted; None if they are names.

    Examples
    --------
    >>> _times(["2026-02-01", "2026-01-31"])[0] > _times(["2026-02-01", "2026-01-31"])[1]
    True
    >>> _times([10, 9]), _times(["Mon", "Tue"])
    ([10, 9], None)
    """
    if all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels):
        return [*labels]
    try:
        return [
            (label if isinstance(label, date) else datetime.fromisoformat(label)).timetuple()[:6]
            for label in labels
        ]
    except (TypeError, ValueError):
        return None


def outcomes_by_day(data: object, days: Sequence[object] | None = None) -> Outcomes:
    """Return right and wrong on successive days, which are its systems, in their order.

    Dates and numbers are sorted. Other names have the order of a mapping or of `days`; the order of
    systems in data says nothing of time.
    """
    if isinstance(data, Mapping) and not isinstance(data, xr.DataTree):  # which is a mapping too
        read = [(day, outcomes_of(outcomes, "change_point")) for day, outcomes in data.items()]
        many = next((day for day, outcomes in read if len(outcomes.systems) != 1), None)
        if many is not None:
            raise ValueError(
                f"outcomes_by_day must have data of one system for each day; day {many!r} has "
                "several. Pass those of one system."
            )
    else:
        whole = outcomes_of(data, "change_point")
        if days is None and len(whole.systems) > 1 and _times(whole.systems) is None:
            raise ArgumentError(
                "days", " must say the order of systems that are no dates; got None for "
                f"{whole.systems!r:.200}. If they are one system on successive days, name them in "
                "their order: ", Argument("days", whole.systems[:2]), "; if they are dates, write "
                "them as 2026-01-31.",
            )  # fmt: skip
        read = [(day, whole) for day in whole.systems]
    read = _in_order(read, days)
    if len(read) < 2:
        raise ValueError(
            f"outcomes_by_day must have at least two days; got {len(read)}. Pass "
            "{day: outcomes, ...}, or data whose systems are the days."
        )
    columns = []
    for day, outcomes in read:
        row = outcomes.systems.index(day) if len(outcomes.systems) > 1 else 0
        counts = xr.Dataset(
            {"successes": outcomes.successes, "trials": outcomes.trials,
             "missing": outcomes.dataset["missing"]}
        )  # fmt: skip
        columns.append(counts.isel(system=row).reset_coords(drop=True))
    labels = [column["question"].values.tolist() for column in columns]
    questions = list(dict.fromkeys(chain(*labels)))
    aligned = [column.reindex(question=questions, fill_value=0) for column in columns]
    table = xr.concat(aligned, dim="system").assign_coords(system=[day for day, _ in read])
    notes = dict.fromkeys(note for _, outcomes in read for note in outcomes.notes)
    sources = dict.fromkeys(source for _, outcomes in read for source in outcomes.sources)
    attrs = {"assumptions": json.dumps([*notes]), "input_files": json.dumps([*sources])}
    return outcomes_of_groups(table[["successes"]], table[["trials", "missing"]], attrs)
