"""Logs of Inspect: ``.eval`` archives and ``.json`` documents, without Inspect itself.

Facts of the format: an archive holds ``header.json`` and one ``samples/ID_epoch_N.json`` for every
sample and epoch (deflate, or zstd since release 0.3.206); a document holds the same records under
``samples``. A score is ``{"value": ..., "answer": ...}`` under the name of its scorer; an unscored
sample has no score or the value NaN, which is written as such.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk.io.archive import Archive
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.rows import Rows, Trial, digest
from bayesatk.validation import OutcomeError, is_missing, shown

_SAMPLE = re.compile(r"samples/.+\.json")


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
            "the archive must be an Inspect log; it has no header.json. Is it the log itself?"
        )
    head = parse(archive.read(header), header, None)
    log.start(head)
    for member in archive.names:
        if _SAMPLE.fullmatch(member):
            log.add(parse(archive.read(member), member, None))
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
        self.status, self.expected, self.seen = "started", 0, 0
        self.limits: Counter[str] = Counter()

    def start(self, head: object) -> None:
        """Take what holds for the whole log."""
        spec = _mapping(_mapping(head, "the log").get("eval"), "its 'eval'")
        self.task, self.model = str(spec.get("task", "")), str(spec.get("model", ""))
        if self.system is None and not self.model:
            raise OutcomeError(
                "the log must name its model; 'eval' has none. Name the system yourself: "
                "load({'name': 'file.eval'})."
            )
        self.status = str(_mapping(head, "the log").get("status", "started"))
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
        self.rows.add(
            Trial(
                system=self.system or self.model,
                task=self.task,
                question=sample.get("id"),
                trial=sample.get("epoch", 1),
                outcome=mark,
                answer=answer,
                content=digest(_asked(sample.get("input")), json.dumps(sample.get("target"))),
                reason=reason,
                empty=_is_empty(sample),
                identity=str(sample.get("uuid") or ""),
            )
        )

    def finish(self) -> None:
        """Note what was cut short."""
        if self.status != "success":
            self.rows.note(
                f"CHECK: {self.name} has status {self.status!r} and {self.seen} trials"
                + f" of {self.expected}" * bool(self.expected)
            )
        for kind, number in self.limits.items():
            self.rows.note(f"{number} trials of {self.name} were ended by a limit ({kind})")

    def _mark(self, sample: dict[str, Any]) -> tuple[object, object, str]:
        """Return mark, answer, and the reason if there is no mark."""
        if sample.get("error"):
            return None, None, "errored"
        if sample.get("invalidation"):
            return None, None, "invalidated"
        scores = _mapping(sample.get("scores") or {}, "the scores of a sample")
        if not scores:
            return None, None, "unscored"
        chosen = _chosen(scores, self.rows.options.scorer)
        if chosen is None:
            return None, None, "unscored"
        value, answer = chosen
        if is_missing(value):
            return None, answer, "unscored"
        if not isinstance(value, str | int | float):
            raise OutcomeError(
                f"a mark must be text, a number or true/false; sample {shown(sample.get('id'))} "
                f"has {shown(value)}. Choose a scorer whose value is one, or reduce it there."
            )
        return value, answer, ""


def _expected(spec: dict[str, Any]) -> int:
    """Return how many trials the whole evaluation has; 0 if the log does not say."""
    dataset, config = spec.get("dataset"), spec.get("config")
    if not isinstance(dataset, dict) or not isinstance(config, dict):
        return 0
    ids, epochs = dataset.get("sample_ids"), config.get("epochs") or 1
    return len(ids) * epochs if isinstance(ids, list) and isinstance(epochs, int) else 0


def _chosen(scores: dict[str, Any], scorer: str | None) -> tuple[object, object] | None:
    """Return value and answer of the scorer: the only one, or the one that was named."""
    found = {}
    for name, score in scores.items():
        score = score if isinstance(score, dict) else {"value": score}
        for label, value in _values(name, score.get("value")):
            found[label] = value, score.get("answer")
    if scorer is not None:
        if scorer in found:
            return found[scorer]
        if any(label.split("/")[0] == scorer.split("/")[0] for label in found):
            partial = [label for label in found if label.startswith(scorer + "/")]
            if not partial:
                return None
        raise OutcomeError(
            f"scorer must be one of {', '.join(map(repr, found))}; got {shown(scorer)}."
        )
    if len(found) > 1:
        raise OutcomeError(
            f"one scorer must be chosen; the log has {', '.join(map(repr, found))}. Choose: "
            f"scorer={next(iter(found))!r}."
        )
    return next(iter(found.values()))


def _values(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the marks of one scorer: several are told apart as SCORER/KEY."""
    if isinstance(value, dict) and value:
        yield from ((f"{name}/{key}", part) for key, part in value.items())
    else:
        yield name, value


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OutcomeError(f"{what} must be an object, as Inspect writes it; got {shown(value)}.")
    return value


def _asked(asked: object) -> str:
    """Return the text of an input; the identifiers that a run gives its messages are no part."""
    if not isinstance(asked, list):
        return str(asked)
    parts = [each if isinstance(each, dict) else {"content": each} for each in asked]
    return json.dumps([[each.get("role"), each.get("content")] for each in parts])


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
