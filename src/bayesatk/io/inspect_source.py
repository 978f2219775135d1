"""`inspect_source`: report the format and contents of files, and the next command."""

import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import READS, Argument, Message
from bayesatk._tools.words import by_same_text
from bayesatk.comparison.checks.trials import check_trials
from bayesatk.core.question.observed import largest_observed_k
from bayesatk.data.columns import Picked
from bayesatk.data.long_form import LongForm
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.role_doubts import is_suite
from bayesatk.data.roles import (
    COST,
    COUNTS,
    GROUP,
    ROLES,
    Sample,
    as_tuple,
    columns_named,
    last_part,
    usual_columns,
)
from bayesatk.data.tally import worst_or_best
from bayesatk.data.validation import OutcomeError, Scores, number_of, shown
from bayesatk.io.load import find_files, load, read_outcomes, reads_files, with_typed_options
from bayesatk.io.load_options import LoadOptions, as_option
from bayesatk.io.log_rows import ReadOptions
from bayesatk.io.logs.formats import LOGS
from bayesatk.io.saved import load_result
from bayesatk.io.sources import Source, named_paths, open_source
from bayesatk.io.table_files import sample_of


@dataclass(frozen=True)
class SourceReport:
    """Report of `inspect_source`: formats, contents, doubts and the next command. Print it.

    Parameters
    ----------
    kinds : mapping of str to list of str
        Names of files, by the format that was recognised.
    data : Outcomes, optional
        The outcomes, with missing ones left out; None if the files cannot be read.
    error : OutcomeError, optional
        Why they cannot be read, and what to do.
    doubts : tuple of str or Message
        Properties of the data that may be mistakes.
    metrics : tuple of str
        Metrics that can be estimated from the number of trials in the data.
    command : str
        Shell command to run next.
    columns : mapping of str to tuple of str
        What each column of a table was taken for, if anything, and what its first rows hold.
    facts : tuple of str
        What a saved result says of itself.

    See Also
    --------
    bayesatk.load : reads the files.
    """

    kinds: Mapping[str, Sequence[str]]
    data: Outcomes | None = None
    error: OutcomeError | None = None
    doubts: tuple[object, ...] = ()
    metrics: tuple[str, ...] = ()
    command: str = ""
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    facts: tuple[str, ...] = ()

    def as_json(self, write: Callable[[object], str] = str) -> dict[str, Any]:
        """Return the report as what JSON can hold."""
        document = {
            "formats": {kind: list(names) for kind, names in self.kinds.items()},
            "columns": {
                name: {"taken_for": taken or None, "holds": holds}
                for name, (taken, holds) in self.columns.items()
            },
            "facts": list(self.facts),
            "doubts": [write(doubt) for doubt in self.doubts],
            "error": None if self.error is None else write(self.error),
            "metrics": list(self.metrics),
            "command": self.command or None,
        }
        if self.data is not None:
            trials = self.data.trials.values
            document |= {
                "systems": list(map(str, self.data.systems)),
                "questions": trials.shape[1],
                "trials": {
                    "total": int(trials.sum()),
                    "least": int(trials.min()),
                    "most": int(trials.max()),
                },
                "missing": int(self.data.dataset["missing"].sum()),
                "notes": list(self.data.notes),
            }
        return document

    def as_text(self, write: Callable[[object], str] = str) -> str:
        """Return the report, with messages written by `write` (for Python or for the shell)."""
        lines = [_listed(kind, names) for kind, names in self.kinds.items()]
        if self.data is not None:
            lines += [self.data.card()]
        width = max([0, *(len(name) for name in self.columns)])
        lines += [
            f"  {name:<{width}}  {taken or '-':<10}  {holds}"
            + ("" if taken or self.data is None else write(_kept_with(name)))
            for name, (taken, holds) in self.columns.items()
        ]
        lines += self.facts
        lines += [f"Look at: {write(doubt)}" for doubt in self.doubts]
        if self.error is not None:
            lines += [f"Cannot be read: {write(self.error)}"]
        if self.metrics:
            lines += [f"Metrics: {', '.join(self.metrics)}", f"Next: {self.command}"]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.as_text()

    __repr__ = __str__


