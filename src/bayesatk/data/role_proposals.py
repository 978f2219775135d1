"""The error where roles of columns are unclear, and how the table may be read.

Every column or field without a role is looked at: by its name and values it may identify the
questions or the systems, or hold outcomes. A reading gives columns to all roles that are unclear;
the error writes each of them as arguments.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from bayesatk._tools.messages import Argument, alternatives
from bayesatk.data.role_doubts import (
    condition_doubts,
    is_summary,
    measure_doubt,
    repeated_measures,
    summary_doubt,
    with_suite,
)
from bayesatk.data.roles import (
    MARK_NAME,
    MAX_CONDITIONS,
    ONE,
    PASS_AT_K,
    PROMPT_NAMES,
    RATE_NAME,
    REFERENCE_NAMES,
    TRUTH,
    Sample,
    columns_of,
    is_better_lower,
    is_failure,
    is_outcome_name,
    is_truth_name,
    last_part,
    normalized_name,
    scores_of_failures,
    systems_of_columns,
    usual_columns,
    usual_names,
)
from bayesatk.data.validation import (
    Labels,
    OutcomeError,
    number_of,
    outcome_of,
    share_of,
    shown,
    ways_to_score,
    word_scores,
)

# Found in names of columns that count trials, in those of ids, and in those of measurements.
_COUNT_NAMES = {
    "failures": "fail|wrong|unsolved", "successes": "pass|succ|solved|correct",
    "trials": "trial|run|attempt|episode|rollout|sample|tries|total|^n_|^num_|^count$",
}  # fmt: skip
_ID_NAME = re.compile("(^|_)(id|name|key|idx|index)$")
_MEASUREMENT_NAME = re.compile(
    "(^|_)(len|length|time|runtime|latency|duration|sec|seconds|ms|s|min|max|mean|std|best|steps?"
    "|size|tokens?)(_|$)"
)
_MEAN_NAME = re.compile("(^|_)(mean|avg|average)(_|$)")
_PREDICTION_NAMES = (
    "prediction", "predicted", "pred", "predicted_answer", "model_answer", "model_output",
    "extracted_answer", "parsed_answer", "given_answer", "response", "completion", "output",
)  # fmt: skip
_MAX_ALTERNATIVES = 3  # columns that are proposed one by one


class Reading(NamedTuple):
    """Columns by role, the condition under which they are meant, and arguments beside them."""

    columns: dict[str, Any]
    when: str = ""
    beside: tuple[Argument, ...] = ()


def unclear_roles(
    sample: Sample, names: Labels, known: Mapping[str, Any], unclear: Mapping[str, list[Any]],
    of_file: bool,
) -> OutcomeError:  # fmt: skip
    """Return one error that names all unclear roles, and proposes columns for them."""
    rules = [f"one {role} column; " + (f"several could be it: {candidates}" if candidates else
             "none has a usual name") for role, candidates in unclear.items()]  # fmt: skip
    empty = [name for name in sample.names if name not in names]
    free = [name for name in sample.leaves() if name not in columns_of(known, *known)]
    marked = [name for name in sample.marked() if name in free]
    roles = {**{role: found[0] for role, found in unclear.items() if found}, **known}
    _refuse_objects_of_systems(
        sample, roles, marked * (of_file and {"question", "outcome"} <= {*unclear})
    )
    hints, questions = "", list[Any]()
    if unclear.get("question") == []:
        labels = [name for name in free if name not in marked]
        questions, repeated = _likely_questions(sample, labels, columns_of(roles, "system"))
        hints += f"Ids that come more than once are in {shown(questions, 160)[1:-1]}. " * repeated
        hints += "They can be read if all rows are trials of one question. " * (not questions)
        questions += [ONE] * (not repeated)
        roles["question"] = with_suite(sample, roles, questions[0], free)
    sample, words, where = _rows_that_are_meant(sample, roles, free if of_file else ())
    hints += words
    free = [name for name in free if name not in where]
    marked = [name for name in sample.marked() if name in free]
    if marked and "outcome" in unclear:
        hints = f"Marks are in {shown(marked, 160)[1:-1]}. {hints}"
    readings = [Reading({})]
    if unclear.get("outcome") == []:
        words, readings = _readings(sample, roles, marked, free, of_file)
        hints = words + hints
    systems = _likely_systems(sample, {**roles, **readings[0].columns}, free)
    if len(systems) == 1:
        hints += f"Each of {systems[0]!r} has as many rows of every question. "
        roles["system"] = systems[0]
    proposed = {role: roles[role] for role in roles if role not in known}
    selected = [Argument("where", where)] * bool(where)
    readings = [
        Reading({**proposed, **reading.columns}, reading.when, (*reading.beside, *selected))
        for reading in readings
    ]
    readings += _with_other_questions(readings[0], questions[1:])
    ways = [way for reading in readings for way in _arguments(sample, reading)]
    naming = f"{hints}Name {'them' if len(unclear) > 1 else 'it'}: "
    if of_file and "outcome" in unclear and (within := _lists_of_records(sample, marked)):
        naming, ways = f"Marks are in {shown(marked, 160)[1:-1]}, within lists: ", within
    proposed = {role: name for role, name in {**known, **readings[0].columns}.items()
                if name is not ...}  # fmt: skip
    unused = [name for name in free if name not in columns_of(proposed, *proposed)]
    doubts = condition_doubts(sample, proposed, unused * (proposed["question"] != ONE), of_file)
    return OutcomeError(
        f"the table must have {', and '.join(rules)} among {shown(list(names), 400)}"
        + f" (nothing is in {shown(empty, 100)[1:-1]})" * bool(empty) + ". "
        f"{naming}",
        *alternatives(ways), ".",
        *[piece for doubt in doubts for piece in (" As proposed, ", *doubt)],
    )  # fmt: skip


def _refuse_objects_of_systems(sample: Sample, roles: Mapping[str, Any], marked: Labels) -> None:
    """Refuse rows of one system each, with an object of marks by question, and say how to write it.

    Only as one object of systems are such objects read as questions.
    """
    objects = {str(name).rpartition(".")[0] for name in marked}
    system = columns_of(roles, "system")
    if len(marked) < 2 or len(objects) != 1 or not system or not sample.tell_apart(system):
        return
    (field,) = objects
    if field not in sample.names or sample.fields:
        return
    first, (label, *_) = str(marked[0]).rpartition(".")[2], sample.distinct(system[0])
    raise OutcomeError(
        f"the marks are fields of the object {field!r} of each system, such as {marked[0]!r}; rows "
        "must name the question. If the fields are questions, write one object with the systems "
        f'as names, {{"{label}": {{"{first}": ..., ...}}, ...}}: in Python, with the list as '
        f"rows, {{row[{system[0]!r}]: row[{field!r}] for row in rows}}."
    )


def _rows_that_are_meant(
    sample: Sample, roles: Mapping[str, Any], names: Labels
) -> tuple[Sample, str, dict[Any, str]]:
    """Return the rows by which a table is judged, in words why, and the values to select them by.

    Of several metrics or raters it is one, and a row of sums is none.
    """
    words, where = "", dict[Any, str]()
    for name in columns_of(roles, "question"):
        doubt = summary_doubt("question", sample.distinct(name))
        if doubt:
            words += f"Q{str(doubt[0])[1:]} "
            sample = sample.only(name, lambda label: not is_summary(label))
    for name in repeated_measures(sample, roles, names):
        told, row = measure_doubt(sample, name)
        words += f"{told[0].upper()}{told[1:]}, as proposed. "
        where |= row
        sample = sample.only(name, {*row.values()}.__contains__)
    return sample, words, where


def _with_other_questions(reading: Reading, questions: Labels) -> list[Reading]:
    """Return a reading with each of some other columns that may be the question."""
    outcomes = columns_of(reading.columns, "outcome")
    return [
        reading._replace(
            columns={**reading.columns, "question": other},
            when="all rows are trials of one question" if other == ONE else
                 f"{shown(other)} says which question it is",
        )
        for other in [name for name in questions if name not in outcomes][:_MAX_ALTERNATIVES]
    ]  # fmt: skip


def _lists_of_records(sample: Sample, marked: Labels) -> list[list[str | Argument]]:
    """Return as proposals the lists of objects with marks, where nothing else holds any.

    Of lists within each other it is the outer one that has marks. Only JSON is read so.
    """
    named = [name for name in sample.cells if "[]" in str(name) and is_outcome_name(name)]
    paths = [str(name).rpartition("[].")[0] for name in marked or named if "[]." in str(name)]
    if sample.fields or len(paths) < len(marked):
        return []
    outer = [path.replace("[]", "") for path in dict.fromkeys(paths)
             if not any(path.startswith(f"{other}[].") for other in paths)]  # fmt: skip
    several = len(outer) > 1
    return [[f"if its objects are in {path}: "] * several + [Argument("records", path)]
            for path in outer]  # fmt: skip


def _arguments(sample: Sample, reading: Reading) -> list[list[str | Argument]]:
    """Return a reading as arguments, with scores where outcomes are no marks, in each way."""
    name = reading.columns.get("outcome")
    first = name[0] if isinstance(name, list) else name
    texts = [] if isinstance(name, list) and not reading.beside else sample.distinct(first)
    named = {role: list(own) if isinstance(own, tuple) else own
             for role, own in reading.columns.items()}  # fmt: skip
    columns = [*reading.beside, Argument("columns", named, "tally")]
    ways: list[list[str | Argument]] = [[]]
    if not texts or word_scores(texts) or sample.are_marks(first, in_lists=True):
        failures = {} if not texts else scores_of_failures(first, map(outcome_of, texts))
        ways = [[Argument("scores", failures, "tally")] * bool(failures)]
    elif not _are_numbers(sample, first):
        ways = ways_to_score([outcome_of(text) for text in texts], {})
    else:
        is_lower = is_better_lower(first) or is_failure(first)
        lower = [Argument("better", "lower", "tally")] * is_lower
        ways = [[Argument("scores", "numbers", "tally"), *lower]]
    written: list[list[str | Argument]] = []
    for way in ways:
        conditions = [reading.when] * bool(reading.when)
        conditions += [piece.removeprefix("if ")[:-2] for piece in way if isinstance(piece, str)]
        when = [f"if {', and '.join(conditions)}: "] * bool(conditions)
        written.append([*when, *columns, *(p for p in way if isinstance(p, Argument))])
    return written


def _readings(
    sample: Sample, roles: Mapping[str, Any], marked: list[Any], free: Labels, of_file: bool
) -> tuple[str, list[Reading]]:
    """Return what a table without a usual outcome column may hold, in words and as readings."""
    counts = _counts_of_systems(sample, free)
    if not counts and not marked and not _has_several_rows_each(sample, roles):
        counts = likely_counts(sample, free)
    if counts:
        guessed = [name for own in counts.values() for name in (own if isinstance(own, list)
                   else [own]) if name in free]  # fmt: skip
        trials = counts.get("trials")
        one = "Trials may be one number for all questions. " * (trials is ...)
        one += f"Shares fit {trials} trials of every question, or twice as many, and so on. " * (
            isinstance(trials, int))  # fmt: skip
        return f"Counts or rates may be in {shown(guessed)[1:-1]}. {one}", [Reading(counts)]
    predictions = [name for name in free if last_part(name) in _PREDICTION_NAMES]
    references = [name for name in free if last_part(name) in REFERENCE_NAMES]
    if not predictions and len(references) == 2:  # of which "answer" is what was answered
        predictions = [name for name in references if last_part(name) == "answer"]
        references = [name for name in references if name not in predictions]
    if len(predictions) == len(references) == 1 and {*marked} <= {*predictions, *references}:
        words = f"A trial is right where {predictions[0]!r} equals {references[0]!r}. "
        return words, [Reading({"answer": predictions[0], "reference": references[0]})]
    scores = [] if marked else _likely_scores(sample, roles, free)
    words = f"Scores may be in {shown(scores, 160)[1:-1]}. " * bool(scores)
    kind = "marks" if marked else "scores"
    return words, _readings_of(sample, marked or scores, kind, roles, of_file)


def _readings_of(
    sample: Sample, columns: list[Any], kind: str, roles: Mapping[str, Any], of_file: bool
) -> list[Reading]:
    """Return what columns of marks or scores may be: of systems, of trials, of a judge, or one."""
    each = [
        Reading({"outcome": name}, f"the {kind} are in {shown(name)}" * (len(columns) > 1))
        for name in columns[:_MAX_ALTERNATIVES]
    ]
    if len(columns) < 2:
        return each or [Reading({"outcome": ...})]
    stems = {str(name).rstrip("0123456789") for name in columns}
    if kind == "marks" and len(stems) == 1 and "trial" not in roles and "system" in roles:
        together = [
            name for name in sample.cells
            if sample.are_marks(name, in_lists=True) and str(name).rstrip("0123456789") in stems
        ]  # fmt: skip
        return [Reading({"outcome": together}, "each is a trial")]
    truths = sample.truths(columns) if kind == "marks" else []
    judged = [
        Reading({"outcome": name},
                f"{shown(name)} is what a judge says and {shown(truths[0])} the truth, where known",
                (Argument(TRUTH, truths[0], "tally"),))
        for name in columns if truths and name not in truths
    ]  # fmt: skip
    judged = judged[:_MAX_ALTERNATIVES]
    if any(map(is_truth_name, truths)):
        return judged + each
    as_systems, wide = "is a system", (Argument("wide", True),)
    beside = [name for name in columns if name in sample.names]
    keys = columns_of(roles, "question", "trial")
    are_scores = kind == "scores"
    readings = list[Reading]()
    if len(beside) > 1 and of_file and sample.tell_apart(keys) and not (
        are_scores and "system" in roles
    ):  # fmt: skip
        readings = [Reading({"outcome": beside}, f"each column of {kind} {as_systems}", wide)]
        numbers = [share_of(text) or 0.0 for name in beside for text in sample.distinct(name)]
        if are_scores and max(numbers) > 0.0 and all(map(float.is_integer, numbers)):
            stated = re.search(r"\bof (\d+)\b", str(beside[0]))  # such as "alpha (of 5)"
            trials = int(stated[1]) if stated else int(max(numbers))
            counts = {"successes": beside, "trials": trials}
            most = f"each number counts successes of {trials} trials, or of more"
            readings.insert(0 if stated else 1, Reading(counts, most))
        elif are_scores and 0.0 < max(numbers) <= 100.0:
            shares = {"rate": beside, "trials": ...}
            readings += [Reading(shares, "each is a share of successes, of so many trials")]
        if len(stems) > 1 and all(str(name)[-1].isdecimal() for name in beside):
            rows = "write a row for each system and question"
            readings[0] = readings[0]._replace(
                when=f"{readings[0].when} (of numbered trials of several systems, {rows})"
            )
        elif not are_scores and "trial" not in roles:
            readings += [Reading({"outcome": beside}, "each is a trial")]
    fields = Counter(str(name).rpartition(".")[2] for name in columns if "." in str(name))
    readings += [Reading({"outcome": field}, f"each object {as_systems}", wide)
                 for field, objects in fields.items() if objects > 1 and of_file]  # fmt: skip
    return judged + readings + each * (not readings or len(columns) <= _MAX_ALTERNATIVES)


def _has_several_rows_each(sample: Sample, roles: Mapping[str, Any]) -> bool:
    """Return whether rows are single trials: numbered, or several of a question of a system."""
    if "trial" in roles or roles.get("question", ...) is ...:
        return "trial" in roles
    return not sample.tell_apart(columns_of(roles, "system", "question"))


def _likely_scores(sample: Sample, roles: Mapping[str, Any], free: Labels) -> list[Any]:
    """Return the columns that may be scores: numbers or few words that differ within a question.

    A column with each of its values in as many rows numbers trials or names conditions, unless its
    words are those of another. Other
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
        and (not _is_balanced(sample, name) or _is_measurement(name))
        and _count_role(sample, name) != "trials"
    ]
    others = [name for name in differing
              if not _MEASUREMENT_NAME.search(normalized_name(name))]  # fmt: skip
    likely = others or differing
    words = [{*sample.distinct(name)} for name in likely if not _are_numbers(sample, name)]
    return [name for name in free if name in likely or {*sample.distinct(name)} in words]


