"""Prior and predictive groups of results, against direct computations."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import betaln, comb, expit, logit
from scipy.stats import betabinom, binom, dirichlet, halfnorm, norm

import bayesatk as bk
from bayesatk.priors.choice import power_scaled

TRIALS = np.array([4, 4, 3, 4, 2, 4])
RIGHT = np.array([1, 3, 2, 0, 2, 4])
GROUP = np.array([0, 0, 0, 1, 1, 1])
X = np.array([-1.2, 0.1, 0.8, -0.4, 0.3, 1.1])
X -= X.mean()
JUDGE = bk.JudgeError(18, 20, 2, 20)
SIZE = 100_000


def flat(values: xr.DataArray) -> np.ndarray:
    values = values.isel(system=0).stack(sample=("chain", "draw")).transpose("sample", ...)
    return values.values


def logit_density(p):
    """Of the logit of a uniform probability."""
    return np.log(p * (1.0 - p))


def test_predictive_counts_without_pooling_are_beta_binomial() -> None:
    prior = bk.priors.BetaPrior(2.0, 1.0)
    fit = bk.evaluate((RIGHT, TRIALS), "pass@1", pooling="none", prior=prior, draws=2000, rng=1)
    for name, law in (
        ("prior_predictive", betabinom(TRIALS, 2.0, 1.0)),
        ("posterior_predictive", betabinom(TRIALS, 2.0 + RIGHT, 1.0 + TRIALS - RIGHT)),
    ):
        counts = flat(fit[name]["successes"])
        error = law.std() / np.sqrt(len(counts))
        assert (np.abs(counts.mean(axis=0) - law.mean()) < 4.5 * error).all()
        np.testing.assert_allclose(counts.var(axis=0), law.var(), rtol=8 / np.sqrt(len(counts)))


@pytest.mark.parametrize("options", [{}, {"covariates": ["x"]}, {"group": GROUP.tolist()}])
def test_prior_mean_of_success_is_one_half(options) -> None:
    data = bk.tally(RIGHT, trials=TRIALS, covariates={"x": X.tolist()})
    fit = bk.evaluate(data, "pass@1", draws=50, rng=1, **options)
    rate = flat(fit["prior_predictive"]["successes"]) / TRIALS
    rate = rate.mean(axis=1)
    assert rate.mean() == pytest.approx(0.5, abs=4.5 * rate.std() / np.sqrt(len(rate)))


def brute_force(grouped: bool, judged: bool) -> tuple[np.ndarray, np.ndarray]:
    """Predictive mean and variance of each question's marks, by weighted draws of the prior."""
    rng = np.random.default_rng(7)
    mean, icc = rng.random((2, SIZE))
    total = np.maximum((1.0 - icc) / icc, 1e-9)
    move = np.zeros((SIZE, 6))
    if grouped:
        effects = np.abs(rng.normal(size=(SIZE, 1))) * rng.normal(size=(SIZE, 2))
        move += effects[:, GROUP]
    else:
        move += rng.normal(0.0, 2.5, (SIZE, 1)) * (X / X.std())
    s, f = np.ones(SIZE), np.zeros(SIZE)
    if judged:
        s, f = (rng.beta(*shape, SIZE) for shape in JUDGE.shapes)
    logs, first, second = np.zeros(SIZE), [], []
    for question in range(6):
        n, c = int(TRIALS[question]), int(RIGHT[question])
        m = expit(logit(mean) + move[:, question])
        a, b = np.clip([m * total, (1.0 - m) * total], 1e-9, None)
        chances = np.zeros((SIZE, n + 1))  # of each number of marks
        for right in range(n + 1):
            chance = comb(n, right) * np.exp(betaln(a + right, b + n - right) - betaln(a, b))
            for marks in range(n + 1):
                split = range(marks + 1)
                seen = sum(
                    binom.pmf(j, right, s) * binom.pmf(marks - j, n - right, f) for j in split
                )
                chances[:, marks] += chance * seen
        logs += np.log(chances[:, c])
        first.append(chances @ np.arange(n + 1))
        second.append(chances @ np.arange(n + 1) ** 2)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    moment = np.array(first) @ weight
    return moment, np.array(second) @ weight - moment**2


