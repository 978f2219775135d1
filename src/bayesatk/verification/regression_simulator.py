"""Questions of one system whose success depends on a trend and on a kind of question."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from bayesatk.data.design import Basis, Design
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.metrics.grid import MetricGrid
from bayesatk.models.builders import model_data
from bayesatk.models.regression import regression_model, regression_part
from bayesatk.posterior.program import ProgramModel
from bayesatk.priors import HyperPrior
from bayesatk.results.regression import draw_logits
from bayesatk.verification.simulators import (
    DRAWS,
    Metrics,
    Quantities,
    by_target,
    of_part,
    thinned_draws,
)

_COVARIATES = ("trend", "third")
_SMALLEST = 1e-300  # Beta parameter


@dataclass(frozen=True)
class RegressionSimulator:
    """The same number of trials of every question; every third one is another kind."""

    questions: int
    trials: int
    metrics: Metrics
    prior: HyperPrior

    @property
    def design(self) -> Design:
        """Covariates of the questions."""
        place = np.arange(self.questions)
        columns = {"trend": place.astype(float), "third": (place % 3 == 0).astype(float)}
        return Design("", pd.DataFrame(columns))

    @property
    def basis(self) -> Basis:
        """Covariates in their basis."""
        return self.design.basis

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw coefficients, success probabilities and counts."""
        logits = draw_logits(self.prior, self.basis, (), rng)
        icc = float(rng.beta(*self.prior.icc))
        mean = expit(self.basis.rows @ logits)
        alpha, beta = (np.maximum(own * (1.0 - icc) / icc, _SMALLEST) for own in (mean, 1.0 - mean))
        p = rng.beta(alpha, beta)
        truth = self._named(self.basis.coefficients(logits)[None], np.array([icc]), p[None])
        found = {name: float(value[0]) for name, value in truth.items()}
        for metric in self.metrics:
            found[f"{metric.label} questions"] = float(metric.latent(p).mean())
            found[f"{metric.label} population"] = float(metric.predictive(alpha, beta).mean())
        right = rng.binomial(self.trials, p)
        return found, np.stack([self.trials - right, right], axis=1)

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw from the closed form."""
        posterior = ProgramModel.of(self.prior, data, basis=self.basis).fit(self.metrics)
        drawn = posterior.draw(DRAWS, rng, True)
        assert drawn.p is not None
        hyper = self._named(drawn.hyper["coefficients"], drawn.hyper["icc"], drawn.p)
        return hyper | by_target(self.metrics, drawn.metrics)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS."""
        outcomes = self._outcomes(data)
        posterior = thinned_draws(_program(self), model_data(outcomes, "full"), rng)
        grid = MetricGrid.of(self.metrics)
        part = regression_part(outcomes, grid, posterior, self.design, True, rng)
        extra, metrics = of_part(part, self.metrics)
        return self._named(extra["coefficients"], extra["icc"], extra["p"]) | metrics

    def _outcomes(self, counts: Any) -> Outcomes:
        return tally(
            (counts[:, 1], counts.sum(axis=1)), covariates=self.design.frame.to_dict("list")
        )

    def _named(self, coefficients: Any, icc: Any, p: Any) -> Quantities:
        """Name what is drawn, (draws, ...)."""
        names = ("Intercept", *_COVARIATES)
        found = dict(zip(names, coefficients.T, strict=True))
        return found | {"icc": icc, "p_first": p[:, 0]}


@cache
def _program(simulator: RegressionSimulator) -> Any:
    import nutpie

    one = np.tile([1, 0], (simulator.questions, 1))
    return nutpie.compile_pymc_model(
        regression_model(simulator._outcomes(one), simulator.design, simulator.prior)
    )
