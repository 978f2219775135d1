"""Which column of a table has which role: by its name, and by what its values do.

The first rows of a table are a `Sample`: names of columns, and their cells as short texts. From it
come the columns that matter, one error that names all that is not clear, and doubts: conditions
that would be pooled, a row number taken for a question, names of arms taken for numbers of trials.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

from bayesatk._tools.messages import Argument
from bayesatk.data.validation import Labels, OutcomeError, is_absent, number_of, shown

GROUP = "group"
WEIGHT = "weight"
COST = "cost"
TRUTH = "truth"
BY_TRIAL = (COST, TRUTH)  # roles of numbers of trials beside their outcomes
COVARIATE = "covariate "  # role of a column that is one, before its name
ONE = "(one)"  # in place of a column: the same in all rows
KEY = "(key)"  # the key under which a JSON document has a record
FOLDER, FILE = "(folder)", "(file)"  # names of where a row stands
MADE = (ONE, FOLDER, FILE)

# Names by meaning, however they are written (`meaning`): those of a line are preferred to those of
# the next, and are ambiguous among themselves.
ROLES: dict[str, tuple[str, ...]] = {
    "system": ("system model agent solver policy", "model_name model_id agent_name"),
    "question": (
        "question question_id task_id task item item_id problem problem_id sample_id doc_id "
        "problem_idx instance_id example_id prompt_id query_id id",
        "case case_id test_id test_case scenario scenario_id task_name test_name name task_index "
        "ng_task_index (key)",
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
        "resolved is_resolved solved is_solved is_success is_passed pass score_binarized win won",
    ),
    # Of a row that counts successes.
    "trials": (
        "trials n num_samples total_attempts total_trials num_trials n_trials pass_rate_total",
    ),
    "successes": (
        "successes c num_correct success_count successful_trials num_successes n_successes "
        "n_correct pass_rate_passed",
    ),
    "failures": ("failures num_failures n_failures failure_count num_failed n_failed",),
    "rate": (),  # share or percentage of successes
    "answer": (),  # never guessed: a column "answer" may hold the right one
    "reference": (),
    "content": (),  # what was asked, or what is right: must agree wherever the question does
    COST: (),  # of the trial; never guessed, since it has a unit
    TRUTH: (),  # what is true of a trial that a judge marked; never guessed
    GROUP: (),  # of the question; never guessed: a group may be one of trials, or of systems
    WEIGHT: (),  # likewise
}
COUNTS = ("trials", "successes", "failures")
LABELS = ("system", "question", "trial")  # roles that several columns may have together
# What people call the conditions under which a model is tried: each may be a system.
CONDITIONS = {
    *"agent_type approach arm cond condition config configuration experiment framework".split(),
    *"harness judge method mode pipeline policy profile prompt_version provider regime".split(),
    *"scaffold setting strategy technique treatment variant".split(),
}
# Columns of the trials of one question, one beside the other.
_TRIAL_COLUMN = re.compile("(trial|run|attempt|repeat|rollout|sample|seed|epoch|try|pass)_?[0-9]+")
# In names of columns of marks, and of shares or percentages of successes.
_MARKED = re.compile("score|pass|correct|success|solve|verified|(^|_)(win|won|safe)(_|$)")
_SHARE = re.compile(
    "(^|_)((win|pass|success|solve)?rates?|percent(age)?|share|accuracy|acc|pct)(_|$)|pass@"
)
# In names of whole numbers of a row that count trials, and those that do not.
_COUNTED = {"failures": "fail|wrong|unsolved", "successes": "pass|succ|solved|correct",
            "trials": "trial|run|attempt|episode|rollout|sample|total|^n_|^num_"}  # fmt: skip
_MEASURED = re.compile(
    "(^|_)(len|length|time|runtime|latency|duration|sec|seconds|ms|s|min|max|mean|std|best|steps?"
    "|size|tokens?)(_|$)"
)
BINARY_TEXTS = {"0", "1", "0.0", "1.0", "true", "false"}  # marks of right and wrong
ASKED = (
    "prompt", "question", "question_text", "input", "problem", "instruction", "user_input",
    "inputs", "query",
)  # fmt: skip
RIGHT = (
    "answer", "label", "target", "gold", "gold_answer", "ground_truth", "expected",
    "expected_answer", "expected_output", "reference", "reference_answer", "correct_answer",
)  # fmt: skip
_ANSWERED = "answer"  # may also be what a system answered
_FEW = 20  # values of a column that may name conditions
SCANNED = 20_000  # rows of a table, at most, by which its columns are judged


def meaning(name: object) -> str:
    """Return the name of a column as names are compared; nothing if it is no text.

    Examples
    --------
    >>> [meaning(name) for name in ("Sample ID", "isCorrect", "success-count", 3)]
    ['sample_id', 'is_correct', 'success_count', '']
    """
    if not isinstance(name, str):
        return ""
    words = re.sub("(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"[\s_-]+", "_", words).strip("_").lower()


def _last(name: object) -> str:
    """Return the meaning of the last part of a dotted path."""
    return meaning(name.rpartition(".")[2] if isinstance(name, str) else name)


@dataclass(frozen=True)
class Sample:
    """The first rows of a table: its columns, and cells as short texts, by name or dotted path.

    A text is empty where nothing is there. `whole` says whether these are all rows; `fields` are
    there too, and are not scanned.
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
        """Scan records, of which some columns may be known before, as long as more are wanted.

        Examples
        --------
        >>> sample = Sample.of([{"id": 7}, {"id": 8, "test": {"passed": True}}])
        >>> sample.names, sample.cells["test.passed"]
        (['id', 'test'], ['', 'True'])
        """
        names, cells = dict.fromkeys(known), dict[Any, dict[int, str]]()
        length, whole, iterator = 0, True, iter(records)
        for record in islice(iterator, SCANNED):
            if not isinstance(record, Mapping):
                continue
            names |= dict.fromkeys(record)
            if where and not is_meant(record.get, where):
                continue
            for path, text in _texts(record, 3):
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
        """Return the cells of some columns, those of a role together, by row."""
        columns = [self.cells[name] for name in names if name in self.cells]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self)

    def tell_apart(self, names: Collection[Any]) -> bool:
        """Whether no two rows agree in these columns."""
        known = [name for name in names if name not in MADE]
        rows = self.rows(known)
        return all(name in self.cells for name in known) and len(set(rows)) == len(rows) > 0

    def distinct(self, name: Any) -> list[str]:
        """Return the different texts of a column, in order."""
        return [text for text in dict.fromkeys(self.cells.get(name, ())) if text]

    def marked(self) -> list[str]:
        """Return the columns and fields of marks of 0 and 1: those with names of marks, if any.

        Examples
        --------
        >>> Sample.of([{"id": 7, "ex": 1, "kind": "a", "n": 1}, {"ex": 0, "n": 3}]).marked()
        ['ex']
        """
        marks = [name for name in self.cells
                 if self.are_marks(name) and not _SHARE.search(_last(name))]  # fmt: skip
        usual = usual_names("outcome")
        others = [name for name in marks if _last(name) not in usual_names(*LABELS)]
        both = [name for name in others if len(self.distinct(name)) > 1]
        alike = [name for name in others if _MARKED.search(_last(name))]
        named = [name for name in marks if _last(name) in usual and "[]" not in str(name)]
        of_trials = [name for name in alike if name in both and "[]" in str(name)]
        return named or of_trials or alike or both

    def are_marks(self, name: Any) -> bool:
        """Whether a column holds 0 and 1, or true and false, alone."""
        found = self.distinct(name)
        return bool(found) and {text.lower() for text in found} <= BINARY_TEXTS


