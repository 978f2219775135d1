"""One label, one content: an id that is numbered by request does not make one question of two."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk
from tests.data.intake import refused

# Two questions, asked in requests whose numbers are used again for the other question.
ROWS = [
    {"example_id": number % 2, "prompt": [{"role": "user", "content": f"{asked} + 1 = ?"}],
     "answer": str(asked + 1), "reward": mark}
    for number, (asked, mark) in enumerate([(4, 1), (7, 0), (7, 0), (4, 1), (4, 1)])
]  # fmt: skip
TOLD = {"question": "example_id"}


def as_text(rows):
    return [{**row, "prompt": json.dumps(row["prompt"])} for row in rows]


TABLES = {
    "pandas": pd.DataFrame(ROWS),
    "pandas text": pd.DataFrame(as_text(ROWS)),
    "polars": pl.DataFrame(ROWS),
    "polars lazy": pl.DataFrame(ROWS).lazy(),
    "pyarrow": pa.Table.from_pylist(ROWS),
}
FILES = {
    "rows.csv": lambda path: TABLES["pandas text"].to_csv(path, index=False),
    "rows.tsv": lambda path: TABLES["pandas text"].to_csv(path, index=False, sep="\t"),
    "text.parquet": lambda path: TABLES["pandas text"].to_parquet(path, index=False),
    "nested.parquet": lambda path: TABLES["polars"].write_parquet(path),
    "rows.json": lambda path: TABLES["pandas"].to_json(path, orient="records"),
    "rows.jsonl": lambda path: TABLES["pandas"].to_json(path, orient="records", lines=True),
}


def remedies(error):
    """The mappings of columns that a message offers, in order."""
    return [eval(text) for text in re.findall(r"columns=(\{[^}]*\})", str(error))]


def counted(data):
    return sorted(zip(data.successes.values[0], data.trials.values[0], strict=True))


@pytest.mark.parametrize("kind", TABLES)
def test_an_id_of_several_prompts_is_refused_and_the_remedies_work(kind):
    with pytest.raises(bk.OutcomeError) as error:
        bk.tally(TABLES[kind], columns=TOLD)
    assert re.search(r"row 0 and row 2 are both question 0 .* 'prompt'", str(error.value))
    by_prompt, in_other_words = remedies(error.value)
    assert counted(bk.tally(TABLES[kind], columns=by_prompt)) == [(0, 2), (3, 3)]
    assert counted(bk.tally(TABLES[kind], columns=in_other_words)) == [(1, 2), (2, 3)]


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_is_checked(name, tmp_path):
    path = tmp_path / name
    FILES[name](path)
    kind = {"format": path.suffix[1:]}
    with pytest.raises(bk.OutcomeError, match=rf"^{name}.*(row|line|record) .* 'prompt'") as error:
        bk.load(path, columns=TOLD, **kind)
    by_prompt, _ = remedies(error.value)
    assert counted(bk.load(path, columns=by_prompt, **kind)) == [(0, 2), (3, 3)]


def test_files_of_two_systems_are_checked_against_each_other(tmp_path):
    for name, prompt in (("a", "one"), ("b", "two")):
        (tmp_path / f"{name}.csv").write_text(f"id,prompt,passed\n1,{prompt},1\n2,three,0\n")
    (tmp_path / "c.csv").write_text("id,passed\n1,1\n2,0\n")
    a, b, c = (tmp_path / f"{name}.csv" for name in "abc")
    refused(lambda: bk.load([a, b]), "'prompt'", r"b\.csv")
    assert bk.load([a, c]).systems == ["a", "c"]


def test_an_answer_that_differs_between_trials_is_left_out_and_another_right_answer_refused():
    table = pd.DataFrame({"id": [1, 1, 2], "answer": ["4", "5", "4"], "correct": [1, 0, 1]})
    with pytest.warns(bk.OutcomeWarning, match="'answer' differs between the trials") as warned:
        assert counted(bk.tally(table)) == [(1, 1), (1, 2)]
    (compared,) = remedies(warned[0].message)
    refused(lambda: bk.tally(table, columns=compared), "'answer'")
    for name in ("expected", "expected_output", "reference", "correct_answer", "ground_truth"):
        gold = table.rename(columns={"answer": name})
        with pytest.raises(bk.OutcomeError, match=f"'{name}'") as error:
            bk.tally(gold)
        last = bk.tally(gold, columns=remedies(error.value)[-1])
        assert last.trials.values.tolist() == [[2, 1]]


@pytest.mark.parametrize("name", ["prompt", "Question", "input", "target", "gold", "problem"])
def test_columns_are_recognised_by_their_names(name):
    table = pd.DataFrame({"task_id": [1, 1], name: ["x", "y"], "passed": [1, 0]})
    roles = {"question": "task_id"}
    refused(lambda: bk.tally(table, columns=roles), name)
    bk.tally(table.assign(**{name: ["x", "x"]}), columns=roles)
    bk.tally(table.assign(**{name: ["x", None]}), columns=roles)
    renamed = table.rename(columns={name: "asked"})
    bk.tally(renamed, columns=roles)
    refused(lambda: bk.tally(renamed, columns={**roles, "content": "asked"}), "asked")


def test_numbers_say_nothing_of_what_was_asked_but_may_be_right_answers():
    table = pd.DataFrame({"id": [1, 1], "input": [812, 813], "passed": [1, 0]})
    assert counted(bk.tally(table)) == [(1, 2)]
    assert counted(bk.tally(table.assign(input=["812", "8.5"]))) == [(1, 2)]
    refused(lambda: bk.tally(table.rename(columns={"input": "target"})), "target")


def test_one_content_under_two_ids_is_doubted_with_the_columns_that_name_the_question():
    table = pd.DataFrame(
        {"id": [1, 2, 3, 3], "prompt": ["x", "y", "x", "x"], "passed": [1, 0, 1, 1]}
    )
    with pytest.warns(
        bk.OutcomeWarning, match=r"1 of 3 questions ask the same .* \(first: 3 as 1"
    ) as of:
        (note,) = [note for note in bk.tally(table).notes if "CHECK" in note]
    assert note.endswith("trials of one question: columns={'question': 'prompt'}.")
    assert note == f"CHECK: {of[0].message}"
    assert counted(bk.tally(table, columns={"question": "prompt"})) == [(0, 1), (3, 3)]
    numbered = table.assign(trial=[0, 0, 0, 1])  # two rows of x are trial 0
    with pytest.warns(bk.OutcomeWarning, match="is a question counted twice"):
        bk.tally(numbered)
    by_row = table.assign(id=range(4), trial=[0, 0, 1, 2])  # an id for every row
    with pytest.warns(bk.OutcomeWarning, match="columns={'question': 'prompt'}"):
        bk.tally(by_row)
    assert counted(bk.tally(by_row, columns={"question": "prompt"})) == [(0, 1), (3, 3)]
    different = table.assign(target=["a", "b", "c", "c"])
    assert not [note for note in bk.tally(different).notes if "CHECK" in note]
    more = pd.concat([different, different.iloc[[0]].assign(id=4)])
    with pytest.warns(bk.OutcomeWarning, match="question': .'prompt', 'target'.}"):
        bk.tally(more)
    by_content = bk.tally(more, columns={"question": ["prompt", "target"]})
    assert counted(by_content) == [(0, 1), (2, 2), (2, 2)]
    assert not [note for note in bk.tally(table.drop(columns="prompt")).notes if "CHECK" in note]


# Several ids of one prompt, and ids that number the trials of every prompt, are doubted.
@pytest.mark.filterwarnings("ignore::bayesatk.OutcomeWarning")
@given(st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_renumbered_tables_give_the_true_counts_or_are_refused(chosen):
    """Whatever ids a run gives: never a count that mixes two questions."""
    prompts = chosen.draw(st.lists(st.integers(0, 3), min_size=1, max_size=12))
    ids = [chosen.draw(st.integers(0, 3)) for _ in prompts]
    marks = [chosen.draw(st.integers(0, 1)) for _ in prompts]
    table = pd.DataFrame(
        {"id": ids, "prompt": [f"question {prompt}" for prompt in prompts], "passed": marks}
    )
    several = len(set(zip(ids, prompts, strict=True))) > len(set(ids))
    if several:
        refused(lambda: bk.tally(table), "'prompt'")
    else:
        truth = table.groupby("id", sort=False)["passed"].agg(["sum", "count"])
        assert bk.tally(table).successes.values[0].tolist() == truth["sum"].tolist()
    by_prompt = bk.tally(table, columns={"question": "prompt"})
    truth = table.groupby("prompt", sort=False)["passed"].agg(["sum", "count"])
    assert by_prompt.successes.values[0].tolist() == truth["sum"].tolist()
    assert by_prompt.trials.values[0].tolist() == truth["count"].tolist()


def test_keys_in_another_order_are_one_content():
    ways = [{"role": "user", "content": "x"}, {"content": "x", "role": "user"}]
    table = pd.DataFrame({"id": [1, 1], "prompt": [[way] for way in ways], "passed": [1, 0]})
    assert counted(bk.tally(table)) == [(1, 2)]
    arrays = table.assign(prompt=[np.array([1, 2]), np.array([1, 2])])
    assert counted(bk.tally(arrays, columns={"question": "prompt"})) == [(1, 2)]
