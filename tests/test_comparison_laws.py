"""Laws of comparisons that hold for any data: ties, order, names, identical systems."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.comparison.contrasts import Drawn, Settings, mirrored
from bayesatk.core.contrasts import LEVELS, Contenders, Differences, Known, ratio_quantiles
from bayesatk.core.distribution import Distribution, constant
from bayesatk.metrics import parse
from bayesatk.results import metric_values

METRICS = "pass@1,8 pass^4 bayes"
QUICK = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


@st.composite
def _systems(draw: st.DrawFn) -> list[list[list[int]]]:
    """Marks of 2 to 5 systems on 1 to 6 questions, 1 to 5 trials each; often alike or saturated."""
    questions = draw(st.integers(1, 6))
    marks = st.lists(st.integers(0, 1), min_size=1, max_size=5)
    flat = st.sampled_from([0, 1]).flatmap(
        lambda one: st.lists(st.just(one), min_size=1, max_size=5)
    )
    row = st.lists(marks | flat, min_size=questions, max_size=questions)
    found = draw(st.lists(row, min_size=1, max_size=4))
    return [*found, draw(st.sampled_from(found) | row)]


def _compared(runs, pooling: str, metrics: str = METRICS, **options) -> xr.DataTree:
    """Compare, and let no floating-point error or warning pass."""
    fit = bk.evaluate(runs, metrics, pooling=pooling, draws=5, rng=1, **options)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        return bk.compare(fit, rope=0.05, rng=1)


def _check(result: xr.DataTree, alike: list[tuple[int, int]]) -> None:
    """Check what holds for every metric and target; ``alike`` are pairs with the same data."""
    compared, ranks, tiers = (
        result[name].to_dataset() for name in ("comparison", "ranks", "tiers")
    )
    size = compared.sizes["system"]
    off = ~np.eye(size, dtype=bool)
    for metric in parse(str(result.attrs["metrics"])):
        values = metric_values(compared, metric)
        one = {name: values.sel(contrast=name).transpose("target", "system", "other").values
               for name in values["contrast"].values}  # fmt: skip
        greater, tie = one["prob_greater"], one["prob_tie"]
        turned = np.swapaxes(greater, 1, 2)
        assert ((greater >= 0) & (greater <= 1) & (tie >= 0) & (tie <= 1 + 1e-12)).all()
        np.testing.assert_allclose((greater + turned)[:, off], 1.0, atol=1e-12)
        assert (greater - tie / 2)[:, off].min() >= -1e-12
        rope = one["prob_below_rope"] + one["prob_in_rope"] + one["prob_above_rope"]
        np.testing.assert_allclose(rope[:, off], 1.0, atol=1e-7)
        assert (one["prob_in_rope"] >= tie - 1e-12).all()
        assert (one["ci_lower"] <= one["ci_upper"]).all()
        assert (one["ratio_lower"] <= one["ratio_median"]).all()
        assert (one["expected_loss"] >= 0).all()
        assert not any(np.isnan(each).any() for each in one.values())
        rank = metric_values(ranks, metric).transpose("target", "system", "rank").values
        assert rank.min() >= 0
        for axis in (1, 2):
            np.testing.assert_allclose(rank.sum(axis=axis), 1.0, atol=1e-9)
        tier = metric_values(tiers, metric).transpose("target", "system").values
        for i, j in alike:
            np.testing.assert_allclose(greater[:, i, j], 0.5, atol=1e-12)
            np.testing.assert_allclose(one["mean"][:, i, j], 0.0, atol=1e-12)
            np.testing.assert_allclose(rank[:, i], rank[:, j], atol=1e-9)
            assert (tier[:, i] == tier[:, j]).all()
        if not metric.family.on_answers and result.attrs["metrics"] == METRICS:
            for target in ("questions", "population"):
                rule = bk.StoppingRule(metric.label, prob=0.501, target=target)
                decided = rule.decide(result).set_index(["system", "other"])["stop"]
                assert not any(decided.iloc[_place(size, pair)] for pair in alike)


def _place(size: int, pair: tuple[int, int]) -> int:
    return list(combinations(range(size), 2)).index(pair)


def _same(one: xr.DataTree, other: xr.DataTree, names: dict[str, str]) -> None:
    """Check that two comparisons are the same but for the order and names of systems."""
    for group in ("comparison", "ranks", "tiers"):
        a, b = one[group].to_dataset(), other[group].to_dataset()
        for dim in {"system", "other"} & set(b.dims):
            b = b.assign_coords({dim: [names[name] for name in b[dim].values]})
        xr.testing.assert_allclose(a, b.reindex_like(a), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("pooling", ["none", "complete", "partial"])
@settings(max_examples=12, **QUICK)
@given(runs=_systems(), data=st.data())
def test_laws_of_marks(pooling, runs, data) -> None:
    names = "abcde"[: len(runs)]
    result = _compared(dict(zip(names, runs, strict=True)), pooling)
    counts = [[(sum(own), len(own)) for own in row] for row in runs]
    pairs = combinations(range(len(runs)), 2)
    _check(result, [(i, j) for i, j in pairs if counts[i] == counts[j]])
    order = data.draw(st.permutations(range(len(runs))))
    again = _compared({f"z{names[i]}": runs[i] for i in order}, pooling)
    renamed = {f"z{name}": name for name in names}
    if len({str(own) for own in counts}) == len(counts):
        _same(result, again, renamed)
