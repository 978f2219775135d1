"""Marks of a judge that errs, as PyMC variables: the right trials are added up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesatk._tools.arrays import Ints
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.judge_error import RATE_ICC, RATE_ICC_PRIOR, RATES
from bayesatk.models.difficulty_laws import Betas, Known, Tensor, log_rising, parameter_sum

DIMS = ("system", "question")
LOG_PROBABILITY_FLOOR = -1e10  # finite, so that its derivative is a number


@dataclass(frozen=True)
class Rate:
    """Sensitivity or false positive rate: one for all questions of a system, or Beta over them.

    Parameters
    ----------
    mean : tensor, shape (system, 1)
    shape : tuple of tensor, optional
        Beta parameters, where questions have rates of their own.
    """

    mean: Tensor
    shape: tuple[Tensor, Tensor] | None = None

    def observe(self, name: str, trials: Ints, marked: Ints) -> "Rate":
        """Add how many trials of known truth are marked right; return the rate given them."""
        data = {"observed": marked, "dims": DIMS}
        if self.shape is None:
            pm.Binomial(name, n=trials, p=self.mean, **data)
            return self
        a, b = self.shape
        pm.BetaBinomial(name, alpha=a, beta=b, n=trials, **data)
        return Rate(self.mean, (a + marked, b + trials - marked))

    @property
    def parameters(self) -> list[Tensor]:
        """All parameters, in the order that `like` takes."""
        return [self.mean] if self.shape is None else [self.mean, *self.shape]

    def like(self, parameters: Sequence[Tensor]) -> "Rate":
        """Return a rate of this kind with other parameters."""
        return Rate(parameters[0], None if self.shape is None else (parameters[1], parameters[2]))

    def log_ordered(self, marked: Tensor, unmarked: Tensor) -> Tensor:
        """Log probability of the marks of trials of one truth, in their order."""
        if self.shape is None:
            return marked * pt.log(self.mean) + unmarked * pt.log1p(-self.mean)
        a, b = self.shape
        numerator = log_rising(a, marked) + log_rising(b, unmarked)
        return numerator - log_rising(a + b, marked + unmarked)

    def draw(self, size: Any) -> Tensor:
        """Return the rates of questions as random variables without a name."""
        return self.mean if self.shape is None else pm.Beta.dist(*self.shape, size=size)


def judge_rates(judges: Sequence[JudgeRates]) -> tuple[Rate, Rate]:
    """Add sensitivity and false positive rate of the judge of every system."""
    shapes = np.array([judge.error.shapes for judge in judges])
    means = [
        pm.Beta(name, *shapes[:, column].T, dims="system")[:, None]
        for column, name in enumerate(RATES)
    ]
    if not judges[0].varying:
        return Rate(means[0]), Rate(means[1])
    total = parameter_sum(pm.Beta(RATE_ICC, *RATE_ICC_PRIOR, dims="system"), 1e-8)[:, None]
    s, f = (Rate(mean, (mean * total, (1.0 - mean) * total)) for mean in means)
    return s, f


def observe_marks(law: Betas | Known, rates: tuple[Rate, Rate], kinds: Ints) -> Betas | Known:
    """Add marks, and first the trials of known truth with their marks; return the law given truth.

    Parameters
    ----------
    law : Betas or Known
    rates : (Rate, Rate)
    kinds : ndarray, shape (system, question, kind)
        Numbers of trials of each kind, in the order of `bayesatk.data.Outcomes.kinds`.
    """
    s, f = rates
    if kinds.shape[-1] > 2:
        wrong, right = kinds[..., 2:5], kinds[..., 5:]
        number = kinds[..., 2:].sum(axis=-1)
        known_right = right.sum(axis=-1)
        law.observe("truth", number, observed=known_right, dims=DIMS)
        law = law.given(known_right, number - known_right)
        s = s.observe("marked_of_right", right[..., 1:].sum(axis=-1), right[..., 2])
        f = f.observe("marked_of_wrong", wrong[..., 1:].sum(axis=-1), wrong[..., 2])
    trials, marks = kinds[..., :2].sum(axis=-1), kinds[..., 1]
    components = (law, s, f)
    widths = np.cumsum([len(component.parameters) for component in components])

    def split(parameters: Sequence[Tensor]) -> list[Any]:
        starts = [0, *widths[:-1]]
        return [
            component.like(parameters[start:end])
            for component, start, end in zip(components, starts, widths, strict=True)
        ]

    def log_probability(value: Tensor, n: Tensor, *parameters: Tensor) -> Tensor:
        return log_marks(value, n, int(trials.max()), *split([p[..., None] for p in parameters]))

    def simulate(n: Tensor, *parameters: Tensor) -> Tensor:
        size = parameters[-1]
        truth_law, sensitivity, false_positive_rate = split(parameters[:-1])
        hits = pm.Binomial.dist(n, truth_law.draw(n.shape))
        marked = pm.Binomial.dist(hits, sensitivity.draw(n.shape), size=size)
        return marked + pm.Binomial.dist(n - hits, false_positive_rate.draw(n.shape), size=size)

    flat = [parameter for component in components for parameter in component.parameters]
    pm.CustomDist(
        "successes",
        pt.as_tensor(trials),
        *flat,
        logp=log_probability,
        dist=simulate,
        observed=marks,
        dims=DIMS,
        class_name="MarkedTrials",
    )
    return law


def log_marks(
    marks: Tensor, trials: Tensor, max_trials: int, law: Betas | Known, s: Rate, f: Rate
) -> Tensor:
    r"""Log probability of the numbers of marks, summed over the unknown right trials.

    With :math:`t` of :math:`n` trials right and :math:`h` of these marked as right,

    .. math:: P(c) = \sum_t \binom{n}{t} L(t, n - t)
              \sum_h \binom{t}{h} S(h, t - h) \binom{n - t}{c - h} F(c - h, n - t - c + h),

    where :math:`L`, :math:`S` and :math:`F` are the probabilities of right and wrong trials, and of
    marks of right and of wrong ones, in their order.

    Parameters
    ----------
    marks, trials : tensor, shape (system, question)
    max_trials : int
        Largest number of trials of a question.
    law, s, f
        With parameters of the shape (system, question, 1).
    """
    right = np.arange(max_trials + 1)
    n, c = trials[..., None], marks[..., None]
    t = pt.minimum(right, n)  # more than n cannot be right
    log_right = log_binomial(n, t) + law.log_ordered(t, n - t)
    log_right = pt.switch(right <= n, log_right, LOG_PROBABILITY_FLOOR)
    hit = np.arange(max_trials + 1)
    t, n, c = t[..., None], n[..., None], c[..., None]
    possible = (hit <= t) & (hit <= c) & (c - hit <= n - t)
    h = pt.switch(possible, hit, pt.maximum(c - n + t, 0))
    s, f = (rate.like([p[..., None] for p in rate.parameters]) for rate in (s, f))
    logs = log_binomial(t, h) + s.log_ordered(h, t - h)
    logs += log_binomial(n - t, c - h) + f.log_ordered(c - h, n - t - c + h)
    logs = pt.switch(possible, logs, LOG_PROBABILITY_FLOOR)
    return pt.logsumexp(log_right + pt.logsumexp(logs, axis=-1), axis=-1)


def log_binomial(n: Tensor, k: Tensor) -> Tensor:
    """Log of the number of ways to choose k of n."""
    return pt.gammaln(n + 1) - pt.gammaln(k + 1) - pt.gammaln(n - k + 1)
