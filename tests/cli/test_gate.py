"""``bayesatk gate``: exit codes, what is printed and saved, and the workflow of the docs."""

import json
import re
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.main import get_command

import bayesatk as bk
from bayesatk.cli.app import app
from tests.cli import shell

run = partial(shell.run, "gate")


@pytest.mark.parametrize(("new", "policy", "code", "word"), [
    ("new", "gate", 0, "PASS"), ("worse", "gate", 1, "FAIL"), ("new", "strict", 3, "INCONCLUSIVE"),
])  # fmt: skip
def test_the_exit_code_is_the_verdict(gate_files, new, policy, code, word, tmp_path) -> None:
    new, old, rules = (gate_files / name for name in (f"{new}.csv", "main.csv", f"{policy}.toml"))
    done = run(new, "--baseline", old, "--policy", rules, "-q", "-o", tmp_path / "gate.json")
    assert done.exit_code == code, done.output
    assert done.stdout.startswith(f"{word}: in pass@1 on these questions")
    saved = json.loads((tmp_path / "gate.json").read_text())
    expected = bk.decide.gate(bk.load(new), bk.load(old), bk.decide.GatePolicy.read(rules))["gate"]
    assert saved["exit_code"] == expected.attrs["exit_code"] == code
    assert saved["policy_sha256"] == expected.attrs["policy_sha256"]
    assert saved["probability"] == expected["above"].sel(check="difference")
    assert [name for name, _ in saved["origin"]["input_files"]] == [new.name, old.name]


