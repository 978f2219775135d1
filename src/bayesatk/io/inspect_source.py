"""`inspect_source`: report the format and contents of files, and the next command."""

import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bayesatk.data.outcomes import Outcomes
from bayesatk.data.validation import OutcomeError
from bayesatk.io.load import load
from bayesatk.io.readers import find_files
from bayesatk.io.sources import named_paths


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

    See Also
    --------
    bayesatk.load : reads the files.
    """

    kinds: Mapping[str, Sequence[str]]
    data: Outcomes | None
    error: OutcomeError | None
    doubts: tuple[object, ...]
    metrics: tuple[str, ...]
    command: str

    def as_text(self, write: Callable[[object], str] = str) -> str:
        """Return the report, with messages written by `write` (for Python or for the shell)."""
        lines = [_listed(kind, names) for kind, names in self.kinds.items()]
        if self.data is not None:
            lines += [self.data.card()]
        lines += [f"Look at: {write(doubt)}" for doubt in self.doubts]
        if self.error is not None:
            lines += [f"Cannot be read: {write(self.error)}"]
        if self.metrics:
            lines += [f"Metrics: {', '.join(self.metrics)}", f"Next: {self.command}"]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.as_text()

    __repr__ = __str__


def inspect_source(source: object, **options: Any) -> SourceReport:
    r"""Report the format and contents of files, what is missing or doubtful, and what to run next.

    Parameters
    ----------
    source : path, sequence of paths, or mapping {system: path or paths}
        As for `bayesatk.load`.
    **options
        Of `bayesatk.load`, but for ``missing``: outcomes that are missing are counted here.

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
    ({'csv': ['runs.csv']}, ('pass@1', 'bayes'))
    >>> print(str(report).splitlines()[-1])
    Next: bayesatk evaluate .../runs.csv -m pass@1 -m bayes --missing ignore
    """
    kinds: dict[str, list[str]] = {}
    data = error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            inputs = find_files(
                source, options.get("format"), False, bool(options.get("strict", False))
            )
            for file in inputs.sources:
                kinds.setdefault(file.kind, []).append(file.name)
            data = load(source, **{**options, "missing": "ignore"})
        except OutcomeError as refusal:
            error = refusal
    doubts: list[object] = [caught_warning.message for caught_warning in caught]
    if data is None:
        return SourceReport(kinds, data, error, tuple(doubts), (), "")
    metrics = _metrics(data)
    command = _command(source, options, data, metrics)
    return SourceReport(kinds, data, error, (*doubts, *_doubts(data)), metrics, command)


def _listed(kind: str, names: Sequence[str]) -> str:
    counts = Counter(names)
    labels = [name if number == 1 else f"{name} ({number})" for name, number in counts.items()]
    more = f" and {len(labels) - 12} more" if len(labels) > 12 else ""
    return f"{kind}: {', '.join(labels[:12])}{more}"


def _doubts(data: Outcomes) -> list[str]:
    """Return properties of the data that may be mistakes."""
    trials, counts = data.trials.values, data.dataset["count"].sum("question").values
    doubts = []
    for system, system_trials, category_counts in zip(data.systems, trials, counts, strict=True):
        least, most = system_trials.min(), system_trials.max()
        # From 20 trials on, all right or all wrong is worth a second look.
        if system_trials.sum() >= 20 and (category_counts > 0).sum() == 1:
            label = data.dataset["category"].values[category_counts.argmax()]
            doubts.append(f"every outcome of {system} is {label}")
        if least != most:
            doubts.append(f"{system} has {least} to {most} trials of a question")
    if trials.max(initial=0) == 1:
        doubts.append("each question was tried once: nothing says how often a system would repeat")
    unrun = int(((trials == 0) & (data.dataset["missing"].values == 0)).sum())
    if unrun:
        doubts.append(f"{unrun} pairs of system and question were never run (--shared)")
    return doubts


def _metrics(data: Outcomes) -> tuple[str, ...]:
    """Return the metrics that the outcomes support without going beyond the trials."""
    run = data.trials.values
    k = int(run[run > 0].min(initial=int(run.max(initial=0))))
    voted = (f"plurality@{k}",) if data.answers is not None else ()
    if data.binary:
        votes = (f"maj@{k - 1 + k % 2}",) if k >= 3 else ()
        drawn = (f"pass@1,{k}", f"pass^{k}") if k > 1 else ("pass@1",)
        return (*drawn, *votes, "bayes", *voted)
    return ("bayes", f"{'max' if data.direction > 0 else 'min'}@{k}", *voted)


def _command(
    source: object, options: Mapping[str, Any], data: Outcomes, metrics: Sequence[str]
) -> str:
    """Return the command that evaluates what was read."""
    words = ["bayesatk", "evaluate"]
    words += [f"{name}={path}" if name else str(path) for name, path in named_paths(source)]
    words += [word for metric in metrics for word in ("-m", metric)]
    for name, value in options.items():
        if name != "progress" and value not in (None, False):
            words += _flags(name, value)
    if data.dataset["missing"].values.any() or (data.trials.values == 0).any():
        words += ["--missing", "ignore"]
    return shlex.join(words)


def _flags(name: str, value: object) -> list[str]:
    """Return an option of `bayesatk.load` as options of the command."""
    flag = {"columns": "--column", "scores": "--score"}.get(name, f"--{name.replace('_', '-')}")
    if isinstance(value, Mapping):
        return [word for pair in value.items() for word in (flag, f"{pair[0]}={pair[1]}")]
    return [flag] if value is True else [flag, str(value)]
