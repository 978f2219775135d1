"""One quadrature rule for every Beta integral.

In ``x = logit p`` a Beta(a, b) density is ``p^a (1-p)^b / B(a, b)``: smooth, of width about
``2 cosh(x/2)/sqrt(a+b)``, with exponential tails of rate ``a`` and ``b``. Substituting
``x = s sinh t`` and applying the trapezoid rule in ``t`` (the double-exponential idea of Takahasi
and Mori, 1974) resolves the narrowest density of a family in its middle and reaches the tails of
the widest, so one set of nodes serves all counts, all prior shapes and all credits at once, and
converges geometrically. ``log p`` and ``log(1-p)`` are kept apart: neither end loses digits.
"""

from dataclasses import dataclass

import numpy as np

from bayesatk.core.credit import Array

# Nodes per standard deviation of the narrowest density: with 1/0.65 of them the trapezoid rule
# errs by exp(-2 pi^2 / 0.65^2) ~ 1e-20 on a Gaussian, which leaves room for skewed ends.
_SPACING = 0.65
_SPREAD = 2.0  # s: below pi, so that the strip of analyticity in t stays wide
_TAIL = 45.0  # exponential decay kept at both ends: exp(-45) ~ 3e-20


@dataclass(frozen=True)
class BetaRule:
    """Nodes and weights: ``integral f(p) dp/(p(1-p)) ~ sum exp(log_weight) f(p)``."""

    log_p: Array
    log_q: Array
    log_weight: Array

    def __len__(self) -> int:
        return len(self.log_p)


def beta_rule(lowest_a: float, lowest_b: float, degree: float) -> BetaRule:
    """Return a rule for ``p^a (1-p)^b h(p)`` for all a >= lowest_a, b >= lowest_b.

    Parameters
    ----------
    lowest_a, lowest_b : float
        Smallest Beta parameters of the family, both > 0; they set how far the nodes reach.
    degree : float
        Largest ``a + b`` plus the degree of the polynomial ``h``; it sets how dense they are.

    Returns
    -------
    BetaRule
        About ``7 sqrt(degree)`` nodes. Measured error: below 1e-13 relative for every moment of
        every metric, counts at both ends included.

    Examples
    --------
    >>> rule = beta_rule(1.0, 1.0, 4.0)
    >>> float(np.exp(rule.log_weight + 2 * rule.log_p + 2 * rule.log_q).sum().round(12))  # B(2, 2)
    0.166666666667
    """
    step = min(0.2, 2.0 * _SPACING / (_SPREAD * np.sqrt(degree + 1.0)))
    left = np.arcsinh(_TAIL / min(lowest_a, 1.0) / _SPREAD)
    right = np.arcsinh(_TAIL / min(lowest_b, 1.0) / _SPREAD)
    t = step * np.arange(-np.ceil(left / step), np.ceil(right / step) + 1)
    x = _SPREAD * np.sinh(t)
    return BetaRule(
        log_p=-np.logaddexp(0.0, -x),
        log_q=-np.logaddexp(0.0, x),
        log_weight=np.log(step * _SPREAD * np.cosh(t)),
    )
