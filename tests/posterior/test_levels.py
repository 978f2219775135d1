"""Scored levels whose expected score has a law of difficulty: witnesses and laws.

Coverage is simulated in `benchmarks.coverage_scores`.
"""

import arviz as az
import numpy as np
import pytest
from scipy.special import lambertw, logsumexp, softmax
from scipy.stats import beta as beta_law
from scipy.stats import t as student_t

import bayesatk as bk
from bayesatk.core.pooling.levels import LevelDraws, shape_functions
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.metrics.category_credit import CategoryCredit, ScoredCredit
from bayesatk.posterior.model import CountModel

FAMILIES = ("beta", "inflated", "mixture")


def tallied(grades: np.ndarray, size: int, **columns) -> bk.Outcomes:
    scale = {level: level / (size - 1) for level in range(size)}
    return bk.tally(grades, scores=scale, **columns)


def binomial_grades(p: np.ndarray, trials: int, size: int, rng: np.random.Generator) -> np.ndarray:
    return rng.binomial(size - 1, p[:, None], (len(p), trials))


def numbers(fit, metric: str = "bayes") -> np.ndarray:
    """Mean, sd and ends of the interval, by target."""
    rows = bk.table(fit).query("metric == @metric")
    return rows[["mean", "sd", "ci_lower", "ci_upper"]].to_numpy()


# A witness that shares nothing but the definition: every integral is a sum over a grid, and tilts
# are found by halving intervals.


