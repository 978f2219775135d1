"""The error where roles of columns are unclear, and how the table may be read.

Every column or field without a role is looked at: by its name and values it may identify the
questions or the systems, or hold outcomes. A reading gives columns to all roles that are unclear;
the error writes each of them as arguments.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from bayesatk._tools.messages import Argument, alternatives
from bayesatk.data.role_doubts import (
    condition_doubts,
    is_condition,
    is_measure,
    measure_doubt,
    repeated_measures,
    summaries_among,
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
    systems_of_trials,
    usual_columns,
    usual_names,
)
from bayesatk.data.validation import (
    Labels,
    OutcomeError,
    fewest_trials,
    number_of,
    outcome_of,
    share_of,
    shares_of,
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
_PREDICTION_NAMES = (
    "prediction", "predicted", "pred", "predicted_answer", "model_answer", "model_output",
    "extracted_answer", "parsed_answer", "given_answer", "response", "completion", "output",
)  # fmt: skip
_TOTAL_WORDS = {"total", "max", "maximum", "possible", "out"}
_MAX_ALTERNATIVES = 3  # columns that are proposed one by one


class Reading(NamedTuple):
    """Columns by role, the condition under which they are meant, and arguments beside them."""

    columns: dict[str, Any]
    when: str = ""
    beside: tuple[Argument, ...] = ()


def unclear_roles(
    sample: Sample,
    names: Labels,
    known: Mapping[str, Any],
    unclear: Mapping[str, list[Any]],
    of_file: bool,
) -> OutcomeError:
    """Return one error that names all unclear roles, and proposes columns for them."""
    rules = [
        f"one {role} column; "
        + (f"several could be it: {candidates}" if candidates else "none has a usual name")
        for role, candidates in unclear.items()
    ]
    empty = [name for name in sample.names if name not in names]
    free = [name for name in sample.leaves() if name not in columns_of(known, *known)]
    marked = [name for name in sample.marked() if name in free]
    roles = {**{role: found[0] for role, found in unclear.items() if found}, **known}
    hints, questions = "", list[Any]()
    if unclear.get("question") == []:
        labels = [name for name in free if name not in marked]
        questions, repeated = _likely_questions(sample, labels, columns_of(roles, "system"))
        hints += f"Ids that come more than once are in {shown(questions, 160)[1:-1]}. " * repeated
        hints += "They can be read if all rows are trials of one question. " * (not questions)
        questions += [ONE] * (not repeated)
        roles["question"] = with_suite(sample, roles, questions[0], free)
    sample, words, where = _rows_that_are_meant(sample, roles, free, of_file)
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
    readings = [
        Reading(
            {**proposed, **reading.columns},
            reading.when,
            (*reading.beside, *[Argument("where", where)] * bool(where)),
        )
        for reading in readings
    ]
    readings += [
        readings[0]._replace(
            columns={**readings[0].columns, "question": other},
            when=(
                "all rows are trials of one question"
                if other == ONE
                else f"{shown(other)} says which question it is"
            ),
        )
        for other in questions[1:]
        if other not in columns_of(readings[0].columns, "outcome")
    ][:_MAX_ALTERNATIVES]
    ways = [way for reading in readings for way in _arguments(sample, reading)]
    naming = f"{hints}Name {'them' if len(unclear) > 1 else 'it'}: "
    if of_file and "outcome" in unclear and (within := _lists_of_records(sample, marked, unclear)):
        naming, ways = f"Marks are in {shown(marked, 160)[1:-1]}, within lists: ", within
    else:
        _refuse_leaderboard(sample, readings[0], columns_of(roles, "system"))
    proposed = {
        role: name for role, name in {**known, **readings[0].columns}.items() if name is not ...
    }
    unused = [name for name in free if name not in columns_of(proposed, *proposed)]
    doubts = condition_doubts(sample, proposed, unused * (proposed["question"] != ONE), of_file)
    return OutcomeError(
        f"the table must have {', and '.join(rules)} among {shown(list(names), 400)}"
        + f" (nothing is in {shown(empty, 100)[1:-1]})" * bool(empty)
        + ". "
        f"{naming}",
        *alternatives(ways),
        ".",
        *[piece for doubt in doubts for piece in (" As proposed, ", *doubt)],
    )


def refuse_varying_totals(sample: Sample, roles: Mapping[str, Any], of_file: bool) -> None:
    """Refuse points as outcomes where a column beside them says of how many, and varies.

    A mean of points is mostly that of the questions with many. The column of totals has words of
    the outcome's name and one such as "max", and is nowhere below the outcome.
    """
    outcome = roles.get("outcome")
    points = [] if isinstance(outcome, list) else sample.cells.get(outcome, [])
    for name in sample.names if points and not sample.are_marks(outcome) else ():
        words = {*last_part(name).split("_")}
        own = {*last_part(outcome).split("_"), "n", "num", "count", "points", "score", "of"}
        pairs = [
            (number_of(point), number_of(total))
            for point, total in zip(points, sample.cells.get(name, points), strict=True)
            if point
        ]
        is_total = name != outcome and words & _TOTAL_WORDS and words <= own | _TOTAL_WORDS
        if (
            is_total
            and len(sample.distinct(name)) > 1
            and all(
                point is not None and total is not None and point <= total for point, total in pairs
            )
        ):
            way = "; or, if a point counts as much in every question: ", Argument("ignore", [name])
            raise OutcomeError(
                f"outcomes must be shares where totals vary; {shown(outcome)} counts points of "
                f"{shown(name)}, and a mean of them is mostly that of questions with many. Add a "
                f"column with {outcome} / {name}, and name it as the outcome",
                *(way if of_file else ()),
                ".",
            )


def _refuse_leaderboard(sample: Sample, reading: Reading, system: Labels) -> None:
    """Refuse scores with a row for each system, which are no trials of one question."""
    is_scored = reading.columns.get("question") == ONE and "outcome" in reading.columns
    if is_scored and system and sample.tell_apart(system):
        raise OutcomeError(
            f"a table must have a row for each question or trial; each row is of another "
            f"{shown(system)[1:-1]}, as in a leaderboard. Give the outcome of every trial, or the "
            "numbers of trials and successes of every question."
        )


def _rows_that_are_meant(
    sample: Sample, roles: Mapping[str, Any], names: Labels, of_file: bool
) -> tuple[Sample, str, dict[Any, Any]]:
    """Return the rows by which a table is judged, in words why, and the values to select them by.

    Of several metrics or raters it is one, and a row of sums is none.
    """
    words, where = "", dict[Any, Any]()
    for name in columns_of(roles, "question"):
        summaries = summaries_among(sample.distinct(name))
        if summaries:
            words += f"{shown(summaries)[1:-1]} is called as a summary, and is left out. "
            where |= {name: [f"!{label}" for label in summaries]}
            sample = sample.only(name, {*sample.distinct(name)}.difference(summaries).__contains__)
    for name in repeated_measures(sample, roles, names) if of_file else ():
        told, row = measure_doubt(sample, name)
        words += f"{told[0].upper()}{told[1:]}, as proposed. "
        where |= row
        sample = sample.only(name, {*row.values()}.__contains__)
    return sample, words, where if of_file else {}


def _lists_of_records(
    sample: Sample, marked: Labels, unclear: Collection[str]
) -> list[list[str | Argument]]:
    """Return as proposals the lists or objects whose members have the marks, where no others do.

    Of lists within each other it is the outer one that has marks. Only JSON is read so.
    """
    named = [name for name in sample.cells if "[]" in str(name) and is_outcome_name(name)]
    paths = [str(name).rpartition("[].")[0] for name in marked or named if "[]." in str(name)]
    objects = {str(name).rpartition(".")[0] for name in marked if "[]" not in str(name)}
    if len(marked) > len(objects) == 1 and "question" in unclear and not paths:
        paths = [path for path in objects if path in sample.names]
    elif len(paths) < len(marked):
        return []
    outer = [
        path.replace("[]", "")
        for path in dict.fromkeys(paths)
        if not any(path.startswith(f"{other}[].") for other in paths)
    ]
    several = len(outer) > 1
    return [
        [f"if its objects are in {path}: "] * several + [Argument("records", path)]
        for path in outer
        if not sample.fields
    ]


def _arguments(sample: Sample, reading: Reading) -> list[list[str | Argument]]:
    """Return a reading as arguments, with scores where outcomes are no marks, in each way."""
    name = reading.columns.get("outcome")
    first = name[0] if isinstance(name, list) else name
    texts = [] if isinstance(name, list) and not reading.beside else sample.distinct(first)
    named = {
        role: list(own) if isinstance(own, tuple) else own for role, own in reading.columns.items()
    }
    columns = [*reading.beside, Argument("columns", named, "tally")]
    if not texts or word_scores(texts) or sample.are_marks(first, in_lists=True):
        failures = scores_of_failures(first, map(outcome_of, texts))
        ways: list[list[str | Argument]] = [
            [Argument("scores", failures, "tally")] * bool(failures)
        ]
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
    counts = {} if _has_several_rows_each(sample, roles) else likely_counts(sample, free)
    if (
        counts
        and ("rate" not in counts or not marked)
        and not ({*marked} - {*columns_of(counts, *counts)})
    ):
        guessed = [name for name in columns_of(counts, *counts) if name is not ...]
        one = ""
        if counts.get("trials") is ...:
            rates = columns_of(counts, "rate")
            fit, counts["trials"] = fitting_trials(sample, rates)
            one = f"Trials may be one number for all questions{fit}. "
        named = {role: list(own) if isinstance(own, tuple) else own for role, own in counts.items()}
        return f"Counts or rates may be in {shown(guessed)[1:-1]}. {one}", [Reading(named)]
    predictions = [name for name in free if last_part(name) in _PREDICTION_NAMES]
    references = [name for name in free if last_part(name) in REFERENCE_NAMES]
    if not predictions and len(references) == 2:  # of which "answer" is what was answered
        predictions = [name for name in references if last_part(name) == "answer"]
        references = [name for name in references if name not in predictions]
    if len(predictions) == len(references) == 1 and {*marked} <= {*predictions, *references}:
        words = f"A trial is right where {predictions[0]!r} equals {references[0]!r}. "
        return words, [Reading({"answer": predictions[0], "reference": references[0]})]
    columns = marked or _likely_scores(sample, roles, free)
    words = f"Scores may be in {shown(columns, 160)[1:-1]}. " * (bool(columns) and not marked)
    stems = {str(name).rstrip("0123456789") for name in columns}
    if len(columns) > 1 and all(is_measure(stem.rstrip("_ -")) for stem in stems):
        words += "Marks of several raters are not independent trials; read one, or average them. "
        return words, _each(columns, "marks")
    if marked and not any(map(is_outcome_name, marked)):  # others may be all right or all wrong
        columns = [
            name
            for name in free
            if name in marked
            or (sample.are_marks(name, in_lists=True) and len(sample.distinct(name)) == 1)
        ]
    if len(marked) == 1 < len(columns) < len(free):
        columns = marked
    if len(columns) == 1:
        refuse_varying_totals(sample, {"outcome": columns[0]}, of_file)
    return words, _readings_of(sample, columns, "marks" if marked else "scores", roles, of_file)


def _each(columns: Labels, kind: str) -> list[Reading]:
    """Return readings of single columns of marks or scores."""
    several = len(columns) > 1
    return [
        Reading({"outcome": name}, f"the {kind} are in {shown(name)}" * several)
        for name in columns[:_MAX_ALTERNATIVES]
    ]


def _readings_of(
    sample: Sample, columns: list[Any], kind: str, roles: Mapping[str, Any], of_file: bool
) -> list[Reading]:
    """Return what columns of marks or scores may be: of systems, of trials, of a judge, or one."""
    each = _each(columns, kind)
    if len(columns) < 2:
        return each or [Reading({"outcome": ...})]
    truths = sample.truths(columns) if kind == "marks" else []
    judged = [
        Reading(
            {"outcome": name},
            f"{shown(name)} is what a judge says and {shown(truths[0])} the truth, where known",
            (Argument(TRUTH, truths[0], "tally"),),
        )
        for name in columns
        if truths and name not in truths
    ][:_MAX_ALTERNATIVES]
    if any(map(is_truth_name, truths)):
        return judged + each
    wide = (Argument("wide", True),)
    beside = [name for name in columns if name in sample.names]
    key = columns_of(roles, "question", "trial")
    one_row = ONE not in key and sample.tell_apart(key)
    readings = list[Reading]()
    numbered = dict.fromkeys(systems_of_trials(beside, numbered=True))
    if len(beside) > 1 and kind == "marks" and "trial" not in roles:
        of_systems = f" of {' and '.join(map(shown, numbered))}" * bool(numbered)
        readings = [Reading({"outcome": beside}, f"each is a trial{of_systems}")]
        if "system" in roles and len({str(name).rstrip("0123456789") for name in beside}) == 1:
            return readings
    if len(beside) > 1 and of_file and one_row and not (kind == "scores" and "system" in roles):
        numbers = [share_of(text) or 0.0 for name in beside for text in sample.distinct(name)]
        as_systems = Reading({"outcome": beside}, f"each column of {kind} is a system", wide)
        readings.insert(bool(numbered), as_systems)
        if kind == "scores" and all(map(float.is_integer, numbers)):
            counts = {"successes": beside, "trials": ...}
            readings += [Reading(counts, "each number counts successes of so many trials")]
        if kind == "scores" and 0.0 < max(numbers) <= 100.0:
            shares = {"rate": beside, "trials": ...}
            readings += [Reading(shares, "each is a share of successes, of so many trials")]
    fields = Counter(str(name).rpartition(".")[2] for name in columns if "." in str(name))
    readings += [
        Reading({"outcome": field}, "each object is a system", wide)
        for field, number in fields.items()
        if number > 1 and of_file and one_row
    ]
    return judged + readings + each * (not readings or "system" in roles)


def _has_several_rows_each(sample: Sample, roles: Mapping[str, Any]) -> bool:
    """Return whether rows are single trials: numbered, or several of a question of a system."""
    if "trial" in roles or roles.get("question", ...) is ...:
        return "trial" in roles
    return not sample.tell_apart(columns_of(roles, "system", "question"))


def _likely_scores(sample: Sample, roles: Mapping[str, Any], free: Labels) -> list[Any]:
    """Return the columns that may be scores: numbers or few words that differ within a question.

    A column with each of its values in as many rows of every question numbers trials or names
    conditions. Other measurements, such as times, are taken only if there is nothing else.
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
        and (not sample.is_crossed(name, question) or _is_measurement(name))
        and _count_role(sample, name) != "trials"
    ]
    others = [name for name in differing if not _MEASUREMENT_NAME.search(normalized_name(name))]
    return others or differing


