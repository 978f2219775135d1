"""Draws of every system's metrics on some questions, however its result was made."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Indices, Rng
from bayesatk._tools.batches import in_batches
from bayesatk.comparison.joint.contrasts import ExactMean
from bayesatk.judge_error import RATES
from bayesatk.metrics.grid import parse
from bayesatk.posterior.answers import VoteModel, answer_draws
from bayesatk.posterior.models_of import Declared
from bayesatk.posterior.pooled_answers import PooledVotes, VoteDraws
from bayesatk.posterior.posterior import Draws
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values

_SPREADS = 200  # draws of p of every question, for their spread
_COVARIANCES = 100  # of these for the covariance between metrics
_SIZE = 4000  # draws of means
_FLOATS = 30_000_000  # draws of p held at once: 240 MB
_FEWEST = 400


@dataclass(frozen=True)
class Subset:
    """Some systems of a result, on some of its questions."""

    systems: list[int]
    kept: Flags

    @classmethod
    def whole(cls, fit: Result) -> "Subset":
        """All systems, on all questions."""
        systems, questions = fit.trials.shape
        return cls(list(range(systems)), np.ones(questions, bool))

    @classmethod
    def ordered(cls, fit: Result, systems: Iterable[int], kept: Flags) -> "Subset":
        """Systems in an order that their names and columns have no part in."""
        subset = cls(list(systems), kept)
        keys = dict(zip(subset.systems, data_keys(fit, subset), strict=True))
        return cls(sorted(subset.systems, key=keys.__getitem__), kept)

    def share(self, fit: Result) -> Array:
        """Return the share of every question of the part in a mean over them."""
        weight = np.ones(len(self.kept)) if fit.weight is None else fit.weight
        relative = weight[self.kept] / weight[self.kept].max()
        return np.asarray(relative / relative.sum())

    def size(self, fit: Result) -> int:
        """Return how many draws there are of its systems."""
        wanted = fit.size if fit.sampled else _SIZE
        return int(min(wanted, max(_FEWEST, _FLOATS // int(self.kept.sum()))))


def data_keys(fit: Result, part: Subset) -> list[bytes]:
    """Return all that a system's posterior depends on, equal for systems with the same data."""
    arrays: list[Any] = [fit.trials, fit.study.counts, fit.prior_counts]
    held = [array for array in arrays if array is not None]
    weight = b"" if fit.weight is None else fit.weight[part.kept].tobytes()
    keys = [
        weight + b"".join(array[system][part.kept].tobytes() for array in held)
        for system in part.systems
    ]
    if fit.judges is not None:
        judges = [repr(fit.judges[system]).encode() for system in part.systems]
        keys = [key + judge for key, judge in zip(keys, judges, strict=True)]
    if fit.voted and fit.data.answers is not None:
        answers = fit.data.answers.on_questions(part.kept)
        for row, system in enumerate(part.systems):
            columns = np.stack([answers.question, answers.correct, answers.count])
            entries = columns[:, answers.system == system]
            entries = entries[:, np.lexsort(entries[::-1])]
            keys[row] += entries.tobytes() + answers.unanswered[system].tobytes()
    return keys


def alike_systems(fit: Result, part: Subset) -> Indices:
    """Return for every system of a part the place of the first with the same data."""
    keys = data_keys(fit, part)
    return np.array([keys.index(key) for key in keys])


@dataclass(frozen=True)
class QuestionSpread:
    """How the metrics of one system differ between questions, or between groups of questions.

    Parameters
    ----------
    covariance : ndarray, shape (metrics, metrics)
        Of the metrics over the questions; zero where only draws of means are known.
    rate_sd : ndarray, optional
        Draws of the standard deviation over questions of the success probability, or mean score.
    expected : ndarray, shape (questions,)
        Success probability that covariates let expect of each question, which is no difficulty
        that systems share: covariance and sd are of what is left.
    """

    covariance: Array
    rate_sd: Array | None
    expected: Array

    @classmethod
    def of(cls, share: Array, values: Array, rate: Array, expected: Array) -> "QuestionSpread":
        """Take draws of metrics (metrics, draws, questions) and of p (draws, questions)."""
        centred = (values - (values @ share)[..., None]) * np.sqrt(share)
        flat = centred.reshape(len(values), -1)
        covariance = flat @ flat.T / values.shape[1]
        rate_sd = np.sqrt((rate - (rate @ share)[:, None]) ** 2 @ share)
        return cls(covariance, rate_sd, expected)


@dataclass(frozen=True)
class SystemDraws:
    """Draws of one system's metrics.

    Parameters
    ----------
    means : ndarray, shape (targets, draws, metrics)
        Over these questions; over questions like these and new groups, in any order.
    spreads : tuple of QuestionSpread
        Of questions; of questions in groups, within these and between them.
    exact : mapping
        Exact posteriors of means over these questions, by metric, where they are known.
    of_groups : ndarray, shape (draws, groups, metrics, targets), optional
        Means over the questions of each group.
    """

    means: Array
    spreads: tuple[QuestionSpread, ...]
    exact: Mapping[int, ExactMean]
    of_groups: Array | None = None


