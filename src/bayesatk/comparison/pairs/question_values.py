"""Draws of the values of every metric for one system after another, however a result was made."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bayesatk._tools.progress import track
from bayesatk.comparison.pairs.system_posteriors import DRAWS_OF_P, Posteriors, Subset
from bayesatk.core.engine.contrasts import LEVELS, Known
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import answer_draws
from bayesatk.posterior.draws import correlated_normals
from bayesatk.posterior.models_of import judged_models
from bayesatk.results.result import Result
from bayesatk.results.schema import RATES, metric_values

Array = NDArray[np.float64]
_COVARIANCE = 100  # draws of p, for the covariance between metrics


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
    groups : Values, optional
        Of questions in groups, whose own covariance and spread are within groups: of means over
        new groups, with covariance and spread of the means of groups.
    expected : ndarray or float
        Success probability that covariates let expect of each question, which is no difficulty
        that systems share: covariance and spread are of what is left.
    """

    questions: Array
    population: Array
    covariance: Array
    spread: Array | None
    groups: "Values | None" = None
    expected: Array | float = 0.0

    @classmethod
    def of(
        cls, questions: Array, population: Array, values: Sequence[Array], rate: Array | None,
        share: Array,
    ) -> "Values":  # fmt: skip
        """Take draws of means; of metrics by question; and of p, both (draws, questions)."""
        few = np.stack([each[:_COVARIANCE] for each in values])
        few = (few - (few @ share)[..., None]) * np.sqrt(share)
        flat = few.reshape(len(few), -1)
        spread = None
        if rate is not None:
            spread = np.sqrt((rate - (rate @ share)[:, None]) ** 2 @ share)
        return cls(questions, population, flat @ flat.T / few.shape[1], spread)


def question_values(
    fit: Result, part: Subset, posteriors: Posteriors, size: int, rng: np.random.Generator
) -> Iterator[Values]:
    """Yield draws of metrics, one system after another.

    They are independent between systems but for the rates of a judge that they share, and joint
    between metrics of marks or of scores.
    """
    if fit.judges is not None and not fit.sampled:
        yield from _of_judged(fit, part, posteriors, size, rng)
        return
    for system in track(part.systems, "Comparing", progress=posteriors.progress):
        if not fit.sampled:
            yield _closed_form(fit, part, posteriors, system, size, rng)
        elif fit.voted or not _has_p(fit) or fit.judges is not None:
            yield _stored_means(fit, part, system, size, rng)
        else:
            yield _sampled_values(fit, part, system, size, rng)


def _closed_form(
    fit: Result,
    part: Subset,
    posteriors: Posteriors,
    system: int,
    size: int,
    rng: np.random.Generator,
) -> Values:
    """Draws with the marginal distributions that are known, and the joint one of a few draws."""
    found, share = posteriors.of(system, part.kept), part.share(fit)
    drawn, p = found.few.metrics, found.few.p
    if p is None:
        raise AssertionError("draws of p were asked for")
    means = np.empty((len(fit.targets), size, len(fit.grid)))
    values: list[Array] = [np.empty(0)] * len(fit.grid)
    if posteriors.marks:
        known = found.known
        if found.draw is not None:
            drawn = found.draw(size, rng, False).metrics
        order = _jointly(drawn[:, :, 0], size, rng)
        for i, cell in enumerate(posteriors.marks):
            means[0, :, cell] = _quantiles_like(known[0][i], order[:, i])
            for target in range(1, len(means)):
                own = drawn[:, i, target]
                means[target, :, cell] = _quantiles_like(known[target][i], own, size)
            values[cell] = posteriors.metrics[i].latent(p[:_COVARIANCE])
            if found.expected is not None:
                values[cell] = values[cell] - found.expected[1][:, i]
    if fit.voted:
        votes = _votes(fit, part, system, size, rng)
        for cell, metric in fit.grid.voted.items():
            values[cell] = own = votes[metric.label]
            means[0, :, cell] = own @ share
            means[1, :, cell] = _bootstrap(own, share, rng)
    rate = fit.scale.rate(p)
    if found.expected is None:
        return _of_targets(fit, part, means, values, rate)
    residual = _of_targets(fit, part, means, values, rate - found.expected[0])
    return _with_expected(fit, part, residual, found.expected[0])


def _with_expected(fit: Result, part: Subset, residual: Values, expected: Array) -> Values:
    """Return values with the rates that covariates expect, within groups and of groups."""
    if fit.grouping is None or residual.groups is None:
        return replace(residual, expected=expected)
    grouping = fit.grouping.among(part.kept)
    of_groups = replace(residual.groups, expected=grouping.means(expected))
    return replace(residual, expected=grouping.within(expected), groups=of_groups)


def _of_targets(
    fit: Result, part: Subset, means: Array, values: list[Array], rate: Array
) -> Values:
    """Take draws of means by target, of metrics by question, and of p."""
    share = part.share(fit)
    if fit.grouping is None:
        return Values.of(means[0], means[1], values, rate, share)
    own = fit.grouping.among(part.kept)
    inside = [own.within(one) for one in values]
    within = Values.of(means[0], means[1], inside, own.within(rate), share)
    of_groups, rates = [own.means(one) for one in values], own.means(rate)
    even = np.full(rates.shape[-1], 1.0 / rates.shape[-1])
    return replace(within, groups=Values.of(means[0], means[2], of_groups, rates, even))


