"""Answers in arrays, rows or mappings, arranged like the outcomes they go with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bayesatk.data.answer_groups import Given, as_codes, as_marks, group, right_answers
from bayesatk.data.answers import AnswerRules
from bayesatk.data.encoding import CODE_INVALID, Table, cells, encode, objects, refuse
from bayesatk.data.validation import OutcomeError, Scores, check_labels, shown

_Rows = list[list[Any]]


def read_answers(
    data: object,
    answers: object,
    reference: object,
    rules: AnswerRules,
    scores: Scores,
    systems: object,
    questions: object,
) -> Table:
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
    by_system = _by_system(answers, "answers")
    names = list(by_system) if isinstance(answers, Mapping) else _positions(len(by_system))
    names = names if systems is None else check_labels(systems, "systems", len(names))
    width = len(next(iter(by_system.values())))
    labels = list(range(width))
    labels = labels if questions is None else check_labels(questions, "questions", width)
    system, question, flat = _flat(by_system, width)
    codes = np.zeros(0, np.int16) if data is None else _codes(data, by_system, scores)
    references = None if reference is None else _references(reference, rules, labels)
    given = Given(system, question, flat, as_marks(codes, scores), references)
    shape = (len(by_system), width)
    found, marks, notes = group(given, rules, shape, labels)
    codes = as_codes(marks, scores) if data is None else codes
    count, missing = cells(system * width + question, codes, shape, len(scores))
    return Table(count, missing, names, labels, notes, found)


def _positions(number: int) -> list[Any]:
    return ["system"] if number == 1 else list(range(number))


def _by_system(data: object, name: str) -> dict[Any, _Rows]:
    """Return rows of cells by system; every system has the same number of questions."""
    if isinstance(data, Mapping):
        found = {system: _rows(rows, name) for system, rows in data.items()}
    else:
        rows: Any = data.tolist() if isinstance(data, np.ndarray) else data
        deep = _is_rows(rows) and all(_is_rows(row) for row in rows) and any(
            _is_rows(cell) for row in rows for cell in row
        )  # fmt: skip
        found = (
            dict(enumerate(_rows(one, name) for one in rows)) if deep else {0: _rows(rows, name)}
        )
    sizes = {len(rows) for rows in found.values()}
    if len(sizes) != 1 or sizes == {0}:
        raise OutcomeError(
            f"{name} must hold the same questions for every system, at least one; got "
            f"{shown({system: len(rows) for system, rows in found.items()})} questions."
        )
    return found


def _is_rows(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _rows(value: Any, name: str) -> _Rows:
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    if not _is_rows(rows) or not all(_is_rows(row) or isinstance(row, np.ndarray) for row in rows):
        raise OutcomeError(
            f"{name} must be rows of trials, (question, trial), or such rows by system; got "
            f"{shown(value)}."
        )
    return [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in rows]


def _flat(by_system: Mapping[Any, _Rows], width: int) -> tuple[Any, Any, list[Any]]:
    """System and question of every trial, and its answer."""
    sizes = np.array([[len(row) for row in rows] for rows in by_system.values()], np.int64)
    cell = np.repeat(np.arange(sizes.size), sizes.ravel())
    return cell // width, cell % width, list(_cells(by_system))


def _cells(by_system: Mapping[Any, _Rows]) -> Iterator[Any]:
    for rows in by_system.values():
        for row in rows:
            yield from row


def _codes(data: object, answers: Mapping[Any, _Rows], scores: Scores) -> Any:
    """Outcome codes, trial by trial; they must be arranged like the answers."""
    outcomes = _by_system(data, "data")
    for (system, rows), (other, own) in zip(answers.items(), outcomes.items(), strict=False):
        sizes = [len(row) for row in rows], [len(row) for row in own]
        if system != other or sizes[0] != sizes[1] or len(answers) != len(outcomes):
            raise OutcomeError(
                "answers must be arranged like data, trial by trial; system "
                f"{shown(system)} has {shown(sizes[0])} answers by question, and data has "
                f"{shown(sizes[1])} outcomes for {shown(other)}."
            )
    flat = objects(list(_cells(outcomes)))
    codes = encode(flat, scores)
    if (codes == CODE_INVALID).any():
        first = int(np.argmax(codes == CODE_INVALID))
        raise refuse(flat[first], f"trial {first} of data", scores)
    return codes


def _references(reference: object, rules: AnswerRules, labels: list[Any]) -> list[set[str]]:
    """Right answers by question."""
    if isinstance(reference, Mapping):
        lacking = [label for label in labels if label not in reference]
        if lacking:
            raise OutcomeError(
                f"reference must name the right answer of every question; it lacks "
                f"{shown(lacking[0])}. Add it."
            )
        unknown = [label for label in reference if label not in labels]
        if unknown:
            raise OutcomeError(
                f"reference must be of these questions; {shown(unknown[0])} is none of them. Leave "
                "it out."
            )
        values = [reference[label] for label in labels]
    else:
        rows: Any = reference.tolist() if isinstance(reference, np.ndarray) else reference
        if not _is_rows(rows) or len(rows) != len(labels):
            raise OutcomeError(
                f"reference must hold one entry for each of the {len(labels)} questions, in their "
                f"order; got {shown(reference)}."
            )
        values = list(rows)
    return [
        right_answers(value, rules, f"question {shown(label)}")
        for label, value in zip(labels, values, strict=True)
    ]
