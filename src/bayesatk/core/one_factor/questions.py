"""Questions given the parameters of the systems that share them: misfit, means of metrics.

Given its parameters and a question's difficulty, a system's success probability is Beta, and again
Beta given its trials: with mean ``(m + c r) / (1 + n r)`` and ``r / (1 + n r)`` in place of m and
r. So the expectation of any metric is one function of two numbers:
`bayesatk.core.question.expected_credit`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import expit

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk.core.one_factor.chances import log_shares
from bayesatk.core.one_factor.model import FAR, Counts, Likelihood
from bayesatk.core.one_factor.observed import Observed
from bayesatk.core.pooling.marks import question_rates
from bayesatk.core.question.bernstein import fewest, latent_means
from bayesatk.core.question.beta_binomial import beta_of
from bayesatk.core.question.expected_credit import FARTHEST, ExpectedCredit
from bayesatk.metrics.credit import Credit

_HELD = 200_000  # success probabilities at once, which then stay in the cache
_DRAWN = 2.0  # cells for each distinct count and node: with more, means are normal
_LEAST = 5e-324


def misfit(likelihood: Likelihood, theta: Array, direction: Array) -> Array:
    """Standardised lack of fit of every question along a direction over systems, (questions,).

    ``sum_s direction_s (c_s - n_s E[m_s])`` over its sd, with the difficulty expected from all
    systems. Where judges err c_s are marks, and m_s their rate, but of trials of known truth the
    right ones. Negative where systems with a large weight do worse than its difficulty says, and
    those with a small one better.
    """
    counts, z = likelihood.counts, likelihood.z
    weight = likelihood.difficulties(theta)
    kinds = counts.kinds[counts.column]
    right = kinds[..., 1] + kinds[..., 5:].sum(axis=2)
    marked, known = kinds[..., :2].sum(axis=2), kinds[..., 2:].sum(axis=2)
    low, width = mark_rates(counts, theta)
    theta = theta[:, : counts.systems]
    rho = expit(theta[2])
    total, variance = np.zeros((2, len(kinds)))
    for node, share in zip(z, weight.T, strict=True):
        m = expit(theta[0] + np.exp(theta[1]) * node)
        mark = low + width * m
        total += share * ((right - marked * mark - known * m) @ direction)
        # Two trials of a question depend on each other through p, by rho m (1 - m).
        pairs = (marked * width + known) ** 2 - marked * width**2 - known
        alone = marked * mark * (1.0 - mark) + known * m * (1.0 - m)
        spread = alone + pairs * rho * m * (1.0 - m)
        variance += share * (spread @ direction**2)
    standardised = total / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    return np.asarray(standardised[counts.which])


def mark_rates(counts: Counts, theta: Array) -> tuple[Array, Array]:
    """Return false positive rates, and by how much sensitivities exceed them, by system."""
    if counts.observed is None:
        return np.zeros(counts.systems), np.ones(counts.systems)
    s, f = _rates(counts.observed, theta)[:, :2].T
    return f, s - f


def _rates(observed: Observed, theta: Array) -> Array:
    """Rates of the judges of systems at parameters (3, columns); (systems, rates)."""
    return np.concatenate([
        observation.rates(observed.at(theta[None], system))
        for system, observation in enumerate(observed.by_system)
    ])  # fmt: skip


def simulate_counts(likelihood: Likelihood, theta: Array, question: Ints, rng: Rng) -> Counts:
    """Draw outcomes of new questions, or marks and labels, with the trials of some of these.

    Parameters
    ----------
    likelihood : Likelihood
    theta : ndarray, shape (3, columns)
    question : ndarray of int
        Whose trials the new questions have.
    rng : numpy.random.Generator
    """
    counts = likelihood.counts
    parameters = theta[:, : counts.systems]
    z = likelihood.draw_z(theta, len(question), rng)
    x = np.clip(parameters[0][:, None] + np.exp(parameters[1])[:, None] * z, -600.0, 600.0)
    p = rng.beta(*beta_of(x, parameters[2][:, None]))
    kinds = counts.kinds[counts.column[counts.which[question]]].swapaxes(0, 1)
    if counts.observed is None:
        trials = kinds.sum(axis=2)
        return Counts.of(rng.binomial(trials, p), trials)
    rates = _rates(counts.observed, theta)
    pairs = [np.stack(question_rates(own[None], len(question), rng))[:, 0] for own in rates]
    s, f = (np.broadcast_to(rate, p.shape) for rate in np.stack(np.broadcast_arrays(*pairs), 1))
    new = np.zeros_like(kinds)
    new[..., 1] = rng.binomial(kinds[..., :2].sum(axis=2), f + (s - f) * p)
    new[..., 0] = kinds[..., :2].sum(axis=2) - new[..., 1]
    if kinds.shape[2] > 2:  # of known truth: without a mark, and marked
        alone, marked = kinds[..., [2, 5]].sum(axis=2), kinds[..., [3, 4, 6, 7]].sum(axis=2)
        new[..., 5], right = rng.binomial(alone, p), rng.binomial(marked, p)
        new[..., 2] = alone - new[..., 5]
        new[..., 7], new[..., 4] = rng.binomial(right, s), rng.binomial(marked - right, f)
        new[..., 6], new[..., 3] = right - new[..., 7], marked - right - new[..., 4]
    trials = new.sum(axis=2)
    return Counts.of(new[..., 1], trials, counts.observed.with_kinds(new))


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


def observed_population_means(
    metrics: Sequence[Any], likelihood: Likelihood, theta: Array
) -> Array:
    """Return the same of metrics that are no functions of p alone; as `population_means`."""
    observed = likelihood.counts.observed
    assert observed is not None
    z = np.concatenate([[-FAR], np.arange(-6.0, 6.01, 0.25), [FAR]])
    weight = np.exp(replace(likelihood, z=z).log_weight(theta))
    means = np.empty((len(theta), len(observed.by_system), len(metrics)))
    step = max(1, 10 * _HELD // observed.by_system[0].floats(len(z)))
    for start in range(0, len(theta), step):
        part = slice(start, start + step)
        for system, observation in enumerate(observed.by_system):
            values = observation.new_means(metrics, *observed.at_nodes(theta[part], system, z))
            means[part, system] = np.einsum("pk,pkm->pm", weight[part], values)
    return means


@dataclass(frozen=True)
class QuestionMeans:
    """Draws of means over these questions.

    Parameters
    ----------
    likelihood : Likelihood
    successes, trials : ndarray of int, shape (systems, questions)
        Of right and wrong themselves.
    credits : sequence of Credit
    weight : ndarray, shape (questions,), optional
        Of the questions in the means; default: all alike.
    """

    likelihood: Likelihood
    successes: Ints
    trials: Ints
    credits: Sequence[Credit]
    weight: Array | None = None

    def draw(self, theta: Array, latents: Sequence[Any], rng: Rng) -> Array:
        """Means of every metric given parameters; (draws, systems, metrics).

        Parameters
        ----------
        theta : ndarray
        latents : sequence of callable
            ``latent(p)`` of each metric.
        rng : numpy.random.Generator
        """
        likelihood, systems = self.likelihood, len(self.trials)
        if likelihood.counts.observed is not None:
            return self._observed(theta, latents, rng)
        # The mean of 200 questions may be taken as normal, given parameters and difficulties. That
        # pays where cells share counts and nodes.
        shared = self.trials.size > _DRAWN * likelihood.states
        if shared and self.weight is None and self.trials.shape[1] >= 200:
            return self._normal(theta, rng)
        means = np.empty((len(theta), systems, len(self.credits)))
        weight = np.ones(self.trials.shape[1]) if self.weight is None else self.weight
        share = weight[:, None] / weight.sum()
        step = max(1, _HELD // self.trials.size)
        for start in range(0, len(theta), step):
            block = slice(start, start + step)
            parameters = theta[block]
            z = likelihood.draw_difficulties(parameters, rng)
            mu, log_a, log_r = np.moveaxis(parameters[:, :, :systems], 1, 0)[..., None]
            x, total = mu + np.exp(log_a) * z[:, None], np.exp(-log_r)
            alpha = expit(x) * total + self.successes
            beta = expit(-x) * total + (self.trials - self.successes)
            p = rng.beta(np.maximum(alpha, _LEAST), np.maximum(beta, _LEAST))
            sums = latent_means(self.credits, p.reshape(-1, p.shape[2]), share)
            means[block] = sums.reshape(means[block].shape)
        return means

    def _normal(self, theta: Array, rng: Rng) -> Array:
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

    def _observed(self, theta: Array, latents: Sequence[Any], rng: Rng) -> Array:
        """Return the same from draws by the observations of systems."""
        observed, questions = self.likelihood.counts.observed, self.trials.shape[1]
        assert observed is not None
        means = np.empty((len(theta), len(self.trials), len(latents)))
        step = max(1, 10 * _HELD // questions)
        for start in range(0, len(theta), step):
            parameters = theta[start : start + step]
            z = self.likelihood.draw_difficulties(parameters, rng)
            for system, observation in enumerate(observed.by_system):
                at = observed.at_nodes(parameters, system, np.ones(1))
                p = observation.draw(at[0], at[1] * z, observation.states.which, rng)
                for j, latent in enumerate(latents):
                    values = np.average(latent(p), axis=1, weights=self.weight)
                    means[start : start + step, system, j] = values
        return means


def _logit_and_log_r(theta: Array, z: Array, right: Ints, trials: Ints) -> tuple[Array, Array]:
    """Logit of the mean, and log r, of success probabilities given their trials.

    Parameters (cells, 3), and difficulties, right trials and trials of these cells.
    """
    mu, log_a, log_r = theta.T
    x, r = mu + np.exp(log_a) * z, np.exp(log_r)
    with np.errstate(divide="ignore"):
        logits = np.log(expit(x) + right * r) - np.log(expit(-x) + (trials - right) * r)
    return np.clip(logits, -600.0, 600.0), log_r - np.log1p(trials * r)
