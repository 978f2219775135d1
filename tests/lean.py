"""Closed forms, readers, results and tables work without PyMC: their tests run without it.

``pytest --lean only`` runs them as if what sampling, plots, reports and the command line need were
not installed, and ``--lean skip`` runs all other tests; `make test` does one after the other.
"""

import sys
from pathlib import Path
from typing import Literal

import pytest

HIDDEN = ("bokeh", "matplotlib", "nutpie", "plotly", "pymc", "pytensor", "rich", "typer")
PACKAGES = (
    "_tools", "core", "costs", "data", "guessing", "io", "metrics", "posterior",
    "priors", "published", "results",
)  # fmt: skip
NOT_LEAN = ("slow", "long", "full")


class Lean:
    """The plugin: hides packages, and chooses files and tests."""

    def __init__(self, choice: Literal["only", "skip"]) -> None:
        self.only = choice == "only"
        if self.only:
            for name in HIDDEN:  # importing one is an error, and find_spec finds nothing
                sys.modules[name] = None  # type: ignore[assignment]

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Do not import what is not lean."""
        if self.only and collection_path.suffix == ".py" and not _in_lean(collection_path):
            return True
        return None

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        kept: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            lean = _in_lean(item.path) and not any(map(item.get_closest_marker, NOT_LEAN))
            (kept if lean == self.only else left_out).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _in_lean(path: Path) -> bool:
    """Whether a file is in one of the packages, or in the folder of its tests."""
    top = next((one for one in path.parents if one.name in ("bayesatk", "tests")), None)
    if top is None:
        return False
    if path.name == "inspect.py":  # inspect-ai needs rich
        return False
    return path.relative_to(top).parts[0] in PACKAGES or path.parent.name == "bayesatk"
