"""Logs of Inspect: ``.eval`` archives and ``.json`` documents, without Inspect itself.

Facts of the format: an archive holds ``header.json`` and one ``samples/ID_epoch_N.json`` for every
sample and epoch (deflate, or zstd since release 0.3.206); a document holds the same records under
``samples``. A score is ``{"value": ..., "answer": ...}`` under the name of its scorer; an unscored
sample has no score or the value NaN, which is written as such.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import COST
from bayesatk.data.content import digest
from bayesatk.data.validation import OutcomeError, is_missing, shown
from bayesatk.io.archive import Archive
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.rows import EMPTY, Rows, Trial


def read_log(file: BinaryIO, path: Path, system: str | None, rows: Rows) -> None:
    """Read a log in either form."""
    start = file.read(4)
    file.seek(0)
    read = _read_document if start.lstrip()[:1] in (b"{", b"\xef") else _read_archive
    read(file, _Log(path.name, system, rows))


def _read_archive(file: BinaryIO, log: "_Log") -> None:
    """Read a ``.eval`` archive."""
    archive = Archive(file)
    header = "header.json" if "header.json" in archive.names else "_journal/start.json"
    if header not in archive.names:
        raise OutcomeError(
            "the archive must be an Inspect log; it has no header.json. Pass the .eval "
            "file that Inspect wrote."
        )
    head = parse(archive.read(header), header)
    log.start(head)
    for member in archive.names:
        if member.startswith("samples/") and member.endswith(".json"):
            log.add(parse(archive.read(member), member))
    log.finish()


def _read_document(file: BinaryIO, log: "_Log") -> None:
    """Read a ``.json`` log, one sample at a time."""
    head: dict[str, Any] = {}
    with decoded(file) as text:
        for key, _, value in members(text, frozenset({"samples"})):
            if key != "samples":
                head[key] = value
                continue
            if not log.started:
                log.start(head)
            log.add(value)
    if not log.started:
        log.start(head)
    log.finish()


class _Log:
    """One log on its way into the rows."""

    def __init__(self, name: str, system: str | None, rows: Rows) -> None:
        self.name, self.system, self.rows = name, system, rows
        self.task, self.model, self.started = "", "", False
        self.head: dict[str, Any] = {}
        self.expected, self.seen = 0, 0
        self.scorers: dict[str, None] = {}
        self.limits: Counter[str] = Counter()

    def start(self, head: object) -> None:
        """Take what holds for the whole log."""
        spec = _mapping(_mapping(head, "the log").get("eval"), "its 'eval'")
        self.task, self.model = str(spec.get("task", "")), str(spec.get("model", ""))
        if self.system is None and not self.model:
            raise OutcomeError(
                "the log must name its model; 'eval' has none. Name the system yourself: ",
                Argument("source", {"name": "file.eval"}, "load"), ".",
            )  # fmt: skip
        self.head = _mapping(head, "the log")
        self.expected = _expected(spec)
        self.rows.open(self.name)
        self.started = True

    def add(self, record: object) -> None:
        """Take one sample."""
        sample = _mapping(record, "a sample")
        self.seen += 1
        mark, answer, reason = self._mark(sample)
        if sample.get("limit"):
            self.limits[str(_mapping(sample["limit"], "a limit").get("type", "limit"))] += 1
        metadata = sample.get("metadata")
        fields: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
        spent = _spent(sample)
        if self.rows.roles.get(COST) in spent:  # of the trial; metadata are of the question
            fields = fields | spent
        self.rows.add(
            Trial(
                system=self.system or self.model,
                task=self.task,
                question=sample.get("id"),
                trial=sample.get("epoch", 1),
                outcome=mark,
                answer=answer if self.rows.options.answers else None,
                content=_content(sample),
                reason=reason,
                fault=EMPTY if _is_empty(sample) else "",
                identity=str(sample.get("uuid") or ""),
                known=self.rows.known(fields.get, [*fields, *spent]),
            )
        )

    def finish(self) -> None:
        """Note what was cut short, and refuse a log whose marks are not of one scorer."""
        status = str(self.head.get("status", "started"))
        if status != "success" or self.seen == 0 or self.seen < self.expected:
            self.rows.note(
                f"CHECK: {self.name} has status {status!r} and {self.seen} trials"
                + f" of {self.expected}" * bool(self.expected)
            )
        wanted, names = self.rows.options.scorer, ", ".join(map(repr, self.scorers))
        if wanted is not None and self.scorers and wanted not in self.scorers:
            raise OutcomeError(
                f"scorer must be one of {names}; got {shown(wanted)}. Or leave this log out, or "
                "read it alone."
            )
        if wanted is None and len(self.scorers) > 1:
            raise OutcomeError(
                f"one scorer must be chosen; the log has {names}. Choose: ",
                Argument("scorer", next(iter(self.scorers))), ".",
            )  # fmt: skip
        if self.scorers:
            self.rows.marked_by(f"Inspect's scorer {wanted or next(iter(self.scorers))!r}")
        for kind, number in self.limits.items():
            self.rows.note(f"{number} trials of {self.name} were ended by a limit ({kind})")

    def _mark(self, sample: dict[str, Any]) -> tuple[object, object, str]:
        """Return mark, answer, and the reason if there is no mark."""
        if sample.get("error"):
            return None, None, "errored"
        if sample.get("invalidation"):
            return None, None, "invalidated"
        scores = _mapping(
            sample.get("scores") or {}, f"the scores of sample {shown(sample.get('id'))}"
        )
        marks = _marks(scores)
        self.scorers |= dict.fromkeys(marks)
        scorer = self.rows.options.scorer or next(iter(marks), "")
        if scorer not in marks or is_missing(marks[scorer][0]):
            return None, None, "unscored"
        value, answer = marks[scorer]
        if isinstance(value, list | dict):
            raise OutcomeError(
                f"a mark must be text, a number or true/false; sample {shown(sample.get('id'))} "
                f"has {shown(value)}. Choose a scorer whose value is one, or reduce it there."
            )
        return value, answer, ""


def _spent(sample: dict[str, Any]) -> dict[str, Any]:
    """Return what a sample cost, all its models together: dollars, tokens, seconds of work."""
    usage = sample.get("model_usage")
    models = (
        [usage_entry for usage_entry in usage.values() if isinstance(usage_entry, dict)]
        if isinstance(usage, dict)
        else []
    )
    spent: dict[str, Any] = {}
    for name in ("cost", "tokens", "input_tokens", "output_tokens"):
        field = f"total_{name}" if name in ("cost", "tokens") else name
        amounts = [usage_entry.get(field) for usage_entry in models]
        if amounts and all(isinstance(amount, int | float) for amount in amounts):
            spent[name] = sum(amounts)
    seconds = sample.get("working_time", sample.get("total_time"))
    return spent | ({"seconds": seconds} if isinstance(seconds, int | float) else {})


def _expected(spec: dict[str, Any]) -> int:
    """Return how many trials the whole evaluation has; 0 if the log does not say."""
    dataset, config = spec.get("dataset"), spec.get("config")
    if not isinstance(dataset, dict) or not isinstance(config, dict):
        return 0
    ids, epochs = dataset.get("sample_ids"), config.get("epochs") or 1
    if not isinstance(ids, list) or not isinstance(epochs, int):
        return 0
    return len(ids) * epochs if 0 < epochs < 1_000_000 else 0  # more is no number of epochs


def _marks(scores: dict[str, Any]) -> dict[str, tuple[object, object]]:
    """Return value and answer by scorer."""
    marks: dict[str, tuple[object, object]] = {}
    for name, score in scores.items():
        score = score if isinstance(score, dict) else {"value": score}
        for label, value in _values(name, score.get("value")):
            marks[label] = value, score.get("answer")
    return marks


def _values(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the marks of one scorer: several are told apart as SCORER/KEY."""
    if isinstance(value, dict) and value:
        yield from ((f"{name}/{key}", mark) for key, mark in value.items())
    else:
        yield name, value


