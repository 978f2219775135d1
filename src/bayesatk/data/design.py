"""`CovariateDesign`: covariates of questions as a design matrix; text by treatment contrasts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument
from bayesatk.data.question_columns import column_name, question_coordinates
from bayesatk.data.roles import GROUP, WEIGHT
from bayesatk.data.validation import OutcomeError, shown

INTERCEPT = "Intercept"


@dataclass(frozen=True)
class Basis:
    """Design matrix of the covariates in an orthogonal basis over all questions of the data.

    Parameters
    ----------
    rows : ndarray, shape (questions, 1 + columns)
        A column of ones, then uncorrelated columns of mean 0 and sd 1 over the questions.
    back : ndarray, shape (1 + columns, 1 + columns)
        Matrix that maps coefficients in this basis to intercept and slopes of the columns.
    """

    rows: Array
    back: Array

    def among(self, kept: NDArray[Any]) -> "Basis":
        """Return the rows of some of the questions, in the same basis."""
        return Basis(self.rows[kept], self.back)

    def coefficients(self, logits: Array) -> Array:
        """Return intercept and slopes from coefficients of the basis; (..., 1 + columns)."""
        return logits @ self.back.T

    def logits(self, coefficients: Array) -> Array:
        """Return coefficients of the basis from intercept and slopes; (..., 1 + columns)."""
        return coefficients @ np.linalg.inv(self.back).T


@dataclass(frozen=True)
class CovariateDesign:
    """Covariates of all questions.

    Parameters
    ----------
    frame : pandas.DataFrame
        The covariates, a row for each question.

    Examples
    --------
    >>> frame = pd.DataFrame({"minutes": [1, 4, 16], "domain": ["law", "art", "law"]})
    >>> design = CovariateDesign(frame)
    >>> design.names, design.columns(frame).tolist()
    (['minutes', 'domain[T.law]'], [[1.0, 1.0], [4.0, 0.0], [16.0, 1.0]])
    """

    frame: pd.DataFrame

    @classmethod
    def of(cls, dataset: xr.Dataset, covariates: object) -> "CovariateDesign":
        """Return the design of covariates that are coordinates of the questions.

        Parameters
        ----------
        dataset : xarray.Dataset
            Counts with question coordinates.
        covariates : str, sequence of str, or mapping
            Names of columns.
        """
        coordinates = question_coordinates(dataset)
        for role in {GROUP, WEIGHT} & coordinates.keys():
            coordinates[column_name(dataset, role)] = coordinates[role]
        names = [covariates] if isinstance(covariates, str) else covariates
        names = list(names) if isinstance(names, Mapping) else names
        if not isinstance(names, Sequence) or not names or len({*map(str, names)}) < len(names):
            raise OutcomeError(
                "covariates",
                " must be different names of columns of the questions; got "
                f"{shown(covariates)}. Write ",
                Argument("covariates", ["minutes"]),
                ".",
            )
        for name in names:
            if name not in coordinates:
                has = ", ".join(map(repr, coordinates)) or "none"
                raise OutcomeError(
                    "covariates",
                    " must be columns that the data keep of their questions"
                    f" (they have {has}); got {shown(name)}. Name it when the data are read: ",
                    Argument("covariates", [name], "tally"),
                    ". A function of a column is a column that you compute before.",
                )
        frame = pd.DataFrame({name: coordinates[name] for name in names})
        questions = dataset["question"].values.tolist()
        for name in names:
            column = frame[name]
            absent = np.flatnonzero(column.isna() | (column == ""))
            if len(absent):
                raise OutcomeError(
                    "covariates",
                    f" must be known of every question; {name!r} is "
                    f"missing for {shown(questions[absent[0]])} ({len(absent)} of {len(frame)} "
                    "questions). Add it, or leave these questions out: data.sel(question=...).",
                )
        design = cls(frame)
        design._check(questions)
        return design

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns of the design matrix, without the intercept."""
        return list(self._columns(self.frame))

    @property
    def coefficients(self) -> list[str]:
        """Names of the intercept and the columns."""
        return [INTERCEPT, *self.names]

    def columns(self, frame: pd.DataFrame) -> Array:
        """Return the design matrix of questions with these covariates, without the intercept."""
        return pd.DataFrame(self._columns(frame)).to_numpy(float)

    def _columns(self, frame: pd.DataFrame) -> dict[str, "pd.Series[Any]"]:
        """Return the columns by name: numbers, and indicators of all categories but the first."""
        columns = {}
        for name, column in self.frame.items():
            levels = _levels(column)
            if len(levels) < 2:  # numbers, or a text that is always the same
                columns[str(name)] = frame[name] == "" if levels else frame[name]
            for level in levels[1:]:
                columns[f"{name}[T.{level}]"] = frame[name] == level
        return columns

    @cached_property
    def _own_columns(self) -> Array:
        """The design matrix of the questions of the data, without the intercept."""
        return self.columns(self.frame)

    def _check(self, questions: list[Any]) -> None:
        """Refuse columns that are not finite, constant or linearly dependent."""
        columns = self._own_columns
        not_finite = np.argwhere(~np.isfinite(columns))
        if len(not_finite):
            row, column = not_finite[0]
            raise OutcomeError(
                "covariates",
                f" must give finite numbers; {self.names[column]!r} is "
                f"{columns[row, column]} for question {shown(questions[row])}. Leave the question "
                "out: data.sel(question=...).",
            )
        scaled, _, _ = self._scaled
        unexplained = np.zeros(
            len(self.names)
        )  # variance of every column that the columns before it leave (Gram-Schmidt)
        lengths = np.diagonal(np.linalg.qr(scaled, mode="r"))
        unexplained[: len(lengths)] = lengths**2 / len(columns)
        for name, column, residual_variance in zip(self.names, scaled.T, unexplained, strict=True):
            min_share = 1e-8  # of the variance
            if not residual_variance > min_share * (column**2).mean():
                fault = "depends on the columns before it" if column.any() else "is constant"
                raise OutcomeError(
                    "covariates",
                    " must have columns that differ between questions, "
                    f"none a combination of others; {name!r} {fault} (columns "
                    f"{', '.join(map(repr, self.names))}; {len(columns)} questions). Leave it out.",
                )

    @cached_property
    def _scaled(self) -> tuple[Array, Array, Array]:
        """Columns scaled to mean 0 and sd 1 (0 if constant), with their means and sds."""
        columns = self._own_columns
        largest = np.maximum(np.abs(columns).max(axis=0), np.finfo(float).tiny)
        unit = columns / largest
        centre = unit.mean(axis=0)
        centred = unit - centre
        centred -= centred.mean(axis=0)  # the first mean of values far from 0 has a rounding error
        sd = np.sqrt((centred**2).mean(axis=0))
        differs = sd > 1e-13  # in units of the largest value; less is a rounding error
        sd = np.where(differs, sd, 1.0)
        return np.where(differs, centred / sd, 0.0), centre * largest, sd * largest

    @cached_property
    def basis(self) -> Basis:
        """The design matrix in an orthogonal basis, by the singular value decomposition."""
        columns, centre, scale = self._scaled
        left, size, right = np.linalg.svd(columns, full_matrices=False)
        sqrt_n = np.sqrt(len(columns))
        slopes = (right.T / size * sqrt_n) / scale[:, None]
        to_coefficients = np.zeros((len(centre) + 1, len(centre) + 1))
        to_coefficients[0, 0], to_coefficients[0, 1:], to_coefficients[1:, 1:] = (
            1.0,
            -centre @ slopes,
            slopes,
        )
        rows = np.concatenate([np.ones((len(columns), 1)), left * sqrt_n], axis=1)
        return Basis(rows, to_coefficients)

    def at(self, values: Mapping[str, Sequence[Any]]) -> tuple[pd.DataFrame, Array]:
        """Return the design matrix at every combination of values of some covariates.

        The other covariates keep their values, and rows are averaged over the questions.

        Parameters
        ----------
        chosen : mapping {covariate: values}

        Returns
        -------
        frame : pandas.DataFrame
            Values of the covariates by combination.
        columns : ndarray, shape (combinations, 1 + columns)
            Rows of the design matrix, with the intercept.
        """
        index = pd.MultiIndex.from_product(list(values.values()), names=list(values))
        frame = index.to_frame(index=False)
        other_covariates = self.frame.drop(columns=list(values))
        if other_covariates.columns.empty:
            columns = self.columns(frame)
        else:
            shares = other_covariates.value_counts(normalize=True)
            other_values = shares.index.to_frame(index=False)
            all_rows = other_values.merge(frame, how="cross")
            columns_by_combination = self.columns(all_rows).reshape(
                len(other_values), len(frame), -1
            )
            columns = np.einsum("k,kfc->fc", shares.to_numpy(), columns_by_combination)
        return frame, np.concatenate([np.ones((len(frame), 1)), columns], axis=1)

    def read_at(self, at: object, argument: str = "at") -> dict[str, list[Any]]:
        """Return values of covariates as lists by name, or refuse them."""
        name, (first, *_) = next((str(name), [*column]) for name, column in self.frame.items())
        example = Argument(argument, {name: [first]})
        if not isinstance(at, Mapping) or not at:
            raise OutcomeError(
                argument,
                f" must be values of covariates by name; got {shown(at)}. Write ",
                example,
                ".",
            )
        values = {}
        for name, wanted in at.items():
            if name not in self.frame:
                raise OutcomeError(
                    argument,
                    " must name covariates of the model, "
                    f"{', '.join(map(repr, self.frame.columns))}; got {shown(name)}.",
                )
            single = isinstance(wanted, str) or np.ndim(wanted) == 0
            levels = _levels(self.frame[name])
            values[name] = [  # true and false are the numbers that they are in the data
                float(value) if not levels and isinstance(value, bool | np.bool_) else value
                for value in ([wanted] if single else wanted)
            ]
            for value in values[name]:
                number = isinstance(value, Real)
                if value not in levels if levels else not (number and np.isfinite(value)):
                    rule = f"one of {shown(levels)}" if levels else "finite numbers"
                    raise OutcomeError(
                        argument,
                        f": values of {name!r} must be {rule}; got {shown(value)}.",
                    )
            if not values[name]:
                raise OutcomeError(argument, f" must have a value of {name!r}.")
        return values


def _levels(column: Any) -> list[Any]:
    """Return the sorted categories of a text column; none for numbers."""
    return [] if pd.api.types.is_numeric_dtype(column) else sorted(set(column))
