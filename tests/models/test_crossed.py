"""Systems crossed with questions: the sampled model, and the paired bootstrap held against it."""

import numpy as np
import pymc as pm
import pytest
from scipy.linalg import sqrtm
from scipy.special import expit
from scipy.stats import beta as beta_distribution
from scipy.stats import kstest

import bayesatk as bk
from bayesatk.comparison.joint.paired import difficulty_correlation, question_noise, reordered
from tests.comparison.test_system_comparison import joint_draws

MU, SIGMA, RHO = np.array([0.3, 0.8]), 1.5, 0.85


def _draw(rng: np.random.Generator, questions: int) -> np.ndarray:
    """Success probabilities of two systems on questions with correlated logit-normal difficulty."""
    covariance = SIGMA**2 * np.array([[1.0, RHO], [RHO, 1.0]])
    return expit(rng.multivariate_normal(MU, covariance, questions).T)


def _data(seed: int, questions: int, trials: int) -> tuple[bk.Outcomes, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = _draw(rng, questions)
    counts = rng.binomial(trials, p), np.full(p.shape, trials)
    return bk.tally(counts, systems=["a", "b"]), p


@pytest.mark.long
def test_the_crossed_model_and_what_it_is_compared_with(tmp_path) -> None:
    """One sampling, three questions to it."""
    data, p = _data(3, 120, 4)
    counts = data.successes.values, data.trials.values.copy()
    counts[1][1, 100:] = 0
    counts[0][1, 100:] = 0
    holes = bk.tally(counts, systems=["a", "b"], missing="ignore")
    fit = bk.sample(holes, "pass@1,2", form="crossed", keep=["p"], rng=1, progress=False)
    _finds_the_correlation_and_fills_gaps(p, fit)
    _says_what_it_cannot_give(fit, tmp_path)
    _tells_the_story_of_the_bootstrap(holes, fit)


def _finds_the_correlation_and_fills_gaps(p, fit) -> None:
    posterior = fit["posterior"].to_dataset()
    rho = posterior["correlation"].sel(system="a", other="b")
    assert abs(float(rho.mean()) - RHO) < 3 * float(rho.std())
    assert abs(float(posterior["mu"].sel(system="a").mean()) - MU[0]) < 0.5
    missed = posterior["p"].sel(system="b").isel(question=slice(100, None))
    centre, sd = missed.mean(("chain", "draw")).values, missed.std(("chain", "draw")).values
    z = (p[1, 100:] - centre) / sd
    assert np.sqrt((z**2).mean()) < 1.6
    # The other system's results say something: better than the mean of all.
    assert ((p[1, 100:] - centre) ** 2).mean() < 0.7 * p[1, 100:].var()


def _says_what_it_cannot_give(fit, tmp_path) -> None:
    for refused in (
        bk.checks.exact_loo, bk.checks.log_evidence, bk.checks.log_bayes_factor_equal,
        lambda one: bk.checks.log_bayes_factor_chance(one, 0.5),
        lambda one: bk.guessing.random_baseline(one, 0.5, rng=1), bk.checks.criticise,
        lambda one: bk.plan(one, "pass@1", width=0.1), bk.plots.plot_difficulty,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="crossed"):
            refused(fit)
    compared = bk.compare(fit, rng=1)
    assert compared["ranks"].attrs["ranked_on"] == 120
    bk.report(compared, tmp_path / "report.html")
    assert bk.load_result(bk.save(compared, tmp_path / "fit.nc")).identical(compared)


def _tells_the_story_of_the_bootstrap(holes, sampled) -> None:
    full = bk.compare(bk.evaluate(holes, "pass@1,2", rng=1), rng=1)["comparison"]["pass_at_k"]
    theirs = bk.compare(sampled, rng=1)["comparison"]
    assert theirs["shared_questions"].values.tolist() == [[120, 100], [100, 100]]
    pair = {"system": "b", "other": "a", "target": "population"}
    ours, theirs = full.sel(pair), theirs["pass_at_k"].sel(pair)
    sd = theirs.sel(contrast="sd")
    # The crossed model also knows how one system did where the other has no trials.
    assert bool((np.abs(ours - theirs).sel(contrast="mean") < 0.75 * sd).all())
    assert bool((np.abs(ours.sel(contrast="sd") / sd - 1) < 0.2).all())
    for found in (ours, theirs):  # what pairing is worth
        gain = found.sel(contrast="sd") / found.sel(contrast="sd_unpaired")
        assert bool((gain < 0.8).all())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("questions", "trials", "k"), [(40, 1, 1), (60, 4, 4)])
