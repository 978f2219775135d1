"""Assumptions of a plan as sentences, and the correlation of two systems of a pilot."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesatk.comparison.pairs.together import joint_draws
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.metrics.grid import Metric
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGET_NAMES, metric_values

_CORRELATION_MAX = 0.99
_QUESTIONS, _POPULATION = 0, 1


def pilot_correlation(source: object, metric: Metric) -> float:
    """Return the correlation of the difficulties of two systems of a pilot; 0 without a pilot.

    The covariance of their means over questions like these in the joint draws, divided by the
    geometric mean of the variances that are due to the choice of questions.
    """
    pilot = Result.of(source) if isinstance(source, Fit) else None
    if pilot is None or len(pilot.systems) != 2 or metric not in [*pilot.grid]:
        return 0.0
    values = joint_draws(pilot)[:, [*pilot.grid].index(metric)]
    sampling_variance = values[_POPULATION].var(axis=1) - values[_QUESTIONS].var(axis=1)
    if not (sampling_variance > 0.0).all():
        return 0.0
    covariance = float(np.cov(values[_POPULATION])[0, 1])
    return float(np.clip(covariance / np.sqrt(sampling_variance.prod()), 0.0, _CORRELATION_MAX))


def assumptions(
    source: Any, metric: Metric, target: str, ci_prob: float, correlation: float, by_default: bool
) -> list[str]:
    """Return sentences: which interval is planned for, and the assumed values of two systems."""
    pair = assumed_values(source, metric)
    pilot = Result.of(source) if isinstance(source, Fit) else None
    quantity = metric.label if pair is None else f"the difference in {metric.label}"
    sentences = [
        f"width: of the {100 * ci_prob:g}% interval of {quantity} on {TARGET_NAMES[target]}, as "
        "it is expected before the data."
    ]
    if pilot is not None and pilot.single_trials:
        sentences.append(
            "The pilot's single trials do not say how much questions differ: what the plan says of "
            "two trials or more rests on the prior of that."
        )
    if not pair:
        return sentences
    (first, first_value), (second, second_value) = pair.items()
    values = (
        f"{metric.label} {first_value:.3g} of {named(first)} and {second_value:.3g} of "
        f"{named(second)}, a difference of {first_value - second_value:+.2g}"
    )
    if pilot is not None:
        means = joint_draws(pilot)[_POPULATION, [*pilot.grid].index(metric)]
        sd = (means[0] - means[1]).std()
        sentences.append(
            f"By the pilot {values} with posterior sd {sd:.2g}: widths and probabilities are "
            "averages over this posterior. For a fixed difference state both difficulties: "
            "--difficulty SYSTEM=MEAN,ICC twice; in Python {system: (mean, icc)}."
        )
    else:
        sentences.append(f"Assumed: {values}, which is fixed.")
    unstated = " (the default, which takes more questions than a larger one)" * by_default
    sentences.append(
        f"Both systems try the same questions; correlation of their difficulties {correlation:.2f}"
        f"{unstated}."
    )
    return sentences


def assumed_values(source: Any, metric: Metric) -> dict[object, float] | None:
    """Return the means of two systems; empty where they are unknown, None for one system."""
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
    predictive_means: dict[object, float] = {}
    for system, (mean, icc) in source.items():
        if np.ndim(mean):  # of scores, by category
            return {}
        total = (1.0 - icc) / icc
        predictive_means[system] = float(metric.predictive(mean * total, (1.0 - mean) * total))
    return predictive_means
