"""Shared difficulties under judges that err: likelihood, derivatives, samplers, right trials."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, comb, expit
from scipy.stats import beta, betabinom, binom, norm

from bayesatk.core.one_factor.chances import Marking
from bayesatk.core.one_factor.model import Counts
from bayesatk.core.one_factor.posterior import Chains, Fit
from bayesatk.core.one_factor.questions import Cells, QuestionMeans, misfit, simulate_counts
from bayesatk.metrics.grid import parse
from bayesatk.priors import LeaderboardPrior
from tests.core.test_one_factor import NONE, on, simulate, with_shares

SHAPES = np.array([[(46.0, 6.0), (4.0, 48.0)], [(19.0, 3.0), (5.0, 30.0)]])
SURE = np.array([[(1e12, 1.0), (1.0, 1e12)]])


def marked(rng, systems, questions, trials, marking, never=NONE, always=NONE):
    """Marks, trials, and parameters with the scores of judges that marked them, and of shares."""
    right, n, theta = simulate(rng, systems, questions, trials)
    scores = np.zeros((3, marking.judges))
    scores[:2] = 0.8 * rng.standard_normal((2, marking.judges))
    theta = with_shares(np.concatenate([theta, scores], axis=1), never, always)
    s, f = marking.rates(theta)[:, :, None]
    return rng.binomial(right, s) + rng.binomial(n - right, f), n, theta


def test_rates_are_quantiles_of_the_calibration() -> None:
    marking = Marking(np.array([1, 0, 1]), SHAPES)
    theta = np.zeros((3, 6))
    theta[:2, 3:5] = [[-1.5, 0.3], [2.0, -7.0]]
    found = marking.rates(theta)
    for system, judge in enumerate([1, 0, 1]):
        for rate in (0, 1):
            score = theta[rate, 3 + judge]
            expected = beta(*SHAPES[judge, rate]).ppf(norm.cdf(score))
            assert found[rate, system] == pytest.approx(expected, rel=1e-9)


def _marked_of_right(marks, trials, s, f):
    """Probability of marks in their order given 0, 1, ... right trials: sums of two binomials."""
    of_right = np.arange(marks + 1)
    ways = [
        (binom.pmf(of_right, t, s) * binom.pmf(marks - of_right, trials - t, f)).sum()
        for t in range(trials + 1)
    ]
    return np.array(ways) / comb(trials, marks)


def _right(trials, m, r):
    """Beta-binomial probabilities of 0, 1, ... right trials."""
    t, a, b = np.arange(trials + 1), m / r, (1.0 - m) / r
    return comb(trials, t) * np.exp(betaln(a + t, b + trials - t) - betaln(a, b))


@pytest.mark.parametrize("trials", [1, 4])
def test_likelihood_against_quadrature(trials) -> None:
    """Of ragged data with holes, two judges."""
    rng = np.random.default_rng(trials)
    marking = Marking(np.array([0, 1, 0]), SHAPES)
    never, always = 0.2, 0.1
    c, n, theta = marked(rng, 3, 6, rng.integers(1, trials + 1, (3, 6)), marking, never, always)
    n[0, 3] = c[0, 3] = 0
    s, f = marking.rates(theta)
    total = 0.0
    for own_c, own_n in zip(c.T, n.T, strict=True):
        given = {i: _marked_of_right(own_c[i], own_n[i], s[i], f[i]) for i in np.flatnonzero(own_n)}

        def joint(z, given=given, own_n=own_n):
            found = np.exp(-(z**2) / 2.0) / np.sqrt(2.0 * np.pi)
            for i, chance in given.items():
                m = expit(theta[0, i] + np.exp(theta[1, i]) * z)
                found *= _right(own_n[i], m, np.exp(theta[2, i])) @ chance
            return found

        of_none = np.prod([chance[0] for chance in given.values()])
        of_all = np.prod([chance[-1] for chance in given.values()])
        others = quad(joint, -8, 8, epsabs=0, epsrel=1e-8, limit=100)[0]
        total += np.log(never * of_none + always * of_all + (1.0 - never - always) * others)
    found = on(Counts.of(c, n, marking), 0.05).log_likelihood(theta[None])[0]
    assert found == pytest.approx(total, abs=1e-6)


def test_a_judge_that_never_errs_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    c, n, theta = simulate(rng, 3, 30, 5)
    whole = with_shares(np.concatenate([theta, np.ones((3, 1))], axis=1), 0.1, 0.1)
    theta = with_shares(theta, 0.1, 0.1)
    plain = on(Counts.of(c, n), 0.1)
    judged = on(Counts.of(c, n, Marking(np.zeros(3, int), SURE)), 0.1)
    assert judged.log_likelihood(whole[None]) == pytest.approx(
        plain.log_likelihood(theta[None]), abs=1e-8
    )
    gradient = judged.gradient(whole)[1]
    assert gradient[:, [0, 1, 2, 4]] == pytest.approx(plain.gradient(theta)[1], abs=1e-6)
    assert gradient[:, 3] == pytest.approx(0.0, abs=1e-6)
    means = [
        QuestionMeans(one, c, n, [parse("pass@1")[0].credit])._right(
            own[None], one.z[None, 1:31], rng
        )
        for one, own in ((plain, theta), (judged, whole))
    ]
    assert np.array_equal(means[0], means[1][0])


@pytest.mark.parametrize("seed", range(4))
def test_gradient_and_curvature_are_derivatives(seed) -> None:
    rng = np.random.default_rng(seed)
    marking = Marking(np.array([0, 1, 1, 0][: 2 + seed % 3]), SHAPES)
    systems = len(marking.judge)
    trials = rng.integers(0, 7, (systems, 5))
    trials[0, 0] = 6
    c, n, theta = marked(rng, systems, 5, trials, marking, 0.2, 0.1)
    likelihood = on(Counts.of(c, n, marking), 0.1)
    value, gradient = likelihood.gradient(theta)
    assert value == pytest.approx(likelihood.log_likelihood(theta[None])[0], abs=1e-9)
    step, way = 1e-4, rng.standard_normal(theta.shape)
    ahead, behind = likelihood.gradient(theta + step * way), likelihood.gradient(theta - step * way)
    assert (ahead[0] - behind[0]) / (2 * step) == pytest.approx(
        (gradient * way).sum(), abs=1e-4 * (1.0 + abs(gradient).max())
    )
    turned = (behind[1] - ahead[1]).ravel() / (2 * step)
    curvature = likelihood.curvature(theta)
    assert curvature @ way.ravel() == pytest.approx(turned, abs=1e-3 * (1 + abs(curvature).max()))
    assert (gradient[2, systems:] == 0.0).all()


def test_right_trials_are_drawn_as_bayes_says() -> None:
    rng = np.random.default_rng(5)
    marking = Marking(np.array([0, 1]), SHAPES)
    theta = marked(rng, 2, 1, 4, marking)[2]
    z, place = np.array([-1.0, 0.5]), np.tile([0, 1], 4000)
    c = np.array([[3], [1]]) + 0 * place
    n = np.array([[4], [3]]) + 0 * place
    drawn = marking.draw_right(theta, z, place, c, n, rng)
    s, f = marking.rates(theta)
    for i, (marks, trials) in enumerate([(3, 4), (1, 3)]):
        for k in (0, 1):
            m, r = expit(theta[0, i] + np.exp(theta[1, i]) * z[k]), np.exp(theta[2, i])
            joint = [
                betabinom.pmf(t, trials, m / r, (1 - m) / r)
                * sum(
                    binom.pmf(j, t, s[i]) * binom.pmf(marks - j, trials - t, f[i])
                    for j in range(marks + 1)
                )
                for t in range(trials + 1)
            ]
            expected = np.array(joint) / sum(joint)
            found = np.bincount(drawn[i, place == k], minlength=trials + 1) / 4000
            assert found == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(4000))
            given = marking.right_given_marked(
                theta, z, np.array([i]), np.array([marks]), np.array([trials])
            )
            ((_, exact),) = given
            assert exact[:, 0, k] == pytest.approx(expected, abs=1e-9)


def test_cells_and_misfits_of_marks_against_draws() -> None:
    rng = np.random.default_rng(12)
    marking = Marking(np.array([0, 1]), SHAPES)
    c, n, theta = marked(rng, 2, 6, 3, marking, 0.1, 0.05)
    n[1, 2] = c[1, 2] = 0
    likelihood = on(Counts.of(c, n, marking), 0.1)
    cells = Cells.given(likelihood, theta)
    # Difficulties of questions are independent given the parameters: 4000 draws are drawn at once.
    many_c, many_n = (np.tile(one, 4000) for one in (c, n))
    many = on(Counts.of(many_c, many_n, marking), 0.1)
    (z,) = many.draw_difficulties(theta[None], rng)
    right = marking.draw_right(theta, many.z, np.searchsorted(many.z, z), many_c, many_n, rng)
    m, r = expit(theta[0, :2, None] + np.exp(theta[1, :2, None]) * z), np.exp(theta[2, :2, None])
    shapes = m / r + right, (1.0 - m) / r + many_n - right
    p = rng.beta(*(np.maximum(shape, 1e-300) for shape in shapes)).reshape(2, 4000, 6)
    error = p.std(axis=1) / np.sqrt(4000)
    assert (abs(cells.mean - p.mean(axis=1)) < 5 * error).all()
    assert cells.variance == pytest.approx(p.var(axis=1), rel=0.15)
    columns = np.tile(n[:, :1], 3000)
    drawn = Counts.of(simulate_counts(likelihood, theta, columns, rng), columns, marking)
    s, f = marking.rates(theta)
    z = rng.standard_normal(200_000)
    mean = np.mean(expit(theta[0, :2] + np.exp(theta[1, :2]) * z[:, None]), axis=0)
    rate = f + (s - f) * (0.05 + 0.85 * mean)
    found = (drawn.successes[drawn.column] * drawn.repeats[:, None]).sum(axis=0) / columns.sum(
        axis=1
    )
    assert found == pytest.approx(rate, abs=0.04)
    # Its difficulty is estimated from the same marks, so a misfit varies less than by one.
    direction = np.array([1.0, -1.0])
    assert 0.7 < misfit(on(drawn, 0.1), theta, direction).std() < 1.05


def test_weights_and_chains_agree() -> None:
    """Two samplers that share the posterior only up to the likelihood; two judges."""
    rng = np.random.default_rng(3)
    marking = Marking(np.array([0, 1, 0]), SHAPES)
    c, n, _ = marked(rng, 3, 15, 2, marking)
    fit = Fit.of(Counts.of(c, n, marking), LeaderboardPrior())
    weighted = fit.draw(rng)
    assert weighted.method == "importance"
    started = weighted.theta[:: len(weighted.theta) // 40][:40]
    theta, worth = Chains(fit, rng, started).run()
    assert worth > 200
    error = np.sqrt(1 / worth + 1 / weighted.effective_draws)
    gap = (weighted.theta.mean(axis=0) - theta.mean(axis=0)) / theta.std(axis=0)
    assert abs(gap).max() < 4.5 * error
    # Tails are long: ranges that hold two thirds, which are known better than sds.
    inner = [
        np.diff(np.quantile(one, [1 / 6, 5 / 6], axis=0), axis=0) for one in (weighted.theta, theta)
    ]
    assert abs(np.log(inner[0] / inner[1])).max() < 4.5 * error


def test_evidence_of_one_mark_by_simulation() -> None:
    """How often data from the prior are the data: the one place where all constants count."""
    rng = np.random.default_rng(8)
    marking, prior, size = Marking(np.array([0, 0]), SHAPES[1:]), LeaderboardPrior(), 400_000
    c, n = np.array([[1, 0], [2, 0]]), np.array([[1, 1], [2, 1]])
    found = Fit.of(Counts.of(c, n, marking), prior).draw(rng).log_evidence
    spread = prior.spread_sd * np.sqrt(rng.chisquare(2.0, size))  # of two systems
    pairs = (*prior.mean, spread), prior.discrimination, prior.interaction
    mu, log_a, log_r = (
        centre + common * rng.standard_normal(size) + between * rng.standard_normal((2, size))
        for centre, common, between in pairs
    )
    s, f = (beta(*shape).rvs(size, random_state=rng) for shape in SHAPES[1])
    never, always, _ = rng.dirichlet(prior.atoms, size).T
    same = np.ones(size, bool)
    for marks, trials in zip(c.T, n.T, strict=True):
        u, x = rng.random(size), mu + np.exp(log_a) * rng.standard_normal(size)
        p = rng.beta(*(np.maximum(expit(one) / np.exp(log_r), 1e-300) for one in (x, -x)))
        p[:, u < never], p[:, u > 1.0 - always] = 0.0, 1.0
        drawn = rng.binomial(trials[:, None], f + (s - f) * p)
        same &= (drawn == marks[:, None]).all(axis=0)
    error = np.sqrt(1.0 / same.sum() + 1.0 / 400)
    assert found == pytest.approx(np.log(same.mean()), abs=4 * error)
