"""Shared difficulties: likelihood, derivatives, and two samplers of one posterior."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import betaln, comb, expit, logsumexp
from scipy.stats import beta, norm

from bayesatk.core.one_factor.model import Counts, Likelihood
from bayesatk.core.one_factor.posterior import Chains, Fit, Laplace, Normal, Spread
from bayesatk.core.one_factor.questions import QuestionMeans, population_means
from bayesatk.metrics.grid import parse
from bayesatk.priors import LeaderboardPrior


def simulate(rng, systems, questions, trials, spread=0.5, icc=0.1, slope=1.5):
    """Counts and parameters, drawn as the model says."""
    theta = np.stack([
        0.3 + spread * rng.standard_normal(systems),
        np.log(slope) + 0.2 * rng.standard_normal(systems),
        np.full(systems, np.log(icc / (1.0 - icc))),
    ])  # fmt: skip
    m = expit(theta[0][:, None] + np.exp(theta[1])[:, None] * rng.standard_normal(questions))
    total = (1.0 - icc) / icc
    p = rng.beta(m * total, (1.0 - m) * total)
    n = np.broadcast_to(trials, (systems, questions)).copy()
    return rng.binomial(n, p), n, theta


ATOMS = LeaderboardPrior().atoms
NONE = 1e-12  # share of questions that all, or none, solve


def with_shares(theta, never=NONE, always=NONE):
    """Parameters with the scores of shares, which are Dirichlet(1/2, 1/2, 4) a priori."""
    scores = norm.ppf([beta(0.5, 4.5).cdf(never), beta(0.5, 4).cdf(always / (1.0 - never))])
    return np.column_stack([theta, [*scores, 0.0]])


def on(counts, step) -> Likelihood:
    return Likelihood.on(counts, step, ATOMS)


def _by_quadrature(c, n, theta, never, always) -> float:
    """Log probability of all trials in their order, a question after the other."""
    total = 0.0
    for own_c, own_n in zip(c.T, n.T, strict=True):

        def joint(z, own_c=own_c, own_n=own_n):
            log = -(z**2) / 2.0 - np.log(2.0 * np.pi) / 2.0
            for s in np.flatnonzero(own_n):
                m, size = expit(theta[0, s] + np.exp(theta[1, s]) * z), np.exp(-theta[2, s])
                a, b = m * size, (1.0 - m) * size
                log += betaln(a + own_c[s], b + own_n[s] - own_c[s]) - betaln(a, b)
            return np.exp(log)

        chance = (1.0 - never - always) * quad(joint, -8, 8, epsabs=0, epsrel=1e-9, limit=200)[0]
        total += np.log(chance + never * (own_c == 0).all() + always * (own_c == own_n).all())
    return total


@pytest.mark.parametrize("trials", [1, 4, 200])
def test_likelihood_against_quadrature(trials) -> None:
    """Of ragged data with holes; 200 trials take the other way to sum logs."""
    rng = np.random.default_rng(trials)
    c, n, theta = simulate(rng, 3, 12, rng.integers(1, trials + 1, (3, 12)))
    n[0, 3] = c[0, 3] = n[2, 5] = c[2, 5] = 0
    c[:, 7], c[:, 8] = 0, n[:, 8]
    whole = with_shares(theta, 0.2, 0.05)
    found = on(Counts.of(c, n), 0.02).log_likelihood(whole[None])[0]
    assert found == pytest.approx(_by_quadrature(c, n, theta, 0.2, 0.05), abs=1e-6)


def test_patterns_of_answers_add_up_to_one() -> None:
    """All counts of three systems with 2, 1 and 3 trials: the likelihood is a distribution."""
    n = np.array([2, 1, 3])
    every = np.stack(np.meshgrid(*[np.arange(one + 1) for one in n]), -1).reshape(-1, 3).T
    theta = with_shares(simulate(np.random.default_rng(5), 3, 1, 1)[2], 0.3, 0.1)
    logs = []
    for c in every.T:
        counts = Counts.of(c[:, None], n[:, None])
        ways = np.log(comb(n, c)).sum()
        logs.append(on(counts, 0.1).log_likelihood(theta[None])[0] + ways)
    assert logsumexp(logs) == pytest.approx(0.0, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 5), st.integers(1, 8), st.integers(1, 150))
def test_gradient_and_curvature_are_derivatives(seed, systems, questions, most) -> None:
    rng = np.random.default_rng(seed)
    trials = rng.integers(0, most + 1, (systems, questions))
    trials[0, 0] = most
    c, n, theta = simulate(rng, systems, questions, trials, spread=1.0, icc=0.2)
    theta = with_shares(theta, *rng.uniform(0.01, 0.3, 2))
    likelihood = on(Counts.of(c, n), 0.1)
    value, gradient = likelihood.gradient(theta)
    assert value == pytest.approx(likelihood.log_likelihood(theta[None])[0], abs=1e-9)
    step = 1e-4
    way = rng.standard_normal(theta.shape)
    ahead, behind = likelihood.gradient(theta + step * way), likelihood.gradient(theta - step * way)
    scale = 1.0 + abs(gradient).max()
    assert (ahead[0] - behind[0]) / (2 * step) == pytest.approx(
        (gradient * way).sum(), abs=1e-4 * scale
    )
    turned = (behind[1] - ahead[1]).ravel() / (2 * step)
    curvature = likelihood.curvature(theta)
    assert curvature @ way.ravel() == pytest.approx(turned, abs=1e-3 * (1 + abs(curvature).max()))


def test_normal_posterior_given_a_normal_likelihood_is_exact() -> None:
    """Two systems whose mu are known with sd 1/2; witness: draws from the prior, weighted."""
    prior = LeaderboardPrior()
    curvature = np.zeros((9, 9))  # three columns: two systems, and the shares
    curvature[0, 0] = curvature[1, 1] = 4.0
    laplace = Laplace(np.array([1.0, 2.0, 0, 0, 0, 0, 0, 0, 0]), 0.0, np.zeros(9), curvature)
    normal = Normal.integrated(Spread.rough(prior, 2), laplace)
    share = np.exp(normal.log_weight)
    rng = np.random.default_rng(1)
    sd = rng.rayleigh(1.0, 2_000_000)  # of two systems
    mu = 1.5 * rng.standard_normal(len(sd)) + sd * rng.standard_normal((2, len(sd)))
    weight = np.exp(-2.0 * ((mu[0] - 1) ** 2 + (mu[1] - 2) ** 2))
    weight /= weight.sum()
    error = 1.0 / np.sqrt(1.0 / (weight @ weight))
    for i in range(2):
        assert share @ normal.mean[:, i] == pytest.approx(weight @ mu[i], abs=4 * error)
    assert share @ normal.spread.sd == pytest.approx(weight @ sd, abs=4 * error)
    node = rng.choice(len(share), 200_000, p=share)
    theta = normal.place(node, rng.standard_normal((len(node), 9)))
    assert theta[:, 0, :2].std(axis=0) == pytest.approx(
        [np.sqrt(weight @ (one - weight @ one) ** 2) for one in mu], rel=0.01
    )
    assert normal.place(node[:9], normal.deviation(node[:9], theta[:9])) == pytest.approx(theta[:9])


@pytest.mark.parametrize(("systems", "questions", "trials"), [(2, 6, 1), (4, 20, 3)])
def test_weights_and_chains_agree(systems, questions, trials) -> None:
    """Two samplers that share the posterior only up to the likelihood."""
    rng = np.random.default_rng(systems)
    fit = Fit.of(Counts.of(*simulate(rng, systems, questions, trials)[:2]), LeaderboardPrior())
    weighted = fit.draw(rng)
    started = fit.normal.place(np.full(40, 12), rng.standard_normal((40, 3 * systems + 3)))
    theta, worth = Chains(fit, rng, started).run()
    assert worth > 200
    error = np.sqrt(1 / worth + 1 / weighted.effective_draws)
    gap = (weighted.theta.mean(axis=0) - theta.mean(axis=0)) / theta.std(axis=0)
    assert abs(gap).max() < 4.5 * error
    assert abs(np.log(weighted.theta.std(axis=0) / theta.std(axis=0))).max() < 4.5 * error


def test_means_over_questions_by_brute_force() -> None:
    """Both ways to draw them, and questions like these, against drawing questions."""
    rng = np.random.default_rng(8)
    c, n, theta = simulate(rng, 2, 250, 3)
    never, always, whole = 0.15, 0.05, with_shares(theta, 0.15, 0.05)
    likelihood = on(Counts.of(c, n), 0.1)
    metrics = parse("pass@1,3 maj@3")
    credits, latents = [one.credit for one in metrics], [one.latent for one in metrics]
    means = QuestionMeans(likelihood, c, n, credits)
    same = np.repeat(whole[None], 600, axis=0)
    drawn = means.draw(same, latents, np.random.default_rng(1))
    import bayesatk.core.one_factor.questions as module

    drawn_at_most, module._DRAWN = module._DRAWN, 0.0
    normal = means.draw(same, latents, np.random.default_rng(2))
    module._DRAWN = drawn_at_most
    sd = drawn.std(axis=0)
    assert abs(normal.mean(axis=0) - drawn.mean(axis=0)).max() < 5 * (sd * np.sqrt(2 / 600)).max()
    assert abs(np.log(normal.std(axis=0) / sd)).max() < 5 / np.sqrt(600)
    z = rng.standard_normal(200_000)
    m, total = expit(theta[0][:, None] + np.exp(theta[1])[:, None] * z), np.exp(-theta[2])[:, None]
    u, p = rng.random(len(z)), rng.beta(m * total, (1 - m) * total)
    p[:, u < never], p[:, u > 1.0 - always] = 0.0, 1.0
    found = population_means(credits, likelihood, whole[None])[0]
    for j, latent in enumerate(latents):
        value = latent(p)
        error = value.std(axis=1) / np.sqrt(len(z))
        assert (abs(found[:, j] - value.mean(axis=1)) < 5 * error).all()


def test_weighted_means_over_questions() -> None:
    """Parts of the questions make the whole, and the mean weighs single questions."""
    rng = np.random.default_rng(9)
    c, n, theta = simulate(rng, 2, 30, 3)
    likelihood = on(Counts.of(c, n), 0.1)
    (metric,) = parse("pass@1")
    weight = rng.gamma(0.5, 1.0, 30)
    part = np.arange(30) < 12
    same = np.repeat(with_shares(theta, 0.1, 0.1)[None], 4000, axis=0)
    whole, first, second, heavy = (
        QuestionMeans(likelihood, c, n, [metric.credit], by).draw(
            same, [metric.latent], np.random.default_rng(1)
        )[..., 0]
        for by in (None, part + 0.0, ~part + 0.0, weight)
    )
    assert 0.4 * first + 0.6 * second == pytest.approx(whole)
    single = [
        QuestionMeans(likelihood, c, n, [metric.credit], np.arange(30) == question).draw(
            same, [metric.latent], np.random.default_rng(question)
        )[..., 0]
        for question in range(30)
    ]
    expected = weight @ np.mean(single, axis=1) / weight.sum()
    error = heavy.std(axis=0) * np.sqrt(2.0 / len(heavy))  # of both means
    assert (abs(heavy.mean(axis=0) - expected) < 4.5 * error).all()


# Law School Admission Test, section 6: 1,000 people, five items (Bock and Lieberman 1970,
# Psychometrika 35, 179-197), as the counts of patterns of right answers.
LSAT = {
    "00000": 3, "00001": 6, "00010": 2, "00011": 11, "00100": 1, "00101": 1, "00110": 3,
    "00111": 4, "01000": 1, "01001": 8, "01011": 16, "01101": 3, "01110": 2, "01111": 15,
    "10000": 10, "10001": 29, "10010": 14, "10011": 81, "10100": 3, "10101": 28, "10110": 15,
    "10111": 80, "11000": 16, "11001": 56, "11010": 21, "11011": 173, "11100": 11, "11101": 61,
    "11110": 28, "11111": 298,
}  # fmt: skip


def test_published_maximum_likelihood_of_the_law_school_test() -> None:
    """Estimates, log likelihood and expected counts of R's ltm (Rizopoulos 2006, JSS 17(5)).

    The people are the questions here, and the items the systems: r has no part in single trials.
    """
    people = np.array([[int(one) for one in pattern] for pattern in LSAT]).T
    c = np.repeat(people, list(LSAT.values()), axis=1)
    counts = Counts.of(c, np.ones_like(c))
    assert (len(counts.repeats), counts.repeats.sum()) == (30, 1000)
    likelihood = on(counts, 0.1)

    def objective(x):
        theta = with_shares(np.concatenate([x.reshape(2, 5), np.zeros((1, 5))]))
        value, gradient = likelihood.gradient(theta)
        return -value, -gradient[:2, :5].ravel()

    found = minimize(objective, np.zeros(10), jac=True, method="BFGS", options={"gtol": 1e-4})
    mu, slope = found.x[:5], np.exp(found.x[5:])
    assert -found.fun == pytest.approx(-2466.653, abs=6e-4)
    assert slope == pytest.approx([0.8254, 0.7229, 0.8905, 0.6886, 0.6575], abs=2e-3)
    assert -mu / slope == pytest.approx([-3.3597, -1.3696, -0.2799, -1.8659, -3.1236], abs=8e-3)
    theta = with_shares(np.concatenate([found.x.reshape(2, 5), np.zeros((1, 5))]))
    for pattern, expected in (("00000", 2.277), ("11011", 173.310), ("11111", 296.693)):
        one = Counts.of(np.array([[int(x)] for x in pattern]), np.ones((5, 1), int))
        own = 1000 * np.exp(on(one, 0.1).log_likelihood(theta[None])[0])
        assert own == pytest.approx(expected, abs=0.05)
