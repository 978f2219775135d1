"""Votes between answers under partial pooling: right and wrong, and how often the wrong agree.

A question's share of right answers has the law of difficulty, and given wrong its answers have
the Ewens law with an agreement that all questions share; the two are independent given the
hyperparameters. Given the credit of r right and w wrong votes a vote is linear in the
probabilities of r right ones of k, which are metrics of right and wrong like all others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, xlog1py, xlogy

from bayesatk._tools.arrays import Array, Indices, Rng
from bayesatk.core.numerics.points import Points
from bayesatk.core.pooling.agreement import (
    Counts,
    draw_shares,
    log_ewens,
    simulated_tops,
)
from bayesatk.core.program.points import on_lattice
from bayesatk.core.question.ballot import Side, credit_table
from bayesatk.core.question.laws import hypergeometric_pmf
from bayesatk.data.answers import Ballots
from bayesatk.metrics.credit import Credit, log_binomials
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.answers import finite_estimates
from bayesatk.posterior.count_posterior import SUCCESS, CountPosterior
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import Draws, Summary, SystemPosterior
from bayesatk.priors import AnswerHyperPrior

WRONG, RIGHT = "wrong_agreement", "right_agreement"  # names in results
_BUDGET = 1e9  # multiplications spent on votes at drawn shares
_SHARES = (200, 1000)  # draws of shares of answers, fewest and most
_EXACT, _ELECTIONS = 12, 32  # k up to which votes at drawn shares are exact; simulated beyond
_MANY = 10  # right votes from which fewer points of the hyperparameters have to do
_SIZE = 4000  # draws for variances
_LEAST = 1e-8  # agreement or disagreement, which then does not count


@dataclass(frozen=True)
class RightVotes:
    """Whether exactly so many of k trials are right, as a metric that needs no draws of p.

    Parameters
    ----------
    k, right : int
    """

    k: int
    right: int

    @property
    def credit(self) -> Credit:
        """One at `right`, else zero."""
        return _exactly(self.k, self.right)

    def latent(self, p: ArrayLike) -> Array:
        """Zeros: votes are worked out from draws of p themselves."""
        return np.zeros(np.shape(p))


@lru_cache(maxsize=1024)
def _exactly(k: int, right: int) -> Credit:
    return Credit.of(float(j == right) for j in range(k + 1))


@dataclass(frozen=True)
class Agreement:
    """Posterior of the probability that two trials of one side give the same answer.

    Parameters
    ----------
    points : Points
        Of its logit.
    """

    points: Points

    @classmethod
    def of(cls, prior: AnswerHyperPrior, counts: Sequence[Counts]) -> "Agreement":
        """Return the posterior given the answers to every question."""
        fields = prior.fields()

        def log_density(x: Array) -> Array:
            return fields.log_density(x) + log_ewens(-x[:, 0], counts)

        return cls(on_lattice(log_density, [np.array([start]) for start in (-2.0, 0.0, 2.0)]))

    @cached_property
    def values(self) -> Array:
        """Agreement at the points."""
        return np.asarray(expit(self.points.theta[:, 0]))

    def draw(self, size: int, rng: Rng) -> Array:
        """Evenly spread draws of theta, in random order."""
        x, weight = self.points.theta[:, 0], self.points.weight
        order = np.argsort(x)
        middle = np.cumsum(weight[order]) - 0.5 * weight[order]
        even = (rng.permutation(size) + rng.random(size)) / size
        return _theta(expit(np.interp(even, middle, x[order])))

    @property
    def summary(self) -> Summary:
        """Of the agreement."""
        return Summary.on_points(self.points.weight, self.values)


def _theta(agreement: Array) -> Array:
    """Return theta, within bounds beyond which trials all agree, or all differ."""
    inside = np.clip(agreement, _LEAST, 1.0 - _LEAST)
    return np.asarray((1.0 - inside) / inside)


class VoteDraws(NamedTuple):
    """Joint draws of votes.

    Parameters
    ----------
    values : ndarray, shape (draws, questions, ks)
        Of every question.
    drawn : Draws
        Of means over questions, hyperparameters, and p.
    chain : ndarray of int, shape (draws,), optional
        Chain that part of a draw is from; those of one chain depend on one another.
    """

    values: Array
    drawn: Draws
    chain: Indices | None = None


@dataclass(frozen=True, eq=False)
class PooledVotes:
    """Votes between the answers to the questions of one system, under partial pooling.

    Parameters
    ----------
    ballots : sequence of Ballots
        One for each question.
    right : CountModel
        Of right trials, and of those that are not.
    silent : CountModel, optional
        Of abstentions among the trials that are not right; None if there are none.
    prior : AnswerHyperPrior
    several_right : bool
        Whether a question may have several right answers, which share its right votes.
    rng : numpy.random.Generator
        For variances and intervals.
    """

    ballots: Sequence[Ballots]
    right: CountModel
    silent: CountModel | None
    prior: AnswerHyperPrior
    several_right: bool
    rng: Rng

    @property
    def weight(self) -> Array:
        """Share of every question in a mean over all."""
        cells = self.right.cells
        return cells.question_share * cells.share[cells.group[cells.which]]

    def estimate(self, metrics: Sequence[Metric]) -> Array:
        """Unbiased finite-law values, groups with their weights."""
        return finite_estimates(self.ballots, [metric.k for metric in metrics], self.weight)

    def estimate_by_group(self, metrics: Sequence[Metric]) -> Array:
        """Return the same of each group; (groups, metrics), NaN of groups without questions."""
        cells, ks = self.right.cells, [metric.k for metric in metrics]
        code = cells.group[cells.which]
        values = np.full((cells.groups, len(ks)), np.nan)
        for group in np.unique(code):
            inside = np.flatnonzero(code == group)
            ballots = [self.ballots[question] for question in inside.tolist()]
            values[group] = finite_estimates(ballots, ks, cells.question_share[inside])
        return values

    @cached_property
    def agreements(self) -> dict[str, Agreement]:
        """Of wrong answers, and of right ones where there may be several."""
        sides = {WRONG: False, RIGHT: True} if self.several_right else {WRONG: False}
        return {
            name: Agreement.of(self.prior, [answers_of(ballot, side) for ballot in self.ballots])
            for name, side in sides.items()
        }

    def fit(self, metrics: Sequence[Metric]) -> SystemPosterior:
        """Return the posterior of votes: of all questions, and of each group."""
        posterior = by_draws(
            lambda size, rng: self.draw(metrics, size, rng), _SIZE, self.rng,
            CountPosterior(self.right, (SUCCESS,)).posterior(),
        )  # fmt: skip
        summaries = {name: agreement.summary for name, agreement in self.agreements.items()}
        return replace(posterior, hyper={**posterior.hyper, **summaries})

    def draw(self, metrics: Sequence[Metric], size: int, rng: Rng) -> VoteDraws:
        """Return joint draws of votes, also of every question."""
        return VotePosterior(self, tuple(metric.k for metric in metrics)).drawn(size, rng)


@dataclass(frozen=True, eq=False)
class VotePosterior:
    """Votes of several k under `PooledVotes`.

    Parameters
    ----------
    model : PooledVotes
    ks : tuple of int
    """

    model: PooledVotes
    ks: tuple[int, ...]

    @cached_property
    def _right(self) -> CountPosterior:
        return self._counted(self.model.right)

    @cached_property
    def _silent(self) -> CountPosterior | None:
        return None if self.model.silent is None else self._counted(self.model.silent)

    def _counted(self, model: CountModel) -> CountPosterior:
        most = max(self.ks)
        basis = tuple(RightVotes(most, j + 1) for j in range(most))
        return CountPosterior(model, basis, min(1.0, _MANY / most))

    def _tables(self, ballot: Ballots | None, thetas: Sequence[Array]) -> Array:
        """Credit by right and wrong votes, given theta of wrong answers, and of right ones."""
        k, counts = max(self.ks), [np.zeros(0, np.int64)] * 2
        if ballot is not None:
            counts = [answers_of(ballot, right) for right in (False, True)]
        tables = np.empty((len(thetas[0]), k + 1, k + 1))
        magnitude = np.floor(np.log10(np.stack(thetas)))
        _, block = np.unique(magnitude, axis=1, return_inverse=True)
        for number in range(int(block.max()) + 1):
            rows = block == number
            sides = [
                Side.ewens(seen, theta[rows], k)
                for seen, theta in zip(counts, thetas, strict=False)
            ]
            right = sides[1] if len(sides) > 1 else Side.alone(k)
            tables[rows] = credit_table(right, sides[0], k)
        return tables

    @staticmethod
    def _with_none(several: Array) -> Array:
        """Probabilities of 0, 1, ..., K, from those of 1, ..., K on the last axis."""
        none = np.maximum(1.0 - several.sum(axis=-1, keepdims=True), 0.0)
        return np.concatenate([none, several], axis=-1)

    def _by_right(self, tables: Array, silent: Array | None) -> list[Array]:
        """Credit of each k by right votes of K, the largest k; (batch, K + 1).

        Of K votes k are drawn without replacement. ``silent`` has the probabilities of 0 .. K
        abstentions among K votes that are not right, (..., K + 1).
        """
        most, credits = max(self.ks), []
        for k in self.ks:
            right = np.arange(k + 1)
            credit = tables[:, right, k - right]
            if silent is not None:
                rows = np.broadcast_to(silent, (len(tables), most + 1))
                credit = np.stack([
                    np.einsum("bs,bs->b", rows @ fewer(most, k - r), tables[:, r, k - r :: -1])
                    for r in right.tolist()
                ], axis=1)  # fmt: skip
            credits.append(credit @ fewer(most, k).T)
        return credits

    # Draws

    def drawn(self, size: int, rng: Rng) -> VoteDraws:
        """Return joint draws, with p."""
        right = self._right.draw(size, rng, True)
        assert right.p is not None
        silent = None if self._silent is None else self._silent.draw(size, rng, True)
        number = min(self._affordable, size)
        thetas = [agreement.draw(number, rng) for agreement in self.model.agreements.values()]
        theta_row = rng.permutation(size) % number
        values = np.empty((size, len(self.model.ballots), len(self.ks)))
        for question, ballot in enumerate(self.model.ballots):
            tables = self._tables_at_draws(ballot, thetas, rng)
            p = right.p[:, question]
            if silent is None:
                values[:, question] = self._at(tables, theta_row, p, None)
            else:
                assert silent.p is not None
                values[:, question] = self._at(tables, theta_row, p, silent.p[:, question])
        hyper = {
            name: (1.0 / (1.0 + theta))[theta_row]
            for name, theta in zip(self.model.agreements, thetas, strict=True)
        }
        both, new = (
            np.clip(each, 0.0, 1.0)  # sums of shares may round to more than one
            for each in self._over_questions(values, right, silent, thetas, theta_row, rng)
        )
        cells = self.model.right.cells
        whole = np.clip(np.einsum("hgkt,g->hkt", both, cells.share), 0.0, 1.0)
        if cells.grouped:
            whole = np.concatenate([whole, new[..., None]], axis=-1)
        groups = None if right.groups is None else replace(right.groups, metrics=both)
        drawn = replace(right, metrics=whole, hyper=right.hyper | hyper, groups=groups)
        return VoteDraws(values, drawn, theta_row)

    @property
    def _affordable(self) -> int:
        """Draws of shares of answers."""
        most = max(self.ks)
        if most > _EXACT:
            return _SHARES[0]
        work = sum(len(ballot.count) + 10.0 for ballot in self.model.ballots) * most**2.6
        return int(np.clip(_BUDGET / work, *_SHARES))

    def _tables_at_draws(self, ballot: Ballots, thetas: Sequence[Array], rng: Rng) -> Array:
        """Credit by right and wrong votes at drawn shares; (draws, K + 1, K + 1)."""
        k = max(self.ks)
        shares = [
            draw_shares(answers_of(ballot, right), theta, rng)
            for right, theta in zip((False, True), thetas, strict=False)
        ]
        if k > _EXACT:
            return self._simulated(shares, rng)
        sides = [Side.known(*of_side, k) for of_side in shares]
        return credit_table(sides[1] if len(sides) > 1 else Side.alone(k), sides[0], k)

    def _simulated(self, shares: Sequence[tuple[Array, Array]], rng: Rng) -> Array:
        """Credit of simulated elections by right and wrong votes, where it is asked for."""
        k = max(self.ks)
        wrong = simulated_tops(*shares[0], k, _ELECTIONS, rng)
        right = np.broadcast_to(np.arange(k + 1.0), wrong[0].shape), np.ones(wrong[0].shape)
        if len(shares) > 1:
            right = simulated_tops(*shares[1], k, _ELECTIONS, rng)
        return self._credit(right, wrong)

    def _credit(self, right: tuple[Array, Array], wrong: tuple[Array, Array]) -> Array:
        """Mean credit of elections by right and wrong votes; (rows, K + 1, K + 1).

        Of the best sums of both sides after each vote, and how many answers have them, both (rows,
        elections, K + 1).
        """
        rows, _, size = wrong[0].shape
        tables = np.zeros((rows, size, size))
        for r in range(1, size):
            w = np.array([most - r for most in self.ks if most >= r])
            if self._silent is not None:
                w = np.arange(size - r)
            of_right = (top[..., r, None] for top in right)
            of_wrong = (top[..., w] for top in wrong)
            tables[:, r, w] = _tops_credit(*of_right, *of_wrong).mean(axis=1)
        return tables

    def _at(self, tables: Array, place: Indices, p: Array, silence: Array | None) -> Array:
        """Votes of one question at draws of p, and of the share of abstentions; (draws, ks)."""
        columns = []
        for k in self.ks:
            right = np.arange(k + 1)
            if silence is None:
                credit = tables[:, right, k - right][place]
            else:
                credit = np.stack([
                    (_binomial(k - r, silence) * tables[place, r, k - r :: -1]).sum(axis=1)
                    for r in right.tolist()
                ], axis=1)  # fmt: skip
            columns.append((_binomial(k, p) * credit).sum(axis=1))
        return np.stack(columns, axis=1)

    def _over_questions(
        self, values: Array, right: Draws, silent: Draws | None, thetas: Sequence[Array],
        place: Indices, rng: Rng,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Means over questions of groups (draws, groups, ks, 2), and of new groups (draws, ks)."""
        cells = self.model.right.cells
        if self.model.right.resampled:
            like, new = cells.means_anew(values, rng)
        else:
            like, new = self._of_new(self._tables(None, thetas)[place], right, silent)
        return np.stack([cells.means(values), like], axis=-1), new

    def _of_new(self, tables: Array, right: Draws, silent: Draws | None) -> tuple[Array, Array]:
        """Return votes on new questions of groups (draws, groups, ks), and of new groups.

        By credits of right and wrong votes in every draw.
        """
        none = None if silent is None else self._with_none(silent.metrics[:, :, 1])
        credit = np.stack([rows[:, 1:] for rows in self._by_right(tables, none)], axis=2)
        groups = right.metrics[:, None, :, 1]
        if right.groups is not None:
            groups = right.groups.metrics[..., 1]
        like = np.einsum("dgr,drk->dgk", groups, credit)
        return like, np.einsum("dr,drk->dk", right.metrics[:, :, -1], credit)


