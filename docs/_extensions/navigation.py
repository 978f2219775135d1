"""Fold the groups of the navigation; that of the page that is read is open."""

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_GROUP = re.compile(
    r'<p[^>]*class="caption"[^>]*>\s*<span class="caption-text">(?P<name>.*?)</span>\s*</p>\s*'
    r'(?P<pages><ul(?P<attributes>[^>]*)>.*?</ul>)\s*(?=<p[^>]*class="caption"|$)',
    re.DOTALL,
)


def folded(html: object) -> str:
    """Put every group of pages under a heading that opens it.

    Examples
    --------
    >>> print(folded('<p class="caption"><span class="caption-text">A</span></p><ul>...</ul>'))
    <details class="nav-group" open><summary>A</summary><ul>...</ul></details>
    """
    text = str(html)
    reading = any("current" in group["attributes"] for group in _GROUP.finditer(text))

    def fold(group: re.Match[str]) -> str:
        first = group.start() == 0 or not text[: group.start()].strip()
        is_open = "current" in group["attributes"] if reading else first
        return (
            f'<details class="nav-group"{" open" if is_open else ""}>'
            f"<summary>{group['name']}</summary>{group['pages']}</details>"
        )

    return _GROUP.sub(fold, text)


def offer(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Give the function to the templates."""
    context["folded"] = folded


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect it to the build."""
    app.connect("html-page-context", offer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
