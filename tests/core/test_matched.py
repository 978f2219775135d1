"""Distributions of means over questions: integrals, inverted transforms, simulation, and laws."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from scipy.integrate import quad
from scipy.special import betainc, betaincinv, betaln, comb, expit
from scipy.stats import beta as beta_distribution
from scipy.stats import gamma, norm

import bayesatk as bk
from bayesatk.core.engine.distribution import Empirical, interval
from bayesatk.core.engine.matched import cumulant_mixture, matched_quantiles
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.program.credits import credit_cumulants
from bayesatk.metrics.credit import Credit, pass_at
from bayesatk.metrics.grid import one_metric, parse
from bayesatk.priors import BetaPrior, HyperPrior
from tests.core.agreement import (
    BETA,
    FLAT,
    check_against_draws,
    check_points,
    check_quantiles,
    modelled,
    of_questions,
    posterior_of,
    width_of,
)
from tests.core.urn import Counts, Witness

type Array = np.ndarray

LEVELS = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
ENDS = np.array([0.025, 0.975])


def repeated(*tally: tuple[int, int, int]) -> Counts:
    """Return counts of (right, trials, questions)."""
    right, trials, number = (np.array(column) for column in zip(*tally, strict=True))
    return tuple(np.repeat(right, number).tolist()), tuple(np.repeat(trials, number).tolist())


def worth(metric: str, p: Array) -> Array:
    """Credit of k trials that succeed with probability p, term by term."""
    credit = one_metric(metric).credit
    k, total = credit.k, np.zeros_like(p)
    for j in np.flatnonzero(credit.vector):
        total += credit.vector[j] * comb(k, j) * p**j * (1.0 - p) ** (k - j)
    return total


def simulated(
    counts: Counts, metric: str, size: int, seed: int = 11, prior: HyperPrior | BetaPrior = BETA
) -> Array:
    """Independent draws of the mean: hyperparameters of a witness, then every p."""
    rng = np.random.default_rng(seed)
    alpha, beta = 1.0, 1.0
    if isinstance(prior, HyperPrior):
        alpha, beta = Witness(counts, prior).sample(size, rng)
        alpha, beta = np.maximum(alpha, 1e-9), np.maximum(beta, 1e-9)
    else:
        alpha, beta = prior.alpha, prior.beta
    total = np.zeros(size)
    for right, trials in zip(*counts, strict=True):
        total += worth(metric, rng.beta(alpha + right, beta + trials - right, size))
    return total / len(counts[0])


# ------------------------------------------------------------------ a few questions


def test_two_questions_against_a_convolution_integral() -> None:
    """P(p1 + p2 <= 2x) by quadrature over p1 of the Beta distribution function of p2."""
    found = of_questions(([4, 1], [4, 4]), "pass@1", FLAT)

    def below(x: float) -> float:
        return quad(
            lambda p: beta_distribution.pdf(p, 5, 1) * betainc(2, 4, np.clip(2 * x - p, 0, 1)),
            0,
            1,
            epsabs=1e-12,
            points=[max(0.0, 2 * x - 1), min(1.0, 2 * x)],
        )[0]

    check_quantiles(found, below, LEVELS)


def success_probability(credit: Credit, value: Array) -> Array:
    """Invert pass@k and pass^k: the success probability at which g(p) is this worth."""
    value = np.clip(value, 0.0, 1.0)
    if credit.threshold == 1:
        with np.errstate(divide="ignore"):  # worth 1 is success for sure
            return -np.expm1(np.log1p(-value) / credit.k)
    return value ** (1.0 / credit.k)


@dataclass
class Pair:
    """Mean of two questions: one integral over the first's probability scale, per node."""

    metric: str
    counts: Counts
    alpha: Array
    beta: Array
    weight: Array
    points: int = 40

    def cdf(self, value: float) -> float:
        """Probability that the mean is below a value."""
        credit = one_metric(self.metric).credit
        first, second = (
            (self.alpha + good, self.beta + trials - good)
            for good, trials in zip(*self.counts, strict=True)
        )
        # Where the other's worth would have to be 1 (then any will do) and 0 (then none will).
        sure, never = (
            betainc(*first, success_probability(credit, np.asarray(2 * value - end)))
            for end in (1.0, 0.0)
        )
        node, node_weight = leggauss(self.points)
        angle = (1 + node) * np.pi / 4  # u = sin^2: smooth where densities have roots at the ends
        u = sure + (never - sure) * np.sin(angle)[:, None] ** 2
        jacobian = np.sin(2 * angle) * np.pi / 4 * node_weight
        p = betaincinv(*first, np.clip(u, 0.0, 1.0))
        other = success_probability(credit, 2 * value - worth(self.metric, p))
        total = sure + (never - sure) * (jacobian @ betainc(*second, other))
        return float(self.weight @ total)


