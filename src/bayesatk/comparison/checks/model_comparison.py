"""Which model of the questions is better: exact leave-one-out and exact evidence."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import logsumexp, xlog1py, xlogy

from bayesatk._tools.arrays import Indices
from bayesatk._tools.messages import ArgumentError
from bayesatk.data.chances import success_probabilities
from bayesatk.posterior.model import LogPredictive
from bayesatk.posterior.models_of import model_of
from bayesatk.results.checking import UNIT
from bayesatk.results.result import Fit, Result

if TYPE_CHECKING:
    import arviz as az


def exact_loo(fit: Fit) -> "az.ELPDDataLOO":
    """Compute the exact leave-one-question-out expected log predictive density.

    It is the sum over questions of the log probability of a question's count given all other
    questions of the same system, with the question's success probability integrated out. No
    importance sampling is used, so there is no ``pareto_k``. All prior trials are given, also those
    of the question itself.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`; only its data, pooling and prior are used.

    Returns
    -------
    arviz.ELPDDataLOO
        Takes part in ``az.compare({"partial": exact_loo(a), "none": exact_loo(b)},
        round_to="none")``; ``elpd_i`` has the dimensions ``system, question``.

    See Also
    --------
    bayesatk.checks.compare_models : does this for every pooling.
    arviz.loo : the approximation from draws, for models without an exact one.

    Notes
    -----
    For the count c of a question, without pooling ``p(c)`` is the prior predictive. Under complete
    pooling it is Beta-binomial given the counts of the other questions. Under partial pooling it is
    ``1 / E[1 / p(c | hyperparameters)]`` over their posterior, with difficulty families averaged;
    where leaving the question out changes that posterior much, the integral is computed again
    without it. Of votes it is that of the marks: answers are
    as probable under every law of difficulty, so differences of models are those of all the data.
    It agrees with refits to 1e-8 under the Beta. Under other families, and for three
    scored categories or more, the error is that of the points on which hyperparameters are
    integrated: about 1e-3 for one of many questions, a few hundredths for one of very few
    questions, or for one unlike all others.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1], [1], [0]], "mean", pooling="none", rng=1)
    >>> round(exact_loo(fit).elpd, 6)  # 3 log(1/2)
    -2.079442
    """
    result = Result.of(fit)
    return _loo(result, _predictions(result))


_Predictions = list[tuple[Indices, LogPredictive]]


def _predictions(fit: Result) -> _Predictions:
    """State of every question, and what the model predicts of the states, by system."""
    fit.require("exact_loo")
    models = [model_of(fit, system) for system in range(len(fit.systems))]
    return [(model.states.which, model.predictive()) for model in models]


def _loo(fit: Result, predictions: _Predictions) -> "az.ELPDDataLOO":
    import arviz as az  # evidence and Bayes factors do without

    trials = fit.group("constant_data")["trials"]
    left_out = [predictive.left_out[state] for state, predictive in predictions]
    fitted = [predictive.fitted[state] for state, predictive in predictions]
    pointwise = xr.DataArray(
        np.stack(left_out),
        dims=("system", "question"),
        coords={name: trials[name] for name in ("system", "question")},
        name="elpd_i",
    )
    return az.ELPDDataLOO(
        elpd=float(pointwise.sum()),
        se=float(np.sqrt(pointwise.size * pointwise.values.var())),
        p=float(np.sum(fitted) - pointwise.sum()),
        n_samples=fit.size,
        n_data_points=pointwise.size,
        scale="log",
        warning=False,
        good_k=0.7,
        elpd_i=pointwise,
    )


def log_evidence(fit: Fit) -> xr.DataArray:
    """Exact log marginal likelihood of every system's trials, in their given order.

    Prior trials are given: it is the log probability of the trials after them.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`; only its data, pooling and prior are used.

    Returns
    -------
    xarray.DataArray
        By ``system``. NaN under an improper prior. Otherwise the log evidence of all systems is
        the sum.

    See Also
    --------
    bayesatk.checks.exact_loo : predictive accuracy, which depends less on the prior.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1], [1], [0]], "mean", pooling="complete", rng=1)
    >>> round(float(np.exp(log_evidence(fit)[0])), 6)  # B(3, 2) = 1/12
    0.083333
    """
    result = Result.of(fit)
    result.require("evidence")
    values = [model_of(result, system).log_evidence() for system in range(len(result.systems))]
    systems = result.group("constant_data")["system"]
    return xr.DataArray(values, dims="system", coords={"system": systems}, name="log_evidence")


def compare_models(fits: Mapping[str, Fit]) -> pd.DataFrame:
    """Compare models of the same data by exact evidence and exact leave-one-out.

    Parameters
    ----------
    fits : mapping of name -> xarray.DataTree
        Results of the same data under different pooling or priors.

    Returns
    -------
    pandas.DataFrame
        One row per model, the best leave-one-out first: ``elpd_loo`` and ``se``, ``elpd_diff`` and
        ``dse`` against the best, ``p_loo``, ``log_evidence`` (summed over systems), and
        ``probability`` of the model when all are equally likely beforehand.

    Raises
    ------
    ValueError
        If there are fewer than two results, or they are of different data.

    See Also
    --------
    bayesatk.checks.exact_loo : one model at a time.
    arviz.compare : the table without evidence, with the weights of stacking.
    bayesatk.checks.log_evidence : the marginal likelihood of the data.

    Notes
    -----
    The evidence measures how well the prior predicted all of the data, so it depends on the priors
    of the hyperparameters. Leave-one-out measures how well the posterior predicts a new question.

    Examples
    --------
    >>> import bayesatk
    >>> runs = bayesatk.datasets.tau_bench_airline()
    >>> fits = {
    ...     name: bayesatk.evaluate(runs, "mean", pooling=name, draws=5, rng=1)
    ...     for name in ("none", "partial", "complete")
    ... }
    >>> list(compare_models(fits).index)
    ['none', 'partial', 'complete']
    """
    import arviz as az

    if len(fits) < 2:
        raise ValueError(
            f"fits must have at least two results; got {list(fits)}. Evaluate the same data with "
            "another pooling or prior; bayesatk.checks.exact_loo takes a single result."
        )
    read = {name: Result.of(fit) for name, fit in fits.items()}
    _check_same_data(read)
    check_units(read)
    predictions = {name: _predictions(fit) for name, fit in read.items()}
    loo = {name: _loo(fit, predictions[name]) for name, fit in read.items()}
    evidence = {
        name: sum(scores.log_evidence for _, scores in by_system)
        for name, by_system in predictions.items()
    }
    table = az.compare(loo, round_to="none").rename(columns={"elpd": "elpd_loo", "p": "p_loo"})
    table = table[["elpd_loo", "se", "elpd_diff", "dse", "p_loo"]].rename_axis("model")
    evidences = {"log_evidence": evidence, "probability": _probabilities(evidence)}
    return pd.DataFrame(table).join(pd.DataFrame(evidences))


def _probabilities(evidence: Mapping[str, float]) -> dict[str, float]:
    """Probability of equally likely models; NaN where an improper prior leaves no evidence."""
    finite = [value for value in evidence.values() if not np.isnan(value)]
    total = float(logsumexp(finite)) if finite else np.nan
    with np.errstate(under="ignore"):
        return {name: float(np.exp(value - total)) for name, value in evidence.items()}


def _check_same_data(fits: Mapping[str, Result]) -> None:
    first, *names = fits
    observed = "successes" if "successes" in fits[first].group("observed_data") else "count"
    for name in names:
        for group, variable in (("observed_data", observed), ("constant_data", "trials")):
            held, compared = (fits[name_].group(group).get(variable) for name_ in (first, name))
            # Columns of questions differ: one model has groups or covariates that another has not.
            if (
                held is None
                or compared is None
                or not held.reset_coords(drop=True).equals(compared.reset_coords(drop=True))
            ):
                raise ValueError(
                    f"fits must be results of the same data; {first!r} and {name!r} differ in "
                    f"{variable}."
                )


def log_bayes_factor_chance(fit: Fit, guess: object) -> xr.DataArray:
    """Return the log Bayes factor of a model against the point null that a system guesses.

    Parameters
    ----------
    fit : xarray.DataTree
        From `bayesatk.evaluate` or `bayesatk.sample`; only its data, pooling and prior are used.
    guess : float or array_like
        Probability of guessing right: one for all, or one per question.

    Returns
    -------
    xarray.DataArray
        By ``system``; positive values favour the model. Infinite if the data are impossible under
        guessing.

    See Also
    --------
    bayesatk.guessing.random_baseline : the best of several guessers, with p-values.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1], [1], [0]], "mean", pooling="complete", rng=1)
    >>> round(float(np.exp(log_bayes_factor_chance(fit, 0.5)[0])), 6)  # (1/12) / (1/8)
    0.666667
    """
    result = Result.of(fit)
    evidence = log_evidence(result)
    successes, trials = result.right_of_all("chance")
    chance = success_probabilities(trials.shape[1], guess)
    null = (xlogy(successes, chance) + xlog1py(trials - successes, -chance)).sum(axis=1)
    return (evidence - xr.DataArray(null, dims="system")).rename("log_bayes_factor")


def check_units(fits: Mapping[str, Result]) -> None:
    """Refuse results whose values of ``log_likelihood`` are of different units."""
    units = {
        name: str(fit.group("log_likelihood").attrs.get("unit", UNIT))
        for name, fit in fits.items()
        if fit.has("log_likelihood")
    }
    if len(set(units.values())) > 1:
        listed = ", ".join(f"{name!r}: a {unit}" for name, unit in units.items())
        raise ArgumentError(
            "fits",
            " must have log-likelihoods of the same unit: a question of all "
            f"systems is predicted otherwise than one of a system; got {listed}. Compare models of "
            "the same kind.",
        )
