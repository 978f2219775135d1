"""Draws of what every metric is worth on every question, however a result was made."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk.answers import Answers
from bayesatk.closed_form.analysis import sampled_fallback
from bayesatk.closed_form.answers import answer_draws
from bayesatk.closed_form.categories import category_posterior
from bayesatk.closed_form.category_states import CategoryStates, Judged
from bayesatk.closed_form.posteriors import system_posterior
from bayesatk.core.priors import CategoryPrior
from bayesatk.core.states import States
from bayesatk.metrics import Metric, parse
from bayesatk.models.category_draws import category_p
from bayesatk.models.parts import success_p
from bayesatk.results import metric_grid, metric_values, stored_answers, stored_counts, stored_prior

Array = NDArray[np.float64]


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


def on_categories(fit: xr.DataTree) -> bool:
    """Whether a result is of scored categories."""
    return isinstance(stored_prior(fit), CategoryPrior)


@dataclass(frozen=True)
class Values:
    """Draws of one system's metrics on every question.

    Parameters
    ----------
    of : callable
        ``of(metric)`` returns its latent values (draws, questions); None where only draws of their
        mean are known.
    rate : ndarray, shape (draws, questions), optional
        Success probability, or mean score.
    population : callable, optional
        ``population(metric)`` returns draws of its mean over questions like these, where they are
        known; else the questions are bootstrapped.
    mean : callable, optional
        ``mean(metric)`` returns draws of the mean over these questions, where values are not known.
    """

    of: Callable[[Metric], Array | None]
    rate: Array | None
    population: Callable[[Metric], Array] | None = None
    mean: Callable[[Metric], Array] | None = None


def question_values(
    fit: xr.DataTree, part: Part, size: int, rng: np.random.Generator
) -> Iterator[Values]:
    """Yield draws of metrics on every question, one system after another.

    They are independent between systems, and joint between metrics of marks or of scores.
    """
    voted = [one for one in metric_grid(fit) if one.family.on_answers]
    scores = None
    if on_categories(fit):
        scores = fit["constant_data"].to_dataset()["category_score"].values
    for system in part.systems:
        if fit.attrs["method"] == "nuts" and (voted or not _has_p(fit)):
            yield _stored_means(fit, part, system, size, rng)
            continue
        votes = _votes(fit, part, system, voted, size, rng) if voted else {}
        p, population = _p_draws(fit, part, system, size, rng)
        rate = p if scores is None else p @ scores
        yield Values(partial(_worth, p, scores, votes), rate, population)


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
    own = fit["posterior"].to_dataset().isel(system=system)
    chosen = rng.permutation(own.sizes["chain"] * own.sizes["draw"])[:size]

    def draws(target: str, metric: Metric) -> Array:
        values = metric_values(own.sel(target=target), metric)
        return np.asarray(values.transpose("chain", "draw").values.ravel()[chosen])

    return Values(
        lambda metric: None, None, partial(draws, "population"), partial(draws, "questions")
    )


def _worth(p: Array, scores: Array | None, votes: dict[str, Array], metric: Metric) -> Array:
    if metric.family.on_answers:
        return votes[metric.label]
    if scores is None:
        return metric.latent(p)
    return metric.category_credit.latent(p, scores)


def observed_rates(fit: xr.DataTree, part: Part) -> Array:
    """Return success rates, or mean scores, (systems, questions)."""
    if on_categories(fit):
        counts = fit["observed_data"].to_dataset()["count"].values[part.systems][:, part.kept]
        scores = fit["constant_data"].to_dataset()["category_score"].values
        return np.asarray(counts @ scores / counts.sum(axis=2))
    successes, trials = (each[part.systems][:, part.kept] for each in stored_counts(fit))
    return np.asarray(successes / trials)


def _p_draws(
    fit: xr.DataTree, part: Part, system: int, size: int, rng: np.random.Generator
) -> tuple[Array, Callable[[Metric], Array] | None]:
    """Draws of p, (draws, questions, [categories]), and of metrics on questions like these."""
    metrics = [one for one in metric_grid(fit) if not one.family.on_answers]
    if fit.attrs["method"] == "nuts":
        p = _sampled_p(fit, system, rng)
        chosen = rng.permutation(len(p))[:size]
        own = fit["posterior"].to_dataset().isel(system=system).sel(target="population")
        stored = {
            one: metric_values(own, one).transpose("chain", "draw").values.ravel()[chosen]
            for one in metrics
        }
        pooled = fit.attrs["pooling"] != "none"
        return p[chosen][:, part.kept], stored.__getitem__ if pooled else None
    prior, pooling = stored_prior(fit), fit.attrs["pooling"]
    metrics = metrics or list(parse("pass@1"))
    if on_categories(fit):
        constant = fit["constant_data"].to_dataset()
        scores = constant["category_score"].values
        judged = [Judged(one.category_credit, scores) for one in metrics]
        counts = fit["observed_data"].to_dataset()["count"].values[system, part.kept]
        before = None
        if "prior_count" in constant:
            before = constant["prior_count"].values[system, part.kept]
        states = CategoryStates.of(counts, before)
        posterior = category_posterior(pooling, states, judged, prior, sampled_fallback)[0]
    else:
        c, n = (counts[system, part.kept] for counts in stored_counts(fit))
        posterior = system_posterior(pooling, States.of(c, n), metrics, prior)
    drawn = posterior.draw(size, rng, True)
    if drawn.p is None:
        raise AssertionError("draws of p were asked for")
    found = {one: drawn.metrics[:, i, 1] for i, one in enumerate(metrics)}
    return drawn.p, found.__getitem__ if pooling != "none" else None


def _sampled_p(fit: xr.DataTree, system: int, rng: np.random.Generator) -> Array:
    """All draws of p: as stored, or from the conditional given the sampled hyperparameters."""
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
    return success_p(own, successes, trials, rng)


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
