"""Pointwise log-likelihood of results: one value per question, its success probability integrated.

The unit that is left out, and that models are compared on, is the question. The likelihood of its
count is taken given the draw's hyperparameters with the question's own p integrated out: on draws
of p itself, Pareto-smoothed importance sampling is wrong by hundreds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.core.pooling.marks import log_marked
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.question.dirichlet_multinomial import log_counts
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import Scale
from bayesatk.priors import AnyPrior, BetaPrior, DirichletPrior

Array = NDArray[np.float64]
UNIT = "question of a system"  # that a value of the group is of, and that models are compared on
AUTOMATIC = 1_000_000  # values (8 MB) up to which the group is filled without being asked for
BLOCK = 1_000_000  # probabilities worked out at once
_VARIATION = 1e-11  # relative to a log-likelihood that is the same in every draw, from end to end


def log_likelihood_groups(
    outcomes: Outcomes,
    posterior: xr.Dataset,
    prior: AnyPrior,
    scale: Scale,
    keep: Sequence[str],
    prior_counts: Array | None = None,
    difficulties: Sequence[Difficulty] | None = None,
    judged: bool = False,
) -> dict[str, xr.Dataset]:
    """Return the group ``log_likelihood``: ``successes(chain, draw, system, question)``.

    On scored categories the variable is ``count``.

    Parameters
    ----------
    outcomes : Outcomes
    posterior : xarray.Dataset
        With draws of ``mean_p`` (complete pooling, and categories) and ``icc`` (categories).
    prior : Prior
        Without pooling the likelihood of a question is a known constant under its fixed prior.
    scale : Scale
    keep : sequence of str
        The group is left out where it is large, unless ``"log_likelihood"`` is among these.
    prior_counts : ndarray, shape (system, question, category), optional
        Discounted prior trials. They are part of a fixed prior.
    difficulties : sequence of Difficulty, optional
        Of right and wrong under partial pooling: one for each system, of all draws, as from
        `bayesatk.results.difficulty.difficulty_draws`.
    judged : bool
        Whether a judge that errs marked the trials; then it is the likelihood of marks, given the
        draws of its rates in `posterior`.

    Notes
    -----
    ArviZ refuses to smooth importance weights that are all equal. Where the log-likelihood of a
    question is the same in every draw, the draws therefore carry an even variation around it, of
    1e-11 from end to end: leave-one-out finds the constant, and a Pareto k far below zero.
    """
    sizes = posterior.sizes["chain"], posterior.sizes["draw"]
    large = sizes[0] * sizes[1] * outcomes.trials.size > AUTOMATIC
    fixed = prior if isinstance(prior, BetaPrior | DirichletPrior) else None
    pooled = "mean_p" in posterior
    if not (fixed or pooled) or (large and "log_likelihood" not in keep):
        return {}
    counts = scale.counts(outcomes)
    values = np.empty((len(counts), sizes[0] * sizes[1], counts.shape[1]))
    for system, own in enumerate(counts):
        if judged:
            marked = States.of(own[:, 1], own.sum(axis=1))
            by_state = _log_marked(marked, posterior, system, fixed, difficulties)
            values[system] = with_variation(by_state)[:, marked.which]
        elif fixed and not pooled:
            before = None if prior_counts is None else prior_counts[system]
            by_question = _fixed_log_pmf(own, fixed, before)
            values[system] = with_variation(np.broadcast_to(by_question, values.shape[1:]))
        else:
            states, which = np.unique(own, axis=0, return_inverse=True)
            if difficulties is not None:
                by_state = difficulties[system].log_counts(states[:, 1], states.sum(axis=1))
            else:
                by_state = _log_pmf(states, *_hyper_draws(posterior, system, scale))
            values[system] = with_variation(by_state)[:, which.ravel()]
    group = likelihood_group(outcomes, scale, posterior, np.swapaxes(values, 0, 1))
    return {"log_likelihood": group}


def likelihood_group(
    outcomes: Outcomes, scale: Scale, posterior: xr.Dataset, values: Array
) -> xr.Dataset:
    """Return log probabilities (draws, system, question) as a group of a result."""
    sizes = posterior.sizes["chain"], posterior.sizes["draw"]
    shaped = values.reshape(*sizes, *values.shape[1:])
    return xr.Dataset(
        {scale.variable: (_DIMS, shaped)},
        coords={name: posterior[name] for name in ("chain", "draw")}
        | {name: outcomes.dataset[name].values for name in ("system", "question")},
        attrs={"sample_dims": ["chain", "draw"], "unit": UNIT},
    )


_DIMS = ("chain", "draw", "system", "question")
RATES = ("sensitivity", "false_positive_rate")  # of a judge, as variables of a result


def _log_marked(
    states: States,
    posterior: xr.Dataset,
    system: int,
    fixed: BetaPrior | DirichletPrior | None,
    difficulties: Sequence[Difficulty] | None,
) -> Array:
    """Log probability of every state's marks by a judge in every draw; shape (draws, states)."""
    own = posterior.isel(system=system)
    rates = np.stack([own[name].transpose("chain", "draw").values.ravel() for name in RATES], -1)
    if difficulties is not None:
        return log_marked(replace(difficulties[system].nodes, rates=rates), states)
    if "mean_p" in own:
        p = own["mean_p"].transpose("chain", "draw").values.ravel()
        mark = (rates[:, 1] + (rates[:, 0] - rates[:, 1]) * p)[:, None]
        wrong = states.trials - states.successes
        return xlogy(states.successes, mark) + xlog1py(wrong, -mark) + states.log_ways
    assert isinstance(fixed, BetaPrior)  # judges mark right and wrong
    alpha, beta = (np.full(len(rates), one) for one in (fixed.alpha, fixed.beta))
    weight = np.full(len(rates), 1.0 / len(rates))
    return log_marked(replace(Nodes.betas(alpha, beta, weight), rates=rates), states)


