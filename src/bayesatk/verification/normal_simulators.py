"""Normal difficulties on the logit scale: one system, or two whose difficulties are correlated.

There is no closed form.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit

from bayesatk.models.logit_normal import build_logit_normal
from bayesatk.models.metric_draws import metrics_from_draws
from bayesatk.priors import CrossedPrior
from bayesatk.verification.simulators import (
    Array,
    Metrics,
    Quantities,
    compiled_draws,
    model_draws,
    of_metrics,
    thinned,
)

_GRID, _WEIGHT = np.polynomial.hermite_e.hermegauss(101)


@dataclass(frozen=True)
class _NormalSimulator:
    questions: int
    trials: int
    metrics: Metrics
    prior: CrossedPrior

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Refuse: there is none."""
        raise ValueError("engine must be 'pymc' for logit-normal difficulties: no closed form.")


@dataclass(frozen=True)
class LogitNormalSimulator(_NormalSimulator):
    """One system."""

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw hyperparameters, difficulties and counts."""
        mu, sigma = _levels(self.prior, 1, rng)
        p = expit(mu[:, None] + sigma[:, None] * rng.standard_normal((1, self.questions)))
        truth = {"mu": mu[0], "sigma": sigma[0], "p_first": float(p[0, 0])}
        truth |= {name: value[0] for name, value in _values(self.metrics, p, mu, sigma).items()}
        return truth, rng.binomial(self.trials, p)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS."""
        program = _logit_normal_program(self.prior, self.questions)
        counts = {"successes_data": data, "trials": np.full(data.shape, self.trials)}
        tree = metrics_from_draws(model_draws(program, counts, rng), self.metrics, rng=rng)
        flat = thinned(tree["posterior"].to_dataset()).isel(system=0)
        found = {name: flat[name].values for name in ("mu", "sigma")}
        found["p_first"] = flat["p"].isel(question=0).values
        return found | of_metrics(self.metrics, flat)


@dataclass(frozen=True)
class CrossedSimulator(_NormalSimulator):
    """Two systems."""

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw hyperparameters, difficulties and counts."""
        mu, sigma = _levels(self.prior, 2, rng)
        # LKJ of two systems: (1 + correlation)/2 is Beta(eta, eta).
        rho = 2.0 * rng.beta(self.prior.eta, self.prior.eta) - 1.0
        z = rng.standard_normal((2, self.questions))
        z[1] = rho * z[0] + np.sqrt(1.0 - rho**2) * z[1]
        p = expit(mu[:, None] + sigma[:, None] * z)
        truth = {"mu": mu[0], "sigma": sigma[0], "correlation": rho, "p_first": float(p[0, 0])}
        for name, value in _values(self.metrics, p, mu, sigma).items():
            truth[name] = float(value[0])
            truth[f"{name} difference"] = float(value[0] - value[1])
        return truth, rng.binomial(self.trials, p)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS."""
        counts = data, np.full(data.shape, self.trials)
        program = _crossed_program(self.prior, self.questions)
        flat = compiled_draws(program, counts, self.metrics, rng)
        found = {name: flat[name].isel(system=0).values for name in ("mu", "sigma")}
        found["correlation"] = flat["correlation"].isel(system=0, other=1).values
        found["p_first"] = flat["p"].isel(system=0, question=0).values
        pair = [of_metrics(self.metrics, flat.isel(system=i)) for i in (0, 1)]
        gaps = {f"{name} difference": pair[0][name] - pair[1][name] for name in pair[0]}
        return found | pair[0] | gaps


def _levels(prior: CrossedPrior, systems: int, rng: np.random.Generator) -> tuple[Array, Array]:
    mu = rng.normal(0.0, prior.mu_sd, systems)
    return mu, np.abs(rng.normal(0.0, prior.sigma_sd, systems))


def _values(metrics: Metrics, p: Array, mu: Array, sigma: Array) -> Quantities:
    """Every metric of every system, for these questions and for questions like these."""
    found = {}
    for metric in metrics:
        points = metric.latent(expit(mu[:, None] + sigma[:, None] * _GRID))
        found[f"{metric.label} questions"] = metric.latent(p).mean(axis=1)
        found[f"{metric.label} population"] = points @ _WEIGHT / _WEIGHT.sum()
    return found


@cache
def _logit_normal_program(prior: CrossedPrior, questions: int) -> Any:
    import nutpie

    counts = np.zeros((1, questions), int), np.ones((1, questions), int)
    model = build_logit_normal(counts, mu_sd=prior.mu_sd, sigma_sd=prior.sigma_sd)
    return nutpie.compile_pymc_model(model)


@cache
def _crossed_program(prior: CrossedPrior, questions: int) -> Any:
    from bayesatk.models.compiled import compile_crossed

    counts = np.zeros((2, questions), int), np.ones((2, questions), int)
    return compile_crossed(counts, prior=prior)
