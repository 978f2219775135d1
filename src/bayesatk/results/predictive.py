"""Groups that ArviZ checks models with: replicated counts, prior draws, log prior densities.

Replicates are of questions like these: every question's success probability is drawn anew from the
difficulty distribution, as in the group ``log_likelihood``, so that leave-one-out probability
integral transforms compare like with like.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, xlog1py, xlogy

from bayesatk.core.difficulty import Difficulty
from bayesatk.data.outcomes import Outcomes
from bayesatk.priors import (
    AnswerPrior,
    AnyPrior,
    BetaPrior,
    CategoryPrior,
    CrossedPrior,
    DirichletHyperPrior,
    HyperPrior,
    Prior,
)
from bayesatk.results.difficulty import draw_prior, has_difficulty_group, summary_variables

Array = NDArray[np.float64]
_AUTOMATIC = 200_000  # replicated counts up to which they are drawn without being asked for
_PRIOR_DRAWS = 500
_TINY = 5e-324  # the smallest number above zero
_DIMS = ("chain", "draw", "system")
_LEAST = 1e-300  # of an icc: its inverse is a number


def predictive_groups(
    outcomes: Outcomes,
    posterior: xr.Dataset,
    prior: AnyPrior,
    keep: Sequence[str],
    rng: np.random.Generator,
    difficulties: Sequence[Difficulty] | None = None,
) -> dict[str, xr.Dataset]:
    """Return ``log_prior``, ``prior``, ``posterior_predictive`` and ``prior_predictive``.

    Parameters
    ----------
    outcomes : Outcomes
    posterior : xarray.Dataset
        With draws of ``mean_p`` (and ``icc``). Without, there is nothing to return.
    prior : Prior or CategoryPrior
        An improper one has no draws.
    keep : sequence of str
        The two predictive groups are left out where they are large, unless ``"predictive"`` is
        among these.
    rng : numpy.random.Generator
    difficulties : sequence of Difficulty, optional
        Of right and wrong under partial pooling: one for each system, of all draws.

    Notes
    -----
    ``log_prior`` is left out unless the difficulty family is the Beta alone. It is there to be
    raised to powers (`arviz.psense`); of several families that would also change their weights, by
    normalising constants that no draw knows, and ``mean_p`` and ``icc`` of a whole distribution are
    not its hyperparameters.
    """
    if "mean_p" not in posterior or isinstance(prior, AnswerPrior | CrossedPrior):
        return {}
    size = posterior.sizes["chain"] * posterior.sizes["draw"] * outcomes.dataset["count"].size // 2
    replicated = size <= _AUTOMATIC or "predictive" in keep
    if isinstance(prior, HyperPrior) and difficulties is not None:
        return _of_difficulties(outcomes, posterior, prior, difficulties, replicated, rng)
    known = _Hyper.of(prior, posterior.sizes.get("category", 2))
    groups = {"log_prior": known.log_density(posterior), "prior": known.draws(posterior, rng)}
    if replicated:
        groups["posterior_predictive"] = _replicates(outcomes, posterior, rng)
        groups["prior_predictive"] = _replicates(outcomes, groups["prior"], rng)
    return groups


def _of_difficulties(
    outcomes: Outcomes,
    posterior: xr.Dataset,
    prior: HyperPrior,
    difficulties: Sequence[Difficulty],
    replicated: bool,
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """Return the groups of right and wrong under partial pooling."""
    groups = {}
    if not has_difficulty_group(prior):
        groups["log_prior"] = _Hyper.of(prior, 2).log_density(posterior)
    drawn = []
    if prior.proper:
        drawn = [draw_prior(prior, _PRIOR_DRAWS, rng)[0] for _ in difficulties]
        shape = 1, _PRIOR_DRAWS, len(drawn)
        groups["prior"] = xr.Dataset(
            {
                name: (_DIMS, values.reshape(shape))
                for name, values in summary_variables(drawn, prior).items()
            },
            _prior_coords(posterior),
            {"sample_dims": ["chain", "draw"]},
        )
    if replicated:
        groups["posterior_predictive"] = _replicates(outcomes, posterior, rng, difficulties)
        if drawn:
            groups["prior_predictive"] = _replicates(outcomes, groups["prior"], rng, drawn)
    return groups


def _prior_coords(posterior: xr.Dataset) -> dict[str, Any]:
    systems = posterior["system"].values
    return {"chain": [0], "draw": np.arange(_PRIOR_DRAWS), "system": systems}


@dataclass(frozen=True)
class _Hyper:
    """Prior of the hyperparameters: Dirichlet parameters of the mean, Beta ones of the icc."""

    mean: Array
    icc: tuple[float, float] | None
    on_categories: bool

    @classmethod
    def of(cls, prior: Prior | CategoryPrior, categories: int) -> "_Hyper":
        if isinstance(prior, BetaPrior):
            return cls(np.array([prior.alpha, prior.beta]), None, False)
        if isinstance(prior, HyperPrior):
            return cls(np.array(prior.mean), prior.icc, False)
        icc = prior.icc if isinstance(prior, DirichletHyperPrior) else None
        return cls(prior.vector(categories), icc, True)

    def log_density(self, posterior: xr.Dataset) -> xr.Dataset:
        """Log density of the logits of each draw; up to a constant where improper.

        On the logit scale, as in `bayesatk.prior_choice.power_scaled`: there a uniform prior
        is not constant, so that raising it to a power means something.
        """
        mean = posterior["mean_p"]
        if self.on_categories:
            logs = np.log(np.maximum(mean.transpose(..., "category").values, _TINY))
            density = logs @ self.mean - gammaln(self.mean).sum() + gammaln(self.mean.sum())
            first = mean.isel(category=0, drop=True).transpose("chain", "draw", "system")
            order = mean.transpose(..., "category").dims[:-1]
            found = {"mean_p": xr.DataArray(density, dims=order).transpose(*first.dims)}
        else:
            found = {"mean_p": _log_beta(mean, *self.mean)}
        if self.icc is not None and "icc" in posterior:
            found["icc"] = _log_beta(posterior["icc"], *self.icc)
        coords = {name: posterior[name] for name in ("chain", "draw", "system")}
        plain = {name: each.drop_vars(list(each.coords)) for name, each in found.items()}
        return xr.Dataset(plain, coords).assign_attrs(sample_dims=["chain", "draw"])

    def draws(self, posterior: xr.Dataset, rng: np.random.Generator) -> xr.Dataset:
        """Draw hyperparameters from the prior."""
        coords = _prior_coords(posterior)
        shape = 1, _PRIOR_DRAWS, len(coords["system"])
        found: dict[str, tuple[tuple[str, ...], Array]] = {}
        if self.on_categories:
            found["mean_p"] = (*_DIMS, "category"), rng.dirichlet(self.mean, size=shape)
            coords["category"] = posterior["category"].values
        else:
            alpha, beta = (float(one) for one in self.mean)
            found["mean_p"] = _DIMS, rng.beta(alpha, beta, size=shape)
        if self.icc is not None:
            found["icc"] = (_DIMS, rng.beta(*self.icc, size=shape))
        return xr.Dataset(found, coords, {"sample_dims": ["chain", "draw"]})


def _log_beta(x: xr.DataArray, a: float, b: float) -> xr.DataArray:
    """Log density of ``logit x`` when x is Beta(a, b); up to a constant where b <= 0 (improper)."""
    constant = betaln(a, b) if b > 0 else 0.0
    return x.copy(data=xlogy(a, x.values) + xlog1py(b, -x.values) - constant)


def _replicates(
    outcomes: Outcomes,
    draws: xr.Dataset,
    rng: np.random.Generator,
    difficulties: Sequence[Difficulty] | None = None,
) -> xr.Dataset:
    """Draw counts of new questions with the same trials, one set for every draw."""
    trials = outcomes.trials.transpose("system", "question").values
    coords = {name: draws[name].values for name in _DIMS}
    coords["question"] = outcomes.dataset["question"].values
    attrs = {"sample_dims": ["chain", "draw"]}
    dims = (*_DIMS, "question")
    if "category" in draws.dims:
        mean = draws["mean_p"].transpose(*_DIMS, "category").values[..., None, :]
        icc = draws["icc"].transpose(*_DIMS).values[..., None] if "icc" in draws else None
        found = replicated_categories(mean, icc, trials, rng)
        coords["category"] = draws["category"].values
        return xr.Dataset({"count": ((*dims, "category"), found)}, coords, attrs)
    if difficulties is None:  # one probability for all
        counts = rng.binomial(trials, draws["mean_p"].transpose(*_DIMS).values[..., None])
    else:
        each = [one.draw_counts(own, rng) for one, own in zip(difficulties, trials, strict=True)]
        shape = draws.sizes["chain"], draws.sizes["draw"], *trials.shape
        counts = np.stack(each, axis=1).reshape(shape)
    return xr.Dataset({"successes": (dims, counts)}, coords, attrs)


def replicated_categories(
    mean: Array, icc: Array | None, trials: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw counts by category of new questions given the hyperparameters.

    Parameters
    ----------
    mean : ndarray, shape (..., 1, category)
    icc : ndarray, shape (..., 1), optional
        No icc is one vector of probabilities for all.
    trials : ndarray of int, shape (..., question)
    rng : numpy.random.Generator
    """
    shape = (*np.broadcast_shapes(mean.shape[:-1], trials.shape), mean.shape[-1])
    p = np.broadcast_to(mean, shape)
    if icc is not None:
        concentration = ((1.0 - icc) / np.maximum(icc, _LEAST))[..., None]
        with np.errstate(under="ignore"):
            alpha = np.maximum(mean * concentration, _TINY)
        gamma = rng.standard_gamma(np.broadcast_to(alpha, shape))
        total = gamma.sum(axis=-1, keepdims=True)
        # All underflow where the questions are all or none: one category, by its mean.
        certain = np.eye(shape[-1])[_chosen(p, rng)]
        with np.errstate(under="ignore"):
            p = np.where(total > 0.0, gamma / np.where(total > 0.0, total, 1.0), certain)
    return rng.multinomial(np.broadcast_to(trials, shape[:-1]), p)


def _chosen(p: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one category for every vector of probabilities."""
    level = np.cumsum(p, axis=-1)
    return (level < rng.random((*p.shape[:-1], 1)) * level[..., -1:]).sum(axis=-1)
