"""`Outcomes`: counts by (system, question, category), with selections and the data card.

`bayesatk.tally` makes them from arrays and tables, `bayesatk.load` from files.
"""

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import Argument
from bayesatk._tools.words import printable
from bayesatk.data.answers import Answers
from bayesatk.data.columns import MARKS, TRUTHS
from bayesatk.data.question_columns import column_name, question_coordinates, unequal_weights
from bayesatk.data.roles import GROUP, WEIGHT
from bayesatk.data.validation import OutcomeError, is_split, shown, succeeding


@dataclass(frozen=True)
class Outcomes:
    """Counts of outcomes, aligned on systems and questions.

    Parameters
    ----------
    dataset : xarray.Dataset
        ``count(system, question, category)`` and ``missing(system, question)``, int64, with the
        coordinate ``score(category)``, whose attribute ``better`` is ``"lower"`` where lower scores
        are better, and further coordinates of the questions, if any;
        where costs are known ``cost_sums(system, question, category, cost_sum)``, and the
        attribute ``cost_unit``; where the truth of trials is known
        ``truth_count(system, question, truth, mark)``.
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
    >>> import bayesatk
    >>> data = bayesatk.tally({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]})
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
    def observed_up_to(self) -> Ints:
        """Largest k for which pass@k of each question is observed; (system, question).

        This is the number of trials; of a solved question whose trials end at the first success,
        any k.
        """
        trials, stopped = self.trials.values, self.stopped
        if not stopped.any():
            return trials
        solved = self.successes.values > 0
        return np.where(stopped[:, None] & solved, np.iinfo(np.int64).max, trials)

    @property
    def stopped(self) -> Flags:
        """Whether the trials of questions end at the first success; (system,)."""
        names = json.loads(self.dataset.attrs.get("stopping", "[]"))
        return np.array([str(system) in names for system in self.systems])

    @property
    def weight(self) -> Array | None:
        """Weights of the questions in means over questions, as given; None if all are the same."""
        return (
            unequal_weights(self.dataset[WEIGHT].values) if WEIGHT in self.dataset.coords else None
        )

    @property
    def direction(self) -> int:
        """1 where higher scores are better, -1 where lower ones are.

        Examples
        --------
        >>> import bayesatk
        >>> data = bayesatk.tally([[9.5, 12], [7, 30]], scores="numbers", better="lower")
        >>> data.direction, data.with_success("score <= 10").direction
        (-1, 1)
        """
        return -1 if self.dataset["score"].attrs.get("better") == "lower" else 1

    @property
    def utility(self) -> Array:
        """Scores of the categories times `direction`, so that more is better."""
        return self.direction * self.dataset["score"].values

    @property
    def binary(self) -> bool:
        """Whether there are two categories, scored 0 and 1."""
        return sorted(self.dataset["score"].values.tolist()) == [0.0, 1.0]

    @property
    def right_or_wrong(self) -> bool:
        """Whether every category is scored 0 or, better, 1, however many have one of these.

        Examples
        --------
        >>> import bayesatk
        >>> runs, scores = [["yes", "no"], ["timeout", "yes"]], {"no": 0, "timeout": 0, "yes": 1}
        >>> data = bayesatk.tally(runs, scores=scores)
        >>> data.right_or_wrong, data.binary
        (True, False)
        """
        return self.direction > 0 and set(self.dataset["score"].values.tolist()) == {0.0, 1.0}

    def with_success(self, rule: str) -> "Outcomes":
        """Return the outcomes as right and wrong, by a rule on the scores of the categories.

        Parameters
        ----------
        rule : str
            ``"score >= 0.5"``, or with ``>``, ``<=`` or ``<``: the scores that count as a success.

        Examples
        --------
        >>> import bayesatk
        >>> data = bayesatk.tally([["no", "part", "yes"]], scores={"no": 0, "part": 0.5, "yes": 1})
        >>> data.with_success("score >= 0.5").successes.values.tolist()
        [[2]]
        """
        if "numbers" in self.dataset.attrs:
            raise OutcomeError(
                "success",
                f" must be given where {self.dataset.attrs['numbers']} "
                "different numbers are read, of which levels are kept: ",
                Argument("success", rule, "tally"),
                ".",
            )
        if "truth_count" in self.dataset:
            raise OutcomeError(
                "success",
                " must be given where marks with trials of known truth are read: ",
                Argument("success", rule, "tally"),
                ".",
            )
        succeeds = succeeding(rule, self.dataset["score"].values)
        names = self.dataset["category"].values[succeeds].tolist()
        pairs = {
            name: xr.concat(
                [values.isel(category=kind).sum("category") for kind in (~succeeds, succeeds)],
                "category",
            ).transpose(*values.dims)
            for name, values in self.dataset.drop_vars(["category", "score"]).items()
            if "category" in values.dims
        }
        dataset = self.dataset.drop_dims("category").assign(pairs)
        dataset = dataset.assign_coords(category=["0", "1"], score=("category", [0.0, 1.0]))
        note = f"success is {rule}: {', '.join(map(str, names))}"
        return replace(self, dataset=dataset, notes=(*self.notes, note)).judged_by(rule)

    def judged_by(self, rule: str) -> "Outcomes":
        """Say on the card if a rule for success makes nearly all trials of all systems alike."""
        trials = np.maximum(self.trials.sum("question").values, 1)
        share = self.successes.sum("question").values / trials
        if is_split(share):
            return self
        shares = ", ".join(f"{100 * value:.2g}%" for value in share[:3])
        note = (
            f"CHECK: by {rule!r} {shares} of the trials of a system are successes; is this the "
            "bound that was meant?"
        )
        return replace(self, notes=(*self.notes, note))

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

    @property
    def kinds(self) -> Ints:
        """Trials by mark and, where known, by truth; (system, question, kind).

        The kinds are trials marked wrong and trials marked right. Where the truth of some trials
        is known, these two count the other trials, followed by the trials known to be wrong
        (without a mark, marked wrong, marked right) and those known to be right (in the same
        order). The data must be binary.

        Examples
        --------
        >>> import bayesatk
        >>> bayesatk.tally([[1, 1, 0]], truth=[[1, None, None]]).kinds.tolist()
        [[[1, 1, 0, 0, 0, 0, 0, 1]]]
        """
        right, trials = self.successes.values, self.trials.values
        marks = np.stack([trials - right, right], axis=-1)
        if "truth_count" not in self.dataset:
            return marks
        labelled = self.dataset["truth_count"].values
        by_truth = labelled.reshape(*marks.shape[:2], -1)
        return np.concatenate([marks - labelled.sum(axis=2)[..., 1:], by_truth], axis=-1)

    def settled(self) -> "Outcomes | None":
        """Return the truths as the outcomes if the truth of every trial is known; else None."""
        if "truth_count" not in self.dataset or self.kinds[..., :2].any():
            return None
        count = self.dataset["truth_count"].sum("mark").values
        by_mark = ["truth_count", "truth", "mark", "cost_sums", "cost_sum"]
        names = self.dataset["category"].values[np.argsort(self.dataset["score"].values)].tolist()
        dataset = self.dataset.drop_vars(by_mark, errors="ignore").drop_dims("category")
        dataset = dataset.assign(
            count=(("system", "question", "category"), count), missing=0 * dataset["missing"]
        ).assign_coords(category=names, score=("category", [0.0, 1.0]))
        note = (
            "the truth of every trial is known: marks say nothing more, and are left out with the "
            "costs, answers and scores that are counted by them"
        )
        return replace(self, dataset=dataset, notes=(*self.notes, note), answers=None)

    def shared(self) -> "Outcomes":
        """Return the outcomes of the questions that every system tried.

        Examples
        --------
        >>> import bayesatk
        >>> data = bayesatk.tally({"a": [[1], [0]], "b": [[1], [None]]}, missing="ignore").shared()
        >>> data.trials.values.tolist(), data.notes[-1]
        ([[1], [1]], 'questions that every system tried: 1 of 2')
        """
        tried = (self.trials > 0).all("system").values
        if not tried.any():
            fewer = "Choose fewer" if len(self.systems) > 2 else "Run both on the same questions"
            raise OutcomeError(
                f"systems must share a question; none was tried by all of them. {fewer}."
            )
        note = f"questions that every system tried: {int(tried.sum())} of {len(tried)}"
        return self._selected(np.ones(len(self.systems), bool), tried, note)

    def _selected(self, systems: Flags, questions: Flags, *notes: str) -> "Outcomes":
        """Return the outcomes of some of the systems on some of the questions."""
        dataset = self.dataset.isel(system=systems, question=questions)
        answers = self.answers and self.answers.selected(systems, questions)
        return replace(self, dataset=dataset, notes=(*self.notes, *notes), answers=answers)

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
        >>> import bayesatk
        >>> runs = {"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]}
        >>> data = bayesatk.tally(runs, group=["law", "art"])
        >>> data.sel(group="art").successes.values.tolist()
        [[2], [1]]
        >>> data["b"].successes.values.tolist()  # the same as data.sel(system="b")
        [[0, 1]]
        """
        if group is not None and GROUP not in self.dataset.coords:
            raise OutcomeError(
                GROUP,
                f" must be left out for data without groups; got {shown(group)}. "
                "Say what the groups are: ",
                Argument(GROUP, ..., "tally"),
                ".",
            )
        wanted = {"system": system, "question": question, GROUP: group}
        selection = {
            name: kept_labels(self.dataset[name].values.tolist(), name, labels)
            for name, labels in wanted.items()
            if name in self.dataset.coords
        }
        systems, (questions, _) = selection["system"][0], selection["question"]
        if GROUP in selection:
            questions = questions & selection[GROUP][0]
        if not questions.any():
            raise OutcomeError(
                "question",
                " and ",
                GROUP,
                " must have a question in common; "
                f"none of {shown(question)} is in {shown(group)}. Leave one of them out.",
            )
        note = "; ".join(words for _, words in selection.values() if words)
        return self._selected(systems, questions, *[f"selected: {note}"] * bool(note))

    def unweighted(self) -> "Outcomes":
        """Return the outcomes without weights of questions, which then all count the same.

        Examples
        --------
        >>> import bayesatk
        >>> data = bayesatk.tally([[1], [0]], weight=[3, 1])
        >>> data.weight.tolist(), data.unweighted().weight
        ([3.0, 1.0], None)
        """
        return replace(self, dataset=self.dataset.drop_vars(WEIGHT, errors="ignore"))

    def __getitem__(self, system: object) -> "Outcomes":
        return self.sel(system=system)

    def sha256(self) -> str:
        """Return a digest of the counts with their labels, scores, and weights of questions."""
        digest = hashlib.sha256()
        for name in ("count", "missing", "system", "question", "category", "score"):
            values = self.dataset[name].values
            if values.dtype.kind in "OT":  # what it holds, not where that lies in memory
                values = np.array([str(value) for value in values.ravel().tolist()])
            digest.update(f"{name} {values.shape} {values.dtype.str}".encode())
            digest.update(np.ascontiguousarray(values).tobytes())
        if self.weight is not None:
            digest.update(np.ascontiguousarray(self.weight).tobytes())
        for name in ("cost_sums", "truth_count"):
            if name in self.dataset:
                digest.update(np.ascontiguousarray(self.dataset[name].values).tobytes())
        return digest.hexdigest()

    @property
    def systems(self) -> list[Any]:
        """System labels."""
        return list(self.dataset["system"].values.tolist())

    def card(self) -> str:
        """Return the data card: systems, questions, trials, missing outcomes and assumptions."""
        return "\n".join(map(printable, data_card(self).split("\n")))

    def __str__(self) -> str:
        return self.card()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.card())}</pre>"


