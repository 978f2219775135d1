"""Metrics of lm-evaluation-harness: through its call protocol, and with the real harness.

The last test needs lm-eval, which has an environment of its own: `make test-lm-eval`.
"""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.lm_eval import aggregate, evaluate, pass_at_k, pass_hat_k

ROOT = Path(__file__).parents[2]
PLAN = ["ccccc", "cwccw", "wwwcw", "wwwww", "cccwc", "cwwwc", "ccwcc", "wwwwc"]
MARKS = [[int(letter == "c") for letter in row] for row in PLAN]


def results(metric, **options) -> dict[str, float]:
    """Call metric and aggregation as lm-eval does: a document at a time, then number by number."""
    documents = [metric(references=["c"], predictions=[[*row]], **options) for row in PLAN]
    assert json.loads(json.dumps(documents[1]))["pass@1"] == MARKS[1]  # as it is logged
    return {name: aggregate([document[name] for document in documents]) for name in documents[0]}


def expected(metrics: str, **options) -> dict[str, float]:
    table = bk.table(bk.evaluate(MARKS, metrics, rng=0, **options))
    values = dict(zip(table["metric"], table["estimate"], strict=True))
    for row in table.itertuples():
        for name in ("mean", "ci_lower", "ci_upper"):
            values[f"{row.metric} {row.target} {name}"] = getattr(row, name)
    return values


def close(values: dict[str, float]):
    """Up to rounding, which depends on what else is computed."""
    return pytest.approx(values, rel=1e-9)


@pytest.mark.parametrize("options", [{}, {"pooling": "none", "ci_prob": 0.5}])
def test_the_numbers_are_those_of_the_library(options) -> None:
    assert results(pass_at_k, k=[1, 4], **options) == close(expected("pass@1,4", **options))
    both = results(evaluate, metrics="pass@1 pass^2", **options)
    assert both == close(expected("pass@1 pass^2", **options))
    alone = {name: value for name, value in both.items() if name.startswith("pass^2")}
    documents = [pass_hat_k(["c"], [[*row]], k=2, **options) for row in PLAN]
    assert alone == close(
        {name: aggregate([document[name] for document in documents]) for name in alone}
    )


def test_the_estimate_is_the_mean_over_all_subsets() -> None:
    assert results(pass_at_k, k=[1, 5])["pass@5"] == np.mean([max(row) for row in MARKS])
    assert np.isnan(results(pass_at_k, k=[1, 6])["pass@6"])  # five repeats


def test_a_judge_of_the_task_decides_what_is_right() -> None:
    loose = evaluate(["C"], [["c", "x"]], correct=lambda target, text: target == text.upper())
    assert loose["pass@1"] == [1, 0]


def test_lost_repeats_are_refused() -> None:
    with pytest.raises(ValueError, match="a filter left one response"):
        pass_at_k(references=["c"], predictions=["c"])
    with pytest.raises(ValueError, match=r"items must be the marks .* got 1\.0.*correct="):
        aggregate([1.0, 0.0])  # of several targets


def test_logs_of_repeats_are_read(tmp_path) -> None:
    """Rows as lm-eval logs them: a list of marks under every name."""
    rows = []
    for i, row in enumerate(PLAN):
        marks = pass_at_k(["c"], [[*row]])
        rows.append(
            {
                "doc_id": i,
                "doc": {"text": i},
                "target": "c",
                "resps": [[*row]],
                "filtered_resps": [[*row]],
                "filter": "repeats",
                "metrics": list(marks),
                **marks,
            }
        )
    path = tmp_path / "samples_letters_2026-11-21T13-15-25.700113.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = bk.load(path)
    assert data.successes.values.tolist() == [[sum(row) for row in MARKS]]
    assert data.trials.values.tolist() == [[5] * len(PLAN)]
    rows[2]["pass@1"] = [1, 0]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(bk.OutcomeError, match="must have a mark for each of 5 filtered responses"):
        bk.load(path)


def test_the_metrics_need_no_lm_eval() -> None:
    code = "import sys; sys.modules['lm_eval'] = None; import bayesatk.lm_eval"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(find_spec("lm_eval") is None, reason="needs lm-eval: run make test-lm-eval")
def test_the_real_lm_eval_writes_them(tmp_path) -> None:
    script = ROOT / "tests" / "logs" / "score_lm_eval.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    logged = json.loads(done.stdout.splitlines()[-1])
    values = expected("pass@1,4 pass^4")
    scripted = {name: logged["scripted"][f"{name},repeats"] for name in values}
    assert scripted == close(values)
    assert all(logged["scripted"]["higher"].values())
    # lm-eval's dummy model answers "lol", which is right only where nothing is asked.
    assert logged["dummy"]["pass@1,repeats"] == 0.0
    assert 0.0 < logged["dummy"]["pass@1 population ci_upper,repeats"] < 0.3
    data = bk.load(tmp_path / "logs", scorer="pass@1")
    assert data.successes.values.tolist() == [[sum(row) for row in MARKS]]


@pytest.mark.skipif(find_spec("lm_eval") is None, reason="needs lm-eval: run make test-lm-eval")
def test_the_version_range_holds_what_is_installed() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    (least,) = {
        re.fullmatch(r"lm-eval>=([\d.]+)", requirement)[1]
        for group in ("lm-eval", "logs")
        for requirement in groups[group]
        if requirement.startswith("lm-eval")
    }
    numbers = [tuple(map(int, text.split(".")[:3])) for text in (least, version("lm-eval"))]
    assert numbers[0] <= numbers[1]
