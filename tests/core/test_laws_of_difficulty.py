"""Difficulty families against integrals that share no code with them."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from scipy.special import betaln, comb, gammaln, logsumexp

import bayesatk as bk
from bayesatk.core.numerics.importance import adaptive_importance_sampling
from bayesatk.core.numerics.weights import pareto_shape
from bayesatk.core.pooling.nodes import Nodes, log_rising_factorial_table
from bayesatk.posterior.posterior import FamilyFit
from bayesatk.priors import DIFFICULTY_FAMILIES, HyperPrior
from tests.core.agreement import modelled, posterior_of

OF_SD, OF_EVIDENCE = 0.02, 0.02  # error of means and sds in sds, and of log evidence in nats
NEVER, ALWAYS = 9, 3
COUNTS = np.array(
    [0] * NEVER + [8] * ALWAYS + [1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7]
)


def atoms_integrated(counts, trials, mean, icc, atoms=(1.0, 1.0, 8.0)):
    """Log evidence given (mean, icc) and moments of the atoms' shares: a finite double sum.

    Only questions never or always solved can be in an atom: (never + between B0)^N0 (always +
    between Bn)^Nn is expanded, and each term is a Dirichlet integral.
    """
    a, b = mean * (1 - icc) / icc, (1 - mean) * (1 - icc) / icc
    log_beta = betaln(a + counts, b + trials - counts) - betaln(a, b)
    low, high = counts == 0, counts == trials
    zero, full = low.sum(), high.sum()
    i, j = np.arange(zero + 1.0)[:, None], np.arange(full + 1.0)
    first, second, third = atoms
    outside = len(counts) - zero - full
    logs = gammaln(zero + 1) - gammaln(i + 1) - gammaln(zero - i + 1)
    logs = logs + gammaln(full + 1) - gammaln(j + 1) - gammaln(full - j + 1)
    logs = logs + (zero - i) * (log_beta[low][0] if zero else 0.0)
    logs = logs + (full - j) * (log_beta[high][0] if full else 0.0)
    between = outside + (zero - i) + (full - j)
    shapes = first + i, second + j, third + between
    logs = logs + sum(gammaln(one) for one in shapes) - gammaln(sum(shapes))
    logs = logs + gammaln(sum(atoms)) - sum(gammaln(one) for one in atoms)
    share = np.exp(logs - logs.max())
    never = float((share * (shapes[0] / sum(shapes))).sum() / share.sum())
    return float(logsumexp(logs)) + float(log_beta[~(low | high)].sum()), never


def on_grid(counts, trials, size=32):
    """Log evidence and mean share of the never solved, under uniform priors of mean and icc.

    With 60 Gauss-Legendre points on either axis they change by 2e-6 and 2e-7 at most.
    """
    points, weights = leggauss(size)
    points = (1.0 + points) / 2.0
    found = [atoms_integrated(counts, trials, m, r) for m in points for r in points]
    logs, never = np.array(found).T
    logs += np.log(np.outer(weights, weights).ravel() / 4.0)
    evidence = logsumexp(logs)
    return float(evidence), float(np.exp(logs - evidence) @ never)


def fitted(family: str, counts, trials, prior: HyperPrior | None = None) -> FamilyFit:
    """Return one law's points."""
    prior = HyperPrior(families=family) if prior is None else prior
    (fit,) = modelled((counts, np.broadcast_to(trials, np.shape(counts))), prior).families
    return fit


def moments(values, weight) -> tuple[float, float]:
    """Mean and sd over weighted points."""
    mean = weight @ values
    return float(mean), float(np.sqrt(weight @ (values - mean) ** 2))


@pytest.mark.parametrize(
    ("counts", "trials"),
    [(COUNTS, 8), (np.array([0, 0, 0, 2, 4]), 4), (np.repeat([0, 1, 2, 3], [30, 4, 8, 20]), 4)],
)
def test_inflated_against_a_double_sum(counts, trials) -> None:
    fit = fitted("inflated", counts, trials)
    evidence, never = on_grid(counts, trials)
    assert fit.points.log_evidence == pytest.approx(evidence, abs=OF_EVIDENCE)
    mean, sd = moments(fit.nodes(fit.points.theta).atoms[:, 0], fit.points.weight)
    assert abs(mean - never) < OF_SD * sd
    assert fit.points.k_hat < 0.7


