"""Metrics from draws of success probabilities, whoever made the draws.

Only definitions are used: the latent value ``g(p)`` of each metric on draws of p, averaged over
the questions; for the population and for new groups, under the law of difficulties or, without
one, on the questions weighted by the Bayesian bootstrap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesatk.data.columns import WEIGHT
from bayesatk.data.grouping import Grouping
from bayesatk.data.question_columns import unequal, weights
from bayesatk.metrics.grid import MetricGrid, MetricSpec
from bayesatk.models.derived import PopulationMean, population_mean
from bayesatk.models.program import Questions
from bayesatk.models.question_draws import SystemDraws
from bayesatk.models.traces import traced_difficulty
from bayesatk.results.difficulty import difficulty_draws
from bayesatk.results.schema import TARGETS, metric_dataset

Array = NDArray[np.float64]
_CHUNK = 4_000_000  # draws of p held at once: 32 MB
_NEW_GROUPS, _NEW_KINDS = 65, 21  # nodes of the effect of a new group: for one kind of question,
# where they are exact to 1e-15, and for many


def metrics_from_draws(
    tree: xr.DataTree, metrics: MetricSpec, *, rng: np.random.Generator | int | None = None
) -> xr.DataTree:
    """Add metric variables to the posterior of any model that has draws of ``p``.

    Parameters
    ----------
    tree : xarray.DataTree
        Group ``posterior`` with ``p(chain, draw, [system,] question)``. Where present, the group
        ``difficulty`` of a result, or the hyperparameters of a model of this library (``mean_p``
        and ``icc``, those of another family, or ``mu`` and ``sigma``), define the distribution of
        questions like these; otherwise the Bayesian bootstrap over the questions does. A coordinate
        ``weight`` of the questions, in ``p`` or in the group ``constant_data``, gives their
        weights.
    metrics : str, Metric, or iterable of them
        As in `bayesatk.evaluate`.
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
    generator = np.random.default_rng(rng)
    by_system = []
    for system in range(sizes[1]):
        own = flat[:, system]
        difficulty = (
            difficulty_draws(tree, system) if stored else traced_difficulty(posterior, system)
        )
        population = None if weight is not None else population_mean(posterior, system, difficulty)
        asked = SystemMetrics(list(grid), Shares.of(sizes[2], weight), stored=own, alike=population)
        by_system.append(asked.draw(False, generator).whole)
    values = np.stack(by_system, axis=1)
    shape = (p.sizes["chain"], p.sizes["draw"], *values.shape[1:])
    coords = {
        **{name: p[name] for name in ("chain", "draw", "system") if name in p.coords},
        "target": list(TARGETS),
    }
    found = metric_dataset(
        grid, values.reshape(shape), ("chain", "draw", "system"), ("target",), coords
    )
    result = tree.copy()
    result["posterior"] = xr.DataTree(posterior.assign(found.variables).assign_coords(found.coords))
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
    held = [p, *(tree[name] for name in ("constant_data",) if name in tree.children)]
    found = [one.coords[WEIGHT].values for one in held if WEIGHT in one.coords]
    known = weights(found[0].tolist(), range(p.sizes["question"])) if found else None
    return None if known is None else unequal(known)


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
    grouped, weighted : bool
        Whether there are groups, and weights.
    """

    group: NDArray[np.intp]
    inner: Array
    outer: Array
    grouped: bool
    weighted: bool

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
        return cls(code, weights / total[code], outer, grouping is not None, weight is not None)

    @cached_property
    def matrix(self) -> Array:
        """Shares of questions by group, (questions, groups)."""
        table = np.zeros((len(self.group), len(self.outer)))
        table[np.arange(len(self.group)), self.group] = self.inner
        return table


@dataclass
class Drawn:
    """Draws of one system: of all questions (draws, metrics, target), by group, and p when kept."""

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
    questions : Questions, optional
        Of the system, where there is a law.
    law : SystemDraws, optional
        With partial pooling.
    stored : ndarray, shape (draws, questions, ...), optional
        p, where it was sampled.
    alike : callable, optional
        Without a `law`, the expected metric of a new question in each draw, where there is one.
    tried : array_like of bool, shape (questions,)
        Questions with trials, which alone the bootstrap draws from, in groups that have any.
    """

    metrics: Sequence[Any]
    shares: Shares
    questions: Questions | None = None
    law: SystemDraws | None = None
    stored: Array | None = None
    alike: PopulationMean | None = None
    tried: ArrayLike = True

    def draw(self, keep_p: bool, rng: np.random.Generator) -> Drawn:
        """Draw metrics of these questions and of the population, and of new groups."""
        size, kept = len(self.shares.group), []
        observed = self._observed
        total: Array | None = None
        sums, weights = np.zeros(0), np.zeros(0)
        start, width = 0, 1
        while start < size:
            span = slice(start, min(start + width, size))
            p = self._p(span, rng)
            kept += [p] * keep_p
            values = np.stack([metric.latent(p) for metric in self.metrics], axis=1)
            matrix = self.shares.matrix[span]
            if total is None:
                total = np.zeros((*values.shape[:2], matrix.shape[1]))
                sums, weights = np.zeros_like(total), np.zeros((len(p), matrix.shape[1]))
                width = max(1, _CHUNK // len(p))
            total += values @ matrix
            if self._bootstrapped:
                spread = rng.standard_exponential((len(p), len(matrix)))
                some = observed[span]
                sums += np.einsum("dmq,dq,qg->dmg", values, spread, some, optimize=True)
                weights += spread @ some
            start = span.stop
        assert total is not None
        new = sums / weights[:, None] if self._bootstrapped else self._population()
        by_group = np.stack([total, new], axis=-1)  # (draws, metrics, group, target)
        whole = np.einsum("dmgt,g->dmt", by_group, self.shares.outer)
        if self.shares.grouped:
            whole = np.concatenate([whole, self._new_groups(new, rng)[..., None]], axis=-1)
        p_of_all = np.concatenate(kept, axis=1) if keep_p else None
        return Drawn(whole, by_group.transpose(0, 2, 1, 3), p_of_all)

    @property
    def _observed(self) -> Array:
        """Shares by group of the questions that were tried; of all, in groups without any."""
        matrix = self.shares.matrix
        tried = matrix * np.broadcast_to(self.tried, len(matrix))[:, None]
        return np.where(tried.any(axis=0), tried, matrix)

    def _p(self, span: slice, rng: np.random.Generator) -> Array:
        if self.stored is not None:
            return self.stored[:, span]
        assert self.law is not None
        assert self.questions is not None
        return self.law.probabilities(self.questions, span, rng)

    @property
    def _bootstrapped(self) -> bool:
        """Whether questions like these are these, drawn anew: no law says what others are like.

        Weighted questions without structure are drawn with their weights.
        """
        if self.law is None:
            return self.alike is None
        return self.shares.weighted and not self.law.structured

    def _expected(self, effect: Array | None = None) -> Array:
        """Return expected metrics of new questions of every group; (draws, metrics, groups).

        Parameters
        ----------
        effect : ndarray, shape (draws,), optional
            Of new groups in place of these.
        """
        assert self.law is not None
        assert self.questions is not None
        table = np.column_stack([self.questions.group, self.questions.rows])
        kinds, which = np.unique(table, axis=0, return_inverse=True)
        share = np.bincount(which.ravel(), self.shares.inner)
        total: Array | None = None
        for line, weight in zip(kinds, share, strict=True):
            group = int(line[0])
            law = self.law.law_of(group, line[1:], effect)
            values = np.stack([law.expected(metric) for metric in self.metrics], axis=1)
            if total is None:
                total = np.zeros((*values.shape, len(self.shares.outer)))
            total[..., group] += weight * values
        assert total is not None
        return total

    def _population(self) -> Array:
        if self.alike is not None:
            values = np.stack([self.alike(metric) for metric in self.metrics], axis=1)
            return np.repeat(values[..., None], len(self.shares.outer), axis=2)
        return self._expected()

    def _new_groups(self, population: Array, rng: np.random.Generator) -> Array:
        """Metrics of questions of new groups, (draws, metrics).

        Their effects are integrated; without a law of groups these are drawn anew, all alike.
        """
        if self.law is None or self.law.group_sd is None:
            weights = rng.standard_exponential((len(population), population.shape[2]))
            weights *= np.bincount(self.shares.group, minlength=population.shape[2]) > 0
            weights /= weights.sum(axis=1, keepdims=True)
            return np.asarray(np.einsum("dmg,dg->dm", population, weights))
        many = self.law.slopes is not None
        z, weight = np.polynomial.hermite_e.hermegauss(_NEW_KINDS if many else _NEW_GROUPS)
        total = np.zeros(population.shape[:2])
        for node, share in zip(z, weight / weight.sum(), strict=True):
            total += share * (self._expected(node * self.law.group_sd) @ self.shares.outer)
        return total
