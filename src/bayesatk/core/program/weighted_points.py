"""Weighted points of a model's hyperparameters: one driver for every structure and observation.

One or two hyperparameters are integrated on a lattice around their mode, to full precision. A law
of one Beta, or a Dirichlet, with more of them has one mode: Student variates around it, improved by
adaptive importance sampling. Laws of several parts start from their prior, with what structure and
judges add around the mode of the one Beta, and approach the posterior by powers of the likelihood;
those of levels start from their posterior given the base of that mode, and all rounds count. Where
weights cannot be trusted, Markov chains by elliptical slices take over; they have no evidence.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import logit, stdtrit

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.numerics.importance import (
    K_HAT_MAX,
    BlockwiseMixture,
    ImportanceSample,
    StudentMixture,
    adaptive_importance_sampling,
    multiple_importance_sampling,
    refined_if_needed,
)
from bayesatk.core.numerics.points import (
    WeightedPoints,
    elliptical_slice_posterior,
    integrate_around_mode,
    inverse_curvature_root,
    log_student_t,
    value_and_gradient,
)
from bayesatk.priors.fields import Fields

_STEP, _WIDE_STEP = 1e-3, 1e-2  # of finite differences: of the log density, and of its gradient
_FLATTEST = 0.02  # curvature at the mode: nothing is wider than 7 units
_FREEDOM = 6.0  # degrees of freedom of the variates around a mode
_WIDER = 1.4  # scale of these variates where the mode is that of another law
_ENOUGH = 400.0  # least effective number of draws of weighted points
_NEGLIGIBLE_ODDS, _MINOR_ODDS = 0.05, 0.25  # of laws that hardly count beside others
_FEWEST = 100.0  # effective number of draws of any law that counts
_MARGIN = 1.0  # by which a log evidence that is not yet known well may be too low
_HOPELESS = -1e10  # log density where it is not a number
_BOUND = 30.0  # unconstrained parameters, beyond which no mode is looked for


_SIZES = (1597, 4181, 10_946)  # points of a lattice: Fibonacci numbers
_SETTLED = 1e-5  # sds by which means and sds of parameters may move from one lattice to the next
_EFFECTIVE = 400.0  # least effective number of points, which quantiles are read from
_ROUNDING = 2e-13  # relative error of a summed log-likelihood
_TAIL = 24.0  # log-density drop at which a lattice ends: exp(-24) ~ 4e-11
_WIDEST = 9.0  # of t: 2 sinh(9) ~ 8100 standard deviations
_SCANNED = 53  # points to a side that find where a lattice has to reach
_NEGLIGIBLE = 1e-10  # probability of points that are left out
_NEWTON, _FAR, _EDGE = 40, 3.0, 60.0  # steps to a mode, the longest, and where they must stay
_WIDER_STEP = 4.0  # from one width of finite differences to the next


@dataclass(frozen=True)
class Laplace:
    """Mode of a log density, and a root of the inverse curvature there."""

    mode: Array
    root: Array


def tamed(log_density: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a log density that is a very small number wherever it is none."""

    def density(theta: Array) -> Array:
        return np.nan_to_num(log_density(theta), nan=_HOPELESS, neginf=_HOPELESS)

    return density


def located(log_density: Callable[[Array], Array], starts: list[Array]) -> Laplace:
    """Find the highest of the modes that some starts lead to, and the curvature there."""
    density = tamed(log_density)

    def objective(theta: Array) -> tuple[float, Array]:
        value, slope = value_and_gradient(density, theta, _STEP)
        return -value, -slope

    modes = [
        minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-3, "maxiter": 100},
            bounds=[(-_BOUND, _BOUND)] * len(start),
        )
        for start in starts
    ]  # fmt: skip
    mode = np.asarray(min(modes, key=lambda result: float(result.fun)).x)
    root = inverse_curvature_root(
        lambda theta: value_and_gradient(density, theta, _STEP)[1], mode, _WIDE_STEP, _FLATTEST
    )
    return Laplace(mode, root)