def test_average_is_that_of_its_families() -> None:
    rng = np.random.default_rng(3)
    successes, trials = rng.binomial(6, rng.beta(1, 2, 40)), np.full(40, 6)
    average = modelled((successes, trials), HyperPrior(families="averaged"))
    share, error, evidence = average.family_share
    alone = [fitted(name, successes, trials).points.log_evidence for name in DIFFICULTY_FAMILIES]
    logs = np.array([fit.points.log_evidence for fit in average.families])
    np.testing.assert_allclose(logs, alone, atol=0.05)  # the accuracy that is stated
    np.testing.assert_allclose(share, np.exp(logs - logsumexp(logs)), rtol=1e-12)
    assert evidence == pytest.approx(logsumexp(logs) - np.log(3), abs=1e-12)
    assert (error > 0).all()
    fits = {
        name: bk.evaluate((successes, trials), "pass@1,12", difficulty=name, rng=1)["closed_form"]
        for name in (*DIFFICULTY_FAMILIES, "averaged")
    }
    assert fits["averaged"]["family_probability"].values.ravel() == pytest.approx(share)
    mean = sum(
        p * fits[name]["pass_at_k"].sel(statistic="mean")
        for p, name in zip(share, DIFFICULTY_FAMILIES, strict=True)
    )
    got = fits["averaged"]["pass_at_k"].sel(statistic="mean")
    sd = fits["averaged"]["pass_at_k"].sel(statistic="sd")
    # Nodes of a family are as many as it is probable: fewer than when it is alone.
    assert (abs(got - mean) < 0.03 * sd).all()


def test_weights_that_favour_one_family_are_that_family() -> None:
    data = ([0, 0, 1, 3, 4, 4], [4] * 6)
    sure = bk.evaluate(data, "pass@8", difficulty={"beta": 1.0, "inflated": 0.0}, rng=1)
    alone = bk.evaluate(data, "pass@8", difficulty="beta", rng=1)
    same = sure["closed_form"]["pass_at_k"] == alone["closed_form"]["pass_at_k"]
    assert bool((same | alone["closed_form"]["pass_at_k"].isnull()).all())


@settings(max_examples=8)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=5),
    st.sampled_from(["inflated", "mixture", "averaged"]),
)
def test_any_counts_have_an_answer(counts, name) -> None:
    successes = [a for a, _ in counts]
    trials = [a + b + (a + b == 0) for a, b in counts]
    with np.errstate(all="raise", under="ignore"):
        fit = bk.evaluate((successes, trials), ["pass@1,9", "pass^3"], difficulty=name, draws=10)
    values = fit["closed_form"]["pass_at_k"].sel(
        statistic=["mean", "sd", "ci_lower", "ci_upper", "ci_error"]
    )
    assert bool(np.isfinite(values).all())
    low, mean, high = (values.sel(statistic=s) for s in ("ci_lower", "mean", "ci_upper"))
    assert bool(((low >= 0) & (low <= high) & (high <= 1)).all())
    assert bool(((mean >= 0) & (mean <= 1)).all())


def test_a_node_is_its_components() -> None:
    rng = np.random.default_rng(7)
    parts = [Nodes.betas(*rng.gamma(2.0, size=(2, 5)), np.full(5, 0.2)) for _ in range(2)]
    shares = rng.dirichlet([1, 1, 1, 1], 5)
    nodes = Nodes.mixed(parts, shares[:, :2], shares[:, 2:])
    again = Nodes.of_moments(nodes.mean, nodes.icc, nodes.share, nodes.atoms)
    np.testing.assert_allclose(again.alpha, nodes.alpha, rtol=1e-12)
    c = np.arange(8)
    total = np.exp(nodes.log_likelihood(c, 7 - c)) @ comb(7, c)
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    drawn = [
        rng.beta(*pair, 40_000)
        for pair in zip(nodes.alpha.ravel(), nodes.beta.ravel(), strict=True)
    ]
    values = np.reshape(drawn, (5, 2, 40_000))
    chances = np.column_stack([nodes.share, nodes.atoms])
    part = np.stack([rng.choice(4, 40_000, p=row / row.sum()) for row in chances])
    p = np.choose(part, [values[:, 0], values[:, 1], np.zeros((5, 1)), np.ones((5, 1))])
    mean, _, icc, _ = nodes.overall()
    np.testing.assert_allclose(p.mean(axis=1), mean, atol=0.012)
    np.testing.assert_allclose(p.var(axis=1), icc * mean * (1.0 - mean), atol=0.012)
    for at in (0.0, 0.2, 0.7, 0.999):
        np.testing.assert_allclose(
            (p <= at).mean(axis=1), nodes.cdf(np.array([[at]]))[:, 0], atol=0.012
        )


