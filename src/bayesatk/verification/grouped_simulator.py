"""Questions of one system in groups of four."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import expit, logit

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.grouping import Grouping
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.metrics.grid import MetricGrid
from bayesatk.models.derived import expected_metric
from bayesatk.models.grouped import build_grouped, grouped_data, grouped_part, new_groups
from bayesatk.posterior.program import ProgramModel
from bayesatk.priors import HyperPrior
from bayesatk.results.schema import GROUPED_TARGETS
from bayesatk.verification.simulators import (
    DRAWS,
    Metrics,
    Quantities,
    by_target,
    of_part,
    thinned_draws,
)

_GROUP = 4  # questions
_HYPER = ("typical_p", "group_sd", "icc")
_SMALLEST = 1e-300  # Beta parameter


@dataclass(frozen=True)
class GroupedSimulator:
    """The same number of trials of every question."""

    questions: int
    trials: int
    metrics: Metrics
    prior: HyperPrior

    @property
    def grouping(self) -> Grouping:
        """Groups of the questions."""
        return Grouping.of(np.arange(self.questions) // _GROUP)

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw hyperparameters, means of groups, success probabilities and counts."""
        grouping = self.grouping
        typical, icc = rng.beta(*self.prior.mean), float(rng.beta(*self.prior.icc))
        sd = abs(rng.normal(0.0, self.prior.group_sd))
        mean = expit(logit(typical) + sd * rng.normal(size=len(grouping.labels)))
        known = Difficulty.of_beta(mean, np.full(len(mean), icc))
        alpha, beta = (np.maximum(own[:, 0], _SMALLEST) for own in (known.alpha, known.beta))
        p = rng.beta(alpha[grouping.code], beta[grouping.code])
        found = dict(zip(_HYPER, (typical, sd, icc), strict=True))
        found |= {"group_mean_first": float(mean[0]), "p_first": float(p[0])}
        drawn = {name: ("draw", [found[name]]) for name in _HYPER}
        future = new_groups(xr.Dataset(drawn).expand_dims("chain"), self.metrics)
        for i, metric in enumerate(self.metrics):
            values = (
                metric.latent(p).mean(), grouping.shares() @ expected_metric(known, metric),
                future[0, i],
            )  # fmt: skip
            for target, value in zip(GROUPED_TARGETS, values, strict=True):
                found[f"{metric.label} {target}"] = float(value)
        right = rng.binomial(self.trials, p)
        return found, np.stack([self.trials - right, right], axis=1)

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw from the closed form."""
        fit = ProgramModel.of(self.prior, data, grouping=self.grouping).fit(self.metrics)
        drawn = fit.draw(DRAWS, rng, True)
        assert drawn.p is not None
        assert drawn.groups is not None
        hyper = {name: drawn.hyper[name] for name in _HYPER}
        hyper |= {"group_mean_first": drawn.groups.mean[:, 0], "p_first": drawn.p[:, 0]}
        return hyper | by_target(self.metrics, drawn.metrics)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS."""
        outcomes = self._outcomes(data)
        values = grouped_data(outcomes, self.grouping)
        posterior, grid = thinned_draws(_program(self), values, rng), MetricGrid.of(self.metrics)
        part, _ = grouped_part(outcomes, grid, posterior, self.grouping, True, rng)
        flat, metrics = of_part(part, self.metrics)
        found = {name: flat[name] for name in _HYPER}
        found |= {"group_mean_first": flat["group_mean"][:, 0], "p_first": flat["p"][:, 0]}
        return found | metrics

    def _outcomes(self, counts: Any) -> Outcomes:
        groups = self.grouping.code.tolist()
        return tally((counts[:, 1], counts.sum(axis=1)), group=groups)


@cache
def _program(simulator: GroupedSimulator) -> Any:
    import nutpie

    one = np.tile([1, 0], (simulator.questions, 1))
    return nutpie.compile_pymc_model(build_grouped(simulator._outcomes(one), prior=simulator.prior))
