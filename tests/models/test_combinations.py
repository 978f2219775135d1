"""Combined features by NUTS, against draws of the prior weighted by the likelihood."""

import arviz as az
import numpy as np
import pytest
from scipy.special import betaln, comb, expit, logit
from scipy.stats import binom

import bayesatk as bk

SIZE = 300_000
GROUP = np.array([0, 0, 0, 1, 1, 1])
X = np.array([-1.2, 0.1, 0.8, -0.4, 0.3, 1.1])
WEIGHT = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
MARKS, TRIALS = np.array([1, 3, 2, 0, 2, 3]), np.array([3, 3, 2, 3, 2, 3])
BEFORE = np.array([1, 0, 1, 1, 0, 1]), np.array([1, 1, 1, 2, 1, 1])
JUDGE = bk.JudgeError(18, 20, 2, 20)
LONG = {"draws": 4000, "tune": 1500, "progress": False, "rng": 2}


def beta_binomial(t, n, a, b):
    return comb(n, t) * np.exp(betaln(a + t, b + n - t) - betaln(a, b))


def weighted(draws: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    mean = weight @ draws
    return float(mean), float(np.sqrt(weight**2 @ (draws - mean) ** 2))


def agree(sampled, draws: np.ndarray, weight: np.ndarray) -> None:
    expected, error = weighted(draws, weight)
    error = np.hypot(error, float(az.mcse(sampled.reset_coords(drop=True))))
    assert float(sampled.mean()) == pytest.approx(expected, abs=4.5 * error)


@pytest.mark.long
@pytest.mark.parametrize("family", ["beta", "inflated"])
def test_groups_covariates_judge_earlier_trials_weights_and_atoms(family) -> None:
    data = bk.tally(
        MARKS, trials=TRIALS, group=GROUP.tolist(), covariates={"x": X.tolist()},
        weight=WEIGHT.tolist(),
    )  # fmt: skip
    fit = bk.sample(
        data, "pass@1", group="group", covariates=["x"], judge=JUDGE, difficulty=family,
        prior_trials=bk.tally(BEFORE[0], trials=BEFORE[1]), group_weights="equal",
        sample_kwargs={"target_accept": 0.95, "cores": 2}, **LONG,
    )  # fmt: skip
    rng = np.random.default_rng(7)
    mean, icc = rng.random((2, SIZE))
    slope, tau = rng.normal(0.0, 2.5, SIZE), np.abs(rng.normal(size=SIZE))
    u = tau[:, None] * rng.normal(size=(SIZE, 2))
    s, f = (rng.beta(*shape, SIZE) for shape in JUDGE.shapes)
    never, always, between = np.zeros(SIZE), np.zeros(SIZE), np.ones(SIZE)
    if family == "inflated":
        never, always, between = rng.dirichlet((1.0, 1.0, 8.0), SIZE).T
    total = np.maximum((1.0 - icc) / icc, 1e-9)
    scaled = (X - X.mean()) / X.std()
    logs, p, new = np.zeros(SIZE), [], []
    for q in range(6):
        m = expit(logit(mean) + scaled[q] * slope + u[:, GROUP[q]])
        a, b = np.clip([m * total, (1.0 - m) * total], 1e-9, None)
        marks, n = MARKS[q] + BEFORE[0][q], TRIALS[q] + BEFORE[1][q]
        chance, moment = np.zeros(SIZE), np.zeros(SIZE)
        for t in range(n + 1):
            seen = sum(
                binom.pmf(j, t, s) * binom.pmf(marks - j, n - t, f) for j in range(marks + 1)
            )
            inside = between * beta_binomial(t, n, a, b)
            chance += seen * (inside + never * (t == 0) + always * (t == n))
            moment += seen * (inside * (a + t) / (a + b + n) + always * (t == n))
        logs += np.log(chance)
        p.append(moment / chance)
        new.append(between * m + always)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    assert 1.0 / (weight @ weight) > 2000
    share = WEIGHT / np.bincount(GROUP, WEIGHT)[GROUP] / 2.0
    posterior = fit["posterior"].to_dataset().isel(system=0)
    value = posterior["pass_at_k"].isel(k=0)
    agree(value.sel(target="questions"), share @ np.array(p), weight)
    agree(value.sel(target="population"), share @ np.array(new), weight)
    effect = tau * rng.normal(size=SIZE)
    fresh = [between * expit(logit(mean) + scaled[q] * slope + effect) + always for q in range(6)]
    agree(value.sel(target="new_groups"), share @ np.array(fresh), weight)
    for name, draws in (("group_sd", tau), ("sensitivity", s), ("false_positive_rate", f)):
        agree(posterior[name], draws, weight)
    agree(posterior["coefficients"].sel(coefficient="x"), slope / X.std(), weight)
    own = [share[GROUP == g] * 2.0 @ np.array(p)[GROUP == g] for g in (0, 1)]
    by_group = fit["group_posterior"]["pass_at_k"].isel(system=0, k=0).sel(target="questions")
    for g in (0, 1):
        agree(by_group.isel(group=g), own[g], weight)


@pytest.mark.long
def test_fractions_of_earlier_marks() -> None:
    """Marks at half their weight: one group of questions, no structure."""
    data = bk.tally(MARKS, trials=TRIALS)
    fit = bk.sample(
        data, "pass@1,2", judge=JUDGE, difficulty="beta", prior_weight=0.5,
        prior_trials=bk.tally(BEFORE[0], trials=BEFORE[1]),
        sample_kwargs={"target_accept": 0.95, "cores": 2}, **LONG,
    )  # fmt: skip
    rng = np.random.default_rng(8)
    mean, icc = rng.random((2, SIZE))
    s, f = (rng.beta(*shape, SIZE) for shape in JUDGE.shapes)
    total = (1.0 - icc) / icc
    p = rng.beta(
        np.maximum(mean * total, 1e-9)[:, None],
        np.maximum((1 - mean) * total, 1e-9)[:, None],
        (SIZE, 6),
    )
    marked = f[:, None] + (s - f)[:, None] * p
    right, n = MARKS + 0.5 * BEFORE[0], TRIALS + 0.5 * BEFORE[1]
    logs = (right * np.log(marked) + (n - right) * np.log1p(-marked)).sum(axis=1)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    value = fit["posterior"]["pass_at_k"].isel(system=0)
    agree(value.sel(target="questions", k=1), p.mean(axis=1), weight)
    agree(value.sel(target="questions", k=2), (1.0 - (1.0 - p) ** 2).mean(axis=1), weight)
    agree(value.sel(target="population", k=1), mean, weight)


@pytest.mark.long
def test_categories_in_groups_with_covariates() -> None:
    rng = np.random.default_rng(3)
    marks = rng.integers(0, 3, (6, 2))
    scores = np.array([0.0, 0.4, 1.0])
    data = bk.tally(
        marks, scores=dict(enumerate(scores)), group=GROUP.tolist(), covariates={"x": X.tolist()}
    )
    fit = bk.sample(data, "bayes", group="group", covariates=["x"],
                    prior=bk.priors.DirichletHyperPrior(),
                    sample_kwargs={"target_accept": 0.95, "cores": 2}, **LONG)  # fmt: skip
    mean, icc = rng.dirichlet(np.ones(3), SIZE), rng.random(SIZE)
    slope, tau = rng.normal(0.0, 2.5, SIZE), np.abs(rng.normal(size=SIZE))
    u = tau[:, None] * rng.normal(size=(SIZE, 2))
    scaled = (X - X.mean()) / X.std()
    total, logs, these, new = (1.0 - icc) / icc, np.zeros(SIZE), [], []
    for q in range(6):
        tilted = mean * np.exp((scaled[q] * slope + u[:, GROUP[q]])[:, None] * scores)
        tilted /= tilted.sum(axis=1, keepdims=True)
        alpha = np.maximum(tilted * total[:, None], 1e-12)
        first, second = marks[q]
        rows = np.arange(SIZE)
        chance = tilted[rows, first] * (alpha[rows, second] + (first == second)) / (total + 1.0)
        logs += np.log(chance)
        seen = np.bincount(marks[q], minlength=3)
        these.append((alpha + seen) @ scores / (total + 2.0))
        new.append(tilted @ scores)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    value = fit["posterior"]["bayes"].isel(system=0)
    agree(value.sel(target="questions"), np.mean(these, axis=0), weight)
    agree(value.sel(target="population"), np.mean(new, axis=0), weight)
    agree(fit["posterior"]["group_sd"].isel(system=0), tau, weight)