@pytest.mark.parametrize("metric", ["pass@1", "pass@2", "pass^3"])
@pytest.mark.parametrize("counts", [((1, 4), (2, 4)), ((0, 0), (1, 8)), ((4, 4), (4, 4))])
def test_two_questions_without_pooling(metric: str, counts: Counts) -> None:
    """Direct double integral, uniform prior for each question."""
    pair = Pair(metric, counts, *np.ones((3, 1)), points=200)
    check_quantiles(of_questions(counts, metric, FLAT), pair.cdf, LEVELS)


@pytest.mark.parametrize("counts", [((1, 4), (2, 5)), ((3, 3), (4, 4))])
def test_two_questions_partially_pooled(counts: Counts) -> None:
    """The same double integral under every node of a coarser witness grid."""
    prior = HyperPrior(mean=(3.0, 2.0), icc=(2.0, 2.0), families="beta")
    witness = Witness(counts, prior, order=6)
    keep = witness.weight > 1e-9
    size = np.exp(-witness.y[keep])
    alpha, beta = expit(witness.x[keep]) * size, expit(-witness.x[keep]) * size
    pair = Pair("pass^2", counts, alpha, beta, witness.weight[keep])
    check_quantiles(of_questions(counts, "pass^2", prior), pair.cdf, LEVELS[[0, 3, 6]], slack=2e-6)


def convolved_cdf(metric: str, counts: Counts) -> Callable[[float], float]:
    """Convolution of the questions' masses on a fine grid of worths; uniform priors."""
    cells = 1 << 17
    credit = one_metric(metric).credit
    edge = success_probability(credit, np.linspace(0.0, 1.0, cells + 1))
    length, transform = cells * len(counts[0]), np.ones(1)
    for good, trials in zip(*counts, strict=True):
        mass = np.diff(betainc(1.0 + good, 1.0 + trials - good, edge))
        transform = transform * np.fft.rfft(mass, length)
    total = np.cumsum(np.fft.irfft(transform, length))
    # Midpoints of the cells add up to half a cell per question.
    place = (np.arange(length) + len(counts[0]) / 2 + 0.5) / length
    return lambda value: float(np.interp(value, place, total))


@pytest.mark.parametrize(
    ("metric", "counts"),
    [
        ("pass@1", ((0, 1, 2), (2, 2, 2))),
        ("pass@2", ((4, 4, 1), (4, 4, 3))),
        ("pass^2", ((0, 3, 3, 9), (5, 3, 4, 20))),
        ("pass@4", ((4,) * 5, (4,) * 5)),
        ("pass^4", ((0,) * 5, (3,) * 5)),
        ("pass^2", ((1, 4, 4, 4) * 10, (4,) * 40)),
    ],
)
def test_questions_against_convolution(metric: str, counts: Counts) -> None:
    """Three to forty questions, no pooling, convolved on 2^17 cells."""
    check_quantiles(
        of_questions(counts, metric, FLAT), convolved_cdf(metric, counts), LEVELS, slack=1e-5
    )


@pytest.mark.parametrize("counts", [((3,), (4,)), ((4,), (4,)), ((0,), (1,)), ((38,), (100,))])
def test_one_question_is_a_mixture_of_betas(counts: Counts) -> None:
    """The distribution of one question, from the incomplete Beta function on the witness grid."""
    witness, credit = Witness(counts, panel=1.0), pass_at(3)
    (good,), (trials,) = counts
    heaviest = np.argsort(witness.weight.ravel())[::-1]
    total = np.cumsum(witness.weight.ravel()[heaviest])
    keep = heaviest[: int(np.searchsorted(total, 1.0 - 1e-7))]
    size = np.exp(-witness.y[keep])
    first = expit(witness.x[keep]) * size + good
    second = expit(-witness.x[keep]) * size + trials - good

    def cdf(value: float) -> float:
        edge = success_probability(credit, np.asarray(value))
        return float(witness.weight[keep] @ betainc(first, second, edge))

    check_quantiles(of_questions(counts, "pass@3"), cdf, (0.025, 0.5, 0.975), slack=3e-6)


