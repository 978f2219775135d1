"""What it takes to run a page: read from its code."""

import re

# Packages that a page imports and the extra ``plots`` does not bring.
_OTHERS = {"polars": "polars", "scorio": "scorio", "inspect_ai": "inspect-ai"}


def to_install(text: str) -> str:
    """Arguments of ``pip install``, in a clone of the repository, for the code of a page.

    Examples
    --------
    >>> to_install("import bayesatk as bk")
    "'.[plots]' jupyterlab"
    >>> to_install("from inspect_ai import eval")
    "'.[plots]' inspect-ai jupyterlab"
    """
    others = [
        package
        for name, package in _OTHERS.items()
        if re.search(rf"^\s*(?:from|import) {name}\b", text, re.MULTILINE)
    ]
    return " ".join(["'.[plots]'", *others, "jupyterlab"])
