"""Trials in scored levels, as PyMC variables: probabilities of levels given their expected score.

The definition is in `bayesatk.core.pooling.levels`; integrals over the expected score are sums over
tilts of the base, on a grid of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk._tools.arrays import PROBABILITY_FLOOR, Array, Ints
from bayesatk.core.pooling.levels import scaled_scores
from bayesatk.models.difficulty_laws import Betas, Tensor, log_sum
from bayesatk.models.judged_marks import DIMS

_LOGIT_STEP_MAX = 0.12  # of the expected score under an even base
_STEP_PER_ERROR = 0.3  # logits, in roots of the trials of a question
_LOGIT_SCALE = 10.0  # logits within which steps are even; they widen in proportion beyond
_TRIALS_BEYOND_GRID = 1e-5  # expected at other levels than the end level, at the ends of the grid
_NARROWEST_LAW = 0.06  # sd in logits that the grid can tell from a point
_LARGEST_LOGIT = 40.0  # of expected scores whose tilts are looked for
_BISECTIONS = 48  # of an interval of tilts, to 1e-14 of its length
_LOG_PROBABILITY_FLOOR = -1e10  # finite, so that its derivative is a number


def observe_levels(
    law: Betas,
    log_base: Tensor,
    scores: Sequence[float],
    trials: Ints,
    counts: Tensor,
    earlier: Array,
) -> None:
    """Add counts of levels, with expected scores integrated, and earlier trials at their weight.

    Parameters
    ----------
    law : Betas
        Of expected scores.
    log_base : tensor, shape (system, level)
    scores : sequence of float
    trials : ndarray of int, shape (system, question)
    counts : tensor, shape (system, question, level)
    earlier : ndarray, shape (system, question, level), or ()
    """
    most = float((trials + np.sum(earlier, axis=-1)).max(initial=1.0))

    def log_ordered(counted: Tensor, base: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        return log_counts(counted, law.like(parameters), base[:, 0], scores, most)

    def log_probability(value: Tensor, n: Tensor, base: Tensor, *parameters: Tensor) -> Tensor:
        logs = log_ordered(value + earlier, base, parameters)
        if earlier.any():
            logs = logs - log_ordered(pt.as_tensor(earlier), base, parameters)
        return logs + pt.gammaln(n + 1) - pt.gammaln(value + 1).sum(axis=-1)

    def simulate(n: Tensor, base: Tensor, *parameters: Tensor) -> Tensor:
        parts, sums = law.like(parameters[:-1]), TiltSums.of(base[:, 0], scores, most)
        weights = [
            share[..., None] + sums.log_weights(*shape)
            for shape, share in zip(parts.shapes, parts.log_shares, strict=False)
        ]
        weights += [share[..., None] for share in parts.atoms]
        by_question = [weight + pt.zeros((*trials.shape, 1)) for weight in weights]
        chances = pt.exp(pt.concatenate(by_question, axis=-1))
        node = pm.Categorical.dist(chances)
        scaled = scaled_scores(scores)
        ends = np.where(scaled == np.array([[0.0], [1.0]]), 0.0, _LOG_PROBABILITY_FLOOR)
        powers = [np.concatenate([sums.tilts[:, None] * scaled, ends])] * len(parts.shapes)
        powers = pt.as_tensor(np.concatenate([*powers, ends[: len(parts.atoms)]]))
        return pm.Multinomial.dist(n, pt.special.softmax(base + powers[node], axis=-1))

    if earlier.any():
        pm.Potential("prior_trials", log_counts(earlier, law, log_base, scores, most))
    pm.CustomDist(
        "count",
        pt.as_tensor(trials),
        log_base[:, None],
        *law.parameters,
        logp=log_probability,
        dist=simulate,
        observed=counts,
        dims=(*DIMS, "category"),
        class_name="Levels",
    )


def log_counts(
    counts: Tensor, law: Betas, log_base: Tensor, scores: Sequence[float], trials: float
) -> Tensor:
    """Return the log probability of trials in their order, shape (system, question).

    The expected scores of the questions are integrated out.

    Parameters
    ----------
    counts : tensor, shape (system, question, level)
    law : Betas
        Of expected scores.
    log_base : tensor, shape (system, level)
    scores : sequence of float
    trials : float
        Of a question, at most.
    """
    s = scaled_scores(scores)
    sums = TiltSums.of(log_base, scores, trials)
    number, total = counts.sum(axis=-1), (counts * s).sum(axis=-1)
    inner = sums.tilts * total[..., None] - number[..., None] * sums.log_sum
    ends = []
    for end, log_end in zip((0.0, 1.0), sums.log_ends, strict=True):
        all_at_end = pt.eq(counts[..., s != end].sum(axis=-1), 0.0)
        ends.append(pt.switch(all_at_end, -number * log_end, _LOG_PROBABILITY_FLOOR))
    kernel = pt.concatenate([inner, pt.stack(ends, axis=-1)], axis=-1)
    terms = [
        share + pt.logsumexp(sums.log_weights(*shape) + kernel, axis=-1)
        for shape, share in zip(law.shapes, law.log_shares, strict=False)
    ]
    terms += [share + end for share, end in zip(law.atoms, ends, strict=False)]
    return (counts * log_base[:, None]).sum(axis=-1) + log_sum(terms)


@dataclass(frozen=True)
class TiltSums:
    """A base of each system, tilted at every node of a grid.

    Parameters
    ----------
    tilts : ndarray, shape (nodes,)
    log_sum, log_p, log_q, log_width : tensor, shape (system, 1, nodes)
        Log of the tilted base's sum; of the expected score and of its complement; and of the
        distance between expected scores, over p q.
    log_ends : tuple of tensor, shape (system, 1)
        Log of the base's sums over the lowest and the highest levels.
    """

    tilts: Array
    log_sum: Tensor
    log_p: Tensor
    log_q: Tensor
    log_width: Tensor
    log_ends: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, log_base: Tensor, scores: Sequence[float], trials: float) -> "TiltSums":
        """Sum the tilts of bases (system, level), for questions of up to so many trials."""
        s = scaled_scores(scores)
        tilts, gaps = _even_tilts(s, trials)
        powers = log_base[:, None, None] + tilts[:, None] * s
        log_sum = pt.logsumexp(powers, axis=-1)
        complement = 1.0 - s
        log_p, log_q = (_log_mean(powers, side) - log_sum for side in (s, complement))
        vector = pt.exp(powers - log_sum[..., None])
        p, q = pt.exp(log_p), pt.exp(log_q)
        squares = ((vector * side**2).sum(axis=-1) for side in (s, complement))
        below, above = (square - mean**2 for square, mean in zip(squares, (p, q), strict=True))
        variance = pt.maximum(
            pt.switch(pt.lt(p, 0.5), below, above), PROBABILITY_FLOOR
        )  # nothing cancels
        log_width = pt.log(variance) - log_p - log_q + np.log(gaps)
        lowest, highest = (
            pt.logsumexp(log_base[:, s == end], axis=1, keepdims=True) for end in (0.0, 1.0)
        )
        return cls(tilts, log_sum, log_p, log_q, log_width, (lowest, highest))

    def log_weights(self, a: Tensor, b: Tensor) -> Tensor:
        """Log probabilities of the nodes under Betas (system, question), then of both tails."""
        a, b = a[..., None], b[..., None]
        # A law that is narrower than the grid can tell is widened to what it can, with its mean.
        total_max = (a + b) ** 2 / (_NARROWEST_LAW**2 * a * b)
        factor = pt.minimum(total_max / (a + b), 1.0)
        a, b = a * factor, b * factor
        inside = a * self.log_p + b * self.log_q
        half = 0.5 * pt.exp(self.log_width)
        below = inside[..., :1] - a * half[..., :1] - pt.log(a)
        above = inside[..., -1:] - b * half[..., -1:] - pt.log(b)
        logs = pt.concatenate([inside + self.log_width, below, above], axis=-1)
        return logs - pt.logsumexp(logs, axis=-1, keepdims=True)


def _even_tilts(s: Array, trials: float) -> tuple[Array, Array]:
    """Tilts of an even base, at logits of p whose steps widen outwards, and the steps of tilts."""
    scale = np.unique(s)
    end_gap, trials = min(scale[1], 1.0 - scale[-2]), max(trials, 1.0)
    end_logit = np.log(trials / (_TRIALS_BEYOND_GRID * end_gap)) + 1.2 * _LOGIT_SCALE
    end = float(np.arcsinh(end_logit / _LOGIT_SCALE))
    step = min(_LOGIT_STEP_MAX, _STEP_PER_ERROR / np.sqrt(trials)) / _LOGIT_SCALE
    x = np.linspace(-end, end, 2 * int(np.ceil(end / step)) + 1)
    wanted = _LOGIT_SCALE * np.sinh(x)
    low, high = (np.full(len(wanted), sign * (wanted[-1] + 8.0) / end_gap) for sign in (-1.0, 1.0))
    for _ in range(80):  # bisections
        middle = 0.5 * (low + high)
        power = middle[:, None] * scale
        vector = np.exp(power - power.max(axis=1, keepdims=True))
        logits = np.log(vector @ scale + PROBABILITY_FLOOR) - np.log(
            vector @ (1.0 - scale) + PROBABILITY_FLOOR
        )
        low, high = np.where(logits < wanted, middle, low), np.where(logits < wanted, high, middle)
    tilts = 0.5 * (low + high)
    power = tilts[:, None] * scale
    vector = np.exp(power - power.max(axis=1, keepdims=True))
    vector /= vector.sum(axis=1, keepdims=True)
    mean, complement = vector @ scale, vector @ (1.0 - scale)
    product = np.maximum(mean * complement, PROBABILITY_FLOOR)
    below, above = vector @ scale**2 - mean**2, vector @ (1.0 - scale) ** 2 - complement**2
    variance = np.maximum(np.where(mean < 0.5, below, above), PROBABILITY_FLOOR)
    # Steps of the logit over its derivative, the variance of the score over p q.
    return tilts, _LOGIT_SCALE * np.cosh(x) * (x[1] - x[0]) * product / variance


def _log_mean(powers: Tensor, values: Array) -> Tensor:
    """Log of the sum over levels of values (levels,), none negative, times exp(powers)."""
    positive = values > 0.0
    return pt.logsumexp(powers[..., positive] + np.log(values[positive]), axis=-1)


def level_vectors(p: Tensor, log_base: Tensor, scores: Sequence[float]) -> Tensor:
    """Return level probabilities of questions (systems, questions, levels) given expected scores.

    The tilts are found by bisection, which works for every base and score.

    Parameters
    ----------
    p : tensor, shape (systems, questions)
    log_base : tensor, shape (systems, levels)
    scores : sequence of float
    """
    s = scaled_scores(scores)
    scale = np.unique(s)
    inside = pt.clip(p, 1e-16, 1.0 - 1e-16)
    wanted = pt.log(inside) - pt.log1p(-inside)
    farthest = _LARGEST_LOGIT / min(scale[1], 1.0 - scale[-2])
    low, high = pt.zeros_like(wanted) - farthest, pt.zeros_like(wanted) + farthest
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        powers = log_base[:, None] + middle[..., None] * s
        lower = pt.lt(_log_mean(powers, s) - _log_mean(powers, 1.0 - s), wanted)
        low, high = pt.switch(lower, middle, low), pt.switch(lower, high, middle)
    tilt = 0.5 * (low + high)
    return pt.special.softmax(log_base[:, None] + tilt[..., None] * s, axis=-1)
