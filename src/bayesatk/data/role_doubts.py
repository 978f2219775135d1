"""What may be read wrongly though all roles are clear, and columns of prompts and answers.

Conditions that would be pooled, a row number taken for the question, names of conditions taken for
numbers of trials, marks beside the outcome: each doubt names what to do if it is right.
"""

import re
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from shlex import quote
from typing import Any

from bayesatk._tools.messages import Argument
from bayesatk.data.roles import (
    LABELS,
    MAX_CONDITIONS,
    PROMPT_NAMES,
    REFERENCE_NAMES,
    ROLES,
    TRUTH,
    Sample,
    columns_of,
    is_better_lower,
    is_outcome_name,
    is_truth_name,
    last_part,
    normalized_name,
)
from bayesatk.data.validation import (
    Labels,
    number_of,
    shown,
)

# Usual names of columns of experimental conditions, each of which may be a system.
CONDITIONS = {
    *"agent_type approach arm cond condition config configuration experiment framework".split(),
    *"harness judge method mode pipeline policy profile prompt_version provider regime".split(),
    *"reasoning_effort scaffold setting strategy technique temperature top_p treatment".split(),
    *"variant".split(),
}
# Kinds of questions; where the rows of one question differ in them, they are conditions.
_SUITES = {*"benchmark dataset domain subject subset suite".split()}
# Who or what marked a trial, and which of several quantities a value is.
_MEASURE = re.compile(
    "(rater|annotator|grader|labell?er|judge|reviewer|assessor|evaluator|metric|measure)"
    "(_(id|name|model))?"
)
_KINDS = _SUITES | {*"effort lang language locale persona split template tool version".split()}


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
    taken = columns_of(roles, *roles)
    within = {
        name.rpartition(".")[0]
        for name in questions
        if isinstance(name, str) and "." in name and name not in sample.names
    }
    nested = [
        name
        for name in sample.cells
        if isinstance(name, str)
        and name not in sample.names
        and "." in name
        and name.rpartition(".")[0] in within
    ]
    usual = (*PROMPT_NAMES, *REFERENCE_NAMES)
    return [
        name for name in (*sample.names, *nested) if last_part(name) in usual and name not in taken
    ]


def is_right_answer(name: object) -> bool:
    """Return whether a column of content holds the right answer rather than the prompt."""
    return last_part(name) in REFERENCE_NAMES


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
        if last_part(name) == "answer" and len(set(sample.rows([*key, name]))) > len(
            set(sample.rows(key))
        ):
            answers[name] = (
                f"column {shown(name)} differs between the trials of a question, and is left out "
                "as what was answered; if it is the right answer, a question is not what it "
                "seems: ",
                Argument("columns", {"content": name}),
                " compares it.",
            )
    return answers


def doubts(
    sample: Sample,
    roles: Mapping[str, Any],
    unused: Labels,
    named: Mapping[str, Any],
    of_file: bool,
) -> list[Doubt]:
    """Return warnings about roles that nobody named and that the values of the table contradict."""
    if not sample.cells or "question" not in roles:
        return []
    all_doubts = [
        *condition_doubts(sample, roles, unused, of_file),
        () if "trial" in named else _trial_label_doubt(sample, roles, of_file),
        _row_number_doubt(sample, roles, unused),
        _answer_doubt(sample, roles),
        _truth_doubt(sample, roles, unused),
    ]
    max_doubts = 3  # on one data card
    return list(filter(None, all_doubts))[:max_doubts]


def is_condition(name: object) -> bool:
    """Return whether the name of a column is a usual name of experimental conditions."""
    return re.sub("_(name|id|label|type)$", "", last_part(name)) in CONDITIONS or (
        last_part(name) in CONDITIONS
    )


def with_suite(sample: Sample, roles: Mapping[str, Any], question: Any, names: Labels) -> Any:
    """Return the question with its suite, where suites number their own questions by the trials."""
    key = [*columns_of(roles, "system", "trial"), question]
    if "trial" not in roles or not {*key} <= {*sample.cells} or sample.tell_apart(key):
        return question
    suites = (name for name in names if is_suite(name) and sample.tell_apart([*key, name]))
    return next(((name, question) for name in suites), question)