def kept_labels(labels: list[Any], name: str, wanted: Any) -> tuple[Flags, str]:
    """Return which labels are among the wanted ones, and a note that says which these are."""
    if wanted is None:
        return np.ones(len(labels), bool), ""
    if isinstance(wanted, np.ndarray | xr.DataArray):
        wanted = wanted.tolist()
    several = isinstance(wanted, Collection) and not isinstance(wanted, str | bytes)
    wanted = list(wanted) if several else [wanted]
    distinct = dict.fromkeys(labels)
    try:
        absent = [label for label in wanted if label not in distinct]
    except TypeError:  # a label that has no hash
        absent = wanted
    if absent or not wanted:
        raise OutcomeError(
            name,
            f" must be among the labels of the data, {shown(list(distinct), 200)}; "
            f"got {shown(absent[0] if absent else wanted)}.",
        )
    wanted_set = set(wanted)
    words = f"{name} {shown(wanted[0])}" if len(wanted_set) == 1 else f"{len(wanted_set)} {name}s"
    return np.array([label in wanted_set for label in labels]), words


COST_SUMS = ["number", "total", "square_total"]


def with_costs(dataset: xr.Dataset, sums: Array, unit: str) -> xr.Dataset:
    """Add sums of costs (system, question, category, sum)."""
    dims = "system", "question", "category", "cost_sum"
    dataset = dataset.assign(cost_sums=(dims, sums)).assign_attrs(cost_unit=unit)
    return dataset.assign_coords(cost_sum=COST_SUMS)


