"""Numbers as outcomes: what is kept of them, and what is refused."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.data.validation import MAX_LEVELS, OutcomeError
from tests.data.intake import as_kind


def means(data: bk.Outcomes) -> np.ndarray:
    """Mean score of every system."""
    sums = data.dataset["count"].dot(data.dataset["score"]).sum("question")
    return (sums / data.trials.sum("question")).values


def rewards(seed: int, systems: int = 2, questions: int = 30, trials: int = 4) -> np.ndarray:
    """Rewards, a tenth of which is 0 and a tenth 1."""
    rng = np.random.default_rng(seed)
    values = rng.beta(4.0, 2.0, (systems, questions, trials))
    share = rng.random(values.shape)
    return np.where(share < 0.1, 0.0, np.where(share > 0.9, 1.0, values))


def test_few_numbers_are_the_levels_themselves() -> None:
    raw = np.array([[0.0, 1 / 3], [2 / 3, 1.0]])
    data = bk.tally(raw, scores="numbers")
    named = bk.tally(raw, scores={value: value for value in (0.0, 1 / 3, 2 / 3, 1.0)})
    assert data.dataset["score"].values.tolist() == named.dataset["score"].values.tolist()
    np.testing.assert_array_equal(data.dataset["count"], named.dataset["count"])
    assert not data.notes


def test_zeros_and_ones_are_right_and_wrong() -> None:
    data = bk.tally([[0, 1.0], [True, False]], scores="numbers")
    assert data.binary
    assert data.successes.values.tolist() == [[1, 1]]


def test_categories_that_are_all_right_or_wrong_have_metrics_of_successes() -> None:
    runs = [["yes", "no", "timeout"], ["yes", "yes", "no"]]
    data = bk.tally(runs, scores={"no": 0, "timeout": 0, "yes": 1})
    right_wrong = [[1, 0, 0], [1, 1, 0]]
    for metrics in ("pass@1,2", "mean pass@2"):
        tables = [bk.table(bk.evaluate(runs, metrics, rng=1)) for runs in (data, right_wrong)]
        pd.testing.assert_frame_equal(*tables, check_like=True)
    assert bk.evaluate(data, "mean", rng=1)["observed_data"]["count"].sizes["category"] == 3
    lower = bk.tally(runs, scores={"no": 0, "timeout": 0, "yes": 1}, better="lower")
    with pytest.raises(ValueError, match="pass@2 judges right and wrong"):
        bk.evaluate(lower, "pass@2")


def test_many_numbers_keep_their_means_and_ends() -> None:
    raw = rewards(1, systems=3, questions=80)
    data = bk.tally(dict(zip("abc", raw, strict=True)), scores=(0, 1))
    assert data.dataset.sizes["category"] <= MAX_LEVELS
    np.testing.assert_allclose(means(data), raw.mean(axis=(1, 2)), atol=1e-4)
    count = data.dataset["count"]
    for end in (0, -1):
        exact = (raw == data.dataset["score"].values[end]).sum(axis=2)
        added = count.isel(category=end).values - exact
        assert added.min() >= 0  # an end stays; what is next to it may join it
        assert added.sum() < 0.02 * raw.size
    (note,) = data.notes
    stated = float(re.search(r"at most (\S+)$", note)[1])
    assert np.abs(means(data) - raw.mean(axis=(1, 2))).max() < 1.1 * stated + 1e-12
    assert "different numbers" in data.card()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=12),
        min_size=10, max_size=20,
    ),
    st.integers(0, 10**6),
)  # fmt: skip
def test_levels_lie_beside_their_numbers(rows: list[list[float]], seed: int) -> None:
    """Sums over all trials stay to one gap, whatever the numbers; their order changes no level."""
    flat = np.concatenate([np.array(row) for row in rows])
    if len(np.unique(flat)) < 2:
        return
    data = bk.tally(rows, scores="numbers")
    scale, count = data.dataset["score"].values, data.dataset["count"].values[0]
    assert (np.diff(scale) > 0).all()
    assert (count.sum(axis=1) == [len(row) for row in rows]).all()
    gap = np.diff(scale).max()
    assert abs((count @ scale).sum() - flat.sum()) <= gap + 1e-6
    shuffled = np.random.default_rng(seed).permutation(len(rows))
    again = bk.tally([rows[row] for row in shuffled], scores="numbers")
    np.testing.assert_array_equal(again.dataset["score"], scale)


def test_the_best_of_k_moves_by_less_than_a_hundredth() -> None:
    raw = rewards(2, systems=1, questions=200)[0]
    best = np.sort(raw, axis=1)[:, -1].mean()
    fit = bk.evaluate(bk.tally(raw, scores=(0, 1)), "max@4", difficulty="beta", draws=20, rng=1)
    estimate = bk.table(fit).query("target == 'questions'")["estimate"].item()
    assert estimate == pytest.approx(best, abs=2e-3)


def test_a_rule_of_success_is_about_the_numbers_themselves() -> None:
    raw = rewards(3)
    data = bk.tally(raw, scores=(0, 1), success="score >= 0.8")
    np.testing.assert_array_equal(data.successes, (raw >= 0.8).sum(axis=2))
    assert "success is score >= 0.8" in data.card()
    graded = bk.tally([["no", "part"]], scores={"no": 0, "part": 0.5}, success="score > 0")
    assert graded.successes.values.tolist() == [[1]]
    with pytest.raises(OutcomeError, match=r"success must be given where .* numbers are read"):
        bk.tally(raw, scores=(0, 1)).with_success("score >= 0.8")


def test_no_threshold_is_proposed_that_all_trials_fail() -> None:
    """The middle of shares; of other numbers, or if it splits nothing, a place to fill in."""
    raw = np.linspace(0.02, 0.98, 48).reshape(12, 4)
    to_fill_in = [20 * raw, raw / 4, 1 - raw / 4]
    for numbers, bound in [(raw, "0.5"), *((numbers, "NUMBER") for numbers in to_fill_in)]:
        table = pd.DataFrame({"question": np.repeat(range(12), 4), "outcome": numbers.ravel()})
        with pytest.raises(OutcomeError, match=f"success='score >= {re.escape(bound)}'"):
            bk.tally(table)
    with pytest.raises(OutcomeError, match=r"in place of NUMBER.*success='score <= 30'"):
        bk.tally(raw, success="score >= NUMBER")


def test_a_rule_that_nearly_all_trials_fail_is_doubted() -> None:
    raw = np.linspace(0.02, 0.98, 400).reshape(2, 50, 4, order="F")
    alike, split = ("score >= 0.979", "score > 0.02"), ("score >= 0.5", "score >= 0.9")
    for rule in alike + split:
        card = bk.tally(raw, scores="numbers", success=rule).card()
        assert ("CHECK: by" in card) == (rule in alike)
    grades = bk.tally([[3] * 150, [2] * 149 + [1]], scores={1: 1, 2: 2, 3: 3})
    assert "CHECK: by 'score <= 1' 0.33%" in grades.with_success("score <= 1").card()
    assert "CHECK" not in grades.with_success("score >= 3").card()


@pytest.mark.parametrize("kind", ["pandas", "csv", "jsonl"])
def test_every_way_to_give_numbers_is_the_same(kind: str, tmp_path) -> None:
    raw = rewards(4, systems=1)[0]
    cells = [(f"q{q}", t, value) for (q, t), value in np.ndenumerate(raw)]
    table = pd.DataFrame(cells, columns=["question", "trial", "outcome"])
    data = bk.load(as_kind(table, kind, tmp_path), scores=(0, 1))
    plain = bk.tally(raw, scores=(0, 1))
    np.testing.assert_allclose(data.dataset["score"], plain.dataset["score"], atol=1e-12)
    assert np.abs(data.dataset["count"].values - plain.dataset["count"].values).sum() <= 4


def test_missing_numbers_follow_the_policy() -> None:
    raw = rewards(5, systems=1)[0]
    raw[0, 0] = np.nan
    with pytest.raises(OutcomeError, match="1 missing outcomes"):
        bk.tally(raw, scores=(0, 1))
    assert bk.tally(raw, scores=(0, 1), missing="ignore").trials.values[0, 0] == 3
    lowest = bk.tally(raw, scores=(0, 1), missing="wrong")
    assert lowest.dataset["count"].values[0, 0, 0] == 1 + (raw[0] == 0.0).sum()


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([[0.2, 1.5], [-1, 0]], {"scores": (0, 1)}, r"1.5 at question 0, trial 1 is not a number "
         r"from 0 to 1, and neither is -1(\.0)? at question 1, trial 0\. Correct it, or change "
         "scores"),
        ([[0.2, "x"]], {"scores": "numbers"}, r"'x' at question 0, trial 1 is not a finite number"),
        ([[np.inf, 0], [-np.inf, 1]], {"scores": "numbers"}, "inf at question 0, trial 0 is not a "
         "finite number, and neither is -inf at question 1, trial 0.*missing='ignore'"),
        (pd.DataFrame({"question": [1, 2], "correct": [np.inf, 1e400]}), {"scores": "numbers"},
         "inf at row 0 of column 'correct' is not a finite number, and neither is inf at row 1"),
        ([[0.2, 0.2]], {"scores": "numbers"}, r"two different numbers or more.*scores=\(0, 1\)"),
        ([[7, 7]], {"scores": "numbers"}, r"got \[7\.0\].*scores=\(0, 7\.0\)"),
        ([[0.2]], {"scores": (1, 0)}, "two ends in rising order"),
        ([[0.2]], {"scores": "nums"}, "scores='numbers'"),
        ([[0.2]], {}, "scores='numbers'"),
        ([3], {"trials": 5, "success": "score > 0"}, "success must be left out"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(data, options, message: str) -> None:
    with pytest.raises(OutcomeError, match=message):
        bk.tally(data, **options)


def test_tables_in_parts_have_no_levels_together(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    pd.DataFrame({"question": [1, 2], "trial": [1, 1], "outcome": [0.1, 0.7]}).to_csv(path)
    with pytest.raises(OutcomeError, match="stream=False"):
        bk.load(path, scores="numbers", stream=True)
    assert bk.load(path, scores="numbers").dataset.sizes["category"] == 2
