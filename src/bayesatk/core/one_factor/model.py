"""One difficulty per question, shared by all systems: counts, likelihood, gradient, curvature.

Given the difficulty ``z`` of a question, standard normal over questions, its success probability
under system ``s`` is Beta with mean ``m = expit(mu_s + a_s z)`` and ``alpha + beta = 1 / r_s``:
the mean is the two-parameter logistic model of item response theory, and ``r_s`` lets a system find
a question harder or easier than the others do. With single trials r has no influence, and this is
the model of Bock and Aitkin (1981). The difficulty of every question is integrated by the trapezoid
rule, on nodes that all questions share: a table of the probabilities of the distinct counts of
every system at every node (`bayesatk.core.one_factor.chances`), times a sparse matrix that says
which question has which counts.

Some questions are solved by no system, whatever their number of trials, and some by all: two more
nodes, far out, whose shares are parameters.

Parameters are arrays (..., 3, columns): mu, log a, log r of systems. Where trials are not right and
wrong themselves, columns of scores follow (`bayesatk.core.one_factor.observed`). The last column
has the scores of the two shares.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bayesatk._tools.arrays import Array, Indices, Ints, Rng
from bayesatk.core.one_factor.chances import log_chances, log_shares
from bayesatk.core.one_factor.observed import Observed
from bayesatk.metrics.credit import log_choose

_STEP = 1e-3  # of numerical derivatives, in logits: their error is below 1e-6 of the values
_HELD = 100_000  # numbers in an array at once, which then stays in the cache
_MORE_HELD = 1_000_000  # the same where tables of few points take as long as of many
COARSE = 0.2  # step of nodes of difficulty, until their posterior sds are known
_DENSE = 0.25  # share of ones from which a matrix is multiplied faster with its zeros
_SEEN = 1e-12  # posterior probability of a node, given its question, from which it is kept
FAR = 1e4  # of the nodes of questions that none, or all, solve: p is 0 or 1 to double precision


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
    system, successes, trials, state : ndarray, shape (columns,)
        Of the distinct counts.
    systems : int
    observed : Observed, optional
        What is seen of the trials, where it is not right and wrong themselves, by states. Successes
        are then a rough guess.
    """

    column: Ints
    repeats: Array
    which: Ints
    system: Ints
    successes: Ints
    trials: Ints
    state: Ints
    systems: int
    observed: Observed | None = None

    @classmethod
    def of(
        cls, successes: NDArray[Any], trials: NDArray[Any], observed: Observed | None = None
    ) -> "Counts":
        """Take counts (systems, questions); cells without trials say nothing.

        Examples
        --------
        >>> counts = Counts.of(np.array([[1, 1, 0], [2, 2, 0]]), np.array([[1, 1, 1], [2, 2, 0]]))
        >>> counts.column.tolist(), counts.repeats.tolist(), counts.which.tolist()
        ([[0, -1], [1, 2]], [1.0, 2.0], [1, 1, 0])
        """
        size = len(trials)
        system = np.broadcast_to(np.arange(size)[:, None], trials.shape)
        state = np.zeros(trials.shape, np.int64)
        if observed is not None:
            state[:] = [observation.states.which for observation in observed.by_system]
        cells = np.stack([system, state, successes, trials], axis=-1)[trials > 0]
        distinct, distinct_index = np.unique(cells, axis=0, return_inverse=True)
        column = np.full(trials.shape, -1)
        column[trials > 0] = distinct_index.ravel()
        rows, row, repeats = np.unique(
            column.T, axis=0, return_inverse=True, return_counts=True
        )  # fmt: skip
        places, right, tried = distinct[:, :2].astype(np.int64).T, *distinct[:, 2:].T
        return cls(
            rows, repeats.astype(float), row.ravel(), places[0], right, tried, places[1], size,
            observed,
        )  # fmt: skip

    @property
    def scored_columns(self) -> int:
        """Columns of parameters that the scores of what else is not known take."""
        return 0 if self.observed is None else self.observed.columns

    @cached_property
    def kinds(self) -> Ints:
        """Trials of every kind of the distinct counts, then none; (columns + 1, kinds)."""
        if self.observed is None:
            kinds = np.stack([self.trials - self.successes, self.successes], axis=1)
        else:
            kinds = np.concatenate([
                self.observed.by_system[system].states.counts[self.state[self.system == system]]
                for system in range(self.systems)
            ])  # fmt: skip
        return np.pad(kinds, [(0, 1), (0, 0)])

    @cached_property
    def incidence(self) -> csr_array:
        """Matrix (rows, columns) of ones where a row has the counts of a column."""
        tried = self.column >= 0
        ends = np.concatenate([[0], np.cumsum(tried.sum(axis=1))])
        shape = len(self.column), len(self.system)
        return csr_array((np.ones(ends[-1]), self.column[tried], ends), shape)

    @cached_property
    def log_orders(self) -> float:
        """Log of how many orders the trials of all cells could have had, where tables add them."""
        if self.observed is not None:
            return 0.0
        questions = self.incidence.T @ self.repeats
        return float(questions @ log_choose(self.trials, self.successes))


