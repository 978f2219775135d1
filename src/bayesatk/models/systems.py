"""The model of systems that share the difficulty of questions."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk._tools.arrays import Ints
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.data.other_trials import read_judges
from bayesatk.data.study import as_marked
from bayesatk.models.marks import log_marks, mark_rates, right_trials
from bayesatk.models.program import coordinates
from bayesatk.priors import LeaderboardPrior

_IMPOSSIBLE = -1e5  # log probability of what cannot be, of which NUTS has a gradient


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
        As in `bayesatk.evaluate`: successes are marks of judges that err. The error rates of every
        system are then sampled, and what might have been right is added up.

    Returns
    -------
    pymc.Model
        Variables ``mu(system)``, ``log_a(system)``, ``logit_rho(system)``, ``z(question)`` and
        ``atoms(share)``; with a judge also ``sensitivity(system)`` and
        ``false_positive_rate(system)``. Trials are in the potential ``log_likelihood``.

    See Also
    --------
    bayesatk.leaderboard : the same model, difficulties integrated by quadrature.

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
    judges, _ = read_judges(judge, outcomes)
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
            rates = mark_rates([JudgeRates(one) for one in judges]).of(system)
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
