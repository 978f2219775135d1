"""Exact distribution of a mean of independent posterior terms, mixed over nodes.

The mean over questions of ``g(p_a)`` is, given a node, a sum of independent bounded terms of few
kinds, so its characteristic function is a product of powers. It is inverted on a window that a
Chernoff bound proves to hold all but 1e-11 of the probability:

* a Fourier series where the characteristic function, as measured, has died out (density smooth);
* else as much of one as is affordable, and the neighbourhood of edges apart (few questions carry
  the variance, or all are saturated).

One question needs neither: ``g`` is monotone and the Beta distribution function is at hand.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayesatk.core.credit import Array
from bayesatk.core.distribution import BetaMixture, Distribution, MonotoneImage, constant
from bayesatk.core.edges import EdgedDistribution, edged_distribution
from bayesatk.core.fourier import DEAD, PHASE, SAME, first_dead, invert, sum_phi
from bayesatk.core.mixture import StateMixture, deviations, merged, node_offsets

_LOST = 1e-11  # probability allowed outside the window, per side
_FREQUENCIES = 20  # to begin with
_MOST_FREQUENCIES = 80  # beyond these there may be edges
_MIXED = 1e-7  # error of quantiles of a mixture whose nodes stand for a continuum
_KNOWN = 1e-28  # variance below which a mean is a known number
_TILTS = np.array([1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 8.0, 10.0, 14.0, 20.0, 30.0, 50.0])


def mean_distributions(
    mixture: StateMixture, rough: bool = False
) -> list[Distribution | MonotoneImage | EdgedDistribution]:
    """Exact posterior distribution of the mean over questions, one for each credit.

    Parameters
    ----------
    mixture : StateMixture
    rough : bool
        Widths of intervals to about 1e-3 of themselves will do.

    Returns
    -------
    list of Distribution, MonotoneImage or EdgedDistribution
        With ``cdf``, ``quantile`` and the numerical ``error`` of quantiles: 1e-9 (series;
        1e-7 for several nodes), as measured (edges), 1e-12 (one question on one node).
    """
    found: dict[int, Distribution | MonotoneImage | EdgedDistribution] = {}
    variance = mixture.moments.variance
    only = _only_question(mixture) if mixture.states.questions == 1 else None
    # One node is exact; several stand for a continuum of priors.
    error = 1e-12 if len(mixture.nodes) == 1 else 3e-4
    for i, credit in enumerate(mixture.credits):
        if np.ptp(credit.vector) == 0.0:
            found[i] = constant(float(credit.vector[0]))
        elif variance[i] <= _KNOWN:
            found[i] = constant(float(mixture.moments.mean[i]))
        elif only is not None and (np.diff(credit.vector) >= 0).all():
            found[i] = MonotoneImage(credit.vector, only, error)
    todo = [i for i in range(len(mixture.credits)) if i not in found]
    windows = _windows(mixture, todo) if todo else {}
    todo = _try_series(mixture, todo, windows, found, tries=1 if rough else 2)
    found.update({i: edged_distribution(mixture, i, windows[i], rough) for i in todo})
    return [found[i] for i in range(len(mixture.credits))]


def _only_question(mixture: StateMixture) -> BetaMixture:
    c, n = mixture.states.successes[0], mixture.states.trials[0]
    nodes = mixture.nodes
    return BetaMixture(nodes.alpha + c, nodes.beta + (n - c), nodes.weight)


def _windows(mixture: StateMixture, columns: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Range of ``S - mean`` that holds all but _LOST on either side, by Chernoff's bound."""
    moments, questions = mixture.moments, mixture.states.questions
    rest = moments.complement
    sd = np.sqrt(moments.variance)
    signed = np.concatenate([_TILTS, -_TILTS])
    logs = np.full((len(columns), len(mixture.nodes), len(signed)), -np.inf)
    with np.errstate(divide="ignore", over="ignore"):
        for block in mixture.blocks(columns):
            flat = block.weights.reshape(-1, block.weights.shape[-1])
            for i, column in enumerate(columns):
                gap = deviations(block, i, moments.mean[column], rest[column])
                exponent = np.outer(gap, signed / sd[column] / questions)
                top = exponent.max(axis=0)
                term = np.log(flat @ np.exp(exponent - top)) + top
                term[np.isneginf(term)] = np.inf  # underflow: this tilt proves nothing
                shaped = term.reshape(*block.weights.shape[:2], -1)
                logs[i, block.nodes] = np.einsum("gst,s->gt", shaped, mixture.states.count)
    windows = {}
    for i, column in enumerate(columns):
        offset, variance = node_offsets(mixture, column)
        tilt = signed / sd[column]
        logs[i, mixture.concentrated] = np.outer(offset, tilt) + np.outer(variance, 0.5 * tilt**2)
        bound = logsumexp(logs[i], b=moments.weight[:, None], axis=0) - np.log(_LOST)
        upper, lower = np.split(bound / tilt, 2)
        vector = mixture.credits[column].vector
        high = min(float(np.min(upper)), rest[column] - (1.0 - vector.max()))
        low = max(float(np.max(lower)), vector.min() - moments.mean[column])
        windows[column] = (low, high)
    return windows


