"""A result tree read back: its data, metrics, prior, method and draws as fields.

A DataTree keeps text and numbers only, so that netCDF can hold it. This is the one place where that
text is read: whoever uses a result asks a `Result`.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Flags, Ints
from bayesatk._tools.messages import ArgumentError
from bayesatk._tools.words import by_same_text, few_names, printable
from bayesatk.core.question.permutation import correlation_test
from bayesatk.data.capabilities import Operation, answered, require_operation
from bayesatk.data.design import CovariateDesign
from bayesatk.data.grouping import Grouping
from bayesatk.data.outcomes import Outcomes, kept_labels
from bayesatk.data.question_columns import unequal_weights
from bayesatk.data.roles import GROUP, WEIGHT
from bayesatk.data.scales import RIGHT_WRONG, Scale, Scored
from bayesatk.data.study import Study, declaration_of
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.grid import COSTS, Metric, MetricGrid, parse
from bayesatk.priors import HyperPrior, VotePrior
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.schema import (
    GROUPED_TARGETS,
    TARGETS,
    check_result,
    metric_values,
    question_columns,
    result_tree,
    root_attributes,
    statistics_of_draws,
    stored_outcomes,
)
from bayesatk.results.views import ShownTable

_MIN_IDENTICAL_QUESTIONS = 20  # of which different systems hardly have the same counts
UNLIKE_P_VALUE = 0.05  # below it a system scored otherwise on questions that another did not try


@dataclass(frozen=True, eq=False)
class Result:
    """What a result of `bayesatk.evaluate` or `bayesatk.sample` says, each part read once.

    Every function that takes a result takes the tree, or this. Nothing is read before it is asked
    for, so a tree that holds only some parts (a random baseline, one system) can be read as well.

    Parameters
    ----------
    tree : xarray.DataTree

    See Also
    --------
    bayesatk.table : the numbers as a table.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "pass@1,2", pooling="none", rng=1)
    >>> own = Result.of(fit)
    >>> own.systems, [metric.label for metric in own.metrics], own.prior
    (['a', 'b'], ['pass@1', 'pass@2'], BetaPrior(alpha=1.0, beta=1.0))
    >>> own.data.successes.values.tolist()
    [[1], [2]]
    """

    tree: xr.DataTree
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, result: "Fit", group: str | None = "posterior") -> "Result":
        """Read a result that has this group (if any is named), or say what is wrong with it."""
        if isinstance(result, Result):
            check_result(result.tree, group)
            return result
        return cls(check_result(result, group))

    # What was asked, of what, and how it was made

    @cached_property
    def _declaration(self) -> dict[str, Any]:
        """Fields of the study without its data."""
        text = self._text("study")
        return declaration_of(text) if text else {}

    @cached_property
    def study(self) -> Study:
        """What was asked, with the data."""
        return Study(
            **(self._declaration | {"metrics": self.metrics}),
            outcomes=self.data,
            prior_counts=self.prior_counts,
            notes=tuple(self.described("notes", [])),
        )

    def require(self, operation: Operation, argument: str = "fit") -> None:
        """Refuse an operation that has no answer for what the study has."""
        require_operation(operation, self.study.values, argument)

    def answers(self, operation: Operation) -> bool:
        """Whether an operation has an answer for what the study has."""
        return answered(operation, self.study.values)

    @cached_property
    def method(self) -> str:
        """How the posterior was found: "conjugate", "quadrature", "nuts", "draws", ..."""
        return self._text("method")

    @property
    def sampled(self) -> bool:
        """Whether the posterior is known by draws of a sampler."""
        return self.method in ("nuts", "draws")

    @cached_property
    def pooling(self) -> Any:
        """How questions share information: "none", "partial" or "complete"."""
        return self._declaration.get("pooling", "")

    @property
    def population(self) -> Any:
        """What questions like these are: "law" or "bootstrap"."""
        return self._declaration["population"]

    @property
    def own(self) -> bool:
        """Whether it is of draws of a model that is not the library's."""
        return bool(self.pooling == "own")

    @cached_property
    def families(self) -> dict[str, float]:
        """Families of the difficulty distribution with their prior probabilities."""
        return self.prior.family_prior if isinstance(self.prior, HyperPrior) else {}

    @cached_property
    def prior(self) -> Any:
        """Prior of the success, or category, probabilities."""
        return self._declaration["prior"]

    @cached_property
    def judges(self) -> tuple[JudgeError, ...] | None:
        """Who marked the trials of every system, where judges err."""
        judges: tuple[JudgeError, ...] | None = self._declaration.get("judges")
        return judges

    @cached_property
    def answer_prior(self) -> VotePrior:
        """Prior of the answers to a question; of a result of votes between answers."""
        prior: VotePrior = self._declaration["answer_prior"]
        return prior

    @cached_property
    def ci_prob(self) -> float:
        """Probability of the interval."""
        return float(self._declaration["ci_prob"])

    @cached_property
    def ci_kind(self) -> Any:
        """Kind of the interval: "eti" or "hdi"."""
        return self._declaration["ci_kind"]

    @property
    def tails(self) -> tuple[float, float]:
        """Probabilities below the ends of an equal-tailed interval."""
        tail = 0.5 * (1.0 - self.ci_prob)
        return tail, 1.0 - tail

    @cached_property
    def notes(self) -> list[str]:
        """What a reader of the numbers should know, in sentences."""
        systems = self.systems if self.has("observed_data") else []  # none: a plan without a pilot
        return by_same_text(systems, self._stated_notes)

    @cached_property
    def _stated_notes(self) -> list[str]:
        """The notes with one system each, or none."""
        return [str(note) for note in self.described("notes", [])]

    def notes_on(self, systems: Sequence[object] | None = None) -> list[str]:
        """Return the notes that bear on a verdict about some systems; default: on all.

        Not those on other systems, and not the probabilities of families of difficulty or what
        leave-one-out needs.
        """
        other_systems = [] if systems is None else [s for s in self.systems if s not in systems]
        prefixes = tuple(f"{name}: " for name in other_systems)
        notes = [
            note
            for note in self._stated_notes
            if not note.startswith(prefixes)
            and ": difficulty" not in note
            and "for leave-one-out" not in note
        ]
        notes = by_same_text(self.systems, notes)
        chosen = [i for i, name in enumerate(self.systems) if systems is None or name in systems]
        return notes + self._tried_note(chosen) + self._identical_note(chosen)

    def _tried_note(self, systems: Sequence[int]) -> list[str]:
        """Say that systems tried different questions, of which pairs that matters, and a remedy."""
        tried = self.trials[systems] > 0
        if (tried == tried[0]).all():
            return []
        names = [printable(str(self.systems[i])) for i in systems]
        each = few_names([f"{name} {n}" for name, n in zip(names, tried.sum(axis=1), strict=True)])
        unlike = [
            f"{first} and {second}"
            for (i, first), (j, second) in combinations(zip(systems, names, strict=True), 2)
            if self.unlike[i, j]
        ]
        number = tried.any(axis=0).sum()
        text = f"Systems tried different questions: of {number} in all {each}. " + (
            "Those that a system lacks have the p that your model gives them."
            if self.own
            else "Each is judged by its own, as if those that it lacks were like them."
        )
        if unlike:
            text += (
                f" Of {few_names(unlike)} no order is declared, because the scores of one differ "
                "between questions that the other tried and did not try "
                f"(p < {UNLIKE_P_VALUE:g})."
            )
        if not tried.all(axis=0).any():
            return [f"{text} No question was tried by all systems."]
        if self.own:
            return [f"{text} To compare on the questions that all tried pass data.shared()."]
        return [
            f"{text} To compare on the questions that all tried: --missing ignore --shared; in "
            "Python bayesatk.evaluate(data.shared())."
        ]

    def _identical_note(self, systems: Sequence[int]) -> list[str]:
        """Return notes on systems with the same counts of every question, where these differ."""
        names = [printable(str(name)) for name in self.systems]
        return [
            f"{names[i]} and {names[j]} have the same counts on each of {self.counts.shape[1]} "
            "questions. Are these the same outcomes twice?"
            for i, j in combinations(systems, 2)
            if (self.counts[i] == self.counts[j]).all()
            and len(np.unique(self.counts[i], axis=0)) > 1
            and self.counts.shape[1] >= _MIN_IDENTICAL_QUESTIONS
        ]

    @cached_property
    def unlike(self) -> Flags:
        """Of which pairs (system, other) one scored otherwise on what the other did not try.

        Means of different questions then differ for equal systems, too, so that no order of the
        two can be declared.
        """
        tried, size = self.trials > 0, len(self.systems)
        unlike = np.zeros((size, size), bool)
        if (tried == tried[0]).all():
            return unlike
        for i, j in permutations(range(size), 2):
            own, shared = tried[i], tried[j, tried[i]]
            if own.sum() >= 3 and not shared.all():
                rates = self.counts[i, own] @ self.scores / self.trials[i, own]
                _, p_value = correlation_test(shared.astype(float), rates)
                unlike[i, j] |= p_value < UNLIKE_P_VALUE
        return unlike | unlike.T

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that were asked for."""
        text = self._declaration["metrics"]
        try:
            return parse(text) if text else ()
        except ArgumentError:
            raise ArgumentError(
                "fit",
                f" must have known metrics; got {text!r:.200}, of which one is none of the "
                "library's. A result that was saved needs metrics of your own registered where it "
                "is read: bayesatk.metrics.register(family).",
            ) from None

    @property
    def costs(self) -> tuple[Metric, ...]:
        """The metrics of costs that were asked for."""
        return tuple(metric for metric in COSTS if metric.family.variable in self.statistics)

    @property
    def tabulated(self) -> tuple[Metric, ...]:
        """The metrics of scores that tables show: none where costs alone were asked for."""
        return () if self.statistics.attrs.get("costs_alone") else self.metrics

    @cached_property
    def grid(self) -> MetricGrid:
        """The metrics that the variables hold: of every family, every k and tau."""
        return MetricGrid.of(self.metrics)

    @cached_property
    def judged(self) -> list[Metric]:
        """The metrics asked for that judge trials."""
        return [metric for metric in self.metrics if not metric.voted]

    @property
    def targets(self) -> tuple[str, ...]:
        """Labels of the targets."""
        return TARGETS if self._declaration["group_weights"] is None else GROUPED_TARGETS

    @cached_property
    def systems(self) -> list[Any]:
        """System labels."""
        labels: list[Any] = self._by_system(self.group("observed_data"))["system"].values.tolist()
        return labels

    def positions(self, labels: object, argument: str = "system") -> list[int]:
        """Return the positions of systems by their labels; of all, if None."""
        is_wanted, _ = kept_labels(self.systems, argument, labels)
        return np.flatnonzero(is_wanted).tolist()

    @cached_property
    def data(self) -> Outcomes:
        """The data that were evaluated; right and wrong are the categories "1" and "0"."""
        observed = self._by_system(self.group("observed_data"))
        return stored_outcomes(observed, self.group("constant_data"), self.tree.attrs)

    @property
    def of_questions(self) -> dict[str, NDArray[Any]]:
        """What the data said of the questions: their group, weight and covariates, by name."""
        return question_columns(self.group("constant_data"))

    @property
    def weight(self) -> Array | None:
        """Weights of the questions, where they differ."""
        held = self.of_questions.get(WEIGHT)
        return None if held is None else unequal_weights(held)

    @cached_property
    def grouping(self) -> Grouping | None:
        """Groups of the questions, where they are part of the model."""
        weights = self._declaration.get("group_weights")
        return None if weights is None else Grouping.of(self.of_questions[GROUP], weights)

    @cached_property
    def design(self) -> CovariateDesign | None:
        """Covariates that success depends on in this result, where there are any."""
        return None if self.covariates is None else self.study.design

    @property
    def covariates(self) -> tuple[str, ...] | None:
        """Names of the covariates that success depends on in this result."""
        covariates = self._declaration.get("covariates")
        return covariates

    @cached_property
    def scale(self) -> Scale:
        """How the metrics judge trials: as right and wrong, or as scored categories."""
        return Scored.of(self.data) if "count" in self.group("observed_data") else RIGHT_WRONG

    @cached_property
    def scores(self) -> Array:
        """Scores of the categories."""
        return self.data.dataset["score"].values

    @cached_property
    def counts(self) -> Ints:
        """Counts (system, question, category)."""
        return self.data.dataset["count"].values

    @cached_property
    def trials(self) -> Ints:
        """Trials (system, question)."""
        return self.group("constant_data")["trials"].values

    @cached_property
    def prior_counts(self) -> Array | None:
        """Discounted prior trials (system, question, category), where there are any."""
        constant = self.group("constant_data")
        return constant["prior_count"].values if "prior_count" in constant else None

    @property
    def single_trials(self) -> bool:
        """Whether partial pooling has one trial of every question that some system tried.

        It does not say how much of the spread of questions is chance.
        """
        single = self.pooling == "partial" and self.prior_counts is None
        return single and bool((self.trials.max(axis=1) < 2).any())

    def right_of_all(self, operation: Operation, argument: str = "fit") -> tuple[Ints, Ints]:
        """Return successes (or marks) and trials, each (system, question), for an operation.

        It is refused if it has no answer for what the study has, such as marks of a judge that errs
        or scored categories.
        """
        self.require(operation, argument)
        observed = self._by_system(self.group("observed_data"))
        if "successes" not in observed:  # scored as two categories: wrong, then right
            return self.counts[..., -1], self.trials
        return observed["successes"].values, self.trials

    @staticmethod
    def _by_system(observed: xr.Dataset) -> xr.Dataset:
        if "system" not in observed.dims:
            raise ValueError(
                "fit must keep its dimension of systems; fit.sel takes it away of one label, for "
                "ArviZ's plots. Use the whole result, or fit.sel(system=[label])."
            )
        return observed

    # Its numbers

    def has(self, group: str) -> bool:
        """Whether the tree has a group."""
        return group in self.tree.children

    def group(self, name: str) -> xr.Dataset:
        """Return a group."""
        return self.tree[name].to_dataset()

    @cached_property
    def posterior(self) -> xr.Dataset:
        """The draws."""
        return self.group("posterior")

    @property
    def size(self) -> int:
        """Number of draws."""
        return int(self.posterior.sizes["chain"] * self.posterior.sizes["draw"])

    def draws(self, metric: Metric) -> xr.DataArray:
        """Return the draws of a metric."""
        return metric_values(self.posterior, metric)

    def laws(self, system: int) -> QuestionLaws:
        """Return the distributions of questions of one system in every draw."""
        names = ("posterior", "difficulty")
        groups = {name: self.group(name) for name in names if self.has(name)}
        return QuestionLaws.of_result(self.study, groups, system)

    @cached_property
    def statistics(self) -> xr.Dataset:
        """Exact statistics of all variables if the result has them, else those of its draws."""
        if self.has("closed_form"):
            return self.group("closed_form")
        return self._of_draws("posterior")

    @cached_property
    def group_statistics(self) -> xr.Dataset:
        """Statistics of all variables for every group of questions, where they have groups."""
        if self.has("group_closed_form"):
            return self.group("group_closed_form")
        return self._of_draws("group_posterior")

    def _of_draws(self, group: str) -> xr.Dataset:
        names = {family.variable for family in self.grid.families} | {
            "reach_probability",
            "coefficients",
        }
        return statistics_of_draws(self.group(group), names, self.tails)

    def once[Found](self, key: Hashable, work_out: Callable[[], Found]) -> Found:
        """Return what was worked out for a key before, or work it out and keep it."""
        if key not in self._known:
            self._known[key] = work_out()
        value: Found = self._known[key]
        return value

    def described(self, name: str, absent: Any = ()) -> Any:
        """Return what a root attribute describes in JSON."""
        text = self.tree.attrs.get(name)
        return json.loads(str(text)) if text else absent

    def _text(self, name: str, absent: str = "") -> str:
        return str(self.tree.attrs.get(name, absent))


Fit = xr.DataTree | Result  # what functions of a result take


_ROW = "table_row"  # position of a cell's row in the table; -1 if it has none
# By kind of number, for cells without a row.
_FILL_VALUES = {"f": np.nan, "b": False, "i": 0, "u": 0}


def analysis_group(
    table: pd.DataFrame,
    keys: Sequence[str],
    attrs: Mapping[str, Any],
    *,
    sentences: Sequence[str] = (),
    labels: Mapping[str, Sequence[Any]] | None = None,
) -> xr.Dataset:
    """Return a table as a group of a result.

    Parameters
    ----------
    table : pandas.DataFrame
    keys : sequence of str
        Columns that name what a row is of, the dimensions of the group; no two rows have the same.
    attrs : mapping
        How it was made. Lists and mappings are kept as JSON.
    sentences : sequence of str
        What is shown below the table.
    labels : mapping {key: labels}, optional
        All labels of a dimension in their order; default: those of the table, as they appear.

    Examples
    --------
    >>> frame = pd.DataFrame({"system": ["b", "a"], "rank": [1, 2]})
    >>> group = analysis_group(frame, ["system"], {}, labels={"system": ["a", "b"]})
    >>> group["rank"].sel(system="b").item(), table_of(group)["system"].tolist()
    (1, ['b', 'a'])
    """
    indexes = {key: pd.Index((labels or {}).get(key, table[key].drop_duplicates())) for key in keys}
    cells = tuple(index.get_indexer(table[key]) for key, index in indexes.items())
    shape = tuple(map(len, indexes.values()))
    columns = {_ROW: np.arange(len(table))}
    columns |= {name: table[name].to_numpy() for name in map(str, table) if name not in keys}
    variables = {}
    for name, values in columns.items():
        numbers = values.dtype.kind in _FILL_VALUES
        typed = values if numbers else values.astype(object)
        absent = -1 if name == _ROW else _FILL_VALUES.get(typed.dtype.kind, "")
        array = np.full(shape, absent, typed.dtype)
        array[cells] = typed
        variables[name] = list(keys), array
    described = {"columns": list(map(str, table)), "sentences": list(sentences), **attrs}
    texts = {}
    for name, value in described.items():
        plain = isinstance(value, str | int | float)
        as_json = isinstance(value, list | dict)
        texts[name] = json.dumps(value, default=str) if as_json else value if plain else str(value)
    return xr.Dataset(variables, {key: index.to_numpy() for key, index in indexes.items()}, texts)


def with_analysis(tree: xr.DataTree, name: str, **groups: xr.Dataset) -> xr.DataTree:
    """Return a copy of a result with the groups of an analysis, whose table is now the latest."""
    analysed = tree.copy()
    for group, values in groups.items():
        analysed[group] = xr.DataTree(values)
    analysed.attrs["latest"] = name
    return analysed


def latest_table(tree: xr.DataTree) -> str:
    """Return the name of the table of the newest analysis of a result, or of its metrics."""
    latest = tree.attrs.get("latest")
    return str(latest) if latest in tree.children else "results"


def tree_of(data: Outcomes | None, method: str, seed: str = "") -> xr.DataTree:
    """Return a result of data that an analysis takes as they are, without a posterior of metrics.

    Without data: of numbers that were stated.
    """
    attrs = root_attributes(method, "", seed, data, ())
    if data is None:
        return result_tree({}, attrs)
    constant = xr.Dataset({"trials": data.trials, "missing": data.dataset["missing"]})
    observed = data.successes.rename("successes").to_dataset()
    return result_tree({"observed_data": observed, "constant_data": constant}, attrs)


def analysis_table(result: Fit, name: str) -> ShownTable:
    """Return the table of an analysis that a result has."""
    return table_of(Result.of(result, name).group(name), name)


def table_of(group: xr.Dataset, name: str = "") -> ShownTable:
    """Return the table that a group was made of."""
    columns = json.loads(group.attrs["columns"])
    keys = [key for key in columns if key in group.dims]
    values = group[[_ROW, *(column for column in columns if column not in keys)]]
    frame = values.to_dataframe(keys).reset_index()
    frame = frame[frame[_ROW] >= 0].sort_values(_ROW, ignore_index=True)
    shown = frame[columns].infer_objects()  # zarr has a type of text of its own
    return ShownTable.of(shown, name, **group.attrs)
