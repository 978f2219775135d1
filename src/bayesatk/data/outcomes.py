"""The data: outcomes of repeated trials, reduced to counts per (system, question, category).

`tally` accepts what people have (arrays, ragged lists, success counts, long tables, xarray
objects) and refuses what it cannot read, naming the cell, the rule and the remedy. Reading files
is `bayesatk.io.load`, which ends here too.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data import labelled, tables
from bayesatk.data.answers import AnswerRules, Answers, check_rules
from bayesatk.data.arrays import read_answers, read_nested
from bayesatk.data.columns import WEIGHT
from bayesatk.data.costs import SUMS, CostRequest, MissingCost
from bayesatk.data.data_card import data_card, html_card
from bayesatk.data.long_form import Counts, LongForm, MissingPolicy
from bayesatk.data.partitions import is_partitioned, read_partitions
from bayesatk.data.question_columns import QuestionColumns, unequal, weights, with_roles
from bayesatk.data.selection import selected
from bayesatk.data.validation import (
    OutcomeError,
    Scores,
    as_coordinate,
    check_scores,
    shown,
    succeeding,
)

BINARY: Scores = {0: 0.0, 1: 1.0}


@dataclass(frozen=True)
class Outcomes:
    """Counts of outcomes, aligned on systems and questions.

    Parameters
    ----------
    dataset : xarray.Dataset
        ``count(system, question, category)`` and ``missing(system, question)``, int64, with the
        coordinate ``score(category)``, and further coordinates of the questions, if any;
        where costs are known ``cost_sums(system, question, category, cost_sum)``, and the
        attribute ``cost_unit``.
    notes : tuple of str
        What was assumed when the data were read; shown on the data card and kept in results.
    answers : Answers, optional
        The distinct answers given, for votes between them.
    sources : tuple of (str, str)
        Name and SHA-256 of every file that was read.

    See Also
    --------
    bayesatk.tally : makes it from arrays and tables.
    bayesatk.load : makes it from files.

    Examples
    --------
    >>> data = tally({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]})
    >>> data.systems, data.successes.values.tolist()
    (['a', 'b'], [[1, 2], [0, 1]])
    """

    dataset: xr.Dataset
    notes: tuple[str, ...] = ()
    answers: Answers | None = None
    sources: tuple[tuple[str, str], ...] = ()

    @property
    def trials(self) -> xr.DataArray:
        """Observed trials per system and question."""
        return self.dataset["count"].sum("category").rename("trials")

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Weights of the questions in every mean over them, as given; None if all are the same."""
        return unequal(self.dataset[WEIGHT].values) if WEIGHT in self.dataset.coords else None

    @property
    def binary(self) -> bool:
        """Whether there are two categories, scored 0 and 1."""
        return sorted(self.dataset["score"].values.tolist()) == [0.0, 1.0]

    def with_success(self, rule: str) -> "Outcomes":
        """Return the outcomes as right and wrong, by a rule on the scores of the categories.

        Parameters
        ----------
        rule : str
            ``"score >= 0.5"`` or ``"score > 0.5"``: the scores that count as a success.

        Examples
        --------
        >>> data = tally([["no", "part", "yes"]], scores={"no": 0, "part": 0.5, "yes": 1})
        >>> data.with_success("score >= 0.5").successes.values.tolist()
        [[2]]
        """
        scores = self.dataset["score"].values
        succeeds = succeeding(rule, scores)
        count = self.dataset["count"].values
        pair = np.stack([count[..., ~succeeds].sum(-1), count[..., succeeds].sum(-1)], axis=-1)
        names = self.dataset["category"].values[succeeds].tolist()
        dataset = xr.Dataset(
            {
                "count": (("system", "question", "category"), pair),
                "missing": self.dataset["missing"],
            },
            coords={
                "system": self.dataset["system"], "question": self.dataset["question"],
                "category": ["0", "1"], "score": ("category", [0.0, 1.0]),
                **{
                    name: own
                    for name, own in self.dataset.coords.items()
                    if own.dims == ("question",)
                },
            },
            attrs=self.dataset.attrs,
        )  # fmt: skip
        if "cost_sums" in self.dataset:
            own = self.dataset["cost_sums"].values
            sums = np.stack([own[:, :, ~succeeds].sum(2), own[:, :, succeeds].sum(2)], axis=2)
            dataset = _with_costs(dataset, sums)
        note = f"success is {rule}: {', '.join(map(str, names))}"
        return replace(self, dataset=dataset, notes=(*self.notes, note))

    @property
    def successes(self) -> xr.DataArray:
        """Successful trials per system and question; the data must be binary."""
        scores = self.dataset["score"].values
        if not self.binary:
            raise OutcomeError(
                "data must have two categories, scored 0 and 1, for a metric of successes; got "
                f"scores {scores.tolist()}. Say which succeed, as in ",
                Argument("success", "score >= 0.5"),
                " or bayesatk.tally(data).with_success('score >= 0.5').",
            )
        correct = self.dataset["count"].isel(category=int(np.argmax(scores)), drop=True)
        return correct.rename("successes")

    def shared(self) -> "Outcomes":
        """Return the outcomes of the questions that every system tried.

        Examples
        --------
        >>> data = tally({"a": [[1], [0]], "b": [[1], [None]]}, missing="ignore").shared()
        >>> data.trials.values.tolist(), data.notes[-1]
        ([[1], [1]], 'questions that every system tried: 1 of 2')
        """
        kept = (self.trials > 0).all("system").values
        if not kept.any():
            raise OutcomeError(
                "systems must share a question; none was tried by all of them. Compare fewer."
            )
        note = f"questions that every system tried: {int(kept.sum())} of {len(kept)}"
        answers = None if self.answers is None else self.answers.on_questions(kept)
        dataset = self.dataset.isel(question=kept)
        return replace(self, dataset=dataset, notes=(*self.notes, note), answers=answers)

    def sel(
        self, *, system: object = None, question: object = None, group: object = None
    ) -> "Outcomes":
        """Return the outcomes of some systems, questions, or groups of questions.

        Parameters
        ----------
        system, question, group : label or collection of labels, optional
            All if not given. Their order in the data stays.

        Examples
        --------
        >>> data = tally({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]}, group=["law", "art"])
        >>> data.sel(group="art").successes.values.tolist()
        [[2], [1]]
        >>> data["b"].successes.values.tolist()  # the same as data.sel(system="b")
        [[0, 1]]
        """
        systems, questions, note = selected(self.dataset, system, question, group)
        answers = self.answers
        if answers is not None:
            answers = answers.on_questions(questions).on_systems(systems)
        dataset = self.dataset.isel(system=systems, question=questions)
        notes = (*self.notes, *[f"selected: {note}"] * bool(note))
        return replace(self, dataset=dataset, notes=notes, answers=answers)

    def unweighted(self) -> "Outcomes":
        """Return the outcomes without weights of questions, which then all count the same.

        Examples
        --------
        >>> data = tally([[1], [0]], weight=[3, 1])
        >>> data.weight.tolist(), data.unweighted().weight
        ([3.0, 1.0], None)
        """
        return replace(self, dataset=self.dataset.drop_vars(WEIGHT, errors="ignore"))

    def __getitem__(self, system: object) -> "Outcomes":
        return self.sel(system=system)

    def bounds(self) -> "tuple[Outcomes, Outcomes]":
        """Return the outcomes with every missing one at the lowest score, and at the highest.

        Examples
        --------
        >>> data = tally([[1, None], [0, 1]], missing="bounds")
        >>> [each.successes.values.tolist() for each in data.bounds()]
        [[[1, 1]], [[2, 1]]]
        """
        scores, missing = self.dataset["score"].values, self.dataset["missing"]
        ends = []
        for end in (int(scores.argmin()), int(scores.argmax())):
            count = self.dataset["count"].copy()
            count[{"category": end}] += missing
            dataset = self.dataset.drop_vars(["cost_sums", "cost_sum"], errors="ignore")
            dataset = dataset.assign(count=count, missing=0 * missing)
            ends.append(replace(self, dataset=dataset, answers=None))
        return ends[0], ends[1]

    def sha256(self) -> str:
        """Return a digest of the counts with their labels, scores, and weights of questions."""
        found = hashlib.sha256()
        for name in ("count", "missing", "system", "question", "category", "score"):
            values = self.dataset[name].values
            if values.dtype == object:
                values = np.array([str(value) for value in values.ravel().tolist()])
            found.update(f"{name} {values.shape} {values.dtype.str}".encode())
            found.update(np.ascontiguousarray(values).tobytes())
        if self.weight is not None:
            found.update(np.ascontiguousarray(self.weight).tobytes())
        if "cost_sums" in self.dataset:
            found.update(np.ascontiguousarray(self.dataset["cost_sums"].values).tobytes())
        return found.hexdigest()

    @property
    def systems(self) -> list[Any]:
        """System labels."""
        return list(self.dataset["system"].values.tolist())

    def card(self) -> str:
        """Return the data card: systems, questions, trials, missing outcomes and assumptions."""
        return data_card(self.dataset, self.answers, self.notes)

    def __str__(self) -> str:
        return self.card()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_card(self.dataset, self.answers, self.notes)


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
    if is_partitioned(data) and "answer" not in (columns or {}):
        return read_partitions(data, scores, with_roles(columns or {}, of_questions or {}))
    if tables.is_table(data):
        read = tables.read_table(data, with_roles(columns or {}, of_questions or {}))
        return tables.read_rows(read, scores, rules)
    _refuse_given("data without columns", columns=columns)
    if isinstance(data, xr.DataArray):
        return labelled.read_data_array(data, scores)
    return read_nested(data, scores)


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
        dataset = _with_costs(dataset, counts.costs[:, :, 1:])
        dataset.attrs["cost_unit"] = counts.cost_unit
    return Outcomes(dataset, counts.notes, counts.answers)


def _with_costs(dataset: xr.Dataset, sums: NDArray[np.float64]) -> xr.Dataset:
    """Add sums of costs (system, question, category, 3)."""
    dims = "system", "question", "category", "cost_sum"
    return dataset.assign(cost_sums=(dims, sums)).assign_coords(cost_sum=list(SUMS))
