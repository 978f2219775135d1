"""Damaged logs: whatever the bytes are, there are counts or one line that says what is wrong."""

import io
import json
import math
import sys
import warnings
from copy import deepcopy
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.io import json_stream
from bayesatk.io.logs.formats import LOGS as READ
from bayesatk.io.logs.formats import TABLES

if sys.version_info >= (3, 14):
    pass
else:
    pass

LOGS = Path(__file__).parents[1] / "logs"
STAMP = "2026-11-21T13-15-25.700113"
SAMPLES = LOGS / "lm_eval" / "example__alpha" / f"samples_sums_{{}}_{STAMP}.jsonl"
TABLE = "system,question,trial,passed\n" + "".join(
    f"{system},q{question},{trial},{(question + trial) % 2}\n"
    for system in "ab"
    for question in range(3)
    for trial in range(2)
)
FEW, MANY = (
    settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    for number in (8, 60)
)


def frame():
    return pd.read_csv(io.StringIO(TABLE))


def parquet():
    whole = io.BytesIO()
    frame().to_parquet(whole, index=False)
    return whole.getvalue()


# A small file of each format that is read by its description, with the options for it.
RECORDS = {
    "verifiers": ("verifiers/outputs/evals/shell--beta/1a2b3c4d/results.jsonl", {}),
    "verifiers-traces": ("verifiers/traces.jsonl", {}),
    "harbor": ("harbor/2026-11-21__10-00-00/fix-permissions__2xyz/result.json", {}),
    "terminal-bench": ("terminal_bench/run-beta/results.json", {}),
    "terminal-bench-trial": (
        "terminal_bench/run-beta/hello-world/hello-world.1-of-3.run-beta/results.json", {},
    ),
    "swe-bench": ("swe_bench/org__alpha-4.1.run_1.json", {}),
    "swe-bench-instance": (
        "swe_bench/logs/run_evaluation/run_1/org__alpha-4.1/astropy__astropy-1/report.json", {},
    ),
    "helm": ("helm/gsm_model=provider_beta/per_instance_stats.json", {"scorer": "f1_score"}),
    "every-eval-ever": ("every_eval_ever/sums_beta.jsonl", {"scorer": "sums/exact_match"}),
    "promptfoo": ("others/promptfoo.json", {}),
    "phoenix": ("platforms/phoenix/beta.json", {"scorer": "exact"}),
    "langfuse": ("platforms/langfuse.json", {}),
    "braintrust": ("platforms/braintrust.json", {}),
    "tau-bench": ("tau/tool-calling-alpha-0.0_range_0-2_user-beta-llm.json", {}),
    "tau2-bench": ("tau/tau2.json", {}),
    "tau2-simulations": ("tau/simulations.json", {}),
    "nemo-gym": ("platforms/rollouts_reward_profiling.jsonl", {}),
    "deepeval": ("others/deepeval.json", {}),
    "deepeval-latest": ("others/deepeval_latest/.latest_test_run.json", {}),
    "openai-evals": ("others/openai_evals.jsonl", {}),
    "live-code-bench": (
        "others/livecodebench/alpha/Scenario.codegeneration_3_0.2_eval_all.json", {},
    ),
    "math-arena": ("others/matharena/aime/aime_2026/provider/alpha/0.json", {}),
    "math-arena-rows": ("others/matharena_outputs/train-00000-of-00001.parquet", {}),
    "lighteval": (
        "others/lighteval/details/org/alpha/2026-11-21T10-00-00.0/"
        "details_sums_0_2026-11-21T10-00-00.0.parquet", {"scorer": "extractive_match"},
    ),
}  # fmt: skip


@cache
def genuine(name):
    """Name of the file, its bytes, and the options with which it can be read."""
    inspect, code = LOGS / "inspect", LOGS / "code"
    files = {
        "eval": ("log.eval", (inspect / "shuffled.eval").read_bytes(), {}),
        "eval deflate": ("log.eval", (inspect / "deflate.eval").read_bytes(), {}),
        "eval scorers": (
            "log.eval",
            (inspect / "two_scorers.eval").read_bytes(),
            {"scorer": "numeric"},
        ),
        "inspect json": ("log.json", (inspect / "arithmetic_a.json").read_bytes(), {}),
        "lm-eval": (SAMPLES.name.format("gen"), Path(str(SAMPLES).format("gen")).read_bytes(), {}),
        "lm-eval choice": (
            SAMPLES.name.format("choice"),
            Path(str(SAMPLES).format("choice")).read_bytes(),
            {"scorer": "acc"},
        ),
        "evalplus": (
            "x_eval_results.json",
            (code / "evalplus_eval_results.json").read_bytes(),
            {"scorer": "plus"},
        ),
        "evalplus old": (
            "x_eval_results.json",
            (code / "evalplus_old_eval_results.json").read_bytes(),
            {"scorer": "plus"},
        ),
        "human-eval": (
            "x.jsonl_results.jsonl",
            (code / "humaneval.jsonl_results.jsonl").read_bytes(),
            {},
        ),
        "csv": ("table.csv", TABLE.encode(), {}),
        "tsv": ("table.tsv", TABLE.replace(",", "\t").encode(), {}),
        "jsonl": ("table.jsonl", frame().to_json(orient="records", lines=True).encode(), {}),
        "json": ("table.json", frame().to_json(orient="records").encode(), {}),
        "parquet": ("table.parquet", parquet(), {}),
        **{
            name: (Path(file).name, (LOGS / "records" / file).read_bytes(), options)
            for name, (file, options) in RECORDS.items()
        },
        "counts": ("counts.csv", b"id,n,c\na,4,1\nb,3,3\nc,2,0\n", {}),
        "counts jsonl": ("counts.jsonl", b'{"id":"a","n":4,"c":1}\n{"id":"b","n":3,"c":3}\n', {}),
    }
    return files[name]


