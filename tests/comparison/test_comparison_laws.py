"""Laws of comparisons that hold for any data: ties, order, names, identical systems."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.comparison.joint.contrasts import (
    Drawn,
    ExactMean,
    Independent,
    Settings,
    mirrored,
)
from bayesatk.core.engine.distribution import Empirical
from bayesatk.metrics.grid import parse
from bayesatk.results.schema import metric_values

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


@pytest.fixture(scope="module", autouse=True)
def _libraries_are_imported() -> None:
    """Some set the recursion limit when they are first used, which hypothesis does not take."""
    for pooling in ("none", "complete", "partial"):
        _compared([[[0, 1]], [[1, 1]]], pooling)


def _check(result: xr.DataTree, alike: list[tuple[int, int]]) -> None:
    """Check what holds for every metric and target; ``alike`` are pairs with the same data."""
    compared, ranks, tiers = (
        result[name].to_dataset() for name in ("comparison", "ranks", "tiers")
    )
    size = compared.sizes["system"]
    off = ~np.eye(size, dtype=bool)
    for metric in bk.Result.of(result).metrics:
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
        assert (one["ci_lower"] <= one["ci_upper"] + 1e-12).all()
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
        if not metric.voted and bk.Result.of(result).metrics == parse(METRICS):
            for target in ("questions", "population"):
                rule = bk.decide.StoppingRule(metric.label, ci_prob=0.501, target=target)
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
        b = b.reindex_like(a)
        if "contrast" in a.dims:  # ends of intervals and ratios are searched for, to 1e-3 of widths
            every = [str(name) for name in a["contrast"].values]
            ends = [name for name in every if name.startswith(("ratio", "ci"))]
            searched = a.sel(contrast=ends), b.sel(contrast=ends)
            xr.testing.assert_allclose(*searched, rtol=1e-5, atol=1e-6)
            a, b = a.drop_sel(contrast=ends), b.drop_sel(contrast=ends)
        xr.testing.assert_allclose(a, b, atol=1e-12, rtol=1e-9)


def _hold(runs: list[list[list[int]]], order: list[int], pooling: str, metrics: str) -> None:
    """Check the laws on some data, and that another order and other names change nothing."""
    names = "abcde"[: len(runs)]
    result = _compared(dict(zip(names, runs, strict=True)), pooling, metrics)
    counts = [[(sum(own), len(own)) for own in row] for row in runs]
    pairs = combinations(range(len(runs)), 2)
    _check(result, [(i, j) for i, j in pairs if counts[i] == counts[j]])
    again = _compared({f"z{names[i]}": runs[i] for i in order}, pooling, metrics)
    _same(result, again, {f"z{name}": name for name in names})


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["none", "complete"])
@settings(max_examples=8, **QUICK)
@given(runs=_systems(), data=st.data())
def test_laws_of_marks(pooling, runs, data) -> None:
    _hold(runs, data.draw(st.permutations(range(len(runs)))), pooling, METRICS)


@pytest.mark.long
@settings(max_examples=4, **QUICK)
@given(runs=_systems(), data=st.data())
def test_laws_under_partial_pooling(runs, data) -> None:
    _hold(runs, data.draw(st.permutations(range(len(runs)))), "partial", METRICS)


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["none", "complete"])
@settings(max_examples=6, **QUICK)
@given(runs=_systems(), data=st.data())
def test_laws_of_scores(pooling, runs, data) -> None:
    """Scored categories have draws only."""
    order = data.draw(st.permutations(range(len(runs))))
    names, scores = "abcde"[: len(runs)], {0: 0.0, 1: 1.0, 2: 0.5}
    results = []
    for chosen in (range(len(runs)), order):
        own = bk.tally({names[i]: runs[i] for i in chosen}, scores=scores)
        fit = bk.evaluate(own, "bayes max@3", pooling=pooling, draws=5, rng=1)
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            results.append(bk.compare(fit, rng=1))
    counts = [[(sum(own), len(own)) for own in row] for row in runs]
    pairs = combinations(range(len(runs)), 2)
    _check(results[0], [(i, j) for i, j in pairs if counts[i] == counts[j]])
    _same(*results, {name: name for name in names})


@settings(max_examples=40, **QUICK)
@given(st.lists(st.lists(st.sampled_from([0.0, 0.3, 1.0 - 1e-15, 1.0]), min_size=3, max_size=3),
                min_size=2, max_size=30))  # fmt: skip
def test_laws_of_draws(rows) -> None:
    drawn = Drawn.of(np.array(rows)[:, None], np.array(rows)[:, None], len(rows))
    ranks = drawn.ranks(0)
    np.testing.assert_allclose(ranks.sum(axis=0), 1.0)
    np.testing.assert_allclose(ranks.sum(axis=1), 1.0)
    i, j = np.triu_indices(3, 1)
    with np.errstate(all="raise"):
        for kind in ("eti", "hdi"):
            straight = drawn.contrasts(0, i, j, Settings(0.95, kind, 0.1))
            turned = mirrored(drawn.contrasts(0, j, i, Settings(0.95, kind, 0.1)))
            for name in ("mean", "prob_greater", "prob_tie", "prob_above_rope", "expected_loss"):
                np.testing.assert_allclose(straight[name], turned[name], atol=1e-12)


def _of(*points: float) -> Empirical:
    return Empirical(np.array(points))


def _independent(laws: list[Empirical]) -> Independent:
    """Systems whose only metric has these posteriors."""
    exact = [ExactMean.of(law.quantile(0.5).item(), 0.1, law) for law in laws]
    nothing = np.zeros((1, 1, len(laws)))
    return Independent.among(Drawn(nothing, nothing[0], 1.0), {0: exact})


@settings(max_examples=15, **QUICK)
@given(st.lists(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=4, unique=True).filter(
        lambda own: min(abs(a - b) for a, b in combinations(own, 2)) > 1e-9)
    | st.sampled_from([0.0, 0.5, 1.0 - 1e-14, 1.0]), min_size=2, max_size=5,
))  # fmt: skip
def test_laws_of_distributions(shapes) -> None:
    """Constants, and tables of any shape, in any mixture."""
    laws = [_of(own) if isinstance(own, float) else _of(*own) for own in shapes]
    i, j = np.triu_indices(len(laws), 1)
    with np.errstate(under="ignore"):
        systems, options = _independent(laws), Settings(0.95, "eti", 0.1)
        found, turned = (systems.contrasts(0, *pair, options) for pair in ((i, j), (j, i)))
        ranks = systems.ranks(0)
    np.testing.assert_allclose(found["prob_greater"] + found["prob_smaller"], 1.0, atol=1e-14)
    for name in ("prob_greater", "prob_tie", "prob_above_rope"):
        np.testing.assert_allclose(mirrored(turned)[name], found[name], atol=0.002)
    assert (found["prob_greater"] >= 0.5 * found["prob_tie"] - 1e-15).all()
    ahead = found["prob_greater"] - 0.5 * found["prob_tie"]
    assert (found["prob_above_rope"] <= ahead + 1e-12).all()
    assert (found["monte_carlo_error"] >= 0.0).all()
    np.testing.assert_allclose(ranks.sum(axis=0), 1.0, atol=1e-9)
    np.testing.assert_allclose(ranks.sum(axis=1), 1.0, atol=1e-9)


def test_values_next_to_one_tie_and_ratios_of_zeros_are_one() -> None:
    near = _of(1.0 - 3e-16, 1.0)
    systems = _independent([near, _of(1.0), _of(0.0), _of(0.0)])
    i, j = np.array([0, 2, 1, 2]), np.array([1, 3, 2, 1])
    found = systems.contrasts(0, i, j, Settings(0.95, "eti", 0.0))
    assert found["prob_tie"][0] == pytest.approx(1.0)
    assert found["prob_greater"][0] == 0.5
    np.testing.assert_allclose(systems.ranks(0)[:2, :2], 0.5, atol=1e-12)
    for name in ("ratio_lower", "ratio_median", "ratio_upper"):
        np.testing.assert_allclose(found[name], [1.0, 1.0, np.inf, 0.0])
    assert found["ci_lower"][2] == found["ci_upper"][2] == 1.0


def test_shortest_intervals_are_shortest_and_mirror_each_other() -> None:
    x = np.linspace(0.0, 1.0, 400)
    falling = Empirical(x, 2.0 * (1.0 - x) / (2.0 * (1.0 - x)).sum())
    systems, pair = _independent([falling, _of(0.0)]), np.array([0])
    options = Settings(0.9, "hdi", 0.0)
    gap, back = (systems.contrasts(0, pair + way, pair + 1 - way, options) for way in (0, 1))
    ends = gap["ci_lower"].item(), gap["ci_upper"].item()
    np.testing.assert_allclose(ends, [0.0, 1.0 - np.sqrt(0.1)], atol=3e-3)
    mirror = -back["ci_upper"].item(), -back["ci_lower"].item()
    np.testing.assert_allclose(mirror, ends, atol=1e-3)


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
def test_no_rule_names_a_worse_system(pooling) -> None:
    """All trials succeed, or 60 of 64: pass@32 differs by 1e-21, which no double tells from 0."""
    runs = {"a": [[1] * 60 + [0] * 4] * 100, "b": [[1] * 64] * 100}
    for ordered in (runs, dict(reversed(runs.items()))):
        result = _compared(ordered, pooling, "pass@32")
        for target in ("questions", "population"):
            decided = bk.decide.StoppingRule("pass@32", ci_prob=0.9, target=target).decide(result)
            assert decided["reason"].tolist() == ["go on"]
        assert (result["tiers"]["pass_at_k"] == 1).all()
        assert "is ahead" not in " ".join(bk.table(result, "comparison")["sentence"])
    same = _compared({"a": runs["b"], "b": runs["b"]}, pooling, "pass@8")
    _check(same, [(0, 1)])


@pytest.mark.parametrize(
    "marks", [{"a": [[1, 1]], "b": [[0, 0]]}, {f"s{i}": [[int(i == 2), 0]] for i in range(6)}]
)
def test_one_question_in_a_group_is_compared_without_warnings(marks) -> None:
    fit = bk.evaluate(bk.tally(marks, group=["g"]), "pass@1", group="group", rng=1)
    with np.errstate(all="raise"):
        chance = bk.compare(fit, rng=1)["comparison"]["pass_at_k"].sel(contrast="prob_greater")
    both = chance + chance.transpose("other", "system", ...).values
    off = ~np.eye(len(marks), dtype=bool)
    np.testing.assert_allclose(both.values[off], 1.0)