def test_one_question_is_the_beta_distribution() -> None:
    p = beta_distribution.ppf(LEVELS, 13, 5)
    found = of_questions(([12], [16]), "pass@3", FLAT)
    check_points(found, LEVELS, 1 - (1 - p) ** 3)
    assert found.cdf([-0.1, 1.1]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("metric", ["pass@1", "pass@3", "pass^2"])
@pytest.mark.parametrize("right", [True, False])
def test_one_question_near_either_end_is_a_beta(metric: str, right: bool) -> None:
    """Quantiles at distances of 1e-8 to 1e-3 from the end."""
    successes = 4000 if right else 0
    p = beta_distribution(0.5 + successes, 0.5 + 4000 - successes).ppf(LEVELS)
    found = of_questions(([successes], [4000]), metric, BetaPrior(0.5, 0.5))
    check_points(found, LEVELS, worth(metric, p))


# ------------------------------------------------------------------ next to an end of the scale


def test_matched_gammas_are_gammas_and_normals() -> None:
    """Alone, turned round, and in a mixture of one point or many."""
    size = gamma(2.5, scale=0.01)
    cumulants = [2.5 * 0.01, 2.5 * 0.01**2, 2 * 2.5 * 0.01**3]
    ones = np.ones(len(LEVELS))
    mean, variance, third = (value * ones for value in cumulants)
    np.testing.assert_allclose(
        matched_quantiles(norm.ppf(LEVELS), mean, variance, third), size.ppf(LEVELS)
    )
    turned = matched_quantiles(norm.ppf(LEVELS), 1.0 - mean, variance, -third)
    np.testing.assert_allclose(turned, 1.0 - size.ppf(1.0 - LEVELS))
    normal = matched_quantiles(norm.ppf(LEVELS), mean, variance, 0.0 * third)
    np.testing.assert_allclose(normal, norm(mean, np.sqrt(variance)).ppf(LEVELS), atol=1e-7)
    for points in (1, 5):
        rows = [np.full(points, value) for value in cumulants]
        found = cumulant_mixture(np.full(points, 1.0 / points), *rows, (0.0, 1.0), np.inf)
        check_points(found, LEVELS, size.ppf(LEVELS))


def test_a_mixture_is_that_of_its_points() -> None:
    """Normals at many points, of which no two are alike."""
    centre = np.linspace(0.2, 0.7, 301)
    weight = np.exp(-0.5 * ((centre - 0.4) / 0.1) ** 2)
    weight /= weight.sum()
    sd = 0.02 + 0.05 * centre
    found = cumulant_mixture(weight, centre, sd**2, np.zeros(301), (0.0, 1.0), np.inf)
    check_quantiles(found, lambda x: float(weight @ norm(centre, sd).cdf(x)), LEVELS)
    known = cumulant_mixture(weight, centre, np.zeros(301), np.zeros(301), (0.0, 1.0), 1e4)
    check_quantiles(known, lambda x: float(weight @ (centre <= x)), LEVELS)


@pytest.mark.parametrize(("a", "questions"), [(1e3, 30), (2e4, 30), (2e4, 200)])
def test_questions_all_but_right_are_a_gamma(a: float, questions: int) -> None:
    """With p so near 1, each miss is Gamma(1/10, 1/a), so their sum is a gamma as well."""
    found = of_questions(([1] * questions, [1] * questions), "pass@1", BetaPrior(a, 0.1))
    missed = gamma(0.1 * questions).ppf(1.0 - LEVELS) / (a + 1.0) / questions
    check_points(found, LEVELS, 1.0 - missed)


def euler(transform: Callable[[Array], Array], distance: float) -> float:
    """P(D <= distance) from E exp(-s D): Bromwich's integral by Euler's sum (Abate, Whitt 1992)."""
    decay, terms, extra = 20.0, 40, 14
    k = np.arange(terms + extra + 1)
    s = (decay + 2j * np.pi * k) / (2 * distance)
    series = (-1.0) ** k * (transform(s) / s).real
    series[0] *= 0.5
    partial = np.cumsum(series)[terms:]
    return float(
        np.exp(decay / 2) / distance * (partial @ comb(extra, np.arange(extra + 1))) / 2**extra
    )


@pytest.mark.parametrize("metric", ["pass@1", "pass@4", "pass^3"])
@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.05), (2.0, 0.3), (30.0, 1.0)])
def test_thirty_questions_all_right_next_to_the_end(metric: str, alpha: float, beta: float) -> None:
    """Quantiles at distances of 1e-2 to 1e-6 from 1, by inverting a Laplace transform."""
    step = 0.005
    t = step * np.arange(-1000, 3000)
    x = 2.0 * np.sinh(t)
    log_p, log_q = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    mass = np.exp((alpha + 4) * log_p + beta * log_q - betaln(alpha + 4, beta))
    mass *= step * 2.0 * np.cosh(t)
    lost = np.exp(4 * log_q)
    if metric != "pass@4":
        lost = -np.expm1(one_metric(metric).k * log_p)

    def above(value: float) -> float:
        distance = max(1.0 - value, 1e-12)
        return 1.0 - euler(lambda s: (mass @ np.exp(-np.outer(lost / 30, s))) ** 30, distance)

    found = of_questions(([4] * 30, [4] * 30), metric, BetaPrior(alpha, beta))
    check_quantiles(found, above, ENDS, slack=1e-3)


