"""Posterior of the parameters of systems that share the difficulty of questions.

The likelihood is replaced by a normal one with the same value, gradient and curvature at the mode
(Laplace). Under it the posterior of all parameters is normal given the sd of systems, which is
integrated on a grid. Draws from that, moved to where a first few say that the posterior is, are
weighted by the ratio of the two; whether the weights can be trusted is judged by their largest
(Pareto k-hat, Vehtari et al. 2024). Where they cannot, the same draws start Markov chains:
elliptical slice sampling (Murray, Adams and MacKay 2010) of the deviations from the normal
posterior, which needs no tuning and moves freely where the normal is about right, and two steps for
the sd of systems, one with parameters fixed and one with deviations fixed (Yu and Meng 2011). The
chains give their effective number of independent draws.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import logit, logsumexp, softmax

from bayesatk.core.numerics.elliptical import independent_draws, move_along_ellipse, systematic
from bayesatk.core.numerics.weights import pareto_shape
from bayesatk.core.one_factor.model import Counts, Likelihood
from bayesatk.metrics.credit import Array
from bayesatk.priors import LeaderboardPrior
from bayesatk.priors.fields import HalfNormal

_SPREADS = 24  # nodes of the sd of systems, both to find where it lies and there


@dataclass(frozen=True)
class Spread:
    """The normal prior of parameters given the sd of mu between systems, at nodes of this sd.

    The columns of judges that err, and that of shares, are standard normal.
    """

    prior: LeaderboardPrior
    systems: int
    sd: Array
    judges: int = 0

    @property
    def width(self) -> int:
        """Columns of parameters."""
        return self.systems + self.judges + 1

    @classmethod
    def rough(cls, prior: LeaderboardPrior, systems: int, judges: int = 0) -> "Spread":
        """Nodes over all that the prior allows."""
        scale = prior.spread_sd
        return cls(prior, systems, np.geomspace(0.005 * scale, 5.0 * scale, _SPREADS), judges)

    @cached_property
    def log_weight(self) -> Array:
        """Log prior probabilities of nodes: half-normal, at equal steps of the log."""
        logs, step = np.log(self.sd), np.log(self.sd[1] / self.sd[0])
        density = HalfNormal(self.prior.spread_sd).log_density(logs[:, None])
        return np.asarray(density + np.log(step))

    @cached_property
    def centre(self) -> Array:
        """Prior mean, flat."""
        prior = self.prior
        centre = np.zeros((3, self.width))
        means = prior.mean[0], prior.discrimination[0], prior.interaction[0]
        centre[:, : self.systems] = np.array(means)[:, None]
        return centre.ravel()

    def covariance(self, sd: float) -> Array:
        """Prior covariance, (parameters, parameters)."""
        size, prior = self.systems, self.prior
        width = self.width
        covariance = np.eye(3 * width)
        pairs = (prior.mean[1], sd), prior.discrimination[1:], prior.interaction[1:]
        for i, (common, between) in enumerate(pairs):
            block = slice(i * width, i * width + size)
            covariance[block, block] = common**2 + between**2 * np.eye(size)
        return covariance

    def log_density(self, theta: Array) -> Array:
        """Log prior density of mu at the nodes, up to what they share; (points, nodes)."""
        size = self.systems
        mu = theta[:, 0, :size] - self.prior.mean[0]
        level = mu.mean(axis=1)
        within = ((mu - level[:, None]) ** 2).sum(axis=1)[:, None]
        common = self.sd**2 + size * self.prior.mean[1] ** 2
        quadratic = within / self.sd**2 + size * (level**2)[:, None] / common
        logs = (size - 1.0) * np.log(self.sd) + 0.5 * np.log(common)
        return np.asarray(-0.5 * quadratic - logs)


@dataclass(frozen=True)
class Laplace:
    """Normal likelihood: in logs ``height + slope d - d curvature d / 2``, with d from the mode.

    Its curvature is made non-negative, and smaller along every parameter where the likelihood falls
    less than that says on either side, as it does towards r = 0: the tails of the normal one must
    not be shorter.
    """

    mode: Array
    height: float
    slope: Array
    curvature: Array

    @classmethod
    def at(cls, likelihood: Likelihood, theta: Array) -> "Laplace":
        """Return the one that agrees with a likelihood at these parameters."""
        height, slope = likelihood.gradient(theta)
        curvature = likelihood.curvature(theta)
        diagonal = np.diag(curvature)
        # The normal likelihood is to be no lower two conditional sds from the mode, or 3 logits.
        steps = np.minimum(2.0 / np.sqrt(np.maximum(diagonal, 1e-12)), 3.0)
        moves = np.concatenate([np.diag(steps), -np.diag(steps)])
        logs = likelihood.log_likelihood(theta + moves.reshape(-1, *theta.shape))
        fall = height + moves @ slope.ravel() - logs
        secant = 2.0 * fall.reshape(2, -1).min(axis=0) / steps**2
        ratio = np.divide(secant, diagonal, out=np.ones_like(diagonal), where=diagonal > 1e-12)
        scale = np.sqrt(np.clip(ratio, 0.2, 1.0))
        values, vectors = np.linalg.eigh(curvature * scale[:, None] * scale)
        curvature = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return cls(theta.ravel(), height, slope.ravel(), curvature)

    def log_likelihood(self, theta: Array) -> Array:
        """Log of the normal likelihood; theta (points, 3, systems)."""
        gap = theta.reshape(len(theta), -1) - self.mode
        square = ((gap @ self.curvature) * gap).sum(axis=1)
        return np.asarray(self.height + gap @ self.slope - 0.5 * square)


@dataclass(frozen=True)
class Normal:
    """Normal posterior of parameters given every node of the sd of systems.

    Parameters
    ----------
    spread : Spread
    mean : ndarray, shape (nodes, parameters)
    root, inverse : ndarray, shape (nodes, parameters, parameters)
        Covariances are ``root @ root.T``; the inverses of the roots.
    log_weight : ndarray, shape (nodes,)
        Posterior probabilities of nodes.
    log_evidence : float
        Log of the integral of the prior times the normal likelihood.
    """

    spread: Spread
    mean: Array
    root: Array
    inverse: Array
    log_weight: Array
    log_evidence: float

    @classmethod
    def of(cls, spread: Spread, laplace: Laplace) -> "Normal":
        """Combine the prior with a normal likelihood."""
        size = len(laplace.mode)
        gap, unit = spread.centre - laplace.mode, np.eye(size)
        mean, logs = np.empty((len(spread.sd), size)), np.empty(len(spread.sd))
        roots = np.empty((2, len(spread.sd), size, size))
        for i, sd in enumerate(spread.sd):
            prior = cholesky(spread.covariance(sd), lower=True)
            precision = cho_solve((prior, True), unit)
            pull = laplace.slope + precision @ gap
            root = cholesky(laplace.curvature + precision, lower=True)
            move = cho_solve((root, True), pull)
            mean[i], roots[1, i] = laplace.mode + move, root.T
            roots[0, i] = solve_triangular(root, unit, lower=True).T
            logs[i] = 0.5 * pull @ move - 0.5 * gap @ precision @ gap
            logs[i] -= np.log(np.diag(prior)).sum() + np.log(np.diag(root)).sum()
        joint = logs + spread.log_weight
        total = float(logsumexp(joint))
        return cls(spread, mean, roots[0], roots[1], joint - total, laplace.height + total)

    @classmethod
    def integrated(cls, rough_spread: Spread, laplace: Laplace) -> "Normal":
        """Put the nodes where the sd of systems has posterior probability."""
        rough = cls.of(rough_spread, laplace)
        probable = np.flatnonzero(rough.log_weight > rough.log_weight.max() + np.log(1e-6))
        low, high = rough.spread.sd[[max(0, probable[0] - 1), min(_SPREADS - 1, probable[-1] + 1)]]
        nodes = np.geomspace(float(low), float(high), _SPREADS)
        return cls.of(replace(rough_spread, sd=nodes), laplace)

    def place(self, node: NDArray[np.intp], deviation: Array) -> Array:
        """Parameters (points, 3, columns) of standard normal deviations."""
        theta = self.mean[node] + _turned(self.root, node, deviation)
        return theta.reshape(len(theta), 3, -1)

    def deviation(self, node: NDArray[np.intp], theta: Array) -> Array:
        """Return the deviations of parameters: the inverse of `place`."""
        return _turned(self.inverse, node, theta.reshape(len(theta), -1) - self.mean[node])


def _turned(matrices: Array, node: NDArray[np.intp], vectors: Array) -> Array:
    """Multiply every vector by the matrix of its node."""
    turned = np.empty_like(vectors)
    for index in np.unique(node):
        members = node == index
        turned[members] = vectors[members] @ matrices[index].T
    return turned


_FIRST_STEP = 0.2  # of nodes of difficulty, until their posterior sds are known
_WIDER = 1.5  # sds of scores that draws with weights have
_FIRST = 2000  # draws with weights at a time, at most
_ENOUGH = 400.0  # smallest effective number of draws that is accepted


@dataclass(frozen=True)
class Draws:
    """Equally probable draws of the parameters of systems.

    Parameters
    ----------
    theta : ndarray, shape (draws, 3, systems + judges + 1)
    effective_draws : float
        Effective number of independent draws.
    k_hat : float
        Pareto shape of the largest weights.
    method : str
        ``"importance"`` or ``"slice"``.
    likelihood : Likelihood
    log_evidence : float
        Of all trials in their order; NaN for chains.
    """

    theta: Array
    effective_draws: float
    k_hat: float
    method: str
    likelihood: Likelihood
    log_evidence: float

    @property
    def of_systems(self) -> Array:
        """Parameters of systems alone, (draws, 3, systems)."""
        return self.theta[:, :, : self.likelihood.counts.systems]

    def among(self, size: int) -> "Draws":
        """Return about so many of them, at equal steps."""
        step = max(1, len(self.theta) // max(size, 1))
        theta = self.theta[::step]
        return replace(
            self, theta=theta, effective_draws=min(self.effective_draws, float(len(theta)))
        )


@dataclass(frozen=True)
class Fit:
    """The likelihood on its nodes, and the normal posterior."""

    likelihood: Likelihood
    laplace: Laplace
    normal: Normal

    @classmethod
    def of(cls, counts: Counts, prior: LeaderboardPrior) -> "Fit":
        """Find the mode, choose nodes by what the data say about difficulties, find it again."""
        spread = Spread.rough(prior, counts.systems, counts.judges)
        likelihood = Likelihood.on(counts, _FIRST_STEP, prior.atoms)
        theta = _start(counts, spread)
        theta = _mode(likelihood, spread, float(prior.spread_sd), theta)
        likelihood = Likelihood.on(counts, _step(likelihood, theta), prior.atoms)
        between = theta[0, : counts.systems].std()
        sd = float(np.clip(between, 0.05, prior.spread_sd))  # where the normal touches
        theta = _mode(likelihood, spread, sd, theta)
        laplace = Laplace.at(likelihood, theta)
        return cls(likelihood, laplace, Normal.integrated(spread, laplace))

    def log_ratio(self, theta: Array) -> Array:
        """Log of the likelihood over the normal one."""
        return self.likelihood.log_likelihood(theta) - self.laplace.log_likelihood(theta)

    def draw(self, rng: np.random.Generator) -> Draws:
        """Draw by importance, or by slices where weights cannot be trusted."""
        # 500 draws say where the posterior lies from the normal one.
        shift = _shift(*self._weighted(500, 0.0, rng)[1:])
        thetas: list[Array] = []
        logs: list[Array] = []
        cost = self.likelihood.counts.incidence.nnz * len(self.likelihood.z)
        size = int(np.clip(4e8 / cost, 500, _FIRST))  # cells x nodes: a few seconds
        while size * len(thetas) < 10_000:
            drawn, _, log_weight = self._weighted(size, shift, rng)
            thetas.append(drawn)
            logs.append(log_weight)
            log_weight = np.concatenate(logs)
            weight = softmax(log_weight)
            effective_draws, k_hat = 1.0 / float(weight @ weight), pareto_shape(weight)
            trusted = effective_draws >= _ENOUGH and k_hat < 0.7
            if trusted:
                break
        theta = np.concatenate(thetas)
        if trusted:
            evidence = float(logsumexp(log_weight)) - float(np.log(len(log_weight)))
            evidence += self.normal.log_evidence + self._of_scores.shape[1] * float(np.log(_WIDER))
            sample = theta[rng.permutation(systematic(weight, _FIRST, rng))]
            return Draws(sample, effective_draws, k_hat, "importance", self.likelihood, evidence)
        started = theta[systematic(weight, 40, rng)]
        theta, effective_draws = Chains(self, rng, started).run()
        return Draws(theta, effective_draws, k_hat, "slice", self.likelihood, np.nan)

    def _weighted(
        self, size: int, shift: Array | float, rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Draw parameters by shifted deviations; return them, these, and the logs of weights."""
        node = systematic(np.exp(self.normal.log_weight), size, rng)
        standard = rng.standard_normal((size, self.normal.mean.shape[1]))
        directions = self._of_scores
        deviation = standard + shift + (_WIDER - 1.0) * (standard @ directions) @ directions.T
        theta = self.normal.place(node, deviation)
        logs = 0.5 * ((standard**2).sum(axis=1) - (deviation**2).sum(axis=1))
        return theta, deviation, logs + self.log_ratio(theta)

    @cached_property
    def _of_scores(self) -> Array:
        """Orthonormal directions of deviations (parameters, directions) that move scores.

        Of the rates of judges, and of the shares of questions that none or all solve.

        Draws are wider along them: posteriors of scores are skewed, and the other parameters, which
        follow them, would seldom be drawn in the longer tail.
        """
        width, normal = self.likelihood.width, self.normal
        columns = np.arange(self.likelihood.counts.systems, width)
        node = int(normal.log_weight.argmax())
        moved = normal.root[node][np.concatenate([columns, columns + width])]
        return np.linalg.qr(moved.T)[0]


