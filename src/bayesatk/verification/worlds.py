"""The models that calibration draws from: truth, data, and posterior draws of every quantity."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.closed_form.analysis import sampled_fallback
from bayesatk.closed_form.categories import category_posterior
from bayesatk.closed_form.category_states import CategoryStates, Judged
from bayesatk.closed_form.posterior import Draws
from bayesatk.closed_form.posteriors import system_posterior
from bayesatk.core.mixture import States
from bayesatk.core.priors import (
    INFLATION,
    CategoryPrior,
    CrossedPrior,
    DirichletHyperPrior,
    HyperPrior,
    Pooling,
    Prior,
)
from bayesatk.metrics import Metric
from bayesatk.results import metric_values

Array = NDArray[np.float64]
Metrics = Sequence[Metric]
Quantities = dict[str, Array]
PyMCForm = Literal["marginal", "full", "inflated", "crossed"]
DRAWS = 199


class World(Protocol):
    """A model with a size: what calibration needs of it."""

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw the truth of every quantity from the prior, and data from that."""
        ...

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Independent draws of every quantity from the closed form."""
        ...

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw every quantity by NUTS, thinned until draws are all but independent."""
        ...


@dataclass(frozen=True)
class SuccessWorld:
    """Right and wrong, one system."""

    questions: int
    trials: int
    metrics: Metrics
    pooling: Pooling
    prior: Prior
    form: PyMCForm | None

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
        return found | _by_target(self.metrics, drawn)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS from the model of the form."""
        counts = data, np.full(self.questions, self.trials)
        program = _success_program(self.pooling, self.prior, self.form, self.questions)
        flat = _thinned(program, counts, self.metrics, rng).isel(system=0)
        found = {name: flat[name].values for name in ("mean_p", "icc") if name in flat}
        if "inflation" in flat:
            never, always, _ = flat["inflation"].transpose("component", "sample").values
            found |= {"never": never, "always": always}
        found["p_first"] = flat["p"].isel(question=0).values
        return found | _of_metrics(self.metrics, flat)


@dataclass(frozen=True)
class CategoryWorld:
    """Scored categories, one system."""

    questions: int
    trials: int
    metrics: Metrics
    pooling: Pooling
    prior: CategoryPrior
    form: PyMCForm | None
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
        return found | _by_target(self.metrics, drawn)

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS from the model of the form."""
        program = _category_program(
            self.pooling, self.prior, self.form, self.questions, self.scores
        )
        counts = _category_outcomes(data, self.scores)
        flat = _thinned(program, counts, self.metrics, rng).isel(system=0)
        hyper = {
            name: flat[name].transpose("sample", ...).values
            for name in ("mean_p", "icc")
            if name in flat
        }
        first = flat["p"].isel(question=0).transpose("sample", "category").values
        found = _hyper_of_categories(hyper) | {"score_first": first @ np.array(self.scores)}
        return found | _of_metrics(self.metrics, flat)