def repeated_measures(sample: Sample, roles: Mapping[str, Any], names: Labels) -> list[Any]:
    """Return the columns of raters or metrics of which one trial has several.

    No column of few values tells the rows of raters apart, as numbers of trials do.
    """
    key = columns_of(roles, *LABELS)
    if "question" not in roles or not {*key} <= {*sample.cells}:
        return []
    few = [name for name in names if 1 < len(sample.distinct(name)) <= MAX_CONDITIONS]
    return [
        name
        for name in few
        if is_measure(name)
        and len(set(sample.rows([*key, name]))) > len(set(sample.rows(key)))
        and (
            is_metric(name)
            or not any(sample.tell_apart([*key, other]) for other in few if other != name)
        )
    ]


def is_measure(name: object) -> bool:
    """Return whether a column is called as a rater, or as one that says what a value measures."""
    return bool(_MEASURE.fullmatch(last_part(name)))


def is_metric(name: object) -> bool:
    """Return whether a column is called as one that says of which quantity a value is."""
    return bool(re.match("metric|measure", last_part(name)))


def measure_doubt(sample: Sample, name: Any) -> tuple[str, dict[Any, str]]:
    """Return why one rater or metric is to be read alone, and rows of the one likely meant."""
    values = sample.distinct(name)
    value = min(values, key=lambda value: (is_better_lower(value), not is_outcome_name(value)))
    average = " (or average them before)" * (not is_metric(name))
    return (
        f"rows of one trial differ in column {shown(name)} ({shown(values, 60)[1:-1]}), and "
        f"are not independent trials; read one alone{average}",
        {name: value},
    )


def condition_doubts(
    sample: Sample, roles: Mapping[str, Any], unused: Labels, of_file: bool
) -> list[Doubt]:
    """Return doubts about the columns without a role, see `_condition_doubt`."""
    return [
        doubt
        for name in unused
        if name in sample.cells and (doubt := _condition_doubt(sample, roles, name, of_file))
    ]


def _condition_doubt(sample: Sample, roles: Mapping[str, Any], name: Any, of_file: bool) -> Doubt:
    """Return a doubt if an unused column may hold a condition, a suite of questions, or a trial.

    Then it differs between the rows of a question by design. If each question has one value of a
    column with a usual name of conditions, it may be the system.
    """
    system, question = (sample.rows(columns_of(roles, role)) for role in ("system", "question"))
    cells: dict[tuple[tuple[str, ...], tuple[str, ...]], Counter[str]] = {}
    for label, key, value in zip(system, question, sample.cells[name], strict=True):
        cells.setdefault((label, key), Counter())[value] += 1
    repeated = [rows for rows in cells.values() if rows.total() > 1]
    values = sample.distinct(name)
    listed = f"column {shown(name)} ({shown(values, 60)[1:-1]})"
    if len(values) < 2 or len(values) > MAX_CONDITIONS:
        return ()
    if not repeated and is_condition(name) and "system" not in roles:
        return (
            f"every question has one value of {listed}; is it the system? Then name it: ",
            _as_system_or_suite(roles, name)[0][1],
            ".",
        )
    if not repeated or not _differs_by_design(sample, roles, name, repeated):
        return ()
    readings = _as_system_or_suite(roles, name)
    apart = all(max(rows.values()) == 1 for rows in repeated)
    if apart and not roles.keys() & {"trial", "trials", "rate"}:
        readings.append(("if it tells the trials apart", Argument("columns", {"trial": name})))
    elif of_file:
        readings.append(("if it changes nothing", Argument("ignore", [name])))
    first, *others = [part for words, argument in readings for part in (f"; {words}: ", argument)]
    return (
        f"the rows of a question differ in {listed}, and are read as trials of one system{first}",
        *others,
        ".",
    )


def _differs_by_design(
    sample: Sample, roles: Mapping[str, Any], name: Any, repeated: list[Counter[str]]
) -> bool:
    """Return whether a column differs between the rows of a question by design, not by chance.

    Numbers do so only under a usual name of conditions, and every value is then in at least half
    of the questions. Under other names, nearly all values have as many rows of a question, and some
    questions several values: by chance those alone in a question would have more rows.
    """
    values = sample.distinct(name)
    are_numbers = None not in map(number_of, values)
    has_usual_name = is_condition(name) or last_part(name) in _KINDS
    if sample.is_one_to_one(name, columns_of(roles, "trial")) and (
        are_numbers or not has_usual_name
    ):
        return False
    if has_usual_name:
        frequency = Counter(value for rows in repeated for value in rows)
        return min(frequency.values()) >= len(repeated) / (1 if are_numbers else 2)
    rows_of_values = Counter(number for rows in repeated for number in rows.values())
    recur = rows_of_values.total() >= 2 * len(values)  # in several questions
    if are_numbers or sample.are_marks(name) or not recur:
        return False
    several = sum(len(rows) > 1 for rows in repeated)
    nearly_all, least_share = 0.9, 0.2
    return several >= least_share * len(repeated) and (
        max(rows_of_values.values()) >= nearly_all * rows_of_values.total()
    )


