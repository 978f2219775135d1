"""Systems and questions crossed: correlated logit-normal difficulties, every system at once."""

import numpy as np
import pymc as pm

from bayesatk.core.priors import CrossedPrior
from bayesatk.models.builders import coordinates, observe
from bayesatk.outcomes import Outcomes, tally

_MANY = 10.0  # trials of a cell from which its difficulty is known better than its prior


def build_crossed(
    data: object, *, prior: CrossedPrior | None = None, centred: bool | None = None
) -> pm.Model:
    """Logit-normal difficulties of all systems together, correlated over questions.

    ``logit p[s, q] = mu[s] + sigma[s] z[s, q]``, where the ``z`` of a question are normal with a
    correlation between systems: what is hard for one is hard for another as far as the data say. A
    system that lacks a question is informed on it by the others.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Binary outcomes of two systems or more; cells may lack trials.
    prior : CrossedPrior, optional
    centred : bool, optional
        Sample difficulties themselves, or standard normals that are turned into them. Default:
        centred when the median cell has ten trials or more. The other form mixes badly.

    Returns
    -------
    pymc.Model
        Variables ``mu(system)``, ``sigma(system)``, ``correlation(system, other)`` and ``p(system,
        question)``; observed ``successes``.

    Raises
    ------
    ValueError
        If there is one system only.

    Examples
    --------
    >>> model = build_crossed({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]})
    >>> sorted(variable.name for variable in model.deterministics)
    ['correlation', 'p', 'sigma']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = CrossedPrior() if prior is None else prior
    size = len(outcomes.systems)
    if size < 2:
        raise ValueError(
            "data must be of at least two systems to be crossed; got one. Use "
            "bayesatk.build_logit_normal."
        )
    if centred is None:
        centred = bool(np.median(outcomes.trials.values) >= _MANY)
    coords = coordinates(outcomes)
    with pm.Model(coords={**coords, "other": coords["system"]}) as model:
        mu = pm.Normal("mu", 0.0, prior.mu_sd, dims="system")
        chol, correlation, sigma = pm.LKJCholeskyCov(
            "covariance", n=size, eta=prior.eta, store_in_trace=False,
            sd_dist=pm.HalfNormal.dist(prior.sigma_sd, shape=size),
        )  # fmt: skip
        pm.Deterministic("sigma", sigma, dims="system")
        pm.Deterministic("correlation", correlation, dims=("system", "other"))
        if centred:
            difficulty = pm.MvNormal("difficulty", mu, chol=chol, dims=("question", "system"))
        else:
            standard = pm.Normal("standard", dims=("question", "system"))
            difficulty = mu + standard @ chol.T
        p = pm.Deterministic("p", pm.math.invlogit(difficulty.T), dims=("system", "question"))
        observe(outcomes, p)
    return model
