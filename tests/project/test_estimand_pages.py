"""Every estimand page runs, its claims hold, and every metric has one.

A page ends with a hidden cell that lists ``claims``: pairs of a computed value and the number that
the text states. The cell asserts them when the documentation is built; here every decimal in the
text must be among them, so that no number can be written without being computed.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayesatk.metrics.grid import FAMILIES

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in (DOCS / "estimands").glob("*.md") if path.name != "index.md")
ALL = [*PAGES, DOCS / "choosing_a_metric.md"]
CELL = re.compile(r"```\{code-cell\} python\n(.*?)```", re.DOTALL)
HIDDEN = ":tags: [remove-cell]\n"
NOT_PROSE = re.compile(r"\A---.*?---|```.*?```|`[^`]*`|arXiv:[\d.]+|\]\([^)]*\)", re.DOTALL)
DECIMAL = re.compile(r"(?<![\w.])\d*\.\d\d+")
TOLERANCE = 5.1e-5  # four decimals are printed


@pytest.fixture
def silent_plots() -> Iterator[None]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def _cells(page: Path) -> list[str]:
    return CELL.findall(page.read_text())


def _run(page: Path) -> dict[str, object]:
    lines = "\n".join(_cells(page)).splitlines()
    code = "\n".join(line for line in lines if not line.startswith(":tags:"))
    names: dict[str, object] = {}
    exec(compile(code, str(page), "exec"), names)
    return names


@pytest.mark.usefixtures("silent_plots")
@pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)
def test_page_runs_and_its_numbers_hold(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims = _run(page)["claims"]
    assert isinstance(claims, list)
    assert claims
    for value, claim in claims:
        assert float(value) == pytest.approx(claim, abs=TOLERANCE)
    stated = {float(number) for number in DECIMAL.findall(NOT_PROSE.sub(" ", page.read_text()))}
    assert stated <= {claim for _, claim in claims}
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)
def test_page_asserts_its_claims_in_a_hidden_cell(page: Path) -> None:
    last = _cells(page)[-1]
    assert last.startswith(HIDDEN)
    assert "assert all(abs(value - claim) < 5.1e-5 for value, claim in claims)" in last


def test_every_metric_has_a_page_that_stands_in_the_index() -> None:
    pages = {page.stem for page in PAGES}
    assert {family.variable for family in FAMILIES.values()} | {"max_random_baseline"} == pages
    index = (DOCS / "estimands" / "index.md").read_text()
    listed = index.split("```{toctree}")[1].split()
    assert pages <= set(listed)
    assert all(f"]({page}.md)" in index for page in pages)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_has_every_part(page: Path) -> None:
    text = page.read_text()
    for heading in ("Definition", "Edge cases, identities", "How it goes wrong"):
        assert re.search(rf"^## {heading}", text, re.MULTILINE), heading
    for word in (
        "finite",
        "latent",
        "posterior",
        "hand",
        "target",
        "assumes",
        "pyplot",
        "Reference",
    ):
        assert word in text, word
