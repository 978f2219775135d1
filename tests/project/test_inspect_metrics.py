"""Metrics of Inspect: the real inspect-ai with its mock model, and what is refused."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from inspect_ai.scorer import SampleScore, Score

import bayesatk as bk
from bayesatk.inspect import compare, evaluate

ROOT = Path(__file__).parents[2]
STATISTICS = ("mean", "ci_lower", "ci_upper", "prob_greater")


def epochs(marks: dict[object, list[object]], **metadata: dict[object, str]) -> list[SampleScore]:
    return [
        SampleScore(
            score=Score(value=mark),
            sample_id=name,
            sample_metadata={key: by_sample[name] for key, by_sample in metadata.items()},
        )
        for name, values in marks.items()
        for mark in values
    ]


def logged(path: Path) -> dict[str, float]:
    """Values of all metrics that one log has, read without inspect-ai."""
    from bayesatk.io.logs.inspect_logs import Archive

    with next(path.glob("*.eval")).open("rb") as file:
        header = json.loads(Archive(file).read("header.json"))
    scores = header["results"]["scores"]
    assert [score.get("reducer") for score in scores] == ["mean", "at_least_1", None]
    by_name, _, of_epochs = (score["metrics"] for score in scores)
    return {name: metric["value"] for name, metric in (by_name | of_epochs).items()}


def of_rows(rows: pd.DataFrame, prefix: str = "", infix: str = "") -> dict[str, float]:
    """What the values of a table should be called and be."""
    return {
        f"{prefix}{row.metric}{infix} {row.target} {name}": getattr(row, name)
        for row in rows.itertuples()
        for name in STATISTICS
        if hasattr(row, name)
    }


@pytest.mark.long
def test_the_numbers_in_the_log_are_those_of_the_library(tmp_path: Path) -> None:
    script = ROOT / "tests" / "logs" / "score_inspect.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    metrics = "pass@1,2 pass^2 bayes"
    base = bk.load(tmp_path / "base")
    table = bk.table(bk.evaluate(base, metrics, rng=0))
    values = logged(tmp_path / "base")
    assert values["pass@1"] == pytest.approx(values["accuracy"])
    expected = of_rows(table) | dict(zip(table["metric"], table["estimate"], strict=True))
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert len(expected) == 4 * 7

    new = bk.load(tmp_path / "new", group="kind")
    fit = bk.evaluate(new, metrics, group="kind", rng=0)
    values = logged(tmp_path / "new")
    expected = of_rows(bk.table(fit))
    for label, rows in bk.table(fit, by="group").groupby("group"):
        expected |= of_rows(rows, f"{label}: ")
    both = bk.load({"base": str(tmp_path / "base"), "new": str(tmp_path / "new")})
    compared = bk.compare(bk.evaluate(both, "pass@1", rng=0))
    difference = of_rows(
        bk.table(compared, "comparison", of="new", against="base"), "", " difference"
    )
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    # The order of the systems decides which random numbers each gets.
    assert {name: values[name] for name in difference} == pytest.approx(difference, abs=0.03)
    assert logged(tmp_path / "again") == pytest.approx(values, rel=1e-12)


def test_a_baseline_is_paired_by_sample(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 0.5, 40)
    old, new = (rng.binomial(1, np.clip(p + lift, 0, 1)[:, None], (40, 4)) for lift in (0.0, 0.1))
    rows = [f"{q},{t},{mark}" for q, marks in enumerate(old) for t, mark in enumerate(marks)]
    (tmp_path / "old.csv").write_text("question,trial,outcome\n" + "\n".join(rows) + "\n")
    scores = epochs({q: marks.tolist() for q, marks in reversed(list(enumerate(new)))})
    values = compare(str(tmp_path / "old.csv"), "bayes")(scores)
    observed = new.mean() - old.mean()
    assert values["bayes difference questions mean"] == pytest.approx(observed, abs=0.02)
    width = (
        values["bayes difference questions ci_upper"]
        - values["bayes difference questions ci_lower"]
    )
    sd = np.sqrt(2 * (p * (1 - p)).mean() / 160)  # of the trials alone: questions are the same
    assert width == pytest.approx(2 * 1.96 * sd, rel=0.25)
    assert values["bayes difference population prob_greater"] > 0.9


def test_marks_with_partial_credit_and_numbers() -> None:
    marks = {"a": ["C", "P"], "b": ["I", "P"]}
    credit = {"C": 1.0, "P": 0.5, "I": 0.0}
    values = evaluate("bayes", scores=credit)(epochs(marks))
    assert values["bayes"] == pytest.approx((0.75 + 0.25) / 2)
    numbers = {name: [credit[mark] for mark in row] for name, row in marks.items()}
    assert evaluate("bayes", scores="numbers")(epochs(numbers))["bayes"] == values["bayes"]


def test_what_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pass-at-1"):
        evaluate("pass-at-1")  # before anything runs
    with pytest.raises(OSError, match=r"none\.eval"):
        compare(str(tmp_path / "none.eval"))
    with pytest.raises(bk.OutcomeError, match=r"score for every mark; got 'P' of sample 'a'"):
        evaluate()(epochs({"a": ["P"]}))
    with pytest.raises(bk.OutcomeError, match=r"'kind' is none of sample 'a', which has \['dom'\]"):
        evaluate(group="kind")(epochs({"a": ["C"]}, dom={"a": "x"}))
    with pytest.raises(bk.OutcomeError, match="at least one scored sample"):
        evaluate()([])  # Inspect then reports NaN


def test_the_version_range_holds_what_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (requirement,) = project["project"]["optional-dependencies"]["inspect"]
    name, least = re.fullmatch(r"(inspect-ai)>=([\d.]+)", requirement).groups()
    numbers = [tuple(map(int, text.split(".")[:3])) for text in (least, version(name))]
    assert numbers[0] <= numbers[1]
    for group in ("test", "logs"):  # what the tests and the logs are made with
        assert requirement in project["dependency-groups"][group]


def test_without_inspect_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['inspect_ai'] = None; import bayesatk.inspect"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    *_, last = done.stderr.strip().splitlines()
    assert last == (
        "ImportError: bayesatk.inspect needs inspect_ai, which is not installed. Install it: "
        "pip install inspect_ai"
    )
