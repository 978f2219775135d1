"""`sample`: the metrics of `bayesatk.evaluate`, from NUTS."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray

from bayesatk.core.priors import Pooling, Prior, describe_prior, resolve_prior
from bayesatk.core.seeding import RandomSource, resolve_rng
from bayesatk.likelihood import log_likelihood_groups
from bayesatk.metrics import Metric, MetricGrid, MetricSpec, parse
from bayesatk.models.builders import Form, build_beta_binomial
from bayesatk.models.derived import difficulty_mean, draw_metrics
from bayesatk.outcomes import Outcomes, tally
from bayesatk.results import build, data_groups, posterior_group, root_attributes

_RECORDED = ("inference_library", "inference_library_version", "sampling_time")
_TEXT_STATISTICS = ("divergence_message",)  # object arrays: netCDF cannot give them back


def sample(
    data: object,
    metrics: MetricSpec,
    *,
    pooling: Pooling = "partial",
    prior: Prior | None = None,
    form: Form | None = None,
    ci_prob: float = 0.95,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    nuts_sampler: Literal["nutpie", "pymc", "numpyro", "blackjax"] = "nutpie",
    progressbar: bool = True,
    keep: Sequence[Literal["p", "log_likelihood"]] = (),
    rng: RandomSource = None,
    sample_kwargs: Mapping[str, Any] | None = None,
) -> xr.DataTree:
    """Sample a PyMC model and return the metric variables of `bayesatk.evaluate`.

    Nothing of the closed forms is used: metrics are latent values on draws of p.

    Parameters
    ----------
    data, metrics, pooling, prior, ci_prob, keep, rng
        As in `bayesatk.evaluate`.
    form : {"marginal", "full"}, optional
        Partial pooling only: integrate p out while sampling, and draw it afterwards from its
        conjugate conditional (default: minutes become seconds); or sample every p.
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
    bayesatk.build_beta_binomial : the model itself, to change.
    bayesatk.compile_beta_binomial : compile once, sample many data sets.
    bayesatk.metrics_from_draws : metrics of any model that has ``p``.
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    requested = parse(metrics)
    prior = resolve_prior(pooling, prior)
    form = form or default_form(pooling)
    generator, seed = resolve_rng(rng)
    model = build_beta_binomial(outcomes, pooling, prior=prior, form=form)
    options = {"cores": min(chains, 2), **(sample_kwargs or {})}
    trace = pm.sample(
        draws=draws, tune=tune, chains=chains, model=model, nuts_sampler=nuts_sampler,
        progressbar=progressbar, quiet=not progressbar,
        random_seed=int(generator.integers(2**31)), **options,
    )  # fmt: skip
    settings = Settings(
        pooling, prior, form, ci_prob, keep, seed,
        {"draws": draws, "tune": tune, "sampler": nuts_sampler},
    )  # fmt: skip
    return result(outcomes, requested, trace, settings, generator)


def default_form(pooling: Pooling) -> Form:
    """Return the form of a model that mixes best for its cost."""
    return "marginal" if pooling == "partial" else "full"


@dataclass(frozen=True)
class Settings:
    """What a sampled result records about how it was made."""

    pooling: Pooling
    prior: Prior
    form: Form
    ci_prob: float
    keep: Sequence[str]
    seed: str
    options: Mapping[str, Any]


def result(
    outcomes: Outcomes,
    metrics: Sequence[Metric],
    trace: xr.DataTree,
    settings: Settings,
    rng: np.random.Generator,
) -> xr.DataTree:
    """Metrics and hyperparameters of a trace, as the library's result tree.

    Coordinates are those of `outcomes`: a compiled model keeps those it was compiled with.
    """
    grid = MetricGrid.of(metrics)
    posterior = trace["posterior"].to_dataset()
    values, p = _metric_draws(outcomes, grid, posterior, "p" in settings.keep, rng)
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    dims = ("chain", "draw", "system")
    extra: dict[str, tuple[tuple[str, ...], NDArray[np.float64]]] = {
        name: (dims, posterior[name].transpose(*dims).values)
        for name in ("mean_p", "icc")
        if name in posterior
    }
    if p is not None:
        extra["p"] = ((*dims, "question"), p.reshape(*shape, *p.shape[1:]))
    attrs = {name: posterior.attrs[name] for name in _RECORDED if name in posterior.attrs}
    group = posterior_group(
        grid, values.reshape(*shape, *values.shape[1:]), outcomes.dataset["system"].values, extra,
        {"sampling": "nuts", "tuning_steps": settings.options["tune"], **attrs},
    )  # fmt: skip
    if p is not None:
        group = group.assign_coords(question=outcomes.dataset["question"])
    statistics = trace["sample_stats"].to_dataset()
    return build(
        {
            "posterior": group,
            "sample_stats": statistics.drop_vars(_TEXT_STATISTICS, errors="ignore"),
            **log_likelihood_groups(outcomes, group, settings.prior, settings.keep),
            **data_groups(outcomes),
        },
        root_attributes(
            method="nuts",
            pooling=settings.pooling,
            prior=describe_prior(settings.prior),
            seed=settings.seed,
            metrics=" ".join(metric.label for metric in metrics),
            data=outcomes,
            citations=("Hoffman and Gelman 2014, JMLR 15, 1593-1623 (NUTS)",),
            ci_prob=float(settings.ci_prob),
            ci_kind="eti",
            model_form=settings.form,
            sample_options=json.dumps(dict(settings.options)),
        ),
    )


def _metric_draws(
    outcomes: Outcomes,
    grid: MetricGrid,
    posterior: xr.Dataset,
    keep_p: bool,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Metrics (draws, system, metrics, target), and p (draws, system, question) when kept."""
    questions = outcomes.dataset.sizes["question"]
    values, kept = [], []
    for system in range(len(outcomes.systems)):
        if "p" in posterior:
            own = posterior["p"].isel(system=system).transpose("chain", "draw", "question")
            question_draws = partial(_stored, own.values.reshape(-1, questions))
        else:
            question_draws = partial(_Conjugate(outcomes, posterior, system).draw, rng=rng)
        if keep_p:
            all_p = question_draws(slice(None))
            kept.append(all_p)
            question_draws = partial(_stored, all_p)
        population = difficulty_mean(posterior, system)
        values.append(draw_metrics(grid, question_draws, questions, population, rng))
    return np.stack(values, axis=1), np.stack(kept, axis=1) if kept else None


def _stored(values: NDArray[np.float64], part: slice) -> NDArray[np.float64]:
    return values[:, part]


class _Conjugate:
    """Draws of p given the sampled hyperparameters: Beta, by conjugacy."""

    def __init__(self, outcomes: Outcomes, posterior: xr.Dataset, system: int) -> None:
        own = posterior[["mean_p", "icc"]].isel(system=system).transpose("chain", "draw")
        mean, icc = own["mean_p"].values.ravel(), own["icc"].values.ravel()
        concentration = (1.0 - icc) / icc
        self._alpha, self._beta = mean * concentration, (1.0 - mean) * concentration
        self._successes = outcomes.successes.values[system]
        self._trials = outcomes.trials.values[system]

    def draw(self, part: slice, rng: np.random.Generator) -> NDArray[np.float64]:
        c, n = self._successes[part], self._trials[part]
        return np.asarray(rng.beta(self._alpha[:, None] + c, self._beta[:, None] + (n - c)))
