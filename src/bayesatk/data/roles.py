"""Roles of columns of a table (system, question, trial, outcome, ...), and their usual names.

A `Sample` holds the first rows of a table: the names of its columns, and their cells as short
texts, by which `bayesatk.data.role_assignment` finds the columns.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from bayesatk.data.validation import (
    Labels,
    is_absent,
    number_of,
    scores_of_words,
    shown,
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
        "ng_task_index instance utterance utterance_id qid q (key)",
        "prompt input user_input instruction inputs query",
    ),
    "trial": (
        "trial epoch run attempt rep repeat repetition repetition_number rollout seed episode",
        "trial_id trial_index trial_idx attempt_id attempt_index attempt_idx run_index run_idx "
        "repeat_index repeat_idx rollout_index rollout_idx ng_rollout_index episode_id "
        "episode_index episode_idx",
        "sample sample_index sample_idx generation iteration",  # where they number the trials
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
# Names of columns that each hold one trial of the question of the row.
_TRIAL_COLUMN = re.compile("(trial|run|attempt|repeat|rollout|sample|seed|epoch|try|pass)_?[0-9]+")
_TRIAL_OF_SYSTEM = re.compile(
    r"(.*[^\W_])[\W_]+(?:trial|run|attempt|repeat|rollout|sample|seed|epoch|try)[\W_]*[0-9]+", re.I
)
_NUMBERED = re.compile(r"(.*[^\W_])[\W_]+[0-9]+")
# Found in names of columns of marks, and in those of shares or percentages of successes.
MARK_NAME = re.compile("score|pass|correct|success|solve|verified|(^|_)(win|won|safe)(_|$)")
# Found in names of columns of marks that people gave.
_TRUTH_NAME = re.compile("human|expert|manual|gold|truth|annotat|reviewer|adjudicat|(^|_)true(_|$)")
RATE_NAME = re.compile(
    "(^|_)((win|pass|success|solve)?rates?|percent(age)?|share|accuracy|acc|pct)(_|$)|pass@"
)
PASS_AT_K = re.compile(r"pass@([0-9]+)")
# Found in names of columns of scores that are better when lower.
_LOWER_IS_BETTER = re.compile(
    "(^|_)(seconds?|secs?|ms|latency|latencies|time|runtime|duration|costs?|prices?|usd|tokens?"
    "|errors?|loss|losses|steps?|wer|cer|perplexity|ppl|nll|rmse|mae|mse|brier|toxicity|distance"
    ")(_|$)"
)
# Found in names of columns of marks, or of counts, that say what went wrong.
_FAILURE = re.compile(
    "(^|_)(fail(s|ed|ure|ures)?|errors?|errored|wrong|incorrect|violat(es|ed|ion|ions)"
    "|hallucinat(es|ed|ion|ions)|time_?out|timed_out|crash(es|ed)?|unsolved|unresolved"
    "|not_(solved|passed|correct|resolved)|unsafe|toxic|jailbroken|leaked)(_|$)"
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
MAX_CONDITIONS = 20  # different values of a column of conditions
MAX_SCANNED_ROWS = 20_000  # first rows of a table, by which the roles of its columns are judged


def normalized_name(name: object) -> str:
    """Return a column name in lower case with underscores; "" if it is no text.

    Examples
    --------
    >>> [normalized_name(name) for name in ("Sample ID", "isCorrect", "success-count", "Run #", 3)]
    ['sample_id', 'is_correct', 'success_count', 'run', '']
    """
    if not isinstance(name, str):
        return ""
    words = re.sub("(?<=[a-z])(?=[A-Z])", "_", name.rstrip(" ?#:"))
    return re.sub(r"[\s_-]+", "_", words).strip("_").lower()


def last_part(name: object) -> str:
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
    path : str
        File that has these rows as its lines, if there is one.
    """

    names: list[Any]
    cells: Mapping[Any, list[str]]
    whole: bool = True
    fields: tuple[str, ...] = ()
    path: str = ""

    @classmethod
    def of(
        cls,
        records: Iterable[object],
        where: Mapping[str, object] | None = None,
        known: Labels = (),
        more: Callable[[], bool] = lambda: True,
    ) -> "Sample":
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
        dense = {
            path: [texts.get(row, "") for row in range(length)] for path, texts in cells.items()
        }
        return cls(list(names), {name: [""] * length for name in names} | dense, whole)

    def __len__(self) -> int:
        return len(next(iter(self.cells.values()), ()))

    def only(self, name: Any, keep: Callable[[str], bool]) -> "Sample":
        """Return the rows whose cell in a column is kept."""
        kept = [row for row, text in enumerate(self.cells[name]) if keep(text)]
        cells = {other: [texts[row] for row in kept] for other, texts in self.cells.items()}
        return replace(self, cells=cells)

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

    def leaves(self) -> list[Any]:
        """Return the columns and fields that hold values other than objects."""
        first_texts = {name: self.distinct(name)[:1] for name in self.cells}
        return [
            name
            for name, texts in first_texts.items()
            if texts and not texts[0].startswith(("{", "[{"))
        ]

    def truths(self, marked: Labels) -> list[Any]:
        """Return which of several columns of marks may be true where others are a judge's.

        They have a name of what people said, or else are known of less than half the trials.

        Examples
        --------
        >>> marks = {"auto_grade": ["0", "1"], "expert": ["1", "0"]}
        >>> Sample([*marks], marks).truths([*marks])
        ['expert']
        """
        named = [name for name in marked if is_truth_name(name)]
        found = named or [name for name in marked if 2 * self.cells[name].count("") > len(self)]
        return found if len(found) < len(marked) else []

    def is_one_to_one(self, name: Any, others: Labels) -> bool:
        """Return whether values of a column and those of other columns correspond one to one."""
        if not others:
            return False
        pairs = set(self.rows([name, *others]))
        return len(pairs) == len(self.distinct(name)) == len({pair[1:] for pair in pairs})

    def marked(self) -> list[str]:
        """Return the columns and fields that hold marks of 0 and 1, or words for them.

        If some have usual names of outcomes, these alone; else those whose names contain a word
        for success; else all that hold both 0 and 1.

        Examples
        --------
        >>> Sample.of([{"id": 7, "ex": 1, "kind": "a", "n": 1}, {"ex": 0, "n": 3}]).marked()
        ['ex']
        """
        marks = [
            name
            for name, texts in zip(self.cells, map(self.distinct, self.cells), strict=True)
            if (self.are_marks(name, in_lists=True) or _are_words_of_marks(texts))
            and (not RATE_NAME.search(last_part(name)) or {*texts} == {"0", "1"})
        ]
        at_k = [name for name in self.cells if PASS_AT_K.search(last_part(name))]
        if not {*at_k} <= {*marks}:  # of shares, those at a larger k are shares as well
            marks = [name for name in marks if name not in at_k]
        usual = usual_names("outcome")
        unlabelled = [name for name in marks if last_part(name) not in usual_names(*LABELS)]
        with_both_marks = [
            name
            for name in unlabelled
            if len(self.distinct(name)) > 1
            and not any(
                len(self.distinct(key)) > 2 and self.is_crossed(name, [key])
                for key in self.names
                if key != name
            )  # as two trials are numbered
        ]
        named_like_marks = [name for name in unlabelled if MARK_NAME.search(last_part(name))]
        usual_outcomes = [
            name for name in marks if last_part(name) in usual and "[]" not in str(name)
        ]
        within_lists = [
            name for name in named_like_marks if name in with_both_marks and "[]" in str(name)
        ]
        truths = self.truths(with_both_marks) if named_like_marks else []
        named_like_marks += [name for name in truths if name not in named_like_marks]
        return usual_outcomes or within_lists or named_like_marks or with_both_marks

    def is_crossed(self, name: Any, key: Labels) -> bool:
        """Return whether each value of a column is in as many rows of each value of a key.

        So are systems, and numbers of trials; without a key, each is in as many rows of the table.
        """
        rows = Counter(self.rows([*key, name]))
        keys = {row[:-1] for row in rows}
        even = len({*rows.values()}) == 1 and len(rows) == len(keys) * len(self.distinct(name))
        return even and (len(keys) > 1 if key else min(rows.values()) > 1)

    def are_marks(self, name: Any, in_lists: bool = False) -> bool:
        """Return whether a column holds only 0 and 1, or true and false; if asked, in lists."""
        texts = self.distinct(name)
        if in_lists and all(text[0] == "[" for text in texts):  # of which the end may be cut
            texts = re.findall(r"[^\s,[\]]+(?=[,\]])", "".join(texts))
        return bool(texts) and {text.lower() for text in texts} <= BINARY_MARK_TEXTS


