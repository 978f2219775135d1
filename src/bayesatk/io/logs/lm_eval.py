"""``samples_*.jsonl`` of lm-evaluation-harness, one file for each task and run.

Facts of the format: a row for every document *and filter*; ``metrics`` names the marks in the row;
``resps`` holds every response, though with repeats only one filtered response is marked. The model
is named by the folder, and by the ``results_*.json`` with the time of the run. So a file is one
trial of every document, and further runs are further trials (``same_system="trials"``).
"""

import json
import re
from pathlib import Path
from typing import Any, BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.content import digest
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.budget import largest, opened
from bayesatk.io.json_stream import decoded, parse
from bayesatk.io.rows import EMPTY, Rows, Trial

_NAME = re.compile(r"samples_(?P<task>.+?)(_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl")


def read_samples(file: BinaryIO, path: Path, system: str | None, rows: Rows) -> None:
    """Read one file: every row of the chosen filter is a trial of its document."""
    rows.open(f"{path.parent.name}/{path.name}")
    named = _NAME.fullmatch(path.name)
    task = named["task"] if named else path.stem
    model = system or _model(path, named["time"] if named else None, rows)
    seen = _Chosen(rows)
    with decoded(file) as lines:
        for number, line in enumerate(lines, start=1):
            record = parse(line, f"line {number}") if line.strip() else None
            if record is None:
                continue
            if not isinstance(record, dict) or "doc_id" not in record:
                raise OutcomeError(
                    f"line {number} must be an lm-eval sample, with a doc_id; got {shown(record)}."
                )
            mark = seen.mark(record, f"line {number}")
            if mark is not _OTHER:
                trial = _trial(record, mark, model, task, rows.options.answers)
                document = record.get("doc")
                document = document if isinstance(document, dict) else {}
                trial.known = rows.known(document.get, document)
                rows.add(trial)
    seen.finish()


def _trial(record: dict[str, Any], mark: object, system: str, task: str, answers: bool) -> Trial:
    answer = _only(record.get("filtered_resps"))
    response = _only(_only(record.get("resps")))
    blank = isinstance(response, str) and not response.strip()
    return Trial(
        system=system,
        task=task,
        question=record["doc_id"],
        trial="",
        outcome=mark,
        answer=answer if answers and isinstance(answer, str) else None,
        content=_content(record),
        reason="" if mark is not None else "unscored",
        fault=EMPTY if answer in ("", []) or blank else "",
    )


_OTHER = object()


class _Chosen:
    """Which filter and metric of a file are read."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.filter, self.metric = rows.options.filter, rows.options.scorer
        self.filters: list[str] = []

    def mark(self, record: dict[str, Any], where: str) -> object:
        """Return the mark of a row; `_OTHER` if it is of another filter."""
        filter_name = str(record.get("filter", "none"))
        if filter_name not in self.filters:
            self.filters.append(filter_name)
        if self.filter is None and len(self.filters) > 1:
            raise OutcomeError(
                f"one filter must be chosen; {where} has {shown(filter_name)}, earlier rows "
                f"{shown(self.filters[0])}: each document comes once for every filter. Choose: ",
                Argument("filter", self.filters[0]), ".",
            )  # fmt: skip
        if self.filter is not None and filter_name != self.filter:
            return _OTHER
        self._refuse_repeats(record, where)
        metric = self._metric(record, where)
        if metric not in record:
            raise OutcomeError(
                f"{where} must have the metric {shown(metric)} that it lists. Was the file cut?"
            )
        return record[metric]

    def finish(self) -> None:
        """Refuse a filter that no row has, or that differs from those of other files."""
        if self.filters and self.filter is not None and self.filter not in self.filters:
            raise OutcomeError(
                f"filter must be one of {', '.join(map(shown, self.filters))}; got "
                f"{shown(self.filter)}."
            )
        for name in self.filters if self.filter is None else []:
            used = f"lm-eval's metric {shown(self.metric)}, filter {shown(name)}"
            other_markers = [marker for marker in self.rows.marks if marker.startswith("lm-eval's")]
            if any(not marker.endswith(f"filter {shown(name)}") for marker in other_markers):
                raise OutcomeError(
                    f"files must be of one filter; this is of {shown(name)}, others are marked by "
                    f"{other_markers[0]}. Choose: ", Argument("filter", name[:80]),
                    ", or read the files one by one.",
                )  # fmt: skip
            self.rows.marked_by(used)
        if self.filter is not None and self.metric is not None:
            self.rows.marked_by(f"lm-eval's metric {shown(self.metric)}, filter {self.filter!r}")

    def _metric(self, record: dict[str, Any], where: str) -> str:
        listed = record.get("metrics")
        names = [str(name) for name in listed] if isinstance(listed, list) else []
        if self.metric is None:
            if len(names) != 1:
                metric_names, first = (
                    shown(", ".join(names), 200),
                    names[0] if names else "exact_match",
                )
                raise OutcomeError(
                    f"one metric must be chosen; {where} has {metric_names}. Choose: ",
                    Argument("scorer", first), ".",
                )  # fmt: skip
            self.metric = names[0]
        elif self.metric not in names:
            raise OutcomeError(
                f"scorer must be a metric of the file, one of {shown(', '.join(names), 200)}; got "
                f"{shown(self.metric)} ({where})."
            )
        return self.metric

    def _refuse_repeats(self, record: dict[str, Any], where: str) -> None:
        """Refuse several responses of which one mark is in the file."""
        responses = record.get("resps")
        repeated = (
            [
                request_responses
                for request_responses in responses
                if isinstance(request_responses, list)
            ]
            if isinstance(responses, list)
            else []
        )
        texts = [
            request_responses
            for request_responses in repeated
            if all(isinstance(response, str | list) for response in request_responses)
        ]
        several = max(map(len, texts), default=1)
        if several > 1:
            raise OutcomeError(
                f"{where} holds {several} responses to one request, and one mark for them all: the "
                "marks of single trials are not in the file. Run lm-eval once for each trial "
                "(repeats: 1, another --seed and --output_path) and give all the files."
            )


def _only(values: object) -> object:
    """Return the only element of a list, or the value itself."""
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def _content(record: dict[str, Any]) -> str:
    """Digest of document and target; prompts may differ between seeds, by their examples."""
    document_digest = record.get("doc_hash") or digest(
        json.dumps(record.get("doc"), sort_keys=True)
    )
    target_digest = record.get("target_hash") or digest(record.get("target"))
    return digest(document_digest, target_digest)


def _model(path: Path, time: str | None, rows: Rows) -> str:
    """Return the name of the model: from the results of the same run, or that of the folder."""
    folder = path.resolve().parent
    run_results = folder / f"results_{time}.json"
    beside = (
        [run_results] if time and run_results.exists() else sorted(folder.glob("results_*.json"))
    )
    names = {name for file in beside if (name := _named_in(file))}
    if len(names) > 1:
        raise OutcomeError(
            f"the folder must have runs of one model, or results_{time or 'TIME'}.json of this "
            f"one; it has results of {', '.join(sorted(names))}. Name the systems: ",
            Argument("source", {"name": "samples_....jsonl"}, "load"), ".",
        )  # fmt: skip
    if names:
        return names.pop()
    rows.note(f"system {folder.name!r} is named by the folder of {path.name}")
    return folder.name


def _named_in(file: Path) -> str:
    try:
        with opened(file) as results:
            document = parse(results.read(largest() + 1), file.name)
    except (OSError, OutcomeError):  # a name is no more than a convenience
        return ""
    name = document.get("model_name") if isinstance(document, dict) else None
    return name if isinstance(name, str) else ""