def _is_measurement(name: Any) -> bool:
    """Return whether a column is called as one of measurements, such as times."""
    return bool(_MEASUREMENT_NAME.search(normalized_name(name))) or is_better_lower(name)


def _are_numbers(sample: Sample, name: Any) -> bool:
    """Return whether a column holds numbers or percentages alone, perhaps with decimal commas."""
    return None not in [share_of(text.replace(",", ".")) for text in sample.distinct(name)]


def _is_balanced(sample: Sample, name: Any) -> bool:
    """Return whether several values of a column are in as many rows each, more than one."""
    rows = Counter(sample.cells[name]).values()
    return min(rows) == max(rows) > 1


def _likely_systems(sample: Sample, roles: Mapping[str, Any], free: Labels) -> list[Any]:
    """Return the columns of few words that may be systems: each is in as many rows of a question.

    Nothing is returned where the question is not known, or the system is.
    """
    if "system" in roles or roles.get("question", ...) is ...:
        return []
    used = columns_of(roles, *roles)
    question = columns_of(roles, "question")
    likely = []
    for name in free:
        values = sample.distinct(name)
        few = 1 < len(values) <= MAX_CONDITIONS and values[0][0] not in "[{"
        if name in used or not few or None not in map(number_of, values):
            continue
        rows = Counter(sample.rows([*question, name]))
        questions = len({cell[:-1] for cell in rows})
        if len(rows) == questions * len(values) and len({*rows.values()}) == 1 < questions:
            likely.append(name)
    return likely