FORMATS = [
    "eval", "eval deflate", "eval scorers", "inspect json", "lm-eval", "lm-eval choice", "evalplus",
    "evalplus old", "human-eval", "csv", "tsv", "jsonl", "json", "parquet", "counts",
    "counts jsonl", *RECORDS,
]  # fmt: skip
TOLD = {name: name for name in RECORDS} | {
    "eval": "inspect", "eval deflate": "inspect", "eval scorers": "inspect",
    "inspect json": "inspect", "lm-eval": "lm-eval", "lm-eval choice": "lm-eval",
    "evalplus": "evalplus", "evalplus old": "evalplus", "human-eval": "human-eval",
}  # fmt: skip
LINES = [
    "lm-eval", "lm-eval choice", "human-eval", "jsonl", "counts jsonl",
    *(name for name, (file, _) in RECORDS.items() if file.endswith(".jsonl")),
]  # fmt: skip
ROWS = [name for name, (file, _) in RECORDS.items() if file.endswith(".parquet")]
ANSWERED = {"inspect", "lm-eval", *(one.name for one in READ.values() if one.honoured("answers"))}


def test_every_reader_is_tried():
    """Those of tables too; what is refused as a summary without trials has no reader."""
    summaries = {kind.name for kind in READ.values() if kind.summary}
    assert {TOLD.get(name, name) for name in FORMATS} >= {*READ, *TABLES} - summaries


def read_or_refuse(path, **options):
    """Assert that there are sound counts, or one clear line; return what was found."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.OutcomeWarning)
        try:
            data = bk.load(path, **options)
        except bk.OutcomeError as error:
            message = str(error)
            assert path.name in message, f"no file in: {message}"
            assert "\n" not in message
            assert len(message) < 3000
            return message
    count, missing = data.dataset["count"].values, data.dataset["missing"].values
    assert (count >= 0).all()
    assert (missing >= 0).all()
    assert count.sum() > 0
    return data.card(), data.sha256()


def lines_of(name):
    return genuine(name)[1].decode().splitlines()


# ------------------------------------------------------------------ bytes


@st.composite
def damaged(draw, whole):
    """The bytes after a few changes."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        if not content:
            break
        how = draw(st.sampled_from(["flip", "delete", "insert", "truncate", "splice"]))
        start = draw(st.integers(0, len(content) - 1))
        length = draw(st.integers(1, 40))
        if how == "flip":
            content[start] ^= 1 << draw(st.integers(0, 7))
        elif how == "delete":
            del content[start : start + length]
        elif how == "insert":
            content[start:start] = draw(st.binary(min_size=1, max_size=8))
        elif how == "truncate":
            del content[start:]
        else:
            source = draw(st.integers(0, len(content) - 1))
            content[start : start + length] = content[source : source + length]
    return bytes(content)


@pytest.mark.parametrize("name", FORMATS)
@given(chosen=st.data())
@FEW
def test_damaged_bytes(tmp_path_factory, name, chosen):
    file, whole, options = genuine(name)
    path = tmp_path_factory.getbasetemp() / f"bytes {name}" / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(chosen.draw(damaged(whole)))
    read_or_refuse(path, missing="ignore", **options)


# ------------------------------------------------------------------ values


def nested(depth, kind):
    return {"list": "[" * depth + "]" * depth, "dict": '{"a":' * depth + "1" + "}" * depth}[kind]


