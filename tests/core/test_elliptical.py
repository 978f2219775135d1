"""Markov chains by elliptical slices: how many independent draws they are worth."""

import numpy as np
import pytest

from bayesatk.core.numerics.elliptical import effective_sample_size


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_effective_draws_of_correlated_chains_do_not_depend_on_units(scale: float) -> None:
    """Of first-order autoregressions with correlation c there are (1 - c)/(1 + c) as many."""
    rng, correlation = np.random.default_rng(3), 0.8
    chains = rng.standard_normal((500, 100, 20))
    for now in range(1, len(chains)):
        chains[now] = correlation * chains[now - 1] + 0.6 * chains[now]
    expected = 500 * 100 * (1 - correlation) / (1 + correlation)
    assert effective_sample_size(scale * chains) == pytest.approx(expected, rel=0.12)
