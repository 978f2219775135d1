"""The groups of a result that ArviZ checks models with: likelihoods, replicated counts, priors.

The unit that is left out, and that models are compared on, is the question. The likelihood of its
count is taken given the draw's hyperparameters with the question's own p integrated out: on draws
of p itself, Pareto-smoothed importance sampling is wrong by hundreds. Replicates are of questions
like these, whose p is drawn anew, so that leave-one-out compares like with like.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import digamma, gammaln

from bayesatk._tools.arrays import Array, Indices, Rng
from bayesatk.data.study import Study
from bayesatk.metrics.grid import MetricGrid
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior
from bayesatk.priors.fields import Beta, Dirichlet, Field, Fields
from bayesatk.results.difficulty_draws import field_values
from bayesatk.results.question_laws import QuestionLaws, concentration, declared_fields
from bayesatk.results.question_means import Shares, SystemMetrics, stored
from bayesatk.results.schema import (
    DRAWS,
    GROUPED_TARGETS,
    SAMPLE,
    draws_dataset,
    metric_dataset,
)

UNIT = "question of a system"  # that a log-likelihood is of, and that models are compared on
# Log-likelihoods (8 MB) and replicated counts (2 MB) up to which they are kept without being
# asked for.
MOST_VALUES = 1_000_000
PRIOR_DRAWS = 500
_VARIATION = 1e-11  # relative to a log-likelihood that is the same in every draw, from end to end
_TINY = 5e-324  # the smallest number above zero


def checking_groups(
    study: Study,
    groups: Mapping[str, xr.Dataset],
    keep: Sequence[str],
    rng: Rng,
    likelihood: Array | None = None,
    p: Array | None = None,
) -> dict[str, xr.Dataset]:
    """Return log-likelihood, predictive and prior groups.

    Parameters
    ----------
    study : Study
    groups : mapping {name: xarray.Dataset}
        The draws: ``posterior`` and, where there is one, ``difficulty``.
    keep : sequence of str
        ``"log_likelihood"`` and ``"predictive"``: what is kept however large it is.
    rng : numpy.random.Generator
        For replications.
    likelihood : ndarray, shape (draws, system, question), optional
        Log probability of each question's counts given its earlier trials.
    p : ndarray, shape (draws, system, question, ...), optional
        Draws of p of every question, without pooling.

    Notes
    -----
    There are no draws of an improper prior. Of votes between answers, whose data are answers and
    not counts, and of pooled questions that have earlier trials, there is a likelihood only if it
    is given.
    """
    posterior, systems = groups["posterior"], range(len(study.outcomes.systems))
    at = {name: posterior[name].values for name in ("chain", "draw")}
    results, laws = {}, []
    if study.judged:
        laws = [QuestionLaws.of_result(study, groups, system, p) for system in systems]
    if laws and (study.pooling != "none" or p is not None):
        results = _predictive_groups(study, posterior, laws, at, keep, rng)
    draws = len(at["chain"]) * len(at["draw"])
    if likelihood is not None:
        likelihood = with_variation(likelihood)
    elif laws and (study.prior_counts is None or study.pooling != "partial"):
        likelihood = _log_likelihood(study, laws, draws, keep)
    if likelihood is not None and likelihood_kept(likelihood.size, keep):
        values = {study.scale.variable: (("question",), likelihood)}
        group = draws_dataset(values, at, **_labels(study)).assign_attrs(unit=UNIT)
        results["log_likelihood"] = group
    return results


def likelihood_kept(size: int, keep: Sequence[str]) -> bool:
    """Whether a result has so many values of log-likelihoods: few, or kept on request."""
    return size <= MOST_VALUES or "log_likelihood" in keep


def _labels(study: Study) -> dict[str, Any]:
    """Return the labels of systems, questions and categories."""
    dataset = study.outcomes.dataset
    return {name: dataset[name].values for name in ("system", "question", "category")}


def _log_likelihood(
    study: Study, laws: Sequence[QuestionLaws], draws: int, keep: Sequence[str]
) -> Array | None:
    """Return log probabilities of the counts of questions, (draws, system, question).

    ArviZ refuses to smooth importance weights that are all equal. Where the log-likelihood of a
    question is the same in every draw, the draws therefore carry an even variation around it, of
    1e-11 from end to end: leave-one-out finds the constant, and a Pareto k far below zero.
    """
    counts = study.counts
    shape = draws, *counts.shape[:2]
    if not likelihood_kept(int(np.prod(shape)), keep):
        return None
    values = np.empty(shape)
    unlike = study.pooling == "none" and study.judges is None  # each with a prior of its own
    for system, (law, of_system) in enumerate(zip(laws, counts, strict=True)):
        for questions, moved in law.alike():
            states, state = of_system[questions], np.arange(len(questions))
            if not unlike:
                states, state = np.unique(states, axis=0, return_inverse=True)
            by_state = np.broadcast_to(moved.log_counts(states, system), (draws, len(states)))
            values[:, system, questions] = with_variation(by_state)[:, state.ravel()]
    return values


def with_variation(values: Array) -> Array:
    """Log-likelihoods (draws, ...), of which none is the same in every draw."""
    constant = values.min(axis=0) == values.max(axis=0)
    even = _VARIATION * (np.linspace(-0.5, 0.5, len(values)) if len(values) > 1 else np.zeros(1))
    size = np.where(constant & np.isfinite(values[0]), np.maximum(1.0, np.abs(values[0])), 0.0)
    return np.asarray(values + np.multiply.outer(even, size))


def replicated(study: Study, draws: int, keep: Sequence[str]) -> bool:
    """Whether a result has replicated counts: few of them, or kept on request."""
    size = draws * study.outcomes.dataset["count"].size // 2
    return size <= MOST_VALUES or "predictive" in keep


def _predictive_groups(
    study: Study,
    posterior: xr.Dataset,
    laws: Sequence[QuestionLaws],
    at: dict[str, Any],
    keep: Sequence[str],
    rng: Rng,
) -> dict[str, xr.Dataset]:
    """Return ``log_prior``, ``prior``, ``posterior_predictive`` and ``prior_predictive``."""
    results = {"log_prior": _log_prior(study, posterior, laws, at)}
    proper = not isinstance(study.prior, HyperPrior) or study.prior.proper
    priors = [
        QuestionLaws.of_prior(study, system, PRIOR_DRAWS, rng)
        for system in range(len(laws)) if proper
    ]  # fmt: skip
    prior_at = {"chain": [0], "draw": np.arange(PRIOR_DRAWS)}
    if priors:
        results["prior"] = _prior(study, posterior, priors, prior_at, rng)
    if replicated(study, len(at["chain"]) * len(at["draw"]), keep):
        results["posterior_predictive"] = _replicates(study, laws, at, rng)
        if priors:
            results["prior_predictive"] = _replicates(study, priors, prior_at, rng)
    return results


def _replicates(
    study: Study, laws: Sequence[QuestionLaws], at: dict[str, Any], rng: Rng
) -> xr.Dataset:
    """Draw counts of questions with the same trials, one set for every draw."""
    trials, scale = study.outcomes.trials.transpose("system", "question").values, study.scale
    drawn = [law.replicates(number, rng) for law, number in zip(laws, trials, strict=True)]
    values = {scale.variable: (("question", *scale.axes), np.stack(drawn, axis=1))}
    return draws_dataset(values, at, **_labels(study))


def _prior(
    study: Study, posterior: xr.Dataset, priors: Sequence[QuestionLaws], at: dict[str, Any],
    rng: Rng,
) -> xr.Dataset:  # fmt: skip
    """Draws from the prior, of variables that the posterior has."""
    scored = "group_mean" in posterior and "category" not in posterior["group_mean"].dims
    drawn = [law.variables(scored and bool(study.scale.axes)) for law in priors]
    variables = {
        name: (
            [str(dim) for dim in posterior[name].dims[len(DRAWS):]],
            np.stack([of_system[name] for of_system in drawn], axis=1),
        )
        for name in drawn[0] if name in posterior
    }  # fmt: skip
    labels = {str(name): label.values for name, label in posterior.coords.items()}
    dataset = draws_dataset(variables, at, **{**labels, **at})
    if study.pooling == "none":
        p = np.stack([law.p for law in priors if law.p is not None], axis=1)
        dataset = dataset.merge(_metrics_of_p(study, p, rng)).assign_attrs(SAMPLE)
    return dataset


def _log_prior(
    study: Study, posterior: xr.Dataset, laws: Sequence[QuestionLaws], at: dict[str, Any]
) -> xr.Dataset:
    """Log density of the prior at each draw, of logits; up to a constant where it is improper.

    On the logit scale, as in `bayesatk.priors.choice.power_scaled`: there a uniform prior is not
    constant, so that raising it to a power means something.
    """
    variables: dict[str, tuple[tuple[str, ...], Array]] = {}
    if study.pooling == "partial":
        columns = [_log_fields(study, law) for law in laws]
        mean = next(name for name in ("mean_p", "typical_p", "coefficients") if name in posterior)
        for field in columns[0]:
            name = {"mean": mean, "slopes": "coefficients"}.get(field, field)
            logs = np.stack([column[field] for column in columns], axis=1)
            variables[name] = ((), logs + variables[name][1] if name in variables else logs)
    else:
        unpooled = study.pooling == "none"
        logs = np.stack([
            _log_dirichlet(study.scale.vectors(p), concentration(study, system))
            for system, law in enumerate(laws)
            if (p := law.p if unpooled else law.mean) is not None
        ], axis=1)  # fmt: skip
        variables["p" if unpooled else "mean_p"] = (("question",) * unpooled, logs)
    return draws_dataset(variables, at, **_labels(study))


def _log_fields(study: Study, law: QuestionLaws) -> dict[str, Array]:
    """Log density of the coordinates of every field of the prior; (draws,).

    If several families are averaged, the log density of each has its prior expectation taken off.
    To first order in the power that the prior is raised to, which is how ArviZ measures
    sensitivity, families then keep their prior probabilities: the normalising constant of a
    density's power has that expectation as its slope.
    """
    families = list(study.prior.family_prior) if isinstance(study.prior, HyperPrior) else ["beta"]
    if len(families) == 1:
        return _by_field(declared_fields(study, families[0]), law, slice(None))
    assert law.family is not None
    densities: dict[str, Array] = {}
    for family in families:
        rows = np.flatnonzero(law.family == DIFFICULTY_FAMILIES.index(family))
        fields = declared_fields(study, family)
        logs = _by_field(fields, law, rows)
        for field in fields:
            column = densities.setdefault(field.name, np.zeros(len(law.family)))
            column[rows] = logs[field.name] - _expected_log_density(field)
    return densities


def _by_field(fields: Fields, law: QuestionLaws, rows: Indices | slice) -> dict[str, Array]:
    """Log density of the coordinates of every field at some of the draws."""
    values = {"slopes": law.slopes, "group_sd": law.group_sd, "shape": law.shape}
    if law.difficulty is None:
        values |= {"mean": law.mean, "icc": law.icc}
    else:
        parts, width = field_values(law.difficulty), 2 if fields.pairs else 1
        values |= parts | {name: parts[name][:, :width] for name in ("mean", "icc")}
    densities = {}
    for field in fields:
        drawn = values[field.name]
        assert drawn is not None
        logs = field.distribution.log_density(field.distribution.coordinates(drawn[rows]))
        densities[field.name] = logs.sum(axis=tuple(range(1, logs.ndim)))
    return densities


def _expected_log_density(field: Field) -> float:
    """Prior expectation of the log density; 0 of fields that all families have alike."""
    law = field.distribution
    if not isinstance(law, Beta | Dirichlet):
        return 0.0
    alpha = np.array((law.a, law.b) if isinstance(law, Beta) else law.concentration)
    total = alpha.sum()
    expected = alpha @ (digamma(alpha) - digamma(total)) - gammaln(alpha).sum() + gammaln(total)
    return field.repeats * float(expected)


def _log_dirichlet(p: Array, alpha: Array) -> Array:
    """Log density of logits of probabilities (draws, ..., category)."""
    constant = gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)
    return (np.log(np.maximum(p, _TINY)) * alpha).sum(axis=-1) + constant


def _metrics_of_p(study: Study, p: Array, rng: Rng) -> xr.Dataset:
    """Return the metrics that judge trials, of the same targets as in the posterior.

    Means over questions have the weights of these and of their groups. Questions like these are
    those that were tried, weighted by the Bayesian bootstrap within groups, and new groups are
    these groups, weighted in the same way.

    Parameters
    ----------
    study : Study
        Without pooling.
    p : ndarray, shape (draws, system, question, ...)
    rng : numpy.random.Generator
    """
    grid, outcomes = MetricGrid.of(study.judged), study.outcomes
    metrics = [study.scale.judged(metric) for metric in grid]
    shares = Shares.of(p.shape[2], outcomes.weight, study.grouping)
    values = np.stack([
        SystemMetrics(
            metrics, shares, partial(stored, p[:, system]), counts.any(axis=1), resampled=True
        ).draw(False, rng).whole
        for system, counts in enumerate(study.counts)
    ], axis=1)  # fmt: skip
    coords = {
        "chain": [0], "draw": np.arange(len(p)), "system": outcomes.dataset["system"].values,
        "target": list(GROUPED_TARGETS[: values.shape[-1]]),
    }  # fmt: skip
    return metric_dataset(grid, values[None], ("chain", "draw", "system"), ("target",), coords)
