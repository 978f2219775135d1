"""Comparisons at their edges: saturated systems, equal ones, one question in a group."""

import warnings

import numpy as np
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.comparison.pairs.together import no_better_seen
from bayesatk.results.result import Result


def _compared(runs, pooling: str, metrics: str) -> xr.DataTree:
    """Compare, and let no floating-point error or warning pass."""
    fit = bk.evaluate(runs, metrics, pooling=pooling, draws=5, rng=1)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        return bk.compare(fit, rope=0.05)


@pytest.mark.long
def test_saturated_systems_are_tabulated_without_warnings() -> None:
    """No standard error is negative, whatever rounding does to probabilities near one."""
    marks = {"a": [[1] * 8] * 40, "b": [[1] * 8] * 39 + [[1] * 7 + [0]], "c": [[0] * 8] * 40}
    for pooling in ("none", "partial", "complete"):
        compared = _compared(marks, pooling, "pass@1,8 pass^4 bayes")
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            table = bk.table(compared, "comparison")
        assert (table["monte_carlo_error"] >= 0.0).all()


@pytest.mark.parametrize("pooling", ["none", "partial"])
def test_no_worse_system_is_named_the_better_one(pooling) -> None:
    """All trials succeed, or 60 of 64: pass@32 differs by 1e-21, which no double tells from 0."""
    nearly, always = [[1] * 60 + [0] * 4] * 100, [[1] * 64] * 100
    for runs in ((nearly, always), (always, nearly), (always, always)):
        runs = dict(zip("ab", runs, strict=True))
        result = _compared(runs, pooling, "pass@32")
        assert (result["tiers"]["pass_at_k"] == 1).all()
        assert "is ahead" not in " ".join(bk.table(result, "comparison")["sentence"])


def test_what_no_trial_speaks_for_is_not_declared() -> None:
    """Equal faults everywhere say how alike questions are, and no fault at all does not."""
    rng = np.random.default_rng(3)
    runs = {"faultless": np.ones((100, 64), int), "faulty": rng.binomial(1, 0.94, (100, 64))}
    fit = bk.compare(bk.evaluate(runs, "pass@1,32,100", difficulty="beta", rng=1))
    rows = bk.table(fit, "comparison").query("metric != 'pass@1' and target == 'population'")
    assert (rows["prob_greater"] < 0.025).all()  # the model is sure, for want of faults
    assert (rows["verdict"] == "not separated").all()
    assert "because faulty did no better in the trials that were run" in rows["sentence"].iloc[0]
    judged = bk.evaluate(runs, "pass@32", judge=bk.JudgeError(90, 100, 5, 100), rng=1)
    assert not no_better_seen(Result.of(judged), 0).any()  # marks alone do not decide


def test_a_better_mean_or_a_better_metric_speaks_for_a_system() -> None:
    """One solves half of the questions always; the other, with fewer marks, more of them once."""
    marks = {"half": [[1] * 8] * 10 + [[0] * 8] * 10, "all": [[1, 1, 1] + [0] * 5] * 20}
    fit = Result.of(bk.evaluate(marks, "pass@1,4,64 pass^8", rng=1))
    seen = [no_better_seen(fit, cell)[1, 0] for cell in range(4)]
    labels = [metric.label for metric in fit.grid][:4]
    assert dict(zip(labels, seen, strict=True))["pass@1"]
    assert not dict(zip(labels, seen, strict=True))["pass@64"]


@pytest.mark.parametrize(
    "marks", [{"a": [[1, 1]], "b": [[0, 0]]}, {f"s{i}": [[int(i == 2), 0]] for i in range(6)}]
)
def test_one_question_in_a_group_is_compared_without_warnings(marks) -> None:
    fit = bk.evaluate(bk.tally(marks, group=["g"]), "pass@1", group="group", rng=1)
    with np.errstate(all="raise"):
        chance = bk.compare(fit)["comparison"]["pass_at_k"].sel(contrast="prob_greater")
    both = chance + chance.transpose("other", "system", ...).values
    off = ~np.eye(len(marks), dtype=bool)
    np.testing.assert_allclose(both.values[off], 1.0)
