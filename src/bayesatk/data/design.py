"""Covariates of questions as columns of numbers: from a formula, or from names.

A formula is read by formulaic, which evaluates Python. A result keeps its formula as text, and a
file that is loaded may come from anywhere: so what a formula may call is a short list, and nothing
beyond it is evaluated.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument
from bayesatk._tools.packages import FORMULAS, require
from bayesatk.data.question_columns import question_coordinates
from bayesatk.data.validation import OutcomeError, shown

INTERCEPT = "Intercept"


@dataclass(frozen=True)
class Basis:
    """Covariates of questions, centred and orthonormal over all questions of the data.

    Parameters
    ----------
    rows : ndarray, shape (questions, 1 + columns)
        First 1, then the columns in their basis: uncorrelated, of mean 0 and sd 1 over the
        questions.
    back : ndarray, shape (1 + columns, 1 + columns)
        Takes coefficients in this basis to those of the columns themselves.
    """

    rows: Array
    back: Array

    def among(self, kept: NDArray[Any]) -> "Basis":
        """Return some of the questions, in the same basis."""
        return Basis(self.rows[kept], self.back)

    def coefficients(self, logits: Array) -> Array:
        """Intercept and slopes of the columns, from coefficients of the basis; (..., columns)."""
        return logits @ self.back.T

    def logits(self, coefficients: Array) -> Array:
        """Coefficients of the basis, from intercept and slopes of the columns; the inverse."""
        return coefficients @ np.linalg.inv(self.back).T


@dataclass(frozen=True)
class Design:
    """A formula, or names of covariates, and the covariates of all questions.

    Parameters
    ----------
    formula : str
        Empty where there are only names.
    frame : pandas.DataFrame
        The covariates that are used, a row for each question.

    Examples
    --------
    >>> frame = pd.DataFrame({"minutes": [1, 4, 16], "domain": ["law", "art", "law"]})
    >>> design = Design("", frame)
    >>> design.names, design.columns(frame).tolist()
    (['minutes', 'domain[T.law]'], [[1.0, 1.0], [4.0, 0.0], [16.0, 1.0]])
    """

    formula: str
    frame: pd.DataFrame

    def __hash__(self) -> int:
        return hash((self.formula, tuple(self.frame.columns)))

    @classmethod
    def of(cls, dataset: xr.Dataset, covariates: object) -> "Design":
        """Read what was asked for, of the questions of some data.

        Parameters
        ----------
        dataset : xarray.Dataset
            With coordinates of questions.
        covariates : str, or sequence of str
            A formula, which begins with ``~``, or names of columns.
        """
        coordinates = question_coordinates(dataset)
        formula = covariates.strip() if isinstance(covariates, str) else ""
        if formula.startswith("~"):
            names = sorted(covariates_of(formula))
        else:
            listed = isinstance(covariates, Sequence) and not isinstance(covariates, str)
            names = list(covariates) if listed else [formula] * (formula in coordinates)  # type: ignore[call-overload]
            formula = ""
        if not names or len(set(map(str, names))) < len(names):
            raise OutcomeError(
                "covariates", " must be a formula, which begins with ~, or different "
                f"names of columns of the questions; got {shown(covariates)}. Write ",
                Argument("covariates", "~ log2(minutes)"), " or ",
                Argument("covariates", ["minutes"]), ".",
            )  # fmt: skip
        for name in names:
            if name not in coordinates:
                has = ", ".join(map(repr, coordinates)) or "none"
                raise OutcomeError(
                    "covariates", " must be columns that the data keep of their questions"
                    f" (they have {has}); got {shown(name)}. Name it when the data are read: ",
                    Argument("covariates", [name], "tally"), ".",
                )  # fmt: skip
        frame = pd.DataFrame({name: coordinates[name] for name in names})
        questions = dataset["question"].values.tolist()
        for name in names:
            column = frame[name]
            absent = np.flatnonzero(column.isna() | (column == ""))
            if len(absent):
                raise OutcomeError(
                    "covariates", f" must be known of every question; {name!r} is "
                    f"missing for {shown(questions[absent[0]])} ({len(absent)} of {len(frame)} "
                    "questions). Add it, or leave these questions out: data.sel(question=...).",
                )  # fmt: skip
        design = cls(formula, frame)
        design._check(questions)
        return design

    @property
    def asked(self) -> str | tuple[str, ...]:
        """Return the formula, or the names, from which `of` reads it again."""
        return self.formula or tuple(str(name) for name in self.frame.columns)

    @property
    def text(self) -> str:
        """Return the formula, or the names as one."""
        return self.formula or "~ " + " + ".join(map(str, self.frame.columns))

    @cached_property
    def _spec(self) -> Any:
        require(*FORMULAS)
        from formulaic import model_matrix

        with _evaluating(self.formula):
            matrix = model_matrix(self.formula, self.frame, context=FUNCTIONS, na_action="ignore")
        return matrix.model_spec

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what formulaic made: another process makes its own."""
        return {"formula": self.formula, "frame": self.frame}

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns, without the intercept."""
        return [str(name) for name in self._matrix(self.frame).columns if name != INTERCEPT]

    @property
    def coefficients(self) -> list[str]:
        """Names of the intercept and the columns."""
        return [INTERCEPT, *self.names]

    def columns(self, frame: pd.DataFrame) -> Array:
        """Columns of questions with these covariates; (rows, columns)."""
        matrix = self._matrix(frame).drop(columns=INTERCEPT, errors="ignore")
        return matrix.to_numpy(float)

    def _matrix(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns by name, with the intercept of a formula."""
        if self.formula:
            spec = self._spec
            with _evaluating(self.formula):
                return pd.DataFrame(
                    spec.get_model_matrix(frame, context=FUNCTIONS, na_action="ignore")
                )
        columns = {}
        for name, column in self.frame.items():
            levels = _levels(column)
            if len(levels) < 2:  # a number, or a text that is always the same
                columns[str(name)] = frame[name] == "" if levels else frame[name]
            for level in levels[1:]:
                columns[f"{name}[T.{level}]"] = frame[name] == level
        return pd.DataFrame(columns)

    @cached_property
    def _own(self) -> Array:
        return self.columns(self.frame)

    def _check(self, questions: list[Any]) -> None:
        """Refuse columns that no coefficient can be estimated of."""
        columns = self._own
        strange = np.argwhere(~np.isfinite(columns))
        if len(strange):
            row, column = strange[0]
            raise OutcomeError(
                "covariates", f" must give finite numbers; {self.names[column]!r} is "
                f"{columns[row, column]} for question {shown(questions[row])}, whose covariates "
                f"are {shown(self.frame.iloc[row].to_dict())}. Use another function of it, such as "
                "log1p, or leave the question out.",
            )  # fmt: skip
        if not columns.shape[1] or (self.formula and INTERCEPT not in self._spec.column_names):
            raise OutcomeError(
                "covariates", " must have an intercept and a column beside it; got "
                f"{self.formula!r}. Write ", Argument("covariates", "~ log2(minutes)"), ".",
            )  # fmt: skip
        scaled, _, _ = self._scaled
        unexplained = np.zeros(len(self.names))  # by the columns before: Gram and Schmidt
        lengths = np.diagonal(np.linalg.qr(scaled, mode="r"))
        unexplained[: len(lengths)] = lengths**2 / len(columns)
        for name, column, apart in zip(self.names, scaled.T, unexplained, strict=True):
            # So much of the variance, at least, must not be explained by the columns before.
            if not apart > 1e-8 * (column**2).mean():
                fault = "depends on the columns before it" if column.any() else "is constant"
                raise OutcomeError(
                    "covariates", " must have columns that differ between questions, "
                    f"none a combination of others; {name!r} {fault} (columns "
                    f"{', '.join(map(repr, self.names))}; {len(columns)} questions). Leave it out.",
                )  # fmt: skip

    @cached_property
    def _scaled(self) -> tuple[Array, Array, Array]:
        """Columns of mean 0 and sd 1, whatever their size, with means and sds; 0 if constant."""
        columns = self._own
        largest = np.maximum(np.abs(columns).max(axis=0), np.finfo(float).tiny)
        unit = columns / largest
        centre = unit.mean(axis=0)
        centred = unit - centre
        centred -= centred.mean(axis=0)  # of values far from 0 the first mean was rounded
        sd = np.sqrt((centred**2).mean(axis=0))
        differs = sd > 1e-13  # of the largest value; smaller differences are rounding
        sd = np.where(differs, sd, 1.0)
        return np.where(differs, centred / sd, 0.0), centre * largest, sd * largest

    @cached_property
    def basis(self) -> Basis:
        """Return the covariates of all questions in their basis."""
        columns, centre, scale = self._scaled
        left, size, right = np.linalg.svd(columns, full_matrices=False)
        root = np.sqrt(len(columns))
        back = (right.T / size * root) / scale[:, None]
        whole = np.zeros((len(centre) + 1, len(centre) + 1))
        whole[0, 0], whole[0, 1:], whole[1:, 1:] = 1.0, -centre @ back, back
        rows = np.concatenate([np.ones((len(columns), 1)), left * root], axis=1)
        return Basis(rows, whole)

    def at(self, chosen: Mapping[str, Sequence[Any]]) -> tuple[pd.DataFrame, Array]:
        """Columns at every combination of values of some covariates.

        Others are as they are, and the columns averaged over the questions.

        Parameters
        ----------
        chosen : mapping {covariate: values}

        Returns
        -------
        frame : pandas.DataFrame
            The combinations.
        columns : ndarray, shape (combinations, 1 + columns)
            First 1.
        """
        index = pd.MultiIndex.from_product(list(chosen.values()), names=list(chosen))
        frame = index.to_frame(index=False)
        fixed = self.frame.drop(columns=list(chosen))
        if fixed.columns.empty:
            columns = self.columns(frame)
        else:
            share = fixed.value_counts(normalize=True)
            kinds = share.index.to_frame(index=False)
            combinations = kinds.merge(frame, how="cross")
            values = self.columns(combinations).reshape(len(kinds), len(frame), -1)
            columns = np.einsum("k,kfc->fc", share.to_numpy(), values)
        return frame, np.concatenate([np.ones((len(frame), 1)), columns], axis=1)

    def read_at(self, at: object, argument: str = "at") -> dict[str, list[Any]]:
        """Return the values of covariates that were asked for, checked."""
        example = Argument(argument, {str(self.frame.columns[0]): [self.frame.iloc[0, 0]]})
        if not isinstance(at, Mapping) or not at:
            raise OutcomeError(
                argument, " must be values of covariates by name; got "
                f"{shown(at)}. Write ", example, ".",
            )  # fmt: skip
        values = {}
        for name, wanted in at.items():
            if name not in self.frame:
                raise OutcomeError(
                    argument, " must name covariates of the model, "
                    f"{', '.join(map(repr, self.frame.columns))}; got {shown(name)}.",
                )  # fmt: skip
            single = isinstance(wanted, str) or np.ndim(wanted) == 0
            values[name] = [wanted] if single else list(wanted)
            levels = _levels(self.frame[name])
            for value in values[name]:
                number = isinstance(value, Real) and not isinstance(value, bool)
                if value not in levels if levels else not (number and np.isfinite(value)):
                    rule = f"one of {shown(levels)}" if levels else "finite numbers"
                    raise OutcomeError(
                        argument,
                        f": values of {name!r} must be {rule}; got {shown(value)}.",
                    )
            if not values[name]:
                raise OutcomeError(argument, f" must have a value of {name!r}.")
        return values


