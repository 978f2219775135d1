"""A result is read whole, or not at all; and writers that were killed leave nothing behind."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import h5netcdf
import numpy as np
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.io import saved


@pytest.fixture(scope="module")
def fits():
    runs = ({"a": [[1, 0], [1, 1]]}, {"b": [[0, 0], [1, 0]], "c": [[1, 1], [1, 1]]})
    return [bk.evaluate(marks, "bayes", pooling="none", draws=4, rng=1) for marks in runs]


@pytest.fixture(params=["fit.nc", "fit.zarr"])
def path(request, fits, tmp_path):
    return bk.save(fits[0], tmp_path / request.param)


def attempt(call):
    """What a call returns, or None and its message."""
    try:
        return call(), ""
    except ValueError as error:
        return None, str(error)


def refused(path, words):
    with pytest.raises(ValueError, match=words) as error:
        bk.load_result(path)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 600
    return message


# ------------------------------------------------------------------ a digest of all that is stored


def test_what_is_stored_with_a_digest_comes_back_without_it(path, fits):
    tree = bk.load_result(path)
    assert tree.identical(fits[0])
    assert saved.DIGEST not in tree.attrs
    assert saved._stored_attrs(path)[saved.DIGEST] == saved.digest_of(tree)
    assert bk.Result.of(tree).data.sha256() == fits[0].attrs["input_sha256"]


@pytest.mark.parametrize(
    ("path", "what"),
    [("fit.nc", "value"), ("fit.zarr", "label"), ("fit.nc", "attribute"), ("fit.zarr", "root")],
    indirect=["path"],
)
def test_one_thing_that_was_changed_is_noticed(path, what):
    zarr = path.suffix == ".zarr"
    engine = {"engine": "zarr", "consolidated": False} if zarr else {"engine": "h5netcdf"}
    with xr.open_datatree(path, **engine) as opened:
        tree = opened.load().copy()
    group = tree["posterior"].to_dataset()
    if what == "value":
        group["bayes"].values.ravel()[0] += 1e-12
    elif what == "label":
        group = group.assign_coords(system=["A"])
    elif what == "attribute":
        group["bayes"].attrs["note"] = "mine"
    else:
        tree.attrs["seed"] = "7"
    tree["posterior"] = xr.DataTree(group)
    if zarr:
        shutil.rmtree(path)
        tree.to_zarr(path, consolidated=False)
    else:
        tree.to_netcdf(path, engine="h5netcdf")
    refused(path, "not as they were saved")


# h5netcdf's file, where the damage stops it half made, complains on its own when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.long
def test_bits_that_flip_in_a_file_are_noticed(fits, tmp_path):
    """58 of 60 loaded with other contents before there was a digest."""
    whole = bk.save(fits[1], tmp_path / "fit.nc").read_bytes()
    path, rng, same = tmp_path / "flipped.nc", np.random.default_rng(3), 0
    for byte in rng.integers(0, len(whole), 60).tolist():
        flipped = bytearray(whole)
        flipped[byte] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        tree, message = attempt(lambda: bk.load_result(path))
        assert "\n" not in message
        if tree is not None:
            assert tree.identical(fits[1])  # a byte that nothing is made of
            same += 1
    assert same < 50


def test_a_chunk_that_is_missing_is_no_nan(fits, tmp_path):
    path = bk.save(fits[0], tmp_path / "fit.zarr")
    chunks = [file for file in (path / "posterior").rglob("c/*") if file.is_file()]
    chunks += [file for file in (path / "posterior").rglob("c") if file.is_file()]
    chunks[0].unlink()
    refused(path, "not as they were saved")


def test_a_result_of_an_older_release_is_read(path, fits, monkeypatch):
    monkeypatch.setattr(saved, "digest_of", lambda tree: None)
    old = fits[0].copy()
    target = path.with_name(f"old{path.suffix}")
    if path.suffix == ".nc":
        old.to_netcdf(target, engine="h5netcdf")
    else:
        old.to_zarr(target, consolidated=False)
    monkeypatch.undo()
    assert bk.load_result(target).identical(fits[0])


# ------------------------------------------------------------------ damage, in one line


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut(fits, tmp_path, share):
    path = bk.save(fits[0], tmp_path / "fit.nc")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    refused(path, "whole result")


@pytest.mark.parametrize("name", ["zarr.json", "posterior/zarr.json"])
def test_metadata_that_were_cut(fits, tmp_path, name):
    path = bk.save(fits[0], tmp_path / "fit.zarr")
    file = path / name
    file.write_text(file.read_text()[:-40])
    refused(path, "whole result")


@pytest.mark.parametrize(("name", "value", "words"), [
    ("study", 3, "'study' must be text"), ("seed", 1.5, "'seed' must be text"),
    ("study", '{"metrics": 1}', "'study' is not whole"), ("study", "{", "'study' is not whole"),
    ("assumptions", "[1, ", "'assumptions' is not whole"),
])  # fmt: skip
def test_attributes_of_the_wrong_kind_in_a_result_without_digest(
    fits, tmp_path, name, value, words
):
    old = fits[0].copy()
    old.attrs[name] = value
    path = tmp_path / "old.nc"
    old.to_netcdf(path, engine="h5netcdf")
    refused(path, words)


def test_a_file_of_something_else(tmp_path):
    path = tmp_path / "rain.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"n": 2}
        file.create_variable("rain", ("n",), float)[:] = [1.0, 2.0]
    refused(path, r"^path must be that of a result .* bayesatk\.from_draws\(xarray\.open_datatree")


def test_the_command_says_one_line_and_leaves_with_2(fits, tmp_path):
    from typer.testing import CliRunner

    from bayesatk.cli.app import app

    path = bk.save(fits[0], tmp_path / "fit.zarr")
    (path / "zarr.json").write_text((path / "zarr.json").read_text()[:-30])
    done = CliRunner().invoke(app, ["cite", str(path)])
    assert done.exit_code == 2
    assert len(done.output.splitlines()) == 1
    assert str(path) in done.output


# ------------------------------------------------------------------ replaced while it is read


def test_half_of_one_result_and_half_of_another_is_an_error(fits, tmp_path, monkeypatch):
    path, read = bk.save(fits[1], tmp_path / "fit.zarr"), saved._read

    def read_slowly(which):
        tree = read(which)
        bk.save(fits[0], which)
        tree["posterior"] = read(which)["posterior"]
        return tree

    monkeypatch.setattr(saved, "_read", read_slowly)
    refused(path, "is being replaced")


@pytest.mark.long
@pytest.mark.slow
def test_a_reader_beside_a_writer_gets_the_one_or_the_other(fits, tmp_path):
    """26 of 83 reads were of both results, without an error."""
    path, done = bk.save(fits[0], tmp_path / "fit.zarr"), threading.Event()

    def write():
        for _ in range(6):
            for fit in fits:
                bk.save(fit, path)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    read = 0
    while not done.is_set():
        tree, message = attempt(lambda: bk.load_result(path))
        if tree is None:
            assert "is being replaced" in message
            continue
        assert any(tree.identical(fit) for fit in fits)
        read += 1
    writer.join()
    assert read


# ------------------------------------------------------------------ what killed writers leave

KILLED = """
import os, sys, pathlib
from bayesatk._tools.writing import replacing, replacing_folder
with replacing(pathlib.Path(sys.argv[1]) / "a.txt") as file:
    file.write(b"half")
    with replacing_folder(pathlib.Path(sys.argv[1]) / "b.zarr") as folder:
        (folder / "c").write_text("half")
        if sys.argv[2] == "wait":
            print("ready", flush=True)
            sys.stdin.readline()
        os._exit(9)
"""


def unfinished(folder):
    return sorted(file.name for file in folder.glob(".*.unfinished"))


def writer(folder, how):
    root = str(Path(bk.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), how],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )


def test_the_next_writer_removes_what_a_killed_one_left(fits, tmp_path):
    with writer(tmp_path, "now") as killed:
        assert killed.wait() == 9
    assert len(unfinished(tmp_path)) == 2
    bk.save(fits[0], tmp_path / "fit.nc")
    assert unfinished(tmp_path) == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fit.nc"]


def test_what_is_being_written_stays(fits, tmp_path):
    with writer(tmp_path, "wait") as alive:
        assert alive.stdout.readline() == "ready\n"
        bk.save(fits[0], tmp_path / "fit.nc")
        assert len(unfinished(tmp_path)) == 2
        alive.communicate("go\n")
    bk.save(fits[0], tmp_path / "fit.zarr")
    assert unfinished(tmp_path) == []
