"""The package as a whole: public names, laziness, datasets, README."""

import ast
import doctest
import inspect
import os
import re
import subprocess
import sys
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import bayesatk as bk

ROOT = Path(__file__).parents[2]
ROOMS = (
    "checks", "costs", "datasets", "decide", "guessing", "metrics", "models", "plots", "priors",
    "published",
)  # fmt: skip
NAMES = [(bk, name) for name in bk.__all__] + [
    (room, name) for room in map(bk.__getattr__, ROOMS) for name in room.__all__
]


def test_a_public_name_has_one_place() -> None:
    names = [name for _, name in NAMES]
    assert len(set(names)) == len(names)
    assert len(bk.__all__) <= 40, "names of one topic go to its shelf"
    assert set(ROOMS) < set(bk.__all__)


@pytest.mark.parametrize(("place", "name"), NAMES, ids=lambda value: str(value).rpartition(".")[2])
def test_public_names_exist_and_are_documented(place: ModuleType, name: str) -> None:
    assert name in dir(place)
    assert inspect.getdoc(getattr(place, name))
    package = name not in ROOMS and hasattr(place, "__path__")
    shadow = find_spec(f"{place.__name__}.{name}") if package else None
    assert shadow is None, "importing a module of this name would replace what the name stands for"


def test_unknown_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = bk.nothing
    with pytest.raises(AttributeError, match="nothing"):
        _ = bk.published.nothing


def test_every_public_name_can_be_imported_at_once() -> None:
    """The variable of SPEC 1 that turns laziness off: every line of the stubs must import."""
    loaded = _modules_after("import bayesatk", EAGER_IMPORT="1")
    assert {"bayesatk.models.others", "bayesatk.plots.rows", "pymc", "matplotlib"} <= loaded
    assert "bayesatk.cli" not in loaded


def _output_of(code: str, **variables: str) -> str:
    command = [sys.executable, "-c", code]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def _modules_after(code: str, **variables: str) -> set[str]:
    """Names of what is imported by then, whole and by their first part."""
    names = _output_of(f"{code}\nimport sys; print(' '.join(sys.modules))", **variables).split()
    return {*names, *(name.partition(".")[0] for name in names)}


HEAVY = {"xarray", "pandas", "arviz", "pymc", "pytensor", "matplotlib", "narwhals", "numba"}


def test_naming_a_package_of_public_names_loads_none_of_them() -> None:
    rooms = "; ".join(f"bayesatk.{room}" for room in ROOMS if room != "priors")
    loaded = _modules_after(f"import bayesatk; {rooms}; from bayesatk import plots")
    assert not loaded & (HEAVY | {"numpy", "scipy", "rich", "typer"})


def test_array_functions_load_numpy_and_scipy_only() -> None:
    loaded = _modules_after("import bayesatk; bayesatk.published.pass_at_k_ci([[0, 1]], 1)")
    assert {"numpy", "scipy"} <= loaded
    assert not loaded & (HEAVY | {"rich", "typer"})


def test_evaluate_loads_no_sampler() -> None:
    loaded = _modules_after("import bayesatk; bayesatk.evaluate([[0, 1]], 'pass@1', rng=1)")
    assert not loaded & {"pymc", "pytensor", "matplotlib", "numba", "nutpie"}
    assert not loaded & {"scipy.stats", "narwhals", "arviz", "rich"}


