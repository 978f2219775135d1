"""Probabilities with the digits that Monte Carlo leaves."""

import re

import numpy as np

import bayesatk as bk


def test_probabilities_have_the_digits_that_their_error_leaves() -> None:
    rng = np.random.default_rng(0)
    runs = {name: rng.binomial(1, p, (30, 4)) for name, p in (("a", 0.5), ("b", 0.45))}
    compared = bk.compare(bk.evaluate(runs, "bayes", pooling="none", draws=50, rng=1))
    table = bk.table(compared, "comparison").set_index("target")
    for target, pattern in (("questions", r"= 0\.\d\d"), ("population", r"= 0\.\d\d ± 0\.01")):
        assert re.search(rf"P\(better\) {pattern}", table.loc[target, "sentence"]), target
    assert table.loc["questions", "monte_carlo_error"] < 2e-3
    assert 0.005 < table.loc["population", "monte_carlo_error"] < 0.01
