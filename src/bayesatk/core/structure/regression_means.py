"""Metrics of questions whose success probabilities depend on covariates, given the parameters.

A question's p is Beta, and Beta again given its trials
(`bayesatk.core.question.expected_credit`). So the mean over questions has a known mean and variance
at every point of the posterior, and so has a new question with the same covariates.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from bayesatk.core.numerics.points import Points
from bayesatk.core.pooling.states import States
from bayesatk.core.question.expected_credit import FARTHEST, ExpectedCredit
from bayesatk.metrics.credit import Array, Credit

_CELLS = 2_000_000  # points times states at which expectations are worked out
_FEWEST = 300  # points, however many states there are; at the others by a polynomial through them
_PER_TERM = 3  # points for each term of it
_BLOCK = 500_000  # floats in one array: 4 MB
_LARGEST_LOGIT = 600.0  # logits, within double precision
_SMALLEST = 5e-324

Latent = Callable[[Array], Array]


@dataclass(frozen=True)
class Questions:
    """Questions at points of the posterior.

    Parameters
    ----------
    states : States
    basis : ndarray, shape (states, directions)
    points : Points
    credits : tuple of Credit
    """

    states: States
    basis: Array
    points: Points
    credits: tuple[Credit, ...]

    @property
    def weight(self) -> Array:
        """Probabilities of the points."""
        return self.points.weight

    def prior(self, part: slice) -> tuple[Array, Array]:
        """Logit of the mean of p, and log of icc / (1 - icc), before the trials."""
        x = np.clip(self.points.logits[part] @ self.basis.T, -_LARGEST_LOGIT, _LARGEST_LOGIT)
        return x, np.clip(self.points.log_ratio[part, None], -_LARGEST_LOGIT, _LARGEST_LOGIT)

    def posterior(self, part: slice) -> tuple[Array, Array]:
        """Return the same given the trials."""
        x, log_ratio = self.prior(part)
        ratio = np.exp(log_ratio)
        right, wrong = self.states.successes, self.states.trials - self.states.successes
        with np.errstate(divide="ignore"):
            logits = np.log(expit(x) + right * ratio) - np.log(expit(-x) + wrong * ratio)
        logits = np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)
        return logits, log_ratio - np.log1p(self.states.trials * ratio)

    def blocks(self) -> Iterator[slice]:
        """Cut the points so that arrays over points and states stay small."""
        step = max(1, _BLOCK // len(self.states))
        for start in range(0, len(self.weight), step):
            yield slice(start, start + step)

    @cached_property
    def _expected(self) -> list[ExpectedCredit]:
        """Tables that hold for all points and states."""
        log_ratio = self.points.log_ratio
        most = float(self.states.trials.max(initial=1))
        low = float(np.min(log_ratio - np.logaddexp(0.0, log_ratio + np.log(max(most, 1.0)))))
        ends = low, float(log_ratio.max())
        return [ExpectedCredit.of(one, (-FARTHEST, FARTHEST), ends) for one in self.credits]

    @cached_property
    def these(self) -> Array:
        """Mean over these questions, given the parameters; (points, credits)."""
        return self._at_points(Questions.posterior, ExpectedCredit.mean, self._room)

    @cached_property
    def variance_of_these(self) -> Array:
        """Variance of the mean over these questions, given the parameters; (points, credits)."""
        found = self._at_points(Questions.posterior, ExpectedCredit.variance, _FEWEST, 2)
        return np.maximum(found, 0.0) / self.states.questions

    @cached_property
    def like_these(self) -> Array:
        """Mean over new questions with the same covariates; (points, credits)."""
        return self._at_points(Questions.prior, ExpectedCredit.mean, self._room)

    @cached_property
    def variance_of_like_these(self) -> Array:
        """Variance of the mean over as many new questions; (points, credits)."""
        found = self._at_points(Questions.prior, ExpectedCredit.variance, _FEWEST, 2)
        return np.maximum(found, 0.0) / self.states.questions

    @property
    def _room(self) -> int:
        """Points at which expectations may be worked out."""
        return max(_FEWEST, _CELLS // len(self.states))

    def _at_points(
        self,
        place: Callable[["Questions", slice], tuple[Array, Array]],
        value: Callable[[ExpectedCredit, Array, Array], Array],
        size: int,
        power: int = 1,
    ) -> Array:
        """Average a value over the questions, at so many points, and between them.

        With a power of the weights of the questions.
        """
        share = self.states.sums[power] / self.states.questions
        some = self._thinned(size)
        found = np.empty((len(some.weight), len(self.credits)))
        for part in some.blocks():
            x, log_ratio = place(some, part)
            for i, one in enumerate(self._expected):
                found[part, i] = value(one, x, log_ratio) @ share
        if some is self:
            return found
        centre, scale = some.points.theta.mean(axis=0), some.points.theta.std(axis=0) + 1e-12
        own, every = (
            _polynomial((points.theta - centre) / scale, len(some.weight) // _PER_TERM)
            for points in (some.points, self.points)
        )
        return np.asarray(every @ np.linalg.lstsq(own, found, rcond=None)[0])

    def _thinned(self, size: int) -> "Questions":
        return self if size >= len(self.weight) else replace(self, points=self.points.thinned(size))

    def expected_by_question(self) -> tuple[Array, Array]:
        """Posterior mean of p, and of the credits (questions, credits), of new questions like each.

        New questions have the same covariates.
        """
        some = self._thinned(_FEWEST)
        total = np.zeros((len(self.states), 1 + len(self.credits)))
        for part in some.blocks():
            x, log_ratio = some.prior(part)
            means = [expit(x), *(one.mean(x, log_ratio) for one in self._expected)]
            total += np.stack([some.weight[part] @ own for own in means], axis=1)
        found = total[self.states.which]
        return found[:, 0], found[:, 1:]

    def question_p(self) -> tuple[Array, Array]:
        """Posterior mean and sd of every question's success probability."""
        first, second = np.zeros((2, len(self.states)))
        for part in self.blocks():
            x, log_ratio = self.posterior(part)
            mean, weight = expit(x), self.weight[part]
            first += weight @ mean
            second += weight @ (mean**2 + mean * expit(-x) * expit(log_ratio))
        sd = np.sqrt(np.maximum(second - first**2, 0.0))
        return first[self.states.which], sd[self.states.which]

    def draw_p(self, questions: slice, rng: np.random.Generator) -> Array:
        """Draw p of some questions, once at each point; (points, questions)."""
        own = self.states.which[questions]
        some = States(self.states.counts[own], self.states.prior[own], np.ones(len(own)), own)
        x, log_ratio = Questions(some, self.basis[own], self.points, ()).posterior(slice(None))
        total = np.exp(-log_ratio)
        alpha, beta = expit(x) * total, expit(-x) * total
        return np.asarray(rng.beta(np.maximum(alpha, _SMALLEST), np.maximum(beta, _SMALLEST)))

    def draw_means(
        self, latents: Sequence[Latent], rng: np.random.Generator, p: Array | None = None
    ) -> Array:
        """Draw means over these questions, once at each point; (points, metrics)."""
        number = len(self.states.which)
        found = np.zeros((len(self.weight), len(latents)))
        step = max(1, _BLOCK // len(self.weight))
        for start in range(0, number, step):
            part = slice(start, start + step)
            some = self.draw_p(part, rng) if p is None else p[:, part]
            own = 1.0 if self.states.weight is None else self.states.weight[part]
            for i, latent in enumerate(latents):
                found[:, i] += (latent(some) * own).sum(axis=1)
        return found / number


def _polynomial(z: Array, most: int) -> Array:
    """Return a constant, the columns and, where there is room, their products, as columns."""
    products = [z[:, i] * z[:, j] for i in range(z.shape[1]) for j in range(i + 1)]
    terms = [np.ones(len(z)), *z.T]
    return np.stack(terms + products if len(terms) + len(products) <= most else terms, axis=1)
