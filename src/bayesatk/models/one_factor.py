"""Systems that share the difficulty of questions: the model of `bayesatk.leaderboard` in PyMC."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from bayesatk.data.other_trials import read_judges
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.models.marks import RightTrials, mark_rates
from bayesatk.models.program import coordinates
from bayesatk.priors import LeaderboardPrior

Ints = NDArray[np.int64]


def build_one_factor(
    data: object, *, prior: LeaderboardPrior | None = None, judge: object = None
) -> pm.Model:
    """One difficulty per question, shared by all systems; systems exchangeable.

    ``z[q] ~ Normal(0, 1)``; given it, the success probability of system s is Beta with mean
    ``expit(mu[s] + a[s] z[q])`` and intraclass correlation ``rho[s]``, integrated: successes are
    Beta-binomial. ``mu``, ``log a`` and ``logit rho`` are normal around means that all share.

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
        Variables ``mu(system)``, ``log_a(system)``, ``logit_rho(system)`` and ``z(question)``;
        observed ``successes``, of the cells that have trials. With a judge also ``judge_rates``,
        ``sensitivity(system)`` and ``false_positive_rate(system)``, and no observed variable: the
        marks are in the potential ``log_likelihood``.

    See Also
    --------
    bayesatk.leaderboard : the same model, difficulties integrated by quadrature.
    bayesatk.models.build_crossed : a correlation of difficulties for every pair of systems.

    Examples
    --------
    >>> model = build_one_factor({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]})
    >>> sorted(variable.name for variable in model.deterministics)
    ['log_a', 'logit_rho', 'mu']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    own = prior or LeaderboardPrior()
    trials, successes = outcomes.trials.values, outcomes.successes.values
    system, question = np.nonzero(trials)
    judges = read_judges(judge, outcomes)
    with pm.Model(coords=coordinates(outcomes)) as model:
        spread = pm.HalfNormal("spread", own.spread_sd)
        mu = _exchangeable("mu", own.mean, spread)
        log_a = _exchangeable("log_a", own.discrimination[:2], own.discrimination[2])
        logit_rho = _exchangeable("logit_rho", own.interaction[:2], own.interaction[2])
        z = pm.Normal("z", dims="question")
        x = mu[system] + pt.exp(log_a)[system] * z[question]
        total = pt.exp(-logit_rho)[system]
        alpha, beta = pm.math.sigmoid(x) * total, pm.math.sigmoid(-x) * total
        c, n = successes[system, question], trials[system, question]
        if judges is None:
            pm.BetaBinomial("successes", alpha=alpha, beta=beta, n=n, observed=c)
        else:
            known = RightTrials(c, n)
            right = known.right
            log_right = _rises(alpha, beta, right, n[:, None] - right)
            rates = (one[system] for one in mark_rates(judges))
            pm.Potential("log_likelihood", known.log_marks(log_right, *rates))
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

    all_ = upto(alpha + beta, right + wrong)
    return upto(alpha, right) + upto(beta, wrong) - all_


def _exchangeable(
    name: str, common: tuple[float, float], between: pt.TensorVariable | float
) -> pt.TensorVariable:
    """Return normals around a common mean, by deviations that are standard normal."""
    level = pm.Normal(f"{name}_mean", *common)
    return pm.Deterministic(
        name, level + between * pm.Normal(f"{name}_standard", dims="system"), dims="system"
    )
