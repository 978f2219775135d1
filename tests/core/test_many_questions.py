"""Means over very many questions: gammas, fine grids, other methods and simulation as witnesses."""

import numpy as np
import pytest
from scipy.special import betaln, ndtr
from scipy.stats import beta as beta_distribution
from scipy.stats import gamma

from bayesatk.closed_form.question_distributions import question_distributions
from bayesatk.core import near_end
from bayesatk.core.compared import ComparedDistribution, compared
from bayesatk.core.continuum import continuum_distribution
from bayesatk.core.credit import Credit, maj_at, pass_at, pass_hat
from bayesatk.core.hierarchy import HyperPosterior, hyper_posterior
from bayesatk.core.histograms import CountHistograms
from bayesatk.core.hyper_functions import draw_hyperparameters
from bayesatk.core.intervals import measured_interval
from bayesatk.core.mixture import StateMixture
from bayesatk.core.near_end import near_end_distribution, stehfest
from bayesatk.core.nodes import Nodes
from bayesatk.core.priors import HyperPrior
from bayesatk.core.states import States
from bayesatk.core.sums import mean_distributions

Tally = list[tuple[int, int, int]]  # (successes, trials, questions)


def tallied(tally: Tally) -> tuple[States, HyperPosterior]:
    """States with multiplicities and their hyperparameters, as `States.of` would make them."""
    successes, trials, count = (np.array(part) for part in zip(*tally, strict=True))
    states = States(successes, trials, count.astype(float), np.zeros(1, np.intp))
    return states, hyper_posterior(CountHistograms.of(successes, trials, count), HyperPrior())


def on_the_grid(states: States, hyper: HyperPosterior, credit: Credit) -> StateMixture:
    """All nodes of the hyperparameter grid."""
    return StateMixture(Nodes.of(hyper.x.ravel(), hyper.y.ravel(), hyper.weight), states, (credit,))


# ------------------------------------------------------------------ tables


def test_a_table_gets_points_where_it_bends() -> None:
    found = compared(
        lambda x: (ndtr(x / 0.01), np.exp(-0.5 * (x / 0.01) ** 2) / 0.01 / np.sqrt(2 * np.pi),
                   ndtr((x - 1e-5) / 0.01)),
        np.linspace(-1.0, 1.0, 21), (-1.0, 1.0), "by hand",
    )  # fmt: skip
    levels = np.array([0.025, 0.3, 0.975])
    np.testing.assert_allclose(ndtr(found.quantile(levels) / 0.01), levels, atol=2e-6)
    assert found.error == pytest.approx(1e-5, rel=0.05)
    assert found.sharpened(levels) is found


def test_a_table_that_does_not_settle_says_so() -> None:
    """A staircase of many steps is no smooth curve at any number of points."""

    def steps(x):
        return np.floor(x * 1e7) / 1e7 + 1e-3 * np.sin(1e9 * x), np.ones_like(x), x

    assert compared(steps, np.linspace(0.1, 0.9, 9), (0.0, 1.0), "by hand").besides > 1e-5


# ------------------------------------------------------------------ near an end


def test_published_weights_of_the_inversion() -> None:
    """Stehfest (1970), N = 10."""
    expected = [
        1 / 12, -385 / 12, 1279, -46871 / 3, 505465 / 6, -236957.5, 1127735 / 3, -1020215 / 3,
        328125 / 2, -65625 / 2,
    ]  # fmt: skip
    np.testing.assert_allclose(stehfest(10), expected, rtol=1e-13)
    assert (stehfest(12) / np.arange(1, 13)).sum() == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("credit", [pass_at(1), pass_at(3), pass_hat(2)])
@pytest.mark.parametrize("right", [True, False])
def test_one_question_near_either_end_is_a_beta(credit: Credit, right: bool) -> None:
    """Quantiles at distances of 1e-8 to 1e-3 from the end."""
    successes = 4000 if right else 0
    states = States.of([successes], [4000])
    mixture = StateMixture(Nodes.single(0.5, 0.5), states, (credit,))
    found = near_end_distribution(mixture, 0)
    levels = np.array([0.025, 0.25, 0.5, 0.75, 0.975])
    p = beta_distribution(0.5 + successes, 0.5 + 4000 - successes).ppf(levels)
    expected = {pass_at(1): p, pass_at(3): 1.0 - (1.0 - p) ** 3, pass_hat(2): p**2}[credit]
    assert np.abs(found.quantile(levels) - expected).max() < 5e-7
    assert measured_interval(found, 0.95, "eti")[1] < 5e-6  # by two terms fewer: more than it is


