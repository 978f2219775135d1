"""Groups that ArviZ checks models with: replicated counts, prior draws, log prior densities.

Replicates are of questions like these: every question's success probability is drawn anew from the
difficulty distribution, as in the group ``log_likelihood``, so that leave-one-out probability
integral transforms compare like with like.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import betaln, xlog1py, xlogy

from bayesatk.core.priors import AnyPrior, BetaPrior, HyperPrior
from bayesatk.outcomes import Outcomes

Array = NDArray[np.float64]
_AUTOMATIC = 200_000  # replicated counts up to which they are drawn without being asked for
_PRIOR_DRAWS = 500


def predictive_groups(
    outcomes: Outcomes,
    posterior: xr.Dataset,
    prior: AnyPrior,
    keep: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """Return ``log_prior``, ``prior``, ``posterior_predictive`` and ``prior_predictive``.

    Parameters
    ----------
    outcomes : Outcomes
    posterior : xarray.Dataset
        With draws of ``mean_p`` (and ``icc``). Without, on scored categories, or with
        ``inflation``, there is nothing to return.
    prior : Prior
        An improper one has no draws.
    keep : sequence of str
        The two predictive groups are left out where they are large, unless ``"predictive"`` is
        among these.
    rng : numpy.random.Generator
    """
    if not isinstance(prior, BetaPrior | HyperPrior) or "mean_p" not in posterior:
        return {}
    if "inflation" in posterior:  # a prior of its own, which no closed form shares
        return {}
    groups = {"log_prior": _log_prior(posterior, prior)}
    proper = not isinstance(prior, HyperPrior) or prior.proper
    if proper:
        groups["prior"] = _prior_draws(posterior, prior, rng)
    size = posterior.sizes["chain"] * posterior.sizes["draw"] * outcomes.trials.size
    if size <= _AUTOMATIC or "predictive" in keep:
        groups["posterior_predictive"] = _replicates(outcomes, posterior, rng)
        if proper:
            groups["prior_predictive"] = _replicates(outcomes, groups["prior"], rng)
    return groups


def _log_density(x: xr.DataArray, a: float, b: float) -> xr.DataArray:
    """Log density of ``logit x`` when x is Beta(a, b); up to a constant where b <= 0 (improper).

    On the logit scale, as in `bayesatk.core.priors.power_scaled`: there a uniform prior is not
    constant, so that raising it to a power means something.
    """
    constant = betaln(a, b) if b > 0 else 0.0
    return x.copy(data=xlogy(a, x.values) + xlog1py(b, -x.values) - constant)


def _parameters(prior: BetaPrior | HyperPrior) -> dict[str, tuple[float, float]]:
    """Beta parameters of the hyperparameters' priors."""
    if isinstance(prior, HyperPrior):
        return {"mean_p": prior.mean, "icc": prior.icc}
    return {"mean_p": (prior.alpha, prior.beta)}


def _log_prior(posterior: xr.Dataset, prior: BetaPrior | HyperPrior) -> xr.Dataset:
    variables = {
        name: _log_density(posterior[name], *pair) for name, pair in _parameters(prior).items()
    }
    return xr.Dataset(variables).assign_attrs(sample_dims=["chain", "draw"])


def _prior_draws(
    posterior: xr.Dataset, prior: BetaPrior | HyperPrior, rng: np.random.Generator
) -> xr.Dataset:
    systems = posterior["system"].values
    shape = (1, _PRIOR_DRAWS, len(systems))
    variables = {
        name: (("chain", "draw", "system"), rng.beta(*pair, size=shape))
        for name, pair in _parameters(prior).items()
    }
    coords = {"chain": [0], "draw": np.arange(_PRIOR_DRAWS), "system": systems}
    return xr.Dataset(variables, coords, {"sample_dims": ["chain", "draw"]})


def _replicates(outcomes: Outcomes, draws: xr.Dataset, rng: np.random.Generator) -> xr.Dataset:
    """Draw counts of new questions with the same trials, one set for every draw."""
    trials = outcomes.trials.transpose("system", "question")
    mean = draws["mean_p"].transpose("chain", "draw", "system").values[..., None]
    icc = None
    if "icc" in draws:
        icc = draws["icc"].transpose("chain", "draw", "system").values[..., None]
    dims = ("chain", "draw", "system", "question")
    counts = replicated_counts(mean, icc, trials.values, rng)
    coords = {name: draws[name].values for name in dims[:3]} | {
        "question": outcomes.dataset["question"].values
    }
    return xr.Dataset({"successes": (dims, counts)}, coords, {"sample_dims": ["chain", "draw"]})


def replicated_counts(
    mean: Array, icc: Array | None, trials: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw counts of new questions given the hyperparameters; all broadcast together.

    Parameters
    ----------
    mean, icc : ndarray
        Of the difficulty distribution; no icc is one probability for all.
    trials : ndarray of int
    rng : numpy.random.Generator
    """
    if icc is None:
        return rng.binomial(trials, mean)
    total, tiny = (1.0 - icc) / icc, np.nextafter(0.0, 1.0)
    shape = np.broadcast_shapes(mean.shape, icc.shape, trials.shape)
    alpha, beta = np.maximum(mean * total, tiny), np.maximum((1.0 - mean) * total, tiny)
    return rng.binomial(trials, rng.beta(alpha, beta, shape))