def certain() -> WeightedPoints:
    """Return the only point of no hyperparameters, without its evidence."""
    return WeightedPoints(np.zeros((1, 0)), np.ones(1), 0.0, np.nan, np.inf, "quadrature")


def on_lattice(log_density: Callable[[Array], Array], starts: list[Array]) -> WeightedPoints:
    """Points of a posterior of one or two parameters, on ever finer lattices.

    The parameters are whitened by the curvature at the mode, and each whitened coordinate is
    ``2 sinh t``, so that a normal peak and the exponential tails of a direction that is hardly
    identified are reached by the same points (Takahasi and Mori 1974). In t the points are a
    Fibonacci lattice, for which equal weights converge geometrically, as they do on a grid, while
    no two points have the same value of a parameter.

    Raises
    ------
    ValueError
        If the density does not fall off.
    """
    density = tamed(log_density)
    centre, root = _newton(density, starts)
    low, high = _spans(density, centre, root)
    size = len(centre)
    points, before = None, None
    for number in _SIZES:
        u = (np.arange(number) + 0.5)[:, None] / number
        if size == 2:
            previous = round(number * (np.sqrt(5.0) - 1.0) / 2.0)
            second = (np.arange(number) * previous % number + 0.5) / number
            u = np.column_stack([u, second])
        t = low + (high - low) * u
        theta = centre + 2.0 * np.sinh(t) @ root.T
        logs = density(theta) + np.log(2.0 * np.cosh(t)).sum(axis=1)
        logs += np.log((high - low) / number ** (1.0 / size)).sum() + np.linalg.slogdet(root)[1]
        peak = logs.max()
        weight = np.exp(logs - peak)
        evidence = float(np.log(weight.sum()) + peak)
        weight /= weight.sum()
        order = np.argsort(weight)
        kept = np.sort(order[np.cumsum(weight[order]) > _NEGLIGIBLE])
        points = WeightedPoints(
            theta[kept], weight[kept] / weight[kept].sum(), evidence, np.nan, np.inf, "quadrature"
        )
        summary = _summary(points)
        if before is not None:
            moved = np.abs(summary - before) / np.append(np.tile(summary[size:-1], 2), 1.0)
            settled = moved.max() < _SETTLED + _ROUNDING * abs(evidence)
            if settled and 1.0 / float(points.weight @ points.weight) > _EFFECTIVE:
                break
        before = summary
    assert points is not None
    return points


def _summary(points: WeightedPoints) -> Array:
    """Means and sds of the parameters, and the log evidence."""
    mean = points.weight @ points.theta
    sd = np.sqrt(points.weight @ (points.theta - mean) ** 2)
    return np.concatenate([mean, np.maximum(sd, 1e-300), [points.log_evidence]])


def _newton(density: Callable[[Array], Array], starts: list[Array]) -> tuple[Array, Array]:
    """Mode, and a triangular root of the inverse curvature there.

    Newton's method on finite differences, the best of several step lengths at a time. The mode need
    not be exact: it only centres a lattice. The last parameter is a multiple of one coordinate.
    """
    tries = np.stack(starts)
    place = tries[np.argmax(density(tries))]
    width = np.full(len(place), 1e-2)
    for _ in range(_NEWTON):
        value, gradient, hessian, width = _differences(density, place, width)
        values, vectors = np.linalg.eigh(hessian)
        inverse = (vectors / np.maximum(values, _FLATTEST)) @ vectors.T
        step = inverse @ gradient
        step *= min(1.0, _FAR / float(np.abs(step).max() + 1e-300))
        lengths = 4.0 ** -np.arange(6.0)
        tries = np.clip(place + lengths[:, None] * step, -_EDGE, _EDGE)
        logs = density(tries)
        best = int(np.argmax(logs))
        if not logs[best] > value + 1e-4:
            break
        place = tries[best]
    lower = np.linalg.cholesky(inverse[::-1, ::-1])
    return place, lower[::-1, ::-1]


