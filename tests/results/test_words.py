"""Probabilities have the same decimals in a table, its sentences and every row."""

import re

import numpy as np
import pytest

import bayesatk as bk


def test_table_and_sentence_have_the_same_digits_and_state_the_error_of_draws() -> None:
    rng = np.random.default_rng(0)
    runs = {name: rng.binomial(1, p, (30, 4)) for name, p in (("a", 0.5), ("b", 0.45))}
    compared = bk.compare(bk.evaluate(runs, "bayes", pooling="none", rng=1))
    table = bk.table(compared, "comparison")
    for row in table.to_dict("records"):
        chance = f"{row['prob_greater']:.3f}"
        assert re.search(rf"  {chance}  not separated$", str(table), re.MULTILINE)
        assert f"P(better) = {chance}" in row["sentence"]
        assert f"{row['mean']:+.3f}" in str(table)
        assert f"{row['mean']:+.3f} (95% interval {row['ci_lower']:+.3f}" in row["sentence"]
    # A share of 4,000 independent draws has a standard error of sqrt(p (1 - p) / 4000).
    stated = float(re.search(r"standard error is at most (0\.\d+)", str(table))[1])
    assert stated == float(f"{table['monte_carlo_error'].max():.2g}")
    assert 0.005 < stated < 0.01
    # Ends are quantiles of the draws: their spread over samples of 4,000 normal numbers.
    samples = np.random.default_rng(1).standard_normal((2000, 4000))
    share = np.quantile(samples, 0.025, axis=1).std() / (2 * 1.95996)
    stated = float(re.search(r"end of an interval is about ([\d.]+)% of its width", str(table))[1])
    assert stated / 100 == pytest.approx(share, rel=0.1)