def _of_judged(
    fit: Result, part: Subset, posteriors: Posteriors, size: int, rng: np.random.Generator
) -> Iterator[Values]:
    """Draws of systems that judges marked: each draw of all systems has the same rates."""
    seed = int(rng.integers(2**31))
    models = judged_models(fit, part.systems, part.kept, seed)
    for model in track(models, "Comparing", progress=posteriors.progress):
        posterior = model.fit(posteriors.metrics)
        drawn = posterior.draw(size, rng, False).metrics
        p = posterior.draw(DRAWS_OF_P, rng, True).p
        assert p is not None
        few = [one.latent(p[:_COVARIANCE]) for one in posteriors.metrics]
        rate = fit.scale.rate(p)
        yield _of_targets(fit, part, np.moveaxis(drawn, 2, 0), few, rate)


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


def _bootstrap(values: Array, share: Array, rng: np.random.Generator) -> Array:
    """Means over questions under Dirichlet(1, ..., 1) weights (Rubin 1981), times their own."""
    weight = rng.standard_exponential(values.shape) * share
    return np.asarray(np.einsum("dq,dq->d", weight, values) / weight.sum(axis=1))


def _has_p(fit: Result) -> bool:
    """Whether draws of p are stored, or can be drawn given hyperparameters that are."""
    return bool({"p", "mean_p"} & set(fit.posterior.data_vars))


def _stored_means(
    fit: Result, part: Subset, system: int, size: int, rng: np.random.Generator
) -> Values:
    """Draws of means over all questions, all that some sampled results hold."""
    if not part.kept.all():
        raise ValueError(
            "a sampled result without draws of every question's p can be compared only where all "
            "systems tried all questions. Sample it again with keep=['p'], or evaluate it."
        )
    stored = _stored(fit, system, fit.grid)
    chosen = rng.permutation(stored.shape[1])[:size]
    if fit.judges is not None:  # draws of all systems are joint, and stay so
        chosen = np.arange(stored.shape[1])[:size]
    questions, *new = stored[:, chosen]  # the population, and new groups
    spread = np.zeros(2 * questions.shape[1:])
    of_groups = Values(questions, new[-1], spread, None) if len(new) > 1 else None
    return Values(questions, new[0], spread, None, groups=of_groups)


def _stored(fit: Result, system: int, metrics: Iterable[Metric]) -> Array:
    """Return stored draws of means (target, draws, metrics)."""
    own = fit.posterior.isel(system=system)
    columns = [metric_values(own, one).transpose("target", "chain", "draw") for one in metrics]
    return np.stack([each.values.reshape(len(fit.targets), -1) for each in columns], axis=-1)


def _sampled_values(
    fit: Result, part: Subset, system: int, size: int, rng: np.random.Generator
) -> Values:
    """Draws from sampled p."""
    p, grid, share = _sampled_p(fit, system, rng), fit.grid, part.share(fit)
    chosen = rng.permutation(len(p))[:size]
    p = p[chosen][:, part.kept]
    values = [fit.scale.judged(one).latent(p) for one in grid]
    means = _stored(fit, system, grid)[:, chosen]
    if fit.pooling == "none" or fit.weight is not None:
        means[1] = np.stack([_bootstrap(own, share, rng) for own in values], axis=-1)
    if fit.grouping is None:
        means[0] = np.stack([own @ share for own in values], axis=-1)
    return _of_targets(fit, part, means, values, fit.scale.rate(p))


def observed_rates(fit: Result, part: Subset) -> Array:
    """Return success rates, or mean scores, (systems, questions); those of marks corrected."""
    counts = fit.counts[part.systems][:, part.kept]
    rates = np.asarray(counts @ fit.scores / counts.sum(axis=2))
    if fit.judges is None:
        return rates
    of_draws = fit.posterior[list(RATES)].mean(("chain", "draw"))
    s, f = (of_draws[name].values[part.systems][:, None] for name in RATES)
    return np.asarray((rates - f) / (s - f))


def _sampled_p(fit: Result, system: int, rng: np.random.Generator) -> Array:
    """All draws of p: as stored, or from the conditional given the sampled hyperparameters."""
    # PyMC, which a sampled result has needed anyway, takes seconds to import.
    from bayesatk.models.question_draws import p_of_result

    return p_of_result(fit, system, rng)


def _votes(
    fit: Result, part: Subset, system: int, size: int, rng: np.random.Generator
) -> dict[str, Array]:
    """Draws of plurality votes by metric, (draws, questions)."""
    answers = fit.data.answers
    if answers is None:
        raise AssertionError("a result of votes has answers")
    ballots = answers.on_questions(part.kept).of(system)
    draws = answer_draws(ballots, [one.k for one in fit.voted], fit.answer_prior, size, rng)
    return {one.label: draws[:, :, i] for i, one in enumerate(fit.voted)}
