"""Draws of what every metric is worth for one system after another, however a result was made."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtri

from bayesatk._tools.progress import track
from bayesatk.core.contrasts import LEVELS, Known
from bayesatk.core.states import States
from bayesatk.data.answers import Answers
from bayesatk.metrics.grid import Metric, parse
from bayesatk.posterior.analysis import sampled_fallback
from bayesatk.posterior.answers import answer_draws
from bayesatk.posterior.categories import category_posterior
from bayesatk.posterior.category_states import CategoryStates, Judged
from bayesatk.posterior.draws import correlated_normals
from bayesatk.posterior.posterior import Draws, SystemPosterior
from bayesatk.posterior.posteriors import system_posterior
from bayesatk.priors import CategoryPrior
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.schema import (
    TARGETS,
    metric_grid,
    metric_values,
    stored_answers,
    stored_counts,
    stored_prior,
)

Array = NDArray[np.float64]
_FEW = 200  # draws of every question's p, for what draws of means need not: spreads, covariances
_COVARIANCE = 100  # of these, for the covariance between metrics


@dataclass(frozen=True)
class Part:
    """Some systems of a result, on some of its questions."""

    systems: list[int]
    kept: NDArray[np.bool_]

    @classmethod
    def whole(cls, fit: xr.DataTree) -> "Part":
        """All systems, on all questions."""
        systems, questions = fit["constant_data"].to_dataset()["trials"].shape
        return cls(list(range(systems)), np.ones(questions, bool))


@dataclass(frozen=True)
class Values:
    """Draws of one system's metrics.

    Parameters
    ----------
    questions : ndarray, shape (draws, metrics)
        Means over these questions.
    population : ndarray, shape (draws, metrics)
        Means over questions like these, in any order.
    covariance : ndarray, shape (metrics, metrics)
        Of the metrics over the questions; zero where only draws of means are known.
    spread : ndarray, optional
        Draws of the standard deviation over questions of the success probability, or mean score.
    """

    questions: Array
    population: Array
    covariance: Array
    spread: Array | None

    @classmethod
    def of(
        cls, questions: Array, population: Array, values: Sequence[Array], rate: Array | None
    ) -> "Values":
        """Take draws of means; of metrics by question; and of p, both (draws, questions)."""
        few = np.stack([each[:_COVARIANCE] for each in values])
        few = few - few.mean(axis=2, keepdims=True)
        flat = few.reshape(len(few), -1)
        spread = None if rate is None else rate.std(axis=1)
        return cls(questions, population, flat @ flat.T / flat.shape[1], spread)


def on_categories(fit: xr.DataTree) -> bool:
    """Whether a result is of scored categories."""
    return isinstance(stored_prior(fit), CategoryPrior)


def data_keys(fit: xr.DataTree, part: Part) -> list[bytes]:
    """Return all that a system's posterior depends on, equal for systems with the same data."""
    observed, constant = (fit[name].to_dataset() for name in ("observed_data", "constant_data"))
    arrays = [constant["trials"].values]
    arrays += [observed[name].values for name in ("successes", "count") if name in observed]
    arrays += [constant["prior_count"].values] if "prior_count" in constant else []
    keys = [b"".join(each[one][part.kept].tobytes() for each in arrays) for one in part.systems]
    if any(metric.family.on_answers for metric in metric_grid(fit)):
        answers = stored_answers(fit).on_questions(part.kept)
        for row, system in enumerate(part.systems):
            own = answers.system == system
            columns = np.stack([answers.question, answers.correct, answers.count])[:, own]
            entries = columns[:, np.lexsort(columns[::-1])]
            keys[row] += entries.tobytes() + answers.unanswered[system].tobytes()
    return keys


