"""PyMC models with named coordinates, for the user to take, change and sample."""

from typing import Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk.core.priors import BetaPrior, HyperPrior, Pooling, Prior, resolve_prior
from bayesatk.outcomes import Outcomes, tally

Form = Literal["full", "marginal"]


def build_beta_binomial(
    data: object,
    pooling: Pooling = "partial",
    *,
    prior: Prior | None = None,
    form: Form = "full",
) -> pm.Model:
    """Beta-binomial model of successes, one difficulty distribution per system.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Binary outcomes; trials may differ between cells.
    pooling : {"partial", "none", "complete"}
        ``p ~ Beta(mean_p, icc)`` with both sampled; a fixed Beta prior per question; or one p.
    prior : HyperPrior (partial) or BetaPrior (none, complete), optional
        Default: uniform.
    form : {"full", "marginal"}
        ``full`` has the latent ``p(system, question)`` and an observed Binomial, so prior and
        posterior predictive sampling work. ``marginal`` (partial only) integrates p out over
        distinct counts: its cost does not depend on the number of questions.

    Returns
    -------
    pymc.Model
        Variables ``p``, and ``mean_p(system)`` and ``icc(system)`` where they exist; coordinates
        ``system`` and ``question``; observed ``successes``.

    Examples
    --------
    >>> model = build_beta_binomial([[1, 0], [1, 1]], pooling="none")
    >>> [variable.name for variable in model.free_RVs]
    ['p']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = resolve_prior(pooling, prior)
    if form == "marginal" and pooling != "partial":
        raise ValueError(
            f"form='marginal' needs pooling='partial'; got pooling={pooling!r}, which has no "
            "hyperparameters to keep. Use form='full'."
        )
    if form not in ("full", "marginal"):
        raise ValueError(f"form must be 'full' or 'marginal'; got {form!r}.")
    with pm.Model(coords=_coords(outcomes)) as model:
        if isinstance(prior, HyperPrior):
            alpha, beta = _difficulty(prior)
            if form == "marginal":
                _marginal_likelihood(outcomes, alpha, beta)
            else:
                p = pm.Beta("p", alpha[:, None], beta[:, None], dims=("system", "question"))
                _observe(outcomes, p)
        elif pooling == "complete":
            shared = pm.Beta("mean_p", prior.alpha, prior.beta, dims="system")
            everywhere = shared[:, None] + pt.zeros(outcomes.trials.shape)
            _observe(outcomes, pm.Deterministic("p", everywhere, dims=("system", "question")))
        else:
            p = pm.Beta("p", prior.alpha, prior.beta, dims=("system", "question"))
            _observe(outcomes, p)
    return model


def build_logit_normal(data: object) -> pm.Model:
    """Partial pooling with logit-normal difficulties: ``logit p ~ Normal(mu, sigma)``.

    No closed form exists; against `build_beta_binomial` it shows how much rests on the Beta shape.
    Priors ``mu ~ Normal(0, 1.5)`` (nearly uniform mean on the probability scale) and ``sigma ~
    HalfNormal(2.5)``. Difficulties are centred: with several trials per question that mixes far
    better than the non-centred form.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts

    Returns
    -------
    pymc.Model
        Variables ``mu(system)``, ``sigma(system)``, ``difficulty`` and ``p`` (system, question).

    Examples
    --------
    >>> model = build_logit_normal([[1, 0], [1, 1]])
    >>> [variable.name for variable in model.free_RVs]
    ['mu', 'sigma', 'difficulty']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    dims = ("system", "question")
    with pm.Model(coords=_coords(outcomes)) as model:
        mu = pm.Normal("mu", 0.0, 1.5, dims="system")
        sigma = pm.HalfNormal("sigma", 2.5, dims="system")
        difficulty = pm.Normal("difficulty", mu[:, None], sigma[:, None], dims=dims)
        _observe(outcomes, pm.Deterministic("p", pm.math.invlogit(difficulty), dims=dims))
    return model


def _coords(outcomes: Outcomes) -> dict[str, list[object]]:
    dataset = outcomes.dataset
    return {name: dataset[name].values.tolist() for name in ("system", "question")}


def _observe(outcomes: Outcomes, p: pt.TensorVariable) -> None:
    dims = ("system", "question")
    trials = pm.Data("trials", outcomes.trials.values, dims=dims)
    pm.Binomial("successes", n=trials, p=p, observed=outcomes.successes.values, dims=dims)


def _difficulty(prior: HyperPrior) -> tuple[pt.TensorVariable, pt.TensorVariable]:
    """Hyperparameters ``mean_p`` and ``icc``, and the Beta parameters they stand for."""
    mean = pm.Beta("mean_p", *prior.mean, dims="system")
    if prior.proper:
        icc = pm.Beta("icc", *prior.icc, dims="system")
    else:
        icc = pm.Uniform("icc", 0.0, 1.0, dims="system")
        improper = -0.5 * pt.log(icc) - 1.5 * pt.log1p(-icc)
        pm.Potential("improper_icc_prior", improper.sum())
    concentration = (1.0 - icc) / icc
    return mean * concentration, (1.0 - mean) * concentration


def _marginal_likelihood(
    outcomes: Outcomes, alpha: pt.TensorVariable, beta: pt.TensorVariable
) -> None:
    """Add the Beta-binomial log-likelihood of each system's distinct counts."""
    total = 0.0
    for system in range(len(outcomes.systems)):
        pairs = np.stack(
            [outcomes.successes.values[system], outcomes.trials.values[system]], axis=1
        )
        states, multiplicity = np.unique(pairs, axis=0, return_counts=True)
        c, n = states[:, 0].astype(float), states[:, 1].astype(float)
        a, b = alpha[system], beta[system]
        log_ratio = (
            pt.gammaln(a + c) - pt.gammaln(a)
            + pt.gammaln(b + n - c) - pt.gammaln(b)
            - pt.gammaln(a + b + n) + pt.gammaln(a + b)
        )  # fmt: skip
        total = total + (multiplicity.astype(float) * log_ratio).sum()
    pm.Potential("log_likelihood", total)


__all__ = ["BetaPrior", "HyperPrior", "build_beta_binomial", "build_logit_normal"]