def _tilted(p: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Probabilities of three levels 0, 1/2, 1 with mean p; (p, levels)."""
    score, low, high = np.array([0.0, 0.5, 1.0]), np.full(len(p), -300.0), np.full(len(p), 300.0)
    for _ in range(80):
        middle = 0.5 * (low + high)
        vector = softmax(np.log(base) + middle[:, None] * score, axis=1)
        below = vector @ score < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return vector


def _witness(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Means and sds of the mean score by target, and the log evidence, under one Beta."""
    edges = np.linspace(0.0, 1.0, 22)
    mean, icc = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (edges[1:] + edges[:-1])
    shape = np.linspace(-7.0, 7.0, 29)
    prior = 0.5 * student_t(3, scale=bk.priors.HyperPrior().shape_scale).pdf(shape)
    p = beta_law(0.5, 0.5).ppf((np.arange(1500) + 0.5) / 1500)
    weight, first, second, population = [], [], [], []
    for value, chance in zip(shape, prior, strict=True):
        vector = _tilted(p, np.exp(value * shape_functions((0.0, 0.5, 1.0))[0]))
        trials = np.exp(np.log(np.maximum(vector, 1e-300)) @ counts.T)
        for m in mean:
            for r in icc:
                total = (1.0 - r) / r
                law = beta_law(m * total, (1.0 - m) * total).cdf
                mass = np.diff(law(beta_law(0.5, 0.5).ppf(np.arange(1501) / 1500)))
                joint = mass[:, None] * trials
                likelihood = joint.sum(axis=0)
                mean_p = (p @ joint) / likelihood
                square = (p**2 @ joint) / likelihood
                weight.append(np.log(chance) + np.log(likelihood).sum())
                first.append(mean_p.mean())
                second.append((square - mean_p**2).sum() / len(counts) ** 2)
                population.append(mass @ p)
    logs = np.array(weight) - 2.0 * np.log(len(mean))
    share = np.exp(logs - logsumexp(logs))
    values = np.stack([first, population])
    means = values @ share
    spread = np.array([share @ np.array(second), 0.0])
    sds = np.sqrt(((values - means[:, None]) ** 2) @ share + spread)
    return means, sds, float(logsumexp(logs))


@pytest.mark.long
@pytest.mark.slow
def test_one_beta_is_that_of_a_grid() -> None:
    grades = np.array([[0, 1, 2], [1, 1, 2], [2, 2, 2], [0, 0, 1], [1, 2, 1]])
    counts = np.stack([(grades == level).sum(axis=1) for level in range(3)], axis=1)
    fit = bk.evaluate(tallied(grades, 3), "bayes", difficulty="beta", rng=1)
    means, sds, evidence = _witness(counts)
    np.testing.assert_allclose(numbers(fit)[:, 0], means, atol=0.03 * sds.min())
    np.testing.assert_allclose(numbers(fit)[:, 1], sds, rtol=0.04)
    stated = float(fit["closed_form"]["log_evidence"].squeeze())
    assert stated == pytest.approx(evidence, abs=0.05)


@pytest.mark.parametrize("family", FAMILIES)
def test_two_levels_are_right_and_wrong(family) -> None:
    rng = np.random.default_rng(3)
    marks = rng.binomial(1, rng.beta(2.0, 1.0, (30, 1)), (30, 5))
    options = {"difficulty": family, "rng": 1, "draws": 50}
    half = bk.tally(marks, scores={0: 0.0, 1: 0.5})
    scored = 2.0 * numbers(bk.evaluate(half, "bayes", **options))
    plain = numbers(bk.evaluate(marks, "pass@1", **options), "pass@1")
    # To a thousandth of an sd; points of several parameters are weighted, so to some hundredths.
    error = 1e-3 if family == "beta" else 0.05
    np.testing.assert_allclose(scored[:, 0], plain[:, 0], atol=error * plain[:, 1].min())
    np.testing.assert_allclose(scored[:, 1], plain[:, 1], rtol=max(error, 2e-3))


@pytest.mark.long
@pytest.mark.parametrize("size", [3, 6, 11])
def test_a_scale_that_is_turned_over_gives_the_mirror_image(size) -> None:
    rng = np.random.default_rng(size)
    grades = binomial_grades(rng.beta(6.0, 2.0, 25), 3, size, rng)
    fits = [
        numbers(bk.evaluate(tallied(values, size), "bayes", difficulty="beta", rng=1, draws=50))
        for values in (grades, size - 1 - grades)
    ]
    sd = fits[0][:, 1].min()
    np.testing.assert_allclose(fits[0][:, 0], 1.0 - fits[1][:, 0], atol=0.1 * sd)
    np.testing.assert_allclose(fits[0][:, 1], fits[1][:, 1], rtol=0.08)


def test_units_and_names_of_scores_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    grades = binomial_grades(rng.beta(3.0, 2.0, 20), 3, 4, rng)
    options = {"metrics": "bayes max@2", "difficulty": "beta", "rng": 1, "draws": 50}
    one = bk.evaluate(bk.tally(grades, scores={0: 0, 1: 1, 2: 2, 3: 3}), **options)
    other = bk.evaluate(bk.tally(grades, scores={3: 10, 2: 0, 1: -10, 0: -20}), **options)
    for metric in ("bayes", "max@2"):
        first, second = numbers(one, metric), numbers(other, metric)
        # Rounding may choose another of the points that stand for all.
        np.testing.assert_allclose(10.0 * first[:, 0] - 20.0, second[:, 0], rtol=1e-4)
        np.testing.assert_allclose(10.0 * first[:, 1], second[:, 1], rtol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize(
    "grades",
    [
        [[2]],
        [[0] * 4] * 20,
        [[4] * 4] * 20,
        [[2] * 4] * 20,
        [[0, 4, 0, 4]] * 20,
        [[0] * 4] * 10 + [[4] * 4] * 10,
        pytest.param(
            np.random.default_rng(0).integers(0, 5, (6, 3000)).tolist(), marks=pytest.mark.long
        ),
    ],
    ids=["one", "lowest", "highest", "middle", "ends", "halves", "deep"],
)
def test_odd_data_have_an_answer(grades) -> None:
    fit = bk.evaluate(tallied(np.array(grades), 5), "bayes max@2", rng=1, draws=100)
    table = bk.table(fit)
    inside = (table["ci_lower"] <= table["mean"]) & (table["mean"] <= table["ci_upper"])
    assert inside.all()
    assert ((table["ci_lower"] >= 0.0) & (table["ci_upper"] <= 1.0)).all()


def test_draws_of_levels_are_what_counts_say() -> None:
    """Draws given counts are draws of new questions weighted by the likelihood of the counts."""
    half = np.array([0.3, 0.6])
    law = Nodes.of_moments(half[:, None], np.array([[0.2], [0.4]]))
    drawn = LevelDraws(law, np.array([[0.0, 1.5, 0.0], [0.0, -1.0, 0.0]]), (0.0, 0.5, 1.0))
    np.testing.assert_allclose(drawn.typical() @ [0.0, 0.5, 1.0], half, atol=1e-6)
    seen = np.array([0, 2, 1])
    rng = np.random.default_rng(1)
    given, new = drawn.draw_p(seen, 20_000, rng), drawn.draw_p(0 * seen, 80_000, rng)
    weight = np.prod(new**seen, axis=-1)
    expected = np.einsum("dq,dqc->dc", weight, new) / weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(given.mean(axis=1), expected, atol=0.01)


@pytest.mark.parametrize("size", [3, 11, 101])
def test_typical_probabilities_of_levels_are_those_of_a_new_question(size) -> None:
    """Their mean score is the mean of p: in draws always, on the grid of a posterior on average."""
    rng = np.random.default_rng(size)
    grades = binomial_grades(rng.beta(6.0, 2.0, 20), 4, size, rng)
    counts = np.stack([(grades == level).sum(axis=1) for level in range(size)], axis=1)
    scores = tuple(np.linspace(0.0, 1.0, size))
    (fit,) = CountModel.of(bk.priors.HyperPrior(families="beta"), counts, scores=scores).families
    theta, observation = fit.points.at_most(400).theta, fit.predictor.observation
    law = fit.nodes(theta)
    mean, sd = law.mean[:, 0], law.mean[:, 0].std()
    drawn = LevelDraws(law, observation.log_base(theta), scores).typical()
    np.testing.assert_allclose(drawn @ np.array(scores), mean, atol=2e-4)
    typical = observation.typical(theta)
    np.testing.assert_allclose(typical.sum(axis=1), 1.0, atol=1e-9)
    assert (typical @ np.array(scores)).mean() == pytest.approx(mean.mean(), abs=0.03 * sd)
    np.testing.assert_allclose(typical.mean(axis=0), drawn.mean(axis=0), atol=2e-3)


def test_levels_have_the_groups_that_arviz_checks_models_with() -> None:
    rng = np.random.default_rng(4)
    data = tallied(binomial_grades(rng.beta(4.0, 2.0, 25), 5, 3, rng), 3)
    fit = bk.evaluate(data, "bayes", draws=1000, rng=1)
    replicated = fit["posterior_predictive"]["count"]
    assert (replicated.sum("category") == 5).all()
    mean = fit["posterior"]["mean_p"].mean(("chain", "draw")).values[0]
    np.testing.assert_allclose(
        replicated.mean(("chain", "draw", "question")).values[0] / 5, mean, atol=0.01
    )
    shape = fit["posterior"]["shape"].values
    square = lambertw(shape**2 / 3.0).real  # of the coordinate z, over 3: shape is z exp(z^2 / 6)
    density = student_t(3, scale=bk.priors.HyperPrior().shape_scale).logpdf(shape)
    expected = (density + 0.5 * square + np.log1p(square)).sum(axis=-1)
    np.testing.assert_allclose(fit["log_prior"]["shape"].values, expected, rtol=1e-9)
    assert az.loo(fit).elpd == pytest.approx(bk.checks.exact_loo(fit).elpd, abs=0.2)
    sensitivity = az.psense(fit, var_names=["bayes"])
    assert 0.0 <= float(sensitivity["bayes"].sel(target="population").squeeze()) < 0.5


def test_offsets_move_the_expected_score_as_a_logit() -> None:
    """Of one Beta the expected score at an offset is that of its moved mean."""
    law = Nodes.of_moments(np.array([[0.3], [0.6], [0.5]]), np.array([[0.2], [0.05], [0.95]]))
    base = np.array([[0.0, 1.5, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    drawn = LevelDraws(law, base, (0.0, 0.5, 1.0))
    judged = ScoredCredit(CategoryCredit(1), np.array([0.0, 0.5, 1.0]))
    offset = np.array([[-2.0, 0.0, 1.0]] * 3)
    mean = np.array([[0.3], [0.6], [0.5]])
    moved = 1.0 / (1.0 + (1.0 - mean) / mean * np.exp(-offset))
    np.testing.assert_allclose(drawn.expected_along(judged)(offset), moved, atol=2e-4)
    np.testing.assert_allclose(drawn.expected(judged), mean[:, 0], atol=1e-6)


def _against_fine_sum(counts: np.ndarray, scores: tuple[float, ...], theta: np.ndarray) -> None:
    """Compare log probabilities of trials at a point with sums over 40,000 tilts."""
    observation = (
        CountModel.of(bk.priors.HyperPrior(families="beta"), counts, scores=scores)
        .part("beta")[0]
        .observation
    )
    [(_, alpha, beta)] = observation.law.nodes(theta, np.zeros((1, 1))).components
    base, s = observation.log_base(theta)[0], np.array(scores)
    tilt = np.sinh(np.linspace(-12.0, 12.0, 40_001))
    logs = base + tilt[:, None] * s
    total = logsumexp(logs, axis=1)
    vector = np.exp(logs - total[:, None])
    p, q = (np.maximum(vector @ end, 1e-300) for end in (s, 1.0 - s))
    variance = np.where(p < 0.5, vector @ s**2 - p**2, vector @ (1.0 - s) ** 2 - q**2)
    density = alpha * np.log(p) + beta * np.log(q)
    density += np.log(np.maximum(variance, 1e-300) / (p * q) * np.gradient(tilt))
    trials = observation.states.evidence @ (logs - total[:, None]).T
    expected = logsumexp(trials + density, axis=1) - logsumexp(density)
    logs_of_trials = observation.log_states(theta, np.zeros((1, 1)))[0, 0]
    np.testing.assert_allclose(logs_of_trials, expected, atol=0.03)


@pytest.mark.parametrize("hole", [-1.8, 1.8])
def test_bases_with_holes_and_spikes_at_the_ends_are_integrated(hole) -> None:
    """Of 101 levels, at a point far from how often levels were seen."""
    marks = np.array([[100, 100, 100, 99], [100, 98, 97, 99], [50, 40, 60, 55], [0, 0, 1, 0]])
    counts = np.stack([(marks == level).sum(axis=1) for level in range(101)], axis=1)
    point = np.array([[0.4, -0.3, 0.0, hole, 0.0, 0.0, 0.0]])
    _against_fine_sum(counts, tuple(np.arange(101) / 100.0), point)


@pytest.mark.parametrize("trials", [40, 1000, 20_000])
def test_many_trials_are_integrated(trials) -> None:
    counts = np.random.default_rng(7).multinomial(
        trials, [[0.1, 0.2, 0.4, 0.2, 0.1], [0.02, 0.03, 0.05, 0.1, 0.8], [1.0, 0, 0, 0, 0]]
    )
    _against_fine_sum(counts, (0.0, 0.25, 0.5, 0.75, 1.0), np.array([[0.3, -0.5, 0.4, -0.3, 0.1]]))


@pytest.mark.parametrize("mean", [-3.0, 0.0, 3.0])
def test_trials_far_from_what_the_law_expects_are_integrated(mean) -> None:
    """Log probabilities down to -400: the nodes that count have next to no prior probability."""
    counts = np.array([[120, 0, 0, 0, 0], [0, 0, 0, 0, 120], [30, 0, 60, 0, 30]])
    point = np.array([[mean, 0.1, -0.1, 0.1, -4.5]])
    _against_fine_sum(counts, (0.0, 0.25, 0.5, 0.75, 1.0), point)


@pytest.mark.parametrize("gap", [0.3, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("family", FAMILIES)
def test_probabilities_of_all_that_may_be_seen_sum_to_one(family: str, gap: float) -> None:
    """Of three trials in four levels, also where two of them nearly have one score."""
    trials, scores = 3, (0.0, gap, 0.6, 1.0)
    every = np.array([row for row in np.ndindex(*[trials + 1] * 4) if sum(row) == trials])
    model = CountModel.of(bk.priors.HyperPrior(families=family), every, scores=scores)
    predictor, fields = model.part(family)
    theta = fields.from_uniform(np.random.default_rng(2).random((40, fields.size)))
    theta = theta[np.abs(theta[:, fields.slices["mean"]]).max(axis=1) < 4.0]
    logs = predictor.observation.log_states(theta, np.zeros((len(theta), 1)))[:, 0]
    total = np.exp(logs + predictor.observation.states.log_ways).sum(axis=1)
    np.testing.assert_allclose(total, 1.0, atol=1e-4)
