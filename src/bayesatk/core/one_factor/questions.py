"""Questions given the parameters of the systems that share them: cells, misfit, means of metrics.

Given its parameters and a question's difficulty, a system's success probability is Beta, and again
Beta given its trials: with mean ``(m + c r) / (1 + n r)`` and ``r / (1 + n r)`` in place of m and
r. So the expectation of any metric is one function of two numbers:
`bayesatk.core.question.expected_credit`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from scipy.special import expit

from bayesatk.core.one_factor.chances import log_shares
from bayesatk.core.one_factor.model import Counts, Likelihood
from bayesatk.core.question.bernstein import fewest, latent_means
from bayesatk.core.question.beta_binomial import beta_of
from bayesatk.core.question.expected_credit import FARTHEST, ExpectedCredit
from bayesatk.metrics.credit import Array, Credit

Ints = NDArray[np.int64]
_HELD = 200_000  # success probabilities at once, which then stay in the cache
_DRAWN = 2.0  # cells for each distinct count and node: with more, means are normal
_LEAST = 5e-324


@dataclass(frozen=True)
class Cells:
    """Posterior of questions and of success probabilities, given parameters.

    Parameters
    ----------
    difficulty, difficulty_variance : ndarray, shape (questions,)
        Of ``-z``, larger is harder, if neither all systems nor none solve it.
    mean, variance : ndarray, shape (systems, questions)
        Of success probabilities.
    """

    difficulty: Array
    difficulty_variance: Array
    mean: Array
    variance: Array

    @classmethod
    def given(cls, likelihood: Likelihood, theta: Array) -> "Cells":
        """Return them at parameters (3, columns)."""
        counts, z = likelihood.counts, likelihood.z
        mean, square = _by_column(counts, theta, z)
        rows, systems = counts.column.shape
        untried = len(counts.system) + np.arange(systems)
        column = np.where(counts.column >= 0, counts.column, untried)
        weight = likelihood.difficulties(theta)
        inner, inner_z = likelihood.inner(theta)
        first_z, second_z = inner @ inner_z, inner @ inner_z**2
        first, second = np.empty((2, systems, rows))
        for system, members in enumerate(column.T):
            first[system] = np.einsum("rk,rk->r", weight, mean[members])
            second[system] = np.einsum("rk,rk->r", weight, square[members])
        row = counts.which
        return cls(
            -first_z[row], np.maximum(second_z - first_z**2, 0.0)[row],
            first[:, row], np.maximum(second - first**2, 0.0)[:, row],
        )  # fmt: skip


def _by_column(counts: Counts, theta: Array, z: Array) -> tuple[Array, Array]:
    """First and second moment of p at every node: of distinct counts, then of no trials."""
    cells = counts.system, counts.successes, counts.trials
    if counts.marking is None:
        mean, square = _moments(theta, z, *cells)
    else:
        mean, square = np.empty((2, len(counts.system), len(z)))
        for members, share in counts.marking.right_given_marked(theta, z, *cells):
            right = np.arange(len(share))
            system, trials = np.full((2, len(share)), [[counts.system[members[0]]], [right[-1]]])
            moments = _moments(theta, z, system, right, trials)
            mean[members], square[members] = (
                np.einsum("tck,tk->ck", share, moment) for moment in moments
            )
    systems = np.arange(counts.systems)
    alone = _moments(theta, z, systems, 0 * systems, 0 * systems)
    return np.concatenate([mean, alone[0]]), np.concatenate([square, alone[1]])


def _moments(
    theta: Array, z: Array, system: Ints, successes: Ints, trials: Ints
) -> tuple[Array, Array]:
    """First and second moment of p given successes, (counts, nodes)."""
    x = theta[0, system, None] + np.exp(theta[1, system, None]) * z
    r = np.exp(theta[2, system])[:, None]
    right, trials = successes[:, None], trials[:, None]
    mean = (expit(x) + right * r) / (1.0 + trials * r)
    failure = (expit(-x) + (trials - right) * r) / (1.0 + trials * r)
    icc = r / (1.0 + trials * r)
    return mean, mean**2 + mean * failure * icc / (1.0 + icc)


def misfit(likelihood: Likelihood, theta: Array, direction: Array) -> Array:
    """Standardised lack of fit of every question along a direction over systems, (questions,).

    ``sum_s direction_s (c_s - n_s E[m_s])`` over its sd, with the difficulty expected from all
    systems; c_s are marks, and m_s the rate of marks, where judges err. Negative where systems with
    a large weight do worse than its difficulty says, and those with a small one better.
    """
    counts, z = likelihood.counts, likelihood.z
    weight = likelihood.difficulties(theta)
    tried = counts.column >= 0
    column = np.where(tried, counts.column, 0)
    right = np.where(tried, counts.successes[column], 0)
    trials = np.where(tried, counts.trials[column], 0)
    low, width = mark_rates(counts, theta)
    theta = theta[:, : counts.systems]
    rho = expit(theta[2])
    total, variance = np.zeros((2, len(column)))
    for node, share in zip(z, weight.T, strict=True):
        m = expit(theta[0] + np.exp(theta[1]) * node)
        mark = low + width * m
        total += share * ((right - trials * mark) @ direction)
        # Two trials of a question depend on each other through p, by rho m (1 - m).
        together = np.maximum(trials - 1, 0) * rho * width**2 * m * (1.0 - m)
        spread = trials * (mark * (1.0 - mark) + together)
        variance += share * (spread @ direction**2)
    standardised = total / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    return np.asarray(standardised[counts.which])


def mark_rates(counts: Counts, theta: Array) -> tuple[Array, Array]:
    """Return false positive rates, and by how much sensitivities exceed them, by system."""
    if counts.marking is None:
        return np.zeros(counts.systems), np.ones(counts.systems)
    s, f = counts.marking.rates(theta)
    return f, s - f


def simulate_counts(
    likelihood: Likelihood, theta: Array, trials: Ints, rng: np.random.Generator
) -> Ints:
    """Successes of new questions with these trials (systems, questions), or marks.

    Parameters
    ----------
    likelihood : Likelihood
    theta : ndarray, shape (3, columns)
    trials : ndarray of int, shape (systems, questions)
    rng : numpy.random.Generator
    """
    parameters = theta[:, : len(trials)]
    z = likelihood.draw_z(theta, trials.shape[1], rng)
    x = np.clip(parameters[0][:, None] + np.exp(parameters[1])[:, None] * z, -600.0, 600.0)
    low, width = mark_rates(likelihood.counts, theta)
    p = low[:, None] + width[:, None] * rng.beta(*beta_of(x, parameters[2][:, None]))
    return np.asarray(rng.binomial(trials, p))


def population_means(credits: Sequence[Credit], likelihood: Likelihood, theta: Array) -> Array:
    """Return expectations over questions like these, (draws, systems, credits).

    Parameters
    ----------
    credits : sequence of Credit
    likelihood : Likelihood
    theta : ndarray, shape (draws, 3, columns)
    """
    shares = np.exp(log_shares(theta, likelihood.atoms))
    theta = theta[:, :, : likelihood.counts.systems]
    step = min(0.3, 1.0 / float(np.exp(theta[:, 1].max())))
    z = np.arange(-6.0, 6.0 + step, step)
    weight = np.exp(-0.5 * z**2)
    weight /= weight.sum()
    slope = np.exp(theta[:, 1])
    ends = float((theta[:, 0] - 6.0 * slope).min()), float((theta[:, 0] + 6.0 * slope).max())
    log_r = theta[:, 2]
    few, coefficients = fewest(credits)
    tables = [
        ExpectedCredit.of(credit, ends, (float(log_r.min()), float(log_r.max()))) for credit in few
    ]
    means = np.zeros((len(theta), theta.shape[2], len(few)))
    for node, share in zip(z, weight, strict=True):
        x = theta[:, 0] + slope * node
        for i, table in enumerate(tables):
            means[:, :, i] += share * table.mean(x, log_r)
    at_ends = np.array([[credit.vector[end] for credit in credits] for end in (0, -1)], float)
    solved = shares[:, :2] @ at_ends  # p is 0 or 1
    return np.asarray(solved[:, None] + shares[:, 2, None, None] * (means @ coefficients))


@dataclass(frozen=True)
class QuestionMeans:
    """Draws of means over these questions.

    Parameters
    ----------
    likelihood : Likelihood
    successes, trials : ndarray of int, shape (systems, questions)
        Successes are marks where judges err.
    credits : sequence of Credit
    weight : ndarray, shape (questions,), optional
        Of the questions in the means; default: all alike.
    """

    likelihood: Likelihood
    successes: Ints
    trials: Ints
    credits: Sequence[Credit]
    weight: Array | None = None

    def draw(self, theta: Array, rng: np.random.Generator) -> Array:
        """Means of every metric given parameters; (draws, systems, metrics)."""
        likelihood, systems = self.likelihood, len(self.trials)
        # The mean of 200 questions may be taken as normal, given parameters and difficulties. That
        # pays where cells share counts and nodes.
        shared = self.trials.size > _DRAWN * likelihood.states
        alike = likelihood.counts.marking is None and self.weight is None
        if shared and alike and self.trials.shape[1] >= 200:
            return self._normal(theta, rng)
        means = np.empty((len(theta), systems, len(self.credits)))
        weight = np.ones(self.trials.shape[1]) if self.weight is None else self.weight
        share = weight[:, None] / weight.sum()
        step = max(1, _HELD // self.trials.size)
        for start in range(0, len(theta), step):
            block = slice(start, start + step)
            parameters = theta[block]
            z = likelihood.draw_difficulties(parameters, rng)
            right = self._right(parameters, z, rng)
            mu, log_a, log_r = np.moveaxis(parameters[:, :, :systems], 1, 0)[..., None]
            x, total = mu + np.exp(log_a) * z[:, None], np.exp(-log_r)
            alpha, beta = expit(x) * total + right, expit(-x) * total + (self.trials - right)
            p = rng.beta(np.maximum(alpha, _LEAST), np.maximum(beta, _LEAST))
            sums = latent_means(self.credits, p.reshape(-1, p.shape[2]), share)
            means[block] = sums.reshape(means[block].shape)
        return means

    def _normal(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return the same as `draw`, normal given how many questions are at every node.

        The variance given these is averaged over some draws of the parameters.
        """
        counts, (systems, questions) = self.likelihood.counts, self.trials.shape
        noise_draws = min(8, len(theta))
        tables = self._expected(theta[:, :, :systems])
        means = np.zeros((len(self.credits), len(theta) * systems))
        noise = np.zeros((len(self.credits), systems))
        for part, block, _, weight in self.likelihood.by_block(theta):
            located = rng.multinomial(block.repeats.astype(int)[:, None], weight)
            untried = csr_array((block.column < 0).astype(float))
            incidence = hstack([csr_array(block.incidence), untried], format="csr")
            by_column = incidence.T @ located.reshape(len(located), -1)
            by_column = by_column.reshape(-1, *located.shape[1:])
            column, point, node = np.nonzero(by_column)
            share = by_column[column, point, node] / questions
            system, right, trials = (
                np.concatenate([amounts[block.columns], others])[column]
                for amounts, others in (
                    (counts.system, np.arange(systems)),
                    (counts.successes, np.zeros(systems, int)),
                    (counts.trials, np.zeros(systems, int)),
                )
            )
            point += part.start
            cells = theta[point, :, system], self.likelihood.z[block.nodes[node]], right, trials
            logits, log_r = _logit_and_log_r(*cells)
            place, first = point * systems + system, point < noise_draws
            for j, table in enumerate(tables):
                value = share * table.mean(logits, log_r)
                means[j] += np.bincount(place, value, means.shape[1])
                spread = share[first] * table.variance(logits[first], log_r[first]) / questions
                noise[j] += np.bincount(system[first], spread, systems) / noise_draws
        found = means.reshape(-1, len(theta), systems).transpose(1, 2, 0)
        found = found + np.sqrt(noise.T) * rng.standard_normal(found.shape)
        return np.asarray(np.clip(found, 0.0, 1.0))

    def _expected(self, theta: Array) -> list[ExpectedCredit]:
        """Tables that hold for all cells and draws."""
        most = float(self.trials.max())
        low = float(np.min(theta[:, 2] - np.logaddexp(0.0, theta[:, 2] + np.log(max(most, 1.0)))))
        log_r = low, float(theta[:, 2].max())
        return [ExpectedCredit.of(credit, (-FARTHEST, FARTHEST), log_r) for credit in self.credits]

    def _right(self, theta: Array, z: Array, rng: np.random.Generator) -> Ints:
        """Successes (..., systems, questions): drawn, where judges that err marked the trials."""
        marking = self.likelihood.counts.marking
        if marking is None:
            return self.successes
        nodes = self.likelihood.z
        drawn = (
            marking.draw_right(point, nodes, node, self.successes, self.trials, rng)
            for point, node in zip(theta, np.searchsorted(nodes, z), strict=True)
        )
        return np.stack(list(drawn))


def _logit_and_log_r(theta: Array, z: Array, right: Ints, trials: Ints) -> tuple[Array, Array]:
    """Logit of the mean, and log r, of success probabilities given their trials.

    Parameters (cells, 3), and difficulties, right trials and trials of these cells.
    """
    mu, log_a, log_r = theta.T
    x, r = mu + np.exp(log_a) * z, np.exp(log_r)
    with np.errstate(divide="ignore"):
        logits = np.log(expit(x) + right * r) - np.log(expit(-x) + (trials - right) * r)
    return np.clip(logits, -600.0, 600.0), log_r - np.log1p(trials * r)