def by_draws(
    draw: Callable[[int, Rng], VoteDraws], draws: int,
    rng: Rng, right: SystemPosterior,
) -> SystemPosterior:  # fmt: skip
    """Return the posterior of metrics of which there are draws alone.

    Parameters
    ----------
    draw : callable
        Return so many draws.
    draws : int
        For means and variances.
    rng : numpy.random.Generator
    right : SystemPosterior
        Of right and wrong, whose hyperparameters are those of all.
    """
    votes = draw(draws, rng)
    drawn = votes.drawn
    number = independent(drawn.metrics, votes.chain)
    behind = {
        name: 1.0 / (1.0 / number + 1.0 / np.asarray(right.effective_draws.get(name, np.inf)))
        for name in ("mean_draws", "sd_draws", "interval_draws")
    }

    def of_size(size: int, rng: Rng, keep_p: bool) -> Draws:
        same = drawn if size == draws else draw(size, rng).drawn
        return same if keep_p else replace(same, p=None)

    of_groups = [] if drawn.groups is None else list(np.moveaxis(drawn.groups.metrics, 1, 0))
    return replace(
        of_draws(drawn.metrics), draw=of_size,
        question_p=right.question_p, hyper=right.hyper, hyper_draws=right.hyper_draws,
        diagnostics=right.diagnostics, families=right.families, method=right.method,
        warning=right.warning, groups=[of_draws(metrics) for metrics in of_groups],
        effective_draws=behind,
    )  # fmt: skip