# Each is the text of a JSON value, so that what Python cannot write can be tried as well: a value
# of each kind, and oddities of every kind.
KINDS = ["null", "true", "2", '"x\\ny"', '[{"a": []}]', '{"value": {"a": 1}}']
ODD = [
    "false", "-1", "0.5", "-0.0", "1e400", "-1e400", "NaN", "Infinity", "1" * 50, "9" * 4300,
    "9" * 5000, '""', '" "', '"C"', '"pass"', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"',
    '"a\u2028b"', '"\x01"', '"' + "long " * 5000 + '"', "[]", "{}", "[[]]", "[null]", "[1, 0]",
    '{"a": 1, "a": 2}', '{"": null}', nested(400, "list"), nested(950, "dict"),
    nested(200_000, "list"),
]  # fmt: skip
MARKER = "@@bayesatk@@"


def places(value, at=()):
    """Every place in a document, as a path of keys and numbers."""
    yield at
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*at, key))
    elif isinstance(value, list):
        for number, part in enumerate(value[:6]):
            yield from places(part, (*at, number))


def with_value(document, place, text):
    """The text of the document in which another value stands at the place."""
    whole = deepcopy(document)
    if not place:
        return text
    within = whole
    for key in place[:-1]:
        within = within[key]
    within[place[-1]] = MARKER
    return json.dumps(whole).replace(json.dumps(MARKER), text)


def document(name):
    file, whole, _ = genuine(name)
    if file.endswith(".parquet"):
        return pyarrow.parquet.read_table(io.BytesIO(whole)).to_pylist()
    return json.loads(whole)


def slim(value):
    """A sample without its transcript, which a reader passes over, so that the rest is tried."""
    passed_over = ("events", "messages", "store", "attachments", "events_data", "explanation")
    if isinstance(value, dict):
        return {key: part for key, part in value.items() if key not in passed_over}
    return value


def small(name):
    """A short document, or the first line or row, of a format."""
    whole = json.loads(lines_of(name)[0]) if name in LINES else document(name)
    if name in ROWS:
        return whole[0]
    if name == "inspect json":
        head = {key: whole["eval"][key] for key in ("task", "model", "dataset", "config")}
        first, *_, last = whole["samples"]
        one = slim(first) | {"limit": {"type": "token", "limit": 1.0}}
        one["output"] = {key: one["output"][key] for key in ("completion", "choices")}
        whole = {"status": "success", "eval": head, "samples": [one, slim(last)]}
    if name.startswith("evalplus"):
        first, last, *_ = whole["eval"].items()
        whole = {"eval": dict([first, last])}
    if name == "lm-eval":
        del whole["arguments"]
    if name == "harbor":
        whole = {key: value for key, value in whole.items() if value} | {"config": {}}
    if name in ("phoenix", "langfuse", "braintrust"):
        del (whole if name == "phoenix" else whole[next(iter({"data", "events"} & {*whole}))])[1:]
    if name == "promptfoo":
        results = whole["results"]["results"][:1]
        whole = {"results": {"prompts": whole["results"]["prompts"][:1], "results": results}}
        del results[0]["tokenUsage"]
    return whole


class Sweep:
    """The file of a format, in which one value after the other is replaced."""

    def __init__(self, name, folder):
        self.whole, (file, _, self.options) = small(name), genuine(name)
        self.path, self.rows = folder / file, name in ROWS
        self.rest = lines_of(name)[1:3] if name in LINES else []
        if name in TOLD:
            self.options = self.options | {"format": TOLD[name]}
        if TOLD.get(name) in ANSWERED:
            self.options = self.options | {"answers": True}
        self.failed = []

    def places(self):
        """Places in the first record, and the text around each."""
        for place in places(self.whole):
            if not any(type(key) is int and key > 0 for key in place) and len(place) <= 5:
                written = with_value(self.whole, place, MARKER) if place else MARKER
                yield place, "\n".join([written, *self.rest])

    def found(self, place, around, text):
        """What is read with this text of a value there; None if no such file can be written."""
        try:
            if not self.rows:
                self.path.write_text(around.replace(MARKER, text), encoding="utf-8")
            elif not written_as_row(self.path, around.replace(MARKER, text)):
                return None
            return read_or_refuse(self.path, missing="ignore", **self.options)
        except Exception as error:
            told = f"{type(error).__name__}: {str(error)[:150]}"
            self.failed.append(f"{place}: {text[:30]}: {told}")
            return told


UNWRITABLE = (
    pyarrow.ArrowException, ArithmeticError, AttributeError, RecursionError, TypeError, ValueError,
)  # fmt: skip