class Posteriors:
    """Closed-form posteriors of the systems of a result on some questions, each worked out once."""

    def __init__(
        self, fit: xr.DataTree, rng: np.random.Generator, progress: bool | None = False
    ) -> None:
        self.progress = progress
        self._fit, self._seed = fit, int(rng.integers(2**63))
        self._found: dict[bytes, SystemPosterior] = {}
        self._known: dict[bytes, tuple[list[Known | None], list[Known | None]]] = {}
        self._few: dict[bytes, Draws] = {}
        grid = list(metric_grid(fit))
        self.marks = [cell for cell, metric in enumerate(grid) if not metric.family.on_answers]
        self.metrics = [grid[cell] for cell in self.marks] or list(parse("pass@1"))

    def _key(self, system: int, kept: NDArray[np.bool_]) -> bytes:
        return data_keys(self._fit, Part([system], kept))[0]

    def of(self, system: int, kept: NDArray[np.bool_]) -> SystemPosterior:
        """Return the posterior of the metrics of marks, or of scores."""
        key = self._key(system, kept)
        if key not in self._found:
            self._found[key] = self._posterior(system, kept)
        return self._found[key]

    def known(
        self, system: int, kept: NDArray[np.bool_]
    ) -> tuple[list[Known | None], list[Known | None]]:
        """Return their distributions on these questions and on questions like these."""
        key = self._key(system, kept)
        if key not in self._known:
            questions, population = (
                [None if one is None else Known(one) for one in each]
                for each in self.of(system, kept).distributions()
            )
            self._known[key] = questions, population
        return self._known[key]

    def few(self, system: int, kept: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return some draws of means (draws, metrics, target) and of every p; the same each time.

        Their random numbers are given by the data.
        """
        key = self._key(system, kept)
        if key not in self._few:
            rng = np.random.default_rng([self._seed, zlib.crc32(key)])
            self._few[key] = self.of(system, kept).draw(_FEW, rng, True)
        found = self._few[key]
        if found.p is None:
            raise AssertionError("draws of p were asked for")
        return found.metrics, found.p

    def _posterior(self, system: int, kept: NDArray[np.bool_]) -> SystemPosterior:
        fit, prior, pooling = self._fit, stored_prior(self._fit), self._fit.attrs["pooling"]
        if not on_categories(fit):
            c, n = (counts[system, kept] for counts in stored_counts(fit))
            return system_posterior(pooling, States.of(c, n), self.metrics, prior)
        constant = fit["constant_data"].to_dataset()
        scores = constant["category_score"].values
        judged = [Judged(one.category_credit, scores) for one in self.metrics]
        counts = fit["observed_data"].to_dataset()["count"].values[system, kept]
        before = None
        if "prior_count" in constant:
            before = constant["prior_count"].values[system, kept]
        states = CategoryStates.of(counts, before)
        return category_posterior(pooling, states, judged, prior, sampled_fallback)[0]


def question_values(
    fit: xr.DataTree, part: Part, posteriors: Posteriors, size: int, rng: np.random.Generator
) -> Iterator[Values]:
    """Yield draws of metrics, one system after another.

    They are independent between systems, and joint between metrics of marks or of scores.
    """
    voted = [one for one in metric_grid(fit) if one.family.on_answers]
    for system in track(part.systems, "Comparing", progress=posteriors.progress):
        if fit.attrs["method"] != "nuts":
            yield _closed_form(fit, part, posteriors, system, voted, size, rng)
        elif voted or not _has_p(fit):
            yield _stored_means(fit, part, system, size, rng)
        else:
            yield _sampled_values(fit, part, system, size, rng)


def _closed_form(
    fit: xr.DataTree,
    part: Part,
    posteriors: Posteriors,
    system: int,
    voted: list[Metric],
    size: int,
    rng: np.random.Generator,
) -> Values:
    """Draws with the marginal distributions that are known, and the joint one of a few draws."""
    posterior, grid = posteriors.of(system, part.kept), list(metric_grid(fit))
    drawn, p = posteriors.few(system, part.kept)
    means = np.empty((2, size, len(grid)))
    values: list[Array] = [np.empty(0)] * len(grid)
    if posteriors.marks:
        known = posteriors.known(system, part.kept)
        if None in known[0] or None in known[1]:
            drawn = posterior.draw(size, rng, False).metrics
        order = _jointly(drawn[:, :, 0], size, rng)
        for i, cell in enumerate(posteriors.marks):
            means[0, :, cell] = _quantiles_like(known[0][i], order[:, i])
            means[1, :, cell] = _quantiles_like(known[1][i], drawn[:, i, 1], size)
            values[cell] = _latent(fit, grid[cell], p[:_COVARIANCE])
    if voted:
        votes = _votes(fit, part, system, voted, size, rng)
        for cell, metric in enumerate(grid):
            if metric.family.on_answers:
                values[cell] = own = votes[metric.label]
                means[0, :, cell] = own.mean(axis=1)
                means[1, :, cell] = _bootstrap(own, rng)
    return Values.of(means[0], means[1], values, _rate(fit, p))


def _jointly(drawn: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw as many as asked for, with the rank correlation between columns of fewer draws."""
    if len(drawn) == size:
        return drawn
    score = np.empty_like(drawn)
    levels = ndtri((np.arange(len(drawn)) + 0.5) / len(drawn))
    np.put_along_axis(score, np.argsort(drawn, axis=0), levels[:, None], axis=0)
    return correlated_normals(score.T @ score / len(drawn), size, rng)


def _quantiles_like(known: Known | None, drawn: Array, size: int | None = None) -> Array:
    """Return draws; or known quantiles at even probabilities in their order, or (size) rising."""
    if known is None:
        return drawn
    count = len(drawn) if size is None else size
    rising = np.interp((np.arange(count) + 0.5) / count, LEVELS, known.values)
    if size is not None:
        return rising
    found = np.empty(count)
    found[np.argsort(drawn)] = rising
    return found


def _bootstrap(values: Array, rng: np.random.Generator) -> Array:
    """Means over questions under Dirichlet(1, ..., 1) weights (Rubin 1981)."""
    weight = rng.standard_exponential(values.shape)
    return np.asarray(np.einsum("dq,dq->d", weight, values) / weight.sum(axis=1))


def _latent(fit: xr.DataTree, metric: Metric, p: Array) -> Array:
    """Values of a metric at success, or category, probabilities."""
    if not on_categories(fit):
        return metric.latent(p)
    scores = fit["constant_data"].to_dataset()["category_score"].values
    return metric.category_credit.latent(p, scores)


def _rate(fit: xr.DataTree, p: Array) -> Array:
    """Success probabilities, or mean scores."""
    if not on_categories(fit):
        return p
    return np.asarray(p @ fit["constant_data"].to_dataset()["category_score"].values)


def _has_p(fit: xr.DataTree) -> bool:
    """Whether draws of p are stored, or can be drawn given hyperparameters that are."""
    return bool({"p", "mean_p"} & set(fit["posterior"].data_vars))


def _stored_means(
    fit: xr.DataTree, part: Part, system: int, size: int, rng: np.random.Generator
) -> Values:
    """Draws of means over all questions, all that some sampled results hold."""
    if not part.kept.all():
        raise ValueError(
            "a sampled result without draws of every question's p can be compared only where all "
            "systems tried all questions. Sample it again with keep=['p'], or evaluate it."
        )
    stored = _stored(fit, system, metric_grid(fit))
    chosen = rng.permutation(stored.shape[1])[:size]
    questions, population = stored[:, chosen]
    return Values(questions, population, np.zeros(2 * questions.shape[1:]), None)


def _stored(fit: xr.DataTree, system: int, metrics: Iterable[Metric]) -> Array:
    """Return stored draws of means (target, draws, metrics)."""
    own = fit["posterior"].to_dataset().isel(system=system).sel(target=list(TARGETS))
    columns = [metric_values(own, one).transpose("target", "chain", "draw") for one in metrics]
    return np.stack([each.values.reshape(len(TARGETS), -1) for each in columns], axis=-1)


def _sampled_values(
    fit: xr.DataTree, part: Part, system: int, size: int, rng: np.random.Generator
) -> Values:
    """Draws from sampled p."""
    p, grid = _sampled_p(fit, system, rng), metric_grid(fit)
    chosen = rng.permutation(len(p))[:size]
    p = p[chosen][:, part.kept]
    values = [_latent(fit, one, p) for one in grid]
    population = _stored(fit, system, grid)[1, chosen]
    if fit.attrs["pooling"] == "none":
        population = np.stack([_bootstrap(own, rng) for own in values], axis=-1)
    questions = np.stack([own.mean(axis=1) for own in values], axis=-1)
    return Values.of(questions, population, values, _rate(fit, p))


def observed_rates(fit: xr.DataTree, part: Part) -> Array:
    """Return success rates, or mean scores, (systems, questions)."""
    if on_categories(fit):
        counts = fit["observed_data"].to_dataset()["count"].values[part.systems][:, part.kept]
        scores = fit["constant_data"].to_dataset()["category_score"].values
        return np.asarray(counts @ scores / counts.sum(axis=2))
    successes, trials = (each[part.systems][:, part.kept] for each in stored_counts(fit))
    return np.asarray(successes / trials)


def _sampled_p(fit: xr.DataTree, system: int, rng: np.random.Generator) -> Array:
    """All draws of p: as stored, or from the conditional given the sampled hyperparameters."""
    # PyMC, which a sampled result has needed anyway, takes seconds to import.
    from bayesatk.models.category_draws import category_p
    from bayesatk.models.parts import success_p

    own = fit["posterior"].to_dataset().isel(system=system)
    if "p" in own:
        p = own["p"].transpose("chain", "draw", "question", ...).values
        return np.asarray(p.reshape(-1, *p.shape[2:]))
    if on_categories(fit):
        counts = fit["observed_data"].to_dataset()["count"].values[system].astype(float)
        constant = fit["constant_data"].to_dataset()
        if "prior_count" in constant:
            counts = counts + constant["prior_count"].values[system]
        return category_p(own, counts, rng)
    successes, trials = (counts[system] for counts in stored_counts(fit))
    difficulty = difficulty_draws(fit, system)
    if difficulty is None:  # one probability for all
        mean = own["mean_p"].transpose("chain", "draw").values.reshape(-1, 1)
        return np.repeat(mean, len(trials), axis=1)
    return success_p(difficulty, successes, trials, rng)


def _votes(
    fit: xr.DataTree,
    part: Part,
    system: int,
    voted: list[Metric],
    size: int,
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Draws of plurality votes by metric, (draws, questions)."""
    answers: Answers = stored_answers(fit).on_questions(part.kept)
    ks = [one.k for one in voted]
    draws = answer_draws(answers.of(system), ks, stored_prior(fit, "answer_prior"), size, rng)
    return {one.label: draws[:, :, i] for i, one in enumerate(voted)}