@reads_files
def inspect_source(source: object, **options: Any) -> SourceReport:
    r"""Report the format and contents of files, what is missing or doubtful, and what to run next.

    Parameters
    ----------
    source : path, sequence of paths, or mapping {system: path or paths}
        As for `bayesatk.load`; or a result of `bayesatk.save`, which is read whole.
    **options
        Of `bayesatk.load`. Whatever ``missing`` is, outcomes that are missing are counted here.

    Returns
    -------
    SourceReport
        Print it. A file that cannot be read is no error here: the report says why, and what to do.

    Raises
    ------
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    bayesatk.load : reads the files.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("task,trial,passed\na,1,1\na,2,0\nb,1,1\nb,2,\n")
    >>> report = inspect_source(path)
    >>> report.kinds, report.metrics
    ({'csv': ['runs.csv']}, ('pass@1,2', 'pass^2'))
    >>> print(str(report).splitlines()[-1])
    Next: bayesatk evaluate .../runs.csv -m pass@1,2 -m 'pass^2' --missing ignore
    """
    if isinstance(source, str | Path) and Path(source).suffix in (".nc", ".zarr"):
        return _of_result(Path(source))
    options_of_load = {name: options[name] for name in options if name in _DEFAULTS}
    typed_options = {name: options[name] for name in options if name not in _DEFAULTS}
    arguments = with_typed_options(
        {**_DEFAULTS, **options_of_load, "missing": "ignore", "more": typed_options}, LoadOptions
    )
    kinds: dict[str, list[str]] = {}
    data = error = long = inputs = None
    scale: Scores = {}
    columns = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            recognition_options = {
                name: value for name, value in options.items() if name in ("format", "strict")
            }
            inputs = find_files(source, ReadOptions(**recognition_options))
            for file in inputs.sources:
                kinds.setdefault(file.kind, []).append(file.name)
            columns = _columns(inputs.sources[0], options)
            data, long, scale = read_outcomes(source, arguments)
        except OutcomeError as refusal:
            error = refusal
    max_bytes = 1 << 24  # of files that are read again for every proposal
    if error and inputs and sum(file.path.stat().st_size for file in inputs.sources) <= max_bytes:
        error = _with_readings(error, source, arguments)
    doubts: list[object] = [caught_warning.message for caught_warning in caught]
    if data is None or long is None:
        return SourceReport(kinds, error=error, doubts=tuple(doubts), columns=columns)
    said = {f"CHECK: {doubt}" for doubt in doubts}  # and not again on the card
    data = replace(data, notes=tuple(note for note in data.notes if note not in said))
    metrics = usual_metrics(data)
    command = _command(source, options, data, metrics)
    gaps = int(data.dataset["missing"].sum())
    if gaps and options.get("missing") in (None, "error"):  # nobody said what they mean
        ignored = Argument("missing", "ignore"), " leaves them out, as below; "
        doubts.append(Message(f"missing outcomes: {gaps}; ", *ignored, *worst_or_best()))
    doubts += by_same_text(data.systems, _doubts(data) + _of_trials(long, scale, data))
    return SourceReport(kinds, data, error, tuple(doubts), metrics, command, columns)


def _kept_with(name: str) -> Message:
    """Return the argument that keeps a column called as costs or as a suite, if it is one."""
    is_cost = bool({"cost", "costs", "price", "usd"} & {*last_part(name).split("_")})
    roles = [COST] * is_cost + [GROUP] * is_suite(name)
    kept = [("; kept with ", Argument(role, name)) for role in roles]
    return Message("", *(piece for pair in kept for piece in pair))


def _with_readings(
    error: OutcomeError, source: object, arguments: Mapping[str, Any]
) -> OutcomeError:
    """Return a refusal with what the files would hold after each of its proposals."""
    pieces: list[Any] = []
    for is_argument, run in groupby(error.args, lambda piece: isinstance(piece, Argument)):
        proposal = [*run]
        pieces += proposal
        changes = {piece.name: piece.value for piece in proposal} if is_argument else {}
        if not changes or None in changes.values() or "Ellipsis" in repr(changes):
            continue
        proposed = {**arguments, **changes}
        for name in ("columns", "where"):
            proposed[name] = {**(arguments[name] or {}), **changes.get(name, {})}
        for name in proposed["ignore"] or ():  # no longer the column of a role
            proposed["columns"] = {
                role: column for role, column in proposed["columns"].items() if column != name
            }
        with warnings.catch_warnings(), suppress(OutcomeError, FileNotFoundError):
            warnings.simplefilter("ignore")
            data = read_outcomes(proposed.pop("source", source), proposed)[0]
            pieces.append(f"{READS}{_in_words(data)})")
    return OutcomeError(*pieces)


