"""Long tables of pandas, or of any library that narwhals supports, whole or in parts.

Their rows become trials or counts, by labels of systems, questions and trials. Of every row only a
few numbers are kept in memory.
"""

from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.columns import SYSTEMS, Columns, Picked, labels, one_row_a_trial, trial_text
from bayesatk.data.long_form import (
    LongForm,
    codes_of,
    encode,
    success_slots,
    unscored_outcome,
    unscored_positions,
)
from bayesatk.data.question_columns import Agreement
from bayesatk.data.requests import READERS
from bayesatk.data.role_doubts import Doubt, is_suite, summaries_among, variants_doubt
from bayesatk.data.roles import (
    COUNTS,
    LABELS,
    MAX_SCANNED_ROWS,
    ROLES,
    Sample,
    normalized_name,
    short_text,
    usual_names,
)
from bayesatk.data.validation import (
    Codes,
    OutcomeError,
    Scores,
    check_counts,
    is_absent,
    number_of,
    shown,
)

# Kinds of NumPy dtypes that stay arrays, by role; labels (the default) only if they are integers.
_NUMERIC_KINDS = {"outcome": "biuf", "answer": "", "reference": "", "content": ""}


def is_table(data: object) -> bool:
    """Return whether this is a table of pandas or of another library that narwhals supports."""
    if isinstance(data, pd.DataFrame):
        return True
    if isinstance(data, np.ndarray | Sequence | Mapping):
        return False
    import narwhals as nw  # only here: importing it takes long

    try:
        return isinstance(nw.from_native(data, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except nw.exceptions.NarwhalsError:  # a malformed table, of which `read_table` says why
        return True


def read_table(data: Any, columns: Mapping[str, str]) -> Columns:
    """Return the columns of a long table that have a role; a lazy table computes only these."""
    if isinstance(data, pd.DataFrame):
        return from_pandas(data, columns)
    import narwhals as nw

    try:
        frame = nw.from_native(data)
        lazy = isinstance(frame, nw.LazyFrame)
        first = "" if hasattr(data, "to_numpy") else ".collect()" if lazy else ".to_pandas()"
        names = frame.collect_schema().names()
        cells = {} if lazy else {
            name: list(map(short_text, frame[name].head(MAX_SCANNED_ROWS).to_list()))
            for name in names
        }  # fmt: skip
        sample = Sample(names, cells, not lazy and len(frame) <= MAX_SCANNED_ROWS)
        picked = _picked(sample, columns, f"data{first}.to_numpy()")
        if lazy:
            frame = frame.select(picked.needed).collect()
        return picked.table(lambda name, role: values_of(frame[name], role))
    except OutcomeError:
        raise
    except Exception as error:  # every library refuses a malformed table in its own way
        raise OutcomeError(
            f"the table must have columns that can be read, each name once; got {error}. Rename "
            "or convert the column."
        ) from None


def _picked(sample: Sample, columns: Mapping[str, str], array: str) -> Picked:
    """Pick the columns with a role; `array` is the remedy for a table that has no usual name."""
    try:
        return Picked.of(sample, columns)
    except OutcomeError as error:
        if columns or any(normalized_name(name) in usual_names() for name in sample.names):
            raise
        raise OutcomeError(
            f"{error} If its rows are questions and its columns trials, use "
            f"bayesatk.tally({array})."
        ) from None


def from_pandas(data: pd.DataFrame, columns: Mapping[str, str], **rows: Any) -> Columns:
    """Return the columns of a table of pandas that have a role; their names need not be text."""
    picked = _picked(_sample_of(data), columns, "data.to_numpy()")
    names = list(data.columns)
    for name in picked.needed:
        if names.count(name) > 1:
            raise OutcomeError(
                f"column names must be distinct; got {name!r} more than once. Rename one of them."
            )
    for level in data.index.names:
        roles_in_index = [
            role
            for role in ROLES
            if role not in picked.roles and normalized_name(level) in usual_names(role)
        ]
        if roles_in_index:
            raise OutcomeError(
                f"the table must have its {roles_in_index[0]} in a column; got {level!r} in the "
                "index. Reset it: table.reset_index()."
            )
    return picked.table(
        lambda name, role: _pandas_values(data.iloc[:, names.index(name)], role), **rows
    )


def _sample_of(data: pd.DataFrame) -> Sample:
    """Return the first rows of a table of pandas."""
    head = data.iloc[:MAX_SCANNED_ROWS]
    cells = {name: list(map(short_text, head.iloc[:, position].tolist()))
             for position, name in enumerate(data.columns)}  # fmt: skip
    return Sample(list(data.columns), cells, len(data) <= MAX_SCANNED_ROWS)


def _pandas_values(series: Any, role: str) -> Any:
    """Return a numeric column as an array, text labels as a Categorical, any other as a list."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in _NUMERIC_KINDS.get(role, "iu"):
        return series.to_numpy()
    if isinstance(series.dtype, pd.StringDtype) and role in ("system", "question", "trial"):
        codes, texts = series.factorize()
        return pd.Categorical.from_codes(codes, pd.Index(texts))
    return series.tolist()


def values_of(series: Any, role: str) -> Any:
    """Return a numeric column without missing values as an array, any other as a list."""
    if series.dtype.is_numeric() and not series.is_null().any():
        try:
            array = series.to_numpy()
        except Exception:  # NumPy has no integers of 128 bits
            return series.to_list()
        if array.dtype.kind in _NUMERIC_KINDS.get(role, "iu"):
            return array
    return series.to_list()


def is_partitioned(data: object) -> bool:
    """Return whether this is a table of dask."""
    return type(data).__module__.startswith("dask.") and hasattr(data, "to_delayed")


def partitions(data: Any, columns: Mapping[str, str]) -> Iterator[Columns]:
    """Yield the partitions of a table of dask, of which only the needed columns are computed."""
    picked, start = Picked.of(Sample(list(data.columns), {}, False), columns), 0
    for partition in _computed_partitions(data[picked.needed]):
        rows = range(start, start + len(partition))
        table = from_pandas(partition, columns, numbers=rows)
        yield replace(table, unused=picked.unused)
        start += len(partition)


def _computed_partitions(data: Any) -> Iterator[Any]:
    """Yield partitions as tables of pandas, computed a few at a time by the scheduler of dask."""
    import dask

    n_at_once = 8  # partitions in memory
    parts = data.to_delayed()
    for start in range(0, len(parts), n_at_once):
        yield from dask.compute(*parts[start : start + n_at_once])


_MAX_CELLS = 100_000_000  # systems times questions; their counts take 1.6 GB


def read_rows(
    tables: Iterable[Columns], scores: Scores, rules: AnswerRules | None = None
) -> LongForm:
    """Return the trials, or the counts, of a long table in parts."""
    counter = Counter(scores, rules)
    for table in tables:
        counter.add(table)
    return counter.long_form()


class Counter:
    """Trials or counts of a long table, collected from its parts as a few numbers for each row.

    Checks what concerns several parts: that no trial occurs twice, and that the rows of a question
    agree in its content, group, weight and covariates.

    Parameters
    ----------
    scores : mapping
        As in `bayesatk.tally`.
    rules : AnswerRules, optional
        How answers are compared.

    Examples
    --------
    >>> counter = Counter({0: 0.0, 1: 1.0})
    >>> roles = {"question": "id", "outcome": "passed"}
    >>> counter.add(Columns(roles, {"question": ["a", "b"], "outcome": [1, 0]}))
    >>> counter.add(Columns(roles, {"question": ["b"], "outcome": [1]}))
    >>> counter.long_form().slots(counter.scores).tolist()  # by question: missing, wrong, right
    [[[0, 0, 1], [0, 1, 1]]]
    """

    def __init__(self, scores: Scores, rules: AnswerRules | None = None) -> None:
        self.scores, self.rules = scores, rules or AnswerRules()
        self.judged = False  # whether an outcome so far is not missing
        # Position of every label so far, by role.
        self._places: dict[str, dict[Any, int]] = {"system": {}, "question": {}, "trial": {}}
        self._trial_labels: list[Any] = []  # as they are written first, by position
        self._parts: list[Columns] = []  # without the values of their rows
        self._rows: dict[str, list[Any]] = {}  # values of every part, by name
        self._agreement = Agreement()
        self._passed_over = Counts[str]()

    def add(self, table: Columns) -> None:
        """Add a part of the table, whose rows are numbered as in the whole table."""
        if not len(table):
            return
        table = one_row_a_trial(table)
        self._passed_over.update(table.passed_over)
        system, question = self._cells(table)
        rows: dict[str, Any] = {"system": system, "question": question}
        if table.counted:
            rows["slots"] = _slots_of_counts(table, self.scores)
        else:
            rows |= self._trials(table, question)
        numbers: Any = table.numbers
        if isinstance(numbers, list):
            numbers = np.array(numbers, np.int64)
        values = {"question": question}
        self._parts.append(replace(table, values=values, numbers=numbers, content={}))
        for name, values in rows.items():
            self._rows.setdefault(name, []).append(values)

    def _trials(self, table: Columns, question: Ints) -> dict[str, Any]:
        """Return number, outcome, answer, cost and truth of every trial of a part."""
        answers = self.rules.apply_all(table.values["answer"]) if "answer" in table.roles else None
        if "outcome" in table.roles:
            code = _outcome_codes(table, self.scores)
        else:
            references = self._references(table, question, self.rules)
            code = codes_of(answers or [], references, self.scores)
        self.judged |= bool((code >= 0).any())
        by_trial = {
            role: read(table.listed(role), code, table.place, table.roles[role])
            for role, read in READERS.items()
            if role in table.roles
        }
        trial = self._coded(table, "trial")
        return {"trial": trial, "code": code, "answer": answers, **by_trial}

    def long_form(self) -> LongForm:
        """Return the trials, or counts, of all parts."""
        if not self._parts:
            raise OutcomeError("a table of outcomes must have rows; got none.")
        systems, questions = (list(self._places[role]) for role in ("system", "question"))
        table, notes = self._parts[0], list[str]()
        unnumbered = "trial" not in table.roles and not table.counted
        if unnumbered:
            notes.append("no trial column: the rows of one (system, question) are its trials")
        if table.unused:
            named = shown(list(table.unused), 200)[1:-1]
            notes.append(
                f"left out: columns {named}; a group, weight or covariate of questions is kept if "
                "it is named"
            )
        notes += [f"{words}: {number}" for words, number in self._passed_over.items() if number]
        used = ", ".join(f"{role} = column {name!r}" for role, name in table.roles.items())
        long = self._with_rows(LongForm(
            systems, questions, notes=(used, *notes), columns=self._agreement.columns(questions),
            outcome_column=table.roles.get("outcome", ""), rules=self.rules,
        ))  # fmt: skip
        if table.counted and (stopped := long.stopped_systems(self.scores)).any():
            note = (
                f"CHECK: no question of {shown(systems[int(stopped.argmax())])} has two successes, "
                "and those that were solved have different numbers of trials; do they end at the "
                "first success? Counts do not say so: give the outcome of every trial, in order."
            )
            long = replace(long, notes=(*long.notes, note))
        ids_of_rows = len(long.code) == len(questions) and len(self._trial_labels) > 1
        same = self._agreement.doubt(questions, numbered=not unnumbered and not ids_of_rows)
        others = variants_doubt(systems), _sums_doubt(table, long), same
        for doubt in filter(None, (*table.doubts, *others)):
            long = long.doubted(*doubt)
        return long

    def _with_rows(self, long: LongForm) -> LongForm:
        """Return the long form with the rows of all parts, or refuse a row that comes again."""
        rows: dict[str, Any] = {
            name: None if parts[0] is None else np.concatenate(parts)
            for name, parts in self._rows.items()
            if name != "answer"
        }
        system, question = rows["system"].astype(np.int64), rows["question"]
        cell, trial = system * len(long.questions) + question, rows.get("trial")
        if "slots" in rows:
            self._refuse_repeated(rows, cell)
            counted = np.zeros((*self._shape, rows["slots"].shape[1]), np.int64)
            counted[system, question] = rows["slots"]
            return replace(long, counted=counted)
        labels = answers = None
        if trial is not None:
            self._refuse_repeated(rows, cell * len(self._trial_labels) + trial)
            labels = [self._trial_labels[position] for position in trial.tolist()]
        if "answer" in self._parts[0].roles:
            answers = [text for texts in self._rows["answer"] for text in texts]
        by_trial = {role: rows[role] for role in READERS if role in rows}
        return replace(
            long, code=rows["code"], cell=cell, by_trial=by_trial, answer=answers,
            trial_labels=labels,
        )  # fmt: skip

    def _refuse_repeated(self, rows: Mapping[str, Ints], key: Ints) -> None:
        """Refuse a row whose key occurs in an earlier row."""
        repeated = pd.Series(key).duplicated().to_numpy()
        if not repeated.any():
            return
        row = int(repeated.argmax())
        first = Columns.place(*_table_and_row(self._parts, int((key == key[row]).argmax())))
        table, row_of_table = _table_and_row(self._parts, row)
        word, second = table.word, table.place(row_of_table)
        holders = f"{word}s{first.removeprefix(word)} and{second.removeprefix(word)}"
        places = {**self._places, "trial": self._trial_labels}
        content = ", ".join(f"{role} {shown([*places[role]][rows[role][row]])}"
                            for role in LABELS if role in table.roles)  # fmt: skip
        if table.counted:
            raise OutcomeError(
                f"each (system, question) must have one row of counts; {holders} are both of "
                f"{content}. Add them up, or name their systems."
            )
        raise OutcomeError(
            f"each (system, question, trial) must occur once; {holders} both hold {content}. "
            "Remove the repetition, or number the trials",
            *(piece for way in table.apart for piece in way), ".",
        )  # fmt: skip

    @property
    def _shape(self) -> tuple[int, int]:
        """Number of systems and number of questions so far."""
        return len(self._places["system"]), len(self._places["question"])

    def _cells(self, table: Columns) -> tuple[Ints, Ints]:
        """Return the positions of system and question of every row; compare rows of a question."""
        question = self._coded(table, "question")
        assert question is not None  # every table has questions
        system = self._coded(table, "system")
        if system is None:
            self._places["system"]["system"], system = 0, np.zeros(len(question), np.int64)
        if self._shape[0] * self._shape[1] > _MAX_CELLS:
            raise OutcomeError(
                f"the table has {self._shape[0]} systems and {self._shape[1]} questions, which "
                f"makes more than {_MAX_CELLS} cells. Check that column "
                f"{table.roles.get('system')!r} names systems, or split the table."
            )
        self._agreement.add(table, question, list(self._places["question"]))
        return system, question

    def _coded(self, table: Columns, role: str) -> Ints | None:
        """Return the position of the label of every row among those so far; None without labels."""
        if role not in table.roles:
            return None
        codes, names = labels(table, role)
        places = self._places[role]
        if role == "trial":
            texts = list(map(trial_text, names))
            new = dict(reversed([*zip(texts, names, strict=True)]))
            self._trial_labels += [new[text] for text in dict.fromkeys(texts) if text not in places]
            names = texts
        else:
            _refuse_summaries(table, role, names)
        return np.array([places.setdefault(name, len(places)) for name in names], np.int64)[codes]

    def _references(
        self, table: Columns, question: Ints, rules: AnswerRules
    ) -> list[tuple[str, ...]]:
        """Return the right answers of every row, which must be the same for a question."""
        right = [
            tuple(sorted(rules.right_answers(value, table.place(row))))
            for row, value in enumerate(table.values["reference"])
        ]
        codes = {answers: code for code, answers in enumerate(dict.fromkeys(right))}
        key, names = ("reference", table.roles["reference"]), list(self._places["question"])
        places = np.array([codes[answers] for answers in right], np.int64)
        self._agreement.compare(table, key, right, places, question, names)
        return right


def _sums_doubt(table: Columns, long: LongForm) -> Doubt:
    """Return a doubt if counts of trials may be numbers of questions of a benchmark."""
    of_benchmarks = 100  # questions, at least
    if long.counted is None:
        return ()
    trials = long.counted[..., 1:].sum(axis=2)
    one_question = len(long.questions) == 1 or is_suite(table.roles["question"])
    if trials[trials > 0].min(initial=of_benchmarks) < of_benchmarks or not one_question:
        return ()
    return (f"the {trials.max()} trials are read as those of one question; if they are as many "
            "questions of a benchmark, pass@1 alone is known, not pass@k of more trials",
            ".")  # fmt: skip


def _refuse_summaries(table: Columns, role: str, labels: Sequence[Any]) -> None:
    """Refuse a row or column called as a summary of others, which would be one of them."""
    for label in summaries_among(labels)[:1]:
        named = table.roles[role] if role in table.roles and table.of_file else SYSTEMS
        where = ("remove it; or: ", Argument("where", {named: f"!{label}"}))
        raise OutcomeError(
            f"{role}s must not be summaries of the others; {shown(label)} is called so. Give it "
            "another name, or ", *(where if named != SYSTEMS else ("remove it",)), ".",
        )  # fmt: skip


def _outcome_codes(table: Columns, scores: Scores) -> Codes:
    """Return the code of the outcome of every row, or refuse the first outcome without a score."""
    values = table.values["outcome"]
    if isinstance(values, list | tuple):  # empty text is missing
        values = [None if isinstance(value, str) and is_absent(value) and value not in scores
                  else value for value in values]  # fmt: skip
    codes = encode(values if isinstance(values, np.ndarray) else list(values), scores)
    cells = [
        (table.value("outcome", row), f"{table.place(row)} of column {table.roles['outcome']!r}")
        for row in unscored_positions(codes)
    ]
    if cells:
        raise unscored_outcome(
            *cells[0], scores, values[:10_000], cells[1] if len(cells) > 1 else None
        )
    return codes


def _table_and_row(tables: Sequence[Columns], row: int) -> tuple[Columns, int]:
    """Return the part that holds a row of the whole table, and the row within it."""
    for table in tables:
        if row < len(table):
            break
        row -= len(table)
    return table, row


def _slots_of_counts(table: Columns, scores: Scores) -> Ints:
    """Return counts by slot (rows, slots) of a table whose rows are counts."""
    if sorted(scores.values()) != [0.0, 1.0]:
        raise OutcomeError(
            "scores must be left out for counts of successes, which have two outcomes; got "
            f"{shown(dict(scores))}. Leave them out."
        )
    number = {role: _whole(table, role) for role in COUNTS if role in table.roles}
    if "failures" in number and "trials" in number:
        number["successes"] = number["trials"] - number["failures"]
    successes = number["successes"]
    trials = number.get("trials", successes + number.get("failures", 0))
    name = f"column {table.roles.get('trials', table.roles.get('failures'))!r}"
    counts = success_slots(successes, trials, name, lambda where: table.place(where[0]))
    order = [0, *(1 + category for category in np.argsort(list(scores.values())).tolist())]
    slots = np.empty_like(counts)
    slots[:, order] = counts
    return slots


def _whole(table: Columns, role: str) -> Ints:
    """Return a column of counts, which may be text, as whole numbers."""
    values = table.values[role]
    if not isinstance(values, np.ndarray) and {bool, str} & set(map(type, values)):
        numbers = [number_of(value) for value in values]
        for row, number in enumerate(numbers):
            if number is None or not number.is_integer():
                raise OutcomeError(
                    f"column {table.roles[role]!r} must have whole numbers >= 0; "
                    f"{table.place(row)} has {shown(values[row])}. Correct it, or name another "
                    "column: ", Argument("columns", {role: ...}, "tally"), ".",
                )  # fmt: skip
        values = numbers
    return check_counts(values, f"column {table.roles[role]!r}")
