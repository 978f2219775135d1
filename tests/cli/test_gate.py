"""``bayesatk gate``: exit codes, what is printed and saved, and the workflow of the docs."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app

ROOT = Path(__file__).parents[2]
POLICY = 'metric = "pass@1"\nmargin = 0.2\neffect = -0.3\n'


def run(*arguments: object):
    return CliRunner().invoke(app, ["gate", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("gate")
    rng = np.random.default_rng(1)
    p = rng.beta(0.8, 0.6, 30)
    for name, power in (("main", 1.0), ("new", 1.0), ("worse", 8.0)):
        runs = rng.binomial(1, p[:, None] ** power, (30, 4))
        rows = [f"q{q},{t},{x}" for q, row in enumerate(runs) for t, x in enumerate(row)]
        (found / f"{name}.csv").write_text("question,trial,outcome\n" + "\n".join(rows) + "\n")
    (found / "gate.toml").write_text(POLICY)
    (found / "strict.toml").write_text(POLICY.replace("0.2\n", "0.001\n"))
    return found


@pytest.mark.parametrize(
    ("new", "policy", "code", "word"),
    [
        ("new", "gate", 0, "PASS"),
        ("worse", "gate", 1, "FAIL"),
        ("main", "strict", 3, "INCONCLUSIVE"),
    ],
)  # fmt: skip
def test_exit_codes(folder, new, policy, code, word, tmp_path) -> None:
    new, old, rules = folder / f"{new}.csv", folder / "main.csv", folder / f"{policy}.toml"
    if new == old:
        new = tmp_path / "copy.csv"
        new.write_bytes(old.read_bytes())
    done = run(new, "--baseline", old, "--policy", rules, "-q", "-o", tmp_path / "gate.json")
    assert done.exit_code == code, done.output
    assert done.stdout.startswith(f"{word}: in pass@1 on these questions")
    saved = json.loads((tmp_path / "gate.json").read_text())
    own = bk.decide.gate(bk.load(new), bk.load(old), bk.decide.GatePolicy.read(rules))["gate"]
    assert saved["exit_code"] == own.attrs["exit_code"] == code
    assert saved["policy_sha256"] == own.attrs["policy_sha256"]
    assert saved["probability"] == own["above"].sel(check="difference")
    assert [name for name, _ in saved["origin"]["input_files"]] == [new.name, old.name]


def test_json_and_markdown(folder, tmp_path) -> None:
    told = [folder / "new.csv", "--baseline", folder / "main.csv", "--policy", folder / "gate.toml"]
    printed = run(*told, "--json", "-o", tmp_path / "gate.md")
    found = json.loads(printed.stdout)
    assert found["schema"] == "bayesatk-gate/1"
    shown = run(*told, "--markdown").stdout
    assert shown.strip() == (tmp_path / "gate.md").read_text().strip()
    assert found["policy_sha256"][:16] in shown


def test_a_design_needs_no_data(folder) -> None:
    told = ["--design", "--difficulty", "0.6,0.4", "--questions", 100, "--trials", 4]
    done = run("--policy", folder / "gate.toml", *told)
    assert done.exit_code == 0
    own = bk.decide.gate_design(
        bk.decide.GatePolicy.read(folder / "gate.toml"), (0.6, 0.4), questions=100, trials=4
    )
    assert done.stdout.strip() == str(own)
    found = json.loads(run("--policy", folder / "gate.toml", *told, "--json").stdout)
    assert found["same_system"]["flip"] == own.same_system.flip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["new.csv", "--policy", "gate.toml"], "give FILE of the new system and --baseline FILE"),
        (["new.csv", "--baseline", "main.csv"], "give either --policy FILE or --metric and"),
        (["new.csv", "--baseline", "main.csv", "-m", "pass@1"], "--metric pass@1 --margin 0.02"),
        (["new.csv", "--baseline", "main.csv", "-m", "pass@1", "--margin", "0.1", "--policy",
          "gate.toml"], "give either --policy FILE or"),
        (["--init", "--policy", "gate.toml"], "--policy must be a new file; gate.toml is there"),
        (["--init", "--policy", "new.toml", "--margin", "-1"], "--margin must be > 0"),
        (["new.csv", "--baseline", "main.csv", "--policy", "none.toml"], "there is no such file"),
        (["--design", "--policy", "gate.toml"], "takes --difficulty MEAN,ICC"),
        (["--design", "--policy", "gate.toml", "--difficulty", "0.6", "--questions", "9",
          "--trials", "2"], "must be MEAN,ICC; got '0.6'"),
        (["a=new.csv", "--baseline", "main.csv", "--policy", "gate.toml"], "without NAME="),
        (["new.csv", "--baseline", "main.csv", "--policy", "main.csv"], "must be a TOML file"),
    ],
)  # fmt: skip
def test_wrong_usage_is_refused(folder, monkeypatch, arguments, message) -> None:
    monkeypatch.chdir(folder)
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_rules_are_options_or_a_file_that_init_writes_whatever_columns_files_have(
    folder, tmp_path
) -> None:
    asked = []
    for name in ("new", "main"):
        lines = (folder / f"{name}.csv").read_text().splitlines()
        rows = [f"{lines[0]},system,note", *(f"{line},{name} model,x" for line in lines[1:])]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows))
        asked.append(tmp_path / f"{name}.csv")
    asked.insert(1, "--baseline")
    done = run(*asked, "-m", "pass@1", "--margin", 0.2, "-q", "--json")
    assert done.exit_code == 0, done.output
    rules = tmp_path / "rules.toml"
    assert run("--init", "--policy", rules, "-m", "pass@1", "--margin", 0.2).exit_code == 0
    assert bk.decide.GatePolicy.read(rules) == bk.decide.GatePolicy("pass@1", 0.2)
    fixed = run(*asked, "--policy", rules, "-q", "--json")
    answers = [json.loads(each.stdout) for each in (done, fixed)]
    assert answers[0]["policy_sha256"] == answers[1]["policy_sha256"]
    assert answers[0]["observed"] == answers[1]["observed"]
    bare = run(folder / "new.csv", "--baseline", folder / "main.csv", "--policy", rules, "--json")
    assert json.loads(bare.stdout)["observed"] == answers[0]["observed"]


def test_a_saved_result_decides_by_its_model(folder, tmp_path) -> None:
    both = [bk.load(folder / f"{name}.csv").successes.values[0] for name in ("new", "main")]
    data = bk.tally(
        both, trials=np.full((2, 30), 4), systems=["new", "main"],
        covariates={"place": list(range(30))},
    )  # fmt: skip
    fit = bk.evaluate(data, "pass@1", covariates=["place"], draws=50, rng=1)
    file, systems = bk.save(fit, tmp_path / "fit.nc"), ["--system", "new", "--system", "main"]
    done = run(file, *systems, "--policy", folder / "gate.toml", "--json")
    own = bk.decide.gate(fit, "main", bk.decide.GatePolicy.read(folder / "gate.toml"))["gate"]
    found = json.loads(done.stdout)
    assert found["probability"] == own["above"].sel(check="difference")
    assert done.exit_code == own.attrs["exit_code"]
    refused = run(file, *systems, "--policy", folder / "gate.toml", "--shared")
    assert refused.exit_code == 2
    assert "a saved result must go alone" in refused.stderr


def test_the_first_system_named_is_the_new_one(tmp_path) -> None:
    """Whatever the order of the file: the difference is the first named minus the second."""
    right = {"weak": 1, "strong": 3}
    rows = [f"{name},{i},{int(i % 4 < right[name])}" for name in right for i in range(24)]
    (tmp_path / "runs.csv").write_text("\n".join(["system,task,passed", *rows]))
    for systems, code in ((("weak", "strong"), 1), (("strong", "weak"), 0)):
        named = [text for name in systems for text in ("--system", name)]
        done = run(tmp_path / "runs.csv", *named, "-m", "pass@1", "--margin", 0.1, "--json")
        answer = json.loads(done.stdout)
        assert answer["observed"] == {
            role: right[name] / 4 for role, name in zip(("new", "baseline"), systems, strict=True)
        }
        assert done.exit_code == code


def test_the_workflow_of_the_docs_has_commands_that_exist() -> None:
    text = (ROOT / "docs/gate_workflow.yml").read_text()
    steps = yaml.safe_load(text)["jobs"]["gate"]["steps"]
    lines = [one for step in steps for one in step.get("run", "").splitlines()]
    (line,) = [one for one in lines if "bayesatk gate" in one]
    words = shlex.split(line.split(">")[0])
    known = {option for each in get_command(app).commands["gate"].params for option in each.opts}
    assert {word for word in words if re.match("--?[a-z]", word)} <= known
