"""Posterior of the parameters of systems that share the difficulty of questions.

The likelihood is replaced by a normal one with the same value, gradient and curvature at the mode
(Laplace). Under it the posterior of all parameters is normal given the sd of systems, which is
integrated on a grid. Draws with other sds to the left of the mode than to the right (Geweke 1989)
are weighted by the posterior over their density; where weights are poor and parameters few, a
multivariate t with the mean and covariance of these draws adds more, weighted as draws of the
mixture (Owen and Zhou 2000). Whether the weights can be trusted is judged by their largest (Pareto
k-hat, Vehtari et al. 2024). Where they cannot, the same draws start Markov chains: elliptical slice
sampling (Murray, Adams and MacKay 2010) of the deviations from the normal posterior, which needs no
tuning and moves freely where the normal is about right, and two steps for the sd of systems, one
with parameters fixed and one with deviations fixed (Yu and Meng 2011). The chains give their
effective number of independent draws.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import gammaln, logit, logsumexp, softmax

from bayesatk._tools.arrays import Array, Indices, Rng
from bayesatk.core.numerics.elliptical import independent_draws, move_along_ellipse, systematic
from bayesatk.core.numerics.weights import pareto_shape
from bayesatk.core.one_factor.model import COARSE, Counts, Likelihood
from bayesatk.priors import LeaderboardPrior

_SPREADS = 24  # nodes of the sd of systems, both to find where it lies and there


@dataclass(frozen=True)
class Spread:
    """The normal prior of parameters given the sd of mu between systems, at nodes of this sd.

    The columns of scores, and that of shares, are standard normal.
    """

    prior: LeaderboardPrior
    systems: int
    sd: Array
    scored: int = 0

    @property
    def width(self) -> int:
        """Columns of parameters."""
        return self.systems + self.scored + 1

    @classmethod
    def rough(cls, prior: LeaderboardPrior, systems: int, scored: int = 0) -> "Spread":
        """Nodes over all that the prior allows."""
        scale = prior.spread_sd
        return cls(prior, systems, np.geomspace(0.005 * scale, 5.0 * scale, _SPREADS), scored)

    @cached_property
    def log_weight(self) -> Array:
        """Log prior probabilities of nodes: chi, at equal steps of the log."""
        scaled, step = self.sd / self.prior.spread_sd, np.log(self.sd[1] / self.sd[0])
        half = 0.5 * self.prior.spread_df(self.systems)
        logs = 2.0 * half * np.log(scaled) - 0.5 * scaled**2
        return np.asarray(logs + (1.0 - half) * np.log(2.0) - gammaln(half) + np.log(step))

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

    Its curvature is made non-negative.
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
        values, vectors = np.linalg.eigh(curvature)
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
        # A deviation moves its own parameter and, as far as they follow it, those before: those of
        # skewed posteriors, r of a system and the scores of the last columns, are behind others.
        order = np.arange(size).reshape(3, -1).T.ravel()
        back = np.argsort(order)
        for i, sd in enumerate(spread.sd):
            prior = cholesky(spread.covariance(sd), lower=True)
            precision = cho_solve((prior, True), unit)
            pull = laplace.slope + precision @ gap
            root = cholesky((laplace.curvature + precision)[order][:, order], lower=True)
            move = cho_solve((root, True), pull[order])[back]
            mean[i], roots[1, i] = laplace.mode + move, root.T[:, back]
            roots[0, i] = solve_triangular(root, unit, lower=True).T[back]
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

    def place(self, node: Indices, deviation: Array) -> Array:
        """Parameters (points, 3, columns) of standard normal deviations."""
        theta = self.mean[node] + _turned(self.root, node, deviation)
        return theta.reshape(len(theta), 3, -1)

    def deviation(self, node: Indices, theta: Array) -> Array:
        """Return the deviations of parameters: the inverse of `place`."""
        return _turned(self.inverse, node, theta.reshape(len(theta), -1) - self.mean[node])


def _turned(matrices: Array, node: Indices, vectors: Array) -> Array:
    """Multiply every vector by the matrix of its node."""
    turned = np.empty_like(vectors)
    for index in np.unique(node):
        members = node == index
        turned[members] = vectors[members] @ matrices[index].T
    return turned


_WIDER = 1.5  # sds of draws that say where difficulties may be
_AROUND = 32  # such draws
_WAYS = (2.0, 4.0)  # deviations at which the two sides of the posterior are measured
_ADAPTED = 30  # parameters, at most, whose covariance draws with weights estimate
_ROUNDS = 5  # times that they do
_TAIL = 8.0  # degrees of freedom of a proposal by such draws
_SIZE = 2000  # draws, and draws with weights at a time, at most
_MOST = 20_000  # draws with weights
_WORK = 4e8  # cells x nodes x draws at once: a few seconds
# Effective numbers of draws: the smallest that is accepted (a probability of 1/2 is then known to
# .05), the smallest that is wanted, and the largest, where it is cheap.
_ENOUGH, _WANTED = 100.0, (400.0, 2000.0)


@dataclass(frozen=True)
class Draws:
    """Equally probable draws of the parameters of systems.

    Parameters
    ----------
    theta : ndarray, shape (draws, 3, columns)
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
        spread = Spread.rough(prior, counts.systems, counts.scored_columns)
        likelihood = Likelihood.on(counts, COARSE, prior.atoms)
        theta = _mode(likelihood, spread, float(prior.spread_sd), _start(counts, spread))
        normal = Normal.integrated(spread, Laplace.at(likelihood, theta))
        # Draws that are wider than the posterior say where difficulties may be.
        wide = _WIDER * np.random.default_rng(0).standard_normal((_AROUND, theta.size))
        around = normal.place(np.full(_AROUND, normal.log_weight.argmax()), wide)
        likelihood = Likelihood.around(counts, around, prior.atoms)
        between = theta[0, : counts.systems].std()
        sd = float(np.clip(between, 0.05, prior.spread_sd))  # where the normal touches
        theta = _mode(likelihood, spread, sd, theta)
        laplace = Laplace.at(likelihood, theta)
        return cls(likelihood, laplace, Normal.integrated(spread, laplace))

    def around(self, theta: Array) -> "Fit":
        """Return it with nodes for difficulties as they are given these parameters."""
        likelihood = Likelihood.around(self.likelihood.counts, theta, self.likelihood.atoms)
        return replace(self, likelihood=likelihood)

    def log_ratio(self, theta: Array) -> Array:
        """Log of the likelihood over the normal one."""
        return self.likelihood.log_likelihood(theta) - self.laplace.log_likelihood(theta)

    def draw(self, rng: Rng) -> Draws:
        """Draw by importance, or by slices where weights cannot be trusted."""
        cells = self.likelihood.cells
        size = int(np.clip(_WORK / cells, 500, _SIZE))
        wanted = float(np.clip(0.05 * _WORK / cells, *_WANTED))
        proposal: Split | Student = Split(*self._sides)
        fit, drawn = self, Weighted.none(self).more(self, proposal, 500, rng)
        few = self.normal.mean.shape[1] <= _ADAPTED
        while not drawn.trusted(wanted) and drawn.size + size <= _MOST:
            poor = drawn.effective_draws < 0.1 * drawn.size or drawn.k_hat > 0.5
            if few and poor and len(drawn.proposals) <= _ROUNDS:
                first, proposal = isinstance(proposal, Split), Student.of(drawn)
                fit = fit.around(drawn.resampled(_AROUND, rng))
                if first:  # draws that a proposal was fitted to would make the evidence too low
                    drawn = Weighted.none(self)
            drawn = drawn.more(fit, proposal, size, rng)
        if drawn.trusted(_ENOUGH):
            evidence = drawn.log_mean + self.normal.log_evidence
            # Twice as many as are effective: repetitions of them would say little more.
            sample = drawn.resampled(min(_SIZE, int(2.0 * drawn.effective_draws)), rng)
            return Draws(
                sample, drawn.effective_draws, drawn.k_hat, "importance", fit.likelihood, evidence
            )
        theta, effective_draws = Chains(fit, rng, drawn.resampled(40, rng)).run()
        return Draws(theta, effective_draws, drawn.k_hat, "slice", fit.likelihood, np.nan)

    @cached_property
    def _sides(self) -> Array:
        """Sds of deviations to the left and to the right, (2, parameters), as of Geweke (1989).

        Of the normal densities that are as high as the posterior at some way from its mode.
        """
        size = self.normal.mean.shape[1]
        node = np.full(2 * size, self.normal.log_weight.argmax())
        axes = np.concatenate([-np.eye(size), np.eye(size)])
        top = self.log_ratio(self.normal.place(node[:1], np.zeros((1, size))))
        sides = []
        for way in _WAYS:
            fall = 0.5 * way**2 + top - self.log_ratio(self.normal.place(node, way * axes))
            sides.append(way / np.sqrt(2.0 * np.maximum(fall, 1e-3)))
        return np.clip(np.max(sides, axis=0), 0.5, 3.0).reshape(2, -1)


