"""Order of trials: laws by enumeration, error rates by simulation, words by example."""

from fractions import Fraction
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import expit
from scipy.stats import chi2, mannwhitneyu, norm

import bayesatk as bk
from bayesatk.core.runs import trial_columns
from bayesatk.core.runs.trial_columns import cochran
from bayesatk.core.runs.trial_order import RANK_SUM, SWITCHES, rank_sum_pmf, switches_pmf, two_sided


@pytest.mark.parametrize(("c", "f"), [(0, 3), (3, 0), (1, 1), (2, 3), (4, 4), (5, 2)])
def test_laws_by_enumeration(c, f) -> None:
    late, turns = {}, {}
    orders = list(combinations(range(c + f), c))
    for right in orders:
        marks = [int(i in right) for i in range(c + f)]
        rank_sum = sum(right) - c * (c - 1) // 2
        turn = sum(a != b for a, b in pairwise(marks))
        late[rank_sum] = late.get(rank_sum, 0) + 1
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
    number = np.arange(12)
    expected = mannwhitneyu(number[marks == 1], number[marks == 0], method="exact").pvalue
    p_value = bk.checks.check_trials([marks.tolist()]).set_index("check").loc["drift", "p_value"]
    assert p_value == pytest.approx(expected, rel=1e-9)


def test_sums_over_questions_by_enumeration() -> None:
    of_three, of_four = rank_sum_pmf(2, 1), rank_sum_pmf(1, 3)
    exact = {}
    for a, b, c in product(range(3), range(3), range(4)):
        exact[a + b + c] = exact.get(a + b + c, 0.0) + of_three[a] * of_three[b] * of_four[c]
    for seen in exact:
        low = sum(p for x, p in exact.items() if x <= seen)
        high = sum(p for x, p in exact.items() if x >= seen)
        p_value = two_sided(seen, RANK_SUM, [(2, 1, 2), (1, 3, 1)])
        assert p_value == pytest.approx(min(1.0, 2 * min(low, high)))


@pytest.mark.parametrize(("right", "times"), [(50, 4000), (10_000, 1)])
def test_many_or_long_questions_are_normal(right, times) -> None:
    sd = np.sqrt(times * RANK_SUM.variance(right, right))
    late = int(times * right * right / 2 + 2.5 * sd)
    p_value = two_sided(late, RANK_SUM, [(right, right, times)])
    assert p_value == pytest.approx(2 * norm.sf(2.5), rel=2e-3)


@pytest.mark.parametrize("seen", [86, 93, 97, 108, 115])
def test_normal_tails_are_corrected_for_continuity(seen) -> None:
    """A count with an sd of 7: half a count changes the p-value by a tenth and more."""
    exact = switches_pmf(101, 100)  # long enough for `two_sided` to take it as normal
    tail = min(exact[: seen + 1].sum(), exact[seen:].sum())
    assert two_sided(seen, SWITCHES, [(101, 100, 1)]) == pytest.approx(2 * tail, rel=0.01)


@pytest.mark.parametrize("seed", [1, 2])
def test_exchangeable_trials_are_rarely_flagged(seed) -> None:
    """Ten of 100 data sets or more would have probability .03, at 0.05 each."""
    rng = np.random.default_rng(seed)
    flagged = 0
    for _ in range(100):
        marks = (rng.random((30, 5)) < rng.beta(0.5, 0.5, (30, 1))).astype(int)
        flagged += bool(bk.checks.check_trials(marks)["flagged"].any())
    assert flagged <= 10


