"""What is asked of a plot, found in a result or refused by name."""

from collections.abc import Sequence
from typing import Any

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.metrics.grid import FAMILIES, Metric, MetricSpec, parse
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS


def chosen_metrics(result: Result, metric: MetricSpec | None) -> list[Metric]:
    """Return the metrics to show: those given, or all that the result was asked for."""
    result_metrics = result.metrics
    if metric is None:
        return list(result_metrics)
    held = {member.label for member in result.grid}
    wanted = list(parse(metric))
    absent = [member.label for member in wanted if member.label not in held]
    if absent:
        raise ArgumentError(
            Argument("metric"),
            f" must be in the result; {', '.join(absent)} is not, it has "
            f"{', '.join(member.label for member in result_metrics)}. Ask evaluate (or sample) for "
            "it.",
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
    labels = " ".join(member.label for member in result.metrics)
    named, _, tau = str(metric).strip().lower().partition(":")
    symbol = named.rstrip("0123456789,")
    family = FAMILIES.get(symbol)
    remedy = f"Ask for more, as in evaluate(..., '{symbol}1,2,4,8')."
    if family is None or not family.has_k:
        curves = ", ".join(
            repr(name) for name, known_family in FAMILIES.items() if known_family.has_k
        )
        raise ArgumentError(
            Argument("metric"),
            f" must be a family over k, one of {curves}; got {metric!r}, and the result has "
            f"{labels}. {'' if family is None else 'It has no k. '}"
            "Ask for a curve, as in evaluate(..., 'pass@1,2,4,8').",
        )
    if family not in grid.families or len(grid.ks) < 2:
        raise ArgumentError(
            Argument("metric"),
            f" must have two ks or more in the result to be a curve; got {metric!r}, and the "
            f"result has {labels}. {remedy}",
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
        several = isinstance(system, Sequence) and not isinstance(system, str)
        wanted = list(system) if several else [system]
        absent = [label for label in wanted if label not in labels]
        if absent or not wanted:
            raise ArgumentError(
                Argument("system"),
                f" must be among those of the result; got {system!r}, and it has "
                f"{', '.join(map(repr, labels[:10]))}{', ...' * (len(labels) > 10)}.",
            )
    if len(wanted) > 24:
        raise ArgumentError(
            Argument("system"),
            f" must name at most 24 systems, one panel each; got {len(wanted)}. "
            "Pass a list of labels as system=.",
        )
    return list(wanted)
