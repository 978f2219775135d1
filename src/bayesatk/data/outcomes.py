"""The data: counts of outcomes per (system, question, category), and what is done with them.

`bayesatk.tally` makes them from arrays and tables, `bayesatk.load` from files.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument
from bayesatk.data.answers import Answers
from bayesatk.data.columns import GROUP, WEIGHT
from bayesatk.data.data_card import data_card, html_card
from bayesatk.data.question_columns import unequal
from bayesatk.data.validation import OutcomeError, shown, succeeding

Kept = NDArray[np.bool_]


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
        >>> import bayesatk
        >>> data = bayesatk.tally([["no", "part", "yes"]], scores={"no": 0, "part": 0.5, "yes": 1})
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
            dataset = with_costs(dataset, sums, str(self.dataset.attrs.get("cost_unit", "")))
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
        >>> import bayesatk
        >>> data = bayesatk.tally({"a": [[1], [0]], "b": [[1], [None]]}, missing="ignore").shared()
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
        >>> import bayesatk
        >>> runs = {"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]}
        >>> data = bayesatk.tally(runs, group=["law", "art"])
        >>> data.sel(group="art").successes.values.tolist()
        [[2], [1]]
        >>> data["b"].successes.values.tolist()  # the same as data.sel(system="b")
        [[0, 1]]
        """
        systems, questions, note = _selected(self.dataset, system, question, group)
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
        >>> import bayesatk
        >>> data = bayesatk.tally([[1], [0]], weight=[3, 1])
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
        >>> import bayesatk
        >>> data = bayesatk.tally([[1, None], [0, 1]], missing="bounds")
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


def _selected(
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


def with_costs(dataset: xr.Dataset, sums: NDArray[np.float64], unit: str) -> xr.Dataset:
    """Add sums of costs (system, question, category, 3)."""
    dims = "system", "question", "category", "cost_sum"
    dataset = dataset.assign(cost_sums=(dims, sums)).assign_attrs(cost_unit=unit)
    return dataset.assign_coords(cost_sum=["number", "total", "log_total"])
