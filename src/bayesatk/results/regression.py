"""Groups that ArviZ checks models with, of results whose questions have covariates."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit, logit

from bayesatk.core.question.dirichlet_multinomial import log_counts
from bayesatk.data.design import Basis, Design
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import RIGHT_WRONG, log_density_of_logit
from bayesatk.priors import HyperPrior
from bayesatk.results import likelihood, predictive
from bayesatk.results.result import Result

Array = NDArray[np.float64]
_DIMS = ("chain", "draw", "system")
_LEAST, _MOST = 5e-324, 1e300  # of a Beta parameter
_STEP = 1e-4  # of differences, in logits


def regression_groups(
    outcomes: Outcomes,
    posterior: xr.Dataset,
    prior: HyperPrior,
    design: Design,
    keep: Sequence[str],
    rng: np.random.Generator,
) -> dict[str, xr.Dataset]:
    """Return ``log_likelihood``, ``log_prior``, ``prior`` and the two predictive groups.

    Parameters
    ----------
    outcomes : Outcomes
    posterior : xarray.Dataset
        With draws of ``coefficients`` and ``icc``.
    prior : HyperPrior
    design : Design
    keep : sequence of str
        Groups that are large are left out, unless they are named here.
    rng : numpy.random.Generator

    Notes
    -----
    Replicates are of new questions with the same covariates, as those of other results are of
    questions like these.
    """
    basis = design.basis
    groups = {"log_prior": _log_prior(posterior, prior, basis)}
    groups["prior"] = _draw_prior(posterior, prior, basis, rng)
    size = posterior.sizes["chain"] * posterior.sizes["draw"] * outcomes.trials.size
    if size <= predictive.AUTOMATIC or "predictive" in keep:
        for name, own in (("posterior", posterior), ("prior", groups["prior"])):
            groups[f"{name}_predictive"] = _replicates(outcomes, own, basis, rng)
    if size <= likelihood.AUTOMATIC or "log_likelihood" in keep:
        groups["log_likelihood"] = _log_likelihood(outcomes, posterior, basis)
    return groups


def mean_and_ratio(draws: xr.Dataset, basis: Basis) -> tuple[Array, Array]:
    """Logits of the means of questions (chain, draw, system, question), and icc / (1 - icc)."""
    coefficients = draws["coefficients"].transpose(*_DIMS, "coefficient").values
    icc = draws["icc"].transpose(*_DIMS).values
    logits = basis.logits(coefficients) @ basis.rows.T
    return logits, icc / np.maximum(1.0 - icc, np.finfo(float).tiny)


def _log_likelihood(outcomes: Outcomes, posterior: xr.Dataset, basis: Basis) -> xr.Dataset:
    counts = RIGHT_WRONG.counts(outcomes)
    sizes = tuple(posterior.sizes[name] for name in _DIMS)
    found = np.empty((*sizes, counts.shape[1]))
    for chain in range(sizes[0]):
        logits, ratio = mean_and_ratio(posterior.isel(chain=[chain]), basis)
        mean = np.stack([expit(-logits[0]), expit(logits[0])], axis=-1)
        found[chain] = log_counts(counts, mean, ratio[0, ..., None])
    return _labelled(outcomes, posterior, "successes", found)


def _replicates(
    outcomes: Outcomes, draws: xr.Dataset, basis: Basis, rng: np.random.Generator
) -> xr.Dataset:
    logits, ratio = mean_and_ratio(draws, basis)
    with np.errstate(over="ignore"):
        alpha, beta = (
            np.clip(expit(own) / np.maximum(ratio, 1.0 / _MOST)[..., None], _LEAST, _MOST)
            for own in (logits, -logits)
        )
    counts = rng.binomial(outcomes.trials.values, rng.beta(alpha, beta))
    return _labelled(outcomes, draws, "successes", counts)


def _labelled(outcomes: Outcomes, draws: xr.Dataset, name: str, values: Array) -> xr.Dataset:
    coords = {one: draws[one].values for one in _DIMS}
    coords["question"] = outcomes.dataset["question"].values
    attrs = {"sample_dims": ["chain", "draw"]}
    return xr.Dataset({name: ((*_DIMS, "question"), values)}, coords, attrs)


def _log_prior(posterior: xr.Dataset, prior: HyperPrior, basis: Basis) -> xr.Dataset:
    """Log density of each draw on the scale of logits, to be raised to powers."""
    coefficients = posterior["coefficients"].transpose(*_DIMS, "coefficient").values
    logits = basis.logits(coefficients)
    slopes = -0.5 * (logits[..., 1:] ** 2).sum(axis=-1) / prior.slope_sd**2
    icc = posterior["icc"].transpose(*_DIMS).values
    found = {
        "coefficients": (_DIMS, log_density_of_logit(expit(logits[..., 0]), *prior.mean) + slopes),
        "icc": (_DIMS, log_density_of_logit(icc, *prior.icc)),
    }
    coords = {name: posterior[name] for name in _DIMS}
    return xr.Dataset(found, coords, {"sample_dims": ["chain", "draw"]})


def _draw_prior(
    posterior: xr.Dataset, prior: HyperPrior, basis: Basis, rng: np.random.Generator
) -> xr.Dataset:
    coords = predictive.prior_coords(posterior)
    shape = 1, predictive.PRIOR_DRAWS, len(coords["system"])
    logits = draw_logits(prior, basis, shape, rng)
    found = {
        "coefficients": ((*_DIMS, "coefficient"), basis.coefficients(logits)),
        "icc": (_DIMS, rng.beta(*prior.icc, size=shape)),
    }
    coords["coefficient"] = posterior["coefficient"].values
    return xr.Dataset(found, coords, {"sample_dims": ["chain", "draw"]})


def draw_logits(
    prior: HyperPrior, basis: Basis, shape: tuple[int, ...], rng: np.random.Generator
) -> Array:
    """Draw coefficients of the basis from the prior, (*shape, directions)."""
    mean = np.clip(rng.beta(*prior.mean, size=shape), 1e-300, 1.0 - 2.0**-53)
    slopes = prior.slope_sd * rng.standard_normal((*shape, len(basis.back) - 1))
    return np.concatenate([logit(mean)[..., None], slopes], axis=-1)


def question_scores(result: Result, system: int, theta: Array) -> Array:
    """Gradient of each question's log-likelihood, (questions, coefficients + 1).

    Parameters
    ----------
    result : Result
        With covariates.
    system : int
    theta : ndarray, shape (coefficients + 1,)
        Coefficients, and log(icc / (1 - icc)), at which it is taken, by differences.
    """
    design = result.design
    assert design is not None
    columns = np.column_stack([np.ones(len(design.frame)), design.columns(design.frame)])
    steps = _STEP * np.eye(len(theta)) / np.append(np.abs(columns).max(axis=0), 1.0)[:, None]

    def logs(at: Array) -> Array:
        x = columns @ at[:-1]
        mean = np.stack([expit(-x), expit(x)], axis=-1)
        return np.asarray(log_counts(result.counts[system], mean, np.exp(at[-1])))

    pairs = [(logs(theta + h) - logs(theta - h)) / (2.0 * h.max()) for h in steps]
    return np.stack(pairs, axis=1)