@dataclass(frozen=True)
class Block:
    """Rows of counts that have posterior probability at the same nodes.

    Parameters
    ----------
    rows : ndarray of int
    repeats : ndarray, shape (rows,)
    columns : ndarray of int
        Distinct counts that they have.
    column : ndarray of int, shape (rows, systems)
        Place of a cell's counts among these; -1 where there are no trials.
    incidence : csr_array or ndarray, shape (rows, columns)
    nodes : ndarray of int
    width : int
        Rows of the tables that are worked out at a point and node.
    cells : int
        With trials; and numbers of tables of what is seen of them.
    observations : tuple of (int, ndarray, Observation)
        Systems, places of their columns among these, and what is seen of them.
    """

    rows: Indices
    repeats: Array
    columns: Indices
    column: Ints
    incidence: csr_array | Array
    nodes: Indices
    width: int
    cells: int
    observations: tuple[tuple[int, Indices, Any], ...] = ()

    @classmethod
    def of(cls, counts: Counts, rows: Indices, nodes: Indices) -> "Block":
        """Take some rows of counts."""
        columns, place = np.unique(counts.column[rows], return_inverse=True)
        absent = int(columns[0] < 0)
        columns, place = columns[absent:], place.reshape(len(rows), -1) - absent
        matrix, width, observations = counts.incidence[rows][:, columns], len(columns), []
        cells = matrix.nnz
        if counts.observed is not None:
            system, state = counts.system[columns], counts.state[columns]
            for number in np.unique(system).tolist():
                members = np.flatnonzero(system == number)
                observation = counts.observed.of_states(number, state[members])
                observations.append((number, members, observation))
                width = max(width, observation.floats(1))  # one system after the other
                cells += observation.floats(1)
        width = max(width, len(rows))
        dense = matrix.nnz > _DENSE * len(rows) * len(columns)
        incidence: csr_array | Array = matrix.toarray() if dense else matrix
        return cls(
            rows, counts.repeats[rows], columns, place, incidence, nodes, width, cells,
            tuple(observations),
        )  # fmt: skip