@dataclass(frozen=True)
class Split:
    """Density of deviations: normal with other sds to the left than to the right of the mode.

    Parameters
    ----------
    left, right : ndarray, shape (parameters,)
    """

    left: Array
    right: Array

    def draw(self, size: int, rng: Rng) -> Array:
        """Return deviations (size, parameters)."""
        standard = np.abs(rng.standard_normal((size, len(self.left))))
        to_left = rng.random(standard.shape) * (self.left + self.right) < self.left
        return np.where(to_left, -self.left, self.right) * standard

    def log_density(self, deviation: Array) -> Array:
        """Log densities of deviations (points, parameters)."""
        standard = deviation / np.where(deviation < 0.0, self.left, self.right)
        return np.asarray(_normal(standard) - np.log(0.5 * (self.left + self.right)).sum())


@dataclass(frozen=True)
class Student:
    """Density of deviations: multivariate t, whose tails are longer than those of most posteriors.

    Parameters
    ----------
    centre : ndarray, shape (parameters,)
    root : ndarray, shape (parameters, parameters)
    """

    centre: Array
    root: Array

    @classmethod
    def of(cls, drawn: "Weighted") -> "Student":
        """Take mean and covariance from draws with weights."""
        weight = _cut(drawn.log_weight)
        centre = weight @ drawn.deviation
        gap = drawn.deviation - centre
        size = len(centre)
        noise = size * float(weight @ weight)  # share of the covariance that is not known
        covariance = (gap.T * weight) @ gap + noise * np.eye(size)
        return cls(centre, cholesky(covariance / (1.0 + noise), lower=True))

    def draw(self, size: int, rng: Rng) -> Array:
        """Return deviations (size, parameters)."""
        standard = rng.standard_normal((size, len(self.centre)))
        standard /= np.sqrt(rng.chisquare(_TAIL, (size, 1)) / _TAIL)
        return np.asarray(self.centre + standard @ self.root.T)

    def log_density(self, deviation: Array) -> Array:
        """Log densities of deviations (points, parameters)."""
        number = len(self.centre)
        standard = solve_triangular(self.root, (deviation - self.centre).T, lower=True)
        logs = -0.5 * (_TAIL + number) * np.log1p((standard**2).sum(axis=0) / _TAIL)
        logs += gammaln(0.5 * (_TAIL + number)) - gammaln(0.5 * _TAIL)
        logs -= 0.5 * number * np.log(np.pi * _TAIL) + np.log(np.diag(self.root)).sum()
        return np.asarray(logs)


