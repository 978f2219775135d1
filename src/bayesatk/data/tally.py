"""`tally`: reduce what people have to counts per (system, question, category).

It accepts arrays, ragged lists, success counts, long tables and xarray objects. What it cannot
read it refuses, naming the cell, the rule and the remedy. `bayesatk.load`, which reads files, ends
here too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import xarray as xr

from bayesatk.data import labelled, tables
from bayesatk.data.answers import AnswerRules, check_rules
from bayesatk.data.arrays import read_answers, read_nested
from bayesatk.data.columns import WEIGHT, find_columns, unused
from bayesatk.data.content import content_columns
from bayesatk.data.costs import CostRequest, MissingCost
from bayesatk.data.counter import Counter
from bayesatk.data.list_cells import one_row_a_trial
from bayesatk.data.long_form import Counts, LongForm, MissingPolicy
from bayesatk.data.outcomes import Outcomes, with_costs
from bayesatk.data.question_columns import QuestionColumns, weights, with_roles
from bayesatk.data.validation import OutcomeError, Scores, as_coordinate, check_scores, shown

BINARY: Scores = {0: 0.0, 1: 1.0}
_AT_ONCE = 8  # partitions that are computed together, by as many threads or workers, and held


def tally(
    data: object,
    *,
    trials: object = None,
    systems: Sequence[object] | None = None,
    questions: Sequence[object] | None = None,
    scores: Mapping[Any, float] | None = None,
    missing: MissingPolicy = "error",
    columns: Mapping[str, str] | None = None,
    answers: object = None,
    reference: object = None,
    answer_rules: AnswerRules | None = None,
    group: object = None,
    covariates: object = None,
    weight: object = None,
    cost: object = None,
    cost_unit: str | None = None,
    missing_cost: MissingCost = "error",
) -> Outcomes:
    """Count the outcomes of repeated trials by system, question and category.

    Parameters
    ----------
    data : array_like, mapping, table, xarray object or Outcomes
        One of: an array (question, trial) or (system, question, trial); a list of rows of unequal
        length; a mapping {system: array or rows}; a vector of success counts, or a mapping
        {system: vector}, with `trials`, or the tuple ``(successes, trials)``; a long table (pandas,
        polars, pyarrow; lazy ones too, and those of dask) with a row per trial; a DataArray with
        dimensions from (system, question, trial); a counts Dataset.
    trials : int, array_like of int, or mapping {system: either}, optional
        Trials per question; then `data` holds success counts.
    systems, questions : sequence, optional
        Labels; default ``"system"`` (or 0, 1, ...) and 0, 1, ....
    scores : mapping, optional
        Score of every outcome that may occur, as in ``{"I": 0, "C": 1}``. Default ``{0: 0, 1: 1}``
        (False and True count as 0 and 1).
    missing : {"error", "ignore", "wrong", "bounds"}
        What to do with an outcome that is NaN or None. ``"error"``: raise. ``"ignore"``: leave the
        trial out. ``"wrong"``: count it as the lowest score. ``"bounds"``: leave it out, and let
        `bayesatk.evaluate` also compute all results with every missing outcome wrong, and with
        every one right. A question that a system never ran is left out under ``"ignore"`` and
        ``"bounds"`` and is an error otherwise, because its number of trials is not known.
    columns : mapping, optional
        Names of the table's columns by role: ``{"system": ..., "question": ..., "trial": ...,
        "outcome": ...}``. Default: columns with common names such as ``question``, ``task_id`` or
        ``passed``. ``"answer"`` names a column of answers, for votes between them; with
        ``"reference"``, the column of right answers, no outcome is needed. All rows of a question
        must have the same content: columns such as ``prompt`` or ``target``, or the one that
        ``"content"`` names.
    answers : array_like or mapping, optional
        The answer of every trial, arranged like `data`; None or "" where there is none.
    reference : sequence or mapping, optional
        The right answer, or a list of them, of every question (by position, or by label); `data`
        is then None.
    answer_rules : AnswerRules, optional
        How answers are compared, and how conflicting marks and missing answers are treated.
    group : str, sequence or mapping, optional
        Group of every question, such as its domain or repository: the name of a column in which
        all rows of a question agree (or of a coordinate of the questions), a list in the order of
        the questions, or a mapping from question to group.
    covariates : str, sequence of str, or mapping, optional
        Properties of the questions: names of columns, or ``{name: values}`` with values in the
        same forms as `group`. Numbers stay numbers; NaN or empty text means unknown.
    weight : str, sequence or mapping, optional
        Weight of every question in all means over questions, in the same forms as `group`:
        positive, on any scale. A weight of 2 doubles the influence of a question on the mean; it
        does not mean twice as much data (docs/weights.md). A question coordinate named ``weight``
        is used as a weight.
    cost : str, array_like or mapping, optional
        Cost of every trial, for `bayesatk.costs.evaluate_cost`: the name of a column, or numbers
        > 0 arranged like `data`. None and NaN mean unknown.
    cost_unit : str, optional
        Such as ``"USD"``, ``"tokens"`` or ``"s"``, for tables and sentences.
    missing_cost : {"error", "ignore"}
        What to do with a trial whose cost is unknown: raise; or assume that its cost is
        distributed like that of other trials of the question with the same outcome. The data card
        gives their number.

    Returns
    -------
    Outcomes
        Print it to see the data card.

    Raises
    ------
    OutcomeError
        For an outcome without a score, a fractional or impossible count, a missing outcome under
        ``missing="error"``, a repeated (system, question, trial), empty data, or dimensions that
        do not fit. The message names the first offending cell. It is a ValueError.

    See Also
    --------
    bayesatk.load : reads files and logs.

    Examples
    --------
    >>> data = tally([[0, 1, 1, 0, 1], [1, 1, 0, 1]])
    >>> data.successes.values.tolist(), data.trials.values.tolist()
    ([[3, 3]], [[5, 4]])
    >>> tally({"a": [3, 1], "b": [0, 4]}, trials={"a": 4, "b": [5, 4]}).trials.values.tolist()
    [[4, 4], [5, 4]]
    """
    scale = check_options(scores, missing)
    labels: dict[str, Any] = {"systems": systems, "questions": questions}
    rules, known = check_rules(answer_rules), QuestionColumns.of(group, covariates, weight)
    costs = CostRequest.of(cost, cost_unit, missing_cost)
    if answers is not None:
        _refuse_given("answers in arrays", columns=columns, trials=trials)
        long = read_answers(data, answers, reference, rules, scale, **labels)
        return finish(costs.add_to(known.add_to(long)).count(scale), scale, missing, costs)
    _refuse_given("data without answers=", reference=reference)
    if isinstance(data, Outcomes | xr.Dataset) and trials is None:
        _refuse_given("data that are counts already", scores=scores, columns=columns, cost=cost)
        return _from_counts(data, missing, known, **labels)
    pair = trials is None and isinstance(data, tuple) and len(data) == 2
    if pair or trials is not None:
        _refuse_given("success counts", scores=scores, columns=columns)
        long = labelled.read_successes(*(data if pair else (data, trials)))  # type: ignore[misc]
        notes = ("the pair was read as (successes, trials)",) if pair else ()
        long = replace(long, notes=notes)
    else:
        long = read_trials(data, scale, rules, columns, {**known.roles, **costs.roles})
    long = costs.add_to(known.add_to(long.labelled(**labels)))
    return finish(long.count(scale), scale, missing, costs)


def read_trials(
    data: object,
    scores: Scores,
    rules: AnswerRules,
    columns: Mapping[str, str] | None,
    of_questions: Mapping[str, str] | None = None,
) -> LongForm:
    """Return the long form of an array, rows, a mapping, a table or a DataArray."""
    if _is_partitioned(data) and "answer" not in (columns or {}):
        return _read_partitions(data, scores, with_roles(columns or {}, of_questions or {}))
    if tables.is_table(data):
        read = tables.read_table(data, with_roles(columns or {}, of_questions or {}))
        return tables.read_rows(read, scores, rules)
    _refuse_given("data without columns", columns=columns)
    if isinstance(data, xr.DataArray):
        return labelled.read_data_array(data, scores)
    return read_nested(data, scores)


def _is_partitioned(data: object) -> bool:
    """Whether this is a table of dask, whose partitions are tables of pandas."""
    return type(data).__module__.startswith("dask.") and hasattr(data, "to_delayed")


def _read_partitions(data: Any, scores: Scores, columns: Mapping[str, str]) -> LongForm:
    """Count the rows of a table of dask; of its columns, only those that matter are computed."""
    names = list(data.columns)
    roles = find_columns(names, columns)
    asked = content_columns(names, roles, columns)
    others = unused(names, roles, asked)
    counter, start = Counter(scores), 0
    for part in _computed(data[list(dict.fromkeys([*roles.values(), *asked]))]):
        table = tables.from_pandas(part, columns)
        table = replace(table, numbers=range(start, start + len(part)), others=others)
        if len(part):
            counter.add(one_row_a_trial(table))
        start += len(part)
    return counter.long_form()


def _computed(data: Any) -> Iterator[Any]:
    """Yield the partitions, computed by dask's scheduler: threads here, or a cluster."""
    import dask

    parts = data.to_delayed()
    for start in range(0, len(parts), _AT_ONCE):
        yield from dask.compute(*parts[start : start + _AT_ONCE])


