"""Difficulties that systems share or that are normal: logit-normal, crossed, and of one factor.

Logit-normal ones are written so that NUTS moves freely, with few questions and with many: the mean
difficulty of *these* questions, which the trials tell, is sampled, with deviations from it that add
up to zero, and ``mu`` follows given that mean (Matheron's rule). With mu and centred difficulties
in its place NUTS never reaches a sigma near zero: simulation-based calibration calls it wrong.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk._tools.arrays import Ints
from bayesatk.data.other_trials import read_judges
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import RIGHT_WRONG
from bayesatk.data.study import as_marked
from bayesatk.models.marks import log_marks, mark_rates, right_trials
from bayesatk.models.program import coordinates, observe
from bayesatk.priors import CrossedPrior, LeaderboardPrior
from bayesatk.priors.choice import prior_of

_IMPOSSIBLE = -1e5  # log probability of what cannot be, of which NUTS has a gradient


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
    bayesatk.from_draws : a result of its draws.
    bayesatk.models.build : Beta difficulties, with an exact posterior.

    Examples
    --------
    >>> model = build_logit_normal([[1, 0], [1, 1]])
    >>> sorted(variable.name for variable in model.deterministics)
    ['mu', 'p']
    """
    outcomes = as_marked(data)
    with pm.Model(coords=coordinates(outcomes)) as model:
        _add_difficulties(outcomes, mu_sd, sigma_sd, np.eye(len(outcomes.systems)))
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
    outcomes = as_marked(data)
    prior = prior_of(CrossedPrior, prior, "for form='crossed'")
    size = len(outcomes.systems)
    if size < 2:
        raise ValueError(
            "data must be of at least two systems to be crossed; got one. Use "
            "bayesatk.models.build_logit_normal."
        )
    coords = coordinates(outcomes)
    with pm.Model(coords={**coords, "other": coords["system"]}) as model:
        root = _lkj_root(size, prior.eta)
        pm.Deterministic("correlation", _product(root, root.T), dims=("system", "other"))
        _add_difficulties(outcomes, prior.mu_sd, prior.sigma_sd, root)
    return model


def _add_difficulties(outcomes: Outcomes, mu_sd: float, sigma_sd: float, root: Any) -> None:
    """Add difficulties of all systems and the counts given them, to the model in context.

    Parameters
    ----------
    outcomes : Outcomes
    mu_sd, sigma_sd : float
    root : array, shape (systems, systems)
        Cholesky factor of the correlation between systems.
    """
    sigma = pm.HalfNormal("sigma", sigma_sd, dims="system")
    chol = sigma[:, None] * root
    spread = chol / np.sqrt(outcomes.trials.shape[1])  # of the mean of these questions, given mu
    total = mu_sd**2 * pt.eye(len(outcomes.systems)) + _product(spread, spread.T)
    level = pm.Normal("centre_level", dims="system")
    centre = _product(pt.linalg.cholesky(total), level[:, None])[:, 0]
    free = mu_sd * pm.Normal("mu_standard", dims="system")
    drawn = _product(spread, pm.Normal("centre_standard", dims="system")[:, None])[:, 0]
    gain = mu_sd**2 * pt.linalg.solve(total, centre - free - drawn)
    pm.Deterministic("mu", free + gain, dims="system")
    standard = pm.ZeroSumNormal("standard", dims=("system", "question"))
    difficulty = centre[:, None] + _product(chol, standard)
    p = pm.Deterministic("p", pm.math.invlogit(difficulty), dims=("system", "question"))
    observe(outcomes, RIGHT_WRONG, p)


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


