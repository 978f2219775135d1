"""`tally`: count outcomes by (system, question, category).

It accepts arrays, ragged lists, success counts, long tables and xarray objects. Errors name the
cell, the rule and the remedy. `bayesatk.load` reads files and counts them by `finish` as well.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import Argument, alternatives, one_of
from bayesatk.data import long_tables
from bayesatk.data.answers import AnswerRules, check_rules
from bayesatk.data.array_forms import (
    read_answers,
    read_counts,
    read_data_array,
    read_nested,
    read_successes,
)
from bayesatk.data.long_form import LongForm, MissingPolicy
from bayesatk.data.long_tables import read_rows
from bayesatk.data.outcomes import Outcomes, with_costs, with_stopping, with_truth
from bayesatk.data.question_columns import question_column, with_column_names
from bayesatk.data.requests import MissingCost, Request
from bayesatk.data.roles import TRUTH, is_better_lower, scores_of_failures
from bayesatk.data.validation import (
    NumberScale,
    OutcomeError,
    Scores,
    as_coordinate,
    check_scores,
    shown,
    succeeding,
)

BINARY: Scores = {0: 0.0, 1: 1.0}
Better = Literal["higher", "lower"]


def tally(
    data: object,
    *,
    trials: object = None,
    systems: Sequence[object] | None = None,
    questions: Sequence[object] | None = None,
    scores: Mapping[Any, float] | str | tuple[float, float] | None = None,
    success: str | None = None,
    better: Better = "higher",
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
    truth: object = None,
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
    scores : mapping, "numbers", or (low, high), optional
        Score of every outcome that may occur, as in ``{"I": 0, "C": 1}``; None for one that stands
        for a missing outcome, as in ``{"fail": 0, "pass": 1, "error": None}``. Default
        ``{0: 0, 1: 1}`` (False and True count as 0 and 1). ``"numbers"``: outcomes are numbers, and
        their own scores, such as rewards, F1 or seconds; ``(0, 1)``: numbers between these ends. Of
        more than 51 different numbers 51 levels are kept, and each number moves to one beside it
        (docs/answers_and_grades.md).
    success : str, optional
        Rule on the scores, as in ``"score >= 0.8"`` or ``"score <= 30"``, by which outcomes are
        right or wrong. Without `scores` outcomes may be any numbers.
    better : {"higher", "lower"}
        Whether higher or lower scores are better; ``"lower"`` for seconds, errors or costs. It is
        kept with the data, and by it results say which system is better. It is no part of right and
        wrong, which `success` makes.
    missing : {"error", "ignore", "wrong", "right"}
        What to do with an outcome that is NaN or None. ``"error"``: raise. ``"ignore"``: leave the
        trial out. ``"wrong"``: count it as the worst score. ``"right"``: count it as the best
        score; two evaluations, with ``"wrong"`` and with ``"right"``, say what missing outcomes may
        change. A question that a system never ran is left out under ``"ignore"`` and is an error
        otherwise, because its number of trials is not known.
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
        does not mean twice as much data (docs/your_questions.md). A question coordinate named
        ``weight`` is used as a weight.
    cost : str, array_like or mapping, optional
        Cost of every trial, for the metrics ``"cost"`` and ``"cost/success"`` of
        `bayesatk.evaluate`: the name of a column, or numbers of at least 0 arranged like `data`.
        None and NaN mean unknown.
    cost_unit : str, optional
        Such as ``"USD"``, ``"tokens"`` or ``"s"``, for tables and sentences.
    missing_cost : {"error", "ignore"}
        What to do with a trial whose cost is unknown: raise, or leave it out of metrics of costs.
        The data card gives their number.
    truth : str, array_like or mapping, optional
        What is true of trials that a judge marked, where it is known, such as what a person marked
        by hand: the name of a column, or values arranged like `data`, each 0 or 1, and None or
        empty where it is not known. `bayesatk.evaluate` then corrects for the errors of the judge
        (docs/judge_error.md). Which trials are marked by hand may depend on chance or on the mark.
        A trial of known truth without a mark (None under ``missing="ignore"``) counts as known.
        Grades become marks by `success`.

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
    scale = check_options(scores, missing, better)
    if scores is None and success is not None and answers is None:
        scale = NumberScale.beside(BINARY.values())  # a rule may be about any numbers
    labels = {"systems": systems, "questions": questions}
    rules = check_rules(answer_rules)
    request = Request.of(group, covariates, weight, cost, cost_unit, missing_cost, truth)
    if answers is not None:
        refuse_given("answers in arrays", columns=columns, trials=trials)
        long = read_answers(data, answers, reference, rules, scale, labels)
        return finish(request.add_to(long), scale, missing, request, success, better)
    refuse_given("data without answers=", reference=reference)
    if isinstance(data, Outcomes | xr.Dataset) and trials is None:
        refuse_given(
            "data that are counts already",
            scores=scores,
            columns=columns,
            cost=cost,
            truth=truth,
        )
        counted = _from_counts(data, missing, request, labels, better)
        return counted if success is None else counted.with_success(success)
    pair = trials is None and isinstance(data, tuple) and len(data) == 2
    if pair or trials is not None:
        lower = None if better == "higher" else better
        refuse_given(
            "success counts", scores=scores, columns=columns, success=success, better=lower
        )
        long = read_successes(*(data if pair else (data, trials)))  # type: ignore[misc]
        long = replace(long, notes=("the pair was read as (successes, trials)",) * pair)
    else:
        long = read_trials(data, scale, rules, columns, request.roles)
    return finish(request.add_to(long.labelled(**labels)), scale, missing, request, success, better)


def read_trials(
    data: object,
    scores: Scores,
    rules: AnswerRules,
    columns: Mapping[str, str] | None,
    roles: Mapping[str, str] | None = None,
) -> LongForm:
    """Return the long form of an array, rows, a mapping, a table or a DataArray."""
    by_role = columns or {}
    if roles and isinstance(by_role, Mapping):
        by_role = {**by_role, **roles}
    if long_tables.is_partitioned(data) and "answer" not in by_role:
        return read_rows(long_tables.partitions(data, by_role), scores)
    if long_tables.is_table(data):
        return read_rows([long_tables.read_table(data, by_role)], scores, rules)
    refuse_given("data without columns", columns=columns)
    if isinstance(data, xr.DataArray):
        return read_data_array(data, scores)
    return read_nested(data, scores)


def check_options(scores: object, missing: object, better: object = "higher") -> Scores:
    """Return the score mapping; refuse unknown scores, policies and directions."""
    one_of("better", better, get_args(Better))
    one_of("missing", missing, get_args(MissingPolicy), OutcomeError)
    numbers = scores if isinstance(scores, NumberScale) else NumberScale.of(scores)
    return numbers if numbers is not None else check_scores(BINARY if scores is None else scores)


def refuse_given(subject: str, **options: object) -> None:
    """Refuse options that would have no effect on the subject."""
    for name, value in options.items():
        if value is not None and (not isinstance(value, Mapping) or value):
            raise OutcomeError(
                f"{name} must be left out for {subject}; got {shown(value)}, which would have no "
                "effect. Leave it out."
            )


def _from_counts(
    data: Outcomes | xr.Dataset,
    missing: MissingPolicy,
    request: Request,
    labels: Mapping[str, object],
    better: Better,
) -> Outcomes:
    """Return outcomes of counts, to which the missing policy is applied unless it was before."""
    outcomes = data if isinstance(data, Outcomes) else Outcomes(data)
    relabelled = any(texts is not None for texts in labels.values())
    if (
        outcomes is data
        and missing == "error"
        and (better == "higher" or outcomes.direction < 0)
        and not (request.roles or request.given or relabelled)
    ):
        return outcomes
    dims = "system", "question", "category", "cost_sum", "truth", "mark"
    dataset = outcomes.dataset.transpose(*dims, ..., missing_dims="ignore")
    long, scale = read_counts(dataset)
    notes = *outcomes.notes, *long.notes
    long = replace(request.add_to(long.labelled(**labels)), notes=notes)
    policy: Any = dataset.attrs.get("missing_policy")
    applied = policy not in (None, "error")
    if applied:
        check_options(None, policy)
        if missing not in ("error", policy):
            raise OutcomeError(
                f"missing must be left out or {policy!r}, the policy by which these counts were "
                f"made; got {missing!r}. Use the outcomes themselves for another policy."
            )
    better = "lower" if outcomes.direction < 0 else better
    counted = finish(
        long, scale, policy if applied else missing, request, None, better, applied=applied
    )
    more = ("cost_sums", "cost_sum", "truth_count", "truth", "mark")
    result = counted.dataset.assign(
        {name: dataset[name].variable for name in more if name in dataset.variables}
    ).assign_attrs(
        {name: dataset.attrs[name] for name in ("cost_unit", "numbers") if name in dataset.attrs}
    )
    result = with_stopping(result, outcomes.stopped.tolist())
    return replace(counted, dataset=result, answers=outcomes.answers)


def finish(
    long: LongForm,
    scale: Scores,
    missing: MissingPolicy,
    request: Request,
    success: str | None = None,
    better: Better = "higher",
    *,
    applied: bool = False,
) -> Outcomes:
    """Count the trials and build the canonical Dataset.

    Parameters
    ----------
    long : LongForm
    scale : mapping
        Scores of the outcomes.
    missing : {"error", "ignore", "wrong", "right"}
    request : Request
    success : str, optional
        Rule of success.
    better : {"higher", "lower"}
    applied : bool
        Whether the missing policy was applied before.
    """
    attributes: dict[str, Any] = {"missing_policy": missing}
    success_rule = None  # that is applied to numbers before they are counted
    if isinstance(scale, NumberScale):
        numbers, success_rule, success = scale, success, None
        long, scale = long.levelled(numbers, success_rule)
        better = better if success_rule is None else "higher"  # of right and wrong
        if success_rule is None and not set(numbers.values()) <= set(scale.values()):
            attributes["numbers"] = len(numbers)
    long = _direction_doubted(long, scale, success_rule or success, better)
    slots = long.slots(scale)
    missing_counts = slots[..., 0]
    missing_notes = () if applied else _missing_notes(long, slots, missing)
    if missing in ("wrong", "right") and not applied:
        lowest = (missing == "wrong") == (better == "higher")
        long = long.with_missing_as(scale, min if lowest else max)
        slots = long.slots(scale)
    answers, answer_notes = long.grouped(scale)
    costs = long.cost_sums(slots.shape)
    notes = (*long.notes, *answer_notes, *missing_notes)
    count = np.ascontiguousarray(slots[..., 1:])
    stopped = (
        []
        if long.counted is not None
        else [
            str(system)
            for system, stops in zip(long.systems, long.stopped_systems(scale), strict=True)
            if stops
        ]
    )
    if stopped:
        attributes["stopping"] = json.dumps(stopped)
        of_systems = f" of {shown(stopped, 200)[1:-1]}" * (len(stopped) < len(long.systems))
        notes += (
            f"the trials of a question{of_systems} end at its first success: the observed pass@1 "
            "is that of first attempts, and pass@k the share that was solved within k; the "
            "posterior takes account of it, and the order of the trials is not tested",
        )
    if costs is not None:
        notes += request.notes(count - costs[..., 1:, 0].astype(int), int(count.sum()), long)
    if not count.any():
        raise OutcomeError("data must have at least one outcome; got no trials at all.")
    dims = "system", "question"
    dataset = xr.Dataset(
        {"count": ((*dims, "category"), count), "missing": (dims, missing_counts.copy())},
        _coordinates(long, scale, better),
        attributes,
    )
    if costs is not None:
        dataset = with_costs(dataset, costs[:, :, 1:], request.unit)
    dataset = with_column_names(dataset, request.roles)
    outcomes = Outcomes(dataset, notes, answers)
    outcomes = _judged(outcomes, success_rule, success, better)
    return _with_truths(outcomes, long, scale, success)


def _direction_doubted(
    long: LongForm, scale: Scores, success: str | None, better: Better
) -> LongForm:
    """Doubt that higher is better, or 1 right, in a column whose name says the opposite."""
    failures = scores_of_failures(long.outcome_column, scale) if success is None else {}
    if failures and all(scale[mark] == 1.0 - score for mark, score in failures.items()):
        return long.doubted(
            f"column {shown(long.outcome_column)} is called as what went wrong, and its marks "
            f"{shown([mark for mark, score in failures.items() if score == 0.0])[1:-1]} are taken "
            "as right; if they are wrong: ",
            Argument("scores", failures),
            ".",
        )
    scored = success is None and not set(scale.values()) <= {0.0, 1.0}
    if not (scored and better == "higher" and is_better_lower(long.outcome_column)):
        return long
    return long.doubted(
        f"higher scores are taken as better, and column {shown(long.outcome_column)} is called as "
        "what is better when lower; if it is: ",
        Argument("better", "lower"),
        ".",
    )


def _judged(
    outcomes: Outcomes, applied: str | None, success: str | None, better: Better
) -> Outcomes:
    """Return outcomes by the rule of success, if there is one, which may have been applied."""
    if applied is not None:
        return outcomes.judged_by(applied)
    if success is not None:
        return outcomes.with_success(success)
    if outcomes.binary and better == "lower":
        raise OutcomeError(
            Argument("better", "lower"),
            " is of scores, and these are 0 and 1, which are wrong "
            "and right. Say what a success is: ",
            Argument("success", "score <= 0"),
            ".",
        )
    return outcomes


def _with_truths(
    outcomes: Outcomes, long: LongForm, scale: Scores, success: str | None
) -> Outcomes:
    """Add counts of trials of known truth by mark; refuse marks that are not right or wrong."""
    if TRUTH not in long.by_trial:
        return outcomes
    scores = np.array(list(scale.values()))
    right = scores == 1.0 if success is None else succeeding(success, scores)
    if success is None and sorted(scores.tolist()) != [0.0, 1.0]:
        raise OutcomeError(
            "truth",
            " must go with marks that are right or wrong; got scores "
            f"{shown(scores.tolist(), 60)}. Say which succeed: ",
            Argument("success", "score >= NUMBER", "tally"),
            ".",
        )
    counts = long.truth_counts(right)
    assert counts is not None  # there are truths
    return replace(outcomes, dataset=with_truth(outcomes.dataset, counts))


def _coordinates(long: LongForm, scale: Scores, better: Better) -> dict[str, Any]:
    """Return the coordinates of the canonical Dataset: labels, scores and question columns."""
    columns = {
        name: question_column(name, values, long.questions) for name, values in long.columns.items()
    }
    return {
        "system": as_coordinate(long.systems, "systems"),
        "question": as_coordinate(long.questions, "questions"),
        "category": [str(label) for label in scale],
        "score": (
            "category",
            list(scale.values()),
            {"better": better} if better == "lower" else {},
        ),
        **{name: ("question", values) for name, values in columns.items()},
    }


def worst_or_best() -> tuple[Argument | str, ...]:
    """Return the remedy that counts missing outcomes as the worst and as the best score."""
    wrong, right = (Argument("missing", policy) for policy in ("wrong", "right"))
    return (
        wrong,
        " counts them as the worst score and ",
        right,
        " as the best: evaluate twice, with both, to see what they may change.",
    )


def _missing_notes(long: LongForm, slots: Ints, missing: MissingPolicy) -> tuple[str, ...]:
    """Return a note on the number of missing outcomes, or refuse them by the policy."""
    counted = missing in ("wrong", "right")
    missing_counts, never_run = slots[..., 0], ~slots.any(axis=-1)
    outcomes, cells = int(missing_counts.sum()), int(never_run.sum())
    if not outcomes and not cells:
        return ()
    if missing != "error" and not (counted and cells):
        return (
            f"missing={missing!r}: {outcomes} outcomes missing, {cells} (system, question) cells "
            "never run",
        )
    if len(long.systems) > 1 and (~never_run).sum(axis=0).max() < 2 and not counted:
        raise OutcomeError(
            f"missing: no two of the {len(long.systems)} systems tried the same question, so that "
            "they cannot be compared. If questions are the same, name them alike; to evaluate each "
            "system by itself, use ",
            Argument("missing", "ignore", "tally"),
            ".",
        )
    s, q = np.argwhere(never_run if counted else never_run | (missing_counts > 0))[0].tolist()
    fault = "has no trials" if never_run[s, q] else f"has {missing_counts[s, q]} missing outcomes"
    ignored = Argument("missing", "ignore", "tally")
    remedy: tuple[str | Argument, ...] = (
        "Say what they mean: ",
        ignored,
        " leaves them out; to compare systems on the questions "
        "that all tried, --shared beside it, in Python data.shared().",
    )
    if not cells:
        wrong, right = (Argument("missing", policy, "tally") for policy in ("wrong", "right"))
        ways: list[list[str | Argument]] = [
            ["to leave them out: ", ignored],
            ["to count them as the worst score: ", wrong],
            [
                "to count them as the best (evaluate twice, with both, to see what they may "
                "change): ",
                right,
            ],
        ]
        remedy = ("Say what they mean: ", *alternatives(ways), ".")
    if counted:
        remedy = (
            f"The number of trials to count as {missing} is not known. Use ",
            ignored,
            ", or give the missing outcomes as None.",
        )
    raise OutcomeError(
        f"missing: system {long.systems[s]!r}, question {long.questions[q]!r} {fault} ({outcomes} "
        f"missing outcomes and {cells} questions never run in all). ",
        *remedy,
    )