@pytest.mark.parametrize(("a", "b"), [(2.0, 0.3), (20.0, 1e-3)])
@pytest.mark.parametrize("s", [1e2, 1e5, 1e9])
def test_laplace_transform_of_a_distance(a: float, b: float, s: float) -> None:
    """What is lost of E exp(-s (1 - p)^8), by a trapezoid rule a hundred times as fine."""
    states = States.of([0], [0])
    mixture = StateMixture(Nodes.single(a, b), states, (pass_at(8),))
    t = np.arange(-5.0, 12.0, 1e-4)
    x = 2.0 * np.sinh(t)
    log_q = -np.logaddexp(0.0, x)
    mass = np.exp(-a * np.logaddexp(0.0, -x) + b * log_q - betaln(a, b)) * 2.0 * np.cosh(t) * 1e-4
    expected = mass @ -np.expm1(-s * np.exp(8.0 * log_q))
    found = near_end._laplace(mixture, 0, top=True, s=np.array([s]))
    assert 1.0 - found.item() == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("a", [1e3, 2e4])
def test_questions_all_but_right_are_a_gamma(a: float) -> None:
    """With p so near 1, each miss is Gamma(b, 1/a), and so is their sum; a rule or not."""
    states = States(np.array([0]), np.array([0]), np.array([10.0]), np.zeros(1, np.intp))
    mixture = StateMixture(Nodes.single(a, 0.1), states, (pass_at(1),))
    assert mixture.concentrated.size == (a > 1e4)
    levels = np.array([0.025, 0.5, 0.975])
    found = 1.0 - near_end_distribution(mixture, 0).quantile(1.0 - levels)
    np.testing.assert_allclose(found, gamma(1.0).ppf(levels) / a / 10.0, rtol=4e-3, atol=2e-8)


@pytest.mark.parametrize(
    ("tally", "credit"),
    [
        ([(4, 4, 200)], pass_at(8)),
        ([(16, 16, 199), (15, 16, 1)], pass_at(4)),
        ([(0, 4, 200)], pass_hat(3)),
    ],
)
def test_distances_and_frequencies_agree(tally: Tally, credit: Credit) -> None:
    """A Laplace transform in distances from an end, a Fourier series with corners on the scale."""
    states, hyper = tallied(tally)
    mixture = StateMixture(hyper.heavy(1e-8), states, (credit,))
    near, near_error = measured_interval(near_end_distribution(mixture, 0), 0.95, "eti")
    resolved = hyper.resolving(states.mean_p, 1e-8, 0.0425)
    (edged,) = mean_distributions(StateMixture(resolved, states, (credit,)))
    ends, error = measured_interval(edged, 0.95, "eti")
    assert np.abs(np.subtract(near, ends)).max() < min(error, 5e-7)
    assert near_error < 5e-7


# ------------------------------------------------------------------ continuum


def test_a_continuum_is_its_grid_refined() -> None:
    """10,000 single trials: hardly any noise, so normals on a grid 32 times as fine each way."""
    states, hyper = tallied([(1, 1, 7000), (0, 1, 3000)])
    credit = pass_at(8)
    found = continuum_distribution(hyper, on_the_grid(states, hyper, credit), 0)
    ends, error = measured_interval(found, 0.95, "eti")
    assert error < 5e-7
    fine = hyper.refined(12, 6)
    moments = StateMixture(fine.heavy(1e-10), states, (credit,)).moments
    mean, sd = moments.node_mean[:, 0], np.sqrt(moments.node_variance[:, 0])
    for end, level in zip(ends, (0.025, 0.975), strict=True):
        low, high = (moments.weight @ ndtr((end + shift - mean) / sd) for shift in (-error, error))
        assert low < level + 2e-6
        assert high > level - 2e-6


@pytest.mark.parametrize(
    ("tally", "credit"),
    [
        ([(4, 4, 900), (3, 4, 100)], pass_at(2)),
        ([(4, 4, 950), (3, 4, 50)], pass_at(2)),
        ([(0, 4, 900), (1, 4, 100)], pass_hat(2)),
    ],
)
def test_a_continuum_and_frequencies_agree(tally: Tally, credit: Credit) -> None:
    """The Edgeworth series against the characteristic function of the questions themselves."""
    states, hyper = tallied(tally)
    found = continuum_distribution(hyper, on_the_grid(states, hyper, credit), 0)
    ends, error = measured_interval(found, 0.95, "eti")
    nodes = hyper.refined(3, 1).resolving(states.mean_p, 1e-8, 0.0425)
    (edged,) = mean_distributions(StateMixture(nodes, states, (credit,)))
    wanted, other = measured_interval(edged, 0.95, "eti")
    assert error < 5e-7
    assert np.abs(np.subtract(ends, wanted)).max() < 5e-9 + 0.02 * error + 0.01 * other