def _likely_questions(sample: Sample, free: Labels, system: Labels) -> tuple[list[Any], bool]:
    """Return the columns that may be questions, and whether their values come more than once.

    By their names; else by their values, if each is in as many rows, of the column with the most
    first; else all that hold no measurements.
    """
    labels = [
        name for name in free
        if 1 < len(sample.distinct(name)) and sample.distinct(name)[0][0] not in "[{"
        and not sample.is_one_to_one(name, system)
        and not _is_measurement(name)
    ]  # fmt: skip
    repeated = [name for name in labels if len(sample.distinct(name)) < len(sample)]
    ids = [name for name in repeated if _ID_NAME.search(normalized_name(name))
           or last_part(name) in usual_names("question")]  # fmt: skip
    if ids or not repeated:
        return ids or [name for name in labels if _hold_labels(sample, name)], bool(ids)
    balanced = [name for name in repeated
                if _is_balanced(sample, name) and len(sample.distinct(name)) > 4]  # fmt: skip
    if balanced:
        return sorted(balanced, key=lambda name: -len(sample.distinct(name))), True
    return [name for name in repeated if _hold_labels(sample, name)], False


def _hold_labels(sample: Sample, name: Any) -> bool:
    """Return whether values may be labels: text or whole numbers, which no name calls counts."""
    texts = sample.distinct(name)
    return not _count_role(sample, name) and not any(
        (share_of(text) or 0.0) % 1.0 or text.endswith("%") for text in texts)  # fmt: skip


