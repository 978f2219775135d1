"""One difficulty per question, shared by all systems: counts, likelihood, gradient, curvature.

Given the difficulty ``z`` of a question, standard normal over questions, its success probability
under system ``s`` is Beta with mean ``m = expit(mu_s + a_s z)`` and ``alpha + beta = 1 / r_s``:
the mean is the two-parameter logistic model of item response theory, and ``r_s`` lets a system find
a question harder or easier than the others do. With single trials r has no influence, and this is
the model of Bock and Aitkin (1981). The difficulty of every question is integrated by the trapezoid
rule, on nodes that all questions share: a table of the probabilities of the distinct counts of
every system at every node (`bayesatk.core.one_factor.chances`), times a sparse matrix that says
which question has which counts.

Parameters are arrays (..., 3, systems): mu, log a, log r. Where judges that err marked the trials,
a column for each judge follows those of systems: the scores of its two rates, and one that has no
influence on anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bayesatk.core.one_factor.chances import Marking, log_chances
from bayesatk.metrics.credit import Array

Ints = NDArray[np.int64]
_STEP = 1e-3  # of numerical derivatives, in logits: their error is below 1e-6 of the values


@dataclass(frozen=True)
class Counts:
    """Counts of systems on questions, each distinct row of them once.

    Parameters
    ----------
    column : ndarray of int, shape (rows, systems)
        Place of a cell's counts among the distinct ones; -1 where there are no trials.
    repeats : ndarray, shape (rows,)
        Questions with these counts.
    which : ndarray of int, shape (questions,)
        Row of every question.
    system, successes, trials : ndarray of int, shape (columns,)
        Of the distinct counts.
    systems : int
    marking : Marking, optional
        Who marked the trials, where judges err: successes are then marks.
    """

    column: Ints
    repeats: Array
    which: Ints
    system: Ints
    successes: Ints
    trials: Ints
    systems: int
    marking: Marking | None = None

    @classmethod
    def of(cls, successes: Ints, trials: Ints, marking: Marking | None = None) -> "Counts":
        """Take counts (systems, questions); cells without trials say nothing.

        Examples
        --------
        >>> counts = Counts.of(np.array([[1, 1, 0], [2, 2, 0]]), np.array([[1, 1, 1], [2, 2, 0]]))
        >>> counts.column.tolist(), counts.repeats.tolist(), counts.which.tolist()
        ([[0, -1], [1, 2]], [1.0, 2.0], [1, 1, 0])
        """
        size = len(trials)
        system = np.broadcast_to(np.arange(size)[:, None], trials.shape)
        cells = np.stack([system, successes, trials], axis=-1)[trials > 0]
        distinct, distinct_index = np.unique(cells, axis=0, return_inverse=True)
        column = np.full(trials.shape, -1)
        column[trials > 0] = distinct_index.ravel()
        rows, row, repeats = np.unique(
            column.T, axis=0, return_inverse=True, return_counts=True
        )  # fmt: skip
        system, right, tried = distinct.T
        return cls(rows, repeats.astype(float), row.ravel(), system, right, tried, size, marking)

    @property
    def judges(self) -> int:
        """How many judges that err marked the trials."""
        return 0 if self.marking is None else self.marking.judges

    @property
    def width(self) -> int:
        """Rows of the tables that are worked out at a point and node."""
        counts = len(self.system)
        if self.marking is not None:  # all numbers of right trials
            pairs = np.unique(np.stack([self.system, self.trials]), axis=1)
            counts = max(counts, int((pairs[1] + 1).sum()))
        return max(counts, len(self.repeats))

    @cached_property
    def incidence(self) -> csr_array:
        """Matrix (rows, columns) of ones where a row has the counts of a column."""
        tried = self.column >= 0
        ends = np.concatenate([[0], np.cumsum(tried.sum(axis=1))])
        shape = len(self.column), len(self.system)
        return csr_array((np.ones(ends[-1]), self.column[tried], ends), shape)


@dataclass(frozen=True)
class Likelihood:
    """Probability of all counts given the parameters of systems, difficulties integrated.

    Parameters
    ----------
    counts : Counts
    z : ndarray, shape (nodes,)
    """

    counts: Counts
    z: Array

    @classmethod
    def on(cls, counts: Counts, step: float) -> "Likelihood":
        """Nodes at equal steps."""
        reach = 6.0  # sds of z: 2e-9 of the questions are beyond
        half = int(np.ceil(reach / step))
        return cls(counts, np.linspace(-reach, reach, 2 * half + 1))

    @cached_property
    def log_weight(self) -> Array:
        """Log prior probabilities of nodes."""
        logs = -0.5 * self.z**2
        return np.asarray(logs - np.log(np.exp(logs).sum()))

    def table(self, theta: Array) -> Array:
        """Log probability of distinct counts, (columns, points, nodes)."""
        counts = self.counts
        cells = counts.system, counts.successes, counts.trials
        if counts.marking is None:
            return log_chances(theta, self.z, *cells)
        return counts.marking.log_marks(theta, self.z, *cells)

    @cached_property
    def _blocks(self) -> list[tuple[slice, csr_array]]:
        """Rows of counts in blocks that stay in the cache, with their parts of the incidence."""
        size = max(1, 100_000 // len(self.z))
        blocks = [slice(i, i + size) for i in range(0, len(self.counts.repeats), size)]
        return [(rows, self.counts.incidence[rows]) for rows in blocks]

    def by_block(self, table: Array) -> Iterator[tuple[slice, csr_array, Array, Array]]:
        """Yield rows, their incidence, log probabilities, and weights of nodes given the counts.

        Of a table (columns, points, nodes) log probabilities are (rows, points), and weights
        (rows, points, nodes).
        """
        columns, points, nodes = table.shape
        for rows, incidence in self._blocks:
            logs = (incidence @ table.reshape(columns, -1)).reshape(-1, points, nodes)
            logs += self.log_weight
            top = logs.max(axis=2)
            weight = np.exp(np.subtract(logs, top[:, :, None], out=logs), out=logs)
            total = weight.sum(axis=2)
            weight /= total[:, :, None]
            yield rows, incidence, top + np.log(total), weight

    def log_likelihood(self, theta: Array) -> Array:
        """Log probability of all trials in their order, (points,); theta (points, 3, systems)."""
        log_likelihood = np.zeros(len(theta))
        step = max(1, 1_000_000 // (self.counts.width * len(self.z)))  # arrays of 8 MB
        for start in range(0, len(theta), step):
            block = slice(start, start + step)
            for rows, _, logs, _ in self.by_block(self.table(theta[block])):
                log_likelihood[block] += self.counts.repeats[rows] @ logs
        return log_likelihood

    def difficulties(self, theta: Array) -> Array:
        """Posterior probabilities of nodes; theta (3, systems) -> (rows, nodes)."""
        blocks = self.by_block(self.table(theta[None]))
        return np.concatenate([weight[:, 0] for *_, weight in blocks])

    def draw_difficulties(self, theta: Array, rng: np.random.Generator) -> Array:
        """Difficulties of all questions given parameters (3, systems) and counts: nodes."""
        cumulative = np.cumsum(self.difficulties(theta), axis=1)
        u = rng.random(len(self.counts.which)) * cumulative[self.counts.which, -1]
        return np.asarray(self.z[(cumulative[self.counts.which] < u[:, None]).sum(axis=1)])

    def gradient(self, theta: Array) -> tuple[float, Array]:
        """Log likelihood, and its gradient in the shape of the parameters."""
        table, first = self._first(theta)
        total, expected = 0.0, np.zeros_like(table)
        for rows, incidence, logs, weight in self.by_block(table[:, None]):
            repeats = self.counts.repeats[rows]
            total += float(repeats @ logs[:, 0])
            expected += incidence.T @ (weight[:, 0] * repeats[:, None])
        by_column = np.einsum("uk,iuk->iu", expected, first)
        return total, self._gathered(self._by_system(by_column).ravel()).reshape(theta.shape)

    def _first(self, theta: Array) -> tuple[Array, Array]:
        """Log probabilities (columns, nodes), and their derivatives (kinds, columns, nodes).

        Kinds are the parameters of a column's system: mu, log a, log r, and its judge's scores.
        """
        unit = np.eye(self._ways)
        steps = _STEP * np.concatenate([0.0 * unit[:1], unit, -unit])
        tables = np.moveaxis(self.table(theta + self._moves(steps)), 1, 0)
        ahead, behind = np.split(tables[1:], 2)
        return tables[0], self._by_kind((ahead - behind) / (2.0 * _STEP), theta)

    def _by_kind(self, derivatives: Array, theta: Array) -> Array:
        """Insert those by log a: it moves the logit as mu does, by a z times as much."""
        by_a = np.exp(theta[1, self.counts.system])[:, None] * self.z
        return np.insert(derivatives, 1, derivatives[0] * by_a, axis=0)

    @property
    def _ways(self) -> int:
        """Of parameters that tables are differentiated by: mu and log r, and scores of judges."""
        return 2 if self.counts.marking is None else 4

    def _moves(self, steps: Array) -> Array:
        """Return moves of parameters (points, 3, columns) by steps (points, ways)."""
        systems = self.counts.systems
        moves = np.zeros((len(steps), 3, systems + self.counts.judges))
        moves[:, [0, 2], :systems] = steps[:, :2, None]
        if self.counts.marking is not None:
            moves[:, :2, systems:] = steps[:, 2:, None]
        return moves

    def _gathered(self, by_system: Array) -> Array:
        """Turn derivatives by each system's own parameters into those by shared ones."""
        marking = self.counts.marking
        return by_system if marking is None else by_system @ marking.gather

    def _by_system(self, columns: Array) -> Array:
        system, size = self.counts.system, self.counts.systems
        return np.stack([np.bincount(system, derivative, size) for derivative in columns])

    def curvature(self, theta: Array) -> Array:
        """Minus the second derivatives of the log likelihood, (parameters, parameters).

        By the formula of Louis (1982): the expected curvature given difficulties, less the
        variance of the gradient over them.
        """
        size = self.counts.systems
        table, first = self._first(theta)
        second, kinds = self._second(theta, first), len(first)
        second_derivatives = np.zeros((kinds * size, kinds * size))
        complete = np.zeros((kinds, kinds, len(self.counts.system)))
        for rows, incidence, _, weights in self.by_block(table[:, None]):
            column, repeats = self.counts.column[rows], self.counts.repeats[rows]
            weight = weights[:, 0]
            expected = incidence.T @ (weight * repeats[:, None])
            complete += np.einsum("uk,ijuk->iju", expected, second)
            mean = np.zeros((len(column), kinds * size))
            tried = column >= 0
            for k, by_row in enumerate(weight.T):
                likely = by_row > 1e-10
                score = np.where(tried[likely], first[:, column[likely], k], 0.0).transpose(1, 0, 2)
                score = score.reshape(len(score), kinds * size)
                second_derivatives -= score.T @ (score * (by_row * repeats)[likely, None])
                mean[likely] += by_row[likely, None] * score
            second_derivatives += mean.T @ (mean * repeats[:, None])
        blocks = second_derivatives.reshape(kinds, size, kinds, size)
        for i in range(kinds):
            diagonal_blocks = self._by_system(complete[i])
            for j in range(kinds):
                blocks[i, range(size), j, range(size)] -= diagonal_blocks[j]
        return self._gathered(self._gathered(second_derivatives).T)

    def _second(self, theta: Array, first: Array) -> Array:
        """Second derivatives of log probabilities, (kinds, kinds, columns, nodes)."""
        unit = np.eye(self._ways)
        pairs = (unit[:, None] + unit).reshape(-1, len(unit))
        steps = _STEP * np.concatenate([0.0 * unit[:1], unit, pairs])
        ahead, behind = (self.table(theta + self._moves(move)) for move in (steps, -steps))
        bent = np.moveaxis(ahead + behind - 2.0 * ahead[:, :1], 1, 0)
        alone, together = bent[1 : 1 + len(unit)], bent[1 + len(unit) :]
        mixed = together.reshape(len(unit), *alone.shape) - alone[:, None] - alone
        by_kind = self._by_kind(mixed / (2.0 * _STEP**2), theta)
        second = self._by_kind(np.moveaxis(by_kind, 0, 1), theta)
        second[1, 1] += first[1]
        return second
