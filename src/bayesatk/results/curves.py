"""Metrics of questions along covariates, by draw: the law of a result, moved on the logit scale."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit, log_softmax, logit

from bayesatk.core.pooling.difficulty import Difficulty
from bayesatk.data.columns import GROUP
from bayesatk.metrics.grid import Metric
from bayesatk.results.difficulty import difficulty_draws, flat_draws
from bayesatk.results.result import Result

Array = NDArray[np.float64]
_STEPS = 60  # of bisection
_MEDIAN_STEPS = 20  # of medians of p, each of which costs a distribution function
_FARTHEST = 100.0  # logits between which effects are looked for
_LEAST, _MOST = 1e-300, 1e300  # of a Beta parameter


class Curve(Protocol):
    """Distribution of p of questions at logits, in every draw."""

    def average(self, metric: Metric, x: Array) -> Array:
        """Return the expected metric of a question at logits (draws, ...)."""
        ...


@dataclass(frozen=True)
class RightWrongCurve:
    """Betas and atoms at 0 and 1, those of all groups together.

    Parameters
    ----------
    share, shift, ratio : ndarray, shape (draws, components)
        Of the Betas: ``shift`` is the logit of the mean less that of the whole law, and ``ratio``
        is icc / (1 - icc).
    never, always : ndarray, shape (draws,)
    """

    share: Array
    shift: Array
    ratio: Array
    never: Array
    always: Array

    @property
    def simple(self) -> bool:
        """Whether it is one Beta around the logit."""
        return self.share.shape[1] == 1 and not (self.shift.any() or self.never.any()
                                                 or self.always.any())  # fmt: skip

    def betas(self, x: Array) -> tuple[Array, Array]:
        """Parameters of the Betas at logits (draws, ...); (draws, ..., components)."""
        ones = (1,) * (x.ndim - 1)
        shift, ratio = (part.reshape(len(part), *ones, -1) for part in (self.shift, self.ratio))
        moved = x[..., None] + shift
        alpha, beta = (np.clip(expit(own) / ratio, _LEAST, _MOST) for own in (moved, -moved))
        return alpha, beta

    def average(self, metric: Metric, x: Array) -> Array:
        """As of `Curve`."""
        ones, vector = (1,) * (x.ndim - 1), metric.credit.vector
        values = np.asarray(metric.predictive(*self.betas(x)))
        total = (self.share.reshape(len(x), *ones, -1) * values).sum(axis=-1)
        ends = self.never * vector[0] + self.always * vector[-1]
        return np.asarray(total + ends.reshape(len(x), *ones))

    def below(self, p: Array | float, x: Array) -> Array:
        """Probability that a question at logits (draws, ...) has at most this p."""
        alpha, beta = self.betas(x)
        ones = (1,) * (x.ndim - 1)
        at = np.broadcast_to(p, x.shape)[..., None]
        inside = self.share.reshape(len(x), *ones, -1) * _cdf(alpha, beta, at)
        whole = self.always.reshape(len(x), *ones) * (at[..., 0] >= 1.0)
        return np.asarray(inside.sum(axis=-1) + self.never.reshape(len(x), *ones) + whole)

    def median(self, x: Array) -> Array:
        """Median of p at logits (draws, ...)."""
        low, high = np.zeros(x.shape), np.ones(x.shape)
        for _ in range(_MEDIAN_STEPS):
            middle = 0.5 * (low + high)
            enough = self.below(middle, x) >= 0.5
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return 0.5 * (low + high)


def _cdf(alpha: Array, beta: Array, p: Array) -> Array:
    """Distribution function of Betas; of very narrow ones a step at the mean."""
    narrow = alpha + beta > 1e8
    step = (alpha <= p * (alpha + beta)).astype(float)
    values = betainc(np.where(narrow, 1.0, alpha), np.where(narrow, 1.0, beta), p)
    return np.where(narrow, step, values)


@dataclass(frozen=True)
class CategoryCurve:
    """Dirichlets whose means are tilted, those of all groups with their shares.

    Parameters
    ----------
    mean : ndarray, shape (draws, categories)
        At a logit of zero.
    ratio : ndarray, shape (draws,)
    share : ndarray, shape (groups,)
    effect : ndarray, shape (draws, groups)
    scores : ndarray, shape (categories,)
    """

    mean: Array
    ratio: Array
    share: Array
    effect: Array
    scores: Array

    def _means(self, x: Array) -> Array:
        """Mean vectors at logits (draws, ..., groups); one more axis, of categories."""
        scaled = (self.scores - self.scores.min()) / np.ptp(self.scores)
        logs = np.log(np.maximum(self.mean, _LEAST))
        logs = logs.reshape(len(x), *[1] * (x.ndim - 1), -1)
        return np.exp(log_softmax(logs + x[..., None] * scaled, axis=-1))

    def average(self, metric: Metric, x: Array) -> Array:
        """As of `Curve`."""
        ones = (1,) * (x.ndim - 1)
        means = self._means(x[..., None] + self.effect.reshape(len(x), *ones, -1))
        alpha = np.maximum(means / self.ratio.reshape(len(x), *ones, 1, 1), _LEAST)
        values = metric.category_credit.predictive(alpha.reshape(-1, len(self.scores)), self.scores)
        return np.asarray(values.reshape(means.shape[:-1]) @ self.share)

    def mean_scores(self, x: Array) -> Array:
        """Mean score of questions at logits."""
        return self._means(x) @ self.scores


def curve_of(result: Result, system: int) -> tuple[Array, Any]:
    """Draws of the coefficients of a system, and the law around the logit that they give.

    Questions are of the groups of the result, with the weights of these.

    Returns
    -------
    coefficients : ndarray, shape (draws, coefficients)
    curve : RightWrongCurve or CategoryCurve
    """
    coefficients = flat_draws(result.posterior["coefficients"], system)
    grouping = result.grouping
    share = np.ones(1) if grouping is None else grouping.shares(result.weight)
    if result.scale.axes:
        icc = result.hyper("icc", system)
        law = CategoryCurve(
            flat_draws(result.posterior["mean_p"], system), _ratio(icc), share,
            np.zeros((len(icc), 1)), result.scores,
        )  # fmt: skip
        if grouping is None:
            return coefficients, law
        means = _group_means(result, system)
        effect = _crossing(lambda x: law.mean_scores(x) >= means, means.shape)
        return coefficients, CategoryCurve(law.mean, law.ratio, share, effect, law.scores)
    return coefficients, _right_wrong(result, system, share)


def _right_wrong(result: Result, system: int, share: Array) -> RightWrongCurve:
    """Betas and atoms of a law of right and wrong."""
    difficulty = difficulty_draws(result.tree, system) if "difficulty" in result.tree else None
    icc = result.hyper("icc", system)
    zero, one = np.zeros(len(icc)), np.ones(len(icc))
    curve = RightWrongCurve(one[:, None], zero[:, None], _ratio(icc)[:, None], zero, zero)
    centre = None
    if difficulty is not None:
        centre = _logit(difficulty.overall[0])
        shift = np.where(difficulty.share > 0.0, _logit(difficulty.mean) - centre[:, None], 0.0)
        curve = RightWrongCurve(
            difficulty.share, shift, _ratio(difficulty.icc), difficulty.never, difficulty.always
        )
    if result.grouping is None:
        return curve
    means = _group_means(result, system)
    if difficulty is None:
        assert result.design is not None
        rows = flat_draws(result.posterior["coefficients"], system)
        effect = _logit(means) - result.design.basis.logits(rows)[:, :1]
    else:
        effect = _crossing(lambda x: _overall(difficulty, x) >= means, means.shape)
    return _of_groups(curve, effect, share)


def _of_groups(curve: RightWrongCurve, effect: Array, share: Array) -> RightWrongCurve:
    """Return the law of questions of all groups."""
    draws = len(effect)
    return RightWrongCurve(
        (share[:, None] * curve.share[:, None]).reshape(draws, -1),
        (effect[:, :, None] + curve.shift[:, None]).reshape(draws, -1),
        np.tile(curve.ratio, effect.shape[1]), curve.never, curve.always,
    )  # fmt: skip


def _group_means(result: Result, system: int) -> Array:
    """Mean of p, or of the score, of new questions of each group; (draws, groups)."""
    values = result.posterior["group_mean"]
    if "category" in values.dims:
        values = (values.transpose(..., "category") * result.scores).sum("category")
    return flat_draws(values.transpose("chain", "draw", "system", GROUP), system)


def _overall(difficulty: Difficulty, x: Array) -> Array:
    """Mean of p where the means of the Betas are moved by logits (draws, groups)."""
    moved = expit(_logit(difficulty.mean)[:, None] + x[..., None])
    inside = (difficulty.share[:, None] * moved).sum(axis=-1)
    return np.asarray(inside + difficulty.always[:, None])


def _crossing(reached: Any, shape: tuple[int, ...]) -> Array:
    """Logits from which a rising function is reached."""
    low, high = np.full(shape, -_FARTHEST), np.full(shape, _FARTHEST)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        above = reached(middle)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(0.5 * (low + high))


def _ratio(icc: Array) -> Array:
    """Return icc / (1 - icc), neither zero nor infinite."""
    return np.asarray(np.maximum(icc / np.maximum(1.0 - icc, 1.0 / _MOST), 1.0 / _MOST))


def _logit(p: Array) -> Array:
    return np.asarray(logit(np.clip(p, 1e-300, 1.0 - 1e-16)))
