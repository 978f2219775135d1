"""`from_draws`: a result of the draws of anybody's model.

Only definitions are used: the value of each metric at the drawn success probabilities, its mean
over the questions of the data, and its mean over new questions, which the model draws or which are
those of the data drawn anew.
"""

import json
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Rng
from bayesatk._tools.messages import ArgumentError, proper_probability
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.roles import GROUP
from bayesatk.data.study import Study, as_marked
from bayesatk.metrics.grid import Metric, MetricSpec, check_sizes, parse, without_costs
from bayesatk.models.alignment import (
    SAMPLE_DIMS,
    Labels,
    aligned,
    dimensions,
    number_notes,
    places,
)
from bayesatk.models.metric_draws import (
    CountDraws,
    Shares,
    SystemMetrics,
    by_chain,
    posterior_dataset,
    split_reached,
    stored,
)
from bayesatk.models.mixing import mixing_notes
from bayesatk.models.own_checks import (
    contradictions,
    count_shares_note,
    is_given_p,
    lacks_coefficients,
    new_question_notes,
    noise_note,
    varies_by_question,
)
from bayesatk.results.citations import RUBIN
from bayesatk.results.schema import (
    DRAWS,
    ONE_CHAIN,
    SAMPLE,
    data_groups,
    result_tree,
    root_attributes,
)

_NEW_GROUPS = ("posterior", "predictions", "posterior_predictive")  # where new questions may be
_FEW_DIRECTIONS = "p varies in few directions, as a function of few parameters"
_OWN_P = (
    "If p is the mean of each question's own p given hyperparameters, or if questions differ "
    "otherwise, too, intervals are too narrow: give draws of their own p (docs: My own PyMC model)."
)
_MIN_QUESTIONS = 10  # that tell a function of few parameters from strong pooling
_COUNT_GROUPS = ("log_likelihood", "posterior_predictive", "prior_predictive")