GATE = "gate new.csv --baseline old.csv -m pass@1 --margin 0.05 -q"
COLD = [("evaluate old.csv -m pass@1 -q", 2.5), (GATE, 3.0)]  # seconds of processor time, stated


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Two systems, 200 questions, 5 trials each."""
    folder = tmp_path_factory.mktemp("runs")
    for shift, name in enumerate(("old", "new")):
        rows = [f"q{q},{t},{t < (q + shift) % 6:d}" for q in range(200) for t in range(5)]
        (folder / f"{name}.csv").write_text("question,trial,outcome\n" + "\n".join(rows))
    return folder


@pytest.mark.parametrize(("line", "seconds"), COLD, ids=["evaluate", "gate"])
def test_a_cold_command_is_light(line, seconds, runs, monkeypatch) -> None:
    """The stated seconds are of a quiet machine; the best of three runs may take 1.6 of them."""
    monkeypatch.chdir(runs)
    code = (
        "import sys\nfrom time import process_time\nfrom bayesatk.cli.app import app\n"
        f"try:\n    app({line.split()!r})\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "print('LOADED', process_time(), *sys.modules)"
    )
    least = float("inf")
    for _ in range(3):
        _, taken, *loaded = _output_of(code).rpartition("LOADED")[2].split(" ")
        assert not {"pymc", "pytensor", "matplotlib", "numba", "nutpie"} & set(loaded)
        assert not {"scipy.stats", "arviz", "bayesatk.reporting", "bayesatk.models"} & set(loaded)
        least = min(least, float(taken))
        if least < seconds:
            break
    assert least < 1.6 * seconds


def test_evaluate_starts_about_as_fast_as_what_it_stands_on() -> None:
    """CPU time of the import: 1.35 to 1.45 of the floor of what it imports anyway."""
    code = (
        "from time import process_time as now\na = now()\n"
        "import xarray, scipy.optimize, scipy.interpolate\nb = now()\n"
        "import bayesatk as bk; bk.evaluate\nprint((now() - a) / (b - a))"
    )
    assert min(float(_output_of(code)) for _ in range(3)) < 1.8


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--help", "Exit codes"),
        ("evaluate --help", "Example"),
        ("--version", bk.__version__),
        ("estimate", "No such command"),
        ("evaluate", "Missing argument"),
        ("evaluate none.csv -m pass@1", "there is no such file"),
        ("verify a=none.csv b=none.csv -m pass@1", "there is no such file"),
        ("compare Makefile -m pass@1 -o fit.txt", "--output must end in"),
        ("convert Makefile -o no/runs.csv", "a folder that exists"),
        ("report Makefile -o page.html --column question", "--column must be NAME=VALUE"),
        ("plan -m pass@1", "give a pilot FILE or --difficulty"),
        ("plan Makefile -m pass@1 --difficulty a=0.5,0.1", "one of the two"),
        ("baseline Makefile --n 10", "either --guess"),
        ("baseline Makefile --guess 0.5 --n 10", "go without a FILE"),
        ("cite none.nc", "there is no such file"),
    ],
)
def test_the_command_line_helps_and_refuses_before_anything_heavy(line: str, says: str) -> None:
    code = (
        "import sys\nfrom bayesatk.cli.app import app\n"
        f"try:\n    app({line.split()!r})\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sys.modules)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    printed, _, loaded = done.stdout.rpartition("LOADED")
    assert says in printed + done.stderr
    assert not set(loaded.split()) & (HEAVY | {"numpy", "scipy"})


def test_no_example_prints_the_last_bit() -> None:
    """Processors differ in it: 0.75 came out as 0.7500000000000001."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/how_to").glob("*")]
    printed = [
        (path, block)
        for path in pages
        for block in re.findall(r"```text\n(.*?)```", path.read_text(), re.DOTALL)
    ]
    for path in (ROOT / "src").rglob("*.py"):
        examples = doctest.DocTestParser().get_examples(path.read_text())
        printed += [(path, example.want) for example in examples]
    assert len(printed) > 100
    for path, text in printed:
        assert not re.search(r"\.\d{13}", text), f"{path}: round what prints {text}"


def test_datasets_add_up() -> None:
    from bayesatk import datasets

    assert int(datasets.rat_tumors().trials.sizes["question"]) == 71
    assert datasets.rat_tumors().successes.values[0, -1] == 4
    assert int(datasets.batting_1975().trials.sum()) == 18 * 45
    assert int(datasets.batting_1975_remaining().successes.sum()) == 1952
    assert int(datasets.surgical().successes.sum()) == 208
    assert datasets.tau_bench_airline().successes.values.sum() == 84
    for name in datasets.__all__:
        text = inspect.getdoc(getattr(datasets, name)) or ""
        assert "Source" in text or "source" in text
        assert "icence" in text


