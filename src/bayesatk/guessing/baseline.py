"""Evaluated systems against the best of t random guessers."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.core.intervals import interval
from bayesatk.data.chances import check_times, correct_counts, success_probabilities
from bayesatk.guessing.max_random import MaxOrderStatisticPoissonBinomial
from bayesatk.guessing.selection import selected_skill
from bayesatk.guessing.systems import System, variable
from bayesatk.results.citations import YAUNEY
from bayesatk.results.schema import STATISTICS, TARGETS, check_result, stored_counts

Array = NDArray[np.float64]


class SelectedSkill(NamedTuple):
    """Posterior of the accuracy of a configuration that was chosen as the best."""

    mean: float
    sd: float
    ci_lower: float
    ci_upper: float


def skill_if_selected(
    num_correct: int,
    marks: int,
    t: float,
    *,
    ci_prob: float = 0.95,
    ci_kind: Literal["eti", "hdi"] = "eti",
) -> SelectedSkill:
    """Accuracy that is left of the best of t when the luck of being the best is taken off.

    Posterior of a success probability s, uniform a priori, given that the largest of t independent
    Binomial(marks, s) counts is `num_correct`: the t configurations are taken to be equally
    skilled. Where their skills differ it takes off too much; with t = 1 it is the ordinary Beta
    posterior.

    Parameters
    ----------
    num_correct, marks : int
        Observed count of the best configuration, and out of how many.
    t : float
        Configurations tried, 1 or more.
    ci_prob, ci_kind
        Credible interval, as in `bayesatk.evaluate`.

    Returns
    -------
    SelectedSkill
        Mean, sd and interval.

    Examples
    --------
    >>> round(skill_if_selected(3, 4, 1).mean, 9)  # Beta(4, 2)
    0.666666667
    >>> round(skill_if_selected(60, 100, 10).mean, 3)
    0.523
    """
    count, _ = correct_counts(None, marks, num_correct)
    if not 0.0 < ci_prob < 1.0 or ci_kind not in ("eti", "hdi"):
        raise ValueError(
            "ci_prob must lie strictly between 0 and 1 and ci_kind be 'eti' or 'hdi'; got "
            f"{ci_prob} and {ci_kind!r}."
        )
    mean, sd, skill = selected_skill(count, marks, check_times(t))
    return SelectedSkill(mean, sd, *interval(skill, ci_prob, ci_kind))


def random_baseline(
    fit: xr.DataTree,
    p: object,
    t: float = 10,
    *,
    correlation: float = 0.0,
    alpha: float = 0.05,
    rng: RandomSource = None,
) -> xr.DataTree:
    """Hold evaluated systems against the best of t random guessers on the same questions.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`, of binary outcomes. A sampled one must hold
        the metric ``bayes`` (or pass@1).
    p : float, mapping, array_like or xarray.DataArray
        Probability of guessing a question right: one for all, {labels: questions}, one per
        question in order, or a DataArray with the coordinate ``question``.
    t : float
        Configurations tried (prompts, seeds, demonstration sets) before the best was reported.
    correlation : float
        Of the normal scores of any two configurations' counts, in [0, 1].
    alpha : float
        Level of ``smallest_significant`` and ``largest_significant_t``.
    rng : int, numpy.random.Generator or None
        For the predictive comparison.

    Returns
    -------
    xarray.DataTree
        The result with a group ``random_baseline``, for every system (a guesser gets as many
        trials of each question as the system had):

        ``expected_best``
            Expected best accuracy of t guessers.
        ``p_value``
            Probability that the best of t guessers is at least as accurate as observed.
        ``smallest_significant``, ``largest_significant_t``
            Accuracy that would be significant, and the most configurations for which the observed
            one still is.
        ``prob_exceeds`` (target), ``prob_exceeds_error``
            Posterior probability that the system's true accuracy exceeds ``expected_best``, and
            its Monte Carlo standard error (0: exact).
        ``prob_beats``, ``prob_ties``, ``prob_beats_error``
            Posterior predictive: a new run of the system on these questions against a new best of
            t guessers.
        ``skill_if_selected`` (statistic)
            Posterior of the accuracy if the system itself is the best of t configurations of equal
            skill: what is left when the luck of being selected is taken off.

    Raises
    ------
    ValueError
        If p does not fit the questions, or a sampled result lacks what is needed.

    Notes
    -----
    ``skill_if_selected`` treats all marks as independent given the skill; questions of unequal
    difficulty make counts less variable than that, so it shrinks a little too much. Accuracies of
    guessers, and the observed one, are shares of all marks; the targets of ``prob_exceeds`` weigh
    questions alike, which differs only where trials do.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]], "bayes", rng=1)
    >>> group = random_baseline(fit, 0.25, t=10, rng=1)["random_baseline"]
    >>> round(float(group["expected_best"][0]), 4), round(float(group["p_value"][0]), 6)
    (0.4501, 0.000376)
    """
    check_result(fit)
    generator, seed = resolve_rng(rng)
    chance = _per_question(fit, p)
    columns = [
        _one_system(System.of(fit, i), chance, t, correlation, alpha, generator)
        for i in range(fit["observed_data"].sizes["system"])
    ]
    values = {name: np.stack([column[name] for column in columns]) for name in columns[0]}
    group = xr.Dataset(
        {name: (("system", *_DIMS.get(name, ())), array) for name, array in values.items()},
        coords={
            "system": variable(fit, "observed_data", "system").values,
            "target": list(TARGETS),
            "statistic": list(STATISTICS),
        },
        attrs={
            "t": float(t), "correlation": float(correlation), "alpha": float(alpha),
            "seed": seed, "citation": YAUNEY,
        },
    )  # fmt: skip
    result = fit.copy()
    result["random_baseline"] = xr.DataTree(group)
    return result


_DIMS = {
    "prob_exceeds": ("target",),
    "prob_exceeds_error": ("target",),
    "skill_if_selected": ("statistic",),
}


def _per_question(fit: xr.DataTree, p: object) -> Array:
    """Chance of guessing each question, in the order of the result."""
    labels = variable(fit, "observed_data", "question").values
    if isinstance(p, xr.DataArray) and "question" in p.coords:
        absent = sorted(set(labels.tolist()) - set(p["question"].values.tolist()), key=str)
        if absent:
            raise ValueError(
                f"p must have a value for every question; it lacks {absent[:5]}. Add them."
            )
        p = p.sel(question=labels).values
    if isinstance(p, Mapping):
        _, trials = stored_counts(fit)
        if (trials != trials[:, :1]).any():
            raise ValueError(
                "p must be one probability per question, not {labels: questions}, when trials "
                "differ between questions: it matters which question has which."
            )
    return success_probabilities(len(labels), p)


def _one_system(
    system: System,
    chance: Array,
    t: float,
    correlation: float,
    alpha: float,
    rng: np.random.Generator,
) -> dict[str, Any]:
    every = np.repeat(chance, system.trials)
    baseline = MaxOrderStatisticPoissonBinomial(len(every), every)
    best = baseline.at(t, correlation=correlation)
    correct, marks = int(system.successes.sum()), len(every)
    expected = best.mean() / marks
    exceeds, error = system.prob_exceeds(expected, rng)
    beats, ties, beats_error = system.prob_beats(best, rng)
    attrs = system.fit.attrs
    kind: Any = attrs["ci_kind"]
    statistics = np.full(len(STATISTICS), np.nan)
    statistics[1:5] = skill_if_selected(
        correct, marks, t, ci_prob=float(attrs["ci_prob"]), ci_kind=kind
    )
    return {
        "observed_accuracy": correct / marks,
        "expected_best": expected,
        "p_value": baseline.p_value(None, t, num_correct=correct, correlation=correlation),
        "smallest_significant": baseline.smallest_significant(
            t, alpha=alpha, correlation=correlation
        ),
        "largest_significant_t": float(
            baseline.largest_significant_t(None, alpha=alpha, num_correct=correct)
        ),
        "prob_exceeds": exceeds,
        "prob_exceeds_error": error,
        "prob_beats": beats,
        "prob_ties": ties,
        "prob_beats_error": beats_error,
        "skill_if_selected": statistics,
    }


def baseline_table(result: xr.DataTree) -> pd.DataFrame:
    """Tabulate the random baseline of a result: one row per system.

    Parameters
    ----------
    result : xarray.DataTree
        From `bayesatk.guessing.random_baseline`.

    Returns
    -------
    pandas.DataFrame
        Observed accuracy, expected best of the guessers, p-value, posterior probabilities, and the
        accuracy that is left when the system is itself the best of t.
    """
    check_result(result, "random_baseline")
    group = result["random_baseline"].to_dataset()
    scalars = [name for name in group.data_vars if group[name].dims == ("system",)]
    frame = group[scalars].to_dataframe()
    for target in TARGETS:
        frame[f"prob_exceeds_{target}"] = group["prob_exceeds"].sel(target=target).values
    for name in ("mean", "ci_lower", "ci_upper"):
        frame[f"selected_{name}"] = group["skill_if_selected"].sel(statistic=name).values
    return frame.reset_index()