def _is_measurement(name: Any) -> bool:
    """Return whether a column is called as one of measurements, such as times."""
    return bool(_MEASUREMENT_NAME.search(normalized_name(name))) or is_better_lower(name)


def _are_numbers(sample: Sample, name: Any) -> bool:
    """Return whether a column holds numbers or percentages alone, perhaps with decimal commas."""
    return None not in [share_of(text.replace(",", ".")) for text in sample.distinct(name)]


def _likely_systems(sample: Sample, roles: Mapping[str, Any], free: Labels) -> list[Any]:
    """Return the columns of few words that may be systems: each is in as many rows of a question.

    Nothing is returned where the question is not known, or the system is.
    """
    if "system" in roles or roles.get("question", ...) is ...:
        return []
    used = columns_of(roles, *roles)
    return [
        name
        for name in free
        if name not in used
        and 1 < len(sample.distinct(name)) <= MAX_CONDITIONS
        and None in map(number_of, sample.distinct(name))
        and sample.distinct(name)[0][0] not in "[{"
        and sample.is_crossed(name, columns_of(roles, "question"))
    ]


def _likely_questions(sample: Sample, free: Labels, system: Labels) -> tuple[list[Any], bool]:
    """Return the columns that may be questions, and whether their values come more than once.

    By their names; else by their values, if each is in as many rows, of the column with the most
    first; else all that hold no measurements.
    """
    labels = [
        name
        for name in free
        if 1 < len(sample.distinct(name))
        and sample.distinct(name)[0][0] not in "[{"
        and not sample.is_one_to_one(name, system)
        and not _is_measurement(name)
        and not is_condition(name)
    ]
    labels = labels or [name for name in free if _ID_NAME.search(normalized_name(name))]
    repeated = [name for name in labels if len(sample.distinct(name)) < len(sample)]
    ids = [
        name
        for name in repeated
        if _ID_NAME.search(normalized_name(name)) or last_part(name) in usual_names("question")
    ]
    if ids or not repeated:
        return ids or [name for name in labels if _hold_labels(sample, name)], bool(ids)
    balanced = [
        name for name in repeated if sample.is_crossed(name, ()) and len(sample.distinct(name)) > 4
    ]
    if balanced:
        return sorted(balanced, key=lambda name: -len(sample.distinct(name))), True
    return [name for name in repeated if _hold_labels(sample, name)], False