def _differences(
    density: Callable[[Array], Array], place: Array, width: Array
) -> tuple[float, Array, Array, Array]:
    """Value, gradient and negative Hessian, on steps wide enough to see the curvature."""
    size, axes = len(place), np.eye(len(place))
    widths = np.clip(width[:, None] * _WIDER_STEP ** np.arange(-2.0, 3.0), 1e-4, 1.0)
    moves = axes[:, None, :] * widths[..., None]
    probes = place + np.stack([moves, -moves])
    values = density(np.concatenate([place[None], probes.reshape(-1, size)]))
    centre, around_it = float(values[0]), values[1:].reshape(2, size, -1)
    drop = centre - around_it.mean(axis=0)
    seen = np.where(drop > 0.05, np.arange(widths.shape[1]), widths.shape[1] - 1).min(axis=1)
    rows = np.arange(size)
    width = widths[rows, seen]
    plus, minus = around_it[:, rows, seen]
    hessian = np.diag((2.0 * centre - plus - minus) / width**2)
    if size == 2:
        corners = place + width * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
        value = density(corners)
        hessian += (
            np.eye(2)[::-1] * -(value[0] - value[1] - value[2] + value[3]) / (4.0 * width.prod())
        )
    return centre, (plus - minus) / (2.0 * width), hessian, width


def _spans(density: Callable[[Array], Array], centre: Array, root: Array) -> tuple[Array, Array]:
    """Ranges of t outside which the integrand is below exp(-_TAIL) of its peak."""
    side = np.linspace(-_WIDEST, _WIDEST, _SCANNED)
    t = np.stack(np.meshgrid(*[side] * len(centre), indexing="ij"), axis=-1).reshape(
        -1, len(centre)
    )
    logs = density(centre + 2.0 * np.sinh(t) @ root.T) + np.log(np.cosh(t)).sum(axis=1)
    inside = t[logs > logs.max() - _TAIL]
    step = side[1] - side[0]
    low, high = inside.min(axis=0), inside.max(axis=0)
    if low.min() <= step - _WIDEST or high.max() >= _WIDEST - step:
        raise ValueError(
            "pooling='partial': the posterior of the icc does not fall off, so it is improper. "
            "The data do not identify it under this prior; use a proper prior such as the default."
        )
    return low - 1.5 * step, high + 1.5 * step


def around(
    log_density: Callable[[Array], Array], laplace: Laplace, seed: int, last: int
) -> WeightedPoints:
    """Points of a posterior around its mode."""
    return integrate_around_mode(tamed(log_density), laplace.mode, laplace.root, seed, last)


def from_prior(
    log_density: Callable[[Array], Array],
    fields: Fields,
    laplace: Laplace,
    simple: Fields,
    shared: list[str],
    seed: int,
    negligible: float,
    most: int,
    enough_draws: float,
    per_round: int,
) -> WeightedPoints:
    """Points of a posterior of a law with several parts.

    Parameters
    ----------
    log_density : callable
        Log of prior times likelihood at points of `fields`.
    fields : Fields
    laplace : Laplace
        Mode and curvature of the model of one Beta, whose fields are `simple`.
    simple : Fields
    shared : list of str
        Fields that both models have beside those of the law: of structure, and of judges.
    seed : int
        Of Markov chains.
    negligible : float
        Log evidence below which few points will do.
    most : int
        Points that may be drawn at once, to begin with a few thousand.
    enough_draws : float
        Effective number of draws from which no more points are drawn, of a law that is probable.
    per_round : int
        Points of a round on the way.
    """
    law = replace(fields, fields=tuple(one for one in fields if one.name not in shared))
    columns = np.r_[tuple(fields.slices[one.name] for one in law)]
    other = np.r_[tuple([fields.slices[name] for name in shared] or [slice(0, 0)])]
    simple_columns = np.r_[tuple([simple.slices[name] for name in shared] or [slice(0, 0)])]
    covariance = _WIDER**2 * (laplace.root @ laplace.root.T)[np.ix_(simple_columns, simple_columns)]
    root = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(other)))
    centre, inverse = laplace.mode[simple_columns], np.linalg.inv(root)
    volume = float(np.log(np.diag(root)).sum())
    density = tamed(log_density)

    def enough(sample: ImportanceSample) -> bool:
        return _trusted(sample, negligible - _MARGIN, enough_draws)

    if "shape" in shared:
        blocks = [columns, other]
        first = _given(density, fields, law, columns, other, centre, per_round)
        base = BlockwiseMixture(
            blocks, [first, StudentMixture(np.ones(1), centre[None], root[None])]
        )
        result = multiple_importance_sampling(base, density, enough, per_round, most)
        return _trusted_or_sliced(density, result, seed, negligible)

    def from_uniform(u: Array) -> Array:
        theta = np.empty((len(u), fields.size))
        theta[:, columns] = law.from_uniform(u[:, : len(columns)])
        theta[:, other] = centre + stdtrit(_FREEDOM, u[:, len(columns) :]) @ root.T
        return theta

    def log_base(theta: Array) -> Array:
        z = (theta[:, other] - centre) @ inverse.T
        logs = law.log_density(theta[:, columns])
        return np.asarray(logs + log_student_t(z, _FREEDOM).sum(axis=1) - volume)

    result = adaptive_importance_sampling(
        from_uniform, log_base, density, fields.size, enough, final_points_max=most,
        points_per_round=per_round,
    )  # fmt: skip
    return _trusted_or_sliced(density, result, seed, negligible)