@dataclass
class Chains:
    """Markov chains of parameters, all moved together."""

    fit: Fit
    rng: np.random.Generator
    theta: Array
    node: NDArray[np.intp] = field(init=False)
    deviation: Array = field(init=False)
    log_ratio: Array = field(init=False)

    def __post_init__(self) -> None:
        self._move_sd_given_theta()
        self.log_ratio = self.fit.log_ratio(self.theta)

    def run(self) -> tuple[Array, float]:
        """Return draws, and their effective number."""
        burn, thin = 60, 2  # steps before the draws, and for each draw, at first
        for _ in range(2):  # the second time twice as far
            for _ in range(burn):
                self.step()
            draws = np.empty((50, *self.theta.shape))
            for draw in draws:
                for _ in range(thin):
                    self.step()
                draw[:] = self.theta
            effective_draws = independent_draws(draws[:, :, 0])
            if effective_draws >= _ENOUGH:
                break
            burn, thin = 0, 2 * thin
        return draws.reshape(-1, *self.theta.shape[1:]), effective_draws

    def step(self) -> None:
        """Move parameters along an ellipse, then the sd of systems, twice."""
        self._move_along_ellipse()
        self._move_sd_given_theta()
        self._move_sd_given_deviation()

    def _move_along_ellipse(self) -> None:
        to_theta = self.fit.normal.place

        def ratio_of(chains: NDArray[np.intp], deviation: Array) -> Array:
            return self.fit.log_ratio(to_theta(self.node[chains], deviation))

        move_along_ellipse(self.deviation, self.log_ratio, ratio_of, self.rng)
        self.theta = to_theta(self.node, self.deviation)

    def _move_sd_given_theta(self) -> None:
        spread = self.fit.normal.spread
        share = softmax(spread.log_density(self.theta) + spread.log_weight, axis=1)
        u = self.rng.random((len(share), 1))
        self.node = np.minimum((share.cumsum(axis=1) < u).sum(axis=1), share.shape[1] - 1)
        self.deviation = self.fit.normal.deviation(self.node, self.theta)

    def _move_sd_given_deviation(self) -> None:
        share = np.exp(self.fit.normal.log_weight)
        node = self.rng.choice(len(share), len(self.node), p=share / share.sum())
        theta = self.fit.normal.place(node, self.deviation)
        log_ratio = self.fit.log_ratio(theta)
        taken = np.log(self.rng.random(len(node))) < log_ratio - self.log_ratio
        self.node = np.where(taken, node, self.node)
        self.theta[taken], self.log_ratio[taken] = theta[taken], log_ratio[taken]


