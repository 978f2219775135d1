"""Chances of marks given right trials, against sums of two binomials."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bayesatk.core.pooling.marks import mark_chances, right_given_marked
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States

rate = st.floats(0.0, 1.0)


@settings(max_examples=40)
@given(st.integers(1, 60), rate, rate)
def test_marks_are_the_sum_of_two_binomials(trials, s, f) -> None:
    found = mark_chances(np.array([[s, f], [0.7, 0.2]]), trials, np.arange(trials + 1))[:, 0]
    for right in range(trials + 1):
        of_right = binom.pmf(np.arange(right + 1), right, s)
        of_wrong = binom.pmf(np.arange(trials - right + 1), trials - right, f)
        np.testing.assert_allclose(found[right], np.convolve(of_right, of_wrong), atol=1e-14)


def test_right_trials_given_marks_are_by_bayes() -> None:
    nodes = Nodes.single(2.0, 1.0)
    nodes = Nodes(
        *(getattr(nodes, name) for name in ("alpha", "beta", "share", "atoms", "weight")),
        rates=np.array([[0.9, 0.2]]),
    )
    states, right = States.of([1], [2]), States.of([0, 1, 2], [2, 2, 2])
    found = right_given_marked(nodes, states, right)[0, 0]
    prior = np.array([1, 2, 3]) / 6  # Beta-binomial(2; 2, 1)
    given_right = [2 * 0.2 * 0.8, 0.9 * 0.8 + 0.1 * 0.2, 2 * 0.9 * 0.1]
    expected = prior * given_right / (prior @ given_right)
    assert found == pytest.approx(expected, rel=1e-12)
