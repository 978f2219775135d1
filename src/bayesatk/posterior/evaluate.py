"""`evaluate`: exact posterior of every metric, for both targets, as InferenceData."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array
from bayesatk._tools.batches import in_batches
from bayesatk._tools.messages import whole_number
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk.data.study import Study, read_study
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.category_credit import reachable
from bayesatk.metrics.grid import Metric, MetricGrid, MetricSpec, without_costs
from bayesatk.posterior.analysis import Checks, Evaluated, evaluate_system
from bayesatk.posterior.costs import add_costs, check_costs
from bayesatk.posterior.joint import joint_groups
from bayesatk.posterior.posterior import Draws, least
from bayesatk.posterior.remarks import partly_observed_notes
from bayesatk.priors import (
    DIFFICULTY_FAMILIES,
    CategoryPrior,
    Families,
    Pooling,
    Population,
    Prior,
    VotePrior,
)
from bayesatk.results.checking import PRIOR_DRAWS, UNIT, stored_counts, with_variation
from bayesatk.results.citations import GELMAN_CARPENTER, POWER_PRIOR, RUBIN
from bayesatk.results.difficulty_draws import difficulty_group
from bayesatk.results.schema import (
    CHAINS,
    DRAWS,
    GROUPED_TARGETS,
    QUANTILE_LEVELS,
    STATISTICS,
    data_groups,
    draws_dataset,
    group_results,
    labelled,
    metric_dataset,
    posterior_group,
    result_tree,
    root_attributes,
)

Keep = Literal["p", "log_likelihood", "predictive"]


@one_thread()
@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def evaluate(
    data: object,
    metrics: MetricSpec,
    *,
    pooling: Pooling = "partial",
    prior: Prior | CategoryPrior | None = None,
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
    ci_kind: Literal["eti", "hdi"] = "eti",
    draws: int = 1000,
    keep: Sequence[Keep] = (),
    rng: RandomSource = None,
    progress: bool | None = None,
    client: Any = None,
) -> xr.DataTree:
    """Compute the exact posterior of metrics, for "these questions" and for "questions like these".

    All statistics are of the posterior: given the observed trials, over the unknown success
    probabilities of the questions and, for questions like these, over which questions are drawn.
    Metrics of right and wrong are probabilities, in [0, 1]; mean and best scores have the units of
    the scores.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Outcomes of repeated trials; trials may differ between questions and systems.
    metrics : str, Metric, or iterable of them
        As in ``["pass@1,4", "pass^4", "maj@5", "g-pass@8:0.5", "mean"]``. Every variable is
        computed at the union of all ``k``; `bayesatk.table` shows the metrics as they were named.
        For scored categories: ``"mean"`` (mean score), ``"max@4"`` and ``"min@4"`` (highest and
        lowest score of k); for answers: ``"plurality@5"``. For data with costs: ``"cost"`` (mean
        cost of a trial) and ``"cost/success"``; where these stand alone, the result has the mean
        score, too, and tables leave it out.
    pooling : {"partial", "none", "complete"}
        ``"partial"``: success probabilities of questions come from one difficulty distribution per
        system, whose mean and intraclass correlation are integrated out. ``"none"``: an
        independent prior for every question. ``"complete"``: all questions of a system have the
        same success probability.
    prior : HyperPrior (partial) or BetaPrior (none, complete), optional
        Default: uniform. For scored categories `HyperPrior`, of levels in the order of their
        scores, or `DirichletHyperPrior`, of categories without order; `DirichletPrior` (none,
        complete).
    difficulty : str, sequence of str, or mapping {family: prior probability}, optional
        Families of the difficulty distribution under partial pooling: of success probabilities, or
        of the expected scores of questions. One or several of
        ``"beta"``, ``"inflated"`` (a share of the questions is never or always solved),
        ``"mixture"`` (two Betas), several of them, or ``"averaged"`` (all three, the default).
        Several families are weighted by their posterior probabilities. See `HyperPrior`.
    success : str, optional
        Rule that says which scores count as a success, such as ``"score >= 0.5"``, for metrics of
        right and wrong on data with other scores.
    judge : JudgeError, mapping {system: JudgeError}, table or path, optional
        Error rates of the judge that marked the trials, from a calibration set of other trials with
        known truth. Every posterior is then of true success, corrected for these errors;
        ``estimate`` remains that of the marks as they are. Each system has error rates of its own.
        One `JudgeError` is the calibration set of all systems, a mapping has one for each. A table,
        or a file of it (.csv), has a row for each trial of the calibration set: columns ``mark``,
        ``truth`` and, for sets of each system, ``system``. Where the truth of some trials of the
        data is known (``truth=`` of `bayesatk.tally`), nothing is needed: these tell the error
        rates. At most 256 trials of a question, except under complete pooling.
    prior_trials : Outcomes or anything `bayesatk.tally` accepts, optional
        Earlier trials of the same questions by the same systems. They enter the posterior but not
        ``estimate``. With marks of a judge the default difficulty is ``"beta"``.
    prior_weight : float
        Weight of a prior trial relative to a new trial, in [0, 1]: a power prior (Ibrahim and Chen
        2000). With 0 there are none.
    answer_prior : AnswerHyperPrior or AnswerPrior, optional
        Prior of the answers to a question, for ``plurality@k``: of how often wrong ones agree under
        partial pooling, and of their probabilities without pooling.
    group : str, sequence, mapping or False, optional
        Group of every question, such as its domain, in any form that `bayesatk.tally` takes, or
        the name of a covariate. Default: the groups that were named when the data were read, as in
        ``load(path, group="domain")``; False: none. The result then also has every group by itself,
        and a third target, ``"new_groups"``: see the notes.
    group_weights : {"questions", "equal"} or mapping {group: weight}, optional
        Weight of each group in the mean over all questions: its number of questions (the
        default), the same for all groups (a macro average), or as given. A single group is none.
    population : {"law", "bootstrap"}, optional
        What questions like these are. ``"law"``: new questions from the fitted law of difficulty,
        which has no weights of questions: they count in the mean over these questions alone. With
        `group`, of these groups with their weights; with `covariates`, with the covariates and
        weights of these. ``"bootstrap"``: these questions drawn anew with their weights, by the
        Bayesian bootstrap, within groups if there are any, and new groups are these groups drawn
        anew. Default: the law; without pooling, which fits none, and
        for questions with weights (without `covariates`) the bootstrap.
    covariates : str, sequence of str, or mapping, optional
        On what the success probability of a question depends: names of columns of the questions, or
        values by name, in any form that `bayesatk.tally` takes. Default: nothing, also where the
        data have covariates, which a note then names; ``[]`` is the same without the note.
        Numbers are taken as they are: transform your own columns, such as the logarithm of a
        duration. A text has an effect for each category. `bayesatk.predict` and
        `bayesatk.decide.horizon` then give results for chosen values of the covariates.
    ci_prob : float
        Probability of the credible interval, strictly between 0 and 1.
    ci_kind : {"eti", "hdi"}
        Equal-tailed or highest-density interval.
    draws : int
        Independent draws per chain, in 4 chains, because ArviZ expects chains.
    keep : sequence of {"p", "log_likelihood", "predictive"}
        What to store whatever its size. ``"p"``: draws of the success probability of every
        question. ``"log_likelihood"``: the pointwise log-likelihood. ``"predictive"``: replicated
        counts. The last two are stored by default up to 10^6 values: 250 pairs of question and
        system at the default number of draws.
    rng : int, numpy.random.Generator or None
        Seed of the draws. Estimates, means and sds of right/wrong data do not depend on it, and
        neither do their intervals; but intervals do of scored categories, groups, marks of a judge
        that errs, and of the population by the Bayesian bootstrap; of votes sds do, too.
    progress : bool, optional
        Show a progress bar over systems. Default: after two seconds, if the output is a terminal.
    client : dask.distributed.Client, optional
        Evaluate each system as a task of this cluster. Results agree with those of a local run to
        rounding, which depends on the number of threads of matrix products.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (draws, dims ``chain, draw, system, [k], [tau], target``),
        ``closed_form`` (exact statistics, dims ``system, [k], [tau], target, statistic``),
        ``closed_form_quantiles``, ``log_likelihood`` (by question, with p integrated out),
        ``posterior_predictive``, ``prior_predictive``, ``prior`` and ``log_prior`` (for ArviZ's
        checks), ``observed_data``, ``constant_data``.

    Raises
    ------
    OutcomeError
        If the data cannot be read, or do not have what a metric judges.
    ValueError
        If an option is outside its range, or (partial) the posterior is improper.

    Notes
    -----
    ``estimate`` is the unbiased finite-law value (k draws without replacement from the observed
    trials; NaN where a question has fewer than k). ``mean``, ``sd`` and the interval are those of
    the posterior law: fresh trials, any k. ``ci_error`` is the absolute error of the interval's
    ends: numerical, or Monte Carlo where draws had to be used. ``prior_sensitivity``, given where k
    exceeds the trials of some question, is the posterior sd under the prior raised to the power 1/2
    (on the logit scale), divided by the sd under the prior itself: values much larger or smaller
    than 1 mean that the prior matters more than the data. Trials of a question are assumed
    exchangeable.

    Under partial pooling a single Beta (``difficulty="beta"``) is integrated by quadrature to full
    precision. The other families are integrated on weighted points, with ends of intervals
    accurate to about 1% of their width. ``ci_error`` and ``quadrature_error`` (of means and sds, in
    sds) estimate the error.

    Prior trials of weight a enter as ``L_earlier(p)^a``: a question with y of n right has a y right
    and a (n - y) wrong trials more. Difficulty families have their posterior probabilities after
    these and the new trials; evidence is that of the new trials given these.

    Questions without trials (``missing="ignore"``) belong to these questions: each has the
    posterior that the others give it, without pooling its prior. They are no sample of questions
    like these, so the Bayesian bootstrap draws from the questions that were tried.

    Weights of the questions (`bayesatk.tally`) enter the mean over these questions, sum w g / sum
    w. Of questions like these the law has none, and takes weights and difficulty to be unrelated;
    ``population="bootstrap"`` is E[w g] / E[w], by the Bayesian bootstrap of pairs of a weight and
    a question (Rubin 1981), whatever their relation. The likelihood has no weights.

    With ``group=`` questions have Beta difficulties around the mean of their group, and the logits
    of these means are normal around a common one; its sd, one intraclass correlation within all
    groups, and the common mean are integrated on weighted points (prior: `HyperPrior`; other
    families only by ``difficulty=``). ``"questions"`` are these questions of these groups,
    ``"population"`` new questions of these groups, ``"new_groups"`` new questions of new groups
    like these: the target of clustered standard errors. Groups ``group_closed_form``,
    ``group_closed_form_quantiles`` and ``group_posterior`` hold the first two targets of each
    group, whose intervals come from draws. Weights of questions count within their groups.

    Metrics of costs have no model: draws for questions like these, whatever `population` says, are
    those of the Bayesian bootstrap of mean costs and success rates of questions together, the same
    for all systems, and draws for these questions come from the variance within questions. Prior
    trials have no part in them. NaN where no trial succeeded, or fewer than five questions were
    tried.

    The intervals for these questions of scored categories, and all intervals of votes between
    answers, are quantiles of independent draws; ``ci_error`` is their Monte Carlo error. For scored
    categories ``reach_probability`` is the probability that a trial has at least the score of each
    category. Votes between answers have ``pooling="partial"`` or ``"none"``.

    See Also
    --------
    bayesatk.sample : the same variables from PyMC.
    bayesatk.verify : compares the two.
    bayesatk.plots.plot_curve : metrics by k with their intervals.
    bayesatk.plots.plot_systems : systems with their intervals.

    Examples
    --------
    >>> fit = evaluate([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], "pass@2", pooling="none", rng=1)
    >>> mean = fit["closed_form"]["pass_at_k"].sel(statistic="mean", k=2, target="questions")
    >>> round(float(mean.squeeze()), 6)  # (23/28 + 6/7)/2
    0.839286
    """
    generator, seed = resolve_rng(rng)
    size = CHAINS * whole_number("draws", draws, 2)
    scored, costs = without_costs(metrics)
    study = read_study(
        data,
        scored,
        pooling=pooling,
        prior=prior,
        difficulty=difficulty,
        success=success,
        judge=judge,
        prior_trials=prior_trials,
        prior_weight=prior_weight,
        answer_prior=answer_prior,
        ci_prob=ci_prob,
        ci_kind=ci_kind,
        keep=keep,
        covariates=covariates,
        group=group,
        group_weights=group_weights,
        population=population,
    )
    if costs:
        check_costs(study, costs)
    *streams, coupling = generator.spawn(len(study.outcomes.systems) + 1)
    run = partial(evaluate_system, study, size, streams, keep)
    by_index = dict(in_batches(run, range(len(streams)), client, "Evaluating", progress))
    systems = [by_index[index] for index in range(len(streams))]
    requested = [list(study.grid).index(metric) for metric in study.metrics]
    estimates = np.stack([system.statistics[requested, 0, 0] for system in systems])
    remarks = [
        *study.notes,
        *partly_observed_notes(
            study.outcomes.systems, study.metrics, estimates, study.outcomes.observed_up_to
        ),
        *(remark for system in systems for remark in system.remarks),
    ]
    joint = coupling.spawn(1)[0]
    groups = _tables(study, size, systems) | data_groups(study)
    if len(systems) > 1:
        groups |= joint_groups(study, systems, groups, int(joint.integers(2**31)))
    groups |= checking_groups(study, groups["posterior"], systems)
    if costs:
        remarks += add_costs(groups, study, costs, size, generator.spawn(1)[0])
        groups["closed_form"].attrs["costs_alone"] = int(scored == "mean")
    attributes = root_attributes(
        max((system.method for system in systems), key=len),  # the approximate, if any
        study.as_text(),
        seed,
        study.outcomes,
        _citations(study, costs),
        notes=json.dumps(remarks),
    )
    return result_tree(groups, attributes)


def _tables(study: Study, draws: int, each: Sequence[Evaluated]) -> dict[str, xr.Dataset]:
    """Return draws, statistics and quantiles of all systems, as groups of the result."""
    grid, dataset = study.grid, study.outcomes.dataset
    rows = [system.statistics for system in each]
    quantiles = [system.quantiles for system in each]
    samples = [system.drawn for system in each]
    question_p = [system.question_p for system in each if system.question_p is not None]
    categories = [str(label) for label in dataset["category"].values]
    reached = [categories[i] for i in reachable(study.outcomes.utility)]
    targets = list(GROUPED_TARGETS[: rows[0].shape[1]])
    coords = {"system": dataset["system"].values, "target": targets}
    drawn = posterior_dataset(grid, samples, coords, categories, reached)
    drawn = labelled(drawn, study.grouping)
    closed = exact_dataset(grid, rows, coords, ("statistic", STATISTICS), reached)
    levels = exact_dataset(grid, quantiles, coords, ("quantile", QUANTILE_LEVELS), reached)
    levels = levels.assign(hyperparameter_tables(each, 1, "quantile"))
    if question_p:
        labels = dataset["question"].values  # ArviZ's tables take no other coordinates
        drawn = drawn.assign_coords(question=labels)
        closed = closed.assign(question_statistics(question_p)).assign_coords(question=labels)
    closed = closed.assign(hyperparameter_tables(each, 0, "statistic"))
    closed = closed.assign(diagnostic_variables(each)).merge(family_variables(each))
    if "category" in closed.dims:
        closed = closed.assign_coords(category=categories)
        levels = levels.assign_coords(category=categories)
    by_group = _group_results(study, draws, each, drawn)
    for name, attrs in monte_carlo(grid, each).items():
        group_closed = by_group.get("group_closed_form", xr.Dataset())
        for table, defaults in ((closed, {}), (group_closed, {"interval_draws": draws})):
            if name in table:  # equal scores have none to reach
                table[name].attrs.update({**defaults, **attrs})
    names = _hyper_labels(study, closed)
    drawn, closed, levels = (group.assign_coords(names) for group in (drawn, closed, levels))
    bootstrapped = draws if study.bootstrapped else 0
    return {
        "posterior": drawn.assign_attrs(_sampling_attributes(each)),
        "closed_form": closed.assign_attrs(bootstrap_draws=bootstrapped),
        "closed_form_quantiles": levels,
        **_difficulty_groups(samples, drawn),
        **by_group,
        **judge_groups(study.known_judges, each, grid, coords),
    }


def _sampling_attributes(each: Sequence[Evaluated]) -> dict[str, Any]:
    """Return how hyperparameters were drawn, and what these draws are worth, for a reader.

    ``sampling`` is "exact" of a closed form or a lattice, "importance" of weighted points, or
    "chains" where the weights could not be trusted; ``pareto_k`` is the largest of the weights, and
    ``effective_draws`` the smallest number of independent draws of any law and system.
    """
    weighted = [
        points for system in each for points in system.points if np.isfinite(points.effective_draws)
    ]
    if not weighted:
        return {"sampling": "exact"}
    chains = any(points.sampled for points in weighted)
    return {
        "sampling": "chains" if chains else "importance",
        "pareto_k": float(max(points.k_hat for points in weighted)),
        "effective_draws": float(min(points.effective_draws for points in weighted)),
    }


def _hyper_labels(study: Study, closed: xr.Dataset) -> dict[str, Any]:
    """Return the labels of vectors of hyperparameters."""
    labels: dict[str, Any] = {}
    if "function" in closed.dims:
        labels["function"] = np.arange(closed.sizes["function"])
    if study.design is not None:
        labels["coefficient"] = study.design.coefficients
    return labels


def _difficulty_groups(samples: Sequence[Draws], posterior: xr.Dataset) -> dict[str, xr.Dataset]:
    """Return the group ``difficulty``; none if all distributions are single Betas."""
    difficulties = [drawn.difficulty for drawn in samples if drawn.difficulty is not None]
    families = [drawn.family for drawn in samples if drawn.family is not None]
    if not difficulties:
        return {}
    return {"difficulty": difficulty_group(difficulties, np.stack(families, axis=1), posterior)}


def _group_results(
    study: Study, draws: int, each: Sequence[Evaluated], posterior: xr.Dataset
) -> dict[str, xr.Dataset]:
    """Return statistics, quantiles and draws of every group of questions."""
    tables = [system.groups for system in each if system.groups is not None]
    drawn = [system.drawn.groups for system in each if system.drawn.groups is not None]
    if study.grouping is None:
        return {}
    statistics, quantiles = (np.stack(table) for table in zip(*tables, strict=True))
    return group_results(
        study.grid,
        study.grouping.labels,
        statistics,
        quantiles,
        np.stack([group_draws.metrics for group_draws in drawn], axis=1),
        posterior,
        draws,
    )


def _citations(study: Study, costs: Sequence[Metric]) -> tuple[str, ...]:
    sources = [family.source for family in study.grid.families]
    sources += [metric.family.source for metric in costs]
    if study.bootstrapped or costs:
        sources.append(RUBIN)
    if study.judges is not None:
        sources.append(GELMAN_CARPENTER)
    if study.prior_counts is not None:
        sources.append(POWER_PRIOR)
    return tuple(dict.fromkeys(source for source in sources if source))


Variables = dict[str, tuple[tuple[str, ...], Array]]
Coords = dict[str, Any]
# Of hyperparameters that are no vector over categories.
MEANS = ("mean_p", "typical_p", "coefficients")  # of which the first that there is has the mean
AXES = {"coefficients": "coefficient", "shape": "function"}


def posterior_dataset(
    grid: MetricGrid,
    samples: Sequence[Draws],
    coords: Coords,
    categories: list[str],
    reached: list[str],
) -> xr.Dataset:
    """Return the ``posterior`` group."""
    draws = len(samples[0].metrics) // CHAINS
    values = np.stack([drawn.metrics for drawn in samples], axis=1)
    values = values.reshape(CHAINS, draws, *values.shape[1:])
    extra: Variables = {
        name: ((*DRAWS, *dims), drawn.reshape(CHAINS, draws, *drawn.shape[1:]))
        for name, (dims, drawn) in drawn_variables(samples).items()
    }
    if values.shape[3] > len(grid):
        reach = np.moveaxis(values[:, :, :, len(grid) :], 3, 4)
        extra["reach_probability"] = ((*DRAWS, "target", "reached"), reach)
    attrs = {"inference_library": "bayesatk"}
    metrics = values[:, :, :, : len(grid)]
    dataset = posterior_group(grid, metrics, coords["system"], extra, attrs)
    if any("category" in variable_dims for variable_dims, _ in extra.values()):
        dataset = dataset.assign_coords(category=categories)
    return dataset.assign_coords(reached=reached) if "reached" in dataset.dims else dataset


def drawn_variables(samples: Sequence[Draws]) -> Variables:
    """Return hyperparameters, means and effects of groups, and p where it is kept, of all systems.

    Values are (draws, system, ...), dimensions those behind the system.
    """
    variables: Variables = {}
    for name, values in samples[0].hyper.items():
        dims = () if values.ndim == 1 else (AXES.get(name, "category"),)
        variables[name] = dims, np.stack([drawn.hyper[name] for drawn in samples], axis=1)
    group_draws = [drawn.groups for drawn in samples if drawn.groups is not None]
    effects = [groups.effect for groups in group_draws if groups.effect is not None]
    if group_draws:
        means = np.stack([groups.mean for groups in group_draws], axis=1)
        variables["group_mean"] = ("group",), means
    if effects:
        variables["group_effect"] = ("group",), np.stack(effects, axis=1)
    kept_p = [drawn.p for drawn in samples if drawn.p is not None]
    if kept_p:
        p = np.stack(kept_p, axis=1)
        variables["p"] = ("question", "category")[: p.ndim - 2], p
    return variables


def checking_groups(
    study: Study, posterior: xr.Dataset, each: Sequence[Evaluated]
) -> dict[str, xr.Dataset]:
    """Return the groups that ArviZ checks models with, as far as the systems have them.

    ``log_prior``, ``prior``, ``posterior_predictive``, ``prior_predictive`` and ``log_likelihood``.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        Group of the result, with coordinates of its draws.
    each : sequence of Evaluated
    """
    checks = [system.checks for system in each if system.checks is not None]
    prior_coords = {"chain": [0], "draw": np.arange(PRIOR_DRAWS)}
    labels: dict[str, Any] = {str(name): label.values for name, label in posterior.coords.items()}
    labels |= {name: study.outcomes.dataset[name].values for name in ("question", "category")}
    counts = study.scale.variable, ("question", *study.scale.axes)
    groups = {}

    def add(group: str, variables: Variables, like: Mapping[Any, Any]) -> None:
        groups[group] = draws_dataset(variables, like, **(labels | dict(like)))

    if checks and checks[0].log_prior:
        add("log_prior", _log_prior(posterior, checks), posterior)
    priors = [check.prior for check in checks if check.prior is not None]
    if priors:
        variables = drawn_variables(priors)
        prior_variables = {name: values for name, values in variables.items() if name in posterior}
        if study.pooling == "none":
            grid = MetricGrid.of(study.judged)
            metrics = np.stack([drawn.metrics[:, : len(grid)] for drawn in priors], axis=1)
            metric_variables = grid.split(metrics, ("draw", "system"), ("target",))
            prior_variables |= {
                name: (dims[2:], values) for name, (dims, values) in metric_variables.items()
            }
            labels |= grid.coords
        add("prior", prior_variables, prior_coords)
    for name, drawn, like in (
        ("posterior_predictive", [check.replicates for check in checks], posterior),
        ("prior_predictive", [check.prior_replicates for check in checks], prior_coords),
    ):
        replicates = [values for values in drawn if values is not None]
        if replicates:
            values = stored_counts(study, np.stack(replicates, axis=1))
            add(name, {counts[0]: (counts[1], values)}, like)
    log_likelihoods = [system.drawn.log_likelihood for system in each]
    logs = [log_likelihood for log_likelihood in log_likelihoods if log_likelihood is not None]
    if logs:
        values = with_variation(np.stack(logs, axis=1))
        add("log_likelihood", {counts[0]: (("question",), values)}, posterior)
        groups["log_likelihood"].attrs["unit"] = UNIT
    return groups


def _log_prior(posterior: xr.Dataset, checks: Sequence[Checks]) -> Variables:
    """Return log densities of the prior of all systems, by the variable that a result has.

    That of the mean is of the variable which has it, and coefficients also have that of slopes.
    """
    mean = next(name for name in (*MEANS, "p") if name in posterior or name == "p")
    variables: Variables = {}
    for name in checks[0].log_prior:
        logs = np.stack([check.log_prior[name] for check in checks], axis=1)
        shown = {"mean": mean, "slopes": "coefficients"}.get(name, name)
        before = variables[shown][1] if shown in variables else 0.0
        variables[shown] = ("question",)[: logs.ndim - 2], logs + before
    return variables


def family_variables(each: Sequence[Evaluated]) -> xr.Dataset:
    """Probability of each difficulty family, its error, evidence and Pareto k, by system."""
    names = [name for name in DIFFICULTY_FAMILIES if name in each[0].families]
    if len(names) < 2:
        return xr.Dataset()
    table = np.array([[system.families[name] for name in names] for system in each])
    labels = "probability", "probability_error", "log_evidence", "pareto_k"
    return xr.Dataset(
        {f"family_{name}": (("system", "family"), table[..., i]) for i, name in enumerate(labels)},
        coords={"family": names},
    )


def exact_dataset(
    grid: MetricGrid,
    rows: Sequence[Array],
    coords: Coords,
    last: tuple[str, Array | tuple[str, ...]],
    reached: list[str],
) -> xr.Dataset:
    """Return statistics or quantiles by metric, and those to reach each higher score.

    Parameters
    ----------
    grid : MetricGrid
    rows : sequence of ndarray, shape (metrics, target, last)
        One per system.
    coords : dict
        Of systems and targets.
    last : (str, array)
        Name and coordinate of the last dimension.
    reached : list of str
        Categories above the lowest score.
    """
    values, (name, labels) = np.stack(rows), last
    full = {**coords, name: list(labels)}
    dataset = metric_dataset(grid, values[:, : len(grid)], ("system",), ("target", name), full)
    if values.shape[1] > len(grid):
        reach = np.moveaxis(values[:, len(grid) :], 1, 2)
        dataset["reach_probability"] = (("system", "target", "reached", name), reach)
        dataset = dataset.assign_coords(reached=reached)
    return dataset


def question_statistics(
    question_p: Sequence[tuple[Array, Array]],
) -> Variables:
    """Exact mean and sd of every question's p, dims (system, question, [category,] statistic)."""
    means = np.stack([mean for mean, _ in question_p])
    table = np.full((*means.shape, len(STATISTICS)), np.nan)
    table[..., 1], table[..., 2] = means, np.stack([sd for _, sd in question_p])
    return {"p": ((*("system", "question", "category")[: means.ndim], "statistic"), table)}