def from_draws(
    trace: xr.DataTree,
    data: object,
    metrics: MetricSpec,
    *,
    p: str = "p",
    new: str = "p_new",
    system: object = None,
    ci_prob: float = 0.95,
    rng: RandomSource = None,
) -> xr.DataTree:
    """Make a result of the draws of your own model, which every function of a result takes.

    Parameters
    ----------
    trace : xarray.DataTree
        What ``pm.sample()`` returns, or any InferenceData: the group ``posterior`` has draws of the
        success probability of every question.
    data : Outcomes, or anything `bayesatk.tally` accepts
        The trials that the model was fitted to.
    metrics : str, Metric, or iterable of them
        As in `bayesatk.evaluate`; metrics that judge trials.
    p : str
        Variable of the success probabilities, (chain, draw, [system,] question); of scored
        categories with a last dimension of these. Dimensions of other names are in this order.
        Entries are matched with the data by their labels, and by their order where the trace has
        none.
    new : str
        Variable of the success probabilities of new questions, (chain, draw, [system,] any), in
        the group ``posterior``, ``predictions`` or ``posterior_predictive``. Some hundreds a draw
        keep their noise small. Without it, and of questions with weights, which new ones have none
        of, questions like these are those of the data drawn anew by the Bayesian bootstrap.
    system : label, optional
        The system that the draws are of, where they have no dimension of systems and the data
        have several.
    ci_prob : float
        Probability of the credible interval, strictly between 0 and 1.
    rng : int, numpy.random.Generator or None
        Seed of the Bayesian bootstrap.

    Returns
    -------
    xarray.DataTree
        The groups that `bayesatk.sample` returns: ``posterior`` with the metrics and ``p``,
        ``observed_data``, ``constant_data`` and, as far as the trace has them, ``sample_stats``,
        ``log_likelihood``, ``posterior_predictive`` and ``prior_predictive`` of the counts by
        question. A log likelihood of counts given each question's own p is left out, because
        leave-one-out from it is far off. ``fit.notes`` names what the trace does not have and what
        was left out, and says where chains have not mixed.

    Raises
    ------
    ValueError
        If the dimensions or labels of `p` are not those of the data, if it is no probability, or if
        the counts that the trace observed are other ones.

    See Also
    --------
    bayesatk.sample : samples the library's own models.
    bayesatk.verify : compares the draws with those, or with an exact result.

    Notes
    -----
    A metric is the mean over questions of its value at their probabilities, with the weights of
    the data, in every draw. Draws of several systems stay joint, as the model has them: differences
    between systems come from these draws.

    Examples
    --------
    Two questions of success probability 1/2 and 1, known exactly: pass@2 is (3/4 + 1)/2.

    >>> import bayesatk
    >>> p = np.tile([0.5, 1.0], (2, 50, 1))
    >>> trace = xr.DataTree.from_dict(
    ...     {"posterior": xr.Dataset({"p": (("chain", "draw", "question"), p)})}
    ... )
    >>> mine = from_draws(trace, [[0, 1], [1, 1]], "pass@2", rng=1)
    >>> rows = bayesatk.table(mine).query("target == 'questions'")
    >>> rows["mean"].tolist()
    [0.875]
    """
    posterior, requested = _posterior_of(trace), _judged_metrics(metrics)
    proper_probability("ci_prob", ci_prob, 0.95)
    traced_p, outcomes = _draws_of_p(posterior, p), as_marked(data)
    outcomes = outcomes if system is None else outcomes.sel(system=system)
    with_new, lines = _new_questions(trace, new, outcomes)
    study = Study(
        outcomes=outcomes,
        metrics=requested,
        pooling="own",
        prior=None,
        ci_prob=float(ci_prob),
        population="bootstrap" if with_new is None else "law",
    )
    axes = ("system", "question", *study.scale.axes)
    labels = {name: outcomes.dataset[name].values.tolist() for name in axes}
    drawn, new_p = _probabilities(aligned(traced_p, labels, "p"), p), None
    lines += number_notes(traced_p, labels)
    if with_new is not None:
        new_p = _by_system(with_new[new].astype(float), new, labels, traced_p)
        lines += new_question_notes(study, drawn, new_p) or noise_note(study, new_p)
    generator, seed = resolve_rng(rng)
    draws = _metrics(study, posterior, drawn, new_p, generator)
    count_groups, count_notes = _count_groups(trace, study, labels, drawn)
    group = posterior_dataset(study, draws, posterior, sampling="own model")
    groups = {"posterior": group} | count_groups
    if "sample_stats" in trace.children:
        groups["sample_stats"] = _sample_stats(trace)
    against = count_shares_note(study, drawn) or contradictions(study, drawn)
    mixing = mixing_notes(groups["posterior"], [groups[n] for n in groups if n == "sample_stats"])
    if posterior.sizes["chain"] == 1:
        mixing.append(ONE_CHAIN)
    sources = [family.source for family in study.grid.families] + [RUBIN] * study.bootstrapped
    attributes = root_attributes(
        "draws",
        study.as_text(),
        seed,
        outcomes,
        tuple(dict.fromkeys(sources)),
        notes=json.dumps([*lines, *against, *count_notes, *mixing]),
    )
    return result_tree(groups | data_groups(study), attributes)


def _sample_stats(trace: xr.DataTree) -> xr.Dataset:
    """Return the sampler's own statistics, without texts, which netCDF cannot give back."""
    group = trace["sample_stats"].to_dataset()
    return group.drop_vars([name for name in group if group[name].dtype == object])


def _posterior_of(trace: object) -> xr.Dataset:
    if not isinstance(trace, xr.DataTree) or "posterior" not in trace.children:
        raise ArgumentError(
            "trace",
            " must be a DataTree with the group 'posterior', as pm.sample() returns; got "
            f"{type(trace).__name__}. An array (chain, draw, question) becomes one by "
            "az.from_dict({'posterior': {'p': array}}), a Dataset by "
            "xr.DataTree.from_dict({'posterior': dataset}).",
        )
    return trace["posterior"].to_dataset()