TWINS = [
    ("evaluate", "sample"),
    ("guessing.random_baseline_distribution", "models.sample_random_baseline"),
    ("verify", "plots.plot_verification"), ("checks.calibrate", "plots.plot_calibration"),
    ("compare", "plots.plot_difference"), ("compare", "plots.plot_ranks"),
    ("leaderboard", "plots.plot_leaderboard"), ("decide.gate", "plots.plot_gate"),
    ("evaluate", "plots.plot_curve"), ("checks.criticise", "plots.plot_difficulty"),
    ("models.build_crossed", "models.compile_crossed"),
]  # fmt: skip


def _public(name: str) -> object:
    return reduce(getattr, name.split("."), bk)


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_twins_and_plots_name_each_other(one: str, other: str) -> None:
    assert f"bayesatk.{other}" in (inspect.getdoc(_public(one)) or "")
    assert f"bayesatk.{one} : " in (inspect.getdoc(_public(other)) or "")


def test_see_also_names_what_exists() -> None:
    for place, name in NAMES:
        text = inspect.getdoc(getattr(place, name)) or ""
        for found in re.findall(r"^bayesatk\.([\w.]+)(?:, | : )", text, re.MULTILINE):
            assert inspect.getdoc(_public(found)), f"{name}: See Also {found}"


def test_functions_that_messages_and_docstrings_name_exist() -> None:
    """A message once advised `bayesatk.random_baseline`, which is in `bayesatk.guessing`."""
    for path in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"\bbayesatk\.([a-z_]+(?:\.[a-z_]+)*)\(", path.read_text()):
            assert callable(_public(name)), f"{path.name}: bayesatk.{name}"


def test_docstrings_of_what_a_user_calls_have_examples_and_counterparts() -> None:
    """Datasets, the short array functions and errors have a source in place of counterparts."""
    for place, name in NAMES:
        owner = _public(name) if place is bk else getattr(place, name)
        alone = place in (bk.published, bk.datasets) or name.startswith("Outcome")
        if name in ROOMS or alone or name in ("SelectedSkill", "PValueRange"):
            continue
        assert "\nSee Also\n---" in (inspect.getdoc(owner) or ""), name


def test_the_reference_lists_every_public_name_once() -> None:
    text = (ROOT / "docs/api.md").read_text()
    listed: list[str] = []
    for block in re.findall(r"```\{eval-rst\}\n(.*?)```", text, re.DOTALL):
        place = re.findall(r"currentmodule:: (\S+)", block)[0]
        listed += [f"{place}.{name}" for name in re.findall(r"^   (\w+)$", block, re.MULTILINE)]
    public = [f"{place.__name__}.{name}" for place, name in NAMES if name not in ROOMS]
    assert sorted(listed) == sorted(public)


def test_citation_version_and_changelog_agree() -> None:
    assert f"\nversion: {bk.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {bk.__version__} (" in (ROOT / "docs/changelog.md").read_text()


@pytest.mark.parametrize("page", ["AGENTS.md", "docs/llms.txt", "docs/contributing.md"])
def test_pages_for_assistants_and_maintainers_point_at_what_is_there(page: str) -> None:
    text = (ROOT / page).read_text()
    links = [ROOT / "docs" / link for link in re.findall(r"\]\(([\w./]+\.md)", text)]
    links += [ROOT / name for name in re.findall(r"\b(?:docs|src)/[\w./]+\w", text)]
    assert links
    for link in links:
        assert link.exists(), f"{page}: {link}"
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?\bmake ([a-z-]+)(?=`|  )", text):
        assert f"\n{target}:" in makefile, f"{page}: make {target}"


def test_functions_are_short() -> None:
    """At most 40 lines after the signature and the docstring, as docs/contributing.md says."""
    long = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.body:
                documented = ast.get_docstring(node) is not None and len(node.body) > 1
                start = node.body[int(documented)].lineno
                if (node.end_lineno or start) - start >= 40:
                    long.append(f"{path.name}: {node.name}")
    assert not long
