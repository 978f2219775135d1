"""Right and wrong, one system: difficulty families, or none pooled, or one p for all."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bayesatk.core.states import States
from bayesatk.models.builders import Form
from bayesatk.models.derived import expected_metric
from bayesatk.posterior.posteriors import system_posterior
from bayesatk.priors import HyperPrior, Pooling, Prior
from bayesatk.results.difficulty import ATOMS, draw_prior, summary_variables
from bayesatk.verification.worlds import (
    DRAWS,
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
        difficulty = None
        if isinstance(prior, HyperPrior):
            difficulty, _ = draw_prior(prior, 1, rng)
            p = difficulty.draw_p(self.questions, rng)[0]
            found = summary_variables([difficulty], prior)
            truth |= {name: float(value.item()) for name, value in found.items()}
        elif self.pooling == "complete":
            truth["mean_p"] = shared = rng.beta(prior.alpha, prior.beta)
            p = np.full(self.questions, shared)
        else:
            p = rng.beta(prior.alpha, prior.beta, self.questions)
        truth["p_first"] = float(p[0])
        for metric in self.metrics:
            truth[f"{metric.label} questions"] = float(metric.latent(p).mean())
            if difficulty is not None:
                value = expected_metric(difficulty, metric).item()
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
        names = ("mean_p", "icc", *ATOMS)
        found = {name: flat[name].values for name in names if name in flat}
        found["p_first"] = flat["p"].isel(question=0).values
        return found | of_metrics(self.metrics, flat)


@cache
def _success_program(pooling: Pooling, prior: Prior, form: Form | None, questions: int) -> Any:
    from bayesatk.models.compiled import compile_beta_binomial

    counts = np.zeros(questions, int), np.ones(questions, int)
    return compile_beta_binomial(counts, pooling, prior=prior, form=form)
