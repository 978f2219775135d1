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
    Tail,
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

_GRADIENT_STEP = 1e-3  # of finite differences of the log density
_HESSIAN_STEP = 1e-2  # of finite differences of its gradient
_CURVATURE_MIN = 0.02  # at the mode: no posterior is taken to be wider than 7 units
_DEGREES_OF_FREEDOM = 6.0  # of Student variates around a mode
_PROPOSAL_SCALE = 1.4  # of these variates, where the mode is that of another law
_EFFECTIVE_DRAWS_MIN = 400.0  # with fewer, sampling goes on
_NEGLIGIBLE_ODDS = 0.05  # of a law whose log evidence is at the limit of negligible
_MINOR_ODDS = 0.25  # of a law, below which k-hat may be up to 1
_LAW_DRAWS_MIN = 100.0  # effective, of any law that is not negligible
_LOG_EVIDENCE_MARGIN = 1.0  # by which an early estimate may be too low
_LOG_DENSITY_FLOOR = -1e10  # replaces NaN and minus infinity
_PARAMETER_MAX = 30.0  # of unconstrained parameters, within which modes are searched
_LATTICE_SIZES = (1597, 4181, 10_946)  # Fibonacci numbers
_CHANGE_TOL = 1e-5  # of means and sds from one lattice to the next, in sds
_EFFECTIVE_POINTS_MIN = 400.0  # with fewer, quantiles are too coarse
_RELATIVE_ROUNDING_ERROR = 2e-13  # relative error of a summed log-likelihood
_LOG_DENSITY_DROP = 24.0  # from the peak to the ends of a lattice: exp(-24) ~ 4e-11
_T_MAX = 9.0  # of t: 2 sinh(9) ~ 8100 standard deviations
_SCAN_POINTS = 53  # of each side, to find how far a lattice must reach
_OMITTED_PROBABILITY = 1e-10  # total probability of points that are left out
_NEWTON_STEPS_MAX = 40
_NEWTON_STEP_SIZE_MAX = 3.0  # in any parameter
_LATTICE_CENTRE_MAX = 60.0  # of either sign
_STEP_RATIO = 4.0  # from one width of finite differences to the next


@dataclass(frozen=True)
class Laplace:
    """Mode of a log density, and a root of the inverse curvature there."""

    mode: Array
    root: Array


