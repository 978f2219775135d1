"""One screen: what files are, what was taken for what, what is doubtful, a command that runs."""

import json
import shlex

import pytest

import bayesatk as bk
from tests.io.logs import QUIET, written_json

pytestmark = QUIET


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def own_json(folder):
    rows = [{"Sample ID": n // 2, "isCorrect": n % 3 == 0, "latency": 2.5} for n in range(8)]
    return written_json(folder / "own.json", {"cases": rows}), {}


def ragas(folder):
    path = folder / "ragas.csv"
    path.write_text("user_input,response,faithfulness\nq1,r,1.0\nq2,r,0.0\nq2,r,1.0\n")
    return path, {"columns": {"outcome": "faithfulness"}}


def trials_side_by_side(folder):
    path = folder / "m.csv"
    path.write_text("task,trial_1,trial_2\na,1,0\nb,1,1\n")
    return path, {"wide": True}


def fractions(folder):
    path = lines(folder / "f.jsonl", [{"id": n // 2, "score": n / 8} for n in range(8)])
    return path, {"scores": "numbers"}


def ends(folder):
    rows = [{"id": n // 2, "hours": n // 2 + 1, "score": n / 8} for n in range(8)]
    path = lines(folder / "f.jsonl", rows)
    return path, {"scores": (0.0, 1.0), "covariates": ["hours"]}


def runs_of_one_system(folder):
    for number in range(2):
        path = folder / f"2025-08-01__14-0{number}.csv"
        path.write_text("task,trial,passed\na,1,1\nb,1,0\n" + "\n" * number)
    return {"m": folder}, {"same_system": "trials"}


SHAPES = (own_json, ragas, trials_side_by_side, fractions, ends, runs_of_one_system)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_command_runs_for_every_shape(tmp_path, shape):
    from typer.testing import CliRunner

    from bayesatk.cli.app import app

    source, options = shape(tmp_path)
    report = bk.checks.inspect_source(source, **options)
    assert report.error is None, report
    command = shlex.split(report.command)[1:]
    fast = ["--difficulty", "beta"] if "covariates" in options else ["--pooling", "none"]
    done = CliRunner().invoke(app, [*command, "--seed", "1", "--quiet", *fast])
    assert done.exit_code == 0, done.output
    assert len(str(report).splitlines()) <= 24  # one screen


def test_columns_are_told_though_the_table_cannot_be_read(tmp_path):
    rows = [{"task_id": f"t{n}", "model": "m", "prompt": f"p{n}", "style": n / 7,
             "faithful": n % 2, "note": None, "infos": [1]} for n in range(6)]  # fmt: skip
    report = bk.checks.inspect_source(lines(tmp_path / "r.jsonl", rows))
    assert report.error is not None
    assert report.columns == {
        "task_id": ("question", "text, 6 different of 6"), "model": ("system", "m"),
        "prompt": ("", "text, 6 different of 6"), "style": ("", "numbers from 0 to 0.714286"),
        "faithful": ("marks?", "0, 1"), "note": ("", "nothing"), "infos": ("", "lists"),
    }  # fmt: skip
    text = str(report)
    assert "faithful  marks?" in text
    named = {"columns": {"outcome": "faithful"}}
    assert (
        bk.checks.inspect_source(tmp_path / "r.jsonl", **named).columns["faithful"][0] == "outcome"
    )
    two = [{"question_id": 1, "task_id": 2, "passed": 1}]
    report = bk.checks.inspect_source(lines(tmp_path / "t.jsonl", two))
    assert [taken for taken, _ in report.columns.values()] == ["question?", "question?", "outcome"]


def test_answers_that_repeat_themselves_are_doubted(tmp_path):
    rows = [{"task": n, "trial": t, "passed": n % 2} for n in range(12) for t in range(3)]
    path = lines(tmp_path / "r.jsonl", rows)
    assert "are answers cached" in str(bk.checks.inspect_source(path))
    rows[0]["passed"] = 1
    assert "are answers cached" not in str(bk.checks.inspect_source(lines(path, rows)))
    rows = [{**row, "passed": 1} for row in rows]  # always right: no cache needed
    assert "are answers cached" not in str(bk.checks.inspect_source(lines(path, rows)))


def test_json_says_the_same(tmp_path):
    source, options = own_json(tmp_path)
    report = bk.checks.inspect_source(source, **options)
    document = json.loads(json.dumps(report.as_json()))
    assert document["systems"] == ["system"]
    assert document["questions"] == 4
    assert document["trials"] == {"total": 8, "least": 2, "most": 2}
    assert document["columns"]["Sample ID"]["taken_for"] == "question"
    assert document["columns"]["latency"]["taken_for"] is None
    assert document["command"] == report.command
    assert document["error"] is None


def test_the_command_line_prints_json_and_keeps_its_exit_codes(tmp_path):
    from typer.testing import CliRunner

    from bayesatk.cli.app import app

    source, _ = own_json(tmp_path)
    done = CliRunner().invoke(app, ["doctor", str(source), "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["metrics"] == ["pass@1,2", "pass^2"]
    path, _ = fractions(tmp_path)
    done = CliRunner().invoke(app, ["doctor", str(path), "--json"])
    assert done.exit_code == 2
    assert "--score numbers" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_a_saved_result_is_checked(tmp_path, ending):
    fit = bk.evaluate([[1, 0], [1, 1]], "bayes", pooling="none", draws=4, rng=1)
    path = bk.save(fit, tmp_path / f"fit{ending}")
    report = bk.checks.inspect_source(path)
    assert report.error is None
    assert "a whole result of conjugate" in str(report)
    file = path if path.is_file() else path / "zarr.json"
    file.write_bytes(file.read_bytes()[:-50])
    report = bk.checks.inspect_source(str(path))
    assert "cannot be read" in str(report)
    assert report.kinds == {"result": [path.name]}
