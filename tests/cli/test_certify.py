"""``bayesatk gate --certify``: exit codes, JSON, and what does not go together."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app


def run(*arguments: object):
    return CliRunner().invoke(app, ["gate", "--certify", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("certify")
    rng = np.random.default_rng(2)
    runs = rng.binomial(1, rng.beta(2, 1, 20)[:, None], (20, 4))
    rows = [f"q{q},{t},{x}" for q, row in enumerate(runs) for t, x in enumerate(row)]
    (path / "main.csv").write_text("question,trial,outcome\n" + "\n".join(rows) + "\n")
    (path / "gate.toml").write_text('metric = "pass@1"\nmargin = 0.4\npooling = "complete"\n')
    return path


@pytest.mark.long
def test_a_baseline_is_certified_as_in_python(folder) -> None:
    main, rules = folder / "main.csv", folder / "gate.toml"
    done = run("--baseline", main, "--policy", rules, "--json", "--seed", 3)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    policy = bk.decide.GatePolicy.read(rules)
    tree = bk.decide.certify(bk.load(main), policy, rng=3, progress=False)
    assert document == json.loads(tree["certificate"].attrs["record"])
    assert document["reached"] is True
    assert document["sentence"].startswith("CERTIFIED: a gate on pass@1 with margin 0.4, 20 ")


@pytest.mark.long
def test_stated_difficulties_that_are_not_certified(folder, tmp_path) -> None:
    rules = tmp_path / "strict.toml"
    rules.write_text('metric = "pass@1"\nmargin = 0.01\npooling = "complete"\n')
    stated = ("--policy", rules, "--difficulty", "0.6,0.2", "--questions", 10, "--trials", 2)
    done = run(*stated, "--markdown", "-o", tmp_path / "certificate.json")
    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("### ❌ NOT CERTIFIED")
    assert json.loads((tmp_path / "certificate.json").read_text())["exit_code"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--certify takes --baseline FILE, or --difficulty MEAN,ICC"),
        (("--difficulty", "0.6,0.2"), "must have --questions and --trials"),
        (("--design", "--difficulty", "0.6,0.2"), "no FILE, --system or --design"),
    ],
)
def test_what_does_not_go_together(arguments, words) -> None:
    done = run("--metric", "pass@1", "--margin", 0.1, *arguments)
    assert done.exit_code == 2
    assert words in done.stderr
