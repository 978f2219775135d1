"""Public names: listed once, in stubs, and imported on first use.

A stub (``bayesatk/decide.pyi`` beside ``decide.py``) has one line for each name of its module. Type
checkers read it, and `shelf` imports from it. `lazy_loader.attach_stub` does that for names from
below a module only; a shelf has names from beside it.
"""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from bayesatk._tools.packages import SAMPLING, require


def shelf(name: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a module whose stub lists its names.

    Parameters
    ----------
    name, file : str
        ``__name__`` and ``__file__`` of the module.

    Examples
    --------
    >>> import bayesatk
    >>> bayesatk.decide.gate.__name__
    'gate'
    """
    homes = _homes(name, file)

    @cache  # not in the module, where doctest would find the examples of functions again
    def find(attribute: str) -> Any:
        if attribute not in homes:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute)
        try:
            if homes[attribute] == name:
                return import_module(f"{name}.{attribute}")
            return getattr(import_module(homes[attribute]), attribute)
        except ModuleNotFoundError as missing:
            if missing.name in SAMPLING:
                require(*SAMPLING)
            raise

    names = sorted(homes)
    return find, names.copy, names.copy()


def _homes(name: str, file: str) -> dict[str, str]:
    """Return the module that each name of a stub comes from; of a submodule, its package.

    Every line of a stub is ``from .module import name as name``.
    """
    stem, _ = os.path.splitext(file)
    package = name if os.path.basename(stem) == "__init__" else name.rpartition(".")[0]
    homes: dict[str, str] = {}
    with open(f"{stem}.pyi", encoding="utf-8") as stub:
        for line in stub:
            words = line.split()
            if words[:1] == ["from"]:
                homes[words[3]] = package + words[1].rstrip(".")
    return homes
