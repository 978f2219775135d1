"""Which column of a table has which role (system, question, trial, outcome, ...).

A `Sample` holds the first rows of a table: the names of its columns, and their cells as short
texts. `assign_roles` finds the columns by their names and their values, or raises one error that
names every role that is unclear. `doubts` are warnings about what may be read wrongly: conditions
that would be pooled, a row number taken for the question, names of conditions taken for numbers of
trials.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations, islice
from typing import Any

from bayesatk._tools.messages import Argument
from bayesatk.data.validation import (
    Labels,
    OutcomeError,
    is_absent,
    number_of,
    outcome_of,
    scores_of_words,
    share_of,
    shown,
    ways_to_score,
    word_scores,
)

GROUP = "group"
WEIGHT = "weight"
COST = "cost"
TRUTH = "truth"
BY_TRIAL = (COST, TRUTH)  # roles of numbers that belong to a trial, beside its outcome
COVARIATE = "covariate "  # the role of a covariate is this prefix and the name of its column
# What may be named in place of a column: one label for all rows, the key of a record in a JSON
# object, and the folder or file that holds the row.
ONE, KEY, FOLDER, FILE = "(one)", "(key)", "(folder)", "(file)"
PLACEHOLDERS = (ONE, FOLDER, FILE)

# Usual names of the columns with each role, as `normalized_name` writes them. Names of one string
# are preferred to those of the next; two columns with names of one string are ambiguous.
ROLES: dict[str, tuple[str, ...]] = {
    "system": ("system model agent solver policy llm", "model_name model_id agent_name"),
    "question": (
        "question question_id task_id task item item_id problem problem_id sample_id doc_id "
        "problem_idx instance_id example_id prompt_id query_id id",
        "case case_id test_id test_case scenario scenario_id task_name test_name name task_index "
        "ng_task_index q (key)",
        "prompt input user_input instruction inputs query",
    ),
    "trial": (
        "trial epoch run attempt rep repeat repetition repetition_number rollout seed episode",
        "trial_id trial_index trial_idx attempt_id attempt_index attempt_idx run_index run_idx "
        "repeat_index repeat_idx rollout_index rollout_idx ng_rollout_index episode_id "
        "episode_index episode_idx",
    ),
    "outcome": (
        "outcome correct is_correct score passed success reward accs graded_list",
        "resolved is_resolved solved is_solved is_success is_passed pass score_binarized win won "
        "exact_match",
    ),
    # Roles of tables whose rows are counts.
    "trials": (
        "trials n num_samples n_samples total_attempts total_trials num_trials n_trials "
        "pass_rate_total",
    ),
    "successes": (
        "successes c num_correct success_count successful_trials num_successes n_successes "
        "n_correct pass_rate_passed",
    ),
    "failures": ("failures num_failures n_failures failure_count num_failed n_failed",),
    "rate": (),  # share or percentage of successes
    # Roles without usual names are taken only as named. A column "answer" may hold the right
    # answer, a cost has a unit, and a group may be one of trials or of systems.
    "answer": (),
    "reference": (),
    "content": (),  # the prompt or the right answer, which all rows of a question must share
    COST: (),
    TRUTH: (),  # the true mark of a trial that a judge marked
    GROUP: (),
    WEIGHT: (),
}
COUNTS = ("trials", "successes", "failures")
LABELS = ("system", "question", "trial")  # roles that may be given to several columns together
# Usual names of columns of experimental conditions, each of which may be a system.
CONDITIONS = {
    *"agent_type approach arm cond condition config configuration experiment framework".split(),
    *"harness judge method mode pipeline policy profile prompt_version provider regime".split(),
    *"reasoning_effort scaffold setting strategy technique temperature top_p treatment".split(),
    *"variant".split(),
}
# Names of columns that each hold one trial of the question of the row.
_TRIAL_COLUMN = re.compile("(trial|run|attempt|repeat|rollout|sample|seed|epoch|try|pass)_?[0-9]+")
# Found in names of columns of marks, and in those of shares or percentages of successes.
_MARK_NAME = re.compile("score|pass|correct|success|solve|verified|(^|_)(win|won|safe)(_|$)")
_RATE_NAME = re.compile(
    "(^|_)((win|pass|success|solve)?rates?|percent(age)?|share|accuracy|acc|pct)(_|$)|pass@"
)
# Found in names of columns that count trials, and in those of other measurements.
_COUNT_NAMES = {"failures": "fail|wrong|unsolved", "successes": "pass|succ|solved|correct",
            "trials": "trial|run|attempt|episode|rollout|sample|tries|total|^n_|^num_"}  # fmt: skip
_MEASUREMENT_NAME = re.compile(
    "(^|_)(len|length|time|runtime|latency|duration|sec|seconds|ms|s|min|max|mean|std|best|steps?"
    "|size|tokens?)(_|$)"
)
# Found in names of columns of scores that are better when lower.
_LOWER_IS_BETTER = re.compile(
    "(^|_)(seconds?|secs?|ms|latency|latencies|time|runtime|duration|costs?|prices?|usd|tokens?"
    "|errors?|loss|losses|steps?)(_|$)"
)
BINARY_MARK_TEXTS = {"0", "1", "0.0", "1.0", "true", "false"}
PROMPT_NAMES = (
    "prompt", "question", "question_text", "input", "problem", "instruction", "user_input",
    "inputs", "query",
)  # fmt: skip
REFERENCE_NAMES = (
    "answer", "label", "target", "gold", "gold_answer", "ground_truth", "expected",
    "expected_answer", "expected_output", "reference", "reference_answer", "correct_answer",
)  # fmt: skip
_PREDICTION_NAMES = (
    "prediction", "predicted", "pred", "predicted_answer", "model_answer", "model_output",
    "extracted_answer", "parsed_answer", "given_answer", "response", "completion", "output",
)  # fmt: skip
_MAX_CONDITIONS = 20  # different values of a column of conditions
MAX_SCANNED_ROWS = 20_000  # first rows of a table, by which the roles of its columns are judged


def normalized_name(name: object) -> str:
    """Return a column name in lower case with underscores; "" if it is no text.

    Examples
    --------
    >>> [normalized_name(name) for name in ("Sample ID", "isCorrect", "success-count", 3)]
    ['sample_id', 'is_correct', 'success_count', '']
    """
    if not isinstance(name, str):
        return ""
    words = re.sub("(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"[\s_-]+", "_", words).strip("_").lower()


def _last_part(name: object) -> str:
    """Return the normalized name of the last part of a dotted path."""
    return normalized_name(name.rpartition(".")[2] if isinstance(name, str) else name)


@dataclass(frozen=True)
class Sample:
    """The first rows of a table.

    Parameters
    ----------
    names : list
        Names of the columns.
    cells : mapping
        Cells as short texts, by column name or dotted path of a field; "" where a cell is missing.
    whole : bool
        Whether these are all rows of the table.
    fields : tuple of str
        Dotted paths that the table has as well, and that were not scanned.
    """

    names: list[Any]
    cells: Mapping[Any, list[str]]
    whole: bool = True
    fields: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, records: Iterable[object], where: Mapping[str, object] | None = None,
        known: Labels = (), more: Callable[[], bool] = lambda: True,
    ) -> "Sample":  # fmt: skip
        """Scan records.

        Parameters
        ----------
        records : iterable
            Those that are no mappings are skipped.
        where : mapping, optional
            Values of columns; other rows are skipped.
        known : sequence
            Names of columns that the table has, also where no record has them.
        more : callable
            Called after each record; scanning ends when it returns False.

        Examples
        --------
        >>> sample = Sample.of([{"id": 7}, {"id": 8, "test": {"passed": True}}])
        >>> sample.names, sample.cells["test.passed"]
        (['id', 'test'], ['', 'True'])
        """
        names, cells = dict.fromkeys(known), dict[Any, dict[int, str]]()
        length, whole, iterator = 0, True, iter(records)
        for record in islice(iterator, MAX_SCANNED_ROWS):
            if not isinstance(record, Mapping):
                continue
            names |= dict.fromkeys(record)
            if where and not row_matches(record.get, where):
                continue
            max_depth = 3
            for path, text in _fields_as_text(record, max_depth):
                cells.setdefault(path, {})[length] = text
            length += 1
            if not more():
                whole = False
                break
        whole = whole and next(iterator, None) is None
        dense = {path: [texts.get(row, "") for row in range(length)]
                 for path, texts in cells.items()}  # fmt: skip
        return cls(list(names), {name: [""] * length for name in names} | dense, whole)

    def __len__(self) -> int:
        return len(next(iter(self.cells.values()), ()))

    def rows(self, names: Iterable[Any]) -> list[tuple[str, ...]]:
        """Return the cells of some columns, row by row."""
        columns = [self.cells[name] for name in names if name in self.cells]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self)

    def tell_apart(self, names: Collection[Any]) -> bool:
        """Return whether no two rows have the same cells in these columns."""
        scanned_names = [name for name in names if name not in PLACEHOLDERS]
        rows = self.rows(scanned_names)
        return all(name in self.cells for name in scanned_names) and len(set(rows)) == len(rows) > 0

    def distinct(self, name: Any) -> list[str]:
        """Return the different texts of a column, in order of appearance."""
        return [text for text in dict.fromkeys(self.cells.get(name, ())) if text]

    def marked(self) -> list[str]:
        """Return the columns and fields that hold marks of 0 and 1, or words for them.

        If some have usual names of outcomes, these alone; else those whose names contain a word
        for success; else all that hold both 0 and 1.

        Examples
        --------
        >>> Sample.of([{"id": 7, "ex": 1, "kind": "a", "n": 1}, {"ex": 0, "n": 3}]).marked()
        ['ex']
        """
        marks = [name for name in self.cells
                 if (self.are_marks(name) or _are_words_of_marks(self.distinct(name)))
                 and not _RATE_NAME.search(_last_part(name))]  # fmt: skip
        usual = usual_names("outcome")
        unlabelled = [name for name in marks if _last_part(name) not in usual_names(*LABELS)]
        with_both_marks = [
            name
            for name in unlabelled
            if len(self.distinct(name)) > 1 and not self._numbers_two_trials(name)
        ]
        named_like_marks = [name for name in unlabelled if _MARK_NAME.search(_last_part(name))]
        usual_outcomes = [
            name for name in marks if _last_part(name) in usual and "[]" not in str(name)
        ]
        within_lists = [
            name for name in named_like_marks if name in with_both_marks and "[]" in str(name)
        ]
        return usual_outcomes or within_lists or named_like_marks or with_both_marks

    def _numbers_two_trials(self, name: Any) -> bool:
        """Return whether 0 and 1 are in as many rows of each of three or more values of a column.

        So are the numbers of two trials of a question; marks are not.
        """
        for key in self.names:
            rows = Counter(self.rows([key, name]))
            groups = {value for value, _ in rows if key != name}
            if len(groups) >= 3 and len(rows) == 2 * len(groups) and len({*rows.values()}) == 1:
                return True
        return False

    def are_marks(self, name: Any) -> bool:
        """Return whether a column holds only 0 and 1, or true and false."""
        texts = self.distinct(name)
        return bool(texts) and {text.lower() for text in texts} <= BINARY_MARK_TEXTS


def _are_words_of_marks(texts: Collection[str]) -> bool:
    """Return whether texts are two words for marks, or few words with some for right and wrong."""
    few = 8
    with_words = len(texts) <= few and None in map(number_of, texts)
    return bool(word_scores(texts) or (with_words and scores_of_words(texts)))


def row_matches(value_of: Callable[[str], object], where: Mapping[str, object]) -> bool:
    """Return whether a row has the wanted values, or one of several, in all named columns."""
    for name, wanted in where.items():
        several = wanted if isinstance(wanted, list | tuple | set) else [wanted]
        if str(value_of(name)) not in {str(value) for value in several}:
            return False
    return True


def short_text(value: object) -> str:
    """Return a cell as a short text, different for different values; "" for a missing cell."""
    if is_absent(value):
        return ""
    text = value if isinstance(value, str) else shown(value, 10_000)
    longest = 80
    return text if len(text) <= longest else f"{text[:longest]}#{hash(text)}"


def _fields_as_text(value: Mapping[Any, object], depth: int) -> Iterator[tuple[Any, str]]:
    """Yield dotted path and text of the fields of an object, down to some depth.

    Of a list of objects the fields of the first object are yielded, under ``name[].field``.
    """
    for name, inner in value.items():
        yield name, short_text(inner)
        within = ""
        if isinstance(inner, list) and inner:
            within, inner = "[]", inner[0]
        if isinstance(inner, dict) and depth > 1:
            within = f"{name}{within}."
            yield from ((within + path, text) for path, text in _fields_as_text(inner, depth - 1))


def usual_names(*roles: str) -> set[str]:
    """Return the usual names of columns with these roles, or with any role if none is given."""
    return {name for role in roles or ROLES for line in ROLES[role] for name in line.split()}


def usual_columns(role: str, names: Labels, taken: Collection[Any] = ()) -> list[Any]:
    """Return the columns with a usual name for a role, from the most preferred names that occur."""
    free = [name for name in names if name not in taken]
    by_line = (
        [name for name in free if normalized_name(name) in line.split()] for line in ROLES[role]
    )
    return next(filter(None, by_line), [])


def is_better_lower(name: object) -> bool:
    """Whether a column is called as a score that is better when lower.

    Examples
    --------
    >>> [is_better_lower(name) for name in ("latency_s", "Total cost", "score", "lossless")]
    [True, True, False, False]
    """
    return bool(_LOWER_IS_BETTER.search(normalized_name(name)))


def trial_columns(names: Labels) -> list[Any]:
    """Return the columns whose names are those of single trials, such as trial_1 or run 2.

    Examples
    --------
    >>> trial_columns(["task", "trial_1", "Run 2", "trials"])
    ['trial_1', 'Run 2']
    """
    return [name for name in names if _TRIAL_COLUMN.fullmatch(normalized_name(name))]


def columns_named(name: object, names: Collection[Any]) -> tuple[Any, ...]:
    """Return the columns that a name stands for: a list of names, or a text with commas.

    Examples
    --------
    >>> columns_named("run0, run1", ["task", "run0", "run1"]), columns_named("a,b", ["a,b"])
    (('run0', 'run1'), ('a,b',))
    """
    if isinstance(name, list | tuple):
        return tuple(name)
    if isinstance(name, str) and "," in name and name not in names:
        return tuple(part.strip() for part in name.split(","))
    return (name,)


def assign_roles(
    sample: Sample, columns: Mapping[str, Any], of_file: bool = False
) -> dict[str, Any]:
    """Return the column with each role: as named, else by usual names and by the values.

    Counts are taken only in a table without outcomes. A role of several columns has a tuple of
    them. Where the table is `of_file`, errors also propose options of `bayesatk.load`.

    Examples
    --------
    >>> assign_roles(Sample(["task_id", "epoch", "passed"], {}), {})
    {'question': 'task_id', 'trial': 'epoch', 'outcome': 'passed'}
    """
    named = _named_roles(sample, columns)
    # A column with nothing in it is none.
    scanned = sample.whole and len(sample)
    names = [name for name in sample.names
             if not (scanned and name in sample.cells) or sample.distinct(name)]  # fmt: skip
    in_use = [
        name
        for role, columns_of_role in named.items()
        if role != "content"
        for name in as_tuple(columns_of_role)
    ]
    counted = _are_counts(names, named)
    skipped = {"content", "rate", *(("outcome", "trial") if counted else COUNTS)}
    skipped |= {"outcome"} if "reference" in named else set()
    skipped |= {*COUNTS} if "rate" in named else set()
    roles: dict[str, Any] = {}
    unclear: dict[str, list[Any]] = {}
    for role in ROLES:
        if role in named and role != "content":
            roles[role] = named[role]
        elif role not in skipped:
            candidates = _candidates(role, names, [*in_use, *roles.values()], sample, roles, named)
            if candidates is not None and len(candidates) == 1:
                roles[role] = candidates[0]
            elif candidates:
                unclear[role] = candidates
    if counted:
        _choose_counts(roles, named, unclear)
    elif "outcome" not in roles and not {"reference", "rate"} & named.keys():
        unclear.setdefault("outcome", [])
    if "question" not in roles:
        unclear.setdefault("question", [])
    if unclear:
        raise _unclear_roles(sample, names, roles, named, unclear, of_file)
    roles |= {role: name for role, name in named.items() if role.startswith(COVARIATE)}
    return roles


def refuse_row_as_names(sample: Sample) -> None:
    """Refuse names of columns that look like the cells of a row.

    No name is usual, and all are numbers, or half of them and one that is no number come again in
    their own columns.
    """
    names = [str(name) for name in sample.names]
    repeated = [name for name in names if name in sample.cells.get(name, ())]
    words = [name for name in repeated if number_of(name) is None]
    all_are_numbers = None not in map(number_of, names)
    if not repeated or {*map(_last_part, names)} & usual_names():
        return
    if all_are_numbers or (words and 2 * len(repeated) >= len(names)):
        raise OutcomeError(
            f"a table must have names of its columns in the first row; got {shown(names)}, which "
            "look like a trial. Write a row of names above it, such as "
            "system,question,trial,outcome."
        )


def as_tuple(name: Any) -> tuple[Any, ...]:
    """Return the column or columns of a role as a tuple."""
    return name if isinstance(name, tuple) else (name,)


def columns_of(roles: Mapping[str, Any], *wanted: str) -> list[Any]:
    """Return the columns of some roles in one list."""
    return [name for role in wanted if role in roles for name in as_tuple(roles[role])]


def _candidates(
    role: str, names: Labels, taken: Collection[Any], sample: Sample, roles: Mapping[str, Any],
    named: Mapping[str, Any],
) -> list[Any] | None:  # fmt: skip
    """Return the columns that may have a role, by their names and values."""
    if role == "outcome":  # a column may be the group and the outcome
        taken = [name for name in taken if name not in columns_of(named, GROUP, WEIGHT)]
    matches = usual_columns(role, names, taken)
    if role == "question":
        matches = [name for name in matches if normalized_name(name) not in PROMPT_NAMES] or matches
        trial = columns_of(named, "trial") or usual_columns("trial", names, taken)
        return _not_row_numbers(matches, names, taken, trial, sample, roles)
    if role == "trial" and len(matches) > 1:
        key = columns_of(roles, "system", "question")
        alone = [name for name in matches if sample.tell_apart([*key, name])]
        return alone[:1] or ([tuple(matches)] if sample.tell_apart([*key, *matches]) else matches)
    if role == "outcome" and matches:
        matches = _different_marks(matches, names, taken, sample)
    if role == "outcome" and not matches:
        beside = trial_columns(names)
        return [tuple(beside)] if len(beside) > 1 else []
    return matches


def _different_marks(
    matches: list[Any], names: Labels, taken: Collection[Any], sample: Sample
) -> list[Any]:
    """Return candidates for the outcome: columns of marks, with all others that differ.

    Columns of marks with less preferred usual names are candidates too if their marks differ from
    those of the first candidate.
    """
    marks = [name for name in matches if sample.are_marks(name)]
    if not marks:  # such a column may count what another marks
        return matches
    usual, excluded = usual_names("outcome"), (*matches, *taken)
    other_marks = [
        name
        for name in names
        if normalized_name(name) in usual and name not in excluded and sample.are_marks(name)
    ]
    return marks + [name for name in other_marks if sample.cells[name] != sample.cells[marks[0]]]


def _not_row_numbers(
    matches: list[Any], names: Labels, taken: Collection[Any], trial: Labels, sample: Sample,
    roles: Mapping[str, Any],
) -> list[Any]:  # fmt: skip
    """Return candidates for the question, without row numbers.

    A column that differs in every row is a row number where a trial column has several values and
    another column with a usual name of questions repeats.
    """
    row_numbers = [name for name in matches if sample.tell_apart([name])]
    if not row_numbers or not any(len(sample.distinct(name)) > 1 for name in trial):
        return matches
    usual = {name for line in ROLES["question"][:2] for name in line.split()} - {*PROMPT_NAMES}
    excluded = (*taken, *row_numbers, *trial)
    other_ids = [name for name in names if name not in excluded and normalized_name(name) in usual]
    key = [*columns_of(roles, "system"), *trial]
    repeated_ids = [name for name in other_ids if sample.tell_apart([*key, name])]
    return repeated_ids or matches


def _choose_counts(
    roles: dict[str, Any], named: Mapping[str, Any], unclear: dict[str, list[Any]]
) -> None:
    """Keep two of trials, successes and failures; record those that are lacking as unclear."""
    if {"trials", "successes"} <= roles.keys() and "failures" not in named:
        roles.pop("failures", None)
    elif {"successes", "failures"} <= roles.keys() and "trials" not in named:
        roles.pop("trials", None)
    for role in () if len(roles.keys() & {*COUNTS}) == 2 else ("trials", "successes"):
        if role not in roles:
            unclear.setdefault(role, [])


def _are_counts(names: Labels, named: Mapping[str, Any]) -> bool:
    """Return whether the rows of a table are counts of trials and successes."""
    if {"outcome", "answer", "rate"} & named.keys():
        return False
    meanings = set(map(normalized_name, names))
    usual = [role for role in COUNTS if meanings & usual_names(role)]
    unmarked = not meanings & usual_names("outcome")
    return any(role in named for role in COUNTS) or (
        unmarked and "successes" in usual and len(usual) > 1
    )


def _named_roles(sample: Sample, columns: object) -> dict[str, Any]:
    """Return the roles that `columns=` names, or refuse unknown roles, columns and combinations."""
    names = {*sample.names, *sample.cells, *sample.fields, *PLACEHOLDERS}
    valid = isinstance(columns, Mapping)
    named = dict(columns) if isinstance(columns, Mapping) else {}
    for role, name in named.items():
        parts = columns_named(name, names)
        is_number = role == "trials" and "rate" in named and number_of(name) is not None
        valid = valid and (len(parts) == 1 or role in (*LABELS, *COUNTS, "outcome", "rate"))
        valid = valid and (is_number or all(
            isinstance(part, str | int) and part in names for part in parts))  # fmt: skip
        named[role] = parts if len(parts) > 1 else parts[0]
    unknown = [
        role
        for role in named
        if not (isinstance(role, str) and (role in ROLES or role.startswith(COVARIATE)))
    ]
    if unknown:
        raise OutcomeError(
            f"columns must name roles; {shown(unknown[0])} is none. Roles are {', '.join(ROLES)}. "
            "Leave a column without a role out."
        )
    if "rate" in named and named.get("trials", "NUMBER") == "NUMBER":  # as messages propose it
        raise OutcomeError(
            "columns must give the number of trials beside a rate, one for all questions or a "
            "column: ", Argument("columns", {"rate": named["rate"], "trials": 10}), ".",
        )  # fmt: skip
    if not valid:
        absent = [part for name in named.values() for part in columns_named(name, names)
                  if isinstance(part, str) and part not in names]  # fmt: skip
        near = [(name, *get_close_matches(name, [*map(str, names)], 1)) for name in absent]
        meant = "".join(f" Is {pair[0]!r} meant as {pair[1]!r}?" for pair in near if pair[1:])
        raise OutcomeError(
            f"columns must map {', '.join(ROLES)} to names in the table; got {shown(columns, 200)} "
            f"for a table with columns {shown(list(sample.names), 400)}.{meant}"
        )
    used = [part for role, name in named.items() if role != "content" for part in as_tuple(name)]
    counts = {*COUNTS} & named.keys()
    of_systems = {len(as_tuple(named[role])) for role in ("rate", "successes", "failures")
                  if role in named}  # fmt: skip
    for is_wrong, rule, remedy in (
        (
            "reference" in named and ("answer" not in named or "outcome" in named),
            ": a reference goes with an answer column and takes the place of an outcome column",
            "Name answer and reference, or answer and outcome.",
        ),
        (
            ("rate" in named or counts)
            and named.keys() & {"outcome", "answer", "trial", *BY_TRIAL},
            ": trials and successes count the outcomes of a row, which then has none of its own",
            "Name the one or the other.",
        ),
        (
            len(counts) > 2,
            ": two of trials, successes and failures say the third", "Leave one out.",
        ),
        (
            len(of_systems) > 1
            or len(as_tuple(named.get("trials"))) not in {1, *of_systems},
            " must have counts of as many systems in every role, or one of trials for all",
            "Name the columns of every system, in the same order.",
        ),
        (
            len(set(used)) < len(used),
            " must give every role its own column",
            "Name another column, or leave the role out.",
        ),
    ):  # fmt: skip
        if is_wrong:
            raise OutcomeError(f"columns{rule}; got {shown(columns)}. {remedy}")
    return named


def _unclear_roles(
    sample: Sample, names: Labels, roles: Mapping[str, Any], named: Mapping[str, Any],
    unclear: Mapping[str, list[Any]], of_file: bool,
) -> OutcomeError:  # fmt: skip
    """Return one error that names all unclear roles, and proposes columns for them."""
    rules = [f"one {role} column; " + (f"several could be it: {candidates}" if candidates else
             "none has a usual name") for role, candidates in unclear.items()]  # fmt: skip
    empty = [name for name in sample.names if name not in names]
    nothing = f" (nothing is in {shown(empty, 100)[1:-1]})" * bool(empty)
    taken = columns_of({**named, **roles}, *named, *roles)
    marked = [name for name in sample.marked() if name not in taken]
    proposed: dict[str, Any] = {
        role: next(iter(candidates), ...) for role, candidates in unclear.items()
    }
    hints = f"Marks are in {shown(marked, 160)[1:-1]}. " * (
        bool(marked) and "outcome" in unclear)  # fmt: skip
    ids: list[Any] = []
    if unclear.get("question") == []:
        ids = _likely_questions(sample, names, columns_of(roles, "system"), [*taken, *marked])
        proposed |= {"question": ids[0]} if len(ids) == 1 else {}
    if unclear.get("question") == [] and {*names} <= {*taken, *columns_of(proposed, *proposed)}:
        proposed["question"] = ONE  # no other column is left
        hints += "They can be read if all rows are trials of one question. "
    if unclear.get("outcome") == []:
        instead, found = _instead_of_outcome(sample, {**proposed, **roles}, marked, taken)
        hints = instead or hints
        if "outcome" not in found:
            del proposed["outcome"]
        proposed |= found
    hints += f"Ids that come more than once are in {shown(ids, 160)[1:-1]}. " * bool(ids)
    systems = _likely_systems(sample, {**roles, **proposed}, taken)
    if len(systems) == 1:
        hints += f"Each of {systems[0]!r} has as many rows of every question. "
        proposed["system"] = systems[0]
    first = _as_systems_or_trials(sample, roles, proposed, marked) if of_file else []
    pieces: list[Any] = [
        f"the table must have {', and '.join(rules)} among {shown(list(names), 400)}{nothing}. "
        f"{hints}", *first, f"{'n' if first else 'N'}ame "
        f"{'them' if len(unclear) > 1 else 'it'}: ",
        *_with_scores(sample, proposed, marked),
    ]  # fmt: skip
    if of_file and "question" in roles:
        pieces += _as_objects(sample, marked)
    if unclear.get("question") == []:
        within = [str(name) for name in names
                  if any(str(path).startswith(f"{name}[].") for path in sample.cells)]  # fmt: skip
        if within and of_file:
            pieces += ["; or, if records are within it: ", Argument("records", within[0])]
        if proposed["question"] is ...:
            pieces += ["; or, if all rows are trials of one question: ",
                       *_with_scores(sample, {**proposed, "question": ONE}, marked)]  # fmt: skip
    return OutcomeError(*pieces, ".")


def _as_systems_or_trials(
    sample: Sample, roles: Mapping[str, Any], proposed: Mapping[str, Any], marked: list[Any]
) -> list[Any]:
    """Return what to propose if each of several columns of marks or scores is a system, or a trial.

    Several scores, of which some may be measurements of another kind, are no trials.
    """
    beside, kind = [name for name in marked if name in sample.names], "marks"
    scores: list[Any] = []
    of_both = {**proposed, **roles}
    if not marked and "system" not in roles and of_both.get("question", ...) is not ...:
        free = [name for name in sample.names if name not in columns_of(of_both, *of_both)]
        likely = _likely_scores(sample, of_both, free)
        beside, kind = [name for name in likely if _are_numbers(sample, name)], "scores"
        scores = [Argument("scores", "numbers")]
    keys = [name for name in columns_of(of_both, "question", "trial") if name is not ...]
    if proposed.get("outcome") is not ... or len(beside) < 2 or not sample.tell_apart(keys):
        return []
    columns = Argument("columns", {**proposed, "outcome": beside})
    as_systems = [f"If each column of {kind} is a system: ", Argument("wide", True), columns,
                  *scores, "; "]  # fmt: skip
    numbered = all(str(name)[-1].isdecimal() for name in beside)
    if scores or "trial" in roles:
        as_trials: list[Any] = []
    elif numbered and len({str(name).rstrip("0123456789") for name in beside}) > 1:
        as_trials = ["if they are numbered trials of several systems, write a row for each system "
                     "and question; "]  # fmt: skip
    else:
        as_trials = ["if each is a trial: ", columns, "; "]
    return [*as_systems, *as_trials, "or "]


def _as_objects(sample: Sample, marked: list[Any]) -> list[Any]:
    """Return what to propose if several objects of a row have a field of marks each."""
    parents: dict[str, list[str]] = {}  # by a field of marks, the objects that have it
    for name in marked:
        parent, _, field = str(name).rpartition(".")
        if parent in sample.names:
            parents.setdefault(field, []).append(parent)
    for field, objects in parents.items():
        if len(objects) > 1:
            return ["; or, if each object is a system: ", Argument("wide", True),
                    Argument("columns", {"outcome": field})]  # fmt: skip
    return []


def _instead_of_outcome(
    sample: Sample, roles: Mapping[str, Any], marked: list[Any], taken: Labels
) -> tuple[str, dict[str, Any]]:
    """Return what a table without a usual outcome column may hold, and columns to propose."""
    counts = _counts_of_systems(sample, taken)
    if not counts and not marked and not _has_several_rows_each(sample, roles):
        counts = _likely_counts(sample, taken)
    if counts:
        guessed = [name for own in counts.values() if own is not ...
                   for name in (own if isinstance(own, list) else [own])]  # fmt: skip
        hints = f"Counts or rates may be in {shown(guessed)[1:-1]}. "
        return hints + "Trials may be one number for all questions. " * (
            counts.get("trials") is ...), counts  # fmt: skip
    if marked:
        return "", {"outcome": _likely_outcome(sample, marked, roles.keys())}
    free = [name for name in sample.names if name not in taken]
    predictions = [name for name in free if normalized_name(name) in _PREDICTION_NAMES]
    references = [name for name in free if normalized_name(name) in REFERENCE_NAMES]
    if not predictions and len(references) == 2:  # of which "answer" is what was answered
        predictions = [name for name in references if normalized_name(name) == "answer"]
        references = [name for name in references if name not in predictions]
    if len(predictions) == len(references) == 1:
        hints = f"A trial is right where {predictions[0]!r} equals {references[0]!r}. "
        return hints, {"answer": predictions[0], "reference": references[0]}
    likely = [] if roles.get("question", ...) is ... else _likely_scores(sample, roles, free)
    if len(likely) != 1:
        return "", {"outcome": ...}
    return f"Scores may be in {likely[0]!r}. ", {"outcome": likely[0]}


def _has_several_rows_each(sample: Sample, roles: Mapping[str, Any]) -> bool:
    """Return whether rows are single trials: numbered, or several of a question of a system."""
    if "trial" in roles or roles.get("question", ...) is ...:
        return "trial" in roles
    return not sample.tell_apart(columns_of(roles, "system", "question"))


def _likely_scores(sample: Sample, roles: Mapping[str, Any], free: Labels) -> list[Any]:
    """Return the columns that may be scores: numbers or few words that differ within a question.

    A column with each of its values in as many rows numbers trials or names conditions. Other
    measurements, such as times, are taken only if there is nothing else.
    """
    question = columns_of(roles, "question")
    questions = len(set(sample.rows(question)))
    differing = [
        name
        for name in free
        if normalized_name(name) not in (*PROMPT_NAMES, *REFERENCE_NAMES)
        and 1 < len(sample.distinct(name))
        and sample.distinct(name)[0][0] not in "[{"
        and (_are_numbers(sample, name) or len(sample.distinct(name)) <= 8)
        and (questions == len(sample) or len(set(sample.rows([*question, name]))) > questions)
        and not _is_balanced(sample, name)
    ]
    others = [
        name
        for name in differing
        if not (_MEASUREMENT_NAME.search(normalized_name(name)) or is_better_lower(name))
    ]
    return others or differing


def _are_numbers(sample: Sample, name: Any) -> bool:
    """Return whether a column holds numbers or percentages alone."""
    return None not in map(share_of, sample.distinct(name))


def _is_balanced(sample: Sample, name: Any) -> bool:
    """Return whether several values of a column are in as many rows each, more than one."""
    rows = Counter(sample.cells[name]).values()
    return min(rows) == max(rows) > 1


def _likely_systems(sample: Sample, roles: Mapping[str, Any], taken: Labels) -> list[Any]:
    """Return the columns of few words that may be systems: each is in as many rows of a question.

    Nothing is returned where the question is not known, or the system is.
    """
    if "system" in roles or roles.get("question", ...) is ...:
        return []
    used = [*taken, *columns_of(roles, *roles)]
    question = columns_of(roles, "question")
    likely = []
    for name in sample.names:
        values = sample.distinct(name)
        few = 1 < len(values) <= _MAX_CONDITIONS and values[0][0] not in "[{"
        if name in used or not few or None not in map(number_of, values):
            continue
        rows = Counter(sample.rows([*question, name]))
        questions = len({cell[:-1] for cell in rows})
        if len(rows) == questions * len(values) and len({*rows.values()}) == 1 < questions:
            likely.append(name)
    return likely


def _with_scores(sample: Sample, proposed: Mapping[str, Any], marked: Labels) -> list[Any]:
    """Return the arguments for proposed columns, with scores where outcomes are no marks."""
    name = proposed.get("outcome")
    texts = sample.distinct(name) if isinstance(name, str) else []
    few = 3  # columns of marks, which are proposed one by one
    if name is ... and 1 < len(marked) <= few:
        each = [Argument("columns", {**proposed, "outcome": mark}, "tally") for mark in marked]
        return [part for way in each for part in (", or ", way)][1:]
    if not texts or word_scores(texts) or sample.are_marks(name):
        return [Argument("columns", dict(proposed), "tally")]
    columns = Argument("columns", dict(proposed), "tally")
    if not _are_numbers(sample, name):
        return [columns, *ways_to_score([outcome_of(text) for text in texts], {})]
    lower = [Argument("better", "lower", "tally")] * is_better_lower(name)
    return [columns, Argument("scores", "numbers", "tally"), *lower]


def _likely_questions(sample: Sample, names: Labels, system: Labels, taken: Labels) -> list[Any]:
    """Return the columns that may be questions: by names of ids, else by their values.

    By values it is the column with the most values, if each is in as many rows.
    """
    repeated = [name for name in names if name not in taken
                and 1 < len(sample.distinct(name)) < len(sample)
                and not _is_one_to_one(sample, name, system)]  # fmt: skip
    ids = [name for name in repeated if re.search("_(id|name|key)$", normalized_name(name))]
    if ids or not repeated:
        return ids
    most = max(repeated, key=lambda name: len(sample.distinct(name)))
    return [most] if _is_balanced(sample, most) and len(sample.distinct(most)) > 4 else []


def _likely_outcome(sample: Sample, marked: list[str], known: Collection[str]) -> Any:
    """Return the one column of marks, or those of trials side by side, which end with numbers."""
    if len(marked) == 1:
        return marked[0]

    def stem(name: Any) -> str:
        return str(name).rstrip("0123456789")

    stems = {stem(name) for name in marked}
    if len(stems) != 1 or not {"system", "question"} <= {*known}:
        return ...
    return [name for name in sample.names if stem(name) in stems and sample.are_marks(name)]


def _counts_of_systems(sample: Sample, taken: Collection[Any]) -> dict[str, Any]:
    """Return columns of successes and of trials that differ by names of systems alone.

    Examples
    --------
    >>> names = ["a_correct", "a_samples", "b_correct", "b_samples"]
    >>> _counts_of_systems(Sample(names, {name: ["2", "3"] for name in names}), [])
    {'successes': ['a_correct', 'b_correct'], 'trials': ['a_samples', 'b_samples']}
    """
    by_role: list[dict[tuple[str, ...], Any]] = []
    for role in ("successes", "trials"):
        names = [name for name in sample.names
                 if name not in taken and _count_role(sample, name, 0.0) == role]  # fmt: skip
        words = [normalized_name(name).split("_") for name in names]
        shared = set(words[0]).intersection(*words) if words else set()
        by_role.append({tuple(word for word in own if word not in shared): name
                        for own, name in zip(words, names, strict=True)})  # fmt: skip
    successes, trials = by_role
    if len(successes) < 2 or successes.keys() != trials.keys():
        return {}
    if not any(_count_role(sample, name) for name in trials.values()):  # one trial of each question
        return {}
    return {"successes": [*successes.values()],
            "trials": [trials[system] for system in successes]}  # fmt: skip


def _count_role(sample: Sample, name: Any, least: float = 2.0) -> str:
    """Return which counts or rates a column may hold, or "", from its name and largest value."""
    texts, normalized = sample.distinct(name), normalized_name(name)
    numbers = [number for number in map(share_of, texts) if number is not None]
    if not numbers or len(numbers) < len(texts) or _MEASUREMENT_NAME.search(normalized):
        return ""
    if all(text.endswith("%") for text in texts):
        return "rate"
    if _RATE_NAME.search(normalized) and (_MARK_NAME.search(normalized) or "acc" in normalized):
        return "rate"
    if not all(map(float.is_integer, numbers)) or max(numbers) < least:
        return ""
    kinds = (role for role, pattern in _COUNT_NAMES.items() if re.search(pattern, normalized))
    return "trials" if normalized.endswith("total") else next(kinds, "")


def _likely_counts(sample: Sample, taken: Collection[Any]) -> dict[str, Any]:
    """Return the columns that may be counts or rates, by role, from their names and values."""
    usual = usual_columns("trials", sample.names, taken)
    likely = {"trials": usual[0]} if len(usual) == 1 else {}
    for name in sorted(sample.names, key=lambda name: len(str(name))):
        if name not in taken:
            likely.setdefault(_count_role(sample, name), name)
    likely.pop("", None)
    percentages = [name for name in sample.names if name not in taken
                   and all(text.endswith("%") for text in sample.distinct(name))]  # fmt: skip
    if len(percentages) > 1:  # of systems side by side
        return {"rate": percentages, "trials": likely.get("trials", ...)}
    if "rate" in likely:
        return {"rate": likely["rate"], "trials": likely.get("trials", ...)}
    if {"successes", "failures"} <= likely.keys():
        likely.pop("trials", None)
    return likely if "successes" in likely and len(likely) == 2 else {}


def columns_of_content(
    sample: Sample, roles: Mapping[str, Any], columns: Mapping[str, Any]
) -> list[Any]:
    """Return the columns of prompts and right answers: as named, else by their usual names.

    Where the question is a field of an object, fields of the same object count as well.

    Examples
    --------
    >>> columns_of_content(Sample(["id", "prompt", "answer"], {}), {"question": "id"}, {})
    ['prompt', 'answer']
    """
    questions = columns_of(roles, "question")
    if "content" in columns:
        return [columns["content"]] if columns["content"] not in questions else []
    taken = [name for role in roles for name in as_tuple(roles[role])]
    within = {name.rpartition(".")[0] for name in questions
              if isinstance(name, str) and "." in name and name not in sample.names}  # fmt: skip
    nested = [name for name in sample.cells if isinstance(name, str) and name not in sample.names
              and "." in name and name.rpartition(".")[0] in within]  # fmt: skip
    usual = (*PROMPT_NAMES, *REFERENCE_NAMES)
    return [
        name for name in (*sample.names, *nested) if _last_part(name) in usual and name not in taken
    ]


def is_right_answer(name: object) -> bool:
    """Return whether a column of content holds the right answer rather than the prompt."""
    return _last_part(name) in REFERENCE_NAMES


Doubt = tuple[str | Argument, ...]


def answers_in_content(
    sample: Sample, roles: Mapping[str, Any], content: Labels
) -> dict[Any, Doubt]:
    """Return columns "answer" that differ between trials of a question, with a doubt each.

    They hold what the systems answered, not the right answer.
    """
    if not sample.cells:
        return {}
    answers: dict[Any, Doubt] = {}
    key = columns_of(roles, "question")
    for name in content:
        if _last_part(name) == "answer" and len(set(sample.rows([*key, name]))) > len(
            set(sample.rows(key))
        ):
            answers[name] = (
                f"column {shown(name)} differs between the trials of a question, and is left out "
                "as what was answered; if it is the right answer, a question is not what it seems: "
                , Argument("columns", {"content": name}), " compares it.",
            )  # fmt: skip
    return answers


def doubts(
    sample: Sample, roles: Mapping[str, Any], unused: Labels, named: Mapping[str, Any]
) -> list[Doubt]:
    """Return warnings about roles that nobody named and that the values of the table contradict."""
    if not sample.cells or "question" not in roles:
        return []
    all_doubts = [_condition_doubt(sample, roles, name) for name in unused if name in sample.cells]
    if "trial" not in named:
        all_doubts.append(_trial_label_doubt(sample, roles))
    all_doubts.append(_row_number_doubt(sample, roles, unused))
    all_doubts.append(_other_marks_doubt(sample, roles, unused))
    all_doubts.append(_answer_doubt(sample, roles))
    max_doubts = 3  # on one data card
    return list(filter(None, all_doubts))[:max_doubts]


def is_condition(name: object) -> bool:
    """Return whether the name of a column is a usual name of experimental conditions."""
    return re.sub("_(name|id|label|type)$", "", _last_part(name)) in CONDITIONS or (
        _last_part(name) in CONDITIONS
    )


def with_systems(roles: Mapping[str, Any], *names: Any) -> Argument:
    """Return the argument that makes columns the system, together with the present one if any."""
    together = [*columns_of(roles, "system"), *names]
    return Argument("columns", {"system": together if len(together) > 1 else together[0]})


def _condition_doubt(sample: Sample, roles: Mapping[str, Any], name: Any) -> Doubt:
    """Return a doubt if an unused column may hold the system: an experimental condition.

    A column of conditions has few values, each of which occurs in at least half of the questions
    that have several rows, and differs between the rows of a question; answers, times and costs do
    not. A column with a usual name of conditions need not differ between all rows, nor one of texts
    each of which is in as many rows of every question, where no column is the system.
    """
    values, has_usual_name = sample.distinct(name), is_condition(name)
    if not 1 < len(values) <= _MAX_CONDITIONS:
        return ()
    if (
        "trial" in roles
        and not has_usual_name
        and not _numbered_on_across_values(sample, roles, name)
    ):
        return ()
    cells: dict[tuple[str, ...], list[str]] = {}
    for cell, value in zip(sample.rows(columns_of(roles, "system", "question")),
                           sample.cells[name], strict=True):  # fmt: skip
        cells.setdefault(cell, []).append(value)
    listed = f"column {shown(name)} ({shown(values, 60)[1:-1]})"
    repeated = [values_of_cell for values_of_cell in cells.values() if len(values_of_cell) > 1]
    if all(len(set(values_of_cell)) == 1 for values_of_cell in cells.values()):
        if not has_usual_name or "system" in roles:
            return ()
        return (f"every question has one value of {listed}; is it the system? Then name it: ",
                with_systems(roles, name), ".")  # fmt: skip
    differ_within_cells = all(
        len(set(values_of_cell)) == len(values_of_cell) for values_of_cell in repeated
    )
    frequency = Counter(value for values_of_cell in repeated for value in set(values_of_cell))
    are_numbers = None not in map(number_of, values)
    min_frequency = len(repeated) / (1 if are_numbers else 2)
    if min(frequency.values()) < (min_frequency if has_usual_name else max(min_frequency, 2)):
        return ()
    balanced = "system" not in roles and not are_numbers and _are_balanced(repeated, len(values))
    if not (has_usual_name or differ_within_cells or balanced or "trial" in roles):
        return ()
    if are_numbers and not has_usual_name and _are_consecutive(values):
        return ()
    if are_numbers and _is_one_to_one(sample, name, columns_of(roles, "trial")):
        return ()
    return (f"the rows of a question differ in {listed}, and are read as trials; is it the system, "
            "or the trial? Then name it: ", with_systems(roles, name),
            *_as_suites(roles, name), ".")  # fmt: skip


def _as_suites(roles: Mapping[str, Any], name: Any) -> Doubt:
    """Return what to do if a column beside that of the systems says which suite an id is of."""
    if "system" not in roles:
        return ()
    together = [name, *columns_of(roles, "question")]
    return "; or, if ids are of several suites: ", Argument("columns", {"question": together})


def _are_balanced(cells: Collection[Collection[str]], number: int) -> bool:
    """Return whether all cells have so many values, each in as many rows as the others."""
    counts = [Counter(values_of_cell).values() for values_of_cell in cells]
    return all(len(rows) == number and min(rows) == max(rows) for rows in counts)


def _are_consecutive(values: Collection[str]) -> bool:
    """Return whether texts are consecutive whole numbers from 0 or 1, as numbers of trials are."""
    numbers = sorted(float(value) for value in values)
    return numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])


def _numbered_on_across_values(sample: Sample, roles: Mapping[str, Any], name: Any) -> bool:
    """Return whether trials are numbered consecutively across the values of a text column.

    Then every trial number belongs to one value, and every value has several numbers.
    """
    pairs = set(sample.rows([name, *columns_of(roles, "trial")]))
    values_per_number, numbers_per_value = (
        Counter(pair[1:] for pair in pairs),
        Counter(pair[0] for pair in pairs),
    )
    has_text = None in map(number_of, numbers_per_value)
    return has_text and max(values_per_number.values()) == 1 < min(numbers_per_value.values())


def _is_one_to_one(sample: Sample, name: Any, trial: Labels) -> bool:
    """Return whether values of a column and labels of trials correspond one to one."""
    if not trial:
        return False
    pairs = set(sample.rows([name, *trial]))
    return len(pairs) == len(sample.distinct(name)) == len({pair[1:] for pair in pairs})


def _trial_label_doubt(sample: Sample, roles: Mapping[str, Any]) -> Doubt:
    """Return a doubt if trials are labelled by words, as conditions are, not by numbers."""
    name = roles.get("trial")
    labels = sample.distinct(name) if not isinstance(name, tuple) else []
    words = {tuple(re.findall("[A-Za-z]{3,}", label)) for label in labels} - {()}
    ordinals = {(word,) for word in "first second third fourth fifth one two three four".split()}
    questions = len(set(sample.rows(columns_of(roles, "question"))))
    questions_by_label = Counter(
        label for label, *_ in set(sample.rows([name, *columns_of(roles, "question")]))
    ) if labels else Counter()  # fmt: skip
    label_shared = questions > 1 and all(
        questions_by_label[label] * 2 >= questions for label in labels
    )
    if len(words) < 2 or len(labels) > _MAX_CONDITIONS or words <= ordinals or not label_shared:
        return ()
    return (f"the trials of all questions are called {shown(labels, 60)[1:-1]} in column "
            f"{shown(name)}; are they conditions? Then name them: ", with_systems(roles, name), ".",
            )  # fmt: skip


def _row_number_doubt(sample: Sample, roles: Mapping[str, Any], unused: Labels) -> Doubt:
    """Return a doubt if the question is a row number and another column of questions repeats."""
    if "trials" in roles or "rate" in roles or isinstance(roles["question"], tuple):
        return ()
    usual = {name for line in ROLES["question"][:2] for name in line.split()} - {*PROMPT_NAMES}
    key = columns_of(roles, "system", "trial")
    numbered = any(len(sample.distinct(name)) > 1 for name in columns_of(roles, "trial"))
    for name in unused if sample.tell_apart([roles["question"]]) else ():
        repeats = Counter(sample.cells.get(name, ())).values()
        even = normalized_name(name) in usual and len(repeats) > 1 and min(repeats) == max(repeats)
        if max(repeats, default=1) > 1 and (even or (numbered and sample.tell_apart([*key, name]))):
            return (
                f"every row is a question of its own by column {shown(roles['question'])}, and "
                f"each value of {shown(name)} has {max(repeats)} rows; are they its trials? Then "
                "name it: ", Argument("columns", {"question": name}), ".",
            )  # fmt: skip
    return ()


def _other_marks_doubt(sample: Sample, roles: Mapping[str, Any], unused: Labels) -> Doubt:
    """Return a doubt if columns beside an outcome of an unusual name hold marks as well.

    They may be other systems where none is known, or other trials where names differ in a number.
    """
    outcome = roles.get("outcome")
    if isinstance(outcome, tuple) or not sample.are_marks(outcome):
        return ()
    if _last_part(outcome) in usual_names("outcome"):
        return ()
    stem = str(outcome).rstrip("0123456789")
    others = [name for name in unused if sample.are_marks(name) and len(sample.distinct(name)) > 1]
    same_stem = [name for name in others if str(name).rstrip("0123456789") == stem]
    together: list[Any] = [Argument("columns", {"outcome": [outcome, *(same_stem or others)]})]
    if same_stem and "trial" not in roles:
        kind = "trial"
    elif others and "system" not in roles:
        kind, together = "system", [Argument("wide", True), *together]
    else:
        return ()
    listed = shown(same_stem or others, 100)[1:-1]
    return (f"{listed} hold marks as well and are left out; is each of them a {kind}? Then name "
            f"them: ", *together, ".")  # fmt: skip


def _answer_doubt(sample: Sample, roles: Mapping[str, Any]) -> Doubt:
    """Return a doubt if the outcomes are words that a column of right answers holds as well."""
    outcome = roles.get("outcome")
    texts = {*sample.distinct(outcome)}  # none of several columns
    for name in sample.names if None in map(number_of, texts) else ():
        if normalized_name(name) in REFERENCE_NAMES and texts & {*sample.distinct(name)}:
            return (f"{shown(outcome)} holds what {shown(name)} holds, which may be the right "
                    "answer; is a trial right where both are equal? Then name them: ",
                    Argument("columns", {"answer": outcome, "reference": name}), ".",
                    )  # fmt: skip
    return ()


def ways_to_tell_trials_apart(
    sample: Sample, roles: Mapping[str, Any], unused: Labels, of_file: bool
) -> tuple[Doubt, ...]:
    """Return remedies where several rows have one system, question and trial.

    Conditions may be the system, a second column may number trials as well, and of a file the rows
    of one condition can be read alone.
    """
    key = columns_of(roles, *LABELS)
    if not sample.cells or "trial" not in roles or sample.tell_apart(key):
        return ()
    # Every value of a column without a usual name of conditions must be in several rows.
    candidates = [name for name in unused if 1 < len(sample.distinct(name)) <= _MAX_CONDITIONS and (
        is_condition(name) or min(Counter(sample.cells[name]).values()) > 1)]  # fmt: skip
    conditions = tuple(name for name in candidates if is_condition(name))
    few = candidates[:8]
    by_one_or_two = [(name,) for name in few] + list(combinations(few, 2))
    together = next(
        (
            names
            for names in by_one_or_two
            if (not conditions or {*names} & {*conditions}) and sample.tell_apart([*key, *names])
        ),
        (),
    )
    names = together or conditions
    ways: list[Doubt] = []
    if names:
        verb = "is the system" if len(names) == 1 else "are the system"
        listed = " and ".join(map(shown, names))
        ways += [(f"; or, if {listed} {verb}, say so: ", with_systems(roles, *names))]
    if len(together) > 1 and of_file:
        first = sample.distinct(together[0])[0]
        ways += [("; or read the rows of one alone: ", Argument("where", {together[0]: first}))]
    if len(together) == 1 and not is_condition(together[0]):
        trial = [*columns_of(roles, "trial"), *together]
        ways += [(f"; or, if {shown(together[0])} numbers trials too: ",
                  Argument("columns", {"trial": trial}))]  # fmt: skip
    if not together and of_file:
        ways += [("; or, if every row is a trial of its own: ",
                  Argument("ignore", columns_of(roles, "trial")))]  # fmt: skip
    return tuple(ways)