def _hyper_draws(posterior: xr.Dataset, system: int, scale: Scale) -> tuple[Array, Array]:
    """Mean vectors (draws, categories), and one over the sum of the Dirichlet parameters."""
    own = posterior.isel(system=system)
    mean = scale.vectors(own["mean_p"].transpose("chain", "draw", *scale.axes).values)
    flat = mean.reshape(-1, mean.shape[-1])
    if "icc" not in own:
        return flat, np.zeros(len(flat))
    icc = own["icc"].transpose("chain", "draw").values.ravel()
    return flat, icc / np.maximum(1.0 - icc, np.finfo(float).tiny)


def _log_pmf(states: NDArray[np.int64], mean: Array, ratio: Array) -> Array:
    """Log probability of every state's counts in every draw; shape (draws, states)."""
    blocks = [
        log_counts(states, mean[part, None], ratio[part, None])
        for part in _blocks(len(mean), states.size)
    ]
    return np.concatenate(blocks)


def _blocks(draws: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, width))
    for start in range(0, draws, step):
        yield slice(start, start + step)


def _fixed_log_pmf(
    counts: NDArray[np.int64], prior: BetaPrior | DirichletPrior, before: Array | None
) -> Array:
    """Log probability of every question's counts under a prior of its own; shape (questions,)."""
    alpha = prior.vector(counts.shape[1])
    alpha = alpha + np.zeros(counts.shape) if before is None else alpha + before
    total = alpha.sum(axis=-1)
    return log_counts(counts, alpha / total[:, None], 1.0 / total)


def with_variation(values: Array) -> Array:
    """Log-likelihoods (draws, states), of which none is the same in every draw."""
    constant = values.min(axis=0) == values.max(axis=0)
    even = _VARIATION * (np.linspace(-0.5, 0.5, len(values)) if len(values) > 1 else np.zeros(1))
    size = np.where(constant & np.isfinite(values[0]), np.maximum(1.0, np.abs(values[0])), 0.0)
    return np.asarray(values + even[:, None] * size)
