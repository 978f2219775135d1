"""Exact rational witnesses, written from the definitions alone.

They share no computation with the library: outcomes are enumerated or summed as fractions.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import ceil, comb, lcm

import flint

Vector = list[Fraction]


def credit_by_definition(metric: str, k: int, tau: Fraction = Fraction(1, 2)) -> Vector:
    """Credit for j = 0..k successes, straight from the table of definitions."""
    if metric == "auc":
        return _area(k)
    threshold = {
        "pass@": 1,
        "pass^": k,
        "maj@": k // 2 + 1,
        "g-pass@": max(1, ceil(tau * k)),
    }
    if metric == "mg-pass@":
        return [Fraction(2 * max(0, j - ceil(Fraction(k, 2))), k) for j in range(k + 1)]
    return [Fraction(int(j >= threshold[metric])) for j in range(k + 1)]


def _area(k: int) -> Vector:
    """Trapezoid of pass@1..pass@k of a random order of k trials with j successes."""
    if k == 1:
        return [Fraction(0), Fraction(1)]
    if k > 64:  # C(k - j, i) / C(k, i) sums over i = 0..k to (k + 1) / (j + 1)
        missed = [Fraction(k + 1, j + 1) - 1 - Fraction(k - j, 2 * k) for j in range(1, k + 1)]
        return [Fraction(0), *(1 - x / (k - 1) for x in missed)]
    weights = [Fraction(1, 2) if i in (1, k) else Fraction(1) for i in range(1, k + 1)]
    return [
        sum(
            (w * (1 - Fraction(comb(k - j, i), comb(k, i))) for i, w in enumerate(weights, 1)),
            Fraction(0),
        )
        / (k - 1)
        for j in range(k + 1)
    ]


def finite_by_enumeration(credit: Vector, successes: int, trials: int) -> Fraction:
    """Mean credit over every subset of k of the observed trials."""
    k = len(credit) - 1
    marks = [1] * successes + [0] * (trials - successes)
    subsets = list(combinations(marks, k))
    return sum((credit[sum(subset)] for subset in subsets), Fraction(0)) / len(subsets)


def finite(credit: Vector, successes: int, trials: int) -> Fraction:
    """Hypergeometric expectation in exact integers; ways to draw j + 1 from those to draw j."""
    k, failures = len(credit) - 1, trials - successes
    scale = lcm(*(x.denominator for x in credit))
    low, high = max(0, k - failures), min(k, successes)
    total, ways = 0, comb(successes, low) * comb(failures, k - low)
    for j in range(low, high + 1):
        total += int(credit[j] * scale) * ways
        ways = ways * (successes - j) * (k - j) // ((j + 1) * (failures - k + j + 1))
    return Fraction(total, scale * comb(trials, k))


def latent(credit: Vector, p: Fraction) -> Fraction:
    """Binomial expectation."""
    k = len(credit) - 1
    return sum(
        (x * comb(k, j) * p**j * (1 - p) ** (k - j) for j, x in enumerate(credit)), Fraction(0)
    )


@lru_cache(maxsize=12)
def _rises(base: int, most: int) -> list[flint.fmpz]:
    """Return ``base (base + 1) ... (base + i - 1)`` for i = 0..most."""
    products = [flint.fmpz(1)]
    for i in range(most):
        products.append(products[-1] * (base + i))
    return products


def expectation(terms: Sequence[Fraction | int], a: int, b: int) -> Fraction:
    """E[sum_j t_j p^j (1-p)^(m-j)] under Beta(a, b) with integer parameters."""
    scale = lcm(*(Fraction(t).denominator for t in terms))
    return _expected([flint.fmpz(int(t * scale)) for t in terms], a, b) / scale


def _expected(terms: Sequence[flint.fmpz], a: int, b: int) -> Fraction:
    m = len(terms) - 1
    up, down = _rises(a, m), _rises(b, m)
    top = sum((t * up[j] * down[m - j] for j, t in enumerate(terms) if t), flint.fmpz(0))
    return Fraction(int(top), int(_rises(a + b, m)[m]))


def power_mean(credit: Vector, power: int, a: int, b: int) -> Fraction:
    """E[g(p)^power], p ~ Beta(a, b), by expanding the power of g."""
    k, scale = len(credit) - 1, lcm(*(x.denominator for x in credit))
    product = flint.fmpz_poly([int(x * scale) * comb(k, j) for j, x in enumerate(credit)]) ** power
    return _expected([product[j] for j in range(power * k + 1)], a, b) / scale**power


def posterior_moments(credit: Vector, a: int, b: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of g(p), p ~ Beta(a, b)."""
    mean = power_mean(credit, 1, a, b)
    return mean, power_mean(credit, 2, a, b) - mean**2


def relative_error(value: float, exact: Fraction) -> float:
    """Relative error, or the absolute one where the exact value is zero."""
    difference = abs(Fraction(float(value)) - exact)
    return float(difference / exact) if exact else float(difference)
