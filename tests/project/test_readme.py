"""The README and the pages like it are true: commands and Python run and print what they show."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import bayesatk as bk

README = Path(__file__).parents[2] / "README.md"
CONSOLE = dict.fromkeys(
    block
    for page in ("README.md", "docs/index.md")
    for block in re.findall(r"```console\n(.*?)```", (README.parent / page).read_text(), re.DOTALL)
)

NUMBER = re.compile(r"\d+(?:\.(\d+))?")


def assert_same_but_for_a_last_digit(printed: str, shown: str) -> None:
    """Fail unless texts are the same; numbers may be rounded the other way on another machine."""
    assert NUMBER.sub("#", printed).startswith(NUMBER.sub("#", shown)), printed
    pairs = zip(NUMBER.finditer(printed), NUMBER.finditer(shown), strict=False)
    for number, stated in pairs:
        unit = 10.0 ** -len(stated[1]) if stated[1] else 0.0
        assert abs(float(number[0]) - float(stated[0])) <= 1.01 * unit, printed


@pytest.mark.slow
@pytest.mark.parametrize(("page", "outputs"), [("README.md", 3), ("AGENTS.md", 1)])
def test_code_blocks_run_and_print_what_is_shown(page, outputs, tmp_path, monkeypatch) -> None:
    text = (README.parent / page).read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", text, flags=re.DOTALL)
    shutil.copy(README.parent / "runs.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    printed = ""
    checked = 0
    for kind, text in blocks:
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, page, "exec"), namespace)
            printed = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
        else:
            shown = text.strip().removesuffix("...").strip()
            assert_same_but_for_a_last_digit(printed.strip(), shown)
            checked += 1
    assert checked == outputs
    for name in re.findall(r'savefig\("(.+?)"\)', (README.parent / page).read_text()):
        assert (tmp_path / name).stat().st_size > 10_000
        assert (README.parent / "docs/_static" / name).exists(), "shown, and made by this code"


def shell(line: str, folder: Path) -> str:
    """Run a line as it stands, with the commands of this environment first; return its output."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env=os.environ | {"PATH": path},
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.split()[0])
def test_console_blocks_run_as_they_stand(block: str, tmp_path: Path) -> None:
    """But for pip, which `.ci/wheel` runs, and for make, of which the targets are looked up."""
    shutil.copy(README.parent / "runs.csv", tmp_path)
    extras = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]
    for line in block.splitlines():
        if line.startswith("pip install"):
            (named,) = re.findall(r"pip install '\.\[([\w,]+)\]'", line)
            assert set(named.split(",")) <= set(extras["optional-dependencies"])
        elif line.startswith("make "):
            assert shell(line.replace("make", "make --dry-run", 1), README.parent)
        else:
            assert line.startswith("bayesatk "), line
            assert shell(line, tmp_path)
    if "bayesatk report" in block:
        assert "tuned is ahead of base" in (tmp_path / "report.html").read_text()


def test_the_runs_to_try_are_simulated_with_a_better_system() -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 0.5, 80)[:, None]
    marks = {"base": rng.binomial(1, p, (80, 5)), "tuned": rng.binomial(1, p**0.7, (80, 5))}
    data = bk.load(README.parent / "runs.csv")
    for system, simulated in marks.items():
        assert data.successes.sel(system=system).values.tolist() == simulated.sum(axis=1).tolist()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
