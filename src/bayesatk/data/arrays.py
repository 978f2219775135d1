"""Arrays, rows of any length, and mappings of systems to either; answers arranged like outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk.data.answers import AnswerRules
from bayesatk.data.codes import Ints, codes_of, encode, first_invalid, refuse
from bayesatk.data.long_form import PLAIN, LongForm, Trials, default_systems
from bayesatk.data.validation import OutcomeError, Scores, refuse_masked, shown

_DEEPEST = 4  # rows, questions and systems: whatever is nested deeper is refused


@dataclass(frozen=True)
class Block:
    """Cells of one or more systems, as they came.

    Parameters
    ----------
    values : ndarray or list
        An array (question, trial) or (system, question, trial), or the cells of all rows.
    sizes : ndarray of int, shape (system, question)
        Trials of every question.
    within : str
        Which system it is, for messages.
    """

    values: NDArray[Any] | list[Any]
    sizes: Ints
    within: str

    def cells(self) -> list[Any]:
        """Return all cells, in order."""
        return self.values if isinstance(self.values, list) else _listed(self.values.ravel())

    def trials(self, scores: Scores, first: int) -> Trials:
        """Return the trials with their outcomes, or refuse the first that has no score."""
        codes = encode(self.values, scores)
        wrong = first_invalid(codes)
        if wrong is not None:
            raise refuse(*self._cell(wrong), scores)
        if codes.ndim > 1:
            return Trials(codes if codes.ndim == 3 else codes[None], first=first)
        return Trials(codes, np.repeat(np.arange(self.sizes.size), self.sizes.ravel()), first)

    def _cell(self, at: tuple[int, ...]) -> tuple[Any, str]:
        """Return the value at a position, and where it is."""
        value: Any = self.values[at[0]] if len(at) == 1 else np.asarray(self.values)[at]
        if len(at) == 1:
            ends = np.cumsum(self.sizes)
            question = int(np.searchsorted(ends, at[0], side="right"))
            at = question, at[0] - int(ends[question] - self.sizes.ravel()[question])
        names = ("system", "question", "trial")[-len(at) :]
        where = ", ".join(f"{name} {i}" for name, i in zip(names, at, strict=True))
        plain = isinstance(value, np.generic) and value.dtype.kind in "biufU"
        return (value.item() if plain else value), self.within + where


def read_nested(data: object, scores: Scores) -> LongForm:
    """Read an array, rows of any length, or a mapping {system: either}."""
    return _encoded(arranged(data, "data"), data, scores)


def _encoded(blocks: list[Block], data: object, scores: Scores) -> LongForm:
    first = np.cumsum([0, *(len(block.sizes) for block in blocks)]).tolist()
    trials = [block.trials(scores, at) for block, at in zip(blocks, first, strict=False)]
    long = LongForm.of_trials(trials, first[-1], blocks[0].sizes.shape[1])
    return long.labelled(list(data) if isinstance(data, Mapping) else None, None)


def read_answers(
    data: object,
    answers: object,
    reference: object,
    rules: AnswerRules,
    scores: Scores,
    systems: object,
    questions: object,
) -> LongForm:
    """Read answers with their outcomes, or with references in place of them.

    Parameters
    ----------
    data : array_like, mapping or None
        Outcomes arranged like the answers; None with references.
    answers : array_like or mapping
        (question, trial), (system, question, trial), rows of any length, or {system: either}.
    reference : sequence, mapping or None
    rules : AnswerRules
    scores : mapping
    systems, questions : sequence, optional
        Labels.
    """
    if (data is None) == (reference is None):
        raise OutcomeError(
            "answers need outcomes of the same arrangement as data, or reference= with data=None; "
            f"got {'neither' if data is None else 'both'}. Give one of them."
        )
    blocks = arranged(answers, "answers")
    said = rules.apply_all(list(chain.from_iterable(block.cells() for block in blocks)))
    sizes = np.concatenate([block.sizes for block in blocks])
    names = list(answers) if isinstance(answers, Mapping) else default_systems(len(sizes))
    if data is not None:
        outcomes = arranged(data, "data")
        long = _encoded(outcomes, data, scores)
        _check_alike(sizes, names, np.concatenate([one.sizes for one in outcomes]), long.systems)
    else:
        long = LongForm.of_trials((), *sizes.shape).labelled(names, None)
    long = long.labelled(systems, questions)
    if data is None:
        cell = np.repeat(np.arange(sizes.size), sizes.ravel())
        right = _references(reference, rules, long.questions)
        codes = codes_of(said, cell % sizes.shape[1], right, scores)
        long = replace(long, trials=(Trials(codes, cell),))
    return replace(long, answer=said, rules=rules)


def arranged(data: object, name: str, within: str = "") -> list[Block]:
    """Return the cells with the sizes of their rows, system by system."""
    if isinstance(data, Mapping) and not within:
        if not data:
            raise OutcomeError(f"{name} must have at least one system; got an empty mapping.")
        systems = {own: (rows, f"system {shown(own)}, ") for own, rows in data.items()}
        return _join(systems, name)
    if isinstance(data, np.ndarray):
        if data.dtype.kind != "O" or data.ndim != 1:
            return [_array(data, name, within)]
        refuse_masked(data, name)
        data = data.tolist()  # rows of unequal length
    if isinstance(data, str | bytes) or not isinstance(data, Sequence):
        raise OutcomeError(
            f"{name} must be an array, rows, a mapping, a table or an xarray object; got "
            f"{shown(data)} of type {type(data).__name__}{within and f' for {within[:-2]}'}. To "
            "read a file use bayesatk.load(path)."
        )
    if not data:
        raise OutcomeError(f"{name} must have at least one question; got an empty list.")
    depths = {_depth(row) for row in data}
    if depths == {2} and not within:
        return _join({i: (rows, f"system {i}, ") for i, rows in enumerate(data)}, name)
    if depths != {1}:
        raise OutcomeError(
            f"{name} must be rows of outcomes, (question, trial), or a list of such tables, "
            f"(system, question, trial); got nesting depths {sorted(depths)}"
            f"{within and f' within {within[:-2]}'}. One row of trials is [[...]]."
        )
    sizes = np.array([[len(row) for row in data]], np.int64)
    kinds = {row.dtype if isinstance(row, np.ndarray) else None for row in data}
    if len(kinds) == 1 and None not in kinds:  # of one type, which joining them keeps
        return [Block(np.concatenate(data), sizes, within)]
    rows = (_listed(row) if isinstance(row, np.ndarray) else row for row in data)
    return [Block(list(chain.from_iterable(rows)), sizes, within)]


def _array(data: NDArray[Any], name: str, within: str) -> Block:
    refuse_masked(data, name)
    data = np.asarray(data)
    if data.ndim not in (2, 3) or data.size == 0:
        raise OutcomeError(
            "an array of outcomes must be non-empty with dims (question, trial) or (system, "
            f"question, trial); got shape {data.shape}. Success counts go in with the trials of "
            "each question: bayesatk.tally(data, trials=...)."
        )
    shape = (1, *data.shape)[-3:-1]
    return Block(data, np.broadcast_to(np.int64(data.shape[-1]), shape), within)


def _join(systems: Mapping[Any, tuple[object, str]], name: str) -> list[Block]:
    """Return the cells of each system; all have the same questions."""
    found = {system: arranged(rows, name, within) for system, (rows, within) in systems.items()}
    sizes = {system: blocks[0].sizes.shape for system, blocks in found.items()}
    if len(set(sizes.values())) > 1 or next(iter(sizes.values()))[0] > 1:
        raise OutcomeError(
            "every system must be one table of the same questions; got (systems, questions) "
            f"{shown(sizes, 400)}. For systems that answered different questions pass a long "
            "table."
        )
    return list(chain.from_iterable(found.values()))


def _listed(row: NDArray[Any]) -> list[Any]:
    """Return an array as a list; dates stay dates, which .tolist() would turn into integers."""
    return row.tolist() if row.dtype.kind in "biufUO" else list(row)


def _depth(value: object, level: int = 1) -> int:
    """Nesting below a row: 1 for a list of outcomes, 2 for a list of lists."""
    if isinstance(value, np.ndarray):
        refuse_masked(value, "data")
        if value.dtype.kind != "O" or not value.ndim:
            return value.ndim
        value = value.tolist()
    if type(value) in PLAIN or level > _DEEPEST:
        return 0
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return 0
    if set(map(type, value)) <= PLAIN:
        return 1
    return 1 + max((_depth(item, level + 1) for item in value), default=0)


def _check_alike(sizes: Ints, names: Sequence[Any], others: Ints, systems: Sequence[Any]) -> None:
    """Refuse answers that are not arranged like their outcomes."""
    for name, own, system, other in zip(names, sizes, systems, others, strict=False):
        if name != system or not np.array_equal(own, other) or len(names) != len(systems):
            raise OutcomeError(
                "answers must be arranged like data, trial by trial; system "
                f"{shown(name)} has {shown(own.tolist())} answers by question, and data has "
                f"{shown(other.tolist())} outcomes for {shown(system)}."
            )


def _references(reference: object, rules: AnswerRules, labels: Sequence[Any]) -> list[set[str]]:
    """Return the right answers by question."""
    if isinstance(reference, Mapping):
        lacking = [label for label in labels if label not in reference]
        if lacking:
            raise OutcomeError(
                f"reference must name the right answer of every question; it lacks "
                f"{shown(lacking[0])}. Add it."
            )
        known = set(labels)
        unknown = [label for label in reference if label not in known]
        if unknown:
            raise OutcomeError(
                f"reference must be of these questions; {shown(unknown[0])} is none of them. Leave "
                "it out."
            )
        values = [reference[label] for label in labels]
    else:
        rows: Any = reference.tolist() if isinstance(reference, np.ndarray) else reference
        listed = isinstance(rows, Sequence) and not isinstance(rows, str | bytes)
        if not listed or len(rows) != len(labels):
            raise OutcomeError(
                f"reference must have one entry for each of the {len(labels)} questions, in their "
                f"order; got {shown(reference)}."
            )
        values = list(rows)
    return [
        rules.right_answers(value, f"question {shown(label)}")
        for label, value in zip(labels, values, strict=True)
    ]
