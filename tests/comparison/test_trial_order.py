"""Order of trials: laws by enumeration, error rates by simulation, words by example."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import mannwhitneyu, norm

import bayesatk as bk
from bayesatk.core.runs.trial_order import RANK_SUM, SWITCHES, rank_sum_pmf, switches_pmf, two_sided


@pytest.mark.parametrize(("c", "f"), [(0, 3), (3, 0), (1, 1), (2, 3), (4, 4), (5, 2)])
def test_laws_by_enumeration(c, f) -> None:
    late, turns = {}, {}
    orders = list(combinations(range(c + f), c))
    for chosen in orders:
        marks = [int(i in chosen) for i in range(c + f)]
        place = sum(chosen) - c * (c - 1) // 2
        turn = sum(a != b for a, b in pairwise(marks))
        late[place] = late.get(place, 0) + 1
        turns[turn] = turns.get(turn, 0) + 1
    for law, counts in ((rank_sum_pmf(c, f), late), (switches_pmf(c, f), turns)):
        exact = [float(Fraction(counts.get(i, 0), len(orders))) for i in range(len(law))]
        np.testing.assert_allclose(law, exact, atol=1e-15)
        assert max(counts) < len(law)


@pytest.mark.parametrize("pair", [(60, 45), (3, 2), (1, 1), (90, 100)])
@pytest.mark.parametrize("law", [RANK_SUM, SWITCHES])
def test_moments_are_those_of_the_law(law, pair) -> None:
    pmf = law.pmf(*pair)
    x = np.arange(len(pmf))
    mean = pmf @ x
    assert law.mean(*pair) == pytest.approx(mean, rel=1e-9)
    assert law.variance(*pair) == pytest.approx(pmf @ (x - mean) ** 2, rel=1e-8)


def test_one_question_is_the_test_of_mann_and_whitney() -> None:
    rng = np.random.default_rng(1)
    marks = rng.integers(0, 2, 12)
    place = np.arange(12)
    expected = mannwhitneyu(place[marks == 1], place[marks == 0], method="exact").pvalue
    found = bk.checks.check_trial_order([marks.tolist()]).set_index("check").loc["drift", "p_value"]
    assert found == pytest.approx(expected, rel=1e-9)


def test_sums_over_questions_by_enumeration() -> None:
    two, one = rank_sum_pmf(2, 1), rank_sum_pmf(1, 3)
    exact = {}
    for a, b, c in product(range(3), range(3), range(4)):
        exact[a + b + c] = exact.get(a + b + c, 0.0) + two[a] * two[b] * one[c]
    for seen in exact:
        low = sum(p for x, p in exact.items() if x <= seen)
        high = sum(p for x, p in exact.items() if x >= seen)
        found = two_sided(seen, RANK_SUM, [(2, 1, 2), (1, 3, 1)])
        assert found == pytest.approx(min(1.0, 2 * min(low, high)))


def test_many_or_long_questions_are_normal() -> None:
    for c, f, times in ((50, 50, 4000), (10_000, 10_000, 1)):
        sd = np.sqrt(times * RANK_SUM.variance(c, f))
        seen = int(times * c * f / 2 + 2.5 * sd)
        assert two_sided(seen, RANK_SUM, [(c, f, times)]) == pytest.approx(
            2 * norm.sf(2.5), rel=2e-3
        )
    exact = two_sided(6_000, RANK_SUM, [(100, 100, 1)])
    near = 2 * norm.sf((6_000 - 5_000 - 0.5) / np.sqrt(RANK_SUM.variance(100, 100)))
    assert exact == pytest.approx(near, rel=0.02)


@pytest.mark.parametrize("seen", [86, 93, 97, 108, 115])
def test_normal_tails_are_corrected_for_continuity(seen) -> None:
    """A count with an sd of 7: half a count changes the p-value by a tenth and more."""
    exact = switches_pmf(101, 100)  # long enough for `two_sided` to take it as normal
    tail = min(exact[: seen + 1].sum(), exact[seen:].sum())
    assert two_sided(seen, SWITCHES, [(101, 100, 1)]) == pytest.approx(2 * tail, rel=0.01)


@pytest.mark.parametrize("pair", [(100, 100), (500, 20), (20, 500), (1, 4000)])
def test_large_laws_add_up_and_mirror(pair) -> None:
    law = rank_sum_pmf(*pair)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(law, law[::-1], atol=1e-15, rtol=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_exchangeable_trials_are_rarely_flagged(seed) -> None:
    """Ten of 100 data sets or more would have probability .03, at 0.05 each."""
    rng = np.random.default_rng(seed)
    flagged = 0
    for _ in range(100):
        marks = (rng.random((30, 5)) < rng.beta(0.5, 0.5, (30, 1))).astype(int)
        flagged += bool(bk.checks.check_trial_order(marks)["flagged"].any())
    assert flagged <= 10


def test_drift_and_dependence_are_found_and_told_apart() -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(2, 2, (80, 1))
    rising = (rng.random((80, 8)) < p + np.linspace(-0.2, 0.2, 8)).astype(int)
    found = bk.checks.check_trial_order(rising).set_index("check")
    assert found.loc["drift", "flagged"]
    assert found.loc["drift", "effect"] > 0
    assert "successes come late" in found.loc["drift", "sentence"]
    turned = bk.checks.check_trial_order(rising[:, ::-1]).set_index("check")
    assert turned.loc["drift", "effect"] == pytest.approx(-found.loc["drift", "effect"])
    assert turned.loc["drift", "p_value"] == pytest.approx(found.loc["drift", "p_value"])
    pairs = np.repeat((rng.random((80, 4)) < p).astype(int), 2, axis=1)  # a seed shared by two
    found = bk.checks.check_trial_order({"batched": pairs, "fine": rising * 0}).set_index("check")
    assert "neighbouring trials are alike" in found.loc["dependence", "sentence"].iloc[0]
    assert not found.loc["drift", "flagged"].any()
    assert "no question has both" in found["sentence"].iloc[2]


def test_all_forms_of_data_give_one_answer() -> None:
    rng = np.random.default_rng(4)
    marks = rng.integers(0, 2, (2, 12, 6))
    expected = bk.checks.check_trial_order(marks)
    cube = xr.DataArray(marks, dims=("system", "question", "trial"))
    system, question, trial = (axis.ravel() for axis in np.indices(marks.shape))
    frame = pd.DataFrame(
        {"system": system, "question": question, "trial": trial, "outcome": marks.ravel()}
    ).sample(frac=1.0, random_state=1)
    named = {"a": marks[0], "b": marks[1].tolist()}
    for data in (cube, cube.transpose("trial", "system", "question"), frame, named, marks.tolist()):
        found = bk.checks.check_trial_order(data)
        found = found.sort_values("system", kind="stable").reset_index(drop=True)
        pd.testing.assert_frame_equal(found.drop(columns="system"), expected.drop(columns="system"))
    assert bk.checks.check_trial_order(named)["system"].tolist() == ["a", "a", "b", "b"]
    order = np.random.default_rng(5).permutation(6)
    shuffled = cube.assign_coords(trial=np.arange(6)).isel(trial=order)
    times = pd.to_datetime("2026-01-01") + pd.to_timedelta(frame["trial"], unit="h")
    for data in (shuffled, frame.assign(trial=times)):
        found = bk.checks.check_trial_order(data).sort_values("system", kind="stable")
        pd.testing.assert_frame_equal(found.reset_index(drop=True), expected)
    holes = marks.astype(float)
    holes[0, 0] = [np.nan, 1, np.nan, 0, 1, np.nan]
    short = [[1, 0, 1], *marks[0, 1:].tolist()]
    pd.testing.assert_frame_equal(
        bk.checks.check_trial_order(holes[0]), bk.checks.check_trial_order(short)
    )


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(bk.OutcomeError, match="none with two"):
        bk.checks.check_trial_order([[1], [0]])
    with pytest.raises(bk.OutcomeError, match="one outcome per row"):
        bk.checks.check_trial_order(pd.DataFrame({"question": ["x"], "c": [1], "n": [3]}))
    with pytest.raises(bk.OutcomeError, match="right and wrong, 0 and 1"):
        bk.checks.check_trial_order([[0, 1]], scores={0: 0.0, 1: 0.5})
    with pytest.raises(bk.OutcomeError, match="is not one of 0, 1"):
        bk.checks.check_trial_order([[0, 2]])
    with pytest.raises(ValueError, match="alpha must lie strictly"):
        bk.checks.check_trial_order([[0, 1]], alpha=1.0)
    rows = {"question": ["x"] * 3, "outcome": [0, 1, 1]}
    for trial in (["t0", "t1", "t2"], ["0", "1", "b"]):
        with pytest.raises(bk.OutcomeError, match="trials must be numbers or times"):
            bk.checks.check_trial_order(pd.DataFrame({**rows, "trial": trial}))
    with pytest.raises(bk.OutcomeError, match="must occur once"):
        bk.checks.check_trial_order(pd.DataFrame({**rows, "trial": [0, 0, 1]}))
    with pytest.raises(bk.OutcomeError, match="must have the dims"):
        bk.checks.check_trial_order(xr.DataArray([[0, 1]], dims=("question", "run")))


def test_counts_hold_no_order() -> None:
    with pytest.raises(ValueError, match="got Outcomes, which are counts"):
        bk.checks.check_trial_order(bk.tally([[1, 0]]))
