"""Which column of a table has which role: as named, else by usual names and by values.

The columns of all roles are found, or one error names every role that is unclear.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from bayesatk._tools.messages import Argument, alternatives
from bayesatk.data.role_doubts import (
    is_id_name,
    is_metric,
    measure_doubt,
    repeated_ids,
    repeated_measures,
    way_to_keep_once,
)
from bayesatk.data.role_proposals import (
    are_fractions,
    fitting_trials,
    likely_counts,
    refuse_varying_totals,
    unclear_roles,
)
from bayesatk.data.roles import (
    BY_TRIAL,
    COUNTS,
    COVARIATE,
    GROUP,
    KEY,
    LABELS,
    PLACEHOLDERS,
    PROMPT_NAMES,
    REFERENCE_NAMES,
    ROLES,
    WEIGHT,
    Sample,
    as_tuple,
    columns_named,
    columns_of,
    last_part,
    normalized_name,
    systems_of_trials,
    trial_columns,
    usual_columns,
    usual_names,
)
from bayesatk.data.validation import (
    Labels,
    OutcomeError,
    number_of,
    shown,
)


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
    names = [
        name
        for name in sample.names
        if not (scanned and name in sample.cells) or sample.distinct(name)
    ]
    in_use = columns_of(named, *named.keys() - {"content"})
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
    _refuse_copies(sample, roles, of_file)
    if unclear:
        raise unclear_roles(sample, names, {**named, **roles}, unclear, of_file)
    roles = _key_of_systems(sample, roles)
    roles |= {role: name for role, name in named.items() if role.startswith(COVARIATE)}
    _refuse_repeated_measures(sample, roles, of_file)
    refuse_varying_totals(sample, roles, of_file)
    return roles


def _refuse_repeated_measures(sample: Sample, roles: Mapping[str, Any], of_file: bool) -> None:
    """Refuse rows of several metrics or raters of a trial, which would be its repetitions."""
    unused = [name for name in sample.names if name not in columns_of(roles, *roles)]
    for name in repeated_measures(sample, roles, unused):
        words, where = measure_doubt(sample, name)
        ways: list[list[str | Argument]] = [["", Argument("where", where)]] * of_file
        if not is_metric(name):
            system = [*columns_of(roles, "system"), name]
            named = Argument("columns", {"system": system if len(system) > 1 else name})
            ways += [[f"if the system includes {shown(name)}: ", named]]
            ways += [["if its rows are further trials: ", Argument("ignore", [name])]] * of_file
        remedies = (": ", *alternatives(ways)) if ways else ()
        rule = "rows of a table must be of one metric or rater"
        raise OutcomeError(f"{rule}; {words}", *remedies, ".")


def _refuse_copies(sample: Sample, roles: Mapping[str, Any], of_file: bool) -> None:
    """Refuse rows that equal an earlier one in every column, although columns tell trials apart.

    Numbered trials that are repeated are refused later, with their places.
    """
    rows = Counter(sample.rows(sample.cells))
    copies = len(sample) - len(rows)
    telling = _tell_trials_apart(sample, roles, rows) if copies and "trial" not in roles else []
    if telling:
        raise OutcomeError(
            f"rows of a table must not be copies; {copies} of {len(sample)} equal an earlier one "
            f"in every column, also in {shown(telling, 100)[1:-1]}, by which trials are told "
            f"apart. Remove them{way_to_keep_once(sample, of_file)}."
        )


def _tell_trials_apart(
    sample: Sample, roles: Mapping[str, Any], rows: Mapping[tuple[str, ...], int]
) -> list[Any]:
    """Return columns that tell all different rows apart: of one trial each, or such as a time.

    The latter differ within a question, and have nothing twice in different rows of the table.
    Then few rows of a question are equal, or each row has as many copies: what was answered to one
    question may be equal by chance.
    """
    key, outcome = columns_of(roles, "system", "question"), columns_of(roles, "outcome")
    if len(outcome) > 1:
        return outcome * (len({*sample.rows(key)}) == len(rows))
    question, excluded = columns_of(roles, "question"), (*PROMPT_NAMES, *REFERENCE_NAMES)
    questions = len({*sample.rows(question)})
    varying = [
        name
        for name in sample.leaves()
        if name not in (*key, *outcome)
        and last_part(name) not in excluded
        and len({*sample.rows([*question, name])}) > questions
    ]
    equal = sum(number * (number - 1) for number in rows.values())
    pairs = sum(number * (number - 1) for number in Counter(sample.rows(key)).values())
    least_rows, most_equal = 10, 0.1
    by_design = equal <= most_equal * pairs or len({*rows.values()}) == 1
    unique = len({*sample.rows(varying)}) == len(rows) >= least_rows
    return varying * (by_design and unique)


def _key_of_systems(sample: Sample, roles: dict[str, Any]) -> dict[str, Any]:
    """Return the roles with the key of JSON objects as system, if it holds several questions."""
    if KEY not in sample.names or KEY in columns_of(roles, *roles) or "system" in roles:
        return roles
    keys = set(sample.rows([KEY]))
    questions = set(sample.rows(columns_of(roles, "question")))
    are_systems = len(keys) <= len(questions) and len(keys) < len(sample)
    return {"system": KEY, **roles} if are_systems else roles


def refuse_row_as_names(sample: Sample) -> None:
    """Refuse names of columns that look like the cells of a row.

    No name is usual, and all are numbers, or half of them and one that is no number come again in
    their own columns.
    """
    names = [str(name) for name in sample.names]
    repeated = [name for name in names if name in sample.cells.get(name, ())]
    words = [name for name in repeated if number_of(name) is None]
    all_are_numbers = None not in map(number_of, names)
    if not repeated or {*map(last_part, names)} & usual_names():
        return
    if all_are_numbers or (words and 2 * len(repeated) >= len(names)):
        raise OutcomeError(
            f"a table must have names of its columns in the first row; got {shown(names)}, which "
            "look like a trial. Write a row of names above it, such as "
            "system,question,trial,outcome."
        )


def _candidates(
    role: str,
    names: Labels,
    taken: Collection[Any],
    sample: Sample,
    roles: Mapping[str, Any],
    named: Mapping[str, Any],
) -> list[Any] | None:
    """Return the columns that may have a role, by their names and values."""
    if role == "outcome":  # a column may be the group and the outcome
        taken = [name for name in taken if name not in columns_of(named, GROUP, WEIGHT)]
    matches = usual_columns(role, names, taken)
    if role == "outcome":  # marks may be within objects
        matches = [name for name in matches if not _are_objects(sample, name)]
    if role == "question":
        matches = [_id_within(sample, name) for name in matches]
        matches = [name for name in matches if normalized_name(name) not in PROMPT_NAMES] or matches
        matches = [name for name in matches if name != KEY] or matches  # may be of systems
        trial = columns_of(named, "trial") or usual_columns("trial", names, taken)
        others = [name for name in names if name not in (*taken, *trial) and is_id_name(name)]
        key = trial and [*columns_of(roles, "system"), *trial]
        numbered = [id_ for name in matches for id_ in repeated_ids(sample, name, others, key)]
        return [*dict.fromkeys(numbered)] if trial and numbered else matches
    if role == "trial" and {*map(normalized_name, matches)} <= {*ROLES["trial"][-1].split()}:
        key = columns_of(roles, "system", "question")
        matches = [
            name for name in matches if "question" in roles and _numbers_rows(sample, key, name)
        ][:1]
    if role == "trial" and len(matches) > 1:
        key = columns_of(roles, "system", "question")
        alone = [name for name in matches if sample.tell_apart([*key, name])]
        return alone[:1] or ([tuple(matches)] if sample.tell_apart([*key, *matches]) else matches)
    if role == "outcome" and matches:
        matches = _different_marks(matches, names, taken, sample)
    if role == "outcome" and not matches:
        marks = [name for name in names if name not in taken and sample.are_marks(name)]
        beside = marks if systems_of_trials(marks) else trial_columns(names)
        return [tuple(beside)] if len(beside) > 1 else []
    if role == "outcome" and len(matches) == 1:  # a column "correct" may count
        counts = likely_counts(sample, [name for name in names if name not in taken])
        are_counts = counts.get("successes") == matches[0] or are_fractions(sample, matches)
        return [] if are_counts else matches
    return matches


def _numbers_rows(sample: Sample, key: Labels, name: Any) -> bool:
    """Return whether the different rows with one key have different whole numbers in a column."""
    numbers = [number_of(text) for text in sample.distinct(name)]
    rows = {*sample.rows(sample.cells)}
    return all(number is not None and number.is_integer() for number in numbers) and (
        len({*sample.rows([*key, name])}) == len(rows) > 0
    )


def _are_objects(sample: Sample, name: Any) -> bool:
    """Return whether a column holds objects."""
    return any(text.startswith("{") for text in sample.distinct(name)[:1])


def _id_within(sample: Sample, name: Any) -> Any:
    """Return the id or name within the objects of a column, or else the column."""
    fields = (f"{name}.id", f"{name}.name") if _are_objects(sample, name) else ()
    return next((path for path in fields if sample.distinct(path)), name)


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
    return any(role in named for role in COUNTS) or (unmarked and len(usual) > 1)


def _named_roles(sample: Sample, columns: object) -> dict[str, Any]:
    """Return the roles that `columns=` names, or refuse unknown roles, columns and combinations."""
    names = {*sample.names, *sample.cells, *sample.fields, *PLACEHOLDERS}
    valid = isinstance(columns, Mapping)
    named = dict(columns) if isinstance(columns, Mapping) else {}
    for role, name in named.items():
        parts = columns_named(name, names)
        is_number = role == "trials" and number_of(name) is not None
        valid = valid and (len(parts) == 1 or role in (*LABELS, *COUNTS, "outcome", "rate"))
        valid = valid and (
            is_number or all(isinstance(part, str | int) and part in names for part in parts)
        )
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
    fractions = "trials" not in named and are_fractions(sample, as_tuple(named.get("rate")))
    if "rate" in named and named.get("trials", "NUMBER") == "NUMBER" and not fractions:
        fit, trials = fitting_trials(sample, as_tuple(named["rate"]))
        raise OutcomeError(
            f"columns must give the number of trials beside a rate, one for all questions or a "
            f"column{fit}: ",
            Argument("columns", {"rate": named["rate"], "trials": trials}),
            ".",
        )
    if not valid:
        absent = [
            part
            for name in named.values()
            for part in columns_named(name, names)
            if isinstance(part, str) and part not in names
        ]
        near = [(name, *get_close_matches(name, [*map(str, names)], 1)) for name in absent]
        meant = "".join(f" Is {pair[0]!r} meant as {pair[1]!r}?" for pair in near if pair[1:])
        has = f"a table with columns {shown(list(sample.names), 400)}"
        if absent:
            raise OutcomeError(
                f"columns that are named must be in the table; there is no column "
                f"{' and no column '.join(map(shown, absent))} in {has}."
                f"{meant or ' Name one of these.'}"
            )
        raise OutcomeError(
            f"columns must map {', '.join(ROLES)} to names in the table; got {shown(columns, 200)} "
            f"for {has}."
        )
    used = columns_of(named, *named.keys() - {"content"})
    counts = {*COUNTS} & named.keys()
    of_systems = {
        len(as_tuple(named[role])) for role in ("rate", "successes", "failures") if role in named
    }
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
            ": two of trials, successes and failures say the third",
            "Leave one out.",
        ),
        (
            len(of_systems) > 1 or len(as_tuple(named.get("trials"))) not in {1, *of_systems},
            " must have counts of as many systems in every role, or one of trials for all",
            "Name the columns of every system, in the same order.",
        ),
        (
            len(set(used)) < len(used),
            " must give every role its own column",
            "Name another column, or leave the role out.",
        ),
    ):
        if is_wrong:
            raise OutcomeError(f"columns{rule}; got {shown(columns)}. {remedy}")
    return named
