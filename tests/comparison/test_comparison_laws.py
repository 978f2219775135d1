"""Laws of comparisons that hold for any data: ties, order, names, identical systems."""

import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.results.schema import metric_values

METRICS = "pass@1,8 pass^4 bayes"
QUICK = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


@st.composite
def _systems(draw: st.DrawFn) -> list[list[list[int]]]:
    """Marks of 2 to 5 systems on 1 to 6 questions, 1 to 5 trials each; often alike or saturated."""
    questions = draw(st.integers(1, 6))
    marks = st.lists(st.integers(0, 1), min_size=1, max_size=5)
    flat = st.sampled_from([0, 1]).flatmap(
        lambda mark: st.lists(st.just(mark), min_size=1, max_size=5)
    )
    row = st.lists(marks | flat, min_size=questions, max_size=questions)
    systems = draw(st.lists(row, min_size=1, max_size=4))
    return [*systems, draw(st.sampled_from(systems) | row)]


def _compared(runs, pooling: str, metrics: str = METRICS) -> xr.DataTree:
    """Compare, and let no floating-point error or warning pass."""
    fit = bk.evaluate(runs, metrics, pooling=pooling, draws=5, rng=1)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        return bk.compare(fit, rope=0.05)


@pytest.fixture(scope="module", autouse=True)
def _libraries_are_imported() -> None:
    """Some set the recursion limit when they are first used, which hypothesis does not take."""
    for pooling in ("none", "complete", "partial"):
        _compared([[[0, 1]], [[1, 1]]], pooling)


def _check(result: xr.DataTree) -> None:
    """Check what holds for every metric and target."""
    compared, ranks, tiers = (
        result[name].to_dataset() for name in ("comparison", "ranks", "tiers")
    )
    size = compared.sizes["system"]
    off = ~np.eye(size, dtype=bool)
    for metric in bk.Result.of(result).metrics:
        values = metric_values(compared, metric)
        pairs = {name: values.sel(contrast=name).transpose("target", "system", "other").values
                 for name in values["contrast"].values}  # fmt: skip
        greater, tie = pairs["prob_greater"], pairs["prob_tie"]
        turned = np.swapaxes(greater, 1, 2)
        assert ((greater >= 0) & (greater <= 1) & (tie >= 0) & (tie <= 1 + 1e-12)).all()
        np.testing.assert_allclose((greater + turned)[:, off], 1.0, atol=1e-12)
        assert (greater - tie / 2)[:, off].min() >= -1e-12
        rope = sum(pairs[f"prob_{side}_rope"] for side in ("below", "in", "above"))
        np.testing.assert_allclose(rope[:, off], 1.0, atol=1e-7)
        assert (pairs["prob_in_rope"] >= tie - 1e-12).all()
        assert (pairs["ci_lower"] <= pairs["ci_upper"] + 1e-12).all()
        assert (pairs["expected_loss"] >= 0).all()
        assert not any(np.isnan(contrast).any() for contrast in pairs.values())
        rank = metric_values(ranks, metric).transpose("target", "system", "rank").values
        assert rank.min() >= 0
        for axis in (1, 2):
            np.testing.assert_allclose(rank.sum(axis=axis), 1.0, atol=1e-9)
        tier = metric_values(tiers, metric)
        assert (tier >= 1).all()
        assert (tier.min("system") == 1).all()


def _named(runs: list[list[list[int]]]) -> dict[str, list[list[int]]]:
    return dict(zip("abcde", runs, strict=False))


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["none", "complete", "partial"])
@settings(max_examples=6, **QUICK)
@given(runs=_systems())
def test_laws_of_marks(pooling, runs) -> None:
    _check(_compared(_named(runs), pooling))


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["none", "complete"])
@settings(max_examples=6, **QUICK)
@given(runs=_systems())
def test_laws_of_scores(pooling, runs) -> None:
    """Scored categories have draws only."""
    data = bk.tally(_named(runs), scores={0: 0.0, 1: 1.0, 2: 0.5})
    _check(_compared(data, pooling, "bayes max@3"))


@pytest.mark.long
def test_saturated_systems_are_tabulated_without_warnings() -> None:
    """No standard error is negative, whatever rounding does to probabilities near one."""
    marks = {"a": [[1] * 8] * 40, "b": [[1] * 8] * 39 + [[1] * 7 + [0]], "c": [[0] * 8] * 40}
    for pooling in ("none", "partial", "complete"):
        compared = _compared(marks, pooling)
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
    _check(result)


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