def check_options(scores: object, missing: object) -> Scores:
    """Return the score mapping, and refuse a policy that is none."""
    if not isinstance(missing, str) or missing not in get_args(MissingPolicy):
        policies = ", ".join(map(repr, get_args(MissingPolicy)))
        raise OutcomeError(f"missing must be one of {policies}; got {shown(missing)}.")
    return check_scores(BINARY if scores is None else scores)


def _refuse_given(what: str, **options: object) -> None:
    """Refuse options that would have no effect."""
    for name, value in options.items():
        if value is not None and (not isinstance(value, Mapping) or value):
            raise OutcomeError(
                f"{name} must be left out for {what}; got {shown(value)}, which would have no "
                "effect. Leave it out."
            )


def _from_counts(
    data: Outcomes | xr.Dataset,
    missing: MissingPolicy,
    known: QuestionColumns,
    systems: object,
    questions: object,
) -> Outcomes:
    """Take counts whose missing policy is applied already, or apply it."""
    changed = missing != "error" or bool(known.roles or known.given)
    if isinstance(data, Outcomes) and not changed and systems is None and questions is None:
        return data
    answers, notes = (data.answers, data.notes) if isinstance(data, Outcomes) else (None, ())
    dataset = data.dataset if isinstance(data, Outcomes) else data
    long, scale = labelled.read_counts(dataset)
    counts = known.add_to(long.labelled(systems, questions)).count(scale)
    counts = replace(counts, notes=(*notes, *counts.notes), answers=answers)
    if "cost_sums" in dataset:
        sums = dataset["cost_sums"].transpose("system", "question", "category", "cost_sum").values
        sums = np.concatenate([np.zeros_like(sums[:, :, :1]), sums], axis=2)
        counts = replace(counts, costs=sums, cost_unit=str(dataset.attrs.get("cost_unit", "")))
    applied = dataset.attrs.get("missing_policy")
    if applied in (None, "error"):
        return finish(counts, scale, missing)
    check_options(None, applied)
    if missing not in ("error", applied):
        raise OutcomeError(
            f"missing must be left out or {applied!r}, the policy by which these counts were made; "
            f"got {missing!r}. Use the outcomes themselves for another policy."
        )
    return finish(counts, scale, applied, applied=True)


