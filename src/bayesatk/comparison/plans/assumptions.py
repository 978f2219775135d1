"""What a plan takes for granted: of its systems, and of what they share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesatk.comparison.pairs.together import joint_draws
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.metrics.grid import Metric
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGET_NAMES, metric_values

_MOST = 0.99  # correlation of difficulties
_QUESTIONS, _POPULATION = 0, 1


def pilot_correlation(source: object, metric: Metric) -> float:
    """Return how far the difficulties of two systems of a pilot are shared; 0 without a pilot.

    The covariance of their means over questions like these, in the joint draws, over what the draw
    of the questions adds to the variance of each.
    """
    pilot = Result.of(source) if isinstance(source, Fit) else None
    if pilot is None or len(pilot.systems) != 2 or metric not in [*pilot.grid]:
        return 0.0
    values = joint_draws(pilot)[:, [*pilot.grid].index(metric)]
    added = values[_POPULATION].var(axis=1) - values[_QUESTIONS].var(axis=1)
    if not (added > 0.0).all():
        return 0.0
    covariance = float(np.cov(values[_POPULATION])[0, 1])
    return float(np.clip(covariance / np.sqrt(added.prod()), 0.0, _MOST))


def assumptions(
    source: Any, metric: Metric, target: str, ci_prob: float, correlation: float
) -> list[str]:
    """Say what is planned for: of whom a width is, and of two systems the difference assumed."""
    pair = _values(source, metric)
    what = metric.label if pair is None else f"the difference in {metric.label}"
    sentences = [
        f"width: of the {100 * ci_prob:g}% interval of {what} on {TARGET_NAMES[target]}, as it is "
        "expected before the data."
    ]
    if pair:
        (first, one), (second, other) = pair.items()
        sentences.append(
            f"Assumed: {metric.label} {one:.3g} of {named(first)} and {other:.3g} of "
            f"{named(second)}, a difference of {one - other:+.2g}; correlation of their "
            f"difficulties {correlation:.2f}."
        )
    return sentences


def _values(source: Any, metric: Metric) -> dict[object, float] | None:
    """Return the means of two systems; none where they are not stated, None of one system."""
    if isinstance(source, Fit):
        pilot = Result.of(source)
        if len(pilot.systems) != 2:
            return None
        if metric not in [*pilot.grid]:
            return {}
        means = metric_values(pilot.statistics, metric).sel(statistic="mean", target="population")
        return dict(zip(pilot.systems, means.values.tolist(), strict=True))
    if not isinstance(source, Mapping) or len(source) != 2:
        return None
    found: dict[object, float] = {}
    for system, (mean, icc) in source.items():
        if np.ndim(mean):  # of scores, by category
            return {}
        total = (1.0 - icc) / icc
        found[system] = float(metric.predictive(mean * total, (1.0 - mean) * total))
    return found