@dataclass(frozen=True)
class Likelihood:
    """Probability of all counts given the parameters of systems, difficulties integrated.

    Parameters
    ----------
    counts : Counts
    z : ndarray, shape (nodes,)
        Ascending; the first and the last are of questions that none, or all, solve.
    atoms : (float, float, float)
        Prior of the shares of such questions and of the others.
    """

    counts: Counts
    z: Array
    atoms: tuple[float, float, float]
    # First and last node of every row; those of other counts are others, so `replace` drops it.
    window: Ints | None = field(init=False, default=None)

    @classmethod
    def on(cls, counts: Counts, step: float, atoms: tuple[float, float, float]) -> "Likelihood":
        """Nodes at equal steps, and the two far out."""
        reach = 6.0  # sds of z: 2e-9 of the questions are beyond
        half = int(np.ceil(reach / step))
        inner = np.linspace(-reach, reach, 2 * half + 1)
        return cls(counts, np.concatenate([[-FAR], inner, [FAR]]), atoms)

    @property
    def width(self) -> int:
        """Columns of parameters."""
        return self.counts.systems + self.counts.scored_columns + 1

    def log_weight(self, theta: Array) -> Array:
        """Log prior probabilities of nodes; (points, nodes)."""
        logs = -0.5 * self.z**2
        logs -= np.log(np.exp(logs).sum())
        never, always, left = log_shares(theta, self.atoms).T[..., None]
        return np.concatenate([never, left + logs[1:-1], always], axis=1)

    def draw_z(self, theta: Array, size: int, rng: Rng) -> Array:
        """Draw difficulties of new questions given parameters (3, columns)."""
        upto = np.exp(log_shares(theta, self.atoms)[:2]).cumsum()
        u, z = rng.random(size), rng.standard_normal(size)
        return np.where(u < upto[0], -FAR, np.where(u < upto[1], FAR, z))

    @classmethod
    def around(
        cls, counts: Counts, theta: Array, atoms: tuple[float, float, float]
    ) -> "Likelihood":
        """Return it on as many nodes as difficulties ask for, and on those alone, row by row.

        Parameters
        ----------
        counts : Counts
        theta : ndarray, shape (points, 3, columns)
            Points all over the posterior of the parameters.
        atoms : (float, float, float)
        """
        steepest = float(np.exp(np.median(theta[:, 1, : counts.systems].max(axis=1))))
        step, found = COARSE, cls.on(counts, COARSE, atoms)
        while True:
            window, narrow = found._seen(theta)
            # A step of 1.5 posterior sds is an error of 1e-4 of a density; a twentieth of the
            # questions may have difficulties that are known better. The finest step makes a
            # thousand nodes. A coarse grid cannot tell how much finer it should be.
            wanted = float(np.clip(min(1.5 * narrow, 1.0 / steepest), 0.012, COARSE))
            if wanted > 0.7 * step:
                return found._within(window)
            step = max(wanted, 0.25 * step)
            found = cls.on(counts, step, atoms)._within(window)

    def _seen(self, theta: Array) -> tuple[Array, float]:
        """Range of probable difficulties of every row (2, rows), and a small one of their sds."""
        window, variances = np.empty((2, len(self.counts.repeats))), []
        window[0], window[1] = np.inf, -np.inf
        for _, block, _, weight in self.by_block(theta):
            inner, z = np.maximum(weight[:, :, 1:-1], 1e-300), self.z[block.nodes[1:-1]]
            seen = (inner > _SEEN).any(axis=1)
            rows = block.rows
            window[0, rows] = np.minimum(window[0, rows], np.where(seen, z, np.inf).min(axis=1))
            window[1, rows] = np.maximum(window[1, rows], np.where(seen, z, -np.inf).max(axis=1))
            inner = inner / inner.sum(axis=2, keepdims=True)
            variances.append(np.maximum(inner @ z**2 - (inner @ z) ** 2, 0.0).ravel())
        return window, float(np.sqrt(np.quantile(np.concatenate(variances), 0.05)))

    def _within(self, window: Array) -> "Likelihood":
        """Return it on nodes from one before to one behind these difficulties (2, rows)."""
        found, last = replace(self), len(self.z) - 2
        nodes = np.searchsorted(self.z, window[0]) - 1, np.searchsorted(self.z, window[1]) + 1
        object.__setattr__(found, "window", np.clip(nodes, 1, last))
        return found

    def table(self, theta: Array, block: Block) -> Array:
        """Log probability of distinct counts in any order, (columns, points, nodes)."""
        counts, z = self.counts, self.z[block.nodes]
        if counts.observed is None:
            cells = counts.system, counts.successes, counts.trials
            return log_chances(theta, z, *(amounts[block.columns] for amounts in cells))
        logs = np.empty((len(block.columns), len(theta), len(z)))
        for system, members, observation in block.observations:
            table = observation.log_states(*counts.observed.at_nodes(theta, system, z))
            logs[members] = np.moveaxis(table, 2, 0)
        return logs

    @cached_property
    def blocks(self) -> list[Block]:
        """Rows of counts in blocks of similar windows, which stay in the cache."""
        rows, last = np.arange(len(self.counts.repeats)), len(self.z) - 1
        if self.window is None:
            groups = [rows]
        else:
            first, final = self.window
            # Windows of a block together are about half as wide again as one of them.
            bins = (first + final) // max(1, int(np.median(final - first)))
            order = np.argsort(bins, kind="stable")
            groups = np.split(order, np.flatnonzero(np.diff(bins[order])) + 1)
        blocks = []
        for group in groups:
            ends = (1, last - 1)
            if self.window is not None:
                ends = int(self.window[0, group].min()), int(self.window[1, group].max())
            nodes = np.concatenate([[0], np.arange(ends[0], ends[1] + 1), [last]])
            size = max(1, _HELD // (2 * len(nodes)))
            for start in range(0, len(group), size):
                blocks.append(Block.of(self.counts, group[start : start + size], nodes))
        return blocks

    @property
    def cells(self) -> int:
        """Numbers that are worked out at a point."""
        return sum((block.width + block.cells) * len(block.nodes) for block in self.blocks)

    @property
    def states(self) -> int:
        """Distinct counts and nodes."""
        return sum(len(block.columns) * len(block.nodes) for block in self.blocks)

    def by_block(self, theta: Array) -> Iterator[tuple[slice, Block, Array, Array]]:
        """Yield points, a block, log probabilities, and weights of its nodes given the counts.

        Of parameters (points, 3, columns) log probabilities are (rows, points), and weights
        (rows, points, nodes).
        """
        log_weight = self.log_weight(theta)
        for block in self.blocks:
            held = _HELD if self.counts.observed is None else _MORE_HELD
            step = max(1, held // (block.width * len(block.nodes)))
            for start in range(0, len(theta), step):
                part = slice(start, start + step)
                table = self.table(theta[part], block)
                yield part, block, *self._given(block, table, log_weight[part])

    def _given(self, block: Block, table: Array, log_weight: Array) -> tuple[Array, Array]:
        """Log probabilities and weights of a table (columns, points, nodes), as `by_block`."""
        columns, points, nodes = table.shape
        logs = (block.incidence @ table.reshape(columns, -1)).reshape(-1, points, nodes)
        logs += log_weight[:, block.nodes]
        top = logs.max(axis=2)
        weight = np.exp(np.subtract(logs, top[:, :, None], out=logs), out=logs)
        total = weight.sum(axis=2)
        weight /= total[:, :, None]
        return top + np.log(total), weight

    def log_likelihood(self, theta: Array) -> Array:
        """Log probability of all trials in their order, (points,); theta (points, 3, columns)."""
        log_likelihood = np.full(len(theta), -self.counts.log_orders)
        for part, block, logs, _ in self.by_block(theta):
            log_likelihood[part] += block.repeats @ logs
        return log_likelihood

    def difficulties(self, theta: Array) -> Array:
        """Posterior probabilities of nodes; theta (3, columns) -> (rows, nodes)."""
        found = np.zeros((len(self.counts.repeats), len(self.z)))
        for _, block, _, weight in self.by_block(theta[None]):
            found[np.ix_(block.rows, block.nodes)] = weight[:, 0]
        return found

    def draw_difficulties(self, theta: Array, rng: Rng) -> Array:
        """Draw difficulties of all questions given parameters (points, 3, columns) and counts.

        They are nodes, (points, questions).
        """
        which = self.counts.which
        u, z = rng.random((len(which), len(theta))), np.empty((len(theta), len(which)))
        place = np.empty(len(self.counts.repeats), int)
        for part, block, _, weight in self.by_block(theta):
            if part.start == 0:
                place[:] = -1
                place[block.rows] = np.arange(len(block.rows))
                questions = np.flatnonzero(place[which] >= 0)
                row = place[which[questions]]
            upto = weight.cumsum(axis=2)
            step = max(1, _HELD // upto[0].size)
            for start in range(0, len(questions), step):
                some = slice(start, start + step)
                own = upto[row[some]]
                node = (own < (u[questions[some], part] * own[..., -1])[..., None]).sum(axis=2)
                z[part, questions[some]] = self.z[block.nodes[node]].T
        return z

    def gradient(self, theta: Array) -> tuple[float, Array]:
        """Log likelihood, and its gradient in the shape of the parameters."""
        total, nodes = -self.counts.log_orders, np.zeros(len(self.z))
        by_column = np.zeros((self._ways + 1, len(self.counts.system)))
        log_weight = self.log_weight(theta[None])
        for block in self.blocks:
            table, first = self._first(theta, block)
            logs, weight = self._given(block, table[:, None], log_weight)
            total += float(block.repeats @ logs[:, 0])
            expected = block.incidence.T @ (weight[:, 0] * block.repeats[:, None])
            by_column[:, block.columns] += np.einsum("uk,iuk->iu", expected, first)
            nodes[block.nodes] += block.repeats @ weight[:, 0]
        of_shares = self._of_shares(theta)[0] @ nodes
        flat = np.concatenate([self._by_system(by_column).ravel(), of_shares])
        return total, (flat @ self._gather).reshape(theta.shape)

    def _of_shares(self, theta: Array) -> tuple[Array, Array]:
        """Return derivatives of log weights of nodes by scores: (2, nodes) and (2, 2, nodes)."""
        unit = np.eye(2)
        pairs = (unit[:, None] + unit).reshape(-1, 2)
        steps = _STEP * np.concatenate([np.zeros((1, 2)), unit, pairs])
        moves = np.zeros((2, len(steps), *theta.shape))
        moves[0, :, :2, -1], moves[1, :, :2, -1] = steps, -steps
        ahead, behind = (self.log_weight(theta + move) for move in moves)
        first = (ahead - behind)[1:3] / (2.0 * _STEP)
        bent = ahead + behind - 2.0 * ahead[:1]
        alone, together = bent[1:3], bent[3:].reshape(2, 2, -1)
        return first, (together - alone[:, None] - alone) / (2.0 * _STEP**2)

    def _first(self, theta: Array, block: Block) -> tuple[Array, Array]:
        """Log probabilities (columns, nodes), and their derivatives (kinds, columns, nodes).

        Kinds are the parameters of a column's system: mu, log a, log r, and its scores.
        """
        unit = np.eye(self._ways)
        steps = _STEP * np.concatenate([0.0 * unit[:1], unit, -unit])
        tables = np.moveaxis(self.table(theta + self._moves(steps), block), 1, 0)
        ahead, behind = np.split(tables[1:], 2)
        return tables[0], self._by_kind((ahead - behind) / (2.0 * _STEP), theta, block)

    def _by_kind(self, derivatives: Array, theta: Array, block: Block) -> Array:
        """Insert those by log a: it moves the logit as mu does, by a z times as much."""
        system = self.counts.system[block.columns]
        by_a = np.exp(theta[1, system])[:, None] * self.z[block.nodes]
        return np.insert(derivatives, 1, derivatives[0] * by_a, axis=0)

    @property
    def _ways(self) -> int:
        """Of parameters that tables are differentiated by: mu and log r, and scores."""
        return 2 if self.counts.observed is None else 2 + self.counts.observed.scores

    def _moves(self, steps: Array) -> Array:
        """Return moves of parameters (points, 3, columns) by steps (points, ways)."""
        systems, observed = self.counts.systems, self.counts.observed
        moves = np.zeros((len(steps), 3, self.width))
        moves[:, [0, 2], :systems] = steps[:, :2, None]
        if observed is not None:
            moves.reshape(len(steps), -1)[:, observed.place] = steps[:, None, 2:]
        return moves

    @cached_property
    def _gather(self) -> Array:
        """Matrix of zeros and ones from derivatives by each system's parameters to all columns.

        Its rows are mu, log a and log r by system, its scores, and the two scores of shares; its
        columns the parameters (3, columns), flat.
        """
        width, observed = self.width, self.counts.observed
        places = [row * width + np.arange(self.counts.systems) for row in range(3)]
        if observed is not None:
            places += [*observed.place.T]
        place = np.concatenate([*places, [width - 1, 2 * width - 1]])
        matrix = np.zeros((len(place), 3 * width))
        matrix[np.arange(len(place)), place] = 1.0
        return matrix

    def _by_system(self, columns: Array) -> Array:
        system, size = self.counts.system, self.counts.systems
        return np.stack([np.bincount(system, derivative, size) for derivative in columns])

    def curvature(self, theta: Array) -> Array:
        """Minus the second derivatives of the log likelihood, (parameters, parameters).

        By the formula of Louis (1982): the expected curvature given difficulties, less the
        variance of the gradient over them.
        """
        size, kinds = self.counts.systems, self._ways + 1
        number = kinds * size + 2
        second_derivatives = np.zeros((number, number))
        complete, nodes = np.zeros((kinds, kinds, len(self.counts.system))), np.zeros(len(self.z))
        of_shares, bent_shares = self._of_shares(theta)
        log_weight = self.log_weight(theta[None])
        for block in self.blocks:
            table, first = self._first(theta, block)
            weight = self._given(block, table[:, None], log_weight)[1][:, 0]
            repeats = block.repeats
            expected = block.incidence.T @ (weight * repeats[:, None])
            second = self._second(theta, first, block)
            complete[:, :, block.columns] += np.einsum("uk,ijuk->iju", expected, second)
            nodes[block.nodes] += repeats @ weight
            mean = np.zeros((len(repeats), number))
            tried = block.column >= 0
            for k, (node, by_row) in enumerate(zip(block.nodes, weight.T, strict=True)):
                likely = by_row > 1e-10
                by_cell = first[:, block.column[likely], k]
                score = np.where(tried[likely], by_cell, 0.0).transpose(1, 0, 2)
                shared = np.broadcast_to(of_shares[:, node], (len(score), 2))
                score = score.reshape(len(score), kinds * size)
                score = np.concatenate([score, shared], axis=1)
                second_derivatives -= score.T @ (score * (by_row * repeats)[likely, None])
                mean[likely] += by_row[likely, None] * score
            second_derivatives += mean.T @ (mean * repeats[:, None])
        second_derivatives[-2:, -2:] -= bent_shares @ nodes
        blocks = second_derivatives[:-2, :-2].copy().reshape(kinds, size, kinds, size)
        for i in range(kinds):
            diagonal_blocks = self._by_system(complete[i])
            for j in range(kinds):
                blocks[i, range(size), j, range(size)] -= diagonal_blocks[j]
        second_derivatives[:-2, :-2] = blocks.reshape(kinds * size, -1)
        return self._gather.T @ second_derivatives @ self._gather

    def _second(self, theta: Array, first: Array, block: Block) -> Array:
        """Second derivatives of log probabilities, (kinds, kinds, columns, nodes)."""
        unit = np.eye(self._ways)
        pairs = (unit[:, None] + unit).reshape(-1, len(unit))
        steps = _STEP * np.concatenate([0.0 * unit[:1], unit, pairs])
        ahead, behind = (self.table(theta + self._moves(move), block) for move in (steps, -steps))
        bent = np.moveaxis(ahead + behind - 2.0 * ahead[:, :1], 1, 0)
        alone, together = bent[1 : 1 + len(unit)], bent[1 + len(unit) :]
        mixed = together.reshape(len(unit), *alone.shape) - alone[:, None] - alone
        by_kind = self._by_kind(mixed / (2.0 * _STEP**2), theta, block)
        second = self._by_kind(np.moveaxis(by_kind, 0, 1), theta, block)
        second[1, 1] += first[1]
        return second
