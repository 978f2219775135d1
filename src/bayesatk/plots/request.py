"""What is asked of a plot, found in a result or refused by name; and what plots call things."""

from collections.abc import Iterable, Sequence
from typing import Any

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.words import probability_words
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


def estimand(metric: Metric, over_k: bool = False) -> str:
    """Name a metric with its unit, as an axis label.

    Examples
    --------
    >>> from bayesatk.metrics.grid import parse
    >>> estimand(parse("pass^4")[0]), estimand(parse("g-pass@8:0.5")[0], over_k=True)
    ('pass^4 (probability)', 'g-pass@k:0.5 (probability)')
    """
    label = metric.label
    if over_k:
        label = metric.family.symbol + "k" + ("" if metric.tau is None else f":{metric.tau:g}")
    return f"{label} ({metric.family.unit})"


def interval_name(probability: float, kind: str) -> str:
    """Say which interval is drawn.

    Examples
    --------
    >>> interval_name(0.95, "eti")
    '95% equal-tailed interval'
    """
    words = {"eti": "equal-tailed", "hdi": "highest-density"}
    return f"{100 * probability:g}% {words[kind]} interval"


def probability_text(value: float, error: float = 0.0) -> str:
    """Write that a quantity has a probability, with the digits that its error leaves.

    Examples
    --------
    >>> [probability_text(p) for p in (0.99996, 0.25, 0.0)]
    ['> 0.999', '= 0.250', '< 0.001']
    >>> probability_text(0.6243, 0.008)
    '≈ 0.62'
    """
    words = probability_words(value, error)
    if "±" in words:
        return f"≈ {words.partition(' ')[0]}"
    return words if words[0] in "<>" else f"= {words}"


def shortened(labels: Iterable[object], width: int = 30) -> list[str]:
    """Return labels on one line, cut in the middle where long, and still all different.

    Examples
    --------
    >>> shortened(["a" * 20 + "1", "a" * 20 + "2"], width=9)
    ['aaaa…aaa1', 'aaaa…aaa2']
    >>> shortened(["a" * 20, "a" * 21], width=5)
    ['aa…aa', 'aa…aa #2']
    """
    short: list[str] = []
    for label in labels:
        visible = "".join(
            character if character.isprintable() else "" if ord(character) > 127 else " "
            for character in str(label)
        )
        text = " ".join(visible.split()) or "(unnamed)"
        if len(text) > width:
            head = width // 2
            text = text[:head] + "…" + text[len(text) - (width - head - 1) :]
        same = [earlier for earlier in short if earlier == text or earlier.startswith(f"{text} #")]
        short.append(f"{text} #{len(same) + 1}" if same else text)
    return short
