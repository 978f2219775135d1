"""Pages with code open as notebooks, and the header of each says how."""

import re
from pathlib import Path

import jupytext
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
CELL = re.compile(r"^```\{code-cell\} python$", re.MULTILINE)
PAGES = [
    path
    for folder in ("docs", "case_studies/*")
    for path in sorted(ROOT.glob(f"{folder}/*.md"))
    if CELL.search(path.read_text())
]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_page_opens_as_a_notebook_with_all_its_cells(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    target = tmp_path / f"{page.stem}.ipynb"
    jupytext.write(jupytext.read(page), target)
    notebook = nbformat.read(target, as_version=4)
    nbformat.validate(notebook)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) == len(CELL.findall(text))
    assert all(code)
    assert not any("```" in source or source.startswith(":tags:") for source in code)
    assert notebook.metadata.kernelspec.name == "python3"


def test_the_header_of_a_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_extensions")
    from to_run import to_install

    headers = {page: to_install(page.read_text()) for page in PAGES}
    assert all(".[plots" in words and "jupyterlab" in words for words in headers.values())
    for page, words in headers.items():
        text = page.read_text()
        for package in ("polars", "scorio"):
            if re.search(rf"^\s*(?:from|import) {package}\b", text, re.MULTILINE):
                assert package in words
