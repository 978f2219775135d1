"""Right and wrong, one system: Beta difficulties, or none pooled, or one p for all."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bayesatk.core.states import States
from bayesatk.models.builders import Form
from bayesatk.posterior.posteriors import system_posterior
from bayesatk.priors import INFLATION, HyperPrior, Pooling, Prior
from bayesatk.verification.worlds import (
    DRAWS,
    Array,
    Metrics,
    Quantities,
    by_target,
    compiled_draws,
    of_metrics,
)


@dataclass(frozen=True)
class SuccessWorld:
    """Right and wrong, one system."""

    questions: int
    trials: int
    metrics: Metrics
    pooling: Pooling
    prior: Prior
    form: Form | None

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw hyperparameters, success probabilities and counts."""
        prior, truth = self.prior, dict[str, float]()
        parameters: tuple[Array, Array] | None = None
        certain = np.zeros(3)
        if isinstance(prior, HyperPrior):
            mean, icc = rng.beta(*prior.mean), rng.beta(*prior.icc)
            total = (1.0 - icc) / icc
            parameters = np.array([mean * total]), np.array([(1.0 - mean) * total])
            p = rng.beta(mean * total, (1.0 - mean) * total, self.questions)
            truth |= {"mean_p": mean, "icc": icc}
            if self.form == "inflated":
                certain = rng.dirichlet(INFLATION)
                kind = rng.choice(3, self.questions, p=certain)
                p = np.where(kind == 0, 0.0, np.where(kind == 1, 1.0, p))
                truth |= {"never": certain[0], "always": certain[1]}
        elif self.pooling == "complete":
            truth["mean_p"] = shared = rng.beta(prior.alpha, prior.beta)
            p = np.full(self.questions, shared)
        else:
            p = rng.beta(prior.alpha, prior.beta, self.questions)
        truth["p_first"] = float(p[0])
        for metric in self.metrics:
            truth[f"{metric.label} questions"] = float(metric.latent(p).mean())
            if parameters is not None:
                between = float(metric.predictive(*parameters)[0])
                ends = metric.latent(np.array([0.0, 1.0])) @ certain[:2]
                value = (1.0 - certain[:2].sum()) * between + ends
                truth[f"{metric.label} population"] = float(value)
            elif self.pooling == "complete":
                truth[f"{metric.label} population"] = float(metric.latent(p[:1])[0])
        return truth, rng.binomial(self.trials, p)

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw from the closed form."""
        states = States.of(data, np.full(self.questions, self.trials))
        posterior = system_posterior(self.pooling, states, list(self.metrics), self.prior)
        drawn = posterior.draw(DRAWS, rng, True)
        found = dict(drawn.hyper)
        if drawn.p is not None:
            found["p_first"] = drawn.p[:, 0]
        return found | by_target(self.metrics, drawn)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS from the model of the form."""
        counts = data, np.full(self.questions, self.trials)
        program = _success_program(self.pooling, self.prior, self.form, self.questions)
        flat = compiled_draws(program, counts, self.metrics, rng).isel(system=0)
        found = {name: flat[name].values for name in ("mean_p", "icc") if name in flat}
        if "inflation" in flat:
            never, always, _ = flat["inflation"].transpose("component", "sample").values
            found |= {"never": never, "always": always}
        found["p_first"] = flat["p"].isel(question=0).values
        return found | of_metrics(self.metrics, flat)


@cache
def _success_program(pooling: Pooling, prior: Prior, form: Form | None, questions: int) -> Any:
    from bayesatk.models.compiled import compile_beta_binomial

    counts = np.zeros(questions, int), np.ones(questions, int)
    return compile_beta_binomial(counts, pooling, prior=prior, form=form)
