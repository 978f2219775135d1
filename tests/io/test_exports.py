"""Results in files: tables with provenance, citations, and logs as long tables."""

import hashlib
import json
import math
import re

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from bayesatk.metrics.grid import FAMILIES
from bayesatk.results.citations import entries

HOSTILE = [
    'a#1 "x", y',
    "50% & $x_1^2$ \\ {b}",
    "two\nlines",
    "\u202e\u0645\u0631\u062d 😀",
    "=1+1",
]


@pytest.fixture(scope="module")
def compared():
    runs = {name: [[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, number % 2]] for number, name in
            enumerate(HOSTILE)}  # fmt: skip
    return bk.compare(bk.evaluate(runs, ["pass@1,2", "pass^8"], pooling="complete", rng=1), rng=1)


def test_json_holds_every_table_with_its_numbers_and_provenance(compared, tmp_path) -> None:
    path = bk.export(compared, tmp_path / "fit.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["schema"] == "bayesatk-tables/1"
    assert list(found["tables"]) == ["results", "comparison", "ranks", "tiers"]
    expected = bk.table(compared)
    assert [row["system"] for row in found["tables"]["results"]] == expected["system"].tolist()
    means = [row["mean"] for row in found["tables"]["results"]]
    assert means == expected["mean"].tolist()
    beyond = [row["estimate"] for row in found["tables"]["results"] if row["metric"] == "pass^8"]
    assert set(beyond) == {None}  # k exceeds the trials: no finite estimate
    origin = found["provenance"]
    assert origin["seed"] == "1"
    assert origin["command"] is None
    assert {"numpy", "pymc", "bayesatk"} <= set(origin["versions"])
    assert "Rubin 1981" in " ".join(origin["citations"])


def test_infinities_and_gaps_are_json(tmp_path) -> None:
    frame = pd.DataFrame({"x": [math.inf, -math.inf, math.nan, 1.5], "n": np.arange(4)})
    found = json.loads(bk.export(frame, tmp_path / "t.json").read_text())
    assert [row["x"] for row in found["tables"]["table"]] == ["inf", "-inf", None, 1.5]
    assert [row["n"] for row in found["tables"]["table"]] == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["results", "comparison", "ranks", "tiers", "questions"])
def test_csv_reads_back_beside_its_provenance(compared, tmp_path, name) -> None:
    path = bk.export(compared, tmp_path / "t.csv", table=name)
    frame = pd.read_csv(path)
    assert "questions" not in bk.tables_of(compared)
    expected = bk.tables_of(compared, questions=True)[name]
    expected = expected.replace({"^=": "'="}, regex=True)  # no formula in a spreadsheet
    assert name == "comparison" or "'=1+1" in expected["system"].tolist()
    assert frame["system"].tolist() == expected["system"].tolist()
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    origin = json.loads((tmp_path / "t.csv.provenance.json").read_text(encoding="utf-8"))
    assert origin["input_sha256"] == compared.attrs["input_sha256"]


def test_latex_escapes_names_and_brackets_intervals(compared, tmp_path) -> None:
    text = bk.export(compared, tmp_path / "t.tex").read_text(encoding="utf-8")
    body = text[text.index("\\begin{tabular}") :]
    assert r"50\% \& \$x\_1\textasciicircum{}2\$ \textbackslash{} \{b\}" in body
    assert "two lines" in body
    row = bk.table(compared).iloc[0]
    assert f"[{row['ci_lower']:.3f}, {row['ci_upper']:.3f}]" in body
    assert all(line.startswith("% ") for line in text[: text.index("\\begin")].splitlines())
    assert r"\toprule" in body


def test_tables_of_papers_have_no_technical_columns_but_those_that_are_named(
    compared, tmp_path
) -> None:
    text = bk.export(compared, tmp_path / "t.tex").read_text(encoding="utf-8")
    body = text[text.index("\\begin{tabular}") :]
    for words in ("[, ]", "nan", "ci error", "variance", "if\\_"):
        assert words not in body
    asked = ["system", "metric", "ci_error", "ci_lower", "ci_upper"]
    path = bk.export(compared, tmp_path / "t.md", columns=asked)
    lines = path.read_text(encoding="utf-8").split("-->")[1].strip().splitlines()
    assert lines[2] == "| system | metric | ci error | 95% interval |"
    assert len(lines) == 4 + len(bk.table(compared))
    row = bk.table(compared).iloc[0]
    assert f"[{row['ci_lower']:.3f}, {row['ci_upper']:.3f}]" in lines[4]
    for columns in (["mean", "men"], "men"):
        with pytest.raises(ValueError, match=r"columns must be a list of columns .*; got men\."):
            bk.export(compared, tmp_path / "t.md", columns=columns)


