"""Posterior of right and wrong by importance sampling, from the documentation alone.

Imports nothing of bayesatk. The parameters that all questions share (mean, icc, shares, slopes,
sd of groups, rates of a judge) are sampled on their unconstrained scale, by scrambled Sobol points
from a mixture of Student t distributions and the prior, and weighted. Effects of groups are summed
over a fine grid of standard normal nodes. Given all that every question's p is a mixture of Betas.
Errors are standard errors over independent scrambles.
"""

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

Array = NDArray[np.float64]
NODES = np.arange(-6.5, 6.51, 0.125)  # of a standard normal effect of a group
NODE_WEIGHTS = stats.norm.pdf(NODES) / stats.norm.pdf(NODES).sum()
LEVELS = (0.025, 0.975)


# Metrics: what k draws with j successes count for, and its first two moments under a Beta.


def credit(metric: str) -> Array:
    """Return what j = 0..k successes in k trials count for."""
    if metric == "bayes":
        return np.array([0.0, 1.0])
    name, _, number = metric.replace("^", "@^").partition("@")
    number, _, tau = number.lstrip("^").partition(":")
    k = int(number)
    j = np.arange(k + 1)
    if metric.startswith("pass^"):
        return (j == k).astype(float)
    if name == "auc":
        if k == 1:
            return j.astype(float)
        steps = [[1 - comb(k - s, i) / comb(k, i) for i in range(1, k + 1)] for s in j]
        weights = np.ones(k)
        weights[[0, -1]] = 0.5
        return np.array(steps) @ weights / (k - 1)
    if name == "mg-pass":
        return 2 / k * np.maximum(0, j - (k + 1) // 2)
    least = {"pass": 1, "max": 1, "maj": k // 2 + 1}.get(name)
    if name == "g-pass":
        least = max(1, int(np.ceil(round(float(tau) * k, 9))))
    return (j >= least).astype(float)


def squared(x: Array) -> Array:
    """Credit of 2k draws whose expectation is that of the square of the value at p."""
    k = len(x) - 1
    ways = x * special.comb(k, np.arange(k + 1))
    return np.convolve(ways, ways) / special.comb(2 * k, np.arange(2 * k + 1))


def rising(a: Array, most: int) -> Array:
    """Return a (a + 1) ... (a + i - 1) for i = 0..most, on a new last axis, as logarithms."""
    steps = np.log(a[..., None] + np.arange(most))
    start = np.zeros((*a.shape, 1))
    return np.concatenate([start, np.cumsum(steps, axis=-1)], axis=-1)


def log_moment(a: Array, b: Array, right: float, wrong: float) -> Array:
    """Return log E[p^right (1-p)^wrong] under Beta(a, b)."""
    if right == int(right) and wrong == int(wrong) and right + wrong <= 130:
        total = np.zeros(np.broadcast(a, b).shape)
        for i in range(int(right)):
            total = total + np.log((a + i) / (a + b + i))
        for i in range(int(wrong)):
            total = total + np.log((b + i) / (a + b + right + i))
        return total
    return special.betaln(a + right, b + wrong) - special.betaln(a, b)


def expected(x: Array, a: Array, b: Array) -> Array:
    """E[sum_j x_j Binomial(j; k, p)] under Beta(a, b)."""
    k = len(x) - 1
    if x[-1] == 1 and not x[:-1].any():
        return np.exp(log_moment(a, b, k, 0))
    if x[0] == 0 and (x[1:] == 1).all():
        return -np.expm1(log_moment(a, b, 0, k))
    if k > 130:
        raise ValueError("only pass@k and pass^k have moments at such k")
    logs = rising(a, k) + rising(b, k)[..., ::-1] - rising(a + b, k)[..., -1:]
    return np.exp(logs) @ (x * special.comb(k, np.arange(k + 1)))


def moments(metric: str, a: Array, b: Array) -> tuple[Array, Array]:
    """Mean and second moment of the value at p, or of 1 minus it where that is closer to 0."""
    x = credit(metric)
    k = len(x) - 1
    if x[-1] == 1 and not x[:-1].any():
        return np.exp(log_moment(a, b, k, 0)), np.exp(log_moment(a, b, 2 * k, 0))
    if x[0] == 0 and (x[1:] == 1).all():
        miss, both = np.exp(log_moment(a, b, 0, k)), np.exp(log_moment(a, b, 0, 2 * k))
        return 1 - miss, both - 2 * miss + 1
    return expected(x, a, b), expected(squared(x), a, b)


def variance(metric: str, a: Array, b: Array) -> tuple[Array, Array]:
    """Mean and variance of the value at p under Beta(a, b)."""
    x = credit(metric)
    k = len(x) - 1
    if k == 1 and x[0] == 0 and x[1] == 1:
        return a / (a + b), a * b / (a + b) ** 2 / (a + b + 1)
    if x[0] == 0 and (x[1:] == 1).all():
        miss, both = np.exp(log_moment(a, b, 0, k)), np.exp(log_moment(a, b, 0, 2 * k))
        return 1 - miss, np.maximum(both - miss**2, 0)
    mean, square = moments(metric, a, b)
    return mean, np.maximum(square - mean**2, 0)


def value(metric: str, p: Array) -> Array:
    """Value of the metric with infinitely many draws of k trials, at success probability p."""
    x = credit(metric)
    k = len(x) - 1
    if x[-1] == 1 and not x[:-1].any():
        return p**k
    if x[0] == 0 and (x[1:] == 1).all():
        return 1 - (1 - p) ** k if k < 100 else -np.expm1(k * np.log1p(-np.minimum(p, 1 - 1e-16)))
    total = np.zeros_like(p)
    for j in np.flatnonzero(x):
        total += x[j] * comb(k, j) * p**j * (1 - p) ** (k - j)
    return total


# The model.


@dataclass
class System:
    """Counts of one system, and all that is known of its questions."""

    right: Array
    trials: Array
    power_right: Array  # fractional counts of earlier trials
    power_trials: Array

    @property
    def tried(self) -> NDArray[np.bool_]:
        return self.trials + self.power_trials > 0


@dataclass
class Model:
    """One study: counts, columns of the questions and what is assumed."""

    system: System
    law: str  # beta, inflated, mixture, none, complete
    rows: Array  # covariates in their basis; (questions, columns)
    groups: NDArray[np.int64] | None
    share: Array  # of each question in the mean over these questions
    group_share: Array | None
    weighted: bool
    judge: tuple[tuple[float, float], tuple[float, float]] | None
    mean: tuple[float, float] = (1.0, 1.0)
    icc: tuple[float, float] = (1.0, 1.0)
    atoms: tuple[float, float, float] = (1.0, 1.0, 8.0)
    mixing: tuple[float, float] = (1.0, 1.0)
    slope_sd: float = 2.5
    group_sd: float = 1.0
    fixed: tuple[float, float] = (1.0, 1.0)
    kinds: tuple[NDArray[np.int64], NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        own = self.system
        columns = [own.right, own.trials, own.power_right, own.power_trials, *self.rows.T]
        _, first, inverse = np.unique(
            np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True
        )
        self.kinds = first, inverse.reshape(-1)

    @property
    def plain(self) -> list[tuple[str, int]]:
        """Names and sizes of the parameters of the system."""
        sizes = {
            "beta": [("mean", 1), ("icc", 1)],
            "inflated": [("mean", 1), ("icc", 1), ("atoms", 2)],
            "mixture": [("mean", 2), ("icc", 2), ("mixing", 1)],
            "none": [],
            "complete": [("p", 1)],
        }[self.law]
        if self.law in ("beta", "inflated", "mixture"):
            sizes = [*sizes, ("slopes", self.rows.shape[1])]
            if self.groups is not None:
                sizes = [*sizes, ("tau", 1)]
        return sizes

    @property
    def size(self) -> int:
        return sum(size for _, size in self.plain) + (2 if self.judge else 0)

    def split(self, theta: Array) -> tuple[dict[str, Array], Array | None]:
        """Parameters of the system by name, and logits of the judge's rates."""
        start, own = 0, {}
        for name, size in self.plain:
            own[name] = theta[..., start : start + size]
            start += size
        return own, theta[..., start:] if self.judge else None

    def _log_prior(self, own: dict[str, Array]) -> Array:
        total: Any = 0.0
        for name, x in own.items():
            if name in ("mean", "icc", "mixing", "p"):
                pair = self.fixed if name == "p" else getattr(self, name)
                total = total + beta_logit(x, pair).sum(-1)
            elif name == "atoms":
                total = total + dirichlet_ratio(x, np.array(self.atoms))
            elif name == "slopes":
                total = total + stats.norm.logpdf(x, scale=self.slope_sd).sum(-1)
            elif name == "tau":
                tau = np.exp(x[..., 0])
                total = total + stats.halfnorm.logpdf(tau, scale=self.group_sd) + x[..., 0]
        if self.law == "mixture":
            ordered = own["mean"][..., 0] <= own["mean"][..., 1]
            total = np.where(ordered, total + np.log(2), -np.inf)
        return total

    def log_prior(self, theta: Array) -> Array:
        own, judge = self.split(theta)
        total = np.zeros(theta.shape[:-1]) + self._log_prior(own)
        if judge is not None and self.judge is not None:
            for i, pair in enumerate(self.judge):
                total = total + beta_logit(judge[..., i], pair)
        return total

    def from_uniform(self, u: Array) -> Array:
        """Draws of the prior from uniform numbers."""
        own, judge = self.split(u)
        parts = []
        for name, x in own.items():
            if name in ("mean", "icc", "mixing", "p"):
                pair = self.fixed if name == "p" else getattr(self, name)
                drawn = clipped_logit(special.betaincinv(*pair, x))
                parts.append(np.sort(drawn, -1) if name == "mean" else drawn)
            elif name == "atoms":
                a, b, c = self.atoms
                away = special.betaincinv(a + b, c, x[..., 0])
                never = special.betaincinv(a, b, x[..., 1])
                shares = np.stack([away * never, away * (1 - never)], -1)
                parts.append(np.log(np.maximum(shares, 1e-250)) - np.log1p(-away)[..., None])
            elif name == "slopes":
                parts.append(stats.norm.ppf(x) * self.slope_sd)
            elif name == "tau":
                parts.append(np.log(np.maximum(stats.halfnorm.ppf(x) * self.group_sd, 1e-12)))
        if judge is not None and self.judge is not None:
            for i, pair in enumerate(self.judge):
                parts.append(clipped_logit(special.betaincinv(*pair, judge[..., i : i + 1])))
        return np.concatenate(parts, -1) if parts else u[..., :0]

    def statistics(self, *asked: Any) -> dict[tuple[str, str], tuple[float, float, Array, Array]]:
        return statistics(self, *asked)

    # The distribution of p given the parameters: Betas with shares, and the two ends.

    def betas(self, own: dict[str, Array], offset: Array) -> tuple[Array, Array, Array]:
        """Log shares, a and b of the Betas; (..., components), at an offset of the logit."""
        if self.law == "none":
            a = np.broadcast_to(self.fixed[0], (*offset.shape, 1))
            return np.zeros(a.shape), a, np.broadcast_to(self.fixed[1], a.shape)
        extra = (1,) * (offset.ndim - own["mean"].ndim + 1)
        shaped = {name: x.reshape(x.shape[0], *extra, x.shape[-1]) for name, x in own.items()}
        eta = shaped["mean"] + offset[..., None]
        weight = np.exp(-np.clip(shaped["icc"], -34, 34))  # a + b = (1 - icc)/icc
        a, b = special.expit(eta) * weight, special.expit(-eta) * weight
        a, b = np.maximum(a, 1e-290), np.maximum(b, 1e-290)
        if self.law == "mixture":
            x = shaped["mixing"]
            shares = np.concatenate([special.log_expit(x), special.log_expit(-x)], -1)
        elif self.law == "inflated":
            full = np.concatenate([shaped["atoms"], np.zeros_like(shaped["atoms"][..., :1])], -1)
            shares = (full - special.logsumexp(full, axis=-1, keepdims=True))[..., 2:]
        else:
            shares = np.zeros(a.shape)
        return np.broadcast_to(shares, a.shape), a, b

    def ends(self, own: dict[str, Array]) -> Array | None:
        """Log shares of p = 0 and p = 1; (points, 2)."""
        if self.law != "inflated":
            return None
        full = np.concatenate([own["atoms"], np.zeros_like(own["atoms"][..., :1])], -1)
        return (full - special.logsumexp(full, axis=-1, keepdims=True))[..., :2]

    def posterior_of(
        self, kind: int, own: dict[str, Array], judge: Array | None, offset: Array
    ) -> tuple[Array, Array, Array]:
        """Log weights (likelihood times share), a and b of what p may be, for one kind of question.

        The last axis: Betas by number of right trials, then p = 0 and p = 1 (a or b is infinite).
        """
        data = self.system
        index = self.kinds[0][kind]
        c, n = data.right[index], data.trials[index]
        c0, n0 = data.power_right[index], data.power_trials[index]
        shares, a, b = self.betas(own, offset)
        logs, firsts, seconds = [], [], []
        if judge is None:
            logs.append(shares + log_moment(a, b, c + c0, n + n0 - c - c0))
            firsts.append(a + c + c0)
            seconds.append(b + n + n0 - c - c0)
        else:
            for t, way in enumerate(ways_of_marks(int(c), int(n), judge)):
                way = way.reshape(way.shape + (1,) * (a.ndim - 1))
                logs.append(shares + way + log_moment(a, b, t, n - t))
                firsts.append(a + t)
                seconds.append(b + n - t)
        ends = self.ends(own)
        if ends is not None:
            extra = (1,) * (offset.ndim - 1)
            for i in (0, 1):  # p = 0, p = 1
                if judge is None:
                    alike = c + c0 == 0 if i == 0 else c + c0 == n + n0
                    log = np.where(alike, ends[:, i], -np.inf)
                else:
                    rate = judge[:, 1 - i]
                    log = ends[:, i] + c * special.log_expit(rate)
                    log = log + (n - c) * special.log_expit(-rate)
                log = np.broadcast_to(log.reshape(-1, *extra, 1), (*offset.shape, 1))
                logs.append(log)
                firsts.append(np.full(log.shape, 0.0 if i == 0 else np.inf))
                seconds.append(np.full(log.shape, np.inf if i == 0 else 0.0))
        return np.concatenate(logs, -1), np.concatenate(firsts, -1), np.concatenate(seconds, -1)

    def offsets(self, kind: int, own: dict[str, Array]) -> Array:
        """Offset of one kind of question from its covariates; (points,)."""
        index = self.kinds[0][kind]
        if "slopes" in own and self.rows.shape[1]:
            return own["slopes"] @ self.rows[index]
        return np.zeros(len(next(iter(own.values()))) if own else 1)

    def log_likelihood(self, theta: Array) -> Array:
        own, judge = self.split(theta)
        if self.law == "complete":
            return self._complete(own["p"][:, 0], judge)
        if self.groups is None or "tau" not in own:
            return self._alone(own, judge, len(theta))
        return self.by_group(own, judge)[0].sum(-1)

    def _complete(self, eta: Array, judge: Array | None) -> Array:
        data = self.system
        c, n = data.right.sum(), data.trials.sum()
        c0, n0 = data.power_right.sum(), data.power_trials.sum()
        if judge is None:
            return (c + c0) * special.log_expit(eta) + (n + n0 - c - c0) * special.log_expit(-eta)
        p, s, f = special.expit(eta), special.expit(judge[:, 0]), special.expit(judge[:, 1])
        right = np.log(f * (1 - p) + s * p)
        wrong = np.log((1 - f) * (1 - p) + (1 - s) * p)
        return c * right + (n - c) * wrong

    def _alone(self, own: dict[str, Array], judge: Array | None, points: int) -> Array:
        total = np.zeros(points)
        counts = np.bincount(self.kinds[1])
        for kind, count in enumerate(counts):
            offset = np.broadcast_to(self.offsets(kind, own), (points,))
            log, _, _ = self.posterior_of(kind, own, judge, offset)
            total += count * special.logsumexp(log, axis=-1)
        return total

    def by_group(self, own: dict[str, Array], judge: Array | None) -> tuple[Array, Array]:
        """Log likelihood of each group, and log of it by node; (points, groups[, nodes])."""
        assert self.groups is not None
        size = self.groups.max() + 1
        effect = np.exp(own["tau"]) * NODES
        table = np.zeros((len(effect), size, len(NODES)))
        inverse = self.kinds[1]
        for kind in range(inverse.max() + 1):
            offset = self.offsets(kind, own)[:, None] + effect
            log, _, _ = self.posterior_of(kind, own, judge, offset)
            counts = np.bincount(self.groups[inverse == kind], minlength=size)
            table += counts[:, None] * special.logsumexp(log, axis=-1)[:, None, :]
        table += np.log(NODE_WEIGHTS)
        return special.logsumexp(table, axis=-1), table


def ways_of_marks(c: int, n: int, judge: Array) -> list[Array]:
    """Log probability of n marks in their order, c of them right, times C(n, t), if t are right."""
    s, s1 = special.log_expit(judge[:, 0]), special.log_expit(-judge[:, 0])
    f, f1 = special.log_expit(judge[:, 1]), special.log_expit(-judge[:, 1])
    found = []
    for t in range(n + 1):
        terms = [
            np.log(comb(c, i) * comb(n - c, t - i))
            + i * s
            + (t - i) * s1
            + (c - i) * f
            + (n - c - t + i) * f1
            for i in range(max(0, t - n + c), min(c, t) + 1)
        ]
        found.append(special.logsumexp(terms, axis=0))
    return found


def clipped_logit(p: Array) -> Array:
    return np.clip(special.logit(p), -300, 300)


def beta_logit(x: Array, pair: tuple[float, float]) -> Array:
    """Log density of the logit of a Beta."""
    return pair[0] * special.log_expit(x) + pair[1] * special.log_expit(-x) - special.betaln(*pair)


def dirichlet_ratio(x: Array, alpha: Array) -> Array:
    """Log density of the log ratios of a Dirichlet to its last share."""
    full = np.concatenate([x, np.zeros_like(x[..., :1])], -1)
    logs = full - special.logsumexp(full, axis=-1, keepdims=True)
    return (alpha * logs).sum(-1) + special.gammaln(alpha.sum()) - special.gammaln(alpha).sum()


# Importance sampling.

FREEDOM = 6.0


@dataclass
class Proposal:
    """Student t distributions with shares, and the prior with the rest."""

    model: Model
    shares: Array
    means: Array
    roots: Array  # lower Cholesky factors of the scales
    prior: float = 0.2

    def draw(self, u: Array) -> Array:
        size = self.model.size
        theta = self.model.from_uniform(u[:, :size])
        z = stats.norm.ppf(u[:, :size])
        radius = np.sqrt(stats.chi2.ppf(u[:, size], FREEDOM) / FREEDOM)
        cuts = np.cumsum(np.append(self.prior, (1 - self.prior) * self.shares))
        which = np.minimum(np.searchsorted(cuts, u[:, size + 1]), len(self.shares))
        for i, (mean, root) in enumerate(zip(self.means, self.roots, strict=True), 1):
            chosen = which == i
            theta[chosen] = mean + (z[chosen] / radius[chosen, None]) @ root.T
        return theta

    def log_density(self, theta: Array) -> Array:
        size = theta.shape[1]
        logs = [np.log(self.prior) + self.model.log_prior(theta)]
        for share, mean, root in zip(self.shares, self.means, self.roots, strict=True):
            x = np.linalg.solve(root, (theta - mean).T)
            log = special.gammaln((FREEDOM + size) / 2) - special.gammaln(FREEDOM / 2)
            log -= size / 2 * np.log(FREEDOM * np.pi) + np.log(np.diag(root)).sum()
            log = log - (FREEDOM + size) / 2 * np.log1p((x**2).sum(0) / FREEDOM)
            logs.append(log + np.log((1 - self.prior) * share))
        return special.logsumexp(logs, axis=0)


def in_chunks(function: Any, theta: Array, most: int) -> Array:
    pieces = [function(theta[i : i + most]) for i in range(0, len(theta), most)]
    return np.concatenate(pieces)


def log_posterior(model: Model, theta: Array) -> Array:
    most = 20000 if model.groups is None else 2000
    with np.errstate(all="ignore"):
        log = model.log_prior(theta)
        inside = np.isfinite(log)
        if inside.any():
            log[inside] += in_chunks(model.log_likelihood, theta[inside], most)
    return np.where(np.isnan(log), -np.inf, log)


def fitted(model: Model, seed: int, size: int, components: int = 3) -> Proposal:
    """Proposal fitted to weighted points, starting from the mode."""
    rng = np.random.default_rng(seed)
    start = model.from_uniform(rng.random((size, model.size)))
    first = start[np.argmax(log_posterior(model, start))]

    def target(x: Array) -> float:
        log = log_posterior(model, x[None])[0]
        return float(-log) if np.isfinite(log) else 1e10

    mode = optimize.minimize(target, first, method="Nelder-Mead", options={"maxfev": 3000}).x
    scale = np.ones(model.size)
    for i in range(model.size):  # where the density falls by a half, along each axis
        for step in 2.0 ** -np.arange(-2.0, 40.0):
            scale[i] = step
            if target(mode + step * np.eye(model.size)[i]) - target(mode) < 0.7:
                break
    proposal = Proposal(model, np.ones(1), mode[None], np.diag(scale)[None], 0.3)
    for turn in range(6):
        theta = proposal.draw(rng.random((size, model.size + 2)))
        with np.errstate(all="ignore"):
            log = log_posterior(model, theta) - proposal.log_density(theta)
        weights = np.exp(log - log.max())
        weights /= weights.sum()
        if turn < 3:  # the first points are few: no weight above a hundredth
            for _ in range(20):
                weights = np.minimum(weights, 0.01)
                weights /= weights.sum()
        proposal = refit(model, theta, weights, rng, components)
    return proposal


def refit(
    model: Model, theta: Array, weights: Array, rng: np.random.Generator, components: int
) -> Proposal:
    """Mixture of normals by a few steps of EM, on weighted points."""
    size = theta.shape[1]
    used = weights > weights.max() * 1e-9
    theta, weights = theta[used], weights[used] / weights[used].sum()
    centre = weights @ theta
    whole = (theta - centre).T @ ((theta - centre) * weights[:, None])
    whole += 1e-12 * np.eye(size) * np.trace(whole)
    means = theta[rng.choice(len(theta), components, p=weights)]
    scales = np.repeat(whole[None], components, axis=0)
    shares = np.full(components, 1 / components)
    for _ in range(15):
        normals = [
            stats.multivariate_normal(mean, scale, allow_singular=True)
            for mean, scale in zip(means, scales, strict=True)
        ]
        logs = np.stack([own.logpdf(theta) for own in normals]) + np.log(shares)[:, None]
        belongs = np.exp(logs - special.logsumexp(logs, axis=0)) * weights
        shares = np.maximum(belongs.sum(1), 1e-6)
        means = belongs @ theta / shares[:, None]
        for i in range(components):
            away = theta - means[i]
            scales[i] = away.T @ (away * belongs[i][:, None]) / shares[i] + 0.02 * whole
        shares = shares / shares.sum()
    roots = np.linalg.cholesky(scales * 1.2)
    return Proposal(model, shares, means, roots)


# What is reported.


@dataclass
class Answer:
    """Statistics with standard errors: mean, sd and both ends."""

    values: Array
    errors: Array


def answers(
    models: list[Any],
    metrics: list[str],
    targets: list[str],
    seed: int = 1,
    power: int = 14,
    draws: int = 25000,
    scrambles: int = 8,
    components: int = 3,
    family_prior: list[float] | None = None,
) -> tuple[dict[tuple[str, str], Answer], Answer, list[float]]:
    """Statistics by (system, metric, target), log evidence, and effective shares of points.

    Several models are families, averaged by their evidence; by default equally probable.
    """
    share = np.array(family_prior or [1.0] * len(models))
    prior = np.log(share / share.sum())
    proposals = [
        fitted(model, seed, min(4 << power, 12000 if model.groups is None else 4000), components)
        if model.size
        else None
        for model in models
    ]
    rows: list[dict[tuple[str, str], Array]] = []
    evidence, effective = [], []
    for scramble in range(scrambles):
        logs, parts = [], []
        for model, proposal in zip(models, proposals, strict=True):
            rng = np.random.default_rng([seed, scramble])
            theta, weights, log = weighted_points(model, proposal, [seed, 7, scramble], power)
            logs.append(log)
            effective.append(float(1 / (weights**2).sum() / len(weights)))
            parts.append(model.statistics(metrics, targets, theta, weights, rng, draws))
        rows.append(combined(parts, special.softmax(logs + prior)))
        evidence.append(special.logsumexp(logs + prior))
    table = {}
    for key in rows[0]:
        stack = np.stack([own[key] for own in rows])
        table[key] = Answer(stack.mean(0), stack.std(0, ddof=1) / np.sqrt(scrambles))
    total = np.array(evidence)
    answer = Answer(total.mean(), total.std(ddof=1) / np.sqrt(scrambles))
    return table, answer, [min(effective[i :: len(models)]) for i in range(len(models))]


def weighted_points(
    model: Model, proposal: Proposal | None, seed: list[int], power: int
) -> tuple[Array, Array, float]:
    """Points, normalised weights and log evidence."""
    if proposal is None:
        theta = np.zeros((1, 0))
        return theta, np.ones(1), float(log_posterior(model, theta)[0])
    sobol = stats.qmc.Sobol(model.size + 2, rng=np.random.default_rng(seed))
    theta = proposal.draw(np.clip(sobol.random_base2(power), 1e-15, 1 - 1e-15))
    with np.errstate(all="ignore"):
        log = log_posterior(model, theta) - proposal.log_density(theta)
    weights = np.exp(log - log.max())
    return theta, weights / weights.sum(), float(special.logsumexp(log) - np.log(len(log)))


def combined(parts: list[dict[Any, Any]], probability: Array) -> dict[Any, Array]:
    """Mean, sd and ends of a mixture of models."""
    found = {}
    for key in parts[0]:
        means, sds, samples, shares = zip(*(part[key] for part in parts), strict=True)
        mean = probability @ np.array(means)
        sd = np.sqrt(probability @ (np.array(sds) ** 2 + (np.array(means) - mean) ** 2))
        values = np.concatenate(samples)
        pairs = zip(probability, shares, strict=True)
        weights = np.concatenate([one * share for one, share in pairs])
        order = np.argsort(values)
        levels = np.cumsum(weights[order]) - weights[order] / 2
        found[key] = np.array([mean, sd, *np.interp(LEVELS, levels, values[order])])
    return found


def systematic(weights: Array, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    cuts = (np.arange(size) + rng.random()) / size
    return np.minimum(np.searchsorted(np.cumsum(weights), cuts), len(weights) - 1)


def statistics(
    model: Model,
    metrics: list[str],
    targets: list[str],
    theta: Array,
    weights: Array,
    rng: np.random.Generator,
    draws: int,
) -> dict[tuple[str, str], tuple[float, float, Array, Array]]:
    """Mean, sd, values and their weights of one scramble."""
    again = systematic(weights, draws, rng)
    rng.shuffle(again)
    drawn = theta[again]
    effects: Array | None = None
    if model.groups is not None and model.law not in ("none", "complete"):
        effects = group_effects(model, drawn, rng)
        theta, weights = drawn, np.full(draws, 1 / draws)
    found = {}
    given = given_points(model, metrics, targets, theta, effects)
    sampled = sampled_values(model, metrics, targets, drawn, effects, rng)
    for metric in metrics:
        for target in targets:
            values, share = sampled[metric, target], np.full(draws, 1 / draws)
            pair = given.get((metric, target))
            if pair is not None and len(pair[0]) > 1 and not pair[1].any():
                values, share = pair[0], weights  # known at every point
            if pair is None:
                mean, sd = values.mean(), values.std()
            else:
                mean = weights @ pair[0]
                sd = np.sqrt(weights @ (pair[1] + (pair[0] - mean) ** 2))
            found[metric, target] = (float(mean), float(sd), values, share)
    return found


def group_effects(model: Model, theta: Array, rng: np.random.Generator) -> Array:
    """Draws of the effects of groups, one at every point; (points, groups)."""
    pieces = []
    for start in range(0, len(theta), 2000):
        own, judge = model.split(theta[start : start + 2000])
        log, table = model.by_group(own, judge)
        cumulative = np.cumsum(np.exp(table - log[..., None]), axis=-1)
        node = (cumulative < rng.random((*log.shape, 1))).sum(-1)
        nodes = NODES[np.minimum(node, len(NODES) - 1)]
        pieces.append(nodes * np.exp(own["tau"]))
    return np.concatenate(pieces)


def full_offsets(model: Model, own: dict[str, Array], effects: Array | None, points: int) -> Array:
    """Offset of every question; (points, questions)."""
    offset = np.zeros((points, len(model.share)))
    if "slopes" in own and model.rows.shape[1]:
        offset = offset + own["slopes"] @ model.rows.T
    if effects is not None and model.groups is not None:
        offset = offset + effects[:, model.groups]
    return offset


def distinct(model: Model) -> list[tuple[int, NDArray[np.int64]]]:
    """Kinds of questions that are alike in everything, and their questions."""
    inverse = model.kinds[1]
    groups = np.zeros(len(inverse), int) if model.groups is None else model.groups
    pairs = sorted(set(zip(inverse.tolist(), groups.tolist(), strict=True)))
    return [(kind, np.flatnonzero((inverse == kind) & (groups == own))) for kind, own in pairs]


def end_moments(metric: str, a: Array, b: Array) -> tuple[Array, Array]:
    """Mean and variance of the value at p, where p may also be 0 or 1 (b or a is infinite)."""
    zero, one = np.isinf(b), np.isinf(a)
    fine = ~(zero | one)
    mean, spread = variance(metric, np.where(fine, a, 1.0), np.where(fine, b, 1.0))
    x = credit(metric)
    mean = np.where(zero, x[0], np.where(one, x[-1], mean))
    return mean, np.where(fine, spread, 0.0)


def given_points(
    model: Model,
    metrics: list[str],
    targets: list[str],
    theta: Array,
    effects: Array | None,
) -> dict[tuple[str, str], tuple[Array, Array]]:
    """Mean and variance of each mean over questions at every point, where they are closed."""
    pieces: list[dict[tuple[str, str], tuple[Array, Array]]] = []
    for start in range(0, len(theta), 4000):
        part = slice(start, start + 4000)
        own = None if effects is None else effects[part]
        pieces.append(_given(model, metrics, targets, theta[part], own))
    return {
        key: tuple(np.concatenate([piece[key][i] for piece in pieces]) for i in (0, 1))
        for key in pieces[0]
    }  # type: ignore[return-value]


def _given(
    model: Model,
    metrics: list[str],
    targets: list[str],
    theta: Array,
    effects: Array | None,
) -> dict[tuple[str, str], tuple[Array, Array]]:
    (own, judge), points = model.split(theta), len(theta)
    found: dict[tuple[str, str], tuple[Array, Array]] = {}
    if model.law == "complete":
        p = special.expit(own["p"][:, 0])
        return {
            (metric, target): (value(metric, p), np.zeros(points))
            for metric in metrics
            for target in targets
        }
    offset = full_offsets(model, own, effects, points)
    sums = {metric: [np.zeros(points), np.zeros(points)] for metric in metrics}
    each = {metric: np.zeros((points, 0)) for metric in metrics}
    squares = {metric: np.zeros(points) for metric in metrics}
    tried = model.system.tried
    for kind, questions in distinct(model):
        log, a, b = model.posterior_of(kind, own, judge, offset[:, questions[0]])
        weight = np.exp(log - special.logsumexp(log, axis=-1, keepdims=True))
        share = model.share[questions]
        for metric in metrics:
            mean, spread = end_moments(metric, a, b)
            first = (weight * mean).sum(-1)
            second = (weight * (spread + (mean - first[:, None]) ** 2)).sum(-1)
            sums[metric][0] += share.sum() * first
            sums[metric][1] += (share**2).sum() * second
            number = tried[questions].sum()  # the bootstrap draws from questions that were tried
            again = np.repeat(first[:, None], number, 1)
            each[metric] = np.concatenate([each[metric], again], 1)
            squares[metric] += number * (second + first**2)
    for metric in metrics:
        found[metric, "questions"] = (sums[metric][0], sums[metric][1])
        if "population" in targets:
            if model.law == "none" and not model.weighted:
                found[metric, "population"] = bootstrapped(each[metric], squares[metric])
            elif model.law != "none" and (not model.weighted or model.rows.shape[1]):
                found[metric, "population"] = (
                    population(model, metric, own, offset, effects),
                    np.zeros(points),
                )
        if "new_groups" in targets:
            found[metric, "new_groups"] = (new_groups(model, metric, own), np.zeros(points))
    return found


def bootstrapped(means: Array, squares: Array) -> tuple[Array, Array]:
    """Mean and variance of a mean with Dirichlet(1, ..., 1) weights, of independent values."""
    size = means.shape[1]
    mean = means.mean(1)
    products = means.sum(1) ** 2 - (means**2).sum(1)
    second = (2 * squares + products) / (size * (size + 1))
    return mean, second - mean**2


def law_mean(model: Model, metric: str, own: dict[str, Array], offset: Array) -> Array:
    """Expected value of a new question at these offsets, given the parameters."""
    shares, a, b = model.betas(own, offset)
    mean, _ = variance(metric, a, b)
    total = (np.exp(shares) * mean).sum(-1)
    ends = model.ends(own)
    if ends is not None:
        x = credit(metric)
        extra = np.exp(ends) @ np.array([x[0], x[-1]])
        total = total + extra.reshape(-1, *(1,) * (offset.ndim - 1))
    return total


def population(
    model: Model, metric: str, own: dict[str, Array], offset: Array, effects: Array | None
) -> Array:
    if model.rows.shape[1]:  # questions with the covariates, groups and weights of these
        return law_mean(model, metric, own, offset) @ model.share
    if effects is not None and model.group_share is not None:
        return law_mean(model, metric, own, effects) @ model.group_share
    return law_mean(model, metric, own, np.zeros(len(offset)))


def new_groups(model: Model, metric: str, own: dict[str, Array]) -> Array:
    """Expected value in a new group; of questions with the covariates of these."""
    nodes = np.exp(own["tau"]) * NODES
    if not model.rows.shape[1]:
        return law_mean(model, metric, own, nodes) @ NODE_WEIGHTS
    total = np.zeros(len(nodes))
    for row in model.rows:
        offset = (own["slopes"] @ row)[:, None] + nodes
        total += law_mean(model, metric, own, offset) @ NODE_WEIGHTS
    return total / len(model.rows)


def sampled_values(
    model: Model,
    metrics: list[str],
    targets: list[str],
    theta: Array,
    effects: Array | None,
    rng: np.random.Generator,
) -> dict[tuple[str, str], Array]:
    """One draw of everything at every point."""
    found: dict[tuple[str, str], list[Array]] = {}
    for start in range(0, len(theta), 4000):
        part = slice(start, start + 4000)
        own = None if effects is None else effects[part]
        given = _given(model, metrics, targets, theta[part], own)
        p = drawn_p(model, theta[part], own, rng)
        for metric in metrics:
            values = value(metric, p)
            for target in targets:
                if target == "questions":
                    sample = values @ model.share
                elif (
                    (model.law == "none" or model.weighted)
                    and not model.rows.shape[1]
                    and (model.law != "complete")
                ):
                    share = model.share * model.system.tried
                    bootstrap = rng.standard_exponential(values.shape) * share
                    sample = (values * bootstrap).sum(1) / bootstrap.sum(1)
                else:
                    sample = given[metric, target][0]
                found.setdefault((metric, target), []).append(sample)
    return {key: np.concatenate(pieces) for key, pieces in found.items()}


def drawn_p(model: Model, theta: Array, effects: Array | None, rng: np.random.Generator) -> Array:
    """Draws of every question's p; (points, questions)."""
    (own, judge), points = model.split(theta), len(theta)
    if model.law == "complete":
        return np.repeat(special.expit(own["p"]), len(model.share), 1)
    offset = full_offsets(model, own, effects, points)
    p = np.empty((points, len(model.share)))
    for kind, questions in distinct(model):
        log, a, b = model.posterior_of(kind, own, judge, offset[:, questions[0]])
        weight = np.exp(log - special.logsumexp(log, axis=-1, keepdims=True))
        cumulative = np.cumsum(weight, -1)
        row = np.arange(points)
        for question in questions:
            pick = np.minimum((cumulative < rng.random((points, 1))).sum(-1), a.shape[-1] - 1)
            first, second = a[row, pick], b[row, pick]
            zero, one = np.isinf(second), np.isinf(first)
            fine = ~(zero | one)
            drawn = rng.beta(np.where(fine, first, 1.0), np.where(fine, second, 1.0))
            p[:, question] = np.where(zero, 0.0, np.where(one, 1.0, drawn))
    return p
