"""Scored categories, one system."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from bayesatk.models.builders import Form
from bayesatk.posterior.analysis import sampled_fallback
from bayesatk.posterior.categories import category_posterior
from bayesatk.posterior.category_states import CategoryStates, Judged
from bayesatk.priors import CategoryPrior, DirichletHyperPrior, Pooling
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
class CategoryWorld:
    """Scored categories, one system."""

    questions: int
    trials: int
    metrics: Metrics
    pooling: Pooling
    prior: CategoryPrior
    form: Form | None
    scores: tuple[float, ...]

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw hyperparameters, category probabilities and counts."""
        scores, truth = np.array(self.scores), dict[str, float]()
        vector = self.prior.vector(len(scores))
        population: Array | None = None
        if isinstance(self.prior, DirichletHyperPrior):
            mean, icc = rng.dirichlet(vector), rng.beta(*self.prior.icc)
            population = np.maximum(mean * (1.0 - icc) / icc, 1e-300)
            p = rng.dirichlet(population, self.questions)
            truth |= {"mean_p lowest": mean[0], "mean_p highest": mean[-1], "icc": icc}
        elif self.pooling == "complete":
            mean = rng.dirichlet(vector)
            p = np.tile(mean, (self.questions, 1))
            truth |= {"mean_p lowest": mean[0], "mean_p highest": mean[-1]}
        else:
            p = rng.dirichlet(vector, self.questions)
        truth["score_first"] = float(p[0] @ scores)
        for metric in self.metrics:
            credit = metric.category_credit
            truth[f"{metric.label} questions"] = float(credit.latent(p, scores).mean())
            if population is not None:
                value = credit.predictive(population[None], scores)[0]
                truth[f"{metric.label} population"] = float(value)
            elif self.pooling == "complete":
                truth[f"{metric.label} population"] = float(credit.latent(p[:1], scores)[0])
        return truth, rng.multinomial(self.trials, p)

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw from the closed form."""
        judged = [Judged(one.category_credit, np.array(self.scores)) for one in self.metrics]
        posterior, _ = category_posterior(
            self.pooling, CategoryStates.of(data, None), judged, self.prior, sampled_fallback
        )
        drawn = posterior.draw(DRAWS, rng, True)
        found = _hyper_of_categories(drawn.hyper)
        if drawn.p is not None:
            found["score_first"] = drawn.p[:, 0] @ np.array(self.scores)
        return found | by_target(self.metrics, drawn)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS from the model of the form."""
        program = _category_program(
            self.pooling, self.prior, self.form, self.questions, self.scores
        )
        counts = _category_outcomes(data, self.scores)
        flat = compiled_draws(program, counts, self.metrics, rng).isel(system=0)
        hyper = {
            name: flat[name].transpose("sample", ...).values
            for name in ("mean_p", "icc")
            if name in flat
        }
        first = flat["p"].isel(question=0).transpose("sample", "category").values
        found = _hyper_of_categories(hyper) | {"score_first": first @ np.array(self.scores)}
        return found | of_metrics(self.metrics, flat)


def _hyper_of_categories(hyper: dict[str, Array]) -> Quantities:
    found = {}
    if "mean_p" in hyper:
        found["mean_p lowest"], found["mean_p highest"] = hyper["mean_p"].T[[0, -1]]
    if "icc" in hyper:
        found["icc"] = hyper["icc"]
    return found


def _category_outcomes(counts: Any, scores: tuple[float, ...]) -> xr.Dataset:
    return xr.Dataset(
        {"count": (("system", "question", "category"), np.asarray(counts)[None])},
        coords={"score": ("category", list(scores))},
    )


@cache
def _category_program(
    pooling: Pooling,
    prior: CategoryPrior,
    form: Form | None,
    questions: int,
    scores: tuple[float, ...],
) -> Any:
    from bayesatk.data.outcomes import tally
    from bayesatk.models.compiled import compile_dirichlet_multinomial

    empty = np.zeros((questions, len(scores)), int)
    empty[:, 0] = 1
    data = tally(_category_outcomes(empty, scores))
    return compile_dirichlet_multinomial(data, pooling, prior=prior, form=form)
