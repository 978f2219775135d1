"""What systems are compared on: exact distributions, or joint draws of paired questions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.closed_form.analysis import sampled_fallback
from bayesatk.closed_form.categories import category_posterior
from bayesatk.closed_form.category_states import CategoryStates, Judged
from bayesatk.closed_form.posterior import SystemPosterior
from bayesatk.closed_form.posteriors import system_posterior
from bayesatk.core.contrasts import Difference, Known, rank_probabilities, ratio_quantiles
from bayesatk.core.distribution import Empirical, interval
from bayesatk.core.mixture import States
from bayesatk.core.priors import DirichletHyperPrior, DirichletPrior
from bayesatk.metrics import Metric, MetricGrid, parse
from bayesatk.results import metric_grid, metric_values, stored_counts, stored_prior

Array = NDArray[np.float64]

CONTRASTS = (
    "mean",
    "sd",
    "ci_lower",
    "ci_upper",
    "prob_greater",
    "prob_below_rope",
    "prob_in_rope",
    "prob_above_rope",
    "expected_loss",
    "ratio_median",
    "ratio_lower",
    "ratio_upper",
    "monte_carlo_error",
    "sd_unpaired",
    "band_lower",
    "band_upper",
)
_DRAWS = 4000
_FLOATS = 30_000_000  # draws of p held at once: 240 MB
_FEWEST = 400


@dataclass(frozen=True)
class Settings:
    """Interval and region of practical equivalence."""

    ci_prob: float
    ci_kind: Literal["eti", "hdi"]
    rope: float


def on_categories(fit: xr.DataTree) -> bool:
    """Whether a result is of scored categories."""
    return isinstance(stored_prior(fit), DirichletPrior | DirichletHyperPrior)


def check_comparable(fit: xr.DataTree) -> None:
    """Refuse a result whose systems cannot be held against each other."""
    voted = [one.label for one in metric_grid(fit) if one.family.on_answers]
    if voted:
        raise ValueError(
            f"the result must be of marks or scores to be compared; it has {', '.join(voted)}. "
            "Evaluate the other metrics alone; for votes compare the draws in the posterior, which "
            "are independent between systems on these questions."
        )
    labels = fit["constant_data"].to_dataset()
    trials = labels["trials"].transpose("system", "question").values
    if (trials == 0).any():
        system, question = (int(place[0]) for place in np.nonzero(trials == 0))
        raise ValueError(
            "systems must have tried the same questions to be compared; "
            f"{labels['system'].values[system]!r} has no trial of question "
            f"{labels['question'].values[question]!r}. Evaluate them on the questions they share."
        )
    if len(trials) < 2:
        raise ValueError("fit must hold at least two systems to compare; got one.")


@dataclass(frozen=True)
class Exact:
    """Independent quantities by cell and system; draws where no distribution was asked for."""

    known: dict[int, list[Known]]  # [cell][system]
    mean: Array
    sd: Array
    drawn: "Drawn"

    def ranks(self, cell: int) -> Array:
        """Return the probability of every rank, by system."""
        if cell not in self.known:
            return self.drawn.ranks(cell)
        return rank_probabilities(self.known[cell])

    def contrast(self, cell: int, i: int, j: int, settings: Settings) -> Array:
        """Return the contrasts of system i minus system j."""
        if cell not in self.known:
            return self.drawn.contrast(cell, i, j, settings)
        a, b = self.known[cell][i], self.known[cell][j]
        gap = Difference(a, b)
        below, at_most, above = gap.cdf(np.array([-settings.rope, 0.0, settings.rope]))
        tail = 0.5 * (1.0 - settings.ci_prob)
        sd = float(np.hypot(self.sd[cell, i], self.sd[cell, j]))
        return np.array(
            [
                self.mean[cell, i] - self.mean[cell, j],
                sd,
                *interval(gap, settings.ci_prob, settings.ci_kind),
                1.0 - at_most,
                below,
                above - below,
                1.0 - above,
                gap.expected_loss(),
                *ratio_quantiles(a, b, [0.5, tail, 1.0 - tail]),
                0.0,
                sd,
                np.nan,
                np.nan,
            ]
        )


@dataclass(frozen=True)
class Drawn:
    """Joint draws (draws, cells, systems); `sd` is each system's own."""

    values: Array
    sd_unpaired: Callable[[int, int, int], float]
    effective: float

    def ranks(self, cell: int) -> Array:
        """Return the probability of every rank, by system."""
        order = np.argsort(np.argsort(-self.values[:, cell], axis=1), axis=1)
        size = order.shape[1]
        return np.stack([(order == rank).mean(axis=0) for rank in range(size)], axis=1)

    def contrast(self, cell: int, i: int, j: int, settings: Settings) -> Array:
        """Return the contrasts of system i minus system j."""
        a, b = self.values[:, cell, i], self.values[:, cell, j]
        gap = a - b
        tail = 0.5 * (1.0 - settings.ci_prob)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((a == 0) & (b == 0), 1.0, a / b)
        greater = float((gap > 0).mean() + 0.5 * (gap == 0).mean())
        doubt = np.clip(greater, 0.5 / len(gap), 1.0 - 0.5 / len(gap))
        return np.array(
            [
                gap.mean(),
                gap.std(ddof=1),
                *interval(Empirical(gap), settings.ci_prob, settings.ci_kind),
                greater,
                (gap < -settings.rope).mean(),
                (np.abs(gap) <= settings.rope).mean(),
                (gap > settings.rope).mean(),
                np.maximum(-gap, 0.0).mean(),
                *np.quantile(ratio, [0.5, tail, 1.0 - tail], method="lower"),
                float(np.sqrt(doubt * (1.0 - doubt) / self.effective)),
                self.sd_unpaired(cell, i, j),
                np.nan,
                np.nan,
            ]
        )


