"""`sample`: the metrics of `bayesatk.evaluate`, from NUTS."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.data.asked import Asked, read_asked
from bayesatk.data.outcomes import Outcomes
from bayesatk.metrics.category_credit import reachable
from bayesatk.metrics.grid import Metric, MetricGrid, MetricSpec
from bayesatk.models.builders import COMPONENTS, Form, build_beta_binomial
from bayesatk.models.categories import build_answers, build_dirichlet_multinomial
from bayesatk.models.logit_normal import build_crossed
from bayesatk.models.parts import answer_part, category_part, success_part
from bayesatk.prior_choice import describe_prior, resolve_crossed_prior
from bayesatk.priors import AnswerPrior, CategoryPrior, CrossedPrior, ModelPrior, Pooling
from bayesatk.results.citations import HOFFMAN
from bayesatk.results.likelihood import log_likelihood_groups
from bayesatk.results.predictive import predictive_groups
from bayesatk.results.schema import build, data_groups, posterior_group, root_attributes

_RECORDED = ("inference_library", "inference_library_version", "sampling_time")
_TEXT_STATISTICS = ("divergence_message",)  # object arrays: netCDF cannot give them back


def sample(
    data: object,
    metrics: MetricSpec,
    *,
    pooling: Pooling = "partial",
    prior: ModelPrior | None = None,
    success: str | None = None,
    prior_trials: object = None,
    prior_weight: float = 1.0,
    answer_prior: AnswerPrior | None = None,
    form: Form | None = None,
    ci_prob: float = 0.95,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    nuts_sampler: Literal["nutpie", "pymc", "numpyro", "blackjax"] = "nutpie",
    progressbar: bool = True,
    keep: Sequence[Literal["p", "log_likelihood", "predictive"]] = (),
    rng: RandomSource = None,
    sample_kwargs: Mapping[str, Any] | None = None,
) -> xr.DataTree:
    """Sample a PyMC model and return the metric variables of `bayesatk.evaluate`.

    Nothing of the closed forms is used: metrics are latent values on draws of p.

    Parameters
    ----------
    data, metrics, pooling, prior, success, ci_prob, keep, rng
        As in `bayesatk.evaluate`.
    prior_trials, prior_weight, answer_prior
        As in `bayesatk.evaluate`. Votes between answers get their own model, and a variable
        ``plurality_votes_at_k`` of votes simulated one by one.
    form : {"marginal", "full", "inflated", "crossed"}, optional
        Partial pooling only: integrate p out while sampling, and draw it afterwards from its
        conjugate conditional (default: minutes become seconds); or sample every p; or the first
        with questions beside the Beta that are never, or always, solved; or logit-normal
        difficulties correlated between systems (`bayesatk.models.build_crossed`, prior a
        `bayesatk.CrossedPrior`), whose draws `bayesatk.compare` takes as they are.
    draws, tune, chains : int
        Draws kept and tuning steps per chain, and chains.
    nuts_sampler : {"nutpie", "pymc", "numpyro", "blackjax"}
        Implementation of NUTS.
    progressbar : bool
        Show progress.
    sample_kwargs : mapping, optional
        More arguments for `pymc.sample`, such as ``{"cores": 1, "target_accept": 0.95}``.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (same variables, dims and coordinates as the closed form),
        ``sample_stats``, ``log_likelihood``, ``observed_data``, ``constant_data``.

    See Also
    --------
    bayesatk.models.build_beta_binomial : the model itself, to change.
    bayesatk.models.compile_beta_binomial : compile once, sample many data sets.
    bayesatk.models.metrics_from_draws : metrics of any model that has ``p``.
    bayesatk.evaluate : the exact counterpart, in less than a second.
    bayesatk.verify : compares the two.
    """
    form = form or default_form(pooling)
    if form not in ("marginal", "full", "inflated", "crossed"):
        raise ValueError(f"form must be 'marginal', 'full', 'inflated' or 'crossed'; got {form!r}.")
    crossed = resolve_crossed_prior(prior) if form == "crossed" else None
    asked = read_asked(
        data, metrics, pooling=pooling, prior=None if crossed else prior, success=success,
        prior_trials=prior_trials, prior_weight=prior_weight, answer_prior=answer_prior,
        ci_prob=ci_prob, keep=keep,
    )  # fmt: skip
    if crossed:
        _check_crossed(asked, keep)
    resolved = crossed or asked.prior
    generator, seed = resolve_rng(rng)
    options = {"cores": min(chains, 2), **(sample_kwargs or {})}

    def trace_of(model: pm.Model) -> xr.DataTree:
        trace: xr.DataTree = pm.sample(
            draws=draws, tune=tune, chains=chains, model=model, nuts_sampler=nuts_sampler,
            progressbar=progressbar, quiet=not progressbar,
            random_seed=int(generator.integers(2**31)), **options,
        )  # fmt: skip
        return trace

    settings = Settings(
        pooling, resolved, form, ci_prob, keep, seed,
        {"draws": draws, "tune": tune, "sampler": nuts_sampler},
        asked.answer_prior, asked.prior_counts,
    )  # fmt: skip
    traces = {name: trace_of(model) for name, model in _models(asked, form, resolved).items()}
    return result(
        asked.outcomes, asked.requested, traces.get("judged"), settings, generator,
        traces.get("voted"),
    )  # fmt: skip


def _models(asked: Asked, form: Form, prior: ModelPrior) -> dict[str, pm.Model]:
    """Return the models of marks or scores, and of votes, where metrics need them."""
    models = {}
    if len(asked.votes) < len(asked.requested):
        models["judged"] = _judged_model(asked, form, prior)
    if asked.votes:
        models["voted"] = build_answers(asked.outcomes, asked.answer_prior)
    return models


def _judged_model(asked: Asked, form: Form, prior: ModelPrior) -> pm.Model:
    outcomes = asked.outcomes
    if isinstance(prior, CrossedPrior):
        return build_crossed(outcomes, prior=prior)
    if isinstance(prior, CategoryPrior):
        return build_dirichlet_multinomial(
            outcomes, asked.pooling, prior=prior, prior_counts=asked.prior_counts, form=form
        )
    return build_beta_binomial(outcomes, asked.pooling, prior=prior, form=form)


def _check_crossed(asked: Asked, keep: Sequence[str]) -> None:
    """Refuse what the crossed model cannot give."""
    if asked.on_categories or asked.votes or asked.pooling != "partial":
        raise ValueError(
            "form='crossed' is a model of right and wrong under pooling='partial'; got "
            f"{[one.label for one in asked.requested]} with pooling={asked.pooling!r}. Leave "
            "pooling as it is; for scores, say what a success is: success='score >= ...'."
        )
    if set(keep) - {"p"}:
        raise ValueError(
            "keep must be empty or ['p'] for form='crossed', which has no closed likelihood of a "
            f"question; got {list(keep)}."
        )


def default_form(pooling: Pooling) -> Form:
    """Return the form of a model that mixes best for its cost."""
    return "marginal" if pooling == "partial" else "full"


@dataclass(frozen=True)
class Settings:
    """What a sampled result records about how it was made."""

    pooling: Pooling
    prior: ModelPrior
    form: Form
    ci_prob: float
    keep: Sequence[str]
    seed: str
    options: Mapping[str, Any]
    answer_prior: AnswerPrior = field(default_factory=AnswerPrior)
    prior_counts: NDArray[np.float64] | None = None


def result(
    outcomes: Outcomes,
    metrics: Sequence[Metric],
    trace: xr.DataTree | None,
    settings: Settings,
    rng: np.random.Generator,
    answers: xr.DataTree | None = None,
) -> xr.DataTree:
    """Metrics and hyperparameters of a trace, as the library's result tree.

    Coordinates are those of `outcomes`: a compiled model keeps those it was compiled with.
    """
    grid = MetricGrid.of(metrics)
    on_categories = isinstance(settings.prior, CategoryPrior)
    parts = []
    if trace is not None:
        source = trace["posterior"].to_dataset()
        keep_p = "p" in settings.keep
        if on_categories:
            part = category_part(outcomes, grid, source, keep_p, rng, settings.prior_counts)
        else:
            part = success_part(outcomes, grid, source, keep_p, rng)
        parts.append(part)
    if answers is not None:
        source = answers["posterior"].to_dataset()
        parts.append(answer_part(outcomes, grid, source, settings.answer_prior, rng))
    main = trace if trace is not None else answers
    assert main is not None
    values = np.concatenate([part.values for part in parts], axis=3)
    order = np.argsort(np.concatenate([part.index for part in parts]))
    source = main["posterior"].to_dataset()
    attrs = {name: source.attrs[name] for name in _RECORDED if name in source.attrs}
    group = posterior_group(
        grid, values[:, :, :, order], outcomes.dataset["system"].values,
        {name: pair for part in parts for name, pair in part.extra.items()},
        {"sampling": "nuts", "tuning_steps": settings.options["tune"], **attrs},
    )  # fmt: skip
    used = {dim for part in parts for dims, _ in part.extra.values() for dim in dims}
    labels = {name: outcomes.dataset[name].values for name in ("question", "category")}
    labels["component"] = np.array(COMPONENTS)
    labels["other"] = outcomes.dataset["system"].values
    labels["reached"] = labels["category"][reachable(outcomes.dataset["score"].values)]
    group = group.assign_coords({name: labels[name] for name in labels if name in used})
    statistics = {"sample_stats": main}
    if trace is not None and answers is not None:
        statistics["sample_stats_answers"] = answers
    return build(
        {
            "posterior": group,
            **{
                name: one["sample_stats"].to_dataset().drop_vars(_TEXT_STATISTICS, errors="ignore")
                for name, one in statistics.items()
            },
            **log_likelihood_groups(
                outcomes, group, settings.prior, settings.keep, settings.prior_counts
            ),
            **predictive_groups(outcomes, group, settings.prior, settings.keep, rng),
            **data_groups(outcomes, on_categories, answers is not None, settings.prior_counts),
        },
        _attributes(outcomes, metrics, settings, answers is not None),
    )


def _attributes(
    outcomes: Outcomes, metrics: Sequence[Metric], settings: Settings, voted: bool
) -> dict[str, Any]:
    """Return the provenance of a sampled result."""
    more = {"answer_prior": json.dumps(describe_prior(settings.answer_prior))} if voted else {}
    return root_attributes(
        method="nuts",
        pooling=settings.pooling,
        prior=describe_prior(settings.prior),
        seed=settings.seed,
        metrics=" ".join(metric.label for metric in metrics),
        data=outcomes,
        citations=(HOFFMAN,),
        ci_prob=float(settings.ci_prob),
        ci_kind="eti",
        model_form=settings.form,
        sample_options=json.dumps(dict(settings.options)),
        **more,
    )