def finite_log_density(log_density: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the log density with NaN and minus infinity replaced by -1e10."""

    def density(theta: Array) -> Array:
        return np.nan_to_num(log_density(theta), nan=_LOG_DENSITY_FLOOR, neginf=_LOG_DENSITY_FLOOR)

    return density


def located(log_density: Callable[[Array], Array], starts: list[Array]) -> Laplace:
    """Find the highest mode that is reached from the starts, and the curvature there."""
    density = finite_log_density(log_density)

    def objective(theta: Array) -> tuple[float, Array]:
        value, slope = value_and_gradient(density, theta, _GRADIENT_STEP)
        return -value, -slope

    modes = [
        minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"gtol": 1e-3, "maxiter": 100},
            bounds=[(-_PARAMETER_MAX, _PARAMETER_MAX)] * len(start),
        )
        for start in starts
    ]
    mode = np.asarray(min(modes, key=lambda result: float(result.fun)).x)
    root = inverse_curvature_root(
        lambda theta: value_and_gradient(density, theta, _GRADIENT_STEP)[1],
        mode,
        _HESSIAN_STEP,
        _CURVATURE_MIN,
    )
    return Laplace(mode, root)


def certain() -> WeightedPoints:
    """Return the one point of a model without hyperparameters, with log evidence 0."""
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
    density = finite_log_density(log_density)
    centre, root = _newton(density, starts)
    low, high = _spans(density, centre, root)
    dimension = len(centre)
    points, last_summary = None, None
    for lattice_size in _LATTICE_SIZES:
        u = (np.arange(lattice_size) + 0.5)[:, None] / lattice_size
        if dimension == 2:
            generator = round(lattice_size * (np.sqrt(5.0) - 1.0) / 2.0)
            second = (np.arange(lattice_size) * generator % lattice_size + 0.5) / lattice_size
            u = np.column_stack([u, second])
        t = low + (high - low) * u
        theta = centre + 2.0 * np.sinh(t) @ root.T
        logs = density(theta) + np.log(2.0 * np.cosh(t)).sum(axis=1)
        logs += (
            np.log((high - low) / lattice_size ** (1.0 / dimension)).sum()
            + np.linalg.slogdet(root)[1]
        )
        peak = logs.max()
        weight = np.exp(logs - peak)
        evidence = float(np.log(weight.sum()) + peak)
        weight /= weight.sum()
        order = np.argsort(weight)
        retained = np.sort(order[np.cumsum(weight[order]) > _OMITTED_PROBABILITY])
        points = WeightedPoints(
            theta[retained],
            weight[retained] / weight[retained].sum(),
            evidence,
            np.nan,
            np.inf,
            "quadrature",
        )
        summary = _summary(points)
        if last_summary is not None:
            change = np.abs(summary - last_summary) / np.append(
                np.tile(summary[dimension:-1], 2), 1.0
            )
            settled = change.max() < _CHANGE_TOL + _RELATIVE_ROUNDING_ERROR * abs(evidence)
            if settled and 1.0 / float(points.weight @ points.weight) > _EFFECTIVE_POINTS_MIN:
                break
        last_summary = summary
    assert points is not None
    return points


def _summary(points: WeightedPoints) -> Array:
    """Means and sds of the parameters, and the log evidence."""
    mean = points.weight @ points.theta
    sd = np.sqrt(points.weight @ (points.theta - mean) ** 2)
    return np.concatenate([mean, np.maximum(sd, 1e-300), [points.log_evidence]])


def _newton(density: Callable[[Array], Array], starts: list[Array]) -> tuple[Array, Array]:
    """Mode, and a triangular root of the inverse curvature there.

    Newton's method on finite differences takes the best of several step lengths. The mode need not
    be exact, as it only centres a lattice. The root is upper triangular, so that the last parameter
    depends on one whitened coordinate alone.
    """
    candidates = np.stack(starts)
    location = candidates[np.argmax(density(candidates))]
    width = np.full(len(location), 1e-2)
    for _ in range(_NEWTON_STEPS_MAX):
        value, gradient, hessian, width = _differences(density, location, width)
        values, vectors = np.linalg.eigh(hessian)
        inverse = (vectors / np.maximum(values, _CURVATURE_MIN)) @ vectors.T
        step = inverse @ gradient
        step *= min(1.0, _NEWTON_STEP_SIZE_MAX / float(np.abs(step).max() + 1e-300))
        lengths = 4.0 ** -np.arange(6.0)
        candidates = np.clip(
            location + lengths[:, None] * step, -_LATTICE_CENTRE_MAX, _LATTICE_CENTRE_MAX
        )
        logs = density(candidates)
        best = int(np.argmax(logs))
        if not logs[best] > value + 1e-4:
            break
        location = candidates[best]
    lower = np.linalg.cholesky(inverse[::-1, ::-1])
    return location, lower[::-1, ::-1]


def _differences(
    density: Callable[[Array], Array], location: Array, width: Array
) -> tuple[float, Array, Array, Array]:
    """Value, gradient, negative Hessian and the steps, wide enough to resolve the curvature."""
    size, axes = len(location), np.eye(len(location))
    widths = np.clip(width[:, None] * _STEP_RATIO ** np.arange(-2.0, 3.0), 1e-4, 1.0)
    moves = axes[:, None, :] * widths[..., None]
    probes = location + np.stack([moves, -moves])
    values = density(np.concatenate([location[None], probes.reshape(-1, size)]))
    centre, neighbours = float(values[0]), values[1:].reshape(2, size, -1)
    log_density_drop = centre - neighbours.mean(axis=0)
    step_index = np.where(
        log_density_drop > 0.05, np.arange(widths.shape[1]), widths.shape[1] - 1
    ).min(axis=1)
    rows = np.arange(size)
    width = widths[rows, step_index]
    plus, minus = neighbours[:, rows, step_index]
    hessian = np.diag((2.0 * centre - plus - minus) / width**2)
    if size == 2:
        corners = location + width * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
        value = density(corners)
        hessian += (
            np.eye(2)[::-1] * -(value[0] - value[1] - value[2] + value[3]) / (4.0 * width.prod())
        )
    return centre, (plus - minus) / (2.0 * width), hessian, width


def _spans(density: Callable[[Array], Array], centre: Array, root: Array) -> tuple[Array, Array]:
    """Ranges of t outside which the integrand is below exp(-24) of its peak."""
    side = np.linspace(-_T_MAX, _T_MAX, _SCAN_POINTS)
    t = np.stack(np.meshgrid(*[side] * len(centre), indexing="ij"), axis=-1).reshape(
        -1, len(centre)
    )
    logs = density(centre + 2.0 * np.sinh(t) @ root.T) + np.log(np.cosh(t)).sum(axis=1)
    inside = t[logs > logs.max() - _LOG_DENSITY_DROP]
    step = side[1] - side[0]
    low, high = inside.min(axis=0), inside.max(axis=0)
    if low.min() <= step - _T_MAX or high.max() >= _T_MAX - step:
        raise ValueError(
            "pooling='partial': the posterior of the icc does not fall off, so it is improper. "
            "The data do not identify it under this prior; use a proper prior such as the default."
        )
    return low - 1.5 * step, high + 1.5 * step


def around(
    log_density: Callable[[Array], Array],
    laplace: Laplace,
    seed: int,
    last: int,
    tail: Tail | None = None,
) -> WeightedPoints:
    """Points of a posterior by importance sampling around its mode."""
    return integrate_around_mode(
        finite_log_density(log_density), laplace.mode, laplace.root, seed, last, tail
    )


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
    tail: Tail | None = None,
) -> WeightedPoints:
    """Points of the posterior of a law with several parts, by importance sampling from its prior.

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
        Of the Markov chains.
    negligible : float
        Log evidence below which few points are enough.
    most : int
        Largest number of points of the final round.
    enough_draws : float
        Effective number of draws that is enough for a probable law.
    per_round : int
        Points of each tempering round.
    tail : callable, optional
        As `adaptive_importance_sampling` takes it; not where fields have a shape.
    """
    law = replace(fields, fields=tuple(field for field in fields if field.name not in shared))
    columns = np.r_[tuple(fields.slices[field.name] for field in law)]
    other_columns = np.r_[tuple([fields.slices[name] for name in shared] or [slice(0, 0)])]
    simple_columns = np.r_[tuple([simple.slices[name] for name in shared] or [slice(0, 0)])]
    covariance = (
        _PROPOSAL_SCALE**2 * (laplace.root @ laplace.root.T)[np.ix_(simple_columns, simple_columns)]
    )
    root = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(other_columns)))
    centre, inverse = laplace.mode[simple_columns], np.linalg.inv(root)
    volume = float(np.log(np.diag(root)).sum())
    density = finite_log_density(log_density)

    def enough(sample: ImportanceSample) -> bool:
        return _trusted(sample, negligible - _LOG_EVIDENCE_MARGIN, enough_draws)

    if "shape" in shared:
        blocks = [columns, other_columns]
        first = _given(density, fields, law, columns, other_columns, centre, per_round)
        base = BlockwiseMixture(
            blocks, [first, StudentMixture(np.ones(1), centre[None], root[None])]
        )
        result = multiple_importance_sampling(base, density, enough, per_round, most)
        return _trusted_or_sliced(density, result, seed, negligible)

    def from_uniform(u: Array) -> Array:
        theta = np.empty((len(u), fields.size))
        theta[:, columns] = law.from_uniform(u[:, : len(columns)])
        theta[:, other_columns] = (
            centre + stdtrit(_DEGREES_OF_FREEDOM, u[:, len(columns) :]) @ root.T
        )
        return theta

    def log_base(theta: Array) -> Array:
        z = (theta[:, other_columns] - centre) @ inverse.T
        logs = law.log_density(theta[:, columns])
        return np.asarray(logs + log_student_t(z, _DEGREES_OF_FREEDOM).sum(axis=1) - volume)

    result = adaptive_importance_sampling(
        from_uniform,
        log_base,
        density,
        fields.size,
        enough,
        final_points_max=most,
        points_per_round=per_round,
        tail=tail,
    )
    return _trusted_or_sliced(density, result, seed, negligible, tail)


def _trusted_or_sliced(
    log_density: Callable[[Array], Array],
    weighted: ImportanceSample,
    seed: int,
    negligible: float,
    tail: Tail | None = None,
) -> WeightedPoints:
    """Return weighted points; where weights cannot be trusted, after more rounds or by chains."""

    def enough(sample: ImportanceSample) -> bool:
        return _trusted(sample, negligible, _EFFECTIVE_DRAWS_MIN)

    weighted = refined_if_needed(weighted, log_density, enough, tail)
    points = WeightedPoints(
        weighted.points,
        weighted.weight,
        weighted.log_evidence,
        weighted.k_hat,
        weighted.effective_draws,
        "importance sampling",
    )
    if enough(weighted):
        return points
    centre = points.weight @ points.theta
    deviation = points.theta - centre
    covariance = (points.weight[:, None] * deviation).T @ deviation + 1e-8 * np.eye(len(centre))
    return elliptical_slice_posterior(
        log_density, points, centre, np.linalg.cholesky(covariance), seed
    )


def _trusted(weighted: ImportanceSample, negligible: float, draws: float) -> bool:
    """Whether weights can be trusted; an improbable law needs few effective draws."""
    odds = _NEGLIGIBLE_ODDS * np.exp(np.clip(weighted.log_evidence - negligible, -50.0, 50.0))
    draws_min = max(draws * odds / (1.0 + odds), _LAW_DRAWS_MIN)
    k_hat_max = 1.0 if odds < _MINOR_ODDS else K_HAT_MAX
    trusted = weighted.effective_draws > draws_min and weighted.k_hat < k_hat_max
    return trusted or weighted.log_evidence < negligible


def _given(
    log_density: Callable[[Array], Array],
    fields: Fields,
    law: Fields,
    columns: Ints,
    other: Ints,
    centre: Array,
    per_round: int,
) -> StudentMixture:
    """Fit kernels to the posterior of a law's parameters given the other parameters."""

    def of_law_alone(of_law: Array) -> Array:
        theta = np.empty((len(of_law), fields.size))
        theta[:, columns], theta[:, other] = of_law, centre
        return log_density(theta)

    sample = adaptive_importance_sampling(
        law.from_uniform,
        law.log_density,
        of_law_alone,
        len(columns),
        lambda _: True,
        per_round,
        per_round,
    )
    return StudentMixture.fit(sample.points, sample.weight, per_round)


def start_of(fields: Fields, rate: float, icc_logit: float) -> Array:
    """Start of a search for the mode: at a success rate, small effects and accurate judges."""
    theta = np.zeros(fields.size)
    starts = {
        "mean": float(logit(rate)),
        "icc": icc_logit,
        "group_sd": -0.7,
        "sensitivity": 2.0,
        "false_positive_rate": -2.0,
        "rate_icc": -3.0,
    }
    for name, value in starts.items():
        if name in fields.slices:
            theta[fields.slices[name]] = value
    return theta