def _are_words_of_marks(texts: Collection[str]) -> bool:
    """Return whether texts are two words for marks, or few words with some for right and wrong."""
    few = 8
    with_words = len(texts) <= few and None in map(number_of, texts)
    return bool(word_scores(texts) or (with_words and scores_of_words(texts)))


def row_matches(value_of: Callable[[str], object], where: Mapping[str, object]) -> bool:
    """Return whether a row has the wanted values, or one of several, in all named columns.

    A value that begins with an exclamation mark is one that the row must not have.

    Examples
    --------
    >>> rows = {"task": "x"}, {"task": "TOTAL"}
    >>> [row_matches(row.get, {"task": "!TOTAL"}) for row in rows]
    [True, False]
    """
    for name, wanted in where.items():
        several = wanted if isinstance(wanted, list | tuple | set) else [wanted]
        texts, text = {str(value) for value in several}, str(value_of(name))
        excluded = all(value.startswith("!") for value in texts)
        if (f"!{text}" in texts) if excluded else (text not in texts):
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


def is_truth_name(name: object) -> bool:
    """Whether a column is called as marks that people gave."""
    return bool(_TRUTH_NAME.search(last_part(name)))


def is_outcome_name(name: object) -> bool:
    """Whether a column is called as marks or rates of success are."""
    last = last_part(name)
    return last in usual_names("outcome") or bool(MARK_NAME.search(last) or RATE_NAME.search(last))