def _hold_labels(sample: Sample, name: Any) -> bool:
    """Return whether values may be labels: text or whole numbers, which no name calls counts."""
    texts = sample.distinct(name)
    return not _count_role(sample, name) and not any(
        (share_of(text) or 0.0) % 1.0 or text.endswith("%") for text in texts
    )


def _count_role(sample: Sample, name: Any, least: float = 2.0) -> str:
    """Return which counts or rates a column may hold, or "", from its name and largest value."""
    texts, normalized = sample.distinct(name), normalized_name(name)
    numbers = [number for number in map(share_of, texts) if number is not None]
    if not numbers or len(numbers) < len(texts):
        return ""
    if normalized in ("mean", "avg", "average") and max(numbers) <= 1.0:
        return "mean"
    if _MEASUREMENT_NAME.search(normalized):
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


def fitting_trials(sample: Sample, rates: Labels) -> tuple[str, Any]:
    """Return the smallest number of trials of which the rates in columns can be, also in words.

    Rates of 0 and 1 alone say no number.
    """
    fewest = fewest_trials(*shares_of(text for name in rates for text in sample.distinct(name)))
    known = fewest is not None and fewest > 1
    return (f"; the rates fit {fewest}, or a multiple", fewest) if known else ("", ...)


def likely_counts(sample: Sample, free: Labels) -> dict[str, Any]:
    """Return the columns that may be counts or rates, by role, from their names and values.

    Several columns of a role, in one order, are of systems.

    Examples
    --------
    >>> names = ["a_correct", "a_samples", "b_correct", "b_samples"]
    >>> likely_counts(Sample(names, {name: ["2", "3"] for name in names}), names)
    {'trials': ('a_samples', 'b_samples'), 'successes': ('a_correct', 'b_correct')}
    """
    fractions = tuple(name for name in free if are_fractions(sample, [name]))
    if fractions:
        return {"rate": fractions if len(fractions) > 1 else fractions[0]}

    def of_role(role: str, least: float = 2.0) -> tuple[Any, ...]:
        usual = usual_columns(role, free)
        named = tuple(name for name in free if _count_role(sample, name, least) == role)
        return tuple(usual) if len(usual) == 1 else named

    trials, successes, failures, rates = map(of_role, ("trials", "successes", "failures", "rate"))
    systems = systems_of_columns(rates) if len(rates) > 1 else rates
    percentages = all(text.endswith("%") for name in rates for text in sample.distinct(name))
    if (
        len(rates) > 1
        and not percentages
        and (systems == rates or any(map(is_outcome_name, systems)))
    ):
        rates = (min(rates, key=lambda name: len(str(name))),)
    if not rates and len(trials) == 1:
        rates = tuple(name for name in free if _count_role(sample, name) == "mean")
    if len(trials) > len(successes) > 0:  # some systems never succeed twice
        successes = of_role("successes", 0.0)
    counts = (
        {"rate": rates, "trials": trials or (...,)}
        if rates
        else (
            {"successes": successes, "failures": failures}
            if failures and successes
            else {"trials": trials, "successes": successes}
            if trials and successes
            else {}
        )
    )
    lengths = {len(names) for names in counts.values()}
    if len(lengths) > 1 and (len(trials) > 1 or "failures" in counts):
        counts = {role: names[:1] for role, names in counts.items()}
    return {role: names if len(names) > 1 else names[0] for role, names in counts.items()}