@pytest.mark.long
@pytest.mark.parametrize(("grouped", "judged"), [(True, False), (False, True)])
def test_posterior_predictive_of_structure_against_brute_force(grouped, judged) -> None:
    data = bk.tally(RIGHT, trials=TRIALS, covariates={"x": X.tolist()})
    options = {"group": GROUP.tolist()} if grouped else {"covariates": ["x"]}
    fit = bk.evaluate(
        data,
        "pass@1",
        difficulty="beta",
        draws=2000,
        rng=1,
        judge=JUDGE if judged else None,
        **options,
    )
    counts = flat(fit["posterior_predictive"]["successes"])
    mean, variance = brute_force(grouped, judged)
    np.testing.assert_allclose(counts.mean(axis=0), mean, atol=0.08)
    np.testing.assert_allclose(counts.var(axis=0), variance, rtol=0.1)


def log_ordered(right, wrong, a, b):
    """Log probability of trials in their order under Betas."""
    return betaln(a + right, b + wrong) - betaln(a, b)


@pytest.mark.parametrize(("atoms", "weight"), [(False, 0.0), (True, 0.0), (False, 0.5)])
def test_replicates_are_of_new_questions_without_earlier_trials(atoms, weight) -> None:
    """Chances of every count, by draws of the prior weighted by what all questions say."""
    rng = np.random.default_rng(11)
    mean, icc = rng.random((2, SIZE))
    total = np.maximum((1.0 - icc) / icc, 1e-9)
    a, b = np.clip([mean * total, (1.0 - mean) * total], 1e-9, None)
    never, always, between = rng.dirichlet((1.0, 1.0, 8.0), SIZE).T if atoms else (0.0, 0.0, 1.0)
    earlier = np.array([2, 0, 1, 1, 2, 0])

    def chance(right, wrong):
        ends = never * (right == 0) + always * (wrong == 0)
        return between * np.exp(log_ordered(right, wrong, a, b)) + ends

    logs = sum(
        np.log(chance(right + weight * before, n - right + weight * (2 - before)))
        for right, n, before in zip(RIGHT, TRIALS, earlier, strict=True)
    )
    posterior = np.exp(logs - logs.max())
    posterior /= posterior.sum()
    options = {}
    if weight:
        options = {"prior_trials": bk.tally(earlier, trials=np.full(6, 2)), "prior_weight": weight}
    fit = bk.evaluate(
        (RIGHT, TRIALS),
        "pass@1",
        difficulty="inflated" if atoms else "beta",
        draws=2000,
        rng=1,
        **options,
    )
    counts = flat(fit["posterior_predictive"]["successes"])
    for question, n in enumerate(TRIALS):
        for right in range(n + 1):
            exact = posterior @ (comb(n, right) * chance(right, n - right))
            error = np.sqrt(exact * (1.0 - exact) / len(counts))
            found = (counts[:, question] == right).mean()
            assert abs(found - exact) < 4.5 * error + 0.003  # of the weighted draws


def test_log_prior_of_covariates_is_the_density_of_their_coordinates() -> None:
    data = bk.tally(RIGHT, trials=TRIALS, covariates={"x": X.tolist()})
    fit = bk.evaluate(data, "pass@1", covariates=["x"], difficulty="beta", draws=50, rng=1)
    intercept, slope = flat(fit["posterior"]["coefficients"]).T  # x has mean 0
    expected = logit_density(expit(intercept)) + norm.logpdf(slope * X.std(), 0.0, 2.5)
    np.testing.assert_allclose(flat(fit["log_prior"]["coefficients"]), expected, rtol=1e-8)
    icc = flat(fit["posterior"]["icc"])
    np.testing.assert_allclose(flat(fit["log_prior"]["icc"]), logit_density(icc), rtol=1e-8)


def test_log_prior_of_groups_is_the_density_of_their_coordinates() -> None:
    fit = bk.evaluate(
        (RIGHT, TRIALS),
        "pass@1",
        group=GROUP.tolist(),
        prior=bk.priors.HyperPrior(group_sd=0.5),
        difficulty="inflated",
        draws=50,
        rng=1,
    )
    posterior, log_prior = fit["posterior"], fit["log_prior"]
    sd = flat(posterior["group_sd"])
    expected = halfnorm.logpdf(sd, scale=0.5) + np.log(sd)
    np.testing.assert_allclose(flat(log_prior["group_sd"]), expected, rtol=1e-8)
    never, always = (flat(posterior[name]) for name in ("never_solved", "always_solved"))
    atoms = np.stack([never, always, 1.0 - never - always])
    expected = dirichlet.logpdf(atoms, (1.0, 1.0, 8.0)) + np.log(atoms).sum(axis=0)
    np.testing.assert_allclose(flat(log_prior["atoms"]), expected, rtol=1e-6)