def _as_system_or_suite(roles: Mapping[str, Any], *names: Any) -> list[tuple[str, Argument]]:
    """Return when columns are part of the system, or of the question, with the arguments.

    The likelier one is first.
    """
    together = [*columns_of(roles, "system"), *names]
    suite = [*names, *columns_of(roles, "question")]
    ways = [
        (
            f"if the system includes {' and '.join(map(shown, names))}",
            Argument("columns", {"system": together if len(together) > 1 else together[0]}),
        ),
        ("if ids are of several suites", Argument("columns", {"question": suite})),
    ]
    return ways[::-1] if {*map(last_part, names)} <= _SUITES else ways


def _trial_label_doubt(sample: Sample, roles: Mapping[str, Any], of_file: bool) -> Doubt:
    """Return a doubt if trials are labelled by words, as conditions are, not by numbers."""
    name = roles.get("trial")
    labels = [] if isinstance(name, tuple) else sample.distinct(name)
    words = {tuple(re.findall("[A-Za-z]{3,}", label)) for label in labels} - {()}
    ordinals = {(word,) for word in "first second third fourth fifth one two three four".split()}
    if len(words) < 2 or words <= ordinals:
        return ()
    unlabelled = {role: roles[role] for role in roles if role != "trial"}
    return _condition_doubt(sample, unlabelled, name, of_file)


def is_id_name(name: object) -> bool:
    """Return whether the name of a column is a usual name of ids of questions, not of prompts."""
    usual = {name for line in ROLES["question"][:2] for name in line.split()} - {*PROMPT_NAMES}
    return normalized_name(name) in usual


def repeated_ids(sample: Sample, question: Any, others: Labels, key: Labels) -> list[Any]:
    """Return columns that may be the question, where a column of questions numbers the rows.

    With the numbers of the trials in `key` they tell the rows apart. Without such numbers they have
    a usual name of questions, and each value is in as many rows.
    """
    numbered = any(len(sample.distinct(name)) > 1 for name in key)
    found = []
    for name in others if sample.tell_apart([question]) else ():
        repeats = Counter(sample.cells.get(name, ())).values()
        even = min(repeats, default=1) == max(repeats, default=1) and is_id_name(name)
        if max(repeats, default=1) > 1 and (
            sample.tell_apart([*key, name]) if numbered else even and len(repeats) > 1
        ):
            found.append(name)
    return found


def _row_number_doubt(sample: Sample, roles: Mapping[str, Any], unused: Labels) -> Doubt:
    """Return a doubt if the question is a row number and another column of questions repeats."""
    if roles.keys() & {"trials", "rate"} or isinstance(roles["question"], tuple):
        return ()
    key = columns_of(roles, "trial") and columns_of(roles, "system", "trial")
    for name in repeated_ids(sample, roles["question"], unused, key)[:1]:
        most = max(Counter(sample.cells[name]).values())
        return (
            f"every row is a question of its own by column {shown(roles['question'])}, and each "
            f"value of {shown(name)} has {most} rows; are they its trials? Then name it: ",
            Argument("columns", {"question": name}),
            ".",
        )
    return ()


def _answer_doubt(sample: Sample, roles: Mapping[str, Any]) -> Doubt:
    """Return a doubt if the outcomes are words that a column of right answers holds as well."""
    outcome = roles.get("outcome")
    texts = {*sample.distinct(outcome)}  # none of several columns
    for name in sample.names if None in map(number_of, texts) else ():
        if normalized_name(name) in REFERENCE_NAMES and texts & {*sample.distinct(name)}:
            return (
                f"{shown(outcome)} holds what {shown(name)} holds, which may be the right "
                "answer; is a trial right where both are equal? Then name them: ",
                Argument("columns", {"answer": outcome, "reference": name}),
                ".",
            )
    return ()


