"""What logs say of their questions."""

from pathlib import Path

import pytest

import bayesatk as bk

LOGS = Path(__file__).parent.parent / "logs"
SWE = LOGS / "records" / "swe_bench" / "org__alpha-4.1.run_1.json"


def groups(data):
    return dict(zip(data.dataset["question"].values, data.dataset["group"].values, strict=True))


def test_metadata_of_inspect():
    kinds = groups(bk.load(LOGS / "inspect" / "arithmetic_a.eval", group="kind"))
    assert all(str(name).split("-")[0] == kind for name, kind in kinds.items())


def test_a_name_that_no_log_has_is_refused_with_those_there_are():
    with pytest.raises(bk.OutcomeError, match=r"none says 'kinds'\. There are 'task', 'kind'"):
        bk.load(LOGS / "inspect" / "arithmetic_a.eval", group="kinds")


@pytest.mark.filterwarnings("ignore::bayesatk.OutcomeWarning")
def test_repositories_of_swe_bench():
    repositories = groups(bk.load(SWE, group="repo", missing="ignore"))
    assert set(repositories.values()) == {"astropy/astropy"}


def test_several_tasks_are_groups(tmp_path):
    log = next((LOGS / "lm_eval" / "example__alpha").glob("samples_sums_gen_*32.660175.jsonl"))
    for end, task in (("", "one"), ("\n", "two")):  # the same file twice would be refused
        copy = tmp_path / f"samples_{task}_2026-11-21T13-15-32.660175.jsonl"
        copy.write_text(log.read_text() + end)
    data = bk.load(sorted(tmp_path.glob("*.jsonl")))
    assert {name.split("/")[0]: group for name, group in groups(data).items()} == {
        "one": "one",
        "two": "two",
    }
    assert "group = 'task'" in data.card()
    single = data.sel(group="one")
    assert single.successes.values.tolist() == bk.load(log).successes.values.tolist()
    document = bk.load(sorted(tmp_path.glob("*.jsonl")), group="answer")
    assert "5" in groups(document).values()


def test_convert_keeps_columns_that_are_named(tmp_path):
    log = LOGS / "inspect" / "arithmetic_a.eval"
    path = bk.convert(log, tmp_path / "runs.csv", group="kind")
    assert groups(bk.load(path, group="group")) == groups(bk.load(log, group="kind"))
