"""The sentences on systems that a result supports: in terminal, report, tables and exports."""

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.words import number_words
from bayesatk.comparison.pairs.cost_rows import cost_rows
from bayesatk.comparison.pairs.verdicts import (
    PairSentences,
    design_words,
    metric_words,
    named,
)
from bayesatk.metrics.grid import Metric, parse
from bayesatk.posterior.observed import observed_value
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGET_NAMES, metric_values
from bayesatk.results.tables import noted, ranges_beyond


def claim(
    fit: Fit,
    metric: str | Metric | None = None,
    *,
    target: Literal["questions", "population", "new_groups"] = "population",
    system: object = None,
    other: object = None,
) -> str:
    """Write the sentence that a result supports about one system, a pair of systems, or all.

    Its probabilities are posterior: given the observed trials, under the model of the result.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`; for pairs from `bayesatk.compare`; for tiers
        from `bayesatk.leaderboard` or `bayesatk.compare`.
    metric : str or Metric, optional
        One metric of the result, one of costs included (for two systems); default: its first.
    target : {"population", "questions", "new_groups"}
        ``"questions"``: the mean over these questions; ``"population"``: over questions like
        these; ``"new_groups"``: over questions of new groups, for a result with groups.
    system : label, optional
        The system that the claim is about. It may be left out if there is only one. Without it,
        the claim of a comparison of two systems is about their difference, and that of more
        systems is about the tiers.
    other : label, optional
        A second system: the claim is about the difference of the two.

    Returns
    -------
    str
        The observed score, the numbers of questions and trials, then the posterior. Notes of the
        result (``fit.notes``) that bear on it follow, a line each.

    Raises
    ------
    ValueError
        If the result lacks the metric, target or system, or was not compared.

    See Also
    --------
    bayesatk.table : every pair with its verdict and sentence, as ``"comparison"``.
    bayesatk.leaderboard : all systems in one table.

    Notes
    -----
    With the ``alpha`` and ``rope`` that `bayesatk.compare` was given (0.05 and 0), a pair is

    * *practically equivalent* if P(difference within the ROPE) >= 1 - alpha, for rope > 0;
    * *ahead* if its order is declared: orders are declared one after the other, the surest first,
      as long as all of them are right together with probability 1 - alpha/2 (for two systems: if
      P(better) - P(tie)/2 >= 1 - alpha/2, for P(better) has half of P(tie)), and
      not of a system that did no better in the trials, where marks alone decide; tiers follow
      from the same orders;
    * *ahead by more than the ROPE* if also P(difference above the ROPE) >= 1 - alpha/2;
    * *not separated* otherwise.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.evaluate(runs, "mean", rng=1)
    >>> print(claim(bayesatk.compare(fit), target="questions"))
    a scored 1.000 and b 0.500 in mean on the same 6 questions (4 trials each). On these questions
    a is ahead of b: posterior mean difference +0.4... (95% interval +0.3... to +0.6...),
    P(better) > 0.999.
    """
    result = Result.of(fit)
    text, systems = said(result, metric, target, system, other)
    named_metric = str(getattr(metric, "label", metric))
    of_cost = named_metric in [cost.label for cost in result.costs]
    label = named_metric if of_cost else _metric_of(result, metric).label
    notes = [note for note in result.notes_on(systems) if _concerns(note, label, result.metrics)]
    return "\n".join([text, *noted(notes)])


def _concerns(note: str, label: str, metrics: Sequence[Metric]) -> bool:
    """Whether a note names a metric, or none of a result's metrics of k trials.

    Examples
    --------
    >>> metrics = parse("mean pass@2,4")
    >>> notes = ["a: the mean score is ...", "a: of pass@2, of pass@4.", "a: of pass@4."]
    >>> [_concerns(note, "pass@2", metrics) for note in notes]
    [True, True, False]
    """
    words = {word.rstrip(".") for word in re.split(r"[\s,;:]+", note)}
    others = {member.label for member in metrics if member.family.has_k} - {label}
    return label in words or not others & words


def said(
    fit: Result,
    metric: str | Metric | None = None,
    target: str = "population",
    system: object = None,
    other: object = None,
) -> tuple[str, list[object]]:
    """Return the sentence of `claim` without notes, and the systems that it is about."""
    if target not in fit.targets:
        targets = " or ".join(map(repr, fit.targets))
        raise ArgumentError("target", f" must be {targets}; got {target!r}.")
    for of_cost in fit.costs:
        if of_cost.label == (metric.label if isinstance(metric, Metric) else metric):
            return _of_costs(fit, of_cost, target, system, other)
    parsed_metric = _metric_of(fit, metric)
    ranked = fit.has("comparison") or fit.has("leaderboard")
    if other is None and (system is not None or not ranked):
        index = _index_of(fit, system, "system")
        return level_sentence(fit, index, parsed_metric, target), [fit.systems[index]]
    sentences = PairSentences(fit)
    if other is not None:
        pair = _index_of(fit, system, "system"), _index_of(fit, other, "other")
    elif len(fit.systems) > 2 or not fit.has("comparison"):
        return sentences.tiers(parsed_metric, target), fit.systems
    else:
        pair = 0, 1
    text = sentences.of(parsed_metric, *pair).sentences[fit.targets.index(target)]
    return text, [fit.systems[index] for index in pair]


