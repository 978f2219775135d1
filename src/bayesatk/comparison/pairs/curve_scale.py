"""A covariate on the scale on which logits are linear in it, and back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.design import Design
from bayesatk.data.validation import shown

Array = NDArray[np.float64]
_STEPS = 70  # of bisection
_RANGE = 30.0  # of the logarithm of a value, around the middle of those asked
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
        own = _numbers(design, covariate)
        others = {} if at is None else design.read_at(at)
        if covariate in others or any(len(values) != 1 for values in others.values()):
            rule = f" must have one value for each other covariate; got {shown(at)}."
            raise ArgumentError(Argument("at"), rule)
        ends = [float(own.min()), float(own.max())]
        _, columns = design.at({covariate: ends, **others})
        slope = columns[1] - columns[0]
        transform = _transform(design, covariate, ends)
        some = np.quantile(own, np.linspace(0.0, 1.0, _CHECKED))
        _, every = design.at({covariate: some.tolist(), **others})
        straight = columns[0] + transform(some)[:, None] * slope
        size = np.abs(slope).max()
        steps = np.diff(transform(np.unique(some)))
        if not size > 0.0 or np.abs(every - straight).max() > _BENT * size or (steps <= 0.0).any():
            raise ArgumentError(
                Argument("covariate"), " must come into the formula in one way that rises or falls "
                f"throughout, so that a curve crosses a level once; {covariate!r} does not in "
                f"{design.text!r}. Use one function of it, as in ",
                Argument("covariates", f"~ log2({covariate})"), ".",
            )  # fmt: skip
        middle = float(transform(own).mean())
        return cls(
            covariate, columns[0], slope, transform, (ends[0], ends[1]), float(np.median(own)),
            middle,
        )  # fmt: skip

    @property
    def positive(self) -> bool:
        """Whether values are never negative."""
        return self.observed[0] >= 0.0

    def values(self, place: Array) -> Array:
        """Return the values at which f has these values, the inverse; infinities included."""
        lowest = 0.0 if self.positive else -np.inf
        first, last = self.observed
        with np.errstate(all="ignore"):
            if self._is(lambda x: np.log(x / first) / np.log(last / first), first > 0.0):
                return np.asarray(first * (last / first) ** place)
            if self._is(lambda x: (x - first) / (last - first), True):
                return np.maximum(first + place * (last - first), lowest)
        low, high = np.full(len(place), -_RANGE), np.full(len(place), _RANGE)
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            above = self.transform(self._value(middle)) >= place
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        found = self._value(0.5 * (low + high))
        found = np.where(high <= _RANGE * (2.0**-60 - 1.0), lowest, found)
        return np.where(low >= _RANGE * (1.0 - 2.0**-60), np.inf, found)

    def _is(self, known: Callable[[Array], Array], possible: bool) -> bool:
        """Whether f is a known function, within the observed values and far beyond."""
        if not possible:
            return False
        first, last = self.observed
        some = np.array([first, 0.5 * (first + last), last, 2.0 * last - first, 90.0 * last])
        return bool(np.allclose(self.transform(some), known(some), rtol=1e-9, atol=1e-9))

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


def _numbers(design: Design, covariate: object) -> Array:
    """Return the values of a covariate that is a number."""
    frame = design.frame
    numeric = [str(name) for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
    if covariate not in numeric:
        raise ArgumentError(
            Argument("covariate"), " must be a number that success depends on, one of "
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
    others = kinds.iloc[[kind]]

    def transform(values: Array) -> Array:
        rows = others.loc[others.index.repeat(len(values))].reset_index(drop=True)
        with np.errstate(all="ignore"):
            found = design.columns(rows.assign(**{covariate: np.asarray(values, float)}))
            place = (found[:, column] - start[column]) / step[column]
        # Where a function is not defined, or overflows, it has gone beyond all bounds.
        away = np.where(np.asarray(values) < ends[0], -np.inf, np.inf)
        return np.where(np.isnan(place), away, place)

    return transform
