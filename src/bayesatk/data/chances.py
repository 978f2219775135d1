"""Checks of the arguments of random baselines: guessing probabilities, accuracies and counts."""

from collections.abc import Mapping

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import ArgumentError, real_number, whole_number

_WHOLE_NUMBER_TOL = 1e-9  # of accuracy times n, relative to n


def success_probabilities(n: int | None, p: object) -> Array:
    """Return one success probability per trial.

    Parameters
    ----------
    n : int or None
        Number of examples; None if ``p`` has a probability for each.
    p : float, mapping or array_like
        A probability for all; {labels: examples}, a uniform guess among that many labels; or one
        probability per example.

    Examples
    --------
    >>> success_probabilities(None, {2: 1, 4: 2}).tolist()
    [0.5, 0.25, 0.25]
    """
    n = None if n is None else whole_number("n", n)
    values = _by_labels(p) if isinstance(p, Mapping) else _as_array(p)
    if values.ndim == 0:
        if n is None:
            raise ArgumentError("n", " must be given with a single probability p; got None.")
        values = np.full(n, float(values))
    if values.ndim != 1 or not len(values):
        raise ArgumentError(
            "p",
            f" must be a number, a mapping or a non-empty vector; got shape {values.shape}.",
        )
    bad = ~((values >= 0.0) & (values <= 1.0))
    if bad.any():
        where = int(np.argmax(bad))
        place = "" if (values == values[0]).all() else f" at position {where}"
        percent = bool(1.0 < values[where] <= 100.0)
        raise ArgumentError(
            "p",
            f" must have probabilities between 0 and 1; got {values[where]:g}{place}."
            + f" Is it a percentage? Try {values[where] / 100.0:g}." * percent,
        )
    if n is not None and len(values) != n:
        rule = f" must have n={n} probabilities, one per example; got {len(values)}."
        raise ArgumentError("p", rule)
    return values


def _as_array(p: object) -> Array:
    try:
        values = np.asarray(p)
        if values.dtype.kind not in "iuf" and values.dtype != object:
            raise TypeError
        return values.astype(float)
    except (TypeError, ValueError):
        raise ArgumentError(
            "p",
            " must be a probability, a mapping {labels: examples} or one probability per "
            f"example; got {p!r}.",
        ) from None


def _by_labels(p: Mapping[object, object]) -> Array:
    labels = [whole_number("number of labels", number) for number in p]
    examples = [whole_number("examples", number, 0) for number in p.values()]
    return np.repeat(1.0 / np.array(labels, float), examples)


def check_times(t: float) -> float:
    """Return t as a float, at least 1."""
    try:
        times = real_number("t", t)
    except OverflowError:
        times = np.inf
    if not times >= 1.0:
        rule = f" must be a number of at least 1 (configurations tried); got {t!r}."
        raise ArgumentError("t", rule)
    if not np.isfinite(times):
        raise ArgumentError("t", f" must be a finite double; got {t!r}.")
    return times


def correct_counts(
    accuracy: float | None, n: int, num_correct: int | None = None, decimals: int | None = None
) -> tuple[int, int]:
    """Return the smallest and the largest number correct that have this accuracy.

    Parameters
    ----------
    accuracy : float or None
        Share correct.
    n : int
        Number of examples.
    num_correct : int, optional
        The number correct, in place of the accuracy.
    decimals : int, optional
        Decimals to which the accuracy was rounded; ties may have been rounded either way.

    Raises
    ------
    ValueError
        If accuracy times n is further than ``1e-9 n`` from a whole number and no decimals are
        stated, or no count rounds to it.

    Examples
    --------
    >>> correct_counts(0.57, 100), correct_counts(0.333, 30, decimals=3)
    ((57, 57), (10, 10))
    >>> correct_counts(0.3, 100, decimals=1)
    (25, 35)
    """
    if (accuracy is None) == (num_correct is None):
        raise ValueError(
            "give either an accuracy or num_correct=; got "
            + ("neither." if accuracy is None else f"both, {accuracy} and {num_correct}.")
        )
    if num_correct is not None:
        count = whole_number("num_correct", num_correct, 0)
        if count > n:
            raise ArgumentError("num_correct", f" must lie between 0 and n={n}; got {count}.")
        return count, count
    value = real_number("acc", accuracy)
    if not 0.0 <= value <= 1.0:
        raise ArgumentError("acc", f" must lie between 0 and 1; got {accuracy}.")
    if decimals is None:
        count = round(value * n)
        if abs(value * n - count) > _WHOLE_NUMBER_TOL * n:
            raise ValueError(
                f"acc times n must be a whole number; got {accuracy} x {n} = {value * n:.6g}. Pass "
                "num_correct=, or decimals= if the accuracy was rounded for print."
            )
        return count, count
    digits = whole_number("decimals", decimals, 0)
    if abs(value * 10.0**digits - round(value * 10.0**digits)) > _WHOLE_NUMBER_TOL:
        raise ArgumentError(
            "decimals",
            f" must be the number of decimals of acc, 0 or more; got {decimals} for {accuracy}.",
        )
    half = 0.5 * 10.0**-digits
    low = max(0, int(np.ceil((value - half) * n - _WHOLE_NUMBER_TOL * n)))
    high = min(n, int(np.floor((value + half) * n + _WHOLE_NUMBER_TOL * n)))
    if low > high:
        raise ArgumentError(
            "acc",
            f" must be a share of n={n} rounded to {decimals} decimals; no count rounds to "
            f"{accuracy}. Check n and decimals.",
        )
    return low, high
