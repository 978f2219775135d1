"""`evaluate`: exact posterior of every metric, for both targets, as InferenceData."""

import json
from collections.abc import Sequence
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.closed_form.posterior import Distributions, Draws, SystemPosterior
from bayesatk.closed_form.posteriors import system_posterior
from bayesatk.closed_form.prior_effect import pooling_note, prior_sensitivity
from bayesatk.core.distribution import Empirical, interval
from bayesatk.core.laws import finite
from bayesatk.core.mixture import States
from bayesatk.core.priors import Pooling, Prior, describe_prior, resolve_prior
from bayesatk.core.seeding import RandomSource, resolve_rng
from bayesatk.likelihood import log_likelihood_groups
from bayesatk.metrics import MetricGrid, MetricSpec, parse
from bayesatk.outcomes import Outcomes, tally
from bayesatk.results import (
    QUANTILE_LEVELS,
    STATISTICS,
    TARGETS,
    build,
    data_groups,
    metric_dataset,
    posterior_group,
    root_attributes,
)

CHAINS = 4
Variables = dict[str, tuple[tuple[str, ...], NDArray[np.float64]]]
Keep = Literal["p", "log_likelihood"]
_METHODS = {"none": "conjugate", "complete": "conjugate", "partial": "quadrature"}


def evaluate(
    data: object,
    metrics: MetricSpec,
    *,
    pooling: Pooling = "partial",
    prior: Prior | None = None,
    ci_prob: float = 0.95,
    ci_kind: Literal["eti", "hdi"] = "eti",
    draws: int = 1000,
    keep: Sequence[Keep] = (),
    rng: RandomSource = None,
) -> xr.DataTree:
    """Exact posterior of metrics for "these questions" and for "questions like these".

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Outcomes of repeated trials; trials may differ between questions and systems.
    metrics : str, Metric, or iterable of them
        As in ``["pass@1,4", "pass^4", "maj@5", "g-pass@8:0.5", "bayes"]``. Every variable is
        computed at the union of all ``k``; `bayesatk.table` shows what was asked for.
    pooling : {"partial", "none", "complete"}
        How questions share information: a difficulty distribution with its mean and intraclass
        correlation integrated out; an independent prior per question; one success probability.
    prior : HyperPrior (partial) or BetaPrior (none, complete), optional
        Default: uniform.
    ci_prob : float
        Probability of the credible interval, strictly between 0 and 1.
    ci_kind : {"eti", "hdi"}
        Equal-tailed or highest-density interval, of the exact posterior.
    draws : int
        Independent draws per chain; there are 4 chains, so that every ArviZ function works.
    keep : sequence of {"p", "log_likelihood"}
        ``"p"`` stores draws of every question's success probability as well;
        ``"log_likelihood"`` the pointwise log-likelihood, however large (up to 10^6 values it is
        there anyway). Memory of each: 32 kB per question and system at the default draws.
    rng : int, numpy.random.Generator or None
        Seed of the draws. The exact statistics do not depend on it, except the interval of the
        population target under ``pooling="none"``, which comes from the Bayesian bootstrap.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (draws), ``closed_form`` (dims ``system, [k], [tau], target,
        statistic``), ``closed_form_quantiles``, ``log_likelihood`` (by question, its p integrated
        out), ``observed_data``, ``constant_data``.

    Raises
    ------
    OutcomeError
        If the data cannot be read or are not binary.
    ValueError
        If an option is outside its range, or (partial) the posterior is improper.

    Notes
    -----
    ``estimate`` is the unbiased finite-law value (k draws without replacement from the observed
    trials; NaN where a question has fewer than k). ``mean``, ``sd`` and the interval are those of
    the posterior law: fresh trials, any k. ``ci_error`` is the absolute error of the interval's
    ends: numerical, or Monte Carlo where draws had to be used. ``prior_sensitivity``, given where
    k exceeds the trials of some question, is the width of the interval under the prior raised to
    the power 1/2 (on the logit scale) over its width here: far from 1, the interval is mostly
    prior. Trials of a question are assumed exchangeable.

    See Also
    --------
    bayesatk.sample : the same variables from PyMC.
    bayesatk.verify : holds one against the other.

    Examples
    --------
    >>> fit = evaluate([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], "pass@2", pooling="none", rng=1)
    >>> mean = fit["closed_form"]["pass_at_k"].sel(statistic="mean", k=2, target="questions")
    >>> round(float(mean.squeeze()), 6)  # (23/28 + 6/7)/2
    0.839286
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    requested = parse(metrics)
    grid = MetricGrid.of(requested)
    prior = resolve_prior(pooling, prior)
    _check_options(ci_prob, ci_kind, draws, keep)
    generator, seed = resolve_rng(rng)
    successes, trials = outcomes.successes.values, outcomes.trials.values
    coords = {"system": outcomes.dataset["system"].values, "target": list(TARGETS)}

    rows, quantiles, samples, question_p, posteriors = [], [], [], [], []
    remarks: list[str] = []
    systems = outcomes.systems
    streams = generator.spawn(len(trials))
    for system, c, n, stream in zip(systems, successes, trials, streams, strict=True):
        states = States.of(c, n)
        posterior = system_posterior(pooling, states, list(grid), prior)
        drawn = posterior.draw(CHAINS * draws, stream, "p" in keep)
        estimate = _finite_estimates(grid, states)
        exact = posterior.distributions()
        statistics = _statistics(posterior, exact, drawn, estimate, ci_prob, ci_kind)
        statistics[..., 8] = prior_sensitivity(
            statistics, pooling, states, list(grid), prior, ci_prob, ci_kind
        )
        rows.append(statistics)
        remarks.extend(pooling_note(pooling, system, states, requested, grid, statistics))
        quantiles.append(_quantiles(exact, drawn))
        samples.append(drawn)
        posteriors.append(posterior)
        if drawn.p is not None:
            question_p.append(posterior.question_p())

    closed = metric_dataset(
        grid, np.stack(rows), ("system",), ("target", "statistic"),
        {**coords, "statistic": list(STATISTICS)},
    )  # fmt: skip
    levels = metric_dataset(
        grid, np.stack(quantiles), ("system",), ("target", "quantile"),
        {**coords, "quantile": QUANTILE_LEVELS},
    )  # fmt: skip
    extra = _extra_variables(samples, draws)
    attrs = {"sampling": "exact", "inference_library": "bayesatk"}
    values = np.stack([drawn.metrics for drawn in samples], axis=1)
    values = values.reshape(CHAINS, draws, *values.shape[1:])
    posterior_data = posterior_group(grid, values, coords["system"], extra, attrs)
    if question_p:
        labels = outcomes.dataset["question"]
        posterior_data = posterior_data.assign_coords(question=labels)
        closed = closed.assign(_question_statistics(question_p)).assign_coords(question=labels)
    groups = {
        "posterior": posterior_data,
        "closed_form": closed.assign(_hyper_statistics(posteriors, ci_prob, ci_kind))
        .assign(_diagnostic_variables(posteriors))
        .assign_attrs(bootstrap_draws=CHAINS * draws if pooling == "none" else 0),
        "closed_form_quantiles": levels.assign(_hyper_quantiles(posteriors)),
        **log_likelihood_groups(outcomes, posterior_data, prior, keep),
        **data_groups(outcomes),
    }
    return build(
        groups,
        root_attributes(
            method=_METHODS[pooling],
            pooling=pooling,
            prior=describe_prior(prior),
            seed=seed,
            metrics=" ".join(metric.label for metric in requested),
            data=outcomes,
            citations=_citations(grid, pooling),
            ci_prob=float(ci_prob),
            ci_kind=ci_kind,
            notes=json.dumps(remarks),
        ),
    )


def _check_options(ci_prob: float, ci_kind: str, draws: int, keep: Sequence[str]) -> None:
    if not 0.0 < ci_prob < 1.0:
        raise ValueError(f"ci_prob must lie strictly between 0 and 1; got {ci_prob}. Try 0.95.")
    if ci_kind not in ("eti", "hdi"):
        raise ValueError(f"ci_kind must be 'eti' or 'hdi'; got {ci_kind!r}.")
    if not isinstance(draws, int | np.integer) or draws < 2:
        raise ValueError(f"draws must be an integer >= 2 (per chain); got {draws!r}.")
    if isinstance(keep, str) or not set(keep) <= {"p", "log_likelihood"}:
        raise ValueError(f"keep must be a sequence of 'p' and 'log_likelihood'; got {keep!r}.")


def _finite_estimates(grid: MetricGrid, states: States) -> NDArray[np.float64]:
    """Unbiased estimates; NaN where some question has fewer than k trials."""
    share = states.count / states.questions
    return np.array(
        [share @ finite(metric.credit, states.successes, states.trials) for metric in grid]
    )


def _statistics(
    posterior: SystemPosterior,
    distributions: Distributions,
    drawn: Draws,
    estimate: NDArray[np.float64],
    ci_prob: float,
    ci_kind: str,
) -> NDArray[np.float64]:
    """Return the array (metrics, target, statistic)."""
    table = np.empty((*posterior.mean.shape, len(STATISTICS)))
    table[..., 0] = estimate[:, None]
    table[..., 1], table[..., 2] = posterior.mean, posterior.sd
    table[..., 6], table[..., 7] = posterior.variance_trial, posterior.variance_question
    for target, exact in enumerate(distributions):
        for metric in range(len(table)):
            if exact is not None:
                ends = interval(exact[metric], ci_prob, ci_kind)
                error = exact[metric].error
            else:
                empirical = Empirical(drawn.metrics[:, metric, target])
                ends = interval(empirical, ci_prob, ci_kind)
                error = empirical.quantile_error(0.5 - 0.5 * ci_prob)
            table[metric, target, 3:6] = (*ends, error)
    return table


def _quantiles(distributions: Distributions, drawn: Draws) -> NDArray[np.float64]:
    """Return the array (metrics, target, quantile)."""
    table = np.empty((drawn.metrics.shape[1], len(TARGETS), len(QUANTILE_LEVELS)))
    for target, exact in enumerate(distributions):
        for metric in range(len(table)):
            source = Empirical(drawn.metrics[:, metric, target]) if exact is None else exact[metric]
            table[metric, target] = source.quantile(QUANTILE_LEVELS)
    return table


def _extra_variables(samples: Sequence[Draws], draws: int) -> Variables:
    """Hyperparameters, and per-question p when kept."""
    extra: Variables = {}
    for name in samples[0].hyper:
        stacked = np.stack([drawn.hyper[name] for drawn in samples], axis=-1)
        extra[name] = (("chain", "draw", "system"), stacked.reshape(CHAINS, draws, -1))
    kept = [drawn.p for drawn in samples if drawn.p is not None]
    if kept:
        p = np.stack(kept, axis=1)
        extra["p"] = (
            ("chain", "draw", "system", "question"),
            p.reshape(CHAINS, draws, *p.shape[1:]),
        )
    return extra


def _question_statistics(
    question_p: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> Variables:
    """Exact mean and sd of every question's p, dims (system, question, statistic)."""
    shape = (len(question_p), len(question_p[0][0]), len(STATISTICS))
    table = np.full(shape, np.nan)
    for system, (mean, sd) in enumerate(question_p):
        table[system, :, 1], table[system, :, 2] = mean, sd
    return {"p": (("system", "question", "statistic"), table)}