def _counts_of_systems(sample: Sample, free: Labels) -> dict[str, Any]:
    """Return columns of successes and of trials, in one order, that differ in the same words.

    Examples
    --------
    >>> names = ["a_correct", "a_samples", "b_correct", "b_samples"]
    >>> _counts_of_systems(Sample(names, {name: ["2", "3"] for name in names}), names)
    {'successes': ['a_correct', 'b_correct'], 'trials': ['a_samples', 'b_samples']}
    """
    successes, trials = (
        [name for name in free if _count_role(sample, name, 0.0) == role]
        for role in ("successes", "trials")
    )
    words = {name: {*normalized_name(name).split("_")} for name in free}
    differing = [words[one] ^ words[other] for one, other in zip(successes, trials, strict=False)]
    if not 1 < len(successes) == len(trials) or any(own != differing[0] for own in differing):
        return {}
    if not any(_count_role(sample, name) for name in trials):  # one trial of each question
        return {}
    return {"successes": successes, "trials": trials}


def _count_role(sample: Sample, name: Any, least: float = 2.0) -> str:
    """Return which counts or rates a column may hold, or "", from its name and largest value."""
    texts, normalized = sample.distinct(name), normalized_name(name)
    numbers = [number for number in map(share_of, texts) if number is not None]
    if not numbers or len(numbers) < len(texts) or _MEASUREMENT_NAME.search(normalized):
        return ""
    if all(text.endswith("%") for text in texts):
        return "rate"
    if (at_k := PASS_AT_K.search(normalized)) and int(at_k[1]) > 1:
        return ""
    if RATE_NAME.search(normalized) and (MARK_NAME.search(normalized) or "acc" in normalized):
        return "rate"
    if not all(map(float.is_integer, numbers)) or max(numbers) < least:
        return ""
    kinds = (role for role, pattern in _COUNT_NAMES.items() if re.search(pattern, normalized))
    return "trials" if normalized.endswith("total") else next(kinds, "")