def hyperparameter_tables(each: Sequence[Evaluated], table: int, last: str) -> Variables:
    """Statistics of the hyperparameters, or quantiles; dims (system, [category,] last).

    Parameters
    ----------
    each : sequence of Evaluated
    table : int
        Which of a system's two tables.
    last : str
        Name of the last dimension.
    """
    variables: Variables = {}
    for name in each[0].hyper:
        values = np.stack([system.hyper[name][table] for system in each])
        axes = () if values.ndim == 2 else (AXES.get(name, "category"),)
        variables[name] = (("system", *axes, last), values)
    return variables


def diagnostic_variables(each: Sequence[Evaluated]) -> Variables:
    """Numerical quality, by system."""
    return {
        name: (("system",), np.array([system.diagnostics[name] for system in each]))
        for name in each[0].diagnostics
    }


def monte_carlo(grid: MetricGrid, each: Sequence[Evaluated]) -> dict[str, dict[str, float]]:
    """Return the effective number of draws of statistics that are not exact, by variable.

    It is the smallest over systems, k and tau.
    """
    names = [metric.family.variable for metric in grid]
    names += ["reach_probability"] * (len(each[0].statistics) - len(names))
    variable = np.array(names)

    def of_variable(name: str, draws: Mapping[str, float | Array]) -> dict[str, Array]:
        return {
            statistic: np.broadcast_to(number, len(variable))[variable == name]
            for statistic, number in draws.items()
        }

    fewest = {
        name: least(*(of_variable(name, system.effective_draws) for system in each))
        for name in dict.fromkeys(variable.tolist())
    }
    for name in each[0].hyper:
        fewest[name] = least(*(system.hyper_draws.get(name, {}) for system in each))
    return fewest


def judge_groups(
    judges: Sequence[JudgeError] | None,
    each: Sequence[Evaluated],
    grid: MetricGrid,
    coords: Coords,
) -> dict[str, xr.Dataset]:
    """Return the group ``judge``, where judges err.

    Metric variables hold the share of the variance that is due to the rates; ``tp``, ``p``,
    ``fp`` and ``n`` the calibration sets, by system.
    """
    if judges is None:
        return {}
    values = np.stack([s.judge_share for s in each if s.judge_share is not None])
    full = {"system": coords["system"], "target": list(GROUPED_TARGETS[: values.shape[2]])}
    group = metric_dataset(grid, values[:, : len(grid)], ("system",), ("target",), full)
    names = ("tp", "p", "fp", "n")
    sizes = {
        name: ("system", np.array([getattr(judge, name) for judge in judges])) for name in names
    }
    return {"judge": group.assign(sizes)}
