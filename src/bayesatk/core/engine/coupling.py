"""Joint draws of systems: a Gaussian copula of their posteriors, from the questions they share.

Systems that answered the same questions have correlated means over questions like these, because
questions that are hard for one system are hard for another. The correlations are estimated from
the values of the questions, trial noise included. As they are uncertain, correlation matrices are
drawn from an inverse Wishart posterior, whose prior is centred at equal correlations of the average
observed size. Normal draws with these correlations give the ranks of the joint draws (a Gaussian
copula), and the posterior of each system gives the values.

Means over these questions are independent given the trials, except where a system did not try a
question, and its mean takes that question to be like those that it tried. Let system i have the
share w_iq of question q in the mean by which it judges (1/n_i of the n_i that it tried) and 1/M in
the mean over all M. Its error is the sum over questions of (w_iq - 1/M) times the value; so those
of two systems have a covariance of ``sum_q (w_iq - 1/M) (w_jq - 1/M) = s_ij / (n_i n_j) - 1/M``
times that of their values, where they tried s_ij of the same. It is zero where both tried all, and
negative where they share fewer than two independent choices would: each lacks what the other tried.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from bayesatk._tools.arrays import Array, Flags, Rng

# Prior of the average correlation, and the number of questions that it counts as for one pair of
# systems. With a smaller number the better of two systems that differ by a few marks is ahead with
# too large a probability; with a larger one intervals of nearly equal systems are too wide.
_PRIOR_CORRELATION, _PRIOR_QUESTIONS = 0.5, 24.0
_OBSERVED_MIN, _OBSERVED_MAX, _AVERAGE_MAX = -0.5, 0.995, 0.99  # bounds of average correlations
_FREEDOM_PER_SYSTEM, _FREEDOM_OFFSET = 6, 8  # of the inverse Wishart prior: 6 systems - 8
_DIFFERING_PRIOR = 0.5  # questions on which a system differs from all others, a priori
_MATRICES_MIN, _MATRICES_MAX, _MATRIX_FLOATS = 200, 1000, 2e7  # correlation matrices drawn
_MAX_TILT = 0.1  # of levels, at which draws are read for their mean to be exact
_TILT_STEPS = 3  # of Newton's method
_RELATIVE_ZERO = 1e-12  # values with a smaller spread, relative to the largest, are equal


@dataclass(frozen=True)
class Influence:
    """Influence of every question on the mean of every system: weighted regression residuals.

    Parameters
    ----------
    rows : ndarray, shape (metrics, systems, questions)
        Zero where a system did not try a question.
    overlap : ndarray, shape (systems, systems)
        Correlation of the means of two systems, were the values of all systems equal.
    error_overlap : ndarray, shape (systems, systems)
        Covariance of the errors of two means over these questions that are due to the questions
        not tried, relative to the sds of the means over questions like these; as ``overlap``.
    tried : ndarray of bool, shape (systems, questions)
    degrees_of_freedom : float
        Effective number of equally weighted questions of a system, less regression coefficients.
    """

    rows: Array
    overlap: Array
    error_overlap: Array
    tried: Flags
    degrees_of_freedom: float

    @classmethod
    def of(
        cls,
        values: Array,
        share: Array,
        fixed: Array | None = None,
        share_of_these: Array | None = None,
    ) -> "Influence":
        """Return the influence of questions on weighted means of their values.

        Parameters
        ----------
        values : ndarray, shape (metrics, systems, questions)
            NaN where a system did not try a question.
        share : ndarray, shape (questions,)
            Weight of every question in a mean.
        fixed : ndarray, shape (questions, columns), optional
            Regressors whose effects are not due to the choice of questions: a constant (the
            default), groups, covariates.
        share_of_these : ndarray, shape (questions,), optional
            Weight of every question in the mean over these questions; by default ``share``.

        Examples
        --------
        Two systems tried two of four questions each, and one of these is the same: 1/2 and
        ``(1 / 4 - 1 / 4) * 2`` for the error; each error alone has ``(1 / 2 - 1 / 4) * 2``.

        >>> nan = float("nan")
        >>> values = np.array([[[0.2, 0.4, nan, nan], [nan, 0.3, 0.9, nan]]])
        >>> both = Influence.of(values, np.ones(4))
        >>> both.overlap.round(3).tolist(), both.error_overlap.round(3).tolist()
        ([[1.0, 0.5], [0.5, 1.0]], [[0.5, 0.0], [0.0, 0.5]])
        """
        tried = ~np.isnan(values).any(axis=0)
        weight = _shares(share * tried)
        fixed = np.ones((len(share), 1)) if fixed is None else fixed
        rows, degrees_of_freedom = np.zeros(values.shape), np.zeros(len(weight))
        share_of_these = share if share_of_these is None else share_of_these
        for system, (system_weight, tried_here) in enumerate(zip(weight, tried, strict=True)):
            root_weight = np.sqrt(system_weight[tried_here])[:, None]
            observed = values[:, system, tried_here].T
            coefficients, _, rank, _ = np.linalg.lstsq(
                root_weight * fixed[tried_here], root_weight * observed, rcond=None
            )
            residuals = observed - fixed[tried_here] @ coefficients
            # Of values that are all equal rounding errors are left, which are the same for systems
            # with the same values.
            size, rounding = (
                np.abs(columns).max(axis=0, initial=0.0) for columns in (observed, residuals)
            )
            residuals *= rounding > _RELATIVE_ZERO * size
            rows[:, system, tried_here] = (system_weight[tried_here, None] * residuals).T
            effective_questions = 1.0 / max(float(system_weight @ system_weight), 1e-300)
            degrees_of_freedom[system] = effective_questions - rank
        error_overlap = overlap_of_errors(tried, share, fixed, share_of_these)
        freedom = max(float(degrees_of_freedom.mean()), 0.0)
        return cls(rows, _overlap(weight, weight), error_overlap, tried, freedom)

    def roots(self, question_share: Array, rng: Rng) -> Array:
        """Draw square roots of the correlations of the means over questions like these.

        Parameters
        ----------
        question_share : ndarray, shape (metrics, systems)
            Share of the variance of every mean that is due to the choice of questions.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (metrics, matrices, systems, systems)
            From the same random numbers for all metrics, so that metrics stay correlated.
        """
        systems = question_share.shape[1]
        matrices = int(np.clip(_MATRIX_FLOATS / systems**3, _MATRICES_MIN, _MATRICES_MAX))
        diagonal = np.arange(systems)
        prior_freedom = _FREEDOM_PER_SYSTEM * systems - _FREEDOM_OFFSET
        bartlett = np.tril(rng.standard_normal((matrices, systems, systems)), -1)
        degrees = prior_freedom + self.degrees_of_freedom - diagonal
        bartlett[:, diagonal, diagonal] = np.sqrt(rng.chisquare(degrees, (matrices, systems)))
        all_roots = np.empty((len(self.rows), *bartlett.shape))
        off_diagonal = ~np.eye(systems, dtype=bool)
        for metric, rows in enumerate(self.rows):
            unit = _unit_rows(rows)
            varies = unit.any(axis=1)
            shared_share = off_diagonal * np.sqrt(
                np.outer(question_share[metric], question_share[metric])
            )
            observed, overlap = shared_share * (unit @ unit.T), shared_share * self.overlap
            prior = np.eye(systems) + self._prior_correlation(observed, overlap) * overlap
            correlation = observed + np.diag(varies.astype(float))
            scale = prior_freedom * prior + self.degrees_of_freedom * correlation
            scale += np.diag(_unobserved_differences(unit))
            upper = np.broadcast_to(np.linalg.cholesky(scale).T, bartlett.shape)
            root = np.swapaxes(np.linalg.solve(bartlett, upper), 1, 2)
            all_roots[metric] = root / np.linalg.norm(root, axis=2, keepdims=True)
        return all_roots

    def roots_of_errors(
        self, question_share: Array, error_overlap: Array | None = None
    ) -> Array | None:
        """Return square roots of the correlations of means over these questions.

        The values of two systems have the correlation of all pairs, on the questions that both
        tried: few of a pair say little about their own. A prior between independent and equal
        values would take errors that mostly are opposite for better known than they are.

        Parameters
        ----------
        question_share : ndarray, shape (metrics, systems)
            Variance of the mean over questions like these that is due to the choice of questions,
            relative to the variance of the mean over these questions.
        error_overlap : ndarray, shape (systems, systems), optional
            From `overlap_of_errors`, for means over some of these questions; default: over all.

        Returns
        -------
        ndarray, shape (metrics, 1, systems, systems), optional
            None: all systems tried all questions, and are independent.
        """
        error_overlap = self.error_overlap if error_overlap is None else error_overlap
        if not error_overlap.any():
            return None
        systems = len(self.overlap)
        off_diagonal = ~np.eye(systems, dtype=bool)
        own = np.diag(error_overlap)
        all_roots = np.empty((len(self.rows), 1, systems, systems))
        for metric, rows in enumerate(self.rows):
            unit = _unit_rows(rows)
            of_shared = unit**2 @ self.tried.T  # squares of a system on what another one tried
            largest = (off_diagonal * np.sqrt(of_shared * of_shared.T)).sum()
            average = (off_diagonal * (unit @ unit.T)).sum() / max(largest, 1e-300)
            average = np.clip(average, 0.0, _AVERAGE_MAX)
            scale = np.sqrt(np.minimum(question_share[metric], 1.0 / np.maximum(own, 1e-300)))
            shared = off_diagonal * average * error_overlap * np.outer(scale, scale)
            all_roots[metric] = np.linalg.cholesky(np.eye(systems) + shared)
        return all_roots

    def _prior_correlation(self, observed: Array, overlap: Array) -> float:
        """Return the correlation of systems on the same questions at which the prior is centred."""
        if not overlap.any():
            return 0.0
        average = float(np.clip(observed.sum() / overlap.sum(), _OBSERVED_MIN, _OBSERVED_MAX))
        pairs = len(observed) * (len(observed) - 1) / 2
        questions = self.degrees_of_freedom + 1.0
        prior_questions = _PRIOR_QUESTIONS / pairs  # an average over many pairs is known better
        total = questions * np.arctanh(average) + prior_questions * np.arctanh(_PRIOR_CORRELATION)
        return float(np.clip(np.tanh(total / (questions + prior_questions)), 0.0, _AVERAGE_MAX))


def overlap_of_errors(tried: Flags, share: Array, fixed: Array, share_of_these: Array) -> Array:
    """Return the covariance of the errors of two means that are due to the questions not tried.

    It is relative to the sds of the means over questions like these, were all values equally
    spread. A system that tried none of the questions has none: others say nothing of its values.

    Parameters
    ----------
    tried : ndarray of bool, shape (systems, questions)
    share, fixed, share_of_these
        As of `Influence.of`.

    Returns
    -------
    ndarray, shape (systems, systems)
    """
    weight = _shares(share * tried)
    untried = np.where(tried, 0.0, _shares(share_of_these[None]))
    error = -untried * tried.any(axis=1, keepdims=True)
    for system, (system_weight, tried_here) in enumerate(zip(weight, tried, strict=True)):
        # The weights of tried questions in what they predict of those that were not tried.
        root_weight = np.sqrt(system_weight[tried_here])
        error[system, tried_here] = (
            root_weight
            * np.linalg.lstsq(
                (root_weight[:, None] * fixed[tried_here]).T, untried[system] @ fixed, rcond=None
            )[0]
        )
    return _overlap(error, weight)


def _shares(weight: Array) -> Array:
    """Return weights (systems, questions) as shares of their sums; those of zeros stay zero."""
    return np.asarray(weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300))


def _overlap(rows: Array, weight: Array) -> Array:
    """Return products of rows (systems, questions), relative to the lengths of their weights."""
    length = np.maximum(np.linalg.norm(weight, axis=1), 1e-150)  # its square is not zero
    return np.asarray((rows @ rows.T) / np.outer(length, length))


def _unit_rows(rows: Array) -> Array:
    """Return rows (systems, questions) that are scaled to length 1; those of zeros stay zero."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0.0, length, np.inf))


