"""One screen: what files are, what was taken for what, what is doubtful, a command that runs."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from tests.cli.shell import run, succeeded
from tests.io.logs import (
    CODE,
    INSPECT,
    LM_EVAL,
    LOGS,
    POINTER,
    QUIET,
    STAMP,
    load_quietly,
    written_json,
)

pytestmark = QUIET
RECORDS = LOGS / "records"
KINDS = {
    "inspect": (INSPECT / "errors.eval", {}),
    "lm-eval": (LM_EVAL / "example__alpha" / f"samples_sums_gen_{STAMP}.jsonl", {}),
    "evalplus": (CODE / "evalplus_eval_results.json", {"scorer": "plus"}),
    "human-eval": (CODE / "humaneval.jsonl_results.jsonl", {}),
    "verifiers": (RECORDS / "verifiers" / "outputs", {}),
    "harbor": (RECORDS / "harbor", {}),
    "helm": (RECORDS / "helm", {"scorer": "f1_score"}),
}


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
    rows = [{"id": n // 2, "hours": n // 2 + 1, "score": n / 8} for n in range(8)]
    return lines(folder / "f.jsonl", rows), {"scores": "numbers"}


def ends(folder):
    return fractions(folder)[0], {"scores": (0.0, 1.0), "covariates": ["hours"]}


def runs_of_one_system(folder):
    for number in range(2):
        path = folder / f"2025-08-01__14-0{number}.csv"
        path.write_text("task,trial,passed\na,1,1\nb,1,0\n" + "\n" * number)
    return {"m": folder}, {"same_system": "trials"}


SHAPES = (own_json, ragas, trials_side_by_side, fractions, ends, runs_of_one_system)


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_agrees_with_what_load_reads(kind):
    source, options = KINDS[kind]
    report = bk.checks.inspect_source(source, **options)
    assert list(report.kinds) == [kind]
    assert report.error is None
    data = load_quietly(source, missing="ignore", **options)
    assert report.data.card() == data.card()
    fit = bk.evaluate(data, list(report.metrics), pooling="none", rng=1)
    assert bk.table(fit)["estimate"].notna().all() or (data.trials.values == 0).any()


@pytest.mark.parametrize("shape", [*SHAPES, "inspect", "helm", "verifiers"])
def test_the_command_runs_as_written(tmp_path, shape):
    source, options = KINDS[shape] if shape in KINDS else shape(tmp_path)
    report = bk.checks.inspect_source(source, **options)
    assert report.error is None, report
    assert f"Next: {report.command}" in str(report)
    assert len(str(report).splitlines()) <= 24  # one screen
    fast = ["--difficulty", "beta"] if "covariates" in options else ["--pooling", "none"]
    succeeded(*shlex.split(report.command)[1:], "--seed", 1, "--quiet", *fast)


def test_a_refusal_is_part_of_the_report(tmp_path):
    report = bk.checks.inspect_source(RECORDS / "helm")
    assert report.data is None
    assert report.metrics == ()
    assert "one scorer must be chosen" in str(report)
    assert "Next" not in str(report)
    (tmp_path / "p.json").write_text(POINTER)
    assert "Git LFS" in str(bk.checks.inspect_source(tmp_path / "p.json"))
    with pytest.raises(FileNotFoundError):
        bk.checks.inspect_source(tmp_path / "absent.csv")


def test_doubts_are_told(tmp_path):
    path = tmp_path / "runs.jsonl"
    lines(path, [{"question": n % 11, "score": 1} for n in [*range(22), 0]])
    report = str(bk.checks.inspect_source({"a": path}))
    assert "Look at: a: every outcome is 1" in report
    assert "Look at: a: 2 to 3 trials of a question" in report
    assert f"a={path}" in report
    report = str(bk.checks.inspect_source({"a": path, "b": path}))
    assert report.count("trials of a question") == 1
    assert "Look at: a, b: 2 to 3 trials of a question" in report
    lines(path, [{"question": 1, "score": 0}, {"question": 2, "score": 1}])
    assert "each question was tried once" in str(bk.checks.inspect_source(path))
    rows = [
        {"id": n, "system": "ab"[n % 2], "prompt": f"? {n // 4}", "score": n % 3 % 2}
        for n in range(12)
    ]
    lines(path, rows)  # an id for each row, of three prompts
    report = str(bk.checks.inspect_source(path))
    assert "no question was tried by every system" in report
    assert "--shared" not in report
    told = run("doctor", path, "--column", "question=prompt").output
    assert "2 systems x 3 questions, 12 trials" in told
    assert "--column question=prompt" in run("doctor", path).output
    report = str(bk.checks.inspect_source(RECORDS / "harbor"))
    assert "Look at: 1 of 6 trials have the exception ApiRateLimitError" in report


@pytest.mark.parametrize(("passed", "doubted"), [
    (lambda task, trial: task % 2, True),
    (lambda task, trial: task % 2 or task + trial == 0, False),
    (lambda task, trial: 1, False),  # always right: no cache needed
], ids=["repeated", "once different", "always right"])  # fmt: skip
def test_answers_that_repeat_themselves_are_doubted(tmp_path, passed, doubted):
    rows = [
        {"task": n, "trial": t, "passed": int(passed(n, t))} for n in range(12) for t in range(3)
    ]
    report = bk.checks.inspect_source(lines(tmp_path / "r.jsonl", rows))
    assert ("are answers cached" in str(report)) == doubted


def test_numbered_trials_that_move_together_are_a_doubt(tmp_path) -> None:
    """Every second prompt halves success; without numbers of trials nothing is said."""
    rng = np.random.default_rng(1)
    question, trial = (axis.ravel() for axis in np.indices((60, 6)))
    p = rng.uniform(0.3, 1.0, 60)[question]
    halved = p * np.where(trial % 2, 0.5, 1.0)
    runs = pd.DataFrame({"question": question, "trial": trial, "outcome": rng.binomial(1, halved)})
    for table, words in (
        (runs, "trials with the same number succeed together"),
        (runs.drop(columns="trial"), ""),
        (runs.assign(outcome=rng.binomial(1, p)), ""),
    ):
        table.to_csv(tmp_path / "runs.csv", index=False)
        doubts = "".join(map(str, bk.checks.inspect_source(tmp_path / "runs.csv").doubts))
        assert words in doubts
        assert ("trial effects" in doubts) == bool(words)


def test_columns_are_told_though_the_table_cannot_be_read(tmp_path):
    rows = [
        {
            "task_id": f"t{n}",
            "model": "m",
            "prompt": f"p{n}",
            "style": n / 7,
            "faithful": n % 2,
            "note": None,
            "infos": [1],
        }
        for n in range(6)
    ]
    path = lines(tmp_path / "r.jsonl", rows)
    report = bk.checks.inspect_source(path)
    assert report.error is not None
    assert report.columns == {
        "task_id": ("question", "text, 6 different of 6"),
        "model": ("system", "m"),
        "prompt": ("", "text, 6 different of 6"),
        "style": ("", "numbers from 0 to 0.714286"),
        "faithful": ("marks?", "0, 1"),
        "note": ("", "nothing"),
        "infos": ("", "lists"),
    }
    assert "faithful  marks?" in str(report)
    report = bk.checks.inspect_source(path, columns={"outcome": "faithful"})
    assert report.columns["faithful"][0] == "outcome"
    two = [{"question_id": 1, "task_id": 2, "passed": 1}]
    report = bk.checks.inspect_source(lines(tmp_path / "t.jsonl", two))
    assert [role for role, _ in report.columns.values()] == ["question?", "question?", "outcome"]


def test_json_says_the_same(tmp_path):
    source, options = own_json(tmp_path)
    report = bk.checks.inspect_source(source, **options)
    document = json.loads(run("doctor", source, "--json").stdout)
    assert document == json.loads(json.dumps(report.as_json()))
    assert document["systems"] == ["system"]
    assert document["questions"] == 4
    assert document["metrics"] == ["pass@1,2", "pass^2"]
    assert document["trials"] == {"total": 8, "least": 2, "most": 2}
    assert document["columns"]["Sample ID"]["taken_for"] == "question"
    assert document["columns"]["latency"]["taken_for"] is None
    assert document["command"] == report.command
    assert document["error"] is None


def test_the_command_line_has_exit_codes_and_its_own_words(tmp_path):
    assert "inspect: arithmetic_a.eval" in succeeded("doctor", INSPECT / "arithmetic_a.eval")
    done = run("doctor", RECORDS / "helm")
    assert (done.exit_code, "--scorer" in done.output) == (2, True)
    done = run("doctor", fractions(tmp_path)[0], "--json")
    assert done.exit_code == 2
    assert "--score numbers" in json.loads(done.stdout)["error"]
    assert run("doctor", tmp_path / "absent").exit_code == 2
    assert "--empty-output missing" in " ".join(run("doctor", RECORDS / "harbor").output.split())


def test_each_proposal_is_followed_by_what_it_reads(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("question,a,b\nx,1,0\ny,1,1\nz,1,0\n")
    said = run("doctor", path).output.splitlines()
    found = {
        said[n].split("wide.csv ")[1]: said[n + 1].strip()
        for n, line in enumerate(said)
        if line.strip().startswith("bayesatk doctor")
    }
    means = "a 100%, b 33% right"  # by hand
    assert found == {
        "--wide --column outcome=a,b": f"reads 3 questions x 1 trial x 2 systems: {means}",
        "--column outcome=a,b": "reads 3 questions x 2 trials: 67% right",
    }
    assert "(reads 3 questions x 2 trials: 67% right)" in str(bk.checks.inspect_source(path))
    path.write_text("question,score\ny,0\nx,1\nx,-1\n")  # -1 may stand for no outcome
    _, proposal, reading = run("doctor", path).output.partition("1. If")[2].splitlines()[:3]
    command = shlex.split(proposal)
    assert command[3:] == shlex.split("--score 0=0 --score 1=1 --score -1=missing --missing ignore")
    assert reading.strip() == "reads 2 questions x 1 trial: 50% right"
    assert "1 outcomes missing" in succeeded(*command[1:])


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_a_saved_result_is_checked(tmp_path, ending):
    fit = bk.evaluate([[1, 0], [1, 1]], "bayes", pooling="none", draws=4, rng=1)
    path = bk.save(fit, tmp_path / f"fit{ending}")
    report = bk.checks.inspect_source(path)
    assert report.error is None
    assert "a whole result of conjugate" in str(report)
    if ending == ".nc":
        with pytest.raises(bk.OutcomeError, match="a saved result must be read by") as refusal:
            bk.load(path)
        assert f"bayesatk.report(bayesatk.load_result('{path}'), '" in str(refusal.value)
    file = path if path.is_file() else path / "zarr.json"
    file.write_bytes(file.read_bytes()[:-50])
    report = bk.checks.inspect_source(str(path))
    assert "cannot be read" in str(report)
    assert report.kinds == {"result": [path.name]}
