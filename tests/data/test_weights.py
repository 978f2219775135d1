"""Weights of questions: named or given, checked, kept, taken off."""

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from bayesatk.results.result import Result
from tests.data.intake import as_kind

TABLE = pd.DataFrame(
    {
        "question": ["a", "a", "b", "b", "c"],
        "outcome": [1, 0, 1, 1, 0],
        "use": [2.0, 2.0, 0.5, 0.5, 1.0],
        "spent": [3, 4, 5, 6, 7],
        "name": ["x", "x", "y", "y", "z"],
        "none": [1.0, 1.0, 0.0, 0.0, 1.0],
    }
)


GIVEN = {
    "list": lambda: bk.tally(TABLE, weight=[2, 0.5, 1]),
    "mapping": lambda: bk.tally(TABLE, weight={"c": 1, "a": 2, "b": 0.5}),
    "counts": lambda: bk.tally(bk.tally(TABLE, covariates=["use"]), weight="use"),
}


@pytest.mark.parametrize("kind", ["pandas", "csv", "parts", "jsonl", *GIVEN])
def test_weights_come_from_columns_lists_and_mappings(kind, tmp_path) -> None:
    if kind in GIVEN:
        data = GIVEN[kind]()
    else:
        source = as_kind(TABLE, "csv" if kind == "parts" else kind, tmp_path)
        data = bk.load(source, weight="use", stream=True if kind == "parts" else None)
    assert data.weight.tolist() == [2.0, 0.5, 1.0]
    assert "weights from 0.5 to 2, an effective number of 2.3 equally" in data.card()
    assert bk.tally(data.dataset).weight.tolist() == [2.0, 0.5, 1.0]
    assert data.unweighted().weight is None
    assert data.unweighted().sha256() == bk.tally(TABLE).sha256() != data.sha256()
    assert data.sel(question=["a", "c"]).weight.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ("spent", r"column 'spent' must be the same .* row 0 has 3.0 and row 1 has 4.0"),
        ("name", r"weight must have positive .* that of 'a' is 'x'"),
        ("none", r"weight must have positive .* is 0"),
        ("nowhere", "nowhere"),
        ([1, 2], "each of the 3 questions"),
        ([1, -2, 1], "that of 'b' is -2"),
        ([1, 2, np.inf], "that of 'c' is inf"),
        ([1, 2, np.nan], "that of 'c' is nan"),
        ([1, True, 1], "that of 'b' is True"),
        ({"a": 1, "b": 2}, "none for 'c'"),
        ([10**400, 1, 1], "that of 'a'"),
    ],
)
def test_what_is_no_weight_is_refused(weight, said) -> None:
    with pytest.raises(bk.OutcomeError, match=said):
        bk.tally(TABLE, weight=weight)


def test_a_question_without_a_weight_is_named() -> None:
    table = TABLE.assign(use=[2.0, None, None, None, 1.0])
    with pytest.raises(bk.OutcomeError, match=r"weight must have positive .* 'b' is None"):
        bk.tally(table, weight="use")
    with pytest.raises(bk.OutcomeError, match="weight"):
        bk.tally(TABLE, covariates={"weight": [1, 2, 3]})


def test_weights_are_in_results_and_come_back_from_files(tmp_path) -> None:
    data = bk.tally(TABLE, weight="use")
    fit = bk.evaluate(data, "pass@1", pooling="none", draws=8, rng=1)
    saved = bk.load_result(bk.save(fit, tmp_path / "fit.nc"))
    again = Result.of(saved)
    assert again.weight.tolist() == [2.0, 0.5, 1.0]
    assert again.data.sha256() == data.sha256() == fit.attrs["input_sha256"]
    assert data.with_success("score > 0").weight.tolist() == [2.0, 0.5, 1.0]


def test_convert_keeps_them(tmp_path) -> None:
    TABLE.to_csv(tmp_path / "runs.csv", index=False)
    path = bk.convert(tmp_path / "runs.csv", tmp_path / "long.jsonl", weight="use")
    assert bk.load(path, weight="weight").weight.tolist() == [2.0, 0.5, 1.0]
