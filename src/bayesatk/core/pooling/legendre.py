"""Expectations of smooth functions of p in [0, 1], p a Beta or an atom at an end.

A function that a polynomial of degree R - 1 follows is known by its values at the R points of Gauss
and Legendre, and its expectation by those of the first R Legendre polynomials. Under a Beta these
follow a recurrence of three terms: they are 3F2(-m, m + 1, a; 1, a + b; 1), Hahn polynomials in a
(Koekoek, Lesky and Swarttouw 2010, eq. 9.5.3).
"""

import numpy as np
from scipy.special import eval_legendre, roots_legendre

from bayesatk._tools.arrays import Array, Ints
from bayesatk.core.pooling.nodes import Nodes


def beta_moments(a: Array, b: Array, size: int) -> Array:
    """Return expectations of the first Legendre polynomials of ``1 - 2 p``, ``p ~ Beta(a, b)``.

    Returns
    -------
    ndarray, shape (size, *shape of a)

    Examples
    --------
    >>> one = np.array([1.0])
    >>> beta_moments(3.0 * one, one, 3).ravel().tolist()  # E(1 - 2p) = -1/2, E p^2 = 3/5
    [1.0, -0.5, 0.1]
    """
    total, gap = a + b, b - a
    found = np.ones((size, *np.shape(a)))
    if size > 1:
        found[1] = gap / total
    for m in range(1, size - 1):
        found[m + 1] = (2 * m + 1) * gap * found[m] + m * (m + 1 - total) * found[m - 1]
        found[m + 1] /= (m + 1) * (total + m)
    return found


def question_rule(nodes: Nodes, successes: Ints, failures: Ints, size: int) -> tuple[Array, Array]:
    """Points of [0, 1], and signed weights that integrate over p of a question given its counts.

    Parameters
    ----------
    nodes : Nodes
        Priors of p.
    successes, failures : ndarray of int, shape (states,)
    size : int
        Number of points; polynomials of lower degree are integrated exactly.

    Returns
    -------
    p : ndarray, shape (size,)
    weight : ndarray, shape (nodes, states, size)

    Examples
    --------
    >>> counts = np.array([1]), np.array([0])
    >>> p, weight = question_rule(Nodes.single(1.0, 1.0), *counts, 4)
    >>> float((weight[0, 0] @ p**3).round(12))  # of Beta(2, 1): 2 / 5
    0.4
    """
    place, weight = roots_legendre(size)
    share = part_shares(nodes, successes, failures)
    moments = np.zeros((size, *share.shape[1:]))
    for one, alpha, beta in zip(share, nodes.alpha.T, nodes.beta.T, strict=False):
        a, b = alpha[:, None] + successes, beta[:, None] + failures
        moments += one * beta_moments(a, b, size)
    order = np.arange(size)
    moments += share[-2] + (-1.0) ** order[:, None, None] * share[-1]
    table = (order[:, None] + 0.5) * eval_legendre(order[:, None], place) * weight
    return 0.5 - 0.5 * place, np.tensordot(moments, table, (0, 0))


def part_shares(
    nodes: Nodes, successes: Ints, failures: Ints
) -> Array:  # fmt: skip
    """Probability that a question with these counts is of each Beta, of p = 0, and of p = 1.

    Returns
    -------
    ndarray, shape (components + 2, nodes, states)
    """
    logs = nodes.log_parts(successes, failures)
    found = np.exp(logs - logs.max(axis=0))
    return np.asarray(found / found.sum(axis=0))
