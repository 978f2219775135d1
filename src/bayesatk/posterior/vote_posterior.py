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
from scipy.special import expit

from bayesatk._tools.arrays import Array, Flags, Indices, Ints, Rng
from bayesatk.core.engine.bootstrap import bootstrap_moments, mean_moments
from bayesatk.core.numerics.points import WeightedPoints
from bayesatk.core.numerics.weights import at_equal_steps
from bayesatk.core.pooling.states import Terms
from bayesatk.core.program.weighted_points import on_lattice
from bayesatk.core.question.ballot import (
    credit_by_right_votes,
    plurality_latent,
    plurality_posterior,
    vote_credit,
)
from bayesatk.core.question.dirichlet_multinomial import draw_probabilities
from bayesatk.core.question.expected_credit import hypergeometric_pmf
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
_MOMENT_DRAWS = 4000  # for means and variances
_SHARE_DRAWS = 400  # of the shares of wrong answers; each serves ten draws of p
_MAX_EXACT_K = 16  # votes up to which the credit given the shares is exact
_ELECTIONS_PER_DRAW = 16  # simulated for more votes
_LARGEST_LOGIT = 30.0  # of the hyperparameters: beyond it answers all agree, or all differ
_MAX_K_WITH_ALL_POINTS = 10  # votes; with more, fewer points of the hyperparameters are used
_MAX_MULTIPLICATIONS = 2e9  # for exact values at drawn probabilities
_MIN_EXACT_DRAWS = 50  # per question; votes are simulated if fewer are affordable
_VOTE_DRAWS = 400  # probabilities per question at which votes are simulated
_MAX_FLOATS_PER_BLOCK = 4_000_000  # 32 MB
_POSITIVE_FLOOR = 1e-12  # of the relative variance, and of Beta parameters


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

    def joint(self, size: int, rng: Rng) -> VoteDraws:
        """Return joint draws, with p where it is drawn."""
        raise NotImplementedError

    @cached_property
    def votes(self) -> VoteDraws:
        """The draws that means and variances come from."""
        return self.joint(_MOMENT_DRAWS, self.rng)

    @cached_property
    def numbers(self) -> Numbers:
        """Mean and variances over all questions, from draws."""
        return _numbers_from_draws(self.votes.drawn.metrics)

    @property
    def of_groups(self) -> list[Numbers]:
        """Mean and variances of means over the questions of each group; empty without groups."""
        groups = self.votes.drawn.groups
        by_group = () if groups is None else np.moveaxis(groups.metrics, 1, 0)
        return [_numbers_from_draws(metrics) for metrics in by_group]

    @property
    def prior_sensitivity(self) -> Array:
        """NaN: it is not computed for votes."""
        return np.full(self.mean.shape, np.nan)

    def distributions(self) -> Distributions:
        """None for each metric: intervals come from draws."""
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
        self,
        size: int,
        rng: Rng,
        keep_p: bool,
        alone: bool = False,
        likelihood: bool = False,
        new: Rng | None = None,
    ) -> Draws:
        """Draw everything independently; answers are no counts with a likelihood."""
        drawn = self.votes.drawn if size == _MOMENT_DRAWS else self.joint(size, rng).drawn
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
        by_group = np.clip(np.stack([cells.means(values), like], axis=-1), 0.0, 1.0)
        overall = np.einsum("hgkt,g->hkt", by_group, cells.share)
        if cells.grouped:
            overall = np.concatenate([overall, new[..., None]], axis=-1)
        return by_group, np.clip(overall, 0.0, 1.0)  # sums of shares may round to more than one