def _truth_doubt(sample: Sample, roles: Mapping[str, Any], unused: Labels) -> Doubt:
    """Return a doubt if a column beside the outcome is called as marks that people gave."""
    for name in unused:
        if TRUTH not in roles and is_truth_name(name) and sample.are_marks(name):
            return (
                f"marks are in {shown(name)} as well, and are left out; if they are the truth, "
                f"and {shown(roles.get('outcome'))} is what a judge says: ",
                Argument(TRUTH, name),
                ".",
            )
    return ()


def is_suite(name: object) -> bool:
    """Return whether a column is called as one of suites of questions."""
    return last_part(name) in _SUITES


def variants_doubt(labels: Labels) -> Doubt:
    """Return a doubt if names of two systems differ in case only, beside blanks.

    Names that differ in blanks alone are refused.

    Examples
    --------
    >>> variants_doubt(["Alpha ", "beta", "alpha"])[0][:31], variants_doubt(["a", "b"])
    ("systems 'Alpha ' and 'alpha' di", ())
    """
    first: dict[str, Any] = {}
    for label in labels:
        name = " ".join(str(label).split())
        earlier = first.setdefault(name.casefold(), label)
        if " ".join(str(earlier).split()) != name:
            return (
                f"systems {shown(earlier)} and {shown(label)} differ in case or blanks only, "
                "and are read as two; if they are one, write one name.",
            )
    return ()


def summaries_among(labels: Labels) -> list[Any]:
    """Return which of three or more systems or questions are called as summaries of the others.

    Examples
    --------
    >>> summaries_among(["q1", "q2", "TOTAL"]), summaries_among(["all"])
    (['TOTAL'], [])
    """
    called = [
        label
        for label in labels
        if isinstance(label, str)
        and re.fullmatch(
            "((grand|sub|macro|micro|weighted)[ _-]?)?(totals?|overall|averages?|avg|all|mean)",
            label.strip().lower(),
        )
    ]
    return called if len(labels) > 2 else []


def way_to_keep_once(sample: Sample, of_file: bool) -> str:
    """Return in words how to keep each of several equal rows once.

    Examples
    --------
    >>> way_to_keep_once(Sample([], {}, path="my runs.tsv"), True)
    "; of rows that are lines, awk '!seen[$0]++' 'my runs.tsv' > once.tsv keeps each once"
    """
    file = quote(sample.path) if sample.path else "FILE"
    once = f"once{Path(sample.path).suffix or '.csv'}"
    kept = f"awk '!seen[$0]++' {file} > {once}" if of_file else "data.drop_duplicates()"
    return f"; of rows that are lines, {kept} keeps each once"


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
    different = len({*sample.rows(sample.cells)})
    if different == len({*sample.rows(key)}):
        equal = f". {len(sample) - different} rows equal an earlier one in every column"
        return ((f"{equal}{way_to_keep_once(sample, of_file)}",),)
    # Every value of a column without a usual name of conditions must be in several rows.
    candidates = [
        name
        for name in unused
        if 1 < len(sample.distinct(name)) <= MAX_CONDITIONS
        and (is_condition(name) or min(Counter(sample.cells[name]).values()) > 1)
    ]
    conditions = tuple(name for name in candidates if is_condition(name))
    one_or_two = (names for number in (1, 2) for names in combinations(candidates[:8], number))
    together = next(
        (
            names
            for names in one_or_two
            if sample.tell_apart([*key, *names]) and (not conditions or {*names} & {*conditions})
        ),
        (),
    )
    names = together or conditions
    ways = _as_system_or_suite(roles, *names) if names else []
    if len(together) > 1 and of_file:
        first = sample.distinct(together[0])[0]
        ways += [("if one value is to be read alone", Argument("where", {together[0]: first}))]
    if len(together) == 1 and not is_condition(together[0]):
        trial = [*columns_of(roles, "trial"), *together]
        ways += [
            (f"if {shown(together[0])} numbers trials too", Argument("columns", {"trial": trial}))
        ]
    if not together and of_file:
        ways += [
            ("if every row is a trial of its own", Argument("ignore", columns_of(roles, "trial")))
        ]
    return tuple((f"; or, {when}: ", argument) for when, argument in ways)
