"""Pointwise log-likelihood of results: one value per question, its success probability integrated.

The unit that is left out, and that models are compared on, is the question. The likelihood of its
count is taken given the draw's hyperparameters with the question's own p integrated out: on draws
of p itself, Pareto-smoothed importance sampling is wrong by hundreds.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from bayesatk.core.priors import AnyPrior, CategoryPrior, HyperPrior
from bayesatk.outcomes import Outcomes

Array = NDArray[np.float64]
_AUTOMATIC = 1_000_000  # values (8 MB) up to which the group is filled without being asked for
_BLOCK = 4_000_000


def log_likelihood_groups(
    outcomes: Outcomes, posterior: xr.Dataset, prior: AnyPrior, keep: Sequence[str]
) -> dict[str, xr.Dataset]:
    """Return the group ``log_likelihood``: ``successes(chain, draw, system, question)``.

    Parameters
    ----------
    keep : sequence of str
        The group is left out where it is large, unless ``"log_likelihood"`` is among these.
    outcomes : Outcomes
    posterior : xarray.Dataset
        With draws of ``mean_p`` and ``icc`` (partial pooling) or ``mean_p`` (complete).
    prior : Prior
        A Beta prior and no ``mean_p`` is no pooling: the likelihood is then the same in every draw,
        importance sampling has nothing to work on, and there is no group.
    """
    sizes = posterior.sizes["chain"], posterior.sizes["draw"]
    large = sizes[0] * sizes[1] * outcomes.trials.size > _AUTOMATIC
    if "mean_p" not in posterior or (large and "log_likelihood" not in keep):
        return {}
    if isinstance(prior, CategoryPrior):
        return {"log_likelihood": _category_group(outcomes, posterior)}
    values = np.empty((*outcomes.trials.shape[:1], sizes[0] * sizes[1], outcomes.trials.shape[1]))
    for system in range(len(values)):
        pairs = np.stack([outcomes.successes.values[system], outcomes.trials.values[system]])
        states, which = np.unique(pairs, axis=1, return_inverse=True)
        draws = {
            name: posterior[name].isel(system=system).transpose("chain", "draw").values.ravel()
            for name in ("mean_p", "icc")
            if name in posterior
        }
        if "inflation" in posterior:
            shares = posterior["inflation"].isel(system=system)
            parts = shares.transpose("component", "chain", "draw").values.reshape(3, -1)
            draws |= dict(zip(("never", "always", "between"), parts, strict=True))
        by_state = _log_pmf(states[0], states[1], draws, prior)
        values[system] = by_state[:, which.ravel()]
    shape = (len(values), *sizes, values.shape[2])
    group = xr.Dataset(
        {
            "successes": (
                ("chain", "draw", "system", "question"),
                np.moveaxis(values.reshape(shape), 0, 2),
            )
        },
        coords={
            "chain": posterior["chain"], "draw": posterior["draw"],
            "system": outcomes.dataset["system"].values,
            "question": outcomes.dataset["question"].values,
        },
        attrs={"sample_dims": ["chain", "draw"]},
    )  # fmt: skip
    return {"log_likelihood": group}


def _category_group(outcomes: Outcomes, posterior: xr.Dataset) -> xr.Dataset:
    """Log probability of every question's category counts, ``count(.., system, question)``."""
    counts = outcomes.dataset["count"]
    order = ("chain", "draw", "category")
    pieces = []
    for system in range(len(outcomes.systems)):
        own = counts.values[system]
        states, which = np.unique(own, axis=0, return_inverse=True)
        mean = posterior["mean_p"].isel(system=system).transpose(*order).values
        flat = mean.reshape(-1, mean.shape[-1])
        ways = gammaln(states.sum(axis=1) + 1.0) - gammaln(states + 1.0).sum(axis=1)
        if "icc" in posterior:
            icc = posterior["icc"].isel(system=system).transpose("chain", "draw").values.ravel()
            by_state = _dirichlet_multinomial(states, flat, icc / (1.0 - icc)) + ways
        else:
            by_state = xlogy(states[None], flat[:, None]).sum(axis=-1) + ways
        pieces.append(by_state[:, which.ravel()].reshape(*mean.shape[:2], -1))
    return xr.Dataset(
        {"count": (("chain", "draw", "system", "question"), np.stack(pieces, axis=2))},
        coords={name: posterior[name] for name in ("chain", "draw")}
        | {name: outcomes.dataset[name].values for name in ("system", "question")},
        attrs={"sample_dims": ["chain", "draw"]},
    )


def _dirichlet_multinomial(states: NDArray[np.int64], mean: Array, ratio: Array) -> Array:
    """Products as in `_beta_binomial`, one category after another."""
    result = np.zeros((len(mean), len(states)))
    steps = np.arange(int(states.sum(axis=1).max(initial=1)))

    def rises(base: Array, counts: NDArray[np.int64]) -> Array:
        with np.errstate(divide="ignore"):
            logs = np.cumsum(np.log(base[:, None] + ratio[:, None] * steps), axis=1)
        return np.concatenate([np.zeros((len(base), 1)), logs], axis=1)[:, counts]

    for category in range(states.shape[1]):
        result += rises(mean[:, category], states[:, category])
    return np.asarray(result - rises(np.ones(len(mean)), states.sum(axis=1)))


def _log_pmf(
    c: NDArray[np.int64], n: NDArray[np.int64], draws: dict[str, Array], prior: AnyPrior
) -> Array:
    """Log probability of every state's count in every draw; shape (draws, states)."""
    ways = gammaln(n + 1.0) - gammaln(c + 1.0) - gammaln(n - c + 1.0)
    if isinstance(prior, HyperPrior):
        mean, ratio = draws["mean_p"], draws["icc"] / (1.0 - draws["icc"])
        log_pmf = np.asarray(_beta_binomial(c, n, mean, ratio) + ways)
        if "never" not in draws:
            return log_pmf
        never, always, between = (draws[name][:, None] for name in ("never", "always", "between"))
        certain = never * (c == 0) + always * (c == n)
        return np.asarray(np.log(certain + between * np.exp(log_pmf)))
    p = draws["mean_p"][:, None]
    return np.asarray(xlogy(c, p) + xlog1py(n - c, -p) + ways)


def _beta_binomial(c: NDArray[np.int64], n: NDArray[np.int64], mean: Array, ratio: Array) -> Array:
    """Products of ``(m + v u)``, ``(1 - m + v u)`` and ``1 / (1 + v u)``, as sums of logarithms.

    With ``u = r/(1-r)``; nothing cancels when the questions are nearly alike.
    """
    result = np.empty((len(mean), len(c)))
    steps = np.arange(int(n.max(initial=1)))
    width = max(1, _BLOCK // max(1, len(steps)))
    for start in range(0, len(mean), width):
        part = slice(start, start + width)
        u, m = ratio[part, None] * steps, mean[part, None]
        rises = []
        for base in (m, 1.0 - m, np.ones_like(m)):
            zero = np.zeros((len(m), 1))
            with np.errstate(divide="ignore"):
                logs = np.cumsum(np.log(base + u), axis=1)
            rises.append(np.concatenate([zero, logs], axis=1))
        result[part] = rises[0][:, c] + rises[1][:, n - c] - rises[2][:, n]
    return result
