"""Beta-binomial regression of successes on covariates of questions, as a PyMC model."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.data.design import Design
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.metrics.grid import Metric, MetricGrid
from bayesatk.models.builders import coordinates, model_data
from bayesatk.models.derived import draw_metrics
from bayesatk.models.difficulty_families import beta_parameters
from bayesatk.models.parts import Part
from bayesatk.priors import HyperPrior
from bayesatk.priors.choice import prior_of
from bayesatk.results.regression import mean_and_ratio

Array = NDArray[np.float64]
_NAMES = {"coefficients": ("coefficient",), "icc": ()}  # of hyperparameters, with further dims
_LARGEST, _SMALLEST = 1e300, 5e-324  # of a Beta parameter


def build_regression(
    data: object, covariates: str | Sequence[str], *, prior: HyperPrior | None = None
) -> pm.Model:
    """Beta-binomial regression of successes on covariates of the questions.

    ``p`` of a question is Beta with mean ``expit(x b)`` and one intraclass correlation, integrated
    out: successes are Beta-binomial. Systems are independent.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Right and wrong, with the covariates.
    covariates : str or sequence of str
        As in `bayesatk.evaluate`.
    prior : HyperPrior, optional

    Returns
    -------
    pymc.Model
        Variables ``average_p(system)``, the mean at average covariates; ``slopes(system,
        direction)`` in the basis of uncorrelated covariates; ``coefficients(system, coefficient)``
        of the formula, made of both; ``icc(system)``. Observed ``successes``.

    See Also
    --------
    bayesatk.evaluate : the same posterior without sampling.

    Examples
    --------
    >>> import bayesatk
    >>> runs = bayesatk.tally([[1, 0], [1, 1], [0, 0]], covariates={"minutes": [2, 1, 8]})
    >>> [variable.name for variable in build_regression(runs, ["minutes"]).free_RVs]
    ['average_p', 'slopes', 'icc']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    return regression_model(
        outcomes,
        Design.of(outcomes.dataset, covariates),
        prior_of(HyperPrior, prior, "with covariates"),
    )


def regression_model(outcomes: Outcomes, design: Design, prior: HyperPrior) -> pm.Model:
    """Return the model of a design that has been read."""
    basis = design.basis
    coords = {
        **coordinates(outcomes),
        "coefficient": design.coefficients,
        "direction": np.arange(1, len(design.coefficients)),
    }
    # Plain numbers would be worked on in single precision.
    mean, icc = (np.array(one, np.float64) for one in (prior.mean, prior.icc))
    with pm.Model(coords=coords) as model:
        average = pm.Beta("average_p", mean[0], mean[1], dims="system")
        slopes = pm.Normal("slopes", 0.0, prior.slope_sd, dims=("system", "direction"))
        correlation = pm.Beta("icc", icc[0], icc[1], dims="system")
        own = pt.concatenate([pm.math.logit(average)[:, None], slopes], axis=1)
        pm.Deterministic("coefficients", own @ basis.back.T, dims=("system", "coefficient"))
        alpha, beta = beta_parameters(pm.math.sigmoid(own @ basis.rows.T), correlation[:, None])
        dims = ("system", "question")
        data = model_data(outcomes, "full")
        trials = pm.Data("trials", data["trials"], dims=dims)
        observed = pm.Data("successes_data", data["successes_data"], dims=dims)
        pm.BetaBinomial("successes", alpha, beta, trials, observed=observed, dims=dims)
    return model


def regression_part(
    outcomes: Outcomes,
    grid: MetricGrid,
    posterior: xr.Dataset,
    design: Design,
    keep_p: bool,
    rng: np.random.Generator,
) -> Part:
    """Metrics, coefficients, and p when kept, from draws of the parameters.

    Given its parameters and trials, p of a question is Beta; metrics are latent values of it.
    """
    logits, ratio = mean_and_ratio(posterior, design.basis)
    values, kept = [], []
    c, n = outcomes.successes.values, outcomes.trials.values
    for system in range(len(outcomes.systems)):
        x = logits[:, :, system].reshape(-1, n.shape[1])
        total = 1.0 / np.maximum(ratio[:, :, system].reshape(-1, 1), 1.0 / _LARGEST)
        alpha, beta = (np.clip(expit(own) * total, _SMALLEST, _LARGEST) for own in (x, -x))
        p = rng.beta(alpha + c[system], beta + (n[system] - c[system]))
        kept.append(p)
        population = partial(_expected, alpha, beta, *_kinds(design, outcomes.weight))
        values.append(
            draw_metrics(grid, partial(_of, p), n.shape[1], population, rng, outcomes.weight)
        )
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    found = np.stack(values, axis=1)
    extra = {
        name: (dims, posterior[name].transpose(*dims).values)
        for name, more in _NAMES.items()
        for dims in [("chain", "draw", "system", *more)]
    }
    if keep_p:
        p = np.stack(kept, axis=1)
        extra["p"] = (("chain", "draw", "system", "question"), p.reshape(*shape, *p.shape[1:]))
    return Part(found.reshape(*shape, *found.shape[1:]), list(grid.judged), extra)


def _of(p: Array, part: slice) -> Array:
    return p[:, part]


def _kinds(design: Design, weight: Array | None) -> tuple[NDArray[np.intp], Array]:
    """Return a question of every kind of covariates, and the weight of those that share them."""
    rows = design.basis.rows
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    own = np.ones(len(rows)) if weight is None else weight / weight.max()
    return first, np.bincount(which.ravel(), own)


def _expected(
    alpha: Array, beta: Array, kind: NDArray[np.intp], count: Array, metric: Metric
) -> Array:
    """Return the expected metric of new questions with the same covariates, in each draw."""
    total = np.zeros(len(alpha))
    for question, number in zip(kind, count, strict=True):
        total += number * np.asarray(metric.predictive(alpha[:, question], beta[:, question]))
    return total / count.sum()