def _in_words(data: Outcomes) -> str:
    """Return the numbers of questions, trials and systems, and the mean score of each system.

    Examples
    --------
    >>> from bayesatk.data.tally import tally
    >>> _in_words(tally({"a": [[0, 1], [1, 1]], "b": [[0, 1], [0, 0]]}))
    '2 questions x 2 trials x 2 systems: a 75%, b 25% right'
    """
    trials = data.trials.values
    questions, most = trials.shape[1], int(trials.max())
    least = f"{trials.min()} to " * bool(np.ptp(trials))
    sizes = f"{questions} question{'s' * (questions > 1)} x {least}{most} trial{'s' * (most > 1)}"
    counts = data.dataset["count"].sum("question").transpose("system", "category").values
    means = counts @ data.dataset["score"].values / counts.sum(axis=1)
    written = [f"{mean:.0%}" if data.right_or_wrong else f"{mean:.4g}" for mean in means]
    word = " right" if data.right_or_wrong else " on average"
    if len(written) == 1:
        return f"{sizes}: {written[0]}{word}"
    max_systems = 4  # on a line
    named = [
        f"{shown(name)[1:-1]} {mean}" for name, mean in zip(data.systems, written, strict=True)
    ]
    more = f" and {len(named) - max_systems} more" * (len(named) > max_systems)
    return f"{sizes} x {len(named)} systems: {', '.join(named[:max_systems])}{more}{word}"


def _of_result(path: Path) -> SourceReport:
    """Return the report of a saved result: whether it is whole, its method and its groups."""
    try:
        tree = load_result(path)
    except ValueError as error:
        return SourceReport({"result": [path.name]}, error=OutcomeError(str(error)))
    attrs = tree.attrs
    facts = (
        f"a whole result of {attrs.get('method', 'another operation')}, made at "
        f"{attrs.get('created_at', 'an unknown time')}, seed {attrs.get('seed', 'unknown')}",
        f"groups: {', '.join(tree.children)}",
    )
    return SourceReport({"result": [path.name]}, facts=facts)


# Default options of `load`.
_DEFAULTS: dict[str, Any] = load.__wrapped__.__kwdefaults__  # type: ignore[attr-defined]


