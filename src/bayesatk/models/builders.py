"""PyMC models with named coordinates, for the user to take, change and sample."""

from typing import Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from bayesatk.data.outcomes import Outcomes, tally
from bayesatk.prior_choice import resolve_prior
from bayesatk.priors import INFLATION, BetaPrior, HyperPrior, Pooling, Prior

Form = Literal["full", "marginal", "inflated", "crossed"]
COMPONENTS = ("never", "always", "between")
_STATES = ("state_successes", "state_trials", "state_count", "state_system")


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
    form : {"full", "marginal", "inflated"}
        ``full`` has the latent ``p(system, question)`` and an observed Binomial, so prior and
        posterior predictive sampling work. ``marginal`` (partial only) integrates p out over
        distinct counts: its cost does not depend on the number of questions. ``inflated`` is the
        same with shares of questions that are never solved and always solved beside the Beta, for
        data that `bayesatk.criticise` finds too extreme for it: ``inflation ~ Dirichlet(1, 1, 8)``.

    Returns
    -------
    pymc.Model
        Variables ``p``, and ``mean_p(system)``, ``icc(system)`` and ``inflation(system,
        component)`` where they exist; coordinates ``system`` and ``question``; observed
        ``successes``.

    See Also
    --------
    bayesatk.evaluate : the exact posterior of this model.
    bayesatk.sample : samples this model and returns metrics.
    bayesatk.models.compile_beta_binomial : compiles it once for many data sets.

    Examples
    --------
    >>> model = build_beta_binomial([[1, 0], [1, 1]], pooling="none")
    >>> [variable.name for variable in model.free_RVs]
    ['p']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = resolve_prior(pooling, prior)
    if form not in ("full", "marginal", "inflated"):
        raise ValueError(f"form must be 'full', 'marginal' or 'inflated'; got {form!r}.")
    if form != "full" and pooling != "partial":
        raise ValueError(
            f"form={form!r} needs pooling='partial'; got pooling={pooling!r}, which has no "
            "hyperparameters to keep. Use form='full'."
        )
    with pm.Model(coords=coordinates(outcomes)) as model:
        if isinstance(prior, HyperPrior):
            alpha, beta = _difficulty(prior)
            if form != "full":
                _marginal_likelihood(outcomes, alpha, beta, form == "inflated")
            else:
                p = pm.Beta("p", alpha[:, None], beta[:, None], dims=("system", "question"))
                observe(outcomes, p)
        elif pooling == "complete":
            shared = pm.Beta("mean_p", prior.alpha, prior.beta, dims="system")
            everywhere = shared[:, None] + pt.zeros(outcomes.trials.shape)
            observe(outcomes, pm.Deterministic("p", everywhere, dims=("system", "question")))
        else:
            p = pm.Beta("p", prior.alpha, prior.beta, dims=("system", "question"))
            observe(outcomes, p)
    return model


def coordinates(outcomes: Outcomes) -> dict[str, list[object]]:
    """Return the labels of systems and questions."""
    dataset = outcomes.dataset
    return {name: dataset[name].values.tolist() for name in ("system", "question")}


def observe(outcomes: Outcomes, p: pt.TensorVariable) -> None:
    """Add Binomial successes given p, with their data in containers that can be exchanged."""
    dims = ("system", "question")
    data = model_data(outcomes, "full")
    trials = pm.Data("trials", data["trials"], dims=dims)
    observed = pm.Data("successes_data", data["successes_data"], dims=dims)
    pm.Binomial("successes", n=trials, p=p, observed=observed, dims=dims)


def _difficulty(prior: HyperPrior) -> tuple[pt.TensorVariable, pt.TensorVariable]:
    """Hyperparameters ``mean_p`` and ``icc``, and the Beta parameters they stand for."""
    mean = pm.Beta("mean_p", *prior.mean, dims="system")
    if prior.proper:
        icc = pm.Beta("icc", *prior.icc, dims="system")
    else:
        icc = pm.Uniform("icc", 0.0, 1.0, dims="system")
        a, b = prior.icc
        improper = (a - 1.0) * pt.log(icc) + (b - 1.0) * pt.log1p(-icc)
        pm.Potential("improper_icc_prior", improper.sum())
    concentration = (1.0 - icc) / icc
    return mean * concentration, (1.0 - mean) * concentration


def model_data(outcomes: Outcomes, form: Form) -> dict[str, NDArray[np.generic]]:
    """Return the values of a model's `pymc.Data` containers: all that depends on the data."""
    if form in ("full", "crossed"):
        return {"trials": outcomes.trials.values, "successes_data": outcomes.successes.values}
    columns: dict[str, list[NDArray[np.generic]]] = {name: [] for name in _STATES}
    for system in range(len(outcomes.systems)):
        pairs = [outcomes.successes.values[system], outcomes.trials.values[system]]
        states, count = np.unique(np.stack(pairs, axis=1), axis=0, return_counts=True)
        for name, values in zip(
            _STATES, (*states.T, count, np.full(len(count), system)), strict=True
        ):
            columns[name].append(values)
    joined = {name: np.concatenate(values) for name, values in columns.items()}
    floats = {name: joined[name].astype(np.float64) for name in _STATES[:3]}
    return {**floats, "state_system": joined["state_system"]}


def _marginal_likelihood(
    outcomes: Outcomes, alpha: pt.TensorVariable, beta: pt.TensorVariable, inflated: bool
) -> None:
    """Add the Beta-binomial log-likelihood of each system's distinct counts."""
    data = model_data(outcomes, "marginal")
    c, n, count, system = (pm.Data(name, data[name]) for name in _STATES)
    a, b = alpha[system], beta[system]
    log_ratio = (
        pt.gammaln(a + c) - pt.gammaln(a)
        + pt.gammaln(b + n - c) - pt.gammaln(b)
        - pt.gammaln(a + b + n) + pt.gammaln(a + b)
    )  # fmt: skip
    if inflated:
        pm.modelcontext(None).add_coord("component", COMPONENTS)
        share = pm.Dirichlet("inflation", np.array(INFLATION), dims=("system", "component"))
        never, always, between = (share[:, i][system] for i in range(3))
        certain = never * pt.eq(c, 0) + always * pt.eq(c, n)
        log_ratio = pt.log(certain + between * pt.exp(log_ratio))
    pm.Potential("log_likelihood", (count * log_ratio).sum())


__all__ = ["BetaPrior", "HyperPrior", "build_beta_binomial"]