def _judged_metrics(metrics: MetricSpec) -> tuple[Metric, ...]:
    judged, costs = without_costs(metrics)
    requested = parse(judged)
    check_sizes(requested)
    without_p = [metric.label for metric in requested if metric.voted]
    without_p += [metric.label for metric in costs]
    if without_p:
        raise ArgumentError(
            "metrics",
            " must judge trials, which have success probabilities; got "
            f"{', '.join(without_p)}. Votes and costs are metrics of bayesatk.evaluate.",
        )
    return requested


def _draws_of_p(posterior: xr.Dataset, p: str) -> xr.DataArray:
    """Return the variable of the success probabilities, in double precision."""
    if p not in posterior:
        raise ArgumentError(
            "p",
            f" must name a variable of the posterior, {[*map(str, posterior)]!r:.200}; got "
            f"{p!r}. Name success probabilities in the model: pm.Deterministic({p!r}, ...).",
        )
    values = posterior[p]
    if any(values.sizes.get(dim, 0) == 0 for dim in SAMPLE_DIMS):
        shape = dict(zip(map(str, values.dims), values.shape, strict=True))
        raise ArgumentError(
            "p",
            f" must have draws along the dimensions chain and draw; {p!r} has {shape}. Pass "
            "what pm.sample() returns, before az.extract, or az.from_dict({'posterior': {'p': "
            "array}}) of an array (chain, draw, question).",
        )
    return values.astype(float)


def _probabilities(values: Array, name: str) -> Array:
    """Return the values, (draws, system, question, ...), if they are probabilities."""
    drawn = values.reshape(-1, *values.shape[2:])
    without = np.isnan(drawn).reshape(len(drawn), -1).any(axis=1).reshape(values.shape[:2])
    lowest, highest = float(values.min()), float(values.max())
    if without.any():
        chains = np.flatnonzero(without.any(axis=1)).tolist()
        raise ArgumentError(
            "p",
            f" must be a probability of every question; {name!r} is NaN in {without.sum()} of "
            f"{without.size} draws, of the chains at {chains}. A question without trials has a "
            "probability, too; of chains that failed keep the others: trace.isel(chain=[...]).",
        )
    if lowest < 0.0 or highest > 1.0:
        raise ArgumentError(
            "p",
            f" must be a probability of every question; {name!r} is between {lowest!r} and "
            f"{highest!r}. Of a logit take pm.Deterministic('p', pm.math.sigmoid(logit)), of "
            "percentages p / 100.",
        )
    return drawn


def _new_questions(
    trace: xr.DataTree, new: str, outcomes: Outcomes
) -> tuple[xr.Dataset | None, list[str]]:
    """Return the group that has new questions, if these are used, and lines of what is not.

    New questions have no weights: a mean over them is of another population than that which the
    weights of the data stand for.
    """
    names = [n for n in _NEW_GROUPS if n in trace.children and new in trace[n].data_vars]
    if not names and new != "p_new":
        rule = f" must name a variable of {', '.join(_NEW_GROUPS)}; got {new!r}. Leave it out, or "
        raise ArgumentError("new", rule, "name a variable that is there.")
    weighted = outcomes.weight is not None
    lines = []
    if names and weighted:
        lines = [
            f"The new questions ({new}) are not used, because they have no weights and those of "
            "the data do: questions like these are these drawn anew with their weights by the "
            "Bayesian bootstrap."
        ]
    elif not names:
        lines = [
            "The draws have no new questions (p_new): questions like these are these drawn anew "
            "by the Bayesian bootstrap."
        ]
    if GROUP in outcomes.dataset.coords and len(set(outcomes.dataset[GROUP].values.tolist())) > 1:
        one = str(outcomes.dataset[GROUP].values[0])
        lines.append(
            "The groups of the data are not used: metrics are of all questions. For those of one "
            f"group give data.sel(group={one!r}), whose questions the trace must have by name, and "
            "name its own new questions in new=."
        )
    return (trace[names[0]].to_dataset() if names and not weighted else None), lines