# ------------------------------------------------------------------ against simulation


UNPOOLED = [
    ([4] * 5, 4, "pass@4"),
    ([4] * 30, 4, "pass@4"),
    ([64] * 29 + [0], 64, "pass@32"),
    ([16] * 99 + [0], 16, "pass@8"),
    ([0, 4, 2], 4, "mg-pass@4"),
    ([1, 3], 4, "auc@4"),
    (list(range(0, 60, 2)), 64, "maj@8"),
    ([12, 3, 9, 16, 7], 16, "pass^16"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("right", "trials", "metric"), UNPOOLED)
def test_without_pooling_against_simulation(right: list[int], trials: int, metric: str) -> None:
    """Independent draws of every question's success probability."""
    counts = tuple(right), (trials,) * len(right)
    draws = simulated(counts, metric, 200_000, 7, FLAT)
    check_against_draws(of_questions(counts, metric, FLAT), draws, LEVELS)


POOLED: dict[str, Counts] = {
    "homogeneous": repeated((16, 32, 100)),
    "single trials": repeated((1, 1, 140), (0, 1, 60)),
    "many single trials": repeated((1, 1, 1400), (0, 1, 600)),
    "four trials": repeated((0, 4, 8), (1, 4, 3), (2, 4, 2), (3, 4, 3), (4, 4, 14)),
    "thirty, all right": repeated((4, 4, 30)),
    "thirty, single trials": repeated((1, 1, 18), (0, 1, 12)),
    "mixed": repeated((0, 4, 10), (1, 4, 2), (3, 6, 2), (5, 8, 2), (4, 4, 10)),
    "a hundred, one wrong": repeated((16, 16, 99), (0, 16, 1)),
    "five, all right": repeated((1, 1, 5)),
    "two single trials that failed": repeated((0, 1, 2)),
    "two questions": ((3, 0), (4, 4)),
    "one question": ((3,), (4,)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "metric"),
    list(zip(POOLED, 3 * ["bayes", "pass@4", "maj@3", "pass^2"], strict=True)),
)
def test_pooled_distributions_against_simulation(name: str, metric: str) -> None:
    counts = POOLED[name]
    size = min(100_000, 10_000_000 // len(counts[0]))
    draws = simulated(counts, metric, size)
    check_against_draws(of_questions(counts, metric), draws, LEVELS)


MANY: dict[str, tuple[Counts, str]] = {
    "all right": (repeated((16, 16, 2000)), "pass@8"),
    "three wrong": (repeated((1, 1, 997), (0, 1, 3)), "pass@8"),
    "some wrong": (repeated((1, 1, 700), (0, 1, 300)), "pass@8"),
    "one trial wrong": (repeated((16, 16, 970), (15, 16, 30)), "pass@2"),
    "majorities": (repeated((3, 3, 600), (1, 3, 400)), "maj@5"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_many_questions_against_draws(name: str) -> None:
    counts, metric = MANY[name]
    draws = simulated(counts, metric, 10_000, 5)
    check_against_draws(of_questions(counts, metric), draws, ENDS)


@pytest.mark.parametrize("questions", [2, 30, 1000, 100_000])
def test_moments_of_the_distribution_are_the_posterior_moments(questions: int) -> None:
    """Means and sds by integrating quantiles."""
    right = np.random.default_rng(questions).integers(0, 17, questions)
    posterior = posterior_of((right, np.full(questions, 16)), "pass@4 maj@5", FLAT)
    for row, found in enumerate(posterior.distributions()[0]):
        values = found.quantile((np.arange(20_000) + 0.5) / 20_000)
        mean, sd = posterior.mean[row, 0], posterior.sd[row, 0]
        assert abs(values.mean() - mean) < 2e-2 * sd
        assert abs(values.std() / sd - 1) < 2e-2


# ------------------------------------------------------------------ cumulants


@pytest.mark.parametrize("metric", ["pass@1", "pass@4", "pass^3", "maj@5"])
def test_third_cumulants_against_quadrature(metric: str) -> None:
    """Mean, variance and third cumulant of one question, under a few Betas and counts."""
    alpha, beta = np.array([0.4, 3.0, 40.0]), np.array([1.2, 0.7, 60.0])
    right, trials = [0, 2, 5], [1, 4, 5]
    nodes = Nodes.betas(alpha, beta, np.full(3, 1 / 3))
    found = credit_cumulants(nodes, States.of(right, trials), [one_metric(metric).credit])
    states = States.of(right, trials)
    node, weight = leggauss(400)
    u, weight = 0.5 + 0.5 * node, 0.5 * weight
    for i in range(3):
        for j, (c, n) in enumerate(zip(states.successes, states.trials, strict=True)):
            p = betaincinv(alpha[i] + c, beta[i] + n - c, u**3 * (10 - 15 * u + 6 * u**2))
            value, mass = worth(metric, p), weight * 30 * (u * (1 - u)) ** 2
            mean = mass @ value
            wanted = [mean, mass @ (value - mean) ** 2, mass @ (value - mean) ** 3]
            got = [values[i, j, 0] for values in found]
            scale = np.sqrt(wanted[1]) ** np.arange(1, 4)
            np.testing.assert_allclose(got / scale, wanted / scale, atol=1e-5)


# ------------------------------------------------------------------ intervals, and odd cases


def test_intervals() -> None:
    """The shortest interval is shorter than the central one, and holds as much."""
    found = of_questions(([4] * 30, [4] * 30), "pass@1", FLAT)
    eti, hdi = interval(found, 0.95, "eti"), interval(found, 0.95, "hdi")
    assert hdi[1] - hdi[0] < eti[1] - eti[0]
    assert abs(float(found.cdf(hdi[1]) - found.cdf(hdi[0])) - 0.95) < 1e-6
    np.testing.assert_allclose(found.cdf(np.array(eti)), [0.025, 0.975], atol=1e-6)


@pytest.mark.parametrize("kind", ["eti", "hdi"])
def test_evaluate_states_the_error_of_its_intervals(kind: str) -> None:
    """Under either kind of interval, as closely as promised where the data are not saturated."""
    rows = [[1, 1, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1]] * 12
    found = bk.evaluate(rows, "bayes", difficulty="beta", ci_kind=kind, rng=1)
    one = found["closed_form"]["bayes"].squeeze()
    width = (one.sel(statistic="ci_upper") - one.sel(statistic="ci_lower")).values
    error = one.sel(statistic="ci_error").values
    assert (error > 0.0).all()
    assert (error < 0.01 * width).all()


def test_known_values_have_no_spread() -> None:
    """Credits that are the same whatever happens."""
    found = cumulant_mixture(
        np.ones(1), np.full(1, 0.25), np.full(1, 1e-40), np.zeros(1), (0.0, 1.0), np.inf
    )
    assert found.quantile([0.1, 0.9]).tolist() == [0.25, 0.25]
    assert found.cdf([0.2, 0.3]).tolist() == [0.0, 1.0]
    assert interval(Empirical(np.array([0.5])), 0.9, "eti") == (0.5, 0.5)


@pytest.mark.parametrize("prior", [BetaPrior(1e-3, 1e-3), BetaPrior(1e7, 3e7)])
@pytest.mark.parametrize("times", [1, 20])
def test_extreme_priors(prior: BetaPrior, times: int) -> None:
    """Priors that all but decide, or say next to nothing."""
    posterior = posterior_of(([1, 3, 2] * times, [4] * 3 * times), "pass^2", prior)
    middle = float(posterior.distributions()[0][0].quantile(0.5))
    assert abs(middle - posterior.mean[0, 0]) < 1.5 * posterior.sd[0, 0]


METRICS = ("pass@1", "pass@4", "pass^2", "maj@3")
question = st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
data_sets = st.one_of(
    st.lists(question, min_size=1, max_size=6), st.lists(question, min_size=26, max_size=30)
)


@pytest.mark.long
@settings(max_examples=30)
@given(
    data=data_sets,
    metric=st.sampled_from(METRICS),
    prior=st.sampled_from([HyperPrior(), BETA, FLAT]),
)
def test_laws_of_quantiles(
    data: list[tuple[int, int]], metric: str, prior: HyperPrior | BetaPrior
) -> None:
    """Quantiles rise within the scale, their error is known, and they average to the mean."""
    right, trials = (list(column) for column in zip(*data, strict=True))
    posterior = modelled((right, trials), prior).fit(parse(metric))
    levels = (np.arange(5000) + 0.5) / 5000
    for target, columns in enumerate(posterior.distributions()):
        found = columns[0]
        values, stated = found.quantile(levels), found.stated_error(levels)
        assert (np.diff(values) >= 0.0).all()
        assert 0.0 <= values[0] <= values[-1] <= 1.0
        assert np.isfinite(stated).all()
        assert (stated > 0.0).all()
        limit = 1e-2 * width_of(found) + float(stated.mean())
        assert abs(values.mean() - posterior.mean[0, target]) <= limit


@settings(max_examples=15)
@given(
    data=st.lists(question, min_size=1, max_size=6),
    metric=st.sampled_from(METRICS),
    pooling=st.sampled_from(["partial", "none"]),
)
def test_evaluate_neither_raises_nor_warns(
    data: list[tuple[int, int]], metric: str, pooling: str
) -> None:
    """Not even where numpy is told to raise for every kind of rounding, underflow included."""
    right, trials = (list(column) for column in zip(*data, strict=True))
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        fit = bk.evaluate((right, trials), metric, pooling=pooling, draws=50, rng=1)
    found = fit["closed_form"][one_metric(metric).family.variable]
    assert np.isfinite(found.sel(statistic=["mean", "sd"]).values).all()
    ends = found.sel(statistic=["ci_lower", "ci_upper"], target="questions").values
    assert np.isfinite(ends).all()


# ------------------------------------------------------------------ honesty

SHAPES = [(1, 1), (0.5, 0.5), (2, 1), (5, 0.5), (0.3, 3), (20, 20), (0.2, 0.2), (5, 20)]


def ordinary(seed: int) -> tuple[Array, Array]:
    """Successes and trials of some questions, balanced or ragged, some hopeless."""
    rng = np.random.default_rng([710, seed])
    sizes = [1, 2, 3, 5, 8, 12, 20, 30, 60]
    questions, most = int(rng.choice(sizes)), int(rng.choice([1, 2, 4, 8]))
    ragged = rng.random() < 0.4
    trials = rng.integers(1, most + 1, questions) if ragged else np.full(questions, most)
    p = rng.beta(*SHAPES[rng.integers(len(SHAPES))], questions)
    p[rng.random(questions) < 0.1 * (rng.random() < 0.3)] = 0.0
    return rng.binomial(trials, p), trials


@pytest.mark.long
def test_stated_errors_hold_against_draws() -> None:
    """Ends of 95% intervals of 20 ordinary data sets, beside those of independent draws.

    Off by more than is promised, stated and four standard errors of the draws' quantile: 1 in 100
    at most.
    """
    wrong, checked, size = [], 0, 100_000
    for seed in range(20):
        counts = tuple(tuple(column.tolist()) for column in ordinary(seed))
        for metric in ("pass@1", "pass@4", "pass^2"):
            found = of_questions(counts, metric)
            values = np.sort(simulated(counts, metric, size, 99 + seed))
            slack = 4.0 * np.sqrt(ENDS * (1.0 - ENDS) / size)
            least, most = np.quantile(values, ENDS - slack), np.quantile(values, ENDS + slack)
            limit = np.minimum(
                0.01 * width_of(found) + found.stated_error(ENDS), 0.05 * width_of(found)
            )
            ends = found.quantile(ENDS)
            off = (ends < least - limit) | (ends > most + limit)
            checked += 2
            wrong += [(seed, metric, ends, least, most, limit)] * int(off.sum())
    assert len(wrong) <= checked / 100, wrong
