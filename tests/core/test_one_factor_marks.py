"""Shared difficulties of marks, labels and scores: likelihood, derivatives, samplers, questions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, comb, expit, softmax
from scipy.stats import beta, norm
from scipy.stats import t as student_t

from bayesatk.comparison.joint.shared import _counts
from bayesatk.core.one_factor.posterior import Chains, Fit
from bayesatk.core.one_factor.questions import misfit, simulate_counts
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.core.pooling.levels import shape_functions
from bayesatk.data.scales import RIGHT_WRONG, Scored
from bayesatk.judge_error import JudgeError
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import HyperPrior, LeaderboardPrior
from tests.core.test_one_factor import NONE, on, simulate, with_shares

FIRST, SECOND = JudgeError(45, 50, 3, 50), JudgeError(18, 20, 4, 33)
SHAPES = {FIRST: ((46.0, 6.0), (4.0, 48.0)), SECOND: ((19.0, 3.0), (5.0, 30.0))}
NEW = (JudgeError(0, 0, 0, 0),) * 2
SCORES = (0.0, 0.25, 1.0)


def counts_of(kinds, judges=None, scale=RIGHT_WRONG, vary=False, before=None):
    rates = None if judges is None else tuple(JudgeRates(judge, vary) for judge in judges)
    return _counts(Declared(scale, "partial", HyperPrior(), kinds, before, judges=rates))


def marked(rng, systems, questions, trials, rates, never=NONE, always=NONE, labels=0.0):
    """Kinds of trials, and parameters of systems; a share of the trials has labels."""
    right, n, theta = simulate(rng, systems, questions, trials)
    labelled = rng.binomial(right, labels), rng.binomial(n - right, labels)
    unknown = right - labelled[0], n - right - labelled[1]
    (s, f), kinds = rates, np.zeros((systems, questions, 8), np.int64)
    kinds[..., 1] = rng.binomial(unknown[0], s) + rng.binomial(unknown[1], f)
    kinds[..., 0] = sum(unknown) - kinds[..., 1]
    kinds[..., 7], kinds[..., 4] = rng.binomial(labelled[0], s), rng.binomial(labelled[1], f)
    kinds[..., 6], kinds[..., 3] = labelled[0] - kinds[..., 7], labelled[1] - kinds[..., 4]
    return kinds if labels else kinds[..., :2], with_shares(theta, never, always)


def with_scores(theta, scores):
    """Insert columns of scores before the last column."""
    return np.concatenate([theta[:, :-1], scores, theta[:, -1:]], axis=1)


def _chance(trials, right, wrong, a, b):
    """Probability of 0, 1, ... right of unknown trials, and of known ones in their order."""
    t = np.arange(trials + 1)
    return comb(trials, t) * np.exp(betaln(a + right + t, b + wrong + trials - t) - betaln(a, b))


def _given_right(kinds, rates):
    """Probability of marks in their order given 0, 1, ... right trials of those unlabelled.

    Rates of the question are Beta with means and an icc; at an icc of zero labels say nothing.
    """
    (rejected, marks), labels, (s, f, icc) = kinds[:2], np.pad(kinds, (0, 6))[2:8], rates
    total = 1.0 / icc - 1.0 if icc else 0.0

    def chance(rate, hit, miss, of_label):
        if not icc:
            return rate**hit * (1.0 - rate) ** miss
        a, b = rate * total, (1.0 - rate) * total
        return np.exp(betaln(a + hit + of_label[1], b + miss + of_label[0]) - betaln(a, b))

    trials, found = rejected + marks, []
    for t in range(trials + 1):
        ways = [
            comb(t, i) * comb(trials - t, marks - i) * chance(s, i, t - i, labels[4:6])
            * chance(f, marks - i, trials - t - marks + i, labels[1:3])
            for i in range(max(0, marks + t - trials), min(t, marks) + 1)
        ]  # fmt: skip
        found.append(sum(ways) / comb(trials, marks))
    return np.array(found)


def _log_labels(kinds, rates):
    """Log probability of the marks of trials of known truth, rates the same for all questions."""
    total = 0.0
    for (s, f, _), counts in zip(rates, kinds.sum(axis=1), strict=True):
        total += np.log([1.0 - f, f, 1.0 - s, s]) @ counts[[3, 4, 6, 7]]
    return total


@pytest.mark.parametrize(
    ("trials", "labels", "vary"), [(1, 0, 0), (4, 0, 0), (3, 0.4, 0), (3, 0.4, 1)]
)
def test_likelihood_against_quadrature(trials, labels, vary) -> None:
    """Of ragged data with holes, two judges; labels tell of rates."""
    rng = np.random.default_rng(trials)
    judges = NEW if vary else (FIRST, SECOND)
    n = rng.integers(1, trials + 1, (2, 6))
    kinds, theta = marked(rng, 2, 6, n, (0.9, 0.2), 0.2, 0.1, labels)
    kinds[0, 3] = 0
    scores = np.zeros((3, 2))
    scores[: 3 if vary else 2] = 0.8 * rng.standard_normal((3 if vary else 2, 2))
    rates = []
    for system, judge in enumerate(judges):
        icc = beta(0.5, 4.0).ppf(norm.cdf(scores[2, system])) if vary else 0.0
        own = [
            beta(*one).ppf(norm.cdf(scores[row, system])) for row, one in enumerate(judge.shapes)
        ]
        rates.append((*own, icc))
    total = _log_labels(kinds, rates) if labels and not vary else 0.0
    for question in range(6):
        tried = [s for s in range(2) if kinds[s, question].any()]
        marks = [_given_right(kinds[s, question], rates[s]) for s in tried]
        known = [np.pad(kinds[s, question], (0, 8 - kinds.shape[2])) for s in tried]
        known = [(one[:2].sum(), one[5:].sum(), one[2:5].sum()) for one in known]

        def joint(z, marks=marks, known=known, tried=tried):
            found = np.exp(-(z**2) / 2.0) / np.sqrt(2.0 * np.pi)
            for s, chance, (unknown, right, wrong) in zip(tried, marks, known, strict=True):
                m, r = expit(theta[0, s] + np.exp(theta[1, s]) * z), np.exp(theta[2, s])
                found *= _chance(unknown, right, wrong, m / r, (1.0 - m) / r) @ chance
            return found

        pairs = list(zip(marks, known, strict=True))
        of_none = np.prod([chance[0] * (right == 0) for chance, (_, right, _) in pairs])
        of_all = np.prod([chance[-1] * (wrong == 0) for chance, (_, _, wrong) in pairs])
        others = quad(joint, -8, 8, epsabs=0, epsrel=1e-8, limit=100)[0]
        total += np.log(0.2 * of_none + 0.1 * of_all + 0.7 * others)
    whole = with_scores(theta, scores)
    found = on(counts_of(kinds, judges, vary=bool(vary)), 0.05).log_likelihood(whole[None])[0]
    assert found == pytest.approx(total, abs=1e-6)


def test_likelihood_of_scores_and_of_prior_trials() -> None:
    """Three levels by quadrature over p, and prior trials that count as trials do."""
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 3, (2, 3, 3))
    counts[0, 1], counts[:, 2] = 0, [[2, 0, 0], [1, 0, 0]]
    theta = with_shares(simulate(rng, 2, 1, 1)[2], 0.2, 0.1)
    score = rng.standard_normal((1, 2))
    whole = with_scores(theta, np.pad(score, [(0, 2), (0, 0)]))
    p = np.linspace(0.0, 1.0, 20_001)[1:-1]
    tilts, total = np.linspace(-60, 60, 24_001), 0.0
    z = np.arange(-6.0, 6.01, 0.1)
    weight = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    for question in range(3):
        product, of_none = np.ones(len(z)), 1.0
        for s in range(2):
            base = 2.0 * student_t(3).ppf(norm.cdf(score[0, s])) * shape_functions(SCORES)[0]
            vectors = softmax(base + tilts[:, None] * np.array(SCORES), axis=1)
            vector = np.stack([np.interp(p, vectors @ SCORES, column) for column in vectors.T], 1)
            m, r = expit(theta[0, s] + np.exp(theta[1, s]) * z[:, None]), np.exp(theta[2, s])
            chance = np.exp(np.log(vector) @ counts[s, question])
            density = beta(m / r, (1.0 - m) / r).pdf(p)
            product *= (density * chance).sum(axis=1) / density.sum(axis=1)
            of_none *= not counts[s, question, 1:].any()
        total += np.log(0.7 * weight @ product + 0.2 * of_none)
    found = on(counts_of(counts, scale=Scored(SCORES)), 0.1).log_likelihood(whole[None])[0]
    assert found == pytest.approx(total, abs=5e-3)
    right_wrong, half = counts[..., :2], np.full((2, 3, 2), 0.5)
    before = counts_of(right_wrong, before=2.0 * half)
    assert on(before, 0.1).log_likelihood(theta[None]) == pytest.approx(
        on(counts_of(right_wrong + 1), 0.1).log_likelihood(theta[None]), abs=1e-9
    )
    fractions = [on(counts_of(right_wrong, before=w * half), 0.1) for w in (0.0, 0.6, 2.0)]
    logs = [one.log_likelihood(theta[None])[0] for one in fractions]
    assert logs[0] > logs[1] > logs[2]


def test_a_judge_that_never_errs_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    c, n, theta = simulate(rng, 3, 30, 5)
    theta, kinds = with_shares(theta, 0.1, 0.1), np.stack([n - c, c], axis=2)
    sure = JudgeError(10**12, 10**12, 0, 10**12)
    plain, judged = (on(counts_of(kinds, judges), 0.1) for judges in (None, (sure,) * 3))
    assert judged.log_likelihood(theta[None]) == pytest.approx(
        plain.log_likelihood(theta[None]), abs=1e-6
    )
    assert judged.gradient(theta)[1] == pytest.approx(plain.gradient(theta)[1], abs=1e-4)


@pytest.mark.parametrize("form", ["marks", "labels", "rates by question", "scores"])
def test_gradient_and_curvature_are_derivatives(form) -> None:
    rng = np.random.default_rng(len(form))
    if form == "scores":
        counts = counts_of(rng.integers(0, 3, (2, 5, 4)), scale=Scored((0.0, 0.2, 0.5, 1.0)))
        theta = with_shares(simulate(rng, 2, 1, 1)[2], 0.2, 0.1)
        score = np.pad(rng.standard_normal((2, 2)), [(0, 1), (0, 0)])
    else:
        kinds, theta = marked(
            rng, 2, 5, rng.integers(0, 6, (2, 5)), (0.9, 0.2), 0.2, 0.1, 0.4 * (form != "marks")
        )
        varied = form == "rates by question"
        counts = counts_of(kinds, NEW if varied else (FIRST,) * 2, vary=varied)
        score = 0.8 * rng.standard_normal((3, 2))
    theta = with_scores(theta, score)
    likelihood = on(counts, 0.1)
    value, gradient = likelihood.gradient(theta)
    assert value == pytest.approx(likelihood.log_likelihood(theta[None])[0], abs=1e-9)
    step, way = 1e-4, rng.standard_normal(theta.shape)
    ahead, behind = likelihood.gradient(theta + step * way), likelihood.gradient(theta - step * way)
    assert (ahead[0] - behind[0]) / (2 * step) == pytest.approx(
        (gradient * way).sum(), abs=1e-4 * (1.0 + abs(gradient).max())
    )
    turned = (behind[1] - ahead[1]).ravel() / (2 * step)
    curvature = likelihood.curvature(theta)
    assert curvature @ way.ravel() == pytest.approx(turned, abs=2e-3 * (1 + abs(curvature).max()))
    assert gradient[2, -1] == 0.0


def test_misfits_of_simulated_marks_vary_by_one() -> None:
    rng = np.random.default_rng(12)
    kinds, theta = marked(rng, 2, 6, 3, (0.88, 0.1), 0.1, 0.05, 0.3)
    kinds[1, 2] = 0
    theta = with_scores(theta, np.zeros((3, 2)))
    likelihood = on(counts_of(kinds, (FIRST, SECOND)), 0.1)
    simulated = simulate_counts(likelihood, theta, np.zeros(3000, int), rng)
    sizes = simulated.kinds[simulated.column].sum(axis=2)
    assert (sizes == kinds.sum(axis=2)[:, 0]).all()
    # Its difficulty is estimated from the same marks, so a misfit varies less than by one.
    direction = np.array([1.0, -1.0])
    assert 0.7 < misfit(on(simulated, 0.1), theta, direction).std() < 1.05


def test_weights_and_chains_agree() -> None:
    """Two samplers that share the posterior only up to the likelihood; two judges."""
    rng = np.random.default_rng(3)
    kinds, _ = marked(rng, 3, 15, 2, (0.88, 0.1))
    fit = Fit.of(counts_of(kinds, (FIRST, SECOND, FIRST)), LeaderboardPrior())
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
    prior, size = LeaderboardPrior(), 400_000
    c, n = np.array([[1, 0], [2, 0]]), np.array([[1, 1], [2, 1]])
    counts = counts_of(np.stack([n - c, c], axis=2), (SECOND, SECOND))
    found = Fit.of(counts, prior).draw(rng).log_evidence
    spread = prior.spread_sd * np.sqrt(rng.chisquare(2.0, size))  # of two systems
    pairs = (*prior.mean, spread), prior.discrimination, prior.interaction
    mu, log_a, log_r = (
        centre + common * rng.standard_normal(size) + between * rng.standard_normal((2, size))
        for centre, common, between in pairs
    )
    s, f = (beta(*shape).rvs((2, size), random_state=rng) for shape in SHAPES[SECOND])
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