def test_a_continuum_knows_when_means_are_not_normal() -> None:
    """Ten wrong of a thousand single trials: corners everywhere, and it claims no accuracy."""
    states, hyper = tallied([(1, 1, 980), (0, 1, 20)])
    found = continuum_distribution(hyper, on_the_grid(states, hyper, pass_at(8)), 0)
    assert measured_interval(found, 0.95, "eti")[1] > 5e-6


# ------------------------------------------------------------------ whichever is exact enough


MANY: dict[str, tuple[Tally, Credit, str]] = {
    "all right": ([(16, 16, 2000)], pass_at(8), "laplace"),
    "all wrong": ([(0, 4, 1000)], pass_hat(2), "laplace"),
    "a million, all right": ([(64, 64, 1_000_000)], pass_at(8), "laplace"),
    "three wrong": ([(1, 1, 997), (0, 1, 3)], pass_at(8), "edged"),
    "some wrong": ([(1, 1, 700), (0, 1, 300)], pass_at(8), "continuum"),
    "three trials right": ([(4, 4, 970), (3, 4, 30)], pass_at(2), "edged"),
    "one trial wrong": ([(16, 16, 970), (15, 16, 30)], pass_at(2), "laplace"),
    "majorities": ([(3, 3, 600), (1, 3, 400)], maj_at(5), "series"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_many_questions_are_exact_to_a_millionth(name: str) -> None:
    """Ends within the stated error of the quantiles of draws, question by question."""
    tally, credit, method = MANY[name]
    states, hyper = tallied(tally)
    (found,) = question_distributions(hyper, states, (credit,))
    ends, error = measured_interval(found, 0.95, "eti")
    assert found.method == method
    assert error < 1e-6
    assert 0.0 <= ends[0] < ends[1] <= 1.0
    if states.questions > 2000:
        return
    draws = simulated(states, hyper, credit, 4000)
    for end, level in zip(ends, (0.025, 0.975), strict=True):
        slack = 4.5 * np.sqrt(0.025 * 0.975 / len(draws))
        assert (
            np.mean(draws < end - error) - slack <= level <= np.mean(draws <= end + error) + slack
        )


@pytest.mark.slow
def test_rows_of_nodes_are_no_staircase() -> None:
    """The median, where rows lie furthest apart, against a continuum of them."""
    states, hyper = tallied([(1, 1, 900), (0, 1, 100)])
    (found,) = question_distributions(hyper, states, (pass_at(8),))
    smooth = continuum_distribution(hyper, on_the_grid(states, hyper, pass_at(8)), 0)
    assert found.method == "edged"
    middle = found.quantile(0.5)
    assert middle == pytest.approx(float(smooth.quantile(0.5)), abs=2e-5)
    assert found.floor(middle) < 2e-5


def simulated(states: States, hyper: HyperPosterior, credit: Credit, size: int) -> np.ndarray:
    """Draws of the mean over questions: hyperparameters, then every p."""
    rng = np.random.default_rng(5)
    nodes = Nodes.of(*draw_hyperparameters(hyper, size, rng), np.full(size, 1.0 / size))
    total = np.zeros(size)
    binomial = np.array(
        [float(np.prod(np.arange(credit.k, credit.k - j, -1.0))) for j in range(credit.k + 1)]
    ) / np.cumprod([1.0, *np.arange(1.0, credit.k + 1)])
    for c, n, count in zip(states.successes, states.trials, states.count, strict=True):
        for _ in range(int(count)):
            p = rng.beta(nodes.alpha + c, nodes.beta + (n - c))
            for j in np.flatnonzero(credit.vector):
                total += credit.vector[j] * binomial[j] * p**j * (1.0 - p) ** (credit.k - j)
    return total / states.questions


def test_rough_widths_take_the_same_ways() -> None:
    states, hyper = tallied([(1, 1, 700), (0, 1, 300)])
    (exact,) = question_distributions(hyper, states, (pass_at(8),))
    (rough,) = question_distributions(hyper, states, (pass_at(8),), rough=True)
    assert isinstance(rough, ComparedDistribution)
    width, about = (np.ptp(each.quantile([0.025, 0.975])) for each in (exact, rough))
    assert about == pytest.approx(width, rel=1e-3)
