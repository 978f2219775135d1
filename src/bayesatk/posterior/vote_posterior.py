"""Votes between answers: posteriors without pooling, and under partial pooling.

Without pooling the probabilities of the answers to a question have a Dirichlet prior of their own.

Under partial pooling a question's share of right answers has the law of difficulty. Its wrong
trials are split between W wrong answers by ``Dirichlet(c, ..., c)``, independent of that share,
with a c that all questions have in common (`bayesatk.priors.AnswerHyperPrior`). Given how many of k
votes are right the credit of the vote depends on the wrong answers alone, so that a vote is linear
in the probabilities of r right ones of k, which are metrics of right and wrong like all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from bayesatk._tools.arrays import Array, Flags, Indices, Ints, Rng
from bayesatk.core.engine.bootstrap import bootstrap_moments, mean_moments
from bayesatk.core.numerics.elliptical import systematic_resample
from bayesatk.core.numerics.points import WeightedPoints
from bayesatk.core.pooling.states import Terms
from bayesatk.core.program.weighted_points import on_lattice
from bayesatk.core.question.ballot import (
    credit_by_right_votes,
    plurality_finite,
    plurality_latent,
    plurality_posterior,
    vote_credit,
)
from bayesatk.core.question.dirichlet_multinomial import draw_probabilities
from bayesatk.core.question.expected_credit import hypergeometric_pmf
from bayesatk.core.question.observed import mean_over_questions
from bayesatk.data.answers import Ballots, possible, wrong_answers
from bayesatk.metrics.credit import Credit, log_binomials
from bayesatk.posterior.model import CountModel
from bayesatk.posterior.posterior import (
    SUCCESS,
    Distributions,
    Draws,
    Numbers,
    Posterior,
    Summary,
)
from bayesatk.priors import AnswerHyperPrior, AnswerPrior, VotePrior

WRONG = "wrong_agreement"  # name in results
_SIZE = 4000  # draws for means and variances
_SHARES = 400  # draws of shares of wrong answers; each serves ten draws of p
_EXACT, _ELECTIONS = 16, 16  # k up to which the credit at these is exact; simulated beyond
_LARGEST_LOGIT = 30.0  # of the hyperparameters, beyond which answers all agree, or all differ
_MANY = 10  # right votes from which fewer points of the hyperparameters have to do
_BUDGET = 2e9  # multiplications spent on exact values at drawn probabilities
_FEWEST = 50  # draws per question below which votes are simulated instead
_VOTES = 400  # probabilities drawn per question to simulate votes at
_CHUNK = 4_000_000  # floats held at once
_SMALLEST = 1e-12  # share of the largest variance, and Beta parameter, that are not zero


def finite_estimates(
    ballots: Sequence[Ballots], ks: Sequence[int], weight: Array | None = None
) -> Array:
    """Mean of the finite law over questions that have k trials; NaN where they are too few."""
    known: dict[tuple[object, ...], Array] = {}
    rows = []
    for ballot in ballots:
        key = _key(ballot.count, ballot.correct, ballot.abstentions)
        if key not in known:
            known[key] = plurality_finite(ballot.count, ballot.correct, ks, ballot.abstentions)
        rows.append(known[key])
    share = np.ones(len(rows)) if weight is None else weight
    tried = np.array([ballot.tried for ballot in ballots], bool)
    return mean_over_questions(np.stack(rows), share, tried)


class VoteDraws(NamedTuple):
    """Joint draws of votes.

    Parameters
    ----------
    drawn : Draws
        Of means over questions, hyperparameters, and p.
    effective : ndarray or float
        Independent draws that they are worth, by metric.
    """

    drawn: Draws
    effective: Array | float


@dataclass(frozen=True, eq=False, kw_only=True)
class VotePosterior(Posterior):
    """Posterior of votes between the answers to the questions of a system, by draws.

    What is not of votes is that of the model of right and wrong trials.

    Parameters
    ----------
    ballots : sequence of Ballots
        One for each question.
    prior : VotePrior
        Of the answers.
    ks : tuple of int
        Numbers of votes.
    draws : int
        Most draws of a question for variances and quantiles, without pooling.
    rng : numpy.random.Generator
        For means, variances and intervals.
    """

    ballots: Sequence[Ballots]
    prior: Any
    ks: tuple[int, ...]
    draws: int
    rng: Rng

    @property
    def estimate(self) -> Array:
        """Unbiased finite-law values, groups with their weights; NaN where trials are too few."""
        cells = self.model.cells
        weight = cells.question_share * cells.share[cells.group[cells.which]]
        return finite_estimates(self.ballots, self.ks, weight)

    @property
    def estimate_by_group(self) -> Array:
        """Return the same of each group; (groups, metrics), NaN of groups without questions."""
        cells = self.model.cells
        code = cells.group[cells.which]
        values = np.full((cells.groups, len(self.ks)), np.nan)
        for group in np.unique(code):
            inside = np.flatnonzero(code == group)
            ballots = [self.ballots[question] for question in inside.tolist()]
            values[group] = finite_estimates(ballots, self.ks, cells.question_share[inside])
        return values

    def joint(self, size: int, rng: Rng) -> VoteDraws:
        """Return joint draws, with p where it is drawn."""
        raise NotImplementedError

    @cached_property
    def votes(self) -> VoteDraws:
        """The draws that means and variances come from."""
        return self.joint(_SIZE, self.rng)

    @cached_property
    def numbers(self) -> Numbers:
        """Of means over all questions."""
        return _of_draws(self.votes.drawn.metrics)

    @property
    def of_groups(self) -> list[Numbers]:
        """The same of means over the questions of each group, where there are groups."""
        groups = self.votes.drawn.groups
        every = () if groups is None else np.moveaxis(groups.metrics, 1, 0)
        return [_of_draws(metrics) for metrics in every]

    @property
    def prior_sensitivity(self) -> Array:
        """Not worked out."""
        return np.full(self.mean.shape, np.nan)

    def distributions(self) -> Distributions:
        """None: only draws tell."""
        return [[None] * len(self.ks)] * self.mean.shape[1]

    @property
    def effective_draws(self) -> dict[str, Array]:
        """Independent draws that statistics of each metric are worth."""
        right = super().effective_draws
        return {
            name: 1.0 / (1.0 / self.votes.effective + 1.0 / np.asarray(right.get(name, np.inf)))
            for name in ("mean_draws", "sd_draws", "interval_draws")
        }

    def draw(
        self, size: int, rng: Rng, keep_p: bool, alone: bool = False,
        likelihood: bool = False, new: Rng | None = None,
    ) -> Draws:  # fmt: skip
        """Draw everything independently; answers are no counts with a likelihood."""
        drawn = self.votes.drawn if size == _SIZE else self.joint(size, rng).drawn
        return drawn if keep_p else replace(drawn, p=None)

    def _together(self, values: Array, like: Array, new: Array) -> tuple[Array, Array]:
        """Return means of groups (draws, groups, ks, 2), and of all questions (draws, ks, target).

        Parameters
        ----------
        values : ndarray, shape (draws, questions, ks)
        like : ndarray, shape (draws, groups, ks)
            Of questions like these.
        new : ndarray, shape (draws, ks)
            Of new groups, where there are groups.
        """
        cells = self.model.cells
        both = np.clip(np.stack([cells.means(values), like], axis=-1), 0.0, 1.0)
        whole = np.einsum("hgkt,g->hkt", both, cells.share)
        if cells.grouped:
            whole = np.concatenate([whole, new[..., None]], axis=-1)
        return both, np.clip(whole, 0.0, 1.0)  # sums of shares may round to more than one


def vote_posterior(
    model: CountModel, ballots: Sequence[Ballots], prior: VotePrior, ks: Sequence[int],
    draws: int, rng: Rng,
) -> VotePosterior:  # fmt: skip
    """Return the posterior of votes under the prior of answers.

    Parameters
    ----------
    model : CountModel
        Of right trials, and of those that are not.
    ballots, prior, ks, draws, rng
        As of `VotePosterior`.
    """
    of_votes = Unpooled if isinstance(prior, AnswerPrior) else Pooled
    return of_votes(
        model, (SUCCESS,), ballots=ballots, ks=tuple(ks), draws=draws, rng=rng, prior=prior
    )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Unpooled(VotePosterior):
    """Votes on questions that are independent; on the population by the bootstrap."""

    @cached_property
    def moments(self) -> "AnswerMoments":
        """Of every question."""
        return answer_moments(self.ballots, self.ks, self.prior, self.draws, self.rng)

    @cached_property
    def numbers(self) -> Numbers:
        """Of means over all questions: means exact, variances from draws of each question."""
        cells, moments = self.model.cells, self.moments
        number, weight = len(cells.which), cells.question_share * len(cells.which)
        tried = cells.questions_tried
        every = Terms(np.arange(number), weight, np.ones(number))
        sample = Terms(np.flatnonzero(tried), weight[tried], np.ones(tried.sum()))
        mean, trial = mean_moments(moments.mean, moments.variance, every)
        population, total = bootstrap_moments(moments.mean, moments.variance, sample)
        least, zero = np.minimum(trial, total), np.zeros_like(trial)
        return Numbers(*(
            np.stack(pair, axis=1)
            for pair in ((mean, population), (trial, least), (zero, total - least))
        ))  # fmt: skip

    @property
    def effective_draws(self) -> dict[str, Array]:
        """Draws behind intervals, and behind the variance of each question."""
        each = np.ones(len(self.ks))
        return {"interval_draws": self.draws * each, "sd_draws": self.moments.pool.shape[1] * each}

    def draw(
        self, size: int, rng: Rng, keep_p: bool, alone: bool = False,
        likelihood: bool = False, new: Rng | None = None,
    ) -> Draws:  # fmt: skip
        """Draw means over questions independently."""
        return self.joint(size, rng).drawn

    def joint(self, size: int, rng: Rng) -> VoteDraws:
        """Return draws of means over questions, and of their bootstrap."""
        values = np.stack([
            pool if len(pool) == size else pool[rng.integers(len(pool), size=size)]
            for pool in self.moments.pool
        ], axis=1)  # fmt: skip
        _, whole = self._together(values, *self.model.cells.means_anew(values, rng))
        return VoteDraws(Draws(whole, {}), size)


@dataclass(frozen=True)
class AnswerMoments:
    """Posterior of every question: exact mean, variance from draws, and the draws.

    Parameters
    ----------
    mean, variance : ndarray, shape (questions, ks)
    pool : ndarray, shape (questions, draws, ks)
        Exact values at drawn probabilities; Beta variates where votes were simulated.
    """

    mean: Array
    variance: Array
    pool: Array


def _key(count: Ints, correct: Flags, abstentions: int | None) -> tuple[object, ...]:
    order = np.lexsort((count, correct))
    return count[order].tobytes(), correct[order].tobytes(), abstentions


def answer_moments(
    ballots: Sequence[Ballots],
    ks: Sequence[int],
    prior: AnswerPrior,
    draws: int,
    rng: Rng,
) -> AnswerMoments:
    """Posterior of every question; parameters as of `VotePosterior`."""
    ballots = [possible(ballot, prior) for ballot in ballots]
    affordable = int(_BUDGET / sum(_work(len(ballot.count), max(ks)) for ballot in ballots))
    exact = affordable >= min(_FEWEST, draws)
    size = min(draws, affordable) if exact else _VOTES
    known: dict[tuple[object, ...], Array] = {}
    mean = np.empty((len(ballots), len(ks)))
    variance, pool = np.empty_like(mean), []
    for row, ballot in enumerate(ballots):
        key = _key(ballot.count, ballot.correct, ballot.abstentions)
        if key not in known:
            known[key] = plurality_posterior(
                ballot.count, ballot.correct, ks, prior.concentration, ballot.abstentions
            )
        mean[row] = known[key]
        if not ballot.correct.any():  # nothing to win: known without a draw
            variance[row] = 0.0
            pool.append(np.zeros((size, len(ks))))
            continue
        p = _draw(ballot, prior.concentration, size, rng)
        if exact:
            values = _latent(p, ballot.correct, ks)
            pool.append(values)
            variance[row] = ((values - mean[row]) ** 2).mean(axis=0)
        else:
            first, second = (_voted(p, ballot.correct, ks, rng) - mean[row] for _ in range(2))
            variance[row] = (first * second).mean(axis=0)
    if not exact:  # unbiased, so single questions may fall below zero; k independent
        largest = mean * (1.0 - mean)
        share = variance.sum(axis=0) / np.maximum(largest.sum(axis=0), _SMALLEST)
        share = np.clip(share, _SMALLEST, 1.0 - 1e-9)
        variance, total = share * largest, 1.0 / share - 1.0
        drawn = rng.beta(
            np.maximum(mean * total, _SMALLEST), np.maximum((1.0 - mean) * total, _SMALLEST),
            (size, *mean.shape),
        )  # fmt: skip
        pool = list(np.moveaxis(np.where(largest > 0.0, drawn, mean), 0, 1))
    return AnswerMoments(mean, variance, np.stack(pool))


def _work(answers: int, k: int) -> float:
    """Multiplications of one exact value, roughly."""
    return float(max(1.0, answers * k**2.6))


def _draw(ballot: Ballots, alpha: float, size: int, rng: Rng) -> Array:
    """Probabilities of the answers, and of an abstention where it exists, in the last column."""
    counts = (
        ballot.count if ballot.abstentions is None else np.append(ballot.count, ballot.abstentions)
    )
    return draw_probabilities(np.broadcast_to(counts + alpha, (size, len(counts))), rng)


def _latent(p: Array, correct: Flags, ks: Sequence[int]) -> Array:
    """Exact values at probabilities, in blocks that fit in memory."""
    width = max(1, int(_CHUNK / max(ks) ** 2))
    parts = [
        plurality_latent(p[start : start + width, : len(correct)], correct, ks)
        for start in range(0, len(p), width)
    ]
    return np.concatenate(parts)


def _voted(p: Array, correct: Flags, ks: Sequence[int], rng: Rng) -> Array:
    """Credit of one simulated vote at each row of probabilities and each k."""
    credit = np.empty((len(p), len(ks)))
    for column, k in enumerate(ks):
        votes = rng.multinomial(k, p)[:, : len(correct)]
        credit[:, column] = vote_credit(votes, correct)
    return credit


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
class WrongAnswers:
    """Posterior of what the wrong answers to the questions of a system have in common.

    Parameters
    ----------
    counts : ndarray of int, shape (questions, W + 1)
        As `wrong_answers` returns them.
    prior : AnswerHyperPrior
    """

    counts: Ints
    prior: AnswerHyperPrior

    @property
    def size(self) -> int:
        """Number of wrong answers that a question may get."""
        return int(self.counts.shape[1]) - 1

    @cached_property
    def unanswered(self) -> bool:
        """Whether any trial has no answer."""
        return bool(self.counts[:, -1].any())

    def parameters(self, theta: Array) -> tuple[Array, Array]:
        """Dirichlet parameters of each wrong answer, and of none, at points; (points,) each."""
        logits = np.clip(theta, -_LARGEST_LOGIT, _LARGEST_LOGIT)
        total = np.exp(-logits[:, 0])
        if not self.unanswered:
            return total / self.size, np.zeros(len(theta))
        return total * expit(-logits[:, 1]) / self.size, total * expit(logits[:, 1])

    def log_likelihood(self, theta: Array) -> Array:
        """Log probability of the answers in their order, wrong and none, at points."""
        c, none = self.parameters(theta)
        answered, silent = self.counts[:, :-1], self.counts[:, -1]
        logs = np.zeros(len(theta))
        # Factors of rising factorials: how many answers, or questions, got more than so many.
        parts = [(c, answered, 1.0), (none, silent, 1.0),
                 (self.size * c + none, self.counts.sum(axis=1), -1.0)]  # fmt: skip
        for parameter, number, sign in parts:
            for before in range(number.max(initial=0)):
                logs += sign * (number > before).sum() * np.log(parameter + before)
        return logs

    @cached_property
    def points(self) -> WeightedPoints:
        """Posterior of the hyperparameters."""
        fields = self.prior.fields(self.unanswered)
        starts = [np.full(fields.size, start) for start in (-2.0, 0.0, 2.0)]
        return on_lattice(lambda x: fields.log_density(x) + self.log_likelihood(x), starts)

    def agreement(self, c: Array) -> Array:
        """Probability that two wrong answers to a question are the same."""
        return np.asarray((1.0 + c) / (1.0 + self.size * c))

    @property
    def summary(self) -> Summary:
        """Of the agreement."""
        c, _ = self.parameters(self.points.theta)
        return Summary.on_points(self.points.weight, self.agreement(c))

    def credit(self, question: int, c: Array, none: Array, ks: Sequence[int], rng: Rng) -> Array:
        """Draw the credit of k votes by how many are right; (ks, draws, largest k + 1).

        At shares of the wrong answers to a question, drawn given their parameters.
        """
        alpha = self.counts[question] + np.column_stack([*[c] * self.size, none])
        shares = draw_probabilities(alpha if self.unanswered else alpha[:, :-1], rng)
        silent = shares[:, -1] if self.unanswered else np.zeros(len(c))
        credits = np.zeros((len(ks), len(c), max(ks) + 1))
        for of_k, k in zip(credits, ks, strict=True):
            if k <= _EXACT:
                first = k * shares[:, : self.size].T
                of_k[:, : k + 1] = credit_by_right_votes(first, 0.0, k * silent, k)
            else:
                of_k[:, : k + 1] = _simulated_credit(shares, self.size, k, rng)
        return credits

    def new_credit(self, theta: Array, k: int) -> Array:
        """Return the expected credit on a new question, by right votes; (points, k + 1)."""
        c, none = self.parameters(theta)
        odds = k / (k + self.size * c + none)  # of the order of the votes: nothing overflows
        first = np.broadcast_to(c * odds, (self.size, len(c)))
        return credit_by_right_votes(first, odds, none * odds, k)


def _simulated_credit(shares: Array, size: int, k: int, rng: Rng) -> Array:
    """Mean credit of simulated elections by right votes, in which the other votes come one by one.

    The first `size` shares are those of wrong answers.
    """
    most = k // 2
    credit = np.zeros((len(shares), k + 1))
    credit[:, most + 1 :] = 1.0
    every = np.repeat(shares, _ELECTIONS, axis=0)
    votes = np.ascontiguousarray(rng.multinomial(k - most, every).T)  # by answer, by election
    upto, elections = np.cumsum(every.T, axis=0), np.arange(len(every))
    for right in range(most, 0, -1):
        ties = (votes[:size] == right).sum(axis=0)
        won = np.where(votes[:size].max(axis=0) > right, 0.0, 1.0 / (1.0 + ties))
        credit[:, right] = won.reshape(len(shares), -1).mean(axis=1)
        chosen = (upto[:-1] < rng.random(len(every)) * upto[-1]).sum(axis=0)
        votes[chosen, elections] += 1
    return credit


@dataclass(frozen=True, eq=False, kw_only=True)
class Pooled(VotePosterior):
    """Votes under partial pooling."""

    @cached_property
    def wrong(self) -> WrongAnswers:
        """The wrong answers, and the posterior of how they agree."""
        return WrongAnswers(wrong_answers(self.ballots, self.prior), self.prior)

    @cached_property
    def hyper(self) -> dict[str, Summary | list[Summary]]:
        """Of right and wrong, and how often wrong answers agree."""
        return {**super().hyper, WRONG: self.wrong.summary}

    def joint(self, size: int, rng: Rng) -> VoteDraws:
        """Return joint draws, with p."""
        ks, most, cells, wrong = self.ks, max(self.ks), self.model.cells, self.wrong
        basis = tuple(RightVotes(most, j + 1) for j in range(most))
        right = Posterior(self.model, basis, min(1.0, _MANY / most)).draw(size, rng, True)
        assert right.p is not None
        number = min(size, _SHARES)
        point = rng.permutation(systematic_resample(wrong.points.weight, number, rng))
        chain = rng.permutation(size) % number
        values = self._at_questions(ks, right.p, point, chain, rng)
        if self.model.resampled:
            like, new = cells.means_anew(values, rng)
        else:
            like, new = self._of_new(ks, right, point[chain])
        both, whole = self._together(values, like, new)
        c, _ = wrong.parameters(wrong.points.theta[point])
        hyper = right.hyper | {WRONG: wrong.agreement(c)[chain]}
        groups = None if right.groups is None else replace(right.groups, metrics=both)
        return VoteDraws(
            replace(right, metrics=whole, hyper=hyper, groups=groups), independent(whole, chain)
        )

    def _at_questions(
        self, ks: Sequence[int], p: Array, point: Indices, chain: Indices, rng: Rng
    ) -> Array:
        """Votes of every question at draws of p and of its wrong answers; (draws, questions, ks).

        Shares of wrong answers are drawn once for each of the points, whose draws p are many.
        """
        wrong = self.wrong
        c, none = wrong.parameters(wrong.points.theta[point])
        values = np.empty((*p.shape, len(ks)))
        for question, of_question in enumerate(p.T):
            credits = wrong.credit(question, c, none, ks, rng)[:, chain]
            for column, (k, credit) in enumerate(zip(ks, credits, strict=True)):
                chances = _binomial(k, of_question)
                values[:, question, column] = (chances * credit[:, : k + 1]).sum(axis=1)
        return values

    def _of_new(self, ks: Sequence[int], right: Draws, point: Indices) -> tuple[Array, Array]:
        """Return votes on new questions of groups (draws, groups, ks), and of new groups.

        By credits at the points of the draws; of the largest k votes fewer are drawn without
        replacement.
        """
        most, points = max(ks), self.wrong.points
        distinct, row = np.unique(point, return_inverse=True)
        credit = np.stack([
            self.wrong.new_credit(points.theta[distinct], k) @ fewer(most, k).T for k in ks
        ], axis=2)[row, 1:]  # fmt: skip
        groups = right.metrics[:, None, :, 1]
        if right.groups is not None:
            groups = right.groups.metrics[..., 1]
        like = np.einsum("dgr,drk->dgk", groups, credit)
        return like, np.einsum("dr,drk->dk", right.metrics[:, :, -1], credit)


def independent(draws: Array, chain: Indices) -> Array:
    """Return how many independent draws have means as exact as these draws; (metrics,).

    Sums over a chain tell by how much its draws move the mean together. The fewest of all targets.

    Parameters
    ----------
    draws : ndarray, shape (draws, metrics, targets)
    chain : ndarray of int, shape (draws,)
        Of each draw.

    Examples
    --------
    Draws of a chain that are all the same are worth one.

    >>> draws = np.array([0.0, 0.0, 1.0, 1.0]).reshape(4, 1, 1)
    >>> independent(draws, np.array([0, 0, 1, 1])).tolist()
    [2.0]
    """
    gap = draws - draws.mean(axis=0)
    sums = np.zeros((int(chain.max()) + 1, *draws.shape[1:]))
    np.add.at(sums, chain, gap)
    ratio = (sums**2).sum(axis=0) / np.maximum((gap**2).sum(axis=0), 1e-300)
    return np.asarray(len(draws) / np.maximum(ratio, 1.0).max(axis=1))


def _of_draws(draws: Array) -> Numbers:
    """Mean and variances of draws (draws, metrics, targets)."""
    mean = draws.mean(axis=0)
    total = ((draws - mean) ** 2).mean(axis=0)
    trial = np.minimum(total[:, :1], total)
    return Numbers(mean, trial, total - trial)


def _binomial(k: int, p: Array) -> Array:
    """Probabilities of 0 .. k of k trials; (draws, k + 1)."""
    right = np.arange(k + 1)
    with np.errstate(divide="ignore"):
        # Finite, so that none of them right at p = 0 has the probability 1.
        log_p, log_q = (np.maximum(logs, -1e15)[:, None] for logs in (np.log(p), np.log1p(-p)))
    return np.asarray(np.exp(log_binomials(k) + right * log_p + (k - right) * log_q))


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
