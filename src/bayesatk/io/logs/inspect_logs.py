"""Logs of Inspect: ``.eval`` archives and ``.json`` documents, read without Inspect.

An archive holds ``header.json`` and one ``samples/ID_epoch_N.json`` for every
sample and epoch (deflate, or zstd since release 0.3.206); a document holds the same records under
``samples``. A score is ``{"value": ..., "answer": ...}`` under the name of its scorer; an unscored
sample has no score or the value NaN, which is written as such.
"""

import json
import math
import os
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk.data.columns import digest
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.json_stream import Placed, parse_json
from bayesatk.io.log_rows import EMPTY_OUTPUT, Totals
from bayesatk.io.logs.record_logs import Record, RecordLog, Trials
from bayesatk.io.sources import budget_in_use, max_unpacked_bytes, max_value_size, too_large

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

_ARCHIVE_ERRORS = (
    zipfile.BadZipFile, zlib.error, ZstdError, EOFError, OSError, NotImplementedError,
    RuntimeError, ValueError, OverflowError,
)  # fmt: skip


def _sample(sample: Record) -> Trials:
    """Read a sample ``{id, epoch, input, choices, target, scores, output, metadata, ...}``."""
    unmarked = "errored" if sample("error") else "invalidated" if sample("invalidation") else ""
    values, answers = ({}, {}) if unmarked else _values_and_answers(sample)
    if limit := sample("limit"):
        kind = limit.get("type", "limit") if isinstance(limit, dict) else "limit"
        sample.head.setdefault("limits by kind", Counter())[str(kind)] += 1
    epoch = sample.fields.get("epoch", 1)
    yield {
        "trial": math.nan if epoch is None else epoch,  # refused, since no epoch must be guessed
        "outcome": values,
        "answer": answers,
        "content": _content(sample),
        "reason": unmarked or "unscored",
        "fault": EMPTY_OUTPUT if _is_empty(sample) else "",
        "known": _spent(sample),
    }