def are_fractions(sample: Sample, names: Labels) -> bool:
    """Return whether columns hold successes of trials, such as 4/5."""
    texts = [text for name in names for text in sample.distinct(name)]
    return bool(texts) and all(re.fullmatch(r"\s*\d+\s*/\s*\d+\s*", text) for text in texts)


def _trials_of_shares(sample: Sample, names: Any) -> Any:
    """Return the fewest trials of which all shares are shares, if that is no chance; else "...".

    A number of `d` decimals is by chance a share of `n` trials with a probability of about
    ``n / 10**d``.

    Examples
    --------
    >>> _trials_of_shares(Sample(["a"], {"a": ["0.25", "0.50", "0.75", "1.00"]}), "a")
    4
    >>> _trials_of_shares(Sample(["a"], {"a": ["0.71", "0.68"]}), "a")
    Ellipsis
    """
    columns = names if isinstance(names, list) else [names]
    written = {text for name in columns for text in sample.distinct(name)}
    texts = {text.rstrip("% ") for text in written}
    shares = [number_of(text) or 0.0 for text in texts]
    whole = 100.0 if max(shares) > 1.0 or texts != written else 1.0
    levels = whole * 10.0 ** max(len(text.partition(".")[2]) for text in texts)
    most = 100
    for trials in range(1, most + 1):
        counts = [share / whole * trials for share in shares]
        if all(abs(count - round(count)) <= 0.5 * trials / levels for count in counts):
            return trials if (trials / levels) ** len(texts) < 1e-3 else ...
    return ...


