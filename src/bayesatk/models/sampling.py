"""`sample`: the metrics of `bayesatk.evaluate`, from NUTS."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr

from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.data.study import Study, read_study
from bayesatk.metrics.category_credit import reachable
from bayesatk.metrics.grid import MetricGrid, MetricSpec
from bayesatk.models.averaging import Averaged, average
from bayesatk.models.building import Models, build_models
from bayesatk.models.forms import (
    Form,
    check_crossed,
    check_form,
    default_form,
    one_latent_family,
)
from bayesatk.models.parts import Part, answer_part, count_part
from bayesatk.models.programs import Sampler, Sampling, compiler_of
from bayesatk.models.structured_likelihood import structured_likelihood
from bayesatk.models.traces import mixing_notes
from bayesatk.models.votes import build_answers
from bayesatk.priors import (
    AnswerPrior,
    CrossedPrior,
    Families,
    HyperPrior,
    ModelPrior,
    Pooling,
)
from bayesatk.priors.choice import prior_of
from bayesatk.results.checking import MOST_LIKELIHOODS, checking_groups
from bayesatk.results.citations import HOFFMAN
from bayesatk.results.difficulty import (
    difficulty_group,
    flat_draws,
    has_difficulty_group,
    summary_variables,
)
from bayesatk.results.schema import (
    build,
    data_groups,
    group_draws,
    posterior_group,
    root_attributes,
)

_RECORDED = ("inference_library", "inference_library_version", "sampling_time")
_TEXT_STATISTICS = ("divergence_message",)  # object arrays: netCDF cannot give them back


def sample(
    data: object,
    metrics: MetricSpec,
    *,
    pooling: Pooling = "partial",
    prior: ModelPrior | None = None,
    difficulty: Families = None,
    success: str | None = None,
    judge: object = None,
    prior_trials: object = None,
    prior_weight: float = 1.0,
    answer_prior: AnswerPrior | None = None,
    covariates: str | Sequence[str] | None = None,
    group: object = None,
    group_weights: object = None,
    form: Form | None = None,
    ci_prob: float = 0.95,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    nuts_sampler: Sampler = "nutpie",
    progressbar: bool = True,
    keep: Sequence[Literal["p", "log_likelihood", "predictive"]] = (),
    rng: RandomSource = None,
    sample_kwargs: Mapping[str, Any] | None = None,
) -> xr.DataTree:
    """Sample a PyMC model and return the metric variables of `bayesatk.evaluate`.

    No closed form is used: metrics are computed from draws of p as expected credits of fresh
    trials.

    Parameters
    ----------
    data, metrics, pooling, prior, difficulty, success, ci_prob, keep, rng
        As in `bayesatk.evaluate`. Each difficulty family is sampled. Several are weighted by their
        posterior probabilities, with marginal likelihoods estimated from the draws by bridge
        sampling, and their draws are mixed.
    prior_trials, prior_weight, answer_prior, covariates, group, group_weights
        As in `bayesatk.evaluate`. Votes between answers get their own model, and a variable
        ``plurality_votes_at_k`` of votes simulated one by one.
    judge : JudgeError, mapping {system: JudgeError}, or table, optional
        As in `bayesatk.evaluate`. The rates of every judge are then sampled too. With a judge,
        groups or covariates there is one difficulty family at a time; default: ``"beta"``.
    form : {"marginal", "full", "crossed"}, optional
        Partial pooling only. ``"marginal"`` (default): integrate p out while sampling and draw it
        afterwards from its conjugate conditional distribution, which takes seconds instead of
        minutes. ``"full"``: sample every p; for the family ``"beta"`` alone. ``"crossed"``:
        logit-normal difficulties that are correlated between systems
        (`bayesatk.models.build_crossed`, with a `bayesatk.CrossedPrior`); `bayesatk.compare` uses
        its joint draws.
    draws, tune, chains : int
        Draws kept and tuning steps per chain, and chains.
    nuts_sampler : {"nutpie", "pymc", "numpyro", "blackjax"}
        Implementation of NUTS.
    progressbar : bool
        Show progress.
    sample_kwargs : mapping, optional
        More arguments for `nutpie.sample`, or for `pymc.sample` with another sampler, such as
        ``{"cores": 1, "target_accept": 0.95}``.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (same variables, dims and coordinates as the closed form),
        ``difficulty`` (as there), ``families`` (log evidence and posterior probability of each,
        with standard errors), ``sample_stats``, or ``sample_stats_FAMILY`` of several families,
        ``log_likelihood``, ``observed_data``, ``constant_data``. `bayesatk.notes` has a note where
        chains have not mixed, or more than one transition in a hundred diverged.

    See Also
    --------
    bayesatk.models.build : the model itself, to change.
    bayesatk.models.compile_beta_binomial : compile once, sample many data sets.
    bayesatk.models.metrics_from_draws : metrics of any model that has ``p``.
    bayesatk.evaluate : the exact counterpart, in less than a second.
    bayesatk.verify : compares the two.

    Notes
    -----
    Compiling takes seconds. With the default sampler the last programs are kept for other data with
    equal pooling, prior, form and sizes (of questions, only if every p is sampled), but not those
    of votes, or with prior trials, covariates, groups or a judge.

    Examples
    --------
    Five of six trials are right; of one p with a uniform prior the posterior is Beta(6, 2), whose
    mean is 0.75.

    >>> import bayesatk
    >>> marks = [[1, 0, 1], [1, 1, 1]]
    >>> options = {"pooling": "complete", "chains": 2, "progressbar": False}
    >>> sampled = bayesatk.sample(marks, "pass@1", **options, rng=1)
    >>> bool(abs(sampled["posterior"]["pass_at_k"].mean() - 0.75) < 0.03)
    True
    """
    form = form or default_form(pooling)
    check_form(form, difficulty, judge, covariates, group)
    crossed = prior_of(CrossedPrior, prior, "for form='crossed'") if form == "crossed" else None
    study = read_study(
        data, metrics, pooling=pooling, prior=None if crossed else prior, difficulty=difficulty,
        success=success, prior_trials=prior_trials, prior_weight=prior_weight,
        answer_prior=answer_prior, ci_prob=ci_prob, keep=keep, covariates=covariates, group=group,
        group_weights=group_weights, judge=judge, combined=True,
    )  # fmt: skip
    if crossed:
        check_crossed(study, keep)
    by_default = prior is None and difficulty is None
    alone = any(value is not None for value in (study.judges, study.design, study.grouping))
    resolved = crossed or one_latent_family(study.prior, form, by_default, alone)
    study = replace(study, prior=resolved)
    generator, seed = resolve_rng(rng)
    how = Sampling(draws, tune, chains, nuts_sampler, progressbar, sample_kwargs or {})
    models, traces, voted = _models(study, form), {}, None
    for name, model in models.items():
        seed_of = int(generator.integers(2**31))
        traces[name] = how.run(model, seed_of, compiler_of(study, form, name))
    if study.votes:
        votes = build_answers(study.outcomes, study.answer_prior)
        voted = how.run(votes, int(generator.integers(2**31)))
    run = Run(form, keep, seed, how)
    return result(study, run, traces, generator, voted, models)


def _models(study: Study, form: Form) -> Models:
    """Models of counts, by difficulty family; none where votes alone were asked for."""
    return build_models(study, form) if study.judged else {}


@dataclass(frozen=True)
class Run:
    """How a result was sampled, beside its study.

    Parameters
    ----------
    form : Form
    keep : sequence of str
        As of `sample`.
    seed : str
    how : Sampling
    """

    form: Form
    keep: Sequence[str]
    seed: str
    how: Sampling


def result(
    study: Study,
    run: Run,
    traces: Mapping[str, xr.DataTree],
    rng: np.random.Generator,
    answers: xr.DataTree | None = None,
    models: Models | None = None,
) -> xr.DataTree:
    """Metrics and hyperparameters of traces, as the library's result tree.

    Coordinates are those of the outcomes: a compiled model keeps those it was compiled with.

    Parameters
    ----------
    study : Study
        With the prior of the model.
    run : Run
    traces : mapping {family: xarray.DataTree}
        Of the model of marks or scores, or of its difficulty families.
    rng : numpy.random.Generator
    answers : xarray.DataTree, optional
        Of the model of votes.
    models : mapping {family: pymc.Model}, optional
        Of several families, with the data: for their evidence.
    """
    outcomes, grid = study.outcomes, study.grid
    main = next(iter(traces.values()), answers)
    assert main is not None
    source = main["posterior"].to_dataset()
    keep_p = "p" in run.keep
    averaged = None
    if traces and isinstance(study.prior, HyperPrior):
        systems = outcomes.dataset["system"].values
        averaged = average(traces, models or {}, study.prior, systems, rng)
    difficulties = averaged.difficulties if averaged else None
    parts, of_groups = [], None
    if traces:
        parts.append(count_part(study, grid, source, keep_p, rng, difficulties))
        of_groups = parts[0].by_group
    if answers is not None:
        voted = answers["posterior"].to_dataset()
        parts.append(answer_part(outcomes, grid, voted, study.answer_prior, rng))
    group = _posterior(study, run, grid, parts, source, averaged)
    groups = {"posterior": group, **_difficulty_groups(group, study.prior, averaged)}
    if study.grouping is not None and of_groups is not None:
        groups["group_posterior"] = group_draws(grid, study.grouping.labels, of_groups, group)
    statistics = _statistics(traces, answers)
    notes = mixing_notes(group, statistics.values())
    groups |= statistics
    likelihood, p = None, None
    structured = study.grouping is not None or study.design is not None
    size = group.sizes["chain"] * group.sizes["draw"] * outcomes.trials.size
    if study.pooling == "none" and traces:
        p = flat_draws(source["p"])
    elif study.pooling == "partial" and structured:
        if size <= MOST_LIKELIHOODS or "log_likelihood" in run.keep:
            likelihood = structured_likelihood(study, source, difficulties)
    groups |= checking_groups(study, groups, run.keep, rng, likelihood, p)
    return build(groups | data_groups(study), _attributes(study, run, notes))


def _posterior(
    study: Study,
    run: Run,
    grid: MetricGrid,
    parts: Sequence[Part],
    source: xr.Dataset,
    averaged: Averaged | None,
) -> xr.Dataset:
    """Return the ``posterior`` group."""
    outcomes = study.outcomes
    values = np.concatenate([part.values for part in parts], axis=3)
    order = np.argsort(np.concatenate([part.index for part in parts]))
    extra = {name: pair for part in parts for name, pair in part.extra.items()}
    if averaged and isinstance(study.prior, HyperPrior):
        shape = values.shape[:3]
        summaries = summary_variables(averaged.difficulties, study.prior)
        if study.grouping is not None or study.design is not None:
            del summaries["mean_p"]  # of questions without an offset
        for name, own in summaries.items():
            extra[name] = (("chain", "draw", "system"), own.reshape(shape))
    attrs = {name: source.attrs[name] for name in _RECORDED if name in source.attrs}
    group = posterior_group(
        grid, values[:, :, :, order], outcomes.dataset["system"].values, extra,
        {"sampling": "nuts", "tuning_steps": run.how.tune, **attrs},
    )  # fmt: skip
    used = {dim for dims, _ in extra.values() for dim in dims}
    labels = {name: outcomes.dataset[name].values for name in ("question", "category")}
    if study.grouping is not None:
        labels["group"] = np.array(study.grouping.labels)
    labels["other"] = outcomes.dataset["system"].values
    if study.design is not None:
        labels["coefficient"] = np.array(study.design.coefficients, object)
    labels["reached"] = labels["category"][reachable(outcomes.dataset["score"].values)]
    return group.assign_coords({name: labels[name] for name in labels if name in used})


def _difficulty_groups(
    posterior: xr.Dataset, prior: ModelPrior, averaged: Averaged | None
) -> dict[str, xr.Dataset]:
    """Return ``difficulty``, unless of single Betas, and ``families`` of several."""
    groups = {}
    if averaged and has_difficulty_group(prior):
        groups["difficulty"] = difficulty_group(averaged.difficulties, averaged.family, posterior)
        if averaged.table is not None:
            groups["families"] = averaged.table
    return groups


def _statistics(
    traces: Mapping[str, xr.DataTree], answers: xr.DataTree | None
) -> dict[str, xr.Dataset]:
    """Return the sampler's own statistics of every model."""
    several = len(traces) > 1
    found = {"sample_stats" + f"_{name}" * several: one for name, one in traces.items()}
    if answers is not None:
        found["sample_stats_answers" if traces else "sample_stats"] = answers
    return {
        name: one["sample_stats"].to_dataset().drop_vars(_TEXT_STATISTICS, errors="ignore")
        for name, one in found.items()
    }


def _attributes(study: Study, run: Run, notes: list[str]) -> dict[str, Any]:
    """Return the provenance of a sampled result."""
    options = {"draws": run.how.draws, "tune": run.how.tune, "sampler": run.how.sampler}
    return root_attributes(
        "nuts", study.as_text(), run.seed, study.outcomes, (HOFFMAN,), model_form=run.form,
        sample_options=json.dumps(options), notes=json.dumps(notes),
    )  # fmt: skip