def _columns(source: Source, options: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return role and content of every column of a table by name; nothing for logs."""
    if source.kind in LOGS:
        return {}
    names_of_options = {option.name for option in fields(ReadOptions)}
    read_options = {
        name: value for name, value in options.items() if name in names_of_options and value
    }
    with open_source(source) as file, suppress(OutcomeError, UnicodeDecodeError):  # as `load` says
        return _described(sample_of(source, file, ReadOptions(**read_options)), options)
    return {}


def _described(sample: Sample, options: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return role and content of every column by its name, from the first rows of a table."""
    columns, names = dict(options.get("columns") or {}), sample.names
    role_by_column: dict[str, str] = {}
    for role in ROLES:  # by usual names, also if some roles stay unclear
        candidates = usual_columns(role, names, columns.values())
        candidates = [*columns_named(columns[role], names)] if role in columns else candidates
        if role not in COUNTS:
            role_by_column |= {name: role + "?" * (len(candidates) > 1) for name in candidates}
    with suppress(OutcomeError):
        picked = Picked.of(sample, columns)
        roles = {
            name: role
            for role, columns_of_role in picked.roles.items()
            for name in as_tuple(columns_of_role)
        }
        role_by_column = dict.fromkeys(picked.content, "content") | roles
    max_columns, mark_columns = 15, sample.marked()  # on one screen
    # Columns with a role, and those that may hold marks, come first.
    ordered = sorted(
        names, key=lambda name: name not in role_by_column and name not in mark_columns
    )
    described = {
        name: (
            role_by_column.get(name, "marks?" if name in mark_columns else ""),
            _holds(sample.cells[name]),
        )
        for name in ordered[:max_columns]
    }
    unlisted = len(names) - max_columns
    rows_line = {} if sample.whole else {f"by the first {len(sample)} rows": ("", "")}
    return described | ({f"and {unlisted} more": ("", "")} if unlisted > 0 else {}) | rows_line


def _holds(texts: Sequence[str]) -> str:
    """Describe the content of a column from its first cells as texts."""
    present = [text for text in texts if text]
    blank = f", {len(texts) - len(present)} blank" * (len(present) < len(texts))
    if not present:
        return "nothing"
    if present[0][0] in "[{":
        return ("lists" if present[0][0] == "[" else "objects") + blank
    distinct = dict.fromkeys(present)
    numbers = list(map(number_of, distinct))
    if len(distinct) <= 4 and max(map(len, distinct)) < 20:
        return ", ".join(sorted(distinct)) + blank
    if None not in numbers:
        least, largest = min(numbers), max(numbers)  # type: ignore[type-var]
        return f"numbers from {least:g} to {largest:g}" + blank
    return f"text, {len(distinct)} different of {len(present)}" + blank


def _listed(kind: str, names: Sequence[str]) -> str:
    """Return a line with the names of the files of a format."""
    counts = Counter(names)
    labels = [name if number == 1 else f"{name} ({number})" for name, number in counts.items()]
    more = f" and {len(labels) - 12} more" if len(labels) > 12 else ""
    return f"{kind}: {', '.join(labels[:12])}{more}"


def _doubts(data: Outcomes) -> list[str]:
    """Return properties of the data that may be mistakes."""
    trials, counts = data.trials.values, data.dataset["count"].sum("question").values
    doubts = []
    category_counts_by_question = (
        data.dataset["count"].transpose("system", "question", "category").values
    )
    uneven = (np.ptp(trials, axis=1) > 0) & ~data.stopped
    for system_number, (system, system_trials, category_counts) in enumerate(
        zip(data.systems, trials, counts, strict=True)
    ):
        # From 20 trials on, all right or all wrong is worth a second look.
        if system_trials.sum() >= 20 and (category_counts > 0).sum() == 1:
            label = data.dataset["category"].values[category_counts.argmax()]
            doubts.append(f"{system}: every outcome is {label}")
        if uneven[system_number]:
            doubts.append(
                f"{system}: {trials[uneven].min()} to {trials[uneven].max()} trials of a question"
            )
        if _all_alike(category_counts_by_question[system_number]):
            doubts.append(
                f"{system}: all trials of a question have one mark, of each of the questions: "
                "are answers cached, or rows copied?"
            )
    if trials.max(initial=0) == 1:
        doubts.append("each question was tried once: nothing says how often a system would repeat")
    unrun = int(((trials == 0) & (data.dataset["missing"].values == 0)).sum())
    if unrun:
        together = (trials > 0).all(axis=0).any()
        doubts.append(
            f"{unrun} pairs of system and question were never run; "
            + (
                "compare those that every system tried: --shared --missing ignore"
                if together
                else "no question was tried by every system: are the questions named by their "
                "column?"
            )
        )
    return doubts


def _of_trials(long: LongForm, scale: Scores, data: Outcomes) -> list[str]:
    """Return doubts about the exchangeability of numbered trials, if they are not too many."""
    trials, max_trials = data.trials.values, 200_000
    repeated = trials.max(initial=0) > 1 and trials.sum() <= max_trials
    if not (data.binary and repeated) or long.trial_labels is None or long.cell is None:
        return []
    system, question = np.divmod(long.cell, len(long.questions))
    columns = {
        "system": np.array(long.systems, object)[system],
        "question": np.array(long.questions, object)[question],
        "trial": long.trial_labels,
        "outcome": np.array([np.nan, *scale.values()])[long.code + 1],
    }
    with (
        warnings.catch_warnings(),
        suppress(OutcomeError),
    ):  # a failed check is no error of the file
        warnings.simplefilter("ignore")
        checks = check_trials(pd.DataFrame(columns)[long.code >= 0])
        flagged = checks[checks["flagged"]]
        return [f"{system}: {text}" for system, text in flagged[["system", "sentence"]].values]
    return []


def _all_alike(counts: Ints) -> bool:
    """Return whether all trials of each question are of one category, as cached answers are.

    At least ten questions must have two trials or more, and not all be of the same category: a
    system that is always right repeats itself without a cache.
    """
    repeated = counts[counts.sum(axis=1) > 1]
    each_of_one_category = bool(((repeated > 0).sum(axis=1) == 1).all())
    return (
        len(repeated) >= 10 and each_of_one_category and bool((repeated.sum(axis=0) > 0).sum() > 1)
    )


def usual_metrics(data: Outcomes) -> tuple[str, ...]:
    """Return the default metrics, with k up to what most questions have trials for.

    Examples
    --------
    >>> from bayesatk.data.tally import tally
    >>> usual_metrics(tally([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]]))
    ('pass@1,2,4', 'pass^2,4')
    """
    max_k = min(largest_observed_k(data.observed_up_to), int(data.trials.max()))
    powers = [str(2**power) for power in range(max_k.bit_length())]
    vote_metrics = (f"plurality@{max_k}",) if data.answers is not None else ()
    ks, repeated_ks = ",".join(powers), ",".join(powers[1:])
    if data.right_or_wrong:
        # Of retries pass^k is not observed: no question has two successes.
        has_repeated = repeated_ks and not data.stopped.any()
        return (f"pass@{ks}", *[f"pass^{repeated_ks}"] * bool(has_repeated), *vote_metrics)
    best = "max" if data.direction > 0 else "min"  # of one trial it is the mean
    return ("mean", *[f"{best}@{repeated_ks}"] * bool(repeated_ks), *vote_metrics)


def _command(
    source: object, options: Mapping[str, Any], data: Outcomes, metrics: Sequence[str]
) -> str:
    """Return the command that evaluates what was read."""
    words = ["bayesatk", "evaluate"]
    words += [f"{name}={path}" if name else str(path) for name, path in named_paths(source)]
    words += [word for metric in metrics for word in ("-m", metric)]
    flags = [
        as_option(name, value)
        for name, value in options.items()
        if name not in ("progress", "missing") and value not in (None, False)
    ]
    if data.dataset["missing"].values.any() or (data.trials.values == 0).any():
        flags.append("--missing ignore")
    return " ".join([shlex.join(words), *flags])