def test_paired_intervals_are_neither_short_nor_long(questions, trials, k) -> None:
    """Their sd is the spread of the estimates, though systems share most of the difficulty."""
    big = _draw(np.random.default_rng(0), 400_000) ** k
    truth = float(big[1].mean() - big[0].mean())
    template = bk.evaluate(
        np.tile([0, 1], (2, questions, 1)), f"pass^{k}", difficulty="beta", draws=250, rng=1
    )
    error, sd, unpaired, held, size = [], [], [], 0, 40
    for seed in range(size):
        rng = np.random.default_rng(100 + seed)
        counts = rng.binomial(trials, _draw(rng, questions))
        drawn = joint_draws(template, counts, trials, seed)[1]
        gap = drawn.values[:, 0, 1] - drawn.values[:, 0, 0]
        error.append(gap.mean() - truth)
        sd.append(gap.std())
        unpaired.append(np.hypot(*drawn.sd[0]))
        low, high = np.quantile(gap, [0.025, 0.975])
        held += low <= truth <= high
    assert held >= 34  # of 40: fewer has probability .0014 at 95%
    assert 0.75 < np.mean(sd) / np.std(error) < 1.4
    assert np.mean(sd) < 0.87 * np.mean(unpaired)


def test_correlation_of_difficulty_is_freed_from_the_noise_of_trials() -> None:
    rng = np.random.default_rng(5)
    p = _draw(rng, 200_000)
    rates = rng.binomial(1, p).astype(float)
    even = np.full((1, p.shape[1]), 1 / p.shape[1])
    truth = np.corrcoef(p)[0, 1]
    found = difficulty_correlation(rates, p.std(axis=1)[None], even)[0, 0, 1]
    assert found == pytest.approx(truth, abs=0.01)
    assert np.corrcoef(rates)[0, 1] < 0.5 * truth
    alike = difficulty_correlation(np.array([[0.2, 0.2]] * 3), np.zeros((1, 3)), even[:, :2])
    np.testing.assert_array_equal(alike[0], np.eye(3))


def test_impossible_correlations_become_possible_ones() -> None:
    """A B alike, B C alike, A C opposed: no three systems are."""
    rates = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    spread, even = np.full((2, 3), 0.1), np.full((2, 4), 0.25)
    found = difficulty_correlation(rates, spread, even)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    np.testing.assert_allclose(np.diagonal(found, axis1=1, axis2=2), 1.0)


def test_noise_has_the_covariance_it_is_given() -> None:
    rng = np.random.default_rng(6)
    own = np.array([[[4.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 9.0]]])
    correlation = np.array([[[1.0, 0.6], [0.6, 1.0]]])
    noise = question_noise(correlation, own, 8, 200_000, rng)
    for system in (0, 1):
        np.testing.assert_allclose(np.cov(noise[:, :, system].T) * 9, own[system], atol=0.1)
    cross = np.cov(noise[:, :, 0].T, noise[:, :, 1].T)[:2, 2:] * 9
    np.testing.assert_allclose(cross, 0.6 * sqrtm(own[0]) @ sqrtm(own[1]), atol=0.1)
    values = rng.gamma(1.0, size=(1000, 3))
    moved = reordered(values, rng.normal(size=(1000, 3)))
    np.testing.assert_array_equal(np.sort(moved, axis=0), np.sort(values, axis=0))


def test_what_the_crossed_model_cannot_do_is_refused() -> None:
    runs = {"a": [[1, 0], [1, 1]], "b": [[0, 0], [1, 0]]}
    quiet = {"form": "crossed", "progress": False}
    with pytest.raises(ValueError, match="at least two systems to be crossed"):
        bk.sample([[1, 0]], "bayes", **quiet)
    with pytest.raises(TypeError, match="must be a CrossedPrior"):
        bk.sample(runs, "bayes", prior=bk.priors.HyperPrior(), **quiet)
    for options in (
        {"pooling": "none"}, {"prior_trials": runs}, {"difficulty": "beta"},
        {"judge": bk.JudgeError(9, 10, 1, 10)},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"logit-normal.*form='crossed'.*To go on") as refusal:
            bk.sample(runs, "pass@1", **options, **quiet)
        assert next(iter(options)) in str(refusal.value)
    with pytest.raises(ValueError, match=r"keep must be empty or \['p'\]"):
        bk.sample(runs, "bayes", keep=["log_likelihood"], **quiet)
    with pytest.raises(ValueError, match="must be finite and > 0"):
        bk.priors.CrossedPrior(eta=0.0)
    with pytest.raises(ValueError, match="prior_weight must be left out"):
        bk.sample(runs, "bayes", prior_weight=0.5, progress=False)