def independent(draws: Array, chain: Indices | None) -> Array:
    """Return how many independent draws have means as exact as these draws; (metrics,).

    Sums over a chain tell by how much its draws move the mean together. The fewest of all targets.

    Parameters
    ----------
    draws : ndarray, shape (draws, metrics, targets)
    chain : ndarray of int, shape (draws,), optional
        Of each draw; without it they are independent.

    Examples
    --------
    Draws of a chain that are all the same are worth one.

    >>> draws = np.array([0.0, 0.0, 1.0, 1.0]).reshape(4, 1, 1)
    >>> independent(draws, np.array([0, 0, 1, 1])).tolist()
    [2.0]
    """
    size, gap = len(draws), draws - draws.mean(axis=0)
    if chain is None:
        return np.full(draws.shape[1], float(size))
    sums = np.zeros((int(chain.max()) + 1, *draws.shape[1:]))
    np.add.at(sums, chain, gap)
    ratio = (sums**2).sum(axis=0) / np.maximum((gap**2).sum(axis=0), 1e-300)
    return np.asarray(size / np.maximum(ratio, 1.0).max(axis=1))


def of_draws(draws: Array) -> SystemPosterior:
    """Posterior of draws (draws, metrics, targets)."""
    mean = draws.mean(axis=0)
    total = ((draws - mean) ** 2).mean(axis=0)
    trial = np.minimum(total[:, :1], total)
    none = [None] * len(mean)

    def draw(size: int, rng: Rng, keep_p: bool) -> Draws:
        del keep_p
        return Draws(draws[rng.integers(len(draws), size=size)], {})

    return SystemPosterior(
        mean, trial, total - trial, lambda: (none,) * mean.shape[1], draw,
        lambda: (np.zeros(0), np.zeros(0)),
    )  # fmt: skip