def is_better_lower(name: object) -> bool:
    """Whether a column is called as a score that is better when lower.

    Examples
    --------
    >>> [is_better_lower(name) for name in ("latency_s", "wer", "score", "lossless")]
    [True, True, False, False]
    """
    return bool(_LOWER_IS_BETTER.search(normalized_name(name)))


def is_failure(name: object) -> bool:
    """Whether a column is called as a mark of what went wrong.

    Examples
    --------
    >>> [is_failure(name) for name in ("failed", "not_solved", "no_errors", "passed")]
    [True, True, False, False]
    """
    normalized = normalized_name(name)
    negated = "(^|_)(not?|non)_(?!solved|passed|correct|resolved)"
    return bool(_FAILURE.search(normalized)) and not re.search(negated, normalized)


def scores_of_failures(name: object, marks: Iterable[object]) -> dict[Any, float]:
    """Return the scores of marks 1 and 0, or yes and no, in a column called as what went wrong.

    Examples
    --------
    >>> scores_of_failures("failed", [0, 1]), scores_of_failures("passed", [0, 1])
    ({1: 0.0, 0: 1.0}, {})
    """
    scores = {
        mark: 1.0 - (str(mark).lower() in {"1", "true", "yes", "y"})
        for mark in marks
        if str(mark).lower() in {"0", "1", "true", "false", "yes", "no", "y", "n"}
    }
    wrong_first = sorted(scores.items(), key=lambda item: item[1])
    return dict(wrong_first) if is_failure(name) else {}


def trial_columns(names: Labels) -> list[Any]:
    """Return the columns whose names are those of single trials, such as trial_1 or run 2.

    Examples
    --------
    >>> trial_columns(["task", "trial_1", "Run 2", "trials"])
    ['trial_1', 'Run 2']
    """
    return [name for name in names if _TRIAL_COLUMN.fullmatch(normalized_name(name))]


def systems_of_columns(names: Iterable[object]) -> tuple[Any, ...]:
    """Return the systems of columns: their names without the words that all end with.

    Examples
    --------
    >>> systems_of_columns(["alpha_n_correct", "beta-2_n_correct"])
    ('alpha', 'beta-2')
    """
    words = [re.split(r"([\W_]+)", str(name)) for name in names]
    shared = 0
    while len({tuple(own[len(own) - shared - 1 :]) for own in words}) == 1:
        shared += 1
    systems = ["".join(own[: len(own) - shared]) for own in words]
    return tuple(systems) if shared and all(systems) else tuple(names)


def systems_of_trials(names: Labels, numbered: bool = False) -> tuple[str, ...]:
    """Return the systems of columns that are each a trial of one of several; () if they are not.

    If `numbered`, columns are trials also by a number alone, as many of each system.

    Examples
    --------
    >>> systems_of_trials(["gpt-4o_run1", "gpt-4o_run2", "Claude Run 1"])
    ('gpt-4o', 'gpt-4o', 'Claude')
    >>> systems_of_trials(["run1", "run2"]), systems_of_trials(["a_1", "a_2", "b_1", "b_2"])
    ((), ())
    >>> systems_of_trials(["a_1", "a_2", "b_1", "b_2"], numbered=True)
    ('a', 'a', 'b', 'b')
    """
    pattern = _NUMBERED if numbered else _TRIAL_OF_SYSTEM
    found = [pattern.fullmatch(str(name)) for name in names]
    systems = tuple(match[1] for match in found if match)
    several = 1 < len({*systems}) < len(systems) == len(found)
    even = not numbered or len({*Counter(systems).values()}) == 1
    return systems if several and even and not any(map(is_outcome_name, systems)) else ()


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


def as_tuple(name: Any) -> tuple[Any, ...]:
    """Return the column or columns of a role as a tuple."""
    return name if isinstance(name, tuple) else (name,)


def columns_of(roles: Mapping[str, Any], *wanted: str) -> list[Any]:
    """Return the columns of some roles in one list."""
    return [name for role in wanted if role in roles for name in as_tuple(roles[role])]
