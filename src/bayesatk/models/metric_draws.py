"""Metrics from draws of success probabilities, whoever made the draws.

Only definitions are used: the latent value ``g(p)`` of each metric on draws of p, averaged over
the questions; for the population and for new groups, under the law of difficulties or, without
one, on the questions weighted by the Bayesian bootstrap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arguments import one_of
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.columns import WEIGHT
from bayesatk.data.grouping import Grouping
from bayesatk.data.question_columns import unequal, weights
from bayesatk.data.study import Study
from bayesatk.judge_error import RATES
from bayesatk.metrics.grid import MetricGrid, MetricSpec
from bayesatk.models.program import all_trials
from bayesatk.models.question_draws import (
    Expectation,
    population_mean,
    probabilities,
    traced_difficulty,
    traced_laws,
)
from bayesatk.priors import HyperPrior, Population
from bayesatk.results.difficulty import ATOMS, difficulty_draws, flat_draws
from bayesatk.results.question_laws import QuestionLaws
from bayesatk.results.schema import TARGETS, metric_dataset

Array = NDArray[np.float64]
_CHUNK = 4_000_000  # draws of p held at once: 32 MB
_DIMS = ("chain", "draw", "system")
_NEW_GROUPS, _NEW_KINDS = 65, 21  # nodes of the effect of a new group: for one kind of question,
# where they are exact to 1e-15, and for many


def metrics_from_draws(
    tree: xr.DataTree,
    metrics: MetricSpec,
    *,
    population: Population | None = None,
    rng: np.random.Generator | int | None = None,
) -> xr.DataTree:
    """Add metric variables to the posterior of any model that has draws of ``p``.

    Parameters
    ----------
    tree : xarray.DataTree
        Group ``posterior`` with ``p(chain, draw, [system,] question)``. Where present, the group
        ``difficulty`` of a result, or the hyperparameters of a model of this library (``mean_p``
        and ``icc``, those of another family, or ``mu`` and ``sigma``), are a law of questions like
        these. A coordinate ``weight`` of the questions, in ``p`` or in the group
        ``constant_data``, gives their weights.
    metrics : str, Metric, or iterable of them
        As in `bayesatk.evaluate`.
    population : {"law", "bootstrap"}, optional
        As in `bayesatk.evaluate`. Default: the law, where the tree has one.
    rng : Generator, int or None
        For the Bayesian bootstrap only.

    Returns
    -------
    xarray.DataTree
        A copy with the metric variables, dims ``(chain, draw, system, [k], [tau], target)``, in
        ``posterior``.

    See Also
    --------
    bayesatk.sample : samples the library's own models.
    bayesatk.verify : compares with a closed form.

    Examples
    --------
    >>> p = xr.DataArray(np.full((2, 3, 1), 0.5), dims=("chain", "draw", "question"))
    >>> tree = xr.DataTree.from_dict({"/posterior": xr.Dataset({"p": p})})
    >>> found = metrics_from_draws(tree, "pass@2", rng=0)["posterior"]["pass_at_k"]
    >>> round(float(found.mean()), 12)
    0.75
    """
    posterior = tree["posterior"].to_dataset()
    if population is not None:
        one_of("population", population, ("law", "bootstrap"))
    if "group_mean" in posterior:
        raise ValueError(
            "tree must be of questions without groups; it has draws of 'group_mean'. "
            "bayesatk.sample(data, metrics, group=...) works out the metrics of groups."
        )
    stored = "difficulty" in tree.children
    p = _success_probabilities(posterior)
    sizes = (p.sizes["chain"] * p.sizes["draw"], p.sizes["system"], p.sizes["question"])
    flat = p.values.reshape(sizes)
    grid, weight = MetricGrid.of(metrics), _weights(tree, p)
    generator, shares = np.random.default_rng(rng), Shares.of(sizes[2], weight)
    by_system = []
    for system in range(sizes[1]):
        difficulty = (
            difficulty_draws(tree, system) if stored else traced_difficulty(posterior, system)
        )
        law = population_mean(posterior, system, difficulty)
        if law is None and population == "law":
            raise ArgumentError(
                Argument("population"), " must be 'bootstrap' or left out for draws of p without a "
                f"law of difficulty; got 'law', and a posterior of {list(posterior.data_vars)}.",
            )  # fmt: skip
        of_system = SystemMetrics(
            list(grid), shares, stored=flat[:, system], alike=law,
            resampled=population == "bootstrap" or law is None,
        )  # fmt: skip
        by_system.append(of_system.draw(False, generator).whole)
    values = np.stack(by_system, axis=1)
    shape = (p.sizes["chain"], p.sizes["draw"], *values.shape[1:])
    coords = {
        **{name: p[name] for name in _DIMS if name in p.coords},
        "target": list(TARGETS),
    }
    drawn = metric_dataset(grid, values.reshape(shape), _DIMS, ("target",), coords)
    result = tree.copy()
    result["posterior"] = xr.DataTree(posterior.assign(drawn.variables).assign_coords(drawn.coords))
    return result


def _success_probabilities(posterior: xr.Dataset) -> xr.DataArray:
    """Return the draws of p (chain, draw, system, question)."""
    if "p" not in posterior:
        raise ValueError(
            f"tree must have draws of 'p' in its posterior; got {list(posterior.data_vars)}. "
            "Name the success probability of your model 'p'."
        )
    p = posterior["p"]
    if "system" not in p.dims:
        p = p.expand_dims(system=["system"])
    return p.transpose("chain", "draw", "system", "question")


def _weights(tree: xr.DataTree, p: xr.DataArray) -> Array | None:
    """Return the weights of the questions, where there are any."""
    groups = [p, *(tree[name] for name in ("constant_data",) if name in tree.children)]
    for group in groups:
        if WEIGHT in group.coords:
            return unequal(
                weights(group.coords[WEIGHT].values.tolist(), range(p.sizes["question"]))
            )
    return None


@dataclass(frozen=True)
class Shares:
    """What each question counts for in means over questions.

    Parameters
    ----------
    group : ndarray of int, shape (questions,)
    inner : ndarray, shape (questions,)
        In the mean over its group, where they sum to one.
    outer : ndarray, shape (groups,)
        Of each group in the mean over all questions.
    grouped : bool
        Whether there are groups.
    """

    group: NDArray[np.intp]
    inner: Array
    outer: Array
    grouped: bool

    @classmethod
    def of(
        cls, size: int, weight: Array | None = None, grouping: Grouping | None = None
    ) -> "Shares":
        """Return the shares of so many questions, with their weights and groups."""
        weights = np.ones(size) if weight is None else weight / weight.max()
        code = np.zeros(size, np.intp) if grouping is None else grouping.code
        total = np.bincount(code, weights, 1 if grouping is None else len(grouping.labels))
        outer = total / total.sum()
        if grouping is not None and grouping.weight is not None:
            outer = grouping.shares()
        return cls(code, weights / total[code], outer, grouping is not None)

    @cached_property
    def matrix(self) -> Array:
        """Shares of questions by group, (questions, groups)."""
        table = np.zeros((len(self.group), len(self.outer)))
        table[np.arange(len(self.group)), self.group] = self.inner
        return table


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
    counts : ndarray, shape (questions, categories), optional
        Trials, those before at their weight, where they are known.
    laws : QuestionLaws, optional
        With partial pooling.
    stored : ndarray, shape (draws, questions, ...), optional
        p, where it was sampled.
    alike : callable, optional
        Without `laws`, the expected metric of a new question in each draw, where there is one.
    resampled : bool
        Whether questions like these are these, and new groups these groups, drawn anew.
    """

    metrics: Sequence[Any]
    shares: Shares
    counts: Array | None = None
    laws: QuestionLaws | None = None
    stored: Array | None = None
    alike: Expectation | None = None
    resampled: bool = False

    def draw(self, keep_p: bool, rng: np.random.Generator) -> Drawn:
        """Draw metrics of these questions and of the population, and of new groups."""
        size, parts_of_p = len(self.shares.group), []
        total, sums, weights = (np.zeros(0) for _ in range(3))
        tried, start, width = self._tried, 0, 1
        while start < size:
            span = np.arange(start, min(start + width, size))
            p = self._p(span, rng)
            parts_of_p += [p] * keep_p
            values = np.stack([metric.latent(p) for metric in self.metrics], axis=1)
            matrix = self.shares.matrix[span]
            if not start:
                total = np.zeros((*values.shape[:2], matrix.shape[1]))
                sums, weights = np.zeros_like(total), np.zeros((len(p), matrix.shape[1]))
                width = max(1, _CHUNK // len(p))
            total += values @ matrix
            if self.resampled:
                spread = rng.standard_exponential((len(p), len(matrix))) * tried[span]
                sums += np.einsum("dmq,dq,qg->dmg", values, spread, matrix, optimize=True)
                weights += spread @ matrix
            start += len(span)
        new = sums / weights[:, None] if self.resampled else self._population()
        by_group = np.stack([total, new], axis=-1)  # (draws, metrics, group, target)
        whole = np.einsum("dmgt,g->dmt", by_group, self.shares.outer)
        if self.shares.grouped:
            whole = np.concatenate([whole, self._new_groups(new, rng)[..., None]], axis=-1)
        p_of_all = np.concatenate(parts_of_p, axis=1) if keep_p else None
        return Drawn(whole, by_group.transpose(0, 2, 1, 3), p_of_all)

    @property
    def _tried(self) -> NDArray[np.bool_]:
        """Questions with trials, which alone the bootstrap draws; all of a group without any."""
        group = self.shares.group
        if self.counts is None:  # of another model, whose trials are not known
            return np.ones(len(group), bool)
        tried = self.counts.any(axis=-1)
        return np.asarray(tried | (np.bincount(group, tried)[group] == 0.0))

    def _p(self, span: NDArray[np.intp], rng: np.random.Generator) -> Array:
        if self.stored is not None:
            return self.stored[:, span]
        assert self.laws is not None
        assert self.counts is not None
        return probabilities(self.laws, self.counts, span, rng)

    def _expected(self, laws: QuestionLaws) -> Array:
        """Return expected metrics of new questions of every group; (draws, metrics, groups)."""
        total: Array | None = None
        for questions, law in laws.alike():
            values = np.stack([law.expected(metric) for metric in self.metrics], axis=1)
            if total is None:
                total = np.zeros((*values.shape, len(self.shares.outer)))
            group = self.shares.group[questions[0]]
            total[..., group] += self.shares.inner[questions].sum() * values
        assert total is not None
        return total

    def _population(self) -> Array:
        if self.laws is not None:
            return self._expected(self.laws)
        assert self.alike is not None
        values = np.stack([self.alike(metric) for metric in self.metrics], axis=1)
        return np.repeat(values[..., None], len(self.shares.outer), axis=2)

    def _new_groups(self, population: Array, rng: np.random.Generator) -> Array:
        """Metrics of questions of new groups, (draws, metrics).

        Their effects are integrated; without a law of groups these are drawn anew, with their
        shares.
        """
        laws = None if self.resampled else self.laws
        if laws is None or laws.group_sd is None or laws.group_effect is None:
            weights = rng.standard_exponential((len(population), population.shape[2]))
            weights *= self.shares.outer
            weights /= weights.sum(axis=1, keepdims=True)
            return np.asarray(np.einsum("dmg,dg->dm", population, weights))
        many = laws.slopes is not None
        z, weight = np.polynomial.hermite_e.hermegauss(_NEW_KINDS if many else _NEW_GROUPS)
        total = np.zeros(population.shape[:2])
        for node, share in zip(z, weight / weight.sum(), strict=True):
            effect = np.broadcast_to(node * laws.group_sd[:, None], laws.group_effect.shape)
            new = replace(laws, group_effect=effect)
            total += share * (self._expected(new) @ self.shares.outer)
        return total


@dataclass(frozen=True)
class CountDraws:
    """Draws of the metrics that judge trials, and of the other variables of a result.

    Parameters
    ----------
    values : ndarray, shape (chain, draw, system, metric, target)
    variables : mapping {name: (dims, values)}
    by_group : ndarray, shape (draws, system, group, metric, 2), optional
        The same metrics of every group, for these questions and for the population.
    """

    values: Array
    variables: dict[str, tuple[tuple[str, ...], Array]]
    by_group: Array | None


def count_draws(
    study: Study,
    posterior: xr.Dataset,
    keep_p: bool,
    rng: np.random.Generator,
    difficulties: Sequence[Difficulty] | None = None,
) -> CountDraws:
    """Metrics that judge trials, probabilities to reach scores, hyperparameters, and p when kept.

    Parameters
    ----------
    study : Study
    posterior : xarray.Dataset
        Draws of the model's variables.
    keep_p : bool
    rng : numpy.random.Generator
    difficulties : sequence of Difficulty, optional
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
        stored = flat_draws(posterior["p"], system) if "p" in posterior else None
        alike = population_mean(posterior, system, None) if laws is None else None
        of_system = SystemMetrics(metrics, shares, trials, laws, stored, alike, study.bootstrapped)
        drawn.append(of_system.draw(keep_p, rng))
        by_system.append(hyper_variables(study, posterior, system, laws))
        if keep_p:
            by_system[-1]["p"] = drawn[-1].p
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])

    def together(arrays: Sequence[Array]) -> Array:
        values = np.stack(arrays, axis=1)
        return values.reshape(*shape, *values.shape[1:])

    whole = together([metric_draws.whole for metric_draws in drawn])
    whole, reach = np.split(whole, [len(judged)], axis=3)
    dims = {
        "mean_p": scale.axes, "p": ("question", *scale.axes), "coefficients": ("coefficient",),
        "shape": ("function",), "group_effect": ("group",), "group_mean": ("group", *scale.axes),
        "correlation": ("other",),
    }  # fmt: skip
    variables = {
        name: ((*_DIMS, *dims.get(name, ())), together([values[name] for values in by_system]))
        for name in by_system[0]
    }
    if reach.size:  # equal scores have none to reach
        variables["reach_probability"] = ((*_DIMS, "target", "reached"), np.moveaxis(reach, 3, 4))
    by_group = None
    if study.grouping is not None:
        by_group = np.stack([metric_draws.by_group for metric_draws in drawn], axis=1)
        by_group = by_group[..., : len(judged), :]
    return CountDraws(whole, variables, by_group)


def hyper_variables(
    study: Study, posterior: xr.Dataset, system: int, laws: QuestionLaws | None
) -> dict[str, Any]:
    """Return hyperparameters of one system, by the names that results have."""
    if laws is None:
        names = ("mean_p", "mu", "sigma", "correlation", *RATES)
        return {name: flat_draws(posterior[name], system) for name in names if name in posterior}
    variables = laws.variables(scored=False)
    absent = set() if study.grouping is not None else {"typical_p"}
    if study.scale.axes:
        absent.add("typical_p")
    elif laws.structured:  # the mean of questions without an offset
        absent.add("mean_p")
    if not isinstance(study.prior, HyperPrior) or "inflated" not in study.prior.family_prior:
        absent |= set(ATOMS)
    return {name: values for name, values in variables.items() if name not in absent}