def answers_of(ballot: Ballots, right: bool) -> Counts:
    """Return counts of the answers of one side that were given, the most frequent first."""
    counts = ballot.count[(ballot.correct == right) & (ballot.count > 0)]
    return np.asarray(np.sort(counts)[::-1])


def _tops_credit(right: Array, tied_right: Array, wrong: Array, tied_wrong: Array) -> Array:
    """Return the credit of elections, by the winner's votes on both sides and who has as many."""
    won, equal = (right > wrong).astype(float), (right == wrong) & (right >= 0.0)
    if equal.any():
        won = np.where(equal, tied_right / np.maximum(tied_right + tied_wrong, 1.0), won)
    return won


def _binomial(k: int, p: Array) -> Array:
    """Probabilities of 0 .. k of k trials; (draws, k + 1)."""
    j, p = np.arange(k + 1), p[:, None]
    return np.exp(log_binomials(k) + xlogy(j, p) + xlog1py(k - j, -p))


@lru_cache(maxsize=2048)
def fewer(many: int, few: int) -> Array:
    """Return the law of the right ones among few trials drawn of many, by those of all.

    Shape (many + 1, few + 1), hypergeometric.

    Examples
    --------
    >>> fewer(2, 1).round(12).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    right = np.arange(many + 1.0)
    return hypergeometric_pmf(few, right, np.full(many + 1, float(many)))
