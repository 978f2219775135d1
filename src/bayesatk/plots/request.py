"""What is asked of a plot, found in a result or refused by name."""

from collections.abc import Sequence
from typing import Any

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.metrics.grid import FAMILIES, Metric, MetricSpec, parse
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS

_MOST_PANELS = 24


def chosen_metrics(result: Result, metric: MetricSpec | None) -> list[Metric]:
    """Return the metrics to show: those given, or all that the result was asked for."""
    asked = result.metrics
    if metric is None:
        return list(asked)
    held = {one.label for one in result.grid}
    wanted = list(parse(metric))
    absent = [one.label for one in wanted if one.label not in held]
    if absent:
        raise ArgumentError(
            Argument("metric"),
            f" must be in the result; {', '.join(absent)} is not, it has "
            f"{', '.join(one.label for one in asked)}. Ask evaluate (or sample) for it.",
        )
    return list(wanted)


def chosen_curve(result: Result, metric: str) -> list[Metric]:
    """Return the members of a family at every k of the result.

    Parameters
    ----------
    result : Result
    metric : str
        As in ``"pass@"``; ``"g-pass@:0.5"`` names a tau. A k, as in ``"pass@4"``, has no part in
        which curve it is.
    """
    grid = result.grid
    asked = " ".join(one.label for one in result.metrics)
    named, _, tau = str(metric).strip().lower().partition(":")
    symbol = named.rstrip("0123456789,")
    family = FAMILIES.get(symbol)
    remedy = f"Ask for more, as in evaluate(..., '{symbol}1,2,4,8')."
    if family is None or not family.has_k:
        curves = ", ".join(repr(name) for name, one in FAMILIES.items() if one.has_k)
        raise ArgumentError(
            Argument("metric"),
            f" must be a family over k, one of {curves}; got {metric!r}, and the result has "
            f"{asked}. {'' if family is None else 'It has no k. '}"
            "Ask for a curve, as in evaluate(..., 'pass@1,2,4,8').",
        )
    if family not in grid.families or len(grid.ks) < 2:
        raise ArgumentError(
            Argument("metric"),
            f" must have two ks or more in the result to be a curve; got {metric!r}, and the "
            f"result has {asked}. {remedy}",
        )
    if not family.has_tau:
        return [family.at(k) for k in grid.ks]
    taus = [value for value in grid.taus if not tau or abs(value - float(tau)) < 1e-9]
    if len(taus) != 1:
        raise ArgumentError(
            Argument("metric"),
            f" must name one tau of the result; got {metric!r}, and it has "
            f"{', '.join(f'{value:g}' for value in grid.taus)}. Write '{symbol}:{grid.taus[0]:g}'.",
        )
    return [family.at(k, taus[0]) for k in grid.ks]


def chosen_targets(target: str | None, targets: Sequence[str] = TARGETS) -> list[str]:
    """Return the targets to show: the one given, or all that there are."""
    if target is None:
        return list(targets)
    if target not in targets:
        raise ArgumentError(
            Argument("target"),
            f" must be one of {', '.join(targets)}, or None for all; got {target!r}.",
        )
    return [target]


def chosen_systems(result: Result, system: Any) -> list[Any]:
    """Return the systems to show: those given, or all; a panel is drawn for each."""
    labels = result.systems
    if system is None:
        wanted = labels
    else:
        given = isinstance(system, Sequence) and not isinstance(system, str)
        wanted = list(system) if given else [system]
        absent = [one for one in wanted if one not in labels]
        if absent or not wanted:
            raise ArgumentError(
                Argument("system"),
                f" must be among those of the result; got {system!r}, and it has "
                f"{', '.join(map(repr, labels[:10]))}{', ...' * (len(labels) > 10)}.",
            )
    if len(wanted) > _MOST_PANELS:
        raise ArgumentError(
            Argument("system"),
            f" must name at most {_MOST_PANELS} systems, one panel each; got {len(wanted)}. "
            "Pass a list of labels as system=.",
        )
    return list(wanted)