@pytest.mark.long
@pytest.mark.parametrize("questions", [2, 5])
def test_the_model_is_its_definition(questions) -> None:
    """Prior draws have the moments of the definition, in which nothing is centred."""
    runs = {"a": [[1, 0]] * questions, "b": [[0, 0]] * questions}
    prior = bk.priors.CrossedPrior(mu_sd=0.5, sigma_sd=1.0, eta=3.0)
    model = bk.models.build_crossed(runs, prior=prior)
    names = ("p", "correlation", "mu")
    drawn = pm.draw([model[name] for name in names], draws=8000, random_seed=1)
    p, correlation, mu = drawn
    rng = np.random.default_rng(2)
    size = 200_000
    rho = 2 * rng.beta(3.0, 3.0, size) - 1  # LKJ(eta) of two is a stretched Beta(eta, eta)
    first = rng.normal(size=size)
    second = rho * first + np.sqrt(1 - rho**2) * rng.normal(size=size)
    sigma = np.abs(rng.normal(0.0, 1.0, (2, size)))
    q = expit(rng.normal(0.0, 0.5, (2, size)) + sigma * np.stack([first, second]))
    slack = 4.5 / np.sqrt(8000)
    assert abs(p[:, :, 0].mean() - q.mean()) < slack * q.std()
    assert abs(p[:, :, 0].std() / q.std() - 1) < 0.05
    assert abs(correlation[:, 0, 1].var() - rho.var()) < 0.01
    assert abs(np.corrcoef(p[:, :, 0].T)[0, 1] - np.corrcoef(q)[0, 1]) < 0.04
    assert np.abs(mu.std(axis=0) / 0.5 - 1).max() < 0.05
    # Of one system: two questions share mu, and sigma; and mu is what p is centred on.
    level = rng.normal(0.0, 0.5, size)
    pair = expit(level + np.abs(rng.normal(0.0, 1.0, size)) * rng.normal(size=(2, size)))
    expected = np.corrcoef(pair)[0, 1], np.corrcoef(pair[0], level)[0, 1]
    assert abs(np.corrcoef(p[:, 0, :2].T)[0, 1] - expected[0]) < 0.04
    assert abs(np.corrcoef(p[:, 0, 0], mu[:, 0])[0, 1] - expected[1]) < 0.04


@pytest.mark.parametrize(("size", "eta"), [(3, 1.0), (4, 2.5)])
def test_correlation_matrices_are_lkj(size, eta) -> None:
    """Every correlation is Beta(eta + (size - 2)/2) on (-1, 1), whichever pair."""
    runs = {name: [[1, 0]] for name in "abcd"[:size]}
    model = bk.models.build_crossed(runs, prior=bk.priors.CrossedPrior(eta=eta))
    drawn = pm.draw(model["correlation"], draws=4000, random_seed=1)
    np.testing.assert_allclose(np.diagonal(drawn, axis1=1, axis2=2), 1.0)
    assert np.linalg.eigvalsh(drawn).min() > -1e-9
    b = eta + (size - 2) / 2
    for i, j in zip(*np.tril_indices(size, -1), strict=True):
        assert kstest((drawn[:, i, j] + 1) / 2, beta_distribution(b, b).cdf).pvalue > 1e-4
    # E log det, from the density det^(eta - 1): the partial correlations are independent.
    rng = np.random.default_rng(2)
    shapes = [eta + (size - 2 - k) / 2 for k in range(size - 1) for _ in range(size - 1 - k)]
    z = [2 * rng.beta(one, one, 50_000) - 1 for one in shapes]
    expected = sum(np.log1p(-(one**2)).mean() for one in z)
    found = np.linalg.slogdet(drawn)[1]
    assert abs(found.mean() - expected) < 5 * found.std() / np.sqrt(4000)