def with_stopping(dataset: xr.Dataset, stopped: Sequence[bool]) -> xr.Dataset:
    """Add the names of the systems whose trials of a question end at its first success."""
    names = [
        str(system)
        for system, stops in zip(dataset["system"].values.tolist(), stopped, strict=True)
        if stops
    ]
    return dataset.assign_attrs(stopping=json.dumps(names)) if names else dataset


def with_truth(dataset: xr.Dataset, counts: Ints) -> xr.Dataset:
    """Add counts of trials of known truth (system, question, truth, mark)."""
    dims = "system", "question", "truth", "mark"
    dataset = dataset.assign(truth_count=(dims, counts))
    return dataset.assign_coords(truth=list(TRUTHS), mark=list(MARKS))


_MAX_CATEGORIES_ON_CARD = 12  # categories that a card names
_CARD_COLUMNS = ("trials min/median/max", "missing", "mean score")


def data_card(outcomes: Outcomes) -> str:
    """Return the data card: a table of the systems, and lines on questions and assumptions."""
    dataset = outcomes.dataset
    systems, questions, _ = dataset["count"].shape
    title = (
        f"Outcomes: {systems} system{'s' * (systems > 1)} x {questions} questions, "
        f"{int(dataset['count'].sum()):,} trials (scores: {_scores_line(outcomes)})"
    )
    lines = [] if outcomes.answers is None else [outcomes.answers.card()]
    lines += [_costs_line(dataset)] if "cost_sums" in dataset else []
    lines += _truth_lines(outcomes) if "truth_count" in dataset else []
    columns = [
        f"{_coordinate_name(dataset, name)} ({_n_distinct(values)} values)"
        for name, values in question_coordinates(dataset).items()
        if name != WEIGHT
    ]
    lines += [f"questions have: {', '.join(columns)}"] if columns else []
    lines += [_weights_line(dataset[WEIGHT].values)] if WEIGHT in dataset.coords else []
    lines += [note if note.startswith("CHECK: ") else f"assumed: {note}" for note in outcomes.notes]
    return "\n".join([title, *(f"  {line}" for line in [*_system_lines(outcomes), *lines])])


