"""Files that are made to fill the memory, or never end, are read or refused within a budget."""

import csv
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.io.sources import BUDGET, check_objects, within
from tests.io import hostile_files
from tests.io.logs import refused


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """What every attack came to, each in a process of its own, with a budget of 4 MiB."""
    script = Path(hostile_files.__file__)
    paths = os.pathsep.join([str(script.parents[2]), str(Path(bk.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(tmp_path_factory.mktemp("hostile"))],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {row["attack"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.slow
@pytest.mark.parametrize("attack", hostile_files.ATTACKS)
def test_no_file_takes_more_than_its_budget(attacked, attack) -> None:
    """Beside the budget there are modules and buffers of the readers, 90 MB at most.

    What was made to fill the memory takes 120 MB at least.
    """
    assert re.search(hostile_files.ATTACKS[attack][2], attacked[attack]["said"]), attacked[attack]
    assert attacked[attack]["grew"] < hostile_files.UNIT + 90e6, attacked[attack]


@pytest.mark.parametrize("budget", [0, -1, 2.5, True, "1G", None, (1 << 20) - 1])
def test_a_budget_is_a_number_of_bytes(budget, tmp_path) -> None:
    refused(lambda: bk.load(tmp_path, budget=budget), "budget must be a whole number of bytes")


def test_the_remedy_of_a_refusal_works(tmp_path) -> None:
    path = tmp_path / "runs.jsonl"
    long = "x" * 200_000
    path.write_text(json.dumps({"question": "q", "outcome": 1, "note": long}) + "\n")
    with pytest.raises(bk.OutcomeError, match=r"allow more: budget=(\d+)\.") as error:
        bk.load(path, budget=1 << 20)
    more = int(re.search(r"budget=(\d+)", str(error.value))[1])
    assert bk.load(path, budget=more).successes.values.tolist() == [[1]]
    assert bk.load(path).successes.values.tolist() == [[1]]


def test_the_cost_of_objects_bounds_what_python_takes() -> None:
    """Lists and dicts as small as they come, against the size that Python says they have."""

    def size(value):
        parts = value.values() if isinstance(value, dict) else value
        nested = isinstance(value, dict | list)
        return sys.getsizeof(value) + (sum(map(size, parts)) if nested else 0)

    for text in (
        "[" + "[]," * 40_000 + "1]",
        "[" + '{"a":1},' * 20_000 + "1]",
        "[" + "1.5," * 50_000 + "1]",
    ):
        held = size(json.loads(text))
        with within(1 << 31):
            check_objects(text, "it")
        with within(max(1 << 20, held)), pytest.raises(bk.OutcomeError, match="it must have"):
            check_objects(text * (1 + (1 << 20) // held), "it")


@pytest.mark.parametrize(
    "text",
    [
        '[{"question": "a", "outcome": 1, "extra": {"b": [{"c": 1, "c": 2}]}}]',
        '{"eval": {"task": "t", "task": "u"}, "samples": []}',
        '{"eval": {}, "samples": [], "eval": {}}',
        '{"simulations": [], "info": {"a": 1, "a": 1}}',
    ],
)
def test_a_key_twice_is_refused_at_any_depth(tmp_path, text) -> None:
    path = tmp_path / "runs.json"
    path.write_text(text)
    refused(lambda: bk.load(path), "occurs twice in one object")


def test_a_transcript_longer_than_the_limit_of_csv_is_read_and_the_limit_left(tmp_path) -> None:
    """Whatever several readers do at once: the limit is one for the whole process."""
    before = csv.field_size_limit()
    path = tmp_path / "runs.csv"
    row = '"' + "long, " * (before // 4) + '",1\n'
    path.write_text("question,outcome\n" + row + "".join(f"q{i},1\n" for i in range(3000)))
    sizes = []

    def read():
        sizes.extend(bk.load(path).dataset.sizes["question"] for _ in range(4))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [3001] * 16
    assert csv.field_size_limit() == before


def test_parquet_is_read_as_it_was_whatever_its_groups_and_encodings(tmp_path) -> None:
    rng = np.random.default_rng(1)
    size = 5000
    frame = pd.DataFrame(
        {
            "system": rng.choice(["b", "a"], size),
            "question": rng.integers(0, 700, size),
            "trial": np.arange(size),
            "outcome": rng.integers(0, 2, size).astype(float),
        }
    )
    frame["question"] = "q" + frame["question"].astype(str)
    frame["answer"] = np.where(frame["outcome"] == 1, "=y", "x")
    unknown = rng.random(size) < 0.1
    frame.loc[unknown, ["outcome", "answer"]] = [np.nan, None]
    options = {"missing": "ignore", "columns": {"answer": "answer"}}
    expected = bk.tally(frame, **options)
    texts = ["system", "question", "answer"]
    delta = {"use_dictionary": False, "column_encoding": dict.fromkeys(texts, "DELTA_BYTE_ARRAY")}
    plain = pa.Table.from_pandas(frame)
    large = plain.cast(
        pa.schema(
            [(f.name, pa.large_string() if f.name in texts else f.type) for f in plain.schema]
        )
    )
    coded = pa.table(
        {
            name: plain[name].dictionary_encode() if name in texts else plain[name]
            for name in plain.column_names
        }
    )
    path = tmp_path / "runs.parquet"
    for table, written in (
        (plain, {}),
        (plain, {"row_group_size": 77}),
        (plain, {"use_dictionary": False}),
        (plain, delta),
        (plain, {"dictionary_pagesize_limit": 64}),
        (large, {}),
        (coded, {}),
    ):
        pq.write_table(table, path, **written)
        data = bk.load(path, **options)
        assert data.sha256() == expected.sha256()
        assert [*data.answers.label] == [*expected.answers.label]


def test_a_result_that_claims_to_be_huge_is_not_loaded(tmp_path) -> None:
    import h5netcdf

    path = tmp_path / "fit.nc"
    with h5netcdf.File(path, "w") as file:  # a terabyte that is nowhere
        file.dimensions = {"x": 1 << 37}
        file.create_variable("huge", ("x",), "f8", chunks=(1 << 20,))
        file.attrs["schema_version"] = 1
    assert path.stat().st_size < 1e6
    with pytest.raises(ValueError, match=f"at most {BUDGET} bytes in memory; fit.nc says"):
        bk.load_result(path)
    os.mkfifo(tmp_path / "pipe.nc")
    with pytest.raises(ValueError, match="pipe or device"):
        bk.load_result(tmp_path / "pipe.nc")
    assert xr.open_dataset(path, engine="h5netcdf").sizes["x"] == 1 << 37