def _hyper_statistics(
    posteriors: Sequence[SystemPosterior], ci_prob: float, ci_kind: str
) -> Variables:
    """Exact statistics of the hyperparameters, dims (system, statistic)."""
    found: Variables = {}
    for name in posteriors[0].hyper:
        table = np.full((len(posteriors), len(STATISTICS)), np.nan)
        for row, posterior in zip(table, posteriors, strict=True):
            one = posterior.hyper[name]
            ends = interval(one.distribution, ci_prob, ci_kind)
            row[1:6] = one.mean, one.sd, *ends, one.distribution.error
        found[name] = (("system", "statistic"), table)
    return found


def _hyper_quantiles(posteriors: Sequence[SystemPosterior]) -> Variables:
    return {
        name: (
            ("system", "quantile"),
            np.stack(
                [one.hyper[name].distribution.quantile(QUANTILE_LEVELS) for one in posteriors]
            ),
        )
        for name in posteriors[0].hyper
    }


def _diagnostic_variables(posteriors: Sequence[SystemPosterior]) -> Variables:
    return {
        name: (("system",), np.array([one.diagnostics[name] for one in posteriors]))
        for name in posteriors[0].diagnostics
    }


_SOURCES = {
    "pass_at_k": "arXiv:2107.03374",
    "pass_hat_k": "arXiv:2406.12045",
    "g_pass_at_k": "Findings of ACL 2025, 905",
    "mg_pass_at_k": "Findings of ACL 2025, 905",
    "auc_at_k": "arXiv:2601.08763",
    "bayes": "arXiv:2510.04265",
}


def _citations(grid: MetricGrid, pooling: str) -> tuple[str, ...]:
    sources = [_SOURCES.get(family.variable, "") for family in grid.families]
    if pooling == "none":
        sources.append("Rubin 1981, Annals of Statistics 9(1), 130-134 (Bayesian bootstrap)")
    return tuple(dict.fromkeys(source for source in sources if source))
