"""Genuine logs, copies with one thing changed, and what tests ask of a reading."""

import json
import re
import sys
import tracemalloc
import warnings
from pathlib import Path

import pytest

import bayesatk as bk

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

LOGS = Path(__file__).parents[1] / "logs"

INSPECT = LOGS / "inspect"

LM_EVAL = LOGS / "lm_eval"

CODE = LOGS / "code"

STAMP = "2026-11-21T13-15-25.700113"

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)

GRADES = {"I": 0, "N": 0, "P": 0.5, "C": 1}

LEFT_OUT = {"missing": "ignore"}

# The genuine lm-eval logs hold an empty response that is marked wrong; tests of that ask for it.
QUIET = pytest.mark.filterwarnings("ignore:.*have an empty output:bayesatk.OutcomeWarning")


def entries(path):
    """All entries of an archive in order, repeated names included."""
    with zipfile.ZipFile(path) as file:
        return [(info.filename, file.read(info)) for info in file.infolist()]


def zipped(path, members, method=zipfile.ZIP_DEFLATED):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of repeated names
        with zipfile.ZipFile(path, "w", method) as file:
            for name, content in members:
                file.writestr(name, content)
    return path


def edited(path, change=None, head=None, source="arithmetic_a.eval"):
    """A genuine log whose samples or header have been changed in place; False drops a sample."""
    members = []
    for name, content in entries(INSPECT / source):
        record = json.loads(content)
        if name.startswith("samples/") and change and change(record) is False:
            continue
        if name in ("header.json", "_journal/start.json") and head:
            head(record)
        members.append((name, json.dumps(record)))
    return zipped(path, members)


def as_document(path, change=None, head=None, source="arithmetic_a.json"):
    record = json.loads((INSPECT / source).read_text())
    record["samples"] = [
        sample for sample in record["samples"] if not (change and change(sample) is False)
    ]
    if head:
        head(record)
    path.write_text(json.dumps(record))
    return path


def as_run(number, model=None):
    """Changes that turn a copy of a log into another run: other uuids, perhaps another model."""

    def sample(record):
        record["uuid"] = f"run-{number}-{record['id']}-{record['epoch']}"

    def head(record):
        if model:
            record["eval"]["model"] = model

    return {"change": sample, "head": head}


def with_fields(fields, question=None, epoch=None):
    """A change that sets fields, named by dotted paths, in the samples of a question and epoch."""

    def change(record):
        if question in (None, record["id"]) and epoch in (None, record["epoch"]):
            for path, value in fields.items():
                *parents, name = path.split(".")
                container = record
                for parent in parents:
                    container = container[parent]
                container[name] = value

    return change


def harbor_trial(folder, name, task, model="alpha", reward=1, **fields):
    """A genuine trial of a job of Harbor but for task, model, mark and identifiers."""
    job = LOGS / "records" / "harbor" / "2026-11-21__10-00-00"
    trial = json.loads((job / "hello-world__0xyz" / "result.json").read_text())
    trial |= {"task_name": task, "trial_name": name, "id": name, "task_checksum": task, **fields}
    trial["agent_info"]["model_info"]["name"] = model
    trial["verifier_result"]["rewards"]["reward"] = reward
    path = folder / name / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(trial))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def samples_file(folder, rows, task="sums_gen", stamp=STAMP):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_{stamp}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def genuine_rows(task="sums_gen"):
    return lines(LM_EVAL / "example__alpha" / f"samples_{task}_{STAMP}.jsonl")


def counts(data):
    """{system: {question: (counts by category..., missing)}}"""
    table, gaps = data.dataset["count"].values.tolist(), data.dataset["missing"].values.tolist()
    questions = data.dataset["question"].values.tolist()
    return {
        system: {question: (*table[i][j], gaps[i][j]) for j, question in enumerate(questions)}
        for i, system in enumerate(data.systems)
    }


def only(data):
    (questions,) = counts(data).values()
    return questions


def cells(data):
    """Successes of trials by question, after the name of the system where there are several."""
    rows = []
    for system, questions in counts(data).items():
        counted = [
            f"{name} {right}/{wrong + right}" + f" and {missing} missing" * (missing > 0)
            for name, (wrong, right, missing) in questions.items()
            if wrong + right + missing
        ]
        rows.append(f"{system}: " * (len(data.systems) > 1) + ", ".join(counted))
    return "; ".join(rows)


def totals(data):
    """Counts by category over everything, then the missing ones."""
    return [
        *data.dataset["count"].sum(("system", "question")).values.tolist(),
        int(data.dataset["missing"].sum()),
    ]


def refused(call, *words):
    """Assert that the call is refused in one line that says the given things."""
    with pytest.raises(bk.OutcomeError) as error:
        call()
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 1500
    for pattern in words:
        assert re.search(pattern, message), f"{pattern!r} is not in: {message}"
    return message


def attempt(call):
    """The data, or None and the line that refuses them."""
    try:
        return call(), ""
    except bk.OutcomeError as error:
        return None, str(error)


def load_quietly(source, **options):
    """Load logs whose empty answers, of which there may be a warning, are not the matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.OutcomeWarning)
        return bk.load(source, **options)


def said_or_refused(call, *words):
    """Assert that something doubtful is refused, or at least told on the data card."""
    data, message = attempt(call)
    if data is None:
        assert "\n" not in message
        return
    for pattern in words:
        assert re.search(pattern, data.card()), f"{pattern!r} is not in: {data.card()}"


def traced(call):
    """The most memory in use during a call, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def inspect_samples(path):
    if path.suffix == ".json":
        return json.loads(path.read_text())["samples"]
    last = dict(entries(path))
    return [json.loads(text) for name, text in last.items() if name.startswith("samples/")]


def tau_run(task, trial, reward, instruction=None):
    info = {
        "task": {"instruction": instruction or f"do {task}"},
        "source": "user",
        "reward_info": {"reward": reward, "info": {}, "actions": []},
    }
    traj = [{"role": "user", "content": "hello"}]
    return {"task_id": task, "reward": reward, "info": info, "traj": traj, "trial": trial}


def written(path, content):
    """Write rows that two spaces separate, or a list of records."""
    if not isinstance(content, str):
        content = "  ".join(map(json.dumps, content))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content.replace("  ", "\n") + "\n")
    return path


def written_json(path, content):
    path.write_text(json.dumps(content))
    return path
