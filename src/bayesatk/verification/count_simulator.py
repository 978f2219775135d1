"""Counts of one system, judged on either scale: hyperparameters or none, or one p for all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from bayesatk.data.outcomes import Outcomes
from bayesatk.data.scales import Scale
from bayesatk.data.tally import tally
from bayesatk.judge_error import JudgeError, Judges
from bayesatk.models.derived import expected_metric
from bayesatk.models.forms import Form
from bayesatk.posterior.models_of import Declared
from bayesatk.priors import DirichletHyperPrior, HyperPrior, Pooling
from bayesatk.results.difficulty import ATOMS, draw_prior, summary_variables
from bayesatk.results.schema import RATES
from bayesatk.verification.simulators import (
    DRAWS,
    Array,
    Metrics,
    Quantities,
    by_target,
    compiled_draws,
    of_metrics,
)

# Hyperparameters, in one draw; probabilities of the questions; a metric's mean over all questions.
_Drawn = tuple[Quantities, Array, Callable[[Any], float] | None]


@dataclass(frozen=True)
class CountSimulator:
    """Questions of one system with the same number of trials."""

    questions: int
    trials: int
    metrics: Metrics
    scale: Scale
    pooling: Pooling
    prior: Any
    form: Form | None
    judge: JudgeError | None = None

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw hyperparameters, probabilities and counts."""
        hyper, p, population = self._drawn(rng)
        truth = {name: float(value.item()) for name, value in _named(hyper).items()}
        truth[f"{self.scale.rated}_first"] = float(self.scale.rate(p[0]))
        for metric in self.metrics:
            judged = self.scale.judged(metric)
            truth[f"{metric.label} questions"] = float(judged.latent(p).mean())
            if population is not None:
                truth[f"{metric.label} population"] = population(judged)
        drawn = self.scale.draw_counts(self.trials, p, rng)
        if self.judge is not None:
            s, f = (rng.beta(*shape) for shape in self.judge.shapes)
            truth |= dict(zip(RATES, (float(s), float(f)), strict=True))
            drawn = rng.binomial(drawn, s) + rng.binomial(self.trials - drawn, f)
        return truth, self.scale.by_category(drawn, self.trials)

    def _drawn(self, rng: np.random.Generator) -> _Drawn:
        """Draw from the prior."""
        if isinstance(self.prior, HyperPrior):
            return _difficulty(self.prior, self.questions, rng)
        alpha = self.prior.vector(len(self.scale.scores))
        if isinstance(self.prior, DirichletHyperPrior):
            return _dirichlet(self.prior, alpha, self.questions, rng)
        if self.pooling == "none":
            return {}, self.scale.draw_p(alpha, (self.questions,), rng), None
        shared = np.asarray(self.scale.draw_p(alpha, (), rng))[None]
        p = np.repeat(shared, self.questions, axis=0)
        return {"mean_p": shared}, p, lambda metric: float(metric.latent(shared)[0])

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw from the closed form."""
        judges = None if self.judge is None else Judges((self.judge,))
        seed = int(rng.integers(2**31)) if judges else 0
        declared = Declared(
            self.scale, self.pooling, self.prior, data[None], judges=judges, seed=seed
        )
        model = declared.model(0)
        drawn = model.fit([self.scale.judged(one) for one in self.metrics]).draw(DRAWS, rng, True)
        found = _named(drawn.hyper)
        if drawn.p is not None:
            found[f"{self.scale.rated}_first"] = self.scale.rate(drawn.p[:, 0])
        return found | by_target(self.metrics, drawn.metrics)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS from the model of the form."""
        program = _program(self.scale, self.pooling, self.prior, self.form, self.questions)
        flat = compiled_draws(program, _outcomes(data, self.scale), self.metrics, rng)
        flat = flat.isel(system=0).transpose("sample", ...)
        names = [name for name in ("mean_p", "icc", *ATOMS) if name in flat]
        found = _named({name: flat[name].values for name in names})
        found[f"{self.scale.rated}_first"] = self.scale.rate(flat["p"].isel(question=0).values)
        return found | of_metrics(self.metrics, flat)


def _difficulty(prior: HyperPrior, questions: int, rng: np.random.Generator) -> _Drawn:
    """Draw a difficulty distribution of some family."""
    difficulty, _ = draw_prior(prior, 1, rng)
    p = difficulty.draw_p(questions, rng)[0]
    hyper = {name: one[:, 0] for name, one in summary_variables([difficulty], prior).items()}
    return hyper, p, lambda metric: float(expected_metric(difficulty, metric).item())


def _dirichlet(
    prior: DirichletHyperPrior, alpha: Array, questions: int, rng: np.random.Generator
) -> _Drawn:
    """Draw a Dirichlet with its mean and correlation."""
    mean, icc = rng.dirichlet(alpha), rng.beta(*prior.icc)
    own = np.maximum(mean * (1.0 - icc) / icc, 1e-300)
    hyper = {"mean_p": mean[None], "icc": np.array([icc])}
    p = rng.dirichlet(own, questions)
    return hyper, p, lambda metric: float(metric.predictive(own[None])[0])


def _named(hyper: Quantities) -> Quantities:
    """Hyperparameters by name; of a vector the first and the last."""
    found = {}
    for name, values in hyper.items():
        if values.ndim == 1:
            found[name] = values
        else:
            found[f"{name} lowest"], found[f"{name} highest"] = values.T[[0, -1]]
    return found


def _outcomes(counts: Any, scale: Scale) -> Outcomes:
    return tally(
        xr.Dataset(
            {"count": (("system", "question", "category"), np.asarray(counts)[None])},
            coords={"score": ("category", list(scale.scores))},
        )
    )


@cache
def _program(scale: Any, pooling: Pooling, prior: Any, form: Form | None, questions: int) -> Any:
    from bayesatk.models.compiled import CompiledModel
    from bayesatk.models.forms import default_form

    single = np.zeros((questions, len(scale.scores)), int)
    single[:, 0] = 1
    data = _outcomes(single, scale)
    return CompiledModel.of(type(scale), data, pooling, prior, form or default_form(pooling))