@contextmanager
def _evaluating(formula: str) -> Iterator[None]:
    """Say what is wrong with a formula that cannot be worked out."""
    from formulaic.errors import FormulaicError

    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except FormulaicError as error:
        raise OutcomeError(
            "covariates", f": {formula!r} cannot be worked out for these covariates; "
            f"{str(error).splitlines()[0]:.200} Is a text used as a number, or a value outside of "
            "the range that a spline was made for?",
        ) from error  # fmt: skip


def _levels(column: Any) -> list[Any]:
    """Categories of a text, in order; none of a number."""
    return [] if pd.api.types.is_numeric_dtype(column) else sorted(set(column))


_FUNCTIONS = {"log", "log2", "log10", "exp", "center", "scale", "poly", "bs", "cr", "I", "C"}
FUNCTIONS = {"sqrt": np.sqrt, "log1p": np.log1p}  # beside those of formulaic
_NODES = (
    ast.Expression, ast.Call, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.keyword, ast.Load,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.USub, ast.UAdd,
)  # fmt: skip


def covariates_of(formula: str) -> set[str]:
    """Return the covariates of a formula, or refuse what it may not say.

    Parameters
    ----------
    formula : str
        Begins with ``~``.
    """
    if len(formula) > 500 or "**" in formula or "^" in formula or "." in re.sub(
        r"\d+\.\d*|\.\d+", "", formula
    ) or len(re.findall(r"[*/:]", formula)) > 8:  # fmt: skip
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
    names = set()
    for text, method in factors.items():
        if method.endswith("LOOKUP"):
            names.add(text)
        elif method.endswith("PYTHON"):
            names |= _names_of(text, formula)
    return names


