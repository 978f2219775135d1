"""Logs of Inspect: ``.eval`` archives and ``.json`` documents, without Inspect itself.

Facts of the format: an archive holds ``header.json`` and one ``samples/ID_epoch_N.json`` for every
sample and epoch (deflate, or zstd since release 0.3.206); a document holds the same records under
``samples``. A score is ``{"value": ..., "answer": ...}`` under the name of its scorer; an unscored
sample has no score or the value NaN, which is written as such.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from bayesatk.data.content import digest
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.logs.record_logs import Record, RecordLog
from bayesatk.io.rows import EMPTY


def _sample(sample: Record) -> Iterator[dict[str, Any]]:
    """Read a sample ``{id, epoch, input, choices, target, scores, output, metadata, ...}``."""
    unmarked = "errored" if sample("error") else "invalidated" if sample("invalidation") else ""
    values, answers = ({}, {}) if unmarked else _values_and_answers(sample)
    if limit := sample("limit"):
        kind = limit.get("type", "limit") if isinstance(limit, dict) else "limit"
        sample.head.setdefault("limits by kind", Counter())[str(kind)] += 1
    epoch = sample.fields.get("epoch", 1)
    yield {
        "trial": math.nan if epoch is None else epoch,  # it is not for the reader to number it
        "outcome": values,
        "answer": answers,
        "content": _content(sample),
        "reason": unmarked or "unscored",
        "fault": EMPTY if _is_empty(sample) else "",
        "known": _spent(sample),
    }


def _values_and_answers(sample: Record) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return values and answers by scorer: several values of one are told apart as SCORER/KEY."""
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
        named = {name: value}
        if isinstance(value, dict) and value:
            named = {f"{name}/{key}": mark for key, mark in value.items()}
        values |= named
        answers |= dict.fromkeys(named, score.get("answer"))
    return values, answers


def _spent(sample: Record) -> dict[str, Any]:
    """Return what a sample cost, all its models together: dollars, tokens, seconds of work."""
    usages = [usage for usage in sample.of(dict, "model_usage").values() if isinstance(usage, dict)]
    spent: dict[str, Any] = {}
    for name, counted in (
        ("cost", "total_cost"), ("tokens", "total_tokens"), ("input_tokens", "input_tokens"),
        ("output_tokens", "output_tokens"),
    ):  # fmt: skip
        amounts = [usage.get(counted) for usage in usages]
        if amounts and all(isinstance(amount, int | float) for amount in amounts):
            spent[name] = sum(amounts)
    seconds = sample("working_time|total_time")
    return spent | ({"seconds": seconds} if isinstance(seconds, int | float) else {})


def _content(sample: Record) -> str:
    """Digest of input, choices and target: the order of choices gives letters their meaning.

    The identifiers that a run gives its messages are no part of the input.
    """
    prompt = sample("input")
    if isinstance(prompt, list):
        messages = [message if isinstance(message, dict) else {"content": message}
                    for message in prompt]  # fmt: skip
        prompt = json.dumps([[message.get("role"), message.get("content")] for message in messages])
    return digest(prompt, json.dumps(sample("choices")), json.dumps(sample("target")))


def _is_empty(sample: Record) -> bool:
    """Whether the model returned nothing: no completion, no tool call."""
    choices = sample("output.choices")
    if sample("output.completion") or not isinstance(choices, list):
        return False
    messages = [choice("message") for choice in sample.inner("output.choices")]
    return not any(
        isinstance(message, dict) and (message.get("content") or message.get("tool_calls"))
        for message in messages
    )


def _notes(log: Record, number: int) -> Iterator[str]:
    """Yield what the header says against the number of samples, and how many were cut short."""
    ids, epochs = log.of(list, "eval.dataset.sample_ids"), log("eval.config.epochs") or 1
    # More than a million is no number of epochs.
    planned = len(ids) * epochs if isinstance(epochs, int) and 0 < epochs < 1_000_000 else 0
    name, status = log.path.name, str(log.fields.get("status", "started"))
    if status != "success" or number < max(1, planned):
        text = f"CHECK: {name} has status {status!r} and {number} trials"
        yield text + f" of {planned}" * bool(planned)
    for kind, cut_short in log.of(dict, "limits by kind").items():
        yield f"{cut_short} trials of {name} were ended by a limit ({kind})"


INSPECT = RecordLog(
    "inspect", "archive", ("eval|samples",),
    {"system": "^eval.model", "task": "^eval.task", "question": "id", "identity": "uuid"},
    within="metadata", read=_sample, marker="Inspect's scorer {scorer}", records="samples",
    named_by="log", honours=("scorer", "answers", "task", "question_key"),
    notes=_notes,
)  # fmt: skip
