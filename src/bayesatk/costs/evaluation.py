"""`evaluate_cost`: posterior of success and cost together, and of what a success costs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Rng
from bayesatk._tools.batches import in_batches
from bayesatk._tools.messages import whole_number
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk.core.costs.model import CostModel, draw_questions, new_questions
from bayesatk.core.costs.prior import CostPrior as CostPrior
from bayesatk.core.costs.prior import Costs, named
from bayesatk.core.costs.quantities import both_targets, cost_quantities
from bayesatk.core.engine.distribution import Empirical, measured_interval
from bayesatk.core.numerics.importance import TRUSTED, Importance
from bayesatk.core.pooling.states import States
from bayesatk.posterior.model import CountModel
from bayesatk.priors import Families, HyperPrior
from bayesatk.results.costs import (
    STATISTICS,
    AskedCosts,
    cost_posterior,
    cost_statistics,
    cost_tree,
    read_costs,
)
from bayesatk.results.schema import CHAINS

_NEW = 4000  # draws whose new questions are worked out at once


@one_thread()
@np.errstate(under="ignore", over="ignore")
def evaluate_cost(
    data: object,
    k: int | Sequence[int] = 1,
    spend: float | Sequence[float] = (),
    *,
    prior: HyperPrior | None = None,
    difficulty: Families = None,
    cost_prior: CostPrior | None = None,
    success: str | None = None,
    ci_prob: float = 0.95,
    ci_kind: Literal["eti", "hdi"] = "eti",
    draws: int = 500,
    rng: RandomSource = None,
    progress: bool | None = None,
    client: Any = None,
) -> xr.DataTree:
    r"""Compute the joint posterior of success and cost: cost per success, and success at a budget.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Outcomes with costs: ``bayesatk.tally(data, cost=)`` or ``bayesatk.load(path, cost=)``.
    k : int or sequence of int
        Largest number of tries of a question, for ``pass_at_k`` and ``cost_to_success``.
    spend : float or sequence of float
        Budgets per question, as a mean over the questions, in the unit of the costs.
    prior, difficulty, success
        As in `bayesatk.evaluate`, with ``pooling="partial"``.
    cost_prior : CostPrior, optional
        Default: ``CostPrior()``.
    ci_prob, ci_kind
        Probability and kind of credible intervals, as in `bayesatk.evaluate`.
    draws : int
        Independent draws per chain; there are 4 chains.
    rng : int, numpy.random.Generator or None
        Seed of the draws.
    progress, client
        As in `bayesatk.evaluate`.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (draws, dims ``chain, draw, system, [k | budget], target``),
        ``closed_form`` (their statistics), ``observed_data``, ``constant_data``. Variables:

        * ``mean_cost``: expected cost of a trial; ``cost_if_right`` and ``cost_if_wrong``: of one
          that succeeds, or fails.
        * ``cost_of_pass``: expected cost of a trial over the probability that it succeeds.
        * ``pass_at_k``, and ``cost_to_success``: expected cost of trying a question until it is
          solved, at most k times.
        * ``tries_at_budget``: tries of every question that the budget pays for on average, and
          ``pass_at_budget``: the share solved by so many (pass@k at equal cost).
        * ``coverage_at_budget``: the share solved where each question is tried until it is solved,
          at most k times, with k as large as the budget allows.

        Parameters by system: ``cost_level``, ``cost_slope``, ``cost_outcome``, ``cost_spread``,
        ``cost_shape_wrong``, ``cost_shape_right`` (see `bayesatk.costs.CostPrior`).

    Raises
    ------
    ValueError
        If no trial has a cost, or an option is outside its range.

    See Also
    --------
    bayesatk.table : with ``"costs"`` the result as a table.
    bayesatk.costs.compare_cost : differences and ratios of systems.
    bayesatk.costs.pareto : probabilities of being in the Pareto set of cost and success.
    bayesatk.models.sample_cost : the same quantities from PyMC.
    bayesatk.plots.plot_cost : what is solved against what it costs.
    bayesatk.plan : questions and trials for a budget of money.

    Notes
    -----
    Given its success probability p and mean cost m, a question's trials succeed independently, and
    cost ``Gamma`` of mean m or ``m exp(outcome)``. Gamma costs make the mean cost of a question's
    trials all that is known of its mean, so that means stay right where costs are distributed
    otherwise. ``log m ~ Normal(level + slope (1/2 - p), spread)``: means are partially pooled, and
    cost may depend on difficulty. Difficulties are those of `bayesatk.evaluate`. p and m are
    integrated by quadrature, the parameters sampled by importance, and draws of p and m are exact
    given these.

    Questions like these are new ones of the fitted distributions of p and of mean costs. Systems
    are compared on the same ones: the draws of every system are in the order of the Bayesian
    bootstrap (Rubin 1981) over the questions, with the same weights for all. Where questions have
    weights of their own, questions like these are the bootstrap's, which knows their weights.

    ``cost_of_pass`` of a question is c / p (Erol et al. 2025, arXiv:2504.13359). Here it is of a
    benchmark: mean c over mean p, what a success costs if every question is tried equally often.
    The mean of c / p over questions is another number, and infinite as soon as p may be 0: give a
    limit of tries, ``cost_to_success``, instead. ``cost_to_success`` is the mean of
    ``c (1 - (1 - p)^k) / p`` (Wald's identity). Between two k that a budget lies between, a
    lottery decides which questions get one more try.

    Statistics are those of the draws; ``ci_error`` is the Monte Carlo error of the ends of the
    interval. Means and sds that do not exist, because too few trials succeeded, are infinite.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"small": [[1, 0, 1, 0]] * 20, "large": [[1, 1, 1, 0]] * 20}
    >>> cost = {"small": [[1, 1.2, 1, 0.8]] * 20, "large": [[5, 6, 4, 5]] * 20}
    >>> fit = evaluate_cost(bayesatk.tally(runs, cost=cost, cost_unit="USD"), rng=1)
    >>> mean = fit["closed_form"]["cost_of_pass"].sel(target="questions", statistic="mean")
    >>> mean.values.round(0).tolist()  # 1 / (1/2), 5 / (3/4)
    [2.0, 7.0]
    """
    generator, seed = resolve_rng(rng)
    request = read_costs(
        data, k, spend, prior=prior, difficulty=difficulty, cost_prior=cost_prior,
        success=success, ci_prob=ci_prob, ci_kind=ci_kind,
    )  # fmt: skip
    size = CHAINS * whole_number("draws", draws, 2)
    weights = int(generator.integers(2**63))  # one seed: the same questions weigh for all systems
    streams = generator.spawn(len(request.outcomes.systems))
    run = partial(_evaluate_system, request, streams, weights, size)
    by_index = dict(in_batches(run, range(len(streams)), client, "Evaluating", progress))
    systems = [by_index[index] for index in range(len(streams))]
    attrs = {"sampling": "exact", "inference_library": "bayesatk"}
    effective = min(system.effective_draws for system in systems)
    draws_of = dict.fromkeys(("mean_draws", "sd_draws", "interval_draws"), effective)
    rows = {name: [system.statistics[name] for system in systems] for name in systems[0].statistics}
    groups = {
        "posterior": cost_posterior(request, [system.samples for system in systems], CHAINS, attrs),
        "closed_form": cost_statistics(request, rows, draws_of),
    }
    notes = [note for system in systems for note in system.notes]
    method = "importance sampling, rejection"
    return cost_tree(request, groups, method, seed, notes=json.dumps(notes))


@dataclass(frozen=True)
class _Evaluated:
    """Draws and statistics of one system, and their effective number of draws."""

    samples: dict[str, Array]
    statistics: dict[str, Array]
    effective_draws: float
    notes: list[str]


def fit_costs(counts: Any, costs: Costs, prior: HyperPrior, cost_prior: CostPrior) -> Any:
    """Return the model of one system and the weighted points of its parameters.

    Parameters
    ----------
    counts : ndarray of int, shape (questions, 2)
        Wrong and right trials.
    costs : Costs
    prior : HyperPrior
    cost_prior : CostPrior

    Returns
    -------
    (CostModel, Importance)
    """
    states = States.of(counts[:, 1], counts.sum(axis=1))
    nodes = CountModel.of(prior, counts).nodes
    return CostModel.of(states, nodes, costs, cost_prior).posterior()


def draw_costs(
    model: CostModel, points: Importance, size: int, scale: float, weight: Array, bootstrap: Any,
    k: Sequence[int], budget: Sequence[float], rng: Rng, by_law: bool = True,
) -> dict[str, Array]:  # fmt: skip
    """Return independent draws of quantities and parameters of one system.

    Parameters
    ----------
    model : CostModel
    points : Importance
    size : int
    scale : float
        Unit of costs in the model.
    weight : ndarray, shape (questions,)
    bootstrap : callable
        ``bootstrap(draws)`` returns the next exponentials (draws, questions).
    k, budget : sequence
    rng : numpy.random.Generator
    by_law : bool
        Whether questions like these are those of the law, whose draws are put in the order of the
        bootstrap's; else they are the bootstrap's.
    """
    theta = points.points[rng.choice(len(points.weight), size, p=points.weight)]
    blocks = [
        both_targets(p, wrong, right, weight, bootstrap(len(p)), k, budget)
        for p, wrong, right in draw_questions(model, theta, scale, rng)
    ]
    samples = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    if by_law:
        parts = np.split(theta, range(_NEW, size, _NEW))
        new = [
            cost_quantities(*new_questions(model, theta_part, scale), k, budget)
            for theta_part in parts
        ]
        for name, values in samples.items():
            drawn = np.concatenate([theta_part[name] for theta_part in new])
            order = np.argsort(values[..., 1], axis=0)
            np.put_along_axis(values[..., 1], order, np.sort(drawn, axis=0), axis=0)
    mean_p = model.nodes.overall()[0][model.node(theta[:, 0])]
    return samples | {"mean_p": mean_p} | named(theta[:, 1:])


@np.errstate(under="ignore", over="ignore")
def _evaluate_system(
    request: AskedCosts, streams: Sequence[Rng], seed: int, size: int, index: int
) -> _Evaluated:
    """Evaluate one system."""
    tried, counts, costs = request.of_system(index)
    model, points = fit_costs(counts, costs, request.prior, request.cost_prior)
    shared = np.random.default_rng(seed)

    def bootstrap(draws: int) -> Array:
        return shared.standard_exponential((draws, len(tried)))[:, tried]

    scale = float(request.cost_prior.scale or 1.0)
    samples = draw_costs(
        model, points, size, scale, request.weight[tried], bootstrap, request.k, request.budget,
        streams[index], not request.study.bootstrapped,
    )  # fmt: skip
    effective = 1.0 / (1.0 / size + 1.0 / points.effective_draws)
    notes = _notes(request, index, points.k_hat, int(counts.sum(axis=1).min()), samples)
    statistics = {
        name: _statistics(request, values, effective)
        for name, values in samples.items()
        if values.ndim > 1
    }
    _estimates(request, counts, costs, request.weight[tried], statistics)
    _infinite(counts, statistics["cost_of_pass"], request.study.bootstrapped)
    return _Evaluated(samples, statistics, effective, notes)


def _notes(
    request: AskedCosts, index: int, k_hat: float, fewest: int, samples: dict[str, Array]
) -> list[str]:
    """Return what a reader of the numbers of a system should know."""
    name, notes = request.outcomes.systems[index], []
    if k_hat >= TRUSTED:
        notes.append(
            f"{name}: the parameters of costs are known roughly only (Pareto k {k_hat:.2f} of "
            "importance weights); check with bayesatk.models.sample_cost."
        )
    most = max(request.k, default=0)
    if "tries_at_budget" in samples:
        most = max(most, int(samples["tries_at_budget"].mean(axis=0).max()))
    if most > fewest:
        notes.append(
            f"{name}: up to {most} tries or more of a question are judged, of which {fewest} were "
            "run for some; what is beyond them rests on the shape of the difficulty distribution."
        )
    return notes


def _statistics(request: AskedCosts, values: Array, effective: float) -> Array:
    """Return statistics of draws (draws, ..., target) as the last dimension."""
    flat = values.reshape(len(values), -1)
    table = np.full((flat.shape[1], len(STATISTICS)), np.nan)
    table[:, 1], table[:, 2] = flat.mean(axis=0), flat.std(axis=0, ddof=1)
    study = request.study
    for row, column in zip(table, flat.T, strict=True):
        ends, error = measured_interval(Empirical(column), study.ci_prob, study.ci_kind)
        row[3:] = *ends, error * np.sqrt(len(values) / effective)
    return table.reshape(*values.shape[1:], len(STATISTICS))


def _estimates(
    request: AskedCosts, counts: Any, costs: Costs, weight: Array, table: dict[str, Array]
) -> None:
    """Fill in what the trials say by themselves: means over questions of their means."""
    weight = weight / weight.sum()
    trials = costs.trials / costs.worth
    total = float(request.cost_prior.scale or 1.0) * costs.total / costs.worth
    with np.errstate(divide="ignore", invalid="ignore"):
        question_costs = total.sum(axis=1) / trials.sum(axis=1)
        rate = weight @ (counts[:, 1] / counts.sum(axis=1))
        mean = weight @ question_costs  # NaN where a question has no cost
        table["mean_cost"][..., 0], table["cost_of_pass"][..., 0] = mean, mean / rate
        of_outcome = total.sum(axis=0) / trials.sum(axis=0)  # of all trials
    table["cost_if_wrong"][..., 0], table["cost_if_right"][..., 0] = of_outcome

    if request.k:
        model = CountModel.of(request.prior, counts, weight=weight)
        table["pass_at_k"][..., 0] = model.estimate(request.study.metrics)[:, None]


def _infinite(counts: Any, table: Array, bootstrapped: bool) -> None:
    """Mark the mean and sd of a cost of pass that do not exist.

    The posterior density of a success rate r near 0 falls with every success. Of these questions
    1 / r has a mean from one success on and a variance from two; of questions like these from one
    and two questions with a success. The bootstrap may all but leave one of them out.
    """
    successes, solved = int(counts[:, 1].sum()), int((counts[:, 1] > 0).sum())
    for target, successes_left in enumerate((successes, solved - bootstrapped)):
        if successes_left < 1:
            table[target, 1] = np.inf
        if successes_left < 2:
            table[target, 2] = np.inf