def _unobserved_differences(unit: Array) -> Array:
    """Return the number of further questions on which a system may differ from all; (systems,).

    The difference of two systems is estimated from the questions on which they differ. Where these
    are few, as for pass@k when k is near the number of trials, the sum of squared differences is
    too certain: two systems that agree on forty questions of forty differ on some others. Half a
    question is added, as in Jeffreys' prior of a share, divided by one more than the number of
    questions on which the system differs from the most similar one. (That number is
    ``(sum of squares)^2 / (sum of fourth powers)`` of the differences.)

    Parameters
    ----------
    unit : ndarray, shape (systems, questions)
        Influences of the questions, scaled to a sum of squares of 1.

    Examples
    --------
    >>> same = [0.6, 0.8, 0.0]
    >>> _unobserved_differences(np.array([same, same, [0.6, 0.0, 0.8]])).round(3).tolist()
    [0.5, 0.5, 0.167]
    """
    extra = np.zeros(len(unit))
    for system, row in enumerate(unit):
        squares = (np.delete(unit, system, axis=0) - row) ** 2
        total_squares = squares.sum(axis=1)
        differing = np.where(
            total_squares > _RELATIVE_ZERO,
            total_squares**2 / np.maximum((squares**2).sum(axis=1), 1e-300),
            0.0,
        )
        extra[system] = _DIFFERING_PRIOR / (1.0 + differing.min(initial=np.inf))
    return extra


