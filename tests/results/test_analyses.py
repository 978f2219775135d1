"""Analyses as groups of a result: every table comes back as it was, from memory and from files."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.results.result import (
    analysis_group,
    table_of,
    tree_of,
    with_analysis,
)
from bayesatk.results.schema import ANALYSES
from bayesatk.results.views import ShownTable

NUMBER = st.floats(allow_infinity=True) | st.integers(-5, 5).map(float)
ROWS = st.dictionaries(
    st.tuples(st.sampled_from(["x", "y", "é z"]), st.integers(0, 3)),
    st.tuples(NUMBER, st.integers(-9, 9), st.booleans(), st.text(max_size=5)),
    min_size=1,
)


def _table(rows: dict) -> pd.DataFrame:
    columns = ["number", "count", "flag", "words", "system", "level"]
    return pd.DataFrame([(*values, *key) for key, values in rows.items()], columns=columns)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_a_table_comes_back_with_its_order_and_types(rows) -> None:
    """Also where not every combination of labels has a row."""
    table = _table(rows)
    group = analysis_group(table, ["level", "system"], {"seed": "1"}, sentences=["So it is."])
    again = table_of(group)
    pd.testing.assert_frame_equal(pd.DataFrame(again), table)
    assert again.sentences == ["So it is."]
    for row in table.to_dict("records"):
        cell = group.sel(level=row["level"], system=row["system"])
        np.testing.assert_equal(cell["number"].item(), row["number"])
        assert cell["words"].item() == row["words"]


def test_files_keep_every_type(tmp_path) -> None:
    rows = {
        ("x", 0): (np.nan, 3, True, "a"),
        ("y", 2): (np.inf, -1, False, ""),
        ("x", 2): (-np.inf, 0, True, "é"),
    }
    group = analysis_group(_table(rows), ["system", "level"], {"nested": {"a": [1]}})
    tree = with_analysis(tree_of(None, "by hand"), "plan", plan=group)
    again = bk.load_result(bk.save(tree, tmp_path / "one.nc"))
    assert again.identical(tree)
    pd.testing.assert_frame_equal(
        pd.DataFrame(bk.table(again, "plan")), _table(rows), check_index_type=False
    )
    assert json.loads(again["plan"].attrs["nested"]) == {"a": [1]}


def test_labels_keep_the_order_of_the_result() -> None:
    table = pd.DataFrame({"system": ["b", "a"], "rank": [1, 2]})
    group = analysis_group(table, ["system"], {}, labels={"system": ["a", "b", "c"]})
    assert group["system"].values.tolist() == ["a", "b", "c"]
    assert group["rank"].values.tolist()[:2] == [2, 1]
    assert table_of(group)["system"].tolist() == ["b", "a"]


def test_an_analysis_replaces_its_earlier_group() -> None:
    one = analysis_group(pd.DataFrame({"system": ["a"], "x": [1]}), ["system"], {})
    tree = with_analysis(tree_of(None, "by hand"), "gate", gate=one)
    later = with_analysis(tree, "gate", gate=one.assign(x=("system", [2])))
    assert list(later.children) == ["gate"]
    assert later["gate"]["x"].item() == 2
    assert tree["gate"]["x"].item() == 1  # as it was


def test_rows_show_themselves_as_the_table_does_and_other_columns_as_they_are() -> None:
    rows = [{"system": name, "sentence": f"{name} is <there>."} for name in "ab"]
    group = analysis_group(pd.DataFrame(rows), ["system"], {}, sentences=["That is all."])
    table = table_of(group, "horizon")
    assert str(table) == repr(table) == "a is <there>.\nb is <there>.\nThat is all."
    assert "a is &lt;there&gt;." in table._repr_html_()
    part = table[table["system"] == "b"]
    assert isinstance(part, ShownTable)
    assert str(part) == "b is <there>.\nThat is all."
    other = table.assign(number=1)
    assert "number" in str(other)
    assert "number" in other._repr_html_()
    assert "system" in str(table[["system"]])


@pytest.mark.parametrize("name", ANALYSES)
def test_a_result_without_an_analysis_says_who_makes_it(name) -> None:
    fit = bk.evaluate([[1, 0]], "pass@1", rng=1, draws=2)
    maker = name if name in bk.__all__ else rf"decide\.{name}"
    maker = "compare" if name == "contrast" else maker
    with pytest.raises(ValueError, match=rf"must have the group {name!r}.*bayesatk\.{maker}\("):
        bk.table(fit, name)