@dataclass(frozen=True)
class Weighted:
    """Draws of parameters by one proposal or more, weighted as draws of their mixture.

    Deterministic mixture weights (Owen and Zhou 2000; Cornuet et al. 2012).

    Parameters
    ----------
    theta : ndarray, shape (draws, 3, columns)
    deviation : ndarray, shape (draws, parameters)
    log_target : ndarray, shape (draws,)
        Log posterior density of deviations, up to the evidence under `Normal`.
    proposals : tuple
        Proposals, and numbers of draws by each.
    """

    theta: Array
    deviation: Array
    log_target: Array
    proposals: tuple[tuple[Split | Student, int], ...]

    @classmethod
    def none(cls, fit: Fit) -> "Weighted":
        """No draws yet."""
        size = fit.normal.mean.shape[1]
        return cls(np.empty((0, 3, size // 3)), np.empty((0, size)), np.empty(0), ())

    def more(self, fit: Fit, proposal: Split | Student, size: int, rng: Rng) -> "Weighted":
        """Add draws of the sd of systems by the normal posterior, and deviations by a proposal."""
        node = systematic(np.exp(fit.normal.log_weight), size, rng)
        deviation = proposal.draw(size, rng)
        theta = fit.normal.place(node, deviation)
        log_target = _normal(deviation) + fit.log_ratio(theta)
        return Weighted(
            np.concatenate([self.theta, theta]), np.concatenate([self.deviation, deviation]),
            np.concatenate([self.log_target, log_target]), (*self.proposals, (proposal, size)),
        )  # fmt: skip

    @cached_property
    def log_weight(self) -> Array:
        """Log of the posterior over the density of the draws."""
        sizes: dict[int, int] = {}
        for proposal, size in self.proposals:
            sizes[id(proposal)] = sizes.get(id(proposal), 0) + size
        logs = [
            proposal.log_density(self.deviation) + np.log(sizes[key] / self.size)
            for key, proposal in {id(proposal): proposal for proposal, _ in self.proposals}.items()
        ]
        return np.asarray(self.log_target - logsumexp(logs, axis=0))

    @property
    def size(self) -> int:
        """How many draws."""
        return len(self.theta)

    @cached_property
    def weight(self) -> Array:
        """Weights that sum to one."""
        return np.asarray(softmax(self.log_weight))

    @cached_property
    def effective_draws(self) -> float:
        """Effective number of draws."""
        return 1.0 / float(self.weight @ self.weight)

    @cached_property
    def k_hat(self) -> float:
        """Pareto shape of the largest weights."""
        return pareto_shape(self.weight)

    @property
    def log_mean(self) -> float:
        """Log of the mean weight."""
        return float(logsumexp(self.log_weight)) - float(np.log(self.size))

    def trusted(self, enough: float) -> bool:
        """Whether there are enough effective draws, and the largest weights are not too large."""
        return self.effective_draws >= enough and self.k_hat < 0.7

    def resampled(self, size: int, rng: Rng) -> Array:
        """Equally probable draws of parameters, in any order."""
        return np.asarray(self.theta[rng.permutation(systematic(self.weight, size, rng))])


def _normal(deviation: Array) -> Array:
    """Log density of standard normal deviations."""
    square = (deviation**2).sum(axis=1)
    return np.asarray(-0.5 * (square + deviation.shape[1] * np.log(2.0 * np.pi)))


@dataclass
class Chains:
    """Markov chains of parameters, all moved together."""

    fit: Fit
    rng: Rng
    theta: Array
    node: Indices = field(init=False)
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

        def ratio_of(chains: Indices, deviation: Array) -> Array:
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


def _cut(log_weight: Array) -> Array:
    """Weights that sum to one, cut at sqrt(n) times their mean (Ionides 2008)."""
    weight = np.minimum(softmax(log_weight), len(log_weight) ** -0.5)
    return np.asarray(weight / weight.sum())


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
