"""Results in files: tables with provenance, citations, and logs as long tables."""

import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from bayesatk.io.exports import as_json, write_tables
from bayesatk.io.named_tables import tables_of
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
    runs = {
        name: [[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, number % 2]]
        for number, name in enumerate(HOSTILE)
    }
    return bk.compare(bk.evaluate(runs, ["pass@1,2", "pass^8"], pooling="complete", rng=1))


def test_json_holds_every_table_with_its_numbers_and_provenance(compared, tmp_path) -> None:
    write_tables(compared, tmp_path / "fit.json")
    document = json.loads((tmp_path / "fit.json").read_text(encoding="utf-8"))
    assert document["schema"] == "bayesatk-tables/1"
    assert list(document["tables"]) == ["results", "comparison"]
    expected = bk.table(compared, "results")
    assert [row["system"] for row in document["tables"]["results"]] == expected["system"].tolist()
    means = [row["mean"] for row in document["tables"]["results"]]
    assert means == expected["mean"].tolist()
    beyond = [row["estimate"] for row in document["tables"]["results"] if row["metric"] == "pass^8"]
    assert set(beyond) == {None}  # k exceeds the trials: no finite estimate
    origin = document["provenance"]
    assert origin["seed"] == "1"
    assert origin["command"] is None
    assert {"numpy", "pymc", "bayesatk"} <= set(origin["versions"])
    assert "Rubin 1981" in " ".join(origin["citations"])


def test_infinities_and_gaps_are_json() -> None:
    stated = bk.plan((0.6, 0.3), "pass@2", width=0.2, trials=[1, 4])
    (single, repeated) = as_json(stated)["tables"]["plan"]
    assert single["questions"] == "inf"  # of single trials, for k = 2
    assert repeated["questions"] == bk.table(stated, "plan")["questions"][1]
    beyond = as_json(bk.evaluate([[1, 0]], "pass@8", rng=1))["tables"]["results"][0]
    assert beyond["estimate"] is None


@pytest.mark.parametrize("name", ["results", "comparison"])
def test_csv_reads_back(compared, tmp_path, name) -> None:
    shown = compared.copy()
    shown.attrs["latest"] = name
    write_tables(shown, tmp_path / "t.csv")
    frame = pd.read_csv(tmp_path / "t.csv")
    expected = bk.table(compared, name)
    expected = expected.replace({"^=": "'="}, regex=True)  # no formula in a spreadsheet
    assert name == "comparison" or "'=1+1" in expected["system"].tolist()
    pd.testing.assert_frame_equal(frame, pd.DataFrame(expected), check_dtype=False)


def test_other_results_have_tables_too() -> None:
    fit = bk.evaluate([[1, 0, 1], [0, 0, 1]], "bayes", rng=1)
    assert list(tables_of(bk.guessing.random_baseline(fit, 0.5, 10, rng=1))) == [
        "results",
        "random_baseline",
    ]
    scored = bk.evaluate(
        bk.tally([["b", "a", "b"]], scores={"c": 0, "b": 0.5, "a": 1}), "bayes", rng=1
    )
    assert list(tables_of(scored)) == ["results", "categories"]
    assert "score" in tables_of(scored, questions=True)["questions"]


def test_the_hash_is_of_counts_labels_and_scores(tmp_path) -> None:
    same = [bk.tally([[1, 0, 1], [0, 0, 1]]), bk.tally([[0, 1, 1], [1, 0, 0]])]
    assert same[0].sha256() == same[1].sha256()  # the order of trials is no part
    different = [
        bk.tally([[1, 1, 1], [0, 0, 1]]),
        bk.tally([[1, 0, 1], [0, 0, 1]], questions=["a", "b"]),
        bk.tally([[1, 0, 1], [0, 0, 1]], systems=["x"]),
        bk.tally([[1, 0, 1], [0, 0, 1]], scores={0: 0, 1: 2}),
        bk.tally([[1, 0, 1, None], [0, 0, 1]], missing="ignore"),
    ]
    assert len({data.sha256() for data in [same[0], *different]}) == 6
    path = tmp_path / "runs.csv"
    path.write_text("task,passed\na,1\na,0\n")
    fit = bk.evaluate(bk.load(path), "pass@1", rng=1)
    assert bk.checks.provenance(fit)["input_files"] == [
        ["runs.csv", hashlib.sha256(path.read_bytes()).hexdigest()]
    ]


def test_everything_that_a_result_cites_has_an_entry() -> None:
    from bayesatk.results.citations import citations

    data = [[1, 0, 1, 1], [0, 0, 1, 0]]
    words = [
        f"{name}2" if name[-1] in "@^" else name for name in FAMILIES if not name.startswith("plur")
    ]
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
