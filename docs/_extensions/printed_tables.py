"""Mark printed output that is a table: its lines must not wrap, or columns no longer align."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_COLUMNS = re.compile(r"\S {2,}\S")  # two words with a gap between them, as columns have
_LONGEST = 120  # characters; output with longer lines has sentences too, which must wrap


def is_table(text: str) -> bool:
    r"""Whether most lines have columns and no line is a long sentence.

    Examples
    --------
    >>> is_table("system  mean\nbase    0.41")
    True
    >>> is_table("base scored 0.41 on 60 questions.")
    False
    """
    lines = [line for line in text.splitlines() if line.strip()]
    aligned = sum(bool(_COLUMNS.search(line)) for line in lines)
    return aligned >= 2 and 2 * aligned >= len(lines) and max(map(len, lines)) <= _LONGEST


def mark(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Give printed tables a class of their own."""
    for block in doctree.findall(nodes.literal_block):
        if "output" in block["classes"] and is_table(block.astext()):
            block["classes"].append("printed-table")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Look at every page once its output is there."""
    app.connect("doctree-resolved", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
