"""Probabilities with the digits that Monte Carlo leaves."""

import re

import numpy as np

import bayesatk as bk


def test_probabilities_have_the_digits_that_their_error_leaves() -> None:
    rng = np.random.default_rng(0)
    runs = {name: rng.binomial(1, p, (30, 4)) for name, p in (("a", 0.5), ("b", 0.45))}
    compared = bk.compare(bk.evaluate(runs, "bayes", pooling="none", rng=1))
    table = bk.table(compared, "comparison").set_index("target")
    for target in ("questions", "population"):
        pattern = r"P\(better\) = 0\.\d\d ± 0\.01"
        assert re.search(pattern, table.loc[target, "sentence"]), target
        assert 0.005 < table.loc[target, "monte_carlo_error"] < 0.01