def build_one_factor(
    data: object, *, prior: LeaderboardPrior | None = None, judge: object = None
) -> pm.Model:
    """One difficulty per question, shared by all systems; systems exchangeable.

    ``z[q] ~ Normal(0, 1)``; given it, the success probability of system s is Beta with mean
    ``expit(mu[s] + a[s] z[q])`` and intraclass correlation ``rho[s]``, integrated: successes are
    Beta-binomial. ``mu``, ``log a`` and ``logit rho`` are normal around means that all share. A
    share of the questions is solved by no system, and a share by every one: ``atoms`` are
    Dirichlet, and which questions these are is integrated.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Right and wrong; cells may lack trials.
    prior : LeaderboardPrior, optional
    judge : JudgeError, mapping {system: JudgeError}, or table, optional
        As in `bayesatk.evaluate`: successes are marks of judges that err. The rates of every judge
        are then sampled, and what might have been right is added up.

    Returns
    -------
    pymc.Model
        Variables ``mu(system)``, ``log_a(system)``, ``logit_rho(system)``, ``z(question)`` and
        ``atoms(share)``; with a judge also ``judge_rates``, ``sensitivity(system)`` and
        ``false_positive_rate(system)``. Trials are in the potential ``log_likelihood``.

    See Also
    --------
    bayesatk.leaderboard : the same model, difficulties integrated by quadrature.
    bayesatk.models.build_crossed : a correlation of difficulties for every pair of systems.

    Examples
    --------
    >>> model = build_one_factor({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]})
    >>> sorted(variable.name for variable in model.deterministics)
    ['log_a', 'logit_rho', 'mu', 'spread']
    """
    outcomes = as_marked(data)
    common = prior or LeaderboardPrior()
    trials, successes = outcomes.trials.values, outcomes.successes.values
    system, question = np.nonzero(trials)
    judges = read_judges(judge, outcomes)
    coords = {**coordinates(outcomes), "share": ["never", "always", "others"]}
    with pm.Model(coords=coords) as model:
        squares = pm.ChiSquared("spread_squares", common.spread_df(len(trials)))
        spread = pm.Deterministic("spread", common.spread_sd * pt.sqrt(squares))
        mu = _exchangeable("mu", common.mean, spread)
        log_a = _exchangeable("log_a", common.discrimination[:2], common.discrimination[2])
        logit_rho = _exchangeable("logit_rho", common.interaction[:2], common.interaction[2])
        z = pm.Normal("z", dims="question")
        x = mu[system] + pt.exp(log_a)[system] * z[question]
        total = pt.exp(-logit_rho)[system]
        alpha, beta = pm.math.sigmoid(x) * total, pm.math.sigmoid(-x) * total
        c, n = successes[system, question], trials[system, question]
        if judges is None:
            logs = _rises(alpha, beta, c[:, None], (n - c)[:, None])[:, 0]
            ends: Any = np.where(np.stack([c, n - c]) > 0, _IMPOSSIBLE, 0.0)
        else:
            right = right_trials(n)
            log_right = _rises(alpha, beta, right, n[:, None] - right)
            rates = mark_rates(judges).of(system)
            logs = log_marks(c, n, log_right, rates)
            log_right = np.where(right == np.stack([0 * n, n])[..., None], 0.0, _IMPOSSIBLE)
            ends = [log_marks(c, n, end, rates) for end in log_right]
        shares = pt.log(pm.Dirichlet("atoms", np.array(common.atoms), dims="share"))
        by_question = [
            share + pt.zeros(trials.shape[1])[question].inc(cells)
            for share, cells in zip(shares, (*ends, logs), strict=True)
        ]
        pm.Potential("log_likelihood", pt.logsumexp(pt.stack(by_question), axis=0))
    return model


def _rises(
    alpha: pt.TensorVariable, beta: pt.TensorVariable, right: Ints, wrong: Ints
) -> pt.TensorVariable:
    """Log Beta-binomial probability of trials in their order, (cells, right): sums of logs.

    So it and its derivative take no gamma functions, which cost most of the time with few trials.
    """
    steps = np.arange(int(max(right.max(), wrong.max())))
    rows = np.arange(len(right))[:, None]

    def upto(base: pt.TensorVariable, count: Ints) -> pt.TensorVariable:
        logs = pt.cumsum(pt.log(base[:, None] + steps), axis=1)
        return pt.concatenate([pt.zeros_like(base)[:, None], logs], axis=1)[rows, count]

    return upto(alpha, right) + upto(beta, wrong) - upto(alpha + beta, right + wrong)


def _exchangeable(
    name: str, common: tuple[float, float], between: pt.TensorVariable | float
) -> pt.TensorVariable:
    """Return normals around a common mean, by deviations that are standard normal."""
    level = pm.Normal(f"{name}_mean", *common)
    return pm.Deterministic(
        name, level + between * pm.Normal(f"{name}_standard", dims="system"), dims="system"
    )