class SystemSampler:
    """Draws of the systems of a result on some questions, each made once.

    Systems are drawn independently; the metrics of marks or of scores are joint.
    """

    def __init__(self, fit: Result, rng: Rng, progress: bool | None = False) -> None:
        self.progress, self._fit, self._seed = progress, fit, int(rng.integers(2**31))
        self._made: dict[tuple[bytes, int], SystemDraws] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was made: other processes get data, and make their own."""
        return self.__dict__ | {"_made": {}}

    def of(self, part: Subset, client: Any = None) -> list[SystemDraws]:
        """Return draws of every system of a part, as tasks of a cluster if there is one."""
        keys = data_keys(self._fit, part)
        number = [keys[:index].count(key) for index, key in enumerate(keys)]
        ids = list(zip(keys, number, strict=True))
        lacking = [index for index, identity in enumerate(ids) if identity not in self._made]
        run = partial(_drawn, self._fit, part, self._seed, ids)
        for index, draws in in_batches(run, lacking, client, "Comparing", self.progress):
            self._made[ids[index]] = draws
        return [self._made[identity] for identity in ids]


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def _drawn(
    fit: Result, part: Subset, seed: int, ids: Sequence[tuple[bytes, int]], place: int
) -> SystemDraws:
    """Draw the system at a place of a part."""
    key, number = ids[place]
    rng = np.random.default_rng([seed, zlib.crc32(key), number])
    if not fit.sampled:
        return _closed_form(fit, part, place, rng)
    if fit.voted or not {"p", "mean_p"} & set(fit.posterior.data_vars) or fit.judges is not None:
        return _stored_means(fit, part, part.systems[place], rng)
    return _sampled(fit, part, part.systems[place], rng)


def _closed_form(fit: Result, part: Subset, place: int, rng: Rng) -> SystemDraws:
    """Draw from a closed form: exact quantiles, where they are known, in the order of draws."""
    judged = fit.grid.judged
    metrics = [fit.scale.judged(metric) for metric in list(judged.values()) or parse("pass@1")]
    declared = Declared.of_result(fit, part.kept).among(part.systems)
    posterior, size = declared.model(place).fit(metrics), part.size(fit)
    drawn, p = posterior.draw(size, rng, False), posterior.draw(_SPREADS, rng, True).p
    assert p is not None  # they were asked to be kept
    distributions = posterior.distributions() if judged else ()
    expected = np.zeros(int(part.kept.sum())), np.zeros((1, len(metrics)))
    if posterior.expected is not None:
        expected = posterior.expected()
    means = np.empty((len(fit.targets), size, len(fit.grid)))
    values: list[Array] = [np.empty(0)] * len(fit.grid)
    exact: dict[int, ExactMean] = {}
    for metric, cell in enumerate(judged):
        values[cell] = metrics[metric].latent(p[:_COVARIANCES]) - expected[1][:, metric]
        for target, quantities in enumerate(distributions):
            means[target, :, cell] = drawn.metrics[:, metric, target]
            quantity = quantities[metric]
            if quantity is not None:
                mean, sd = posterior.mean[metric, target], posterior.sd[metric, target]
                of_target = ExactMean.of(mean, sd, quantity)
                levels = np.argsort(np.argsort(means[target, :, cell]))
                means[target, :, cell] = of_target.at((levels + 0.5) / size)
                exact |= {cell: of_target} if target == 0 else {}
    rate = fit.scale.rate(p) - expected[0]
    of_groups = None
    if drawn.groups is not None:
        of_groups = np.empty((*drawn.groups.metrics.shape[:2], len(fit.grid), 2))
        of_groups[:, :, list(judged)] = drawn.groups.metrics[:, :, : len(judged)]
    if fit.voted:
        votes = _votes(fit, declared.votes(place, size, rng), part.share(fit), size, rng)
        cells = list(fit.grid.voted)
        means[:, :, cells] = np.moveaxis(votes.drawn.metrics, -1, 0)
        for cell, of_questions in zip(cells, np.moveaxis(votes.values, -1, 0), strict=True):
            values[cell] = of_questions[:_COVARIANCES]
        if of_groups is not None and votes.drawn.groups is not None:
            of_groups[:, :, cells] = votes.drawn.groups.metrics
    return SystemDraws(means, _spreads(fit, part, values, rate, expected[0]), exact, of_groups)


def _spreads(
    fit: Result, part: Subset, values: Sequence[Array], rate: Array, expected: Array
) -> tuple[QuestionSpread, ...]:
    """Return the spread of draws of metrics and of p between questions, and between groups."""
    metrics, share = np.stack([value[:_COVARIANCES] for value in values]), part.share(fit)
    if fit.grouping is None:
        return (QuestionSpread.of(share, metrics, rate, expected),)
    grouping = fit.grouping.among(part.kept)
    of_groups = [grouping.means(drawn) for drawn in (metrics, rate, expected)]
    even = np.full(len(of_groups[2]), 1.0 / len(of_groups[2]))
    within = [grouping.within(drawn) for drawn in (metrics, rate, expected)]
    return QuestionSpread.of(share, *within), QuestionSpread.of(even, *of_groups)


def _bootstrap(values: Array, share: Array, rng: Rng) -> Array:
    """Means over questions under Dirichlet(1, ..., 1) weights (Rubin 1981), times their own."""
    weight = rng.standard_exponential(values.shape) * share
    return np.asarray(np.einsum("dq,dq->d", weight, values) / weight.sum(axis=1))


def _votes(
    fit: Result, model: VoteModel | PooledVotes, share: Array, size: int,
    rng: Rng,
) -> VoteDraws:  # fmt: skip
    """Draws of plurality votes."""
    if isinstance(model, PooledVotes):
        return model.draw(fit.voted, size, rng)
    ks = [metric.k for metric in fit.voted]
    values = answer_draws(model.ballots, ks, model.prior, size, rng)
    by_vote = np.moveaxis(values, -1, 0)
    both = [[of_vote @ share, _bootstrap(of_vote, share, rng)] for of_vote in by_vote]
    return VoteDraws(values, Draws(np.array(both).transpose(2, 0, 1), {}))


def stored_draws(variables: xr.Dataset, fit: Result, dims: tuple[str, ...]) -> Array:
    """Return stored draws of means, whose fourth axis is that of the metrics."""
    columns = [metric_values(variables, metric).transpose(*dims).values for metric in fit.grid]
    return np.stack(columns, axis=3)


def _stored(fit: Result, system: int) -> Array:
    """Return stored draws of one system's means, (target, draws, metrics)."""
    dims = ("target", "chain", "draw")
    values = stored_draws(fit.posterior.isel(system=system), fit, dims)
    return values.reshape(len(values), -1, values.shape[-1])