def test_log_prior_without_pooling_is_of_every_question() -> None:
    prior = bk.priors.BetaPrior(2.0, 3.0)
    fit = bk.evaluate(
        (RIGHT, TRIALS), "pass@1", pooling="none", prior=prior, draws=50, rng=1, keep=["p"]
    )
    p = flat(fit["posterior"]["p"])
    expected = np.log(12.0) + 2.0 * np.log(p) + 3.0 * np.log1p(-p)
    np.testing.assert_allclose(flat(fit["log_prior"]["p"]), expected, rtol=1e-8)
    assert set(fit["prior"].data_vars) == {"p", "pass_at_k"}
    of_prior = fit["prior"]["pass_at_k"].sel(k=1, target="questions").isel(system=0).values
    np.testing.assert_allclose(of_prior.ravel(), flat(fit["prior"]["p"]).mean(axis=1))


def test_powers_of_prior_and_likelihood_give_the_conjugate_posterior() -> None:
    prior = bk.priors.BetaPrior(3.0, 2.0)
    fit = bk.evaluate((RIGHT, TRIALS), "bayes", pooling="complete", prior=prior, draws=4000, rng=1)
    p, logs = flat(fit["posterior"]["mean_p"]), flat(fit["log_prior"]["mean_p"])
    right, wrong = RIGHT.sum(), (TRIALS - RIGHT).sum()
    scaled = np.average(p, weights=np.exp(0.5 * logs))
    assert scaled == pytest.approx((4.5 + right) / (7.5 + right + wrong), abs=0.004)
    logs = flat(fit["log_likelihood"]["successes"]).sum(axis=1)
    scaled = np.average(p, weights=np.exp(0.5 * (logs - logs.max())))
    exact = (3.0 + 1.5 * right) / (5.0 + 1.5 * (right + wrong))
    assert scaled == pytest.approx(exact, abs=0.004)


def test_power_of_an_averaged_prior_keeps_the_prior_probability_of_families() -> None:
    counts = np.array([0, 0, 1, 5, 8, 8, 3, 0, 8, 2]), np.full(10, 8)
    fit = bk.evaluate(counts, "bayes", draws=5000, rng=1)
    logs = sum(flat(fit["log_prior"][name]) for name in ("mean_p", "icc"))
    family = flat(fit["difficulty"]["family"])
    weight = np.exp(0.1 * logs)
    found = np.bincount(family, weight, 3) / weight.sum()
    scaled = power_scaled(bk.Result.of(fit).prior, 1.1)
    other = bk.evaluate(counts, "bayes", prior=scaled, draws=5, rng=1)
    exact = other["closed_form"]["family_probability"].values[0]
    np.testing.assert_allclose(found, exact, atol=0.025)


def test_prior_of_complete_pooling_has_the_earlier_trials() -> None:
    earlier = bk.tally(np.array([5, 4]), trials=np.array([5, 5]))
    fit = bk.evaluate(
        ([1, 2], [3, 3]),
        "pass@1",
        pooling="complete",
        prior_trials=earlier,
        prior_weight=0.5,
        draws=50,
        rng=1,
    )
    p = flat(fit["prior"]["mean_p"])
    assert p.mean() == pytest.approx(5.5 / 7.0, abs=0.035)
    p = flat(fit["posterior"]["mean_p"])
    expected = 5.5 * np.log(p) + 1.5 * np.log1p(-p) - betaln(5.5, 1.5)
    np.testing.assert_allclose(flat(fit["log_prior"]["mean_p"]), expected, rtol=1e-8)


@pytest.mark.parametrize("pooling", ["none", "partial", "complete"])
def test_large_predictive_groups_are_left_out_unless_kept(pooling) -> None:
    counts = (np.arange(260) % 5, 4)
    fit = bk.evaluate(counts, "bayes", pooling=pooling, rng=1)
    assert "posterior_predictive" not in fit.children
    kept = bk.evaluate(counts, "bayes", pooling=pooling, rng=1, keep=["predictive"])
    assert kept["posterior_predictive"]["successes"].shape == (4, 1000, 1, 260)
    assert "p" not in kept["posterior"]
    assert "log_prior" in kept.children


def test_models_of_different_units_are_not_compared() -> None:
    fits = {
        name: bk.evaluate((RIGHT, TRIALS), "bayes", pooling=name, draws=5, rng=1)
        for name in ("none", "complete")
    }
    fits["none"]["log_likelihood"].attrs["unit"] = "question of all systems"
    with pytest.raises(
        ValueError, match="fits must have log-likelihoods of the same unit"
    ) as error:
        bk.checks.compare_models(fits)
    assert "'none': a question of all systems" in str(error.value)
    assert "Compare models" in str(error.value)