def vote_posterior(
    model: CountModel,
    ballots: Sequence[Ballots],
    prior: VotePrior,
    ks: Sequence[int],
    draws: int,
    rng: Rng,
) -> VotePosterior:
    """Return the posterior of votes under the prior of answers.

    Parameters
    ----------
    model : CountModel
        Of right trials, and of those that are not.
    ballots, prior, ks, draws, rng
        Parameters of `VotePosterior`.
    """
    posterior_class = Unpooled if isinstance(prior, AnswerPrior) else Pooled
    return posterior_class(
        model, (SUCCESS,), ballots=ballots, ks=tuple(ks), draws=draws, rng=rng, prior=prior
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Unpooled(VotePosterior):
    """Votes on questions that are independent; on the population by the bootstrap."""

    @cached_property
    def moments(self) -> "AnswerMoments":
        """Posterior moments and draws of every question."""
        return answer_moments(self.ballots, self.ks, self.prior, self.draws, self.rng)

    @cached_property
    def numbers(self) -> Numbers:
        """Of means over all questions: means exact, variances from draws of each question."""
        cells, moments = self.model.cells, self.moments
        number, weight = len(cells.which), cells.question_share * len(cells.which)
        tried = cells.questions_tried
        all_questions = Terms(np.arange(number), weight, np.ones(number))
        sample = Terms(np.flatnonzero(tried), weight[tried], np.ones(tried.sum()))
        mean, trial = mean_moments(moments.mean, moments.variance, all_questions)
        population, total = bootstrap_moments(moments.mean, moments.variance, sample)
        trial_part, zero = np.minimum(trial, total), np.zeros_like(trial)
        return Numbers(
            *(
                np.stack(pair, axis=1)
                for pair in ((mean, population), (trial, trial_part), (zero, total - trial_part))
            )
        )

    @property
    def effective_draws(self) -> dict[str, Array]:
        """Draws behind intervals, and behind the variance of each question."""
        ones = np.ones(len(self.ks))
        return {"interval_draws": self.draws * ones, "sd_draws": self.moments.pool.shape[1] * ones}

    def joint(self, size: int, rng: Rng) -> VoteDraws:
        """Return draws of means over questions, and of their bootstrap."""
        values = np.stack(
            [
                pool if len(pool) == size else pool[rng.integers(len(pool), size=size)]
                for pool in self.moments.pool
            ],
            axis=1,
        )
        _, overall = self._together(values, *self.model.cells.means_anew(values, rng))
        return VoteDraws(Draws(overall, {}), size)


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


def answer_moments(
    ballots: Sequence[Ballots],
    ks: Sequence[int],
    prior: AnswerPrior,
    draws: int,
    rng: Rng,
) -> AnswerMoments:
    """Posterior of every question; parameters as of `VotePosterior`."""
    ballots = [possible(ballot, prior) for ballot in ballots]
    affordable = int(
        _MAX_MULTIPLICATIONS / sum(_work(len(ballot.count), max(ks)) for ballot in ballots)
    )
    exact = affordable >= min(_MIN_EXACT_DRAWS, draws)
    size = min(draws, affordable) if exact else _VOTE_DRAWS
    cache: dict[tuple[object, ...], Array] = {}
    mean = np.empty((len(ballots), len(ks)))
    variance, pool = np.empty_like(mean), []
    for row, ballot in enumerate(ballots):
        key = ballot.key
        if key not in cache:
            cache[key] = plurality_posterior(
                ballot.count, ballot.correct, ks, prior.concentration, ballot.abstentions
            )
        mean[row] = cache[key]
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
            deviation, other_deviation = (
                _voted(p, ballot.correct, ks, rng) - mean[row] for _ in range(2)
            )
            variance[row] = (deviation * other_deviation).mean(axis=0)
    if not exact:  # unbiased, so single questions may fall below zero; k independent
        largest = mean * (1.0 - mean)
        share = variance.sum(axis=0) / np.maximum(largest.sum(axis=0), _POSITIVE_FLOOR)
        share = np.clip(share, _POSITIVE_FLOOR, 1.0 - 1e-9)
        variance, total = share * largest, 1.0 / share - 1.0
        drawn = rng.beta(
            np.maximum(mean * total, _POSITIVE_FLOOR),
            np.maximum((1.0 - mean) * total, _POSITIVE_FLOOR),
            (size, *mean.shape),
        )
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
    width = max(1, int(_MAX_FLOATS_PER_BLOCK / max(ks) ** 2))
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
    """The probability that exactly `right` of k trials are right, as a metric.

    Parameters
    ----------
    k, right : int
    """

    k: int
    right: int

    @property
    def credit(self) -> Credit:
        """One at `right`, else zero."""
        return _indicator_credit(self.k, self.right)


@lru_cache(maxsize=1024)
def _indicator_credit(k: int, right: int) -> Credit:
    return Credit.of(float(j == right) for j in range(k + 1))


@dataclass(frozen=True)
class WrongAnswers:
    """Posterior of the hyperparameters of wrong answers, common to all questions of a system.

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
        parts = [
            (c, answered, 1.0),
            (none, silent, 1.0),
            (self.size * c + none, self.counts.sum(axis=1), -1.0),
        ]
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
        """Posterior of the agreement of wrong answers."""
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
        for by_right_votes, k in zip(credits, ks, strict=True):
            if k <= _MAX_EXACT_K:
                rates = k * shares[:, : self.size].T
                by_right_votes[:, : k + 1] = credit_by_right_votes(rates, 0.0, k * silent, k)
            else:
                by_right_votes[:, : k + 1] = _simulated_credit(shares, self.size, k, rng)
        return credits

    def new_credit(self, theta: Array, k: int) -> Array:
        """Return the expected credit on a new question, by right votes; (points, k + 1)."""
        c, none = self.parameters(theta)
        odds = k / (k + self.size * c + none)  # of the order of the votes: nothing overflows
        sizes = np.broadcast_to(c * odds, (self.size, len(c)))
        return credit_by_right_votes(sizes, odds, none * odds, k)


def _simulated_credit(shares: Array, size: int, k: int, rng: Rng) -> Array:
    """Mean credit of simulated elections by right votes, in which the other votes come one by one.

    The first `size` shares are those of wrong answers.
    """
    half = k // 2
    credit = np.zeros((len(shares), k + 1))
    credit[:, half + 1 :] = 1.0
    repeated_shares = np.repeat(shares, _ELECTIONS_PER_DRAW, axis=0)
    votes = np.ascontiguousarray(
        rng.multinomial(k - half, repeated_shares).T
    )  # by answer, by election
    cumulative, elections = np.cumsum(repeated_shares.T, axis=0), np.arange(len(repeated_shares))
    for right in range(half, 0, -1):
        ties = (votes[:size] == right).sum(axis=0)
        won = np.where(votes[:size].max(axis=0) > right, 0.0, 1.0 / (1.0 + ties))
        credit[:, right] = won.reshape(len(shares), -1).mean(axis=1)
        next_answer = (cumulative[:-1] < rng.random(len(repeated_shares)) * cumulative[-1]).sum(
            axis=0
        )
        votes[next_answer, elections] += 1
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
        """Posteriors of the hyperparameters, and of how often wrong answers agree."""
        return {**super().hyper, WRONG: self.wrong.summary}

    def joint(self, size: int, rng: Rng) -> VoteDraws:
        """Return joint draws, with p."""
        ks, largest_k, cells, wrong = self.ks, max(self.ks), self.model.cells, self.wrong
        basis = tuple(RightVotes(largest_k, j + 1) for j in range(largest_k))
        right = Posterior(self.model, basis, min(1.0, _MAX_K_WITH_ALL_POINTS / largest_k)).draw(
            size, rng, True
        )
        assert right.p is not None
        number = min(size, _SHARE_DRAWS)
        point = rng.permutation(at_equal_steps(wrong.points.weight, number, rng.random()))
        chain = rng.permutation(size) % number
        values = self._at_questions(ks, right.p, point, chain, rng)
        if self.model.resampled:
            like, new = cells.means_anew(values, rng)
        else:
            like, new = self._of_new(ks, right, point[chain])
        by_group, overall = self._together(values, like, new)
        c, _ = wrong.parameters(wrong.points.theta[point])
        hyper = right.hyper | {WRONG: wrong.agreement(c)[chain]}
        groups = None if right.groups is None else replace(right.groups, metrics=by_group)
        return VoteDraws(
            replace(right, metrics=overall, hyper=hyper, groups=groups), independent(overall, chain)
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
        for question, question_p in enumerate(p.T):
            credits = wrong.credit(question, c, none, ks, rng)[:, chain]
            for column, (k, credit) in enumerate(zip(ks, credits, strict=True)):
                chances = _binomial_pmf(k, question_p)
                values[:, question, column] = (chances * credit[:, : k + 1]).sum(axis=1)
        return values

    def _of_new(self, ks: Sequence[int], right: Draws, point: Indices) -> tuple[Array, Array]:
        """Return votes on new questions of groups (draws, groups, ks), and of new groups.

        By credits at the points of the draws; of the largest k votes fewer are drawn without
        replacement.
        """
        largest_k, points = max(ks), self.wrong.points
        distinct, row = np.unique(point, return_inverse=True)
        credit = np.stack(
            [self.wrong.new_credit(points.theta[distinct], k) @ fewer(largest_k, k).T for k in ks],
            axis=2,
        )[row, 1:]
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


def _numbers_from_draws(draws: Array) -> Numbers:
    """Mean and variances of draws (draws, metrics, targets)."""
    mean = draws.mean(axis=0)
    total = ((draws - mean) ** 2).mean(axis=0)
    trial = np.minimum(total[:, :1], total)
    return Numbers(mean, trial, total - trial)


def _binomial_pmf(k: int, p: Array) -> Array:
    """Probabilities of 0 .. k of k trials; (draws, k + 1)."""
    right = np.arange(k + 1)
    with np.errstate(divide="ignore"):
        # Finite, so that none of them right at p = 0 has the probability 1.
        log_p, log_q = (np.maximum(logs, -1e15)[:, None] for logs in (np.log(p), np.log1p(-p)))
    return np.asarray(np.exp(log_binomials(k) + right * log_p + (k - right) * log_q))


@lru_cache(maxsize=2048)
def fewer(many: int, few: int) -> Array:
    r"""Return the hypergeometric distribution of right trials in a subsample.

    Row :math:`r` is for :math:`r` right trials of :math:`n` (`many`), of which :math:`k` (`few`)
    are drawn without replacement:

    .. math:: P(j \mid r) = \binom{r}{j} \binom{n - r}{k - j} \Big/ \binom{n}{k}.

    Shape (many + 1, few + 1).

    Examples
    --------
    >>> fewer(2, 1).round(12).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    right = np.arange(many + 1.0)
    return hypergeometric_pmf(few, right, np.full(many + 1, float(many)))
