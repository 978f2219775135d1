"""PyMC models of scored categories, for the user to take, change and sample."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.models.builders import distinct_states
from bayesatk.models.difficulty_families import LEAST, concentration, log_rising
from bayesatk.models.forms import Form
from bayesatk.priors import CategoryPrior, DirichletHyperPrior, Pooling
from bayesatk.priors.choice import resolve_category_prior

Array = NDArray[np.float64]
_STATES = ("state_count", "state_repeats", "state_system")


def build_dirichlet_multinomial(
    data: object,
    pooling: Pooling = "partial",
    *,
    prior: CategoryPrior | None = None,
    prior_counts: Array | None = None,
    form: Form = "full",
) -> pm.Model:
    """Dirichlet-multinomial model of category counts.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Outcomes in two or more categories; trials may differ between cells.
    pooling : {"partial", "none", "complete"}
        ``p ~ Dirichlet`` with a mean vector and an intraclass correlation, both sampled; a fixed
        Dirichlet prior per question; or one vector of probabilities.
    prior : DirichletHyperPrior (partial) or DirichletPrior (none, complete), optional
        Default: uniform.
    prior_counts : ndarray, shape (system, question, category), optional
        Prior trials of every question, discounted or not: a power prior.
    form : {"full", "marginal"}
        ``full`` has the latent ``p(system, question, category)`` and an observed Multinomial;
        ``marginal`` (partial only) integrates p out over distinct counts.

    Returns
    -------
    pymc.Model
        Variables ``p``, and ``mean_p(system, category)`` and ``icc(system)`` where they exist;
        coordinates ``system``, ``question``, ``category``; observed ``count``.

    See Also
    --------
    bayesatk.evaluate : the exact posterior of this model.
    bayesatk.sample : samples this model and returns metrics.
    bayesatk.models.compile_dirichlet_multinomial : compiles it once for many data sets.

    Examples
    --------
    >>> data = tally([[0, 1, 2], [2, 2, 1]], scores={0: 0.0, 1: 0.5, 2: 1.0})
    >>> model = build_dirichlet_multinomial(data, form="marginal")
    >>> [variable.name for variable in model.free_RVs]
    ['mean_p', 'icc']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = resolve_category_prior(pooling, prior)
    if form not in ("full", "marginal") or (form == "marginal" and pooling != "partial"):
        raise ArgumentError(
            Argument("form"),
            f" must be 'full', or 'marginal' with pooling='partial'; got {form!r} with "
            f"pooling={pooling!r}.",
        )
    counts = outcomes.dataset["count"].values
    before = np.zeros(counts.shape) if prior_counts is None else np.asarray(prior_counts, float)
    size = counts.shape[2]
    coords = {
        name: outcomes.dataset[name].values.tolist() for name in ("system", "question", "category")
    }
    dims = ("system", "question", "category")
    with pm.Model(coords=coords) as model:
        if isinstance(prior, DirichletHyperPrior):
            alpha = _concentration(prior, size)
            if form == "marginal":
                data = category_data(outcomes, "marginal", prior_counts)
                states, repeats, system = (pm.Data(name, data[name]) for name in _STATES)
                pm.Potential("log_likelihood", log_marginal(states, repeats, alpha[system]))
                return model
            p = pm.Dirichlet("p", alpha[:, None, :] * pt.ones((1, counts.shape[1], 1)), dims=dims)
            if before.any():
                pm.Potential("prior_trials", (before * pt.log(p)).sum())
        elif pooling == "complete":
            alpha = prior.vector(size) + before.sum(axis=1)
            shared = pm.Dirichlet("mean_p", alpha, dims=("system", "category"))
            everywhere = shared[:, None] + pt.zeros(counts.shape)
            p = pm.Deterministic("p", everywhere, dims=dims)
        else:
            p = pm.Dirichlet("p", prior.vector(size) + before, dims=dims)
        trials = pm.Data("trials", counts.sum(axis=2), dims=dims[:2])
        observed = pm.Data("count_data", counts, dims=dims)
        pm.Multinomial("count", n=trials, p=p, observed=observed, dims=dims)
    return model


def _concentration(prior: DirichletHyperPrior, size: int) -> pt.TensorVariable:
    """Hyperparameters ``mean_p`` and ``icc``, and the Dirichlet parameters they stand for."""
    mean = pm.Dirichlet("mean_p", prior.vector(size), dims=("system", "category"))
    icc = pm.Beta("icc", *prior.icc, dims="system")
    return pt.maximum(mean * concentration(icc)[:, None], LEAST)


def category_data(
    outcomes: Outcomes, form: Form, prior_counts: Array | None = None
) -> dict[str, NDArray[np.generic]]:
    """Return the values of a model's `pymc.Data` containers: all that depends on the data."""
    counts = outcomes.dataset["count"].values
    if form == "full":
        return {"trials": counts.sum(axis=2), "count_data": counts}
    counts = counts if prior_counts is None else counts + prior_counts
    return dict(zip(_STATES, distinct_states(counts), strict=True))


def log_marginal(states: Any, repeats: Any, alpha: pt.TensorVariable) -> pt.TensorVariable:
    """Log probability of trials in their order, of questions with these counts."""
    own = log_rising(alpha, states).sum(axis=-1)
    return (repeats * (own - log_rising(alpha.sum(axis=-1), states.sum(axis=-1)))).sum()
