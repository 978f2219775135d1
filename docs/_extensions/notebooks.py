"""Offer every page that has code as a notebook, beside the page."""

from pathlib import Path
from typing import Any

import jupytext
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from to_run import to_install

FOLDER = "notebooks"


def has_code(app: Sphinx, page: str) -> bool:
    """Whether the source of a page is a notebook in text."""
    if page not in app.env.found_docs:
        return False
    return Path(app.env.doc2path(page)).read_text(encoding="utf-8").startswith("---\njupytext:")


def link(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Tell the template of a page where its notebook is, and what to install to run it."""
    if has_code(app, page):
        target = f"{FOLDER}/{page}.ipynb"
        context["notebook"] = context["pathto"](target, resource=True)
        context["to_install"] = to_install(Path(app.env.doc2path(page)).read_text(encoding="utf-8"))


def write(app: Sphinx, error: Exception | None) -> None:
    """Convert the pages that have code."""
    if error is not None or app.builder.format != "html":
        return
    for page in app.env.found_docs:
        if has_code(app, page):
            path = Path(app.outdir, FOLDER, f"{page}.ipynb")
            path.parent.mkdir(parents=True, exist_ok=True)
            jupytext.write(jupytext.read(Path(app.env.doc2path(page))), path)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect both to the build."""
    app.connect("html-page-context", link)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
