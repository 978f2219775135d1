"""Success and cost together, every latent number sampled."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from scipy.special import betaincinv

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.core.costs.prior import FINEST, NAMES, CostPrior
from bayesatk.data.scales import RIGHT_WRONG
from bayesatk.models.program import Law, observe, question_probabilities, study_coordinates
from bayesatk.models.question_draws import traced_difficulty
from bayesatk.models.sampling import Sampling, sampler_statistics
from bayesatk.priors import HyperPrior
from bayesatk.results.citations import HOFFMAN
from bayesatk.results.costs import AskedCosts, cost_posterior, cost_tree, read_costs
from bayesatk.results.difficulty import flat_draws

_BLOCK = 200_000  # draws times questions at once
_DIMS = ("system", "question")
_MOST_TRIES = 1e12  # beyond which a budget is not followed
_QUANTILES = 200  # of the distribution of p, for new questions
_RARE = 1e-8  # of p, below which (1 - p)^k is exp(-k p) to eight digits, and 1 - p loses them


def build_cost_model(
    data: object,
    *,
    prior: HyperPrior | None = None,
    cost_prior: CostPrior | None = None,
    success: str | None = None,
) -> pm.Model:
    """Build the model of `bayesatk.costs.evaluate_cost`, of Beta difficulties.

    Parameters
    ----------
    data, prior, cost_prior, success
        As in `bayesatk.costs.evaluate_cost`; the prior of a single Beta.

    Returns
    -------
    pymc.Model
        Variables ``p(system, question)`` and ``log_cost(system, question)``, the log of the mean
        cost of a trial that fails in the unit of the prior; parameters ``mean_p``, ``icc``,
        ``cost_level``, ``cost_slope``, ``cost_outcome``, ``cost_spread`` by system, and
        ``cost_shape(system, outcome)``; observed ``successes``.

    See Also
    --------
    bayesatk.models.sample_cost : samples it.
    bayesatk.costs.evaluate_cost : the same posterior without a sampler.

    Examples
    --------
    >>> import bayesatk as bk
    >>> model = build_cost_model(bk.tally([[1, 0], [1, 1]], cost=[[2, 3], [1, 1]]))
    >>> [one.name for one in model.free_RVs][2:6]
    ['p', 'cost_level', 'cost_slope', 'cost_outcome']
    """
    return cost_program(_asked(data, 1, (), prior, cost_prior, success, 0.95))


def _asked(
    data: object, k: object, spend: object, prior: HyperPrior | None,
    cost_prior: CostPrior | None, success: str | None, ci_prob: float,
) -> AskedCosts:  # fmt: skip
    asked = read_costs(
        data, k, spend, prior=prior, difficulty="beta" if prior is None else None,
        cost_prior=cost_prior, success=success, ci_prob=ci_prob,
    )  # fmt: skip
    if set(asked.prior.family_prior) != {"beta"}:
        raise ArgumentError(
            "prior",
            " must be of a single Beta to sample success and cost; got families "
            f"{', '.join(asked.prior.family_prior)}. Use HyperPrior(families='beta').",
        )
    return asked


def cost_program(asked: AskedCosts, family: str = "beta", simulated_trials: int = 0) -> pm.Model:
    """Return the PyMC model of success and cost.

    Parameters
    ----------
    asked : AskedCosts
    family : str
        Difficulty family. Others than the Beta have discrete variables, and are to be drawn from.
    simulated_trials : int
        Trials of every question that are variables, ``right`` and ``trial_cost``, to be drawn. By
        default the trials are those of the data.
    """
    prior, (median, sd) = asked.cost_prior, asked.cost_prior.shape
    coords = {**study_coordinates(asked.study), "outcome": ["wrong", "right"]}
    with pm.Model(coords=coords) as model:
        law = Law(asked.study, family, simulated=bool(simulated_trials))
        p = question_probabilities(asked.study, law)
        level, slope, outcome = (
            pm.Normal(f"cost_{name}", 0.0, getattr(prior, name), dims="system")
            for name in ("level", "slope", "outcome")
        )
        spread = pm.HalfNormal("cost_spread", prior.spread, dims="system")
        logs = pm.Normal("log_shape", np.log(median), sd, dims=("system", "outcome"))
        shape = pm.Deterministic(
            "cost_shape", 1.0 / (pt.exp(-logs) + FINEST), dims=("system", "outcome")
        )
        expected = level[:, None] + slope[:, None] * (0.5 - p)
        mean = pm.Normal("log_cost", expected, spread[:, None], dims=_DIMS)
        both = mean[..., None] + outcome[:, None, None] * np.array([0.0, 1.0])
        if simulated_trials:
            sizes = (*asked.outcomes.trials.shape, simulated_trials)
            success = pm.Bernoulli("right", p[..., None], shape=sizes)
            shape_of, log_mean = (
                pt.switch(success, values[..., 1, None], values[..., 0, None])
                for values in (shape[:, None], both)
            )
            pm.Gamma("trial_cost", shape_of, shape_of / pt.exp(log_mean))
        else:
            observe(asked.outcomes, RIGHT_WRONG, p)
            pm.Potential("log_cost_likelihood", _log_costs(asked, both, shape))
    return model


def _log_costs(asked: AskedCosts, log_mean: Any, shape: Any) -> Any:
    """Log density of the costs of all trials, whose sums are enough.

    Parameters
    ----------
    asked : AskedCosts
    log_mean : tensor, shape (system, question, outcome)
    shape : tensor, shape (system, outcome)
    """
    number, total = np.zeros((2, *asked.outcomes.trials.shape, 2))
    log_total = np.zeros((len(number), 2))
    for system in range(len(number)):
        tried, _, costs = asked.of_system(system)
        number[system, tried], total[system, tried] = costs.trials, costs.total
        log_total[system] = costs.log_total
    of_means = -shape[:, None, :] * (number * log_mean + total * pt.exp(-log_mean))
    of_shapes = number.sum(axis=1) * (shape * pt.log(shape) - pt.gammaln(shape))
    return of_means.sum() + (of_shapes + (shape - 1.0) * log_total).sum()


def sample_cost(
    data: object,
    k: int | Sequence[int] = 1,
    spend: float | Sequence[float] = (),
    *,
    prior: HyperPrior | None = None,
    cost_prior: CostPrior | None = None,
    success: str | None = None,
    ci_prob: float = 0.95,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    progress: bool = True,
    rng: RandomSource = None,
    sample_kwargs: Mapping[str, Any] | None = None,
) -> xr.DataTree:
    """Sample success and cost with NUTS, and return what `bayesatk.costs.evaluate_cost` does.

    Parameters
    ----------
    data, k, spend, prior, cost_prior, success, ci_prob
        As in `bayesatk.costs.evaluate_cost`, with ``difficulty="beta"``.
    draws, tune, chains, progress, sample_kwargs
        As in `bayesatk.sample`.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (the same variables), ``sample_stats``, ``observed_data``,
        ``constant_data``.

    See Also
    --------
    bayesatk.verify : compares it with the closed form.
    bayesatk.models.build_cost_model : the model, to change.

    Examples
    --------
    >>> import bayesatk as bk
    >>> data = bk.tally([[1, 0], [1, 1]], cost=[[2, 3], [1, 1]])
    >>> sampled = sample_cost(data, [1, 4], rng=1)  # doctest: +SKIP
    >>> exact = bk.costs.evaluate_cost(data, [1, 4], difficulty="beta", rng=1)  # doctest: +SKIP
    >>> bk.verify(exact, sampled).verdict  # doctest: +SKIP
    'agree'
    """
    asked = _asked(data, k, spend, prior, cost_prior, success, ci_prob)
    generator, seed = resolve_rng(rng)
    options = {"target_accept": 0.95, **(sample_kwargs or {})}
    how = Sampling(draws, tune, chains, progress, options)
    trace = how.run(cost_program(asked), int(generator.integers(2**31)))
    source, weights = trace["posterior"].to_dataset(), int(generator.integers(2**63))
    samples = [
        cost_draws(asked, source, index, weights) for index in range(len(asked.outcomes.systems))
    ]
    group = cost_posterior(asked, samples, chains, {"sampling": "nuts", "tuning_steps": tune})
    groups = {"posterior": group, **sampler_statistics({"": trace})}
    return cost_tree(asked, groups, "nuts", seed, (HOFFMAN,), sample_options=how.described())


def cost_draws(asked: AskedCosts, source: xr.Dataset, index: int, seed: int) -> dict[str, Array]:
    """Return quantities and parameters of one system, chains one after the other."""
    tried, _, _ = asked.of_system(index)
    drawn = {str(name): flat_draws(draws, index) for name, draws in source.data_vars.items()}
    p = drawn["p"][:, tried]
    wrong = float(asked.cost_prior.scale or 1.0) * np.exp(drawn["log_cost"][:, tried])
    right = wrong * np.exp(drawn["cost_outcome"])[:, None]
    shared = np.random.default_rng(seed).standard_exponential((len(p), len(tried)))[:, tried]
    new = None if asked.study.bootstrapped else _new_questions(asked, source, index, drawn)
    step, blocks = max(1, _BLOCK // p.shape[1]), []
    for start in range(0, len(p), step):
        rows = slice(start, start + step)
        by_target = []
        for spread in (np.ones_like(p[rows]), shared[rows]):
            weight = asked.weight[tried] * spread
            weight /= weight.sum(axis=1, keepdims=True)
            tries = _Tries(p[rows], wrong[rows], right[rows], weight)
            by_target.append(tries.quantities(asked.k, asked.budget))
        if new is not None:
            tries = _Tries(*(values[rows] for values in new))
            by_target.append(tries.quantities(asked.k, asked.budget))
        blocks.append({
            name: np.stack([target[name] for target in by_target], axis=-1)
            for name in by_target[0]
        })  # fmt: skip
    quantities = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    if new is not None:  # with the ranks of the bootstrap
        for name, values in quantities.items():
            ranks = values[..., 1].argsort(axis=0).argsort(axis=0)
            of_law = np.take_along_axis(np.sort(values[..., 2], axis=0), ranks, axis=0)
            quantities[name] = np.stack([values[..., 0], of_law], axis=-1)
    parameters = {name: drawn[name] for name in ("mean_p", *NAMES[:4])}
    shapes = dict(zip(NAMES[4:], drawn["cost_shape"].T, strict=True))
    return quantities | parameters | shapes


def _new_questions(
    asked: AskedCosts, source: xr.Dataset, index: int, drawn: Mapping[str, Array]
) -> tuple[Array, ...]:
    """Return p, expected costs and probabilities of new questions, by quantiles of every Beta."""
    law = traced_difficulty(source, index)
    assert law is not None  # every family of difficulties has one
    level = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    p = betaincinv(law.alpha[..., None], law.beta[..., None], level)
    share = np.broadcast_to(law.share[..., None] / _QUANTILES, p.shape)
    ends = np.broadcast_to([0.0, 1.0], (len(p), 2))
    p = np.concatenate([p.reshape(len(p), -1), ends], axis=1)
    weight = np.column_stack([share.reshape(len(p), -1), law.never, law.always])
    parameters = (drawn[f"cost_{name}"][:, None] for name in ("level", "slope", "spread"))
    level_of, slope, spread = parameters
    wrong = float(asked.cost_prior.scale or 1.0) * np.exp(
        level_of + slope * (0.5 - p) + 0.5 * spread**2
    )
    return p, wrong, wrong * np.exp(drawn["cost_outcome"])[:, None], weight


class _Tries:
    """What success costs at each draw, by sums over the tries of every question.

    The definitions are those of `bayesatk.core.costs.quantities`, the computation is another: tries
    as geometric sums, and the tries that a budget buys by bisection over whole numbers.

    Parameters
    ----------
    p, wrong, right, weight : ndarray, shape (draws, questions)
        Success probabilities, mean costs of a trial, and weights that sum to one.
    """

    def __init__(
        self, p: Array, wrong: Array, right: Array,
        weight: Array,
    ) -> None:  # fmt: skip
        p = np.clip(p, 1e-250, 1.0 - 2.0**-53)  # what NUTS rounds to 0 or 1 is neither
        self._p, self._wrong, self._right, self._weight = p, wrong, right, weight
        self._cost = wrong + p * (right - wrong)

    def quantities(self, k: Sequence[int], budget: Sequence[float]) -> dict[str, Any]:
        """Return each quantity, shape (draws,), (draws, k) or (draws, budget)."""
        mean, p = self._mean(self._cost), self._p
        quantities = {
            "mean_cost": mean,
            "cost_if_right": self._mean(p * self._right) / self._mean(p),
            "cost_if_wrong": self._mean((1.0 - p) * self._wrong) / self._mean(1.0 - p),
            "cost_of_pass": mean / self._mean(p),
        }
        if k:
            pairs = np.array([self._after(np.full(len(p), float(tries))) for tries in k])
            quantities |= {"pass_at_k": pairs[:, 0].T, "cost_to_success": pairs[:, 1].T}
        if budget:
            tries = np.array(budget) / mean[:, None]
            within = np.minimum(tries, _MOST_TRIES).T
            quantities |= {
                "tries_at_budget": tries,
                "pass_at_budget": np.stack([self._between(row)[0] for row in within], axis=1),
                "coverage_at_budget": np.stack([self._covered(spent) for spent in budget], axis=1),
            }
        return quantities

    def _mean(self, values: Array) -> Array:
        return np.asarray((self._weight * values).sum(axis=1))

    def _after(self, k: Array) -> tuple[Array, Array]:
        """Share solved, and expected cost, of at most so many whole tries: geometric sums."""
        p, k = self._p, k[:, None]
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            tries = np.where(p < _RARE, -np.expm1(-k * p), 1.0 - (1.0 - p) ** k) / p
        return self._mean(p * tries), self._mean(self._cost * tries)

    def _between(self, k: Array) -> Array:
        """Return the same for a number of tries drawn between the two nearest whole numbers."""
        low = np.floor(k)
        more = k - low
        pairs = zip(self._after(low), self._after(low + 1.0), strict=True)
        return np.stack([first + more * (second - first) for first, second in pairs])

    def _covered(self, budget: float) -> Array:
        """Share solved if a question may cost so much on average until it is solved."""
        low, high = np.zeros(len(self._p)), np.full(len(self._p), _MOST_TRIES)
        while (high - low > 1.0).any():
            middle = np.floor(0.5 * (low + high))
            affordable = self._after(middle)[1] <= budget
            low, high = np.where(affordable, middle, low), np.where(affordable, high, middle)
        spent, more = self._after(low)[1], self._after(low + 1.0)[1]
        share = np.clip((budget - spent) / np.where(more > spent, more - spent, np.inf), 0.0, 1.0)
        return np.asarray(self._between(low + share)[0])