def couple(margins: Array, draws: Array, roots: Array | None) -> Array:
    """Reorder the values of every system so that their ranks are those of joint draws.

    Parameters
    ----------
    margins : ndarray, shape (draws, metrics, systems)
        Values of every system, in any order.
    draws : ndarray, shape (draws, metrics, systems)
        Draws, independent between systems, whose ranks correlate the metrics of a system.
    roots : ndarray, shape (metrics, matrices, systems, systems), optional
        From `Influence.roots`; None: systems stay independent.

    Examples
    --------
    >>> values = np.array([[[1.0, 5.0]], [[2.0, 6.0]], [[3.0, 7.0]]])
    >>> draws = np.array([[[0.3, 0.1]], [[0.1, 0.2]], [[0.2, 0.3]]])
    >>> couple(values, draws, None)[:, 0].tolist()
    [[3.0, 5.0], [1.0, 6.0], [2.0, 7.0]]
    """
    size, metrics, systems = draws.shape
    ascending, order = np.sort(margins, axis=0), draws
    if roots is not None:
        scores = ndtri((np.arange(size) + 0.5) / size)[:, None, None]
        normal = reorder_by_rank(np.broadcast_to(scores, draws.shape), draws)
        matrices = roots.shape[1]
        rows = -(-size // matrices)
        padded = np.zeros((rows * matrices, metrics, systems))
        padded[:size] = normal
        by_matrix = padded.reshape(rows, matrices, metrics, systems).transpose(2, 1, 0, 3)
        joint = by_matrix @ np.swapaxes(roots, 2, 3)
        order = joint.transpose(2, 1, 0, 3).reshape(rows * matrices, metrics, systems)[:size]
    return reorder_by_rank(ascending, order)


def reorder_by_rank(ascending: Array, ranked_like: Array) -> Array:
    """Return ascending values with the ranks of other values, along the first axis."""
    reordered = np.empty(ranked_like.shape)
    np.put_along_axis(reordered, np.argsort(ranked_like, axis=0), ascending, axis=0)
    return reordered


def with_mean(ascending: Array, mean: Array) -> Array:
    """Return draws with this mean, by moving their levels and not their values.

    Draws that were shifted would leave the values that are nearly certain: means over few questions
    that are all but solved or lost, or draws that equal an end of the range to the last digits. Of
    two such systems the shift would say which is better. Instead the draw at a level p is read at
    p + t p (1 - p). Draws stay as they are where t would be above `_MAX_TILT`: a tail beyond all
    draws makes such a mean.

    Parameters
    ----------
    ascending : ndarray, shape (draws, ...)
        Along the first axis.
    mean : ndarray, shape (...)

    Examples
    --------
    >>> draws = np.repeat([0.0, 1.0], 500)
    >>> moved = with_mean(draws, np.array(0.51))
    >>> round(float(moved.mean()), 12), round(float(np.median(moved)), 12)
    (0.51, 1.0)
    """
    index = np.arange(len(ascending), dtype=float)
    level = (index + 0.5) / len(ascending)
    room = level * (1.0 - level)
    moved = ascending.copy()
    for at in np.ndindex(ascending.shape[1:]):
        draws = np.ascontiguousarray(ascending[:, *at])
        slope = 0.5 * (room[1:] + room[:-1]) @ np.diff(draws)
        tilt, read = 0.0, draws
        for _ in range(_TILT_STEPS):
            tilt += float((mean[at] - read.mean()) / slope) if slope > 0.0 else 0.0
            if abs(tilt) > _MAX_TILT:
                read = draws
                break
            read = np.interp(index + tilt * len(draws) * room, index, draws)
        moved[:, *at] = read
    return moved