def test_export_says_what_it_cannot_write(compared, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.json, \.csv, \.tex, \.md; got 'fit\.xls'"):
        bk.export(compared, tmp_path / "fit.xls")
    with pytest.raises(ValueError, match="table must be one of results, comparison"):
        bk.export(compared, tmp_path / "fit.csv", table="nope")
    with pytest.raises(ValueError, match=r"left out for \.json"):
        bk.export(compared, tmp_path / "fit.json", table="ranks")


def test_ranks_and_tiers_tabulate_the_groups(compared) -> None:
    ranks = bk.tables_of(compared)["ranks"]
    chances = ranks[[name for name in ranks if name.startswith("prob_rank")]].to_numpy()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(ranks["expected_rank"], chances @ np.arange(1, 6), atol=1e-12)
    group = compared["tiers"]["pass_at_k"].sel(k=2, target="population")
    own = bk.tables_of(compared)["tiers"].query("metric == 'pass@2' and target == 'population'")
    assert own["tier"].tolist() == group.values.tolist()


def test_other_results_have_tables_too() -> None:
    fit = bk.evaluate([[1, 0, 1], [0, 0, 1]], "bayes", rng=1)
    assert list(bk.tables_of(bk.guessing.random_baseline(fit, 0.5, 10, rng=1))) == [
        "results",
        "baseline",
    ]
    scored = bk.evaluate(
        bk.tally([["b", "a", "b"]], scores={"c": 0, "b": 0.5, "a": 1}), "bayes", rng=1
    )
    assert list(bk.tables_of(scored)) == ["results", "categories"]
    assert "score" in bk.tables_of(scored, questions=True)["questions"]


def test_the_hash_is_of_counts_labels_and_scores(tmp_path) -> None:
    same = [bk.tally([[1, 0, 1], [0, 0, 1]]), bk.tally([[0, 1, 1], [1, 0, 0]])]
    assert same[0].sha256() == same[1].sha256()  # the order of trials is no part
    others = [
        bk.tally([[1, 1, 1], [0, 0, 1]]),
        bk.tally([[1, 0, 1], [0, 0, 1]], questions=["a", "b"]),
        bk.tally([[1, 0, 1], [0, 0, 1]], systems=["x"]),
        bk.tally([[1, 0, 1], [0, 0, 1]], scores={0: 0, 1: 2}),
        bk.tally([[1, 0, 1, None], [0, 0, 1]], missing="ignore"),
    ]
    assert len({each.sha256() for each in [same[0], *others]}) == 6
    path = tmp_path / "runs.csv"
    path.write_text("task,passed\na,1\na,0\n")
    fit = bk.evaluate(bk.load(path), "pass@1", rng=1)
    assert bk.provenance(fit)["input_files"] == [
        ["runs.csv", hashlib.sha256(path.read_bytes()).hexdigest()]
    ]


def test_everything_that_a_result_cites_has_an_entry() -> None:
    from bayesatk.results.citations import citations

    data = [[1, 0, 1, 1], [0, 0, 1, 0]]
    words = [f"{name}2" if name[-1] in "@^" else name for name in FAMILIES
             if not name.startswith("plur")]  # fmt: skip
    words = [f"{word}:0.5" if word.startswith("g-") else word for word in words]
    for pooling in ("none", "partial", "complete"):
        fit = bk.guessing.random_baseline(
            bk.evaluate(data, words, pooling=pooling, rng=1), 0.5, 3, rng=1
        )
        text = bk.cite(fit)
        assert not re.search("^%", text, re.MULTILINE), text
        assert text.count("@") >= len(citations(fit))
    everything = bk.cite()
    keys = re.findall(r"^@\w+\{([^,]+),", everything, re.MULTILINE)
    assert len(keys) == len(set(keys)) == len(entries())
    assert everything.count("{") == everything.count("}")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_converted_logs_give_the_same_counts_and_answers(tmp_path, ending) -> None:
    logs = ["tests/logs/inspect/arithmetic_a.eval", "tests/logs/inspect/arithmetic_b.eval"]
    path = bk.convert(logs, tmp_path / f"runs.{ending}", answers=True)
    scores = {"I": 0, "C": 1}
    back = bk.load(path, columns={"answer": "answer"}, scores=scores)
    straight = bk.load(logs, answers=True)
    assert back.dataset.drop_attrs().identical(straight.dataset.drop_attrs())
    assert back.answers.label == straight.answers.label
    np.testing.assert_array_equal(back.answers.count, straight.answers.count)


def test_converted_logs_keep_what_is_missing_and_why(tmp_path) -> None:
    path = bk.convert("tests/logs/inspect/errors.eval", tmp_path / "runs.csv")
    frame = pd.read_csv(path)
    assert frame["reason"].value_counts().to_dict() == {"errored": 6, "unscored": 2}
    back = bk.load(path, scores={"I": 0, "C": 1}, missing="ignore")
    straight = bk.load("tests/logs/inspect/errors.eval", missing="ignore")
    assert back.dataset.identical(straight.dataset)
    with pytest.raises(bk.OutcomeError, match=r"must end in \.csv"):
        bk.convert(path, tmp_path / "runs.xlsx")


def test_the_added_tests_of_evalplus_count_only_with_the_base_tests(tmp_path) -> None:
    judged = [("pass", "pass"), ("fail", "pass"), ("pass", "fail"), ("fail", "fail")]
    path = tmp_path / "m_eval_results.json"
    solutions = [{"base_status": base, "plus_status": plus} for base, plus in judged]
    path.write_text(json.dumps({"date": "d", "eval": {"Task/0": solutions}}))
    assert bk.load(path, scorer="plus").successes.item() == 1
    assert bk.load(path, scorer="base").successes.item() == 2