def _by_system(values: xr.DataArray, name: str, labels: Labels, p: xr.DataArray) -> list[Array]:
    """Return probabilities of new questions of every system, (draws, new questions, ...)."""
    traced = dimensions(p, labels, "p")
    dim = next((old for old, data_dim in traced.items() if data_dim == "system"), "system")
    further_dims = [
        str(further_dim) for further_dim in values.dims if further_dim not in SAMPLE_DIMS
    ]
    if dim not in values.dims and len(labels["system"]) == 1:
        values = values.expand_dims(dim)
    elif dim not in values.dims and values.shape[2:3] == (len(labels["system"]),):
        values = values.rename({further_dims[0]: dim})  # without names: in the order of p
    same_sample = all(values.sizes.get(sample) == p.sizes[sample] for sample in SAMPLE_DIMS)
    if dim not in values.dims or not same_sample:
        shape = dict(zip(map(str, values.dims), values.shape, strict=True))
        raise ArgumentError(
            "new",
            " must have the chains and draws of p and, of several systems, their dimension "
            f"{dim!r} before that of the new questions; {name!r} has {shape}. Draw it with the "
            f"same trace, pm.sample_posterior_predictive(trace, var_names=[{name!r}]), for each "
            "system.",
        )
    values = values.isel({dim: places(values, dim, labels["system"], dim, "new")})
    drawn = _probabilities(values.transpose(*SAMPLE_DIMS, dim, ...).values, name)
    axes = [len(labels[axis]) for axis in labels if axis not in ("system", "question")]
    by_system = [system_p.reshape(len(drawn), -1, *axes) for system_p in np.moveaxis(drawn, 1, 0)]
    p_varies = bool((p.max(SAMPLE_DIMS) > p.min(SAMPLE_DIMS)).any())
    if p_varies and any(np.ptp(new, axis=0).max() == 0.0 for new in by_system):
        raise ArgumentError(
            "new",
            f" must be drawn with the parameters of each draw; {name!r} is the same in all "
            "draws, as if scores on questions like these were known. Leave it out of the trace, or "
            "write it as a function of the parameters.",
        )
    return by_system


def _metrics(
    study: Study, posterior: xr.Dataset, p: Array, new: list[Array] | None, rng: Rng
) -> CountDraws:
    """Return draws of metrics, and of p (draws, system, question, ...)."""
    metrics = [study.scale.judged(metric) for metric in study.grid]
    metrics += study.scale.reaching()
    shares = Shares.of(p.shape[2], study.outcomes.weight)
    by_system, seed = [], int(rng.integers(2**63))
    for system in range(p.shape[1]):
        new_mean = None if new is None else partial(_mean_of, new[system])
        system_metrics = SystemMetrics(
            metrics, shares, partial(stored, p[:, system]), alike=new_mean, resampled=new is None
        )
        anew = np.random.default_rng(seed)  # the same questions of all systems: draws are joint
        by_system.append(system_metrics.draw(False, rng, anew).whole)
    values, variables = split_reached(by_chain(posterior, by_system), len(study.grid))
    dims = (*DRAWS, "question", *study.scale.axes)
    variables["p"] = (dims, p.reshape(*values.shape[:2], *p.shape[1:]))
    return CountDraws(values, variables)


def _mean_of(p: Array, metric: Any) -> Array:
    return np.asarray(metric.latent(p).mean(axis=1))