def test_drift_and_dependence_are_found_and_told_apart() -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(2, 2, (80, 1))
    rising = (rng.random((80, 8)) < p + np.linspace(-0.2, 0.2, 8)).astype(int)
    drift, turned = (
        bk.checks.check_trials(marks).set_index("check").loc["drift"]
        for marks in (rising, rising[:, ::-1])
    )
    assert drift["flagged"]
    assert drift["effect"] > 0
    assert "successes come late" in drift["sentence"]
    assert turned["effect"] == pytest.approx(-drift["effect"])
    assert turned["p_value"] == pytest.approx(drift["p_value"])
    pairs = np.repeat((rng.random((80, 4)) < p).astype(int), 2, axis=1)  # a seed shared by two
    rows = bk.checks.check_trials({"batched": pairs, "fine": rising * 0}).set_index("check")
    assert "neighbouring trials are alike" in rows.loc["dependence", "sentence"].iloc[0]
    assert not rows.loc["drift", "flagged"].any()
    assert "no question has both" in rows.loc["drift", "sentence"].iloc[1]


MARKS = np.random.default_rng(4).integers(0, 2, (2, 12, 6))
SYSTEM, QUESTION, TRIAL = (axis.ravel() for axis in np.indices(MARKS.shape))
CUBE = xr.DataArray(MARKS, dims=("system", "question", "trial"), coords={"trial": np.arange(6)})
FRAME = pd.DataFrame(
    {"system": SYSTEM, "question": QUESTION, "trial": TRIAL, "outcome": MARKS.ravel()}
).sample(frac=1.0, random_state=1)
TIMES = pd.to_datetime("2026-01-01") + pd.to_timedelta(FRAME["trial"], unit="h")


@pytest.mark.parametrize(
    "data",
    [
        MARKS.tolist(), CUBE.transpose("trial", "system", "question"),
        CUBE.isel(trial=[3, 1, 5, 0, 4, 2]), FRAME, FRAME.assign(trial=TIMES),
        {0: MARKS[0], 1: MARKS[1].tolist()},
    ],
    ids=["lists", "array", "shuffled trials", "frame", "times", "systems"],
)  # fmt: skip
def test_all_forms_of_data_give_one_answer(data) -> None:
    rows = bk.checks.check_trials(data).sort_values("system", kind="stable")
    expected = bk.checks.check_trials(MARKS)
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), expected)


def test_missing_trials_leave_the_order_of_the_others() -> None:
    """Trials keep the numbers of their columns, so that only their order is the same."""
    holes = MARKS[0].astype(float)
    holes[0] = [np.nan, 1, np.nan, 0, 1, np.nan]
    rows = (bk.checks.check_trials(each) for each in (holes, [[1, 0, 1], *MARKS[0, 1:].tolist()]))
    pd.testing.assert_frame_equal(*(frame.query("check != 'trial effects'") for frame in rows))


