"""Contrasts, ranks, orders and tiers from joint draws, each from its definition."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, rankdata

from bayesatk.comparison.pairs.contrasts import (
    CONTRASTS,
    Settings,
    band_width,
    mirrored,
    of_differences,
    pair_contrasts,
    rank_draws,
    rank_probabilities,
    separated,
    tiers_of,
)
from bayesatk.metrics.grid import MetricGrid

SIZE = 40_000


def _of(gap: np.ndarray, rope: float = 0.0, kind: str = "eti", direction: int = 1):
    settings_ = Settings(0.95, kind, rope, direction, gap.shape[-1])  # type: ignore[arg-type]
    return {name: value[0, 0] for name, value in of_differences(gap[None, None], settings_).items()}


def _even(a: float, b: float) -> np.ndarray:
    return beta(a, b).ppf((np.arange(SIZE) + 0.5) / SIZE)


@pytest.mark.parametrize(("first", "second"), [((3, 2), (2, 5)), ((7, 2), (1, 1))])
def test_contrasts_of_two_betas(first: tuple[int, int], second: tuple[int, int]) -> None:
    """Against sums over the quantiles of both; P(Beta > uniform) is the mean of the Beta."""
    rng = np.random.default_rng(1)
    x, y = rng.permutation(_even(*first)), rng.permutation(_even(*second))
    coarse = [beta(*shape).ppf((np.arange(1500) + 0.5) / 1500) for shape in (first, second)]
    every = (coarse[0][:, None] - coarse[1]).ravel()
    for rope in (0.0, 0.2):
        found = _of(x - y, rope)
        for name, share in (("above", every > rope), ("below", every < -rope)):
            assert found[f"prob_{name}_rope"] == pytest.approx(share.mean(), abs=0.01)
        assert sum(found[f"prob_{side}_rope"] for side in ("below", "in", "above")) == (
            pytest.approx(1.0)
        )
    assert found["expected_loss"] == pytest.approx(np.maximum(-every, 0.0).mean(), abs=0.002)
    low, high = np.quantile(every, [0.025, 0.975])
    assert found["ci_lower"] == pytest.approx(low, abs=0.01 * (high - low))
    assert found["ci_upper"] == pytest.approx(high, abs=0.01 * (high - low))
    assert found["mean"] == pytest.approx(first[0] / sum(first) - second[0] / sum(second), abs=1e-4)
    assert found["monte_carlo_error"] == pytest.approx(
        np.sqrt(found["prob_greater"] * (1.0 - found["prob_greater"]) / SIZE)
    )
    if second == (1, 1):
        assert found["prob_greater"] == pytest.approx(7 / 9, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.3, -0.3, 1e-14, 1.0]), min_size=2, max_size=30))
def test_laws_of_differences(values: list[float]) -> None:
    gap = np.array(values)
    for kind in ("eti", "hdi"):
        found, back = _of(gap, 0.1, kind), _of(-gap, 0.1, kind)
        lower = _of(gap, 0.1, kind, direction=-1)
        for name in ("prob_greater", "prob_above_rope", "expected_loss"):
            assert lower[name] == pytest.approx(back[name])
        for name in ("mean", "ci_lower"):
            assert lower[name] == found[name]
        assert found["prob_greater"] + found["prob_smaller"] == pytest.approx(1.0)
        assert found["prob_tie"] == pytest.approx((np.abs(gap) <= 2.0**-40).mean())
        turned = mirrored(found)
        for name in ("mean", "prob_greater", "prob_tie", "prob_above_rope", "expected_loss"):
            assert turned[name] == pytest.approx(back[name], abs=1e-12), name


def test_shortest_intervals_are_shortest_and_mirror_each_other() -> None:
    falling = 1.0 - np.sqrt((np.arange(SIZE) + 0.5) / SIZE)  # density 2 (1 - x)
    found, back = _of(falling, kind="hdi"), _of(-falling, kind="hdi")
    ends = found["ci_lower"], found["ci_upper"]
    np.testing.assert_allclose(ends, [0.0, 1.0 - np.sqrt(0.05)], atol=3e-3)
    np.testing.assert_allclose([-back["ci_upper"], -back["ci_lower"]], ends, atol=3e-3)


def test_a_table_of_pairs_is_its_mirror_image_and_a_band_holds_whole_curves() -> None:
    rng, grid = np.random.default_rng(4), MetricGrid.of("pass@1,2,4 bayes")
    steps = rng.standard_normal((2, 4, 3, 4000)).cumsum(axis=1) + np.arange(3)[:, None]
    declared = np.zeros((2, 4, 3, 3), bool)
    declared[..., 2, 0] = True
    table = pair_contrasts(grid, steps, declared, Settings(0.95, "eti", 0.5, 1, 4000.0))
    one = {name: table[..., place] for place, name in enumerate(CONTRASTS)}
    off = ~np.eye(3, dtype=bool)
    for name, opposite, sign, shift in (
        ("mean", "mean", -1, 0), ("sd", "sd", 1, 0), ("ci_lower", "ci_upper", -1, 0),
        ("prob_greater", "prob_greater", -1, 1), ("prob_below_rope", "prob_above_rope", 1, 0),
        ("mean_system", "mean_other", 1, 0), ("band_lower", "band_upper", -1, 0),
    ):  # fmt: skip
        turned = shift + sign * np.swapaxes(one[opposite], 0, 1)
        np.testing.assert_allclose(one[name][off], turned[off], atol=1e-12)
    assert one["declared"][2, 0].all()
    assert not one["declared"][0].any()
    gap = steps[0, :3, 1] - steps[0, :3, 0]
    low, high = (one[f"band_{end}"][1, 0, :3, 0, None] for end in ("lower", "upper"))
    assert ((gap >= low) & (gap <= high)).all(axis=0).mean() == pytest.approx(0.95, abs=0.001)
    assert (one["band_lower"][1, 0, 3] == one["ci_lower"][1, 0, 3]).all()  # at one k only
    assert band_width(gap[:1], 0.95) == pytest.approx(1.96, abs=0.1)


def test_ranks_are_those_of_the_draws_and_ties_share_them() -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(0, 4, (500, 5)) / 4.0
    expected = rankdata(-values, axis=1)
    np.testing.assert_array_equal(rank_draws(values), expected)
    found = rank_probabilities(values)
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found @ np.arange(1, 6), expected.mean(axis=0))


@pytest.mark.parametrize("means", list(permutations([0.0, 10.0, 20.0, 30.0])))
def test_systems_far_apart_are_all_declared_in_their_order(means: tuple[float, ...]) -> None:
    draws = np.random.default_rng(2).standard_normal((1000, 4)) + means
    better = [[above > below for below in means] for above in means]
    assert separated(draws, 0.05).tolist() == better


def test_declared_orders_hold_together() -> None:
    rng = np.random.default_rng(2)
    centre = np.linspace(0, 3, 8)
    values = centre + rng.standard_normal((4000, 8))
    declared = separated(values, 0.1)
    fresh = centre + rng.standard_normal((4000, 8))
    above, below = np.nonzero(declared)
    assert len(above) > 0
    assert (fresh[:, above] <= fresh[:, below]).any(axis=1).mean() < 0.12
    assert (separated(values, 0.3) >= declared).all()
    tier = tiers_of(declared, np.argsort(-values.mean(axis=0)))
    assert (tier[above] < tier[below]).all()
    assert not separated(np.ones((10, 3)), 0.05).any()