def is_meant(value_of: Callable[[str], object], where: Mapping[str, object]) -> bool:
    """Whether a row is one of those that are wanted, by its values of some columns."""
    for name, wanted in where.items():
        several = wanted if isinstance(wanted, list | tuple | set) else [wanted]
        if str(value_of(name)) not in {str(value) for value in several}:
            return False
    return True


def short_text(value: object) -> str:
    """Return a cell as a short text, another one for another value; nothing where it is absent."""
    if is_absent(value):
        return ""
    text = value if isinstance(value, str) else shown(value, 10_000)
    longest = 80
    return text if len(text) <= longest else f"{text[:longest]}#{hash(text)}"


def _texts(value: Mapping[Any, object], depth: int) -> Iterator[tuple[Any, str]]:
    """Yield path and text of the fields of an object, and of the first object of a list."""
    for name, inner in value.items():
        yield name, short_text(inner)
        within = ""
        if isinstance(inner, list) and inner:
            within, inner = "[]", inner[0]
        if isinstance(inner, dict) and depth > 1:
            within = f"{name}{within}."
            yield from ((within + path, text) for path, text in _texts(inner, depth - 1))


def usual_names(*roles: str) -> set[str]:
    """Return the usual names of columns with some roles; with any, if none is named."""
    return {name for role in roles or ROLES for line in ROLES[role] for name in line.split()}


