"""What an error proposes works as it is written: arguments in Python, options in the shell."""

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk._tools.messages import Argument
from bayesatk.cli.app import app

RNG = np.random.default_rng(3)
RUNS = {"a": RNG.binomial(1, 0.5, (12, 3)), "b": RNG.binomial(1, 0.7, (12, 3))}
GRADES = {"a": RNG.choice([0.0, 0.5, 1.0], (12, 3)), "b": RNG.choice([0.0, 0.5, 1.0], (12, 3))}
GROUPS = list("xyzw") * 3
PAIR = {"a": (0.6, 0.3), "b": (0.65, 0.3)}
THREE = bk.evaluate({**RUNS, "c": RUNS["a"]}, "pass@1", draws=20, rng=1)
DATA = bk.tally(RUNS, group=GROUPS, covariates={"minutes": list(range(12))})
FAST = {"draws": 20, "rng": 1, "progress": False}


def evaluate(**options):
    return bk.evaluate(**({"data": DATA, "metrics": "pass@1", "group": False} | FAST | options))


def plan(**options):
    return bk.plan(**({"source": PAIR, "metric": "pass@1", "trials": [1, 2]} | options))


def gate(**options):
    return bk.decide.gate(**({"new": evaluate(), "baseline": "a"} | options))


# A call that is refused, and the arguments that its message proposes: one after the other each of
# them alone, or where there is an "and" all together.
PROPOSED = [
    (evaluate, {"covariates": "minutes", "pooling": "none"}, {"pooling": "partial"}),
    (evaluate, {"covariates": "minutes", "pooling": "complete"}, {"pooling": "partial"}),
    (evaluate, {"difficulty": "beta", "pooling": "none"}, {"pooling": "partial"}),
    (evaluate, {"data": bk.tally(GRADES, scores="numbers")}, {"success": "score >= 0.5"}),
    (plan, {"width": 0.1, "prob_correct": 0.9}, {"width": 0.1}),
    (plan, {"source": (0.6, 0.3), "prob_correct": 0.9}, {"source": PAIR}),
    (plan, {"source": THREE}, {"system": ["a", "b"]}),
    (gate, {}, {"metric": "pass@1", "margin": 0.02}),
]  # fmt: skip


def proposals(error: Exception) -> dict[str, object]:
    """Arguments of a message that have a value, by name."""
    return {
        piece.name: piece.value
        for piece in error.args
        if isinstance(piece, Argument) and piece.value not in (None, ...)
    }


@pytest.mark.parametrize(("call", "options", "remedy"), PROPOSED)
def test_a_proposed_argument_is_taken(call, options, remedy) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        call(**options)
    found = proposals(refused.value)
    assert remedy.items() <= found.items(), str(refused.value)
    for name, value in remedy.items():
        text = f"{name}={value!r}" if isinstance(value, str) else f"{name}="
        assert text in str(refused.value)
    kept = {name: value for name, value in options.items() if name not in found or name in remedy}
    call(**(kept | remedy))


