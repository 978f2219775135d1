"""The rates of a judge on points: placed where its calibration set and all marks put them.

The posterior of sensitivity and false positive rate is that of two Betas, of the calibration set,
times the probability of all marks of all systems that the judge marked. A quadrature rule in two
dimensions carries it; every system is then integrated on the same points, so that what systems
share by their judge is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, expit, logsumexp, polygamma

from bayesatk.core.pooling.marks import Rates
from bayesatk.core.pooling.states import States
from bayesatk.metrics.credit import Array
from bayesatk.priors.fields import Beta

_FEWEST, _USUAL, _MOST = 64, 320, 1600  # points of the lattice, of which half count; most where
# marks tell far more than the calibration set
_RATIO = 2.5  # sd of the rates over that of a rate of marks, from which there are more points
_WORK = 2e5  # points times counts times trials that are worked out for one system
_KNOWN_SD = 1e-9  # sd of a rate that is as good as known
_REACH = 2.9  # of t: 2 sinh(2.9) = 18 standard deviations
_ROUNDS = 12  # of moving the lattice
_MOVED, _SCALED = 0.5, 2.5  # sds, and ratio of areas, within which it is well placed
_NARROWER = 0.25  # ratio of sds by which it shrinks at most in a round
_LEFT_OUT = 1e-10  # probability of points that are left out

Shapes = tuple[tuple[float, float], tuple[float, float]]  # Betas of sensitivity and false positives


@dataclass(frozen=True)
class JudgeRates:
    """Rates of the judge of one system.

    Parameters
    ----------
    rates : Rates
        Before the marks of the system in question, after those of the others.
    probability : ndarray, shape (points,)
        After all marks.
    systems : int
        Number of systems that the judge marked.
    seed : int
        Of the order in which its points are drawn: the same for all of these systems.
    cut : bool
        Whether marks tell nothing of the rates: then `rates` are such that `probability` is what
        the calibration set says.
    """

    rates: Rates
    probability: Array
    systems: int = 1
    seed: int = 0
    cut: bool = False

    def draw(self, size: int) -> NDArray[np.intp]:
        """Points as often as their probability says, in the order of the seed."""
        place = (np.arange(size) + 0.5) / size
        point = np.searchsorted(np.cumsum(self.probability), place * self.probability.sum())
        found = np.minimum(point, len(self.probability) - 1)
        return np.random.default_rng(self.seed).permutation(found)


def integrated_rates(
    shapes: Shapes,
    systems: Sequence[States],
    roughly: Callable[[States, Rates], Array],
    log_likelihood: Callable[[States, Rates], Array],
) -> list[JudgeRates]:
    """Return the rates for every system that a judge marked, on the same points for all.

    Parameters
    ----------
    shapes : pair of pairs
        Beta parameters of the sensitivity and of the false positive rate, by the calibration set.
    systems : sequence of States
    roughly, log_likelihood : callable
        ``log_likelihood(states, rates)`` is the log probability of a system's marks given the
        rates, (points,). The rough one only says where points are needed.
    """
    points, log_weight = _placed(shapes, systems, roughly)
    calibrated = Rates(points, log_weight)
    if len(points) == 1:
        return [JudgeRates(calibrated, np.ones(1), len(systems))] * len(systems)
    each = [log_likelihood(one, calibrated) for one in systems]
    total = log_weight + np.sum(each, axis=0)
    rates = [calibrated] * len(systems)
    if len(systems) > 1:
        rates = [Rates(points, _log_normalised(total - own)) for own in each]
    return [JudgeRates(own, np.exp(_log_normalised(total)), len(systems)) for own in rates]


def calibrated_rates(
    shapes: Shapes,
    systems: Sequence[States],
    log_likelihood: Callable[[States, Rates], Array],
) -> list[JudgeRates]:
    """Return the same where marks tell nothing of the rates: a cut posterior.

    Points are weighted by one over the probability of the marks given them, which undoes what the
    marks say of the rates and leaves what they say of the rest given the rates. That probability is
    worked out twice, the second time where the first says that points of the rest are needed.
    """
    points, log_weight = _placed(shapes, systems, lambda _, rates: np.zeros(len(rates)))
    found = []
    for one in systems:
        rates = Rates(points, log_weight)
        for _ in range(2):
            logs = _log_normalised(log_weight - log_likelihood(one, rates))
            rates = Rates(points, logs)
        probability = np.exp(_log_normalised(log_weight))
        found.append(JudgeRates(rates, probability, len(systems), cut=True))
    return found


def _placed(
    shapes: Shapes, systems: Sequence[States], roughly: Callable[[States, Rates], Array]
) -> tuple[Array, Array]:
    """Return points and the log weight of each by the calibration set.

    In whitened logits, each ``2 sinh t``, the points are a lattice in t, for which the trapezoid
    rule converges geometrically. It is turned by an irrational angle, so that no two points are
    alike in what they say of p. Centre and scale are moved to the posterior until they fit it.
    """
    mean = np.array([[a / (a + b) for a, b in shapes]])
    spread = [np.sqrt(a * b / (a + b + 1.0)) / (a + b) for a, b in shapes]
    if max(spread) < _KNOWN_SD:
        return mean, np.zeros(1)
    t, step = _lattice(_number(systems, float(np.hypot(*spread))))
    z = 2.0 * np.sinh(t)
    log_volume = np.log(2.0 * np.cosh(t)).sum(axis=1) + 2.0 * np.log(step)
    ab = np.array(shapes)
    centre = digamma(ab[:, 0]) - digamma(ab[:, 1])
    root = np.diag(np.sqrt(polygamma(1, ab).sum(axis=1)))
    for _ in range(_ROUNDS):
        x = centre + z @ root.T
        pairs = zip(shapes, x.T, strict=True)
        log_weight = log_volume + np.log(abs(np.linalg.det(root)))
        log_weight = log_weight + sum(
            Beta(*shape).log_density(own[:, None]) for shape, own in pairs
        )
        some = log_weight > log_weight.max() + np.log(_LEFT_OUT)
        rates = Rates(expit(x[some]), log_weight[some])
        logs = log_weight[some] + sum(roughly(one, rates) for one in systems)
        weight = np.exp(_log_normalised(logs))
        moved = weight @ z[some]
        gap = z[some] - moved
        own = (weight[:, None] * gap).T @ gap
        if np.abs(moved).max() < _MOVED and 1.0 / _SCALED**2 < np.linalg.det(own) < _SCALED**2:
            break
        centre = centre + root @ moved
        # A posterior much narrower than the lattice says little of its own width.
        values, vectors = np.linalg.eigh(own)
        root = root @ vectors * np.sqrt(np.maximum(values, _NARROWER**2))
    keep = np.flatnonzero(some)[weight > _LEFT_OUT]
    return expit(x[keep]), _log_normalised(log_weight[keep])


def _lattice(number: int) -> tuple[Array, float]:
    """Return about so many points of a turned square lattice around 0, and its step."""
    step = 2.0 * _REACH / np.sqrt(number)
    side = np.arange(-number, number + 1) * step
    angle = np.arctan(0.5 + 0.5 * np.sqrt(5.0))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2) @ turn.T
    return points[np.abs(points).max(axis=1) <= _REACH], step


def _number(systems: Sequence[States], spread: float) -> int:
    """How many points resolve what is known of a system's mean given the rates."""
    trials = max(float(one.count @ one.trials) for one in systems) + 1.0
    wanted = _USUAL * max(1.0, spread * np.sqrt(trials) / _RATIO)
    cells = max(float(np.sum(one.trials + 1.0)) for one in systems)
    return int(np.clip(min(wanted, _WORK / cells), _FEWEST, _MOST))


def _log_normalised(logs: Array) -> Array:
    return np.asarray(logs - logsumexp(logs))
