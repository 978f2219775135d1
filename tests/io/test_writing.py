"""Writing never loses: the old file or the new one, whatever happens, and nothing of others."""

import csv
import os
import re
import resource
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.io.exports import write_tables
from bayesatk.io.record_tables import defused, restored

RUNS = "question,trial,outcome\nx,1,1\nx,2,0\n"


@pytest.fixture(scope="module")
def fit():
    return bk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "bayes", pooling="none", draws=2, rng=1)


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(RUNS)
    return path


def writers(fit, runs):
    """Every writer, by the name of its file."""
    return {
        "fit.nc": lambda path: bk.save(fit, path),
        "fit.zarr": lambda path: bk.save(fit, path),
        "t.json": lambda path: write_tables(fit, path),
        "t.csv": lambda path: write_tables(fit, path),
        "r.csv": lambda path: bk.convert(runs, path),
        "r.jsonl": lambda path: bk.convert(runs, path),
        "r.parquet": lambda path: bk.convert(runs, path),
    }


WRITERS = tuple(writers(None, None))
FILES = tuple(name for name in WRITERS if name != "fit.zarr")


def content(path: Path) -> object:
    if path.is_dir():
        return {
            str(file.relative_to(path)): file.read_bytes()
            for file in sorted(path.rglob("*"))
            if file.is_file()
        }
    return path.read_bytes()


@pytest.mark.parametrize("name", WRITERS)
def test_a_link_is_followed(fit, runs, tmp_path, name) -> None:
    target, link = tmp_path / "elsewhere" / name, tmp_path / name
    target.parent.mkdir()
    write = writers(fit, runs)[name]
    link.symlink_to(target)  # to nothing as yet
    for _ in range(2):
        write(link)
        assert link.is_symlink()
        assert target.exists()
        assert not target.is_symlink()
    assert [file.name for file in target.parent.iterdir()] == [name]


@pytest.mark.parametrize("name", FILES)
def test_permissions_are_kept_and_usual_otherwise(fit, runs, tmp_path, name) -> None:
    write, path = writers(fit, runs)[name], tmp_path / name
    (tmp_path / "usual").touch()
    write(path)
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode
    path.chmod(0o640)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
def test_what_is_no_file_is_refused(fit, runs, tmp_path, name, kind) -> None:
    path = tmp_path / name
    if kind == "folder":
        path.mkdir()
        (path / "thesis.txt").write_text("years of work")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path)
    with pytest.raises((ValueError, OSError), match=re.escape(name)):
        writers(fit, runs)[name](path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([name, "runs.csv"])
    if kind == "folder":
        assert (path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("name", ["fit.nc", "fit.zarr"])
def test_only_results_are_replaced_by_results(fit, tmp_path, name) -> None:
    path = tmp_path / name
    data = pd.DataFrame({"rain": [1.0, 2.0]}).to_xarray()
    if name == "fit.nc":
        data.to_netcdf(path, engine="h5netcdf")
    else:
        data.to_zarr(path, consolidated=False)
    before = content(path)
    with pytest.raises(ValueError, match=f"must be new, or that of a result.*{name} is none"):
        bk.save(fit, path)
    assert content(path) == before
    saved = tmp_path / f"own_{name}"
    bk.save(fit, saved)
    if saved.is_dir():
        (saved / "count").mkdir()
        (saved / "count" / "cat.png").write_text("mine")
        with pytest.raises(ValueError, match=r"count/cat\.png is none"):
            bk.save(fit, saved)
        assert (saved / "count" / "cat.png").read_text() == "mine"
    else:
        saved.write_bytes(b"")  # as made by tempfile
        assert bk.load_result(bk.save(fit, saved)).identical(fit)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(("there", "room"), [(False, 0), (True, 20)])
def test_a_full_disk_is_an_error_and_nothing_else(fit, runs, tmp_path, name, there, room) -> None:
    """A limit on the size of files stands for the disk: writing fails in the same calls."""
    write, path = writers(fit, runs)[name], tmp_path / name
    if there:
        write(path)
    before = content(path) if there else None
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match=r"Nothing was written, and what was there is as it was"):
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["runs.csv"] + [name] * there)
    if there:
        assert content(path) == before


@pytest.mark.long
def test_netcdf_reports_a_disk_that_fills_at_any_moment(fit, tmp_path) -> None:
    path = bk.save(fit, tmp_path / "fit.nc")
    whole = path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in np.linspace(0, whole - 1, 4).astype(int).tolist():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        try:
            with pytest.raises(OSError, match=r"fit\.nc"):
                bk.save(fit, path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert bk.load_result(path).identical(fit)


@pytest.mark.parametrize("how", ["itself", "link", "hard link", "mapping", "list"])
def test_nothing_is_converted_onto_itself(runs, how) -> None:
    path, source = runs, runs
    if how == "link":
        path = runs.with_name("link.csv")
        path.symlink_to(runs)
    elif how == "hard link":
        path = runs.with_name("hard.csv")
        path.hardlink_to(runs)
    elif how == "mapping":
        source = {"a": [runs]}
    elif how == "list":
        source = [runs]
    runs.chmod(0)  # it is not even opened (unless by root, who may)
    with pytest.raises(ValueError, match=r"path must not be that of a file to read; \w+\.csv"):
        bk.convert(source, path)
    runs.chmod(0o600)
    assert runs.read_text() == RUNS


# ------------------------------------------------------------------ what other programs make of it

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "-", "=cmd|' /C calc'!A0", "'=1"]


@given(st.text(max_size=8) | st.sampled_from(FORMULAS))
def test_defused_cells_are_no_formulas_and_come_back(cell) -> None:
    written = defused(cell)
    assert restored(written) == cell
    if written[:1] in tuple("=+-@\t\r"):
        float(written)  # a number is none
    assert written in (cell, f"'{cell}")


def test_formulas_in_labels_survive_the_way_through_csv(tmp_path) -> None:
    source, path = tmp_path / "runs.jsonl", tmp_path / "runs.csv"
    frame = pd.DataFrame({"question": FORMULAS, "trial": 1, "outcome": 1, "answer": FORMULAS[::-1]})
    frame.to_json(source, orient="records", lines=True)
    bk.convert(source, path, columns={"answer": "answer"})
    with path.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]
    data = bk.load(path, columns={"answer": "answer"})
    assert data.dataset["question"].values.tolist() == FORMULAS
    straight = bk.load(source, columns={"answer": "answer"})
    assert data.sha256() == straight.sha256()
    assert list(data.answers.label) == list(straight.answers.label)


def test_cells_that_an_apostrophe_would_merge_are_refused(runs) -> None:
    runs.write_text("question,outcome\n=x,1\n'=x,0\n")
    with pytest.raises(bk.OutcomeError, match="differ only by an apostrophe"):
        bk.load(runs)
    runs.write_text("question,outcome\n'quoted',1\n''=x,0\n'=x,1\n")
    assert bk.load(runs).dataset["question"].values.tolist() == ["'quoted'", "'=x", "=x"]