def _shift(deviation: Array, log_weight: Array) -> Array:
    """Posterior mean of deviations, from weights cut at the top, shrunk for their noise.

    Weights are cut at sqrt(n) times their mean (Ionides 2008); the mean is shrunk as James and
    Stein (1961) do.
    """
    weight = softmax(log_weight)
    weight = np.minimum(weight, 1.0 / np.sqrt(len(weight)))
    weight /= weight.sum()
    mean = weight @ deviation
    noise = len(mean) * float(weight @ weight)
    return np.asarray(max(0.0, 1.0 - noise / float(mean @ mean)) * mean)


def _start(counts: Counts, spread: Spread) -> Array:
    """Return rough parameters: logits of mean scores, the prior's means of the others."""
    questions = counts.incidence.T @ counts.repeats
    right, trials = (
        np.bincount(counts.system, amounts * questions, counts.systems)
        for amounts in (counts.successes, counts.trials)
    )
    theta = spread.centre.reshape(3, -1).copy()
    theta[0, : counts.systems] = 1.3 * logit((right + 1.0) / (trials + 2.0))
    return theta


def _step(likelihood: Likelihood, theta: Array) -> float:
    """Return the step of nodes that the posterior of difficulties asks for."""
    weight, z = likelihood.inner(theta)
    variance = np.maximum(weight @ z**2 - (weight @ z) ** 2, 0.0)
    # A step of 1.5 posterior sds is an error of 1e-4 of a density; a twentieth of the questions may
    # have difficulties that are known better. The finest step makes a thousand nodes.
    narrow = np.sqrt(np.quantile(variance, 0.05))
    steepest = float(np.exp(theta[1, : likelihood.counts.systems].max()))
    return float(np.clip(min(1.5 * narrow, 1.0 / steepest), 0.012, _FIRST_STEP))


def _mode(likelihood: Likelihood, spread: Spread, sd: float, start: Array) -> Array:
    """Posterior mode of parameters given the sd of systems."""
    root = cholesky(spread.covariance(sd), lower=True)

    def objective(x: Array) -> tuple[float, Array]:
        theta = spread.centre + root @ x
        value, gradient = likelihood.gradient(theta.reshape(start.shape))
        return 0.5 * float(x @ x) - value, x - root.T @ gradient.ravel()

    x = solve_triangular(root, start.ravel() - spread.centre, lower=True)
    optimum = minimize(objective, x, jac=True, method="L-BFGS-B", options={"gtol": 1e-3})
    return np.asarray((spread.centre + root @ optimum.x).reshape(start.shape))
