"""Digits of every published function against exact rationals: k up to 2000, 10^6 trials."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from bayesatk import published
from bayesatk.metrics.grid import FAMILIES
from tests import witness

MEAN, VARIANCE = 1e-9, 1e-8  # largest relative errors
SMALLEST = 1e-290  # below it doubles lose digits
FUNCTIONS = {
    "pass@": "pass_at_k",
    "pass^": "pass_hat_k",
    "maj@": "maj_at_k",
    "mg-pass@": "mg_pass_at_k",
    "auc": "auc_at_k",
    "g-pass@": "g_pass_at_k_tau",
}
TAU = Fraction(9, 10)
SIZES = [(1, 4), (4, 60), (64, 64), (201, 1000), (540, 1000), (1000, 1000), (201, 10**6)]
LARGE = [pytest.param(*size, marks=pytest.mark.long) for size in [(2000, 2000), (2000, 10**6)]]


def row_of(successes: int, trials: int) -> np.ndarray:
    row = np.zeros((1, trials), np.uint8)
    row[0, :successes] = 1
    return row


def counts_of(trials: int) -> list[int]:
    return sorted({0, trials * 9 // 10, trials - 1, trials})


def arguments_of(name: str, k: int) -> tuple[int, ...] | tuple[int, float]:
    return (k, float(TAU)) if name == "g-pass@" else (k,)


def assert_close(found: float, exact: Fraction, rtol: float) -> None:
    if exact == 0 or exact > SMALLEST:
        assert witness.relative_error(found, exact) <= rtol


def assert_interval(found: tuple[float, ...], mean: Fraction, variance: Fraction) -> None:
    mu, sigma, low, high = found
    assert_close(mu, mean, MEAN)
    assert_close(sigma**2, variance, VARIANCE)
    assert 0.0 <= low <= high <= 1.0


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("k", "trials"), [*SIZES, *LARGE])
def test_right_and_wrong(name: str, k: int, trials: int) -> None:
    function, arguments = FUNCTIONS[name], arguments_of(name, k)
    credit = witness.credit_by_definition(name, k, TAU)
    for c in counts_of(trials):
        R = row_of(c, trials)
        estimate = getattr(published, function)(R, *arguments)
        assert_close(estimate, witness.finite(credit, c, trials), MEAN)
        moments = witness.posterior_moments(credit, c + 1, trials - c + 1)
        assert_interval(getattr(published, f"{function}_ci")(R, *arguments), *moments)


def test_means_over_questions() -> None:
    credit, R = witness.credit_by_definition("mg-pass@", 300), np.zeros((3, 400), int)
    counts = [395, 300, 12]
    for row, c in zip(R, counts, strict=True):
        row[:c] = 1
    moments = [witness.posterior_moments(credit, c + 1, 401 - c) for c in counts]
    mean, variance = (sum(column, Fraction(0)) for column in zip(*moments, strict=True))
    assert_interval(published.mg_pass_at_k_ci(R, 300), mean / 3, variance / 9)


@pytest.mark.parametrize("name", ["pass@", "pass^", "maj@", "mg-pass@", "auc@"])
@pytest.mark.parametrize(("k", "trials"), [(2, 4), (540, 1000), (201, 10**6)])
def test_expected_credit_of_a_new_question(name: str, k: int, trials: int) -> None:
    credit = witness.credit_by_definition(name.replace("auc@", "auc"), k)
    for c in counts_of(trials):
        predicted = FAMILIES[name].at(k).predictive(c + 1.0, trials - c + 1.0)
        assert_close(float(predicted), witness.power_mean(credit, 1, c + 1, trials - c + 1), MEAN)


# Scored categories


def best_moments(counts: list[int], steps: list[Fraction], k: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of the highest of k scores from 0, p ~ Dirichlet(1 + counts).

    It is the sum of steps less those that no trial exceeds, of probability F_c^k; with b <= c,
    F_b / F_c and F_c are independent Betas.
    """
    cumulative = np.cumsum([c + 1 for c in counts]).tolist()

    def power(below: int, whole: int, times: int) -> Fraction:
        top, bottom = 1, 1
        for i in range(times):
            top, bottom = top * (below + i), bottom * (whole + i)
        return Fraction(top, bottom)

    missed = [power(below, cumulative[-1], k) for below in cumulative[:-1]]
    mean = sum((w * (1 - m) for w, m in zip(steps, missed, strict=True)), Fraction(0))
    variance = Fraction(0)
    for b, low in enumerate(cumulative[:-1]):
        for c, high in enumerate(cumulative[: b + 1]):
            small, large = min(low, high), max(low, high)
            both = power(small, large, k) * power(large, cumulative[-1], 2 * k)
            times = 1 if b == c else 2
            variance += times * steps[b] * steps[c] * (both - missed[b] * missed[c])
    return mean, variance


@pytest.mark.parametrize(
    ("k", "counts"),
    [(1, [1, 2, 1]), (2, [0, 3, 5]), (300, [5, 0, 900]), (300, [999_000, 990, 10]),
     pytest.param(2000, [999_999, 0, 1], marks=pytest.mark.long)],
)  # fmt: skip
def test_scores(k: int, counts: list[int]) -> None:
    R, w = np.repeat([0, 1, 2], counts)[None], (0.0, 0.25, 1.0)
    steps = [Fraction(1, 4), Fraction(3, 4)]
    assert_interval(published.max_at_k_ci(R, k, w), *best_moments(counts, steps, k))
    mean, variance = best_moments(counts, steps, 1)
    assert_interval(published.bayes_ci(R, w), mean, variance)
    mu, sigma = published.avg(R, w)
    total = sum(counts)
    assert_close(mu, Fraction(counts[1] + 4 * counts[2], 4 * total), MEAN)
    assert sigma == pytest.approx(sqrt(variance) * (total + 3) / total, rel=VARIANCE)
    if k <= total:
        reached = [
            witness.finite([Fraction(0)] + [Fraction(1)] * k, above, total)
            for above in (counts[1] + counts[2], counts[2])
        ]
        exact = sum((s * r for s, r in zip(steps, reached, strict=True)), Fraction(0))
        assert_close(published.max_at_k(R, k, w), exact, MEAN)
