"""Closed forms work without what sampling and plots need; those say what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HIDDEN = ("bokeh", "matplotlib", "nutpie", "plotly", "pymc", "pytensor", "rich", "typer")
ARVIZ = ("arviz", "arviz_base", "arviz_stats", "arviz_plots", "h5netcdf")
HIDE = "import sys; sys.modules.update(dict.fromkeys({names!r}))\n"
EVERYDAY = """
import bayesatk as bk
data = bk.load("runs.csv")
fit = bk.evaluate(data, "pass@1,2 pass^2 bayes", rng=1)
assert len(bk.table(fit)) == 16
fit = bk.compare(fit)
assert "a" in str(bk.table(fit, "comparison"))
fit = bk.guessing.random_baseline(fit, 0.25, t=10, rng=1)
assert len(bk.table(fit)) == 2
bk.table(fit).to_csv("fit.csv")
assert "tabular" in bk.table(fit).to_latex()
bk.convert("runs.csv", "again.jsonl")
assert fit.sel(system="a")
assert (bk.checks.log_evidence(fit) < 0).all()
bk.checks.criticise(fit, rng=1)
bk.plan((0.6, 0.3), "pass@1", width=0.2)
bk.checks.check_trials([[0, 1, 1], [1, 0, 1], [1, 1, 1]])
bk.published.pass_at_k([[0, 1]], 1)
print(bk.cite(fit), fit.notes, bk.checks.provenance(fit)["versions"])
"""


def _run(code: str, hidden: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HIDE.format(names=hidden) + code]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def _write_runs(folder: Path) -> None:
    (folder / "runs.csv").write_text(
        "system,question,trial,outcome\n"
        + "".join(
            f"{system},{question},{trial},{trial < question % (4 + len(system)):d}\n"
            for system in ("a", "bb")
            for question in range(5)
            for trial in range(4)
        )
    )


def test_everyday_work_needs_no_sampler_no_plots_and_no_arviz(tmp_path) -> None:
    _write_runs(tmp_path)
    done = _run(EVERYDAY, HIDDEN + ARVIZ, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "@" in done.stdout


def test_draws_of_a_model_need_no_sampler(tmp_path) -> None:
    code = """
import bayesatk as bk, numpy as np, xarray as xr
p = xr.Dataset({"p": (("chain", "draw", "question"), np.full((2, 5, 1), 0.5))})
mine = bk.from_draws(xr.DataTree.from_dict({"posterior": p}), [[0, 1]], "pass@1")
assert (bk.table(mine)["mean"] == 0.5).all()
"""
    done = _run(code, HIDDEN, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_without_extras_it_installs_and_works(tmp_path) -> None:
    """Run the line of the page in an empty environment, and everyday work there."""
    page = (ROOT / "docs/command_line.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("pip install ")]
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", tmp_path / "light"], check=True)
    python = tmp_path / "light/bin/python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", *line.split()[1:]]
    done = subprocess.run(pip, capture_output=True, text=True, cwd=ROOT, check=False)
    if "connection" in done.stderr.lower():
        pytest.skip(f"no package registry can be reached: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    _write_runs(tmp_path)
    work = f"{EVERYDAY}\nbk.checks.exact_loo(fit); bk.save(fit, 'fit.nc')\n"
    work += "import arviz as az; az.summary(fit, group='posterior'); az.loo(fit.sel(system='a'))\n"
    bayesatk = tmp_path / "light/bin/bayesatk"
    for command, code, says in [
        ([python, "-c", work], 0, "@"),
        ([bayesatk, "evaluate", "runs.csv", "-m", "pass@1,2"], 0, "like these"),
        ([python, "-c", "import bayesatk as bk; bk.sample([[0, 1]], 'bayes')"], 1, "pymc nutpie"),
    ]:
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == code, done.stderr
        assert says in done.stdout + done.stderr
    samplers = "from importlib.util import find_spec as f; assert not any(map(f, {names}))"
    heavy = ("pymc", "nutpie", "pytensor", "numba", "matplotlib")
    subprocess.run([python, "-c", samplers.format(names=heavy)], check=True)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("bk.sample([[0, 1]], 'bayes')", "pip install pymc nutpie"),
        ("bk.models.build", "pip install pymc nutpie"),
        ("bk.checks.calibrate", "pip install pymc nutpie"),
        ("bk.plots.plot_curve", "pip install matplotlib"),
        ("bk.report(bk.evaluate([[0, 1]], 'bayes', rng=1), 'a.html')", "a report needs matplotlib"),
        ("import bayesatk.cli.app", "pip install typer rich"),
    ],
)
def test_what_is_missing_is_said_with_the_line_that_installs_it(code, says, tmp_path) -> None:
    done = _run(f"import bayesatk as bk; {code}", HIDDEN, tmp_path)
    assert done.returncode == 1
    *_, last = done.stderr.strip().splitlines()
    assert last.startswith("ImportError: "), done.stderr
    assert says in last


def test_a_page_that_cannot_be_made_is_refused_before_anything_is_read() -> None:
    code = "from bayesatk.cli.app import app; app('report Makefile -o page.html'.split())"
    done = _run(code, ("matplotlib",), ROOT)
    assert done.returncode == 2
    assert "a report needs matplotlib" in done.stderr
    assert "pip install matplotlib" in done.stderr
