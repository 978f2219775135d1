"""A covariate on the scale on which logits are linear in it, and back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.arrays import Array, Flags
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.design import Design
from bayesatk.data.validation import shown

_STEPS = 70  # of bisection
_RANGE = 600.0  # of the logarithm of a value, around the middle of those asked
_BENT = 1e-7  # of the columns' move along a covariate that is not along a line
_CHECKED = 50  # values at which that is looked at
_LOG = 8.0  # ratio of the largest value to the smallest from which a grid is logarithmic


@dataclass(frozen=True)
class CurveScale:
    """Logits are ``(start + f(x) slope) . coefficients`` along the covariate x.

    Parameters
    ----------
    covariate : str
    start, slope : ndarray, shape (coefficients,)
    transform : callable
        f, increasing, 0 at the smallest value asked and 1 at the largest.
    observed : (float, float)
        These values.
    centre : float
        A value in the middle.
    middle : float
        Mean of f over the questions.
    """

    covariate: str
    start: Array
    slope: Array
    transform: Callable[[Array], Array]
    observed: tuple[float, float]
    centre: float
    middle: float

    @classmethod
    def of(cls, design: Design, covariate: str, at: Mapping[str, Any] | None) -> "CurveScale":
        """Read the scale off a design, other covariates at given values or averaged."""
        numbers = _numbers(design, covariate)
        fixed = {} if at is None else design.read_at(at)
        if covariate in fixed or any(len(values) != 1 for values in fixed.values()):
            rule = f" must have one value for each other covariate; got {shown(at)}."
            raise ArgumentError("at", rule)
        ends = [float(numbers.min()), float(numbers.max())]
        _, columns = design.at({covariate: ends, **fixed})
        slope = columns[1] - columns[0]
        transform = _transform(design, covariate, ends)
        checked = np.quantile(numbers, np.linspace(0.0, 1.0, _CHECKED))
        _, along = design.at({covariate: checked.tolist(), **fixed})
        straight = columns[0] + transform(checked)[:, None] * slope
        size = np.abs(slope).max()
        steps = np.diff(transform(np.unique(checked)))
        if not size > 0.0 or np.abs(along - straight).max() > _BENT * size or (steps <= 0.0).any():
            raise ArgumentError(
                "covariate", " must come into the formula in one way that rises or falls "
                f"throughout, so that a curve crosses a level once; {covariate!r} does not in "
                f"{design.text!r}. Use one function of it, as in ",
                Argument("covariates", f"~ log2({covariate})"), ".",
            )  # fmt: skip
        middle = float(transform(numbers).mean())
        return cls(
            covariate, columns[0], slope, transform, (ends[0], ends[1]), float(np.median(numbers)),
            middle,
        )  # fmt: skip

    @property
    def positive(self) -> bool:
        """Whether values are never negative."""
        return self.observed[0] >= 0.0

    def values(self, levels: Array) -> Array:
        """Return the values at which f has these values, the inverse; infinities included."""
        u = bisected(lambda u: self.transform(self._value(u)) >= levels, len(levels), _RANGE)
        beyond = _RANGE * (1.0 - 2.0**-50)
        lowest = 0.0 if self.positive else -np.inf
        return np.where(u <= -beyond, lowest, np.where(u >= beyond, np.inf, self._value(u)))

    def _value(self, u: Array) -> Array:
        """Value of the covariate from a coordinate in which all sizes have room."""
        width = max(self.observed[1] - self.observed[0], 1e-300)
        with np.errstate(over="ignore"):
            if self.positive:
                return np.asarray(max(self.centre, 1e-3 * width) * np.exp(u))
            return np.asarray(self.centre + width * np.sinh(u))

    def grid(self, size: int) -> list[float]:
        """Values for a curve: evenly spread, or on a logarithmic scale where they range widely."""
        low, high = self.observed
        if low > 0.0 and high > _LOG * low:
            return [float(x) for x in np.geomspace(low, high, size)]
        return [float(x) for x in np.linspace(low, high, size)]


def bisected(above: Callable[[Array], Flags], shape: int | tuple[int, ...], reach: float) -> Array:
    """Return where each of so many conditions begins to be met, between two opposite numbers.

    Examples
    --------
    >>> bisected(lambda x: x >= np.array([0.25, -2.0]), 2, 3.0).round(9).tolist()
    [0.25, -2.0]
    """
    low, high = np.full(shape, -reach), np.full(shape, reach)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        met = above(middle)
        low, high = np.where(met, low, middle), np.where(met, middle, high)
    return np.asarray(0.5 * (low + high))


def _numbers(design: Design, covariate: object) -> Array:
    """Return the values of a covariate that is a number."""
    frame = design.frame
    numeric = [str(name) for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
    if covariate not in numeric:
        raise ArgumentError(
            "covariate", " must be a number that success depends on, one of "
            f"{', '.join(map(repr, numeric)) or 'none'}; got {shown(covariate)}.",
        )  # fmt: skip
    return np.asarray(frame[covariate].to_numpy(), float)


def _transform(design: Design, covariate: str, ends: list[float]) -> Callable[[Array], Array]:
    """Return f from the columns of that question which the covariate moves most."""
    kinds = design.frame.drop(columns=[covariate]).drop_duplicates().reset_index(drop=True)
    if kinds.columns.empty:
        kinds = pd.DataFrame(index=[0])
    both = [design.columns(kinds.assign(**{covariate: end})) for end in ends]
    moves = np.abs(both[1] - both[0]).max(axis=1)
    kind = int(moves.argmax())
    start, step = both[0][kind], (both[1] - both[0])[kind]
    column = int(np.abs(step).argmax())
    fixed = kinds.iloc[[kind]]

    def transform(values: Array) -> Array:
        rows = fixed.loc[fixed.index.repeat(len(values))].reset_index(drop=True)
        with np.errstate(all="ignore"):
            columns = design.columns(rows.assign(**{covariate: np.asarray(values, float)}))
            share = (columns[:, column] - start[column]) / step[column]
        # Where a function is not defined, or overflows, it has gone beyond all bounds.
        away = np.where(np.asarray(values) < ends[0], -np.inf, np.inf)
        return np.where(np.isnan(share), away, share)

    return transform