def _values_and_answers(sample: Record) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return values and answers by scorer, or by SCORER/KEY for a scorer with several values."""
    scores = sample("scores") or {}
    if not isinstance(scores, dict):
        raise OutcomeError(
            f"the scores of sample {shown(sample('id'))} must be an object, as Inspect writes it; "
            f"got {shown(scores)}."
        )
    values: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    for name, score in scores.items():
        score = score if isinstance(score, dict) else {"value": score}
        value = score.get("value")
        values_by_name = {name: value}
        if isinstance(value, dict) and value:
            values_by_name = {f"{name}/{key}": mark for key, mark in value.items()}
        values |= values_by_name
        answers |= dict.fromkeys(values_by_name, score.get("answer"))
    return values, answers


def _spent(sample: Record) -> dict[str, Any]:
    """Return the costs of a sample, summed over its models: dollars, tokens and seconds."""
    usages = [usage for usage in sample.of(dict, "model_usage").values() if isinstance(usage, dict)]
    spent: dict[str, Any] = {}
    for name, counted in (
        ("cost", "total_cost"),
        ("tokens", "total_tokens"),
        ("input_tokens", "input_tokens"),
        ("output_tokens", "output_tokens"),
    ):
        amounts = [usage.get(counted) for usage in usages]
        if amounts and all(isinstance(amount, int | float) for amount in amounts):
            spent[name] = sum(amounts)
    seconds = sample("working_time|total_time")
    return spent | ({"seconds": seconds} if isinstance(seconds, int | float) else {})


def _content(sample: Record) -> str:
    """Return a digest of input, choices in their order, and target.

    The identifiers of messages, which differ between runs, are no part of it.
    """
    prompt = sample("input")
    if isinstance(prompt, list):
        messages = [
            message if isinstance(message, dict) else {"content": message} for message in prompt
        ]
        prompt = json.dumps([[message.get("role"), message.get("content")] for message in messages])
    return digest(prompt, json.dumps(sample("choices")), json.dumps(sample("target")))


def _is_empty(sample: Record) -> bool:
    """Return whether the model returned neither a completion nor a tool call."""
    choices = sample("output.choices")
    if sample("output.completion") or not isinstance(choices, list):
        return False
    messages = [choice("message") for choice in sample.inner("output.choices")]
    return not any(
        isinstance(message, dict) and (message.get("content") or message.get("tool_calls"))
        for message in messages
    )


def _notes(log: Record, number: int) -> Iterator[str]:
    """Yield notes on unfinished runs and on trials that were ended by a limit."""
    ids, epochs = log.of(list, "eval.dataset.sample_ids"), log("eval.config.epochs") or 1
    max_epochs = 1_000_000  # a larger number is no number of epochs
    planned = len(ids) * epochs if isinstance(epochs, int) and 0 < epochs < max_epochs else 0
    name, status = log.path.name, str(log.fields.get("status", "started"))
    if status != "success" or not number:
        text = f"CHECK: {name} has status {status!r} and {number} trials"
        yield text + f" of {planned}" * bool(planned)
    for kind, cut_short in log.of(dict, "limits by kind").items():
        yield f"{cut_short} trials of {name} were ended by a limit ({kind})"


def _totals(log: Record) -> Totals:
    """Return the totals in the header of a finished run: samples, epochs, and samples in all."""
    if log.fields.get("status") != "success":  # which `_notes` reports
        return Totals()
    ids, epochs = log("eval.dataset.sample_ids"), log("eval.config.epochs")
    return Totals.stated_by(ids, epochs, log("results.total_samples"))


class InspectLog(RecordLog):
    """Logs of Inspect, whose records are members of an archive or parts of a document."""

    def placed_fields(self, file: BinaryIO, head: dict[str, Any], path: Path) -> Iterator[Placed]:
        """Yield place, name and fields of every sample; the header goes to the head."""
        if file.read(2) != b"PK":
            yield from super().placed_fields(file, head, path)
            return
        archive = Archive(file)
        headers = [name for name in ("_journal/start.json", "header.json") if name in archive.names]
        if not headers:
            raise OutcomeError(
                "the archive must be an Inspect log; it has no header.json. Pass the .eval "
                "file that Inspect wrote."
            )
        header = parse_json(archive.read(headers[-1]), headers[-1])
        head |= header if isinstance(header, dict) else {}
        for member in archive.names:
            if member.startswith("samples/") and member.endswith(".json"):
                yield member, member, parse_json(archive.read(member), member)


INSPECT = InspectLog(
    "inspect", "document", ("eval|samples",),
    {"system": "^eval.model", "task": "^eval.task", "question": "id", "identity": "uuid"},
    within="metadata", read=_sample, marker="Inspect's scorer {scorer}", records="samples",
    named_by="log", honours=("scorer", "answers", "task", "question_key"),
    notes=_notes, stated=_totals,
)  # fmt: skip


class Archive:
    """A zip archive whose members are checked against the budget and read one at a time."""

    def __init__(self, file: BinaryIO) -> None:
        max_bytes = max_unpacked_bytes(file.seek(0, os.SEEK_END))
        file.seek(0)
        with _archive_errors():
            # The list of members takes ten times its size as objects: a 64th of the budget for it.
            self._zip = zipfile.ZipFile(_Bounded(file, budget_in_use() // 64))
        members = self._zip.infolist()
        for info in members:
            name = info.filename
            if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
                raise OutcomeError(
                    f"the archive must have plain names; {name[:80]!r} leads out of it. Was it "
                    "written by the evaluation itself?"
                )
            if info.file_size > max_value_size():
                raise too_large(
                    f"the member {name[:80]!r}", max_value_size(), "bytes", info.file_size
                )
        size = sum(info.file_size for info in members)
        if size > max_bytes:
            raise too_large("the archive, unpacked,", max_bytes, "bytes", size)
        # A log that was interrupted and continued repeats names; the last member counts.
        self.names = list(dict.fromkeys(info.filename for info in members if not info.is_dir()))

    def read(self, name: str) -> bytes:
        """Return a member; stop if it is larger than the archive states."""
        info = self._zip.getinfo(name)
        bounded = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        # With other methods zipfile unpacks all that it reads at once, with zstd up to 32000:1.
        block_bytes = 1 << 20 if bounded else 1 << 12
        blocks, size = [], 0
        with _archive_errors(), self._zip.open(info) as member:
            while block := member.read(block_bytes):
                blocks.append(block)
                size += len(block)
                if size > info.file_size:
                    raise OutcomeError(
                        f"the member {name[:80]!r} must be as large as it says; it is larger. It "
                        "is damaged, or made to fill the memory: write the archive again."
                    )
        return b"".join(blocks)


class _Bounded:
    """A file of which no read may return more than so many bytes."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self._file, self._max_bytes = file, max_bytes
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Read bytes, or refuse too many."""
        content = self._file.read(
            self._max_bytes + 1 if size < 0 else min(size, self._max_bytes + 1)
        )
        if len(content) > self._max_bytes:
            raise too_large("the archive's list of members", self._max_bytes, "bytes")
        return content


@contextmanager
def _archive_errors() -> Iterator[None]:
    """Turn all errors of a broken archive into one message."""
    try:
        yield
    except OutcomeError:
        raise
    except _ARCHIVE_ERRORS as error:
        raise OutcomeError(
            f"the file must be a whole zip archive; {error or type(error).__name__}. It is "
            "truncated, damaged or encrypted: copy or write it again."
        ) from None
