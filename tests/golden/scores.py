"""Witness of scored categories, by importance sampling."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tests.golden.witness import (
    NODE_WEIGHTS,
    NODES,
    Array,
    beta_logit,
    bootstrapped,
    clipped_logit,
    dirichlet_ratio,
    systematic,
)


def shares_of(ratios: Array) -> Array:
    full = np.concatenate([ratios, np.zeros_like(ratios[..., :1])], -1)
    return special.softmax(full, axis=-1)


def beta_moment(a: Array, b: Array, k: int) -> Array:
    """E[p^k] under Beta(a, b)."""
    total: Any = 1.0
    for i in range(k):
        total = total * (a + i) / (a + b + i)
    return total


@dataclass
class Scored:
    """Counts of scored categories: Dirichlet questions around a Dirichlet mean vector."""

    counts: Array  # (questions, categories), by rising score
    power: Array  # fractional counts of earlier trials
    scores: Array
    law: str  # partial, none, complete
    mean: tuple[float, ...]  # concentration: of the mean vector, or of p
    share: Array  # of each question in the mean over these questions
    icc: tuple[float, float] = (1.0, 1.0)
    weighted: bool = False
    rows: Array = field(default_factory=lambda: np.zeros((0, 0)))  # covariates in their basis
    groups: NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        if self.law != "partial":
            return 0 if self.law == "none" else len(self.scores) - 1
        return len(self.scores) + self.rows.shape[1] + (self.groups is not None)

    def log_prior(self, theta: Array) -> Array:
        if self.law == "none":
            return np.zeros(len(theta))
        last = len(self.scores) - 1
        total = dirichlet_ratio(theta[:, :last], np.array(self.mean))
        if self.law == "partial":
            total = total + beta_logit(theta[:, last], self.icc)
            total = total + stats.norm.logpdf(self.slopes(theta), scale=2.5).sum(-1)
        if self.law == "partial" and self.groups is not None:
            total = total + stats.halfnorm.logpdf(np.exp(theta[:, -1])) + theta[:, -1]
        return total

    def slopes(self, theta: Array) -> Array:
        return theta[:, len(self.scores) : len(self.scores) + self.rows.shape[1]]

    def from_uniform(self, u: Array) -> Array:
        last = len(self.scores) - 1
        left, shares = np.ones(len(u)), []
        for i in range(last):
            share = special.betaincinv(self.mean[i], sum(self.mean[i + 1 :]), u[:, i])
            shares.append(left * share)
            left = left * (1 - share)
        logs = np.log(np.maximum(np.stack([*shares, left], -1), 1e-250))
        ratios = logs[:, :last] - logs[:, last:]
        if self.law == "complete":
            return ratios
        icc = clipped_logit(special.betaincinv(*self.icc, u[:, last]))
        parts = [ratios, icc[:, None], 2.5 * stats.norm.ppf(self.slopes(u))]
        if self.groups is not None:
            parts.append(
                np.log(np.maximum(stats.halfnorm.ppf(u[:, self.size - 1 : self.size]), 1e-12))
            )
        return np.concatenate(parts, -1)

    def law_of(self, theta: Array, offset: Array | None = None) -> Array:
        """Dirichlet parameters of a new question; (points, ..., categories).

        An offset of the logit is that between the highest and the lowest score.
        """
        offset = np.zeros(len(theta)) if offset is None else offset
        if self.law == "none":
            return np.broadcast_to(np.array(self.mean), (*offset.shape, len(self.mean)))
        last = len(self.scores) - 1
        extra = (len(theta), *(1,) * (offset.ndim - 1))
        weight = np.exp(-np.clip(theta[:, last], -34, 34)).reshape(*extra, 1)
        ratios = np.concatenate([theta[:, :last], np.zeros((len(theta), 1))], -1)
        places = (self.scores - self.scores[0]) / (self.scores[-1] - self.scores[0])
        logits = ratios.reshape(*extra, last + 1) + offset[..., None] * places
        return np.maximum(special.softmax(logits, axis=-1) * weight, 1e-290)

    def offsets(self, theta: Array) -> Array:
        """Offset of every question from its covariates; (points, questions)."""
        if self.law != "partial" or not self.rows.shape[1]:
            return np.zeros((len(theta), len(self.counts)))
        return self.slopes(theta) @ self.rows.T

    def log_likelihood(self, theta: Array) -> Array:
        counts = self.counts + self.power
        if self.law == "complete":
            return np.log(shares_of(theta)) @ counts.sum(0)
        if self.groups is not None and self.law == "partial":
            return special.logsumexp(self.by_node(theta), axis=-1).sum(-1)
        offset, total = self.offsets(theta), np.zeros(len(theta))
        for question, row in enumerate(counts):
            total += log_ways(self.law_of(theta, offset[:, question]), row)
        return total

    def by_node(self, theta: Array) -> Array:
        """Log likelihood of each group by node of its effect; (points, groups, nodes)."""
        assert self.groups is not None
        offset, effect = self.offsets(theta), np.exp(theta[:, -1:]) * NODES
        table = np.zeros((len(theta), self.groups.max() + 1, len(NODES))) + np.log(NODE_WEIGHTS)
        for question, row in enumerate(self.counts + self.power):
            a = self.law_of(theta, offset[:, question, None] + effect)
            table[:, self.groups[question]] += log_ways(a, row)
        return table

    def effects(self, theta: Array, rng: np.random.Generator) -> Array:
        """Draws of the effects of groups; (points, groups)."""
        pieces = []
        for start in range(0, len(theta), 2000):
            part = theta[start : start + 2000]
            table = special.softmax(self.by_node(part), axis=-1)
            node = (np.cumsum(table, -1) < rng.random((*table.shape[:2], 1))).sum(-1)
            nodes = NODES[np.minimum(node, len(NODES) - 1)]
            pieces.append(nodes * np.exp(part[:, -1:]))
        return np.concatenate(pieces)

    def moments(self, k: int, a: Array) -> tuple[Array, Array]:
        """Mean and variance of the expected best of k scores under Dirichlet(a)."""
        steps, below = np.diff(self.scores), np.cumsum(a, -1)
        size = len(steps)
        first = [beta_moment(below[..., c], below[..., -1] - below[..., c], k) for c in range(size)]
        mean: Any = self.scores[-1] - sum(s * x for s, x in zip(steps, first, strict=True))
        spread: Any = 0.0
        for c in range(size):
            for d in range(size):
                low, high = min(c, d), max(c, d)
                both = beta_moment(below[..., high], below[..., -1] - below[..., high], 2 * k)
                if low < high:
                    both = both * beta_moment(
                        below[..., low], below[..., high] - below[..., low], k
                    )
                else:
                    both = beta_moment(below[..., c], below[..., -1] - below[..., c], 2 * k)
                spread = spread + steps[c] * steps[d] * (both - first[c] * first[d])
        return mean, spread

    def value(self, k: int, p: Array) -> Array:
        below = np.minimum(np.cumsum(p, -1)[..., :-1], 1)
        return self.scores[-1] - below**k @ np.diff(self.scores)

    def statistics(
        self,
        metrics: list[str],
        targets: list[str],
        theta: Array,
        weights: Array,
        rng: np.random.Generator,
        draws: int,
    ) -> dict[tuple[str, str], tuple[float, float, Array, Array]]:
        again = systematic(weights, draws, rng)
        rng.shuffle(again)
        alike = np.full(draws, 1 / draws)
        found = {}
        if self.law == "complete":
            p = shares_of(theta)
            for metric in metrics:
                values = self.value(depth(metric), p)
                mean = float(weights @ values)
                sd = float(np.sqrt(weights @ (values - mean) ** 2))
                for target in targets:
                    found[metric, target] = (mean, sd, values, weights)
            return found
        offset = self.offsets(theta)
        if self.groups is not None and self.law == "partial":
            theta, weights = theta[again], alike
            offset = self.offsets(theta) + self.effects(theta, rng)[:, self.groups]
            again = np.arange(draws)
        law, counts = self.law_of(theta, offset), self.counts + self.power
        p = np.stack([drawn_dirichlet(law[again, q] + row, rng) for q, row in enumerate(counts)], 1)
        bootstrap = self.law == "none" or (self.weighted and not self.rows.shape[1])
        for metric in metrics:
            k = depth(metric)
            means, spreads = self.moments(k, law + counts)
            values = self.value(k, p)
            for target in targets:
                if target == "questions":
                    inner, spread = means @ self.share, spreads @ self.share**2
                    sample, share = values @ self.share, alike
                elif target == "population" and bootstrap:
                    drawn = rng.standard_exponential(values.shape) * self.share
                    sample, share = (values * drawn).sum(1) / drawn.sum(1), alike
                    if self.weighted:
                        pair = float(sample.mean()), float(sample.std())
                        found[metric, target] = (*pair, sample, share)
                        continue
                    inner, spread = bootstrapped(means, (spreads + means**2).sum(1))
                else:
                    inner = self.of_new(k, theta, law, target)
                    spread, sample, share = np.zeros(len(law)), inner, weights
                mean = float(weights @ inner)
                sd = float(np.sqrt(weights @ (spread + (inner - mean) ** 2)))
                found[metric, target] = (mean, sd, sample, share)
        return found

    def of_new(self, k: int, theta: Array, law: Array, target: str) -> Array:
        """Expected value of new questions with these covariates, in these groups or in new ones."""
        if target == "population":
            return self.moments(k, law)[0] @ self.share
        total, nodes = np.zeros(len(theta)), np.exp(theta[:, -1:]) * NODES
        columns = self.offsets(theta).T if self.rows.shape[1] else np.zeros((1, len(theta)))
        for column in columns:
            a = self.law_of(theta, column[:, None] + nodes)
            total += self.moments(k, a)[0] @ NODE_WEIGHTS / len(columns)
        return total


def log_ways(a: Array, row: Array) -> Array:
    """Log probability of trials in their order under Dirichlet(a)."""
    logs = (special.gammaln(a + row) - special.gammaln(a)).sum(-1)
    return logs + special.gammaln(a.sum(-1)) - special.gammaln(a.sum(-1) + row.sum())


def depth(metric: str) -> int:
    return 1 if metric == "bayes" else int(metric.partition("@")[2])


def drawn_dirichlet(a: Array, rng: np.random.Generator) -> Array:
    """Draws of Dirichlet(a), by rows; of tiny parameters too."""
    logs = np.log(rng.standard_gamma(a + 1)) + np.log(rng.random(a.shape)) / a
    return special.softmax(logs, axis=-1)


# Votes.