def _trials(*labels):
    return pd.DataFrame({"question": ["x"] * 3, "outcome": [0, 1, 1], "trial": labels})


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([[1], [0]], {}, "none with two"),
        (pd.DataFrame({"question": ["x"], "c": [1], "n": [3]}), {}, "one outcome per row"),
        ([[0, 1]], {"scores": {0: 0.0, 1: 0.5}}, "right and wrong, 0 and 1"),
        ([[0, 2]], {}, "is not one of 0, 1"),
        ([["no", "ok"]], {}, r"1 or 0, scores=\{'no': \.\.\., 'ok': \.\.\.\}"),
        ([[0, 1]], {"alpha": 1.0}, "alpha must lie strictly"),
        (_trials("t0", "t1", "t2"), {}, "trials must be numbers or times"),
        (_trials("0", "1", "b"), {}, "trials must be numbers or times"),
        (_trials(0, 0, 1), {}, "must occur once"),
        (xr.DataArray([[0, 1]], dims=("question", "run")), {}, "must have the dims"),
        (bk.tally([[1, 0]]), {}, "got Outcomes, which are counts"),
    ],
)
def test_what_has_no_order_is_refused(data, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.checks.check_trials(data, **options)


def test_several_outcomes_may_be_right() -> None:
    words = np.where(MARKS, "pass", "fail").astype(object)
    words[:, ::2, 0] = np.where(MARKS[:, ::2, 0], "accepted", "error")
    scores = {"fail": 0, "error": 0, "accepted": 1, "pass": 1}
    rows = bk.checks.check_trials(words, scores=scores)
    pd.testing.assert_frame_equal(pd.DataFrame(rows), pd.DataFrame(bk.checks.check_trials(MARKS)))


def _columns(marks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    question, number = (axis.ravel() for axis in np.indices(marks.shape))
    kept = ~np.isnan(marks.ravel().astype(float))
    return question[kept], number[kept], marks.ravel()[kept].astype(bool)


def test_complete_blocks_have_the_statistic_of_cochran(monkeypatch) -> None:
    """His formula of 1950, with the chi-squared distribution."""
    rng = np.random.default_rng(1)
    marks = (rng.random((300, 6)) < rng.beta(0.8, 0.8, (300, 1))).astype(int)
    k, column, row = 6, marks.sum(axis=0), marks.sum(axis=1)
    q = (k - 1) * (k * (column**2).sum() - marks.sum() ** 2) / (k * marks.sum() - (row**2).sum())
    p_value = cochran(*_columns(marks)).p_value
    assert p_value == pytest.approx(chi2.sf(q, k - 1), rel=1e-9)
    monkeypatch.setattr(trial_columns, "_MAX_TRIALS_PERMUTED", 10_000)
    assert cochran(*_columns(marks)).p_value == pytest.approx(p_value, abs=0.04)


def test_few_trials_by_enumeration() -> None:
    """All orders of unequal questions; the statistic divides by variances that are enumerated."""
    marks = np.array([[1, 0, 0], [1, 1, 0], [1, 0, np.nan]])
    orders = []
    for row in marks:
        values = row[~np.isnan(row)]
        orders.append([np.append(one, [0] * (3 - len(one))) for one in set(permutations(values))])
    totals = np.array([np.sum(rows, axis=0) for rows in product(*orders)])
    excess = totals - totals.mean(axis=0)
    statistic = (excess**2 / excess.var(axis=0)).sum(axis=1)
    seen = np.nansum(marks, axis=0) - totals.mean(axis=0)
    exact = (statistic >= (seen**2 / excess.var(axis=0)).sum() - 1e-9).mean()
    assert cochran(*_columns(marks)).p_value == pytest.approx(exact, abs=0.04)


@pytest.mark.parametrize(("spread", "least", "most"), [(0.0, 0, 10), (0.6, 88, 100)])
def test_trial_effects_are_found_and_chance_is_not(spread, least, most) -> None:
    rng = np.random.default_rng(2)
    flagged, effects = 0, []
    for _ in range(100):
        logit = rng.normal(0.3, 1.5, (150, 1)) + spread * rng.standard_normal(8)
        marks = (rng.random((150, 8)) < expit(logit)).astype(int)
        row = bk.checks.check_trials(marks).set_index("check").loc["trial effects"]
        flagged += bool(row["flagged"])
        effects.append(row["effect"])
    assert least <= flagged <= most
    if spread:  # a logit of 0.6 is some ten points where p varies as here
        assert 0.07 < np.mean(effects) < 0.11


def test_trials_are_matched_by_their_labels() -> None:
    rng = np.random.default_rng(3)
    logit = rng.normal(0, 1.0, (80, 1)) + 1.5 * rng.standard_normal(6)
    question, number = (axis.ravel() for axis in np.indices((80, 6)))
    frame = pd.DataFrame(
        {
            "question": question,
            "trial": number + 1,
            "outcome": (rng.random((80, 6)) < expit(logit)).astype(int).ravel(),
        }
    ).sample(frac=0.7, random_state=1)
    matched = bk.checks.check_trials(frame).set_index("check").loc["trial effects"]
    assert matched["p_value"] < 1e-3
    assert "docs/own_model.md has a model with trial effects" in matched["sentence"]
    relabelled = frame.assign(trial=np.arange(len(frame)))  # labels that no questions share
    unmatched = bk.checks.check_trials(relabelled).set_index("check").loc["trial effects"]
    assert unmatched["p_value"] > matched["p_value"]