def _names_of(text: str, formula: str) -> set[str]:
    """Return the covariates in an expression that calls nothing but what is listed."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError:
        _refuse(formula, f"{text!r} cannot be read")
    functions, called, arguments = {*_FUNCTIONS, *FUNCTIONS}, set[ast.AST](), set[ast.AST]()
    if not all(isinstance(node, _NODES) for node in nodes):
        _refuse(formula, f"{text!r} may hold names, numbers, + - * / and functions only")
    for node in nodes:
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name):
                _refuse(formula, f"{text!r} may call functions by their names only")
            if node.func.id not in functions:
                rule = f"{node.func.id!r} is none of the functions that it may call: "
                _refuse(formula, rule + ", ".join(sorted(functions)))
            called.add(node.func)
            arguments |= {*node.args, *(keyword.value for keyword in node.keywords)}
        if isinstance(node, ast.Constant):
            # A whole number as an argument may be the degree of a polynomial.
            whole = isinstance(node.value, int) and node in arguments
            if not isinstance(node.value, int | float) or (whole and abs(node.value) > 20):
                _refuse(formula, f"{node.value!r} is no number that {text!r} may hold")
    return {node.id for node in nodes if isinstance(node, ast.Name) and node not in called}


def _refuse(formula: str, reason: str) -> NoReturn:
    raise OutcomeError(
        "covariates", f" must be a formula such as '~ log2(minutes) + domain'; in "
        f"{shown(formula)}: {reason}.",
    )  # fmt: skip
