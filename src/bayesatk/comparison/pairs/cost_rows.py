"""Differences and ratios of costs between systems, from the joint draws of a result."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk._tools.words import chance_words
from bayesatk.comparison.pairs.contrasts import Settings, of_differences, separated
from bayesatk.comparison.pairs.verdicts import AHEAD, BEHIND, OPEN, named
from bayesatk.metrics.grid import COST, Metric
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGET_NAMES, metric_values

_CONTRASTS = (
    "mean", "sd", "ci_lower", "ci_upper", "prob_greater", "prob_tie", "expected_loss",
    "monte_carlo_error",
)  # fmt: skip
_MOMENTS = ("mean", "sd", "expected_loss", "mean_system", "mean_other")  # of contrasts


def cost_rows(
    fit: Result, pairs: Iterable[tuple[int, int]], alpha: float
) -> Iterator[dict[str, Any]]:
    """Yield a row for each metric of costs, pair of systems that tried the same questions, target.

    Parameters
    ----------
    fit : Result
    pairs : iterable of (int, int)
        Positions of systems.
    alpha : float
        Orders of all systems are declared, as those of other metrics, as long as all of them are
        right together with probability ``1 - alpha / 2``.
    """
    pairs = list(pairs)
    for metric in fit.costs:
        tried = fit.group("constant_data")["cost_trials"].values > 0
        draws = metric_values(fit.posterior, metric).transpose("target", "system", "chain", "draw")
        values = draws.values.reshape(*draws.shape[:2], -1)
        has_draws = np.isfinite(values).all(axis=-1)
        means = metric_values(fit.statistics, metric).sel(statistic="mean")
        has_moments = np.isfinite(means.transpose("target", "system").values)
        better = np.zeros((len(values), *2 * values.shape[1:2]), bool)
        for t, systems in enumerate(has_draws):
            better[t][np.ix_(systems, systems)] = separated(-values[t, systems].T, 0.5 * alpha)[0]
        for i, j in pairs:
            if not (tried[i] == tried[j]).all():
                continue
            for t, target in enumerate(fit.targets):
                if not has_draws[t, [i, j]].all():
                    continue
                row = _contrast(fit, values[t, i], values[t, j])
                if not has_moments[t, [i, j]].all():
                    row |= dict.fromkeys(_MOMENTS, np.nan)
                verdict = AHEAD if better[t, i, j] else BEHIND if better[t, j, i] else OPEN
                row["declared"] = float(verdict != OPEN)
                names = fit.systems[i], fit.systems[j]
                yield {
                    "system": names[0],
                    "other": names[1],
                    "metric": metric.label,
                    "target": target,
                    **row,
                    "questions": int(tried[i].sum()),
                    "verdict": verdict,
                    "sentence": _sentence(fit, metric, names, target, row),
                }


def _contrast(fit: Result, a: Array, b: Array) -> dict[str, float]:
    """Return contrasts of joint draws of two systems, of which the lower is better."""
    settings = Settings(fit.ci_prob, fit.ci_kind, 0.0, -1, len(a))
    contrasts, ratio = of_differences((a - b)[None, None], settings), np.full(3, np.nan)
    if (b > 0.0).all():
        ratio = np.quantile(a / b, [0.5, *fit.tails])
    return {
        **{name: float(contrasts[name][0, 0]) for name in _CONTRASTS},
        **dict(zip(("ratio_median", "ratio_lower", "ratio_upper"), ratio.tolist(), strict=True)),
        "mean_system": float(a.mean()),
        "mean_other": float(b.mean()),
    }


def _sentence(
    fit: Result, metric: Metric, names: tuple[Any, Any], target: str, row: dict[str, float]
) -> str:
    """Say what a trial or success costs with each system, and which system is cheaper."""
    unit = fit.posterior[metric.family.variable].attrs["units"]
    first, second = map(named, names)
    what, facts = "trial" if metric == COST else "success", []
    has_ratio = not np.isnan(row["ratio_median"])
    if not np.isnan(row["mean"]):
        amounts = [
            f"{row[key]:.4g}{f' {unit}' * bool(unit)}" for key in ("mean_system", "mean_other")
        ]
        no_ratio = "" if has_ratio else f" (no ratio, because {second} may cost nothing)"
        facts.append(
            f"a {what} costs {amounts[0]} with {first} and {amounts[1]} with {second}{no_ratio}"
        )
    if has_ratio:
        median, low, high = (
            f"{row[f'ratio_{name}']:#.3g}".rstrip(".") for name in ("median", "lower", "upper")
        )
        compared = (
            f"{first} costs {median} times as much as {second}"
            if facts
            else f"a {what} costs {median} times as much with {first} as with {second}"
        )
        facts.append(f"{compared} ({100 * fit.ci_prob:g}% interval {low} to {high})")
    chance = row["prob_greater"]
    cheaper, chance = (first, chance) if chance >= 0.5 else (second, 1.0 - chance)
    facts.append(chance_words(f"{cheaper} is cheaper", chance))
    return f"On {TARGET_NAMES[target]} {'; '.join(facts)}."