CSV = {
    "plain": "system,question,trial,outcome\na,1,0,1\na,1,1,0\na,2,0,1\na,2,1,1\n",
    "hole": "system,question,trial,outcome\na,1,0,1\na,1,1,\na,2,0,1\na,2,1,1\n",
    "grades": "system,question,trial,outcome\na,1,0,0.2\na,1,1,0.7\na,2,0,1\na,2,1,0.4\n",
    "letters": "system,question,trial,outcome\na,1,0,C\na,1,1,I\na,2,0,C\na,2,1,P\n",
    "two": "system,question,trial,outcome\na,1,0,1\na,2,0,0\nb,1,0,1\nb,2,0,1\n",
    "costs": "system,question,trial,outcome,usd\na,1,0,1,0.1\na,1,1,0,\na,2,0,1,0.3\na,2,1,1,0.2\n",
}
# A line that is refused, what its message proposes, and what is filled in for what it leaves open.
LINES = [
    ("evaluate hole.csv -m pass@1", "--missing ignore", {}),
    ("evaluate grades.csv -m pass@1", "--score numbers", {"-m pass@1": "-m mean"}),
    ("evaluate letters.csv -m mean", "--score C=1 --score I=0 --score P=0", {}),
    ("evaluate costs.csv -m pass@1 --cost usd", "--missing-cost ignore", {}),
    ("evaluate plain.csv -m pass@1 --difficulty beta --pooling none", "--pooling partial",
     {"--pooling none": ""}),
    ("gate two.csv --system b --system a --metric pass@1", "--metric pass@1 --margin 0.02",
     {"--metric pass@1": ""}),
    ("guess --n 10", "--guess PROBABILITY", {"PROBABILITY": "0.5"}),
    ("plan --difficulty a=0.6,0.3 --prob-correct 0.9",
     "--difficulty a=0.6,0.3 --difficulty b=0.65,0.3", {"--difficulty a=0.6,0.3": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "remedy", "filled"), LINES)
def test_a_proposed_option_is_taken(line, remedy, filled, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in CSV.items():
        (tmp_path / f"{name}.csv").write_text(text)
    refused = CliRunner().invoke(app, shlex.split(line))
    assert refused.exit_code == 2, refused.output
    assert remedy in refused.stderr
    for written, instead in filled.items():  # in the line where it is there, or in the remedy
        line = line.replace(written, instead)
        remedy = remedy if written.startswith("-") else remedy.replace(written, instead)
    done = CliRunner().invoke(app, shlex.split(f"{line} {remedy}"))
    assert done.exit_code in (0, 1, 3), done.output  # a gate may fail
    assert "bayesatk: " not in done.stderr.replace("bayesatk: warning", "")


SHELVES = (bk, bk.checks, bk.decide, bk.guessing, bk.metrics, bk.models, bk.plots, bk.priors)
PUBLIC = {name: getattr(shelf, name) for shelf in SHELVES for name in shelf.__all__}


def messages() -> Iterator[tuple[str, str]]:
    """Texts of the package that are no docstrings, with {} for what is filled in, and where."""
    root = Path(bk.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf8"))
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(piece, "value", None) for piece in node.values]
                text = "".join(piece if isinstance(piece, str) else "{}" for piece in parts)
                skipped |= {id(piece) for piece in ast.walk(node)}
            elif isinstance(node, ast.Constant) and id(node) not in skipped:
                text = str(node.value)
            else:
                continue
            yield f"{path.relative_to(root)}:{node.lineno}", text


def parameters(function: object) -> set[str]:
    declared = inspect.signature(function).parameters.values()
    variadic = any(parameter.kind == parameter.VAR_KEYWORD for parameter in declared)
    return {parameter.name for parameter in declared} | (
        {"group", "covariates"} if variadic else set()
    )


def test_names_and_arguments_that_messages_propose_exist() -> None:
    wrong, calls = [], 0
    for where, text in messages():
        for call in re.finditer(r"\b(?:bayesatk|bk)((?:\.[A-Za-z_]\w*)+)(?:\(([^()]*)\))?", text):
            named, known = bk, True
            for name in call[1][1:].split("."):
                known = known and hasattr(named, name)
                named = getattr(named, name, None)
            known = known or call[1][1:] in {"inspect", "lm_eval", "json"}  # modules, and a file
            arguments = re.findall(r"\b(\w+)=", call[2] or "")
            if not known or (arguments and not parameters(named) >= {*arguments}):
                wrong.append(f"{where}: {call[0]}")
            calls += 1
        for name, call in re.findall(r"(?<![\w.'])([A-Z][a-z]+[A-Z]\w+)\(([^()]*)\)?", text):
            if name in PUBLIC and not re.search(r"{}|^\.\.\.", call):  # a repr
                wrong.append(f"{where}: {name} without its place")
    assert not wrong
    assert calls > 60
