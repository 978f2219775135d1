"""Evaluated systems against random guessers, and the distribution of the best guesser."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Ints, Rng
from bayesatk._tools.messages import ArgumentError, proper_probability
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.words import share_error
from bayesatk.data.chances import success_probabilities
from bayesatk.guessing.distributions import PoissonBinomial
from bayesatk.guessing.max_random import MaxOrderStatisticPoissonBinomial, skill_if_selected
from bayesatk.metrics.grid import MEAN_NAMES, parse
from bayesatk.posterior.models_of import draws_of_p, model_of
from bayesatk.results.citations import YAUNEY
from bayesatk.results.difficulty_draws import flat_draws
from bayesatk.results.result import Fit, Result, with_analysis
from bayesatk.results.schema import (
    CHAINS,
    SCHEMA_VERSION,
    STATISTICS,
    TARGETS,
    chain_dataset,
    result_tree,
)
from bayesatk.results.views import ShownTable


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def random_baseline(
    fit: Fit,
    guess: object,
    t: float = 10,
    *,
    correlation: float = 0.0,
    alpha: float = 0.05,
    rng: RandomSource = None,
) -> xr.DataTree:
    """Compare evaluated systems with the best of t random guessers on the same questions.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`, of binary outcomes. A sampled one must have
        the metric ``bayes`` (or pass@1).
    guess : float, mapping, array_like or xarray.DataArray
        Probability of guessing a question right: one for all, {labels: questions}, one per
        question in order, or a DataArray with the coordinate ``question``.
    t : float
        Configurations tried (prompts, seeds, demonstration sets) before the best was reported.
    correlation : float
        Correlation of the normal scores of the counts of any two configurations, in [0, 1].
    alpha : float
        Level of ``smallest_significant`` and ``largest_significant_t``.
    rng : int, numpy.random.Generator or None
        Seed of the predictive comparison.

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
            Smallest significant accuracy, and largest t for which the observed accuracy is
            significant.
        ``prob_exceeds`` (target), ``prob_exceeds_error``
            Posterior probability that the system's true accuracy exceeds ``expected_best``, and
            its Monte Carlo standard error (0: exact).
        ``prob_beats``, ``prob_ties``, ``prob_beats_error``
            Posterior predictive: a new run of the system on these questions against a new best of
            t guessers.
        ``skill_if_selected`` (statistic)
            Selection-adjusted accuracy (winner's curse): posterior of the accuracy if the system
            itself is the best of t configurations of equal skill.

    Raises
    ------
    ValueError
        If p does not fit the questions, or a sampled result lacks what is needed.

    See Also
    --------
    bayesatk.table : the numbers as a table.
    bayesatk.plots.plot_baseline : the distribution of the best guesser.

    Notes
    -----
    ``skill_if_selected`` treats all trials as independent given the skill. With questions of
    unequal difficulty counts vary less than that, so it shrinks slightly too much. Accuracies of
    guessers, and the observed one, are shares of all trials; ``prob_exceeds`` is of the mean over
    questions with equal weights, which differs only if numbers of trials differ.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]], "mean", rng=1)
    >>> group = random_baseline(fit, 0.25, t=10, rng=1)["random_baseline"]
    >>> round(float(group["expected_best"][0]), 4), round(float(group["p_value"][0]), 6)
    (0.4501, 0.000376)
    """
    result = Result.of(fit)
    generator, seed = resolve_rng(rng)
    chances = guessing_chances(result, guess)
    columns = [
        _one_system(result, i, chances, t, correlation, alpha, generator)
        for i in range(len(result.systems))
    ]
    dims = {
        "prob_exceeds": ("system", "target"),
        "prob_exceeds_error": ("system", "target"),
        "skill_if_selected": ("system", "statistic"),
    }
    group = xr.Dataset(
        {
            name: (dims.get(name, ("system",)), np.stack([column[name] for column in columns]))
            for name in columns[0]
        },
        coords={
            "system": result.group("observed_data")["system"].values,
            "target": list(TARGETS),
            "statistic": list(STATISTICS),
        },
        attrs={
            "t": float(t),
            "correlation": float(correlation),
            "alpha": float(alpha),
            "seed": seed,
            "citation": YAUNEY,
        },
    )
    return with_analysis(result.tree, "random_baseline", random_baseline=group)


def guessing_chances(fit: Result, p: object) -> Array:
    """Chance of guessing each question, in the order of the result."""
    labels = fit.group("observed_data")["question"].values
    if isinstance(p, xr.DataArray) and "question" in p.coords:
        absent = sorted(set(labels.tolist()) - set(p["question"].values.tolist()), key=str)
        if absent:
            raise ArgumentError(
                "guess",
                f" must have a value for every question; it lacks {absent[:5]}. Add them.",
            )
        p = p.sel(question=labels).values
    if isinstance(p, Mapping):
        _, trials = fit.right_of_all("random_baseline")
        if (trials != trials[:, :1]).any():
            raise ArgumentError(
                "guess",
                " must be one probability per question, not {labels: questions}, when trials "
                "differ between questions: it matters which question has which.",
            )
    return success_probabilities(len(labels), p)


def _one_system(
    fit: Result,
    system: int,
    chances: Array,
    t: float,
    correlation: float,
    alpha: float,
    rng: Rng,
) -> dict[str, Any]:
    successes, trials = (counts[system] for counts in fit.right_of_all("random_baseline"))
    guessers = guessers_of(chances, trials)
    best = guessers.at(t, correlation=correlation)
    correct, marks = int(successes.sum()), guessers.marks
    exceeds, exceeds_error = _prob_exceeds(fit, system, best.mean() / marks, rng)
    counts, run_index = np.unique(_new_runs(fit, system, trials, rng), return_inverse=True)
    beats, ties = best.cdf(counts - 1)[run_index], best.pmf(counts)[run_index]
    statistics = np.full(len(STATISTICS), np.nan)
    statistics[1:5] = skill_if_selected(correct, marks, t, ci_prob=fit.ci_prob, ci_kind=fit.ci_kind)
    level = {"alpha": alpha, "correlation": correlation}
    return {
        "observed_accuracy": correct / marks,
        "expected_best": best.mean() / marks,
        "p_value": float(best.sf(correct - 1)),
        "smallest_significant": guessers.smallest_significant(t, **level),
        "largest_significant_t": float(
            guessers.largest_significant_t(alpha=alpha, num_correct=correct)
        ),
        "prob_exceeds": exceeds,
        "prob_exceeds_error": exceeds_error,
        "prob_beats": float(beats.mean()),
        "prob_ties": float(ties.mean()),
        "prob_beats_error": float(beats.std() / np.sqrt(len(beats))),
        "skill_if_selected": statistics,
    }


def guessers_of(chances: Array, trials: Ints) -> MaxOrderStatisticPoissonBinomial:
    """Guessers with as many trials of each question as a system had."""
    return MaxOrderStatisticPoissonBinomial(int(trials.sum()), np.repeat(chances, trials))


def _prob_exceeds(fit: Result, system: int, value: float, rng: Rng) -> tuple[Array, Array]:
    """Posterior probability that the mean exceeds a value, by target, with its error."""
    if fit.sampled:
        return _share(_sampled_means(fit, system) > value)
    posterior = model_of(fit, system).fit(parse("mean"))
    probability, error = np.zeros(2), np.zeros(2)
    for target, (exact, *_) in enumerate(posterior.distributions()[: len(TARGETS)]):
        if exact is not None:
            probability[target] = 1.0 - float(exact.cdf(value))
        else:
            drawn = posterior.draw(4000, rng, False).metrics[:, 0, target]
            probability[target], error[target] = _share(drawn > value)
    return probability, error


def _sampled_means(fit: Result, system: int) -> Array:
    """Draws of the mean of a sampled result, (targets, draws)."""
    variables = fit.posterior.data_vars
    name = next((name for name in (*MEAN_NAMES, "pass_at_k") if name in variables), None)
    if name is None:
        raise ValueError(
            "a sampled result must have the metric 'mean' for the random baseline; it has "
            f"{sorted(map(str, variables))}. Sample it again with 'mean' among them."
        )
    draws = fit.posterior[name].isel(system=system).sel(target=list(TARGETS))
    if "k" in draws.dims:
        draws = draws.sel(k=1)
    return flat_draws(draws).T


def _share(true: Flags) -> tuple[Array, Array]:
    """Share of draws (..., draws) that are true, and its Monte Carlo standard error."""
    share = true.mean(axis=-1)
    return share, share_error(share, true.shape[-1])


def _new_runs(fit: Result, system: int, trials: Ints, rng: Rng) -> Ints:
    """Posterior predictive number correct of new runs with the same trials of each question."""
    # At most 1e7 success probabilities at once: over many questions the total hardly varies.
    size = int(np.clip(1e7 / len(trials), 200, fit.size))
    p, _ = draws_of_p(fit, system, size, rng)
    return rng.binomial(trials, p).sum(axis=1)


def baseline_table(fit: Fit) -> ShownTable:
    """Tabulate a random baseline, as `bayesatk.table` describes it."""
    fit = Result.of(fit, "random_baseline")
    group = fit.group("random_baseline")
    scalars = [name for name in group.data_vars if group[name].dims == ("system",)]
    frame = group[scalars].to_dataframe()
    for target in TARGETS:
        frame[f"prob_exceeds_{target}"] = group["prob_exceeds"].sel(target=target).values
    for name in ("mean", "ci_lower", "ci_upper"):
        frame[f"selected_{name}"] = group["skill_if_selected"].sel(statistic=name).values
    attrs = {"t": group.attrs["t"], "ci_prob": fit.ci_prob}
    return ShownTable.of(frame.reset_index(), "random_baseline", **attrs)


def random_baseline_distribution(
    n: int,
    guess: object,
    t: float = 10,
    *,
    correlation: float = 0.0,
    ci_prob: float = 0.95,
    draws: int = 1000,
    rng: RandomSource = None,
) -> xr.DataTree:
    """Distribution of the best of t random guessers, as InferenceData.

    Parameters
    ----------
    n, guess, t, correlation
        Number of examples, probability of guessing right, number of guessers and correlation of
        their counts, as in `bayesatk.guessing.MaxOrderStatisticPoissonBinomial`.
    ci_prob : float
        Probability of the equal-tailed interval.
    draws : int
        Independent draws in each of 4 chains.
    rng : int, numpy.random.Generator or None
        Seed of the draws.

    Returns
    -------
    xarray.DataTree
        Groups ``prior`` (draws of ``best_correct`` and ``best_accuracy``), ``closed_form`` (exact
        mean, sd and interval of both) and ``closed_form_cdf`` (``best_correct``: the whole
        distribution function, by ``count``).

    See Also
    --------
    bayesatk.models.sample_random_baseline : the same variables from PyMC.
    bayesatk.verify : compares the two.

    Examples
    --------
    >>> tree = random_baseline_distribution(2, 0.5, t=2, rng=1)
    >>> tree["closed_form_cdf"]["best_correct"].values.round(12).tolist()
    [0.0625, 0.5625, 1.0]
    """
    proper_probability("ci_prob", ci_prob, 0.95)
    generator, seed = resolve_rng(rng)
    best = PoissonBinomial(guess, n).largest_of(t, correlation=correlation)
    counts = np.arange(best.support()[0], best.support()[1] + 1)
    statistics = np.full(len(STATISTICS), np.nan)
    statistics[1:6] = best.mean(), best.std(), *best.interval(ci_prob), 0.0
    drawn = np.asarray(best.rvs((CHAINS, draws), generator))
    groups = {
        "prior": chain_dataset(
            {"best_correct": drawn, "best_accuracy": drawn / n}, sampling="exact"
        ),
        "closed_form": xr.Dataset(
            {
                "best_correct": ("statistic", statistics),
                "best_accuracy": ("statistic", statistics / n),
            },
            coords={"statistic": list(STATISTICS)},
        ),
        "closed_form_cdf": xr.Dataset(
            {"best_correct": ("count", best.cdf(counts))}, coords={"count": counts}
        ),
    }
    attrs = {
        "schema_version": SCHEMA_VERSION,
        "method": "max_random",
        "t": float(t),
        "correlation": float(correlation),
        "seed": seed,
        "ci_prob": float(ci_prob),
        "citations": json.dumps([YAUNEY]),
    }
    return result_tree(groups, attrs)