def _trusted_or_sliced(
    log_density: Callable[[Array], Array], weighted: ImportanceSample, seed: int, negligible: float
) -> WeightedPoints:
    """Return weighted points, of more rounds or by Markov chains where they cannot be trusted."""

    def enough(found: ImportanceSample) -> bool:
        return _trusted(found, negligible, _ENOUGH)

    weighted = refined_if_needed(weighted, log_density, enough)
    points = WeightedPoints(
        weighted.points, weighted.weight, weighted.log_evidence, weighted.k_hat,
        weighted.effective_draws, "importance sampling",
    )  # fmt: skip
    if enough(weighted):
        return points
    centre = points.weight @ points.theta
    gap = points.theta - centre
    spread = (points.weight[:, None] * gap).T @ gap + 1e-8 * np.eye(len(centre))
    return elliptical_slice_posterior(log_density, points, centre, np.linalg.cholesky(spread), seed)


def _trusted(weighted: ImportanceSample, negligible: float, draws: float) -> bool:
    """Whether weights can be trusted: of a law that is hardly probable few draws will do."""
    odds = _NEGLIGIBLE_ODDS * np.exp(np.clip(weighted.log_evidence - negligible, -50.0, 50.0))
    enough = max(draws * odds / (1.0 + odds), _FEWEST)
    uneven = 1.0 if odds < _MINOR_ODDS else K_HAT_MAX
    trusted = weighted.effective_draws > enough and weighted.k_hat < uneven
    return trusted or weighted.log_evidence < negligible


def _given(
    log_density: Callable[[Array], Array], fields: Fields, law: Fields, columns: Ints, other: Ints,
    centre: Array, per_round: int,
) -> StudentMixture:  # fmt: skip
    """Kernels on the posterior of a law's parameters given all others, where one family is all."""

    def of_law_alone(of_law: Array) -> Array:
        theta = np.empty((len(of_law), fields.size))
        theta[:, columns], theta[:, other] = of_law, centre
        return log_density(theta)

    given = adaptive_importance_sampling(
        law.from_uniform, law.log_density, of_law_alone, len(columns), lambda _: True, per_round,
        per_round,
    )  # fmt: skip
    return StudentMixture.fit(given.points, given.weight, per_round)


def start_of(fields: Fields, rate: float, icc_logit: float) -> Array:
    """Where a mode is looked for: a rate of right trials, effects small, rates of a judge good."""
    theta = np.zeros(fields.size)
    starts = {
        "mean": float(logit(rate)), "icc": icc_logit, "group_sd": -0.7, "sensitivity": 2.0,
        "false_positive_rate": -2.0, "rate_icc": -3.0,
    }  # fmt: skip
    for name, value in starts.items():
        if name in fields.slices:
            theta[fields.slices[name]] = value
    return theta
