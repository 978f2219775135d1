"""Groups and covariates of questions: named or given, checked, kept, selected by."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.data.columns import Columns, rows_from
from bayesatk.data.long_tables import Counter
from bayesatk.results.result import Result
from tests.data.intake import KINDS, as_kind

TABLE = pd.DataFrame(
    {
        "question": ["a", "a", "b", "b", "c", "c"],
        "trial": [0, 1] * 3,
        "outcome": [1, 0, 1, 1, 0, 0],
        "domain": ["law", "law", "art", "art", "law", "law"],
        "minutes": [1.0, 1.0, 2.5, 2.5, None, None],
        "spent": [3, 4, 5, 6, 7, 8],
    }
)


def columns(data):
    coords = data.dataset.coords
    return coords["group"].values.tolist(), coords["minutes"].values.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_brings_the_columns_that_are_named(kind, tmp_path):
    source = as_kind(TABLE, kind, tmp_path)
    data = bk.load(source, group="domain", covariates=["minutes"])
    group, minutes = columns(data)
    assert group == ["law", "art", "law"]
    np.testing.assert_equal(minutes, [1.0, 2.5, np.nan])
    assert "questions have: group 'domain' (2 values), minutes (2 values)" in data.card()
    assert "left out: columns 'spent'" in data.card()
    assert "group = column 'domain'" in data.card()
    plain = bk.load(source)
    assert "left out: columns 'domain', 'minutes', 'spent'" in plain.card()
    assert plain.sha256() == data.sha256()


def test_a_column_must_not_vary_within_a_question(tmp_path):
    path = tmp_path / "runs.csv"
    TABLE.to_csv(path, index=False)
    rule = r"column 'spent' must be the same .* {} has '?3'? and {} has '?4'?, .* question 'a'"
    with pytest.raises(bk.OutcomeError, match=rule.format("row 0", "row 1")):
        bk.tally(TABLE, group="spent")
    with pytest.raises(bk.OutcomeError, match=rule.format("row 2", "row 3")):
        bk.load(path, covariates=["spent"])


def test_a_group_is_known_of_every_question_or_refused():
    table = TABLE.assign(domain=["law", None, None, None, "law", "law"])
    with pytest.raises(bk.OutcomeError, match=r"group must name .* 'b'"):
        bk.tally(table, group="domain")
    # One row that says it is enough, and a missing cell contradicts none.
    table = TABLE.assign(domain=["law", None, None, "art", "law", "law"])
    assert bk.tally(table, group="domain").dataset["group"].values.tolist() == ["law", "art", "law"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"group": "nowhere"}, "nowhere"),
        ({"group": "domain", "weight": "domain"}, "its own column"),
        ({"covariates": ["trials"]}, "trials"),
        ({"covariates": [3]}, "3"),
        ({"covariates": ["minutes", "minutes"]}, "once"),
        ({"group": ["law"]}, "each of the 3 questions"),
        ({"group": {"a": "law"}}, "none for 'b'"),
        ({"group": {"a": "law", "b": None, "c": "x"}}, "that of 'b'"),
        ({"covariates": {"m": [[1], 2, 3]}}, "'a'"),
        ({"group": 7}, "7"),
    ],
)
def test_what_cannot_be_a_column_is_refused(options, said):
    with pytest.raises(bk.OutcomeError, match=said):
        bk.tally(TABLE, **options)


def test_lists_are_no_values_of_questions():
    table = TABLE.assign(domain=[["law"]] * 6)
    with pytest.raises(bk.OutcomeError, match="one text or number"):
        bk.tally(table, group="domain")


values = st.lists(st.sampled_from(["law", "art", "5", "zoo"]), min_size=1, max_size=6)


@settings(max_examples=30, deadline=None)
@given(group=values, seed=st.integers(0, 99))
def test_however_groups_are_given_they_are_the_same(group, seed):
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 2, (2, len(group), 3))
    names = [f"q{i}" for i in range(len(group))]
    by_label = dict(zip(names, group, strict=True))
    expected = bk.tally(outcomes, questions=names, group=group)
    rows = [
        {
            "system": s,
            "question": names[q],
            "trial": t,
            "outcome": int(outcomes[s, q, t]),
            "kind": group[q],
        }
        for s, q, t in np.ndindex(outcomes.shape)
    ]
    table = pd.DataFrame(rows).sample(frac=1.0, random_state=seed)
    counted = outcomes.sum(2), np.full(outcomes.shape[:2], 3)
    for data in (
        bk.tally(outcomes, questions=names, group=by_label),
        bk.tally(outcomes, questions=names, group=pd.Series(by_label)),
        bk.tally(table, group="kind"),
        bk.tally(table, group=by_label),
        bk.tally(table, columns={"group": "kind"}),
        bk.tally(counted, questions=names, group=group),
        bk.tally(bk.tally(outcomes, questions=names), group=group),
        bk.tally(expected.dataset),
    ):
        dataset = data.dataset
        assert (
            dict(zip(dataset["question"].values, dataset["group"].values, strict=True)) == by_label
        )
        for name in set(group):
            positions = [q for q, label in enumerate(group) if label == name]
            selected = data.sel(group=name)
            assert selected.successes.sum() == outcomes[:, positions].sum()
            assert set(selected.dataset["question"].values) == {names[q] for q in positions}


def test_text_that_is_a_number_is_one_in_covariates_and_stays_text_in_groups():
    data = bk.tally(
        [[1], [0], [1]],
        group=["07", "7", "7"],
        covariates={"m": ["1", "2.5", ""], "t": [1, "x", 2]},
    )
    coords = data.dataset.coords
    assert coords["group"].values.tolist() == ["07", "7", "7"]
    np.testing.assert_equal(coords["m"].values, [1.0, 2.5, np.nan])
    assert coords["t"].values.tolist() == ["1", "x", "2"]
    assert bk.tally([[1], [0]], group=[1, 2]).sel(group=2).trials.sizes["question"] == 1


def test_a_coordinate_becomes_the_group():
    array = bk.tally([[1, 0], [1, 1]], covariates={"kind": ["u", "v"]}).dataset
    data = bk.tally(array, group="kind")
    assert data.dataset["group"].values.tolist() == ["u", "v"]
    assert "kind" not in data.dataset.coords


def test_columns_come_back_from_results(tmp_path):
    data = bk.tally(TABLE, group="domain", covariates=["minutes"])
    fit = bk.load_result(bk.save(bk.evaluate(data, "pass@1", draws=8, rng=1), tmp_path / "a.nc"))
    assert fit["constant_data"]["group"].values.tolist() == ["law", "art", "law"]
    again = Result.of(fit).data
    assert again.sel(group="law").successes.values.tolist() == [[1, 0]]


def test_selecting_keeps_answers_and_says_so():
    answers = {"a": [["x", "y"], ["x", "x"]], "b": [["y", "y"], ["z", "x"]]}
    data = bk.tally(None, answers=answers, reference=["x", "x"], group=["u", "v"])
    selected = data["b"].sel(group="v")
    assert selected.systems == ["b"]
    assert "selected: system 'b'" in selected.card()
    alone = bk.tally(None, answers={"b": [["z", "x"]]}, reference=["x"])
    metrics = "plurality@2 pass@1"
    both = [
        bk.table(bk.evaluate(each, metrics, pooling="none", rng=1)) for each in (selected, alone)
    ]
    np.testing.assert_allclose(both[0]["mean"], both[1]["mean"])
    two = data.sel(system=["b", "a"], question=[1])
    assert two.systems == ["a", "b"]
    np.testing.assert_array_equal(two.successes, [[2], [1]])


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"system": "c"}, "system must be among"),
        ({"question": [0, 9]}, "got 9"),
        ({"group": "w"}, "'u', 'v'"),
        ({"group": "u", "question": 1}, "in common"),
        ({"system": []}, "got \\[\\]"),
        ({"system": [[1]]}, "got \\[1\\]"),
    ],
)
def test_what_is_not_there_cannot_be_selected(chosen, said):
    data = bk.tally({"a": [[1], [0]], "b": [[1], [1]]}, group=["u", "v"])
    with pytest.raises(bk.OutcomeError, match=said):
        data.sel(**chosen)
    with pytest.raises(bk.OutcomeError, match="without groups"):
        bk.tally([[1]]).sel(group="u")


def test_wide_tables_and_lists_in_cells_bring_them_too(tmp_path):
    wide = tmp_path / "wide.csv"
    wide.write_text("task_id,domain,a,b\nx,law,1,0\ny,art,0,1\n")
    data = bk.load(wide, wide=True, group="domain")
    assert data.systems == ["a", "b"]
    assert data.dataset["group"].values.tolist() == ["law", "art"]
    listed = pd.DataFrame({"question": ["x", "y"], "outcome": [[1, 0], [1]], "domain": ["u", "v"]})
    of_lists = bk.tally(listed, group="domain")
    assert of_lists.trials.values.tolist() == [[2, 1]]
    assert of_lists.dataset["group"].values.tolist() == ["u", "v"]


def test_parts_of_a_table_agree(tmp_path):
    path = tmp_path / "runs.csv"
    TABLE.to_csv(path, index=False)
    options = {"group": "domain", "covariates": ["minutes"]}
    whole, parts = (bk.load(path, stream=stream, **options) for stream in (False, True))
    assert parts.dataset.drop_vars("minutes").identical(whole.dataset.drop_vars("minutes"))
    np.testing.assert_equal(columns(parts), columns(whole))
    assert "group = column 'domain'" in parts.card()
    counter = Counter({0: 0.0, 1: 1.0})
    roles = {"question": "id", "outcome": "passed", "group": "domain"}
    for number, group in ((7, "law"), (8, None), (9, "art")):
        values = {"question": ["a"], "outcome": [1], "group": [group]}
        table = Columns(roles, values, place=rows_from(number))
        if group != "art":
            counter.add(table)
            continue
        with pytest.raises(bk.OutcomeError, match="row 7 has 'law' and row 9 has 'art'"):
            counter.add(table)
