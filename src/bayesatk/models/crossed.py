"""Systems and questions crossed: correlated logit-normal difficulties, every system at once."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk.core.priors import CrossedPrior, resolve_crossed_prior
from bayesatk.models.builders import coordinates, observe
from bayesatk.outcomes import Outcomes, tally


def build_crossed(data: object, *, prior: CrossedPrior | None = None) -> pm.Model:
    """Logit-normal difficulties of all systems together, correlated over questions.

    ``logit p[s, q] = mu[s] + sigma[s] z[s, q]``, where the ``z`` of a question are normal with a
    correlation between systems: what is hard for one is hard for another as far as the data say. A
    system that lacks a question is informed on it by the others.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Binary outcomes of two systems or more; cells may lack trials.
    prior : CrossedPrior, optional

    Returns
    -------
    pymc.Model
        Variables ``mu(system)``, ``sigma(system)``, ``correlation(system, other)`` and ``p(system,
        question)``; observed ``successes``.

    Raises
    ------
    ValueError
        If there is one system only.

    Notes
    -----
    Written so that NUTS moves freely: the mean difficulty of *these* questions, which the trials
    tell, is sampled, with deviations from it that add up to zero, and ``mu`` follows
    given that mean (Matheron's rule). The joint distribution is the one above.

    Examples
    --------
    >>> model = build_crossed({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]})
    >>> sorted(variable.name for variable in model.deterministics)
    ['correlation', 'mu', 'p']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = resolve_crossed_prior(prior)
    size = len(outcomes.systems)
    if size < 2:
        raise ValueError(
            "data must be of at least two systems to be crossed; got one. Use "
            "bayesatk.build_logit_normal."
        )
    coords = coordinates(outcomes)
    with pm.Model(coords={**coords, "other": coords["system"]}) as model:
        sigma = pm.HalfNormal("sigma", prior.sigma_sd, dims="system")
        root = _lkj_root(size, prior.eta)
        pm.Deterministic("correlation", _product(root, root.T), dims=("system", "other"))
        chol = sigma[:, None] * root
        questions = outcomes.trials.shape[1]
        spread = chol / np.sqrt(questions)  # of the mean of so many questions, given mu
        total = prior.mu_sd**2 * pt.eye(size) + _product(spread, spread.T)
        level = pm.Normal("centre_level", dims="system")
        centre = _product(pt.linalg.cholesky(total), level[:, None])[:, 0]
        free = prior.mu_sd * pm.Normal("mu_standard", dims="system")
        drawn = _product(spread, pm.Normal("centre_standard", dims="system")[:, None])[:, 0]
        gain = prior.mu_sd**2 * pt.linalg.solve(total, centre - free - drawn)
        pm.Deterministic("mu", free + gain, dims="system")
        standard = pm.ZeroSumNormal("standard", dims=("system", "question"))
        difficulty = centre[:, None] + _product(chol, standard)
        p = pm.Deterministic("p", pm.math.invlogit(difficulty), dims=("system", "question"))
        observe(outcomes, p)
    return model


def _lkj_root(size: int, eta: float) -> pt.TensorVariable:
    """Cholesky factor of an LKJ correlation matrix, from its partial correlations.

    Those are independent Beta variables on (-1, 1) (Lewandowski, Kurowicka and Joe 2009), which
    compile in a moment where PyMC's own distribution loops.
    """
    rows, columns = np.tril_indices(size, -1)
    shape = eta + (size - 2 - columns) / 2.0
    partial = 2.0 * pm.Beta("partial_correlation", shape, shape, shape=len(rows)) - 1.0
    below = pt.zeros((size, size))[rows, columns].set(partial)
    left = 0.5 * pt.log1p(-(below**2))
    return (below + pt.eye(size)) * pt.exp(pt.cumsum(left, axis=1) - left)


def _product(a: pt.TensorVariable, b: pt.TensorVariable) -> pt.TensorVariable:
    """Matrix product written out: PyTensor's looks for a BLAS, and warns where there is none."""
    return (a[:, :, None] * b[None]).sum(axis=1)
