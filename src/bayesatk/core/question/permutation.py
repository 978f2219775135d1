"""A test of two columns of questions by permutations of one of them."""

import numpy as np
from scipy.special import betainc

from bayesatk._tools.arrays import Array


def correlation_test(first: Array, second: Array) -> tuple[float, float]:
    r"""Return the correlation of two columns, and the p-value of permutations of one of them.

    Over permutations $r \sqrt{(n - 2) / (1 - r^2)}$ is nearly Student's t with $n - 2$ degrees of
    freedom (Pitman 1937), so that $P(|r| \ge x) = I_{1 - x^2}((n - 2) / 2, 1/2)$.

    Parameters
    ----------
    first, second : ndarray, shape (questions,)
        Of three questions or more; a constant column has no correlation and the p-value 1.

    Examples
    --------
    >>> correlation_test(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]))
    (0.0, 1.0)
    """
    x, y = first - first.mean(), second - second.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    correlation = min(max(float(x @ y) / size, -1.0), 1.0) if size > 0.0 else 0.0
    return correlation, float(betainc(0.5 * (len(x) - 2), 0.5, 1.0 - correlation**2))