def finish(
    counts: Counts,
    scale: Scores,
    missing: MissingPolicy,
    costs: CostRequest | None = None,
    applied: bool = False,
) -> Outcomes:
    """Build the canonical Dataset, by a missing policy that may have been applied already."""
    labels = {
        "system": as_coordinate(counts.systems, "systems"),
        "question": as_coordinate(counts.questions, "questions"),
    }
    counts = counts if applied else counts.with_missing(missing, scale)
    counts = counts if costs is None else costs.check(counts)
    columns = dict(counts.columns)
    if WEIGHT in columns:
        columns[WEIGHT] = weights(columns[WEIGHT].tolist(), counts.questions)
    if not counts.count.any():
        raise OutcomeError("data must have at least one outcome; got no trials at all.")
    dataset = xr.Dataset(
        {
            "count": (("system", "question", "category"), counts.count),
            "missing": (("system", "question"), counts.missing),
        },
        coords={
            **labels,
            **{name: ("question", values) for name, values in columns.items()},
            "category": [str(label) for label in scale],
            "score": ("category", list(scale.values())),
        },
        attrs={"missing_policy": missing},
    )
    if counts.costs is not None:
        dataset = with_costs(dataset, counts.costs[:, :, 1:])
        dataset.attrs["cost_unit"] = counts.cost_unit
    return Outcomes(dataset, counts.notes, counts.answers)
