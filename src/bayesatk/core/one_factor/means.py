"""Metrics of systems that share the difficulty of questions: draws of their means.

Given its parameters and a question's difficulty, a system's success probability is Beta, and again
Beta given its trials: with mean ``(m + c r) / (1 + n r)`` and ``r / (1 + n r)`` in place of m and
r. So the expectation of any metric is one function of two numbers:
`bayesatk.core.question.expected_credit`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from bayesatk.core.one_factor.model import Likelihood
from bayesatk.core.question.expected_credit import FARTHEST, ExpectedCredit
from bayesatk.metrics.credit import Array, Credit

Ints = NDArray[np.int64]
_DRAWN = 3e7  # success probabilities that are drawn one by one; of more, the mean is normal


def population_means(credits: Sequence[Credit], theta: Array) -> Array:
    """Return expectations over questions like these, (draws, systems, credits)."""
    step = min(0.3, 1.0 / float(np.exp(theta[:, 1].max())))
    z = np.arange(-6.0, 6.0 + step, step)
    weight = np.exp(-0.5 * z**2)
    weight /= weight.sum()
    slope = np.exp(theta[:, 1])
    ends = float((theta[:, 0] - 6.0 * slope).min()), float((theta[:, 0] + 6.0 * slope).max())
    log_r = theta[:, 2]
    tables = [
        ExpectedCredit.of(credit, ends, (float(log_r.min()), float(log_r.max())))
        for credit in credits
    ]
    means = np.zeros((len(theta), theta.shape[2], len(credits)))
    for node, share in zip(z, weight, strict=True):
        x = theta[:, 0] + slope * node
        for i, table in enumerate(tables):
            means[:, :, i] += share * table.mean(x, log_r)
    return means


@dataclass(frozen=True)
class QuestionMeans:
    """Draws of means over these questions.

    Parameters
    ----------
    likelihood : Likelihood
    successes, trials : ndarray of int, shape (systems, questions)
        Successes are marks where judges err.
    credits : sequence of Credit
    """

    likelihood: Likelihood
    successes: Ints
    trials: Ints
    credits: Sequence[Credit]

    def draw(self, theta: Array, latents: Sequence[object], rng: np.random.Generator) -> Array:
        """Means of every metric given parameters; (draws, systems, metrics).

        Parameters
        ----------
        theta : ndarray
        latents : sequence of callable
            ``latent(p)`` of each metric.
        rng : numpy.random.Generator
        """
        systems, questions = self.trials.shape
        # The mean of 200 questions may be taken as normal, given parameters and difficulties; its
        # variance is averaged over some draws of the parameters.
        one_by_one = len(theta) * self.trials.size <= _DRAWN or questions < 200
        noise_draws = min(8, len(theta))
        means = np.empty((len(theta), systems, len(self.credits)))
        tables = [] if one_by_one else self._expected(theta[:, :, :systems])
        noise = np.zeros((systems, len(self.credits)))
        for i, parameters in enumerate(theta):
            z = self.likelihood.draw_difficulties(parameters, rng)
            right = self._right(parameters, z, rng)
            logits, log_r = self._posterior(parameters[:, :systems], z, right)
            if one_by_one:
                p = _draw_beta(logits, log_r, rng)
                for j, latent in enumerate(latents):
                    means[i, :, j] = latent(p).mean(axis=1)  # type: ignore[operator]
                continue
            for j, table in enumerate(tables):
                means[i, :, j] = table.mean(logits, log_r).mean(axis=1)
                if i < noise_draws:
                    noise[:, j] += table.variance(logits, log_r).sum(axis=1) / questions**2
        if not one_by_one:
            noise = np.sqrt(noise / noise_draws)
            means = np.clip(means + noise * rng.standard_normal(means.shape), 0.0, 1.0)
        return means

    def _expected(self, theta: Array) -> list[ExpectedCredit]:
        """Tables that hold for all cells and draws."""
        most = float(self.trials.max())
        low = float(np.min(theta[:, 2] - np.logaddexp(0.0, theta[:, 2] + np.log(max(most, 1.0)))))
        log_r = low, float(theta[:, 2].max())
        return [ExpectedCredit.of(credit, (-FARTHEST, FARTHEST), log_r) for credit in self.credits]

    def _right(self, theta: Array, z: Array, rng: np.random.Generator) -> Ints:
        """Successes: drawn, where judges that err marked the trials."""
        marking = self.likelihood.counts.marking
        if marking is None:
            return self.successes
        nodes = self.likelihood.z
        node = np.searchsorted(nodes, z)
        return marking.draw_right(theta, nodes, node, self.successes, self.trials, rng)

    def _posterior(self, theta: Array, z: Array, successes: Ints) -> tuple[Array, Array]:
        """Logit of the mean, and log r, of success probabilities given their trials."""
        x = theta[0][:, None] + np.exp(theta[1])[:, None] * z
        r = np.exp(theta[2])[:, None]
        right, wrong = expit(x) + successes * r, expit(-x) + (self.trials - successes) * r
        with np.errstate(divide="ignore"):
            logits = np.clip(np.log(right) - np.log(wrong), -600.0, 600.0)
        return logits, theta[2][:, None] - np.log1p(self.trials * r)


def _draw_beta(logits: Array, log_r: Array, rng: np.random.Generator) -> Array:
    total, least = np.exp(-log_r), 5e-324
    alpha, beta = (
        np.maximum(expit(logits) * total, least),
        np.maximum(expit(-logits) * total, least),
    )
    return np.asarray(rng.beta(alpha, beta))
