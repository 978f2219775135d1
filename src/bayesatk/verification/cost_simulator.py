"""Success and cost of one system, drawn from their priors."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesatk.core.costs.prior import CostPrior, Costs, named
from bayesatk.core.costs.quantities import both_targets
from bayesatk.costs.evaluation import draw_costs, fit_costs
from bayesatk.priors import HyperPrior
from bayesatk.results.difficulty import draw_prior
from bayesatk.verification.simulators import DRAWS, Metrics, Quantities

_QUANTITIES = ("mean_cost", "cost_of_pass", "cost_if_right", "pass_at_k", "cost_to_success")


@dataclass(frozen=True)
class CostSimulator:
    """Questions of one system with the same number of trials, each with a cost."""

    questions: int
    trials: int
    metrics: Metrics
    prior: HyperPrior
    cost_prior: CostPrior

    @property
    def _k(self) -> list[int]:
        return [max(metric.k for metric in self.metrics)]

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw parameters, questions, outcomes and costs."""
        difficulty, _ = draw_prior(self.prior, 1, rng)
        p = difficulty.draw_p(self.questions, rng)[0]
        own = named(self.cost_prior.from_uniform(rng.random((1, 6))))
        level, slope, outcome, spread, *shapes = (float(values[0]) for values in own.values())
        wrong = np.exp(level + slope * (0.5 - p) + spread * rng.standard_normal(self.questions))
        right = rng.random((self.questions, self.trials)) < p[:, None]
        shape = np.where(right, shapes[1], shapes[0])
        cost = wrong[:, None] * np.exp(outcome * right) * rng.gamma(shape, 1.0 / shape)
        parts = ~right, right
        sums = Costs(
            np.stack([part.sum(axis=1) for part in parts], axis=1).astype(float),
            np.stack([(cost * part).sum(axis=1) for part in parts], axis=1),
            np.array([np.log(cost[part]).sum() for part in parts]),
        )
        ones = np.ones((1, self.questions))
        found = both_targets(
            p[None], wrong[None], wrong[None] * np.exp(outcome), ones[0], ones, self._k, ()
        )
        truth = {name: values.item() for name, values in own.items()}
        truth["mean_p"] = float(difficulty.overall[0].item())
        return truth | _of_questions(found, 0), (sums.trials.astype(np.int64), sums)

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw from the posterior without a sampler."""
        counts, costs = data
        model, points = fit_costs(counts, costs, self.prior, self.cost_prior)
        ones = np.ones(self.questions)
        found = draw_costs(
            model, points, DRAWS, 1.0, ones, lambda draws: np.ones((draws, len(ones))),
            self._k, (), rng,
        )  # fmt: skip
        parameters = {name: values for name, values in found.items() if values.ndim == 1}
        return parameters | _of_questions(found, slice(None))

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Refuse: a model with two latent numbers a question is sampled one data set at a time."""
        raise NotImplementedError("costs are calibrated with engine='closed_form'.")


def _of_questions(found: Quantities, draws: Any) -> dict[str, Any]:
    return {f"{name} questions": found[name].reshape(len(found[name]), -1, 2)[draws, 0, 0]
            for name in _QUANTITIES}  # fmt: skip
