"""Tables counted part by part: the same counts, and the same refusals, as tables read whole."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.data import long_tables
from bayesatk.io import load as loading
from bayesatk.io import record_tables

SUFFIXES = (".csv", ".tsv", ".parquet")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(record_tables, "_MAX_ROWS_PER_BLOCK", 7)


def written(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    return path


def frame(rows=60, seed=1, systems=("b", "a", "c"), questions=6):
    """A table in no order, whose systems and questions come one by one, some outcomes missing."""
    rng = np.random.default_rng(seed)
    cells = pd.MultiIndex.from_product(
        [systems, [f"q{i}" for i in range(questions)], range(5)],
        names=["system", "question", "trial"],
    )
    table = cells.to_frame(index=False)
    table["outcome"] = rng.choice([0.0, 1.0, np.nan], len(table), p=[0.5, 0.4, 0.1])
    return table.iloc[rng.permutation(len(table))[:rows]].reset_index(drop=True)


def same_in_parts(source, **options):
    """Assert that a table is read alike whole and in parts; return the data."""
    whole, parts = (
        bk.load(source, missing="ignore", stream=stream, **options) for stream in (False, True)
    )
    assert parts.sha256() == whole.sha256()
    assert parts.notes == whole.notes
    assert parts.dataset.identical(whole.dataset)
    return whole


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(
    rows=st.integers(1, 90),
    seed=st.integers(0, 99),
    drop=st.sampled_from([[], ["trial"], ["system"]]),
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_count_like_the_whole(tmp_path, suffix, rows, seed, drop) -> None:
    table = frame(rows, seed, systems=("a",) if "system" in drop else ("b", "a", "c"))
    path = written(table.drop(columns=drop), tmp_path / f"runs{suffix}")
    try:
        bk.load(path, missing="ignore", stream=False)
    except bk.OutcomeError as error:  # no outcome at all
        with pytest.raises(bk.OutcomeError, match=re.escape(str(error))):
            bk.load(path, missing="ignore", stream=True)
        return
    same_in_parts(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_that_are_systems_or_parts_of_a_table(tmp_path, suffix) -> None:
    table = frame(90)
    same_in_parts([written(table[i::3], tmp_path / f"part{i}{suffix}") for i in range(3)])
    paths = [
        written(rows.drop(columns="system"), tmp_path / f"{system}{suffix}")
        for system, rows in table.groupby("system")
    ]
    same_in_parts(paths)
    same_in_parts(dict(zip("xyz", paths, strict=True)))


MARKS = frame(90).fillna(1.0).assign(outcome=lambda f: np.where(f["outcome"] == 1, "C", "I"))
COUNTS = pd.MultiIndex.from_product(
    [["b", "a"], [f"q{i}" for i in range(15)]], names=["system", "question"]
).to_frame(index=False).sample(frac=1, random_state=1)  # fmt: skip
COUNTS = COUNTS.assign(trials=[3 + n % 6 for n in range(30)], successes=[n % 4 for n in range(30)])
TABLES = {
    "marks": (MARKS, {}, (MARKS["outcome"] == "C").sum()),
    "marks with their scores": (
        MARKS, {"scores": {"I": 0, "C": 1}}, (MARKS["outcome"] == "C").sum(),
    ),
    "marks with other scores": (MARKS, {"scores": {"C": 0.5, "I": 0.25, "P": 0}}, None),
    "marks that are missing in two parts and a half": (
        MARKS.assign(outcome=[None] * 18 + MARKS["outcome"].tolist()[18:]), {},
        (MARKS["outcome"][18:] == "C").sum(),
    ),
    "counts": (COUNTS, {}, COUNTS["successes"].sum()),
    "counts of one system": (
        COUNTS[COUNTS["system"] == "a"].drop(columns="system"), {},
        COUNTS.query("system == 'a'")["successes"].sum(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", TABLES)
def test_marks_and_counts_are_read_in_parts(tmp_path, suffix, name) -> None:
    table, options, successes = TABLES[name]
    data = same_in_parts(written(table, tmp_path / f"runs{suffix}"), **options)
    assert successes is None or int(data.successes.sum()) == successes


def broken(how):
    table = frame(90).fillna(1.0)
    if how == "counts twice":
        return pd.concat([COUNTS, COUNTS.iloc[[0]]])
    if how == "repeated":
        return pd.concat([table, table.iloc[[4]]])
    if how == "repeated at once":
        return pd.concat([table.iloc[:3], table.iloc[[1]], table.iloc[3:]])
    if how == "wrong outcome":
        table.loc[50, "outcome"] = 7.0
    elif how == "no question":
        table.loc[50, "question"] = None
    elif how == "other prompt":
        table["prompt"] = "what of " + table["question"]
        table.loc[80, "prompt"] = "something else"
    return table


REFUSED = {
    "repeated": ["must occur once", "(row|rows) .*9[02]", "question 'q"],
    "repeated at once": ["must occur once"],
    "counts twice": ["must have one row of counts"],
    "wrong outcome": ["outcome '?7", "(row 50|row 52) of column 'outcome'"],
    "no question": ["question", "row 5[02]"],
    "other prompt": ["must agree in what was asked", "row 8[02]", "differ in column 'prompt'"],
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("how", REFUSED)
def test_parts_are_refused_like_the_whole(tmp_path, suffix, how) -> None:
    path = written(broken(how), tmp_path / f"runs{suffix}")
    for stream in (False, True):
        with pytest.raises(bk.OutcomeError) as error:
            bk.load(path, stream=stream)
        for words in REFUSED[how]:
            assert re.search(words, str(error.value)), f"{words!r} is not in: {error.value}"
        assert str(error.value).startswith(path.name)


def test_one_content_under_two_names_is_noted_between_parts(tmp_path) -> None:
    table = frame(90).fillna(1.0)
    table["prompt"] = "what of " + table["question"].replace("q3", "q0")
    path = written(table, tmp_path / "runs.parquet")
    with pytest.warns(bk.OutcomeWarning, match="1 of 6 questions ask the same"):
        same_in_parts(path)


def test_trials_without_number_are_counted_with_a_note(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(long_tables, "_MAX_MARK_BYTES", 100)
    table = frame(90).fillna(1.0).assign(trial=lambda f: [f"run {i}" for i in range(len(f))])
    data = bk.load(written(table, tmp_path / "runs.csv"), stream=True, missing="ignore")
    assert int(data.trials.sum()) == 90
    assert any("repeated trials were looked for within parts" in note for note in data.notes)


@pytest.mark.parametrize(("name", "options", "words"), [
    ("runs.csv", {"columns": {"answer": "answer"}, "stream": True},
     "stream must be left out for columns=.'answer'"),
    ("runs.csv", {"stream": 1.5}, "stream must be True, False or None; got 1\\.5"),
    ("runs.jsonl", {"stream": True}, "stream must be left out for jsonl"),
])  # fmt: skip
def test_what_cannot_be_counted_in_parts_is_said(tmp_path, name, options, words) -> None:
    table, path = frame(30).fillna(1.0).assign(answer="x"), tmp_path / name
    if name == "runs.csv":
        written(table, path)
    else:
        table.to_json(path, orient="records", lines=True)
    with pytest.raises(bk.OutcomeError, match=words):
        bk.load(path, **options)


def test_large_files_are_counted_in_parts_unless_told_otherwise(tmp_path, monkeypatch) -> None:
    path = written(frame(90), tmp_path / "runs.csv")
    calls = []
    add = loading.Counter.add

    def noted(counter, table):
        calls.extend([1] * (counter.rules is None))  # trials are counted, and not kept
        add(counter, table)

    monkeypatch.setattr(loading.Counter, "add", noted)
    bk.load(path, missing="ignore")
    assert not calls
    monkeypatch.setattr(loading, "_MIN_BYTES_FOR_BLOCKS", 100)
    bk.load(path, missing="ignore")
    assert len(calls) == 13
    bk.load(path, missing="ignore", stream=False)
    assert len(calls) == 13
