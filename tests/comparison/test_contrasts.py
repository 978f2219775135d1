"""Contrasts, ranks, orders and tiers from joint draws, each from its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, rankdata

from bayesatk.comparison.pairs.contrasts import (
    CONTRASTS,
    Settings,
    band_width,
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
    x, y = (rng.permutation(_even(*shape)) for shape in (first, second))
    pair = _of(x - y, rope=0.2)
    coarse = [beta(*shape).ppf((np.arange(1500) + 0.5) / 1500) for shape in (first, second)]
    gaps = (coarse[0][:, None] - coarse[1]).ravel()
    low, high = np.quantile(gaps, [0.025, 0.975])
    for name, expected, error in (
        ("mean", first[0] / sum(first) - second[0] / sum(second), 1e-4),
        ("ci_lower", low, 0.01 * (high - low)),
        ("ci_upper", high, 0.01 * (high - low)),
        ("prob_above_rope", (gaps > 0.2).mean(), 0.01),
        ("prob_below_rope", (gaps < -0.2).mean(), 0.01),
        ("prob_in_rope", (np.abs(gaps) <= 0.2).mean(), 0.01),
        ("expected_loss", np.maximum(-gaps, 0.0).mean(), 0.002),
        (
            "monte_carlo_error",
            np.sqrt(pair["prob_greater"] * (1 - pair["prob_greater"]) / SIZE),
            1e-9,
        ),
        ("prob_greater", 7 / 9 if second == (1, 1) else (gaps > 0).mean(), 0.01),
    ):
        assert pair[name] == pytest.approx(expected, abs=error), name


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.3, -0.3, 1e-14, 1.0]), min_size=2, max_size=30))
def test_laws_of_differences(values: list[float]) -> None:
    gap = np.array(values)
    for kind in ("eti", "hdi"):
        forward, back = _of(gap, 0.1, kind), _of(-gap, 0.1, kind)
        lower = _of(gap, 0.1, kind, direction=-1)
        for name in ("prob_greater", "prob_above_rope", "expected_loss"):
            assert lower[name] == pytest.approx(back[name])
        for name in ("mean", "ci_lower"):
            assert lower[name] == forward[name]
        assert forward["prob_greater"] + back["prob_greater"] == pytest.approx(1.0)
        assert sum(forward[f"prob_{side}_rope"] for side in ("below", "in", "above")) == (
            pytest.approx(1.0)
        )
        assert forward["prob_in_rope"] >= forward["prob_tie"]
        assert forward["ci_lower"] <= forward["ci_upper"]
        assert forward["expected_loss"] >= 0.0
        assert forward["prob_tie"] == pytest.approx((np.abs(gap) <= 2.0**-40).mean())
        assert forward["prob_below_rope"] == back["prob_above_rope"]


def test_shortest_intervals_are_shortest_and_mirror_each_other() -> None:
    falling = 1.0 - np.sqrt((np.arange(SIZE) + 0.5) / SIZE)  # density 2 (1 - x)
    forward, back = _of(falling, kind="hdi"), _of(-falling, kind="hdi")
    ends = forward["ci_lower"], forward["ci_upper"]
    np.testing.assert_allclose(ends, [0.0, 1.0 - np.sqrt(0.05)], atol=3e-3)
    np.testing.assert_allclose([-back["ci_upper"], -back["ci_lower"]], ends, atol=3e-3)


def test_a_table_of_pairs_is_its_mirror_image_and_a_band_holds_whole_curves() -> None:
    rng, grid = np.random.default_rng(4), MetricGrid.of("pass@1,2,4 bayes")
    steps = rng.standard_normal((2, 4, 3, 4000)).cumsum(axis=1) + np.arange(3)[:, None]
    declared = np.zeros((2, 4, 3, 3), bool)
    declared[..., 2, 0] = True
    table = pair_contrasts(grid, steps, declared, Settings(0.95, "eti", 0.5, 1, 4000.0))
    by_name = {name: table[..., column] for column, name in enumerate(CONTRASTS)}
    off = ~np.eye(3, dtype=bool)
    for name, opposite, sign, shift in (
        ("mean", "mean", -1, 0),
        ("sd", "sd", 1, 0),
        ("ci_lower", "ci_upper", -1, 0),
        ("prob_greater", "prob_greater", -1, 1),
        ("prob_below_rope", "prob_above_rope", 1, 0),
        ("mean_system", "mean_other", 1, 0),
        ("band_lower", "band_upper", -1, 0),
    ):
        turned = shift + sign * np.swapaxes(by_name[opposite], 0, 1)
        np.testing.assert_allclose(by_name[name][off], turned[off], atol=1e-12)
    assert by_name["declared"][2, 0].all()
    assert not by_name["declared"][0].any()
    gap = steps[0, :3, 1] - steps[0, :3, 0]
    low, high = (by_name[f"band_{end}"][1, 0, :3, 0, None] for end in ("lower", "upper"))
    assert ((gap >= low) & (gap <= high)).all(axis=0).mean() == pytest.approx(0.95, abs=0.001)
    assert (by_name["band_lower"][1, 0, 3] == by_name["ci_lower"][1, 0, 3]).all()  # at one k only
    assert band_width(gap[:1], 0.95) == pytest.approx(1.96, abs=0.1)


def test_ranks_are_those_of_the_draws_and_ties_share_them() -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(0, 4, (500, 5)) / 4.0
    expected = rankdata(-values, axis=1)
    np.testing.assert_array_equal(rank_draws(values), expected)
    probabilities = rank_probabilities(values)
    np.testing.assert_allclose(probabilities.sum(axis=0), 1.0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(probabilities @ np.arange(1, 6), expected.mean(axis=0))


def test_systems_far_apart_are_all_declared_in_their_order() -> None:
    means = np.array([20.0, 0.0, 30.0, 10.0])
    draws = np.random.default_rng(2).standard_normal((1000, 4)) + means
    assert separated(draws, 0.05)[0].tolist() == (means[:, None] > means).tolist()


def test_declared_orders_hold_together() -> None:
    rng = np.random.default_rng(2)
    centre = np.linspace(0, 3, 8)
    values = centre + rng.standard_normal((4000, 8))
    declared, _ = separated(values, 0.1)
    fresh = centre + rng.standard_normal((4000, 8))
    above, below = np.nonzero(declared)
    assert len(above) > 0
    assert (fresh[:, above] <= fresh[:, below]).any(axis=1).mean() < 0.12
    assert (separated(values, 0.3)[0] >= declared).all()
    tier = tiers_of(declared, np.argsort(-values.mean(axis=0)))
    assert (tier[above] < tier[below]).all()
    assert not separated(np.ones((10, 3)), 0.05)[0].any()
