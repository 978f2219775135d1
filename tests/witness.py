"""Exact rational witnesses, written from the definitions alone.

They share no computation with the library: outcomes are enumerated or summed as fractions.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import ceil, comb, factorial, lcm

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


@cache
def _factorial(n: int) -> int:
    return factorial(n)


def expectation(terms: Sequence[Fraction | int], a: int, b: int) -> Fraction:
    """E[sum_j t_j p^j (1-p)^(m-j)] under Beta(a, b) with integer parameters."""
    m = len(terms) - 1
    top = sum(
        t * (_factorial(a + j - 1) * _factorial(b + m - j - 1)) for j, t in enumerate(terms) if t
    )
    scale = Fraction(
        _factorial(a + b - 1), _factorial(a - 1) * _factorial(b - 1) * _factorial(a + b + m - 1)
    )
    return scale * top


def power_mean(credit: Vector, power: int, a: int, b: int) -> Fraction:
    """E[g(p)^power], p ~ Beta(a, b), by expanding the power of g."""
    k = len(credit) - 1
    whole = all(x.denominator == 1 for x in credit)
    terms = [(int(x) if whole else x) * comb(k, j) for j, x in enumerate(credit)]
    product: list[Fraction | int] = [1]
    for _ in range(power):
        wider: list[Fraction | int] = [0] * (len(product) + k)
        for i, s in enumerate(product):
            if s:
                for j, t in enumerate(terms):
                    if t:
                        wider[i + j] += s * t
        product = wider
    return expectation(product, a, b)


def posterior_moments(credit: Vector, a: int, b: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of g(p), p ~ Beta(a, b)."""
    mean = power_mean(credit, 1, a, b)
    return mean, power_mean(credit, 2, a, b) - mean**2


def relative_error(value: float, exact: Fraction) -> float:
    """Relative error, or the absolute one where the exact value is zero."""
    difference = abs(Fraction(float(value)) - exact)
    return float(difference / exact) if exact else float(difference)
