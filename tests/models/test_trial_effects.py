"""The recipe of trial effects on docs/own_model.md, beside its posterior without a sampler."""

import arviz as az
import numpy as np
import nutpie
import pytest
from benchmarks.recipes import MODELS
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp, softmax

import bayesatk as bk

Array = NDArray[np.float64]
NODES, WEIGHT = np.polynomial.hermite_e.hermegauss(21)  # of difficulties
OF_PROMPTS, WEIGHT_OF_PROMPTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHT, WEIGHT_OF_PROMPTS = WEIGHT / WEIGHT.sum(), WEIGHT_OF_PROMPTS / WEIGHT_OF_PROMPTS.sum()
PROMPTS, QUESTIONS = 8, 150
MEANS, SPREADS = np.linspace(-4.0, 4.0, 201), (np.arange(120) + 0.5) / 30.0


def logs_by_node(theta: Array, runs: Array) -> tuple[Array, Array]:
    """Log joint density of marks and nodes of difficulty, (question, node), and success chances.

    `theta` holds the logit of a typical question with each prompt, and the log sd of questions.
    """
    eta = theta[:-1] + np.exp(theta[-1]) * NODES[:, None]
    return runs @ eta.T - np.logaddexp(0.0, eta).sum(axis=1) + np.log(WEIGHT), expit(eta)


def loss(theta: Array, runs: Array) -> tuple[float, Array]:
    """Minus the log density of `theta`, flat in the prompts, sd half-normal(2); and its slope."""
    logs, chances = logs_by_node(theta, runs)
    shares, sd = softmax(logs, axis=1), np.exp(theta[-1])
    of_prompts = runs.sum(axis=0) - shares.sum(axis=0) @ chances
    residual = runs.sum(axis=1)[:, None] - chances.sum(axis=1)
    of_sd = sd * ((shares * residual) @ NODES).sum() - sd**2 / 4.0 + 1.0
    value = logsumexp(logs, axis=1).sum() - sd**2 / 8.0 + theta[-1]
    return -float(value), -np.append(of_prompts, of_sd)


def posterior(runs: Array, rng: np.random.Generator, draws: int) -> Array:
    """Draw the scores of these questions and of questions like these, (target, draw).

    150 questions make `theta` all but normal (Laplace); mean and sd of the prompts are on a grid.
    """
    start = np.append(logit(np.clip(runs.mean(axis=0), 0.02, 0.98)), 0.2)
    best = minimize(loss, start, (runs,), jac=True).x
    steps = 1e-4 * np.eye(PROMPTS + 1)
    slopes = [loss(best + h, runs)[1] - loss(best - h, runs)[1] for h in steps]
    covariance = np.linalg.inv(np.array(slopes) / 2e-4)
    within, axes = np.linalg.eigh(covariance[:-1, :-1])
    y, one = axes.T @ best[:-1], axes.T @ np.ones(PROMPTS)
    variance = SPREADS[:, None] ** 2 + within
    logs = np.stack(
        [-0.5 * ((y - m * one) ** 2 / variance + np.log(variance)).sum(axis=1) for m in MEANS]
    )
    logs += -(MEANS[:, None] ** 2) / (2.0 * 1.5**2) - SPREADS**2 / 2.0
    at, of = np.unravel_index(rng.choice(logs.size, draws, p=softmax(logs.ravel())), logs.shape)
    mean, spread = MEANS[at][:, None], SPREADS[of][:, None]
    precision = 1.0 / within + 1.0 / spread**2  # of the prompts, given their mean and sd
    centre = (y / within + mean * one / spread**2) / precision
    prompts = (centre + rng.standard_normal(centre.shape) / np.sqrt(precision)) @ axes.T
    slope = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
    left = covariance[-1, -1] - slope @ covariance[:-1, -1]
    log_sd = best[-1] + (prompts - best[:-1]) @ slope
    log_sd += np.sqrt(left) * rng.standard_normal(draws)
    scores = np.empty((2, draws))
    for i, theta in enumerate(np.column_stack([prompts, log_sd])):
        shares = softmax(logs_by_node(theta, runs)[0], axis=1).cumsum(axis=1)
        node = (shares < rng.random((len(runs), 1))).sum(axis=1).clip(max=len(NODES) - 1)
        values = over_prompts(mean[i] + np.exp(theta[-1]) * NODES, spread[i])
        scores[:, i] = values[node].mean(), values @ WEIGHT
    return scores


def over_prompts(logits: Array, spread: Array | float) -> Array:
    """Success probabilities with prompts like these."""
    return np.asarray(expit(logits[:, None] + spread * OF_PROMPTS) @ WEIGHT_OF_PROMPTS)


def simulated(spread: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Marks of prompts with effects of this sd, and the true scores."""
    logits = rng.normal(0.3, 1.3, QUESTIONS)
    chances = expit(logits[:, None] + spread * rng.standard_normal(PROMPTS))
    like = over_prompts(0.3 + 1.3 * NODES, spread) @ WEIGHT
    return rng.binomial(1, chances), np.array([over_prompts(logits, spread).mean(), like])


@pytest.mark.long
def test_the_recipe_samples_its_posterior() -> None:
    runs, _ = simulated(0.6, np.random.default_rng(1))
    trace = nutpie.sample(
        nutpie.compile_pymc_model(MODELS["trial_effects"](runs)),
        draws=1500,
        tune=1000,
        chains=4,
        cores=1,
        seed=1,
        progress_bar=False,
        target_accept=0.95,
    )
    fit = bk.from_draws(trace, runs, "pass@1", rng=1)
    drawn = fit["posterior"]["pass_at_k"].sel(k=1, system="system")
    exact = posterior(runs, np.random.default_rng(2), 4000)
    for target, values in zip(("questions", "population"), exact, strict=True):
        own = drawn.sel(target=target)
        assert float(az.rhat(own)) < 1.02
        assert float(own.mean()) == pytest.approx(values.mean(), abs=0.12 * values.std())
        assert float(own.std()) == pytest.approx(values.std(), rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("spread", [0.3, 0.6])
def test_intervals_hold_over_prompts(spread) -> None:
    """60 data sets; of 95% intervals 52 or fewer hold with a probability of .004."""
    held = np.zeros(2)
    for seed in range(60):
        rng = np.random.default_rng([seed, 2026])
        runs, truth = simulated(spread, rng)
        low, high = np.quantile(posterior(runs, rng, 400), [0.025, 0.975], axis=1)
        held += (low <= truth) & (truth <= high)
    assert (held > 52).all()
