"""The family-free range: moment theory, another solver, a direct search, and its coverage."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.stats import binom

from bayesatk.core.pooling.moment_range import metric_ranges
from bayesatk.core.pooling.states import States
from bayesatk.core.question.count_bounds import count_bounds, thresholds
from bayesatk.metrics.grid import parse

SHAPES = {
    "10% impossible": lambda rng, m: rng.beta(1.5, 1.5, m) * (rng.random(m) >= 0.1),
    "30% impossible": lambda rng, m: rng.beta(1.5, 1.5, m) * (rng.random(m) >= 0.3),
    "20% solved, rest hard": lambda rng, m: np.where(rng.random(m) < 0.2, 1.0, rng.beta(1, 6, m)),
    "two clusters": lambda rng, m: np.where(
        rng.random(m) < 0.5, rng.beta(20, 3, m), rng.beta(2, 20, m)
    ),
    "heavy tail": lambda rng, m: np.minimum(np.exp(rng.normal(-4, 2, m)), 1.0),
    "logit-normal": lambda rng, m: 1.0 / (1.0 + np.exp(-rng.normal(-1, 2, m))),
    "Beta(.3, .3)": lambda rng, m: rng.beta(0.3, 0.3, m),
    "one probability": lambda rng, m: np.full(m, 0.37),
}


def curves(metrics):
    return [metric.latent for metric in parse(metrics)]


def ranges(successes, trials, metrics, confidence=0.95):
    states = States.of(successes, np.broadcast_to(trials, np.shape(successes)))
    return metric_ranges(states.successes, states.trials, states.count, curves(metrics), confidence)


def bounds_of(counts, confidence=0.95):
    """Bounds of the probabilities of at most t successes and of every count between."""
    n = len(counts) - 1
    c = np.arange(n + 1)
    (found,) = count_bounds(c, np.full(n + 1, n), np.asarray(counts, float), confidence)
    return found


def in_terms_of_counts(n, p):
    """The same probabilities, from the binomial distribution of scipy.stats."""
    cdf = binom.cdf(np.arange(n)[:, None], n, p)
    return np.concatenate([cdf, binom.pmf(np.arange(1, n)[:, None], n, p)])


@pytest.mark.parametrize("questions", [1, 2, 17, 400])
def test_limits_are_clopper_pearsons(questions):
    number = np.arange(questions + 1)
    for s in number:
        found = bounds_of([s, questions - s])
        alpha = 0.05 / 2  # one set of counts, two ends
        low, high = found.lower[0], found.upper[0]
        if 0.0 < low and low < (s - 1) / questions:
            np.testing.assert_allclose(binom.sf(s - 1, questions, low), alpha, rtol=1e-6)
        if high < 1.0 and high > (s + 1) / questions:
            np.testing.assert_allclose(binom.cdf(s, questions, high), alpha, rtol=1e-6)
        assert low <= max(s - 1, 0) / questions
        assert high >= min(s + 1, questions) / questions


@pytest.mark.parametrize("m", [0.02, 0.3, 0.5, 0.91])
def test_one_trial_gives_the_jensen_bounds(m):
    """E p known: pass@2 is least for all or none, and most where all questions are alike."""
    questions = 1e14
    found = metric_ranges([0, 1], [1, 1], questions * np.array([1 - m, m]), curves("pass@2"), 0.95)
    np.testing.assert_allclose(found.lower, m, atol=2e-4)
    np.testing.assert_allclose(found.upper, 1 - (1 - m) ** 2, atol=2e-4)


@pytest.mark.parametrize("shape", ["two clusters", "Beta(.3, .3)", "heavy tail"])
def test_moments_beyond_known_ones_have_hausdorffs_bounds(shape):
    """Given E p, E p^2 and E p^3, determinants of Hankel matrices bound E p^4."""
    p = SHAPES[shape](np.random.default_rng(1), 1000)
    pmf = binom.pmf(np.arange(4)[:, None], 3, p).mean(axis=1)
    found = metric_ranges(np.arange(4), np.full(4, 3), 1e14 * pmf, curves("pass^4"), 0.95)
    m1, m2, m3 = (np.mean(p**i) for i in (1, 2, 3))
    inner = np.array([[1.0, m1], [m1, m2]])
    lower = np.array([m2, m3]) @ np.linalg.solve(inner, [m2, m3])
    upper = m3 - (m2 - m3) ** 2 / (m1 - m2)
    np.testing.assert_allclose(found.lower, lower, atol=2e-4)
    np.testing.assert_allclose(found.upper, upper, atol=2e-4)


@pytest.mark.parametrize("metric", ["pass@16", "pass^7", "maj@9", "auc@20", "mg-pass@8", "bayes"])
@pytest.mark.parametrize(("n", "shape"), [(3, "two clusters"), (8, "30% impossible")])
def test_agrees_with_an_interior_point_solution_on_a_fine_grid(n, shape, metric):
    rng = np.random.default_rng(n)
    counts = np.bincount(rng.binomial(n, SHAPES[shape](rng, 150)), minlength=n + 1)
    bounds = bounds_of(counts)
    p = np.sin(np.linspace(0, np.pi / 2, 3001)) ** 2
    sets, g = in_terms_of_counts(n, p), curves(metric)[0](p)
    found = metric_ranges(np.arange(n + 1), np.full(n + 1, n), counts, curves(metric), 0.95)
    for sign, value in ((1, found.lower), (-1, found.upper)):
        solved = linprog(
            sign * g,
            A_ub=np.concatenate([sets, -sets]),
            b_ub=np.concatenate([bounds.upper, -bounds.lower]),
            A_eq=np.ones((1, len(p))),
            b_eq=[1.0],
            method="highs-ipm",
        )
        np.testing.assert_allclose(value, sign * solved.fun, atol=2e-4)
        assert (sign * (value - sign * solved.fun) <= 1e-6).all()  # never inside


def test_a_direct_search_finds_nothing_outside_and_reaches_both_ends():
    """Distributions on three points, by SLSQP from random starts: no linear programme at all."""
    n, counts = 2, np.array([22, 9, 19])
    bounds, g = bounds_of(counts), curves("pass@8")[0]
    found = metric_ranges(np.arange(3), np.full(3, n), counts, [g], 0.95)
    rng = np.random.default_rng(0)

    def split(x):
        p = np.sin(x[:3]) ** 2
        w = np.exp(x[3:] - x[3:].max())
        return p, w / w.sum()

    def room(x):
        p, w = split(x)
        now = in_terms_of_counts(n, p) @ w
        return np.concatenate([bounds.upper - now, now - bounds.lower])

    reached = []
    for sign in (1, -1):
        best = np.inf
        for _ in range(12):
            start = np.concatenate([rng.uniform(0, np.pi / 2, 3), rng.normal(0, 1, 3)])
            solved = minimize(
                lambda x, sign=sign: sign * float(g(split(x)[0]) @ split(x)[1]),
                start,
                method="SLSQP",
                constraints={"type": "ineq", "fun": room},
                options={"maxiter": 300},
            )
            if room(solved.x).min() > -1e-7:
                best = min(best, solved.fun)
        reached.append(sign * best)
    assert found.lower[0, 1] - 1e-6 <= reached[0] <= found.lower[0, 1] + 2e-3
    assert found.upper[0, 1] - 2e-3 <= reached[1] <= found.upper[0, 1] + 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_holds_the_truth_of_both_targets(shape):
    """With 95% confidence, at every k at once; conservative, so hardly ever missed."""
    metrics = "pass@1,16,64,10000 pass^8"
    asked = curves(metrics)
    rng = np.random.default_rng(7)
    population = SHAPES[shape](rng, 400_000)
    truth = np.array([g(population).mean() for g in asked])
    missed = 0
    for questions, n in ((30, 4), (200, 16)):
        for _ in range(4):
            p = SHAPES[shape](rng, questions)
            found = ranges(rng.binomial(n, p), n, metrics)
            value = np.stack([[g(p).mean() for g in asked], truth], axis=1)
            inside = (found.lower - 1e-9 <= value) & (value <= found.upper + 1e-9)
            missed += int(not inside.all())
            assert found.fits
    assert missed <= 1


def test_of_everything_or_nothing_solved():
    """50 questions never solved: the rule of three, through the lower limit of P(0 of n)."""
    found = ranges(np.zeros(50, int), 16, "pass@16")
    least = bounds_of(np.bincount([0] * 50, minlength=17)).lower[0]
    np.testing.assert_allclose(found.lower, 0.0, atol=1e-4)
    np.testing.assert_allclose(found.upper, 1 - least, atol=2e-4)
    mirrored = ranges(np.full(50, 16), 16, "pass^16")
    np.testing.assert_allclose(mirrored.lower, 1 - found.upper, atol=2e-4)


def test_counts_that_no_difficulties_explain_leave_the_whole_range():
    """Eight of sixteen for every question: less spread than independent trials have."""
    found = ranges(np.full(300, 8), 16, "pass@64 maj@9")
    assert not found.fits
    assert (found.lower == 0).all()
    assert (found.upper == 1).all()


def test_counts_that_only_a_higher_confidence_explains():
    """Seven times eight of sixteen: refused at 95%, and not at the first higher confidence."""
    found, higher = (ranges(np.full(7, 8), 16, "pass@1,64", each) for each in (0.95, 0.99995))
    assert not found.fits
    assert higher.fits
    np.testing.assert_allclose(found.lower, higher.lower, atol=1e-9)
    np.testing.assert_allclose(found.upper, higher.upper, atol=1e-9)
    assert 0.3 < found.lower[0, 1] < 0.5 < found.upper[0, 1] < 0.7


def test_ragged_trials():
    """The population is one distribution; these questions may differ by their number of trials."""
    rng = np.random.default_rng(5)
    p = SHAPES["two clusters"](rng, 300)
    n = rng.choice([2, 15, 16], 300, p=[0.3, 0.2, 0.5])
    c = rng.binomial(n, p)
    found = ranges(c, n, "pass@4,64")
    assert found.trials in (15, 16)
    truth = np.array([g(p).mean() for g in curves("pass@4,64")])
    assert (found.lower[:, 0] <= truth).all()
    assert (truth <= found.upper[:, 0]).all()
    assert (found.upper[:, 0] - found.lower[:, 0] > found.upper[:, 1] - found.lower[:, 1]).all()
    few = ranges(c[n < 15], n[n < 15], "pass@4,64")
    assert ((found.upper - found.lower)[:, 1] < (few.upper - few.lower)[:, 1]).all()


def test_questions_of_few_and_of_many_trials_may_differ():
    """Where only the hard ones were tried often, no one distribution explains both groups."""
    c, n = np.repeat([2, 0], 300), np.repeat([2, 16], 300)
    found = ranges(c, n, "pass@16")
    assert not found.fits
    np.testing.assert_array_equal(found.lower[:, 0], found.lower[:, 1])
    assert 0.45 < found.lower[0, 0] < 0.5 < found.upper[0, 0] < 0.55


def test_untried_questions_and_none_at_all():
    tried = ranges([0, 3, 2], [4, 4, 4], "pass@8")
    more = ranges([0, 3, 2, 0], [4, 4, 4, 0], "pass@8")
    np.testing.assert_array_equal(more.lower, tried.lower)
    nothing = ranges([0, 0], [0, 0], "pass@8")
    assert (nothing.lower == 0).all()
    assert (nothing.upper == 1).all()
    assert nothing.fits


@pytest.mark.parametrize("n", [1, 2, 16, 17, 33, 100, 1000, 100_000])
def test_thresholds_are_symmetric_counts_below_the_trials(n):
    found = np.array(thresholds(n))
    assert found[0] == 0
    assert found[-1] == n - 1
    np.testing.assert_array_equal(np.sort(n - 1 - found), found)
    assert len(found) <= 70
    if n <= 16:
        assert len(found) == n
