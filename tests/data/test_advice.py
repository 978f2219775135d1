"""What an error advises works as written, from `tally` and from every function that takes data."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import bayesatk as bk

LONG = pd.DataFrame({"q": ["x", "x", "y"], "mark": [1, 0, 1]})
WIDE = pd.DataFrame([[0, 1, 1], [1, 1, 0]], columns=list("xyz"))
MASKED = np.ma.masked_array([[0, 1], [1, 1]], [[0, 0], [0, 1]])
COUNTS = pd.DataFrame({"question": ["x", "y"], "n": ["4", "5"], "c": ["1", "many"], "k": [1, 2]})

# What to pass, what it should be told to do, and what to fill in for each "..." of the advice.
ADVISED = {
    "NaN": ([[1, np.nan], [0, 1]], "bayesatk.tally(data, missing='ignore')", {}),
    "NaN as wrong": ([[1, np.nan], [0, 1]], "bayesatk.tally(data, missing='wrong')", {}),
    "None": ([[1, None], [0, 1]], "bayesatk.tally(data, missing='ignore')", {}),
    "no trials": ([[0, 1], []], "bayesatk.tally(data, missing='ignore')", {}),
    "count without trials": (([1, 0], [2, 0]), "bayesatk.tally(data, missing='ignore')", {}),
    "a half": ([[0.5, 1], [0, 1]], "bayesatk.tally(data, scores={0: 0, 1: 1, 0.5: ...})", {}),
    "float array": (
        np.array([[0.5, 1.0]]), "bayesatk.tally(data, scores={0: 0, 1: 1, 0.5: ...})", {},
    ),
    "text": ([["C", "C"]], "bayesatk.tally(data, scores={0: 0, 1: 1, 'C': ...})", {}),
    "mapping": ({"a": [[0, 2]]}, "bayesatk.tally(data, scores={0: 0, 1: 1, 2: ...})", {}),
    "text in a table": (
        LONG.assign(mark="C").rename(columns={"q": "task", "mark": "outcome"}),
        "bayesatk.tally(data, scores={0: 0, 1: 1, 'C': ...})", {},
    ),
    "xarray": (
        xr.DataArray([[0, 2]], dims=("question", "trial")),
        "bayesatk.tally(data, scores={0: 0, 1: 1, 2: ...})", {},
    ),
    "no question column": (
        LONG.rename(columns={"mark": "outcome", "q": "puzzle"}),
        "bayesatk.tally(data, columns={'question': 'puzzle'})", {},
    ),
    "no outcome column": (
        LONG.rename(columns={"q": "question"}),
        "bayesatk.tally(data, columns={'outcome': 'mark'})", {},
    ),
    "two outcome columns": (
        LONG.rename(columns={"q": "question"}).assign(score=1, passed=0),
        "bayesatk.tally(data, columns={'outcome': 'score'})", {},
    ),
    "counts as text": (
        COUNTS, "bayesatk.tally(data, columns={'successes': ...})", {"...": "'k'"},
    ),
    "wide pandas": (WIDE, "bayesatk.tally(data.to_numpy())", {}),
    "wide polars": (pl.from_pandas(WIDE), "bayesatk.tally(data.to_numpy())", {}),
    "wide pyarrow": (
        pa.Table.from_pandas(WIDE), "bayesatk.tally(data.to_pandas().to_numpy())", {},
    ),
    "1-d": (np.array([1, 2]), "bayesatk.tally(data, trials=...)", {"...": "3"}),
    "masked": (
        MASKED, "bayesatk.tally(data, missing='ignore')",
        {"data": "data.astype(float).filled(np.nan)"},
    ),
}  # fmt: skip

DOORS = {
    "tally": bk.tally,
    "evaluate": lambda data: bk.evaluate(data, "bayes", pooling="none", draws=2, rng=1),
    "sample": lambda data: bk.sample(data, "bayes"),
    "build": lambda data: bk.models.build(data),
    "prior_trials": lambda data: bk.evaluate(
        [[0, 1], [1, 1]], "bayes", prior_trials=data, pooling="none", draws=2, rng=1
    ),
}


def test_questions_never_run_are_not_advised_to_count_as_wrong() -> None:
    """How many trials would count is not known, so ``missing='wrong'`` is refused for them."""
    runs = pd.DataFrame({"system": list("aab"), "question": [1, 2, 1], "outcome": [1, 0, 1]})
    never = "system 'b'.*question 2.*missing='ignore'"
    with pytest.raises(bk.OutcomeError, match=never) as caught:
        bk.tally(runs)
    assert "missing='wrong'" not in str(caught.value)
    data = bk.tally(runs, missing="ignore")
    assert data.trials.values.tolist() == [[1, 1], [1, 0]]
    assert "1 (system, question) cells never run" in data.card()
    with pytest.raises(bk.OutcomeError, match="number of trials to count as wrong is not known"):
        bk.tally(runs, missing="wrong")


def test_systems_that_answered_different_questions_are_a_long_table() -> None:
    marks = {"a": [[1, 0], [1, 1]], "b": [[1, 0]]}
    counts = {"a": [1, 2], "b": [1]}
    rows = [
        (system, question, mark)
        for system, table in marks.items()
        for question, trials in enumerate(table)
        for mark in trials
    ]
    long = pd.DataFrame(rows, columns=["system", "question", "outcome"])
    advice = "pass a (long )?table.*with missing='ignore'"
    with pytest.raises(bk.OutcomeError, match=advice):
        bk.tally(marks)
    assert bk.tally(long, missing="ignore").trials.values.tolist() == [[2, 2], [2, 0]]
    with pytest.raises(bk.OutcomeError, match=advice):
        bk.tally(counts, trials={"a": [2, 2], "b": [2]})
    rows = [
        (system, question, 2, count)
        for system, successes in counts.items()
        for question, count in enumerate(successes)
    ]
    table = pd.DataFrame(rows, columns=["system", "question", "trials", "successes"])
    assert bk.tally(table, missing="ignore").successes.values.tolist() == [[1, 2], [1, 0]]


@pytest.mark.parametrize(("data", "advice", "filled"), ADVISED.values(), ids=ADVISED.keys())
def test_advice_works_as_written(data, advice, filled) -> None:
    for name, door in DOORS.items():
        with pytest.raises(bk.OutcomeError) as error:
            door(data)
        if name != "prior_trials":  # whose scores are those of the data
            assert advice in str(error.value)
    filled = {"...": "1"} | filled
    call = re.sub(r"\.\.\.|\bdata\b", lambda found: filled.get(found[0], found[0]), advice)
    done = eval(call, {"bayesatk": bk, "np": np, "data": data})
    assert isinstance(done, bk.Outcomes)
    DOORS["evaluate"](done)


@pytest.mark.parametrize("case", ADVISED)
def test_no_advice_is_an_option_that_is_not_there(case) -> None:
    """Options are named only inside a call of the function that takes them."""
    with pytest.raises(bk.OutcomeError) as error:
        DOORS["evaluate"](ADVISED[case][0])
    outside = re.sub(r"bayesatk\.tally\(.*?\)", "", str(error.value).replace("()", ""))
    assert not re.search(r"\b(missing|scores|columns|trials|answers|reference)=", outside)


@pytest.mark.parametrize("value", [b"1", {}, 1j, np.datetime64("2020-01-01"), np.inf])
def test_what_cannot_be_scored_is_to_be_written_otherwise(value) -> None:
    with pytest.raises(bk.OutcomeError, match="Write every outcome as text, a number or true/fal"):
        bk.tally([[1, value]])


def test_success_is_said_by_every_function() -> None:
    data = bk.tally([["a", "b"], ["c", "a"]], scores={"a": 0, "b": 0.5, "c": 1})
    with pytest.raises(ValueError, match=r"as in success='score >= 0\.5'"):
        bk.models.build(data)
    bk.models.build(data, success="score >= 0.5")


def test_votes_need_answers() -> None:
    data, answers = [[0, 1, 1]], [["4", "5", "5"]]
    advice = "bayesatk.tally(data, answers=...)"
    for call in (
        lambda: bk.evaluate(data, "plurality@2", pooling="none"),
        lambda: bk.sample(data, "plurality@2", pooling="none"),
    ):
        with pytest.raises(ValueError, match=re.escape(advice)):
            call()
    bk.evaluate(bk.tally(data, answers=answers), "plurality@2", pooling="none", draws=2, rng=1)


def test_files_are_told_the_option_of_load(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("task,outcome\nx,A\nx,\n")
    with pytest.raises(bk.OutcomeError, match=r"occur: scores=\{0: 0, 1: 1, 'A': \.\.\.\}\."):
        bk.load(path)
    with pytest.raises(bk.OutcomeError, match="to leave them out: missing='ignore'"):
        bk.load(path, scores={"A": 1, "I": 0})
    path.write_text("a,outcome\nx,1\n")
    with pytest.raises(bk.OutcomeError, match=r"Name it: columns=\{'question': '\(one\)'\}"):
        bk.load(path)


def test_prior_trials_may_be_counts() -> None:
    options = {"pooling": "none", "draws": 2, "rng": 1}
    data, before = [[0, 1], [1, 1]], [[1, 1], [0, 1]]
    expected = bk.table(bk.evaluate(data, "bayes", prior_trials=before, **options))
    for counts in (([2, 1], 2), bk.tally(before).dataset):
        means = bk.table(bk.evaluate(data, "bayes", prior_trials=counts, **options))
        np.testing.assert_allclose(means["mean"], expected["mean"], rtol=1e-12)
