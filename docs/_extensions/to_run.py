"""What it takes to run a page: read from its code."""

import re

# Packages that a page imports and `bayesatk[plots]` does not bring.
_OTHERS = {"sklearn": "scikit-learn", "polars": "polars", "scorio": "scorio"}


def to_install(text: str) -> str:
    """Arguments of ``pip install`` for the code of a page.

    Examples
    --------
    >>> to_install("import bayesatk as bk")
    "'bayesatk[plots]' jupyterlab"
    >>> to_install('from sklearn.svm import SVC\\ncovariates="~ log2(x)"')
    "'bayesatk[plots,formulas]' scikit-learn jupyterlab"
    """
    extras = "plots,formulas" if '"~ ' in text else "plots"
    others = [
        package
        for name, package in _OTHERS.items()
        if re.search(rf"^\s*(?:from|import) {name}\b", text, re.MULTILINE)
    ]
    return " ".join([f"'bayesatk[{extras}]'", *others, "jupyterlab"])
