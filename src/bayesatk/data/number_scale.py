"""Numbers as outcomes: rewards, F1, shares of tests passed, seconds, as they are.

Up to `MOST_LEVELS` different numbers, none of them close to another, are the levels of a scale
themselves. Of others levels are quantiles, and a number between two levels goes to one of them so
that sums stay: what was added to one trial is taken from the next. So means of a system move by
less than the distance of two levels over the number of its trials, and numbers that are levels,
such as the ends, stay as they are.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import Argument
from bayesatk.data.validation import (
    CODE_INVALID,
    CODE_MISSING,
    Codes,
    OutcomeError,
    Scores,
    is_missing,
    number_of,
    shown,
    succeeding,
)

MOST_LEVELS = 51  # whose marks are as good as the numbers: their variance differs by 1 part in 300
_LARGEST = 1e100  # of a number: squares and products of larger ones overflow
_CLOSEST = 1e-3  # distance of levels, in the range of all: nearer ones are the same to a mean


class NumberScale(dict[Any, float]):
    """Scale of the numbers that were read; they become outcomes as they come.

    Parameters
    ----------
    ends : (float, float), optional
        Between which numbers must lie; default: the least and the largest that there are.

    Examples
    --------
    >>> scale = NumberScale((0.0, 1.0))
    >>> scale.codes([0.25, None, 0.5, 0.25, 2.0]).tolist(), list(scale)
    ([0, -1, 1, 0, -2], [0.25, 0.5])
    """

    def __init__(self, ends: tuple[float, float] | None = None) -> None:
        super().__init__()
        self.ends = ends
        self._position: dict[float, int] = {}

    @classmethod
    def of(cls, scores: object) -> "NumberScale | None":
        """Return the scale that ``scores="numbers"`` or ``scores=(low, high)`` asks for, if any."""
        if isinstance(scores, str) and scores == "numbers":
            return cls()
        if not isinstance(scores, tuple) or len(scores) != 2:
            return None
        ends = [number_of(end) for end in scores]
        low, high = (math.nan if end is None else float(end) for end in ends)
        if not (low < high and max(-low, high) <= _LARGEST):
            raise OutcomeError(
                Argument("scores"), " must be two ends in rising order for numbers between them; "
                f"got {shown(scores)}. For any numbers: ", Argument("scores", "numbers"), ".",
            )  # fmt: skip
        return cls((low, high))

    @classmethod
    def beside(cls, numbers: Iterable[float]) -> "NumberScale":
        """Return a scale of any numbers, on which these are already."""
        scale = cls()
        scale.codes([*numbers])
        return scale

    @property
    def words(self) -> str:
        """What an outcome must be."""
        if self.ends is None:
            return "a finite number"
        return "a number from {:g} to {:g}".format(*self.ends)

    def codes(self, values: NDArray[Any] | Sequence[Any]) -> Codes:
        """Return the position of every value among the numbers so far; negative for the others."""
        array = np.asarray(values) if isinstance(values, np.ndarray) else None
        if array is not None and array.dtype.kind in "biuf":
            distinct, which = np.unique(array.astype(float), return_inverse=True)
            codes = np.array([self._code(value) for value in distinct.tolist()], np.int32)
            return codes[which].reshape(array.shape)
        flat = values if array is None else array.ravel().tolist()
        codes = np.array([self._code(value) for value in flat], np.int32)
        return codes if array is None else codes.reshape(array.shape)

    def _code(self, value: Any) -> int:
        if is_missing(value):
            return CODE_MISSING
        number = float(value) if isinstance(value, bool | np.bool_) else number_of(value)
        if isinstance(value, str) or number is None or not abs(number) <= _LARGEST:
            return CODE_INVALID
        if self.ends is not None and not self.ends[0] <= number <= self.ends[1]:
            return CODE_INVALID
        number += 0.0  # no zero of another sign
        place = self._position.setdefault(number, len(self._position))
        self[number] = number
        return place

    def levelled(
        self, code: Codes, system: Ints, success: str | None = None
    ) -> tuple[Codes, Scores, list[str]]:
        """Return codes on a scale of levels, or of right and wrong by a rule, the scale, and notes.

        Parameters
        ----------
        code : ndarray of int, shape (trials,)
            On this scale, trials of a system one after the other.
        system : ndarray of int, shape (trials,)
        success : str, optional
            As in ``"score >= 0.5"``.

        Examples
        --------
        >>> scale = NumberScale()
        >>> codes = scale.codes([0.2, 0.9, 0.2])
        >>> scale.levelled(codes, np.zeros(3, int), "score > 0.5")[0].tolist()
        [0, 1, 0]
        """
        numbers, present = np.array(list(self)), code >= 0
        if success is not None:
            succeeds = succeeding(success, numbers)
            words = f"{int(succeeds.sum())} of {len(numbers)} different numbers"
            codes = np.where(present, succeeds[np.maximum(code, 0)], code)
            return codes, {0: 0.0, 1: 1.0}, [f"success is {success}: {words}"]
        marks = numbers[code[present]]
        levels = self._levels(marks)
        if len(levels) < 2:
            raise OutcomeError(
                f"data must have two different numbers or more; got {shown(numbers.tolist())}. Say "
                "between which ends they lie: ", Argument("scores", (0, 1), "tally"), ".",
            )  # fmt: skip
        scale = dict(zip(_labels(levels), levels.tolist(), strict=True))
        codes = code.copy()
        if np.isin(numbers, levels).all():
            codes[present] = np.searchsorted(levels, marks)
            return codes, scale, []
        codes[present], moved = _moved(marks, system[present], levels)
        words = f"{len(numbers)} different numbers from {numbers.min():g} to {numbers.max():g}"
        note = (
            f"{words} are kept as {len(levels)} levels, each at one beside it; mean scores of "
            f"systems move by at most {moved:.2g}"
        )
        return codes, scale, [note]

    def _levels(self, numbers: Array) -> Array:
        """Levels in rising order: all numbers of the trials, or quantiles of them, and the ends."""
        if not len(numbers):
            return numbers
        ends = (numbers.min(), numbers.max()) if self.ends is None else self.ends
        distinct = np.unique(np.concatenate([numbers, ends]))
        least = _CLOSEST * (ends[1] - ends[0])
        if len(distinct) <= MOST_LEVELS and np.diff(distinct).min(initial=np.inf) >= least:
            return distinct
        inner = numbers[(numbers > ends[0] + least) & (numbers < ends[1] - least)]
        if len(distinct) > MOST_LEVELS and len(inner):
            steps = (np.arange(MOST_LEVELS - 2) + 0.5) / (MOST_LEVELS - 2)
            inner = np.quantile(inner, steps)
        inner = ends[0] + least * np.unique(np.round((inner - ends[0]) / least))
        return np.concatenate([[ends[0]], inner, [ends[1]]])


def _labels(levels: Array) -> list[float]:
    """Levels as they are called: to six digits, where these tell them apart."""
    rounded = [float(f"{level:.6g}") for level in levels.tolist()]
    named = rounded if len(set(rounded)) == len(rounded) else levels.tolist()
    return [int(name) if name == int(name) and abs(name) < 1e15 else name for name in named]


def _moved(numbers: Array, system: Ints, levels: Array) -> tuple[Codes, float]:
    """Levels of numbers, so that sums over the trials of a system stay; and how far means move."""
    scale, carried, before = levels.tolist(), 0.0, -1
    codes, left = np.empty(len(numbers), np.int32), {}
    for row, (number, owner) in enumerate(zip(numbers.tolist(), system.tolist(), strict=True)):
        if owner != before:
            carried, before = 0.0, owner
        place = bisect_left(scale, number)
        if scale[place] != number:
            wanted = number + carried
            place -= wanted - scale[place - 1] < scale[place] - wanted
            carried = wanted - scale[place]
        codes[row] = place
        left[owner] = carried
    trials = np.bincount(system)
    return codes, max(abs(value) / trials[owner] for owner, value in left.items())