@dataclass(frozen=True)
class CrossedWorld:
    """Two systems with correlated logit-normal difficulties; there is no closed form."""

    questions: int
    trials: int
    metrics: Metrics
    prior: CrossedPrior

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, float], Any]:
        """Draw hyperparameters, difficulties and counts."""
        prior = self.prior
        mu = rng.normal(0.0, prior.mu_sd, 2)
        sigma = np.abs(rng.normal(0.0, prior.sigma_sd, 2))
        # LKJ of two systems: (1 + correlation)/2 is Beta(eta, eta).
        rho = 2.0 * rng.beta(prior.eta, prior.eta) - 1.0
        z = rng.standard_normal((2, self.questions))
        z[1] = rho * z[0] + np.sqrt(1.0 - rho**2) * z[1]
        p = expit(mu[:, None] + sigma[:, None] * z)
        truth = {"mu": mu[0], "sigma": sigma[0], "correlation": rho, "p_first": float(p[0, 0])}
        grid, weight = np.polynomial.hermite_e.hermegauss(101)
        for metric in self.metrics:
            latent = metric.latent(p).mean(axis=1)
            points = metric.latent(expit(mu[:, None] + sigma[:, None] * grid))
            population = points @ weight / weight.sum()
            for target, value in (("questions", latent), ("population", population)):
                truth[f"{metric.label} {target}"] = float(value[0])
                truth[f"{metric.label} {target} difference"] = float(value[0] - value[1])
        return truth, rng.binomial(self.trials, p)

    def exact(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Refuse: there is none."""
        raise ValueError("engine must be 'pymc' for form='crossed', which has no closed form.")

    def sampled(self, data: Any, rng: np.random.Generator) -> Quantities:
        """Draw with NUTS."""
        counts = data, np.full(data.shape, self.trials)
        flat = _thinned(_crossed_program(self.prior, self.questions), counts, self.metrics, rng)
        found = {name: flat[name].isel(system=0).values for name in ("mu", "sigma")}
        found["correlation"] = flat["correlation"].isel(system=0, other=1).values
        found["p_first"] = flat["p"].isel(system=0, question=0).values
        pair = [_of_metrics(self.metrics, flat.isel(system=i)) for i in (0, 1)]
        gaps = {f"{name} difference": pair[0][name] - pair[1][name] for name in pair[0]}
        return found | pair[0] | gaps


def _by_target(metrics: Metrics, drawn: Draws) -> Quantities:
    return {
        f"{metric.label} {target}": drawn.metrics[:, i, j]
        for i, metric in enumerate(metrics)
        for j, target in enumerate(("questions", "population"))
    }


def _of_metrics(metrics: Metrics, flat: xr.Dataset) -> Quantities:
    return {
        f"{metric.label} {target}": metric_values(flat, metric).sel(target=target).values
        for metric in metrics
        for target in ("questions", "population")
    }


def _hyper_of_categories(hyper: dict[str, Array]) -> Quantities:
    found = {}
    if "mean_p" in hyper:
        found["mean_p lowest"], found["mean_p highest"] = hyper["mean_p"].T[[0, -1]]
    if "icc" in hyper:
        found["icc"] = hyper["icc"]
    return found


def _thinned(program: Any, data: Any, metrics: Metrics, rng: np.random.Generator) -> xr.Dataset:
    """NUTS draws, thinned until they are all but independent."""
    tree = program.sample(
        data, list(metrics), rng=rng, keep=["p"], draws=5 * (DRAWS + 1) // 2, chains=2,
        sample_kwargs={"cores": 1},
    )  # fmt: skip
    flat = tree["posterior"].to_dataset().stack(sample=("chain", "draw"))
    thin: xr.Dataset = flat.isel(sample=slice(None, 5 * DRAWS, 5))
    return thin


def _category_outcomes(counts: Any, scores: tuple[float, ...]) -> xr.Dataset:
    return xr.Dataset(
        {"count": (("system", "question", "category"), np.asarray(counts)[None])},
        coords={"score": ("category", list(scores))},
    )


# Compiled once in each process.


@cache
def _success_program(pooling: Pooling, prior: Prior, form: PyMCForm | None, questions: int) -> Any:
    from bayesatk.models.compiled import compile_beta_binomial

    counts = np.zeros(questions, int), np.ones(questions, int)
    return compile_beta_binomial(counts, pooling, prior=prior, form=form)


@cache
def _category_program(
    pooling: Pooling,
    prior: CategoryPrior,
    form: PyMCForm | None,
    questions: int,
    scores: tuple[float, ...],
) -> Any:
    from bayesatk.models.compiled import compile_dirichlet_multinomial
    from bayesatk.outcomes import tally

    empty = np.zeros((questions, len(scores)), int)
    empty[:, 0] = 1
    data = tally(_category_outcomes(empty, scores))
    return compile_dirichlet_multinomial(data, pooling, prior=prior, form=form)


@cache
def _crossed_program(prior: CrossedPrior, questions: int) -> Any:
    from bayesatk.models.compiled import compile_crossed

    counts = np.zeros((2, questions), int), np.ones((2, questions), int)
    return compile_crossed(counts, prior=prior)
