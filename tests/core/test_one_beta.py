"""Partial pooling under one Beta: moments, evidence, quantiles, published numbers and laws."""

import functools

import mpmath
import numpy as np
import pytest
from scipy.special import betaln, expit, logit
from scipy.stats import beta as beta_distribution

import bayesatk as bk
from bayesatk.core.engine.distribution import Empirical, interval
from bayesatk.metrics.credit import pass_at, pass_hat
from bayesatk.metrics.grid import parse
from bayesatk.posterior.posterior import Posterior, Summary
from bayesatk.priors import HyperPrior
from tests.core.agreement import (
    BETA,
    check_points,
    check_quantiles,
    modelled,
    posterior_of,
    summary,
)
from tests.core.urn import CASES, ROUNDING, Array, Counts, Witness, log_urn

SKEWED = HyperPrior(mean=(2.0, 3.0), icc=(0.5, 4.0), families="beta")
TOLERANCE = 1e-3  # of the posterior sd, for means and sds
EVIDENCE = 1e-4
LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)

METRICS = "pass@1,4,32 pass^4 maj@3"
PRIORS = {"default": BETA, "skewed": SKEWED}
PAIRS = [*((name, "default") for name in CASES), ("ragged", "skewed"), ("all ones", "skewed")]


@functools.cache
def witness_of(name: str, prior: str = "default") -> Witness:
    """Return the witness of a named case; several tests use the same."""
    return Witness(CASES[name], PRIORS[prior])


@functools.cache
def library(name: str, prior: str = "default") -> Posterior:
    """Return the library's posterior of a named case."""
    return posterior_of(CASES[name], METRICS, PRIORS[prior])


def check_moments(mean: float, sd: float, wanted: tuple[float, float], what: str) -> None:
    """Means and sds agree to a thousandth of the sd, or to 1e-7: k far beyond the trials."""
    assert abs(mean - wanted[0]) <= TOLERANCE * wanted[1] + ROUNDING, (what, mean, wanted)
    assert abs(sd - wanted[1]) <= TOLERANCE * wanted[1] + 1e-7, (what, sd, wanted)


def check_summary(found: Summary, wanted: tuple[float, float], what: str = "") -> None:
    """The same of a hyperparameter."""
    check_moments(found.mean, found.sd, wanted, what)


# ------------------------------------------------------------------ the witness itself


@pytest.mark.parametrize("node", [(-3.0, -8.0), (0.4, 0.0), (12.0, 3.0), (-20.0, 15.0)])
def test_urn_is_the_beta_binomial(node: tuple[float, float]) -> None:
    """Thirty digits of Beta functions give the same probability of a run."""
    with mpmath.workdps(60):
        x, y = (mpmath.mpf(value) for value in node)
        concentration = mpmath.exp(-y)
        alpha = concentration / (1 + mpmath.exp(-x))
        beta = concentration / (1 + mpmath.exp(x))
        exact = mpmath.log(mpmath.beta(alpha + 5, beta + 9) / mpmath.beta(alpha + 2, beta + 3))
        assert float(log_urn(*map(np.asarray, node), (2, 3), (3, 6))) == pytest.approx(
            float(exact), rel=1e-12
        )


def test_witness_knows_one_trial_exactly() -> None:
    """One success in one trial: m ~ Beta(2, 1), icc untouched, P(next succeeds) = 5/6."""
    witness = Witness(CASES["one question 1/1"])
    assert witness.log_evidence == pytest.approx(np.log(0.5), abs=1e-13)
    assert witness.mean_sd(expit(witness.x)) == pytest.approx((2 / 3, 18**-0.5), abs=1e-12)
    assert witness.mean_sd(expit(witness.y)) == pytest.approx((0.5, 12**-0.5), abs=1e-12)
    assert witness.questions(pass_at(1))[0] == pytest.approx(5 / 6, abs=1e-12)
    assert witness.population(pass_at(1))[0] == pytest.approx(2 / 3, abs=1e-12)
    assert witness.icc_cdf(0.3) == pytest.approx(0.3, abs=1e-12)
    assert witness.population_cdf(pass_at(1), 0.3) == pytest.approx(0.09, abs=1e-12)


