"""The joint draws of `evaluate` against a sampled model in which systems share difficulties.

``z[q] ~ Normal(0, 1)``; given it the success probability of system s is Beta with mean
``expit(mu[s] + a[s] z[q])`` and intraclass correlation ``rho[s]``, integrated. A share of the
questions is solved by no system, and a share by every one. (docs/own_model.md has a recipe.)
"""

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.comparison.pairs.shrinkage import shrunk
from bayesatk.comparison.pairs.together import joint_draws
from bayesatk.results.result import Result

# Systems (of two nothing is shrunk), trials, whether questions are never and always solved.
DATA = ((3, 4, False), (3, 4, True), (4, 2, False), (5, 6, True), (4, 4, False))
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


def _counts(seed: int, questions: int = 70) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    systems, trials, ends = DATA[seed]
    skill = rng.normal(0.3, 0.5, (systems, 1))
    p = expit(skill + 1.3 * rng.standard_normal(questions))
    p = expit(np.log(p / (1 - p)) + 0.6 * rng.standard_normal(p.shape))
    if ends:
        place = rng.random(questions)
        p[:, place < 0.2], p[:, place > 0.9] = 0.0, 1.0
    return rng.binomial(trials, p), np.full(p.shape, trials)


def _model(right: np.ndarray, trials: np.ndarray) -> pm.Model:
    systems, questions = right.shape
    coords = {"system": range(systems), "share": ["never", "always", "others"]}
    with pm.Model(coords=coords) as model:
        level, spread = pm.Normal("level", 0.0, 1.5), pm.Gamma("spread", 1.5, 1.5)
        mu = level + spread * pm.Normal("mu_standard", dims="system")
        pm.Deterministic("mu", mu, dims="system")
        a = pm.LogNormal("a", 0.0, 1.0, dims="system")
        total = 1.0 / pm.Beta("rho", 1.0, 3.0, shape=(systems, 1)) - 1.0
        z = pm.Normal("z", shape=questions)
        atoms = pt.log(pm.Dirichlet("atoms", np.array([1.0, 1.0, 4.0]), dims="share"))
        mean = pm.math.sigmoid(mu[:, None] + a[:, None] * z)
        of_trials = pm.BetaBinomial.dist(mean * total, (1.0 - mean) * total, trials)
        others = atoms[2] + pm.logp(of_trials, right).sum(axis=0)
        never = pt.where((right == 0).all(axis=0), atoms[0], -np.inf)
        always = pt.where((right == trials).all(axis=0), atoms[1], -np.inf)
        pm.Potential(
            "log_likelihood", pt.logsumexp(pt.stack([never, always, others]), axis=0).sum()
        )
    return model


def _sampled(counts: tuple[np.ndarray, np.ndarray], seed: int) -> np.ndarray:
    """Draws of the means over the population, (system, draws): difficulties by quadrature."""
    with _model(*counts):
        for again in range(3):  # now and then a chain gets stuck where it starts
            trace = pm.sample(
                500,
                tune=700,
                chains=2,
                cores=1,
                random_seed=seed + 100 * again,
                progressbar=False,
                nuts_sampler="nutpie",
            )
            found = az.summary(trace, var_names=["mu", "a", "atoms"], round_to="none")
            if found["r_hat"].max() < 1.05:
                break
        else:
            raise AssertionError("no run of three mixed: there is no witness")
    posterior = trace["posterior"].to_dataset().stack(s=("chain", "draw"))
    mu, a = (posterior[name].transpose("system", "s").values[..., None] for name in ("mu", "a"))
    mean = expit(mu + a * NODES) @ (WEIGHTS / WEIGHTS.sum())
    _, always, others = posterior["atoms"].transpose("share", "s").values
    return always + others * mean


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(DATA)))
def test_differences_are_those_of_shared_difficulties(seed: int) -> None:
    """Within .3 sd and, of P(better), .05: another law of difficulty, no copula, no margins."""
    counts = _counts(seed)
    theirs = _sampled(counts, seed + 1)
    fit = Result.of(bk.evaluate(bk.tally(counts), "pass@1", rng=1))
    ours = shrunk(joint_draws(fit)[1, 0].T).T
    for i, j in zip(*np.triu_indices(len(ours), 1), strict=True):
        gap, expected = ours[i] - ours[j], theirs[i] - theirs[j]
        assert abs(gap.mean() - expected.mean()) < 0.3 * expected.std()
        assert gap.std() == pytest.approx(expected.std(), rel=0.3)
        better = (expected > 0).mean()
        noise = 2.0 * np.sqrt(better * (1.0 - better) / len(expected))  # of the sampled draws
        assert (gap > 0).mean() == pytest.approx(better, abs=0.05 + noise)