def usual_columns(role: str, names: Labels, taken: Collection[Any] = ()) -> list[Any]:
    """Return the columns with a usual name for a role: of its first line that names any."""
    free = [name for name in names if name not in taken]
    by_line = ([name for name in free if meaning(name) in line.split()] for line in ROLES[role])
    return next(filter(None, by_line), [])


def trial_columns(names: Labels) -> list[Any]:
    """Return the columns that are named as the trials of a question: trial_1, run 2.

    Examples
    --------
    >>> trial_columns(["task", "trial_1", "Run 2", "trials"])
    ['trial_1', 'Run 2']
    """
    return [name for name in names if _TRIAL_COLUMN.fullmatch(meaning(name))]


def columns_named(name: object, names: Collection[Any]) -> tuple[Any, ...]:
    """Return the columns that a name stands for: several of a list, or of a text with commas.

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


def find_columns(
    sample: Sample, columns: Mapping[str, Any], of_file: bool = False
) -> dict[str, Any]:
    """Assign the roles to columns: as told, else by usual names and by what the values do.

    An answer and its reference, the right one, are taken only as told; counts only in a table
    without outcomes. A role of several columns has a tuple of them. Of a file, errors propose what
    `bayesatk.load` alone can do.

    Examples
    --------
    >>> find_columns(Sample(["task_id", "epoch", "passed"], {}), {})
    {'question': 'task_id', 'trial': 'epoch', 'outcome': 'passed'}
    """
    told = _told(sample, columns)
    # A column with nothing in it is none.
    scanned = sample.whole and len(sample)
    names = [name for name in sample.names
             if not (scanned and name in sample.cells) or sample.distinct(name)]  # fmt: skip
    in_use = [name for role, own in told.items() if role != "content" for name in each(own)]
    counted = _are_counts(names, told)
    skipped = {"content", "rate", *(("outcome", "trial") if counted else COUNTS)}
    skipped |= {"outcome"} if "reference" in told else set()
    skipped |= {*COUNTS} if "rate" in told else set()
    roles: dict[str, Any] = {}
    unclear: dict[str, list[Any]] = {}
    for role in ROLES:
        if role in told and role != "content":
            roles[role] = told[role]
        elif role not in skipped:
            found = _usual(role, names, [*in_use, *roles.values()], sample, roles, told)
            if found is not None and len(found) == 1:
                roles[role] = found[0]
            elif found:
                unclear[role] = found
    if counted:
        _choose_counts(roles, told, unclear)
    elif "outcome" not in roles and not {"reference", "rate"} & told.keys():
        unclear.setdefault("outcome", [])
    if "question" not in roles:
        unclear.setdefault("question", [])
    if unclear:
        raise _unclear(sample, names, roles, told, unclear, of_file)
    roles |= {role: name for role, name in told.items() if role.startswith(COVARIATE)}
    return roles


def each(name: Any) -> tuple[Any, ...]:
    """Return the columns of a role, one by one."""
    return name if isinstance(name, tuple) else (name,)


def columns_of(roles: Mapping[str, Any], *wanted: str) -> list[Any]:
    """Return the columns of some roles, one by one."""
    return [name for role in wanted if role in roles for name in each(roles[role])]


def _usual(
    role: str, names: Labels, taken: Collection[Any], sample: Sample, roles: Mapping[str, Any],
    told: Mapping[str, Any],
) -> list[Any] | None:  # fmt: skip
    """Return the columns that may have a role, by their names and values."""
    if role == "outcome":  # a group is of questions, and hides no outcome
        taken = [name for name in taken if name not in columns_of(told, GROUP, WEIGHT)]
    matches = usual_columns(role, names, taken)
    if role == "question":
        matches = [name for name in matches if meaning(name) not in ASKED] or matches
        trial = columns_of(told, "trial") or usual_columns("trial", names, taken)
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
    """Return what may be the outcome: where marks match, all usual columns of marks that differ."""
    marks = [name for name in matches if sample.are_marks(name)]
    if not marks:  # one may count what another marks
        return matches
    usual = usual_names("outcome")
    others = [name for name in names
              if meaning(name) in usual and name not in (*matches, *taken)
              and sample.are_marks(name)]  # fmt: skip
    differ = [name for name in others if sample.cells[name] != sample.cells[marks[0]]]
    return [*marks, *differ]


def _not_row_numbers(
    matches: list[Any], names: Labels, taken: Collection[Any], trial: Labels, sample: Sample,
    roles: Mapping[str, Any],
) -> list[Any]:  # fmt: skip
    """Return what may be the question: no number of a row, where trials of another are numbered."""
    numbers = [name for name in matches if sample.tell_apart([name])]
    if not numbers or not any(len(sample.distinct(name)) > 1 for name in trial):
        return matches
    usual = {name for line in ROLES["question"][:2] for name in line.split()} - {*ASKED}
    others = [name for name in names
              if name not in (*taken, *numbers, *trial) and meaning(name) in usual]  # fmt: skip
    key = [*columns_of(roles, "system"), *trial]
    repeated = [name for name in others if sample.tell_apart([*key, name])]
    return repeated or matches


def _choose_counts(
    roles: dict[str, Any], told: Mapping[str, Any], unclear: dict[str, list[Any]]
) -> None:
    """Keep two of trials, successes and failures."""
    if {"trials", "successes"} <= roles.keys() and "failures" not in told:
        roles.pop("failures", None)
    elif {"successes", "failures"} <= roles.keys() and "trials" not in told:
        roles.pop("trials", None)
    for role in () if len(roles.keys() & {*COUNTS}) == 2 else ("trials", "successes"):
        if role not in roles:
            unclear.setdefault(role, [])


def _are_counts(names: Labels, told: Mapping[str, Any]) -> bool:
    """Return whether rows are counts: of trials and successes, with no outcome."""
    if {"outcome", "answer", "rate"} & told.keys():
        return False
    meanings = set(map(meaning, names))
    usual = [role for role in COUNTS if meanings & usual_names(role)]
    unmarked = not meanings & usual_names("outcome")
    return any(role in told for role in COUNTS) or (
        unmarked and "successes" in usual and len(usual) > 1
    )


def _told(sample: Sample, columns: object) -> dict[str, Any]:
    """Check the columns argument: known roles, columns that exist, one role each."""
    names = {*sample.names, *sample.cells, *sample.fields, *MADE}
    valid = isinstance(columns, Mapping)
    told = dict(columns) if isinstance(columns, Mapping) else {}
    for role, name in told.items():
        parts = columns_named(name, names)
        is_number = role == "trials" and "rate" in told and number_of(name) is not None
        valid = valid and isinstance(role, str) and (role in ROLES or role.startswith(COVARIATE))
        valid = valid and (len(parts) == 1 or role in (*LABELS, "outcome", "rate"))
        valid = valid and (is_number or all(
            isinstance(part, str | int) and part in names for part in parts))  # fmt: skip
        told[role] = parts if len(parts) > 1 else parts[0]
    if not valid:
        raise OutcomeError(
            f"columns must map {', '.join(ROLES)} to names in the table; got {shown(columns)} for "
            f"a table with columns {shown(list(sample.names), 400)}."
        )
    if "rate" in told and "trials" not in told:
        raise OutcomeError(
            "columns must give the number of trials beside a rate, one for all questions or a "
            "column: ", Argument("columns", {"rate": told["rate"], "trials": 10}), ".",
        )  # fmt: skip
    used = [part for role, name in told.items() if role != "content" for part in each(name)]
    counts = {*COUNTS} & told.keys()
    for is_wrong, rule, remedy in (
        (
            "reference" in told and ("answer" not in told or "outcome" in told),
            ": a reference goes with an answer column and takes the place of an outcome column",
            "Name answer and reference, or answer and outcome.",
        ),
        (
            ("rate" in told or counts) and told.keys() & {"outcome", "answer", "trial", *BY_TRIAL},
            ": trials and successes count the outcomes of a row, which then has none of its own",
            "Name the one or the other.",
        ),
        (
            len(counts) > 2,
            ": two of trials, successes and failures say the third", "Leave one out.",
        ),
        (
            len(set(used)) < len(used),
            " must give every role its own column",
            "Name another column, or leave the role out.",
        ),
    ):  # fmt: skip
        if is_wrong:
            raise OutcomeError(f"columns{rule}; got {shown(columns)}. {remedy}")
    return told


def _unclear(
    sample: Sample, names: Labels, roles: Mapping[str, Any], told: Mapping[str, Any],
    unclear: Mapping[str, list[Any]], of_file: bool,
) -> OutcomeError:  # fmt: skip
    """Return the one error for all roles whose column is not clear, with what may have them."""
    rules = [f"one {role} column; " + (f"several could be it: {found}" if found else
             "none has a usual name") for role, found in unclear.items()]  # fmt: skip
    empty = [name for name in sample.names if name not in names]
    nothing = f" (nothing is in {shown(empty, 100)[1:-1]})" * bool(empty)
    taken = [*told.values(), *roles.values()]
    marked = [name for name in sample.marked() if name not in taken]
    proposed: dict[str, Any] = {role: next(iter(found), ...) for role, found in unclear.items()}
    hints = f"Marks of 0 and 1 are in {shown(marked, 160)[1:-1]}. " * (
        bool(marked) and "outcome" in unclear)  # fmt: skip
    if unclear.get("outcome") == []:
        proposed |= {"outcome": marked[0]} if len(marked) == 1 else {}
        counts = {} if marked else _likely_counts(sample, taken)
        if counts:
            known = [name for name in counts.values() if name is not ...]
            hints = f"Counts or rates may be in {shown(known)[1:-1]}. "
            del proposed["outcome"]
            proposed |= counts
    ids = [] if unclear.get("question") != [] else [
        name for name in names
        if re.search("_(id|name|key)$", meaning(name)) and name not in taken
        and 1 < len(sample.distinct(name)) < len(sample)
        and not _says_the_same(sample, name, columns_of(roles, "system"))
    ]  # fmt: skip
    hints += f"Ids that come more than once are in {shown(ids, 160)[1:-1]}. " * bool(ids)
    proposed |= {"question": ids[0]} if len(ids) == 1 else {}
    pieces: list[Any] = [
        f"the table must have {', and '.join(rules)} among {shown(list(names), 400)}{nothing}. "
        f"{hints}Name {'them' if len(unclear) > 1 else 'it'}: ",
        Argument("columns", proposed, "tally"),
    ]  # fmt: skip
    beside = [name for name in marked if name in sample.names]
    if (
        of_file
        and "outcome" in unclear
        and len(beside) > 1
        and sample.tell_apart(columns_of(roles, "question"))
    ):
        pieces += ["; or, if each column of marks is a system: ", Argument("wide", True), " with ",
                   Argument("columns", {"outcome": beside})]  # fmt: skip
    parents: dict[str, list[str]] = {}  # by a field of marks, the objects that have it
    for name in marked:
        parent, _, field = str(name).rpartition(".")
        if parent in sample.names:
            parents.setdefault(field, []).append(parent)
    shared = [field for field, objects in parents.items() if len(objects) > 1]
    if of_file and "question" in roles and shared:
        pieces += ["; or, if each object is a system: ", Argument("wide", True), " with ",
                   Argument("columns", {"outcome": shared[0]})]  # fmt: skip
    if unclear.get("question") == []:
        within = [str(name) for name in names
                  if any(str(path).startswith(f"{name}[].") for path in sample.cells)]  # fmt: skip
        if within and of_file:
            pieces += ["; or, if records are within it: ", Argument("records", within[0])]
        alone = {**{name: value for name, value in proposed.items()}, "question": ONE}
        pieces += ["; or, if all rows are trials of one question: ",
                   Argument("columns", alone, "tally")]  # fmt: skip
    return OutcomeError(*pieces, "; if two share a name, rename one.")


def _likely_counts(sample: Sample, taken: Collection[Any]) -> dict[str, Any]:
    """Return columns of whole numbers or shares that may be counts of a row, by role."""
    usual = usual_columns("trials", sample.names, taken)
    likely = {"trials": usual[0]} if len(usual) == 1 else {}
    for name in sorted(sample.names, key=lambda name: len(str(name))):
        numbers = [number for number in map(number_of, sample.distinct(name)) if number is not None]
        word = meaning(name)
        if (name in taken or not numbers or len(numbers) < len(sample.distinct(name))
                or _MEASURED.search(word)):  # fmt: skip
            continue
        if _SHARE.search(word) and (_MARKED.search(word) or "acc" in word):
            likely.setdefault("rate", name)
        elif all(map(float.is_integer, numbers)) and max(numbers) > 1:
            kinds = (role for role, pattern in _COUNTED.items() if re.search(pattern, word))
            likely.setdefault("trials" if word.endswith("total") else next(kinds, ""), name)
    likely.pop("", None)
    if "rate" in likely:
        return {"rate": likely["rate"], "trials": likely.get("trials", ...)}
    if {"successes", "failures"} <= likely.keys():
        likely.pop("trials", None)
    return likely if "successes" in likely and len(likely) == 2 else {}


def content_columns(
    sample: Sample, roles: Mapping[str, Any], columns: Mapping[str, Any]
) -> list[Any]:
    """Return the columns that hold what was asked, or what is right: as told, else by their names.

    Beside a question that is a field of an object, fields of it are meant.

    Examples
    --------
    >>> content_columns(Sample(["id", "prompt", "answer"], {}), {"question": "id"}, {})
    ['prompt', 'answer']
    """
    questions = columns_of(roles, "question")
    if "content" in columns:
        return [columns["content"]] if columns["content"] not in questions else []
    taken = [name for role in roles for name in each(roles[role])]
    within = {name.rpartition(".")[0] for name in questions
              if isinstance(name, str) and "." in name and name not in sample.names}  # fmt: skip
    nested = [name for name in sample.cells if isinstance(name, str) and name not in sample.names
              and "." in name and name.rpartition(".")[0] in within]  # fmt: skip
    return [name for name in (*sample.names, *nested)
            if _last(name) in (*ASKED, *RIGHT) and name not in taken]  # fmt: skip


def is_right_answer(name: object) -> bool:
    """Return whether a column of content holds what is right, not what was asked."""
    return _last(name) in RIGHT


Doubt = tuple[str | Argument, ...]


def answered(sample: Sample, roles: Mapping[str, Any], content: Labels) -> dict[Any, Doubt]:
    """Return the columns of content that are what systems answered, with what to say of each."""
    if not sample.cells:
        return {}
    found: dict[Any, Doubt] = {}
    key = columns_of(roles, "question")
    for name in content:
        if _last(name) == _ANSWERED and len(set(sample.rows([*key, name]))) > len(
            set(sample.rows(key))
        ):
            found[name] = (
                f"column {shown(name)} differs between the trials of a question, and is left out "
                "as what was answered; if it is the right answer, a question is not what it seems: "
                , Argument("columns", {"content": name}), " compares it.",
            )  # fmt: skip
    return found


def doubts(
    sample: Sample, roles: Mapping[str, Any], others: Labels, told: Mapping[str, Any]
) -> list[Doubt]:
    """Return what the values of a table say against how it is read, where nobody said how."""
    if not sample.cells or "question" not in roles:
        return []
    found = [_across(sample, roles, name) for name in others if name in sample.cells]
    if "trial" not in told:
        found.append(_named_trials(sample, roles))
    found.append(_row_numbers(sample, roles, others))
    most = 3  # that a card lists
    return list(filter(None, found))[:most]


def is_condition(name: object) -> bool:
    """Whether a column is called what conditions are."""
    return re.sub("_(name|id|label|type)$", "", _last(name)) in CONDITIONS or (
        _last(name) in CONDITIONS
    )


def with_systems(roles: Mapping[str, Any], *names: Any) -> Argument:
    """Propose columns as the system, together with the one that there is."""
    together = [*columns_of(roles, "system"), *names]
    return Argument("columns", {"system": together if len(together) > 1 else together[0]})


def _across(sample: Sample, roles: Mapping[str, Any], name: Any) -> Doubt:
    """Say that a column of few values tells the rows of questions apart, or the questions.

    Each value is in half of the questions or more, and each row of a question has another, unless
    the column is called what conditions are. So are names of systems, and numbers of trials, but
    not answers, times or costs.
    """
    values, named = sample.distinct(name), is_condition(name)
    if not 1 < len(values) <= _FEW:
        return ()
    if "trial" in roles and not named and not _runs_on(sample, roles, name):
        return ()
    cells: dict[tuple[str, ...], list[str]] = {}
    for cell, value in zip(sample.rows(columns_of(roles, "system", "question")),
                           sample.cells[name], strict=True):  # fmt: skip
        cells.setdefault(cell, []).append(value)
    listed = f"column {shown(name)} ({shown(values, 60)[1:-1]})"
    repeated = [found for found in cells.values() if len(found) > 1]
    if all(len(set(found)) == 1 for found in cells.values()):
        if not named or "system" in roles:
            return ()
        return (f"every question has one value of {listed}; is it the system? Then name it: ",
                with_systems(roles, name), ".")  # fmt: skip
    apart = all(len(set(found)) == len(found) for found in repeated)
    frequent = Counter(value for found in repeated for value in set(found))
    numbers = None not in map(number_of, values)
    least = len(repeated) / (1 if numbers else 2)
    if min(frequent.values()) < (least if named else max(least, 2)):
        return ()
    if not (named or apart or "trial" in roles):
        return ()
    if numbers and not named and _counts_up(values):
        return ()
    if numbers and _says_the_same(sample, name, columns_of(roles, "trial")):
        return ()
    return (f"the rows of a question differ in {listed}, and are read as trials; is it the system, "
            "or the trial? Then name it: ", with_systems(roles, name), ".")  # fmt: skip


def _counts_up(values: Collection[str]) -> bool:
    """Whether texts are the whole numbers from 0 or 1 on, as those of trials are."""
    numbers = sorted(float(value) for value in values)
    return numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])


def _runs_on(sample: Sample, roles: Mapping[str, Any], name: Any) -> bool:
    """Whether the trials of a question are numbered on and on over the values of a column: words.

    Every number belongs to one value then, and every value has several numbers.
    """
    pairs = set(sample.rows([name, *columns_of(roles, "trial")]))
    numbers, several = Counter(pair[1:] for pair in pairs), Counter(pair[0] for pair in pairs)
    words = None in map(number_of, several)
    return words and max(numbers.values()) == 1 < min(several.values())


def _says_the_same(sample: Sample, name: Any, trial: Labels) -> bool:
    """Whether a column has another value for every trial number, and the same for the same."""
    if not trial:
        return False
    pairs = set(sample.rows([name, *trial]))
    return len(pairs) == len(sample.distinct(name)) == len({pair[1:] for pair in pairs})


def _named_trials(sample: Sample, roles: Mapping[str, Any]) -> Doubt:
    """Say that trials of all questions have words for labels, as conditions have."""
    name = roles.get("trial")
    labels = sample.distinct(name) if not isinstance(name, tuple) else []
    stems = {tuple(re.findall("[A-Za-z]{3,}", label)) for label in labels} - {()}
    order = {(word,) for word in "first second third fourth fifth one two three four".split()}
    questions = len(set(sample.rows(columns_of(roles, "question"))))
    of_labels = Counter(
        label for label, *_ in set(sample.rows([name, *columns_of(roles, "question")]))
    ) if labels else Counter()  # fmt: skip
    shared = questions > 1 and all(of_labels[label] * 2 >= questions for label in labels)
    if len(stems) < 2 or len(labels) > _FEW or stems <= order or not shared:
        return ()
    return (f"the trials of all questions are called {shown(labels, 60)[1:-1]} in column "
            f"{shown(name)}; are they conditions? Then name them: ", with_systems(roles, name), ".",
            )  # fmt: skip


def _row_numbers(sample: Sample, roles: Mapping[str, Any], others: Labels) -> Doubt:
    """Say that each question has one row, while another column that names questions repeats."""
    if "trials" in roles or "rate" in roles or isinstance(roles["question"], tuple):
        return ()
    usual = {name for line in ROLES["question"][:2] for name in line.split()} - {*ASKED}
    key = columns_of(roles, "system", "trial")
    numbered = any(len(sample.distinct(name)) > 1 for name in columns_of(roles, "trial"))
    for name in others if sample.tell_apart([roles["question"]]) else ():
        repeats = Counter(sample.cells.get(name, ())).values()
        even = meaning(name) in usual and len(repeats) > 1 and min(repeats) == max(repeats)
        if max(repeats, default=1) > 1 and (even or (numbered and sample.tell_apart([*key, name]))):
            return (
                f"every row is a question of its own by column {shown(roles['question'])}, and "
                f"each value of {shown(name)} has {max(repeats)} rows; are they its trials? Then "
                "name it: ", Argument("columns", {"question": name}), ".",
            )  # fmt: skip
    return ()


def resolving(
    sample: Sample, roles: Mapping[str, Any], others: Labels, of_file: bool
) -> tuple[Doubt, ...]:
    """Return what may tell the rows of one trial number apart: conditions, or a second number.

    Of a file the rows of one condition can be read alone.
    """
    key = columns_of(roles, *LABELS)
    if not sample.cells or "trial" not in roles or sample.tell_apart(key):
        return ()
    # Those that are not called conditions come in rows of several questions or trials.
    few = [name for name in others if 1 < len(sample.distinct(name)) <= _FEW and (
        is_condition(name) or min(Counter(sample.cells[name]).values()) > 1)]  # fmt: skip
    conditions = tuple(name for name in few if is_condition(name))
    tried = (names for number in (1, 2) for names in combinations(few[:8], number)
             if not conditions or {*names} & {*conditions})  # fmt: skip
    together = next((names for names in tried if sample.tell_apart([*key, *names])), ())
    names = together or conditions
    ways: list[Doubt] = []
    if names:
        verb = "is the system" if len(names) == 1 else "are the system"
        said = " and ".join(map(shown, names))
        ways += [(f"; or, if {said} {verb}, say so: ", with_systems(roles, *names))]
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