def exact_questions(fit: xr.DataTree, grid: MetricGrid, drawn: Drawn) -> Exact:
    """Rebuild the exact posteriors for these questions; `drawn` stands in for what is not asked."""
    prior, asked = stored_prior(fit), tuple(parse(str(fit.attrs["metrics"])))
    posteriors = [
        system_posterior(fit.attrs["pooling"], States.of(c, n), list(grid), prior, asked)
        for c, n in zip(*stored_counts(fit), strict=True)
    ]
    by_cell = zip(*(posterior.distributions()[0] for posterior in posteriors), strict=True)
    known = {
        cell: [Known(each) for each in found if each is not None]
        for cell, found in enumerate(by_cell)
    }
    return Exact(
        {cell: found for cell, found in known.items() if len(found) == len(posteriors)},
        np.stack([posterior.mean[:, 0] for posterior in posteriors], axis=1),
        np.stack([posterior.sd[:, 0] for posterior in posteriors], axis=1),
        drawn,
    )


def sampled_questions(fit: xr.DataTree, grid: MetricGrid) -> Drawn:
    """Draws of the metrics for these questions; systems are independent, so pairs of draws are."""
    posterior = fit["posterior"].to_dataset().sel(target="questions")
    columns = []
    for metric in grid:
        chosen = metric_values(posterior, metric)
        columns.append(chosen.transpose("chain", "draw", "system").values)
    values = np.stack(columns, axis=2)
    flat = values.reshape(-1, *values.shape[2:])
    sd = flat.std(axis=0, ddof=1)
    return Drawn(flat, lambda cell, i, j: float(np.hypot(sd[cell, i], sd[cell, j])), len(flat))


def paired_population(fit: xr.DataTree, grid: MetricGrid, rng: np.random.Generator) -> Drawn:
    """Bayesian bootstrap over questions, the same weights for every system."""
    systems, questions = fit["constant_data"].to_dataset()["trials"].shape
    stored = fit["posterior"].sizes["chain"] * fit["posterior"].sizes["draw"]
    wanted = stored if fit.attrs["method"] == "nuts" else _DRAWS
    size = int(min(wanted, max(_FEWEST, _FLOATS // questions)))
    weight = rng.standard_exponential((size, questions))
    weight /= weight.sum(axis=1, keepdims=True)
    other_weight = weight[rng.permutation(size)]  # of questions redrawn for each system alone
    metrics = list(grid)
    values = np.empty((size, len(metrics), systems))
    alone = np.empty_like(values)
    worth = _worth(fit)
    for system, p in enumerate(_question_draws(fit, size, rng)):
        for cell, metric in enumerate(metrics):
            own = worth(metric, p)
            values[:, cell, system] = np.einsum("dq,dq->d", weight, own)
            alone[:, cell, system] = np.einsum("dq,dq->d", other_weight, own)
    sd = alone.std(axis=0, ddof=1)
    return Drawn(values, lambda cell, i, j: float(np.hypot(sd[cell, i], sd[cell, j])), size)


def _worth(fit: xr.DataTree) -> Callable[[Metric, Array], Array]:
    """Return the latent value of a metric at draws of p."""
    if not on_categories(fit):
        return lambda metric, p: metric.latent(p)
    scores = fit["constant_data"].to_dataset()["category_score"].values
    return lambda metric, p: metric.category_credit.latent(p, scores)


def _question_draws(fit: xr.DataTree, size: int, rng: np.random.Generator) -> Iterator[Array]:
    """Draws of p (draws, questions, [categories]), one system after another."""
    if fit.attrs["method"] == "nuts":
        posterior = fit["posterior"].to_dataset()
        if "p" not in posterior:
            raise ValueError(
                "a sampled result must hold draws of every question's p to be compared; sample it "
                "again with keep=['p']."
            )
        p = posterior["p"].transpose("system", "chain", "draw", "question", ...).values
        for own in p.reshape(len(p), -1, *p.shape[3:]):
            yield own[rng.permutation(len(own))[:size]]
        return
    for fitted in _posteriors(fit):
        drawn = fitted.draw(size, rng, True)
        if drawn.p is None:
            raise AssertionError("draws of p were asked for")
        yield drawn.p


def _posteriors(fit: xr.DataTree) -> Iterator[SystemPosterior]:
    """Posteriors of the systems' first metric, for their draws of p."""
    prior, pooling = stored_prior(fit), fit.attrs["pooling"]
    first: Metric = next(iter(metric_grid(fit)))
    if not on_categories(fit):
        for c, n in zip(*stored_counts(fit), strict=True):
            yield system_posterior(pooling, States.of(c, n), [first], prior)
        return
    constant = fit["constant_data"].to_dataset()
    judged = [Judged(first.category_credit, constant["category_score"].values)]
    counts = fit["observed_data"].to_dataset()["count"].values
    before = constant["prior_count"].values if "prior_count" in constant else [None] * len(counts)
    for own, earlier in zip(counts, before, strict=True):
        states = CategoryStates.of(own, earlier)
        yield category_posterior(pooling, states, judged, prior, sampled_fallback)[0]
