"""The error where roles of columns are unclear, and the columns that it proposes for them."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from bayesatk._tools.messages import Argument
from bayesatk.data.role_doubts import condition_doubt
from bayesatk.data.roles import (
    MARK_NAME,
    MAX_CONDITIONS,
    ONE,
    PROMPT_NAMES,
    RATE_NAME,
    REFERENCE_NAMES,
    TRUTH,
    Sample,
    columns_of,
    is_better_lower,
    normalized_name,
    scores_of_failures,
    usual_columns,
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

# Found in names of columns that count trials, and in those of other measurements.
_COUNT_NAMES = {"failures": "fail|wrong|unsolved", "successes": "pass|succ|solved|correct",
            "trials": "trial|run|attempt|episode|rollout|sample|tries|total|^n_|^num_"}  # fmt: skip
_MEASUREMENT_NAME = re.compile(
    "(^|_)(len|length|time|runtime|latency|duration|sec|seconds|ms|s|min|max|mean|std|best|steps?"
    "|size|tokens?)(_|$)"
)
_PREDICTION_NAMES = (
    "prediction", "predicted", "pred", "predicted_answer", "model_answer", "model_output",
    "extracted_answer", "parsed_answer", "given_answer", "response", "completion", "output",
)  # fmt: skip


def unclear_roles(
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
    return OutcomeError(*pieces, ".", *_doubts_as_proposed(sample, roles, proposed, of_file))


def _doubts_as_proposed(
    sample: Sample, roles: Mapping[str, Any], proposed: Mapping[str, Any], of_file: bool
) -> list[str | Argument]:
    """Return what may be read wrongly if the question is the column that is proposed."""
    if proposed.get("question", ...) in (..., ONE):
        return []
    found = {role: name for role, name in {**proposed, **roles}.items() if name is not ...}
    used = columns_of(found, *found)
    doubts = [condition_doubt(sample, found, name, of_file)
              for name in sample.names if name not in used]  # fmt: skip
    return [piece for doubt in filter(None, doubts) for piece in (" As proposed, ", *doubt)]


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
        few = 1 < len(values) <= MAX_CONDITIONS and values[0][0] not in "[{"
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
        known = [mark for mark in marked if "" in sample.cells[mark]]  # of some trials only
        judged = [way for mark, way in zip(marked, each, strict=True) if mark not in known]
        truth: list[Any] = []
        if len(judged) == len(known) == 1:
            truth = [*judged, Argument(TRUTH, known[0], "tally"),
                     f" (if {shown(known[0])} is the truth of some trials), or "]  # fmt: skip
        return [*truth, *[part for way in each for part in (", or ", way)][1:]]
    columns = Argument("columns", dict(proposed), "tally")
    if not texts or word_scores(texts) or sample.are_marks(name):
        failures = {} if not texts else scores_of_failures(name, map(outcome_of, texts))
        return [columns, *[Argument("scores", failures, "tally")] * bool(failures)]
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
                and not sample.is_one_to_one(name, system)]  # fmt: skip
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
    if RATE_NAME.search(normalized) and (MARK_NAME.search(normalized) or "acc" in normalized):
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