def _try_series(
    mixture: StateMixture,
    columns: list[int],
    windows: dict[int, tuple[float, float]],
    found: dict[int, Distribution | MonotoneImage | EdgedDistribution],
    tries: int,
) -> list[int]:
    """Add what a Fourier series settles to ``found`` and return the columns it does not.

    A column whose characteristic function is still alive may get one more try, with as many
    frequencies as it would need if its logarithm kept falling quadratically.
    """
    needed = dict.fromkeys(columns, _FREQUENCIES)
    for _ in range(tries):
        trial = [i for i in columns if i not in found and needed[i] <= _MOST_FREQUENCIES]
        ends = _series(mixture, trial, windows, needed, found) if trial else {}
        for i, modulus in ends.items():
            decay = np.log(DEAD) / np.log(min(modulus, 1.0 - 1e-9))
            needed[i] = int(1.2 * needed[i] * np.sqrt(decay)) + 4
    return [i for i in columns if i not in found]


def _series(
    mixture: StateMixture,
    columns: Sequence[int],
    windows: dict[int, tuple[float, float]],
    needed: dict[int, int],
    found: dict[int, Distribution | MonotoneImage | EdgedDistribution],
) -> dict[int, float]:
    """Fourier series on the window where the characteristic function dies out.

    Returns
    -------
    dict of column -> float
        Its modulus at the highest frequency, for the columns where it does not.
    """
    moments, questions = mixture.moments, mixture.states.questions
    rest = moments.complement
    omega: dict[int, Array] = {}
    phi: dict[int, NDArray[np.complex128]] = {}
    resolved = dict.fromkeys(columns, True)
    for i in columns:
        offset, variance = node_offsets(mixture, i)
        unit = 2.0 * np.pi / (windows[i][1] - windows[i][0])
        omega[i] = unit * np.arange(1.0, needed[i] + 1.0)
        narrow = 1j * np.outer(offset, omega[i]) - np.outer(variance, 0.5 * omega[i] ** 2)
        phi[i] = np.asarray(moments.weight[mixture.concentrated] @ np.exp(narrow), complex)
    for block in mixture.blocks(columns):
        for position, i in enumerate(columns):
            gap = deviations(block, position, moments.mean[i], rest[i])
            step = float(np.abs(np.diff(gap)).max()) * omega[i][-1] / questions
            resolved[i] = resolved[i] and step <= PHASE
            if resolved[i]:
                flat, gap = merged(block.weights, gap, SAME * questions / omega[i][-1])
                own = sum_phi(flat, np.outer(gap, omega[i] / questions), mixture.states.count)
                phi[i] += np.asarray(moments.weight[block.nodes] @ own)
    alive = {}
    for i in columns:
        last = first_dead(phi[i]) if resolved[i] else None
        if last is None:
            alive[i] = float(np.abs(phi[i][-3:]).max()) if resolved[i] else 1.0
        else:
            exact = invert(phi[i][:last], windows[i], moments.mean[i])
            error = exact.error if len(mixture.nodes) == 1 else _MIXED
            found[i] = replace(exact, error=error)
    return alive
