"""The pages with code: every cell runs, and its hidden checks hold."""

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest

import bayesatk as bk
from bayesatk.metrics.grid import FAMILIES

matplotlib.use("agg")

DOCS = Path(__file__).parents[2] / "docs"
CELL = re.compile(r"```\{code-cell\} python\n((?::[^\n]*\n)*)(.*?)```", re.DOTALL)
SAMPLING = (
    "tutorial",
    "how_we_know",
    "extending",
    "own_model",
    "compare_models",
)  # PyMC runs there
LONGER = (
    "index", "limits", "comparing_systems", "random_baseline", "answers_and_grades",
    "how_many_trials", "leaderboards", "your_questions", "judge_error", "models",
    "schema",
)  # fmt: skip
SHOWING = ("logs", "gates")  # pictures and files, checked elsewhere
LONG = (  # three seconds or more: for test-all
    "limits", "your_questions", "answers_and_grades", "comparing_systems", "how_many_trials",
    "random_baseline", "models",
)  # fmt: skip
EXECUTED = {*SAMPLING, *LONGER, *SHOWING, "metrics"}


def cells(page: str) -> list[tuple[str, int, str]]:
    """Options, first line and code of every cell."""
    text = (DOCS / f"{page}.md").read_text()
    return [(m[1], text.count("\n", 0, m.start(2)), m[2]) for m in CELL.finditer(text)]


def run(page: str) -> dict[str, object]:
    """Execute a page, with its own line numbers in tracebacks; return its names."""
    import matplotlib.pyplot as plt

    names: dict[str, object] = {"__name__": "page"}
    try:
        for _, line, code in cells(page):
            exec(compile("\n" * line + code, str(DOCS / f"{page}.md"), "exec"), names)
            plt.close("all")  # as a notebook does
    finally:
        plt.close("all")
    return names


@pytest.fixture(autouse=True)
def _as_in_jupyter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set what a kernel sets; take out the metrics that pages add in memory."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    before = dict(FAMILIES)
    yield
    FAMILIES.clear()
    FAMILIES.update(before)


@pytest.mark.long
@pytest.mark.parametrize("page", SAMPLING)
def test_page_that_samples(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(page)
    verifies = any("bk.verify(" in code for _, _, code in cells(page))
    assert ("AGREE" in capsys.readouterr().out) == verifies


@pytest.mark.parametrize(
    "page",
    [
        *(pytest.param(page, marks=pytest.mark.slow) for page in LONGER if page not in LONG),
        *(pytest.param(page, marks=pytest.mark.long) for page in LONG),
    ],
)
def test_page(page: str) -> None:
    run(page)


@pytest.mark.long
@pytest.mark.parametrize("page", SHOWING)
def test_page_that_shows(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS)
    run(page)


def test_walkthrough_of_a_metric_leaves_nothing_behind() -> None:
    assert "two@" not in FAMILIES
    with pytest.raises(ValueError, match="not a known metric"):
        bk.evaluate([[1, 0]], "two@2")


@pytest.mark.parametrize("page", [*SAMPLING, *LONGER])
def test_every_page_checks_its_numbers(page: str) -> None:
    hidden = [code for options, _, code in cells(page) if "remove-cell" in options]
    assert sum(code.count("assert ") for code in hidden) >= 3, page
    shown = [code for options, _, code in cells(page) if "remove-cell" not in options]
    assert not any("assert " in code for code in shown)


def test_every_page_with_code_is_executed() -> None:
    """The pages are built without running them in CI; these tests run them."""
    pages = {
        str(path.relative_to(DOCS).with_suffix(""))
        for path in DOCS.rglob("*.md")
        if not {"_build", "case_studies"} & set(path.relative_to(DOCS).parts)
        and CELL.search(path.read_text())
    }
    assert pages == EXECUTED


@pytest.mark.parametrize(
    "page",
    [*SAMPLING, *LONGER, *SHOWING, "metrics", "command_line", "contributing"],
)
def test_links_to_other_pages_lead_somewhere(page: str) -> None:
    path = DOCS / f"{page}.md"
    prose = CELL.sub("", path.read_text())
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose):
        assert (path.parent / target).exists(), target


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"^([\w/]+)$", (DOCS / "index.md").read_text(), re.MULTILINE)
    for path in DOCS.glob("*.md"):
        assert listed.count(str(path.relative_to(DOCS).with_suffix(""))) == (path.stem != "index")


def test_every_table_to_download_is_offered() -> None:
    pages = "".join(path.read_text() for path in DOCS.glob("*.md"))
    offered = re.findall(r"\{download\}`[^`<]*<(tables/\w+\.csv)>`", pages)
    assert {f"tables/{path.name}" for path in (DOCS / "tables").glob("*")} == set(offered)
