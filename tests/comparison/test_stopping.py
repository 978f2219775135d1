"""Rules that stop an evaluation, on a comparison whose probabilities are known."""

import numpy as np
import pytest

import bayesatk as bk


def test_a_rule_decides_by_the_probabilities_of_the_comparison() -> None:
    rng = np.random.default_rng(4)
    counts = rng.binomial(4, np.clip(rng.beta(2, 2, 40) + np.array([[0.1], [0.0]]), 0, 1))
    fit = bk.evaluate(bk.tally((counts, np.full((2, 40), 4))), "pass^2", rng=1)
    compared = bk.compare(fit, rng=1)
    said = bk.decide.StoppingRule("pass^2", ci_prob=0.51).decide(compared)
    assert said.loc[0, "reason"].endswith("is ahead")
    assert (
        bk.decide.StoppingRule("pass^2", ci_prob=0.9999, width=1.0).decide(compared)["stop"].all()
    )
    assert not bk.decide.StoppingRule("pass^2", ci_prob=0.999999).decide(compared)["stop"].any()


def test_rules_must_be_possible() -> None:
    compared = bk.compare(bk.evaluate({"a": [[1]], "b": [[0]]}, "bayes", rng=1), rng=1)
    with pytest.raises(ValueError, match="compared must have pass@1"):
        bk.decide.StoppingRule("pass@1").decide(compared)
    with pytest.raises(ValueError, match="prob must lie strictly"):
        bk.decide.StoppingRule("pass@1", ci_prob=0.4)
    with pytest.raises(ValueError, match="width must be finite and > 0"):
        bk.decide.StoppingRule("pass@1", width=0.0)
    with pytest.raises(ValueError, match="one metric of right and wrong"):
        bk.decide.StoppingRule("pass@1,2")
    with pytest.raises(ValueError, match="target must be"):
        bk.decide.StoppingRule("pass@1", target="both")