def _of_costs(
    fit: Result, metric: Metric, target: str, system: object, other: object
) -> tuple[str, list[object]]:
    """Return the sentence on what a trial or success costs with two systems."""
    names = fit.systems if system is None and other is None else [system, other]
    if len(names) != 2 or not {*names} <= {*fit.systems}:
        rule = " and other must name the two systems whose costs are compared, of "
        raise ArgumentError("system", f"{rule}{fit.systems!r:.200}; got {system!r} and {other!r}.")
    pair = fit.systems.index(names[0]), fit.systems.index(names[1])
    rows = cost_rows(fit, [pair], fit.group("comparison").attrs["alpha"])
    said_on = {row["target"]: row["sentence"] for row in rows if row["metric"] == metric.label}
    if target in said_on:
        return said_on[target], names
    tried = fit.group("constant_data")["cost_trials"].values[list(pair)] > 0
    if (tried[0] == tried[1]).all():
        known: list[str | Argument] = [Argument("target", each) for each in said_on]
        remedy = known[:1] or ["run more trials"]
        raise ArgumentError(
            "target",
            f" must be one on which {metric.label} of both systems is known, which on "
            f"{TARGET_NAMES[target]} it is not, as the notes of the result say. Instead, ",
            *remedy,
            ".",
        )
    raise ArgumentError(
        "system",
        f" and other must have tried the same questions, whose costs are compared; "
        f"{names[0]!r} and {names[1]!r} did not.",
    )


def _metric_of(result: Result, metric: str | Metric | None) -> Metric:
    """Return the metric that is meant, which the result must have."""
    if metric is None:
        return result.metrics[0]
    (parsed_metric, *more_metrics) = parse(metric)
    if more_metrics or parsed_metric not in result.metrics:
        held = " ".join(held_metric.label for held_metric in result.metrics)
        raise ArgumentError(
            "metric", f" must be one metric of the result; got {metric!r}. It has {held}."
        )
    return parsed_metric


def _index_of(result: Result, name: object, argument: str) -> int:
    """Return the position of a system."""
    if name is None and len(result.systems) == 1:
        return 0
    if name not in result.systems:
        text = f" must be one of the systems {result.systems!r:.200}; got {name!r}."
        if name is None and argument == "system":
            text += " Name one"
            compare_first = ", or compare them first: bayesatk.claim(bayesatk.compare(fit))"
            text += f"{'' if result.has('comparison') else compare_first}."
        raise ArgumentError(argument, text)
    return result.systems.index(name)


def _labels_wanted(result: Result, system: int, metric: Metric, target: str) -> str:
    """Say how many trials of known truth it takes, where a judge's rates are most of the variance.

    The part of the variance that they make is taken to fall as one over the number of such trials.
    """
    judges = result.study.known_judges
    if judges is None or not result.has("judge"):
        return ""
    values = metric_values(result.group("judge"), metric).isel(system=system)
    share, labels = float(values.sel(target=target)), judges[system].p + judges[system].n
    if not 0.5 < share < 1.0:
        return ""
    wanted = float(f"{labels * share / (1.0 - share):.1e}")
    return (
        f" {100 * share:.0f}% of its variance is due to the error rates of the judge, known from "
        f"{labels} trials; with about {wanted:,.0f} it would be half."
    )


def level_sentence(result: Result, system: int, metric: Metric, target: str) -> str:
    """Say what one system scored, what the posterior is, and what that rests on."""
    name, label = named(result.systems[system]), metric.label
    words = metric_words(result, metric)
    values = metric_values(result.statistics, metric).isel(system=system).sel(target=target)
    mean, lower, upper = (
        number_words(float(values.sel(statistic=name))) for name in ("mean", "ci_lower", "ci_upper")
    )
    interval = f"({100 * result.ci_prob:g}% interval {lower} to {upper})"
    observed = observed_value(result, system, metric)
    trials = result.trials[[system]]
    partly = ""
    if not np.isnan(observed) and (trials[trials > 0] < metric.k).any():
        partly = f", those of {int((trials > 0).sum())} with {metric.k} trials or more"
        trials = trials[:, trials[0] >= metric.k]
    judges = result.study.known_judges
    if judges is not None:
        seen = "" if np.isnan(observed) else f"{number_words(observed)} "
        return (
            f"{name} was marked {seen}in {label} on {design_words(trials)}{partly} by "
            f"a judge that errs ({judges[system]}, of trials of known truth). Corrected for that, "
            f"on {TARGET_NAMES[target]} its {label} is {mean} {interval}."
            + _labels_wanted(result, system, metric, target)
        )
    if not np.isnan(observed):
        return (
            f"{name} scored {number_words(observed)} in {words} on "
            f"{design_words(trials, result.weight is not None)}{partly}. "
            f"On {TARGET_NAMES[target]} its {label} is {mean} {interval}."
        )
    fewest = int(trials[trials > 0].min())
    text = (
        f"{name}: {words} judges more trials than some questions have ({fewest}). On "
        f"{TARGET_NAMES[target]} it is {mean} {interval}"
    )
    low, high = ranges_beyond(result, [metric])[system, 0, result.targets.index(target)].tolist()
    if np.isnan(low):
        return f"{text}, which depends on the model."
    return (
        f"{text} under the difficulty families of the model; over all difficulty "
        f"distributions that agree with the counts it is {number_words(low)} to "
        f"{number_words(high)} ({100 * result.ci_prob:g}% confidence)."
    )
