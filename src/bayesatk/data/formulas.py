"""What a formula may say.

A formula is read by formulaic, which evaluates Python. A result keeps its formula as text, and a
file that is loaded may come from anywhere: so what a formula may call is a short list, and nothing
beyond it is evaluated.
"""

import ast
import re
from typing import Any

import numpy as np

from bayesatk._tools.messages import Argument
from bayesatk._tools.packages import FORMULAS, require
from bayesatk.data.validation import OutcomeError, shown

_FUNCTIONS = {"log", "log2", "log10", "exp", "center", "scale", "poly", "bs", "cr", "I", "C"}
FUNCTIONS = {"sqrt": np.sqrt, "log1p": np.log1p}  # beside those of formulaic
_NODES = (
    ast.Expression, ast.Call, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.keyword, ast.Load,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.UAdd,
)  # fmt: skip
_LONGEST = 500  # characters of a formula
_CROSSINGS = 8  # of "*", "/" and ":" in it: terms double with each
_LARGEST = 20  # whole number as an argument, such as the degree of a polynomial


def covariates_of(formula: str) -> set[str]:
    """Return the covariates of a formula, or refuse what it may not say.

    Parameters
    ----------
    formula : str
        Begins with ``~``.
    """
    if len(formula) > _LONGEST or "**" in formula or "^" in formula or "." in re.sub(
        r"\d+\.\d*|\.\d+", "", formula
    ) or len(re.findall(r"[*/:]", formula)) > _CROSSINGS:  # fmt: skip
        _refuse(formula, "powers, dots and many crossed terms are not read; a square is poly(x, 2)")
    require(*FORMULAS)
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    try:
        terms = list(Formula(formula))
        factors = {
            factor.expr: str(factor.eval_method) for term in terms for factor in term.factors
        }
    except (FormulaicError, AttributeError, TypeError, ValueError) as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        _refuse(formula, lines[0] if lines else "it has no terms")
    names: set[str] = set()
    for text, method in factors.items():
        if method.endswith("LOOKUP"):
            names.add(text)
        elif method.endswith("PYTHON"):
            names |= _names_of(text, formula)
    return names


def _names_of(text: str, formula: str) -> set[str]:
    """Return the covariates in an expression that calls nothing but what is listed."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        _refuse(formula, f"{text!r} cannot be read")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = set()
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            _refuse(formula, f"{text!r} may hold names, numbers, + - * / and functions only")
        if isinstance(node, ast.Constant):
            whole = isinstance(node.value, int) and id(node) in _arguments(tree)
            if not isinstance(node.value, int | float) or (whole and abs(node.value) > _LARGEST):
                _refuse(formula, f"{node.value!r} is no number that {text!r} may hold")
        if isinstance(node, ast.Name) and id(node) in called:
            if node.id not in _FUNCTIONS | set(FUNCTIONS):
                functions = ", ".join(sorted(_FUNCTIONS | set(FUNCTIONS)))
                _refuse(
                    formula, f"{node.id!r} is none of the functions that it may call: {functions}"
                )
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif id(node) in called:
            _refuse(formula, f"{text!r} may call functions by their names only")
    return names


def _arguments(tree: ast.AST) -> set[int]:
    """Arguments of calls, by identity."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {id(one) for call in calls for one in [*call.args, *(k.value for k in call.keywords)]}


def _refuse(formula: str, reason: str) -> Any:
    raise OutcomeError(
        Argument("covariates"), f" must be a formula such as '~ log2(minutes) + domain'; in "
        f"{shown(formula)}: {reason}.",
    )  # fmt: skip