def _stored_means(fit: Result, part: Subset, system: int, rng: Rng) -> SystemDraws:
    """Draws of means over all questions, all that some sampled results hold."""
    if not part.kept.all():
        raise ValueError(
            "a sampled result without draws of every question's p can be compared only where all "
            "systems tried all questions. Sample it again with keep=['p'], or evaluate it."
        )
    stored, size = _stored(fit, system), part.size(fit)
    order = rng.permutation(stored.shape[1])[:size]
    covariance = np.zeros(2 * stored.shape[2:])
    unknown = QuestionSpread(covariance, None, np.zeros(1))
    return SystemDraws(stored[:, order], (unknown, unknown), {})


def _sampled(fit: Result, part: Subset, system: int, rng: Rng) -> SystemDraws:
    """Draws from sampled p: as stored, or from the conditional given the hyperparameters."""
    # PyMC, which a sampled result has needed anyway, takes seconds to import.
    from bayesatk.models.question_draws import p_of_result

    p, share = p_of_result(fit, system, rng), part.share(fit)
    order = rng.permutation(len(p))[: part.size(fit)]
    p, means = p[order][:, part.kept], _stored(fit, system)[:, order]
    values = [fit.scale.judged(metric).latent(p) for metric in fit.grid]
    if fit.grouping is None:
        means[0] = np.stack([value @ share for value in values], axis=-1)
        if fit.study.bootstrapped:
            means[1] = np.stack([_bootstrap(value, share, rng) for value in values], axis=-1)
    spreads = _spreads(fit, part, values, fit.scale.rate(p), np.zeros(p.shape[1]))
    return SystemDraws(means, spreads, {})


def group_draws(fit: Result, system: int, draws: SystemDraws) -> Array:
    """Return draws of one system's means over the questions of groups, as of `SystemDraws`."""
    if draws.of_groups is not None:
        return draws.of_groups
    dims = ("chain", "draw", "group", "target")
    values = stored_draws(fit.group("group_posterior").isel(system=system), fit, dims)
    return np.asarray(values.reshape(-1, *values.shape[2:]))


def observed_rates(fit: Result, part: Subset) -> Array:
    """Return success rates, or mean scores, (systems, questions); those of marks corrected."""
    counts = fit.counts[part.systems][:, part.kept]
    rates = np.asarray(counts @ fit.scores / counts.sum(axis=2))
    if fit.judges is None:
        return rates
    means = fit.posterior[list(RATES)].isel(system=part.systems).mean(("chain", "draw"))
    s, f = (means[name].values[:, None] for name in RATES)
    return np.asarray((rates - f) / (s - f))
