"""Distributions over ordered bins that differ between questions: a pooled shape, tilted.

Question q has the probabilities ``f_qb = g_b exp(t x_q z_b) / sum`` of the bins b: a shape g that
all questions share, moved up or down along the bins' positions z by the question's own normal x_q,
with a spread t of all. Of a normal shape the tilt is a shift. Priors: ``g_b ~ Gamma(1/5, 1)``, so
that the shape is Dirichlet(1/5, ..., 1/5), ``x_q ~ N(0, 1)``, and t is half-normal.

A Gibbs sampler draws them; it is exact but for the grids of x and t. Given x and t, the sums in the
denominators become gamma variates, ``sum^-n = int v^(n-1) exp(-v sum) dv / Gamma(n)``, and given
these every g_b is gamma again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from bayesatk._tools.arrays import Array, Indices, Ints, Rng

SHAPE_PRIOR = 0.2  # Dirichlet parameter of every bin of the pooled shape
_NODES = np.linspace(-3.6, 3.6, 25)  # of x
_LOG_CHANCE = -(_NODES**2) / 2.0
_SPREADS = np.linspace(0.05, 2.45, 25)  # of t
_LOG_SPREAD = -(_SPREADS**2) / 2.0
_CHAINS, _BURN, _THIN = 100, 40, 2
_WORK = 2e5  # chains times questions of one sweep


@dataclass(frozen=True)
class Shapes:
    """Draws of the distributions of all questions.

    Parameters
    ----------
    log_shape : ndarray, shape (draws, bins)
        Logarithm of the pooled shape.
    spread : ndarray, shape (draws,)
    node : ndarray of int, shape (draws, questions)
        Positions of x among its nodes.
    position : ndarray, shape (bins,)
    chain : ndarray of int, shape (draws,)
        Of the sampler; draws of one chain depend on one another.
    """

    log_shape: Array
    spread: Array
    node: NDArray[np.int8]
    position: Array
    chain: Indices

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.position)

    def of_question(self, question: int) -> Array:
        """Return the distribution of a question; (draws, bins)."""
        return self._tilted(slice(None), _NODES[self.node[:, question]])

    def of_new(self, rows: slice, questions: int, rng: Rng) -> Array:
        """Draw the distributions of new questions at some draws; (draws, questions, bins)."""
        return self._tilted(rows, rng.standard_normal((len(self.spread[rows]), questions)))

    def _tilted(self, rows: slice, x: Array) -> Array:
        tilt = np.expand_dims(self.spread[rows], tuple(range(1, x.ndim))) * x
        shape = np.expand_dims(self.log_shape[rows], tuple(range(1, x.ndim)))
        return np.asarray(softmax(shape + tilt[..., None] * self.position, axis=-1))


def draw_shapes(counts: Ints, position: Array, size: int, rng: Rng) -> Shapes:
    """Draw the shape, the spread and the tilts of questions given their counts.

    Parameters
    ----------
    counts : ndarray of int, shape (questions, bins)
    position : ndarray, shape (bins,)
        Of the bins, in units of about one standard deviation.
    size : int
        Draws, of chains in turn.
    rng : numpy.random.Generator
    """
    questions, bins = counts.shape
    chains = int(np.clip(_WORK / max(questions, 1), min(10, size), min(_CHAINS, size)))
    rounds = -(-size // chains)
    moved, trials, total = counts @ position, counts.sum(axis=1), counts.sum(axis=0)
    mass = rng.standard_gamma(total + SHAPE_PRIOR, (chains, bins))
    spread = rng.choice(_SPREADS[:15], chains)
    rows = np.arange(chains)[:, None]
    steps = np.exp(_SPREADS[:, None, None] * _NODES[:, None] * position)  # (spreads, nodes, bins)
    spread_index = np.searchsorted(_SPREADS, spread)
    shapes, spreads, tilts = [], [], []
    for sweep in range(_BURN + rounds * _THIN):
        tilt = _SPREADS[spread_index][:, None] * _NODES
        sums = np.matmul(steps[spread_index], mass[..., None])[..., 0]
        logs = tilt[:, None] * moved[:, None] - trials[:, None] * np.log(sums)[:, None]
        node = _chosen(logs + _LOG_CHANCE, rng)
        latent = rng.standard_gamma(np.broadcast_to(trials, node.shape)) / sums[rows, node]
        by_node = np.zeros((3, chains, len(_NODES)))
        for column, weight in zip(by_node, (latent, trials, moved), strict=True):
            np.add.at(column, (rows, node), weight)
        rate = 1.0 + np.einsum("cn,cnb->cb", by_node[0], steps[spread_index])
        mass = rng.standard_gamma(total + SHAPE_PRIOR, (chains, bins)) / rate
        # The spread, given the tilts in its units, the latent sums not needed.
        sums_by_spread = (mass @ steps.reshape(-1, bins).T).reshape(chains, len(_SPREADS), -1)
        logs = (by_node[2] @ _NODES)[:, None] * _SPREADS + _LOG_SPREAD
        logs -= np.einsum("cn,ctn->ct", by_node[1], np.log(sums_by_spread))
        spread_index = _chosen(logs, rng)
        if sweep >= _BURN and (sweep - _BURN) % _THIN == 0:
            shapes.append(np.log(np.maximum(mass / mass.sum(axis=1, keepdims=True), 1e-300)))
            spreads.append(_SPREADS[spread_index])
            tilts.append(node.astype(np.int8))
    return Shapes(
        np.concatenate(shapes)[:size], np.concatenate(spreads)[:size],
        np.concatenate(tilts)[:size], position, np.arange(size) % chains,
    )  # fmt: skip


def _chosen(logs: Array, rng: Rng) -> Indices:
    """Draw positions along the last axis with probabilities given by their logarithms."""
    below = np.exp(logs - logs.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    u = rng.random((*logs.shape[:-1], 1)) * below[..., -1:]
    return np.asarray((below < u).sum(axis=-1))
