"""Logit-normal difficulties: of systems on their own, and correlated between them.

Both are written so that NUTS moves freely, with few questions and with many: the mean difficulty
of *these* questions, which the trials tell, is sampled, with deviations from it that add up to
zero, and ``mu`` follows given that mean (Matheron's rule). With mu and centred difficulties in its
place NUTS never reaches a sigma near zero: simulation-based calibration calls it wrong.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import RIGHT_WRONG
from bayesatk.data.tally import tally
from bayesatk.models.program import coordinates, observe
from bayesatk.priors import CrossedPrior
from bayesatk.priors.choice import prior_of


def build_logit_normal(data: object, *, mu_sd: float = 1.5, sigma_sd: float = 2.5) -> pm.Model:
    """Partial pooling with logit-normal difficulties: ``logit p ~ Normal(mu, sigma)``.

    It has no closed form. A comparison with `build` shows how sensitive results are
    to the family of difficulties.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
    mu_sd : float
        Prior ``mu ~ Normal(0, mu_sd)``; 1.5 is nearly uniform on the probability scale.
    sigma_sd : float
        Prior ``sigma ~ HalfNormal(sigma_sd)``.

    Returns
    -------
    pymc.Model
        Variables ``mu(system)``, ``sigma(system)`` and ``p(system, question)``; observed
        ``successes``.

    See Also
    --------
    bayesatk.models.metrics_from_draws : metrics of its draws.
    bayesatk.models.build : Beta difficulties, with an exact posterior.

    Examples
    --------
    >>> model = build_logit_normal([[1, 0], [1, 1]])
    >>> sorted(variable.name for variable in model.deterministics)
    ['mu', 'p']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    with pm.Model(coords=coordinates(outcomes)) as model:
        sigma = pm.HalfNormal("sigma", sigma_sd, dims="system")
        share = sigma / np.sqrt(outcomes.trials.shape[1])  # sd of the mean of these, given mu
        total = mu_sd**2 + share**2
        centre = pt.sqrt(total) * pm.Normal("centre_level", dims="system")
        free = mu_sd * pm.Normal("mu_standard", dims="system")
        drawn = share * pm.Normal("centre_standard", dims="system")
        pm.Deterministic("mu", free + mu_sd**2 / total * (centre - free - drawn), dims="system")
        standard = pm.ZeroSumNormal("standard", dims=("system", "question"))
        difficulty = centre[:, None] + sigma[:, None] * standard
        p = pm.Deterministic("p", pm.math.invlogit(difficulty), dims=("system", "question"))
        observe(outcomes, RIGHT_WRONG, p)
    return model


def build_crossed(data: object, *, prior: CrossedPrior | None = None) -> pm.Model:
    """Logit-normal difficulties of all systems together, correlated over questions.

    ``logit p[s, q] = mu[s] + sigma[s] z[s, q]``, where the ``z`` of a question are normal with a
    correlation between systems, which is estimated. A system that lacks a question is informed
    about it by the others.

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

    See Also
    --------
    bayesatk.models.build_one_factor : one difficulty per question, for many systems.
    bayesatk.sample : samples this model with ``form="crossed"``.
    bayesatk.models.compile_crossed : compiles it once for many data sets.
    bayesatk.plan : takes the correlation that it estimates.

    Examples
    --------
    >>> model = build_crossed({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]})
    >>> sorted(variable.name for variable in model.deterministics)
    ['correlation', 'mu', 'p']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = prior_of(CrossedPrior, prior, "for form='crossed'")
    size = len(outcomes.systems)
    if size < 2:
        raise ValueError(
            "data must be of at least two systems to be crossed; got one. Use "
            "bayesatk.models.build_logit_normal."
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
        observe(outcomes, RIGHT_WRONG, p)
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