def _system_lines(outcomes: Outcomes) -> list[str]:
    """Return lines for the systems: trials, missing outcomes, mean score and its range."""
    dataset = outcomes.dataset
    trials = dataset["count"].sum("category").values
    sums = dataset["count"].dot(dataset["score"], "category")
    totals = sums.transpose("system", "question").values
    weight = np.ones(trials.shape[1]) if outcomes.weight is None else outcomes.weight
    width = max([6, *(len(str(name)) for name in outcomes.systems)])
    lines = [f"{'system':<{width}}  {'  '.join(_CARD_COLUMNS)}"]
    stopped = outcomes.stopped.tolist()
    for name, runs, gaps, total, stops in zip(
        outcomes.systems, trials, dataset["missing"].values, totals, stopped, strict=True
    ):
        spread = f"{runs.min()}/{np.median(runs):g}/{runs.max()}"
        mean = _mean_of_questions(total, runs, weight)
        if stops:
            mean = _mean_of_questions(np.where(runs > 1, 0.0, total), np.minimum(runs, 1), weight)
        cells = spread, str(gaps.sum()), mean
        aligned = map(str.rjust, cells, map(len, _CARD_COLUMNS))
        lines.append(f"{name!s:<{width}}  {'  '.join(aligned)}" + " (first attempts)" * stops)
        if gaps.any() and dataset.attrs["missing_policy"] == "ignore" and not stops:
            ends = np.sort(outcomes.utility)[[0, -1]] * outcomes.direction
            worst, best = (
                _mean_of_questions(total + gaps * end, runs + gaps, weight) for end in ends
            )
            remark = f"mean score with missing at worst {worst}, at best {best}"
            lines.append(f"{'':<{width}}  {remark}")
    return lines


