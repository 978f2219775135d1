"""`sample`: the metrics of `bayesatk.evaluate`, from NUTS.

What nutpie compiled is kept: compiling takes longer than sampling. A program is always run with the
data of the model at hand, and never changed: one is right for all models of its structure, in any
thread.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from time import perf_counter
from typing import Any, Literal

import numpy as np
import nutpie
import pymc as pm
import xarray as xr

from bayesatk._tools.arrays import Rng
from bayesatk._tools.messages import ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.data.study import Study, read_study
from bayesatk.metrics.grid import MetricSpec
from bayesatk.models.evidence import Averaged, average
from bayesatk.models.metric_draws import CountDraws, count_draws, posterior_dataset
from bayesatk.models.mixing import mixing_notes
from bayesatk.models.pooled_votes import pooled_vote_draws
from bayesatk.models.predictive import Predictive
from bayesatk.models.program import build_models, sampled_families
from bayesatk.models.votes import answer_draws, build_answers
from bayesatk.priors import (
    DIFFICULTY_FAMILIES,
    AnswerPrior,
    Families,
    HyperPrior,
    ModelPrior,
    Pooling,
    Population,
    VotePrior,
)
from bayesatk.results.citations import HOFFMAN
from bayesatk.results.difficulty_draws import difficulty_group, has_difficulty_group
from bayesatk.results.schema import (
    SAMPLE,
    data_groups,
    group_draws_dataset,
    result_tree,
    root_attributes,
)

Compile = Callable[[pm.Model], Any]
_CACHE_SIZE = 12  # compiled programs, of some 10 MB each
_RESERVED_OPTIONS = (
    "blocking", "chains", "draws", "progress_bar", "return_raw_trace", "save_warmup", "seed",
    "tune",
)  # fmt: skip
_TEXT_STATISTICS = ("divergence_message",)  # object arrays: netCDF cannot give them back


@dataclass(frozen=True)
class Sampling:
    """How long and with what a model is sampled.

    Parameters
    ----------
    draws, tune, chains : int
        Draws kept and tuning steps per chain, and chains.
    progressbar : bool
        Show progress.
    options : mapping
        More arguments for `nutpie.sample`.
    """

    draws: int
    tune: int
    chains: int
    progressbar: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = sorted(set(self.options) & set(_RESERVED_OPTIONS))
        if taken:
            raise ArgumentError(
                "sample_kwargs",
                " must hold arguments of nutpie.sample other than "
                f"{', '.join(_RESERVED_OPTIONS)}; got {', '.join(taken)}. Leave them out: draws, "
                "tune, chains, rng and progress are arguments beside sample_kwargs.",
            )

    def described(self) -> str:
        """Return the options as JSON, for the attributes of a result."""
        return json.dumps({"draws": self.draws, "tune": self.tune, "sampler": "nutpie"})

    def run(self, model: pm.Model, seed: int, compiled: Compile | None = None) -> xr.DataTree:
        """Sample the posterior of the data that a model holds.

        Parameters
        ----------
        model : pymc.Model
        seed : int
        compiled : callable, optional
            ``compiled(model)`` is the program of nutpie with these data. Default: made here.
        """
        options = {"cores": min(self.chains, 2), **self.options}
        program = (compiled or nutpie.compile_pymc_model)(model)
        start = perf_counter()
        trace: xr.DataTree = nutpie.sample(
            program,
            draws=self.draws,
            tune=max(1, self.tune),
            chains=self.chains,
            seed=seed,
            progress_bar=self.progressbar,
            save_warmup=False,
            **options,
        )
        if trace["posterior"].sizes["draw"] < self.draws:  # nutpie gives what there was
            raise KeyboardInterrupt
        # A program that was kept labels its draws by the data that it was compiled with.
        drawn = trace["posterior"].to_dataset()
        labels = {dim: list(model.coords[str(dim)]) for dim in drawn.dims if dim in model.coords}
        trace["posterior"] = xr.DataTree(drawn.assign_coords(labels))
        trace["posterior"].attrs |= {
            "inference_library": "nutpie",
            "inference_library_version": nutpie.__version__,
            "sampling_time": perf_counter() - start,
        }
        return trace


def with_data_of(program: Any, model: pm.Model) -> Any:
    """Return a program of nutpie with the data of a model of the same structure."""
    return program.with_data(**{data.name: data.get_value() for data in model.data_vars})


def compiler_of(study: Study, family: str) -> Compile | None:
    """Return what compiles the model of a difficulty family, or takes a program that was kept.

    Parameters
    ----------
    study : Study
    family : str
        Empty where the prior has no families.

    Returns
    -------
    callable or None
        None of models that hold numbers of the case at hand besides data in containers, or that are
        of too many shapes to come again: with prior trials, covariates, groups or a judge.
    """
    special = study.grouping, study.prior_counts, study.design, study.judges
    if any(feature is not None for feature in special):
        return None
    prior, sizes = study.prior, study.outcomes.dataset.sizes
    if isinstance(prior, HyperPrior) and family:
        prior = prior.of_family(family)
    shape: list[Hashable] = [sizes["system"], sizes["category"]]
    if study.scale.axes and isinstance(prior, HyperPrior):  # a base is summed over a fixed grid
        shape += [study.scale.scores, int(study.outcomes.trials.max())]
    if study.pooling != "partial":
        shape.append(sizes["question"])
    structure = type(study.scale), study.pooling, prior, *shape
    return partial(_program, structure)


def _program(structure: Hashable, model: pm.Model) -> Any:
    return with_data_of(_compiled(_Template(structure, model)), model)


@dataclass(frozen=True)
class _Template:
    """A model, equal to all others of its structure."""

    structure: Hashable
    model: pm.Model = field(compare=False)


@lru_cache(maxsize=_CACHE_SIZE)
def _compiled(template: _Template) -> Any:
    return nutpie.compile_pymc_model(template.model)


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
    answer_prior: VotePrior | None = None,
    covariates: object = None,
    group: object = None,
    group_weights: object = None,
    population: Population | None = None,
    ci_prob: float = 0.95,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    progress: bool = True,
    keep: Sequence[Literal["p", "log_likelihood", "predictive"]] = (),
    rng: RandomSource = None,
    sample_kwargs: Mapping[str, Any] | None = None,
) -> xr.DataTree:
    """Sample a PyMC model and return the metric variables of `bayesatk.evaluate`.

    No closed form is used: metrics are computed from draws of p as expected credits of fresh
    trials. Under partial pooling NUTS samples hyperparameters, and p is drawn afterwards from its
    distribution given these and the trials of the question.

    Parameters
    ----------
    data, metrics, pooling, prior, difficulty, success, ci_prob, keep, rng
        As in `bayesatk.evaluate`. Each difficulty family is sampled. Several are weighted by their
        posterior probabilities, with marginal likelihoods estimated from the draws by bridge
        sampling, and their draws are mixed.
    prior_trials, prior_weight, answer_prior, covariates, group, group_weights, population
        As in `bayesatk.evaluate`, but the weight of prior trials must be a number. Votes between
        answers get their own model, and a variable ``plurality_votes_at_k`` of votes simulated one
        by one.
    judge : JudgeError, mapping {system: JudgeError}, table or path, optional
        As in `bayesatk.evaluate`. Error rates are then sampled, too. With a judge,
        groups or covariates there is one difficulty family at a time; default: ``"beta"``.
    draws, tune, chains : int
        Draws kept and tuning steps per chain, and chains.
    progress : bool
        Show progress.
    sample_kwargs : mapping, optional
        More arguments for `nutpie.sample`, such as ``{"cores": 1, "target_accept": 0.95}``. For
        another sampler: `bayesatk.models.build`, and `bayesatk.from_draws`.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (same variables, dims and coordinates as the closed form),
        ``difficulty`` (as there), ``families`` (log evidence and posterior probability of each,
        with standard errors), ``sample_stats``, and ``sample_stats_FAMILY`` of several families,
        ``log_likelihood``, ``observed_data``, ``constant_data``. ``fit.notes`` has a note where
        chains have not mixed, or more than one transition in a hundred diverged.

    See Also
    --------
    bayesatk.models.build : the model itself, to change.
    bayesatk.from_draws : a result of the draws of any other model.
    bayesatk.evaluate : the exact counterpart, in less than a second.
    bayesatk.verify : compares the two.

    Notes
    -----
    Compiling takes seconds. The last programs are kept for other data with
    equal pooling, prior and sizes (of questions, only without pooling), but not those
    of votes, or with prior trials, covariates, groups or a judge.

    Examples
    --------
    Five of six trials are right; of one p with a uniform prior the posterior is Beta(6, 2), whose
    mean is 0.75.

    >>> import bayesatk
    >>> marks = [[1, 0, 1], [1, 1, 1]]
    >>> options = {"pooling": "complete", "chains": 2, "progress": False}
    >>> sampled = bayesatk.sample(marks, "pass@1", **options, rng=1)
    >>> bool(abs(sampled["posterior"]["pass_at_k"].mean() - 0.75) < 0.03)
    True
    """
    study = read_study(
        data,
        metrics,
        pooling=pooling,
        prior=prior,
        difficulty=difficulty,
        success=success,
        prior_trials=prior_trials,
        prior_weight=prior_weight,
        answer_prior=answer_prior,
        ci_prob=ci_prob,
        keep=keep,
        covariates=covariates,
        group=group,
        group_weights=group_weights,
        population=population,
        judge=judge,
    )
    by_default = prior is None and difficulty is None
    study = sampled_families(study, by_default)
    how = Sampling(draws, tune, chains, progress, sample_kwargs or {})
    return sampled_result(study, how, rng, keep)


def sampled_result(
    study: Study, how: Sampling, rng: RandomSource, keep: Sequence[str]
) -> xr.DataTree:
    """Sample the models of a study and return the library's result tree.

    Parameters
    ----------
    study : Study
        With the prior of the model.
    how : Sampling
    rng : int, numpy.random.Generator or None
    keep : sequence of str
        Optional contents of the result, as `bayesatk.sample` takes them.
    """
    generator, seed = resolve_rng(rng)
    models = build_models(study) if study.judged else {}
    counts, averaged, traces = _drawn(study, models, how, generator, "p" in keep)
    first = next(iter(traces.values()))["posterior"].to_dataset()
    posterior = posterior_dataset(study, counts, first, sampling="nuts", tuning_steps=how.tune)
    statistics = sampler_statistics(traces)
    groups = {"posterior": posterior, **_more_groups(study, posterior, averaged, counts)}
    groups |= Predictive(study, models, traces, averaged, posterior, keep, generator).groups()
    notes = json.dumps([*study.notes, *mixing_notes(posterior, statistics.values())])
    if averaged is not None and averaged.table is not None:
        statistics["sample_stats"] = _divergences_taken(averaged, traces)
    attributes = root_attributes(
        "nuts",
        study.as_text(),
        seed,
        study.outcomes,
        (HOFFMAN,),
        sample_options=how.described(),
        notes=notes,
    )
    return result_tree(groups | statistics | data_groups(study), attributes)


def _drawn(
    study: Study, models: Mapping[str, pm.Model], how: Sampling, generator: Rng, keep_p: bool
) -> tuple[CountDraws, Averaged | None, dict[str, xr.DataTree]]:
    """Sample all models of a study: draws of metrics, families averaged, and traces by name."""

    def run(model: pm.Model) -> xr.DataTree:
        return how.run(model, int(generator.integers(2**31)))

    traces = {
        family: how.run(model, int(generator.integers(2**31)), compiler_of(study, family))
        for family, model in models.items()
    }
    posteriors = {family: trace["posterior"].to_dataset() for family, trace in traces.items()}
    parts: list[tuple[list[int], CountDraws]] = []
    averaged: Averaged | None = None
    if study.votes:
        votes, averaged, vote_traces = _sampled_votes(study, run, generator)
        parts.append((list(study.grid.voted), votes))
        traces |= vote_traces
    if posteriors:
        if isinstance(study.prior, HyperPrior):
            averaged = average(study, posteriors, generator)
        difficulties = averaged.difficulties if averaged else None
        source = next(iter(posteriors.values()))
        counts = count_draws(study, source, keep_p, generator, difficulties)
        parts.append((list(study.grid.judged), counts))
    return _joined(parts), averaged, traces


def _sampled_votes(
    study: Study, run: Callable[[pm.Model], xr.DataTree], generator: Rng
) -> tuple[CountDraws, Any, dict[str, xr.DataTree]]:
    """Return draws of votes between answers, the average of their families, and traces by name."""
    if study.pooling == "partial":
        return pooled_vote_draws(study, run, generator)
    assert isinstance(study.answer_prior, AnswerPrior)
    trace = run(build_answers(study.outcomes, study.answer_prior))
    ks = [metric.k for metric in study.grid.voted.values()]
    answers = trace["posterior"].to_dataset()
    counts = answer_draws(study.outcomes, study.answer_prior, ks, answers, generator)
    return counts, None, {"answers": trace}


def _joined(parts: Sequence[tuple[list[int], CountDraws]]) -> CountDraws:
    """Put draws of metrics in the order of the grid, of which each part has some cells."""
    order = np.argsort(np.concatenate([cells for cells, _ in parts]))
    draws = [counts for _, counts in parts]
    values = np.concatenate([counts.values for counts in draws], axis=3)[:, :, :, order]
    grouped = [counts.by_group for counts in draws if counts.by_group is not None]
    by_group = np.concatenate(grouped, axis=3)[:, :, :, order] if grouped else None
    variables: dict[str, Any] = {}
    for counts in draws:
        variables |= counts.variables
    return CountDraws(values, variables, by_group)


def _more_groups(
    study: Study, posterior: xr.Dataset, averaged: Averaged | None, counts: CountDraws
) -> dict[str, xr.Dataset]:
    """Return ``difficulty``, unless of single Betas, ``families`` of several, and of groups."""
    groups = {}
    if averaged is not None and has_difficulty_group(study.prior, bool(study.scale.axes)):
        groups["difficulty"] = difficulty_group(averaged.difficulties, averaged.family, posterior)
        if averaged.table is not None:
            groups["families"] = averaged.table
    if study.grouping is not None and counts.by_group is not None:
        labels = study.grouping.labels
        groups["group_posterior"] = group_draws_dataset(
            study.grid, labels, counts.by_group, posterior
        )
    return groups


def _divergences_taken(averaged: Averaged, traces: Mapping[str, xr.DataTree]) -> xr.Dataset:
    """Return whether each draw taken, for any system, is of a divergent transition."""
    by_family = {name: trace for name, trace in traces.items() if name in DIFFICULTY_FAMILIES}
    if not by_family:  # of votes alone
        by_family = {name.removeprefix("votes_"): trace for name, trace in traces.items()}
    diverged = np.False_
    for number, name in enumerate(DIFFICULTY_FAMILIES):
        if name in by_family:
            diverging = by_family[name]["sample_stats"]["diverging"]
            is_taken = (averaged.family == number).any(axis=1).reshape(diverging.shape)
            diverged = diverged | (diverging & is_taken)
    return xr.Dataset({"diverging": diverged}, attrs=SAMPLE)


def sampler_statistics(traces: Mapping[str, xr.DataTree]) -> dict[str, xr.Dataset]:
    """Return the sampler's own statistics of every model."""
    several = len(traces) > 1
    return {
        "sample_stats" + f"_{name}" * bool(several and name): trace["sample_stats"]
        .to_dataset()
        .drop_vars(_TEXT_STATISTICS, errors="ignore")
        for name, trace in traces.items()
    }