@pytest.mark.parametrize("name", ["one question 3/4", "all ones", "ragged", "homogeneous"])
def test_witness_does_not_depend_on_its_panels(name: str) -> None:
    """Panels half as wide change nothing that the library's tolerance could see."""
    coarse, fine = (Witness(CASES[name], SKEWED, panel=panel) for panel in (2.0, 1.0))
    assert coarse.log_evidence == pytest.approx(fine.log_evidence, abs=1e-9)
    for credit in (pass_at(1), pass_hat(4)):
        for target in ("questions", "population"):
            (mean, sd), (mean_too, sd_too) = (
                getattr(each, target)(credit) for each in (coarse, fine)
            )
            assert abs(mean - mean_too) < 1e-8 * sd + ROUNDING
            assert sd == pytest.approx(sd_too, rel=1e-8)


# ------------------------------------------------------------------ likelihood and moments


def test_likelihood_is_that_of_the_urn() -> None:
    """Of whole questions at any hyperparameters, with its limits at either end of the icc."""
    rng = np.random.default_rng(1)
    trials = rng.integers(1, 30, 25)
    right = rng.binomial(trials, 0.4)
    predictor, _ = modelled((right, trials)).part("beta")
    x, y = rng.normal(size=6), rng.normal(size=6)
    pairs = zip(right.tolist(), trials.tolist(), strict=True)
    expected = sum(log_urn(x, y, (0, 0), (c, n - c)) for c, n in pairs)
    found = predictor.log_likelihood(np.column_stack([x, y]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    ends = modelled(([3], [5])).part("beta")[0].log_likelihood(np.array([[0.4, -80], [0.4, 300]]))
    binomial = 3 * np.log(expit(0.4)) + 2 * np.log(expit(-0.4))
    assert ends[0] == pytest.approx(binomial, rel=1e-12)
    assert np.isfinite(ends[1])


@pytest.mark.parametrize(("name", "prior"), PAIRS)
def test_hyperparameters_and_evidence(name: str, prior: str) -> None:
    """Posterior mean and sd of m and icc, and the evidence."""
    witness, posterior = witness_of(name, prior), library(name, prior)
    evidence = posterior.diagnostics["log_evidence"]
    assert evidence == pytest.approx(witness.log_evidence, abs=EVIDENCE)
    for what, logits in (("mean_p", witness.x), ("icc", witness.y)):
        check_summary(summary(posterior, what), witness.mean_sd(expit(logits)), what)


@pytest.mark.parametrize(("name", "prior"), PAIRS)
def test_metrics_for_both_targets(name: str, prior: str) -> None:
    """Posterior mean and sd of pass@k, pass^k and maj@k for both targets."""
    witness, posterior = witness_of(name, prior), library(name, prior)
    for row, metric in enumerate(parse(METRICS)):
        for column, target in enumerate(("questions", "population")):
            got = posterior.mean[row, column], posterior.sd[row, column]
            check_moments(*got, getattr(witness, target)(metric.credit), f"{target} {metric.label}")


@pytest.mark.parametrize(("mean", "icc"), [((0.5, 0.5), (0.5, 0.5)), ((0.3, 0.3), (1.0, 1.0))])
@pytest.mark.parametrize("name", ["one question 1/1", "all ones, one trial each"])
def test_priors_with_poles_are_answered(
    name: str, mean: tuple[float, float], icc: tuple[float, float]
) -> None:
    """Densities that are infinite at certainty neither warn nor cost digits."""
    prior = HyperPrior(mean, icc, families="beta")
    witness, found = Witness(CASES[name], prior), posterior_of(CASES[name], "pass@4", prior)
    got = found.mean[0, 1], found.sd[0, 1]
    check_moments(*got, witness.population(pass_at(4)), "population")


def test_single_trials_leave_the_icc_at_its_prior() -> None:
    """The mean difficulty is then exactly Beta-distributed, whatever the number of questions."""
    for right, wrong in ((140, 60), (3500, 1500)):
        counts = [1] * right + [0] * wrong, [1] * (right + wrong)
        posterior = posterior_of(counts, "pass@1")
        exact = beta_distribution(1 + right, 1 + wrong)
        check_summary(summary(posterior, "mean_p"), (exact.mean(), exact.std()))
        check_summary(summary(posterior, "icc"), (0.5, 12**-0.5))
        population = posterior.distributions()[1][0]
        assert population is not None
        check_points(population, LEVELS, exact.ppf(LEVELS))
        check_points(summary(posterior, "icc").distribution, LEVELS, LEVELS)


@pytest.mark.long
def test_a_million_questions() -> None:
    right = np.random.default_rng(2).binomial(
        64, np.random.default_rng(3).beta(0.3, 0.3, 1_000_000)
    )
    posterior = posterior_of((right, np.full(1_000_000, 64)), "pass@1")
    assert abs(summary(posterior, "mean_p").mean - 0.5) < 5e-3
    assert abs(summary(posterior, "icc").mean - 1 / 1.6) < 5e-3
    assert posterior.method == "quadrature"


def test_an_improper_posterior_is_refused() -> None:
    """Under an improper prior one question says nothing of how much questions differ."""
    with pytest.raises(ValueError, match="the icc does not fall off, so it is improper"):
        posterior_of(((3,), (4,)), "pass@1", HyperPrior.bda3()).mean.sum()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": (0.0, 1.0)}, "mean must be two Beta parameters"),
        ({"icc": (1.0, -2.0)}, "icc must be two Beta parameters"),
        ({"icc": (np.inf, 1.0)}, "icc must be two Beta parameters"),
    ],
)
def test_priors_are_checked(arguments: dict[str, tuple[float, float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HyperPrior(**arguments)
    with pytest.raises(ValueError, match="alpha must be finite"):
        bk.priors.BetaPrior(0.0, 1.0)


# ------------------------------------------------------------------ published numbers


def counts_of(data: bk.Outcomes) -> Counts:
    """Return (successes, trials) of a data set with one system."""
    values = (getattr(data, each).values[0].tolist() for each in ("successes", "trials"))
    good, trials = (tuple(map(int, each)) for each in values)
    return good, trials


def test_rat_tumours_reproduce_the_book() -> None:
    """Bayesian Data Analysis, 3rd ed., section 5.3, by the library and by the witness."""
    counts, prior = counts_of(bk.datasets.rat_tumors()), HyperPrior.bda3()
    posterior, witness = posterior_of(counts, "pass@1", prior), Witness(counts, prior, panel=1.0)
    mean = summary(posterior, "mean_p")
    assert (mean.mean, mean.sd) == pytest.approx((0.1443, 0.0134), abs=5e-5)
    check_summary(mean, witness.mean_sd(expit(witness.x)))
    (fit,) = modelled(counts, prior).families
    log_size = -fit.points.theta[:, 1]
    size = fit.points.weight @ log_size
    spread = float(np.sqrt(fit.points.weight @ (log_size - size) ** 2))
    assert (size, spread) == pytest.approx((2.7556, 0.3442), abs=5e-5)
    check_moments(size, spread, witness.mean_sd(-witness.y), "log(alpha + beta)")
    assert np.isnan(posterior.diagnostics["log_evidence"])
    of_questions = posterior.question_p()[0]
    for good, trials, published in ((4, 14, 0.2109), (0, 20, 0.0636)):
        question = list(zip(*counts, strict=True)).index((good, trials))
        got = of_questions[question]
        worth, _ = witness.credit_moments((good, trials - good), np.array([0.0, 1.0]))
        assert got == pytest.approx(published, abs=5e-5)
        assert got == pytest.approx(float(witness.weight @ worth), abs=2e-5)


# alpha + beta ~ Pareto(1, 1.5) has density ~ icc^(1/2) (1-icc)^(-5/2) on icc < 1/2: the improper
# Beta(1.5, -1.5), cut at 1/2, where the posterior of the batting averages has no mass.
PARETO = HyperPrior(icc=(1.5, -1.5))


def test_batting_reproduces_the_published_partial_pooling() -> None:
    """Efron and Morris 1975 under mean ~ U(0, 1), alpha + beta ~ Pareto(1, 1.5)."""
    counts = counts_of(bk.datasets.batting_1975())
    posterior, witness = posterior_of(counts, "bayes", PARETO), Witness(counts, PARETO, panel=1.0)
    assert float(witness.weight[expit(witness.y) > 0.5].sum()) < 1e-9
    mean = summary(posterior, "mean_p")
    assert (mean.mean, mean.sd) == pytest.approx((0.26857, 0.02108), abs=5e-6)
    icc = summary(posterior, "icc").distribution.quantile([0.9, 0.5, 0.1])
    # Exactly 25.67, 64.39, 221.68 (fine grids of either kind); published from simulation.
    assert (1 / icc - 1) == pytest.approx([25.5, 64.2, 220.4], rel=0.01)
    p = posterior.draw(100_000, np.random.default_rng(4), True).p
    clemente = list(zip(*counts, strict=True)).index((18, 45))
    assert p is not None
    assert posterior.question_p()[0][clemente] == pytest.approx(0.3217, abs=5e-5)
    ends = np.quantile(p[:, clemente], [0.1, 0.9])
    assert ends == pytest.approx([0.2597, 0.3918], abs=2e-3)  # of draws, theirs and these


def test_batting_under_complete_pooling() -> None:
    """One success probability for all eighteen players."""
    exact = bk.evaluate(
        bk.datasets.batting_1975(), "bayes", pooling="complete", ci_prob=0.8, draws=5, rng=1
    )["closed_form"]["bayes"].isel(system=0)
    mean, *ends = exact.sel(target="questions", statistic=["mean", "ci_lower", "ci_upper"]).values
    assert mean == pytest.approx(0.2660, abs=5e-5)
    assert ends == pytest.approx([0.2463, 0.2860], abs=5e-5)


# ------------------------------------------------------------------ population and icc


DISTRIBUTION_CASES = ("one question 3/4", "two questions", "all ones", "ragged", "homogeneous")


def population(name: str, metric: str) -> Empirical:
    """Return the distribution of the population target of one of METRICS."""
    row = [one.label for one in parse(METRICS)].index(metric)
    found = library(name).distributions()[1][row]
    assert found is not None
    return found


@pytest.mark.parametrize("name", DISTRIBUTION_CASES)
def test_quantiles_of_the_population_target(name: str) -> None:
    """The witness's probability below each quantile is the probability asked for."""
    for metric, credit in (("pass@1", pass_at(1)), ("pass@4", pass_at(4)), ("pass^4", pass_hat(4))):
        cdf = functools.partial(witness_of(name).population_cdf, credit)
        check_quantiles(population(name, metric), cdf, LEVELS, slack=2e-6)


@pytest.mark.parametrize("name", [*DISTRIBUTION_CASES, "all or none", "one trial each, some ones"])
def test_quantiles_of_the_icc(name: str) -> None:
    """The same for the intraclass correlation."""
    icc = summary(library(name), "icc").distribution
    check_quantiles(icc, witness_of(name).icc_cdf, LEVELS, slack=2e-6)


def test_highest_density_interval_of_the_population_target() -> None:
    """It holds what it claims, is no wider than equal tails, and cannot be improved by a shift."""
    distribution = population("ragged", "pass^4")
    low, high = interval(distribution, 0.9, "hdi")
    below = [witness_of("ragged").population_cdf(pass_hat(4), end) for end in (low, high)]
    assert below[1] - below[0] == pytest.approx(0.9, abs=5e-3)
    equal = interval(distribution, 0.9, "eti")
    assert high - low < equal[1] - equal[0]
    for shift in (-0.02, 0.02):
        ends = distribution.quantile([below[0] + shift, below[1] + shift])
        assert high - low < ends[1] - ends[0]


# ------------------------------------------------------------------ draws


@pytest.mark.parametrize("name", ["one question 3/4", "all ones", "ragged", "all or none"])
def test_draws_of_the_hyperparameters(name: str) -> None:
    """A hundred thousand draws agree with the witness within five standard errors.

    The points of a lattice, which they are drawn from, are so many draws besides.
    """
    size, witness = 100_000, witness_of(name)
    drawn = library(name).draw(size, np.random.default_rng(812), False).hyper
    cdfs = (lambda value: witness.population_cdf(pass_at(1), value), witness.icc_cdf)
    for value, nodes, cdf in zip(
        (drawn["mean_p"], drawn["icc"]), (witness.x, witness.y), cdfs, strict=True
    ):
        mean, sd = witness.mean_sd(expit(nodes))
        assert abs(value.mean() - mean) < 5 * sd / np.sqrt(size) + TOLERANCE * sd
        fourth = float(witness.weight @ (expit(nodes) - mean) ** 4)
        error = np.sqrt((fourth / sd**4 - 1) / (4 * size))  # of the sd, relative
        assert abs(value.std() / sd - 1) < 5 * error + TOLERANCE
        for probability in (0.025, 0.25, 0.5, 0.75, 0.975):
            exact = cdf(float(np.quantile(value, probability)))
            slack = 5 * np.sqrt(probability * (1 - probability) / size)
            assert abs(exact - probability) < slack + 2e-3


def test_draws_of_saturated_data_are_those_of_the_points() -> None:
    """Log densities fall steeply there: no draw has a spurious icc near 0."""
    posterior = posterior_of(([16] * 199 + [15], [16] * 200), "pass@1")
    y = logit(posterior.draw(50_000, np.random.default_rng(3), False).hyper["icc"])
    witness = Witness(((16,) * 199 + (15,), (16,) * 200))
    mean, sd = witness.mean_sd(witness.y)
    assert abs(y.mean() - mean) < 6 * sd / np.sqrt(50_000)
    assert abs(y.std() / sd - 1) < 2e-2


# ------------------------------------------------------------------ laws


def numbers(counts: Counts, prior: HyperPrior = BETA) -> tuple[float, Array]:
    """Log evidence; and mean and sd of m, icc, and pass^2 of both targets."""
    found = posterior_of(counts, "pass^2", prior)
    hyper = [summary(found, name) for name in ("mean_p", "icc")]
    pairs = [(one.mean, one.sd) for one in hyper]
    pairs += list(zip(found.mean[0], found.sd[0], strict=True))
    return found.diagnostics["log_evidence"], np.array(pairs)


RAGGED = CASES["ragged"]


def test_no_correlation_a_priori_is_complete_pooling() -> None:
    """A prior on icc near zero gives p ~ Beta(1 + successes, 1 + failures) for all questions."""
    a, b = 1.0 + sum(RAGGED[0]), 1.0 + sum(RAGGED[1]) - sum(RAGGED[0])
    evidence, found = numbers(RAGGED, HyperPrior(icc=(1.0, 1e8), families="beta"))
    shared = beta_distribution(a, b)
    assert evidence == pytest.approx(betaln(a, b), abs=EVIDENCE)
    check_moments(*found[0], (shared.mean(), shared.std()), "mean")
    square = shared.moment(2), np.sqrt(shared.moment(4) - shared.moment(2) ** 2)
    for place in (2, 3):
        check_moments(*found[place], square, "pass^2")


def test_evidence_of_one_trial_more_is_the_predictive_probability() -> None:
    """Ratios of evidence are what the posterior predicts: a new question right at first try."""
    good, trials = RAGGED
    (before, found), (after, _) = numbers(RAGGED), numbers(((*good, 1), (*trials, 1)))
    assert after - before == pytest.approx(np.log(found[0, 0]), abs=2 * EVIDENCE)
