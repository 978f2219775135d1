"""missing="bounds": whatever the missing outcomes are, results lie within the bracket."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk

METRICS = ["pass@2", "pass^2", "maj@3", "bayes", "mg-pass@2"]
ROWS = st.lists(st.lists(st.sampled_from([0, 1, None]), min_size=3, max_size=4), min_size=1,
                max_size=3)  # fmt: skip


def table_of(data, metrics=METRICS, **options):
    options = {"pooling": "none", "rng": 1} | options
    return bk.table(bk.evaluate(data, metrics, **options)).set_index(["metric", "target"])


def completions(rows):
    """Every way to fill in what is missing."""
    holes = sum(one is None for row in rows for one in row)
    for filling in product([0, 1], repeat=holes):
        left = iter(filling)
        yield [[next(left) if one is None else one for one in row] for row in rows]


@pytest.mark.long
@given(ROWS)
@settings(max_examples=8, deadline=None, derandomize=True)
def test_every_completion_lies_within_the_bracket(rows):
    known = [one for row in rows for one in row]
    if known.count(None) not in (1, 2) or any(set(row) == {None} for row in rows):
        return
    found = table_of(bk.tally(rows, missing="bounds"))
    lowest = highest = None
    for whole in completions(rows):
        exact = table_of(whole)
        for part in ("estimate", "mean"):
            low, high = found[f"{part}_if_wrong"], found[f"{part}_if_right"]
            assert (exact[part] >= low - 1e-9).all()
            assert (exact[part] <= high + 1e-9).all()
        lowest = exact["mean"] if lowest is None else np.minimum(lowest, exact["mean"])
        highest = exact["mean"] if highest is None else np.maximum(highest, exact["mean"])
        assert (exact["ci_lower"] >= found["ci_lower_if_wrong"] - 2e-3).all()
        assert (exact["ci_upper"] <= found["ci_upper_if_right"] + 2e-3).all()
    np.testing.assert_allclose(found["mean_if_wrong"], lowest, atol=1e-9)
    np.testing.assert_allclose(found["mean_if_right"], highest, atol=1e-9)


def test_the_result_itself_is_that_of_ignoring():
    rows = {"a": [[1, None, 0], [0, 1, 1]], "b": [[1, 1, 0], [0, 0, 1]]}
    ignored, bounded = (
        bk.evaluate(bk.tally(rows, missing=policy), "pass@1", difficulty="beta", rng=1)
        for policy in ("ignore", "bounds")
    )
    own = bk.table(bounded)
    same = bk.table(ignored)
    pd.testing.assert_frame_equal(pd.DataFrame(own[same.columns]), pd.DataFrame(same))
    by_system = own.set_index(["system", "target"])
    assert by_system.loc[("a", "questions"), "estimate_if_wrong"] == pytest.approx(3 / 6)
    assert by_system.loc[("a", "questions"), "estimate_if_right"] == pytest.approx(4 / 6)
    b = by_system.loc["b"]
    assert (b["estimate_if_wrong"] == b["estimate_if_right"]).all()
    assert "if missing" in repr(bk.table(bounded))


@pytest.mark.long
def test_partial_pooling_and_scored_categories_are_bracketed():
    scores = {"I": 0, "P": 0.5, "C": 1}
    rows = [["C", None, "P"], ["I", "C", "C"], [None, "I", "P"]]
    data = bk.tally(rows, scores=scores, missing="bounds")
    found = table_of(data, "bayes", pooling="partial").iloc[0]
    filled = [rows, rows]
    for filling, end in (("I", "wrong"), ("C", "right")):
        filled = [[filling if one is None else one for one in row] for row in rows]
        exact = table_of(bk.tally(filled, scores=scores), "bayes", pooling="partial").iloc[0]
        assert found[f"mean_if_{end}"] == pytest.approx(exact["mean"], abs=5e-3)
        assert found[f"estimate_if_{end}"] == pytest.approx(exact["estimate"])


def test_without_gaps_there_is_no_bracket():
    fit = bk.evaluate(bk.tally([[1, 0], [1, 1]], missing="bounds"), "pass@1", rng=1)
    assert "missing_bounds" not in fit
    assert "estimate_if_wrong" not in bk.table(fit)


def test_votes_between_answers_are_refused():
    data = bk.tally([[1, 0, None]], answers=[["x", "y", None]], missing="bounds")
    with pytest.raises(bk.OutcomeError, match=r"missing='bounds'.*missing='ignore'"):
        bk.evaluate(data, "plurality@3", pooling="none", rng=1)


def test_a_saved_result_keeps_its_bracket(tmp_path):
    data = bk.tally([[1, None, 0], [0, 1, 1]], missing="bounds")
    fit = bk.evaluate(data, "pass@1", difficulty="beta", rng=1)
    path = bk.save(fit, tmp_path / "fit.nc")
    again = bk.table(bk.load_result(path))
    np.testing.assert_array_equal(again["mean_if_wrong"], bk.table(fit)["mean_if_wrong"])


def differences(data, metrics, **options):
    """Rows of the comparison of a and b, by metric and target."""
    fit = bk.compare(bk.evaluate(data, metrics, rng=1, **options), rng=1)
    return bk.comparison_table(fit).set_index(["metric", "target"])


def difference(table, metric, target):
    """Mean of a - b: of all that is known; with missing trials against a, and for a."""
    row = table.loc[metric, target]
    bracket = ["mean_if_worst", "mean_if_best"] if "mean_if_best" in row else []
    if row["system"] == "a":
        return row[["mean", *bracket]].tolist()
    return (-row[["mean", *bracket[::-1]]]).tolist()


@pytest.mark.long
def test_every_completion_of_two_systems_lies_within_the_bracket_of_their_difference():
    rows = {"a": [[1, None, 0], [1, 1, 1]], "b": [[0, 1, 0], [None, 0, 1]]}
    options = {"metrics": ["pass@1", *METRICS], "pooling": "none", "draws": 9}
    bounded, ignored = (
        differences(bk.tally(rows, missing=policy), **options) for policy in ("bounds", "ignore")
    )
    complete = [
        differences({"a": a, "b": b}, **options)
        for a in completions(rows["a"])
        for b in completions(rows["b"])
    ]
    for metric in ("pass@1", "pass@2", "pass^2", "bayes", "mg-pass@2"):
        known, worst, best = difference(bounded, metric, "questions")
        means = [difference(each, metric, "questions")[0] for each in complete]
        assert worst == pytest.approx(min(means), abs=1e-6)
        assert best == pytest.approx(max(means), abs=1e-6)
        assert min(means) < known < max(means)
        assert len(difference(ignored, metric, "questions")) == 1


@pytest.fixture(scope="module")
def scored_differences():
    """Of scored categories under partial pooling: bounded, and filled in against a and for a.

    Each system has the posterior of its own trials, as the bracket has; under the default law the
    systems' difficulties are shared, which draws the filled ones nearer to each other.
    """
    prior = bk.priors.DirichletHyperPrior()
    scores = {"I": 0, "P": 0.5, "C": 1}
    rows = {"a": [["C", None, "P"], ["I", "C", "C"]], "b": [["C", "P", "P"], [None, "I", "P"]]}
    filled = [
        {name: [[mark if one is None else one for one in row] for row in rows[name]]
         for name, mark in zip("ab", marks, strict=True)}
        for marks in ("IC", "CI")
    ]  # fmt: skip
    return [
        differences(
            bk.tally(each, scores=scores, missing="bounds"), "bayes max@2", draws=4000, prior=prior
        )
        for each in (rows, *filled)
    ]


@pytest.mark.long
@pytest.mark.parametrize(("metric", "target"), [("bayes", "questions"), ("max@2", "population")])
def test_scored_categories_are_bracketed_in_a_difference(scored_differences, metric, target):
    """On other questions the bracket holds what any filling in gives."""
    # Four Monte Carlo errors (sd .17, 4000 draws); on other questions the shift that the systems
    # share is estimated from two questions, for each filling in anew.
    error = 0.012 if target == "questions" else 0.03
    (known, worst, best), (low,), (high,) = (
        difference(each, metric, target) for each in scored_differences
    )
    assert worst < known < best
    if target == "questions":
        assert (worst, best) == (pytest.approx(low, abs=error), pytest.approx(high, abs=error))
    assert worst - error < low < high < best + error
