"""Sums of systems times weights: differences of differences, means of systems."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import ArgumentError, real_number
from bayesatk._tools.words import chance_words, number_words
from bayesatk.comparison.pairs.contrasts import Settings, of_differences
from bayesatk.comparison.pairs.verdicts import metric_words, named
from bayesatk.results.result import Result, analysis_group
from bayesatk.results.schema import TARGET_NAMES
from bayesatk.results.tables import noted

_STATISTICS = (
    "mean", "sd", "ci_lower", "ci_upper", "prob_below_rope", "prob_in_rope", "prob_above_rope",
)  # fmt: skip


def contrast_group(
    fit: Result, contrast: Mapping[Any, float], values: Array, settings: Settings
) -> xr.Dataset:
    """Return the group ``contrast``: a row for each metric and target.

    Parameters
    ----------
    fit : Result
    contrast : mapping {system: weight}
    values : ndarray, shape (target, cell, system, draws)
        Joint draws.
    settings : Settings
    """
    weight = _weights(fit, contrast)
    text = _written(fit, weight)
    notes = []
    if abs(weight.sum()) > 1e-9 * np.abs(weight).max():
        notes.append(
            f"The weights of {text} add up to {weight.sum():.4g}, so it is no difference: its zero "
            "means nothing in particular."
        )
    cells, rows = [*fit.grid], []
    upward = Settings(settings.ci_prob, settings.ci_kind, settings.rope, 1, settings.effective)
    for metric in fit.metrics:
        for target, target_name in enumerate(fit.targets):
            sums = np.einsum("s,sd->d", weight, values[target, cells.index(metric)])
            contrasts = of_differences(sums[None, None], upward)
            row = {name: float(contrasts[name][0, 0]) for name in _STATISTICS}
            row["prob_positive"] = float(contrasts["prob_greater"][0, 0])
            row["monte_carlo_error"] = float(contrasts["monte_carlo_error"][0, 0])
            sentence = _sentence(fit, text, metric_words(fit, metric), target_name, row)
            rows.append(
                {"metric": metric.label, "target": target_name, **row, "sentence": sentence}
            )
    weights = {str(system): float(w) for system, w in zip(fit.systems, weight, strict=True) if w}
    attrs = {"weights": weights, "rope": settings.rope, "ci_prob": fit.ci_prob}
    sentences = [*notes, *noted(fit.notes_on([fit.systems[i] for i in np.flatnonzero(weight)]))]
    return analysis_group(pd.DataFrame(rows), ["metric", "target"], attrs, sentences=sentences)


def _weights(fit: Result, contrast: object) -> Array:
    """Return the weight of every system, or refuse."""
    if not isinstance(contrast, Mapping):
        rule = f" must be a mapping from system to weight; got {contrast!r:.80}."
        raise ArgumentError("contrast", rule)
    weight = np.zeros(len(fit.systems))
    for system, value in contrast.items():
        if system not in fit.systems:
            rule = f" must name systems of {fit.systems!r:.200}; got {system!r}."
            raise ArgumentError("contrast", rule)
        weight[fit.systems.index(system)] = real_number("contrast", value)
    if not (np.isfinite(weight).all() and weight.any()):
        rule = f" must have finite weights that are not all 0; got {contrast!r:.200}."
        raise ArgumentError("contrast", rule)
    return weight


def _written(fit: Result, weight: Array) -> str:
    """Write a sum as people do: a - b, 0.5 a + 0.5 b - c."""
    terms = [
        (value, f"{abs(value):g} {named(system)}" if abs(value) != 1.0 else named(system))
        for system, value in sorted(
            zip(fit.systems, weight.tolist(), strict=True), key=lambda pair: pair[1] < 0.0
        )
        if value
    ]
    text = " ".join(f"{'-' if value < 0.0 else '+'} {term}" for value, term in terms)
    return text.removeprefix("+ ")


def _sentence(fit: Result, text: str, metric: str, target: str, row: Mapping[str, float]) -> str:
    """Say what a sum is, and how surely it is above zero."""
    mean, low, high = (
        number_words(row[name], sign=True) for name in ("mean", "ci_lower", "ci_upper")
    )
    chance = chance_words("> 0", row["prob_positive"])
    return (
        f"On {TARGET_NAMES[target]} {text} is {mean} in {metric} ({100 * fit.ci_prob:g}% interval "
        f"{low} to {high}), {chance}."
    )