def test_json_is_printed_and_markdown_is_saved(gate_files, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(gate_files)
    asked = ("new.csv", "--baseline", "main.csv", "--policy", "gate.toml")
    answer = json.loads(run(*asked, "--json", "-o", tmp_path / "gate.md").stdout)
    assert answer["schema"] == "bayesatk-gate/1"
    markdown = (tmp_path / "gate.md").read_text()
    assert run(*asked, "--markdown").stdout.strip() == markdown.strip()
    assert answer["policy_sha256"][:16] in markdown


def test_a_design_needs_no_data(gate_files) -> None:
    policy = gate_files / "gate.toml"
    design = ["--design", "--difficulty", "0.6,0.4", "--questions", 100, "--trials", 4]
    expected = bk.decide.gate_design(
        bk.decide.GatePolicy.read(policy), (0.6, 0.4), questions=100, trials=4
    )
    assert run("--policy", policy, *design).stdout.strip() == str(expected)
    answer = json.loads(run("--policy", policy, *design, "--json").stdout)
    assert answer["same_system"]["flip"] == expected.same_system.flip


BOTH = "new.csv --baseline main.csv"


@pytest.mark.parametrize(("line", "words"), [
    (f"{BOTH} --policy gate.toml --system a --system b --system c", "must name the system of FILE"),
    ("new.csv --policy gate.toml", "give FILE of the new system and --baseline FILE"),
    (BOTH, "give either --policy FILE or --metric and"),
    (f"{BOTH} -m pass@1", "--metric pass@1 --margin 0.02"),
    (f"{BOTH} -m pass@1 --margin 0.1 --policy gate.toml", "give either --policy FILE or"),
    ("--init --policy gate.toml", "--policy must be a new file; gate.toml is there"),
    ("--init --policy new.toml --margin -1", "--margin must be > 0"),
    (f"{BOTH} --policy none.toml", "there is no such file"),
    ("--design --policy gate.toml", "takes --difficulty MEAN,ICC"),
    ("--design --policy gate.toml --difficulty 0.6 --questions 9 --trials 2",
     "must be MEAN,ICC, both between 0 and 1; got '0.6'"),
    ("--design --policy gate.toml --difficulty 60,0.3 --questions 9 --trials 2",
     "both between 0 and 1; got '60,0.3'"),
    ("a=new.csv --baseline main.csv --policy gate.toml", "without NAME="),
    (f"{BOTH} --policy main.csv", "must be a TOML file"),
])  # fmt: skip
def test_wrong_usage_is_refused(gate_files, monkeypatch, line, words) -> None:
    monkeypatch.chdir(gate_files)
    done = run(*line.split())
    assert done.exit_code == 2
    assert words in done.stderr


def test_rules_are_options_or_a_file_that_init_writes_whatever_columns_files_have(
    gate_files, tmp_path
) -> None:
    for name in ("new", "main"):
        header, *rows = (gate_files / f"{name}.csv").read_text().splitlines()
        rows = [f"{header},system,note", *(f"{row},{name} model,x" for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows))
    rules, stated = tmp_path / "rules.toml", ("-m", "pass@1", "--margin", 0.2)
    assert run("--init", "--policy", rules, *stated).exit_code == 0
    assert bk.decide.GatePolicy.read(rules) == bk.decide.GatePolicy("pass@1", 0.2)
    first, *others = (
        json.loads(
            run(
                folder / "new.csv", "--baseline", folder / "main.csv", *given, "-q", "--json"
            ).stdout
        )
        for folder, given in (
            (tmp_path, stated),
            (tmp_path, ("--policy", rules)),
            (gate_files, ("--policy", rules)),
        )
    )
    assert first["exit_code"] == 0
    for answer in others:
        assert answer["policy_sha256"] == first["policy_sha256"]
        assert answer["observed"] == first["observed"]


def test_a_saved_result_decides_by_its_model(gate_files, tmp_path) -> None:
    policy = gate_files / "gate.toml"
    data = bk.tally(
        [bk.load(gate_files / f"{name}.csv").successes.values[0] for name in ("new", "main")],
        trials=np.full((2, 30), 4),
        systems=["new", "main"],
        covariates={"place": [*range(30)]},
    )
    fit = bk.evaluate(data, "pass@1", covariates=["place"], draws=50, rng=1)
    asked = (bk.save(fit, tmp_path / "fit.nc"), "--system", "new", "--system", "main")
    done = run(*asked, "--policy", policy, "--json")
    expected = bk.decide.gate(fit, "main", bk.decide.GatePolicy.read(policy))["gate"]
    probability = json.loads(done.stdout)["probability"]
    assert probability == expected["above"].sel(check="difference")
    assert done.exit_code == expected.attrs["exit_code"]
    refusal = run(*asked, "--policy", policy, "--shared")
    assert refusal.exit_code == 2
    assert "a saved result must go alone" in refusal.stderr


RIGHT = {"weak": 1, "strong": 3}  # of four tasks
OF_TWO = "\n".join([
    "system,task,passed",
    *(f"{name},{i},{int(i % 4 < RIGHT[name])}" for name in RIGHT for i in range(24)),
])  # fmt: skip


def test_the_first_system_named_is_the_new_one(tmp_path) -> None:
    """Whatever the order of the file: the difference is the first named minus the second."""
    (tmp_path / "runs.csv").write_text(OF_TWO)
    for systems, code in ((("weak", "strong"), 1), (("strong", "weak"), 0)):
        named = [text for name in systems for text in ("--system", name)]
        done = run(tmp_path / "runs.csv", *named, "-m", "pass@1", "--margin", 0.1, "--json")
        answer = json.loads(done.stdout)
        assert answer["observed"] == {
            role: RIGHT[name] / 4 for role, name in zip(("new", "baseline"), systems, strict=True)
        }
        assert done.exit_code == code


def test_files_of_several_systems_name_the_one_of_each(tmp_path) -> None:
    for file in ("new.csv", "old.csv"):
        (tmp_path / file).write_text(OF_TWO)
    asked = (tmp_path / "new.csv", "--baseline", tmp_path / "old.csv", "-m", "pass@1")
    asked += ("--margin", 0.1, "--json")
    assert "--system NEW --system BASELINE" in " ".join(run(*asked).stderr.split())
    for names, values in ((["weak"], (0.25, 0.25)), (["weak", "strong"], (0.25, 0.75))):
        chosen = [text for name in names for text in ("--system", name)]
        answer = json.loads(run(*asked, *chosen).stdout)
        assert answer["observed"] == dict(zip(("new", "baseline"), values, strict=True))


def test_the_workflow_of_the_docs_has_commands_that_exist() -> None:
    text = (Path(__file__).parents[2] / "docs/gate_workflow.yml").read_text()
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    (line,) = [line for line in lines if "bayesatk gate" in line]
    words = shlex.split(line.split(">")[0])
    known = {option for each in get_command(app).commands["gate"].params for option in each.opts}
    assert {word for word in words if re.match("--?[a-z]", word)} <= known
