"""The law of the difficulty that systems share.

Questions that no system solves, questions that every system solves, and others, whose z has mean 0
and variance 1: two normals of one sd, which are one normal where nothing of the variance is between
them. So the normal law, the normal with atoms and two normals are one law, and a posterior averages
over them by how well they explain the counts.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtr

from bayesatk.metrics.credit import Array

LEAST = 1e-300  # probability whose logarithm is a number
FAR = 1e4  # z of questions that none, or all, solve: p is 0 or 1 to double precision
# The largest share of the variance between the two normals: their sd, .14, is then no less than 0.7
# steps of the coarsest nodes.
_BETWEEN = 0.98


def beta_of_score(score: Array, a: Array, b: Array) -> Array:
    """Return the Beta variate at the quantile at which a standard normal has the score."""
    # Either tail by itself: above the middle one minus a probability would lose digits.
    low, high = (ndtr(np.minimum(tail_score, 0.0)) for tail_score in (score, -score))
    return np.where(score < 0.0, betaincinv(a, b, low), betainccinv(a, b, high))


@dataclass(frozen=True)
class DifficultyLaw:
    """Law of z given four scores that are standard normal a priori.

    The first two rows of the last two columns of parameters have them: of the two normals, and of
    the shares of questions that none, or all, solve.

    Parameters
    ----------
    atoms : (float, float, float)
        Dirichlet prior of the shares of questions that none solves, that all solve, and of others.
    clusters : (float, float, float, float)
        Parameters of the Beta priors of the share of the upper normal, and of the share of the
        variance of z that is between the normals, divided by the largest.
    """

    atoms: tuple[float, float, float]
    clusters: tuple[float, float, float, float]

    columns = 2

    def log_shares(self, theta: Array) -> Array:
        """Log shares of questions that none solves, that all solve, and of others; (..., 3).

        Parameters
        ----------
        theta : ndarray, shape (..., 3, columns)
        """
        a, b = np.array(self.atoms[:2]), np.array([self.atoms[1] + self.atoms[2], self.atoms[2]])
        share = np.clip(beta_of_score(theta[..., :2, -1], a, b), LEAST, 1.0 - 1e-16)
        never, always = np.moveaxis(np.log(share), -1, 0)
        solved, left = np.moveaxis(np.log1p(-share), -1, 0)
        return np.stack([never, solved + always, solved + left], axis=-1)

    def normals(self, theta: Array) -> tuple[Array, Array, Array]:
        """Return shares and means of the lower and the upper normal, (..., 2), and their sd.

        Parameters
        ----------
        theta : ndarray, shape (..., 3, columns)
        """
        a, b = np.array(self.clusters[::2]), np.array(self.clusters[1::2])
        upper, between = np.moveaxis(beta_of_score(theta[..., :2, -2], a, b), -1, 0)
        upper, between = np.clip(upper, 1e-4, 1.0 - 1e-4), _BETWEEN * between
        share = np.stack([1.0 - upper, upper], axis=-1)
        mean = np.sqrt(between / (upper * (1.0 - upper)))[..., None] * np.stack(
            [-upper, 1.0 - upper], axis=-1
        )
        return share, mean, np.sqrt(1.0 - between)

    def log_inner(self, theta: Array, z: Array) -> Array:
        """Log probabilities of equally spaced nodes of questions that some may solve and some fail.

        Parameters
        ----------
        theta : ndarray, shape (points, 3, columns)
        z : ndarray, shape (nodes,)

        Returns
        -------
        ndarray, shape (points, nodes)
        """
        share, mean, sd = self.normals(theta)
        standard = (z - mean[..., None]) / sd[:, None, None]
        logs = np.log(share)[..., None] - 0.5 * standard**2
        both = np.logaddexp(logs[:, 0], logs[:, 1])
        return np.asarray(both - np.logaddexp.reduce(both, axis=1, keepdims=True))

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Draw difficulties of new questions given parameters (3, columns)."""
        upto = np.exp(self.log_shares(theta)[:2]).cumsum()
        share, mean, sd = self.normals(theta)
        u, is_upper = rng.random(size), (rng.random(size) < share[1]).astype(int)
        z = mean[is_upper] + sd * rng.standard_normal(size)
        return np.where(u < upto[0], -FAR, np.where(u < upto[1], FAR, z))
