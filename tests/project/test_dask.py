"""Work through dask: lazy tallies, two workers, a worker that dies."""

import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk._tools.batches import in_batches

DIMS = ("system", "question", "trial")
NUMBER = r"\d+(?:\.\d+)?(?:e-?\d+)?"


def _marks(kind: str) -> tuple[np.ndarray, dict]:
    rng = np.random.default_rng(1)
    marks = rng.integers(0, 2, (2, 30, 8))
    if kind == "missing":
        return np.where(rng.random(marks.shape) < 0.2, np.nan, marks), {"missing": "ignore"}
    if kind == "text":
        return np.array(["no", "yes"], dtype=object)[marks], {"scores": {"no": 0, "yes": 1}}
    return marks.astype({"bool": bool, "int8": np.int8}[kind]), {}


@pytest.mark.parametrize(
    ("kind", "chunks"),
    [("bool", (2, 30, 8)), ("int8", (1, 7, 8)), ("missing", (2, 10, 3)), ("text", (1, 1, 1))],
)
def test_lazy_and_eager_tallies_are_the_same(kind, chunks) -> None:
    marks, options = _marks(kind)
    labels = {"system": ["a", "b"], "question": [f"q{i}" for i in range(30)]}
    eager = xr.DataArray(marks, dims=DIMS, coords=labels)
    lazy = eager.copy(data=da.from_array(marks, chunks=chunks))
    for lazy_part, whole in (
        (lazy, eager),
        (lazy.transpose("trial", "question", "system"), eager),
        (lazy.sel(system="a"), eager.sel(system="a")),
    ):
        counted, expected = (bk.tally(each, **options).dataset for each in (lazy_part, whole))
        xr.testing.assert_identical(counted, expected)


WRONG = np.zeros((2, 5, 4), int)
WRONG[1, 3, 2] = 7


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (da.from_array(WRONG, chunks=(1, 2, 2)), "outcome 7 at system 1, question 3, trial 2"),
        (da.full((1, 3, 2), np.nan, chunks=1), "missing outcomes"),
        (da.zeros((2, 0, 3), int), "non-empty"),
    ],
)  # fmt: skip
def test_a_lazy_array_names_its_wrong_cell_like_any_other(data, message) -> None:
    with pytest.raises(bk.OutcomeError, match=message):
        bk.tally(xr.DataArray(data, dims=DIMS))


SCORES = [None, {0: 0, 1: 1, 2: 3}, {-1: 1, 0.5: 0}, {True: 1, False: 0}, {"0": 0, "1": 1},
          {10**400: 1, 0: 0}, {1: 1, 0: 0}]  # fmt: skip
KINDS = [bool, np.int8, np.uint8, np.int64, np.float32, np.float64, "U1", object]


@pytest.mark.long
@given(
    marks=st.lists(st.lists(st.sampled_from([0, 1, 0, 1, 2, -1, 0.5, np.nan]), min_size=4,
                            max_size=4), min_size=1, max_size=5),
    kind=st.sampled_from(KINDS), scores=st.sampled_from(SCORES), chunks=st.integers(1, 4),
)  # fmt: skip
@settings(max_examples=150, deadline=None, derandomize=True)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_whatever_numbers_a_lazy_array_holds_it_is_read_like_rows(marks, kind, scores, chunks):
    """Counts, or the refusal of the same value."""
    values = np.array(marks, object if kind is object else float).astype(kind)
    options = {"scores": scores, "missing": "ignore"}
    outcomes = []
    for data in (values, values.tolist(), da.from_array(values, chunks=(2, chunks))):
        try:
            data = xr.DataArray(data, dims=DIMS[1:]) if isinstance(data, da.Array) else data
            outcomes.append(bk.tally(data, **options).dataset["count"].values.tolist())
        except bk.OutcomeError as error:
            # A block of a lazy array may not hold the second one that rows name.
            second = r", and neither is [^,]+ at question \d+, trial \d+"
            outcomes.append(re.sub(second, "", str(error).replace("system 0, ", "")))
    assert outcomes[1:] == outcomes[:1] * 2


def parts_of(frame, partitions):
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=partitions, sort=False)


def long_table(rows=60):
    rng = np.random.default_rng(3)
    cells = pd.MultiIndex.from_product(
        [["b", "a"], [f"q{i}" for i in range(6)], range(5)], names=["system", "question", "trial"]
    )
    table = cells.to_frame(index=False).sample(frac=1, random_state=1)[:rows]
    table["outcome"] = rng.choice([0.0, 1.0, np.nan], len(table), p=[0.5, 0.4, 0.1])
    table["prompt"], table["cost"] = "what of " + table["question"], 1.0
    return table.reset_index(drop=True)


@pytest.mark.parametrize(
    ("drop", "partitions"), [([], 1), (["trial"], 4), (["system", "trial"], 11)]
)
def test_a_table_of_dask_is_counted_in_parts_like_the_whole(drop, partitions, tmp_path) -> None:
    table = long_table().drop(columns=drop)
    whole = bk.tally(table, missing="ignore")
    data = bk.tally(parts_of(table, partitions), missing="ignore")
    assert data.notes == whole.notes
    xr.testing.assert_identical(data.dataset, whole.dataset)
    columns = {"question": "system", "trial": "cost"} if not drop else {"question": "prompt"}
    options = {"columns": columns, "missing": "ignore"}
    for form in (table, parts_of(table, partitions)):
        if drop:
            counts = bk.tally(form, **options).dataset["count"].values
            assert counts.sum() == whole.trials.sum()
        else:
            with pytest.raises(bk.OutcomeError, match=r"agree in what was asked|must occur once"):
                bk.tally(form, **options)


