"""The worked diffs of docs/extending.md apply to this tree, and the tests in them pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIFFS = sorted((ROOT / "docs" / "diffs").glob("*.diff"))


def test_each_diff_is_shown_in_the_page() -> None:
    shown = re.findall(
        r"literalinclude\} diffs/(\w+)\.diff", (ROOT / "docs/extending.md").read_text()
    )
    assert sorted(shown) == [path.stem for path in DIFFS]
    assert {"metric", "law", "observation", "reader", "plot"} <= set(shown)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git to apply a diff")
@pytest.mark.parametrize("diff", DIFFS, ids=lambda path: path.stem)
def test_diff_applies_and_its_tests_pass(diff: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    # Outside any repository git applies a diff to the folder it is called from.
    environ = os.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    applied = subprocess.run(
        ["git", "apply", "-C1", str(diff)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert applied.returncode == 0, f"make docs/diffs/{diff.name} anew: {applied.stderr}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, "-W", "error", "--import-mode=importlib", "--rootdir=.", "tests"],
        cwd=tmp_path,
        env=environ | {"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[23] passed", done.stdout, re.MULTILINE)
