"""Distinct questions by group, counts and covariates."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayesatk._tools.arrays import Array, Flags, Indices, Rng
from bayesatk.core.pooling.states import States, Terms


@dataclass(frozen=True)
class Cells:
    """Distinct questions ("cells"), in the order of their groups.

    Without groups all questions are one group, whose effect is zero.

    Parameters
    ----------
    states : States
        Distinct counts, of all groups and covariates.
    state, group : ndarray of int, shape (cells,)
        State and group of each cell.
    rows : ndarray, shape (cells, slopes)
        Covariates in their basis, without a constant.
    count : ndarray, shape (cells,)
        Number of questions in each cell.
    share_powers : ndarray, shape (3, cells)
        Sums of the questions' shares in the mean over their group, of squares, and of cubes.
    share : ndarray, shape (groups,)
        Weight of each group in the mean over all questions; zero for a group without questions.
    question_share : ndarray, shape (questions,)
        Weight of each question in the mean over its group.
    which : ndarray of int, shape (questions,)
        Cell of every question.
    grouped : bool
        Whether groups have effects.
    """

    states: States
    state: Indices
    group: Indices
    rows: Array
    count: Array
    share_powers: Array
    share: Array
    question_share: Array
    which: Indices
    grouped: bool

    @classmethod
    def of(
        cls,
        states: States,
        weight: Array | None = None,
        rows: Array | None = None,
        group: Indices | None = None,
        share: Array | None = None,
    ) -> "Cells":
        """Find the distinct questions.

        Parameters
        ----------
        states : States
            With the state of every question.
        weight : ndarray, shape (questions,), optional
            Weights of questions in means; default: equal weights.
        rows : ndarray, shape (questions, slopes), optional
        group : ndarray of int, shape (questions,), optional
        share : ndarray, shape (groups,), optional
            Weights of groups; default: the sums of the weights of their questions.

        Examples
        --------
        >>> cells = Cells.of(States.of([1, 1, 0], [2, 2, 2]), group=np.array([0, 0, 1]))
        >>> cells.count.tolist(), cells.share.round(3).tolist(), cells.which.tolist()
        ([2.0, 1.0], [0.667, 0.333], [0, 0, 1])
        """
        size = len(states.which)
        weights = np.ones(size) if weight is None else weight / weight.max()
        table = np.zeros((size, 0)) if rows is None else rows
        code = np.zeros(size, np.intp) if group is None else group
        keys = np.column_stack([code, states.which, table])
        distinct, cell_of_question, count = np.unique(
            keys, axis=0, return_inverse=True, return_counts=True
        )
        cell_of_question = cell_of_question.ravel()
        number = int(code.max(initial=0)) + 1 if share is None else len(share)
        total = np.bincount(code, weights, number)
        scale = np.where(total > 0.0, total, 1.0)
        shares = total / total.sum() if share is None else share
        by_cell = distinct[:, 0].astype(np.intp)
        powers = np.stack(
            [
                np.bincount(cell_of_question, weights**power) / scale[by_cell] ** power
                for power in (1, 2, 3)
            ]
        )
        return cls(
            states,
            distinct[:, 1].astype(np.intp),
            by_cell,
            np.ascontiguousarray(distinct[:, 2:]),
            count.astype(float),
            powers,
            shares,
            weights / scale[code],
            cell_of_question,
            group is not None,
        )

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.share)

    @cached_property
    def starts(self) -> tuple[Indices, Indices]:
        """First cell of each group that has cells, and these groups."""
        groups, first = np.unique(self.group, return_index=True)
        return first, groups

    def by_group(self, values: Array) -> Array:
        """Sum values (points, cells, ...) over the cells of each group; (points, groups, ...)."""
        first, groups = self.starts
        sums = np.add.reduceat(values, first, axis=1)
        if len(groups) == self.groups:
            return np.asarray(sums)
        by_all_groups = np.zeros((len(values), self.groups, *values.shape[2:]))
        by_all_groups[:, groups] = sums
        return by_all_groups

    @cached_property
    def questions_tried(self) -> Flags:
        """Flags of questions with trials; in a group without any trials, all questions."""
        tried = (self.states.evidence.sum(axis=1) > 0.0)[self.state][self.which]
        group = self.group[self.which]
        return np.asarray(tried | (np.bincount(group, tried, self.groups) == 0)[group])

    @cached_property
    def shares(self) -> Array:
        """Share of every question in the mean over each group; (questions, groups)."""
        inside = self.group[self.which][:, None] == np.arange(self.groups)
        return np.asarray(inside * self.question_share[:, None])

    def means(self, values: Array) -> Array:
        """Average values (draws, questions, ks) over groups' questions; (draws, groups, ks)."""
        return np.asarray(np.einsum("dqk,qg->dgk", values, self.shares, optimize=True))

    def means_anew(self, values: Array, rng: Rng) -> tuple[Array, Array]:
        """Return means over questions resampled within groups, and over resampled groups too.

        The Bayesian bootstrap weighs by exponential variates over their sum (Rubin 1981).
        """
        question_weight = rng.standard_exponential(values.shape[:2]) * self.questions_tried
        total = np.maximum(question_weight @ self.shares, 1e-300)[..., None]
        within_groups = (
            np.einsum("dqk,dq,qg->dgk", values, question_weight, self.shares, optimize=True) / total
        )
        group_weight = rng.standard_exponential(within_groups.shape[:2]) * self.share
        over_groups = np.einsum(
            "dgk,dg->dk", within_groups, group_weight / group_weight.sum(axis=1, keepdims=True)
        )
        return within_groups, np.asarray(over_groups)

    def tried(self, group: int) -> Terms:
        """Return cells and shares of a group's questions that are a sample of its population."""
        inside = self.questions_tried & (self.group[self.which] == group)
        keys = np.stack([self.question_share, self.which], axis=1)[inside]
        distinct, count = np.unique(keys, axis=0, return_counts=True)
        return Terms(distinct[:, 1].astype(np.intp), distinct[:, 0], count.astype(float))

    def without(self, cell: int) -> "Cells":
        """Return cells with one question fewer in one of them, for likelihoods only."""
        count = self.count - (np.arange(len(self.count)) == cell)
        return replace(self, count=count)
