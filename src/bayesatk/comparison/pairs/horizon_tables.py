"""Horizons in tables and sentences, with what is not bounded said so."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesatk.comparison.pairs.curve_scale import CurveScale
from bayesatk.comparison.pairs.verdicts import named

Array = NDArray[np.float64]
_LIKELY = 0.005  # probability from which a sentence says that there may be no horizon


def system_row(
    system: Any,
    values: Array,
    none: NDArray[np.bool_],
    scale: CurveScale,
    asked: Mapping[str, Any],
    falls: bool,
) -> dict[str, Any]:
    """Return median, interval, probabilities and sentence of one system.

    Parameters
    ----------
    system : label
    values : ndarray, shape (draws,)
        Of the horizon; infinite, or the lowest value, without a crossing.
    none : ndarray of bool, shape (draws,)
        Whether there is no crossing.
    scale : CurveScale
    asked : mapping
        What `bayesatk.horizon` was asked.
    falls : bool
        Whether the metric falls along the covariate.
    """
    median, low, high = _ends(values, asked["ci_prob"])
    least, most = scale.observed
    row = {
        "system": system, "median": median, "ci_lower": low, "ci_upper": high,
        "prob_none": float(none.mean()),
        "prob_outside": float(((values < least) | (values > most)).mean()),
    }  # fmt: skip
    return {**row, "sentence": _sentence(row, falls, scale, asked)}


def _sentence(
    row: Mapping[str, Any], falls: bool, scale: CurveScale, asked: Mapping[str, Any]
) -> str:
    way = "falls" if falls else "rises"
    kind = "an average" if asked["question"] == "average" else "a typical"
    text = (
        f"{named(row['system'])}: {asked['metric']} of {kind} question {way} to "
        f"{asked['level']:g} at {asked['covariate']} = {_shown(row['median'])} "
        f"({100 * asked['ci_prob']:g}% interval {_shown(row['ci_lower'])} to "
        f"{_shown(row['ci_upper'])})"
    )
    if row["prob_outside"] >= 0.5:
        least, most = (_shown(one) for one in scale.observed)
        text += f", outside the observed values, {least} to {most}"
    if row["prob_none"] >= _LIKELY:
        text += f"; with probability {row['prob_none']:.2g} it never reaches that level"
    return text + "."


def _shown(value: float) -> str:
    return "infinity" if value == np.inf else "-infinity" if value == -np.inf else f"{value:.3g}"


def pair_rows(
    systems: list[Any], joint: Array, scale: CurveScale, asked: Mapping[str, Any]
) -> pd.DataFrame:
    """Return differences and ratios of every pair, the longer first; draws (draws, systems)."""
    rows = []
    medians = np.quantile(joint, 0.5, axis=0, method="nearest")
    order = np.argsort(-medians, kind="stable")
    for i, j in combinations(order.tolist(), 2):
        a, b = joint[:, i], joint[:, j]
        with np.errstate(invalid="ignore", divide="ignore"):
            difference = a - b  # NaN where both are infinite: it could be anything
            ratio = a / b if scale.positive else np.full(len(a), np.nan)
        row: dict[str, Any] = {"system": systems[i], "other": systems[j]}
        for name, values in (("difference", difference), ("ratio", ratio)):
            row |= _unsure_ends(name, values, asked["ci_prob"], scale.positive or name != "ratio")
        row["prob_greater"] = float((a > b).mean() + 0.5 * (a == b).mean())
        row["sentence"] = _pair_sentence(row, asked)
        rows.append(row)
    return pd.DataFrame(rows)


def _unsure_ends(name: str, values: Array, probability: float, known: bool) -> dict[str, float]:
    """Median and interval of values of which some could be anything: NaN counts on either side."""
    if not known:
        return dict.fromkeys((name, f"{name}_lower", f"{name}_upper"), np.nan)
    unsure = np.isnan(values)
    lowest = 0.0 if name == "ratio" else -np.inf
    _, low, _ = _ends(np.where(unsure, lowest, values), probability)
    _, _, high = _ends(np.where(unsure, np.inf, values), probability)
    middle = _ends(values[~unsure], probability)[0] if not unsure.all() else np.nan
    return {name: middle, f"{name}_lower": low, f"{name}_upper": high}


def _pair_sentence(row: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    percent = f"{100 * asked['ci_prob']:g}%"
    name = "difference" if np.isnan(row["ratio"]) else "ratio"
    what = "is longer by" if name == "difference" else "is longer by a factor of"
    return (
        f"the horizon of {named(row['system'])} {what} {_shown(row[name])} than that of "
        f"{named(row['other'])} ({percent} interval {_shown(row[f'{name}_lower'])} to "
        f"{_shown(row[f'{name}_upper'])}; P(longer) {row['prob_greater']:.3f})."
    )


def _ends(values: Array, probability: float) -> tuple[float, float, float]:
    """Median and interval; ends that may be infinite are draws themselves."""
    tail = 0.5 * (1.0 - probability)
    low = float(np.quantile(values, tail, method="lower"))
    high = float(np.quantile(values, 1.0 - tail, method="higher"))
    return float(np.quantile(values, 0.5, method="nearest")), low, high