def test_a_trial_that_is_in_two_partitions_is_refused_by_its_rows() -> None:
    table = long_table().fillna(1.0)
    table = parts_of(pd.concat([table, table[:1]], ignore_index=True), 6)
    with pytest.raises(bk.OutcomeError, match="row 60 and an earlier row both hold"):
        bk.tally(table, missing="ignore")
    with pytest.raises(bk.OutcomeError, match="one question column"):
        bk.tally(table.rename(columns={"question": "x", "prompt": "y"}), missing="ignore")


def test_an_array_larger_than_its_memory_is_tallied() -> None:
    """240 MB of outcomes, made as they are asked for, in a quarter of that."""
    shape, chunks = (2, 30_000, 4_000), (1, 250, 4_000)

    def block(block_info=None) -> np.ndarray:
        first = block_info[None]["array-location"][1][0]
        rows = np.arange(first, first + chunks[1])
        marks = (rows[:, None] + np.arange(chunks[2])) % 4 == 0
        return marks[None].astype(np.int8)

    lazy = da.map_blocks(block, chunks=da.core.normalize_chunks(chunks, shape), dtype=np.int8)
    tracemalloc.start()
    data = bk.tally(xr.DataArray(lazy, dims=DIMS))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert (data.successes.values == 1000).all()
    assert int(data.trials.sum()) == 240_000_000


@pytest.fixture
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cluster's own start and end
        from dask.distributed import Client

        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            yield cluster


@pytest.mark.long
def test_a_worker_killed_in_the_middle_loses_nothing(client) -> None:
    pids = list(client.run(os.getpid).values())

    def slow(start: int) -> int:
        time.sleep(0.05)
        return start

    done = {}
    for start, result in in_batches(slow, range(40), client, "", False):
        if not done:
            os.kill(pids[0], signal.SIGKILL)
        done[start] = result
    assert pids[0] not in client.run(os.getpid).values()
    assert done == {start: start for start in range(40)}


RUNS = np.random.default_rng(2).integers(0, 2, (4, 6, 3))
ASKED = {
    "averaged, kept": (RUNS, "pass@1,2", {"keep": ["p", "log_likelihood"]}),
    "scores": (bk.tally(RUNS + RUNS[::-1], scores={0: 0, 1: 0.5, 2: 1}), "bayes max@2",
               {"pooling": "none"}),
    "votes": (bk.tally(RUNS, answers=np.where(RUNS, "right", "wrong").tolist()),
              "plurality@3 pass@1", {"pooling": "none"}),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("kind", ASKED)
def test_systems_evaluated_on_a_cluster_are_the_same(client, kind) -> None:
    data, metrics, options = ASKED[kind]
    local = bk.evaluate(data, metrics, draws=50, rng=1, **options)
    remote = bk.evaluate(data, metrics, draws=50, rng=1, client=client, **options)
    remote.attrs["created_at"] = local.attrs["created_at"]
    # Matrix products on one thread and on several differ in their last bits.
    xr.testing.assert_allclose(remote, local, rtol=1e-10, atol=1e-12)


@pytest.mark.long
def test_a_table_of_dask_is_counted_by_a_cluster(client) -> None:
    table = long_table()
    counted = bk.tally(parts_of(table, 9), missing="ignore")
    xr.testing.assert_identical(counted.dataset, bk.tally(table, missing="ignore").dataset)


@pytest.mark.long
def test_systems_criticised_and_reported_on_a_cluster_are_the_same(client, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    data = bk.tally(dict(zip("abcd", RUNS, strict=True)))
    fit = bk.evaluate(data, ["pass@1", "pass@2"], difficulty="beta", draws=50, rng=1)
    checked, again = (bk.checks.criticise(fit, rng=1, client=cluster) for cluster in (None, client))
    pd.testing.assert_frame_equal(again, checked, rtol=1e-10, atol=1e-12)
    compared, words, numbers = bk.compare(fit), [], []
    for cluster in (None, client):
        path = bk.report(compared, tmp_path / "page.html", client=cluster)
        page = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", path.read_text(encoding="utf-8"))
        words.append(re.split(NUMBER, page))
        numbers.append(np.array(re.findall(NUMBER, page), float))
    assert words[0] == words[1]
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-9, atol=1e-12)


@pytest.mark.long
def test_the_script_of_the_page_runs_as_it_is_written(tmp_path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")
    (code,) = [one for one in re.findall(r"```python\n(.*?)```", page, re.S) if "Client(" in one]
    script = tmp_path / "script.py"
    script.write_text(code)
    paths = {"PYTHONPATH": str(Path(bk.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=tmp_path,
        env=os.environ | paths,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "pass@2" in done.stdout


def test_the_other_code_of_the_page_runs_as_it_is_written(tmp_path, monkeypatch) -> None:
    pytest.importorskip("zarr")
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")
    blocks = [one for one in re.findall(r"```python\n(.*?)```", page, re.S) if "data = bk." in one]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    table = long_table().fillna(1.0)
    for number in range(2):
        table[number::2].to_parquet(tmp_path / "runs" / f"{number}.parquet", index=False)
    marks = xr.DataArray(_marks("int8")[0], dims=DIMS, name="outcome")
    marks.chunk({"question": 7}).to_dataset().to_zarr("marks.zarr", zarr_format=2)
    names: dict = {"bk": bk}
    for code, expected in zip(blocks, (bk.tally(table), bk.tally(marks)), strict=True):
        exec(code, names)
        pd.testing.assert_series_equal(
            *(
                each.dataset["count"].sum("question").to_series().sort_index()
                for each in (names["data"], expected)
            )
        )
    assert names["fit"]["closed_form"]["pass_hat_k"].notnull().any()
