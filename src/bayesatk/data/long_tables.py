"""Long tables of pandas, or of any library that narwhals supports, whole or in parts.

Their rows become trials or counts, by labels of systems, questions and trials. Of a table in parts
only the counts and the labels are kept in memory.
"""

from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk._tools.arrays import Flags, Ints
from bayesatk._tools.messages import Argument
from bayesatk.data.answers import AnswerRules
from bayesatk.data.columns import (
    SYSTEMS,
    Columns,
    Picked,
    labels,
    one_row_a_trial,
    rows_from,
    trial_text,
)
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
    MAX_SCANNED_ROWS,
    ROLES,
    Sample,
    normalized_name,
    short_text,
    usual_names,
)
from bayesatk.data.validation import (
    Codes,
    NumberScale,
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
        cells = (
            {}
            if lazy
            else {
                name: list(map(short_text, frame[name].head(MAX_SCANNED_ROWS).to_list()))
                for name in names
            }
        )
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
    cells = {
        name: list(map(short_text, head.iloc[:, position].tolist()))
        for position, name in enumerate(data.columns)
    }
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
        table = from_pandas(partition, columns, place=rows_from(start))
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
_MAX_MARK_BYTES = 1 << 28  # of the bits that mark the trials that were seen
_BITS_PER_WORD = 64


def read_rows(
    tables: Iterable[Columns], scores: Scores, rules: AnswerRules | None = None
) -> LongForm:
    """Return the trials of a long table in parts, or only their counts if there are no rules."""
    counter = Counter(scores, rules)
    for table in tables:
        counter.add(table)
    return counter.long_form()


class Counter:
    """Trials or counts of a long table, collected from its parts.

    Checks what concerns several parts: that no trial occurs twice, and that the rows of a question
    agree in its content, group, weight and covariates.

    Parameters
    ----------
    scores : mapping
        As in `bayesatk.tally`.
    rules : AnswerRules, optional
        How answers are compared; without rules trials are counted and not kept.

    Examples
    --------
    >>> counter = Counter({0: 0.0, 1: 1.0})
    >>> roles = {"question": "id", "outcome": "passed"}
    >>> counter.add(Columns(roles, {"question": ["a", "b"], "outcome": [1, 0]}))
    >>> counter.add(Columns(roles, {"question": ["b"], "outcome": [1]}))
    >>> counter.long_form().counted.tolist()  # by question: missing, wrong, right
    [[[0, 0, 1], [0, 1, 1]]]
    """

    def __init__(self, scores: Scores, rules: AnswerRules | None = None) -> None:
        self.scores, self.rules = scores, rules
        self.judged = False  # whether an outcome so far is not missing
        # Position of every label so far, by role.
        self._places: dict[str, dict[Any, int]] = {"system": {}, "question": {}, "trial": {}}
        self._slots: Ints = np.zeros((1, 1, len(scores) + 1), np.int64)
        self._parts: list[Columns] = []
        self._trials: dict[str, list[Any]] = {}  # arrays of every part, by name
        self._seen: NDArray[np.uint64] | None = np.zeros((1, 1, 1), np.uint64)
        self._agreement = Agreement()
        self._first: Columns | None = None
        self._notes: tuple[str, ...] = ()
        self._passed_over = Counts[str]()

    def add(self, table: Columns) -> None:
        """Add a part of the table, whose rows are numbered as in the whole table."""
        if not len(table):
            return
        table = one_row_a_trial(table)
        self._passed_over.update(table.passed_over)
        if self.rules is None:
            self._refuse_uncounted(table)
        system, question = self._cells(table)
        if table.counted:
            self._slots = _padded(self._slots, (*self._shape, self._slots.shape[2]))
            counted = self._slots[system, question].any(axis=1)
            _refuse_repeated([table], system * self._shape[1] + question, counted)
            self._slots[system, question] = _slots_of_counts(table, self.scores)
            return
        trial = self._coded(table, "trial")
        if self.rules is not None:
            self._keep(table, self.rules, system, question, trial)
            return
        if trial is not None:
            key = (system * self._shape[1] + question) * len(self._places["trial"]) + trial
            _refuse_repeated([table], key, self._marked(system, question, trial))
        code = _outcome_codes(table, self.scores)
        self.judged |= bool((code >= 0).any())
        self._slots = _padded(self._slots, (*self._shape, self._slots.shape[2]))
        np.add.at(self._slots, (system, question, code + 1), 1)

    def _refuse_uncounted(self, table: Columns) -> None:
        """Refuse costs, truths and scores that are numbers, which need the trials."""
        remedy = "Read the table whole: ", Argument("stream", False), ", or table.compute()."
        for role in filter(table.roles.__contains__, READERS):
            rule = " must be left out for tables that are counted part by part. "
            raise OutcomeError(role, rule, *remedy)
        if isinstance(self.scores, NumberScale) and not table.counted:
            rule = " must map outcomes where tables are counted part by part; got numbers. "
            raise OutcomeError("scores", rule, *remedy)

    def _keep(
        self, table: Columns, rules: AnswerRules, system: Ints, question: Ints, trial: Ints | None
    ) -> None:
        """Keep the trials of a part with their answers, costs and truths."""
        answers = rules.apply_all(table.values["answer"]) if "answer" in table.roles else None
        if "outcome" in table.roles:
            code = _outcome_codes(table, self.scores)
        else:
            code = codes_of(answers or [], self._references(table, question, rules), self.scores)
        self.judged |= bool((code >= 0).any())
        by_trial = {
            role: read(table.listed(role), code, table.place, table.roles[role])
            for role, read in READERS.items()
            if role in table.roles
        }
        trials = {
            "system": system,
            "question": question,
            "trial": trial,
            "code": code,
            "answer": answers,
            **by_trial,
        }
        self._parts.append(table)
        for name, values in trials.items():
            self._trials.setdefault(name, []).append(values)

    def long_form(self) -> LongForm:
        """Return the trials, or counts, of all parts."""
        if self._first is None:
            raise OutcomeError("a table of outcomes must have rows; got none.")
        systems, questions = (list(self._places[role]) for role in ("system", "question"))
        table, notes = self._first, list(self._notes)
        unnumbered = "trial" not in table.roles and not table.counted
        if unnumbered:
            notes.insert(0, "no trial column: the rows of one (system, question) are its trials")
        if table.unused:
            named = shown(list(table.unused), 200)[1:-1]
            notes.append(
                f"left out: columns {named}; a group, weight or covariate of questions is kept if "
                "it is named"
            )
        notes += [f"{words}: {number}" for words, number in self._passed_over.items() if number]
        used = ", ".join(f"{role} = column {name!r}" for role, name in table.roles.items())
        long = LongForm(
            systems,
            questions,
            notes=(used, *notes),
            columns=self._agreement.columns(questions),
            outcome_column=table.roles.get("outcome", ""),
        )
        if self._parts:
            long = self._with_trials(long)
        else:
            long = replace(long, counted=self._slots[: len(systems), : len(questions)])
        if table.counted and (stopped := long.stopped_systems(self.scores)).any():
            note = (
                f"CHECK: no question of {shown(systems[int(stopped.argmax())])} has two successes, "
                "and those that were solved have different numbers of trials; do they end at the "
                "first success? Counts do not say so: give the outcome of every trial, in order."
            )
            long = replace(long, notes=(*long.notes, note))
        n_rows = sum(map(len, self._trials.get("question", ())))
        ids_of_rows = n_rows == len(questions) and len(self._places["trial"]) > 1
        same = self._agreement.doubt(questions, numbered=not unnumbered and not ids_of_rows)
        others = variants_doubt(systems), self._sums_doubt(questions), same
        for doubt in filter(None, (*table.doubts, *others)):
            long = long.doubted(*doubt)
        return long

    def _sums_doubt(self, questions: Sequence[Any]) -> Doubt:
        """Return a doubt if counts of trials may be numbers of questions of a benchmark."""
        table, trials = self._first, self._slots[..., 1:].sum(axis=2)
        of_benchmarks = 100  # questions, at least
        if (
            table is None
            or not table.counted
            or trials[trials > 0].min(initial=of_benchmarks) < (of_benchmarks)
            or not (len(questions) == 1 or is_suite(table.roles["question"]))
        ):
            return ()
        return (
            f"the {trials.max()} trials are read as those of one question; if they are as many "
            "questions of a benchmark, pass@1 alone is known, not pass@k of more trials",
            ".",
        )

    def _with_trials(self, long: LongForm) -> LongForm:
        """Return the long form with the trials of all parts, or refuse a repeated trial."""
        tables = self._parts
        joined: dict[str, Any] = {
            name: None if parts[0] is None else np.concatenate(parts)
            for name, parts in self._trials.items()
            if name != "answer"
        }
        cell, trial = joined["system"] * self._shape[1] + joined["question"], joined["trial"]
        labels = None
        if trial is not None:
            key = cell * len(self._places["trial"]) + trial
            _refuse_repeated(tables, key, np.zeros(len(key), bool))
            labels = [label for table in tables for label in table.listed("trial")]
        answers = None
        if "answer" in tables[0].roles:
            answers = [text for texts in self._trials["answer"] for text in texts]
        by_trial = {role: joined[role] for role in READERS if role in joined}
        return replace(
            long,
            code=joined["code"],
            cell=cell,
            by_trial=by_trial,
            answer=answers,
            rules=self.rules or AnswerRules(),
            trial_labels=labels,
        )

    @property
    def _shape(self) -> tuple[int, int]:
        """Number of systems and number of questions so far."""
        return len(self._places["system"]), len(self._places["question"])

    def _cells(self, table: Columns) -> tuple[Ints, Ints]:
        """Return the positions of system and question of every row; compare rows of a question."""
        question = self._coded(table, "question")
        assert question is not None  # every table has questions
        if self._first is None:
            self._first = replace(table, values={}, content={})
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
        if role == "trial":
            names = list(map(trial_text, names))
        else:
            _refuse_summaries(table, role, names)
        places = self._places[role]
        return np.array([places.setdefault(name, len(places)) for name in names], np.int64)[codes]

    def _marked(self, system: Ints, question: Ints, trial: Ints) -> Flags:
        """Mark trials as seen, one bit each, and return which of them an earlier part has."""
        words = -(-len(self._places["trial"]) // _BITS_PER_WORD)
        if self._seen is not None and self._shape[0] * self._shape[1] * words * 8 > _MAX_MARK_BYTES:
            self._seen = None
            self._notes += (
                f"{len(self._places['trial'])} labels of trials: repeated trials were looked for "
                "within parts of the table only",
            )
        if self._seen is None:
            return np.zeros(len(trial), bool)
        self._seen = _padded(self._seen, (*self._shape, words))
        word = system, question, trial // _BITS_PER_WORD
        bit = np.uint64(1) << (trial % _BITS_PER_WORD).astype(np.uint64)
        again = (self._seen[word] & bit) > 0
        np.bitwise_or.at(self._seen, word, bit)
        return again

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


def _refuse_summaries(table: Columns, role: str, labels: Sequence[Any]) -> None:
    """Refuse a row or column called as a summary of others, which would be one of them."""
    for label in summaries_among(labels)[:1]:
        named = table.roles[role] if role in table.roles and table.of_file else SYSTEMS
        where = ("remove it; or: ", Argument("where", {named: f"!{label}"}))
        raise OutcomeError(
            f"{role}s must not be summaries of the others; {shown(label)} is called so. Give it "
            "another name, or ",
            *(where if named != SYSTEMS else ("remove it",)),
            ".",
        )


def _outcome_codes(table: Columns, scores: Scores) -> Codes:
    """Return the code of the outcome of every row, or refuse the first outcome without a score."""
    values = table.values["outcome"]
    if isinstance(values, list | tuple):  # empty text is missing
        values = [
            None if isinstance(value, str) and is_absent(value) and value not in scores else value
            for value in values
        ]
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


def _refuse_repeated(tables: Sequence[Columns], key: Ints, earlier: Flags) -> None:
    """Refuse a row whose key occurs in an earlier row of these parts, or in an earlier part."""
    repeated = pd.Series(key).duplicated().to_numpy()
    again = repeated | earlier
    if not again.any():
        return
    row = int(again.argmax())
    table, row_of_table = _table_and_row(tables, row)
    second = table.place(row_of_table)
    holders = f"{second} and an earlier row"
    if repeated[row]:
        first_table, first_row = _table_and_row(tables, int((key == key[row]).argmax()))
        first = first_table.place(first_row)
        word = second.partition(" ")[0]
        holders = f"{word}s{first.removeprefix(word)} and{second.removeprefix(word)}"
    if table.counted:
        raise OutcomeError(
            f"each (system, question) must have one row of counts; {holders} are both of question "
            f"{shown(table.value('question', row_of_table))}. Add them up, or name their systems."
        )
    content = ", ".join(
        f"{role} {shown(table.value(role, row_of_table))}"
        for role in table.roles
        if role != "outcome"
    )
    raise OutcomeError(
        f"each (system, question, trial) must occur once; {holders} both hold {content}. "
        "Remove the repetition, or number the trials",
        *(piece for way in table.apart for piece in way),
        ".",
    )


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
                    "column: ",
                    Argument("columns", {role: ...}, "tally"),
                    ".",
                )
        values = numbers
    return check_counts(values, f"column {table.roles[role]!r}")


def _padded[Kind: np.generic](array: NDArray[Kind], shape: tuple[int, ...]) -> NDArray[Kind]:
    """Return the array padded by zeros to at least a shape."""
    room = [(0, max(0, size - has)) for has, size in zip(array.shape, shape, strict=True)]
    return np.pad(array, room) if any(more for _, more in room) else array
