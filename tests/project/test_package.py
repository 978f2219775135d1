"""The package as a whole: public names, laziness, datasets, README."""

import doctest
import inspect
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
    "checks", "datasets", "decide", "guessing", "metrics", "models", "plots", "priors", "published",
)  # fmt: skip
NAMES = [(bk, name) for name in bk.__all__] + [
    (room, name) for room in map(bk.__getattr__, ROOMS) for name in room.__all__
]


def test_a_public_name_has_one_place() -> None:
    names = [name for _, name in NAMES]
    assert len(set(names)) == len(names)
    assert set(ROOMS) < set(bk.__all__)


@pytest.mark.parametrize(("place", "name"), NAMES, ids=lambda value: str(value).rpartition(".")[2])
def test_public_names_exist_and_are_documented(place: ModuleType, name: str) -> None:
    assert name in dir(place)
    assert inspect.getdoc(getattr(place, name))
    package = name not in ROOMS and hasattr(place, "__path__")
    shadow = find_spec(f"{place.__name__}.{name}") if package else None
    assert shadow is None, "importing a module of this name would replace what the name stands for"


def test_unknown_names_are_unknown() -> None:
    for room in (bk, bk.published):
        with pytest.raises(AttributeError, match=rf"'{room.__name__}' has no attribute 'nothing'"):
            _ = room.nothing


def _modules_after(code: str) -> set[str]:
    """Names of what is imported by then, whole and by their first part."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(' '.join(sys.modules))"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {*names, *(name.partition(".")[0] for name in names)}


@pytest.mark.parametrize(
    ("code", "needed", "heavy"),
    [
        ("bk.decide, bk.models; bk.published.pass_at_k([[0, 1]], 1)", "bayesatk.published",
         {"pandas", "xarray", "arviz", "pymc", "pytensor", "numba", "matplotlib"}),
        ("bk.evaluate([[0, 1]], 'pass@1', rng=1)", "bayesatk.posterior",
         {"pymc", "pytensor", "numba", "nutpie", "matplotlib"}),
    ],
    ids=["array functions", "evaluate"],
)  # fmt: skip
def test_what_is_not_used_is_not_imported(code, needed, heavy) -> None:
    loaded = _modules_after(f"import bayesatk as bk; {code}")
    assert needed in loaded
    assert not loaded & heavy


def test_no_example_prints_the_last_bit() -> None:
    """Processors differ in it: 0.75 came out as 0.7500000000000001."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
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
    puzzles = datasets.game_of_24().successes
    assert puzzles.sum("question").values.tolist() == [734, 403]
    assert (puzzles > 0).sum("question").values.tolist() == [33, 49]
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
]  # fmt: skip


def _public(name: str) -> object:
    return reduce(getattr, name.split("."), bk)


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_twins_and_plots_name_each_other(one: str, other: str) -> None:
    assert f"bayesatk.{other}" in (inspect.getdoc(_public(one)) or "")
    assert f"bayesatk.{one} : " in (inspect.getdoc(_public(other)) or "")


def test_see_also_names_what_exists() -> None:
    for room, name in NAMES:
        text = inspect.getdoc(getattr(room, name)) or ""
        for target in re.findall(r"^bayesatk\.([\w.]+)(?:, | : )", text, re.MULTILINE):
            assert inspect.getdoc(_public(target)), f"{name}: See Also {target}"


def test_functions_that_messages_and_docstrings_name_exist() -> None:
    """A message once advised `bayesatk.random_baseline`, which is in `bayesatk.guessing`."""
    for path in (ROOT / "src").rglob("*.py"):
        for name in re.findall(r"\bbayesatk\.([a-z_]+(?:\.[a-z_]+)*)\(", path.read_text()):
            assert callable(_public(name)), f"{path.name}: bayesatk.{name}"


def test_docstrings_of_what_a_user_calls_have_examples_and_counterparts() -> None:
    """Datasets, the short array functions and errors have a source in place of counterparts."""
    for room, name in NAMES:
        owner = _public(name) if room is bk else getattr(room, name)
        alone = room in (bk.published, bk.datasets) or name.startswith("Outcome")
        if name in ROOMS or alone or name in ("SelectedSkill", "PValueRange"):
            continue
        assert "\nSee Also\n---" in (inspect.getdoc(owner) or ""), name


def test_the_reference_lists_every_public_name_once() -> None:
    text = (ROOT / "docs/api.md").read_text()
    listed: list[str] = []
    for block in re.findall(r"```\{eval-rst\}\n(.*?)```", text, re.DOTALL):
        room = re.findall(r"currentmodule:: (\S+)", block)[0]
        listed += [f"{room}.{name}" for name in re.findall(r"^   (\w+)$", block, re.MULTILINE)]
    public = [f"{room.__name__}.{name}" for room, name in NAMES if name not in ROOMS]
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