def _scores_line(outcomes: Outcomes) -> str:
    """Return the categories with their scores, or the range of many scores."""
    scores = outcomes.dataset["score"].values
    pairs = zip(outcomes.dataset["category"].values, scores, strict=True)
    text = ", ".join(f"{label} = {score:g}" for label, score in pairs)
    if len(scores) > _MAX_CATEGORIES_ON_CARD:
        text = f"{len(scores)} from {scores.min():g} to {scores.max():g}"
    return text + "; lower is better" * (outcomes.direction < 0)


def _coordinate_name(dataset: xr.Dataset, name: str) -> str:
    """Return the name of a question coordinate, with the name of its column if that differs."""
    column = column_name(dataset, name)
    return name if column == name else f"{name} {column!r}"


def _mean_of_questions(total: Array, trials: Ints, weight: Array) -> str:
    """Return the weighted mean over the questions that were tried, of mean scores of trials.

    Examples
    --------
    >>> _mean_of_questions(np.array([1.0, 3.0]), np.array([4, 3]), np.ones(2))  # (1/4 + 3/3) / 2
    '0.6250'
    """
    tried = trials > 0
    if not weight[tried].sum() > 0.0:
        return "-"
    share = weight[tried] / weight[tried].sum()
    return f"{share @ (total[tried] / trials[tried]):.4f}"


def _weights_line(weight: Array) -> str:
    r"""Return the range of the weights and the effective number of questions.

    This is :math:`(\sum_i w_i)^2 / \sum_i w_i^2` (Kish 1965, Survey Sampling).
    """
    relative = weight / weight.max()
    effective = relative.sum() ** 2 / (relative**2).sum()
    return (
        f"questions have weights from {weight.min():.4g} to {weight.max():.4g}, an effective "
        f"number of {effective:.1f} equally weighted questions"
    )


def _costs_line(dataset: xr.Dataset) -> str:
    """Return the number of known costs and their mean."""
    sums = dataset["cost_sums"].sum(["system", "question", "category"])
    number, total = sums.sel(cost_sum=["number", "total"]).values
    unit = dataset.attrs.get("cost_unit", "")
    if not number:
        return "costs: none is known"
    return f"costs: of {int(number):,} trials, mean {total / number:.4g}{f' {unit}' * bool(unit)}"


def _truth_lines(outcomes: Outcomes) -> list[str]:
    """Return lines on the trials of known truth and their marks, one for each system."""
    lines = []
    counts = outcomes.dataset["truth_count"].sum("question").values
    for name, (wrong, right) in zip(outcomes.systems, counts, strict=True):
        total_line = f"{name}: truth known of {int(wrong.sum() + right.sum()):,} trials"
        marked = (
            f": {right[2]} of {right[1:].sum()} right and {wrong[2]} of {wrong[1:].sum()} wrong "
            "ones marked right"
        )
        by_truth = marked if wrong.any() or right.any() else ""
        unmarked = int(wrong[0] + right[0])
        lines.append(total_line + by_truth + f", {unmarked} without a mark" * bool(unmarked))
    return lines


def _n_distinct(values: NDArray[Any]) -> int:
    """Return the number of different values, without NaN and empty text."""
    return sum(not pd.isna(value) and value != "" for value in pd.unique(values).tolist())
