"""Credits as sums of polynomials are the credits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesatk.core.question.bernstein import latent_means, power_coefficients
from bayesatk.metrics.credit import Credit, binomial_expectation
from bayesatk.metrics.grid import parse

METRICS = [
    metric.credit
    for metric in parse("pass@1,4,16 pass^2,8 maj@3 g-pass@4:0.5 mg-pass@6 auc@5 pass@64")
]
CREDITS = st.lists(st.sampled_from(METRICS), min_size=1, max_size=12)
P = np.array([0.0, 1e-12, 0.003, 0.2, 0.5, 0.71, 0.97, 1.0 - 1e-13, 1.0])


def expected(credit: Credit, p: np.ndarray) -> np.ndarray:
    """Sum over numbers of right trials, from the definition."""
    k = credit.k
    chance = [np.ones_like(p)]
    for _ in range(k):  # one trial more at a time
        lower = [(1.0 - p) * c for c in chance] + [np.zeros_like(p)]
        upper = [np.zeros_like(p)] + [p * c for c in chance]
        chance = [a + b for a, b in zip(lower, upper, strict=True)]
    return np.sum([x * c for x, c in zip(credit.values, chance, strict=True)], axis=0)


@given(CREDITS, st.booleans(), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_sums_are_those_of_the_definition(credits, by_draw, seed) -> None:
    rng = np.random.default_rng(seed)
    p = rng.choice(P, (7, 5))
    shares, factor = rng.random((5, 2)), rng.random((7, 5)) if by_draw else None
    sums = latent_means(credits, p, shares, factor)
    for place, credit in enumerate(credits):
        values = expected(credit, p) * (1.0 if factor is None else factor)
        assert sums[..., place] == pytest.approx(values @ shares, abs=1e-12)


@given(st.lists(st.sampled_from([c for c in METRICS if c.k <= 8]), min_size=1, max_size=9))
@settings(max_examples=40, deadline=None)
def test_powers_and_complements(credits) -> None:
    coefficients = power_coefficients(tuple(credits))
    assert coefficients.min() >= 0.0
    assert coefficients.max() <= 1.0
    inside = P[1:-1]
    polynomials = binomial_expectation(
        np.eye(len(coefficients)), np.log(inside), np.log1p(-inside)
    )[0]
    g = np.stack([expected(credit, inside) for credit in credits], axis=1)
    powers = [side**j for side in (g, 1.0 - g) for j in (1, 2, 3)]
    assert polynomials @ coefficients == pytest.approx(np.concatenate(powers, axis=1), abs=1e-12)
