"""Systems that share the difficulty of questions: the model of `bayesatk.leaderboard` in PyMC."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk.data.outcomes import Outcomes, tally
from bayesatk.models.builders import coordinates
from bayesatk.priors import LeaderboardPrior


def build_one_factor(data: object, *, prior: LeaderboardPrior | None = None) -> pm.Model:
    """One difficulty per question, shared by all systems; systems exchangeable.

    ``z[q] ~ Normal(0, 1)``; given it, the success probability of system s is Beta with mean
    ``expit(mu[s] + a[s] z[q])`` and intraclass correlation ``rho[s]``, integrated: successes are
    Beta-binomial. ``mu``, ``log a`` and ``logit rho`` are normal around means that all share.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Right and wrong; cells may lack trials.
    prior : LeaderboardPrior, optional

    Returns
    -------
    pymc.Model
        Variables ``mu(system)``, ``log_a(system)``, ``logit_rho(system)`` and ``z(question)``;
        observed ``successes``, of the cells that have trials.

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
    with pm.Model(coords=coordinates(outcomes)) as model:
        spread = pm.HalfNormal("spread", own.spread_sd)
        mu = _exchangeable("mu", own.mean, spread)
        log_a = _exchangeable("log_a", own.discrimination[:2], own.discrimination[2])
        logit_rho = _exchangeable("logit_rho", own.interaction[:2], own.interaction[2])
        z = pm.Normal("z", dims="question")
        x = mu[system] + pt.exp(log_a)[system] * z[question]
        total = pt.exp(-logit_rho)[system]
        pm.BetaBinomial(
            "successes", alpha=pm.math.sigmoid(x) * total, beta=pm.math.sigmoid(-x) * total,
            n=trials[system, question], observed=successes[system, question],
        )  # fmt: skip
    return model


def _exchangeable(
    name: str, common: tuple[float, float], between: pt.TensorVariable | float
) -> pt.TensorVariable:
    """Return normals around a common mean, by deviations that are standard normal."""
    level = pm.Normal(f"{name}_mean", *common)
    return pm.Deterministic(
        name, level + between * pm.Normal(f"{name}_standard", dims="system"), dims="system"
    )