def _count_groups(
    trace: xr.DataTree, study: Study, labels: Labels, p: Array
) -> tuple[dict[str, xr.Dataset], list[str]]:
    """Return what the trace has of the counts of questions, by group, and a line of what it lacks.

    The variable of the counts is the one observed variable with a number for each question. `p` are
    the draws of success probabilities, (draws, system, question, ...).
    """
    datasets = {name: trace[name].to_dataset() for name in map(str, trace.children)}
    observed = {
        str(name): counts
        for name, values in datasets.get("observed_data", xr.Dataset()).items()
        if (counts := _fitting(values, labels)) is not None
    }
    groups = {}
    for name, counts in observed.items() if len(observed) == 1 else ():
        _check_counts(name, counts, study)
        for group in _COUNT_GROUPS:
            trace_variable = datasets.get(group, xr.Dataset()).get(name)
            expected_labels = {"system": labels["system"], "question": labels["question"]}
            expected_labels = expected_labels if group == "log_likelihood" else dict(labels)
            values = None if trace_variable is None else _fitting(trace_variable, expected_labels)
            if values is not None:
                sample_coords = {
                    dim: np.arange(size)
                    for dim, size in zip(SAMPLE_DIMS, values.shape, strict=False)
                }
                data = {study.scale.variable: ((*SAMPLE_DIMS, *expected_labels), values)}
                groups[group] = xr.Dataset(data, sample_coords | expected_labels, SAMPLE)
    logs = groups.get("log_likelihood")
    few = not study.scale.axes and p.shape[2] >= _MIN_QUESTIONS and not varies_by_question(p)
    if logs is None:
        lines = [_without_log_likelihood(datasets.get("log_likelihood"), labels)]
        return groups, lines + [f"{_FEW_DIRECTIONS}. {_OWN_P}"] * few
    if study.scale.axes or logs[study.scale.variable].size != p.size:  # of some of the draws
        return groups, []
    given_p = is_given_p(logs[study.scale.variable].values, p, study)
    if given_p and varies_by_question(p):
        del groups["log_likelihood"]
        return groups, [
            "The log likelihood was left out: that of counts given each question's own p is of no "
            "use for leave-one-out. Write the likelihood with p integrated out, as "
            "pm.BetaBinomial does (docs: Compare models)."
        ]
    if lacks_coefficients(logs[study.scale.variable].values, study):
        del groups["log_likelihood"]
        return groups, [
            "The log likelihood was left out: it is of single trials, without the binomial "
            "coefficient of the count y of n, and az.compare would compare unlike numbers. Observe "
            "counts, by pm.Binomial or pm.BetaBinomial, or add log(scipy.special.comb(n, y))."
        ]
    if few and not given_p:
        return groups, [
            f"{_FEW_DIRECTIONS}, but the log likelihood is not that of counts given p. {_OWN_P}"
        ]
    return groups, []


def _without_log_likelihood(logs: xr.Dataset | None, labels: Labels) -> str:
    """Say why there is no log likelihood."""
    if logs is None:
        return (
            "The draws have no log likelihood of the counts of questions, for leave-one-out: in a "
            "model that integrates over the questions' own p, pm.compute_log_likelihood(trace) "
            "adds it."
        )
    two = {"system": labels["system"], "question": labels["question"]}
    if any(_fitting(values, two) is not None for values in logs.values()):
        return (
            "The log likelihood was left out, because the group observed_data does not have its "
            "counts, one variable of the same name with a count for each question: add it."
        )
    return (
        "The log likelihood was left out, because it has no value for each question, as of single "
        "trials: leave-one-out of questions needs that of the counts, with the questions' own p "
        "integrated out (docs: My own PyMC model). In a model without effects of questions "
        "observe counts, by pm.Binomial."
    )


def _fitting(values: xr.DataArray, labels: Labels) -> Array | None:
    """Return a variable in the order of the data, or nothing if it is of something else."""
    try:
        return aligned(values, labels, "trace")
    except ArgumentError:
        return None


def _check_counts(name: str, counts: Array, study: Study) -> None:
    """Refuse draws given other counts, or the same in another order."""
    dims = "system", "question", *study.scale.axes
    ours = study.scale.observed(study.outcomes).transpose(*dims).values
    if not np.array_equal(counts, ours):
        differing = int((counts != ours).any(axis=tuple(range(2, ours.ndim))).sum())
        raise ArgumentError(
            "trace",
            " must be of the same counts as ",
            "data",
            f"; {name!r} differs from the "
            f"data in {differing} of {ours[..., 0].size if ours.ndim > 2 else ours.size} cells. "
            "Label the questions of the model with those of the data, "
            "coords={'question': data.dataset['question'].values}, or pass the data that it was "
            "fitted to.",
        )
