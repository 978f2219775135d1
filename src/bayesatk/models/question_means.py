"""Metrics over questions, and over questions and groups like these, from draws of p by question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Indices, Rng
from bayesatk.data.grouping import Grouping
from bayesatk.results.question_laws import QuestionLaws

Expectation = Callable[[Any], Array]
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
