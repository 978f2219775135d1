"""Systems together: one difficulty of a question for all of them."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk.data.study import as_marked

_NEVER, _ALWAYS, _OTHERS = range(3)


def build_shared_difficulty(data: object) -> pm.Model:
    """One difficulty per question, shared by all systems; systems exchangeable.

    ``z[q] ~ Normal(0, 1)``; given it, the success probability of system s is Beta with mean
    ``expit(mu[s] + a[s] z[q])`` and intraclass correlation ``rho[s]``, integrated: successes are
    Beta-binomial. A share of the questions is solved by no system, and a share by every one:
    ``atoms`` are Dirichlet, and which questions these are is integrated.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Right and wrong, of systems that tried the same questions.

    Returns
    -------
    pymc.Model
        Variables ``mu(system)``, ``a(system)``, ``rho(system)``, ``z(question)`` and
        ``atoms(share)``. Trials are in the potential ``log_likelihood``, because questions of the
        atoms are of all systems at once.

    See Also
    --------
    bayesatk.compare : systems by their own posteriors, in a joint order.

    Examples
    --------
    >>> model = build_shared_difficulty({"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]})
    >>> sorted(variable.name for variable in model.free_RVs)
    ['a', 'atoms', 'level', 'mu_standard', 'rho', 'spread', 'z']
    """
    outcomes = as_marked(data)
    right, trials = outcomes.successes.values, outcomes.trials.values
    coords = {name: outcomes.dataset[name].values.tolist() for name in ("system", "question")}
    with pm.Model(coords={**coords, "share": ["never", "always", "others"]}) as model:
        level, spread = pm.Normal("level", 0.0, 1.5), pm.Gamma("spread", 2.0, 2.0)
        mu = level + spread * pm.Normal("mu_standard", dims="system")
        pm.Deterministic("mu", mu, dims="system")
        a = pm.LogNormal("a", 0.0, 1.0, dims="system")
        rho = pm.Beta("rho", 1.0, 3.0, dims="system")
        z = pm.Normal("z", dims="question")
        atoms = pt.log(pm.Dirichlet("atoms", np.array([1.0, 1.0, 4.0]), dims="share"))
        mean, total = pm.math.sigmoid(mu[:, None] + a[:, None] * z), (1.0 / rho - 1.0)[:, None]
        of_trials = pm.BetaBinomial.dist(mean * total, (1.0 - mean) * total, trials)
        others = atoms[_OTHERS] + pm.logp(of_trials, right).sum(axis=0)
        never = pt.where((right == 0).all(axis=0), atoms[_NEVER], -np.inf)
        always = pt.where((right == trials).all(axis=0), atoms[_ALWAYS], -np.inf)
        by_question = pt.logsumexp(pt.stack([never, always, others]), axis=0)
        pm.Potential("log_likelihood", by_question.sum())
    return model