def _mapping(value: object, subject: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OutcomeError(
            f"{subject} must be an object, as Inspect writes it; got {shown(value)}."
        )
    return value


def _content(sample: dict[str, Any]) -> str:
    """Digest of input, choices and target: the order of choices gives letters their meaning."""
    choices, target = json.dumps(sample.get("choices")), json.dumps(sample.get("target"))
    return digest(_asked(sample.get("input")), choices, target)


def _asked(prompt: object) -> str:
    """Return the text of an input; the identifiers that a run gives its messages are no part."""
    if not isinstance(prompt, list):
        return str(prompt)
    messages = [
        message if isinstance(message, dict) else {"content": message} for message in prompt
    ]
    return json.dumps([[message.get("role"), message.get("content")] for message in messages])


def _is_empty(sample: dict[str, Any]) -> bool:
    """Whether the model returned nothing: no completion, no tool call."""
    output = sample.get("output")
    if not isinstance(output, dict):
        return False
    if output.get("completion"):
        return False
    choices = output.get("choices")
    if not isinstance(choices, list):
        return False
    return not any(_says(choice) for choice in choices)


def _says(choice: object) -> bool:
    message = choice.get("message") if isinstance(choice, dict) else None
    return isinstance(message, dict) and bool(message.get("content") or message.get("tool_calls"))