def _share_of_trials(sample: Sample, trials: Any, free: Labels) -> Any:
    """Return the one column called a mean whose cells are shares of a column of trials, or None.

    Examples
    --------
    >>> cells = {"mean": ["0.667", "0.5"], "sd": ["0.577", "0.707"], "n": ["3", "2"]}
    >>> _share_of_trials(Sample([*cells], cells), "n", ["mean", "sd"])
    'mean'
    """
    found = []
    for name in free if trials in sample.cells else ():
        rows = [row for row in sample.rows([name, trials]) if all(row)]
        numbers = [(number_of(share), number_of(count)) for share, count in rows]
        decimals = max((len(share.partition(".")[2]) for share, _ in rows), default=0)
        if _MEAN_NAME.search(normalized_name(name)) and numbers and all(
            share is not None and count is not None and 0.0 <= share <= 1.0 <= count
            and abs(share * count - round(share * count)) <= 0.51 * count / 10.0**decimals
            for share, count in numbers
        ):  # fmt: skip
            found.append(name)
    return found[0] if len(found) == 1 else None


def likely_counts(sample: Sample, free: Labels) -> dict[str, Any]:
    """Return the columns that may be counts or rates, by role, from their names and values."""
    usual = usual_columns("trials", free)
    likely: dict[str, Any] = {"trials": usual[0]} if len(usual) == 1 else {}
    for name in sorted(free, key=lambda name: len(str(name))):
        likely.setdefault(_count_role(sample, name), name)
    likely.pop("", None)
    if (of_one := _share_of_trials(sample, likely.get("trials"), free)) is not None:
        likely.setdefault("rate", of_one)
    rates = [name for name in free if _count_role(sample, name) == "rate"]
    percentages = [name for name in rates
                   if all(text.endswith("%") for text in sample.distinct(name))]  # fmt: skip
    systems = systems_of_columns(rates) if len(rates) > 1 else tuple(rates)
    if systems != tuple(rates) and not any(map(is_outcome_name, systems)):
        likely["rate"] = rates
    elif len(percentages) > 1:
        likely["rate"] = percentages
    fractions = [name for name in free if are_fractions(sample, [name])]
    if fractions:
        return {"rate": fractions if len(fractions) > 1 else fractions[0]}
    if "rate" in likely:
        return {
            "rate": likely["rate"],
            "trials": likely.get("trials") or _trials_of_shares(sample, likely["rate"]),
        }
    if {"successes", "failures"} <= likely.keys():
        likely.pop("trials", None)
    return likely if "successes" in likely and len(likely) == 2 else {}