def written_as_row(path, text):
    """Write the one row of a Parquet file, unless its columns can hold no such value."""
    try:
        table = pyarrow.Table.from_pylist([json.loads(text)])
        pyarrow.parquet.write_table(table, path)
    except UNWRITABLE:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("name", [
    "inspect json", "evalplus", "evalplus old", "json", *LINES,
    *(name for name in RECORDS if name not in LINES),
])  # fmt: skip
def test_every_kind_of_value_in_every_place(tmp_path, name):
    """And, where some kind makes a difference, oddities, of which each has its turn."""
    sweep, turn = Sweep(name, tmp_path), 0
    for place, around in sweep.places():
        if len({sweep.found(place, around, text) for text in KINDS}) > 1:
            for text in (ODD[turn % len(ODD)], ODD[(turn + len(ODD) // 2) % len(ODD)]):
                sweep.found(place, around, text)
            turn += 1
    assert not sweep.failed, "\n".join(sweep.failed)


@pytest.mark.parametrize("text", [*KINDS, *ODD])
def test_a_header_beside_lm_eval_samples(tmp_path, text):
    """The file that names the model may hold anything, too."""
    path = tmp_path / genuine("lm-eval")[0]
    path.write_bytes(genuine("lm-eval")[1])
    header = {"results": {}, "model_name": "m", "config": {"model": "hf"}}
    for place in places(header):
        content = with_value(header, place, text)
        (tmp_path / f"results_{STAMP}.json").write_text(content, encoding="utf-8")
        read_or_refuse(path)


# ------------------------------------------------------------------ the streaming reader

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12),
    st.sampled_from(["\\", '"', "\\u0041", "\ud800", "\U0001f600", "\n\t\r\x00", "/", "x" * 40]),
    st.integers(10**20, 10**40),
    st.floats(1e-300, 1e300),
)  # fmt: skip
KEYS = st.text(max_size=6)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
WRITTEN = st.builds(
    lambda value, ascii, indent, gap: json.dumps(
        value, ensure_ascii=ascii, indent=indent, separators=("," + gap, ":" + gap)
    ),
    DOCUMENTS,
    st.booleans(),
    st.sampled_from([None, 0, 3, 20]),
    st.sampled_from(["", " ", "\n", "\t \r\n", " " * 30]),
)


def same(first, second):
    """Whether values are equal in type as well, NaN among them."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) and math.isnan(first):
        return math.isnan(second)
    return first == second


def streamed(text, parts=frozenset()):
    """The document put together from its parts; None if it is refused."""
    members = []
    try:
        members.extend(json_stream.members(io.StringIO(text, newline=""), parts))
    except bk.OutcomeError:
        return None
    if text.lstrip(" \t\r\n").startswith("["):
        assert [key_within for _, key_within, _ in members] == list(range(len(members)))
        return [value for _, _, value in members]
    whole = {}
    for key, key_within, value in members:
        if key_within is None:
            whole[key] = value
        elif isinstance(key_within, int):
            whole.setdefault(key, []).append(value)
        else:
            whole.setdefault(key, {})[key_within] = value
    return whole


def at_once(text):
    """What the standard library reads; None if it refuses, or if it is no array or object."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, list | dict) else None


@given(value=st.dictionaries(st.sampled_from(["samples", "eval", "x", ""]), DOCUMENTS),
       window=st.integers(1, 7), indent=st.sampled_from([None, 2]))  # fmt: skip
@MANY
def test_documents_are_read_in_parts_as_at_once(value, window, indent):
    text = json.dumps(value, indent=indent)
    expected = {
        key: value_of_key
        for key, value_of_key in at_once(text).items()
        if value_of_key not in ([], {})
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_MIN_CHUNK", window)
        parsed = streamed(text, frozenset({"samples", "eval"}))
    assert parsed is not None
    assert same(
        {key: value_of_key for key, value_of_key in parsed.items() if value_of_key not in ([], {})},
        expected,
    )


@given(chosen=st.data(), text=WRITTEN, window=st.integers(1, 7))
@MANY
@pytest.mark.parametrize("how", ["whole", "damaged"])
def test_documents_are_read_or_refused_as_at_once(how, chosen, text, window):
    if how == "damaged":
        place = chosen.draw(st.integers(0, len(text)))
        inserted = chosen.draw(st.sampled_from(list('[]{},:"\\-.0eE+tnN x\x00\x0b\xa0\ufeff')))
        text = chosen.draw(
            st.sampled_from(
                [
                    text[:place],
                    text[:place] + text[place + 1 :],
                    text[:place] + inserted + text[place:],
                    text + text,
                ]
            )
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_MIN_CHUNK", window)
        parsed = streamed(text)
    assert same(parsed, at_once(text)), text


@pytest.mark.parametrize("number", ["1.5", "1e5", "1E+5", "-1.25e-7", "0.1", "-0.0", "12345.678"])
def test_numbers_that_the_window_cuts(monkeypatch, number):
    for form in ("[{}]", "[{},{}]", '{{"a": {}}}', '{{"a": [{}], "b": {}}}'):
        text = form.format(number, number)
        for window in range(1, 13):
            monkeypatch.setattr(json_stream, "_MIN_CHUNK", window)
            assert same(streamed(text), json.loads(text)), (text, window)