@pytest.mark.parametrize("icc", [1e-12, 0.3, 1.0])
def test_an_offset_moves_the_logit_of_a_mean(icc) -> None:
    moved = Nodes.of_moments(np.array([[0.2]]), np.array([[icc]])).moved(np.log([16.0]))
    assert moved.mean[0, 0] == pytest.approx(0.8, rel=1e-9)
    assert moved.icc[0, 0] == pytest.approx(icc, rel=1e-3)


def test_shape_of_pareto_tails() -> None:
    from arviz_stats.base import array_stats

    rng = np.random.default_rng(0)
    for shape in (0.2, 0.6, 0.9):
        ratios = rng.pareto(1 / shape, 3000) + 1.0
        theirs = float(np.squeeze(array_stats.psislw(-np.log(ratios))[1]))
        assert pareto_shape(ratios) == pytest.approx(theirs, abs=0.02)


def test_weights_that_cannot_be_trusted_are_said_so() -> None:
    # A likelihood that no kernel follows: two far needles in five dimensions.
    def needles(x):
        return np.logaddexp(*(-5e3 * ((x - at) ** 2).sum(axis=1) for at in (2.0, -2.0)))

    def log_prior(x):
        return -0.5 * (x**2).sum(axis=1) - 2.5 * np.log(2 * np.pi)

    from scipy.special import ndtri

    found = adaptive_importance_sampling(
        ndtri, log_prior, lambda x: log_prior(x) + needles(x), 5, lambda one: one.trusted(1000.0)
    )
    exact = np.log(2) - 2.5 * np.log(1 + 1e4) - 0.5 * 5 * 4 * 1e4 / (1 + 1e4)
    assert not found.trusted(400.0) or abs(found.log_evidence - exact) < np.log(2) + 0.1


@pytest.mark.parametrize(
    ("difficulty", "more", "message"),
    [
        ("gamma", {}, "difficulty must be 'averaged'"),
        ({"beta": -1.0}, {}, "prior probabilities of families"),
        ({"beta": 0.0}, {}, "prior probabilities of families"),
        ("beta", {"pooling": "complete"}, "difficulty must be left out"),
        ("averaged", {"prior": bk.priors.HyperPrior.bda3()}, "improper"),
    ],
)
def test_bad_difficulties_are_refused(difficulty, more, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.evaluate([[0, 1], [1, 1]], "pass@1", difficulty=difficulty, **more)


def test_the_same_prior_gives_the_same_sds() -> None:
    """Reweighting by a ratio of one changes nothing, for either target."""
    rng = np.random.default_rng(0)
    counts = rng.binomial(4, rng.beta(1, 3, 60)), np.full(60, 4)
    posterior = posterior_of(counts, "pass@16 pass^2", HyperPrior())
    assert posterior.sd_under is not None
    np.testing.assert_allclose(posterior.sd_under(HyperPrior()), posterior.sd, rtol=1e-10)


def test_results_say_how_they_were_found() -> None:
    method = {
        name: bk.evaluate([[0, 1], [1, 1]], "bayes", difficulty=name, draws=10).attrs["method"]
        for name in ("beta", "inflated", "averaged")
    }
    assert method["beta"] == "quadrature"
    assert method["inflated"] == "importance sampling"
    assert method["averaged"] == "quadrature, importance sampling"


@given(
    st.lists(st.floats(-690.0, 34.5), min_size=1, max_size=5),
    st.lists(st.integers(0, 70), min_size=1, max_size=6),
)
def test_products_are_ratios_of_gamma_functions(logs: list[float], counts: list[int]) -> None:
    """Also across the sizes at which products are begun anew, and where counts are too few."""
    with mpmath.workdps(60):
        exact = [[float(mpmath.log(mpmath.rf(mpmath.exp(x), c))) for c in counts] for x in logs]
    values = log_rising_factorial_table(np.exp(np.array(logs)), np.array(counts))
    np.testing.assert_allclose(values, exact, rtol=1e-12, atol=1e-12)
