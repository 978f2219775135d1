"""The pytest plugin: what a gate does to its test, and that it costs nothing until it is used."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = """
import numpy as np

rng = np.random.default_rng(1)
p = rng.beta(0.8, 0.6, 60)
main = rng.binomial(1, p[:, None], (60, 4))
runs = {
    "same": rng.binomial(1, p[:, None], (60, 4)),
    "worse": rng.binomial(1, p[:, None] ** 4, (60, 4)),
}

def test_passes(bayesatk_gate):
    found = bayesatk_gate(runs["same"], main, metric="pass@1", margin=0.2)
    assert found["gate"].attrs["verdict"] == "pass"

def test_fails(bayesatk_gate):
    bayesatk_gate(runs["worse"], main, metric="pass@1", margin=0.02)

def test_open(bayesatk_gate):
    bayesatk_gate(main, main, metric="pass@1", margin=0.001)

def test_of_files(bayesatk_gate, tmp_path):
    (tmp_path / "gate.toml").write_text('metric = "pass@1"\\nmargin = 0.2\\n')
    for name, own in (("new", runs["same"]), ("main", main)):
        rows = [f"q{q},{t},{x}" for q, row in enumerate(own) for t, x in enumerate(row)]
        (tmp_path / f"{name}.csv").write_text("question,trial,outcome\\n" + "\\n".join(rows))
    bayesatk_gate(tmp_path / "new.csv", tmp_path / "main.csv", tmp_path / "gate.toml")
"""


def _pytest(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", *arguments,
         str(folder)],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_gate_decides_its_test(tmp_path) -> None:
    (tmp_path / "test_gates.py").write_text(TEST)
    shown = _pytest(tmp_path, "--junitxml=found.xml")
    assert "2 failed, 2 passed" in shown
    for text in ("test_fails: FAIL: in pass@1", "test_open: INCONCLUSIVE", "test_passes: PASS"):
        assert text in shown
    assert 'name="bayesatk_gate_verdict" value="fail"' in (tmp_path / "found.xml").read_text()
    skipped = _pytest(tmp_path, "-o", "bayesatk_inconclusive=skip", "-k", "open")
    assert "1 skipped" in skipped
    wrong = _pytest(tmp_path, "-o", "bayesatk_inconclusive=maybe", "-k", "open")
    assert "must be one of fail, skip, pass; got 'maybe'" in wrong


def test_the_plugin_is_installed_and_imports_nothing_of_the_library() -> None:
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    module = entry["pytest11"]["bayesatk"]
    code = (
        f"import pytest, sys; before = set(sys.modules); import {module}; "
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['bayesatk']"
