"""Metrics from draws of the library's models.

Only definitions are used: the latent value ``g(p)`` of each metric on draws of p, averaged over
the questions; for the population and for new groups, under the law of difficulties or, without
one, on the questions weighted by the Bayesian bootstrap.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Indices, Rng
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.data.grouping import Grouping
from bayesatk.data.study import Study
from bayesatk.metrics.category_credit import reachable
from bayesatk.models.question_draws import (
    Expectation,
    all_trials,
    population_mean,
    probabilities,
    traced_laws,
)
from bayesatk.priors import HyperPrior
from bayesatk.results.difficulty_draws import ATOMS, flat_draws
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.schema import DRAWS, SAMPLER_ATTRIBUTES, posterior_group

_MAX_FLOATS_PER_BLOCK = 4_000_000  # 32 MB
_EFFECT_NODES, _EFFECT_NODES_COVARIATES = (
    65,
    21,
)  # nodes of the effect of a new group: for one kind of question,
# where they are exact to 1e-15, and for many


@dataclass(frozen=True)
class Shares:
    """What each question counts for in means over questions.

    Parameters
    ----------
    group : ndarray of int, shape (questions,)
    within_group : ndarray, shape (questions,)
        In the mean over its group, where they sum to one.
    group_share : ndarray, shape (groups,)
        Of each group in the mean over all questions.
    grouped : bool
        Whether there are groups.
    """

    group: Indices
    within_group: Array
    group_share: Array
    grouped: bool

    @classmethod
    def of(
        cls, size: int, weight: Array | None = None, grouping: Grouping | None = None
    ) -> "Shares":
        """Return the shares of so many questions, with their weights and groups."""
        weights = np.ones(size) if weight is None else weight / weight.max()
        code = np.zeros(size, np.intp) if grouping is None else grouping.code
        total = np.bincount(code, weights, 1 if grouping is None else len(grouping.labels))
        group_share = total / total.sum()
        if grouping is not None and grouping.weight is not None:
            group_share = grouping.shares()
        return cls(code, weights / total[code], group_share, grouping is not None)

    @cached_property
    def matrix(self) -> Array:
        """Shares of questions by group, (questions, groups)."""
        table = np.zeros((len(self.group), len(self.group_share)))
        table[np.arange(len(self.group)), self.group] = self.within_group
        return table

    def drawn_anew(self, tried: Flags) -> Flags:
        """Return the questions that the bootstrap draws: tried ones, or all of a group without."""
        return np.asarray(tried | (np.bincount(self.group, tried)[self.group] == 0.0))

    def new_groups(self, population: Array, rng: Rng) -> Array:
        """Draw groups anew: means (draws, metrics, groups) under weights times their shares."""
        weights = (
            rng.standard_exponential((len(population), len(self.group_share))) * self.group_share
        )
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("dmg,dg->dm", population, weights))


@dataclass
class Drawn:
    """Draws of metrics, over all questions and by group, and of p when kept.

    Parameters
    ----------
    whole : ndarray, shape (draws, metrics, target)
    by_group : ndarray, shape (draws, group, metrics, 2)
    p : ndarray, shape (draws, questions, ...), optional
    """

    whole: Array
    by_group: Array
    p: Array | None


@dataclass
class SystemMetrics:
    """Metrics of one system, from draws of p and from laws of new questions.

    Parameters
    ----------
    metrics : sequence of MetricFunction
    shares : Shares
    p : callable
        Draws of p (draws, members, ...) of some questions, by their places and a generator.
    tried : ndarray of bool, shape (questions,), optional
        Which questions have trials, where that is known.
    laws : QuestionLaws, optional
        With partial pooling.
    alike : callable, optional
        Without `laws`, the expected metric of a new question in each draw, where there is one.
    resampled : bool
        Whether questions like these are these, and new groups these groups, drawn anew.
    """

    metrics: Sequence[Any]
    shares: Shares
    p: Callable[[Indices, Rng], Array]
    tried: Flags | None = None
    laws: QuestionLaws | None = None
    alike: Expectation | None = None
    resampled: bool = False

    def draw(self, keep_p: bool, rng: Rng, anew: Rng | None = None) -> Drawn:
        """Draw metrics of these questions and of the population, and of new groups.

        Parameters
        ----------
        keep_p : bool
            Whether p is returned, too.
        rng : numpy.random.Generator
        anew : numpy.random.Generator, optional
            Of the weights by which questions are drawn anew; default: `rng`. Systems whose draws
            are joint need the same weights: what they share then cancels in their difference.
        """
        anew = rng if anew is None else anew
        size, parts_of_p = len(self.shares.group), []
        total, sums, weights = (np.zeros(0) for _ in range(3))
        tried = np.ones(size, bool) if self.tried is None else self.shares.drawn_anew(self.tried)
        start, width = 0, 1
        while start < size:
            span = np.arange(start, min(start + width, size))
            p = self.p(span, rng)
            parts_of_p += [p] * keep_p
            values = np.stack([metric.latent(p) for metric in self.metrics], axis=1)
            matrix = self.shares.matrix[span]
            if not start:
                total = np.zeros((*values.shape[:2], matrix.shape[1]))
                sums, weights = np.zeros_like(total), np.zeros((len(p), matrix.shape[1]))
                width = max(1, _MAX_FLOATS_PER_BLOCK // len(p))
            total += values @ matrix
            if self.resampled:
                spread = anew.standard_exponential((len(p), len(matrix))) * tried[span]
                sums += np.einsum("dmq,dq,qg->dmg", values, spread, matrix, optimize=True)
                weights += spread @ matrix
            start += len(span)
        new = sums / weights[:, None] if self.resampled else self._population()
        by_group = np.stack([total, new], axis=-1)  # (draws, metrics, group, target)
        whole = np.einsum("dmgt,g->dmt", by_group, self.shares.group_share)
        if self.shares.grouped:
            whole = np.concatenate([whole, self._new_groups(new, rng)[..., None]], axis=-1)
        p_of_all = np.concatenate(parts_of_p, axis=1) if keep_p else None
        return Drawn(whole, by_group.transpose(0, 2, 1, 3), p_of_all)

    def _expected(self, laws: QuestionLaws) -> Array:
        """Return expected metrics of new questions of every group; (draws, metrics, groups)."""
        total = None
        for questions, law in laws.alike():
            values = np.stack([law.expected(metric) for metric in self.metrics], axis=1)
            if total is None:
                total = np.zeros((*values.shape, len(self.shares.group_share)))
            group = self.shares.group[questions[0]]
            total[..., group] += self.shares.within_group[questions].sum() * values
        assert total is not None
        return total

    def _population(self) -> Array:
        if self.laws is not None:
            return self._expected(self.laws)
        assert self.alike is not None
        values = np.stack([self.alike(metric) for metric in self.metrics], axis=1)
        return np.repeat(values[..., None], len(self.shares.group_share), axis=2)

    def _new_groups(self, population: Array, rng: Rng) -> Array:
        """Metrics of questions of new groups, (draws, metrics).

        Their effects are integrated; without a law of groups these are drawn anew, with their
        shares.
        """
        laws = None if self.resampled else self.laws
        if laws is None or laws.group_sd is None or laws.group_effect is None:
            return self.shares.new_groups(population, rng)
        many = laws.slopes is not None
        z, weight = np.polynomial.hermite_e.hermegauss(
            _EFFECT_NODES_COVARIATES if many else _EFFECT_NODES
        )
        total = np.zeros(population.shape[:2])
        for node, share in zip(z, weight / weight.sum(), strict=True):
            effect = np.broadcast_to(node * laws.group_sd[:, None], laws.group_effect.shape)
            new = replace(laws, group_effect=effect)
            total += share * (self._expected(new) @ self.shares.group_share)
        return total


def stored(p: Array, span: Indices, _: Rng) -> Array:
    """Return draws of p of some questions, of those of all."""
    return p[:, span]


@dataclass(frozen=True)
class CountDraws:
    """Draws of the metrics that judge trials, and of the other variables of a result.

    Parameters
    ----------
    values : ndarray, shape (chain, draw, system, metric, target)
    variables : mapping {name: (dims, values)}
    by_group : ndarray, shape (draws, system, group, metric, 2), optional
        Metrics of every group, for these questions and for the population.
    """

    values: Array
    variables: dict[str, tuple[tuple[str, ...], Array]]
    by_group: Array | None = None


def count_draws(
    study: Study,
    posterior: xr.Dataset,
    keep_p: bool,
    rng: Rng,
    difficulties: Sequence[Nodes] | None = None,
) -> CountDraws:
    """Metrics that judge trials, probabilities to reach scores, hyperparameters, and p when kept.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        Draws of the model's variables.
    keep_p : bool
    rng : numpy.random.Generator
    difficulties : sequence of Nodes, optional
        One for each system, of all draws, where questions are right or wrong and differ.
    """
    scale, judged = study.scale, study.grid.judged
    metrics = [scale.judged(metric) for metric in judged.values()] + list(scale.reaching())
    counts = all_trials(study)
    shares = Shares.of(counts.shape[1], study.outcomes.weight, study.grouping)
    drawn, by_system = [], []
    for system, trials in enumerate(counts):
        difficulty = difficulties[system] if difficulties else None
        laws = traced_laws(study, posterior, system, difficulty)
        alike = population_mean(posterior, system) if laws is None else None
        p = traced_p(posterior, system, laws, trials)
        tried = trials.any(axis=-1)
        of_system = SystemMetrics(metrics, shares, p, tried, laws, alike, study.bootstrapped)
        drawn.append(of_system.draw(keep_p, rng))
        by_system.append(drawn_hyperparameters(study, posterior, system, laws))
        if keep_p:
            by_system[-1]["p"] = drawn[-1].p
    whole = by_chain(posterior, [metric_draws.whole for metric_draws in drawn])
    whole, reached = split_reached(whole, len(judged))
    variables = named_draws(study, posterior, by_system) | reached
    by_group = None
    if study.grouping is not None:
        by_group = np.stack([metric_draws.by_group for metric_draws in drawn], axis=1)
        by_group = by_group[..., : len(judged), :]
    return CountDraws(whole, variables, by_group)


def split_reached(
    draws: Array, metrics: int
) -> tuple[Array, dict[str, tuple[tuple[str, ...], Array]]]:
    """Divide draws (chain, draw, system, metric, target): metrics, and scores that are reached."""
    values, reach = np.split(draws, [metrics], axis=3)
    if not reach.size:  # equal scores have none to reach
        return values, {}
    return values, {"reach_probability": ((*DRAWS, "target", "reached"), np.moveaxis(reach, 3, 4))}


def posterior_dataset(
    study: Study, counts: CountDraws, source: xr.Dataset, **attrs: Any
) -> xr.Dataset:
    """Return the group ``posterior``: draws of metrics, and of the rest.

    Coordinates are those of the outcomes: a compiled model keeps those it was compiled with. What
    is known of the sampler is that of the draws of the model, `source`.
    """
    outcomes, variables = study.outcomes, counts.variables
    labels = {name: outcomes.dataset[name].values for name in ("system", "question", "category")}
    recorded = {name: source.attrs[name] for name in SAMPLER_ATTRIBUTES if name in source.attrs}
    group = posterior_group(
        study.grid, counts.values, labels["system"], variables, recorded | attrs
    )
    if study.grouping is not None:
        labels["group"] = np.array(study.grouping.labels)
    if study.design is not None:
        labels["coefficient"] = np.array(study.design.coefficients, object)
    if "shape" in variables:
        labels["function"] = np.arange(variables["shape"][1].shape[-1])
    labels["reached"] = labels["category"][reachable(outcomes.utility)]
    used = {dim for dims, _ in variables.values() for dim in dims}
    return group.assign_coords({name: labels[name] for name in labels if name in used})


def by_chain(posterior: xr.Dataset | xr.DataArray, arrays: Sequence[Array]) -> Array:
    """Put draws of all systems beside each other, and divide them into chains."""
    values = np.stack(arrays, axis=1)
    return values.reshape(posterior.sizes["chain"], posterior.sizes["draw"], *values.shape[1:])


def named_draws(
    study: Study, posterior: xr.Dataset, by_system: Sequence[Mapping[str, Array]]
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """Return draws of the variables of all systems with their dimensions."""
    axes = study.scale.axes
    dims = {
        "mean_p": axes,
        "p": ("question", *axes),
        "coefficients": ("coefficient",),
        "shape": ("function",),
        "group_effect": ("group",),
        "group_mean": ("group", *axes),
    }
    return {
        name: (
            (*DRAWS, *dims.get(name, ())),
            by_chain(posterior, [values[name] for values in by_system]),
        )
        for name in by_system[0]
    }


def traced_p(
    posterior: xr.Dataset, system: int, laws: QuestionLaws | None, trials: Array
) -> Callable[[Indices, Rng], Array]:
    """Return what draws p of some questions: p as sampled, or given their trials."""
    if "p" in posterior:
        return partial(stored, flat_draws(posterior["p"], system))
    assert laws is not None
    return partial(probabilities, laws, trials)


def drawn_hyperparameters(
    study: Study, posterior: xr.Dataset, system: int, laws: QuestionLaws | None
) -> dict[str, Any]:
    """Return hyperparameters of one system, by the names that results have."""
    if laws is None:
        rate_names = () if study.judge_rates is None else study.judge_rates[system].names
        names = ("mean_p", *rate_names)
        return {name: flat_draws(posterior[name], system) for name in names if name in posterior}
    variables = laws.variables()
    absent = set() if study.grouping is not None else {"typical_p"}
    if study.scale.axes:
        absent.add("typical_p")
    elif laws.structured:  # the mean of questions without an offset
        absent.add("mean_p")
    if not isinstance(study.prior, HyperPrior) or "inflated" not in study.prior.family_prior:
        absent |= set(ATOMS)
    return {name: values for name, values in variables.items() if name not in absent}
